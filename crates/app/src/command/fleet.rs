//! `plimsoll fleet`: the broker, the agents, and their saved runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plimsoll_core::{Nanos, figure};
use plimsoll_document::Problem;
use plimsoll_fleet::{
    BrokerOptions, BrokerTls, Collector, Delivery, Fabric as _, LOG_FILE, NatsEvent, PID_FILE, now,
    write_broker_files,
};
use plimsoll_report::agent::{AgentResult, AgentState};
use plimsoll_report::saved::{FleetShare, shards_of};
use plimsoll_report::{SavedRun, Style};
use plimsoll_system::clock;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::args::control::address;
use crate::args::fleet::AgentChoice;
use crate::args::fleet_command::{FleetCollectArgs, FleetDownArgs, FleetListArgs, FleetUpArgs};
use crate::args::output::TableOutputFormat;
use crate::args::run::RunArgs;
use crate::base::color::Theme;
use crate::base::environment;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::foreign_text::csv_cell;
use crate::base::stdout::to_stdout;
use crate::base::streams;
use crate::command::runs::{admit_stdout, put_out};
use crate::experiment::run as experiment;
use crate::session::fleet::broker::{agents, connect};
use crate::session::run::exit_of;

/// Longest wait for a broker that was started.
const START: Nanos = Nanos::from_secs(10);
/// Longest wait for the end of a broker that was signalled.
const END: Nanos = Nanos::from_secs(5);
/// Interval between two checks of it.
const LOOK: Nanos = Nanos::from_millis(20);
/// Silence of all agents after which nothing more is collected.
const COLLECT: Nanos = Nanos::from_secs(5);
/// Name of the file of the broker's configuration.
const CONFIGURATION: &str = "broker.conf";
/// Name of the file of the coordinators' key.
const COORDINATOR: &str = "coordinator.key";
/// Names of the files of the broker's self-signed certificate and its key.
const CERTIFICATE: [&str; 2] = ["ca.pem", "broker.pem.key"];

/// `plimsoll fleet run`: `plimsoll run --fleet`.
pub(crate) fn run(args: &RunArgs, look: Theme, style: &Style) -> Result<Exit, Failure> {
    let request = experiment::RunRequest::on_fleet(args);
    experiment::carry_out(&request, &mut (), look, style)
}

/// `plimsoll fleet up`.
pub(crate) fn up(args: &FleetUpArgs) -> Result<Exit, Failure> {
    let wrong =
        || Problem::new(format!("--listen: `{}` is not an address and a port", args.listen.escape_debug()));
    let listen = address(&args.listen)
        .ok_or_else(|| Failure::usage(wrong().with_hint("write 127.0.0.1:4222, or 0.0.0.0:4222")))?;
    if !listen.ip().is_loopback() && args.tls.is_empty() {
        let problem = Problem::new(format!("--listen: at {listen} anyone on the network could read plans"));
        let hint = "add --tls HOST, the name or address by which machines reach this one";
        return Err(Failure::usage(problem.with_hint(hint)));
    }
    let Some(program) = environment::nats_server() else {
        let problem = Problem::new("there is no `nats-server` on the path");
        let hint = "install it (https://github.com/nats-io/nats-server/releases), or name it by PLIMSOLL_NATS_SERVER";
        return Err(Failure::environment(problem.with_hint(hint)));
    };
    let folder = std::path::absolute(&args.place.folder).unwrap_or_else(|_| args.place.folder.clone());
    let unusable =
        |error: std::io::Error| Failure::environment(Problem::new(format!("{}: {error}", folder.display())));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(unusable)?;
    if let Some(running) = running(&folder) {
        let problem =
            Problem::new(format!("the broker of this folder is still running as process {running}"));
        return Err(Failure::usage(
            problem.with_hint("end it: `plimsoll fleet down`; or name another --folder"),
        ));
    }
    let is_new = !folder.join(CONFIGURATION).exists();
    if is_new {
        write_files(args, &folder, (listen.ip().to_string(), listen.port()))?;
    } else {
        streams::to_stderr(&format!("fleet: with the keys and the configuration of {}\n", folder.display()));
    }
    let url = start(&program, &folder).map_err(unusable)??;
    let mut names: Vec<String> = keys(&folder);
    names.sort_unstable();
    let shown = args.place.folder.display();
    let (scheme, ca) = match folder.join(CERTIFICATE[0]).exists() {
        true => ("tls", format!(" --ca {shown}/{}", CERTIFICATE[0])),
        false => ("nats", String::new()),
    };
    let mut url = url.replacen("nats", scheme, 1);
    if let (true, Some(host)) = (listen.ip().is_unspecified(), args.tls.first()) {
        url = format!("{scheme}://{host}:{}", url.rsplit(':').next().unwrap_or_default());
    }
    let fleet_ca = ca.replace("--ca", "--fleet-ca");
    let mut text = format!("broker: {url}\n");
    for name in names {
        text.push_str(&format!("agent:  plimsoll agent --nats {url} --creds {shown}/{name}.key{ca}\n"));
    }
    text.push_str(&format!(
        "run:    plimsoll run plan.yaml --fleet {url} --fleet-creds {shown}/{COORDINATOR}{fleet_ca}\n\
         end:    plimsoll fleet down --folder {shown}\n"
    ));
    to_stdout(|out| out.write_all(text.as_bytes()))?;
    Ok(Exit::Success)
}

