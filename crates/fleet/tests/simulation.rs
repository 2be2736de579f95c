//! Whole fleets in virtual time: agents, a coordinator and a fabric that loses, delays, repeats and
//! reorders messages, with machines that die and network partitions, all by seed.
//!
//! `PLIMSOLL_SEEDS=N` simulates N fleets, `PLIMSOLL_SEEDS=A..B` those of these seeds.

mod departures;

use std::collections::BTreeMap;

use plimsoll_core::{Nanos, Random};
use plimsoll_fleet::{
    Agent, AgentAction, AgentIdentity, Collector, Coordinator, CoordinatorAction, CoordinatorOptions,
    CoordinatorStage, Delivery, End, HostEvent, Line, MemberEnd, Notice, Now, OnLoss, Prepare, Steer,
    SteerCommand, Unsteered, WIRE_VERSION,
};

const TICK: Nanos = Nanos::from_millis(50);
/// Length of the load.
const LOAD: Nanos = Nanos::from_secs(30);
const ORPHAN: Nanos = Nanos::from_secs(30);
/// Nothing goes on longer than this, whatever happens.
const END_OF_TIME: Nanos = Nanos::from_secs(400);
/// The Unix time at which the simulation begins.
const EPOCH: Nanos = Nanos::from_secs(1_800_000_000);

/// The faults of one simulated world.
#[derive(Clone, Copy, Debug, Default)]
struct Weather {
    /// Probability that a message is lost, and that it comes twice.
    loss: f64,
    twice: f64,
    /// Mean delay of a message.
    delay: Nanos,
}

/// The process of a run, as far as a fleet knows it: it begins at its instant, counts, and ends.
#[derive(Clone, Debug)]
struct Process {
    /// First shard of the process, and the number of its shards.
    shards: (u64, u64),
    of: u64,
    ready_at: Nanos,
    is_ready: bool,
    /// On the true clock.
    start: Option<Nanos>,
    /// Since then: when it takes part, and how far it has come.
    from: Nanos,
    reached: Nanos,
    /// Until when it may send, if its share is leased.
    lease: Option<Nanos>,
    stop: Option<Nanos>,
    /// Changes of the rate that it has accepted.
    changes: Vec<Steer>,
    /// Values of the setup that it was given, and when.
    values: Vec<(Nanos, Vec<u8>)>,
    next_line: Nanos,
    /// Requests that its intervals have reported.
    told: u64,
}

/// Requests of the whole load until an instant since the start: one each 10 ms unless its rate was changed.
fn due(changes: &[Steer], until: Nanos) -> u64 {
    const USUAL: u64 = 100;
    let until = until.min(LOAD);
    // In requests times nanoseconds per second.
    let (mut sum, mut since, mut base, mut rate) = (0_u128, Nanos::ZERO, USUAL, USUAL);
    for change in changes {
        let at = Nanos(change.at_ns).min(until);
        sum += u128::from(rate) * u128::from(at.since(since).0);
        since = since.max(at);
        rate = match change.command {
            SteerCommand::Rate { count, .. } => {
                base = count;
                count
            }
            SteerCommand::Pause => 0,
            SteerCommand::Resume => base,
            _ => rate,
        };
    }
    ((sum + u128::from(rate) * u128::from(until.since(since).0)) / 1_000_000_000) as u64
}

/// Requests that the shards have until an instant since the start.
fn planned_by(changes: &[Steer], (first, held): (u64, u64), of: u64, until: Nanos) -> u64 {
    let all = due(changes, until);
    (0..all).filter(|index| (first..first + held).contains(&(index % of))).count() as u64
}

impl Process {
    /// Counts the requests that the shards have until an instant since the start if the rate is not changed.
    fn planned(shards: (u64, u64), of: u64, until: Nanos) -> u64 {
        planned_by(&[], shards, of, until)
    }

    /// Accepts a change of the rate, unless it is too late for that.
    fn change(&mut self, steer: Steer, now: Nanos) -> bool {
        let begun = self.start.map(|start| start + self.from).filter(|begun| now >= *begun);
        let is_late = begun.is_some()
            && self
                .start
                .is_some_and(|start| now.since(start) + Nanos::from_millis(200) > Nanos(steer.at_ns));
        if !is_late {
            self.changes.push(steer);
        }
        !is_late
    }

    /// Makes what is due, unless its lease is over.
    fn advance(&mut self, now: Nanos) {
        let Some(start) = self.start else { return };
        let allowed = now.min(self.stop.unwrap_or(now)).min(self.lease.unwrap_or(now));
        self.reached = self.reached.max(allowed.since(start).min(LOAD));
    }

    fn counted(&self) -> u64 {
        let until = |at| planned_by(&self.changes, self.shards, self.of, at);
        until(self.reached).saturating_sub(until(self.from))
    }

    fn has_ended(&self, now: Nanos) -> bool {
        let Some(start) = self.start else { return false };
        now >= start + LOAD.max(self.from) || self.stop.is_some_and(|stop| now >= stop)
    }

    /// The requests since the last interval.
    fn interval(&mut self) -> HostEvent {
        let more = self.counted() - self.told;
        self.told += more;
        HostEvent::Interval(more.to_le_bytes().to_vec())
    }

    fn saved(&self) -> Vec<u8> {
        // Longer than a piece now and then.
        let mut bytes = self.counted().to_le_bytes().to_vec();
        bytes.resize(8 + (self.counted() as usize % 3) * 200_000, 7);
        bytes
    }
}

