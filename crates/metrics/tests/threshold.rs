//! Thresholds: their texts, their judgement, and windows against a definition by brute force.

mod answers;
mod judging;
mod texts;
mod windows;
