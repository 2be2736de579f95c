//! The part of a load that one of several machines carries out, and the instant at which all begin.

use std::time::UNIX_EPOCH;

use plimsoll_core::{Nanos, Shard};

use crate::PlanPatch;
use crate::resolve::Resolver;

/// Shards of a load at most: as many machines.
const MOST_SHARDS: u32 = 100_000;

/// Value for a start that is set while the process waits for it.
const ON_COMMAND: &str = "command";

/// When the load of a run begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartTime {
    /// As soon as everything is ready.
    #[default]
    WhenReady,
    /// At an instant in Unix time, by the clock of the machine.
    At(Nanos),
    /// At an instant that is set once everything is ready.
    OnCommand,
}

/// The part of a load, and when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sharding {
    /// The first of its shards, and how many there are.
    pub(crate) shard: Shard,
    pub(crate) held: u32,
    pub(crate) start: StartTime,
}

impl Resolver<'_> {
    /// Reads which part of the load is to be carried out, and when.
    pub(crate) fn sharding(&mut self, patch: &PlanPatch) -> Option<Sharding> {
        let shard = self.read(patch.shard.as_ref(), parse_shard);
        let start = self.read(patch.start_at.as_ref(), parse_start);
        let (shard, start) = (shard?, start?.unwrap_or_default());
        if let (Some(given), None) = (&patch.shard, &patch.seed) {
            let problem = given.problem(format!("{}: the shards of a load need the same seed", given.by));
            return self.fail(problem.with_hint("give all of them one, such as `--seed 1`"));
        }
        let around = self.document.as_deref().map(|loaded| &loaded.document);
        let around =
            around.is_some_and(|document| !(document.setup.is_empty() && document.teardown.is_empty()));
        if let (Some(given), true, false) = (&patch.shard, around, patch.is_set_up_elsewhere) {
            let message = format!("{}: each shard would carry out `setup` and `teardown`", given.by);
            let hint = "they are carried out once per run; do it beside the shards, and hand values to them in \
                        the environment";
            return self.fail(given.problem(message).with_hint(hint));
        }
        let (shard, held) = shard.unwrap_or((Shard::WHOLE, 1));
        Some(Sharding { shard, held, start })
    }
}

/// `2/3`, the second of three; or `2-4/7`, three of seven. The first of them, and how many they are.
fn parse_shard(text: &str) -> Result<(Shard, u32), String> {
    let wrong =
        || format!("`{text}` is not a shard: write 2/3 for the second of three, or 2-3/3 for both others");
    let (numbers, of) = text.split_once('/').ok_or_else(wrong)?;
    let (number, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
    let whole = |text: &str| text.trim().parse::<u32>().map_err(|_| wrong());
    let (number, last, of) = (whole(number)?, whole(last)?, whole(of)?);
    if last < number {
        return Err(wrong());
    }
    if of > MOST_SHARDS {
        return Err(format!("there are at most {MOST_SHARDS} shards"));
    }
    if let Some(number) = [number, last].into_iter().find(|number| !(1..=of).contains(number)) {
        return Err(format!("there is no shard {number} of {of}: they are 1/{of} to {of}/{of}"));
    }
    Ok((Shard { index: number - 1, of }, last - number + 1))
}

/// An instant, or the word for one that is set later.
fn parse_start(text: &str) -> Result<StartTime, String> {
    if text == ON_COMMAND {
        return Ok(StartTime::OnCommand);
    }
    parse_instant(text).map(StartTime::At)
}

/// An instant as RFC 3339 writes it, in UTC.
fn parse_instant(text: &str) -> Result<Nanos, String> {
    let time = humantime::parse_rfc3339_weak(text).ok();
    let since = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.and_then(|since| u64::try_from(since.as_nanos()).ok()).map(Nanos).ok_or_else(|| {
        format!(
            "`{text}` is not an instant: write 2026-03-01T12:00:00Z (UTC), at least some seconds from \
             now"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_counted_from_one() {
        assert_eq!(parse_shard("1/1"), Ok((Shard::WHOLE, 1)));
        assert_eq!(parse_shard("2/3"), Ok((Shard { index: 1, of: 3 }, 1)));
        assert_eq!(parse_shard("2-4/7"), Ok((Shard { index: 1, of: 7 }, 3)));
        for text in [
            "3-2/3",
            "2-4/3",
            "0-1/3",
            "1-/3",
            "1-2-3/3",
            "",
            "2",
            "0/3",
            "4/3",
            "1/0",
            "-1/3",
            "1/3/5",
            "a/b",
            "1/100001",
            "1/4294967296",
        ] {
            assert!(parse_shard(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_start_is_an_instant_or_told_later() {
        assert_eq!(parse_start("command"), Ok(StartTime::OnCommand));
        let noon = Nanos::from_secs(1_772_366_400);
        assert_eq!(parse_start("2026-03-01T12:00:00Z"), Ok(StartTime::At(noon)));
        assert!(parse_start("Command").is_err());
    }

    #[test]
    fn instants_are_in_utc() {
        let noon = Nanos::from_secs(1_772_366_400);
        assert_eq!(parse_instant("2026-03-01T12:00:00Z"), Ok(noon));
        assert_eq!(parse_instant("2026-03-01 12:00:00.250"), Ok(noon + Nanos::from_millis(250)));
        for text in ["", "12:00", "tomorrow", "+5s", "1969-01-01T00:00:00Z"] {
            assert!(parse_instant(text).is_err(), "{text}");
        }
    }
}
