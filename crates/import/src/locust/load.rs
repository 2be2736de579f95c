//! The load: the numbers of users over time, and the weights of scenarios.

use super::{Done, Options};
use crate::amount::{Ratio, nanos, proportions};
use crate::draft::text;
use crate::flow;
use crate::k6::Importer;
use crate::k6::load::{Course, Level};
use crate::k6::statement::each_expression;
use crate::k6::syntax::Kind;
use crate::k6::value::{Value, shown};

/// Nanoseconds in a second.
const NANOS: f64 = 1e9;

/// Largest weight that is written as it is: larger ones are rounded.
const LARGEST_WEIGHT: u128 = 10_000;

impl Importer<'_> {
    /// Gives the scenarios their weights: their parts of the iterations of all users.
    pub(super) fn weigh_users(&mut self, users: &[usize], done: &[Done]) {
        let mut ratios: Vec<Option<Ratio>> = vec![None; done.len()];
        let started: Vec<usize> =
            users.iter().copied().filter(|user| done.iter().any(|one| one.user == *user)).collect();
        // Users that wait for less carry out more tasks.
        let waits: Vec<f64> = started.iter().map(|user| mean_wait(*user, done)).collect();
        let by_time = waits.iter().all(|wait| *wait > 0.0);
        if waits.iter().any(|wait| (wait - waits[0]).abs() > 1e-9) {
            let becomes = match by_time {
                true => {
                    "users of classes with other waits are as many as there: the weights of their tasks are \
                     divided by the waits"
                }
                false => {
                    "users of some classes do not wait: how many tasks they carry out beside the others \
                     depends on the server; the weights are those of the classes"
                }
            };
            self.findings.note("wait_time", "", becomes);
        }
        for (user, wait) in started.iter().zip(&waits) {
            let weight = match self.of_class(*user, "weight").map(Value::number) {
                Some(Some(number)) if number > 0.0 => decimal(number),
                None => Some(Ratio::whole(1)),
                Some(_) => {
                    let span = self.classes[*user].class.span;
                    self.note(span, "its weight is not a number above 0 that is known: it is 1");
                    Some(Ratio::whole(1))
                }
            };
            let total = done
                .iter()
                .filter(|one| one.user == *user)
                .try_fold(Ratio::whole(0), |sum, one| sum.plus(one.share));
            let per_time = if by_time && started.len() > 1 { decimal(*wait) } else { Some(Ratio::whole(1)) };
            for (ratio, one) in ratios.iter_mut().zip(done).filter(|(_, one)| one.user == *user) {
                *ratio = one
                    .share
                    .divided_by(total.unwrap_or(Ratio::whole(1)))
                    .and_then(|part| part.times(weight?))
                    .and_then(|part| part.divided_by(per_time?))
                    .and_then(|part| part.divided_by(Ratio::whole(u128::from(one.turns))));
            }
        }
        let exact: Option<Vec<Ratio>> = ratios.iter().copied().collect();
        let is_small = |ratios: &[Ratio]| {
            proportions(ratios).is_some_and(|all| all.iter().all(|weight| *weight <= LARGEST_WEIGHT))
        };
        let ratios = match exact {
            Some(exact) if is_small(&exact) => exact,
            _ => {
                let becomes = "the weights of scenarios are rounded to parts of 1000";
                self.findings.note("weight", "", becomes);
                let rough: Vec<f64> = done.iter().map(|one| rough(one, done, self)).collect();
                let largest = rough.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
                let part = |number: &f64| Ratio::whole(((number / largest * 1e3).round() as u128).max(1));
                rough.iter().map(part).collect()
            }
        };
        if flow::weigh(&mut self.document, &ratios).is_none() {
            self.findings.problem("weight", "the weights of tasks are too far apart");
        }
    }

    /// The numbers of users over time: those of a shape, or of the options of the import.
    pub(super) fn course(&mut self, shape: Option<usize>, options: &Options) {
        if self.findings.has_problems() {
            return;
        }
        if let Some(stages) = shape.and_then(|shape| self.shape(shape)) {
            let course = Course {
                start: 0,
                is_rate: false,
                level: Level::Stages(Ratio::whole(0), stages),
                at: "LoadTestShape".to_owned(),
            };
            if self.curve(&[course]).is_none() {
                let hint = "a stage has a `duration` and `users` above 0";
                self.findings.hinted("LoadTestShape", "it has no load", hint);
            }
            return;
        }
        let users = options.users.unwrap_or(1);
        let length = options.run_time.as_deref().map(|given| {
            let seconds =
                given.trim().parse::<f64>().ok().map(|seconds| Value::String(format!("{seconds}s")));
            let value = seconds.unwrap_or_else(|| Value::text(given));
            crate::k6::call::duration(&value).filter(|nanos| *nanos > 0)
        });
        let length = match length {
            Some(None) => {
                let hint = "write it as 300s, 20m, 1h30m, or seconds";
                self.findings.hinted("--run-time", "it is not a time", hint);
                return;
            }
            Some(length) => length,
            None => None,
        };
        if users == 0 || options.spawn_rate.is_some_and(|rate| rate.is_nan() || rate <= 0.0) {
            self.findings.problem("--users, --spawn-rate", "they are numbers above 0");
            return;
        }
        if options.users.is_none() && length.is_none() {
            let becomes = "a locustfile does not say how many users there are, or for how long: it is one \
                           user; \
                           give --users, --spawn-rate and --run-time to the import, or the load under `run`";
            self.findings.note("run", "", becomes);
        }
        let rate = options.spawn_rate.unwrap_or(1.0);
        let rise = ((users as f64 / rate) * NANOS).min(1e18).round() as u64;
        let Some(length) = length else {
            if options.spawn_rate.is_some() && users > 1 {
                let becomes = "without --run-time all users start at once";
                self.findings.note("--spawn-rate", &shown(rate), becomes);
            }
            self.settings.users = text(users.to_string());
            return;
        };
        let all = Ratio::whole(u128::from(users));
        let level = if rate >= users as f64 {
            // The users of the first second start at once.
            Level::Constant(all, length)
        } else if length <= rise {
            let reached = (rate * length as f64 / NANOS).ceil().max(1.0);
            Level::Stages(Ratio::whole(0), vec![(length, Ratio::whole(reached as u128))])
        } else {
            Level::Stages(Ratio::whole(0), vec![(rise, all), (length - rise, all)])
        };
        self.curve(&[Course { start: 0, is_rate: false, level, at: "--users".to_owned() }]);
    }

    /// The stages of a shape in the form of Locust's documentation: `duration` is when a stage ends.
    fn shape(&mut self, shape: usize) -> Option<Vec<(u64, Ratio)>> {
        let span = self.classes[shape].class.span;
        let mut reads = false;
        if let Some(Value::Function(tick)) = self.of_class(shape, "tick") {
            let body = std::sync::Arc::clone(&tick.function);
            each_expression(&body.body, &mut |expression| {
                reads |=
                    matches!(&expression.kind, Kind::Member(_, name) | Kind::Name(name) if name == "stages");
            });
        }
        let stages = match (reads, self.of_class(shape, "stages")) {
            (true, Some(Value::Array(stages))) => stages.to_vec(),
            _ => {
                let becomes = "this shape is a program, which is not carried out: give the users with \
                               --users, or \
                               `user_stages` under `run`";
                self.note(span, becomes);
                return None;
            }
        };
        let mut course = Vec::new();
        let (mut end, mut level) = (0.0_f64, 0.0_f64);
        for stage in &stages {
            let number = |name: &str| stage.member(name).and_then(Value::number).filter(|n| *n >= 0.0);
            let (Some(until), Some(users)) = (number("duration"), number("users")) else {
                self.note(span, "a stage has no `duration` and `users` that are known: it is left out");
                continue;
            };
            if stage.member("user_classes").is_some() {
                self.note(span, "users of all classes take part in all stages: `user_classes` is left out");
            }
            if until <= end {
                self.note(span, "a stage ends before it begins: it is left out, as there");
                continue;
            }
            let rate = number("spawn_rate").filter(|rate| *rate > 0.0).unwrap_or(1.0);
            let rise = ((users - level).abs() / rate).min(until - end);
            let target = decimal(users.round())?;
            course.push((nanos(rise), target));
            course.push((nanos(until - end - rise), target));
            (end, level) = (until, users);
        }
        Some(course)
    }
}

