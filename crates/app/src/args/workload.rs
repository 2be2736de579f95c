//! Flags of the ready-made workloads, and the table of these: the additions of each to the command line.

pub(crate) mod bench_variables;
pub(crate) mod canister;
pub(crate) mod cluster;
pub(crate) mod crud;
pub(crate) mod ingest;
pub(crate) mod ingest_demo;
pub(crate) mod key_value;
pub(crate) mod websocket;

use clap::{Args, Subcommand};
use plimsoll_targets::{Faults, Service};

use crate::args::extension::{self, AddedServices, LoadGroup};
use crate::args::server::sink_values::Reader;
use crate::args::workload::canister::CanisterArgs;
use crate::args::workload::canister::service::CanisterServiceArgs;
use crate::args::workload::crud::CrudLoadArgs;
use crate::args::workload::ingest::IngestArgs;
use crate::args::workload::websocket::{WebSocketArgs, WebSocketServiceArgs};
use crate::base::advice::{self, OtherProgram};

/// Programs of others, by their names; those that extensions know come behind.
const OF_OTHERS: [OtherProgram; 9] = [
    OtherProgram::with_flags(
        &["http-loadgen-demo", "http-loadgen", "replication-loadgen", "lithair"],
        "Lithair's generator",
        "plimsoll crud --preset lithair",
    ),
    OtherProgram::with_flags(
        &["ic-workload-generator", "workload-generator"],
        "the Internet Computer's workload generator",
        "plimsoll canister",
    ),
    OtherProgram::plain(&["load-sink"], "the Internet Computer's load sink", "plimsoll sink"),
    OtherProgram::plain(
        &["pure-declarative-node", "raft-replication-demo"],
        "a cluster to test against",
        "plimsoll target crud-cluster",
    ),
    OtherProgram::with_flags(
        &["metrics-load-test", "arc"],
        "Arc's script",
        "plimsoll ingest metrics --preset arc",
    ),
    OtherProgram::with_flags(
        &["synthetic-logs-load-test"],
        "Arc's script",
        "plimsoll ingest logs --preset arc",
    ),
    OtherProgram::with_flags(
        &["synthetic-events-load-test"],
        "Arc's script",
        "plimsoll ingest events --preset arc",
    ),
    OtherProgram::with_flags(
        &["synthetic-traces-load-test"],
        "Arc's script",
        "plimsoll ingest traces --preset arc",
    ),
    OtherProgram::with_flags(&["demo-scenario-marketing-campaign"], "Arc's script", "plimsoll ingest demo"),
];

/// Returns the programs of others with their names.
pub(crate) fn of_others() -> impl Iterator<Item = &'static OtherProgram> {
    OF_OTHERS.iter().chain(advice::all().flat_map(|advice| advice.programs))
}

/// Differences between a ready-made load and the program that it replaces, for a command line with these
/// words; `None` if there are none, or the line sets each of them itself.
pub(crate) fn differences(command: &str, words: &[impl AsRef<str>]) -> Option<String> {
    if command == "canister" { canister::differences(words) } else { None }
}

/// Returns `true` if some of the words are flags that only the program which a command replaces has in this
/// form.
pub(crate) fn is_of_other(command: &str, words: &[impl AsRef<str>]) -> bool {
    command == "canister" && words.iter().any(|word| canister::is_of_other(word.as_ref()))
}

/// Commands that put a ready-made load on a server.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkloadCommand {
    /// Create, read, update and delete the items of a REST resource, at one server or at a cluster
    ///
    /// By default 10,000 items are created, on 64 connections. Ids for reads, updates and deletes are those
    /// of items that were created in the run; before the first, the server is asked for one (GET
    /// /api/NAME/random-id), which is counted separately. The flags make a plan, which --print-plan shows;
    /// all flags of `run` apply. `plimsoll target crud-cluster` is a server to try it on.
    Crud(Box<CrudLoadArgs>),
    /// Call a canister of the Internet Computer: queries, or updates whose outcome is waited for
    ///
    /// Messages are signed ahead of time, and not sent once they have expired; if too few are ready, the run
    /// reports that signing was the limit. By default queries of `read` for 10 seconds, as fast as they are
    /// answered, on 64 connections. The flags make a plan, which --print-plan shows; all flags of `run`
    /// apply. `plimsoll sink --canister` is a replica to try it on.
    Canister(Box<CanisterArgs>),
    /// Send metrics, logs, traces or events to a store, in batches, at a rate of records per second
    ///
    /// Every batch has new times and values and is made before it is due. The flags make a plan, which
    /// --print-plan shows; all flags of `run` apply. `plimsoll target ingest` is a store to try it on.
    Ingest(Box<IngestArgs>),
    /// Open WebSockets, send messages on them, and await the answers
    ///
    /// By default for 10 seconds, as fast as messages are answered, on 64 connections of 100 messages each. A
    /// message takes until the next one comes, or the next with the text of --expect. With --rate, arrivals
    /// are connections, or messages with --rate-of requests. The flags make a plan, which --print-plan shows;
    /// all flags of `run` apply. `plimsoll sink --websocket` is a server to try it on.
    Ws(Box<WebSocketArgs>),
}

/// Names of the commands for other protocols, in the order of help; those of extensions come before.
pub(crate) const PROTOCOLS: [&str; 1] = ["ws"];
/// Names of those for the requests of other load generators, in the order of help; those of extensions come
/// before.
pub(crate) const READY_MADE: [&str; 3] = ["crud", "ingest", "canister"];
/// Names of the commands of this crate.
const NAMES: [&str; 4] = ["crud", "canister", "ingest", "ws"];

/// Names of the commands for the requests of other load generators.
pub(crate) fn ready_made() -> impl Iterator<Item = &'static str> {
    let added = extension::loads().filter(|load| load.group == LoadGroup::ReadyMade);
    added.map(|load| load.name).chain(READY_MADE)
}

/// Names of the commands, with those of extensions.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    NAMES.into_iter().chain(extension::loads().map(|load| load.name))
}

/// Flags of `plimsoll calibrate` that measure a workload in place of plain requests.
#[derive(Debug, Args)]
pub(crate) struct CalibratedArgs {
    /// Compare plain requests with calls of a canister against the same sink, and save nothing
    ///
    /// The cost of a call is split into encoding and hashing, signature, and HTTP.
    #[arg(long, conflicts_with = "store")]
    pub(crate) canister: bool,
}

/// Flags of `plimsoll sink` that make it a server for a workload, which does not always answer the same.
#[derive(Debug, Args)]
pub(crate) struct ServiceArgs {
    #[command(flatten)]
    canister: CanisterServiceArgs,
    #[command(flatten)]
    added: AddedServices,
    #[command(flatten)]
    websocket: WebSocketServiceArgs,
}

impl ServiceArgs {
    /// The service that is asked for, if one is, and what is to go wrong with it.
    pub(crate) fn read(&self, reader: &mut Reader, faults: &mut Faults) -> Option<Service> {
        let canister = self.canister.read(reader, faults).map(Service::Canister);
        let websocket = || self.websocket.read().map(Service::WebSocket);
        canister.or_else(|| self.added.read(reader, faults)).or_else(websocket)
    }
}
