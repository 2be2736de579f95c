//! Streams of events: what is recorded of responses that come event by event, and goodput.
//!
//! *Content* is what a user waits for: every event, or, where a judge reads the events, those with tokens in
//! them. Formulas are in docs/terminology.md.

use std::fmt;

use plimsoll_core::{Nanos, Outcome};
use plimsoll_histogram::{Censored, Histogram};
use serde::{Deserialize, Serialize};

use crate::threshold::{Operator, parse_time, time_text};

/// Error of an event's time up to which it counts as certain: gaps of tokens are some tens of milliseconds,
/// and the error of a gap is to stay below this at the 99th percentile.
pub const EVENT_TIME_LIMIT: Nanos = Nanos::from_millis(1);

/// One ended request whose response is a stream of events. All instants are on the driver's clock;
/// [`Nanos::MAX`] stands for one that there was not.
#[derive(Clone, Copy, Debug)]
pub struct EventStreamSample {
    /// As in [`Sample`](crate::Sample).
    pub intended: Nanos,
    /// As in [`Sample`](crate::Sample).
    pub sent: Nanos,
    /// When it ended.
    pub done: Nanos,
    /// Outcome of the request.
    pub outcome: Outcome,
    /// When its first event came.
    pub first: Nanos,
    /// When the first content came.
    pub first_content: Nanos,
    /// Set if some of the content was reasoning.
    pub reasoned: bool,
    /// When the first content came that was not reasoning.
    pub first_answer: Nanos,
    /// When the last content came.
    pub last_content: Nanos,
    /// When its last event came.
    pub last: Nanos,
    /// The longest time between two contents; zero with fewer than two.
    pub longest_gap: Nanos,
    /// Events.
    pub events: u64,
    /// Events with content.
    pub content_events: u64,
    /// Events that were read together with the one before, and so share its time.
    pub shared_events: u64,
    /// Events with content that share the time of the content before: their gap is 0.
    pub shared_content_events: u64,
    /// Events with content among these whose own time may be earlier than the shared one by more than
    /// [`EVENT_TIME_LIMIT`], because the generator read late.
    pub uncertain_events: u64,
    /// Bytes of the body.
    pub bytes: u64,
    /// Tokens of the answer by the server's own count, if it sent one.
    pub tokens: Option<u64>,
    /// Tokens of the prompt by the server's own count, if it sent one.
    pub prompt_tokens: Option<u64>,
    /// Of the tokens of the answer, those of reasoning that the server has counted and not sent.
    pub hidden_tokens: u64,
    /// Set if the server sent a count of either that cannot be, which is left out above.
    pub disbelieved: bool,
}

impl EventStreamSample {
    /// Tokens of the answer: by the server's count, else the events with content.
    pub fn output_tokens(&self) -> u64 {
        self.tokens.unwrap_or(self.content_events)
    }

    /// Time to first token: first content − intended.
    pub fn ttft(&self) -> Option<Nanos> {
        self.has_content().then(|| self.first_content.since(self.intended))
    }

    /// Time to first answer token: first content that is not reasoning − intended, of a request with
    /// reasoning.
    pub fn ttfa(&self) -> Option<Nanos> {
        let is_answered = self.reasoned && self.first_answer != Nanos::MAX;
        is_answered.then(|| self.first_answer.since(self.intended))
    }

    /// Time per output token: (last content − first content) / (tokens − 1), of the tokens that were sent;
    /// `None` below two of them, and if all of them came in one event.
    pub fn tpot(&self) -> Option<Nanos> {
        let sent = self.output_tokens().saturating_sub(self.hidden_tokens);
        let gaps = sent.checked_sub(1).filter(|gaps| *gaps > 0)?;
        let is_spread = self.has_content() && self.content_events > 1;
        is_spread.then(|| Nanos(self.last_content.since(self.first_content).0 / gaps))
    }

