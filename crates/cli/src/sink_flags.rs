//! The flags of `plimsoll sink`.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_core::Nanos;
use plimsoll_driver::Endpoint;
use plimsoll_plan::{BackendChoice, Files, Problem, Problems, parse_size};
use plimsoll_schedule::{parse_count, parse_duration, parse_rate};
use plimsoll_targets::{Body, Delay, Freeze, SinkOptions, Truth};
use plimsoll_wire::tls::ServerConfig;

#[derive(Debug, Args)]
pub(crate) struct SinkArgs {
    /// Address to listen on: IP:PORT, or unix:PATH; port 0 takes a free one
    #[arg(short, long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: String,
    /// Threads, which share the port
    #[arg(short, long, value_name = "N", default_value = "1", allow_negative_numbers = true)]
    threads: String,
    /// Stop by itself after this time
    #[arg(short, long, value_name = "TIME", allow_negative_numbers = true)]
    duration: Option<String>,
    #[command(flatten)]
    reply: ReplyArgs,
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
    /// Body of so many bytes instead of the counter
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true)]
    body_size: Option<String>,
    /// Content type of every reply [default: application/cbor, with --body-size application/octet-stream]
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Time")]
struct LawArgs {
    /// How long a request is served, such as constant:1ms
    ///
    /// One of constant:1ms, exponential:1ms (mean), lognormal:1ms,0.5 (median, sigma of the logarithm) and
    /// bimodal:1ms,10ms,0.1 (usual, other, probability of the other).
    #[arg(long, value_name = "LAW")]
    delay: Option<String>,
    /// Burn so much CPU time for every reply, each on its own: a target that computes
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    work: Option<String>,
    /// Serve one request after the other, over all connections (with an exponential delay: M/M/1)
    #[arg(long)]
    queue: bool,
    /// Serve the requests of one connection one after the other, side by side with other connections
    #[arg(long)]
    per_connection: bool,
    /// Answer at most so many requests per second, one after the other
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
    /// Share of requests whose connection is reset
    #[arg(long, value_name = "SHARE")]
    reset: Option<String>,
    /// Share of requests that are answered with another status, such as 7%:503; repeatable
    #[arg(long = "fail", value_name = "SHARE:STATUS")]
    fails: Vec<String>,
    /// Close a connection after so many requests, without announcing it
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    max_requests_per_connection: Option<String>,
    /// Seed of every random choice
    #[arg(long, value_name = "SEED", default_value = "0", allow_negative_numbers = true)]
    seed: String,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
struct SinkConnectionArgs {
    /// Speak TLS with this certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
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

/// What `plimsoll sink` is told to do.
#[derive(Debug)]
pub(crate) struct SinkSpec {
    pub(crate) options: SinkOptions,
    pub(crate) backend: BackendChoice,
    pub(crate) quiet: bool,
}

impl SinkArgs {
    /// The same with everything parsed and checked; all problems at once.
    pub(crate) fn to_spec(&self, files: &dyn Files) -> Result<SinkSpec, Problems> {
        let mut reader = Reader::default();
        let listen = reader.read("--listen", &self.listen, parse_endpoint);
        let mut options = SinkOptions::new(listen.unwrap_or(Endpoint::Unix(PathBuf::new())));
        if let Some(threads) = reader.read("--threads", &self.threads, |text| whole(text, 1..=1024)) {
            options.threads = threads as u32;
        }
        options.duration = reader.maybe("--duration", self.duration.as_ref(), parse_positive);
        self.read_reply(&mut reader, &mut options);
        self.read_law(&mut reader, &mut options);
        self.read_faults(&mut reader, &mut options);
        let backend = reader.read("--backend", &self.connection.backend, parse_backend);
        options.truth = self.log.truth_log.clone().map_or(Truth::Off, Truth::File);
        options.tls = self.read_tls(&mut reader, files);
        // What does not go together is known to the sink itself; single values were read above.
        if reader.problems.is_empty() {
            for problem in options.problems() {
                reader.problems.push(Problem::new(problem));
            }
        }
        match backend {
            Some(backend) if reader.problems.is_empty() => {
                Ok(SinkSpec { options, backend, quiet: self.log.quiet })
            }
            _ => Err(reader.problems),
        }
    }

    fn read_reply(&self, reader: &mut Reader, options: &mut SinkOptions) {
        let args = &self.reply;
        if let Some(status) = reader.read("--status", &args.status, parse_status) {
            options.reply.status = status;
        }
        if let Some(size) = reader.maybe("--body-size", args.body_size.as_ref(), parse_size) {
            options.reply.body = Body::Bytes(size);
            options.reply.content_type = "application/octet-stream".to_owned();
        }
        if let Some(content_type) = &args.content_type {
            options.reply.content_type.clone_from(content_type);
        }
    }

