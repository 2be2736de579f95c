//! The folder that was opened: the plans in it and the files that go with them, and nothing else.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use plimsoll_core::text::hex;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::refusal::Refusal;
use crate::secret::random_hex;

/// Files that are listed at most.
const MOST_FILES: usize = 5_000;
/// Entries of folders that are examined at most.
const MOST_ENTRIES: usize = 100_000;
/// Folders within folders that are examined.
const DEEPEST: usize = 16;
/// Largest file that is read, in bytes: an editor of a browser is for smaller ones.
const LARGEST: u64 = 4 << 20;
/// Longest path, in bytes (PATH_MAX of Linux is 4,096, with the folder).
const LONGEST_PATH: usize = 1_024;
/// Ends of the names of files that are shown.
const ENDS: [&str; 8] = ["yaml", "yml", "json", "jsonl", "lua", "csv", "har", "proto"];
/// Ends of the names of keys and certificates. These are named to commands, and never shown.
const KEY_ENDS: [&str; 5] = ["key", "pem", "crt", "creds", "nk"];
/// Folders with files of other programs.
const LEFT_OUT: [&str; 2] = ["node_modules", "target"];

/// A file of the folder.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Entry {
    /// From the folder on, with `/`.
    pub(crate) path: String,
    pub(crate) modified_unix_s: f64,
    pub(crate) bytes: u64,
}

/// A text, and the name of its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Text {
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) etag: String,
}

/// The folder. Everything is found by names from it on, and is in it after all links have been followed.
#[derive(Debug)]
pub(crate) struct Folder {
    root: PathBuf,
    /// Held while a file is compared and replaced: two pages may write at once.
    writes: Mutex<()>,
}

