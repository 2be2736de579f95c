//! The service of the sink for gRPC: every method answers with the messages that it is called with. Beside it
//! the services for health and reflection that clients of gRPC know.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::fields::{CODES, read_timeout};
use plimsoll_core::Nanos;
use plimsoll_targets::SlowData;
use plimsoll_targets::sink::service::{
    AddedAnswer, AddedBody, AddedForm, AddedPart, AddedReply, AddedRequest, AddedService, TimeoutField,
    path_of,
};
use plimsoll_wire::length_prefixed::{Messages, PREFIX, message_length, write_message};

use super::reflection::Reflection;
use crate::FileDescription;

/// A method whose messages may be streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DescribedMethod {
    /// `/package.Service/Method`.
    pub(crate) path: String,
    /// Messages to the server are a stream.
    pub(crate) client_streams: bool,
    /// Messages from the server are a stream.
    pub(crate) server_streams: bool,
}

/// Options of a server of gRPC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GrpcOptions {
    /// Files that reflection knows.
    pub(crate) files: Vec<FileDescription>,
    /// Methods whose streams are known. Any other answers with the messages that came, at once, when the call
    /// is whole.
    pub(crate) methods: Vec<DescribedMethod>,
    /// Messages of an answer that is a stream, to each message that came.
    pub(crate) messages: u32,
    /// Time between two messages of an answer.
    pub(crate) every: Nanos,
}

/// The services that are always there, each file with its name: that of the sink, and that of its health.
pub(crate) const PROTOS: [(&str, &str); 2] =
    [("sink.proto", include_str!("sink.proto")), ("health.proto", include_str!("health.proto"))];

/// Messages of a stream at most.
const MOST_MESSAGES: u32 = 1_000_000;
/// Bytes of an answer at most: more would fill the memory.
const LONGEST_ANSWER: usize = 64 << 20;

const INTERNAL: u16 = 13;
const RESOURCE_EXHAUSTED: u16 = 8;
/// The code of a call that was not answered in time.
const DEADLINE_EXCEEDED: u16 = 4;

/// Places of the replies. Those of failed calls follow, by their code from 1 on.
const GOOD: u16 = 0;
/// The reply with compressed messages, as they came.
const GZIP: u16 = 1;
const NUMBER: u16 = 2;
/// The reply to a client that does not speak HTTP/2.
const NOWHERE: u16 = 3;

/// The message with a number, a field of eight bytes, up to that: its prefix, and the field's key.
const NUMBER_BODY: &[u8; PREFIX + 1] = b"\0\0\0\0\x09\x09";

/// The state of health: field 1 is 1, SERVING.
const SERVING: &[u8] = b"\0\0\0\0\x02\x08\x01";

/// A method as the sink carries it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    /// Answers with all messages that came, when the call is whole.
    Echo,
    /// Answers with each message as soon as it has come.
    Chat,
    /// Answers with the messages that came, several times.
    Repeat,
    /// Answers with the last message that came.
    Last,
    /// Answers with the number of the call.
    Count,
    Health,
    /// Answers with the state of health, and goes on: it never changes.
    Watch,
    Reflection,
}

/// A server of gRPC.
#[derive(Debug)]
pub(crate) struct GrpcServer {
    pub(crate) options: GrpcOptions,
    methods: HashMap<Box<[u8]>, Method>,
    reflection: Reflection,
}

impl GrpcServer {
    pub(crate) fn new(options: GrpcOptions) -> Self {
        let mut methods: HashMap<Box<[u8]>, Method> = HashMap::new();
        for DescribedMethod { path, client_streams, server_streams } in &options.methods {
            let method = match (client_streams, server_streams) {
                (false, false) => Method::Echo,
                (false, true) => Method::Repeat,
                (true, false) => Method::Last,
                (true, true) => Method::Chat,
            };
            methods.insert(path.as_bytes().into(), method);
        }
        for (path, method) in [
            ("/plimsoll.sink.v1.Sink/Count", Method::Count),
            ("/grpc.health.v1.Health/Check", Method::Health),
            ("/grpc.health.v1.Health/Watch", Method::Watch),
            ("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", Method::Reflection),
            ("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", Method::Reflection),
        ] {
            methods.insert(path.as_bytes().into(), method);
        }
        Self { methods, reflection: Reflection::new(options.files.clone()), options }
    }

    fn method(&self, target: &[u8]) -> Method {
        self.methods.get(path_of(target)).copied().unwrap_or(Method::Echo)
    }

