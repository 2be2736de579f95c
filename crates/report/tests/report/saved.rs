//! Saved runs: written ones are read back, and damaged ones are refused.

use std::io::Write as _;

use plimsoll_core::{ErrorClass, Nanos, Outcome};
use plimsoll_histogram::Histogram;
use plimsoll_metrics::{Gauges, PhaseRecord, Recorder, Sample, Slice, StepRecord, Tally};
use plimsoll_report::result::ModelKind;
use plimsoll_report::saved::{Beginning, Cut, Part, PartKind};
use plimsoll_report::{Format, ReadError, SavedRun, SavedSlice, Style, render};
use proptest::prelude::*;

use crate::fixture;

/// Requests with times over the whole range, of three steps, of which some fail and some time out.
fn samples() -> impl Strategy<Value = Vec<Sample>> {
    let time = (14_u32..64, any::<u64>()).prop_map(|(shift, bits)| Nanos(bits >> shift));
    let one = (0_u32..3, 0_u8..20, [time.clone(), time.clone(), time]);
    prop::collection::vec(
        one.prop_map(|(step, end, [lag, wait, rest])| sample(step, end, lag, wait, rest)),
        0..200,
    )
}

fn sample(step: u32, end: u8, lag: Nanos, wait: Nanos, rest: Nanos) -> Sample {
    let (outcome, status) = match end {
        0 => (Outcome::TimedOut, 0),
        1 => (Outcome::Failed(ErrorClass::Status5xx), 503),
        2 => (Outcome::Failed(ErrorClass::Reset), 0),
        _ => (Outcome::Ok, 200 + u16::from(end)),
    };
    let started = Nanos(1_000) + lag;
    let (intended, first_byte) = (Nanos(1_000), started + wait);
    let (sent, done) = (started, first_byte + rest);
    let (bytes_sent, bytes_received) = (u64::from(end), lag.0);
    Sample { step, intended, started, sent, first_byte, done, outcome, status, bytes_sent, bytes_received }
}

/// Returns the steps that a recorder made of these samples, and the tally that it reported after each quarter
/// of them.
fn recorded(samples: &[Sample]) -> (Vec<StepRecord>, Vec<Tally>) {
    let mut recorder = Recorder::new(&["create", "läse", ""].map(str::to_owned));
    let mut tallies = Vec::new();
    for quarter in samples.chunks(samples.len().div_ceil(4).max(1)) {
        for sample in quarter {
            recorder.note_started(sample.step);
            recorder.record(sample);
            if sample.status == 210 {
                recorder.record_in_stall(sample);
            }
        }
        tallies.push(recorder.snapshot(Gauges::default()).steps.into_iter().fold(
            Tally::default(),
            |mut sum, one| {
                sum.merge(&one);
                sum
            },
        ));
    }
    (recorder.finish(), tallies)
}