fn count_of(part: &[u8]) -> u64 {
    part.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

struct Machine {
    agent: Agent,
    /// Offset of its clock from the true one.
    ahead: i64,
    /// By the names of their runs.
    processes: BTreeMap<String, Process>,
    /// Processes that have exited or were killed.
    ended: BTreeMap<String, Process>,
    /// Runs that were saved here.
    history: BTreeMap<String, Vec<u8>>,
    dies: Option<Nanos>,
    /// `true` if the machine's process cannot begin in time.
    is_late: bool,
    /// When its agent is told to end. It dies once it may.
    leaves: Option<Nanos>,
    /// When its process gets no processor: it hangs if that is without an end.
    starved: Option<(Nanos, Nanos)>,
}

fn identity(name: &str, version: &str, cores: u32) -> AgentIdentity {
    AgentIdentity { name: name.to_owned(), version: version.to_owned(), cores, thread_per_s: None }
}

/// A message on its way.
struct Flight {
    at: Nanos,
    /// The machine, or `None` for the coordinator.
    to: Option<usize>,
    delivery: Delivery,
}

struct World {
    random: Random,
    weather: Weather,
    now: Nanos,
    flights: Vec<Flight>,
    machines: Vec<Machine>,
    coordinator: Coordinator,
    coordinator_dies: Option<Nanos>,
    /// Machines without a network, and for how long.
    partitions: Vec<(usize, Nanos, Nanos)>,
    stop_at: Option<Nanos>,
    /// Changes of the rate that the user makes, and the orders that they became.
    changes_at: Vec<(Nanos, SteerCommand)>,
    changed: Vec<Steer>,
    /// Instants at which the coordinator has other values of the setup, and those that it had last.
    values_at: Vec<Nanos>,
    values: Vec<u8>,
    /// Attempts to give a process values, of which every third fails.
    attempts: u64,
    /// `true` once the coordinator has announced the start.
    has_begun: bool,
    trouble: Vec<String>,
    notices: Vec<(Nanos, Notice)>,
    /// Requests that the coordinator knows of by intervals, by the places of shares.
    seen: Vec<u64>,
}

const FILE: usize = 700_000;

impl World {
    fn new(seed: u64, agents: usize, weather: Weather, on_loss: OnLoss) -> Self {
        let mut random = Random::new(seed, 1);
        let names: Vec<String> = (1..=agents).map(|number| format!("agent-{number}")).collect();
        let options = CoordinatorOptions {
            run: "r1".to_owned(),
            agents: names.iter().cloned().zip((1..=3).cycle()).collect(),
            threads: 1,
            prepare: Prepare::default(),
            files: vec![("plan.yaml".to_owned(), vec![5; FILE]), ("empty".to_owned(), Vec::new())],
            on_loss,
            orphan: ORPHAN,
            hold: None,
        };
        let now = Now { monotonic: Nanos::ZERO, unix: EPOCH };
        let machine = |name: &String| Machine {
            agent: Agent::new(identity(name, "0", 2)),
            ahead: random.below(4_000_000_000) as i64 - 2_000_000_000,
            processes: BTreeMap::new(),
            ended: BTreeMap::new(),
            history: BTreeMap::new(),
            dies: None,
            is_late: false,
            leaves: None,
            starved: None,
        };
        Self {
            machines: names.iter().map(machine).collect(),
            random,
            weather,
            now: Nanos::ZERO,
            flights: Vec::new(),
            coordinator: Coordinator::new(options, now),
            coordinator_dies: None,
            partitions: Vec::new(),
            stop_at: None,
            changes_at: Vec::new(),
            changed: Vec::new(),
            values_at: Vec::new(),
            values: Vec::new(),
            attempts: 0,
            has_begun: false,
            trouble: Vec::new(),
            notices: Vec::new(),
            seen: vec![0; agents],
        }
    }

    fn ours(&self) -> Now {
        Now { monotonic: self.now, unix: EPOCH + self.now }
    }

    fn theirs(&self, machine: usize) -> Now {
        let unix = (EPOCH + self.now).0.saturating_add_signed(self.machines[machine].ahead);
        Now { monotonic: self.now, unix: Nanos(unix) }
    }

    fn is_cut_off(&self, machine: usize, at: Nanos) -> bool {
        self.partitions.iter().any(|(who, from, until)| *who == machine && (*from..*until).contains(&at))
    }

    fn send(&mut self, to: Option<usize>, from: Option<usize>, subject: &str, payload: &[u8]) {
        let ends = to.into_iter().chain(from);
        if ends.into_iter().any(|machine| self.is_cut_off(machine, self.now)) {
            return;
        }
        let copies = match (self.random.unit() < self.weather.loss, self.random.unit() < self.weather.twice) {
            (true, _) => 0,
            (false, true) => 2,
            (false, false) => 1,
        };
        for _ in 0..copies {
            let at = self.now + Nanos(self.random.exponential(self.weather.delay.0 as f64) as u64);
            let delivery = Delivery { subject: subject.to_owned(), payload: payload.to_vec() };
            self.flights.push(Flight { at, to, delivery });
        }
    }

    fn coordinate(&mut self, actions: Vec<CoordinatorAction>) {
        for action in actions {
            let (subject, payload) = match action {
                CoordinatorAction::Publish { subject, payload } => (subject, payload),
                CoordinatorAction::Interval { place, interval } => {
                    self.seen.resize(self.seen.len().max(place + 1), 0);
                    self.seen[place] += count_of(&interval);
                    continue;
                }
                CoordinatorAction::Notice(notice) => {
                    self.has_begun |= matches!(notice, Notice::Begins { .. });
                    self.notices.push((self.now, notice));
                    continue;
                }
            };
            for machine in 0..self.machines.len() {
                let is_his =
                    subject.ends_with(".all") || subject.ends_with(&format!("agent-{}", machine + 1));
                if is_his {
                    self.send(Some(machine), None, &subject, &payload);
                }
            }
        }
    }

    fn carry_out(&mut self, machine: usize, actions: Vec<AgentAction>) {
        for action in actions {
            let mut events = Vec::new();
            match action {
                AgentAction::Publish { subject, payload } => {
                    self.send(None, Some(machine), &subject, &payload);
                }
                AgentAction::Spawn { run, prepare, files } => {
                    if files.values().map(Vec::len).sum::<usize>() != FILE || files.len() != 2 {
                        self.trouble.push(format!("agent {machine} has other files"));
                    }
                    let ready_at = self.now + Nanos(self.random.below(2_000_000_000));
                    let process = Process {
                        shards: (prepare.shard.into(), prepare.held.into()),
                        of: prepare.of.into(),
                        ready_at,
                        is_ready: false,
                        start: None,
                        from: Nanos::ZERO,
                        reached: Nanos::ZERO,
                        lease: prepare.is_leased.then_some(Nanos::ZERO),
                        stop: None,
                        changes: Vec::new(),
                        values: Vec::new(),
                        next_line: Nanos::ZERO,
                        told: 0,
                    };
                    if self.machines[machine].processes.insert(run, process).is_some() {
                        self.trouble.push(format!("agent {machine} has two processes of one share"));
                    }
                }
                AgentAction::Start { run, at_unix_ns, from_ns } => {
                    let there = at_unix_ns as i64 - EPOCH.0 as i64 - self.machines[machine].ahead;
                    let start = Nanos(there.max(0) as u64);
                    let now = self.now;
                    let host = &mut self.machines[machine];
                    let Some(process) = host.processes.get_mut(&run) else { continue };
                    if start + Nanos(from_ns) < now || host.is_late {
                        // `run --start-at` refuses to begin late.
                        host.ended.extend(host.processes.remove_entry(&run));
                        let messages = vec!["error: late".to_owned()];
                        let end = End { exit: Some(1), messages, ..End::default() };
                        events.push((run, HostEvent::Ended { end, saved: Vec::new() }));
                    } else {
                        process.start = Some(start);
                        (process.from, process.reached) = (Nanos(from_ns), Nanos(from_ns));
                        process.next_line = start + Nanos(from_ns) + Nanos::from_secs(1);
                    }
                }
                AgentAction::Lease { run, until_ns } => {
                    let process = self.machines[machine].processes.get_mut(&run);
                    process.into_iter().for_each(|process| process.lease = Some(Nanos(until_ns)));
                }
                AgentAction::Steer { run, steer } => {
                    let now = self.now;
                    if let Some(process) = self.machines[machine].processes.get_mut(&run) {
                        if steer.command.is_stop() {
                            process.stop.get_or_insert(now);
                        } else if !process.change(steer, now) {
                            let error = "too late".to_owned();
                            let unsteered = Unsteered { number: steer.number, error };
                            events.push((run, HostEvent::Unsteered(unsteered)));
                        }
                    }
                }
                AgentAction::Values { run, number, values } => {
                    let now = self.now;
                    if let Some(process) = self.machines[machine].processes.get_mut(&run) {
                        self.attempts += 1;
                        let error = self.attempts.is_multiple_of(3).then(|| "no answer".to_owned());
                        if error.is_none() {
                            process.values.push((now, values));
                        }
                        events.push((run, HostEvent::Values { number, error }));
                    }
                }
                AgentAction::TakePart { run } => {
                    let part = self.machines[machine].processes.get(&run).map(Process::saved);
                    events.push((run, HostEvent::Part(part.unwrap_or_default())));
                }
                AgentAction::Kill { run } => {
                    let host = &mut self.machines[machine];
                    if let Some(process) = host.processes.remove(&run) {
                        let saved = process.saved();
                        host.history.insert(run.clone(), saved.clone());
                        host.ended.insert(run.clone(), process);
                        events.push((run, HostEvent::Ended { end: End::default(), saved }));
                    }
                }
                AgentAction::Discard { run } => {
                    let host = &mut self.machines[machine];
                    host.ended.extend(host.processes.remove_entry(&run));
                }
                AgentAction::Collect { run } => {
                    // Names of shares that were taken over have a number at the end.
                    let share = |name: &str| match name.strip_prefix(&*run)?.strip_prefix('-') {
                        Some(number) => number.parse().ok(),
                        None => Some(0),
                    };
                    let history = &self.machines[machine].history;
                    let saved =
                        history.iter().filter_map(|(name, saved)| Some((share(name)?, saved.clone())));
                    let saved = saved.collect();
                    events.push((String::new(), HostEvent::Collected { run, saved }));
                }
            }
            for (run, event) in events {
                let now = self.theirs(machine);
                let more = self.machines[machine].agent.note(&run, event, now);
                self.carry_out(machine, more);
            }
        }
    }

    /// Events of the processes of a machine.
    fn host_events(&mut self, machine: usize) -> Vec<(String, HostEvent)> {
        let now = self.now;
        let host = &mut self.machines[machine];
        if host.starved.is_some_and(|(from, until)| (from..until).contains(&now)) {
            return Vec::new();
        }
        let mut events = Vec::new();
        let (mut ended, mut going_on) = (Vec::new(), BTreeMap::new());
        for (run, mut process) in std::mem::take(&mut host.processes) {
            process.advance(now);
            if !process.is_ready && now >= process.ready_at {
                process.is_ready = true;
                events.push((run.clone(), HostEvent::Ready));
            }
            if process.has_ended(now) {
                events.push((run.clone(), process.interval()));
                let (end, saved) = (End { exit: Some(0), ..End::default() }, process.saved());
                host.history.insert(run.clone(), saved.clone());
                events.push((run.clone(), HostEvent::Ended { end, saved }));
                ended.push((run, process));
                continue;
            }
            if process.start.is_some() && now >= process.next_line {
                process.next_line += Nanos::from_secs(1);
                let elapsed_s = now.since(process.start.unwrap_or(now)).as_secs_f64();
                events.push((run.clone(), process.interval()));
                events.push((run.clone(), HostEvent::Line(Line { elapsed_s, ..Line::default() })));
            }
            going_on.insert(run, process);
        }
        host.processes = going_on;
        host.ended.extend(ended);
        events
    }

    fn step(&mut self) {
        self.now += TICK;
        let now = self.now;
        for machine in 0..self.machines.len() {
            if self.machines[machine].dies.is_some_and(|dies| dies == now) {
                let host = &mut self.machines[machine];
                // Its processes end with it.
                host.ended.append(&mut host.processes);
            }
        }
        let (due, later) = std::mem::take(&mut self.flights).into_iter().partition(|flight| flight.at <= now);
        self.flights = later;
        let mut due: Vec<Flight> = due;
        due.sort_by_key(|flight| flight.at);
        for Flight { to, delivery, .. } in due {
            match to {
                None if self.coordinator_lives() => {
                    let actions = self.coordinator.hear(&delivery, self.ours());
                    self.coordinate(actions);
                }
                Some(machine) if self.lives(machine) && !self.is_cut_off(machine, now) => {
                    let theirs = self.theirs(machine);
                    let actions = self.machines[machine].agent.hear(&delivery, theirs);
                    self.carry_out(machine, actions);
                }
                _ => {}
            }
        }
        for machine in 0..self.machines.len() {
            if !self.lives(machine) {
                continue;
            }
            for (run, event) in self.host_events(machine) {
                let theirs = self.theirs(machine);
                let actions = self.machines[machine].agent.note(&run, event, theirs);
                self.carry_out(machine, actions);
            }
            let theirs = self.theirs(machine);
            let host = &mut self.machines[machine];
            let is_told = host.leaves == Some(now);
            let actions = if is_told { host.agent.leave(theirs) } else { host.agent.tick(theirs) };
            self.carry_out(machine, actions);
            let host = &mut self.machines[machine];
            if host.agent.may_end() {
                host.dies = Some(now);
                if !host.processes.is_empty() {
                    self.trouble.push(format!("agent {machine} ended before its processes"));
                }
            }
        }
        if self.coordinator_lives() {
            if self.stop_at == Some(now) {
                let actions = self.coordinator.steer(SteerCommand::Stop, Nanos::ZERO, self.ours());
                self.coordinate(actions);
            }
            self.change_rate();
            if self.values_at.first() == Some(&now) {
                self.values_at.remove(0);
                self.values = now.0.to_be_bytes().to_vec();
                self.coordinator.set_values(self.values.clone(), self.ours());
            }
            let actions = self.coordinator.tick(self.ours());
            self.coordinate(actions);
        }
    }

    /// Makes the user's changes that are due, each of which applies three seconds later.
    fn change_rate(&mut self) {
        let now = self.now;
        let (due, later) = std::mem::take(&mut self.changes_at).into_iter().partition(|(at, _)| *at <= now);
        self.changes_at = later;
        let due: Vec<(Nanos, SteerCommand)> = due;
        for (_, command) in due {
            let Some(start) = self.coordinator.start().filter(|_| self.has_begun) else { continue };
            let at = (EPOCH + now).since(start) + Nanos::from_secs(3);
            if self.coordinator.is_stopping() || self.coordinator.stage() == CoordinatorStage::Over {
                continue;
            }
            let number = self.changed.len() as u64 + 1;
            self.changed.push(Steer { number, at_ns: at.0, command });
            let actions = self.coordinator.steer(command, at, self.ours());
            self.coordinate(actions);
        }
    }

    fn lives(&self, machine: usize) -> bool {
        self.machines[machine].dies.is_none_or(|dies| dies > self.now)
    }

    fn coordinator_lives(&self) -> bool {
        self.coordinator_dies.is_none_or(|dies| dies > self.now)
    }

    /// Runs until all agents are free again, and repeats the end for a while longer.
    fn run(&mut self) {
        let mut over_since = None;
        while self.now < END_OF_TIME {
            self.step();
            if self.coordinator.stage() == CoordinatorStage::Over && self.coordinator_lives() {
                let since = *over_since.get_or_insert(self.now);
                // As the command does, before it ends.
                if self.now.since(since) < Nanos::from_secs(2) {
                    let actions = self.coordinator.last_words(self.ours());
                    self.coordinate(actions);
                }
            }
            let is_over = self.coordinator.stage() == CoordinatorStage::Over || !self.coordinator_lives();
            let is_free = |machine: usize| {
                !self.lives(machine)
                    || self.machines[machine].agent.run().is_none()
                        && self.machines[machine].processes.is_empty()
            };
            if is_over && (0..self.machines.len()).all(is_free) {
                return;
            }
        }
        self.trouble.push(format!("the fleet has not come to its end: {:?}", self.coordinator.stage()));
    }

    /// Invariants of every fleet, however it ended.
    fn check(&self, what: &str) {
        assert!(self.trouble.is_empty(), "{what}: {:?}", self.trouble);
        if !self.coordinator_lives() {
            return;
        }
        let members = self.coordinator.members();
        let start = self.coordinator.start();
        let began = &members[..self.machines.len()];
        let of: u64 = began.iter().map(|member| u64::from(member.shards.1)).sum();
        for (place, member) in members.iter().enumerate() {
            let who = members.iter().position(|other| other.name == member.name).expect("it began");
            let machine = &self.machines[who];
            let run = if place == who { "r1".to_owned() } else { format!("r1-{place}") };
            let process = machine.ended.get(&run);
            let (known, made) = (count_of(&member.part), process.map_or(0, Process::counted));
            let what = format!("{what}: {} ({run})", member.name);
            if !self.has_begun {
                assert_eq!(made, 0, "{what} made requests although no agent was to begin");
                continue;
            }
            // Each interval comes once; all of them where the agent was there until the end.
            let seen = self.seen.get(place).copied().unwrap_or(0);
            assert!(seen <= made, "{what}: {seen} of {made}");
            let was_there = (machine.dies.is_none() || machine.leaves.is_some())
                && machine.starved.is_none_or(|(_, until)| until < Nanos::MAX)
                && self.partitions.iter().all(|(other, ..)| *other != who);
            assert!(!was_there || seen == made, "{what}: {seen} of {made}");
            // It has made requests of its own span only, and not beyond the instant from which another has
            // its shards: no request is made twice.
            let (from, until) = member.span;
            let shards = (member.shards.0.into(), member.shards.1.into());
            // An agent that was cut off may have missed a change. That is known once its end has arrived.
            let known_changes = |process: &Process| {
                let end = process.reached;
                self.changed.iter().all(|steer| Nanos(steer.at_ns) >= end || process.changes.contains(steer))
            };
            let is_steered = process.is_none_or(known_changes);
            let planned = |at| planned_by(&self.changed, shards, of, at);
            let span = planned(until.unwrap_or(LOAD)).saturating_sub(planned(from));
            match &member.end {
                MemberEnd::Ended(_) | MemberEnd::Left(_) => assert_eq!(known, made, "{what}"),
                MemberEnd::Died(_) | MemberEnd::Lost => assert!(known <= made, "{what}"),
                MemberEnd::None => assert_eq!((from, made), (Nanos::MAX, 0), "{what} goes on"),
            }
            assert!(made <= span || !is_steered, "{what}: {made} of {span} in {:?}", member.span);
            let was_told = self.notices.iter().any(
                |(_, notice)| matches!(notice, Notice::Unsteered { agent, .. } if *agent == member.name),
            );
            let is_known = was_there || matches!(member.end, MemberEnd::Ended(_));
            assert!(is_steered || was_told || !is_known, "{what} has missed a change");
            if let (Some(process), Some(until)) = (process, until) {
                assert!(
                    process.reached <= until,
                    "{what}: sent until {:?}, {:?}",
                    process.reached,
                    member.span
                );
            }
            // The bound of the clock's estimate holds of the start.
            let began = process.and_then(|process| process.start);
            if let (Some(began), Some(clock), Some(start)) = (began, member.clock, start) {
                let skew = (EPOCH + began).0.abs_diff(start.0);
                assert!(skew <= clock.bound_ns, "{what} began {skew} ns beside");
            }
        }
        // The owners of a shard follow each other without a gap: the accounts balance with the unknown part
        // of each.
        for shard in began.iter().map(|member| member.shards) {
            let mut spans: Vec<(Nanos, Option<Nanos>)> = members
                .iter()
                .filter(|member| member.shards == shard && member.span.0 < Nanos::MAX)
                .map(|member| member.span)
                .collect();
            spans.sort_unstable();
            let ends: Vec<Option<Nanos>> = spans.iter().map(|(_, until)| *until).collect();
            let next: Vec<Option<Nanos>> = spans.iter().skip(1).map(|(from, _)| Some(*from)).collect();
            assert_eq!((spans[0].0, ends), (Nanos::ZERO, [next, vec![None]].concat()), "{what}: {spans:?}");
        }
    }
}

/// Seeds in which a defect was found; docs/assurance.md lists them.
const FOUND: [u64; 1] = [8894];

fn seeds(usual: u64) -> impl Iterator<Item = u64> {
    let Ok(given) = std::env::var("PLIMSOLL_SEEDS") else { return (0..usual).chain(FOUND.to_vec()) };
    let (from, to) = given.split_once("..").unwrap_or(("0", &given));
    let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("PLIMSOLL_SEEDS={given}"));
    (number(from)..number(to)).chain(Vec::new())
}

