//! Streams of events: what is known of one response while it comes.

use plimsoll_core::{ErrorClass, Nanos};
use plimsoll_metrics::{EventStreamRecord, EventStreamSample, Goodput, Sample};
use plimsoll_scenario::{EventFault, EventStream};
use plimsoll_wire::events::{Event, EventReader, EventTooLong};

/// Bytes of an event that are quoted where it says what is wrong.
const LONGEST_QUOTE: usize = 300;

/// Reading of a step's responses as they come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamedStep {
    pub(crate) stream: EventStream,
    /// Set if nobody needs the body once its events are read.
    pub(crate) drains: bool,
}

/// The events of one response so far.
///
/// It holds the event that is not whole, and no event after that: what a stream takes in memory does not grow
/// with its length. It is a part of the capture of its request, and is used again with its memory.
#[derive(Debug)]
pub(crate) struct StreamState {
    reader: EventReader,
    /// Bytes of the kept body that were read.
    read: usize,
    /// When the bytes came that were read last.
    at: Nanos,
    /// Events that came with the bytes that are read now.
    together: u64,
    facts: StreamFacts,
    fault: Option<(EventFault, String)>,
    too_long: bool,
    /// An event has said that the stream is complete.
    ended: bool,
}

/// Instants and counts.
#[derive(Clone, Copy, Debug)]
struct StreamFacts {
    first: Nanos,
    first_content: Nanos,
    last_content: Nanos,
    last: Nanos,
    longest_gap: Nanos,
    events: u64,
    content_events: u64,
    shared_events: u64,
    bytes: u64,
    tokens: Option<u64>,
    prompt_tokens: Option<u64>,
}

const NOTHING: StreamFacts = StreamFacts {
    first: Nanos::MAX,
    first_content: Nanos::MAX,
    last_content: Nanos::MAX,
    last: Nanos::MAX,
    longest_gap: Nanos::ZERO,
    events: 0,
    content_events: 0,
    shared_events: 0,
    bytes: 0,
    tokens: None,
    prompt_tokens: None,
};

impl StreamState {
    /// Nothing has come.
    pub(crate) const fn new(stream: EventStream) -> Self {
        Self {
            reader: EventReader::new(stream.format()),
            read: 0,
            at: Nanos::ZERO,
            together: 0,
            facts: NOTHING,
            fault: None,
            too_long: false,
            ended: false,
        }
    }

    /// Forgets everything, for another response.
    pub(crate) fn reset(&mut self, stream: EventStream) {
        self.reader.reset(stream.format());
        (self.read, self.facts, self.fault) = (0, NOTHING, None);
        (self.too_long, self.ended) = (false, false);
    }

    /// Events so far.
    pub(crate) const fn events(&self) -> u64 {
        self.facts.events
    }

    /// Reads the part of a body that has come at this instant, which is all of it but for what was read
    /// before.
    pub(crate) fn read(
        &mut self,
        step: StreamedStep,
        body: &mut Vec<u8>,
        at: Nanos,
        record: &mut EventStreamRecord,
    ) {
        let Self { reader, read, facts, fault, ended, .. } = self;
        let news = body.get(*read..).unwrap_or_default();
        if news.is_empty() {
            return;
        }
        self.at = at;
        facts.bytes += news.len() as u64;
        let mut together = 0;
        let told = reader.feed(news, |event| {
            facts.note(step.stream, &event, (at, together > 0), record, fault, ended);
            together += 1;
        });
        self.too_long |= told == Err(EventTooLong);
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
    /// Why the stream is no good one: its class, and words.
    pub(crate) fn finish(
        &mut self,
        step: StreamedStep,
        record: &mut EventStreamRecord,
    ) -> Result<(), (ErrorClass, String)> {
        let Self { reader, facts, fault, ended, at, together, .. } = self;
        let whole = reader.finish(|event| {
            facts.note(step.stream, &event, (*at, *together > 0), record, fault, ended);
        });
        if self.too_long {
            return Err((ErrorClass::Protocol, EventTooLong.to_string()));
        }
        match self.fault.take() {
            Some((EventFault::Error, said)) => {
                return Err((ErrorClass::Rejected, format!("the server said in the stream: {said}")));
            }
            Some((EventFault::Malformed, said)) => {
                return Err((
                    ErrorClass::Protocol,
                    format!("an event that is no chunk of a completion: {said}"),
                ));
            }
            None => {}
        }
        let events = self.facts.events;
        let why = match (whole, events) {
            (false, 0) => "the body has no event in it: does the server stream at all?".to_owned(),
            (false, _) => format!("the stream ended in the middle of an event, after {events} whole ones"),
            (true, _) if step.stream.has_end() && !self.ended => {
                format!("the stream ended after {events} events without `[DONE]` or a finish_reason")
            }
            _ => return Ok(()),
        };
        Err((ErrorClass::StreamIncomplete, why))
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
            last_content: not_before(facts.last_content, sample.sent),
            last: not_before(facts.last, sample.sent),
            longest_gap: facts.longest_gap,
            events: facts.events,
            content_events: facts.content_events,
            shared_events: facts.shared_events,
            bytes: facts.bytes,
            tokens: facts.tokens,
            prompt_tokens: facts.prompt_tokens,
        }
    }
}

