//! The flags of `plimsoll target llm`.

use std::path::PathBuf;

use clap::Args;
use plimsoll_document::Problems;
use plimsoll_plan::{BackendChoice, parse_backend};
use plimsoll_targets::llm::{LlmOptions, StreamFaults};
use plimsoll_targets::{Delay, Truth};

use crate::args::server::sink::{PlaceArgs, parse_seed};
use crate::args::server::sink_values::{Reader, parse_delay, parse_share, whole};
use crate::base::certificate;

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

/// Settings of a server of completions.
#[derive(Debug)]
pub(crate) struct LlmTargetSpec {
    pub(crate) options: LlmOptions,
    pub(crate) backend: BackendChoice,
    pub(crate) quiet: bool,
}

impl LlmTargetArgs {
    /// The same with everything parsed and checked; all problems at once.
    pub(crate) fn to_spec(&self) -> Result<LlmTargetSpec, Problems> {
        let mut reader = Reader::default();
        let place = self.place.read(&mut reader);
        let mut options = LlmOptions::new(place.listen);
        options.threads = place.threads;
        options.duration = place.duration;
        if let Some(file) = &self.truth_log {
            options.truth = Truth::File(file.clone());
        }
        if self.self_signed {
            options.tls = reader.read("--self-signed", "", |_| certificate::self_signed());
        }
        self.answer.read(&mut reader, &mut options);
        self.fault.read(&mut reader, &mut options);
        let backend = reader.read("--backend", &self.backend, parse_backend);
        let backend = reader.conclude(backend, || options.problems())?;
        Ok(LlmTargetSpec { options, backend, quiet: self.quiet })
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

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use plimsoll_core::Nanos;
    use plimsoll_driver::Endpoint;
    use plimsoll_plan::Disk;

    use super::*;
    use crate::args::cli::{Cli, Command};
    use crate::args::server::target::TargetSpec;

    fn spec(args: &[&str]) -> Result<LlmTargetSpec, Problems> {
        let args = ["plimsoll", "target", "llm"].iter().chain(args);
        let Command::Target(target) = Cli::try_parse_from(args).unwrap().command else {
            panic!("not a target")
        };
        target.to_spec(&Disk).map(|spec| match spec {
            TargetSpec::Llm(spec) => spec,
            other => panic!("not a server of completions: {other:?}"),
        })
    }

    #[test]
    fn what_is_given_is_taken() {
        let plain = spec(&[]).unwrap().options;
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
        .unwrap()
        .options;
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
}
