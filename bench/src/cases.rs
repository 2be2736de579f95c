//! The cases: which tools do what against which server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;

use crate::child;
use crate::pairs::{self, Contestant};
use crate::server::{ServerKind, ServerSpec};
use crate::table;
use crate::tool::{Job, Peer, Tool};

/// Seconds of the unrecorded run of each tool before the pairs.
const WARM_UP_S: u32 = 1;

/// What to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Case {
    /// Closed model, keep-alive GET, against a server that is not the bottleneck
    H1,
    /// The same against a server that works 20 µs on every request
    Slow20us,
    /// The same against nginx
    Nginx,
    /// POST with a body of 300 bytes that is different every time
    Post300,
    /// TLS 1.3
    Tls,
    /// Open model: also start lag, and with --precise
    Rate,
    /// Memory of idle connections, and its growth from second 10 to the end (plimsoll alone)
    Memory,
}

/// The command line, digested.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) case: Case,
    pub(crate) peer: Option<Peer>,
    pub(crate) connections: Vec<u32>,
    pub(crate) rates: Vec<u32>,
    pub(crate) server: Option<ServerKind>,
    pub(crate) pairs: u32,
    pub(crate) duration_s: Option<u32>,
    pub(crate) flags: Vec<String>,
    pub(crate) plimsoll: PathBuf,
    pub(crate) server_core: u32,
    pub(crate) tool_core: u32,
}

/// One table: tools that take turns at one job.
#[derive(Debug)]
pub(crate) struct Experiment {
    server: ServerSpec,
    tools: Vec<Tool>,
    connections: u32,
    duration_s: u32,
    rate: Option<u32>,
    post: bool,
    memory: bool,
}

impl Request {
    /// What the case means.
    ///
    /// # Errors
    /// If flags contradict the case.
    pub(crate) fn experiments(&self) -> Result<Vec<Experiment>, String> {
        let case = self.case;
        let kind = match (case, self.server) {
            (Case::Slow20us, Some(ServerKind::Nginx)) => {
                return Err("only the sink can work 20 µs".to_owned());
            }
            (Case::Nginx, Some(ServerKind::Sink)) => return Err("the case nginx is about nginx".to_owned()),
            (Case::Nginx, _) => ServerKind::Nginx,
            (_, kind) => kind.unwrap_or(ServerKind::Sink),
        };
        let work_us = (case == Case::Slow20us).then_some(20);
        let server = ServerSpec { kind, tls: case == Case::Tls, work_us };
        let tools = match case {
            Case::Memory => vec![Tool::Plimsoll],
            Case::Rate => {
                vec![Tool::Plimsoll, Tool::PlimsollPrecise, self.peer.unwrap_or(Peer::H2load).into()]
            }
            _ => vec![Tool::Plimsoll, self.peer.unwrap_or(Peer::Wrk).into()],
        };
        let connections = match (case, self.connections.is_empty()) {
            (_, false) => self.connections.clone(),
            (Case::Memory, true) => vec![100, 10_000],
            (_, true) => vec![64],
        };
        let rates: Vec<Option<u32>> = match case {
            Case::Rate => self.rates.iter().copied().map(Some).collect(),
            // A trickle keeps the run alive while the connections idle.
            Case::Memory => vec![Some(100)],
            _ => vec![None],
        };
        let duration_s = self.duration_s.unwrap_or(if case == Case::Memory { 60 } else { 5 });
        let mut experiments = Vec::new();
        for &rate in &rates {
            for &connections in &connections {
                experiments.push(Experiment {
                    server,
                    tools: tools.clone(),
                    connections,
                    duration_s,
                    rate,
                    post: case == Case::Post300,
                    memory: case == Case::Memory,
                });
            }
        }
        Ok(experiments)
    }

    /// Programs that the experiments take, with their Debian packages, each once.
    pub(crate) fn packages(&self, experiments: &[Experiment]) -> Vec<(&'static str, &'static str)> {
        let mut packages = vec![("taskset", "util-linux")];
        for experiment in experiments {
            packages.extend(experiment.server.packages());
            packages.extend(experiment.tools.iter().filter_map(|tool| tool.package()));
        }
        packages.sort_unstable();
        packages.dedup();
        packages
    }

    /// # Errors
    /// If a program is not installed; says which package has it.
    pub(crate) fn require_programs(&self, experiments: &[Experiment]) -> Result<(), String> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let installed =
            |program: &str| std::env::split_paths(&path).any(|folder| folder.join(program).exists());
        let missing: Vec<String> = self
            .packages(experiments)
            .into_iter()
            .filter(|(program, _)| !installed(program))
            .map(|(program, package)| format!("`{program}` is not installed: apt-get install {package}"))
            .collect();
        if missing.is_empty() { Ok(()) } else { Err(missing.join("\nerror: ")) }
    }
}

impl Experiment {
    fn title(&self) -> String {
        let body = if self.post { "POST 300 B, " } else { "" };
        let rate = self.rate.map_or(String::new(), |rate| format!(", open model, {rate}/s"));
        let connections = if self.connections == 1 { "connection" } else { "connections" };
        format!("{body}{} {connections}{rate}, against {}", self.connections, self.server.describe())
    }

