//! Bodies in forms that a server of others makes and reads: compressed answers, forms of several parts,
//! and its challenges.

use crate::loopback::foreign::python;
use crate::loopback::process::{Folder, Process, run};
use plimsoll_testkit::sink_log::{account, assert_balance};

/// Starts the server, and writes a plan of these steps for it.
fn served(steps: &str) -> Option<(Process, Folder, String)> {
    let mut server = python(&["-c", include_str!("bodies.py")])?;
    let port = server.stdout.wait_for("listening on ").trim_start_matches("listening on ").trim().to_owned();
    let folder = Folder::new();
    folder.write("a.bin", b"${uuid}\xff\x00--\r\n\r\nend");
    let plan = format!("targets: {{api: 'http://127.0.0.1:{port}'}}\nscenarios:\n  - steps:\n{steps}");
    let plan = folder.write("plan.yaml", plan);
    Some((server, folder, plan))
}

#[test]
fn compressed_answers_are_unpacked_before_they_are_read() {
    let steps = "      - get: /gzip
        headers: {accept-encoding: 'gzip, deflate'}
        extract: {token: {json: /token}}
      - get: /deflate?${token}
        headers: {accept-encoding: 'gzip, deflate'}
        expect: {json: {/path: '/deflate?t/gzip'}, body: [{contains: token}]}
      - get: /plain
        expect: {json: {/path: /plain}}
";
    let Some((_server, _folder, plan)) = served(steps) else { return };
    let result = run(&format!("run {plan} -n 4 -c 2 -o json")).result();
    assert_balance(&result);
    assert_eq!(account(&result, "ok"), 12, "{}", result["error_examples"]);
}

#[test]
fn an_answer_that_cannot_be_unpacked_is_told() {
    let steps = "      - get: /broken
        headers: {accept-encoding: gzip}
        expect: {body: [{contains: token}]}
";
    let Some((_server, _folder, plan)) = served(steps) else { return };
    let result = run(&format!("run {plan} -n 2 -c 1 -o json")).result();
    assert_eq!((account(&result, "ok"), account(&result, "failed")), (0, 2));
    let examples = result["error_examples"].to_string();
    assert!(examples.contains("the body is not `gzip`, as its content-encoding says"), "{examples}");
}

#[test]
fn forms_of_several_parts_are_what_a_parser_of_others_reads() {
    let steps = r#"      - post: /
        multipart:
          - {name: 'the "title"', value: n 7}
          - {name: up, file: a.bin, content_type: text/x}
        expect:
          json:
            /0/name: 'the %22title%22'
            /0/content: 'n 7'
            /1/name: up
            /1/filename: a.bin
            /1/type: text/x
            /1/content: "$${uuid}\u00ff\u0000--\r\n\r\nend"
"#;
    let Some((_server, _folder, plan)) = served(steps) else { return };
    let result = run(&format!("run {plan} -n 3 -c 1 -o json")).result();
    assert_balance(&result);
    assert_eq!(account(&result, "ok"), 3, "{}", result["error_examples"]);
}

#[test]
fn challenges_of_digest_authentication_are_answered() {
    let step = |algorithm: &str, password: &str| {
        let target = format!("/private/{algorithm}?a=1,2");
        format!(
            "      - get: {target}
        expect: {{status: 401}}
        extract: {{challenge: {{header: www-authenticate}}}}
      - get: {target}
        headers: {{authorization: '${{digest(challenge, \"me:{password}, GET {target}\")}}'}}
"
        )
    };
    let kinds = ["MD5", "MD5-sess", "SHA-256", "SHA-256-sess"];
    let steps: String = kinds.into_iter().map(|algorithm| step(algorithm, "pass, word")).collect();
    let Some((_server, _folder, plan)) = served(&steps) else { return };
    let result = run(&format!("run {plan} -n 3 -c 2 -o json")).result();
    assert_balance(&result);
    assert_eq!(account(&result, "ok"), 24, "{}", result["error_examples"]);

    // A wrong password, and an algorithm that is not known here.
    for (algorithm, password) in [("MD5", "word"), ("SHA-512", "pass, word")] {
        let Some((_server, _folder, plan)) = served(&step(algorithm, password)) else { return };
        let result = run(&format!("run {plan} -n 3 -c 1 -o json")).result();
        assert_eq!((account(&result, "ok"), account(&result, "failed")), (3, 3), "{algorithm}");
    }
}
