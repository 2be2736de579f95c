//! The report on a search, or on a sweep, as data: the parts that text, Markdown and the page of HTML are
//! written from.

use plimsoll_core::figure;

use super::origin::machine;
use super::{Fact, Line, Shown, Span, Table, seconds};
use crate::contract::capacity::{CapacityResult, LevelResult, SearchResult, TrialResult};
use crate::contract::result::{Finding, OutcomeResult};
use crate::contract::searched::Searched;
use crate::contract::sweep::{StreamLevel, SweepLevel, SweepResult, UslResult};
use crate::contract::trial::TrialFigures;
use crate::render::layout::Emphasis;

/// Requests that are due in a trial, below which it is no wonder if there are too few.
const FEW: f64 = 5.0;

/// Everything that is reported on a search or a sweep.
pub(crate) struct SearchDocument {
    /// Name and version of the program.
    pub(crate) tool: String,
    /// `search 17f…` or `sweep 17f…`.
    pub(crate) identity: String,
    /// Name of the search or sweep, or what it is about.
    pub(crate) title: String,
    pub(crate) started_at: String,
    /// How well its question was answered.
    pub(crate) emphasis: Emphasis,
    /// The answer in a few words.
    pub(crate) answer: String,
    /// A sentence about it; empty for a sweep.
    pub(crate) statement: String,
    /// What was asked for, of whom, and when.
    pub(crate) facts: Vec<Fact>,
    pub(crate) notes: Vec<String>,
    /// Findings about the generator in its trials, each kind once.
    pub(crate) findings: Vec<Finding>,
    /// What follows from the levels together.
    pub(crate) law: Vec<Fact>,
    /// The curve of load against response time.
    pub(crate) levels: Table,
    /// Rates, and the reasons for their findings: a column of the curve, for which text has no room.
    pub(crate) reasons: Vec<(String, String)>,
    /// Every trial in its order; none of a sweep, whose levels they are.
    pub(crate) trials: Table,
    /// The machine and the program.
    pub(crate) origin: Vec<Fact>,
    pub(crate) command: String,
}

impl SearchDocument {
    pub(crate) fn new(searched: &Searched) -> Self {
        let (circumstances, tool) = (searched.circumstances(), searched.tool());
        let tool = format!("{} {}", tool.name, tool.version);
        let common = Self {
            identity: String::new(),
            title: String::new(),
            started_at: circumstances.started_at.clone(),
            emphasis: emphasis(searched),
            answer: searched.headline(),
            statement: String::new(),
            facts: Vec::new(),
            notes: Vec::new(),
            findings: findings(searched),
            law: Vec::new(),
            levels: Table::default(),
            reasons: Vec::new(),
            trials: Table::default(),
            origin: machine(&circumstances.host, &tool),
            command: circumstances.command_line(),
            tool,
        };
        match searched {
            Searched::Capacity(result) => Self {
                identity: format!("search {}", circumstances.id),
                title: title(circumstances, "Capacity of"),
                statement: result.capacity.statement.clone(),
                facts: asked(result).into_iter().chain(facts("search", circumstances)).collect(),
                notes: result.capacity.notes.clone(),
                levels: rates(result),
                reasons: reasons(result),
                trials: trials(result),
                ..common
            },
            Searched::Sweep(result) => Self {
                identity: format!("sweep {}", circumstances.id),
                title: title(circumstances, &format!("Sweep of {} on", result.setting)),
                facts: facts("sweep", circumstances),
                law: law(result),
                levels: levels(result),
                ..common
            },
        }
    }
}

fn title(circumstances: &SearchResult, about: &str) -> String {
    circumstances.name.clone().unwrap_or_else(|| format!("{about} {}", circumstances.target()))
}

/// An interval whose lower end was not confirmed, or that has one end only, is worth less.
fn emphasis(searched: &Searched) -> Emphasis {
    match (searched, searched.outcome()) {
        (_, OutcomeResult::Fail) => Emphasis::Bad,
        (_, OutcomeResult::NoVerdict) => Emphasis::Doubtful,
        (Searched::Capacity(result), _) if !result.capacity.confirmed => Emphasis::Doubtful,
        (Searched::Capacity(_), _) => Emphasis::Good,
        (Searched::Sweep(_), OutcomeResult::Pass) => Emphasis::Good,
        (Searched::Sweep(_), OutcomeResult::Done) => Emphasis::Plain,
    }
}

