//! Tests of the screen's appearance, in every size and state.

use plimsoll_core::{ErrorClass, Nanos, Outcome};
use plimsoll_metrics::{
    CoreUse, FileUse, Gauges, IntervalMerger, IterationRecord, MachineFacts, MachineInterval, Model, Outline,
    Pace, ProcessUse, Reason, ReasonCode, Recorder, Sample, ScenarioOutline, TargetProcess, ThreadUse,
    Threshold, ThresholdSpec, Verdict, WatchedProcess, WatchedUse, WorkerRecord, WorkerStatus,
};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::figures::Figures;
use super::page::Page;
use super::*;
use crate::base::color::Theme;
use crate::base::messages::MessageScreen as _;

const RICH: Theme = Theme { color: true, unicode: true };
const SECOND: Nanos = Nanos::from_secs(1);

fn subject(steps: usize) -> Subject {
    let names: Vec<String> = (0..steps).map(|step| format!("GET /item/{step}")).collect();
    let all = 0..steps as u32;
    Subject {
        target: "127.0.0.1:8080".to_owned(),
        outline: Outline {
            scenarios: vec![ScenarioOutline { name: "browse".to_owned(), steps: all }],
            steps: names,
            awaited: Vec::new(),
            phases: Vec::new(),
            paces_requests: false,
            metrics: Vec::new(),
        },
        basis: plimsoll_metrics::Basis {
            model: Model::Open,
            warmup: Nanos::from_secs(2),
            precise: false,
            paces_requests: false,
            users: None,
            users_pause: false,
            users_end: false,
            asked_per_second: None,
        },
        downsampler: plimsoll_metrics::IntervalDownsampler::new(SECOND, None, Vec::new(), Outline::default()),
        end: Some(Nanos::from_secs(30)),
        iterations: None,
        interval: SECOND,
        thresholds: ["error_rate<0.1%", "p99<10ms", "p50<1s", "p99.99<1s"].map(threshold).into(),
    }
}

fn threshold(text: &str) -> ThresholdSpec {
    ThresholdSpec::new(Threshold::parse(text).expect("it is one"))
}

/// A run of one worker after this many seconds; from the tenth on some requests fail.
struct Played {
    recorder: Recorder,
    merger: IntervalMerger,
    figures: Figures,
    accounting: plimsoll_metrics::Accounting,
}

impl Played {
    fn new(steps: usize) -> Self {
        let subject = subject(steps);
        Self {
            recorder: Recorder::new(&subject.outline.steps),
            merger: IntervalMerger::new(1).with_outline(subject.outline.clone()),
            figures: Figures::new(subject, Nanos::ZERO),
            accounting: plimsoll_metrics::Accounting::default(),
        }
    }

    fn second(&mut self, number: u64) {
        let warmup = number <= 2;
        let steps = self.figures.subject.outline.steps.len() as u64;
        for request in 0..1_000 {
            let bad = number >= 10 && request % 200 == 7;
            let time =
                Nanos::from_micros(1_000 + (request * 7919 + number * 131) % 900 + request / 990 * 4_000);
            let outcome = match bad {
                false => Outcome::Ok,
                true if request > 500 => Outcome::TimedOut,
                true => Outcome::Failed(ErrorClass::Status5xx),
            };
            let lag = Nanos::from_micros(request % 90);
            let step = (request % steps) as u32;
            self.recorder.note_started(step);
            self.recorder.record(&Sample {
                step,
                intended: Nanos::ZERO,
                started: lag,
                sent: lag,
                first_byte: Nanos::MAX,
                done: time,
                outcome,
                status: if outcome == Outcome::Ok { 200 } else { 503 },
                bytes_sent: 100,
                bytes_received: 1_000,
            });
            if !warmup {
                let accounts = &mut self.accounting;
                (accounts.scheduled, accounts.started) = (accounts.scheduled + 1, accounts.started + 1);
                match outcome {
                    Outcome::Ok => accounts.ok += 1,
                    Outcome::TimedOut => accounts.timed_out += 1,
                    Outcome::Failed(_) => accounts.failed += 1,
                }
            }
        }
        let at = SECOND * number;
        let gauges = Gauges {
            at,
            scheduled: 1_000,
            iterations: 1_000 / steps,
            in_flight: 3,
            connections: 16,
            warmup,
            ..Gauges::default()
        };
        let mut snapshot = self.recorder.snapshot(gauges);
        let lags = self.recorder.start_lags();
        let started = self.accounting.started;
        snapshot.worker_status = (!warmup).then(|| {
            Box::new(WorkerStatus {
                accounting: self.accounting,
                iterations: IterationRecord { started, completed: started, ..IterationRecord::default() },
                kept: WorkerRecord { wall: at.since(SECOND * 2), ..WorkerRecord::default() },
                completed: self.accounting.ok + self.accounting.failed,
                pacing_budget: Nanos::from_micros(100),
                start_lags: lags,
                ..WorkerStatus::default()
            })
        });
        self.merger.add(&snapshot);
        let interval = self.merger.next_complete().unwrap();
        let news = IntervalUpdate {
            end: Some(SECOND * 30),
            target: Some(1_000.0),
            pace: Pace::of_interval(&interval, &self.figures.subject.outline, Some(1_000.0)),
            interval,
            machine: Some(machine(at, warmup)),
        };
        self.figures.add(news, at);
        self.figures.set_time(at);
    }

