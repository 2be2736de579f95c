//! One run on many machines.
//!
//! A **fleet** has agents, each of which carries out one shard of a load at a time, and for each run a
//! **coordinator**: the command that was typed. Both are state machines without input, output or a clock
//! ([`Agent`], [`Coordinator`]): they take messages and the time as arguments, and return
//! actions. So whole fleets run in simulated time, with loss, delay, duplication and death by seed
//! (`tests/simulation.rs`).
//!
//! They communicate over a [`Fabric`], which has two operations only: publish and subscribe. Any message may
//! be lost. Orders are repeated until they are answered, and answered as often as they come; parts of a
//! result are numbered, and repeated until the coordinator confirms them.
//!
//! ```text
//!   coordinator                         agent
//!     claim        ────────────────▶    busy, or claimed
//!     prepare      ────────────────▶    asks for files by their hash, starts `plimsoll run`
//!                  ◀────────────────    ready: connected, names resolved, waits for its start
//!     clock × 16   ◀───────────────▶    the exchange with the least round trip estimates its clock
//!     arm(T0)      ────────────────▶    T0 in its own clock
//!     beat: begun  ────────────────▶    begins at T0; without this message it does not
//!                  ◀────────────────    a line and an interval per second, a part of the result every five
//!     beats        ────────────────▶    sign of life, orders by number
//!     arrived      ────────────────▶    parts and intervals that need not come again
//!                  ◀────────────────    the last part: the saved run
//!     beat: over   ────────────────▶    free for the next
//! ```
#![forbid(unsafe_code)]

mod agent;
mod broker;
mod clock_estimate;
mod collector;
mod control_port;
mod coordinator;
mod credentials;
mod dealing;
mod fabric;
mod host;
mod intervals;
mod limits;
mod message;
mod nats;
mod parts;
mod service;
mod subject;

pub use agent::{Agent, AgentAction, AgentIdentity, HostEvent};
pub use broker::{
    BrokerError, BrokerFiles, BrokerOptions, BrokerTls, LOG_FILE, PID_FILE, write_broker_files,
};
pub use clock_estimate::ClockEstimate;
pub use collector::Collector;
pub use control_port::{ControlPort, ControlReply};
pub use coordinator::{
    AgentStanding, Coordinator, CoordinatorAction, CoordinatorOptions, CoordinatorStage, Member, MemberEnd,
    Notice, OnLoss, Refusal, released,
};
pub use credentials::{CredentialError, Credentials};
pub use dealing::{Strength, deal_shards};
pub use fabric::{Delivery, Fabric, Now};
pub use host::{Host, HostOptions};
pub use intervals::{IntervalInbox, IntervalOutbox};
pub use limits::{AgentLimits, AllowedScripts, AllowedTarget, AllowedTargetError};
pub use message::{
    Beat, BeatStage, End, FileReference, FromAgent, Here, Line, MessageError, Order, Piece, Prepare, Steer,
    SteerCommand, ToAgent, Unsteered, WIRE_VERSION, Word,
};
pub use nats::{LinkError, LinkEvent, NatsAddress, NatsEvent, NatsLink};
pub use parts::{PartInbox, PartOutbox};
pub use service::{Departure, ServiceError, now, serve_agent, told};
pub use subject::{NameError, check_name};