const FAIR: Weather = Weather { loss: 0.0, twice: 0.0, delay: Nanos::from_millis(2) };

#[test]
fn a_fleet_in_fair_weather_makes_the_whole_load() {
    let mut world = World::new(1, 3, FAIR, OnLoss::Abort);
    world.run();
    world.check("fair weather");
    let members = world.coordinator.members();
    let sum: u64 = members.iter().map(|member| count_of(&member.part)).sum();
    assert_eq!(sum, LOAD.0 / 10_000_000);
    // They have one, two and three of six shards.
    let [weakest, .., strongest] = &*members else { panic!("there are three") };
    let [weakest, strongest] = [weakest, strongest].map(|member| count_of(&member.part));
    assert!(strongest.abs_diff(3 * weakest) <= 3, "{weakest} and {strongest}");
    assert!(members.iter().all(|member| matches!(&member.end, MemberEnd::Ended(end) if end.exit == Some(0))));
    assert!(members.iter().all(|member| member.line.is_some() && member.latest_clock.is_some()));
    assert!(world.now < Nanos::from_secs(50), "{:?}", world.now);
}

/// Deaths, partitions, loss, delay and duplicates, at any time: every account balances, every run ends, and
/// no agent makes requests unless all were ready.
#[test]
fn every_fleet_ends_and_its_accounts_balance() {
    let (mut begun, mut lost, mut refused, mut orphaned, mut taken, mut steered) = (0, 0, 0, 0, 0, 0);
    for seed in seeds(300) {
        let mut random = Random::new(seed, 0);
        let weather = Weather {
            loss: [0.0, 0.02, 0.2][random.below(3) as usize],
            twice: [0.0, 0.1][random.below(2) as usize],
            delay: [Nanos::from_micros(200), Nanos::from_millis(20), Nanos::from_millis(80)]
                [random.below(3) as usize],
        };
        let agents = 1 + random.below(5) as usize;
        let on_loss = [OnLoss::Abort, OnLoss::Continue, OnLoss::Takeover][random.below(3) as usize];
        let mut world = World::new(seed, agents, weather, on_loss);
        let instant = |random: &mut Random| Nanos(TICK.0 * (1 + random.below(600)));
        // Mostly one at a time, and now and then several at once.
        let several = |random: &mut Random| match random.below(9) {
            0 | 1 => 1,
            2 => 1 + random.below(3),
            _ => 0,
        };
        for _ in 0..several(&mut random) {
            let who = random.below(agents as u64) as usize;
            world.machines[who].dies = Some(instant(&mut random));
        }
        if random.below(6) == 0 {
            let (who, from) = (random.below(agents as u64) as usize, instant(&mut random));
            let until = [from + Nanos::from_secs(1 + random.below(50)), Nanos::MAX][random.below(2) as usize];
            world.machines[who].starved = Some((from, until));
        }
        for _ in 0..several(&mut random) {
            let who = random.below(agents as u64) as usize;
            let from = instant(&mut random);
            world.partitions.push((who, from, from + Nanos::from_secs(1 + random.below(40))));
        }
        if random.below(6) == 0 {
            world.coordinator_dies = Some(instant(&mut random));
        }
        if random.below(6) == 0 {
            world.stop_at = Some(instant(&mut random));
        }
        let mut at = Nanos::ZERO;
        for _ in 0..several(&mut random) {
            at += instant(&mut random);
            let rate = SteerCommand::Rate { count: 20 * (1 + random.below(9)), period_ns: 1_000_000_000 };
            let command = [rate, SteerCommand::Pause, SteerCommand::Resume][random.below(3) as usize];
            world.changes_at.push((at, command));
        }
        // Drawn by another series, so that the worlds of earlier seeds stay as they were.
        let mut departures = Random::new(seed, 2);
        if departures.below(4) == 0 {
            let who = departures.below(agents as u64) as usize;
            let leaves = instant(&mut departures);
            world.machines[who].leaves = world.machines[who].dies.is_none().then_some(leaves);
        }
        world.run();
        world.check(&format!("seed {seed}"));
        let members = world.coordinator.members();
        let is_taken = members.iter().any(|member| member.span.1.is_some());
        steered += u64::from(is_taken && !world.changed.is_empty());
        begun += u64::from(members.iter().any(|member| member.arrived > 0));
        lost += u64::from(members.iter().any(|member| member.end == MemberEnd::Lost));
        refused += u64::from(!world.coordinator.refusals().is_empty());
        orphaned += u64::from(!world.coordinator_lives());
        taken += u64::from(is_taken);
    }
    if std::env::var_os("PLIMSOLL_SEEDS").is_none() {
        assert!(
            begun > 150 && lost > 20 && refused > 10 && orphaned > 10 && taken > 10 && steered > 3,
            "{begun} {lost} {refused} {orphaned} {taken} {steered}"
        );
    }
}

