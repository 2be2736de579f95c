//! A worker's share of one target: its connections and its arrivals.

use std::collections::VecDeque;
use std::sync::Arc;

use plimsoll_core::{Arrival, Nanos, Random, Shard};
use plimsoll_plan::{Dealing, DynamicOrigin, Load, Plan, Protocol, Scenario, Target};
use plimsoll_scenario::WeightedRoundRobin;
use plimsoll_scenario::reference::Origin;
use plimsoll_schedule::{Arrivals, Profile};

use crate::addresses::{TargetAddress, TargetAddresses};
use crate::demand::Spare;
use crate::directory::ResolvedServer;
use crate::pacing::Awaiting;
use crate::request::InFlight;

/// Sets the order in which iterations are dealt apart from the other random numbers of a worker.
const DEALING_SEED: u64 = 0x64_65_61_6c;
/// First delay before a user of the closed model tries again after a failed connect. Then it waits for as
/// long as the target has been failing, which doubles the delay each time, up to [`BACKOFF_MAX`].
const BACKOFF_MIN: Nanos = Nanos::from_millis(1);
/// Longest such delay: a dead target costs one attempt per user and second.
const BACKOFF_MAX: Nanos = Nanos::from_secs(1);

/// The arrivals of one worker, of which those are a pool's that are dealt to its scenarios.
#[derive(Debug)]
struct Stream {
    arrivals: Arrivals,
    /// Workers of the run: their arrivals alternate.
    workers: u64,
    /// Begin of the measured part: arrivals that are due earlier are not counted.
    measured_from: Nanos,
    /// The pool's arrivals that were taken, of the measured part.
    taken: u64,
    /// Position up to which due arrivals were counted.
    scout: Option<Scout>,
}

/// Arrivals that are due and were not taken, counted without taking them: each of them once, however often
/// they are asked for.
#[derive(Debug)]
struct Scout {
    arrivals: Arrivals,
    /// The pool's arrivals before them, taken or not, of the measured part.
    counted: u64,
}

/// Arrivals that were taken at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Passed {
    pub(crate) all: u64,
    /// Arrivals of the measured part.
    pub(crate) measured: u64,
    /// Arrivals of the measured part whose scenario has no data any more.
    pub(crate) without_data: u64,
}

/// Arrivals that are drawn at the end of a load to be counted, at some ten nanoseconds each: about a second.
const MOST_DRAWN: u64 = 100_000_000;

/// The name of a server.
#[derive(Debug)]
pub(crate) struct Name {
    /// `host[:port]`.
    pub(crate) authority: Vec<u8>,
    /// Host of the server, without the port.
    pub(crate) host: Vec<u8>,
}

impl Name {
    fn all(target: &Target) -> Vec<Self> {
        let pool = target.pool.iter().map(|member| &member.authority);
        let only = target.pool.is_empty().then_some(&target.authority);
        pool.chain(only).map(|authority| Self::new(authority)).collect()
    }

    fn new(authority: &str) -> Self {
        let host = match authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => authority,
        };
        Self { authority: authority.as_bytes().to_vec(), host: host.as_bytes().to_vec() }
    }
}

/// State of finding a server's addresses.
#[derive(Debug)]
pub(crate) enum ResolveState {
    /// The sites of the server are known.
    Known,
    /// The address of the server is being resolved: requests to it wait.
    Resolving,
    /// The server was not found, and is not looked for again before this instant.
    Failed { until: Nanos, reason: Arc<str> },
}

