//! The servers that steps address, and how to speak to each.

use core::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use plimsoll_wire::http2::HeaderBlockCache;

use crate::dynamic_origins::DynamicOrigins;
use crate::protocol::ProtocolPreference;
use crate::protocol::{HTTP, HTTPS, ProtocolRow};
use crate::resolve::Resolver;
use crate::route::Routes;
use crate::security::TlsSettings;
use crate::url::Url;
use crate::{Address, PlanPatch, PoolMember, Protocol, Target, TlsTarget};

/// The servers that steps address, each once.
#[derive(Clone, Default)]
pub(crate) struct Servers(Vec<Server>);

/// The servers of a plan, ready to be spoken to.
#[derive(Clone)]
pub(crate) struct Targets {
    /// In the order of [`Servers`].
    pub(crate) all: Vec<Target>,
    /// Settings for other servers, if there may be any.
    pub(crate) dynamic_origins: Option<Arc<DynamicOrigins>>,
}

/// A server, or a pool of servers that share the load.
#[derive(Clone)]
pub(crate) struct Server {
    /// Scheme, host and port; of a pool, those of its first member.
    pub(crate) url: Url,
    /// The other members of a pool.
    pub(crate) share: Vec<Url>,
    pub(crate) fail_over: bool,
    pub(crate) fail_back: bool,
    /// The URLs that address it, for reports, each once.
    shown: Vec<String>,
}

impl Servers {
    /// The index of the server that `url` addresses.
    pub(crate) fn add(&mut self, url: &Url) -> usize {
        let same = |server: &Server| !server.is_pool() && server.url.same_server(url);
        if let Some(index) = self.0.iter().position(same) {
            return index;
        }
        self.push(Server {
            url: url.clone(),
            share: Vec::new(),
            fail_over: true,
            fail_back: false,
            shown: Vec::new(),
        })
    }

    /// Adds a pool and returns its index.
    pub(crate) fn add_pool(&mut self, url: &Url, share: Vec<Url>, fail_over: bool, fail_back: bool) -> usize {
        self.push(Server { url: url.clone(), share, fail_over, fail_back, shown: Vec::new() })
    }

    /// Names a URL that addresses the server of this index.
    pub(crate) fn show(&mut self, index: usize, url: String) {
        if let Some(server) = self.0.get_mut(index).filter(|server| !server.shown.contains(&url)) {
            server.shown.push(url);
        }
    }

    /// The server of this index, which [`add`](Self::add) has returned.
    pub(crate) fn get(&self, index: usize) -> &Server {
        &self.0[index]
    }

    fn push(&mut self, server: Server) -> usize {
        self.0.push(server);
        self.0.len() - 1
    }

    /// The scheme of the first server, if HTTP is spoken to none of them.
    fn without_http(&self) -> Option<&'static str> {
        let first = self.0.first()?.url.scheme.scheme;
        let is_another = |server: &Server| matches!(server.url.scheme.protocol, Some(Protocol::InTurn(_)));
        self.0.iter().all(is_another).then_some(first)
    }

    /// Returns `true` if a server is addressed over TLS.
    fn any_secure(&self) -> bool {
        self.0.iter().any(|server| server.url.is_secure())
    }

    /// Returns `true` if a server is addressed with this scheme.
    fn any(&self, scheme: &ProtocolRow) -> bool {
        self.0.iter().any(|server| server.url.scheme == scheme)
    }
}

impl Server {
    /// Returns `true` if requests go to one of several servers, and carry its authority.
    pub(crate) fn is_pool(&self) -> bool {
        !self.share.is_empty()
    }
}

