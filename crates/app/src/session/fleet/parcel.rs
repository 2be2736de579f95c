//! The parcel of a run for its agents: the plan with its settings, and the files that it names.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use plimsoll_document::{FileKind, Files, KeyLogFile, Problem, Problems, SettingKind, Source};
use plimsoll_fleet::Prepare;
use plimsoll_plan::{Disk, PlanPatch};

use crate::args::control::ControlSpec;
use crate::args::setting::{PlanSection, Section as _};

/// Largest file that is sent to agents, in bytes.
const LARGEST_FILE: usize = 64 << 20;
/// Settings that are not sent with the plan: the coordinator sets them for each agent.
const OWN: [&str; 4] = ["shard", "start_at", "seed", "threads"];

/// The file system, with a record of the files that were read.
#[derive(Debug, Default)]
pub(crate) struct RecordedFiles {
    read: RefCell<BTreeMap<PathBuf, Vec<u8>>>,
    too_large: RefCell<Vec<PathBuf>>,
}

impl RecordedFiles {
    fn record(&self, path: &Path) -> io::Result<()> {
        if self.read.borrow().contains_key(path) {
            return Ok(());
        }
        let content = Disk.read_head(path, LARGEST_FILE + 1)?;
        if content.len() > LARGEST_FILE {
            self.too_large.borrow_mut().push(path.to_owned());
        } else {
            self.read.borrow_mut().insert(path.to_owned(), content);
        }
        Ok(())
    }
}

impl Files for RecordedFiles {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.record(path)?;
        match self.read.borrow().get(path) {
            Some(content) => Ok(content.clone()),
            None => Disk.read(path),
        }
    }

    /// Not recorded: agents have secrets of their own, and the setup's are the coordinator's.
    fn secret(&self, path: &Path) -> io::Result<Vec<u8>> {
        Disk.secret(path)
    }

    fn read_head(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        let mut content = self.read(path)?;
        content.truncate(limit);
        Ok(content)
    }

    fn kind(&self, path: &Path) -> Option<FileKind> {
        Disk.kind(path)
    }

    fn names(&self, folder: &Path) -> Vec<String> {
        Disk.names(folder)
    }

    fn key_log(&self, path: &Path) -> io::Result<KeyLogFile> {
        Disk.key_log(path)
    }
}

/// Everything that is sent to the agents of a run.
#[derive(Clone, Debug)]
pub(crate) struct Parcel {
    pub(crate) prepare: Prepare,
    pub(crate) files: Vec<(String, Vec<u8>)>,
}

/// Name of the file with the values of the setup in the folder of a run.
const VALUES_FILE: &str = ".setup-values.json";

impl Parcel {
    /// Adds the values of the setup, which agents do not carry out then.
    pub(crate) fn hand_over(&mut self, values: String) {
        self.files.push((VALUES_FILE.to_owned(), values.into_bytes()));
        self.add_argument(format!("--setup-values={VALUES_FILE}"));
    }

    /// Adds an argument of the processes of agents.
    pub(crate) fn add_argument(&mut self, argument: String) {
        let args = &mut self.prepare.args;
        // Words behind `--` are the script's.
        let place = args.iter().position(|arg| arg == "--").unwrap_or(args.len());
        args.insert(place, argument);
    }

    /// Packs the settings in force (`patch`) and the files that were read for them.
    ///
    /// # Errors
    /// Files that cannot be sent.
    pub(crate) fn new(
        patch: &PlanPatch,
        files: &RecordedFiles,
        control: &ControlSpec,
    ) -> Result<Self, Problems> {
        let mut parcel = Self { prepare: Prepare::default(), files: Vec::new() };
        let mut problems = Problems::default();
        for path in files.too_large.borrow().iter() {
            let message = format!("{} has more than {} MiB", path.display(), LARGEST_FILE >> 20);
            problems.push(Problem::new(message).with_hint("only smaller files can be sent to a fleet"));
        }
        let args = &mut parcel.prepare.args;
        let (mut folder, mut plan) = (PathBuf::new(), None);
        if let Some(document) = &patch.document {
            let source = document.source();
            let Source { name, text } = &*source;
            folder = document.folder.clone();
            let ending = if name.to_ascii_lowercase().ends_with(".json") { "json" } else { "yaml" };
            let sent = format!("plan.{ending}");
            args.push(sent.clone());
            parcel.files.push((sent, text.clone().into_bytes()));
            plan = Some(PathBuf::from(name));
        }
        args.extend(patch.urls.iter().map(|url| url.text.clone()));
        args.extend(flags(patch));
        args.extend(control.max_rate.map(|most| {
            // Rounded up to whole arrivals per second: it only has to catch mistakes.
            format!("--max-rate={}", most.per_second_f64().ceil())
        }));
        let others = files.read.borrow();
        let others =
            others.iter().filter(|(path, _)| plan.as_ref() != Some(*path) && **path != *Path::new("-"));
        for (path, content) in others {
            match inside(path, &folder) {
                Some(name) => parcel.files.push((name, content.clone())),
                None => {
                    let message = format!("the file {} is not below the folder of the plan", path.display());
                    let hint = "only files from there are sent to a fleet: put it beside the plan, and name it from there";
                    problems.push(Problem::new(message).with_hint(hint));
                }
            }
        }
        if !patch.script_arguments.is_empty() {
            args.push("--".to_owned());
            args.extend(patch.script_arguments.iter().cloned());
        }
        if problems.is_empty() { Ok(parcel) } else { Err(problems) }
    }
}