/// Names of the agents that have a key in the folder.
fn keys(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let keys = names.filter(|name| name != COORDINATOR);
    keys.filter_map(|name| name.strip_suffix(".key").map(str::to_owned))
        .filter(|name| !name.contains('.'))
        .collect()
}

/// Writes the configuration of a broker, and new keys.
fn write_files(args: &FleetUpArgs, folder: &Path, (host, port): (String, u16)) -> Result<(), Failure> {
    let usage = |text: String| Failure::usage(Problem::new(text));
    let tls = (!args.tls.is_empty()).then(|| {
        let [certificate, key] = CERTIFICATE.map(|name| folder.join(name));
        BrokerTls { certificate, key }
    });
    let options = BrokerOptions {
        host,
        port,
        folder: folder.to_owned(),
        agents: args.agents.clone(),
        tls: tls.clone(),
    };
    let files = write_broker_files(&options).map_err(|error| usage(error.to_string()))?;
    let write = |name: &str, text: &str| {
        let file = fs::OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(folder.join(name));
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| {
            Failure::environment(Problem::new(format!("{}: {error}", folder.join(name).display())))
        })
    };
    if tls.is_some() {
        let made = rcgen::generate_simple_self_signed(args.tls.clone())
            .map_err(|error| usage(format!("--tls: no certificate can be made: {error}")))?;
        write(CERTIFICATE[0], &made.cert.pem())?;
        write(CERTIFICATE[1], &made.signing_key.serialize_pem())?;
    }
    for credentials in &files.agents {
        let name = credentials.agent.as_deref().unwrap_or_default();
        write(&format!("{name}.key"), &credentials.to_text())?;
    }
    write(COORDINATOR, &files.coordinator.to_text())?;
    // Last: with it the folder is complete.
    write(CONFIGURATION, &files.configuration)
}

/// Starts the broker, and returns its address once it listens.
fn start(program: &Path, folder: &Path) -> std::io::Result<Result<String, Failure>> {
    let ports = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        let paths = entries.map(|entry| entry.path());
        paths.filter(|path| path.extension().is_some_and(|end| end == "ports")).collect()
    };
    for old in ports(folder) {
        fs::remove_file(old)?;
    }
    let mut command = Command::new(program);
    command.arg("-c").arg(folder.join(CONFIGURATION)).current_dir(folder).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let begin = clock::monotonic();
    loop {
        for path in ports(folder) {
            let text = fs::read_to_string(path)?;
            let told: Value = serde_json::from_str(&text).unwrap_or_default();
            if let Some(url) = told["nats"][0].as_str() {
                return Ok(Ok(url.to_owned()));
            }
        }
        let ended = child.try_wait()?.is_some();
        if ended || clock::monotonic() - begin > START {
            let what = if ended { "the broker has ended" } else { "the broker does not listen" };
            let problem = Problem::new(format!("{what}: see {}", folder.join(LOG_FILE).display()));
            let hint = "is its port taken, or its version older than 2.10?";
            return Ok(Err(Failure::environment(problem.with_hint(hint))));
        }
        clock::sleep_until(clock::monotonic() + LOOK);
    }
}

