//! The coordinator of a run: finds agents, sends them the plan and its files, begins, watches, and merges.

use std::collections::BTreeSet;

use plimsoll_core::{Nanos, figure, text::plural};
use plimsoll_document::{Problem, Problems};
use plimsoll_engine::{Control, Progress, RateCommand, Stop};
use plimsoll_fleet::{
    Coordinator, CoordinatorAction, CoordinatorOptions, CoordinatorStage, Delivery, Fabric as _, Here,
    LinkEvent, Member, MemberEnd, NatsEvent, NatsLink, Notice, OnLoss, Refusal, SteerCommand, Strength,
    deal_shards, now, released, told,
};
use plimsoll_plan::Plan;
use plimsoll_report::agent::{AgentResult, AgentState};
use plimsoll_report::result::Note;
use plimsoll_report::{RunContext, SavedRun};
use plimsoll_system::clock;

use crate::args::fleet::FleetSpec;
use crate::args::output::OutputArgs;
use crate::base::exit::{self, Exit};
use crate::base::failure::Failure;
use crate::base::messages::{Notify, say};
use crate::base::signals::SignalWatch;
use crate::session::done_once::sent_in_all;
use crate::session::fleet::broker::{agents, choose, connect, failure, refused};
use crate::session::fleet::course::Course;
use crate::session::fleet::merging::{AskedLoad, merged};
use crate::session::fleet::parcel::Parcel;
use crate::session::lifecycle::{CurrentControl, Lifecycle};
use crate::session::live::fault_log::FaultLog;
use crate::session::live::stats::Statistics;
use crate::session::live::view::{Stage, View};
use crate::session::observer::Observer as _;
use crate::session::queries::Queries;
use crate::session::run::observers::StoppingQueries;
use crate::session::run::{Live, Outcome, RunPreparation, context, exit_of, failure_under, with_setup};
use crate::session::saving::RunSaver;

/// Time between a change of the rate and its effect: by then every agent has heard of it, even if a beat or
/// two of its coordinator were lost.
const NOTICE: Nanos = Nanos::from_secs(3);
/// Time for messages before everything else is looked at.
const PATIENCE: Nanos = Nanos::from_millis(20);
/// Time for which the end of the run is repeated to agents.
const FAREWELL: Nanos = Nanos::from_millis(500);
/// Times that they are told.
const FAREWELLS: u64 = 4;
/// Longest refreshed values that are sent to agents, in bytes of their text. A broker takes messages of up
/// to a megabyte, and ends the connection that sends a longer one.
const LONGEST_VALUES: usize = 512 << 10;
/// Interval between two looks at how each agent is doing.
const LOOK: Nanos = Nanos::from_secs(1);

/// The agents of one run, or of several that follow each other.
pub(crate) struct Fleet {
    link: NatsLink,
    /// Their names, and the number of shards of each.
    agents: Vec<(String, u32)>,
    /// Threads of each shard.
    threads: u32,
    on_loss: OnLoss,
    orphan: Nanos,
    /// Name under which agents stay claimed from run to run.
    hold: Option<String>,
    say: Notify,
}

impl Fleet {
    /// Connects to the broker, and chooses agents. Each has a shard of `threads` threads, or shards of one
    /// thread by its strength. With a name to hold them by, they stay claimed until they are
    /// [let go](Self::let_go).
    ///
    /// # Errors
    /// There is no broker, or not the agents that are asked for.
    pub(crate) fn gather(
        spec: FleetSpec,
        threads: Option<u32>,
        hold: Option<String>,
        say: Notify,
    ) -> Result<Self, Failure> {
        let FleetSpec { address, agents: wanted, on_loss, orphan } = spec;
        let mut link = connect(address)?;
        let chosen = choose(&agents(&mut link, &wanted)?, &wanted)?;
        let strengths: Vec<Strength> = chosen.iter().map(Here::strength).collect();
        let dealt = if threads.is_some() { vec![1; chosen.len()] } else { deal_shards(&strengths) };
        let agents = chosen.into_iter().map(|here| here.agent).zip(dealt).collect();
        Ok(Self { link, agents, threads: threads.unwrap_or(1), on_loss, orphan, hold, say })
    }

