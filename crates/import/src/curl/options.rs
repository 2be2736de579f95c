//! The options of curl, and their meanings here.

/// Meaning of an option for an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Means {
    /// A value that is put into the request or the settings.
    Value(Use),
    /// A switch that does something.
    Switch(Use),
    /// A switch about curl's own output or behaviour, without meaning for a load test.
    Idle,
    /// An option with a value about curl's own output or behaviour, without meaning for a load test.
    IdleValue,
    /// An option that cannot be imported; with the reason, and an alternative.
    Refused(&'static str),
}

/// Uses of options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Basic,
    Bearer,
    CaCert,
    Cert,
    Compressed,
    ConnectTimeout,
    ConnectTo,
    Cookie,
    Data,
    DataBinary,
    DataRaw,
    DataUrlencode,
    Digest,
    /// Behaviour that Plimsoll has without an option.
    AsHere,
    Form,
    FormString,
    Get,
    Globoff,
    Head,
    Header,
    Http1,
    Http2,
    Http2PriorKnowledge,
    Insecure,
    Interface,
    Ipv4,
    Ipv6,
    Json,
    Key,
    Location,
    MaxRedirs,
    MaxTime,
    NoKeepalive,
    NoProxy,
    Parallel,
    Proxy,
    ProxyUser,
    Range,
    Referer,
    Request,
    RequestTarget,
    Resolve,
    Socks5,
    Socks5Hostname,
    Tls12,
    Tls13,
    UnixSocket,
    Upload,
    Url,
    UserAgent,
}

const PROXY: &str = "connections go through one proxy at most: leave it out";
const TUNNEL: &str = "requests to http:// are handed to the proxy, and others have a tunnel: leave it out";
const PROXY_CREDENTIALS: &str = "a proxy is given basic credentials alone: write -U user:password";
const CREDENTIALS: &str =
    "basic, bearer and digest credentials are supported: write -u user:password, with --digest for the last";
const ANOTHER: &str = "import each request by itself, and put their steps together";

/// Long name, letter (or a space) and meaning of each option that is known.
const OPTIONS: &[(&str, char, Means)] = &[
    ("anyauth", ' ', Means::Refused(CREDENTIALS)),
    ("basic", ' ', Means::Switch(Use::AsHere)),
    ("cacert", ' ', Means::Value(Use::CaCert)),
    ("cert", 'E', Means::Value(Use::Cert)),
    ("compressed", ' ', Means::Switch(Use::Compressed)),
    ("config", 'K', Means::Refused("a file of options is not read: write its options out")),
    ("connect-timeout", ' ', Means::Value(Use::ConnectTimeout)),
    ("connect-to", ' ', Means::Value(Use::ConnectTo)),
    ("cookie", 'b', Means::Value(Use::Cookie)),
    ("cookie-jar", 'c', Means::IdleValue),
    ("create-dirs", ' ', Means::Idle),
    ("data", 'd', Means::Value(Use::Data)),
    ("data-ascii", ' ', Means::Value(Use::Data)),
    ("data-binary", ' ', Means::Value(Use::DataBinary)),
    ("data-raw", ' ', Means::Value(Use::DataRaw)),
    ("data-urlencode", ' ', Means::Value(Use::DataUrlencode)),
    ("digest", ' ', Means::Switch(Use::Digest)),
    ("dump-header", 'D', Means::IdleValue),
    ("fail", 'f', Means::Switch(Use::AsHere)),
    ("fail-with-body", ' ', Means::Switch(Use::AsHere)),
    ("form", 'F', Means::Value(Use::Form)),
    ("form-string", ' ', Means::Value(Use::FormString)),
    ("get", 'G', Means::Switch(Use::Get)),
    ("globoff", 'g', Means::Switch(Use::Globoff)),
    ("head", 'I', Means::Switch(Use::Head)),
    ("header", 'H', Means::Value(Use::Header)),
    ("http1.0", '0', Means::Refused("HTTP/1.0 is not spoken: write --http1.1")),
    ("http1.1", ' ', Means::Switch(Use::Http1)),
    ("http2", ' ', Means::Switch(Use::Http2)),
    ("http2-prior-knowledge", ' ', Means::Switch(Use::Http2PriorKnowledge)),
    ("http3", ' ', Means::Refused("HTTP/3 is not supported yet: write --http2")),
    ("http3-only", ' ', Means::Refused("HTTP/3 is not supported yet: write --http2")),
    ("include", 'i', Means::Idle),
    ("insecure", 'k', Means::Switch(Use::Insecure)),
    ("interface", ' ', Means::Value(Use::Interface)),
    ("ipv4", '4', Means::Switch(Use::Ipv4)),
    ("ipv6", '6', Means::Switch(Use::Ipv6)),
    ("json", ' ', Means::Value(Use::Json)),
    ("junk-session-cookies", 'j', Means::Idle),
    ("keepalive-time", ' ', Means::IdleValue),
    ("key", ' ', Means::Value(Use::Key)),
    ("limit-rate", ' ', Means::IdleValue),
    ("location", 'L', Means::Switch(Use::Location)),
    ("location-trusted", ' ', Means::Switch(Use::Location)),
    ("max-redirs", ' ', Means::Value(Use::MaxRedirs)),
    ("max-time", 'm', Means::Value(Use::MaxTime)),
    ("negotiate", ' ', Means::Refused(CREDENTIALS)),
    ("netrc", 'n', Means::Refused("no netrc file is read: write -u user:password")),
    ("next", ':', Means::Refused(ANOTHER)),
    ("no-buffer", 'N', Means::Idle),
    ("no-keepalive", ' ', Means::Switch(Use::NoKeepalive)),
    ("no-progress-meter", ' ', Means::Idle),
    ("noproxy", ' ', Means::Value(Use::NoProxy)),
    ("ntlm", ' ', Means::Refused(CREDENTIALS)),
    ("oauth2-bearer", ' ', Means::Value(Use::Bearer)),
    ("output", 'o', Means::IdleValue),
    ("output-dir", ' ', Means::IdleValue),
    ("parallel", 'Z', Means::Switch(Use::Parallel)),
    ("path-as-is", ' ', Means::Switch(Use::AsHere)),
    ("preproxy", ' ', Means::Refused(PROXY)),
    ("progress-bar", '#', Means::Idle),
    ("proxy", 'x', Means::Value(Use::Proxy)),
    ("proxy-basic", ' ', Means::Switch(Use::AsHere)),
    ("proxy-digest", ' ', Means::Refused(PROXY_CREDENTIALS)),
    ("proxy-ntlm", ' ', Means::Refused(PROXY_CREDENTIALS)),
    ("proxy-user", 'U', Means::Value(Use::ProxyUser)),
    ("proxytunnel", 'p', Means::Refused(TUNNEL)),
    ("range", 'r', Means::Value(Use::Range)),
    ("referer", 'e', Means::Value(Use::Referer)),
    ("remote-header-name", 'J', Means::Idle),
    ("remote-name", 'O', Means::Idle),
    ("remote-time", 'R', Means::Idle),
    ("request", 'X', Means::Value(Use::Request)),
    ("request-target", ' ', Means::Value(Use::RequestTarget)),
    ("resolve", ' ', Means::Value(Use::Resolve)),
    ("retry", ' ', Means::IdleValue),
    ("retry-all-errors", ' ', Means::Idle),
    ("retry-delay", ' ', Means::IdleValue),
    ("show-error", 'S', Means::Idle),
    ("silent", 's', Means::Idle),
    ("socks5", ' ', Means::Value(Use::Socks5)),
    ("socks5-hostname", ' ', Means::Value(Use::Socks5Hostname)),
    ("stderr", ' ', Means::IdleValue),
    ("tcp-fastopen", ' ', Means::Idle),
    ("tcp-nodelay", ' ', Means::Switch(Use::AsHere)),
    ("tlsv1.2", ' ', Means::Switch(Use::Tls12)),
    ("tlsv1.3", ' ', Means::Switch(Use::Tls13)),
    ("trace", ' ', Means::IdleValue),
    ("trace-ascii", ' ', Means::IdleValue),
    ("trace-time", ' ', Means::Idle),
    ("unix-socket", ' ', Means::Value(Use::UnixSocket)),
    ("upload-file", 'T', Means::Value(Use::Upload)),
    ("url", ' ', Means::Value(Use::Url)),
    ("user", 'u', Means::Value(Use::Basic)),
    ("user-agent", 'A', Means::Value(Use::UserAgent)),
    ("verbose", 'v', Means::Idle),
    ("write-out", 'w', Means::IdleValue),
];

