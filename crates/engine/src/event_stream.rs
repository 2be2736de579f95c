//! Streams of events: the state of one response while it comes.

use plimsoll_core::{ErrorClass, Nanos};
use plimsoll_metrics::log::StreamTimes;
use plimsoll_metrics::{EVENT_TIME_LIMIT, EventStreamRecord, EventStreamSample, Goodput, Sample};
use plimsoll_scenario::{CompletionApi, EventFault, EventStream, first_line};
use plimsoll_wire::events::{Event, EventError, EventReader};

/// Tokens of an answer that no server's count is believed to exceed, unless the answer has as many bytes.
/// Reasoning that is counted and not sent is less.
const MOST_TOKENS: u64 = 1_000_000;
/// Tokens of a prompt that no count is believed to exceed: more than any model takes.
const MOST_PROMPT_TOKENS: u64 = 10_000_000;
/// Events with content for each counted token from which the count is not believed. Some servers, and
/// proxies, cut a token into several events.
const EVENTS_PER_TOKEN: u64 = 10;
/// Bytes of an event that are quoted in an error.
const LONGEST_QUOTE: usize = 300;

/// Reading of a step's responses as they come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamedStep {
    pub(crate) stream: EventStream,
    /// Set if the body is not needed once its events are read.
    pub(crate) drains: bool,
    /// Set if the instants of its events are logged.
    pub(crate) logs: bool,
}

/// The time of bytes that came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Receipt {
    /// When the last of them came.
    pub(crate) at: Nanos,
    /// Time for which the others may have waited to be read.
    pub(crate) behind: Nanos,
}

/// The events of one response so far.
///
/// It holds the event that is not whole, and no event after that: the memory of a stream does not grow
/// with its length. It is a part of the capture of its request, and is used again with its memory.
#[derive(Debug)]
pub(crate) struct StreamState {
    reader: EventReader,
    /// Bytes of the kept body that were read.
    read: usize,
    /// When the bytes came that were read last.
    came: Receipt,
    /// Events that came with the bytes that are read now.
    together: u64,
    facts: StreamFacts,
    fault: Option<(EventFault, String)>,
    broken: Option<EventError>,
    /// An event has said that the stream is complete.
    ended: bool,
    /// The first bytes of the body, until an event was there that can be understood: a body that has none is
    /// quoted.
    opening: Vec<u8>,
    /// The instants of the events with content, if they are logged.
    times: Option<Box<StreamTimes>>,
}

/// Instants and counts.
#[derive(Clone, Copy, Debug)]
struct StreamFacts {
    first: Nanos,
    first_content: Nanos,
    first_answer: Nanos,
    last_content: Nanos,
    last: Nanos,
    longest_gap: Nanos,
    events: u64,
    content_events: u64,
    shared_events: u64,
    shared_content_events: u64,
    uncertain_events: u64,
    bytes: u64,
    tokens: Option<u64>,
    prompt_tokens: Option<u64>,
    /// Tokens of reasoning by the server's count, those included that were not sent.
    reasoning_tokens: u64,
    api: Option<CompletionApi>,
    reasoned: bool,
}

const NOTHING: StreamFacts = StreamFacts {
    first: Nanos::MAX,
    first_content: Nanos::MAX,
    first_answer: Nanos::MAX,
    last_content: Nanos::MAX,
    last: Nanos::MAX,
    longest_gap: Nanos::ZERO,
    events: 0,
    content_events: 0,
    shared_events: 0,
    shared_content_events: 0,
    uncertain_events: 0,
    bytes: 0,
    tokens: None,
    prompt_tokens: None,
    reasoning_tokens: 0,
    api: None,
    reasoned: false,
};

impl StreamState {
    /// Nothing has come.
    pub(crate) const fn new(stream: EventStream) -> Self {
        Self {
            reader: EventReader::new(stream.format()),
            read: 0,
            came: Receipt { at: Nanos::ZERO, behind: Nanos::ZERO },
            together: 0,
            facts: NOTHING,
            fault: None,
            broken: None,
            ended: false,
            opening: Vec::new(),
            times: None,
        }
    }

