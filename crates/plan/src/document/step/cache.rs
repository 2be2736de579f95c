//! Requests to a cache.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::part;
use crate::document::{Field, Text};

/// A request to a cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[non_exhaustive]
pub struct CacheStep {
    /// Ask a cache, which is a target with a URL like `carbon://127.0.0.1:5500/name`.
    pub cache: Field<CacheSpec>,
}

part!(CacheStep {
    "cache": cache,
});

/// A request to a cache: exactly one of put, get, delete and ping.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct CacheSpec {
    /// Store a value under this key; a template.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub put: Field<Text>,
    /// The value of this key; a template. One that is not there has the status 404.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub get: Field<Text>,
    /// Forget this key; a template.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub delete: Field<Text>,
    /// Check that the cache answers.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub ping: Field<bool>,
    /// Value to store; a template. Default: nothing.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub value: Field<Text>,
    /// File with the value to store, sent as it is.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub value_file: Field<Text>,
}
