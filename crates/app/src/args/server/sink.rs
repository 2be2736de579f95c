//! The flags of `plimsoll sink`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use plimsoll_core::Nanos;
use plimsoll_document::{Files, Problems};
use plimsoll_driver::Endpoint;
use plimsoll_plan::{BackendChoice, parse_backend, parse_size};
use plimsoll_schedule::parse_rate;
use plimsoll_targets::{Body, Delay, Faults, Reply, Service, SinkOptions, Truth};
use plimsoll_wire::tls::ServerConfig;

use crate::args::extension::service_codes;
use crate::args::server::sink_values::{
    Reader, parse_delay, parse_endpoint, parse_fail, parse_freeze, parse_positive,
    parse_positive_request_time, parse_share, parse_slow_data, parse_status, whole,
};
use crate::args::workload::ServiceArgs;
use crate::base::certificate;

#[derive(Debug, Args)]
pub(crate) struct SinkArgs {
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    reply: ReplyArgs,
    #[command(flatten)]
    service: ServiceArgs,
    #[command(flatten)]
    conduct: ConductArgs,
}

/// Address and lifetime of a built-in server.
#[derive(Debug, Args)]
pub struct PlaceArgs {
    /// Address to listen on: IP:PORT, or unix:PATH; port 0 takes a free one
    #[arg(short, long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: String,
    /// Threads, which share the port
    #[arg(short, long, value_name = "N", default_value = "1", allow_negative_numbers = true)]
    threads: String,
    /// Stop after this time
    #[arg(short, long, value_name = "TIME", allow_negative_numbers = true)]
    duration: Option<String>,
}

/// Flags that all built-in servers share, whatever they answer.
#[derive(Debug, Args)]
pub(crate) struct ConductArgs {
    #[command(flatten)]
    law: LawArgs,
    #[command(flatten)]
    fault: FaultArgs,
    #[command(flatten)]
    connection: SinkConnectionArgs,
    #[command(flatten)]
    log: LogArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Reply")]
struct ReplyArgs {
    /// Status of every reply
    #[arg(long, value_name = "STATUS", default_value = "200", allow_negative_numbers = true)]
    status: String,
    /// Body of this many bytes instead of the counter
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true)]
    body_size: Option<String>,
    /// Reply with the CBOR of the counter to everyone, and not with JSON to persons
    ///
    /// Without it, GET and HEAD with an `accept` that does not name application/cbor get {"counter":7} of the
    /// same length, as does `accept: application/json`. Load generators mostly send no `accept`, and paths
    /// below /api/v always get CBOR.
    #[arg(long, value_enum, value_name = "BODY", conflicts_with_all = ["body_size", "content_type"])]
    body: Option<BodyName>,
    /// Content type of every reply [default: application/cbor, with --body-size application/octet-stream]
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    /// Send bodies in pieces, such as 1KiB/10ms: one KiB every 10 ms
    #[arg(long, value_name = "BYTES/TIME")]
    slow_data: Option<String>,
}

/// Body that is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BodyName {
    /// The counter as the Internet Computer's load sink gives it.
    Cbor,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Time")]
