//! Length-prefixed frames between nodes. Each is answered by one before the next is sent.

use std::io;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse,
};

use crate::consensus::{SnapshotMeta, Types, Vote};

/// Longest frame: a snapshot of some 10^7 items. A greater length is an error.
const LONGEST: u64 = 4 << 30;

/// Request of one node to another.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Question {
    Append(AppendEntriesRequest<Types>),
    Vote(VoteRequest<u64>),
    Snapshot { vote: Vote, meta: SnapshotMeta, content: Vec<u8> },
}

/// The answer to each.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    Append(AppendEntriesResponse<u64>),
    Vote(VoteResponse<u64>),
    Snapshot(SnapshotResponse<u64>),
}

/// Sends one message.
pub(crate) async fn send<T: Serialize>(stream: &mut TcpStream, message: &T) -> io::Result<()> {
    let mut frame = postcard::to_extend(message, vec![0; 8]).map_err(io::Error::other)?;
    let length = frame.len() as u64 - 8;
    frame[..8].copy_from_slice(&length.to_le_bytes());
    stream.write_all(&frame).await
}

/// Receives one message; `None` if the other side has ended before it.
pub(crate) async fn receive<T: DeserializeOwned>(stream: &mut TcpStream) -> io::Result<Option<T>> {
    let length = match stream.read_u64_le().await {
        Ok(length) => length,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    };
    if length > LONGEST {
        return Err(io::Error::other("not a frame"));
    }
    // Grows as it comes: a length alone takes no memory.
    let mut frame = Vec::new();
    let read = stream.take(length).read_to_end(&mut frame).await?;
    if (read as u64) < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    postcard::from_bytes(&frame).map(Some).map_err(io::Error::other)
}
