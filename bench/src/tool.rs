//! The tools: how they are called, and what their own output says they completed.

use std::path::Path;

use clap::ValueEnum;
use serde_json::Value;

use crate::child::Line;

/// Body of the case post300, 300 bytes: the id has 36 characters. The equivalent is `scripts/post300.lua`.
const POST_BEFORE: &str = r#"{"id":"${uuid}","filler":""#;
const POST_BYTES: usize = 300;
const UUID_BYTES: usize = 36;

/// A tool to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Peer {
    /// wrk, closed model only
    Wrk,
    /// h2load with --h1
    H2load,
}

/// One of the compared tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    /// The program of this repository.
    Plimsoll,
    /// The same with `--precise`.
    PlimsollPrecise,
    Wrk,
    H2load,
}

impl From<Peer> for Tool {
    fn from(peer: Peer) -> Self {
        match peer {
            Peer::Wrk => Self::Wrk,
            Peer::H2load => Self::H2load,
        }
    }
}

/// What a tool is to do.
#[derive(Clone, Debug)]
pub(crate) struct Job<'a> {
    pub(crate) url: &'a str,
    pub(crate) connections: u32,
    pub(crate) duration_s: u32,
    /// Total rate; `None` is the closed model.
    pub(crate) rate: Option<u32>,
    /// Whether to send the unique body of 300 bytes.
    pub(crate) post: bool,
    pub(crate) plimsoll: &'a Path,
    pub(crate) flags: &'a [String],
}

/// What a tool says that it did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Said {
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    pub(crate) per_second: f64,
    /// 99th percentile of the start lag, from plimsoll in the open model.
    pub(crate) start_lag_p99_us: Option<f64>,
    /// plimsoll's own verdict.
    pub(crate) valid: bool,
}

