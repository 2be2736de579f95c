//! Servers that the plan does not name, in simulated worlds: redirects to them, URLs that variables have.

use plimsoll_core::ErrorClass;
use plimsoll_driver::Endpoint;
use plimsoll_metrics::RunRecord;
use plimsoll_plan::Plan;
use plimsoll_scenario::Location;
use plimsoll_scenario::reference::{Origin, Resource};
use plimsoll_testkit::{Answer, Behaviour, Faults, SimOptions, TruthLog};

use super::plans::{answering, good, good_by_step, iterations, of_text};
use super::{carry_out, server, simulate};

/// The server that no plan here names. Its address needs no resolver.
const OTHER: &str = "10.0.0.2:81";

fn other() -> Endpoint {
    Endpoint::Tcp(([10, 0, 0, 2], 81).into())
}

fn plan(settings: &str, rest: &str) -> Plan {
    of_text(format!("run: {{{settings}}}\ntargets: {{api: http://me:word@sim.test}}\n{rest}"))
}

/// A server that answers with this status and these fields.
fn with_fields(status: u16, fields: &[(&str, &str)]) -> Behaviour {
    let headers = fields.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    answering(Answer { status, headers, ..Answer::default() })
}

fn both(first: Behaviour, second: Behaviour) -> SimOptions {
    let servers = vec![(server(), first), (other(), second)];
    SimOptions { servers, keep_requests: true, ..SimOptions::default() }
}

/// The requests that name `host`, in lower case.
fn asked(truth: &TruthLog, host: &str) -> Vec<String> {
    let requests = truth.entries().into_iter().map(|t| String::from_utf8_lossy(&t.request).to_lowercase());
    requests.filter(|request| request.contains(&format!("host: {host}\r\n"))).collect()
}

fn errors(record: &RunRecord, class: ErrorClass) -> u64 {
    record.total.errors[class]
}

const PROTOCOLS: [&str; 2] = ["", ", http2: true, max_concurrent_streams: 3"];

#[test]
fn a_redirect_to_another_server_is_followed_without_what_was_meant_for_the_first() {
    let to_other = format!("http://{OTHER}/there?x#part");
    for protocol in PROTOCOLS {
        let settings = format!("connections: 2, iterations: 20, follow_redirects: 1{protocol}");
        let rest = "scenarios: [{cookies: true, headers: {Cookie: own=1, X-Kept: 2, X-Api-Key: hidden, \
                    Session-Token: hidden}, steps: [{get: /login}]}]";
        let moved = with_fields(302, &[("Location", &to_other), ("Set-Cookie", "a=1")]);
        let there = with_fields(200, &[("Set-Cookie", "b=2")]);
        let (record, truth) = simulate(&plan(&settings, rest), both(moved, there));
        assert_eq!((record.accounting.ok, record.accounting.redirects_followed), (20, 20), "{protocol}");
        assert_eq!(iterations(&record), [20, 20, 0, 0]);
        let (first, second) = (asked(&truth, "sim.test"), asked(&truth, OTHER));
        assert_eq!((first.len(), second.len()), (20, 20));
        assert!(first.iter().all(|request| request.contains("authorization: basic ")));
        assert!(first.iter().all(|request| request.contains("session-token: hidden")));
        for request in second {
            assert!(request.starts_with("get /there?x http/") && request.contains("x-kept: 2"), "{request}");
            for secret in ["authorization", "cookie", "hidden"] {
                assert!(!request.contains(secret), "{secret}: {request}");
            }
        }
        let peers: Vec<_> = record.peers.iter().map(|peer| (&*peer.authority, &*peer.origin)).collect();
        assert_eq!(peers, [("sim.test", ""), (OTHER, &*format!("http://{OTHER}"))]);
        assert!(record.peers.iter().all(|peer| !peer.protocol.is_empty()), "{:?}", record.peers);
    }
}

