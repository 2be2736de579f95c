//! Schedules against definitions that are computed in another way.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod changes;
mod passing;
mod poisson;
mod ramps;
mod uniform;

use plimsoll_core::{Arrival, Nanos, Rate, Shard};
use plimsoll_schedule::{Arrivals, Process, Profile, Stage};

fn stage(duration: Nanos, from: Rate, to: Rate) -> Stage {
    Stage { duration, from, to }
}

fn hold(duration: Nanos, rate: Rate) -> Stage {
    stage(duration, rate, rate)
}

fn arrivals(profile: &Profile, process: Process, seed: u64, index: u32, of: u32) -> Arrivals {
    Arrivals::new(profile, process, seed, Shard { index, of })
}

fn uniform(profile: &Profile) -> Arrivals {
    arrivals(profile, Process::Uniform, 0, 0, 1)
}

/// The arrivals of all shards, in the order of their indices.
fn union(profile: &Profile, process: Process, seed: u64, of: u32) -> Vec<Arrival> {
    let mut all: Vec<Arrival> =
        (0..of).flat_map(|index| arrivals(profile, process, seed, index, of)).collect();
    all.sort_unstable_by_key(|arrival| arrival.index);
    all
}
