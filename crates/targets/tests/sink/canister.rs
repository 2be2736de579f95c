//! The sink as a replica.

use plimsoll_driver::KernelBackend;
use plimsoll_ic::answer::{ReplicaStatus, RequestStatus, request_status};
use plimsoll_ic::{
    Answer, Call, Identity, Kind, Lookup, Principal, RequestId, RootKey, Verifier, write_read_state,
};
use plimsoll_system::clock;
use plimsoll_targets::sink::service::Canister;
use plimsoll_targets::{Action, FaultModel, Faults, Intent, Service, SinkOptions};
use plimsoll_testkit::on_every_backend;
use plimsoll_wire::http2::ClientOptions;

use crate::sink::client::{Client, Response};
use crate::sink::streams::{Extra, Streams};
use crate::sink::{assert_identity, plain, start};

on_every_backend! {
    calls_are_carried_out_and_certified_in_both_protocols,
    calls_that_were_taken_in_are_asked_for,
    what_no_replica_takes_is_refused_with_a_reason,
    controllers_and_the_module_of_a_canister_are_certified,
    many_calls_in_one_piece_have_their_certificates_in_order,
    rejects_and_garbage_are_those_of_the_truth_log,
}

const CANISTER: &str = "rrkah-fqaaa-aaaaa-aaaaq-cai";

fn canister(canister: Canister) -> SinkOptions {
    SinkOptions { service: Service::Canister(canister), ..plain() }
}

