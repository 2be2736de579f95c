//! Headers as a user types them.

use crate::{Scope, Template, TemplateError};

/// Splits `Name: value` (a space after the colon is not needed) and checks both. The value, a template, is
/// trimmed.
///
/// An empty value is kept: it asks for a default header to be left out, as curl does.
pub fn parse_header(text: &str) -> Result<(String, String), TemplateError> {
    parse_header_in(text, &Scope::default())
}

/// Splits `Name: value` as [`parse_header`] does, and checks both; the value may name the variables of
/// `scope`.
pub fn parse_header_in(text: &str, scope: &Scope<'_>) -> Result<(String, String), TemplateError> {
    // The text itself is not quoted: with a forgotten name it is the bare secret.
    let Some((name, value)) = text.split_once(':') else {
        return Err(TemplateError::new("no `:` between name and value").with_hint("write `Name: value`"));
    };
    let value = value.trim_matches(WHITE_SPACE);
    compile_value(name, value, scope)?;
    Ok((name.to_owned(), value.to_owned()))
}

/// White space that may surround a header's value, and is not part of it (RFC 9110 section 5.6.3).
const WHITE_SPACE: [char; 2] = [' ', '\t'];

/// Checks a header's name and compiles its value, which is trimmed: HTTP/2 has no white space around it
/// (RFC 9113 section 8.2.1).
pub(crate) fn compile_value(name: &str, value: &str, scope: &Scope<'_>) -> Result<Template, TemplateError> {
    check_name(name)?;
    let value = value.trim_matches(WHITE_SPACE).as_bytes();
    let value = Template::parse_line(value, scope).map_err(|error| error.at(format!("header `{name}`")))?;
    check_value(name, value.unfit_byte())?;
    Ok(value)
}

/// RFC 9110 section 5.1: a header's name is a token.
pub(crate) fn check_name(name: &str) -> Result<(), TemplateError> {
    if name.is_empty() {
        return Err(TemplateError::new("the header's name is empty").with_hint("write `Name: value`"));
    }
    match name.bytes().find(|&byte| !is_token(byte)) {
        None => Ok(()),
        Some(byte) => Err(TemplateError::new(format!(
            "`{}` is not allowed in the header's name `{}`",
            byte.escape_ascii(),
            name.escape_debug()
        ))
        .with_hint("a name has letters, digits and !#$%&'*+-.^_`|~, and no space before its colon")),
    }
}

/// Returns `true` if `value` may be sent as a header's value (RFC 9110 section 5.5): no line breaks, no NUL
/// and no other control characters but the tab.
pub fn is_value(value: &[u8]) -> bool {
    // To the end in any case, for then the compiler looks at many bytes at once.
    value.iter().fold(true, |fit, &byte| fit & is_in_value(byte))
}

/// Returns `true` if a header's value may have this byte.
pub(crate) fn is_in_value(byte: u8) -> bool {
    (byte >= 0x20 && byte != 0x7f) || byte == b'\t'
}

fn check_value(name: &str, unfit: Option<u8>) -> Result<(), TemplateError> {
    match unfit {
        None => Ok(()),
        Some(byte) => Err(TemplateError::new(format!(
            "the value of the header `{name}` contains `{}`",
            byte.escape_ascii()
        ))
        .with_hint("a value is one line without control characters")),
    }
}

/// Returns `true` if the byte may be part of a token, such as a method or the name of a header (RFC 9110
/// section 5.6.2: `tchar`).
pub fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_with_and_without_a_space_and_empty() {
        for (text, name, value) in [
            ("A: b", "A", "b"),
            ("A:b:c", "A", "b:c"),
            ("A:\tb  ", "A", "b"),
            ("User-Agent:", "User-Agent", ""),
        ] {
            assert_eq!(parse_header(text).unwrap(), (name.to_owned(), value.to_owned()), "{text}");
        }
    }

    #[test]
    fn malformed_headers_are_refused_and_never_quoted() {
        let error = parse_header("Bearer topsecret").unwrap_err();
        assert!(!format!("{error:?}").contains("topsecret"));
        for text in ["", ": b", "A b: c", "A\r\nB: c", "A : b", "Ü: b"] {
            assert!(parse_header(text).is_err(), "{text:?}");
        }
        let error = compile_value("Cookie", "topsecret\r\nX: y", &Scope::default()).unwrap_err();
        assert_eq!(error.message(), "the value of the header `Cookie` contains `\\r`");
    }
}
