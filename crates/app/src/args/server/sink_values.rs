//! Parsers for the values of the built-in servers' flags.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use plimsoll_core::Nanos;
use plimsoll_document::{Files, Problem, Problems};
use plimsoll_driver::Endpoint;
use plimsoll_plan::parse_size;
use plimsoll_schedule::{parse_count, parse_duration};
use plimsoll_targets::{Delay, Freeze, Lies, SlowData};

use crate::args::share::parse_percent;

/// Collects problems while values are read.
#[derive(Debug, Default)]
pub struct Reader {
    pub(crate) problems: Problems,
}

impl Reader {
    /// Reads a value of a flag; a problem is kept, and there is no value then.
    pub fn read<T, E: Display>(
        &mut self,
        flag: &str,
        text: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        parse(text.trim())
            .map_err(|error| self.problems.push(Problem::from_line(&format!("{flag}: {error}"))))
            .ok()
    }

    /// Reads a value of a flag, if it is given.
    pub fn maybe<T, E: Display>(
        &mut self,
        flag: &str,
        text: Option<&String>,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        self.read(flag, text?, parse)
    }

    /// The value that was read last, unless anything is wrong: with a single value, or else with what does
    /// not go together, which the server itself knows.
    ///
    /// # Errors
    /// All problems.
    pub fn conclude<T>(
        mut self,
        last: Option<T>,
        together: impl FnOnce() -> Vec<String>,
    ) -> Result<T, Problems> {
        if self.problems.is_empty() {
            together().into_iter().for_each(|problem| self.problems.push(Problem::new(problem)));
        }
        last.filter(|_| self.problems.is_empty()).ok_or(self.problems)
    }

    /// Reads a file that a flag names.
    pub fn file(&mut self, flag: &str, path: &Path, files: &dyn Files) -> Option<Vec<u8>> {
        let read = files.read(path).map_err(|error| format!("cannot read `{}`: {error}", path.display()));
        self.read(flag, "", |_| read)
    }
}

/// Reads a whole number of this range.
///
/// # Errors
/// The text is none, or outside.
pub fn whole(text: &str, range: std::ops::RangeInclusive<u64>) -> Result<u64, String> {
    let number = parse_count(text).map_err(|error| error.to_string())?;
    if range.contains(&number) {
        return Ok(number);
    }
    Err(match *range.end() {
        u64::MAX => format!("must be at least {}", range.start()),
        end => format!("must be from {} to {end}", range.start()),
    })
}

/// Share of requests that are answered wrongly if `--lie` gives none: enough for tests to notice.
const LIES: f64 = 0.01;

/// Reads wrong answers that are asked for, of the kinds of a server: `KIND`, `KIND:2%`.
///
/// # Errors
/// The kind is none of these, or the share is none. The message ends with the example.
pub(crate) fn parse_lie<K: Copy>(text: &str, kinds: &[(&str, K)], example: &str) -> Result<Lies<K>, String> {
    let (name, share) = match text.split_once(':') {
        Some((name, share)) => (name, parse_share(share)?),
        None => (text, LIES),
    };
    match kinds.iter().find(|(known, _)| *known == name) {
        Some(&(_, kind)) => Ok(Lies { kind, share }),
        None => {
            let names: Vec<&str> = kinds.iter().map(|(known, _)| *known).collect();
            let (last, others) = names.split_last().expect("there are kinds");
            Err(format!("`{name}` is not one of {} and {last}, such as {example}", others.join(", ")))
        }
    }
}

/// Reads a duration above 0.
///
/// # Errors
/// The text is no duration, or 0.
pub fn parse_positive(text: &str) -> Result<Nanos, String> {
    match parse_duration(text) {
        Ok(Nanos::ZERO) => Err("must be above 0".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    }
}

/// Reads a time that a request takes. A bare number of seconds, as durations of runs may be written, is taken
/// for one of milliseconds too easily.
///
/// # Errors
/// The text is no duration, or has no unit.
pub(crate) fn parse_request_time(text: &str) -> Result<Nanos, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    if time > Nanos::ZERO && text.trim().ends_with(|c: char| c.is_ascii_digit()) {
        let text = text.trim();
        return Err(format!("`{text}` has no unit: write {text}ms, or {text}s"));
    }
    Ok(time)
}