    /// Answers a whole call.
    fn call<'a>(&self, target: &[u8], body: &'a [u8]) -> AddedAnswer<'a> {
        if whole_messages(body) < body.len() {
            return failed(INTERNAL);
        }
        let messages = self.options.messages as usize;
        match self.method(target) {
            Method::Echo | Method::Chat => given(Cow::Borrowed(body)),
            Method::Repeat if body.len() * messages > LONGEST_ANSWER => failed(RESOURCE_EXHAUSTED),
            Method::Repeat => given(Cow::Owned(body.repeat(messages))),
            Method::Last => {
                let last = each(body).last().unwrap_or(&[0; PREFIX]);
                given(Cow::Borrowed(last))
            }
            Method::Count => AddedAnswer::plain(NUMBER),
            Method::Health | Method::Watch => given(Cow::Borrowed(SERVING)),
            Method::Reflection => given(Cow::Owned(self.reflect(body))),
        }
    }

    fn reflect(&self, body: &[u8]) -> Vec<u8> {
        let mut answers = Vec::new();
        for message in each(body) {
            write_message(&self.reflection.answer(&message[PREFIX..]), &mut answers);
        }
        answers
    }
}

impl AddedService for GrpcServer {
    fn problems(&self) -> Vec<String> {
        match (1..=MOST_MESSAGES).contains(&self.options.messages) {
            true => Vec::new(),
            false => vec!["a stream of messages has 1 to 1000000 of them".to_owned()],
        }
    }

    fn replies(&self) -> Vec<AddedReply> {
        let number = AddedBody::Number(NUMBER_BODY.to_vec());
        let nowhere = AddedReply { status: 505, form: AddedForm::Bare };
        let good = [
            messages(AddedBody::Given, &[]),
            messages(AddedBody::Given, &[("grpc-encoding", "gzip")]),
            messages(number, &[]),
            nowhere,
        ];
        good.into_iter().chain((1..CODES.len() as u16).map(failure)).collect()
    }

    fn answer<'a>(&self, request: &AddedRequest<'_, 'a>) -> AddedAnswer<'a> {
        if !request.is_http2 {
            return AddedAnswer::plain(NOWHERE);
        }
        match request.status.filter(|code| (1..CODES.len() as u16).contains(code)) {
            Some(code) => failed(code),
            None => self.call(request.target, request.body),
        }
    }

    fn answer_part<'a>(&self, target: &[u8], body: &'a [u8], at_once: bool) -> Option<AddedPart<'a>> {
        let whole = whole_messages(body);
        let answered = match self.method(target) {
            Method::Watch if whole == 0 => Cow::Borrowed(&[][..]),
            Method::Watch => Cow::Borrowed(SERVING),
            Method::Chat if at_once => Cow::Borrowed(&body[..whole]),
            Method::Reflection => Cow::Owned(self.reflect(&body[..whole])),
            _ => return None,
        };
        Some(AddedPart { body: answered, consumed: whole })
    }

    fn is_endless(&self, target: &[u8]) -> bool {
        self.method(target) == Method::Watch
    }

    fn pace(&self) -> Option<SlowData> {
        match self.options.every {
            Nanos::ZERO => None,
            // A piece is a message, however long.
            every => Some(SlowData { bytes: 1, every }),
        }
    }

    fn codes(&self) -> &'static [&'static str] {
        &CODES
    }

    fn timeout(&self) -> Option<TimeoutField> {
        let read = |text: &[u8]| read_timeout(text).map(Nanos);
        Some(TimeoutField { name: "grpc-timeout", read, status: DEADLINE_EXCEEDED })
    }
}

/// The answer of a call that fails with this code.
const fn failed(code: u16) -> AddedAnswer<'static> {
    AddedAnswer::plain(NOWHERE + code)
}

/// The answer with these messages, each with its prefix.
fn given(messages: Cow<'_, [u8]>) -> AddedAnswer<'_> {
    let reply = if messages.first() == Some(&1) { GZIP } else { GOOD };
    AddedAnswer { reply, body: messages }
}

/// The reply of a good call, with messages and with the status behind them.
fn messages(body: AddedBody, more: &[(&str, &str)]) -> AddedReply {
    AddedReply { status: 200, form: form(body, more, &[("grpc-status", "0")]) }
}

/// The reply of a call that fails with this code.
fn failure(code: u16) -> AddedReply {
    let message = format!("the sink was told to fail with {}", CODES[usize::from(code)]);
    let more = [("grpc-status", &*code.to_string()), ("grpc-message", &*message)];
    AddedReply { status: code, form: form(AddedBody::Empty, &more, &[]) }
}

fn form(body: AddedBody, more: &[(&str, &str)], trailers: &[(&str, &str)]) -> AddedForm {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let fields = [("content-type", "application/grpc")].iter().chain(more).map(owned).collect();
    AddedForm::Streamed {
        fields,
        body,
        trailers: trailers.iter().map(owned).collect(),
        piece: message_length,
    }
}

/// Returns the message at the start of a body, with its prefix; `None` if it is not whole or not a message.
fn first(body: &[u8]) -> Option<&[u8]> {
    let message = Messages::new(body).allow_compressed(true).next()?.ok()?;
    body.get(..PREFIX + message.len())
}

/// The messages of a body, each with its prefix, as far as they are whole.
fn each(mut body: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let message = first(body)?;
        body = &body[message.len()..];
        Some(message)
    })
}

