//! `plimsoll target llm`: its flags, and what it says.

use std::path::PathBuf;

use clap::Args;
use plimsoll_app::{
    ANOTHER_PORT, Failure, PlaceArgs, Reader, RunningServer, ServerSpec, TargetServer, TargetServerArgs,
    parse_delay, parse_seed, parse_share, percent, self_signed, url, whole,
};
use plimsoll_core::{Nanos, figure};
use plimsoll_document::Problems;
use plimsoll_driver::KernelBackend;
use plimsoll_histogram::Histogram;
use plimsoll_plan::{BackendChoice, parse_backend};
use plimsoll_targets::{Delay, Stopper, Truth};

use crate::server::{LlmCounts, LlmOptions, LlmServer, StreamFaults};

/// The server as a subcommand of `plimsoll target`.
pub(crate) const SERVER: TargetServer = TargetServer::of::<LlmTargetArgs>("llm", SUMMARY, DETAILS);

const SUMMARY: &str = "A server of language models with the APIs of OpenAI, Anthropic and Ollama, whose answers \
     come token by token by a law of time";

const DETAILS: &str = "\
POST /v1/chat/completions, /v1/completions, /v1/responses, /v1/messages, /api/chat and \
/api/generate, streaming or not, with max_tokens or as the API names it, and \
stream_options.include_usage; GET /v1/models and /api/tags. There is no model behind it: the text is \
numbered words, one token each, and a prompt has a token for every four bytes.";

