//! Flags and files become one validated, immutable plan.
//!
//! A [`Command`] names a plan file and has the environment and the flags; it reads the one
//! ([`Document`](plimsoll_document::Document)) and puts the [layers](Layered) together.
//!
//! Then two steps: a [`PlanPatch`] holds the values as they were typed, as raw text with the name of the flag
//! it came from; [`Plan::resolve`] turns it into a [`Plan`], in which nothing is left to parse and every
//! default is filled in, or into [`Problems`](plimsoll_document::Problems): all of them at once, each with
//! advice. Nothing here prints, reads the environment or opens a connection; files are read through
//! [`Files`](plimsoll_document::Files).
//!
//! ```text
//! flags ──► PlanPatch ──► protocol, url, request or crud, tls, connections, load ──► Plan ──► engine
//!                 files ──┘                                                      └──► Problems
//! ```
#![forbid(unsafe_code)]

pub mod environment;
pub mod files;
pub mod parts;
mod patch;
pub mod plan;

mod around;
mod assembly;
mod client_faults;
mod compile;
mod confined;
mod connections;
mod crud;
mod draft;
mod dynamic_origins;
mod fingerprint;
mod grants;
mod identities;
mod import_check;
mod interleaving;
mod judging;
mod layers;
mod length;
mod load;
mod loading;
mod phases;
mod prometheus;
mod protocol;
mod proxy;
mod requests;
mod resolve;
mod route;
mod rows;
mod samples;
mod script;
mod security;
pub mod settings;
mod sharding;
mod size;
mod targets;
mod tokens;
mod trace;
mod trial;
mod url;
mod users;

pub use around::{GivenValue, Refresh};
pub use confined::{Confined, LARGEST_IMPORT};
pub use dynamic_origins::{DynamicOrigin, DynamicOrigins};
pub use environment::Environment;
pub use files::{Disk, named_text};
pub use grants::Confinement;
pub use import_check::ImportCheck;
pub use layers::{GaveWay, Layered};
pub use length::IterationLength;
pub use loading::{Command, PlanSource, Refused, Resolved, is_plan_name};
pub use parts::{
    BodyContent, BodyContext, BodyPart, PlanParts, StepPart, StepRequest, body_key, body_value, step_key,
    step_value,
};
pub use plan::shard_name;
pub use plan::{
    Address, BackendChoice, ClientFaults, Connections, Dealing, End, Family, ForeignRequest, Load, Overload,
    Pacing, Parts, Plan, PoolMember, Scenario, Step, Target, TlsTarget, parse_backend, parse_pacing,
};
pub use plimsoll_scenario::{Fingerprint, SharedText};
pub use prometheus::PrometheusServer;
pub use protocol::{InTurnProtocol, Opening, Protocol, ProtocolRow, ServerUrl};
pub use proxy::{Proxy, ProxyKind};
pub use script::ScriptHost;
pub use settings::{PlanPatch, Switch};
pub use sharding::StartTime;
pub use size::parse_size;
pub use trial::TrialLoad;
