//! Steps whose bodies are messages of gRPC.

use std::sync::Arc;

use crate::fields::read_timeout;
use plimsoll_core::{Nanos, Random};
use plimsoll_document::{BodyKey, Place, Problem, RequestStep};
use plimsoll_plan::{BodyContent, BodyContext, BodyPart, body_key};
use plimsoll_scenario::{
    Bodies, Body, BodySupply, Code as _, CodedBody, Context, EventStream, Fingerprint, JudgeSpec,
    MessageStream, SuppliedBody,
};
use prost_reflect::MethodDescriptor;
use serde_json::{Map, Value};

use super::judge::CallJudge;
use super::message::{MessageCode, Shape};
use super::schema::messages_of;
use super::{GrpcSpec, Schema};

/// Key of bodies that are messages of gRPC, with the judges of the answers to them.
pub static CALL: BodyKey = body_key::<GrpcSpec>(
    "grpc",
    "Body as a message of gRPC. The status of the call decides whether it succeeded; checks and values read \
     the answer as JSON.",
);

impl BodyPart for GrpcSpec {
    fn deadline(&self, headers: &[(String, String)]) -> Option<Nanos> {
        let told = headers.iter().rev().find(|(name, _)| name.eq_ignore_ascii_case("grpc-timeout"));
        told.and_then(|(_, value)| read_timeout(value.as_bytes())).map(Nanos)
    }

    fn compile(
        &self,
        request: &RequestStep,
        place: Option<Place>,
        context: &mut dyn BodyContext,
    ) -> Option<BodyContent> {
        if !context.speaks_http2() {
            let problem = Problem::new("gRPC is spoken over HTTP/2 alone");
            return context
                .fail(place, problem.with_hint("write `http2: true` under `run`, or give --http2"));
        }
        let method = method(self, request, place, context)?;
        let (send, take) = counts(self, &method, context)?;
        let in_turn = turns(self, &method, context)?;
        let compress = context.read(&self.compress, |text| match text {
            "gzip" => Ok(true),
            "none" => Ok(false),
            _ => Err(format!("`{text}` is not one of gzip, none")),
        })?;
        // Servers that are told to compress do so for clients that take it, as the usual ones do.
        let (gzip, takes_gzip) = (compress == Some(true), compress != Some(false));
        let body = messages(self, &method, (send, gzip), place, context)?;
        let headers = [("Content-Type", "application/grpc+proto"), ("TE", "trailers")];
        let of_gzip = [("grpc-encoding", gzip), ("grpc-accept-encoding", takes_gzip)];
        let of_gzip = of_gzip.into_iter().filter_map(|(name, is_said)| is_said.then_some((name, "gzip")));
        let headers = headers.into_iter().chain(of_gzip);
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let of = format!("grpc {}", method.full_name()).into();
        let stream = method.is_server_streaming().then_some(MessageStream { take, in_turn });
        let judge =
            JudgeSpec { of, judge: Arc::new(CallJudge::new(method, stream, takes_gzip)), pending: None };
        Some(BodyContent { body, headers, judge: Some(judge), stream: stream.map(EventStream::Messages) })
    }
}

/// Repetitions of the messages in a call, and the number of answers after which it is cancelled.
fn counts(
    spec: &GrpcSpec,
    method: &MethodDescriptor,
    context: &mut dyn BodyContext,
) -> Option<(u64, Option<u32>)> {
    let number = |text: &str| match text.parse::<u32>() {
        Ok(number) if (1..=MOST_MESSAGES).contains(&number) => Ok(number),
        _ => Err(format!("`{text}` is not a number of messages from 1 to {MOST_MESSAGES}")),
    };
    let of_streams = [
        (&spec.send, method.is_client_streaming(), "to the server"),
        (&spec.take, method.is_server_streaming(), "from the server"),
    ];
    for (field, is_stream, whence) in of_streams {
        if !field.is_absent() && !is_stream {
            let message = format!("`{}` has no stream of messages {whence}", method.full_name());
            return context.fail(field.place(), Problem::new(message).with_hint("leave it out"));
        }
    }
    let send = context.read(&spec.send, number)?;
    Some((send.map_or(1, u64::from), context.read(&spec.take, number)?))
}