    /// Forgets everything, for another response.
    pub(crate) fn reset(&mut self, stream: EventStream) {
        self.reader.reset(stream.format());
        (self.read, self.facts, self.fault) = (0, NOTHING, None);
        (self.broken, self.ended) = (None, false);
        self.opening.clear();
        self.times = None;
    }

    /// Events so far.
    pub(crate) const fn events(&self) -> u64 {
        self.facts.events
    }

    /// Reads the part of a body that has come at this instant, which is all of it except for what was read
    /// before.
    pub(crate) fn read(
        &mut self,
        step: StreamedStep,
        body: &mut Vec<u8>,
        came: Receipt,
        record: &mut EventStreamRecord,
    ) {
        let Self { reader, read, facts, fault, ended, opening, times, .. } = self;
        let news = body.get(*read..).unwrap_or_default();
        if news.is_empty() {
            return;
        }
        if (facts.events == 0 || fault.is_some()) && opening.len() < OPENING {
            opening.extend_from_slice(&news[..news.len().min(OPENING - opening.len())]);
        }
        self.came = came;
        facts.bytes += news.len() as u64;
        let mut together = 0;
        let told = reader.feed(news, |event| {
            let is_content = facts.note(step.stream, &event, (came, together > 0), record, fault, ended);
            if step.logs {
                log(times.get_or_insert_default(), step.stream, &event, is_content.then_some(came.at));
            }
            together += 1;
        });
        self.broken = self.broken.or(told.err());
        self.together = together;
        *read = body.len();
        if step.drains {
            body.clear();
            *read = 0;
        }
    }

    /// The response is over.
    ///
    /// # Errors
    /// The error class of an incomplete or failed stream, and a message.
    pub(crate) fn finish(
        &mut self,
        step: StreamedStep,
        record: &mut EventStreamRecord,
    ) -> Result<(), (ErrorClass, String)> {
        let Self { reader, facts, fault, ended, came, together, times, .. } = self;
        let mut is_cut = false;
        let whole = reader.finish(|event| {
            // A line of JSON without a line end may be a part of one.
            if step.stream.has_end() && step.stream.read(event.data).fault == Some(EventFault::Malformed) {
                is_cut = true;
                return;
            }
            let is_content = facts.note(step.stream, &event, (*came, *together > 0), record, fault, ended);
            if step.logs {
                log(times.get_or_insert_default(), step.stream, &event, is_content.then_some(came.at));
            }
        });
        let whole = whole && !is_cut;
        if let Some(error) = self.broken {
            return Err((ErrorClass::Protocol, error.to_string()));
        }
        let fault = self.fault.take();
        let is_error = matches!(fault, Some((EventFault::Error, _)));
        // A document of JSON is one that is not a stream, unless its lines are those of Ollama.
        if step.stream.has_end()
            && self.reader.is_in_lines()
            && self.facts.api != Some(CompletionApi::Lines)
            && !is_error
        {
            return Err((ErrorClass::StreamIncomplete, no_event(&self.opening)));
        }
        match fault {
            Some((EventFault::Error, said)) => {
                return Err((ErrorClass::Rejected, format!("the server said in the stream: {said}")));
            }
            Some((EventFault::Malformed, said)) => {
                return Err((
                    ErrorClass::Protocol,
                    format!("an event that is no part of a completion: {said}"),
                ));
            }
            None => {}
        }
        let events = self.facts.events;
        if let EventStream::Messages(_) = step.stream {
            return self.finish_messages(step.stream, whole);
        }
        let why = match (whole, events) {
            (false, 0) => no_event(&self.opening),
            (true, 0) if step.stream.has_end() && !self.ended && !self.opening.trim_ascii().is_empty() => {
                no_event(&self.opening)
            }
            (false, _) => format!("the stream ended in the middle of an event, after {events} whole ones"),
            (true, _) if step.stream.has_end() && !self.ended => {
                let end = self.facts.api.unwrap_or(CompletionApi::Chunks).end();
                format!("the stream ended after {events} events without {end}")
            }
            _ => return Ok(()),
        };
        Err((ErrorClass::StreamIncomplete, why))
    }

