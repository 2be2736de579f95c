//! Figures that the tools report about their own runs, read from their output.
//!
//! A run with errors of any kind is not a measurement: an error may cost less than a response. It is refused
//! here.

use serde_json::Value;

use crate::failure::{Failure, Result};

/// Figures reported by a tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reading {
    /// Requests with a whole response of a good status.
    pub(crate) completed: u64,
    /// Of these per second, by the tool's own clock.
    pub(crate) per_s: f64,
    /// The protocols that were spoken, if the tool tells; `h2c` is h2load's word for HTTP/2 without TLS.
    pub(crate) protocols: Vec<String>,
    /// TLS version and cipher suite, if the tool tells.
    pub(crate) tls: Option<String>,
    /// Figures that only Plimsoll reports.
    pub(crate) detail: Detail,
}

/// Figures that only Plimsoll reports.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Detail {
    pub(crate) scheduled: u64,
    pub(crate) started: u64,
    /// Requests that ended without a good response, a status of 400 and more included.
    pub(crate) failed: u64,
    pub(crate) timed_out: u64,
    pub(crate) in_flight_at_stop: u64,
    /// Requests that failed or timed out, by class; empty if none did.
    pub(crate) errors: Vec<(String, u64)>,
    /// The percentile 99 of the start lag in nanoseconds; none with too few samples.
    pub(crate) start_lag_p99_ns: Option<u64>,
    /// Percentiles 50 and 99 of the response time in nanoseconds; none with too few samples.
    pub(crate) response_time_ns: Option<[u64; 2]>,
    /// Closed model: share of the turnaround in a user's cycle, from 0 to 1.
    pub(crate) turnaround_share: Option<f64>,
    /// Codes of the reasons for which the run is invalid.
    pub(crate) invalid_reasons: Vec<String>,
    /// Largest number of connections open at once.
    pub(crate) peak_open: u64,
    /// Bytes of requests.
    pub(crate) bytes_sent: u64,
    /// `io_uring` or `epoll`.
    pub(crate) backend: String,
}

/// Reads the output of wrk.
pub(crate) fn wrk(output: &str) -> Result<Reading> {
    let lines = || output.lines().map(str::trim);
    for complaint in ["Socket errors:", "Non-2xx or 3xx responses:"] {
        if let Some(line) = lines().find(|line| line.starts_with(complaint)) {
            return Err(Failure::new(format!("wrk had errors, so its run does not count: {line}")));
        }
    }
    // "  142542 requests in 1.01s, 20.25MB read"
    let completed = lines()
        .find_map(|line| line.split_once(" requests in "))
        .and_then(|(count, _)| count.trim().parse().ok());
    let per_s =
        lines().find_map(|line| line.strip_prefix("Requests/sec:")).and_then(|rate| rate.trim().parse().ok());
    positive("wrk", completed, per_s)
}

/// Reads the output of h2load.
pub(crate) fn h2load(output: &str) -> Result<Reading> {
    // "requests: 1000 total, 1000 started, 1000 done, 1000 succeeded, 0 failed, 0 errored, 0 timeout"
    let counts = output.lines().find_map(|line| line.strip_prefix("requests: ")).unwrap_or_default();
    let count = |name: &str| {
        let words = counts.split(',').find_map(|part| part.trim().strip_suffix(name));
        words.and_then(|number| number.trim().parse::<u64>().ok())
    };
    if ["failed", "errored", "timeout"].iter().any(|name| count(name).is_some_and(|count| count > 0)) {
        return Err(Failure::new(format!("h2load had errors, so its run does not count: {counts}")));
    }
    // "finished in 2.00s, 500.00 req/s, 72.75KB/s"
    let per_s = output
        .lines()
        .find_map(|line| line.strip_prefix("finished in "))
        .and_then(|line| line.split(", ").find_map(|part| part.strip_suffix(" req/s")))
        .and_then(|rate| rate.parse().ok());
    // "Application protocol: h2", "TLS Protocol: TLSv1.3", "Cipher: TLS_AES_256_GCM_SHA384"
    let said = |name: &str| output.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let tls = said("TLS Protocol:").zip(said("Cipher:")).map(|(version, suite)| format!("{version} {suite}"));
    let protocols = said("Application protocol:").map(str::to_owned).into_iter().collect();
    Ok(Reading { protocols, tls, ..positive("h2load", count("succeeded"), per_s)? })
}

/// Reads the output of redis-benchmark, which has one part for each command.
pub(crate) fn redis_benchmark(output: &str) -> Result<Reading> {
    // "  100000 requests completed in 1.23 seconds"
    let part = |line: &str| {
        let (count, seconds) = line.trim().split_once(" requests completed in ")?;
        let seconds = seconds.strip_suffix(" seconds")?.parse::<f64>().ok()?;
        Some((count.parse::<u64>().ok()?, seconds))
    };
    let (completed, seconds) = output
        .lines()
        .filter_map(part)
        .fold((0, 0.0), |(completed, all), (count, seconds)| (completed + count, all + seconds));
    positive("redis-benchmark", Some(completed), Some(completed as f64 / seconds))
}

