//! Tokens that are signed again in simulated time.

use plimsoll_core::Nanos;
use plimsoll_testkit::SimOptions;

use super::plans::{good, plan};
use super::{simulate, world};

/// A lifetime of 4 s, of which the last is not used: how long one token is in use, at most, and by how much
/// less at least, as `exp` is in whole seconds.
const USED: Nanos = Nanos::from_secs(3);

#[test]
fn every_request_has_a_token_that_is_not_about_to_expire() {
    for (settings, workers) in [
        ("rate: 50, duration: 40s, connections: 4, threads: 1", 1),
        (
            "connections: 4, duration: 40s, threads: 2, http2_prior_knowledge: true, max_concurrent_streams: 3",
            2,
        ),
    ] {
        let rest = "tokens: {api: {key: k, lifetime: 4s}}\nscenarios: [{headers: {authorization: 'Bearer \
                    ${token(api)}'}, steps: [{get: /, think: 10ms}]}]";
        let options = SimOptions { keep_requests: true, ..world(good()) };
        let (record, truth) = simulate(&plan(settings, rest), options);
        assert_eq!(record.accounting.failed, 0);
        let mut tokens: Vec<(u32, String, Nanos, Nanos)> = Vec::new();
        for entry in truth.entries() {
            let request = String::from_utf8(entry.request).unwrap();
            let (_, after) = request.split_once("authorization: Bearer ").unwrap();
            let token = after.split_once("\r\n").unwrap().0.to_owned();
            assert_eq!(token.split('.').count(), 3, "{token}");
            match tokens.iter_mut().rev().find(|(world, ..)| *world == entry.world) {
                // Requests that were on their way when another token was signed come a moment later.
                Some((_, same, _, last)) if *same == token => *last = entry.received.max(*last),
                _ => tokens.push((entry.world, token, entry.received, entry.received)),
            }
        }
        // 40 s in parts of 2 to 3 s, for each worker: no token is taken up again once there is another.
        let each = tokens.len() / workers;
        assert!((14..=21).contains(&each), "{each}");
        for (world, token, first, last) in &tokens {
            assert!(last.since(*first) <= USED, "{world} {token}: {first:?} to {last:?}");
        }
    }
}

#[test]
fn when_tokens_are_signed_does_not_change_what_is_drawn() {
    let steps = "scenarios: [{steps: [{post: /, body: '${uuid}'}]}]";
    let settings = "rate: 20, iterations: 100, connections: 2, threads: 1";
    let bodies = |tokens: &str| {
        let options = SimOptions { keep_requests: true, ..world(good()) };
        let (_, truth) = simulate(&plan(settings, &format!("{tokens}{steps}")), options);
        truth.entries().into_iter().map(|entry| entry.request).collect::<Vec<_>>()
    };
    assert_eq!(bodies(""), bodies("tokens: {api: {key: k, lifetime: 2s, add: [iat, exp, jti]}}\n"));
}
