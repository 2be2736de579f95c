//! Decides how long to wait, and for how many events: wake-ups are the engine's largest cost after system
//! calls.
//!
//! Waking a sleeping thread costs 13–24 µs of CPU on a virtual machine, three to five whole requests, and the
//! thread runs 15–60 µs after the time that it asked for. [`Pacing::Adaptive`], the default, spends idle CPU
//! on being on time all the same: a sleep ends a little before the arrival ([`Lead`]), the rest is polled
//! away, and each arrival has its own wake-up. Arrivals that are too close for a sleep in between are polled
//! for, which takes the rest of the core and delays nothing. Where being on time takes more than about two
//! thirds of the CPU time that the requests leave, the worker shortens its lead ([`Economy`]). Only where the
//! requests themselves need more than two thirds of the core does it take naps, whose arrivals share the
//! wake-up at the end: no time would be left for bursts otherwise. Between naps it is on time.
//! [`Pacing::Shared`] shares them up to [`Pacing::BUDGET`] for the cheapest load, where that saves anything
//! ([`OWN_WAKE_UP_PER_SECOND`]), [`Pacing::Precise`] never sleeps. The delay of *sending* is the start lag,
//! recorded for every request and part of the response time.
//!
//! A worker that is faster than its target is woken for every single response, unless it waits for a share of
//! the requests in flight, or for its next send. The delay that this adds to *reading* a response is kept out
//! of the measured times by the kernel's receive timestamps, which exist for bytes, and not for the end of a
//! connect call or of a connection. So an event is slept past only where [`Awaiting`] knows that all that can
//! come are stamped bytes from which nothing follows; everything else is awaited at once. And nothing is
//! slept past for longer than [`UNREAD`]: a server whose bytes lie unread gets no acknowledgment, and pieces
//! that are read together have the time of the last.

use core::cmp::Ordering;

use plimsoll_core::Nanos;
use plimsoll_driver::Wait;
use plimsoll_plan::Pacing;

/// Longest time for which responses are gathered in the closed model. With a target of 20 µs per request and
/// 64 connections 300 µs gather about 15 responses per wake-up; beyond that, wake-ups no longer dominate the
/// cost.
const GATHER_MAX: Nanos = Nanos::from_micros(300);
/// Below this a timed sleep costs more than the wake-ups that it saves.
const GATHER_MIN: Nanos = Nanos::from_micros(20);
/// With fewer requests in flight than this, every response is answered at once.
const GATHER_IN_FLIGHT: u64 = 4;
/// Share of the cycle time (in flight ÷ rate) for which responses are gathered: a closed loop that waits for
/// much longer leaves the target without work. A response waits for half of that on average, 3 % of a cycle.
const GATHER_SHARE: u64 = 16;
/// Share of the cycle time for which [`Pacing::Shared`], which trades turnaround for CPU, gathers responses.
const SHARED_GATHER_SHARE: u64 = 4;
/// Up to this rate per worker every arrival has its own wake-up with [`Pacing::Shared`], too, which costs at
/// most about 5 % of a core.
const OWN_WAKE_UP_PER_SECOND: f64 = 2_000.0;
/// Up to this rate per worker each connection that [`Pacing::Shared`] writes to is flushed by itself, as its
/// send times are exact then; a system call costs at most 2 % of a core. `bench rate`: of 10,000/s every run
/// was invalid for uncertain send times where a wake-up's requests shared a flush.
const OWN_FLUSH_PER_SECOND: f64 = 50_000.0;
/// Longest time for which bytes of a response may lie unread until the next send. The kernel acknowledges
/// them when they are read, or up to 40 ms later: a server whose answer has more pieces than its congestion
/// window waits for that. Where sends are further apart, a wake-up for each response costs at most 3 % of a
/// core.
const UNREAD: Nanos = Pacing::BUDGET;
/// Time between the first and the last byte of a response from which it is one in pieces.
const IN_PIECES: Nanos = Nanos::from_micros(300);
/// Ends of think times per second and worker that the lead of the closed model is made for.
const ENDS_OF_THINK_TIMES: f64 = 1_000.0;
/// A sleep that is shorter than this saves nothing.
const SHORTEST_SLEEP: Nanos = Nanos::from_micros(10);
/// CPU time of a wake-up, roughly; no nap is shorter.
const WAKE_UP: Nanos = Nanos::from_micros(20);
/// CPU time of sending one request, roughly.
const SEND: Nanos = Nanos::from_micros(4);
/// Time for which [`Pacing::Precise`] polls busily before an arrival. A sleeping thread is woken 15–30 µs
/// late on a good machine, and up to a millisecond late on a shared virtual one where the host has given the
/// core away: from 1,000/s on precise pacing does not sleep at all.
const SPIN: Nanos = Nanos::from_millis(1);
/// Interval between two checks of the CPU time of the thread, which is a system call. Long against a wake-up,
/// short against the parts of a run in which a rate holds.
const LOOK: Nanos = Nanos::from_millis(10);
/// Share of the time that requests leave which a worker spends on being on time at most, by polling and by
/// being woken, before it shortens its lead; and the share below which it lengthens it again, so far below
/// that one step does not lead from one to the other.
const MOST_SPENT: f64 = 0.64;
const LEAST_SPENT: f64 = 0.57;
/// Share of its core that requests need from which on a worker takes naps, and the share below which it
/// takes fewer again.
const MOST_NEEDED: f64 = 0.70;
const LEAST_NEEDED: f64 = 0.60;
/// Share of its core beyond which a worker that takes naps needs more of them, and the share below which it
/// has time for fewer.
const MOST_LOAD: f64 = 0.90;
const LEAST_LOAD: f64 = 0.82;
/// Share of its core beyond which a worker whose requests need more than [`MOST_NEEDED`] saves CPU in large
/// steps.
const FULL_LOAD: f64 = 0.97;
/// Responses larger than this on average are read as they come, so that the socket buffer is never the limit.
const LARGE_RESPONSE: u64 = 16 * 1024;

