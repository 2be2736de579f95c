//! The client of the cache protocol as one of the protocols whose answers come in turn.

use plimsoll_wire::http1;
use plimsoll_wire::in_turn::{self, InTurnClient, Owed, Violation};

use super::{Answer, Operation, PendingRequest, ReplyClient};

impl InTurnClient for ReplyClient {
    #[inline]
    fn next(
        &mut self,
        owed: Owed,
        input: &mut &[u8],
        content: &mut Vec<u8>,
    ) -> Result<Option<in_turn::Answer>, Violation> {
        // Requests have operations as their kinds.
        let operation = Operation::of_kind(owed.kind).unwrap_or(Operation::Ping);
        match self.next_into(PendingRequest { operation, keep: owed.keep }, input, content) {
            Ok(None) => Ok(None),
            Ok(Some(reply)) => Ok(Some(in_turn::Answer {
                status: status_of(reply.answer),
                wire_bytes: reply.wire_bytes,
                refusal: (reply.answer == Answer::Refused)
                    .then(|| String::from_utf8_lossy(self.error_text()).into_owned()),
            })),
            Err(error) => Err(Violation { class: error.class(), reason: error.to_string() }),
        }
    }

    fn finish(&mut self) -> Result<(), http1::Truncated> {
        Self::finish(self).map_err(|_| http1::Truncated { started: true })
    }
}

/// Returns the HTTP status that corresponds to an answer of a cache.
const fn status_of(answer: Answer) -> u16 {
    match answer {
        Answer::Pong | Answer::Done | Answer::Value => 200,
        Answer::Missing => 404,
        Answer::Refused => 500,
    }
}
