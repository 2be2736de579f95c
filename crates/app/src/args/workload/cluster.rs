//! The flags of `plimsoll cluster`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use plimsoll_cluster::spec::{PROFILE, Suite};
use plimsoll_cluster::{Spec, known_profile};
use plimsoll_document::{Files as _, Problem, Problems, Source};
use plimsoll_plan::Disk;

use crate::args::run::RunArgs;
use crate::base::failure::Failure;

#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    #[command(subcommand)]
    pub(crate) what: ClusterCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Start a cluster, put its load on it, break it by its spec, check its contents, and end it
    ///
    /// The report is that of `run`, with the resources of each node, the effect of each fault, and the
    /// results of the checks. A check that does not hold ends it with code 6. Everything that was started
    /// ends with this process, however that ends.
    Run(Box<ClusterRunArgs>),
    /// Report all problems of a spec and its plans, or that it is ok
    Check(Box<ClusterRunArgs>),
    /// Start a cluster, and leave it running
    ///
    /// Connections between its nodes are direct: the fault proxy lives in `run` alone.
    Up(ClusterUpArgs),
    /// End a cluster that `up` has started
    Down(ClusterOfArgs),
    /// Show which nodes of a cluster run
    Status(ClusterStatusArgs),
    /// End a cluster as soon as stdin ends: that of the process which has started it
    #[command(hide = true)]
    Guard(GuardArgs),
}

/// Which cluster.
#[derive(Debug, Args)]
pub(crate) struct ClusterOfArgs {
    /// The spec of the cluster: YAML or JSON; `plimsoll schema cluster` describes it
    #[arg(value_name = "SPEC")]
    spec: String,
    /// Folder of data and logs, instead of that of the spec
    #[arg(long, value_name = "FOLDER", help_heading = "Cluster")]
    dir: Option<PathBuf>,
}

