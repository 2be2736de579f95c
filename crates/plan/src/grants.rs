//! What a plan asks for and only the person who runs it can grant.
//!
//! Plans travel: by mail, in repositories, from a coordinator to its agents. So nothing in a plan permits
//! anything. A plan names files and says that its scripts need the system's library; the flags of the person
//! who runs it decide, and whatever is not granted is a problem at its place, with the flag that would grant
//! it.

use std::io;
use std::path::{Path, PathBuf};

use plimsoll_document::{FileKind, Files, Problem};

use crate::PlanPatch;

/// Advice about a file that a plan may not read or write.
pub(crate) const FILES_HINT: &str = "files of a plan lie below its own folder; for a plan that you trust, \
                                     --allow-files DIR permits those below DIR, too";

/// Folder that files of somebody else's flags lie below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confinement {
    /// That of the plan: an agent's runs have theirs.
    Plan,
    /// That in which the command runs: the web UI has one open.
    Here,
}

/// The permissions of a plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grants {
    /// Scripts may open files, start processes and resolve names.
    pub(crate) system_scripts: bool,
    /// Folders whose files it may read, and write its outputs to, beside those that are its own.
    folders: Vec<PathBuf>,
    /// Files that flags name need a permission, too.
    confined_to: Option<Confinement>,
    /// Files that the plan names need none, as those of flags.
    pub(crate) is_plan_of_flags: bool,
}

impl Grants {
    /// Takes the permissions of the flags, which no plan file can have.
    pub(crate) fn of(patch: &PlanPatch) -> Self {
        let folders = patch.allow_files.iter().map(|given| PathBuf::from(given.text.trim()));
        Self {
            system_scripts: patch.script_allow_system.is_on(),
            folders: folders.collect(),
            confined_to: patch.confined_to,
            is_plan_of_flags: patch.is_plan_of_flags && patch.confined_to.is_none(),
        }
    }

    /// The folder below which a file lies that a plan in `own` names, or flags; `None` if that may be
    /// anywhere.
    pub(crate) fn folder<'p>(&self, own: &'p Path, by_plan: bool) -> Option<&'p Path> {
        match self.confined_to {
            _ if by_plan => Some(own),
            None => None,
            Some(Confinement::Plan) => Some(own),
            Some(Confinement::Here) => Some(Path::new("")),
        }
    }

    /// Returns `true` if a file that a flag names needs a permission.
    pub(crate) const fn confines_flags(&self) -> bool {
        self.confined_to.is_some()
    }

    /// Checks that a plan in the folder `own` may read `path`.
    ///
    /// # Errors
    /// `path` is elsewhere, also by a link; or a pipe, a socket or a device, which can be read without an
    /// end.
    pub(crate) fn reading(&self, files: &dyn Files, own: &Path, path: &Path) -> io::Result<()> {
        if path == Path::new("-") || self.is_plan_of_flags {
            return Ok(());
        }
        // What is not there is told by whoever reads it. A pipe of a process has no path.
        if let Ok(real) = files.real(path) {
            self.below(files, own, &real, "it is not below the plan's folder")?;
        }
        match files.kind(path) {
            Some(FileKind::Stream) => Err(io::Error::other("it is a pipe, a socket or a device")),
            _ => Ok(()),
        }
    }

    /// Checks that an import of the folder `own` may read the file at `real`, a [real](Files::real) path.
    ///
    /// # Errors
    /// The file is elsewhere.
    pub(crate) fn importing(&self, files: &dyn Files, own: &Path, real: &Path) -> io::Result<()> {
        match self.is_plan_of_flags {
            true => Ok(()),
            false => self.below(files, own, real, "it is not below the folder of the import"),
        }
    }

    /// Checks that a plan may have `path` written: below the folder in which the command runs, and nothing
    /// that a shell or another program may carry out.
    ///
    /// # Errors
    /// `path` is elsewhere, hidden, or not [replaceable](Files::replaceable).
    pub(crate) fn writing(&self, files: &dyn Files, path: &Path) -> io::Result<()> {
        if self.is_plan_of_flags {
            return Ok(());
        }
        let real = real_or_folder(files, path)?;
        self.below(files, Path::new(""), &real, "it is not below this folder")?;
        let here = files.real(Path::new(""))?;
        let below = real.strip_prefix(here).unwrap_or(Path::new(""));
        let names = below.iter().chain(path.file_name());
        if names.into_iter().any(|name| name.as_encoded_bytes().starts_with(b".")) {
            return Err(io::Error::other("it is hidden"));
        }
        files.replaceable(path)
    }

    /// Checks that a plan in the folder `own` may have requests sent to the unix socket at `path`.
    ///
    /// # Errors
    /// `path` is elsewhere: services of the system listen there.
    pub(crate) fn connecting(&self, files: &dyn Files, own: &Path, path: &Path) -> io::Result<()> {
        if self.is_plan_of_flags {
            return Ok(());
        }
        self.below(files, own, &real_or_folder(files, path)?, "it is not below the plan's folder")
    }

    fn below(&self, files: &dyn Files, own: &Path, real: &Path, otherwise: &str) -> io::Result<()> {
        let mut folders = std::iter::once(own).chain(self.folders.iter().map(PathBuf::as_path));
        let is_below = folders.any(|folder| files.real(folder).is_ok_and(|folder| real.starts_with(folder)));
        if is_below { Ok(()) } else { Err(io::Error::new(io::ErrorKind::PermissionDenied, otherwise)) }
    }
}

