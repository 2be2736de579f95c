//! Steps: which kind each is, and what has no place in it.

use plimsoll_scenario::Op;

use super::known::{Known, Last};
use super::scenario::Part;
use super::{Compiler, is_on};
use crate::document::{Field, StepSpec};
use crate::{Place, Problem};

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Request,
    Set,
    If,
    Repeat,
    While,
    Parallel,
    Think,
}

/// Advice on a step that does nothing.
const KINDS: &str =
    "write a request, such as `get: /path`, or one of `set`, `think`, `if`, `repeat`, `while`, `parallel`";

impl Compiler<'_, '_> {
    /// Compiles steps, one after the other.
    pub(super) fn steps(
        &mut self,
        steps: &[Field<StepSpec>],
        part: &mut Part<'_>,
        known: &mut Known,
    ) -> Option<()> {
        let mut complete = Some(());
        for step in steps {
            let compiled = match step.get() {
                Some(spec) => self.step(spec, step.place(), part, known),
                None => None,
            };
            complete = complete.and(compiled);
        }
        complete
    }

    fn step(
        &mut self,
        spec: &StepSpec,
        place: Option<Place>,
        part: &mut Part<'_>,
        known: &mut Known,
    ) -> Option<()> {
        if *spec == StepSpec::default() {
            // What is in it is not known, or nothing is: the reader has reported that.
            return None;
        }
        let kind = self.kind(spec, place)?;
        let fits = self.check_company(spec, kind);
        let compiled = match kind {
            Kind::Request => self.request_step(spec, place, part, known),
            Kind::Set => self.set_step(spec, part, known),
            Kind::If => self.if_step(spec, place, part, known),
            Kind::Repeat => self.repeat_step(spec, place, part, known),
            Kind::While => self.while_step(spec, place, part, known),
            Kind::Parallel => self.parallel_step(spec, part, known),
            Kind::Think => self.pause(&spec.think).map(|pause| part.ops.push(Op::Pause(pause))),
        };
        fits.and(compiled)
    }

    /// A request, and what belongs to it.
    fn request_step(
        &mut self,
        spec: &StepSpec,
        place: Option<Place>,
        part: &mut Part<'_>,
        known: &mut Known,
    ) -> Option<()> {
        let cleared = match spec.clear_cookies.is_absent() {
            true => Some(()),
            false => self.clear_cookies(spec, part),
        };
        let draft = self.request(spec, place, part, known);
        let pause = match spec.think.is_absent() {
            true => Some(None),
            false => self.pause(&spec.think).map(Some),
        };
        // What a request takes is set behind it, even if the rest of it is wrong.
        self.extracted(spec, known);
        let Some(draft) = draft else {
            // There is a request, of which nothing is known.
            known.last = Last::Several;
            return None;
        };
        let index = part.add_draft(draft, known);
        part.ops.push(Op::Send(index));
        part.ops.extend(pause?.map(Op::Pause));
        cleared
    }

    /// Variables that a request sets.
    pub(super) fn extracted(&self, spec: &StepSpec, known: &mut Known) {
        for (name, ..) in &spec.extract.0 {
            self.variable(&name.0).into_iter().for_each(|variable| known.sets(variable));
        }
    }

    fn clear_cookies(&mut self, spec: &StepSpec, part: &mut Part<'_>) -> Option<()> {
        if !part.cookies {
            let problem = Problem::new("`clear_cookies` has no effect: the scenario keeps no cookies");
            return self.fail(
                spec.clear_cookies.place(),
                problem.with_hint("write `cookies: true` in the scenario"),
            );
        }
        if is_on(&spec.clear_cookies) {
            part.ops.push(Op::ClearCookies);
        }
        Some(())
    }

