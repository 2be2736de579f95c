//! Peers that break HTTP/2, or use it to do harm: every request ends in its account, the connection is
//! replaced, and nothing hangs.

use std::io;

use serde_json::{Value, json};

use crate::loopback::backends::on_each;
use crate::loopback::process::run;
use plimsoll_testkit::sink_log::{account, count, errors};

use super::scripted::{
    ACK, Answer, CANCEL, CONTINUATION, DATA, END_HEADERS, END_STREAM, FRAME_SIZE_ERROR, HEADERS, OK, PADDED,
    PING, PRIORITY, PROTOCOL_ERROR, PUSH_PROMISE, RST_STREAM, SETTINGS, SINGLY, Script, Scripted,
    WINDOW_UPDATE, Wire, answering, frame, greeting, literal, observe, setting,
};

fn violations(result: &Value, code: &str) -> u64 {
    count(result, &format!("/http2/violations/{code}"))
}

/// Every rule whose breach ends the connection (RFC 9113 section 5.4.1), the code that says so, and a server
/// that breaks it.
const FATAL: &[(&str, &str, Answer)] = &[
    ("a frame over the limit", "FRAME_SIZE_ERROR", |wire, stream| {
        wire.frame(HEADERS, END_HEADERS, stream, OK)?;
        wire.frame(DATA, END_STREAM, stream, &[0; 16_385])
    }),
    ("PING of 7 bytes", "FRAME_SIZE_ERROR", |wire, _| wire.frame(PING, 0, 0, &[0; 7])),
    ("SETTINGS of 5 bytes", "FRAME_SIZE_ERROR", |wire, _| wire.frame(SETTINGS, 0, 0, &[0; 5])),
    ("an acknowledgement with content", "FRAME_SIZE_ERROR", |wire, _| {
        wire.frame(SETTINGS, ACK, 0, &setting(1, 0))
    }),
    ("garbage", "FRAME_SIZE_ERROR", |wire, _| wire.raw(&[0xff; 1_000])),
    ("HEADERS on the connection", "PROTOCOL_ERROR", |wire, _| wire.frame(HEADERS, END_HEADERS, 0, OK)),
    ("DATA on the connection", "PROTOCOL_ERROR", |wire, _| wire.frame(DATA, 0, 0, b"hello")),
    ("HEADERS on a stream of ours that is idle", "PROTOCOL_ERROR", |wire, stream| {
        wire.frame(HEADERS, END_HEADERS, stream + 1_000, OK)
    }),
    ("HEADERS on a stream of its own", "PROTOCOL_ERROR", |wire, _| wire.frame(HEADERS, END_HEADERS, 2, OK)),
    ("RST_STREAM on an idle stream", "PROTOCOL_ERROR", |wire, stream| {
        wire.frame(RST_STREAM, 0, stream + 1_000, &CANCEL.to_be_bytes())
    }),
    ("SETTINGS on a stream", "PROTOCOL_ERROR", |wire, stream| wire.frame(SETTINGS, 0, stream, &[])),
    ("a maximum frame size of 1", "PROTOCOL_ERROR", |wire, _| wire.frame(SETTINGS, 0, 0, &setting(5, 1))),
    ("a push that was forbidden", "PROTOCOL_ERROR", |wire, stream| {
        wire.frame(PUSH_PROMISE, END_HEADERS, stream, &[0, 0, 0, 2, 0x82, 0x84, 0x86])
    }),
    ("CONTINUATION of nothing", "PROTOCOL_ERROR", |wire, stream| {
        wire.frame(CONTINUATION, END_HEADERS, stream, OK)
    }),
    ("a header block that is interrupted", "PROTOCOL_ERROR", |wire, stream| {
        wire.frame(HEADERS, 0, stream, OK)?;
        wire.frame(DATA, 0, stream, b"hello")
    }),
    ("padding beyond the frame", "PROTOCOL_ERROR", |wire, stream| {
        wire.frame(HEADERS, END_HEADERS, stream, OK)?;
        wire.frame(DATA, PADDED, stream, &[200, 1, 2, 3])
    }),
    ("a window update of nothing", "PROTOCOL_ERROR", |wire, _| wire.frame(WINDOW_UPDATE, 0, 0, &[0; 4])),
    ("a window that overflows", "FLOW_CONTROL_ERROR", |wire, _| {
        wire.frame(WINDOW_UPDATE, 0, 0, &i32::MAX.to_be_bytes())
    }),
    ("an initial window that is too large", "FLOW_CONTROL_ERROR", |wire, _| {
        wire.frame(SETTINGS, 0, 0, &setting(4, 1 << 31))
    }),
    ("a field of an index that is not there", "COMPRESSION_ERROR", |wire, stream| {
        wire.frame(HEADERS, END_HEADERS | END_STREAM, stream, &[0x88, 0xff, 0x7f])
    }),
    ("a header table over the limit", "COMPRESSION_ERROR", |wire, stream| {
        wire.frame(HEADERS, END_HEADERS | END_STREAM, stream, &[0x3f, 0xff, 0x7f, 0x88])
    }),
];