struct LawArgs {
    /// Time to serve a request, such as 1ms or exponential:1ms
    ///
    /// One of 1ms (or constant:1ms, always the same), exponential:1ms (mean), lognormal:1ms,0.5 (median,
    /// sigma of the logarithm) and bimodal:1ms,10ms,0.1 (usual, other, probability of the other).
    #[arg(long, value_name = "LAW")]
    delay: Option<String>,
    /// Burn this much CPU time for every reply, each on its own: a target that computes
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    work: Option<String>,
    /// Serve one request after the other, over all connections (with an exponential delay: M/M/1)
    #[arg(long)]
    queue: bool,
    /// Serve the requests of one connection one after the other, side by side with other connections
    #[arg(long)]
    per_connection: bool,
    /// Answer at most this many requests per second, one after the other
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    capacity: Option<String>,
    /// Stand still: 3s+1s is at second 3 for one second; repeatable
    #[arg(long = "freeze", value_name = "AT+LENGTH")]
    freezes: Vec<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Faults")]
struct FaultArgs {
    /// Share of requests that are never answered, such as 3%
    #[arg(long, value_name = "SHARE")]
    drop: Option<String>,
    /// Share of requests whose connection is reset; with HTTP/2 their stream, as INTERNAL_ERROR
    #[arg(long, value_name = "SHARE")]
    reset: Option<String>,
    /// Share of requests that are refused: REFUSED_STREAM with HTTP/2, with HTTP/1.1 a reset
    #[arg(long, value_name = "SHARE")]
    refuse: Option<String>,
    /// Share of requests that are answered with another status, such as 7%:503, or the name of one that a
    /// service has; repeatable
    #[arg(long = "fail", value_name = "SHARE:STATUS")]
    fails: Vec<String>,
    /// Close a connection after this many requests, without announcing it
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    max_requests_per_connection: Option<String>,
    /// Announce the end of a connection after this many requests: GOAWAY, or `connection: close`
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    goaway_after: Option<String>,
    /// Seed of every random choice
    #[arg(long, value_name = "SEED", default_value = "0", allow_negative_numbers = true)]
    seed: String,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
struct SinkConnectionArgs {
    /// Speak TLS with this certificate (PEM); ALPN chooses between HTTP/1.1 and HTTP/2
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Speak TLS with a certificate made for this process; clients have to go without verification (-k)
    #[arg(long, conflicts_with = "tls_cert")]
    self_signed: bool,
    /// System interface: auto, epoll or uring
    #[arg(long, value_name = "NAME", default_value = "auto")]
    backend: String,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
struct LogArgs {
    /// Write when every request came and was answered, in nanoseconds, as CSV
    #[arg(long, value_name = "FILE")]
    truth_log: Option<PathBuf>,
    /// No messages on stderr
    #[arg(long)]
    quiet: bool,
}

/// Settings of a built-in server.
#[derive(Debug)]
pub(crate) struct SinkSpec {
    /// Name of the server in its messages.
    pub(crate) name: &'static str,
    pub(crate) options: SinkOptions,
    pub(crate) backend: BackendChoice,
    pub(crate) quiet: bool,
}

impl SinkArgs {
    /// Parses and checks the flags of a sink; reports all problems at once.
    pub(crate) fn to_spec(&self, files: &dyn Files) -> Result<SinkSpec, Problems> {
        let mut reader = Reader::default();
        let mut options = self.place.read(&mut reader).sink();
        let reply = self.reply.read(&mut reader);
        let service = self.service.read(&mut reader, &mut options.faults);
        options.service = service.unwrap_or(Service::Reply(reply));
        self.conduct.finish("sink", options, reader, files)
    }
}

/// Address and lifetime of a built-in server, parsed.
#[derive(Debug)]
pub struct Place {
    /// Address to listen on.
    pub listen: Endpoint,
    /// Threads, which share it.
    pub threads: u32,
    /// Time after which it stops.
    pub duration: Option<Nanos>,
}

impl PlaceArgs {
    /// Parses the flags. Problems go to the reader.
    pub fn read(&self, reader: &mut Reader) -> Place {
        let listen = reader.read("--listen", &self.listen, parse_endpoint);
        let threads = reader.read("--threads", &self.threads, |text| whole(text, 1..=1024));
        Place {
            // The replacement for a wrong value is never used: the errors end the command.
            listen: listen.unwrap_or(Endpoint::Unix(PathBuf::new())),
            threads: threads.map_or(1, |threads| threads as u32),
            duration: reader.maybe("--duration", self.duration.as_ref(), parse_positive),
        }
    }
}

impl Place {
    /// A sink that stands there.
    pub(crate) fn sink(self) -> SinkOptions {
        let Self { listen, threads, duration } = self;
        SinkOptions { threads, duration, ..SinkOptions::new(listen) }
    }
}

impl ReplyArgs {
    fn read(&self, reader: &mut Reader) -> Reply {
        let mut reply = Reply::default();
        if let Some(status) = reader.read("--status", &self.status, parse_status) {
            reply.status = status;
        }
        if let Some(BodyName::Cbor) = self.body {
            reply.body = Body::Cbor;
        }
        if let Some(size) = reader.maybe("--body-size", self.body_size.as_ref(), parse_size) {
            reply.body = Body::Bytes(size);
            reply.content_type = "application/octet-stream".to_owned();
        }
        if let Some(content_type) = &self.content_type {
            reply.content_type.clone_from(content_type);
        }
        reply.slow = reader.maybe("--slow-data", self.slow_data.as_ref(), parse_slow_data);
        reply
    }
}

impl ConductArgs {
    /// Reads the rest into `options`, whose faults are those without flags, and checks everything.
    pub(crate) fn finish(
        &self,
        name: &'static str,
        mut options: SinkOptions,
        mut reader: Reader,
        files: &dyn Files,
    ) -> Result<SinkSpec, Problems> {
        self.read_law(&mut reader, &mut options);
        let elsewhere = self.fault.read(&mut reader, &options.service, &mut options.faults);
        options.seed = reader.read("--seed", &self.fault.seed, parse_seed).unwrap_or(0);
        let backend = reader.read("--backend", &self.connection.backend, parse_backend);
        options.truth = self.log.truth_log.clone().map_or(Truth::Off, Truth::File);
        options.tls = self.read_tls(&mut reader, files);
        let backend = reader.conclude(backend, || {
            let elsewhere = elsewhere.map(str::to_owned);
            options.problems().into_iter().chain(elsewhere).collect()
        })?;
        Ok(SinkSpec { name, options, backend, quiet: self.log.quiet })
    }

