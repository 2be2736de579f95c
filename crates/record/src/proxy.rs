//! The proxy: clients on one side, servers on the other.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{HOST, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode, Uri, Version};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use plimsoll_core::Nanos;
use plimsoll_driver::clock;
use plimsoll_wire::tls::{ClientConfig, ClientOptions};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::{LocalSet, spawn_local};
use tokio_rustls::LazyConfigAcceptor;

use crate::authority::Authority;
use crate::exchange::{Passing, so_far};
use crate::recording::{Exchange, Recording};
use crate::{Options, RecordError};

/// Longest time in which a client has to send the head of a request.
const HEAD: Duration = Duration::from_secs(60);
/// Longest time in which responses that have begun may end after the recording was stopped.
const END: Duration = Duration::from_secs(1);
/// Connections of clients at most.
const MOST_CONNECTIONS: usize = 1_000;

/// Fields of one connection (RFC 9110 section 7.6.1), which are not passed on.
const OF_A_CONNECTION: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
];

type Answer = Response<UnsyncBoxBody<Bytes, hyper::Error>>;
type Say = Box<dyn Fn(&str)>;

/// State that all connections share.
struct Proxy {
    client: Client<HttpsConnector<HttpConnector>, Passing>,
    authority: RefCell<Authority>,
    /// Written from bodies' ends, which may be anywhere.
    recording: Arc<Mutex<Recording>>,
    most_body: usize,
    say: Say,
    /// Hosts whose clients refused our certificate: each is told once.
    refused: RefCell<BTreeSet<String>>,
}

/// Serves until a signal comes.
pub(crate) async fn serve(options: Options, say: Say) -> Result<Recording, RecordError> {
    let config = client_config(&options)?;
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    let builder = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(config).https_or_http();
    let client = Client::builder(TokioExecutor::new()).build(builder.enable_http1().wrap_connector(http));
    let listener = TcpListener::bind(options.listen).await.map_err(|error| {
        let message = format!("cannot listen on {}: {error}", options.listen);
        RecordError::new(message, "choose another port with --listen; port 0 takes a free one")
    })?;
    let address = listener.local_addr().map_err(|error| RecordError::new(error.to_string(), "try again"))?;
    let mut signals = [SignalKind::interrupt(), SignalKind::terminate()].map(signal);
    let [Ok(interrupt), Ok(terminate)] = &mut signals else {
        return Err(RecordError::new("cannot watch for signals", "check the limits of this process"));
    };
    say(&format!("listening on {address}"));
    let proxy = Rc::new(Proxy {
        client,
        authority: RefCell::new(options.authority),
        recording: Arc::default(),
        most_body: options.most_body,
        say,
        refused: RefCell::default(),
    });
    let tasks = LocalSet::new();
    tasks
        .run_until(async {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => break,
                    _ = terminate.recv() => break,
                    accepted = listener.accept() => {
                        let Ok((stream, _)) = accepted else {
                            // Without file descriptors an accept fails at once, again and again.
                            tokio::time::sleep(Duration::from_millis(50)).await;
                            continue;
                        };
                        let _ = stream.set_nodelay(true);
                        if Rc::strong_count(&proxy) <= MOST_CONNECTIONS {
                            spawn_local(Rc::clone(&proxy).connection(TokioIo::new(stream), None));
                        }
                    }
                }
            }
        })
        .await;
    drop(listener);
    // Responses that are on their way are recorded with what has come of them.
    let _ = tokio::time::timeout(END, tasks).await;
    let recording = proxy.recording.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(recording)
}

impl Proxy {
    /// Answers the requests of one connection. `origin` is `https://host:port` within a tunnel.
    async fn connection<S>(self: Rc<Self>, stream: S, origin: Option<String>)
    where
        S: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    {
        let proxy = Rc::clone(&self);
        let service = service_fn(move |request| {
            let (proxy, origin) = (Rc::clone(&proxy), origin.clone());
            async move { Ok::<Answer, Infallible>(proxy.answer(request, origin.as_deref()).await) }
        });
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(HEAD);
        // A connection that breaks is the client's business.
        let _ = builder.serve_connection(stream, service).with_upgrades().await;
    }

    async fn answer(self: Rc<Self>, request: Request<Incoming>, origin: Option<&str>) -> Answer {
        if request.method() == Method::CONNECT {
            return self.tunnel(request);
        }
        let Some(url) = url_of(&request, origin) else {
            let text =
                "This is a recording proxy, and no web page: set it as the HTTP proxy of the client.\n";
            return answer(StatusCode::BAD_REQUEST, text);
        };
        if request.headers().contains_key("upgrade") {
            (self.say)(&format!("{url}: not recorded: connections that become a WebSocket are refused"));
            return answer(StatusCode::NOT_IMPLEMENTED, "The recording proxy passes no WebSocket on.\n");
        }
        match self.exchange(request, &url).await {
            Ok(answer) => answer,
            Err(wrong) => {
                (self.say)(&format!("{url}: not recorded: {wrong}"));
                answer(StatusCode::BAD_GATEWAY, &format!("{url}: {wrong}\n"))
            }
        }
    }

