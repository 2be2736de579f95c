//! From flags to a plan: accepted flags, and refused ones with their messages.

mod accepted;
mod crud;
mod fingerprint;
mod flags;
mod protocol;
mod proxy;
mod refused;
mod samples;
mod security;