    /// The agents in words: how many, and their names.
    pub(crate) fn described(&self) -> String {
        format!("{}: {}", counted(self.agents.len()), self.names().join(", "))
    }

    fn names(&self) -> Vec<String> {
        self.agents.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Carries out a plan on all of them. Its setup, if it has one, was carried out by `around`.
    ///
    /// # Errors
    /// The broker refuses an operation, or `audience` cannot begin. Refusals of agents are told by
    /// [`Conducted::conclude`].
    pub(crate) fn carry_out(
        &mut self,
        plan: &Plan,
        parcel: Parcel,
        run: &str,
        handle: &Control,
        around: Option<&Lifecycle>,
        audience: &mut dyn Audience,
    ) -> Result<Conducted, Failure> {
        let mut parcel = parcel;
        let refreshed = around.and_then(Lifecycle::refreshed);
        around.iter().for_each(|around| parcel.hand_over(around.to_hand_over()));
        parcel.add_argument(format!("--seed={}", plan.seed));
        let Parcel { prepare, files } = parcel;
        let options = CoordinatorOptions {
            run: run.to_owned(),
            agents: self.agents.clone(),
            threads: self.threads,
            prepare,
            files,
            on_loss: self.on_loss,
            orphan: self.orphan,
            hold: self.hold.clone(),
        };
        handle.notice(NOTICE);
        let mut conductor = Conductor {
            coordinator: Coordinator::new(options, now()),
            fleet: self,
            plan,
            handle,
            steered: 0,
            stop: Stop::No,
            stopped: None,
            begun: None,
            course: None,
            audience,
            next_look: Nanos::ZERO,
            around,
            refreshed,
        };
        conductor.conduct()?;
        let Conductor { coordinator, stopped, begun, course, fleet, .. } = conductor;
        Ok(Conducted { coordinator, stopped, has_begun: begun.is_some(), course, threads: fleet.threads })
    }

    /// Lets all agents go that are held, and ends the connection.
    pub(crate) fn let_go(mut self) {
        for _ in 0..if self.hold.is_some() { FAREWELLS } else { 0 } {
            for Delivery { subject, payload } in
                released(self.hold.as_deref().unwrap_or_default(), &self.names())
            {
                self.link.publish(&subject, payload);
            }
            clock::sleep_until(clock::monotonic() + Nanos(FAREWELL.0 / FAREWELLS));
        }
        self.link.close();
    }
}

/// Whoever watches a run of a fleet.
pub(crate) trait Audience {
    /// The load is about to begin.
    ///
    /// # Errors
    /// It cannot be watched.
    fn begin(&mut self) -> Result<(), Failure>;

    /// An interval of the whole load.
    fn show(&mut self, progress: &Progress<'_>);

    /// The agents as they stand, once a second.
    fn look(&mut self, agents: Vec<AgentResult>);

    /// Returns `true` if it is told of every step of the fleet, and not of trouble only.
    fn wants_steps(&self) -> bool;

    /// Returns `true` if it is shown intervals only of a load that all agents have begun.
    fn needs_all(&self) -> bool;
}

/// A run of a fleet that is over.
pub(crate) struct Conducted {
    coordinator: Coordinator,
    stopped: Option<Nanos>,
    has_begun: bool,
    course: Option<Course>,
    threads: u32,
}

impl Conducted {
    /// Names of agents whose process ended before it had begun.
    pub(crate) fn unbegun(&self) -> Vec<String> {
        self.coordinator.unbegun().map(str::to_owned).collect()
    }

