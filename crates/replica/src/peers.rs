//! Server side of the consensus protocol: answers of this node to the others.

use std::io;

use tokio::net::{TcpListener, TcpStream};

use crate::consensus::{Raft, Snapshot};
use crate::frame::{self, Answer, Question};

/// Serves all connections, until it is dropped.
pub(crate) async fn serve(listener: TcpListener, raft: Raft) {
    loop {
        // Without a descriptor for one more there may be one soon.
        let Ok((stream, _)) = listener.accept().await else {
            tokio::task::yield_now().await;
            continue;
        };
        let raft = raft.clone();
        // A peer that breaks off connects again.
        tokio::spawn(async move { drop(answer_all(stream, raft).await) });
    }
}

async fn answer_all(mut stream: TcpStream, raft: Raft) -> io::Result<()> {
    stream.set_nodelay(true)?;
    while let Some(question) = frame::receive(&mut stream).await? {
        let answer = match question {
            Question::Append(question) => {
                raft.append_entries(question).await.map(Answer::Append).map_err(io::Error::other)?
            }
            Question::Vote(question) => {
                raft.vote(question).await.map(Answer::Vote).map_err(io::Error::other)?
            }
            Question::Snapshot { vote, meta, content } => {
                let snapshot = Snapshot { meta, snapshot: Box::new(content) };
                raft.install_full_snapshot(vote, snapshot)
                    .await
                    .map(Answer::Snapshot)
                    .map_err(io::Error::other)?
            }
        };
        frame::send(&mut stream, &answer).await?;
    }
    Ok(())
}
