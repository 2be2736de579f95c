//! Requests of the cache protocol: frames instead of heads and bodies.

use std::sync::Arc;

use plimsoll_core::Random;
use plimsoll_wire::cache::{FrameHead, LONGEST_FRAME, Operation};

use crate::{Context, Template, TemplateError};

/// One frame, compiled: what comes before the key is always the same.
#[derive(Clone)]
pub(crate) struct Frame {
    operation: Operation,
    head: FrameHead,
    key: Template,
    value: Value,
}

/// What is stored.
#[derive(Clone)]
pub(crate) enum Value {
    /// Nothing: an empty value, or the operation has none.
    None,
    Template(Template),
    /// Sent behind the frame's other bytes, and not by it.
    Shared(Arc<[u8]>),
}

impl Frame {
    /// Checks what is known before the run.
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
        Ok(Self { operation, head: FrameHead::new(operation, cache.as_bytes()), key, value })
    }

    pub(crate) const fn operation(&self) -> Operation {
        self.operation
    }

    /// Appends the frame, but for a shared value. What variables make longer than a frame may be is written all
    /// the same: it is for the server to refuse.
    pub(crate) fn render(&self, context: &Context<'_>, random: &mut Random, out: &mut Vec<u8>) {
        let mut frame = self.head.begin(out);
        let mut behind = 0;
        if self.operation != Operation::Ping {
            self.key.render(context, random, out);
            frame.key_written(out);
        }
        if self.operation == Operation::Put {
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
        _ => Err(TemplateError::new(format!("`{method}` is no operation of a cache"))
            .with_hint("there are PUT, GET, DELETE and PING")),
    }
}
