//! A run under way that the page has started, and its listeners.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::messages::Messages;
use plimsoll_fleet::ControlPort;

/// Interval between two looks at the figures: a run renews them as often.
pub(super) const EVERY: Duration = Duration::from_secs(1);
/// The same while it begins.
const LOOK: Duration = Duration::from_millis(50);
/// Status of a result.
const OK: u16 = 200;
/// Status of a control port that has no result yet.
const NOT_YET: u16 = 409;

/// A run that the page has started.
#[derive(Debug)]
pub(crate) struct LiveRun {
    /// Its id among those of this server.
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    /// `run` or `find`.
    pub(crate) command: &'static str,
    pub(crate) started_unix_s: f64,
    /// The number of its process.
    pub(crate) process: Option<u32>,
    state: Mutex<State>,
    /// Wakes the listeners when there is something new. Only they subscribe to it.
    news: watch::Sender<()>,
    /// Progress of its start.
    stage: watch::Sender<Stage>,
}

/// Progress of the start of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It has not said yet that it begins.
    Starting,
    /// It goes on, and may be steered.
    Begun,
    /// It has ended.
    Ended,
}

#[derive(Debug, Default)]
struct State {
    messages: Messages,
    /// The data of the last event about its figures, and the number of such events.
    latest: Option<Bytes>,
    updates: u64,
    control: Option<ControlPort>,
    /// Its id in the history.
    saved: Option<String>,
    end: Option<End>,
    /// `true` as soon as its start is followed.
    is_followed: bool,
    /// `true` while figures are fetched.
    is_polled: bool,
    last_stat: Option<Value>,
}

/// End of a run.
#[derive(Clone, Debug)]
pub(crate) struct End {
    /// `None` if a signal ended it.
    pub(crate) exit_code: Option<i32>,
    /// Result of a search.
    pub(crate) capacity: Option<Value>,
}

/// An event for a listener.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    Message(Arc<str>),
    Figures(Bytes),
    End(Value),
}

/// Position of a listener in the events of a run.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    message: u64,
    update: u64,
    is_over: bool,
}

