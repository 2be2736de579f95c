//! Number of requests in an iteration.

use plimsoll_scenario::{Op, Template};

use crate::Plan;

/// Number of requests in the iterations of a plan, derived from its steps, loops and conditions; redirects
/// apart. Each bound is a fraction, requests per iterations, because scenarios have weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IterationLength {
    /// Lower bound: at least this many requests in this many iterations.
    pub least: (u64, u64),
    /// Upper bound, likewise; `None` if there is no limit.
    pub most: Option<(u64, u64)>,
    /// `true` if scenarios of different lengths take part, so that the bounds hold only on average.
    pub is_average: bool,
}

/// Requests of a part of a program: the fewest, and the most if there is a limit.
type Bounds = (u64, Option<u64>);

impl Plan {
    /// Returns the number of requests in an iteration. Where arrivals are requests, every iteration counts as
    /// one request, regardless of its length.
    pub fn iteration_length(&self) -> IterationLength {
        if self.paces_requests() {
            return IterationLength { least: (1, 1), most: Some((1, 1)), is_average: false };
        }
        let all = self.scenarios.iter().map(|scenario| {
            let ops = scenario.program.ops();
            (u64::from(scenario.weight), bounds(ops, 0, ops.len()))
        });
        let all: Vec<(u64, Bounds)> = all.collect();
        let iterations = all.iter().map(|(weight, _)| weight).sum::<u64>().max(1);
        let sum = |of: fn(&Bounds) -> Option<u64>| {
            let parts = all.iter().map(|(weight, bounds)| Some(of(bounds)?.saturating_mul(*weight)));
            parts.sum::<Option<u64>>().map(|requests| lowest(requests, iterations))
        };
        IterationLength {
            least: sum(|(least, _)| Some(*least)).unwrap_or((0, 1)),
            most: sum(|(_, most)| *most),
            is_average: all.windows(2).any(|pair| pair[0].1 != pair[1].1),
        }
    }
}

/// A fraction in lowest terms.
fn lowest(count: u64, of: u64) -> (u64, u64) {
    let (mut divisor, mut rest) = (count, of);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (count / divisor.max(1), of / divisor.max(1))
}

/// The requests of the instructions from `start` to `end`, which have the form that
/// [`compile`](crate::compile) gives to loops and conditions.
fn bounds(ops: &[Op], start: usize, end: usize) -> Bounds {
    let mut all: Bounds = (0, Some(0));
    let mut at = start;
    while at < end {
        let (part, next) = match &ops[at] {
            Op::Send(_) => ((1, Some(1)), at + 1),
            Op::Fork(steps) => ((steps.len() as u64, Some(steps.len() as u64)), at + 1),
            Op::Repeat { times, .. } => match ops.get(at + 1) {
                Some(Op::CountDown { end: behind, .. }) if *behind as usize > at + 2 => {
                    let behind = *behind as usize;
                    (repeated(bounds(ops, at + 2, behind - 1), literal(times)), behind)
                }
                _ => return (0, None),
            },
            Op::Unless(_, to) if *to as usize > at => {
                let to = *to as usize;
                match ops.get(to - 1) {
                    Some(Op::Jump(back)) if *back as usize == at => {
                        (repeated(bounds(ops, at + 1, to - 1), None), to)
                    }
                    Some(Op::Jump(behind)) if *behind as usize >= to => {
                        let behind = *behind as usize;
                        (either(bounds(ops, at + 1, to - 1), bounds(ops, to, behind)), behind)
                    }
                    _ => (either(bounds(ops, at + 1, to), (0, Some(0))), to),
                }
            }
            Op::Jump(_) | Op::Unless(..) | Op::CountDown { .. } => return (0, None),
            Op::Pause(_)
            | Op::Pace(_)
            | Op::ScriptPause(_)
            | Op::Set { .. }
            | Op::Record(_)
            | Op::Draw(_)
            | Op::Keep(_)
            | Op::Pick { .. }
            | Op::ClearCookies => ((0, Some(0)), at + 1),
        };
        all = (all.0.saturating_add(part.0), all.1.zip(part.1).map(|(a, b)| a.saturating_add(b)));
        at = next;
    }
    all
}

/// A loop with this number of turns, or an unknown one.
fn repeated((least, most): Bounds, times: Option<u64>) -> Bounds {
    match times {
        Some(times) => (least.saturating_mul(times), most.map(|most| most.saturating_mul(times))),
        None => (0, most.filter(|most| *most == 0)),
    }
}

fn either(one: Bounds, other: Bounds) -> Bounds {
    (one.0.min(other.0), one.1.zip(other.1).map(|(a, b)| a.max(b)))
}

/// The number that a template always renders to.
fn literal(times: &Template) -> Option<u64> {
    let text = times.is_static().then(|| times.literals())?;
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}