    /// Judges the end of a stream of length-prefixed messages, which may have none.
    fn finish_messages(&self, stream: EventStream, whole: bool) -> Result<(), (ErrorClass, String)> {
        let messages = self.facts.events;
        let why = match (whole, stream.enough()) {
            // The call was broken off behind the last one that was wanted, in whatever came after it.
            (_, Some(wanted)) if messages >= u64::from(wanted) => return Ok(()),
            (false, _) => format!("the stream ended in the middle of a message, after {messages} whole ones"),
            (true, Some(wanted)) => {
                format!("the stream ended after {messages} of the {wanted} messages that were to be taken")
            }
            _ => return Ok(()),
        };
        Err((ErrorClass::StreamIncomplete, why))
    }

    /// Returns the instants of the events with content, if they are logged; they are gone from here then.
    pub(crate) fn take_times(&mut self) -> Option<Box<StreamTimes>> {
        self.times.take()
    }

    /// The server's counts of tokens of the answer and of the prompt, if it sent them and they can be.
    pub(crate) fn counts(&self) -> (Option<u64>, Option<u64>) {
        (self.facts.believed_tokens(), self.facts.believed_prompt_tokens())
    }

    /// The sample of a request that ended.
    pub(crate) fn sample(of: Option<&Self>, sample: &Sample) -> EventStreamSample {
        let facts = of.map_or(NOTHING, |state| state.facts);
        EventStreamSample {
            intended: sample.intended,
            sent: sample.sent,
            done: sample.done,
            outcome: sample.outcome,
            // An answer cannot come before its request.
            first: not_before(facts.first, sample.sent),
            first_content: not_before(facts.first_content, sample.sent),
            reasoned: facts.reasoned,
            first_answer: not_before(facts.first_answer, sample.sent),
            last_content: not_before(facts.last_content, sample.sent),
            last: not_before(facts.last, sample.sent),
            longest_gap: facts.longest_gap,
            events: facts.events,
            content_events: facts.content_events,
            shared_events: facts.shared_events,
            shared_content_events: facts.shared_content_events,
            uncertain_events: facts.uncertain_events,
            bytes: facts.bytes,
            tokens: facts.believed_tokens(),
            prompt_tokens: facts.believed_prompt_tokens(),
            hidden_tokens: facts.hidden_tokens(),
            disbelieved: facts.believed_tokens() != facts.tokens
                || facts.believed_prompt_tokens() != facts.prompt_tokens,
        }
    }
}

/// Bytes of a body that are kept until an event is there.
const OPENING: usize = 512;

/// Says that a body which begins like this has no event in it, and what it is instead.
fn no_event(opening: &[u8]) -> String {
    const GZIP: &[u8] = b"\x1f\x8b";
    if opening.starts_with(GZIP) {
        return "the body is compressed by gzip, and events are read as they come: send no `accept-encoding`"
            .to_owned();
    }
    let text = String::from_utf8_lossy(opening);
    let words: Vec<&str> = text.split_whitespace().collect();
    match first_line(words.join(" ").as_bytes()) {
        begins if begins.is_empty() => {
            "the body has no event in it: does the server stream at all?".to_owned()
        }
        begins => {
            format!("the body has no event in it: does the server stream at all? It begins with {begins}")
        }
    }
}

/// Notes an event for the log: the name of the stream, and when content came.
fn log(times: &mut StreamTimes, stream: EventStream, event: &Event<'_>, content: Option<Nanos>) {
    if times.id.is_none() {
        times.id = Some(stream.id_of(event.data).unwrap_or_default().into());
    }
    content.into_iter().for_each(|at| times.note(at));
}

/// The instant, or that of sending where it is earlier; [`Nanos::MAX`] stays.
fn not_before(at: Nanos, sent: Nanos) -> Nanos {
    if at == Nanos::MAX || sent == Nanos::MAX { at } else { at.max(sent) }
}

