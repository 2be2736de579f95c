//! The result contract: types that are written as JSON, with their schemas.

pub mod agent;
pub mod calibration;
pub mod capacity;
pub mod context;
pub mod event_streams;
pub mod example;
pub mod interval;
pub mod machine;
pub mod metric;
pub mod phase;
pub mod probe;
pub mod reconciliation;
pub mod records;
pub mod result;
pub mod searched;
pub mod slices;
pub mod slow;
pub(crate) mod slowest;
pub mod suite;
pub mod summary;
pub mod sweep;
pub(crate) mod timestamp;
pub mod traffic;
pub mod trial;
pub mod watched;

use self::result::RunResult;

/// The version of the result contract: raised when a field changes its meaning or goes, not when one is
/// added.
pub const SCHEMA_VERSION: u32 = 1;

/// The JSON Schema of [`RunResult`], generated from its types; descriptions are their documentation. It is
/// that of what is written: what is never left out is required, though results of earlier versions may lack
/// it.
pub fn schema_result() -> serde_json::Value {
    schema_of_written::<RunResult>()
}

/// The schema of a type as it is serialized.
pub(crate) fn schema_of_written<T: schemars::JsonSchema>() -> serde_json::Value {
    let settings = schemars::generate::SchemaSettings::default().for_serialize();
    settings.into_generator().into_root_schema_for::<T>().to_value()
}