    fn read_law(&self, reader: &mut Reader, options: &mut SinkOptions) {
        let args = &self.law;
        options.delay = reader.maybe("--delay", args.delay.as_ref(), parse_delay).unwrap_or(Delay::None);
        options.work =
            reader.maybe("--work", args.work.as_ref(), parse_positive_request_time).unwrap_or(Nanos::ZERO);
        options.queue = args.queue;
        options.per_connection_serial = args.per_connection;
        options.capacity = reader.maybe("--capacity", args.capacity.as_ref(), parse_rate);
        options.freezes =
            args.freezes.iter().filter_map(|text| reader.read("--freeze", text, parse_freeze)).collect();
    }

    fn read_tls(&self, reader: &mut Reader, files: &dyn Files) -> Option<ServerConfig> {
        if self.connection.self_signed {
            return reader.read("--self-signed", "", |_| certificate::self_signed());
        }
        // The parser lets neither stand alone.
        let (cert, key) = (self.connection.tls_cert.as_ref()?, self.connection.tls_key.as_ref()?);
        let cert = reader.file("--tls-cert", cert, files);
        let key = reader.file("--tls-key", key, files);
        let (cert, key) = (cert?, key?);
        reader.read("--tls-cert", "", |_| certificate::server_config(&cert, &key))
    }
}

impl FaultArgs {
    /// Takes what was given into the faults of a service. Returns the problem of a code that another service
    /// has.
    fn read(&self, reader: &mut Reader, service: &Service, faults: &mut Faults) -> Option<&'static str> {
        let mut elsewhere = None;
        let shares = [
            ("--drop", &self.drop, &mut faults.drop),
            ("--reset", &self.reset, &mut faults.reset),
            ("--refuse", &self.refuse, &mut faults.refuse),
        ];
        for (flag, text, share) in shares {
            *share = reader.maybe(flag, text.as_ref(), parse_share).unwrap_or(*share);
        }
        if !self.fails.is_empty() {
            let mut code = |name: &str| {
                let own = code_of(service.codes(), name);
                own.or_else(|| {
                    let other = service_codes().find(|codes| code_of(codes.names, name).is_some())?;
                    elsewhere = Some(other.elsewhere);
                    Some(ELSEWHERE)
                })
            };
            let fails = self.fails.iter();
            let given =
                fails.filter_map(|text| reader.read("--fail", text, |text| parse_fail(text, &mut code)));
            faults.statuses = given.flatten().collect();
        }
        let counts = [
            (
                "--max-requests-per-connection",
                &self.max_requests_per_connection,
                &mut faults.close_idle_after,
            ),
            ("--goaway-after", &self.goaway_after, &mut faults.go_away_after),
        ];
        for (flag, text, count) in counts {
            *count = reader.maybe(flag, text.as_ref(), |text| whole(text, 1..=u64::MAX));
        }
        elsewhere
    }
}

/// Status in place of a code that another service has: nothing is answered with it, as the code is refused.
const ELSEWHERE: u16 = 500;

/// The code of a failure with this name.
fn code_of(names: &[&str], name: &str) -> Option<u16> {
    let code = names.iter().position(|known| *known == name).filter(|code| *code > 0)?;
    u16::try_from(code).ok()
}

/// Reads a seed.
///
/// # Errors
/// The text is no number of 64 bits.
pub fn parse_seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a whole number of 64 bits"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::args::cli::Cli;
    use crate::args::cli::Command;
    use clap::Parser as _;
    use plimsoll_core::Rate;
    use plimsoll_plan::Disk;
    use plimsoll_targets::SlowData;

