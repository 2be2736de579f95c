//! The flags of `plimsoll ingest demo`.

use clap::{Args, ValueEnum};
use plimsoll_document::{Problem, RawValue};
use plimsoll_plan::PlanPatch;
use plimsoll_workloads::ingest::DEFAULT_URL;

use crate::args::instant::instant;
use crate::args::setting::{SettingArgs, TlsSection};

const ALPN_HELP: &str =
    "Offer these protocols, the preferred one first: h2, http/1.1 [default: http/1.1]; the server chooses";

#[derive(Debug, Args)]
#[command(mut_arg("alpn", |arg| arg.long_help(ALPN_HELP)))]
pub(crate) struct IngestDemoArgs {
    #[command(flatten)]
    pub(crate) story: StoryArgs,
    #[command(flatten)]
    pub(crate) store: DemoStoreArgs,
    #[command(flatten)]
    pub(crate) tls: SettingArgs<TlsSection>,
    #[command(flatten)]
    pub(crate) output: DemoOutputArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Story")]
pub(crate) struct StoryArgs {
    /// The story
    #[arg(long, value_enum, value_name = "NAME", default_value_t = Scenario::MarketingCampaign)]
    pub(crate) scenario: Scenario,
    /// When the campaign begins: milliseconds since 1970, RFC 3339 or '30 minutes ago' [default: an hour ago]
    ///
    /// The story begins half an hour before it and ends an hour after it. The default is a whole minute.
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    campaign_time: Option<String>,
    /// Seed of the story
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with_all = ["queries_only", "print_queries"])]
    pub(crate) seed: u64,
    /// Send nothing, and query the story in the store [default --campaign-time: that of the latest one]
    #[arg(long)]
    pub(crate) queries_only: bool,
    /// Print the queries in SQL, and exit
    #[arg(long)]
    pub(crate) print_queries: bool,
}

/// The destination of the story.
#[derive(Debug, Args)]
#[command(next_help_heading = "Store")]
pub(crate) struct DemoStoreArgs {
    /// The store: scheme, host and port
    #[arg(long, value_name = "URL", default_value = DEFAULT_URL)]
    url: String,
    /// Token for the store, with read and write permission; @FILE reads it from a file
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Prefix of the databases' names: PREFIX_events, _metrics, _logs and _traces
    #[arg(long, value_name = "PREFIX", default_value = "demo")]
    pub(crate) database: String,
}

#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct DemoOutputArgs {
    /// Format on stdout
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = DemoOutputFormat::Text)]
    pub(crate) output: DemoOutputFormat,
    /// No messages on stderr
    #[arg(long)]
    pub(crate) quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoOutputFormat {
    /// For people
    Text,
    /// For programs: all of it, with the questions in SQL
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// Half an hour of quiet, of campaign, and of its end
    MarketingCampaign,
}

impl StoryArgs {
    /// When the campaign begins, in milliseconds since the epoch, if it is given.
    ///
    /// # Errors
    /// It is not a time.
    pub(crate) fn campaign_ms(&self) -> Result<Option<u64>, Problem> {
        let Some(text) = &self.campaign_time else { return Ok(None) };
        let text = text.trim();
        if let Ok(millis) = text.parse() {
            return Ok(Some(millis));
        }
        let nanos = instant("--campaign-time", text.strip_suffix(" ago").unwrap_or(text));
        let hint = "write 1767225600000 (milliseconds), 2026-01-01T00:00:00Z or '30 minutes ago'";
        nanos.map(|nanos| Some(nanos / 1_000_000)).map_err(|problem| problem.with_hint(hint))
    }
}

impl DemoStoreArgs {
    /// Scheme, host and port of the store.
    ///
    /// # Errors
    /// There is something behind them.
    pub(crate) fn origin(&self) -> Result<&str, Problem> {
        let origin = self.url.strip_suffix('/').unwrap_or(&self.url);
        let host = origin.find("://").map_or(0, |scheme| scheme + 3);
        if !origin[host..].contains(['/', '?', '#']) {
            return Ok(origin);
        }
        let problem = Problem::new(format!("--url: `{}` has a path", self.url.escape_debug()));
        Err(problem.with_hint(format!("the paths are those of Arc's API: write it as in {DEFAULT_URL}")))
    }
}

impl IngestDemoArgs {
    /// Returns the flags for reaching the store.
    pub(crate) fn to_patch(&self) -> PlanPatch {
        let bearer = self.store.token.as_deref().map(|token| RawValue::new("--token", token));
        PlanPatch { bearer, ..self.tls.patch.clone() }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::cli::Cli;
    use crate::args::cli::Command;
    use crate::args::workload::WorkloadCommand;
    use crate::args::workload::ingest::InsteadOfLoad;

    fn parsed(args: &[&str]) -> IngestDemoArgs {
        let line = ["plimsoll", "ingest", "demo"].iter().chain(args);
        let Command::Workload(WorkloadCommand::Ingest(ingest)) = Cli::try_parse_from(line).unwrap().command
        else {
            panic!("no ingest")
        };
        let Some(InsteadOfLoad::Demo(demo)) = ingest.instead else { panic!("no demo") };
        *demo
    }

    #[test]
    fn a_campaign_begins_at_a_number_a_date_or_so_long_ago() {
        let begins = |text| parsed(&["--campaign-time", text]).story.campaign_ms();
        assert_eq!(begins("1730282400123").unwrap(), Some(1_730_282_400_123));
        assert_eq!(begins("2024-10-30T10:00:00Z").unwrap(), Some(1_730_282_400_000));
        assert_eq!(begins(" 2024-10-30 ").unwrap(), Some(1_730_246_400_000));
        let (long, short) = (begins("2 hours ago").unwrap().unwrap(), begins("30m").unwrap().unwrap());
        // Both count back from now, which has moved on in between.
        assert!(short - long >= 5_400_000, "{long} {short}");
        assert_eq!(parsed(&[]).story.campaign_ms().unwrap(), None);
        assert!(begins("-5").unwrap_err().hint.unwrap().contains("1767225600000"));
    }

    #[test]
    fn flags_say_where_the_store_is_and_how_it_is_reached() {
        let args =
            parsed(&["--url", "https://h:1/", "--token", "t", "-k", "--cacert", "ca.pem", "--tls", "1.3"]);
        assert_eq!(args.store.origin().unwrap(), "https://h:1");
        let patch = args.to_patch();
        let texts = [patch.bearer, patch.cacert, patch.tls].map(|given| given.unwrap().text);
        assert_eq!(texts, ["t", "ca.pem", "1.3"]);
        assert!(patch.insecure.is_on());
        for bad in ["http://h/x", "http://h//", "http://h?a", "h/x"] {
            assert!(parsed(&["--url", bad]).store.origin().is_err(), "{bad}");
        }
    }
}
