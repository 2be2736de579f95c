//! Command lines: found, pinned to a core, and printed so that they can be typed again.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Result};

/// Where programs are that belong to the system's administrator, and so may not be in `PATH`.
const ADMINISTRATIVE: [&str; 2] = ["/usr/sbin", "/sbin"];

/// The Debian packages of the programs that this harness starts.
const PACKAGES: [(&str, &str); 8] = [
    ("wrk", "wrk"),
    ("h2load", "nghttp2-client"),
    ("nghttpd", "nghttp2-server"),
    ("nginx", "nginx-light"),
    ("redis-benchmark", "redis-tools"),
    ("redis-server", "redis-server"),
    ("openssl", "openssl"),
    ("taskset", "util-linux"),
];

/// A program on one core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pinned {
    pub(crate) core: usize,
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    /// Variables of the environment beside those that are there.
    pub(crate) environment: Vec<(&'static str, String)>,
}

impl Pinned {
    pub(crate) fn new<S: AsRef<str>>(core: usize, program: &Path, args: &[S]) -> Self {
        let args = args.iter().map(|arg| arg.as_ref().to_owned()).collect();
        Self { core, program: program.to_owned(), args, environment: Vec::new() }
    }

    /// The process to start. `taskset` becomes the program, so that they share a process id.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new("taskset");
        command.arg("-c").arg(self.core.to_string()).arg(&self.program).args(&self.args);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// The line to print, as typed in the root of the repository: programs by their names alone, and
    /// `directory` as `$DIR`, for paths of one machine say nothing on another.
    pub(crate) fn line(&self, directory: &Path) -> String {
        let directory = directory.display().to_string();
        let name = self.program.file_name().unwrap_or_default().to_string_lossy();
        let mut line = String::new();
        for (name, value) in &self.environment {
            line.push_str(&format!("{name}={} ", quoted(value)));
        }
        line.push_str(&format!("taskset -c {} {name}", self.core));
        for arg in &self.args {
            line.push(' ');
            let arg =
                arg.replace(concat!(env!("CARGO_MANIFEST_DIR"), "/"), "bench/").replace("bench/../", "");
            line.push_str(&quoted(&arg).replace(&directory, "$DIR"));
        }
        line
    }
}

impl Display for Pinned {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.line(Path::new("\0")))
    }
}

/// A word as a POSIX shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:=,@%+-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Finds a program, or says which package has it.
pub(crate) fn find(program: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(ADMINISTRATIVE.map(PathBuf::from))
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| match PACKAGES.iter().find(|(name, _)| *name == program) {
            Some((_, package)) => {
                Failure::new(format!("`{program}` was not found: install the Debian package `{package}`"))
            }
            None => Failure::new(format!("`{program}` was not found")),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_lines_can_be_typed_again() {
        let pinned = Pinned::new(1, Path::new("/usr/bin/wrk"), &["-s", "/tmp/x/p.lua", "it's", ""]);
        let script =
            Pinned::new(0, Path::new("wrk"), &[concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/a.lua")]);
        assert_eq!(script.to_string(), "taskset -c 0 wrk bench/scripts/a.lua");
        assert_eq!(pinned.line(Path::new("/tmp/x")), r"taskset -c 1 wrk -s $DIR/p.lua 'it'\''s' ''");
        assert_eq!(pinned.to_string(), r"taskset -c 1 wrk -s /tmp/x/p.lua 'it'\''s' ''");
    }

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        assert!(find("sh").unwrap().is_absolute());
        assert_eq!(find("no-such-program").unwrap_err().to_string(), "`no-such-program` was not found");
        for (program, package) in PACKAGES {
            if let Err(failure) = find(program) {
                assert!(failure.to_string().ends_with(&format!("`{package}`")), "{failure}");
            }
        }
    }
}