impl LiveRun {
    pub(crate) fn new(
        id: String,
        name: Option<String>,
        command: &'static str,
        started_unix_s: f64,
        process: Option<u32>,
    ) -> Self {
        let (news, stage) = (watch::Sender::new(()), watch::Sender::new(Stage::Starting));
        Self { id, name, command, started_unix_s, process, state: Mutex::default(), news, stage }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run as an entry of the list.
    pub(crate) fn summary(&self) -> Value {
        let state = self.lock();
        json!({
            "id": self.id,
            "name": self.name,
            "command": self.command,
            "state": if state.end.is_some() { "ended" } else { "running" },
            "started_unix_s": self.started_unix_s,
            "exit_code": state.end.as_ref().and_then(|end| end.exit_code),
            "run": state.saved,
            "from": "ui",
        })
    }

    pub(crate) fn saved(&self) -> Option<String> {
        self.lock().saved.clone()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.lock().end.is_some()
    }

    /// Returns `true` if it has come to a result.
    pub(crate) fn has_result(&self) -> bool {
        let state = self.lock();
        state.latest.is_some() || state.end.as_ref().is_some_and(|end| end.capacity.is_some())
    }

    pub(crate) fn exit_code(&self) -> Option<i32> {
        self.lock().end.as_ref().and_then(|end| end.exit_code)
    }

    pub(crate) fn control(&self) -> Option<ControlPort> {
        self.lock().control.clone()
    }

    /// Returns the messages so far.
    pub(crate) fn messages(&self) -> String {
        self.lock().messages.text()
    }

    /// Waits until its start has come so far.
    pub(crate) async fn reached(&self) -> Stage {
        let mut stage = self.stage.subscribe();
        // The sender lives as long as this.
        stage.wait_for(|stage| *stage != Stage::Starting).await.map_or(Stage::Ended, |stage| *stage)
    }

    /// Takes up messages. `token` is that of its control port, whose address it says.
    pub(crate) fn say(self: &Arc<Self>, lines: &[String], token: &str) {
        let mut state = self.lock();
        for line in lines {
            state.messages.push(line);
            if state.control.is_none() {
                state.control = ControlPort::announced(line, token);
            }
        }
        if state.control.is_some() && !state.is_followed {
            state.is_followed = true;
            tokio::spawn(Arc::clone(self).follow_start());
        }
        drop(state);
        self.news.send_replace(());
        self.poll_if_heard();
    }

    /// Asks if it has begun, after its preflight, and for its id in the history, which it knows then.
    async fn follow_start(self: Arc<Self>) {
        let mut tick = interval(LOOK);
        while !self.has_ended() && (self.saved().is_none() || *self.stage.borrow() == Stage::Starting) {
            if *self.stage.borrow() != Stage::Starting && tick.period() != EVERY {
                tick = interval(EVERY);
            }
            tick.tick().await;
            let Some(control) = self.control() else { return };
            match control.get("/stat").await {
                Ok(reply) => self.note_stat(&serde_json::from_str(&reply.body).unwrap_or_default()),
                Err(_) => return,
            }
        }
    }

    fn note_stat(&self, stat: &Value) {
        let mut state = self.lock();
        if let Some(id) = stat["run"].as_str() {
            state.saved = Some(id.to_owned());
        }
        if stat.is_object() {
            state.last_stat = Some(shown(stat));
        }
        drop(state);
        if stat["running"] == true && *self.stage.borrow() == Stage::Starting {
            self.stage.send_replace(Stage::Begun);
        }
    }

    /// Takes up its end: the exit code, and the result that it has written.
    pub(crate) fn end(&self, exit_code: Option<i32>, output: Option<String>) {
        let result = output.and_then(|text| serde_json::from_str::<Value>(&text).ok());
        let mut state = self.lock();
        let (result, capacity) = if self.command == "find" { (None, result) } else { (result, None) };
        if let Some(result) = result {
            let id = result["run"]["id"].as_str().map(str::to_owned);
            state.saved = state.saved.take().or(id);
            let mut stat = state.last_stat.take().unwrap_or_else(|| shown(&Value::Null));
            stat["running"] = false.into();
            state.latest = Some(figures(&stat, &result.to_string()));
            state.updates += 1;
        }
        state.end = Some(End { exit_code, capacity });
        state.control = None;
        drop(state);
        self.stage.send_replace(Stage::Ended);
        self.news.send_replace(());
    }

    /// Begins to listen: the receiver is woken for news.
    pub(crate) fn listen(self: &Arc<Self>) -> watch::Receiver<()> {
        let news = self.news.subscribe();
        self.poll_if_heard();
        news
    }

    /// Returns everything that a listener has not been told yet.
    pub(crate) fn news(&self, cursor: &mut Cursor) -> Vec<Told> {
        let state = self.lock();
        let (messages, next) = state.messages.since(cursor.message);
        cursor.message = next;
        let mut told: Vec<Told> = messages.into_iter().map(Told::Message).collect();
        if let Some(latest) = state.latest.as_ref().filter(|_| state.updates > cursor.update) {
            cursor.update = state.updates;
            told.push(Told::Figures(latest.clone()));
        }
        if let Some(end) = state.end.as_ref().filter(|_| !cursor.is_over) {
            cursor.is_over = true;
            let End { exit_code, capacity } = end;
            told.push(Told::End(json!({"exit_code": exit_code, "run": state.saved, "capacity": capacity})));
        }
        told
    }

    /// Begins to fetch figures if somebody listens. One task does so, however many listen.
    fn poll_if_heard(self: &Arc<Self>) {
        let mut state = self.lock();
        let is_wanted = state.control.is_some() && state.end.is_none() && self.news.receiver_count() > 0;
        if is_wanted && !state.is_polled {
            state.is_polled = true;
            tokio::spawn(Arc::clone(self).poll());
        }
    }

    async fn poll(self: Arc<Self>) {
        let mut tick = interval(EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut known = KnownResult::default();
        loop {
            tick.tick().await;
            let control = {
                let mut state = self.lock();
                let heard = self.news.receiver_count() > 0 && state.end.is_none();
                match state.control.clone().filter(|_| heard) {
                    Some(control) => control,
                    None => {
                        state.is_polled = false;
                        return;
                    }
                }
            };
            self.fetch(&control, &mut known).await;
        }
    }

    /// Fetches the figures once. A run that does not answer is about to end, or has no processor.
    ///
    /// The result costs the run the most, so it is asked for only when something has changed, and without the
    /// intervals that are known already.
    async fn fetch(&self, control: &ControlPort, known: &mut KnownResult) {
        let stat = control.get("/stat").await.ok();
        let Some(stat) = stat.and_then(|reply| serde_json::from_str::<Value>(&reply.body).ok()) else {
            return;
        };
        self.note_stat(&stat);
        let stat = shown(&stat);
        if known.is_of(&stat) {
            return;
        }
        let result = match known.fetch(control).await {
            Some(Fetched::Result) => known.result.to_string(),
            Some(Fetched::NotYet) => "null".to_owned(),
            None => return,
        };
        let data = figures(&stat, &result);
        known.stat = Some(stat);
        let mut state = self.lock();
        if state.end.is_none() {
            state.latest = Some(data);
            state.updates += 1;
            drop(state);
            self.news.send_replace(());
        }
    }
}

/// The result of a run as it was fetched last.
#[derive(Debug, Default)]
struct KnownResult {
    /// With all intervals; null before there was one.
    result: Value,
    /// The figures that came with it.
    stat: Option<Value>,
}

/// Answer of a run that was asked for its result.
enum Fetched {
    Result,
    /// There is none before a request of the measured part has ended.
    NotYet,
}

impl KnownResult {
    /// Fetches the result anew, without the intervals that cannot have changed. `None` if the run does not
    /// answer.
    async fn fetch(&mut self, control: &ControlPort) -> Option<Fetched> {
        if let Some(after) = self.settled_until() {
            let reply = control.get(&format!("/result?after={after}")).await.ok()?;
            if reply.status == OK && self.join(&reply.body, reply.intervals) {
                return Some(Fetched::Result);
            }
        }
        let reply = control.get("/result").await.ok()?;
        match reply.status {
            OK => {
                self.result = serde_json::from_str(&reply.body).ok()?;
                Some(Fetched::Result)
            }
            NOT_YET => Some(Fetched::NotYet),
            _ => None,
        }
    }

    /// Returns `true` if the result has everything that these figures tell of.
    fn is_of(&self, stat: &Value) -> bool {
        let last =
            self.result["intervals"].as_array().and_then(|intervals| intervals.last()?["at_s"].as_f64());
        let elapsed = stat["elapsed_s"].as_f64();
        self.stat.as_ref() == Some(stat) && last.zip(elapsed).is_some_and(|(last, elapsed)| last >= elapsed)
    }

    /// End of the last interval but one, in seconds: the last one may still grow.
    fn settled_until(&self) -> Option<f64> {
        let intervals = self.result["intervals"].as_array()?;
        intervals.get(intervals.len().checked_sub(2)?)?["at_s"].as_f64()
    }

    /// Takes up a result that lacks the intervals which are known. Returns `false` if they do not make a
    /// whole one: the run has joined some of them, or judges anew which ones its beginning has.
    fn join(&mut self, text: &str, intervals: Option<usize>) -> bool {
        let Ok(mut result) = serde_json::from_str::<Value>(text) else { return false };
        let Some(Value::Array(mut all)) = self.result.get_mut("intervals").map(Value::take) else {
            return false;
        };
        all.pop();
        let is_same = result["steady"]["from_s"] == self.result["steady"]["from_s"];
        if let Some(Value::Array(later)) = result.get_mut("intervals") {
            all.append(later);
        }
        if !is_same || intervals != Some(all.len()) {
            // What is left is asked for as a whole.
            return false;
        }
        result["intervals"] = Value::Array(all);
        self.result = result;
        true
    }
}

/// The members of `/stat` that the page is told.
fn shown(stat: &Value) -> Value {
    let flag = |name: &str| stat[name].as_bool().unwrap_or(false);
    json!({
        "running": flag("running"),
        "stopping": flag("stopping"),
        "paused": flag("paused"),
        "target_per_s": stat["target_per_s"],
        "elapsed_s": stat["elapsed_s"].as_f64().unwrap_or(0.0),
        "end_s": stat["end_s"],
    })
}

/// The data of an event, from JSON that was written already.
pub(super) fn figures(stat: &Value, result: &str) -> Bytes {
    format!("{{\"stat\":{stat},\"result\":{result}}}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(command: &'static str) -> Arc<LiveRun> {
        Arc::new(LiveRun::new("1".to_owned(), None, command, 0.0, None))
    }

    fn within<T>(work: impl FnOnce() -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _within = runtime.enter();
        work()
    }

    #[test]
    fn two_listeners_are_told_the_same_and_each_thing_once() {
        within(|| {
            let run = run("run");
            let mut early = Cursor::default();
            run.say(&["one".to_owned()], "t");
            assert_eq!(run.news(&mut early).len(), 1);
            run.say(&["two".to_owned()], "t");
            run.end(Some(99), Some("{\"run\": {\"id\": \"abc\"},\n \"x\": 1}".to_owned()));
            let mut late = Cursor::default();
            let (first, second) = (run.news(&mut early), run.news(&mut late));
            assert_eq!((first.len(), second.len()), (3, 4));
            let Told::Figures(data) = &first[1] else { panic!("{first:?}") };
            assert!(!data.contains(&b'\n'), "a line would end an event's data");
            let data: Value = serde_json::from_slice(data).unwrap();
            assert_eq!((&data["result"]["x"], &data["stat"]["running"]), (&json!(1), &json!(false)));
            let Told::End(end) = &second[3] else { panic!("{second:?}") };
            assert_eq!(*end, json!({"exit_code": 99, "run": "abc", "capacity": null}));
            assert!(run.news(&mut early).is_empty() && run.news(&mut late).is_empty());
        });
    }

    #[test]
    fn a_result_is_joined_to_the_intervals_that_are_known_or_asked_for_as_a_whole() {
        let result = |from: f64, ends: &[f64]| {
            let intervals: Vec<Value> = ends.iter().map(|at| json!({"at_s": at})).collect();
            json!({"steady": {"from_s": from}, "intervals": intervals})
        };
        let known = || KnownResult { result: result(0.0, &[1.0, 2.0, 2.5]), stat: None };
        assert_eq!((known().settled_until(), KnownResult::default().settled_until()), (Some(2.0), None));
        let mut same = known();
        // The last interval has grown, and there is one more.
        assert!(same.join(&result(0.0, &[3.0, 4.0]).to_string(), Some(4)));
        assert_eq!(same.result, result(0.0, &[1.0, 2.0, 3.0, 4.0]));
        for (next, intervals) in [
            // Intervals were joined, are not counted, or are judged in another way.
            (result(0.0, &[3.0, 4.0]), Some(3)),
            (result(0.0, &[3.0, 4.0]), None),
            (result(1.0, &[3.0, 4.0]), Some(4)),
        ] {
            assert!(!known().join(&next.to_string(), intervals));
        }
        let stat = |elapsed: f64| json!({"elapsed_s": elapsed, "paused": false});
        let current = KnownResult { stat: Some(stat(2.5)), ..known() };
        let late = KnownResult { stat: Some(stat(3.5)), ..known() };
        assert!(current.is_of(&stat(2.5)) && !current.is_of(&stat(3.5)) && !late.is_of(&stat(3.5)));
        assert!(!KnownResult::default().join("{}", Some(0)) && !known().join("{", None));
    }

    #[test]
    fn a_search_ends_with_what_it_has_found() {
        within(|| {
            let run = run("find");
            run.end(Some(0), Some("{\"capacity\": 5}".to_owned()));
            let told = run.news(&mut Cursor::default());
            let [Told::End(end)] = &told[..] else { panic!("{told:?}") };
            assert_eq!(*end, json!({"exit_code": 0, "run": null, "capacity": {"capacity": 5}}));
        });
    }
}
