//! Signatures of evidence.

use plimsoll_core::Random;
use plimsoll_metrics::{Model, Outline, RunRecord, judge};
use plimsoll_report::{RunContext, RunResult};

use super::*;

/// A file of evidence, signed by this key.
fn written(key: &Ed25519KeyPair) -> Vec<u8> {
    let mut record = RunRecord::empty(Model::Open);
    record.verdict = judge(&record);
    let result = RunResult::new(&record, RunContext::default());
    let evidence = Evidence::new(record, RunContext::default(), Outline::default(), None)
        .of_result(&result)
        .expect("a result is JSON");
    sign(key, &evidence.to_bytes().expect("it is written"))
}

fn any_key() -> Ed25519KeyPair {
    Ed25519KeyPair::generate().expect("random bytes")
}

#[test]
fn no_byte_can_be_changed() {
    let sound = written(&any_key());
    let read = of_bytes(&sound).expect("it is sound");
    assert_eq!(read.verify().contradictions, []);
    let mut random = Random::new(1, 0);
    for _ in 0..1_000 {
        let mut changed = sound.clone();
        let at = random.below(changed.len() as u64) as usize;
        match random.below(4) {
            0 => changed.truncate(at),
            1 => changed.insert(at, random.bits() as u8),
            _ => changed[at] ^= 1 << random.below(8),
        }
        if changed != sound {
            assert!(of_bytes(&changed).is_err(), "byte {at} of {}", sound.len());
        }
    }
    // Not even one behind the end.
    assert!(of_bytes(&[&sound[..], b"\n"].concat()).is_err());
}

#[test]
fn a_key_is_read_from_pem() {
    let key = any_key();
    let der = key.to_pkcs8v1().expect("it can be written");
    let text =
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", BASE64.encode(der.as_ref()));
    let again = key_of(text.as_bytes()).expect("it is read");
    let read = of_bytes(&written(&again)).expect("it is sound");
    assert_eq!(read.key, BASE64.encode(key.public_key()));
    assert_eq!(key_of(b"no key").err(), Some("no private key in PEM (PKCS #8)"));
}

#[test]
fn something_else_is_said_to_be_none() {
    for (bytes, message) in [
        (&b""[..], "no evidence of a run or a search"),
        (b"{\"schema_version\": 1}\n", "no evidence of a run or a search"),
        (b"plimsoll-evidence 9 a b\nx", "evidence of another format"),
        (b"plimsoll-evidence 1 a\nx", "the signature is not that of the content"),
    ] {
        let problem = of_bytes(bytes).expect_err("none");
        assert!(problem.message.contains(message), "{problem:?}");
    }
}

mod forgery;
mod searches;