/// Reads a time that a request takes, above 0.
///
/// # Errors
/// The text is no duration, has no unit, or is 0.
pub(crate) fn parse_positive_request_time(text: &str) -> Result<Nanos, String> {
    parse_positive(text).and_then(|_| parse_request_time(text))
}

/// Reads an address to listen on: `127.0.0.1:8080`, `[::]:0`, `:8080` (every IPv4 address), `unix:/path`.
///
/// # Errors
/// The text is none.
pub fn parse_endpoint(text: &str) -> Result<Endpoint, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return if path.is_empty() {
            Err("the path is empty".to_owned())
        } else {
            Ok(Endpoint::Unix(PathBuf::from(path)))
        };
    }
    let whole = if text.starts_with(':') { format!("0.0.0.0{text}") } else { text.to_owned() };
    whole.parse().map(Endpoint::Tcp).map_err(|_| {
        let port = text.rsplit_once(':').map(|(_, port)| port).filter(|port| port.parse::<u16>().is_ok());
        let (local, port) = (text.starts_with("localhost"), port.unwrap_or("8080"));
        let address =
            if local { format!("127.0.0.1:{port}") } else { "127.0.0.1:8080 or unix:PATH".to_owned() };
        format!("`{text}` is not an address to listen on, IP:PORT or unix:PATH: write {address}")
    })
}

pub(crate) fn parse_status(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(status) if (200..600).contains(&status) => Ok(status),
        _ => Err(format!("`{text}` is not a status from 200 to 599")),
    }
}

/// Reads a share in percent; `0` needs no sign.
///
/// # Errors
/// The text is no share from 0 to 100 %.
pub fn parse_share(text: &str) -> Result<f64, String> {
    if text == "0" {
        return Ok(0.0);
    }
    match parse_percent(text) {
        Some(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(format!("`{text}` is not a share from 0% to 100%")),
    }
}

/// `7%:503`, or in place of the status the name of a code that is known; `0` is none.
pub(crate) fn parse_fail(
    text: &str,
    code: impl FnOnce(&str) -> Option<u16>,
) -> Result<Option<(u16, f64)>, String> {
    if text == "0" {
        return Ok(None);
    }
    let (share, status) =
        text.split_once(':').ok_or_else(|| format!("`{text}` is not SHARE:STATUS, such as 7%:503"))?;
    let status = match code(status) {
        Some(code) => code,
        None => parse_status(status)?,
    };
    Ok(Some((status, parse_share(share)?)))
}

pub(crate) fn parse_freeze(text: &str) -> Result<Freeze, String> {
    let (at, length) =
        text.split_once('+').ok_or_else(|| format!("`{text}` is not AT+LENGTH, such as 3s+1s"))?;
    let at = parse_duration(at).map_err(|error| error.to_string())?;
    Ok(Freeze { at, length: parse_positive(length)? })
}

/// Reads a law by its name, or a bare time, which is constant.
///
/// # Errors
/// The text is no law, with the forms of all laws in the message, or a time has no unit.
pub fn parse_delay(text: &str) -> Result<Delay, String> {
    if parse_duration(text).is_ok() {
        return parse_request_time(text).map(Delay::Constant);
    }
    let (law, parameters) = text.split_once(':').unwrap_or((text, ""));
    let parameters: Vec<&str> = parameters.split(',').map(str::trim).collect();
    let duration = parse_request_time;
    let mean = parse_positive_request_time;
    let number = |text: &str| match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => Err(format!("`{text}` is not a number of at least 0")),
    };
    match (law, parameters.as_slice()) {
        ("constant", [time]) => Ok(Delay::Constant(duration(time)?)),
        ("exponential", [of]) => Ok(Delay::Exponential { mean: mean(of)? }),
        ("lognormal", [median, sigma]) => {
            Ok(Delay::Lognormal { median: mean(median)?, sigma: number(sigma)? })
        }
        ("bimodal", [first, second, share]) => {
            let (first, second) = (duration(first)?, duration(second)?);
            let share_of_second = if share.ends_with('%') { parse_share(share)? } else { number(share)? };
            if share_of_second > 1.0 {
                return Err(format!("`{share}` is not a probability from 0 to 1"));
            }
            Ok(Delay::Bimodal { first, second, share_of_second })
        }
        _ => Err(format!(
            "`{text}` is not one of TIME or constant:TIME, exponential:MEAN, lognormal:MEDIAN,SIGMA, \
             bimodal:TIME,OTHER,PROBABILITY"
        )),
    }
}

