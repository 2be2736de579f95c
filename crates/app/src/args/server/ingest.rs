//! The flags of `plimsoll target ingest`.

use clap::Args;
use plimsoll_document::Problems;
use plimsoll_plan::{BackendChoice, parse_backend, parse_size};
use plimsoll_schedule::parse_duration;
use plimsoll_targets::ingest::{IngestOptions, Lie, LieKind, Permissions, Token};

use crate::args::server::sink::{PlaceArgs, parse_seed};
use crate::args::server::sink_values::{self, Reader, parse_delay, parse_fail, parse_share, whole};

#[derive(Debug, Args)]
#[command(mut_arg("listen", |listen| listen.default_value("127.0.0.1:8000")))]
pub(crate) struct IngestArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// Token and its permissions; repeatable. Without one every client has all permissions
    ///
    /// A token alone may do everything. TOKEN:read, TOKEN:write and TOKEN:read,write may do that; flushing
    /// takes admin. Requests bring it in Authorization (as Bearer, Token, or bare) or in x-api-key.
    #[arg(long = "token", value_name = "TOKEN[:PERMISSIONS]")]
    tokens: Vec<String>,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    fault: FaultArgs,
    /// System interface: auto, epoll or uring
    #[arg(long, value_name = "NAME", default_value = "auto", help_heading = "Connection")]
    backend: String,
    /// No messages on stderr
    #[arg(long, help_heading = "Output")]
    quiet: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Store")]
struct StoreArgs {
    /// Time from the first row of a buffer until queries see its rows
    #[arg(long, value_name = "TIME", default_value = "5s", allow_negative_numbers = true)]
    flush_delay: String,
    /// Rows of a measurement's buffer at which it is flushed at once
    #[arg(long, value_name = "ROWS", default_value = "50k", allow_negative_numbers = true)]
    flush_rows: String,
    /// Rows of a measurement that are kept with their values; the others are counted, and their values null
    #[arg(long, value_name = "ROWS", default_value = "1m", allow_negative_numbers = true)]
    keep: String,
    /// Memory that all values may take; beyond it the oldest are dropped
    #[arg(long, value_name = "SIZE", default_value = "1GiB", allow_negative_numbers = true)]
    max_memory: String,
    /// Most bytes of a payload, as it came and without compression; at most 16MiB
    #[arg(long, value_name = "SIZE", default_value = "16MiB", allow_negative_numbers = true)]
    max_payload: String,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Faults")]
struct FaultArgs {
    /// Treat a share of the writes wrongly: lose, duplicate, late or unacknowledged, such as lose:2%
    ///
    /// `lose` acknowledges a write and throws it away, `duplicate` stores it twice, `late` never flushes it,
    /// `unacknowledged` stores it and resets the connection. Without a share it is 1%. GET
    /// /plimsoll/acknowledged and the last message report each.
    #[arg(long, value_name = "KIND[:SHARE]")]
    lie: Option<String>,
    /// Share of writes that are answered with another status and not stored, such as 7%:503; repeatable
    #[arg(long = "fail", value_name = "SHARE:STATUS")]
    fails: Vec<String>,
    /// Share of writes whose connection is reset, and which are not stored
    #[arg(long, value_name = "SHARE")]
    reset: Option<String>,
    /// Duration of a write, such as constant:1ms
    ///
    /// One of constant:1ms, exponential:1ms (mean), lognormal:1ms,0.5 (median, sigma of the logarithm) and
    /// bimodal:1ms,10ms,0.1 (usual, other, probability of the other).
    #[arg(long, value_name = "LAW")]
    delay: Option<String>,
    /// Refuse writes as a full disk does after this many bytes of payload
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true)]
    full_after: Option<String>,
    /// Seed of every random choice
    #[arg(long, value_name = "SEED", default_value = "0", allow_negative_numbers = true)]
    seed: String,
}

