//! A server as h2loadrunner's examples expect it, on hyper in this process: HTTP/2 without TLS, and a record
//! of every request.

use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Asked {
    /// The value of a header; empty if it is not there.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// A server that answers a POST with 201, the location of a resource of its own, a cookie with its number
/// and a small JSON body, a PATCH as it is told, a DELETE with 204 and others with 200. It ends with
/// this.
pub(crate) struct Mock {
    runtime: Option<Runtime>,
    pub(crate) endpoint: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Mock {
    /// Starts one that answers a PATCH with this status.
    pub(crate) fn start(patched: u16) -> Self {
        let builder = &mut tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_io().build().expect("a thread can be started");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port is free");
        let endpoint = listener.local_addr().expect("it is bound").to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&asked);
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).expect("it is a TCP socket");
                let shared = Arc::clone(&shared);
                tokio::spawn(async move {
                    let service = service_fn(|request| answer(request, patched, Arc::clone(&shared)));
                    // A client that goes away is the test's business.
                    let _ = Builder::new(TokioExecutor::new())
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Self { runtime: Some(runtime), endpoint, asked }
    }

    /// All requests so far, in the order in which they came.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("nobody has failed").clone()
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn answer(
    request: Request<Incoming>,
    patched: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (head, body) = request.into_parts();
    let body = String::from_utf8_lossy(&body.collect().await?.to_bytes()).into_owned();
    let path = head.uri.path_and_query().map_or("", |path| path.as_str()).to_owned();
    let number = {
        let mut asked = asked.lock().expect("nobody has failed");
        let (method, path) = (head.method.to_string(), path.clone());
        asked.push(Asked { method, path, headers: head.headers, body });
        asked.len()
    };
    let response = match head.method {
        Method::POST => Response::builder()
            .status(201)
            .header("location", format!("{path}/{number}"))
            .header("set-cookie", format!("session={number}")),
        Method::PATCH => Response::builder().status(patched),
        Method::DELETE => Response::builder().status(204),
        _ => Response::builder().status(200),
    };
    let body = if head.method == Method::POST { r#"{"schema": "http"}"# } else { "" };
    Ok(response.body(Full::new(Bytes::from(body))).expect("the response is sound"))
}
