//! The flags of `plimsoll target`.

use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use plimsoll_document::{Files, Problem, Problems};
use plimsoll_targets::{Crud, Location, Service};

use crate::args::extension::{self, ServerSpec, TargetServerArgs, subcommands};
use crate::args::server::ingest::{IngestArgs, IngestSpec};
use crate::args::server::replica::{CrudClusterArgs, CrudClusterSpec, CrudNodeArgs, CrudNodeSpec};
use crate::args::server::sink::{ConductArgs, PlaceArgs, SinkSpec};
use crate::args::server::sink_values::{Reader, whole};

/// Share of requests that are never answered unless `--drop` says otherwise: that of the server which
/// h2loadrunner's headline figure was measured against.
const DROP: f64 = 0.03;
/// Share of requests that fail, and their status, unless `--fail` says otherwise: the same server's.
const FAIL: (u16, f64) = (404, 0.07);

#[derive(Debug, Args)]
#[command(subcommand_value_name = "TARGET", subcommand_help_heading = "Targets")]
pub(crate) struct TargetArgs {
    // Optional, so that we can report its absence in our own words.
    #[command(subcommand)]
    target: Option<Target>,
}

#[derive(Debug, Subcommand)]
enum Target {
    /// A service of resources: POST creates one, its location can be read, changed and deleted
    ///
    /// POST to any path answers 201 with the new resource's location. On that, GET answers 200 with a small
    /// JSON body, PUT and PATCH 204, and DELETE 204; any other path is answered 404. Resources
    /// are kept in memory.
    ///
    /// Without flags 3% of the requests are never answered and 7% fail with 404; --drop 0 and --fail 0 turn
    /// that off. A request that fails this way changes nothing.
    Crud(Box<CrudArgs>),
    #[command(flatten)]
    Added(AddedServer),
    /// A store to ingest metrics, logs, traces and events into, with Arc's HTTP API, and SQL over its records
    ///
    /// MessagePack (columnar, rows, batches) and the line protocol are taken as the real server takes them,
    /// gzip and zstd included: with its status codes, its error texts and its delay until rows are seen.
    /// OTLP, Prometheus remote write, Loki, Elasticsearch bulk and JSON lines come into the same store.
    /// POST /api/v1/query runs SQL over what is visible, on SQLite; GET /plimsoll/acknowledged reports what
    /// was acknowledged. Everything is kept in memory, within bounds; counts stay exact beyond them.
    Ingest(Box<IngestArgs>),
    /// One node of a cluster with Lithair's CRUD API, over a log that openraft replicates
    ///
    /// POST, GET, PUT, PATCH and DELETE on /api/MODEL, /api/MODEL/_bulk, /count, /random-id and lists;
    /// /status, /raft/leader and /_raft/health report the state of the node. A write is acknowledged when a
    /// majority has it on the disk; a follower answers it 307, and reads from its own items. Without
    /// --peer it leads at once.
    CrudNode(Box<CrudNodeArgs>),
    /// A cluster of such nodes, each a process of its own, which end with this one
    CrudCluster(Box<CrudClusterArgs>),
}