    /// Opens a tunnel to a host, in which the host's TLS is ours.
    fn tunnel(self: Rc<Self>, request: Request<Incoming>) -> Answer {
        let Some(authority) = request.uri().authority().cloned() else {
            return answer(StatusCode::BAD_REQUEST, "CONNECT needs host:port\n");
        };
        spawn_local(async move {
            let Ok(upgraded) = hyper::upgrade::on(request).await else { return };
            let host = authority.host().trim_matches(['[', ']']).to_owned();
            let Ok(stream) = self.accept_tls(TokioIo::new(upgraded), &host).await else { return };
            let origin = match authority.port_u16() {
                None | Some(443) => format!("https://{}", authority.host()),
                Some(port) => format!("https://{}:{port}", authority.host()),
            };
            self.connection(TokioIo::new(stream), Some(origin)).await;
        });
        answer(StatusCode::OK, "")
    }

    async fn accept_tls<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        host: &str,
    ) -> Result<tokio_rustls::server::TlsStream<S>, ()> {
        let told = |wrong: String| {
            if self.refused.borrow_mut().insert(host.to_owned()) {
                let text =
                    format!("{host}: not recorded: {wrong}: does the client trust this proxy's certificate?");
                (self.say)(&text);
            }
        };
        let acceptor = LazyConfigAcceptor::new(rustls::server::Acceptor::default(), stream);
        let start = acceptor.await.map_err(|error| told(format!("no TLS in the tunnel ({error})")))?;
        let name = start.client_hello().server_name().unwrap_or(host).to_owned();
        let config = self.authority.borrow_mut().server_config(&name).map_err(told)?;
        start.into_stream(config).await.map_err(|error| told(error.to_string()))
    }

    /// Passes a request on, and the response back.
    async fn exchange(&self, request: Request<Incoming>, url: &str) -> Result<Answer, String> {
        let (since, started) = (clock::monotonic(), clock::unix());
        let target: Uri = url.parse().map_err(|error| format!("the URL cannot be read: {error}"))?;
        let (head, body) = request.into_parts();
        let sent = passed_on(&head.headers);
        let mut forwarded = Request::new(Passing::new(body, self.most_body));
        let request_body = forwarded.body().kept();
        (*forwarded.method_mut(), *forwarded.uri_mut()) = (head.method.clone(), target);
        *forwarded.headers_mut() = sent.clone();
        // The client of hyper makes it of the URL.
        forwarded.headers_mut().remove(HOST);
        // Compressed bodies could not be read in the recording.
        let identity = HeaderValue::from_static("identity");
        forwarded.headers_mut().insert(HeaderName::from_static("accept-encoding"), identity);
        let response = self.client.request(forwarded).await.map_err(|error| because(&error))?;
        let (response_head, body) = response.into_parts();
        let received = passed_on(&response_head.headers);
        let status = response_head.status;
        (self.say)(&format!("{} {} {url}", status.as_u16(), head.method));
        let passing = Passing::new(body, self.most_body);
        let response_body = passing.kept();
        let (recording, method, fields) = (Arc::clone(&self.recording), head.method, received.clone());
        let (url, most) = (url.to_owned(), self.most_body as u64);
        let passing = passing.then(move || {
            let (mut request, mut response) = (so_far(&request_body), so_far(&response_body));
            // Half a body is none.
            for kept in [&mut request, &mut response].into_iter().filter(|kept| kept.passed > most) {
                kept.bytes.clear();
            }
            recording.lock().unwrap_or_else(PoisonError::into_inner).push(Exchange {
                started,
                took: Nanos(clock::monotonic().0.saturating_sub(since.0)),
                method: method.to_string(),
                url,
                sent,
                request,
                version: version(response_head.version),
                status: status.as_u16(),
                reason: status.canonical_reason().unwrap_or_default().to_owned(),
                received: fields,
                response,
            });
        });
        let mut answer = Response::new(passing.boxed_unsync());
        *answer.status_mut() = status;
        *answer.headers_mut() = received;
        Ok(answer)
    }
}

/// The whole URL that a request asks for; `None` where it asks the proxy itself.
fn url_of(request: &Request<Incoming>, origin: Option<&str>) -> Option<String> {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    match origin {
        Some(origin) => Some(format!("{origin}{path}")),
        None => {
            let (scheme, authority) = (request.uri().scheme_str()?, request.uri().authority()?);
            (scheme == "http").then(|| format!("http://{authority}{path}"))
        }
    }
}

/// Fields without those of one connection.
fn passed_on(fields: &HeaderMap) -> HeaderMap {
    let mut passed = fields.clone();
    let named: Vec<String> = fields
        .get_all("connection")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(',').map(|name| name.trim().to_ascii_lowercase()))
        .collect();
    for name in named.iter().map(String::as_str).chain(OF_A_CONNECTION) {
        passed.remove(name);
    }
    passed
}

fn answer(status: StatusCode, text: &str) -> Answer {
    let body = Full::new(Bytes::copy_from_slice(text.as_bytes())).map_err(|never| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = status;
    response
}

/// An error with its causes, which say what happened.
fn because(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

const fn version(version: Version) -> &'static str {
    match version {
        Version::HTTP_2 => "HTTP/2",
        Version::HTTP_10 => "HTTP/1.0",
        _ => "HTTP/1.1",
    }
}

/// The TLS towards servers, as that of a load. The connector adds the protocols to offer.
fn client_config(options: &Options) -> Result<rustls::ClientConfig, RecordError> {
    let client = ClientOptions {
        verify: !options.insecure,
        ca_pem: options.authorities.iter().cloned().collect(),
        alpn: Vec::new(),
        ..ClientOptions::default()
    };
    let made = ClientConfig::new(&client).map(|config| config.to_rustls());
    made.map_err(|error| RecordError::new(error.to_string(), "check --cacert: it names certificates in PEM"))
}
