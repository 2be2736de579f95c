//! Certificates that the Internet Computer itself has made, as answers to `read_state` for the path `/time`
//! of the canister `ivg37-qiaaa-aaaab-aaaga-cai`. Its subnet shows a delegation of the root subnet.

use plimsoll_ic::{Answer, CertificateError, Lookup, Principal, RootKey, Verifier};

/// Its canister ranges lie in parts below a path of their own.
const TIME: &str = include_str!("mainnet/time.hex");
/// The older form, which lists them with the subnet.
const LISTED: &str = include_str!("mainnet/time_with_listed_ranges.hex");

/// The root key of the Internet Computer, as its interface specification and its agents have it.
const ROOT_KEY: &str = "308182301d060d2b0601040182dc7c0503010201060c2b0601040182dc7c05030201036100814c0e \
                        6ec71fab583b08bd81373c255c3c371b2e84863c98a4f1e08b74235d14fb5d9c0cd546d9685f913a \
                        0c0b2cc5341583bf4b4392e467db96d65b9bb4cb717112f8472e0d5a4d14505ffd7484b01291091c \
                        5f87b98883463f98091a0baaae";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        hex.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn certificate(body: &[u8]) -> &[u8] {
    match Answer::read(body).expect("it is an answer") {
        Answer::Certified { certificate } => certificate,
        other => panic!("{other:?}"),
    }
}

fn verifier() -> Verifier {
    Verifier::new(RootKey::from_der(&bytes(ROOT_KEY)).expect("it is a key"))
}

fn canister() -> Principal {
    "ivg37-qiaaa-aaaab-aaaga-cai".parse().expect("it is a principal")
}

/// The time that a certificate has, whatever the present one.
fn time_of(body: &[u8]) -> u64 {
    let error = verifier().verify(certificate(body), &canister(), 0).expect_err("1970 is long ago");
    let CertificateError::FromTheFuture { by } = error else { panic!("{error}") };
    by.as_nanos() as u64
}

#[test]
fn certificates_of_the_network_verify_at_their_time() {
    for hex in [TIME, LISTED] {
        let body = bytes(hex);
        let time = time_of(&body);
        let verified = verifier().verify(certificate(&body), &canister(), time + 1_000_000_000).unwrap();
        assert_eq!(verified.time_ns, time);
        assert_eq!(verified.tree.lookup(&[b"nothing"]).unwrap(), Lookup::Unknown);
        let late = verifier().verify(certificate(&body), &canister(), time + 301_000_000_000);
        assert!(matches!(late, Err(CertificateError::Stale { .. })), "{late:?}");
    }
}

#[test]
fn a_subnet_does_not_speak_for_canisters_that_it_does_not_have() {
    for hex in [TIME, LISTED] {
        let body = bytes(hex);
        let governance: Principal = "rrkah-fqaaa-aaaaa-aaaaq-cai".parse().unwrap();
        let error = verifier().verify(certificate(&body), &governance, time_of(&body)).unwrap_err();
        assert_eq!(error, CertificateError::OtherCanisters);
    }
}

#[test]
fn another_root_key_or_a_changed_byte_is_noticed() {
    let body = bytes(TIME);
    let time = time_of(&body);
    let other = plimsoll_ic::Authority::from_seed(&[1; 32]);
    let other = Verifier::new(RootKey::from_der(other.public_key_der()).unwrap());
    let error = other.verify(certificate(&body), &canister(), time).unwrap_err();
    assert_eq!(error, CertificateError::WrongSignature);
    for place in (0..body.len()).step_by(7) {
        let mut changed = body.clone();
        changed[place] ^= 1;
        let verified = match Answer::read(&changed) {
            Ok(Answer::Certified { certificate }) => {
                verifier().verify(certificate, &canister(), time).is_ok()
            }
            _ => false,
        };
        // A bit of a tag is all that nobody looks at.
        assert!(!verified || (4..40).contains(&place), "byte {place}");
    }
}
