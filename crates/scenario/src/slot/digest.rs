//! Credentials of Digest access authentication (RFC 7616).

use md5::Md5;
use plimsoll_core::Random;
use sha2::{Digest as _, Sha256};

use super::write::{write_hex, write_random_hex};

/// Hexadecimal digits of a client's nonce: as many as one random number has.
const CNONCE_DIGITS: usize = 16;

/// Replaces the text in `out` from `start` on, `user:password, METHOD target`, by the credentials that
/// answer a challenge, the value of `www-authenticate`. Nothing is left of the text if the challenge has
/// no Digest of MD5 or SHA-256 that protects requests alone (`auth`), or if the text has another form.
pub(super) fn answer(challenge: &[u8], start: usize, random: &mut Random, out: &mut Vec<u8>) {
    let mut cnonce = Vec::with_capacity(CNONCE_DIGITS);
    write_random_hex(CNONCE_DIGITS, random, &mut cnonce);
    let credentials = credentials(challenge, &out[start..], &cnonce);
    out.truncate(start);
    out.extend(credentials.unwrap_or_default());
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hash {
    Md5,
    Sha256,
}

impl Hash {
    /// The hash of parts with colons between them, in hexadecimal digits.
    fn of(self, parts: &[&[u8]]) -> Vec<u8> {
        let text = parts.join(&b':');
        let mut digits = Vec::with_capacity(64);
        match self {
            Self::Md5 => write_hex(&Md5::digest(&text), &mut digits),
            Self::Sha256 => write_hex(&Sha256::digest(&text), &mut digits),
        }
        digits
    }
}

/// A challenge of the scheme Digest. Quoted values are as they were sent, without the quotes.
#[derive(Debug, Default)]
struct Challenge<'c> {
    realm: &'c [u8],
    nonce: &'c [u8],
    opaque: Option<&'c [u8]>,
    algorithm: Option<&'c [u8]>,
    qop: Option<&'c [u8]>,
}

/// The value of `authorization`; `None` without a challenge that can be answered.
fn credentials(challenges: &[u8], text: &[u8], cnonce: &[u8]) -> Option<Vec<u8>> {
    // A target has no blank and a method no comma, which a password may have.
    let blank = text.iter().rposition(|byte| *byte == b' ')?;
    let (before, target) = (&text[..blank], &text[blank + 1..]);
    let comma = before.iter().rposition(|byte| *byte == b',')?;
    let (pair, method) = (&before[..comma], before[comma + 1..].trim_ascii());
    if method.is_empty() || target.is_empty() {
        return None;
    }
    let colon = pair.iter().position(|byte| *byte == b':')?;
    let (user, password) = (&pair[..colon], &pair[colon + 1..]);
    let (challenge, hash, is_session) = challenges_in(challenges).into_iter().find_map(usable)?;
    let nonce = unescaped(challenge.nonce);
    let mut secret = hash.of(&[user, &unescaped(challenge.realm), password]);
    if is_session {
        secret = hash.of(&[&secret, &nonce, cnonce]);
    }
    let request = hash.of(&[method, target]);
    let response = match challenge.qop {
        Some(_) => hash.of(&[&secret, &nonce, b"00000001", cnonce, b"auth", &request]),
        // As RFC 2069 has it.
        None => hash.of(&[&secret, &nonce, &request]),
    };
    let mut value = b"Digest username=\"".to_vec();
    for byte in user {
        if matches!(byte, b'"' | b'\\') {
            value.push(b'\\');
        }
        value.push(*byte);
    }
    value.push(b'"');
    let mut put = |name: &str, quote: &str, text: &[u8]| {
        value.extend_from_slice(format!(", {name}={quote}").as_bytes());
        value.extend_from_slice(text);
        value.extend_from_slice(quote.as_bytes());
    };
    put("realm", "\"", challenge.realm);
    put("uri", "\"", target);
    if let Some(algorithm) = challenge.algorithm {
        put("algorithm", "", algorithm);
    }
    put("nonce", "\"", challenge.nonce);
    if challenge.qop.is_some() {
        put("nc", "", b"00000001");
        put("cnonce", "\"", cnonce);
        put("qop", "", b"auth");
    }
    put("response", "\"", &response);
    if let Some(opaque) = challenge.opaque {
        put("opaque", "\"", opaque);
    }
    Some(value)
}