    /// What the step does; exactly one thing.
    fn kind(&mut self, spec: &StepSpec, place: Option<Place>) -> Option<Kind> {
        let mut kinds: Vec<(Kind, &str, Option<Place>)> = Vec::new();
        for (name, field) in requests(spec) {
            if !field.is_absent() {
                kinds.push((Kind::Request, name, field.place()));
            }
        }
        if !spec.same_url.is_absent() {
            kinds.push((Kind::Request, "same_url", spec.same_url.place()));
        }
        if let Some((_, place, _)) = spec.set.0.first() {
            kinds.push((Kind::Set, "set", Some(*place)));
        }
        for (kind, name, field) in [
            (Kind::If, "if", &spec.condition),
            (Kind::Repeat, "repeat", &spec.repeat),
            (Kind::While, "while", &spec.while_condition),
        ] {
            if !field.is_absent() {
                kinds.push((kind, name, field.place()));
            }
        }
        if let Some(first) = spec.parallel.first() {
            kinds.push((Kind::Parallel, "parallel", first.place()));
        }
        match kinds.as_slice() {
            [(kind, ..)] => Some(*kind),
            [(_, one, _), (_, other, place), ..] => {
                let problem = Problem::new(format!("`{one}` and `{other}` are steps of their own"));
                self.form(*place, problem.with_hint("write them one after the other"))
            }
            // A script may say by itself whom to ask.
            [] if !spec.script.is_absent() => Some(Kind::Request),
            [] if !spec.think.is_absent() => Some(Kind::Think),
            [] => match self.lost_block(spec) {
                Some((place, problem)) => self.form(place, problem),
                None => self.form(place, Problem::new("the step does nothing").with_hint(KINDS)),
            },
        }
    }

    /// A block of steps without the word that says when to carry them out.
    fn lost_block(&self, spec: &StepSpec) -> Option<(Option<Place>, Problem)> {
        let blocks = [
            ("then", &spec.then, "if: ${role} == admin"),
            ("else", &spec.otherwise, "if: ${role} == admin"),
            ("steps", &spec.steps, "repeat: 3"),
        ];
        let (name, steps, example) = blocks.into_iter().find(|(_, steps, _)| !steps.is_empty())?;
        let problem = Problem::new(format!("`{name}` without a word that says when it is carried out"));
        Some((steps[0].place(), problem.with_hint(format!("write `{example}` beside it"))))
    }

    /// Refuses what has no effect in a step of this kind.
    fn check_company(&mut self, spec: &StepSpec, kind: Kind) -> Option<()> {
        let mut complete = Some(());
        if kind != Kind::Request {
            for (name, place) in of_requests(spec) {
                let problem = Problem::new(format!("`{name}` has no effect in a step without a request"));
                complete =
                    self.form(place, problem.with_hint("it belongs to a request, such as `get: /path`"));
            }
        }
        let alone = [
            ("think", spec.think.place(), matches!(kind, Kind::Request | Kind::Think)),
            ("clear_cookies", spec.clear_cookies.place(), kind == Kind::Request),
            ("then", block(&spec.then), kind == Kind::If),
            ("else", block(&spec.otherwise), kind == Kind::If),
            ("steps", block(&spec.steps), matches!(kind, Kind::Repeat | Kind::While)),
        ];
        for (name, place, fits) in alone {
            if let (Some(place), false) = (place, fits) {
                let problem = Problem::new(format!("`{name}` has no effect in this step"));
                complete = self.form(Some(place), problem.with_hint("make it a step of its own"));
            }
        }
        complete
    }
}

/// The words that make a step a request, with their methods as names.
pub(super) fn requests(spec: &StepSpec) -> [(&'static str, &Field<crate::document::Text>); 7] {
    [
        ("get", &spec.get),
        ("post", &spec.post),
        ("put", &spec.put),
        ("patch", &spec.patch),
        ("delete", &spec.delete),
        ("head", &spec.head),
        ("request", &spec.request),
    ]
}

/// What belongs to a request and is there.
fn of_requests(spec: &StepSpec) -> Vec<(&'static str, Option<Place>)> {
    let all = [
        ("name", spec.name.place()),
        ("method", spec.method.place()),
        ("target", spec.target.place()),
        ("headers", spec.headers.0.first().map(|(_, place, _)| *place)),
        ("body", spec.body.place()),
        ("body_file", spec.body_file.place()),
        ("template_file", spec.template_file.place()),
        ("json", spec.json.place()),
        ("timeout", spec.timeout.place()),
        ("expect", spec.expect.place()),
        ("extract", spec.extract.0.first().map(|(_, place, _)| *place)),
        ("script", spec.script.place()),
    ];
    all.into_iter().filter(|(_, place)| place.is_some()).collect()
}

fn block(steps: &[Field<StepSpec>]) -> Option<Place> {
    steps.first().map(|first| first.place().unwrap_or_default())
}