    /// Normalised time per output token: (done − intended) / tokens; `None` without tokens.
    pub fn ntpot(&self) -> Option<Nanos> {
        let tokens = self.output_tokens();
        (tokens > 0).then(|| Nanos(self.done.since(self.intended).0 / tokens))
    }

    fn has_content(&self) -> bool {
        self.first_content != Nanos::MAX
    }
}

/// Everything measured about the streams of one step (or, merged, of all of them).
///
/// Times of requests are those of good ones, and of timed-out ones as lower bounds where they had not got so
/// far. Gaps are those of all streams, as they came: what a stream delivered before it broke was delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EventStreamRecord {
    /// Requests that ended in any way, except for those that were aborted on purpose.
    pub judged: u64,
    /// Of these, good ones that held all bounds of the [goodput](Goodput); 0 without one.
    pub good: u64,
    /// The bounds of the goodput as text; empty without any.
    pub bounds: String,
    /// Events.
    pub events: u64,
    /// Events with content.
    pub content_events: u64,
    /// Events that were read together with the one before, and so share its time.
    pub shared_events: u64,
    /// Events with content that share the time of the content before: their gap is 0.
    pub shared_content_events: u64,
    /// Events with content among these whose own time may be earlier than the shared one by more than
    /// [`EVENT_TIME_LIMIT`], because the generator read late.
    pub uncertain_events: u64,
    /// Bytes of the bodies.
    pub bytes: u64,
    /// Tokens of the answers of good requests, each by the server's count, else by events with content.
    pub tokens: u64,
    /// Of these, tokens of reasoning that servers counted and did not send.
    pub hidden_tokens: u64,
    /// Tokens of the prompts of good requests, as far as servers counted them.
    pub prompt_tokens: u64,
    /// Good requests whose tokens the server did not count.
    pub uncounted: u64,
    /// Good requests for which the server's count of tokens differs from the number of events with content.
    pub count_differs: u64,
    /// Good requests for which the server sent a count of tokens that cannot be, and is not used.
    pub disbelieved: u64,
    /// Good requests without any content.
    pub empty: u64,
    /// Good requests with reasoning in their content.
    pub reasoned: u64,
    /// Good requests with nothing but reasoning in it.
    pub unanswered: u64,
    /// first content − intended.
    pub ttft: Histogram,
    /// first content − sent.
    pub ttft_from_sent: Histogram,
    /// first content that is not reasoning − intended, of requests with reasoning.
    pub ttfa: Histogram,
    /// first event − sent.
    pub first_event: Histogram,
    /// last event − sent.
    pub last_event: Histogram,
    /// Between two events with content that follow each other in a stream.
    pub gap: Histogram,
    /// Time between two events with content that follow each other, divided by the tokens of the later one,
    /// once for each token. Only where the server counts tokens in every event.
    pub token_gap: Histogram,
    /// (last content − first content) / (tokens − 1), of the tokens that were sent.
    pub tpot: Histogram,
    /// (done − intended) / tokens.
    pub ntpot: Histogram,
    /// Values of `ttft` that are lower bounds.
    pub censored_ttft: Censored,
    /// Values of `ttft_from_sent` that are lower bounds.
    pub censored_ttft_from_sent: Censored,
    /// Values of `ttfa` that are lower bounds.
    pub censored_ttfa: Censored,
}

impl EventStreamRecord {
    /// Records the end of a request.
    pub fn record(&mut self, sample: &EventStreamSample, goodput: Option<&Goodput>) {
        if let Some(goodput) = goodput
            && self.bounds.is_empty()
        {
            self.bounds = goodput.to_string();
        }
        self.events += sample.events;
        self.shared_events += sample.shared_events;
        self.shared_content_events += sample.shared_content_events;
        self.uncertain_events += sample.uncertain_events;
        self.bytes += sample.bytes;
        match sample.outcome {
            Outcome::Ok => self.record_ok(sample, goodput),
            Outcome::TimedOut => {
                self.judged += 1;
                self.record_first(sample);
                if sample.reasoned && sample.first_answer == Nanos::MAX {
                    let waited = sample.done.since(sample.intended);
                    self.ttfa.record(waited.0);
                    self.censored_ttfa.note(waited);
                }
            }
            // What we did says nothing about the target.
            outcome => self.judged += u64::from(outcome.is_bad()),
        }
    }

