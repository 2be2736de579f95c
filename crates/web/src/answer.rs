//! JSON: the bodies of answers and posts.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Body as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::refusal::Refusal;

/// Longest body of a request, in bytes.
pub(crate) const LONGEST_BODY: usize = 4 << 20;
/// Longest time for the body of a request to arrive.
const PATIENCE: Duration = Duration::from_secs(30);

/// An answer in JSON.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        with_status(StatusCode::OK, &self.0)
    }
}

/// An answer in JSON with a status.
pub(crate) fn with_status(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(text) => written(status, text),
        // Only a map with keys that are not text fails, and no answer has one.
        Err(error) => written(StatusCode::INTERNAL_SERVER_ERROR, error.to_string().into_bytes()),
    }
}

/// JSON that was written already.
pub(crate) fn written(status: StatusCode, text: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Body::from(text.into()));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// The object in the body of a request.
pub(crate) struct Posted<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Posted<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &S) -> Result<Self, Refusal> {
        let body = request.into_body();
        if body.size_hint().lower() > LONGEST_BODY as u64 {
            return Err(too_large());
        }
        let read = timeout(PATIENCE, Limited::new(body, LONGEST_BODY).collect()).await.map_err(|_| {
            let hint = "send it again";
            Refusal::new(StatusCode::REQUEST_TIMEOUT, "the body of the request did not arrive", hint)
        })?;
        let bytes = match read {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => return Err(too_large()),
            Err(_) => {
                return Err(Refusal::bad_request("the body of the request has no end", "send it again"));
            }
        };
        serde_json::from_slice(&bytes).map(Self).map_err(|error| {
            let hint = "reload the page, which may be of another version of the program";
            Refusal::bad_request(format!("unexpected request: {error}"), hint)
        })
    }
}

fn too_large() -> Refusal {
    let error = format!("the request is larger than {} MiB", LONGEST_BODY >> 20);
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, error, "use the command line for a text of that size")
}