/// A server that is a value, with the name of its subcommand.
#[derive(Debug)]
struct AddedServer(&'static str, Box<dyn TargetServerArgs>);

subcommands!(AddedServer: extension::servers(), Self);

/// Settings of a built-in target.
#[derive(Debug)]
pub(crate) enum TargetSpec {
    /// The sink with another service.
    Sink(SinkSpec),
    /// A server that is a value, and the name of its command.
    Added(&'static str, ServerSpec),
    /// A store to ingest into.
    Ingest(IngestSpec),
    /// A node of a cluster.
    CrudNode(CrudNodeSpec),
    /// A cluster.
    CrudCluster(CrudClusterSpec),
}

#[derive(Debug, Args)]
#[command(mut_arg("drop", |drop| drop.help("Share of requests that are never answered [default: 3%]")))]
#[command(mut_arg("fails", |fails| fails.help(FAILS_HELP)))]
struct CrudArgs {
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    resource: ResourceArgs,
    #[command(flatten)]
    conduct: ConductArgs,
}

const FAILS_HELP: &str =
    "Share of requests that are answered with another status; repeatable [default: 7%:404]";

#[derive(Debug, Args)]
#[command(next_help_heading = "Resources")]
struct ResourceArgs {
    /// Most resources at a time; a POST beyond them is answered 507 [default: 10m]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    max_resources: Option<String>,
    /// Locations as whole URLs instead of paths [default authority: the address listened on]
    #[arg(long, value_name = "AUTHORITY", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "")]
    absolute_location: Option<String>,
}

impl TargetArgs {
    /// Parses and checks the flags of a target; reports all problems at once.
    pub(crate) fn to_spec(&self, files: &dyn Files) -> Result<TargetSpec, Problems> {
        match &self.target {
            Some(Target::Crud(args)) => args.to_spec(files).map(TargetSpec::Sink),
            Some(Target::Added(AddedServer(name, args))) => {
                args.server().map(|spec| TargetSpec::Added(name, spec))
            }
            Some(Target::Ingest(args)) => args.to_spec().map(TargetSpec::Ingest),
            Some(Target::CrudNode(args)) => args.to_spec().map(TargetSpec::CrudNode),
            Some(Target::CrudCluster(args)) => args.to_spec().map(TargetSpec::CrudCluster),
            None => {
                let added: String =
                    extension::servers().map(|server| format!("`{}`, ", server.name)).collect();
                let others = "`ingest`, `crud-node` or `crud-cluster`";
                let hint = format!("write `plimsoll target crud`, {added}{others}");
                Err(Problem::new("no target is given").with_hint(hint).into())
            }
        }
    }
}

impl CrudArgs {
    fn to_spec(&self, files: &dyn Files) -> Result<SinkSpec, Problems> {
        let mut reader = Reader::default();
        let mut options = self.place.read(&mut reader).sink();
        options.service = Service::Crud(self.resource.read(&mut reader));
        options.faults.drop = DROP;
        options.faults.statuses = vec![FAIL];
        self.conduct.finish("target crud", options, reader, files)
    }
}

impl ResourceArgs {
    fn read(&self, reader: &mut Reader) -> Crud {
        let mut crud = Crud::default();
        let bounded = |text: &str| whole(text, 1..=u64::from(u32::MAX));
        if let Some(count) = reader.maybe("--max-resources", self.max_resources.as_ref(), bounded) {
            crud.max_resources = count;
        }
        if let Some(authority) = &self.absolute_location {
            crud.location = Location::Absolute(Some(authority.clone()).filter(|text| !text.is_empty()));
        }
        crud
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::cli::Cli;
    use crate::args::cli::Command;
    use clap::Parser as _;
    use plimsoll_plan::Disk;
    use plimsoll_targets::SinkOptions;

    fn spec(args: &[&str]) -> Result<SinkSpec, Problems> {
        let args = ["plimsoll", "target", "crud"].iter().chain(args);
        let Command::Target(target) = Cli::try_parse_from(args).unwrap().command else {
            panic!("not a target")
        };
        target.to_spec(&Disk).map(|spec| match spec {
            TargetSpec::Sink(spec) => spec,
            other => panic!("not a sink: {other:?}"),
        })
    }

    fn options(args: &[&str]) -> SinkOptions {
        spec(args).unwrap().options
    }

    #[test]
    fn the_plain_target_has_the_faults_of_its_model() {
        let spec = spec(&[]).unwrap();
        assert_eq!(spec.name, "target crud");
        assert_eq!(spec.options.service, Service::Crud(Crud::default()));
        assert_eq!((spec.options.faults.drop, spec.options.faults.reset), (0.03, 0.0));
        assert_eq!(spec.options.faults.statuses, [(404, 0.07)]);
    }

    #[test]
    fn faults_are_replaced_one_by_one() {
        let faults = options(&["--drop", "0", "--fail", "0"]).faults;
        assert_eq!((faults.drop, faults.statuses), (0.0, vec![]));
        let faults = options(&["--fail", "1%:503", "--fail", "2%:429", "--refuse", "5%"]).faults;
        assert_eq!((faults.drop, faults.refuse), (0.03, 0.05));
        assert_eq!(faults.statuses, [(503, 0.01), (429, 0.02)]);
    }

    #[test]
    fn resources() {
        let service = |args: &[&str]| options(args).service;
        let absolute = |authority: Option<&str>| Location::Absolute(authority.map(str::to_owned));
        for (arg, max_resources, location) in [
            ("--max-resources=5k", 5000, Location::Relative),
            ("--absolute-location", 10_000_000, absolute(None)),
            ("--absolute-location=a:80", 10_000_000, absolute(Some("a:80"))),
        ] {
            assert_eq!(service(&[arg]), Service::Crud(Crud { max_resources, location }), "{arg}");
        }
        for bad in ["--max-resources=0", "--max-resources=5g", "--absolute-location=a/b", "--drop=3"] {
            assert_eq!(spec(&[bad]).unwrap_err().iter().count(), 1, "{bad}");
        }
        let problems = spec(&["--listen=:0", "--absolute-location"]).unwrap_err();
        assert!(problems.to_string().contains("authority"), "{problems}");
    }
}
