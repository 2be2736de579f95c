//! Where a value is, compiled.

use roxmltree::Document;

use super::budget::{self, Budget, Excess};
use super::events::{EventPlace, Events};
use super::json_path::{self, JsonPath};
use super::xpath::XPath;
use super::{Source, add_field};
use crate::cookie::CookieJar;
use crate::header::check_name;
use crate::pointer::JsonPointer;
use crate::reference::Origin;
use crate::{EventStream, Needs, Received, Scope, SentRequest, TemplateError};

/// The place of a value.
#[derive(Clone, Debug)]
pub(super) enum Place {
    Status,
    Header(String),
    RequestHeader(String),
    RequestPath,
    RequestMethod,
    RequestAuthority,
    RequestUrl,
    Cookie(String),
    Body,
    Pointer(JsonPointer),
    RequestPointer(JsonPointer),
    JsonPath(JsonPath),
    XPath(XPath),
    Event(EventPlace),
}

/// A request and its response.
pub(super) struct Exchange<'a, 'r> {
    pub(super) received: &'a Received<'r>,
    pub(super) sent: &'a SentRequest,
    pub(super) cookies: &'a CookieJar,
    pub(super) parsed: &'a mut Parsed<'r>,
    /// The stream of events that the response is.
    pub(super) stream: Option<EventStream>,
}

/// The body of the response as trees and as events, once somebody asked for them.
pub(super) struct Parsed<'r> {
    budget: &'r Budget,
    json: Option<Result<json_path::Tree<'r>, Option<Excess>>>,
    xml: Option<Result<Document<'r>, Option<Excess>>>,
    events: Option<Events>,
}

impl<'r> Parsed<'r> {
    pub(super) fn new(budget: &'r Budget) -> Self {
        Self { budget, json: None, xml: None, events: None }
    }

    /// What is left for the search under way.
    pub(super) fn budget(&self) -> &'r Budget {
        self.budget
    }

    /// `None` if it is not JSON, or too much of it.
    fn json(&mut self, body: &[u8]) -> Option<&json_path::Tree<'r>> {
        let budget = self.budget;
        let tree =
            self.json.get_or_insert_with(|| json_path::parse(body, budget).ok_or_else(|| budget.excess()));
        fit(tree, budget)
    }

    /// `None` if it is not XML, or too much of it.
    fn xml(&mut self, body: &'r [u8]) -> Option<&Document<'r>> {
        let budget = self.budget;
        let document = self.xml.get_or_insert_with(|| {
            let text = std::str::from_utf8(body).map_err(|_| None)?;
            let (document, steps) = budget::XML.parse(text).map_err(|error| Excess::of(error.fault))?;
            if budget.spend(steps) { Ok(document) } else { Err(budget.excess()) }
        });
        fit(document, budget)
    }

    pub(super) fn events(&mut self, stream: EventStream, body: &[u8]) -> &Events {
        self.events.get_or_insert_with(|| Events::read(stream, body))
    }
}

/// The tree, if there is one. Why there is none is the same for each search.
fn fit<'t, T>(tree: &'t Result<T, Option<Excess>>, budget: &Budget) -> Option<&'t T> {
    if let Err(Some(excess)) = tree {
        budget.exceed(*excess);
    }
    tree.as_ref().ok()
}

impl Place {
    pub(super) fn compile(source: &Source, scope: &Scope<'_>) -> Result<Self, TemplateError> {
        Ok(match source {
            Source::Status => Self::Status,
            Source::Header(name) if name == ":status" => Self::Status,
            Source::Header(name) => {
                check_name(name)?;
                Self::Header(name.to_ascii_lowercase())
            }
            Source::RequestHeader(name) => match name.as_str() {
                ":path" => Self::RequestPath,
                ":method" => Self::RequestMethod,
                ":authority" => Self::RequestAuthority,
                _ if name.starts_with(':') => {
                    return Err(TemplateError::new(format!("a request has no `{name}` to take"))
                        .with_hint("`:path`, `:method` and `:authority` can be taken"));
                }
                _ if name.eq_ignore_ascii_case("host") => Self::RequestAuthority,
                _ => {
                    check_name(name)?;
                    Self::RequestHeader(name.to_ascii_lowercase())
                }
            },
            Source::RequestUrl => Self::RequestUrl,
            Source::Cookie(name) => {
                check_name(name).map_err(|error| error.at("cookie"))?;
                Self::Cookie(name.clone())
            }
            Source::Body => Self::Body,
            Source::JsonPointer(pointer) => Self::Pointer(JsonPointer::parse(pointer)?),
            Source::RequestJsonPointer(pointer) => Self::RequestPointer(JsonPointer::parse(pointer)?),
            Source::JsonPath(path) => Self::JsonPath(JsonPath::parse(path, scope)?),
            Source::XPath(path) => Self::XPath(XPath::parse(path)?),
            Source::Event { pick, of } => {
                let of = Box::new(Self::compile(of, scope)?);
                Self::Event(EventPlace { pick: *pick, of })
            }
        })
    }