/// The process of the broker of this folder, if it is running.
fn running(folder: &Path) -> Option<i32> {
    let process: i32 = fs::read_to_string(folder.join(PID_FILE)).ok()?.trim().parse().ok()?;
    let line = fs::read(format!("/proc/{process}/cmdline")).ok()?;
    let configuration = folder.join(CONFIGURATION);
    let mut args = line.split(|byte| *byte == 0);
    args.any(|arg| arg == configuration.as_os_str().as_encoded_bytes()).then_some(process)
}

/// `plimsoll fleet down`.
pub(crate) fn down(args: &FleetDownArgs) -> Result<Exit, Failure> {
    let folder = std::path::absolute(&args.place.folder).unwrap_or_else(|_| args.place.folder.clone());
    let Some(process) = running(&folder) else {
        let problem = Problem::new(format!("no broker of {} is running", folder.display()));
        return Err(Failure::usage(problem.with_hint("name the folder of `fleet up`: --folder FOLDER")));
    };
    let failed = |error: rustix::io::Errno| {
        Failure::environment(Problem::new(format!("process {process} cannot be ended: {error}")))
    };
    if let Some(pid) = Pid::from_raw(process) {
        kill_process(pid, Signal::TERM).map_err(failed)?;
    }
    let begin = clock::monotonic();
    while running(&folder).is_some() {
        if clock::monotonic() - begin > END {
            let problem = Problem::new(format!("the broker, process {process}, does not end"));
            return Err(Failure::environment(problem));
        }
        clock::sleep_until(clock::monotonic() + LOOK);
    }
    to_stdout(|out| out.write_all(b"the broker has ended; its keys are kept\n"))?;
    Ok(Exit::Success)
}

/// `plimsoll fleet list`.
pub(crate) fn list(args: &FleetListArgs) -> Result<Exit, Failure> {
    let mut link = connect(args.broker.address("list").map_err(Failure::usage)?)?;
    let found = agents(&mut link, &AgentChoice::All)?;
    link.close();
    let text = match args.output {
        TableOutputFormat::Json => format!("{:#}\n", json!({"agents": found.values().collect::<Vec<_>>()})),
        TableOutputFormat::Csv => {
            let lines = found.values().map(|here| {
                let run = here.run.as_deref().unwrap_or_default();
                let cells = [&here.agent, &here.version].map(|cell| csv_cell(cell));
                format!("{},{},{},{}\n", cells.join(","), here.cores, here.wire, csv_cell(run))
            });
            format!("agent,version,cores,wire,run\n{}", lines.collect::<String>())
        }
        TableOutputFormat::Text if found.is_empty() => "no agents; `plimsoll agent` starts one\n".to_owned(),
        TableOutputFormat::Text => {
            let lines = found.values().map(|here| {
                let leaving = if here.is_leaving { ", leaving" } else { "" };
                let state = match &here.run {
                    Some(run) => format!("run {run}{leaving}"),
                    None if here.is_leaving => "leaving".to_owned(),
                    None => "free".to_owned(),
                };
                let thread = here.thread_per_s.map(|limit| figure::per_second(limit as f64));
                let thread = thread.unwrap_or_else(|| "-".to_owned());
                agent_line([&here.agent, &here.cores.to_string(), &thread, &here.version, &state])
            });
            let head = agent_line(["agent", "cores", "per thread", "version", "state"]);
            std::iter::once(head).chain(lines).collect()
        }
    };
    to_stdout(|out| out.write_all(text.as_bytes()))?;
    Ok(Exit::Success)
}

