//! Searches and sweeps in every format, as users see them.

use std::collections::BTreeMap;

use plimsoll_report::capacity::{
    Capacity, CapacityResult, LevelResult, SearchResult, ShareResult, TrialResult,
};
use plimsoll_report::result::{Finding, OutcomeResult, Tool};
use plimsoll_report::sweep::{StreamLevel, SweepLevel, SweepResult};
use plimsoll_report::{
    CAPACITY_SCHEMA_VERSION, Format, NotOfSearches, RunResult, SWEEP_SCHEMA_VERSION, Searched, Style,
    TrialFigures, results_from_json,
};

use crate::{TERMINAL, fixture};

const ALL: [fn() -> Searched; 5] = [found, lowest, ended_by_time, sweep, streams];

fn written(searched: &Searched, format: Format, style: &Style) -> String {
    let mut out = Vec::new();
    searched.render(format, style, &mut out).expect("writing to memory does not fail");
    String::from_utf8(out).expect("every format is UTF-8")
}

fn circumstances(slo: &[&str]) -> SearchResult {
    let context = fixture::context(&[]);
    SearchResult {
        id: "17abcdef".to_owned(),
        name: None,
        targets: vec!["http://127.0.0.1:8080/".to_owned()],
        seed: 42,
        started_at: "2026-03-01T12:00:00.000Z".to_owned(),
        started_at_unix_ns: 1_772_366_400_000_000_000,
        duration_s: 54.0,
        args: ["plimsoll", "find", "http://127.0.0.1:8080/", "--slo", "p99<25ms"].map(str::to_owned).to_vec(),
        plan_hash: context.plan_hash,
        host: context.host,
        load: "open: 100/s Poisson for 2 s".to_owned(),
        slo: slo.iter().map(|slo| (*slo).to_owned()).collect(),
        confidence: 0.95,
        precision: 0.05,
        trial_s: 2.0,
    }
}

fn figures(rate: f64, p99_ms: u64, lag: bool) -> TrialFigures {
    let finding = || Finding {
        code: "start_lag".to_owned(),
        evidence: format!("start lag p99 is 6.93 ms at {rate}/s"),
        hint: "stop other work".to_owned(),
    };
    TrialFigures {
        measured_s: 2.0,
        achieved_per_s: rate,
        in_flight: rate / 100.0,
        p50: Some(p99_ms * 200_000),
        p90: Some(p99_ms * 500_000),
        p99: Some(p99_ms * 1_000_000),
        p99_9: None,
        p_missing: BTreeMap::new(),
        error_rate: 0.0,
        statuses: [("200".to_owned(), (rate * 2.0) as u64)].into(),
        errors: BTreeMap::new(),
        timed_out: 0,
        connections_opened: 64,
        connections_kept: 0,
        limited_by: "none".to_owned(),
        findings: lag.then(finding).into_iter().collect(),
        watched: Vec::new(),
    }
}

/// A search with these rates, their p99 in milliseconds and their findings.
fn capacity(rates: &[(f64, u64, &str)], capacity: Capacity) -> CapacityResult {
    let slo = ["p99<25ms", "error_rate<1%"];
    let share = |slo: &str, share: f64| ShareResult {
        slo: slo.to_owned(),
        limit: 0.01,
        share: Some(share),
        low: Some(share / 2.0),
        high: Some(share * 2.0),
        variance_inflation: Some(1.5),
    };
    let level = |&(rate, p99_ms, finding): &(f64, u64, &str)| LevelResult {
        rate_per_s: rate,
        finding: finding.to_owned(),
        reason: None,
        measured_s: 2.0,
        shares: vec![
            share(slo[0], if p99_ms > 25 { 0.06 } else { 0.004 }),
            share(slo[1], if p99_ms > 900 { 0.2 } else { 0.0 }),
        ],
    };
    let trial = |(number, &(rate, p99_ms, finding)): (u32, &(f64, u64, &str))| TrialResult {
        purpose: if number == 0 { "ramp" } else { "bisection" }.to_owned(),
        rate_per_s: rate,
        after_per_s: None,
        at_s: f64::from(number) * 3.0,
        figures: figures(rate, p99_ms, number % 2 == 1),
        finding: finding.to_owned(),
    };
    CapacityResult {
        schema_version: CAPACITY_SCHEMA_VERSION,
        tool: Tool { name: "plimsoll".to_owned(), version: "0.1.0".to_owned() },
        search: circumstances(&slo),
        capacity,
        levels: rates.iter().map(level).collect(),
        trials: (0..).zip(rates).map(trial).collect(),
    }
}

