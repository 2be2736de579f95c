//! Saving runs in the history, while they go on and when they are over.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{Builder, JoinHandle};

use plimsoll_core::Nanos;
use plimsoll_document::Problem;
use plimsoll_engine::Progress;
use plimsoll_metrics::interval::PERCENTILES;
use plimsoll_metrics::{Interval, IntervalDownsampler};
use plimsoll_report::saved::{Beginning, PartKind};
use plimsoll_report::{SavedRun, Searched};
use plimsoll_store::{Ongoing, Store, StoreError, Tag};
use plimsoll_system::clock;

use crate::args::save::Saving;
use crate::base::failure::Failure;
use crate::base::{messages, process, streams};

/// Intervals that may wait for the disk; further ones are joined.
const WAITING: usize = 16;
/// Tag of the runs that one command makes, whose value names them together.
const SERIES: &str = "series";
/// Digits of an id that are said to people: enough for thousands of runs.
pub(crate) const DIGITS: usize = 8;

impl Saving {
    /// Begins to save a run. If the place does not permit it, the user is warned at once, and the run can go
    /// on all the same: [`RunSaver::finish`] will fail.
    ///
    /// # Errors
    /// The file is something else, or of a later version.
    pub(crate) fn begin(
        &self,
        beginning: Beginning,
        saver: IntervalDownsampler,
    ) -> Result<RunSaver, Failure> {
        let opened = self.opened();
        let ongoing = self.warned(
            opened.and_then(|store| store.begin(&beginning, saver, &self.labels, &process::this_process())),
        )?;
        let shown = format!("saved as run {}", short(&beginning.context.run_id));
        let is_told = ongoing.is_err() && !self.quiet;
        let (send, receive) = sync_channel(WAITING);
        let thread = Builder::new().name("history".to_owned()).spawn(move || write(ongoing, &receive));
        let thread = thread.map_err(|error| {
            Failure::environment(Problem::new(format!("cannot start the thread of the history: {error}")))
        })?;
        Ok(RunSaver { send, waiting: VecDeque::new(), thread, shown, is_told, quiet: self.quiet })
    }

    /// Tags the runs to be saved as those of one series, unless they have such a tag already.
    pub(crate) fn name_series(&mut self, id: &str) {
        let tags = &mut self.labels.tags;
        if !tags.iter().any(|tag| tag.name == SERIES) {
            tags.push(Tag { name: SERIES.to_owned(), value: short(id).to_owned() });
        }
    }

    /// Looks whether the result of a search could be saved now. If the place does not permit it, the user is
    /// warned, and the search can go on all the same: [`keep`](Self::keep) will fail.
    ///
    /// # Errors
    /// The file is something else, or of a later version.
    pub(crate) fn admit(&self) -> Result<(), Failure> {
        self.warned(self.opened()).map(drop)
    }

    /// Saves the result of a search or a sweep that is over.
    ///
    /// # Errors
    /// It could not be written.
    pub(crate) fn keep(&self, searched: &Searched) -> Result<(), Failure> {
        self.opened().and_then(|mut store| store.keep(searched, &self.labels)).map_err(|error| {
            let problem = Problem::new(format!("the result is not saved: {error}"));
            Failure::environment(problem.with_hint(error.hint()))
        })?;
        let kind = if matches!(searched, Searched::Capacity(_)) { "search" } else { "sweep" };
        messages::say(self.quiet)(&format!("saved as {kind} {}", short(&searched.circumstances().id)));
        Ok(())
    }

    /// Opens the history.
    fn opened(&self) -> Result<Store, StoreError> {
        let (store, aside) = Store::open(&self.path, self.origin, clock::unix().0 / 1_000_000_000)?;
        if let Some(aside) = aside {
            // Reported even with --quiet, since runs are missing from now on.
            streams::to_stderr(&format!(
                "warning: the history {} was damaged; it is {} now, and a new one was begun\n",
                self.path.display(),
                aside.display()
            ));
        }
        Ok(store)
    }

