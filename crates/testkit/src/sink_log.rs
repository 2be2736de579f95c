//! The truth about a run, from the sink's log, and the comparison of a result with it.

use std::collections::HashMap;

use serde_json::Value;

/// One request as the sink saw it; times in nanoseconds on the clock of this machine (`CLOCK_MONOTONIC`).
#[derive(Clone, Debug)]
pub struct Row {
    /// The request's header `x-plimsoll-id`; without it its number at the sink.
    pub id: u64,
    /// Arrival of the request.
    pub recv_ns: u64,
    /// The moment at which the reply was handed to the kernel, if there was one.
    pub reply_ns: Option<u64>,
    /// Action of the sink, with the status if that was one on purpose: `status 503`.
    pub action: String,
}

/// The sink's log.
#[derive(Debug)]
pub struct Truth {
    /// A row for each request.
    pub rows: Vec<Row>,
}

impl Truth {
    /// Reads a log.
    ///
    /// # Panics
    /// The text is no log of a sink.
    pub fn parse(log: &str) -> Self {
        let mut lines = log.lines();
        assert_eq!(lines.next(), Some("id,recv_ns,reply_ns,action,status,number"));
        let row = |line: &str| {
            let fields: Vec<&str> = line.split(',').collect();
            let &[id, recv, reply, action, status, _] = &fields[..] else { panic!("{line}") };
            let figure = |text: &str| text.parse::<u64>().unwrap_or_else(|_| panic!("{line}"));
            Row {
                id: figure(id),
                recv_ns: figure(recv),
                reply_ns: (!reply.is_empty()).then(|| figure(reply)),
                action: if action == "status" { format!("{action} {status}") } else { action.to_owned() },
            }
        };
        Self { rows: lines.map(row).collect() }
    }

    /// Returns the requests that came after the start of the run, that is all but its preflight.
    pub fn of_run(&self, result: &Value) -> impl Iterator<Item = &Row> {
        let start = count(result, "/run/started_at_monotonic_ns");
        self.rows.iter().filter(move |row| row.recv_ns >= start)
    }

    /// Returns the number of requests of the run that ended at the sink with `action`.
    pub fn ended(&self, result: &Value, action: &str) -> u64 {
        self.of_run(result).filter(|row| row.action == action).count() as u64
    }

    /// Returns the true response times of a run whose arrival `n` was due `schedule[n]` after its start,
    /// sorted: from then until the sink handed its reply to the kernel. The requests must have carried the
    /// index of their arrival.
    ///
    /// # Panics
    /// An arrival came twice, was not answered, or did not come.
    pub fn response_times(&self, result: &Value, schedule: &[u64]) -> Vec<u64> {
        let start = count(result, "/run/started_at_monotonic_ns");
        let mut replies = HashMap::new();
        for row in self.of_run(result) {
            let reply = row.reply_ns.expect("it was answered");
            assert_eq!(replies.insert(row.id, reply), None, "request {} came twice", row.id);
        }
        assert_eq!(replies.len(), schedule.len(), "every arrival came");
        let mut times: Vec<u64> =
            (0..).zip(schedule).map(|(index, due)| replies[&index] - (start + due)).collect();
        times.sort_unstable();
        times
    }
}

/// Returns a percentile of times in nanoseconds, in milliseconds, by the nearest rank: the smallest value
/// such that at least `p` % of the values are not larger.
pub fn percentile_ms(sorted: &[u64], p: f64) -> f64 {
    let rank = (p / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted[rank.max(1) - 1] as f64 / 1e6
}

/// Returns a count in a result, by its JSON pointer; 0 if there is none (classes that did not occur are left
/// out).
///
/// # Panics
/// The value is no count.
pub fn count(result: &Value, pointer: &str) -> u64 {
    result.pointer(pointer).map_or(0, |value| value.as_u64().unwrap_or_else(|| panic!("{pointer}: {value}")))
}

/// The figure `kind` of the accounts.
pub fn account(result: &Value, kind: &str) -> u64 {
    let value = result.pointer(&format!("/accounting/{kind}"));
    value.and_then(Value::as_u64).unwrap_or_else(|| panic!("no account `{kind}`"))
}

/// The number of failed requests of a class.
pub fn errors(result: &Value, class: &str) -> u64 {
    count(result, &format!("/errors/{class}"))
}

/// A percentile of a time in milliseconds.
pub fn reported_ms(result: &Value, time: &str, p: &str) -> f64 {
    let value = &result[time]["p"][p];
    value.as_u64().unwrap_or_else(|| panic!("{time} p{p}: {value}")) as f64 / 1e6
}

/// Asserts that the accounts balance, those of the requests and those of the classes.
pub fn assert_balance(result: &Value) {
    let of = |kind| account(result, kind);
    assert_eq!(
        of("scheduled"),
        of("started") + of("dropped") + of("never_started"),
        "{}",
        result["accounting"]
    );
    let ended = of("ok") + of("failed") + of("timed_out") + of("in_flight_at_stop");
    assert_eq!(of("started"), ended, "{}", result["accounting"]);
    let sum = |of: &Value| of.as_object().expect("an object").values().filter_map(Value::as_u64).sum::<u64>();
    assert_eq!(of("failed"), sum(&result["errors"]), "{}", result["errors"]);
    // Of those in flight, the ones that have waited for as long as a response took.
    let timed = result["response_time"]["count"].as_u64().expect("a number");
    let ended = of("ok") + of("timed_out");
    assert!((ended..=ended + of("in_flight_at_stop")).contains(&timed), "{timed}: {}", result["accounting"]);
    assert_eq!(result["failed_response_time"]["count"].as_u64(), Some(of("failed")));
    assert_eq!(result["start_lag"]["count"].as_u64(), Some(of("started")));
}

/// Requests that a target must have got if the result is right.
pub fn delivered(result: &Value) -> u64 {
    let of = |kind| account(result, kind);
    of("started") - of("undelivered") + of("unmeasured") + of("redirects_followed") + of("resent")
}
