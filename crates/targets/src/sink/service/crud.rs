//! A service of resources that are created, read, changed and deleted.

use std::sync::OnceLock;

use plimsoll_driver::Endpoint;
use plimsoll_wire::http2::HeaderBlockCache;

use super::resources::{ResourceRequest, Resources, Verb};
use crate::sink::encoded_reply::{Answer, Draft, EncodedReply, FormBody};

/// A service of resources, kept in memory and shared by all threads.
///
/// * `POST` to any path creates a resource: `201` with its `location`, which is that path (without its
///   query, slashes at its end, and all but one at its front), a slash, and 16 hexadecimal digits that
///   are never given again.
/// * On the path of a resource, `GET` and `HEAD` give `200` and a small JSON body, `PUT` and `PATCH` give
///   `204`, and `DELETE` gives `204` and removes it. Other methods get `405`.
/// * Paths that name no resource get `404`.
/// * A `POST` beyond [`max_resources`](Self::max_resources) gets `507`.
///
/// The bodies of requests are read and forgotten. A request for which a fault is drawn changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crud {
    /// Most resources at a time over all threads, 1 to 2^32 - 1. Each takes a place of about 12 bytes, which
    /// is kept for the next one that the same thread creates. So the memory is that of the peak of each
    /// thread, summed over the threads: at worst this number for each of them.
    pub max_resources: u64,
    /// Form of locations.
    pub location: Location,
}

/// The form of the locations of resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Location {
    /// Paths: `/path/id`.
    #[default]
    Relative,
    /// Whole URLs with this authority (`host:port`), or with the address that the sink listens on:
    /// `http://authority/path/id`, with TLS `https`.
    Absolute(Option<String>),
}

impl Location {
    /// Returns the beginning of all locations on a sink that listens on `endpoint`.
    pub(crate) fn origin(&self, endpoint: &Endpoint, tls: bool) -> String {
        let scheme = if tls { "https" } else { "http" };
        match (self, endpoint) {
            (Self::Relative, _) => String::new(),
            (Self::Absolute(Some(authority)), _) => format!("{scheme}://{authority}"),
            (Self::Absolute(None), Endpoint::Tcp(address)) => format!("{scheme}://{address}"),
            // Clients that come over a unix socket name the host as they like.
            (Self::Absolute(None), Endpoint::Unix(_)) => format!("{scheme}://localhost"),
        }
    }
}

impl Default for Crud {
    /// Ten million resources, and locations that are paths.
    fn default() -> Self {
        Self { max_resources: 10_000_000, location: Location::Relative }
    }
}

impl Crud {
    pub(super) fn problems(&self, listen: &Endpoint, require: &mut impl FnMut(bool, &str)) {
        let is_wildcard = matches!(listen, Endpoint::Tcp(address) if address.ip().is_unspecified());
        require(
            !is_wildcard || self.location != Location::Absolute(None),
            "locations cannot name the address listened on, for it stands for all: give their authority",
        );
        require(
            (1..=u64::from(u32::MAX)).contains(&self.max_resources),
            "the number of resources is between 1 and 2^32 - 1",
        );
        let is_plain = |authority: &str| {
            !authority.is_empty()
                && authority.bytes().all(|byte| byte.is_ascii_graphic() && !b"/?#@".contains(&byte))
        };
        if let Location::Absolute(Some(authority)) = &self.location {
            require(is_plain(authority), "the authority of locations is a host, or host:port");
        }
    }
}

/// Replies of a service of resources, and the resources.
#[derive(Debug)]
pub(crate) struct CrudForms {
    created: EncodedReply,
    found: EncodedReply,
    done: EncodedReply,
    pub(super) nowhere: EncodedReply,
    not_allowed: EncodedReply,
    full: EncodedReply,
    /// Beginning of all locations; unset until the sink listens.
    origin: OnceLock<Vec<u8>>,
    resources: Resources,
}

impl CrudForms {
    pub(super) fn new(crud: &Crud, threads: u32, book: &mut HeaderBlockCache) -> Self {
        let created = Draft { located: true, ..Draft::new(201) };
        let found = Draft { body: FormBody::Resource, content_type: "application/json", ..Draft::new(200) };
        // RFC 9110 15.5.6: a 405 has to name what is allowed.
        let methods = "DELETE, GET, HEAD, PATCH, POST, PUT";
        let not_allowed = Draft { extra: Some(("allow", methods)), ..Draft::new(405) };
        Self {
            created: EncodedReply::new(created, book),
            found: EncodedReply::new(found, book),
            done: EncodedReply::bare(204, book),
            nowhere: EncodedReply::bare(404, book),
            not_allowed: EncodedReply::new(not_allowed, book),
            full: EncodedReply::bare(507, book),
            origin: OnceLock::new(),
            resources: Resources::new(threads, crud.max_resources),
        }
    }

    /// Carries out a request on the thread with this index, and returns the answer.
    pub(super) fn answer<'a>(&'a self, request: &'a ResourceRequest<'_>, thread: u32) -> Answer<'a> {
        match request {
            ResourceRequest::Create(parent) => match self.resources.create(thread, parent) {
                Some(token) => {
                    let origin = self.origin.get().map_or(&[][..], Vec::as_slice);
                    Answer { below: [origin, parent], ..Answer::plain(&self.created, token) }
                }
                None => Answer::plain(&self.full, 0),
            },
            &ResourceRequest::On(verb, key) => {
                let (exists, form) = match verb {
                    Verb::Read => (self.resources.has(key), &self.found),
                    Verb::Change => (self.resources.has(key), &self.done),
                    Verb::Remove => (self.resources.remove(key), &self.done),
                    Verb::Other => (self.resources.has(key), &self.not_allowed),
                };
                Answer::plain(if exists { form } else { &self.nowhere }, key.id)
            }
            ResourceRequest::Nowhere => Answer::plain(&self.nowhere, 0),
        }
    }

    /// The longest of them.
    pub(super) const fn largest(&self) -> &EncodedReply {
        &self.found
    }

    /// Sets the origin of locations, once, before anything is answered.
    pub(super) fn set_origin(&self, origin: String) {
        self.origin.get_or_init(|| origin.into_bytes());
    }

    /// Returns the number of resources.
    pub(super) fn resources(&self) -> u64 {
        self.resources.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_begin_with_their_origin() {
        let tcp = Endpoint::Tcp(([127, 0, 0, 1], 80).into());
        let absolute = |authority: Option<&str>| Location::Absolute(authority.map(str::to_owned));
        for (location, endpoint, tls, origin) in [
            (Location::Relative, &tcp, true, ""),
            (absolute(None), &tcp, false, "http://127.0.0.1:80"),
            (absolute(Some("a:1")), &tcp, true, "https://a:1"),
            (absolute(None), &Endpoint::Unix("/s".into()), false, "http://localhost"),
        ] {
            assert_eq!(location.origin(endpoint, tls), origin);
        }
    }
}
