//! The page: three files that are built from `web/` and kept in `page/`.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use plimsoll_core::text::hex;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

use crate::refusal::Refusal;
use crate::router::Ui;
use crate::secret::random_hex;

const INDEX: &str = include_str!("../page/index.html");
const SCRIPT: &[u8] = include_bytes!("../page/app.js");
const STYLE: &[u8] = include_bytes!("../page/app.css");

/// Bytes of a nonce: 128 bits, as CSP asks for.
const NONCE_BYTES: usize = 16;
/// Place of the nonce in the page.
const NONCE: &str = "<meta name=\"csp-nonce\" content=\"";

/// The Content-Security-Policy: the page runs our script, uses our styles and sends requests to us, nothing
/// else, and no site may frame it.
/// `{nonce}` is where a source for styles may stand that a script inserts.
fn policy(nonce: &str) -> String {
    let nonce = if nonce.is_empty() { String::new() } else { format!(" 'nonce-{nonce}'") };
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self'{nonce}; img-src 'self' data:; \
         connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

/// The page itself, with a nonce of its own.
pub(crate) async fn index() -> Result<Response, Refusal> {
    let nonce = random_hex(NONCE_BYTES).map_err(|error| {
        Refusal::failed(
            format!("the system gives no random numbers: {error}"),
            "check that /dev/urandom exists",
        )
    })?;
    let mut response = Response::new(Body::from(with_nonce(INDEX, &nonce)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    if let Ok(policy) = HeaderValue::try_from(policy(&nonce)) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    Ok(response)
}

fn with_nonce(page: &str, nonce: &str) -> String {
    match page.split_once(NONCE).and_then(|(before, rest)| Some((before, rest.split_once('"')?.1))) {
        Some((before, after)) => format!("{before}{NONCE}{nonce}\"{after}"),
        None => page.replacen("<head>", &format!("<head>\n{NONCE}{nonce}\">"), 1),
    }
}

/// The script of the page.
pub(crate) async fn script(State(ui): State<Arc<Ui>>, headers: HeaderMap) -> Response {
    asset(SCRIPT, "text/javascript; charset=utf-8", &ui.etags.script, &headers)
}

/// The styles of the page.
pub(crate) async fn style(State(ui): State<Arc<Ui>>, headers: HeaderMap) -> Response {
    asset(STYLE, "text/css; charset=utf-8", &ui.etags.style, &headers)
}

/// Names of the contents of the files, by which a browser asks if they are still the same.
#[derive(Debug)]
pub(crate) struct Etags {
    script: String,
    style: String,
}

impl Etags {
    pub(crate) fn new() -> Self {
        let etag = |content: &[u8]| format!("\"{}\"", hex(&Sha256::digest(content)[..16]));
        Self { script: etag(SCRIPT), style: etag(STYLE) }
    }
}

fn asset(content: &'static [u8], media: &'static str, etag: &str, asked: &HeaderMap) -> Response {
    let is_known = asked.get(header::IF_NONE_MATCH).is_some_and(|known| known == etag);
    let mut response =
        if is_known { StatusCode::NOT_MODIFIED.into_response() } else { Response::new(Body::from(content)) };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(etag) = HeaderValue::try_from(etag) {
        headers.insert(header::ETAG, etag);
    }
    response
}

/// Adds the fields by which a browser keeps the answer from other sites, and from its own guesses.
pub(crate) fn secure(headers: &mut HeaderMap) {
    if !headers.contains_key(header::CONTENT_SECURITY_POLICY)
        && let Ok(policy) = HeaderValue::try_from(policy(""))
    {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("x-frame-options", "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nonce_is_where_the_page_has_room_for_it() {
        let page = with_nonce("<head><meta name=\"csp-nonce\" content=\"x\"><title>", "abc");
        assert_eq!(page, "<head><meta name=\"csp-nonce\" content=\"abc\"><title>");
        let page = with_nonce("<html><head><title>", "abc");
        assert_eq!(page, "<html><head>\n<meta name=\"csp-nonce\" content=\"abc\"><title>");
        assert!(with_nonce(INDEX, "abcdef").contains("<meta name=\"csp-nonce\" content=\"abcdef\">"));
    }

    /// A page that fetches or runs anything from elsewhere, or inline, would be stopped by its policy.
    #[test]
    fn the_page_needs_nothing_that_its_policy_forbids() {
        assert!(!INDEX.contains(" style=") && !INDEX.contains("<style"), "inline styles");
        for tag in INDEX.split("<script").skip(1) {
            let (attributes, rest) = tag.split_once('>').unwrap();
            assert!(
                attributes.contains("src=\"/assets/app.js\"")
                    || attributes.contains("src=\"./assets/app.js\"")
            );
            assert!(rest.trim_start().starts_with("</script>"), "inline scripts");
        }
        assert!(!INDEX.contains("src=\"http") && !INDEX.contains("href=\"http"), "from elsewhere");
    }
}
