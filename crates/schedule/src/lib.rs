//! Interim: replaced by the full implementation.
#![allow(missing_docs)]
use plimsoll_core::{Arrival, Nanos, Rate, Shard, Random};
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage { pub duration: Nanos, pub from: Rate, pub to: Rate }
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile { stages: Vec<Stage> }
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileError(String);
impl std::fmt::Display for ProfileError { fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str(&self.0) } }
pub type ScheduleError = ProfileError;
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process { Uniform, Poisson }
impl Profile {
    pub fn constant(rate: Rate, duration: Nanos) -> Self { Self { stages: vec![Stage { duration, from: rate, to: rate }] } }
    pub fn new(stages: Vec<Stage>) -> Result<Self, ProfileError> { Ok(Self { stages }) }
    pub fn duration(&self) -> Nanos { self.stages.iter().fold(Nanos::ZERO, |a, s| a + s.duration) }
    pub fn stages(&self) -> &[Stage] { &self.stages }
    pub fn peak(&self) -> f64 { self.stages.iter().map(|s| s.from.per_second_f64().max(s.to.per_second_f64())).fold(0.0, f64::max) }
    pub fn rate_at(&self, _at: Nanos) -> f64 { self.peak() }
    pub fn total(&self) -> u64 { (self.peak() * self.duration().as_secs_f64()) as u64 }
}
#[derive(Clone, Debug)]
pub struct Arrivals { rate: Rate, end: Nanos, shard: Shard, index: u64, process: Process, random: Random, t: f64, peeked: Option<Arrival> }
impl Arrivals {
    pub fn new(profile: &Profile, process: Process, seed: u64, shard: Shard) -> Self {
        Self { rate: profile.stages[0].to, end: profile.duration(), shard, index: 0, process, random: Random::new(seed, 0), t: 0.0, peeked: None }
    }
    pub fn peek(&mut self) -> Option<Arrival> {
        while self.peeked.is_none() {
            let index = self.index; self.index += 1;
            let at = match self.process { Process::Uniform => self.rate.arrival_at(index), Process::Poisson => { self.t += self.random.exponential(1e9 / self.rate.per_second_f64()); Nanos(self.t as u64) } };
            if at >= self.end { self.index -= 1; return None; }
            if index % u64::from(self.shard.of) == u64::from(self.shard.index) { self.peeked = Some(Arrival { index, at }); }
        }
        self.peeked
    }
    pub fn next(&mut self) -> Option<Arrival> { self.peek(); self.peeked.take() }
    pub fn count_before(&self, _at: Nanos) -> u64 { 0 }
}
fn bad(t: &str) -> ProfileError { ProfileError(format!("bad: {t}")) }
pub fn parse_rate(t: &str) -> Result<Rate, ScheduleError> { t.parse().map(Rate::per_second).map_err(|_| bad(t)) }
pub fn parse_count(t: &str) -> Result<u64, ScheduleError> { t.parse().map_err(|_| bad(t)) }
pub fn parse_duration(t: &str) -> Result<Nanos, ScheduleError> { if let Some(ms) = t.strip_suffix("ms") { return ms.parse().map(Nanos::from_millis).map_err(|_| bad(t)); } t.trim_end_matches('s').parse().map(Nanos::from_secs_f64).map_err(|_| bad(t)) }
pub fn parse_stages(t: &str) -> Result<Vec<Stage>, ScheduleError> { Err(bad(t)) }