    /// Warns of a place that does not permit to save anything, and fails for any other error.
    fn warned<T>(&self, opened: Result<T, StoreError>) -> Result<Result<T, StoreError>, Failure> {
        match opened {
            Err(error) if !error.is_of_place() => Err(failure(&error)),
            Err(error) => {
                let hint = error.hint();
                messages::say(self.quiet)(&format!(
                    "warning: the run goes on, and will not be saved: {error}\n  hint: {hint}"
                ));
                Ok(Err(error))
            }
            Ok(opened) => Ok(Ok(opened)),
        }
    }
}

/// The first digits of a run's id.
pub(crate) fn short(id: &str) -> &str {
    id.get(..DIGITS).unwrap_or(id)
}

/// An error of the store as a message.
pub(crate) fn failure(error: &StoreError) -> Failure {
    Failure::environment(Problem::new(error.to_string()).with_hint(error.hint()))
}

enum Message {
    /// An interval, and the time of its end.
    Interval(Box<Interval>, Nanos),
    Amend(Box<Beginning>),
    Finish(Box<SavedRun>),
    /// A run that was cut short.
    Cut(Box<SavedRun>),
    Abandon,
}

/// A run under way that is saved. A thread of its own writes; the run control never waits for it.
pub(crate) struct RunSaver {
    send: SyncSender<Message>,
    /// Intervals that found no room in the channel: at most one for each part of the run.
    waiting: VecDeque<(Interval, Nanos)>,
    thread: JoinHandle<Result<(), StoreError>>,
    /// Message to show once the run is saved.
    shown: String,
    /// `true` if the user was warned before the run that it cannot be saved.
    is_told: bool,
    quiet: bool,
}

impl RunSaver {
    /// Hands over the latest interval.
    pub(crate) fn note(&mut self, progress: &Progress<'_>) {
        let (interval, unix) = (progress.interval.clone(), progress.started_unix + progress.elapsed);
        match self.waiting.back_mut() {
            Some((last, heard)) if PartKind::of(last) == PartKind::of(&interval) => {
                (*last, *heard) = (joined(std::mem::take(last), interval), unix);
            }
            _ => self.waiting.push_back((interval, unix)),
        }
        while let Some((interval, unix)) = self.waiting.pop_front() {
            match self.send.try_send(Message::Interval(Box::new(interval), unix)) {
                Ok(()) => {}
                Err(TrySendError::Full(Message::Interval(interval, unix))) => {
                    return self.waiting.push_front((*interval, unix));
                }
                // The thread has gone; its end says why.
                Err(_) => return,
            }
        }
    }

    /// Hands over what is known of the beginning by now.
    pub(crate) fn amend(&self, beginning: Beginning) {
        // If the thread has gone, its end says why.
        let _ = self.send.send(Message::Amend(Box::new(beginning)));
    }

    /// Saves the finished run, and waits until it is written.
    ///
    /// # Errors
    /// It could not be written.
    pub(crate) fn finish(self, run: Box<SavedRun>) -> Result<(), Failure> {
        let (say, shown, is_told) = (messages::say(self.quiet), self.shown.clone(), self.is_told);
        self.end(Message::Finish(run)).map_err(|error| {
            Failure::environment(match is_told {
                true => Problem::new("the run is not saved, for the reason given at its start"),
                false => Problem::new(format!("the run is not saved: {error}")).with_hint(error.hint()),
            })
        })?;
        say(&shown);
        Ok(())
    }

    /// Saves a run that was cut short, as a killed one.
    pub(crate) fn cut(self, run: Box<SavedRun>) {
        let (say, shown) = (messages::say(self.quiet), self.shown.clone());
        match self.end(Message::Cut(run)) {
            Ok(()) => say(&format!("{shown}, up to its last known interval")),
            Err(error) => say(&format!("warning: the run is not saved: {error}")),
        }
    }

    /// Takes back a run that ended with an error.
    pub(crate) fn abandon(self) {
        // The first error counts; a run that stays in the history is listed as killed.
        let _ = self.end(Message::Abandon);
    }

    /// Sends the last message, and waits for the thread. Intervals that still wait are dropped, because the
    /// last message replaces them.
    fn end(self, last: Message) -> Result<(), StoreError> {
        let gone =
            || Err(StoreError::Unusable { path: PathBuf::new(), reason: "its thread ended".to_owned() });
        // If the thread has gone, its end says why.
        let _ = self.send.send(last);
        drop(self.send);
        self.thread.join().unwrap_or_else(|_| gone())
    }
}

