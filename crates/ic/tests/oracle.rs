//! Envelopes, held against the types that the Internet Computer's own agent sends.

use std::borrow::Cow;

use ic_transport_types::{Envelope, EnvelopeContent, to_request_id};
use plimsoll_ic::{Call, Identity, Kind, Principal, RequestId, is_signed_by, write_read_state};
use proptest::prelude::*;

fn decoded(envelope: &[u8]) -> Envelope<'static> {
    let envelope: Envelope<'_> =
        serde_cbor::from_slice(envelope).expect("the agent's types read the envelope");
    Envelope { content: Cow::Owned(envelope.content.into_owned()), ..envelope }
}

fn identity(who: usize) -> Identity {
    match who {
        0 => Ok(Identity::anonymous()),
        1 => Identity::ed25519(&[7; 32]),
        _ => Identity::secp256k1([9; 32]),
    }
    .expect("these are keys")
}

fn is_in_order(bytes: &[u8], id: RequestId, identity: &Identity) -> Envelope<'static> {
    assert_eq!(bytes[..3], [0xd9, 0xd9, 0xf7], "it says that it is CBOR");
    let envelope = decoded(bytes);
    let own = plimsoll_ic::Envelope::read(bytes).expect("and so do ours");
    assert_eq!((own.id, own.sender, own.authenticate()), (id, identity.sender(), Ok(())));
    assert_eq!(envelope.content.to_request_id().as_slice(), id.0);
    assert_eq!(to_request_id(&*envelope.content).expect("it has an id").as_slice(), id.0);
    assert_eq!(envelope.content.sender().as_slice(), identity.sender().as_bytes());
    assert_eq!(envelope.content.sender().to_text(), identity.sender().to_string());
    assert_eq!(envelope.sender_pubkey.as_deref(), identity.public_key_der());
    match (&envelope.sender_sig, identity.public_key_der()) {
        (Some(signature), Some(key)) => {
            let signable = envelope.content.to_request_id().signable();
            assert!(is_signed_by(key, &signable, signature));
        }
        (signature, key) => assert!(signature.is_none() && key.is_none()),
    }
    envelope
}

fn paths() -> impl Strategy<Value = Vec<Vec<Vec<u8>>>> {
    let label = prop::collection::vec(any::<u8>(), 0..40);
    prop::collection::vec(prop::collection::vec(label, 0..4), 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn calls_are_read_as_they_were_meant(
        update in any::<bool>(),
        canister in prop::collection::vec(any::<u8>(), 0..=29),
        method in "\\PC{0,40}",
        arg in prop::collection::vec(any::<u8>(), 0..400),
        nonce in prop::option::of(prop::collection::vec(any::<u8>(), 0..=32)),
        ingress_expiry_ns in any::<u64>(),
        who in 0..3_usize,
    ) {
        let identity = &identity(who);
        let kind = if update { Kind::Update } else { Kind::Query };
        let id = Principal::from_bytes(&canister).unwrap();
        let call = Call { kind, canister: id, method: &method, arg: &arg, nonce: None, ingress_expiry_ns };
        let call = Call { nonce: nonce.as_deref(), ..call };
        let mut out = Vec::new();
        let id = call.write_envelope(identity, &mut out);
        prop_assert_eq!(id, call.request_id(&identity.sender()));
        let envelope = is_in_order(&out, id, identity);
        let (EnvelopeContent::Call { nonce: n, ingress_expiry, canister_id, method_name, arg: a, .. }
        | EnvelopeContent::Query { nonce: n, ingress_expiry, canister_id, method_name, arg: a, .. }) =
            &*envelope.content
        else {
            panic!("{envelope:?}")
        };
        prop_assert_eq!(matches!(&*envelope.content, EnvelopeContent::Call { .. }), update);
        prop_assert_eq!((n, *ingress_expiry, a), (&nonce, ingress_expiry_ns, &arg));
        prop_assert_eq!((canister_id.as_slice(), method_name), (&canister[..], &method));
    }

    #[test]
    fn paths_of_a_state_are_read_as_they_were_meant(
        paths in paths(),
        expiry in any::<u64>(),
        who in 0..3_usize,
    ) {
        let identity = &identity(who);
        let borrowed: Vec<Vec<&[u8]>> =
            paths.iter().map(|path| path.iter().map(Vec::as_slice).collect()).collect();
        let borrowed: Vec<&[&[u8]]> = borrowed.iter().map(Vec::as_slice).collect();
        let mut out = Vec::new();
        let id = write_read_state(identity, &borrowed, expiry, &mut out);
        let envelope = is_in_order(&out, id, identity);
        let EnvelopeContent::ReadState { paths: read, ingress_expiry, .. } = &*envelope.content else {
            panic!("{envelope:?}")
        };
        prop_assert_eq!(*ingress_expiry, expiry);
        let read: Vec<Vec<Vec<u8>>> =
            read.iter().map(|path| path.iter().map(|label| label.as_bytes().to_vec()).collect()).collect();
        prop_assert_eq!(read, paths);
    }
}
