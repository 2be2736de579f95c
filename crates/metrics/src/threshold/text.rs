//! Thresholds as people write them: `p99<10ms`, `error_rate<0.1%`, `rate>=0.99*target`.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use plimsoll_core::{ErrorClass, ErrorRow, Nanos};

use super::decimal::Decimal;
use super::own::{self, OwnFigure, is_own};
use serde::{Deserialize, Serialize};

/// Units of time and their lengths in nanoseconds.
const TIMES: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];
/// Thousands, millions, thousand millions.
const THOUSANDS: &[(&str, u64)] = &[("", 1), ("k", 1_000), ("m", 1_000_000), ("g", 1_000_000_000)];
const BYTES: &[(&str, u64)] = &[
    ("", 1),
    ("B", 1),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// A condition on one figure.
///
/// Parsed from `METRIC OP VALUE`; its `Display` is the same in one canonical spelling, and is parsed to the
/// same threshold again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Threshold {
    /// Which figure.
    pub metric: Metric,
    /// Comparison of the figure with the limit.
    pub operator: Operator,
    /// The limit.
    pub limit: Limit,
}

/// A figure of a run, or of its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Metric {
    /// A figure of one kind of time, over these requests.
    Time(TimeKind, Figure, Among),
    /// Requests that failed or timed out, as a share of those that ended.
    ErrorRate,
    /// Requests that timed out, as a share of those that ended.
    TimeoutRate,
    /// A number; with a limit in percent, its share of ended requests (of dropped and started: of due ones).
    Count(Counted),
    /// Whole responses of any status per second.
    Rate,
    /// The values of a query that a Prometheus server is asked, each of them: `prom(rate(http_errors[1m]))`.
    Query(Arc<str>),
    /// A figure of a metric of the plan's own: `metric(cart_total).p95`.
    Own(Arc<OwnFigure>),
}

macro_rules! named {
    ($(#[$enum_doc:meta])* $type:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$enum_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $type { $($(#[$doc])* $variant,)+ }

        impl $type {
            /// All of them, in the order of their discriminants.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the name in thresholds.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    };
}

named! {
    /// The times that are measured.
    TimeKind {
        /// done − intended; the one that is meant without a name.
        Response = "response_time",
        /// done − sent.
        Service = "service_time",
        /// started − intended.
        StartLag = "start_lag",
        /// first byte − sent.
        FirstByte = "first_byte_time",
        /// TCP handshakes, warm-up included.
        Connect = "connect_time",
        /// TLS handshakes, warm-up included.
        Tls = "tls_time",
        /// done − intended of failed requests.
        Failed = "failed_response_time",
        /// first content − intended, of streams of events.
        Ttft = "ttft",
        /// first content − sent.
        TtftFromSent = "ttft_from_sent",
        /// first content that is not reasoning − intended, of streams with reasoning.
        Ttfa = "ttfa",
        /// Between two contents of a stream.
        Itl = "itl",
        /// (last content − first content) / (tokens − 1).
        Tpot = "tpot",
        /// (done − intended) / tokens.
        Ntpot = "ntpot",
        /// Until a message came that has its time in it.
        Lag = "lag",
    }
}

impl TimeKind {
    /// Returns `true` if every request that is answered well has one such time, and no other has.
    const fn is_of_answers(self) -> bool {
        matches!(self, Self::Response | Self::Service | Self::FirstByte)
    }

    /// Returns `true` if only streams of events have such times.
    pub const fn is_of_streams(self) -> bool {
        matches!(self, Self::Ttft | Self::TtftFromSent | Self::Ttfa | Self::Itl | Self::Tpot | Self::Ntpot)
    }
}

/// One figure of a distribution of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// A percentile by nearest rank.
    Percentile(Percentile),
    /// The smallest.
    Min,
    /// The arithmetic mean.
    Mean,
    /// The largest.
    Max,
    /// The standard deviation.
    Stdev,
}

/// The requests that a figure of times is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Among {
    /// Requests that were due: `{due}`, the default of percentiles. One that failed, was dropped or never
    /// started counts as longer than any time, so that a percentile that falls on it is not reached.
    Due,
    /// Requests that were answered well, and requests without an answer, with the time that they have waited
    /// as a lower bound: `{ok}`, the default of all other figures.
    Good,
    /// Requests that ended in any way, failed ones with the time that they took: `{all}`.
    All,
}

impl Among {
    /// Returns the default for a figure.
    const fn of(kind: TimeKind, figure: Figure) -> Self {
        match figure {
            Figure::Percentile(_) if kind.is_of_answers() => Self::Due,
            _ => Self::Good,
        }
    }
}

/// A percentile above 0 and below 100, in units of 10^-8 percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percentile(u64);

impl Percentile {
    /// Of 0 to 100.
    pub fn p(self) -> f64 {
        self.0 as f64 / 1e8
    }

    /// Reads the number of a percentile above 0 and below 100.
    pub(super) fn parse(number: &str) -> Option<Self> {
        let units = Decimal::parse(number).and_then(|number| number.scaled(8));
        units.filter(|units| (1..10_000_000_000).contains(units)).map(Self)
    }
}

impl fmt::Display for Percentile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Decimal::of_units(self.0, 8).fmt(f)
    }
}

