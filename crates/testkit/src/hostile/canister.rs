//! Replicas of the Internet Computer whose HTTP is right and whose answers are not.

use plimsoll_core::ErrorClass;

use super::services::{self, REJECTED, answering};
use super::{CHECK, Case, Ends, Load, OK, Suite};

/// The table.
pub(super) fn suite() -> Suite {
    services::suite("canister", command, cases())
}

fn command(load: Load<'_>) -> String {
    let Load { address, requests, connections, timeout } = load;
    format!(
        "canister http://{address} --no-status-check --iterations {requests} -c {connections} \
         --query-timeout-secs {timeout} --ingress-timeout-secs {timeout}"
    )
}

/// A text of CBOR, of fewer than 24 bytes (RFC 8949 section 3.1).
fn text(text: &str) -> Vec<u8> {
    [&[0x60 | text.len() as u8], text.as_bytes()].concat()
}

/// A map of CBOR that describes itself, as answers begin: its entries are keys and values in turn.
fn map(entries: &[Vec<u8>]) -> Vec<u8> {
    [&[0xd9, 0xd9, 0xf7, 0xa0 | (entries.len() / 2) as u8][..], &entries.concat()].concat()
}

fn cases() -> Vec<Case> {
    let replied = |reply: Vec<u8>| map(&[text("status"), text("replied"), text("reply"), reply]);
    let good = replied([&[0xa1][..], &text("arg"), &[0x41, 7]].concat());
    let rejected = |message: Vec<u8>| {
        map(&[
            text("status"),
            text("rejected"),
            text("reject_code"),
            vec![4],
            text("reject_message"),
            message,
        ])
    };
    // A text, or bytes, of a length that has 32 bits.
    let long = |kind: u8, content: &[u8]| {
        [&[kind | 26][..], &(content.len() as u32).to_be_bytes(), content].concat()
    };
    let bad: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", Vec::new()),
        ("HTML", b"<html>it works</html>".to_vec()),
        ("JSON", b"{\"status\":\"replied\"}".to_vec()),
        ("bytes of nothing", vec![0xff; 1_000]),
        ("half an answer", good[..good.len() / 2].to_vec()),
        ("an answer and more", [&good[..], b"more"].concat()),
        ("a list", vec![0xd9, 0xd9, 0xf7, 0x80]),
        ("a map of nothing", map(&[])),
        ("an unknown status", map(&[text("status"), text("nothing")])),
        ("a status that is a number", map(&[text("status"), vec![7]])),
        ("no reply", map(&[text("status"), text("replied")])),
        ("a reply that is a number", replied(vec![7])),
        ("a reply without an argument", replied(vec![0xa0])),
        ("an argument that is text", replied([&[0xa1][..], &text("arg"), &text("x")].concat())),
        ("bytes of 2^64 - 1", replied([&[0xa1][..], &text("arg"), &[0x5b], &[0xff; 8]].concat())),
        ("a map of 2^64 - 1", [&[0xd9, 0xd9, 0xf7, 0xbb][..], &[0xff; 8]].concat()),
        ("a list of 2^64 - 1", [&[0xd9, 0xd9, 0xf7, 0x9b][..], &[0xff; 8]].concat()),
        ("a list in a list, 100,000 times", vec![0x81; 100_000]),
        ("a tag of a tag, 100,000 times", vec![0xc1; 100_000]),
        ("lists without an end", vec![0x9f; 100_000]),
        ("a text that is not UTF-8", map(&[text("status"), vec![0x62, 0xff, 0xfe]])),
        ("reserved lengths", vec![0xd9, 0xd9, 0xf7, 0xbc, 0xbd, 0xbe]),
    ];
    let mut cases: Vec<Case> =
        bad.iter().map(|(name, body)| answering(name, CHECK, "200 OK", body, "")).collect();
    let escapes = long(0x60, b"\x1b[31m\x1b]0;owned\x07");
    cases.extend([
        answering("a good reply", OK, "200 OK", &good, ""),
        answering(
            "a reply of 1 MiB",
            OK,
            "200 OK",
            &replied([&[0xa1][..], &text("arg"), &long(0x40, &vec![0; 1 << 20])].concat()),
            "",
        ),
        answering("a reject with escapes", REJECTED, "200 OK", &rejected(escapes), ""),
        answering("a reject of 1 MiB", REJECTED, "200 OK", &rejected(long(0x60, &vec![b'x'; 1 << 20])), ""),
        answering("a reject that is a number", CHECK_OR_REJECTED, "200 OK", &rejected(vec![7]), ""),
    ]);
    // Updates whose certificate is invalid.
    let certified =
        |certificate: Vec<u8>| map(&[text("status"), text("replied"), text("certificate"), certificate]);
    for (name, body) in [
        ("an update, no certificate", map(&[text("status"), text("replied")])),
        ("an update, a certificate of nothing", certified(vec![0x40])),
        ("an update, a certificate of garbage", certified(long(0x40, &[0xff; 1_000]))),
        (
            "an update, a certificate without a tree",
            certified(long(0x40, &map(&[text("signature"), vec![0x40]]))),
        ),
        (
            "an update, a tree of 100,000 forks",
            certified(long(0x40, &map(&[text("tree"), [0x83, 1].repeat(50_000)]))),
        ),
    ] {
        cases.push(answering(name, CHECK_OR_REJECTED, "200 OK", &body, "-u"));
    }
    // The submission is accepted, but the answer to the question for its outcome is invalid.
    cases.push(answering("an update, nothing", CHECK_OR_LOST, "200 OK", b"", "-u"));
    // Accepted, and then unknown: the same answer is invalid as an answer to the question for the outcome.
    cases.push(answering(
        "an update that is taken in, and garbage",
        CHECK_OR_LOST,
        "202 Accepted",
        b"",
        "-u",
    ));
    cases
}

/// The reject has no words, but it is one; whether it counts depends on which of them is read first.
const CHECK_OR_REJECTED: &[Ends] = &[Ends::Failed(ErrorClass::Check), Ends::Failed(ErrorClass::Rejected)];
/// The submission was well answered. An invalid answer to the question for the outcome is a bad one, or
/// one to wait longer for.
const CHECK_OR_LOST: &[Ends] = &[Ends::Ok, Ends::Failed(ErrorClass::Check), Ends::TimedOut];