/// Symptom: an agent was said to be lost while others used every processor of its machine, because only
/// its process gave signs of life.
#[test]
fn a_run_without_a_processor_is_not_lost_and_one_that_hangs_is() {
    let secs = Nanos::from_secs;
    let mut world = World::new(8, 3, FAIR, OnLoss::Abort);
    world.machines[1].starved = Some((secs(10), secs(25)));
    world.run();
    world.check("starved");
    let members = world.coordinator.members();
    assert!(members.iter().all(|member| matches!(&member.end, MemberEnd::Ended(end) if end.exit == Some(0))));
    assert_eq!(members.iter().map(|member| count_of(&member.part)).sum::<u64>(), LOAD.0 / 10_000_000);
    let of_it = |notice: &Notice| matches!(notice, Notice::Suspect(name) | Notice::Back(name) | Notice::Lost(name) if name == "agent-2");
    let told: Vec<&Notice> =
        world.notices.iter().map(|(_, notice)| notice).filter(|one| of_it(one)).collect();
    let name = || "agent-2".to_owned();
    assert_eq!(told, [&Notice::Suspect(name()), &Notice::Back(name())], "its silence is shown");

    let mut world = World::new(8, 3, FAIR, OnLoss::Continue);
    world.machines[1].starved = Some((secs(12), Nanos::MAX));
    world.run();
    world.check("hung");
    let members = world.coordinator.members();
    let MemberEnd::Died(end) = &members[1].end else { panic!("{:?}", members[1]) };
    assert!(end.exit.is_none() && end.messages[0].contains("no sign of its own for 60 s"), "{end:?}");
    assert!(count_of(&members[1].part) > 0, "what it had saved is known");
    let died = world.notices.iter().find(|(_, notice)| *notice == Notice::Died(name())).expect("it is told");
    assert!((secs(71)..secs(75)).contains(&died.0), "{died:?}");
    assert_eq!(count_of(&members[0].part), Process::planned((0, 1), 6, LOAD), "the others go on");

    let mut world = World::new(8, 3, FAIR, OnLoss::Continue);
    world.machines[1].dies = Some(secs(12));
    world.run();
    let lost = world.notices.iter().find(|(_, notice)| *notice == Notice::Lost(name())).expect("it is told");
    assert!((secs(21)..secs(24)).contains(&lost.0), "an agent that dies is lost after ten seconds: {lost:?}");
}

