//! Access to the environment of the command. No other module reads it.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use plimsoll_document::Problem;
use plimsoll_plan::Confinement;
use plimsoll_report::Style;
use plimsoll_system::clock;

use crate::base::color::{ColorChoice, Theme};
use crate::base::terminal::width_of_stdout;

/// Width of a report that does not go to a terminal, in columns.
const DEFAULT_WIDTH: usize = 100;
/// Beyond this a line is too long to read.
const LARGEST_WIDTH: usize = 120;

/// Returns `true` if output to a stream is to be coloured. `terminal` says whether that stream is a terminal.
pub(crate) fn color(choice: ColorChoice, terminal: bool) -> bool {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => terminal && !no_color && !dumb,
    }
}

/// Returns the style of the report on stdout.
pub(crate) fn style(choice: ColorChoice) -> Style {
    let terminal = std::io::stdout().is_terminal();
    // Shells set the variable, and export it to nobody.
    let given = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let columns = given.or_else(|| terminal.then(width_of_stdout).flatten());
    Style {
        color: color(choice, terminal),
        unicode: unicode(),
        width: columns.unwrap_or(DEFAULT_WIDTH).clamp(60, LARGEST_WIDTH),
        fits: columns.is_some(),
    }
}

/// Returns the theme of the live screen on stderr.
pub(crate) fn look(choice: ColorChoice) -> Theme {
    Theme { color: color(choice, std::io::stderr().is_terminal()), unicode: unicode() }
}

/// Returns `true` if this variable says yes.
fn given(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "false")
}

/// The variables among these that are set.
pub(crate) fn set_among<'n>(names: &[&'n str]) -> Vec<&'n str> {
    values_among(names).into_iter().map(|(name, _)| name).collect()
}

/// The variables among these that are set, with their values.
pub(crate) fn values_among<'n>(names: &[&'n str]) -> Vec<(&'n str, String)> {
    let value = |name: &'n str| Some((name, std::env::var_os(name)?.to_string_lossy().into_owned()));
    names.iter().copied().filter_map(value).collect()
}

/// Returns `true` if a runner of a CI service reads the output, in which it looks for commands. (Azure's and
/// TeamCity's do not set `CI`.)
pub(crate) fn is_read_by_runner() -> bool {
    ["CI", "TF_BUILD", "TEAMCITY_VERSION"].into_iter().any(given)
}

/// Returns `true` unless the environment rules out a live screen: by a terminal that can only write lines, a
/// build machine, or the user's own setting.
pub(crate) fn allows_screen() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|value| value.is_empty() || value == "dumb");
    !dumb && !given("PLIMSOLL_NO_TUI") && !given("CI")
}

/// Returns `true` if the locale says that bytes beyond ASCII are UTF-8. Without a locale, as in containers,
/// they are.
fn unicode() -> bool {
    is_unicode(|name| std::env::var(name).ok())
}