/// The worker's situation when it is about to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outlook {
    pub(crate) now: Nanos,
    /// The next thing that has to be done in any case: a timer, the edge of a second, the end, a look at the
    /// control.
    pub(crate) until: Nanos,
    /// When the next request falls due that could be started at its time, if there is one: that of an
    /// arrival, or of a user whose think time ends.
    pub(crate) next_due: Option<Nanos>,
    /// `true` if something due waits for a response: for a free connection.
    pub(crate) blocked: bool,
    /// `true` if a response is followed by a request: the next step of its scenario, or a redirect.
    pub(crate) follows: bool,
    /// `true` if something may come that has no kernel stamp, or that something else waits for: the end of a
    /// connect call or of a handshake, and what [`Awaiting`] says of responses.
    pub(crate) awaits: bool,
    pub(crate) in_flight: u64,
    /// Arrivals that find a connection for sure, even if nothing comes back before they are due.
    pub(crate) room: u64,
}

/// Decides whether the worker reads the responses of a server as soon as they come, or may sleep to its next
/// send meanwhile.
///
/// Nothing is known before the first response. One that the kernel did not stamp, one that ends with its
/// connection, one that comes in pieces, whose first byte has a time of its own, and a request or response
/// too large for the socket buffer, whose peer waits for this side, make the next ones awaited, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Awaiting {
    /// Responses that have to come stamped and in one piece before one is slept past.
    left: u32,
}

impl Awaiting {
    /// Responses that are awaited after one without a stamp, or after a large one.
    const NEXT: u32 = 64;

    /// Nothing is known yet.
    pub(crate) const fn new() -> Self {
        Self { left: 1 }
    }

    /// Every response is awaited.
    pub(crate) const fn always() -> Self {
        Self { left: u32::MAX }
    }

    /// Returns `true` if the next response has to be awaited at once.
    #[inline]
    pub(crate) const fn is_due(self) -> bool {
        self.left > 0
    }

    /// Notes an event with whole responses.
    #[inline]
    pub(crate) const fn received(&mut self, stamped: bool) {
        if !stamped {
            self.next();
        } else if self.left != u32::MAX {
            self.left = self.left.saturating_sub(1);
        }
    }

    /// Notes the time from the first byte of a response to its last.
    #[inline]
    pub(crate) const fn took(&mut self, time: Nanos) {
        if time.0 > IN_PIECES.0 {
            self.next();
        }
    }

    /// Notes the size of a request or of a response.
    #[inline]
    pub(crate) const fn sized(&mut self, bytes: u64) {
        if bytes > LARGE_RESPONSE {
            self.next();
        }
    }

    const fn next(&mut self) {
        if self.left < Self::NEXT {
            self.left = Self::NEXT;
        }
    }
}

/// Step by which a sample moves the estimate of a percentile, which settles where steps up and down balance
/// (stochastic approximation, Robbins & Monro 1951).
#[derive(Clone, Copy, Debug)]
struct Step(Nanos);

impl Step {
    /// Shortest step: each is a sixteenth shorter than the one before, down to this.
    const LEAST: Nanos = Nanos(250);
    /// Length of a step up for a median, in steps down.
    const MEDIAN: u64 = 1;
    /// Length of a step up for an 80th percentile, in steps down.
    const P80: u64 = 4;

    /// Returns this step, and shortens the next one.
    fn take(&mut self) -> Self {
        let step = *self;
        self.0 = (step.0 - Nanos(step.0.0 / 16)).max(Self::LEAST);
        step
    }

    /// Returns the estimate after a sample: moved down by one step, or up by `up` of them.
    fn toward(self, sample: Nanos, estimate: Nanos, up: u64) -> Nanos {
        if sample > estimate { estimate + self.0 * up } else { estimate - self.0 }
    }
}

/// The time by which a sleep ends before an arrival, so that a late wake-up is still on time.
///
/// The lateness of this machine's wake-ups, with the handling of events that came meanwhile, is learned: each
/// estimate moves up where a sleep ended later and down where it ended earlier, by steps whose ratio is that
/// of the two probabilities, so that it settles at its percentile ([`Step`]). The lead lies between the
/// median, which costs little CPU as half of the wake-ups come later anyway, and the 80th percentile.
#[derive(Debug)]
struct Lead {
    median: Nanos,
    p80: Nanos,
    step: Step,
    /// Longest lead for the median. No wake-up is waited for longer by polling: one that is later was delayed
    /// by the scheduler, and not by the timer.
    max_median: Nanos,
}

impl Lead {
    /// The first steps are long, since at 100/s a second has no more than 100 of them; at lower rates they
    /// are longer in the same measure, up to [`LONGER`](Self::LONGER) times.
    const FIRST_STEP: Nanos = Nanos::from_micros(8);
    const LONGER: f64 = 4.0;
    const PARTS: u64 = 8;
    /// Longest lead for the 80th percentile; for the median, too, where a longer one costs too much.
    const MAX: Nanos = Nanos::from_micros(100);
    /// Longest lead for the median: a core that sleeps for milliseconds sleeps more deeply, and on a busy
    /// host wakes up 100 to 200 µs late.
    const MAX_MEDIAN: Nanos = Nanos::from_micros(300);
    /// Share of a core that a lead longer than [`MAX`](Self::MAX) may cost.
    const SHARE: f64 = 0.03;
    /// Both on an idle virtual machine.
    const FIRST: [Nanos; 2] = [Nanos::from_micros(25), Nanos::from_micros(40)];

    fn new(peak_per_second: f64) -> Self {
        // A core that sleeps for longer wakes up later.
        let longer = (100.0 / peak_per_second.max(1.0)).clamp(1.0, Self::LONGER);
        let [median, p80, step] = [Self::FIRST[0], Self::FIRST[1], Self::FIRST_STEP]
            .map(|time| Nanos((time.0 as f64 * longer) as u64));
        let p80 = p80.min(median.max(Self::MAX));
        Self { median, p80, step: Step(step), max_median: Self::max_median(peak_per_second) }
    }

