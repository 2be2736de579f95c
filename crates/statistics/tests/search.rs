//! The capacity search against servers whose capacity is known exactly.

use plimsoll_core::Random;
use plimsoll_statistics::{Answer, End, Finding, Outcome, Purpose, Search, Settings, SliceCount, Trial};

/// Mean service rate of the servers, per second.
const MU: f64 = 1_000.0;
/// Length of the shortest trial in seconds.
const UNIT: f64 = 20.0;
/// Length of a slice in seconds.
const SLICE: f64 = 1.0;
/// What is asked for: fewer than 1 % of the responses take longer than so many seconds.
const BEARABLE: f64 = 0.025;
/// The rate at which the 99th percentile of M/M/1 is that long: `mu - ln(100) / t` (the sojourn time is
/// exponential with the rate `mu - lambda`).
const CAPACITY: f64 = 815.793;

/// One server, one first-come-first-served queue, exponential service times, Poisson arrivals, by Lindley's
/// recursion: a request waits for what its predecessor left.
struct Queue {
    random: Random,
    now: f64,
    /// When the server has worked off all that has come.
    free: f64,
    /// Factor on service times while the server is overloaded or has been, for servers that do not recover.
    slowness: f64,
    /// Backlog in seconds from which it is slow.
    gets_slow: f64,
}

impl Queue {
    fn new(seed: u64, stream: u64) -> Self {
        let random = Random::new(seed, stream);
        Self { random, now: 0.0, free: 0.0, slowness: 1.0, gets_slow: f64::INFINITY }
    }

    /// Load at a rate for a time; counts requests slower than bearable by slices.
    fn load(&mut self, rate: f64, seconds: f64) -> Vec<SliceCount> {
        let begin = self.now;
        let mut slices = vec![SliceCount::default(); (seconds / SLICE).ceil() as usize];
        loop {
            self.now += self.random.exponential(1.0 / rate);
            let at = self.now - begin;
            if at >= seconds {
                self.now = begin + seconds;
                return slices;
            }
            if self.free - self.now > self.gets_slow {
                self.slowness = 1.5;
            }
            self.free = self.free.max(self.now) + self.random.exponential(self.slowness / MU);
            let slice = &mut slices[(at / SLICE) as usize];
            slice.count += 1;
            slice.marked += u64::from(self.free - self.now > BEARABLE);
        }
    }

    fn carry_out(&mut self, trial: &Trial) -> Vec<SliceCount> {
        if let Some(before) = trial.after {
            self.load(before, UNIT);
        }
        self.load(trial.rate, UNIT);
        self.load(trial.rate, UNIT * f64::from(trial.length))
    }
}

/// Carries a search out on a fresh queue for every trial.
fn search(seed: u64, settings: Settings, server: impl Fn(Queue) -> Queue) -> Answer {
    let mut search = Search::new(settings);
    for trials in 0..200 {
        let Some(trial) = search.next() else { return search.answer(false) };
        let mut queue = server(Queue::new(seed, trials));
        search.note(&trial, 1.0, Outcome::Measured(vec![queue.carry_out(&trial)]));
    }
    panic!("it does not end: {:?}", search.levels());
}

/// Settings for conditions of one percentile, with trials as long as the virtual time of these tests allows.
fn settings(from: f64) -> Settings {
    Settings { longest: 64, ..Settings::new(from, vec![0.01]) }
}

/// R18: the answer holds the true capacity in at least nine of ten searches, and is at most 5 % wide.
#[test]
fn the_capacity_of_a_queue_is_found() {
    const SEEDS: u64 = 30;
    let (mut right, mut narrow, mut confirmed) = (0, 0, 0);
    for seed in 0..SEEDS {
        // Another begin for each, so that the rates that are tried lie differently about the truth.
        let from = 60.0 + 60.0 * Random::new(seed, u64::MAX).unit();
        let answer = search(seed, settings(from), |queue| queue);
        let (low, high) = (answer.low.unwrap(), answer.high.unwrap());
        right += u64::from(low <= CAPACITY && CAPACITY <= high);
        narrow += u64::from(high / low - 1.0 <= 0.05);
        confirmed += u64::from(answer.confirmed && answer.from_above.is_some());
    }
    assert!(right * 10 >= SEEDS * 9, "{right} of {SEEDS} intervals hold the capacity");
    assert!(narrow * 10 >= SEEDS * 9, "{narrow} of {SEEDS} intervals are narrow enough");
    assert!(confirmed * 10 >= SEEDS * 9, "{confirmed} of {SEEDS} were confirmed, also from above");
}