/// Returns `true` if messages of both sides take turns.
fn turns(spec: &GrpcSpec, method: &MethodDescriptor, context: &mut dyn BodyContext) -> Option<bool> {
    let is_wanted = spec.wait.get() == Some(&true);
    if is_wanted && !(method.is_client_streaming() && method.is_server_streaming()) {
        let message = format!("`{}` has no streams of messages in both directions", method.full_name());
        return context.fail(spec.wait.place(), Problem::new(message).with_hint("leave `wait` out"));
    }
    Some(is_wanted)
}

/// Messages of one call at most.
const MOST_MESSAGES: u32 = 1_000_000;

/// The method that the path of the step names.
fn method(
    spec: &GrpcSpec,
    request: &RequestStep,
    place: Option<Place>,
    context: &mut dyn BodyContext,
) -> Option<MethodDescriptor> {
    let schema = match (spec.proto.is_absent(), spec.descriptor_set.is_absent()) {
        (false, true) => {
            let path = context.plain(&spec.proto)?;
            Schema::of_proto(&path, &|name| context.imported(name))
        }
        (true, false) => {
            let text = context.plain(&spec.descriptor_set)?;
            match Schema::inline(&text) {
                Some(schema) => schema,
                None => Schema::of_descriptor_set(&context.file(&spec.descriptor_set)?),
            }
        }
        _ => {
            let problem = Problem::new("a call of gRPC needs either `proto` or `descriptor_set`");
            let hint = "write `grpc: {proto: api.proto, message: {…}}`";
            return context.fail_form(place, problem.with_hint(hint));
        }
    };
    let of_file = spec.proto.place().or(spec.descriptor_set.place());
    let schema = match schema {
        Ok(schema) => schema,
        Err(error) => return context.fail(of_file, Problem::from_line(&error.to_string())),
    };
    if request.address.post.is_absent() {
        let problem = Problem::new("a call of gRPC is a POST");
        return context.fail_form(place, problem.with_hint("write `post: /package.Service/Method`"));
    }
    let url = context.plain(&request.address.post)?;
    // The path of a whole URL is behind its server.
    let path =
        url.split_once("://").map_or(&url[..], |(_, rest)| rest.find('/').map_or("", |at| &rest[at..]));
    match schema.method(path) {
        Ok(method) => Some(method),
        Err(error) => context.fail(place, Problem::from_line(&error.to_string())),
    }
}

/// The body with the messages: one that is always the same, or a supply of them.
fn messages(
    spec: &GrpcSpec,
    method: &MethodDescriptor,
    (send, gzip): (u64, bool),
    place: Option<Place>,
    context: &mut dyn BodyContext,
) -> Option<Body> {
    let encoded = |json: Value, of: Option<Place>, context: &mut dyn BodyContext| {
        Some(constant(&code_of(method, Shape::Fixed(json), 0, gzip, of, context)?))
    };
    // The content decides which load it is, and not its place or the name of a file.
    let (all, content) = match (spec.message.is_absent(), spec.messages.is_absent()) {
        (false, false) => {
            let problem = Problem::new("`message` and `messages` exclude each other");
            return context.fail_form(spec.messages.place(), problem);
        }
        (true, true) => {
            let empty = encoded(Value::Object(Map::new()), place, context)?;
            return Some(Body::Raw(empty.repeat(send as usize).into()));
        }
        (false, true) => return message(spec, method, (send, gzip), context),
        (true, false) => {
            let content = context.file(&spec.messages)?;
            let of_file = spec.messages.place();
            let all = match messages_of(&content) {
                Ok(all) => all,
                Err(error) => return context.fail(of_file, Problem::from_line(&error.to_string())),
            };
            (
                all.into_iter().map(|json| encoded(json, of_file, context)).collect::<Option<Vec<_>>>()?,
                content,
            )
        }
    };
    let Some(supply) = context.next_supply() else {
        return context
            .fail(place, Problem::new("the plan has more than 65536 steps with bodies of a supply"));
    };
    let bodies = Bodies::Ready(in_turn(&all, send as usize).into());
    let of = identity(method, (send, gzip), &content);
    context.add_supply(BodySupply { records: 0, bodies, stock: Arc::from([]) });
    Some(Body::Supplied { supply, inquiry: false, of: of.to_string().into() })
}

