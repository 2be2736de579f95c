//! Interleaved comparisons, in simulation: looked at after every second, they err as seldom as they claim,
//! and find what runs by turns do not.
//!
//! `PLIMSOLL_SEQUENTIAL_RUNS=1000` makes as many runs of each kind as docs/statistics.md states.

use plimsoll_core::Random;
use plimsoll_statistics::rank::rank_test;
use plimsoll_statistics::sequential::{Block, Counts, Figure, SequentialComparison, Side};

/// Blocks of a second.
const BLOCKS: usize = 4;
/// All figures of a run together are wrong in this share of the runs at most.
const ALPHA: f64 = 0.05;
const FIGURES: [Figure; 3] = [Figure::Quantile(0.5), Figure::Quantile(0.99), Figure::Errors];

fn runs(of_ci: u64) -> u64 {
    let asked = std::env::var("PLIMSOLL_SEQUENTIAL_RUNS");
    asked.ok().and_then(|runs| runs.parse().ok()).unwrap_or(of_ci)
}

/// Times in seconds of one target in a block, a number of failures beside them.
fn side(times: &[f64], failed: u64) -> Side {
    // Ranges of 1/512 at most, as the sub-buckets of a histogram.
    let low = |time: u64| time - time % (1 << (time.max(1_024).ilog2() - 9));
    let mut values: Vec<u64> = times.iter().map(|seconds| (seconds * 1e9) as u64).collect();
    values.sort_unstable();
    let range = |bin: &[u64]| {
        let low = low(bin[0]);
        (low, low + (1 << (low.max(1_024).ilog2() - 9)), bin.len() as u64)
    };
    let counts = Counts::new(values.chunk_by(|a, b| low(*a) == low(*b)).map(range));
    Side { times: counts, sum: times.iter().sum::<f64>() * 1e9, ok: times.len() as u64, failed }
}

/// A target: from the time since the start to the time that a response takes.
trait Target {
    fn serve(&mut self, now: f64, random: &mut Random) -> f64;
}

/// A queue with one server, of exponential service: responses depend on those before them.
#[derive(Default)]
struct Queue {
    /// Mean service time in seconds.
    service: f64,
    free_at: f64,
}

impl Target for Queue {
    fn serve(&mut self, now: f64, random: &mut Random) -> f64 {
        self.free_at = self.free_at.max(now) + random.exponential(self.service);
        self.free_at - now
    }
}

/// Independent log-normal times around 10 ms that grow by a share in a minute.
struct Drifting {
    factor: f64,
    deviation: f64,
    in_a_minute: f64,
}

impl Target for Drifting {
    fn serve(&mut self, now: f64, random: &mut Random) -> f64 {
        let drift = 1.0 + self.in_a_minute * now / 60.0;
        0.010 * self.factor * drift * (self.deviation * random.normal()).exp()
    }
}

/// Log-normal times around 10 ms whose level wanders by 5 %, for itself: its logarithm is an
/// Ornstein–Uhlenbeck process.
struct Wandering {
    /// Time in seconds for which the level remembers itself.
    memory: f64,
    level: f64,
    seen: f64,
}

impl Target for Wandering {
    fn serve(&mut self, now: f64, random: &mut Random) -> f64 {
        let kept = (-(now - self.seen) / self.memory).exp();
        self.level = kept * self.level + 0.05 * (1.0 - kept * kept).sqrt() * random.normal();
        self.seen = now;
        0.010 * (self.level + 0.3 * random.normal()).exp()
    }
}

/// A comparison under way.
struct Run<A, B> {
    targets: (A, B),
    /// Arrivals per second of both targets together.
    rate: f64,
    /// Share of requests that fail.
    errors: f64,
    random: Random,
    now: f64,
    comparison: SequentialComparison,
}

impl<A: Target, B: Target> Run<A, B> {
    fn new(seed: u64, rate: f64, targets: (A, B)) -> Self {
        let (random, comparison) = (Random::new(seed, 17), SequentialComparison::new());
        Self { targets, rate, errors: 0.0, random, now: 0.0, comparison }
    }