pub(crate) fn long(name: &str) -> Option<(&'static str, Means)> {
    OPTIONS.iter().find(|(known, ..)| *known == name).map(|(name, _, means)| (*name, *means))
}

pub(crate) fn short(letter: char) -> Option<(&'static str, Means)> {
    let known = OPTIONS.iter().find(|(_, known, _)| *known == letter && letter != ' ');
    known.map(|(name, _, means)| (*name, *means))
}

/// The known long option that is most like `name`, if one begins like it or is a letter away.
pub(crate) fn near(name: &str) -> Option<&'static str> {
    let begins = OPTIONS.iter().find(|(known, ..)| name.len() > 2 && known.starts_with(name));
    let close = || OPTIONS.iter().find(|(known, ..)| is_close(known, name));
    begins.or_else(close).map(|(known, ..)| *known)
}

/// Returns `true` if adding, removing or replacing one letter turns one name into the other.
fn is_close(a: &str, b: &str) -> bool {
    let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a.as_bytes()[same..], &b.as_bytes()[same..]);
    match (a, b) {
        ([_, a @ ..], [_, b @ ..]) if a == b => true,
        ([_, rest @ ..], other) if rest == other => true,
        (other, [_, rest @ ..]) => rest == other,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_unique_and_found() {
        let mut names: Vec<_> = OPTIONS.iter().map(|(name, ..)| *name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), OPTIONS.len());
        let mut letters: Vec<_> =
            OPTIONS.iter().map(|(_, letter, _)| *letter).filter(|l| *l != ' ').collect();
        let count = letters.len();
        letters.sort_unstable();
        letters.dedup();
        assert_eq!(letters.len(), count);
        assert_eq!(short('X').unwrap().0, "request");
        assert_eq!(short(' '), None);
        assert_eq!(long("X"), None);
    }

    #[test]
    fn mistakes_have_a_suggestion() {
        for (name, suggested) in [
            ("head", Some("head")),
            ("heade", Some("header")),
            ("insecur", Some("insecure")),
            ("datab", Some("data")),
            ("hedaer", None),
            ("jsonn", Some("json")),
        ] {
            assert_eq!(near(name), suggested, "{name}");
        }
    }
}