fn found() -> Searched {
    let rates = [
        (100.0, 4, "holds"),
        (400.0, 9, "holds"),
        (820.0, 21, "holds"),
        (860.0, 31, "breaks"),
        (1600.0, 2100, "breaks"),
    ];
    Searched::Capacity(capacity(
        &rates,
        Capacity {
            low_per_s: Some(820.0),
            high_per_s: Some(860.0),
            asked_per_s: None,
            requests_per_iteration: Some(1.0),
            confirmed: true,
            after_overload_per_s: Some(780.0),
            end: "narrow".to_owned(),
            statement: "the lower rate meets the objectives, the upper one does not".to_owned(),
            notes: vec!["right after an overload it holds 780/s only: it recovers slowly".to_owned()],
        },
    ))
}

fn lowest() -> Searched {
    Searched::Capacity(capacity(
        &[(100.0, 2_100, "breaks")],
        Capacity {
            high_per_s: Some(100.0),
            requests_per_iteration: Some(1.0),
            end: "lowest".to_owned(),
            statement: "no rate that was tried meets the objectives".to_owned(),
            ..Capacity::default()
        },
    ))
}

fn ended_by_time() -> Searched {
    Searched::Capacity(capacity(
        &[(100.0, 20, "unclear")],
        Capacity {
            requests_per_iteration: Some(3.0),
            end: "unclear".to_owned(),
            statement: "rates beside it were tried for 6.00 s and stayed unclear".to_owned(),
            ..Capacity::default()
        },
    ))
}

fn of_levels(levels: Vec<SweepLevel>, slo: &[&str], missing: &str) -> Searched {
    Searched::Sweep(SweepResult {
        schema_version: SWEEP_SCHEMA_VERSION,
        tool: Tool { name: "plimsoll".to_owned(), version: "0.1.0".to_owned() },
        sweep: circumstances(slo),
        setting: "connections".to_owned(),
        levels,
        interrupted: false,
        usl: None,
        usl_missing: Some(missing.to_owned()),
    })
}

fn sweep() -> Searched {
    let level = |(value, finding): (f64, &str)| SweepLevel {
        value,
        figures: figures(value * 500.0, value as u64, finding == "not_applied"),
        records_per_s: None,
        event_streams: None,
        finding: Some(finding.to_owned()),
    };
    let levels = [(1.0, "holds"), (4.0, "unclear"), (32.0, "breaks"), (64.0, "not_applied")];
    of_levels(levels.map(level).to_vec(), &["p99<25ms"], "it takes 6 levels")
}

fn streams() -> Searched {
    let level = |value: f64| SweepLevel {
        value,
        figures: figures(value, 900, false),
        records_per_s: None,
        event_streams: Some(StreamLevel {
            tokens_per_s: Some(value * 30.0),
            tokens_per_s_per_user: Some(30.0),
            ttft_p50: Some(200_000_000),
            ttft_p99: None,
            itl_p99: Some(40_000_000),
        }),
        finding: None,
    };
    of_levels([1.0, 2.0].map(level).to_vec(), &[], "it takes 6 levels")
}

#[test]
fn a_capacity_in_text_and_markdown() {
    insta::assert_snapshot!("text_of_a_capacity", written(&found(), Format::Text, &TERMINAL));
    insta::assert_snapshot!("markdown_of_a_capacity", written(&found(), Format::Markdown, &TERMINAL));
    insta::assert_snapshot!("junit_of_a_capacity", written(&found(), Format::Junit, &TERMINAL));
}

#[test]
fn a_sweep_in_text_and_markdown() {
    insta::assert_snapshot!("text_of_a_sweep", written(&sweep(), Format::Text, &TERMINAL));
    insta::assert_snapshot!("markdown_of_streams", written(&streams(), Format::Markdown, &TERMINAL));
}

