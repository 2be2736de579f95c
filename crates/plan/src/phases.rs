//! The phases of a plan file: each with its own load, and all of them one course of it.

use std::collections::HashSet;

use plimsoll_core::{Nanos, Rate};
use plimsoll_document::{Field, PhaseSpec, Place, Problem, Text};
use plimsoll_metrics::PhaseOutline;
use plimsoll_schedule::{
    Stage, UserStage, parse_duration, parse_rate, parse_stages_after, parse_user_stages_after,
};

use crate::PlanPatch;
use crate::resolve::Resolver;
use crate::users::parse_users;

/// The phases of a run, put together.
pub(crate) struct Phased {
    pub(crate) phases: Vec<PhaseOutline>,
    pub(crate) course: LoadProfile,
    /// Length of the phases that are not measured.
    pub(crate) warmup: Nanos,
    /// The place of the first one.
    pub(crate) place: Option<Place>,
}

/// The load over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LoadProfile {
    /// Open model: rates; those of the warm-up apart.
    Rates { warmup: Vec<Stage>, measured: Vec<Stage> },
    /// Closed model: users.
    Users(Vec<UserStage>),
}

/// The load of one phase.
enum Part {
    Rates(Vec<Stage>),
    Users(Vec<UserStage>),
}

impl Part {
    /// `None` if it is too long.
    fn length(&self) -> Option<Nanos> {
        let add = |sum: u64, length: Nanos| sum.checked_add(length.0);
        let length = match self {
            Self::Rates(stages) => stages.iter().map(|stage| stage.duration).try_fold(0, add),
            Self::Users(stages) => stages.iter().map(|stage| stage.duration).try_fold(0, add),
        };
        length.map(Nanos)
    }
}

impl Phased {
    /// Returns `true` in the open model.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.course, LoadProfile::Rates { .. })
    }
}

/// Phases read so far.
#[derive(Default)]
struct Reading {
    names: HashSet<String>,
    phases: Vec<PhaseOutline>,
    end: Nanos,
    warmup: Nanos,
    /// Rates of the warm-up and of the measured part.
    rates: [Vec<Stage>; 2],
    users: Vec<UserStage>,
    /// The fields that determined the kind of load in the first phase.
    model: Option<&'static str>,
}

impl Reading {
    fn rate(&self) -> Option<Rate> {
        self.rates.iter().rev().find_map(|stages| stages.last()).map(|stage| stage.to)
    }

    fn has_measured(&self) -> bool {
        self.phases.iter().any(|phase| phase.measured)
    }
}

/// Most phases of a plan: each has a part of the report.
const MOST_PHASES: usize = 1_000;

