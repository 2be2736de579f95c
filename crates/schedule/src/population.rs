//! The users of the closed model: how many there are over time.

use std::fmt;

use plimsoll_core::Nanos;

/// One segment of the course of the users: their number goes linearly from `from` to `to`; equal numbers
/// hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserStage {
    /// Length of the stage.
    pub duration: Nanos,
    /// Users at its start.
    pub from: u32,
    /// Users that there are at its end.
    pub to: u32,
}

/// Stages one after another, each in `[begin, end)`, the first from 0; and their last number from the end on.
///
/// A stage from a to b in the time d has `a ± floor(|b − a| · t / d)` users at t after its start, computed in
/// whole numbers: the first user of a ramp comes when the line reaches it, the last one at the end of the
/// ramp; and on a falling ramp each goes when the line is at the number without it. A worker takes the users
/// whose number leaves a certain remainder: all shares together are this number at every instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Population {
    stages: Vec<UserStage>,
}

impl Population {
    /// Makes a population with a constant number of users.
    pub fn constant(users: u32) -> Self {
        Self { stages: vec![UserStage { duration: Nanos::MAX, from: users, to: users }] }
    }

    /// Several stages.
    ///
    /// # Errors
    /// If there is no stage, one has no length, or they are too long together.
    pub fn new(stages: Vec<UserStage>) -> Result<Self, PopulationError> {
        if stages.is_empty() {
            return Err(PopulationError::NoStages);
        }
        if let Some(empty) = stages.iter().position(|stage| stage.duration == Nanos::ZERO) {
            return Err(PopulationError::EmptyStage(empty + 1));
        }
        let length = stages.iter().try_fold(0_u64, |sum, stage| sum.checked_add(stage.duration.0));
        length.map(|_| Self { stages }).ok_or(PopulationError::TooLong)
    }

    /// The stages in their order; at least one.
    pub fn stages(&self) -> &[UserStage] {
        &self.stages
    }

    /// Length of all stages together.
    pub fn duration(&self) -> Nanos {
        self.stages.iter().fold(Nanos::ZERO, |sum, stage| sum + stage.duration)
    }

    /// The number of users at one instant. Where two stages meet it is that of the later one.
    pub fn at(&self, at: Nanos) -> u32 {
        match self.stage_at(at) {
            Some((stage, begin)) => stage.users_after(at - begin),
            None => self.stages.last().map_or(0, |stage| stage.to),
        }
    }

    /// The first instant after `at` from which on the number may be another one; `None` if it stays.
    pub fn change_after(&self, at: Nanos) -> Option<Nanos> {
        let (stage, begin) = self.stage_at(at)?;
        let end = begin + stage.duration;
        let next = stage.step_after(at - begin).map_or(end, |into| begin + into);
        (next < Nanos::MAX).then_some(next)
    }

    /// The largest number of users.
    pub fn peak(&self) -> u32 {
        self.stages.iter().map(|stage| stage.from.max(stage.to)).max().unwrap_or(0)
    }

    /// The stage in force at an instant, and its start; `None` from the end on.
    fn stage_at(&self, at: Nanos) -> Option<(&UserStage, Nanos)> {
        let mut begin = Nanos::ZERO;
        for stage in &self.stages {
            let end = begin + stage.duration;
            if at < end {
                return Some((stage, begin));
            }
            begin = end;
        }
        None
    }
}

impl UserStage {
    /// The number of users at the time `t` since its start, which is below its length.
    fn users_after(&self, t: Nanos) -> u32 {
        let moved = u128::from(self.from.abs_diff(self.to)) * u128::from(t.0) / u128::from(self.duration.0);
        // At most the difference of the two.
        let moved = moved as u32;
        if self.from <= self.to { self.from + moved } else { self.from - moved }
    }

    /// The first time after `t` since its start at which the number is another one, if that is in the stage.
    fn step_after(&self, t: Nanos) -> Option<Nanos> {
        let difference = u128::from(self.from.abs_diff(self.to));
        let moved = difference * u128::from(t.0) / u128::from(self.duration.0);
        if moved + 1 > difference {
            return None;
        }
        let into = ((moved + 1) * u128::from(self.duration.0)).div_ceil(difference);
        // At most the length.
        Some(Nanos(into as u64))
    }
}

