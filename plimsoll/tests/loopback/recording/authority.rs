//! The authority of `plimsoll record`, and the files that it leaves.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use plimsoll_testkit::skip;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair};

use super::Recorder;
use crate::loopback::process::{Folder, Process, plimsoll};
use crate::loopback::sink::Sink;

fn mode(path: impl AsRef<Path>) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o7777
}

fn set_mode(path: impl AsRef<Path>, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
}

fn read(path: &str) -> String {
    fs::read_to_string(path).expect("it is there")
}

/// Starts a proxy and ends it at once: everything that it told.
fn started(folder: &Folder, ca: &str, flags: &str) -> String {
    let plan = folder.file("plan.yaml");
    let process = Process::start(plimsoll(&format!("record {plan} --listen 127.0.0.1:0 --ca {ca} {flags}")));
    let mut process = process;
    if process.stderr.find("listening on ").is_some() {
        process.signal("INT");
    }
    let finished = process.finish();
    assert_eq!(finished.code, Some(1), "nothing was recorded: {}", finished.stderr);
    finished.stderr
}

/// Writes a certificate that is its own issuer, valid from 1975 to 4096, and its key.
fn write_authority(name: &str, certificate: &str, key: &str) {
    let pair = KeyPair::generate().expect("there are random numbers");
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    let made = params.self_signed(&pair).expect("it can be signed");
    fs::write(certificate, made.pem()).expect("it can be written");
    fs::write(key, pair.serialize_pem()).expect("it can be written");
    set_mode(key, 0o600);
}

#[test]
fn all_that_is_recorded_or_made_is_for_its_owner_alone() {
    let sink = Sink::start("");
    let recorder = Recorder::start("--no-think");
    let file = |name: &str| recorder.folder.file(name);
    // What was there could be read by all, and the plan has a second name.
    for (name, before) in [("plan.yaml", 0o644), ("session.har", 0o666), ("plan-body-1.bin", 0o777)] {
        fs::write(file(name), "before").expect("it can be written");
        set_mode(file(name), before);
    }
    fs::hard_link(file("plan.yaml"), file("again.yaml")).expect("a second name");
    let url = format!("http://{}/x", sink.endpoint);
    recorder.curl(&["--data-binary", "@/bin/true", &url]);
    let (folder, _, _) = recorder.end();
    for name in ["plan.yaml", "again.yaml", "session.har", "plan-body-1.bin", "ca/ca.key", "ca/ca.pem"] {
        let path = folder.file(name);
        assert_eq!(mode(&path), 0o600, "{name}");
        assert_ne!(fs::read(&path).expect("it is there"), b"before", "{name}");
    }
    assert_eq!(mode(folder.file("ca")), 0o700);
}

#[test]
fn a_folder_of_authorities_is_closed_and_one_of_something_else_is_left_as_it_is() {
    let folder = Folder::new();
    let ca = folder.file("ca");
    fs::create_dir(&ca).expect("it can be made");
    set_mode(&ca, 0o777);
    started(&folder, &ca, "");
    assert_eq!(mode(&ca), 0o700);
    set_mode(&ca, 0o755);
    started(&folder, &ca, "");
    assert_eq!(mode(&ca), 0o700);
    // With other files in it, it is the folder of something else.
    folder.write("ca/notes.txt", "");
    set_mode(&ca, 0o755);
    started(&folder, &ca, "");
    assert_eq!(mode(&ca), 0o755);
    set_mode(&ca, 0o777);
    let told = started(&folder, &ca, "");
    assert!(told.contains("others could put an authority of theirs there"), "{told}");
}

