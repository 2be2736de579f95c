//! The log of single requests: handed over by workers without a lock, and without ever waiting.
//!
//! A worker owns one [`LogSink`]. It asks whether an entry is [wanted](LogSink::wants), gives it, and goes
//! on; entries leave in batches through a bounded channel to the thread that writes them. If that one cannot
//! keep up, batches are given up and counted, and the load stays the same.

use std::num::NonZeroU128;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use plimsoll_core::{Nanos, Outcome, Random};

use crate::{LogRecord, Sample};

/// Entries that are handed over at once.
const BATCH: usize = 1_000;
/// Requests that may have changed something which are handed over at once.
const WRITES: usize = 64;
/// Streams that are handed over at once: each has an instant for every token.
const STREAMS: usize = 16;
/// Events of one stream whose instants are kept.
pub const MOST_INSTANTS: usize = 100_000;
/// Batches that may wait to be written, over all workers: about 8 MiB.
const BATCHES_WAITING: usize = 100;

/// One ended request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// When it should have started, in Unix time.
    pub unix: Nanos,
    /// Which request of the plan it was: an index into its steps. The scenario follows from it.
    pub step: u32,
    /// Status of its response, 0 if there was none.
    pub status: u16,
    /// Outcome of the request.
    pub outcome: Outcome,
    /// done − intended; of a timeout, a lower bound.
    pub response_time: Nanos,
    /// done − sent; `None` if it was never sent.
    pub service_time: Option<Nanos>,
    /// Bytes of its response on the wire.
    pub bytes_received: u64,
    /// `true` if the request belongs to the warm-up, and is in no figure.
    pub warmup: bool,
    /// Trace id that was sent with it (W3C Trace Context), if one was.
    pub trace: Option<NonZeroU128>,
}

impl LogEntry {
    /// The entry of an ended request without a trace; `unix` is when it should have started, in Unix time.
    #[inline]
    pub fn new(sample: &Sample, unix: Nanos, warmup: bool) -> Self {
        Self {
            unix,
            step: sample.step,
            status: sample.status,
            outcome: sample.outcome,
            response_time: sample.response_time(),
            service_time: (sample.sent != Nanos::MAX).then(|| sample.service_time()),
            bytes_received: sample.bytes_received,
            warmup,
            trace: None,
        }
    }
}

/// A failed request with both messages, as far as they are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedExchange {
    /// Entry of the request, as in the log.
    pub entry: LogEntry,
    /// Reason for the failure, in words; empty if the outcome says it all.
    pub reason: String,
    /// The request: head and body as they were sent. Of HTTP/2, its fields as lines.
    pub request: Message,
    /// The response, as far as it came. Empty if nothing did.
    pub response: Message,
}

/// One message as text: its head, a blank line, its body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// First line and fields of the message, each field `Name: value`, without the blank line.
    pub head: Vec<u8>,
    /// Body of the message, as far as it is kept.
    pub body: Vec<u8>,
    /// Number of bytes of the body that were cut off.
    pub cut: u64,
}

impl FailedExchange {
    /// Bytes that are kept of a head, and of a body, where nothing else is asked for.
    pub const LONGEST: usize = 64 << 10;

    /// One of which no message was kept.
    pub fn bare(entry: LogEntry) -> Self {
        let (request, response) = (Message::default(), Message::default());
        Self { entry, reason: String::new(), request, response }
    }
}

impl Message {
    /// A message of this head and body, each cut to at most `longest` bytes.
    pub fn new(head: &[u8], body: &[u8], longest: usize) -> Self {
        let kept = |bytes: &[u8]| bytes[..bytes.len().min(longest)].to_vec();
        let cut = body.len().saturating_sub(longest) as u64;
        Self { head: kept(head), body: kept(body), cut }
    }
}

/// The events with content of one response, as they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamTimes {
    /// The `id` of its first event if that is a chunk of a completion, else empty; `None` before any event.
    pub id: Option<Box<str>>,
    /// When each came, on the driver's clock: those of the first [`MOST_INSTANTS`].
    pub content: Vec<Nanos>,
    /// Number of events with content behind those.
    pub left_out: u64,
}

impl StreamTimes {
    /// Notes an event with content.
    pub fn note(&mut self, at: Nanos) {
        if self.content.len() < MOST_INSTANTS {
            self.content.push(at);
        } else {
            self.left_out += 1;
        }
    }
}

/// One ended request whose response was a stream of events. Times are on the driver's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamLogEntry {
    /// Entry of the request, as in the log of requests.
    pub entry: LogEntry,
    /// When it should have started.
    pub intended: Nanos,
    /// When it was sent; `None` if it never was.
    pub sent: Option<Nanos>,
    /// Tokens of the prompt by the server's count, if it sent one.
    pub prompt_tokens: Option<u64>,
    /// Tokens of the answer by the server's count, if it sent one.
    pub tokens: Option<u64>,
    /// Events of the stream; `None` if none came.
    pub times: Option<Box<StreamTimes>>,
}

