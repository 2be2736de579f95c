//! Checks, compiled.

use memchr::memmem::{self, Finder};
use plimsoll_core::Random;

use super::place::{Exchange, Place};
use super::{CheckSpec, Matching};
use crate::pattern::Pattern;
use crate::{Context, Scope, Template, TemplateError};

/// One check.
#[derive(Clone, Debug)]
pub(super) struct Check {
    pub(super) place: Place,
    test: Test,
    negated: bool,
}

#[derive(Clone, Debug)]
enum Test {
    Exists,
    Equals(Template),
    Starts(Template),
    Ends(Template),
    Contains(Template),
    /// Looks for a text that never changes, anywhere in the value.
    ContainsAlways(Box<Finder<'static>>),
    Matches(Pattern),
}

impl Check {
    pub(super) fn compile(spec: &CheckSpec, place: Place, scope: &Scope<'_>) -> Result<Self, TemplateError> {
        let template = |text: &String| compile_text(text, scope);
        let test = match &spec.matching {
            Matching::Exists => Test::Exists,
            Matching::Equals(text) => Test::Equals(template(text)?),
            Matching::Starts(text) => Test::Starts(template(text)?),
            Matching::Ends(text) => Test::Ends(template(text)?),
            Matching::Contains(text) => match template(text)? {
                // Its Debug would show the secret.
                always if always.is_static() && !always.has_secret() => {
                    Test::ContainsAlways(Box::new(Finder::new(always.literals()).into_owned()))
                }
                changing => Test::Contains(changing),
            },
            Matching::Regex(text) => Test::Matches(Pattern::parse(text, scope)?),
        };
        Ok(Self { place, test, negated: spec.negated })
    }

    /// The regular expression that it compares with.
    pub(super) fn pattern(&self) -> Option<&Pattern> {
        match &self.test {
            Test::Matches(pattern) => Some(pattern),
            _ => None,
        }
    }

    /// Returns `true` if the check reads nothing of the session and of the request.
    pub(super) fn reads_response_alone(&self) -> bool {
        let is_constant = match &self.test {
            Test::Exists | Test::ContainsAlways(_) | Test::Matches(_) => true,
            Test::Equals(text) | Test::Starts(text) | Test::Ends(text) | Test::Contains(text) => {
                text.is_static()
            }
        };
        is_constant && self.place.is_of_response()
    }

    /// A value that is not there matches nothing.
    pub(super) fn holds(
        &self,
        exchange: &mut Exchange<'_, '_>,
        variables: &[Vec<u8>],
        looked_at: &mut Vec<u8>,
        scratch: &mut Vec<u8>,
    ) -> bool {
        let budget = exchange.parsed.budget();
        let matches = match &self.test {
            Test::Exists => self.place.any(exchange, looked_at, |_| true),
            Test::ContainsAlways(finder) => {
                self.place.any(exchange, looked_at, |value| finder.find(value).is_some())
            }
            Test::Matches(pattern) => {
                self.place.any(exchange, looked_at, |value| budget.is_match(pattern, value))
            }
            Test::Equals(text) => {
                let text = rendered(text, variables, scratch);
                self.place.any(exchange, looked_at, |value| value == text)
            }
            Test::Starts(text) => {
                let text = rendered(text, variables, scratch);
                self.place.any(exchange, looked_at, |value| value.starts_with(text))
            }
            Test::Ends(text) => {
                let text = rendered(text, variables, scratch);
                self.place.any(exchange, looked_at, |value| value.ends_with(text))
            }
            Test::Contains(text) => {
                let text = rendered(text, variables, scratch);
                self.place.any(exchange, looked_at, |value| memmem::find(value, text).is_some())
            }
        };
        // A search that was given up says neither.
        matches != self.negated && budget.excess().is_none()
    }
}

/// Compiles a text that a response is compared with, or that stands for a value that it lacks.
pub(super) fn compile_text(text: &str, scope: &Scope<'_>) -> Result<Template, TemplateError> {
    let template = Template::parse_in(text.as_bytes(), scope)?;
    if template.depends_on_variables_alone() {
        return Ok(template);
    }
    Err(TemplateError::new(format!(
        "`{text}` names more than variables, and would differ from the request's"
    ))
    .with_hint("set a variable to it in a step before, and name that in both"))
}

/// The text of a template that depends on variables alone.
pub(super) fn rendered<'t>(
    template: &'t Template,
    variables: &[Vec<u8>],
    scratch: &'t mut Vec<u8>,
) -> &'t [u8] {
    if template.is_static() {
        return template.literals();
    }
    scratch.clear();
    // Nothing is drawn.
    template.render(&Context { variables, ..Context::default() }, &mut Random::new(0, 0), scratch);
    scratch
}