/// Bytes of the messages in front of a body that are whole.
fn whole_messages(body: &[u8]) -> usize {
    each(body).map(<[u8]>::len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(messages: u32) -> GrpcServer {
        let method = |path: &str, client_streams, server_streams| DescribedMethod {
            path: path.to_owned(),
            client_streams,
            server_streams,
        };
        GrpcServer::new(GrpcOptions {
            files: Vec::new(),
            methods: vec![
                method("/a.B/Repeat", false, true),
                method("/a.B/Collect", true, false),
                method("/a.B/Chat", true, true),
            ],
            messages,
            every: Nanos::ZERO,
        })
    }

    /// A call over HTTP/2.
    const fn call<'a>(target: &'a str, body: &'a [u8]) -> AddedRequest<'static, 'a> {
        AddedRequest { is_http2: true, method: b"POST", target: target.as_bytes(), body, status: None }
    }

    const TWO: &[u8] = b"\0\0\0\0\x01a\0\0\0\0\x01b";

    #[test]
    fn methods_answer_with_their_messages() {
        let server = server(3);
        let told = |path: &str, body: &[u8]| {
            let answer = server.answer(&call(path, body));
            (answer.reply, answer.body.into_owned())
        };
        assert_eq!(told("/any.Thing/At", TWO), (GOOD, TWO.to_vec()));
        assert_eq!(told("/a.B/Chat", TWO), (GOOD, TWO.to_vec()));
        assert_eq!(told("/a.B/Repeat", &TWO[..6]), (GOOD, TWO[..6].repeat(3)));
        assert_eq!(told("/a.B/Collect", TWO), (GOOD, TWO[6..].to_vec()));
        assert_eq!(told("/a.B/Collect", b""), (GOOD, vec![0; PREFIX]));
        assert_eq!(told("/any.Thing/At", b"\x01\0\0\0\x01z"), (GZIP, b"\x01\0\0\0\x01z".to_vec()));
        assert_eq!(told("/grpc.health.v1.Health/Check", b"\0\0\0\0\0"), (GOOD, SERVING.to_vec()));
        for broken in [&b"<html>"[..], &TWO[..8], b"\x02\0\0\0\0"] {
            assert_eq!(told("/any.Thing/At", broken).0, failed(INTERNAL).reply, "{}", broken.escape_ascii());
        }
        let large = [&b"\0\x01\xe0\0\0"[..], &vec![0; 0x01e0_0000]].concat();
        assert_eq!(told("/a.B/Repeat", &large).0, failed(RESOURCE_EXHAUSTED).reply);
        assert_eq!(told("/plimsoll.sink.v1.Sink/Count", TWO), (NUMBER, Vec::new()));
        let over_http1 = AddedRequest { is_http2: false, ..call("/any.Thing/At", TWO) };
        assert_eq!(server.answer(&over_http1).reply, NOWHERE);
    }

    #[test]
    fn clients_choose_the_status() {
        let server = server(1);
        let replies = server.replies();
        for (asked, status) in [(5, 5), (16, 16), (0, 200), (17, 200)] {
            let answer = server.answer(&AddedRequest { status: Some(asked), ..call("/a.B/C", b"") });
            assert_eq!(replies[usize::from(answer.reply)].status, status, "{asked}");
        }
    }

    #[test]
    fn chats_and_reflection_are_answered_as_they_go_on() {
        let server = server(1);
        let part = |path: &str, at_once| server.answer_part(path.as_bytes(), &TWO[..8], at_once);
        let answered = |body| Some(AddedPart { body: Cow::Borrowed(body), consumed: 6 });
        assert_eq!(part("/a.B/Chat", true), answered(&TWO[..6]));
        assert_eq!(part("/a.B/Chat", false), None);
        assert_eq!(part("/a.B/Collect", true), None);
        assert_eq!(part("/grpc.health.v1.Health/Watch", false), answered(SERVING));
        assert!(server.is_endless(b"/grpc.health.v1.Health/Watch"));
        let answered = part("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", false).unwrap();
        assert_eq!(answered.consumed, 6);
    }
}
