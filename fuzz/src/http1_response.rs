//! However the bytes of a server are cut, and whatever heads are remembered, the responses are the same.

use crate::Cutting;
use plimsoll_wire::http1::{
    Capture, HeadMemo, Limits, PendingRequest, ProtocolError, Response, ResponseClient, Truncated,
};

#[derive(Debug, PartialEq, Eq)]
enum End {
    Closed,
    Error(ProtocolError),
    Truncated(Truncated),
}

fn read<'p>(
    limits: &Limits,
    owed: [PendingRequest; 2],
    keep_memo: bool,
    pieces: impl Iterator<Item = &'p [u8]>,
) -> (Vec<Response>, End) {
    let (mut client, mut memo) = (ResponseClient::new(), HeadMemo::new());
    let mut responses = Vec::new();
    for mut input in pieces {
        while !input.is_empty() {
            if !keep_memo {
                memo = HeadMemo::new();
            }
            let now = owed[responses.len() % 2];
            let before = input.len();
            match client.next(limits, &mut memo, now, &mut input) {
                Ok(Some(response)) => {
                    assert!(input.len() < before || response.wire_bytes > 0);
                    assert!(response.wire_bytes >= response.head_bytes + response.body_bytes);
                    assert!(response.head_bytes <= limits.head_bytes as u64);
                    if now.capture == Capture::Headers {
                        let _ = client.header("location");
                    }
                    responses.push(response);
                }
                Ok(None) => assert!(input.is_empty()),
                Err(error) => return (responses, End::Error(error)),
            }
        }
    }
    match client.finish() {
        Ok(last) => {
            responses.extend(last);
            (responses, End::Closed)
        }
        Err(truncated) => (responses, End::Truncated(truncated)),
    }
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some(cutting) = Cutting::new(data) else { return };
    let owed = [1, 4].map(|bit| PendingRequest {
        head_request: cutting.choices & bit != 0,
        capture: if cutting.choices & bit << 1 != 0 { Capture::Headers } else { Capture::Nothing },
    });
    let whole = read(&cutting.limits, owed, true, std::iter::once(cutting.stream));
    assert_eq!(read(&cutting.limits, owed, true, cutting.pieces()), whole);
    assert_eq!(read(&cutting.limits, owed, false, cutting.pieces()), whole);
    assert_eq!(read(&cutting.limits, owed, false, cutting.stream.chunks(1)), whole);
}
