//! From the raw values to a plan.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_core::Redaction;
use plimsoll_document::{Files, LoadedDocument, Problem, Problems, RawValue};
use plimsoll_metrics::{Goodput, RateUnit};
use plimsoll_scenario::PatternRoom;
use plimsoll_schedule::{parse_count, parse_duration};
use plimsoll_wire::http1::Limits;

use crate::assembly::Parts;
use crate::connections::Demand;
use crate::connections::Usage;
use crate::crud::Crud;
use crate::draft::Requests;
use crate::grants::Grants;
use crate::load::{PerConnection, requests_per_iteration};
use crate::loading::is_plan_name;
use crate::phases::Phased;
use crate::plan::first_joining;
use crate::protocol::ProtocolPreference;
use crate::{
    BackendChoice, Environment, Load, Pacing, Plan, PlanPatch, parse_backend, parse_pacing, parse_size,
};

/// Limit for a whole response (wrk's is 2 s, hey's 20 s): long enough that a server which freezes for a while
/// still answers, so that its freeze is measured and not cut off.
const DEFAULT_TIMEOUT: Nanos = Nanos::from_secs(30);

/// Limit for a connection: three retransmitted SYNs (1 s, 2 s, 4 s) fit in.
const DEFAULT_CONNECT_TIMEOUT: Nanos = Nanos::from_secs(10);

/// Redirects in a row that `--follow-redirects` allows when it names no number: more are a loop.
const DEFAULT_REDIRECTS: u32 = 10;

/// Smallest and largest limit of a response head, in bytes: below 1 KiB ordinary servers fail, and every
/// connection may have to buffer one head.
const HEAD_BYTES: std::ops::RangeInclusive<u64> = 1024..=16 * 1024 * 1024;

/// Endings of files that a plan may have replaced: those of sources, programs and plans are not among them.
const OUTPUT_ENDINGS: [&str; 7] = ["csv", "tsv", "json", "jsonl", "ndjson", "log", "txt"];

impl Plan {
    /// Parses and checks everything that was typed, fills in the defaults, and compiles the requests.
    ///
    /// # Errors
    ///
    /// Everything that is wrong, at once.
    pub fn resolve(patch: PlanPatch, files: &dyn Files) -> Result<Self, Problems> {
        Self::resolve_in(patch, files, &BTreeMap::new())
    }

    /// Resolves as [`resolve`](Self::resolve) does a plan file that may name variables of an environment.
    ///
    /// # Errors
    ///
    /// Everything that is wrong, at once.
    pub fn resolve_in(
        patch: PlanPatch,
        files: &dyn Files,
        environment: &dyn Environment,
    ) -> Result<Self, Problems> {
        patch.parts.within(|| Self::resolve_within(patch, files, environment))
    }

    /// Resolves the flags with the parts of the plan as the current ones.
    fn resolve_within(
        patch: PlanPatch,
        files: &dyn Files,
        environment: &dyn Environment,
    ) -> Result<Self, Problems> {
        let document = patch.document.clone();
        let redaction = Redaction::new(patch.redact.iter().map(|given| given.text.trim()));
        let problems = Problems::default();
        let grants = Grants::of(&patch);
        let mut resolver = Resolver {
            files,
            environment,
            document,
            grants,
            redaction,
            problems,
            patterns: PatternRoom::default(),
            named: RefCell::default(),
        };
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
    pub(crate) environment: &'a dyn Environment,
    /// The plan file, if there is one.
    pub(crate) document: Option<Arc<LoadedDocument>>,
    /// Permissions of the plan file.
    pub(crate) grants: Grants,
    /// Secrets to hide in names and URLs of the plan.
    pub(crate) redaction: Redaction,
    pub(crate) problems: Problems,
    /// Room for the regular expressions of all its parts.
    pub(crate) patterns: PatternRoom,
    /// The real paths of the files that the plan has read.
    named: RefCell<Vec<PathBuf>>,
}

impl Resolver<'_> {
    /// Reports a problem; returns `None` for `return self.fail(…)`.
    pub(crate) fn fail<T>(&mut self, problem: Problem) -> Option<T> {
        self.problems.push(problem);
        None
    }

    /// Reads a file, which has to be permitted if it is the plan that names it.
    pub(crate) fn content(&self, path: &Path, by_plan: bool) -> io::Result<Vec<u8>> {
        self.permitted(path, by_plan)?;
        self.files.read(path)
    }

