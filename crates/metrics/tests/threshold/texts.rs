//! Accepted and refused spellings, and printing that loses nothing.

use plimsoll_core::ErrorClass;
use plimsoll_metrics::Threshold;
use proptest::prelude::*;

#[test]
fn thresholds_have_one_canonical_spelling() {
    for (text, canonical) in [
        ("p99<10ms", "p99<10ms"),
        (" p99.9 <= 1.5 ms ", "p99.9<=1500us"),
        ("p50.000<2s", "p50<2s"),
        ("p99.99999999<90s", "p99.99999999<90s"),
        ("response_time.p95<0.25s", "p95<250ms"),
        ("service_time.max<3µs", "service_time.max<3us"),
        ("start_lag.p99<=1m", "start_lag.p99<=60s"),
        ("first_byte_time.mean!=7ns", "first_byte_time.mean!=7ns"),
        ("connect_time.p99<1ms", "connect_time.p99<1ms"),
        ("tls_time.min>0ns", "tls_time.min>0s"),
        ("failed_response_time.stdev<1ms", "failed_response_time.stdev<1ms"),
        ("max<1h", "max<3600s"),
        ("max<5000000s", "max<5000000s"),
        ("error_rate<0.1%", "error_rate<0.1%"),
        ("error_rate<0.001", "error_rate<0.1%"),
        ("timeout_rate==0", "timeout_rate==0%"),
        ("errors<0.1%", "error_rate<0.1%"),
        ("errors<10", "errors<10"),
        ("errors==0", "errors==0"),
        ("failed==0", "failed==0"),
        ("ok>=10k", "ok>=10000"),
        ("status_5xx<1%", "status_5xx<1%"),
        ("checks==0", "checks==0"),
        ("bytes_received<10MiB", "bytes_received<10485760"),
        ("bytes_sent>=1.5kB", "bytes_sent>=1500"),
        ("rate>=5k/s", "rate>=5000/s"),
        ("rate>0.5", "rate>0.5/s"),
        ("rate>=300/min", "rate>=300/m"),
        ("rate>=0.990*target", "rate>=0.99*target"),
        ("rate>=0.99 * target", "rate>=0.99*target"),
        ("prom(rate(http_errors[1m]))<1", "prom(rate(http_errors[1m]))<1"),
        (
            " prom ( sum by (a, b) (x{le!=\"1)<2\"}) > bool 3 ) <= -1.50e3 ",
            "prom(sum by (a, b) (x{le!=\"1)<2\"}) > bool 3)<=-1500",
        ),
        ("prom(up)!=1e-7", "prom(up)!=0.0000001"),
    ] {
        let threshold = Threshold::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(threshold.to_string(), canonical, "{text}");
        assert_eq!(Threshold::parse(canonical), Ok(threshold), "{text}");
    }
    for class in ErrorClass::CORE {
        assert!(Threshold::parse(&format!("{class}==0")).is_ok(), "{class}");
    }
}

#[test]
fn a_query_has_an_end() {
    let query = |length: usize| Threshold::parse(&format!("prom({})<1", "x".repeat(length)));
    assert!(query(2_000).is_ok());
    assert!(query(2_001).expect_err("it is too long").message.contains("2001 bytes is too long"));
}