#[derive(Debug, Args)]
#[command(mut_arg("listen", |listen| listen.default_value("127.0.0.1:8000")))]
pub(crate) struct LlmTargetArgs {
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    answer: AnswerArgs,
    #[command(flatten)]
    fault: FaultArgs,
    /// Speak TLS with a certificate made for this process; clients have to go without verification (-k)
    #[arg(long, help_heading = "Connection")]
    self_signed: bool,
    /// System interface: auto, epoll or uring
    #[arg(long, value_name = "NAME", default_value = "auto", help_heading = "Connection")]
    backend: String,
    /// Write the true times of each completion to a CSV file
    ///
    /// One line each: name, number, when its request came, when it got its slot, how it ended, its tokens,
    /// and when each chunk with content was handed to the kernel. Times are on CLOCK_MONOTONIC, in
    /// nanoseconds.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    truth_log: Option<PathBuf>,
    /// No messages on stderr
    #[arg(long, help_heading = "Output")]
    quiet: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Answer")]
struct AnswerArgs {
    /// Name of the model, which requests have to ask for
    #[arg(long, value_name = "NAME", default_value = "plimsoll")]
    model: String,
    /// Time to the first content, such as constant:200ms
    ///
    /// From when the request has its slot. One of constant:1ms, exponential:1ms (mean), lognormal:1ms,0.5
    /// (median, sigma of the logarithm) and bimodal:1ms,10ms,0.1 (usual, other, probability of the other).
    #[arg(long, value_name = "LAW")]
    ttft: Option<String>,
    /// Time between chunks with content: a law, as of --ttft
    #[arg(long, value_name = "LAW")]
    gap: Option<String>,
    /// Tokens of an answer, unless its request says max_tokens
    #[arg(long, value_name = "N", default_value = "16", allow_negative_numbers = true)]
    tokens: String,
    /// Tokens of these at the front that are reasoning, but for /v1/completions
    #[arg(long, value_name = "N", default_value = "0", allow_negative_numbers = true)]
    reasoning_tokens: String,
    /// Tokens in each chunk
    #[arg(long, value_name = "N", default_value = "1", allow_negative_numbers = true)]
    tokens_per_chunk: String,
    /// Chunks that come together
    #[arg(long, value_name = "N", default_value = "1", allow_negative_numbers = true)]
    burst: String,
    /// No chunk that says the role alone, as soon as a request has its slot
    #[arg(long)]
    no_role_chunk: bool,
    /// Requests to answer at a time; the others wait [default: all]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    slots: Option<String>,
    /// Requests that may wait for a slot; the others are answered 429 [default: all]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    queue: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Faults")]
struct FaultArgs {
    /// Share of streams in whose middle an event says that the engine has failed
    #[arg(long, value_name = "SHARE")]
    error: Option<String>,
    /// Share of streams whose connection is closed in their middle; on HTTP/2 the stream is reset
    #[arg(long, value_name = "SHARE")]
    cut: Option<String>,
    /// Share of streams that stall in their middle, for ever
    #[arg(long, value_name = "SHARE")]
    stall: Option<String>,
    /// Seed of every random choice
    #[arg(long, value_name = "SEED", default_value = "0", allow_negative_numbers = true)]
    seed: String,
}

impl TargetServerArgs for LlmTargetArgs {
    fn server(&self) -> Result<ServerSpec, Problems> {
        let (options, backend) = self.options()?;
        let start = Box::new(move |backend| start(options, backend));
        Ok(ServerSpec { backend, quiet: self.quiet, start })
    }
}

impl LlmTargetArgs {
    /// Returns the options of the server and its system interface.
    ///
    /// # Errors
    /// All problems with the flags.
    fn options(&self) -> Result<(LlmOptions, BackendChoice), Problems> {
        let mut reader = Reader::default();
        let place = self.place.read(&mut reader);
        let mut options = LlmOptions::new(place.listen);
        options.threads = place.threads;
        options.duration = place.duration;
        if let Some(file) = &self.truth_log {
            options.truth = Truth::File(file.clone());
        }
        if self.self_signed {
            options.tls = reader.read("--self-signed", "", |_| self_signed());
        }
        self.answer.read(&mut reader, &mut options);
        self.fault.read(&mut reader, &mut options);
        let backend = reader.read("--backend", &self.backend, parse_backend);
        let backend = reader.conclude(backend, || options.problems())?;
        Ok((options, backend))
    }
}

impl AnswerArgs {
    fn read(&self, reader: &mut Reader, options: &mut LlmOptions) {
        let count = |text: &str| whole(text, 0..=u64::MAX);
        options.model.clone_from(&self.model);
        options.ttft = reader.maybe("--ttft", self.ttft.as_ref(), parse_delay).unwrap_or(Delay::None);
        options.gap = reader.maybe("--gap", self.gap.as_ref(), parse_delay).unwrap_or(Delay::None);
        options.role_chunk = !self.no_role_chunk;
        for (flag, text, option) in [
            ("--tokens", &self.tokens, &mut options.tokens),
            ("--reasoning-tokens", &self.reasoning_tokens, &mut options.reasoning),
            ("--tokens-per-chunk", &self.tokens_per_chunk, &mut options.tokens_per_chunk),
            ("--burst", &self.burst, &mut options.burst),
        ] {
            if let Some(number) = reader.read(flag, text, count) {
                *option = number;
            }
        }
        options.slots = reader.maybe("--slots", self.slots.as_ref(), count);
        options.queue = reader.maybe("--queue", self.queue.as_ref(), count);
    }
}

impl FaultArgs {
    fn read(&self, reader: &mut Reader, options: &mut LlmOptions) {
        let mut share = |flag: &str, given: &Option<String>| {
            reader.maybe(flag, given.as_ref(), parse_share).unwrap_or(0.0)
        };
        options.faults = StreamFaults {
            error: share("--error", &self.error),
            cut: share("--cut", &self.cut),
            stall: share("--stall", &self.stall),
        };
        options.seed = reader.read("--seed", &self.seed, parse_seed).unwrap_or(0);
    }
}

/// A server that listens, and what it says.
struct Listening {
    server: LlmServer,
    opening: Vec<String>,
}

/// Starts the server.
fn start(options: LlmOptions, backend: KernelBackend) -> Result<Box<dyn RunningServer>, Failure> {
    let (model, faults, secure) = (options.model.clone(), faults(&options), options.tls.is_some());
    let server = LlmServer::start(options, backend).map_err(|error| Failure::start(&error, ANOTHER_PORT))?;
    let url = url(server.endpoint());
    let url = if secure { url.replacen("http:", "https:", 1) } else { url };
    let mut opening = vec![
        format!("listening on {url}"),
        format!(
            "model {model}, at /v1/chat/completions, /v1/completions, /v1/responses, /v1/messages, \
             /api/chat and /api/generate"
        ),
    ];
    // What spoils a run is not to be a surprise.
    opening.extend((!faults.is_empty()).then(|| format!("faults: {faults}")));
    Ok(Box::new(Listening { server, opening }))
}

impl RunningServer for Listening {
    fn stopper(&self) -> Stopper {
        self.server.stopper()
    }

    fn opening(&self) -> Vec<String> {
        self.opening.clone()
    }

