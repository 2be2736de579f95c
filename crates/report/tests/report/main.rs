//! Every format of fixed results, as users see them.

mod comparison;
mod contract;
mod error_rows;
mod fixture;
mod fleet;
mod formats;
mod html;
mod interleaved;
mod long;
mod own_metrics;
mod repeated;
mod saved;
mod searched;
mod slices;

use plimsoll_core::{Nanos, figure};
use plimsoll_metrics::{EarlyEnd, EndedBy, Model, Peer, Reason, ReasonCode, RunRecord};
use plimsoll_report::result::Finding;
use plimsoll_report::{
    Format, RunResult, SUITE_SCHEMA_VERSION, SavedRun, Style, SuiteResult, SuiteRun, TableFormat,
    TrialFigures, render, render_suite,
};

/// A terminal with everything but colour, which would hide the text in the snapshots.
const TERMINAL: Style = Style { color: false, unicode: true, width: 100, fits: true };

fn rendered(result: &RunResult, format: Format, style: &Style) -> String {
    let mut out = Vec::new();
    render(result, format, style, &mut out).expect("writing to memory does not fail");
    String::from_utf8(out).expect("every format is UTF-8")
}

#[test]
fn text_of_an_open_run() {
    insta::assert_snapshot!(rendered(&fixture::open(), Format::Text, &TERMINAL));
}

#[test]
fn text_of_a_run_beside_a_probe() {
    let result = fixture::with_probe();
    let text = rendered(&result, Format::Text, &TERMINAL);
    let from = text.find("service time by a probe").expect("the probe is shown");
    insta::assert_snapshot!(&text[from..]);
    let bias = &result.probe.expect("there is one").bias["50"];
    assert_eq!(bias.difference_ns, bias.load_ns as i64 - bias.probe_ns as i64);
}

/// Symptom: a suite of bulks of 1, 100 and 500 items compared requests, by which the largest was the slowest.
#[test]
fn runs_of_a_suite_are_compared_by_the_records_of_their_requests() {
    let run = |size: &str, result: Option<RunResult>| SuiteRun {
        values: [("size".to_owned(), size.to_owned())].into(),
        exit_code: 0,
        result,
        error: Vec::new(),
    };
    let table = |runs: Vec<SuiteRun>, format| {
        let result = SuiteResult {
            schema_version: SUITE_SCHEMA_VERSION,
            tool: fixture::open().tool,
            cluster: "lithair".to_owned(),
            suite: "bulk_vs_single".to_owned(),
            parameters: vec!["size".to_owned()],
            runs,
            complete: true,
        };
        let mut out = Vec::new();
        render_suite(&result, format, &TERMINAL, &mut out).expect("writing to memory does not fail");
        String::from_utf8(out).expect("every format is UTF-8")
    };
    let runs = || vec![run("1000", Some(fixture::with_records())), run("1", None)];
    let text = table(runs(), TableFormat::Text);
    let head = text.lines().find(|line| line.contains("answered/s")).expect("a head");
    let columns: Vec<&str> = head.split_whitespace().collect();
    assert_eq!(columns[..4], ["size", "answered/s", "records/s", "p50"], "{text}");
    let first = text.lines().find(|line| line.starts_with("run 1 ")).expect("a row");
    let cells: Vec<&str> = first.split_whitespace().collect();
    assert_eq!(cells[4], "1,000,000/s", "{text}");
    let csv = table(runs(), TableFormat::Csv);
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{csv}");
    assert_eq!((lines[0].last(), lines[1].last()), (Some(&"records_per_s"), Some(&"1000000")), "{csv}");
    assert!(!table(vec![run("1", Some(fixture::open()))], TableFormat::Text).contains("records/s"));
}