    pub(super) fn add_needs(&self, needs: &mut Needs) {
        match self {
            Self::Status => {}
            Self::Header(name) => add_field(needs, name),
            Self::Cookie(_) => add_field(needs, "set-cookie"),
            Self::Body | Self::Pointer(_) | Self::JsonPath(_) | Self::XPath(_) | Self::Event(_) => {
                needs.body = true;
            }
            Self::RequestPath | Self::RequestUrl => needs.path = true,
            Self::RequestHeader(_)
            | Self::RequestMethod
            | Self::RequestAuthority
            | Self::RequestPointer(_) => needs.request = true,
        }
    }

    /// Returns `true` if only the response is examined.
    pub(super) const fn is_of_response(&self) -> bool {
        match self {
            Self::Status
            | Self::Header(_)
            | Self::Body
            | Self::Pointer(_)
            | Self::JsonPath(_)
            | Self::XPath(_)
            | Self::Event(_) => true,
            Self::RequestPath
            | Self::RequestUrl
            | Self::RequestHeader(_)
            | Self::RequestMethod
            | Self::RequestAuthority
            | Self::RequestPointer(_)
            // The session's cookie, if the response sets none.
            | Self::Cookie(_) => false,
        }
    }

    /// Passes the values that are there to `look`, until that returns `true`; returns whether it did.
    /// `scratch` is for values that do not stand anywhere as they are.
    pub(super) fn any(
        &self,
        exchange: &mut Exchange<'_, '_>,
        scratch: &mut Vec<u8>,
        mut look: impl FnMut(&[u8]) -> bool,
    ) -> bool {
        exchange.parsed.budget.refill();
        match self {
            Self::Header(name) => exchange.received.fields.all(name).any(look),
            Self::Event(event) => event.any(exchange, scratch, look),
            _ => self.first(exchange, scratch).is_some_and(&mut look),
        }
    }

    /// The value, if it is there. `scratch` is for one that does not stand anywhere as it is.
    pub(super) fn first<'v>(
        &self,
        exchange: &'v mut Exchange<'_, '_>,
        scratch: &'v mut Vec<u8>,
    ) -> Option<&'v [u8]> {
        self.first_fit(exchange, scratch, |_| true)
    }

    /// The value, if it is there; where several events may have it, the first that fits.
    pub(super) fn first_fit<'v>(
        &self,
        exchange: &'v mut Exchange<'_, '_>,
        scratch: &'v mut Vec<u8>,
        fits: impl Fn(&[u8]) -> bool,
    ) -> Option<&'v [u8]> {
        exchange.parsed.budget.refill();
        if let Self::Event(event) = self {
            let mut found = None;
            event.any(exchange, scratch, |value| {
                let is_it = fits(value);
                found = is_it.then(|| value.to_vec());
                is_it
            });
            *scratch = found?;
            return Some(scratch);
        }
        self.find(exchange, scratch)
    }

    /// The value, if it is there, within what is left of the [budget](Parsed::budget).
    pub(super) fn find<'v>(
        &self,
        exchange: &'v mut Exchange<'_, '_>,
        scratch: &'v mut Vec<u8>,
    ) -> Option<&'v [u8]> {
        let Exchange { received, sent, cookies, parsed, .. } = exchange;
        if received.is_missing() && self.is_of_response() {
            return None;
        }
        match self {
            Self::Status => {
                scratch.clear();
                crate::slot::write_decimal(u64::from(received.status), scratch);
                Some(scratch)
            }
            Self::Header(name) => received.fields.get(name),
            Self::RequestHeader(name) => sent.fields.get(name),
            Self::RequestPath => present(&sent.path),
            Self::RequestMethod => present(&sent.method),
            Self::RequestAuthority => present(&sent.authority),
            Self::RequestUrl => {
                scratch.clear();
                Origin { https: received.secure, authority: received.authority }.write(scratch);
                scratch.extend_from_slice(&sent.path);
                Some(scratch)
            }
            Self::Cookie(name) => {
                let set = received.fields.all("set-cookie").filter_map(|field| value_of(field, name));
                set.last().or_else(|| cookies.get(name.as_bytes()))
            }
            Self::Body => Some(received.body),
            Self::Pointer(pointer) => pointer.find(received.body)?.text(scratch),
            Self::RequestPointer(pointer) => pointer.find(&sent.body)?.text(scratch),
            Self::JsonPath(path) => {
                path.first(received.body, parsed.budget, || parsed.json(received.body), scratch)
            }
            Self::XPath(path) => {
                let budget = parsed.budget;
                path.first(parsed.xml(received.body)?, budget, scratch)
            }
            // Looked for above.
            Self::Event(_) => None,
        }
    }
}

fn present(value: &[u8]) -> Option<&[u8]> {
    (!value.is_empty()).then_some(value)
}

/// The value of the cookie that a Set-Cookie field sets, if it is the one of this name (RFC 6265 section
/// 5.2).
fn value_of<'a>(field: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let pair = field.split(|&byte| byte == b';').next()?;
    let equals = pair.iter().position(|&byte| byte == b'=')?;
    (pair[..equals].trim_ascii() == name.as_bytes()).then(|| pair[equals + 1..].trim_ascii())
}