    fn seconds(mut self, count: u64) -> Figures {
        (1..=count).for_each(|number| self.second(number));
        self.figures
    }
}

fn machine(at: Nanos, warmup: bool) -> (MachineInterval, MachineFacts) {
    let thread = ThreadUse {
        cpu: Nanos::from_millis(120),
        run_delay: Some(Nanos::from_millis(3)),
        involuntary_switches: Some(12),
        ..ThreadUse::default()
    };
    let target = ProcessUse {
        cpu: Nanos::from_millis(340),
        threads: 4,
        rss_bytes: Some(12 << 20),
        ..ProcessUse::default()
    };
    let store = ProcessUse {
        cpu: Nanos::from_millis(70),
        system: Nanos::from_millis(20),
        threads: 5,
        rss_bytes: Some(300 << 20),
        descriptors: Some(60),
        files: Some(FileUse { written_bytes: 5 << 20, ..FileUse::default() }),
        ..ProcessUse::default()
    };
    let seen = MachineInterval {
        at,
        length: SECOND,
        warmup,
        workers: vec![thread],
        target: Some(target),
        watched: [Some(target), Some(store)]
            .map(|used| WatchedUse { processes: 1, used, ..WatchedUse::default() })
            .into(),
        cores: vec![CoreUse { busy: Nanos::from_millis(420), ..CoreUse::default() }; 2],
        ..MachineInterval::default()
    };
    let target = Some(TargetProcess { name: "nginx".to_owned(), pids: vec![7], ..TargetProcess::default() });
    let watched = [("nginx", true), ("redis-server", false)].map(|(name, is_target)| WatchedProcess {
        name: name.to_owned(),
        is_target,
        descriptor_limit: Some(1_024),
        ..WatchedProcess::default()
    });
    (seen, MachineFacts { target, watched: watched.into(), ..MachineFacts::default() })
}

fn drawn(figures: &Figures, page: &mut Page, (width, height): (u16, u16), look: Theme) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let draw = terminal.draw(|frame| {
        page.draw(figures, frame.area(), frame.buffer_mut());
        look.apply(frame.buffer_mut());
    });
    draw.unwrap();
    terminal.backend().to_string()
}

#[test]
fn one_step_in_every_size() {
    let figures = Played::new(1).seconds(12);
    for size in [(80, 24), (200, 60), SMALLEST, (120, 40)] {
        let name = format!("one_step_{}x{}", size.0, size.1);
        insta::assert_snapshot!(name, drawn(&figures, &mut Page::default(), size, RICH));
    }
    let poor = Theme { color: false, unicode: false };
    let shown = drawn(&figures, &mut Page::default(), (80, 24), poor);
    assert!(shown.is_ascii(), "{shown}");
    insta::assert_snapshot!("one_step_ascii", shown);
}

#[test]
fn every_view_of_many_steps() {
    let mut figures = Played::new(30).seconds(12);
    figures.hear("rate 1,100/s from 12.20 s of the run on");
    let mut page = Page::default();
    insta::assert_snapshot!("many_steps_overview", drawn(&figures, &mut page, (100, 30), RICH));
    page.press(ViewKey::Next);
    page.press(ViewKey::Down);
    insta::assert_snapshot!("many_steps_list", drawn(&figures, &mut page, (100, 30), RICH));
    page.press(ViewKey::Last);
    let shown = drawn(&figures, &mut page, (100, 30), RICH);
    assert!(shown.contains("GET /item/29") && shown.contains("more above\u{20}"), "{shown}");
    page.press(ViewKey::First);
    assert!(drawn(&figures, &mut page, (100, 30), RICH).contains("more below"));
    page.press(ViewKey::Next);
    insta::assert_snapshot!("many_steps_instrument", drawn(&figures, &mut page, (100, 30), RICH));
    page.press(ViewKey::Help);
    insta::assert_snapshot!("help", drawn(&figures, &mut page, (80, 24), RICH));
}

