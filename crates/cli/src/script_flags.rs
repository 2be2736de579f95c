//! Flags of scripts.

use std::sync::Arc;

use clap::Args;
use plimsoll_plan::{RawValue, ScriptHost, ScriptPatch};

use crate::flags::RunEnvironment;
use crate::script_host::Terminal;

#[derive(Debug, Args)]
#[command(next_help_heading = "Request")]
pub(crate) struct ScriptArgs {
    /// Lua script of wrk, as it is; arguments for it behind `--`
    #[arg(short, long, value_name = "FILE")]
    script: Option<String>,
    /// Let scripts open files, start processes and resolve names
    #[arg(long, hide_short_help = true)]
    script_allow_system: bool,
    /// Arguments for the `init` of the script
    #[arg(last = true, value_name = "ARGUMENT", hide_short_help = true)]
    script_arguments: Vec<String>,
}

impl ScriptArgs {
    pub(crate) fn to_patch(&self, surroundings: &RunEnvironment) -> ScriptPatch {
        ScriptPatch {
            file: self.script.as_ref().map(|file| RawValue::new("--script", file.as_str())),
            arguments: self.script_arguments.clone(),
            allow_system: self.script_allow_system,
            lua_path: surroundings.lua_path.clone(),
            host: Some(ScriptHost(Arc::new(Terminal { quiet: surroundings.quiet }))),
        }
    }
}
