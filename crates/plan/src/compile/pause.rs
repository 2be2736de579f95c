//! Think time.

use plimsoll_core::Nanos;
use plimsoll_document::{Field, PauseSpec, Problem, Text};
use plimsoll_scenario::{Op, Pause};
use plimsoll_schedule::parse_duration;

use super::Compiler;

impl Compiler<'_, '_> {
    /// Think time.
    pub(super) fn pause(&mut self, field: &Field<PauseSpec>) -> Option<Op> {
        let spec = field.get()?;
        let given = [
            !spec.fixed.is_absent(),
            !spec.uniform.is_empty(),
            !spec.exponential.is_absent(),
            !spec.pace.is_absent(),
        ];
        if given.into_iter().filter(|&given| given).count() != 1 {
            let problem =
                Problem::new("a think time is exactly one of `fixed`, `uniform`, `exponential`, `pace`");
            return self.form(
                field.place(),
                problem.with_hint("write `think: 100ms` or `think: {uniform: [1s, 3s]}`"),
            );
        }
        if let [low, high] = spec.uniform.as_slice() {
            let (low, high) = (self.duration(low), self.duration(high));
            let (low, high) = (low?, high?);
            if low > high {
                let problem = Problem::new("the shortest think time is longer than the longest");
                return self.fail(field.place(), problem.with_hint("write the shorter one first"));
            }
            return Some(Op::Pause(Pause::Uniform(low, high)));
        }
        if let Some(first) = spec.uniform.first() {
            let problem = Problem::new("`uniform` needs two durations");
            return self.form(first.place(), problem.with_hint("write `uniform: [1s, 3s]`"));
        }
        if !spec.pace.is_absent() {
            return self.duration(&spec.pace).map(Op::Pace);
        }
        let pause = match spec.fixed.is_absent() {
            false => self.duration(&spec.fixed).map(Pause::Fixed),
            true => self.duration(&spec.exponential).map(Pause::Exponential),
        };
        pause.map(Op::Pause)
    }

    fn duration(&mut self, field: &Field<Text>) -> Option<Nanos> {
        self.read(field, parse_duration)?
    }
}
