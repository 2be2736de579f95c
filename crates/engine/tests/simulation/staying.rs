//! Iterations stay with the connection, and in a pool with the server, that answered their last request.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plimsoll_driver::Endpoint;
use plimsoll_engine::{Backends, Control, TargetAddress, run};
use plimsoll_metrics::RunRecord;
use plimsoll_testkit::{Answer, Faults, Law, SimOpen, SimOptions, Truth};

use super::plans::of_text;
use super::{Behaviour, MS, server, simulate};

/// Each iteration has a number of its own, and says to whom it comes what it was told before.
const STEPS: &str = "[{set: {n: '${sequence}'}}, {post: '/a/${n}', extract: {who: {json: /id}}}, \
                     THINK{get: '/b/${n}/${who}'}, {set: {where: '/c/${n}/${who}'}}, {get: '${where}'}, \
                     {method: DELETE, same_url: true}]";

fn second() -> Endpoint {
    Endpoint::Tcp(([127, 0, 0, 2], 80).into())
}

/// Carries out the steps on a pool of one or two servers, which tell their names.
fn carry_out(settings: &str, think: &str, behaviour: &Behaviour, both: bool) -> (RunRecord, Vec<Truth>) {
    let says =
        |id: u32| Behaviour { answer: Answer::with_body(format!("{{\"id\": {id}}}")), ..behaviour.clone() };
    let elsewhere = Endpoint::Tcp(([127, 0, 0, 3], 80).into());
    let servers = vec![(server(), says(1)), (second(), says(2)), (elsewhere.clone(), says(3))];
    let share = if both { ", share: [other.test]" } else { "" };
    let steps = STEPS.replace("THINK", think);
    let text = format!(
        "run: {{{settings}}}\ntargets: {{api: {{url: http://sim.test{share}}}, rest: http://rest.test}}\n\
         scenarios: [{{target: api, steps: {steps}}}]"
    );
    let at = |endpoint, member| TargetAddress { endpoint, tunnel: None, member };
    let mut addresses = vec![at(server(), 0)];
    addresses.extend(both.then(|| at(second(), 1)));
    let addresses: [Arc<[TargetAddress]>; 2] = [addresses.into(), vec![at(elsewhere, 0)].into()];
    let open = SimOpen::new(SimOptions { servers, keep_requests: true, ..SimOptions::default() });
    let backends = Backends::of(open.clone());
    let record = run(&of_text(text), &backends, &addresses, &Control::default(), &mut |_| {});
    (record.expect("the run ends"), open.truth().entries())
}

/// Path segments and host of a request.
fn read(request: &[u8]) -> (Vec<String>, String) {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let path = text.split(' ').nth(1).expect("a path").trim_start_matches('/');
    let host = text.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host").trim();
    (path.split('/').map(str::to_owned).collect(), host.to_owned())
}

/// Seen as a client of h2loadrunner with `request-per-second` and `load-share-hosts`: what was created on one
/// host was deleted on the other, so that 20 of 20 deletes were 404.
#[test]
fn an_iteration_stays_with_its_server() {
    let closing = Faults { close_after: Some(1), announce_close: true, ..Faults::default() };
    let own = |faults: &Faults| Behaviour {
        service: Law::Exponential { mean: MS * 3 },
        faults: faults.clone(),
        ..Behaviour::default()
    };
    let http2 = ", http2: true, max_concurrent_streams: 8";
    for load in ["rate: 100, rate_of: requests", "rate: 30", "connections: 7"] {
        // Over HTTP/2 a server that goes away leaves requests that are sent again once only.
        for (protocol, faults) in [("", &Faults::default()), ("", &closing), (http2, &Faults::default())] {
            for think in ["", "{think: 20ms}, ", "{get: /x, target: rest}, "] {
                for both in [false, true] {
                    let settings = format!("{load}, duration: 2s, threads: 2{protocol}");
                    let (record, entries) = carry_out(&settings, think, &own(faults), both);
                    let case = format!("{settings}, {think}, {faults:?}, {both}");
                    assert!(record.accounting.ok > 100, "{case}: {:?}", record.accounting);
                    assert_eq!(record.accounting.failed, 0, "{case}: {:?}", record.error_examples);
                    let mut servers: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
                    let mut connections: BTreeMap<String, BTreeSet<(u32, u64)>> = BTreeMap::new();
                    for entry in &entries {
                        let (path, host) = read(&entry.request);
                        if path[0] == "x" {
                            continue;
                        }
                        let connection = (entry.world, entry.conn);
                        connections.entry(path[1].clone()).or_default().insert(connection);
                        servers.entry(path[1].clone()).or_default().insert(host);
                    }
                    assert!(servers.values().all(|hosts| hosts.len() == 1), "{case}: {servers:?}");
                    // The URL of a request before is that of the server that it was sent to.
                    let all: BTreeSet<_> = connections.values().flatten().collect();
                    if faults.close_after.is_none() && load == "connections: 7" {
                        assert!(all.len() <= 7, "{case}: {} connections", all.len());
                    }
                    let used: BTreeSet<_> = servers.values().flatten().collect();
                    assert_eq!(used.len(), if both { 2 } else { 1 }, "{case}");
                    if faults.close_after.is_none() && think.is_empty() && !load.contains("requests") {
                        let alone = connections.values().filter(|used| used.len() == 1).count();
                        assert_eq!(alone, connections.len(), "{case}");
                    }
                    // An idle connection may have another request when the next one of its last
                    // iteration is due; over HTTP/2 both have room.
                    if faults.close_after.is_none() && protocol.contains("http2") {
                        assert!(connections.values().all(|used| used.len() == 1), "{case}");
                    }
                }
            }
        }
    }
}

