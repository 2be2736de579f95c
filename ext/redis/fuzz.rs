//! However the replies of a Redis server are cut, they are the same, and no byte of them is counted twice.

use plimsoll_redis::PROTOCOL;
use plimsoll_wire::in_turn::{Answer, Owed};

use crate::Cutting;

/// Replies that were read with their contents, and the end of the stream: why it cannot go on, or whether it
/// was cut within a reply.
type Replies = (Vec<(Answer, Vec<u8>)>, Result<bool, String>);

fn replies<'p>(keep: bool, pieces: impl Iterator<Item = &'p [u8]>) -> Replies {
    let (mut client, mut told, mut content) = ((PROTOCOL.client)(), Vec::new(), Vec::new());
    for mut input in pieces {
        while !input.is_empty() {
            match client.next(Owed { kind: 0, keep }, &mut input, &mut content) {
                Ok(Some(answer)) => told.push((answer, std::mem::take(&mut content))),
                Ok(None) => assert!(input.is_empty()),
                Err(violation) => {
                    assert!(!violation.reason.is_empty() && !violation.reason.contains(char::is_control));
                    return (told, Err(violation.reason));
                }
            }
        }
    }
    (told, Ok(client.finish().is_err()))
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some(cutting) = Cutting::new(data) else { return };
    let keep = cutting.choices & 1 == 0;
    let whole = replies(keep, std::iter::once(cutting.stream));
    assert_eq!(replies(keep, cutting.pieces()), whole);
    assert_eq!(replies(keep, cutting.stream.chunks(1)), whole);
    let bytes: u64 = whole.0.iter().map(|(answer, _)| answer.wire_bytes).sum();
    assert!(bytes <= cutting.stream.len() as u64);
    if whole.1 == Ok(false) {
        assert_eq!(bytes, cutting.stream.len() as u64);
    }
    for (answer, content) in &whole.0 {
        assert!([200, 401, 403, 404, 500, 503].contains(&answer.status));
        assert!(keep || content.is_empty());
    }
}