    fn record_ok(&mut self, sample: &EventStreamSample, goodput: Option<&Goodput>) {
        self.judged += 1;
        self.good += u64::from(goodput.is_some_and(|goodput| goodput.holds(sample)));
        self.tokens += sample.output_tokens();
        self.hidden_tokens += sample.hidden_tokens;
        self.prompt_tokens += sample.prompt_tokens.unwrap_or(0);
        self.uncounted += u64::from(sample.tokens.is_none() && !sample.disbelieved);
        self.disbelieved += u64::from(sample.disbelieved);
        self.count_differs += u64::from(sample.tokens.is_some_and(|tokens| tokens != sample.content_events));
        if sample.has_content() {
            self.record_first(sample);
        } else {
            self.empty += 1;
        }
        self.reasoned += u64::from(sample.reasoned);
        self.unanswered += u64::from(sample.reasoned && sample.first_answer == Nanos::MAX);
        if sample.events > 0 {
            self.first_event.record(sample.first.since(sample.sent).0);
            self.last_event.record(sample.last.since(sample.sent).0);
        }
        sample.tpot().into_iter().for_each(|time| self.tpot.record(time.0));
        sample.ntpot().into_iter().for_each(|time| self.ntpot.record(time.0));
    }

    /// The time to the first content, or to where it was given up.
    fn record_first(&mut self, sample: &EventStreamSample) {
        let is_bound = !sample.has_content();
        let first = if is_bound { sample.done } else { sample.first_content };
        let ttft = first.since(sample.intended);
        self.ttft.record(ttft.0);
        sample.ttfa().into_iter().for_each(|time| self.ttfa.record(time.0));
        if is_bound {
            self.censored_ttft.note(ttft);
        }
        if sample.sent != Nanos::MAX {
            let from_sent = first.since(sample.sent);
            self.ttft_from_sent.record(from_sent.0);
            if is_bound {
                self.censored_ttft_from_sent.note(from_sent);
            }
        }
    }

    /// Counts an event with content as it comes; a stream that goes on for minutes is seen meanwhile.
    #[inline]
    pub const fn note_content(&mut self) {
        self.content_events += 1;
    }

    /// Records the time between two events with content, the later of which has this many tokens by the
    /// server's count.
    #[inline]
    pub fn record_gap(&mut self, gap: Nanos, tokens: Option<u64>) {
        self.gap.record(gap.0);
        if let Some(tokens) = tokens.filter(|tokens| *tokens > 0) {
            self.token_gap.record_many(gap.0 / tokens, tokens);
        }
    }

    /// Adds what another worker, or another step, recorded.
    pub fn merge(&mut self, other: &Self) {
        if self.bounds.is_empty() {
            self.bounds.clone_from(&other.bounds);
        }
        self.judged += other.judged;
        self.good += other.good;
        self.events += other.events;
        self.content_events += other.content_events;
        self.shared_events += other.shared_events;
        self.shared_content_events += other.shared_content_events;
        self.uncertain_events += other.uncertain_events;
        self.bytes += other.bytes;
        self.tokens += other.tokens;
        self.hidden_tokens += other.hidden_tokens;
        self.prompt_tokens += other.prompt_tokens;
        self.uncounted += other.uncounted;
        self.count_differs += other.count_differs;
        self.disbelieved += other.disbelieved;
        self.empty += other.empty;
        self.reasoned += other.reasoned;
        self.unanswered += other.unanswered;
        for (mine, theirs) in [
            (&mut self.ttft, &other.ttft),
            (&mut self.ttft_from_sent, &other.ttft_from_sent),
            (&mut self.ttfa, &other.ttfa),
            (&mut self.first_event, &other.first_event),
            (&mut self.last_event, &other.last_event),
            (&mut self.gap, &other.gap),
            (&mut self.token_gap, &other.token_gap),
            (&mut self.tpot, &other.tpot),
            (&mut self.ntpot, &other.ntpot),
        ] {
            mine.merge(theirs);
        }
        self.censored_ttft.merge(other.censored_ttft);
        self.censored_ttft_from_sent.merge(other.censored_ttft_from_sent);
        self.censored_ttfa.merge(other.censored_ttfa);
    }
}