/// Reads the JSON result of Plimsoll, which must have no errors.
pub(crate) fn plimsoll(output: &str) -> Result<Reading> {
    let reading = plimsoll_among_faults(output)?;
    let Detail { failed, timed_out, errors, .. } = &reading.detail;
    if failed + timed_out > 0 {
        return Err(Failure::new(format!("plimsoll had errors, so its run does not count: {errors:?}")));
    }
    Ok(reading)
}

/// Reads the JSON result of Plimsoll against a server that fails on purpose: the caller has to account for
/// every error.
pub(crate) fn plimsoll_among_faults(output: &str) -> Result<Reading> {
    // The output of a script's `done` follows the result on the same stream.
    let mut values = serde_json::Deserializer::from_str(output).into_iter::<Value>();
    let result = values
        .next()
        .ok_or_else(|| Failure::new("plimsoll did not write a result"))?
        .map_err(|error| Failure::because("plimsoll did not write a JSON result", error))?;
    let count = |pointer: &str| {
        result
            .pointer(pointer)
            .and_then(Value::as_u64)
            .ok_or_else(|| Failure::new(format!("plimsoll's result has no number at {pointer}")))
    };
    let text = |pointer: &str| result.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let entries = |pointer: &str| {
        let object = result.pointer(pointer).and_then(Value::as_object).into_iter().flatten();
        object.map(|(name, value)| (name.clone(), value.clone()))
    };
    let number = |pointer: &str| result.pointer(pointer).and_then(Value::as_f64);
    let percentile =
        |which: &str| result.pointer(&format!("/response_time/p/{which}")).and_then(Value::as_u64);
    let reasons = result
        .pointer("/verdict/invalid_reasons")
        .and_then(Value::as_array)
        .ok_or_else(|| Failure::new("plimsoll's result has no list at /verdict/invalid_reasons"))?;
    let turnaround_share = number("/generator/turnaround_mean_ns")
        .zip(number("/service_time/mean"))
        .map(|(turnaround, service)| turnaround / (service + turnaround).max(1.0));
    let detail = Detail {
        scheduled: count("/accounting/scheduled")?,
        started: count("/accounting/started")?,
        failed: count("/accounting/failed")?,
        timed_out: count("/accounting/timed_out")?,
        in_flight_at_stop: count("/accounting/in_flight_at_stop")?,
        errors: entries("/errors").filter_map(|(name, number)| Some((name, number.as_u64()?))).collect(),
        start_lag_p99_ns: result.pointer("/start_lag/p/99").and_then(Value::as_u64),
        response_time_ns: percentile("50").zip(percentile("99")).map(|(p50, p99)| [p50, p99]),
        turnaround_share,
        invalid_reasons: reasons.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        peak_open: count("/connections/peak_open")?,
        bytes_sent: count("/bytes/sent")?,
        backend: text("/generator/backend").unwrap_or_default(),
    };
    let tls = text("/run/targets/0/tls_version")
        .zip(text("/run/targets/0/tls_cipher"))
        .map(|(version, cipher)| format!("{version} {cipher}"));
    let protocols = entries("/protocols").map(|(name, _)| name).collect();
    let per_s = number("/rate/achieved_per_s");
    let reading = positive("plimsoll", Some(count("/accounting/ok")?), per_s)?;
    Ok(Reading { protocols, tls, detail, ..reading })
}