/// Messages that wait while the coordinator gets no processor time do not count as silence of the agents.
#[test]
fn a_coordinator_that_was_held_up_takes_nobody_for_lost() {
    let mut world = World::new(9, 3, FAIR, OnLoss::Abort);
    while world.now < Nanos::from_secs(12) {
        world.step();
    }
    let before = world.coordinator_dies.replace(world.now);
    while world.now < Nanos::from_secs(26) {
        world.step();
    }
    world.coordinator_dies = before;
    let actions = world.coordinator.tick(world.ours());
    world.coordinate(actions);
    world.run();
    world.check("held up");
    assert!(
        !world.notices.iter().any(|(_, notice)| matches!(notice, Notice::Lost(_))),
        "{:?}",
        world.notices
    );
}

/// The shards of an agent that dies are another's from a boundary of five seconds on, and what was due
/// between its last part and then is unknown.
#[test]
fn another_agent_takes_the_shards_of_a_lost_one_over() {
    let mut world = World::new(10, 3, FAIR, OnLoss::Takeover);
    // Long before the end of the load, which begins at about six seconds.
    world.machines[1].dies = Some(Nanos::from_secs(8));
    world.run();
    world.check("a takeover");
    let members = world.coordinator.members();
    let [lost, taker] = [&members[1], &members[3]];
    assert_eq!((&lost.end, taker.shards, &*taker.name), (&MemberEnd::Lost, (1, 2), "agent-1"));
    assert_eq!((taker.span.0, lost.span.1), (Nanos::from_secs(20), Some(Nanos::from_secs(20))));
    assert!(matches!(&taker.end, MemberEnd::Ended(end) if end.exit == Some(0)), "{:?}", taker.end);
    let of = |member: &plimsoll_fleet::Member| {
        let (until, shards) =
            (member.span.1.unwrap_or(LOAD), (member.shards.0.into(), member.shards.1.into()));
        let planned = |at| Process::planned(shards, 6, at);
        (count_of(&member.part), planned(until) - planned(member.span.0))
    };
    let (known, planned): (Vec<u64>, Vec<u64>) = members.iter().map(of).unzip();
    assert_eq!(planned.iter().sum::<u64>(), LOAD.0 / 10_000_000);
    assert!(known[1] < planned[1], "some of the lost one is unknown");
    assert_eq!([known[0], known[2], known[3]], [planned[0], planned[2], planned[3]]);
}