    /// Reads the flags of `plimsoll sink`.
    pub(crate) fn spec(args: &[&str]) -> Result<SinkSpec, Problems> {
        let args = ["plimsoll", "sink"].iter().chain(args);
        let Command::Sink(sink) = Cli::try_parse_from(args).unwrap().command else { panic!("not a sink") };
        sink.to_spec(&Disk)
    }

    fn options(args: &[&str]) -> SinkOptions {
        spec(args).unwrap().options
    }

    #[test]
    fn the_plain_sink() {
        let options = options(&[]);
        assert_eq!(options.listen, Endpoint::Tcp(([127, 0, 0, 1], 8080).into()));
        assert_eq!((options.threads, options.delay, options.seed), (1, Delay::None, 0));
        assert_eq!(options.service, Service::Reply(Reply::default()));
        assert_eq!(options.faults, Faults::default());
        assert_eq!((options.truth, options.duration), (Truth::Off, None));
    }

    #[test]
    fn replies() {
        let options = options(&["--status", "201", "--body-size", "2KiB", "--slow-data", "16/1ms"]);
        let slow = SlowData { bytes: 16, every: Nanos::from_millis(1) };
        let reply = Reply {
            status: 201,
            content_type: "application/octet-stream".to_owned(),
            body: Body::Bytes(2048),
            slow: Some(slow),
        };
        assert_eq!(options.service, Service::Reply(reply));
    }

    #[test]
    fn laws_of_time() {
        let ms = Nanos::from_millis;
        let all = options(&["--capacity", "5k/s", "--freeze", "3s+1s", "--freeze", "0s+5ms"]);
        assert_eq!(all.capacity, Some(Rate::per_second(5000)));
        let freezes: Vec<_> = all.freezes.iter().map(|freeze| (freeze.at, freeze.length)).collect();
        assert_eq!(freezes, [(ms(3000), ms(1000)), (ms(0), ms(5))]);
    }

    #[test]
    fn faults() {
        let faults = options(&[
            "--drop",
            "3%",
            "--reset",
            "0.5%",
            "--refuse",
            "2%",
            "--fail",
            "7%:503",
            "--fail",
            "1%:404",
            "--max-requests-per-connection",
            "9",
            "--goaway-after",
            "8",
            "--seed",
            "5",
        ]);
        assert_eq!(faults.seed, 5);
        let faults = faults.faults;
        assert_eq!((faults.drop, faults.reset, faults.refuse), (0.03, 0.005, 0.02));
        assert_eq!(faults.statuses, [(503, 0.07), (404, 0.01)]);
        assert_eq!((faults.close_idle_after, faults.go_away_after), (Some(9), Some(8)));
    }

    #[test]
    fn all_problems_at_once_and_then_what_does_not_go_together() {
        let problems =
            spec(&["--listen", "x", "--threads", "0", "--status", "99", "--freeze", "1s"]).unwrap_err();
        assert_eq!(problems.iter().count(), 4, "{problems}");
        let problems = spec(&["--queue", "--threads", "2"]).unwrap_err();
        assert_eq!(problems.iter().count(), 2, "{problems}");
        let problems = spec(&["--tls-cert", "/nonexistent/a", "--tls-key", "/nonexistent/b"]).unwrap_err();
        assert_eq!(problems.iter().count(), 2, "{problems}");
    }
}