#[test]
fn records_are_counted_beside_the_requests_that_carry_them() {
    let result = fixture::with_records();
    let text = rendered(&result, Format::Text, &TERMINAL);
    let from = text.find("records ").expect("they are shown");
    let shown: Vec<&str> = text[from..].lines().take(4).map(str::trim).collect();
    let expected = [
        "records     10,000,000 acknowledged, 1,000,000/s",
        "3,000 in batches that failed; the store may have them or not",
        "83.3 % of 1,200,000/s that were asked for: good, with a small bottleneck",
        "",
    ];
    assert_eq!(shown, expected, "{text}");
    let records = result.records.expect("there are some");
    assert_eq!((records.acknowledged, records.failed), (10_000_000, 3_000));
    assert!(fixture::open().records.is_none());
}

/// Symptom: "excellent, the store keeps up" a few lines below an invalid verdict.
#[test]
fn an_invalid_run_praises_no_store() {
    let mut result = fixture::with_records();
    let records = result.records.as_mut().expect("there are some");
    records.target_per_s = records.acknowledged_per_s;
    for (valid, said, other) in [
        (true, "excellent, the store keeps up", "says nothing of the store"),
        (false, "the run is invalid, which says nothing of the store", "keeps up"),
    ] {
        result.verdict.valid = valid;
        for format in [Format::Summary, Format::Text, Format::Markdown] {
            let text = rendered(&result, format, &Style { width: 140, ..TERMINAL });
            assert!(text.contains(said) && !text.contains(other), "{format:?}: {text}");
        }
    }
}

#[test]
fn text_of_a_closed_run() {
    insta::assert_snapshot!(rendered(&fixture::closed(), Format::Text, &TERMINAL));
}

#[test]
fn text_of_a_run_in_which_everything_failed() {
    insta::assert_snapshot!(rendered(&fixture::all_failed(), Format::Text, &TERMINAL));
}

#[test]
fn text_of_an_empty_run() {
    insta::assert_snapshot!(rendered(&fixture::empty(), Format::Text, &TERMINAL));
}

#[test]
fn text_of_a_run_with_timeouts() {
    insta::assert_snapshot!(rendered(&fixture::timeouts(), Format::Text, &TERMINAL));
}

#[test]
fn text_of_a_run_of_phases() {
    insta::assert_snapshot!(rendered(&fixture::phases(), Format::Text, &TERMINAL));
}

#[test]
fn text_of_a_steered_run() {
    insta::assert_snapshot!(rendered(&fixture::steered(), Format::Text, &TERMINAL));
}

#[test]
fn text_of_a_run_that_settles() {
    insta::assert_snapshot!(rendered(&fixture::settling(), Format::Text, &TERMINAL));
}

#[test]
fn text_of_an_overloaded_run() {
    insta::assert_snapshot!(rendered(&fixture::overloaded(), Format::Text, &TERMINAL));
}

#[test]
fn text_of_a_run_on_a_watched_machine() {
    insta::assert_snapshot!(rendered(&fixture::machine(), Format::Text, &TERMINAL));
}

#[test]
fn json_of_a_run_on_a_watched_machine() {
    let result = serde_json::to_value(fixture::machine()).expect("a result is JSON");
    let part = serde_json::json!({
        "limited_by": result["verdict"]["limited_by"],
        "machine": result["generator"]["machine"],
        "target_process": result["generator"]["target_process"],
        "watched": result["generator"]["watched"],
        "interval": result["intervals"][1]["machine"],
        "in_stall": result["in_stall"]["response_time"]["count"],
        "without": result["in_stall"]["response_time_without"]["count"],
    });
    insta::assert_snapshot!(serde_json::to_string_pretty(&part).expect("a result is JSON"));
}

#[test]
fn text_of_huge_figures() {
    insta::assert_snapshot!(rendered(&fixture::huge(), Format::Text, &TERMINAL));
}

#[test]
fn text_of_iterations_over_http2() {
    insta::assert_snapshot!(rendered(&fixture::http2(), Format::Text, &TERMINAL));
}