impl Folder {
    /// Opens a folder.
    ///
    /// # Errors
    /// The folder does not exist.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let root = path.canonicalize()?;
        if !root.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { root, writes: Mutex::new(()) })
    }

    /// The folder itself.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The folder that a file is in, for names in a plan: the opened one for a file without a name, or whose
    /// folder is not there.
    ///
    /// # Errors
    /// The path leads elsewhere.
    pub(crate) fn folder_of(&self, path: Option<&str>) -> Result<PathBuf, Refusal> {
        let Some(path) = path else { return Ok(self.root.clone()) };
        let named = self.root.join(checked(path)?);
        let parent = named.parent().unwrap_or(&self.root);
        match parent.canonicalize() {
            Ok(parent) if parent.starts_with(&self.root) => Ok(parent),
            Ok(_) => Err(elsewhere(path)),
            Err(_) => Ok(self.root.clone()),
        }
    }

    /// The files, in the order of their paths.
    pub(crate) fn list(&self) -> Vec<Entry> {
        let mut found = Vec::new();
        let mut looked_at = 0;
        let mut open = vec![(self.root.clone(), 0)];
        while let Some((folder, depth)) = open.pop() {
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            let mut entries: Vec<_> = entries.filter_map(Result::ok).collect();
            entries.sort_by_key(fs::DirEntry::file_name);
            for entry in entries {
                looked_at += 1;
                if looked_at > MOST_ENTRIES || found.len() == MOST_FILES {
                    open.clear();
                    break;
                }
                let name = entry.file_name();
                let (Some(name), Ok(kind)) = (name.to_str(), entry.file_type()) else { continue };
                if name.starts_with('.') {
                    continue;
                }
                // Links to folders are not followed: they may lead out, or in a circle.
                if kind.is_dir() {
                    if depth < DEEPEST && !LEFT_OUT.contains(&name) {
                        open.push((entry.path(), depth + 1));
                    }
                } else if has_known_end(name) {
                    found.extend(self.entry(&entry.path()));
                }
            }
        }
        found.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        found
    }

    /// A file that is in the folder.
    fn entry(&self, path: &Path) -> Option<Entry> {
        let relative = path.strip_prefix(&self.root).ok()?.to_str()?.to_owned();
        let real = self.resolve(&relative).ok()?;
        let metadata = fs::metadata(real).ok().filter(fs::Metadata::is_file)?;
        let modified = metadata.modified().ok()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        Some(Entry { path: relative, modified_unix_s: modified.as_secs_f64(), bytes: metadata.len() })
    }

    /// Reads a file.
    ///
    /// # Errors
    /// The file does not exist, may not be read, or is not a text.
    pub(crate) fn read(&self, path: &str) -> Result<Text, Refusal> {
        let real = self.resolve(path)?;
        let content = content(&real, path)?;
        let etag = etag(&content);
        match String::from_utf8(content) {
            Ok(text) => Ok(Text { path: path.to_owned(), text, etag }),
            Err(_) => Err(Refusal::unprocessable(
                format!("{} is not text in UTF-8", path.escape_debug()),
                "open it with another program",
            )),
        }
    }

    /// Writes a file: a new one if `etag` is `None`, else in place of the content that has this name. It
    /// is either replaced completely, or stays as it was. Returns the name of the new content.
    ///
    /// # Errors
    /// The file is another one meanwhile, is not to be written, or cannot be.
    pub(crate) fn write(&self, path: &str, text: &str, etag: Option<&str>) -> Result<String, Refusal> {
        let _alone = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        let (target, known) = match etag {
            Some(known) => (self.resolve(path)?, known),
            None => return self.create(path, text),
        };
        let present = self::etag(&content(&target, path)?);
        if present != known {
            return Err(changed(path, Some(&present)));
        }
        let failed = |error: io::Error| unwritable(path, &error);
        let permissions = fs::metadata(&target).map_err(failed)?.permissions();
        let temporary = self.beside(&target, text).map_err(failed)?;
        let replaced = fs::set_permissions(&temporary, permissions)
            .and_then(|()| fs::rename(&temporary, &target))
            .and_then(|()| sync_folder(&target));
        self.unless_failed(replaced, &temporary, path)?;
        Ok(self::etag(text.as_bytes()))
    }

    fn create(&self, path: &str, text: &str) -> Result<String, Refusal> {
        let target = self.new_place(path)?;
        let failed = |error: io::Error| unwritable(path, &error);
        let temporary = self.beside(&target, text).map_err(failed)?;
        // Unlike a rename, a link fails if the target exists.
        let made = fs::hard_link(&temporary, &target);
        let _ = fs::remove_file(&temporary);
        match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(changed(path, None)),
            made => {
                made.and_then(|()| sync_folder(&target)).map_err(failed)?;
                Ok(self::etag(text.as_bytes()))
            }
        }
    }

    /// The place of a file that does not exist yet, in a folder that is made for it.
    fn new_place(&self, path: &str) -> Result<PathBuf, Refusal> {
        let target = self.root.join(checked(path)?);
        if let Ok(metadata) = fs::symlink_metadata(&target) {
            let present = (metadata.is_file()).then(|| content(&target, path).ok()).flatten();
            return Err(changed(path, present.map(|content| self::etag(&content)).as_deref()));
        }
        let failed = |error: io::Error| unwritable(path, &error);
        let parent = target.parent().unwrap_or(&self.root);
        // The nearest existing folder decides whether the new ones are inside.
        let there = parent.ancestors().find(|folder| folder.exists()).unwrap_or(&self.root);
        if !there.canonicalize().map_err(failed)?.starts_with(&self.root) {
            return Err(elsewhere(path));
        }
        fs::create_dir_all(parent).map_err(failed)?;
        Ok(target)
    }

    /// Gives a file another name, which is free.
    ///
    /// # Errors
    /// It does not exist, is a link, or cannot have that name.
    pub(crate) fn rename(&self, path: &str, to: &str) -> Result<(), Refusal> {
        let _alone = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        let from = self.own_file(path)?;
        let target = self.new_place(to)?;
        // Unlike a rename, a link fails if the target exists.
        match fs::hard_link(&from, &target) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(changed(to, None)),
            made => made
                .and_then(|()| sync_folder(&target))
                .and_then(|()| fs::remove_file(&from))
                .and_then(|()| sync_folder(&from))
                .map_err(|error| unwritable(to, &error)),
        }
    }

    /// Removes a file.
    ///
    /// # Errors
    /// It does not exist, is a link, or cannot be removed.
    pub(crate) fn remove(&self, path: &str) -> Result<(), Refusal> {
        let _alone = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        let file = self.own_file(path)?;
        fs::remove_file(&file).and_then(|()| sync_folder(&file)).map_err(|error| {
            let error = format!("cannot remove {}: {error}", path.escape_debug());
            Refusal::failed(error, "check the permissions of its folder")
        })
    }

    /// The file of a path that is no link: of a link it would not be clear which of the two is meant.
    fn own_file(&self, path: &str) -> Result<PathBuf, Refusal> {
        let real = self.resolve(path)?;
        let is_link =
            fs::symlink_metadata(self.root.join(checked(path)?)).is_ok_and(|found| found.is_symlink());
        let is_file = fs::metadata(&real).is_ok_and(|found| found.is_file());
        match is_file && !is_link {
            true => Ok(real),
            false => Err(Refusal::forbidden(
                format!("{} is a link or no regular file", path.escape_debug()),
                "rename or remove it with another program",
            )),
        }
    }

    /// Writes a text to a hidden file beside another one.
    fn beside(&self, target: &Path, text: &str) -> io::Result<PathBuf> {
        let folder = target.parent().unwrap_or(&self.root);
        let temporary = folder.join(format!(".plimsoll-{}.tmp", random_hex(8)?));
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o644)
            .open(&temporary)
            .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
        match written {
            Ok(()) => Ok(temporary),
            Err(error) => {
                let _ = fs::remove_file(&temporary);
                Err(error)
            }
        }
    }

    fn unless_failed(&self, done: io::Result<()>, temporary: &Path, path: &str) -> Result<(), Refusal> {
        done.map_err(|error| {
            let _ = fs::remove_file(temporary);
            unwritable(path, &error)
        })
    }

    /// The place of a key or a certificate, for a command that reads it.
    ///
    /// # Errors
    /// There is no file of that name, or the path leads elsewhere.
    pub(crate) fn key(&self, path: &str) -> Result<PathBuf, Refusal> {
        self.resolve_kind(path, &KEY_ENDS)
    }

    /// The file that a path leads to, which is in the folder and is there.
    fn resolve(&self, path: &str) -> Result<PathBuf, Refusal> {
        self.resolve_kind(path, &ENDS)
    }

    fn resolve_kind(&self, path: &str, ends: &[&str]) -> Result<PathBuf, Refusal> {
        let named = self.root.join(checked_kind(path, ends)?);
        let real = named.canonicalize().map_err(|_| {
            Refusal::not_found(
                format!("there is no file {}", path.escape_debug()),
                "reload the list of files: it may have been renamed or removed",
            )
        })?;
        let inside = real.strip_prefix(&self.root).map_err(|_| elsewhere(path))?;
        // A link may lead to a hidden file, or to one of another kind.
        match inside.to_str() {
            Some(inside) if checked_kind(inside, ends).is_ok() => Ok(real),
            _ => Err(elsewhere(path)),
        }
    }
}

