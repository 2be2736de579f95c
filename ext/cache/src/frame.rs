//! Requests of the protocol: frames instead of heads and bodies.

use std::sync::Arc;

use plimsoll_core::Random;
use plimsoll_scenario::{
    Context, Fingerprint, Frame, FrameContent, Framed, Framing, RequestSpec, Scope, Template, TemplateError,
};

use crate::wire::{FrameHead, LONGEST_FRAME, Operation};

/// The protocol with the name of a cache.
#[derive(Clone, Debug)]
pub(crate) struct CacheFraming {
    pub(crate) name: String,
}

impl Framing for CacheFraming {
    fn fingerprint(&self, hash: Fingerprint) -> Fingerprint {
        hash.with_field(b"cache").with_field(self.name.as_bytes())
    }

    fn compile(
        &self,
        spec: &RequestSpec,
        scope: &Scope<'_>,
        content: FrameContent,
    ) -> Result<Framed, TemplateError> {
        let operation = operation(&spec.method)?;
        let key = Template::parse_in(spec.target.as_bytes(), scope).map_err(|error| error.at("key"))?;
        let frame = CacheFrame::compile(operation, &self.name, key.clone(), content)?;
        Ok(Framed { text: key, frame: Arc::new(frame) })
    }
}

/// One frame, compiled: the bytes before the key are always the same.
struct CacheFrame {
    head: FrameHead,
    key: Template,
    value: FrameContent,
}

impl CacheFrame {
    /// Checks the constant parts before the run.
    fn compile(
        operation: Operation,
        cache: &str,
        key: Template,
        value: FrameContent,
    ) -> Result<Self, TemplateError> {
        let least = |text: &Template| text.fixed_len().unwrap_or(text.literals().len());
        let shortest = cache.len()
            + least(&key)
            + match &value {
                FrameContent::None => 0,
                FrameContent::Template(value) => least(value),
                FrameContent::Shared(bytes) => bytes.len(),
            };
        if shortest > LONGEST_FRAME {
            let message = format!(
                "cache, key and value are {shortest} bytes: a frame has no more than {LONGEST_FRAME}"
            );
            return Err(TemplateError::new(message).with_hint("store a smaller value"));
        }
        Ok(Self { head: FrameHead::new(operation, cache.as_bytes()), key, value })
    }
}

impl Frame for CacheFrame {
    fn render(&self, context: &Context<'_>, random: &mut Random, out: &mut Vec<u8>) {
        let mut frame = self.head.begin(out);
        let mut behind = 0;
        let operation = self.head.operation();
        if operation != Operation::Ping {
            self.key.render(context, random, out);
            frame.key_written(out);
        }
        if operation == Operation::Put {
            match &self.value {
                FrameContent::None => {}
                FrameContent::Template(template) => template.render(context, random, out),
                FrameContent::Shared(bytes) => behind = bytes.len(),
            }
        }
        frame.finish_before(behind, out);
    }

    fn kind(&self) -> u16 {
        self.head.operation().kind()
    }
}

/// The operation of a method.
fn operation(method: &str) -> Result<Operation, TemplateError> {
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
    use crate::wire::write_request;
    use plimsoll_scenario::{Body, Dialect, RequestTemplate, SentRequest};

    use super::*;

    fn compiled(method: &str, key: &str, body: Body) -> Result<RequestTemplate, TemplateError> {
        let spec = RequestSpec {
            dialect: Dialect::Framed(Arc::new(CacheFraming { name: "perf_test".to_owned() })),
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
            assert_eq!(request.frame_kind(), operation.kind());
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