    /// The longest lead for the median at this rate.
    fn max_median(peak_per_second: f64) -> Nanos {
        let affordable = Nanos::from_secs_f64(Self::SHARE / peak_per_second.max(1.0));
        affordable.clamp(Self::MAX, Self::MAX_MEDIAN)
    }

    /// The lead at this many [`PARTS`](Self::PARTS) above the median.
    fn get(&self, parts: u64) -> Nanos {
        self.median + Nanos(self.p80.since(self.median).0 * parts / Self::PARTS)
    }

    /// After a sleep arrivals could be started so late.
    fn learn(&mut self, late: Nanos) {
        let step = self.step.take();
        self.median = step.toward(late, self.median, Step::MEDIAN).min(self.max_median);
        self.p80 = step.toward(late, self.p80, Step::P80).min(self.median.max(Self::MAX));
    }
}

/// The time that a worker needs between the end of a sleep and the sending of an arrival's request, to which
/// it comes with cold caches: 25 µs after 50 ms on a virtual machine, and 1 µs in a loop that never sleeps.
///
/// The request is made that much before it is due, and is sent when it is. The estimate settles at the 80th
/// percentile, as [`Lead`] does.
#[derive(Debug)]
struct Preparation {
    p80: Nanos,
    step: Step,
}

impl Preparation {
    /// On an idle virtual machine, at 20 to 200/s.
    const FIRST: Nanos = Nanos::from_micros(20);
    const FIRST_STEP: Nanos = Nanos::from_micros(4);
    /// Shortest time for which a request is begun ahead: a shorter one is not worth a reading of the clock.
    const LEAST: Nanos = Nanos::from_micros(2);
    /// A worker that needs longer has been interrupted, or makes what is no request but a program.
    const MAX: Nanos = Nanos::from_micros(100);

    const fn new() -> Self {
        Self { p80: Self::FIRST, step: Step(Self::FIRST_STEP) }
    }

    /// The time by which an arrival is begun before it is due.
    fn get(&self) -> Nanos {
        if self.p80 < Self::LEAST { Nanos::ZERO } else { self.p80 }
    }

    fn learn(&mut self, took: Nanos) {
        self.p80 = self.step.take().toward(took, self.p80, Step::P80).min(Self::MAX);
    }
}

/// The degree to which a worker with [`Pacing::Adaptive`] saves CPU, in steps. The first steps delay the
/// fewest arrivals.
///
/// | steps | |
/// |---|---|
/// | 8 | the lead shrinks to the median lateness of wake-ups |
/// | 16 | more and more of the time is spent in naps of [`NAP`](Self::NAP), in the end all of it |
/// | 16 | naps become longer, up to [`Pacing::BUDGET`] |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Economy(u64);

impl Economy {
    /// Five times the cost of a wake-up.
    const NAP: Nanos = Nanos::from_micros(90);
    /// Parts of the time between two begins of naps.
    const PARTS: u64 = 16;
    /// The steps from which naps are taken, follow each other, and are longest.
    const NAPS: u64 = Lead::PARTS;
    const ALL_NAPS: u64 = Self::NAPS + Self::PARTS;
    const LAST: u64 = Self::ALL_NAPS + 16;

    /// Saves more; in large steps where there is no time left for small ones.
    fn save(&mut self, fast: bool) {
        self.0 = (self.0 + if fast { 4 } else { 1 }).min(Self::LAST);
    }

    fn spend(&mut self) {
        self.0 = self.0.saturating_sub(1);
    }

    /// Position of the lead between both percentiles, in [`Lead::PARTS`].
    fn lead(self) -> u64 {
        Lead::PARTS.saturating_sub(self.0)
    }

    /// Time spent awake between two begins of naps, in parts of [`PARTS`](Self::PARTS).
    fn awake(self) -> u64 {
        Self::PARTS - self.0.saturating_sub(Self::NAPS).min(Self::PARTS)
    }

    /// The length of naps, in which two arrivals of this rate fall due at least; zero if there are none.
    fn nap(self, peak_per_second: f64) -> Nanos {
        if self.0 <= Self::NAPS {
            return Nanos::ZERO;
        }
        let step = self.0.saturating_sub(Self::ALL_NAPS) as f64 / (Self::LAST - Self::ALL_NAPS) as f64;
        let factor = Pacing::BUDGET.0 as f64 / Self::NAP.0 as f64;
        let nap = Nanos((Self::NAP.0 as f64 * factor.powf(step)).round() as u64);
        nap.max(Nanos::from_secs_f64(1.25 / peak_per_second.max(1.0))).min(Pacing::BUDGET)
    }
}

/// The state of pacing of one worker.
#[derive(Debug)]
pub(crate) struct Pacer {
    pacing: Pacing,
    open: bool,
    /// `true` if the last response was stamped by the kernel; `false` before the first one.
    stamped: bool,
    /// Mean time between sending a request and handling its response, exponentially smoothed, in ns.
    cycle_ns: f64,
    /// Mean response size, exponentially smoothed, in bytes.
    response_bytes: f64,
    /// Mean responses per event, exponentially smoothed: with many streams one event brings many.
    responses_per_event: f64,
    /// Time for which arrivals share a wake-up, where connections leave room for as many as fall due in it.
    nap: Nanos,
    economy: Economy,
    /// End of the last nap, and when the next one may begin; with [`Pacing::Adaptive`].
    nap_ends: Nanos,
    next_nap: Nanos,
    /// `true` if the last wait was a nap.
    napping: bool,
    /// Time in naps that put an arrival off, of those that began from `counted` on; and the end of the last
    /// one.
    napped: Nanos,
    counted: Nanos,
    lead: Lead,
    preparation: Preparation,
    /// `true` if the last wait was for a request that shares its wake-up with no other.
    is_own: bool,
    /// When the arrival is due that the last wait ends ahead of; never, if it ends ahead of none.
    ahead_of: Nanos,
    /// Highest rate of this worker's arrivals; 0 in the closed model.
    peak_per_second: f64,
    /// When arrivals were last started.
    last_start: Nanos,
    /// When the load of the core is examined next, and time and CPU time of the last look.
    next_look: Nanos,
    last_look: Option<(Nanos, Nanos)>,
    /// Time spent in passes of the loop since the last look.
    busy: Nanos,
    /// See [`budget`](Self::budget).
    budget: Nanos,
}

