//! h2spec against our sink: every rule that it knows, strict ones included.

use crate::backends::on_each;
use crate::foreign::Certificate;
use crate::process::Folder;
use crate::sink::Sink;

use super::clients::output;

/// Seconds that h2spec waits for an answer; it does so only where an answer is missing.
const PATIENCE_S: u32 = 5;

fn assert_conforms(sink: &Sink, flags: &str) -> Option<()> {
    let port = sink.endpoint.rsplit_once(':').expect("an address has a port").1;
    let report = output("h2spec", &format!("-S -h 127.0.0.1 -p {port} -o {PATIENCE_S} {flags}"))?;
    let totals = report.lines().last().unwrap_or_default();
    let figures: Vec<u32> =
        totals.split(", ").filter_map(|part| part.split(' ').next()?.parse().ok()).collect();
    let [tests, passed, skipped, failed] = figures[..] else { panic!("{report}") };
    assert_eq!((failed, passed + skipped), (0, tests), "{report}");
    assert!(tests > 100 && skipped <= 1, "{totals}");
    Some(())
}

#[test]
fn h2spec_finds_nothing() {
    let folder = Folder::new();
    let Certificate { certificate, key } = Certificate::new(&folder);
    on_each(|backend| {
        let plain = Sink::start(&format!("--backend {backend}"));
        if assert_conforms(&plain, "").is_none() {
            return;
        }
        let tls = Sink::start(&format!("--tls-cert {certificate} --tls-key {key} --backend {backend}"));
        assert_conforms(&tls, "-t -k");
    });
}
