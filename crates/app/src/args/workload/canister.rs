//! The flags of `plimsoll canister`.

pub(crate) mod service;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use plimsoll_core::Nanos;
use plimsoll_document::Problem;
use plimsoll_ic::{BadPrincipal, Identity, Principal};
use plimsoll_schedule::parse_duration;
use plimsoll_workloads::canister::{Api, Argument, CanisterLoad};

use crate::args::run::RunArgs;
use crate::args::share::parse_percent;
use crate::base::files::typed_text;

/// Default length of a run.
const SECONDS: f64 = 10.0;

#[derive(Debug, Args)]
// The short names are those that the Internet Computer's generator has.
#[command(mut_arg("iterations", |arg| arg.short(None)))]
#[command(mut_arg("max_concurrent_streams", |arg| arg.short(None)))]
#[command(mut_arg("rate", |arg| arg.short('r').help("Calls per second, fractions allowed")))]
#[command(mut_arg("prometheus", |arg| arg.short('p').alias("pport")))]
pub(crate) struct CanisterArgs {
    #[command(flatten)]
    calls: CallArgs,
    #[command(flatten)]
    install: InstallArgs,
    #[command(flatten)]
    identity: IdentityArgs,
    #[command(flatten)]
    replica: ReplicaArgs,
    #[command(flatten)]
    pub(crate) summary: SummaryArgs,
    /// Print the plan that the flags make, and exit
    #[arg(long, help_heading = "Calls")]
    pub(crate) print_plan: bool,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Calls")]
struct CallArgs {
    /// Length of the load in seconds: another name of --duration [default: 10]
    #[arg(short = 'n', long, value_name = "SECONDS", conflicts_with_all = ["duration", "iterations", "stages"])]
    seconds: Option<f64>,
    /// The canister, a principal as text
    #[arg(long, value_name = "ID", default_value = "aaaaa-aa")]
    canister_id: String,
    /// Kind of call
    #[arg(short = 'm', long, value_enum, ignore_case = true, value_name = "CALL", default_value = "Query")]
    call: CallName,
    /// Update the canister: another name of -m Update
    #[arg(short = 'u', long, conflicts_with = "call")]
    update: bool,
    /// Method of the canister [default: read; of updates: write]
    #[arg(long, value_name = "NAME")]
    call_method: Option<String>,
    /// The argument: bytes in hexadecimal [default: none]
    #[arg(long, value_name = "HEX")]
    payload: Option<String>,
    /// An argument of this many bytes instead: zeros, unless they are to be random
    #[arg(long, value_name = "SIZE", conflicts_with = "payload")]
    payload_size: Option<String>,
    /// Random bytes in each argument, new ones each time [default size: 256]
    #[arg(long, conflicts_with = "payload")]
    random_query_payload: bool,
    /// Text in the nonces of updates: `inc VALUE 17` [default: bytes of the run and the message]
    ///
    /// That is how the Internet Computer's generator writes them. At most 14 bytes; queries have a nonce with
    /// --query-nonce only.
    #[arg(long, value_name = "VALUE")]
    nonce: Option<String>,
    /// Give each query a nonce, as updates have, so that caches do not mix them up
    #[arg(long)]
    query_nonce: bool,
}

/// Flags of the Internet Computer's generator with which it installs a canister.
#[derive(Debug, Args)]
struct InstallArgs {
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    canister: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    install_endpoint: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Identity")]
struct IdentityArgs {
    /// A PEM file with the key that signs, Ed25519, secp256k1 or P-256 [default: no signatures]
    #[arg(long, value_name = "FILE")]
    pem_file: Option<PathBuf>,
    /// The principal that the key has to have
    #[arg(long, value_name = "ID", requires = "pem_file")]
    principal_id: Option<String>,
    /// Threads per worker that sign messages before they are due
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    signers: u32,
    /// Make this many messages before the load, and send them first [default: those of the next 100 ms,
    /// always]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    presign: u64,
    /// Validity of messages, 10s to 5m [default: 4m]
    #[arg(long, value_name = "TIME")]
    expiry: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Replicas")]
struct ReplicaArgs {
    /// Version of the endpoints: v2 accepts updates, whose outcome is polled, v3 and v4 answer them at once
    /// if they can
    #[arg(long, value_enum, value_name = "VERSION", default_value = "v4")]
    api: ApiName,
    /// Host name for requests to replicas, instead of that of the URL
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Limit for the answer to a query, and to the submission of an update
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, conflicts_with = "timeout")]
    query_timeout_secs: f64,
    /// Limit for the outcome of an update, once it is submitted
    #[arg(long, value_name = "SECONDS", default_value_t = 240.0)]
    ingress_timeout_secs: f64,
    /// The first pause between polls of the outcome; it grows by half each time, up to 5s
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    poll_every: String,
    /// Begin at once, and do not wait until each replica is healthy
    #[arg(long)]
    pub(crate) no_status_check: bool,
    /// Time for replicas to become healthy
    #[arg(long, value_name = "TIME", default_value = "60s", conflicts_with = "no_status_check")]
    status_timeout: String,
    /// Verify a share of the certificates beside the load: signature, hash tree, time, canister
    ///
    /// One that does not prove the answer ends with exit code 6. Verifying one takes a millisecond.
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    verify: Option<f64>,
    /// The root key that certificates are verified with, a DER file or hexadecimal [default: the one that the
    /// first replica reports]
    #[arg(long, value_name = "FILE|HEX", requires = "verify")]
    root_key: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Summary")]
pub(crate) struct SummaryArgs {
    /// Write the summary to this new file, as the JSON of the Internet Computer's generator
    #[arg(long, value_name = "FILE")]
    pub(crate) summary_file: Option<PathBuf>,
    /// Print the figures so far every second
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) periodic_output: bool,
    /// Draw percentiles and a histogram below the summary, in this size
    #[arg(long, value_enum, ignore_case = true, value_name = "SIZE", default_value = "none")]
    pub(crate) chart_size: ChartSize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CallName {
    /// A query of --call-method.
    #[value(name = "Query")]
    Query,
    /// An update by --call-method.
    #[value(name = "Update")]
    Update,
    /// The counter of a counter canister is read.
    #[value(name = "QueryCounter")]
    QueryCounter,
    /// The counter of a counter canister is increased.
    #[value(name = "UpdateCounter")]
    UpdateCounter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ApiName {
    V2,
    V3,
    V4,
}

/// Size of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChartSize {
    /// No charts.
    None,
    Small,
    Medium,
    Large,
}

impl ChartSize {
    /// Characters of the longest bar, and bars of a histogram; `None` where nothing is drawn.
    pub(crate) const fn cells(self) -> Option<(usize, usize)> {
        match self {
            Self::None => None,
            Self::Small => Some((30, 8)),
            Self::Medium => Some((50, 12)),
            Self::Large => Some((80, 20)),
        }
    }
}

/// Certificates that are verified.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct VerifySpec {
    /// Their share, 0 to 1.
    pub(crate) share: f64,
    /// The root key as DER, if it is not the one that the first replica reports.
    pub(crate) root_key: Option<Vec<u8>>,
    /// The canister that they have to be about.
    pub(crate) canister: Principal,
}

/// Returns `true` for a flag that the Internet Computer's generator has, and no other load in this form: long
/// ones are those of all loads.
pub(crate) fn is_of_other(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    let is_short = |flag: &&str| word.strip_prefix(*flag).is_some_and(|rest| rest.parse::<f64>().is_ok());
    ["-n", "-r", "-m", "-u", "--nonce", "--call-method", "--no-status-check"].contains(&name)
        || ["-n", "-r"].iter().any(is_short)
}

/// What the Internet Computer's generator does otherwise, for a command line with its flags; `None` if the
/// line says all of it itself.
pub(crate) fn differences(words: &[impl AsRef<str>]) -> Option<String> {
    let typed = |flags: &[&str]| {
        words.iter().any(|word| {
            let (name, _) = word.as_ref().split_once('=').unwrap_or((word.as_ref(), ""));
            let with_value =
                |flag: &&str| flag.len() == 2 && name.starts_with(*flag) && !name.starts_with("--");
            flags.contains(&name) || flags.iter().any(with_value)
        })
    };
    let is_tls = words.iter().any(|word| word.as_ref().starts_with("https:"));
    let protocol = ["--http2", "--http1.1", "--http2-prior-knowledge", "--alpn"];
    let differences = [
        (!typed(&protocol) && !is_tls, "speaks HTTP/2 (--http2), and this load HTTP/1.1"),
        (!typed(&["--pem-file"]), "signs each message, and this load only with --pem-file FILE"),
        (
            !typed(&["-r", "--rate", "--stages"]),
            "has a rate without -r, too, and this load is then as fast as it is answered",
        ),
        (
            !typed(&["-n", "-d", "--duration", "--iterations", "--stages"]),
            "has 600 s without -n, and this load 10 s",
        ),
        (
            !typed(&["--query-timeout-secs", "--timeout"]),
            "waits 300 s for an answer, and this load 30 s (--query-timeout-secs)",
        ),
        (
            typed(&["-u", "--update"]) && !typed(&["--ingress-timeout-secs"]),
            "waits 360 s for an update, and this load 240 s",
        ),
    ];
    let told: Vec<&str> = differences.iter().filter(|(is_told, _)| *is_told).map(|(_, text)| *text).collect();
    (!told.is_empty()).then(|| format!("the Internet Computer's generator {}", told.join("; it ")))
}

fn percent(text: &str) -> Result<f64, String> {
    let share = parse_percent(text).filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "write a share above 0 and at most 100%, such as 1%".to_owned())
}

