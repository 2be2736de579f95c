//! Client side of the consensus protocol: requests from this node to the others.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use core::net::SocketAddr;
use openraft::error::{
    Fatal, NetworkError, RPCError, RaftError, ReplicationClosed, StreamingError, Unreachable,
};
use openraft::network::{Backoff, RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse,
};
use openraft::{EmptyNode, OptionalSend};
use tokio::net::TcpStream;

use crate::consensus::{Snapshot, Types, Vote};
use crate::frame::{self, Answer, Question};

/// Between two attempts to reach a node that cannot be reached.
const PAUSE: Duration = Duration::from_millis(100);
/// A snapshot that is not installed after this time, plus the time for its length, is sent again: openraft
/// itself waits for ever, and a link may be dead without saying so.
const SNAPSHOT_PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of a snapshot that a node can be expected to install in a microsecond: a slow disk's.
const SNAPSHOT_SPEED: u64 = 10;

/// The addresses of the other nodes, as this one reaches them.
#[derive(Clone, Debug)]
pub(crate) struct Addresses(pub(crate) Arc<HashMap<u64, SocketAddr>>);

impl RaftNetworkFactory<Types> for Addresses {
    type Network = Link;

    async fn new_client(&mut self, target: u64, _node: &EmptyNode) -> Link {
        Link { address: self.0.get(&target).copied(), stream: None }
    }
}

/// The way to one node: a connection, made when it is needed.
#[derive(Debug)]
pub(crate) struct Link {
    address: Option<SocketAddr>,
    /// Absent while a caller waits for an answer, so that a caller that gives up closes it.
    stream: Option<TcpStream>,
}

/// Reason why there is no answer.
enum Silence {
    /// There is no such node.
    Absent(io::Error),
    Broken(io::Error),
}

impl Link {
    async fn ask(&mut self, question: &Question) -> Result<Answer, Silence> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => self.connect().await.map_err(Silence::Absent)?,
        };
        frame::send(&mut stream, question).await.map_err(Silence::Broken)?;
        let answer = frame::receive(&mut stream).await.map_err(Silence::Broken)?;
        let answer = answer.ok_or_else(|| Silence::Broken(io::ErrorKind::UnexpectedEof.into()))?;
        self.stream = Some(stream);
        Ok(answer)
    }

    async fn connect(&self) -> io::Result<TcpStream> {
        let address = self.address.ok_or_else(|| io::Error::other("no --peer has this number"))?;
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

fn unexpected() -> io::Error {
    io::Error::other("the answer to another question")
}

impl From<Silence> for RPCError<u64, EmptyNode, RaftError<u64>> {
    fn from(silence: Silence) -> Self {
        match silence {
            Silence::Absent(error) => Self::Unreachable(Unreachable::new(&error)),
            Silence::Broken(error) => Self::Network(NetworkError::new(&error)),
        }
    }
}

impl From<Silence> for StreamingError<Types, Fatal<u64>> {
    fn from(silence: Silence) -> Self {
        match silence {
            Silence::Absent(error) => Self::Unreachable(Unreachable::new(&error)),
            Silence::Broken(error) => Self::Network(NetworkError::new(&error)),
        }
    }
}

impl RaftNetwork<Types> for Link {
    async fn append_entries(
        &mut self,
        question: AppendEntriesRequest<Types>,
        _option: RPCOption,
    ) -> Result<AppendEntriesResponse<u64>, RPCError<u64, EmptyNode, RaftError<u64>>> {
        match self.ask(&Question::Append(question)).await? {
            Answer::Append(answer) => Ok(answer),
            _ => Err(Silence::Broken(unexpected()).into()),
        }
    }

    async fn vote(
        &mut self,
        question: VoteRequest<u64>,
        _option: RPCOption,
    ) -> Result<VoteResponse<u64>, RPCError<u64, EmptyNode, RaftError<u64>>> {
        match self.ask(&Question::Vote(question)).await? {
            Answer::Vote(answer) => Ok(answer),
            _ => Err(Silence::Broken(unexpected()).into()),
        }
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<u64>, StreamingError<Types, Fatal<u64>>> {
        let content = *snapshot.snapshot;
        let patience = SNAPSHOT_PATIENCE + Duration::from_micros(content.len() as u64 / SNAPSHOT_SPEED);
        let question = Question::Snapshot { vote, meta: snapshot.meta, content };
        let answer = tokio::select! {
            closed = cancel => return Err(closed.into()),
            answer = tokio::time::timeout(patience, self.ask(&question)) => answer,
        };
        match answer {
            Ok(Ok(Answer::Snapshot(answer))) => Ok(answer),
            Ok(Ok(_)) => Err(Silence::Broken(unexpected()).into()),
            Ok(Err(silence)) => Err(silence.into()),
            Err(_) => Err(Silence::Broken(io::ErrorKind::TimedOut.into()).into()),
        }
    }

    fn backoff(&self) -> Backoff {
        Backoff::new(std::iter::repeat(PAUSE))
    }
}