/// The page without its template: style sheet and script.
fn content(page: &str) -> &str {
    let from = page.find("<header class=\"page\">").expect("a header");
    let to = page.find("</main>").expect("a page has an end");
    &page[from..to]
}

#[test]
fn a_capacity_as_a_page() {
    insta::assert_snapshot!("page_of_a_capacity", content(&found().page()));
}

#[test]
fn outcomes_and_test_cases() {
    let table = [
        (OutcomeResult::Done, [3, 0, 0, 0]),
        (OutcomeResult::Fail, [3, 2, 0, 0]),
        (OutcomeResult::NoVerdict, [3, 0, 1, 2]),
        (OutcomeResult::Fail, [4, 1, 2, 0]),
        (OutcomeResult::Done, [2, 0, 0, 0]),
    ];
    for (make, (outcome, counts)) in ALL.iter().zip(table) {
        let searched = make();
        assert_eq!(numbers_of_cases(&searched), counts);
        assert_eq!(searched.outcome(), outcome, "{counts:?}");
    }
}

/// The findings of levels that a result may have beside any answer.
const LEVELS: [&[(f64, u64, &str)]; 5] = [
    &[],
    &[(0.4, 20, "unclear")],
    &[(0.4, 20, "unclear"), (100.0, 2_100, "breaks")],
    &[(0.4, 20, "unclear"), (100.0, 31, "breaks")],
    &[(25.0, 4, "holds"), (100.0, 20, "unclear")],
];

/// Every answer that a search may have: its ends, why it ended, and the rate that was asked for.
fn answers() -> Vec<Searched> {
    let ends = ["narrow", "unclear", "highest", "generator", "lowest", "stopped"];
    let interval = |low: bool, high: bool| (low.then_some(800.0), high.then_some(850.0));
    let intervals = [(false, false), (false, true), (true, false), (true, true)];
    let asked = [None, Some(700.0), Some(820.0), Some(900.0)];
    let mut all = Vec::new();
    for ((end, (low, high)), (asked, levels)) in ends
        .into_iter()
        .flat_map(|end| intervals.map(|(low, high)| (end, interval(low, high))))
        .flat_map(|answer| {
            asked
                .into_iter()
                .flat_map(|asked| LEVELS.map(|levels| (asked, levels)))
                .map(move |more| (answer, more))
        })
    {
        let answer = Capacity {
            low_per_s: low,
            high_per_s: high,
            asked_per_s: asked,
            requests_per_iteration: Some(1.0),
            end: end.to_owned(),
            statement: format!("it ended as {end}"),
            ..Capacity::default()
        };
        let mut result = capacity(levels, answer);
        for share in result
            .levels
            .iter_mut()
            .filter(|level| level.finding == "unclear")
            .flat_map(|level| &mut level.shares)
        {
            (share.low, share.high) = (None, None);
        }
        all.push(Searched::Capacity(result));
    }
    all
}

/// Every combination of findings of three levels of a sweep, with an SLO and without.
fn sweeps() -> Vec<Searched> {
    let findings = [Some("holds"), Some("unclear"), Some("breaks"), Some("not_applied"), None];
    let three = findings.into_iter().flat_map(|one| findings.map(|two| (one, two)));
    let three = three.flat_map(|(one, two)| findings.map(|three| [one, two, three]));
    let fits = |slo: &[&str], findings: &[Option<&str>]| {
        findings.iter().all(|finding| {
            if slo.is_empty() { matches!(finding, None | Some("not_applied")) } else { finding.is_some() }
        })
    };
    let made = |(slo, findings): (&[&str], [Option<&str>; 3])| {
        let level = |(value, finding): (f64, Option<&str>)| SweepLevel {
            value,
            figures: figures(value * 500.0, 4, finding == Some("not_applied")),
            records_per_s: None,
            event_streams: None,
            finding: finding.map(str::to_owned),
        };
        of_levels([1.0, 2.0, 4.0].into_iter().zip(findings).map(level).collect(), slo, "it takes 6 levels")
    };
    let slos: [&[&str]; 2] = [&[], &["p99<25ms"]];
    let all = three.flat_map(|findings| slos.map(|slo| (slo, findings)));
    all.filter(|(slo, findings)| fits(slo, findings)).map(made).collect()
}

