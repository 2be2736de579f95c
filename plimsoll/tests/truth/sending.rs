//! R1 to R6: the instants of sending, and the target's part of the times.

use plimsoll_core::{Nanos, Rate, Shard};
use plimsoll_metrics::{LimitedBy, ReasonCode};
use plimsoll_schedule::{Arrivals, Process, Profile};
use plimsoll_testkit::oracle::{
    Mm1, counts_per_window, index_of_dispersion, ks_critical, ks_statistic, nearest_rank, pause_truth,
};
use plimsoll_testkit::skip::on_this_machine;
use plimsoll_testkit::{Law, Pause, SimOptions};
use serde_json::Value;

use crate::truth::stage::{Needs, play};
use crate::truth::world::{
    MS, SECOND, assert_close, infinite, ms, near, one_queue, plan, plan_of_steps, reasons, simulate,
};

/// The percentiles of R1, in milliseconds.
fn figures(histogram: &plimsoll_histogram::Histogram) -> [f64; 4] {
    [50.0, 99.0, 99.9, 100.0].map(|p| ms(histogram, p))
}

#[track_caller]
fn assert_figures(what: &str, measured: [f64; 4], truth: [f64; 4]) {
    for (measured, truth) in measured.into_iter().zip(truth) {
        assert_close(what, measured, truth, 0.01);
    }
}

/// R1, T3: 1,000/s for 30 s at a server of 1 ms that stands still from 10 s to 11 s.
#[test]
fn r01_a_freeze_is_in_the_response_times_as_if_there_were_no_limit() {
    let frozen = || {
        let pauses = vec![Pause { at: SECOND * 1_010, length: SECOND }];
        near(plimsoll_testkit::Behaviour { pauses, ..infinite(Law::Constant(MS)) })
    };
    let of = |connections: u32| {
        let plan = plan(&format!("rate: 1000, duration: 30s, connections: {connections}"));
        let (record, truth) = simulate(&plan, frozen());
        assert_eq!((record.accounting.ok, truth.len()), (30_000, 30_000));
        record.total
    };
    let unlimited = of(2_000);
    assert_figures("unlimited", figures(&unlimited.response_time), [1.0, 701.0, 971.0, 1_001.0]);
    // Not one sample is made up, and none is wrong: all percentiles are those of the truth.
    let pause = Pause { at: SECOND * 10, length: SECOND };
    // (With the way there, of a nanosecond, the freeze catches one more request at work.)
    let truth = pause_truth(Rate::per_second(1_000), 30_000, MS + Nanos(1), pause);
    for p in [10.0, 96.0, 97.0, 98.0, 99.5, 99.99] {
        let true_ms = nearest_rank(&truth, p / 100.0).expect("there are values").0 as f64 / 1e6;
        assert_close(&format!("p{p}"), ms(&unlimited.response_time, p), true_ms, 0.01);
    }
    // Few connections need time for the backlog; the last column is the view of a tool whose clock starts at
    // the write.
    for (connections, p99, service) in [(10, 731.0, [1.0, 1.0, 1.0]), (100, 704.0, [1.0, 1.0, 971.0])] {
        let total = of(connections);
        assert_close(&format!("{connections}, p99"), ms(&total.response_time, 99.0), p99, 0.01);
        for (p, expected) in [50.0, 99.0, 99.9].into_iter().zip(service) {
            let measured = ms(&total.service_time, p);
            assert_close(&format!("{connections}, p{p} of service"), measured, expected, 0.01);
        }
    }
}

/// R1: one at a time, 10/s, 506 ms each, as with a language model behind a limit of concurrency
/// (vllm#54101): the schedule's times, where a tool that begins when a place is free sees 506 ms.
#[test]
fn r01_waiting_for_the_only_place_is_in_the_times() {
    let plan = plan("rate: 10, iterations: 100, connections: 1, overload: queue, timeout: 10m, drain: 10m");
    let (record, truth) = simulate(&plan, near(one_queue(Law::Constant(MS * 506))));
    assert_eq!((record.accounting.ok, truth.len()), (100, 100));
    // Request n is due at n · 100 ms and done at (n + 1) · 506 ms.
    for (p, n) in [(50.0, 49), (90.0, 89), (99.0, 98), (100.0, 99)] {
        let due = f64::from(506 + n * 406);
        assert_close(&format!("p{p}"), ms(&record.total.response_time, p), due, 0.01);
        assert_close(&format!("p{p} from sent"), ms(&record.total.service_time, p), 506.0, 0.01);
    }
}