/// Settings of an ingest server.
#[derive(Debug)]
pub(crate) struct IngestSpec {
    pub(crate) options: IngestOptions,
    pub(crate) backend: BackendChoice,
    pub(crate) quiet: bool,
}

impl IngestArgs {
    /// Parses and checks the flags of an ingest server; reports all problems at once.
    pub(crate) fn to_spec(&self) -> Result<IngestSpec, Problems> {
        let mut reader = Reader::default();
        let place = self.place.read(&mut reader);
        let mut options = IngestOptions::new(place.listen);
        options.threads = place.threads;
        options.duration = place.duration;
        let tokens = self.tokens.iter().map(|text| reader.read("--token", text, parse_token));
        options.tokens = tokens.collect::<Vec<_>>().into_iter().flatten().collect();
        self.store.read(&mut reader, &mut options);
        self.fault.read(&mut reader, &mut options);
        let backend = reader.read("--backend", &self.backend, parse_backend);
        let backend = reader.conclude(backend, || options.problems())?;
        Ok(IngestSpec { options, backend, quiet: self.quiet })
    }
}

impl StoreArgs {
    fn read(&self, reader: &mut Reader, options: &mut IngestOptions) {
        let count = |text: &str| whole(text, 0..=u64::MAX);
        if let Some(time) = reader.read("--flush-delay", &self.flush_delay, parse_duration) {
            options.flush_delay = time;
        }
        if let Some(rows) = reader.read("--flush-rows", &self.flush_rows, count) {
            options.flush_rows = rows;
        }
        if let Some(rows) = reader.read("--keep", &self.keep, count) {
            options.keep = rows;
        }
        if let Some(bytes) = reader.read("--max-memory", &self.max_memory, parse_size) {
            options.max_memory = bytes;
        }
        if let Some(bytes) = reader.read("--max-payload", &self.max_payload, parse_size) {
            options.max_payload = bytes;
        }
    }
}

impl FaultArgs {
    fn read(&self, reader: &mut Reader, options: &mut IngestOptions) {
        options.lie = reader.maybe("--lie", self.lie.as_ref(), parse_lie);
        for text in &self.fails {
            options.fails.extend(reader.read("--fail", text, |text| parse_fail(text, |_| None)).flatten());
        }
        options.reset = reader.maybe("--reset", self.reset.as_ref(), parse_share).unwrap_or(0.0);
        if let Some(delay) = reader.maybe("--delay", self.delay.as_ref(), parse_delay) {
            options.delay = delay;
        }
        options.full_after = reader.maybe("--full-after", self.full_after.as_ref(), parse_size);
        options.seed = reader.read("--seed", &self.seed, parse_seed).unwrap_or(0);
    }
}

/// `secret`, `secret:read,write`.
fn parse_token(text: &str) -> Result<Token, String> {
    let Some((token, names)) = text.rsplit_once(':') else {
        return Ok(Token { token: text.to_owned(), permissions: Permissions::ALL });
    };
    let mut permissions = Permissions::default();
    for name in names.split(',') {
        match name {
            "read" => permissions.read = true,
            "write" => permissions.write = true,
            "delete" => permissions.delete = true,
            "admin" => permissions = Permissions::ALL,
            _ => return Err(format!("`{name}` is not one of read, write, delete and admin")),
        }
    }
    Ok(Token { token: token.to_owned(), permissions })
}

