//! Threads of groups, which become users.

use plimsoll_document::Field;

use super::Importer;
use super::tree::{Node, inner, value};
use crate::amount::{self, Ratio};
use crate::course::{Course, Load};
use crate::draft::text;
use crate::flow;

/// The threads of a group.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) threads: u64,
    /// Seconds.
    pub(super) ramp: u64,
    /// `None` without an end.
    pub(super) loops: Option<u64>,
    /// Seconds, if a scheduler ends it.
    pub(super) duration: Option<u64>,
    /// Seconds.
    pub(super) delay: u64,
    /// `true` if iterations go on after a failure.
    pub(super) continues: bool,
    pub(super) at: String,
    /// The course of the threads of a plugin's group.
    pub(super) course: Option<Course>,
}

impl Group {
    /// Returns `true` if one thread carries it out once.
    pub(super) fn is_once(&self) -> bool {
        (self.threads, self.loops, self.duration) == (1, Some(1), None)
    }
}

impl Importer<'_> {
    /// The load of a group. `None` if it has no threads.
    pub(super) fn group_load(&mut self, group: &Node<'_>) -> Option<Group> {
        let at = group.at();
        let read = |key: &str| group.value(&format!("ThreadGroup.{key}"));
        let written = read("num_threads").unwrap_or_default();
        let threads = self.number(&written, &at);
        if threads.is_none() {
            let becomes = "it is not a number of threads: one user is taken; give --users";
            self.findings.note(
                at.as_str(),
                if written.is_empty() { group.kind() } else { &written },
                becomes,
            );
        }
        let threads = threads.unwrap_or(1);
        if threads == 0 {
            self.findings.note(at, "0", "a group without threads does nothing: it is left out");
            return None;
        }
        let mut seconds = |key: &str| {
            let written = read(key).unwrap_or_default();
            if written.trim().is_empty() { None } else { self.number(&written, &at) }
        };
        let (ramp, mut duration, mut delay) = (seconds("ramp_time"), seconds("duration"), seconds("delay"));
        if !group.flag("ThreadGroup.scheduler") {
            (duration, delay) = (None, None);
        }
        let controller = inner(group.element, "ThreadGroup.main_controller");
        let written =
            controller.and_then(|controller| value(controller, "LoopController.loops")).unwrap_or_default();
        let forever = controller
            .and_then(|controller| value(controller, "LoopController.continue_forever"))
            .is_some_and(|flag| flag.trim() == "true");
        // -1 is for ever; so is a controller that says so, without a number.
        let loops = if written.trim().is_empty() && forever { None } else { self.number(&written, &at) };
        let continues = self.continues(group);
        let duration = duration.filter(|duration| *duration > 0);
        Some(Group {
            threads,
            ramp: ramp.unwrap_or(0),
            loops,
            duration,
            delay: delay.unwrap_or(0),
            continues,
            at,
            course: None,
        })
    }

    /// The settings of a plugin's group besides its course.
    pub(super) fn stepped_load(&mut self, group: &Node<'_>) -> Option<Group> {
        self.note_loops(group);
        let continues = self.continues(group);
        let at = group.at();
        Some(Group {
            threads: 1,
            ramp: 0,
            loops: None,
            duration: None,
            delay: 0,
            continues,
            at,
            course: None,
        })
    }

    /// Returns `true` if iterations go on after a failure.
    fn continues(&mut self, group: &Node<'_>) -> bool {
        let on_error = group.value("ThreadGroup.on_sample_error").unwrap_or_default();
        if ["stopthread", "stoptest", "stoptestnow"].contains(&on_error.trim()) {
            let becomes =
                "an iteration ends with a request that has failed, and its user begins the next one";
            self.findings.note(group.at(), &on_error, becomes);
        }
        ["", "continue"].contains(&on_error.trim())
    }

    /// The load of the run and the weights of its scenarios.
    pub(super) fn load(&mut self) {
        let groups = std::mem::take(&mut self.groups);
        if groups.is_empty() {
            return;
        }
        if self.shaped.is_none() && groups.iter().any(|group| group.course.is_some()) {
            self.courses(groups);
            return;
        }
        let users = groups.iter().try_fold(0_u64, |sum, group| sum.checked_add(group.threads));
        let Some(users) = users else {
            self.findings.problem(&groups[0].at, "there are too many threads");
            return;
        };
        let ramp = groups.iter().map(|group| group.ramp).max().unwrap_or(0);
        let turns: Option<Vec<u64>> = groups
            .iter()
            .map(|group| group.threads.checked_mul(group.loops.filter(|loops| *loops > 0)?))
            .collect();
        let durations: Option<Vec<u64>> = groups.iter().map(|group| group.duration).collect();
        let longest = durations.as_ref().and_then(|all| all.iter().max().copied());
        if groups.len() > 1 {
            self.several(&groups);
        }
        let weights: Vec<u64> = match (&turns, longest) {
            (Some(turns), None) => turns.clone(),
            _ => groups.iter().map(|group| group.threads).collect(),
        };
        self.put_weights(&weights, &groups);
        let iterations =
            turns.and_then(|turns| turns.iter().try_fold(0_u64, |sum, turn| sum.checked_add(*turn)));
        if let Some(course) = self.shaped.take() {
            self.settings.rate_of = text("requests");
            let (document, settings, findings) = (&mut self.document, &mut self.settings, &mut self.findings);
            if (Load { document, settings, findings, at: "timer" }).curve(&[course]).is_none() {
                self.findings.problem(&groups[0].at, "the table of its timer has no rates");
            }
            return;
        }
        if self.throughput.is_some() {
            self.rate(users, longest, &groups[0].at);
            return;
        }
        match (longest, iterations) {
            (Some(duration), _) => {
                if groups.iter().any(|group| group.loops.is_some_and(|loops| loops > 0)) {
                    let becomes = "the duration ends the run, whatever the loops of a group are";
                    self.findings.note(groups[0].at.as_str(), "LoopController.loops", becomes);
                }
                self.users_over_time(users, ramp, duration);
            }
            (None, Some(iterations)) if ramp > 0 && groups.iter().all(|group| group.loops == Some(1)) => {
                // Threads that do their work once amount to arrivals, one after the other.
                let becomes = "each thread does its work once: these are arrivals over the ramp-up time";
                self.findings.note(groups[0].at.as_str(), "ThreadGroup.ramp_time", becomes);
                if let Some(rate) = Ratio::new(u128::from(users), u128::from(ramp)) {
                    self.settings.rate = text(rate.rate());
                }
                self.settings.iterations = text(iterations.to_string());
            }
            (None, Some(iterations)) => {
                self.settings.users = text(users.to_string());
                self.settings.iterations = text(iterations.to_string());
                if ramp > 0 {
                    let becomes = "all users begin at once, since the number of iterations ends the run";
                    self.findings.note(groups[0].at.as_str(), "ThreadGroup.ramp_time", becomes);
                }
            }
            (None, None) => {
                let becomes = "nothing ends it there: give --duration";
                self.findings.note(groups[0].at.as_str(), "LoopController.loops", becomes);
                self.settings.users = text(users.to_string());
            }
        }
    }

    /// The load of groups of which some have a course of their own.
    fn courses(&mut self, groups: Vec<Group>) {
        let mut courses = Vec::new();
        for mut group in groups {
            match group.course.take().or_else(|| group.to_course()) {
                Some(course) => courses.push(course),
                None => {
                    let hint = "give the group a duration, or import it from a file of its own";
                    let message = "loops end this group, and a course the others: a plan has one of both";
                    self.findings.hinted(&group.at, message, hint);
                }
            }
        }
        let is_rate = courses.iter().any(|course| course.is_rate);
        if let Some(other) = courses.iter().find(|course| course.is_rate != is_rate) {
            let hint = "import them from files of their own";
            self.findings.hinted(&other.at, "a plan has users or arrivals, and not both", hint);
        }
        if let Some((_, _, at)) = &self.throughput {
            let message =
                "a timer sets the rate of groups whose threads have a course: a plan has one of both";
            self.findings.hinted(at, message, "leave out the timer, or take a ThreadGroup");
        }
        if courses.len() > 1 {
            for (course, scenario) in courses.iter().zip(&mut self.document.scenarios) {
                if let (Field::Given(scenario, _), true) = (scenario, course.start > 0) {
                    scenario.start_after = text(amount::time(course.start));
                }
            }
        }
        let (document, settings, findings) = (&mut self.document, &mut self.settings, &mut self.findings);
        Load { document, settings, findings, at: "thread groups" }.put(&courses);
    }

    /// Users that begin within `ramp` seconds, of a run of `duration` seconds.
    fn users_over_time(&mut self, users: u64, ramp: u64, duration: u64) {
        const SECOND: u64 = 1_000_000_000;
        // The stage at whose end there is the first user; the others follow evenly.
        const FIRST: u64 = 1_000_000;
        if ramp == 0 {
            self.settings.users = text(users.to_string());
            self.settings.duration = text(amount::time(duration.saturating_mul(SECOND)));
            return;
        }
        let rise = ramp.min(duration);
        let reached = u128::from(users) * u128::from(rise) / u128::from(ramp);
        let first = amount::time(FIRST);
        let risen = amount::time(rise.saturating_mul(SECOND).saturating_sub(FIRST));
        let mut stages = format!("{first}@0,{risen}@{reached}");
        if duration > ramp {
            stages.push_str(&format!(",{}@{users}", amount::time((duration - ramp).saturating_mul(SECOND))));
        }
        self.settings.user_stages = text(stages);
    }

    /// The rate of a timer, instead of users.
    fn rate(&mut self, users: u64, duration: Option<u64>, group_at: &str) {
        let Some((per_minute, for_each, at)) = self.throughput.take() else { return };
        let rate = per_minute.times(Ratio::new(1, 60).unwrap_or(per_minute));
        let rate = if for_each { rate.and_then(|rate| rate.times_whole(u128::from(users))) } else { rate };
        let Some(rate) = rate else {
            self.findings.problem(&at, "the rate is too high");
            return;
        };
        self.settings.rate = text(rate.rate());
        self.settings.rate_of = text("requests");
        match duration {
            Some(duration) => {
                self.settings.duration = text(amount::time(duration.saturating_mul(1_000_000_000)));
            }
            None => {
                let becomes = "a rate needs a time: give --duration";
                self.findings.note(group_at, "ThreadGroup.duration", becomes);
            }
        }
    }

    /// Notes about settings that each group had for itself.
    fn several(&mut self, groups: &[Group]) {
        let at = groups[0].at.as_str();
        let differ = |get: fn(&Group) -> u64| groups.iter().any(|group| get(group) != get(&groups[0]));
        if differ(|group| group.ramp) || differ(|group| group.duration.unwrap_or(0)) {
            let becomes =
                "groups have one course of the load together: the longest ramp-up and duration are taken";
            self.findings.note(at, "ThreadGroup.ramp_time", becomes);
        }
        let becomes = "all groups are one load: users choose a group for each iteration, by weight";
        self.findings.note("thread groups", "", becomes);
        for (index, group) in groups.iter().enumerate().filter(|(_, group)| group.delay > 0) {
            if index == 0 {
                let becomes = "the first group begins at once";
                self.findings.note(group.at.as_str(), "ThreadGroup.delay", becomes);
            } else if let Some(Field::Given(scenario, _)) = self.document.scenarios.get_mut(index) {
                scenario.start_after = text(format!("{}s", group.delay));
            }
        }
    }

    fn put_weights(&mut self, weights: &[u64], groups: &[Group]) {
        let ratios: Option<Vec<Ratio>> =
            weights.iter().map(|weight| Ratio::new(u128::from(*weight), 1)).collect();
        if ratios.and_then(|ratios| flow::weigh(&mut self.document, &ratios)).is_none() {
            self.findings.problem(&groups[0].at, "the threads of groups are too far apart");
        }
    }
}
