//! Scripts in JavaScript and TypeScript, which Oxc's parser reads, with bounds.

use std::path::Path;

use oxc_allocator::Allocator;
use oxc_ast::ast;
use oxc_parser::Parser;
use oxc_span::{LabeledSpan, SourceType};
use plimsoll_document::{Problem, Problems};

use crate::findings::quoted;

/// Longest script in bytes.
const LONGEST: usize = 4 << 20;

/// Deepest nesting of brackets, and most `<` in a row, which may be those of types.
const DEEPEST_BRACKETS: usize = 300;

/// Stack of the parser for each byte of a script: it calls itself for what is within something else, and
/// takes about 1 KiB for each bracket. The memory is reserved, and used as far as a script needs it.
const STACK_OF_A_BYTE: usize = 2 << 10;

/// Stack of the parser for any script, beside what the bytes of the script add.
const STACK: usize = 16 << 20;

/// Parses a script and returns the result of `lower`, which runs where the stack is large enough for both.
///
/// # Errors
/// The script is too long, nested too deeply, or has a mistake in its syntax; `hint` says what it has to be.
pub(crate) fn read<T: Send>(
    name: &str,
    text: &str,
    hint: &str,
    lower: impl FnOnce(&ast::Program<'_>) -> T + Send,
) -> Result<T, Problems> {
    let wrong = |line: usize, message: &str| -> Problems {
        Problem::new(format!("{name}:{line}: {message}")).with_hint(hint).into()
    };
    if text.len() > LONGEST {
        return Err(wrong(1, "the script is longer than 4 MiB"));
    }
    if let Some(at) = too_deep(text) {
        let message = format!("brackets are nested deeper than {DEEPEST_BRACKETS}");
        return Err(wrong(line_of(text, at), &message));
    }
    let is_typed =
        Path::new(name).extension().is_some_and(|ending| ["ts", "mts", "cts"].iter().any(|ts| ending == *ts));
    let read = || {
        let allocator = Allocator::default();
        let kind = if is_typed { SourceType::ts() } else { SourceType::mjs() };
        let mut parsed = Parser::new(&allocator, text, kind).parse();
        if !is_typed && parsed.diagnostics.has_errors() {
            // A script from the standard input has no name that would say that it has types.
            let typed = Parser::new(&allocator, text, SourceType::ts()).parse();
            if !typed.diagnostics.has_errors() {
                parsed = typed;
            }
        }
        if let Some(error) = parsed.diagnostics.errors().next() {
            let at = error.labels.first().map_or(0, LabeledSpan::offset);
            return Err((line_of(text, at as usize), quoted(&error.message)));
        }
        Ok(lower(&parsed.program))
    };
    let result = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .stack_size(STACK + text.len() * STACK_OF_A_BYTE)
            .spawn_scoped(scope, read);
        thread.ok().and_then(|thread| thread.join().ok())
    });
    match result {
        Some(Ok(read)) => Ok(read),
        Some(Err((line, message))) => Err(wrong(line, &message)),
        None => Err(wrong(1, "there is not enough memory to read it")),
    }
}

/// The texts around the slots of a template.
pub(crate) fn texts(template: &ast::TemplateLiteral<'_>) -> Vec<String> {
    let text = |part: &ast::TemplateElement<'_>| {
        part.value.cooked.as_ref().map_or_else(|| part.value.raw.to_string(), ToString::to_string)
    };
    template.quasis.iter().map(text).collect()
}

/// The terms of a sum, which is nested to the left: long sums are lists, and not nested deeply.
pub(crate) fn terms<'e, 'a>(sum: &'e ast::BinaryExpression<'a>) -> Vec<&'e ast::Expression<'a>> {
    let (mut terms, mut left) = (vec![&sum.right], &sum.left);
    while let ast::Expression::BinaryExpression(inner) = left
        && inner.operator.as_str() == "+"
    {
        terms.push(&inner.right);
        left = &inner.left;
    }
    terms.push(left);
    terms.reverse();
    terms
}

/// The number of the line there, from 1.
fn line_of(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or_default().matches('\n').count() + 1
}

/// The place of the first bracket that is nested too deeply. It is a rough count, which takes comments and
/// regular expressions for code.
fn too_deep(text: &str) -> Option<usize> {
    let (mut depth, mut angles, mut quote, mut is_escaped) = (0_usize, 0, None, false);
    for (at, byte) in text.bytes().enumerate() {
        match quote {
            Some(_) if is_escaped => is_escaped = false,
            Some(_) if byte == b'\\' => is_escaped = true,
            // Only the quotes of templates hold several lines.
            Some(open) if byte == open || (byte == b'\n' && open != b'`') => quote = None,
            Some(_) => {}
            None => match byte {
                b'"' | b'\'' | b'`' => quote = Some(byte),
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => (depth, angles) = (depth.saturating_sub(1), 0),
                b'<' => angles += 1,
                b';' => angles = 0,
                _ => {}
            },
        }
        if depth.max(angles) > DEEPEST_BRACKETS {
            return Some(at);
        }
    }
    None
}
