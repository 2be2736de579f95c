//! A minimal server on hyper, for the board of servers (`bench/scripts/board.py`): every request is answered
//! with `ok`. Without TLS the first bytes choose the protocol, with TLS ALPN does.
//!
//! `hyper ADDRESS [CERTIFICATE.pem KEY.pem]`

#![deny(unsafe_code)]

use std::convert::Infallible;
use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// The first bytes of an HTTP/2 connection (RFC 9113, section 3.4).
const HTTP2_START: [u8; 3] = *b"PRI";

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (address, tls) = match args.as_slice() {
        [address] => (address, None),
        [address, certificate, key] => (address, Some(acceptor(certificate, key)?)),
        _ => return Err("usage: hyper ADDRESS [CERTIFICATE.pem KEY.pem]".into()),
    };
    tokio::runtime::Builder::new_current_thread().enable_io().build()?.block_on(serve(address, tls))
}

fn acceptor(certificate: &str, key: &str) -> Result<TlsAcceptor, Failure> {
    let chain = CertificateDer::pem_file_iter(certificate)?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(key)?;
    let mut config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key)?;
    config.alpn_protocols = ["h2", "http/1.1"].map(|name| name.as_bytes().to_vec()).to_vec();
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn serve(address: &str, tls: Option<TlsAcceptor>) -> Result<(), Failure> {
    let listener = TcpListener::bind(address).await?;
    writeln!(std::io::stderr(), "listening on {}", listener.local_addr()?)?;
    loop {
        let (stream, _) = listener.accept().await?;
        let tls = tls.clone();
        tokio::spawn(async move {
            // The client may end its connection in any way.
            let _ = connection(stream, tls).await;
        });
    }
}

async fn connection(stream: TcpStream, tls: Option<TlsAcceptor>) -> Result<(), Failure> {
    stream.set_nodelay(true)?;
    let Some(tls) = tls else {
        let mut start = HTTP2_START.map(|_| 0);
        stream.peek(&mut start).await?;
        return answer(stream, start == HTTP2_START).await;
    };
    let stream = tls.accept(stream).await?;
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    answer(stream, is_http2).await
}

async fn answer(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    is_http2: bool,
) -> Result<(), Failure> {
    let service = service_fn(|_: Request<hyper::body::Incoming>| async {
        Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"ok"))))
    });
    let stream = TokioIo::new(stream);
    match is_http2 {
        true => http2::Builder::new(TokioExecutor::new()).serve_connection(stream, service).await?,
        false => http1::Builder::new().serve_connection(stream, service).await?,
    }
    Ok(())
}
