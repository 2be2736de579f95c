//! The load over time: the courses of several scenarios as one.

use plimsoll_document::{Document, Field, Settings};

use crate::amount::{self, Ratio};
use crate::draft::text;
use crate::findings::Findings;
use crate::flow;

/// The stage in which a level steps to where a ramp begins, in nanoseconds.
const STEP: u64 = 1_000_000;

/// The load of a scenario.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    /// When it begins, in nanoseconds.
    pub(crate) start: u64,
    /// Levels are arrivals per second, and not users.
    pub(crate) is_rate: bool,
    pub(crate) level: Level,
    pub(crate) at: String,
}

/// The course of a level. Times are in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) enum Level {
    Constant(Ratio, u64),
    /// The level at the beginning; how long each stage is, and the level at its end.
    Stages(Ratio, Vec<(u64, Ratio)>),
    Iterations {
        users: u64,
        iterations: u64,
        most: Option<u64>,
    },
}

/// A part of a course: from one time and level to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) first: Ratio,
    pub(crate) last: Ratio,
}

impl Segment {
    /// The level at a time within it.
    pub(crate) fn at(&self, time: u64) -> Option<Ratio> {
        let length = u128::from(self.to - self.from);
        let part = |level: Ratio, nanos: u64| level.times(Ratio::new(u128::from(nanos), length)?);
        part(self.first, self.to - time)?.plus(part(self.last, time - self.from)?)
    }
}

impl Course {
    pub(crate) fn is_open(&self) -> bool {
        self.is_rate
    }

    /// Returns `true` if a number of iterations ends it.
    pub(crate) fn counts(&self) -> bool {
        matches!(self.level, Level::Iterations { .. })
    }

    /// Returns `true` if it never has a second user.
    pub(crate) fn is_one_user(&self) -> bool {
        !self.is_rate
            && match &self.level {
                Level::Constant(level, _) => level.is_at_most_one(),
                Level::Stages(first, stages) => {
                    first.is_at_most_one() && stages.iter().all(|(_, level)| level.is_at_most_one())
                }
                Level::Iterations { users, .. } => *users <= 1,
            }
    }

    /// The number of iterations, if that ends it.
    pub(crate) fn iterations(&self) -> Option<u64> {
        match &self.level {
            Level::Iterations { iterations, .. } => Some(*iterations),
            Level::Constant(..) | Level::Stages(..) => None,
        }
    }

    fn segments(&self) -> Vec<Segment> {
        match &self.level {
            Level::Constant(level, length) => {
                let to = self.start.saturating_add(*length);
                vec![Segment { from: self.start, to, first: *level, last: *level }]
            }
            Level::Stages(first, stages) => {
                let (mut all, mut from, mut level) = (Vec::new(), self.start, *first);
                for (length, last) in stages {
                    let to = from.saturating_add(*length);
                    if to > from {
                        all.push(Segment { from, to, first: level, last: *last });
                    }
                    (from, level) = (to, *last);
                }
                all
            }
            Level::Iterations { .. } => Vec::new(),
        }
    }

    /// The part of the work that it is, next to others.
    fn work(&self) -> Option<Ratio> {
        match &self.level {
            Level::Iterations { iterations, .. } => Ratio::new(u128::from(*iterations), 1),
            _ => self.segments().iter().try_fold(Ratio::new(0, 1)?, |sum, segment| {
                let length = Ratio::new(u128::from(segment.to - segment.from), 1_000_000)?;
                sum.plus(segment.first.plus(segment.last)?.times(length)?)
            }),
        }
    }
}

/// The sum of courses, part by part. A single one begins with its first part, and several at 0. `None` if the
/// numbers are too large.
pub(crate) fn sums(courses: &[Course]) -> Option<Vec<Segment>> {
    let parts: Vec<Vec<Segment>> = courses.iter().map(Course::segments).collect();
    let shift = match courses {
        [only] => only.start,
        _ => 0,
    };
    let mut times: Vec<u64> = parts.iter().flatten().flat_map(|segment| [segment.from, segment.to]).collect();
    times.push(shift);
    times.sort_unstable();
    times.dedup();
    let mut sums = Vec::new();
    for pair in times.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let (mut first, mut last) = (Ratio::new(0, 1)?, Ratio::new(0, 1)?);
        for segment in parts.iter().flatten().filter(|segment| segment.from <= from && to <= segment.to) {
            first = first.plus(segment.at(from)?)?;
            last = last.plus(segment.at(to)?)?;
        }
        sums.push(Segment { from, to, first, last });
    }
    Some(sums)
}

