//! However the bytes of a client are cut, and whatever heads are remembered, the requests are the same.

use crate::Cutting;
use plimsoll_wire::http1::{Limits, ProtocolError, RequestMemo, RequestServer};

/// Requests that were read, and the end of the stream: an error, or whether it was cut within a request.
type Read = (Vec<String>, Result<bool, ProtocolError>);

fn read<'p>(limits: &Limits, keep_memo: bool, pieces: impl Iterator<Item = &'p [u8]>) -> Read {
    let (mut server, mut memo) = (RequestServer::new(), RequestMemo::new());
    let mut requests = Vec::new();
    for mut input in pieces {
        while !input.is_empty() {
            if !keep_memo {
                memo = RequestMemo::new();
            }
            match server.next(limits, &mut memo, &mut input) {
                Ok(Some(request)) => {
                    assert!(!request.method.is_empty() && !request.target.is_empty());
                    requests.push(format!("{request:?}"));
                }
                Ok(None) => assert!(input.is_empty()),
                Err(error) => return (requests, Err(error)),
            }
            // The point at which the client waits depends on the cuts; that it is told only once does not.
            let _ = server.wants_continue();
            assert!(!server.wants_continue());
        }
    }
    (requests, Ok(server.in_request()))
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some(cutting) = Cutting::new(data) else { return };
    let whole = read(&cutting.limits, true, std::iter::once(cutting.stream));
    assert_eq!(read(&cutting.limits, true, cutting.pieces()), whole);
    assert_eq!(read(&cutting.limits, false, cutting.pieces()), whole);
    assert_eq!(read(&cutting.limits, false, cutting.stream.chunks(1)), whole);
}
