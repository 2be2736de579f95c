//! Messages that a WebSocket sends by itself: answers by rules, and heartbeats.

use plimsoll_core::Nanos;
use plimsoll_document::{Field, Place, Problem, WebSocketSpec};
use plimsoll_scenario::{AnswerSpec, Body, ExtractSpec, HeartbeatSpec, ReactionSpec, Source};
use plimsoll_schedule::parse_duration;

use super::known::Known;
use super::scenario::{First, Part};
use super::{Compiler, is_on};

const HINT: &str = "write `answer: [{receive: '2', send: '3'}]`";

/// Shortest time between two heartbeats: shorter ones are a load, which steps make.
const SHORTEST: Nanos = Nanos::from_millis(1);

impl Compiler<'_, '_> {
    /// The rules of the WebSocket that a step opens.
    pub(super) fn answers(
        &mut self,
        spec: &WebSocketSpec,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<Vec<AnswerSpec>> {
        let rules = spec.answer.iter().map(|rule| self.answer(rule, part, known));
        rules.collect::<Vec<_>>().into_iter().collect()
    }

    fn answer(
        &mut self,
        field: &Field<plimsoll_document::AnswerSpec>,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<AnswerSpec> {
        let (rule, place) = (field.get()?, field.place());
        // That there is nothing was told where the mapping was read.
        if *rule == plimsoll_document::AnswerSpec::default() {
            return None;
        }
        if rule.receive.is_absent() {
            let problem = Problem::new("the rule does not say which messages it answers");
            return self.form(place, problem.with_hint(HINT));
        }
        let receive = self.described(&rule.receive, part, known);
        let extract = self.extractions(&rule.extract, part, known);
        let mut of_rule = known.clone();
        let mut owned = Some(());
        for (name, place, _) in &rule.extract.0 {
            let Some(variable) = self.variable(&name.0) else { continue };
            of_rule.sets(variable);
            owned = owned.and(self.owned_by_rules(variable, &name.0, *place, part));
        }
        let extract = extract?;
        self.of_message(&extract, place)?;
        let send = self.answering(rule, place, part, &of_rule)?;
        owned?;
        let rule = AnswerSpec { receive: receive?, extract, send, binary: is_on(&rule.binary) };
        let answers = vec![rule.clone()];
        self.try_handler(ReactionSpec { answers, ..ReactionSpec::default() }, place)?;
        Some(rule)
    }

    /// The heartbeat of the WebSocket that a step opens. `None`: it is there, and is wrong.
    pub(super) fn heartbeat(
        &mut self,
        spec: &WebSocketSpec,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<Option<HeartbeatSpec>> {
        let (field, place) = (&spec.heartbeat, spec.heartbeat.place());
        if field.is_absent() {
            return Some(None);
        }
        let heartbeat = field.get()?;
        // That there is nothing was told where the mapping was read.
        if *heartbeat == plimsoll_document::HeartbeatSpec::default() {
            return None;
        }
        let plimsoll_document::HeartbeatSpec { every, send, send_file, binary, .. } = heartbeat;
        if every.is_absent() || send.is_absent() && send_file.is_absent() {
            let problem = Problem::new("a heartbeat has `every`, and `send` or `send_file`");
            return self.form(place, problem.with_hint("write `heartbeat: {every: 30s, send: text}`"));
        }
        let interval = match self.read(every, parse_duration)? {
            Some(interval) if interval >= SHORTEST => Some(interval),
            _ => self.fail(every.place(), Problem::new("heartbeats are at least 1ms apart")),
        };
        let send = self.message(send, send_file, place, part, known);
        Some(Some(HeartbeatSpec { every: interval?, send: send?, binary: is_on(binary) }))
    }

    /// Refuses a variable that has a value for steps: a message may come between any two of them.
    fn owned_by_rules(&mut self, variable: u16, name: &str, place: Place, part: &Part<'_>) -> Option<()> {
        let is_first = part.first.get(usize::from(variable)) != Some(&First::Nothing);
        if !is_first && !part.sets.contains(&variable) {
            return Some(());
        }
        let message = format!("`{name}` has a value of its own, which an answer would replace at any time");
        self.fail(Some(place), Problem::new(message).with_hint("call the one of the rule something else"))
    }

    /// Refuses values that are not taken from the body: a message has nothing else.
    pub(super) fn of_message(&mut self, extract: &[ExtractSpec], place: Option<Place>) -> Option<()> {
        let is_of_message = |source: &Source| {
            matches!(source, Source::Body | Source::JsonPointer(_) | Source::JsonPath(_) | Source::XPath(_))
        };
        if extract.iter().all(|take| is_of_message(&take.source)) {
            return Some(());
        }
        let problem = Problem::new("a message has a body, and nothing else to take");
        self.form(place, problem.with_hint("take it with `json`, `xpath`, `regex` or `body: true`"))
    }

    fn answering(
        &mut self,
        rule: &plimsoll_document::AnswerSpec,
        place: Option<Place>,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<Body> {
        if rule.send.is_absent() && rule.send_file.is_absent() {
            let without = [
                ("extract", rule.extract.0.first().map(|(_, place, _)| *place)),
                ("binary", rule.binary.place()),
            ];
            if let Some((key, place)) = without.into_iter().find_map(|(key, place)| Some((key, place?))) {
                let problem = Problem::new(format!("`{key}` has no effect without an answer"));
                return self.form(Some(place), problem.with_hint(HINT));
            }
            return Some(Body::None);
        }
        self.message(&rule.send, &rule.send_file, place, part, known)
    }
}