/// Symptom: after a change of the rate nobody took shards over, because one that joined later did not know
/// it. All of them have one schedule, with the changes before a loss, until the takeover, and after it.
#[test]
fn one_that_takes_shards_over_has_the_schedule_with_all_changes_of_the_rate() {
    let secs = Nanos::from_secs;
    let rate = |count| SteerCommand::Rate { count, period_ns: 1_000_000_000 };
    for seed in 0..40 {
        let mut world = World::new(300 + seed, 3, FAIR, OnLoss::Takeover);
        world.machines[1].dies = Some(secs(13));
        // The load begins after six seconds or so, and another has the shards after some 25.
        let mut random = Random::new(seed, 7);
        let mut at = secs(8);
        for command in [rate(300), SteerCommand::Pause, SteerCommand::Resume, rate(40)] {
            world.changes_at.push((at, command));
            at += Nanos(TICK.0 * (1 + random.below(150)));
        }
        world.run();
        world.check(&format!("seed {seed}"));
        let members = world.coordinator.members();
        let [_, lost, _, taker] = &*members else { panic!("seed {seed}: {members:?}") };
        let from = taker.span.0;
        assert_eq!(lost.span.1, Some(from), "seed {seed}");
        assert!(matches!(taker.end, MemberEnd::Ended(_)), "seed {seed}: {:?}", taker.end);
        let planned = |member: &plimsoll_fleet::Member| {
            let shards = (member.shards.0.into(), member.shards.1.into());
            let until = |at| planned_by(&world.changed, shards, 6, at);
            until(member.span.1.unwrap_or(LOAD)) - until(member.span.0)
        };
        let sum: u64 = members.iter().map(planned).sum();
        assert_eq!(sum, due(&world.changed, LOAD), "seed {seed}: every arrival has one owner");
        for member in [&members[0], &members[2], taker] {
            assert_eq!(count_of(&member.part), planned(member), "seed {seed}: {}", member.name);
        }
        assert!(count_of(&lost.part) < planned(lost), "seed {seed}");
    }
}

/// Values that the coordinator gets while the load goes on come to every process, those that take shards over
/// later too: the latest ones, each once, and in their order.
#[test]
fn the_latest_values_of_the_setup_come_to_every_process() {
    let secs = Nanos::from_secs;
    for seed in 0..40 {
        let weather = Weather { loss: 0.2, twice: 0.1, delay: Nanos::from_millis(80) };
        let mut world = World::new(500 + seed, 3, weather, OnLoss::Takeover);
        world.values_at = vec![secs(2), secs(14), secs(16)];
        world.machines[1].dies = Some(secs(13));
        world.partitions.push((2, secs(15), secs(19)));
        world.run();
        world.check(&format!("seed {seed}"));
        if !world.has_begun {
            continue;
        }
        let members = world.coordinator.members();
        for (place, member) in members.iter().enumerate() {
            let MemberEnd::Ended(_) = &member.end else { continue };
            let who = members.iter().position(|other| other.name == member.name).expect("it began");
            let run = if place == who { "r1".to_owned() } else { format!("r1-{place}") };
            let given = &world.machines[who].ended[&run].values;
            let what = format!("seed {seed}: {} ({run}): {given:?}", member.name);
            assert!(given.is_sorted_by(|one, next| one.1 < next.1), "{what}");
            assert_eq!(given.last().map(|(_, values)| values), Some(&world.values), "{what}");
        }
        assert_eq!(world.coordinator.outdated(), [""; 0], "seed {seed}");
        let outdated = |notice: &Notice| matches!(notice, Notice::Outdated { .. });
        assert!(
            world.attempts < 3 || world.notices.iter().any(|(_, notice)| outdated(notice)),
            "seed {seed}"
        );
    }
}

