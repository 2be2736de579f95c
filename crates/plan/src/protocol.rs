//! Protocol spoken with a target, version of HTTP, and options of HTTP/2.

mod table;
mod websocket;

use plimsoll_core::Nanos;
use plimsoll_document::{Problem, RawValue};
use plimsoll_wire::http2::ClientOptions;

use crate::resolve::Resolver;
use crate::url::Url;
use crate::{PlanPatch, parse_size};

pub(crate) use table::{HTTP, HTTPS, rows};
pub use table::{InTurnProtocol, Opening, Protocol, ProtocolRow, ServerUrl};

/// Largest header table that may be asked for, in bytes: every connection may need as much memory.
const LARGEST_TABLE: u64 = 16 * 1024 * 1024;

/// Sizes that SETTINGS_MAX_FRAME_SIZE may have, in bytes (RFC 9113 section 6.5.2).
const FRAME_SIZES: std::ops::RangeInclusive<u64> = 16_384..=16_777_215;

/// Bits of a window: 16 make 65,535 bytes, with which every connection starts and which cannot be lowered;
/// 31 make the largest (RFC 9113 section 6.9.1).
const WINDOW_BITS: std::ops::RangeInclusive<u32> = 16..=31;

/// Protocols that the flags ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ProtocolPreference {
    /// HTTP/1.1 everywhere.
    #[default]
    Http1,
    /// HTTP/2 everywhere.
    Http2,
    /// HTTP/2 everywhere, and nowhere over TLS.
    PriorKnowledge,
    /// Over TLS the choice of ALPN among these protocols, the preferred one first; HTTP/1.1 elsewhere.
    Alpn(Vec<Version>),
}

/// A protocol that ALPN can choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Http1,
    Http2,
}

impl Version {
    /// RFC 7301 section 6 and RFC 9113 section 11.1.
    const fn id(self) -> &'static str {
        match self {
            Self::Http1 => "http/1.1",
            Self::Http2 => "h2",
        }
    }
}

impl ProtocolPreference {
    /// Returns `true` if a connection may come to speak HTTP/2.
    pub(crate) fn may_be_http2(&self) -> bool {
        match self {
            Self::Http1 => false,
            Self::Http2 | Self::PriorKnowledge => true,
            Self::Alpn(versions) => versions.contains(&Version::Http2),
        }
    }

    /// Returns the protocol spoken with a target.
    pub(crate) fn protocol(&self, url: &Url) -> Protocol {
        match url.scheme.protocol {
            Some(Protocol::WebSocket) => self.websocket(),
            Some(protocol) => protocol,
            None => self.http(url.is_secure()),
        }
    }

    /// Returns the protocol spoken with a WebSocket target.
    pub(crate) fn websocket(&self) -> Protocol {
        match self {
            Self::Http2 | Self::PriorKnowledge => Protocol::WebSocketHttp2,
            Self::Http1 | Self::Alpn(_) => Protocol::WebSocket,
        }
    }

    /// Returns the protocol spoken with an HTTP target.
    pub(crate) fn http(&self, https: bool) -> Protocol {
        match self {
            Self::Http2 | Self::PriorKnowledge => Protocol::Http2,
            Self::Alpn(versions) if https => match versions.as_slice() {
                [Version::Http2] => Protocol::Http2,
                versions if versions.contains(&Version::Http2) => Protocol::Negotiated,
                _ => Protocol::Http1,
            },
            Self::Http1 | Self::Alpn(_) => Protocol::Http1,
        }
    }

    /// Returns the protocols offered by ALPN over TLS, the preferred one first.
    pub(crate) fn alpn(&self) -> Vec<Vec<u8>> {
        let versions = match self {
            Self::Http1 => &[Version::Http1][..],
            Self::Http2 | Self::PriorKnowledge => &[Version::Http2],
            Self::Alpn(versions) => versions,
        };
        versions.iter().map(|version| version.id().as_bytes().to_vec()).collect()
    }
}

/// Options of HTTP/2.
pub(crate) struct Http2Part {
    /// Without the number of streams and the limits of heads, which other parts read.
    pub(crate) options: ClientOptions,
    pub(crate) ping_interval: Option<Nanos>,
}

