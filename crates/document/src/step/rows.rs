//! Rows that iterations keep for each other.

use schemars::JsonSchema;

use super::part;
use crate::{Field, Keyed, Row, Text};

/// Rows of a pool: exactly one of keep, pick and take.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[non_exhaustive]
pub struct RowsStep {
    /// Keep the values of variables as a row of a pool, for any iteration: `{orders: [id, version]}`.
    pub keep: Keyed<Field<Row>>,
    /// Set the variables of a pool to one of its rows, which stays. If it is empty, they are not set.
    pub pick: Field<Text>,
    /// Set the variables of a pool to one of its rows, which leaves the pool, so that no other user gets it.
    /// If it is empty, they are not set.
    pub take: Field<Text>,
}

part!(RowsStep {
    "keep": keep,
    "pick": pick,
    "take": take,
});

impl RowsStep {
    /// Keeps the values of variables as a row of a pool.
    pub fn keep(pool: &str, variables: Row) -> Self {
        Self { keep: Keyed::one(pool, Field::new(variables)), ..Self::default() }
    }

    /// Sets the variables of a pool to one of its rows.
    pub fn pick(pool: &str) -> Self {
        Self { pick: Field::text(pool), ..Self::default() }
    }

    /// Sets the variables of a pool to a row that leaves it.
    pub fn take(pool: &str) -> Self {
        Self { take: Field::text(pool), ..Self::default() }
    }
}