named! {
    /// Counts beside the classes of errors.
    Total {
        /// Requests that were started.
        Started = "started",
        /// Arrivals that were given up.
        Dropped = "dropped",
        /// Requests that ended well.
        Ok = "ok",
        /// Requests that failed.
        Failed = "failed",
        /// Requests that timed out.
        TimedOut = "timed_out",
        /// Requests that failed or timed out. As a share it is [`Metric::ErrorRate`], and called so.
        Errors = "errors",
        /// Responses that were not as expected: the error class `check`.
        Checks = "checks",
        /// Requests of streamed steps that hold all bounds of the goodput.
        Goodput = "goodput",
        /// Bytes of requests.
        BytesSent = "bytes_sent",
        /// Bytes of responses.
        BytesReceived = "bytes_received",
    }
}

/// A count that a figure is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// One of the accounts.
    Total(Total),
    /// Failed requests of a class.
    Errors(ErrorClass),
}

impl Counted {
    fn name(self) -> &'static str {
        match self {
            Self::Total(total) => total.name(),
            Self::Errors(class) => class.name(),
        }
    }

    const fn is_bytes(self) -> bool {
        matches!(self, Self::Total(Total::BytesSent | Total::BytesReceived))
    }
}

named! {
    /// Comparison of a figure with its limit.
    Operator {
        /// Below it.
        Less = "<",
        /// Not above it.
        AtMost = "<=",
        /// Above it.
        Greater = ">",
        /// Not below it.
        AtLeast = ">=",
        /// Equal to it.
        Equal = "==",
        /// Not equal to it.
        Unequal = "!=",
    }
}

/// The limit that a figure is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// A time.
    Time(Nanos),
    /// A share in percent.
    Percent(Decimal),
    /// A number, or bytes.
    Count(u64),
    /// A number per span of time.
    Rate(Decimal, Span),
    /// A fraction of the due arrivals. Requests count: the later ones of an iteration, once it has reached
    /// them.
    OfTarget(Decimal),
    /// A number of any sign, for queries and metrics of the plan's own.
    Number(Number),
}

impl Limit {
    /// Returns `true` for the least value that its figures can have.
    const fn is_least(&self) -> bool {
        match self {
            Self::Time(time) => time.0 == 0,
            Self::Percent(share) | Self::OfTarget(share) | Self::Rate(share, _) => share.is_zero(),
            Self::Count(count) => *count == 0,
            Self::Number(_) => false,
        }
    }
}

/// A number that is not NaN and not infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number(pub(super) f64);

/// NaN is no such number.
impl Eq for Number {}

