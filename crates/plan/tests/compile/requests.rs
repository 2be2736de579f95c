//! Requests that steps are compiled to.

use plimsoll_core::Nanos;
use plimsoll_scenario::Op;

use crate::compile::plans::{messages, plan, request, resolve, steps};

#[test]
fn one_request_is_the_fast_path() {
    let plan = plan("scenarios: [{steps: [{get: 'http://a.test/x'}]}]");
    assert!(matches!(plan.scenarios[0].program.ops(), [Op::Send(0)]));
    let step = &plan.steps[0];
    assert!(step.handler.is_plain() && step.needs.is_nothing() && step.request.is_static());
    assert_eq!((plan.variables.len(), step.name.as_str()), (0, "GET http://a.test/x"));
    assert!(step.needs.is_nothing());
    assert!(request(&plan, 0).starts_with("GET /x HTTP/1.1\r\nHost: a.test\r\n"));
}

#[test]
fn a_request_may_say_how_many_records_it_carries() {
    let plan = plan(&steps("- {post: /bulk, body: '[{},{}]', records: 2}\n         - get: /a"));
    assert_eq!(plan.records(), [2, 0]);
    for (step, expected) in [
        ("{post: /a, records: 0}", "a request carries 1 to"),
        ("{post: /a, records: many}", "`many` is not a count"),
    ] {
        let messages = messages(&steps(&format!("- {step}"))).join(", ");
        assert!(messages.contains(expected), "{step}: {messages}");
    }
}

#[test]
fn methods_and_names() {
    let plan = plan(&steps(
        "- get: /a
         - post: /a
         - {put: /a, name: change}
         - {request: /a, method: PURGE}
         - {request: /a, body: x}
         - get: /a
         - {same_url: true, method: HEAD}",
    ));
    let names: Vec<&str> = plan.steps.iter().map(|step| step.name.as_str()).collect();
    let expected =
        ["GET /a", "POST /a", "change", "PURGE /a", "POST /a #2", "GET /a #2", "HEAD the same URL"];
    assert_eq!(names, expected);
    let methods: Vec<String> = (0..plan.steps.len())
        .map(|step| request(&plan, step).split(' ').next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(methods, ["GET", "POST", "PUT", "PURGE", "POST", "GET", "HEAD"]);
    assert!(request(&plan, 6).starts_with("HEAD /a "));
}

#[test]
fn headers_of_the_run_the_scenario_and_the_step() {
    let plan = plan(
        "
run: {headers: ['A: run', 'B: run', 'C: run']}
targets: {a: http://me:pw@a.test}
scenarios:
  - headers: {b: scenario, D: scenario, User-Agent: ''}
    steps:
      - get: /
        headers: {c: step, d: ''}
      - get: /2
        headers: {Authorization: mine}",
    );
    let fields = |step| {
        let text = request(&plan, step);
        let mut lines: Vec<String> =
            text.lines().skip(1).filter(|line| !line.is_empty()).map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(
        fields(0),
        ["A: run", "Authorization: Basic bWU6cHc=", "Host: a.test", "b: scenario", "c: step"]
    );
    assert_eq!(
        fields(1),
        ["A: run", "Authorization: mine", "C: run", "D: scenario", "Host: a.test", "b: scenario"]
    );
}

#[test]
fn bodies() {
    let text = steps(
        "- {post: /, body: 'n=${sequence}'}
         - {post: /, body_file: raw.bin}
         - {post: /, template_file: t.json}
         - {post: /, json: {id: '${id}', say: 'a \"b\"', list: [1, null, true]}}
         - {post: /, json: {}, headers: {content-type: application/merge-patch+json}}",
    );
    let text = format!("variables: {{id: a}}\n{text}");
    let files = [("plans/raw.bin", "${uuid}"), ("plans/t.json", "{\"at\": ${sequence}}")];
    let plan = resolve(&text, &files, &[]).unwrap_or_else(|problems| panic!("{problems:#?}"));
    let body = |step| request(&plan, step).split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    assert_eq!(body(0).as_deref(), Some("n=7"));
    assert_eq!(body(1).as_deref(), Some("${uuid}"));
    assert_eq!(body(2).as_deref(), Some("{\"at\": 7}"));
    assert_eq!(body(3).as_deref(), Some("{\"id\":\"<0>\",\"say\":\"a \\\"b\\\"\",\"list\":[1,null,true]}"));
    assert!(request(&plan, 3).contains("Content-Type: application/json\r\n"));
    assert!(request(&plan, 4).contains("content-type: application/merge-patch+json\r\n"));
    assert!(!request(&plan, 4).contains("application/json"));
}

#[test]
fn forms_of_several_parts() {
    let files = [("plans/up/a \"b\".bin", "${uuid}\r\n--plimsoll-7d1a4c9be0f24563\r\n")];
    let sent = |step: &str| {
        let plan = resolve(&steps(step), &files, &[]).unwrap_or_else(|problems| panic!("{problems:#?}"));
        request(&plan, 0)
    };
    let values = "- {post: /, multipart: [{name: 'the \"title\"', value: 'no ${sequence}'}, \
                  {name: note, value: '', content_type: text/plain}]}";
    let boundary = "plimsoll-7d1a4c9be0f24563";
    let sent_values = sent(values);
    let (head, body) = sent_values.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("Content-Type: multipart/form-data; boundary={boundary}")), "{head}");
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
    let expected = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"the %22title%22\"\r\n\r\nno 7\r\n\
         --{boundary}\r\nContent-Disposition: form-data; name=\"note\"\r\nContent-Type: text/plain\r\n\r\n\r\n\
         --{boundary}--\r\n"
    );
    assert_eq!(body, expected);
    // A file is sent as it is, also where it looks like a template or like the end of a part.
    let file = sent("- {post: /, multipart: [{name: f, file: 'up/a \"b\".bin'}]}");
    let other = format!("{boundary}-1");
    let expected = format!(
        "--{other}\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a %22b%22.bin\"\r\n\
         Content-Type: application/octet-stream\r\n\r\n${{uuid}}\r\n--{boundary}\r\n\r\n--{other}--\r\n"
    );
    assert_eq!(file.split_once("\r\n\r\n").unwrap().1, expected);
    assert!(file.contains(&format!("boundary={other}\r\n")), "{file}");
    // A boundary of the step's own, as a recording has it, and the name that the server sees.
    let own = sent(
        "- {post: /, headers: {content-type: 'multipart/related; boundary=\"me\"'}, \
            multipart: [{name: f, value: x, filename: '${sequence}.txt'}]}",
    );
    assert!(own.contains("content-type: multipart/related; boundary=\"me\"\r\n"), "{own}");
    assert!(own.ends_with(
        "--me\r\nContent-Disposition: form-data; name=\"f\"; filename=\"7.txt\"\r\n\r\nx\r\n--me--\r\n"
    ));
}

