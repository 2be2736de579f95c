//! Limiting factor of a run: the target, the generator, the network, the limit of connections, or nothing.
//!
//! The rules are asked in the order of how surely their evidence speaks. First come faults of the generator
//! itself, for then nothing can be said of anyone else; then what the target owed and did not give (no answer
//! at all, failures); then what the system says of the target's own sockets and of our own connections (a
//! full accept queue, lost segments), and of the target's processes (no CPU time). Counters of a whole
//! machine are told beside a limit that is unknown, and decide nothing. Then comes the shape of the times,
//! which distinguishes a target that queues from one that is only far away.
//!
//! A sentence states what was tested. Where a run cannot show something, it says so.

use plimsoll_core::{ErrorClass, Nanos, figure};

use super::backlog::Backlog;
use super::connections::Blocking;
use super::{Claim, Judge, Limitation, Reason, ReasonCode, p99_words, ratio};
use crate::course::{answered, fills_up, longest_answer, mean_in_flight};
use crate::headline::of_them;
use crate::{Awaited, Interval, MachineInterval, Model, Peer, ProcessUse, Standstill};

/// Share of segments sent again from which the network shapes the times: a tenth of it moves the p99.9.
const LOSS_SHARE: f64 = 0.01;
/// Share of segments sent again within one interval, with at least [`LOSS_COUNT`] of them, from which the
/// network shapes the times. Such a cut leaves few segments to send again.
const CUT_SHARE: f64 = 0.05;
const LOSS_COUNT: u64 = 10;
/// A connect that takes longer has asked twice: the first attempt is repeated after a second (RFC 6298).
const ASKED_TWICE: Nanos = Nanos::from_millis(900);
/// Share of an interval's processor from which a thread of the target has none left.
const BUSY_SHARE: f64 = 0.95;
/// Share of the time for which a thread of the target may have been ready to run without a processor.
const STARVED_SHARE: f64 = 0.10;
/// Share of the target's periods in which its CPU time may have been used up.
const THROTTLED_SHARE: f64 = 0.10;
/// Service times are level if their p90 is at most this multiple of the fastest.
const LEVEL_FACTOR: u64 = 2;
/// Share of the service time between the first and the last byte from which the transfer dominates.
const TRANSFER_SHARE: f64 = 0.5;
/// Bytes of a response below which its transfer time is negligible.
const TRANSFER_BYTES: u64 = 16 << 10;
/// An interval whose p90 is this multiple of the usual one was slow.
pub(super) const SLOW_FACTOR: u64 = 10;
/// Below this no interval is slow: a wake-up may cost as much.
pub(super) const SLOW_FLOOR: Nanos = Nanos::from_millis(5);
/// Standard deviations by which the number of intervals with slow answers has to fall short of what chance
/// makes of the same answers.
const CHANCE: f64 = 3.0;
/// Open files of the generator beside its connections, at most: the number that is kept free for them.
const DESCRIPTORS_BESIDE: u64 = 64;
/// Share of the users that have a request in flight, on average, below which the average is told: the others
/// think.
const MOSTLY_IN_FLIGHT: f64 = 0.75;
/// Requests of each user below which a counted run ends before more connections could matter: they would
/// share the same few requests.
const FEWEST_TURNS: u64 = 4;
/// Share of requests from which a run shows nothing but a plan that fails by itself.
const PLAN_FAILS_SHARE: f64 = 0.5;
/// Share of requests from which failures limit a run.
const FAILED_SHARE: f64 = 0.01;
/// Share of requests from which answers that fail at the same rate all the time may be of a target that sheds
/// load.
const SHED_SHARE: f64 = 0.05;
/// Standard deviations by which the χ² of failures in the intervals has to exceed its mean to be no chance.
const EVEN: f64 = 4.0;
/// Failures in a row, to the end, that are no chance.
const SEVERAL: u64 = 3;
/// Intervals that a run has to have before it is said in which of them requests failed.
const FEWEST_CELLS: usize = 3;
/// Share of the answers from which slow ones are a group to be named.
const SLOW_SHARE: f64 = 0.01;

/// Decides what limited the run, after the judge has found the problems of the generator.
pub(super) fn attribute(judge: &Judge<'_>) -> Limitation {
    let mut limitation = limit(judge);
    // Whatever decides, a time without an answer is a fact that every report has to tell.
    if let Some(one) = Standstill::longest(judge.record)
        && !limitation.evidence.contains(&format!("from {}", figure::nanos(one.since)))
    {
        limitation.evidence.push_str(&format!("; {}", one.fact()));
    }
    limitation
}

/// The limit that is asked for by the rules above, without further facts.
fn limit(judge: &Judge<'_>) -> Limitation {
    let backlog = judge.backlog();
    // The times of what nobody owes say nothing of the target.
    let owed = judge.record.awaits_pushes().is_none();
    let suffers = judge.record.model == Model::Closed || judge.fell_short(&backlog);
    judge
        .plan_fails()
        .or_else(|| judge.generator(&backlog))
        .or_else(|| judge.barred())
        .or_else(|| judge.standstill())
        .or_else(|| judge.failures(&backlog))
        .or_else(|| judge.accept_queue())
        .or_else(|| judge.unreached())
        .or_else(|| if owed { judge.unanswered() } else { None })
        .or_else(|| judge.loss())
        .or_else(|| if suffers { judge.busy_target() } else { None })
        .or_else(|| if suffers { judge.in_flight_limit() } else { None })
        .or_else(|| judge.growth(&backlog))
        .or_else(|| if owed { judge.slow_intervals() } else { None })
        .or_else(|| judge.bulge(&backlog))
        .unwrap_or_else(|| judge.rest(suffers, &backlog))
}