/// A server that an overload makes slower for good holds less after it than before.
#[test]
fn a_server_that_does_not_recover_is_seen_from_above() {
    let slow = |queue| Queue { gets_slow: 0.2, ..queue };
    let answer = search(1, settings(100.0), slow);
    let (low, high) = (answer.low.unwrap(), answer.high.unwrap());
    assert!((700.0..CAPACITY).contains(&low) && high < 900.0, "{answer:?}");
    assert!(answer.confirmed);
    // It then serves 667 requests per second: none of the rates near its capacity.
    assert_eq!(answer.from_above, None);
}

#[test]
fn a_limit_that_is_never_reached_is_a_lower_bound() {
    let answer = search(1, Settings { to: 400.0, ..settings(150.0) }, |queue| queue);
    assert_eq!((answer.low, answer.high, answer.end), (Some(400.0), None, End::Highest));
    assert!(answer.confirmed);
}

#[test]
fn a_server_that_holds_nothing_has_no_capacity() {
    let broken = |queue| Queue { slowness: 1e9, ..queue };
    let answer = search(1, settings(1.0), broken);
    assert_eq!((answer.low, answer.end), (None, End::Lowest));
}

/// The generator's limit is not the server's: the upper end stays open.
#[test]
fn a_generator_at_its_limit_is_not_blamed_on_the_server() {
    let mut search = Search::new(settings(100.0));
    for stream in 0..100 {
        let Some(trial) = search.next() else { break };
        let outcome = match trial.rate {
            rate if rate > 500.0 => Outcome::NotApplied,
            _ => Outcome::Measured(vec![Queue::new(1, stream).carry_out(&trial)]),
        };
        search.note(&trial, 1.0, outcome);
    }
    let answer = search.answer(false);
    assert_eq!((answer.high, answer.end), (None, End::Generator));
    assert!(answer.low.is_some_and(|low| (475.0..=500.0).contains(&low)), "{answer:?}");
}

/// A lower end that does not hold for longer is given up.
#[test]
fn what_is_not_confirmed_is_no_answer() {
    let mut search = Search::new(settings(100.0));
    let good = vec![SliceCount { count: 1_000, marked: 0 }; 20];
    let bad = vec![SliceCount { count: 1_000, marked: 500 }; 20];
    let mut refused = 0;
    for _ in 0..100 {
        let Some(trial) = search.next() else { break };
        let wrong = trial.purpose == Purpose::Confirmation && trial.rate > 700.0;
        refused += u32::from(wrong);
        let portions = if wrong || trial.rate > 1_000.0 { &bad } else { &good };
        search.note(&trial, 1.0, Outcome::Measured(vec![portions.clone()]));
    }
    let answer = search.answer(false);
    assert!(refused > 0);
    assert!(answer.confirmed && answer.low.is_some_and(|low| low <= 700.0), "{answer:?}");
}

#[test]
fn a_search_that_is_stopped_says_what_it_knows() {
    let mut search = Search::new(settings(100.0));
    for stream in 0..5 {
        let trial = search.next().unwrap();
        search.note(&trial, 1.0, Outcome::Measured(vec![Queue::new(1, stream).carry_out(&trial)]));
    }
    let answer = search.answer(true);
    assert_eq!((answer.end, answer.confirmed), (End::Stopped, false));
    assert!(answer.low.is_some_and(|low| low < CAPACITY));
}

/// A trial that was ended early weighs as much as there was of it: its rate may be tried as much longer.
#[test]
fn what_was_not_carried_out_of_a_trial_is_not_counted() {
    let slices = |marked| vec![vec![SliceCount { count: 100, marked }; 20]];
    let tried = |carried_out: f64| {
        let mut search = Search::new(settings(100.0));
        let first = search.next().unwrap();
        assert_eq!(search.note(&first, 1.0, Outcome::Measured(slices(0))), Finding::Holds);
        let second = search.next().unwrap();
        assert_eq!(search.note(&second, 1.0, Outcome::Measured(slices(50))), Finding::Breaks);
        // Neither is shown of the rate between them, however often it is tried.
        let mut trials = 0;
        loop {
            let trial = search.next().unwrap();
            let middle = trial.rate;
            let finding = search.note(&trial, carried_out, Outcome::Measured(slices(1)));
            assert_eq!(finding, Finding::Unclear);
            trials += 1;
            let level = search.levels().iter().find(|level| level.rate == middle).unwrap();
            if search.next().is_none_or(|next| next.rate != middle) {
                return (trials, level.length);
            }
        }
    };
    let (whole, length) = tried(1.0);
    assert_eq!((whole, length), (7, 64.0));
    let (early, length) = tried(0.4);
    assert!(early > whole && (64.0..66.0).contains(&length), "{early} trials, {length} units");
}
