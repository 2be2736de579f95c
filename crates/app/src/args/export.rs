//! Flags of exports to monitoring systems while a run goes on.

use core::net::{Ipv4Addr, SocketAddr};

use clap::Args;
use plimsoll_core::Nanos;
use plimsoll_document::{Problem, Problems};
use plimsoll_export::Receiver;
use plimsoll_schedule::parse_duration;

use crate::args::control;
use crate::base::environment::OtlpEnvironment;

/// Default time between two pushes of figures.
const EVERY: Nanos = Nanos::from_secs(5);
/// Shortest time between two pushes. Intervals are a second long: more often there is nothing new.
const SHORTEST: Nanos = Nanos::from_secs(1);
/// Default address of OTLP receivers over HTTP (OpenTelemetry's default).
const DEFAULT_RECEIVER: &str = "http://localhost:4318";

/// The flags, as they were given.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Exports")]
pub(crate) struct MonitoringArgs {
    /// Serve the figures so far to Prometheus at this address, such as 127.0.0.1:9464 or its port alone
    ///
    /// GET /metrics gives them as text, as OpenMetrics, or with native histograms, as the server prefers. The
    /// address with its port is on stderr. See docs/exports.md.
    #[arg(long, value_name = "ADDR", hide_short_help = true)]
    prometheus: Option<String>,
    /// Send the figures so far to a receiver of OTLP (HTTP, protobuf): --otlp=http://localhost:4318
    ///
    /// Without a URL, OTEL_EXPORTER_OTLP_ENDPOINT names the receiver, OTEL_EXPORTER_OTLP_HEADERS the headers.
    /// They are sent every 5 s and once more at the end. A receiver that is slow or dead changes no figure;
    /// figures that it did not take are counted at the end.
    #[arg(
        long,
        value_name = "URL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        hide_short_help = true
    )]
    otlp: Option<String>,
    /// Interval between pushes to --otlp [default: 5s]
    #[arg(
        long,
        value_name = "TIME",
        requires = "otlp",
        hide_short_help = true,
        allow_negative_numbers = true
    )]
    otlp_interval: Option<String>,
}

/// Exports of figures while a run goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExportSpec {
    /// The address that a Prometheus server scrapes.
    pub(crate) prometheus: Option<SocketAddr>,
    /// The receiver of figures.
    pub(crate) otlp: Option<OtlpSpec>,
}

/// The receiver of figures, the interval, and the name of their sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OtlpSpec {
    pub(crate) receiver: Receiver,
    pub(crate) every: Nanos,
    pub(crate) resource: Vec<(String, String)>,
}

impl MonitoringArgs {
    /// Returns the names of the flags that were given.
    pub(crate) fn given(&self) -> Vec<&'static str> {
        let flags = [("--prometheus", self.prometheus.is_some()), ("--otlp", self.otlp.is_some())];
        flags.into_iter().filter(|(_, given)| *given).map(|(flag, _)| flag).collect()
    }

    /// Returns `true` if figures are served to Prometheus.
    pub(crate) const fn serves_prometheus(&self) -> bool {
        self.prometheus.is_some()
    }

    /// Reads the flags.
    ///
    /// # Errors
    /// Everything that is wrong with them, and with the variables that they refer to.
    pub(crate) fn to_spec(&self, environment: &OtlpEnvironment) -> Result<ExportSpec, Problems> {
        let mut problems = Problems::default();
        let prometheus = self.prometheus.as_deref().and_then(|text| {
            let address = text.parse().map(|port: u16| (Ipv4Addr::LOCALHOST, port).into()).ok();
            let address = address.or_else(|| control::address(text));
            if address.is_none() {
                let message = format!("--prometheus: `{}` is not an address and a port", text.escape_debug());
                let hint = "write 127.0.0.1:9464, or a port of that address; 0 is a free one";
                problems.push(Problem::new(message).with_hint(hint));
            }
            address
        });
        let every = self.otlp_interval.as_deref().map_or(Ok(EVERY), |text| match parse_duration(text) {
            Ok(every) if every >= SHORTEST => Ok(every),
            Ok(_) => {
                Err(Problem::new("--otlp-interval: give it 1s at least: figures are not renewed more often"))
            }
            Err(error) => Err(Problem::new(format!("--otlp-interval: {error}"))),
        });
        let receiver = self.otlp.as_deref().map(|url| receiver(url, environment)).transpose();
        let resource = resource(environment);
        let mut noted = |problem| problems.push(problem);
        let every = every.map_err(&mut noted);
        let receiver = receiver.map_err(&mut noted);
        let resource = resource.map_err(&mut noted);
        let (Ok(every), Ok(receiver), Ok(resource), true) = (every, receiver, resource, problems.is_empty())
        else {
            return Err(problems);
        };
        let otlp = receiver.map(|receiver| OtlpSpec { receiver, every, resource });
        Ok(ExportSpec { prometheus, otlp })
    }
}