impl Pacer {
    /// `peak_per_second`: highest rate of this worker's arrivals; `None` in the closed model.
    pub(crate) fn new(pacing: Pacing, peak_per_second: Option<f64>) -> Self {
        let nap = peak_per_second.map_or(Nanos::ZERO, |rate| shared_nap(pacing, rate));
        Self {
            pacing,
            budget: budget_of(nap),
            open: peak_per_second.is_some(),
            stamped: false,
            cycle_ns: 0.0,
            response_bytes: 0.0,
            responses_per_event: 1.0,
            nap,
            economy: Economy::default(),
            nap_ends: Nanos::ZERO,
            next_nap: Nanos::ZERO,
            napping: false,
            napped: Nanos::ZERO,
            counted: Nanos::ZERO,
            lead: Lead::new(peak_per_second.unwrap_or(ENDS_OF_THINK_TIMES)),
            preparation: Preparation::new(),
            is_own: false,
            ahead_of: Nanos::MAX,
            peak_per_second: peak_per_second.unwrap_or(0.0),
            last_start: Nanos::ZERO,
            next_look: if pacing == Pacing::Adaptive { Nanos::ZERO } else { Nanos::MAX },
            last_look: None,
            busy: Nanos::ZERO,
        }
    }

    /// Returns the longest intended delay of an arrival since the start: [`Pacing::BUDGET`] where
    /// [`Pacing::Shared`] shares wake-ups, else zero.
    pub(crate) fn budget(&self) -> Nanos {
        self.budget
    }

    /// Begins to count naps at this instant: see [`napped`](Self::napped).
    pub(crate) fn count_from(&mut self, at: Nanos) {
        (self.napped, self.counted) = (Nanos::ZERO, at);
    }

    /// Time in which arrivals were put off so that they shared a wake-up, for lack of CPU time.
    pub(crate) const fn napped(&self) -> Nanos {
        self.napped
    }

    /// Notes a new highest rate of this worker's arrivals.
    pub(crate) fn change_rate(&mut self, peak_per_second: f64) {
        self.peak_per_second = peak_per_second;
        self.lead.max_median = Lead::max_median(peak_per_second);
        if self.pacing == Pacing::Shared {
            self.nap = shared_nap(self.pacing, peak_per_second);
            self.budget = self.budget.max(budget_of(self.nap));
        } else {
            self.nap = self.economy.nap(peak_per_second);
        }
    }

    /// Records one handled response per pass: enough for the means, and cheap.
    pub(crate) fn observe(&mut self, cycle: Nanos, stamped: bool, bytes: u64) {
        const WEIGHT: f64 = 1.0 / 16.0;
        self.stamped = stamped;
        self.cycle_ns += (cycle.0 as f64 - self.cycle_ns) * WEIGHT;
        self.response_bytes += (bytes as f64 - self.response_bytes) * WEIGHT;
    }

    /// Records how many responses one event brought.
    #[inline]
    pub(crate) fn received(&mut self, responses: u64) {
        const WEIGHT: f64 = 1.0 / 64.0;
        self.responses_per_event += (responses as f64 - self.responses_per_event) * WEIGHT;
    }

    /// Records that arrivals were started.
    pub(crate) fn started(&mut self, now: Nanos) {
        self.last_start = now;
    }

    /// Records how late arrivals could be started after a sleep: the thread was woken late, and responses
    /// were handled first.
    #[inline]
    pub(crate) fn overslept(&mut self, late: Nanos) {
        // The lateness of a nap says nothing about the short sleeps between arrivals.
        if !self.napping {
            self.lead.learn(late);
        }
    }

    /// Returns `true` if the last wait was for a request that shares its wake-up with no other, and whose
    /// preparation is to be [noted](Self::prepared).
    #[inline]
    pub(crate) const fn is_own(&self) -> bool {
        self.is_own
    }

    /// Records how long it took from the end of a wait for an arrival until its request could be sent.
    #[inline]
    pub(crate) fn prepared(&mut self, took: Nanos) {
        self.preparation.learn(took);
    }

    /// When the arrival is due that is begun now, ahead of its time; `None` where the last wait was not for
    /// one, or ended early because something came.
    #[inline]
    pub(crate) fn ahead_of(&self, now: Nanos) -> Option<Nanos> {
        let due = self.ahead_of;
        (due > now && due.since(now) <= self.preparation.get()).then_some(due)
    }

    /// Returns `true` if it is time for [`adjust`](Self::adjust).
    #[inline]
    pub(crate) fn is_due(&self, now: Nanos) -> bool {
        now >= self.next_look
    }

    /// Records the duration of a pass of the loop, without its waiting.
    #[inline]
    pub(crate) fn worked(&mut self, time: Nanos) {
        self.busy += time;
    }

    /// Connections that may be written to in one flush, whose instants of sending are less exact the more of
    /// them share it: one, as long as there is CPU time for that. In the closed model only a worker whose
    /// users think is ahead of its work.
    #[inline]
    pub(crate) fn flush_limit(&self) -> usize {
        let has_time = match self.pacing {
            Pacing::Shared => self.peak_per_second <= OWN_FLUSH_PER_SECOND,
            Pacing::Adaptive | Pacing::Precise => self.economy.0 <= Economy::ALL_NAPS,
        };
        if (self.open || self.is_own) && has_time { 1 } else { usize::MAX }
    }

