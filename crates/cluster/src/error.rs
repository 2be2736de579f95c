//! Why something about a cluster could not be done.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Reason why something about a cluster could not be done.
#[derive(Debug)]
pub enum ClusterError {
    /// A file or folder of the cluster.
    File {
        /// Verb of the failed attempt: "write", "remove".
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// A data folder that has something in it and was not made by us.
    NotOurs(PathBuf),
    /// A cluster runs there.
    Runs(PathBuf),
    /// No cluster runs there.
    Nothing(PathBuf),
    /// Somebody else listens where a node is to listen.
    PortTaken {
        /// The id of the node.
        node: String,
        /// The name of the port.
        port: String,
        /// Number of the port.
        number: u16,
    },
    /// A node could not be started.
    Start {
        /// Id of the node.
        node: String,
        /// The program.
        command: String,
        /// The reason.
        error: io::Error,
    },
    /// A node did not become ready.
    NotReady {
        /// Id of the node.
        node: String,
        /// Reason why it is not ready: the sign that is missing.
        reason: String,
        /// The file of its log.
        log: PathBuf,
        /// Lines of the log: the first error, and the last lines.
        said: Vec<String>,
    },
    /// There is no leader.
    NoLeader(String),
    /// Nodes cannot have networks of their own: why.
    Network(String),
    /// No ports, threads or signals.
    System {
        /// The failed attempt, in words.
        what: &'static str,
        /// The reason.
        error: io::Error,
    },
}

impl fmt::Display for ClusterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { what, path, error } => write!(f, "cannot {what} {}: {error}", path.display()),
            Self::NotOurs(path) => {
                write!(f, "{} has data that Plimsoll did not make", path.display())
            }
            Self::Runs(path) => write!(f, "a cluster runs in {}", path.display()),
            Self::Nothing(path) => write!(f, "no cluster runs in {}", path.display()),
            Self::PortTaken { node, port, number } => {
                write!(f, "cannot start node {node}: its port {port} ({number}) is taken by another process")
            }
            Self::Start { node, command, error } => {
                write!(f, "cannot start node {node}: {}: {error}", command.escape_debug())
            }
            Self::NotReady { node, reason, log, said } => {
                write!(f, "node {node} is not ready: {reason}; its log is {}", log.display())?;
                said.iter().try_for_each(|line| write!(f, "\n  {}", line.escape_debug()))
            }
            Self::NoLeader(reason) => write!(f, "the cluster has no leader: {reason}"),
            Self::Network(reason) => write!(f, "nodes cannot have networks of their own: {reason}"),
            Self::System { what, error } => write!(f, "{what}: {error}"),
        }
    }
}

impl ClusterError {
    /// Returns advice on how to resolve the error, if there is any.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NotOurs(path) => format!(
                "`--clean {}` removes it; `clean: never` in the spec starts the nodes with it",
                path.display()
            ),
            Self::Runs(_) => "`plimsoll cluster down` ends it".to_owned(),
            Self::Nothing(_) => "name the spec that `plimsoll cluster up` was given".to_owned(),
            Self::PortTaken { number, .. } => {
                format!(
                    "`ss -ltnp sport = :{number}` shows which process; `ports: {{http: 0}}` takes a free one"
                )
            }
            Self::Start { .. } => {
                "name a program that is there: a path is relative to the working directory".to_owned()
            }
            Self::NotReady { .. } => {
                "look into the log; `ready` and `ready_within` set the signs of readiness".to_owned()
            }
            Self::NoLeader(_) => {
                "look into the logs; `leader` sets how it is found, and `within` how long".to_owned()
            }
            Self::Network(_) => {
                "network namespaces need root, and the programs ip, nft and tc (on Debian of \
                iproute2 and nftables; delays need a kernel with netem); `network: proxy` does without"
                    .to_owned()
            }
            Self::File { .. } | Self::System { .. } => return None,
        })
    }
}

impl std::error::Error for ClusterError {}

/// The error of a file.
pub(crate) fn of_file(
    what: &'static str,
    path: impl Into<PathBuf>,
) -> impl FnOnce(io::Error) -> ClusterError {
    let path = path.into();
    move |error| ClusterError::File { what, path, error }
}