    /// The result of all agents, and whether each has told all of its own.
    ///
    /// # Errors
    /// The load has not begun, or nothing is known of it.
    pub(crate) fn conclude(
        &self,
        plan: &Plan,
        handle: &Control,
        signals: &SignalWatch,
        say: &Notify,
    ) -> Result<(SavedRun, bool), Failure> {
        if let Some(failure) = not_begun(&self.coordinator, self.has_begun, signals) {
            return Err(failure);
        }
        let members = self.coordinator.members();
        members.iter().for_each(|member| tell_messages(member, say));
        let load =
            AskedLoad { plan, threads: self.threads, profile: handle.profile(), stopped: self.stopped };
        let run = merged(&members, &load)?;
        let is_whole = run.result.agents.iter().all(|agent| agent.state == AgentState::Finished);
        Ok((run, is_whole))
    }
}

/// Everything that looks at a single run: its view, and the history.
struct Spectators<'a> {
    view: View,
    saver: Option<RunSaver>,
    plan: &'a Plan,
    context: &'a RunContext,
    handle: &'a Control,
    before: &'a RunPreparation,
    queries: Option<StoppingQueries>,
}

impl Audience for Spectators<'_> {
    fn begin(&mut self) -> Result<(), Failure> {
        self.saver = self.before.keep(self.plan, self.context)?;
        let begun = self.view.begin(self.plan, self.context, self.handle, false);
        begun.map_err(|error| Failure::no_thread(&error))
    }

    fn show(&mut self, progress: &Progress<'_>) {
        self.view.observe(progress);
        self.queries.iter_mut().for_each(|queries| queries.observe(progress));
        self.saver.iter_mut().for_each(|saver| saver.note(progress));
    }

    fn look(&mut self, agents: Vec<AgentResult>) {
        self.view.growing().set_agents(agents);
    }

    fn wants_steps(&self) -> bool {
        true
    }

    fn needs_all(&self) -> bool {
        false
    }
}

/// Carries a plan out on a fleet.
///
/// # Errors
/// There is no broker, agents are missing, or one of them cannot carry out the plan.
pub(crate) fn run_on_fleet(
    plan: &Plan,
    parcel: Parcel,
    spec: FleetSpec,
    output: &OutputArgs,
    (live, control): Live<'_>,
    threads: Option<u32>,
    before: &RunPreparation,
) -> Result<Outcome, Failure> {
    let say = say(output.quiet);
    let mut fleet = Fleet::gather(spec, threads, None, say.clone())?;
    let context = context(plan, &[], before, false);
    say(&format!("fleet: run {} on {}", context.run_id, fleet.described()));
    let (handle, current) = (Control::default(), CurrentControl::default());
    current.set(&handle);
    let signals = current.watch_signals(&say)?;
    let statistics = Statistics::open(plan, live, output.quiet)?;
    let stage = Stage::of(before.look, control, output.quiet, &statistics);
    let view = View::start(
        plan,
        &handle,
        (live, control),
        (stage, statistics),
        FaultLog::default(),
        output.quiet,
        &say,
    )?;
    let mut around = Lifecycle::of_others(plan, &handle, &current, &say)
        .map_err(|error| failure_under(error, &signals))?;
    let context = with_setup(context, around.as_ref().and_then(Lifecycle::setup));
    let queries = Queries::begin(plan)?;
    let queries = queries.map(|queries| StoppingQueries { queries, control: handle.clone() });
    let mut spectators =
        Spectators { view, saver: None, plan, context: &context, handle: &handle, before, queries };
    let conducted = fleet.carry_out(plan, parcel, &context.run_id, &handle, around.as_ref(), &mut spectators);
    let Spectators { view, mut saver, queries, .. } = spectators;
    let exporters = view.close();
    fleet.let_go();
    let torn_down = around.as_mut().and_then(Lifecycle::tear_down);
    let concluded = conducted.and_then(|conducted| {
        let (run, is_whole) = conducted.conclude(plan, &handle, &signals, &say)?;
        Ok((conducted, run, is_whole))
    });
    let (conducted, mut run, is_whole) = match concluded {
        Ok(concluded) => concluded,
        Err(failure) => {
            saver.take().into_iter().for_each(RunSaver::abandon);
            return Err(failure);
        }
    };
    run.plan.clone_from(&before.plan);
    let about = &mut run.result.run;
    about.id.clone_from(&context.run_id);
    about.name.clone_from(&context.name);
    about.args.clone_from(&context.args);
    about.plan_hash.clone_from(&context.plan_hash);
    about.interrupted_by_signal = signals.received();
    if let Some(course) = &conducted.course {
        let about = &run.result;
        let measured = Nanos::from_secs_f64(about.warmup_s + about.duration_s);
        let end = Nanos(about.run.started_at_unix_ns) + measured;
        let is_hurried = about.run.interrupted_by_signal.is_some();
        run.judge_by(course.watch(), |results| {
            queries.into_iter().for_each(|stopping| stopping.queries.judge(results, end, is_hurried));
        });
        let missing = course.missing(conducted.coordinator.missing_intervals());
        if missing > 0 && !run.result.thresholds.is_empty() {
            let text = format!(
                "thresholds of windows and phases were judged without {missing} intervals of agents, \
                 which came too late"
            );
            run.result.notes.push(Note { code: "intervals_missing".to_owned(), text });
        }
    }
    if let Some(around) = &around {
        let refreshes = around.take_refreshes();
        let once = around.setup().into_iter().chain(&torn_down);
        let sent = sent_in_all([].iter(), once, refreshes.as_ref());
        let setup = around.setup().map(|setup| setup.result.clone());
        let refresh = refreshes.map(|refreshes| refreshes.result);
        let outdated = conducted.coordinator.outdated();
        run.add_around((setup, refresh, torn_down.map(|done| done.result)), sent, &outdated);
    }
    run.result.exports = exporters.finish(run.result.verdict.valid, &say);
    let judged = exit_of(&run.result);
    let exit = if is_whole { judged } else { exit::worse(judged, Exit::AgentLost) };
    Ok(Outcome { run: Box::new(run), exit, said: None, kept: saver, evidence: None })
}

