//! Number and use of connections.

use core::net::IpAddr;

use plimsoll_core::Nanos;
use plimsoll_document::{Place, Problem, RawValue};
use plimsoll_schedule::parse_rate;

use crate::resolve::Resolver;
use crate::users::Users;
use crate::{Connections, Family, Overload, PlanPatch};

/// Connections of the closed model: the number in the documentation of wrk and h2load, and enough to keep a
/// server of a few cores busy.
const DEFAULT_CONNECTIONS: u32 = 64;

/// Connections that an open run with `grow` opens before its start: enough for most rates at most response
/// times (Little's law: 16 carry 16,000/s at 1 ms), and few enough to leave the growth visible.
const INITIAL_CONNECTIONS: u32 = 16;

/// Most connections of an open run without `-c`: below the 28,232 local ports of a default Linux.
const MOST_CONNECTIONS: u32 = 10_000;

/// Concurrent streams of an HTTP/2 connection in the open model, where they are a limit and not the number of
/// users: the least that servers should allow (RFC 9113 section 6.5.2).
const OPEN_STREAMS: u32 = 100;

/// Interval at which names are resolved again: that of many load balancers, whose records live for 60 s.
pub(crate) const RESOLVE_EVERY: Nanos = Nanos::from_secs(30);

/// Most concurrent streams of a connection: as many as the largest depth of a pipeline. Servers allow 100 to
/// 1000.
const LARGEST_STREAMS: u32 = 65_536;

/// Demands of the rest of the plan on the connections.
pub(crate) struct Demand<'a> {
    /// `true` in the open model.
    pub(crate) open: bool,
    /// Shards of the load that this process has, and shards in all; each has as many threads.
    pub(crate) shards: (u32, u32),
    pub(crate) iterations: Option<u64>,
    /// Servers with pools of their own.
    pub(crate) targets: usize,
    /// `true` if a header asks for every connection to be closed.
    pub(crate) closes: bool,
    /// `true` if connections may speak HTTP/2; `None` if that is not known.
    pub(crate) http2: Option<bool>,
    /// Closed model: the users, if their number is not that of the connections.
    pub(crate) users: Option<&'a Users>,
}

/// The connection side of a plan.
pub(crate) struct Usage {
    pub(crate) connections: Connections,
    pub(crate) overload: Overload,
    pub(crate) threads: u32,
}

/// The name and place of a setting that takes part in a problem, given or not.
struct Named<'a> {
    by: &'a str,
    place: Option<Place>,
}

impl<'a> Named<'a> {
    fn of(given: Option<&'a RawValue>, default: &'a str) -> Self {
        Self { by: given.map_or(default, |given| &given.by), place: given.and_then(|given| given.place) }
    }

    fn problem(&self, message: String) -> Problem {
        Problem::new(message).at(self.place)
    }
}

