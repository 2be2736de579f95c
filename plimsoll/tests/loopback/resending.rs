//! Requests that cross the close of a kept connection on their way are sent again.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::backends::on_each;
use super::foreign::balanced;
use super::process::run;
use plimsoll_testkit::sink_log::{account, delivered, errors};

/// Answers on a connection before it is closed.
const ANSWERS: u64 = 5;

/// A server that closes each connection after some answers, without a word, and with the next request read:
/// its URL, and the number of requests that it has read.
fn closing_in_silence() -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let seen = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&seen);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let count = Arc::clone(&count);
            std::thread::spawn(move || serve(stream, &count));
        }
    });
    (url, seen)
}

fn serve(mut stream: TcpStream, count: &AtomicU64) {
    let mut request = Vec::new();
    let mut answered = 0;
    let mut piece = [0; 4096];
    while let Ok(read @ 1..) = stream.read(&mut piece) {
        request.extend_from_slice(&piece[..read]);
        // The requests have no bodies, and come one at a time.
        if !request.ends_with(b"\r\n\r\n") {
            continue;
        }
        request.clear();
        count.fetch_add(1, Ordering::SeqCst);
        if answered == ANSWERS {
            return;
        }
        answered += 1;
        if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n").is_err() {
            return;
        }
    }
}

#[test]
fn requests_that_meet_the_end_of_their_connection_do_not_fail() {
    on_each(|backend| {
        let load = format!("-n 400 -c 4 --backend {backend}");
        let (url, seen) = closing_in_silence();
        let result = balanced(&format!("{url} {load}"));
        assert_eq!(account(&result, "ok"), 400, "{}", result["errors"]);
        let resent = account(&result, "resent");
        assert!((70..=80).contains(&resent), "{resent}");
        assert_eq!(account(&result, "resent_closed"), resent);
        assert_eq!(seen.load(Ordering::SeqCst), delivered(&result), "{}", result["accounting"]);
        assert_eq!(result["error_examples"], serde_json::json!({}));

        // One that may have been processed is not sent twice if that could do harm.
        for flags in ["-X POST", "--no-resend"] {
            let (url, seen) = closing_in_silence();
            let result = balanced(&format!("{url} {load} {flags}"));
            let lost = errors(&result, "closed_before_response") + errors(&result, "reset");
            assert!(lost >= 60 && lost == account(&result, "failed"), "{flags}: {}", result["errors"]);
            assert_eq!(account(&result, "resent"), 0, "{flags}");
            assert_eq!(seen.load(Ordering::SeqCst), delivered(&result), "{flags}");
        }
    });
}

#[test]
fn reports_say_how_many_requests_were_sent_again() {
    let (url, _) = closing_in_silence();
    let sentence = "requests were sent again, since the target had closed the connection without an answer";
    for format in ["", "--long", "-o markdown"] {
        let report = run(&format!("run {url} -n 400 -c 4 {format}"));
        // A text is broken into lines.
        let words: Vec<&str> = report.stdout.split_whitespace().collect();
        assert!(words.join(" ").contains(sentence), "{format}: {report:?}");
    }
}