/// Without a single response there is nothing to divide by.
fn positive(tool: &str, completed: Option<u64>, per_s: Option<f64>) -> Result<Reading> {
    match (completed, per_s) {
        (Some(0), _) => Err(Failure::new(format!("{tool} completed no request"))),
        (Some(completed), Some(per_s)) => Ok(Reading { completed, per_s, ..Reading::default() }),
        _ => Err(Failure::new(format!("{tool} did not say how many requests it completed"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRK: &str = "\
Running 1s test @ http://127.0.0.1:18391/
  1 threads and 8 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   464.10us    1.61ms  16.20ms   92.82%
    Req/Sec   143.18k    34.26k  171.73k    90.00%
  142542 requests in 1.01s, 20.25MB read
Requests/sec: 141349.01
Transfer/sec:     20.09MB
";

    const H2LOAD: &str = "\
starting benchmark...
TLS Protocol: TLSv1.3
Cipher: TLS_AES_256_GCM_SHA384
Server Temp Key: X25519 253 bits
Application protocol: h2

finished in 2.00s, 500.00 req/s, 72.75KB/s
requests: 1000 total, 1005 started, 1000 done, 1000 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 1000 2xx, 0 3xx, 0 4xx, 0 5xx
time for request:       26us      4.63ms       223us       460us    97.00%
req/s           :      99.96       99.96       99.96        0.00    80.00%
";

    const PLIMSOLL: &str = r#"{
      "run": {"targets": [{"tls_version": "TLSv1.3", "tls_cipher": "TLS13_AES_256_GCM_SHA384"}]},
      "verdict": {"valid": false, "invalid_reasons": ["start_lag", "stall"]},
      "accounting": {"scheduled": 10000, "started": 9990, "dropped": 0, "never_started": 10, "ok": 9985,
                     "failed": 0, "timed_out": 0, "in_flight_at_stop": 5},
      "rate": {"target_per_s": 5000.0, "achieved_per_s": 4992.5}, "protocols": {"h2": 9985}, "bytes": {"sent": 689310, "received": 1},
      "start_lag": {"unit": "ns", "p": {"50": 100, "99": 41000, "99.9": null}},
      "errors": {}, "connections": {"peak_open": 50}, "generator": {"backend": "io_uring", "turnaround_mean_ns": 20000}, "service_time": {"mean": 80000}}"#;

    #[test]
    fn wrk_is_counted_by_its_own_words() {
        let reading = wrk(WRK).unwrap();
        assert_eq!((reading.completed, reading.per_s), (142_542, 141_349.01));
    }

    #[test]
    fn a_run_of_wrk_with_errors_does_not_count() {
        for line in
            ["  Socket errors: connect 0, read 0, write 0, timeout 12", "  Non-2xx or 3xx responses: 7"]
        {
            let output = WRK.replace("Requests/sec", &format!("{line}\nRequests/sec"));
            let failure = wrk(&output).unwrap_err().to_string();
            assert!(failure.ends_with(line.trim()), "{failure}");
        }
    }

    #[test]
    fn h2load_is_counted_by_its_own_words() {
        let reading = h2load(H2LOAD).unwrap();
        assert_eq!((reading.completed, reading.per_s), (1000, 500.0));
        assert_eq!(reading.protocols, ["h2"]);
        assert_eq!(reading.tls.as_deref(), Some("TLSv1.3 TLS_AES_256_GCM_SHA384"));
        let plain = h2load(&H2LOAD.replace("Cipher", "").replace("h2\n", "h2c\n")).unwrap();
        assert_eq!((plain.protocols, plain.tls), (vec!["h2c".to_owned()], None));
        for part in ["failed", "errored", "timeout"] {
            let output = H2LOAD.replace(&format!("0 {part}"), &format!("3 {part}"));
            assert!(h2load(&output).unwrap_err().to_string().contains(&format!("3 {part}")));
        }
    }

    #[test]
    fn plimsoll_is_read_from_its_result() {
        let reading = plimsoll(PLIMSOLL).unwrap();
        assert_eq!((reading.completed, reading.per_s), (9985, 4992.5));
        assert_eq!(reading.protocols, ["h2"]);
        assert_eq!(reading.tls.as_deref(), Some("TLSv1.3 TLS13_AES_256_GCM_SHA384"));
        assert_eq!(
            reading.detail,
            Detail {
                scheduled: 10_000,
                started: 9990,
                failed: 0,
                timed_out: 0,
                in_flight_at_stop: 5,
                errors: Vec::new(),
                start_lag_p99_ns: Some(41_000),
                response_time_ns: None,
                turnaround_share: Some(0.2),
                invalid_reasons: vec!["start_lag".to_owned(), "stall".to_owned()],
                peak_open: 50,
                bytes_sent: 689_310,
                backend: "io_uring".to_owned(),
            }
        );
        for part in ["failed", "timed_out"] {
            let output = PLIMSOLL.replace(&format!("\"{part}\": 0"), &format!("\"{part}\": 1"));
            assert!(plimsoll(&output).is_err(), "{part}");
        }
        let output = PLIMSOLL.replace("\"failed\": 0", "\"failed\": 7");
        let output = output.replace("\"errors\": {}", "\"errors\": {\"status_4xx\": 7}");
        let detail = plimsoll_among_faults(&output).unwrap().detail;
        assert_eq!((detail.failed, detail.errors), (7, vec![("status_4xx".to_owned(), 7)]));
        let too_few = PLIMSOLL.replace("41000", "null");
        assert_eq!(plimsoll(&too_few).unwrap().detail.start_lag_p99_ns, None);
    }

    #[test]
    fn output_without_a_count_is_no_reading() {
        for output in ["", "unable to connect to 127.0.0.1:1 Connection refused\n", "{}"] {
            assert!(wrk(output).is_err() && h2load(output).is_err() && plimsoll(output).is_err(), "{output}");
        }
        assert!(wrk(&WRK.replace("142542", "0")).is_err());
        assert!(h2load(&H2LOAD.replace("1000 succeeded", "0 succeeded")).is_err());
        assert!(plimsoll(&PLIMSOLL.replace("9985", "0")).is_err());
    }
}
