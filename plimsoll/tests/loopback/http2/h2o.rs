//! h2o: without TLS and by ALPN.

use crate::loopback::backends::on_each;
use crate::loopback::foreign::Certificate;
use crate::loopback::process::Folder;
use plimsoll_testkit::sink_log::{account, count, delivered, errors};

use super::{Server, assert_all_ok, http2};

const FILE_BYTES: u64 = 300_000;

fn h2o() -> Option<Server> {
    let prepare = |folder: &Folder, plain: &str, tls: &str, certificate: &Certificate| {
        folder.write("index.html", "hello");
        folder.write("file.html", vec![b'x'; FILE_BYTES as usize]);
        vec!["-c".to_owned(), folder.write("h2o.conf", configuration(folder, plain, tls, certificate))]
    };
    Server::start("h2o", prepare, |process| process.stderr.find("is ready to serve requests"))
}

fn configuration(folder: &Folder, plain: &str, tls: &str, files: &Certificate) -> String {
    let listen = |address: &str| {
        let (host, port) = address.rsplit_once(':').expect("an address has a port");
        format!("host: {host}, port: {port}")
    };
    let (plain, tls, root) = (listen(plain), listen(tls), folder.path().display());
    let Certificate { certificate, key } = files;
    let tls = format!(
        "{tls}, ssl: {{ certificate-file: {certificate}, key-file: {key}, ocsp-update-interval: 0 }}"
    );
    // A key may stand twice in this format.
    format!(
        "num-threads: 1\n\
         listen: {{ {plain} }}\n\
         listen: {{ {tls} }}\n\
         access-log: {{ path: {root}/access.log, format: \"%H %s %m\" }}\n\
         hosts:\n  default:\n    paths:\n      \"/\": {{ file.dir: {root} }}\n      \
         \"/moved\": {{ redirect: {{ status: 302, url: \"/\" }} }}\n"
    )
}

#[test]
fn its_log_has_what_we_count() {
    on_each(|backend| {
        let Some(h2o) = h2o() else { return };
        let at =
            |path: &str, load: &str| http2(&format!("http://{}{path} {load} --backend {backend}", h2o.plain));
        let usual = at("/", "-n 4000 -c 8 -m 16");
        assert_all_ok(&usual, 4_000, 8);
        let file = at("/file.html", "-n 100 -c 2 -m 8");
        assert_all_ok(&file, 100, 2);
        let received = count(&file, "/bytes/received");
        assert!(received > 100 * FILE_BYTES && received < 101 * FILE_BYTES, "{received}");
        let missing = at("/missing", "-n 100 -c 2 -m 8");
        assert_eq!(errors(&missing, "status_4xx"), 100, "{}", missing["errors"]);
        let followed = at("/moved", "-n 100 -c 2 -m 8 --follow-redirects");
        assert_eq!((account(&followed, "ok"), account(&followed, "redirects_followed")), (100, 100));
        let open = at("/", "--rate 500 -d 1s -c 2 -m 50");
        assert_all_ok(&open, 500, 2);
        let ca = &h2o.certificate.certificate;
        let tls = http2(&format!("https://{}/ -n 1000 -c 4 -m 8 --cacert {ca} --backend {backend}", h2o.tls));
        assert_all_ok(&tls, 1_000, 4);
        let runs = [usual, file, missing, followed, open, tls];
        let (_, log) = h2o.stop("access.log");
        assert_eq!(log.lines().count() as u64, runs.iter().map(delivered).sum::<u64>());
        assert!(log.lines().all(|line| line.starts_with("HTTP/2 ")), "{log}");
    });
}