/// A user without a session goes on where its scenario begins, not where it was led to.
#[test]
fn users_who_were_led_away_come_back() {
    for load in ["connections: 3, duration: 1s", "rate: 100, duration: 1s, connections: 5"] {
        for protocol in PROTOCOLS {
            let settings = format!("{load}, follow_redirects: 3{protocol}");
            let moved = with_fields(307, &[("Location", &*format!("//{OTHER}/there"))]);
            let rest = "scenarios: [{steps: [{get: /}]}]";
            let (record, truth) = simulate(&plan(&settings, rest), both(moved, good()));
            assert!(record.accounting.ok > 90, "{settings}: {:?}", record.accounting);
            assert_eq!(record.accounting.failed, 0);
            assert_eq!(asked(&truth, OTHER).len() as u64, record.accounting.redirects_followed);
            // Every user has a connection to each of both servers; arrivals share all of them.
            assert!(record.connections.opened <= 10, "{}", record.connections.opened);
        }
    }
}

/// A follower goes on naming a leader that is dead: that is not a reason to ask it as fast as it answers.
#[test]
fn users_who_are_led_to_a_dead_server_wait_longer_each_time() {
    let settings = "connections: 8, duration: 10s, follow_redirects: 1, no_preflight: true";
    let moved = with_fields(307, &[("Location", &*format!("//{OTHER}/there"))]);
    let dead = Behaviour { faults: Faults { refuse_connect: 1.0, ..Faults::default() }, ..good() };
    let (record, _) = simulate(&plan(settings, "scenarios: [{steps: [{post: /}]}]"), both(moved, dead));
    let (refused, accounting) = (errors(&record, ErrorClass::ConnectRefused), &record.accounting);
    assert_eq!((accounting.ok, accounting.failed), (0, refused));
    // Some ten until a user waits for a second each time, and then one a second.
    assert!((8 * 10..8 * 40).contains(&refused), "{refused}");
}

/// In the open model the limit of connections is one of all servers together: an idle one makes room.
#[test]
fn servers_that_come_up_share_the_limit_of_connections() {
    let loads = [
        "connections: 4, rate: 400, duration: 1s, overload: queue",
        "connections: 4, rate: 400, duration: 1s, overload: grow, threads: 2",
        "connections: 4, rate: 4000, duration: 1s, overload: drop",
        "connections: 1, rate: 100, iterations: 100",
    ];
    for load in loads {
        for protocol in PROTOCOLS {
            let settings = format!("{load}, follow_redirects: 1{protocol}");
            let moved = with_fields(307, &[("Location", &*format!("//{OTHER}/there"))]);
            let rest = "scenarios: [{steps: [{get: /}]}]";
            let (record, truth) = simulate(&plan(&settings, rest), both(moved, good()));
            let a = &record.accounting;
            assert!(a.ok >= 100 && a.failed + a.timed_out == 0, "{settings}: {a:?}");
            assert_eq!(asked(&truth, OTHER).len() as u64, a.redirects_followed, "{settings}");
            let connections = &record.connections;
            assert!(connections.peak_open <= connections.limit && connections.limit <= 4, "{connections:?}");
        }
    }
}

