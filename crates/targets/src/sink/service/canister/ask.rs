//! Requests to a replica.

use plimsoll_ic::envelope::{Content, Paths};
use plimsoll_ic::{Envelope, Kind, Principal, RequestId, Undecodable, expiry};

use super::Subnet;

/// Calls whose fate one request may ask for.
const MAX_ASKED: usize = 100;

/// A request to a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CanisterRequest {
    Status,
    Query(Call),
    Update {
        call: Call,
        /// The client waits for the certificate, and need not ask for it.
        synchronous: bool,
    },
    /// A question for the outcome of one call, from a client that waits for it.
    Fate(RequestId),
    State(Shown),
    /// A request that is refused with 400 and this text.
    Refused(String),
    Nowhere,
}

/// The parts of a certificate beside the time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shown {
    /// Outcomes of these calls.
    pub(crate) calls: Vec<RequestId>,
    /// The controllers and the module of these canisters.
    pub(crate) canisters: Vec<Principal>,
    /// The subnet and its node.
    pub(crate) subnet: bool,
}

/// A call of a canister.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) id: RequestId,
    pub(crate) canister: Principal,
    pub(crate) method: Box<str>,
    pub(crate) arg: Box<[u8]>,
}

/// The purpose of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Endpoint {
    Query,
    Call { synchronous: bool },
    ReadState,
}

impl CanisterRequest {
    /// Reads the request of `method` on `path` with this body, at `now_ns` since 1970.
    pub(crate) fn read(subnet: &Subnet, method: &[u8], path: &[u8], body: &[u8], now_ns: u64) -> Self {
        if path == b"/api/v2/status" {
            return if matches!(method, b"GET" | b"HEAD") { Self::Status } else { Self::Nowhere };
        }
        match endpoint(path) {
            Some((canister, endpoint)) if method == b"POST" => {
                Self::of(subnet, canister, endpoint, body, now_ns).unwrap_or_else(Self::Refused)
            }
            _ => Self::Nowhere,
        }
    }

    fn of(
        subnet: &Subnet,
        canister: &[u8],
        endpoint: Endpoint,
        body: &[u8],
        now_ns: u64,
    ) -> Result<Self, String> {
        let canister = String::from_utf8_lossy(canister);
        let effective: Principal = canister.parse().map_err(|error| format!("{error}"))?;
        let envelope =
            Envelope::read(body).map_err(|error| format!("the envelope cannot be read: {error}"))?;
        expiry::check(envelope.ingress_expiry_ns, now_ns).map_err(|error| error.to_string())?;
        if subnet.options.check_signatures {
            envelope.authenticate().map_err(|error| error.to_string())?;
        }
        match (endpoint, envelope.content) {
            (Endpoint::ReadState, Content::ReadState(paths)) => {
                Self::state(&paths).map_err(|error| format!("the paths cannot be read: {error}"))?
            }
            (Endpoint::Query | Endpoint::Call { .. }, Content::Call { kind, canister, method, arg }) => {
                if canister != effective && canister != Principal::management() {
                    return Err(format!("the message is for {canister}, its address for {effective}"));
                }
                let id = envelope.id;
                let call = Call { id, canister, method: method.into(), arg: arg.into() };
                match (endpoint, kind) {
                    (Endpoint::Query, Kind::Query) => Ok(Self::Query(call)),
                    (Endpoint::Call { synchronous }, Kind::Update) => Ok(Self::Update { call, synchronous }),
                    _ => Err("the message is of another type than its address".to_owned()),
                }
            }
            _ => Err("the message is of another type than its address".to_owned()),
        }
    }

    /// Collects the calls, canisters and subnet that these paths ask about. The certificate shows the absence
    /// of paths that the subnet does not have.
    fn state(paths: &Paths<'_>) -> Result<Result<Self, String>, Undecodable> {
        let (mut shown, mut others, mut too_many) = (Shown::default(), false, false);
        paths.each(|path| match path {
            [b"request_status", id, ..] => match <[u8; 32]>::try_from(*id) {
                Ok(id) if shown.calls.len() < MAX_ASKED => shown.calls.push(RequestId(id)),
                _ => too_many = true,
            },
            [b"canister", id, ..] => match Principal::from_bytes(id) {
                Some(id) if shown.canisters.len() < MAX_ASKED => shown.canisters.push(id),
                _ => too_many = true,
            },
            [b"subnet", ..] => shown.subnet = true,
            [b"time"] => {}
            _ => others = true,
        })?;
        others |= shown.subnet || !shown.canisters.is_empty();
        Ok(match (&shown.calls[..], others) {
            _ if too_many => {
                Err("a path names no request id or canister, or there are too many of them".to_owned())
            }
            (&[id], false) => Ok(Self::Fate(id)),
            _ => Ok(Self::State(shown)),
        })
    }
}

/// The canister that an address names, and the kind of the address.
fn endpoint(path: &[u8]) -> Option<(&[u8], Endpoint)> {
    let (version, rest) = path.strip_prefix(b"/api/v")?.split_first()?;
    let rest = rest.strip_prefix(b"/canister/")?;
    let end = rest.iter().position(|&byte| byte == b'/')?;
    let endpoint = match (&rest[end + 1..], version) {
        (b"query", b'2' | b'3') => Endpoint::Query,
        (b"call", b'2') => Endpoint::Call { synchronous: false },
        (b"call", b'3' | b'4') => Endpoint::Call { synchronous: true },
        (b"read_state", b'2' | b'3') => Endpoint::ReadState,
        _ => return None,
    };
    Some((&rest[..end], endpoint))
}