/// A batch that a worker hands over to the writer of the log.
#[derive(Debug)]
pub enum LogBatch {
    /// Entries of the log, in the order in which requests ended on one worker.
    Entries(Vec<LogEntry>),
    /// Streams of events, in the order in which they ended on one worker.
    Streams(Vec<StreamLogEntry>),
    /// One failed request.
    Failed(Box<FailedExchange>),
    /// Requests that may have changed something, whole, in the order in which they ended on one worker.
    Writes(Vec<FailedExchange>),
    /// Nothing more is wanted.
    End,
}

/// Choice of the requests that are logged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogOptions {
    /// The share of requests that is logged, from 0 (no log) to 1 (all).
    pub share: f64,
    /// Number of failed requests that are kept with their messages, over all workers; 0: none.
    pub failed: u64,
    /// Set to keep requests that did not fail as well, as if they had.
    pub good_too: bool,
    /// Set to hand over all requests that may have changed something: whole, however they ended, and even if
    /// they had not ended when the run stopped. Workers wait for room for them.
    pub writes: bool,
    /// Bytes that are kept of a head, and of a body; usually [`FailedExchange::LONGEST`].
    pub longest: usize,
    /// Set to log the instants of the events of all streams.
    pub streams: bool,
    /// Seed of the choice.
    pub seed: u64,
}

/// The shared side of a log: makes the sinks of the workers.
///
/// The default logs nothing.
#[derive(Clone, Debug, Default)]
pub struct Log(Option<Arc<Shared>>);

#[derive(Debug)]
struct Shared {
    options: LogOptions,
    send: SyncSender<LogBatch>,
    /// Failed requests that may still be kept.
    failed_left: AtomicU64,
}

impl Log {
    /// A log, and where its batches come out. They end with [`LogBatch::End`], or when the log and all of
    /// its sinks are gone.
    pub fn new(options: LogOptions) -> (Self, Receiver<LogBatch>) {
        let (send, receive) = sync_channel(BATCHES_WAITING);
        let failed_left = AtomicU64::new(options.failed);
        (Self(Some(Arc::new(Shared { options, send, failed_left }))), receive)
    }

    /// Ends the batches, behind those that were handed over, even if a worker still has its sink. Waits for
    /// room.
    pub fn end(&self) {
        if let Some(shared) = &self.0 {
            // Without a writer there is nothing to end.
            let _ = shared.send.send(LogBatch::End);
        }
    }

    /// The sink of one worker.
    pub fn sink(&self, worker: u32) -> LogSink {
        let seed = self.0.as_ref().map_or(0, |shared| shared.options.seed);
        let share = self.0.as_ref().map_or(0.0, |shared| shared.options.share.clamp(0.0, 1.0));
        LogSink {
            share: (share * (1_u64 << 63) as f64) as u64,
            shared: self.0.clone(),
            // A stream far from those of the schedule and the workers, so that this does not affect the load.
            random: Random::new(seed, u64::from(worker) + (1 << 40)),
            entries: Vec::new(),
            streams: Vec::new(),
            instants: 0,
            writes: Vec::new(),
            record: LogRecord::default(),
        }
    }
}

/// One worker's side of the log. Nothing here locks or waits, except for [writes](LogSink::push_write); it
/// allocates once per batch.
#[derive(Debug)]
pub struct LogSink {
    shared: Option<Arc<Shared>>,
    /// In units of 2^-63; none of it: no log.
    share: u64,
    random: Random,
    entries: Vec<LogEntry>,
    streams: Vec<StreamLogEntry>,
    /// Instants of events in those.
    instants: usize,
    writes: Vec<FailedExchange>,
    record: LogRecord,
}

impl Default for LogSink {
    /// One that wants nothing.
    fn default() -> Self {
        Log::default().sink(0)
    }
}

impl LogSink {
    /// Returns `true` if the next ended request has to be [pushed](Self::push). Draws the sample: call it
    /// once per request.
    #[inline]
    pub fn wants(&mut self) -> bool {
        self.share > 0 && self.random.bits() >> 1 < self.share
    }

    /// Takes an entry, and hands over the entries once they make a batch.
    #[inline]
    pub fn push(&mut self, entry: LogEntry) {
        self.entries.push(entry);
        if self.entries.len() >= BATCH {
            self.flush();
        }
    }