#[test]
fn what_is_asked_for_again() {
    let of = |steps: &str| {
        plan(&format!(
            "variables: {{x: '1'}}\ntargets: {{a: http://a.test}}\nscenarios: [{{steps: {steps}}}]"
        ))
    };
    // A path that does not change is copied.
    let fixed = of("[{get: /a}, {same_url: true, method: HEAD}]");
    assert!(fixed.steps.iter().all(|step| step.request.is_static() && step.needs.is_nothing()));
    assert!(fixed.steps.iter().all(|step| !step.needs.path));
    // A path that changes is kept in a variable.
    let random = of("[{get: '/${uuid}'}, {same_url: true}]");
    assert!(random.steps[0].needs.path && !random.steps[1].needs.path);
    assert!(request(&random, 1).starts_with("GET /<1> "), "the variable behind `x`");
    // After a condition, it is that of either.
    let either = of("[{if: '${x} == 1', then: [{get: /a}], else: [{get: /b}]}, {same_url: true}]");
    assert!(either.steps[0].needs.path && either.steps[1].needs.path);
    // In a loop, it may be that of the turn before.
    let turn = of("[{get: /a}, {repeat: 2, steps: [{same_url: true}, {get: /b}]}]");
    assert!(turn.steps.iter().all(|step| step.needs.path));
}

#[test]
fn what_is_wrong_is_said_once_and_all_of_it() {
    for (step, expected) in [
        ("- get: users", vec!["`users` is neither a path nor a URL"]),
        ("- same_url: true", vec!["there is no request before this one on every way to it"]),
        ("- {get: /, timeout: 0s}", vec!["a timeout must be above 0"]),
        ("- {get: /, headers: {Connection: close}}", vec!["`Connection: close` applies to the whole run"]),
        ("- {request: /, method: get}", vec!["`get` is not a method"]),
        ("- {get: /a b}", vec!["` ` is not allowed in a URL"]),
        ("- {post: /, body_file: none}", vec!["cannot read `none`: entity not found"]),
        (
            "- {get: '/${uid}', expect: {status: [700, 2xx]}}",
            vec!["unknown template slot `${uid}`", "no response ends with the status `700`"],
        ),
    ] {
        let found = messages(&steps(step));
        assert_eq!(found.len(), expected.len(), "{step}: {found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{step}: {found}");
        }
    }
}

