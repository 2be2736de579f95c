//! The flags that say how a run may be steered while it goes on.

use core::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use plimsoll_core::Rate;
use plimsoll_document::{Problem, Problems, RawValue};
use plimsoll_plan::{PlanPatch, named_text};
use plimsoll_schedule::parse_rate;

use crate::args::setting::{ControlSection, SettingArgs};
use crate::base::handed_values::HandedValues;

/// The flags, as they were given.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Control")]
pub(crate) struct ControlArgs {
    #[command(flatten)]
    settings: SettingArgs<ControlSection>,
    /// Token that requests to --control have to bear, or @file
    ///
    /// They send `Authorization: Bearer TOKEN`. It is required for addresses other than those of loopback.
    #[arg(long, value_name = "TOKEN", hide_short_help = true)]
    control_token: Option<String>,
    /// Do not listen to keys on the terminal: + and - for the rate, p to pause, q to stop
    #[arg(long, hide_short_help = true)]
    no_keys: bool,
    /// Show a line of progress in place of the live screen
    ///
    /// The screen is shown where stdin and stderr are a terminal that is large enough, unless --quiet,
    /// --no-keys or --stats - is given, or one of the variables PLIMSOLL_NO_TUI and CI is set.
    #[arg(long, hide_short_help = true)]
    no_tui: bool,
    /// End with stdin, as if by SIGTERM: for runs that are started by another process
    #[arg(long, hide = true)]
    end_with_stdin: bool,
    /// Write each interval to stdout, and leave the judging of thresholds during the run to the reader
    #[arg(long, hide = true)]
    tell_intervals: bool,
}

/// Ways to steer a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ControlSpec {
    /// The file to watch.
    pub(crate) rate_file: Option<PathBuf>,
    /// `true` if the rate in the file is that of every connection, in requests.
    pub(crate) per_connection: bool,
    /// The address to listen on.
    pub(crate) listen: Option<SocketAddr>,
    /// Token that requests have to bear.
    pub(crate) token: Option<String>,
    /// `true` if GET /config changes the rate without a token.
    pub(crate) h2loadrunner: bool,
    /// The highest rate that may be set.
    pub(crate) max_rate: Option<Rate>,
    /// `true` if keys on the terminal steer the run, too.
    pub(crate) keys: bool,
    /// `true` if there may be a live screen.
    pub(crate) screen: bool,
    /// `true` if the run ends with stdin.
    pub(crate) ends_with_stdin: bool,
    /// `true` if each interval is written to stdout, for a process that judges the sum of several runs.
    pub(crate) tells_intervals: bool,
    /// Values of a setup that another process has carried out, and may replace.
    pub(crate) handed: Option<HandedValues>,
}

impl ControlArgs {
    /// The flags that a plan can express.
    pub(crate) fn settings(&self) -> &SettingArgs<ControlSection> {
        &self.settings
    }

    /// Returns true if a flag was given that no plan can express.
    pub(crate) fn is_beside_plans(&self) -> bool {
        self.control_token.is_some()
    }

    /// Reads the flags, and what a plan asks for where nothing was typed.
    ///
    /// # Errors
    /// All problems with them.
    pub(crate) fn to_spec(&self, plan: Option<&PlanPatch>) -> Result<ControlSpec, Problems> {
        let mut problems = Problems::default();
        let mut note = |problem| problems.push(problem);
        let settings = &self.settings.or(plan).patch;
        let text = |given: &Option<RawValue>| given.as_ref().map(|given| given.text.clone());
        let h2loadrunner = settings.control_h2loadrunner.is_on();
        let listen = text(&settings.control).and_then(|text| match address(&text) {
            Some(address) => Some(address),
            None => {
                let message = format!("--control: `{}` is not an address and a port", text.escape_debug());
                note(Problem::new(message).with_hint("write 127.0.0.1:8080, or 127.0.0.1:0 for a free port"));
                None
            }
        });
        let token = self.control_token.as_deref().and_then(|text| match token(text) {
            Ok(token) => Some(token),
            Err(problem) => {
                note(problem);
                None
            }
        });
        if settings.control.is_none() && self.control_token.is_some() {
            let message = "--control-token has no effect without --control";
            note(Problem::new(message).with_hint("add --control 127.0.0.1:0"));
        }
        if settings.control.is_none() && h2loadrunner {
            let message = "--control-h2loadrunner has no effect without --control";
            note(Problem::new(message).with_hint("add --control 127.0.0.1:8888, where h2loadrunner listens"));
        }
        let max_rate = text(&settings.max_rate).and_then(|text| match parse_rate(&text) {
            Ok(rate) => Some(rate),
            Err(error) => {
                note(Problem::new(format!("--max-rate: {error}")));
                None
            }
        });
        if max_rate.is_some() && self.no_keys && settings.control.is_none() && settings.rate_file.is_none() {
            let message = "--max-rate has no effect where nothing can set the rate";
            note(Problem::new(message).with_hint("add --control 127.0.0.1:0, or leave out --no-keys"));
        }
        if let Some(address) = listen.filter(|address| !address.ip().is_loopback())
            && self.control_token.is_none()
        {
            let message = format!("--control: at {address} anyone on the network could steer this run");
            note(Problem::new(message).with_hint("add --control-token TOKEN, or listen on 127.0.0.1"));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(ControlSpec {
            rate_file: text(&settings.rate_file).map(PathBuf::from),
            per_connection: plan.is_some_and(|plan| plan.rps.is_some()),
            listen,
            token,
            h2loadrunner,
            max_rate,
            keys: !self.no_keys,
            screen: !self.no_tui,
            ends_with_stdin: self.end_with_stdin,
            tells_intervals: self.tell_intervals,
            handed: None,
        })
    }
}

/// An address and a port; `localhost` is that of IPv4.
pub(crate) fn address(text: &str) -> Option<SocketAddr> {
    match text.strip_prefix("localhost:") {
        Some(port) => Some((Ipv4Addr::LOCALHOST, port.parse().ok()?).into()),
        None => text.parse().ok(),
    }
}

/// The token itself, or the first line of `@file`. It has to fit into a header field.
fn token(text: &str) -> Result<String, Problem> {
    let token = match text.strip_prefix('@') {
        Some(path) => {
            let content = named_text(path.as_ref()).map_err(|error| {
                Problem::new(format!("--control-token: cannot read {}: {error}", path.escape_debug()))
            })?;
            content.lines().next().unwrap_or_default().trim().to_owned()
        }
        None => text.to_owned(),
    };
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let message = "--control-token: a token is one word of visible ASCII characters";
        return Err(Problem::new(message).with_hint("make one with `openssl rand -hex 16`"));
    }
    Ok(token)
}