fn post(path: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("POST {path} HTTP/1.1\r\nhost: sink\r\ncontent-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// The path at which a canister is asked for `what`.
fn path(version: u8, what: &str) -> String {
    format!("/api/v{version}/canister/{CANISTER}/{what}")
}

fn in_a_minute() -> u64 {
    clock::unix().0 + 60_000_000_000
}

/// A call of a method without an argument.
fn call(kind: Kind, method: &'static str, nonce: &'static [u8]) -> Call<'static> {
    let canister = CANISTER.parse().unwrap();
    Call { kind, canister, method, arg: &[], nonce: Some(nonce), ingress_expiry_ns: in_a_minute() }
}

fn envelope(call: &Call<'_>, identity: &Identity) -> (RequestId, Vec<u8>) {
    let mut out = Vec::new();
    (call.write_envelope(identity, &mut out), out)
}

fn verifier(client: &mut Client, conn: usize) -> Verifier {
    client.send(conn, b"GET /api/v2/status HTTP/1.1\r\nhost: sink\r\n\r\n");
    let response = client.response(conn);
    let status = ReplicaStatus::read(&response.body).unwrap();
    assert!(status.is_healthy());
    Verifier::new(RootKey::from_der(status.root_key.unwrap()).unwrap())
}

/// The reply that a verified certificate shows for a call.
fn certified(verifier: &Verifier, body: &[u8], id: &RequestId) -> Vec<u8> {
    let Answer::Certified { certificate } = Answer::read(body).unwrap() else { panic!("{body:?}") };
    let canister: Principal = CANISTER.parse().unwrap();
    let verified = verifier.verify(certificate, &canister, clock::unix().0).unwrap();
    match verified.request_status(id).unwrap() {
        RequestStatus::Replied { reply } => reply.to_vec(),
        other => panic!("{other:?}"),
    }
}

fn replied(body: &[u8]) -> Vec<u8> {
    match Answer::read(body).unwrap() {
        Answer::Replied { arg } => arg.to_vec(),
        other => panic!("{other:?}"),
    }
}

fn calls_are_carried_out_and_certified_in_both_protocols(backend: KernelBackend) {
    let checked = Canister { check_signatures: true, strict: true, ..Canister::default() };
    let sink = start(SinkOptions { threads: 2, ..canister(checked) }, backend);
    let mut client = Client::new();
    let conn = client.connect(sink.endpoint());
    let verifier = verifier(&mut client, conn);
    let mut streams = Streams::connect(&mut client, sink.endpoint(), &ClientOptions::default());
    let identity = Identity::ed25519(&[3; 32]).unwrap();
    for (round, version) in [3_u8, 4].into_iter().enumerate() {
        let expected = [(2 * round + 1) as u8, 0, 0, 0];
        let nonce = if round == 0 { b"1" } else { b"2" };
        let (id, body) = envelope(&call(Kind::Update, "write", nonce), &identity);
        // The same message again is the same call.
        for _ in 0..2 {
            client.send(conn, &post(&path(version, "call"), &body));
            let response = client.response(conn);
            assert_eq!(response.status, 200);
            assert_eq!(certified(&verifier, &response.body, &id), expected);
        }
        let (id, body) = envelope(&call(Kind::Update, "write", nonce), &Identity::anonymous());
        let request = streams.request("POST", &path(version, "call"), Extra { fields: &[], body: &body });
        let reply = streams.reply(&mut client, request);
        assert_eq!(reply.status, 200);
        assert_eq!(certified(&verifier, &reply.body, &id), [expected[0] + 1, 0, 0, 0]);
        let (_, body) = envelope(&call(Kind::Query, "read", nonce), &identity);
        client.send(conn, &post(&path(2, "query"), &body));
        let response = client.response(conn);
        assert!(response.head.contains("content-type: application/cbor\r\n"), "{}", response.head);
        assert_eq!(replied(&response.body), [expected[0] + 1, 0, 0, 0]);
    }
    let (_, body) = envelope(&call(Kind::Query, "other", b""), &identity);
    client.send(conn, &post(&path(3, "query"), &body));
    let response = client.response(conn);
    let Ok(Answer::Rejected(reject)) = Answer::read(&response.body) else {
        panic!("strict canisters have two methods")
    };
    assert_eq!((reject.code, reject.error_code), (5, Some("IC0536")));
    let report = sink.stop();
    assert_identity(&report);
    assert_eq!((report.counter, report.rejections), (10, 1));
}

fn calls_that_were_taken_in_are_asked_for(backend: KernelBackend) {
    let sink = start(canister(Canister { accepted: 1.0, ..Canister::default() }), backend);
    let mut client = Client::new();
    let conn = client.connect(sink.endpoint());
    let verifier = verifier(&mut client, conn);
    let identity = Identity::secp256k1([5; 32]).unwrap();
    let ask = |client: &mut Client, id: &RequestId| {
        let mut body = Vec::new();
        write_read_state(&identity, &[&[b"request_status", &id.0]], in_a_minute(), &mut body);
        client.send(conn, &post(&path(3, "read_state"), &body));
        client.response(conn)
    };
    for (version, count) in [(2, 1_u8), (3, 2), (4, 3)] {
        let nonce = [&b"2"[..], b"3", b"4"][usize::from(count) - 1];
        let (id, body) = envelope(&call(Kind::Update, "write", nonce), &identity);
        let before = ask(&mut client, &id);
        let Answer::Certified { certificate } = Answer::read(&before.body).unwrap() else { panic!() };
        assert_eq!(request_status(certificate, &id), Ok(RequestStatus::Unknown));
        client.send(conn, &post(&path(version, "call"), &body));
        let response = client.response(conn);
        assert_eq!((response.status, Answer::read(&response.body)), (202, Ok(Answer::Accepted)));
        assert_eq!(certified(&verifier, &ask(&mut client, &id).body, &id), [count, 0, 0, 0]);
    }
    assert_identity(&sink.stop());
    // While the call is being carried out, its status says no more.
    let processing = plimsoll_core::Nanos::from_secs(3600);
    let sink = start(canister(Canister { accepted: 1.0, processing, ..Canister::default() }), backend);
    let conn = client.connect(sink.endpoint());
    let (id, body) = envelope(&call(Kind::Update, "write", b""), &identity);
    client.send(conn, &post(&path(4, "call"), &body));
    assert_eq!(client.response(conn).status, 202);
    let mut body = Vec::new();
    write_read_state(&identity, &[&[b"request_status", &id.0]], in_a_minute(), &mut body);
    client.send(conn, &post(&path(2, "read_state"), &body));
    let response = client.response(conn);
    let Answer::Certified { certificate } = Answer::read(&response.body).unwrap() else { panic!() };
    assert_eq!(request_status(certificate, &id), Ok(RequestStatus::Processing));
}

fn what_no_replica_takes_is_refused_with_a_reason(backend: KernelBackend) {
    let known = Some("aaaaa-aa".parse().unwrap());
    let sink =
        start(canister(Canister { check_signatures: true, id: known, ..Canister::default() }), backend);
    let mut client = Client::new();
    let conn = client.connect(sink.endpoint());
    let identity = Identity::ed25519(&[3; 32]).unwrap();
    let query = call(Kind::Query, "read", b"");
    let (_, good) = envelope(&query, &identity);
    let late = Call { ingress_expiry_ns: in_a_minute() - 120_000_000_000, ..query };
    let (_, late) = envelope(&late, &identity);
    let early = Call { ingress_expiry_ns: in_a_minute() + 300_000_000_000, ..query };
    let (_, early) = envelope(&early, &identity);
    let mut forged = good.clone();
    *forged.last_mut().unwrap() ^= 1;
    let mut say = |path: &str, body: &[u8]| -> Response {
        client.send(conn, &post(path, body));
        client.response(conn)
    };
    for (what, body, reason) in [
        ("query", &late[..], "has passed"),
        ("query", &early, "further ahead"),
        ("query", &forged, "signature of the message is wrong"),
        ("query", b"hello", "the envelope cannot be read"),
        ("query", b"", "the envelope cannot be read"),
        ("call", &good, "another type"),
        ("read_state", &good, "another type"),
    ] {
        let response = say(&path(2, what), body);
        let text = String::from_utf8(response.body).unwrap();
        assert_eq!(response.status, 400, "{reason}");
        assert!(text.contains(reason), "{text}");
    }
    for (path, status) in [
        ("/api/v2/canister/rrkah-fqaaa-aaaaa-aaaaq-caa/query", 400),
        ("/api/v2/canister/ryjl3-tyaaa-aaaaa-aaaba-cai/query", 400),
        ("/api/v5/canister/aaaaa-aa/query", 404),
        ("/api/v2/canister/aaaaa-aa/quarry", 404),
        ("/api/v2/status", 404),
        ("/", 404),
    ] {
        assert_eq!(say(path, &good).status, status, "{path}");
    }
    // It is in order, but there is no such canister.
    let response = say(&path(2, "query"), &good);
    let Ok(Answer::Rejected(reject)) = Answer::read(&response.body) else { panic!("{response:?}") };
    assert_eq!((response.status, reject.code, reject.error_code), (200, 3, Some("IC0301")));
    let (_, update) = envelope(&call(Kind::Update, "write", b""), &identity);
    let response = say(&path(4, "call"), &update);
    let Ok(Answer::Rejected(reject)) = Answer::read(&response.body) else { panic!("{response:?}") };
    assert_eq!((response.status, reject.code, reject.error_code), (200, 3, Some("IC0301")));
    let report = sink.stop();
    assert_identity(&report);
    assert_eq!(report.rejections, 2);
}

fn controllers_and_the_module_of_a_canister_are_certified(backend: KernelBackend) {
    let known: Principal = CANISTER.parse().unwrap();
    let other = Principal::management();
    let sink = start(canister(Canister { id: Some(known), ..Canister::default() }), backend);
    let mut client = Client::new();
    let conn = client.connect(sink.endpoint());
    let verifier = verifier(&mut client, conn);
    let [ours, others] = [known, other].map(|id| id.as_bytes().to_vec());
    let paths: [&[&[u8]]; 3] = [
        &[b"canister", &ours, b"controllers"],
        &[b"canister", &ours, b"module_hash"],
        &[b"canister", &others, b"module_hash"],
    ];
    let mut body = Vec::new();
    write_read_state(&Identity::anonymous(), &paths, in_a_minute(), &mut body);
    client.send(conn, &post(&path(3, "read_state"), &body));
    let response = client.response(conn);
    let Answer::Certified { certificate } = Answer::read(&response.body).unwrap() else { panic!() };
    let verified = verifier.verify(certificate, &known, clock::unix().0).unwrap();
    let [controllers, module, absent] = paths.map(|path| verified.tree.lookup(path).unwrap());
    // A list of one principal, which has 29 bytes.
    let Lookup::Found(controllers) = controllers else { panic!("{controllers:?}") };
    assert_eq!((&controllers[..6], controllers.len()), (&b"\xd9\xd9\xf7\x81\x58\x1d"[..], 35));
    assert!(matches!(module, Lookup::Found(hash) if hash.len() == 32), "{module:?}");
    assert_eq!(absent, Lookup::Absent);
    assert_identity(&sink.stop());
}

fn many_calls_in_one_piece_have_their_certificates_in_order(backend: KernelBackend) {
    let sink = start(canister(Canister::default()), backend);
    let mut client = Client::new();
    let conn = client.connect(sink.endpoint());
    let verifier = verifier(&mut client, conn);
    let (mut ids, mut bytes) = (Vec::new(), Vec::new());
    for number in 0..100_u32 {
        let nonce = number.to_be_bytes();
        let write = call(Kind::Update, "write", b"");
        let (id, body) = envelope(&Call { nonce: Some(&nonce), ..write }, &Identity::anonymous());
        ids.push(id);
        bytes.extend(post(&path(4, "call"), &body));
    }
    client.send(conn, &bytes);
    for (number, id) in (1_u32..).zip(&ids) {
        let response = client.response(conn);
        let Ok(Answer::Certified { certificate }) = Answer::read(&response.body) else {
            panic!("{response:?}")
        };
        let reply = number.to_le_bytes();
        assert_eq!(request_status(certificate, id), Ok(RequestStatus::Replied { reply: &reply }), "{number}");
        if number % 25 == 0 {
            assert_eq!(certified(&verifier, &response.body, id), reply);
        }
    }
    assert_identity(&sink.stop());
}

fn rejects_and_garbage_are_those_of_the_truth_log(backend: KernelBackend) {
    let faults = Faults { reject: 0.2, garbage: 0.2, statuses: vec![(503, 0.1)], ..Faults::default() };
    let options = SinkOptions { faults, ..canister(Canister { accepted: 0.5, ..Canister::default() }) };
    let law = FaultModel::new(&options);
    let sink = start(options, backend);
    let mut client = Client::new();
    let conn = client.connect(sink.endpoint());
    let mut seen = Vec::new();
    for number in 0..200_u32 {
        let nonce = number.to_be_bytes();
        let (kind, what) = if number % 2 == 0 { (Kind::Update, "call") } else { (Kind::Query, "query") };
        let write = call(kind, "write", b"");
        let (id, body) = envelope(&Call { nonce: Some(&nonce), ..write }, &Identity::anonymous());
        client.send(conn, &post(&path(3, what), &body));
        let response = client.response(conn);
        let intent = law.fate(u64::from(number)).intent;
        let action = match (response.status, Answer::read(&response.body)) {
            (503, _) => Action::Status(503),
            (200, Err(_)) => Action::Garbage,
            (200, Ok(Answer::Replied { .. })) => Action::Replied,
            (200, Ok(Answer::Rejected(reject))) => {
                assert_eq!(reject.code, 4);
                Action::Rejected
            }
            (200, Ok(Answer::Certified { certificate })) => match request_status(certificate, &id) {
                Ok(RequestStatus::Replied { .. }) => Action::Replied,
                Ok(RequestStatus::Rejected(_)) => Action::Rejected,
                other => panic!("{other:?}"),
            },
            // A later question for its outcome shows it.
            (202, _) if intent == Intent::Reject => Action::Rejected,
            (202, _) => Action::Replied,
            other => panic!("{other:?}"),
        };
        seen.push(action);
        let expected = match intent {
            Intent::Reply => Action::Replied,
            Intent::Reject => Action::Rejected,
            Intent::Garbage => Action::Garbage,
            Intent::Status(status) => Action::Status(status),
            other => panic!("{other:?}"),
        };
        assert_eq!(action, expected, "{number}");
    }
    let report = sink.stop();
    assert_identity(&report);
    assert_eq!(report.truth.iter().map(|row| row.action).collect::<Vec<_>>(), seen);
    assert!(report.rejections > 20 && report.garbage > 20 && report.statuses > 5, "{report:?}");
}
