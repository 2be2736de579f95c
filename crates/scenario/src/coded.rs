//! Bodies in a binary form, with texts within that vary from request to request.

use std::fmt;
use std::sync::Arc;

use plimsoll_core::Random;

use crate::program::excerpt;
use crate::{Context, Scope, Template, TemplateError};

/// A binary form of bodies, known to the crate that makes them.
pub trait Code: fmt::Debug + Send + Sync {
    /// Appends one body. `write` appends the text of a part; it is to be called once for each of them, in
    /// the same order every time.
    fn encode(&self, write: &mut dyn FnMut(usize, &mut Vec<u8>), out: &mut Vec<u8>);

    /// Returns why a text cannot be the one of this part, as words behind it: `is no int32`.
    fn unfit(&self, part: usize, text: &[u8]) -> Option<String>;

    /// Most bytes that a body has beside the texts of its parts.
    fn longest(&self) -> usize;
}

/// A body in a binary form, before it is compiled.
#[derive(Clone)]
pub struct CodedBody {
    /// The texts that vary, as templates.
    pub parts: Vec<String>,
    /// How many times the form is written, at least 1. Each has a number of its own in place of the index of
    /// the arrival.
    pub repeat: u64,
    /// The form.
    pub code: Arc<dyn Code>,
    /// Identity of the form and the repetitions: the same text, the same bodies.
    pub of: Arc<str>,
}

impl fmt::Debug for CodedBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodedBody").field("of", &self.of).finish_non_exhaustive()
    }
}

impl PartialEq for CodedBody {
    fn eq(&self, other: &Self) -> bool {
        (&self.of, &self.parts) == (&other.of, &other.parts)
    }
}

impl Eq for CodedBody {}

/// A body in a binary form, compiled.
#[derive(Clone)]
pub struct CodedText {
    parts: Box<[Template]>,
    repeat: u64,
    code: Arc<dyn Code>,
    of: Arc<str>,
}

impl CodedText {
    /// Compiles the parts.
    pub(crate) fn compile(body: &CodedBody, scope: &Scope<'_>) -> Result<Self, TemplateError> {
        let parts = body.parts.iter().map(|part| Template::parse_in(part.as_bytes(), scope));
        Ok(Self {
            parts: parts.collect::<Result<_, _>>()?,
            repeat: body.repeat,
            code: Arc::clone(&body.code),
            of: Arc::clone(&body.of),
        })
    }

    /// The texts that vary.
    pub(crate) fn parts(&self) -> &[Template] {
        &self.parts
    }

    /// Most bytes of a rendering, without the values of variables.
    pub(crate) fn longest(&self) -> usize {
        let once = self.code.longest() + self.parts.iter().map(Template::longest).sum::<usize>();
        once.saturating_mul(usize::try_from(self.repeat).unwrap_or(usize::MAX))
    }

    /// Returns about as many bytes as values of variables with these lengths, in bytes, take.
    pub(crate) fn len_of_variables(&self, len_of: &dyn Fn(u16) -> usize) -> usize {
        let once =
            self.parts.iter().fold(0_usize, |len, part| len.saturating_add(part.len_of_variables(len_of)));
        once.saturating_mul(usize::try_from(self.repeat).unwrap_or(usize::MAX))
    }

    /// Returns the number of random numbers that a rendering takes.
    pub(crate) fn draws(&self) -> u32 {
        let once = self.parts.iter().map(Template::draws).sum::<u32>();
        once.saturating_mul(u32::try_from(self.repeat).unwrap_or(u32::MAX))
    }

    /// Appends the bodies.
    pub(crate) fn render(&self, context: &Context<'_>, random: &mut Random, out: &mut Vec<u8>) {
        let first = context.index.wrapping_mul(self.repeat);
        for number in 0..self.repeat {
            let context = Context { index: first.wrapping_add(number), ..*context };
            self.code.encode(&mut |part, out| self.parts[part].render(&context, random, out), out);
        }
    }

    /// Returns why these values of variables cannot be sent.
    pub(crate) fn unfit(&self, variables: &[Vec<u8>]) -> Option<String> {
        let reads = |part: &&Template| part.uses_variables();
        for (number, part) in self.parts.iter().enumerate().filter(|(_, part)| reads(part)) {
            let mut rendered = Vec::new();
            let text = match part.sole_variable() {
                Some(index) => variables.get(usize::from(index)).map_or(&[][..], Vec::as_slice),
                None => {
                    let context = Context { variables, ..Context::default() };
                    part.render(&context, &mut Random::new(0, 0), &mut rendered);
                    &rendered
                }
            };
            if let Some(reason) = self.code.unfit(number, text) {
                return Some(format!("the value `{}` {reason}", excerpt(text)));
            }
        }
        None
    }
}

impl PartialEq for CodedText {
    fn eq(&self, other: &Self) -> bool {
        (&self.of, &self.parts) == (&other.of, &other.parts)
    }
}

impl Eq for CodedText {}

impl fmt::Debug for CodedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodedText").field("of", &self.of).field("parts", &self.parts).finish_non_exhaustive()
    }
}