impl Resolver<'_> {
    /// The targets of a plan, in the order of the servers: addresses, TLS and protocols. `strays`: requests
    /// may go to servers that come up during the run, too.
    pub(crate) fn targets(
        &mut self,
        patch: &PlanPatch,
        preference: &ProtocolPreference,
        servers: &Servers,
        routes: Option<Routes>,
        strays: bool,
    ) -> Option<Targets> {
        let strays = strays || self.follows_redirects(patch);
        let tls = self.tls(patch, preference, servers.any_secure(), strays);
        // Only the run shows whether ALPN matters to any server.
        if !(strays && matches!(preference, ProtocolPreference::Alpn(_))) {
            self.check_schemes(patch, preference, servers.any(&HTTP), servers.any(&HTTPS));
        }
        if let Some(scheme) = servers.without_http().filter(|_| !strays) {
            self.refuse_http_flags(patch, scheme);
        }
        // HTTP/2 by prior knowledge is no request that a proxy could be handed.
        let proxy = self.proxy(patch, preference.http(false) == Protocol::Http1);
        let (mut routes, tls) = (routes?, tls?);
        routes.proxy = proxy?;
        if let Some(ip) = routes.proxy.as_ref().and_then(|proxy| proxy.host.parse().ok()) {
            self.check_family(patch, ip);
        }
        let sni = self.read(patch.sni.as_ref(), parse_server_name);
        let all = sni.map(|sni| {
            let settings = tls.settings.as_ref();
            let name = sni.as_deref();
            let target = |server| self.target(patch, preference, server, &mut routes, settings, name);
            (servers.0.iter().map(target).collect(), sni)
        });
        if !strays {
            self.check_used(&routes);
            return all.map(|(all, _)| Targets { all, dynamic_origins: None });
        }
        let (all, sni) = all?;
        let known = tls.settings.map(|settings| (settings.config, settings.fingerprint));
        let dynamic_origins = tls.options.map(|options| {
            let (preference, built) = (preference.clone(), OnceLock::new());
            Arc::new(DynamicOrigins { routes, preference, sni, tls: known, options, built })
        });
        Some(Targets { all, dynamic_origins })
    }

    fn target(
        &mut self,
        patch: &PlanPatch,
        preference: &ProtocolPreference,
        server: &Server,
        routes: &mut Routes,
        tls: Option<&TlsSettings>,
        sni: Option<&str>,
    ) -> Target {
        let protocol = preference.protocol(&server.url);
        let (address, proxy) = (self.address(patch, &server.url, routes), routes.proxy.clone());
        let name_of = |url: &Url| sni.unwrap_or(&url.host).to_owned();
        let members = server.is_pool().then_some(&server.url).into_iter().chain(&server.share);
        let pool = members.map(|url| PoolMember {
            authority: url.authority.clone(),
            address: self.address(patch, url, routes),
            server_name: name_of(url),
        });
        let target = Target {
            authority: server.url.authority.clone(),
            urls: server.shown.clone(),
            address,
            proxy,
            pool: pool.collect(),
            fail_over: server.fail_over,
            fail_back: server.fail_back,
            protocol,
            opening: server.url.opening(),
            book: protocol.may_be_http2().then(HeaderBlockCache::new),
            tls: tls.filter(|_| server.url.is_secure()).map(|tls| TlsTarget {
                config: tls.config.clone(),
                settings: tls.fingerprint,
                server_name: name_of(&server.url),
            }),
        };
        if target.forward().is_some() {
            for url in std::iter::once(&server.url).chain(&server.share) {
                self.refuse_detour(routes, url);
            }
        }
        target
    }

    /// The address of a host. Refuses `-4` and `-6` for addresses that are known to be of the other family.
    fn address(&mut self, patch: &PlanPatch, url: &Url, routes: &mut Routes) -> Address {
        let address = routes.address(url);
        let ips: Vec<IpAddr> = match &address {
            // The proxy chooses how it gets there.
            _ if routes.proxy.as_ref().is_some_and(|proxy| proxy.finds_names()) => Vec::new(),
            Address::Host { host, .. } => host.parse().into_iter().collect(),
            Address::Fixed(addresses) => addresses.iter().map(SocketAddr::ip).collect(),
            Address::Unix(_) => Vec::new(),
        };
        ips.into_iter().for_each(|ip| self.check_family(patch, ip));
        address
    }

    /// Refuses `-4` and `-6` for an address of the other family.
    fn check_family(&mut self, patch: &PlanPatch, ip: IpAddr) {
        for (only, v4, family) in [(&patch.ipv4, true, "IPv4"), (&patch.ipv6, false, "IPv6")] {
            if let Some(only) = only.given().filter(|_| ip.is_ipv4() != v4) {
                self.problems.push(only.problem(format!("{}: {ip} is not an {family} address", only.by)));
            }
        }
    }
}

fn parse_server_name(text: &str) -> Result<String, String> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
    if text.is_empty() || !text.bytes().all(legal) {
        return Err(format!("`{text}` is not a host name"));
    }
    Ok(text.to_ascii_lowercase())
}