/// Advice where the target is the limit.
pub(super) const TARGET_HINT: &str =
    "this is the load that the target carries: give it more, or ask for less";

impl Judge<'_> {
    /// A script that throws, or data that cannot be read: the state of the processors then says nothing.
    fn plan_fails(&self) -> Option<Limitation> {
        let classes = [(ErrorClass::Script, "script"), (ErrorClass::Scenario, "scenario")];
        let errors = |class: ErrorClass| self.record.total.errors[class];
        let &(class, name) = classes.iter().max_by_key(|(class, _)| errors(*class))?;
        let share = ratio(errors(class), self.record.accounting.started)?;
        if share <= PLAN_FAILS_SHARE {
            return None;
        }
        let evidence = format!("{} of the requests failed in the plan's own {name}", figure::share(share));
        let hint = format!("fix the {name}: the errors say more");
        Some(Claim::PlanFails.by(evidence, hint))
    }

    /// Returns the generator's own fault that made the run invalid; the first one, since the verdict has the
    /// others.
    fn generator(&self, backlog: &Backlog) -> Option<Limitation> {
        let own = |reason: &&Reason| {
            use ReasonCode as Code;
            match reason.code {
                Code::CpuSaturation => !self.has_outweighed_cpu(backlog),
                Code::Stall | Code::SigningLimited | Code::PortsExhausted | Code::DescriptorsExhausted => {
                    true
                }
                Code::StartLag => matches!(self.blocking(), Blocking::None | Blocking::Generator),
                _ => false,
            }
        };
        let reason = self.reasons.iter().find(own)?;
        // If the control group held us up, a stall and a delay follow from that.
        if let Some((evidence, hint)) = self.throttled_words() {
            return Some(Claim::GeneratorThrottled.by(evidence, hint));
        }
        let reason = self.cause().filter(own).unwrap_or(reason);
        let (mut evidence, mut hint) = (reason.evidence.clone(), reason.hint.clone());
        // Its users wait for answers that the generator has not read yet as for those that have not come.
        if reason.code == ReasonCode::CpuSaturation && self.record.model == Model::Closed {
            let places = self.record.connections.peak_open * self.depth();
            if mean_in_flight(self.record) >= places as f64 * MOSTLY_IN_FLIGHT && places > 0 {
                let place = self.place();
                let s = if places == 1 { "" } else { "s" };
                evidence.push_str(&format!(
                    "; all {} {place}{s} were in use, too, and one run does not show which of both is the limit",
                    figure::count(places)
                ));
                hint.push_str(", and more connections (-c) after that");
            }
        }
        Some(Claim::Generator.by(evidence, hint))
    }

    /// Returns `true` if the lack of CPU, which makes the figures invalid, is not why the load was not
    /// answered: the requests of an open run were begun all the same, none of them late beside the time that
    /// they took, and they piled up or ran out of time at the target.
    fn has_outweighed_cpu(&self, backlog: &Backlog) -> bool {
        let accounting = &self.record.accounting;
        let is_late = self.reasons.iter().any(|reason| reason.code == ReasonCode::StartLag);
        let is_begun = accounting.never_started + accounting.dropped <= accounting.started / 100;
        let timed_out = ratio(self.record.total.timed_out, accounting.started).unwrap_or(0.0);
        let is_piled_up = matches!(backlog, Backlog::Grew { .. }) || timed_out > FAILED_SHARE;
        self.record.model == Model::Open && !is_late && is_begun && is_piled_up
    }

    /// A server that allows no streams: nothing else matters then.
    fn barred(&self) -> Option<Limitation> {
        let (evidence, hint) = self.barred_words()?;
        Some(Claim::NoStreams.by(evidence, hint))
    }

    /// A target that took no connections.
    fn unreached(&self) -> Option<Limitation> {
        let (evidence, hint) = self.unreached_words()?;
        Some(Claim::NoConnections.by(evidence, hint))
    }

    /// Returns `true` if an open run did not get the load that it asked for.
    fn fell_short(&self, backlog: &Backlog) -> bool {
        let own = |reason: &Reason| {
            matches!(reason.code, ReasonCode::RateNotMet | ReasonCode::ConnectionLimit | ReasonCode::StartLag)
        };
        self.reasons.iter().any(own)
            || self.blocking() != Blocking::None
            || matches!(backlog, Backlog::Grew { .. })
    }

    /// A target in this network whose own listening sockets turned connections away, while ours had to ask
    /// twice.
    fn accept_queue(&self) -> Option<Limitation> {
        let queue = self.machine.as_ref()?.target_queue?;
        let connections = &self.record.connections;
        let gave_up = connections.failed[ErrorClass::ConnectTimeout];
        let asked_twice = connections.connect_time.count_above(ASKED_TWICE.0) + gave_up;
        if asked_twice + self.never_connected() == 0 || queue.drops < LOSS_COUNT {
            return None;
        }
        let evidence = format!(
            "the target's accept queue was full: of the {} that it holds, up to {} waited, {} were turned away, \
             and ours {}",
            figure::count(queue.limit),
            figure::count(queue.length),
            figure::count(queue.drops),
            match (gave_up, connections.connect_time.max()) {
                (0, Some(longest)) => format!("took up to {}", figure::nanos(Nanos(longest))),
                (0, None) => "were not established by the end".to_owned(),
                _ => "took up to their time limit".to_owned(),
            },
        );
        let hint = "raise the target's backlog (and net.core.somaxconn), or open connections more slowly (--connection-rate)";
        Some(Claim::AcceptQueue.by(evidence, hint))
    }

    /// Segments of our own connections that were sent again, or came out of order. The counters of the whole
    /// machine are no evidence: other programs lose segments, too.
    fn loss(&self) -> Option<Limitation> {
        let machine = self.machine.as_ref()?;
        let share_of = |part: &MachineInterval| {
            let own = part.own_segments?;
            Some((own, ratio(own.lost(), own.segments)?))
        };
        let (own, share) = share_of(machine)?;
        let end = self.record.warmup + self.record.duration;
        let parts = self.record.machine.intervals.iter().filter(|part| !part.warmup && part.at <= end);
        let cuts = parts.filter_map(|part| share_of(part).map(|(own, share)| (share, own.lost(), part.at)));
        let worst = cuts.filter(|(_, lost, _)| *lost >= LOSS_COUNT).max_by(|(a, ..), (b, ..)| a.total_cmp(b));
        let (share, when) = match worst {
            _ if share >= LOSS_SHARE && own.lost() >= LOSS_COUNT => (share, String::new()),
            Some((share, _, at)) if share >= CUT_SHARE => {
                (share, format!(" in the interval that ended at {}", figure::nanos(at)))
            }
            _ => return None,
        };
        let evidence = format!(
            "{} of the TCP segments of our own connections were sent again, or came out of order{when} ({} and {} \
             in all): they were lost on their way",
            figure::share(share),
            figure::count(own.resent),
            figure::count(own.out_of_order),
        );
        let hint =
            "look for loss on the way (ip -s link, nstat, tc -s qdisc): the slow responses are the network's";
        Some(Claim::Loss.by(evidence, hint))
    }

    /// What the counters of the machine say that may have to do with the load: they decide nothing.
    fn machine_words(&self) -> String {
        let Some(machine) = &self.machine else { return String::new() };
        let mut words = String::new();
        let refused =
            machine.network.listen_overflows.unwrap_or(0).max(machine.network.listen_drops.unwrap_or(0));
        if machine.target_queue.is_none() && refused >= LOSS_COUNT {
            let refused = figure::count(refused);
            words.push_str(&format!(
                "; accept queues of this machine turned {refused} connections away, of any program"
            ));
        }
        let share = machine.network.retransmitted.zip(machine.network.segments_sent);
        let share = share.and_then(|(resent, sent)| Some((resent, ratio(resent, sent)?)));
        if let Some((resent, share)) = share
            && machine.own_segments.is_none()
            && share >= LOSS_SHARE
            && resent >= LOSS_COUNT
        {
            let share = figure::share(share);
            words.push_str(&format!(
                "; {share} of the TCP segments of this machine were sent again, of any program"
            ));
        }
        words
    }

    /// Returns `true` if failures of this share of the requests are no limit of an open run: the target got
    /// its load in full and kept up with it, answered all of it, and failed as often at each rate and at each
    /// time of the run. A target that sheds load does so when it has too much to do; from a larger share on
    /// it may do so all the time.
    fn fail_at_any_load(&self, share: f64, backlog: &Backlog) -> bool {
        let total = &self.record.total;
        let is_answer = |class: ErrorClass| class.is_answer() && class != ErrorClass::ConnectRefused;
        let mut classes = total.errors.iter().map(|(class, _)| class).filter(|class| is_targets(*class));
        let is_answered = total.timed_out == 0 && classes.all(is_answer);
        let is_delivered = *backlog == Backlog::Level && !self.fell_short(backlog);
        self.record.model == Model::Open
            && is_delivered
            && share <= SHED_SHARE
            && is_answered
            && self.fail_evenly()
            && self.busy_target().is_none()
            && self.queue().is_none_or(|queue| queue.claim != Claim::Queue)
    }

    /// Returns `true` if the numbers of failures in the intervals differ no more than chance makes of
    /// requests that fail with the same probability: by their χ², which then has a mean of its degrees of
    /// freedom, and a variance of twice as much, and more where few failures are expected.
    fn fail_evenly(&self) -> bool {
        let counts =
            self.measured_intervals().map(|cell| (cell.failed as f64, (cell.ok + cell.failed) as f64));
        let cells: Vec<(f64, f64)> = counts.filter(|(_, ended)| *ended > 0.0).collect();
        let (failed, ended) = cells.iter().fold((0.0, 0.0), |sum, cell| (sum.0 + cell.0, sum.1 + cell.1));
        if cells.len() < 2 || failed <= 0.0 || failed >= ended {
            return true;
        }
        let share = failed / ended;
        let (mut squares, mut variance) = (0.0, 2.0 * (cells.len() - 1) as f64);
        for (failed, ended) in &cells {
            let expected = ended * share;
            squares += (failed - expected).powi(2) / (expected * (1.0 - share));
            variance += 1.0 / expected;
        }
        squares <= (cells.len() - 1) as f64 + EVEN * variance.sqrt()
    }

    /// Requests that the target did not serve.
    fn failures(&self, backlog: &Backlog) -> Option<Limitation> {
        let (record, total) = (self.record, &self.record.total);
        let classes = total.errors.iter().filter(|(class, _)| is_targets(*class));
        let failed: u64 = classes.clone().map(|(_, count)| count).sum();
        let share = ratio(failed + total.timed_out, record.accounting.started)?;
        if share <= FAILED_SHARE || self.fail_at_any_load(share, backlog) {
            return self.refused();
        }
        // None if most of them timed out.
        let most = classes.max_by_key(|(_, count)| *count).filter(|(_, count)| *count >= total.timed_out);
        if let Some(refused) = self.refused() {
            return Some(refused);
        }
        // Its queue is why connections were not made in time.
        if matches!(most, Some((ErrorClass::ConnectTimeout, _)))
            && let Some(queue) = self.accept_queue()
        {
            return Some(queue);
        }
        let (name, count) =
            most.map_or(("timed out", total.timed_out), |(class, count)| (class.name(), count));
        let of_them = match failed + total.timed_out {
            1 => String::new(),
            all => format!("{} ", of_them(count, all)),
        };
        let evidence = format!(
            "{} of the requests were not served, {of_them}{name}{}{}",
            figure::share(share),
            self.without_an_answer(),
            self.since_when(),
        );
        // The next request and the end of the connection then cross on their way.
        let closes = matches!(most, Some((ErrorClass::ClosedBeforeResponse | ErrorClass::Reset, _)));
        let closes_kept = closes && self.is_lost_between_requests(count);
        let silent = record.error_examples.get(ErrorClass::ConnectTimeout.name());
        let no_handshake = matches!(most, Some((ErrorClass::ConnectTimeout, _)))
            && silent.is_some_and(|example| example.contains("TLS handshake"));
        let hint = match (closes_kept && self.speaks_http(), no_handshake) {
            (_, true) if !self.speaks_http() => {
                "it takes connections and begins no TLS: does this port speak TLS at all?"
            }
            (true, _) => {
                "the target closes connections between requests and does not say so in its responses, and \
                 these requests are not sent again: --disable-keepalive gives each a connection of its own"
            }
            (_, true) => {
                "it takes connections and begins no TLS: does this port speak http:// and not https://?"
            }
            _ => "look at the errors and at the target's own log",
        };
        Some(Claim::NotServed.by(evidence, hint))
    }

    /// Returns `true` if most of the requests that lost their connection lost one that had carried others,
    /// and the first request of a connection seldom did: a target that aborts requests does so with those as
    /// well.
    fn is_lost_between_requests(&self, lost: u64) -> bool {
        let connections = &self.record.connections;
        let on_kept = connections.lost_on_kept;
        let firsts = connections.opened.min(self.record.accounting.started);
        let share = |lost: u64, all: u64| ratio(lost, all).unwrap_or(0.0);
        let of_kept = share(on_kept, self.record.accounting.started.saturating_sub(firsts));
        on_kept > lost / 2 && share(lost.saturating_sub(on_kept), firsts) * 2.0 <= of_kept
    }

    /// The part of a sentence about failures that is about requests which had no answer, where
    /// they are many: they are neither among those that failed nor among those that were served.
    fn without_an_answer(&self) -> String {
        let accounting = &self.record.accounting;
        match ratio(accounting.in_flight_at_stop, accounting.started) {
            Some(share) if share > FAILED_SHARE => {
                format!(", and {} had no answer", figure::share(share))
            }
            _ => String::new(),
        }
    }

    /// The end of a sentence about failures after which no request succeeded any more.
    fn since_when(&self) -> String {
        let cells: Vec<&Interval> = self.measured_intervals().collect();
        let Some(last) = cells.iter().rposition(|cell| cell.ok > 0) else { return String::new() };
        let after = cells[last + 1..].iter().map(|cell| cell.failed + cell.timed_out).sum::<u64>();
        match after >= SEVERAL {
            true => format!("; none succeeded after {} of the run", figure::nanos(cells[last].at)),
            false => self.failed_when(),
        }
    }

    /// The end of a sentence about failures: in which part of the run they came. Nothing where they are few,
    /// or the run has few intervals, or the time of a failure is that of its timeout.
    fn failed_when(&self) -> String {
        // Where nothing answers, requests fail without a response.
        let has_ended = |cell: &&Interval| cell.completed > 0 || cell.failed > 0;
        let cells: Vec<&Interval> = self.measured_intervals().filter(has_ended).collect();
        let failed: u64 = cells.iter().map(|cell| cell.failed).sum();
        if failed < SEVERAL || cells.len() < FEWEST_CELLS || self.record.total.timed_out > 0 {
            return String::new();
        }
        let is_bad = |cell: &&Interval| cell.failed > 0;
        let bad = cells.iter().copied().filter(|cell| is_bad(cell)).count();
        let (Some(first), Some(last)) = (cells.iter().position(is_bad), cells.iter().rposition(is_bad))
        else {
            return String::new();
        };
        let began = figure::nanos(cells[first].at.since(cells[first].length));
        let ended = figure::nanos(cells[last].at);
        let is_dense = bad * 5 >= (last - first + 1) * 4;
        match (first == 0, last + 1 == cells.len()) {
            (true, true) if is_dense => ", throughout the run".to_owned(),
            (false, true) if is_dense => format!(", all of them after {began} of the run"),
            (true, false) if is_dense => format!(", all of them before {ended} of the run"),
            (false, false) if is_dense => format!(", all of them between {began} and {ended} of the run"),
            _ => ", in some parts of the run and not in others".to_owned(),
        }
    }

    /// Requests that the target turned away because there were too many: 429, and 503.
    fn refused(&self) -> Option<Limitation> {
        let total = &self.record.total;
        let of = |status: u16, class: ErrorClass| {
            total.statuses.get(&status).copied().unwrap_or(0).min(total.errors[class])
        };
        let (many, unavailable) = (of(429, ErrorClass::Status4xx), of(503, ErrorClass::Status5xx));
        let refused = many + unavailable;
        let others = (total.failed + total.timed_out).saturating_sub(refused);
        let share = ratio(refused, self.record.accounting.started)?;
        if share <= FAILED_SHARE || others > refused {
            return None;
        }
        let counts = [(many, "429"), (unavailable, "503")];
        let statuses: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, status)| format!("{} with {status}", figure::count(*count)))
            .collect();
        let evidence = format!(
            "the target refused {} of the requests ({}){}",
            figure::share(share),
            statuses.join(", "),
            self.failed_when(),
        );
        let hint = match many >= unavailable {
            true => "the target limits its load: ask for less, or raise that limit",
            // Also of a service that is not ready, or behind a proxy that has none.
            false => "the target has too much to do, or does not work: look at its own log, or ask for less",
        };
        Some(Claim::Refused.by(evidence, hint))
    }

    /// Requests that the target never answered, though it had more time than any answer took.
    fn unanswered(&self) -> Option<Limitation> {
        let record = self.record;
        let waiting = record.accounting.in_flight_at_stop;
        let share = ratio(waiting, record.accounting.started + record.accounting.since_warmup)?;
        let longest = longest_answer(record)?;
        if share <= FAILED_SHARE || record.drain.0 < longest.saturating_mul(2) {
            return None;
        }
        let evidence = format!(
            "{} of the requests were never answered, though those that were took {} at most and the run waited {} for \
             the others",
            figure::share(share),
            figure::nanos(Nanos(longest)),
            figure::nanos(record.drain),
        );
        Some(Claim::NeverAnswered.by(evidence, "look at the target's own log"))
    }

    /// A target on this machine that had no CPU time left.
    fn busy_target(&self) -> Option<Limitation> {
        let machine = self.machine.as_ref()?;
        let target = machine.target?;
        let name = self.record.machine.facts.target.as_ref().map_or("", |target| &target.name);
        let own_machine = "put the target on a machine of its own, or give it more CPU time";
        if let Some(share) = throttled(&target).filter(|share| *share > THROTTLED_SHARE) {
            let evidence = format!(
                "the target's control group ({name}) had used up its CPU time in {} of the periods",
                figure::share(share)
            );
            return Some(Claim::TargetThrottled.by(evidence, "raise the limit of the target's container"));
        }
        let delayed = machine.share(target.run_delay.unwrap_or_default());
        if delayed > STARVED_SHARE && !self.is_level() {
            let evidence = format!(
                "the target's process ({name}) was ready to run but had no CPU for {} of the time",
                figure::share(delayed)
            );
            return Some(Claim::TargetStarved.by(evidence, own_machine));
        }
        let busiest = machine.share(target.busiest_thread.unwrap_or_default());
        if busiest >= BUSY_SHARE {
            let evidence = format!(
                "a thread of the target's process ({name}) used {} of its core; the process used {:.2} CPUs",
                figure::share(busiest.min(1.0)),
                machine.share(target.cpu)
            );
            return Some(Claim::BusyThread.by(evidence, TARGET_HINT));
        }
        let busy = machine.cores_share(|core| core.busy);
        let part = machine.share(target.cpu) / machine.cores.len().max(1) as f64;
        if busy >= BUSY_SHARE && part >= 0.5 {
            let evidence = format!(
                "all cores were busy, and the target's process ({name}) used {} of them",
                figure::share(part)
            );
            return Some(Claim::BusyMachine.by(evidence, own_machine));
        }
        None
    }

    /// Returns `true` if requests took about as long as one alone does: then the target does not hold them
    /// up, whatever it waits for.
    fn is_level(&self) -> bool {
        let service = &self.record.total.service_time;
        let alone = service.min().unwrap_or(0);
        service.percentile(90.0).is_some_and(|p90| p90 <= alone.saturating_mul(LEVEL_FACTOR))
    }

    /// All places for requests in flight were taken (always so in the closed model): by whose fault?
    fn in_flight_limit(&self) -> Option<Limitation> {
        let open = self.record.model == Model::Open;
        if open && self.blocking() == Blocking::Target && self.record.awaits_pushes().is_none() {
            return self.one_freeze().or_else(|| Some(self.held_connections()));
        }
        if open && !self.lacks_connections() {
            return None;
        }
        let by_times = || {
            let freeze = || if open { self.one_freeze() } else { None };
            self.transfer().or_else(freeze).or_else(|| self.waiting(open))
        };
        let by_times = if self.record.awaits_pushes().is_none() { by_times() } else { None };
        by_times.or_else(|| if open { Some(self.too_few_connections()) } else { self.too_few_users() })
    }

    /// Responses that take long from their first byte to their last. Streams do so by their nature. Whether
    /// the way or the target's sending is slow does not show but on loopback, where there is no way.
    fn transfer(&self) -> Option<Limitation> {
        if self.record.steps.iter().any(|step| step.awaited == Awaited::Stream) {
            return None;
        }
        let total = &self.record.total;
        let bytes = total.bytes_received / total.ok.max(1);
        let service = total.service_time.percentile(50.0)?;
        let first = total.first_byte_time.percentile(50.0)?;
        let share = ratio(service.saturating_sub(first), service)?;
        if share < TRANSFER_SHARE || bytes < TRANSFER_BYTES {
            return None;
        }
        let rate = (total.bytes_received as f64 / self.record.duration.as_secs_f64()) as u64;
        let evidence = format!(
            "{} of the median service time passed between the first and the last byte of responses of {}, while {}/s came in",
            figure::share(share),
            figure::bytes(bytes),
            figure::bytes(rate),
        );
        if self.record.peers.iter().all(Peer::is_on_loopback) && !self.record.peers.is_empty() {
            let hint = "the target sends its responses slowly: look at what it does between its first and its last byte";
            return Some(Claim::SlowSending.by(evidence, hint));
        }
        let hint = "the way, or the target's sending, carries no more bytes: compare with the bandwidth between both";
        Some(Claim::Transfer.by(evidence, hint))
    }

    /// Arrivals waited no longer for a connection than the target once stood still.
    fn one_freeze(&self) -> Option<Limitation> {
        let total = &self.record.total;
        let longest = Nanos(total.service_time.max()?);
        let usual = total.service_time.percentile(50.0)?;
        let blocked = self.blocked_per_worker();
        if !self.is_one_freeze() {
            return None;
        }
        let evidence = format!(
            "the target kept requests for up to {}, usually for {}; {}",
            figure::nanos(longest),
            figure::nanos(Nanos(usual)),
            match self.record.accounting.dropped {
                0 => format!("arrivals waited {} for it to free a connection", figure::nanos(blocked)),
                dropped => format!("{} arrivals found no free connection", figure::count(dropped)),
            },
        );
        Some(Claim::OneFreeze.by(evidence, "look at the target at that time: the intervals say when"))
    }

    /// Requests without an answer that hold connections.
    fn held_connections(&self) -> Limitation {
        let waiting = self.record.total.service_time.count() - answered(self.record);
        let evidence = format!(
            "{} requests without an answer held connections, of which there are {}; arrivals waited {} for one",
            figure::count(waiting),
            figure::count(self.record.connections.limit),
            figure::nanos(self.blocked_per_worker()),
        );
        Claim::HeldConnections.by(evidence, "look at the target's own log, or give up earlier (--timeout)")
    }

    fn too_few_connections(&self) -> Limitation {
        let (evidence, mut hint) = self.connection_limit_words();
        let limit = self.record.connections.limit;
        let descriptors = self.record.machine.facts.soft_descriptors;
        if let Some(descriptors) = descriptors.filter(|all| limit + DESCRIPTORS_BESIDE >= *all) {
            hint.push_str(&format!(
                "; this process may open {descriptors} files: raise that first (ulimit -n)"
            ));
        }
        Claim::FewConnections.by(evidence, hint)
    }

    /// A closed run whose target would answer more users as fast.
    fn too_few_users(&self) -> Option<Limitation> {
        if let Some(allowed) = self.record.connections.http2.binding_limit() {
            let (evidence, hint) = self.stream_limit_words(allowed);
            return Some(Claim::FewStreams.by(evidence, hint));
        }
        let total = &self.record.total;
        let mean = total.service_time.mean()?;
        let connections = &self.record.connections;
        // Each user may have a connection to each of the plan's targets, and uses one.
        let targets = self.record.peers.iter().filter(|peer| peer.origin.is_empty()).count() as u64;
        let busy = if targets > 1 { (connections.limit / targets).max(1) } else { u64::MAX };
        // A pause needs no connection: where the plan has users, more of them than connections may exist.
        let users = self.record.users.unwrap_or_else(|| connections.peak_open.min(busy) * self.depth());
        let mut evidence = format!(
            "{} user{} with a mean service time of {} make {}",
            figure::count(users),
            if users == 1 { "" } else { "s" },
            figure::nanos_f64(mean),
            figure::per_second(self.record.completed_in_window as f64 / self.record.duration.as_secs_f64()),
        );
        let in_flight = mean_in_flight(self.record);
        let is_idle = in_flight < users as f64 * MOSTLY_IN_FLIGHT;
        let pushes = self.record.awaits_pushes();
        if let Some(share) = pushes {
            evidence.push_str(&format!(
                "; {} of the time in requests was spent in waiting for messages that come by themselves",
                figure::share(share)
            ));
        } else if is_idle {
            evidence.push_str(&format!(
                ", with {in_flight:.1} requests in flight on average{}",
                self.idle_users()
            ));
        }
        if let Some(target) = self.machine.as_ref().and_then(|machine| machine.target) {
            let machine = self.machine.as_ref()?;
            let busiest = machine.share(target.busiest_thread.unwrap_or(target.cpu)).min(1.0);
            let words = format!(
                ", and the target's busiest thread had {} of its core left",
                figure::share(1.0 - busiest)
            );
            evidence.push_str(&words);
        }
        let has_few = self.record.accounting.started < users.saturating_mul(FEWEST_TURNS);
        let is_over = self.record.users_end && (is_idle || has_few);
        let hint = match (is_idle && self.record.users_pause, is_over) {
            (_, true) if has_few => {
                "use more requests (-n), or a length (-d): the load was over before its users could show what the \
                 target carries"
            }
            (true, _) => {
                "use more users (-c, or `users` in the plan) or shorter pauses (`think`) to find the limit \
                 of the target"
            }
            (false, true) => {
                "use more requests (-n), or a length (-d), so that the last answers count for less; then \
                 more connections (-c) to find the limit of the target, or --rate to ask for a rate"
            }
            (false, false) => {
                "use more connections (-c) to find the limit of the target, or --rate to ask for a rate"
            }
        };
        Some(Claim::FewUsers.by(evidence, hint))
    }

    /// The end of a sentence about users of whom many have no request in flight: why that is so, as far as
    /// the plan says it.
    fn idle_users(&self) -> String {
        let words = match (self.record.users_pause, self.record.users_end) {
            (true, false) => "users pause for most of the time",
            (true, true) => "users pause, or have ended, for most of the time",
            (false, true) => {
                let longest = Nanos(longest_answer(self.record).unwrap_or(0));
                let longest = figure::nanos(longest);
                return format!(": users ended before the last answers came, which took up to {longest}");
            }
            (false, false) => return String::new(),
        };
        format!(": {words}")
    }

    /// A target that owed answers and gave none for a while.
    fn standstill(&self) -> Option<Limitation> {
        let longest = Standstill::longest(self.record)?;
        let others = Standstill::all(self.record).iter().filter(|one| one.since != longest.since).count();
        let more = match others {
            0 => String::new(),
            1 => ", and once more".to_owned(),
            _ => format!(", and {} times more", figure::count(others as u64)),
        };
        // If the system shows why, that is worth a word.
        let shown = self.busy_target().map_or(String::new(), |limit| format!("; {}", limit.evidence));
        let evidence = format!("{}{more}{shown}", longest.words());
        if longest.outgrown {
            let hint = "its answers come later than they are waited for: use a lower rate or fewer users, which \
                        `plimsoll find` looks for, or a longer --timeout";
            return Some(Claim::Outgrown.by(evidence, hint));
        }
        let claim = if longest.to_the_end { Claim::StoppedAnswering } else { Claim::StoodStill };
        Some(claim.by(evidence, "look at the target and its log at that time"))
    }

    /// Requests in flight that grew all the time.
    fn growth(&self, backlog: &Backlog) -> Option<Limitation> {
        let Backlog::Grew { per_second, to } = *backlog else { return None };
        if let Some(transfer) = self.transfer() {
            return Some(transfer);
        }
        let evidence = format!(
            "requests in flight grew by {} to {}, with the generator {}: the target answers fewer than arrive",
            figure::per_second(per_second),
            figure::count(to),
            self.lag_beyond_limit().map_or("on time".to_owned(), |lag| format!("late by {lag}")),
        );
        let hint =
            "the target is overloaded, and the percentiles depend on the length of the run: use a lower rate";
        Some(Claim::Overload.by(evidence, hint))
    }

    /// Requests in flight that grew, and fell again.
    fn bulge(&self, backlog: &Backlog) -> Option<Limitation> {
        let Backlog::Bulged { most, at, left } = *backlog else { return None };
        let evidence = format!(
            "requests in flight grew to {} until {}, with the generator on time, and fell to {} again: for that \
             time the target answered fewer than arrived",
            figure::count(most),
            figure::nanos(at),
            figure::count(left),
        );
        Some(Claim::OverloadForAWhile.by(evidence, "look at the target at that time"))
    }

    /// Intervals whose responses were many times slower than usual, though the generator was on time.
    fn slow_intervals(&self) -> Option<Limitation> {
        let p90 = |interval: &Interval| interval.response_time.map(|times| times[1]);
        let mut values: Vec<u64> = self.measured_intervals().filter_map(p90).collect();
        values.sort_unstable();
        let usual = *values.get(values.len() / 4).filter(|_| values.len() >= 3)?;
        let limit = usual.saturating_mul(SLOW_FACTOR).max(usual + SLOW_FLOOR.0);
        let slow = || self.measured_intervals().filter(|interval| p90(interval) > Some(limit));
        let first = slow().next()?;
        // Where some answers are always slow, chance decides in which intervals their share is a tenth; and
        // the first ones of them come late.
        let others: Vec<u64> = self
            .measured_intervals()
            .filter(|interval| p90(interval).is_some_and(|p90| p90 <= limit))
            .filter_map(|interval| interval.response_time.map(|[_, _, p99, ..]| p99))
            .collect();
        let spread = others.iter().filter(|p99| **p99 > limit).count();
        let cells: Vec<&Interval> = self.measured_intervals().collect();
        if spread * 4 > others.len() || fills_up(self.record, &cells) || self.are_slow_by_chance(limit) {
            return None;
        }
        let worst = slow().filter_map(p90).max()?;
        let evidence = format!(
            "in {} of {} intervals, first in the one that ended at {}, the p90 was up to {}; usually it is {}, and the generator was on time",
            figure::count(slow().count() as u64),
            figure::count(self.measured_intervals().count() as u64),
            figure::nanos(first.at),
            figure::nanos(Nanos(worst)),
            figure::nanos(Nanos(usual)),
        );
        let evidence = format!("{evidence}{}", self.machine_words());
        // If the system shows why, that is the better evidence.
        let shown = self.busy_target();
        shown.or_else(|| Some(Claim::SlowIntervals.by(evidence, "look at the target at that time")))
    }

    /// Returns `true` if answers slower than a limit lie in about as many intervals as chance would put them
    /// in: few answers make an interval slow where each of them may be.
    fn are_slow_by_chance(&self, limit: u64) -> bool {
        let times = &self.record.total.response_time;
        let slow = ratio(times.count_above(limit), times.count()).filter(|slow| *slow > 0.0);
        let Some(fast) = slow.map(|slow| 1.0 - slow) else { return false };
        let answered = || self.measured_intervals().filter(|interval| interval.completed > 0);
        let chances = answered().map(|interval| 1.0 - fast.powf(interval.completed as f64));
        let (expected, variance) =
            chances.fold((0.0, 0.0), |(sum, var), chance| (sum + chance, var + chance * (1.0 - chance)));
        let is_slow =
            |interval: &&Interval| interval.response_time.is_some_and(|[.., longest]| longest > limit);
        answered().filter(is_slow).count() as f64 >= expected - CHANCE * f64::sqrt(variance)
    }

    /// Nothing of all this.
    fn rest(&self, suffers: bool, backlog: &Backlog) -> Limitation {
        if self.record.total.ok == 0 {
            let accounting = &self.record.accounting;
            return match accounting.failed + accounting.timed_out {
                0 => {
                    let hint = format!("{}, or wait longer for answers (-d, --timeout)", self.one_request());
                    Claim::NothingAnswered.by("no request was answered", hint)
                }
                _ => {
                    let hint = format!("look at the errors, and {}", self.one_request());
                    Claim::NothingSucceeded.by("nothing ended well", hint)
                }
            };
        }
        if suffers {
            let machine = self.machine_words();
            let evidence = format!(
                "the run got less than it asked for, and neither the times nor the machine show why{machine}"
            );
            let hint = "watch the target while it is under this load (--watch PID, if it is on this machine)";
            return Claim::LessThanAsked.by(evidence, hint);
        }
        let late = self.lag_beyond_limit();
        let late = late.map_or("on time".to_owned(), |lag| format!("with a start lag of {lag}"));
        let delivered = format!("the load that was asked for was delivered {late}");
        let beside = self.beside();
        match backlog {
            Backlog::Unknown(why) => {
                let evidence =
                    format!("{delivered}; whether requests in flight grew does not show: {why}{beside}");
                Claim::GrowthUnknown.by(evidence, "run longer (-d)")
            }
            _ => {
                let in_flight = mean_in_flight(self.record);
                let evidence = format!(
                    "{delivered}, and requests in flight did not grow at that rate ({in_flight:.1} on \
                     average){beside}"
                );
                Claim::Delivered.by(evidence, "")
            }
        }
    }

    /// The start lag in words, where it is beyond its limit.
    fn lag_beyond_limit(&self) -> Option<String> {
        let lags = &self.record.total.start_lag;
        let lag = lags.percentile(99.0).map(Nanos).filter(|lag| *lag > self.lag_limit())?;
        Some(match lags.enough_for(99.0) {
            true => format!("up to {} (p99)", figure::nanos(lag)),
            false => p99_words(lags, "p99", "at most"),
        })
    }

    /// The end of a sentence about a load that was delivered: failures, and answers that took many times as
    /// long as most. Neither limited the load, and neither is to be passed over.
    fn beside(&self) -> String {
        let total = &self.record.total;
        let mut words = String::new();
        let failed = total.failed + total.timed_out;
        let started = self.record.accounting.started;
        if let Some(share) = ratio(failed, started).filter(|share| *share > 0.0) {
            words.push_str(&format!("; {} of the requests failed", figure::share(share)));
        }
        let service = &total.service_time;
        let (Some(usual), Some(longest)) = (service.percentile(50.0), service.max()) else { return words };
        let limit = usual.saturating_mul(SLOW_FACTOR).max(usual + SLOW_FLOOR.0);
        let slow = ratio(service.count_above(limit), service.count()).unwrap_or(0.0);
        if slow >= SLOW_SHARE {
            words.push_str(&format!(
                "; {} of the answers took more than {}, up to {}; half of all took at most {}",
                figure::share(slow),
                figure::nanos(Nanos(limit)),
                figure::nanos(Nanos(longest)),
                figure::nanos(Nanos(usual)),
            ));
        }
        words
    }

    fn measured_intervals(&self) -> impl Iterator<Item = &Interval> {
        self.record.measured_cells()
    }
}

/// Returns `true` if failures of this class are the target's doing, and not what was asked of it.
const fn is_targets(class: ErrorClass) -> bool {
    // A proxy is not the target either.
    let own = matches!(
        class,
        ErrorClass::PortsExhausted
            | ErrorClass::DescriptorsExhausted
            | ErrorClass::AbortedByUs
            | ErrorClass::Proxy
    );
    let asked = matches!(
        class,
        ErrorClass::Status4xx
            | ErrorClass::Redirect
            | ErrorClass::Extraction
            | ErrorClass::Check
            | ErrorClass::Script
            | ErrorClass::Scenario
    );
    !own && !asked
}

/// Share of the periods in which the control group of a process had used up its CPU time.
fn throttled(process: &ProcessUse) -> Option<f64> {
    let throttling = process.throttling?;
    ratio(throttling.throttled, throttling.periods)
}
