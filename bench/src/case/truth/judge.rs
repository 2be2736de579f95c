//! Comparison of a result with the server's log of the same run.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::behaviour::{Beside, THAW};
use crate::failure::{Failure, Result};
use crate::shape::{Kind, Shape};

/// A time may be more than the server's by this much, and by [`SHARE`] of it.
pub(super) const OURS_NS: f64 = 300_000.0;
pub(super) const SHARE: f64 = 0.01;
/// And less by the width of a bucket, and by what the server takes between its stamps and the kernel's.
const LESS_NS: f64 = 60_000.0;
/// A run that opens connections may take this much longer for each handshake.
pub(super) const HANDSHAKE_NS: f64 = 700_000.0;
/// A relay has a change of threads on the server's core before the server has a request, and one behind its
/// answer; if it opens a connection for it, a connect and two changes more.
pub(super) const RELAY_NS: f64 = 500_000.0;
/// Connections that a load of the open model has before its first request.
const FIRST_CONNECTIONS: u64 = 16;
/// The fewest values of a percentile that is compared.
const FEWEST: f64 = 10.0;
/// Time limit of requests.
pub(super) const PATIENCE_NS: u64 = 300_000_000;
/// The earliest end of a request that it has ended.
const TIMED_OUT_NS: f64 = 290e6;

/// One request as its server saw it, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    received: u64,
    replied: Option<u64>,
    good: bool,
    /// `true` if it was ended in another way than by an answer: by a reset.
    is_broken: bool,
    /// `true` for the answer to a message of a WebSocket, and to a request that is none.
    is_message: bool,
}

impl Row {
    /// The request as a client sees it that waits for so long. A server that stands still until it is told to
    /// end sends an answer then, when the client has gone.
    fn within(self, patience_ns: u64) -> Self {
        let in_time = |replied: &u64| replied - self.received <= patience_ns;
        Self { replied: self.replied.filter(in_time), ..self }
    }
}

/// The server's own account of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Account {
    /// Each request.
    Log(Vec<Row>),
    /// The number of requests.
    Count(u64),
}

impl Account {
    /// Reads what the server of a shape has left: its logs, or what it `said` when it ended.
    pub(super) fn read(shape: &Shape, logs: &[impl AsRef<Path>], said: &str) -> Result<Self> {
        if shape.kind == Kind::Cache {
            let count = operations(said);
            return count.map(Self::Count).ok_or_else(|| Failure::because("the cache counted nothing", said));
        }
        let mut rows = Vec::new();
        for log in logs {
            let log = log.as_ref();
            let text = fs::read_to_string(log).map_err(|error| Failure::because(log.display(), error))?;
            let read = if shape.kind == Kind::Llm { completion } else { request };
            rows.extend(text.lines().skip(1).filter_map(read));
        }
        Ok(Self::Log(rows))
    }
}

/// The number in `target cache: 5,267 PUT, 0 GET of which 0 found`.
fn operations(said: &str) -> Option<u64> {
    let (front, _) = said.rsplit_once(" PUT, ")?;
    front.rsplit(' ').next()?.replace(',', "").parse().ok()
}

/// A line of the sink's log: id, received, replied, action, status, number.
fn request(line: &str) -> Option<Row> {
    let fields: Vec<&str> = line.split(',').collect();
    let &[_, received, replied, action, status, ..] = &fields[..] else { return None };
    Some(Row {
        received: received.parse().ok()?,
        replied: replied.parse().ok(),
        good: action == "replied",
        is_broken: ["reset", "refused"].contains(&action),
        is_message: status != "101",
    })
}

/// A line of the log of the target of language models: id, number, received, begun, end, tokens of the prompt
/// and of the answer, and when each content left.
fn completion(line: &str) -> Option<Row> {
    let fields: Vec<&str> = line.split(',').collect();
    let &[_, _, received, _, end, .., contents] = &fields[..] else { return None };
    let last = contents.split(' ').next_back().and_then(|last| last.parse().ok());
    Some(Row {
        received: received.parse().ok()?,
        replied: last.filter(|_| end != "stalled"),
        good: end == "whole",
        is_broken: end == "cut",
        is_message: true,
    })
}