/// Symptom: JUnit was green for a search that a signal ended, while the exit code was 130.
#[test]
fn junit_of_what_a_signal_ended_is_no_success() {
    let Searched::Sweep(whole) = sweep() else { unreachable!("it is a sweep") };
    let Searched::Capacity(search) = found() else { unreachable!("it is a search") };
    let capacity = Capacity { end: "stopped".to_owned(), ..search.capacity.clone() };
    for (searched, whole) in [
        (Searched::Sweep(SweepResult { interrupted: true, ..whole.clone() }), Searched::Sweep(whole)),
        (Searched::Capacity(CapacityResult { capacity, ..search.clone() }), Searched::Capacity(search)),
    ] {
        let [_, _, errors, _] = numbers_of_cases(&searched);
        let [_, _, errors_of_whole, _] = numbers_of_cases(&whole);
        let xml = written(&searched, Format::Junit, &Style::PLAIN);
        assert_eq!(errors, errors_of_whole + 1, "{xml}");
        assert!(xml.contains("type=\"interrupted\""), "{xml}");
    }
}

/// Symptom: JUnit was green for a server that broke every objective at every rate, where the lowest rate had
/// too few requests to tell, while the exit code was 99; and objectives passed at a rate that was unclear.
#[test]
fn junit_is_as_red_as_the_exit_code_and_passes_nothing_that_was_not_shown() {
    let all: Vec<Searched> = answers().into_iter().chain(sweeps()).collect();
    for searched in &all {
        let xml = written(searched, Format::Junit, &Style::PLAIN);
        let [_, failures, errors, _] = numbers_of_cases(searched);
        let outcome = searched.outcome();
        let is_stopped = matches!(searched, Searched::Capacity(result) if result.capacity.end == "stopped");
        let is_right = match (outcome, searched) {
            // The exit code is that of the signal.
            _ if is_stopped => errors > 0,
            (OutcomeResult::Pass | OutcomeResult::Done, _) => failures == 0 && errors == 0,
            (OutcomeResult::Fail, Searched::Capacity(_)) => failures > 0 && errors == 0,
            // Levels of which one is worse than the others.
            (OutcomeResult::Fail, Searched::Sweep(_)) => failures > 0,
            (OutcomeResult::NoVerdict, _) => failures == 0 && errors > 0,
        };
        assert!(is_right, "{outcome:?}: {xml}");
        let suites = junit_parser::from_reader(xml.as_bytes()).expect("it is XML");
        let passed = |case: &&junit_parser::TestCase| case.status.is_success();
        let names: Vec<&str> =
            suites.suites[0].cases.iter().filter(passed).map(|case| case.name.as_str()).collect();
        let Searched::Capacity(result) = searched else { continue };
        let Capacity { low_per_s: low, high_per_s: high, end, .. } = &result.capacity;
        let has_answer = low.and(*high).is_some() || end == "lowest" || (end == "highest" && low.is_some());
        assert!(has_answer || !names.contains(&"the search has an answer"), "{xml}");
        let shown = |slo: &String| {
            let share = |level: &LevelResult| level.shares.iter().find(|share| share.slo == *slo).cloned();
            result
                .levels
                .iter()
                .filter_map(share)
                .any(|share| share.high.is_some_and(|high| high < share.limit))
        };
        for slo in &result.search.slo {
            let is_passed = names.iter().any(|name| name.starts_with(slo));
            assert!(low.is_some() || !is_passed || shown(slo), "{slo}: {xml}");
        }
        for format in [Format::Text, Format::Markdown] {
            let text = written(searched, format, &TERMINAL);
            let words = [
                Some(result.capacity.interval()),
                result.capacity.asked(),
                Some(format!("t ended as {end}")),
            ];
            assert!(words.iter().flatten().all(|words| text.contains(words)), "{text}");
            let (is_met, is_missed) = (text.contains(": met"), text.contains(": not met"));
            assert!(!is_met || outcome == OutcomeResult::Pass, "{text}");
            assert!(!is_missed || outcome == OutcomeResult::Fail, "{text}");
        }
    }
    let rare = |outcome| all.iter().filter(|searched| searched.outcome() == outcome).count();
    use OutcomeResult::{Done, Fail, NoVerdict, Pass};
    assert!(
        [Done, Fail, NoVerdict, Pass].into_iter().all(|outcome| rare(outcome) > 20),
        "all are in the table"
    );
}