/// An agent without a network goes on with values that the coordinator has replaced, and is named.
#[test]
fn an_agent_that_has_ended_without_the_latest_values_is_named() {
    let secs = Nanos::from_secs;
    let mut world = World::new(13, 3, FAIR, OnLoss::Continue);
    while !world.has_begun {
        world.step();
    }
    // The network of the second one is back after its end, and before it counts as lost.
    let end = world.coordinator.start().expect("it has begun").since(EPOCH) + LOAD;
    let end = Nanos(end.0.next_multiple_of(TICK.0));
    world.values_at = vec![end - secs(5)];
    world.partitions.push((1, end - secs(6), end + secs(2)));
    world.run();
    world.check("values that did not come");
    assert!(matches!(world.coordinator.members()[1].end, MemberEnd::Ended(_)), "it came back with its end");
    assert_eq!(world.coordinator.outdated(), ["agent-2"]);
}

/// Symptom: an agent whose network was away when the rate was changed, and until it had ended, had missed the
/// change without a word.
#[test]
fn a_change_that_had_not_come_by_the_end_of_an_agent_is_missed() {
    let mut world = World::new(12, 3, FAIR, OnLoss::Continue);
    while !world.has_begun {
        world.step();
    }
    // The first change comes to everyone; the second one applies two seconds before the end.
    let start = world.coordinator.start().expect("it has begun").since(EPOCH);
    let (first, last) = (start + LOAD - Nanos::from_secs(12), start + LOAD - Nanos::from_secs(5));
    let rate = |count| SteerCommand::Rate { count, period_ns: 1_000_000_000 };
    world.changes_at = vec![(first, rate(300)), (last, rate(40))];
    world.partitions.push((1, last - TICK, start + LOAD + Nanos::from_secs(1)));
    world.run();
    world.check("a late change");
    let missed: Vec<&Notice> = world
        .notices
        .iter()
        .map(|(_, notice)| notice)
        .filter(|one| matches!(one, Notice::Unsteered { .. }))
        .collect();
    let error = "it had ended before it was told".to_owned();
    assert_eq!(missed, [&Notice::Unsteered { agent: "agent-2".to_owned(), error }]);
    let members = world.coordinator.members();
    assert_eq!(members.iter().map(|member| member.missed_changes).collect::<Vec<_>>(), [0, 1, 0]);
}

/// An agent that is cut off, and lives, stops by itself before another has its shards. When it is back, all
/// that it had made is known.
#[test]
fn an_agent_that_is_cut_off_does_not_send_what_another_sends() {
    for seed in 0..20 {
        let mut world = World::new(20 + seed, 3, FAIR, OnLoss::Takeover);
        let from = Nanos::from_secs(8) + Nanos(TICK.0 * seed);
        world.partitions.push((1, from, from + Nanos::from_secs(13)));
        world.run();
        world.check("cut off");
        let members = world.coordinator.members();
        assert_eq!(members.len(), 4, "{members:?}");
        let process = &world.machines[1].ended["r1"];
        let until = members[1].span.1.expect("another had them");
        // Eight seconds after its last sign of life that was heard, and two before it was lost.
        assert!(process.reached + Nanos::from_secs(2) <= until, "{:?} {until:?}", process.reached);
        assert!(matches!(members[1].end, MemberEnd::Died(_)), "{:?}", members[1].end);
        assert_eq!(count_of(&members[1].part), process.counted(), "unknown became known");
    }
}

/// An agent that took over may be lost, too. Without a surviving agent the shards stay unassigned.
#[test]
fn shards_are_taken_over_again_and_by_nobody_if_there_is_none() {
    let mut world = World::new(11, 3, FAIR, OnLoss::Takeover);
    world.machines[1].starved = Some((Nanos::from_secs(9), Nanos::MAX));
    world.machines[0].dies = Some(Nanos::from_secs(9));
    world.run();
    world.check("two losses");
    let mut world = World::new(12, 2, FAIR, OnLoss::Takeover);
    world.machines.iter_mut().for_each(|machine| machine.dies = Some(Nanos::from_secs(9)));
    world.run();
    world.check("no agent is left");
    assert!(world.notices.iter().any(|(_, notice)| matches!(notice, Notice::NotTaken { .. })));
}

#[test]
fn an_agent_that_was_away_comes_back_with_all_it_has() {
    let mut world = World::new(4, 2, FAIR, OnLoss::Continue);
    world.partitions.push((0, Nanos::from_secs(8), Nanos::from_secs(20)));
    world.run();
    world.check("a partition");
    let members = world.coordinator.members();
    assert!(members.iter().all(|member| matches!(member.end, MemberEnd::Ended(_))), "{members:?}");
    let sum: u64 = members.iter().map(|member| count_of(&member.part)).sum();
    assert_eq!(sum, LOAD.0 / 10_000_000, "unknown became known");
}

#[test]
fn agents_without_a_coordinator_stop_and_keep_what_they_have() {
    let mut world = World::new(5, 3, FAIR, OnLoss::Abort);
    world.coordinator_dies = Some(Nanos::from_secs(9));
    world.run();
    world.check("no coordinator");
    for machine in &world.machines {
        assert!(machine.agent.run().is_none());
        let made = machine.ended["r1"].counted();
        assert_eq!(machine.history.get("r1").map(|saved| count_of(saved)), Some(made));
        assert!(made > 0);
    }
}

/// Asks all agents that are still there for what they have saved, as `plimsoll fleet collect` does.
fn collected(world: &mut World) -> BTreeMap<(String, u32), u64> {
    let names = (1..=world.machines.len()).map(|number| format!("agent-{number}"));
    let mut collector = Collector::new("r1", names.collect());
    let end = world.now + Nanos::from_secs(60);
    while !collector.is_over(world.ours(), Nanos::from_secs(5)) && world.now < end {
        world.now += TICK;
        let now = world.ours();
        let due: Vec<Flight> = std::mem::take(&mut world.flights);
        let (due, later): (Vec<_>, Vec<_>) = due.into_iter().partition(|flight| flight.at <= world.now);
        world.flights = later;
        for Flight { to, delivery, .. } in due {
            match to {
                None => collector.hear(&delivery, now),
                Some(machine) if world.lives(machine) => {
                    let theirs = world.theirs(machine);
                    let actions = world.machines[machine].agent.hear(&delivery, theirs);
                    world.carry_out(machine, actions);
                }
                Some(_) => {}
            }
        }
        for machine in (0..world.machines.len()).filter(|machine| world.lives(*machine)).collect::<Vec<_>>() {
            let theirs = world.theirs(machine);
            let actions = world.machines[machine].agent.tick(theirs);
            world.carry_out(machine, actions);
        }
        for Delivery { subject, payload } in collector.tick(now) {
            for machine in 0..world.machines.len() {
                if subject.ends_with(&format!("agent-{}", machine + 1)) {
                    world.send(Some(machine), None, &subject, &payload);
                }
            }
        }
    }
    collector.parts().iter().map(|(share, part)| (share.clone(), count_of(part))).collect()
}

