//! A session of a browser: login, a page with its configuration within a script, items by their ids.

use std::process::Command;

use plimsoll_testkit::skip;
use serde_json::{Value, json};

use super::Recorder;
use crate::loopback::foreign::{Certificate, balanced, python};
use crate::loopback::process::Folder;
use plimsoll_testkit::sink_log::account;

/// Opens a page in Chromium through the recorder, and returns the title that it ends with; `None` without
/// such a program.
fn browse(recorder: &Recorder, url: &str) -> Option<String> {
    let profile = recorder.folder.file("profile");
    let output = Command::new("chromium")
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--ignore-certificate-errors"])
        .arg(format!("--user-data-dir={profile}"))
        .arg(format!("--proxy-server=http://{}", recorder.proxy))
        // Time within the page: its timers run ahead, and it waits for what is in flight.
        .args(["--proxy-bypass-list=<-loopback>", "--virtual-time-budget=15000", "--dump-dom", url])
        .output();
    let Ok(output) = output else {
        skip::without_program("chromium");
        return None;
    };
    let page = String::from_utf8_lossy(&output.stdout).into_owned();
    let title = page.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
    let said = || String::from_utf8_lossy(&output.stderr).into_owned();
    Some(title.unwrap_or_else(|| panic!("{page}\n{}", said())).0.to_owned())
}

/// Symptom: the pattern of a value had another changing value in it, and requests that had followed the head
/// of another were sent beside it, so that no recording of such a page could be replayed.
#[test]
fn a_session_of_a_browser_replays_each_time() {
    let folder = Folder::new();
    let certificate = Certificate::new(&folder);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/loopback/recording/shop.py");
    for scheme in ["http", "https"] {
        let (mut arguments, trust) = (vec![script], if scheme == "https" { "-k" } else { "" });
        if !trust.is_empty() {
            arguments.extend([&*certificate.certificate, &certificate.key]);
        }
        let Some(mut shop) = python(&arguments) else { return };
        let port = shop.stdout.wait_for("");
        let url = format!("{scheme}://127.0.0.1:{port}");
        let recorder = Recorder::start("-k --no-think --expect-status --only 127.0.0.1");
        let Some(title) = browse(&recorder, &format!("{url}/")) else { return };
        let (_folder, plan, told) = recorder.end();
        assert_eq!(title, "done", "{told}");
        let written = std::fs::read_to_string(&plan).expect("there is a plan");
        // Once by the browser, and twenty times by the plan.
        let result = balanced(&format!("{plan} {trust} -n 20 -c 2"));
        let counts = counts_of(&url);
        let expected = json!({"created": 21, "read": 21, "deleted": 21, "left": 0, "refused": []});
        assert_eq!(counts, expected, "{scheme}: {written}");
        assert_eq!(account(&result, "ok"), 140, "{scheme}: {written}");
    }
}

fn counts_of(url: &str) -> Value {
    let curl = ["--silent", "--insecure", "--noproxy", "*"];
    let output =
        Command::new("curl").args(curl).arg(format!("{url}/counts")).output().expect("curl is there");
    serde_json::from_slice(&output.stdout).expect("it is JSON")
}
