//! The table of settings.
//!
//! A setting is one entry here: its name, its kind, its flag and its help. Everything else is made from the
//! entry: the key of a plan's `run` and its schema ([`Settings`]), the field of `plan::PlanPatch`, the
//! variable of the environment, the flag of the command line, its line in `plimsoll explain` and its rows in
//! the reference. The meaning of a value is decided where the plan is resolved, and which settings exclude
//! each other in `plan::layers`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Field, Place, RawValue, Text};

/// Beginning of the names of environment variables that are settings.
pub const VARIABLE_PREFIX: &str = "PLIMSOLL_";

/// One setting of a run.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Name of the setting in plan files.
    pub name: &'static str,
    /// The values that it takes.
    pub kind: SettingKind,
    /// The layers that may give it.
    pub layers: SettingLayers,
    /// Heading of its flag in the help.
    pub heading: &'static str,
    /// Flag of the command line.
    pub flag: Flag,
    /// Description as the table has it, with its line breaks.
    text: &'static str,
}

/// Values of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingKind {
    /// One value.
    Value,
    /// One value, which may be repeated if it stays the same: examples of other tools repeat it.
    Repeatable,
    /// Any number of values.
    List,
    /// `true` or `false`.
    Switch,
}

/// Layers in which a setting can be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingLayers {
    /// Plan files, the environment and flags.
    All,
    /// Flags alone: plan files say the same in another way.
    Flags,
}

/// The flag of a setting.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// Letter of the short flag.
    pub short: Option<char>,
    /// Letters of the same flag in other tools.
    pub short_aliases: &'static [char],
    /// Another long name.
    pub alias: Option<&'static str>,
    /// The name of its value in the help; empty for switches.
    pub value_name: &'static str,
    /// `true` if a value may begin like a negative number, so that the message about it is ours.
    pub number: bool,
    /// `true` if a value may begin like a flag.
    pub any_text: bool,
    /// The value of the bare flag, if it can stand without one.
    pub optional: Option<&'static str>,
    /// `true` if it is in the short help, too.
    pub common: bool,
    /// Meaning of the letter in other tools: the advice when the value makes no sense here.
    pub habit: Option<&'static str>,
    long: Option<&'static str>,
}

impl Setting {
    /// All settings: those that only flags can give, then the others, each in the order of the help.
    pub const ALL: &'static [Self] = TABLE;

    /// Headings of flags in the order of the help.
    pub const HEADINGS: &'static [&'static str] = &[
        "Load",
        "Request",
        "Misbehaving clients",
        "Create, update, delete",
        "Connection",
        "HTTP/2",
        "TLS",
        "Instrument",
        "Thresholds",
        "Live output",
        "Control",
    ];

    /// Returns the setting of this name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        TABLE.iter().find(|setting| setting.name == name)
    }

    /// Returns the setting of this flag, such as `--rate` or `-R`.
    pub fn by_flag(flag: &str) -> Option<&'static Self> {
        TABLE.iter().find(|setting| match (flag.strip_prefix("--"), flag.strip_prefix('-')) {
            (Some(long), _) => setting.long() == long || setting.flag.alias == Some(long),
            (None, Some(letter)) => setting.flag.short.is_some_and(|short| letter.chars().eq([short])),
            (None, None) => false,
        })
    }

    /// The settings that plan files and the environment can give.
    pub fn in_plan_files() -> impl Iterator<Item = &'static Self> {
        TABLE.iter().filter(|setting| setting.layers == SettingLayers::All)
    }

    /// The long name of its flag, without the dashes.
    pub fn long(&self) -> String {
        self.flag.long.map_or_else(|| self.name.replace('_', "-"), str::to_owned)
    }

    /// Returns the name of the setting's environment variable.
    pub fn variable(&self) -> String {
        format!("{VARIABLE_PREFIX}{}", self.name.to_ascii_uppercase())
    }

    /// Returns the paragraphs of the description, the summary first.
    pub fn paragraphs(&self) -> Vec<String> {
        paragraphs(self.text).collect()
    }

    /// `text` as the value of its flag.
    pub fn typed(&self, text: impl Into<String>) -> RawValue {
        let given = RawValue::new(format!("--{}", self.long()), text);
        RawValue { habit: self.flag.habit, ..given }
    }
}

