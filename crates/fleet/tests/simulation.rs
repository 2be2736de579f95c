//! Whole fleets in virtual time: agents, a coordinator and a fabric that loses, delays, repeats and
//! reorders messages, with machines that die and networks that part, all by seed.
//!
//! `PLIMSOLL_SEEDS=A..B` has other seeds than usual.

use std::collections::BTreeMap;

use plimsoll_core::{Nanos, Random};
use plimsoll_fleet::{
    Agent, AgentAction, AgentIdentity, Coordinator, CoordinatorAction, CoordinatorOptions, CoordinatorStage,
    Delivery, End, HostEvent, Line, MemberEnd, Notice, Now, OnLoss, Prepare, Steer, SteerCommand,
};

const TICK: Nanos = Nanos::from_millis(50);
/// Length of the load.
const LOAD: Nanos = Nanos::from_secs(20);
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
    shard: u64,
    of: u64,
    ready_at: Nanos,
    is_ready: bool,
    /// On the true clock.
    start: Option<Nanos>,
    stop: Option<Nanos>,
    steered: Vec<Steer>,
    next_line: Nanos,
}

impl Process {
    /// Requests that the shard has until an instant since the start: one each 10 ms of the whole load.
    fn planned(shard: u64, of: u64, until: Nanos) -> u64 {
        let all = until.0.min(LOAD.0) / 10_000_000;
        (0..all).filter(|index| index % of == shard).count() as u64
    }

    fn counted(&self, now: Nanos) -> u64 {
        let Some(start) = self.start else { return 0 };
        Self::planned(self.shard, self.of, self.stop.unwrap_or(now).min(now).since(start))
    }

    fn has_ended(&self, now: Nanos) -> bool {
        let Some(start) = self.start else { return false };
        now >= start + LOAD || self.stop.is_some_and(|stop| now >= stop)
    }

    fn saved(&self, now: Nanos) -> Vec<u8> {
        // Longer than a piece now and then.
        let mut bytes = self.counted(now).to_le_bytes().to_vec();
        bytes.resize(8 + (self.counted(now) as usize % 3) * 200_000, 7);
        bytes
    }
}