/// Seen as a client of h2loadrunner with fewer requests than streams: 40 requests on 40 connections of ten
/// streams were all sent on four of them.
#[test]
fn few_iterations_are_spread_over_all_connections() {
    for (settings, pipeline) in
        [("http2: true, max_concurrent_streams: 10", 10), ("pipeline: 4", 4), ("pipeline: 1", 1)]
    {
        for requests in [8_usize, 9, 20, 8 * pipeline] {
            let settings = format!("connections: 8, iterations: {requests}, {settings}");
            let behaviour = Behaviour { service: Law::Constant(MS * 50), ..Behaviour::default() };
            let servers = vec![(server(), behaviour)];
            let options = SimOptions { servers, ..SimOptions::default() };
            let text = format!(
                "run: {{{settings}}}\ntargets: {{api: {{url: http://sim.test}}}}\nscenarios: [{{steps: [{{get: /}}]}}]"
            );
            let (record, truth) = simulate(&of_text(text), options);
            assert_eq!(record.accounting.ok, requests as u64, "{settings}");
            let mut of_connections = BTreeMap::new();
            for entry in truth.entries() {
                *of_connections.entry(entry.conn).or_insert(0) += 1;
            }
            let (least, most) = (of_connections.values().min(), of_connections.values().max());
            assert_eq!(of_connections.len(), 8, "{settings}: {of_connections:?}");
            assert!(most.unwrap() - least.unwrap() <= 1, "{settings}: {of_connections:?}");
        }
    }
}

/// A connection of a server that came up makes room for one to the member that an iteration stays with.
#[test]
fn an_iteration_that_stays_keeps_to_the_limit_of_connections() {
    let faults = Faults { close_after: Some(1), announce_close: true, ..Faults::default() };
    let closing = Behaviour { faults, service: Law::Constant(MS * 30), ..Behaviour::default() };
    let third = Endpoint::Tcp(([10, 0, 0, 2], 81).into());
    let servers = vec![(server(), closing.clone()), (second(), closing), (third, Behaviour::default())];
    for load in ["rate: 40", "rate: 120, rate_of: requests"] {
        let text = format!(
            "run: {{{load}, duration: 2s, connections: 3, overload: queue}}
targets: {{api: {{url: http://sim.test, share: [other.test]}}}}
scenarios: [{{steps: [{{set: {{there: 'http://10.0.0.2:81'}}}}, {{get: '${{there}}/a'}}, {{post: /b}}, {{get: /c}}]}}]"
        );
        let at = |endpoint, member| TargetAddress { endpoint, tunnel: None, member };
        let addresses: Arc<[TargetAddress]> = vec![at(server(), 0), at(second(), 1)].into();
        let open = SimOpen::new(SimOptions { servers: servers.clone(), ..SimOptions::default() });
        let backends = Backends::of(open);
        let record = run(&of_text(text), &backends, &[addresses], &Control::default(), &mut |_| {})
            .expect("the run ends");
        assert!(record.accounting.ok > 100, "{load}: {:?}", record.accounting);
        assert_eq!(record.connections.limit, 3);
        assert!(record.connections.peak_open <= 3, "{load}: {}", record.connections.peak_open);
    }
}

/// A server that is gone does not hold up the iterations that began there.
#[test]
fn an_iteration_leaves_a_server_that_is_gone() {
    let faults = Faults { close_after: Some(40), refuse_connect: 0.5, ..Faults::default() };
    let behaviour = Behaviour { faults, ..Behaviour::default() };
    for load in ["rate: 100, rate_of: requests", "rate: 30", "connections: 7"] {
        let settings = format!("{load}, duration: 3s");
        let (record, _) = carry_out(&settings, "{think: 20ms}, ", &behaviour, true);
        assert!(record.accounting.ok > 200, "{load}: {:?}", record.accounting);
        assert_eq!(record.accounting.check(), Ok(()));
        assert!(record.connections.failed.total() > 0, "{load}");
    }
}
