//! Meaning of valid command lines.

use plimsoll_core::{Nanos, Rate};
use plimsoll_plan::{Address, BackendChoice, End, Family, Load, Overload, Pacing, Plan, TrialLoad};
use plimsoll_schedule::{Process, Profile, Stage};

use crate::resolve::flags::{Memory, plan, request, resolve_with};

const URL: &str = "http://a.test:8080/x";

fn seconds(seconds: u64) -> Nanos {
    Nanos::from_secs(seconds)
}

fn hold(rate: u64, duration: Nanos) -> Stage {
    Stage { duration, from: Rate::per_second(rate), to: Rate::per_second(rate) }
}

fn open(plan: &Plan) -> (&Profile, Process, Overload) {
    match &plan.load {
        Load::Open { profile, process, overload, .. } => (profile, *process, *overload),
        Load::Closed => panic!("closed"),
    }
}

/// Symptom: a threshold of the plan that a flag repeats was judged and listed twice.
#[test]
fn thresholds_that_ask_the_same_are_one() {
    let plan = plan(&[URL, "--threshold", "p99<1s", "--threshold", "p99<1s", "--threshold", "p99<2s"]);
    let thresholds: Vec<String> = plan.thresholds.iter().map(ToString::to_string).collect();
    assert_eq!(thresholds, ["p99<1s", "p99<2s"]);
}

#[test]
fn a_url_alone_is_ten_seconds_closed() {
    let plan = plan(&[URL]);
    assert!(matches!(plan.load, Load::Closed));
    assert_eq!(plan.end, End { duration: Some(seconds(10)), iterations: None });
    assert_eq!((plan.connections.initial, plan.connections.max, plan.connections.depth), (64, 64, 1));
    assert_eq!((plan.connections.keep_alive, plan.connections.max_requests), (true, None));
    assert_eq!((plan.threads, plan.seed, plan.redirects, plan.preflight), (1, 99, 0, true));
    assert_eq!((plan.timeout, plan.connect_timeout), (seconds(30), seconds(10)));
    assert_eq!((plan.warmup, plan.drain), (Nanos::ZERO, seconds(30)));
    assert_eq!((plan.pacing, plan.backend), (Pacing::Adaptive, BackendChoice::Auto));
    assert_eq!(plan.steps.len(), 1);
    assert_eq!(plan.steps[0].name, "GET http://a.test:8080/x");
    assert_eq!(plan.targets[0].authority, "a.test:8080");
    assert_eq!(plan.targets[0].address, Address::Host { host: "a.test".to_owned(), port: 8080 });
    assert!(plan.targets[0].tls.is_none());
    assert!(request(&plan, 0).starts_with("GET /x HTTP/1.1\r\nHost: a.test:8080\r\n"));
}

#[test]
fn every_setting_arrives() {
    let plan = plan(&[
        URL,
        "--connections",
        "12",
        "--threads",
        "3",
        "--duration",
        "2s",
        "--iterations",
        "100",
        "--timeout",
        "3s",
        "--connect-timeout",
        "4s",
        "--warmup",
        "1s",
        "--seed",
        "0x10",
        "--pipeline",
        "4",
        "--max-requests-per-connection",
        "8",
        "--source-ip",
        "127.0.0.2",
        "--source-ip",
        "127.0.0.3",
        "--precise",
        "--backend",
        "epoll",
        "--max-head-bytes",
        "8KiB",
        "--no-preflight",
        "--follow-redirects",
        "3",
    ]);
    assert_eq!(plan.end, End { duration: Some(seconds(2)), iterations: Some(100) });
    assert_eq!((plan.threads, plan.seed, plan.redirects, plan.preflight), (3, 16, 3, false));
    // Without --drain, owed responses are waited for as long as they may take, but not beyond 5 s.
    assert_eq!((plan.timeout, plan.connect_timeout, plan.drain), (seconds(3), seconds(4), seconds(3)));
    assert_eq!((plan.warmup, plan.pacing, plan.backend), (seconds(1), Pacing::Precise, BackendChoice::Epoll));
    assert_eq!(plan.limits.head_bytes, 8192);
    let connections = &plan.connections;
    assert_eq!((connections.initial, connections.max, connections.depth), (12, 12, 4));
    assert_eq!((connections.max_requests, connections.family), (Some(8), Family::V4));
    assert_eq!(connections.sources.len(), 2);
}