    fn read_law(&self, reader: &mut Reader, options: &mut SinkOptions) {
        let args = &self.law;
        options.delay = reader.maybe("--delay", args.delay.as_ref(), parse_delay).unwrap_or(Delay::None);
        options.work = reader.maybe("--work", args.work.as_ref(), parse_positive).unwrap_or(Nanos::ZERO);
        options.queue = args.queue;
        options.per_connection_serial = args.per_connection;
        options.capacity = reader.maybe("--capacity", args.capacity.as_ref(), parse_rate);
        options.freezes =
            args.freezes.iter().filter_map(|text| reader.read("--freeze", text, parse_freeze)).collect();
    }

    fn read_faults(&self, reader: &mut Reader, options: &mut SinkOptions) {
        let args = &self.fault;
        let faults = &mut options.faults;
        faults.drop = reader.maybe("--drop", args.drop.as_ref(), parse_share).unwrap_or(0.0);
        faults.reset = reader.maybe("--reset", args.reset.as_ref(), parse_share).unwrap_or(0.0);
        faults.statuses =
            args.fails.iter().filter_map(|text| reader.read("--fail", text, parse_fail)).collect();
        faults.close_idle_after = reader.maybe(
            "--max-requests-per-connection",
            args.max_requests_per_connection.as_ref(),
            |text| whole(text, 1..=u64::MAX),
        );
        options.seed = reader
            .read("--seed", &args.seed, |text| {
                text.parse().map_err(|_| format!("`{text}` is not a whole number of 64 bits"))
            })
            .unwrap_or(0);
    }

    fn read_tls(&self, reader: &mut Reader, files: &dyn Files) -> Option<ServerConfig> {
        // The parser lets neither stand alone.
        let (cert, key) = (self.connection.tls_cert.as_ref()?, self.connection.tls_key.as_ref()?);
        let cert = reader.file("--tls-cert", cert, files);
        let key = reader.file("--tls-key", key, files);
        match ServerConfig::new(&cert?, &key?, &[b"http/1.1".to_vec()], None) {
            Ok(config) => Some(config),
            Err(error) => {
                reader.problems.push(Problem::new(format!("--tls-cert: {error}")));
                None
            }
        }
    }
}

/// Collects problems while values are read.
#[derive(Default)]
struct Reader {
    problems: Problems,
}

impl Reader {
    fn read<T, E: Display>(
        &mut self,
        flag: &str,
        text: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        parse(text.trim())
            .map_err(|error| self.problems.push(Problem::from_line(&format!("{flag}: {error}"))))
            .ok()
    }

    fn maybe<T, E: Display>(
        &mut self,
        flag: &str,
        text: Option<&String>,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        self.read(flag, text?, parse)
    }

    fn file(&mut self, flag: &str, path: &Path, files: &dyn Files) -> Option<Vec<u8>> {
        let read = files.read(path).map_err(|error| format!("cannot read `{}`: {error}", path.display()));
        self.read(flag, "", |_| read)
    }
}

fn whole(text: &str, range: std::ops::RangeInclusive<u64>) -> Result<u64, String> {
    let number = parse_count(text).map_err(|error| error.to_string())?;
    if range.contains(&number) {
        return Ok(number);
    }
    Err(match *range.end() {
        u64::MAX => format!("must be at least {}", range.start()),
        end => format!("must be from {} to {end}", range.start()),
    })
}

fn parse_positive(text: &str) -> Result<Nanos, String> {
    match parse_duration(text) {
        Ok(Nanos::ZERO) => Err("must be above 0".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    }
}

/// `127.0.0.1:8080`, `[::]:0`, `:8080` (every IPv4 address), `unix:/path`.
fn parse_endpoint(text: &str) -> Result<Endpoint, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return if path.is_empty() {
            Err("the path is empty".to_owned())
        } else {
            Ok(Endpoint::Unix(PathBuf::from(path)))
        };
    }
    let whole = if text.starts_with(':') { format!("0.0.0.0{text}") } else { text.to_owned() };
    whole.parse().map(Endpoint::Tcp).map_err(|_| {
        format!("`{text}` is not an address to listen on (IP:PORT such as 127.0.0.1:8080, or unix:PATH)")
    })
}

fn parse_status(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(status) if (200..600).contains(&status) => Ok(status),
        _ => Err(format!("`{text}` is not a status from 200 to 599")),
    }
}