/// The rate that was asked for, with emphasis on whether it is carried.
fn asked(result: &CapacityResult) -> Option<Fact> {
    let emphasis = match result.capacity.outcome() {
        OutcomeResult::Pass => Emphasis::Good,
        OutcomeResult::Fail => Emphasis::Bad,
        OutcomeResult::Done | OutcomeResult::NoVerdict => Emphasis::Doubtful,
    };
    Some(Fact::new("asked for", Line::from(Span::emphasised(emphasis, result.capacity.asked()?))))
}

fn facts(label: &'static str, circumstances: &SearchResult) -> Vec<Fact> {
    let SearchResult { slo, load, targets, started_at, seed, plan_hash, duration_s, host, .. } =
        circumstances;
    let mut facts = Vec::new();
    if !targets.is_empty() {
        facts.push(Fact::new("target", targets.join(", ")));
    }
    if !slo.is_empty() {
        facts.push(Fact::new("slo", slo.join(" and ")));
    }
    facts.push(Fact::new("load", load.as_str()));
    let on = format!("on {} ({} CPUs, {})", host.hostname, host.cpus, host.kernel);
    let when = format!("{started_at}, seed {seed}, plan {plan_hash}, {duration_s:.0} s, {on}");
    facts.push(Fact::new(label, when));
    facts
}

/// The findings of all trials: of each kind the first, and in how many trials there was one. What is found
/// where a rate breaks is of a server that is too slow for it.
fn findings(searched: &Searched) -> Vec<Finding> {
    let figures: Vec<(&TrialFigures, bool, bool)> = match searched {
        Searched::Capacity(result) => result.trials.iter().map(of_trial).collect(),
        Searched::Sweep(result) => {
            let breaks = |level: &SweepLevel| level.finding.as_deref() == Some("breaks");
            result.levels.iter().map(|level| (&level.figures, breaks(level), false)).collect()
        }
    };
    let mut found: Vec<(Finding, usize)> = Vec::new();
    let of_others = figures.iter().filter(|(_, breaks, _)| !breaks).flat_map(|(figures, _, is_low)| {
        // The length of a trial is no flag of the person who reads that it is too short.
        figures.findings.iter().filter(move |finding| !(*is_low && finding.code == "too_few_samples"))
    });
    for finding in of_others {
        match found.iter_mut().find(|(known, _)| known.code == finding.code) {
            Some((_, times)) => *times += 1,
            None => found.push((finding.clone(), 1)),
        }
    }
    let of = figures.len();
    let told = |(finding, times): (Finding, usize)| {
        let first = if times > 1 { ", first" } else { "" };
        let evidence = format!("in {times} of {of} trials{first}: {}", finding.evidence);
        Finding { evidence, ..finding }
    };
    found.into_iter().map(told).collect()
}

/// The figures of a trial, whether its rate breaks, and whether the search chose so low a rate that hardly a
/// request was due.
fn of_trial(trial: &TrialResult) -> (&TrialFigures, bool, bool) {
    let figures = &trial.figures;
    (figures, trial.finding == "breaks", trial.rate_per_s * figures.measured_s < FEW)
}

/// The finding of a level in words.
fn found(finding: &str) -> Line {
    let emphasis = match finding {
        "holds" => Emphasis::Good,
        "breaks" => Emphasis::Bad,
        "unclear" | "not_applied" => Emphasis::Doubtful,
        _ => Emphasis::Plain,
    };
    Span::emphasised(emphasis, finding.replace('_', " ")).into()
}

fn cells(figures: Option<&TrialFigures>) -> Vec<Line> {
    let cells = figures.map_or_else(|| vec![String::new(); TrialFigures::HEADS.len()], TrialFigures::cells);
    cells.into_iter().map(Line::from).collect()
}

