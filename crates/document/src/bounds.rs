//! Bounds that plans have, and that importers keep.

/// Most steps of a plan, those of all scenarios together. A step takes some KiB.
pub const MOST_STEPS: usize = 20_000;

/// Bytes of a data file that are read for the names of its columns, at most: it may be larger than memory.
pub const LONGEST_DATA_HEAD: usize = 1 << 20;