    /// Takes another step of economy, or one back, by the use of the core since the last look. `cpu` is the
    /// CPU time of this thread so far.
    pub(crate) fn adjust(&mut self, now: Nanos, cpu: Nanos) {
        self.next_look = now + LOOK;
        let busy = std::mem::take(&mut self.busy);
        let Some((then, before)) = self.last_look.replace((now, cpu)) else { return };
        let (passed, used) = (now - then, cpu - before);
        let load = used.0 as f64 / passed.0.max(1) as f64;
        let needed = busy.0 as f64 / passed.0.max(1) as f64;
        let spent = (used - busy).0 as f64 / (passed - busy).0.max(1) as f64;
        let is_full = needed > MOST_NEEDED && load > MOST_LOAD;
        let [save, spend] = match self.economy.0.cmp(&Economy::NAPS) {
            Ordering::Less => [spent > MOST_SPENT, spent < LEAST_SPENT],
            Ordering::Equal => [is_full, spent < LEAST_SPENT],
            Ordering::Greater => [is_full, needed < LEAST_NEEDED || load < LEAST_LOAD],
        };
        if save {
            self.economy.save(self.economy.0 >= Economy::NAPS && load > FULL_LOAD);
        } else if spend {
            self.economy.spend();
        }
        if self.open {
            self.nap = self.economy.nap(self.peak_per_second);
        }
    }

    /// Decides how to wait.
    pub(crate) fn wait(&mut self, outlook: Outlook) -> Wait {
        let Outlook { now, until, next_due, blocked, follows, awaits, in_flight, room } = outlook;
        let put_off = next_due.map_or(Nanos::ZERO, |_| self.put_off(now, room));
        let start = next_due.map_or(Nanos::MAX, |at| at.max(put_off));
        // What is to be done at the instant of an arrival is done before it.
        let is_first = start < until;
        let until = until.min(start);
        self.napping = start == put_off;
        if self.napping && self.pacing == Pacing::Adaptive && put_off > self.counted {
            self.napped += put_off.since(now.max(self.counted));
            self.counted = put_off;
        }
        // Where nothing is shared, nothing is saved by being late.
        let is_shared = self.pacing == Pacing::Shared && self.nap > Nanos::ZERO;
        let is_own = start == until && start != put_off && !is_shared;
        self.is_own = is_own;
        let ahead = if is_own && is_first { self.preparation.get() } else { Nanos::ZERO };
        self.ahead_of = if ahead > Nanos::ZERO { start } else { Nanos::MAX };
        let until = if ahead > Nanos::ZERO { until.max(now + ahead) - ahead } else { until };
        let spin = match self.pacing {
            _ if !is_own => Nanos::ZERO,
            Pacing::Precise => SPIN,
            Pacing::Adaptive => polled(self.lead.get(self.economy.lead()), until.since(now)),
            Pacing::Shared => polled(self.lead.median, until.since(now)),
        };
        let may_gather = self.stamped && !awaits && self.response_bytes < LARGE_RESPONSE as f64;
        if self.open && may_gather && !blocked && !follows && until.since(now) <= UNREAD {
            // All that can come are stamped responses, and no send depends on one: sleep to the next send and
            // read what has come by then.
            return Wait { until, want: u32::MAX, floor: until.since(now), spin };
        }
        if may_gather && in_flight >= GATHER_IN_FLIGHT && self.pacing != Pacing::Precise {
            // Where arrivals share wake-ups, requests that follow a response share them, too, within the same
            // budget. In the closed model the target must not be left without work.
            let cycle = Nanos(self.cycle_ns as u64);
            let share = match self.pacing {
                Pacing::Shared if self.nap > Nanos::ZERO && !blocked => GATHER_MAX,
                Pacing::Shared => Nanos(cycle.0 / SHARED_GATHER_SHARE),
                _ if self.open => self.nap.min(Nanos(cycle.0 / GATHER_SHARE)),
                _ => Nanos(cycle.0 / GATHER_SHARE),
            };
            let floor = share.min(GATHER_MAX);
            if floor >= GATHER_MIN {
                // Half of the requests in flight, counted in events. If responses trickle in one by one on
                // few connections, that many are never ready at once, and the floor decides.
                let events = in_flight as f64 / self.responses_per_event.max(1.0);
                let want = ((events / 2.0) as u32).max(1);
                return Wait { until, want, floor, spin };
            }
        }
        Wait { until, want: 1, floor: Nanos::ZERO, spin }
    }

    /// Returns the time until which arrivals are put off so that they share a wake-up; a time in the past if
    /// they are not put off.
    fn put_off(&mut self, now: Nanos, room: u64) -> Nanos {
        if self.nap == Nanos::ZERO {
            return Nanos::ZERO;
        }
        // A wake-up that owes more arrivals than there is room for would make them wait for connections, or
        // drop them, although the target is fast enough.
        let nap = self.nap.min(Nanos::from_secs_f64(room as f64 / self.peak_per_second));
        if self.pacing == Pacing::Shared {
            return self.last_start + nap;
        }
        if now >= self.next_nap {
            let awake = self.economy.awake();
            self.nap_ends = now + nap.since(self.lead.median).max(WAKE_UP);
            self.next_nap = now + nap + Nanos(self.nap.0 * awake / (Economy::PARTS - awake).max(1));
        }
        self.nap_ends
    }
}

/// Returns the time that is polled away before an arrival `left` from now, for a sleep that ends by `lead`
/// before it: all of it, if the sleep would be too short, since falling asleep takes its time, too.
fn polled(lead: Nanos, left: Nanos) -> Nanos {
    if left < lead + SHORTEST_SLEEP { left } else { lead }
}

/// Returns the time for which arrivals of such a rate share wake-ups before the load of the core is known.
fn shared_nap(pacing: Pacing, peak_per_second: f64) -> Nanos {
    if pacing != Pacing::Shared || peak_per_second <= OWN_WAKE_UP_PER_SECOND {
        return Nanos::ZERO;
    }
    // The last arrival of a wake-up, sent after all the others that it owes, is `Pacing::BUDGET` late:
    // `nap + rate · nap · send = budget`.
    Nanos::from_secs_f64(Pacing::BUDGET.as_secs_f64() / (1.0 + peak_per_second * SEND.as_secs_f64()))
}