/// A location may be any reference, and starts from the path that was requested, also where that differs from
/// request to request or is itself that of a redirect.
#[test]
fn relative_redirects_start_from_the_path_that_was_requested() {
    for (path, location, second) in [
        ("/shop/cart?a=b", "landed?c=d", "/shop/landed?c=d"),
        ("/shop/cart?a=b", "?page=2", "/shop/cart?page=2"),
        ("/shop/cart/", "../x/./y#part", "/shop/x/y"),
        ("/shop/cart", "../../../x", "/x"),
        ("/shop/cart", "", "/shop/cart"),
        ("/shop/cart", "//SIM.test:80/x", "/x"),
        ("/shop/cart", "/la nded?x=\u{e9}", "/la%20nded?x=%c3%a9"),
        ("/shop/${sequence}/cart", "pay", "/shop/0/pay"),
        ("/shop/${sequence}?b", "?${b}", "/shop/0?${b}"),
        ("/${pick(a, a)}/cart", "./", "/a/"),
    ] {
        for protocol in PROTOCOLS {
            let settings = format!("connections: 1, iterations: 1, follow_redirects: 2{protocol}");
            let moved = with_fields(302, &[("Location", location)]);
            let rest = format!("scenarios: [{{steps: [{{get: '{path}'}}]}}]");
            let (record, truth) = simulate(&plan(&settings, &rest), both(moved, good()));
            assert_eq!(record.accounting.redirects_followed, 2, "{location}");
            let asked = asked(&truth, "sim.test");
            let target = |number: usize| asked[number].split(' ').nth(1).unwrap_or_default().to_owned();
            assert_eq!(target(1), second, "{path} {location}");
            // The third is relative to the second.
            let base =
                Resource { origin: Origin { https: false, authority: b"sim.test" }, path: second.as_bytes() };
            let third = Location::resolve(location.as_bytes(), base).expect("a resource").path;
            assert_eq!(target(2), third.to_lowercase(), "{path} {location}");
        }
    }
}

#[test]
fn redirects_to_and_fro_have_an_end() {
    let there = with_fields(302, &[("Location", &*format!("http://{OTHER}/there"))]);
    let back = with_fields(302, &[("Location", "http://SIM.test:80/back")]);
    let rest = "scenarios: [{steps: [{get: /}]}]";
    let plan = plan("connections: 1, iterations: 5, follow_redirects: 4", rest);
    let (record, truth) = simulate(&plan, both(there, back));
    assert_eq!((errors(&record, ErrorClass::Redirect), record.accounting.failed), (5, 5));
    assert_eq!((asked(&truth, "sim.test").len(), asked(&truth, OTHER).len()), (15, 10));
    assert_eq!(record.peers.len(), 2, "another way to write an authority is not another server");
    // Credentials that were removed on the redirect there are not restored on the redirect back.
    let backs = asked(&truth, "sim.test").into_iter().filter(|request| request.starts_with("get /back "));
    assert!(backs.into_iter().all(|request| !request.contains("authorization")));
}

#[test]
fn a_method_that_a_redirect_has_changed_stays_changed() {
    let there = with_fields(303, &[("Location", &*format!("http://{OTHER}/there"))]);
    let further = with_fields(307, &[("Location", "/further")]);
    let rest = "scenarios: [{steps: [{post: /, body: x}]}]";
    let (_, truth) =
        simulate(&plan("connections: 1, iterations: 1, follow_redirects: 2", rest), both(there, further));
    let methods: Vec<String> = asked(&truth, OTHER)
        .iter()
        .map(|request| request.split(" http").next().unwrap().to_owned())
        .collect();
    assert_eq!(methods, ["get /there", "get /further"]);
}

#[test]
fn a_url_of_a_response_says_who_is_asked() {
    let rest = "scenarios: [{cookies: true, headers: {X-Own: 1}, steps: [
        {post: /orders, extract: {order: {header: location, as_url: true}}},
        {get: '${order}', headers: {Authorization: for all},
         extract: {part: {header: location, as_url: true}}},
        {get: '${part}/x?y'}, {same_url: true, method: DELETE}]}]";
    for protocol in PROTOCOLS {
        for (location, host) in [(&*format!("http://{OTHER}/orders/5"), OTHER), ("orders/5", "sim.test")] {
            let made = with_fields(201, &[("Location", location), ("Set-Cookie", "a=1")]);
            let there = with_fields(200, &[("Location", "part"), ("Set-Cookie", "b=2; Path=/")]);
            let plan = plan(&format!("connections: 2, iterations: 10{protocol}"), rest);
            let (record, truth) = simulate(&plan, both(made, there));
            assert_eq!(good_by_step(&record), [10, 10, 10, 10], "{:?}", record.error_examples);
            let requests = asked(&truth, host);
            if host != OTHER {
                assert_eq!(requests.len(), 40);
                continue;
            }
            assert_eq!(requests.len(), 30);
            let count = |text: &str| requests.iter().filter(|request| request.contains(text)).count();
            let of = |start: &str| requests.iter().filter(|request| request.starts_with(start)).count();
            assert_eq!(
                (of("get /orders/5 "), of("get /orders/part/x?y "), of("delete /orders/part/x?y ")),
                (10, 10, 10)
            );
            // Only what the step itself says; and the cookies of this server alone.
            assert_eq!(
                (count("authorization: for all"), count("authorization"), count("x-own: 1")),
                (10, 10, 30)
            );
            assert_eq!((count("cookie: b=2"), count("a=1")), (20, 0));
        }
    }
}