named! {
    /// The spans that rates are given for.
    Span {
        /// Per second.
        Second = "s",
        /// Per minute.
        Minute = "m",
        /// Per hour.
        Hour = "h",
    }
}

impl Span {
    /// Returns the length of the span in seconds.
    pub const fn seconds(self) -> u64 {
        match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3_600,
        }
    }
}

/// A text that is not a threshold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThresholdError {
    /// The part of the text that is wrong, in bytes.
    pub at: Range<usize>,
    /// Description of the mistake.
    pub message: String,
    /// Advice on correcting it.
    pub hint: String,
}

impl ThresholdError {
    pub(super) fn new(at: Range<usize>, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { at, message: message.into(), hint: hint.into() }
    }
}

impl fmt::Display for ThresholdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.message, self.hint)
    }
}

impl std::error::Error for ThresholdError {}

/// Classes of errors that a threshold may name beside those of the core.
#[derive(Clone, Copy)]
enum Rows<'r> {
    /// The rows of a program.
    Known(&'r [&'static ErrorRow]),
    /// Any name that [can be read](ErrorClass::read).
    Any,
}

impl Rows<'_> {
    fn class(self, name: &str) -> Option<ErrorClass> {
        let row = || match self {
            Self::Known(rows) => rows.iter().find(|row| row.name == name).map(|row| ErrorClass::Other(row)),
            Self::Any => ErrorClass::read(name).ok(),
        };
        ErrorClass::from_name(name).or_else(row)
    }

    fn names(self) -> impl Iterator<Item = &'static str> {
        let rows = match self {
            Self::Known(rows) => rows,
            Self::Any => &[],
        };
        rows.iter().map(|row| row.name)
    }
}

impl Threshold {
    /// Parses `METRIC OP VALUE`, with spaces between them or without. Classes of errors are those of the
    /// core.
    ///
    /// # Errors
    /// The problem, its place, and what to write instead.
    pub fn parse(text: &str) -> Result<Self, ThresholdError> {
        Self::parse_with(text, &[])
    }

    /// Parses `METRIC OP VALUE` with these classes of errors beside those of the core.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_with(text: &str, rows: &[&'static ErrorRow]) -> Result<Self, ThresholdError> {
        Self::parse_among(text, Rows::Known(rows))
    }

    /// Parses the threshold of a run that was saved: a word that is not known here is a class of errors that
    /// an extension of the program had that made the run.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn of_saved(text: &str) -> Result<Self, ThresholdError> {
        Self::parse_among(text, Rows::Any)
    }

    fn parse_among(text: &str, rows: Rows<'_>) -> Result<Self, ThresholdError> {
        // A query has comparisons of its own, tags may have any sign, and a limit has no bracket.
        let from = match is_query(text) || is_own(text) {
            true => text.rfind(')').map_or(0, |end| end + 1),
            false => 0,
        };
        let start = text[from..].find(['<', '>', '=', '!']).ok_or_else(|| {
            ThresholdError::new(
                0..text.len(),
                format!("`{text}` compares nothing"),
                match is_query(text) {
                    true => "write a comparison behind the query, such as prom(rate(http_errors[1m]))<1",
                    false if is_own(text) => {
                        "write a figure and a comparison behind it, such as metric(cart_total).p95<100"
                    }
                    false => "write a figure, <, <=, >, >=, == or !=, and a limit, such as p99<10ms",
                },
            )
        })?;
        let start = from + start;
        let length = text[start..].find(|c| !"<>=!".contains(c)).unwrap_or(text.len() - start);
        let behind = start + length;
        let operator = operator(&text[start..behind], start..behind)?;
        let metric = metric(&trimmed(text, 0..start), rows)?;
        let of_limit = trimmed(text, behind..text.len());
        let limit = limit(&metric, &of_limit)?;
        if operator == Operator::Less && limit.is_least() {
            let hint = format!("write {}<={}, or a limit above it", &text[..start].trim(), of_limit.text);
            return Err(of_limit.error("nothing is below 0, so that this never holds", hint));
        }
        if let (Metric::Count(Counted::Total(Total::Checks)), Limit::Percent(share)) = (&metric, limit)
            && matches!(operator, Operator::Greater | Operator::AtLeast)
            && share.to_f64() >= 50.0
        {
            let most = 100.0 - share.to_f64();
            let hint = format!("write checks<{most}% for at least {} good ones", of_limit.text);
            return Err(
                of_limit.error("`checks` are responses that are not as expected, and no good ones", hint)
            );
        }
        // Each figure has one name, however it was written.
        let metric = match (&metric, limit) {
            (Metric::Count(Counted::Total(Total::Errors)), Limit::Percent(_)) => Metric::ErrorRate,
            _ => metric,
        };
        Ok(Self { metric, operator, limit })
    }
}