impl StreamFacts {
    /// The server's count of the answer's tokens, if it can be: a count goes on over what is sent, within
    /// reason.
    fn believed_tokens(&self) -> Option<u64> {
        let can_be = |tokens: &u64| {
            *tokens <= MOST_TOKENS.max(self.bytes)
                && tokens.saturating_mul(EVENTS_PER_TOKEN) >= self.content_events
        };
        self.tokens.filter(can_be)
    }

    /// Tokens of reasoning that were counted, none of which was sent.
    fn hidden_tokens(&self) -> u64 {
        let tokens = self.believed_tokens().filter(|_| !self.reasoned).unwrap_or(0);
        self.reasoning_tokens.min(tokens)
    }

    /// The server's count of the prompt's tokens, if it can be.
    fn believed_prompt_tokens(&self) -> Option<u64> {
        self.prompt_tokens.filter(|tokens| *tokens <= MOST_PROMPT_TOKENS)
    }

    /// Takes in an event that came then, together with another one before it or not. Returns `true` if it has
    /// content.
    fn note(
        &mut self,
        stream: EventStream,
        event: &Event<'_>,
        (came, shared): (Receipt, bool),
        record: &mut EventStreamRecord,
        fault: &mut Option<(EventFault, String)>,
        ended: &mut bool,
    ) -> bool {
        // What came with the last message that was wanted is behind the end.
        if stream.enough().is_some_and(|wanted| self.events >= u64::from(wanted)) {
            return false;
        }
        let at = came.at;
        self.events += 1;
        self.shared_events += u64::from(shared);
        self.first = self.first.min(at);
        self.last = at;
        let said = stream.read(event.data);
        *ended |= said.ends;
        if let Some(found) = said.fault
            && fault.is_none()
        {
            let quote = &event.data[..event.data.len().min(LONGEST_QUOTE)];
            *fault = Some((found, String::from_utf8_lossy(quote).into_owned()));
        }
        let before = self.tokens;
        self.api = self.api.or(said.api);
        if let Some(usage) = said.usage {
            self.tokens = usage.completion_tokens.or(self.tokens);
            self.reasoning_tokens = usage.reasoning_tokens.unwrap_or(self.reasoning_tokens);
            // Some that count in two events have 0 in one of them.
            self.prompt_tokens = usage.prompt_tokens.filter(|tokens| *tokens > 0).or(self.prompt_tokens);
        }
        if !said.content {
            return false;
        }
        self.content_events += 1;
        record.note_content();
        if said.reasoning {
            self.reasoned = true;
        } else {
            self.first_answer = self.first_answer.min(at);
        }
        if shared && self.last_content == at {
            self.shared_content_events += 1;
            self.uncertain_events += u64::from(came.behind > EVENT_TIME_LIMIT);
        }
        if self.first_content == Nanos::MAX {
            self.first_content = at;
        } else {
            let gap = at.since(self.last_content);
            self.longest_gap = self.longest_gap.max(gap);
            // Only a server that counts in every event says how many tokens are in this one.
            let counted = said.usage.and_then(|usage| usage.completion_tokens);
            let tokens = counted.zip(before).map(|(counted, before)| counted.saturating_sub(before));
            // A token has a byte at least.
            let tokens = tokens.filter(|tokens| *tokens <= event.data.len() as u64);
            record.record_gap(gap, tokens);
        }
        self.last_content = at;
        true
    }
}

/// Returns the class of a failure of a streamed request: where the connection broke off a stream that had
/// begun, the stream is incomplete.
pub(crate) fn class_of(class: ErrorClass, state: Option<&StreamState>) -> ErrorClass {
    let breaks_off = matches!(
        class,
        ErrorClass::ClosedInResponse
            | ErrorClass::Reset
            | ErrorClass::StreamReset
            | ErrorClass::TlsTruncated
            | ErrorClass::Io
    );
    match state {
        Some(state) if breaks_off && state.events() > 0 => ErrorClass::StreamIncomplete,
        _ => class,
    }
}

