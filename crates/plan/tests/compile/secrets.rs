//! The environment and secrets.

use crate::compile::plans::{request, resolve};

const PLAN: &str = "
variables: {pw: '${secret(PW)}'}
targets: {a: '${env(BASE, http://default.test)}'}
scenarios:
  - headers: {X-Key: '${secret(PW)}', X-Env: '${env(BASE)}'}
    steps:
      - {post: '/${base64(secret(PW))}', json: {password: '${secret(PW)}', user: '${pw}'}}
";

#[test]
fn secrets_are_sent_and_never_shown() {
    let environment = [("BASE", "http://e.test:1"), ("PW", "top\"secret")];
    let plan = resolve(PLAN, &[], &environment).unwrap_or_else(|problems| panic!("{problems:#?}"));
    let sent = request(&plan, 0);
    assert!(sent.contains("X-Key: top\"secret\r\n"), "{sent}");
    assert!(sent.contains("Host: e.test:1\r\n") && sent.contains("X-Env: http://e.test:1\r\n"), "{sent}");
    assert!(sent.starts_with("POST /dG9wInNlY3JldA== "), "{sent}");
    assert!(sent.contains("\"password\":\"top\\\"secret\""), "{sent}");
    let shown = format!("{plan:?}");
    let bytes = format!("{:?}", b"top\"secret").trim_matches(['[', ']']).to_owned();
    assert!(!shown.contains("top\\\"secret") && !shown.contains(&bytes), "{shown}");
    let step = &plan.steps[0];
    assert!(!step.name.contains("secret\""));
}

#[test]
fn another_secret_is_the_same_plan_and_another_variable_is_not() {
    let print = |base: &str, pw: &str| {
        resolve(PLAN, &[], &[("BASE", base), ("PW", pw)]).map(|plan| plan.fingerprint()).unwrap()
    };
    assert_eq!(print("http://a.test", "one"), print("http://a.test", "another"));
    assert_ne!(print("http://a.test", "one"), print("http://b.test", "one"));
}

#[test]
fn what_is_not_set_is_said_where_it_is_named() {
    let problems = resolve(PLAN, &[], &[]).unwrap_err();
    let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
    assert!(messages.contains(&"`BASE` is not set in the environment"), "{messages:?}");
    assert!(messages.contains(&"the secret `PW` is not set in the environment"), "{messages:?}");
    assert!(problems.iter().all(|problem| problem.place.is_some()), "{problems:?}");
    // A file may hold it.
    let environment = [("BASE", "http://a.test"), ("PW_FILE", "/run/pw")];
    let plan = resolve(PLAN, &[("/run/pw", "from a file\n")], &environment).unwrap();
    assert!(request(&plan, 0).contains("X-Key: from a file\r\n"));
}

#[test]
fn secrets_have_no_place_where_they_would_be_shown() {
    let text = "
targets: {a: http://a.test}
scenarios: [{steps: [{get: /, expect: {body: '${secret(PW)}'}}]}]";
    let problems = resolve(text, &[], &[("PW", "topsecret")]).unwrap_err();
    assert_eq!(problems[0].message, "a secret is not allowed in an expectation: it would be shown");
    assert!(!format!("{problems:?}").contains("topsecret"));
}
