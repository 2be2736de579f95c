//! The capacity search against servers whose capacity is known exactly.

use plimsoll_core::Random;
use plimsoll_statistics::{
    Answer, Doubt, End, Finding, Outcome, Purpose, Search, Settings, SliceCount, Trial,
};

/// Length of the shortest trial in seconds, and slices of it: those of `plimsoll find`.
const UNIT: f64 = 2.0;
const SLICES_PER_UNIT: f64 = 20.0;
/// Lead-in of a trial in seconds.
const LEAD: f64 = 1.0;
/// A trial may end early at this confidence.
const EARLY: f64 = 0.999;
/// Factor on the service times of a server that is cold.
const COLD: f64 = 100.0;
/// Backlog in seconds beyond which requests find no connection.
const LONGEST_QUEUE: f64 = 8.0;

/// One server, one first-come-first-served queue, exponential service times, by Lindley's recursion: a
/// request waits for the rest of its predecessor.
#[derive(Clone, Copy)]
struct Server {
    /// Mean service rate per second.
    mu: f64,
    /// Poisson arrivals, or uniform ones.
    poisson: bool,
    /// Objective of the search, in seconds: fewer than 1 % of the responses take longer.
    bearable: f64,
    /// Backlog in seconds from which it is slower, for good.
    gets_slow: f64,
    /// Factor on service times.
    slowness: f64,
    /// When it stands still, and for how long, in seconds: by a pause of its own, or of its machine.
    pauses: &'static [(f64, f64)],
    /// For how long it is slow in the beginning, in seconds.
    cold: f64,
}

impl Server {
    /// 1,000/s, and p99 <= 25 ms; other rates at the same scale.
    const fn new(mu: f64, poisson: bool) -> Self {
        Self {
            mu,
            poisson,
            bearable: 25.0 / mu,
            gets_slow: f64::INFINITY,
            slowness: 1.0,
            pauses: &[],
            cold: 0.0,
        }
    }

    /// The rate at which the 99th percentile is the bearable time. The sojourn time is exponential with the
    /// rate mu·(1 - s); s is λ/mu with Poisson arrivals, and with uniform ones s = exp(-mu·(1 - s)/λ).
    fn capacity(&self) -> f64 {
        let idle = 100_f64.ln() / (self.mu * self.bearable);
        match self.poisson {
            true => self.mu * (1.0 - idle),
            false => -self.mu * idle / (1.0 - idle).ln(),
        }
    }
}

/// A server under load, with a clock.
struct Queue {
    server: Server,
    random: Random,
    now: f64,
    /// When the server has worked off all that has come.
    free: f64,
}

impl Queue {
    fn new(server: Server, seed: u64) -> Self {
        Self { server, random: Random::new(seed, 1), now: 0.0, free: 0.0 }
    }

    /// Load at a rate for a time; reports the counts so far after each slice, until they are enough.
    fn load(
        &mut self,
        rate: f64,
        seconds: f64,
        mut is_enough: impl FnMut(&[SliceCount]) -> bool,
    ) -> Vec<SliceCount> {
        let begin = self.now;
        let (slice, count) = (UNIT / SLICES_PER_UNIT, (seconds * SLICES_PER_UNIT / UNIT).round() as usize);
        let mut slices = vec![SliceCount::default()];
        loop {
            let at = self.now
                + match self.server.poisson {
                    true => self.random.exponential(1.0 / rate),
                    false => 1.0 / rate,
                };
            while at - begin >= slice * slices.len() as f64 {
                if slices.len() == count || is_enough(&slices) {
                    self.now = begin + slice * slices.len() as f64;
                    return slices;
                }
                slices.push(SliceCount::default());
            }
            self.now = at;
            if self.free - at > LONGEST_QUEUE * self.server.bearable {
                continue;
            }
            if self.free - at > self.server.gets_slow {
                self.server.slowness = 1.5;
            }
            let pauses =
                self.server.pauses.iter().filter(|(from, length)| (*from..from + length).contains(&at));
            let awake = pauses.fold(at, |awake, (from, length)| awake.max(from + length));
            let slowness = if at < self.server.cold { COLD } else { self.server.slowness };
            self.free = self.free.max(awake) + self.random.exponential(slowness / self.server.mu);
            if let Some(last) = slices.last_mut() {
                last.count += 1;
                last.marked += u64::from(self.free - at > self.server.bearable);
            }
        }
    }

