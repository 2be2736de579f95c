//! The Internet Computer's own agent, with all that it verifies, against the sink as a replica.
//! It has a binary of its own: `candid` compares its numbers with those of the language, which other tests
//! would have to take into account.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use ic_agent::agent::Agent;
use ic_agent::export::Principal;
use ic_agent::identity::{AnonymousIdentity, BasicIdentity, Secp256k1Identity};
use ic_agent::{AgentError, Identity};
use plimsoll_driver::{BackendOptions, Endpoint, KernelBackend};
use plimsoll_targets::sink::service::Canister;
use plimsoll_targets::{Service, Sink, SinkOptions};

const SECP256K1: [u8; 32] = [5; 32];

fn replica(canister: Canister) -> Sink {
    let listen = Endpoint::Tcp(([127, 0, 0, 1], 0).into());
    let options = SinkOptions { service: Service::Canister(canister), ..SinkOptions::new(listen) };
    Sink::start(options, KernelBackend::Epoll(BackendOptions::default())).unwrap()
}

fn agent(sink: &Sink, identity: impl Identity + 'static) -> Agent {
    Agent::builder()
        .with_url(format!("http://{}", sink.endpoint()))
        .with_identity(identity)
        .with_max_polling_time(Duration::from_secs(10))
        .build()
        .unwrap()
}

fn on_a_runtime(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

/// Status, query and update, everything verified: senders by the sink, certificates and signatures of nodes
/// by the agent.
async fn all_is_well(sink: &Sink, agent: Agent, count_before: u32) -> u32 {
    assert_eq!(agent.status().await.unwrap().replica_health_status.as_deref(), Some("healthy"));
    agent.fetch_root_key().await.unwrap();
    let canister = Principal::from_text("rrkah-fqaaa-aaaaa-aaaaq-cai").unwrap();
    let counted = |reply: Vec<u8>| u32::from_le_bytes(reply.try_into().unwrap());
    let read = agent.query(&canister, "read").with_arg(vec![]).call().await.unwrap();
    assert_eq!(counted(read), count_before);
    let written = agent.update(&canister, "write").with_arg(vec![]).call_and_wait().await.unwrap();
    assert_eq!(counted(written), count_before + 1);
    let read = agent.query(&canister, "read").with_arg(vec![]).call().await.unwrap();
    assert_eq!(counted(read), count_before + 1);
    let echoed =
        agent.update(&canister, "echo").with_arg(b"DIDL\0\0".to_vec()).call_and_wait().await.unwrap();
    assert_eq!(echoed, b"DIDL\0\0");
    assert!(sink.counter() >= 6);
    count_before + 1
}

#[test]
fn the_agent_of_the_network_queries_and_updates() {
    for accepted in [0.0, 1.0] {
        let options =
            Canister { accepted, check_signatures: true, sign_queries: true, ..Canister::default() };
        let sink = replica(options);
        on_a_runtime(async {
            let count = all_is_well(&sink, agent(&sink, AnonymousIdentity), 0).await;
            let basic = BasicIdentity::from_raw_key(&[3; 32]);
            let own = plimsoll_ic::Identity::ed25519(&[3; 32]).unwrap();
            assert_eq!(basic.sender().unwrap().as_slice(), own.sender().as_bytes());
            let count = all_is_well(&sink, agent(&sink, basic), count).await;
            let key = secp256k1_of_the_agent();
            let own = plimsoll_ic::Identity::secp256k1(SECP256K1).unwrap();
            assert_eq!(key.sender().unwrap().as_slice(), own.sender().as_bytes());
            all_is_well(&sink, agent(&sink, key), count).await;
        });
        let report = sink.stop();
        assert_eq!((report.replied, report.rejections), (report.counter, 0));
    }
}

fn secp256k1_of_the_agent() -> Secp256k1Identity {
    Secp256k1Identity::from_private_key(k256::SecretKey::from_slice(&SECP256K1).unwrap())
}

#[test]
fn what_is_wrong_is_noticed_by_the_agent() {
    let sink = replica(Canister { strict: true, ..Canister::default() });
    on_a_runtime(async {
        let agent = agent(&sink, AnonymousIdentity);
        let canister = Principal::from_text("rrkah-fqaaa-aaaaa-aaaaq-cai").unwrap();
        // With the root key of the Internet Computer, which is not the sink's.
        let error = agent.update(&canister, "write").call_and_wait().await.unwrap_err();
        assert!(matches!(error, AgentError::CertificateVerificationFailed()), "{error}");
        agent.fetch_root_key().await.unwrap();
        let error = agent.query(&canister, "read").call().await.unwrap_err();
        assert!(matches!(error, AgentError::MissingSignature), "{error}");
        let error = agent.update(&canister, "jump").call_and_wait().await.unwrap_err();
        let AgentError::CertifiedReject { reject, .. } = error else { panic!("{error}") };
        assert_eq!(reject.reject_message, format!("Canister {canister} has no method 'jump'"));
    });
    assert_eq!(sink.stop().rejections, 1);
}