    /// Checks that a file may be read, if it is the plan that names it.
    pub(crate) fn permitted(&self, path: &Path, by_plan: bool) -> io::Result<()> {
        let own = self.document.as_ref().map_or(Path::new(""), |document| &document.folder);
        let Some(own) = self.grants.folder(own, by_plan) else { return Ok(()) };
        self.named.borrow_mut().extend(self.files.real(path));
        self.grants.reading(self.files, own, path)
    }

    /// Checks that requests may go to a unix socket, if it is the plan that names it.
    pub(crate) fn connectable(&self, path: &Path, by_plan: bool) -> io::Result<()> {
        let own = self.document.as_ref().map_or(Path::new(""), |document| &document.folder);
        let Some(own) = self.grants.folder(own, by_plan) else { return Ok(()) };
        self.grants.connecting(self.files, own, path)
    }

    /// The file that a value names: relative to the plan's folder if the value stands in the plan.
    pub(crate) fn path(&self, given: &RawValue, name: &str) -> PathBuf {
        match (&self.document, given.place) {
            (Some(document), Some(_)) => document.path(name),
            _ => PathBuf::from(name),
        }
    }

    /// Checks that the files which the plan has written, and the one that steers it, are where it may have
    /// them, once it is known which files it reads.
    fn check_outputs(&mut self, patch: &PlanPatch) {
        let written = [&patch.stats, &patch.log, &patch.stream_log, &patch.failed];
        let written: Vec<&RawValue> = written.into_iter().flatten().collect();
        for (number, given) in written.iter().enumerate() {
            let name = given.text.trim();
            // Devices may take the lines of several.
            let is_file = name != "-" && !name.starts_with("/dev/");
            if is_file && written[..number].iter().any(|other| other.text.trim() == name) {
                let problem = given.problem(format!("{}: `{name}` is to be written twice", given.by));
                self.problems.push(problem.with_hint("give each a file of its own"));
            }
        }
        let steering = patch.rate_file.iter().map(|given| (given, false));
        for (given, is_written) in written.into_iter().map(|given| (given, true)).chain(steering) {
            let name = given.text.trim();
            if (given.place.is_none() && !self.grants.confines_flags()) || name == "-" {
                continue;
            }
            let path = Path::new(name);
            let mut permitted = self.grants.writing(self.files, path);
            if is_written {
                permitted = permitted.and_then(|()| self.not_an_input(path));
            }
            if let Err(error) = permitted {
                let message = format!("{}: `{name}` cannot be written: {error}", given.by);
                let problem = given.problem(message);
                let hint = "logs of a plan lie below the folder in which the command runs; --allow-files DIR \
                            permits those below DIR, and a flag names any";
                self.problems.push(problem.with_hint(hint));
            }
        }
    }

