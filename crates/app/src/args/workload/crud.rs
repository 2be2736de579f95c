//! The flags of `plimsoll crud`.

use clap::{Args, ValueEnum};
use plimsoll_core::Nanos;
use plimsoll_document::Problem;
use plimsoll_workloads::WorkloadError;
use plimsoll_workloads::crud::{CrudLoad, Mode, Model, Shares, Size, Update};

use crate::args::run::RunArgs;
use crate::args::workload::bench_variables;
use crate::base::files::typed_text;

/// Default number of operations.
const TOTAL: u64 = 10_000;
/// Default number of items of a bulk.
const BULK_SIZE: u32 = 100;
/// Default number of requests in flight.
const CONCURRENCY: u32 = 64;
/// Requests in flight, and the limit for a response, as Lithair's generator has them.
const OF_LITHAIR: (u32, &str) = (512, "10s");
/// The largest share: more counts as much.
const LARGEST_SHARE: u32 = 100;

#[derive(Debug, Args)]
pub(crate) struct CrudLoadArgs {
    #[command(flatten)]
    workload: WorkloadArgs,
    #[command(flatten)]
    mix: MixArgs,
    #[command(flatten)]
    model: ModelArgs,
    /// Record every write and its answer, and compare the servers' items with them afterwards
    ///
    /// Every acknowledged create and update has to be there, every acknowledged delete to be gone, and
    /// nothing else; a write whose answer was lost may have happened or not. The leader and all read targets
    /// are asked for all items (GET with take and skip), and have TIME to come to it. A difference ends with
    /// exit code 6. No other client may write to the resource meanwhile.
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "10s")]
    #[arg(help_heading = "Workload")]
    verify: Option<String>,
    /// Print the plan that the flags make, and exit
    #[arg(long, help_heading = "Workload")]
    pub(crate) print_plan: bool,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Workload")]