/// Seconds that a user of this class waits for each of its tasks, on average.
fn mean_wait(user: usize, done: &[Done]) -> f64 {
    let (mut waits, mut shares) = (0.0, 0.0);
    for one in done.iter().filter(|one| one.user == user) {
        let share = approximate(one.share);
        waits += share * one.wait;
        shares += share;
    }
    if shares > 0.0 { waits / shares } else { 0.0 }
}

/// The weight of a scenario, not exactly.
fn rough(one: &Done, done: &[Done], importer: &Importer<'_>) -> f64 {
    let weight = importer.of_class(one.user, "weight").and_then(Value::number).unwrap_or(1.0);
    let shares: f64 =
        done.iter().filter(|other| other.user == one.user).map(|other| approximate(other.share)).sum();
    let wait = mean_wait(one.user, done);
    let per_time = if wait > 0.0 { wait } else { 1.0 };
    approximate(one.share) / shares * weight / per_time / one.turns as f64
}

fn approximate(ratio: Ratio) -> f64 {
    ratio.nanos().map_or(f64::MAX, |nanos| nanos as f64 / NANOS)
}

/// A number with at most six decimals as an exact one.
fn decimal(number: f64) -> Option<Ratio> {
    Ratio::decimal(&format!("{number:.6}"))
}
