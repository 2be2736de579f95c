//! A spec in which nothing is left to parse: plain data, made of a
//! [`ClusterDocument`](crate::document::ClusterDocument).

use std::path::PathBuf;

use plimsoll_core::Nanos;
use plimsoll_document::{Place, Source};
use plimsoll_plan::named_text;

pub use crate::fault::{Action, Choice, FaultPlan};

/// A cluster that can be started.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Name of the cluster.
    pub name: String,
    /// The text that it was read from.
    pub source: Source,
    /// Folder of everything that nodes leave.
    pub directory: PathBuf,
    /// When data of earlier runs are removed.
    pub clean: Clean,
    /// The nodes, in the order in which they are started.
    pub nodes: Vec<NodePlan>,
    /// The profiles by name.
    pub profiles: Vec<Profile>,
    /// The profile that is used.
    pub profile: Option<String>,
    /// Transport of connections to the nodes.
    pub network: NetworkKind,
    /// Ports whose connections may be broken.
    pub links: Vec<Link>,
    /// Question that finds the leader.
    pub leader: Option<LeaderQuestion>,
    /// Values of parameters by name.
    pub parameters: Vec<(String, String)>,
    /// Plan that fills the cluster before the load.
    pub preseed: Option<PlanPlace>,
    /// The load.
    pub workload: Option<PlanPlace>,
    /// Faults that happen while the load goes on.
    pub faults: Vec<FaultPlan>,
    /// Seed of the random part of the faults.
    pub fault_seed: u64,
    /// Checks after the load.
    pub checks: Vec<Check>,
    /// The list whose writes are not checked, since the spec does not say what an item is.
    pub unchecked: Option<String>,
    /// Series of runs by name.
    pub suites: Vec<Suite>,
}

impl Spec {
    /// Returns the note that it is not checked whether writes are taken, with the way to check it.
    pub fn unchecked_note(&self) -> Option<String> {
        self.unchecked.as_ref().map(|list| {
            format!(
                "writes to {list} are not checked, because an item of it is not described: add \
                 `{{check: writable, list: {list}, item: '{{\"name\": \"a\"}}'}}`, or `item: none`"
            )
        })
    }
}

/// When data folders are removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clean {
    /// Before the nodes are started.
    #[default]
    Start,
    /// And after they have ended.
    Both,
    /// Never.
    Never,
}

/// The transport of connections to the nodes, which also breaks them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkKind {
    /// The fault proxy, on loopback.
    #[default]
    Proxy,
    /// A network namespace for each node.
    Namespaces,
    /// Namespaces where the system lets us make them, else the proxy.
    Auto,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePlan {
    /// Id of the node.
    pub id: String,
    /// The program, a template.
    pub command: String,
    /// Arguments of the program, templates.
    pub arguments: Vec<String>,
    /// Arguments for each other node, templates.
    pub per_peer: Vec<String>,
    /// Variables of the node's environment, templates.
    pub environment: Vec<(String, String)>,
    /// Data folder of the node, relative to the folder of the node.
    pub data: PathBuf,
    /// Ports of the node by name; 0 is chosen freely.
    pub ports: Vec<(String, u16)>,
    /// Signs that the node is ready; all have to be there.
    pub ready: Vec<Probe>,
    /// Time limit for becoming ready.
    pub ready_within: Nanos,
    /// Pause before it is started.
    pub delay: Nanos,
    /// `true` if the next node is started only when this one is ready.
    pub wait: bool,
    /// Time between SIGTERM and SIGKILL.
    pub grace: Nanos,
}

/// One sign that a node is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// The answer to a GET.
    Http {
        /// The name of the port.
        port: String,
        /// The path.
        path: String,
        /// Status of the answer.
        status: u16,
        /// Condition on the JSON of the answer.
        json: Option<Condition>,
    },
    /// A port takes connections.
    Tcp {
        /// The name of the port.
        port: String,
    },
    /// A line of the log has this text.
    Log(String),
}

/// A condition on the text at a place of a JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The JSON pointer.
    pub pointer: String,
    /// The text that has to be there.
    pub equals: Option<String>,
    /// The text that must not be there.
    pub not: Option<String>,
}

/// A named set of environment and arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Name of the profile.
    pub name: String,
    /// Variables, above those of the nodes.
    pub environment: Vec<(String, String)>,
    /// Arguments after those of the nodes.
    pub arguments: Vec<String>,
}

/// A port whose connections may be broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The name of the port.
    pub port: String,
    /// `true` if connections of the other nodes may be broken.
    pub peers: bool,
    /// `true` if connections of the load may be broken.
    pub load: bool,
}

/// The question that finds the leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderQuestion {
    /// The path of the question.
    pub path: String,
    /// The name of the port.
    pub port: String,
    /// JSON Pointer of the answer: the id of a node, or true.
    pub pointer: String,
    /// Time limit for finding a leader.
    pub within: Nanos,
}

/// The place of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanPlace {
    /// A file.
    File(PathBuf),
    /// This part of the spec.
    Inline(Place),
}