struct WorkloadArgs {
    /// URL of the server that takes writes: the leader of a cluster
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    leader: String,
    /// Operations in all; with bulks, items [default: 10000, unless --duration or --stages are given]
    #[arg(long, value_name = "N", conflicts_with = "iterations")]
    total: Option<u64>,
    /// Requests in flight: another name of --connections [default: 64]
    #[arg(long, value_name = "N", conflicts_with = "connections")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    concurrency: Option<u32>,
    /// Settings of a project's own generator; other flags override them
    #[arg(long, value_enum, value_name = "PROJECT")]
    preset: Option<Preset>,
    /// Operations: single creates, bulk creates, or a random mix [default: what other flags imply, or single]
    #[arg(long, value_enum, value_name = "MODE")]
    mode: Option<ModeName>,
    /// Items of one create [default: bulk: 100, else 1]
    #[arg(long, value_name = "N")]
    bulk_size: Option<u32>,
    /// Create this many items first, unmeasured, for the load to read, change and delete
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    preseed: u64,
    /// Limit for each response in seconds: another name of --timeout
    #[arg(long, value_name = "SECONDS", conflicts_with = "timeout")]
    timeout_s: Option<f64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Mix")]
struct MixArgs {
    /// Share of creates [default: 80, and 15 reads, 5 updates; 0 if others are given]
    #[arg(long, value_name = "PERCENT")]
    create_pct: Option<u32>,
    /// Share of reads
    #[arg(long, value_name = "PERCENT")]
    read_pct: Option<u32>,
    /// Share of updates
    #[arg(long, value_name = "PERCENT")]
    update_pct: Option<u32>,
    /// Share of deletes
    #[arg(long, value_name = "PERCENT")]
    delete_pct: Option<u32>,
    /// URLs of the servers to read from and to verify, separated by commas [default: the leader]
    #[arg(long, value_name = "URLS", value_delimiter = ',')]
    read_targets: Vec<String>,
    /// Path to read; ${id} stands for the id of a created item [default: the collection]
    #[arg(long, value_name = "PATH")]
    read_path: Option<String>,
    /// Kind of update
    #[arg(long, value_enum, value_name = "HOW", default_value = "put")]
    update: UpdateName,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Resource")]
struct ModelArgs {
    /// Name of the resource under /api/
    #[arg(long, value_name = "NAME", default_value = "products")]
    model: String,
    /// Path of the collection [default: /api/NAME]
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// Body that creates an item: a template of a JSON object, or @file [default for products: name, price,
    /// category]
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// Fields that an update changes: a template of a JSON object, or @file [default: the payload; of
    /// products the price]
    #[arg(long, value_name = "JSON")]
    changes: Option<String>,
    /// JSON Pointer to the id of an item in the answer to its creation
    #[arg(long = "id", value_name = "POINTER", default_value = "/id")]
    id_pointer: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Preset {
    /// `http_loadgen_demo`: --mode bulk --concurrency 512 --timeout-s 10
    Lithair,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ModeName {
    /// One item with each request.
    Single,
    /// --bulk-size items per request.
    Bulk,
    /// Creates, reads, updates and deletes, by their shares.
    Random,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum UpdateName {
    /// PUT with the whole item, as it was answered before, and what changes.
    Put,
    /// GET of the item, and then that.
    ReadModifyWrite,
    /// PATCH with what changes.
    Patch,
}

impl CrudLoadArgs {
    /// The workload that the flags describe.
    pub(crate) fn to_load(&self) -> Result<CrudLoad, Problem> {
        let (args, mix) = (&self.workload, &self.mix);
        let model = self.model()?;
        let plan = &self.run.plan;
        let (concurrency, timeout) = match args.preset {
            Some(Preset::Lithair) => (OF_LITHAIR.0, Some(OF_LITHAIR.1.to_owned())),
            None => (CONCURRENCY, None),
        };
        Ok(CrudLoad {
            leader: server("--leader", &args.leader)?,
            preseed: args.preseed,
            read_targets: self.read_targets()?,
            read_path: match &mix.read_path {
                Some(path) if path.starts_with('/') => path.clone(),
                Some(path) => format!("/{path}"),
                None => model.path.clone(),
            },
            model,
            mode: self.mode()?,
            update: match mix.update {
                UpdateName::Put => Update::Put,
                UpdateName::ReadModifyWrite => Update::ReadModifyWrite,
                UpdateName::Patch => Update::Patch,
            },
            size: Size {
                // A duration replaces the number of iterations.
                total: match args.total {
                    Some(0) => {
                        let problem = Problem::new("--total 0: there is nothing to do");
                        return Err(problem.with_hint("write --total 1 or more, or --duration"));
                    }
                    None if plan.has_end() => None,
                    total => Some(total.unwrap_or(TOTAL)),
                },
                concurrency: args.concurrency.unwrap_or(concurrency),
                timeout: args.timeout_s.map(|seconds| format!("{seconds}s")).or(timeout),
            },
        })
    }

    /// Returns the time within which servers must have what they acknowledged; `None` if they are not
    /// verified.
    pub(crate) fn verify_within(&self) -> Result<Option<Nanos>, Problem> {
        let parse = |text: &String| {
            plimsoll_schedule::parse_duration(text).map_err(|error| {
                Problem::new(format!("--verify: {error}")).with_hint("write it as in --verify=10s")
            })
        };
        self.verify.as_ref().map(parse).transpose()
    }

    /// The servers that are read from, each once.
    fn read_targets(&self) -> Result<Vec<String>, Problem> {
        let mut all: Vec<String> = Vec::new();
        for text in &self.mix.read_targets {
            let server = server("--read-targets", text)?;
            if all.contains(&server) {
                let problem = Problem::new(format!("--read-targets: `{server}` is there twice"));
                return Err(problem.with_hint("write each server once: all are read from as often"));
            }
            all.push(server);
        }
        Ok(all)
    }

    /// The shares of the mix, if any is given, as they count.
    fn shares(&self) -> Option<Shares> {
        let mix = &self.mix;
        let given = [mix.create_pct, mix.read_pct, mix.update_pct, mix.delete_pct];
        let [create, read, update, delete] = given.map(|share| share.unwrap_or_default().min(LARGEST_SHARE));
        given.iter().any(Option::is_some).then_some(Shares { create, read, update, delete })
    }

    fn mode_name(&self) -> ModeName {
        let args = &self.workload;
        let spoken_of = match (self.shares(), args.bulk_size) {
            _ if args.preset == Some(Preset::Lithair) => ModeName::Bulk,
            (Some(_), _) => ModeName::Random,
            (None, Some(_)) => ModeName::Bulk,
            (None, None) => ModeName::Single,
        };
        args.mode.unwrap_or(spoken_of)
    }

    /// The flags that have no effect, each with its verb.
    fn idle(&self) -> Vec<&'static str> {
        let (args, mix, name) = (&self.workload, &self.mix, self.mode_name());
        let is_mixed = name == ModeName::Random;
        let verifies = self.verify.is_some();
        let all = [
            ("--create-pct and the like have", self.shares().is_some() && !is_mixed),
            ("--read-targets has", !mix.read_targets.is_empty() && !is_mixed && !verifies),
            ("--read-path has", mix.read_path.is_some() && !is_mixed),
            ("--bulk-size has", args.bulk_size.is_some() && name == ModeName::Single),
        ];
        all.into_iter().filter(|(_, is_idle)| *is_idle).map(|(flag, _)| flag).collect()
    }

    /// Returns notes on flags that have no effect in this mode, and on shares that are cut. They are no
    /// errors: command lines that were written for another generator name all flags, whatever the mode.
    pub(crate) fn notes(&self, load: &CrudLoad) -> Vec<String> {
        let mix = &self.mix;
        let shares = [mix.create_pct, mix.read_pct, mix.update_pct, mix.delete_pct];
        let idle = self.idle().into_iter().map(|flag| {
            let (name, mode) = match self.mode_name() {
                ModeName::Single if flag.starts_with("--bulk-size") => ("single creates", "bulk"),
                ModeName::Single => ("single creates", "random"),
                ModeName::Bulk | ModeName::Random => ("bulk creates", "random"),
            };
            format!("{flag} no effect in this mode, {name}: add --mode {mode}")
        });
        let cut = shares.into_iter().flatten().filter(|share| *share > LARGEST_SHARE);
        let cut = cut.map(|share| format!("a share of {share} counts as {LARGEST_SHARE}"));
        idle.chain(cut).chain(self.notes_on_mix(load)).chain(bench_variables::unread_by_crud()).collect()
    }

    /// Returns notes on what a mix does otherwise than Lithair's generator.
    fn notes_on_mix(&self, load: &CrudLoad) -> Vec<String> {
        let Mode::Random(shares, size) = load.mode else { return Vec::new() };
        let mut notes = Vec::new();
        if size > 1 && shares.create > 0 {
            notes.push(format!("--bulk-size {size}: each create of the mix is a bulk of {size} items"));
        }
        let at_once = self.run.plan.at_once(load.size.concurrency);
        let load = CrudLoad {
            size: Size { total: load.size.total.or(self.run.plan.iterations()), ..load.size.clone() },
            ..load.clone()
        };
        let wanted = load.preseed_wanted(at_once);
        if wanted.is_some_and(|wanted| load.preseed >= wanted) {
            return notes;
        }
        let number = wanted.filter(|wanted| *wanted < u64::MAX);
        let preseed = match number {
            Some(wanted) => format!("--preseed {wanted} creates enough before the load"),
            None => "--preseed N creates some before the load".to_owned(),
        };
        if shares.create > 0 && shares.delete > 0 {
            notes.push(format!(
                "a delete that finds no item of this load is left out, so that it takes none from under another \
                 client: {preseed}"
            ));
        }
        if shares.update > 0 && load.update == Update::Put {
            notes.push(format!(
                "an update of an item that this load does not know reads it first, as PUT sends all of it: \
                 {preseed}, --update patch sends what changes"
            ));
        }
        notes
    }

    fn mode(&self) -> Result<Mode, Problem> {
        let args = &self.workload;
        let says_mode = args.mode.is_some() || args.preset.is_some();
        // Without a mode or preset, a flag of other modes is a mistake and not a leftover of a shared command
        // line.
        if let Some(flag) = self.idle().first().filter(|_| !says_mode) {
            let problem = Problem::new(format!("{flag} no effect: items are created and nothing else"));
            return Err(problem.with_hint("add --mode random, or leave it out"));
        }
        Ok(match self.mode_name() {
            ModeName::Single => Mode::Single,
            ModeName::Bulk => Mode::Bulk(args.bulk_size.unwrap_or(BULK_SIZE)),
            ModeName::Random => {
                Mode::Random(self.shares().unwrap_or(Shares::DEFAULT), args.bulk_size.unwrap_or(1))
            }
        })
    }

    fn model(&self) -> Result<Model, Problem> {
        let args = &self.model;
        let payload = args.payload.as_deref().map(|text| content("--payload", text)).transpose()?;
        let changes = args.changes.as_deref().map(|text| content("--changes", text)).transpose()?;
        let name = args.model.trim_matches('/');
        let model = Model::new(name, payload.as_deref(), changes.as_deref());
        let model = model.map_err(|error| problem("--model", &error))?;
        let path = match &args.path {
            None => model.path,
            Some(path) if path.starts_with('/') && path.len() > 1 => path.trim_end_matches('/').to_owned(),
            Some(path) => {
                let problem = Problem::new(format!("--path: `{path}` is not a path of a collection"));
                return Err(problem.with_hint("it begins with a slash, as in /api/products"));
            }
        };
        Ok(Model { path, id: args.id_pointer.clone(), ..model })
    }
}

/// A text, or that of a file.
fn content(flag: &str, text: &str) -> Result<String, Problem> {
    let Some(file) = text.strip_prefix('@') else { return Ok(text.to_owned()) };
    typed_text(file.as_ref()).map_err(|error| {
        let problem = Problem::new(format!("{flag}: cannot read `{file}`: {error}"));
        problem.with_hint("a payload that begins with @ names a file with it")
    })
}

/// The URL of a server without the slash at its end.
fn server(flag: &str, text: &str) -> Result<String, Problem> {
    let text = text.trim();
    if ["http://", "https://"].iter().any(|scheme| text.to_ascii_lowercase().starts_with(scheme)) {
        return Ok(text.trim_end_matches('/').to_owned());
    }
    let problem = Problem::new(format!("{flag}: `{text}` is not a URL of a server"));
    Err(problem.with_hint("write it as in http://127.0.0.1:8080"))
}

/// Converts an error of the workload to a problem with the flag that was typed.
pub(crate) fn problem(flag: &str, error: &WorkloadError) -> Problem {
    Problem::new(format!("{flag}: {error}")).with_hint(error.hint())
}