#[test]
fn a_limit_of_streams_is_named_for_what_it_is() {
    let line = |limit: Option<u64>, connections: u64| {
        let mut result = fixture::http2();
        let http2 = result.http2.as_mut().expect("it speaks HTTP/2");
        (http2.stream_limit, http2.connections) = (limit, connections);
        let text = rendered(&result, Format::Text, &TERMINAL);
        text.lines().find(|line| line.starts_with("HTTP/2")).unwrap_or_default().to_owned()
    };
    for (limit, expected) in [
        (None, "up to 100 streams per connection as asked for, server sets no limit"),
        (Some(100), "up to 100 streams per connection as asked for, server allows 100"),
        (Some(99), "server allows 99 streams per connection, 100 were asked for: limited by that"),
        (Some(1), "server allows 1 stream per connection, 100 were asked for: limited by that"),
    ] {
        assert_eq!(line(limit, 12), format!("HTTP/2      {expected}"));
    }
    assert_eq!(line(None, 0), "HTTP/2      no connection was established");
}

#[test]
fn every_target_has_one_line_with_what_was_found_out_about_it() {
    let mut record = fixture::quiet_record();
    record.peers[0].tls_version = Some("TLSv1.3".to_owned());
    let mut context = fixture::context(&["open"]);
    // The same authority by two schemes is two targets, and to the third no connection was established.
    context.targets = vec![
        fixture::target("h.test", &["https://h.test/a", "https://h.test/b"]),
        fixture::target("h.test", &["http://h.test/"]),
        fixture::target("other.test", &["http://other.test/"]),
    ];
    record.peers.push(Peer { addresses: vec!["192.0.2.1:80".to_owned()], ..record.peers[0].clone() });
    record.peers[1].tls_version = None;
    let result = fixture::result_with(record, context);
    let text = rendered(&result, Format::Text, &TERMINAL);
    let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("target      ")).collect();
    assert_eq!(
        lines,
        [
            "https://h.test/a, https://h.test/b at 127.0.0.1:8080, http/1.1, TLSv1.3",
            "http://h.test/ at 192.0.2.1:80, http/1.1",
            "http://other.test/",
        ]
    );
    let authorities: Vec<&str> = result.run.targets.iter().map(|target| &*target.authority).collect();
    assert_eq!(authorities, ["h.test", "h.test", "other.test"]);
}

#[test]
fn the_rate_is_one_of_requests_and_of_iterations() {
    let line = |result: &RunResult| {
        let text = rendered(result, Format::Text, &TERMINAL);
        text.lines().find_map(|line| line.strip_prefix("rate        ")).unwrap_or_default().to_owned()
    };
    assert_eq!(line(&fixture::open()), "1,000/s achieved of 1,000/s asked for (100.0 %)");
    assert_eq!(line(&fixture::closed()), "1,000/s achieved");
    assert_eq!(line(&fixture::empty()), "- achieved");
    let mut result = fixture::http2();
    // The share is on the next line.
    let expected = "950 requests/s achieved, of which 858/s ok; 333 iterations/s started of 333/s asked for";
    assert_eq!(line(&result), expected);
    result.rate.target_per_s = None;
    assert_eq!(line(&result), "950 requests/s achieved, of which 858/s ok; 333 iterations/s started");
    (result.rate.achieved_per_s, result.rate.iterations_started_per_s) = (None, None);
    assert_eq!(line(&result), "- requests/s achieved; - iterations/s started");
}

#[test]
fn iterations_are_told_where_they_are_more_than_requests() {
    let tells = |result: &RunResult| {
        rendered(result, Format::Text, &TERMINAL).lines().any(|line| line.starts_with("iterations"))
    };
    assert!(!tells(&fixture::open()) && !tells(&fixture::closed()) && !tells(&fixture::empty()));
    let mut result = fixture::http2();
    assert!(tells(&result));
    // None came further than its first step: then there are as many as requests, but still of three steps.
    let accounting = &result.accounting;
    result.iterations.started = accounting.started;
    result.iterations.completed = accounting.ok;
    result.iterations.failed = accounting.failed;
    result.iterations.unfinished = 0;
    assert!(tells(&result));
    result.by_step.truncate(1);
    assert!(!tells(&result));
}

