//! Messages between agents and coordinators.
//!
//! A message is one line of JSON, and behind it the bytes that it is about, if there are any. The first field
//! is the version of the wire; a message of another version is not read any further.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::fabric::Delivery;
use crate::subject::{Subject, parse};

/// The version of the messages: raised when one changes its meaning.
pub const WIRE_VERSION: u32 = 1;

/// Sign of life of an agent, once per second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Here {
    /// Version of the wire.
    pub wire: u32,
    /// Name of the agent.
    pub agent: String,
    /// Version of the program.
    pub version: String,
    /// Processors that its process may use.
    pub cores: u32,
    /// The run that it is claimed by, if it is.
    pub run: Option<String>,
}

impl Here {
    /// Reads a sign of life; `None` if it is none, or of an agent that speaks for another. One of another
    /// version of the wire is there, too: it refuses by itself what it does not understand.
    pub fn read(delivery: &Delivery) -> Option<Self> {
        let here: Self = serde_json::from_slice(&delivery.payload).ok()?;
        let is_its_own = parse(&delivery.subject) == Some(Subject::Here(&here.agent));
        is_its_own.then_some(here)
    }
}

/// A message to one agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToAgent {
    /// Version of the wire.
    pub wire: u32,
    /// The run that it is about.
    pub run: String,
    /// The order.
    pub order: Order,
}

/// An order to one agent. It may come several times, and is answered each time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Be this run's, and nobody else's.
    Claim {
        /// Silence of the coordinator after which the agent stops by itself.
        orphan_ns: u64,
    },
    /// Get everything ready.
    Prepare(Box<Prepare>),
    /// A piece of a file, which is the body of the message.
    Piece {
        /// Hash of the file.
        sha256: String,
        /// Place of the piece in it, in bytes.
        offset: u64,
    },
    /// Say what time it is.
    Clock {
        /// Number of the exchange.
        exchange: u32,
    },
    /// Begin at an instant, once a beat says that all are ready.
    Arm {
        /// The instant as Unix time of the agent's own clock.
        start_at_unix_ns: u64,
    },
    /// Forget the run. What goes on is ended at once.
    Release,
    /// Send what you have saved of the run.
    Collect,
}

/// Everything that an agent needs to carry out its shard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepare {
    /// Its shard, counted from zero.
    pub shard: u32,
    /// Shards in all.
    pub of: u32,
    /// Arguments of `plimsoll run`, without those of the shard and its start.
    pub args: Vec<String>,
    /// Files that the plan names, the plan among them.
    pub files: Vec<FileReference>,
}

/// A file by its hash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileReference {
    /// Its name, relative to the folder of the run.
    pub name: String,
    /// Hash of its content, in hexadecimal digits.
    pub sha256: String,
    /// Its length in bytes.
    pub bytes: u64,
}

/// A message of an agent about a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FromAgent {
    /// Version of the wire.
    pub wire: u32,
    /// Name of the agent.
    pub agent: String,
    /// The run that it is about.
    pub run: String,
    /// Its content.
    pub word: Word,
}

/// An answer of an agent, or what it tells by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// It is this run's now.
    Claimed {
        /// Version of the program.
        version: String,
        /// Processors that its process may use.
        cores: u32,
    },
    /// It is another run's.
    Busy {
        /// That run.
        run: String,
    },
    /// It speaks another version of the wire.
    WrongWire {
        /// Version of the program.
        version: String,
    },
    /// It is getting ready. Sign of life until it is.
    Preparing,
    /// It wants a piece of a file.
    Want {
        /// Hash of the file.
        sha256: String,
        /// Place of the piece, in bytes.
        offset: u64,
    },
    /// It is ready, and waits for its start.
    Ready,
    /// It cannot carry out the run.
    Refused {
        /// Why.
        error: String,
        /// Remedy, if there is one.
        hint: Option<String>,
        /// `true` if the run itself is wrong, and not the agent's machine.
        is_usage: bool,
    },
    /// The time.
    Clock {
        /// Number of the exchange.
        exchange: u32,
        /// Unix time of its own clock.
        unix_ns: u64,
    },
    /// It will begin at this instant, once a beat says that all are ready.
    Armed {
        /// The instant as Unix time of its own clock.
        start_at_unix_ns: u64,
    },
    /// Its figures of the last second.
    Line(Line),
    /// An order could not be carried out.
    Unsteered {
        /// Number of the order.
        number: u64,
        /// Why.
        error: String,
    },
    /// A piece of a part of its result, which is the body of the message.
    Part(Piece),
    /// It has nothing of the run.
    Nothing,
}

impl Word {
    /// Last word of the subject that it is published on.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Line(_) => "line",
            Self::Part(_) => "part",
            _ => "word",
        }
    }
}

/// Figures of one second of an agent's shard.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Time since the start at the end of the second.
    pub elapsed_s: f64,
    /// When the load ends, if that is known.
    pub end_s: Option<f64>,
    /// Requests that were due, were started, and ended well.
    pub scheduled: u64,
    /// Requests that were started.
    pub started: u64,
    /// Requests that ended well.
    pub ok: u64,
    /// Requests that failed or timed out.
    pub failed: u64,
    /// Completed requests per second.
    pub rate_per_s: Option<f64>,
    /// Median of the response time.
    pub p50_ns: Option<u64>,
    /// 99th percentile of the response time.
    pub p99_ns: Option<u64>,
    /// Share of the processors of the machine that were busy.
    pub cpu: Option<f64>,
}