/// The numbers of test cases in a report of JUnit: of all, of failures, errors, and those that were skipped.
fn numbers_of_cases(searched: &Searched) -> [u64; 4] {
    let xml = written(searched, Format::Junit, &Style::PLAIN);
    let report = junit_parser::from_reader(xml.as_bytes()).unwrap_or_else(|error| panic!("{error}: {xml}"));
    let suite = &report.suites[0];
    assert_eq!(suite.cases.len() as u64, suite.tests, "{xml}");
    assert!(suite.system_out.as_ref().is_some_and(|page| page.contains("17abcdef")), "{xml}");
    [suite.tests, suite.failures, suite.errors, suite.skipped]
}

/// That no rate holds is an outcome where all of them were tried, and none where the search ended before.
/// Symptom: a search whose time was over before any rate was shown to hold ended with 99, "no rate holds".
#[test]
fn a_search_that_ran_out_of_time_has_not_shown_that_no_rate_holds() {
    let some = Some(1_000.0);
    for (end, low, high, outcome) in [
        ("lowest", None, some, OutcomeResult::Fail),
        ("unclear", None, some, OutcomeResult::NoVerdict),
        ("stopped", None, some, OutcomeResult::NoVerdict),
        ("stopped", some, None, OutcomeResult::NoVerdict),
        ("generator", None, some, OutcomeResult::NoVerdict),
        ("generator", some, some, OutcomeResult::NoVerdict),
        ("narrow", some, some, OutcomeResult::Done),
        ("unclear", some, some, OutcomeResult::Done),
        ("highest", some, None, OutcomeResult::Pass),
    ] {
        let capacity =
            Capacity { end: end.to_owned(), low_per_s: low, high_per_s: high, ..Capacity::default() };
        assert_eq!(capacity.outcome(), outcome, "{end} {low:?} {high:?}");
    }
}

/// Where requests come faster than they are answered, no share of the answers breaks the objective: it is a
/// failure all the same.
#[test]
fn an_overload_is_a_failure_though_no_share_says_it() {
    let Searched::Capacity(mut result) = lowest() else { panic!("it is a search") };
    for share in &mut result.levels[0].shares {
        (share.share, share.low, share.high) = (None, None, None);
    }
    let searched = Searched::Capacity(result);
    assert_eq!(numbers_of_cases(&searched), [3, 2, 0, 0]);
    let xml = written(&searched, Format::Junit, &TERMINAL);
    assert!(xml.contains("requests came faster than they were answered"), "{xml}");
    let markdown = written(&searched, Format::Markdown, &TERMINAL);
    assert!(markdown.contains("| 2.00 s | - | - |"), "{markdown}");
    assert!(searched.page().contains("100/s breaks: 100.0, 2,100"), "{}", content(&searched.page()));
    // Symptom: the share of bad requests was 0 where none was counted.
    let json = written(&searched, Format::Json, &TERMINAL);
    assert!(json.contains("\"share\": null") && !json.contains("\"share\": 0"), "{json}");
    let sweep = sweep().page();
    assert!(sweep.contains(">32</text>") && !sweep.contains(">connections 32</text>"), "{}", content(&sweep));
}