#[test]
fn text_of_thresholds() {
    insta::assert_snapshot!(rendered(&fixture::thresholds(), Format::Text, &TERMINAL));
}

#[test]
fn json_of_thresholds() {
    let result = serde_json::to_value(fixture::thresholds()).expect("a result is JSON");
    let part = serde_json::json!({
        "thresholds": result["thresholds"],
        "verdict": result["verdict"]["thresholds"],
        "ended": result["run"]["ended_by_threshold"],
        "log": result["log"],
        "interval": result["intervals"][9],
    });
    insta::assert_snapshot!(serde_json::to_string_pretty(&part).expect("a result is JSON"));
}

#[test]
fn text_in_plain_style() {
    insta::assert_snapshot!(rendered(&fixture::timeouts(), Format::Text, &Style::PLAIN));
}

#[test]
fn json_of_a_run_with_timeouts() {
    insta::assert_snapshot!(rendered(&fixture::timeouts(), Format::Json, &Style::PLAIN));
}

#[test]
fn json_of_iterations_over_http2() {
    let result = serde_json::to_value(fixture::http2()).expect("a result is JSON");
    let mut part =
        serde_json::json!({ "iterations": result["iterations"], "protocols": result["protocols"] });
    part["http2"] = result["http2"].clone();
    // As large as everywhere, and the same for every kind of time.
    part["http2"]["ping_time"]["distribution"].take();
    insta::assert_snapshot!(serde_json::to_string_pretty(&part).expect("a result is JSON"));
}

#[test]
fn csv_of_an_open_run() {
    insta::assert_snapshot!(rendered(&fixture::open(), Format::Csv, &Style::PLAIN));
}

#[test]
fn plain_text_is_ascii_and_colour_only_adds_sequences() {
    for (name, result) in fixture::all() {
        let plain = rendered(&result, Format::Text, &Style::PLAIN);
        assert!(plain.chars().all(|c| c == '\n' || (c.is_ascii() && !c.is_ascii_control())), "{name}");
        let coloured = rendered(&result, Format::Text, &Style { color: true, ..Style::PLAIN });
        assert!(coloured.starts_with("\x1b["), "{name}: the first word is emphasised");
        assert_eq!(without_sequences(&coloured), plain, "{name}");
    }
}

/// The text without its `ESC [ … m` sequences.
fn without_sequences(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (_, rest) = part.split_once('m').expect("a sequence ends with m");
        out.push_str(rest);
    }
    out
}

#[test]
fn text_fits_its_width_and_a_screen() {
    for (name, result) in fixture::all() {
        for width in [80, 100, 140] {
            let text = rendered(&result, Format::Text, &Style { width, ..TERMINAL });
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{name} in {width} columns: {line}");
            }
            // At its usual width a report fits a screen, except for the huge run, whose figures are wrapped,
            // and those with every line that HTTP/2, thresholds and a second watched server can add.
            let long = ["huge", "http2", "thresholds", "machine"].contains(&name) || width < 100;
            let lines = text.lines().count();
            assert!(long || lines <= 73, "{name} in {width} columns: {lines} lines");
        }
    }
}

/// The short report of every kind of run: on half a screen, with the outcome first and last.
#[test]
fn a_summary_begins_and_ends_with_the_outcome_on_half_a_screen() {
    for (name, result) in fixture::all() {
        let outcome = result.verdict.outcome.word();
        for width in [80, 100, 140] {
            let text = rendered(&result, Format::Summary, &Style { width, ..TERMINAL });
            let lines: Vec<&str> = text.lines().collect();
            assert!(lines.iter().all(|line| line.chars().count() <= width), "{name}: {text}");
            let (first, last) = (lines[0], lines[lines.len() - 1]);
            assert!(first.starts_with(outcome) && last.starts_with(outcome), "{name}: {text}");
            // The huge run has every finding and every class of errors, and a run that ended early has steps
            // and thresholds of all kinds.
            let long = ["huge", "thresholds"].contains(&name) || width < 100;
            assert!(lines.len() <= if long { 35 } else { 25 }, "{name}: {} lines", lines.len());
        }
        let plain = rendered(&result, Format::Summary, &Style::PLAIN);
        assert!(plain.chars().all(|c| c == '\n' || (c.is_ascii() && !c.is_ascii_control())), "{name}");
        let coloured = rendered(&result, Format::Summary, &Style { color: true, ..Style::PLAIN });
        assert_eq!(without_sequences(&coloured), plain, "{name}");
        let text = rendered(&result, Format::Text, &TERMINAL);
        let (first, last) = (text.lines().next(), text.lines().last());
        assert!(first.is_some_and(|line| line.starts_with(outcome)), "{name}");
        assert!(last.is_some_and(|line| line.starts_with(outcome) || line.starts_with("  ")), "{name}");
    }
}

