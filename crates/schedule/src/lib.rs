//! A load profile becomes an exact sequence of intended start times.
//!
//! ```text
//!   "30s@1000,1m@5000" ─ parse_stages ─▶ Stage… ─▶ Profile ─┬─▶ Arrivals of shard 0 ─▶ Arrival …
//!   "5k/s"             ─ parse_rate ──▶ Rate ────▶          └─▶ Arrivals of shard 1 ─▶ …
//! ```
//!
//! Pure: no clock, no socket, no thread. A schedule depends on the profile, the [`Process`] and the seed
//! alone, never on how fast a target answers or on how many workers share it: the union over all shards is
//! the schedule of the whole run, arrival by arrival. The types to know first are [`Profile`], [`Arrivals`]
//! and [`Process`]; and [`Population`], the equivalent of a profile in the closed model: the users over time.
//!
//! # Which arrivals, and when
//!
//! Let Λ(t) be the integral of the rate over `[0, t)`: the number of arrivals that are due by then, fractions
//! included. For [`Process::Uniform`]
//!
//! - arrival n is due at the **last whole nanosecond t with Λ(t) ≤ n**: at a constant rate that is
//!   `floor(n * period / count)`, with arrival 0 at 0; a rest, through which Λ stands still, delays the
//!   arrival that would fall on it to its end;
//! - so `ceil(Λ(t))` arrivals are due before t;
//! - the profile has **`floor(Λ(end))`** arrivals, each of which stands for a whole unit of the integral. A
//!   rate of 1/3s has three arrivals in 10 s, at 0, 3 and 6 s; the fourth would stand for the time from 9 to
//!   12 s. A profile with an integral below 1 therefore has none.
//!
//! Everything is computed with integers. The rates of all stages are brought to one common denominator, which
//! also makes the integral at each seam between stages exact, so nothing is rounded but the final time, down
//! to a whole nanosecond: there is no drift, whatever the length of the run. A profile whose numbers do not
//! fit is refused ([`ProfileError::TooFine`]) instead of approximated.
//!
//! For [`Process::Poisson`] arrival n is due at the last whole nanosecond t with Λ(t) ≤ E, where E is the sum
//! of n + 1 exponential gaps of mean 1 (time change, Cinlar 1975), as long as E is below Λ(end).
//!
//! # Changes
//!
//! A profile can be changed while its arrivals are taken ([`Profile::changed`], [`Arrivals::change`]): from
//! an instant on, the rate is another one. Then Λ is that of the new profile, and it **goes on where it
//! was**: arrivals that were due before the instant stay as they were, the indices go on, and the first
//! arrival of the new rate is due when Λ reaches the next whole number, not at the instant and not a whole
//! period after it. With 9 s of a rate of 1/10s behind it, a rate of 1/s brings its first arrival after 0.1
//! s. So the rate is exact over any window, whatever the number of changes in it, and a pause only shifts
//! later arrivals. Arrivals that were due before a change stay due, even if Λ(end) now ends below its next
//! whole number. All shards that take the same changes are one schedule, as without them. (At a change in the
//! middle of a ramp Λ is rounded up to the common denominator: between 1,000/s and 5,000/s by less than a
//! two-millionth of an arrival.)
#![forbid(unsafe_code)]

mod arrivals;
mod curve;
mod instants;
mod poisson;
mod population;
mod profile;
mod text;

pub use arrivals::{Arrivals, Process};
pub use instants::stages_at;
pub use population::{Population, PopulationError, UserStage};
pub use profile::{Profile, ProfileError, Stage};
pub use text::{
    FASTEST_PER_SECOND, ScheduleError, parse_count, parse_duration, parse_rate, parse_stages,
    parse_stages_after, parse_user_stages_after,
};