/// The body of the thread. A failed write of an interval does no harm if the end can be written.
fn write(ongoing: Result<Ongoing, StoreError>, messages: &Receiver<Message>) -> Result<(), StoreError> {
    let mut ongoing = ongoing?;
    let mut warned = false;
    for message in messages {
        let noted = match message {
            Message::Interval(interval, unix) => ongoing.note(&interval, unix),
            Message::Amend(beginning) => ongoing.amend(&beginning),
            Message::Finish(run) => return ongoing.finish(&run),
            Message::Cut(run) => return ongoing.cut(&run),
            Message::Abandon => return ongoing.abandon(),
        };
        if let Err(error) = noted
            && !std::mem::replace(&mut warned, true)
        {
            streams::to_stderr(&format!("warning: {error}; trying again at the end of the run\n"));
        }
    }
    Ok(())
}

/// Two intervals that follow each other as one. Scenarios are merged: their percentiles
/// cannot be put together.
fn joined(mut earlier: Interval, later: Interval) -> Interval {
    for (mine, theirs) in earlier.steps.iter_mut().zip(&later.steps) {
        mine.merge(theirs);
    }
    earlier.join(&later);
    let total = earlier.total();
    let times = PERCENTILES.map(|p| total.percentile(p).unwrap_or(0));
    earlier.response_time = (!total.response_time.is_empty()).then_some(times);
    earlier.scenarios = Vec::new();
    earlier
}

#[cfg(test)]
mod tests {
    use plimsoll_histogram::Histogram;
    use plimsoll_metrics::{Gauges, Recorder, Tally};

    use super::*;

    fn interval(second: u64, ok: u64) -> Interval {
        let mut histogram = Histogram::new();
        (0..ok).for_each(|i| histogram.record(1_000 * i));
        let mut delta = Default::default();
        plimsoll_histogram::Cursor::new().advance(&histogram, &mut delta);
        let steps = Recorder::new(&["only".to_owned()]).snapshot(Gauges::default()).steps;
        let steps =
            steps.into_iter().map(|step| Tally { ok, response_time: delta.clone(), ..step }).collect();
        let (at, length) = (Nanos::from_secs(second), Nanos::from_secs(1));
        Interval { at, length, ok, in_flight: second, steps, ..Interval::default() }
    }

    #[test]
    fn what_waits_is_joined_and_nothing_is_lost() {
        let both = joined(interval(1, 10), interval(2, 90));
        assert_eq!(
            (both.at.as_secs_f64(), both.length.as_secs_f64(), both.ok, both.in_flight),
            (2.0, 2.0, 100, 2)
        );
        assert_eq!((both.steps[0].ok, both.steps[0].response_time.count()), (100, 100));
        let [p50, .., max] = both.response_time.unwrap();
        assert!((38_000..42_000).contains(&p50) && (89_000..90_000).contains(&max), "{p50} {max}");
    }

    #[test]
    fn the_run_control_does_not_wait_for_the_disk() {
        let (send, receive) = sync_channel(1);
        let (open, gate) = sync_channel(1);
        let thread = Builder::new().spawn(move || {
            gate.recv().unwrap();
            let heard: Vec<Message> = receive.iter().collect();
            assert!(matches!(heard[..], [Message::Interval(..), Message::Abandon]), "{}", heard.len());
            Ok(())
        });
        let waiting = VecDeque::new();
        let mut saver = RunSaver {
            send,
            waiting,
            thread: thread.unwrap(),
            shown: String::new(),
            is_told: false,
            quiet: true,
        };
        for second in 1..=5 {
            let interval = interval(second, second);
            saver.note(&Progress {
                elapsed: interval.at,
                started_unix: Nanos::ZERO,
                end: None,
                target_per_second: None,
                pace: plimsoll_metrics::Pace::default(),
                paused: false,
                interval: &interval,
                machine: None,
                facts: &plimsoll_metrics::MachineFacts::default(),
            });
        }
        let waiting: Vec<_> =
            saver.waiting.iter().map(|(interval, unix)| (interval.ok, unix.as_secs_f64())).collect();
        assert_eq!(waiting, [(2 + 3 + 4 + 5, 5.0)]);
        open.send(()).unwrap();
        assert!(saver.end(Message::Abandon).is_ok());
    }
}