/// A saved run of these samples, with the result of another one.
fn saved(samples: &[Sample], fixture: usize, plan: Option<String>) -> SavedRun {
    let (steps, tallies) = recorded(samples);
    let mut connect_time = Histogram::new();
    samples.iter().for_each(|sample| connect_time.record(sample.service_time().0));
    let [(_, result), ..] = &fixture::all()[fixture..] else { panic!("there are so many") };
    let phase = |(number, tally): (usize, &Tally)| PhaseRecord {
        name: format!("phase {number}"),
        at: Nanos(number as u64),
        measured: number > 0,
        target_per_second: (number > 1).then_some(1.0 / 3.0),
        completed: tally.completed,
        tally: tally.clone(),
        ..PhaseRecord::default()
    };
    let slice = |(number, tally): (usize, &Tally)| SavedSlice {
        at: Nanos::from_secs(1 + number as u64),
        length: Nanos::from_secs(1),
        warmup: number == 0,
        drain: number == 3,
        tally: tally.clone(),
    };
    SavedRun {
        plan,
        steps,
        phases: tallies.iter().enumerate().map(phase).collect(),
        connect_time,
        slices: tallies.iter().enumerate().map(slice).collect(),
        ..SavedRun::of_result(result.clone())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn what_is_written_is_read_back(
        samples in samples(),
        fixture in 0_usize..13,
        plan in prop::option::of(".{0,40}"),
    ) {
        let run = saved(&samples, fixture, plan);
        let bytes = run.to_bytes().unwrap();
        prop_assert!(SavedRun::is_saved(&bytes));
        let read = SavedRun::from_bytes(&bytes).unwrap();
        prop_assert_eq!(&read, &run);
        prop_assert_eq!(read.to_bytes().unwrap(), bytes);
    }

    #[test]
    fn the_merge_of_parts_is_the_recording_of_the_whole(samples in samples(), parts in 2_usize..5) {
        // As the workers of one run do: each has every so-manieth request.
        let part = |n: usize| -> Vec<Sample> { samples.iter().skip(n).step_by(parts).copied().collect() };
        let runs: Vec<SavedRun> = (0..parts).map(|n| saved(&part(n), 1, None)).collect();
        let merged = SavedRun::merge(&runs).unwrap();
        let whole = saved(&samples, 1, None);
        prop_assert_eq!(&merged.steps, &whole.steps);
        prop_assert_eq!(&merged.connect_time, &whole.connect_time);
        let tally = |run: &SavedRun| {
            let mut sum = Tally::default();
            run.slices.iter().for_each(|slice| sum.merge(&slice.tally));
            sum
        };
        prop_assert_eq!(tally(&merged), tally(&whole));
        let count = whole.total().response_time.count();
        prop_assert_eq!(merged.result.response_time.count, count);
        prop_assert_eq!(merged.result.response_time.max, whole.total().response_time.max());
        let of_steps: u64 = merged.result.by_step.iter().map(|step| step.response_time.count).sum();
        prop_assert!(of_steps <= count);
        prop_assert_eq!(SavedRun::from_bytes(&merged.to_bytes().unwrap()).unwrap(), merged);
    }

    #[test]
    fn what_is_cut_short_or_changed_is_not_read_as_another_run(cut in 0_usize..1_000, flip in 0_u8..8) {
        let one = |i: u32| sample(i % 3, i as u8 % 20, Nanos(7), Nanos(9), Nanos(11));
        let samples: Vec<Sample> = (0..40).map(one).collect();
        let run = saved(&samples, 1, None);
        let bytes = run.to_bytes().unwrap();
        let cut = cut * bytes.len() / 1_000;
        prop_assert!(SavedRun::from_bytes(&bytes[..cut]).is_err());
        let mut changed = bytes;
        changed[cut] ^= 1 << flip;
        // Parts of the header, and codes that are not used, say nothing about the content; the checksum of
        // gzip holds the rest.
        if let Ok(read) = SavedRun::from_bytes(&changed) {
            prop_assert!(read == run, "byte {} of {}", cut, changed.len());
        }
    }
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).expect("memory has room, and the bytes are ours");
    encoder.finish().expect("memory has room, and the bytes are ours")
}

fn gunzip(bytes: &[u8]) -> String {
    std::io::read_to_string(flate2::read::GzDecoder::new(bytes))
        .expect("memory has room, and the bytes are ours")
}

#[test]
fn what_is_something_else_or_of_a_later_version_is_said() {
    let text = gunzip(&saved(&[], 1, None).to_bytes().unwrap());
    assert!(text.starts_with("{\"saved_run\":1,"), "{}", &text[..40]);
    let read = |text: &str| SavedRun::from_bytes(&gzip(text)).unwrap_err();
    let newer = read(&text.replacen("\"saved_run\":1", "\"saved_run\":2", 1));
    assert!(matches!(newer, ReadError::TooNew { found: 2, known: 1 }), "{newer}");
    assert!(matches!(read("{\"saved_run\":1}"), ReadError::NotAResult));
    assert!(matches!(read("no JSON"), ReadError::NotJson(_)));
    assert!(matches!(read(&text.replacen("\"plan_hash\"", "\"plan\"", 1)), ReadError::Broken(_)));
    assert!(matches!(SavedRun::from_bytes(b"{}").unwrap_err(), ReadError::Broken(_)));
    assert!(!SavedRun::is_saved(b"{}") && !SavedRun::is_saved(b""));
}