fn everywhere<'a>(heads: impl IntoIterator<Item = &'a str>) -> impl Iterator<Item = (&'a str, Shown)> {
    heads.into_iter().map(|head| (head, Shown::Everywhere))
}

/// The first columns of levels: the value that was tried, and its finding, the label of a row of text.
fn named(value: &str, has_findings: bool) -> impl Iterator<Item = (&str, Shown)> {
    let beside = if has_findings { Shown::MarkdownAndPage } else { Shown::Nowhere };
    [("", Shown::Text), (value, Shown::Everywhere), ("finding", beside)].into_iter()
}

/// The rates of a search, each with the figures of the trial that says most about it. There is no room for
/// the shares in text.
fn rates(result: &CapacityResult) -> Table {
    let bad: Vec<String> = result.search.slo.iter().map(|slo| format!("breaking {slo}")).collect();
    let columns = named("rate/s", true);
    let columns = columns.chain(everywhere(TrialFigures::HEADS)).chain(everywhere(["measured"]));
    let columns = columns.chain(bad.iter().map(|head| (head.as_str(), Shown::MarkdownAndPage)));
    let has_reasons = result.levels.iter().any(|level| why(result, level).is_some());
    let columns = columns.chain(has_reasons.then_some(("why", Shown::MarkdownAndPage)));
    let row = |level: &LevelResult| {
        let finding = found(&level.finding);
        let mut row = vec![finding.clone(), figure::per_second(level.rate_per_s).into(), finding];
        let longest = result.longest_at(level).map(|trial| &trial.figures);
        row.extend(cells(longest));
        // The figures are those of one trial.
        let all = seconds(level.measured_s);
        let of_one = longest.filter(|one| one.measured_s < level.measured_s);
        row.push(of_one.map_or(all.clone(), |one| format!("{} of {all}", seconds(one.measured_s))).into());
        let is_known = !level.is_overloaded();
        row.extend(
            level.shares.iter().map(|of_slo| if is_known { of_slo.in_words().into() } else { "-".into() }),
        );
        row.extend(has_reasons.then(|| why(result, level).unwrap_or_default().into()));
        row
    };
    Table::new(
        "Rates that were tried, with the figures of the longest trial of each",
        columns,
        result.levels.iter().map(row),
    )
}

/// The reason for the finding of a level, and for a percentile that its figures do not have.
fn why(result: &CapacityResult, level: &LevelResult) -> Option<String> {
    let not_shown = result.longest_at(level).and_then(|trial| trial.figures.why_not_shown());
    level.reason.clone().into_iter().chain(not_shown).reduce(|reason, other| format!("{reason}; {other}"))
}

fn reasons(result: &CapacityResult) -> Vec<(String, String)> {
    let rate = |level: &LevelResult| figure::per_second(level.rate_per_s);
    let levels = result.levels.iter();
    levels.filter_map(|level| Some((rate(level), why(result, level)?))).collect()
}

fn trials(result: &CapacityResult) -> Table {
    let heads = ["trial", "at", "rate", "right after", "measured"];
    let heads = heads.into_iter().chain(TrialFigures::HEADS).chain(["its rate then"]);
    let has_reasons = result.trials.iter().any(|trial| trial.figures.why_not_shown().is_some());
    let heads = heads.chain(has_reasons.then_some("why"));
    let columns = heads.map(|head| (head, Shown::MarkdownAndPage));
    let row = |(number, trial): (usize, &TrialResult)| {
        let after = trial.after_per_s.map(figure::per_second).unwrap_or_default();
        let mut row: Vec<Line> = vec![
            format!("{number} {}", trial.purpose.replace('_', " ")).into(),
            format!("{:.0} s", trial.at_s).into(),
            figure::per_second(trial.rate_per_s).into(),
            after.into(),
            seconds(trial.figures.measured_s).into(),
        ];
        row.extend(cells(Some(&trial.figures)));
        row.push(found(&trial.finding));
        row.extend(has_reasons.then(|| trial.figures.why_not_shown().unwrap_or_default().into()));
        row
    };
    Table::new("Trials in their order", columns, (1..).zip(&result.trials).map(row))
}