/// A worker's share of one target.
#[derive(Debug)]
pub(crate) struct TargetPool {
    /// Index into the plan's targets, and into the worker's peers; behind those of the plan that of a server
    /// which came up while the run goes on, and none before that is found.
    pub(crate) target: usize,
    /// The server's settings: protocol, TLS and addresses.
    pub(crate) server: Arc<Target>,
    /// `true` if its URLs are https.
    pub(crate) https: bool,
    /// Origin in the URL that led to a server which the plan does not name.
    pub(crate) origin: Option<DynamicOrigin>,
    /// Only servers that the plan does not name have to be found.
    pub(crate) resolve_state: ResolveState,
    /// Slots that can take a request, the longest idle first. May hold stale ones: check the connection.
    pub(crate) available: VecDeque<u32>,
    /// Connections that are established or being established.
    pub(crate) open: u32,
    /// Connections that are established.
    pub(crate) established: u32,
    /// Set once a connection was established, until one takes too long while there is no other.
    pub(crate) reached: bool,
    /// Open connections on which the server allows no streams.
    pub(crate) barred: u32,
    /// Number of connections to open before the start.
    pub(crate) initial: u32,
    /// Largest allowed number of connections.
    pub(crate) max: u32,
    /// Closed model with a ramp: connections that are to begin their users when they are open.
    pub(crate) unfilled: u32,
    /// Open model: whether something due finds no room.
    pub(crate) blocked: bool,
    /// Requests that a connection takes at once: the wanted number, until a server allows less.
    pub(crate) depth: u32,
    /// Requests that were started and have no connection yet, each with its deadline: all connections are
    /// busy, and no more are allowed.
    pub(crate) waiting: VecDeque<(Nanos, InFlight)>,
    /// `true` if steps have time limits of their own.
    mixed_timeouts: bool,
    /// The addresses of its connections.
    pub(crate) target_addresses: TargetAddresses,
    /// Names of its servers, by member of the pool.
    names: Vec<Name>,
    /// Set if scenarios begin at this target.
    pub(crate) begins: bool,
    /// Scenarios of its arrivals or users: those that begin here, or in the closed model all.
    scenarios: Vec<u32>,
    /// Instants at which these scenarios join.
    joinings: Vec<Nanos>,
    round_robin: WeightedRoundRobin,
    /// The only scenario of the plan, if there is nothing to deal.
    only: Option<u32>,
    /// Closed model: number of iterations dealt so far.
    turn: u64,
    stream: Option<Stream>,
    /// Arrivals from this index on are beyond the iterations that were asked for.
    arrivals_end: u64,
    /// Closed model with a number of users: how many there are, and how many there should be.
    users: u32,
    users_wanted: u32,
    failing_since: Option<Nanos>,
    /// Open model whose connections grow: the number of them that is not needed.
    pub(crate) spare: Spare,
    /// Rule for responses of this server: read at once, or at the next send.
    pub(crate) awaiting: Awaiting,
}

