//! Patches from command lines, and files from memory.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use plimsoll_document::{Files, KeyLogFile, Problems, RawValue, Setting, SettingKind};
use plimsoll_plan::{Plan, PlanPatch};

/// Files by name; everything else does not exist.
#[derive(Default)]
pub(crate) struct Memory(pub(crate) BTreeMap<&'static str, Vec<u8>>);

impl Files for Memory {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let name = path.to_str().expect("test paths are text");
        self.0.get(name).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn key_log(&self, _: &Path) -> io::Result<KeyLogFile> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// The patch of a command line: `--flag value` with the long names, switches alone, everything else a URL.
pub(crate) fn patch(line: &[&str]) -> PlanPatch {
    let mut patch = PlanPatch { default_seed: 99, ..PlanPatch::default() };
    let mut words = line.iter().copied();
    while let Some(word) = words.next() {
        if !word.starts_with("--") {
            patch.urls.push(RawValue::new("URL", word));
            continue;
        }
        let mut value = || words.next().expect("a value behind the flag");
        if word == "--key-log" {
            patch.key_log = Some(value().into());
            continue;
        }
        let setting = Setting::by_flag(word).unwrap_or_else(|| panic!("{word} is no flag"));
        let text = if setting.kind == SettingKind::Switch { "true" } else { value() };
        patch.push(setting, RawValue::new(word.to_owned(), text));
    }
    patch
}

/// Resolves a command line, with the files of `memory`.
pub(crate) fn resolve_with(line: &[&str], memory: &Memory) -> Result<Plan, Problems> {
    Plan::resolve(patch(line), memory)
}

/// Resolves a command line that has to be right.
pub(crate) fn plan(line: &[&str]) -> Plan {
    resolve_with(line, &Memory::default()).unwrap_or_else(|problems| panic!("{line:?}: {problems}"))
}

/// A request of a plan in HTTP/1.1, as text: that of iteration 7, with `/made` as the first variable.
pub(crate) fn request(plan: &Plan, step: usize) -> String {
    let (mut scratch, mut out) = (Vec::new(), Vec::new());
    let variables = [b"/made".to_vec()];
    let context = plimsoll_scenario::Context { index: 7, variables: &variables, ..Default::default() };
    let mut random = plimsoll_core::Random::new(1, 0);
    plan.steps[step].request.render(&context, &mut random, &mut scratch, &mut out);
    String::from_utf8(out).expect("these requests are text")
}
