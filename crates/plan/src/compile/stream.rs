//! Responses that are streams of events.

use plimsoll_scenario::{EventStream, ReactionSpec, Source};

use super::Compiler;
use crate::document::RequestStep;
use crate::{Place, Problem};

impl Compiler<'_, '_> {
    /// Compiles the stream of a step's response. Returns `None` if it is given but wrong.
    pub(super) fn stream(&mut self, request: &RequestStep) -> Option<Option<EventStream>> {
        let Some(name) = self.plain_given(&request.stream)? else { return Some(None) };
        match EventStream::by_name(name.trim()) {
            Some(stream) => Some(Some(stream)),
            None => {
                let problem = Problem::new(format!("`{name}` is no stream of events"));
                let hint = format!("write one of {}", EventStream::NAMES.join(", "));
                self.form(request.stream.place(), problem.with_hint(hint))
            }
        }
    }

    /// Reports what cannot be asked of a response that is a stream: it is no one document, and is not
    /// repeated.
    pub(super) fn check_streamed(&mut self, reaction: &ReactionSpec, place: Option<Place>) -> Option<()> {
        if reaction.stream.is_none() {
            return Some(());
        }
        let sources = reaction.checks.iter().map(|check| &check.source);
        let mut sources = sources.chain(reaction.extract.iter().map(|take| &take.source));
        let is_document = |source: &Source| {
            matches!(source, Source::JsonPointer(_) | Source::JsonPath(_) | Source::XPath(_))
        };
        if sources.any(is_document) || !reaction.collect.is_empty() {
            let problem = Problem::new("a stream of events is no document that JSON or XML can be taken of");
            let hint = "use `body` with `contains` or `regex`, which see the events as they came";
            return self.fail(place, problem.with_hint(hint));
        }
        if reaction.poll.is_some() || reaction.judge.is_some() {
            let problem = Problem::new("`stream` does not go with a response that is polled for or judged");
            return self.fail(place, problem.with_hint("leave one of them out"));
        }
        Some(())
    }
}