#[test]
fn a_request_is_repeated_until_its_answer_is_what_is_waited_for() {
    let polled = plan(&steps(
        "- {get: /job, poll: {until: {status: 2xx, json: {/status: done}}, every: 200ms, backoff: 1.5, at_most: 5s}}",
    ));
    let poll = polled.steps[0].handler.poll().expect("it is said");
    assert_eq!((poll.every, poll.growth, poll.at_most), (Nanos::from_millis(200), 500, Nanos::from_secs(5)));
    assert_eq!(poll.until.len(), 2);
    assert!(polled.steps[0].needs.body && !polled.steps[0].handler.is_plain());
    let fingerprint = |poll: &str| plan(&steps(&format!("- {{get: /job{poll}}}"))).fingerprint();
    let of = |every: &str| format!(", poll: {{until: {{status: 200}}, every: {every}}}");
    assert_ne!(fingerprint(&of("1s")), fingerprint(&of("2s")));
    assert_ne!(fingerprint(&of("1s")), fingerprint(""));
    for (wrong, expected) in [
        ("{every: 1s}", "`poll` has no condition"),
        ("{until: {status: 200}, every: 0s}", "`every` must be above 0"),
        ("{until: {status: 200}, backoff: 0.5}", "`0.5` is not a factor"),
        ("{until: {status: 900}}", "no response ends with the status `900`"),
    ] {
        let said = messages(&steps(&format!("- {{get: /job, poll: {wrong}}}")));
        assert_eq!(said, [expected], "{wrong}");
    }
}

/// Values with quotes and line ends, as a hostile server gives them, in each place of a part.
#[test]
fn values_split_no_head_of_a_part() {
    let plan = plan(&format!(
        "variables: {{v: x}}\n{}",
        steps(
            "- {post: /, multipart: [{name: 'n${v}', value: '${v}', filename: '${v}.txt', content_type: '${v}/plain'}]}"
        )
    ));
    let variables: Vec<Vec<u8>> =
        plan.variables.iter().map(|_| b"a\"; x=\"b\r\nX-B: c\r\n\r\nd".to_vec()).collect();
    let request = &plan.steps[0].request;
    assert_eq!(request.unfit_value(&variables), None);
    let context = plimsoll_scenario::Context { variables: &variables, ..Default::default() };
    let mut out = Vec::new();
    request.render(&context, &mut plimsoll_core::Random::new(1, 0), &mut Vec::new(), &mut out);
    let text = String::from_utf8(out).expect("it is text");
    let body = text.split_once("\r\n\r\n").expect("a head").1;
    let (head, content) = body.split_once("\r\n\r\n").expect("the head of a part");
    let lines: Vec<&str> = head.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            "Content-Disposition: form-data; name=\"na\\\"; x=\\\"b\\r\\nX-B: c\\r\\n\\r\\nd\"; \
             filename=\"a\\\"; x=\\\"b\\r\\nX-B: c\\r\\n\\r\\nd.txt\"",
            "Content-Type: a\\\"; x=\\\"b\\r\\nX-B: c\\r\\n\\r\\nd/plain",
        ]
    );
    assert!(content.starts_with("a\"; x=\"b\r\nX-B: c\r\n\r\nd\r\n--"), "the content is as it is: {content}");
}

/// Symptom: the lines of a log and of failed requests were in one file, in pieces.
#[test]
fn no_file_is_written_twice() {
    let of = |files: &str| {
        messages(&format!("run: {{{files}}}\nscenarios: [{{steps: [{{get: 'http://a.test/'}}]}}]"))
    };
    assert_eq!(of("log: a.csv, failed: a.csv"), ["run.failed: `a.csv` is to be written twice"]);
    assert_eq!(of("log: a.csv, failed: b.csv, stats: c.csv"), [""; 0]);
}

/// Symptom: a plan of 300,000 steps took 2 GB to be checked.
#[test]
fn steps_and_scenarios_are_bounded() {
    let many = format!("scenarios: [{{steps: [{}get: /]}}]", "get: http://a.test/,".repeat(20_000));
    assert!(messages(&many).iter().any(|message| message == "there are more than 20000 steps"));
    let nested = format!(
        "scenarios: [{{steps: [{{repeat: 2, steps: [{}get: /]}}]}}]",
        "get: http://a.test/,".repeat(20_000)
    );
    assert!(messages(&nested).iter().any(|message| message == "there are more than 20000 steps"));
    let scenarios = format!("scenarios: [{}]", "{steps: [{get: 'http://a.test/'}]},".repeat(10_001));
    let said = messages(&scenarios);
    assert!(said.iter().any(|message| message == "there are more than 10000 scenarios"), "{said:?}");
    let phases = format!(
        "scenarios: [{{steps: [{{get: 'http://a.test/'}}]}}]\nphases: [{}]",
        "{rate: 1/s, duration: 1s},".repeat(1_001)
    );
    assert_eq!(messages(&phases), ["there are more than 1000 phases"]);
}
