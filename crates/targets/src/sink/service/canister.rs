//! The sink as a replica of the Internet Computer: a subnet of one node, with one key, and canisters that
//! count.

mod ask;
mod calls;
mod forms;
mod response_signer;

use std::sync::atomic::{AtomicU32, Ordering};

use plimsoll_core::Nanos;
use plimsoll_ic::witness::{self, Node, Outcome, Rejection};
use plimsoll_ic::{Authority, Identity, Principal, RequestId, cbor};
use plimsoll_system::clock;

use crate::sink::options::is_share;
use calls::Calls;

pub(crate) use ask::{Call, CanisterRequest, Shown};
pub(crate) use forms::CanisterForms;
pub(crate) use response_signer::{ResponseSigner, Written};

/// The seed of the key that certifies. It is not secret: anyone with the program can sign as this subnet.
const ROOT_SEED: &[u8; 32] = b"plimsoll sink: a test root key  ";
/// The seed of the key of the one node.
const NODE_SEED: &[u8; 32] = b"plimsoll sink: a test node key  ";
/// "Reject codes" of the interface specification, each with the error code that a replica of the mainnet has
/// for the rejections of the sink: no such canister, rejected by the canister itself, no such method.
const DESTINATION_INVALID: (u64, &str) = (3, "IC0301");
const CANISTER_REJECT: (u64, &str) = (4, "IC0406");
const CANISTER_ERROR: (u64, &str) = (5, "IC0536");
/// The hash of the module that the canisters are said to run: no module has it.
const MODULE_HASH: &[u8; 32] = b"plimsoll sink: it has no module ";

/// A replica of the Internet Computer, as far as its clients see one: `/api/v2/status`, and below
/// `/api/vN/canister/ID` the addresses `query` (versions 2 and 3), `call` (2 to 4) and `read_state` (2 and
/// 3).
///
/// * Every canister counts, together with the others: the method `read` gives the counter as 4 bytes,
///   little-endian, `write` increases it and gives it. Any other method gives its argument back.
/// * A call of version 2 gets `202`, and is then asked for; one of later versions gets its certificate at
///   once. A call is carried out once, however often the same message comes.
/// * Messages that expire in more than five minutes, or have expired, get `400` with a reason, as does
///   anything that is not a message. Addresses that a replica does not have get `404`.
/// * The root key, which certificates are signed with, is always the same one. `/api/v2/status` has it.
///
/// A request for which a fault is drawn changes nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Canister {
    /// The only canister that there is; calls of others are rejected with code 3. `None`: any.
    pub id: Option<Principal>,
    /// Reject unknown methods, with code 5.
    pub strict: bool,
    /// Look whether messages are from their senders; others get `400`. It costs about as much as all the
    /// rest.
    pub check_signatures: bool,
    /// Sign answers to queries as a node does.
    pub sign_queries: bool,
    /// Share of the calls of versions 3 and 4 that get `202` and have to be asked for.
    pub accepted: f64,
    /// Duration for which the status of a call is that it is being carried out.
    pub processing: Nanos,
    /// Duration for which `/api/v2/status` says `starting`.
    pub unhealthy_for: Nanos,
    /// Calls whose fate is remembered, at least 1, each in about 200 bytes; then the oldest are forgotten.
    pub max_calls: u64,
}

impl Default for Canister {
    /// Any canister, healthy at once, with a certificate for every call of versions 3 and 4; a hundred
    /// thousand calls are remembered.
    fn default() -> Self {
        Self {
            id: None,
            strict: false,
            check_signatures: false,
            sign_queries: false,
            accepted: 0.0,
            processing: Nanos::ZERO,
            unhealthy_for: Nanos::ZERO,
            max_calls: 100_000,
        }
    }
}

impl Canister {
    pub(super) fn problems(&self, require: &mut impl FnMut(bool, &str)) {
        require(is_share(self.accepted), "the share of calls to be asked for is between 0 and 1");
        require(self.max_calls > 0, "at least one call has to be remembered");
    }
}

/// State that the threads share.
#[derive(Debug)]
pub(crate) struct Subnet {
    pub(crate) options: Canister,
    authority: Authority,
    node: Identity,
    /// The tree below `/subnet` that certificates show, with the node's key.
    description: Node,
    counter: AtomicU32,
    calls: Calls,
    /// In nanoseconds since 1970.
    healthy_from_ns: u64,
}

impl Subnet {
    pub(crate) fn new(options: &Canister) -> Self {
        let authority = Authority::from_seed(ROOT_SEED);
        let node = Identity::ed25519(NODE_SEED).expect("any 32 bytes are an Ed25519 key");
        Self {
            description: description(&authority, &node),
            authority,
            node,
            counter: AtomicU32::new(0),
            calls: Calls::new(options.max_calls),
            healthy_from_ns: (clock::unix() + options.unhealthy_for).0,
            options: options.clone(),
        }
    }