/// R2, T2: an open load has the response times of M/M/1.
#[test]
fn r02_the_open_model_has_the_response_times_of_theory() {
    let plan = plan("rate: 800, arrival: poisson, duration: 1000s, connections: 2000");
    let (record, _) = simulate(&plan, near(one_queue(Law::Exponential { mean: MS })));
    let theory = Mm1 { arrivals_per_s: 800.0, services_per_s: 1_000.0 };
    let response = &record.total.response_time;
    // Margins of about three standard errors of 800,000 requests that depend on each other.
    assert_close("mean", response.mean().expect("there are values") / 1e9, theory.mean(), 0.02);
    for (p, tolerance) in [(50.0, 0.03), (99.0, 0.07), (99.9, 0.14)] {
        assert_close(&format!("p{p}"), ms(response, p), theory.quantile(p / 100.0) * 1e3, tolerance);
    }
}

/// R2, T2: the same throughput from users that wait for their responses is another experiment.
#[test]
fn r02_the_closed_model_of_the_same_throughput_differs() {
    // Mean thinking time such that 800 requests are served per second, and the p99, both by the machine
    // repair model and the arrival theorem (Lavenberg and Reiser 1980): a user finds what one user fewer
    // would leave, and waits for this many exponential services.
    for (users, think_us, p99) in [(2, 1_000, 5.99), (10, 9_685, 10.32), (50, 58_508, 15.77)] {
        let steps = format!("[{{get: /, think: {{exponential: {think_us}us}}}}]");
        let plan = plan_of_steps(&format!("connections: {users}, duration: 250s"), &steps);
        let (record, _) = simulate(&plan, near(one_queue(Law::Exponential { mean: MS })));
        let rate = record.accounting.ok as f64 / record.duration.as_secs_f64();
        assert_close(&format!("{users} users, rate"), rate, 800.0, 0.02);
        assert_close(&format!("{users} users, p99"), ms(&record.total.response_time, 99.0), p99, 0.05);
        // The open model's is 23.03 ms.
        assert!(ms(&record.total.response_time, 99.0) < 17.0);
    }
}

/// The arrivals of all workers at 10,000/s, as they reach the target.
fn united(process: Process, workers: u32, seconds: u64) -> Vec<Nanos> {
    let profile = Profile::constant(Rate::per_second(10_000), SECOND * seconds);
    let mut times: Vec<Nanos> = (0..workers)
        .flat_map(|index| Arrivals::new(&profile, process, 3, Shard { index, of: workers }))
        .map(|arrival| arrival.at)
        .collect();
    times.sort_unstable();
    times
}

/// R3: however many workers share a process, the target sees that process.
#[test]
fn r03_the_arrivals_of_many_workers_are_the_process_that_was_asked_for() {
    for workers in [1, 4, 16] {
        let (poisson, uniform) =
            (united(Process::Poisson, workers, 100), united(Process::Uniform, workers, 100));
        let gaps = |times: &[Nanos]| -> Vec<f64> {
            times.windows(2).map(|pair| (pair[1] - pair[0]).0 as f64 + 0.5).collect()
        };
        let exponential = |gap: f64| -(-gap / 100_000.0).exp_m1();
        let limit = ks_critical(poisson.len(), 0.001);
        let distance = ks_statistic(&mut gaps(&poisson), exponential);
        assert!(distance < limit, "{workers} workers: {distance}, at most {limit}");
        assert!(ks_statistic(&mut gaps(&uniform), exponential) > 0.3, "a comb is no Poisson process");
        assert!(gaps(&uniform).iter().all(|gap| *gap == 100_000.5), "{workers} workers: phases interleave");
        for window_ms in [1, 10, 1_000] {
            let dispersion = |times: &[Nanos]| {
                let counts = counts_per_window(times.iter().copied(), MS * window_ms, SECOND * 100);
                index_of_dispersion(&counts)
            };
            // The standard deviation of the index is √(2 / windows).
            let margin = 4.0 * (2.0 * window_ms as f64 / 100_000.0).sqrt();
            let index = dispersion(&poisson);
            assert!((index - 1.0).abs() < margin, "{workers} workers, {window_ms} ms: {index}");
            assert!(dispersion(&uniform) < 1e-9, "{workers} workers, {window_ms} ms");
        }
    }
}

/// R3: a queue tells evenly spaced arrivals (D/M/1) from random ones (M/M/1: p99 23.03 ms).
#[test]
fn r03_evenly_spaced_arrivals_have_the_queue_of_theory() {
    let plan = plan("rate: 800, arrival: uniform, duration: 500s, connections: 2000");
    let (record, _) = simulate(&plan, near(one_queue(Law::Exponential { mean: MS })));
    assert_close("p50", ms(&record.total.response_time, 50.0), 1.87, 0.02);
    assert_close("p99", ms(&record.total.response_time, 99.0), 12.40, 0.05);
}