impl Resolver<'_> {
    /// Reads the flags that choose a protocol.
    pub(crate) fn preference(&mut self, patch: &PlanPatch) -> Option<ProtocolPreference> {
        let alpn = self.read(patch.alpn.as_ref(), parse_alpn);
        let chosen = [
            patch.http1.given(),
            patch.http2.given(),
            patch.http2_prior_knowledge.given(),
            patch.alpn.as_ref(),
        ];
        let chosen: Vec<&RawValue> = chosen.into_iter().flatten().collect();
        if let [first, second, ..] = chosen.as_slice() {
            let problem = second.problem(format!("{} and {} exclude each other", first.by, second.by));
            return self.fail(match patch.alpn {
                Some(_) => problem.with_hint("`--alpn` alone sets the protocols offered over TLS"),
                None => problem,
            });
        }
        Some(match alpn? {
            Some(versions) => ProtocolPreference::Alpn(versions),
            None if patch.http2.is_on() => ProtocolPreference::Http2,
            None if patch.http2_prior_knowledge.is_on() => ProtocolPreference::PriorKnowledge,
            None => ProtocolPreference::Http1,
        })
    }

    /// Refuses settings of requests of HTTP where none is sent: nothing is ignored silently.
    pub(crate) fn refuse_http_flags(&mut self, patch: &PlanPatch, scheme: &str) {
        let values = [&patch.basic, &patch.bearer, &patch.alpn].into_iter().flatten();
        let switches = [&patch.http1, &patch.http2, &patch.http2_prior_knowledge];
        let switches =
            switches.into_iter().filter(|switch| switch.is_on()).filter_map(|switch| switch.given());
        for given in patch.headers.iter().chain(values).chain(switches) {
            let problem = given.problem(format!("{} has no effect: no URL is http or https", given.by));
            let hint = match given.by.as_ref() {
                "--basic" => format!(
                    "write user and password into the URL, {scheme}://USER:PASSWORD@HOST, if it takes them"
                ),
                _ => "leave it out".to_owned(),
            };
            self.problems.push(problem.with_hint(hint));
        }
    }

    /// Checks the wish against the schemes of the URLs.
    pub(crate) fn check_schemes(
        &mut self,
        patch: &PlanPatch,
        preference: &ProtocolPreference,
        http: bool,
        https: bool,
    ) {
        if let (ProtocolPreference::Alpn(_), Some(given), false) = (preference, &patch.alpn, https) {
            self.problems.push(
                given
                    .problem(format!("{} has no effect: no URL is https", given.by))
                    .with_hint("ALPN is a part of TLS: write https://, or `--http2` for HTTP/2 without TLS"),
            );
        }
        if *preference == ProtocolPreference::PriorKnowledge && https {
            let given = patch.http2_prior_knowledge.given();
            let by = given.map_or("--http2-prior-knowledge", |given| &given.by);
            let rest = if http { ", and not every URL is" } else { "" };
            let problem = Problem::new(format!("{by} is for http://{rest}"));
            let problem = problem.at(given.and_then(|given| given.place));
            self.problems.push(problem.with_hint("write `--http2`: it fits every URL"));
        }
    }

    /// Reads the settings of HTTP/2.
    pub(crate) fn http2(&mut self, patch: &PlanPatch, preference: &ProtocolPreference) -> Option<Http2Part> {
        if !preference.may_be_http2() {
            self.refuse_http2_flags(patch);
        }
        let window = self.window(patch.window_bits.as_ref());
        let connection_window = self.window(patch.connection_window_bits.as_ref());
        let table = self.size(patch.header_table_size.as_ref(), 0..=LARGEST_TABLE, "at most 16MiB");
        let given = patch.encoder_header_table_size.as_ref();
        let encoder_table = self.size(given, 0..=LARGEST_TABLE, "at most 16MiB");
        let given = patch.max_frame_size.as_ref();
        let frame = self.size(given, FRAME_SIZES, "between 16384 and 16777215 bytes");
        let ping_interval = self.read_duration(patch.ping_interval.as_ref());
        let default = ClientOptions::default();
        Some(Http2Part {
            options: ClientOptions {
                stream_window: window?.unwrap_or(default.stream_window),
                connection_window: connection_window?.unwrap_or(default.connection_window),
                header_table_size: table?.unwrap_or(default.header_table_size),
                encoder_table_size: encoder_table?.unwrap_or(default.encoder_table_size),
                max_frame_size: frame?.unwrap_or(default.max_frame_size),
                ..default
            },
            ping_interval: ping_interval?,
        })
    }

    fn refuse_http2_flags(&mut self, patch: &PlanPatch) {
        let given = [
            &patch.window_bits,
            &patch.connection_window_bits,
            &patch.header_table_size,
            &patch.encoder_header_table_size,
            &patch.max_frame_size,
            &patch.ping_interval,
        ];
        for given in given.into_iter().flatten() {
            self.problems.push(
                given
                    .problem(format!("{} has no effect with HTTP/1.1", given.by))
                    .with_hint("add `--http2`, or leave the flag out"),
            );
        }
    }

    /// A window of 2^n − 1 bytes.
    fn window(&mut self, bits: Option<&RawValue>) -> Option<Option<u32>> {
        let bits = self.read_small(bits, WINDOW_BITS)?;
        Some(bits.map(|bits| u32::MAX >> (u32::BITS - bits)))
    }

    fn size(
        &mut self,
        given: Option<&RawValue>,
        range: std::ops::RangeInclusive<u64>,
        shown: &str,
    ) -> Option<Option<u32>> {
        let size = self.read(given, parse_size);
        let size =
            self.check(given, size, |size| (!range.contains(size)).then(|| format!("must be {shown}")))?;
        Some(size.map(|size| u32::try_from(size).unwrap_or(u32::MAX)))
    }
}

/// Protocol names in order of preference, separated by commas.
fn parse_alpn(text: &str) -> Result<Vec<Version>, String> {
    let mut versions = Vec::new();
    for name in text.split(',').map(str::trim) {
        let version = match name {
            "h2" => Version::Http2,
            "http/1.1" => Version::Http1,
            _ => return Err(format!("`{name}` is not one of h2, http/1.1")),
        };
        if versions.contains(&version) {
            return Err(format!("`{name}` is there twice"));
        }
        versions.push(version);
    }
    Ok(versions)
}