/// The levels of a sweep.
fn levels(result: &SweepResult) -> Table {
    let has = |of: fn(&SweepLevel) -> bool| result.levels.iter().any(of);
    let (has_findings, has_records, has_streams) = (
        has(|level| level.finding.is_some()),
        has(|level| level.records_per_s.is_some()),
        has(|level| level.event_streams.is_some()),
    );
    let mut heads = TrialFigures::HEADS.to_vec();
    heads.extend(has_records.then_some("records"));
    heads.extend(has_streams.then_some(StreamLevel::HEADS).into_iter().flatten());
    heads.push("limited by");
    let blank = || vec![String::new(); StreamLevel::HEADS.len()];
    let row = |level: &SweepLevel| {
        let finding = found(level.finding.as_deref().unwrap_or_default());
        let mut row = vec![finding.clone(), level.value.to_string().into(), finding];
        row.extend(cells(Some(&level.figures)));
        let records = || level.records_per_s.map(figure::per_second).unwrap_or_default();
        row.extend(has_records.then(|| records().into()));
        let streams = || level.event_streams.as_ref().map_or_else(blank, StreamLevel::cells);
        row.extend(has_streams.then(streams).into_iter().flatten().map(Line::from));
        row.push(level.figures.limited_by.replace('_', " ").into());
        row
    };
    Table::new(
        "Levels",
        named(&result.setting, has_findings).chain(everywhere(heads)),
        result.levels.iter().map(row),
    )
}

/// The law of scalability that fits the levels, or why there is none.
fn law(result: &SweepResult) -> Vec<Fact> {
    match (&result.usl, &result.usl_missing) {
        (Some(usl), _) => fitted(usl, result),
        (None, Some(why)) => vec![Fact::new("scaling", format!("no law: {why}"))],
        (None, None) => Vec::new(),
    }
}

/// Root mean square distance of the levels from a law from which on its peak is no answer: a plateau has no
/// peak, and the law draws one above it.
const FAR_OFF: f64 = 0.05;

fn fitted(usl: &UslResult, result: &SweepResult) -> Vec<Fact> {
    let line = format!(
        "{} alone; {} of the work is done one at a time, and each pair costs {:.4} % (off by {})",
        figure::per_second(usl.lambda_per_s),
        figure::share(usl.alpha),
        usl.beta * 100.0,
        figure::share(usl.error),
    );
    let law = Fact::new("scaling", line);
    let by_rate = |one: &&SweepLevel, other: &&SweepLevel| {
        one.figures.achieved_per_s.total_cmp(&other.figures.achieved_per_s)
    };
    if usl.error > FAR_OFF
        && let Some(most) = result.levels.iter().max_by(by_rate)
    {
        let line = format!(
            "{} measured, at {} {}; the law is too far off to tell one",
            figure::per_second(most.figures.achieved_per_s),
            most.value,
            result.setting,
        );
        return vec![law, Fact::new("peak", line)];
    }
    let ends = |low: Option<f64>, high: Option<f64>, show: fn(f64) -> String| match (low, high) {
        (Some(low), Some(high)) => format!(" [{}, {}]", show(low), show(high)),
        (Some(low), None) => format!(" (at least {})", show(low)),
        (None, Some(high)) => format!(" (at most {})", show(high)),
        (None, None) => String::new(),
    };
    let Some((concurrency, rate)) = usl.peak_concurrency.zip(usl.peak_per_s) else {
        return vec![law, Fact::new("peak", "by this law throughput never falls")];
    };
    let number: fn(f64) -> String = |value| format!("{value:.1}");
    let line = format!(
        "largest throughput {}{} at {}{} in flight{}",
        figure::per_second(rate),
        ends(usl.peak_per_s_low, usl.peak_per_s_high, figure::per_second),
        number(concurrency),
        ends(usl.peak_concurrency_low, usl.peak_concurrency_high, number),
        if usl.extrapolated { ": extrapolated, beyond what was measured" } else { "" },
    );
    vec![law, Fact::new("peak", line)]
}
