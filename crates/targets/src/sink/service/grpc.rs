//! gRPC: every method answers with the messages that it is called with. Beside it the services for health and
//! reflection that clients of gRPC know.

mod reflection;

use std::borrow::Cow;
use std::collections::HashMap;

use plimsoll_core::Nanos;
use plimsoll_wire::grpc::CODES;
use plimsoll_wire::http2::{HeaderBlockCache, Indexing};
use plimsoll_wire::length_prefixed::{Messages, PREFIX, write_message};

use super::is_code;
use super::plain::SlowData;
use super::resources::path_of;
use crate::sink::encoded_reply::{Answer, Draft, EncodedReply, FormBody};
use reflection::Reflection;

/// A protobuf file as reflection describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedFile {
    /// The name under which it is imported.
    pub name: String,
    /// The names of the files that it imports.
    pub imports: Vec<String>,
    /// The full names of its services.
    pub services: Vec<String>,
    /// The full names of its services, methods, messages and enums.
    pub symbols: Vec<String>,
    /// The file as an encoded `google.protobuf.FileDescriptorProto`.
    pub descriptor: Vec<u8>,
}

/// A method whose messages may be streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedMethod {
    /// `/package.Service/Method`.
    pub path: String,
    /// Messages to the server are a stream.
    pub client_streams: bool,
    /// Messages from the server are a stream.
    pub server_streams: bool,
}

/// A server of gRPC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grpc {
    /// Files that reflection knows.
    pub files: Vec<DescribedFile>,
    /// Methods whose streams are known. Any other answers with the messages that came, at once, when the call
    /// is whole.
    pub methods: Vec<DescribedMethod>,
    /// Messages of an answer that is a stream, to each message that came.
    pub messages: u32,
    /// Time between two messages of an answer.
    pub every: Nanos,
}

impl Grpc {
    /// The services that are always there, each file with its name: that of the sink, and that of its health.
    pub const PROTOS: [(&'static str, &'static str); 2] = [
        ("sink.proto", include_str!("grpc/sink.proto")),
        ("health.proto", include_str!("grpc/health.proto")),
    ];

    pub(super) fn problems(&self, require: &mut impl FnMut(bool, &str)) {
        require(
            (1..=MOST_MESSAGES).contains(&self.messages),
            "a stream of messages has 1 to 1000000 of them",
        );
    }

    /// The pace of messages that are sent one by one.
    pub(super) const fn slow(&self) -> Option<SlowData> {
        match self.every {
            Nanos::ZERO => None,
            // A piece is a message, however long.
            every => Some(SlowData { bytes: 1, every }),
        }
    }
}

/// Messages of a stream at most.
const MOST_MESSAGES: u32 = 1_000_000;
/// Bytes of an answer at most: more would fill the memory.
const LONGEST_ANSWER: usize = 64 << 20;

const INTERNAL: u16 = 13;
const RESOURCE_EXHAUSTED: u16 = 8;

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

/// A call, as far as it is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GrpcCall<'a> {
    /// The code of the status.
    status: u16,
    /// The answer is the number of the call.
    counts: bool,
    /// The messages of the answer, each with its prefix.
    messages: Cow<'a, [u8]>,
}

impl GrpcCall<'_> {
    pub(super) fn into_owned(self) -> GrpcCall<'static> {
        let Self { status, counts, messages } = self;
        GrpcCall { status, counts, messages: Cow::Owned(messages.into_owned()) }
    }
}

/// The replies of a server of gRPC.
#[derive(Debug)]
pub(crate) struct GrpcForms {
    methods: HashMap<Box<[u8]>, Method>,
    messages: u32,
    reflection: Reflection,
    pub(super) good: EncodedReply,
    /// With compressed messages, as they came.
    gzip: EncodedReply,
    number: EncodedReply,
    /// Replies of failed calls, by their code from 1 on.
    failures: Vec<EncodedReply>,
    /// The reply to a client that does not speak HTTP/2.
    pub(super) nowhere: EncodedReply,
}