/// R4: half a second in which the generator was stopped is listed, makes the run invalid, and is not the
/// fault of the target; its requests are set apart.
#[test]
fn r04_a_stall_of_the_generator_is_its_own() {
    let stall = Pause { at: Nanos::from_millis(1_001_300), length: MS * 500 };
    for (load, open) in [("rate: 1000", true), ("connections: 4", false)] {
        let options = SimOptions { stalls: vec![stall], ..near(infinite(Law::Constant(MS))) };
        let (record, _) = simulate(&plan(&format!("{load}, duration: 3s")), options);
        assert!(!record.verdict.valid && reasons(&record).contains(&ReasonCode::Stall), "{record:?}");
        assert_eq!(record.verdict.limited_by.what, LimitedBy::Generator);
        let stalls = &record.workers[0].stalls;
        let [listed] = &stalls[..] else { panic!("{stalls:?}") };
        let ends = listed.at + listed.length;
        assert!(listed.length > MS * 350 && ends.0.abs_diff((MS * 1_800).0) < (MS * 150).0, "{listed:?}");
        // One per millisecond was due in it, and those that fell due in the next milliseconds waited behind
        // them for a connection: no more are opened than the rate needs. Nothing is due to users, and what
        // was in flight had its response in time, as its stamp says.
        let total = &record.total;
        let met = total.response_in_stall.count();
        assert!(if open { (350..=530).contains(&met) } else { met <= 8 }, "{met}");
        let rest = total.response_time.without(&total.response_in_stall);
        assert_eq!(rest.count() + met, total.ok);
        assert!(ms(&rest, 100.0) < 5.0, "{} ms is not the server's", ms(&rest, 100.0));
        assert!(!open || ms(&total.response_time, 99.0) > 300.0, "they are in the whole figures");
    }
}

/// R4: how late requests start is measured for each of them; paced exactly it is less than 50 µs, unless
/// something else ran on the processor, which the result has to say itself.
#[test]
fn r04_the_start_lag_is_small_and_else_it_is_said() {
    let script = "sink; taskset -apc 1 $SINK >/dev/null; P=\"taskset -c 0 $P\"
        $P run \"$URL\" --quiet -o json --rate 2000 -d 2s --precise -t 1 || test $? = 3";
    let mut lags = Vec::new();
    for _ in 0..3 {
        let Some(result) = play(Needs::Processors, script) else { return };
        assert_eq!(result["start_lag"]["count"], result["accounting"]["started"]);
        let lag_us = result["start_lag"]["p"]["99"].as_f64().expect("4,000 requests are enough") / 1e3;
        if lag_us < 50.0 {
            return;
        }
        let said = lag_us <= 100.0 || result["verdict"].to_string().contains("start lag");
        assert!(said, "{lag_us} µs: {}", result["verdict"]);
        lags.push(lag_us);
    }
    on_this_machine(&format!(
        "this machine holds processes up: start lag p99 of {lags:?} µs, which the results say"
    ));
}

/// R4: other work takes the CPU from the generator in the middle of its sends. No response is quicker than
/// the server for that, and a run of which that is not known is invalid.
#[test]
fn r04_no_service_time_is_impossible_beside_a_hog() {
    for backend in ["epoll", "auto"] {
        for load in ["-c 64", "-c 64 --rate 5000"] {
            let script = format!(
                "sink --delay constant:2ms; taskset -apc 1 $SINK >/dev/null; hog 0; P=\"taskset -c 0 $P\"
                $P run \"$URL\" --quiet -o json {load} -d 2s -t 1 --backend {backend} || test $? = 3"
            );
            let Some(result) = play(Needs::Processors, &script) else { return };
            let least = result["service_time"]["min"].as_u64().expect("there are responses");
            let uncertain = result["generator"]["send_time_uncertain"].as_u64().expect("a count");
            // A request that was sent within an interruption has bounds only, and is counted as uncertain.
            assert!(least >= 1_000_000 || (least > 0 && uncertain > 0), "{backend} {load}: {least} ns");
            let started = result["accounting"]["started"].as_u64().expect("a count");
            let reasons = result["verdict"]["invalid_reasons"].to_string();
            let said = reasons.contains("send_time_uncertain");
            assert_eq!(said, uncertain * 100 > started, "{uncertain} of {started}: {reasons}");
        }
    }
}

