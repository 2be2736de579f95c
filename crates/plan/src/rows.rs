//! Rows of data that the arrivals of a plan take, and those that there are.

use plimsoll_core::{Nanos, Shard, figure};
use plimsoll_scenario::{AtEnd, FeedSpec, Op, Order, Per, Share};
use plimsoll_schedule::{Arrivals, Process};

use crate::{Load, Plan};

impl Plan {
    /// Returns a sentence for each data source that has fewer rows than the arrivals of this plan take, where
    /// rows are not given out again. Files are read up to the number of rows that is needed; one that cannot
    /// be read is passed over.
    pub fn lacking_rows(&self) -> Vec<String> {
        (0..).zip(&self.feeds).filter_map(|(number, feed)| self.lacking_rows_of(number, feed)).collect()
    }

    fn lacking_rows_of(&self, number: u16, feed: &FeedSpec) -> Option<String> {
        if feed.at_end == AtEnd::Wrap || feed.order == Order::Random || feed.per == Per::User {
            return None;
        }
        let needed = self.rows_taken(number)?;
        // Each worker, of all machines, has its part of the rows, or all of them.
        let copies = match feed.share {
            Share::Split => 1,
            Share::Whole => u64::from(self.worker_shard(0).of.max(1)),
        };
        let rows = feed.count_up_to(needed.div_ceil(copies)).ok()?;
        if rows.saturating_mul(copies) >= needed {
            return None;
        }
        let end = match feed.at_end {
            AtEnd::Fail => "iterations fail when they have ended",
            AtEnd::Stop | AtEnd::Wrap => "no more are started when they have ended",
        };
        let each = if copies > 1 { " for each thread" } else { "" };
        Some(format!(
            "data `{}` has {} row{}{each}, and {} arrivals take one each: {end}; more rows, or \
             `at_end: wrap`, would do",
            feed.name,
            figure::count(rows),
            if rows == 1 { "" } else { "s" },
            figure::count(needed),
        ))
    }

    /// Rows of a data source that the arrivals of the whole load take, warm-up included; `None` if that
    /// depends on the course of the run.
    fn rows_taken(&self, feed: u16) -> Option<u64> {
        let Load::Open { profile, .. } = &self.load else { return None };
        let takes = |ops: &[Op]| ops.iter().any(|op| matches!(op, Op::Draw(drawn) if *drawn == feed));
        let (mut taking, mut all) = (0, 0);
        for scenario in &self.scenarios {
            all += u64::from(scenario.weight);
            taking += if takes(scenario.program.ops()) { u64::from(scenario.weight) } else { 0 };
        }
        let are_dealt_alike =
            taking == all || self.scenarios.iter().all(|one| one.start_after == Nanos::ZERO);
        if self.paces_requests() || !are_dealt_alike {
            return None;
        }
        let arrivals = Arrivals::new(profile, Process::Uniform, self.seed, Shard::WHOLE);
        let before = |at: Nanos| arrivals.count_before(at);
        let (first, measured) = (self.first_joining(), self.warmup.max(self.first_joining()));
        let due = before(profile.duration()).saturating_sub(before(measured));
        let due = self.end.iterations.map_or(due, |iterations| due.min(iterations));
        let due = due + before(measured).saturating_sub(before(first));
        Some((u128::from(due) * u128::from(taking) / u128::from(all.max(1))) as u64)
    }
}