/// Returns the differences between a result and the server's account, in words.
pub(super) fn compare(shape: &Shape, beside: Beside, result: &Value, account: &Account) -> Vec<String> {
    let mut wrong = Vec::new();
    let counts = Counts::of(shape, beside, result);
    let logged = match account {
        Account::Log(rows) => rows.len() as u64,
        Account::Count(count) => *count,
    };
    let most = counts.delivered + counts.unsent_closes;
    if !(counts.delivered.saturating_sub(counts.unread)..=most).contains(&logged) {
        wrong.push(format!("{} requests were sent, the server has {logged}", counts.delivered));
    }
    let Account::Log(rows) = account else { return wrong };
    let start = result["run"]["started_at_monotonic_ns"].as_u64().unwrap_or(0) as f64;
    let measured_from = start + result["warmup_s"].as_f64().unwrap_or(0.0) * 1e9;
    let rows = rows.iter().filter(|row| row.received as f64 >= measured_from);
    let rows: Vec<Row> = rows.map(|row| row.within(PATIENCE_NS)).collect();
    let answered = rows.iter().filter(|row| row.good && row.replied.is_some()).count() as u64;
    let most = counts.ok + counts.border + counts.unreceived;
    if !(counts.ok.saturating_sub(counts.border)..=most).contains(&answered) {
        wrong.push(format!("{} ok, the server has answered {answered}", counts.ok));
    }
    let never = f64::INFINITY;
    let time = |row: &Row| match row.replied {
        Some(replied) if row.good => Some((replied - row.received) as f64),
        Some(_) => None,
        None => (!row.is_broken).then_some(never),
    };
    let mut truth: Vec<f64> = rows.iter().filter(|row| row.is_message).filter_map(time).collect();
    // A server that stood still has not logged those who wait for it.
    if beside == Beside::Frozen {
        let unanswered = truth.iter().filter(|time| time.is_infinite()).count() as u64;
        let waiting = counts
            .delivered
            .saturating_sub(logged)
            .min(counts.lost.saturating_sub(unanswered + counts.unreached));
        truth.extend(std::iter::repeat_n(never, waiting as usize));
    }
    truth.sort_by(f64::total_cmp);
    // An upgrade that was not answered has no status, so that it cannot be told from a message.
    let is_told = !shape.is_websocket() || truth.last() != Some(&never);
    if is_told {
        wrong.extend(times(shape, beside, &counts, result, &truth));
    }
    wrong
}

/// Counts of a result, as they are held against those of the server.
struct Counts {
    ok: u64,
    /// Requests that were sent.
    delivered: u64,
    /// Requests that failed or timed out.
    lost: u64,
    /// The most closes of WebSockets that were never sent, and so are none of those that were.
    unsent_closes: u64,
    /// The most of them that the server may not have read.
    unread: u64,
    /// The most of the server's answers that may not have come.
    unreceived: u64,
    /// Requests that timed out before they were sent.
    unreached: u64,
    /// `true` if requests were sent again.
    resent: bool,
    /// Connections that were opened beyond the first.
    opened: u64,
    /// At the end of a warm-up some may have been due before it, and have come after it.
    border: u64,
}

impl Counts {
    fn of(shape: &Shape, beside: Beside, result: &Value) -> Self {
        let count = |name: &str| result["accounting"][name].as_u64().unwrap_or(0);
        // The close of a WebSocket is a step of its own, and no request to the server.
        let closes = step(shape, result, "close");
        let of_close = |name: &str| closes.and_then(|step| step[name].as_u64()).unwrap_or(0);
        let of_closes = of_close("ok") + of_close("failed") + of_close("timed_out");
        let sent = count("started") - count("undelivered")
            + count("unmeasured")
            + count("redirects_followed")
            + count("polls")
            + count("resent");
        let lost = count("failed") + count("timed_out");
        // Those of the warm-up have no step: at most a third of its requests, of which an iteration has an
        // upgrade, a message and a close.
        let unknown_closes =
            if closes.is_some() && shape.connects { count("unmeasured").div_ceil(3) } else { 0 };
        let opened = result["connections"]["opened"].as_u64().unwrap_or(0);
        let opened = opened.saturating_sub(FIRST_CONNECTIONS);
        let seconds = result["service_time"]["p"]["99"].as_f64().unwrap_or(0.0) / 1e9;
        let under_way = (seconds * result["rate"]["target_per_s"].as_f64().unwrap_or(0.0)).ceil() as u64;
        let border = match count("unmeasured") {
            0 => 0,
            // The upgrade and the message of each iteration, and the messages of those whose upgrade was
            // under way.
            _ if shape.is_websocket() => 4 + under_way,
            // The server ends when the warm-up does, and what it lost before is not told.
            _ if beside == Beside::Restart => 10,
            // Those whose connection had to wait for the server.
            _ if beside == Beside::Thaw && shape.shakes_hands() => 2 + opened,
            _ => 2,
        };
        // An attempt that met the end of its connection may have been read by nobody.
        let unread = count("resent_closed")
            + unknown_closes
            + match beside {
                // Those that came last in a warm-up may have been lost, too.
                Beside::Frozen | Beside::Restart => lost + border,
                Beside::Nothing | Beside::Thaw | Beside::Dead | Beside::Full => 0,
            };
        Self {
            ok: count("ok") - of_close("ok"),
            delivered: sent.saturating_sub(of_closes),
            lost,
            unsent_closes: of_close("failed") + of_close("timed_out"),
            unread,
            unreceived: if beside == Beside::Restart { lost } else { 0 },
            unreached: match beside {
                // A server that stands still ends no handshake.
                Beside::Full | Beside::Frozen => count("undelivered").min(count("timed_out")),
                Beside::Nothing | Beside::Thaw | Beside::Dead | Beside::Restart => 0,
            },
            resent: count("resent") > 0,
            opened,
            border,
        }
    }
}

