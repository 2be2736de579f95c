//! Flags whose values have names that a library gives them.

use clap::builder::{PossibleValuesParser, TypedValueParser};

/// Reads one of a few values by its name.
pub fn named<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.iter().map(move |value| name(*value)))
        .try_map(move |text| all.iter().copied().find(|value| name(*value) == text).ok_or("unknown value"))
}
