//! Thresholds: their texts, their judgement, and windows against a definition by brute force.

mod answers;
mod judging;
mod own;
mod texts;
mod windows;