#[test]
fn what_ends_the_connection() {
    on_each(|backend| {
        for &(name, code, answer) in FATAL {
            let (result, saw) = observe(answering(answer), backend, SINGLY);
            let whole = format!("{name}: {} {}", result["errors"], result["http2"]);
            assert_eq!(errors(&result, "protocol"), 20, "{whole}");
            assert_eq!(result["http2"]["violations"], json!({ code: 20 }), "{whole}");
            let example = &result["error_examples"]["protocol"];
            assert!(example.as_str().is_some_and(|text| text.contains(code)), "{name}: {example}");
            // Each request was sent once, on a connection of its own.
            assert_eq!((saw.requests, saw.connections), (20, 20), "{whole}");
            assert_eq!(count(&result, "/connections/opened"), 20, "{whole}");
        }
    });
}

/// The peer hears why, on each connection. Only for a breach without further bytes: with unread bytes, the
/// system resets the connection, and the message is lost.
#[test]
fn the_peer_is_told_what_it_broke() {
    on_each(|backend| {
        let script = answering(|wire, _| wire.frame(PING, 0, 0, &[0; 7]));
        let (result, saw) = observe(script, backend, SINGLY);
        assert_eq!(violations(&result, "FRAME_SIZE_ERROR"), 20);
        assert_eq!(saw.go_aways, [(FRAME_SIZE_ERROR, 20)].into());
    });
}

#[test]
fn the_preflight_refuses_such_a_peer() {
    on_each(|backend| {
        for (name, code, answer) in FATAL.iter().step_by(4) {
            let server = Scripted::start(answering(*answer));
            let refused = run(&format!("{} -n 4 -c 4 --http2 --backend {backend}", server.url()));
            refused.assert_refused(1, "the first request to");
            assert!(refused.stderr.contains(*code), "{name}: {}", refused.stderr);
            assert_eq!(server.saw().requests, 1, "{name}");
        }
    });
}

/// With several requests on a connection its end is the end of all of them, counted once as a violation.
#[test]
fn a_breach_ends_every_request_of_its_connection() {
    on_each(|backend| {
        let script = answering(|wire, _| match wire.requests {
            1..8 => Ok(()),
            _ => wire.frame(WINDOW_UPDATE, 0, 0, &[0; 4]),
        });
        let (result, saw) = observe(script, backend, "-n 80 -c 1 -m 8 --timeout 10s");
        assert_eq!(errors(&result, "protocol"), 80, "{}", result["errors"]);
        assert_eq!(violations(&result, "PROTOCOL_ERROR"), 10, "{}", result["http2"]);
        assert_eq!(saw.connections, 10);
    });
}

