//! Where a URL's host really is: `--unix-socket`, `--connect-to` and `--resolve`, as curl has them. And the
//! proxy on the way there.

use core::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use plimsoll_document::{Place, Problem, RawValue};

use crate::resolve::Resolver;
use crate::url::{Url, parse_port};
use crate::{Address, PlanPatch, Proxy};

/// Longest path of a unix socket, in bytes: `sun_path` has 108 with its final NUL.
const LONGEST_SOCKET_PATH: usize = 107;

/// The detours that were typed.
#[derive(Clone, Default)]
pub(crate) struct Routes {
    unix_socket: Option<PathBuf>,
    connect_to: Vec<ConnectTo>,
    fixed: Vec<Fixed>,
    /// The proxy, which is part of every way.
    pub(crate) proxy: Option<Arc<Proxy>>,
}

/// `host:port:address[,address…]`; a host of `*` stands for every host.
#[derive(Clone)]
struct Fixed {
    given: String,
    place: Option<Place>,
    host: String,
    port: u16,
    addresses: Vec<IpAddr>,
    used: bool,
}

/// `host1:port1:host2:port2`; an empty part in front stands for everything, one behind for no change.
#[derive(Clone)]
struct ConnectTo {
    given: String,
    place: Option<Place>,
    from_host: String,
    from_port: Option<u16>,
    to_host: String,
    to_port: Option<u16>,
    used: bool,
}

impl Resolver<'_> {
    /// Reads the flags about addresses.
    pub(crate) fn routes(&mut self, patch: &PlanPatch) -> Option<Routes> {
        let mut complete = true;
        let mut routes = Routes::default();
        for given in &patch.connect_to {
            match self.read(Some(given), |text| ConnectTo::parse(given, text)) {
                Some(Some(connect_to)) => routes.connect_to.push(connect_to),
                _ => complete = false,
            }
        }
        for given in &patch.resolve {
            match self.read(Some(given), |text| Fixed::parse(given, text)) {
                Some(Some(fixed)) => routes.fixed.push(fixed),
                _ => complete = false,
            }
        }
        let given = patch.unix_socket.as_ref();
        let path = given.map(|given| self.path(given, given.text.trim())).unwrap_or_default();
        let by_plan = given.is_some_and(|given| given.place.is_some());
        let connectable = self.connectable(&path, by_plan).map_err(|error| error.to_string());
        routes.unix_socket = self.read(given, |text| match path.as_os_str().len() {
            _ if text.is_empty() => Err("the path is empty".to_owned()),
            len if len > LONGEST_SOCKET_PATH => {
                Err(format!("the path has {len} bytes, a unix socket's at most {LONGEST_SOCKET_PATH}"))
            }
            _ => match &connectable {
                Ok(()) => Ok(path.clone()),
                Err(error) => Err(format!("{error}, and --allow-files DIR permits sockets below DIR")),
            },
        })?;
        if let (Some(unix_socket), Some(other)) =
            (&patch.unix_socket, patch.connect_to.first().or(patch.resolve.first()))
        {
            let message = format!("{} has no effect with {}", other.by, unix_socket.by);
            return self.fail(Problem::new(message).at(other.place.or(unix_socket.place)));
        }
        complete.then_some(routes)
    }

    /// Reads the proxy. `forwards`: an HTTP proxy is handed requests by `http`.
    pub(crate) fn proxy(&mut self, patch: &PlanPatch, forwards: bool) -> Option<Option<Arc<Proxy>>> {
        let Some(given) = &patch.proxy else { return Some(None) };
        if given.reported {
            return None;
        }
        match (Proxy::parse(given.text.trim(), forwards), &patch.unix_socket) {
            (Ok(Some(_)), Some(unix_socket)) => {
                let message = format!("{} has no effect with {}", given.by, unix_socket.by);
                self.fail(Problem::new(message).at(given.place.or(unix_socket.place)))
            }
            (Ok(proxy), _) => Some(proxy.map(Arc::new)),
            (Err(problem), _) => {
                let message = format!("{}: {}", given.by, problem.message);
                self.fail(Problem { message, ..problem }.at(given.place))
            }
        }
    }

    /// Reports the detour of a URL whose host only the proxy finds.
    pub(crate) fn refuse_detour(&mut self, routes: &Routes, url: &Url) {
        let (_, connect_to, fixed) = routes.detour(url);
        let connect_to = connect_to.map(|index| &routes.connect_to[index]);
        let fixed = fixed.map(|index| &routes.fixed[index]);
        let taken = connect_to.map(|route| (&route.given, route.place));
        let taken = taken.or(fixed.map(|route| (&route.given, route.place)));
        if let Some((given, place)) = taken {
            let problem =
                Problem::new(format!("{given} has no effect: the proxy finds the hosts of http:// URLs"));
            self.problems
                .push(problem.at(place).with_hint("leave it out, or write the address into the URL"));
        }
    }

    /// Reports the detours that no URL takes.
    pub(crate) fn check_used(&mut self, routes: &Routes) {
        let unused =
            (routes.connect_to.iter().filter(|route| !route.used).map(|route| (&route.given, route.place)))
                .chain(
                    routes.fixed.iter().filter(|route| !route.used).map(|route| (&route.given, route.place)),
                );
        for (given, place) in unused {
            self.problems.push(
                Problem::new(format!("{given} matches no URL"))
                    .at(place)
                    .with_hint("host and port must be those of a URL, with its scheme's default port"),
            );
        }
    }
}

