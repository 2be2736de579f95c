//! However the bytes of either side of the cache protocol are cut, the requests and the replies are the same.

use crate::Cutting;
use plimsoll_cache::wire::{
    Answer, FrameTooLong, Operation, PendingRequest, ProtocolError, ReplyClient, RequestServer, ServerReply,
    write_reply,
};

/// Replies that were read, the bytes that were kept of them, and the end of the stream: an error, or whether
/// it was cut within a reply.
type Replies = (Vec<(Answer, u64, u64)>, Vec<u8>, Result<bool, ProtocolError>);

fn replies<'p>(owed: [PendingRequest; 2], pieces: impl Iterator<Item = &'p [u8]>) -> Replies {
    let (mut client, mut told, mut kept) = (ReplyClient::new(), Vec::new(), Vec::new());
    for mut input in pieces {
        while !input.is_empty() {
            match client.next_into(owed[told.len() % 2], &mut input, &mut kept) {
                Ok(Some(reply)) => {
                    assert!(reply.wire_bytes >= 5 + reply.body_bytes);
                    if reply.answer == Answer::Refused {
                        assert!(client.error_text().len() as u64 <= reply.body_bytes);
                    }
                    told.push((reply.answer, reply.wire_bytes, reply.body_bytes));
                }
                Ok(None) => assert!(input.is_empty()),
                Err(error) => return (told, Vec::new(), Err(error)),
            }
        }
    }
    let in_reply = client.in_reply();
    assert_eq!(client.finish().is_err(), in_reply);
    (told, kept, Ok(in_reply))
}

/// Requests that were read, the replies to malformed ones, and the end of the stream.
type Requests = (Vec<String>, Vec<u8>, Result<bool, FrameTooLong>);

fn requests<'p>(pieces: impl Iterator<Item = &'p [u8]>) -> Requests {
    let (mut server, mut asked, mut out) = (RequestServer::new(), Vec::new(), Vec::new());
    for mut input in pieces {
        while !input.is_empty() {
            match server.next(&mut input) {
                Ok(Some(Ok(request))) => asked.push(format!("{request:?}")),
                Ok(Some(Err(refusal))) => {
                    write_reply(ServerReply::Error(format_args!("{refusal}")), &mut out);
                }
                Ok(None) => assert!(input.is_empty()),
                Err(error) => return (asked, out, Err(error)),
            }
        }
    }
    (asked, out, Ok(server.in_request()))
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some(cutting) = Cutting::new(data) else { return };
    let owed = [cutting.choices, cutting.choices >> 3].map(|choice| {
        let operation = match choice & 3 {
            0 => Operation::Ping,
            1 => Operation::Put,
            2 => Operation::Get,
            _ => Operation::Delete,
        };
        PendingRequest { operation, keep: choice & 4 != 0 }
    });
    let whole = replies(owed, std::iter::once(cutting.stream));
    assert_eq!(replies(owed, cutting.pieces()), whole);
    assert_eq!(replies(owed, cutting.stream.chunks(1)), whole);
    let whole = requests(std::iter::once(cutting.stream));
    assert_eq!(requests(cutting.pieces()), whole);
    assert_eq!(requests(cutting.stream.chunks(1)), whole);
    // A client can read the replies of a server to wrong requests.
    let put = PendingRequest { operation: Operation::Put, keep: true };
    let (told, _, end) = replies([put; 2], std::iter::once(&whole.1[..]));
    assert!(end == Ok(false) && told.iter().all(|(answer, ..)| *answer == Answer::Refused));
}