/// Servers whose first bytes are not a valid greeting break the protocol.
#[test]
fn greetings_that_are_none() {
    let greetings: [(&str, &str, Script); 5] = [
        (
            "HTTP/1.1",
            "wrong_protocol",
            greeting(|wire| {
                wire.raw(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")?;
                wire.close()
            }),
        ),
        (
            "another protocol",
            "wrong_protocol",
            greeting(|wire| wire.raw(b"220 mail.example ESMTP ready\r\n")),
        ),
        ("bytes of no protocol", "wrong_protocol", greeting(|wire| wire.raw(&[0xff; 100]))),
        ("PING before SETTINGS", "protocol", greeting(|wire| wire.frame(PING, 0, 0, &[0; 8]))),
        ("nothing but the end", "closed_before_response", greeting(Wire::close)),
    ];
    on_each(|backend| {
        for (name, class, script) in greetings {
            let server = Scripted::start(script);
            let refused = run(&format!("{} -n 4 -c 4 --http2 --backend {backend}", server.url()));
            refused.assert_refused(1, "the first request to");
            let (result, _) = observe(script, backend, SINGLY);
            assert_eq!(errors(&result, class), 20, "{name}: {}", result["errors"]);
            assert_eq!(account(&result, "ok"), 0, "{name}");
        }
    });
}

/// Breaches that end a stream only (RFC 9113 section 5.4.2): the request failed, the stream is reset, and the
/// connection goes on.
#[test]
fn what_ends_only_the_stream() {
    fn only_head(wire: &mut Wire, stream: u32, block: &[u8]) -> io::Result<()> {
        wire.frame(HEADERS, END_HEADERS | END_STREAM, stream, block)
    }
    let cases: [(&str, Answer); 9] = [
        ("no status", |wire, stream| only_head(wire, stream, &literal("a", "b"))),
        ("two of them", |wire, stream| only_head(wire, stream, &[OK, OK].concat())),
        ("a status that is none", |wire, stream| only_head(wire, stream, &literal(":status", "2x0"))),
        ("a status after a field", |wire, stream| {
            only_head(wire, stream, &[&literal("a", "b"), OK].concat())
        }),
        ("an unknown pseudo-field", |wire, stream| {
            only_head(wire, stream, &[OK, &literal(":path", "/")].concat())
        }),
        ("a name in upper case", |wire, stream| {
            only_head(wire, stream, &[OK, &literal("Server", "x")].concat())
        }),
        ("a field of HTTP/1.1", |wire, stream| {
            only_head(wire, stream, &[OK, &literal("connection", "close")].concat())
        }),
        ("less content than it says", |wire, stream| {
            wire.frame(HEADERS, END_HEADERS, stream, &[OK, &literal("content-length", "10")].concat())?;
            wire.frame(DATA, END_STREAM, stream, b"hello")
        }),
        ("more content than it says", |wire, stream| {
            wire.frame(HEADERS, END_HEADERS, stream, &[OK, &literal("content-length", "3")].concat())?;
            wire.frame(DATA, 0, stream, b"hello")
        }),
    ];
    on_each(|backend| {
        for (name, answer) in cases {
            let (result, saw) = observe(answering(answer), backend, SINGLY);
            let whole = format!("{name}: {} {}", result["errors"], result["http2"]);
            assert_eq!(errors(&result, "protocol"), 20, "{whole}");
            assert_eq!(result["http2"]["violations"], json!({ "PROTOCOL_ERROR": 20 }), "{whole}");
            assert_eq!((saw.requests, saw.connections), (20, 4), "{whole}");
            assert_eq!(saw.resets, [(PROTOCOL_ERROR, 20)].into(), "{whole}");
        }
    });
}

/// An interim response is not the answer; too many of them do not lead to one.
#[test]
fn endless_interim_responses() {
    on_each(|backend| {
        let script = answering(|wire, stream| {
            (0..1_000).try_for_each(|_| wire.frame(HEADERS, END_HEADERS, stream, &literal(":status", "103")))
        });
        let (result, _) = observe(script, backend, SINGLY);
        assert_eq!(errors(&result, "protocol"), 20, "{}", result["errors"]);
    });
}

/// A few bytes that stand for many: 4,000 bytes that are put into the header table once, and named from there
/// until the list would have 40 MB.
#[test]
fn a_header_list_that_is_a_bomb() {
    on_each(|backend| {
        let script = answering(|wire, stream| {
            // A literal with indexing (RFC 7541 section 6.2.1), the length of whose value takes three bytes
            // (section 5.1): 127 + 28 + 30 * 128.
            let mut block = [OK, &[0x40, 1, b'a', 0x7f, 0x80 | 28, 30]].concat();
            block.extend([b'x'; 127 + 28 + 30 * 128]);
            // Index 62: what was put in last.
            block.extend([0xbe; 10_000]);
            wire.frame(HEADERS, END_HEADERS | END_STREAM, stream, &block)
        });
        let (result, _) = observe(script, backend, SINGLY);
        assert_eq!(errors(&result, "head_too_large"), 20, "{} {}", result["errors"], result["http2"]);
        let peak = count(&result, "/generator/rss_peak_bytes");
        assert!(peak < 100 << 20, "{peak} bytes");
    });
}

/// Frames that cost work and bring nothing on.
#[test]
fn floods() {
    let floods: [(&str, Answer); 6] = [
        ("SETTINGS", |wire, _| flood(wire, &frame(SETTINGS, 0, 0, &setting(4, 65_535)))),
        ("PING", |wire, _| flood(wire, &frame(PING, 0, 0, &[0; 8]))),
        ("PRIORITY", |wire, stream| flood(wire, &frame(PRIORITY, 0, stream, &[0, 0, 0, 0, 1]))),
        ("DATA of nothing", |wire, stream| {
            wire.frame(HEADERS, END_HEADERS, stream, OK)?;
            flood(wire, &frame(DATA, 0, stream, &[]))
        }),
        ("CONTINUATION of nothing", |wire, stream| {
            wire.frame(HEADERS, 0, stream, OK)?;
            flood(wire, &frame(CONTINUATION, 0, stream, &[]))
        }),
        ("CONTINUATION of much", |wire, stream| {
            wire.frame(HEADERS, 0, stream, OK)?;
            let field = literal("x-filler", &"x".repeat(100));
            let fragment = field.repeat(16_384 / field.len());
            (0..1_000).try_for_each(|_| wire.frame(CONTINUATION, 0, stream, &fragment))
        }),
    ];
    on_each(|backend| {
        for (name, answer) in floods {
            let (result, _) = observe(answering(answer), backend, SINGLY);
            let whole = format!("{name}: {} {}", result["errors"], result["http2"]);
            assert_eq!(errors(&result, "protocol"), 20, "{whole}");
            assert_eq!(result["http2"]["violations"], json!({ "ENHANCE_YOUR_CALM": 20 }), "{whole}");
        }
    });
}

fn flood(wire: &mut Wire, frame: &[u8]) -> io::Result<()> {
    let many = frame.repeat(1_000);
    (0..100).try_for_each(|_| wire.raw(&many))
}