/// A path that can only lead down from the folder, to a visible file of a known kind.
fn checked(path: &str) -> Result<&Path, Refusal> {
    checked_kind(path, &ENDS)
}

fn checked_kind<'p>(path: &'p str, ends: &[&str]) -> Result<&'p Path, Refusal> {
    let is_part = |part: &str| !part.is_empty() && !part.starts_with('.');
    let is_sound =
        path.len() <= LONGEST_PATH && !path.contains(char::is_control) && path.split('/').all(is_part);
    if !is_sound {
        let shown: String = path.chars().take(100).collect();
        return Err(Refusal::forbidden(
            format!("`{}` is not a path of a visible file in the folder", shown.escape_debug()),
            "name a file from the folder on, such as plans/peak.yaml",
        ));
    }
    if !has_end(path, ends) {
        let error = format!("{} has a type that is not shown here", path.escape_debug());
        return Err(Refusal::forbidden(error, format!("names end in .{}", ends.join(", ."))));
    }
    Ok(Path::new(path))
}

fn has_known_end(name: &str) -> bool {
    has_end(name, &ENDS)
}

fn has_end(name: &str, ends: &[&str]) -> bool {
    let end = name.rsplit_once('.').map(|(_, end)| end);
    end.is_some_and(|end| ends.iter().any(|known| known.eq_ignore_ascii_case(end)))
}