#[test]
fn extremes_that_are_not_those_of_the_values_are_damage() {
    let samples: Vec<Sample> = (0..40).map(|i| sample(0, 5 + i, Nanos(7), Nanos(900), Nanos(11))).collect();
    let text = gunzip(&saved(&samples, 1, None).to_bytes().unwrap());
    let error = |from: &str, to: &str| {
        assert!(text.contains(from), "{text}");
        SavedRun::from_bytes(&gzip(&text.replacen(from, to, 1))).unwrap_err().to_string()
    };
    let message = error("\"min\":918", "\"min\":917");
    assert!(message.contains("the extremes of a histogram are not those of its values"), "{message}");
    let message = error("\"hdr\":\"HISTE", "\"hdr\":\"HISTG");
    assert!(message.contains("a histogram is damaged"), "{message}");
}

/// Symptom: two runs whose counts were near the largest number could be read, and were not merged but ended
/// the program.
#[test]
fn counts_that_no_run_can_have_are_damage() {
    let run = saved(&[sample(0, 5, Nanos(1), Nanos(2), Nanos(3))], 0, None);
    let text = gunzip(&run.to_bytes().unwrap());
    for (count, is_read) in [(1_u64 << 58, true), ((1 << 58) + 1, false), (u64::MAX, false)] {
        for place in [
            "\"ok\":1,\"failed\":0,\"timed_out\":0,\"response_time\"",
            "\"ok\":1,\"failed\":0,\"timed_out\":0,\"judged\":0,\"good\":0,\"content_events\":0,\"ttft\":\"\",\"completed\"",
        ] {
            assert!(text.contains(place), "{text}");
            let changed = text.replace(place, &place.replace("\"ok\":1", &format!("\"ok\":{count}")));
            match SavedRun::from_bytes(&gzip(&changed)) {
                Ok(run) => assert!(is_read && SavedRun::merge(&[run.clone(), run]).is_ok(), "{count}"),
                Err(error) => assert!(!is_read, "{count}: {error}"),
            }
        }
    }
}

/// Symptom: so could those of the result, which are not checked before they are added up.
#[test]
fn counts_of_a_result_add_up_to_the_largest_number_at_most() {
    let mut run = saved(&[sample(0, 5, Nanos(1), Nanos(2), Nanos(3))], 0, None);
    (run.result.accounting.started, run.result.accounting.failed) = (u64::MAX, u64::MAX);
    (run.result.accounting.timed_out, run.result.accounting.ok) = (u64::MAX, 0);
    run.result.bytes.sent = u64::MAX;
    run.result.connections.opened = u64::MAX;
    run.result.protocols.insert("http/1.1".to_owned(), u64::MAX);
    for interval in &mut run.result.intervals {
        (interval.ok, interval.joined) = (u64::MAX, 1);
    }
    let merged = SavedRun::merge(&[run.clone(), run]).unwrap().result;
    assert_eq!((merged.accounting.started, merged.bytes.sent), (u64::MAX, u64::MAX));
    assert_eq!((merged.connections.opened, merged.protocols["http/1.1"]), (u64::MAX, u64::MAX));
}

