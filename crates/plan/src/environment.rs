//! Values from outside: `${env(NAME)}` and `${secret(NAME)}`.

use std::collections::BTreeMap;

/// The environment that a plan file may name. Only the binary reads the real one.
pub trait Environment {
    /// The value of a variable, if it is set (and is text).
    fn get(&self, name: &str) -> Option<String>;
}

/// Values that are known ahead; the default is an environment without any.
impl Environment for BTreeMap<String, String> {
    fn get(&self, name: &str) -> Option<String> {
        BTreeMap::get(self, name).cloned()
    }
}
