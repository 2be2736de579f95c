//! Certificates as `openssl req -x509` makes them, and the message for each fault of TLS.

use plimsoll_testkit::skip;
use std::process::Command;

use crate::loopback::backends::on_each;
use crate::loopback::foreign::{Certificate, free_address, python};
use crate::loopback::process::{Folder, run};
use crate::loopback::sink::Sink;
use plimsoll_testkit::sink_log::{account, assert_balance, errors};

/// A certificate by `openssl`, with more arguments; `None` where there is no such program.
fn of_openssl(folder: &Folder, name: &str, more: &[&str]) -> Option<Certificate> {
    let file = |what: &str| folder.file(&format!("{name}-{what}.pem"));
    let made = Certificate { certificate: file("cert"), key: file("key") };
    let plain = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"];
    let files = ["-keyout", &made.key, "-out", &made.certificate];
    let mut openssl = Command::new("openssl");
    let output = openssl.args(plain).args(files).args(more).output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(made)
}

/// One whose time is over, which no `openssl req` makes.
fn expired(folder: &Folder) -> Certificate {
    let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    (params.not_before, params.not_after) =
        (rcgen::date_time_ymd(2020, 1, 1), rcgen::date_time_ymd(2021, 1, 1));
    let key = rcgen::KeyPair::generate().expect("a key");
    let certificate = params.self_signed(&key).expect("a certificate");
    Certificate {
        certificate: folder.write("old-cert.pem", certificate.pem()),
        key: folder.write("old-key.pem", key.serialize_pem()),
    }
}

const NAMES: [&str; 2] = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];

fn server(files: &Certificate) -> (Sink, String) {
    let Certificate { certificate, key } = files;
    let sink = Sink::start(&format!("--tls-cert {certificate} --tls-key {key}"));
    let port = sink.endpoint.rsplit(':').next().expect("a port").to_owned();
    let url = format!("https://localhost:{port}/");
    (sink, url)
}

#[test]
fn the_certificate_that_openssl_makes_is_trusted_when_it_is_given() {
    let folder = Folder::new();
    let Some(made) = of_openssl(&folder, "own", &NAMES) else {
        skip::without_program("openssl");
        return;
    };
    let (sink, url) = server(&made);
    let finished = run(&format!("{url} -4 -n 40 -c 4 -o json --cacert {}", made.certificate));
    assert_eq!(finished.result()["accounting"]["ok"], 40, "{finished:?}");
    // As it comes without `-addext`, with its name in the subject only.
    let plain = of_openssl(&folder, "plain", &[]).expect("there is openssl");
    let (nameless, of_plain) = server(&plain);
    let finished = run(&format!("{of_plain} -4 -n 40 -c 4 -o json --cacert {}", plain.certificate));
    assert_eq!(finished.result()["accounting"]["ok"], 40, "{finished:?}");
    drop(nameless.stop());
    // Another certificate of the same name is not accepted for it.
    let other = of_openssl(&folder, "other", &NAMES).expect("there is openssl");
    let refused = run(&format!("{url} -4 -n 40 -c 4 --cacert {}", other.certificate));
    refused.assert_refused(1, "it is signed by itself, and is not one that is trusted");
    drop(sink.stop());
}

#[test]
fn each_fault_of_tls_has_a_hint_of_its_own() {
    let folder = Folder::new();
    let Some(made) = of_openssl(&folder, "own", &NAMES) else {
        skip::without_program("openssl");
        return;
    };
    let (sink, url) = server(&made);
    let ca = &made.certificate;
    let said = |args: &str, message: &str, hint: &str| {
        let refused = run(&format!("{args} -4 -n 4 -c 1"));
        refused.assert_refused(1, message);
        assert!(refused.stderr.contains(&format!("hint: {hint}")), "{refused:?}");
    };
    said(&url, "it is signed by itself", "--cacert FILE with this very certificate trusts it");
    said(
        &format!("{url} --cacert {ca} --sni other.test"),
        "it is not for `other.test`, but for `localhost`",
        "write a URL with a name that it is for",
    );
    drop(sink.stop());
    let old = expired(&folder);
    let (sink, url) = server(&old);
    said(&format!("{url} --cacert {}", old.certificate), "it expired ", "renew it on the server");
    drop(sink.stop());
    let plain = Sink::start("");
    said(
        &format!("https://{}/", plain.endpoint),
        "the peer does not speak TLS on this port",
        "write http:// if this port is without TLS",
    );
    drop(plain.stop());
    said(&format!("https://{}/", free_address()), "", "is the server running, and is ");
}

/// Symptom: a server that crashed in the middle of a body without a length was healthy over TLS: all
/// responses were `ok`. Only close_notify tells such a body's end from a cut (RFC 9112 section 9.8).
#[test]
fn a_body_that_ends_with_the_connection_is_whole_only_after_close_notify() {
    let folder = Folder::new();
    let Some(made) = of_openssl(&folder, "own", &NAMES) else {
        skip::without_program("openssl");
        return;
    };
    on_each(|backend| {
        for (end, class) in [("cut", Some("tls_truncated")), ("notify", None)] {
            let arguments =
                ["-c", include_str!("hostile.py"), "until-close", &made.certificate, &made.key, end];
            let Some(mut server) = python(&arguments) else { return };
            let port = server.stdout.wait_for("").trim().to_owned();
            let load =
                format!("https://127.0.0.1:{port}/ -k -n 20 -c 4 --no-preflight -o json --backend {backend}");
            let result = run(&load).result();
            assert_balance(&result);
            let Some(class) = class else {
                assert_eq!(account(&result, "ok"), 20, "{}", result["errors"]);
                continue;
            };
            assert_eq!(errors(&result, class), 20, "{}", result["errors"]);
            let example = result["error_examples"][class].as_str().unwrap_or_default();
            assert!(example.contains("without TLS's close_notify"), "{example}");
        }
    });
}
