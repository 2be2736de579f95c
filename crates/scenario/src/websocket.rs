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
        Body, CheckSpec, Context, Dialect, FieldList, Matching, PollSpec, ReactionSpec, Received,
        RequestSpec, RequestTemplate, ResponseHandler, Scope, SentRequest, Session, Source,
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
}
