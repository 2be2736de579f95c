//! The API over HTTP/1.1.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use crate::api::{Answer, Api, Request, longest_body};

/// Serves all connections, until it is dropped.
pub(crate) async fn serve(listener: TcpListener, api: Arc<Api>) {
    loop {
        // Without a descriptor for one more there may be one soon.
        let Ok((stream, _)) = listener.accept().await else {
            tokio::task::yield_now().await;
            continue;
        };
        tokio::spawn(converse(stream, api.clone()));
    }
}

async fn converse(stream: TcpStream, api: Arc<Api>) {
    // Without it answers come late, and are right all the same.
    drop(stream.set_nodelay(true));
    let service = service_fn(move |request| {
        let api = api.clone();
        async move { Ok::<_, Infallible>(respond(answer(&api, request).await)) }
    });
    // A client that breaks off, or speaks another protocol, is not our problem.
    drop(http1::Builder::new().pipeline_flush(true).serve_connection(TokioIo::new(stream), service).await);
}

async fn answer(api: &Api, request: hyper::Request<Incoming>) -> Answer {
    let (head, body) = request.into_parts();
    let longest = longest_body(head.uri.path());
    if body.size_hint().lower() > longest as u64 {
        return too_large(longest);
    }
    let body = match Limited::new(body, longest).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return too_large(longest),
        Err(_) => return Answer::error(400, "the body has no end"),
    };
    let media = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim();
    let request = Request {
        method: head.method.as_str(),
        path: head.uri.path(),
        query: head.uri.query().unwrap_or_default(),
        is_json: media.eq_ignore_ascii_case("application/json"),
        body: &body,
    };
    api.answer(&request).await
}

fn too_large(longest: usize) -> Answer {
    let mut answer = Answer::error(413, &format!("request body too large (max {longest} bytes)"));
    answer.fields.push(("connection", "close".to_owned()));
    answer
}

fn respond(answer: Answer) -> Response<Full<Bytes>> {
    let Answer { status, fields, body } = answer;
    let has_body = body.is_some();
    let mut response = Response::new(Full::from(body.unwrap_or_default()));
    *response.status_mut() = StatusCode::from_u16(status).expect("statuses are those of the API");
    if has_body {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    for (name, value) in fields {
        let value = HeaderValue::try_from(value).expect("a path that was received can be sent");
        response.headers_mut().insert(name, value);
    }
    response
}