#[test]
fn a_hundred_million_requests_are_ten_runs_of_ten_million() {
    let record = fixture::quiet_record();
    let mut run = SavedRun::new(&record, fixture::result(record.clone(), &["open"]), None);
    for i in 0..1_000 {
        run.steps[0].response_time.record_many(1_000_000 + 1_000 * i, 10_000);
        run.steps[0].ok += 10_000;
    }
    run.result.accounting.ok = run.steps[0].ok;
    run.result.rate.achieved_per_s = Some(run.steps[0].ok as f64);
    let merged = SavedRun::merge(&vec![run.clone(); 10]).unwrap();
    let (one, all) = (&run.steps[0].response_time, &merged.result.response_time);
    assert_eq!((all.count, merged.result.accounting.ok), (100_010_000, 100_010_000));
    assert_eq!(
        (all.p.p50, all.p.p99, all.p.p99_99),
        (one.percentile(50.0), one.percentile(99.0), one.percentile(99.99))
    );
    assert_eq!(
        (all.min, all.max, all.mean),
        (one.min(), one.max(), one.mean().map(|mean| mean.round() as u64))
    );
    assert_eq!(merged.result.rate.achieved_per_s, Some(100_010_000.0));
    assert_eq!((merged.result.duration_s, merged.result.run.id.as_str()), (1.0, "20260301-120000-2a+9"));
    // All of them have the same intervals.
    let shape = |run: &SavedRun| run.slices.iter().map(|slice| (slice.at, slice.length)).collect::<Vec<_>>();
    assert_eq!(shape(&merged), shape(&run));
    assert_eq!(merged.slices[0].tally.ok, 10 * run.slices[0].tally.ok);
    let (interval, alone) = (&merged.result.intervals[0], &run.result.intervals[0]);
    let (all, one) = (interval.response_time.p, alone.response_time.p);
    assert_eq!((interval.ok, all.p50, all.p99), (10 * alone.ok, one.p50, one.p99));
    assert!(all.p99_9.is_some() && one.p99_9.is_none(), "together there are enough values");
    let text = rendered_text(&merged);
    assert!(text.contains("10 runs together"), "{text}");
}

fn rendered_text(run: &SavedRun) -> String {
    let mut out = Vec::new();
    render(&run.result, Format::Text, &Style::PLAIN, &mut out)
        .expect("memory has room, and the bytes are ours");
    String::from_utf8(out).expect("memory has room, and the bytes are ours")
}

#[test]
fn what_cannot_be_merged_is_said() {
    let record = fixture::quiet_record();
    let run = SavedRun::new(&record, fixture::result(record.clone(), &["open"]), None);
    let error = |runs: &[SavedRun]| SavedRun::merge(runs).unwrap_err().to_string();
    assert_eq!(error(&[]), "there is no run to merge");
    let bare = SavedRun::of_result(run.result.clone());
    assert!(error(&[run.clone(), bare]).ends_with("has no histograms, but only its result"));
    let mut other = run.clone();
    other.result.run.plan_hash = "another".to_owned();
    assert!(error(&[run.clone(), other]).ends_with("is of another plan than the first one"));
    assert_eq!(SavedRun::merge(std::slice::from_ref(&run)), Ok(run));
}

/// The process ended after the second of three seconds, and the drain.
#[test]
fn an_unfinished_run_has_what_it_had_told() {
    let result = fixture::open();
    let beginning = Beginning {
        context: fixture::context(&["open"]),
        model: ModelKind::Open,
        started_unix_ns: 1_772_366_400_250_000_000,
        warmup_ns: 1_000_000_000,
        steps: vec![("only".to_owned(), String::new())],
        plan: Some("run: {}".to_owned()),
    };
    let samples: Vec<Sample> = (0..1_000).map(fixture::quiet).collect();
    let (steps, tallies) = recorded(&samples);
    let part = |(number, tally): (usize, Tally)| Part {
        kind: if number == 0 { PartKind::Warmup } else { PartKind::Measured },
        slice: Slice {
            at: fixture::SECOND * (1 + number as u64),
            length: fixture::SECOND,
            steps: vec![tally],
            ..Slice::default()
        },
    };
    let parts: Vec<Part> = tallies.into_iter().enumerate().map(part).collect();
    let run = SavedRun::unfinished(beginning, result.intervals[..4].to_vec(), parts, Cut::Killed);
    assert_eq!(
        (run.result.accounting.started, run.result.accounting.ok, run.result.duration_s),
        (750, 750, 3.0)
    );
    assert_eq!(run.result.rate.achieved_per_s, Some(250.0));
    assert_eq!(run.result.verdict.invalid_reasons, ["unfinished"]);
    assert_eq!(run.result.response_time.count, 750);
    // The largest may have been in the warm-up.
    assert!(run.steps[0].response_time.max() <= steps[0].response_time.max());
    assert_eq!((run.slices.len(), run.slices[0].warmup, run.result.intervals.len()), (4, true, 4));
    let text = rendered_text(&run);
    assert!(text.contains("INVALID") && text.contains("the figures end at "), "{text}");
    assert_eq!(SavedRun::from_bytes(&run.to_bytes().unwrap()).unwrap(), run);
}