/// Symptom: of agents that had taken shares over, only the share that they began with was collected.
#[test]
fn shares_that_were_taken_over_are_collected_after_the_coordinator_has_died() {
    let mut taken = 0;
    for seed in 0..40 {
        let bad = Weather { loss: 0.1, twice: 0.1, delay: Nanos::from_millis(20) };
        let weather = if seed < 4 { FAIR } else { bad };
        let mut world = World::new(100 + seed, 3, weather, OnLoss::Takeover);
        // In bad weather the start takes its time.
        world.machines[1].dies = Some(Nanos::from_secs(10));
        world.coordinator_dies = Some(Nanos::from_secs(32));
        world.run();
        assert!(world.trouble.is_empty(), "seed {seed}: {:?}", world.trouble);
        let saved: BTreeMap<(String, u32), u64> = (0..3)
            .filter(|machine| world.lives(*machine))
            .flat_map(|machine| {
                let name = format!("agent-{}", machine + 1);
                let share = |run: &str| run.strip_prefix("r1-").map_or(0, |number| number.parse().unwrap());
                let history = &world.machines[machine].history;
                let all: Vec<_> = history.iter().map(|(run, saved)| (share(run), count_of(saved))).collect();
                all.into_iter().map(move |(share, count)| ((name.clone(), share), count))
            })
            .collect();
        taken += u64::from(saved.keys().any(|(_, share)| *share > 0));
        assert_eq!(collected(&mut world), saved, "seed {seed}");
        assert!(world.trouble.is_empty(), "seed {seed}: {:?}", world.trouble);
    }
    assert!(taken > 20, "{taken}");
}

#[test]
fn a_second_coordinator_is_told_that_the_agent_is_busy() {
    let mut world = World::new(6, 1, FAIR, OnLoss::Abort);
    while world.coordinator.stage() != CoordinatorStage::Begun {
        world.step();
    }
    let options = CoordinatorOptions {
        run: "r2".to_owned(),
        agents: vec![("agent-1".to_owned(), 1)],
        threads: 1,
        prepare: Prepare::default(),
        files: Vec::new(),
        on_loss: OnLoss::Abort,
        orphan: ORPHAN,
        hold: None,
    };
    let mut other = Coordinator::new(options, world.ours());
    let mut answers = Vec::new();
    for action in other.tick(world.ours()) {
        if let CoordinatorAction::Publish { subject, payload } = action {
            let theirs = world.theirs(0);
            answers.extend(world.machines[0].agent.hear(&Delivery { subject, payload }, theirs));
        }
    }
    for action in answers {
        if let AgentAction::Publish { subject, payload } = action {
            other.hear(&Delivery { subject, payload }, world.ours());
        }
    }
    assert_eq!(other.stage(), CoordinatorStage::Over);
    assert!(other.refusals()[0].error.contains("busy with run r1"), "{:?}", other.refusals());
    world.run();
    world.check("the first run");
}

#[test]
fn an_agent_of_another_version_is_refused() {
    let world = World::new(7, 1, FAIR, OnLoss::Abort);
    let mut coordinator = world.coordinator;
    let now = Now { monotonic: Nanos::from_millis(100), unix: EPOCH };
    let payload = br#"{"wire":99,"agent":"agent-1","run":"r1","word":{"claimed":{"stars":5}}}"#.to_vec();
    coordinator.hear(&Delivery { subject: "plim.run.r1.a.agent-1.word".to_owned(), payload }, now);
    coordinator.tick(now);
    assert!(coordinator.refusals()[0].error.contains("version 99"), "{:?}", coordinator.refusals());
    let mut agent = Agent::new(identity("a", "0.2", 1));
    let payload = br#"{"wire":99,"run":"r1","order":{"sing":{}}}"#.to_vec();
    let actions = agent.hear(&Delivery { subject: "plim.to.a".to_owned(), payload }, now);
    let AgentAction::Publish { subject, payload } = &actions[0] else { panic!("{actions:?}") };
    assert_eq!(subject, "plim.run.r1.a.a.word");
    assert!(String::from_utf8_lossy(payload).contains("wrong_wire"));
}

/// Agents of a search stay claimed between its trials: they refuse other runs and accept its next one.
#[test]
fn an_agent_that_is_held_is_free_for_runs_of_its_holder_only() {
    let mut agent = Agent::new(identity("a", "0", 1));
    let now = |secs: u64| Now { monotonic: Nanos::from_secs(secs), unix: EPOCH };
    let mut told = |at: u64, run: &str, order: &str| {
        let payload = format!(r#"{{"wire":{WIRE_VERSION},"run":"{run}","order":{order}}}"#).into_bytes();
        let actions = agent.hear(&Delivery { subject: "plim.to.a".to_owned(), payload }, now(at));
        let said = actions.into_iter().filter_map(|action| match action {
            AgentAction::Publish { payload, .. } => Some(String::from_utf8(payload).unwrap()),
            _ => None,
        });
        let said = said.collect::<String>();
        // Its sign of life says whose it is.
        let here = agent.tick(now(at)).into_iter().find_map(|action| match action {
            AgentAction::Publish { payload, .. } => Some(String::from_utf8(payload).unwrap()),
            _ => None,
        });
        (said, here.unwrap_or_default())
    };
    let claim = |hold: &str| format!(r#"{{"claim":{{"orphan_ns":10000000000,"hold":{hold}}}}}"#);
    assert!(told(1, "r1", &claim("\"search\"")).0.contains("claimed"));
    assert!(told(2, "r1", "\"release\"").1.contains("\"run\":\"search\""));
    assert!(told(3, "other", &claim("null")).0.contains(r#"{"busy":{"run":"search"}}"#));
    assert!(told(4, "r2", &claim("\"search\"")).0.contains("claimed"));
    told(5, "r2", "\"release\"");
    // A run that was never its own frees nothing.
    told(6, "r1", "\"release\"");
    assert!(told(7, "other", &claim("null")).0.contains("busy"));
    assert!(told(8, "search", "\"release\"").1.contains("\"run\":null"));
    assert!(told(9, "other", &claim("null")).0.contains("claimed"));
    told(10, "other", "\"release\"");
    // An agent is free again some time after its holder has died.
    told(11, "r3", &claim("\"search\""));
    told(12, "r3", "\"release\"");
    told(30, "", "\"collect\"");
    assert!(told(31, "other", &claim("null")).0.contains("claimed"));
}