/// A part of a text, and where it is.
struct Part<'a> {
    text: &'a str,
    at: Range<usize>,
}

impl Part<'_> {
    fn error(&self, message: impl Into<String>, hint: impl Into<String>) -> ThresholdError {
        ThresholdError::new(self.at.clone(), message, hint)
    }
}

/// The part without the spaces around it.
fn trimmed(text: &str, range: Range<usize>) -> Part<'_> {
    let part = &text[range.clone()];
    let start = range.start + part.len() - part.trim_start().len();
    let trimmed = part.trim();
    Part { text: trimmed, at: start..start + trimmed.len() }
}

fn operator(text: &str, at: Range<usize>) -> Result<Operator, ThresholdError> {
    if let Some(known) = Operator::ALL.iter().find(|operator| operator.name() == text) {
        return Ok(*known);
    }
    let hint = match text {
        "=" => "write == for equal",
        "=<" => "write <=",
        "=>" => "write >=",
        _ => "write <, <=, >, >=, == or !=",
    };
    Err(ThresholdError::new(at, format!("`{text}` is not a comparison"), hint))
}

/// The word in front of the brackets around a query.
const QUERY: &str = "prom";
/// Longest query, in bytes: with every byte written as three, its URL is one that servers take.
pub const LONGEST_QUERY: usize = 2_000;

/// Returns `true` if the figure of a threshold is a query.
fn is_query(text: &str) -> bool {
    text.trim_start().strip_prefix(QUERY).is_some_and(|rest| rest.trim_start().starts_with('('))
}

/// The figure that a query is.
fn query(part: &Part<'_>) -> Result<Metric, ThresholdError> {
    let inner = part.text.strip_prefix(QUERY).map(str::trim_start);
    let inner = inner.and_then(|rest| rest.strip_prefix('(')?.strip_suffix(')'));
    let Some(inner) = inner.map(str::trim) else {
        let message = format!("`{}` is not a query in brackets", part.text);
        return Err(part.error(message, "write prom(QUERY), such as prom(rate(http_errors[1m]))<1"));
    };
    let problem = match inner {
        "" => Some(("the query is empty".to_owned(), "write one, such as prom(rate(http_errors[1m]))<1")),
        long if long.len() > LONGEST_QUERY => Some((
            format!("a query of {} bytes is too long: {LONGEST_QUERY} are the most", long.len()),
            "make it a recording rule of the server, and ask for that",
        )),
        broken if broken.contains(char::is_control) => Some((
            "the query has a line break, or another control character".to_owned(),
            "write it in one line: `>-` in a plan joins lines",
        )),
        _ => None,
    };
    match problem {
        Some((message, hint)) => Err(part.error(message, hint)),
        None => Ok(Metric::Query(inner.into())),
    }
}