/// Lag of the generator's own that it cannot avoid is known before any figure is read.
#[test]
fn shared_wake_ups_are_told_in_the_first_lines() {
    let said = "wake-ups were shared for 30.0 % of the time: the core was 96.0 % busy, which is part of the \
                start lag";
    let mut result = fixture::open();
    for (share, is_told) in [(0.0, false), (0.10, false), (0.30, true)] {
        result.generator.shared_wakeups_share = share;
        result.generator.workers[0].cpu_share = Some(0.96);
        for format in [Format::Summary, Format::Text, Format::Markdown] {
            let text = rendered(&result, format, &Style { width: 140, ..TERMINAL });
            assert_eq!(text.to_lowercase().contains(said), is_told, "{format:?} {share}");
            let Some((before, _)) = text.split_once("ake-ups were shared") else { continue };
            assert!(before.contains("measurement valid") && !before.contains("p99"), "{format:?}: {before}");
        }
    }
}

/// Symptom: "achieved 200/s" of a server that answered 60 % of the requests with 429.
#[test]
fn the_rate_of_good_answers_stands_beside_the_achieved_one() {
    let mut result = fixture::open();
    for interval in &mut result.intervals {
        (interval.ok, interval.failed) = (interval.ok * 2 / 5, interval.ok * 3 / 5);
    }
    (result.accounting.ok, result.accounting.failed) =
        (result.accounting.ok * 2 / 5, result.accounting.ok * 3 / 5);
    let said = "1,000/s achieved of 1,000/s asked for (100.0 %), of which 400/s ok";
    for format in [Format::Summary, Format::Text, Format::Markdown] {
        let text = rendered(&result, format, &Style { width: 140, ..TERMINAL });
        assert!(text.contains(said), "{format:?}: {text}");
    }
    assert!(!rendered(&fixture::open(), Format::Summary, &TERMINAL).contains("of which"));
}

/// Symptom: "all of them timed out" and "49 of 49" of 115 requests, of which 66 were given up, beside 42.6 %.
#[test]
fn shares_of_failures_are_of_all_requests_in_every_format() {
    let mut result = fixture::all_failed();
    let counts = &mut result.accounting;
    (counts.scheduled, counts.started, counts.failed) = (115, 115, 0);
    (counts.timed_out, counts.in_flight_at_stop) = (49, 66);
    let brief = rendered(&result, Format::Summary, &Style { width: 200, ..TERMINAL });
    let said = "0 ok, 0 failed, 49 timed out (42.6 %), 66 without an answer at the end";
    assert!(brief.contains(said), "{brief}");
    let page = html::without_scripts(&html::page_of(&[("one", &SavedRun::of_result(result))]));
    assert!(page.contains("49 of 115 requests") && page.contains("42.6 %"), "{page}");
}