/// A time of a streamed request that goodput may bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamTime {
    /// first content − intended.
    Ttft,
    /// first content that is not reasoning − intended.
    Ttfa,
    /// The longest gap between two contents.
    Itl,
    /// (last content − first content) / (tokens − 1).
    Tpot,
    /// (done − intended) / tokens.
    Ntpot,
    /// done − intended.
    Response,
}

impl StreamTime {
    const ALL: [Self; 6] = [Self::Ttft, Self::Ttfa, Self::Itl, Self::Tpot, Self::Ntpot, Self::Response];

    /// Returns the name of the time in bounds of goodput.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ttft => "ttft",
            Self::Ttfa => "ttfa",
            Self::Itl => "itl",
            Self::Tpot => "tpot",
            Self::Ntpot => "ntpot",
            Self::Response => "response_time",
        }
    }

    /// `None` if the request has no such time, which breaks no bound but those of the first content, and of
    /// the first answer.
    fn of(self, sample: &EventStreamSample) -> Option<Nanos> {
        match self {
            Self::Ttft => Some(sample.ttft().unwrap_or(Nanos::MAX)),
            // Without reasoning, the first content is the first of the answer.
            Self::Ttfa if sample.reasoned => Some(sample.ttfa().unwrap_or(Nanos::MAX)),
            Self::Ttfa => Some(sample.ttft().unwrap_or(Nanos::MAX)),
            Self::Itl => Some(sample.longest_gap),
            Self::Tpot => sample.tpot(),
            Self::Ntpot => sample.ntpot(),
            Self::Response => Some(sample.done.since(sample.intended)),
        }
    }
}

/// Bounds that a good request has to hold, all of them, to count as goodput: `ttft<500ms & tpot<50ms`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goodput(Vec<Bound>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bound {
    time: StreamTime,
    operator: Operator,
    limit: Nanos,
}

impl Goodput {
    /// Parses bounds that are joined by `&` or commas.
    ///
    /// # Errors
    /// A sentence that names the mistake and a form that is accepted.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bounds = text.split(['&', ',']).map(|part| bound(part.trim()));
        bounds.collect::<Result<_, _>>().map(Self)
    }

    /// Returns `true` if the request holds all bounds.
    pub fn holds(&self, sample: &EventStreamSample) -> bool {
        self.0.iter().all(|Bound { time, operator, limit }| {
            time.of(sample).is_none_or(|time| operator.holds(time.cmp(limit)))
        })
    }
}

fn bound(text: &str) -> Result<Bound, String> {
    const EXAMPLE: &str = "write bounds such as `ttft<500ms & tpot<50ms`";
    let wrong = || format!("`{text}` is not a bound: {EXAMPLE}");
    let at = text.find('<').ok_or_else(wrong)?;
    let (name, rest) = (text[..at].trim(), &text[at + 1..]);
    let (operator, rest) = match rest.strip_prefix('=') {
        Some(rest) => (Operator::AtMost, rest),
        None => (Operator::Less, rest),
    };
    let time = StreamTime::ALL.into_iter().find(|time| time.name() == name).ok_or_else(|| {
        let names = StreamTime::ALL.map(StreamTime::name).join(", ");
        format!("`{name}` is not a time of a stream: write one of {names}")
    })?;
    let limit = parse_time(rest.trim()).ok_or_else(wrong)?;
    Ok(Bound { time, operator, limit })
}

