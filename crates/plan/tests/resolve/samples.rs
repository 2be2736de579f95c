//! Warnings of thresholds on percentiles that a plan has too few requests for.

use super::flags::plan;

const URL: &str = "http://127.0.0.1:1/";

#[test]
fn a_run_that_is_too_short_for_a_percentile_says_so_with_what_would_do() {
    for (flags, expected) in [
        (
            "--rate 10 -d 5s --threshold p95<200ms",
            Some("it needs 59 samples, and 50 requests are due; -d 6s would do"),
        ),
        (
            "--rate 10 -d 5s --warmup 2s --threshold p95<200ms",
            Some("it needs 59 samples, and 50 requests are due; -d 6s would do"),
        ),
        // 299, and three times the root of it.
        (
            "--rate 10 -d 5s --arrival poisson --threshold p99>1ms",
            Some("it needs 299 samples, and 50 requests are due; -d 36s would do"),
        ),
        (
            "-c 4 -n 50 --threshold service_time.p95<1s",
            Some("it needs 59 samples, and 50 requests are due; -n 59 would do"),
        ),
        (
            "--rate 1 -d 1s --threshold p50<1s",
            Some("it needs 5 samples, and 1 request is due; -d 5s would do"),
        ),
        ("--rate 10 -d 6s --threshold p95<200ms", None),
        ("-c 4 -n 59 --threshold p95<200ms", None),
        // In the closed model the target decides how many there are.
        ("-c 4 -d 1s --threshold p99.9<1s", None),
        ("--rate 1 -d 1s --threshold error_rate<1% --threshold max<1s --threshold connect_time.p99<1s", None),
    ] {
        let long = |word| match word {
            "-d" => "--duration",
            "-c" => "--connections",
            "-n" => "--iterations",
            other => other,
        };
        let line: Vec<&str> = [URL].into_iter().chain(flags.split(' ').map(long)).collect();
        let said = plan(&line).lacking_samples();
        match expected {
            Some(expected) => {
                let [said] = &*said else { panic!("{flags}: {said:?}") };
                assert!(said.ends_with(expected), "{flags}: {said}");
                assert!(said.contains(" will not be shown to hold: "), "{said}");
            }
            None => assert!(said.is_empty(), "{flags}: {said:?}"),
        }
    }
}