/// Place of a piece in a part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// Number of the part; a later one has everything of those before.
    pub part: u64,
    /// Number of the piece, from zero.
    pub piece: u32,
    /// Pieces of the part.
    pub pieces: u32,
    /// Exit of the process of the run; `None` while it goes on.
    pub end: Option<End>,
}

/// Exit of the process of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Its exit code; `None` if it was killed.
    pub exit: Option<i32>,
    /// The last messages that it wrote.
    pub messages: Vec<String>,
}

/// Sign of life of a coordinator to all agents of its run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Beat {
    /// Version of the wire.
    pub wire: u32,
    /// The run.
    pub run: String,
    /// Stage of the run.
    pub stage: BeatStage,
    /// Orders so far.
    pub orders: Vec<Steer>,
    /// Number of the last part that has arrived, by agent.
    pub arrived: BTreeMap<String, u64>,
}

/// Progress of a run as beats tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BeatStage {
    /// Not all agents are ready.
    Preparing,
    /// All agents begin at their instants, or have begun.
    Begun,
    /// Nothing more is wanted.
    Over,
}

/// An order to all agents, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steer {
    /// Its number, from one.
    pub number: u64,
    /// Instant at which it applies, since the start of the run; zero is at once.
    pub at_ns: u64,
    /// The command.
    pub command: SteerCommand,
}

/// A command to all agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SteerCommand {
    /// Another rate, of the whole load.
    Rate {
        /// Number of arrivals per period.
        count: u64,
        /// The period, in nanoseconds.
        period_ns: u64,
    },
    /// Start nothing.
    Pause,
    /// Go on as if there had been no pause.
    Resume,
    /// Start nothing more, and wait for what is in flight.
    Stop,
    /// Report at once.
    StopNow,
}

/// A message that cannot be read.
#[derive(Debug)]
pub enum MessageError {
    /// Its wire has another version.
    WrongWire {
        /// That version.
        wire: u32,
        /// The run that it is about, if it says that as this version does.
        run: Option<String>,
    },
    /// It is no message.
    Malformed(serde_json::Error),
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongWire { wire, .. } => {
                write!(f, "it speaks version {wire} of the wire, and this program version {WIRE_VERSION}")
            }
            Self::Malformed(error) => write!(f, "it is no message: {error}"),
        }
    }
}

impl std::error::Error for MessageError {}

/// The part that messages of all versions have.
#[derive(Deserialize)]
struct AnyVersion {
    wire: u32,
    run: Option<String>,
}

/// Writes a message with what it is about.
pub(crate) fn encode(head: &impl Serialize, body: &[u8]) -> Vec<u8> {
    // Messages have string keys only, and so can be written.
    let mut bytes = serde_json::to_vec(head).unwrap_or_default();
    if !body.is_empty() {
        bytes.push(b'\n');
        bytes.extend_from_slice(body);
    }
    bytes
}

/// Reads a message and what it is about.
///
/// # Errors
/// It is none, or of another version.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, &[u8]), MessageError> {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let (head, body) = end.map_or((bytes, &[][..]), |end| (&bytes[..end], &bytes[end + 1..]));
    let any: AnyVersion = serde_json::from_slice(head).map_err(MessageError::Malformed)?;
    if any.wire != WIRE_VERSION {
        return Err(MessageError::WrongWire { wire: any.wire, run: any.run });
    }
    Ok((serde_json::from_slice(head).map_err(MessageError::Malformed)?, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written_with_its_body() {
        let piece =
            Piece { part: 3, piece: 1, pieces: 2, end: Some(End { exit: Some(0), messages: vec![] }) };
        let word = Word::Part(piece);
        let said = FromAgent { wire: WIRE_VERSION, agent: "a".to_owned(), run: "r".to_owned(), word };
        let bytes = encode(&said, b"\n\0bytes\n");
        let (read, body) = decode::<FromAgent>(&bytes).unwrap();
        assert_eq!((read, body), (said.clone(), &b"\n\0bytes\n"[..]));
        assert_eq!(decode::<FromAgent>(&encode(&said, b"")).unwrap(), (said, &b""[..]));
    }

    #[test]
    fn another_version_is_told_from_no_message() {
        let strange = br#"{"wire":7,"run":"r","order":{"dance":{}}}"#;
        let error = decode::<ToAgent>(strange).unwrap_err();
        assert!(
            matches!(&error, MessageError::WrongWire { wire: 7, run: Some(run) } if run == "r"),
            "{error}"
        );
        for bytes in [&b""[..], b"{}", b"[]", br#"{"wire":1,"run":"r","order":{"dance":{}}}"#, b"\xff"] {
            assert!(matches!(decode::<ToAgent>(bytes), Err(MessageError::Malformed(_))));
        }
    }
}