impl Resolver<'_> {
    /// Reads the phases of the plan file, if it has any. `None`: they are wrong.
    pub(crate) fn phases(&mut self, patch: &PlanPatch) -> Option<Option<Phased>> {
        let Some(loaded) = self.document.clone() else { return Some(None) };
        let specs = &loaded.document.phases;
        let Some(first) = specs.first() else { return Some(None) };
        let known = self.problems.len();
        self.refuse_beside_phases(patch, first.place());
        if let Some(first_more) = specs.get(MOST_PHASES) {
            let problem = Problem::new(format!("there are more than {MOST_PHASES} phases"));
            let hint = "write a curve as `stages` of one phase";
            return self.fail(problem.at(first_more.place()).with_hint(hint));
        }
        let mut reading = Reading::default();
        let mut complete = true;
        for field in specs {
            complete &= field.get().and_then(|spec| self.phase(&mut reading, spec, field.place())).is_some();
        }
        if !complete || self.problems.len() > known {
            return None;
        }
        let (place, last) = (first.place(), specs.last().and_then(Field::place));
        if !reading.has_measured() {
            let problem = Problem::new("no phase is measured").at(last);
            return self.fail(problem.with_hint("leave `measured: false` out of the phases that count"));
        }
        let Reading { phases, rates: [warmup, measured], users, warmup: length, .. } = reading;
        let course = if users.is_empty() {
            LoadProfile::Rates { warmup, measured }
        } else {
            LoadProfile::Users(users)
        };
        Some(Some(Phased { phases, course, warmup: length, place }))
    }

    /// Refuses settings that the phases determine.
    fn refuse_beside_phases(&mut self, patch: &PlanPatch, place: Option<Place>) {
        let settings = [
            &patch.rate,
            &patch.rps,
            &patch.stages,
            &patch.users,
            &patch.user_stages,
            &patch.duration,
            &patch.iterations,
            &patch.warmup,
        ];
        for given in settings.into_iter().flatten() {
            let problem = Problem::new(format!("{} cannot be combined with the plan's `phases`", given.by));
            let problem = problem.at(given.place.or(place));
            self.problems.push(problem.with_hint("the phases set the load and its length"));
        }
    }

    /// Adds a phase to those before it.
    fn phase(&mut self, reading: &mut Reading, spec: &PhaseSpec, place: Option<Place>) -> Option<()> {
        let name = self.phase_name(reading, spec, place);
        let part = self.phase_load(reading, spec, place);
        let measured = match &spec.measured {
            Field::Absent => true,
            field => *field.get()?,
        };
        if !measured && reading.has_measured() {
            let problem = Problem::new("a phase that is not measured comes after one that is");
            let hint = "phases with `measured: false` are the warm-up: put them first";
            self.problems.push(problem.at(spec.measured.place()).with_hint(hint));
        }
        let (name, part) = (name?, part?);
        let length = part.length();
        let end = length.and_then(|length| reading.end.0.checked_add(length.0));
        let (Some(length), Some(end)) = (length, end) else {
            return self.fail(Problem::new("the phases are longer than 584 years together").at(place));
        };
        reading.phases.push(PhaseOutline { name, at: reading.end, length, measured });
        reading.end = Nanos(end);
        reading.warmup += if measured { Nanos::ZERO } else { length };
        match part {
            Part::Rates(stages) => reading.rates[usize::from(measured)].extend(stages),
            Part::Users(stages) => reading.users.extend(stages),
        }
        Some(())
    }

    fn phase_name(
        &mut self,
        reading: &mut Reading,
        spec: &PhaseSpec,
        place: Option<Place>,
    ) -> Option<String> {
        let problem = match &spec.name {
            Field::Absent => {
                Problem::new("the phase has no name").with_hint("write `name: warm-up` or the like")
            }
            field => {
                let name = field.get()?.as_str().trim();
                let is_line = !name.chars().any(char::is_control);
                if !name.is_empty() && is_line && reading.names.insert(name.to_owned()) {
                    return Some(name.to_owned());
                }
                let message = match name {
                    "" => "the name is empty".to_owned(),
                    _ if !is_line => format!("`{}` has more than one line", name.escape_debug()),
                    _ => format!("two phases are called `{}`", name.escape_debug()),
                };
                Problem::new(message).with_hint("reports refer to phases by name")
            }
        };
        self.fail(problem.at(spec.name.place().or(place)))
    }

    /// The load of a phase, which goes on from that of the phases before.
    fn phase_load(&mut self, reading: &mut Reading, spec: &PhaseSpec, place: Option<Place>) -> Option<Part> {
        let fields = [
            ("rate", &spec.rate),
            ("stages", &spec.stages),
            ("users", &spec.users),
            ("user_stages", &spec.user_stages),
        ];
        let given: Vec<_> = fields.into_iter().filter(|(_, field)| !field.is_absent()).collect();
        let &[(name, field)] = given.as_slice() else {
            let message = match given.as_slice() {
                [(one, _), (other, _), ..] => format!("`{one}` and `{other}` exclude each other"),
                _ => "the phase has no load".to_owned(),
            };
            let hint =
                "write one of `rate` and `stages` (open model), `users` and `user_stages` (closed model)";
            let place = given.get(1).and_then(|(_, field)| field.place()).or(place);
            return self.fail(Problem::new(message).at(place).with_hint(hint));
        };
        let before = *reading.model.get_or_insert(name);
        let open = |name: &str| matches!(name, "rate" | "stages");
        if open(before) != open(name) {
            let message = format!("`{name}` cannot be combined with `{before}` of the first phase");
            let hint =
                "a run is open (`rate`, `stages`) or closed (`users`, `user_stages`) in all of its phases";
            self.problems.push(Problem::new(message).at(field.place()).with_hint(hint));
        }
        let staged = matches!(name, "stages" | "user_stages");
        let duration = self.phase_duration(spec, staged, place);
        let (last_rate, last_users) = (reading.rate(), reading.users.last().map(|stage| stage.to));
        match name {
            "rate" => {
                let rate = self.phase_value(field, parse_rate)?;
                Some(Part::Rates(vec![Stage { duration: duration?, from: rate, to: rate }]))
            }
            "users" => {
                let users = self.phase_value(field, parse_users)?;
                Some(Part::Users(vec![UserStage { duration: duration?, from: users, to: users }]))
            }
            "stages" => {
                let stages = self.phase_value(field, |text| parse_stages_after(last_rate, text));
                duration.and(stages).map(Part::Rates)
            }
            _ => {
                let stages = self.phase_value(field, |text| parse_user_stages_after(last_users, text));
                duration.and(stages).map(Part::Users)
            }
        }
    }

    /// The length of a phase; zero if its stages have lengths of their own.
    fn phase_duration(&mut self, spec: &PhaseSpec, staged: bool, place: Option<Place>) -> Option<Nanos> {
        match (&spec.duration, staged) {
            (Field::Absent, true) => Some(Nanos::ZERO),
            (Field::Absent, false) => {
                let problem = Problem::new("the phase has no length").at(place);
                self.fail(problem.with_hint("write `duration: 30s`"))
            }
            (field, true) => {
                let problem = Problem::new("`duration` cannot be combined with stages").at(field.place());
                self.fail(problem.with_hint("the stages fix the length of the phase"))
            }
            (field, false) => match self.phase_value(field, parse_duration)? {
                Nanos::ZERO => {
                    self.fail(Problem::new("the length of a phase must be above 0").at(field.place()))
                }
                length => Some(length),
            },
        }
    }

    fn phase_value<T, E: std::fmt::Display>(
        &mut self,
        field: &Field<Text>,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        match parse(field.get()?.as_str().trim()) {
            Ok(value) => Some(value),
            Err(error) => self.fail(Problem::from_line(&error.to_string()).at(field.place())),
        }
    }
}
