//! Required fields of a model's objects.

use crate::fields::{Fields, string};
use crate::identifier;

/// Reason why an object is not taken.
pub(crate) type Refusal = &'static str;

/// Refusal of a body that is not JSON, or not the expected JSON.
pub(crate) const INVALID: Refusal = "Invalid JSON";

/// Returns `true` if this may be the name of a model: up to 64 letters, digits, `-` and `_`, not `_` first.
pub(crate) fn is_model(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=64).contains(&name.len()) && !name.starts_with('_') && name.bytes().all(is_plain)
}

/// Checks a whole object, or with `partly` some fields of one. `products` have a name, a price and a
/// category, as in Lithair's own node; others have any members.
pub(crate) fn check(model: &str, object: &Fields<'_>, partly: bool) -> Result<(), Refusal> {
    if model != "products" {
        return Ok(());
    }
    let missing = if partly { Ok(()) } else { Err(INVALID) };
    match object.get("name").map(string) {
        Some(Some(name)) if name.is_empty() => return Err("'name' must not be empty"),
        Some(name) => drop(name.ok_or(INVALID)?),
        None => missing?,
    }
    match object.get("price").map(str::parse::<f64>) {
        Some(Ok(price)) if price < 0.01 => return Err("'price' must be at least 0.01"),
        Some(price) => drop(price.map_err(|_| INVALID)?),
        None => missing?,
    }
    match object.get("category").map(string) {
        Some(category) => category.map(drop).ok_or(INVALID),
        None => missing,
    }
}

/// The id that an object brings; `None` if it brings none.
pub(crate) fn id(object: &Fields<'_>) -> Result<Option<u128>, Refusal> {
    let Some(raw) = object.get("id") else { return Ok(None) };
    string(raw).and_then(|text| identifier::parse(&text)).map(Some).ok_or(INVALID)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(model: &str, object: &str, partly: bool) -> Option<Refusal> {
        check(model, &Fields::parse(object.as_bytes()).unwrap(), partly).err()
    }

    #[test]
    fn products_have_what_products_need() {
        let whole = r#"{"name":"a","price":1,"category":"c"}"#;
        assert_eq!(refusal("products", whole, false), None);
        assert_eq!(refusal("products", r#"{"price":1}"#, true), None);
        assert_eq!(refusal("orders", "{}", false), None);
        for (old, new, why) in [
            ("\"name\":\"a\",", "", INVALID),
            ("\"a\"", "1", INVALID),
            ("\"a\"", "\"\"", "'name' must not be empty"),
            (":1", ":\"1\"", INVALID),
            (":1", ":-1", "'price' must be at least 0.01"),
            ("\"c\"", "null", INVALID),
        ] {
            assert_eq!(refusal("products", &whole.replace(old, new), false), Some(why), "{new}");
        }
    }

    #[test]
    fn names_and_ids() {
        assert!(is_model("products") && is_model("a-B_9"));
        for bad in ["", "_bulk", "a/b", "ä", "a.b"] {
            assert!(!is_model(bad), "{bad}");
        }
        let read = |text: &str| id(&Fields::parse(text.as_bytes()).unwrap());
        assert_eq!(read("{}"), Ok(None));
        assert_eq!(read(r#"{"id":"00000000-0000-0000-0000-00000000000A"}"#), Ok(Some(10)));
        assert_eq!(read(r#"{"id":"1"}"#), Err(INVALID));
        assert_eq!(read(r#"{"id":1}"#), Err(INVALID));
    }
}
