//! Calendar time for results.

use plimsoll_core::{Nanos, calendar};

/// A Unix time in RFC 3339 with milliseconds, in UTC: `2026-03-01T12:00:00.250Z`.
pub fn rfc3339(unix: Nanos) -> String {
    calendar::rfc3339(unix, 3)
}