/// The hash that a challenge asks for, and whether it is bound to a session; `None` if it cannot be answered.
fn usable(challenge: Challenge<'_>) -> Option<(Challenge<'_>, Hash, bool)> {
    let is_offered = |qop: &[u8]| {
        qop.split(|byte| *byte == b',').any(|one| one.trim_ascii().eq_ignore_ascii_case(b"auth"))
    };
    if challenge.nonce.is_empty() || !challenge.qop.is_none_or(is_offered) {
        return None;
    }
    let algorithm = challenge.algorithm.unwrap_or(b"MD5").to_ascii_uppercase();
    let (name, is_session) = match algorithm.strip_suffix(b"-SESS") {
        Some(name) => (name, true),
        None => (&algorithm[..], false),
    };
    let hash = match name {
        b"MD5" => Hash::Md5,
        b"SHA-256" => Hash::Sha256,
        _ => return None,
    };
    Some((challenge, hash, is_session))
}

/// The challenges of the scheme Digest, in their order (RFC 9110 section 11.6.1).
fn challenges_in(value: &[u8]) -> Vec<Challenge<'_>> {
    let mut all: Vec<Challenge<'_>> = Vec::new();
    let mut is_digest = false;
    for item in items(value) {
        let word = item.iter().position(|byte| matches!(byte, b' ' | b'=' | b'"'));
        let parameter = match word {
            // The first parameter of a challenge stands behind the name of its scheme.
            Some(at) if item[at] == b' ' && !item[at..].trim_ascii_start().starts_with(b"=") => {
                is_digest = item[..at].eq_ignore_ascii_case(b"digest");
                if is_digest {
                    all.push(Challenge::default());
                }
                item[at..].trim_ascii()
            }
            Some(_) => item,
            // A scheme without parameters.
            None => {
                is_digest = false;
                continue;
            }
        };
        let Some(challenge) = all.last_mut().filter(|_| is_digest) else { continue };
        let Some(at) = parameter.iter().position(|byte| *byte == b'=') else { continue };
        let (name, text) = (parameter[..at].trim_ascii(), parameter[at + 1..].trim_ascii());
        let text = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or(text);
        match &name.to_ascii_lowercase()[..] {
            b"realm" => challenge.realm = text,
            b"nonce" => challenge.nonce = text,
            b"opaque" => challenge.opaque = Some(text),
            b"algorithm" => challenge.algorithm = Some(text),
            b"qop" => challenge.qop = Some(text),
            _ => {}
        }
    }
    all
}

/// The parts of a list between its commas, of which those in quotes are none.
fn items(value: &[u8]) -> Vec<&[u8]> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let separates = |byte: &u8| {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b',' => return !is_quoted,
            _ => {}
        }
        false
    };
    let items = value.split(separates).map(<[u8]>::trim_ascii);
    items.filter(|item| !item.is_empty()).collect()
}

