//! A run under way that the page has started, and its listeners.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use plimsoll_fleet::ControlPort;
use plimsoll_system::clock;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::entries::Entries;
use super::figures::Figures;
use super::messages::Messages;

/// Interval between two checks of the figures: a run renews them as often.
pub(super) const EVERY: Duration = Duration::from_secs(1);
/// Interval between two checks of the figures while a run begins.
const LOOK: Duration = Duration::from_millis(50);
/// Longest time from the begin of a run of a series to its message here, in seconds.
const MESSAGE_DELAY_S: f64 = 0.5;
/// The names of the commands whose result is no run's.
const SEARCH: &str = "find";
pub(super) const SWEEP: &str = "sweep";
/// Name for several runs of one plan, which nothing steers.
pub(super) const REPEAT: &str = "repeat";
/// Status of a result.
const OK: u16 = 200;
/// Status of a control port that has no result yet.
const NOT_YET: u16 = 409;

/// A run that the page has started.
#[derive(Debug)]
pub(crate) struct LiveRun {
    /// Id of the run among those of this server.
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    /// `run`, `repeat`, `find`, `sweep` or `cluster`.
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
    /// The run has not said yet that it begins.
    Starting,
    /// The run goes on, and may be steered.
    Begun,
    /// The run has ended.
    Ended,
}

#[derive(Debug, Default)]
struct State {
    messages: Messages,
    /// Figures of the run; `updates` counts how often there were other ones.
    figures: Figures,
    updates: u64,
    /// The control port of the run that goes on.
    control: Option<ControlPort>,
    /// Id of the run in the history; of a series that of the run that goes on.
    saved: Option<String>,
    /// The runs of a series.
    entries: Entries,
    /// When the latest of them began, in seconds since 1970.
    entry_since: Option<f64>,
    end: Option<End>,
    /// `true` while its start is followed.
    is_followed: bool,
    /// `true` while figures are fetched.
    is_polled: bool,
    last_stat: Option<Value>,
    /// `true` from the command to pause until that to resume.
    is_paused: bool,
}

/// End of a run.
#[derive(Clone, Debug)]
pub(crate) struct End {
    /// `None` if a signal ended it.
    pub(crate) exit_code: Option<i32>,
    /// Result of a search.
    pub(crate) capacity: Option<Value>,
    /// Result of a series of runs, without their intervals.
    pub(crate) suite: Option<Value>,
    /// Result of several runs of one plan, without their intervals.
    pub(crate) repeated: Option<Value>,
}

/// An event for a listener.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    Message(Arc<str>),
    Figures(Bytes),
    /// The runs of a series so far.
    Entries(Value),
    End(Value),
}