impl GrpcForms {
    pub(super) fn new(service: &Grpc, book: &mut HeaderBlockCache) -> Self {
        let mut methods: HashMap<Box<[u8]>, Method> = HashMap::new();
        for DescribedMethod { path, client_streams, server_streams } in &service.methods {
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
        let codes = 1..CODES.len() as u16;
        Self {
            methods,
            messages: service.messages,
            reflection: Reflection::new(service.files.clone()),
            good: EncodedReply::grpc(FormBody::Given, &[], book),
            gzip: EncodedReply::grpc(FormBody::Given, &[("grpc-encoding", "gzip")], book),
            number: EncodedReply::grpc(FormBody::Number, &[], book),
            failures: codes.map(|code| EncodedReply::grpc_failure(code, book)).collect(),
            nowhere: EncodedReply::new(Draft::new(505), book),
        }
    }

    fn method(&self, target: &[u8]) -> Method {
        self.methods.get(path_of(target)).copied().unwrap_or(Method::Echo)
    }

    /// Reads a whole call. `status` is the code that its client asks for, if it does.
    pub(super) fn ask<'a>(&self, target: &[u8], body: &'a [u8], status: Option<&[u8]>) -> GrpcCall<'a> {
        let failed = |status| GrpcCall { status, counts: false, messages: Cow::Borrowed(&[]) };
        let wanted = status.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
        if let Some(status) = wanted.filter(|status| is_code(*status)) {
            return failed(status);
        }
        let given = |messages| GrpcCall { status: 0, counts: false, messages };
        if whole_messages(body) < body.len() {
            return failed(INTERNAL);
        }
        match self.method(target) {
            Method::Echo | Method::Chat => given(Cow::Borrowed(body)),
            Method::Repeat if body.len() * self.messages as usize > LONGEST_ANSWER => {
                failed(RESOURCE_EXHAUSTED)
            }
            Method::Repeat => given(Cow::Owned(body.repeat(self.messages as usize))),
            Method::Last => {
                let last = each(body).last().unwrap_or(&[0; PREFIX]);
                given(Cow::Borrowed(last))
            }
            Method::Count => GrpcCall { counts: true, ..given(Cow::Borrowed(&[])) },
            Method::Health | Method::Watch => given(Cow::Borrowed(SERVING)),
            Method::Reflection => given(Cow::Owned(self.reflect(body))),
        }
    }

    /// The answers to messages of a call that goes on, and the bytes of the body that they answer. `None`:
    /// the call is answered when it is whole. `at_once` says that nothing delays answers.
    pub(crate) fn answer_part<'a>(
        &self,
        target: &[u8],
        body: &'a [u8],
        at_once: bool,
    ) -> Option<(Cow<'a, [u8]>, usize)> {
        let whole = whole_messages(body);
        match self.method(target) {
            Method::Watch if whole == 0 => Some((Cow::Borrowed(&[]), 0)),
            Method::Watch => Some((Cow::Borrowed(SERVING), whole)),
            Method::Chat if at_once => Some((Cow::Borrowed(&body[..whole]), whole)),
            Method::Reflection => Some((Cow::Owned(self.reflect(&body[..whole])), whole)),
            _ => None,
        }
    }

    /// Returns `true` if the answer to a call of this method goes on until its client cancels it.
    pub(crate) fn watches(&self, target: &[u8]) -> bool {
        self.method(target) == Method::Watch
    }

    /// The reply of a failed call.
    pub(in crate::sink) fn failure(&self, code: u16) -> Option<&EncodedReply> {
        self.failures.get(usize::from(code).checked_sub(1)?)
    }

    /// Appends the header block of a good answer.
    pub(crate) fn write_head(&self, book: &HeaderBlockCache, indexing: &mut Indexing, out: &mut Vec<u8>) {
        Answer::plain(&self.good, 0).write_block(book, indexing, out);
    }

    /// The header block of the trailers of a good answer.
    pub(crate) fn trailers(&self) -> &[u8] {
        Answer::plain(&self.good, 0).trailers().unwrap_or_default()
    }

    fn reflect(&self, body: &[u8]) -> Vec<u8> {
        let mut answers = Vec::new();
        for message in each(body) {
            write_message(&self.reflection.answer(&message[PREFIX..]), &mut answers);
        }
        answers
    }

    /// The answer to a call, the sink's request `number`.
    pub(super) fn answer<'a>(&'a self, call: &'a GrpcCall<'_>, number: u64) -> Answer<'a> {
        if let Some(failed) = call.status.checked_sub(1) {
            return Answer::plain(&self.failures[usize::from(failed)], number);
        }
        if call.counts {
            return Answer::plain(&self.number, number);
        }
        let form = match call.messages.first() {
            Some(1) => &self.gzip,
            _ => &self.good,
        };
        Answer { given: &call.messages, ..Answer::plain(form, number) }
    }
}