/// The settings in force as flags.
fn flags(patch: &PlanPatch) -> Vec<String> {
    let mut flags = Vec::new();
    for (setting, values) in patch.settings() {
        if !PlanSection::has(setting.heading) || OWN.contains(&setting.name) {
            continue;
        }
        let long = setting.long();
        for value in values {
            match setting.kind {
                SettingKind::Switch if value.text == "true" => flags.push(format!("--{long}")),
                SettingKind::Switch => {}
                _ => flags.push(format!("--{long}={}", value.text)),
            }
        }
    }
    flags
}

/// The name of a file relative to a folder, if it is below it.
fn inside(path: &Path, folder: &Path) -> Option<String> {
    let below = if folder == Path::new("") { path } else { path.strip_prefix(folder).ok()? };
    let mut parts = Vec::new();
    for part in below.components() {
        match part {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::CurDir => {}
            _ => return None,
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use plimsoll_document::RawValue;
    use plimsoll_plan::{Command, PlanSource};

    use super::*;

    #[test]
    fn files_below_the_folder_of_the_plan_keep_their_names() {
        let of = |path: &str, folder: &str| inside(Path::new(path), Path::new(folder));
        assert_eq!(of("/a/plans/users.csv", "/a/plans").as_deref(), Some("users.csv"));
        assert_eq!(of("plans/data/users.csv", "plans").as_deref(), Some("data/users.csv"));
        assert_eq!(of("./users.csv", "").as_deref(), Some("users.csv"));
        for (path, folder) in [("/etc/passwd", ""), ("../x", ""), ("/a/b/../c", "/a"), ("x", "plans")] {
            assert_eq!(of(path, folder), None, "{path}");
        }
    }

    /// An agent reads the packed plan back out of the parcel.
    #[test]
    fn the_settings_in_force_are_flags_and_files_go_along() {
        let folder = std::env::temp_dir().join(format!("plimsoll-parcel-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("users.csv"), "id\n1\n2\n").unwrap();
        let text = "run: {rate: 50, duration: 3s, threads: 2}\n\
                    data: {users: {csv: users.csv}}\n\
                    scenarios:\n  - steps:\n      - get: http://a.test/${id}\n        \
                    headers: {x-key: '${secret(KEY)}'}\n";
        // The file of a secret stays here.
        let key = folder.join("key");
        std::fs::write(&key, "k7Qz9\n").unwrap();
        let plan = folder.join("plan.yaml");
        std::fs::write(&plan, text).unwrap();
        let flags = PlanPatch { timeout: Some(RawValue::new("--timeout", "7s")), ..PlanPatch::default() };
        let environment = [("PLIMSOLL_RATE", "60"), ("KEY_FILE", key.to_str().unwrap())];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let source = PlanSource::File(plan.to_str().unwrap().to_owned());
        let files = RecordedFiles::default();
        let resolved = Command { plan: Some(source), environment, flags }.resolve(&files).unwrap();
        let parcel = Parcel::new(&resolved.layered.patch, &files, &ControlSpec::default()).unwrap();
        let has = |arg: &str| parcel.prepare.args.iter().any(|other| other == arg);
        assert!(has("--rate=60") && has("--duration=3s") && has("--timeout=7s"), "{:?}", parcel.prepare.args);
        assert!(!parcel.prepare.args.iter().any(|arg| arg.contains("threads")), "the coordinator sets them");
        let names: Vec<&str> = parcel.files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["plan.yaml", "users.csv"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