    /// A trial on an idle server; the time that passes is that of the trial. Returns the share that was
    /// carried out, and its counts.
    fn carry_out(&mut self, search: &Search, trial: &Trial) -> (f64, Vec<Vec<SliceCount>>) {
        self.free = 0.0;
        let scale = f64::from(trial.scale);
        if let Some(before) = trial.after {
            self.load(before, UNIT * scale, |_| false);
        }
        self.load(trial.rate, LEAD * scale, |_| false);
        let seconds = UNIT * f64::from(trial.length);
        let is_clear = |slices: &[SliceCount]| {
            slices.len().is_multiple_of(trial.scale as usize)
                && search.is_clear(trial, &[slices.to_vec()], EARLY)
        };
        let slices = self.load(trial.rate, seconds, is_clear);
        (slices.len() as f64 * UNIT / SLICES_PER_UNIT / seconds, vec![slices])
    }
}

/// Carries a search out; also returns the seconds that it took.
fn search(seed: u64, settings: Settings, server: Server) -> (Answer, f64) {
    search_within(f64::INFINITY, seed, settings, server)
}

/// Carries out a search that may take this many seconds; also returns the seconds that it took.
fn search_within(longest: f64, seed: u64, settings: Settings, server: Server) -> (Answer, f64) {
    let (search, took) = searched_within(longest, seed, settings, server);
    (search.answer(false), took)
}

/// A search that may take this many seconds, and has ended.
fn searched_within(longest: f64, seed: u64, settings: Settings, server: Server) -> (Search, f64) {
    let mut search = Search::new(settings);
    let mut queue = Queue::new(server, seed);
    for _ in 0..400 {
        let left = (longest - queue.now) / UNIT;
        let Some(trial) = search.next_within(left, longest / UNIT) else {
            return (search, queue.now);
        };
        let (carried_out, portions) = queue.carry_out(&search, &trial);
        search.note(&trial, carried_out, Outcome::Measured(portions));
    }
    panic!("it does not end: {:?}", search.levels());
}

fn settings(from: f64) -> Settings {
    Settings::new(from, vec![0.01])
}

/// Results of many searches for the capacity of a server.
#[derive(Debug)]
struct Tally {
    searches: usize,
    /// Intervals that hold the capacity, and those that lie above or below it.
    right: usize,
    above: usize,
    below: usize,
    narrow: usize,
    confirmed: usize,
    /// Seconds, ascending.
    seconds: Vec<f64>,
    /// Widths of the intervals as shares of the lower end, ascending.
    widths: Vec<f64>,
}

impl Tally {
    fn of(server: Server, seeds: u64) -> Self {
        Self::within(f64::INFINITY, server, seeds)
    }

    /// Of searches that may take this many seconds.
    fn within(longest: f64, server: Server, seeds: u64) -> Self {
        let capacity = server.capacity();
        let (mut right, mut above, mut below, mut narrow, mut confirmed) = (0, 0, 0, 0, 0);
        let (mut seconds, mut widths) = (Vec::new(), Vec::new());
        for seed in 0..seeds {
            // Another begin for each, so that the rates that are tried lie differently about the truth.
            let from = 60.0 + 60.0 * Random::new(seed, u64::MAX).unit();
            let (answer, took) = search_within(longest, seed, settings(from), server);
            let (low, high) = (answer.low.unwrap_or(0.0), answer.high.unwrap_or(f64::INFINITY));
            above += usize::from(low > capacity);
            below += usize::from(high < capacity);
            right += usize::from(low <= capacity && capacity <= high);
            narrow += usize::from(high / low - 1.0 <= 0.0501);
            confirmed += usize::from(answer.confirmed);
            seconds.push(took);
            widths.push(high / low - 1.0);
        }
        seconds.sort_by(f64::total_cmp);
        widths.sort_by(f64::total_cmp);
        Self { searches: seconds.len(), right, above, below, narrow, confirmed, seconds, widths }
    }

    fn share_of_time(&self, share: f64) -> f64 {
        self.seconds[((self.searches - 1) as f64 * share) as usize]
    }