#[test]
fn a_variable_may_have_scheme_and_host_alone() {
    let rest = format!(
        "scenarios: [{{variables: {{base: 'http://{OTHER}', whole: 'http://{OTHER}?q', own: 'http://sim.test/'}},
        steps: [{{get: '${{base}}/x'}}, {{get: '${{base}}'}}, {{get: '${{whole}}'}}, {{get: '${{own}}/y'}}]}}]"
    );
    let (record, truth) = simulate(&plan("connections: 1, iterations: 1", &rest), both(good(), good()));
    assert_eq!(record.accounting.ok, 4);
    let lines = |host| -> Vec<String> {
        asked(&truth, host).iter().map(|request| request.lines().next().unwrap().to_owned()).collect()
    };
    assert_eq!(lines(OTHER), ["get /x http/1.1", "get / http/1.1", "get /?q http/1.1"]);
    assert_eq!(lines("sim.test"), ["get /y http/1.1"]);
    assert!(asked(&truth, "sim.test")[0].contains("authorization: basic"), "it is the step's own target");
}

#[test]
fn a_server_without_an_address_is_an_error_of_its_own() {
    let moved = with_fields(302, &[("Location", "http://[2001:db8::1]/")]);
    let rest = "scenarios: [{steps: [{get: /}]}]";
    for (load, at_least) in [("iterations: 5", 5), ("duration: 3s", 100)] {
        let settings = format!("connections: 1, {load}, follow_redirects: 1, ipv4: true");
        let (record, _) = simulate(&plan(&settings, rest), both(moved.clone(), good()));
        let failed = errors(&record, ErrorClass::Resolve);
        assert!(failed >= at_least && failed == record.accounting.failed, "{:?}", record.accounting);
        assert!(record.error_examples["resolve"].contains("no IPv4 address"), "{:?}", record.error_examples);
        assert_eq!((record.accounting.redirects_followed, record.peers.len()), (0, 1));
    }
    let secret = with_fields(302, &[("Location", "http://me:topsecret@10.0.0.2:81/")]);
    let settings = "connections: 1, iterations: 5, follow_redirects: 1";
    let (record, _) = simulate(&plan(settings, rest), both(secret, good()));
    assert_eq!(errors(&record, ErrorClass::Resolve), 5);
    assert!(!record.error_examples["resolve"].contains("topsecret"), "{:?}", record.error_examples);
}

#[test]
fn no_more_servers_come_up_than_a_run_may_have() {
    let rest =
        "scenarios: [{steps: [{set: {base: 'http://10.0.0.2:${range(1000,1100)}'}}, {get: '${base}/'}]}]";
    for threads in [1, 4] {
        let settings = format!("connections: 4, threads: {threads}, iterations: 200");
        let (record, _) = carry_out(&plan(&settings, rest), both(good(), good()));
        let known = errors(&record, ErrorClass::ConnectRefused) + errors(&record, ErrorClass::TooManyServers);
        assert_eq!((record.accounting.started, known), (200, 200), "{:?}", record.error_examples);
        assert_eq!(record.peers.len(), 1 + 64);
        assert!(errors(&record, ErrorClass::TooManyServers) >= 36);
        assert!(record.error_examples["too_many_servers"].contains("64"), "{:?}", record.error_examples);
    }
}
