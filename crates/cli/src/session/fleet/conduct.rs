//! The coordinator of a run: it finds agents, sends them what they need, begins, watches, and merges.

use std::collections::BTreeSet;
use std::io::IsTerminal as _;

use plimsoll_core::Nanos;
use plimsoll_driver::clock;
use plimsoll_engine::{Control, RateCommand, Stop};
use plimsoll_fleet::{
    Coordinator, CoordinatorAction, CoordinatorOptions, CoordinatorStage, Fabric as _, LinkEvent, Member,
    MemberEnd, NatsEvent, NatsLink, Notice, Refusal, SteerCommand, now, told,
};
use plimsoll_metrics::figure;
use plimsoll_plan::{Plan, Problem, Problems};

use crate::args::control::ControlSpec;
use crate::args::fleet::FleetSpec;
use crate::args::output::OutputArgs;
use crate::base::exit::{self, Exit};
use crate::base::failure::Failure;
use crate::base::messages::{Notify, say};
use crate::base::signals::SignalWatch;
use crate::base::streams;
use crate::session::control::steering::Steerers;
use crate::session::fleet::broker::{agents, choose, connect, refused};
use crate::session::fleet::merging::{AskedLoad, merged};
use crate::session::fleet::parcel::Parcel;
use crate::session::live::growing_result::GrowingResult;
use crate::session::run::{Outcome, RunPreparation, context, exit_of};
use crate::session::saving::RunSaver;

/// From a change of the rate to when it applies: every agent has heard of it by then, even if a beat or two
/// of its coordinator were lost.
const NOTICE: Nanos = Nanos::from_secs(3);
/// Longest wait for a message before everything else is looked at.
const PATIENCE: Nanos = Nanos::from_millis(20);
/// Time for which agents are told that it is over.
const FAREWELL: Nanos = Nanos::from_millis(500);
/// Interval between two lines of progress.
const LINE: Nanos = Nanos::from_secs(1);
/// The same where stderr is no terminal.
const RARE_LINE: Nanos = Nanos::from_secs(10);

/// Carries a plan out on a fleet.
///
/// # Errors
/// There is no broker, or not the agents that are asked for, or one of them cannot carry it out.
pub(crate) fn execute(
    plan: &Plan,
    parcel: Parcel,
    spec: FleetSpec,
    (output, control): (&OutputArgs, &ControlSpec),
    threads: Option<u32>,
    before: &RunPreparation,
) -> Result<Outcome, Failure> {
    let say = say(output.quiet);
    let mut link = connect(spec.address)?;
    let chosen = choose(&agents(&mut link, &spec.agents)?, &spec.agents)?;
    // All have as many threads: as many as the weakest has processors.
    let fewest = chosen.iter().map(|here| here.cores).min().unwrap_or(1).max(1);
    let threads = threads.unwrap_or(fewest);
    let context = context(plan, &[], before, false);
    let Parcel { mut prepare, files } = parcel;
    let place = prepare.args.iter().position(|arg| arg == "--").unwrap_or(prepare.args.len());
    let own = [format!("--seed={}", plan.seed), format!("--threads={threads}")];
    prepare.args.splice(place..place, own);
    let names: Vec<String> = chosen.iter().map(|here| here.agent.clone()).collect();
    say(&format!("fleet: run {} on {}: {}", context.run_id, counted(names.len()), names.join(", ")));
    let options = CoordinatorOptions {
        run: context.run_id.clone(),
        agents: names,
        prepare,
        files,
        on_loss: spec.on_loss,
        orphan: spec.orphan,
    };
    let handle = Control::default();
    handle.notice(NOTICE);
    let (of_run, speak) = (handle.clone(), say.clone());
    let signals = SignalWatch::start(move || of_run.clone(), move |text| speak(text))
        .map_err(|error| Failure::environment(Problem::new(format!("cannot watch for signals: {error}"))))?;
    let growing = GrowingResult::default();
    let steerers = Steerers::start(control, output.quiet, plan, &handle, &say, (None, &growing))
        .map_err(Failure::environment)?;
    let mut conductor = Conductor {
        coordinator: Coordinator::new(options, now()),
        link,
        plan,
        handle,
        say: say.clone(),
        saver: None,
        steered: 0,
        stop: Stop::No,
        stopped: None,
        begun: None,
        line: ProgressLine::new(output.quiet),
    };
    let ended = conductor.conduct(|| before.keep(plan, &context));
    drop(steerers);
    let Conductor { coordinator, link, handle, mut saver, stopped, begun, .. } = conductor;
    link.close();
    let abandon = |saver: &mut Option<RunSaver>| saver.take().into_iter().for_each(RunSaver::abandon);
    if let Err(failure) = ended {
        abandon(&mut saver);
        return Err(failure);
    }
    if let Some(failure) = not_begun(&coordinator, begun.is_some(), &signals) {
        abandon(&mut saver);
        return Err(failure);
    }
    let members = coordinator.members();
    members.iter().for_each(|member| tell_messages(member, &say));
    let load = AskedLoad { plan, threads, profile: handle.profile(), stopped };
    let mut run = match merged(&members, &load) {
        Ok(run) => run,
        Err(failure) => {
            abandon(&mut saver);
            return Err(failure);
        }
    };
    run.plan.clone_from(&before.plan);
    let about = &mut run.result.run;
    about.id.clone_from(&context.run_id);
    about.name.clone_from(&context.name);
    about.args.clone_from(&context.args);
    about.interrupted_by_signal = signals.received();
    let is_whole =
        members.iter().all(|member| matches!(member.end, MemberEnd::Ended(_)) && !member.part.is_empty());
    let judged = exit_of(&run.result);
    let exit = if is_whole { judged } else { exit::worse(judged, Exit::AgentLost) };
    Ok(Outcome { run: Box::new(run), exit, said: None, kept: saver })
}

