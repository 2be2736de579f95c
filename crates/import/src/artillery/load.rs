//! The load over time: phases of arrivals.

use plimsoll_document::{Field, PhaseSpec};
use serde_json::Value;

use super::{Importer, is_extension, plain, time};
use crate::amount::{self, Ratio};
use crate::draft::text;
use crate::flow;
use crate::names::Titles;
use crate::source::Object;

/// The stage in which a rate steps to where a ramp begins, in nanoseconds: the shortest that plans write
/// well.
const STEP: u64 = 1_000_000;

/// The course of the rate in a phase.
enum Course {
    /// One rate all the time.
    Rate(Ratio),
    /// From one to the other.
    Ramp(Ratio, Ratio),
}

impl Importer<'_> {
    pub(super) fn phases(&mut self, config: &mut Object<'_>) {
        let mut phases: Vec<(PhaseSpec, bool)> = Vec::new();
        let mut titles = Titles::default();
        // The rate at the end of the phase before.
        let mut level: Option<Ratio> = None;
        for mut phase in config.objects("phases", &mut self.findings) {
            let name = phase.value("name").map(plain).filter(|name| !name.trim().is_empty());
            let drafted = self.phase(&mut phase, level);
            phase.rest(&mut self.findings, is_extension);
            let Some((mut spec, end)) = drafted else { continue };
            level = Some(end);
            let is_named = name.is_some();
            let otherwise = format!("phase {}", phases.len() + 1);
            spec.name = text(titles.take(&flow::title(name.as_deref().unwrap_or_default(), &otherwise)));
            phases.push((spec, is_named));
        }
        match phases.as_slice() {
            [] => {
                if !self.findings.has_problems() {
                    let becomes = "no phase has a number of users: give --rate and --duration";
                    self.findings.note(config.place("phases"), "", becomes);
                }
            }
            // A single one needs no name.
            [(only, false)] => {
                self.settings.rate = only.rate.clone();
                self.settings.stages = only.stages.clone();
                self.settings.duration = only.duration.clone();
            }
            _ => self.document.phases = phases.into_iter().map(|(phase, _)| Field::new(phase)).collect(),
        }
    }

    /// One phase, and the rate at its end.
    fn phase(&mut self, phase: &mut Object<'_>, level: Option<Ratio>) -> Option<(PhaseSpec, Ratio)> {
        phase.skip(&["name"]);
        if phase.value("maxVusers").is_some() {
            let becomes = "the number of users at a time is not limited; `connections` with `overload: \
                           drop` limits what is \
                           open at once";
            let said = phase.members().get("maxVusers").map(plain).unwrap_or_default();
            self.findings.note(phase.place("maxVusers"), &said, becomes);
        }
        let zero = Ratio::new(0, 1)?;
        if let Some(pause) = phase.value("pause") {
            let nanos = self.time(pause, &phase.place("pause"))?;
            return Some((course(&Course::Rate(zero), nanos, level), zero));
        }
        let Some(duration) = phase.value("duration") else {
            self.findings.hinted(&phase.at, "the phase has no `duration`", "write `duration: 60`");
            return None;
        };
        let nanos = self.time(duration, &phase.place("duration"))?;
        let rate = self.rate(phase, "arrivalRate");
        let to = self.rate(phase, "rampTo");
        let count = self.rate(phase, "arrivalCount");
        let (course_, end) = match (rate, to, count) {
            (Some(from), Some(to), None) => (Course::Ramp(from, to), to),
            (Some(rate), None, None) => (Course::Rate(rate), rate),
            (None, Some(to), None) => (Course::Ramp(level.unwrap_or(zero), to), to),
            (None, None, Some(count)) => {
                let rate = count.divided_by(Ratio::new(u128::from(nanos), 1_000_000_000)?)?;
                (Course::Rate(rate), rate)
            }
            _ => {
                let hint = "a phase has `arrivalRate`, perhaps with `rampTo`, or `arrivalCount`, or `pause`";
                self.findings.hinted(&phase.at, "the phase has no number of users", hint);
                return None;
            }
        };
        Some((course(&course_, nanos, level), end))
    }

    fn time(&mut self, value: &Value, at: &str) -> Option<u64> {
        let nanos = time(value).filter(|nanos| *nanos > STEP);
        if nanos.is_none() {
            let message = format!("`{}` is not a length of a phase", crate::source::shown(value));
            self.findings.hinted(at, message, "write seconds, or a text such as 5m");
        }
        nanos
    }

    /// A number, also where it is written as a text.
    fn rate(&mut self, phase: &mut Object<'_>, key: &'static str) -> Option<Ratio> {
        let value = phase.value(key)?;
        let rate = Ratio::decimal(&plain(value));
        if rate.is_none() {
            let message = format!("`{}` is not a number from 0", crate::source::shown(value));
            self.findings.hinted(&phase.place(key), message, "write the number itself");
        }
        rate
    }
}

/// A phase of this length behind one that ends at `level`.
fn course(course: &Course, nanos: u64, level: Option<Ratio>) -> PhaseSpec {
    let mut spec = PhaseSpec::default();
    let length = amount::time(nanos);
    let at = |rate: &Ratio| rate.rate();
    // The very first stage holds its rate anyway; later ones ramp unless they are marked as steps.
    let step = if level.is_none() { "@" } else { "@=" };
    match course {
        Course::Rate(rate) if rate.is_zero() => spec.stages = text(format!("{length}{step}0")),
        Course::Rate(rate) => {
            spec.rate = text(at(rate));
            spec.duration = text(length);
        }
        Course::Ramp(from, to) if level == Some(*from) => spec.stages = text(format!("{length}@{}", at(to))),
        Course::Ramp(from, to) => {
            let first = amount::time(STEP);
            let rest = amount::time(nanos - STEP);
            spec.stages = text(format!("{first}{step}{},{rest}@{}", at(from), at(to)));
        }
    }
    spec
}