fn count_of(part: &[u8]) -> u64 {
    part.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

struct Machine {
    agent: Agent,
    /// Its clock is so far ahead of the true one.
    ahead: i64,
    process: Option<Process>,
    /// Runs that were saved here.
    history: BTreeMap<String, Vec<u8>>,
    dies: Option<Nanos>,
    run: String,
    /// Requests that its process has really made, once it has ended or died.
    made: Option<u64>,
    started: Option<Nanos>,
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
    /// `true` once all were told that they begin.
    has_begun: bool,
    trouble: Vec<String>,
}

const FILE: usize = 700_000;

impl World {
    fn new(seed: u64, agents: usize, weather: Weather, on_loss: OnLoss) -> Self {
        let mut random = Random::new(seed, 1);
        let names: Vec<String> = (1..=agents).map(|number| format!("agent-{number}")).collect();
        let options = CoordinatorOptions {
            run: "r1".to_owned(),
            agents: names.clone(),
            prepare: Prepare::default(),
            files: vec![("plan.yaml".to_owned(), vec![5; FILE]), ("empty".to_owned(), Vec::new())],
            on_loss,
            orphan: ORPHAN,
        };
        let now = Now { monotonic: Nanos::ZERO, unix: EPOCH };
        let machine = |name: &String| Machine {
            agent: Agent::new(AgentIdentity { name: name.clone(), version: "0".to_owned(), cores: 2 }),
            ahead: random.below(4_000_000_000) as i64 - 2_000_000_000,
            process: None,
            history: BTreeMap::new(),
            dies: None,
            run: String::new(),
            made: None,
            started: None,
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
            has_begun: false,
            trouble: Vec::new(),
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
                CoordinatorAction::Notice(notice) => {
                    self.has_begun |= matches!(notice, Notice::Begins { .. });
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
                        shard: prepare.shard.into(),
                        of: prepare.of.into(),
                        ready_at,
                        is_ready: false,
                        start: None,
                        stop: None,
                        steered: Vec::new(),
                        next_line: Nanos::ZERO,
                    };
                    if self.machines[machine].process.replace(process).is_some() {
                        self.trouble.push(format!("agent {machine} has two processes"));
                    }
                    self.machines[machine].run = run;
                }
                AgentAction::Start { at_unix_ns } => {
                    let there = at_unix_ns as i64 - EPOCH.0 as i64 - self.machines[machine].ahead;
                    let start = Nanos(there.max(0) as u64);
                    let now = self.now;
                    let host = &mut self.machines[machine];
                    let Some(process) = &mut host.process else { continue };
                    if start < now {
                        // `run --start-at` refuses to begin late.
                        host.process = None;
                        host.made = Some(0);
                        let messages = vec!["error: late".to_owned()];
                        events.push(HostEvent::Ended {
                            end: End { exit: Some(1), messages },
                            saved: Vec::new(),
                        });
                    } else {
                        process.start = Some(start);
                        process.next_line = start + Nanos::from_secs(1);
                        host.started = Some(start);
                    }
                }
                AgentAction::Steer(steer) => {
                    let now = self.now;
                    if let Some(process) = &mut self.machines[machine].process {
                        if matches!(steer.command, SteerCommand::Stop | SteerCommand::StopNow) {
                            process.stop.get_or_insert(now);
                        }
                        process.steered.push(steer);
                    }
                }
                AgentAction::TakePart => {
                    let part = self.machines[machine].process.as_ref().map(|process| process.saved(self.now));
                    events.push(HostEvent::Part(part.unwrap_or_default()));
                }
                AgentAction::Discard => {
                    let now = self.now;
                    let host = &mut self.machines[machine];
                    if let Some(process) = host.process.take() {
                        host.made = Some(process.counted(now));
                    }
                }
                AgentAction::Collect { run } => {
                    let saved = self.machines[machine].history.get(&run).cloned().unwrap_or_default();
                    events.push(HostEvent::Collected { run, saved });
                }
            }
            for event in events {
                let now = self.theirs(machine);
                let more = self.machines[machine].agent.note(event, now);
                self.carry_out(machine, more);
            }
        }
    }

    /// News of the process of a machine.
    fn host_events(&mut self, machine: usize) -> Vec<HostEvent> {
        let now = self.now;
        let host = &mut self.machines[machine];
        let Some(process) = &mut host.process else { return Vec::new() };
        let mut events = Vec::new();
        if !process.is_ready && now >= process.ready_at {
            process.is_ready = true;
            events.push(HostEvent::Ready);
        }
        if process.has_ended(now) {
            let saved = process.saved(now);
            host.made = Some(process.counted(now));
            host.history.insert(host.run.clone(), saved.clone());
            host.process = None;
            events.push(HostEvent::Ended { end: End { exit: Some(0), messages: Vec::new() }, saved });
        } else if process.start.is_some() && now >= process.next_line {
            process.next_line += Nanos::from_secs(1);
            let elapsed_s = now.since(process.start.unwrap_or(now)).as_secs_f64();
            events.push(HostEvent::Line(Line { elapsed_s, ..Line::default() }));
        }
        events
    }

    fn step(&mut self) {
        self.now += TICK;
        let now = self.now;
        for machine in 0..self.machines.len() {
            if self.machines[machine].dies.is_some_and(|dies| dies == now) {
                let host = &mut self.machines[machine];
                // Its process ends with it.
                let made = host.process.take().map(|process| process.counted(now));
                host.made = host.made.or(made).or(Some(0));
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
            for event in self.host_events(machine) {
                let theirs = self.theirs(machine);
                let actions = self.machines[machine].agent.note(event, theirs);
                self.carry_out(machine, actions);
            }
            let theirs = self.theirs(machine);
            let actions = self.machines[machine].agent.tick(theirs);
            self.carry_out(machine, actions);
        }
        if self.coordinator_lives() {
            if self.stop_at == Some(now) {
                let actions = self.coordinator.steer(SteerCommand::Stop, Nanos::ZERO, self.ours());
                self.coordinate(actions);
            }
            let actions = self.coordinator.tick(self.ours());
            self.coordinate(actions);
        }
    }

    fn lives(&self, machine: usize) -> bool {
        self.machines[machine].dies.is_none_or(|dies| dies > self.now)
    }

    fn coordinator_lives(&self) -> bool {
        self.coordinator_dies.is_none_or(|dies| dies > self.now)
    }

    /// Runs until everybody is free again, and for a while longer says that it is over.
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
                        && self.machines[machine].process.is_none()
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
        let of = self.machines.len() as u64;
        if !self.coordinator_lives() {
            return;
        }
        let members = self.coordinator.members();
        let start = self.coordinator.start();
        for (shard, (member, machine)) in (0..).zip(members.iter().zip(&self.machines)) {
            let (known, made) = (count_of(&member.part), machine.made.unwrap_or(0));
            let planned = Process::planned(shard, of, LOAD);
            if !self.has_begun {
                assert_eq!(made, 0, "{what}: {} made requests, though nobody was to begin", member.name);
                continue;
            }
            match &member.end {
                MemberEnd::Ended(_) => assert_eq!(known, made, "{what}: {}", member.name),
                MemberEnd::Lost => assert!(known <= made && made <= planned, "{what}: {}", member.name),
                MemberEnd::None => panic!("{what}: {} goes on", member.name),
            }
            // The bound of the clock's estimate holds of the start.
            if let (Some(began), Some(clock), Some(start)) = (machine.started, member.clock, start) {
                let skew = (EPOCH + began).0.abs_diff(start.0);
                assert!(skew <= clock.bound_ns, "{what}: {} began {skew} ns beside", member.name);
            }
        }
    }
}

