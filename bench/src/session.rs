//! One use of the harness: its options, the program under test, and a directory for the files of the runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{self, Pinned};
use crate::failure::{Failure, Result};
use crate::options::Options;

/// One use of the harness.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) options: Options,
    /// The program under test.
    pub(crate) plimsoll: PathBuf,
    directory: Directory,
}

impl Session {
    /// Builds the program under test unless one was named.
    pub(crate) fn open(options: Options) -> Result<Self> {
        command::find("taskset")?;
        if options.server_core == options.tool_core {
            return Err(Failure::new(
                "server and tool need a core each: --server-core and --tool-core differ",
            ));
        }
        if let Some(nice) = options.autogroup_nice {
            fs::write("/proc/self/autogroup", nice.to_string())
                .map_err(|error| Failure::because("cannot set --autogroup-nice", error))?;
        }
        let plimsoll = match &options.plimsoll {
            Some(path) => path.canonicalize().map_err(|error| Failure::because(path.display(), error))?,
            None => build(options.profile.name())?,
        };
        Ok(Self { options, plimsoll, directory: Directory::create()? })
    }

    /// A directory that goes away with the session.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory.0
    }

    /// A program on the core of the server.
    pub(crate) fn on_server_core<S: AsRef<str>>(&self, program: &Path, args: &[S]) -> Pinned {
        Pinned::new(self.options.server_core, program, args)
    }

    /// A program on the core of the tools.
    pub(crate) fn on_tool_core<S: AsRef<str>>(&self, program: &Path, args: &[S]) -> Pinned {
        Pinned::new(self.options.tool_core, program, args)
    }
}

/// Builds Plimsoll, so that the checkout is what is measured.
fn build(profile: &str) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
    let built = Command::new(cargo)
        .args(["build", "--quiet", "--profile", profile, "-p", "plimsoll", "--manifest-path", manifest])
        .status()
        .map_err(|error| Failure::because("cannot start cargo", error))?;
    if !built.success() {
        return Err(Failure::new(format!("Plimsoll could not be built (profile {profile})")));
    }
    let plimsoll = target_directory()?.join(profile).join("plimsoll");
    if plimsoll.is_file() {
        return Ok(plimsoll);
    }
    Err(Failure::new(format!("{} is not there although it was built: use --plimsoll", plimsoll.display())))
}

/// The directory that this program was built in: it is `target/<profile>/bench`.
pub(crate) fn target_directory() -> Result<PathBuf> {
    let own = std::env::current_exe().map_err(|error| Failure::because("cannot find this program", error))?;
    Ok(own.parent().and_then(Path::parent).unwrap_or(Path::new("target")).to_owned())
}

/// A directory that is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn create() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("plimsoll-bench-{}", std::process::id()));
        // Not `create_dir_all`: a directory that is already there belongs to somebody else.
        fs::create_dir(&path)
            .map_err(|error| Failure::because(format!("cannot create {}", path.display()), error))?;
        Ok(Self(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // The folder is in the system's temporary directory, so a failed removal does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}
