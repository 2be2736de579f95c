//! From what was typed to a plan.

use std::fmt::Display;

use plimsoll_core::Nanos;
use plimsoll_schedule::{parse_count, parse_duration};
use plimsoll_wire::http1::Limits;

use crate::connections::Demand;
use crate::{BackendChoice, Files, Given, Load, Pacing, Plan, PlanPatch, Problem, Problems, parse_size};

/// Limit for a whole response (wrk's is 2 s, hey's 20 s): long enough that a server which freezes for a while
/// still answers, so that its freeze is measured and not cut off.
const DEFAULT_TIMEOUT: Nanos = Nanos::from_secs(30);

/// Limit for a connection: three retransmitted SYNs (1 s, 2 s, 4 s) fit in.
const DEFAULT_CONNECT_TIMEOUT: Nanos = Nanos::from_secs(10);

/// Longest wait after the end of the load, unless a flag says more.
const DEFAULT_DRAIN: Nanos = Nanos::from_secs(5);

/// Redirects in a row that `--follow-redirects` allows when it names no number: more are a loop.
const DEFAULT_REDIRECTS: u32 = 10;

/// Smallest and largest limit of a response head, in bytes: below 1 KiB ordinary servers fail, and every
/// connection may have to buffer one head.
const HEAD_BYTES: std::ops::RangeInclusive<u64> = 1024..=16 * 1024 * 1024;

impl Plan {
    /// Parses and checks everything that was typed, fills in the defaults, and compiles the requests.
    ///
    /// # Errors
    ///
    /// Everything that is wrong, at once.
    pub fn resolve(patch: PlanPatch, files: &dyn Files) -> Result<Self, Problems> {
        let mut resolver = Resolver { files, problems: Problems::default() };
        match resolver.plan(&patch) {
            Some(plan) if resolver.problems.is_empty() => Ok(plan),
            _ => Err(resolver.problems),
        }
    }
}

/// Collects problems while parts of a plan are built.
///
/// Every part is a method that first reads all of its values and then checks them against each other; it
/// returns `None` once it has reported a problem, so that no problem is reported that only follows from
/// another.
pub(crate) struct Resolver<'a> {
    pub(crate) files: &'a dyn Files,
    pub(crate) problems: Problems,
}