/// A line of the list of agents; a thread's calibrated limit may be unknown.
fn agent_line([agent, cores, thread, version, state]: [&str; 5]) -> String {
    format!("{agent:<24} {cores:>5} {thread:>12}  {version:<10} {state}\n")
}

/// `plimsoll fleet collect`.
pub(crate) fn collect(args: &FleetCollectArgs, style: &Style) -> Result<Exit, Failure> {
    admit_stdout(args.output, args.file.as_deref())?;
    plimsoll_fleet::check_name(&args.run).map_err(|error| Failure::usage(Problem::new(error.to_string())))?;
    let mut link = connect(args.broker.address("collect").map_err(Failure::usage)?)?;
    let found = agents(&mut link, &AgentChoice::All)?;
    let mut collector = Collector::new(&args.run, found.into_keys().collect());
    link.subscribe(&collector.subscription());
    while !collector.is_over(now(), COLLECT) {
        if let Some(NatsEvent::Delivery(delivery)) = link.receive(LOOK) {
            collector.hear(&delivery, now());
        }
        for Delivery { subject, payload } in collector.tick(now()) {
            link.publish(&subject, payload);
        }
    }
    link.close();
    let shares = shares(&collector.parts(), &args.run)?;
    let merged = SavedRun::merge_fleet(shares);
    let mut run = merged.map_err(|error| Failure::usage(Problem::new(error.to_string())))?;
    run.result.run.id.clone_from(&args.run);
    let exit = exit_of(&run.result);
    let is_whole = run.result.agents.iter().all(|agent| agent.state == AgentState::Finished);
    put_out(&run, args.output, args.file.as_deref(), style)?;
    Ok(if is_whole { exit } else { crate::base::exit::worse(exit, Exit::AgentLost) })
}

/// The saved runs of a fleet's run, by agent and number of the share.
type Parts = BTreeMap<(String, u32), Vec<u8>>;

/// The shares of all agents of a run. A shard without an agent counts as lost.
fn shares(parts: &Parts, run: &str) -> Result<Vec<FleetShare>, Failure> {
    let mut owners: BTreeMap<u32, Vec<FleetShare>> = BTreeMap::new();
    let (mut all, mut held) = (0, BTreeSet::new());
    for ((name, _), bytes) in parts {
        let unreadable = |error| {
            Failure::environment(Problem::new(format!(
                "the saved run of agent {name} cannot be read: {error}"
            )))
        };
        let saved = SavedRun::from_bytes(bytes).map_err(unreadable)?;
        // The only agent of a run has the whole load, and its result names no shard.
        let shard = saved.result.run.shard.as_deref().unwrap_or("1/1");
        let Some((numbers, of)) = shards_of(shard) else { continue };
        all = all.max(of);
        let agent = AgentResult {
            name: name.clone(),
            shard: shard.to_owned(),
            version: saved.result.tool.version.clone(),
            cores: saved.result.run.host.cpus as u32,
            from_s: saved.result.run.taken_over.map(|taken| taken.from_s),
            ..AgentResult::default()
        };
        held.extend(numbers.clone());
        owners.entry(*numbers.start()).or_default().push(FleetShare { agent, run: Some(saved) });
    }
    if owners.is_empty() {
        let problem = Problem::new(format!("no agent has data of run {}", run.escape_debug()));
        let hint = "`plimsoll fleet list` shows the agents; start missing ones again on the same folders";
        return Err(Failure::usage(problem.with_hint(hint)));
    }
    for number in (1..=all).filter(|number| !held.contains(number)) {
        owners.entry(number).or_default().push(nobody(format!("{number}/{all}")));
    }
    owners.values_mut().for_each(account_for_owners);
    Ok(owners.into_values().flatten().collect())
}

/// The share of an agent of which nothing is known but its shards.
fn nobody(shard: String) -> FleetShare {
    let agent = AgentResult {
        name: "-".to_owned(),
        shard,
        state: AgentState::Lost,
        limited_by: "unknown".to_owned(),
        ..AgentResult::default()
    };
    FleetShare { agent, run: None }
}

