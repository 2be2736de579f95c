//! From a spec as it is written to one in which nothing is left to parse, with everything that is wrong.

mod check;
mod fault;
mod nodes;

use std::path::{Path, PathBuf};

use plimsoll_core::{Nanos, suggest};
use plimsoll_document::{Field, Keyed, Place, Problem, Problems, Source, Text};
use plimsoll_plan::Refused;
use plimsoll_schedule::parse_duration;

use crate::document::{ClusterDocument, LeaderSpec, LinkSpec, PlanText, SuiteSpec};
use crate::spec::{Clean, LeaderQuestion, Link, NetworkKind, PROFILE, PlanPlace, Profile, Spec, Suite};

/// Default time limit for every wait on a cluster.
const PATIENCE: Nanos = Nanos::from_secs(30);

impl Spec {
    /// Reads a spec.
    ///
    /// # Errors
    /// Everything that is wrong with it, at once.
    pub fn read(source: Source) -> Result<Self, Refused> {
        let mut problems = Problems::default();
        let document = ClusterDocument::read(&source, &mut problems);
        let spec = document
            .map(|document| Reading { document: &document, source: &source, problems: &mut problems }.spec());
        match spec {
            Some(spec) if problems.is_empty() => Ok(spec),
            _ => {
                problems.sort();
                Err(Refused { problems, source: Some(source) })
            }
        }
    }
}

struct Reading<'a> {
    document: &'a ClusterDocument,
    source: &'a Source,
    problems: &'a mut Problems,
}

