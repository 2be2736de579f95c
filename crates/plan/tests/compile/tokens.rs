//! Tokens of plan files and of the settings of a run.

use plimsoll_document::Problem;

use crate::compile::plans::{request, resolve, steps};

/// Tokens, and the problems of a plan that has them.
fn tokens(tokens: &str) -> Result<plimsoll_plan::Plan, Vec<Problem>> {
    let text = format!(
        "tokens:\n  api: {tokens}\n{}",
        steps("- {get: /, headers: {authorization: 'Bearer ${token(api)}'}}")
    );
    resolve(&text, &[("plans/key", "topsecret\n"), ("plans/other", "topsecret2")], &[("KEY", "topsecret")])
}

/// A run with these settings.
fn run(settings: &str) -> Result<plimsoll_plan::Plan, Vec<Problem>> {
    let text = format!("run: {{{settings}}}\n{}", steps("- get: /"));
    resolve(&text, &[("plans/key", "topsecret"), ("plans/other", "topsecret2")], &[("KEY", "topsecret")])
}

fn message(refused: Result<plimsoll_plan::Plan, Vec<Problem>>) -> String {
    let problems = refused.expect_err("it is wrong");
    assert!(!format!("{problems:?}").contains("topsecret"), "{problems:?}");
    assert!(problems.len() == 1 && problems[0].hint.is_some(), "{problems:?}");
    problems[0].message.clone()
}

#[test]
fn tokens_are_read_and_their_keys_are_nowhere() {
    let settings = "{key: key, algorithm: hs512, key_id: k1, claims: {sub: load, role: '${env(KEY, x)}'}, \
                    add: [iat, exp, jti], lifetime: 60s, refresh_before: 10s}";
    let plan = tokens(&settings.replace("${env(KEY, x)}", "tester")).expect("it is right");
    assert_eq!(plan.tokens.len(), 1);
    assert!(!format!("{plan:?}").contains("topsecret"));
    let same = tokens(&settings.replace("${env(KEY, x)}", "tester").replace("key: key", "key: other"));
    assert_eq!(same.expect("it is right").fingerprint(), plan.fingerprint());
    let from_environment = tokens("{key: 'env:KEY'}").expect("it is right");
    assert_ne!(from_environment.fingerprint(), plan.fingerprint());
    let [spec] = [from_environment.tokens[0].spec()];
    assert_eq!((spec.lifetime_s, spec.refresh_before_ns), (300, 30_000_000_000));
    // Only the run renders the token.
    assert!(request(&plan, 0).contains("authorization: Bearer \r\n"));
}

#[test]
fn what_is_wrong_with_a_token_has_a_hint() {
    let messages = [
        tokens("{algorithm: HS256}"),
        tokens("{key: topsecret}"),
        tokens("{key: 'env:NONE'}"),
        tokens("{key: key, algorithm: RS256}"),
        tokens("{key: key, claims: [1]}"),
        tokens("{key: key, claims: {sub: '${user}'}}"),
        tokens("{key: key, claims: {iat: 1}}"),
        tokens("{key: key, lifetime: 10s, refresh_before: 10s}"),
    ]
    .map(message);
    assert_eq!(
        messages,
        [
            "the token has no `key`",
            "cannot read the file of the key: entity not found",
            "`NONE` is not set in the environment",
            "the key does not fit RS256",
            "the claims are not an object",
            "unknown template slot `${user}`",
            "the claim `iat` is made at each signing",
            "a lifetime of 10s ends before the token is signed again",
        ]
    );
    let wrong = |text: &str| tokens(text).expect_err("it is wrong")[0].message.clone();
    assert!(wrong("{key: key, algorithm: none}").contains("`none` is not an algorithm of signatures"));
    assert!(
        wrong("{key: key, add: [foo]}").contains("`foo` is not a claim that can be made at each signing")
    );
    assert!(wrong("{key: key, lifetime: 1500ms}").contains("not a whole number of seconds"));
}

#[test]
fn tokens_that_nothing_can_use_are_refused() {
    let text = "run: {rate: 1}\ntokens: {api: {key: key}}\n";
    let problems = resolve(text, &[("plans/key", "topsecret")], &[]).expect_err("there is no scenario");
    assert_eq!(problems[0].message, "`tokens` has no effect: the plan has no scenarios");
}

#[test]
fn the_run_has_a_token_of_its_own() {
    let plan = run("jwt_key: key, jwt_claims: '{\"sub\": \"load\"}', jwt_lifetime: 1m").expect("it is right");
    let spec = plan.tokens[0].spec();
    assert_eq!((spec.lifetime_s, spec.refresh_before_ns), (60, 15_000_000_000));
    assert!(request(&plan, 0).contains("Authorization: Bearer \r\n"));
    assert!(run("auth: jwt, jwt_key: 'env:KEY', jwt_alg: HS384").is_ok());
    assert!(run("auth: bearer, bearer: abc").is_ok());
    let messages = [
        run("auth: jwt"),
        run("auth: bearer"),
        run("auth: basic, basic: 'a:b', jwt_alg: HS256"),
        run("jwt_claims: '{}'"),
        run("jwt_key: topsecret"),
        run("jwt_key: key, jwt_claims: 'a'"),
    ]
    .map(message);
    assert_eq!(
        messages,
        [
            "run.auth: there is no key to sign with",
            "run.auth bearer: there are no credentials",
            "run.jwt_alg has no effect with run.auth basic",
            "run.jwt_claims: there is no key to sign with",
            "run.jwt_key: cannot read the file of the key: entity not found",
            "run.jwt_claims: the claims are not JSON: expected value at line 1 column 1",
        ]
    );
    let both = run("jwt_key: key, bearer: abc").expect_err("one of them is meant");
    assert_eq!(both[0].message, "run.bearer and run.jwt_key exclude each other");
}
