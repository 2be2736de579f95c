//! Credentials of collections, folders and requests.

use std::collections::BTreeMap;

use plimsoll_document::{Field, RefreshSpec, StepSpec};
use serde_json::{Value, json};

use super::{Importer, plain};
use crate::draft;
use crate::findings::Findings;
use crate::flow::{self, Variables, Writing, check};
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
    /// The value of `authorization`, as a template of plans.
    Fetched(String),
}

/// Time from one token to the next: shorter than most of them are good for.
const TOKEN_LIFETIME: &str = "4m";

/// Tokens that the setup fetches: their requests, and the credentials with the variable of each.
#[derive(Debug, Default)]
pub(super) struct Tokens(Vec<(Value, Auth)>);

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
            "oauth2" if let Some(request) = token_request(&values) => {
                self.fetched(request, &values, &place)?
            }
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

    /// Credentials with a token that the setup fetches by this request, once for all that use it.
    fn fetched(&mut self, request: Value, values: &BTreeMap<String, String>, place: &str) -> Option<Auth> {
        if let Some((_, auth)) = self.tokens.0.iter().find(|(known, _)| *known == request) {
            return Some(auth.clone());
        }
        let mut step = self.request(&request, place, &Auth::Nothing)?;
        let name = self.variables.fresh("oauth_token", None);
        let token = check::extract(&check::Place::Json("/access_token".to_owned()));
        step.extract.push(name.as_str(), Field::new(token));
        step.on_failure = Field::Absent;
        self.document.setup.push(Field::new(step));
        let mut refresh = RefreshSpec::default();
        refresh.every = draft::text(TOKEN_LIFETIME);
        self.document.refresh = Field::new(refresh);
        let becomes = format!(
            "`setup` fetches a token, and `refresh` another one every {TOKEN_LIFETIME}: let that be less than \
             its lifetime"
        );
        self.findings.note(place, "oauth2", &becomes);
        if values.get("addTokenTo").is_some_and(|to| to == "queryParams") {
            self.findings.note(place, "addTokenTo", "the token is sent in the header `authorization`");
        }
        let prefix = values.get("headerPrefix").map_or("Bearer", |prefix| prefix.trim());
        let prefix = self.variables.template(prefix, Writing::Plain, place, &mut self.findings);
        let auth = Auth::Fetched(format!("{prefix} ${{{name}}}").trim().to_owned());
        self.tokens.0.push((request, auth.clone()));
        Some(auth)
    }
}

/// The request for a token (RFC 6749, sections 4.3.2 and 4.4.2) in Postman's format. `None` for grants that
/// need a browser.
fn token_request(values: &BTreeMap<String, String>) -> Option<Value> {
    let value = |key: &str| values.get(key).map(String::as_str).filter(|value| !value.is_empty());
    let (grant, named): (&str, &[&str]) = match value("grant_type")? {
        "client_credentials" => ("client_credentials", &["scope", "audience", "resource"]),
        "password_credentials" => ("password", &["username", "password", "scope", "audience", "resource"]),
        _ => return None,
    };
    let url = value("accessTokenUrl")?;
    let mut form = vec![json!({"key": "grant_type", "value": grant})];
    form.extend(named.iter().filter_map(|key| Some(json!({"key": key, "value": value(key)?}))));
    let (id, secret) = (value("clientId").unwrap_or_default(), value("clientSecret").unwrap_or_default());
    let auth = if value("client_authentication") == Some("body") {
        form.extend([
            json!({"key": "client_id", "value": id}),
            json!({"key": "client_secret", "value": secret}),
        ]);
        json!({"type": "noauth"})
    } else {
        let pair = [json!({"key": "username", "value": id}), json!({"key": "password", "value": secret})];
        json!({"type": "basic", "basic": pair})
    };
    let body = json!({"mode": "urlencoded", "urlencoded": form});
    Some(json!({"method": "POST", "url": url, "auth": auth, "body": body}))
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
            Self::Fetched(value) => ("authorization".to_owned(), value.clone()),
            Self::Nothing | Self::Header(..) | Self::Query(..) => return,
        };
        if !flow::has_header(step, &name) {
            flow::put_header(step, &name, &value, at, findings);
        }
    }
}
