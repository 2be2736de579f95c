//! Locations of redirects: wherever one leads, the request that follows is one request, whose target is
//! that of the URL that was made of it; and a URL that was made is its own location.

use plimsoll_core::Random;
use plimsoll_core::Redaction;
use plimsoll_plan::DynamicOrigin;
use plimsoll_scenario::reference::{Origin, Resource, origin, resolve, resolve_url};
use plimsoll_scenario::{Body, Context, Dialect, Location, RequestSpec, RequestTemplate, Scheme};

use std::sync::LazyLock;

const BASES: [&[u8]; 4] = [b"/", b"/a/b/c?d=e", b"*", b"/a/b/"];
const STATUSES: [u16; 4] = [301, 303, 307, 308];

static TEMPLATE: LazyLock<RequestTemplate> = LazyLock::new(|| {
    let spec = RequestSpec {
        dialect: Dialect::Http,
        method: "POST".to_owned(),
        target: "/form?${sequence}".to_owned(),
        scheme: Scheme::Http,
        authority: "example.test".to_owned(),
        authority_slot: false,
        cookies: false,
        headers: vec![("X-Kept".to_owned(), "1".to_owned())],
        body: Body::Text(b"hello".to_vec()),
        keep_alive: true,
        forward: None,
    };
    RequestTemplate::http1(&spec).expect("the request is sound")
});

/// Runs one input. The first byte chooses where the location is resolved, and the status.
pub fn run(data: &[u8]) {
    let Some((&choice, location)) = data.split_first() else { return };
    let base = BASES[usize::from(choice & 3)];
    let status = STATUSES[usize::from(choice >> 2 & 3)];
    let mut path = Vec::new();
    if resolve(location, base, &mut path) {
        assert!(path.starts_with(b"/") && path.iter().all(u8::is_ascii_graphic));
        assert!(path.len() <= location.len() + base.len() + 2);
        // A resolved path leads to itself, except for segments that became empty or look like a host.
        if !path.starts_with(b"//") {
            let mut again = Vec::new();
            assert!(resolve(&path, b"/", &mut again));
            assert_eq!(again, path);
        }
    }
    let resource =
        Resource { origin: Origin { https: choice & 0x10 != 0, authority: b"a.test:80" }, path: base };
    let mut url = Vec::new();
    if resolve_url(location, resource, &mut url) {
        let (of, path) = origin(&url).expect("it is a URL");
        assert!(path.starts_with(b"/") && !of.authority.contains(&b'@'));
        let mut again = Vec::new();
        assert!(resolve_url(&url, resource, &mut again));
        assert_eq!(again, url);
        if let Ok(newcomer) = DynamicOrigin::read(of.https, of.authority) {
            assert_eq!(newcomer.authority().as_bytes(), of.authority);
        }
    }
    if let Some(Location { https, authority, path, .. }) = Location::resolve(location, resource) {
        let next = TEMPLATE.redirected(&path, status).expect("the target is legal");
        assert_one_request(&next, &path);
        let scheme = if https { "https" } else { "http" };
        let again = Location::resolve(format!("{scheme}://{authority}{path}").as_bytes(), resource);
        assert_eq!(
            again.map(|again| (again.https, again.authority, again.path)),
            Some((https, authority, path))
        );
    }
    // Nor does a path that is not encoded become anything else.
    if let Ok(path) = std::str::from_utf8(location) {
        for next in [
            TEMPLATE.redirected(path, status),
            TEMPLATE.redirected_away(path, status, Scheme::Https, &Redaction::default()),
        ]
        .into_iter()
        .flatten()
        {
            assert_one_request(&next, path);
        }
    }
}

fn assert_one_request(template: &RequestTemplate, path: &str) {
    let mut out = Vec::new();
    let context = Context { authority: b"b.test", ..Context::default() };
    template.render(&context, &mut Random::new(1, 0), &mut Vec::new(), &mut out);
    let head = out.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("there is a head");
    let lines: Vec<&[u8]> = out[..head].split(|&byte| byte == b'\n').collect();
    let line = [
        lines[0].split(|&byte| byte == b' ').next().unwrap_or_default(),
        b" ",
        path.as_bytes(),
        b" HTTP/1.1\r",
    ];
    assert_eq!(lines[0], line.concat(), "the request line");
    assert!(lines.len() <= 6, "no fields but those of the request");
    assert!(out[head + 4..] == b"hello"[..] || out.len() == head + 4);
}
