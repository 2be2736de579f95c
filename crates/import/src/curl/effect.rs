//! Options that have no effect on the URLs beside them: curl takes them, and a plan refuses them.

use core::net::IpAddr;

use plimsoll_document::{Field, Settings, Text};

use super::options::Use;
use super::{Argument, Command};
use crate::findings::Findings;

impl Command {
    /// Leaves out settings without an effect on these origins, which a plan would refuse.
    pub(super) fn fit(&mut self, origins: &[String], given: &[Argument], findings: &mut Findings) {
        let settings = &mut self.settings;
        let notes = &mut Notes { given, findings };
        fit_tls(settings, origins, notes);
        fit_http2(settings, origins, notes);
        fit_socket(settings, notes);
        fit_proxy(settings, origins, notes);
        fit_family(settings, origins, notes);
        fit_routes(settings, origins, notes);
    }
}

/// Notes at the options that are left out.
struct Notes<'a> {
    given: &'a [Argument],
    findings: &'a mut Findings,
}

impl Notes<'_> {
    fn note(&mut self, used: Use, said: &str, becomes: &str) {
        let option = self.given.iter().rev().find(|given| given.used == used);
        let at = option.map_or_else(String::new, |option| option.at.clone());
        self.findings.note(at, said, becomes);
    }

    /// Leaves out a setting; `true` if it was there.
    fn leave_out<T>(&mut self, setting: &mut Field<T>, used: Use, becomes: &str) -> bool {
        let was_there = !setting.is_absent();
        if was_there {
            self.note(used, "", becomes);
            *setting = Field::Absent;
        }
        was_there
    }
}

fn is_https(origin: &str) -> bool {
    origin.starts_with("https://")
}

fn fit_tls(settings: &mut Settings, origins: &[String], notes: &mut Notes<'_>) {
    if !origins.is_empty() && !origins.iter().any(|origin| is_https(origin)) {
        let becomes = "it has no effect without https, and is left out";
        notes.leave_out(&mut settings.insecure, Use::Insecure, becomes);
        notes.leave_out(&mut settings.cacert, Use::CaCert, becomes);
        notes.leave_out(&mut settings.cert, Use::Cert, becomes);
        notes.leave_out(&mut settings.key, Use::Key, becomes);
        notes.leave_out(&mut settings.tls, Use::Tls13, becomes);
    }
    if !settings.insecure.is_absent() {
        let becomes = "nothing is verified with -k: it is left out";
        notes.leave_out(&mut settings.cacert, Use::CaCert, becomes);
    }
    if settings.cert.is_absent() {
        let becomes = "a key without a certificate has no effect: it is left out";
        notes.leave_out(&mut settings.key, Use::Key, becomes);
    }
}

fn fit_http2(settings: &mut Settings, origins: &[String], notes: &mut Notes<'_>) {
    if origins.iter().any(|origin| is_https(origin)) {
        let becomes = "over TLS, HTTP/2 is agreed on by ALPN";
        let known = &mut settings.http2_prior_knowledge;
        if notes.leave_out(known, Use::Http2PriorKnowledge, becomes) {
            settings.http2 = Field::new(true);
        }
    }
    if !settings.http2.is_absent() || !settings.http2_prior_knowledge.is_absent() {
        let becomes = "connections of HTTP/2 are used again anyway";
        notes.leave_out(&mut settings.disable_keepalive, Use::Header, becomes);
    }
}

/// Leaves out where connections go, and from where, if all of them go to a unix socket.
fn fit_socket(settings: &mut Settings, notes: &mut Notes<'_>) {
    if settings.unix_socket.is_absent() {
        return;
    }
    let becomes = "it has no effect with a unix socket, and is left out";
    notes.leave_out(&mut settings.resolve, Use::Resolve, becomes);
    notes.leave_out(&mut settings.connect_to, Use::ConnectTo, becomes);
    notes.leave_out(&mut settings.source_ip, Use::Interface, becomes);
    notes.leave_out(&mut settings.ipv4, Use::Ipv4, becomes);
    notes.leave_out(&mut settings.ipv6, Use::Ipv6, becomes);
    notes.leave_out(&mut settings.proxy, Use::Proxy, becomes);
}

/// Leaves out the ways to hosts that a proxy finds.
fn fit_proxy(settings: &mut Settings, origins: &[String], notes: &mut Notes<'_>) {
    let is_handed_over = settings.proxy.get().is_some_and(|proxy| proxy.as_str().starts_with("http:"))
        && settings.http2.is_absent()
        && settings.http2_prior_knowledge.is_absent()
        && !origins.iter().all(|origin| is_https(origin));
    if is_handed_over {
        let becomes = "the proxy finds the hosts of http:// URLs: it is left out";
        notes.leave_out(&mut settings.resolve, Use::Resolve, becomes);
        notes.leave_out(&mut settings.connect_to, Use::ConnectTo, becomes);
    }
}

/// Leaves out the family of addresses that those written out are not of.
fn fit_family(settings: &mut Settings, origins: &[String], notes: &mut Notes<'_>) {
    let becomes = "an address is of the other family: it is left out";
    let ips = addresses(origins, settings);
    if ips.iter().any(IpAddr::is_ipv6) {
        notes.leave_out(&mut settings.ipv4, Use::Ipv4, becomes);
    }
    if ips.iter().any(IpAddr::is_ipv4) {
        notes.leave_out(&mut settings.ipv6, Use::Ipv6, becomes);
    }
}

