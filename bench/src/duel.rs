//! Two tools against one server, run in pairs whose order alternates.

use std::fmt::{self, Display};

use crate::failure::Result;
use crate::report::{Finding, Section, cell, invalid_runs, spread, verdict};
use crate::run::{Load, Run, Tool, run};
use crate::server::{Server, Serves};
use crate::session::Session;
use crate::statistic::{Spread, paired_ratios};

/// Length of the run of each tool that comes before the pairs and is not counted, in seconds. Long enough for
/// wrk to open 10,000 connections and to get an answer.
const WARM_UP_S: u32 = 3;

/// Share of a core in the hands of others from which on a run counts as disturbed: well above the few percent
/// that interrupts and the counting in ticks make of nothing.
const DISTURBED_SHARE: f64 = 0.1;

/// Two tools against one server.
#[derive(Clone, Debug)]
pub(crate) struct Duel {
    /// Short name for tables.
    pub(crate) case: String,
    /// Title of the section in the report.
    pub(crate) title: String,
    pub(crate) serves: Serves,
    pub(crate) subject: Load,
    pub(crate) peer: Load,
    pub(crate) limits: Vec<Limit>,
}

/// Limit of a paired ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limit {
    figure: Figure,
    bound: Bound,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    /// The median is at most this.
    AtMost(f64),
    /// The median is at least this, and no pair is below 1.
    AtLeast(f64),
}

impl Limit {
    /// The median of the ratios is at most `ratio`.
    pub(crate) fn at_most(figure: Figure, ratio: f64) -> Self {
        Self { figure, bound: Bound::AtMost(ratio) }
    }

    /// The median of the ratios is at least `ratio`, and none is below 1.
    pub(crate) fn at_least(figure: Figure, ratio: f64) -> Self {
        Self { figure, bound: Bound::AtLeast(ratio) }
    }
}

impl Bound {
    fn is_met(self, ratio: Spread) -> bool {
        match self {
            Self::AtMost(limit) => ratio.median <= limit,
            Self::AtLeast(limit) => ratio.median >= limit && ratio.min >= 1.0,
        }
    }
}

impl Display for Bound {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(limit) => write!(out, "≤ {limit:.2}"),
            Self::AtLeast(limit) => write!(out, "≥ {limit:.2}, never < 1"),
        }
    }
}

/// A figure that is compared between the two tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Figure {
    Total,
    User,
    Sys,
    Rate,
    Peak,
}

impl Figure {
    const ALL: [Self; 5] = [Self::Total, Self::User, Self::Sys, Self::Rate, Self::Peak];

    fn name(self) -> &'static str {
        match self {
            Self::Total => "CPU µs per request",
            Self::User => "user µs per request",
            Self::Sys => "sys µs per request",
            Self::Rate => "requests/s",
            Self::Peak => "peak RSS, MiB",
        }
    }

    fn places(self) -> usize {
        match self {
            Self::Rate => 0,
            Self::Peak => 1,
            Self::Total | Self::User | Self::Sys => 2,
        }
    }

    fn of(self, run: &Run) -> f64 {
        match self {
            Self::Total => run.total_us(),
            Self::User => run.user_us(),
            Self::Sys => run.sys_us(),
            Self::Rate => run.reading.per_s,
            Self::Peak => run.peak_mib(),
        }
    }
}

/// The runs of both sides, in the order of their pairs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pairs {
    pub(crate) subject: Vec<Run>,
    pub(crate) peer: Vec<Run>,
}