impl Routes {
    /// The address to connect to for `url`. Notes the detours that it takes.
    pub(crate) fn address(&mut self, url: &Url) -> Address {
        let (address, connect_to, fixed) = self.detour(url);
        if let Some(index) = connect_to {
            self.connect_to[index].used = true;
        }
        if let Some(index) = fixed {
            self.fixed[index].used = true;
        }
        address
    }

    /// The address to connect to for `url`.
    pub(crate) fn lead(&self, url: &Url) -> Address {
        self.detour(url).0
    }

    /// First a socket, then another host, then fixed addresses for that host.
    fn detour(&self, url: &Url) -> (Address, Option<usize>, Option<usize>) {
        if let Some(path) = &self.unix_socket {
            return (Address::Unix(path.clone()), None, None);
        }
        let (mut host, mut port) = (url.host.clone(), url.port);
        let connect_to = self.connect_to.iter().position(|route| route.matches(&host, port));
        if let Some(route) = connect_to.map(|index| &self.connect_to[index]) {
            if !route.to_host.is_empty() {
                host.clone_from(&route.to_host);
            }
            port = route.to_port.unwrap_or(port);
        }
        let fixed = self.fixed.iter().position(|fixed| fixed.matches(&host, port));
        let address = match fixed.map(|index| &self.fixed[index]) {
            Some(fixed) => {
                Address::Fixed(fixed.addresses.iter().map(|&ip| SocketAddr::new(ip, port)).collect())
            }
            None => Address::Host { host, port },
        };
        (address, connect_to, fixed)
    }
}

impl Fixed {
    fn parse(given: &RawValue, text: &str) -> Result<Self, String> {
        let malformed =
            || format!("`{text}` is not host:port:address: write it as in example.test:80:127.0.0.1");
        // curl's leading `+` makes an entry time out; the addresses of a run never do.
        let (host, rest) = split_field(text.trim_start_matches('+')).ok_or_else(malformed)?;
        let (port, addresses) = rest.split_once(':').ok_or_else(malformed)?;
        let port = parse_port(port).ok_or_else(|| format!("`{port}` is not a port"))?;
        let addresses = addresses
            .split(',')
            .map(|address| bare(address).parse().map_err(|_| format!("`{address}` is not an IP address")))
            .collect::<Result<Vec<IpAddr>, _>>()?;
        if host.is_empty() {
            return Err(malformed());
        }
        let (place, given) = (given.place, format!("{} `{text}`", given.by));
        Ok(Self { given, place, host: bare(host).to_ascii_lowercase(), port, addresses, used: false })
    }

    fn matches(&self, host: &str, port: u16) -> bool {
        (self.host == "*" || self.host == host) && self.port == port
    }
}

impl ConnectTo {
    fn parse(given: &RawValue, text: &str) -> Result<Self, String> {
        let malformed = || {
            format!("`{text}` is not host1:port1:host2:port2: write it as in example.test:80:127.0.0.1:8080")
        };
        let (from_host, rest) = split_field(text).ok_or_else(malformed)?;
        let (from_port, rest) = rest.split_once(':').ok_or_else(malformed)?;
        let (to_host, to_port) = split_field(rest).ok_or_else(malformed)?;
        let port = |text: &str| match text {
            "" => Ok(None),
            text => parse_port(text).map(Some).ok_or_else(|| format!("`{text}` is not a port")),
        };
        Ok(Self {
            given: format!("{} `{text}`", given.by),
            place: given.place,
            from_host: bare(from_host).to_ascii_lowercase(),
            from_port: port(from_port)?,
            to_host: bare(to_host).to_ascii_lowercase(),
            to_port: port(to_port)?,
            used: false,
        })
    }

    fn matches(&self, host: &str, port: u16) -> bool {
        (self.from_host.is_empty() || self.from_host == host)
            && self.from_port.is_none_or(|from| from == port)
    }
}

/// Splits at the first colon that is not inside the brackets of an IPv6 address.
fn split_field(text: &str) -> Option<(&str, &str)> {
    let from = if text.starts_with('[') { text.find(']')? } else { 0 };
    let colon = from + text[from..].find(':')?;
    Some((&text[..colon], &text[colon + 1..]))
}

/// `text` without the brackets of an IPv6 address.
fn bare(text: &str) -> &str {
    text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text)
}