#[test]
fn an_authority_for_two_millennia_is_made_anew_and_told_once() {
    let folder = Folder::new();
    let ca = folder.file("ca");
    fs::create_dir(&ca).expect("it can be made");
    let (certificate, key) = (format!("{ca}/ca.pem"), format!("{ca}/ca.key"));
    write_authority("Plimsoll recording proxy of this machine", &certificate, &key);
    let old = [read(&certificate), read(&key)];
    let told = started(&folder, &ca, "");
    let anew = "ca.pem is made anew, because it is of an older version, and valid until 4096-01-01: let \
                clients trust the new one, and not the old one";
    assert!(told.contains(anew), "{told}");
    let made = [read(&certificate), read(&key)];
    assert!(made[0] != old[0] && made[1] != old[1]);
    let told = started(&folder, &ca, "");
    assert!(!told.contains("made anew"), "{told}");
    assert_eq!([read(&certificate), read(&key)], made);
    // A key that others could read is no secret.
    set_mode(&key, 0o644);
    let told = started(&folder, &ca, "");
    assert!(told.contains("because others could read its key"), "{told}");
    assert!(mode(&key) == 0o600 && read(&key) != made[1]);
    // Removed, as the guide advises.
    fs::remove_file(&key).expect("it is there");
    let told = started(&folder, &ca, "");
    assert!(told.contains("because its key cannot be read"), "{told}");
}

#[test]
fn authorities_and_keys_of_others_are_left_alone() {
    let folder = Folder::new();
    let ca = folder.file("ca");
    fs::create_dir(&ca).expect("it can be made");
    let (certificate, key) = (format!("{ca}/ca.pem"), format!("{ca}/ca.key"));
    write_authority("Root of a company", &certificate, &key);
    let before = [read(&certificate), read(&key)];
    let told = started(&folder, &ca, "");
    assert!(
        told.contains("it is no certificate of this program") && told.contains("hint: name a folder"),
        "{told}"
    );
    assert_eq!([read(&certificate), read(&key)], before);
    fs::remove_file(&certificate).expect("it is there");
    let told = started(&folder, &ca, "");
    assert!(told.contains("there is no certificate of this key"), "{told}");
    assert_eq!(read(&key), before[1]);
}