impl fmt::Display for Goodput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, Bound { time, operator, limit }) in self.0.iter().enumerate() {
            let joint = if place > 0 { " & " } else { "" };
            write!(f, "{joint}{}{}{}", time.name(), operator.name(), time_text(*limit))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::ErrorClass;

    use super::*;

    /// Five tokens from 1.5 s to 1.9 s of a request that was due at 1 s and sent at 1.2 s.
    const GOOD: EventStreamSample = EventStreamSample {
        intended: Nanos(1_000),
        sent: Nanos(1_200),
        done: Nanos(2_000),
        outcome: Outcome::Ok,
        first: Nanos(1_400),
        first_content: Nanos(1_500),
        reasoned: false,
        first_answer: Nanos(1_500),
        last_content: Nanos(1_900),
        last: Nanos(1_950),
        longest_gap: Nanos(150),
        events: 7,
        content_events: 5,
        shared_events: 1,
        shared_content_events: 1,
        uncertain_events: 1,
        bytes: 700,
        tokens: Some(5),
        prompt_tokens: Some(11),
        hidden_tokens: 0,
        disbelieved: false,
    };

    fn record(samples: &[EventStreamSample], goodput: &str) -> EventStreamRecord {
        let mut record = EventStreamRecord::default();
        let goodput = Goodput::parse(goodput).unwrap();
        samples.iter().for_each(|sample| record.record(sample, Some(&goodput)));
        record
    }

    #[test]
    fn the_times_of_a_good_stream_are_by_their_definitions() {
        let record = record(&[GOOD], "ttft<501ns & tpot<=100ns & itl<1us & ntpot<=200ns");
        let only = |times: &Histogram| (times.count() == 1).then(|| times.max()).flatten();
        assert_eq!(only(&record.ttft), Some(500));
        assert_eq!(only(&record.ttft_from_sent), Some(300));
        assert_eq!(only(&record.first_event), Some(200));
        assert_eq!(only(&record.last_event), Some(750));
        assert_eq!(only(&record.tpot), Some(100));
        assert_eq!(only(&record.ntpot), Some(200));
        assert_eq!((record.judged, record.good, record.tokens, record.prompt_tokens), (1, 1, 5, 11));
        assert_eq!((record.events, record.count_differs), (7, 0));
        let mut twice = record.clone();
        twice.merge(&record);
        assert_eq!((twice.shared_events, twice.shared_content_events, twice.uncertain_events), (2, 2, 2));
    }

    #[test]
    fn tokens_of_the_server_decide_and_events_are_the_substitute() {
        // Two tokens in each event.
        let packed = EventStreamSample { tokens: Some(9), ..GOOD };
        assert_eq!((packed.tpot(), packed.ntpot()), (Some(Nanos(50)), Some(Nanos(111))));
        // Four of them are reasoning that nobody saw.
        let hidden = EventStreamSample { hidden_tokens: 4, ..packed };
        assert_eq!((hidden.tpot(), hidden.ntpot()), (Some(Nanos(100)), Some(Nanos(111))));
        let only_hidden = EventStreamSample { hidden_tokens: 9, ..packed };
        assert_eq!(only_hidden.tpot(), None);
        assert_eq!(record(&[hidden, packed], "tpot<=99ns").good, 1);
        assert_eq!(record(&[hidden, packed], "tpot<=99ns").hidden_tokens, 4);
        let uncounted = EventStreamSample { tokens: None, ..GOOD };
        assert_eq!(uncounted.tpot(), Some(Nanos(100)));
        let at_once = EventStreamSample { content_events: 1, last_content: GOOD.first_content, ..packed };
        assert_eq!(at_once.tpot(), None);
        let absurd = EventStreamSample { disbelieved: true, ..uncounted };
        let record = record(&[packed, uncounted, absurd], "tpot<60ns");
        assert_eq!((record.good, record.judged, record.uncounted, record.count_differs), (1, 3, 1, 1));
        assert_eq!((record.tokens, record.disbelieved), (19, 1));
    }

