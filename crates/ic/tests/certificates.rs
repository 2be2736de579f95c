//! Certificates that are made here, and other bytes in their place.

use plimsoll_ic::answer::{Reject, ReplicaStatus, RequestStatus, request_status};
use plimsoll_ic::cbor::{write_bytes, write_map, write_text};
use plimsoll_ic::witness::{self, Delegation, Node, Outcome, Rejection, Round};
use plimsoll_ic::{
    Answer, Authority, CertificateError, Lookup, Principal, RequestId, RootKey, Verifier, cbor,
};
use proptest::prelude::*;

const NOW: u64 = 1_700_000_000_000_000_000;

fn authority() -> Authority {
    Authority::from_seed(&[42; 32])
}

fn verifier() -> Verifier {
    Verifier::new(RootKey::from_der(authority().public_key_der()).expect("it is a key"))
}

fn id(number: u64) -> RequestId {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    RequestId(bytes)
}

fn any_canister() -> Principal {
    Principal::from_bytes(&[0, 0, 0, 0, 0, 0, 0, 7, 1, 1]).expect("ten bytes are few enough")
}

#[test]
fn each_call_of_a_round_has_a_certificate() {
    for count in [1, 2, 3, 4, 5, 7, 8, 31, 100] {
        let calls = (0..count).map(|n| (id(n), Outcome::Replied(n.to_le_bytes().to_vec()))).collect();
        let round = Round::sign(&authority(), NOW, calls);
        for n in 0..count {
            let mut bytes = Vec::new();
            round.write_certificate(round.place(&id(n)).unwrap(), &mut bytes);
            let reply = n.to_le_bytes();
            let replied = RequestStatus::Replied { reply: &reply };
            assert_eq!(request_status(&bytes, &id(n)), Ok(replied), "{n} of {count}");
            // One signature for all of them, so that checking a few is enough.
            if n % 10 == 0 {
                let verified = verifier().verify(&bytes, &any_canister(), NOW).unwrap();
                assert_eq!(verified.request_status(&id(n)), Ok(replied));
                let other = verified.request_status(&id(count + 1));
                if count > 1 {
                    assert_eq!(other, Err(CertificateError::Absent), "{n} of {count}");
                }
            }
        }
        assert_eq!(round.place(&id(count + 1)), None);
    }
}

#[test]
fn outcomes_are_read_as_they_were_meant() {
    let rejection = Rejection { code: 5, message: "trapped".to_owned(), error_code: None };
    let finer = Rejection { error_code: Some("IC0503"), ..rejection.clone() };
    for (outcome, status) in [
        (Outcome::Unknown, RequestStatus::Unknown),
        (Outcome::Received, RequestStatus::Received),
        (Outcome::Processing, RequestStatus::Processing),
        (Outcome::Rejected(rejection.clone()), RequestStatus::Rejected(rejection.reject())),
        (Outcome::Rejected(finer.clone()), RequestStatus::Rejected(finer.reject())),
        (Outcome::Replied(Vec::new()), RequestStatus::Replied { reply: b"" }),
    ] {
        let round = Round::sign(&authority(), NOW, vec![(id(1), Outcome::Unknown), (id(1), outcome)]);
        let mut bytes = Vec::new();
        round.write_certificate(0, &mut bytes);
        assert_eq!(request_status(&bytes, &id(1)), Ok(status));
        assert_eq!(
            status.is_final(),
            matches!(status, RequestStatus::Replied { .. } | RequestStatus::Rejected(_))
        );
    }
}

#[test]
fn a_round_without_calls_still_tells_the_time() {
    let mut bytes = Vec::new();
    Round::sign(&authority(), NOW, Vec::new()).write_certificate(0, &mut bytes);
    let verified = verifier().verify(&bytes, &any_canister(), NOW).unwrap();
    assert_eq!((verified.time_ns, verified.request_status(&id(1))), (NOW, Ok(RequestStatus::Unknown)));
}

