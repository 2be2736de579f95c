//! Messages between agents and coordinators.
//!
//! A message is one line of JSON, followed by a body of bytes if it has one. The first field
//! is the version of the wire; a message of another version is not read any further.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::dealing::Strength;
use crate::fabric::Delivery;
use crate::subject::{Subject, parse};

/// The version of the messages: raised when one changes its meaning.
pub const WIRE_VERSION: u32 = 7;

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
    /// Time for which the process of that run has given no sign of its own, in nanoseconds; zero without a
    /// process. One that gets no processor is silent, and its agent says that it still exists.
    #[serde(default)]
    pub silent_ns: u64,
    /// Requests per second that one of its threads can make, by the calibration of its machine; `None` if it
    /// has none.
    #[serde(default)]
    pub thread_per_s: Option<u64>,
    /// When it was sent, on the agent's own monotonic clock, in nanoseconds: leases count from there.
    #[serde(default)]
    pub at_ns: u64,
    /// The agent was told to end: it takes no run any more, and stops what goes on.
    #[serde(default)]
    pub is_leaving: bool,
}

impl Here {
    /// Strength of its machine.
    pub const fn strength(&self) -> Strength {
        Strength { cores: self.cores, thread_per_s: self.thread_per_s }
    }

    /// Reads a sign of life; `None` if it is malformed, or published by another agent than it names. Those of
    /// another version of the wire are read, too: such agents refuse unknown versions themselves.
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
    /// Number of the share of the run that it is about: zero is the one that the agent began with, others
    /// were taken over.
    #[serde(default)]
    pub share: u32,
    /// The order.
    pub order: Order,
}

/// An order to one agent. It may come several times, and is answered each time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Claim the agent for this run.
    Claim {
        /// Silence of the coordinator after which the agent stops by itself.
        orphan_ns: u64,
        /// Name under which it stays claimed after the run, for other runs of the same holder; `None` if it
        /// is free then.
        hold: Option<String>,
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
    /// Report the time.
    Clock {
        /// Number of the exchange.
        exchange: u32,
    },
    /// Begin at an instant, once a beat says that all are ready.
    Arm {
        /// The instant as Unix time of the agent's own clock.
        start_at_unix_ns: u64,
        /// For a share that is taken over: the instant since then from which on the agent has it. It does not
        /// wait for a beat then.
        from_ns: u64,
        /// Orders so far, for a share that is taken over: the schedule has the changes of all of them.
        #[serde(default)]
        orders: Vec<Steer>,
    },
    /// The agent has its share for some seconds more, from when it sent that sign of life on. Only for runs
    /// whose shares may be taken over: without a lease nothing is sent.
    Lease {
        /// [`Here::at_ns`] of the sign of life.
        at_ns: u64,
    },
    /// Another agent has the share. Stop, and send the result.
    Cede,
    /// Use these values of the setup from now on, which are the body of the message. Only the latest ones
    /// count.
    Values {
        /// Number of the values, from one.
        number: u64,
    },
    /// Nothing up to here needs to be sent again. Parts and intervals that have arrived are acknowledged to
    /// their agent alone: in the beat of all, the watermarks of each would be sent to each.
    Arrived {
        /// Number of the last part that has arrived.
        part: u64,
        /// Number of the last interval that has arrived with all before it.
        interval: u64,
    },
    /// Forget the run, and end its process at once. Of the name of a holder: be free again.
    Release,
    /// Send the saved parts of the run: one for each share that the agent had.
    Collect,
}

/// Everything that an agent needs to carry out its shard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepare {
    /// First shard of the agent, counted from zero.
    pub shard: u32,
    /// Number of its shards.
    pub held: u32,
    /// Shards in all.
    pub of: u32,
    /// Threads of each shard.
    pub threads: u32,
    /// The share may be taken over by another agent: nothing is sent without a lease.
    #[serde(default)]
    pub is_leased: bool,
    /// Arguments of `plimsoll run`, without those of the shard and its start.
    pub args: Vec<String>,
    /// Files that the plan names, the plan among them.
    pub files: Vec<FileReference>,
}

/// A file by its hash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileReference {
    /// Name of the file, relative to the folder of the run.
    pub name: String,
    /// Hash of its content, in hexadecimal digits.
    pub sha256: String,
    /// Length of the file in bytes.
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
    /// Number of the share that it is about.
    #[serde(default)]
    pub share: u32,
    /// Content of the message.
    pub word: Word,
}

/// An answer of an agent, or a message without a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// The agent is claimed by this run.
    Claimed {
        /// Version of the program.
        version: String,
        /// Processors that its process may use.
        cores: u32,
    },
    /// The agent is claimed by another run.
    Busy {
        /// The other run.
        run: String,
    },
    /// The agent speaks another version of the wire.
    WrongWire {
        /// Version of the program.
        version: String,
    },
    /// The agent is getting ready: a sign of life until it is.
    Preparing,
    /// The agent asks for a piece of a file.
    Want {
        /// Hash of the file.
        sha256: String,
        /// Place of the piece, in bytes.
        offset: u64,
    },
    /// The agent is ready, and waits for its start.
    Ready,
    /// The agent cannot carry out the run.
    Refused {
        /// The reason.
        error: String,
        /// Remedy, if there is one.
        hint: Option<String>,
        /// `true` if the run itself is wrong, and not the agent's machine.
        is_usage: bool,
    },
    /// The time of the agent's clock.
    Clock {
        /// Number of the exchange.
        exchange: u32,
        /// Unix time of its own clock.
        unix_ns: u64,
    },
    /// The agent will begin at this instant, once a beat says that all are ready.
    Armed {
        /// The instant as Unix time of its own clock.
        start_at_unix_ns: u64,
    },
    /// Figures of the last second of the agent's shard.
    Line(Line),
    /// An interval of its shard, which is the body of the message.
    Interval {
        /// Number of the interval, from one.
        number: u64,
        /// Number of the oldest one that the agent still has.
        first: u64,
    },
    /// An order could not be carried out.
    Unsteered(Unsteered),
    /// The process of the run has the values of the setup with this number, or could not take them.
    Values {
        /// Their number.
        number: u64,
        /// The reason why it does not have them.
        error: Option<String>,
    },
    /// A piece of a part of its result, which is the body of the message.
    Part(Piece),
    /// The agent has nothing of the run.
    Nothing,
    /// The agent has saved parts of these shares of the run, and sends them.
    Saved {
        /// Numbers of the shares.
        shares: Vec<u32>,
    },
}