/// A share in percent. The sign is needed: without it, `1` could be all or one in a hundred.
fn parse_share(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    match percent {
        Some(percent) if (0.0..=100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err(format!("`{text}` is not a share from 0% to 100%")),
    }
}

fn parse_fail(text: &str) -> Result<(u16, f64), String> {
    let (share, status) =
        text.split_once(':').ok_or_else(|| format!("`{text}` is not SHARE:STATUS, such as 7%:503"))?;
    Ok((parse_status(status)?, parse_share(share)?))
}

fn parse_freeze(text: &str) -> Result<Freeze, String> {
    let (at, length) =
        text.split_once('+').ok_or_else(|| format!("`{text}` is not AT+LENGTH, such as 3s+1s"))?;
    let at = parse_duration(at).map_err(|error| error.to_string())?;
    Ok(Freeze { at, length: parse_positive(length)? })
}

fn parse_delay(text: &str) -> Result<Delay, String> {
    let (law, parameters) = text.split_once(':').unwrap_or((text, ""));
    let parameters: Vec<&str> = parameters.split(',').map(str::trim).collect();
    let duration = |text: &str| parse_duration(text).map_err(|error| error.to_string());
    let number = |text: &str| match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => Err(format!("`{text}` is not a number of at least 0")),
    };
    match (law, parameters.as_slice()) {
        ("constant", [time]) => Ok(Delay::Constant(duration(time)?)),
        ("exponential", [mean]) => Ok(Delay::Exponential { mean: parse_positive(mean)? }),
        ("lognormal", [median, sigma]) => {
            Ok(Delay::Lognormal { median: parse_positive(median)?, sigma: number(sigma)? })
        }
        ("bimodal", [first, second, share]) => {
            let (first, second) = (duration(first)?, duration(second)?);
            let share_of_second = if share.ends_with('%') { parse_share(share)? } else { number(share)? };
            if share_of_second > 1.0 {
                return Err(format!("`{share}` is not a probability from 0 to 1"));
            }
            Ok(Delay::Bimodal { first, second, share_of_second })
        }
        _ => Err(format!(
            "`{text}` is not one of constant:TIME, exponential:MEAN, lognormal:MEDIAN,SIGMA, \
             bimodal:TIME,OTHER,PROBABILITY"
        )),
    }
}

fn parse_backend(text: &str) -> Result<BackendChoice, String> {
    match text {
        "auto" => Ok(BackendChoice::Auto),
        "epoll" => Ok(BackendChoice::Epoll),
        "uring" | "io_uring" => Ok(BackendChoice::Uring),
        _ => Err(format!("`{text}` is not one of auto, epoll, uring")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::{Cli, Command};
    use clap::Parser as _;
    use plimsoll_core::Rate;
    use plimsoll_plan::Disk;

    fn spec(args: &[&str]) -> Result<SinkSpec, Problems> {
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
        assert_eq!((options.reply.status, options.reply.body), (200, Body::Counter));
        assert_eq!((options.truth, options.duration), (Truth::Off, None));
    }

    #[test]
    fn addresses() {
        let listen = |text: &str| parse_endpoint(text).map(|endpoint| endpoint.to_string());
        assert_eq!(listen(":0").unwrap(), "0.0.0.0:0");
        assert_eq!(listen("[::1]:80").unwrap(), "[::1]:80");
        assert_eq!(parse_endpoint("unix:/a b"), Ok(Endpoint::Unix("/a b".into())));
        for bad in ["", "8080", "localhost:80", "unix:", "1.2.3.4", "1.2.3.4:99999"] {
            assert!(parse_endpoint(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn laws_of_time() {
        let ms = Nanos::from_millis;
        for (text, delay) in [
            ("constant:1ms", Delay::Constant(ms(1))),
            ("exponential:2ms", Delay::Exponential { mean: ms(2) }),
            ("lognormal:1ms,0.5", Delay::Lognormal { median: ms(1), sigma: 0.5 }),
            ("bimodal:1ms, 10ms, 0.1", Delay::Bimodal { first: ms(1), second: ms(10), share_of_second: 0.1 }),
            ("bimodal:1ms,10ms,5%", Delay::Bimodal { first: ms(1), second: ms(10), share_of_second: 0.05 }),
        ] {
            assert_eq!(options(&["--delay", text]).delay, delay, "{text}");
        }
        for bad in [
            "",
            "1ms",
            "constant",
            "constant:1ms,2ms",
            "exponential:0",
            "lognormal:1ms",
            "lognormal:1ms,-1",
            "lognormal:1ms,nan",
            "bimodal:1ms,2ms,1.5",
            "bimodal:1ms,2ms",
            "uniform:1ms",
        ] {
            assert!(parse_delay(bad).is_err(), "{bad}");
        }
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
            "--fail",
            "7%:503",
            "--fail",
            "1%:404",
            "--max-requests-per-connection",
            "9",
            "--seed",
            "5",
        ]);
        assert_eq!(faults.seed, 5);
        let faults = faults.faults;
        assert_eq!((faults.drop, faults.reset), (0.03, 0.005));
        assert_eq!(faults.statuses, [(503, 0.07), (404, 0.01)]);
        assert_eq!(faults.close_idle_after, Some(9));
        for bad in ["3", "0.03", "-1%", "101%", "%", "x%"] {
            assert!(parse_share(bad).is_err(), "{bad}");
        }
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