/// A step of the iterations of a WebSocket.
fn step<'r>(shape: &Shape, result: &'r Value, name: &str) -> Option<&'r Value> {
    let steps = result["by_step"].as_array().filter(|_| shape.is_websocket())?;
    steps.iter().find(|step| step["step"] == name)
}

/// Returns the percentiles that differ from those of the server's times, which are in order.
fn times(shape: &Shape, beside: Beside, counts: &Counts, result: &Value, truth: &[f64]) -> Vec<String> {
    let mut wrong = Vec::new();
    // In the open model a response counts from when it was due, and waits for its connection.
    let is_open = result["model"]["kind"] == "open";
    let kinds: &[(&str, bool)] = if is_open {
        &[("service_time", false), ("response_time", true)]
    } else {
        &[("service_time", false)]
    };
    let figures = step(shape, result, "message").unwrap_or(result);
    for (kind, connects) in kinds {
        // Who has timed out before it was sent has waited, and was not served.
        let unreached = if *connects { counts.unreached as usize } else { 0 };
        let truth = [truth, &vec![f64::INFINITY; unreached]].concat();
        for p in ["50", "90", "99"] {
            let Some(shown) = figures[*kind]["p"][p].as_f64() else { continue };
            let share = p.parse::<f64>().unwrap_or(0.0) / 100.0;
            if truth.len() as f64 * (1.0 - share) < FEWEST {
                continue;
            }
            let rank = ((share * truth.len() as f64).ceil() as usize).clamp(1, truth.len());
            let at_least = figures[*kind]["at_least"].as_array();
            let marked = at_least.is_some_and(|all| all.iter().any(|name| name == p));
            let border = counts.border as usize;
            let near = [rank.saturating_sub(border + 1), (rank + border).min(truth.len() - 1)];
            let [least, most] = near.map(|place| truth[place.saturating_sub(usize::from(place == rank))]);
            if most == f64::INFINITY {
                if !marked && shown < TIMED_OUT_NS {
                    wrong.push(format!("{kind} p{p} is {shown} ns, the server never answered"));
                }
                continue;
            }
            // A request that is sent again counts from its first attempt. It has the times of two attempts,
            // of which the log does not say that they are of one request, and perhaps that of a connection
            // between them.
            let most = if counts.resent { most * 2.0 } else { most };
            // Those that wait for a connection come before the ones that have no answer.
            let answered = truth.partition_point(|time| time.is_finite());
            let waited = counts.opened as usize >= answered.saturating_sub(rank);
            // The first request of a connection that was opened meanwhile came when the server went on.
            let shakes_hands = waited && *connects && shape.shakes_hands();
            let most = match beside {
                Beside::Thaw if shakes_hands => most.max(THAW.as_nanos() as f64),
                _ => most,
            };
            let opens = shakes_hands || shape.connects && (*connects || counts.unread > 0);
            let handshakes = f64::from(u8::from(opens) + u8::from(counts.resent));
            // The answers to all that have waited for a server that goes on come to the relay at once.
            let burst = if beside == Beside::Thaw { 3.0 } else { 1.0 };
            let relays = if shape.relayed { burst + handshakes } else { 0.0 };
            let above = OURS_NS + handshakes * HANDSHAKE_NS + relays * RELAY_NS;
            if shown < least * (1.0 - SHARE) - LESS_NS || shown > most * (1.0 + SHARE) + above {
                wrong.push(format!("{kind} p{p} is {shown} ns, the server has {least} to {most}"));
            }
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_after_the_time_limit_is_none() {
        let row = request("0,10,300000010,replied,200,0").unwrap();
        assert_eq!(row.within(PATIENCE_NS), row);
        assert_eq!(row.within(PATIENCE_NS - 1), Row { replied: None, ..row });
    }

    #[test]
    fn lines_of_both_logs() {
        let row = |received, replied, good, is_message| {
            Some(Row { received, replied, good, is_broken: false, is_message })
        };
        assert_eq!(request("0,10,30,replied,101,0"), row(10, Some(30), true, false));
        assert_eq!(request("1,10,30,status,503,1"), row(10, Some(30), false, true));
        assert_eq!(request("2,10,,dropped,,2"), row(10, None, false, true));
        assert_eq!(completion("0,0,10,10,whole,128,2,30 40"), row(10, Some(40), true, true));
        assert!(completion("0,0,10,10,cut,128,1,30").is_some_and(|row| row.is_broken && !row.good));
        assert!(request("3,10,,reset,,3").is_some_and(|row| row.is_broken && !row.good));
        assert_eq!(completion("0,0,10,10,stalled,128,1,30"), row(10, None, false, true));
        assert_eq!(operations("target cache: 5,267 PUT, 0 GET of which 0 found\n"), Some(5_267));
        assert_eq!(operations("no"), None);
    }
}
