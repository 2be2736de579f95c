//! Requests of the cache protocol: frames instead of heads and bodies.

use std::sync::Arc;

use plimsoll_core::Random;
use plimsoll_wire::cache::{FrameHead, LONGEST_FRAME, Operation};

use crate::{Context, Template, TemplateError};

/// One frame, compiled: the bytes before the key are always the same.
#[derive(Clone)]
pub(crate) struct Frame {
    head: FrameHead,
    key: Template,
    value: Value,
}

/// Value to store.
#[derive(Clone)]
pub(crate) enum Value {
    /// Nothing: an empty value, or the operation has none.
    None,
    Template(Template),
    /// Sent behind the frame's other bytes, and not by it.
    Shared(Arc<[u8]>),
}

impl Frame {
    /// Checks the constant parts before the run.
    pub(crate) fn compile(
        operation: Operation,
        cache: &str,
        key: Template,
        value: Value,
    ) -> Result<Self, TemplateError> {
        let least = |text: &Template| text.fixed_len().unwrap_or(text.literals().len());
        let shortest = cache.len()
            + least(&key)
            + match &value {
                Value::None => 0,
                Value::Template(value) => least(value),
                Value::Shared(bytes) => bytes.len(),
            };
        if shortest > LONGEST_FRAME {
            let message = format!(
                "cache, key and value are {shortest} bytes: a frame has no more than {LONGEST_FRAME}"
            );
            return Err(TemplateError::new(message).with_hint("store a smaller value"));
        }
        Ok(Self { head: FrameHead::new(operation, cache.as_bytes()), key, value })
    }

    pub(crate) const fn operation(&self) -> Operation {
        self.head.operation()
    }

    /// Appends the frame, except for a shared value. A frame that variables make too long is written all the
    /// same: the server has to refuse it.
    pub(crate) fn render(&self, context: &Context<'_>, random: &mut Random, out: &mut Vec<u8>) {
        let mut frame = self.head.begin(out);
        let mut behind = 0;
        let operation = self.operation();
        if operation != Operation::Ping {
            self.key.render(context, random, out);
            frame.key_written(out);
        }
        if operation == Operation::Put {
            match &self.value {
                Value::None => {}
                Value::Template(template) => template.render(context, random, out),
                Value::Shared(bytes) => behind = bytes.len(),
            }
        }
        frame.finish_before(behind, out);
    }
}

/// The operation of a method.
pub(crate) fn operation(method: &str) -> Result<Operation, TemplateError> {
    match method {
        "PING" => Ok(Operation::Ping),
        "PUT" => Ok(Operation::Put),
        "GET" => Ok(Operation::Get),
        "DELETE" => Ok(Operation::Delete),
        _ => Err(TemplateError::new(format!("`{method}` is not an operation of a cache"))
            .with_hint("there are PUT, GET, DELETE and PING")),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_wire::cache::write_request;

    use super::*;
    use crate::{Body, Dialect, RequestSpec, RequestTemplate, Scope, SentRequest};

    fn compiled(method: &str, key: &str, body: Body) -> Result<RequestTemplate, TemplateError> {
        let spec = RequestSpec {
            dialect: Dialect::Cache { name: "perf_test".to_owned() },
            method: method.to_owned(),
            target: key.to_owned(),
            body,
            ..RequestSpec::default()
        };
        RequestTemplate::compile(&spec, &Scope::default(), None)
    }

    /// Returns the bytes that are sent, a shared value included, and the request as the log of failures would
    /// show it.
    fn sent(request: &RequestTemplate, index: u64) -> (Vec<u8>, SentRequest) {
        let context = Context { index, ..Context::default() };
        let (mut random, mut out, mut shown) = (Random::new(5, 1), Vec::new(), SentRequest::default());
        request.render_request(&context, &mut random.clone(), &mut shown);
        request.render(&context, &mut random, &mut Vec::new(), &mut out);
        if let Some(value) = request.shared_body() {
            out.extend_from_slice(value);
        }
        (out, shown)
    }

    #[test]
    fn frames_are_those_of_the_protocol() {
        let large = Body::Raw(vec![b'x'; 100_000].into());
        let text = |text: &str| Body::Text(text.as_bytes().to_vec());
        for (method, operation, key, body) in [
            ("PING", Operation::Ping, "", Body::None),
            ("GET", Operation::Get, "fixed", Body::None),
            ("GET", Operation::Get, "key-${sequence}", Body::None),
            ("DELETE", Operation::Delete, "k${random_hex(9)}", Body::None),
            ("PUT", Operation::Put, "fixed", text("value")),
            ("PUT", Operation::Put, "", Body::None),
            ("PUT", Operation::Put, "key-${sequence}", text("${fill(9-99,${uuid})}")),
            ("PUT", Operation::Put, "key-${random_int(1,99999)}", large.clone()),
            ("PUT", Operation::Put, "fixed", large),
        ] {
            let request = compiled(method, key, body).unwrap();
            assert_eq!(request.cache_operation(), Some(operation));
            for index in [0, 7, 12_345] {
                let (out, shown) = sent(&request, index);
                let mut expected = Vec::new();
                write_request(operation, b"perf_test", &shown.path, &shown.body, &mut expected).unwrap();
                assert_eq!(out, expected, "{method} {key} {index}");
                assert_eq!(shown.method, method.as_bytes());
            }
            assert_eq!(request.is_static(), !key.contains("${"), "{method} {key}");
        }
    }

    #[test]
    fn what_no_server_takes_is_refused() {
        let body = Body::Raw(vec![0; LONGEST_FRAME].into());
        let error = compiled("PUT", "key", body).unwrap_err();
        assert!(error.message().contains("a frame has no more than 8388608"), "{error:?}");
        assert!(compiled("POST", "key", Body::None).unwrap_err().hint().is_some());
    }
}