    /// Another second of it: Poisson arrivals, each pair of them dealt by a coin.
    fn second(&mut self) {
        for _ in 0..BLOCKS {
            let end = ((self.now * BLOCKS as f64).floor() + 1.0) / BLOCKS as f64;
            let (mut times, mut failed) = ([Vec::new(), Vec::new()], [0, 0]);
            while self.now < end {
                let first = self.random.bits() % 2;
                for turn in [first, 1 - first] {
                    self.now += self.random.exponential(1.0 / self.rate);
                    let time = match turn {
                        0 => self.targets.0.serve(self.now, &mut self.random),
                        _ => self.targets.1.serve(self.now, &mut self.random),
                    };
                    match self.random.unit() < self.errors {
                        true => failed[turn as usize] += 1,
                        false => times[turn as usize].push(time),
                    }
                }
            }
            let [a, b] = [0, 1].map(|number: usize| side(&times[number], failed[number]));
            self.comparison.add(Block { a, b });
        }
    }

    /// Looks after every second if a change by `truth` is excluded in any figure. Returns the first second in
    /// which one is.
    fn first_miss(&mut self, seconds: u64, truth: f64) -> Option<u64> {
        (1..=seconds).find(|_| {
            self.second();
            FIGURES.iter().any(|&figure| {
                let truth = if figure == Figure::Errors { 0.0 } else { truth };
                self.comparison.excludes(figure, truth, ALPHA / FIGURES.len() as f64)
            })
        })
    }
}

/// The number of runs, with seeds of their own, in which a figure excluded the truth at any look.
fn misses<A: Target, B: Target>(runs: u64, truth: f64, begin: impl Fn(u64) -> Run<A, B>) -> u64 {
    (0..runs).filter(|&seed| begin(seed).first_miss(60, truth).is_some()).count() as u64
}

fn drifting(factor: f64, in_a_minute: f64) -> Drifting {
    Drifting { factor, deviation: 0.3, in_a_minute }
}

#[track_caller]
#[allow(clippy::print_stdout, reason = "the figures are stated in docs/statistics.md")]
fn at_most_five_percent(what: &str, misses: u64, runs: u64) {
    println!("{what}: {misses} of {runs} runs");
    // Of few runs, more may be wrong by chance: three standard deviations of 5 %.
    let allowed = 0.05 * runs as f64 + 3.0 * (0.05 * 0.95 * runs as f64).sqrt();
    assert!(
        (misses as f64) <= if runs >= 1_000 { 0.05 * runs as f64 } else { allowed },
        "{what}: {misses} of {runs}"
    );
}

#[test]
fn like_queues_are_not_called_different_at_any_look() {
    let runs = runs(20);
    let queue = || Queue { service: 0.002, free_at: 0.0 };
    // Each target is busy for 80 %.
    let found = misses(runs, 0.0, |seed| Run::new(seed, 800.0, (queue(), queue())));
    at_most_five_percent("like queues at 80 %, false alarms", found, runs);
}

#[test]
fn like_targets_with_errors_and_drift_are_not_called_different_at_any_look() {
    let runs = runs(20);
    let begin =
        |seed| Run { errors: 0.01, ..Run::new(seed, 800.0, (drifting(1.0, 0.2), drifting(1.0, 0.2))) };
    at_most_five_percent("like targets that drift, false alarms", misses(runs, 0.0, begin), runs);
}

#[test]
fn like_targets_that_wander_are_seldom_called_different_while_they_forget_soon() {
    let runs = runs(20);
    // A level that lasts for a fifteenth of the run is more than the blocks can tell: its share is stated.
    for (memory, most) in [(0.25, 0.05), (1.0, 0.05), (4.0, 0.25)] {
        let target = || Wandering { memory, level: 0.0, seen: 0.0 };
        let found = misses(runs, 0.0, |seed| Run::new(seed, 800.0, (target(), target())));
        println!("like targets that wander, memory {memory} s, false alarms: {found} of {runs} runs");
        let allowed = most * runs as f64 + 3.0 * (most * (1.0 - most) * runs as f64).sqrt();
        assert!(found as f64 <= allowed, "memory {memory} s: {found} of {runs}");
    }
}

#[test]
fn the_interval_holds_a_true_change_at_every_look() {
    let runs = runs(20);
    let begin = |seed| Run::new(seed, 800.0, (drifting(1.0, 0.2), drifting(1.05, 0.2)));
    at_most_five_percent("5 % slower under drift, missed by an interval", misses(runs, 0.05, begin), runs);
}

/// The second at which a figure is first known to have changed, within two minutes.
fn found_after(figure: Figure, mut run: Run<Drifting, Drifting>) -> Option<u64> {
    (1..=120).find(|_| {
        run.second();
        run.comparison.excludes(figure, 0.0, ALPHA / FIGURES.len() as f64)
    })
}