    /// Carries it out and returns Markdown.
    pub(crate) fn carry_out(&self, request: &Request, scratch: &Path) -> Result<String, String> {
        eprintln!("{}", self.title());
        let server = self.server.start(&request.plimsoll, request.server_core, scratch)?;
        let lines = |duration_s| -> Result<Vec<Contestant>, String> {
            let job = Job {
                url: &server.url,
                connections: self.connections,
                duration_s,
                rate: self.rate,
                post: self.post,
                plimsoll: &request.plimsoll,
                flags: &request.flags,
            };
            let contestants = self
                .tools
                .iter()
                .map(|&tool| Ok(Contestant { tool, line: tool.line(&job)?, runs: Vec::new() }));
            contestants.collect()
        };
        let mut contestants = lines(self.duration_s)?;
        let mut out = format!("### {}\n\n", self.title());
        if self.memory {
            out.push_str(&self.measure_memory(&contestants[0], request, scratch)?);
        } else {
            pairs::take_turns(&mut lines(WARM_UP_S)?, 1, WARM_UP_S, request.tool_core, scratch)?;
            pairs::take_turns(&mut contestants, request.pairs, self.duration_s, request.tool_core, scratch)?;
            out.push_str(&table::contest(&contestants));
        }
        out.push_str("\n```\n");
        for typed in std::iter::once(server.typed.clone()).chain(contestants.iter().map(|c| c.line.typed())) {
            out.push_str(&without_places(&typed, request, scratch));
            out.push('\n');
        }
        out.push_str("```\n");
        Ok(out)
    }

    fn measure_memory(
        &self,
        contestant: &Contestant,
        request: &Request,
        scratch: &Path,
    ) -> Result<String, String> {
        let planned = Duration::from_secs(u64::from(self.duration_s));
        let finished = child::run(&contestant.line, request.tool_core, planned, scratch)?;
        contestant.tool.read(&finished.stdout)?;
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let resident = &finished.resident_bytes;
        // The last second may already see the connections closed.
        let late = resident.len().saturating_sub(2);
        let early = 10.min(late / 2);
        let (Some(&before), Some(&after)) = (resident.get(early), resident.get(late)) else {
            return Err("the run was too short to see its memory".to_owned());
        };
        Ok(format!(
            "| connections | peak MiB | at {early} s | at {late} s | growth KiB |\n|---|---|---|---|---|\n\
             | {} | {:.1} | {:.1} | {:.1} | {} |\n",
            self.connections,
            mib(finished.peak_bytes),
            mib(before),
            mib(after),
            (after as i64 - before as i64) / 1024,
        ))
    }
}

/// A command without what is particular to this checkout and this run.
fn without_places(typed: &str, request: &Request, scratch: &Path) -> String {
    typed
        .replace(&*request.plimsoll.to_string_lossy(), "plimsoll")
        .replace(&*scratch.to_string_lossy(), "$SCRATCH")
        .replace(env!("CARGO_MANIFEST_DIR"), "bench")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(case: Case) -> Request {
        Request {
            case,
            peer: None,
            connections: Vec::new(),
            rates: vec![5_000, 50_000],
            server: None,
            pairs: 5,
            duration_s: None,
            flags: Vec::new(),
            plimsoll: PathBuf::from("plimsoll"),
            server_core: 0,
            tool_core: 1,
        }
    }

    #[test]
    fn every_case_has_its_experiments() {
        for case in Case::value_variants() {
            let experiments = request(*case).experiments().unwrap();
            let expected = if matches!(case, Case::Rate | Case::Memory) { 2 } else { 1 };
            assert_eq!(experiments.len(), expected, "{case:?}");
        }
        let titles: Vec<String> =
            request(Case::Rate).experiments().unwrap().iter().map(Experiment::title).collect();
        assert_eq!(titles[1], "64 connections, open model, 50000/s, against the sink");
        let many = Request { connections: vec![1, 64], ..request(Case::Slow20us) };
        let titles: Vec<String> = many.experiments().unwrap().iter().map(Experiment::title).collect();
        assert_eq!(titles[0], "1 connection, against the sink, 20 µs of work per request");
        assert_eq!(titles.len(), 2);
    }

    #[test]
    fn commands_are_shown_without_places() {
        let request = Request { plimsoll: PathBuf::from("/somewhere/plimsoll"), ..request(Case::H1) };
        let typed = "/somewhere/plimsoll sink --tls-cert /scratch/cert.pem";
        let shown = without_places(typed, &request, Path::new("/scratch"));
        assert_eq!(shown, "plimsoll sink --tls-cert $SCRATCH/cert.pem");
    }

    #[test]
    fn contradictions_are_errors() {
        let sink = Request { server: Some(ServerKind::Sink), ..request(Case::Nginx) };
        assert!(sink.experiments().is_err());
        let nginx = Request { server: Some(ServerKind::Nginx), ..request(Case::Slow20us) };
        assert!(nginx.experiments().is_err());
    }

    #[test]
    fn each_program_is_asked_for_once() {
        let request = Request { server: Some(ServerKind::Nginx), ..request(Case::Tls) };
        let experiments = request.experiments().unwrap();
        let packages = request.packages(&experiments);
        let expected =
            [("nginx", "nginx-light"), ("openssl", "openssl"), ("taskset", "util-linux"), ("wrk", "wrk")];
        assert_eq!(packages, expected);
    }
}