impl TargetPool {
    /// The pools of one worker, one per target of the plan.
    ///
    /// Worker w of W has the arrivals whose index leaves w modulo W, and deals them to the scenarios by their
    /// weights. A scenario belongs to the pool of its first step, which takes those arrivals and passes the
    /// others by: together the pools of all workers take exactly the schedule of the run. Users of the closed
    /// model all belong to the pool of the first scenario, and their iterations are dealt to all scenarios in
    /// the same way.
    pub(crate) fn all(plan: &Plan, addresses: &[Arc<[TargetAddress]>], worker: Shard) -> Vec<Self> {
        let targets = plan.targets.len() as u32;
        let connections_of = |total: u32, target: usize| {
            let mine = worker.share_of(u64::from(total));
            let share = Shard { index: target as u32, of: targets }.share_of(mine);
            (share as u32).max(1)
        };
        let arrivals_end = arrivals_end(plan);
        let begins_at =
            |scenario: u32| plan.steps[plan.scenarios[scenario as usize].steps.start as usize].target;
        // Any user runs any scenario, or the weights would be those of numbers of users, and the share of a
        // target would fall with its speed.
        let home = |scenario: u32| match (&plan.load, plan.dealing) {
            (Load::Open { .. }, _) => begins_at(scenario),
            (Load::Closed, Dealing::Apart(second)) if scenario >= second => begins_at(second),
            (Load::Closed, _) => begins_at(0),
        };
        let max = |target: usize| match (&plan.load, &plan.users) {
            // All users of the connections may be at one target.
            (Load::Closed, None) => worker.share_of(u64::from(plan.connections.max)) as u32,
            _ => connections_of(plan.connections.max, target),
        };
        (0..plan.targets.len())
            .map(|target| {
                let begins_here = |scenario: &u32| home(*scenario) == target;
                let scenarios: Vec<u32> = (0..plan.scenarios.len() as u32).filter(begins_here).collect();
                let stream = match &plan.load {
                    Load::Open { profile, process, .. } if !scenarios.is_empty() => {
                        let arrivals = Arrivals::new(profile, *process, plan.seed, worker);
                        Some(Stream {
                            arrivals,
                            workers: u64::from(worker.of),
                            measured_from: plan.warmup,
                            taken: 0,
                            scout: None,
                        })
                    }
                    _ => None,
                };
                let dealt = |scenario: &u32| {
                    let Scenario { weight, start_after, .. } = plan.scenarios[*scenario as usize];
                    // In the open model every pool gets all scenarios, in the closed one those that begin
                    // there.
                    let mine = stream.is_some() || scenarios.contains(scenario);
                    (if mine { weight } else { 0 }, start_after)
                };
                let round_robin: Vec<_> = (0..plan.scenarios.len() as u32).map(|s| dealt(&s)).collect();
                let only = match plan.scenarios.as_slice() {
                    [only] if only.start_after == Nanos::ZERO => Some(0),
                    _ => None,
                };
                Self {
                    target,
                    server: Arc::new(plan.targets[target].clone()),
                    https: plan.targets[target].tls.is_some(),
                    origin: None,
                    resolve_state: ResolveState::Known,
                    available: VecDeque::new(),
                    open: 0,
                    established: 0,
                    reached: false,
                    barred: 0,
                    initial: connections_of(plan.connections.initial, target),
                    max: max(target),
                    begins: (0..plan.scenarios.len() as u32).any(|scenario| begins_at(scenario) == target),
                    depth: depth_of(plan, &plan.targets[target]),
                    waiting: VecDeque::new(),
                    mixed_timeouts: plan.steps.iter().any(|step| step.timeout.or(step.deadline).is_some()),
                    unfilled: 0,
                    blocked: false,
                    names: Name::all(&plan.targets[target]),
                    target_addresses: TargetAddresses::new(
                        &plan.targets[target],
                        &addresses[target],
                        worker.index,
                    ),
                    joinings: scenarios.iter().map(|s| plan.scenarios[*s as usize].start_after).collect(),
                    scenarios,
                    round_robin: match plan.dealing {
                        Dealing::Even | Dealing::Apart(_) => WeightedRoundRobin::new(&round_robin),
                        // Each worker has its own order, and all of its pools agree on it.
                        Dealing::Shuffled => WeightedRoundRobin::new(&round_robin)
                            .shuffled(Random::new(plan.seed ^ DEALING_SEED, worker.index.into()).bits()),
                    },
                    only,
                    turn: 0,
                    stream,
                    arrivals_end,
                    users: 0,
                    users_wanted: 0,
                    failing_since: None,
                    spare: Spare::default(),
                    awaiting: awaiting_of(plan.targets[target].protocol),
                }
            })
            .collect()
    }

    /// A pool of a server that the plan does not name, of which no more is known than `outline` says: it
    /// takes connections once it is [settled](Self::settle). No iterations begin here.
    pub(crate) fn dynamic_origins(plan: &Plan, outline: Target, dynamic_origin: DynamicOrigin) -> Self {
        Self {
            target: usize::MAX,
            https: dynamic_origin.https(),
            origin: Some(dynamic_origin),
            resolve_state: ResolveState::Resolving,
            available: VecDeque::new(),
            open: 0,
            established: 0,
            reached: false,
            barred: 0,
            initial: 0,
            max: 0,
            begins: false,
            depth: depth_of(plan, &outline),
            waiting: VecDeque::new(),
            mixed_timeouts: plan.steps.iter().any(|step| step.timeout.or(step.deadline).is_some()),
            unfilled: 0,
            blocked: false,
            names: Name::all(&outline),
            target_addresses: TargetAddresses::new(&outline, &[], 0),
            joinings: Vec::new(),
            scenarios: Vec::new(),
            round_robin: WeightedRoundRobin::new(&[]),
            only: None,
            turn: 0,
            stream: None,
            arrivals_end: 0,
            users: 0,
            users_wanted: 0,
            failing_since: None,
            spare: Spare::default(),
            awaiting: awaiting_of(outline.protocol),
            server: Arc::new(outline),
        }
    }

    /// Takes over the server that was resolved for the pool: number `peer` of the peers. The worker may have
    /// up to `max` connections to the server.
    pub(crate) fn settle(&mut self, found: &ResolvedServer, peer: usize, max: u32, worker: u32) {
        self.target_addresses = TargetAddresses::new(&found.target, &found.target_addresses, worker);
        self.server = Arc::clone(&found.target);
        (self.target, self.max) = (peer, max);
        self.resolve_state = ResolveState::Known;
    }

