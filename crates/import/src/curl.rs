//! curl
