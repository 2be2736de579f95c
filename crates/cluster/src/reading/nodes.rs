//! Nodes of a spec.

use std::path::PathBuf;

use plimsoll_core::Nanos;
use plimsoll_document::{Field, Place, Problem};

use super::{PATIENCE, Reading, pairs, text, texts};
use crate::document::{NodeSpec, ReadySpec};
use crate::spec::{Condition, NodePlan, Probe};
use crate::template::{self, Scope};

/// Nodes of a cluster at most: each has two links to each other one.
const MOST_NODES: usize = 100;
/// Default time between SIGTERM and SIGKILL.
const GRACE: Nanos = Nanos::from_secs(5);

impl Reading<'_> {
    pub(super) fn nodes(&mut self) -> Vec<NodePlan> {
        if self.document.nodes.is_empty() {
            let problem = Problem::new("a cluster needs `nodes`");
            self.wrong(problem.with_hint("name the program: `nodes: {command: my-server}`"), None);
        }
        let mut nodes: Vec<NodePlan> = Vec::new();
        for group in &self.document.nodes {
            if let Some(spec) = group.get() {
                self.group(spec, group.place(), &mut nodes);
            }
        }
        self.check_templates(&nodes);
        nodes
    }

    /// Adds the nodes of a group.
    fn group(&mut self, group: &NodeSpec, place: Option<Place>, nodes: &mut Vec<NodePlan>) {
        if group.command.is_absent() {
            self.wrong(Problem::new("a node needs a `command`"), place);
        }
        let ids = self.ids(group, nodes.len());
        let ready: Vec<Probe> = self.ready(group);
        let ready_within = self.duration(&group.ready_within, "ready_within").unwrap_or(PATIENCE);
        let delay = self.duration(&group.delay, "delay").unwrap_or_default();
        let grace = self.duration(&group.grace, "grace").unwrap_or(GRACE);
        let ports: Vec<(String, u16)> = self.ports(group);
        for (number, id) in ids.into_iter().enumerate() {
            if nodes.iter().any(|node| node.id == id) {
                let problem = Problem::new(format!("two nodes are called `{}`", id.escape_debug()));
                self.wrong(problem, group.ids.first().and_then(Field::place).or(place));
                continue;
            }
            let port = |(name, first): &(String, u16)| {
                (name.clone(), if *first == 0 { 0 } else { first.saturating_add(number as u16) })
            };
            nodes.push(NodePlan {
                id,
                command: text(&group.command).unwrap_or_default(),
                arguments: texts(&group.arguments),
                per_peer: texts(&group.per_peer),
                environment: pairs(&group.environment),
                data: PathBuf::from(text(&group.data).unwrap_or_else(|| "data".to_owned())),
                ports: ports.iter().map(port).collect(),
                ready: ready.clone(),
                ready_within,
                delay,
                wait: group.wait.get().copied().unwrap_or_default(),
                grace,
            });
        }
    }

    fn ids(&mut self, group: &NodeSpec, before: usize) -> Vec<String> {
        let ids = texts(&group.ids);
        let given = if ids.is_empty() { 1 } else { ids.len() };
        let count = self.number::<usize>(&group.count, "count").unwrap_or(given);
        if !ids.is_empty() && ids.len() != count {
            let problem = Problem::new(format!("`count` is {count}, and there are {} ids", ids.len()));
            self.wrong(problem.with_hint("leave `count` out"), group.count.place());
        }
        if count == 0 || before + count > MOST_NODES {
            let problem = Problem::new(format!("a cluster has 1 to {MOST_NODES} nodes"));
            self.wrong(problem, group.count.place());
            return Vec::new();
        }
        for id in &group.ids {
            let plain = |id: &str| id.bytes().all(|c| c.is_ascii_alphanumeric() || b"-_".contains(&c));
            if id.get().is_some_and(|id| id.as_str().is_empty() || !plain(id.as_str())) {
                let problem = Problem::new("an id has letters, digits, `-` and `_` only");
                self.wrong(problem.with_hint("it is the name of a folder, too"), id.place());
            }
        }
        match ids.is_empty() {
            true => (before..before + count).map(|number| number.to_string()).collect(),
            false => ids,
        }
    }

    fn ports(&mut self, group: &NodeSpec) -> Vec<(String, u16)> {
        let ports = &group.ports.0;
        ports
            .iter()
            .map(|(name, _, port)| (name.0.clone(), self.number(port, &name.0).unwrap_or(0)))
            .collect()
    }

    fn ready(&mut self, group: &NodeSpec) -> Vec<Probe> {
        let names: Vec<String> = group.ports.0.iter().map(|(name, ..)| name.0.clone()).collect();
        let first = names.first().cloned().unwrap_or_default();
        if group.ready.is_empty() && !first.is_empty() {
            return vec![Probe::Tcp { port: first }];
        }
        let probes = group.ready.iter();
        probes.filter_map(|probe| self.probe(probe.get()?, probe.place(), &names, &first)).collect()
    }

    fn probe(
        &mut self,
        probe: &ReadySpec,
        place: Option<Place>,
        names: &[String],
        first: &str,
    ) -> Option<Probe> {
        let ReadySpec { http, tcp, log, .. } = probe;
        match (text(http), text(tcp), text(log)) {
            (Some(path), None, None) => Some(Probe::Http {
                port: self.port(&probe.port, names, first),
                path,
                status: self.number(&probe.status, "status").unwrap_or(200),
                json: self.condition(probe, place),
            }),
            (None, Some(_), None) => Some(Probe::Tcp { port: self.port(tcp, names, first) }),
            (None, None, Some(text)) => Some(Probe::Log(text)),
            _ => {
                let problem = Problem::new("a sign of readiness is one of `http`, `tcp` and `log`");
                self.wrong(problem.with_hint("write several as a list"), place);
                None
            }
        }
    }

    fn condition(&mut self, probe: &ReadySpec, place: Option<Place>) -> Option<Condition> {
        let (equals, not) = (text(&probe.equals), text(&probe.not));
        if probe.json.is_absent() {
            if equals.is_some() || not.is_some() {
                let problem = Problem::new("`equals` and `not` need `json`, the place to compare");
                self.wrong(problem, place);
            }
            return None;
        }
        Some(Condition { pointer: self.pointer(&probe.json, "json", ""), equals, not })
    }

    /// Reports names in templates that nothing has.
    fn check_templates(&mut self, nodes: &[NodePlan]) {
        let names: Vec<(&str, Vec<&str>)> = nodes
            .iter()
            .map(|node| (node.id.as_str(), node.ports.iter().map(|(name, _)| name.as_str()).collect()))
            .collect();
        let parameters: Vec<String> =
            self.document.parameters.0.iter().map(|(name, ..)| name.0.clone()).collect();
        let in_suites = self.document.suites.0.iter().flat_map(|(_, _, suite)| &suite.matrix.0);
        let parameters = parameters.into_iter().chain(in_suites.map(|(name, ..)| name.0.clone())).collect();
        let mut found: Vec<(Problem, Option<Place>)> = Vec::new();
        let mut own = 0;
        for group in self.document.nodes.iter().filter_map(|group| group.get()) {
            let Some((_, ports)) = names.get(own) else { break };
            let given = group.count.get().and_then(|count| count.as_str().parse().ok());
            own += given.unwrap_or(group.ids.len().max(1));
            let scope = Scope { nodes: &names, ports, parameters: &parameters, per_peer: false };
            let fields = [&group.command].into_iter().chain(&group.arguments);
            let fields = fields.chain(group.environment.0.iter().map(|(.., value)| value));
            let plain = fields.map(|field| (field, scope));
            let per_peer = group.per_peer.iter().map(|field| (field, Scope { per_peer: true, ..scope }));
            for (field, scope) in plain.chain(per_peer) {
                let Some(text) = field.get() else { continue };
                let problems = template::names(text.as_str()).filter_map(|name| scope.complaint(name));
                found.extend(problems.map(|problem| (problem, field.place())));
            }
        }
        found.into_iter().for_each(|(problem, place)| self.wrong(problem, place));
    }
}
