//! har