/// Stages that make no population.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PopulationError {
    /// There is no stage.
    NoStages,
    /// The stage with this number, from 1, has no length.
    EmptyStage(usize),
    /// All stages together are longer than 2^64 ns (584 years).
    TooLong,
}

impl fmt::Display for PopulationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoStages => f.write_str("there is no stage: write at least one, such as 30s@10"),
            Self::EmptyStage(number) => {
                write!(f, "stage {number} has no length: write a duration above 0, such as 30s@10")
            }
            Self::TooLong => f.write_str("the stages are longer than 584 years together"),
        }
    }
}

impl std::error::Error for PopulationError {}

#[cfg(test)]
mod tests {
    use plimsoll_core::Shard;

    use super::*;

    fn stage(seconds: u64, from: u32, to: u32) -> UserStage {
        UserStage { duration: Nanos::from_secs(seconds), from, to }
    }

    #[test]
    fn users_come_when_the_line_reaches_them_and_go_when_it_is_without_them() {
        let stages = vec![stage(5, 0, 10), stage(3, 10, 10), stage(4, 10, 2), stage(1, 5, 5)];
        let population = Population::new(stages).unwrap();
        let at = |ms: u64| population.at(Nanos::from_millis(ms));
        assert_eq!([at(0), at(499), at(500), at(999), at(4_999), at(5_000)], [0, 0, 1, 1, 9, 10]);
        assert_eq!([at(7_999), at(8_000), at(8_499), at(8_500), at(11_999)], [10, 10, 10, 9, 3]);
        assert_eq!([at(12_000), at(12_999), at(13_000), at(99_999)], [5, 5, 5, 5]);
        assert_eq!((population.peak(), population.duration()), (10, Nanos::from_secs(13)));
        let mut changes = Vec::new();
        let mut now = Nanos::ZERO;
        while let Some(next) = population.change_after(now) {
            assert!(next > now);
            changes.push((next.0 / 1_000_000, population.at(next)));
            now = next;
        }
        let rising = (1..=10).map(|user| (u64::from(user) * 500, user));
        let falling = (1..8).map(|gone| (8_000 + u64::from(gone) * 500, 10 - gone));
        let held = [(8_000, 10)];
        let steps = [(12_000, 5), (13_000, 5)];
        assert_eq!(changes, rising.chain(held).chain(falling).chain(steps).collect::<Vec<_>>());
    }

    #[test]
    fn between_two_changes_nothing_changes_and_shares_add_up() {
        let odd = UserStage { duration: Nanos(997), from: 3, to: 60 };
        let down = UserStage { duration: Nanos(13), from: 60, to: 0 };
        let population = Population::new(vec![odd, down]).unwrap();
        let mut next = population.change_after(Nanos::ZERO);
        for at in 1..1_100 {
            let (before, now) = (population.at(Nanos(at - 1)), population.at(Nanos(at)));
            if next == Some(Nanos(at)) {
                next = population.change_after(Nanos(at));
            } else {
                assert_eq!(before, now, "{at}");
            }
            let share = |index| Shard { index, of: 7 }.share_of(u64::from(now));
            assert_eq!((0..7).map(share).sum::<u64>(), u64::from(now));
        }
        assert_eq!(next, None);
    }

    #[test]
    fn a_constant_population_never_changes_and_what_is_none_is_refused() {
        let constant = Population::constant(7);
        assert_eq!((constant.at(Nanos::from_secs(1_000_000)), constant.peak()), (7, 7));
        assert_eq!(constant.change_after(Nanos::ZERO), None);
        let refusal = |stages| Population::new(stages).unwrap_err();
        assert_eq!(refusal(vec![]), PopulationError::NoStages);
        assert_eq!(refusal(vec![stage(1, 1, 1), stage(0, 1, 2)]), PopulationError::EmptyStage(2));
        let long = UserStage { duration: Nanos::MAX, from: 1, to: 1 };
        assert_eq!(refusal(vec![long, stage(1, 1, 1)]), PopulationError::TooLong);
    }
}