impl Tool {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plimsoll => "plimsoll",
            Self::PlimsollPrecise => "plimsoll --precise",
            Self::Wrk => "wrk",
            Self::H2load => "h2load",
        }
    }

    /// Program and Debian package, for tools that are not built here.
    pub(crate) fn package(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Plimsoll | Self::PlimsollPrecise => None,
            Self::Wrk => Some(("wrk", "wrk")),
            Self::H2load => Some(("h2load", "nghttp2-client")),
        }
    }

    /// The command for a job.
    ///
    /// # Errors
    /// If the tool cannot do it.
    pub(crate) fn line(self, job: &Job<'_>) -> Result<Line, String> {
        let (connections, duration) = (job.connections.to_string(), format!("{}s", job.duration_s));
        match self {
            Self::Plimsoll | Self::PlimsollPrecise => {
                let program = job.plimsoll.to_string_lossy();
                let mut line = Line::new([&*program, "run", job.url, "--output", "json", "--quiet"]).and([
                    "-t",
                    "1",
                    "-c",
                    &connections,
                    "-d",
                    &duration,
                ]);
                if let Some(rate) = job.rate {
                    line = line.and(["--rate", &rate.to_string()]);
                }
                if job.url.starts_with("https:") {
                    line = line.and(["--insecure"]);
                }
                if job.post {
                    line = line.and(["-H", "Content-Type: application/json", "-b", &post_body()]);
                }
                if self == Self::PlimsollPrecise {
                    line = line.and(["--precise"]);
                }
                Ok(line.and(job.flags))
            }
            Self::Wrk if job.rate.is_some() => Err("wrk has no open model: compare with h2load".to_owned()),
            Self::Wrk => {
                let mut line = Line::new(["wrk", "-t", "1", "-c", &connections, "-d", &duration]);
                if job.post {
                    line = line.and(["-s", concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/post300.lua")]);
                }
                Ok(line.and([job.url]))
            }
            Self::H2load if job.post => Err("h2load cannot send a different body each time".to_owned()),
            Self::H2load => {
                let mut line = Line::new(["h2load", "--h1", "-t", "1", "-c", &connections])
                    .and(["-D", &job.duration_s.to_string()]);
                if let Some(rate) = job.rate {
                    // h2load's rate is per client.
                    line = line.and(["--rps", &(f64::from(rate) / f64::from(job.connections)).to_string()]);
                }
                Ok(line.and([job.url]))
            }
        }
    }

    /// Reads a tool's output. A text that is not understood is an error, never a zero.
    pub(crate) fn read(self, stdout: &str) -> Result<Said, String> {
        let said = match self {
            Self::Plimsoll | Self::PlimsollPrecise => read_plimsoll(stdout),
            Self::Wrk => read_wrk(stdout),
            Self::H2load => read_h2load(stdout),
        };
        said.filter(|said| said.completed > 0).ok_or_else(|| {
            format!("{} completed nothing, or wrote something unexpected:\n{stdout}", self.name())
        })
    }
}

/// The template of the unique body.
fn post_body() -> String {
    let filler = POST_BYTES - (POST_BEFORE.len() - "${uuid}".len() + UUID_BYTES) - "\"}".len();
    format!("{POST_BEFORE}{}\"}}", "x".repeat(filler))
}

fn read_plimsoll(stdout: &str) -> Option<Said> {
    let result: Value = serde_json::from_str(stdout).ok()?;
    let count = |name: &str| result["accounting"][name].as_u64();
    let lag = result["start_lag"]["p"]["99"].as_f64().map(|ns| ns / 1e3);
    Some(Said {
        completed: count("ok")?,
        failed: count("failed")? + count("timed_out")?,
        per_second: result["rate"]["achieved_per_s"].as_f64()?,
        start_lag_p99_us: lag.filter(|_| !result["rate"]["target_per_s"].is_null()),
        valid: result["verdict"]["valid"].as_bool()?,
    })
}

fn read_wrk(stdout: &str) -> Option<Said> {
    let mut said = Said { valid: true, ..Said::default() };
    for line in stdout.lines().map(str::trim) {
        if let Some((count, _)) = line.split_once(" requests in ") {
            said.completed = count.parse().ok()?;
        } else if let Some(rate) = line.strip_prefix("Requests/sec:") {
            said.per_second = rate.trim().parse().ok()?;
        } else if let Some(count) = line.strip_prefix("Non-2xx or 3xx responses:") {
            said.failed += count.trim().parse::<u64>().ok()?;
        } else if let Some(counts) = line.strip_prefix("Socket errors:") {
            let numbers = counts.split([' ', ',']).filter_map(|word| word.parse::<u64>().ok());
            said.failed += numbers.sum::<u64>();
        }
    }
    Some(said)
}

fn read_h2load(stdout: &str) -> Option<Said> {
    let mut said = Said { valid: true, ..Said::default() };
    for line in stdout.lines() {
        if let Some(rest) = line.strip_prefix("finished in ") {
            said.per_second = rest.split(", ").nth(1)?.strip_suffix(" req/s")?.parse().ok()?;
        } else if let Some(rest) = line.strip_prefix("requests: ") {
            let count = |name: &str| -> Option<u64> {
                rest.split(", ").find_map(|part| part.strip_suffix(name)?.trim().parse().ok())
            };
            said.completed = count("succeeded")?;
            said.failed = count("failed")? + count("errored")?;
        }
    }
    Some(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_post_body_has_300_bytes_with_its_id_filled_in() {
        let body = post_body().replace("${uuid}", "123e4567-e89b-42d3-a456-426614174000");
        assert_eq!(body.len(), 300);
        serde_json::from_str::<Value>(&body).unwrap();
    }

    #[test]
    fn wrk_is_understood() {
        let text = "Running 1s test @ http://127.0.0.1:8080/
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   612.51us  236.76us   8.57ms   97.58%
  105204 requests in 1.10s, 14.65MB read
  Socket errors: connect 0, read 2, write 0, timeout 1
  Non-2xx or 3xx responses: 7
Requests/sec:  95678.11
Transfer/sec:     13.32MB
";
        let said = Tool::Wrk.read(text).unwrap();
        assert_eq!((said.completed, said.failed, said.per_second), (105_204, 10, 95_678.11));
        assert!(Tool::Wrk.read("unable to connect to 127.0.0.1:1 Connection refused\n").is_err());
    }

    #[test]
    fn h2load_is_understood() {
        let text = "finished in 5.00s, 4999.80 req/s, 703.10KB/s
requests: 24999 total, 25009 started, 24999 done, 24990 succeeded, 8 failed, 1 errored, 0 timeout
";
        let said = Tool::H2load.read(text).unwrap();
        assert_eq!((said.completed, said.failed, said.per_second), (24_990, 9, 4_999.8));
    }

    #[test]
    fn plimsoll_is_understood() {
        let text = r#"{"accounting":{"ok":10,"failed":1,"timed_out":2},"verdict":{"valid":false},
            "rate":{"target_per_s":5000.0,"achieved_per_s":4999.5},"start_lag":{"p":{"99":42000}}}"#;
        let said = Tool::Plimsoll.read(text).unwrap();
        let expected = Said {
            completed: 10,
            failed: 3,
            per_second: 4_999.5,
            start_lag_p99_us: Some(42.0),
            valid: false,
        };
        assert_eq!(said, expected);
        assert!(Tool::Plimsoll.read("{}").is_err());
    }

    #[test]
    fn what_a_tool_cannot_do_is_an_error() {
        let job = Job {
            url: "http://127.0.0.1:1/",
            connections: 64,
            duration_s: 5,
            rate: Some(5_000),
            post: false,
            plimsoll: Path::new("plimsoll"),
            flags: &[],
        };
        assert!(Tool::Wrk.line(&job).is_err());
        assert!(Tool::H2load.line(&job).unwrap().typed().contains("--rps 78.125 "));
        assert!(Tool::H2load.line(&Job { rate: None, post: true, ..job.clone() }).is_err());
        assert!(Tool::Plimsoll.line(&job).unwrap().typed().contains(" -c 64 -d 5s --rate 5000"));
    }
}
