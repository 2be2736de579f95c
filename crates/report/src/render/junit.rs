//! The verdict and the thresholds of a run as test cases of JUnit, which every CI system shows.
//!
//! There is no standard: this is the common part of the two schemas in use, that of Ant's reports
//! (`JUnit.xsd`) and that of Jenkins (`junit-10.xsd`). The first test case is the measurement itself: a run
//! that shows nothing about the target is an error, and its thresholds are skipped where they are not
//! [proven](ThresholdOutcome::proven). A threshold that a valid measurement shows neither to hold nor not to
//! is an error of its own. A measurement that is invalid, though its figures are enough for a failure, is not
//! passed but skipped. Where there is no threshold and no request succeeded, that is a
//! failure of a second test case. The comparison of a store's contents with its acknowledgements is a test
//! case for each of its tables, and so are the findings of each check of a cluster. The report for people is
//! the output of the suite.

mod searched;

use std::fmt::Write as _;

pub(crate) use searched::report as searched;

use plimsoll_core::escape::{self, is_xml};
use plimsoll_metrics::threshold::observed_words;

use crate::Style;
use crate::build::headline::Standing;
use crate::contract::reconciliation::{ConsistencyFinding, ReconciliationCheck};
use crate::contract::result::{CauseResult, OutcomeResult, RunResult, ThresholdOutcome, VerdictResult};
use crate::render::document::records::said;
use crate::render::text;

/// The class of all test cases, by which CI systems group them.
const CLASS: &str = "plimsoll";

/// The whole report, with its XML declaration.
pub(crate) fn report(result: &RunResult) -> String {
    let of = |standing| result.thresholds.iter().filter(|one| one.standing() == standing).count();
    let unmeasured = !is_error(&result.verdict) && !result.verdict.valid;
    let failed = of(Standing::Fails);
    let not_shown = of(Standing::NotShown);
    let (undecided, untold) = if result.verdict.valid { (not_shown, 0) } else { (0, not_shown) };
    let skipped = of(Standing::NotJudged) + untold + usize::from(unmeasured);
    let served = served(result);
    let interrupted = usize::from(result.run.interrupted_by_signal.is_some());
    let checks = result.reconciliation.as_ref().map_or(&[][..], |reconciliation| &reconciliation.checks);
    let findings = result.reconciliation.as_ref().map_or(&[][..], |reconciliation| &reconciliation.findings);
    let inconsistent = checks.iter().filter(|check| !check.is_consistent()).count()
        + findings.iter().filter(|finding| !finding.passed).count();
    let suite = Suite {
        name: suite(result),
        started_at: &result.run.started_at,
        host: &result.run.host.hostname,
        counts: Counts {
            tests: result.thresholds.len()
                + checks.len()
                + findings.len()
                + served.iter().count()
                + 1
                + interrupted,
            failures: failed + inconsistent + served.iter().filter(|served| !**served).count(),
            errors: undecided + usize::from(is_error(&result.verdict)) + interrupted,
            skipped,
        },
        seconds: result.duration_s,
        properties: properties(result),
        output: text::page(result, &Style { unicode: true, ..Style::PLAIN }),
    };
    suite.written(|out| {
        measurement(out, result);
        if let Some(signal) = result.run.interrupted_by_signal {
            unfinished(out, signal);
        }
        if let Some(served) = served {
            succeeded(out, result, served);
        }
        result.thresholds.iter().for_each(|threshold| case(out, threshold, result.verdict.valid));
        checks.iter().for_each(|check| stored(out, check));
        findings.iter().for_each(|finding| found(out, finding));
    })
}

/// A suite but for its test cases.
struct Suite<'a> {
    name: String,
    /// RFC 3339.
    started_at: &'a str,
    host: &'a str,
    counts: Counts,
    seconds: f64,
    properties: Vec<(&'static str, String)>,
    /// The report for people.
    output: String,
}

/// Numbers of test cases, in all and of each kind that did not pass.
struct Counts {
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
}

impl Suite<'_> {
    /// The report of one suite, whose test cases `cases` writes.
    fn written(&self, cases: impl FnOnce(&mut String)) -> String {
        let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
        let Counts { tests, failures, errors, skipped } = self.counts;
        // Without its milliseconds and zone: the schema knows neither.
        let started = self.started_at.get(..19).unwrap_or(self.started_at);
        let attributes = [
            ("package", CLASS.to_owned()),
            ("id", "0".to_owned()),
            ("name", self.name.clone()),
            ("timestamp", started.to_owned()),
            ("hostname", if self.host.is_empty() { "unknown" } else { self.host }.to_owned()),
            ("tests", tests.to_string()),
            ("failures", failures.to_string()),
            ("errors", errors.to_string()),
            ("skipped", skipped.to_string()),
            ("time", format!("{:.3}", self.seconds)),
        ];
        line(&mut out, 1, &open("testsuite", &attributes));
        line(&mut out, 2, "<properties>");
        for (name, value) in &self.properties {
            let attributes = [("name", (*name).to_owned()), ("value", value.clone())];
            line(&mut out, 3, &empty("property", &attributes));
        }
        line(&mut out, 2, "</properties>");
        cases(&mut out);
        line(&mut out, 2, &format!("<system-out>{}</system-out>", data(&self.output)));
        // The schema of Ant's reports wants both.
        line(&mut out, 2, "<system-err></system-err>");
        line(&mut out, 1, "</testsuite>");
        out.push_str("</testsuites>\n");
        out
    }
}