/// Symptom: requests that were sent a second time were told only where nobody looks, and as not processed.
#[test]
fn requests_that_were_sent_again_are_told_once_with_what_is_known() {
    let closed = "since the target had closed the connection without an answer";
    for (resent, said) in [
        (1, format!("1 request was sent again, {closed}")),
        (500, format!("500 requests were sent again, {closed}")),
    ] {
        let mut record = fixture::quiet_record();
        (record.accounting.resent, record.accounting.resent_closed) = (resent, resent);
        let result = fixture::result(record, &["open loop"]);
        let mut texts: Vec<String> = [Format::Summary, Format::Text, Format::Markdown]
            .map(|format| rendered(&result, format, &Style { width: 400, ..TERMINAL }))
            .into();
        assert_eq!(texts[0].matches(&said).count(), 1, "{}", texts[0]);
        texts.push(html::without_scripts(&html::page_of(&[("one", &SavedRun::of_result(result))])));
        for text in texts {
            assert_eq!(text.contains("may have processed them twice"), resent > 1, "{text}");
        }
    }
}

/// Symptom: a load of 10 s whose data had ended after 3 s was a PASS like any other.
#[test]
fn a_load_that_ended_early_says_why_and_when() {
    let with = |change: fn(&mut RunRecord)| {
        let mut record = fixture::quiet_record();
        record.planned = Some(record.duration + Nanos::from_secs(7));
        change(&mut record);
        fixture::result(record, &["open loop"])
    };
    fn end(record: &mut RunRecord, by: EndedBy) {
        record.early_end = Some(EarlyEnd { by, after: Nanos::from_secs(2) });
    }
    let data = with(|record| end(record, EndedBy::Data("u".to_owned())));
    let found = serde_json::to_value(&data.run.early_end).expect("it is JSON");
    assert_eq!(found, serde_json::json!({"by": "data", "data": "u", "after_s": 2.0}));
    let seconds = |seconds: f64| figure::nanos(Nanos::from_secs_f64(seconds));
    let planned = seconds(data.run.planned_s.expect("it is planned"));
    let lasted = seconds(data.duration_s);
    let script = with(|record| end(record, EndedBy::Script));
    let signal = with(|record| record.interrupted = Some(2));
    let said = [
        (data, format!("data `u` ended after 2.00 s of {planned}: the figures are of the part before it")),
        (
            script,
            format!("the script ended the load after 2.00 s of {planned}: rates are over the whole length"),
        ),
        (signal, format!("interrupted by signal 2 after {lasted} of {planned}: the figures are of the part")),
    ];
    for (result, said) in said {
        for format in [Format::Summary, Format::Text] {
            let text = rendered(&result, format, &Style { width: 140, ..TERMINAL });
            assert!(text.lines().take(4).any(|line| line.contains(&said)), "{said}: {text}");
        }
    }
}

/// Symptom: "and 1 more class" was that of the server's own errors.
#[test]
fn the_short_report_names_five_classes_of_errors_and_those_of_the_server_first() {
    let mut result = fixture::all_failed();
    result.errors = [("reset", 900), ("status_4xx", 700), ("check", 300), ("closed", 90), ("status_5xx", 10)]
        .map(|(class, count)| (class.to_owned(), count))
        .into();
    let text = rendered(&result, Format::Summary, &TERMINAL);
    let at = |class: &str| text.find(&format!("{class}: ")).unwrap_or_else(|| panic!("{class}: {text}"));
    let places = ["status_5xx", "reset", "status_4xx", "check", "closed"].map(at);
    assert!(places.is_sorted(), "{text}");
    assert!(!text.contains("more class"), "{text}");
}

/// Symptom: the sentence about a standstill was the first line of a report, and its second line too.
#[test]
fn a_standstill_is_told_once() {
    let mut result = fixture::open();
    let said = "the target stopped answering: no answer from 2.00 s on, with 8 requests in flight; they were waited for until 5.00 s";
    for more in ["", "; all cores were busy"] {
        result.verdict.summary = said.to_owned();
        result.verdict.limited_by.evidence = format!("{said}{more}");
        result.verdict.limited_by.what = "target".to_owned();
        for format in [Format::Summary, Format::Text, Format::Markdown] {
            let text = rendered(&result, format, &Style { width: 140, ..TERMINAL });
            // The last line of a text is the first one once more.
            let lines = 1 + usize::from(format == Format::Text);
            assert_eq!(text.matches("no answer from").count(), lines, "{format:?}: {text}");
            assert!(text.contains("limited by the target"), "{format:?}: {text}");
            assert!(text.contains("all cores were busy") || more.is_empty(), "{format:?}: {text}");
        }
    }
}

