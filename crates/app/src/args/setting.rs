//! Flags of settings, made from the table of settings.

use std::marker::PhantomData;
use std::sync::LazyLock;

use clap::{Arg, ArgAction, ArgMatches, Command};
use plimsoll_document::{RawValue, Setting, SettingKind};
use plimsoll_plan::PlanPatch;

/// Headings of settings that belong together on a command line.
pub(crate) trait Section {
    /// Returns `true` if the settings below this heading belong to the section.
    fn has(heading: &str) -> bool;
}

/// Settings of a plan: what is sent, how often, and what has to hold.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PlanSection;

impl Section for PlanSection {
    fn has(heading: &str) -> bool {
        !LiveOutputSection::has(heading) && !ControlSection::has(heading)
    }
}

/// Settings of TLS.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TlsSection;

impl Section for TlsSection {
    fn has(heading: &str) -> bool {
        heading == "TLS"
    }
}

/// Files that are written while the run goes on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LiveOutputSection;

impl Section for LiveOutputSection {
    fn has(heading: &str) -> bool {
        heading == "Live output"
    }
}

/// Ways to change a run while it goes on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ControlSection;

impl Section for ControlSection {
    fn has(heading: &str) -> bool {
        heading == "Control"
    }
}

/// Values of the flags of a section, with their names for messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct SettingArgs<S> {
    pub(crate) patch: PlanPatch,
    section: PhantomData<S>,
}

impl<S> From<PlanPatch> for SettingArgs<S> {
    fn from(patch: PlanPatch) -> Self {
        Self { patch, section: PhantomData }
    }
}

impl<S> SettingArgs<S> {
    /// Returns these flags, with the values of `lower` where no flag was given.
    pub(crate) fn or(&self, lower: Option<&PlanPatch>) -> Self
    where
        S: Section,
    {
        let mut patch = self.patch.clone();
        for (setting, values) in lower.into_iter().flat_map(PlanPatch::settings) {
            if S::has(setting.heading) && patch.get(setting).is_empty() {
                patch.set(setting, values.into_iter().cloned().collect());
            }
        }
        patch.into()
    }
}

/// The settings of a section, in the order of the help.
fn settings<S: Section>() -> impl Iterator<Item = &'static Setting> {
    flags::<S>().map(|(setting, _)| setting)
}

/// The settings of a section with their flags, in the order of the help.
fn flags<S: Section>() -> impl Iterator<Item = (&'static Setting, &'static Arg)> {
    // A dozen commands have them: made for each, they took half of the time of a start.
    static FLAGS: LazyLock<Vec<Arg>> = LazyLock::new(|| Setting::ALL.iter().map(arg).collect());
    let headings = Setting::HEADINGS.iter().filter(|heading| S::has(heading));
    headings.flat_map(|heading| {
        Setting::ALL.iter().zip(&*FLAGS).filter(move |(setting, _)| setting.heading == *heading)
    })
}

impl<S: Section> clap::Args for SettingArgs<S> {
    fn augment_args(command: Command) -> Command {
        command.args(flags::<S>().map(|(_, flag)| flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<S: Section> clap::FromArgMatches for SettingArgs<S> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut args = Self::from(PlanPatch::default());
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for setting in settings::<S>() {
            let values: Vec<RawValue> = match setting.kind {
                SettingKind::Switch => {
                    matches.get_flag(setting.name).then(|| setting.typed("true")).into_iter().collect()
                }
                _ => matches
                    .get_many::<String>(setting.name)
                    .into_iter()
                    .flatten()
                    .map(|text| setting.typed(text))
                    .collect(),
            };
            if !values.is_empty() {
                self.patch.set(setting, values);
            }
        }
        Ok(())
    }
}

/// The flag of a setting.
fn arg(setting: &'static Setting) -> Arg {
    let flag = &setting.flag;
    let paragraphs = setting.paragraphs();
    let mut arg = Arg::new(setting.name)
        .long(setting.long())
        .short(flag.short)
        .short_aliases(flag.short_aliases.iter().copied())
        .help_heading(setting.heading)
        .help(paragraphs[0].clone())
        .hide_short_help(!flag.common)
        .allow_negative_numbers(flag.number)
        .allow_hyphen_values(flag.any_text);
    if paragraphs.len() > 1 {
        arg = arg.long_help(paragraphs.join("\n\n"));
    }
    if let Some(alias) = flag.alias {
        arg = arg.alias(alias);
    }
    match setting.kind {
        SettingKind::Switch => return arg.action(ArgAction::SetTrue),
        SettingKind::Value => arg = arg.action(ArgAction::Set),
        SettingKind::Repeatable | SettingKind::List => arg = arg.action(ArgAction::Append),
    }
    arg = arg.value_name(flag.value_name);
    match flag.optional {
        Some(value) => arg.num_args(0..=1).require_equals(true).default_missing_value(value),
        None => arg,
    }
}