fn budget_of(nap: Nanos) -> Nanos {
    if nap == Nanos::ZERO { Nanos::ZERO } else { Pacing::BUDGET }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outlook() -> Outlook {
        Outlook {
            now: Nanos(1_000),
            until: Nanos::from_millis(100),
            next_due: None,
            blocked: false,
            follows: false,
            awaits: false,
            in_flight: 64,
            room: 64,
        }
    }

    /// A pacer whose requests take no time to make.
    fn new(pacing: Pacing, peak_per_second: Option<f64>) -> Pacer {
        let mut pacer = Pacer::new(pacing, peak_per_second);
        (0..20).for_each(|_| pacer.prepared(Nanos::ZERO));
        pacer
    }

    fn observed(mut pacer: Pacer, cycle: Nanos, stamped: bool, bytes: u64) -> Pacer {
        for _ in 0..200 {
            pacer.observe(cycle, stamped, bytes);
        }
        pacer
    }

    #[test]
    fn without_kernel_stamps_nothing_is_coalesced() {
        let mut pacer = observed(new(Pacing::Adaptive, None), Nanos::from_millis(2), false, 100);
        assert_eq!(pacer.wait(outlook()).want, 1);
        let mut pacer = observed(new(Pacing::Adaptive, Some(5_000.0)), Nanos::from_millis(2), false, 100);
        assert_eq!(pacer.wait(outlook()).want, 1);
    }

    #[test]
    fn nothing_is_slept_past_that_may_come_without_a_stamp() {
        let next = Outlook { next_due: Some(UNREAD), ..outlook() };
        for pacing in [Pacing::Adaptive, Pacing::Shared, Pacing::Precise] {
            let mut pacer = observed(new(pacing, Some(1_250.0)), Nanos::from_millis(2), true, 100);
            assert_eq!(pacer.wait(next).want, u32::MAX, "{pacing:?}");
            assert_eq!(pacer.wait(Outlook { awaits: true, ..next }).want, 1, "{pacing:?}");
        }
    }

    #[test]
    fn nothing_lies_unread_for_long() {
        let next = Outlook { next_due: Some(Nanos::from_millis(2)), in_flight: 1, ..outlook() };
        for pacing in [Pacing::Adaptive, Pacing::Shared, Pacing::Precise] {
            let mut pacer = observed(new(pacing, Some(500.0)), Nanos::from_millis(2), true, 100);
            assert_eq!(pacer.wait(next).want, 1, "{pacing:?}");
        }
    }

    #[test]
    fn a_response_is_awaited_until_it_is_known_to_be_stamped() {
        let mut awaiting = Awaiting::new();
        assert!(awaiting.is_due());
        awaiting.received(true);
        assert!(!awaiting.is_due());
        awaiting.sized(100);
        assert!(!awaiting.is_due());
        awaiting.sized(1 << 20);
        (0..Awaiting::NEXT).for_each(|_| {
            assert!(awaiting.is_due());
            awaiting.received(true);
        });
        assert!(!awaiting.is_due());
        awaiting.received(false);
        assert!(awaiting.is_due());
        (0..Awaiting::NEXT).for_each(|_| awaiting.received(true));
        awaiting.took(Nanos::from_micros(100));
        assert!(!awaiting.is_due());
        awaiting.took(Nanos::from_millis(1));
        assert!(awaiting.is_due());
        let mut always = Awaiting::always();
        (0..1_000).for_each(|_| always.received(true));
        assert!(always.is_due());
    }

    #[test]
    fn a_closed_loop_gathers_for_a_share_of_its_cycle() {
        let cycle = Nanos::from_micros(800);
        let mut pacer = observed(new(Pacing::Adaptive, None), cycle, true, 100);
        let wait = pacer.wait(outlook());
        assert_eq!(wait.want, 32);
        // A response waits for half of it on average: at most 3 % of the cycle and the turnaround.
        assert!(wait.floor <= Nanos::from_micros(50) && wait.floor >= Nanos::from_micros(49), "{wait:?}");
        let mut shared = observed(new(Pacing::Shared, None), cycle, true, 100);
        assert!(shared.wait(outlook()).floor >= Nanos::from_micros(199));
        // Below the cost of a timed sleep nothing is gathered.
        let mut fast = observed(new(Pacing::Adaptive, None), Nanos::from_micros(300), true, 100);
        assert_eq!(fast.wait(outlook()).want, 1);
        let mut slow = observed(new(Pacing::Adaptive, None), Nanos::from_millis(20), true, 100);
        assert_eq!(slow.wait(outlook()).floor, GATHER_MAX);
        assert_eq!(slow.wait(Outlook { in_flight: 1, ..outlook() }).want, 1);
        let mut large = observed(new(Pacing::Adaptive, None), Nanos::from_millis(20), true, 1 << 20);
        assert_eq!(large.wait(outlook()).want, 1);
    }

    #[test]
    fn what_follows_a_response_shares_wake_ups_where_arrivals_do() {
        let follows = Outlook { follows: true, next_due: Some(Nanos::from_millis(50)), ..outlook() };
        let cycle = Nanos::from_micros(800);
        let mut fast = observed(new(Pacing::Shared, Some(20_000.0)), cycle, true, 100);
        assert_eq!((fast.wait(follows).want, fast.wait(follows).floor), (32, GATHER_MAX));
        assert!(fast.wait(Outlook { blocked: true, ..follows }).floor <= Nanos::from_micros(200));
        // With adaptive pacing requests are sent at once, unless the core is too busy for that.
        let mut adaptive = observed(new(Pacing::Adaptive, Some(20_000.0)), cycle, true, 100);
        assert_eq!(adaptive.wait(follows).want, 1);
        spend(&mut adaptive, 1.0, 0.9, 20);
        let floor = adaptive.wait(follows).floor;
        assert!(floor >= GATHER_MIN && floor <= Nanos::from_micros(50), "{floor:?}");
    }

    #[test]
    fn shared_pacing_shares_wake_ups_at_high_rates() {
        let next_due = Some(Nanos(2_000));
        let mut fast = observed(new(Pacing::Shared, Some(50_000.0)), Nanos(90_000), true, 100);
        fast.started(Nanos(1_000));
        let wait = fast.wait(Outlook { next_due, ..outlook() });
        // 50,000 sends of 4 µs take a fifth of the time: the nap leaves room for them.
        let nap = wait.until.since(Nanos(1_000));
        assert!(nap.0.abs_diff(Pacing::BUDGET.0 * 10 / 12) <= 1, "{nap:?}");
        assert_eq!((wait.want, wait.spin), (u32::MAX, Nanos::ZERO));
        // Connections for ten of them leave a fifth of a millisecond.
        let few = fast.wait(Outlook { next_due, room: 10, ..outlook() });
        assert_eq!(few.until, Nanos(1_000) + Nanos::from_micros(200));
        let none = fast.wait(Outlook { next_due, room: 0, ..outlook() });
        assert_eq!(none.until, Nanos(2_000));
        let mut slow = new(Pacing::Shared, Some(1_000.0));
        slow.started(Nanos(1_000));
        assert_eq!(slow.wait(Outlook { next_due, ..outlook() }).until, Nanos(2_000));
        assert_eq!((slow.budget(), fast.budget()), (Nanos::ZERO, Pacing::BUDGET));
        // An arrival with a wake-up of its own is on time as often as not.
        let far = Outlook { next_due: Some(Nanos::from_micros(900)), ..outlook() };
        let [median, _] = Lead::FIRST;
        assert_eq!((slow.wait(far).until, slow.wait(far).spin), (Nanos::from_micros(900), median));
        // Sends are exact for as long as that costs little.
        let fastest = new(Pacing::Shared, Some(60_000.0));
        assert_eq!([slow.flush_limit(), fast.flush_limit(), fastest.flush_limit()], [1, 1, usize::MAX]);
        let mut precise = new(Pacing::Precise, Some(50_000.0));
        precise.started(Nanos(1_000));
        let wait = precise.wait(Outlook { next_due, ..outlook() });
        assert_eq!((wait.until, wait.spin), (Nanos(2_000), SPIN));
    }

    /// Records this many looks with these shares of the core: used, and needed by requests.
    fn spend(pacer: &mut Pacer, load: f64, needed: f64, looks: u32) {
        if pacer.last_look.is_none() {
            pacer.adjust(Nanos::ZERO, Nanos::ZERO);
        }
        let (mut now, mut cpu) = pacer.last_look.expect("there was a look");
        for _ in 0..looks {
            now += LOOK;
            assert!(pacer.is_due(now));
            cpu += Nanos((LOOK.0 as f64 * load) as u64);
            pacer.worked(Nanos((LOOK.0 as f64 * needed) as u64));
            pacer.adjust(now, cpu);
        }
    }

    #[test]
    fn adaptive_pacing_is_on_time_for_as_long_as_requests_leave_time() {
        let interval = Nanos::from_micros(60);
        let at = |pacer: &mut Pacer| pacer.wait(Outlook { next_due: Some(interval), ..outlook() });
        let mut pacer = observed(new(Pacing::Adaptive, Some(50_000.0)), Nanos(90_000), true, 100);
        let [median, p80] = Lead::FIRST;
        assert_eq!((at(&mut pacer).until, at(&mut pacer).spin), (interval, p80));
        // A busy core loses its lead first, except for the cheap half.
        spend(&mut pacer, 0.8, 0.1, 1);
        assert!(at(&mut pacer).until == interval && at(&mut pacer).spin < p80);
        // Requests that leave time are started on time, whatever that costs.
        spend(&mut pacer, 1.0, 0.1, 50);
        assert_eq!((at(&mut pacer).until, at(&mut pacer).spin), (interval, median));
        spend(&mut pacer, 1.0, 0.69, 50);
        assert_eq!((at(&mut pacer).until, pacer.nap, pacer.napped()), (interval, Nanos::ZERO, Nanos::ZERO));
        // An arrival that is nearer than the end of a sleep is polled for.
        let near = Outlook { next_due: Some(Nanos::from_micros(21)), ..outlook() };
        assert_eq!(pacer.wait(near).spin, Nanos::from_micros(20));
        // Requests that need the core share wake-ups, and more of them the busier it is.
        spend(&mut pacer, 1.0, 0.8, 1);
        let nap = at(&mut pacer);
        assert_eq!((nap.until, nap.spin), (Nanos(1_000) + Economy::NAP - median, Nanos::ZERO));
        // A nap counts once, however often it is asked for, and not before the measured part.
        assert_eq!(at(&mut pacer).until, nap.until);
        assert_eq!(pacer.napped(), Economy::NAP - median);
        pacer.count_from(nap.until);
        assert_eq!((at(&mut pacer).until, pacer.napped()), (nap.until, Nanos::ZERO));
        pacer.overslept(Nanos::from_millis(1));
        assert_eq!(pacer.lead.median, median, "a nap teaches nothing about short sleeps");
        let awake = |pacer: &mut Pacer, us: u64| {
            let now = Nanos::from_micros(us);
            let outlook = Outlook { now, next_due: Some(now + interval), ..outlook() };
            pacer.wait(outlook).until == now + interval
        };
        // The pacer spends three quarters of the time between two arrivals awake.
        assert!(awake(&mut pacer, 92) && awake(&mut pacer, 360) && !awake(&mut pacer, 362));
        // In between nothing changes.
        spend(&mut pacer, 0.85, 0.75, 50);
        assert_eq!((pacer.nap, pacer.economy.awake(), pacer.flush_limit()), (Economy::NAP, 12, 1));
        spend(&mut pacer, 0.95, 0.75, 4);
        assert_eq!((pacer.nap, pacer.economy.awake()), (Economy::NAP, 8));
        spend(&mut pacer, 1.0, 0.95, 50);
        assert_eq!((pacer.nap, pacer.economy.awake()), (Pacing::BUDGET, 0));
        assert_eq!(pacer.flush_limit(), usize::MAX, "the clock costs time, too");
        assert_eq!(pacer.budget(), Nanos::ZERO, "none of that was asked for");
        // A core that has time again spends it on being on time.
        spend(&mut pacer, 0.3, 0.1, 60);
        assert_eq!((at(&mut pacer).until, at(&mut pacer).spin), (interval, p80));
        // Connections for one arrival leave no room for more.
        spend(&mut pacer, 1.0, 0.9, 20);
        let few = Outlook { next_due: Some(interval), room: 1, now: Nanos::from_secs(9), ..outlook() };
        let until = pacer.wait(Outlook { until: Nanos::MAX, ..few }).until;
        assert!(until <= Nanos::from_secs(9) + Nanos::from_micros(20), "{until:?}");
    }

    #[test]
    fn a_request_that_takes_long_to_make_is_begun_ahead() {
        let mut pacer = new(Pacing::Adaptive, Some(100.0));
        let due = Nanos::from_millis(50);
        let next = Outlook { next_due: Some(due), in_flight: 0, ..outlook() };
        let [_, p80] = Lead::FIRST;
        assert_eq!((pacer.wait(next).until, pacer.wait(next).spin), (due, p80));
        assert!(pacer.is_own() && pacer.ahead_of(due - Nanos(1)).is_none());
        // Four of five take at most 40 µs.
        (0..2_000).for_each(|n| pacer.prepared(Nanos::from_micros(n * 37 % 50)));
        let begin = pacer.wait(next).until;
        assert!((due - begin).0.abs_diff(40_000) < 3_000, "{begin:?}");
        assert_eq!(pacer.wait(next).spin, p80);
        assert_eq!([begin - Nanos(1), begin, due].map(|now| pacer.ahead_of(now)), [None, Some(due), None]);
        // What else is to be done at that time comes first.
        assert_eq!(pacer.wait(Outlook { until: due, ..next }).until, due);
        assert_eq!(pacer.ahead_of(begin), None);
        // Where requests share a wake-up, none is made ahead.
        let mut shared = Pacer::new(Pacing::Shared, Some(50_000.0));
        shared.started(Nanos(1_000));
        let _ = shared.wait(Outlook { next_due: Some(Nanos(2_000)), ..outlook() });
        assert!(!shared.is_own() && shared.ahead_of(Nanos(1_999)).is_none());
    }

    /// A think time ends on time in the closed model, too, and what falls due then has a flush of its own.
    #[test]
    fn the_end_of_a_think_time_is_an_arrival() {
        let mut pacer = observed(new(Pacing::Adaptive, None), Nanos::from_millis(2), true, 100);
        let next = Outlook { next_due: Some(Nanos::from_millis(50)), in_flight: 1, ..outlook() };
        assert_eq!((pacer.wait(outlook()).spin, pacer.flush_limit()), (Nanos::ZERO, usize::MAX));
        assert_eq!((pacer.wait(next).spin, pacer.flush_limit()), (Lead::FIRST[1], 1));
        // A worker without time lets them share a flush, and takes no naps: there is no schedule.
        spend(&mut pacer, 1.0, 0.95, 50);
        let wait = pacer.wait(next);
        assert_eq!((wait.until, wait.spin), (Nanos::from_millis(50), Lead::FIRST[0]));
        assert_eq!((pacer.flush_limit(), pacer.nap), (usize::MAX, Nanos::ZERO));
    }

    #[test]
    fn every_step_of_economy_gives_up_a_little_more() {
        let all: Vec<Economy> = (0..=Economy::LAST).map(Economy).collect();
        for pair in all.windows(2) {
            let costs =
                |economy: &Economy| (economy.lead(), economy.awake(), Nanos::MAX - economy.nap(20_000.0));
            assert!(costs(&pair[0]) > costs(&pair[1]), "{pair:?}");
        }
        assert_eq!(Economy(Economy::LAST).nap(20_000.0), Pacing::BUDGET);
        // A nap without a second arrival saves nothing.
        assert_eq!(Economy(Economy::NAPS + 1).nap(5_000.0), Nanos::from_micros(250));
    }

    #[test]
    fn the_lead_settles_at_percentiles_of_the_lateness_of_wake_ups() {
        let mut lead = Lead::new(5_000.0);
        // Wake-ups that are 0 to 99 µs late, in no order.
        (0..10_000).for_each(|n: u64| lead.learn(Nanos::from_micros(n * 37 % 100)));
        let close = |estimate: Nanos, micros: u64| estimate.0.abs_diff(micros * 1_000) < 6_000;
        assert!(close(lead.median, 50) && close(lead.p80, 80), "{lead:?}");
        assert_eq!(lead.get(Lead::PARTS), lead.p80);
        (0..10_000).for_each(|_| lead.learn(Nanos::ZERO));
        assert_eq!(lead.get(Lead::PARTS), Nanos::ZERO);
        (0..10_000).for_each(|_| lead.learn(Nanos::from_millis(1)));
        assert_eq!(lead.get(Lead::PARTS), Lead::MAX);
        // Where it is affordable, the median is waited for when it is later, too.
        for (rate, micros) in [(1.0, 300), (100.0, 300), (200.0, 150), (300.0, 100), (50_000.0, 100)] {
            assert_eq!(Lead::max_median(rate), Nanos::from_micros(micros), "{rate}");
        }
        // Two seconds of a low rate suffice to learn what they are.
        let mut rare = Lead::new(100.0);
        (0..200).for_each(|n: u64| rare.learn(Nanos::from_micros(100 + n * 37 % 100)));
        assert!(rare.median.0.abs_diff(150_000) < 15_000, "{rare:?}");
        assert_eq!(rare.get(Lead::PARTS), rare.median, "more would cost too much");
        (0..10_000).for_each(|_| rare.learn(Nanos::from_millis(1)));
        assert_eq!(rare.get(Lead::PARTS), Lead::MAX_MEDIAN);
        // At a lower rate, whose core sleeps more deeply, half a second does.
        let mut rarer = Lead::new(20.0);
        (0..10).for_each(|n: u64| rarer.learn(Nanos::from_micros(120 + n * 37 % 20)));
        assert!(rarer.median > Nanos::from_micros(110), "{rarer:?}");
    }
}
