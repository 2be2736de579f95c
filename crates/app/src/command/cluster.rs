//! `plimsoll cluster`: starts the system under test, and ends it.

use std::path::PathBuf;
use std::sync::Arc;

use plimsoll_cluster::cluster::{end_running, is_running, running};
use plimsoll_cluster::spec::{NetworkKind, PROFILE};
use plimsoll_cluster::{Cluster, ClusterError, Setting, Spec, State, Surroundings};
use plimsoll_document::Problem;
use plimsoll_system::clock;

use crate::args::workload::cluster::{
    ClusterOfArgs, ClusterStartArgs, ClusterStatusArgs, ClusterUpArgs, StatusFormat,
};
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::{environment, messages, stdout};
use crate::command::guard::Guard;

impl From<ClusterError> for Failure {
    fn from(error: ClusterError) -> Self {
        let problem = Problem::new(error.to_string());
        Self::environment(match error.hint() {
            Some(hint) => problem.with_hint(hint),
            None => problem,
        })
    }
}

/// A cluster that ends with this, and with this process.
pub(crate) struct OwnedCluster {
    pub(crate) cluster: Arc<Cluster>,
    guard: Guard,
}

impl OwnedCluster {
    /// Starts a cluster with these values of parameters. `lasts`: it may go on without us, in the end.
    pub(crate) fn start(
        spec: &Spec,
        clean: &[PathBuf],
        values: &[(String, String)],
        lasts: bool,
        quiet: bool,
    ) -> Result<Self, Failure> {
        let seed = clock::unix().0;
        let id = format!("{seed:x}-{:x}", std::process::id());
        let guard = Guard::begin(&id)?;
        let setting = Setting {
            id,
            // Clusters that are started at the same time look for ports in different places.
            seed: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32,
            surroundings: surroundings(values),
            profile: values.iter().find(|(name, _)| name == PROFILE).map(|(_, value)| value.clone()),
            clean: clean.to_vec(),
            owner: (!lasts).then(std::process::id),
        };
        let say = messages::say(quiet);
        let cluster = Cluster::start(spec, &setting, &|text| say(&format!("cluster: {text}")))?;
        Ok(Self { cluster: Arc::new(cluster), guard })
    }

    pub(crate) fn end(self) -> Result<(), Failure> {
        Ok(self.cluster.end()?)
    }
}

/// Returns the values outside of a spec that its texts may refer to.
pub(crate) fn surroundings(values: &[(String, String)]) -> Surroundings {
    Surroundings { program: environment::program(), values: values.to_vec() }
}

/// The values of `--set`, where each parameter has one.
pub(crate) fn single_values(start: &ClusterStartArgs, spec: &Spec) -> Result<Vec<(String, String)>, Failure> {
    let sets = start.sets(spec)?;
    let single = |(name, values): (String, Vec<String>)| match <[String; 1]>::try_from(values) {
        Ok([value]) => Ok((name, value)),
        Err(_) => {
            let problem = Problem::new(format!("--set {name}: one value, and not several"));
            Err(Failure::usage(problem.with_hint("`plimsoll cluster run` makes a run for each")))
        }
    };
    sets.into_iter().map(single).collect()
}

/// `plimsoll cluster up`.
pub(crate) fn up(args: &ClusterUpArgs) -> Result<Exit, Failure> {
    let spec = args.start.spec()?;
    let values = single_values(&args.start, &spec)?;
    let say = messages::say(args.quiet);
    if !spec.links.is_empty() || spec.network != NetworkKind::Proxy {
        let note = "nodes are on loopback, connections between them direct, and there are no faults";
        say(&format!("note: {note}, but in `cluster run`"));
    }
    let guarded = OwnedCluster::start(&spec, &args.start.clean, &values, true, args.quiet)?;
    let state = guarded.cluster.state();
    // From here on the nodes are meant to stay.
    guarded.guard.dismiss();
    show(&state)?;
    Ok(Exit::Success)
}

/// `plimsoll cluster down`.
pub(crate) fn down(args: &ClusterOfArgs) -> Result<Exit, Failure> {
    let spec = args.spec()?;
    let state = running(&spec.directory)?;
    if let Some(owner) = state.owner {
        let problem = Problem::new(format!("the cluster belongs to `cluster run`, process {owner}"));
        return Err(Failure::environment(problem.with_hint("end that one, by ^C or SIGTERM")));
    }
    end_running(&spec.directory, &state)?;
    Ok(Exit::Success)
}

/// `plimsoll cluster status`.
pub(crate) fn status(args: &ClusterStatusArgs) -> Result<Exit, Failure> {
    let spec = args.of.spec()?;
    let state = running(&spec.directory)?;
    match args.output {
        StatusFormat::Text => show(&state)?,
        StatusFormat::Json => {
            let nodes: Vec<serde_json::Value> = state
                .nodes
                .iter()
                .map(|node| {
                    let ports: serde_json::Map<String, serde_json::Value> =
                        node.ports.iter().map(|(name, port)| (name.clone(), (*port).into())).collect();
                    serde_json::json!({
                        "id": node.id, "pid": node.pid, "running": is_running(node), "ports": ports,
                        "data": node.data, "log": node.log,
                    })
                })
                .collect();
            let status = serde_json::json!({ "name": state.name, "owner": state.owner, "nodes": nodes });
            stdout::to_stdout(|out| {
                serde_json::to_writer_pretty(&mut *out, &status)?;
                out.write_all(b"\n")
            })?;
        }
    }
    let down: Vec<&str> =
        state.nodes.iter().filter(|node| !is_running(node)).map(|node| node.id.as_str()).collect();
    if down.is_empty() {
        return Ok(Exit::Success);
    }
    Err(Failure::environment(Problem::new(match down.as_slice() {
        [node] => format!("node {node} does not run"),
        nodes => format!("nodes {} do not run", nodes.join(", ")),
    })))
}

/// A line for each node.
fn show(state: &State) -> Result<(), Failure> {
    stdout::to_stdout(|out| {
        for node in &state.nodes {
            let ports: Vec<String> =
                node.ports.iter().map(|(name, port)| format!("{name} {}:{port}", node.host)).collect();
            let how = if is_running(node) { "runs" } else { "ENDED" };
            let log = node.log.display();
            writeln!(out, "node {}: {how}, process {}, {}, log {log}", node.id, node.pid, ports.join(", "))?;
        }
        Ok(())
    })
}
