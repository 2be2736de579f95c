//! Values that are taken, compiled.

use super::ExtractSpec;
use super::check::{compile_text, rendered};
use super::place::{Exchange, Place};
use crate::extract::{Conversion, Extract};
use crate::pattern::Pattern;
use crate::reference::{Origin, Resource};
use crate::{Received, Scope, Template, TemplateError};

/// One value to take.
#[derive(Clone, Debug)]
pub(super) struct Take {
    pub(super) place: Place,
    pub(super) pattern: Option<Pattern>,
    form: Conversion,
    variable: u16,
    default: Option<Template>,
}

impl Take {
    pub(super) fn compile(
        spec: &ExtractSpec,
        place: Place,
        scope: &Scope<'_>,
    ) -> Result<Self, TemplateError> {
        if usize::from(spec.variable) >= scope.variables.len() {
            return Err(TemplateError::new(format!("there is no variable number {}", spec.variable)));
        }
        let default = spec.default.as_ref().map(|text| compile_text(text, scope)).transpose()?;
        Ok(Self {
            place,
            pattern: spec.regex.as_deref().map(|text| Pattern::parse(text, scope)).transpose()?,
            form: spec.form,
            variable: spec.variable,
            default,
        })
    }

    /// The value that was taken.
    pub(super) fn value<'v>(&self, variables: &'v [Vec<u8>]) -> Option<&'v [u8]> {
        variables.get(usize::from(self.variable)).map(Vec::as_slice)
    }

    /// Sets the variable, and returns `true` if it has a value now. Without a value it is empty.
    pub(super) fn apply(
        &self,
        exchange: &mut Exchange<'_, '_>,
        variables: &mut [Vec<u8>],
        known: &mut [bool],
        looked_at: &mut Vec<u8>,
        scratch: &mut Vec<u8>,
    ) -> bool {
        let variable = usize::from(self.variable);
        let Received { secure, authority, .. } = *exchange.received;
        let base = Resource { origin: Origin { https: secure, authority }, path: &exchange.sent.path };
        let budget = exchange.parsed.budget();
        let found = match &self.pattern {
            None => self.place.first(exchange, looked_at),
            Some(pattern) => {
                let value =
                    self.place.first_fit(exchange, looked_at, |value| budget.is_match(pattern, value));
                value.and_then(|value| budget.first_group(pattern, value))
            }
        };
        let Some(into) = variables.get_mut(variable) else { return false };
        let mut is_there = match found {
            Some(value) => Extract::make(self.form, value, base, into),
            None => {
                into.clear();
                false
            }
        };
        // A default is for a value that is missing, not for a search that was given up.
        let is_missing = !is_there && budget.excess().is_none();
        if let (true, Some(default)) = (is_missing, &self.default) {
            let text = rendered(default, variables, scratch);
            variables[variable].extend_from_slice(text);
            is_there = true;
        }
        if let Some(known) = known.get_mut(variable) {
            *known = is_there;
        }
        is_there
    }
}
