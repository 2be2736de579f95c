//! The proxy: clients on one side, servers on the other.

use core::net::SocketAddr;
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
use hyper::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode, Uri, Version};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use plimsoll_system::clock;
use plimsoll_wire::tls::{ClientConfig, ClientOptions};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::timeout;
use tokio_rustls::LazyConfigAcceptor;

use crate::authority::{Authority, MOST_HOSTS};
use crate::exchange::{Passing, take};
use crate::hosts::{Hosts, plain};
use crate::recording::{Exchange, MOST_RECORDED, Recording, Room};
use crate::{Options, RecordError};

/// Longest time in which a client has to send the head of a request, or to agree on TLS, and a server to take
/// a connection that passes through.
const HEAD: Duration = Duration::from_secs(60);
/// Longest time in which responses that have begun may end after the recording was stopped.
const END: Duration = Duration::from_secs(1);
/// Connections of clients at most: eight times what a browser opens to a proxy.
const MOST_CONNECTIONS: usize = 256;

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
/// One of [`MOST_CONNECTIONS`], held as long as anything of the connection is there.
type Place = Rc<OwnedSemaphorePermit>;

/// State that all connections share.
struct Proxy {
    client: Client<HttpsConnector<HttpConnector>, Passing>,
    /// Address of the proxy itself.
    address: SocketAddr,
    hosts: Hosts,
    authority: RefCell<Authority>,
    room: Room,
    /// Written from bodies' ends, which may be anywhere.
    recording: Arc<Mutex<Recording>>,
    most_body: usize,
    say: Say,
    /// Events that are told once: for most, with the host.
    told: RefCell<BTreeSet<(Once, String)>>,
}

/// Events that are not told again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Once {
    /// The client of a host refused our certificate.
    Refused,
    /// A host is none of those that are recorded.
    PassedThrough,
    /// There is no room for more exchanges.
    Full,
}

/// Returns a future that ends with the first signal to end.
///
/// # Errors
/// Signals cannot be watched for.
pub(crate) fn signal_to_end() -> Result<impl Future<Output = ()>, RecordError> {
    let [Ok(mut interrupt), Ok(mut terminate)] =
        [SignalKind::interrupt(), SignalKind::terminate()].map(signal)
    else {
        return Err(RecordError::new("cannot watch for signals", "check the limits of this process"));
    };
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Serves until `end`.
pub(crate) async fn serve(
    options: Options,
    say: Say,
    end: impl Future<Output = ()>,
) -> Result<Recording, RecordError> {
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
    say(&format!("listening on {address}"));
    let room = Room::new(MOST_RECORDED);
    let proxy = Rc::new(Proxy {
        client,
        address,
        hosts: options.authority.hosts().clone(),
        authority: RefCell::new(options.authority),
        recording: Arc::new(Mutex::new(Recording::new(room.clone()))),
        room,
        most_body: options.most_body,
        say,
        told: RefCell::default(),
    });
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let tasks = LocalSet::new();
    tasks
        .run_until(async {
            tokio::pin!(end);
            loop {
                tokio::select! {
                    () = &mut end => break,
                    accepted = listener.accept() => {
                        let Ok((stream, _)) = accepted else {
                            // Without file descriptors an accept fails at once, again and again.
                            tokio::time::sleep(Duration::from_millis(50)).await;
                            continue;
                        };
                        let _ = stream.set_nodelay(true);
                        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
                            let (stream, place) = (TokioIo::new(stream), Rc::new(place));
                            spawn_local(Rc::clone(&proxy).connection(stream, None, place));
                        }
                    }
                }
            }
        })
        .await;
    drop(listener);
    // Responses that are on their way are recorded with what has come of them.
    let _ = timeout(END, tasks).await;
    let mut recording = proxy.recording.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::replace(&mut *recording, Recording::new(proxy.room.clone())))
}

impl Proxy {
    /// Answers the requests of one connection. `origin` is `https://host:port` within a tunnel.
    async fn connection<S>(self: Rc<Self>, stream: S, origin: Option<String>, place: Place)
    where
        S: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    {
        let proxy = Rc::clone(&self);
        let service = service_fn(move |request| {
            let (proxy, origin, place) = (Rc::clone(&proxy), origin.clone(), Rc::clone(&place));
            async move { Ok::<Answer, Infallible>(proxy.answer(request, origin.as_deref(), place).await) }
        });
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(HEAD);
        // A connection that breaks is the client's business.
        let _ = builder.serve_connection(stream, service).with_upgrades().await;
    }