    /// Returns `true` if all ended requests with streams of events have to be [pushed](Self::push_stream).
    #[inline]
    pub fn keeps_streams(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.options.streams)
    }

    /// Takes a stream, and hands over the streams once they make a batch.
    pub fn push_stream(&mut self, stream: StreamLogEntry) {
        self.instants += stream.times.as_ref().map_or(0, |times| times.content.len());
        self.streams.push(stream);
        if self.streams.len() >= STREAMS || self.instants >= MOST_INSTANTS {
            self.flush_streams();
        }
    }

    fn flush_streams(&mut self) {
        let Some(shared) = self.shared.as_ref().filter(|_| !self.streams.is_empty()) else { return };
        let count = self.streams.len() as u64;
        self.instants = 0;
        match shared.send.try_send(LogBatch::Streams(std::mem::take(&mut self.streams))) {
            Ok(()) => self.record.entries += count,
            // No room, or the writer has gone and has reported the reason.
            Err(_) => self.record.dropped += count,
        }
    }

    /// Returns `true` if failed requests are kept with their messages, which therefore have to be at hand.
    /// Stays `true` when the limit is reached.
    #[inline]
    pub fn keeps_failed(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.options.failed > 0)
    }

    /// Returns `true` if messages of requests that did not fail have to be at hand as well.
    pub fn keeps_good(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.options.failed > 0 && shared.options.good_too)
    }

    /// Bytes that are kept of a head, and of a body.
    pub fn longest(&self) -> usize {
        self.shared.as_ref().map_or(0, |shared| shared.options.longest)
    }

    /// Returns `true` if all requests that may have changed something have to be [pushed](Self::push_write).
    #[inline]
    pub fn keeps_writes(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.options.writes)
    }

    /// Takes a request that may have changed something. A check of its outcome needs all of them: it waits
    /// until there is room, which a run shows as a stall of the generator.
    pub fn push_write(&mut self, exchange: FailedExchange) {
        self.writes.push(exchange);
        if self.writes.len() >= WRITES {
            self.flush_writes();
        }
    }

    fn flush_writes(&mut self) {
        let Some(shared) = self.shared.as_ref().filter(|_| !self.writes.is_empty()) else { return };
        let batch = std::mem::replace(&mut self.writes, Vec::with_capacity(WRITES));
        // If the reader has gone, it has reported the reason.
        let _ = shared.send.send(LogBatch::Writes(batch));
    }

    /// Returns `true` if an ended request, which failed or not, has to be [pushed](Self::push_failed). Takes
    /// one of the remaining places: call it once per request, before copying its messages. A request that
    /// finds no place left is counted as dropped.
    #[inline]
    pub fn wants_exchange(&mut self, failed: bool) -> bool {
        let wanted = |options: &LogOptions| options.failed > 0 && (failed || options.good_too);
        let Some(shared) = self.shared.as_ref().filter(|shared| wanted(&shared.options)) else {
            return false;
        };
        let left = &shared.failed_left;
        let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        self.record.failed_dropped += u64::from(taken.is_err());
        taken.is_ok()
    }

    /// Hands over a failed request for which [`wants_exchange`](Self::wants_exchange) was true.
    pub fn push_failed(&mut self, exchange: FailedExchange) {
        let Some(shared) = &self.shared else { return };
        match shared.send.try_send(LogBatch::Failed(Box::new(exchange))) {
            Ok(()) => self.record.failed += 1,
            Err(_) => self.record.failed_dropped += 1,
        }
    }

    /// Hands over the entries that there are: once per interval, and at the end.
    pub fn flush(&mut self) {
        self.flush_writes();
        self.flush_streams();
        let Some(shared) = self.shared.as_ref().filter(|_| !self.entries.is_empty()) else { return };
        let count = self.entries.len() as u64;
        let batch = std::mem::replace(&mut self.entries, Vec::with_capacity(BATCH));
        match shared.send.try_send(LogBatch::Entries(batch)) {
            Ok(()) => self.record.entries += count,
            Err(TrySendError::Full(LogBatch::Entries(mut batch))) => {
                self.record.dropped += count;
                batch.clear();
                self.entries = batch;
            }
            // The writer has gone, and has reported the reason.
            Err(_) => self.record.dropped += count,
        }
    }

    /// Returns the counts of everything that was handed over. Call [`flush`](Self::flush) before.
    pub const fn record(&self) -> LogRecord {
        self.record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u64) -> LogEntry {
        LogEntry {
            unix: Nanos(number),
            step: 0,
            status: 200,
            outcome: Outcome::Ok,
            response_time: Nanos(1),
            service_time: None,
            bytes_received: 0,
            warmup: false,
            trace: None,
        }
    }

    /// Options of a log without entries.
    const NOTHING: LogOptions = LogOptions {
        share: 0.0,
        failed: 0,
        good_too: false,
        writes: false,
        streams: false,
        longest: 100,
        seed: 1,
    };

    #[test]
    fn entries_leave_in_batches_and_what_does_not_fit_is_counted() {
        let (log, receive) = Log::new(LogOptions { share: 1.0, ..NOTHING });
        let mut sink = log.sink(0);
        drop(log);
        let all = (BATCHES_WAITING * BATCH + 2_500) as u64;
        for number in 0..all {
            assert!(sink.wants());
            sink.push(entry(number));
        }
        sink.flush();
        let record = sink.record();
        assert_eq!((record.entries, record.dropped), (all - 2_500, 2_500));
        assert!(!sink.keeps_failed() && !sink.wants_exchange(true));
        drop(sink);
        let mut next = 0;
        for batch in receive {
            let LogBatch::Entries(entries) = batch else { panic!("no request failed") };
            for entry in entries {
                assert_eq!(entry.unix, Nanos(next));
                next += 1;
            }
        }
        assert_eq!(next, all - 2_500);
    }

    #[test]
    fn streams_leave_in_batches_and_with_the_last_flush() {
        let (log, receive) = Log::new(LogOptions { streams: true, ..NOTHING });
        let mut sink = log.sink(0);
        drop(log);
        assert!(sink.keeps_streams() && !LogSink::default().keeps_streams());
        let of = |number: u64| StreamLogEntry {
            entry: entry(number),
            intended: Nanos(1),
            sent: None,
            prompt_tokens: None,
            tokens: Some(number),
            times: None,
        };
        let all = STREAMS as u64 + 3;
        (0..all).for_each(|number| sink.push_stream(of(number)));
        sink.flush();
        assert_eq!((sink.record().entries, sink.record().dropped), (all, 0));
        drop(sink);
        let streams = receive.iter().flat_map(|batch| match batch {
            LogBatch::Streams(streams) => streams,
            other => panic!("{other:?}"),
        });
        assert!(streams.eq((0..all).map(of)));
    }

    /// A stream without an end takes no memory without one, nor do several that are long.
    #[test]
    fn instants_of_a_stream_are_bounded() {
        let mut times = StreamTimes::default();
        (0..MOST_INSTANTS as u64 + 5).for_each(|at| times.note(Nanos(at)));
        assert_eq!((times.content.len(), times.left_out), (MOST_INSTANTS, 5));
        let (log, receive) = Log::new(LogOptions { streams: true, ..NOTHING });
        let mut sink = log.sink(0);
        for _ in 0..3 {
            sink.push_stream(StreamLogEntry {
                entry: entry(0),
                intended: Nanos(1),
                sent: None,
                prompt_tokens: None,
                tokens: None,
                times: Some(Box::new(times.clone())),
            });
        }
        let batches = receive.try_iter().map(|batch| match batch {
            LogBatch::Streams(streams) => streams.len(),
            other => panic!("{other:?}"),
        });
        assert_eq!(batches.collect::<Vec<_>>(), [1, 1, 1]);
    }

    #[test]
    fn a_sample_is_that_share_and_no_log_wants_nothing() {
        let (log, _receive) = Log::new(LogOptions { share: 0.01, seed: 7, ..NOTHING });
        let mut sink = log.sink(3);
        let wanted = (0..100_000).filter(|_| sink.wants()).count();
        // Binomial: 1,000 with a deviation of 31; five of them.
        assert!((843..=1_157).contains(&wanted), "{wanted} of 100,000");
        let mut none = LogSink::default();
        assert!(!none.wants() && !none.keeps_failed() && !none.wants_exchange(true));
        none.flush();
        assert_eq!(none.record(), LogRecord::default());
    }

    #[test]
    fn failed_requests_are_limited_over_all_workers() {
        let (log, receive) = Log::new(LogOptions { failed: 3, ..NOTHING });
        let mut sinks = [log.sink(0), log.sink(1)];
        drop(log);
        for number in 0..10 {
            let sink = &mut sinks[number % 2];
            assert!(!sink.wants() && sink.keeps_failed());
            assert!(!sink.wants_exchange(false));
            if sink.wants_exchange(true) {
                sink.push_failed(FailedExchange {
                    entry: entry(number as u64),
                    reason: String::new(),
                    request: Message::new(b"GET / HTTP/1.1", &[7; 105], 100),
                    response: Message::default(),
                });
            }
        }
        let [a, b] = sinks.map(|sink| sink.record());
        assert_eq!((a.failed + b.failed, a.failed_dropped + b.failed_dropped), (3, 7));
        let kept: Vec<_> = receive.iter().collect();
        assert_eq!(kept.len(), 3);
        let LogBatch::Failed(first) = &kept[0] else { panic!("not an exchange") };
        assert_eq!((first.request.body.len(), first.request.cut), (100, 5));
    }
}