impl Reading<'_> {
    fn spec(mut self) -> Spec {
        let document = self.document;
        let name = text(&document.name).unwrap_or_else(|| {
            let stem = Path::new(&self.source.name).file_stem();
            stem.map_or("cluster".to_owned(), |stem| stem.to_string_lossy().into_owned())
        });
        let directory = text(&document.directory).unwrap_or_else(|| format!("plimsoll-{name}"));
        let nodes = self.nodes();
        let ports: Vec<String> = {
            let all = nodes.iter().flat_map(|node| node.ports.iter().map(|(name, _)| name.clone()));
            all.collect()
        };
        let first = ports.first().cloned().unwrap_or_default();
        let clean = self.word(
            &document.clean,
            "clean",
            &[("start", Clean::Start), ("both", Clean::Both), ("end", Clean::Both), ("never", Clean::Never)],
        );
        let profiles = self.profiles();
        let profile = self.profile(&document.profile, &profiles);
        let links: Vec<Link> =
            document.links.iter().filter_map(|link| self.link(link.get()?, &ports)).collect();
        let leader = document.leader.get().map(|leader| self.leader(leader, &ports, &first));
        let network = self.word(
            &document.network,
            "network",
            &[
                ("proxy", NetworkKind::Proxy),
                ("namespaces", NetworkKind::Namespaces),
                ("auto", NetworkKind::Auto),
            ],
        );
        let network = network.unwrap_or_default();
        let faults = self.faults(&nodes, network, &links);
        let (checks, unchecked) = self.checks(&ports, &first);
        let suites = self.suites(&profiles);
        Spec {
            directory: PathBuf::from(directory),
            source: self.source.clone(),
            clean: clean.unwrap_or_default(),
            nodes,
            profiles,
            profile,
            network,
            links,
            leader,
            parameters: pairs(&document.parameters),
            preseed: self.plan(&document.preseed),
            workload: self.plan(&document.workload),
            faults,
            fault_seed: self.number(&document.fault_seed, "fault_seed").unwrap_or(1),
            checks,
            unchecked,
            suites,
            name,
        }
    }

    fn wrong(&mut self, problem: Problem, place: Option<Place>) {
        self.problems.push(problem.at(place));
    }

    /// One of some words.
    fn word<T: Copy>(&mut self, field: &Field<Text>, name: &str, words: &[(&'static str, T)]) -> Option<T> {
        let given = field.get()?.as_str();
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == given) {
            return Some(*value);
        }
        let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let problem = Problem::new(format!("`{name}` cannot be `{}`", given.escape_debug()));
        self.wrong(problem.with_hint(format!("it is one of {}", names.join(", "))), field.place());
        None
    }

    fn duration(&mut self, field: &Field<Text>, name: &str) -> Option<Nanos> {
        match parse_duration(field.get()?.as_str()) {
            Ok(duration) => Some(duration),
            Err(error) => {
                self.wrong(Problem::from_line(&format!("`{name}`: {error}")), field.place());
                None
            }
        }
    }

    fn number<T: std::str::FromStr>(&mut self, field: &Field<Text>, name: &str) -> Option<T> {
        let given = field.get()?.as_str();
        if let Ok(number) = given.parse() {
            return Some(number);
        }
        let given = given.escape_debug();
        let problem = Problem::new(format!("`{name}` has to be a whole number, and is `{given}`"));
        self.wrong(problem, field.place());
        None
    }

    /// A JSON pointer (RFC 6901), which is empty or begins with a slash.
    fn pointer(&mut self, field: &Field<Text>, name: &str, default: &str) -> String {
        let pointer = text(field).unwrap_or_else(|| default.to_owned());
        if !pointer.is_empty() && !pointer.starts_with('/') {
            let problem = Problem::new(format!("`{name}` is not a JSON pointer: it does not begin with `/`"));
            self.wrong(problem.with_hint(format!("write /{pointer}")), field.place());
        }
        pointer
    }

    /// The name of a port that nodes have.
    fn port(&mut self, field: &Field<Text>, ports: &[String], default: &str) -> String {
        let name = text(field).unwrap_or_else(|| default.to_owned());
        if !ports.contains(&name) {
            let problem = match name.as_str() {
                "" => Problem::new("the nodes have no ports").with_hint("name them: `ports: {http: 0}`"),
                name => {
                    let problem = Problem::new(format!("no node has a port `{}`", name.escape_debug()));
                    let near = suggest::closest(name, ports.iter().map(String::as_str));
                    match near {
                        Some(near) => problem.with_hint(format!("did you mean `{near}`?")),
                        None => problem.with_hint(format!("ports of the nodes: {}", list(ports))),
                    }
                }
            };
            self.wrong(problem, field.place());
        }
        name
    }

    fn profiles(&mut self) -> Vec<Profile> {
        let profiles = self.document.profiles.0.iter().map(|(name, _, profile)| Profile {
            name: name.0.clone(),
            environment: pairs(&profile.environment),
            arguments: texts(&profile.arguments),
        });
        profiles.collect()
    }

    fn profile(&mut self, field: &Field<Text>, profiles: &[Profile]) -> Option<String> {
        let name = text(field)?;
        if let Err(problem) = known_profile(&name, profiles) {
            self.wrong(problem, field.place());
        }
        Some(name)
    }

    fn link(&mut self, link: &LinkSpec, ports: &[String]) -> Option<Link> {
        if link.port.is_absent() {
            self.wrong(Problem::new("a link needs the name of a port").with_hint("add `port`"), None);
            return None;
        }
        let words = [("peers", (true, false)), ("load", (false, true)), ("all", (true, true))];
        let (peers, load) = self.word(&link.from, "from", &words).unwrap_or((true, false));
        Some(Link { port: self.port(&link.port, ports, ""), peers, load })
    }

    fn leader(&mut self, leader: &LeaderSpec, ports: &[String], first: &str) -> LeaderQuestion {
        LeaderQuestion {
            path: text(&leader.path).unwrap_or_else(|| "/raft/leader".to_owned()),
            port: self.port(&leader.port, ports, first),
            pointer: self.pointer(&leader.pointer, "pointer", "/leader_id"),
            within: self.duration(&leader.within, "within").unwrap_or(PATIENCE),
        }
    }

    fn suites(&mut self, profiles: &[Profile]) -> Vec<Suite> {
        let suites = &self.document.suites.0;
        suites.iter().map(|(name, place, suite)| self.suite(&name.0, *place, suite, profiles)).collect()
    }

    fn suite(&mut self, name: &str, place: Place, suite: &SuiteSpec, profiles: &[Profile]) -> Suite {
        if suite.matrix.is_empty() {
            let problem = Problem::new(format!("the suite `{}` has no `matrix`", name.escape_debug()));
            let hint = "name parameters and their values: `matrix: {concurrency: [128, 256]}`";
            self.wrong(problem.with_hint(hint), Some(place));
        }
        let of_profiles = suite.matrix.0.iter().filter(|(name, ..)| name.as_str() == PROFILE);
        for field in of_profiles.flat_map(|(_, _, values)| values) {
            self.profile(field, profiles);
        }
        let matrix = suite.matrix.0.iter().map(|(name, _, values)| (name.0.clone(), texts(values)));
        let matrix: Vec<(String, Vec<String>)> = matrix.collect();
        Suite {
            name: name.to_owned(),
            restart: suite.restart.get().copied().unwrap_or(true),
            preseed: self.plan(&suite.preseed),
            workload: self.plan(&suite.workload),
            matrix,
        }
    }

    fn plan(&mut self, field: &Field<PlanText>) -> Option<PlanPlace> {
        Some(match field.get()? {
            PlanText::Inline => PlanPlace::Inline(field.place()?),
            PlanText::File(name) => {
                let folder = Path::new(&self.source.name).parent().unwrap_or(Path::new(""));
                PlanPlace::File(folder.join(name))
            }
        })
    }
}

/// Checks that a profile has this name.
///
/// # Errors
/// No profile has it.
pub fn known_profile(name: &str, profiles: &[Profile]) -> Result<(), Problem> {
    let names: Vec<String> = profiles.iter().map(|profile| profile.name.clone()).collect();
    if names.iter().any(|known| known == name) {
        return Ok(());
    }
    let problem = Problem::new(format!("there is no profile `{}`", name.escape_debug()));
    Err(match names.as_slice() {
        [] => problem.with_hint("describe it under `profiles`"),
        names => problem.with_hint(format!("profiles: {}", list(names))),
    })
}

fn text(field: &Field<Text>) -> Option<String> {
    field.get().map(|text| text.0.clone())
}

fn texts(fields: &[Field<Text>]) -> Vec<String> {
    fields.iter().filter_map(text).collect()
}

fn pairs(keyed: &Keyed<Field<Text>>) -> Vec<(String, String)> {
    keyed.0.iter().filter_map(|(name, _, value)| Some((name.0.clone(), text(value)?))).collect()
}

/// `a, b`, each name once.
fn list(names: &[String]) -> String {
    let mut once: Vec<&str> = Vec::new();
    for name in names {
        if !once.contains(&name.as_str()) {
            once.push(name);
        }
    }
    once.join(", ")
}