fn seeds(usual: u64) -> std::ops::Range<u64> {
    let given = std::env::var("PLIMSOLL_SEEDS").ok();
    let given = given.as_deref().and_then(|text| text.split_once(".."));
    match given.and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?))) {
        Some((from, to)) => from..to,
        None => 0..usual,
    }
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
    assert!(members.iter().all(|member| matches!(&member.end, MemberEnd::Ended(end) if end.exit == Some(0))));
    assert!(members.iter().all(|member| member.line.is_some() && member.latest_clock.is_some()));
    assert!(world.now < Nanos::from_secs(40), "{:?}", world.now);
}

/// Deaths, partitions, loss, delay and duplicates, at any time: every account balances, every run ends, and
/// nobody makes requests if not all were ready.
#[test]
fn every_fleet_ends_and_its_accounts_balance() {
    let (mut begun, mut lost, mut refused, mut orphaned) = (0, 0, 0, 0);
    for seed in seeds(300) {
        let mut random = Random::new(seed, 0);
        let weather = Weather {
            loss: [0.0, 0.02, 0.2][random.below(3) as usize],
            twice: [0.0, 0.1][random.below(2) as usize],
            delay: [Nanos::from_micros(200), Nanos::from_millis(20), Nanos::from_millis(80)]
                [random.below(3) as usize],
        };
        let agents = 1 + random.below(5) as usize;
        let on_loss = [OnLoss::Abort, OnLoss::Continue][random.below(2) as usize];
        let mut world = World::new(seed, agents, weather, on_loss);
        let instant = |random: &mut Random| Nanos(TICK.0 * (1 + random.below(600)));
        if random.below(3) == 0 {
            let who = random.below(agents as u64) as usize;
            world.machines[who].dies = Some(instant(&mut random));
        }
        if random.below(3) == 0 {
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
        world.run();
        world.check(&format!("seed {seed}"));
        let members = world.coordinator.members();
        begun += u64::from(members.iter().any(|member| member.arrived > 0));
        lost += u64::from(members.iter().any(|member| member.end == MemberEnd::Lost));
        refused += u64::from(!world.coordinator.refusals().is_empty());
        orphaned += u64::from(!world.coordinator_lives());
    }
    if std::env::var_os("PLIMSOLL_SEEDS").is_none() {
        assert!(
            begun > 150 && lost > 20 && refused > 10 && orphaned > 10,
            "{begun} {lost} {refused} {orphaned}"
        );
    }
}

#[test]
fn a_loss_stops_the_others_or_lets_them_go_on() {
    for on_loss in [OnLoss::Abort, OnLoss::Continue] {
        let mut world = World::new(3, 3, FAIR, on_loss);
        world.machines[1].dies = Some(Nanos::from_secs(12));
        world.run();
        world.check("a loss");
        let members = world.coordinator.members();
        assert_eq!(members[1].end, MemberEnd::Lost);
        let known = count_of(&members[1].part);
        assert!(known > 0, "parts had come before its death");
        let whole = Process::planned(0, 3, LOAD);
        assert_eq!(count_of(&members[0].part) == whole, on_loss == OnLoss::Continue);
    }
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
        assert_eq!(machine.history.get("r1").map(|saved| count_of(saved)), machine.made);
        assert!(machine.made.is_some_and(|made| made > 0));
    }
}

#[test]
fn a_second_coordinator_is_told_that_the_agent_is_busy() {
    let mut world = World::new(6, 1, FAIR, OnLoss::Abort);
    while world.coordinator.stage() != CoordinatorStage::Begun {
        world.step();
    }
    let options = CoordinatorOptions {
        run: "r2".to_owned(),
        agents: vec!["agent-1".to_owned()],
        prepare: Prepare::default(),
        files: Vec::new(),
        on_loss: OnLoss::Abort,
        orphan: ORPHAN,
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
    let mut agent = Agent::new(AgentIdentity { name: "a".to_owned(), version: "0.2".to_owned(), cores: 1 });
    let payload = br#"{"wire":99,"run":"r1","order":{"sing":{}}}"#.to_vec();
    let actions = agent.hear(&Delivery { subject: "plim.to.a".to_owned(), payload }, now);
    let AgentAction::Publish { subject, payload } = &actions[0] else { panic!("{actions:?}") };
    assert_eq!(subject, "plim.run.r1.a.a.word");
    assert!(String::from_utf8_lossy(payload).contains("wrong_wire"));
}
