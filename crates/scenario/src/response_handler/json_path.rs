//! JSONPath (RFC 9535).

mod filters;
mod tree;
mod walk;

use std::sync::Arc;

use jsonpath_rust::parser::model::{JpQuery, Segment, Selector};
use jsonpath_rust::parser::parse_json_path;
use jsonpath_rust::query::js_path_process;

use self::filters::Filters;
pub(super) use self::tree::{Tree, parse};
use self::walk::{Step, find};
use super::budget::Budget;
use crate::pattern::Pattern;
use crate::{Scope, TemplateError};

/// A JSONPath, compiled.
#[derive(Debug)]
pub(super) enum JsonPath {
    /// Names and places from the front: one value, for which no tree is made.
    Single(Box<[Step]>),
    Any {
        query: JpQuery,
        /// Steps for each value that is looked at, for the filters that may look at it.
        price: u64,
        patterns: Arc<[Pattern]>,
    },
}

impl Clone for JsonPath {
    /// A copy has regular expressions of its own, which take no lock.
    fn clone(&self) -> Self {
        match self {
            Self::Single(steps) => Self::Single(steps.clone()),
            Self::Any { query, price, patterns } => Self::Any {
                query: query.clone(),
                price: *price,
                patterns: patterns.iter().cloned().collect(),
            },
        }
    }
}

impl JsonPath {
    pub(super) fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, TemplateError> {
        let Ok(mut query) = parse_json_path(text) else {
            return Err(TemplateError::new(format!("`{text}` is not a JSONPath"))
                .with_hint("it starts with `$`, as in `$.orders[0].id` (RFC 9535)"));
        };
        if let Some(steps) = query.segments.iter().map(step).collect() {
            return Ok(Self::Single(steps));
        }
        let Filters { price, patterns, .. } = Filters::take(&mut query, scope)
            .map_err(|reason| TemplateError::new(format!("`{text}` is not a JSONPath: {reason}")))?;
        Ok(Self::Any { query, price, patterns: patterns.into() })
    }

    /// The first match: a string as it is, other JSON without white space. `tree` parses the body, or has
    /// done so.
    pub(super) fn first<'s, 't, 'b: 't>(
        &self,
        body: &[u8],
        budget: &'b Budget,
        tree: impl FnOnce() -> Option<&'t Tree<'b>>,
        scratch: &'s mut Vec<u8>,
    ) -> Option<&'s [u8]> {
        scratch.clear();
        match self {
            Self::Single(steps) => find(body, steps, budget)?.write(scratch)?,
            Self::Any { query, price, patterns } => {
                let tree = tree()?;
                budget.set_filters(*price, patterns);
                let matches = js_path_process(query, tree).ok()?;
                matches.first()?.val.write(scratch)?;
            }
        }
        (!budget.is_spent()).then_some(scratch)
    }
}

/// The step that a segment is, if it leads to one value.
fn step(segment: &Segment) -> Option<Step> {
    match segment {
        Segment::Selector(Selector::Name(name)) => Some(Step::Name(name.as_str().into())),
        Segment::Selector(Selector::Index(index)) => usize::try_from(*index).ok().map(Step::Place),
        _ => None,
    }
}
