//! The window in which a replica accepts a message.

use std::fmt;
use std::time::Duration;

/// Furthest that the expiry of a message may lie ahead of a replica's clock.
pub const MAX_AHEAD: Duration = Duration::from_secs(5 * 60);

/// Reason why a replica refuses an expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadExpiry {
    /// The expiry has passed.
    Past {
        /// Since when.
        by: Duration,
    },
    /// The expiry lies further ahead than [`MAX_AHEAD`].
    TooFarAhead {
        /// By how much.
        by: Duration,
    },
}

impl fmt::Display for BadExpiry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Past { by } => write!(f, "the ingress expiry has passed {by:?} ago"),
            Self::TooFarAhead { by } => {
                write!(
                    f,
                    "the ingress expiry lies {by:?} further ahead than {MAX_AHEAD:?}, which is the most"
                )
            }
        }
    }
}

impl std::error::Error for BadExpiry {}

/// Checks that a replica whose clock shows `now_ns` accepts a message that expires at `expiry_ns`, both in
/// nanoseconds since 1970.
///
/// # Errors
/// The reason why the replica refuses the message.
pub fn check(expiry_ns: u64, now_ns: u64) -> Result<(), BadExpiry> {
    let most = now_ns.saturating_add(MAX_AHEAD.as_nanos() as u64);
    if expiry_ns < now_ns {
        Err(BadExpiry::Past { by: Duration::from_nanos(now_ns - expiry_ns) })
    } else if expiry_ns > most {
        Err(BadExpiry::TooFarAhead { by: Duration::from_nanos(expiry_ns - most) })
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expiry_lies_between_now_and_five_minutes_ahead() {
        let now = 1_700_000_000_000_000_000;
        let most = now + 300_000_000_000;
        assert_eq!((check(now, now), check(most, now)), (Ok(()), Ok(())));
        let past = check(now - 1_500_000_000, now).unwrap_err();
        assert_eq!(past.to_string(), "the ingress expiry has passed 1.5s ago");
        assert_eq!(check(most + 7, now), Err(BadExpiry::TooFarAhead { by: Duration::from_nanos(7) }));
        assert_eq!(check(u64::MAX, u64::MAX), Ok(()));
    }
}