/// Adds an ended request of a streamed step to its record.
pub(crate) fn record(
    record: &mut EventStreamRecord,
    state: Option<&StreamState>,
    sample: &Sample,
    goodput: Option<&Goodput>,
) {
    record.record(&StreamState::sample(state, sample), goodput);
}

#[cfg(test)]
mod dialects;

#[cfg(test)]
mod tests {
    use plimsoll_core::Outcome;
    use plimsoll_scenario::MessageStream;

    use super::*;

    const LLM: StreamedStep = StreamedStep { stream: EventStream::Completion, drains: true, logs: false };

    fn on_time(at: u64) -> Receipt {
        Receipt { at: Nanos(at), behind: Nanos(700) }
    }

    /// The chunks of a completion, each with the instant at which it came.
    fn read(pieces: &[(u64, &str)]) -> (StreamState, EventStreamRecord, Result<(), (ErrorClass, String)>) {
        let (mut state, mut record) = (StreamState::new(LLM.stream), EventStreamRecord::default());
        let mut body = Vec::new();
        for (at, piece) in pieces {
            body.extend_from_slice(piece.as_bytes());
            state.read(LLM, &mut body, on_time(*at), &mut record);
            assert!(body.is_empty());
        }
        let ended = state.finish(LLM, &mut record);
        (state, record, ended)
    }

    const ROLE: &str = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n";
    const HI: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
    const DONE: &str = "data: [DONE]\n\n";