    async fn answer(
        self: Rc<Self>,
        request: Request<Incoming>,
        origin: Option<&str>,
        place: Place,
    ) -> Answer {
        if request.method() == Method::CONNECT {
            return self.tunnel(request, place).await;
        }
        let Some(url) = url_of(&request, origin) else {
            let text =
                "This is a recording proxy, and no web page: set it as the HTTP proxy of the client.\n";
            return answer(StatusCode::BAD_REQUEST, text);
        };
        let Ok(target) = url.parse::<Uri>() else {
            return answer(StatusCode::BAD_REQUEST, "The URL cannot be read.\n");
        };
        let host = plain(target.host().unwrap_or_default());
        // Within a tunnel the host is that of the CONNECT, which was looked at.
        if origin.is_none() && self.is_own(&host, target.port_u16().unwrap_or(80)).await {
            return self.loops(&host);
        }
        if request.headers().contains_key("upgrade") {
            (self.say)(&format!("{url}: not recorded: connections that become a WebSocket are refused"));
            return answer(StatusCode::NOT_IMPLEMENTED, "The recording proxy passes no WebSocket on.\n");
        }
        let exchanged = match self.hosts.has(&host) {
            true => self.exchange(request, target, &url).await,
            false => {
                self.tell_of_passing(&host);
                self.pass_on(request, target).await
            }
        };
        exchanged.unwrap_or_else(|wrong| {
            (self.say)(&format!("{url}: not recorded: {wrong}"));
            answer(StatusCode::BAD_GATEWAY, &format!("{url}: {wrong}\n"))
        })
    }

    /// Opens a tunnel to a host, in which the host's TLS is ours, or which passes through.
    async fn tunnel(self: Rc<Self>, request: Request<Incoming>, place: Place) -> Answer {
        let Some(authority) = request.uri().authority().cloned() else {
            return answer(StatusCode::BAD_REQUEST, "CONNECT needs host:port\n");
        };
        let (host, port) = (plain(authority.host()), authority.port_u16().unwrap_or(443));
        if ServerName::try_from(host.as_str()).is_err() {
            return answer(StatusCode::BAD_REQUEST, "CONNECT needs the name of a host\n");
        }
        if self.is_own(&host, port).await {
            return self.loops(&host);
        }
        if !self.hosts.has(&host) {
            return self.pass_through(request, &host, port, place).await;
        }
        spawn_local(async move {
            let Ok(upgraded) = hyper::upgrade::on(request).await else { return };
            let accepted = timeout(HEAD, self.accept_tls(TokioIo::new(upgraded), &host)).await;
            let Ok(Ok(stream)) = accepted else { return };
            let origin = match port {
                443 => format!("https://{}", authority.host()),
                _ => format!("https://{}:{port}", authority.host()),
            };
            self.connection(TokioIo::new(stream), Some(origin), place).await;
        });
        answer(StatusCode::OK, "")
    }

    /// Opens a tunnel to a host that is not recorded: nothing in it is read.
    async fn pass_through(&self, request: Request<Incoming>, host: &str, port: u16, place: Place) -> Answer {
        let connected = match timeout(HEAD, TcpStream::connect((host, port))).await {
            Ok(connected) => connected.map_err(|error| error.to_string()),
            Err(_) => Err("no answer".to_owned()),
        };
        let mut server = match connected {
            Ok(server) => server,
            Err(wrong) => {
                (self.say)(&format!("{host}:{port}: not passed through: {wrong}"));
                return answer(StatusCode::BAD_GATEWAY, &format!("{host}:{port}: {wrong}\n"));
            }
        };
        self.tell_of_passing(host);
        spawn_local(async move {
            let _place = place;
            let Ok(upgraded) = hyper::upgrade::on(request).await else { return };
            // A connection that breaks is the business of its ends.
            let _ = copy_bidirectional(&mut TokioIo::new(upgraded), &mut server).await;
        });
        answer(StatusCode::OK, "")
    }

    /// Returns `true` if a host and port lead to this proxy, by whatever name.
    async fn is_own(&self, host: &str, port: u16) -> bool {
        if port != self.address.port() {
            return false;
        }
        let Ok(mut found) = lookup_host((host, port)).await else { return false };
        found.any(|address| {
            let ip = address.ip().to_canonical();
            // The unspecified address leads to loopback.
            ip == self.address.ip() || ip.is_unspecified()
        })
    }