/// The result is exactly the one that was written, to the last digit.
#[test]
fn every_result_is_rendered_as_before() {
    for (name, result) in fixture::all() {
        let read = SavedRun::from_bytes(&SavedRun::of_result(result.clone()).to_bytes().unwrap()).unwrap();
        let json = |result| {
            let mut out = Vec::new();
            render(result, Format::Json, &Style::PLAIN, &mut out).unwrap();
            out
        };
        assert!(json(&result) == json(&read.result), "{name}");
        assert!(!read.has_histograms());
    }
}

#[test]
fn a_record_is_saved_with_its_histograms_and_its_course() {
    let record = fixture::quiet_record();
    let result = fixture::result(record.clone(), &["open"]);
    let run = SavedRun::new(&record, result, Some("run: {}".to_owned()));
    assert!(run.has_histograms());
    assert_eq!(run.total().response_time, record.total.response_time);
    assert_eq!(run.connect_time, record.connections.connect_time);
    let shape: Vec<_> = run.slices.iter().map(|slice| (slice.at.as_secs_f64(), slice.tally.ok)).collect();
    assert_eq!(shape, [(1.0, 1_000)]);
    let values: u64 = run.slices.iter().map(|slice| slice.tally.response_time.count()).sum();
    assert_eq!(values, run.total().response_time.count());
}

/// A small file that unpacks to too much is refused before it is unpacked. Before, up to 1 GiB of it was kept
/// first.
#[test]
fn a_bomb_is_refused_before_it_is_unpacked() {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(br#"{"saved_run":1,"result":""#).expect("memory takes it");
    let megabyte = vec![b'x'; 1 << 20];
    for _ in 0..100 {
        encoder.write_all(&megabyte).expect("memory takes it");
    }
    let bomb = encoder.finish().expect("memory takes it");
    assert!(bomb.len() < 200_000, "{}", bomb.len());
    let refused = SavedRun::from_bytes(&bomb).expect_err("it is not a run").to_string();
    let expected = format!("its {} bytes are more than {} without compression", bomb.len(), 64 << 20);
    assert!(refused.contains(&expected), "{refused}");
}

/// Runs that 0.1.0 saved before its records were written by their own types: they are read whole, and written
/// as they were, but for fields that came later.
#[test]
fn runs_saved_by_an_earlier_build_are_read_and_written_as_they_were() {
    use std::io::Read as _;
    let unpacked = |bytes: &[u8]| {
        let mut text = String::new();
        flate2::read::GzDecoder::new(bytes).read_to_string(&mut text).expect("it is compressed text");
        text
    };
    let runs: [(&[u8], u64, u64); 2] = [
        (include_bytes!("saved/closed_with_failures.plimsoll"), 1_235, 765),
        (include_bytes!("saved/open_with_timeouts.plimsoll"), 1_493, 7),
    ];
    for (bytes, ok, bad) in runs {
        let run = SavedRun::from_bytes(bytes).expect("it was saved by this program");
        let total = run.total();
        assert_eq!((total.ok, total.failed + total.timed_out), (ok, bad));
        assert_eq!(total.response_time.count(), total.ok + total.timed_out);
        assert_eq!(run.result.accounting.ok, ok);
        let mut again = unpacked(&run.to_bytes().expect("it can be written"));
        for later in [
            "\"shared_wakeups_share\":0.0,",
            "\"polled_share\":0.0,",
            "\"judged\":0,\"good\":0,",
            "\"content_events\":0,\"ttft\":\"\",",
            "\"resent\":0,\"resent_closed\":0,",
        ] {
            again = again.replace(later, "");
        }
        assert!(again == unpacked(bytes), "{again}");
    }
}