#[test]
fn why_a_certificate_proves_nothing_has_a_class() {
    let mut bytes = Vec::new();
    let round = Round::sign(&authority(), NOW, vec![(id(1), Outcome::Received)]);
    round.write_certificate(0, &mut bytes);
    let minutes = |count: u64| count * 60_000_000_000;
    let verify = |bytes: &[u8], now| verifier().verify(bytes, &any_canister(), now).map(|_| ());
    assert_eq!(verify(&bytes, NOW), Ok(()));
    assert_eq!(
        verify(&bytes, NOW + minutes(6)),
        Err(CertificateError::Stale { age: std::time::Duration::from_secs(360) })
    );
    assert!(matches!(verify(&bytes, NOW - minutes(6)), Err(CertificateError::FromTheFuture { .. })));
    let other = Authority::from_seed(&[1; 32]);
    let other = Verifier { root: RootKey::from_der(other.public_key_der()).unwrap(), ..verifier() };
    assert_eq!(other.verify(&bytes, &any_canister(), NOW).map(|_| ()), Err(CertificateError::WrongSignature));
    assert!(matches!(verify(b"hello", NOW), Err(CertificateError::Undecodable(_))));
    assert!(matches!(verify(&[], NOW), Err(CertificateError::Undecodable(_))));
    let timeless = witness::certificate(&authority(), &Node::labelled(b"a", Node::leaf(b"b")), None);
    assert_eq!(verify(&timeless, NOW), Err(CertificateError::Absent));
}

#[test]
fn a_delegation_is_for_its_canisters_only() {
    let subnet = Authority::from_seed(&[9; 32]);
    let subnet_id = Principal::self_authenticating(subnet.public_key_der());
    let mut ranges = vec![0x81, 0x82];
    write_bytes(&mut ranges, &[0, 0, 0, 0, 0, 0, 0, 5, 1, 1]);
    write_bytes(&mut ranges, &[0, 0, 0, 0, 0, 0, 0, 8, 1, 1]);
    let root_tree = Node::forest([
        (
            b"subnet".to_vec(),
            Node::labelled(
                subnet_id.as_bytes(),
                Node::forest([
                    (b"canister_ranges".to_vec(), Node::leaf(&ranges)),
                    (b"public_key".to_vec(), Node::leaf(subnet.public_key_der())),
                ]),
            ),
        ),
        (b"time".to_vec(), Node::number(NOW)),
    ]);
    let delegation = Delegation {
        subnet: subnet_id.as_bytes().to_vec(),
        certificate: witness::certificate(&authority(), &root_tree, None),
    };
    let tree = Node::labelled(b"time", Node::number(NOW));
    let bytes = witness::certificate(&subnet, &tree, Some(&delegation));
    let verify = |canister: &Principal| verifier().verify(&bytes, canister, NOW).map(|_| ());
    assert_eq!((verify(&any_canister()), verify(&Principal::management())), (Ok(()), Ok(())));
    let outside = Principal::from_bytes(&[0, 0, 0, 0, 0, 0, 0, 9, 1, 1]).unwrap();
    assert_eq!(verify(&outside), Err(CertificateError::OtherCanisters));
    let unsigned = Delegation { certificate: witness::certificate(&subnet, &root_tree, None), ..delegation };
    let bytes = witness::certificate(&subnet, &tree, Some(&unsigned));
    let error = verifier().verify(&bytes, &any_canister(), NOW).unwrap_err();
    assert_eq!(error, CertificateError::WrongSignature);
}

#[test]
fn what_was_cut_off_is_unknown_and_what_is_not_there_is_absent() {
    let label = |label: &str| (label.as_bytes().to_vec(), Node::leaf(label.as_bytes()));
    let cut = |label: &str| Node::Pruned(Node::labelled(label.as_bytes(), Node::Empty).hash());
    let left = Node::forest([label("b"), label("d")]);
    let tree = Node::Fork(Box::new([left, Node::Fork(Box::new([cut("f"), Node::forest([label("h")])]))]));
    let bytes = witness::certificate(&authority(), &tree, None);
    let tree = plimsoll_ic::Tree::at(cbor::find(&bytes, &["tree"]).unwrap().unwrap());
    let lookup = |wanted: &str| tree.lookup(&[wanted.as_bytes()]).unwrap();
    for found in ["b", "d", "h"] {
        assert_eq!(lookup(found), Lookup::Found(found.as_bytes()));
    }
    for absent in ["a", "c", "i"] {
        assert_eq!(lookup(absent), Lookup::Absent, "{absent}");
    }
    for unknown in ["e", "f", "g"] {
        assert_eq!(lookup(unknown), Lookup::Unknown, "{unknown}");
    }
    assert_eq!(tree.lookup(&[b"b", b"more"]).unwrap(), Lookup::Absent);
}