fn counted(agents: usize) -> String {
    plural(agents as u64, "agent")
}

/// The failure of a run that has not begun; `None` if it has.
fn not_begun(coordinator: &Coordinator, has_begun: bool, signals: &SignalWatch) -> Option<Failure> {
    let refusals = coordinator.refusals();
    if has_begun {
        return None;
    }
    if refusals.is_empty() {
        let failure = Failure::environment(Problem::new("stopped before the load had begun"));
        let exit = signals.received().map_or(failure.exit, Exit::Interrupted);
        return Some(Failure { exit, ..failure });
    }
    // Every agent reports a problem of the run itself: once is enough.
    let mut told = BTreeSet::new();
    let mut problems = Problems::default();
    for Refusal { agent, error, hint, is_usage } in refusals {
        if *is_usage && !told.insert(error.clone()) {
            continue;
        }
        let problem = Problem::new(format!("agent {agent}: {error}"));
        problems.push(match hint {
            Some(hint) => problem.with_hint(hint.clone()),
            None => problem,
        });
    }
    let is_usage = refusals.iter().all(|refusal| refusal.is_usage);
    let failure = Failure::usage(problems);
    Some(if is_usage { failure } else { Failure { exit: Exit::Environment, ..failure } })
}

/// Reports the last output of an agent's process, if its end was not that of a run.
fn tell_messages(member: &Member, say: &Notify) {
    let (MemberEnd::Ended(end) | MemberEnd::Left(end) | MemberEnd::Died(end)) = &member.end else { return };
    if member.part.is_empty() || end.exit.is_none() {
        let code = end.exit.map_or_else(|| "a signal".to_owned(), |code| format!("code {code}"));
        let left = if member.part.is_empty() { "nothing" } else { "the figures until then" };
        say(&format!("warning: `plimsoll run` of agent {} ended with {code}, and left {left}", member.name));
        end.messages.iter().for_each(|line| say(&format!("  {}: {line}", member.name)));
    }
}

