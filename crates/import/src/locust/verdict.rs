//! `response.failure(…)` and `response.success()` under a condition: expectations.

use plimsoll_document::Field;

use crate::k6::Importer;
use crate::k6::call::requests_of;
use crate::k6::evaluate::not;
use crate::k6::lost::End;
use crate::k6::statement::{AFTER_FAILURE, ends};
use crate::k6::syntax::{Kind, Span, Statement, StatementKind};
use crate::k6::value::{Statuses, Test, Value};

impl Importer<'_> {
    /// A condition that judges a response. `None` for all others, which are not carried out by this.
    pub(crate) fn verdict(
        &mut self,
        value: &Value,
        span: Span,
        then: &[Statement],
        otherwise: &[Statement],
        scope: usize,
    ) -> Option<End> {
        let judged = [(then, "failure"), (otherwise, "failure"), (then, "success")];
        let [fails_then, fails_otherwise, succeeds] = judged.map(|(side, word)| self.says(side, word, scope));
        if !(fails_then || fails_otherwise || succeeds) || self.truth(value).is_some() {
            return None;
        }
        if let Some(lost) = value.lost() {
            self.refuse(span, lost);
        }
        if let Some(good) = self.chain(value, span, then, otherwise, scope) {
            self.demand(&good, span);
            return Some(End::Open);
        }
        let Some(test) = self.test(value, span) else {
            self.note(span, "the condition is not known before the run: no response fails by it");
            return Some(self.inner(if fails_then { otherwise } else { then }, scope));
        };
        if !fails_then && !fails_otherwise {
            let accepted = self.accepted(&test, otherwise, scope);
            match accepted {
                Some(test) => self.demand(&test, span),
                None => self.note(span, "nothing in a plan is the same as this condition: it is left out"),
            }
            self.leave_out(&others(then), "it is done for some responses only: it is left out");
            return Some(End::Open);
        }
        let (bad, good, holds) =
            if fails_then { (then, otherwise, negated(test)) } else { (otherwise, then, test) };
        let holds = match holds {
            // Without a verdict, those below 400 are good.
            Test::Status(request, statuses) if !self.says(good, "success", scope) => {
                Test::Status(request, statuses.and(&Statuses::range(200, 399)))
            }
            holds => holds,
        };
        self.demand(&holds, span);
        if ends(bad) {
            let mut requests = Vec::new();
            requests_of(&holds, &mut requests);
            requests.into_iter().for_each(|one| self.requests[one].step.on_failure = Field::Absent);
        }
        self.leave_out(&others(bad), AFTER_FAILURE);
        Some(self.inner(good, scope))
    }

    /// The statuses that are good by a chain of conditions of which each is a verdict on statuses and nothing
    /// else. `None` for other chains.
    fn chain(
        &mut self,
        value: &Value,
        span: Span,
        then: &[Statement],
        otherwise: &[Statement],
        scope: usize,
    ) -> Option<Test> {
        let of = |test: Option<Test>| match test {
            Some(Test::Status(request, statuses)) => Some((request, statuses)),
            _ => None,
        };
        let (request, mut met) = of(self.test(value, span))?;
        let mut good = Statuses::range(1, 0);
        // Those that no condition has met so far.
        let mut open = Statuses::range(200, 599);
        let (mut then, mut rest) = (then, otherwise);
        loop {
            if self.only_says(then, "success", scope) {
                good = good.or(&open.and(&met));
            } else if !self.only_says(then, "failure", scope) {
                return None;
            }
            open = open.and(&met.others());
            let [Statement { kind: StatementKind::If(next, inner, behind), .. }] = rest else { break };
            let value = self.evaluate(next, scope);
            let (same, statuses) = of(self.test(&value, next.span))?;
            if same != request {
                return None;
            }
            (met, then, rest) = (statuses, inner, behind);
        }
        if rest.is_empty() {
            // Without a verdict, those below 400 are good.
            good = good.or(&open.and(&Statuses::range(200, 399)));
        } else if self.only_says(rest, "success", scope) {
            good = good.or(&open);
        } else if !self.only_says(rest, "failure", scope) {
            return None;
        }
        Some(Test::Status(request, good))
    }

    /// Returns `true` if this verdict is the only statement.
    fn only_says(&mut self, statements: &[Statement], word: &str, scope: usize) -> bool {
        statements.len() == 1 && self.says(statements, word, scope)
    }

    /// The statuses that are a success if this condition or one behind it says so.
    fn accepted(&mut self, test: &Test, otherwise: &[Statement], scope: usize) -> Option<Test> {
        let Test::Status(request, statuses) = test else { return None };
        let mut statuses = statuses.clone();
        let mut rest = otherwise;
        while let [Statement { kind: StatementKind::If(next, then, behind), .. }] = rest {
            if !self.says(then, "success", scope) {
                break;
            }
            let value = self.evaluate(next, scope);
            let Some(Test::Status(same, more)) = self.test(&value, next.span) else { return None };
            if same != *request {
                return None;
            }
            (statuses, rest) = (statuses.or(&more), behind);
        }
        if !self.says(rest, "failure", scope) {
            statuses = statuses.or(&Statuses::range(200, 399));
        }
        Some(Test::Status(*request, statuses))
    }

    /// Returns `true` if one of the statements is `response.failure(…)` or `response.success()`.
    fn says(&mut self, statements: &[Statement], word: &str, scope: usize) -> bool {
        statements.iter().any(|statement| {
            let StatementKind::Expression(expression) = &statement.kind else { return false };
            let Kind::Call(callee, _) = &expression.kind else { return false };
            let Kind::Member(object, name) = &callee.kind else { return false };
            let Kind::Name(variable) = &object.kind else { return false };
            let known = self.scope_of(variable, scope).map(|owner| &self.scopes[owner].names[variable]);
            name == word && matches!(known, Some(Value::Response(_)))
        })
    }
}

/// Statements that are no verdicts.
fn others(statements: &[Statement]) -> Vec<Statement> {
    let is_verdict = |statement: &&Statement| match &statement.kind {
        StatementKind::Expression(expression) => match &expression.kind {
            Kind::Call(callee, _) => {
                matches!(&callee.kind, Kind::Member(_, name) if name == "failure" || name == "success")
            }
            _ => false,
        },
        _ => false,
    };
    statements.iter().filter(|statement| !is_verdict(statement)).cloned().collect()
}

/// The opposite of a test, with the tests in it turned one by one.
fn negated(test: Test) -> Test {
    match test {
        Test::Any(all) => Test::All(all.into_iter().map(negated).collect()),
        Test::All(all) => Test::Any(all.into_iter().map(negated).collect()),
        other => not(other),
    }
}