#[test]
fn answers_of_all_kinds() {
    // The plain sink's body.
    let replied = b"\xa2\x66status\x67replied\x65reply\xa1\x63arg\x44\x01\x02\x03\x04";
    assert_eq!(Answer::read(replied), Ok(Answer::Replied { arg: &[1, 2, 3, 4] }));
    let indefinite =
        b"\xd9\xd9\xf7\xbf\x66status\x67replied\x65reply\xbf\x63arg\x41\x07\xff\x69timestamp\x01\xff";
    assert_eq!(Answer::read(indefinite), Ok(Answer::Replied { arg: &[7] }));
    assert_eq!(Answer::read(b""), Ok(Answer::Accepted));
    for status in ["rejected", "non_replicated_rejection"] {
        let mut out = Vec::new();
        write_map(&mut out, 4);
        for (key, value) in
            [("status", status), ("reject_message", "no such canister"), ("error_code", "IC0301")]
        {
            write_text(&mut out, key);
            write_text(&mut out, value);
        }
        write_text(&mut out, "reject_code");
        cbor::write_number(&mut out, 3);
        let reject = Reject { code: 3, message: "no such canister", error_code: Some("IC0301") };
        assert_eq!(Answer::read(&out), Ok(Answer::Rejected(reject)));
    }
    let certified = b"\xa2\x66status\x67replied\x6bcertificate\x42\x01\x02";
    assert_eq!(Answer::read(certified), Ok(Answer::Certified { certificate: &[1, 2] }));
    assert_eq!(
        Answer::read(b"\xa1\x6bcertificate\x42\x01\x02"),
        Ok(Answer::Certified { certificate: &[1, 2] })
    );
    let wrong = [
        &b"hello"[..],
        b"<html>",
        b"\xa0",
        b"\xa1\x66status\x67replied",
        b"\xa1\x66status\x68rejected",
        // A whole answer, and bytes behind it.
        b"\xa2\x66status\x67replied\x65reply\xa1\x63arg\x41\x07\x00",
    ];
    for wrong in wrong {
        assert!(Answer::read(wrong).is_err(), "{wrong:?}");
    }
    let status = b"\xd9\xd9\xf7\xa2\x75replica_health_status\x67healthy\x68root_key\x41\x05";
    let status = ReplicaStatus::read(status).unwrap();
    assert_eq!((status.root_key, status.is_healthy()), (Some(&[5][..]), true));
    let starting = ReplicaStatus::read(b"\xa1\x75replica_health_status\x68starting").unwrap();
    assert!(!starting.is_healthy());
}

fn all_read(bytes: &[u8]) {
    let _ = Answer::read(bytes);
    let _ = ReplicaStatus::read(bytes);
    let _ = request_status(bytes, &id(1));
    let _ = plimsoll_ic::Envelope::read(bytes);
    let _ = verifier().verify(bytes, &any_canister(), NOW);
}

#[test]
fn nesting_takes_no_stack() {
    for bytes in [&b"\xa1\x64tree"[..], b"\xa1\x66status", b""] {
        for nest in [&[0x83_u8, 1][..], &[0x83, 2, 0x41, 1], &[0x81], &[0x9f], &[0xc1], &[0xbf, 0x61, 0x61]] {
            let mut nested = bytes.to_vec();
            nested.extend(nest.repeat(200_000));
            all_read(&nested);
        }
    }
    let mut deep = b"\xa2\x69signature\x41\x01\x64tree".to_vec();
    deep.extend([0x83, 2, 0x41, 1].repeat(100_000));
    deep.extend([0x81, 0]);
    let error = verifier().verify(&deep, &any_canister(), NOW).unwrap_err();
    assert!(matches!(error, CertificateError::Undecodable(why) if why.problem.contains("deeper")), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_are_refused_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        all_read(&bytes);
    }

    #[test]
    fn changed_certificates_are_refused_without_harm(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let rejection = Rejection { code: 4, message: "no".to_owned(), error_code: Some("IC0406") };
        let calls = (0..5).map(|n| (id(n), Outcome::Rejected(rejection.clone()))).collect();
        let mut bytes = Vec::new();
        Round::sign(&authority(), NOW, calls).write_certificate(2, &mut bytes);
        all_read(&bytes[..cut.index(bytes.len())]);
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        all_read(&bytes);
    }
}
