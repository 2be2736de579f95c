//! Calibration from the command line, and its mention in later runs.

use std::path::PathBuf;
use std::process::Output;

use plimsoll_testkit::{machine, verdict};
use serde_json::Value;

use super::bench::{Server, plimsoll};

/// A folder of data of one test, gone with it.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("plimsoll-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the temporary folder can be written to");
        Self(path)
    }

    fn plimsoll(&self, args: &[&str]) -> Output {
        plimsoll(args).env("XDG_DATA_HOME", &self.0).output().expect("the binary was built")
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.plimsoll(args);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{args:?}: {error}"))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // It is in the temporary folder anyway.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn runs_state_how_much_of_the_calibrated_limit_they_used() {
    let _turn = machine::quiet();
    let home = Home::new("calibrate");
    let sink = Server::start(&["sink"]);
    let url = format!("http://{}/", sink.address);
    let closed = ["run", &url, "-c", "8", "-d", "300ms", "-o", "json", "--quiet"];
    let before = home.json(&closed);
    assert_eq!(before["generator"]["calibration"], Value::Null);

    let calibration = home.json(&["calibrate", "-d", "200ms", "-o", "json", "--quiet"]);
    let cells = calibration["cells"].as_array().expect("there are cells");
    for (protocol, tls, script) in
        [("http/1.1", false, false), ("http/1.1", true, false), ("h2", false, true), ("h2", true, false)]
    {
        let same = |cell: &&Value| {
            let load = &cell["load"];
            load["protocol"] == protocol && load["tls"] == tls && load["script"] == script
        };
        let cell = cells.iter().find(same).unwrap_or_else(|| panic!("no {protocol} {tls} {script}"));
        assert!(cell["limit_per_s"].as_f64().is_some_and(|limit| limit > 1_000.0), "{cell:#}");
    }
    let kept = std::fs::read(home.0.join("plimsoll/calibration.json")).expect("it was kept");
    assert_eq!(serde_json::from_slice::<Value>(&kept).expect("it is JSON"), calibration);

    let after = home.json(&closed);
    let used = &after["generator"]["calibration"];
    let (limit, share) = (used["limit_per_s"].as_f64().unwrap(), used["used_share"].as_f64().unwrap());
    let achieved = after["rate"]["achieved_per_s"].as_f64().unwrap();
    assert!((share - achieved / limit).abs() < 1e-9, "{used:#}");
    assert_eq!((&used["load"]["protocol"], &used["of_this_plan"]), (&"http/1.1".into(), &false.into()));
    let warned = after["verdict"]["warnings"].as_array().unwrap();
    assert_eq!(warned.iter().any(|warning| warning["code"] == "calibrated_limit"), share > 0.5);

    // A calibration of HTTP says nothing of other protocols, and doing it again would not change that.
    let server = Server::start(&["target", "cache", "--http", "127.0.0.1:0"]);
    let cache = home.plimsoll(&["cache", "--server", &server.address, "-n", "1000", "-c", "1"]);
    let error = String::from_utf8_lossy(&cache.stderr);
    assert!(verdict::ran(cache.status.code()) && !error.contains("calibrat"), "{error}");
}

#[test]
fn a_calibration_of_another_version_is_not_used() {
    let _turn = machine::load();
    let home = Home::new("recalibrate");
    let path = home.0.join("plimsoll");
    std::fs::create_dir_all(&path).unwrap();
    std::fs::write(path.join("calibration.json"), "{\"schema_version\": 99}").unwrap();
    let sink = Server::start(&["sink"]);
    let run = home.plimsoll(&["run", &format!("http://{}/", sink.address), "-n", "10", "-c", "1"]);
    let error = String::from_utf8_lossy(&run.stderr);
    assert!(error.contains("run `plimsoll calibrate` again"), "{error}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let home = Home::new("calibrate-wrong");
    for (args, message) in [
        (["calibrate", "-d", "1ms"], "give each run 200ms at least"),
        (["calibrate", "-d", "x"], "--duration"),
        (["calibrate", "--backend", "kqueue"], "is not one of auto, epoll, uring"),
        (["calibrate", "-o", "csv"], "a calibration has no CSV"),
    ] {
        let output = home.plimsoll(&args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        assert!(error.contains(message), "{args:?}: {error}");
    }
}
