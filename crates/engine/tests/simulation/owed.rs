//! Connections grow with what is owed: where slow answers are mixed with fast ones, no arrival waits for a
//! connection, and the times are those of the server.

use plimsoll_testkit::{Faults, Law, Pause};

use super::*;

type Flags = &'static [(&'static str, &'static str)];

/// One way.
const LATENCY: Nanos = Nanos::from_micros(50);

fn mixed(fast: Nanos, slow: Nanos, slow_share: f64) -> Behaviour {
    Behaviour { service: Law::Bimodal { fast, slow, slow_share }, ..Behaviour::default() }
}

fn hanging(drop_reply: f64) -> Behaviour {
    let faults = Faults { drop_reply, ..Faults::default() };
    Behaviour { service: Law::Constant(MS * 2), faults, ..Behaviour::default() }
}

const RATES: &[(&str, &str)] = &[("60", "6s"), ("150", "6s"), ("200", "10s"), ("2000", "3s")];

const WAYS: &[(&str, Flags)] = &[
    ("uniform", &[]),
    ("poisson", &[("--arrival", "poisson")]),
    ("timeout", &[("--timeout", "2s")]),
    ("short timeout", &[("--timeout", "500ms")]),
    ("not kept", &[("--disable-keepalive", "")]),
    ("warm-up", &[("--warmup", "1s")]),
    ("two workers", &[("-t", "2")]),
    ("h2", &[("--http2", ""), ("-m", "4")]),
];

/// Most of the times in which arrivals wait to be started. A connection was granted in the first pass.
const MOST_LAG: Nanos = Nanos::from_micros(50);

#[test]
fn no_arrival_waits_for_a_connection_while_others_are_slow() {
    let second = Nanos::from_secs(1);
    let behaviours = [
        ("5 % of 10 s", MS * 2, mixed(MS * 2, second * 10, 0.05)),
        ("10 % of 5 s", MS, mixed(MS, second * 5, 0.1)),
        ("20 % of 3 s", MS * 2, mixed(MS * 2, second * 3, 0.2)),
        ("50 % of 1 s", MS * 2, mixed(MS * 2, second, 0.5)),
        ("1 % of 5 s", Nanos::from_micros(100), mixed(Nanos::from_micros(100), second * 5, 0.01)),
        ("20 % hang", MS * 2, hanging(0.2)),
        ("5 % hang", MS * 2, hanging(0.05)),
    ];
    let (mut wrong, mut cells) = (Vec::new(), 0);
    for (behaviour, fast, of) in &behaviours {
        for (rate, length) in RATES {
            for (way, more) in WAYS {
                cells += 1;
                let mut flags = vec![("--rate", *rate), ("-d", *length), ("--drain", "12s")];
                flags.extend(*more);
                let options = SimOptions { latency: LATENCY, ..world(of.clone()) };
                let (record, _) = carry_out(&plan(&flags), options);
                let name = format!("{behaviour}, {rate}/s, {way}");
                let account = &record.accounting;
                if account.never_started + account.dropped > 0 {
                    wrong.push(format!("{name}: {account:?}"));
                }
                let lag = Nanos(record.total.start_lag.max().unwrap());
                if lag > MOST_LAG {
                    wrong.push(format!(
                        "{name}: arrivals wait up to {lag:?}, {} connections at most",
                        record.connections.peak_open
                    ));
                }
                // Of the fast ones, with a connection that is opened for each of them, and for settings.
                let truth = *fast + LATENCY * 2;
                let median = percentile(&record, 40.0);
                if median < truth || median > truth + LATENCY * 6 {
                    wrong.push(format!("{name}: p40 is {median:?} where {truth:?} is true"));
                }
            }
        }
    }
    assert_eq!(cells, behaviours.len() * RATES.len() * WAYS.len());
    assert!(wrong.is_empty(), "{} in {cells} cells are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// A stall of ours is no reason for thousands of connections, nor for the fast answers to wait for long: the
/// slow ones hold the connections that were open before.
#[test]
fn a_stall_of_ours_amid_slow_answers_brakes_for_a_moment() {
    let stalls = vec![Pause { at: Nanos::from_secs(1_002), length: Nanos::from_millis(100) }];
    let behaviour = mixed(Nanos::from_micros(100), Nanos::from_secs(2), 0.01);
    let options = SimOptions { stalls, latency: LATENCY, ..world(behaviour) };
    let (record, _) = carry_out(&plan(&[("--rate", "10k"), ("-d", "4s")]), options);
    // 200 slow ones are in flight at any time.
    assert!((200..600).contains(&record.connections.peak_open), "{}", record.connections.peak_open);
    let lag = Nanos(record.total.start_lag.max().unwrap());
    assert!(lag < Nanos::from_millis(150), "{lag:?}");
    assert!(record.connections.blocked > record.connections.blocked_at_limit, "it is said");
}