/// Returns the message at the start of a body, with its prefix; `None` if it is not whole or not a message.
fn first(body: &[u8]) -> Option<&[u8]> {
    let message = Messages::new(body).allow_compressed(true).next()?.ok()?;
    body.get(..PREFIX + message.len())
}

/// Returns the length of the message at the start of a body, with its prefix; all of the body if there is
/// none.
pub(crate) fn first_length(body: &[u8]) -> usize {
    first(body).map_or(body.len(), <[u8]>::len)
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

    fn forms(messages: u32) -> GrpcForms {
        let method = |path: &str, client_streams, server_streams| DescribedMethod {
            path: path.to_owned(),
            client_streams,
            server_streams,
        };
        let service = Grpc {
            files: Vec::new(),
            methods: vec![
                method("/a.B/Repeat", false, true),
                method("/a.B/Collect", true, false),
                method("/a.B/Chat", true, true),
            ],
            messages,
            every: Nanos::ZERO,
        };
        GrpcForms::new(&service, &mut HeaderBlockCache::new())
    }

    const TWO: &[u8] = b"\0\0\0\0\x01a\0\0\0\0\x01b";

    #[test]
    fn methods_answer_with_their_messages() {
        let forms = forms(3);
        let told = |path: &str, body: &[u8]| {
            let call = forms.ask(path.as_bytes(), body, None);
            (call.status, call.messages.into_owned())
        };
        assert_eq!(told("/any.Thing/At", TWO), (0, TWO.to_vec()));
        assert_eq!(told("/a.B/Chat", TWO), (0, TWO.to_vec()));
        assert_eq!(told("/a.B/Repeat", &TWO[..6]), (0, TWO[..6].repeat(3)));
        assert_eq!(told("/a.B/Collect", TWO), (0, TWO[6..].to_vec()));
        assert_eq!(told("/a.B/Collect", b""), (0, vec![0; PREFIX]));
        assert_eq!(told("/grpc.health.v1.Health/Check", b"\0\0\0\0\0"), (0, SERVING.to_vec()));
        for broken in [&b"<html>"[..], &TWO[..8], b"\x02\0\0\0\0"] {
            assert_eq!(told("/any.Thing/At", broken).0, INTERNAL, "{}", broken.escape_ascii());
        }
        assert_eq!(told("/a.B/Repeat", &[&b"\0\x01\xe0\0\0"[..], &vec![0; 0x01e0_0000]].concat()).0, 8);
        let count = forms.ask(b"/plimsoll.sink.v1.Sink/Count", TWO, None);
        let answer = forms.answer(&count, 7);
        assert_eq!(answer.body(false, &mut Default::default()), b"\0\0\0\0\x09\x09\x07\0\0\0\0\0\0\0");
    }

    #[test]
    fn clients_choose_the_status() {
        let forms = forms(1);
        for (text, status) in [("5", 5), ("16", 16), ("0", 0), ("17", 0), ("x", 0)] {
            let call = forms.ask(b"/a.B/C", b"", Some(text.as_bytes()));
            assert_eq!(call.status, status, "{text}");
            assert_eq!(forms.answer(&call, 0).form.status, if status == 0 { 200 } else { status });
        }
    }

    #[test]
    fn chats_and_reflection_are_answered_as_they_go_on() {
        let forms = forms(1);
        let part = |path: &str, at_once| forms.answer_part(path.as_bytes(), &TWO[..8], at_once);
        assert_eq!(part("/a.B/Chat", true), Some((Cow::Borrowed(&TWO[..6]), 6)));
        assert_eq!(part("/a.B/Chat", false), None);
        assert_eq!(part("/a.B/Collect", true), None);
        assert_eq!(part("/grpc.health.v1.Health/Watch", false), Some((Cow::Borrowed(SERVING), 6)));
        assert!(forms.watches(b"/grpc.health.v1.Health/Watch"));
        let (_, bytes) = part("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", false).unwrap();
        assert_eq!(bytes, 6);
    }
}