fn metric(part: &Part<'_>, rows: Rows<'_>) -> Result<Metric, ThresholdError> {
    if is_query(part.text) {
        return query(part);
    }
    if is_own(part.text) {
        let own = own::parse(part.text).map_err(|(message, hint)| part.error(message, hint))?;
        return Ok(Metric::Own(Arc::new(own)));
    }
    if part.text.is_empty() {
        return Err(part.error("the figure is missing", "write one before the comparison, such as p99<10ms"));
    }
    if let Some(kind) = TimeKind::ALL.iter().find(|kind| kind.name() == part.text) {
        let hint = format!("write {}.p99, or another percentile, min, mean, max or stdev", kind.name());
        return Err(part.error(format!("`{}` is many figures", part.text), hint));
    }
    let (text, among) = match part.text.split_once('{') {
        Some((text, word)) => (text.trim_end(), Some(among(part, word)?)),
        None => (part.text, None),
    };
    let (kind, figure) = match text.split_once('.') {
        // The point of p99.9 does not separate a kind of time.
        Some((name, rest)) => match TimeKind::ALL.iter().find(|kind| kind.name() == name) {
            Some(kind) => (*kind, rest),
            None => (TimeKind::Response, text),
        },
        None => (TimeKind::Response, text),
    };
    let time = |figure| time_among(part, kind, figure, among);
    match figure {
        "min" => return time(Figure::Min),
        "mean" => return time(Figure::Mean),
        "max" => return time(Figure::Max),
        "stdev" => return time(Figure::Stdev),
        _ => {}
    }
    if let Some(number) = figure.strip_prefix('p')
        && number.starts_with(|c: char| c.is_ascii_digit())
    {
        return match Percentile::parse(number) {
            Some(percentile) => time(Figure::Percentile(percentile)),
            None => Err(part.error(
                format!("`{figure}` is not a percentile"),
                "write one above 0 and below 100, such as p99.9; the largest value is max",
            )),
        };
    }
    match part.text {
        "error_rate" => return Ok(Metric::ErrorRate),
        "timeout_rate" => return Ok(Metric::TimeoutRate),
        "rate" => return Ok(Metric::Rate),
        _ => {}
    }
    let total = Total::ALL.iter().find(|total| total.name() == part.text).map(|t| Counted::Total(*t));
    let class = || rows.class(part.text).map(Counted::Errors);
    total.or_else(class).map(Metric::Count).ok_or_else(|| unknown(part, rows))
}

/// The requests that a word in braces means, whose opening brace is gone.
fn among(part: &Part<'_>, word: &str) -> Result<Among, ThresholdError> {
    match word.strip_suffix('}').map(str::trim) {
        Some("due") => Ok(Among::Due),
        Some("ok") => Ok(Among::Good),
        Some("all") => Ok(Among::All),
        _ => Err(part.error(
            format!("`{{{word}` names no requests"),
            "write p99 for those that were due, p99{ok} for those that were answered well, or p99{all} for those \
             that ended in any way",
        )),
    }
}

fn time_among(
    part: &Part<'_>,
    kind: TimeKind,
    figure: Figure,
    among: Option<Among>,
) -> Result<Metric, ThresholdError> {
    let usual = Among::of(kind, figure);
    let among = among.unwrap_or(usual);
    let is_percentile = matches!(figure, Figure::Percentile(_));
    let exists = match among {
        Among::Due => kind.is_of_answers() && is_percentile,
        Among::Good => true,
        Among::All => kind == TimeKind::Response,
    };
    if exists {
        return Ok(Metric::Time(kind, figure, among));
    }
    let (message, hint) = match among {
        Among::All => (
            "only response times are known of all requests",
            "leave out {all}, or write it behind a figure of the response time, such as p99{all}",
        ),
        _ => (
            "only a percentile of response_time, service_time or first_byte_time is one of all that was due",
            "leave out {due}",
        ),
    };
    Err(part.error(message, hint))
}

