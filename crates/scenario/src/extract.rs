//! Values that a later request needs of a response.

use crate::reference::{Resource, resolve, resolve_url};

/// One value to take from a response and to keep in a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extract {
    /// Name of the response header that has it, in lower case.
    pub header: String,
    /// Destination of the value: the position in [`Context::variables`](crate::Context::variables).
    pub variable: u16,
    /// Conversion of the value.
    pub form: Conversion,
}

/// Conversion of a value that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// The value as it is, without white space around it.
    Value,
    /// A reference to a resource, such as a Location (RFC 9110 section 10.2.2), becomes the path and query by
    /// which it is asked for. Of an absolute one the authority is dropped: the step decides about the server.
    Path,
    /// A reference to a resource becomes a whole URL: the server is that of the reference, or the one that
    /// was asked before.
    Url,
}

impl Extract {
    /// Converts `value`, as it was found in the response to a request for `request`, and puts the result into
    /// `into`, whose content is overwritten. It does not matter where the value came from. Allocates only
    /// when `into` has to grow.
    ///
    /// A [value](Conversion::Value) may have any bytes; where it is used decides which ones are allowed
    /// ([`RequestTemplate::unfit_value`](crate::RequestTemplate::unfit_value)). A [path](Conversion::Path)
    /// consists of visible ASCII characters, the first of them `/`; so does a [URL](Conversion::Url) behind
    /// its authority. (Other characters, in a value that a target uses, are percent-encoded there.)
    ///
    /// Returns false, and leaves `into` empty, if nothing can be made of it: a value that is empty; a
    /// reference that does not lead to a path of http or https.
    pub fn apply(&self, value: &[u8], request: Resource<'_>, into: &mut Vec<u8>) -> bool {
        Self::make(self.form, value, request, into)
    }

    /// Converts `value` as [`apply`](Self::apply) does, without saying where the value is and where it goes.
    pub(crate) fn make(form: Conversion, value: &[u8], request: Resource<'_>, into: &mut Vec<u8>) -> bool {
        into.clear();
        let value = trimmed(value);
        let found = match form {
            Conversion::Value => {
                into.extend_from_slice(value);
                !value.is_empty()
            }
            Conversion::Path => resolve(value, request.path, into),
            Conversion::Url => resolve_url(value, request, into),
        };
        if !found {
            into.clear();
        }
        found
    }
}

/// Without the optional white space of RFC 9110 section 5.6.3 around it.
fn trimmed(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::Origin;
    use proptest::prelude::*;

    fn asked(path: &[u8]) -> Resource<'_> {
        Resource { origin: Origin { https: true, authority: b"h:81" }, path }
    }

    fn applied(form: Conversion, value: &[u8]) -> Option<Vec<u8>> {
        let mut into = b"left over".to_vec();
        let found =
            Extract { header: "x".to_owned(), variable: 0, form }.apply(value, asked(b"/a/b?c"), &mut into);
        assert!(found || into.is_empty());
        found.then_some(into)
    }

    #[test]
    fn values_are_trimmed_and_kept_as_they_are() {
        for (value, kept) in [
            (&b"abc"[..], &b"abc"[..]),
            (b" \t a b \t", b"a b"),
            (b"\"\xc3\xa4\"; q=1", b"\"\xc3\xa4\"; q=1"),
            (b"a\tb", b"a\tb"),
            (b"/a b#c", b"/a b#c"),
        ] {
            assert_eq!(applied(Conversion::Value, value).as_deref(), Some(kept), "{}", value.escape_ascii());
        }
    }

    #[test]
    fn a_path_is_resolved_against_that_of_the_request() {
        for (value, path) in [("http://x/y?z", "/y?z"), (" d ", "/a/d"), ("?d", "/a/b?d"), ("", "/a/b?c")] {
            assert_eq!(
                applied(Conversion::Path, value.as_bytes()).as_deref(),
                Some(path.as_bytes()),
                "{value:?}"
            );
        }
    }

    #[test]
    fn a_url_keeps_who_is_asked() {
        for (value, url) in [
            ("http://x/y?z#f", "http://x/y?z"),
            ("HTTPS://X:1", "https://X:1/"),
            ("//x/../y", "https://x/y"),
            ("/y", "https://h:81/y"),
            (" d ", "https://h:81/a/d"),
        ] {
            assert_eq!(
                applied(Conversion::Url, value.as_bytes()).as_deref(),
                Some(url.as_bytes()),
                "{value:?}"
            );
        }
        for value in ["mailto:a@b", "http://me:secret@x/", "http://", "http:///a", "http://a b/"] {
            assert_eq!(applied(Conversion::Url, value.as_bytes()), None, "{value}");
        }
    }

    #[test]
    fn what_would_split_a_request_is_no_path_and_no_url() {
        for value in [&b"a\r\nX: y"[..], b"/a\rb", b"/a\nb", b"/a\0b", b"/a\x7fb", b"/a\x0bb", b"/\r\n"] {
            for form in [Conversion::Path, Conversion::Url] {
                assert_eq!(applied(form, value), None, "{form:?} {}", value.escape_ascii());
            }
            assert_eq!(applied(Conversion::Value, value).as_deref(), Some(value));
        }
        for value in [&b"/a b"[..], b"/\xc3\xa4", b"/a\tb", b"?\xff", b"http://x/ y"] {
            assert_eq!(applied(Conversion::Path, value), None, "{}", value.escape_ascii());
        }
        assert_eq!(applied(Conversion::Value, b" \t"), None, "there is nothing to use");
    }

    proptest! {
        #[test]
        fn nothing_that_is_kept_can_split_a_request(
            value in proptest::collection::vec(
                prop_oneof![any::<u8>(), proptest::sample::select(&b"/.?#:@ \r\n\0ahtp"[..])], 0..40,
            ),
            base in proptest::collection::vec(any::<u8>(), 0..20),
        ) {
            for form in [Conversion::Value, Conversion::Path, Conversion::Url] {
                let mut into = Vec::new();
                let extract = Extract { header: String::new(), variable: 0, form };
                if extract.apply(&value, asked(&base), &mut into) {
                    prop_assert!(!into.is_empty());
                    prop_assert_eq!(trimmed(&into), &into[..]);
                    if form == Conversion::Url {
                        prop_assert!(crate::reference::origin(&into).is_some());
                    }
                    if form == Conversion::Path {
                        prop_assert!(into.starts_with(b"/"));
                        prop_assert!(into.iter().all(|&byte| byte.is_ascii_graphic() && byte != b'#'));
                    }
                } else {
                    prop_assert!(into.is_empty());
                }
            }
        }
    }
}