    /// Checks that a file is not the plan or its data, nor looks as if it were something else than an output.
    fn not_an_input(&self, path: &Path) -> io::Result<()> {
        if self.grants.is_plan_of_flags {
            return Ok(());
        }
        let own = self.document.as_ref().and_then(|plan| self.files.real(Path::new(plan.name())).ok());
        if let Ok(real) = self.files.real(path)
            && (own.as_ref() == Some(&real) || self.named.borrow().contains(&real))
        {
            return Err(io::Error::other("the plan reads it"));
        }
        let ending = path.extension().unwrap_or_default();
        let is_like_one = OUTPUT_ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known));
        if is_like_one || self.files.kind(path).is_none() {
            return Ok(());
        }
        let endings = OUTPUT_ENDINGS.join(", .");
        Err(io::Error::other(format!("it is there, and its name ends in none of .{endings}")))
    }

    /// Parses a value, if it was given. `None`: it was, and is wrong.
    pub(crate) fn read<T, E: Display>(
        &mut self,
        given: Option<&RawValue>,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<Option<T>> {
        let Some(given) = given else { return Some(None) };
        if given.reported {
            return None;
        }
        match parse(given.text.trim()) {
            Ok(value) => Some(Some(value)),
            Err(error) => {
                let mut problem = Problem::from_line(&format!("{}: {error}", given.by)).at(given.place);
                if let Some(habit) = given.habit {
                    problem.hint = Some(habit.to_owned());
                }
                self.fail(problem)
            }
        }
    }

    /// Checks a value that could be parsed: its text was understood, so hints about habits from other tools
    /// do not apply.
    pub(crate) fn check<T>(
        &mut self,
        given: Option<&RawValue>,
        value: Option<Option<T>>,
        wrong: impl FnOnce(&T) -> Option<String>,
    ) -> Option<Option<T>> {
        if let (Some(Some(read)), Some(given)) = (&value, given)
            && let Some(message) = wrong(read)
        {
            return self.fail(given.problem(format!("{}: {message}", given.by)));
        }
        value
    }

    /// Reads a duration above zero.
    pub(crate) fn read_duration(&mut self, given: Option<&RawValue>) -> Option<Option<Nanos>> {
        let duration = self.read(given, parse_duration);
        self.check(given, duration, |&duration| (duration == Nanos::ZERO).then(above_zero))
    }

    /// Reads a whole number in a range.
    pub(crate) fn read_number(
        &mut self,
        given: Option<&RawValue>,
        range: std::ops::RangeInclusive<u64>,
    ) -> Option<Option<u64>> {
        let number = self.read(given, parse_count);
        self.check(given, number, |number| match number {
            number if range.contains(number) => None,
            number if number < range.start() => Some(format!("must be at least {}", range.start())),
            _ => Some(format!("must be at most {}", range.end())),
        })
    }

    /// [`read_number`](Self::read_number) for numbers of 32 bits.
    pub(crate) fn read_small(
        &mut self,
        given: Option<&RawValue>,
        range: std::ops::RangeInclusive<u32>,
    ) -> Option<Option<u32>> {
        let number = self.read_number(given, u64::from(*range.start())..=u64::from(*range.end()))?;
        Some(number.map(|number| u32::try_from(number).unwrap_or(*range.end())))
    }

    fn plan(&mut self, patch: &PlanPatch) -> Option<Plan> {
        let plan = self.whole_plan(patch);
        self.check_outputs(patch);
        plan
    }

    fn whole_plan(&mut self, patch: &PlanPatch) -> Option<Plan> {
        let preference = self.preference(patch);
        let crud = self.crud(patch);
        // The value that a wrong flag was meant to set is unknown: the rest is read as if the flag were
        // absent, and problems that would only follow from that are left out.
        let spoken = preference.clone().unwrap_or_default();
        let scenario = crud.as_ref().and_then(Option::as_ref);
        let document = patch.document.as_deref();
        let form_is_right = document.is_none_or(|loaded| loaded.document.check(&mut self.problems));
        let requests = match document {
            Some(loaded) if !loaded.document.scenarios.is_empty() => {
                self.refuse_second_scenarios(patch);
                self.compiled(patch, loaded, form_is_right, &spoken)
            }
            _ => self.requests(patch, &spoken, scenario),
        };
        let phased = self.phases(patch);
        let of_flags = patch.rate.is_some() || patch.stages.is_some() || patch.rps.is_some();
        // Without a right load either model may be meant: problems of the closed one alone are not reported.
        let is_open = |phased: &Option<Phased>| phased.as_ref().map_or(of_flags, Phased::is_open);
        let open = phased.as_ref().is_none_or(is_open);
        let users = phased.as_ref().and_then(|phased| self.users(patch, phased.as_ref()));
        let sharding = self.sharding(patch);
        let demand = Demand {
            open,
            shards: sharding.map_or((1, 1), |sharding| (sharding.held, sharding.shard.of)),
            users: users.as_ref().and_then(Option::as_ref),
            iterations: self.read_number(patch.iterations.as_ref(), 1..=u64::MAX).flatten(),
            targets: requests.as_ref().map_or(1, |requests| requests.targets.len()),
            closes: requests.as_ref().is_some_and(|requests| requests.closes),
            http2: preference.as_ref().map(ProtocolPreference::may_be_http2),
        };
        if let Some(requests) = &requests {
            self.check_websocket(patch, &requests.targets);
        }
        let usage = self.connections(patch, &demand);
        let rate_of = self.rate_of(patch, open, scenario.is_some());
        let dealing = self.dealing(patch);
        if let (Some(unit), Some(requests)) = (rate_of, &requests) {
            self.check_first_requests(patch, unit, &requests.scenarios);
        }
        let per_connection = match (&usage, &requests) {
            (Some(usage), Some(requests)) => self.per_connection(patch, usage, requests, (rate_of, scenario)),
            _ => None,
        };
        let joining = requests.as_ref().map_or(Nanos::ZERO, |requests| first_joining(&requests.scenarios));
        let schedule = match (phased, &users) {
            (Some(phased), Some(users)) => {
                self.schedule(patch, per_connection.as_ref(), phased, users.as_ref(), joining)
            }
            _ => None,
        };
        let limits = self.limits(patch);
        let http2 = preference.as_ref().and_then(|preference| self.http2(patch, preference));
        let client_faults = self.client_faults(patch);
        let judging = self.judging(patch);
        let prometheus = self.prometheus(patch);
        let goodput = self.read(patch.goodput.as_ref(), Goodput::parse);
        let trace_link = self.trace_link(patch);
        self.check_redaction(patch);
        let (requests, schedule, limits, usage) = (requests?, schedule?, limits?, usage?);
        let (http2, _, (thresholds, statistics)) = (http2?, crud?, judging?);
        let sharding = sharding?;
        let judged = thresholds.iter().map(|judged| judged.spec.clone()).collect();
        let load = match schedule.profile {
            Some((profile, process)) => {
                Load::Open { profile, process, rate_of: rate_of?, overload: usage.overload }
            }
            None => Load::Closed,
        };
        let plan = Parts {
            requests,
            load,
            users: schedule.users,
            phases: schedule.phases,
            end: schedule.end,
            warmup: schedule.warmup,
            limits,
            usage,
            http2,
            sharding,
            dealing: dealing?,
            client_faults: client_faults?,
            thresholds: judged,
            statistics,
            prometheus: prometheus?,
            goodput: goodput?,
            trace_link: trace_link?,
            redaction: self.redaction.clone(),
        };
        let plan = plan.into_plan(patch);
        self.check_thresholds(&thresholds, &plan);
        self.check_goodput(patch, &plan);
        self.check_queries(patch, &plan);
        self.check_traces(patch, &plan);
        self.check_user_rows(&plan);
        Some(plan)
    }

    /// Returns the unit that `--rps` counts in; `None` if it is not given, or makes no sense.
    fn per_connection(
        &mut self,
        patch: &PlanPatch,
        usage: &Usage,
        requests: &Requests,
        (rate_of, crud): (Option<RateUnit>, Option<&Crud>),
    ) -> Option<PerConnection> {
        let (connections, opening) = (usage.connections.initial, usage.connections.rate);
        let given = patch.rps.as_ref()?;
        let unit = |requests, iterations| Some(PerConnection { connections, requests, iterations, opening });
        if rate_of == Some(RateUnit::Requests) {
            return unit(1, 1);
        }
        if let Some(crud) = crud {
            return unit(u64::from(crud.steps()), 1);
        }
        match requests_per_iteration(&requests.scenarios) {
            Some((requests, iterations)) => unit(requests, iterations),
            None => {
                let message = format!("{}: how many requests an iteration has depends on the run", given.by);
                let hint = "give the rate of iterations with `rate` instead, or count requests with \
                            `rate_of: requests`";
                self.fail(given.problem(message).with_hint(hint))
            }
        }
    }

    /// Refuses flags for requests beside a plan that has its own.
    fn refuse_second_scenarios(&mut self, patch: &PlanPatch) {
        let of_steps = "the plan's steps define the requests; leave it out, or take a plan without scenarios";
        let of_one =
            "a run has one plan, which may have several scenarios; `plimsoll ab A.yaml B.yaml` compares two";
        let of_script = "a script of wrk changes the request of a URL; steps of a plan have a `script` each, and \
                         wscat's -s is --subprotocol";
        let flags = [
            (patch.urls.first(), of_steps),
            (patch.first_crud_flag(), of_steps),
            (patch.method.as_ref(), of_steps),
            (patch.body.as_ref(), of_steps),
            (patch.script.as_ref(), of_script),
        ];
        for (given, hint) in flags {
            let Some(given) = given else { continue };
            let (what, hint) = match given.by == "URL" {
                true if is_plan_name(given.text.trim()) => ("a second plan".to_owned(), of_one),
                true => ("a URL".to_owned(), hint),
                false => (given.by.to_string(), hint),
            };
            let problem = Problem::new(format!("{what} cannot be combined with a plan that has scenarios"));
            self.problems.push(problem.with_hint(hint));
        }
    }

    /// Refuses invalid names of secrets.
    fn check_redaction(&mut self, patch: &PlanPatch) {
        for given in &patch.redact {
            let name = given.text.trim();
            if name.is_empty() || name.contains(['=', '&', '?', ':', ' ']) {
                let message = format!("{}: `{}` is not a name", given.by, name.escape_debug());
                let hint = "name a query parameter, a header or a field of a body, such as `pin`";
                self.problems.push(given.problem(message).with_hint(hint));
            }
        }
    }

    /// Returns `true` if redirects are followed; an invalid flag is reported elsewhere.
    pub(crate) fn follows_redirects(&self, patch: &PlanPatch) -> bool {
        let given = patch.follow_redirects.as_ref().filter(|given| !given.reported);
        given.is_some_and(|given| parse_redirects(given.text.trim()).is_ok_and(|redirects| redirects > 0))
    }

    fn limits(&mut self, patch: &PlanPatch) -> Option<LimitPart> {
        let timeout = self.timeout(patch);
        let connect_timeout = self.read_duration(patch.connect_timeout.as_ref());
        let drain = self.read(patch.drain.as_ref(), parse_duration);
        let redirects = self.read(patch.follow_redirects.as_ref(), parse_redirects);
        let pacing = self.pacing(patch);
        let backend = self.read(patch.backend.as_ref(), parse_backend);
        let seed = self.seed(patch);
        let given = patch.max_head_bytes.as_ref();
        let head_bytes = self.read(given, parse_size);
        let head_bytes = self.check(given, head_bytes, |bytes| {
            (!HEAD_BYTES.contains(bytes)).then(|| "must be between 1KiB and 16MiB".to_owned())
        });
        let timeout = timeout?.unwrap_or(DEFAULT_TIMEOUT);
        Some(LimitPart {
            timeout,
            connect_timeout: connect_timeout?.unwrap_or(DEFAULT_CONNECT_TIMEOUT),
            drain: drain?,
            redirects: redirects?.unwrap_or(0),
            pacing: pacing?,
            backend: backend?.unwrap_or_default(),
            seed: seed?,
            head_bytes: head_bytes?.map_or(Limits::default().head_bytes, |bytes| bytes as usize),
        })
    }

    /// The pacing, which has a switch of its own for its most exact form.
    fn pacing(&mut self, patch: &PlanPatch) -> Option<Pacing> {
        let named = self.read(patch.pacing.as_ref(), parse_pacing)?;
        match (patch.precise.given(), &patch.pacing, named) {
            (Some(switch), Some(given), Some(other)) if other != Pacing::Precise => {
                let message = format!("{} and {} exclude each other", switch.by, given.by);
                let problem = Problem::new(message).at(given.place.or(switch.place));
                self.fail(problem.with_hint("leave one of them out"))
            }
            (Some(_), ..) => Some(Pacing::Precise),
            (None, _, named) => Some(named.unwrap_or_default()),
        }
    }

    /// The seed of every random choice.
    pub(crate) fn seed(&mut self, patch: &PlanPatch) -> Option<u64> {
        let seed = self.read(patch.seed.as_ref(), parse_seed);
        Some(seed?.unwrap_or(patch.default_seed))
    }

    /// The limit for a response, which has three names.
    fn timeout(&mut self, patch: &PlanPatch) -> Option<Option<Nanos>> {
        let timeout = self.read_duration(patch.timeout.as_ref());
        let stream_timeout = self.read_duration(patch.stream_timeout.as_ref());
        let given = patch.stream_timeout_interval_ms.as_ref();
        let milliseconds = self.read_number(given, 1..=u64::MAX / 1_000_000);
        let milliseconds = milliseconds.map(|number| number.map(Nanos::from_millis));
        let all = [
            (patch.timeout.as_ref(), timeout?),
            (patch.stream_timeout.as_ref(), stream_timeout?),
            (given, milliseconds?),
        ];
        let mut first: Option<(&RawValue, Nanos)> = None;
        for (given, limit) in all {
            let (Some(given), Some(limit)) = (given, limit) else { continue };
            match first {
                None => first = Some((given, limit)),
                Some((_, same)) if same == limit => {}
                Some((other, _)) => {
                    let message =
                        format!("{} and {} are one limit, and have different values", other.by, given.by);
                    let problem = Problem::new(message).at(given.place.or(other.place));
                    return self.fail(problem.with_hint("leave one of them out"));
                }
            }
        }
        Some(first.map(|(_, limit)| limit))
    }
}

/// The message about a zero where there must be something.
fn above_zero() -> String {
    "must be above 0".to_owned()
}

pub(crate) struct LimitPart {
    pub(crate) timeout: Nanos,
    pub(crate) connect_timeout: Nanos,
    pub(crate) drain: Option<Nanos>,
    pub(crate) redirects: u32,
    pub(crate) pacing: Pacing,
    pub(crate) backend: BackendChoice,
    pub(crate) seed: u64,
    pub(crate) head_bytes: usize,
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

fn parse_seed(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("`{text}` is not a whole number of 64 bits"))
}