/// Names of figures that have no prefix.
fn names(rows: Rows<'_>) -> impl Iterator<Item = &'static str> {
    ["p50", "p99", "min", "mean", "max", "stdev", "error_rate", "timeout_rate", "rate"]
        .into_iter()
        .chain(Total::ALL.iter().map(|total| total.name()))
        .chain(ErrorClass::CORE.iter().map(|class| class.name()))
        .chain(rows.names())
}

fn unknown(part: &Part<'_>, rows: Rows<'_>) -> ThresholdError {
    let habit = match part.text {
        "med" | "median" => Some("p50"),
        "avg" | "average" => Some("mean"),
        "error" | "http_req_failed" => Some("error_rate for a share, errors for a number"),
        "rps" | "throughput" => Some("rate"),
        "latency" | "duration" | "http_req_duration" => Some("p99, or another percentile"),
        _ => None,
    };
    // Of a word of three letters, two others make another word.
    let most = (part.text.len() / 2).min(2);
    let is_near = |name: &&str| distance(name, part.text) <= most;
    let near = names(rows).filter(is_near).min_by_key(|n| distance(n, part.text));
    let hint = match habit.or(near) {
        Some(name) => format!("write {name}"),
        None => "write p99 (any percentile), min, mean, max, stdev, error_rate, timeout_rate, rate, failed, \
                 timed_out, checks, dropped, the class of an error such as status_5xx, or of streams \
                 goodput, ttft.p99, itl.p99 or tpot.p50, of messages lag.p99; of a Prometheus server \
                 prom(QUERY); of the plan's own metrics metric(NAME).p95"
            .to_owned(),
    };
    part.error(format!("`{}` is not a figure", part.text), hint)
}

/// Single characters to insert, delete or replace (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.chars().enumerate() {
            let next = (diagonal + usize::from(x != y)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], next);
        }
    }
    row.last().copied().unwrap_or_default()
}

fn limit(metric: &Metric, part: &Part<'_>) -> Result<Limit, ThresholdError> {
    if part.text.is_empty() {
        return Err(part.error("the limit is missing", format!("write one, such as {}", example(metric))));
    }
    let wrong = || {
        let message = format!("`{}` is not a limit for {}", part.text, Shown(metric));
        part.error(message, format!("write one such as {}", example(metric)))
    };
    if let Metric::Query(_) = metric {
        let number = part.text.parse().ok().filter(|number: &f64| number.is_finite()).ok_or_else(wrong)?;
        return Ok(Limit::Number(Number(number)));
    }
    if let Metric::Own(own) = metric {
        return own::limit(own.figure, part.text).ok_or_else(wrong);
    }
    let split = part.text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(part.text.len());
    let (number, unit) = part.text.split_at(split);
    let number = Decimal::parse(number).ok_or_else(wrong)?;
    let unit = unit.trim();
    let in_units = |units: &[(&str, u64)]| {
        let factor = units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor)?;
        number.whole_times(factor)
    };
    match metric {
        Metric::Time(..) => in_units(TIMES).map(|ns| Limit::Time(Nanos(ns))),
        Metric::ErrorRate | Metric::TimeoutRate if unit.is_empty() => {
            number.times(100).map(Limit::Percent).filter(|_| number.is_at_most(1))
        }
        Metric::ErrorRate | Metric::TimeoutRate => percent(number, unit),
        Metric::Count(counted) if counted.is_bytes() => in_units(BYTES).map(Limit::Count),
        Metric::Count(_) if unit == "%" => percent(number, unit),
        Metric::Count(_) => in_units(THOUSANDS).map(Limit::Count),
        Metric::Rate => rate(number, unit),
        Metric::Query(_) | Metric::Own(_) => None,
    }
    .ok_or_else(wrong)
}

/// A time in the largest unit that needs no point; minutes and hours read worse than seconds.
pub(crate) fn time_text(Nanos(ns): Nanos) -> String {
    let unit = TIMES[..5].iter().rev().filter(|(name, _)| name.is_ascii());
    let mut unit = unit.filter(|(_, length)| ns.is_multiple_of(*length));
    let (name, length) = unit.next().copied().unwrap_or(("ns", 1));
    format!("{}{name}", ns / length)
}

