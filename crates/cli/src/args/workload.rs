//! Flags of the ready-made workloads, and the table of these: the additions of each to the command line.

pub(crate) mod cache;
pub(crate) mod canister;
pub(crate) mod cluster;
pub(crate) mod crud;
pub(crate) mod ingest;
pub(crate) mod ingest_demo;
pub(crate) mod llm;

use clap::{Args, Subcommand};
use plimsoll_targets::{Faults, Service};

use crate::args::server::sink_values::Reader;
use crate::args::workload::cache::CacheArgs;
use crate::args::workload::canister::CanisterArgs;
use crate::args::workload::canister::service::CanisterServiceArgs;
use crate::args::workload::crud::CrudLoadArgs;
use crate::args::workload::ingest::IngestArgs;
use crate::args::workload::llm::LlmArgs;

/// Commands that put a ready-made load on a server.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkloadCommand {
    /// Put load on a cache that speaks Carbon's binary protocol: PUT, GET and DELETE over TCP
    ///
    /// By default 10,000 times a PUT and then a GET of a key of its own, on 100 connections, and each GET is
    /// compared with what was put. The flags come to a plan, which --print-plan shows; all flags of `run`
    /// hold.
    Cache(Box<CacheArgs>),
    /// Create, read, update and delete the items of a REST resource, at one server or at a cluster
    ///
    /// By default 10,000 items are created, on 64 connections. Ids for reads, updates and deletes are those
    /// of the items that were created in the run; before there are any, the server is asked for one (GET
    /// /api/NAME/random-id), which is counted apart. The flags come to a plan, which --print-plan shows; all
    /// flags of `run` hold. Without a server at hand, `plimsoll target crud-cluster` is one.
    Crud(Box<CrudLoadArgs>),
    /// Call a canister of the Internet Computer: queries, or updates whose outcome is waited for
    ///
    /// Messages are signed ahead of need, and never sent when they have expired; if too few are ready the run
    /// says that signing was the limit. By default queries of `read` for 10 seconds, as fast as they are
    /// answered, on 64 connections. The flags come to a plan, which --print-plan shows; all flags of `run`
    /// hold. Without a replica at hand, `plimsoll sink --canister` is one.
    Canister(Box<CanisterArgs>),
    /// Send metrics, logs, traces or events to a store, in batches, at so many records a second
    ///
    /// Every batch has new times and values and is made before it is due. The flags come to a plan, which
    /// --print-plan shows; all flags of `run` hold. Without a store at hand, `plimsoll target ingest` is one.
    Ingest(Box<IngestArgs>),
    /// Ask a language model over OpenAI's API: time to first token, time per token, goodput
    ///
    /// By default one request at a time for 10 seconds, with prompts of 128 tokens and answers of at most 64,
    /// as a stream. Times are those of the kernel's receive stamps; with --rate, time to first token counts
    /// from when a request was due. The flags come to a plan, which --print-plan shows; all flags of `run`
    /// hold. Without a server at hand, `plimsoll target llm` is one.
    Llm(Box<LlmArgs>),
}

/// Names of the commands, in the order of help.
pub(crate) const NAMES: [&str; 5] = ["cache", "crud", "canister", "ingest", "llm"];

/// Names of the plans that the commands make, each with its settings and the flags that these come from.
pub(crate) const PLANS: [(&str, &[(&str, &str)]); 3] =
    [("canister", &canister::SETTINGS), ("ingest", &ingest::SETTINGS), ("llm", &llm::SETTINGS)];

/// Flags of `plimsoll calibrate` that measure a workload in the place of plain requests.
#[derive(Debug, Args)]
pub(crate) struct CalibratedArgs {
    /// Compare plain requests with calls of a canister against the same sink, and keep nothing
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
}

impl ServiceArgs {
    /// The service that is asked for, if one is, and what is to go wrong with it.
    pub(crate) fn read(&self, reader: &mut Reader, faults: &mut Faults) -> Option<Service> {
        self.canister.read(reader, faults).map(Service::Canister)
    }
}