#[test]
fn few_iterations_lower_the_default_number_of_connections() {
    let few = plan(&[URL, "--iterations", "5"]);
    assert_eq!(few.connections.initial, 5);
    assert_eq!(few.end, End { duration: None, iterations: Some(5) });
    assert_eq!(plan(&[URL, "--iterations", "500"]).connections.initial, 64);
    assert_eq!(plan(&[URL, "--iterations", "5", "--connections", "5"]).connections.initial, 5);
    assert_eq!(plan(&[URL, "--iterations", "5", "--threads", "8"]).connections.initial, 8);
}

#[test]
fn a_rate_makes_the_model_open() {
    let grown = plan(&[URL, "--rate", "1000"]);
    let (profile, process, overload) = open(&grown);
    assert_eq!(profile.stages(), [hold(1000, seconds(10))]);
    assert_eq!((process, overload), (Process::Uniform, Overload::Grow));
    assert_eq!((grown.connections.initial, grown.connections.max), (16, 10_000));
    assert_eq!(grown.end, End { duration: Some(seconds(10)), iterations: None });

    let fixed = plan(&[URL, "--rate", "1000", "--connections", "32", "--arrival", "poisson"]);
    assert_eq!((open(&fixed).1, open(&fixed).2), (Process::Poisson, Overload::Queue));
    assert_eq!((fixed.connections.initial, fixed.connections.max), (32, 32));

    let bounded = plan(&[URL, "--rate", "1000", "--connections", "32", "--overload", "grow"]);
    assert_eq!((bounded.connections.initial, bounded.connections.max), (16, 32));
    let dropping = plan(&[URL, "--rate", "1000", "--overload", "drop"]);
    assert_eq!(open(&dropping).2, Overload::Drop);
    assert_eq!((dropping.connections.initial, dropping.connections.max), (64, 64));
}

#[test]
fn a_number_of_iterations_at_a_rate_fixes_the_profile() {
    for (rate, iterations) in [(1000, 500), (3, 10), (7, 1), (700_000, 1_000_003)] {
        let plan = plan(&[URL, "--rate", &rate.to_string(), "--iterations", &iterations.to_string()]);
        let (profile, ..) = open(&plan);
        // The last arrival is due before the profile ends, which is the only end, so all can finish.
        assert!(
            Rate::per_second(rate).arrival_at(iterations - 1) < profile.duration(),
            "{rate} {iterations}"
        );
        assert_eq!(plan.end.duration, None);
        assert_eq!(profile.total(), iterations, "{rate} {iterations}");
        assert_eq!(plan.end.iterations, Some(iterations));
    }
    // Behind a warm-up that ends between two arrivals there are still enough.
    let warmed = plan(&[URL, "--rate", "3", "--iterations", "10", "--warmup", "1100ms"]);
    let (profile, ..) = open(&warmed);
    let (shard, seed) = (plimsoll_core::Shard::WHOLE, 0);
    let mut arrivals = plimsoll_schedule::Arrivals::new(profile, Process::Uniform, seed, shard);
    let measured = std::iter::from_fn(|| arrivals.next()).filter(|arrival| arrival.at >= warmed.warmup);
    assert_eq!(measured.count(), 10);

    let poisson = plan(&[URL, "--rate", "100", "--iterations", "400", "--arrival", "poisson"]);
    // 400 + 6 * sqrt(400) + 20 arrivals at 100/s.
    assert_eq!((open(&poisson).0.duration(), poisson.end.duration), (Nanos::from_millis(5400), None));
    let shorter = plan(&[URL, "--rate", "100", "--iterations", "400", "--duration", "1s"]);
    assert_eq!(shorter.end, End { duration: Some(seconds(1)), iterations: Some(400) });
}

/// An agent of a fleet gets the load of a trial as JSON, and makes the plan of it that the search has.
#[test]
fn a_trial_is_the_same_here_and_from_its_json() {
    let plan = plan(&[URL, "--rate", "40", "--drain", "30s", "--threshold", "p99<1s"]);
    let load = TrialLoad {
        lead: vec![(2_000.0, seconds(3)), (1_234.567_891, seconds(1))],
        rate: 1_234.567_891,
        duration: seconds(4),
        unit: seconds(2),
        connections: Some(100),
        drain: seconds(2),
    };
    let trial = plan.as_trial(&load).expect("it fits");
    let exact = Rate::new(1_234_568, seconds(1_000)).expect("a period");
    let stage = |rate, duration| Stage { duration, from: rate, to: rate };
    let stages = [hold(2_000, seconds(3)), stage(exact, seconds(1)), stage(exact, seconds(4))];
    assert_eq!(open(&trial).0, &Profile::new(stages.to_vec()).expect("it fits"));
    assert_eq!((trial.warmup, trial.drain, trial.connections.max), (seconds(4), seconds(2), 100));
    assert_eq!(trial.connections.initial, plan.connections.initial.min(100));
    assert!(trial.thresholds.is_empty() && !trial.preflight);
    let text = serde_json::to_string(&load).expect("it is JSON");
    let read: TrialLoad = serde_json::from_str(&text).expect("it is read again");
    assert_eq!(plan.as_trial(&read).expect("it fits").fingerprint(), trial.fingerprint());
    // Longer than the plan's own limits it is not.
    let wide = TrialLoad { connections: None, drain: seconds(60), ..load };
    let wide = plan.as_trial(&wide).expect("it fits");
    assert_eq!((wide.drain, wide.connections.max), (seconds(30), plan.connections.max));
}

