//! Limits that an agent imposes on every run, regardless of its coordinator.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A target that an agent may load: a host, or `*.` and a domain for all hosts below it, with a port if it is
/// limited to one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AllowedTarget {
    /// In lower case, without brackets.
    host: String,
    port: Option<u16>,
}

/// A text that is not an allowed target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedTargetError(String);

impl fmt::Display for AllowedTargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a host", self.0.escape_debug())
    }
}

impl std::error::Error for AllowedTargetError {}

impl AllowedTarget {
    /// Returns `true` if it includes this host, or address without brackets, and port.
    pub fn permits(&self, host: &str, port: u16) -> bool {
        let host = host.to_ascii_lowercase();
        let is_host = match self.host.strip_prefix("*.") {
            Some(domain) => {
                host.strip_suffix(domain).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
            None => host == self.host,
        };
        is_host && self.port.is_none_or(|mine| mine == port)
    }
}

impl FromStr for AllowedTarget {
    type Err = AllowedTargetError;

    fn from_str(text: &str) -> Result<Self, AllowedTargetError> {
        let wrong = || AllowedTargetError(text.to_owned());
        let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, rest)) => {
                (host, if rest.is_empty() { None } else { rest.strip_prefix(':').or(Some("")) })
            }
            None => match text.rsplit_once(':') {
                // More than one colon: an IPv6 address.
                Some((host, port)) if !host.contains(':') => (host, Some(port)),
                _ => (text, None),
            },
        };
        let port = port.map(str::parse).transpose().map_err(|_| wrong())?;
        let name = host.strip_prefix("*.").unwrap_or(host);
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_host) {
            return Err(wrong());
        }
        Ok(Self { host: host.to_ascii_lowercase(), port })
    }
}

impl fmt::Display for AllowedTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let brackets = self.host.contains(':');
        match self.port {
            Some(port) if brackets => write!(f, "[{}]:{port}", self.host),
            Some(port) => write!(f, "{}:{port}", self.host),
            None => f.write_str(&self.host),
        }
    }
}

impl TryFrom<String> for AllowedTarget {
    type Error = AllowedTargetError;

    fn try_from(text: String) -> Result<Self, AllowedTargetError> {
        text.parse()
    }
}

impl From<AllowedTarget> for String {
    fn from(target: AllowedTarget) -> Self {
        target.to_string()
    }
}

/// Scripts of a plan that an agent runs, and their access to the system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AllowedScripts {
    /// There may be none.
    #[default]
    None,
    /// Scripts run without the system's library.
    Sandboxed,
    /// Scripts may open files, start processes and resolve names, if the coordinator asks for that.
    System,
}

/// The most that an agent will ever do, regardless of the coordinator. By default it makes any load, and runs
/// no scripts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentLimits {
    /// Targets that it may load; all if empty.
    pub targets: Vec<AllowedTarget>,
    /// Most requests per second of its shard.
    pub requests_per_s: Option<f64>,
    /// Scripts that plans may have.
    #[serde(default)]
    pub scripts: AllowedScripts,
}

impl AgentLimits {
    /// Returns `true` if it may load this host, or address without brackets, and port.
    pub fn permit(&self, host: &str, port: u16) -> bool {
        self.targets.is_empty() || self.targets.iter().any(|target| target.permits(host, port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_allowed_by_its_host_and_port() {
        let permits =
            |text: &str, host: &str, port| text.parse::<AllowedTarget>().unwrap().permits(host, port);
        assert!(permits("api.test", "API.test", 80) && permits("api.test:8080", "api.test", 8080));
        assert!(!permits("api.test:8080", "api.test", 80) && !permits("api.test", "api.test.evil", 80));
        assert!(permits("*.lab.test", "a.lab.test", 1) && permits("*.lab.test", "b.a.lab.test", 1));
        for host in ["lab.test", ".lab.test", "evillab.test", "a.lab.test.evil"] {
            assert!(!permits("*.lab.test", host, 1), "{host}");
        }
        assert!(
            permits("[::1]:80", "::1", 80) && permits("::1", "::1", 9) && !permits("[::1]:80", "::1", 81)
        );
        assert!(permits("10.0.0.7", "10.0.0.7", 443));
        for wrong in ["", "*", "*.", "a b", "api.test:x", ":80", "[::1]80", "http://api.test", "a/b"] {
            assert!(wrong.parse::<AllowedTarget>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn limits_are_written_and_read() {
        let targets = ["*.lab.test:80", "[::1]:9", "::1"].map(|text| text.parse().unwrap()).to_vec();
        let limits = AgentLimits { targets, requests_per_s: Some(500.5), scripts: AllowedScripts::Sandboxed };
        let text = serde_json::to_string(&limits).unwrap();
        assert_eq!(serde_json::from_str::<AgentLimits>(&text).unwrap(), limits);
        assert!(AgentLimits::default().permit("x", 1) && !limits.permit("x", 1));
        assert_eq!(AgentLimits::default().scripts, AllowedScripts::None);
    }
}
