//! Values that a server gives and that have line ends, in all places of the requests that follow.

use plimsoll_testkit::{Answer, Behaviour, SimOptions};

use super::plans::{answering, of_text};
use super::{server, simulate};

/// Value that would be a second header in a header, and a second request in a head.
const VALUE: &str = "line1\nline2\r\nx-split: yes\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n";

/// The value within a string of JSON.
fn escaped() -> String {
    VALUE.replace('\r', "\\r").replace('\n', "\\n")
}

fn giving() -> Behaviour {
    let body = format!("{{\"v\":\"{}\"}}", escaped()).into_bytes();
    answering(Answer { body, ..Answer::default() })
}

/// Places of a value × protocols: bodies have it as it is, paths encoded, and a request whose head it would
/// split is not sent, and says why.
#[test]
fn they_reach_bodies_as_they_are_and_split_no_head() {
    let json = format!("{{\"a\":\"{}\"}}", escaped());
    let encoded = VALUE.replace('\r', "%0D").replace('\n', "%0A").replace(' ', "%20");
    for (step, expected) in [
        ("post: /next, json: {a: '${v}'}", Some(json.as_str())),
        ("post: /next, body: '${v}'", Some(VALUE)),
        ("post: /next, multipart: [{name: a, value: '${v}'}]", Some(VALUE)),
        ("get: '/next?${v}'", Some(encoded.as_str())),
        ("post: /next, headers: {x-v: '${urlencode(${v})}'}", Some("x-v: line1%0Aline2%0D%0A")),
        ("get: /next, headers: {x-v: 'a ${v}'}", None),
        ("get: /next, headers: {x-v: '${upper(${v})}'}", None),
        ("get: /next, headers: {cookie: 'a=${v}'}", None),
        ("get: /next, headers: {host: '${v}'}", None),
    ] {
        for protocol in ["", ", http2: true"] {
            let plan = of_text(format!(
                "run: {{iterations: 3, connections: 1{protocol}}}\ntargets: {{a: 'http://sim.test'}}\n\
                 scenarios: [{{steps: [{{get: /first, extract: {{v: {{json: /v}}}}}}, {{{step}}}]}}]\n"
            ));
            let servers = vec![(server(), giving())];
            let (record, truth) =
                simulate(&plan, SimOptions { servers, keep_requests: true, ..SimOptions::default() });
            let requests = truth.entries().into_iter();
            let requests: Vec<String> =
                requests.map(|truth| String::from_utf8_lossy(&truth.request).into_owned()).collect();
            let next: Vec<&String> = requests.iter().filter(|text| text.contains(" /next")).collect();
            match expected {
                Some(expected) => {
                    assert_eq!((record.accounting.ok, next.len()), (6, 3), "{step}{protocol}");
                    assert!(next.iter().all(|text| text.contains(expected)), "{step}{protocol}: {next:?}");
                }
                None => {
                    assert_eq!((record.accounting.ok, requests.len()), (3, 3), "{step}{protocol}");
                    let reason = &record.error_examples["scenario"];
                    let words = ["the value `line1", "the variable `v`", "would split the header"];
                    assert!(words.iter().all(|words| reason.contains(words)), "{step}{protocol}: {reason}");
                }
            }
            let heads = requests.iter().map(|text| text.split("\r\n\r\n").next().unwrap_or_default());
            assert!(heads.into_iter().all(|head| !head.contains("\r\nx-split")), "{step}{protocol}");
        }
    }
}