impl Duel {
    /// Carries it out.
    pub(crate) fn fight(&self, session: &Session) -> Result<(Section, Pairs)> {
        // Before anything is started: a missing tool should not cost a run.
        self.peer.tool.program(session)?;
        let server = Server::start(session, &self.serves)?;
        let seconds = session.options.seconds;
        for load in [&self.subject, &self.peer] {
            run(session, &server, load, WARM_UP_S, &[])?;
        }
        let mut pairs = Pairs::default();
        for pair in 0..session.options.pairs {
            let subject_first = pair % 2 == 0;
            let first = if subject_first { &self.subject } else { &self.peer };
            let second = if subject_first { &self.peer } else { &self.subject };
            let first = run(session, &server, first, seconds, &[])?;
            let second = run(session, &server, second, seconds, &[])?;
            let (subject, peer) = if subject_first { (first, second) } else { (second, first) };
            pairs.subject.push(subject);
            pairs.peer.push(peer);
        }
        let mut section = Section::titled(&self.title);
        let line = |load: &Load| {
            load.pinned(session, &server, seconds).map(|pinned| pinned.line(session.directory()))
        };
        section.commands(&[server.line.clone(), line(&self.subject)?, line(&self.peer)?]);
        self.tabulate(&pairs, &mut section);
        Ok((section, pairs))
    }

    fn tabulate(&self, pairs: &Pairs, section: &mut Section) {
        let mut rows = Vec::new();
        for figure in Figure::ALL {
            let [subject, peer] = [&pairs.subject, &pairs.peer]
                .map(|runs| runs.iter().map(|run| figure.of(run)).collect::<Vec<_>>());
            let ratio = Spread::of(paired_ratios(&subject, &peer));
            let finding = self.judge(figure, ratio);
            rows.push(vec![
                figure.name().to_owned(),
                cell(Spread::of(subject), figure.places()),
                cell(Spread::of(peer), figure.places()),
                cell(ratio, 2),
                finding.as_ref().map(|finding| finding.limit.clone()).unwrap_or_default(),
                finding.as_ref().map(|finding| verdict(finding.met).to_owned()).unwrap_or_default(),
            ]);
            section.findings.extend(finding);
        }
        let share = |name: &str, figure: fn(&Run) -> f64| {
            let [subject, peer] = [&pairs.subject, &pairs.peer].map(|runs| cell(spread(runs, figure), 0));
            vec![name.to_owned(), subject, peer, String::new(), String::new(), String::new()]
        };
        rows.push(share("server's use of its core, %", |run| run.server_share * 100.0));
        rows.push(share("others on the tool's core, %", |run| run.foreign_share * 100.0));
        rows.push(share("others on the server's core, %", |run| run.server_foreign_share * 100.0));
        let (subject, peer) = (self.subject.tool.name(), self.peer.tool.name());
        section.table(&["", subject, peer, "ratio in pairs", "limit", ""], &rows);
        let disturbed = pairs.subject.iter().chain(&pairs.peer).filter(|run| is_disturbed(run)).count();
        if disturbed > 0 {
            section.note(format!(
                "**Disturbed**: in {disturbed} of {} runs others had more than {:.0} % of a core. Figures to rely \
                 on need a quiet machine.",
                pairs.subject.len() + pairs.peer.len(),
                DISTURBED_SHARE * 100.0
            ));
        }
        if let Some(invalid) = invalid_runs(&pairs.subject) {
            section.note(format!("Plimsoll's verdict on itself was `invalid` in {invalid}."));
        }
        if let Some(run) = pairs.subject.first().filter(|_| self.subject.tool == Tool::Plimsoll) {
            section.note(format!("Plimsoll's backend: {}.", run.reading.detail.backend));
        }
    }

    /// Judges whether the median of the paired ratios is within its limit. `None` if there is no limit or no
    /// ratio.
    fn judge(&self, figure: Figure, ratio: Option<Spread>) -> Option<Finding> {
        let limit = self.limits.iter().find(|limit| limit.figure == figure)?;
        let ratio = ratio?;
        Some(Finding {
            case: self.case.clone(),
            figure: format!("{}, ratio to {}", figure.name(), self.peer.tool.name()),
            measured: format!("{ratio:.2}"),
            limit: limit.bound.to_string(),
            met: limit.bound.is_met(ratio),
        })
    }
}

