//! Thread groups of plugins, whose threads or arrivals have a course of their own.

use super::Importer;
use super::load::Group;
use super::tree::{Node, inner, items};
use crate::amount::Ratio;
use crate::course::{Course, Level, Segment, sums};
use crate::xml::Element;

const SECOND: u64 = 1_000_000_000;

/// Most stages of a group: one with more has its steps so close that they are a ramp.
const MOST_STAGES: u64 = 500;

/// The kinds of groups whose threads JMeter itself schedules.
pub(super) const PLAIN: [&str; 3] = ["ThreadGroup", "SetupThreadGroup", "PostThreadGroup"];

/// The level over time of a group: how long each stage is, and the level at its end.
type Stages = Vec<(u64, Ratio)>;

impl Importer<'_> {
    /// The course of a group of a plugin. `None` after a problem.
    pub(super) fn course(&mut self, group: &Node<'_>) -> Option<Course> {
        let kind = group.kind();
        let is_rate = kind == "ArrivalsThreadGroup";
        let (start, stages) = match kind {
            "SteppingThreadGroup" => self.stepping(group),
            "UltimateThreadGroup" => self.ultimate(group),
            "ConcurrencyThreadGroup" | "ArrivalsThreadGroup" => {
                self.target_level(group, is_rate).map(|stages| (0, stages))
            }
            _ => {
                let hint = "a plan has stages: write them by hand, and import the group as a ThreadGroup";
                self.findings.hinted(&group.at(), format!("the load of a `{kind}` is not taken over"), hint);
                None
            }
        }?;
        let level = Level::Stages(Ratio::whole(0), stages);
        Some(Course { start, is_rate, level, at: group.at() })
    }

    /// A whole number of a group. An empty one is 0; another text is a problem.
    fn whole(&mut self, written: &str, group: &Node<'_>, key: &str) -> Option<u64> {
        if written.trim().is_empty() {
            return Some(0);
        }
        let at = group.at();
        let number = self.number(written, &at);
        if number.is_none() {
            let message = format!("`{key}`: `{}` is not a whole number", crate::findings::quoted(written));
            self.findings.hinted(&at, message, "write the number into the test plan");
        }
        number
    }

    fn field(&mut self, group: &Node<'_>, key: &str) -> Option<u64> {
        let written = group.value(key).unwrap_or_default();
        self.whole(&written, group, key)
    }

    /// Threads that begin and end in steps.
    fn stepping(&mut self, group: &Node<'_>) -> Option<(u64, Stages)> {
        let threads = self.field(group, "ThreadGroup.num_threads")?;
        let delay = self.field(group, "Threads initial delay")?;
        let or_all = |count: u64| if count == 0 { threads } else { count };
        let step = or_all(self.field(group, "Start users count")?);
        let burst = self.field(group, "Start users count burst")?.min(threads);
        let burst = if burst == 0 { step } else { burst };
        let period = self.field(group, "Start users period")?;
        let rise = self.field(group, "rampUp")?;
        let hold = self.field(group, "flighttime")?;
        let down = or_all(self.field(group, "Stop users count")?);
        let down_period = self.field(group, "Stop users period")?;
        let steps = threads.div_ceil(step.max(1)).saturating_add(threads.div_ceil(down.max(1)));
        if threads == 0 || steps > MOST_STAGES {
            let message =
                format!("it has no threads, or begins and ends them in more than {MOST_STAGES} steps");
            self.findings.problem(&group.at(), message);
            return None;
        }
        let mut stages = Stages::new();
        let mut level = 0;
        while level < threads {
            let size = if level == 0 { burst } else { step };
            let added = size.min(threads - level);
            level += added;
            // A step that is not full rises as fast, and is over sooner.
            let nanos = u128::from(rise) * u128::from(SECOND) * u128::from(added) / u128::from(size.max(1));
            stages.push((u64::try_from(nanos).ok()?, threads_of(level)));
            let still = if level < threads { period } else { hold };
            stages.push((still.checked_mul(SECOND)?, threads_of(level)));
        }
        // The first of them end with the time for which the level is held.
        while level > down && down_period > 0 {
            level -= down;
            stages.push((0, threads_of(level)));
            stages.push((down_period.checked_mul(SECOND)?, threads_of(level)));
        }
        Some((delay.checked_mul(SECOND)?, stages))
    }

    /// Threads by a table, whose rows add up.
    fn ultimate(&mut self, group: &Node<'_>) -> Option<(u64, Stages)> {
        let mut courses = Vec::new();
        for row in items(group.element, "ultimatethreadgroupdata") {
            let fields: Vec<&Element> = row.children.iter().collect();
            let [threads, delay, rise, hold, fall] = fields.as_slice() else {
                self.findings.problem(&group.at(), "a row of its table has not five values");
                return None;
            };
            let mut number = |element: &Element| self.whole(&element.text, group, "ultimatethreadgroupdata");
            let level = threads_of(number(threads)?);
            let (start, rise) = (number(delay)?.checked_mul(SECOND)?, number(rise)?.checked_mul(SECOND)?);
            let (hold, fall) = (number(hold)?.checked_mul(SECOND)?, number(fall)?.checked_mul(SECOND)?);
            let stages = vec![(rise, level), (hold, level), (fall, Ratio::whole(0))];
            let level = Level::Stages(Ratio::whole(0), stages);
            courses.push(Course { start, is_rate: false, level, at: group.at() });
        }
        let parts = sums(&courses).filter(|parts| !parts.is_empty());
        let Some(parts) = parts else {
            self.findings.problem(&group.at(), "its table has no threads, or too many");
            return None;
        };
        let start = parts.first().map_or(0, |part| part.from);
        Some((start, joined(&parts)))
    }

    /// A level that is reached in steps or evenly, and held.
    fn target_level(&mut self, group: &Node<'_>, is_rate: bool) -> Option<Stages> {
        let target = self.field(group, "TargetLevel")?;
        let steps = self.field(group, "Steps")?;
        let unit = if group.value("Unit").is_some_and(|unit| unit.trim() == "M") { 60 } else { 1 };
        let length = unit * SECOND;
        let rise = self.field(group, "RampUp")?.checked_mul(length)?;
        let hold = self.field(group, "Hold")?.checked_mul(length)?;
        for (key, becomes) in [
            ("Iterations", "the number of iterations of each thread is left out: the course ends them"),
            ("ConcurrencyLimit", "as many users as the rate needs are there: the limit is left out"),
        ] {
            if let Some(written) = group.filled(key) {
                self.findings.note(group.at(), &format!("{key}: {written}"), becomes);
            }
        }
        if target == 0 || rise + hold == 0 || steps > MOST_STAGES {
            let message = format!("it has no level or no time, or more than {MOST_STAGES} steps");
            self.findings.problem(&group.at(), message);
            return None;
        }
        // Arrivals are per unit of time; half a thread is rounded up.
        let level = |part: u64| -> Option<Ratio> {
            let all = u128::from(target) * u128::from(part);
            match (is_rate, steps.max(1)) {
                (true, steps) => Ratio::new(all, u128::from(steps) * u128::from(unit)),
                (false, steps) => {
                    let steps = u128::from(steps);
                    Ratio::new((2 * all + steps) / (2 * steps), 1)
                }
            }
        };
        let mut stages = Stages::new();
        if rise > 0 && steps > 0 {
            for step in 1..=steps {
                let level = level(step)?;
                stages.push((0, level));
                stages.push((rise / steps, level));
            }
        } else {
            stages.push((rise, level(steps.max(1))?));
        }
        stages.push((hold, level(steps.max(1))?));
        Some(stages)
    }

    /// Rates of requests by the table of a timer, whose rows follow each other.
    pub(super) fn shaped_throughput(&mut self, timer: &Node<'_>) {
        let at = timer.at();
        let mut stages = Stages::new();
        let mut first = None;
        for row in items(timer.element, "load_profile") {
            let fields: Vec<Option<Ratio>> = row
                .children
                .iter()
                .map(|field| Ratio::decimal(self.variables.expanded(field.text.trim()).trim()))
                .collect();
            let [Some(from), Some(to), Some(seconds)] = fields.as_slice() else {
                self.findings.problem(&at, "a row of its table has not two rates and a time in seconds");
                return;
            };
            let Some(length) = seconds.nanos() else { continue };
            match first {
                None => first = Some(*from),
                Some(_) => stages.push((0, *from)),
            }
            stages.push((length, *to));
        }
        let becomes = "rates of requests for the whole run: each starts at its time, and users are as \
        many as \
                       are needed";
        self.findings.note(at.as_str(), timer.kind(), becomes);
        let level = Level::Stages(first.unwrap_or(Ratio::whole(0)), stages);
        self.shaped = Some(Course { start: 0, is_rate: true, level, at });
    }

    /// Notes the settings of groups of plugins that have no meaning beside their course.
    pub(super) fn note_loops(&mut self, group: &Node<'_>) {
        let controller = inner(group.element, "ThreadGroup.main_controller");
        let loops = controller.and_then(|controller| super::tree::value(controller, "LoopController.loops"));
        if let Some(loops) = loops.filter(|loops| !matches!(loops.trim(), "" | "-1")) {
            let becomes = "the course of the group ends its threads: the number of loops is left out";
            self.findings.note(group.at(), &loops, becomes);
        }
    }
}

/// A number of threads as a level.
fn threads_of(number: u64) -> Ratio {
    Ratio::whole(u128::from(number))
}

/// Parts of a course as stages.
fn joined(parts: &[Segment]) -> Stages {
    let mut stages = Stages::new();
    let mut level = Ratio::whole(0);
    for part in parts {
        if part.first != level {
            stages.push((0, part.first));
        }
        stages.push((part.to - part.from, part.last));
        level = part.last;
    }
    stages
}

impl Group {
    /// The course of a group whose threads JMeter schedules, beside groups that have one of their own. `None`
    /// if loops end it.
    pub(super) fn to_course(&self) -> Option<Course> {
        let length = self.duration?.checked_mul(SECOND)?;
        let rise = self.ramp.checked_mul(SECOND)?.min(length);
        let level = threads_of(self.threads);
        let reached = match self.ramp.checked_mul(SECOND)? {
            0 => level,
            ramp => level.times(Ratio::new(u128::from(rise), u128::from(ramp))?)?,
        };
        let stages = vec![(rise, reached), (length - rise, level)];
        let level = Level::Stages(Ratio::whole(0), stages);
        let start = self.delay.checked_mul(SECOND)?;
        Some(Course { start, is_rate: false, level, at: self.at.clone() })
    }
}
