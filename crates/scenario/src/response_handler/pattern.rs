//! Regular expressions without an allocation for each match.

use regex_automata::meta::{BuildError, Config, Regex};
use regex_automata::util::primitives::NonMaxUsize;
use regex_automata::util::syntax;

use crate::TemplateError;

/// Bytes that one compiled expression may take: the limit of the `regex` crate.
const SIZE_MAX: usize = 10 << 20;

/// A regular expression of the `regex` crate, on bytes. That crate's own type has no way to find a group
/// without allocating; this is its engine.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    regex: Regex,
    has_group: bool,
}

impl Pattern {
    pub(super) fn parse(text: &str) -> Result<Self, TemplateError> {
        let config = Config::new().utf8_empty(false).nfa_size_limit(Some(SIZE_MAX));
        let syntax = syntax::Config::new().utf8(false);
        let built = Regex::builder().configure(config).syntax(syntax).build(text);
        let regex = built.map_err(|error| {
            TemplateError::new(format!("the regular expression `{text}`: {}", reason(&error)))
        })?;
        Ok(Self { has_group: regex.group_info().group_len(0.into()) > 1, regex })
    }

    /// Returns `true` if the expression matches anywhere in `text`.
    pub(super) fn is_match(&self, text: &[u8]) -> bool {
        self.regex.is_match(text)
    }

    /// The first group of the first match, or all of the match if there are no groups.
    pub(super) fn first_group<'t>(&self, text: &'t [u8]) -> Option<&'t [u8]> {
        // Begin and end of the whole match, then those of the first group.
        let mut slots: [Option<NonMaxUsize>; 4] = [None; 4];
        let wanted = if self.has_group { 2 } else { 0 };
        self.regex.search_slots(&text.into(), &mut slots[..wanted + 2])?;
        let (start, end) = (slots[wanted]?, slots[wanted + 1]?);
        text.get(start.get()..end.get())
    }
}

/// Returns the reason in one line, which is the last one of a syntax error's message.
fn reason(error: &BuildError) -> String {
    match (error.size_limit(), error.syntax_error()) {
        (Some(_), _) => format!("it takes more than {SIZE_MAX} bytes"),
        (None, Some(syntax)) => {
            let text = syntax.to_string();
            let last = text.lines().last().unwrap_or_default();
            last.strip_prefix("error: ").unwrap_or(last).to_owned()
        }
        (None, None) => error.to_string(),
    }
}