#[test]
fn a_shift_of_three_percent_under_a_drift_of_twenty_is_found_where_runs_by_turns_do_not() {
    let runs = runs(10);
    let mut found = [Vec::new(), Vec::new()];
    let mut by_turns = 0;
    for seed in 0..runs {
        for (figure, found) in FIGURES.iter().zip(&mut found) {
            let run = Run::new(seed, 2_000.0, (drifting(1.0, 0.2), drifting(1.03, 0.2)));
            found.extend(found_after(*figure, run));
        }
        // The same two minutes as ten runs of 12 s, by turns: A B B A A B B A A B.
        let random = &mut Random::new(seed, 18);
        let mut p99 = [Vec::new(), Vec::new()];
        for number in 0..10_u32 {
            let is_b = matches!(number % 4, 1 | 2);
            let mut target = drifting(if is_b { 1.03 } else { 1.0 }, 0.2);
            let begin = f64::from(number) * 12.0;
            let mut times: Vec<f64> =
                (0..24_000).map(|at| target.serve(begin + f64::from(at) / 2_000.0, random)).collect();
            times.sort_unstable_by(f64::total_cmp);
            p99[usize::from(is_b)].push(times[times.len() * 99 / 100]);
        }
        let [a, b] = &p99;
        by_turns += u64::from(rank_test(a, b).is_some_and(|test| test.p <= ALPHA));
    }
    for (figure, found) in FIGURES.iter().zip(&mut found) {
        found.sort_unstable();
        let at = |share: usize| found.get(found.len() * share / 10);
        println!(
            "3 % under drift, {figure:?}: found in {} of {runs} runs, half after {:?} s, nine in ten after {:?} s",
            found.len(),
            at(5),
            at(9)
        );
        assert!(found.len() as u64 * 100 >= 85 * runs, "{figure:?}: {} of {runs}", found.len());
    }
    println!("by turns: found in {by_turns} of {runs} runs");
    assert!(by_turns * 10 <= runs, "{by_turns} of {runs}");
}

/// Symptom: of two targets of which one broke halfway, the difference of errors was [-100, +100] points: one
/// lasting change counted as noise between blocks. Which requests are whose is dealt at random, whatever
/// happens when.
#[test]
fn a_side_that_breaks_halfway_is_told_by_the_dealing() {
    let block = |failed: u64| Block {
        a: Side { ok: 37, ..Side::default() },
        b: Side { ok: 37 - failed, failed, ..Side::default() },
    };
    let of = |comparison: SequentialComparison| {
        let mut comparison = comparison;
        (0..120).for_each(|number| comparison.add(block(if number < 60 { 0 } else { 37 })));
        comparison.change(Figure::Errors, 0.05 / 3.0).expect("an interval")
    };
    let by_blocks = of(SequentialComparison::new());
    assert!(by_blocks.low < 0.0, "{by_blocks:?}");
    let dealt = of(SequentialComparison::new().dealing(1));
    assert_eq!(dealt.estimate, 0.5);
    assert!(dealt.low > 0.4 && dealt.high < 0.6, "{dealt:?}");
    // Iterations of nine requests are fewer dealings.
    let together = of(SequentialComparison::new().dealing(9));
    assert!(together.low < dealt.low && together.low > 0.25, "{together:?}");
}

/// Targets that fail together, for half of the run, are not called different: at no look of 400 runs in more
/// than the share that was asked for.
#[test]
fn targets_that_fail_together_do_not_differ() {
    let mut alarms = 0;
    for seed in 0..400 {
        let mut random = Random::new(seed, 0);
        let mut comparison = SequentialComparison::new().dealing(1);
        let mut is_alarm = false;
        for number in 0..120_u64 {
            let mut block = Block::default();
            for _ in 0..20 {
                // A pair of arrivals, of which one is A's; each fails by its time, whoever has it.
                let chance = if number % 40 < 20 { 0.9 } else { 0.02 };
                for side in [&mut block.a, &mut block.b] {
                    let fails = random.unit() < chance;
                    side.ok += u64::from(!fails);
                    side.failed += u64::from(fails);
                }
            }
            comparison.add(block);
            if number >= 39 {
                is_alarm |= comparison.excludes(Figure::Errors, 0.0, 0.05);
            }
        }
        alarms += usize::from(is_alarm);
    }
    assert!(alarms <= 20, "{alarms} of 400");
}
