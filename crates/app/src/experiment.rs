//! One run or several, and their results.

pub(crate) mod ab;
pub(crate) mod calibrate;
pub(crate) mod campaign;
pub(crate) mod comparison;
pub(crate) mod find;
pub(crate) mod fleet_run;
pub(crate) mod full_speed;
pub(crate) mod paired;
pub(crate) mod repeat;
pub(crate) mod run;
pub(crate) mod search;
pub(crate) mod sweep;
pub(crate) mod trials;