    fn mean(&self) -> f64 {
        self.seconds.iter().sum::<f64>() / self.searches as f64
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { searches, right, above, below, narrow, confirmed, .. } = self;
        write!(
            out,
            "of {searches}: right {right}, above {above}, below {below}, narrow {narrow}, \
             confirmed {confirmed}; seconds: mean {:.0}, median {:.0}, nine tenths {:.0}, longest {:.0}; \
             median width {:.3}, nine tenths {:.3}, widest {:.3}",
            self.mean(),
            self.share_of_time(0.5),
            self.share_of_time(0.9),
            self.share_of_time(1.0),
            self.widths[searches / 2],
            self.widths[searches * 9 / 10],
            self.widths[searches - 1],
        )
    }
}

/// R18: the answer holds the true capacity in at least nine of ten searches, and is at most 5 % wide.
#[test]
fn the_capacity_of_a_queue_is_found() {
    for poisson in [true, false] {
        let tally = Tally::of(Server::new(1_000.0, poisson), 200);
        println!("Poisson {poisson}: {tally}");
        let most = tally.searches * 9 / 10;
        assert!(tally.right >= most && tally.narrow >= most && tally.confirmed >= most, "{tally}");
    }
}

/// Symptoms: 5 to 14 minutes for the capacity of a queue of 1,000/s. In two minutes 157 of 200 intervals held
/// that of a queue of 300/s: rates that held in short trials, between two bursts of slow responses, were
/// ends, and half of the time was kept for the confirmation.
#[test]
fn two_minutes_are_enough_for_a_wider_answer() {
    for (mu, poisson, right, width) in [
        (300.0, true, 185, 0.32),
        (300.0, false, 190, 0.28),
        (1_000.0, true, 187, 0.25),
        (1_000.0, false, 185, 0.12),
    ] {
        let server = Server { bearable: if mu < 1_000.0 { 0.08 } else { 0.025 }, ..Server::new(mu, poisson) };
        let tally = Tally::within(120.0, server, 200);
        println!("{mu}/s, Poisson {poisson}: {tally}");
        assert!(tally.right >= right && tally.widths[100] < width, "{mu} {poisson}: {tally}");
        assert!(tally.widths[180] <= 1.01, "{mu} {poisson}: {tally}");
        assert!(tally.share_of_time(1.0) <= 120.0 + 1e-6, "{mu} {poisson}: {tally}");
        // At 300/s a trial of enough samples takes 6 s, and a rate that seems to break is tried twice.
        let confirmed = if mu < 1_000.0 { 165 } else { 180 };
        assert!(tally.confirmed >= confirmed, "a rate that holds is known: {mu} {poisson}: {tally}");
    }
}

/// Whatever the time and the server, nine in ten intervals hold the truth. With little time an end may be
/// open.
#[test]
fn intervals_hold_the_truth_in_any_time() {
    let (mut right, mut all) = (0, 0);
    for mu in [100.0, 300.0, 500.0, 1_000.0] {
        for poisson in [true, false] {
            for seconds in [20.0, 30.0, 60.0, 120.0, 300.0] {
                let tally = Tally::within(seconds, Server::new(mu, poisson), 40);
                println!("{mu}/s, Poisson {poisson}, {seconds} s: {tally}");
                assert!(
                    tally.right >= 33 && tally.share_of_time(1.0) <= seconds + 1e-6,
                    "{mu} {poisson}: {tally}"
                );
                (right, all) = (right + tally.right, all + tally.searches);
            }
        }
    }
    assert!(right * 10 >= all * 9, "{right} of {all}");
}

/// Symptom: a server that stood still for 80 ms in the first trial of a search was called good for 57/s of
/// its 815/s: the search went down, and never up again.
#[test]
fn a_pause_of_the_server_does_not_decide_a_search() {
    const PAUSES: [&[(f64, f64)]; 8] = [
        &[],
        &[(1.5, 0.08)],
        &[(1.5, 0.3)],
        &[(1.2, 1.5)],
        &[(4.5, 0.08)],
        &[(4.5, 0.3)],
        &[(4.2, 1.5)],
        &[(1.5, 0.08), (4.5, 0.08)],
    ];
    for (seconds, low) in [(60.0, 500.0), (120.0, 600.0)] {
        for pauses in PAUSES {
            for mu in [1_000.0, 2_000.0] {
                let server = Server { pauses, ..Server::new(mu, true) };
                let capacity = server.capacity();
                let (mut right, mut wide, mut lows) = (0, 0, Vec::new());
                for seed in 0..20 {
                    let (answer, _) = search_within(seconds, seed, settings(100.0), server);
                    let ends = (answer.low.unwrap_or(0.0), answer.high.unwrap_or(f64::INFINITY));
                    right += usize::from(ends.0 <= capacity && capacity <= ends.1);
                    wide += usize::from(ends.0 < low * mu / 1_000.0);
                    lows.push(ends.0.round());
                }
                println!("{seconds} s, {pauses:?}, {mu}/s: right {right}, wide {wide}, {lows:?}");
                assert!(right >= 16 && wide <= 5, "{seconds} s, {pauses:?}, {mu}/s: {right} {wide} {lows:?}");
            }
        }
    }
}

