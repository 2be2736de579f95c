//! Values of a setup that another process has carried out: a coordinator hands them to the processes of its
//! agents.
//!
//! They are written as JSON, `{"fixed": {"id": "NDI="}, "refreshed": {"token": "YWJj"}}`: a value may be any
//! bytes, so each is in Base64.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use plimsoll_plan::{GivenValue, SharedText};
use serde_json::{Map, Value, json};

/// The values by their names.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct HandedValues(Vec<(String, GivenValue)>);

/// Values are often secrets.
impl fmt::Debug for HandedValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl HandedValues {
    /// Reads values as [`to_text`](Self::to_text) writes them.
    ///
    /// # Errors
    /// The text is not of that form.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let written: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let refreshed = |value: Vec<u8>| GivenValue::Refreshed(SharedText::new(&value));
        let fixed =
            decoded(&written["fixed"])?.into_iter().map(|(name, value)| (name, GivenValue::Fixed(value)));
        let refreshed =
            decoded(&written["refreshed"])?.into_iter().map(|(name, value)| (name, refreshed(value)));
        Ok(Self(fixed.chain(refreshed).collect()))
    }

    /// Writes all values as text.
    pub(crate) fn to_text(values: &[(String, GivenValue)]) -> String {
        let (fixed, refreshed) = encoded(values);
        json!({ "fixed": fixed, "refreshed": refreshed }).to_string()
    }

    /// Writes the refreshed values as text, without the fixed ones. [`replace`](Self::replace) reads it.
    pub(crate) fn refreshed_to_text(values: &[(String, GivenValue)]) -> String {
        let (_, refreshed) = encoded(values);
        json!({ "refreshed": refreshed }).to_string()
    }

    /// The values, which a plan is [given](plimsoll_plan::Plan::give).
    pub(crate) fn as_given(&self) -> &[(String, GivenValue)] {
        &self.0
    }

    /// Replaces the refreshed values by those of a later text. Iterations that begin from now on have them.
    ///
    /// # Errors
    /// The text has another form than that of [`refreshed_to_text`](Self::refreshed_to_text), or a value that
    /// is not refreshed. None is replaced then.
    pub(crate) fn replace(&self, text: &str) -> Result<(), String> {
        let written: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let mut replaced = Vec::new();
        for (name, value) in decoded(&written["refreshed"])? {
            let known = self.0.iter().find_map(|(known, given)| match given {
                GivenValue::Refreshed(text) if *known == name => Some(text),
                _ => None,
            });
            let text = known.ok_or_else(|| format!("no value `{}` is refreshed", name.escape_debug()))?;
            replaced.push((text, value));
        }
        replaced.into_iter().for_each(|(text, value)| text.set(&value));
        Ok(())
    }
}

/// The fixed and the refreshed values as objects of texts in Base64.
fn encoded(values: &[(String, GivenValue)]) -> (Map<String, Value>, Map<String, Value>) {
    let (mut fixed, mut refreshed) = (Map::new(), Map::new());
    for (name, value) in values {
        match value {
            GivenValue::Fixed(value) => fixed.insert(name.clone(), BASE64.encode(value).into()),
            GivenValue::Refreshed(text) => refreshed.insert(name.clone(), BASE64.encode(text.value()).into()),
        };
    }
    (fixed, refreshed)
}

/// The values of an object of texts in Base64.
fn decoded(written: &Value) -> Result<Vec<(String, Vec<u8>)>, String> {
    let object = written.as_object().ok_or("values are missing: {\"fixed\": {…}, \"refreshed\": {…}}")?;
    let value = |(name, text): (&String, &Value)| {
        let text =
            text.as_str().ok_or_else(|| format!("the value of `{}` is no text", name.escape_debug()))?;
        let value = BASE64
            .decode(text)
            .map_err(|error| format!("the value of `{}`: {error}", name.escape_debug()))?;
        Ok((name.clone(), value))
    };
    object.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(token: &str) -> Vec<(String, GivenValue)> {
        let refreshed = GivenValue::Refreshed(SharedText::new(token.as_bytes()));
        vec![("id".to_owned(), GivenValue::Fixed(b"\xff\"\0".to_vec())), ("token".to_owned(), refreshed)]
    }

    fn token(handed: &HandedValues) -> Vec<u8> {
        let GivenValue::Refreshed(text) = &handed.as_given()[1].1 else { panic!("{handed:?}") };
        text.value()
    }

    #[test]
    fn values_are_read_as_they_were_written() {
        let handed = HandedValues::read(&HandedValues::to_text(&values("abc"))).unwrap();
        assert_eq!(handed.as_given()[0], values("")[0]);
        assert_eq!(token(&handed), b"abc");
        for wrong in [
            "",
            "[]",
            "{}",
            "{\"fixed\": {}, \"refreshed\": {\"a\": 1}}",
            "{\"fixed\": {\"a\": \"*\"}, \"refreshed\": {}}",
        ] {
            assert!(HandedValues::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_values_that_are_refreshed_are_replaced_and_all_at_once() {
        let handed = HandedValues::read(&HandedValues::to_text(&values("abc"))).unwrap();
        handed.replace(&HandedValues::refreshed_to_text(&values("def"))).unwrap();
        assert_eq!(token(&handed), b"def");
        for wrong in ["", "{}", "{\"refreshed\": {\"token\": \"eA==\", \"id\": \"eA==\"}}"] {
            assert!(handed.replace(wrong).is_err(), "{wrong}");
            assert_eq!(token(&handed), b"def", "{wrong}");
        }
    }
}
