//! Flags and messages of servers of extensions, whatever protocol they speak.

use clap::Args;
use plimsoll_core::Nanos;
use plimsoll_document::Problems;
use plimsoll_driver::Endpoint;
use plimsoll_plan::parse_backend;
use plimsoll_targets::server::{Protocol, Server, ServerOptions};
use plimsoll_targets::{Lies, Stopper};

use crate::args::extension::{RunningServer, ServerSpec, StartServer};
use crate::args::server::sink::{Place, PlaceArgs, parse_seed};
use crate::args::server::sink_values::{Reader, parse_lie, parse_positive_request_time};
use crate::base::wording::percent;

/// Flags of a server of keys and values: its place, its faults, and the system interface.
#[derive(Debug, Args)]
pub struct HostArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// Time for which each reply is held back
    #[arg(long, value_name = "TIME", help_heading = "Answers", allow_negative_numbers = true)]
    delay: Option<String>,
    /// Answer a share of the GETs wrongly
    #[arg(long, value_name = "KIND[:SHARE]", help_heading = "Answers")]
    lie: Option<String>,
    /// Seed of the choice of the GETs that are answered wrongly
    #[arg(
        long,
        value_name = "SEED",
        default_value = "0",
        help_heading = "Answers",
        allow_negative_numbers = true
    )]
    seed: String,
    /// System interface: auto, epoll or uring
    #[arg(long, value_name = "NAME", default_value = "auto", help_heading = "Connection")]
    backend: String,
    /// No messages on stderr
    #[arg(long, help_heading = "Output")]
    quiet: bool,
}

/// A server's place and faults, parsed.
#[derive(Debug)]
pub struct Host<K> {
    /// Address to listen on.
    pub listen: Endpoint,
    /// Threads, which share it.
    pub threads: u32,
    /// Time after which it stops.
    pub duration: Option<Nanos>,
    /// Time for which replies are held back.
    pub delay: Nanos,
    /// Share of the GETs that are answered wrongly.
    pub lie: Option<Lies<K>>,
    /// Seed of their choice.
    pub seed: u64,
    /// The wrong answers in words, for the opening of the server: they are not to surprise anyone.
    pub faults: Option<String>,
}

impl<K> Host<K> {
    /// Options of a server of this name.
    pub fn options(&self, name: &'static str) -> ServerOptions {
        let Self { threads, duration, delay, .. } = *self;
        ServerOptions { threads, duration, delay, ..ServerOptions::new(name, vec![self.listen.clone()]) }
    }
}

impl HostArgs {
    /// Parses the flags, but for the system interface. The kinds of wrong answers are each a word, the kind,
    /// and what such an answer is. Problems go to the reader.
    pub fn read<K: Copy>(&self, kinds: &[(&str, K, &str)], reader: &mut Reader) -> Host<K> {
        let Place { listen, threads, duration } = self.place.read(reader);
        let kinds: Vec<_> = kinds.iter().map(|&(word, kind, answer)| (word, (kind, answer))).collect();
        let example = format!("{}:2%", kinds[0].0);
        let lie = reader.maybe("--lie", self.lie.as_ref(), |text: &str| parse_lie(text, &kinds, &example));
        let seed = reader.read("--seed", &self.seed, parse_seed).unwrap_or(0);
        let in_words = |Lies { kind: (_, answer), share }: Lies<(K, &str)>| {
            format!("faults: {} of the GETs answered with {answer}, seed {seed}", percent(share))
        };
        Host {
            listen,
            threads,
            duration,
            delay: reader
                .maybe("--delay", self.delay.as_ref(), parse_positive_request_time)
                .unwrap_or(Nanos::ZERO),
            lie: lie.map(|Lies { kind: (kind, _), share }| Lies { kind, share }),
            seed,
            faults: lie.filter(|lie| lie.share > 0.0).map(in_words),
        }
    }

    /// Returns the server, unless anything is wrong: with a single value, or else with what does not go
    /// together, which are these problems.
    ///
    /// # Errors
    /// All problems.
    pub fn server(
        &self,
        mut reader: Reader,
        problems: Vec<String>,
        start: Box<StartServer>,
    ) -> Result<ServerSpec, Problems> {
        let backend = reader.read("--backend", &self.backend, parse_backend);
        let backend = reader.conclude(backend, || problems)?;
        Ok(ServerSpec { backend, quiet: self.quiet, start })
    }
}

/// Returns a server with what it says when it listens, and of its report.
pub fn running<P: Protocol>(
    server: Server<P>,
    opening: Vec<String>,
    closing: fn(&P::Report) -> Vec<String>,
) -> Box<dyn RunningServer> {
    Box::new(Running { server, opening, closing })
}

struct Running<P: Protocol> {
    server: Server<P>,
    opening: Vec<String>,
    closing: fn(&P::Report) -> Vec<String>,
}

impl<P: Protocol> RunningServer for Running<P> {
    fn stopper(&self) -> Stopper {
        self.server.stopper()
    }

    fn opening(&self) -> Vec<String> {
        self.opening.clone()
    }

    fn wait(self: Box<Self>) -> Vec<String> {
        (self.closing)(&self.server.wait())
    }
}