/// A run under way.
struct Conductor<'a> {
    coordinator: Coordinator,
    fleet: &'a mut Fleet,
    plan: &'a Plan,
    /// Keys, signals and the control port act on it, as on the control of a run in this process.
    handle: &'a Control,
    /// Changes of the rate that agents were told of.
    steered: usize,
    stop: Stop,
    /// When the load was stopped, since the start.
    stopped: Option<Nanos>,
    /// The start on the driver's clock.
    begun: Option<Nanos>,
    /// The run from its beginning on.
    course: Option<Course>,
    audience: &'a mut dyn Audience,
    /// When the agents are looked at next.
    next_look: Nanos,
    around: Option<&'a Lifecycle>,
    /// The refreshed values of the setup as the agents were sent them last.
    refreshed: Option<String>,
}

impl Conductor<'_> {
    fn conduct(&mut self) -> Result<(), Failure> {
        for pattern in self.coordinator.subscriptions() {
            self.fleet.link.subscribe(&pattern);
        }
        let mut is_watched = false;
        while self.coordinator.stage() != CoordinatorStage::Over {
            self.hear()?;
            if self.begun.is_some() && !is_watched {
                is_watched = true;
                self.audience.begin()?;
            }
            self.show();
            self.steer();
            self.hand_over();
            let actions = self.coordinator.tick(now());
            self.carry_out(actions);
        }
        self.show();
        let since = clock::monotonic();
        while clock::monotonic() - since < FAREWELL {
            let actions = self.coordinator.last_words(now());
            self.carry_out(actions);
            clock::sleep_until(clock::monotonic() + Nanos(FAREWELL.0 / FAREWELLS));
        }
        Ok(())
    }

    /// Takes what comes in a while. Everything else looks at every agent, so it is done once in that time
    /// and not once for each message.
    fn hear(&mut self) -> Result<(), Failure> {
        let until = clock::monotonic() + PATIENCE;
        loop {
            let left = until.since(clock::monotonic());
            match self.fleet.link.receive(left) {
                Some(NatsEvent::Delivery(delivery)) => {
                    let actions = self.coordinator.hear(&delivery, now());
                    self.carry_out(actions);
                }
                Some(NatsEvent::Link(LinkEvent::Refused(why))) => return Err(refused(&why)),
                Some(NatsEvent::Link(LinkEvent::Flooded(bytes))) => {
                    return Err(failure(&self.fleet.link.flooded(bytes)));
                }
                Some(NatsEvent::Link(event)) => (self.fleet.say)(&format!("fleet: {}", told(&event))),
                None => {}
            }
            if left == Nanos::ZERO || self.coordinator.stage() == CoordinatorStage::Over {
                return Ok(());
            }
        }
    }

    fn carry_out(&mut self, actions: Vec<CoordinatorAction>) {
        for action in actions {
            match action {
                CoordinatorAction::Publish { subject, payload } => self.fleet.link.publish(&subject, payload),
                CoordinatorAction::Interval { place, interval } => {
                    self.course.iter_mut().for_each(|course| course.add(place, &interval));
                }
                CoordinatorAction::Notice(notice) => self.note(&notice),
            }
        }
    }

    fn note(&mut self, notice: &Notice) {
        let text = match notice {
            Notice::Begins { at_unix_ns } => {
                let at = now();
                let start = at.monotonic + Nanos(*at_unix_ns).since(at.unix);
                self.begun = Some(start);
                self.handle.begin(self.plan, start);
                let members = self.coordinator.sketches();
                let first = |member: &Member| member.shards.0 * self.fleet.threads;
                let first: Vec<u32> = members.iter().map(first).collect();
                self.course = Some(Course::new(self.plan, &first, Nanos(*at_unix_ns)));
                let bounds = members.iter().filter_map(|member| Some(member.clock?.bound_ns));
                let bound = bounds.max().map(|bound| figure::nanos(Nanos(bound))).unwrap_or_default();
                format!("all are ready, and begin within {bound} of one instant")
            }
            Notice::Suspect(agent) => format!("warning: no message from agent {agent}"),
            Notice::Back(agent) => format!("agent {agent} is back"),
            Notice::Lost(agent) => {
                if self.coordinator.stage() != CoordinatorStage::Over {
                    self.note_stop();
                }
                format!("warning: agent {agent} is lost")
            }
            Notice::Died(agent) => {
                self.note_stop();
                format!("warning: the run of agent {agent} was killed, or hung: its shard is lost")
            }
            Notice::Unbegun(agent) => {
                self.note_stop();
                format!("warning: the run of agent {agent} ended before it had begun")
            }
            Notice::Leaves(agent) => {
                self.note_stop();
                format!("warning: agent {agent} was told to end, and stops its part of the load")
            }
            Notice::Unsteered { agent, error } => {
                format!("warning: agent {agent} did not change its load: {error}")
            }
            Notice::Outdated { agent, error } => {
                format!("warning: agent {agent} has not taken the refreshed values yet: {error}")
            }
            Notice::Ended(agent) => format!("agent {agent} has ended"),
            Notice::Asked { agent, lost, shard, .. } => {
                let first_worker = shard * self.fleet.threads;
                self.course.iter_mut().for_each(|course| course.join(first_worker));
                format!("agent {agent} gets ready for the shards of agent {lost}")
            }
            Notice::TakesOver { place, agent, from } => {
                self.course.iter_mut().for_each(|course| course.begin(*place, *from));
                format!("warning: agent {agent} takes lost shards over from {} on", figure::nanos(*from))
            }
            Notice::NotTaken { lost, reason } => {
                format!("warning: nobody takes over the shards of agent {lost}: {reason}")
            }
        };
        if self.audience.wants_steps() || text.starts_with("warning") {
            (self.fleet.say)(&format!("fleet: {text}"));
        }
    }

    /// Notes when the loss of an agent has stopped the others.
    fn note_stop(&mut self) {
        if self.coordinator.is_stopping() {
            self.stopped = self.stopped.or_else(|| Some(self.elapsed()));
        }
    }

    /// Time since the start.
    fn elapsed(&self) -> Nanos {
        self.begun.map_or(Nanos::ZERO, |begun| clock::monotonic().since(begun))
    }

    /// Passes changes by the user on to the agents.
    fn steer(&mut self) {
        let commands = self.handle.commands();
        for (at, command) in commands.iter().skip(self.steered) {
            let command = match command {
                RateCommand::To(rate) => {
                    SteerCommand::Rate { count: rate.count(), period_ns: rate.period().0 }
                }
                RateCommand::Pause => SteerCommand::Pause,
                RateCommand::Resume => SteerCommand::Resume,
            };
            let actions = self.coordinator.steer(command, *at, now());
            self.carry_out(actions);
        }
        self.steered = commands.len();
        let stop = self.handle.requested_stop();
        if stop > self.stop {
            self.stop = stop;
            self.stopped = self.stopped.or_else(|| Some(self.elapsed()));
            let command = if stop == Stop::Now { SteerCommand::StopNow } else { SteerCommand::Stop };
            let actions = self.coordinator.steer(command, Nanos::ZERO, now());
            self.carry_out(actions);
        }
    }

    /// Sends the agents values that were refreshed.
    fn hand_over(&mut self) {
        let around = self.around.filter(|_| self.begun.is_some());
        let Some(values) = around.and_then(Lifecycle::refreshed) else { return };
        if self.refreshed.as_ref() == Some(&values) {
            return;
        }
        if values.len() > LONGEST_VALUES {
            let length = figure::bytes(values.len() as u64);
            let text = format!("refreshed values of {length} are too long for a message");
            (self.fleet.say)(&format!("warning: fleet: {text}: the agents go on with those before"));
        } else {
            self.coordinator.set_values(values.clone().into_bytes(), now());
        }
        self.refreshed = Some(values);
    }

    /// Shows the seconds that all agents have reported.
    fn show(&mut self) {
        let Some(course) = &mut self.course else { return };
        course.note(self.coordinator.standings());
        let audience = &mut *self.audience;
        if audience.needs_all() && self.coordinator.unbegun().next().is_some() {
            return;
        }
        course.tell(self.handle, |progress| audience.show(progress));
        let present = clock::monotonic();
        if present >= self.next_look {
            self.next_look = present + LOOK;
            let agents = course.agents(&self.coordinator.sketches(), self.coordinator.standings());
            self.audience.look(agents);
        }
    }
}
