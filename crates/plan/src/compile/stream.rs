//! Responses that are streams of events.

use plimsoll_document::{Place, Problem, RequestStep};
use plimsoll_scenario::{EventStream, ReactionSpec, Source};

use super::Compiler;

impl Compiler<'_, '_> {
    /// Compiles the stream of a step's response, which its body may determine. Returns `None` if it is given
    /// but wrong.
    pub(super) fn stream(
        &mut self,
        request: &RequestStep,
        by_body: Option<EventStream>,
    ) -> Option<Option<EventStream>> {
        let Some(name) = self.plain_given(&request.stream)? else { return Some(by_body) };
        if by_body.is_some() {
            let problem = Problem::new("the method says that the answer is a stream of messages");
            return self.form(request.stream.place(), problem.with_hint("leave `stream` out"));
        }
        match EventStream::by_name(name.trim()) {
            Some(stream) => Some(Some(stream)),
            None => {
                let problem = Problem::new(format!("`{name}` is not a stream of events"));
                let hint = format!("write one of {}", EventStream::NAMES.join(", "));
                self.form(request.stream.place(), problem.with_hint(hint))
            }
        }
    }

    /// Reports expectations that a streamed response cannot meet: it is not one document, and is not
    /// repeated.
    pub(super) fn check_streamed(&mut self, reaction: &ReactionSpec, place: Option<Place>) -> Option<()> {
        let until = reaction.poll.iter().flat_map(|poll| &poll.until);
        let sources = reaction.checks.iter().chain(until).map(|check| &check.source);
        let mut sources = sources.chain(reaction.extract.iter().map(|take| &take.source));
        if reaction.stream.is_none() {
            if sources.any(|source| matches!(source, Source::Event { .. })) {
                let problem = Problem::new("only a response that is a stream has events");
                let hint = format!("write `stream` in the step: {}", EventStream::NAMES.join(", "));
                return self.fail(place, problem.with_hint(hint));
            }
            return Some(());
        }
        let is_document = |source: &Source| {
            matches!(source, Source::JsonPointer(_) | Source::JsonPath(_) | Source::XPath(_))
        };
        if sources.any(is_document) || !reaction.collect.is_empty() {
            let problem = Problem::new("a stream of events is not a JSON or XML document");
            let hint = "look at its events: `expect: {events: {last: {json: {/a: b}}}}`, \
                        `extract: {a: {event: first, json: /a}}`";
            return self.fail(place, problem.with_hint(hint));
        }
        let is_judged = reaction.judge.as_ref().is_some_and(|spec| spec.judge.needs_body());
        if reaction.poll.is_some() || is_judged {
            let problem =
                Problem::new("`stream` cannot be combined with a response that is polled for or judged");
            return self.fail(place, problem.with_hint("leave one of them out"));
        }
        Some(())
    }
}