/// The content of a file of bounded size.
fn content(real: &Path, path: &str) -> Result<Vec<u8>, Refusal> {
    let unreadable = |error: io::Error| {
        Refusal::failed(format!("cannot read {}: {error}", path.escape_debug()), "check its permissions")
    };
    // Opening a pipe would wait for its other end.
    if !fs::metadata(real).map_err(unreadable)?.is_file() {
        let error = format!("{} is not a regular file", path.escape_debug());
        return Err(Refusal::forbidden(error, "name a file"));
    }
    let mut content = Vec::new();
    File::open(real).map_err(unreadable)?.take(LARGEST + 1).read_to_end(&mut content).map_err(unreadable)?;
    if content.len() as u64 > LARGEST {
        return Err(Refusal::new(
            axum::http::StatusCode::PAYLOAD_TOO_LARGE,
            format!("{} is larger than {} MiB", path.escape_debug(), LARGEST >> 20),
            "open it with another program",
        ));
    }
    Ok(content)
}

fn etag(content: &[u8]) -> String {
    hex(&Sha256::digest(content))
}

/// Makes a new name last, which is in the folder and not in the file.
fn sync_folder(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

fn elsewhere(path: &str) -> Refusal {
    let error = format!("{} leads out of the folder, or to a hidden file", path.escape_debug());
    Refusal::forbidden(error, "open the folder in which it is: `plimsoll ui FOLDER`")
}

fn unwritable(path: &str, error: &io::Error) -> Refusal {
    let hint = "check the free space and the permissions";
    Refusal::failed(format!("cannot write {}: {error}", path.escape_debug()), hint)
}

fn changed(path: &str, etag: Option<&str>) -> Refusal {
    let error = format!("{} has changed in the meantime", path.escape_debug());
    Refusal::conflict(error, "read it again, and merge").with("etag", etag)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use axum::http::StatusCode;

    use super::*;

    /// A folder of a test's own, with another one beside it. They go with this.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("plimsoll-web-{}-{name}", std::process::id()));
            fs::create_dir_all(path.join("opened")).unwrap();
            fs::create_dir_all(path.join("opened-too")).unwrap();
            Self(path)
        }

        fn folder(&self) -> Folder {
            Folder::open(&self.0.join("opened")).unwrap()
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn status<T: std::fmt::Debug>(result: Result<T, Refusal>) -> StatusCode {
        result.expect_err("it is refused").status
    }

    #[test]
    fn only_visible_files_of_known_kinds_are_listed() {
        let place = Place::new("list");
        for path in ["b.yaml", "a/c.yml", "a/.d.yaml", ".git/e.json", "node_modules/f.json", "target/g.csv"] {
            place.write(&format!("opened/{path}"), "x");
        }
        place.write("opened/h.pem", "x");
        place.write("outside.yaml", "x");
        symlink(place.0.join("outside.yaml"), place.0.join("opened/out.yaml")).unwrap();
        symlink(place.0.join("opened/h.pem"), place.0.join("opened/key.yaml")).unwrap();
        symlink(place.0.join("opened/b.yaml"), place.0.join("opened/again.yaml")).unwrap();
        symlink(place.0.join("opened"), place.0.join("opened/circle")).unwrap();
        let paths: Vec<String> = place.folder().list().into_iter().map(|entry| entry.path).collect();
        assert_eq!(paths, ["a/c.yml", "again.yaml", "b.yaml"]);
    }

    #[test]
    fn nothing_outside_and_nothing_hidden_is_read_or_written() {
        let place = Place::new("attack");
        place.write("outside.yaml", "secret");
        place.write("opened-too/x.yaml", "secret");
        place.write("opened/.env.yaml", "secret");
        place.write("opened/.ssh/x.yaml", "secret");
        place.write("opened/key.pem", "secret");
        place.write("opened/a.yaml", "x");
        symlink(place.0.join("outside.yaml"), place.0.join("opened/out.yaml")).unwrap();
        symlink(place.0.join("opened/.env.yaml"), place.0.join("opened/hidden.yaml")).unwrap();
        symlink(place.0.join("opened/key.pem"), place.0.join("opened/pem.yaml")).unwrap();
        symlink(&place.0, place.0.join("opened/up")).unwrap();
        symlink(place.0.join("new.yaml"), place.0.join("opened/dangling.yaml")).unwrap();
        fs::create_dir(place.0.join("opened/folder.yaml")).unwrap();
        let folder = place.folder();
        let absolute = place.0.join("outside.yaml").display().to_string();
        let huge = format!("{}.yaml", "a".repeat(5_000));
        let deep = format!("{}a.yaml", "a/".repeat(2_000));
        let paths = [
            "",
            ".",
            "..",
            "/",
            "../outside.yaml",
            "a/../../outside.yaml",
            "./../outside.yaml",
            "..%2foutside.yaml",
            "../opened-too/x.yaml",
            &absolute,
            "/etc/passwd",
            "//etc/x.yaml",
            "a.yaml\0",
            "a\0/../../outside.yaml",
            "a.yaml\n",
            ".env.yaml",
            ".ssh/x.yaml",
            "key.pem",
            "a.yaml/",
            "a//b.yaml",
            "out.yaml",
            "hidden.yaml",
            "pem.yaml",
            "up/outside.yaml",
            "folder.yaml",
            &huge,
            &deep,
        ];
        for path in paths {
            let read = status(folder.read(path));
            assert!([StatusCode::FORBIDDEN, StatusCode::NOT_FOUND].contains(&read), "{path}: {read}");
            let etag = etag(b"secret");
            for moved in [folder.rename(path, "moved.yaml"), folder.remove(path)] {
                let moved = status(moved);
                assert!([StatusCode::FORBIDDEN, StatusCode::NOT_FOUND].contains(&moved), "{path}: {moved}");
            }
            let written = status(folder.write(path, "x", Some(&etag)));
            assert!([StatusCode::FORBIDDEN, StatusCode::NOT_FOUND].contains(&written), "{path}: {written}");
        }
        for path in ["../new.yaml", "up/new.yaml", "up/new/new.yaml", ".new.yaml", "new.sh", "dangling.yaml"]
        {
            let refused = status(folder.write(path, "x", None));
            assert!([StatusCode::FORBIDDEN, StatusCode::CONFLICT].contains(&refused), "{path}: {refused}");
            let refused = status(folder.rename("a.yaml", path));
            assert!([StatusCode::FORBIDDEN, StatusCode::CONFLICT].contains(&refused), "{path}: {refused}");
        }
        assert_eq!(fs::read_to_string(place.0.join("opened/a.yaml")).unwrap(), "x");
        assert!(!place.0.join("new.yaml").exists() && !place.0.join("new").exists());
        assert_eq!(fs::read_to_string(place.0.join("outside.yaml")).unwrap(), "secret");
        for path in ["../x.yaml", "up/x.yaml", "/x.yaml"] {
            assert_eq!(status(folder.folder_of(Some(path))), StatusCode::FORBIDDEN, "{path}");
        }
        assert_eq!(folder.folder_of(Some("new/x.yaml")).unwrap(), folder.root());
    }

    #[test]
    fn a_file_is_replaced_only_as_it_was_read() {
        let place = Place::new("write");
        place.write("opened/a.yaml", "one");
        let folder = place.folder();
        let read = folder.read("a.yaml").unwrap();
        let etag = folder.write("a.yaml", "two", Some(&read.etag)).unwrap();
        assert_eq!(
            folder.read("a.yaml").unwrap(),
            Text { text: "two".to_owned(), etag: etag.clone(), ..read }
        );
        // Another page, or another program, writes the file.
        place.write("opened/a.yaml", "three");
        let refusal = folder.write("a.yaml", "four", Some(&etag)).unwrap_err();
        assert_eq!(refusal.status, StatusCode::CONFLICT);
        assert_eq!(refusal.more["etag"], folder.read("a.yaml").unwrap().etag);
        assert_eq!(fs::read_to_string(place.0.join("opened/a.yaml")).unwrap(), "three");
        assert_eq!(status(folder.write("a.yaml", "five", None)), StatusCode::CONFLICT);
        assert_eq!(status(folder.write("b.yaml", "five", Some(&etag))), StatusCode::NOT_FOUND);
        let made = folder.write("new/b.yaml", "five", None).unwrap();
        assert_eq!(folder.read("new/b.yaml").unwrap().etag, made);
        // Nothing is left over.
        let left = fs::read_dir(place.0.join("opened")).unwrap().count();
        assert_eq!((left, fs::read_dir(place.0.join("opened/new")).unwrap().count()), (2, 1));
    }

    #[test]
    fn a_file_is_renamed_to_a_free_name_and_removed() {
        let place = Place::new("rename");
        place.write("opened/a.yaml", "one");
        place.write("opened/b.csv", "two");
        symlink(place.0.join("opened/a.yaml"), place.0.join("opened/link.yaml")).unwrap();
        symlink(place.0.join("opened-too"), place.0.join("opened/out")).unwrap();
        // A folder elsewhere, with a link back to a file of this one.
        symlink(place.0.join("opened/a.yaml"), place.0.join("opened-too/back.yaml")).unwrap();
        let folder = place.folder();
        assert_eq!(status(folder.rename("a.yaml", "b.csv")), StatusCode::CONFLICT);
        for link in ["link.yaml", "out/back.yaml"] {
            assert_eq!(status(folder.remove(link)), StatusCode::FORBIDDEN, "{link}");
            assert_eq!(status(folder.rename(link, "c.yaml")), StatusCode::FORBIDDEN, "{link}");
        }
        folder.rename("a.yaml", "new/c.yaml").unwrap();
        assert_eq!(folder.read("new/c.yaml").unwrap().text, "one");
        assert_eq!(status(folder.rename("a.yaml", "d.yaml")), StatusCode::NOT_FOUND);
        folder.remove("b.csv").unwrap();
        assert_eq!(status(folder.remove("b.csv")), StatusCode::NOT_FOUND);
        assert!(!place.0.join("opened/a.yaml").exists() && !place.0.join("opened/b.csv").exists());
    }

    #[test]
    fn what_is_too_large_or_no_text_is_refused() {
        let place = Place::new("large");
        fs::write(place.0.join("opened/a.csv"), vec![b'a'; (LARGEST + 1) as usize]).unwrap();
        fs::write(place.0.join("opened/b.csv"), [0xff, 0xfe]).unwrap();
        assert_eq!(status(place.folder().read("a.csv")), StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(status(place.folder().read("b.csv")), StatusCode::UNPROCESSABLE_ENTITY);
    }
}