/// A time with its unit; `None` if the text is not one.
pub(crate) fn parse_time(text: &str) -> Option<Nanos> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = TIMES.iter().find(|(name, _)| *name == unit.trim())?.1;
    Decimal::parse(number)?.whole_times(factor).map(Nanos)
}

fn percent(number: Decimal, unit: &str) -> Option<Limit> {
    (unit == "%" && number.is_at_most(100)).then_some(Limit::Percent(number))
}

fn rate(number: Decimal, unit: &str) -> Option<Limit> {
    if let Some(target) = unit.strip_prefix('*') {
        return (target.trim() == "target").then_some(Limit::OfTarget(number));
    }
    if unit == "% of target" || unit == "%*target" {
        return number.hundredth().map(Limit::OfTarget);
    }
    let (thousands, span) = unit.split_once('/').unwrap_or((unit, "s"));
    let factor = THOUSANDS.iter().find(|(name, _)| *name == thousands.trim())?.1;
    let span = Span::ALL
        .iter()
        .find(|known| known.name() == span.trim() || span == "min" && known.seconds() == 60)?;
    Some(Limit::Rate(number.times(factor)?, *span))
}

fn example(metric: &Metric) -> &'static str {
    match metric {
        Metric::Time(..) => "10ms, 250us or 1.5s",
        Metric::ErrorRate | Metric::TimeoutRate => "0.1%",
        Metric::Count(counted) if counted.is_bytes() => "10MiB",
        Metric::Count(_) => "100, 10k or 0.1%",
        Metric::Rate => "5000, 5k/s, 300/m or 0.99*target",
        Metric::Query(_) => "1, 0.01, -5 or 1e6",
        Metric::Own(own) if own.figure == own::SeriesFigure::Rate => {
            "95% of a rate, or 5 per second of a counter"
        }
        Metric::Own(_) => "100, 0.5, -5 or 1e6",
    }
}

/// The name of a metric.
pub(crate) struct Shown<'m>(pub(crate) &'m Metric);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            &Metric::Time(kind, figure, among) => {
                if kind != TimeKind::Response {
                    write!(f, "{}.", kind.name())?;
                }
                match figure {
                    Figure::Percentile(percentile) => write!(f, "p{percentile}")?,
                    Figure::Min => f.write_str("min")?,
                    Figure::Mean => f.write_str("mean")?,
                    Figure::Max => f.write_str("max")?,
                    Figure::Stdev => f.write_str("stdev")?,
                }
                match among {
                    usual if usual == Among::of(kind, figure) => Ok(()),
                    Among::Due => f.write_str("{due}"),
                    Among::Good => f.write_str("{ok}"),
                    Among::All => f.write_str("{all}"),
                }
            }
            Metric::ErrorRate => f.write_str("error_rate"),
            Metric::TimeoutRate => f.write_str("timeout_rate"),
            Metric::Count(counted) => f.write_str(counted.name()),
            Metric::Rate => f.write_str("rate"),
            Metric::Query(query) => write!(f, "{QUERY}({query})"),
            Metric::Own(own) => write!(f, "{own}"),
        }
    }
}

impl From<Threshold> for String {
    fn from(threshold: Threshold) -> Self {
        threshold.to_string()
    }
}

impl TryFrom<String> for Threshold {
    type Error = ThresholdError;

    fn try_from(text: String) -> Result<Self, ThresholdError> {
        Self::of_saved(&text)
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", Shown(&self.metric), self.operator.name())?;
        match self.limit {
            Limit::Time(time) => f.write_str(&time_text(time)),
            Limit::Percent(percent) => write!(f, "{percent}%"),
            Limit::Count(count) => write!(f, "{count}"),
            Limit::Rate(count, span) => write!(f, "{count}/{}", span.name()),
            Limit::OfTarget(share) => write!(f, "{share}*target"),
            Limit::Number(Number(number)) => write!(f, "{number}"),
        }
    }
}