    #[test]
    fn tokens_have_the_times_of_what_they_came_in() {
        let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4}}\n\n";
        let two = [HI, HI].concat();
        let (half, rest) = HI.split_at(20);
        let end = [usage, DONE].concat();
        let pieces = [(10, ROLE), (20, HI), (30, &two), (40, half), (50, rest), (60, &end)];
        let (state, record, ended) = read(&pieces);
        assert_eq!(ended, Ok(()));
        let facts = state.facts;
        assert_eq!((facts.first, facts.first_content), (Nanos(10), Nanos(20)));
        assert_eq!((facts.last_content, facts.last), (Nanos(50), Nanos(60)));
        assert_eq!((facts.events, facts.content_events, facts.shared_events), (7, 4, 2));
        assert_eq!((facts.tokens, facts.prompt_tokens), (Some(4), Some(9)));
        // 20, 30 and 30 once more, 50.
        assert_eq!((record.gap.count(), record.gap.sum(), facts.longest_gap), (3, 30, Nanos(20)));
        assert_eq!(record.token_gap.count(), 0);
    }

    #[test]
    fn a_server_that_counts_in_every_chunk_says_how_many_tokens_are_in_it() {
        let chunk = |tokens: u64| {
            format!(
                "data: {{\"choices\":[{{\"delta\":{{\"content\":\"a\"}}}}],\"usage\":{{\"prompt_tokens\":1,\
                 \"completion_tokens\":{tokens}}}}}\n\n"
            )
        };
        let (one, four, done) = (chunk(1), chunk(4), DONE);
        let (_, record, ended) = read(&[(10, &one), (40, &four), (50, done)]);
        assert_eq!(ended, Ok(()));
        assert_eq!((record.token_gap.count(), record.token_gap.sum()), (3, 30));
    }

    const SENT: Sample = Sample {
        step: 0,
        intended: Nanos::ZERO,
        started: Nanos::ZERO,
        sent: Nanos::ZERO,
        first_byte: Nanos(1),
        done: Nanos(30),
        outcome: Outcome::Ok,
        status: 200,
        bytes_sent: 0,
        bytes_received: 0,
    };

    #[test]
    fn counts_that_cannot_be_are_not_believed() {
        let chunk = |usage: &str| {
            format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"a\"}}}}],\"usage\":{usage}}}\n\n")
        };
        let uncounted = chunk("null");
        for (prompt, tokens, believed) in [
            ("7", "20", (Some(20), Some(7))),
            // Several tokens in an event, or several events for a token.
            ("7", "900", (Some(900), Some(7))),
            ("7", "2", (Some(2), Some(7))),
            ("7", "1000000", (Some(1_000_000), Some(7))),
            ("7", "1000000000000000000", (None, Some(7))),
            ("7", "1e18", (None, Some(7))),
            ("7", "-5", (None, Some(7))),
            ("7", "1", (None, Some(7))),
            ("7", "0", (None, Some(7))),
            ("-1", "20", (Some(20), None)),
            ("99999999999", "20", (Some(20), None)),
        ] {
            let usage = format!("{{\"prompt_tokens\":{prompt},\"completion_tokens\":{tokens}}}");
            let last = chunk(&usage);
            let mut pieces: Vec<(u64, &str)> = (1..20).map(|at| (at, uncounted.as_str())).collect();
            pieces.extend([(20, last.as_str()), (21, DONE)]);
            let (state, record, ended) = read(&pieces);
            assert_eq!(ended, Ok(()));
            assert_eq!(state.counts(), believed, "{usage}");
            assert_eq!((record.gap.count(), record.token_gap.count()), (19, 0), "{usage}");
            let sample = StreamState::sample(Some(&state), &SENT);
            assert_eq!((sample.tokens, sample.prompt_tokens), believed, "{usage}");
            assert_eq!(sample.disbelieved, believed.0.is_none() || believed.1.is_none(), "{usage}");
        }
        // Nor is the number of tokens in one event more than its bytes.
        let [first, second] = ["1", "1000000000000000000"]
            .map(|tokens| chunk(&format!("{{\"prompt_tokens\":1,\"completion_tokens\":{tokens}}}")));
        let (_, record, _) = read(&[(1, &first), (2, &second), (3, DONE)]);
        assert_eq!((record.gap.count(), record.token_gap.count()), (1, 0));
    }

    #[test]
    fn streams_that_are_not_whole_are_told_apart() {
        let error = "data: {\"error\":{\"message\":\"out of memory\"}}\n\n";
        let finished = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
        type Case<'a> = (&'a [&'a str], Option<(ErrorClass, &'a str)>);
        let cases: &[Case<'_>] = &[
            (&[HI, DONE], None),
            (&[HI, finished], None),
            (&[HI], Some((ErrorClass::StreamIncomplete, "without `[DONE]`"))),
            (&[], Some((ErrorClass::StreamIncomplete, "without `[DONE]`"))),
            (&[HI, "data: {\"cho"], Some((ErrorClass::StreamIncomplete, "in the middle of an event"))),
            (&["{\"choices\":[]}"], Some((ErrorClass::StreamIncomplete, "no event in it"))),
            (&[HI, error, DONE], Some((ErrorClass::Rejected, "out of memory"))),
            (&["data: hello\n\n"], Some((ErrorClass::Protocol, "hello"))),
        ];
        for (parts, expected) in cases {
            let pieces: Vec<(u64, &str)> = (1..).zip(parts.iter().copied()).collect();
            let (.., ended) = read(&pieces);
            match expected {
                None => assert_eq!(ended, Ok(()), "{parts:?}"),
                Some((class, said)) => {
                    let (found, why) = ended.expect_err("the stream is bad");
                    assert!(found == *class && why.contains(said), "{parts:?}: {found}, {why}");
                }
            }
        }
    }

    #[test]
    fn a_call_of_which_enough_messages_have_come_is_whole() {
        let (one, half) = (b"\0\0\0\0\x02hi".as_slice(), b"\0\0\0\0\x02h".as_slice());
        let ended = |take: Option<u32>, parts: &[&[u8]]| {
            let stream = EventStream::Messages(MessageStream { take, in_turn: false });
            let step = StreamedStep { stream, drains: true, logs: false };
            let (mut state, mut record) = (StreamState::new(stream), EventStreamRecord::default());
            state.read(step, &mut parts.concat(), on_time(1), &mut record);
            let ended = state.finish(step, &mut record).map_err(|(_, why)| why);
            assert!(
                take.is_none_or(|take| state.events() <= u64::from(take)),
                "those behind are not counted"
            );
            assert_eq!(record.content_events, state.events());
            ended
        };
        assert_eq!(ended(Some(2), &[one; 10]), Ok(()));
        assert_eq!(ended(None, &[one, one]), Ok(()));
        assert_eq!(ended(Some(2), &[one, one]), Ok(()));
        // A server that floods is in the middle of the next one when the call is broken off.
        assert_eq!(ended(Some(2), &[one, one, half]), Ok(()));
        let broken =
            |messages| format!("the stream ended in the middle of a message, after {messages} whole ones");
        assert_eq!(ended(None, &[one, half]), Err(broken(1)));
        assert_eq!(ended(Some(2), &[one, half]), Err(broken(1)));
        let few = "the stream ended after 1 of the 2 messages that were to be taken".to_owned();
        assert_eq!(ended(Some(2), &[one]), Err(few));
    }

    #[test]
    fn content_that_was_read_late_and_together_has_an_uncertain_time() {
        let two = [HI, HI].concat();
        // The finish reason shares a receive time as well, and is not content.
        let end = ["data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n", DONE].concat();
        for (behind, uncertain) in [(EVENT_TIME_LIMIT, 0), (EVENT_TIME_LIMIT + Nanos(1), 1)] {
            let (mut state, mut record) = (StreamState::new(LLM.stream), EventStreamRecord::default());
            for (at, piece) in [(10, HI), (20, &two), (30, &end)] {
                let came = Receipt { at: Nanos(at), behind };
                state.read(LLM, &mut piece.as_bytes().to_vec(), came, &mut record);
            }
            let StreamFacts { shared_events, shared_content_events, uncertain_events, .. } = state.facts;
            assert_eq!((shared_events, shared_content_events, uncertain_events), (2, 1, uncertain));
        }
    }

    #[test]
    fn a_log_has_the_name_of_the_completion_and_the_instants_of_its_content() {
        let logged = StreamedStep { logs: true, ..LLM };
        let role = "data: {\"id\":\"chatcmpl-7\",\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n";
        let (mut state, mut record) = (StreamState::new(LLM.stream), EventStreamRecord::default());
        for (at, piece) in [(10, role), (20, HI), (40, HI), (40, DONE)] {
            state.read(logged, &mut piece.as_bytes().to_vec(), on_time(at), &mut record);
        }
        let times = state.take_times().expect("it is logged");
        assert_eq!(times.id.as_deref(), Some("chatcmpl-7"));
        assert_eq!(times.content, [Nanos(20), Nanos(40)]);
        let (mut state, ..) = read(&[(10, HI)]);
        assert_eq!(state.take_times(), None);
    }

    #[test]
    fn an_open_stream_holds_the_event_that_is_not_whole_and_little_more() {
        assert!(size_of::<StreamState>() <= 384, "{} bytes", size_of::<StreamState>());
        let (mut state, mut record) = (StreamState::new(LLM.stream), EventStreamRecord::default());
        let mut body = Vec::new();
        for at in 0..10_000 {
            body.extend_from_slice(HI.as_bytes());
            state.read(LLM, &mut body, on_time(at), &mut record);
        }
        assert!(state.reader.held_bytes() + body.capacity() < 1_024);
    }

    #[test]
    fn a_state_that_is_used_again_remembers_nothing() {
        let (mut state, ..) = read(&[(1, HI), (2, "data: {\"cho")]);
        state.reset(LLM.stream);
        let (mut body, mut record) = ([HI, DONE].concat().into_bytes(), EventStreamRecord::default());
        state.read(LLM, &mut body, on_time(7), &mut record);
        assert_eq!(state.finish(LLM, &mut record), Ok(()));
        assert_eq!((state.facts.events, state.facts.first), (2, Nanos(7)));
        assert!(class_of(ErrorClass::Reset, Some(&state)) == ErrorClass::StreamIncomplete);
        assert!(class_of(ErrorClass::Status5xx, Some(&state)) == ErrorClass::Status5xx);
        assert!(class_of(ErrorClass::Reset, None) == ErrorClass::Reset);
    }
}
