//! Configuration of a `nats-server` for a fleet: users and their permissions.

use std::fmt;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::credentials::{CredentialError, Credentials};
use crate::subject;

/// A broker that is to be started.
#[derive(Clone, Debug)]
pub struct BrokerOptions {
    /// Address to listen on.
    pub host: String,
    /// Port to listen on; zero for a free one.
    pub port: u16,
    /// Folder of its files.
    pub folder: PathBuf,
    /// Names of the agents that get a key.
    pub agents: Vec<String>,
    /// Certificate of the broker, if connections are encrypted.
    pub tls: Option<BrokerTls>,
}

/// Files of a broker's certificate.
#[derive(Clone, Debug)]
pub struct BrokerTls {
    /// The chain in PEM.
    pub certificate: PathBuf,
    /// The private key in PEM.
    pub key: PathBuf,
}

/// Files of a broker, and the keys that it knows.
#[derive(Debug)]
pub struct BrokerFiles {
    /// Configuration of the broker.
    pub configuration: String,
    /// The key of coordinators.
    pub coordinator: Credentials,
    /// The key of each agent.
    pub agents: Vec<Credentials>,
}

/// A configuration that cannot be made.
#[derive(Debug)]
pub enum BrokerError {
    /// A key cannot be made.
    Credentials(CredentialError),
    /// A path has characters that a configuration cannot hold.
    Path(PathBuf),
}

impl fmt::Display for BrokerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Credentials(error) => error.fmt(f),
            Self::Path(path) => write!(f, "the path {} cannot be written in a configuration", path.display()),
        }
    }
}

impl std::error::Error for BrokerError {}

impl From<CredentialError> for BrokerError {
    fn from(error: CredentialError) -> Self {
        Self::Credentials(error)
    }
}

/// Makes the configuration of a broker with new keys.
///
/// An agent may publish below its own name only and receive its own orders; a coordinator may give orders and
/// receive messages of all agents. So no agent can impersonate another, or give orders.
///
/// # Errors
/// A name is invalid, there are no random numbers, or a path has a quotation mark.
pub fn write_broker_files(options: &BrokerOptions) -> Result<BrokerFiles, BrokerError> {
    let coordinator = Credentials::generate(None)?;
    let agents = options.agents.iter().map(|name| Credentials::generate(Some(name)));
    let agents = agents.collect::<Result<Vec<_>, _>>()?;
    let quoted = |path: &Path| match path.to_str() {
        Some(text) if !text.contains(['"', '\\', '\n']) => Ok(format!("\"{text}\"")),
        _ => Err(BrokerError::Path(path.to_owned())),
    };
    // -1 is a free port, which the server writes to a file in `ports_file_dir`.
    let port = if options.port == 0 { "-1".to_owned() } else { options.port.to_string() };
    let mut text = format!(
        "# Written by `plimsoll fleet up`.\nserver_name: plimsoll-fleet\nhost: \"{}\"\nport: {port}\n",
        options.host
    );
    let folder = quoted(&options.folder)?;
    let _ = writeln!(text, "ports_file_dir: {folder}\npid_file: {}", quoted(&options.folder.join(PID_FILE))?);
    let _ = writeln!(text, "log_file: {}", quoted(&options.folder.join(LOG_FILE))?);
    // `max_pending` has room for parts of results while a slow coordinator reads.
    text.push_str("max_payload: 1MB\nmax_pending: 64MB\nping_interval: \"5s\"\nping_max: 3\n");
    if let Some(BrokerTls { certificate, key }) = &options.tls {
        let (certificate, key) = (quoted(certificate)?, quoted(key)?);
        let _ = writeln!(text, "tls {{\n  cert_file: {certificate}\n  key_file: {key}\n  timeout: 10\n}}");
    }
    text.push_str("authorization {\n  users: [\n");
    let (publish, hear) = subject::of_coordinator();
    add_user(&mut text, &coordinator, &publish, &hear);
    for agent in &agents {
        let (publish, hear) = subject::of_agent(agent.agent.as_deref().unwrap_or_default());
        add_user(&mut text, agent, &publish, &hear);
    }
    text.push_str("  ]\n}\n");
    Ok(BrokerFiles { configuration: text, coordinator, agents })
}

/// Name of the file with the process id of the broker.
pub const PID_FILE: &str = "broker.pid";
/// Name of the file with the broker's output.
pub const LOG_FILE: &str = "broker.log";

fn add_user(text: &mut String, credentials: &Credentials, publish: &[String], hear: &[String]) {
    let list = |subjects: &[String]| {
        subjects.iter().map(|subject| format!("\"{subject}\"")).collect::<Vec<_>>().join(", ")
    };
    let _ = writeln!(
        text,
        "    {{ nkey: {}, permissions: {{ publish: {{ allow: [{}] }}, subscribe: {{ allow: [{}] }} }} }}",
        credentials.public_key(),
        list(publish),
        list(hear)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> BrokerOptions {
        BrokerOptions {
            host: "127.0.0.1".to_owned(),
            port: 0,
            folder: PathBuf::from("/tmp/fleet"),
            agents: vec!["a".to_owned(), "b".to_owned()],
            tls: None,
        }
    }

    #[test]
    fn each_agent_may_publish_below_its_own_name_only() {
        let files = write_broker_files(&options()).unwrap();
        let line = |credentials: &Credentials| {
            let mut lines = files.configuration.lines();
            lines.find(|line| line.contains(credentials.public_key())).expect("it has a line").to_owned()
        };
        let a = line(&files.agents[0]);
        assert!(a.contains("publish: { allow: [\"plim.here.a\", \"plim.run.*.a.a.*\"] }"), "{a}");
        assert!(a.contains("subscribe: { allow: [\"plim.to.a\", \"plim.run.*.all\"] }"), "{a}");
        assert!(!a.contains("plim.to.*") && !a.contains(".b"), "{a}");
        assert!(line(&files.coordinator).contains("plim.to.*"));
        assert!(!files.configuration.contains(files.coordinator.seed()), "the broker knows public keys only");
    }

    #[test]
    fn a_path_with_a_quotation_mark_is_refused() {
        let odd = BrokerOptions { folder: PathBuf::from("/tmp/a\"b"), ..options() };
        assert!(matches!(write_broker_files(&odd), Err(BrokerError::Path(_))));
        let odd = BrokerOptions { agents: vec!["a\"b".to_owned()], ..options() };
        assert!(matches!(write_broker_files(&odd), Err(BrokerError::Credentials(_))));
    }
}
