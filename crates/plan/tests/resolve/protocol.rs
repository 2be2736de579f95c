//! HTTP/1.1, HTTP/2, or the choice of the server.

use plimsoll_core::{Nanos, Rate};
use plimsoll_plan::{Overload, Plan, Protocol};

use crate::resolve::flags::plan;

const HTTP: &str = "http://a.test/x";
const HTTPS: &str = "https://a.test/x";

fn protocols(plan: &Plan) -> Vec<Protocol> {
    plan.targets.iter().map(|target| target.protocol).collect()
}

/// Returns the TLS configuration of the targets, with the protocols that it offers.
fn offered(plan: &Plan) -> String {
    let tls = plan.targets.iter().find_map(|target| target.tls.as_ref()).expect("a target with TLS");
    format!("{:?}", tls.config)
}

#[test]
fn the_protocol_is_what_the_flags_say_for_the_scheme() {
    use Protocol::{Http1, Http2, Negotiated};
    for (line, expected) in [
        (&[HTTP][..], &[Http1][..]),
        (&[HTTP, "--http1.1"], &[Http1]),
        (&[HTTP, "--http2"], &[Http2]),
        (&[HTTP, "--http2-prior-knowledge"], &[Http2]),
        (&[HTTP, HTTPS, "--insecure"], &[Http1, Http1]),
        (&[HTTP, HTTPS, "--insecure", "--http2"], &[Http2, Http2]),
        (&[HTTPS, "--insecure", "--alpn", "h2"], &[Http2]),
        (&[HTTPS, "--insecure", "--alpn", "http/1.1"], &[Http1]),
        (&[HTTPS, "--insecure", "--alpn", "h2, http/1.1"], &[Negotiated]),
        (&[HTTPS, HTTP, "--insecure", "--alpn", "http/1.1,h2"], &[Negotiated, Http1]),
        (&[HTTP, "--http2", "--unix-socket", "/run/s"], &[Http2]),
    ] {
        let plan = plan(line);
        assert_eq!(protocols(&plan), expected, "{line:?}");
        for target in &plan.targets {
            assert_eq!(target.book.is_some(), target.protocol.may_be_http2(), "{line:?}");
        }
    }
}

#[test]
fn tls_offers_what_is_to_be_spoken() {
    for (flags, protocols) in [
        (&[][..], &["http/1.1"][..]),
        (&["--http2"], &["h2"]),
        (&["--alpn", "h2,http/1.1"], &["h2", "http/1.1"]),
        (&["--alpn", "http/1.1,h2"], &["http/1.1", "h2"]),
    ] {
        let line = [&[HTTPS, "--insecure"], flags].concat();
        let expected = protocols.iter().map(|name| name.as_bytes().to_vec()).collect::<Vec<_>>();
        assert!(offered(&plan(&line)).contains(&format!("{expected:?}")), "{line:?}");
    }
}

#[test]
fn http2_has_the_settings_of_h2load() {
    let defaults = plan(&[HTTP, "--http2"]);
    let (options, window) = (&defaults.http2, (1 << 30) - 1);
    assert_eq!((options.stream_window, options.connection_window), (window, window));
    assert_eq!((options.header_table_size, options.encoder_table_size), (4096, 4096));
    assert_eq!((options.max_frame_size, options.max_streams), (16_384, 1));
    assert_eq!(options.limits.list_bytes as usize, defaults.limits.head_bytes);
    assert_eq!(defaults.ping_interval, None);

    let set = plan(&[
        HTTP,
        "--http2",
        "--streams",
        "32",
        "--window-bits",
        "16",
        "--connection-window-bits",
        "31",
        "--header-table-size",
        "0",
        "--encoder-header-table-size",
        "1KiB",
        "--max-frame-size",
        "64KiB",
        "--max-head-bytes",
        "8KiB",
        "--ping-interval",
        "2s",
    ]);
    let options = &set.http2;
    assert_eq!((options.stream_window, options.connection_window), (65_535, (1 << 31) - 1));
    assert_eq!((options.header_table_size, options.encoder_table_size), (0, 1024));
    assert_eq!((options.max_frame_size, options.max_streams), (65_536, 32));
    assert_eq!(options.limits.list_bytes, 8192);
    assert_eq!(set.ping_interval, Some(Nanos::from_secs(2)));
}

