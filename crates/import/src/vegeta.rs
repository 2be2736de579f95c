//! vegeta