/// Leaves out ways to hosts that no URL goes to.
fn fit_routes(settings: &mut Settings, origins: &[String], notes: &mut Notes<'_>) {
    let authorities: Vec<String> = origins.iter().map(|origin| authority(origin)).collect();
    let mut routes = |list: &mut Field<Vec<Field<Text>>>, mut open: Vec<String>, used: Use| {
        let Field::Given(all, _) = list else { return };
        // The first one that is for a URL counts.
        all.retain(|route| {
            let route = route.get().map_or("", |text| text.as_str());
            let kept = matches(route, &open);
            open.retain(|authority| !matches(route, std::slice::from_ref(authority)));
            if !kept {
                let becomes = "it is for none of the URLs, or an earlier one is: it is left out";
                notes.note(used, route, becomes);
            }
            kept
        });
        if all.is_empty() {
            *list = Field::Absent;
        }
    };
    routes(&mut settings.connect_to, authorities.clone(), Use::ConnectTo);
    // Names are resolved at the place where connections go.
    let detours: Vec<&str> =
        settings.connect_to.get().into_iter().flatten().filter_map(Field::get).map(Text::as_str).collect();
    let places = authorities.iter().map(|authority| place(authority, &detours)).collect();
    routes(&mut settings.resolve, places, Use::Resolve);
}

/// `host:port` of an origin, with the port that its scheme stands for.
fn authority(origin: &str) -> String {
    let (scheme, authority) = origin.split_once("://").unwrap_or(("", origin));
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
    match (has_port, scheme) {
        (true, _) => authority.to_owned(),
        (false, "https") => format!("{authority}:443"),
        (false, _) => format!("{authority}:80"),
    }
}

/// The addresses that are written out: as hosts, of hosts, and of this machine.
fn addresses(origins: &[String], settings: &Settings) -> Vec<IpAddr> {
    let lists = [&settings.source_ip, &settings.resolve, &settings.connect_to];
    let proxy = settings.proxy.get().and_then(|proxy| proxy.as_str().rsplit(['/', '@']).next());
    let settings = lists.into_iter().filter_map(Field::get).flatten().filter_map(Field::get);
    let hosts =
        origins.iter().map(|origin| origin.split_once("://").map_or(origin.as_str(), |(_, host)| host));
    let mut all = Vec::new();
    for text in settings.map(plimsoll_document::Text::as_str).chain(hosts).chain(proxy) {
        // `[::1]:80`, `::1`, `h:80:127.0.0.1,[::1]`, `h:80:127.0.0.1:81`
        all.extend(text.parse::<IpAddr>());
        all.extend(text.split([',', ':']).filter_map(|part| part.parse::<IpAddr>().ok()));
        let bracketed = text.split('[').skip(1).filter_map(|part| part.split(']').next());
        all.extend(bracketed.filter_map(|part| part.parse::<IpAddr>().ok()));
    }
    all
}

/// Host and port that a text begins with, and the rest.
fn cut(text: &str) -> Option<(String, String, &str)> {
    let (host, rest) = match text.strip_prefix('[') {
        Some(inner) => {
            let (host, rest) = inner.split_once(']')?;
            (format!("[{host}]"), rest.strip_prefix(':')?)
        }
        None => text.split_once(':').map(|(host, rest)| (host.to_owned(), rest))?,
    };
    let (port, rest) = rest.split_once(':').unwrap_or((rest, ""));
    Some((host.to_ascii_lowercase(), port.to_owned(), rest))
}

/// `host:port` that connections go to for an authority: that of the first detour (`host:port:host:port`) for
/// it; empty parts stay as they are.
fn place(authority: &str, detours: &[&str]) -> String {
    let own = [authority.to_owned()];
    let detour = detours.iter().find(|detour| matches(detour, &own));
    let to = detour.and_then(|detour| cut(cut(detour)?.2));
    let (Some((to_host, to_port, _)), Some((host, port, _))) = (to, cut(authority)) else {
        return authority.to_owned();
    };
    let or = |to: String, own: String| if to.is_empty() { own } else { to };
    format!("{}:{}", or(to_host, host), or(to_port, port))
}

/// Returns `true` if `host:port:…` applies to one of `authorities`; an empty part matches any.
fn matches(route: &str, authorities: &[String]) -> bool {
    // A malformed route is refused where it is read.
    let Some((host, port, _)) = cut(route) else { return true };
    authorities
        .iter()
        .filter_map(|authority| cut(authority))
        .any(|(of, at, _)| (host.is_empty() || host == of) && (port.is_empty() || port == at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_for_hosts_and_ports_or_for_all() {
        let authorities: Vec<String> =
            ["http://h", "https://i", "http://[::1]:81"].into_iter().map(authority).collect();
        assert_eq!(authorities, ["h:80", "i:443", "[::1]:81"]);
        for (route, known) in [
            ("h:80:127.0.0.1", true),
            ("H:80:127.0.0.1", true),
            ("h:81:127.0.0.1", false),
            ("i:443:j:1", true),
            ("::j:1", true),
            (":443:j:1", true),
            (":444:j:1", false),
            ("[::1]:81:127.0.0.1", true),
            ("[::2]:81:127.0.0.1", false),
            // A malformed route is refused where it is read.
            ("nothing", true),
        ] {
            assert_eq!(matches(route, &authorities), known, "{route}");
        }
    }

    #[test]
    fn addresses_are_found_wherever_they_are_written() {
        let mut settings = Settings::default();
        crate::draft::add(&mut settings.resolve, "h:80:127.0.0.1,[::1]");
        let origins = ["http://127.0.0.2:80".to_owned(), "https://[::2]".to_owned(), "http://h".to_owned()];
        let mut found: Vec<String> = addresses(&origins, &settings).iter().map(ToString::to_string).collect();
        found.sort_unstable();
        assert_eq!(found, ["127.0.0.1", "127.0.0.2", "::1", "::2"]);
    }
}