fn counted(agents: usize) -> String {
    if agents == 1 { "1 agent".to_owned() } else { format!("{agents} agents") }
}

/// Why nobody has begun, if nobody has.
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
    // What is wrong with the run itself, all agents say.
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

/// Tells what the process of an agent has said about its end, if that was none of a run.
fn tell_messages(member: &Member, say: &Notify) {
    let MemberEnd::Ended(end) = &member.end else { return };
    if member.part.is_empty() {
        let code = end.exit.map_or_else(|| "a signal".to_owned(), |code| format!("code {code}"));
        say(&format!("warning: `plimsoll run` of agent {} ended with {code}, and left nothing", member.name));
        end.messages.iter().for_each(|line| say(&format!("  {}: {line}", member.name)));
    }
}

/// A run under way.
struct Conductor<'a> {
    coordinator: Coordinator,
    link: NatsLink,
    plan: &'a Plan,
    /// Keys, signals and the control port act on it, as on the control of a run in this process.
    handle: Control,
    say: Notify,
    saver: Option<RunSaver>,
    /// Changes of the rate that agents were told of.
    steered: usize,
    stop: Stop,
    /// When the load was stopped, since the start.
    stopped: Option<Nanos>,
    /// The start on the driver's clock.
    begun: Option<Nanos>,
    line: ProgressLine,
}