/// Symptom: a server that took 100 ms for its first 6 s, and 5 ms from then on, was said to carry 13 to 25/s
/// of more than 200: rates that broke in that time were never tried again.
#[test]
fn a_server_that_starts_slowly_does_not_decide_a_search() {
    for (seconds, low) in [(60.0, 350.0), (120.0, 500.0)] {
        for cold in [1.0, 3.0, 6.0, 9.0, 12.0] {
            // From 25/s on the search has gone to rates without enough requests by 12 s.
            for from in [25.0, 100.0, 400.0].into_iter().filter(|from| *from > 25.0 || cold < 12.0) {
                let server = Server { cold, ..Server::new(1_000.0, true) };
                let capacity = server.capacity();
                let (mut right, mut wide, mut ends) = (0, 0, Vec::new());
                for seed in 0..20 {
                    let (answer, _) = search_within(seconds, seed, settings(from), server);
                    let (lower, upper) = (answer.low.unwrap_or(0.0), answer.high.unwrap_or(f64::INFINITY));
                    right += usize::from(lower <= capacity && capacity <= upper);
                    wide += usize::from(lower < low);
                    ends.push((lower.round(), upper.round()));
                }
                println!(
                    "{seconds} s, cold for {cold} s, from {from}/s: right {right}, wide {wide}, {ends:?}"
                );
                assert!(right >= 17 && wide <= 5, "{seconds} s, {cold} s, {from}/s: {right} {wide} {ends:?}");
            }
        }
    }
}

/// The table of `docs/statistics.md`.
#[test]
#[ignore = "takes minutes"]
fn capacities_of_all_sizes_are_found() {
    for (mu, scale) in [(100.0, 1.0), (1_000.0, 1.0), (1_000.0, 0.4), (1_000.0, 4.0), (20_000.0, 1.0)] {
        for poisson in [true, false] {
            let server = Server::new(mu, poisson);
            let server = Server { bearable: server.bearable * scale, ..server };
            let tally = Tally::of(server, 200);
            println!("{mu}/s, {:.4} s, Poisson {poisson}: {tally}", server.bearable);
        }
    }
}

/// A server that an overload makes slower for good holds less after it than before.
#[test]
fn a_server_that_does_not_recover_is_seen_from_above() {
    let server = Server { gets_slow: 0.19, ..Server::new(1_000.0, true) };
    let mut search = Search::new(settings(100.0));
    let mut seeds = 0..;
    while let Some(trial) = search.next() {
        // A fresh server for each trial: the test is not about an overload long before.
        let mut queue = Queue::new(server, seeds.next().unwrap());
        let (carried_out, portions) = queue.carry_out(&search, &trial);
        search.note(&trial, carried_out, Outcome::Measured(portions));
    }
    let answer = search.answer(false);
    let (low, high) = (answer.low.unwrap(), answer.high.unwrap());
    assert!((700.0..850.0).contains(&low) && high < 900.0, "{answer:?}");
    assert!(answer.confirmed, "{answer:?}");
    // It then serves 667 requests per second: none of the rates near its capacity.
    assert_eq!(answer.from_above, None);
}

#[test]
fn a_limit_that_is_never_reached_is_a_lower_bound() {
    let (answer, _) = search(1, Settings { to: 400.0, ..settings(150.0) }, Server::new(1_000.0, true));
    assert_eq!((answer.low, answer.high, answer.end), (Some(400.0), None, End::Highest));
    assert!(answer.confirmed);
}

