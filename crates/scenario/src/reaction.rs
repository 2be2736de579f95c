//! What a step makes of its response: its checks, and the values that it takes.

use plimsoll_core::ErrorClass;

use crate::{Needs, Received, Scope, Session, TemplateError};

/// A status, or statuses, that a step accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusRange {
    /// The first.
    pub first: u16,
    /// The last, included.
    pub last: u16,
}

/// How a text is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matching {
    /// It is there at all.
    Exists,
    /// The whole text; a template, as all texts here but the regular expression.
    Equals(String),
    /// Its start.
    Starts(String),
    /// Its end.
    Ends(String),
    /// Anywhere in it.
    Contains(String),
    /// A regular expression (of the `regex` crate), anywhere in it.
    Regex(String),
}

/// Where a value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The status code.
    Status,
    /// A field of the response.
    Header(String),
    /// A field of the request, or its `:path`, `:method`, `:authority`.
    RequestHeader(String),
    /// A cookie that the response sets, or that the session has.
    Cookie(String),
    /// The whole body of the response.
    Body,
    /// A JSON Pointer (RFC 6901) into the body of the response.
    JsonPointer(String),
    /// A JSONPath (RFC 9535): the first match.
    JsonPath(String),
    /// A JSON Pointer into the body of the request.
    RequestJsonPointer(String),
    /// An XPath (1.0) on the body of the response: the string value of the first match.
    XPath(String),
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckSpec {
    /// What is compared.
    pub source: Source,
    /// How.
    pub matching: Matching,
    /// Whether it must not match.
    pub negated: bool,
}

/// One value to take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtractSpec {
    /// Where it goes: the position of the variable.
    pub variable: u16,
    /// Where it is.
    pub source: Source,
    /// What is taken of it: the first group of this expression, or all of what it matches.
    pub regex: Option<String>,
    /// Whether it is a reference to a resource, resolved against the request's path.
    pub as_path: bool,
    /// What the variable gets if there is no such value; without it, the request has failed.
    pub default: Option<String>,
}

/// What a reaction is compiled from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReactionSpec {
    /// Accepted statuses; empty: below 400.
    pub statuses: Vec<StatusRange>,
    /// Checks, all of which have to hold.
    pub checks: Vec<CheckSpec>,
    /// Values to take.
    pub extract: Vec<ExtractSpec>,
    /// Whether Set-Cookie fields go into the session's jar.
    pub cookies: bool,
}

/// Why a response is not what its step expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The class that it is counted in.
    pub class: ErrorClass,
    /// Which check or extraction, for [`Reaction::describe`].
    pub(crate) what: u16,
}

/// What a step makes of its response, compiled.
#[derive(Clone, Debug, Default)]
pub struct Reaction {
    needs: Needs,
}

impl Reaction {
    /// Compiles one.
    pub fn compile(spec: &ReactionSpec, scope: &Scope<'_>) -> Result<Self, TemplateError> {
        let _ = (spec, scope);
        Ok(Self::default())
    }

    /// What has to be kept of the exchange. (A script of the step may need more: that is the plan's matter.)
    pub fn needs(&self) -> &Needs {
        &self.needs
    }

    /// Whether it reads nothing but the status, and takes nothing: `session` may be anything then.
    pub fn is_plain(&self) -> bool {
        self.needs.is_nothing()
    }

    /// Checks the response and takes its values and cookies into the session. Values are taken only from a
    /// response that passed. Allocates nothing in steady state but for JSONPath and XPath.
    pub fn apply(&self, received: &Received<'_>, session: &mut Session) -> Result<(), Failure> {
        let _ = (received, session);
        Ok(())
    }

    /// The same for a [plain](Self::is_plain) one.
    pub fn accepts(&self, status: u16) -> Result<(), Failure> {
        let _ = status;
        Ok(())
    }

    /// What failed, in words, for the first example of an error. Never a value that was received whole.
    pub fn describe(&self, failure: Failure, received: &Received<'_>) -> String {
        let _ = (failure, received);
        String::new()
    }
}
