//! Servers, connections, TLS, HTTP/2 and outputs.

use plimsoll_document::{Field, TargetSpec, Text};

use super::{Importer, Spoken};
use crate::amount::{self, Ratio};
use crate::draft::text;
use crate::source::Object;

/// Bits of a window that can be asked for: 2^16 - 1 bytes is the least that RFC 9113 gives, 2^31 - 1 the
/// most.
const WINDOW_BITS: std::ops::RangeInclusive<u64> = 16..=31;

/// Default of the sizes of sockets' buffers, in bytes.
const SOCKET_BUFFER: u64 = 4_194_304;

/// A limit that no response meets: without `stream-timeout`, or with 0, there is none.
const NO_TIMEOUT: &str = "365d";

/// In front of the names of the ciphers that are offered by default, there as here: with ephemeral keys on
/// elliptic curves.
const USUAL_CIPHER: &str = "ECDHE-";

impl Importer<'_> {
    /// The target of requests.
    pub(super) fn server(&mut self, top: &mut Object<'_>) {
        match top.text("schema", &mut self.findings) {
            Some("http") => {}
            Some("https") => self.scheme = "https",
            Some(other) => {
                self.findings.hinted("/schema", format!("`{other}` is not a scheme"), "write http or https");
            }
            None if !top.has("schema") => {
                self.findings.hinted("", "`schema` is missing", "write \"schema\": \"http\" or \"https\"");
            }
            None => {}
        }
        let host = top.text("host", &mut self.findings);
        if host.is_none_or(str::is_empty) && (!top.has("host") || host.is_some()) {
            self.findings.hinted("", "`host` is missing", "it is the name or address of the server");
        }
        // The format's default is 80 with TLS, too.
        let port = self.port(top, 80);
        self.authority = authority(host.unwrap_or_default(), port);
        self.check_host(&top.place("host"), host.unwrap_or("x"));

        let mut target = TargetSpec::default();
        target.url = text(format!("{}://{}", self.scheme, self.authority));
        for mut more in top.objects("load-share-hosts", &mut self.findings) {
            let host = more.filled("host", &mut self.findings);
            let port = self.port(&mut more, 80);
            match host {
                Some(host) => {
                    self.check_host(&more.place("host"), host);
                    target.share.push(text(authority(host, port)));
                }
                None => self.findings.problem(&more.at, "`host` is missing"),
            }
            more.rest(&mut self.findings, super::is_comment);
        }
        let is_pool = !target.share.is_empty();
        let retries = top.flag("connection-retry", &mut self.findings) != Some(false);
        if !retries && is_pool {
            target.fail_over = Field::new(false);
        }
        let moves_back = top.flag("switch-back-after-connection-retry", &mut self.findings) == Some(true);
        // Without another host there is nothing to come back from, as in h2loadrunner.
        if moves_back && is_pool && retries {
            target.fail_back = Field::new(true);
        }
        self.document.targets.push("server", target);
        let key = "open-new-connection-based-on-authority-header";
        self.follows_authority = top.flag(key, &mut self.findings) == Some(true);
    }

    fn port(&mut self, object: &mut Object<'_>, default: u64) -> u64 {
        let port = object.count("port", &mut self.findings).unwrap_or(default);
        if !(1..=65_535).contains(&port) {
            let message = format!("`{port}` is not a port");
            self.findings.hinted(&object.place("port"), message, "write a number from 1 to 65535");
        }
        port
    }

    fn check_host(&mut self, at: &str, host: &str) {
        if host.contains(['/', '@', '?', '#']) || host.contains(char::is_whitespace) {
            let message = format!("`{host}` is not a host");
            self.findings.hinted(at, message, "write the name or address alone: 127.0.0.1");
        }
    }

    /// Reads the number of connections, the rate at which they are opened, their lifetime and their timeouts.
    pub(super) fn connections(&mut self, top: &mut Object<'_>) {
        self.threads = top.count("threads", &mut self.findings).unwrap_or(1).max(1);
        self.clients = top.count("clients", &mut self.findings).unwrap_or(1).max(1);
        if self.clients < self.threads {
            let becomes = format!("every thread has at least one connection, so there are {}", self.threads);
            self.findings.note("/clients", &self.clients.to_string(), becomes);
            self.clients = self.threads;
        }
        self.settings.threads = text(self.threads.to_string());
        self.settings.connections = text(self.clients.to_string());

        let opened = top.number("rate", &mut self.findings);
        let period = top.number("rate-period", &mut self.findings);
        if let Some(opened) = opened.filter(|rate| !rate.is_zero()) {
            let period = period.filter(|period| !period.is_zero()).or(Ratio::new(1, 1));
            if let Some(rate) = period.and_then(|period| opened.divided_by(period)) {
                self.settings.connection_rate = text(rate.rate());
            }
        } else if period.is_some_and(|period| Some(period) != Ratio::new(1, 1)) {
            self.findings.note("/rate-period", "", "without `rate` all connections are opened at once");
        }
        let limit = if top.has("stream-timeout") { NO_TIMEOUT } else { "5s" };
        self.settings.timeout = self.milliseconds(top, "stream-timeout").unwrap_or_else(|| text(limit));
        if let Some(time) = self.milliseconds(top, "connection-active-timeout") {
            self.settings.connection_lifetime = time;
        }
        if let Some(time) = self.milliseconds(top, "connection-inactivity-timeout") {
            self.settings.connection_inactivity = time;
        }
        for key in ["socket-receive-buffer-size", "socket-send-buffer-size"] {
            if let Some(size) = top.count(key, &mut self.findings).filter(|size| *size != SOCKET_BUFFER) {
                let becomes = "the kernel sizes the buffers of sockets as they are needed";
                self.findings.note(top.place(key), &size.to_string(), becomes);
            }
        }
    }

    /// A time in milliseconds, if it is given and not 0.
    fn milliseconds(&mut self, top: &mut Object<'_>, key: &'static str) -> Option<Field<Text>> {
        self.time(top, key, 1000)
    }

    /// A time of which `per_second` units are a second, if it is given and not 0.
    pub(super) fn time(
        &mut self,
        object: &mut Object<'_>,
        key: &'static str,
        per_second: u128,
    ) -> Option<Field<Text>> {
        let number = object.number(key, &mut self.findings).filter(|number| !number.is_zero())?;
        match Ratio::new(1, per_second).and_then(|unit| number.times(unit)).and_then(|time| time.nanos()) {
            Some(nanos) => Some(text(amount::time(nanos))),
            None => {
                self.findings.problem(&object.place(key), "the time is too long");
                None
            }
        }
    }

    /// Certificates and versions; which protocol is spoken.
    pub(super) fn tls(&mut self, top: &mut Object<'_>) {
        let ciphers = top.filled("ciphers", &mut self.findings);
        let authorities = top.filled("caCert", &mut self.findings);
        let certificate = top.filled("cert", &mut self.findings);
        let key = top.filled("privateKey", &mut self.findings);
        let verifies = self.verification(top);
        let version = top.text("max-tls-version", &mut self.findings);
        let cleartext = top.text("no-tls-proto", &mut self.findings);
        let offered = top.text("npn-list", &mut self.findings);
        if !matches!(version, None | Some("TLSv1.2" | "TLSv1.3")) {
            let message = format!("`{}` is not a version of TLS", version.unwrap_or_default());
            self.findings.hinted("/max-tls-version", message, "write TLSv1.2 or TLSv1.3");
        }
        let plain = match cleartext {
            None | Some("h2c") => Spoken::Http2,
            Some("http/1.1") => Spoken::Http1,
            Some(other) => {
                let message = format!("`{other}` is not a protocol");
                self.findings.hinted("/no-tls-proto", message, "write h2c or http/1.1");
                Spoken::Http2
            }
        };
        if self.scheme == "http" {
            self.spoken = plain;
            match plain {
                Spoken::Http1 => self.settings.http1 = Field::new(true),
                _ => self.settings.http2 = Field::new(true),
            }
            for (key, given) in [
                ("ciphers", ciphers.filter(|ciphers| !are_usual(ciphers))),
                ("caCert", authorities),
                ("cert", certificate),
                ("privateKey", key),
                ("max-tls-version", version.filter(|&version| version != "TLSv1.3")),
            ] {
                if let Some(given) = given {
                    self.findings.note(
                        top.place(key),
                        given,
                        "it has no effect without TLS, and is left out",
                    );
                }
            }
            return;
        }
        if let Some(ciphers) = ciphers.filter(|ciphers| !are_usual(ciphers)) {
            self.findings.note(
                "/ciphers",
                ciphers,
                "ciphers cannot be chosen: the usual safe ones are offered",
            );
        }
        match (authorities, verifies) {
            (Some(file), true) => self.settings.cacert = text(file),
            (Some(file), false) => {
                let becomes = "certificates are not verified (certVerificationMode 0), so it is left out";
                self.findings.note("/caCert", file, becomes);
            }
            (None, _) => {}
        }
        if !verifies {
            self.settings.insecure = Field::new(true);
        }
        if let Some(file) = certificate {
            self.settings.cert = text(file);
        }
        match (key, certificate) {
            (Some(file), Some(_)) => self.settings.key = text(file),
            (Some(file), None) => {
                self.findings.note(
                    "/privateKey",
                    file,
                    "a key without `cert` has no effect, and is left out",
                );
            }
            (None, _) => {}
        }
        if version == Some("TLSv1.2") {
            self.settings.tls = text("1.2");
        }
        self.offer(offered);
    }

    fn verification(&mut self, top: &mut Object<'_>) -> bool {
        match top.count("certVerificationMode", &mut self.findings) {
            None | Some(0) => false,
            Some(1) => true,
            Some(other) => {
                let message = format!("`{other}` is not a mode");
                self.findings.hinted("/certVerificationMode", message, "write 1 to verify, 0 not to");
                true
            }
        }
    }

    /// The protocols that are offered over TLS.
    fn offer(&mut self, list: Option<&str>) {
        let default = "h2,http/1.1";
        let mut kept: Vec<&str> = Vec::new();
        for name in list.unwrap_or(default).split(',').map(str::trim).filter(|name| !name.is_empty()) {
            if ["h2", "http/1.1"].contains(&name) {
                kept.push(name);
            } else if !["h2-16", "h2-14"].contains(&name) {
                // These are drafts of HTTP/2, which the default names and no server speaks.
                self.findings.note("/npn-list", name, "the protocol is not spoken, and not offered");
            }
        }
        kept.dedup();
        if kept.is_empty() {
            self.findings.hinted("/npn-list", "nothing is left to offer", "write h2,http/1.1");
        }
        self.spoken = match kept.as_slice() {
            ["h2"] => Spoken::Http2,
            ["http/1.1"] => Spoken::Http1,
            _ => Spoken::Either,
        };
        self.settings.alpn = text(kept.join(","));
    }

    /// Streams, windows, tables and pings.
    pub(super) fn http2(&mut self, top: &mut Object<'_>) {
        let streams = top.count("max-concurrent-streams", &mut self.findings);
        let window = self.window(top, "window-bits");
        let connection_window = self.window(top, "connection-window-bits");
        let table = top.count("header-table-size", &mut self.findings);
        let encoder_table = top.count("encoder-header-table-size", &mut self.findings);
        let ping = self.time(top, "interval-between-ping-frames", 1);
        let number = |value: Option<u64>| value.map(|value| text(value.to_string()));
        let given = [
            ("max-concurrent-streams", number(streams)),
            ("window-bits", number(window)),
            ("connection-window-bits", number(connection_window)),
            ("header-table-size", number(table)),
            ("encoder-header-table-size", number(encoder_table)),
            ("interval-between-ping-frames", ping),
        ];
        if self.spoken == Spoken::Http1 {
            for (key, _) in given.iter().filter(|(_, value)| value.is_some()) {
                let becomes = "it has no effect with HTTP/1.1, and is left out";
                self.findings.note(top.place(key), "", becomes);
            }
            return;
        }
        let [streams, window, connection_window, table, encoder_table, ping] = given.map(|(_, value)| value);
        self.settings.max_concurrent_streams = streams.unwrap_or_else(|| text("32"));
        self.settings.window_bits = window.unwrap_or_default();
        self.settings.connection_window_bits = connection_window.unwrap_or_default();
        self.settings.header_table_size = table.unwrap_or_default();
        self.settings.encoder_header_table_size = encoder_table.unwrap_or_default();
        self.settings.ping_interval = ping.unwrap_or_default();
    }

    fn window(&mut self, top: &mut Object<'_>, key: &'static str) -> Option<u64> {
        let bits = top.count(key, &mut self.findings)?;
        if WINDOW_BITS.contains(&bits) {
            return Some(bits);
        }
        let near = bits.clamp(*WINDOW_BITS.start(), *WINDOW_BITS.end());
        self.findings.note(
            top.place(key),
            &bits.to_string(),
            format!("windows are of 16 to 31 bits: {near}"),
        );
        Some(near)
    }

    /// Reads the output files, the interval of statistics and the port that controls the rate.
    pub(super) fn outputs(&mut self, top: &mut Object<'_>) {
        if let Some(interval) = self.time(top, "statistics-interval", 1) {
            self.settings.interval = interval;
        }
        const ROWS: &str =
            "rows are of scenarios and of all together, with other columns: there, of each request";
        const LINES: &str = "lines have other fields; a file that ends in .tsv has those of there: when the request \
                             was sent, its status and its time, in microseconds";
        for (key, setting, becomes) in [
            ("statistics-file", &mut self.settings.stats, Some(ROWS)),
            ("log-file", &mut self.settings.log, Some(LINES)),
            ("failed-request-log-file", &mut self.settings.failed, None),
        ] {
            if let Some(file) = top.filled(key, &mut self.findings) {
                *setting = text(file);
                let becomes = becomes.filter(|_| key != "log-file" || !has_tabs(file));
                if let Some(becomes) = becomes {
                    self.findings.note(top.place(key), file, becomes);
                }
            }
        }
        if let Some(port) = top.count("builtin-server-listening-port", &mut self.findings) {
            if port > 65_535 {
                let message = format!("`{port}` is not a port");
                self.findings.problem("/builtin-server-listening-port", message);
            }
            // h2loadrunner's server listens on all interfaces, without access control.
            self.settings.control = text(format!("127.0.0.1:{port}"));
            // Scripts for h2loadrunner change the rate by GET.
            self.settings.control_h2loadrunner = Field::new(true);
        }
    }
}

/// Returns `true` if the log of a file of this name has the lines of the program.
fn has_tabs(file: &str) -> bool {
    file.rsplit_once('.').is_some_and(|(_, ending)| ending.eq_ignore_ascii_case("tsv"))
}

/// Returns `true` if all ciphers of an OpenSSL list are among those that are offered in any case.
fn are_usual(ciphers: &str) -> bool {
    ciphers.split(':').all(|cipher| cipher.starts_with(USUAL_CIPHER))
}

fn authority(host: &str, port: u64) -> String {
    match host.contains(':') && !host.starts_with('[') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}