/// Identity of the bodies with this content.
fn identity(method: &MethodDescriptor, (send, gzip): (u64, bool), content: &[u8]) -> Fingerprint {
    let of = Fingerprint::EMPTY.with(method.full_name().as_bytes()).with(content);
    let of = if send == 1 { of } else { of.with(&send.to_le_bytes()) };
    if gzip { of.with(b"gzip") } else { of }
}

/// The body with the message that the step has itself, or for a stream the messages: what is constant in
/// them is encoded now.
fn message(
    spec: &GrpcSpec,
    method: &MethodDescriptor,
    (send, gzip): (u64, bool),
    context: &mut dyn BodyContext,
) -> Option<Body> {
    let (json, place) = (spec.message.get()?, spec.message.place());
    let mut parts = Vec::new();
    let shape = Shape::of(json, place, context, &mut parts)?;
    let code = code_of(method, shape, parts.len(), gzip, place, context)?;
    let mut content = constant(&code);
    if parts.is_empty() {
        return Some(Body::Raw(content.repeat(send as usize).into()));
    }
    for (number, (text, part)) in parts.iter().enumerate() {
        content.extend_from_slice(text.as_bytes());
        content.push(0);
        // A text without variables that does not fit shows here, and not in the middle of a run.
        let mut sample = Vec::new();
        part.render(&Context::default(), &mut Random::new(0, 0), &mut sample);
        if let Some(reason) = code.unfit(number, &sample).filter(|_| !part.uses_variables()) {
            let sample = String::from_utf8_lossy(&sample);
            return context.fail(place, Problem::new(format!("the value `{sample}` {reason}")));
        }
    }
    let of = identity(method, (send, gzip), &content).to_string().into();
    let parts = parts.into_iter().map(|(text, _)| text).collect();
    Some(Body::Coded(CodedBody { parts, repeat: send, code: Arc::new(code), of }))
}

/// The form of what a call sends, in which so many texts vary: a message, or for a stream an array of them.
fn code_of(
    method: &MethodDescriptor,
    shape: Shape,
    parts: usize,
    gzip: bool,
    place: Option<Place>,
    context: &mut dyn BodyContext,
) -> Option<MessageCode> {
    let messages = match shape.items() {
        Some(messages) if method.is_client_streaming() => messages,
        _ => vec![shape],
    };
    match MessageCode::compile(method, &messages, parts, gzip) {
        Ok(code) => Some(code),
        Err(error) => context.fail(place, Problem::from_line(&error.to_string())),
    }
}

/// What a call sends with nothing in place of the texts that vary.
fn constant(code: &MessageCode) -> Vec<u8> {
    let mut out = Vec::new();
    code.encode(&mut |_, _| {}, &mut out);
    out
}

/// Bodies of `send` messages each, taken in turn from all of them.
fn in_turn(all: &[Vec<u8>], send: usize) -> Vec<SuppliedBody> {
    // As many as there are before they repeat.
    let bodies = (1..=all.len()).find(|bodies| (bodies * send).is_multiple_of(all.len())).unwrap_or(1);
    let body = |first: usize| (first..first + send).flat_map(|at| &all[at % all.len()]).copied().collect();
    (0..bodies).map(|body_number| SuppliedBody::plain(body(body_number * send))).collect()
}