/// `lose`, `late:2%`.
fn parse_lie(text: &str) -> Result<Lie, String> {
    let kinds = [
        ("lose", LieKind::Lose),
        ("duplicate", LieKind::Duplicate),
        ("late", LieKind::Late),
        ("unacknowledged", LieKind::Unacknowledged),
    ];
    sink_values::parse_lie(text, &kinds, "lose:2%")
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use plimsoll_core::Nanos;
    use plimsoll_driver::Endpoint;
    use plimsoll_plan::Disk;
    use plimsoll_targets::Delay;

    use super::*;
    use crate::args::cli::Cli;
    use crate::args::cli::Command;
    use crate::args::server::target::TargetSpec;

    fn spec(args: &[&str]) -> Result<IngestSpec, Problems> {
        let args = ["plimsoll", "target", "ingest"].iter().chain(args);
        let Command::Target(target) = Cli::try_parse_from(args).unwrap().command else {
            panic!("not a target")
        };
        target.to_spec(&Disk).map(|spec| match spec {
            TargetSpec::Ingest(spec) => spec,
            other => panic!("not an ingest server: {other:?}"),
        })
    }

    #[test]
    fn the_plain_server_is_as_the_real_one() {
        let options = spec(&[]).unwrap().options;
        assert_eq!(options.listen, Endpoint::Tcp(([127, 0, 0, 1], 8000).into()));
        assert_eq!((options.flush_delay, options.flush_rows), (Nanos::from_secs(5), 50_000));
        assert_eq!((options.keep, options.max_memory, options.max_payload), (1_000_000, 1 << 30, 16 << 20));
        assert_eq!((options.tokens, options.fails, options.lie), (vec![], vec![], None));
        assert_eq!((options.delay, options.reset, options.full_after), (Delay::None, 0.0, None));
    }

    #[test]
    fn what_is_given_is_taken() {
        let options = spec(&[
            "--token=secret",
            "--token",
            "r:read",
            "--token=a:b:read,write",
            "--flush-delay=200ms",
            "--flush-rows=10",
            "--keep=5k",
            "--max-memory=2MiB",
            "--max-payload=1MiB",
            "--lie=late:2.5%",
            "--fail=1%:503",
            "--fail=2%:429",
            "--reset=3%",
            "--delay=constant:1ms",
            "--full-after=1MB",
            "--seed=9",
            "-t2",
            "-d",
            "3s",
        ])
        .unwrap()
        .options;
        let token = |token: &str, permissions| Token { token: token.to_owned(), permissions };
        let reads = Permissions { read: true, ..Permissions::default() };
        let both = Permissions { write: true, ..reads };
        let all = [token("secret", Permissions::ALL), token("r", reads), token("a:b", both)];
        assert_eq!(options.tokens, all);
        assert_eq!((options.flush_delay, options.flush_rows), (Nanos::from_millis(200), 10));
        assert_eq!((options.keep, options.max_memory, options.max_payload), (5000, 2 << 20, 1 << 20));
        assert_eq!(options.lie, Some(Lie { kind: LieKind::Late, share: 0.025 }));
        assert_eq!((options.fails, options.reset), (vec![(503, 0.01), (429, 0.02)], 0.03));
        assert_eq!(
            (options.delay, options.full_after),
            (Delay::Constant(Nanos::from_millis(1)), Some(1_000_000))
        );
        assert_eq!((options.seed, options.threads, options.duration), (9, 2, Some(Nanos::from_secs(3))));
        assert_eq!(parse_lie("duplicate"), Ok(Lie { kind: LieKind::Duplicate, share: 0.01 }));
    }

    #[test]
    fn problems_are_told_at_once() {
        let problems = spec(&[
            "--listen=x",
            "--token=a:fly",
            "--flush-delay=?",
            "--flush-rows=-1",
            "--keep=x",
            "--max-memory=?",
            "--max-payload=?",
            "--lie=white",
            "--fail=x",
            "--reset=3",
            "--delay=x",
            "--full-after=x",
            "--seed=s",
            "--backend=b",
        ])
        .unwrap_err();
        assert_eq!(problems.iter().count(), 14, "{problems}");
        for bad in ["--flush-rows=0", "--max-payload=17MiB", "--token=", "--fail=101%:503", "--lie=lose:101%"]
        {
            assert_eq!(spec(&[bad]).unwrap_err().iter().count(), 1, "{bad}");
        }
    }
}