/// Flags for the start of a cluster.
#[derive(Debug, Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterStartArgs {
    #[command(flatten)]
    pub(crate) of: ClusterOfArgs,
    /// Storage profile, instead of that of the spec
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Remove this data folder even if Plimsoll did not make it; repeatable
    ///
    /// Data folders that Plimsoll has made are removed at the start anyway, unless the spec says otherwise.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) clean: Vec<PathBuf>,
    /// Value of a parameter: concurrency=256; repeatable
    ///
    /// With several values, concurrency=128,256, `run` makes a run for each of them, and a table.
    #[arg(long = "set", value_name = "NAME=VALUE[,VALUE]")]
    set: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ClusterUpArgs {
    #[command(flatten)]
    pub(crate) start: ClusterStartArgs,
    /// No messages on stderr
    #[arg(long, help_heading = "Output")]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ClusterRunArgs {
    #[command(flatten)]
    pub(crate) start: ClusterStartArgs,
    /// Make the runs of this suite of the spec, and a table of them
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    suite: Option<String>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ClusterStatusArgs {
    #[command(flatten)]
    pub(crate) of: ClusterOfArgs,
    /// Format
    #[arg(short, long, value_enum, default_value_t = StatusFormat::Text, value_name = "FORMAT")]
    pub(crate) output: StatusFormat,
}

/// Format of a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatusFormat {
    /// For people
    Text,
    /// For programs
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct GuardArgs {
    /// Id of the cluster that its processes are known by
    pub(crate) id: String,
}

impl ClusterOfArgs {
    /// Reads the spec.
    pub(crate) fn spec(&self) -> Result<Spec, Failure> {
        let name = &self.spec;
        let problem = |said: String| {
            let problem = Problem::new(format!("cannot read the spec `{name}`: {said}"));
            Failure::usage(problem.with_hint("name a file in YAML or JSON, or - for stdin"))
        };
        let bytes = Disk.read(name.as_ref()).map_err(|error| problem(error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| problem("it is not text in UTF-8".to_owned()))?;
        let shown = if name == "-" { "<stdin>" } else { name };
        let mut spec = Spec::read(Source { name: shown.to_owned(), text })?;
        if let Some(dir) = &self.dir {
            spec.directory.clone_from(dir);
        }
        Ok(spec)
    }
}

impl ClusterStartArgs {
    /// Reads the spec, with what the flags say about it.
    pub(crate) fn spec(&self) -> Result<Spec, Failure> {
        let mut spec = self.of.spec()?;
        let mut problems = Problems::default();
        if let Some(profile) = &self.profile {
            if let Err(problem) = known_profile(profile, &spec.profiles) {
                problems.push(
                    Problem::new(format!("--profile: {}", problem.message))
                        .with_hint(problem.hint.unwrap_or_default()),
                );
            }
            spec.profile = Some(profile.clone());
        }
        if problems.is_empty() { Ok(spec) } else { Err(Failure::usage(problems)) }
    }

    /// Parses `--set`: parameters, and their values.
    pub(crate) fn sets(&self, spec: &Spec) -> Result<Vec<(String, Vec<String>)>, Failure> {
        let mut problems = Problems::default();
        let mut sets = Vec::new();
        for set in &self.set {
            let Some((name, values)) = set.split_once('=').filter(|(name, _)| !name.is_empty()) else {
                let problem = Problem::new(format!("--set: `{}` is not NAME=VALUE", set.escape_debug()));
                problems.push(problem.with_hint("write --set concurrency=256"));
                continue;
            };
            let values: Vec<String> = values.split(',').map(str::to_owned).collect();
            let of_suites = spec.suites.iter().flat_map(|suite| &suite.matrix).map(|(name, _)| name.as_str());
            let known = spec.parameters.iter().map(|(name, _)| name.as_str()).chain(of_suites);
            let mut known: Vec<&str> = known.chain([PROFILE]).collect();
            if !known.contains(&name) {
                known.sort_unstable();
                known.dedup();
                let problem = Problem::new(format!("--set: the spec has no parameter `{name}`"));
                problems.push(problem.with_hint(format!("parameters: {}", known.join(", "))));
            }
            for value in values.iter().filter(|_| name == PROFILE) {
                if let Err(problem) = known_profile(value, &spec.profiles) {
                    problems.push(problem);
                }
            }
            sets.push((name.to_owned(), values));
        }
        if problems.is_empty() { Ok(sets) } else { Err(Failure::usage(problems)) }
    }
}

impl ClusterRunArgs {
    /// The suite that is asked for, by its name or by several values of parameters; `None` for a single run.
    pub(crate) fn suite(&self, spec: &Spec) -> Result<Option<Suite>, Failure> {
        let sets = self.start.sets(spec)?;
        let mut suite = match &self.suite {
            Some(name) => {
                Some(spec.suites.iter().find(|suite| suite.name == *name).cloned().ok_or_else(|| {
                    let names: Vec<&str> = spec.suites.iter().map(|suite| suite.name.as_str()).collect();
                    let problem =
                        Problem::new(format!("--suite: the spec has no suite `{}`", name.escape_debug()));
                    Failure::usage(match names.as_slice() {
                        [] => problem.with_hint("describe it under `suites`"),
                        names => problem.with_hint(format!("suites: {}", names.join(", "))),
                    })
                })?)
            }
            None if sets.iter().any(|(_, values)| values.len() > 1) => Some(Suite {
                name: "--set".to_owned(),
                matrix: Vec::new(),
                restart: true,
                preseed: None,
                workload: None,
            }),
            None => None,
        };
        if let Some(suite) = &mut suite {
            for (name, values) in &sets {
                match suite.matrix.iter_mut().find(|(known, _)| known == name) {
                    Some((_, known)) => known.clone_from(values),
                    None => suite.matrix.push((name.clone(), values.clone())),
                }
            }
        }
        Ok(suite)
    }
}