/// The content of a quoted string, whose characters may stand behind a `\`.
fn unescaped(quoted: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(quoted.len());
    let mut bytes = quoted.iter();
    while let Some(byte) = bytes.next() {
        plain.extend(if *byte == b'\\' { bytes.next() } else { Some(byte) });
    }
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CNONCE: &[u8] = b"f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ";
    const NONCE: &str = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v";

    fn answered(challenge: &str, text: &str, cnonce: &[u8]) -> String {
        String::from_utf8(credentials(challenge.as_bytes(), text.as_bytes(), cnonce).unwrap_or_default())
            .expect("text")
    }

    /// The example of RFC 7616 section 3.9.1, whose server offers both hashes.
    #[test]
    fn the_example_of_the_standard() {
        let challenge = |algorithm: &str| {
            format!(
                "Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", algorithm={algorithm}, \
                 nonce=\"{NONCE}\", opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\""
            )
        };
        let (md5, sha256) = (challenge("MD5"), challenge("SHA-256"));
        let text = "Mufasa:Circle of Life, GET /dir/index.html";
        let expected = |algorithm: &str, response: &str| {
            format!(
                "Digest username=\"Mufasa\", realm=\"http-auth@example.org\", uri=\"/dir/index.html\", \
                 algorithm={algorithm}, nonce=\"{NONCE}\", nc=00000001, \
                 cnonce=\"f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ\", qop=auth, \
                 response=\"{response}\", opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\""
            )
        };
        let of_md5 = expected("MD5", "8ca523f5e9506fed4657c9700eebdbec");
        let of_sha = expected("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1");
        assert_eq!(answered(&md5, text, CNONCE), of_md5);
        assert_eq!(answered(&sha256, text, CNONCE), of_sha);
        // The first one that can be answered, among challenges of all kinds.
        let several = format!("Negotiate, Basic realm=\"a, b\", {}, {md5}", challenge("SHA-512-256"));
        assert_eq!(answered(&several, text, CNONCE), of_md5);
    }

    /// The example of RFC 2617 section 3.5, and the same without `qop` by the formula of RFC 2069.
    #[test]
    fn the_examples_of_older_standards() {
        let text = "Mufasa:Circle Of Life, GET /dir/index.html";
        let nonce = "dcd98b7102dd2f0e8b11d0f600bfb0c093";
        let with = format!("digest realm=\"testrealm@host.com\",qop=\"auth,auth-int\",nonce=\"{nonce}\"");
        assert!(answered(&with, text, b"0a4f113b").contains("response=\"6629fae49393a05397450978507c4ef1\""));
        let without = format!("Digest realm=\"testrealm@host.com\", nonce=\"{nonce}\"");
        let old = answered(&without, text, b"0a4f113b");
        assert!(old.contains("response=\"670fd8c2df070c60b045671b8b24ff02\""), "{old}");
        assert!(!old.contains("cnonce") && !old.contains("opaque"), "{old}");
    }

    #[test]
    fn passwords_and_realms_have_any_character() {
        let challenge = r#"Digest realm="a \"b\", c", nonce="n", qop=auth"#;
        let value = answered(challenge, "me\":x, y: z, POST /a,b?c=d", b"c");
        assert!(
            value.starts_with(r#"Digest username="me\"", realm="a \"b\", c", uri="/a,b?c=d""#),
            "{value}"
        );
        let secret = Hash::Md5.of(&[b"me\"", b"a \"b\", c", b"x, y: z"]);
        let request = Hash::Md5.of(&[b"POST", b"/a,b?c=d"]);
        let response = Hash::Md5.of(&[&secret, b"n", b"00000001", b"c", b"auth", &request]);
        assert!(value.contains(std::str::from_utf8(&response).expect("digits")), "{value}");
    }

    #[test]
    fn other_challenges_are_not_answered() {
        for challenge in [
            "",
            "Basic realm=\"a\"",
            "Digest",
            "Digest realm=\"a\"",
            "Digest realm=\"a\", nonce=\"n\", qop=\"auth-int\"",
            "Digest realm=\"a\", nonce=\"n\", algorithm=SHA-512-256",
        ] {
            assert_eq!(answered(challenge, "u:p, GET /", b"c"), "", "{challenge}");
        }
        let challenge = "Digest realm=\"a\", nonce=\"n\"";
        for text in ["", "u:p", "u:p GET /", "up, GET /", "u:p, GET/"] {
            assert_eq!(answered(challenge, text, b"c"), "", "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_challenge_is_read(challenge in "(Digest |Basic |[a-z]{1,3}=|[\"\\\\, =]|.){0,40}", text in ".{0,30}") {
            answered(&challenge, &text, b"c");
        }
    }
}