impl InstallArgs {
    fn refuse(&self) -> Result<(), Problem> {
        let flags = [("--canister", &self.canister), ("--install-endpoint", &self.install_endpoint)];
        let Some((flag, _)) = flags.into_iter().find(|(_, given)| given.is_some()) else { return Ok(()) };
        let problem = Problem::new(format!("{flag}: nothing is installed here"));
        Err(problem.with_hint("install the canister before the load, and name it with --canister-id"))
    }
}

impl CanisterArgs {
    /// The workload that the flags describe.
    pub(crate) fn to_load(&self) -> Result<CanisterLoad, Problem> {
        let (calls, identity, replica) = (&self.calls, &self.identity, &self.replica);
        self.install.refuse()?;
        let canister = principal("--canister-id", &calls.canister_id)?;
        self.check_identity()?;
        let updates = self.updates();
        if updates && calls.query_nonce {
            let problem = Problem::new("--query-nonce has no effect: every update has a nonce");
            return Err(problem.with_hint("leave it out; --nonce VALUE is text in the nonces"));
        }
        let is_counter = matches!(calls.call, CallName::QueryCounter | CallName::UpdateCounter);
        if is_counter && calls.call_method.is_some() {
            let problem = Problem::new(
                "--call-method has no effect: a counter is read with `read`, `write` increases it",
            );
            return Err(problem.with_hint("write -m Query or -m Update for another method"));
        }
        let method = match (&calls.call_method, updates) {
            (Some(method), _) => method.clone(),
            (None, false) => "read".to_owned(),
            (None, true) => "write".to_owned(),
        };
        let argument = match (&calls.payload, &calls.payload_size, calls.random_query_payload) {
            (Some(hex), ..) => Argument::Hex(hex.clone()),
            (None, None, false) => Argument::Hex(String::new()),
            (None, size, random) => Argument::Size(size.clone().unwrap_or_else(|| "256".to_owned()), random),
        };
        let seconds = |flag: &str, seconds: f64| match seconds > 0.0 && seconds.is_finite() {
            true => Ok(format!("{seconds}s")),
            false => Err(Problem::new(format!("{flag} {seconds}: there is no such time"))
                .with_hint("write a number above 0")),
        };
        let duration = match (calls.seconds, self.run.plan.has_end()) {
            (None, true) => None,
            (length, _) => Some(seconds("-n", length.unwrap_or(SECONDS))?),
        };
        Ok(CanisterLoad {
            urls: self
                .run
                .plan
                .urls()
                .iter()
                .flat_map(|urls| urls.split(','))
                .map(server)
                .collect::<Result<_, _>>()?,
            api: match replica.api {
                ApiName::V2 => Api::V2,
                ApiName::V3 => Api::V3,
                ApiName::V4 => Api::V4,
            },
            // In the usual notation, in whatever form it was given.
            canister: canister.to_string(),
            updates,
            method,
            argument,
            nonce: calls.query_nonce.then_some(true),
            nonce_text: calls.nonce.clone().filter(|_| updates || calls.query_nonce),
            pem_file: identity.pem_file.as_ref().map(|path| path.display().to_string()),
            expiry: identity.expiry.clone(),
            signers: identity.signers,
            duration,
            query_timeout: seconds("--query-timeout-secs", replica.query_timeout_secs)?,
            ingress_timeout: seconds("--ingress-timeout-secs", replica.ingress_timeout_secs)?,
            poll_every: replica.poll_every.clone(),
            host: replica.host.clone(),
        })
    }