/// The receiver that was typed, or the one of the environment. Headers of the environment go to no other one
/// than that: they are its secrets.
fn receiver(url: &str, environment: &OtlpEnvironment) -> Result<Receiver, Problem> {
    let bad = |from: &str| {
        let from = from.to_owned();
        move |error| {
            let problem = Problem::new(format!("{from}: {error}"));
            problem.with_hint(format!("write {DEFAULT_RECEIVER}, the base of a receiver of OTLP over HTTP"))
        }
    };
    if !url.is_empty() {
        return Receiver::below(url).map_err(bad("--otlp"));
    }
    let receiver = match (&environment.metrics_endpoint, &environment.endpoint) {
        (Some(url), _) => Receiver::at(url).map_err(bad("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"))?,
        (None, Some(url)) => Receiver::below(url).map_err(bad("OTEL_EXPORTER_OTLP_ENDPOINT"))?,
        (None, None) => Receiver::below(DEFAULT_RECEIVER).map_err(bad("--otlp"))?,
    };
    let name = "OTEL_EXPORTER_OTLP_HEADERS";
    let headers = environment.headers.as_deref().map_or(Ok(Vec::new()), |text| pairs(name, text))?;
    receiver.with_headers(headers).map_err(|error| Problem::new(format!("{name}: {error}")))
}

/// Returns the attributes of the sender: those of the environment, and this program's name and version.
fn resource(environment: &OtlpEnvironment) -> Result<Vec<(String, String)>, Problem> {
    let given = environment.resource.as_deref();
    let mut all = given.map_or(Ok(Vec::new()), |text| pairs("OTEL_RESOURCE_ATTRIBUTES", text))?;
    if let Some(name) = &environment.service_name {
        all.retain(|(known, _)| known != "service.name");
        all.push(("service.name".to_owned(), name.clone()));
    }
    for (name, value) in [("service.name", "plimsoll"), ("service.version", env!("CARGO_PKG_VERSION"))] {
        if !all.iter().any(|(known, _)| known == name) {
            all.push((name.to_owned(), value.to_owned()));
        }
    }
    Ok(all)
}

/// Reads `a=b,c=d`, as W3C Baggage has it: values are percent-encoded.
fn pairs(variable: &str, text: &str) -> Result<Vec<(String, String)>, Problem> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let pairs = parts.map(|part| {
        // The part is not shown: it may be a secret.
        let bad = || Problem::new(format!("{variable}: write name=value pairs with commas between them"));
        let (name, value) = part.split_once('=').ok_or_else(bad)?;
        let name = name.trim();
        if name.is_empty() {
            return Err(bad());
        }
        Ok((name.to_owned(), decoded(value.trim()).ok_or_else(bad)?))
    });
    pairs.collect()
}

/// A percent-encoded text.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits)
            .ok()
            .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(prometheus: Option<&str>, otlp: Option<&str>, every: Option<&str>) -> MonitoringArgs {
        let [prometheus, otlp, otlp_interval] = [prometheus, otlp, every].map(|text| text.map(str::to_owned));
        MonitoringArgs { prometheus, otlp, otlp_interval }
    }

    fn environment() -> OtlpEnvironment {
        OtlpEnvironment {
            endpoint: Some("https://otlp.test/base".to_owned()),
            headers: Some("api-key=a%20b, x=1".to_owned()),
            resource: Some("deployment.environment=ci,service.version=9".to_owned()),
            service_name: Some("nightly".to_owned()),
            ..OtlpEnvironment::default()
        }
    }

    #[test]
    fn a_port_alone_is_one_of_loopback() {
        let spec = |text: &str| args(Some(text), None, None).to_spec(&environment());
        for (text, expected) in [("9464", "127.0.0.1:9464"), ("0", "127.0.0.1:0"), ("[::1]:80", "[::1]:80")] {
            assert_eq!(spec(text).expect("it is sound").prometheus, expected.parse().ok(), "{text}");
        }
        for text in ["", "99999", ":80", "-1"] {
            assert_eq!(spec(text).expect_err("it is none").len(), 1, "{text}");
        }
    }

    #[test]
    fn the_environment_says_where_and_its_headers_go_nowhere_else() {
        let spec = |url: &str| args(None, Some(url), None).to_spec(&environment()).expect("it is sound").otlp;
        let of_environment = spec("").expect("it was asked for");
        assert_eq!(of_environment.receiver.to_string(), "https://otlp.test/base/v1/metrics");
        let expected = Receiver::below("https://otlp.test/base").expect("a URL");
        let headers =
            [("api-key", "a b"), ("x", "1")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        let expected = expected.with_headers(headers.to_vec()).expect("headers");
        assert_eq!((of_environment.receiver, of_environment.every), (expected, EVERY));
        let typed = spec("http://127.0.0.1:4318").expect("it was asked for");
        assert_eq!(
            typed.receiver,
            Receiver::below("http://127.0.0.1:4318").expect("a URL"),
            "without headers"
        );
        let resource: Vec<_> =
            typed.resource.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let expected =
            [("deployment.environment", "ci"), ("service.version", "9"), ("service.name", "nightly")];
        assert_eq!(resource, expected);
        let nothing =
            args(None, Some(""), Some("30s")).to_spec(&OtlpEnvironment::default()).expect("defaults");
        let nothing = nothing.otlp.expect("it was asked for");
        assert_eq!(nothing.receiver.to_string(), "http://localhost:4318/v1/metrics");
        assert_eq!(nothing.every, Nanos::from_secs(30));
    }

    #[test]
    fn all_problems_come_at_once_and_show_no_secret() {
        let mut bad = environment();
        bad.resource = Some("secret".to_owned());
        bad.headers = Some("key=secret%G0".to_owned());
        let problems = args(Some("nowhere"), Some(""), Some("10ms")).to_spec(&bad).expect_err("all is bad");
        assert_eq!(problems.len(), 4, "{problems:?}");
        assert!(!format!("{problems:?}").contains("secret%"), "{problems:?}");
        assert_eq!(args(None, None, None).to_spec(&environment()), Ok(ExportSpec::default()));
    }
}
