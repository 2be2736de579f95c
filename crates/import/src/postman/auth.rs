//! Credentials of collections, folders and requests.

use std::collections::BTreeMap;

use plimsoll_plan::document::StepSpec;
use serde_json::Value;

use super::{Importer, plain};
use crate::findings::Findings;
use crate::flow::{self, Variables, Writing};
use crate::source::Object;

/// Credentials of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Auth {
    #[default]
    Nothing,
    Basic(String, String),
    /// The word in front of the token, and the token.
    Bearer(String, String),
    /// Name and value, in a header.
    Header(String, String),
    /// Name and value, in the query.
    Query(String, String),
}

impl Importer<'_> {
    /// Reads `auth`. `None` if there is none: that of the folder holds then.
    pub(super) fn auth(&mut self, object: &mut Object<'_>, at: &str) -> Option<Auth> {
        let place = object.place("auth");
        let mut auth = object.object("auth", &mut self.findings)?;
        let kind = auth.text("type", &mut self.findings)?.to_owned();
        let place = if at.is_empty() { place } else { format!("{at}/auth") };
        let values = parameters(auth.members().get(&kind));
        let value = |key: &str| values.get(key).cloned().unwrap_or_default();
        let read = match kind.as_str() {
            "noauth" => Auth::Nothing,
            "basic" => Auth::Basic(value("username"), value("password")),
            "bearer" => Auth::Bearer("Bearer".to_owned(), value("token")),
            "apikey" if value("in") == "query" => Auth::Query(value("key"), value("value")),
            "apikey" => Auth::Header(value("key"), value("value")),
            "oauth2" if !value("accessToken").is_empty() => {
                let becomes = "the token is sent as it stands there: no new one is fetched";
                self.findings.note(place, &kind, becomes);
                let prefix = values.get("headerPrefix").map_or("Bearer", |prefix| prefix.trim()).to_owned();
                if value("addTokenTo") == "queryParams" {
                    Auth::Query("access_token".to_owned(), value("accessToken"))
                } else {
                    Auth::Bearer(prefix, value("accessToken"))
                }
            }
            other => {
                let becomes = "plans have no credentials of this kind: requests are sent without; `tokens` \
                               and `headers` \
                               may do";
                self.findings.note(place, other, becomes);
                Auth::Nothing
            }
        };
        Some(read)
    }
}

/// The parameters of a kind of credentials: a list of keys and values, or in v2.0 an object.
fn parameters(value: Option<&Value>) -> BTreeMap<String, String> {
    match value {
        Some(Value::Array(items)) => items
            .iter()
            .filter_map(|item| {
                Some((
                    item.get("key")?.as_str()?.to_owned(),
                    item.get("value").map(plain).unwrap_or_default(),
                ))
            })
            .collect(),
        Some(Value::Object(members)) => {
            members.iter().map(|(key, value)| (key.clone(), plain(value))).collect()
        }
        _ => BTreeMap::new(),
    }
}

impl Auth {
    /// The pair that is added to the query of a URL.
    pub(super) fn query(&self) -> Option<(&str, &str)> {
        match self {
            Self::Query(name, value) if !name.is_empty() => Some((name, value)),
            _ => None,
        }
    }

    /// Adds the header, unless the request has written one itself.
    pub(super) fn put(
        &self,
        step: &mut StepSpec,
        variables: &mut Variables,
        at: &str,
        findings: &mut Findings,
    ) {
        let mut template = |text: &str| variables.template(text, Writing::Plain, at, findings);
        let (name, value) = match self {
            Self::Basic(user, password) => {
                ("authorization".to_owned(), flow::basic(&template(user), &template(password)))
            }
            Self::Bearer(prefix, token) => {
                let value = format!("{} {}", template(prefix), template(token));
                ("authorization".to_owned(), value.trim().to_owned())
            }
            Self::Header(name, value) if !name.is_empty() => (name.clone(), template(value)),
            Self::Nothing | Self::Header(..) | Self::Query(..) => return,
        };
        if !flow::has_header(step, &name) {
            flow::put_header(step, &name, &value, at, findings);
        }
    }
}