/// R4: beside a hog the service times are those of the server's own log, or the run is invalid since some of
/// its instants are not known.
#[test]
fn r04_service_times_beside_a_hog_are_those_of_the_truth_log() {
    for backend in ["epoll", "auto"] {
        let script = format!(
            r#"sink --delay constant:2ms --truth-log "$D/truth.csv"; taskset -apc 1 $SINK >/dev/null; hog 0
            RESULT=$(taskset -c 0 $P run "$URL" --quiet -o json -c 64 --rate 2000 -d 3s -t 1 \
                --backend {backend} || test $? = 3)
            kill $SINK; wait $SINK || true
            TRUTH=$(awk -F, 'NR > 1 && $3 {{ print $3 - $2 }}' "$D/truth.csv" | sort -n | awk '
                {{ times[NR] = $1 }}
                END {{ printf "[%d, %d, %d]", times[int(NR * 0.5)], times[int(NR * 0.9)], times[int(NR * 0.99)] }}')
            echo "{{\"result\": $RESULT, \"truth\": $TRUTH}}""#
        );
        let Some(both) = play(Needs::Processors, &script) else { return };
        let (result, truth) = (&both["result"], &both["truth"]);
        let reasons = result["verdict"]["invalid_reasons"].to_string();
        if reasons.contains("send_time_uncertain") {
            continue;
        }
        for (index, percentile) in ["50", "90", "99"].into_iter().enumerate() {
            let measured =
                result["service_time"]["p"][percentile].as_f64().expect("6,000 requests are enough");
            let true_ns = truth[index].as_f64().expect("a time");
            assert!(true_ns >= 2e6, "{truth}");
            // The slowest were held up between the kernel's stamp and the server's clock, too.
            let tolerance = if percentile == "99" { 0.05 } else { 0.02 };
            assert_close(&format!("{backend}, p{percentile} of service"), measured, true_ns, tolerance);
        }
    }
}

/// R5: a generator that was left without time proves nothing about a server that is well, and says so; a
/// server that fails all the same has failed.
#[test]
fn r05_a_generator_without_time_has_no_verdict() {
    let of = |server: &str, load: &str| {
        let script = format!(
            "sink {server}; taskset -apc 1 $SINK >/dev/null; hog 0
            taskset -c 0 nice -n 5 $P run \"$URL\" --quiet -o json --rate 20000 -d 2s -t 1 {load} \
                || test $? = 3 -o $? = 99 -o $? = 1"
        );
        play(Needs::Processors, &script)
    };
    let threshold = "--threshold 'p99<50ms' --threshold 'error_rate<1%'";
    let Some(well) = of("", threshold) else { return };
    let verdict = &well["verdict"];
    assert_eq!(
        (&verdict["outcome"], &verdict["valid"]),
        (&"no_verdict".into(), &false.into()),
        "{verdict:#}"
    );
    assert_eq!(verdict["limited_by"]["what"], "generator", "{verdict:#}");
    let Some(failing) = of("--status 500", threshold) else { return };
    assert_eq!(failing["verdict"]["outcome"], "fail", "{:#}", failing["verdict"]);
}

/// R5: a generator that runs for a twentieth of the time only is late, and says by how much; the service
/// times are the server's all the same, as its log has them.
#[test]
fn r05_a_generator_without_time_shows_it_as_start_lag_and_not_as_service_time() {
    // Of every 20 ms it stands still for 19.
    let stalls = (0..500).map(|n| Pause { at: SECOND * 1_000 + MS * (20 * n), length: MS * 19 }).collect();
    let law = Law::LogNormal { median: MS * 5, sigma: 0.5 };
    let options = SimOptions { stalls, ..near(infinite(law)) };
    let (record, truth) = simulate(&plan("rate: 1000, duration: 8s, connections: 200"), options);
    let mut times: Vec<Nanos> = truth
        .entries()
        .iter()
        .map(|entry| entry.replied.expect("all are answered").since(entry.received))
        .collect();
    times.sort_unstable();
    let total = &record.total;
    for p in [50.0, 90.0, 99.0] {
        let true_ms = nearest_rank(&times, p / 100.0).expect("there are some").0 as f64 / 1e6;
        assert_close(&format!("p{p} of service"), ms(&total.service_time, p), true_ms, 0.01);
    }
    // A request that is due in a standstill waits for its end: 9.5 ms on average, 19 ms at most.
    assert_close("p50 of start lag", ms(&total.start_lag, 50.0), 9.0, 0.15);
    assert_close("p99 of start lag", ms(&total.start_lag, 99.0), 18.8, 0.05);
    // On open connections a request is sent when it is started, so the parts sum up to the whole exactly.
    let parts = total.start_lag.sum() + total.service_time.sum();
    assert_eq!(total.response_time.sum().abs_diff(parts), 0, "{parts}");
    assert!(!record.verdict.valid, "{:?}", record.verdict);
}

/// R5: beside a generator that is busy all the time, a probe sees the times of the server.
#[test]
fn r05_a_probe_sees_the_server_beside_a_busy_generator() {
    let script = r#"
        sink --delay constant:20ms
        cat >"$D/busy.yaml" <<-plan
			scenarios:
			  - steps:
			      - get: $URL
			        script: |
			          function validate_response(headers, body)
			            local sum = 0
			            for n = 1, 1000000 do sum = sum + n % 7 end
			            return sum > 0
			          end
		plan
        "$P" run "$D/busy.yaml" -c 64 -d 3s --probe --quiet -o json || test $? = 3
    "#;
    let Some(result) = play(Needs::Processors, script) else { return };
    let probe = &result["probe"];
    let p50 = probe["service_time"]["p"]["50"].as_u64().expect("a time") as f64 / 1e6;
    let late = !probe["valid"].as_bool().expect("a word");
    assert!(late || (p50 - 20.0).abs() < 1.0, "{p50} ms");
    assert_eq!(result["verdict"]["valid"], false, "the generator was not busy: {}", result["verdict"]);
    // Its requests are in no account of the load, and not forgotten either.
    let unmeasured = result["accounting"]["unmeasured"].as_u64().expect("a number");
    let started = probe["started"].as_u64().expect("a number");
    assert!(started > 50 && unmeasured > started, "{started} of {unmeasured}");
    let bias = probe["bias"]["50"]["difference_ns"].as_i64().expect("a difference");
    let load = result["service_time"]["p"]["50"].as_i64().expect("a time");
    assert_eq!(load - bias, probe["service_time"]["p"]["50"].as_i64().expect("a time"));
}

/// R6: with the kernel's stamps a response that is read late was not late; without them it was.
#[test]
fn r06_the_stamps_of_the_kernel_leave_out_what_the_generator_adds() {
    let service = |receive_stamps: bool| {
        let overshoot = Nanos::from_micros(700);
        let options = SimOptions { receive_stamps, overshoot, ..near(infinite(Law::Constant(MS * 5))) };
        let (record, _) = simulate(&plan("connections: 1, duration: 5s"), options);
        let [worker] = &record.workers[..] else { panic!("one worker") };
        (ms(&record.total.service_time, 99.0), worker.receive_lag.clone())
    };
    let ((stamped, lag), (read, none)) = (service(true), service(false));
    assert!((stamped - 5.0).abs() < 0.020, "{stamped} ms");
    assert!(read > 5.5, "{read} ms: this world shows nothing");
    // The time that the stamps leave out is known, too.
    let lag_p99 = ms(&lag, 99.0);
    assert!((stamped + lag_p99 - read).abs() < 0.020, "{stamped} ms, read {lag_p99} ms later: not {read} ms");
    assert!(lag.count() > 800 && none.count() == 0, "{} and {}", lag.count(), none.count());
}

/// R6: on a real machine, responses carry the stamps, and the service time is that of the target's log.
#[test]
fn r06_responses_are_stamped_on_loopback() {
    let script = "sink --delay constant:5ms; load --rate 200 -d 2s --backend epoll";
    let Some(result) = play(Needs::Nothing, script) else { return };
    let warned = result["verdict"]["warnings"].to_string().contains("stamp");
    assert!(!warned, "{}", result["verdict"]["warnings"]);
    let time = |value: &Value| value.as_u64().expect("a time") as f64 / 1e6;
    let (fastest, p50) = (time(&result["service_time"]["min"]), time(&result["service_time"]["p"]["50"]));
    assert!((4.95..7.0).contains(&p50) || held_up(&result), "{p50} ms");
    // The send time after an interruption is known up to the usual length of a send; where it may be wrong by
    // more than a tenth of the service time, the sample is counted.
    let doubtful = result["generator"]["send_time_uncertain"].as_u64().expect("a number");
    assert!((4.5..7.0).contains(&fastest) || doubtful > 0 || held_up(&result), "{fastest} ms");
}

/// Returns `true` if the result itself says that this machine did not let the generator run.
fn held_up(result: &Value) -> bool {
    result["verdict"].to_string().contains("start lag")
}