#[test]
fn streams_are_users_of_the_closed_model_and_a_limit_of_the_open_one() {
    let streams = |line: &[&str]| {
        let connections = plan(&[&[HTTP], line].concat()).connections;
        assert_eq!((connections.depth, connections.keep_alive), (1, true));
        connections.streams
    };
    assert_eq!(streams(&[]), 1);
    assert_eq!(streams(&["--rate", "100"]), 1);
    assert_eq!(streams(&["--http2"]), 1);
    assert_eq!(streams(&["--http2", "--rate", "100"]), 100);
    assert_eq!(streams(&["--http2", "--rate", "100", "--max-requests-per-connection", "7"]), 7);
    assert_eq!(streams(&["--http2", "--streams", "5", "--rate", "100"]), 5);
    // h2loadrunner's own example gives it twice.
    assert_eq!(streams(&["--http2", "--streams", "512", "--streams", "512"]), 512);
    let negotiated = plan(&[HTTPS, "--insecure", "--alpn", "h2,http/1.1", "--streams", "8"]);
    assert_eq!((negotiated.connections.streams, negotiated.connections.depth), (8, 1));
}

#[test]
fn connections_have_an_age_and_a_pace_whatever_is_spoken() {
    for protocol in ["--http1.1", "--http2"] {
        let connections = plan(&[
            HTTP,
            protocol,
            "--connection-lifetime",
            "5s",
            "--connection-inactivity",
            "300ms",
            "--connection-rate",
            "600/m",
            "--max-requests-per-connection",
            "9",
        ])
        .connections;
        assert_eq!(connections.lifetime, Some(Nanos::from_secs(5)));
        assert_eq!(connections.inactivity, Some(Nanos::from_millis(300)));
        assert_eq!(connections.rate, Some(Rate::per_second(10)));
        assert_eq!(connections.max_requests, Some(9));
    }
    let plain = plan(&[HTTP]).connections;
    assert_eq!((plain.lifetime, plain.inactivity, plain.rate), (None, None, None));
}

#[test]
fn the_limit_of_a_response_has_two_names() {
    let timeout = |line: &[&str]| plan(&[&[HTTP], line].concat()).timeout;
    assert_eq!(timeout(&["--stream-timeout", "2s"]), Nanos::from_secs(2));
    assert_eq!(timeout(&["--stream-timeout", "2s", "--timeout", "2000ms"]), Nanos::from_secs(2));
}

#[test]
fn an_open_run_grows_by_connections_when_their_streams_are_busy() {
    let plan = plan(&[HTTP, "--http2", "--rate", "1000"]);
    let plimsoll_plan::Load::Open { overload, .. } = plan.load else { panic!("closed") };
    assert_eq!(overload, Overload::Grow);
    assert_eq!((plan.connections.initial, plan.connections.max), (16, 10_000));
}

#[test]
fn every_url_is_a_scenario_of_one_step() {
    let plan = plan(&["http://a.test/1", "http://b.test/2", "--http2"]);
    let scenarios: Vec<_> =
        plan.scenarios.iter().map(|scenario| (scenario.name.as_str(), scenario.steps.clone())).collect();
    assert_eq!(scenarios, [("GET http://a.test/1", 0..1), ("GET http://b.test/2", 1..2)]);
    assert!(plan.variables.is_empty() && plan.steps.iter().all(|step| step.needs.is_nothing()));
}

#[test]
fn headers_of_a_connection_are_no_problem_where_http1_may_be_spoken() {
    plan(&[HTTPS, "--insecure", "--alpn", "h2,http/1.1", "--header", "Keep-Alive: 5"]);
    plan(&[HTTP, "--http2", "--header", "TE: trailers", "--header", "Connection:"]);
}
