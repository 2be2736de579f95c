//! Check of imported plans by resolving them.

use plimsoll_document::{Files, PlanCheck, Problems, RawValue, Source};

use crate::{Command, PlanPatch, PlanSource, Switch};

/// Check of an imported plan, by resolving it as it will be run, or without any flags. XPath is checked where
/// its engine is available.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImportCheck<'f> {
    flags: Option<&'f PlanPatch>,
}

impl<'f> ImportCheck<'f> {
    /// Neither certificates nor scripts are read.
    pub const WITHOUT_FLAGS: Self = Self { flags: None };

    /// A check for a run with these flags: certificates that they replace are not read, and scripts are read
    /// where they have a host for them.
    pub const fn with(flags: &'f PlanPatch) -> Self {
        Self { flags: Some(flags) }
    }
}

impl PlanCheck for ImportCheck<'_> {
    fn problems(&self, plan: &Source, files: &dyn Files) -> Problems {
        let flags = PlanPatch {
            script_host: self.flags.and_then(|flags| flags.script_host.clone()),
            parts: self.flags.map(|flags| flags.parts).unwrap_or_default(),
            // An import runs nothing. Where the files may lie is decided where the plan is run.
            only_read_scripts: true,
            script_allow_system: Switch::on("--script-allow-system"),
            allow_files: vec![RawValue::new("--allow-files", "/")],
            lua_path: self.flags.and_then(|flags| flags.lua_path.clone()),
            ..PlanPatch::default()
        };
        let command = Command { plan: Some(PlanSource::Text(plan.clone())), flags, ..Command::default() };
        command.resolve(files).err().map(|refused| refused.problems).unwrap_or_default()
    }

    fn reads_authorities(&self) -> bool {
        self.flags.is_some_and(|flags| flags.cacert.is_none() && !flags.insecure.is_on())
    }

    fn reads_identity(&self) -> bool {
        self.flags.is_some_and(|flags| flags.cert.is_none() && flags.key.is_none())
    }

    fn reads_scripts(&self) -> bool {
        self.flags.is_some_and(|flags| flags.script_host.is_some())
    }
}