    /// Returns `true` if updates are called.
    fn updates(&self) -> bool {
        self.calls.update || matches!(self.calls.call, CallName::Update | CallName::UpdateCounter)
    }

    /// Returns notes on flags that have no effect, and none in the Internet Computer's generator either: its
    /// command lines run as they are.
    pub(crate) fn notes(&self) -> Option<&'static str> {
        let idle = self.calls.nonce.is_some() && !self.calls.query_nonce && !self.updates();
        idle.then_some(
            "--nonce is about updates, and has no effect here: --query-nonce gives queries one, too",
        )
    }

    /// Returns the time that replicas have to become healthy; `None` if their status is not checked.
    pub(crate) fn status_timeout(&self) -> Result<Option<Nanos>, Problem> {
        if self.replica.no_status_check {
            return Ok(None);
        }
        let parsed = parse_duration(&self.replica.status_timeout);
        parsed.map(Some).map_err(|error| Problem::new(format!("--status-timeout: {error}")))
    }

    /// Returns `true` if a root key is given.
    pub(crate) const fn has_root_key(&self) -> bool {
        self.replica.root_key.is_some()
    }

    /// Which certificates are verified, if any are.
    pub(crate) fn verify(&self) -> Result<Option<VerifySpec>, Problem> {
        let Some(share) = self.replica.verify else { return Ok(None) };
        let canister = principal("--canister-id", &self.calls.canister_id)?;
        let root_key = self.replica.root_key.as_deref().map(root_key).transpose()?;
        Ok(Some(VerifySpec { share, root_key, canister }))
    }

    /// Messages that are made before the load.
    pub(crate) const fn presign(&self) -> u64 {
        self.identity.presign
    }

    /// Checks that the key belongs to the principal that is named.
    fn check_identity(&self) -> Result<(), Problem> {
        let (Some(file), Some(named)) = (&self.identity.pem_file, &self.identity.principal_id) else {
            return Ok(());
        };
        let named = principal("--principal-id", named)?;
        let shown = file.display();
        let text = typed_text(file)
            .map_err(|error| Problem::new(format!("--pem-file: cannot read `{shown}`: {error}")))?;
        let identity = Identity::from_pem(&text).map_err(|bad| {
            Problem::new(format!("--pem-file `{shown}`: {}", bad.problem)).with_hint(bad.hint)
        })?;
        let own = identity.sender();
        if own != named {
            let problem =
                Problem::new(format!("--principal-id: the key in `{shown}` is of {own}, not of {named}"));
            return Err(problem.with_hint("name the key's own principal, or leave it out"));
        }
        Ok(())
    }
}