/// Position of a listener in the events of a run.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    message: u64,
    update: u64,
    entries: u64,
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
            "paused": state.is_paused && state.end.is_none(),
            "started_unix_s": self.started_unix_s,
            "exit_code": state.end.as_ref().and_then(|end| end.exit_code),
            "run": state.saved,
            "from": "ui",
            "target": state.figures.target(),
            "entry": state.entries.latest().map(|(number, of)| json!({"number": number, "of": of})),
        })
    }

    /// Takes up that it was paused, or resumed.
    pub(crate) fn pause(&self, is_paused: bool) {
        self.lock().is_paused = is_paused;
    }

    /// Returns `true` if it makes many runs, whose result is a capacity.
    pub(crate) fn is_search(&self) -> bool {
        [SEARCH, SWEEP].contains(&self.command)
    }

    pub(crate) fn saved(&self) -> Option<String> {
        self.lock().saved.clone()
    }

    /// Returns the ids in the history of its runs.
    pub(crate) fn all_saved(&self) -> Vec<String> {
        let state = self.lock();
        state.entries.saved().chain(state.saved.as_deref()).map(str::to_owned).collect()
    }

    /// Takes up the id in the history of a run that its process makes, and when that began, in seconds since
    /// 1970. Runs that nothing steers do not tell it themselves.
    pub(crate) fn note_saved(&self, id: &str, started_unix_s: f64) {
        let mut state = self.lock();
        let since = state.entry_since.unwrap_or(self.started_unix_s) - MESSAGE_DELAY_S;
        if self.command != REPEAT || state.end.is_some() || started_unix_s < since {
            return;
        }
        let before = state.entries.changes();
        state.entries.save(id);
        if state.entries.changes() > before {
            self.news.send_replace(());
        }
    }

    /// Returns the time from which on a run in the history may be its own, in seconds since 1970, as long as
    /// its id there is not known.
    pub(crate) fn unknown_since(&self) -> Option<f64> {
        let state = self.lock();
        let is_known = state.saved.is_some() || state.end.is_some() || self.is_search();
        (!is_known).then(|| state.entry_since.unwrap_or(self.started_unix_s))
    }

    /// Returns `true` if it makes several runs of which each has a control port of its own.
    pub(crate) fn is_series(&self) -> bool {
        !self.lock().entries.is_empty()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.lock().end.is_some()
    }

    /// Returns `true` if it has a result.
    pub(crate) fn has_result(&self) -> bool {
        let state = self.lock();
        let has_ended_with =
            |end: &End| end.capacity.is_some() || end.suite.is_some() || end.repeated.is_some();
        state.figures.has_result() || state.end.as_ref().is_some_and(has_ended_with)
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

    /// Takes up messages. `token` is that of its control port, whose address it says; each run of a series
    /// has another one.
    pub(crate) fn say(self: &Arc<Self>, lines: &[String], token: &str) {
        let mut state = self.lock();
        let mut is_announced = false;
        for line in lines {
            state.messages.push(line);
            if state.entries.note(line) {
                (state.control, state.saved) = (None, None);
                state.entry_since = Some(clock::unix().as_secs_f64());
                if self.command == REPEAT && *self.stage.borrow() == Stage::Starting {
                    self.stage.send_replace(Stage::Begun);
                }
            }
            if state.control.is_none()
                && let Some(control) = ControlPort::announced(line, token)
            {
                state.control = Some(control);
                is_announced = true;
                // Intervals of this run do not continue those of the run before.
                state.figures = Figures::default();
            }
        }
        if is_announced && !state.is_followed {
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
        while let Some(control) = self.to_follow() {
            if *self.stage.borrow() != Stage::Starting && !self.is_series() && tick.period() != EVERY {
                tick = interval(EVERY);
            }
            tick.tick().await;
            match control.get("/stat").await {
                Ok(reply) => self.note_stat(&serde_json::from_str(&reply.body).unwrap_or_default(), &control),
                Err(_) => {
                    let mut state = self.lock();
                    // If another run of the series has begun meanwhile, that is followed next.
                    if state.control.as_ref() == Some(&control) {
                        state.is_followed = false;
                        return;
                    }
                }
            }
        }
    }

    /// Returns the control port as long as something is to be learnt about the start of its run.
    fn to_follow(&self) -> Option<ControlPort> {
        let mut state = self.lock();
        let is_known = state.saved.is_some() && *self.stage.borrow() != Stage::Starting;
        let control = state.control.clone().filter(|_| state.end.is_none() && !is_known);
        state.is_followed = control.is_some();
        control
    }

    /// Takes up the figures that the run behind a control port has told.
    fn note_stat(&self, stat: &Value, from: &ControlPort) {
        let mut state = self.lock();
        if state.control.as_ref() != Some(from) {
            return;
        }
        if let Some(id) = stat["run"].as_str().filter(|id| state.saved.as_deref() != Some(id)) {
            state.saved = Some(id.to_owned());
            state.entries.save(id);
            self.news.send_replace(());
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
        let written = output.and_then(|text| serde_json::from_str::<Value>(&text).ok());
        let mut state = self.lock();
        let (mut result, mut capacity, mut suite, mut repeated) = (None, None, None, None);
        match written {
            Some(found) if self.is_search() => {
                let id = ["search", "sweep"].into_iter().find_map(|kind| found[kind]["id"].as_str());
                state.saved = id.map(str::to_owned);
                capacity = Some(found);
            }
            Some(found) if self.command == REPEAT => repeated = Some(without_intervals(found)),
            Some(found) if found["runs"].is_array() => suite = Some(without_intervals(found)),
            found => result = found,
        }
        if let Some(result) = result {
            let id = result["run"]["id"].as_str().map(str::to_owned);
            state.saved = state.saved.take().or(id);
            let mut stat = state.last_stat.take().unwrap_or_else(|| shown(&Value::Null));
            stat["running"] = false.into();
            state.figures = Figures::whole(stat, result);
            state.updates += 1;
        }
        state.end = Some(End { exit_code, capacity, suite, repeated });
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

    /// Returns everything that a listener has not received yet.
    pub(crate) fn news(&self, cursor: &mut Cursor) -> Vec<Told> {
        let state = self.lock();
        let (messages, next) = state.messages.since(cursor.message);
        cursor.message = next;
        let mut told: Vec<Told> = messages.into_iter().map(Told::Message).collect();
        if state.updates > cursor.update {
            let has_previous = cursor.update > 0 && cursor.update + 1 == state.updates;
            cursor.update = state.updates;
            told.push(Told::Figures(state.figures.event(has_previous)));
        }
        if state.entries.changes() > cursor.entries {
            cursor.entries = state.entries.changes();
            told.push(Told::Entries(state.entries.written()));
        }
        if let Some(end) = state.end.as_ref().filter(|_| !cursor.is_over) {
            cursor.is_over = true;
            let End { exit_code, capacity, suite, repeated } = end;
            let mut end = json!({"exit_code": exit_code, "run": state.saved, "capacity": capacity});
            if let Some(suite) = suite {
                end["suite"] = suite.clone();
            }
            if let Some(repeated) = repeated {
                end["repeated"] = repeated.clone();
            }
            told.push(Told::End(end));
        }
        told
    }

    /// Begins to fetch figures if there are listeners. One task serves all of them.
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
            self.fetch(&control).await;
        }
    }

    /// Fetches the figures once. A run that does not answer is about to end, or has no processor.
    ///
    /// The result costs the run the most, so it is asked for only when something has changed, and without the
    /// intervals that are known already.
    async fn fetch(&self, control: &ControlPort) {
        let stat = control.get("/stat").await.ok();
        let Some(stat) = stat.and_then(|reply| serde_json::from_str::<Value>(&reply.body).ok()) else {
            return;
        };
        self.note_stat(&stat, control);
        let stat = shown(&stat);
        let (is_known, settled) = {
            let mut state = self.lock();
            if is_waiting(&state.figures, &stat) {
                state.figures.wait(&stat);
                state.updates += 1;
                self.news.send_replace(());
                return;
            }
            (is_of(&state.figures, &stat), state.figures.settled_until())
        };
        if is_known
            || !(self.fetch_later(control, &stat, settled).await || self.fetch_whole(control, &stat).await)
        {
            return;
        }
        self.news.send_replace(());
    }

    /// Fetches the result without the intervals up to `settled`. Returns `false` if that makes no whole one.
    async fn fetch_later(&self, control: &ControlPort, stat: &Value, settled: Option<f64>) -> bool {
        let Some(after) = settled else { return false };
        let Ok(reply) = control.get(&format!("/result?after={after}")).await else { return false };
        let mut state = self.lock();
        let is_joined = state.is_of(control)
            && reply.status == OK
            && state.figures.join(stat, &reply.body, reply.intervals);
        state.updates += u64::from(is_joined);
        is_joined
    }

    /// Fetches all of the result. Returns `false` if the run does not answer, or has ended.
    async fn fetch_whole(&self, control: &ControlPort, stat: &Value) -> bool {
        let Ok(reply) = control.get("/result").await else { return false };
        let result = match reply.status {
            OK => serde_json::from_str(&reply.body).ok(),
            // It is missing before a request of the measured part has ended.
            NOT_YET => Some(Value::Null),
            _ => None,
        };
        let (Some(result), mut state) = (result, self.lock()) else { return false };
        if !state.is_of(control) {
            return false;
        }
        state.figures = Figures::whole(stat.clone(), result);
        state.updates += 1;
        true
    }
}

impl State {
    /// Returns `true` if the run behind this control port is the one that goes on.
    fn is_of(&self, control: &ControlPort) -> bool {
        self.end.is_none() && self.control.as_ref() == Some(control)
    }
}

/// The result of a series without the intervals of its runs, each of which is in the history.
pub(crate) fn without_intervals(mut series: Value) -> Value {
    for run in series["runs"].as_array_mut().into_iter().flatten() {
        // A suite has its results beside the values of their parameters.
        let result = if run["result"].is_object() { &mut run["result"] } else { run };
        if let Some(result) = result.as_object_mut() {
            result.remove("intervals");
        }
    }
    series
}

/// Returns `true` if figures have everything that these ones of `/stat` tell of.
fn is_of(figures: &Figures, stat: &Value) -> bool {
    let elapsed = stat["elapsed_s"].as_f64();
    figures.stat == *stat && figures.until().zip(elapsed).is_some_and(|(last, elapsed)| last >= elapsed)
}

/// Returns `true` if these figures of `/stat` tell only how much longer answers are waited for: nothing of
/// the result is another one.
fn is_waiting(figures: &Figures, stat: &Value) -> bool {
    let mut before = figures.stat.clone();
    if before["drain_left_s"] == stat["drain_left_s"] || !figures.has_result() {
        return false;
    }
    before["drain_left_s"] = stat["drain_left_s"].clone();
    let elapsed = stat["elapsed_s"].as_f64();
    before == *stat && figures.until().zip(elapsed).is_some_and(|(last, elapsed)| last >= elapsed)
}

/// The members of `/stat` that the page receives.
fn shown(stat: &Value) -> Value {
    let flag = |name: &str| stat[name].as_bool().unwrap_or(false);
    let mut shown = json!({
        "running": flag("running"),
        "stopping": flag("stopping"),
        "paused": flag("paused"),
        "target_per_s": stat["target_per_s"],
        "elapsed_s": stat["elapsed_s"].as_f64().unwrap_or(0.0),
        "end_s": stat["end_s"],
        "sent": stat["sent"],
        "in_flight": stat["in_flight"],
        "drain_left_s": stat["drain_left_s"],
    });
    if let Some(agents) = stat["agents"].as_array() {
        // An agent that falls silent holds up the intervals, and so is news without any.
        shown["agents"] = agents.iter().map(|agent| agent["state"].clone()).collect();
    }
    shown
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
    fn figures_are_of_a_stat_if_they_reach_as_far() {
        let stat = |elapsed: f64| json!({"elapsed_s": elapsed, "paused": false});
        let figures = |elapsed| Figures::whole(stat(elapsed), json!({"intervals": [{"at_s": 2.5}]}));
        assert!(is_of(&figures(2.5), &stat(2.5)) && !is_of(&figures(2.5), &stat(3.5)));
        assert!(!is_of(&figures(3.5), &stat(3.5)) && !is_of(&Figures::default(), &stat(2.5)));
    }

    #[test]
    fn the_wait_for_answers_is_news_without_another_result() {
        let stat = |left: f64, elapsed: f64| shown(&json!({"elapsed_s": elapsed, "drain_left_s": left}));
        let figures = Figures::whole(stat(9.0, 2.5), json!({"intervals": [{"at_s": 2.5}]}));
        assert!(is_waiting(&figures, &stat(8.0, 2.5)) && !is_waiting(&figures, &stat(9.0, 2.5)));
        assert!(!is_waiting(&figures, &stat(8.0, 3.5)));
        let unanswered = Figures::whole(stat(9.0, 2.5), Value::Null);
        assert!(!is_waiting(&unanswered, &stat(8.0, 2.5)), "it is asked for a result");
    }

    #[test]
    fn an_agent_that_falls_silent_is_news_without_an_interval() {
        let stat = |state: &str| {
            shown(
                &json!({"elapsed_s": 2.5, "agents": [{"state": "running"}, {"state": state, "started": 5}]}),
            )
        };
        let figures = Figures::whole(stat("running"), json!({"intervals": [{"at_s": 2.5}]}));
        assert!(is_of(&figures, &stat("running")) && !is_of(&figures, &stat("silent")));
    }

    #[test]
    fn a_series_has_a_run_at_a_time_and_ends_with_its_table() {
        within(|| {
            let run = run("cluster");
            let mut cursor = Cursor::default();
            let say = |lines: &[&str]| {
                run.say(&lines.iter().map(|&line| line.to_owned()).collect::<Vec<_>>(), "t");
            };
            say(&["run 1 of 2: size 5", "control: http://127.0.0.1:1/"]);
            let first = run.control().unwrap();
            run.note_stat(&json!({"run": "a", "running": true}), &first);
            say(&["run 1 of 2 ended: PASS", "run 2 of 2: size 6"]);
            assert!(run.control().is_none() && run.saved().is_none() && run.is_series());
            say(&["control: http://127.0.0.1:2/"]);
            // An answer of the run before comes late.
            run.note_stat(&json!({"run": "a"}), &first);
            assert_eq!((run.saved(), run.all_saved()), (None, vec!["a".to_owned()]));
            let told = run.news(&mut cursor);
            let entries = |told: &[Told]| {
                told.iter().find_map(|told| match told {
                    Told::Entries(entries) => Some(entries.clone()),
                    _ => None,
                })
            };
            assert_eq!(entries(&told).unwrap()["runs"][0]["outcome"], "PASS");
            run.end(Some(0), Some(json!({"runs": [{"result": {"intervals": [1], "x": 2}}]}).to_string()));
            let told = run.news(&mut cursor);
            assert!(entries(&told).is_none() && run.has_result());
            let Some(Told::End(end)) = told.last() else { panic!("{told:?}") };
            assert_eq!(end["suite"], json!({"runs": [{"result": {"x": 2}}]}));
        });
    }

    /// Symptom: of five runs of a plan that the page had started, the one that went on was listed a second
    /// time, as a run of a terminal.
    #[test]
    fn a_run_of_several_is_known_by_its_process_and_told_with_its_number() {
        within(|| {
            let run = run(REPEAT);
            run.say(&["run 1 of 2, seed 7".to_owned()], "t");
            assert_eq!(run.summary()["entry"], json!({"number": 1, "of": 2}));
            run.note_saved("of another time", 0.0);
            assert!(run.all_saved().is_empty());
            let now = clock::unix().as_secs_f64();
            run.note_saved("a", now);
            run.note_saved("a", now);
            assert_eq!(run.all_saved(), ["a"]);
        });
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
