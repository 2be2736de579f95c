//! Reads whole byte streams, cut in any way, into replies and requests.

use plimsoll_cache::wire::{
    Answer, FrameTooLong, Operation, PendingRequest, ProtocolError, Refusal, Reply, ReplyClient,
    RequestServer,
};

pub(crate) const PING: PendingRequest = PendingRequest { operation: Operation::Ping, keep: true };
pub(crate) const PUT: PendingRequest = PendingRequest { operation: Operation::Put, keep: true };
pub(crate) const GET: PendingRequest = PendingRequest { operation: Operation::Get, keep: true };
pub(crate) const DELETE: PendingRequest = PendingRequest { operation: Operation::Delete, keep: true };

/// One reply with its captured part, and the text by which it was refused.
pub(crate) type Told = (Reply, Vec<u8>, Option<Vec<u8>>);

/// The replies of a connection to a server, and its end: `true` if it was within a reply, or an error.
pub(crate) type Replies = (Vec<Told>, Result<bool, ProtocolError>);

/// Reads `pieces`. `owed` is about the first, second… reply, and begins again after its last.
pub(crate) fn read_replies<'p>(
    owed: &[PendingRequest],
    pieces: impl IntoIterator<Item = &'p [u8]>,
) -> Replies {
    let (mut client, mut told, mut kept) = (ReplyClient::new(), Vec::new(), Vec::new());
    for mut input in pieces {
        while !input.is_empty() {
            match client.next_into(owed[told.len() % owed.len()], &mut input, &mut kept) {
                Ok(Some(reply)) => {
                    let refused = reply.answer == Answer::Refused;
                    let text = refused.then(|| client.error_text().to_vec());
                    told.push((reply, std::mem::take(&mut kept), text));
                }
                Ok(None) => assert!(input.is_empty(), "`None` says that the input is used up"),
                Err(error) => return (told, Err(error)),
            }
        }
    }
    let in_reply = client.in_reply();
    assert_eq!(client.finish().is_err(), in_reply);
    (told, Ok(in_reply))
}

/// One request, with its borrowed parts copied.
pub(crate) type Asked = Result<(Operation, String, Vec<u8>, Vec<u8>), Refusal>;

/// The requests of a connection from a client, and its end: `true` if it was within a request, or an error.
pub(crate) type Requests = (Vec<Asked>, Result<bool, FrameTooLong>);

pub(crate) fn read_requests<'p>(pieces: impl IntoIterator<Item = &'p [u8]>) -> Requests {
    let (mut server, mut asked) = (RequestServer::new(), Vec::new());
    for mut input in pieces {
        while !input.is_empty() {
            match server.next(&mut input) {
                Ok(Some(Ok(request))) => asked.push(Ok((
                    request.operation,
                    request.cache.to_owned(),
                    request.key.to_vec(),
                    request.value.to_vec(),
                ))),
                Ok(Some(Err(refusal))) => asked.push(Err(refusal)),
                Ok(None) => assert!(input.is_empty(), "`None` says that the input is used up"),
                Err(error) => return (asked, Err(error)),
            }
        }
    }
    (asked, Ok(server.in_request()))
}

/// A frame of this payload.
pub(crate) fn frame(payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a test frame is short");
    [&length.to_be_bytes(), payload].concat()
}