/// Returns the name of the suite: that of the run, else the URLs of the targets, else their authorities.
fn suite(result: &RunResult) -> String {
    if let Some(name) = &result.run.name {
        return name.clone();
    }
    let urls: Vec<&str> =
        result.run.targets.iter().flat_map(|target| target.urls.iter().map(String::as_str)).collect();
    let authorities = || result.run.targets.iter().map(|target| target.authority.as_str()).collect();
    let names: Vec<&str> = if urls.is_empty() { authorities() } else { urls };
    if names.is_empty() { CLASS.to_owned() } else { names.join(", ") }
}

fn properties(result: &RunResult) -> Vec<(&'static str, String)> {
    let (run, verdict) = (&result.run, &result.verdict);
    vec![
        ("outcome", verdict.headline()),
        ("measurement", verdict.validity()),
        ("tool", format!("{} {}", result.tool.name, result.tool.version)),
        ("run", run.id.clone()),
        ("seed", run.seed.to_string()),
        ("plan", run.plan_hash.clone()),
        ("model", result.model.description.join("; ")),
        ("command", run.command_line()),
    ]
}

/// Returns `true` if the run shows nothing about the target. Anything that an invalid measurement does show
/// is a failure and not an error. Where thresholds alone are open, that is theirs.
fn is_error(verdict: &VerdictResult) -> bool {
    verdict.outcome == OutcomeResult::NoVerdict && verdict.cause != Some(CauseResult::NotShown)
}

/// That a signal ended a run, which its exit code says, too.
fn unfinished(out: &mut String, signal: i32) {
    let message = format!("interrupted by signal {signal}: these are the figures up to then");
    let about = [("message", message.clone()), ("type", "interrupted".to_owned())];
    line(out, 2, &open("testcase", &attributes("the run went on to its end", "0.000")));
    line(out, 3, &format!("{}{}</error>", open("error", &about), data(&message)));
    line(out, 2, "</testcase>");
}

/// The run itself as a test case.
fn measurement(out: &mut String, result: &RunResult) {
    let attributes = attributes("the measurement is valid", &format!("{:.3}", result.duration_s));
    let verdict = &result.verdict;
    if !is_error(verdict) && verdict.valid {
        return line(out, 2, &empty("testcase", &attributes));
    }
    line(out, 2, &open("testcase", &attributes));
    if !is_error(verdict) {
        let message = format!("{}; the failures do not depend on the times", verdict.validity());
        line(out, 3, &empty("skipped", &[("message", message)]));
        return line(out, 2, "</testcase>");
    }
    let evidence = verdict.evidence.iter().map(|finding| {
        let hint = if finding.hint.is_empty() { "" } else { "\nhint: " };
        format!("{}: {}{hint}{}", finding.code, finding.evidence, finding.hint)
    });
    let lines: Vec<String> = [verdict.headline(), verdict.validity()].into_iter().chain(evidence).collect();
    let kind = verdict.cause.map_or("invalid", CauseResult::name);
    let reasons = verdict.invalid_reasons.join(", ");
    let message = [verdict.headline(), reasons].into_iter().filter(|part| !part.is_empty());
    let message = message.collect::<Vec<_>>().join(": ");
    let attributes = [("message", message), ("type", kind.to_owned())];
    let text = format!("{}{}</error>", open("error", &attributes), data(&lines.join("\n")));
    line(out, 3, &text);
    line(out, 2, "</testcase>");
}

/// Returns `true` if requests succeeded to the end; `None` where thresholds alone say it, or nothing can be
/// said.
fn served(result: &RunResult) -> Option<bool> {
    let failed = cause_of_no_service(result).is_some();
    let asked = (result.thresholds.is_empty() || failed) && !is_error(&result.verdict);
    asked.then_some(!failed)
}

/// The cause of a run that failed for want of answers, whatever its thresholds are.
fn cause_of_no_service(result: &RunResult) -> Option<CauseResult> {
    let is_one =
        |cause: &CauseResult| matches!(cause, CauseResult::NothingSucceeded | CauseResult::StoppedAnswering);
    result.verdict.cause.filter(is_one)
}