/// Symptom: a search for whether a server of 300/s carries 100/s ended after 3 of its 60 seconds: five trials
/// at once did not fit.
#[test]
fn the_highest_rate_is_tried_for_as_long_as_there_is_time() {
    for seconds in [40.0, 60.0, 120.0] {
        let settings = Settings { to: 100.0, ..settings(100.0) };
        let server = Server { bearable: 0.08, ..Server::new(300.0, true) };
        let (answer, took) = search_within(seconds, 1, settings, server);
        assert_eq!((answer.low, answer.high), (Some(100.0), None), "{seconds} s: {answer:?}, {took} s");
        assert_eq!(answer.end, End::Highest, "{seconds} s: {took} s");
    }
}

#[test]
fn a_server_that_holds_nothing_has_no_capacity() {
    let broken = Server { slowness: 1e9, ..Server::new(1_000.0, true) };
    let (answer, seconds) = search(1, settings(1.0), broken);
    assert_eq!((answer.low, answer.end), (None, End::Lowest));
    assert!(seconds < 60.0, "{seconds} s");
}

/// A server that answers well up to some rate, and not at all beyond it, needs no estimate.
#[test]
fn a_cliff_is_found_soon() {
    let mut search = Search::new(settings(100.0));
    let mut units = 0.0;
    while let Some(trial) = search.next() {
        let slice = |marked| SliceCount { count: (trial.rate / 10.0) as u64, marked };
        let slices = vec![slice(0); 20 * trial.length as usize];
        let breaks = trial.rate > 12_345.0;
        let outcome = if breaks { Outcome::Overloaded } else { Outcome::Measured(vec![slices]) };
        units += f64::from(trial.length);
        search.note(&trial, 1.0, outcome);
    }
    let answer = search.answer(false);
    assert_eq!((answer.end, answer.confirmed), (End::Narrow, true));
    let (low, high) = (answer.low.unwrap(), answer.high.unwrap());
    assert!(low <= 12_345.0 && 12_345.0 < high && high / low <= 1.0501, "{answer:?}");
    assert!(units <= 50.0, "{units} units");
}

/// One condition is near its limit at all rates, the other one breaks: the capacity is that of the latter.
#[test]
fn the_first_condition_to_break_is_the_capacity() {
    let server = Server::new(1_000.0, false);
    let mut search = Search::new(Settings::new(100.0, vec![0.01, 0.05]));
    let mut queue = Queue::new(server, 3);
    while let Some(trial) = search.next() {
        let (carried_out, mut portions) = queue.carry_out(&search, &trial);
        portions.push(
            portions[0].iter().map(|slice| SliceCount { marked: slice.count / 50, ..*slice }).collect(),
        );
        search.note(&trial, carried_out, Outcome::Measured(portions));
    }
    let answer = search.answer(false);
    let (low, high) = (answer.low.unwrap(), answer.high.unwrap());
    assert!(answer.end == End::Narrow && (820.0..950.0).contains(&low) && high < 1_000.0, "{answer:?}");
}

/// Carries a search out against a generator that can put rates up to its own limit only.
fn with_a_generator(limit: f64) -> (Answer, Vec<Trial>) {
    let mut search = Search::new(settings(100.0));
    let mut queue = Queue::new(Server::new(1_000_000.0, true), 1);
    let mut trials = Vec::new();
    while let Some(trial) = search.next() {
        if trial.rate > limit {
            search.note(&trial, 1.0, Outcome::NotApplied);
        } else {
            let (carried_out, portions) = queue.carry_out(&search, &trial);
            search.note(&trial, carried_out, Outcome::Measured(portions));
        }
        trials.push(trial);
    }
    (search.answer(false), trials)
}

/// The generator's limit is not the server's: the upper end stays open.
#[test]
fn a_generator_at_its_limit_is_not_blamed_on_the_server() {
    let (answer, trials) = with_a_generator(1_000.0);
    assert_eq!((answer.high, answer.end), (None, End::Generator));
    assert!(answer.low.is_some_and(|low| (400.0..=1_000.0).contains(&low)), "{answer:?}");
    assert!(trials.len() < 15, "{trials:?}");
}

/// Symptom: 170 s and 45 trials until a search on a busy machine said that the generator was the limit.
#[test]
fn a_generator_that_cannot_is_told_after_three_trials_in_a_row() {
    let (answer, trials) = with_a_generator(99.0);
    assert_eq!((answer.low, answer.high, answer.end), (None, None, End::Generator));
    assert_eq!(trials.len(), 3);
    let (answer, trials) = with_a_generator(410.0);
    assert_eq!((answer.low, answer.end), (Some(400.0), End::Generator));
    assert_eq!(trials.len(), 5, "{trials:?}");
}