impl Conductor<'_> {
    fn conduct(&mut self, keep: impl FnOnce() -> Result<Option<RunSaver>, Failure>) -> Result<(), Failure> {
        for pattern in self.coordinator.subscriptions() {
            self.link.subscribe(&pattern);
        }
        let mut keep = Some(keep);
        while self.coordinator.stage() != CoordinatorStage::Over {
            match self.link.receive(PATIENCE) {
                Some(NatsEvent::Delivery(delivery)) => {
                    let actions = self.coordinator.hear(&delivery, now());
                    self.carry_out(actions);
                }
                Some(NatsEvent::Link(LinkEvent::Refused(why))) => return Err(refused(&why)),
                Some(NatsEvent::Link(event)) => (self.say)(&format!("fleet: {}", told(&event))),
                None => {}
            }
            if self.begun.is_some()
                && let Some(keep) = keep.take()
            {
                self.saver = keep()?;
            }
            self.steer();
            let actions = self.coordinator.tick(now());
            self.carry_out(actions);
            self.show();
        }
        let since = clock::monotonic();
        while clock::monotonic() - since < FAREWELL {
            let actions = self.coordinator.last_words(now());
            self.carry_out(actions);
            clock::sleep_until(clock::monotonic() + Nanos(FAREWELL.0 / 4));
        }
        self.line.clear();
        Ok(())
    }

    fn carry_out(&mut self, actions: Vec<CoordinatorAction>) {
        for action in actions {
            match action {
                CoordinatorAction::Publish { subject, payload } => self.link.publish(&subject, payload),
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
                let members = self.coordinator.members();
                let bounds = members.iter().filter_map(|member| Some(member.clock?.bound_ns));
                let bound = bounds.max().map(|bound| figure::nanos(Nanos(bound))).unwrap_or_default();
                format!("all are ready, and begin within {bound} of one instant")
            }
            Notice::Suspect(agent) => format!("warning: nothing is heard of agent {agent}"),
            Notice::Back(agent) => format!("agent {agent} is heard again"),
            Notice::Lost(agent) => {
                if self.coordinator.stage() != CoordinatorStage::Over {
                    self.note_stop();
                }
                format!("warning: agent {agent} is lost")
            }
            Notice::Unsteered { agent, error } => {
                format!("warning: agent {agent} did not change its load: {error}")
            }
            Notice::Ended(agent) => format!("agent {agent} has ended"),
        };
        self.line.clear();
        (self.say)(&format!("fleet: {text}"));
    }

    /// A loss may have stopped the others.
    fn note_stop(&mut self) {
        if self.coordinator.is_stopping() {
            self.stopped = self.stopped.or_else(|| Some(self.elapsed()));
        }
    }

    /// Time since the start.
    fn elapsed(&self) -> Nanos {
        self.begun.map_or(Nanos::ZERO, |begun| clock::monotonic().since(begun))
    }

    /// Passes on what was done to the control.
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

    fn show(&mut self) {
        if self.begun.is_none() || !self.line.is_due() {
            return;
        }
        let (mut rate, mut failed, mut agents) = (0.0, 0, 0);
        let (mut p99, mut elapsed, mut end) = (None, 0.0_f64, None);
        for (_, line) in self.coordinator.lines() {
            rate += line.rate_per_s.unwrap_or(0.0);
            failed += line.failed;
            agents += 1;
            p99 = p99.max(line.p99_ns);
            elapsed = elapsed.max(line.elapsed_s);
            end = line.end_s.or(end);
        }
        if agents == 0 {
            return;
        }
        let of = end.map_or(String::new(), |end| format!("/{end:.0}"));
        let slowest = p99.map_or(String::new(), |p99| format!(", p99 up to {}", figure::nanos(Nanos(p99))));
        let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
        let rate = figure::per_second(rate);
        self.line.show(&format!("{elapsed:.0}{of} s: {rate} by {}{slowest}{failed}", counted(agents)));
    }
}

/// Progress as a line: renewed on a terminal, now and then elsewhere.
struct ProgressLine {
    is_quiet: bool,
    is_terminal: bool,
    is_shown: bool,
    next: Nanos,
}

impl ProgressLine {
    fn new(is_quiet: bool) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self { is_quiet, is_terminal, is_shown: false, next: Nanos::ZERO }
    }

    fn is_due(&self) -> bool {
        !self.is_quiet && clock::monotonic() >= self.next
    }

    fn show(&mut self, text: &str) {
        self.next = clock::monotonic() + if self.is_terminal { LINE } else { RARE_LINE };
        if self.is_terminal {
            self.is_shown = true;
            streams::renew_line(text);
        } else {
            streams::to_stderr(&format!("{text}\n"));
        }
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            streams::renew_line("");
        }
    }
}