/// Requests are on time by default in every run of a plan. A search keeps the pacing that was asked
/// for, and a probe beside a cheaper load is on time all the same.
#[test]
fn trials_and_probes_are_paced_as_a_run_is_by_default() {
    let load = TrialLoad {
        lead: Vec::new(),
        rate: 50.0,
        duration: seconds(4),
        unit: seconds(2),
        connections: None,
        drain: seconds(2),
    };
    for (flags, of_trials) in [
        (&[][..], Pacing::Adaptive),
        (&["--pacing", "shared"], Pacing::Shared),
        (&["--precise"], Pacing::Precise),
    ] {
        let plan = plan(&[&[URL, "--rate", "40"], flags].concat());
        assert_eq!((plan.pacing, plan.as_trial(&load).expect("it fits").pacing), (of_trials, of_trials));
        let probe = plan.as_probe(Rate::per_second(10)).expect("it fits");
        assert_eq!((probe.pacing, probe.threads), (Pacing::Adaptive, 1));
    }
}

#[test]
fn users_open_connections_when_they_need_them() {
    let of = |line: &[&str]| {
        let plan = plan(&[&[URL], line].concat());
        let users = plan.users.clone().expect("a course");
        (users, plan.connections.initial, plan.connections.max, plan.end)
    };
    let (users, initial, max, end) = of(&["--users", "50"]);
    assert_eq!((users.at(seconds(99)), users.peak(), initial, max), (50, 50, 50, 50));
    assert_eq!(end, End { duration: Some(seconds(10)), iterations: None });
    let (_, initial, max, end) = of(&["--users", "50", "--iterations", "7", "--connections", "60"]);
    assert_eq!((initial, max, end), (50, 60, End { duration: None, iterations: Some(7) }));
    // Each of three threads has up to seven users, and four of them share a connection.
    let (_, initial, max, _) = of(&["--users", "20", "--threads", "3", "--pipeline", "4"]);
    assert_eq!((initial, max), (5, 6));
    let (users, initial, max, end) = of(&["--user-stages", "2s@4,3s@10,1s@=2", "--warmup", "5s"]);
    assert_eq!((initial, max, end), (4, 10, End { duration: Some(seconds(6)), iterations: None }));
    let counts = [0, 4, 6, 7, 8, 9, 10, 11].map(|at| users.at(seconds(at)));
    assert_eq!(counts, [4, 4, 4, 4, 6, 8, 2, 2]);
    let (_, initial, max, _) = of(&["http://b.test/", "--user-stages", "1s@0,1s@9", "--threads", "2"]);
    assert_eq!((initial, max), (4, 20));
    assert_eq!(plan(&[URL]).users, None);
}

#[test]
fn stages_and_a_warm_up_in_front() {
    let ramp = plan(&[URL, "--stages", "2s@100,3s@500", "--warmup", "4s"]);
    let (profile, ..) = open(&ramp);
    let first = profile.stages()[1].clone();
    assert_eq!(profile.stages()[0], Stage { duration: seconds(4), from: first.from, to: first.from });
    assert_eq!(profile.duration(), seconds(9));
    assert_eq!((ramp.warmup, ramp.end.duration), (seconds(4), Some(seconds(5))));
}

#[test]
fn urls_share_servers_and_take_turns() {
    let plan = plan(&["http://a.test/1", "http://b.test/2", "http://A.test:80/3"]);
    let steps: Vec<_> = plan.steps.iter().map(|step| (step.name.as_str(), step.target)).collect();
    assert_eq!(
        steps,
        [("GET http://a.test/1", 0), ("GET http://b.test/2", 1), ("GET http://A.test:80/3", 0)]
    );
    assert_eq!(plan.targets.len(), 2);
}