/// One accident of the generator's is forgotten when the rate is reached after all.
#[test]
fn a_single_accident_is_no_limit() {
    let server = Server::new(1_000.0, false);
    let mut search = Search::new(settings(100.0));
    let mut queue = Queue::new(server, 5);
    let mut trials = 0;
    while let Some(trial) = search.next() {
        trials += 1;
        if trials % 3 == 2 {
            search.note(&trial, 0.4, Outcome::NotApplied);
            continue;
        }
        let (carried_out, portions) = queue.carry_out(&search, &trial);
        search.note(&trial, carried_out, Outcome::Measured(portions));
    }
    let answer = search.answer(false);
    assert_eq!(answer.end, End::Narrow, "{answer:?}");
    assert!(answer.low.is_some_and(|low| (820.0..950.0).contains(&low)), "{answer:?}");
}

/// Symptom: a generator that was busy for three seconds kept a search below 400/s for all of its time.
#[test]
fn a_busy_generator_is_tried_again() {
    for accidents in [&[2][..], &[2, 3], &[1], &[3, 4], &[2, 9, 14]] {
        let server = Server::new(1_000.0, true);
        let (mut right, mut answers) = (0, Vec::new());
        for seed in 0..5 {
            let mut search = Search::new(settings(100.0));
            let mut queue = Queue::new(server, seed);
            let mut trials = 0;
            while let Some(trial) = search.next_within((120.0 - queue.now) / UNIT, 60.0) {
                trials += 1;
                if accidents.contains(&trials) {
                    queue.now += UNIT;
                    search.note(&trial, 0.5, Outcome::NotApplied);
                    continue;
                }
                let (carried_out, portions) = queue.carry_out(&search, &trial);
                search.note(&trial, carried_out, Outcome::Measured(portions));
            }
            let answer = search.answer(false);
            let (low, high) = (answer.low.unwrap_or(0.0), answer.high.unwrap_or(f64::INFINITY));
            assert!(low > 600.0 && high <= 1_600.0, "{accidents:?}: {answer:?}");
            right += usize::from(low <= server.capacity() && server.capacity() <= high);
            answers.push((low, high));
        }
        // Nineteen of twenty intervals hold the truth.
        assert!(right >= 4, "{accidents:?}: {answers:?}");
    }
}

/// Symptom: `capacity 800/s to 1,600/s` with the note that 2.4 % of the requests broke the objective at
/// 800/s, of which 1 % may.
#[test]
fn a_lower_end_that_its_own_trials_contradict_is_no_end() {
    for seconds in [15.0, 20.0, 25.0, 30.0] {
        for seed in 0..60 {
            let server = Server::new(1_000.0, true);
            let mut search = Search::new(settings(100.0));
            let mut queue = Queue::new(server, seed);
            while let Some(trial) = search.next_within((seconds - queue.now) / UNIT, seconds / UNIT) {
                let (carried_out, portions) = queue.carry_out(&search, &trial);
                search.note(&trial, carried_out, Outcome::Measured(portions));
            }
            let answer = search.answer(false);
            let level = answer.low.and_then(|low| search.levels().iter().find(|level| level.rate == low));
            let Some(level) = level else { continue };
            let sum = SliceCount::sum(&level.portions()[0]);
            assert!(
                answer.confirmed || sum.marked * 100 <= sum.count,
                "{seconds} s, seed {seed}: {sum:?}: {answer:?}"
            );
        }
    }
}

/// A lower end that does not hold when it is tried again is given up, or not called confirmed.
#[test]
fn what_is_not_confirmed_is_told() {
    let mut search = Search::new(settings(100.0));
    let slices = |marked| vec![vec![SliceCount { count: 1_000, marked }; 100]];
    let mut refused = 0;
    while let Some(trial) = search.next() {
        let wrong = trial.purpose == Purpose::Confirmation;
        refused += u32::from(wrong);
        let marked = if wrong {
            500
        } else if trial.rate > 1_000.0 {
            900
        } else {
            0
        };
        search.note(&trial, 1.0, Outcome::Measured(slices(marked)));
    }
    assert!((1..=2).contains(&refused));
    assert!(!search.answer(false).confirmed);
}

