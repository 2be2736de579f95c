//! The flags that a plan is made of.

use std::path::PathBuf;

use clap::Args;
use plimsoll_document::RawValue;
use plimsoll_plan::{Command, PlanPatch, PlanSource, is_plan_name};
use plimsoll_schedule::parse_count;

use crate::args::setting::{PlanSection, SettingArgs};
use crate::base::environment::RunEnvironment;
use crate::base::plan_parts::plan_parts;
use crate::base::script_host;

/// Everything that a plan is made of.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// A plan file (- is stdin), or URLs, which share the load evenly
    ///
    /// Iterations go to the URLs in turn. In the closed model a slow one holds up the users of all.
    ///
    /// A plan is YAML or JSON, and its name ends in .yaml, .yml or .json. A plan without scenarios goes
    /// together with URLs: its settings apply to them.
    #[arg(value_name = "PLAN|URL")]
    urls: Vec<String>,
    /// Run this JSON configuration of h2loadrunner; flags override it
    #[arg(long, value_name = "FILE", conflicts_with = "urls", hide_short_help = true)]
    pub(crate) h2loadrunner: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) settings: SettingArgs<PlanSection>,
    /// Arguments for the `init` of the script
    #[arg(last = true, value_name = "ARGUMENT", help_heading = "Request", hide_short_help = true)]
    script_arguments: Vec<String>,
}

impl PlanArgs {
    /// The URLs, and what may be the name of a plan file.
    pub(crate) fn urls(&self) -> &[String] {
        &self.urls
    }

    /// Returns the words behind `--`: arguments of a script, or of a command that has another use for them.
    pub(crate) fn words_behind(&self) -> &[String] {
        &self.script_arguments
    }

    /// Returns `true` if a plan file, a URL or a configuration of h2loadrunner is named.
    pub(crate) fn has_urls(&self) -> bool {
        !self.urls.is_empty() || self.h2loadrunner.is_some()
    }

    /// Iterations to measure, if that is a number.
    pub(crate) fn iterations(&self) -> Option<u64> {
        self.settings.patch.iterations.as_ref().and_then(|given| parse_count(&given.text).ok())
    }

    /// Iterations that may be under way at the same time, with this many connections unless the flags give
    /// a number: no limit, if they do so in a way that only a plan understands.
    pub(crate) fn at_once(&self, connections: u32) -> u64 {
        let number = |given: &Option<RawValue>, default: u64| match given {
            None => default,
            Some(given) => given.text.parse().unwrap_or(u64::MAX),
        };
        let settings = &self.settings.patch;
        if settings.users.is_some() || settings.user_stages.is_some() {
            return u64::MAX;
        }
        let connections = number(&settings.connections, u64::from(connections));
        connections.saturating_mul(number(&settings.pipeline, 1))
    }

    /// Returns `true` if the flags give the duration of the load.
    pub(crate) fn has_duration(&self) -> bool {
        self.settings.patch.duration.is_some()
    }

    /// Returns `true` if the flags say when the load ends.
    pub(crate) fn has_end(&self) -> bool {
        self.has_duration()
            || self.settings.patch.iterations.is_some()
            || self.settings.patch.stages.is_some()
    }

    /// Returns `true` if the flags say how much load there is over time.
    pub(crate) fn has_rate(&self) -> bool {
        self.settings.patch.rate.is_some() || self.settings.patch.stages.is_some()
    }

    /// Returns `true` if the flags say how many users there are.
    pub(crate) fn has_users(&self) -> bool {
        self.settings.patch.users.is_some() || self.settings.patch.user_stages.is_some()
    }

    /// The plan file, the environment and the flags. The first argument that names a plan file is it.
    pub(crate) fn to_command(&self, mut surroundings: RunEnvironment) -> Command {
        let environment = std::mem::take(&mut surroundings.settings);
        let mut flags = self.to_patch(surroundings);
        flags.urls = self.urls.iter().map(|url| RawValue::new("URL", url.as_str())).collect();
        let plan = flags.urls.iter().position(|given| is_plan_name(&given.text));
        let plan = plan.map(|index| PlanSource::File(flags.urls.remove(index).text));
        Command { plan, environment, flags }
    }

    /// One of several plan files that are named, the environment and the flags.
    pub(crate) fn to_command_of_file(&self, name: &str, mut surroundings: RunEnvironment) -> Command {
        let environment = std::mem::take(&mut surroundings.settings);
        let plan = Some(PlanSource::File(name.to_owned()));
        Command { plan, environment, flags: self.to_patch(surroundings) }
    }

    /// A plan that was made, which has the URLs, the environment and the flags.
    pub(crate) fn to_command_of(&self, plan: PlanSource, mut surroundings: RunEnvironment) -> Command {
        let environment = std::mem::take(&mut surroundings.settings);
        let flags = PlanPatch { is_plan_of_flags: true, ..self.to_patch(surroundings) };
        Command { plan: Some(plan), environment, flags }
    }

    /// The flags as a patch of the plan, with their names for messages.
    fn to_patch(&self, surroundings: RunEnvironment) -> PlanPatch {
        PlanPatch {
            default_seed: surroundings.seed,
            key_log: surroundings.key_log,
            script_arguments: self.script_arguments.clone(),
            lua_path: surroundings.lua_path,
            only_read_scripts: surroundings.only_reads,
            confined_to: surroundings.confined_to,
            script_host: Some(script_host::lua(surroundings.quiet)),
            parts: plan_parts(),
            // The flags of outputs and of control are read by those modules.
            ..self.settings.patch.clone()
        }
    }
}