/// The paragraphs of a doc comment, each on one line.
pub(crate) fn paragraphs(text: &str) -> impl Iterator<Item = String> {
    text.split("\n\n").map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A flag that is shown in the long help only, and takes no value.
const fn flag() -> Flag {
    Flag {
        short: None,
        short_aliases: &[],
        alias: None,
        value_name: "",
        number: false,
        any_text: false,
        optional: None,
        common: false,
        habit: None,
        long: None,
    }
}

impl Flag {
    const fn value(self, value_name: &'static str) -> Self {
        Self { value_name, ..self }
    }

    const fn long(self, name: &'static str) -> Self {
        Self { long: Some(name), ..self }
    }

    const fn short(self, letter: char) -> Self {
        Self { short: Some(letter), ..self }
    }

    const fn short_aliases(self, short_aliases: &'static [char]) -> Self {
        Self { short_aliases, ..self }
    }

    const fn alias(self, name: &'static str) -> Self {
        Self { alias: Some(name), ..self }
    }

    const fn number(self) -> Self {
        Self { number: true, ..self }
    }

    const fn any_text(self) -> Self {
        Self { any_text: true, ..self }
    }

    const fn optional(self, value: &'static str) -> Self {
        Self { optional: Some(value), ..self }
    }

    const fn common(self) -> Self {
        Self { common: true, ..self }
    }

    const fn habit(self, advice: &'static str) -> Self {
        Self { habit: Some(advice), ..self }
    }
}

/// Types of the kinds in plan files.
mod in_document {
    use crate::{Field, Text};

    pub(super) type Value = Field<Text>;
    pub(super) type Repeatable = Field<Text>;
    pub(super) type List = Field<Vec<Field<Text>>>;
    pub(super) type Switch = Field<bool>;
}

/// One value of a setting in a plan file: its text, unless it is wrong, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingValue {
    /// The text; `None` if it could not be understood, which has been reported.
    pub text: Option<String>,
    /// The place of the value.
    pub place: Place,
}

/// A field of a plan file that holds the values of a setting.
trait DocumentValues {
    /// The values, if it is there.
    fn setting_values(&self) -> Vec<SettingValue>;

    /// Sets it to values that were not read from a file.
    fn set_values(&mut self, values: &[&str]);
}

impl DocumentValues for Field<Text> {
    fn setting_values(&self) -> Vec<SettingValue> {
        let text = || self.get().map(|text| text.0.clone());
        self.place().map(|place| SettingValue { text: text(), place }).into_iter().collect()
    }

    fn set_values(&mut self, values: &[&str]) {
        *self = values.last().map_or(Self::Absent, |last| Self::text(*last));
    }
}

impl DocumentValues for Field<bool> {
    fn setting_values(&self) -> Vec<SettingValue> {
        let text = || self.get().map(ToString::to_string);
        self.place().map(|place| SettingValue { text: text(), place }).into_iter().collect()
    }

    fn set_values(&mut self, values: &[&str]) {
        *self = values.last().map_or(Self::Absent, |last| Self::new(*last == "true"));
    }
}

impl DocumentValues for Field<Vec<Field<Text>>> {
    fn setting_values(&self) -> Vec<SettingValue> {
        match self {
            Self::Given(items, _) => items.iter().flat_map(DocumentValues::setting_values).collect(),
            Self::Bad(place) => vec![SettingValue { text: None, place: *place }],
            Self::Absent => Vec::new(),
        }
    }

    fn set_values(&mut self, values: &[&str]) {
        *self = match values {
            [] => Self::Absent,
            all => Self::new(all.iter().map(|value| Field::text(*value)).collect()),
        };
    }
}

