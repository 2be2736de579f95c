//! Answers of canisters: any bytes are judged and described, parsed parts lie within them, and parsed
//! messages survive being written and read again.

use std::sync::{Arc, LazyLock};

use plimsoll_ic::answer::{ReplicaStatus, RequestStatus, request_status};
use plimsoll_ic::cbor::Reader;
use plimsoll_ic::reply::{QueryResult, write_call, write_call_rejection, write_query, write_status};
use plimsoll_ic::{Answer, RequestId};
use plimsoll_scenario::{FieldList, Judge, Judgement, Received};
use plimsoll_workloads::canister::{CanisterNotes, judges};

/// Judges of a canister's answers: to a query, to an update, and to a question about the state of an update.
static JUDGES: LazyLock<[Arc<dyn Judge>; 3]> = LazyLock::new(|| judges(&Arc::new(CanisterNotes::default())));

/// Returns `true` if a part lies within the bytes that it was read from.
fn lies_in(part: &[u8], whole: &[u8]) -> bool {
    part.is_empty() || whole.as_ptr_range().contains(&part.as_ptr()) && part.len() <= whole.len()
}

/// Runs one input. The first 32 bytes are the id of a call.
pub fn run(data: &[u8]) {
    let Some((id, body)) = data.split_first_chunk::<32>() else { return };
    let fields = FieldList::default();
    let without = Received::new(200, &fields, body);
    let received = Received { id: Some(*id), ..without };
    for judge in &*JUDGES {
        let judgement = judge.judge(&received);
        assert_eq!(judge.judge(&received), judgement);
        assert!(judge.describe(&received).len() <= 200 + 3 * body.len());
        if judge.needs_id() && judgement == Judgement::Good {
            assert_ne!(judge.judge(&without), Judgement::Good, "without knowing what was asked");
        }
    }
    let mut reader = Reader::new(body);
    if reader.skip().is_ok() {
        // An item ends where it ends, whatever follows.
        let end = reader.position();
        let mut longer = Reader::new(&body[..end]);
        assert_eq!(longer.skip().map(|()| longer.position()), Ok(end));
        assert!(Reader::new(&body[..end - 1]).skip().is_err());
    }
    if let Ok(status) = ReplicaStatus::read(body)
        && let (Some(root_key), Some(health)) = (status.root_key, status.health)
    {
        assert!(lies_in(root_key, body) && lies_in(health.as_bytes(), body));
        let mut again = Vec::new();
        write_status(root_key, health, &mut again);
        assert_eq!(ReplicaStatus::read(&again), Ok(status));
    }
    let Ok(answer) = Answer::read(body) else { return };
    let mut again = Vec::new();
    match answer {
        Answer::Accepted => {}
        Answer::Replied { arg } => {
            assert!(lies_in(arg, body));
            write_query(QueryResult::Replied(arg), None, &mut again);
        }
        Answer::Rejected(reject) => {
            assert!(lies_in(reject.message.as_bytes(), body));
            write_call_rejection(reject, &mut again);
        }
        Answer::Certified { certificate } => {
            assert!(lies_in(certificate, body));
            write_call(certificate, &mut again);
            if let Ok(status) = request_status(certificate, &RequestId(*id)) {
                if let RequestStatus::Replied { reply } = status {
                    assert!(lies_in(reply, certificate));
                }
                assert_eq!(request_status(certificate, &RequestId(*id)), Ok(status));
            }
        }
    }
    assert_eq!(Answer::read(&again), Ok(answer));
}
