//! Where requests go.

use plimsoll_core::Random;
use plimsoll_plan::{Address, Protocol};
use plimsoll_scenario::{Context, SentRequest};

use crate::compile::plans::{messages, plan, request, steps};

#[test]
fn paths_are_behind_that_of_their_target() {
    let plan = plan(
        "
targets: {a: 'http://a.test:81/v1/', b: 'http://b.test'}
scenarios:
  - target: a
    steps:
      - get: /x
      - {get: /y, target: b}
      - get: http://c.test/z?q
      - get: http://A.test:81/w
      - {get: '${next}', extract: {next: {header: n}}}
variables: {next: /first}",
    );
    let lines: Vec<String> =
        (0..5).map(|step| request(&plan, step).lines().next().unwrap_or_default().to_owned()).collect();
    let expected = [
        "GET /v1/x HTTP/1.1",
        "GET /y HTTP/1.1",
        "GET /z?q HTTP/1.1",
        "GET /w HTTP/1.1",
        "GET /<0> HTTP/1.1",
    ];
    assert_eq!(lines, expected);
    // The same host and port are the same pool of connections, however they were named.
    let targets: Vec<usize> = plan.steps.iter().map(|step| step.target).collect();
    assert_eq!(targets, [0, 1, 2, 0, 0]);
    let authorities: Vec<&str> = plan.targets.iter().map(|target| target.authority.as_str()).collect();
    assert_eq!(authorities, ["a.test:81", "b.test", "c.test"]);
    assert!(plan.targets.iter().all(|target| target.pool.is_empty()));
}

#[test]
fn members_of_a_pool() {
    let plan = plan(
        "
targets: {a: {url: 'http://a.test:81/x', share: [b.test, 'c.test:82'], fail_back: true}}
scenarios: [{steps: [{get: /}]}]",
    );
    let target = &plan.targets[0];
    let members: Vec<(&str, &Address)> =
        target.pool.iter().map(|member| (member.authority.as_str(), &member.address)).collect();
    let at = |host: &str, port| Address::Host { host: host.to_owned(), port };
    let expected =
        [("a.test:81", at("a.test", 81)), ("b.test:81", at("b.test", 81)), ("c.test:82", at("c.test", 82))];
    assert_eq!(members.len(), 3);
    for ((authority, address), (other, expected)) in members.into_iter().zip(&expected) {
        assert_eq!((authority, address), (*other, expected));
    }
    assert!(target.fail_over && target.fail_back);
    assert!(plan.steps[0].request.uses_authority());
    assert!(request(&plan, 0).contains("Host: member:1\r\n"), "{}", request(&plan, 0));
}

#[test]
fn what_is_wrong_with_targets() {
    for (text, expected) in [
        ("scenarios: [{steps: [{get: /}]}]", "no server for the path"),
        ("targets: {a: http://a, b: http://b}\nscenarios: [{steps: [{get: /}]}]", "no server for the path"),
        (
            "targets: {a: 'http://a/?x'}\nscenarios: [{steps: [{get: /}]}]",
            "a target's URL cannot have a query",
        ),
        ("targets: {a: 'htp://a/'}\nscenarios: [{steps: [{get: /}]}]", "unknown scheme `htp`"),
        (
            "targets: {a: {url: 'http://a', share: ['http://b']}}\nscenarios: [{steps: [{get: /}]}]",
            "`http://b` is not host[:port]",
        ),
        (
            "targets: {a: {url: 'http://a', share: ['a:80']}}\nscenarios: [{steps: [{get: /}]}]",
            "`a:80` is in the pool twice",
        ),
    ] {
        assert_eq!(messages(text), [expected], "{text}");
    }
    let beside = steps("- {get: 'http://b.test/', target: a}");
    assert_eq!(messages(&beside), ["`target` has no effect beside a whole URL"]);
}

#[test]
fn only_a_step_whose_url_begins_with_a_variable_may_ask_other_servers() {
    let text = "targets: {api: http://me:word@a.test}
scenarios:
- variables: {next: /first}
  steps:
  - get: ${next}
    headers: {X-Own: 2}
  - same_url: true
  - get: /x/${next}";
    let plan = plan(text);
    assert!(plan.dynamic_origins.is_some());
    let away: Vec<bool> = plan.steps.iter().map(|step| step.away.is_some()).collect();
    assert_eq!(away, [true, true, false]);
    // The credentials of the target are sent to the target only.
    assert!(request(&plan, 0).contains("Authorization: Basic "));
    let away = plan.steps[0].away.as_ref().expect("it may ask others");
    let mut sent = SentRequest::default();
    let context = Context { authority: b"b.test:81", ..Context::default() };
    away.secure.render_request(&context, &mut Random::new(1, 0), &mut sent);
    assert_eq!(sent.authority, b"b.test:81");
    assert_eq!((sent.fields.get("x-own"), sent.fields.get("authorization")), (Some(&b"2"[..]), None));
    let fixed =
        crate::compile::plans::plan("targets: {api: http://a.test}\nscenarios: [{steps: [{get: /}]}]");
    assert!(fixed.dynamic_origins.is_none());
}

#[test]
fn a_reference_becomes_a_path_or_a_url() {
    let text = "targets: {api: http://a.test}
scenarios: [{steps: [{get: /, extract: {next: {header: location, as_path: true, as_url: true}}}]}]";
    assert_eq!(messages(text), ["`as_path` and `as_url` exclude each other"]);
}

#[test]
fn websockets_are_opened_over_the_version_that_is_asked_for() {
    let with = |scheme: &str, run: &str| {
        format!(
            "
targets: {{a: '{scheme}://a.test'}}
run: {{connections: 1, insecure: {secure}{run}}}
scenarios: [{{steps: [{{websocket: {{open: /}}}}, {{websocket: {{close: 1000}}}}]}}]",
            secure = scheme == "wss",
        )
    };
    for scheme in ["ws", "wss"] {
        for (run, protocol, statuses) in
            [("", Protocol::WebSocket, 101..=101), (", http2: true", Protocol::WebSocketHttp2, 200..=299)]
        {
            let plan = plan(&with(scheme, run));
            let target = &plan.targets[0];
            assert_eq!((target.protocol, target.scheme()), (protocol, scheme), "{run}");
            let accepted: Vec<u16> =
                (100..600).filter(|s| plan.steps[0].handler.accepts(*s).is_ok()).collect();
            assert_eq!(accepted, statuses.collect::<Vec<_>>(), "{run}");
        }
    }
    for (run, problem) in [
        (", alpn: h2", "alpn"),
        (", http2: true, max_concurrent_streams: 5", "max_concurrent_streams"),
        (", http2: true, ping_interval: 1s", "ping_interval"),
    ] {
        let told = messages(&with("wss", run)).concat();
        assert!(told.contains(problem) && told.contains("cannot be combined with WebSockets"), "{told}");
    }
}