#[test]
fn the_beginning_the_warm_up_and_a_stop_say_so() {
    let mut figures = Played::new(1).seconds(0);
    let shown = drawn(&figures, &mut Page::default(), (80, 24), RICH);
    assert!(shown.contains("warm-up, not judged") && shown.contains("0 s of 30 s, 30 s left"), "{shown}");
    figures = Played::new(1).seconds(1);
    let shown = drawn(&figures, &mut Page::default(), (80, 24), RICH);
    assert!(shown.contains("not counted yet") && shown.contains("ok 0"), "{shown}");
    figures = Played::new(1).seconds(5);
    figures.paused = true;
    assert!(drawn(&figures, &mut Page::default(), (80, 24), RICH).contains(" paused "));
    figures.stopping = plimsoll_engine::Stop::Drain;
    assert!(drawn(&figures, &mut Page::default(), (80, 24), RICH).contains("stopping, waiting"));
    figures.lost = 3;
    assert!(drawn(&figures, &mut Page::default(), (80, 24), RICH).contains("3 intervals are missing"));
}

#[test]
fn thresholds_stand_on_the_overview_of_every_size() {
    let figures = Played::new(1).seconds(12);
    for size in [(80, 24), (120, 40), (200, 60)] {
        let shown = drawn(&figures, &mut Page::default(), size, RICH);
        assert!(shown.contains("2 of 4 fail so far") && shown.contains("fails  error_rate<0.1%"), "{shown}");
        // Symptom: "valid so far" in green above a threshold that fails.
        assert!(shown.contains("FAIL so far") && !shown.contains("\u{25cf} valid"), "{shown}");
    }
    let figures = Played::new(1).seconds(6);
    let shown = drawn(&figures, &mut Page::default(), (120, 40), RICH);
    assert!(shown.contains("holds  p99<10ms") && shown.contains("open   p99.99<1s"), "{shown}");
    assert!(drawn(&figures, &mut Page::default(), (80, 24), RICH).contains("3 of 4 hold so far"));
    let mut none = Played::new(1);
    none.figures.subject.thresholds.clear();
    none.figures = Figures::new(none.figures.subject, Nanos::ZERO);
    let shown = drawn(&none.seconds(12), &mut Page::default(), (120, 40), RICH);
    assert!(!shown.contains("thresholds") && shown.contains("errors so far"), "{shown}");
}

#[test]
fn steps_that_fail_come_first() {
    let figures = Played::new(30).seconds(12);
    let shown = drawn(&figures, &mut Page::default(), (80, 24), RICH);
    let rows: Vec<&str> = shown.lines().filter(|line| line.contains("GET /item/")).collect();
    assert!(rows[0].contains("GET /item/7"), "{shown}");
    let mut page = Page::default();
    page.press(ViewKey::Next);
    let shown = drawn(&figures, &mut page, (100, 30), RICH);
    let rows: Vec<&str> = shown.lines().filter(|line| line.contains("GET /item/")).take(4).collect();
    for (row, step) in rows.iter().zip(["/item/7", "/item/17", "/item/27", "/item/0"]) {
        assert!(row.contains(step), "{shown}");
    }
}

#[test]
fn the_line_of_messages_says_nothing_that_the_page_says() {
    let mut figures = Played::new(1).seconds(12);
    let reason = Reason {
        code: ReasonCode::CpuSaturation,
        evidence: "worker 0 had no CPU".to_owned(),
        hint: "stop other work".to_owned(),
    };
    figures.verdict = Some(Verdict { reasons: vec![reason], ..Verdict::default() });
    let count = |size: (u16, u16)| {
        drawn(&figures, &mut Page::default(), size, RICH).matches("cpu_saturation").count()
    };
    assert_eq!([count((80, 24)), count((120, 40)), count((200, 60))], [1, 1, 1]);
}

#[test]
fn rates_have_axes_and_the_level_that_is_asked_for() {
    let figures = Played::new(1).seconds(12);
    let shown = drawn(&figures, &mut Page::default(), (120, 40), RICH);
    assert!(shown.contains("1,200/s\u{2524}") && shown.contains("10 ms\u{2524}"), "{shown}");
    assert!(shown.contains('\u{254c}'), "{shown}");
    // Where there is room, how times are spread.
    let shown = drawn(&figures, &mut Page::default(), (200, 60), RICH);
    assert!(shown.contains("response times over time") && shown.contains("over the run"), "{shown}");
    assert!(!drawn(&figures, &mut Page::default(), (80, 24), RICH).contains("over time"));
}

#[test]
fn no_size_is_too_small_to_draw() {
    let mut figures = Played::new(30).seconds(12);
    figures.hear("a message that is longer than the smallest terminal is wide, and so has to be cut");
    let mut page = Page::default();
    for view in 0..6 {
        for (width, height) in (1..=70).flat_map(|width| [1, 2, 5, 15, 16, 40].map(|height| (width, height)))
        {
            drawn(&figures, &mut page, (width, height), RICH);
        }
        page.press(if view == 2 { ViewKey::Help } else { ViewKey::Next });
    }
}

#[test]
fn messages_wait_for_the_end_of_the_screen_and_are_not_taken_without_one() {
    let stage = ScreenHandle::default();
    assert!(!stage.take("before"));
    stage.inbox().shown = true;
    assert!(stage.take("during"));
    assert_eq!(stage.inbox().messages, ["during"]);
}
