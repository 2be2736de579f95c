//! The users of the closed model over time.

use plimsoll_core::Nanos;
use plimsoll_document::{Problem, RawValue};
use plimsoll_schedule::{Population, ScheduleError, UserStage, parse_count, parse_user_stages_after};

use crate::PlanPatch;
use crate::phases::{LoadProfile, Phased};
use crate::resolve::Resolver;

/// The users of the closed model over time, without the warm-up of a flag.
pub(crate) struct Users {
    pub(crate) stages: Vec<UserStage>,
    /// `true` if their stages determine the length of the run.
    pub(crate) timed: bool,
    /// The setting that gave them.
    pub(crate) by: RawValue,
}

impl Users {
    /// At the start.
    pub(crate) fn first(&self) -> u32 {
        self.stages.first().map_or(0, |stage| stage.from)
    }

    /// Length of their stages, if these say how long the run is.
    pub(crate) fn length(&self) -> Option<Nanos> {
        let add = |sum: Nanos, stage: &UserStage| sum + stage.duration;
        self.timed.then(|| self.stages.iter().fold(Nanos::ZERO, add))
    }

    /// At most.
    pub(crate) fn peak(&self) -> u32 {
        self.stages.iter().map(|stage| stage.from.max(stage.to)).max().unwrap_or(0)
    }
}

impl Resolver<'_> {
    /// The users of the closed model over time, from flags or phases, without the warm-up of a flag. `None`:
    /// they are wrong.
    pub(crate) fn users(&mut self, patch: &PlanPatch, phased: Option<&Phased>) -> Option<Option<Users>> {
        if let Some(phased) = phased {
            let LoadProfile::Users(stages) = &phased.course else { return Some(None) };
            let by = RawValue::new("phases", "");
            let by = RawValue { place: phased.place, ..by };
            // Users of the warm-up alone would not be measured.
            let mut end = Nanos::ZERO;
            let is_measured = |stage: &UserStage| {
                end += stage.duration;
                end > phased.warmup && stage.from.max(stage.to) > 0
            };
            let anybody = stages.iter().any(is_measured);
            return self.some_users(Users { stages: stages.clone(), timed: true, by }, anybody);
        }
        let count = self.read(patch.users.as_ref(), parse_users);
        let stages = self.read(patch.user_stages.as_ref(), |text| parse_user_stages_after(None, text));
        let open = patch.rate.as_ref().or(patch.rps.as_ref()).or(patch.stages.as_ref());
        let Some(given) = patch.user_stages.as_ref().or(patch.users.as_ref()) else { return Some(None) };
        let rival = match &patch.users {
            Some(users) if patch.user_stages.is_some() => {
                Some((users, "stages carry their own numbers of users"))
            }
            _ => open.map(|open| (open, "a run is open (a rate) or closed (users)")),
        };
        if let Some((rival, hint)) = rival {
            let message = format!("{} and {} exclude each other", rival.by, given.by);
            return self.fail(Problem::new(message).at(given.place.or(rival.place)).with_hint(hint));
        }
        if let (Some(duration), Some(_)) = (&patch.duration, &patch.user_stages) {
            let message = format!("{} and {} exclude each other", duration.by, given.by);
            let problem = Problem::new(message).at(duration.place.or(given.place));
            return self.fail(problem.with_hint("the stages fix the length of the run"));
        }
        match (count?, stages?) {
            (Some(users), _) => {
                let stage = UserStage { duration: Nanos::MAX, from: users, to: users };
                self.some_users(Users { stages: vec![stage], timed: false, by: given.clone() }, users > 0)
            }
            (_, Some(stages)) => {
                let users = Users { stages, timed: true, by: given.clone() };
                let anybody = users.peak() > 0;
                self.some_users(users, anybody)
            }
            _ => None,
        }
    }

    /// The users with a warm-up in front, which holds their first number.
    pub(crate) fn population(
        &mut self,
        users: &Users,
        warmup: Nanos,
        patch: &PlanPatch,
    ) -> Option<Population> {
        let mut stages = users.stages.clone();
        let first = users.first();
        if let Some(given) = patch.warmup.as_ref().filter(|_| warmup > Nanos::ZERO) {
            if first == 0 {
                let message =
                    format!("{}: the first stage starts with no user, so nothing would warm up", given.by);
                let hint = "put a first stage with users in front";
                return self.fail(given.problem(message).with_hint(hint));
            }
            if users.timed {
                stages.insert(0, UserStage { duration: warmup, from: first, to: first });
            }
        }
        match Population::new(stages) {
            Ok(population) => Some(population),
            Err(error) => {
                let given = &users.by;
                self.fail(given.problem(format!("{}: {error}", given.by)))
            }
        }
    }

    /// Refuses a course without `anybody`, that is any users, in its measured part.
    fn some_users(&mut self, users: Users, anybody: bool) -> Option<Option<Users>> {
        if !anybody {
            let message = format!("{}: there is never a user in the measured part", users.by.by);
            return self.fail(users.by.problem(message).with_hint("write a number of users above 0"));
        }
        Some(Some(users))
    }
}

/// Parses a number of users, which may be zero.
///
/// # Errors
/// The problem with the text.
pub(crate) fn parse_users(text: &str) -> Result<u32, ScheduleError> {
    u32::try_from(parse_count(text)?).map_err(|_| ScheduleError::OutOfRange(text.to_owned()))
}