    fn wait(self: Box<Self>) -> Vec<String> {
        let report = self.server.wait();
        let failure = report.truth_failure.map(|failure| format!("the truth log is not complete: {failure}"));
        let counts = summary(&report.counts);
        failure.into_iter().chain([counts]).chain(lateness(&report.lateness)).collect()
    }
}

/// The faults in force, in words; empty if there are none.
fn faults(options: &LlmOptions) -> String {
    let StreamFaults { error, cut, stall } = options.faults;
    let all = [(error, "end with an error"), (cut, "are cut off"), (stall, "stand still")];
    let found = all.iter().filter(|(share, _)| *share > 0.0);
    let found: Vec<String> =
        found.map(|(share, what)| format!("{} of the streams {what}", percent(*share))).collect();
    found.join(", ")
}

fn summary(counts: &LlmCounts) -> String {
    let LlmCounts { completions, whole, faults, refused, abandoned, tokens, others, connections, .. } =
        *counts;
    let [completions, whole, faults, refused, abandoned, tokens, others, connections] =
        [completions, whole, faults, refused, abandoned, tokens, others, connections].map(figure::count);
    format!(
        "{completions} completions = {whole} whole + {faults} wrong on purpose + {refused} refused + \
         {abandoned} abandoned; {tokens} tokens; {others} other requests; {connections} connections"
    )
}

/// The time by which chunks left late, in words: what a server that cannot keep its own laws adds to the gaps
/// that its clients see. `None` without chunks.
fn lateness(lateness: &Histogram) -> Option<String> {
    let at = |p: f64| lateness.percentile(p).map(|late| figure::nanos(Nanos(late)));
    let (p50, p99, most) = (at(50.0)?, at(99.0)?, figure::nanos(Nanos(lateness.max()?)));
    Some(format!("chunks left {p50} (p50), {p99} (p99), {most} (max) after they were due"))
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches as _};
    use plimsoll_driver::Endpoint;

    use super::*;

    fn spec(args: &[&str]) -> Result<LlmOptions, Problems> {
        let command = LlmTargetArgs::augment_args(Command::new("llm"));
        let matches = command.try_get_matches_from(["llm"].iter().chain(args)).unwrap();
        let args = LlmTargetArgs::from_arg_matches(&matches).unwrap();
        args.options().map(|(options, _)| options)
    }

    #[test]
    fn what_is_given_is_taken() {
        let plain = spec(&[]).unwrap();
        assert_eq!(plain.listen, Endpoint::Tcp(([127, 0, 0, 1], 8000).into()));
        assert_eq!((plain.tokens, plain.tokens_per_chunk, plain.burst, plain.slots), (16, 1, 1, None));
        assert!(plain.role_chunk && plain.ttft == Delay::None && plain.truth == Truth::Off);
        let options = spec(&[
            "--model=m",
            "--ttft=constant:200ms",
            "--gap=constant:20ms",
            "--tokens=64",
            "--reasoning-tokens=9",
            "--tokens-per-chunk=2",
            "--burst=3",
            "--no-role-chunk",
            "--slots=8",
            "--queue=4",
            "--error=1%",
            "--cut=2%",
            "--stall=3%",
            "--seed=5",
            "--truth-log=t.csv",
        ])
        .unwrap();
        assert_eq!(options.ttft, Delay::Constant(Nanos::from_millis(200)));
        assert_eq!(options.gap, Delay::Constant(Nanos::from_millis(20)));
        assert_eq!((options.tokens, options.tokens_per_chunk, options.burst), (64, 2, 3));
        assert_eq!(options.reasoning, 9);
        assert_eq!((options.slots, options.queue, options.seed), (Some(8), Some(4), 5));
        assert_eq!(options.faults, StreamFaults { error: 0.01, cut: 0.02, stall: 0.03 });
        assert!(!options.role_chunk && options.model == "m" && options.truth == Truth::File("t.csv".into()));
    }

    #[test]
    fn problems_are_told_at_once() {
        let bad = [
            "--ttft=x",
            "--gap=x",
            "--tokens=x",
            "--reasoning-tokens=x",
            "--tokens-per-chunk=-1",
            "--burst=x",
            "--slots=x",
            "--queue=x",
            "--error=2",
            "--cut=x",
            "--stall=x",
            "--seed=x",
            "--backend=x",
            "--listen=x",
        ];
        assert_eq!(spec(&bad).unwrap_err().iter().count(), bad.len());
        for bad in ["--tokens=0", "--slots=0", "--queue=1", "--model="] {
            assert_eq!(spec(&[bad]).unwrap_err().iter().count(), 1, "{bad}");
        }
    }

    #[test]
    fn faults_and_counts_are_told() {
        let mut options = LlmOptions::new(Endpoint::Unix("s".into()));
        assert_eq!(faults(&options), "");
        options.faults = StreamFaults { error: 0.01, cut: 0.0, stall: 0.5 };
        assert_eq!(faults(&options), "1% of the streams end with an error, 50% of the streams stand still");
        let counts =
            LlmCounts { completions: 3, whole: 2, abandoned: 1, tokens: 1_234, ..Default::default() };
        assert_eq!(lateness(&Histogram::default()), None);
        let mut late = Histogram::default();
        (0..100).for_each(|_| late.record(1_000));
        let told = lateness(&late).expect("there are chunks");
        assert!(told.starts_with("chunks left 1") && told.ends_with("after they were due"), "{told}");
        assert!(summary(&counts).starts_with("3 completions = 2 whole + 0 wrong on purpose"));
    }
}
