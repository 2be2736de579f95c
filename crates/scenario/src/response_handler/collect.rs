//! Rows that are taken from an array in a response, compiled.

use plimsoll_core::Random;

use super::CollectSpec;
use crate::pointer::{JsonPointer, JsonText};
use crate::{Feeds, TemplateError};

/// Rows of one pool.
#[derive(Clone, Debug)]
pub(super) struct Collect {
    pool: u16,
    each: JsonPointer,
    columns: Box<[JsonPointer]>,
}

impl Collect {
    pub(super) fn compile(spec: &CollectSpec) -> Result<Self, TemplateError> {
        let columns = spec.columns.iter().map(|pointer| JsonPointer::parse(pointer));
        Ok(Self {
            pool: spec.pool,
            each: JsonPointer::parse(&spec.each)?,
            columns: columns.collect::<Result<_, _>>()?,
        })
    }

    /// Puts the rows into the pool. Returns `true` if the array was there, and each of its elements had all
    /// values.
    pub(super) fn apply(&self, body: &[u8], feeds: &mut Feeds, random: &mut Random) -> bool {
        let Some(array) = self.each.find(body) else { return false };
        let mut complete = true;
        let read = array.each_element(|element| {
            let pool = feeds.pool(self.pool);
            for (value, pointer) in pool.stage().iter_mut().zip(&self.columns) {
                complete &= pointer.find(element.raw()).is_some_and(|found| read(found, value));
            }
            if complete {
                pool.keep_staged(random);
            }
            complete
        });
        complete && read.is_some()
    }
}

/// Copies a value. Returns `true` if there is one.
fn read(found: JsonText<'_>, into: &mut Vec<u8>) -> bool {
    into.clear();
    let plain = found.to_text();
    let value = plain.filter(|text| !text.is_empty());
    if let Some(text) = &value {
        into.extend_from_slice(text);
    }
    value.is_some()
}
