//! Answers, written: the replies of a replica.

use crate::answer::Reject;
use crate::cbor::{write_array, write_bytes, write_map, write_number, write_self_described, write_text};
use crate::hash::{Value, hash_of_map};
use crate::identity::Identity;
use crate::message::RequestId;

/// Domain separator of a node's signature ("Query call" in the interface specification).
const RESPONSE_DOMAIN: &[u8] = b"\x0bic-response";

/// Result of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryResult<'a> {
    /// The reply.
    Replied(&'a [u8]),
    /// The query was rejected.
    Rejected(Reject<'a>),
}

/// The signature of a node under the answer to a query.
#[derive(Clone, Copy, Debug)]
pub struct NodeSigning<'a> {
    /// The node: Ed25519.
    pub node: &'a Identity,
    /// The query.
    pub id: RequestId,
    /// When it is answered, in nanoseconds since 1970.
    pub timestamp_ns: u64,
}

/// Appends the answer to a query, with a node's signature if that is asked for.
pub fn write_query(result: QueryResult<'_>, signing: Option<NodeSigning<'_>>, out: &mut Vec<u8>) {
    let fields = match result {
        QueryResult::Replied(_) => 2,
        QueryResult::Rejected(reject) => 1 + reject_fields(reject),
    };
    write_self_described(out);
    write_map(out, fields + u64::from(signing.is_some()));
    write_text(out, "status");
    match result {
        QueryResult::Replied(arg) => {
            write_text(out, "replied");
            write_text(out, "reply");
            write_map(out, 1);
            write_text(out, "arg");
            write_bytes(out, arg);
        }
        QueryResult::Rejected(reject) => {
            write_text(out, "rejected");
            write_reject(reject, out);
        }
    }
    if let Some(signing) = signing {
        write_signature(result, &signing, out);
    }
}

fn write_signature(result: QueryResult<'_>, signing: &NodeSigning<'_>, out: &mut Vec<u8>) {
    let request_id = ("request_id", Value::Bytes(&signing.id.0));
    let timestamp = ("timestamp", Value::Number(signing.timestamp_ns));
    let hash = match result {
        QueryResult::Replied(arg) => hash_of_map(&[
            ("status", Value::Text("replied")),
            ("reply", Value::Map(&[("arg", Value::Bytes(arg))])),
            request_id,
            timestamp,
        ]),
        QueryResult::Rejected(Reject { code, message, error_code }) => {
            let mut fields = vec![
                ("status", Value::Text("rejected")),
                ("reject_code", Value::Number(code)),
                ("reject_message", Value::Text(message)),
                request_id,
                timestamp,
            ];
            fields.extend(error_code.map(|code| ("error_code", Value::Text(code))));
            hash_of_map(&fields)
        }
    };
    // A node without a key cannot sign; zeros never pass for a signature.
    let signature = signing.node.sign(&[RESPONSE_DOMAIN, &hash].concat()).unwrap_or([0; 64]);
    write_text(out, "signatures");
    write_array(out, 1);
    write_map(out, 3);
    write_text(out, "timestamp");
    write_number(out, signing.timestamp_ns);
    write_text(out, "signature");
    write_bytes(out, &signature);
    write_text(out, "identity");
    write_bytes(out, signing.node.sender().as_bytes());
}

/// Entries of a map that [`write_reject`] appends.
const fn reject_fields(reject: Reject<'_>) -> u64 {
    if reject.error_code.is_some() { 3 } else { 2 }
}

fn write_reject(Reject { code, message, error_code }: Reject<'_>, out: &mut Vec<u8>) {
    write_text(out, "reject_code");
    write_number(out, code);
    write_text(out, "reject_message");
    write_text(out, message);
    if let Some(error_code) = error_code {
        write_text(out, "error_code");
        write_text(out, error_code);
    }
}

/// Appends the answer to a call that one replica rejects before it is carried out.
pub fn write_call_rejection(reject: Reject<'_>, out: &mut Vec<u8>) {
    write_self_described(out);
    write_map(out, 1 + reject_fields(reject));
    write_text(out, "status");
    write_text(out, "non_replicated_rejection");
    write_reject(reject, out);
}

/// Appends the answer to a synchronous call up to its certificate, which is `certificate`.
pub fn write_call(certificate: &[u8], out: &mut Vec<u8>) {
    write_self_described(out);
    write_map(out, 2);
    write_text(out, "status");
    write_text(out, "replied");
    write_text(out, "certificate");
    write_bytes(out, certificate);
}

/// Appends the answer to a `read_state` request.
pub fn write_read_state(certificate: &[u8], out: &mut Vec<u8>) {
    write_self_described(out);
    write_map(out, 1);
    write_text(out, "certificate");
    write_bytes(out, certificate);
}

/// Appends the answer to `/api/v2/status`.
pub fn write_status(root_key_der: &[u8], health: &str, out: &mut Vec<u8>) {
    write_self_described(out);
    write_map(out, 3);
    write_text(out, "ic_api_version");
    write_text(out, "0.18.0");
    write_text(out, "root_key");
    write_bytes(out, root_key_der);
    write_text(out, "replica_health_status");
    write_text(out, health);
}