/// A check of the cluster after the load.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Kind of the check.
    pub kind: CheckKind,
    /// Requests that read the content of a node.
    pub content: Content,
    /// Time limit of the check.
    pub within: Nanos,
    /// Files that have to be there and not be empty.
    pub files: Vec<String>,
    /// JSON that is sent to create an item.
    pub item: String,
    /// The largest share of requests that may fail.
    pub most: f64,
    /// `true` if the spec does not ask for the check.
    pub is_default: bool,
}

/// The kinds of checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckKind {
    /// All nodes converge to the same content.
    Convergence,
    /// The content is the same after all nodes were killed and started again.
    Persistence,
    /// Every node has the acknowledged writes, and nothing else. The owner of the load knows these.
    Acknowledged,
    /// No read is further behind than is allowed, and none goes back in time.
    Staleness,
    /// An item can be created, read and deleted after the load, and after a restart.
    Writable,
    /// Few requests of the load failed outside of faults. The owner of the load knows the number.
    ErrorShare,
}

impl CheckKind {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Convergence,
        Self::Persistence,
        Self::Acknowledged,
        Self::Staleness,
        Self::Writable,
        Self::ErrorShare,
    ];

    /// Returns `true` if the check concerns the requests of the load, which only the generator of the load
    /// knows.
    pub const fn is_of_load(self) -> bool {
        matches!(self, Self::Acknowledged | Self::Staleness | Self::ErrorShare)
    }

    /// Returns the name of the check in specs and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Convergence => "convergence",
            Self::Persistence => "persistence",
            Self::Acknowledged => "acknowledged",
            Self::Staleness => "staleness",
            Self::Writable => "writable",
            Self::ErrorShare => "error_share",
        }
    }
}

/// The requests that read the content of a node, page by page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// The name of the port.
    pub port: String,
    /// The path that returns the number of items, if there is one.
    pub count: Option<String>,
    /// JSON Pointer of the number.
    pub count_pointer: String,
    /// The path of the list.
    pub list: String,
    /// JSON Pointer of its items.
    pub items: String,
    /// JSON Pointer of the id of an item.
    pub id: String,
    /// The parameter with the number of items of a page.
    pub take: String,
    /// The parameter with the number of items before a page.
    pub skip: String,
    /// Items of a page.
    pub page: u64,
}

/// A series of runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suite {
    /// Name of the suite.
    pub name: String,
    /// The parameters, and their values.
    pub matrix: Vec<(String, Vec<String>)>,
    /// `true` if each run has a cluster of its own.
    pub restart: bool,
    /// Plan that fills the cluster before the load, if it is not that of the spec.
    pub preseed: Option<PlanPlace>,
    /// The load, if it is not that of the spec.
    pub workload: Option<PlanPlace>,
}

/// The parameter of a matrix that is the storage profile.
pub const PROFILE: &str = "profile";

impl Suite {
    /// The values of the parameters in each run: each combined with each, the last changing first.
    pub fn cells(&self) -> Vec<Vec<(String, String)>> {
        let mut cells = vec![Vec::new()];
        for (name, values) in &self.matrix {
            let longer = |cell: &Vec<(String, String)>, value: &String| {
                let mut cell = cell.clone();
                cell.push((name.clone(), value.clone()));
                cell
            };
            cells =
                cells.iter().flat_map(|cell| values.iter().map(move |value| longer(cell, value))).collect();
        }
        cells
    }
}

impl Spec {
    /// The text of the spec with the plans in it blanked out.
    pub fn text_without_plans(&self) -> String {
        let of_suites = self.suites.iter().flat_map(|suite| [&suite.preseed, &suite.workload]);
        let places = [&self.preseed, &self.workload].into_iter().chain(of_suites).flatten();
        let mut text = self.source.text.clone();
        for place in places {
            if let PlanPlace::Inline(Place { start, end }) = place {
                let within = *start as usize..*end as usize;
                let blank = " ".repeat(within.len());
                text.replace_range(within, &blank);
            }
        }
        text
    }

    /// The plan of this place: the name of its file, and its text. A plan within the spec is the text of the
    /// spec with everything else blanked out, so that places in it are those of the spec.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn plan_text(&self, place: &PlanPlace) -> std::io::Result<(String, String)> {
        match place {
            PlanPlace::File(path) => Ok((path.display().to_string(), named_text(path)?)),
            PlanPlace::Inline(Place { start, end }) => {
                let within = *start as usize..*end as usize;
                let blank = |text: &str| -> String {
                    // One for each byte, so that places keep their numbers.
                    text.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect()
                };
                let text = &self.source.text;
                let (before, after) = (blank(&text[..within.start]), blank(&text[within.end..]));
                Ok((self.source.name.clone(), format!("{before}{}{after}", &text[within])))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_combined_with_each() {
        let values = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
        let matrix = vec![("a".to_owned(), values(&["1", "2"])), ("b".to_owned(), values(&["x", "y", "z"]))];
        let suite = Suite { name: String::new(), matrix, restart: false, preseed: None, workload: None };
        let cells = suite.cells();
        let text = |cell: &Vec<(String, String)>| {
            cell.iter().map(|(name, value)| format!("{name}{value}")).collect::<String>()
        };
        let all: Vec<String> = cells.iter().map(text).collect();
        assert_eq!(all, ["a1bx", "a1by", "a1bz", "a2bx", "a2by", "a2bz"]);
    }
}