/// Has `openssl` carry out a command: its success, and its output.
fn openssl(args: &[&str]) -> (bool, String) {
    let output = Command::new("openssl").args(args).output().expect("it was there before");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// Signs a certificate by an authority on purpose, whatever it is for, and has `openssl` verify it.
fn forge(folder: &Folder, ca: &str, subject: &str, names: Option<&str>) -> (bool, String) {
    let (key, request, leaf) = (folder.file("leaf.key"), folder.file("leaf.csr"), folder.file("leaf.pem"));
    let ca_key = ca.replace(".pem", ".key");
    let asked = ["req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    let names = names.map(|names| format!("subjectAltName={names}"));
    let names: Vec<&str> = names.iter().flat_map(|names| ["-addext", names.as_str()]).collect();
    let made =
        openssl(&[&asked[..], &["-keyout", &key, "-out", &request, "-subj", subject], &names[..]].concat());
    assert!(made.0, "{}", made.1);
    let sign = ["x509", "-req", "-in", &request, "-out", &leaf, "-days", "1", "-set_serial", "77"];
    let made = openssl(&[&sign[..], &["-CA", ca, "-CAkey", &ca_key, "-copy_extensions", "copy"]].concat());
    assert!(made.0, "{}", made.1);
    openssl(&["verify", "-purpose", "sslserver", "-CAfile", ca, &leaf])
}

#[test]
fn with_host_other_hosts_pass_through_and_the_key_signs_for_none_of_them() {
    let sink = Sink::start("--self-signed");
    let recorder =
        Recorder::start("-k --no-think --host 127.0.0.1 --host api.example.test --host *.shop.test");
    let folder = recorder.folder.file("ca");
    let files = fs::read_dir(&folder).expect("it was made").map(|entry| entry.expect("an entry").path());
    let files: Vec<String> = files.map(|path| path.display().to_string()).collect();
    let ca = files.iter().find(|path| path.ends_with(".pem")).expect("a certificate").clone();
    assert!(files.len() == 2 && ca.contains("/ca-"), "{files:?}");
    let port = sink.endpoint.rsplit(':').next().expect("a port");
    let answer = recorder.curl(&["--cacert", &ca, &format!("https://127.0.0.1:{port}/recorded")]);
    assert!(answer.contains("200"), "{answer}");
    for _ in 0..2 {
        // The certificate is that of the server, which the authority did not sign.
        let url = format!("https://localhost:{port}/passed");
        assert!(recorder.curl(&["--insecure", &url]).contains("200"));
        let mut strict = Command::new("curl");
        strict.args(["--silent", "--noproxy", "", "--proxy", &format!("http://{}", recorder.proxy)]);
        let status = strict.args(["--cacert", &ca, &url]).status().expect("curl is installed");
        assert!(!status.success());
    }
    let (folder, plan, told) = recorder.end();
    assert_eq!(told.matches("passed through: localhost").count(), 1, "{told}");
    assert!(
        told.contains("recorded: 127.0.0.1, api.example.test, *.shop.test; other hosts pass through"),
        "{told}"
    );
    let written = read(&plan);
    assert!(written.contains("/recorded") && !written.contains("/passed"), "{written}");

    if Command::new("openssl").arg("version").output().is_err() {
        skip::without_program("openssl");
        return;
    }
    let (_, text) = openssl(&["x509", "-in", &ca, "-noout", "-text"]);
    for part in [
        "X509v3 Name Constraints: critical",
        "DNS:api.example.test",
        "DNS:shop.test",
        "IP:127.0.0.1/255.255.255.255",
        "TLS Web Server Authentication",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Seconds of 364 and of 366 days.
    assert!(openssl(&["x509", "-in", &ca, "-noout", "-checkend", "31449600"]).0, "{text}");
    assert!(!openssl(&["x509", "-in", &ca, "-noout", "-checkend", "31622400"]).0, "{text}");
    for (subject, names, holds) in [
        ("/CN=api.example.test", Some("DNS:api.example.test"), true),
        ("/CN=a", Some("DNS:a.shop.test"), true),
        ("/CN=a", Some("IP:127.0.0.1"), true),
        ("/CN=a", Some("DNS:evil.test"), false),
        ("/CN=a", Some("DNS:api.example.test,DNS:evil.test"), false),
        ("/CN=a", Some("IP:10.0.0.1"), false),
        ("/CN=a", Some("IP:::1"), false),
        ("/CN=evil.test", None, false),
    ] {
        let (verified, said) = forge(&folder, &ca, subject, names);
        assert_eq!(verified, holds, "{subject} {names:?}: {said}");
        assert!(holds || said.contains("subtree violation"), "{subject} {names:?}: {said}");
    }
    // Another set of names has an authority of its own, and this one stays as it is.
    let before = read(&ca);
    let all = folder.file("ca");
    let told = started(&folder, &all, "--host api.example.test");
    assert!(!told.contains("made anew"), "{told}");
    let told = started(&folder, &all, "--host *.SHOP.test --host api.example.test --host 127.0.0.1");
    assert!(told.contains(&ca) && !told.contains("made anew"), "{told}");
    assert_eq!(read(&ca), before);
}

#[test]
fn what_is_no_host_is_refused() {
    let folder = Folder::new();
    let plan = folder.file("plan.yaml");
    let refused = Process::start(plimsoll(&format!("record {plan} --host https://a.test"))).finish();
    refused.assert_refused(2, "--host: `https://a.test` is no name of a host");
}

#[test]
fn tokens_in_urls_are_not_told() {
    // A status that is noted.
    let sink = Sink::start("--status 404");
    let recorder = Recorder::start("--no-think");
    recorder.curl(&[&format!("http://{}/x?page=7&access_token=hidden1", sink.endpoint)]);
    let answer = recorder.curl(&["http://127.0.0.1:1/?password=hidden2"]);
    assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
    let (_folder, plan, told) = recorder.end();
    assert!(told.contains("404 GET http://") && told.contains("`/x?page=7&access_token=***`"), "{told}");
    assert!(told.contains("password=***") && !told.contains("hidden"), "{told}");
    assert!(read(&plan).contains("hidden1"), "the plan has what was sent");
}