/// A principal that a flag names.
fn principal(flag: &str, text: &str) -> Result<Principal, Problem> {
    text.parse()
        .map_err(|bad: BadPrincipal| Problem::new(format!("{flag}: {}", bad.problem)).with_hint(bad.hint))
}

/// The URL of a replica without the slash at its end.
fn server(text: &str) -> Result<String, Problem> {
    let text = text.trim();
    if ["http://", "https://"].iter().any(|scheme| text.to_ascii_lowercase().starts_with(scheme)) {
        return Ok(text.trim_end_matches('/').to_owned());
    }
    let problem = Problem::new(format!("`{text}` is not a URL of a replica"));
    Err(problem.with_hint("write it as in http://127.0.0.1:8080; several are joined by commas"))
}

/// A key in hexadecimal, or in a file.
fn root_key(text: &str) -> Result<Vec<u8>, Problem> {
    let is_hex =
        text.len() > 64 && text.len().is_multiple_of(2) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hex {
        let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or_default() as u8;
        return Ok(text
            .as_bytes()
            .as_chunks::<2>()
            .0
            .iter()
            .map(|[a, b]| digit(*a) << 4 | digit(*b))
            .collect());
    }
    std::fs::read(text).map_err(|error| {
        let problem = Problem::new(format!("--root-key: cannot read `{text}`: {error}"));
        problem.with_hint("name a DER file with the key, or write it in hexadecimal")
    })
}
