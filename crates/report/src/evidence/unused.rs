//! Values of evidence that nothing in a result is made of.

use super::Evidence;
use super::comparing::Comparing;

/// Lists them.
pub(super) fn list(_evidence: &Evidence, _comparison: &mut Comparing) {}
