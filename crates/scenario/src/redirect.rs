//! The request that follows a redirect.

use crate::request::Source;
use crate::{Body, RequestSpec, RequestTemplate, Scheme, Scope, Template, TemplateError};

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

    /// The same for a location at another authority or scheme: the authority is that of the
    /// [`Context`](crate::Context), and fields for the first one are dropped: Authorization, Cookie and Host.
    /// (RFC 9110 section 15.4; cookies of the context are chosen for each host.)
    ///
    /// # Errors
    /// If `path` is not a valid request target.
    pub fn redirected_away(&self, path: &str, status: u16, scheme: Scheme) -> Result<Self, TemplateError> {
        let mut next = RequestSpec { scheme, authority_slot: true, ..self.after(path, status) };
        let of_first = ["authorization", "proxy-authorization", "cookie", "host"];
        next.headers.retain(|(name, _)| !of_first.iter().any(|other| name.eq_ignore_ascii_case(other)));
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
        let scope = Scope { variables, constants: constants.as_ref(), tokens };
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