fn is_disturbed(run: &Run) -> bool {
    run.foreign_share > DISTURBED_SHARE || run.server_foreign_share > DISTURBED_SHARE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Peer;
    use crate::reading::Reading;

    fn measured(completed: u64, user_us: f64, sys_us: f64) -> Run {
        let reading = Reading { completed, per_s: completed as f64, ..Reading::default() };
        Run::undisturbed(user_us, sys_us, reading)
    }

    fn duel(at_most: f64) -> Duel {
        Duel {
            case: "h1 -c 64".to_owned(),
            title: "title".to_owned(),
            serves: Serves::Nginx,
            subject: Load::new::<&str>(Tool::Plimsoll, &[]),
            peer: Load::new::<&str>(Tool::Peer(Peer::Wrk), &[]),
            limits: vec![Limit::at_most(Figure::Total, at_most)],
        }
    }

    #[test]
    fn figures_are_per_completed_request_and_ratios_per_pair() {
        // 4 against 8 µs; then, on a disturbed machine, 9 against 12: the median ratio is midway.
        let pairs = Pairs {
            subject: vec![measured(1000, 1_000.0, 3_000.0), measured(1000, 2_000.0, 7_000.0)],
            peer: vec![measured(500, 500.0, 3_500.0), measured(500, 1_000.0, 5_000.0)],
        };
        let mut section = Section::default();
        duel(0.62).tabulate(&pairs, &mut section);
        let row =
            "| CPU µs per request | 6.50 (4.00..9.00) | 10.00 (8.00..12.00) | 0.62 (0.50..0.75) | ≤ 0.62 | ";
        assert!(section.text.contains(row), "{}", section.text);
        assert!(
            section.text.contains("| requests/s | 1000 (1000..1000) | 500 (500..500) | 2.00 (2.00..2.00) |")
        );
        assert!(section.text.contains("| server's use of its core, % | 95 (95..95) | 95 (95..95) |"));
        // 0.625 is above 0.62 although it is printed as 0.62: judged before rounding.
        assert_eq!(section.findings.iter().map(|finding| finding.met).collect::<Vec<_>>(), [false]);
    }

    #[test]
    fn a_disturbed_run_is_called_so() {
        let quiet = measured(1, 1.0, 1.0);
        let mut pairs = Pairs { subject: vec![quiet.clone()], peer: vec![quiet] };
        let mut section = Section::default();
        duel(1.0).tabulate(&pairs, &mut section);
        assert!(!section.text.contains("Disturbed"), "{}", section.text);
        pairs.peer[0].server_foreign_share = 0.11;
        duel(1.0).tabulate(&pairs, &mut section);
        assert!(
            section.text.contains("in 1 of 2 runs others had more than 10 % of a core"),
            "{}",
            section.text
        );
    }

    #[test]
    fn a_limit_is_met_at_its_value() {
        let ratio = Spread::of([0.75]);
        assert!(duel(0.75).judge(Figure::Total, ratio).is_some_and(|finding| finding.met));
        assert!(duel(0.74).judge(Figure::Total, ratio).is_some_and(|finding| !finding.met));
        assert_eq!(duel(0.75).judge(Figure::User, ratio), None);
    }

    #[test]
    fn a_rate_has_to_be_the_higher_one_in_every_pair() {
        let mut duel = duel(1.0);
        duel.limits = vec![Limit::at_least(Figure::Rate, 1.25)];
        let judge = |ratios: [f64; 3]| duel.judge(Figure::Rate, Spread::of(ratios));
        assert!(judge([1.0, 1.25, 1.5]).is_some_and(|finding| finding.met));
        assert!(judge([0.99, 1.3, 1.5]).is_some_and(|finding| !finding.met));
        let short = judge([1.1, 1.2, 1.3]);
        assert!(short.is_some_and(|finding| !finding.met && finding.limit == "≥ 1.25, never < 1"));
    }
}
