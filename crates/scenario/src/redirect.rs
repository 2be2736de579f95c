//! The request that follows a redirect.

use plimsoll_core::Redaction;

use crate::head::{FieldText, HeadField};
use crate::request::Source;
use crate::{Body, RequestSpec, RequestTemplate, Scheme, Scope, Template, TemplateError};

/// Returns `true` for the statuses of a response that leads to another URL (RFC 9110 section 15.4).
pub const fn leads_elsewhere(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

impl RequestTemplate {
    /// The request to send after a response with `status` (301, 302, 303, 307 or 308) and a location whose
    /// path and query are `path`.
    ///
    /// As browsers and curl do, and RFC 9110 section 15.4 allows: 303 turns every method but HEAD into GET,
    /// 301 and 302 turn POST into GET, and a request that became GET loses its body and the headers that
    /// describe it; 307 and 308 repeat the request. Compiled on each call: redirects are not the hot path.
    ///
    /// # Errors
    /// If `path` is not a valid request target.
    pub fn redirected(&self, path: &str, status: u16) -> Result<Self, TemplateError> {
        self.compile_again(self.after(path, status))
    }

    /// The request that follows a redirect to another authority or scheme: the authority is that of the
    /// [`Context`](crate::Context), and fields for the first one are dropped: Host, and all that are secrets
    /// by their names, as `redaction` knows them, or by their values. (RFC 9110 section 15.4; cookies of the
    /// context are chosen for each host.)
    ///
    /// # Errors
    /// If `path` is not a valid request target, or the request would repeat a body with a secret of the plan:
    /// the server that answered names the one that would get it.
    pub fn redirected_away(
        &self,
        path: &str,
        status: u16,
        scheme: Scheme,
        redaction: &Redaction,
    ) -> Result<Self, TemplateError> {
        let mut next = RequestSpec { scheme, authority_slot: true, ..self.after(path, status) };
        let is_secret = |field: &HeadField| match &field.value {
            FieldText::Template(value) => value.has_secret(),
            FieldText::Length => false,
        };
        let secret: Vec<&str> =
            self.source.fields.iter().filter(|field| is_secret(field)).map(|f| &*f.name).collect();
        let stays = |name: &str| {
            name.eq_ignore_ascii_case("host")
                || redaction.hides_header(name)
                || secret.iter().any(|secret| name.eq_ignore_ascii_case(secret))
        };
        next.headers.retain(|(name, _)| !stays(name));
        if next.body != Body::None && self.body_has_secret() {
            return Err(TemplateError::new(
                "another server would get the body, which has a secret of the plan",
            ));
        }
        self.compile_again(next)
    }

    fn after(&self, path: &str, status: u16) -> RequestSpec {
        let spec = &self.source.spec;
        let to_get = match status {
            303 => spec.method != "HEAD",
            301 | 302 => spec.method == "POST",
            _ => false,
        };
        let mut next = RequestSpec { target: Template::escape(path), ..spec.clone() };
        if to_get {
            next.method = "GET".to_owned();
            next.body = Body::None;
            next.headers.retain(|(name, _)| !name.to_ascii_lowercase().starts_with("content-"));
        }
        next
    }

    fn compile_again(&self, spec: RequestSpec) -> Result<Self, TemplateError> {
        let Source { variables, constants, tokens, .. } = &*self.source;
        let scope = Scope { variables, constants: constants.as_ref(), tokens, patterns: None };
        Self::compile(&spec, &scope, None)
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::Random;

    use super::*;
    use crate::Context;

    fn redirected(method: &str, status: u16) -> String {
        let spec = RequestSpec {
            dialect: crate::Dialect::Http,
            method: method.to_owned(),
            target: "/form?${sequence}".to_owned(),
            scheme: Scheme::Http,
            authority: "example.test".to_owned(),
            authority_slot: false,
            cookies: false,
            headers: vec![
                ("Content-Type".to_owned(), "text/plain".to_owned()),
                ("X-Kept".to_owned(), "1".to_owned()),
            ],
            body: Body::Text(b"hello".to_vec()),
            keep_alive: true,
            forward: None,
        };
        let request = RequestTemplate::http1(&spec).unwrap().redirected("/there?a=${b}", status).unwrap();
        let mut out = Vec::new();
        let context = Context { index: 0, worker: 0, unix_ns: 0, variables: &[], ..Context::default() };
        request.render(&context, &mut Random::new(1, 0), &mut Vec::new(), &mut out);
        String::from_utf8(out).unwrap()
    }

    /// Secrets of the plan × the parts of a request that have them, on the way to another server.
    #[test]
    fn another_server_gets_no_secret() {
        let one = |name: &str| [(name.to_owned(), "topsecret".to_owned())].into_iter().collect();
        let constants = crate::Constants::new(Default::default(), one("KEY"));
        let scope = Scope { constants: Some(&constants), ..Scope::default() };
        let redaction = Redaction::new(["flavour"]);
        let follow = |headers: &[(&str, &str)], body: &str, status| {
            let spec = RequestSpec {
                method: "POST".to_owned(),
                target: "/".to_owned(),
                authority: "example.test".to_owned(),
                headers: headers
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                    .collect(),
                body: Body::Text(body.as_bytes().to_vec()),
                ..RequestSpec::default()
            };
            let first = RequestTemplate::compile(&spec, &scope, None).unwrap();
            let next = first.redirected_away("/there", status, Scheme::Http, &redaction)?;
            let mut out = Vec::new();
            let context = Context { authority: b"other.test", ..Context::default() };
            next.render(&context, &mut Random::new(1, 0), &mut Vec::new(), &mut out);
            Ok::<_, TemplateError>(String::from_utf8(out).unwrap())
        };
        for name in ["Authorization", "cookie", "X-Api-Key", "X-Session-Token", "Flavour", "Host"] {
            let text = follow(&[(name, "topsecret"), ("X-Kept", "1")], "hello", 307).unwrap();
            assert!(text.contains("X-Kept: 1") && text.ends_with("hello"), "{name}: {text}");
            assert!(!text.contains("topsecret"), "{name}: {text}");
        }
        for value in ["${secret(KEY)}", "a ${upper(${secret(KEY)})}", "${base64(${secret(KEY)})}"] {
            let text = follow(&[("X-Plain", value), ("X-Kept", "1")], "hello", 308).unwrap();
            assert!(text.contains("X-Kept: 1") && !text.contains("X-Plain"), "{value}: {text}");
            let error = follow(&[], value, 307).unwrap_err();
            assert_eq!(
                error.message(),
                "another server would get the body, which has a secret of the plan",
                "{value}"
            );
            let long = format!("{}{value}", "x".repeat(1 << 20));
            assert!(follow(&[], &long, 307).is_err(), "{value} in a long body");
            // A request that becomes a GET has no body.
            assert!(follow(&[], value, 303).unwrap().starts_with("GET /there "), "{value}");
        }
    }

    #[test]
    fn a_form_becomes_a_get_without_its_body() {
        for status in [301, 302, 303] {
            let text = redirected("POST", status);
            assert!(text.starts_with("GET /there?a=${b} HTTP/1.1\r\n"), "{text}");
            assert!(text.contains("X-Kept: 1") && !text.to_ascii_lowercase().contains("content-"), "{text}");
        }
        assert!(redirected("PUT", 303).starts_with("GET "));
    }

    #[test]
    fn the_method_and_the_body_are_kept_where_the_status_says_so() {
        for (method, status) in [("POST", 307), ("POST", 308), ("PUT", 301), ("PUT", 302)] {
            let text = redirected(method, status);
            assert!(
                text.starts_with(&format!("{method} /there")) && text.ends_with("\r\n\r\nhello"),
                "{text}"
            );
        }
    }
}