    /// Returns `true` if this is the name of its only server.
    pub(crate) fn is_called(&self, origin: Origin<'_>) -> bool {
        let same = |name: &Name| name.authority.eq_ignore_ascii_case(origin.authority);
        self.https == origin.https && self.only_name().is_some_and(same)
    }

    /// Returns `true` if this is the name of one of the servers that the plan names for it, however it is
    /// written.
    pub(crate) fn has_member(&self, origin: Origin<'_>) -> bool {
        let Ok(wanted) = DynamicOrigin::read(origin.https, origin.authority) else { return false };
        let read = |name: &Name| DynamicOrigin::read(self.https, &name.authority);
        self.names.iter().any(|name| read(name).is_ok_and(|own| own.is(&wanted)))
    }

    /// Returns the name of its server; `None` for a pool of several. A URL that names one member means that
    /// member: a request sent to the pool could come to another one, which would send it back for ever.
    fn only_name(&self) -> Option<&Name> {
        match self.names.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Returns `true` for a pool of several servers.
    #[inline]
    pub(crate) const fn has_members(&self) -> bool {
        self.names.len() > 1
    }

    /// Returns the authority of its server; of the first one if the pool has several.
    pub(crate) fn authority(&self) -> &[u8] {
        self.names.first().map_or(&[], |name| &name.authority)
    }

    /// Returns the host of its server; of the first one if the pool has several.
    pub(crate) fn host(&self) -> &[u8] {
        self.names.first().map_or(&[], |name| &name.host)
    }

    /// Returns `true` if this is the origin of its only server, however it is written.
    pub(crate) fn is(&self, dynamic_origin: &DynamicOrigin) -> bool {
        let read = |name: &Name| DynamicOrigin::read(self.https, &name.authority);
        self.only_name().is_some_and(|name| read(name).is_ok_and(|own| own.is(dynamic_origin)))
    }

    /// Returns the name of the server at this site.
    #[inline]
    pub(crate) fn name_of(&self, target_address: u32) -> &Name {
        &self.names[self.target_addresses.member(target_address)]
    }

    /// The scenario of an iteration of the closed model that begins at `at` since the start; none, if all
    /// begin at other targets, have no data any more, or [join](Self::next_joining) later.
    #[inline]
    pub(crate) fn next_scenario(&mut self, exhausted: &[bool], at: Nanos) -> Option<u32> {
        if let Some(only) = self.only {
            return (!exhausted[only as usize] && !self.scenarios.is_empty()).then_some(only);
        }
        self.round_robin_scenario(exhausted, at)
    }

    #[inline(never)]
    fn round_robin_scenario(&mut self, exhausted: &[bool], at: Nanos) -> Option<u32> {
        // Each of them is dealt to within one round.
        for _ in 0..WeightedRoundRobin::LONGEST {
            let scenario = self.round_robin.scenario(self.turn, at)?;
            self.turn += 1;
            if !exhausted[scenario as usize] {
                return Some(scenario);
            }
            if self.scenarios.iter().all(|scenario| exhausted[*scenario as usize]) {
                return None;
            }
        }
        None
    }

    /// Returns `true` if it has arrivals or users.
    pub(crate) fn has_scenarios(&self) -> bool {
        !self.scenarios.is_empty()
    }

    /// Closed model with a number of users: sets their number.
    pub(crate) const fn want_users(&mut self, users: u32) {
        self.users_wanted = users;
    }

    /// Returns `true` if a user is missing, and counts it in.
    #[inline]
    pub(crate) fn add_user(&mut self) -> bool {
        let is_missing = self.users < self.users_wanted;
        self.users += u32::from(is_missing);
        is_missing
    }

    /// Returns `true` if a user that is ready for its next iteration leaves instead, and counts it out.
    #[inline]
    pub(crate) fn dismiss_user(&mut self) -> bool {
        let leaves = self.users > self.users_wanted;
        self.users -= u32::from(leaves);
        leaves
    }

    /// When the next scenario joins after `at`, since the start.
    pub(crate) fn next_joining(&self, at: Nanos) -> Option<Nanos> {
        self.joinings.iter().copied().filter(|joins| *joins > at).min()
    }

    /// Takes a request out whose time is over while it waits for a connection.
    pub(crate) fn take_overdue(&mut self, now: Nanos) -> Option<InFlight> {
        // They came in the order of their deadlines, except for those that had a connection before, and those
        // of steps with limits of their own.
        let position = match self.waiting.front() {
            None => return None,
            Some((deadline, _)) if *deadline <= now => 0,
            Some(_) if !self.mixed_timeouts => return None,
            Some(_) => self.waiting.iter().position(|(deadline, _)| *deadline <= now)?,
        };
        self.waiting.remove(position).map(|(_, request)| request)
    }

    /// When the first of the requests that wait for a connection has waited for too long.
    pub(crate) fn waiting_until(&self) -> Nanos {
        let first = if self.mixed_timeouts { self.waiting.len() } else { 1 };
        self.waiting.iter().take(first).map(|(deadline, _)| *deadline).min().unwrap_or(Nanos::MAX)
    }

    /// The next arrival of this pool and its scenario, without taking it.
    pub(crate) fn peek(&mut self) -> Option<(Arrival, u32)> {
        loop {
            let stream = self.stream.as_ref()?;
            let arrival = stream.arrivals.peek().filter(|arrival| arrival.index < self.arrivals_end)?;
            if let Some(scenario) = self.scenario_of(arrival, stream.workers) {
                return Some((arrival, scenario));
            }
            self.stream.as_mut()?.arrivals.next();
        }
    }

    /// The scenario of an arrival of this worker; `None` if it belongs to another pool, or no scenario has
    /// joined yet.
    #[inline]
    fn scenario_of(&self, arrival: Arrival, workers: u64) -> Option<u32> {
        if self.only.is_some() {
            return self.only;
        }
        let scenario = self.round_robin.scenario(arrival.index / workers, arrival.at)?;
        self.scenarios.contains(&scenario).then_some(scenario)
    }

    /// Returns the number of arrivals of the measured part that are due before `until`, since the start, and
    /// were not taken.
    pub(crate) fn backlog(&mut self, until: Nanos) -> u64 {
        let Some((next, _)) = self.peek() else { return 0 };
        if self.stream.as_ref().is_some_and(|stream| stream.arrivals.is_immediate()) {
            return self.count_before(until, &[], true).measured;
        }
        let Some(stream) = &mut self.stream else { return 0 };
        let (workers, measured_from, taken) = (stream.workers, stream.measured_from, stream.taken);
        let is_ahead =
            |scout: &Scout| scout.arrivals.peek().is_none_or(|arrival| arrival.index >= next.index);
        let mut scout = match stream.scout.take().filter(is_ahead) {
            Some(scout) => scout,
            None => Scout { arrivals: stream.arrivals.clone(), counted: taken },
        };
        let ends = self.arrivals_end;
        while let Some(arrival) = scout.arrivals.peek().filter(|due| due.at < until && due.index < ends) {
            let counts = arrival.at >= measured_from && self.scenario_of(arrival, workers).is_some();
            scout.counted += u64::from(counts);
            scout.arrivals.next();
        }
        let backlog = scout.counted.saturating_sub(taken);
        if let Some(stream) = &mut self.stream {
            stream.scout = Some(scout);
        }
        backlog
    }

    /// Takes all arrivals that are due before `until`, since the start, at once, and counts them;
    /// `exhausted` are the scenarios without data. For the uniform process it takes the same time however
    /// many there are; those of the Poisson process are drawn.
    pub(crate) fn take_before(&mut self, until: Nanos, exhausted: &[bool]) -> Passed {
        let passed = self.count_before(until, exhausted, true);
        if let Some(stream) = &mut self.stream {
            stream.taken += passed.measured;
            stream.arrivals.pass_before(until);
        }
        passed
    }

    /// Counts all arrivals that are due before `until`, at the end of a load, after which none is asked for.
    /// If more than [`MOST_DRAWN`] of the Poisson process are left, their number is the one that is to be
    /// expected.
    pub(crate) fn give_up_before(&self, until: Nanos, exhausted: &[bool]) -> Passed {
        self.count_before(until, exhausted, false)
    }

    fn count_before(&self, until: Nanos, exhausted: &[bool], exact: bool) -> Passed {
        let mut passed = Passed::default();
        let Some(stream) = &self.stream else { return passed };
        let Some(next) = stream.arrivals.peek() else { return passed };
        let arrivals = &stream.arrivals;
        let expected = arrivals.expected_before(until).saturating_sub(next.index);
        let draws = exact || arrivals.is_immediate() || expected <= MOST_DRAWN;
        let index_at = |at: Nanos| {
            let index = if draws { arrivals.count_before(at) } else { arrivals.expected_before(at) };
            index.clamp(next.index, self.arrivals_end.max(next.index))
        };
        // The turn of this worker at an index, or the first one after it.
        let worker = next.index % stream.workers;
        let turn = |index: u64| index.saturating_add(stream.workers - 1 - worker) / stream.workers;
        let mut cuts: Vec<Nanos> = self.round_robin.joinings().collect();
        cuts.extend([Nanos::ZERO, stream.measured_from]);
        cuts.retain(|cut| *cut < until);
        cuts.push(until);
        cuts.sort_unstable();
        cuts.dedup();
        for edges in cuts.windows(2) {
            let [from, to] = [edges[0], edges[1]];
            if to <= next.at {
                continue;
            }
            let turns = turn(index_at(from))..turn(index_at(to));
            let is_lost =
                |scenario: u32| exhausted.get(scenario as usize).is_some_and(|exhausted| *exhausted);
            let (all, lost) = match self.only {
                Some(only) => {
                    let all = turns.end.saturating_sub(turns.start);
                    (all, if is_lost(only) { all } else { 0 })
                }
                None => (
                    self.round_robin
                        .count(turns.clone(), from, |scenario| self.scenarios.contains(&scenario)),
                    self.round_robin.count(turns, from, |scenario| {
                        self.scenarios.contains(&scenario) && is_lost(scenario)
                    }),
                ),
            };
            passed.all += all;
            if from >= stream.measured_from {
                passed.measured += all;
                passed.without_data += lost;
            }
        }
        passed
    }

    /// Takes only arrivals with smaller indices.
    pub(crate) fn end_at(&mut self, index: u64) {
        self.arrivals_end = self.arrivals_end.min(index);
    }

    /// Takes the arrival that [`peek`](Self::peek) showed.
    pub(crate) fn take(&mut self) {
        if let Some(stream) = &mut self.stream {
            let taken = stream.arrivals.next();
            stream.taken += u64::from(taken.is_some_and(|arrival| arrival.at >= stream.measured_from));
        }
    }

    /// The schedule has changed from an instant on that is still to come.
    pub(crate) fn change(&mut self, profile: &Profile) {
        if let Some(stream) = &mut self.stream {
            stream.arrivals.change(profile);
            stream.scout = None;
        }
    }

    /// A connection was established: the target lives.
    pub(crate) fn connected(&mut self) {
        self.established += 1;
        self.reached = true;
        self.failing_since = None;
    }

    /// A connect failed: how long its user waits before the next attempt.
    pub(crate) fn backoff(&mut self, now: Nanos) -> Nanos {
        let since = *self.failing_since.get_or_insert(now);
        now.since(since).clamp(BACKOFF_MIN, BACKOFF_MAX)
    }
}

/// Requests that a connection to the target takes at once, as far as is known beforehand.
fn depth_of(plan: &Plan, target: &Target) -> u32 {
    match target.protocol {
        protocol if protocol.is_in_turn() => plan.connections.depth,
        _ => plan.connections.streams,
    }
}

/// Returns the rule for responses of a server that speaks this protocol. Messages of WebSockets are read at
/// once, as they are no responses.
const fn awaiting_of(protocol: Protocol) -> Awaiting {
    match protocol {
        Protocol::WebSocket | Protocol::WebSocketHttp2 => Awaiting::always(),
        _ => Awaiting::new(),
    }
}

/// The index of the first arrival that is not asked for: of a counted run of the open model, as many as its
/// iterations after those of the warm-up, and after those without a scenario, because none has joined.
fn arrivals_end(plan: &Plan) -> u64 {
    match (&plan.load, plan.end.iterations) {
        (Load::Open { profile, process, .. }, Some(iterations)) => {
            let whole = Arrivals::new(profile, *process, plan.seed, Shard::WHOLE);
            whole.count_before(plan.warmup.max(plan.first_joining())).saturating_add(iterations)
        }
        _ => u64::MAX,
    }
}