/// The instant, or that of sending where it is earlier; [`Nanos::MAX`] stays.
fn not_before(at: Nanos, sent: Nanos) -> Nanos {
    if at == Nanos::MAX || sent == Nanos::MAX { at } else { at.max(sent) }
}

impl StreamFacts {
    /// Takes in an event that came at this instant, together with another one before it or not.
    fn note(
        &mut self,
        stream: EventStream,
        event: &Event<'_>,
        (at, shared): (Nanos, bool),
        record: &mut EventStreamRecord,
        fault: &mut Option<(EventFault, String)>,
        ended: &mut bool,
    ) {
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
        if let Some(usage) = said.usage {
            self.tokens = Some(usage.completion_tokens);
            self.prompt_tokens = Some(usage.prompt_tokens);
        }
        if !said.content {
            return;
        }
        self.content_events += 1;
        if self.first_content == Nanos::MAX {
            self.first_content = at;
        } else {
            let gap = at.since(self.last_content);
            self.longest_gap = self.longest_gap.max(gap);
            // Only a server that counts in every event says how many tokens are in this one.
            let tokens =
                said.usage.zip(before).map(|(usage, before)| usage.completion_tokens.saturating_sub(before));
            record.record_gap(gap, tokens);
        }
        self.last_content = at;
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
mod tests {
    use super::*;

    const OPENAI: StreamedStep = StreamedStep { stream: EventStream::OpenAi, drains: true };

    /// The chunks of a completion, each with the instant at which it came.
    fn read(pieces: &[(u64, &str)]) -> (StreamState, EventStreamRecord, Result<(), (ErrorClass, String)>) {
        let (mut state, mut record) = (StreamState::new(OPENAI.stream), EventStreamRecord::default());
        let mut body = Vec::new();
        for (at, piece) in pieces {
            body.extend_from_slice(piece.as_bytes());
            state.read(OPENAI, &mut body, Nanos(*at), &mut record);
            assert!(body.is_empty());
        }
        let ended = state.finish(OPENAI, &mut record);
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
                    let (found, why) = ended.expect_err("it is no good stream");
                    assert!(found == *class && why.contains(said), "{parts:?}: {found}, {why}");
                }
            }
        }
    }

    #[test]
    fn an_open_stream_holds_the_event_that_is_not_whole_and_little_more() {
        assert!(size_of::<StreamState>() <= 384, "{} bytes", size_of::<StreamState>());
        let (mut state, mut record) = (StreamState::new(OPENAI.stream), EventStreamRecord::default());
        let mut body = Vec::new();
        for at in 0..10_000 {
            body.extend_from_slice(HI.as_bytes());
            state.read(OPENAI, &mut body, Nanos(at), &mut record);
        }
        assert!(state.reader.held_bytes() + body.capacity() < 1_024);
    }

    #[test]
    fn a_state_that_is_used_again_remembers_nothing() {
        let (mut state, ..) = read(&[(1, HI), (2, "data: {\"cho")]);
        state.reset(OPENAI.stream);
        let (mut body, mut record) = ([HI, DONE].concat().into_bytes(), EventStreamRecord::default());
        state.read(OPENAI, &mut body, Nanos(7), &mut record);
        assert_eq!(state.finish(OPENAI, &mut record), Ok(()));
        assert_eq!((state.facts.events, state.facts.first), (2, Nanos(7)));
        assert!(class_of(ErrorClass::Reset, Some(&state)) == ErrorClass::StreamIncomplete);
        assert!(class_of(ErrorClass::Status5xx, Some(&state)) == ErrorClass::Status5xx);
        assert!(class_of(ErrorClass::Reset, None) == ErrorClass::Reset);
    }
}