impl Word {
    /// Last word of the subject that it is published on.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Line(_) | Self::Interval { .. } => "line",
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
    /// Requests that were due.
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
    /// Number of the part; a later one contains all earlier ones.
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
    /// Exit code of the process; `None` if it was killed.
    pub exit: Option<i32>,
    /// The last messages that it wrote.
    pub messages: Vec<String>,
    /// Number of intervals that it reported.
    pub intervals: u64,
    /// Orders that it did not carry out. They were reported one by one before, which may have been lost.
    #[serde(default)]
    pub unsteered: Vec<Unsteered>,
    /// Number of the last order that reached it.
    #[serde(default)]
    pub steered: u64,
    /// When it ended, since the start of the run: orders of before that did not reach it were missed.
    #[serde(default)]
    pub at_ns: u64,
    /// The agent was told to end before the process had ended, and so stopped it if there was time to.
    #[serde(default)]
    pub is_left: bool,
}

/// Reason of an order that did not reach the process before its end.
pub(crate) const TOO_LATE: &str = "it had ended before it was told";

/// An order that was not carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unsteered {
    /// Number of the order.
    pub number: u64,
    /// The reason.
    pub error: String,
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
}

/// Progress of a run, as reported by beats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BeatStage {
    /// Not all agents are ready.
    Preparing,
    /// All agents begin at their instants, or have begun.
    Begun,
    /// The run is over.
    Over,
}

/// An order to all agents, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steer {
    /// Number of the order, from one.
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
    /// As `Stop`, since the coordinator is silent. An agent says that to itself.
    StopOrphaned,
    /// As `Stop`, since the agent was told to end. An agent says that to itself.
    StopLeaving,
}

impl SteerCommand {
    /// Returns `true` if nothing is started after it.
    pub const fn is_stop(self) -> bool {
        matches!(self, Self::Stop | Self::StopNow | Self::StopOrphaned | Self::StopLeaving)
    }
}

/// A message that cannot be read.
#[derive(Debug)]
pub enum MessageError {
    /// The message is of another version of the wire.
    WrongWire {
        /// The version of the message.
        wire: u32,
        /// The run that it is about, if it says that as this version does.
        run: Option<String>,
    },
    /// The text is not a message of this protocol.
    Malformed(serde_json::Error),
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongWire { wire, .. } => {
                write!(f, "it speaks version {wire} of the wire, this program version {WIRE_VERSION}")
            }
            Self::Malformed(error) => write!(f, "malformed message: {error}"),
        }
    }
}

impl std::error::Error for MessageError {}

/// The fields that messages of all versions have.
#[derive(Deserialize)]
struct AnyVersion {
    wire: u32,
    run: Option<String>,
}

/// Encodes a message: its head as JSON, and after a line break its body.
pub(crate) fn encode(head: &impl Serialize, body: &[u8]) -> Vec<u8> {
    // Maps in messages have string keys only, so this cannot fail.
    let mut bytes = serde_json::to_vec(head).unwrap_or_default();
    if !body.is_empty() {
        bytes.push(b'\n');
        bytes.extend_from_slice(body);
    }
    bytes
}

/// Decodes a message into its head and its body.
///
/// # Errors
/// The message is malformed, or of another version.
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
            Piece { part: 3, piece: 1, pieces: 2, end: Some(End { exit: Some(0), ..End::default() }) };
        let word = Word::Part(piece);
        let said =
            FromAgent { wire: WIRE_VERSION, agent: "a".to_owned(), run: "r".to_owned(), share: 2, word };
        let bytes = encode(&said, b"\n\0bytes\n");
        let (read, body) = decode::<FromAgent>(&bytes).unwrap();
        assert_eq!((read, body), (said.clone(), &b"\n\0bytes\n"[..]));
        assert_eq!(decode::<FromAgent>(&encode(&said, b"")).unwrap(), (said, &b""[..]));
    }

    #[test]
    fn another_version_is_distinguished_from_a_malformed_message() {
        let strange = br#"{"wire":99,"run":"r","order":{"dance":{}}}"#;
        let error = decode::<ToAgent>(strange).unwrap_err();
        assert!(
            matches!(&error, MessageError::WrongWire { wire: 99, run: Some(run) } if run == "r"),
            "{error}"
        );
        let unknown = format!(r#"{{"wire":{WIRE_VERSION},"run":"r","order":{{"dance":{{}}}}}}"#);
        for bytes in [&b""[..], b"{}", b"[]", unknown.as_bytes(), b"\xff"] {
            assert!(matches!(decode::<ToAgent>(bytes), Err(MessageError::Malformed(_))));
        }
    }
}
