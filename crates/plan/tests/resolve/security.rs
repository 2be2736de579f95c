//! TLS files: read, checked and named in errors.

use rcgen::{CertificateParams, KeyPair};

use crate::resolve::flags::{Memory, resolve_with};

const URL: &str = "https://a.test/";

/// `ca.pem`, `cert.pem`, `key.pem`, `both.pem` and files that are something else.
fn files() -> Memory {
    let pair = || KeyPair::generate().expect("a key pair");
    let key = pair();
    let params = CertificateParams::new(vec!["a.test".to_owned()]).expect("a host name");
    let certificate = params.self_signed(&key).expect("a certificate");
    let other = pair().serialize_pem();
    let (certificate, key) = (certificate.pem(), key.serialize_pem());
    Memory(
        [
            ("ca.pem", certificate.clone().into_bytes()),
            ("both.pem", format!("{certificate}{key}").into_bytes()),
            ("cert.pem", certificate.into_bytes()),
            ("key.pem", key.into_bytes()),
            ("other-key.pem", other.into_bytes()),
            ("empty.pem", Vec::new()),
            ("garbage.pem", b"-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n".to_vec()),
        ]
        .into(),
    )
}

#[test]
fn a_server_name_comes_from_the_url_or_the_flag() {
    let name = |line: &[&str]| {
        let plan = resolve_with(line, &files()).unwrap();
        plan.targets[0].tls.as_ref().unwrap().server_name.clone()
    };
    assert_eq!(name(&["https://A.test/", "--insecure"]), "a.test");
    assert_eq!(name(&["https://[::1]/", "--insecure"]), "::1");
    assert_eq!(name(&[URL, "--cacert", "ca.pem", "--sni", "Other.test"]), "other.test");
}

#[test]
fn certificates_and_keys_in_one_file_or_two() {
    for line in [
        &["--cert", "cert.pem", "--key", "key.pem"][..],
        &["--cert", "both.pem"],
        &["--tls", "1.2"],
        &["--tls", "1.3"],
    ] {
        let line = [&[URL, "--cacert", "ca.pem"], line].concat();
        resolve_with(&line, &files()).unwrap_or_else(|problems| panic!("{line:?}: {problems}"));
    }
    // Only the https target speaks TLS.
    let mixed = resolve_with(&["http://a.test/", URL, "--insecure"], &files()).unwrap();
    assert_eq!(mixed.targets.iter().map(|target| target.tls.is_some()).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn unusable_files_are_refused() {
    for (line, words) in [
        (&["--cacert", "missing.pem"][..], "--cacert: cannot read `missing.pem`"),
        (&["--cacert", "empty.pem"], "--cacert: `empty.pem` holds no certificate in PEM format"),
        (&["--cacert", "garbage.pem"], "--cacert: `garbage.pem` is not valid PEM"),
        (&["--insecure", "--cert", "cert.pem"], "`cert.pem` has no private key"),
        (&["--insecure", "--key", "key.pem"], "--key needs --cert"),
        (
            &["--insecure", "--cert", "cert.pem", "--key", "empty.pem"],
            "--key: `empty.pem` holds no private key",
        ),
        (
            &["--insecure", "--cert", "empty.pem", "--key", "key.pem"],
            "--cert: `empty.pem` holds no certificate",
        ),
        (&["--insecure", "--cert", "cert.pem", "--key", "other-key.pem"], "do not go together"),
        (&["--insecure", "--cacert", "ca.pem"], "--cacert has no effect with --insecure"),
        (&["--insecure", "--tls", "1.1"], "`1.1` is not one of 1.2, 1.3"),
        (&["--insecure", "--sni", "a b"], "`a b` is not a host name"),
        (&["--insecure", "--key-log", "/x"], "SSLKEYLOGFILE: cannot open `/x`"),
    ] {
        let line = [&[URL], line].concat();
        let problems = resolve_with(&line, &files()).unwrap_err().to_string();
        assert!(problems.contains(words), "{line:?}: {problems}");
        assert_eq!(problems.lines().count(), 1, "{line:?}: {problems}");
    }
}

#[test]
fn both_missing_files_are_reported_together() {
    let line = [URL, "--cacert", "a", "--cert", "b", "--key", "c"];
    let problems = resolve_with(&line, &files()).unwrap_err();
    assert_eq!(problems.iter().count(), 3, "{problems}");
}

#[test]
fn what_the_configuration_is_built_from_is_in_the_fingerprint() {
    let files = files();
    let print = |line: &[&str]| {
        let line = [&[URL], line].concat();
        resolve_with(&line, &files).unwrap().fingerprint()
    };
    let lines: [&[&str]; 6] = [
        &["--insecure"],
        &["--cacert", "ca.pem"],
        &["--cacert", "ca.pem", "--tls", "1.2"],
        &["--cacert", "ca.pem", "--tls", "1.3"],
        &["--cacert", "ca.pem", "--cert", "both.pem"],
        &["--cacert", "ca.pem", "--sni", "b"],
    ];
    for (index, line) in lines.iter().enumerate() {
        assert_eq!(print(line), print(line));
        for other in &lines[..index] {
            assert_ne!(print(line), print(other), "{line:?} {other:?}");
        }
    }
}
