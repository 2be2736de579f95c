//! Hints of extensions for users of other load generators.

use std::sync::OnceLock;

use plimsoll_document::Problem;

/// Names of other load generators, their files and their flags, which an extension knows: where they belong
/// here.
#[derive(Clone, Copy, Debug)]
pub struct Advice {
    /// Programs and scripts, and the commands that have their loads.
    pub programs: &'static [OtherProgram],
    /// Programs and scripts without such a command, by their names without an ending, each with a hint.
    pub needless: &'static [(&'static str, &'static str)],
    /// Flags, and a hint on each.
    pub flags: &'static [(&'static [&'static str], &'static str)],
    /// Puts flags in place of other words of a program's command line.
    pub translate: fn(&[String]) -> Vec<String>,
    /// Returns the problem with the words of a command line, the command first, if it has such words.
    pub problem: fn(&[String]) -> Option<Problem>,
}

impl Advice {
    /// No advice, for the fields that an extension leaves out.
    pub const NONE: Self =
        Self { programs: &[], needless: &[], flags: &[], translate: <[String]>::to_vec, problem: |_| None };
}

/// A program of others, or scripts that come with one.
#[derive(Clone, Copy, Debug)]
pub struct OtherProgram {
    /// Names without an ending, with `-` for `_`.
    pub names: &'static [&'static str],
    /// Name of the program with its owner, as a sentence begins with it.
    pub whose: &'static str,
    /// The command that has its load.
    pub command: &'static str,
    /// `true` if that command takes its flags as they are.
    pub has_flags: bool,
}

impl OtherProgram {
    /// A program whose flags the command takes.
    pub const fn with_flags(
        names: &'static [&'static str],
        whose: &'static str,
        command: &'static str,
    ) -> Self {
        Self { names, whose, command, has_flags: true }
    }

    /// A program whose command has flags of its own.
    pub const fn plain(names: &'static [&'static str], whose: &'static str, command: &'static str) -> Self {
        Self { names, whose, command, has_flags: false }
    }
}

static ALL: OnceLock<Vec<&'static Advice>> = OnceLock::new();
static FORMATS: OnceLock<Vec<&'static str>> = OnceLock::new();

/// Keeps the names of the formats that extensions import. The first call counts.
pub(crate) fn install_formats(names: impl Iterator<Item = &'static str>) {
    // Tests of one process install the same ones.
    let _ = FORMATS.set(names.collect());
}

/// Names of the formats that extensions import.
pub(crate) fn formats() -> impl Iterator<Item = &'static str> {
    FORMATS.get().into_iter().flatten().copied()
}

/// Keeps the advice of extensions. The first call counts.
pub(crate) fn install(advice: impl Iterator<Item = &'static Advice>) {
    // Tests of one process install the same one.
    let _ = ALL.set(advice.collect());
}

/// The advice of all extensions.
pub(crate) fn all() -> impl Iterator<Item = &'static Advice> {
    ALL.get().into_iter().flatten().copied()
}