/// Does the same for the given variables. `C` and `POSIX` mean ASCII.
fn is_unicode(variable: impl Fn(&str) -> Option<String>) -> bool {
    let names = ["LC_ALL", "LC_CTYPE", "LANG"];
    let locale = names.iter().filter_map(|name| variable(name)).find(|value| !value.is_empty());
    locale.is_none_or(|value| {
        let value = value.to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}

/// The user's folder for data of this program (XDG Base Directory Specification); `None` without a home.
pub(crate) fn data_folder() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = folder("XDG_DATA_HOME").or_else(|| folder("HOME").map(|home| home.join(".local/share")))?;
    Some(data.join("plimsoll"))
}

/// OpenTelemetry's variables for the export of figures.
#[derive(Clone, Debug, Default)]
pub(crate) struct OtlpEnvironment {
    /// `OTEL_EXPORTER_OTLP_ENDPOINT`: the base of the receiver.
    pub(crate) endpoint: Option<String>,
    /// `OTEL_EXPORTER_OTLP_METRICS_ENDPOINT`: the receiver of metrics alone.
    pub(crate) metrics_endpoint: Option<String>,
    /// `OTEL_EXPORTER_OTLP_METRICS_HEADERS`, or `OTEL_EXPORTER_OTLP_HEADERS`.
    pub(crate) headers: Option<String>,
    /// `OTEL_RESOURCE_ATTRIBUTES`.
    pub(crate) resource: Option<String>,
    /// `OTEL_SERVICE_NAME`.
    pub(crate) service_name: Option<String>,
}

/// The variables; empty ones count as not set (OpenTelemetry's specification of environment variables).
pub(crate) fn otlp() -> OtlpEnvironment {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    OtlpEnvironment {
        endpoint: variable("OTEL_EXPORTER_OTLP_ENDPOINT"),
        metrics_endpoint: variable("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"),
        headers: variable("OTEL_EXPORTER_OTLP_METRICS_HEADERS")
            .or_else(|| variable("OTEL_EXPORTER_OTLP_HEADERS")),
        resource: variable("OTEL_RESOURCE_ATTRIBUTES"),
        service_name: variable("OTEL_SERVICE_NAME"),
    }
}

/// The variable in which the runner of GitHub Actions names the file of a step's summary.
pub(crate) const STEP_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// The file that [`STEP_SUMMARY`] names.
pub(crate) fn step_summary() -> Option<PathBuf> {
    std::env::var_os(STEP_SUMMARY).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// The file of the history that the user wants where no flag says another: `PLIMSOLL_STORE`.
pub(crate) fn store() -> Option<PathBuf> {
    std::env::var_os("PLIMSOLL_STORE").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Returns `true` if every run is to be saved, by `PLIMSOLL_SAVE`.
///
/// # Errors
/// It is neither true nor false.
pub(crate) fn save() -> Result<bool, Problem> {
    let value = std::env::var_os("PLIMSOLL_SAVE").unwrap_or_default();
    match &*value.to_string_lossy() {
        "true" => Ok(true),
        "" | "false" => Ok(false),
        other => Err(Problem::new(format!("PLIMSOLL_SAVE: `{}` is not true or false", other.escape_debug()))),
    }
}

/// Returns where files that flags name have to lie: below the current folder by `PLIMSOLL_CONFINED`, which
/// the web UI sets for the processes that it starts, since flags of a page are not those of the person.
pub(crate) fn confinement() -> Option<Confinement> {
    given(plimsoll_web::CONFINED).then_some(Confinement::Here)
}

/// Returns the number of the process that a server ends with: that of `PLIMSOLL_ENDS_WITH`, which the web UI
/// sets for the servers that it starts.
pub(crate) fn ends_with() -> Option<u32> {
    std::env::var(plimsoll_web::ENDS_WITH).ok()?.parse().ok()
}

/// Returns `true` if a search tells each trial that it begins, by `PLIMSOLL_TELL_TRIALS`, which the web UI
/// sets: its page shows what is being tried.
pub(crate) fn tells_trials() -> bool {
    given(plimsoll_web::TELL_TRIALS)
}

/// Returns the environment of a plan: a seed that differs from run to run, `SSLKEYLOGFILE`, `LUA_PATH`, and
/// the variables. Variables that begin with `PLIMSOLL_` are settings; plan files can refer to the others.
pub(crate) fn surroundings() -> RunEnvironment {
    let key_log = std::env::var_os("SSLKEYLOGFILE").filter(|path| !path.is_empty()).map(PathBuf::from);
    let lua_path = std::env::var("LUA_PATH").ok().filter(|patterns| !patterns.is_empty());
    // 53 bits, so that the seed survives readers of JSON that know only doubles.
    let seed = clock::unix().0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 11;
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    let mut settings: Vec<(String, String)> =
        std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect();
    settings.sort_unstable();
    RunEnvironment {
        seed,
        key_log,
        settings,
        lua_path,
        quiet: false,
        only_reads: false,
        confined_to: confinement(),
    }
}

/// The program of the broker of a fleet: that of `PLIMSOLL_NATS_SERVER`, or `nats-server` on the path; `None`
/// if there is none.
pub(crate) fn nats_server() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("PLIMSOLL_NATS_SERVER").filter(|path| !path.is_empty()) {
        return Some(PathBuf::from(named));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("nats-server")).find(|program| program.is_file())
}

/// Variables for processes that carry out the runs of others: all but those that are settings of a run here.
pub(crate) fn without_settings() -> Vec<(String, String)> {
    let all = std::env::vars_os();
    let text = all.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    text.filter(|(name, _)| !name.starts_with("PLIMSOLL_")).collect()
}

/// The folder for temporary files.
pub(crate) fn temporary_folder() -> PathBuf {
    std::env::temp_dir()
}

/// The file of this program.
pub(crate) fn program() -> PathBuf {
    // Linux names it even where the file was replaced or removed.
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe"))
}

/// Values that a run takes from its environment, besides its flags.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunEnvironment {
    /// The seed of a run without `--seed`.
    pub(crate) seed: u64,
    /// `SSLKEYLOGFILE`.
    pub(crate) key_log: Option<PathBuf>,
    /// Settings in variables, by the names of the variables.
    pub(crate) settings: Vec<(String, String)>,
    /// `LUA_PATH`.
    pub(crate) lua_path: Option<String>,
    /// `true` if the output of scripts is not shown.
    pub(crate) quiet: bool,
    /// `true` if scripts are only read, and not run.
    pub(crate) only_reads: bool,
    /// Where files that flags name have to lie.
    pub(crate) confined_to: Option<Confinement>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_locale_that_is_set_says_what_letters_there_are() {
        let unicode = |set: &[(&str, &str)]| {
            let value = |name: &str| set.iter().find(|(known, _)| *known == name);
            is_unicode(|name| value(name).map(|(_, value)| (*value).to_owned()))
        };
        assert!(unicode(&[]), "nothing is said in a container");
        assert!(unicode(&[("LANG", "en_GB.UTF-8")]) && unicode(&[("LC_ALL", "C.utf8")]));
        assert!(unicode(&[("LC_ALL", ""), ("LANG", "C.UTF-8")]));
        assert!(!unicode(&[("LC_ALL", "C"), ("LANG", "en_GB.UTF-8")]), "who asks for C gets ASCII");
        assert!(!unicode(&[("LANG", "POSIX")]) && !unicode(&[("LC_CTYPE", "de_DE.ISO-8859-1")]));
    }
}