fn succeeded(out: &mut String, result: &RunResult, served: bool) {
    let attributes = attributes("requests succeed", "0");
    if served {
        return line(out, 2, &empty("testcase", &attributes));
    }
    let summary = result.verdict.summary.clone();
    line(out, 2, &open("testcase", &attributes));
    let text = data(&summary);
    let kind = cause_of_no_service(result).unwrap_or(CauseResult::NothingSucceeded);
    let attributes = [("message", summary), ("type", kind.name().to_owned())];
    line(out, 3, &format!("{}{text}</failure>", open("failure", &attributes)));
    line(out, 2, "</testcase>");
}

/// Writes a check that the store has the records that it acknowledged. Its result does not depend on how well
/// the times were measured.
fn stored(out: &mut String, check: &ReconciliationCheck) {
    let attributes = attributes(&format!("the store has what it acknowledged: {}", check.tables), "0");
    if check.is_consistent() {
        return line(out, 2, &empty("testcase", &attributes));
    }
    let seen = said(check);
    line(out, 2, &open("testcase", &attributes));
    let text = data(&format!("{}: {seen}", check.tables));
    let attributes = [("message", seen), ("type", "inconsistent".to_owned())];
    line(out, 3, &format!("{}{text}</failure>", open("failure", &attributes)));
    line(out, 2, "</testcase>");
}

/// Writes the finding of a check of a cluster.
fn found(out: &mut String, finding: &ConsistencyFinding) {
    let attributes =
        attributes(&format!("the cluster: {}", finding.check), &format!("{:.3}", finding.took_s));
    if finding.passed {
        return line(out, 2, &empty("testcase", &attributes));
    }
    line(out, 2, &open("testcase", &attributes));
    let text = data(&[&[finding.said.clone()][..], &finding.evidence].concat().join("\n"));
    let attributes = [("message", finding.said.clone()), ("type", "inconsistent".to_owned())];
    line(out, 3, &format!("{}{text}</failure>", open("failure", &attributes)));
    line(out, 2, "</testcase>");
}

/// Writes one threshold as a test case, of a measurement that is valid or not.
fn case(out: &mut String, threshold: &ThresholdOutcome, is_valid: bool) {
    let attributes = attributes(&threshold.heading(), "0");
    let seen = seen(threshold);
    let written = |what: &str, kind: &str| {
        let text = data(&format!("{}\n{seen}", threshold.heading()));
        let attributes = [("message", seen.clone()), ("type", kind.to_owned())];
        format!("{}{text}</{what}>", open(what, &attributes))
    };
    let inner = match threshold.standing() {
        Standing::Holds => return line(out, 2, &empty("testcase", &attributes)),
        Standing::Fails => written("failure", "threshold"),
        Standing::NotShown if is_valid => written("error", CauseResult::NotShown.name()),
        Standing::NotShown | Standing::NotJudged => {
            empty("skipped", &[("message", format!("an invalid run proves nothing about it; {seen}"))])
        }
    };
    line(out, 2, &open("testcase", &attributes));
    line(out, 3, &inner);
    line(out, 2, "</testcase>");
}

fn attributes(name: &str, time: &str) -> [(&'static str, String); 3] {
    [("name", name.to_owned()), ("classname", CLASS.to_owned()), ("time", time.to_owned())]
}

/// Returns the observed value of a threshold, its reason and its failed windows, in words.
fn seen(threshold: &ThresholdOutcome) -> String {
    let reason = threshold.unreached.as_ref().or(threshold.reason.as_ref());
    let observed = threshold.observed.as_ref().map(|observed| observed.text.clone());
    let observed = observed_words(observed, threshold.series.as_ref());
    let mut seen = match (observed, reason) {
        (Some(observed), Some(reason)) => format!("observed {observed}, {reason}"),
        (Some(observed), None) => format!("observed {observed}"),
        (None, Some(reason)) => reason.clone(),
        (None, None) => "nothing observed".to_owned(),
    };
    if let Some(windows) = threshold.windows.filter(|windows| windows.failed > 0) {
        // Writing to a string cannot fail.
        let _ = write!(seen, "; in {} of {} windows", windows.failed, windows.judged);
    }
    seen
}

fn line(out: &mut String, depth: usize, text: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{:width$}{text}", "", width = depth * 2);
}

fn open(name: &str, attributes: &[(&str, String)]) -> String {
    format!("<{name}{}>", written(attributes))
}

fn empty(name: &str, attributes: &[(&str, String)]) -> String {
    format!("<{name}{}/>", written(attributes))
}

fn written(attributes: &[(&str, String)]) -> String {
    attributes.iter().map(|(name, value)| format!(" {name}=\"{}\"", escape::xml(value))).collect()
}

/// Text between tags, as a section of character data: some readers lose references there.
fn data(text: &str) -> String {
    let text: String =
        text.chars().map(|c| if is_xml(c) { c } else { char::REPLACEMENT_CHARACTER }).collect();
    format!("<![CDATA[{}]]>", text.replace("]]>", "]]]]><![CDATA[>"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_cannot_have_is_replaced() {
        assert_eq!(data("a<b]]>\x1b\n"), "<![CDATA[a<b]]]]><![CDATA[>\u{fffd}\n]]>");
    }
}