/// Symptom: a confirmation whose p99 was 110, 114 or 123 ms over an objective of 100 was one, since it did
/// not break the objective for certain.
#[test]
fn a_confirmation_that_contradicts_is_none() {
    let mut search = Search::new(settings(100.0));
    let mut contradicted = 0;
    while let Some(trial) = search.next() {
        let bad = match trial.purpose {
            // More than the hundredth that may be, and not for certain.
            Purpose::Confirmation => {
                contradicted += 1;
                [0, 0, 0, 0, 1, 12, 0, 0, 0, 0]
            }
            _ if trial.rate < 1_000.0 => [0; 10],
            _ => [900; 10],
        };
        let portions = vec![bad.map(|marked| SliceCount { count: 1_000, marked: marked * 10 }).to_vec()];
        search.note(&trial, 1.0, Outcome::Measured(portions));
        assert!(contradicted < 10, "it does not end");
    }
    let answer = search.answer(false);
    assert!(answer.low.is_some() && !answer.confirmed, "{answer:?}");
    assert_eq!(contradicted, 2);
}

#[test]
fn a_search_that_is_stopped_says_what_it_knows() {
    let server = Server::new(1_000.0, true);
    let mut search = Search::new(settings(100.0));
    let mut queue = Queue::new(server, 1);
    for _ in 0..5 {
        let trial = search.next().unwrap();
        let (carried_out, portions) = queue.carry_out(&search, &trial);
        search.note(&trial, carried_out, Outcome::Measured(portions));
    }
    let answer = search.answer(true);
    assert_eq!((answer.end, answer.confirmed), (End::Stopped, false));
    assert!(answer.low.is_some_and(|low| low < server.capacity()), "{answer:?}");
    assert!(answer.high.is_some_and(|high| high > server.capacity()), "{answer:?}");
}

/// A trial that was ended early weighs as much as there was of it.
#[test]
fn what_was_not_carried_out_of_a_trial_is_not_counted() {
    let slices = |marked| vec![vec![SliceCount { count: 100, marked }; 20]];
    let mut search = Search::new(settings(100.0));
    let first = search.next().unwrap();
    assert_eq!(search.note(&first, 1.0, Outcome::Measured(slices(0))), Finding::Holds);
    let second = search.next().unwrap();
    assert_eq!(search.note(&second, 0.4, Outcome::Measured(slices(50))), Finding::Breaks);
    let lengths: Vec<f64> = search.levels().iter().map(|level| level.length).collect();
    assert_eq!(lengths, [1.0, 0.4]);
}

/// A burst of bad samples ends a trial on the way, and one of the estimation only where nothing is good.
#[test]
fn a_burst_does_not_end_a_trial_of_the_estimation() {
    let search = Search::new(settings(100.0));
    let trial = |purpose| Trial { rate: 100.0, length: 5, scale: 1, after: None, purpose };
    let slices = |marked| vec![vec![SliceCount { count: 1_000, marked }; 20]];
    assert!(search.is_clear(&trial(Purpose::Ramp), &slices(100), 0.999));
    assert!(!search.is_clear(&trial(Purpose::Estimation), &slices(100), 0.999));
    assert!(search.is_clear(&trial(Purpose::Estimation), &slices(900), 0.999));
    assert!(!search.is_clear(&trial(Purpose::Ramp), &slices(10), 0.999));
}

/// Symptom: with `--at-least 400 --to 400` a search went on for 115 s after 400/s had broken twice in 6 s.
#[test]
fn a_rate_that_was_asked_for_is_answered_once_it_broke_twice() {
    let asked = |rate: f64| Settings { asked: Some(rate), to: rate, ..settings(100.0) };
    let server = Server { bearable: 0.03, ..Server::new(200.0, false) };
    for seed in 0..20 {
        let (search, took) = searched_within(120.0, seed, asked(400.0), server);
        let answer = search.answer(false);
        let tried: Vec<_> =
            search.levels().iter().map(|level| (level.rate, level.finding, level.length)).collect();
        assert_eq!(answer.end, End::Answered, "{answer:?}: {tried:?}");
        assert!(answer.high.is_some_and(|high| high <= 400.0) && took < 12.0, "{took} s: {answer:?}");
        // Without the question the capacity itself is looked for.
        let (answer, took) = search_within(120.0, seed, Settings { to: 400.0, ..settings(100.0) }, server);
        assert!(answer.end != End::Answered && took > 60.0, "{took} s: {answer:?}");
        // A rate that holds is the highest one that may be tried, as before.
        let (answer, took) = search_within(120.0, seed, asked(1_000.0), Server::new(10_000.0, false));
        assert_eq!((answer.low, answer.end), (Some(1_000.0), End::Highest), "{answer:?}");
        assert!(took < 40.0, "{took} s: {answer:?}");
    }
}

