//! Answers of everything that cannot be done.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};

use crate::answer;

/// Reason why a request is not fulfilled, and what to do about it.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) error: String,
    pub(crate) hint: String,
    /// Further members of the answer.
    pub(crate) more: Box<Map<String, Value>>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, error: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { status, error: error.into(), hint: hint.into(), more: Box::default() }
    }

    /// A request that only a mistaken or hostile client makes.
    pub(crate) fn forbidden(error: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, error, hint)
    }

    pub(crate) fn bad_request(error: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error, hint)
    }

    pub(crate) fn not_found(error: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, error, hint)
    }

    pub(crate) fn conflict(error: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, error, hint)
    }

    /// A request that is understood, and whose content is wrong.
    pub(crate) fn unprocessable(error: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, error, hint)
    }

    /// Something that should work on this machine and does not.
    pub(crate) fn failed(error: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, error, hint)
    }

    /// Adds a member to the answer.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.to_owned(), value.into());
        self
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut object = Map::new();
        object.insert("error".to_owned(), self.error.into());
        object.insert("hint".to_owned(), self.hint.into());
        object.extend(*self.more);
        answer::with_status(self.status, &Value::Object(object))
    }
}