#[test]
fn what_is_wrong_is_named_with_its_place_and_a_hint() {
    for (text, part, hint) in [
        ("p99", "p99", "write a figure, <, <="),
        ("", "", "such as p99<10ms"),
        ("p99=10ms", "=", "write == for equal"),
        ("p99=>10ms", "=>", "write >="),
        ("p99<>10ms", "<>", "write <, <="),
        ("<10ms", "", "write one before the comparison"),
        ("p99<", "", "such as 10ms, 250us or 1.5s"),
        ("p99<10", "10", "such as 10ms, 250us or 1.5s"),
        ("errors<0%", "0%", "write errors<=0%, or a limit above it"),
        ("status_5xx < 0", "0", "write status_5xx<=0, or a limit above it"),
        ("p99{ok}<0ms", "0ms", "write p99{ok}<=0ms, or a limit above it"),
        // Symptom: k6's `checks>99%` asked for 99 % of failed checks.
        ("checks>99%", "99%", "write checks<1% for at least 99% good ones"),
        ("checks>=95%", "95%", "write checks<5%"),
        ("prom(up)", "prom(up)", "write a comparison behind the query"),
        ("prom(up<1", "prom(up", "write prom(QUERY)"),
        ("prom(up)<10ms", "10ms", "such as 1, 0.01, -5 or 1e6"),
        ("prom(up)<NaN", "NaN", "such as 1, 0.01"),
        ("prom(up)<inf", "inf", "such as 1, 0.01"),
        ("prom( )<1", "prom( )", "write one, such as prom(rate("),
        ("prom(a\n+b)<1", "prom(a\n+b)", "write it in one line"),
        ("promise(up)<1", "promise(up)", "of a Prometheus server prom(QUERY)"),
        ("p99 < ten ms", "ten ms", "such as 10ms, 250us or 1.5s"),
        ("p99<0.5ns", "0.5ns", "such as 10ms"),
        ("p100<10ms", "p100", "the largest value is max"),
        ("p0<10ms", "p0", "the largest value is max"),
        ("p99.999999999<1s", "p99.999999999", "the largest value is max"),
        ("service_time<10ms", "service_time", "write service_time.p99"),
        ("latency.p99<10ms", "latency.p99", "write p99 (any percentile)"),
        ("avg<10ms", "avg", "write mean"),
        ("errors<0.1", "0.1", "such as 100, 10k or 0.1%"),
        ("error<1", "error", "write error_rate for a share, errors for a number"),
        ("eror_rate<1%", "eror_rate", "write error_rate"),
        ("status_5x<1", "status_5x", "write status_5xx"),
        ("error_rate<101%", "101%", "such as 0.1%"),
        ("error_rate<2", "2", "such as 0.1%"),
        ("error_rate<5ms", "5ms", "such as 0.1%"),
        ("failed<1.5", "1.5", "such as 100, 10k or 0.1%"),
        ("failed<-1", "-1", "such as 100"),
        ("rate>=5/d", "5/d", "such as 5000, 5k/s, 300/m"),
        ("rate>=0.99*goal", "0.99*goal", "such as 5000"),
        ("rate>=1000000000000000", "1000000000000000", "such as 5000"),
        ("bytes_received<1ms", "1ms", "such as 10MiB"),
    ] {
        let error = Threshold::parse(text).expect_err(text);
        assert_eq!(&text[error.at.clone()], part, "{error:?}");
        assert!(error.hint.contains(hint), "{text}: {error:?}");
        assert!(!error.message.is_empty() && !error.message.contains('\n'), "{error:?}");
    }
}

fn metric() -> impl Strategy<Value = String> {
    const TIMES: &[&str] = &["", "service_time.", "start_lag.", "connect_time."];
    let percentile = (1_u32..100, 0_u32..1_000).prop_map(|(whole, part)| format!("p{whole}.{part:03}"));
    let figure = prop_oneof![percentile, Just("mean".to_owned()), Just("max".to_owned())];
    (prop::sample::select(TIMES), figure).prop_map(|(kind, figure)| format!("{kind}{figure}"))
}

fn text() -> impl Strategy<Value = String> {
    let operator = prop::sample::select(&["<", "<=", ">", ">=", "==", "!="][..]);
    let number = (0_u64..1_000_000_000, 0_u32..1_000).prop_map(|(whole, part)| format!("{whole}.{part}"));
    let time = (0_u64..1_000_000_000, prop::sample::select(&["ns", "us", "ms", "s"][..]))
        .prop_map(|(number, unit)| format!("{number}{unit}"));
    let share = (0_u32..100, 0_u32..100_000).prop_map(|(whole, part)| format!("{whole}.{part}%"));
    let rate = (number, prop::sample::select(&["", "/s", "/m", "/h", "*target"][..]))
        .prop_map(|(number, unit)| format!("{number}{unit}"));
    let part = prop_oneof![
        (metric(), time),
        (Just("error_rate".to_owned()), share.clone()),
        (Just("status_5xx".to_owned()), share),
        (Just("failed".to_owned()), any::<u32>().prop_map(|number| number.to_string())),
        (Just("rate".to_owned()), rate),
    ];
    (part, operator).prop_map(|((metric, limit), operator)| format!("{metric} {operator} {limit}"))
}

proptest! {
    #[test]
    fn printing_and_parsing_again_changes_nothing(text in text()) {
        let threshold = Threshold::parse(&text).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let printed = threshold.to_string();
        prop_assert_eq!(Threshold::parse(&printed), Ok(threshold), "{}", &printed);
        prop_assert_eq!(Threshold::parse(&printed).map(|again| again.to_string()), Ok(printed));
    }

    #[test]
    fn no_text_makes_it_panic(text in "[a-z0-9_.<>=!%/* µ€]{0,24}") {
        if let Err(error) = Threshold::parse(&text) {
            prop_assert!(text.get(error.at.clone()).is_some(), "{:?} of {:?}", error.at, text);
        }
    }
}
