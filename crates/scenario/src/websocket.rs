//! Steps on a WebSocket: its opening is a request of HTTP/1.1, and what follows are messages.

/// Action of a step on a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebSocketAction {
    /// Upgrade a connection: the request is one of HTTP, with the fields that ask for it.
    Open,
    /// Send a message, which is the body of the request.
    Send {
        /// `true` if it is not text.
        binary: bool,
        /// `true` if the step ends with the message that answers it, and not when it is sent.
        answered: bool,
    },
    /// Wait for a message.
    Receive,
    /// Close with this status, and wait for the answer.
    Close(u16),
}

impl WebSocketAction {
    /// Returns `true` if the step ends with a message that comes.
    pub const fn awaits(self) -> bool {
        matches!(self, Self::Receive | Self::Send { answered: true, .. })
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::Random;

    use super::*;
    use crate::{
        AnswerSpec, Answered, Body, CheckSpec, Context, Conversion, Dialect, ExtractSpec, FieldList,
        Matching, PollSpec, ReactionSpec, Received, RequestSpec, RequestTemplate, ResponseHandler, Scope,
        SentRequest, Session, Source,
    };

    fn message(action: WebSocketAction, text: &str) -> RequestTemplate {
        let spec = RequestSpec {
            dialect: Dialect::WebSocket(action),
            method: "SEND".to_owned(),
            body: Body::Text(text.as_bytes().to_vec()),
            ..RequestSpec::default()
        };
        RequestTemplate::compile(&spec, &Scope::default(), None).expect("a template")
    }

    #[test]
    fn a_message_is_rendered_without_a_head() {
        let action = WebSocketAction::Send { binary: false, answered: true };
        for (text, is_static) in [("ping", true), ("${sequence}:${random_hex(8)}", false), ("", true)] {
            let template = message(action, text);
            assert_eq!((template.websocket(), template.is_static()), (Some(action), is_static));
            let context = Context { index: 7, ..Context::default() };
            let (mut random, mut out, mut shown) = (Random::new(3, 1), Vec::new(), SentRequest::default());
            template.render_request(&context, &mut random.clone(), &mut shown);
            template.render(&context, &mut random, &mut Vec::new(), &mut out);
            assert_eq!(out, shown.body);
            assert_eq!(shown.method, b"SEND");
            assert!(out.starts_with(if is_static { text.as_bytes() } else { b"7:" }));
        }
        let large = "x".repeat(100_000);
        let mut out = Vec::new();
        let template = message(WebSocketAction::Send { binary: true, answered: false }, &large);
        template.render(&Context::default(), &mut Random::new(3, 1), &mut Vec::new(), &mut out);
        assert!(out == large.as_bytes() && template.shared_body().is_none());
        assert_ne!(template.fingerprint(), message(action, &large).fingerprint());
    }

    #[test]
    fn the_awaited_message_is_the_one_for_which_all_checks_hold() {
        let check = |source, matching| CheckSpec { source, matching, negated: false };
        let until = vec![
            check(Source::Body, Matching::Contains("a".to_owned())),
            check(Source::JsonPointer("/id".to_owned()), Matching::Equals("${id}".to_owned())),
        ];
        let poll = Some(PollSpec { until, ..PollSpec::default() });
        let names = ["id".to_owned()];
        let scope = Scope { variables: &names, ..Scope::default() };
        let spec = ReactionSpec { poll, ..ReactionSpec::default() };
        let handler = ResponseHandler::compile(&spec, &scope).expect("a handler");
        let mut session = Session::new(1);
        session.variables[0].extend_from_slice(b"7");
        let fields = FieldList::default();
        for (body, awaited) in
            [(r#"{"id":7,"a":1}"#, true), (r#"{"id":8,"a":1}"#, false), ("a", false), ("", false)]
        {
            let received = Received::new(200, &fields, body.as_bytes());
            assert_eq!(handler.is_awaited(&received, &mut session), awaited, "{body}");
        }
        let any = ResponseHandler::default();
        assert!(any.is_awaited(&Received::new(200, &fields, b""), &mut session));
    }

    fn json(pointer: &str, value: &str) -> CheckSpec {
        let source = Source::JsonPointer(pointer.to_owned());
        CheckSpec { source, matching: Matching::Equals(value.to_owned()), negated: false }
    }

    fn rule(receive: CheckSpec, extract: Option<&str>, send: Body) -> AnswerSpec {
        let take = |pointer: &str| ExtractSpec {
            variable: 0,
            source: Source::JsonPointer(pointer.to_owned()),
            regex: None,
            form: Conversion::Value,
            default: None,
        };
        let binary = matches!(send, Body::Raw(_));
        AnswerSpec { receive: vec![receive], extract: extract.map(take).into_iter().collect(), send, binary }
    }

    /// Wire messages of the protocols whose servers close a connection that does not answer them.
    #[test]
    fn heartbeats_of_the_usual_protocols_are_answered() {
        let whole = |text: &str| CheckSpec {
            source: Source::Body,
            matching: Matching::Equals(text.to_owned()),
            negated: false,
        };
        let text = |text: &str| Body::Text(text.as_bytes().to_vec());
        let socket_io = || vec![rule(whole("2"), None, text("3"))];
        let signal_r = || vec![rule(whole("{\"type\":6}\u{1e}"), None, text("{\"type\":6}\u{1e}"))];
        let stomp = || vec![rule(whole("\n"), None, text("\n"))];
        let graphql = || {
            vec![
                rule(json("/type", "ping"), None, text(r#"{"type":"pong"}"#)),
                rule(json("/type", "ka"), None, Body::None),
            ]
        };
        let phoenix = || {
            let reply = r#"["1","${reference}","${room}","here",{}]"#;
            vec![
                rule(json("/2", "phoenix"), None, Body::None),
                rule(json("/3", "who"), Some("/1"), text(reply)),
            ]
        };
        let binary = || {
            let receive = CheckSpec { matching: Matching::Starts("p".to_owned()), ..whole("") };
            vec![rule(receive, None, Body::Raw([0xd0, 0x00].into()))]
        };
        type Row = (&'static str, Vec<AnswerSpec>, &'static [u8], Option<(Answered, &'static [u8])>);
        let table: Vec<Row> = vec![
            ("Socket.IO: ping", socket_io(), b"2", Some((Answered::Text, b"3"))),
            ("Socket.IO: probe", socket_io(), b"2probe", None),
            ("Socket.IO: event", socket_io(), br#"42["2"]"#, None),
            ("SignalR: ping", signal_r(), b"{\"type\":6}\x1e", Some((Answered::Text, b"{\"type\":6}\x1e"))),
            ("SignalR: invocation", signal_r(), b"{\"type\":1,\"target\":\"a\"}\x1e", None),
            ("STOMP: heartbeat", stomp(), b"\n", Some((Answered::Text, b"\n"))),
            ("STOMP: frame", stomp(), b"MESSAGE\n\nhi\0", None),
            (
                "graphql-ws: ping",
                graphql(),
                br#"{"type":"ping"}"#,
                Some((Answered::Text, br#"{"type":"pong"}"#)),
            ),
            (
                "graphql-ws: ping with a payload",
                graphql(),
                br#"{"payload":{"type":"x"},"type":"ping"}"#,
                Some((Answered::Text, br#"{"type":"pong"}"#)),
            ),
            ("graphql-ws: keep-alive", graphql(), br#"{"type":"ka"}"#, Some((Answered::Silently, b""))),
            ("graphql-ws: next", graphql(), br#"{"type":"next","payload":"ping"}"#, None),
            (
                "Phoenix: reply to a heartbeat",
                phoenix(),
                br#"[null,"7","phoenix","phx_reply",{"status":"ok"}]"#,
                Some((Answered::Silently, b"")),
            ),
            (
                "Phoenix: a question, with its reference",
                phoenix(),
                br#"["1","17","room:1","who",{}]"#,
                Some((Answered::Text, br#"["1","17","lobby","here",{}]"#)),
            ),
            ("Phoenix: a question without a reference", phoenix(), br#"{"3":"who"}"#, None),
            ("binary", binary(), b"ping", Some((Answered::Binary, &[0xd0, 0x00]))),
        ];
        let names = ["reference".to_owned(), "room".to_owned()];
        let scope = Scope { variables: &names, ..Scope::default() };
        let fields = FieldList::default();
        for (name, answers, message, expected) in table {
            let spec = ReactionSpec { answers, ..ReactionSpec::default() };
            let handler = ResponseHandler::compile(&spec, &scope).expect("a handler");
            assert!(handler.has_answers() && !handler.reads_response_alone() && !handler.needs().body);
            let mut session = Session::new(2);
            session.variables[1].extend_from_slice(b"lobby");
            let (mut random, mut out) = (Random::new(3, 1), Vec::new());
            let received = Received::new(200, &fields, message);
            let context = Context::default();
            let answered = handler.answer(&received, &mut session, &context, &mut random, &mut out);
            assert_eq!(answered.map(|how| (how, &out[..])), expected, "{name}");
        }
    }
}