/// The parts of an importer that say what the load is.
#[derive(Debug)]
pub(crate) struct Load<'a> {
    pub(crate) document: &'a mut Document,
    pub(crate) settings: &'a mut Settings,
    pub(crate) findings: &'a mut Findings,
    /// The place where the source describes its scenarios.
    pub(crate) at: &'a str,
}

impl Load<'_> {
    /// The load of the run and the weights of its scenarios.
    pub(crate) fn put(&mut self, courses: &[Course]) {
        let Some(first) = courses.first() else { return };
        if self.findings.has_problems() {
            return;
        }
        let at = first.at.clone();
        let work: Option<Vec<Ratio>> = courses.iter().map(Course::work).collect();
        if work.and_then(|work| flow::weigh(self.document, &work)).is_none() {
            self.findings.problem(&at, "the loads of scenarios are too far apart");
        }
        if first.counts() {
            self.finite(courses);
        } else if self.curve(courses).is_none() {
            self.findings.hinted(&at, "it has no load", "a load has a time and a level above 0");
        }
        if let [only] = courses
            && only.start > 0
            && let Some(Field::Given(scenario, _)) = self.document.scenarios.first_mut()
        {
            scenario.start_after = Field::Absent;
            self.findings.note(at, "startTime", "there is no other scenario: the load begins at once");
        }
    }

    fn finite(&mut self, courses: &[Course]) {
        let (mut users, mut iterations, mut longest) = (0_u64, 0_u64, None);
        for course in courses {
            if let Level::Iterations { users: more, iterations: turns, most } = &course.level {
                users = users.saturating_add(*more);
                iterations = iterations.saturating_add(*turns);
                longest = longest.max(*most);
            }
        }
        if courses.len() > 1 {
            let becomes = "scenarios are one load: users choose one for each iteration, by weight";
            self.findings.note(self.at, "", becomes);
        }
        self.settings.users = text(users.min(iterations).max(1).to_string());
        self.settings.iterations = text(iterations.to_string());
        if let Some(longest) = longest {
            self.settings.duration = text(amount::time(longest));
        }
    }

    pub(crate) fn curve(&mut self, courses: &[Course]) -> Option<()> {
        let is_rate = courses.iter().any(|course| course.is_rate);
        let sums = sums(courses)?;
        if sums.iter().all(|sum| sum.first.is_zero() && sum.last.is_zero()) {
            return None;
        }
        if courses.len() > 1 {
            self.note_sum(courses, is_rate);
        }
        if !is_rate && sums.iter().any(|sum| !(sum.first.is_whole() && sum.last.is_whole())) {
            let becomes = "where the ramps of scenarios cross, numbers of users are rounded up";
            self.findings.note(self.at, "", becomes);
        }
        let written = |level: Ratio| if is_rate { level.rate() } else { level.ceil().to_string() };
        // Neighbours at one level are one.
        let mut joined: Vec<Segment> = Vec::new();
        for sum in sums {
            match joined.last_mut() {
                Some(before)
                    if before.first == before.last && before.last == sum.first && sum.first == sum.last =>
                {
                    before.to = sum.to;
                }
                _ => joined.push(sum),
            }
        }
        if let [only] = joined.as_slice()
            && only.first == only.last
        {
            let level = text(written(only.first));
            self.settings.duration = text(amount::time(only.to - only.from));
            if is_rate {
                self.settings.rate = level;
            } else {
                self.settings.users = level;
            }
            return Some(());
        }
        let mut stages = Vec::new();
        let mut before: Option<Ratio> = None;
        for part in joined {
            let length = part.to - part.from;
            let (first, last) = (written(part.first), written(part.last));
            let step = if before.is_none() { "@" } else { "@=" };
            if before == Some(part.first) {
                stages.push(format!("{}@{last}", amount::time(length)));
            } else if first == last {
                stages.push(format!("{}{step}{last}", amount::time(length)));
            } else {
                let begun = STEP.min(length / 2).max(1);
                stages.push(format!("{}{step}{first}", amount::time(begun)));
                stages.push(format!("{}@{last}", amount::time(length - begun)));
            }
            before = Some(part.last);
        }
        let stages = text(stages.join(","));
        if is_rate {
            self.settings.stages = stages;
        } else {
            self.settings.user_stages = stages;
        }
        Some(())
    }

    fn note_sum(&mut self, courses: &[Course], is_rate: bool) {
        let alike = |one: &Course, other: &Course| match (&one.level, &other.level) {
            (Level::Constant(_, one_time), Level::Constant(_, other_time)) => {
                one.start == other.start && one_time == other_time
            }
            _ => false,
        };
        if is_rate && courses.iter().all(|course| alike(course, &courses[0])) {
            return;
        }
        let becomes =
            "scenarios are one load: the sum of theirs, dealt to them in proportion to their parts of it";
        self.findings.note(self.at, "", becomes);
    }
}
