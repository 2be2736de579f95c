//! Instants in the past, as flags name them.

use plimsoll_document::Problem;
use plimsoll_system::clock;

/// An age as written, as the Unix time in nanoseconds that lies so far back; or a date or time as RFC 3339
/// writes it, in UTC.
///
/// # Errors
/// The text is neither an age nor a date.
pub(crate) fn instant(flag: &str, text: &str) -> Result<u64, Problem> {
    let now = clock::unix();
    if let Ok(age) = humantime::parse_duration(text) {
        let age = u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
        return Ok(now.0.saturating_sub(age));
    }
    let spelled = if text.contains(['T', ' ']) { text.to_owned() } else { format!("{text}T00:00:00Z") };
    let time = humantime::parse_rfc3339_weak(&spelled).ok();
    let since = time.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    since.and_then(|since| u64::try_from(since.as_nanos()).ok()).ok_or_else(|| {
        let message = format!("{flag}: `{}` is neither an age nor a date", text.escape_debug());
        Problem::new(message).with_hint("write 12h, 30d, 2026-03-01 or 2026-03-01T12:00:00Z (UTC)")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_ages_or_dates() {
        assert_eq!(instant("--since", "2026-03-01").unwrap(), 1_772_323_200_000_000_000);
        assert_eq!(instant("--since", "2026-03-01T12:00:00Z").unwrap(), 1_772_366_400_000_000_000);
        let (day, now) = (instant("--since", "1d").unwrap(), clock::unix().0);
        assert!((now - 86_500_000_000_000..now - 86_400_000_000_000 + 1).contains(&day), "{day} {now}");
        for text in ["", "yesterday", "2026-13-01", "-1d", "1969-01-01"] {
            assert!(instant("--since", text).is_err(), "{text}");
        }
    }
}