impl Resolver<'_> {
    /// Reads the flags about connections.
    pub(crate) fn connections(&mut self, patch: &PlanPatch, demand: &Demand<'_>) -> Option<Usage> {
        let given = self.read_small(patch.connections.as_ref(), 1..=u32::MAX);
        let threads = self.read_small(patch.threads.as_ref(), 1..=1024);
        let depth = self.read_small(patch.pipeline.as_ref(), 1..=65_536);
        let streams = self.streams(patch, demand);
        let max_requests = self.read_number(patch.max_requests_per_connection.as_ref(), 1..=u64::MAX);
        let overload = self.read(patch.overload.as_ref(), parse_overload);
        let lifetime = self.read_duration(patch.connection_lifetime.as_ref());
        let inactivity = self.read_duration(patch.connection_inactivity.as_ref());
        let rate = self.read(patch.connection_rate.as_ref(), parse_rate);
        let resolve_every = self.resolve_every(patch.resolve_every.as_ref());
        let sources = self.sources(patch);
        if !demand.open {
            self.only_open(patch.overload.as_ref())?;
        }
        let (given, threads, depth) = (given?, threads?.unwrap_or(1), depth?.unwrap_or(1));
        let (max_requests, overload, (sources, family)) = (max_requests?, overload?, sources?);
        let (streams, lifetime, inactivity, rate) = (streams?, lifetime?, inactivity?, rate?);
        let resolve_every = resolve_every?;
        let keep_alive = !patch.disable_keepalive.is_on() && !demand.closes;
        if demand.http2 == Some(true) {
            self.check_http2_reuse(patch, keep_alive, streams, max_requests)?;
        } else {
            self.check_reuse(patch, keep_alive, depth, max_requests)?;
        }
        let streams = match (streams, demand.http2) {
            (Some(streams), _) => streams,
            (None, Some(true)) if demand.open => max_requests
                .map_or(OPEN_STREAMS, |most| OPEN_STREAMS.min(u32::try_from(most).unwrap_or(u32::MAX))),
            (None, _) => 1,
        };

        // Every worker needs a connection of its own to every target: any of its iterations may go there.
        let (held, of) = demand.shards;
        if threads % held != 0 {
            let message = format!("{threads} threads cannot share {held} shards evenly");
            let problem = Problem::new(message).at(patch.shard.as_ref().and_then(|given| given.place));
            return self
                .fail(problem.with_hint(format!("each shard has as many: use `-t {held}`, or a multiple")));
        }
        let workers = (threads / held).saturating_mul(of);
        let fewest = u32::try_from(demand.targets).unwrap_or(u32::MAX).saturating_mul(workers);
        self.check_share(patch, demand, given, workers, fewest)?;
        let overload = self.overload(patch, demand, overload, given)?;
        let few = demand.iterations.map_or(u32::MAX, |n| u32::try_from(n).unwrap_or(u32::MAX));
        let each = if demand.http2 == Some(true) { streams } else { depth };
        let (initial, max) = if let Some(users) = demand.users {
            self.connections_of_users(patch, users, given, each, fewest, workers)?
        } else if overload == Overload::Grow {
            let max = given.unwrap_or(MOST_CONNECTIONS).max(fewest);
            (INITIAL_CONNECTIONS.min(few).max(fewest).min(max), max)
        } else {
            let all = given.unwrap_or(DEFAULT_CONNECTIONS.min(few).max(fewest));
            (all, all)
        };
        let connections = Connections {
            initial,
            max,
            depth,
            streams,
            keep_alive,
            max_requests,
            lifetime,
            inactivity,
            rate,
            sources,
            family,
            resolve_every,
        };
        Some(Usage { connections, overload, threads })
    }

    /// Connections for users who open one when they need it: those before the start, and at most. `each` is
    /// how many users share one.
    fn connections_of_users(
        &mut self,
        patch: &PlanPatch,
        users: &Users,
        given: Option<u32>,
        each: u32,
        fewest: u32,
        threads: u32,
    ) -> Option<(u32, u32)> {
        let needed = users.peak().div_ceil(each);
        if let (Some(count), Some(connections)) = (given, &patch.connections)
            && count < needed
        {
            let message = format!(
                "{}: {count} connections are too few for the {} users of {}",
                connections.by,
                users.peak(),
                users.by.by
            );
            let hint = format!("leave it out, or use at least `-c {needed}`");
            return self.fail(connections.problem(message).with_hint(hint));
        }
        // Each thread has its share of the users, and all of them may go to any of the targets.
        let most = users.peak().div_ceil(threads).div_ceil(each).saturating_mul(fewest);
        let max = given.unwrap_or(most.max(fewest));
        Some((users.first().div_ceil(each).max(fewest).min(max), max))
    }

    /// Resolves the handling of arrivals that find every connection busy.
    fn overload(
        &mut self,
        patch: &PlanPatch,
        demand: &Demand<'_>,
        overload: Option<Overload>,
        connections: Option<u32>,
    ) -> Option<Overload> {
        let fixed = patch.rps.is_some();
        match (demand.open, overload, connections) {
            (false, ..) => Some(Overload::Queue),
            (true, Some(Overload::Grow), _) if fixed => {
                let named = Named::of(patch.overload.as_ref(), "--overload");
                let message = format!("{}: `grow` cannot be combined with a rate per connection", named.by);
                let problem = named.problem(message);
                let hint = "--rps fixes the number of connections; the total rate is --rate";
                self.fail(problem.with_hint(hint))
            }
            (true, Some(overload), _) => Some(overload),
            (true, None, Some(_)) => Some(Overload::Queue),
            (true, None, None) => Some(if fixed { Overload::Queue } else { Overload::Grow }),
        }
    }

    /// Checks the number of connections against the workers and users that share them.
    fn check_share(
        &mut self,
        patch: &PlanPatch,
        demand: &Demand<'_>,
        given: Option<u32>,
        threads: u32,
        fewest: u32,
    ) -> Option<()> {
        let (Some(count), Some(connections)) = (given, patch.connections.as_ref()) else {
            return Some(());
        };
        let by = &connections.by;
        // Users come and go: not each of them needs an iteration.
        let bound = !demand.open && demand.users.is_none();
        if let (true, Some(n), Some(iterations)) = (bound, demand.iterations, &patch.iterations)
            && n < u64::from(count)
        {
            let message = format!("{}: {n} is below the {count} connections of {by}", iterations.by);
            let hint = format!("every connection needs a request: use at most `-c {n}`");
            return self.fail(iterations.problem(message).with_hint(hint));
        }
        if count < threads {
            let by_threads = patch.threads.as_ref().map_or("--threads", |given| &given.by);
            let message =
                format!("{by_threads}: {threads} threads cannot share the {count} connections of {by}");
            let place = patch.threads.as_ref().and_then(|given| given.place).or(connections.place);
            let problem = Problem::new(message).at(place);
            let hint = match demand.shards.1 {
                1 => format!("use at most `-t {count}`"),
                _ => format!("every thread of every shard needs one: use at least `-c {threads}`"),
            };
            return self.fail(problem.with_hint(hint));
        }
        if count < fewest {
            let message =
                format!("{by}: {count} is too few for {} targets (threads: {threads})", demand.targets);
            let hint = format!("every thread needs one to every target: use at least `-c {fewest}`");
            return self.fail(connections.problem(message).with_hint(hint));
        }
        Some(())
    }

    /// Checks that the flags about the reuse of a connection do not contradict each other.
    fn check_reuse(
        &mut self,
        patch: &PlanPatch,
        keep_alive: bool,
        depth: u32,
        max_requests: Option<u64>,
    ) -> Option<()> {
        let pipeline = Named::of(patch.pipeline.as_ref(), "--pipeline");
        let most_named =
            Named::of(patch.max_requests_per_connection.as_ref(), "--max-requests-per-connection");
        if !keep_alive && depth > 1 {
            return self.fail(
                pipeline
                    .problem(format!("{} needs connections that are kept alive", pipeline.by))
                    .with_hint("leave `--disable-keepalive` and `Connection: close` out"),
            );
        }
        if let (Some(switch), true) = (patch.disable_keepalive.given(), max_requests.is_some_and(|n| n > 1)) {
            let message = format!("{} and {} exclude each other", most_named.by, switch.by);
            return self.fail(most_named.problem(message));
        }
        if let Some(most) = max_requests
            && u64::from(depth) > most
        {
            return self.fail(pipeline.problem(format!(
                "{}: {depth} requests in flight are more than the {most} of {}",
                pipeline.by, most_named.by
            )));
        }
        Some(())
    }

    /// Checks that the flags about the reuse of an HTTP/2 connection do not contradict each other. Nothing is
    /// pipelined there, and no request can ask for its connection to be closed.
    fn check_http2_reuse(
        &mut self,
        patch: &PlanPatch,
        keep_alive: bool,
        streams: Option<u32>,
        max_requests: Option<u64>,
    ) -> Option<()> {
        if let Some(given) = &patch.pipeline {
            let problem = given.problem(format!("{} has no effect with HTTP/2", given.by));
            return self.fail(problem.with_hint("requests in flight on one connection are streams: `-m N`"));
        }
        if !keep_alive {
            let switch = patch.disable_keepalive.given();
            let what = switch.map_or("`Connection: close`", |given| &given.by);
            return self.fail(
                Problem::new(format!("{what} has no effect with HTTP/2"))
                    .at(switch.and_then(|given| given.place))
                    .with_hint("write `--max-requests-per-connection 1`"),
            );
        }
        if let (Some(streams), Some(given), Some(most)) =
            (streams, patch.max_concurrent_streams.first(), max_requests)
            && u64::from(streams) > most
        {
            return self.fail(given.problem(format!(
                "{}: {streams} requests in flight are more than the {most} of {}",
                given.by,
                Named::of(patch.max_requests_per_connection.as_ref(), "--max-requests-per-connection").by
            )));
        }
        Some(())
    }

    /// Concurrent streams, if they are given.
    fn streams(&mut self, patch: &PlanPatch, demand: &Demand<'_>) -> Option<Option<u32>> {
        let mut streams = None;
        for given in &patch.max_concurrent_streams {
            let number = self.read_small(Some(given), 1..=LARGEST_STREAMS)?;
            if streams.is_some() && streams != number {
                let message = format!("{} is given twice, with different values", given.by);
                return self.fail(given.problem(message));
            }
            streams = number;
        }
        match patch.max_concurrent_streams.first() {
            Some(given) if demand.http2 == Some(false) => {
                self.fail(given.problem(format!("{} has no effect with HTTP/1.1", given.by)).with_hint(
                    "add `--http2`; requests in flight on one HTTP/1.1 connection are `--pipeline N`",
                ))
            }
            _ => Some(streams),
        }
    }

    /// Interval at which names are resolved again.
    fn resolve_every(&mut self, given: Option<&RawValue>) -> Option<Option<Nanos>> {
        match given {
            None => Some(Some(RESOLVE_EVERY)),
            Some(given) if given.text == "never" => Some(None),
            Some(_) => self.read_duration(given),
        }
    }

    /// Local addresses, and the family that they and the flags leave.
    fn sources(&mut self, patch: &PlanPatch) -> Option<(Vec<IpAddr>, Family)> {
        let mut sources = Vec::new();
        for given in &patch.source_ip {
            sources.push(self.read(Some(given), |text| {
                let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
                bare.parse::<IpAddr>().map_err(|_| format!("`{text}` is not an IP address"))
            }));
        }
        let sources: Vec<IpAddr> = sources.into_iter().collect::<Option<Option<Vec<_>>>>()??;
        if let (Some(ipv4), Some(ipv6)) = (patch.ipv4.given(), patch.ipv6.given()) {
            return self.fail(ipv6.problem(format!("{} and {} exclude each other", ipv4.by, ipv6.by)));
        }
        let (ipv4, ipv6) = (patch.ipv4.is_on(), patch.ipv6.is_on());
        let first = patch.source_ip.first();
        let by = first.map_or("--source-ip", |given| &given.by);
        if !sources.is_empty()
            && let Some(unix_socket) = &patch.unix_socket
        {
            let message = format!("{by} has no effect with {}", unix_socket.by);
            return self.fail(Problem::new(message).at(first.and_then(|given| given.place)));
        }
        let (v4, v6) = (sources.iter().any(IpAddr::is_ipv4), sources.iter().any(IpAddr::is_ipv6));
        if (v4 || ipv4) && (v6 || ipv6) {
            return self.fail(
                Problem::new(format!("{by}: IPv4 and IPv6 cannot be mixed in one run"))
                    .at(first.and_then(|given| given.place))
                    .with_hint("a connection from an IPv4 address reaches only IPv4 addresses"),
            );
        }
        let family = match (ipv4 || v4, ipv6 || v6) {
            (true, _) => Family::V4,
            (_, true) => Family::V6,
            _ => Family::Any,
        };
        Some((sources, family))
    }
}

fn parse_overload(text: &str) -> Result<Overload, String> {
    match text {
        "queue" => Ok(Overload::Queue),
        "drop" => Ok(Overload::Drop),
        "grow" => Ok(Overload::Grow),
        _ => Err(format!("`{text}` is not one of queue, drop, grow")),
    }
}