/// Symptom: of a capacity of 157 to 200/s the rows of 168, 183/s said "holds", and a rate at which 1.9 % of
/// the requests were too slow had an interval of 0 to 0.27 %, since it saw no burst of them.
#[test]
fn rates_above_the_lower_end_hold_only_if_they_were_shown_to() {
    let (mut held, mut unproven, mut wrong, mut wrong_before) = (0, 0, 0, 0);
    for (mu, poisson) in [(200.0, true), (300.0, true), (1_000.0, true), (300.0, false)] {
        let server = Server { bearable: 60.0 / 5.0 / mu, ..Server::new(mu, poisson) };
        for seed in 0..40 {
            let (search, _) = searched_within(60.0, seed, settings(100.0), server);
            let answer = search.answer(false);
            for level in search.levels().iter().filter(|level| level.finding == Finding::Holds) {
                let doubt = search.doubt(level, &answer);
                let is_above = answer.low.is_none_or(|low| low < level.rate);
                assert_eq!(doubt.is_some(), is_above, "{level:?}: {answer:?}");
                let is_wrong = level.rate > server.capacity();
                held += 1;
                wrong_before += usize::from(is_wrong);
                match doubt {
                    Some(doubt) if doubt.is_unproven() => unproven += 1,
                    _ => wrong += usize::from(is_wrong),
                }
            }
        }
    }
    println!("{held} held, {unproven} unproven, {wrong_before} beyond the capacity, {wrong} of these proven");
    assert!(unproven > 20 && wrong_before >= 10, "{held} {unproven} {wrong_before}");
    assert!(wrong * 5 <= wrong_before, "{wrong} of {wrong_before} that were beyond the capacity");
}

#[test]
fn a_rate_that_breaks_below_the_upper_end_says_why_it_is_not_that_end() {
    let mut search = Search::new(Settings { precision: 0.5, ..settings(100.0) });
    let half = |marked| Outcome::Measured(vec![vec![SliceCount { count: 100, marked }; 20]]);
    let trial = search.next().expect("the first");
    search.note(&trial, 1.0, half(50));
    let broken = search.levels()[0].clone();
    let answer =
        Answer { low: None, high: Some(200.0), confirmed: false, from_above: None, end: End::Unclear };
    assert_eq!(search.doubt(&broken, &answer), Some(Doubt::Outvoted));
    assert_eq!(search.doubt(&broken, &Answer { high: Some(100.0), ..answer.clone() }), None);
    let again = search.next().expect("once is no proof");
    assert_eq!(again.rate, 100.0);
    search.note(&again, 1.0, half(0));
    let level = &search.levels()[0];
    assert_eq!(level.finding, Finding::Breaks, "half of all requests were bad");
    assert_eq!(search.doubt(level, &answer), Some(Doubt::Disputed));
}

/// Symptom: iterations of four requests were tried four times as long as these take, so that a search
/// ended after 6 of its 45 seconds: the next trial did not fit.
#[test]
fn the_requests_of_an_iteration_count_and_time_that_is_left_is_used() {
    let of_four = Settings { samples: vec![4.0], ..settings(50.0) };
    assert_eq!((of_four.strictest(), settings(50.0).strictest()), (Some((0, 375.0)), Some((0, 1_500.0))));
    let several = Settings { limits: vec![0.01, 0.001, 0.2], samples: vec![1.0, 20.0], ..settings(50.0) };
    assert_eq!(several.strictest(), Some((0, 1_500.0)));
    let mut wrong = 0;
    for mu in [10.0, 20.0, 50.0] {
        for seed in 0..20 {
            let server = Server { bearable: 10.0 / mu, ..Server::new(mu, false) };
            let (answer, took) = search_within(45.0, seed, settings(100.0), server);
            assert!(took > 25.0 && took <= 45.0 + 1e-6, "{mu}/s: {took} s: {answer:?}");
            let (low, high) = (answer.low.unwrap_or(0.0), answer.high.unwrap_or(f64::INFINITY));
            wrong += usize::from(low > server.capacity() || high < server.capacity());
        }
    }
    assert!(wrong <= 6, "{wrong} of 60");
}
