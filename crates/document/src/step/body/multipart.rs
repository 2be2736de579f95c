//! Parts of forms with files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Field, Text};

/// A part of a form (RFC 7578): a name with a value, or with a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct FormPartSpec {
    /// Name of the form's field; a template.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub name: Field<Text>,
    /// Value of the field; a template.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub value: Field<Text>,
    /// File whose content is sent as it is, instead of a value.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub file: Field<Text>,
    /// Name of the file as the server sees it; a template. Default: the last part of the path in `file`; none
    /// beside a value.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub filename: Field<Text>,
    /// Media type of the part; a template. Default: `application/octet-stream` for a file, none for a value.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub content_type: Field<Text>,
}