/// A rate that was asked for decides the outcome, and is a test case.
#[test]
fn a_rate_that_was_asked_for_is_met_or_not_or_not_shown() {
    for (make, asked, outcome, words, counts) in [
        (found as fn() -> Searched, 800.0, OutcomeResult::Pass, "at least 800/s: met", [4, 0, 0, 0]),
        (found, 820.0, OutcomeResult::Pass, "at least 820/s: met", [4, 0, 0, 0]),
        (found, 840.0, OutcomeResult::NoVerdict, "at least 840/s: not shown", [4, 0, 1, 0]),
        (found, 860.0, OutcomeResult::Fail, "at least 860/s: not met", [4, 1, 0, 0]),
        (lowest, 50.0, OutcomeResult::Fail, "at least 50.0/s: not met", [4, 3, 0, 0]),
        (
            ended_by_time,
            10.0,
            OutcomeResult::NoVerdict,
            "at least 10.0 iterations/s: not shown",
            [4, 0, 1, 3],
        ),
    ] {
        let Searched::Capacity(mut result) = make() else { panic!("it is a search") };
        result.capacity.asked_per_s = Some(asked);
        let searched = Searched::Capacity(result);
        assert_eq!(searched.outcome(), outcome, "{words}");
        for format in [Format::Text, Format::Markdown] {
            let text = written(&searched, format, &TERMINAL);
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(searched.page().contains(words), "{words}");
        assert_eq!(numbers_of_cases(&searched), counts, "{words}");
    }
}

#[test]
fn what_was_written_as_json_is_read_again() {
    for make in ALL {
        let searched = make();
        let json = written(&searched, Format::Json, &Style::PLAIN);
        assert_eq!(Searched::from_json(json.as_bytes()).unwrap(), Some(searched));
        let error = results_from_json(json.as_bytes()).expect_err("it is no run");
        assert!(error.to_string().contains("of a search or a sweep, and a run is wanted"), "{error}");
        let later = json.replacen("\"schema_version\": 1", "\"schema_version\": 99", 1);
        let error = Searched::from_json(later.as_bytes()).expect_err("it is of a later version");
        assert!(error.to_string().contains("version 99"), "{error}");
    }
    let run = serde_json::to_vec(&fixture::open()).unwrap();
    assert_eq!(Searched::from_json(&run).unwrap(), None);
    assert!(RunResult::from_json(&run).is_ok());
}

#[test]
fn formats_of_runs_alone_are_refused() {
    for format in Format::ALL {
        for make in ALL {
            let mut out = Vec::new();
            let rendered = make().render(format, &Style::PLAIN, &mut out);
            assert_eq!(rendered.is_ok(), format.is_of_searches(), "{format:?}");
            if let Err(error) = rendered {
                assert_eq!(error.to_string(), NotOfSearches(format).to_string());
            }
        }
    }
}

/// Whatever is in a result is text on a page, and the command can be pasted into a shell.
#[test]
fn a_page_shows_what_it_was_given_as_text() {
    let evil = "</script><script>alert(1)</script><img src=x>";
    for make in ALL {
        let harmless = make().page();
        let mut searched = make();
        let circumstances = match &mut searched {
            Searched::Capacity(result) => &mut result.search,
            Searched::Sweep(result) => &mut result.sweep,
        };
        circumstances.targets = vec![evil.to_owned()];
        circumstances.load = evil.to_owned();
        circumstances.args = ["plimsoll", "find", "--slo", "p99<25ms", evil].map(str::to_owned).to_vec();
        let page = searched.page();
        assert!(!page.contains("<script>alert") && !page.contains("<img"), "{}", content(&page));
        assert_eq!(page.matches("<script").count(), harmless.matches("<script").count());
        assert!(content(&page).contains("--slo &#39;p99&lt;25ms&#39;"), "{}", content(&page));
    }
}

/// Symptom: at 80 columns the rows of a search were wrapped by the terminal, and off a terminal `not applied`
/// was cut in a sweep.
#[test]
fn levels_fit_a_terminal_with_their_findings_and_nothing_is_cut_elsewhere() {
    let findings = ["holds", "breaks", "unclear", "not applied"];
    for (make, style) in ALL.iter().flat_map(|make| [false, true].map(|unicode| (make, unicode))) {
        let style = Style { unicode: style, ..Style::PLAIN };
        let whole = written(&make(), Format::Text, &style);
        let starts = |text: &str| -> Vec<usize> {
            findings.map(|finding| text.lines().filter(|line| line.starts_with(finding)).count()).to_vec()
        };
        assert!(!whole.contains("...") && !whole.contains('…'), "{whole}");
        for width in [60, 70, 80, 100, 140] {
            let text = written(&make(), Format::Text, &Style { width, fits: true, ..style });
            let wide = text.lines().find(|line| line.chars().count() > width);
            assert_eq!(wide, None, "{width}: {text}");
            assert_eq!(starts(&text), starts(&whole), "{width}: {text}");
        }
    }
}

/// Symptom: the chart had trials that were ended early at its ceiling as "no answers", beside a table that
/// said "answered 149/s, errors 0.0 %", and `-` for every percentile.
#[test]
fn a_trial_with_too_few_requests_for_a_percentile_is_not_one_without_answers() {
    let with = |change: &dyn Fn(&mut TrialFigures)| {
        let Searched::Capacity(mut result) = found() else { panic!("it is a search") };
        let last = result.trials.last_mut().expect("it has trials");
        last.figures.p99 = None;
        change(&mut last.figures);
        Searched::Capacity(result)
    };
    let missing = |reason: &str| ["50", "90", "99"].map(|name| (name.to_owned(), reason.to_owned()));
    let short = with(&|figures| {
        let too_few = ("99".to_owned(), "needs 299 samples, has 143".to_owned());
        figures.p_missing = [too_few].into();
    });
    let behind = with(&|figures| {
        (figures.p50, figures.p90) = (None, None);
        figures.statuses.clear();
        figures.p_missing =
            missing("no request that was due in it was answered; 298 were of the lead-in").into();
    });
    let silent = with(&|figures| {
        (figures.p50, figures.p90, figures.achieved_per_s) = (None, None, 0.0);
        figures.statuses.clear();
        figures.p_missing = missing("no answers").into();
    });
    for (searched, drawn, why) in [
        // 1,600/s: p90 is known, and beyond the chart.
        (&short, "↑ ≥ 1,050", "p99 not shown: needs 299 samples, has 143"),
        (&behind, "↑ p99 not shown: too few requests were answered", "298 were of the lead-in"),
        (&silent, "↑ no answers", "p50 not shown: no answers"),
    ] {
        let page = searched.page();
        let page = content(&page);
        assert!(page.contains(drawn), "{drawn}: {page}");
        assert_eq!(page.contains("no answers"), drawn.contains("no answers"), "{page}");
        let text = written(searched, Format::Text, &Style::PLAIN);
        let markdown = written(searched, Format::Markdown, &TERMINAL);
        assert!(text.replace("\n            ", " ").contains(why), "{why}: {text}");
        assert!(page.contains(why) && markdown.contains(why), "{why}: {page} {markdown}");
        let json = written(searched, Format::Json, &TERMINAL);
        assert!(json.contains("\"p_missing\""), "{json}");
    }
    assert!(!written(&found(), Format::Json, &TERMINAL).contains("p_missing"));
}

/// Symptom: rates said "holds" above the capacity, and "breaks" beside a p99 that met the objective, without
/// a word.
#[test]
fn a_finding_that_seems_to_contradict_the_answer_has_its_reason_everywhere() {
    let Searched::Capacity(mut result) = found() else { panic!("it is a search") };
    let reason = "held for 2.00 s: not long enough to count (20.0 s are)";
    (result.levels[3].finding, result.levels[3].reason) = ("unclear".to_owned(), Some(reason.to_owned()));
    let searched = Searched::Capacity(result);
    let text = written(&searched, Format::Text, &Style { width: 80, ..TERMINAL });
    assert!(text.contains(&format!("why         860/s: {reason}")), "{text}");
    let markdown = written(&searched, Format::Markdown, &TERMINAL);
    assert!(markdown.contains(" | why |") && markdown.contains(reason), "{markdown}");
    assert!(searched.page().contains(reason), "{}", content(&searched.page()));
    let json = written(&searched, Format::Json, &TERMINAL);
    assert!(json.contains(&format!("\"reason\": \"{reason}\"")), "{json}");
    assert_eq!(Searched::from_json(json.as_bytes()).unwrap(), Some(searched));
    assert!(!written(&found(), Format::Markdown, &TERMINAL).contains("why"), "there is nothing to explain");
}