/// Symptom: of a run with several problems the short report had the advice about the first one only.
#[test]
fn hints_without_room_for_their_findings_are_told() {
    let mut result = fixture::open();
    let long = "of the events of this run were late, and nobody knows why: ".repeat(5);
    let finding = |number: usize| Finding {
        code: format!("reason_{number}"),
        evidence: long.clone(),
        hint: format!("remedy number {}", number % 6),
    };
    result.verdict.valid = false;
    result.verdict.evidence = (0..8).map(finding).collect();
    result.verdict.limited_by.hint = "remedy of the limit".to_owned();
    let text = rendered(&result, Format::Summary, &Style { width: 100, ..TERMINAL });
    for number in 0..5 {
        assert_eq!(text.matches(&format!("remedy number {number}")).count(), 1, "{number}: {text}");
    }
    assert!(text.contains("and 2 more hints"), "{text}");
}

/// A service time whose begin is not certain is counted, and a reader of all figures learns of it.
#[test]
fn uncertain_service_times_are_told() {
    let mut result = fixture::open();
    for (uncertain, said) in [
        (0, None),
        (1, Some("1 request (< 0.1 %): uncertain service times")),
        (50, Some("50 requests (0.5 %): uncertain service times")),
    ] {
        result.generator.send_time_uncertain = uncertain;
        let text = rendered(&result, Format::Text, &TERMINAL);
        assert_eq!(text.contains("uncertain"), said.is_some(), "{text}");
        assert!(said.is_none_or(|said| text.contains(said)), "{text}");
    }
}

/// Symptom: a search that the generator ended noted a consequence, "that part is the generator's; ".
#[test]
fn a_trial_names_its_cause_and_not_what_follows_from_it() {
    let reason = |code, evidence: &str, hint: &str| Reason {
        code,
        evidence: evidence.to_owned(),
        hint: hint.to_owned(),
    };
    let lag = reason(ReasonCode::StartLag, "start lag p50 is 1.54 ms", "");
    let busy = reason(ReasonCode::CpuSaturation, "worker 0 had no CPU", "stop that work");
    let cause = |reasons: &[&Reason]| {
        let mut record = RunRecord::empty(Model::Open);
        record.verdict.reasons = reasons.iter().map(|reason| (*reason).clone()).collect();
        TrialFigures::new(&record).cause().map(Finding::in_words)
    };
    assert_eq!(cause(&[&lag, &busy]).as_deref(), Some("worker 0 had no CPU; stop that work"));
    assert_eq!(cause(&[&lag]).as_deref(), Some("start lag p50 is 1.54 ms"));
    assert_eq!(cause(&[]), None);
}

#[test]
fn summaries() {
    for (name, result) in fixture::all() {
        insta::assert_snapshot!(format!("summary_{name}"), rendered(&result, Format::Summary, &TERMINAL));
    }
}

#[test]
fn the_plain_numbers_of_a_run_survive_json() {
    for (name, result) in fixture::all() {
        let json = rendered(&result, Format::Json, &Style::PLAIN);
        let back: RunResult = serde_json::from_str(&json).expect(name);
        assert_eq!(back.accounting, result.accounting, "{name}");
        assert_eq!(back.response_time, result.response_time, "{name}");
        assert_eq!(back.by_step, result.by_step, "{name}");
        assert_eq!((back.iterations, &back.http2), (result.iterations, &result.http2), "{name}");
    }
}

#[test]
fn csv_has_as_many_cells_in_every_row_as_in_its_header() {
    for (name, result) in fixture::all() {
        let csv = rendered(&result, Format::Csv, &Style::PLAIN);
        let cells: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(cells.len(), result.intervals.len() + 1, "{name}");
        assert!(cells.iter().all(|count| *count == cells[0]), "{name}");
    }
}
