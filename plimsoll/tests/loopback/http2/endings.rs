//! Peers that end requests in other ways than by answering them: early ends, resets, goodbyes, silence; and
//! answers that are odd, but right.

use serde_json::json;

use crate::loopback::backends::on_each;
use plimsoll_testkit::sink_log::{account, count, errors};

use super::http2;
use super::scripted::{
    Answer, CANCEL, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, INTERNAL_ERROR, NO_ERROR,
    OK, PADDED, PING, PRIORITY, PROTOCOL_ERROR, REFUSED_STREAM, RST_STREAM, SETTINGS, SINGLY, Script,
    Scripted, WINDOW_UPDATE, answering, frame, greeting, literal, observe, setting,
};

/// Few requests against servers that keep silent.
pub(super) const BRIEFLY: &str = "-n 20 -c 4 -m 1 --timeout 400ms";

/// The connection ends in the middle of a response.
#[test]
fn connections_that_end_too_early() {
    let ends: [(&str, Answer); 4] = [
        ("closed_before_response", |wire, _| wire.close()),
        ("closed_in_response", |wire, stream| {
            wire.frame(HEADERS, END_HEADERS, stream, OK)?;
            wire.close()
        }),
        ("closed_in_response", |wire, stream| {
            wire.frame(HEADERS, END_HEADERS, stream, OK)?;
            wire.frame(DATA, 0, stream, b"hello")?;
            wire.close()
        }),
        ("closed_in_response", |wire, stream| {
            wire.frame(HEADERS, END_HEADERS, stream, OK)?;
            let whole = frame(DATA, END_STREAM, stream, b"hello");
            wire.raw(&whole[..12])?;
            wire.close()
        }),
    ];
    on_each(|backend| {
        for (class, answer) in ends {
            let (result, saw) = observe(answering(answer), backend, SINGLY);
            assert_eq!(errors(&result, class), 20, "{}", result["errors"]);
            assert_eq!(result["http2"]["violations"], json!({}), "{}", result["http2"]);
            assert_eq!((saw.requests, saw.connections), (20, 20));
        }
    });
}

#[test]
fn streams_that_are_reset() {
    let resets: [(&str, &str, Answer); 3] = [
        ("stream_reset", "INTERNAL_ERROR", |wire, stream| {
            wire.frame(RST_STREAM, 0, stream, &INTERNAL_ERROR.to_be_bytes())
        }),
        ("stream_reset", "CANCEL", |wire, stream| {
            wire.frame(HEADERS, END_HEADERS, stream, OK)?;
            wire.frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes())
        }),
        ("stream_reset", "UNKNOWN", |wire, stream| wire.frame(RST_STREAM, 0, stream, &[0, 0, 1, 0])),
    ];
    on_each(|backend| {
        for (class, code, answer) in resets {
            let (result, saw) = observe(answering(answer), backend, SINGLY);
            assert_eq!(errors(&result, class), 20, "{code}: {}", result["errors"]);
            assert_eq!(result["http2"]["resets"], json!({ code: 20 }));
            assert_eq!((saw.requests, saw.connections), (20, 4), "{code}");
        }
    });
}

/// A refused request was not processed, so that it may be sent again, but not for ever.
#[test]
fn streams_that_are_refused() {
    on_each(|backend| {
        let script =
            answering(|wire, stream| wire.frame(RST_STREAM, 0, stream, &REFUSED_STREAM.to_be_bytes()));
        let (result, saw) = observe(script, backend, SINGLY);
        assert_eq!(errors(&result, "stream_refused"), 20, "{}", result["errors"]);
        assert_eq!(count(&result, "/http2/resets/REFUSED_STREAM"), saw.requests);
        assert!((20..=100).contains(&saw.requests), "{saw:?}");
    });
}

/// A goodbye in the middle: processed requests are answered, others are counted or sent elsewhere, and the
/// connection is replaced.
#[test]
fn goodbyes_in_the_middle() {
    on_each(|backend| {
        let script = answering(|wire, stream| match wire.requests {
            1..5 => wire.reply(stream),
            5 => {
                wire.reply(stream)?;
                let last = [stream.to_be_bytes(), NO_ERROR.to_be_bytes()].concat();
                wire.frame(GOAWAY, 0, 0, &last)
            }
            // The stream was opened before the GOAWAY came: not processed, and not answered.
            _ => Ok(()),
        });
        for shape in ["-n 200 -c 2 -m 1", "-n 200 -c 2 -m 8"] {
            let (result, _) = observe(script, backend, &format!("{shape} --timeout 10s"));
            let unprocessed = errors(&result, "go_away");
            assert_eq!(account(&result, "ok") + unprocessed, 200, "{shape}: {}", result["errors"]);
            // Each connection answers five, and at most eight more were under way by then.
            assert!(8 * account(&result, "ok") + 40 >= 5 * unprocessed, "{shape}: {}", result["accounting"]);
            let goodbyes = count(&result, "/http2/go_aways/NO_ERROR");
            assert!(goodbyes >= account(&result, "ok") / 5 - 2, "{shape}: {}", result["http2"]);
            assert_eq!(result["http2"]["violations"], json!({}), "{shape}");
        }
    });
}

/// A server that processes nothing and says so, on every connection: requests are not sent again for ever.
#[test]
fn nothing_but_goodbyes() {
    on_each(|backend| {
        let script = answering(|wire, _| {
            wire.frame(GOAWAY, 0, 0, &[0u32.to_be_bytes(), PROTOCOL_ERROR.to_be_bytes()].concat())
        });
        let (result, saw) = observe(script, backend, SINGLY);
        assert_eq!(errors(&result, "go_away"), 20, "{}", result["errors"]);
        assert!((20..=100).contains(&saw.requests), "{saw:?}");
        let told = count(&result, "/http2/go_aways/PROTOCOL_ERROR");
        assert_eq!(told, saw.connections, "{}", result["http2"]);
    });
}