#[cfg(test)]
mod tests {
    use plimsoll_plan::Switch;

    use super::*;

    fn of(patch: PlanPatch) -> ControlArgs {
        ControlArgs { settings: patch.into(), ..ControlArgs::default() }
    }

    fn spec(control: Option<&str>, token: Option<&str>) -> Result<ControlSpec, Vec<String>> {
        let control = control.map(|text| RawValue::new("--control", text));
        let args = ControlArgs {
            control_token: token.map(ToOwned::to_owned),
            ..of(PlanPatch { control, ..PlanPatch::default() })
        };
        args.to_spec(None)
            .map_err(|problems| problems.iter().map(|problem| problem.message.clone()).collect())
    }

    #[test]
    fn addresses_are_read_and_off_loopback_a_token_is_needed() {
        for (text, expected) in [
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("localhost:81", "127.0.0.1:81"),
            ("[::1]:80", "[::1]:80"),
            ("127.3.2.1:80", "127.3.2.1:80"),
        ] {
            assert_eq!(spec(Some(text), None).unwrap().listen, Some(expected.parse().unwrap()), "{text}");
        }
        for text in ["0.0.0.0:80", "[::]:80", "192.0.2.1:80"] {
            let problems = spec(Some(text), None).unwrap_err();
            assert!(problems[0].contains("anyone"), "{problems:?}");
            assert_eq!(spec(Some(text), Some("x")).unwrap().token.as_deref(), Some("x"));
        }
        for text in ["", "80", ":80", "127.0.0.1", "example.test:80", "127.0.0.1:99999"] {
            let problems = spec(Some(text), None).unwrap_err();
            assert!(problems[0].contains("not an address"), "{text}: {problems:?}");
        }
    }

    #[test]
    fn what_has_no_effect_is_refused() {
        let problems = |args: ControlArgs| {
            let problems = args.to_spec(None).expect_err("it has no effect");
            problems.iter().map(|problem| problem.message.clone()).collect::<Vec<_>>()
        };
        let found =
            problems(of(PlanPatch { control_h2loadrunner: Switch::on("flag"), ..PlanPatch::default() }));
        assert_eq!(found, ["--control-h2loadrunner has no effect without --control"]);
        let max_rate = |text: &str| {
            let max_rate = Some(RawValue::new("--max-rate", text));
            of(PlanPatch { max_rate, ..PlanPatch::default() })
        };
        let args = ControlArgs { no_keys: true, ..max_rate("5k") };
        assert_eq!(problems(args), ["--max-rate has no effect where nothing can set the rate"]);
        let spec = max_rate("5k").to_spec(None).unwrap();
        assert_eq!(spec.max_rate, Some(Rate::per_second(5_000)));
        for wrong in ["fast", "0", "-5"] {
            assert!(problems(max_rate(wrong))[0].starts_with("--max-rate: "), "{wrong}");
        }
    }

    #[test]
    fn all_problems_come_at_once() {
        let problems = spec(Some("x"), Some("two words")).unwrap_err();
        assert_eq!(problems.len(), 2, "{problems:?}");
        let problems = spec(None, Some("@/nonexistent/token")).unwrap_err();
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert_eq!(spec(None, None), Ok(ControlSpec { keys: true, screen: true, ..ControlSpec::default() }));
    }
}