/// The [real](Files::real) path of a file, or of the folder in which it may come into being.
fn real_or_folder(files: &dyn Files, path: &Path) -> io::Result<PathBuf> {
    files.real(path).or_else(|_| files.real(path.parent().unwrap_or(Path::new(""))))
}

/// The problem with a file that cannot be read.
pub(crate) fn unreadable(name: &str, error: &io::Error) -> Problem {
    let problem = Problem::new(format!("cannot read `{name}`: {error}"));
    if is_not_granted(error) { problem.with_hint(FILES_HINT) } else { problem }
}

/// Returns `true` for an error of [`Grants`], and not of the system.
pub(crate) fn is_not_granted(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::*;
    use crate::Disk;
    use plimsoll_document::RawValue;

    /// Shapes of paths × what is granted, on a real file system.
    #[test]
    fn a_plan_reads_below_its_folder_and_what_was_granted() {
        let place = std::env::temp_dir().join(format!("plimsoll-grants-{}", std::process::id()));
        let (own, beside) = (place.join("own"), place.join("beside"));
        std::fs::create_dir_all(own.join("sub")).unwrap();
        std::fs::create_dir_all(&beside).unwrap();
        for file in [own.join("a"), own.join("sub/b"), beside.join("c")] {
            std::fs::write(file, "x").unwrap();
        }
        std::os::unix::fs::symlink(beside.join("c"), own.join("link")).unwrap();
        std::os::unix::fs::symlink("a", own.join("inner")).unwrap();
        // A folder whose name begins with that of the plan's is not below it.
        std::fs::create_dir_all(place.join("ownership")).unwrap();
        std::fs::write(place.join("ownership/d"), "x").unwrap();
        assert!(std::process::Command::new("mkfifo").arg(own.join("pipe")).status().unwrap().success());
        let said = |grants: &Grants, name: &str| {
            grants.reading(&Disk, &own, &own.join(name)).err().map(|error| error.to_string())
        };
        let nothing = Grants::default();
        let patch = PlanPatch {
            allow_files: vec![RawValue::new("--allow-files", beside.display().to_string())],
            ..PlanPatch::default()
        };
        let granted = Grants::of(&patch);
        let outside = Some("it is not below the plan's folder".to_owned());
        for name in ["a", "sub/b", "sub/../a", "inner", "missing", "sub"] {
            assert_eq!(said(&nothing, name), None, "{name}");
        }
        for name in
            ["../beside/c", "link", "sub/../../beside/c", "../ownership/d", "/etc/passwd", "/dev/zero"]
        {
            assert_eq!(said(&nothing, name), outside, "{name}");
        }
        let absolute = beside.join("c");
        assert_eq!(said(&nothing, absolute.to_str().unwrap()), outside);
        for name in ["../beside/c", "link", absolute.to_str().unwrap()] {
            assert_eq!(said(&granted, name), None, "{name}");
        }
        for name in ["../ownership/d", "/etc/passwd"] {
            assert_eq!(said(&granted, name), outside, "{name}");
        }
        // A pipe on stdin has no path, so it is nowhere.
        let (reader, _writer) = std::io::pipe().unwrap();
        let nameless = format!("/proc/self/fd/{}", reader.as_raw_fd());
        for name in ["pipe", &nameless] {
            assert_eq!(said(&nothing, name).as_deref(), Some("it is a pipe, a socket or a device"), "{name}");
        }
        for (path, is_permitted) in [
            ("new.log", true),
            ("sub/../new.log", true),
            ("/etc/cron.d/x", false),
            ("../x", false),
            (".bashrc", false),
            (".git/hooks/post-commit", false),
            ("a/.hidden/b", false),
        ] {
            assert_eq!(nothing.writing(&Here, Path::new(path)).is_ok(), is_permitted, "{path}");
        }
        std::os::unix::fs::symlink(place.join("nowhere/made"), own.join("dangling")).unwrap();
        let program = own.join("run.sh");
        std::fs::write(&program, "x").unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        for (name, otherwise) in [
            ("a", None),
            ("new", None),
            ("dangling", Some("it is a link that leads nowhere")),
            ("pipe", Some("it is a pipe, a device or a folder")),
            ("sub", Some("it is a pipe, a device or a folder")),
            ("run.sh", Some("it is a program")),
        ] {
            let found = Disk.replaceable(&own.join(name)).err().map(|error| error.to_string());
            assert_eq!(found.as_deref(), otherwise, "{name}");
        }
        for (grants, name, is_permitted) in [
            (&nothing, "app.sock", true),
            (&nothing, "/var/run/docker.sock", false),
            (&nothing, "../beside/app.sock", false),
            (&granted, "../beside/app.sock", true),
        ] {
            assert_eq!(grants.connecting(&Disk, &own, &own.join(name)).is_ok(), is_permitted, "{name}");
        }
        std::fs::remove_dir_all(&place).unwrap();
    }

    /// Files that know no links.
    struct Here;

    impl Files for Here {
        fn read(&self, _: &Path) -> io::Result<Vec<u8>> {
            Ok(Vec::new())
        }

        fn key_log(&self, _: &Path) -> io::Result<plimsoll_document::KeyLogFile> {
            Err(io::Error::other("none"))
        }
    }
}
