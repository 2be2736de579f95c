//! Tokens that are signed here, against a server that believes none of them.

use std::sync::Arc;
use std::sync::Mutex;

use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::hmac;
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use plimsoll_system::clock;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::loopback::process::{Folder, run};
use plimsoll_testkit::sink_log::{account, assert_balance};

/// Key by which the server verifies tokens.
enum Verifier {
    Hmac(Box<hmac::Key>),
    Rsa(UnparsedPublicKey<Vec<u8>>),
}

/// A server that answers 401 to a request without a token, with a wrong one, and with one that is not valid
/// now.
struct Guarded {
    runtime: Option<Runtime>,
    url: String,
    /// Different tokens that were accepted, in the order in which they came.
    tokens: Arc<Mutex<Vec<String>>>,
}

impl Guarded {
    fn start(verifier: Verifier) -> Self {
        let builder = &mut tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_io().build().expect("a thread can be started");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let (verifier, tokens) = (Arc::new(verifier), Arc::new(Mutex::new(Vec::new())));
        let accepted = Arc::clone(&tokens);
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (verifier, accepted) = (Arc::clone(&verifier), Arc::clone(&accepted));
                tokio::spawn(async move {
                    let service = service_fn(|request| {
                        let status = answer(&request, &verifier, &accepted);
                        let response = Response::builder().status(status).body(Full::new(Bytes::from("{}")));
                        async move { response }
                    });
                    // A client that goes away is the test's business.
                    let _ = Builder::new(TokioExecutor::new())
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Self { runtime: Some(runtime), url, tokens }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn answer(request: &Request<Incoming>, verifier: &Verifier, accepted: &Mutex<Vec<String>>) -> u16 {
    let field = request.headers().get("authorization").and_then(|value| value.to_str().ok());
    let token = field.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    if claims(token, verifier).is_none() {
        return 401;
    }
    let mut accepted = accepted.lock().expect("nobody has failed");
    if accepted.iter().all(|known| known != token) {
        accepted.push(token.to_owned());
    }
    200
}

/// The claims of a token whose signature is right, and that is valid now.
fn claims(token: &str, verifier: &Verifier) -> Option<Value> {
    let decoded = |text: &str| BASE64_URL_SAFE_NO_PAD.decode(text).ok();
    let (input, signature) = token.rsplit_once('.')?;
    let signature = decoded(signature)?;
    match verifier {
        Verifier::Hmac(key) => hmac::verify(key, input.as_bytes(), &signature).ok()?,
        Verifier::Rsa(key) => key.verify(input.as_bytes(), &signature).ok()?,
    }
    let claims: Value = serde_json::from_slice(&decoded(input.split_once('.')?.1)?).ok()?;
    let now = clock::unix().0 / 1_000_000_000;
    let is_valid = claims["iat"].as_u64()? <= now && now < claims["exp"].as_u64()?;
    is_valid.then_some(claims)
}

#[test]
fn a_token_is_signed_again_before_it_expires() {
    let rsa = KeyPair::generate(KeySize::Rsa2048).expect("a key");
    let der: Pkcs8V1Der<'_> = rsa.as_der().expect("it has a form");
    let pem = BASE64_STANDARD.encode(der.as_ref());
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{pem}\n-----END PRIVATE KEY-----\n");
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, rsa.public_key().as_ref().to_vec());
    let hmac_key = hmac::Key::new(hmac::HMAC_SHA256, b"topsecret");
    for (verifier, key, algorithm) in [
        (Verifier::Hmac(Box::new(hmac_key)), "topsecret\n", "HS256"),
        (Verifier::Rsa(public), pem.as_str(), "RS256"),
    ] {
        let (server, folder) = (Guarded::start(verifier), Folder::new());
        let key_file = folder.write("key", key);
        let flags = format!(
            "--auth jwt --jwt-key {key_file} --jwt-alg {algorithm} --jwt-claims {{\"sub\":\"load\"}}"
        );
        let load = "--http2 -c 2 --rate 300 -t 1 -d 5s --jwt-lifetime 2s -o json";
        let finished = run(&format!("run {}/ {flags} {load}", server.url));
        let result = finished.result();
        assert_balance(&result);
        assert_eq!(
            (account(&result, "ok"), account(&result, "failed")),
            (1_500, 0),
            "{}",
            result["error_examples"]
        );
        // 5 s in parts of 0.5 to 1.5 s, and that of the request before the run.
        let tokens = server.tokens.lock().expect("nobody has failed");
        assert!((4..=12).contains(&tokens.len()), "{}", tokens.len());
        let written = format!("{}{}", finished.stdout, finished.stderr);
        assert!(!written.contains("topsecret") && !written.contains("eyJ"), "{written}");
    }
}

#[test]
fn a_token_for_each_user_names_the_user() {
    let verifier = || Verifier::Hmac(Box::new(hmac::Key::new(hmac::HMAC_SHA256, b"topsecret")));
    let (server, folder) = (Guarded::start(verifier()), Folder::new());
    folder.write("key", "topsecret");
    let plan = folder.write(
        "plan.yaml",
        "tokens: {api: {key: key, claims: {role: tester}}}\n\
         scenarios:\n\
         - variables: {user: '${sequence}'}\n\
         \x20 steps:\n\
         \x20 - get: URL/\n\
         \x20   headers: {authorization: \"Bearer ${token(api,'user-${user}')}\"}\n"
            .replace("URL", &server.url),
    );
    let result = run(&format!("run {plan} --http2 -c 2 -n 50 -o json --no-preflight")).result();
    assert_eq!(account(&result, "ok"), 50, "{}", result["error_examples"]);
    let tokens = server.tokens.lock().expect("nobody has failed");
    let mut users: Vec<String> = tokens
        .iter()
        .map(|token| {
            claims(token, &verifier()).expect("it was accepted")["sub"].as_str().expect("a text").to_owned()
        })
        .collect();
    users.sort();
    let mut wanted: Vec<String> = (0..50).map(|user| format!("user-{user}")).collect();
    wanted.sort();
    assert_eq!(users, wanted);
}