    fn health(&self, now_ns: u64) -> &'static str {
        if now_ns < self.healthy_from_ns { "starting" } else { "healthy" }
    }

    /// Returns the outcome of a call. `count` says how the counter is increased.
    fn outcome_of(&self, call: &Call, count: impl FnOnce(&AtomicU32) -> u32) -> Outcome {
        if let Some(known) = &self.options.id
            && *known != call.canister
        {
            return Outcome::Rejected(not_found(&call.canister));
        }
        match &*call.method {
            "read" => Outcome::Replied(self.counter.load(Ordering::Relaxed).to_le_bytes().to_vec()),
            "write" => Outcome::Replied(count(&self.counter).to_le_bytes().to_vec()),
            method if self.options.strict => {
                let message = format!("Canister {} has no method '{method}'", call.canister);
                Outcome::Rejected(rejection(CANISTER_ERROR, message))
            }
            _ => Outcome::Replied(call.arg.to_vec()),
        }
    }

    /// Returns the outcome of a query. None of its changes lasts.
    fn query(&self, call: &Call, rejected: bool) -> Outcome {
        if rejected {
            return on_purpose();
        }
        self.outcome_of(call, |counter| counter.load(Ordering::Relaxed).wrapping_add(1))
    }

    /// Carries a call out, once: one with the same id is the same call. Its outcome is available from
    /// `ready_ns` on.
    fn execute(&self, call: &Call, rejected: bool, ready_ns: u64) -> Outcome {
        self.calls.once(call.id, ready_ns, || {
            if rejected {
                return on_purpose();
            }
            self.outcome_of(call, |counter| counter.fetch_add(1, Ordering::Relaxed).wrapping_add(1))
        })
    }

    /// Returns the tree below the id of a canister: its controllers, the node alone, and the hash of its
    /// module.
    fn canister(&self) -> Node {
        let mut controllers = Vec::new();
        cbor::write_self_described(&mut controllers);
        cbor::write_array(&mut controllers, 1);
        cbor::write_bytes(&mut controllers, self.node.sender().as_bytes());
        Node::forest([
            (b"controllers".to_vec(), Node::leaf(&controllers)),
            (b"module_hash".to_vec(), Node::leaf(MODULE_HASH)),
        ])
    }

    /// Returns the outcome of a call as far as clients know it.
    fn status(&self, id: &RequestId, now_ns: u64) -> Outcome {
        self.calls.status(id, now_ns)
    }

    /// A certificate that shows the time, the requested parts of these calls and canisters, and the subnet
    /// with its node if requested.
    fn certificate(&self, asked: &Shown, now_ns: u64) -> Vec<u8> {
        let statuses = asked.calls.iter().map(|id| (id.0.to_vec(), self.status(id, now_ns).tree()));
        let mut parts = vec![
            (b"request_status".to_vec(), Node::forest(statuses)),
            (b"time".to_vec(), Node::number(now_ns)),
        ];
        if asked.subnet {
            parts.push((b"subnet".to_vec(), self.description.clone()));
        }
        if !asked.canisters.is_empty() {
            let there = asked.canisters.iter().filter(|id| self.options.id.is_none_or(|known| known == **id));
            let canisters = there.map(|id| (id.as_bytes().to_vec(), self.canister()));
            parts.push((b"canister".to_vec(), Node::forest(canisters)));
        }
        witness::certificate(&self.authority, &Node::forest(parts), None)
    }
}

fn on_purpose() -> Outcome {
    Outcome::Rejected(rejection(CANISTER_REJECT, "rejected on purpose".to_owned()))
}

fn not_found(canister: &Principal) -> Rejection {
    rejection(DESTINATION_INVALID, format!("Canister {canister} not found"))
}

const fn rejection((code, error_code): (u64, &'static str), message: String) -> Rejection {
    Rejection { code, message, error_code: Some(error_code) }
}

/// Returns the tree below `/subnet`: one subnet, which has all canisters, and its node.
fn description(authority: &Authority, node: &Identity) -> Node {
    let key = authority.public_key_der();
    let id = Principal::self_authenticating(key);
    let mut ranges = Vec::new();
    cbor::write_array(&mut ranges, 1);
    cbor::write_array(&mut ranges, 2);
    cbor::write_bytes(&mut ranges, &[]);
    cbor::write_bytes(&mut ranges, &[0xff; 29]);
    let node_key = Node::labelled(b"public_key", Node::leaf(node.public_key_der().unwrap_or_default()));
    let parts = [
        (b"canister_ranges".to_vec(), Node::leaf(&ranges)),
        (b"node".to_vec(), Node::labelled(node.sender().as_bytes(), node_key)),
        (b"public_key".to_vec(), Node::leaf(key)),
    ];
    Node::labelled(id.as_bytes(), Node::forest(parts))
}

/// The present time, in nanoseconds since 1970: messages expire by it, and certificates carry it.
pub(crate) fn now_ns() -> u64 {
    let Nanos(now) = clock::unix();
    now
}