impl Resolver<'_> {
    /// Reports a problem; returns `None` for `return self.fail(…)`.
    pub(crate) fn fail<T>(&mut self, problem: Problem) -> Option<T> {
        self.problems.push(problem);
        None
    }

    /// Parses a value, if it was given. `None`: it was, and is wrong.
    pub(crate) fn read<T, E: Display>(
        &mut self,
        given: Option<&Given>,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<Option<T>> {
        let Some(given) = given else { return Some(None) };
        match parse(given.text.trim()) {
            Ok(value) => Some(Some(value)),
            Err(error) => {
                let mut problem = Problem::from_line(&format!("{}: {error}", given.by));
                if let Some(habit) = given.habit {
                    problem.hint = Some(habit.to_owned());
                }
                self.fail(problem)
            }
        }
    }

    /// Checks a value that could be read: what is typed is understood, so a habit from elsewhere is no hint.
    pub(crate) fn check<T>(
        &mut self,
        given: Option<&Given>,
        value: Option<Option<T>>,
        wrong: impl FnOnce(&T) -> Option<String>,
    ) -> Option<Option<T>> {
        if let (Some(Some(read)), Some(given)) = (&value, given)
            && let Some(message) = wrong(read)
        {
            return self.fail(Problem::new(format!("{}: {message}", given.by)));
        }
        value
    }

    /// Reads a duration above zero.
    pub(crate) fn read_duration(&mut self, given: Option<&Given>) -> Option<Option<Nanos>> {
        let duration = self.read(given, parse_duration);
        self.check(given, duration, |&duration| (duration == Nanos::ZERO).then(above_zero))
    }

    /// Reads a whole number in a range.
    pub(crate) fn read_number(
        &mut self,
        given: Option<&Given>,
        range: std::ops::RangeInclusive<u64>,
    ) -> Option<Option<u64>> {
        let number = self.read(given, parse_count);
        self.check(given, number, |number| match number {
            number if range.contains(number) => None,
            number if number < range.start() => Some(format!("must be at least {}", range.start())),
            _ => Some(format!("must be at most {}", range.end())),
        })
    }

    /// [`read_number`](Self::read_number) for what is counted in 32 bits.
    pub(crate) fn read_small(
        &mut self,
        given: Option<&Given>,
        range: std::ops::RangeInclusive<u32>,
    ) -> Option<Option<u32>> {
        let number = self.read_number(given, u64::from(*range.start())..=u64::from(*range.end()))?;
        Some(number.map(|number| u32::try_from(number).unwrap_or(*range.end())))
    }

    fn plan(&mut self, patch: &PlanPatch) -> Option<Plan> {
        if patch.http2 {
            self.problems.push(
                Problem::new("HTTP/2 is not supported yet")
                    .with_hint("leave `--http2` out: the run speaks HTTP/1.1"),
            );
        }
        let requests = self.requests(patch);
        let schedule = self.schedule(patch);
        let limits = self.limits(patch);
        let demand = Demand {
            open: patch.rate.is_some() || patch.stages.is_some(),
            iterations: schedule.as_ref().and_then(|schedule| schedule.end.iterations),
            targets: requests.as_ref().map_or(1, |requests| requests.targets.len()),
            closes: requests.as_ref().is_some_and(|requests| requests.closes),
        };
        let usage = self.connections(patch, &demand);
        let (requests, schedule, limits, usage) = (requests?, schedule?, limits?, usage?);
        let load = match schedule.profile {
            Some((profile, process)) => Load::Open { profile, process, overload: usage.overload },
            None => Load::Closed,
        };
        Some(Plan {
            steps: requests.steps,
            targets: requests.targets,
            load,
            end: schedule.end,
            warmup: schedule.warmup,
            drain: limits.drain,
            threads: usage.threads,
            connections: usage.connections,
            timeout: limits.timeout,
            connect_timeout: limits.connect_timeout,
            redirects: limits.redirects,
            pacing: if patch.precise { Pacing::Precise } else { Pacing::Adaptive },
            backend: limits.backend,
            seed: limits.seed,
            limits: Limits { head_bytes: limits.head_bytes, ..Limits::default() },
            preflight: !patch.no_preflight,
        })
    }

    fn limits(&mut self, patch: &PlanPatch) -> Option<LimitPart> {
        let timeout = self.read_duration(patch.timeout.as_ref());
        let connect_timeout = self.read_duration(patch.connect_timeout.as_ref());
        let drain = self.read(patch.drain.as_ref(), parse_duration);
        let redirects = self.read(patch.follow_redirects.as_ref(), parse_redirects);
        let backend = self.read(patch.backend.as_ref(), parse_backend);
        let seed = self.read(patch.seed.as_ref(), parse_seed);
        let given = patch.max_head_bytes.as_ref();
        let head_bytes = self.read(given, parse_size);
        let head_bytes = self.check(given, head_bytes, |bytes| {
            (!HEAD_BYTES.contains(bytes)).then(|| "must be between 1KiB and 16MiB".to_owned())
        });
        let timeout = timeout?.unwrap_or(DEFAULT_TIMEOUT);
        Some(LimitPart {
            timeout,
            connect_timeout: connect_timeout?.unwrap_or(DEFAULT_CONNECT_TIMEOUT),
            drain: drain?.unwrap_or(timeout.min(DEFAULT_DRAIN)),
            redirects: redirects?.unwrap_or(0),
            backend: backend?.unwrap_or_default(),
            seed: seed?.unwrap_or(patch.default_seed),
            head_bytes: head_bytes?.map_or(Limits::default().head_bytes, |bytes| bytes as usize),
        })
    }
}

/// The message about a zero where there must be something.
fn above_zero() -> String {
    "must be above 0".to_owned()
}

struct LimitPart {
    timeout: Nanos,
    connect_timeout: Nanos,
    drain: Nanos,
    redirects: u32,
    backend: BackendChoice,
    seed: u64,
    head_bytes: usize,
}

/// The flag without a number means the default.
fn parse_redirects(text: &str) -> Result<u32, String> {
    if text.is_empty() {
        return Ok(DEFAULT_REDIRECTS);
    }
    match text.parse() {
        Ok(redirects) if redirects <= 100 => Ok(redirects),
        _ => Err(format!("`{text}` is not a number from 0 to 100")),
    }
}

fn parse_backend(text: &str) -> Result<BackendChoice, String> {
    match text {
        "auto" => Ok(BackendChoice::Auto),
        "epoll" => Ok(BackendChoice::Epoll),
        "uring" | "io_uring" => Ok(BackendChoice::Uring),
        _ => Err(format!("`{text}` is not one of auto, epoll, uring")),
    }
}

fn parse_seed(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("`{text}` is not a whole number of 64 bits"))
}