/// Silence, of the whole server or about one request, and a window that never opens: a timeout each.
#[test]
fn silence_is_a_timeout() {
    let scripts: [(&str, Script, &str); 3] = [
        ("no greeting", greeting(|_| Ok(())), ""),
        ("no answer", answering(|_, _| Ok(())), ""),
        (
            "no window",
            Script { greet: |wire| wire.hello_with(&setting(4, 0)), answer: |_, _| Ok(()) },
            "-b some-text",
        ),
    ];
    on_each(|backend| {
        for (name, script, load) in scripts {
            let (result, _) = observe(script, backend, &format!("{BRIEFLY} {load}"));
            assert_eq!(account(&result, "timed_out"), 20, "{name}: {}", result["errors"]);
            assert_eq!(count(&result, "/response_time/censored"), 20, "{name}");
        }
    });
}

/// The streams of timed-out requests are given up one by one: the server hears of each.
#[test]
fn timeouts_are_told_to_the_server() {
    on_each(|backend| {
        let script = answering(|wire, stream| match wire.requests % 2 {
            0 => Ok(()),
            _ => wire.reply(stream),
        });
        let (result, saw) = observe(script, backend, "-n 20 -c 2 -m 2 --timeout 400ms");
        let timed_out = account(&result, "timed_out");
        assert_eq!(account(&result, "ok") + timed_out, 20, "{}", result["errors"]);
        assert!(timed_out >= 8, "about half of them: {}", result["accounting"]);
        assert_eq!(count(&result, "/http2/cancelled"), timed_out);
        assert_eq!((saw.requests, saw.connections), (20, 2), "{}", result["connections"]);
        assert_eq!(saw.resets, [(CANCEL, timed_out)].into());
    });
}

/// An answer that comes after its request was given up is ignored, and is not taken for another one's.
#[test]
fn late_answers_are_ignored() {
    on_each(|backend| {
        let script = answering(|wire, stream| match wire.requests {
            1 => Ok(()),
            2 => {
                wire.reply(1)?;
                wire.reply(stream)
            }
            _ => wire.reply(stream),
        });
        let (result, saw) = observe(script, backend, "-n 20 -c 1 -m 1 --timeout 400ms");
        assert_eq!((account(&result, "ok"), account(&result, "timed_out")), (19, 1), "{}", result["errors"]);
        assert_eq!(result["http2"]["violations"], json!({}));
        assert_eq!(saw.connections, 1);
    });
}

/// Responses that are rare but valid are accepted.
#[test]
fn odd_but_valid_responses() {
    let answers: [(&str, Answer); 6] = [
        ("byte by byte", |wire, stream| {
            let mut bytes = frame(HEADERS, END_HEADERS, stream, &[OK, &literal("a", "b")].concat());
            bytes.extend(frame(DATA, END_STREAM, stream, b"hello"));
            bytes.iter().try_for_each(|byte| wire.raw(&[*byte]))
        }),
        ("padding everywhere", |wire, stream| {
            wire.frame(HEADERS, END_HEADERS | PADDED, stream, &[&[3], OK, &[0; 3]].concat())?;
            wire.frame(DATA, PADDED, stream, &[2, b'h', b'i', 0, 0])?;
            wire.frame(DATA, PADDED | END_STREAM, stream, &[0])
        }),
        ("hints before and trailers behind", |wire, stream| {
            wire.frame(HEADERS, END_HEADERS, stream, &literal(":status", "103"))?;
            wire.reply_open(stream)?;
            wire.frame(HEADERS, END_HEADERS | END_STREAM, stream, &literal("checksum", "none"))
        }),
        ("a block in many frames", |wire, stream| {
            wire.frame(HEADERS, END_STREAM, stream, OK)?;
            let field = literal("x-long", "value");
            field.iter().try_for_each(|byte| wire.frame(CONTINUATION, 0, stream, &[*byte]))?;
            wire.frame(CONTINUATION, END_HEADERS, stream, &[])
        }),
        ("unknown frames, settings and flags", |wire, stream| {
            wire.frame(0x77, 0xff, stream, b"what is this")?;
            wire.frame(SETTINGS, 0, 0, &[setting(0x99, 7), setting(1, 0), setting(3, 50)].concat())?;
            wire.frame(PRIORITY, 0, stream, &[0, 0, 0, 0, 1])?;
            wire.frame(HEADERS, END_HEADERS | 0xd2, stream, OK)?;
            wire.frame(DATA, END_STREAM | 0xf6, stream, b"hello")
        }),
        ("PING and window updates in between", |wire, stream| {
            wire.frame(PING, 0, 0, &[1; 8])?;
            wire.frame(WINDOW_UPDATE, 0, 0, &1_000u32.to_be_bytes())?;
            wire.reply(stream)?;
            wire.frame(WINDOW_UPDATE, 0, stream, &1_000u32.to_be_bytes())?;
            wire.frame(RST_STREAM, 0, stream, &NO_ERROR.to_be_bytes())
        }),
    ];
    on_each(|backend| {
        for (name, answer) in answers {
            let server = Scripted::start(answering(answer));
            let load = format!("-n 40 -c 2 -m 4 --backend {backend}");
            let result = http2(&format!("{} {load}", server.url()));
            assert_eq!(account(&result, "ok"), 40, "{name}: {} {}", result["errors"], result["http2"]);
            assert_eq!(count(&result, "/connections/opened"), 2, "{name}");
            assert_eq!(result["http2"]["violations"], json!({}), "{name}");
        }
    });
}