/// Accounts for the owners of one shard, one after another: of each that another has followed, the arrivals
/// until then that are not known. The first of them may have left nothing.
fn account_for_owners(owners: &mut Vec<FleetShare>) {
    owners
        .sort_by(|one, other| one.agent.from_s.unwrap_or(0.0).total_cmp(&other.agent.from_s.unwrap_or(0.0)));
    if let Some(first) = owners.first().filter(|first| first.agent.from_s.is_some()) {
        owners.insert(0, nobody(first.agent.shard.clone()));
    }
    let mut accounted = 0;
    for next in 1..owners.len() {
        let [lost, taker] = &mut owners[next - 1..=next] else { return };
        let Some(taken) = taker.run.as_ref().and_then(|run| run.result.run.taken_over) else { continue };
        let known = lost.run.as_ref().map_or(0, |run| run.result.accounting.scheduled);
        lost.agent.state = AgentState::Lost;
        lost.agent.unknown = taken.arrivals_before.saturating_sub(accounted).saturating_sub(known);
        accounted = taken.arrivals_before;
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_metrics::{Model, RunRecord};
    use plimsoll_report::agent::TakenOver;
    use plimsoll_report::{RunContext, RunResult};

    use super::*;

    /// A share of shard 2 of 2 with so many requests; from when on it had it, and the arrivals before.
    fn owner(name: &str, scheduled: u64, taken: Option<(f64, u64)>) -> FleetShare {
        let mut share = nobody("2/2".to_owned());
        let mut result = RunResult::new(&RunRecord::empty(Model::Open), RunContext::default());
        result.accounting.scheduled = scheduled;
        result.run.taken_over = taken.map(|(from_s, arrivals_before)| TakenOver { from_s, arrivals_before });
        share.agent = AgentResult {
            name: name.to_owned(),
            state: AgentState::Finished,
            from_s: taken.map(|(from_s, _)| from_s),
            ..share.agent
        };
        share.run = Some(SavedRun::of_result(result));
        share
    }

    /// Symptom: what was due between the end of one owner of a shard and the beginning of the next was in no
    /// account.
    #[test]
    fn owners_of_a_shard_follow_each_other_without_a_gap_in_the_account() {
        let unknown = |mut owners: Vec<FleetShare>| {
            account_for_owners(&mut owners);
            let of = |share: FleetShare| (share.agent.name, share.agent.state, share.agent.unknown);
            owners.into_iter().map(of).collect::<Vec<_>>()
        };
        let of = |name: &str, state, unknown| (name.to_owned(), state, unknown);
        let (lost, finished) = (AgentState::Lost, AgentState::Finished);
        // In the order in which they had it, whatever the order of their names is.
        let three = vec![
            owner("a", 400, Some((20.0, 1_000))),
            owner("b", 700, None),
            owner("c", 500, Some((30.0, 1_500))),
        ];
        assert_eq!(unknown(three), [of("b", lost, 300), of("a", lost, 100), of("c", finished, 0)]);
        // The first one has left nothing: all before is unknown.
        let taker = vec![owner("a", 400, Some((20.0, 1_000)))];
        assert_eq!(unknown(taker), [of("-", lost, 1_000), of("a", finished, 0)]);
        assert_eq!(unknown(vec![owner("b", 700, None)]), [of("b", finished, 0)]);
    }

    #[test]
    fn keys_of_agents_are_found() {
        let folder = std::env::temp_dir().join(format!("plimsoll-fleet-keys-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for name in ["a.key", "load-2.key", COORDINATOR, CERTIFICATE[1], CERTIFICATE[0], CONFIGURATION] {
            fs::write(folder.join(name), "").unwrap();
        }
        let mut names = keys(&folder);
        names.sort_unstable();
        assert_eq!(names, ["a", "load-2"]);
        // No broker of this folder is running; the process of this test is not one.
        fs::write(folder.join(PID_FILE), std::process::id().to_string()).unwrap();
        assert_eq!(running(&folder), None);
        fs::remove_dir_all(&folder).unwrap();
    }
}