    #[test]
    fn failed_streams_have_no_times_and_those_that_timed_out_lower_bounds() {
        let none = EventStreamSample {
            first: Nanos::MAX,
            first_content: Nanos::MAX,
            first_answer: Nanos::MAX,
            last_content: Nanos::MAX,
            last: Nanos::MAX,
            events: 0,
            content_events: 0,
            tokens: None,
            ..GOOD
        };
        let failed = |class| EventStreamSample { outcome: Outcome::Failed(class), ..GOOD };
        let samples = [
            failed(ErrorClass::StreamIncomplete),
            failed(ErrorClass::AbortedByUs),
            EventStreamSample { outcome: Outcome::TimedOut, ..GOOD },
            EventStreamSample { outcome: Outcome::TimedOut, ..none },
            none,
        ];
        let record = record(&samples, "ttft<1h");
        assert_eq!((record.judged, record.good, record.empty), (4, 0, 1));
        assert_eq!((record.ttft.count(), record.censored_ttft.count), (2, 1));
        assert_eq!((record.ttft.min(), record.ttft.max()), (Some(500), Some(1_000)));
        assert_eq!(record.censored_ttft_from_sent.from, Nanos(800));
        assert_eq!((record.tpot.count(), record.ntpot.count()), (0, 0));
    }

    #[test]
    fn the_first_answer_is_told_where_reasoning_comes_before_it() {
        let reasoned = EventStreamSample { reasoned: true, first_answer: Nanos(1_700), ..GOOD };
        let only = EventStreamSample { first_answer: Nanos::MAX, ..reasoned };
        let late = EventStreamSample { outcome: Outcome::TimedOut, ..only };
        let failed = EventStreamSample { outcome: Outcome::Failed(ErrorClass::StreamIncomplete), ..reasoned };
        let record = record(&[GOOD, reasoned, only, late, failed], "ttfa<701ns");
        // Without reasoning the first content is the answer; without an answer no bound holds.
        assert_eq!((record.good, record.reasoned, record.unanswered), (2, 2, 1));
        assert_eq!((record.ttfa.count(), record.censored_ttfa.count), (2, 1));
        assert_eq!((record.ttfa.min(), record.ttfa.max()), (Some(700), Some(1_000)));
        let mut twice = record.clone();
        twice.merge(&record);
        assert_eq!((twice.reasoned, twice.ttfa.count(), twice.censored_ttfa.count), (4, 4, 2));
    }

    #[test]
    fn gaps_per_token_are_told_once_for_each() {
        let mut record = EventStreamRecord::default();
        record.record_gap(Nanos(90), Some(3));
        record.record_gap(Nanos(10), None);
        record.record_gap(Nanos(10), Some(0));
        assert_eq!((record.gap.count(), record.gap.sum()), (3, 110));
        assert_eq!((record.token_gap.count(), record.token_gap.sum()), (3, 90));
        let mut twice = record.clone();
        twice.merge(&record);
        assert_eq!((twice.gap.count(), twice.token_gap.sum()), (6, 180));
    }

    #[test]
    fn bounds_are_parsed_and_written() {
        let goodput = Goodput::parse("ttft<500ms&tpot <= 50ms, response_time<2s").unwrap();
        let text = goodput.to_string();
        assert_eq!(text, "ttft<500ms & tpot<=50ms & response_time<2s");
        assert_eq!(Goodput::parse(&text).unwrap(), goodput);
        for (bad, said) in [
            ("", "is not a bound"),
            ("ttft>1s", "is not a bound"),
            ("ttft<fast", "is not a bound"),
            ("latency<1s", "write one of ttft, ttfa, itl, tpot, ntpot, response_time"),
            ("ttft<1s &", "is not a bound"),
        ] {
            let error = Goodput::parse(bad).unwrap_err();
            assert!(error.contains(said), "{bad}: {error}");
        }
    }
}