/// `1KiB/10ms`.
pub(crate) fn parse_slow_data(text: &str) -> Result<SlowData, String> {
    let (bytes, every) =
        text.split_once('/').ok_or_else(|| format!("`{text}` is not BYTES/TIME, such as 1KiB/10ms"))?;
    let bytes = parse_size(bytes).map_err(|error| error.to_string())?;
    let every = parse_positive(every)?;
    match usize::try_from(bytes) {
        Ok(bytes) if bytes > 0 => Ok(SlowData { bytes, every }),
        _ => Err(format!("`{text}` has pieces of no size that can be sent")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let listen = |text: &str| parse_endpoint(text).map(|endpoint| endpoint.to_string());
        assert_eq!(listen(":0").unwrap(), "0.0.0.0:0");
        assert_eq!(listen("[::1]:80").unwrap(), "[::1]:80");
        assert_eq!(parse_endpoint("unix:/a b"), Ok(Endpoint::Unix("/a b".into())));
        for bad in ["", "8080", "localhost:80", "unix:", "1.2.3.4", "1.2.3.4:99999"] {
            assert!(parse_endpoint(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn laws_of_time() {
        let ms = Nanos::from_millis;
        for (text, delay) in [
            ("constant:1ms", Delay::Constant(ms(1))),
            ("1ms", Delay::Constant(ms(1))),
            ("exponential:2ms", Delay::Exponential { mean: ms(2) }),
            ("lognormal:1ms,0.5", Delay::Lognormal { median: ms(1), sigma: 0.5 }),
            ("bimodal:1ms, 10ms, 0.1", Delay::Bimodal { first: ms(1), second: ms(10), share_of_second: 0.1 }),
            ("bimodal:1ms,10ms,5%", Delay::Bimodal { first: ms(1), second: ms(10), share_of_second: 0.05 }),
        ] {
            assert_eq!(parse_delay(text), Ok(delay), "{text}");
        }
        for bad in [
            "",
            "constant",
            "constant:1ms,2ms",
            "exponential:0",
            "lognormal:1ms",
            "lognormal:1ms,-1",
            "lognormal:1ms,nan",
            "bimodal:1ms,2ms,1.5",
            "bimodal:1ms,2ms",
            "uniform:1ms",
            // Symptom: four seconds without a word.
            "4",
            "constant:4",
            "exponential:0.5",
            "lognormal:4,0.5",
            "bimodal:1ms,4,0.1",
        ] {
            assert!(parse_delay(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn shares_need_their_sign_except_none() {
        assert_eq!((parse_share("3%"), parse_share("0"), parse_share("0%")), (Ok(0.03), Ok(0.0), Ok(0.0)));
        for bad in ["3", "0.03", "-1%", "101%", "%", "x%", "", "00"] {
            assert!(parse_share(bad).is_err(), "{bad}");
        }
        let parse_fail = |text: &str| parse_fail(text, |name| (name == "LOST").then_some(3));
        assert_eq!((parse_fail("7%:503"), parse_fail("0")), (Ok(Some((503, 0.07))), Ok(None)));
        assert_eq!(parse_fail("7%:LOST"), Ok(Some((3, 0.07))));
        for bad in ["7%", "7:503", "7%:99", ":503", "503:7%", "7%:FOUND"] {
            assert!(parse_fail(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn paces_of_bodies() {
        let slow = SlowData { bytes: 1024, every: Nanos::from_millis(10) };
        assert_eq!(parse_slow_data("1KiB/10ms"), Ok(slow));
        for bad in ["", "1KiB", "1KiB/0s", "0/1ms", "x/1ms", "10ms/1KiB"] {
            assert!(parse_slow_data(bad).is_err(), "{bad}");
        }
    }
}