macro_rules! settings {
    (Flags { $($flags:tt)* } All { $($all:tt)* }) => {
        settings!(@document $($all)*);
        const TABLE: &[Setting] = &settings!(@table [$($flags)*] [$($all)*]);
    };
    (@document $($heading:literal {
        $($(#[doc = $doc:literal])* $name:ident: $kind:ident = $flag:expr,)+
    })+) => {
        /// Settings of the load: the flags of `plimsoll run` by their long names.
        // Settings are documented by the help of their flags, in which brackets are no links.
        #[allow(rustdoc::broken_intra_doc_links)]
        #[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        #[non_exhaustive]
        pub struct Settings {
            $($(
                $(#[doc = $doc])*
                #[serde(skip_serializing_if = "Field::is_absent")]
                pub $name: in_document::$kind,
            )+)+
        }

        impl Settings {
            /// The values of all settings that are there, by name.
            pub fn values(&self) -> Vec<(&'static str, Vec<SettingValue>)> {
                let all = [$($((stringify!($name), self.$name.setting_values()),)+)+];
                all.into_iter().filter(|(_, values)| !values.is_empty()).collect()
            }

            /// Sets the setting of this name to values that were not read from a file; the last one holds
            /// where it has one value. Returns `false` if there is no such setting.
            pub fn set(&mut self, name: &str, values: &[&str]) -> bool {
                match name {
                    $($(stringify!($name) => self.$name.set_values(values),)+)+
                    _ => return false,
                }
                true
            }
        }
    };
    (@table [$($flags:tt)*] [$($all:tt)*]) => {
        settings!(@entries { Flags $($flags)* } { All $($all)* })
    };
    (@entries $({ $layers:ident $($heading:literal {
        $($(#[doc = $doc:literal])* $name:ident: $kind:ident = $flag:expr,)+
    })+ })+) => {
        [$($($(
            Setting {
                name: stringify!($name),
                kind: SettingKind::$kind,
                layers: SettingLayers::$layers,
                heading: $heading,
                flag: $flag,
                text: concat!($($doc, "\n",)*),
            },
        )+)+)+]
    };
}

const THREADS_HABIT: &str =
    "`-t` is the number of threads here; hey's and oha's `-t` is --timeout, fortio's is --duration";
const DURATION_HABIT: &str = "the duration is written 30s or 1m30s; curl's, hey's and oha's `-d` is --body here, \
                              hey's and oha's `-D FILE` and h2load's `-d FILE` are --body @FILE";
const STREAMS_HABIT: &str = "hey's and oha's `-m` is -X here; `-m` is the number of concurrent streams";
const MILLISECONDS_HABIT: &str = "write a number of milliseconds, such as 2000, or `--timeout 2s`";

/// Hands the table of settings to the macro `$callback`: a crate makes of it what it needs.
#[macro_export]
macro_rules! with_settings {
    ($callback:ident) => {
        $callback! {
    Flags {
        "Load" {
            /// Carry out one of several equal shards of the load: 2/3 is the second of three, 2-4/7 are three
            ///
            /// Shards on several machines, each with the same plan, --seed, -t and --start-at, make together
            /// what one machine would, request by request. Rates, users and connections are those of the
            /// whole load. One that has several has as many times the threads. `plimsoll merge` makes one
            /// result of theirs.
            shard: Value = flag().value("K/N"),
            /// Begin the load at this instant of the machine's clock, such as 2026-03-01T12:00:00Z
            ///
            /// `command` waits for the instant at the control port: POST /start.
            start_at: Value = flag().value("TIME"),
        }
        "Request" {
            /// Method [default: GET, with a body POST]
            method: Value = flag().value("METHOD").short('X').common(),
            /// Body: text (a template), or @file as it is (@- reads stdin)
            ///
            /// No Content-Type is added. A text that starts with @ has to come from a file.
            body: Value = flag().value("BODY").short('b').any_text().common(),
            /// Another name of --timeout
            stream_timeout: Value = flag().value("TIME").number(),
            /// Lua script of wrk, as it is; arguments for it behind `--`
            script: Value = flag().value("FILE").short('s').common(),
            /// Let scripts open files, start processes and resolve names
            script_allow_system: Switch = flag(),
            /// Let the plan read files below this folder, too, and write its logs there
            ///
            /// Without it, the files of a plan are below the plan's own folder, and its logs below the folder
            /// in which the command runs.
            allow_files: List = flag().value("DIR"),
        }
        "Create, update, delete" {
            /// Create a resource at the URL with this method [default: POST]
            ///
            /// Any of the --crud flags gives every iteration several steps: a request that creates a
            /// resource, then one that updates and one that deletes it, each when the one before was
            /// answered or has failed. No Content-Type is added: give it with -H.
            crud_create_method: Value = flag().value("METHOD"),
            /// Then update the resource with this method, such as PATCH [default: no update]
            crud_update_method: Value = flag().value("METHOD"),
            /// Finally delete the resource with this method, such as DELETE [default: no delete]
            crud_delete_method: Value = flag().value("METHOD"),
            /// Header of the first response that says where the resource is [default: location]
            crud_resource_header: Value = flag().value("NAME"),
            /// Text in the URL's path and in the data files that stands for a number
            ///
            /// Every iteration has the next number of the range, with zeros in front to the width of its end;
            /// the last one is followed by the first.
            crud_request_variable_name: Value = flag().value("TEXT").any_text(),
            /// First number of the range [default: 0]
            crud_request_variable_value_start: Value = flag().value("N").number(),
            /// End of the range, excluded
            crud_request_variable_value_end: Value = flag().value("N").number(),
            /// Body of the request that creates
            crud_create_data_file: Value = flag().value("FILE"),
            /// Body of the request that updates
            crud_update_data_file: Value = flag().value("FILE"),
            /// --timeout in milliseconds, with --crud flags only
            stream_timeout_interval_ms: Value = flag().value("N").number().habit(MILLISECONDS_HABIT),
        }
        "Thresholds" {
            /// Fail the run (exit code 99) unless this holds: 'p99<10ms', 'errors<1%'
            ///
            /// Repeatable: FIGURE OP LIMIT with <, <=, >, >=, == or !=. Figures: p99 (any percentile), min,
            /// mean, max and stdev of the response time, or of another one: service_time.p99, start_lag,
            /// first_byte_time, connect_time, tls_time, failed_response_time, and of streams of events ttft,
            /// ttft_from_sent, ttfa, itl, tpot, ntpot; of messages lag; goodput, in percent; error_rate,
            /// timeout_rate; rate
            /// (responses per second; also rate>=0.99*target); started, dropped, ok, failed, timed_out,
            /// errors (failed or timed out; errors<1% is error_rate<1%), checks, bytes_sent, bytes_received,
            /// and the classes of errors, such as status_5xx, as numbers or in percent. A percentile is of
            /// all requests that were due: one that failed, was dropped or never started was not answered
            /// well in any time. p99{ok} is of those that were answered well, p99{all} of all that ended.
            /// A threshold without data, with too few values for a percentile, or that timeouts leave open
            /// is neither met nor failed, and the run has no verdict. prom(QUERY), compared with a number,
            /// is asked of the Prometheus server of --prom-url at the end of the measured part: every
            /// series of the answer has to hold.
            thresholds: List = flag().value("THRESHOLD").long("threshold").any_text().common(),
            /// End the run as soon as a --threshold is shown not to hold
            ///
            /// It is judged after every interval, over the run so far; one on a query every 5 s.
            abort_on_fail: Switch = flag(),
        }
    }
    All {
        "Load" {
            /// Connections [default: 64; with --rate: as many as needed]
            ///
            /// In the closed model as many users send requests at once, times --pipeline or
            /// --max-concurrent-streams. With several targets, each user may have a connection to each.
            connections: Value = flag().value("N").short('c').number().common(),
            /// Length of the run [default: 10s]
            duration: Value = flag()
                .value("TIME").short('d').short_aliases(&['z', 'D']).number().common().habit(DURATION_HABIT),
            /// End after this many iterations
            iterations: Value = flag().value("N").short('n').number().common(),
            /// Open model: iterations to start per second, in total
            rate: Value = flag().value("RATE").short('R').short_aliases(&['q']).number().common(),
            /// Open model: rates over time: 30s@1000,1m@5000 holds 1000/s, then ramps
            ///
            /// TIME@RATE ramps from the rate before to this one, TIME@=RATE steps to it. The first one has
            /// none before it, and holds: to rise from nothing write 1ms@0 in front. (k6 ramps in the
            /// first, too.) @FILE replays a trace: one iteration at the `timestamp`, in milliseconds, of
            /// each line of JSON.
            stages: Value = flag().value("STAGES").common(),
            /// Closed model: number of users [default: one per connection]
            ///
            /// Each has a connection when it needs one. With --http2 or --pipeline several users share a
            /// connection: as many as may have requests in flight on it.
            users: Value = flag().value("N").number().common(),
            /// Closed model: users over time: 30s@10,1m@50 holds 10, then ramps to 50
            ///
            /// Written like --stages: k6's `10s:50`, which ramps, is 1ms@0,10s@50 here. A user that leaves
            /// ends its iteration first.
            user_stages: Value = flag().value("STAGES"),
            /// Unit of --rate and --stages: iterations or requests [default: iterations]
            ///
            /// With requests, each request of an iteration waits for its turn: there are as many per second
            /// as asked for, however many an iteration has. Weights of scenarios are shares of them.
            rate_of: Value = flag().value("UNIT"),
            /// Order in which iterations go to scenarios: even or shuffled [default: even]
            ///
            /// even spreads each scenario over a round, which has as many iterations as the weights say, and
            /// all rounds are alike. shuffled draws the order of every round by the seed, so that no scenario
            /// is always the one after another.
            deal: Value = flag().value("ORDER"),
            /// Arrival process: uniform or poisson [default: uniform]
            arrival: Value = flag().value("KIND").common(),
            /// When all connections are busy: queue, drop or grow
            ///
            /// queue lets an arrival wait for a connection, and its waiting counts as response time. drop
            /// gives it up and counts it as dropped. grow opens another connection for it, up to -c. The
            /// default is queue with -c, and grow up to 10000 connections without.
            overload: Value = flag().value("POLICY"),
            /// Worker threads [default: 1, which carries more than 100k requests/s]
            threads: Value = flag().value("N").short('t').number().common().habit(THREADS_HABIT),
            /// Load before the measured part, not recorded
            warmup: Value = flag().value("TIME").number().common(),
            /// Time to wait for outstanding responses after the end [default: the longest timeout of a step]
            drain: Value = flag().value("TIME").number(),
            /// Seed of every random choice [default: random, and reported]
            seed: Value = flag().value("SEED").number(),
        }
        "Request" {
            /// Header `Name: value`, repeatable; an empty value drops a default
            headers: List = flag().value("HEADER").long("header").short('H').common(),
            /// Basic authentication: user:password, or @file
            basic: Value = flag().value("USER:PASSWORD").common(),
            /// Bearer token, or @file
            bearer: Value = flag().value("TOKEN").common(),
            /// Kind of credentials: basic, bearer or jwt, a token that is signed here [default: those given]
            auth: Value = flag().value("KIND"),
            /// Sign a JSON Web Token for every request with this key: a file, or env:NAME
            ///
            /// For HS256, HS384 and HS512 any bytes, else a private key in PEM. The token has `iat` and
            /// `exp`, and is signed again in time before it expires. Several tokens, and one for each user,
            /// are a matter of plans.
            jwt_key: Value = flag().value("KEY"),
            /// Algorithm of the JSON Web Token: HS256, HS384, HS512, ES256, EdDSA or RS256 [default: HS256]
            jwt_alg: Value = flag().value("ALGORITHM"),
            /// Claims of the JSON Web Token besides iat and exp, a JSON object
            jwt_claims: Value = flag().value("JSON"),
            /// Lifetime of the JSON Web Token in whole seconds; signed again a quarter of it before its end,
            /// at most 30s [default: 5m]
            jwt_lifetime: Value = flag().value("TIME").number(),
            /// Limit for a whole response, from its start [default: 30s]
            timeout: Value = flag().value("TIME").number().common(),
        }
        "Misbehaving clients" {
            /// Percentage of requests to abort on purpose: close the connection, or cancel the stream
            ///
            /// The seed decides which, and where. Such requests are counted apart, as aborted: they are
            /// no failures, and no response times. On a pipelined connection those beside one are aborted
            /// with it.
            abort_pct: Value = flag().value("PERCENT"),
            /// Part of the exchange to abort: request, response or either [default: either]
            abort_at: Value = flag().value("PART"),
            /// Percentage of requests to wait for no longer than --abandon-after
            abandon_pct: Value = flag().value("PERCENT"),
            /// Time from the start of such a request until its connection or stream is aborted
            abandon_after: Value = flag().value("TIME"),
        }
        "Request" {
            /// Follow redirects, also to other servers, at most N in a row [default: 10]
            follow_redirects: Value = flag().value("N").optional(""),
            /// Name each request to its server for tracing: the header `traceparent` (W3C Trace Context).
            /// SHARE is the part of them that is marked as sampled [default: 100%]
            ///
            /// Reports have the trace ids of the slowest and of failed requests. A header of that name which
            /// a step has stays.
            trace_context: Value = flag().value("SHARE").optional("100%"),
            /// Link to a trace in reports: a URL with ${trace_id} in it
            trace_link: Value = flag().value("URL"),
            /// Hide the values of this name in results, too: a query parameter, header or field of a body;
            /// repeatable
            ///
            /// Values of names such as token, key, secret, password, sig, session and code, and of headers
            /// such as Authorization and Cookie, are stars in everything that is written anyway. What is sent
            /// stays as it is. See docs/reports.md.
            redact: List = flag().value("NAME"),
        }
        "Create, update, delete" {
            /// Open model: requests per second on every connection; as a flag with --crud flags only
            ///
            /// With --connection-rate the load grows with the connections.
            rps: Value = flag().value("RATE").number(),
        }
        "Connection" {
            /// Speak HTTP/2, over TLS and without
            http2: Switch = flag().common(),
            /// Speak HTTP/2 without TLS: the same as --http2 for http://
            http2_prior_knowledge: Switch = flag(),
            /// Speak HTTP/1.1, as without any of these flags
            http1: Switch = flag().long("http1.1"),
            /// HTTP/2: streams per connection [default: 1; with a rate: up to 100]
            max_concurrent_streams: Repeatable = flag()
                .value("N").long("streams").short('m').alias("max-concurrent-streams").number().common()
                .habit(STREAMS_HABIT),
            /// Requests in flight on one connection that answers in turn (HTTP/1.1) [default: 1]
            pipeline: Value = flag().value("N").number(),
            /// Use every connection for one request
            disable_keepalive: Switch = flag().common(),
            /// Close a connection after this many requests
            max_requests_per_connection: Value = flag().value("N").number(),
            /// Close a connection of this age, when its requests are answered
            connection_lifetime: Value = flag().value("TIME").number(),
            /// Close a connection that was idle for this long
            connection_inactivity: Value = flag().value("TIME").number(),
            /// Connections to open per second until all are open [default: all at once]
            connection_rate: Value = flag().value("RATE").number(),
            /// Limit for a connection to be established [default: 10s]
            connect_timeout: Value = flag().value("TIME").number(),
            /// Do not send requests again that the server has not processed: count them as failed
            ///
            /// Without it a request is sent once more, with its intended time and its time limit, if the
            /// server says by HTTP/2 that it has not processed it (GOAWAY, REFUSED_STREAM), or has closed a
            /// connection of HTTP/1.1 that was used before, without one byte of an answer; the latter only
            /// if the request may be repeated (GET, HEAD, OPTIONS, TRACE, PUT, DELETE). The accounts have
            /// them as `resent`.
            no_resend: Switch = flag(),
            /// Connect from this local address, repeatable (taken in turn)
            source_ip: List = flag().value("IP"),
            /// Use these addresses for a host, repeatable
            resolve: List = flag().value("HOST:PORT:ADDR[,ADDR]"),
            /// Resolve names again as often as this while the run goes on, or `never` [default: 30s]
            ///
            /// New connections go to the addresses to which a name leads then, those that are open stay where
            /// they are (`--connection-lifetime` ends them). What changed is in the result.
            resolve_every: Value = flag().value("TIME|never").number(),
            /// Connect to another host, repeatable; empty parts match everything
            connect_to: List = flag().value("HOST1:PORT1:HOST2:PORT2"),
            /// Connect to this unix socket
            unix_socket: Value = flag().value("PATH"),
            /// Go through this proxy: http://[USER:PASSWORD@]HOST:PORT, socks5:// or socks5h://; or none
            ///
            /// An HTTP proxy is handed requests to http:// URLs as they are; for https://, wss:// and HTTP/2
            /// it is asked for a tunnel (CONNECT), as a SOCKS5 proxy is for every connection. `socks5`
            /// resolves names here, `socks5h` tells them to the proxy. Times include those of the proxy.
            /// Variables such as HTTPS_PROXY are not read.
            proxy: Value = flag().value("URL"),
            /// Use only IPv4
            ipv4: Switch = flag().short('4'),
            /// Use only IPv6
            ipv6: Switch = flag().short('6'),
        }
        "HTTP/2" {
            /// Window of every stream: 2^N - 1 bytes, N from 16 to 31 [default: 30]
            window_bits: Value = flag().value("N").number(),
            /// Window of every connection: 2^N - 1 bytes, N from 16 to 31 [default: 30]
            connection_window_bits: Value = flag().value("N").number(),
            /// Header table that servers may use for responses [default: 4096]
            header_table_size: Value = flag().value("SIZE").number(),
            /// Most that requests use of a server's header table [default: 4096]
            encoder_header_table_size: Value = flag().value("SIZE").number(),
            /// Largest frame that servers may send [default: 16KiB]
            max_frame_size: Value = flag().value("SIZE").number(),
            /// Send a PING on every connection as often as this [default: never]
            ping_interval: Value = flag().value("TIME").number(),
        }
        "TLS" {
            /// Do not verify certificates
            insecure: Switch = flag().short('k').common(),
            /// Trust the authorities in this PEM file instead of the system's
            cacert: Value = flag().value("FILE").common(),
            /// Client certificate (PEM; may contain the key)
            cert: Value = flag().value("FILE"),
            /// Key of the client certificate (PEM)
            key: Value = flag().value("FILE"),
            /// Only this version: 1.2 or 1.3
            tls: Value = flag().value("VERSION"),
            /// Name for SNI and verification instead of the URL's host
            sni: Value = flag().value("NAME"),
            /// Offer these protocols, the preferred one first: h2, http/1.1 [default: http/1.1]
            ///
            /// The server chooses, and the run follows it. --http2 offers h2 alone.
            alpn: Value = flag().value("LIST"),
        }
        "Instrument" {
            /// Start every request at its time, for a whole core: polls busily before it, as --pacing precise
            precise: Switch = flag(),
            /// Use of wake-ups: adaptive, shared or precise [default: adaptive]
            ///
            /// `adaptive` starts requests at their time as long as less than about 70 % of the core is used,
            /// each with a wake-up of its own; above that as few as possible share wake-ups. `shared` is the
            /// cheapest load: from some 2,000/s on requests start up to 0.8 ms late, on purpose, which is in
            /// their response times. `precise` never sleeps.
            pacing: Value = flag().value("MODE"),
            /// System interface: auto, epoll or uring [default: auto]
            backend: Value = flag().value("NAME"),
            /// Limit of a response's head [default: 64KiB]
            max_head_bytes: Value = flag().value("SIZE").number(),
            /// Skip the first contact before the run
            ///
            /// Each server is tried before the run with the first GET or HEAD of the plan that needs no
            /// values of responses or data and no script; if there is none, it is connected to, and nothing
            /// is sent.
            no_preflight: Switch = flag(),
        }
        "Thresholds" {
            /// Base URL of the Prometheus server that thresholds on queries, prom(QUERY), are asked of
            ///
            /// Or of a server with its API: Thanos, Mimir, VictoriaMetrics. A user and a password in it are
            /// sent as Basic authentication, and shown nowhere.
            prom_url: Value = flag().value("URL"),
            /// Interval between statistics: whole seconds, or from 100ms [default: 1s]
            interval: Value = flag().value("TIME").number(),
            /// Count streamed requests that hold all of these bounds: 'ttft<500ms & tpot<50ms'
            ///
            /// For steps with `stream`. Times: ttft (first content, from when the request was due), ttfa
            /// (first content that is not reasoning), itl (the longest gap between two contents), tpot (per
            /// token after the first), ntpot (response time per token) and response_time. Requests that
            /// failed or timed out do not count. The share can be demanded, as in --threshold
            /// 'goodput>99%'.
            goodput: Value = flag().value("BOUNDS"),
        }
        "Live output" {
            /// Write statistics per scenario in every interval: CSV to FILE.csv, else lines of JSON; - is
            /// stderr
            ///
            /// The last row of an interval is that of all scenarios, `total`. Times are response times in
            /// nanoseconds as they are in the report; a percentile with too few values is empty. Without
            /// those of the warm-up, the rows add up to the accounts of the run.
            stats: Value = flag().value("FILE"),
            /// Write one line per request: CSV to FILE.csv, h2load's lines to FILE.tsv, else lines of JSON
            log: Value = flag().value("FILE"),
            /// Write when each event of a stream came, one line per response: CSV to FILE.csv, else lines
            /// of JSON
            ///
            /// A line has the `id` that the server gave to a completion, the server's counts of tokens, and
            /// the instants at which the request was due and sent and at which each event with content
            /// came, in nanoseconds of CLOCK_MONOTONIC, as truth logs of built-in servers have them.
            stream_log: Value = flag().value("FILE"),
            /// Write failed requests to a file, with both messages as far as they are kept
            ///
            /// Heads and bodies are cut after 64 KiB each. Secrets are stars, except for those in bodies of
            /// responses.
            failed: Value = flag().value("FILE"),
        }
        "Control" {
            /// Take the rate from the first line of a file whenever it changes: 5k/s, pause, resume
            ///
            /// It is counted as --rate is. In a run with `rps`, or with --rps, it is that of every
            /// connection, in requests.
            rate_file: Value = flag().value("FILE"),
            /// Serve statistics and control by HTTP at this address, such as 127.0.0.1:0
            ///
            /// GET /stat returns the latest figures. POST /rate sets the rate of all iterations per second,
            /// by a body such as 5k/s or {"rate":"5k/s"}; POST /pause, /resume and /stop steer the run;
            /// without a token they need the field `x-plimsoll-control: 1`, which no web page can send. POST
            /// /config?rps=100 sets requests per second on every connection. The address with its port is on
            /// stderr.
            control: Value = flag().value("ADDR"),
            /// Let GET /config?rps=100 change the rate at --control, too, as h2loadrunner does
            ///
            /// A web page in a browser can send a GET without a token, too; those that browsers mark as such
            /// are refused.
            control_h2loadrunner: Switch = flag(),
            /// Highest rate that may be set while the run goes on [default: ten times the highest planned]
            max_rate: Value = flag().value("RATE").number(),
        }
    }
        }
    };
}

with_settings!(settings);