#[test]
fn templates_reach_path_headers_and_body() {
    let plan = plan(&[
        "http://a.test/${sequence}?u=${uuid}",
        "--header",
        "X-N:${sequence}",
        "--body",
        "n=${sequence}",
    ]);
    let text = request(&plan, 0);
    assert!(text.starts_with("POST /7?u="), "{text}");
    assert!(text.contains("\r\nX-N: 7\r\n") && text.ends_with("Content-Length: 3\r\n\r\nn=7"), "{text}");
    assert_eq!(plan.steps[0].name, "POST http://a.test/${sequence}?u=${uuid}");
}

#[test]
fn a_body_from_a_file_is_sent_as_it_is() {
    let memory = Memory([("body.bin", b"${uuid}\r\n".to_vec())].into());
    let plan = resolve_with(&[URL, "--method", "PUT", "--body", "@body.bin"], &memory).unwrap();
    assert!(request(&plan, 0).ends_with("Content-Length: 9\r\n\r\n${uuid}\r\n"));
    assert_eq!(plan.steps[0].name, "PUT http://a.test:8080/x");
}

#[test]
fn detours_lead_to_other_addresses_and_keep_the_name() {
    let address = |line: &[&str]| {
        let line = [&[URL], line].concat();
        let plan = plan(&line);
        assert_eq!(plan.targets[0].authority, "a.test:8080");
        plan.targets[0].address.clone()
    };
    let fixed = |addresses: &[&str]| Address::Fixed(addresses.iter().map(|a| a.parse().unwrap()).collect());
    let host = |host: &str, port| Address::Host { host: host.to_owned(), port };
    assert_eq!(address(&["--unix-socket", "/run/s"]), Address::Unix("/run/s".into()));
    assert_eq!(
        address(&["--resolve", "A.test:8080:127.0.0.1,[::1]"]),
        fixed(&["127.0.0.1:8080", "[::1]:8080"])
    );
    assert_eq!(address(&["--resolve", "*:8080:::1"]), fixed(&["[::1]:8080"]));
    assert_eq!(address(&["--connect-to", "a.test:8080:b.test:81"]), host("b.test", 81));
    assert_eq!(address(&["--connect-to", "::[::1]:"]), host("::1", 8080));
    assert_eq!(address(&["--connect-to", ":8080::82"]), host("a.test", 82));
    assert_eq!(
        address(&["--connect-to", "::b.test:81", "--resolve", "b.test:81:127.0.0.9"]),
        fixed(&["127.0.0.9:81"])
    );
}

#[test]
fn closing_connections_can_be_asked_for_in_two_ways() {
    let flag = plan(&[URL, "--disable-keepalive"]);
    assert!(!flag.connections.keep_alive);
    assert!(request(&flag, 0).contains("\r\nConnection: close\r\n"));
    let header = plan(&[URL, "--header", "connection: x, Close"]);
    assert!(!header.connections.keep_alive);
    assert_eq!(request(&header, 0).matches("onnection").count(), 1);
    assert!(plan(&[URL, "--header", "Connection: keep-alive"]).connections.keep_alive);
}

#[test]
fn credentials_become_one_header_and_nothing_else() {
    let memory =
        Memory([("secret", b" me:topsecret \n".to_vec()), ("token", b"topsecret\r\nmore".to_vec())].into());
    // base64("me:topsecret")
    let basic = "\r\nAuthorization: Basic bWU6dG9wc2VjcmV0\r\n";
    let bearer = "\r\nAuthorization: Bearer topsecret\r\n";
    for (line, header) in [
        (vec![URL, "--basic", "me:topsecret"], basic),
        (vec![URL, "--basic", "@secret"], basic),
        (vec!["http://me:topsecret@a.test/"], basic),
        (vec![URL, "--bearer", "topsecret"], bearer),
        (vec![URL, "--bearer", "@token"], bearer),
        (vec![URL, "--header", "authorization:Bearer topsecret"], "\r\nauthorization: Bearer topsecret\r\n"),
    ] {
        let plan = resolve_with(&line, &memory).unwrap();
        assert!(request(&plan, 0).contains(header), "{line:?}");
        let debug = format!("{plan:?} {:?} {}", crate::resolve::flags::patch(&line), plan.steps[0].name);
        assert!(!debug.contains("topsecret") && !debug.contains("bWU6"), "{debug}");
    }
    let escaped = plan(&[URL, "--bearer", "a${uuid}b"]);
    assert!(request(&escaped, 0).contains("Bearer a${uuid}b\r\n"));
    let user_only = plan(&["http://me@a.test/"]);
    assert!(request(&user_only, 0).contains("Authorization: Basic bWU6\r\n"));
}