    fn loops(&self, host: &str) -> Answer {
        (self.say)(&format!("{host}:{}: refused: this is the proxy itself", self.address.port()));
        answer(StatusCode::LOOP_DETECTED, "This is the recording proxy itself.\n")
    }

    fn tell_of_passing(&self, host: &str) {
        self.tell_once(Once::PassedThrough, host, || format!("passed through: {host}"));
    }

    fn tell_once(&self, event: Once, host: &str, text: impl FnOnce() -> String) {
        let mut told = self.told.borrow_mut();
        if told.len() < MOST_HOSTS && told.insert((event, host.to_owned())) {
            let end = if told.len() < MOST_HOSTS { "" } else { "; further hosts are not told" };
            (self.say)(&format!("{}{end}", text()));
        }
    }

    async fn accept_tls<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        host: &str,
    ) -> Result<tokio_rustls::server::TlsStream<S>, ()> {
        let told = |wrong: String| {
            self.tell_once(Once::Refused, host, || {
                format!("{host}: not recorded: {wrong}: does the client trust this proxy's certificate?")
            });
        };
        let acceptor = LazyConfigAcceptor::new(rustls::server::Acceptor::default(), stream);
        let start = acceptor.await.map_err(|error| told(format!("no TLS in the tunnel ({error})")))?;
        let name = plain(start.client_hello().server_name().unwrap_or(host));
        let config = self.authority.borrow_mut().server_config(&name, clock::unix()).map_err(told)?;
        start.into_stream(config).await.map_err(|error| told(error.to_string()))
    }

    /// Passes a request on, and the response back, unrecorded.
    async fn pass_on(&self, request: Request<Incoming>, target: Uri) -> Result<Answer, String> {
        let (head, body) = request.into_parts();
        let mut forwarded = Request::new(Passing::new(body, 0, &self.room));
        (*forwarded.method_mut(), *forwarded.uri_mut()) = (head.method, target);
        *forwarded.headers_mut() = passed_on(&head.headers);
        forwarded.headers_mut().remove(HOST);
        let response = self.client.request(forwarded).await.map_err(|error| because(&error))?;
        let (head, body) = response.into_parts();
        let mut answer = Response::new(body.boxed_unsync());
        (*answer.status_mut(), *answer.headers_mut()) = (head.status, passed_on(&head.headers));
        Ok(answer)
    }

    /// Passes a request on, and the response back.
    async fn exchange(&self, request: Request<Incoming>, target: Uri, url: &str) -> Result<Answer, String> {
        let (since, started) = (clock::monotonic(), clock::unix());
        let (head, body) = request.into_parts();
        let sent = passed_on(&head.headers);
        let mut forwarded = Request::new(Passing::new(body, self.most_body, &self.room));
        let request_body = forwarded.body().kept();
        (*forwarded.method_mut(), *forwarded.uri_mut()) = (head.method.clone(), target);
        *forwarded.headers_mut() = sent.clone();
        // The client of hyper makes it of the URL.
        forwarded.headers_mut().remove(HOST);
        // Compressed bodies could not be read in the recording.
        let identity = HeaderValue::from_static("identity");
        forwarded.headers_mut().insert(HeaderName::from_static("accept-encoding"), identity);
        let response = self.client.request(forwarded).await.map_err(|error| because(&error))?;
        let waited = clock::monotonic().since(since);
        let (response_head, body) = response.into_parts();
        let received = passed_on(&response_head.headers);
        let status = response_head.status;
        if self.recording.lock().unwrap_or_else(PoisonError::into_inner).left_out() > 0 {
            self.tell_once(Once::Full, "", || {
                let most = MOST_RECORDED >> 20;
                format!("the recording is full ({most} MiB): what passes now is not recorded")
            });
        }
        (self.say)(&format!("{} {} {url}", status.as_u16(), head.method));
        let passing = Passing::new(body, self.most_body, &self.room);
        let response_body = passing.kept();
        let (recording, method, fields) = (Arc::clone(&self.recording), head.method, received.clone());
        let url = url.to_owned();
        let passing = passing.then(move || {
            let (request, response) = (take(&request_body), take(&response_body));
            recording.lock().unwrap_or_else(PoisonError::into_inner).push(Exchange {
                started,
                waited,
                took: clock::monotonic().since(since),
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
    if !text.is_empty() {
        // In the place of a server's answer, with what a page asked for in it: a browser is not to guess.
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, plain);
        let nosniff = HeaderValue::from_static("nosniff");
        response.headers_mut().insert(HeaderName::from_static("x-content-type-options"), nosniff);
    }
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

#[cfg(test)]
mod tests;
