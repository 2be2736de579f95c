//! `plimsoll ab`: two targets under one load, from the command line.

use plimsoll_testkit::verdict;
use serde_json::Value;

use super::bench::{Server, Sink, output, stderr};

/// The comparison of two sides, for some seconds.
fn compared(sides: &[&str], flags: &str) -> (Option<i32>, Value) {
    let mut args = vec!["ab"];
    args.extend(sides);
    // A busy machine is no reason not to compare: both have it alike.
    args.extend(["--allow-invalid", "--quiet", "-o", "json"]);
    args.extend(flags.split(' '));
    let output = output(&args);
    let comparison = serde_json::from_slice(&output.stdout);
    (output.status.code(), comparison.unwrap_or_else(|_| panic!("{}", stderr(&output))))
}

fn requests(comparison: &Value, side: &str) -> u64 {
    let requests = &comparison["interleaved"][side];
    requests["ok"].as_u64().expect("a number") + requests["failed"].as_u64().expect("a number")
}

#[test]
fn a_slower_target_is_found_before_the_time_is_over() {
    let a = Sink::measured(&["--delay", "constant:5ms"]);
    let b = Server::start(&["sink", "--delay", "constant:10ms"]);
    let (code, comparison) =
        compared(&[&a.url, &format!("http://{}/", b.address)], "-R 400 -d 30s --metric p50 --seed 3");
    let run = &comparison["interleaved"];
    // A machine that gave the generator no time need not find it, but says nothing else.
    if code == Some(0) && comparison["b"]["runs"][0]["valid"] == false {
        assert_eq!(comparison["verdict"], "undecided", "{comparison:#}");
        return;
    }
    assert_eq!((code, comparison["verdict"].as_str()), (Some(4), Some("worse")), "{comparison:#}");
    assert_eq!(run["ended"], "decided");
    let statement = run["statement"].as_str().expect("a sentence");
    assert!(statement.starts_with("B is slower by ") && statement.contains(" at p50 ["), "{statement}");
    let (a, b) = (requests(&comparison, "a"), requests(&comparison, "b"));
    // Each pair of arrivals has one of each; some had not ended when the warm-up did.
    assert!(a > 200 && a.abs_diff(b) <= 40, "{a} {b}");
    assert!(run["looks"].as_array().is_some_and(|looks| !looks.is_empty()));
}

/// Symptom: without a rate users turned to A and B one after the other, so that both always had as many
/// requests: a server of 5 ms was "the same as" one of 50 ms.
#[test]
fn without_a_rate_each_side_has_users_of_its_own() {
    let a = Sink::measured(&["--delay", "constant:4ms"]);
    let b = Server::start(&["sink", "--delay", "constant:16ms"]);
    let b = format!("http://{}/", b.address);
    for flags in ["-c 8", "--users 8", "-c 4 -t 2", "--users 6 -t 2"] {
        let (code, comparison) =
            compared(&[&a.url, &b], &format!("{flags} -d 2s --warmup 200ms --metric rate --seed 3"));
        assert!(matches!(code, Some(0 | 4)), "{flags}: {comparison:#}");
        let [of_a, of_b] = ["a", "b"].map(|side| requests(&comparison, side) as f64);
        assert!((2.5..=5.0).contains(&(of_a / of_b)), "{flags}: {of_a} {of_b}");
        let load = comparison["interleaved"]["load"].as_str().expect("words");
        assert!(load.starts_with("closed: ") && comparison["interleaved"]["apart"] == true, "{load}");
    }
    // Two paths of one server, too.
    let b = format!("{}b", a.url);
    let (code, comparison) = compared(&[&a.url, &b], "--users 4 -d 1s --warmup 200ms --metric rate --seed 3");
    assert_eq!(code, Some(0), "{comparison:#}");
    let [of_a, of_b] = ["a", "b"].map(|side| requests(&comparison, side) as f64);
    assert!((0.7..=1.4).contains(&(of_a / of_b)), "{of_a} {of_b}");
    let output = output(&["ab", &a.url, &b, "--users", "5", "-d", "1s"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--users 6"), "{}", stderr(&output));
}

#[test]
fn a_target_is_not_called_different_from_itself() {
    let sink = Sink::measured(&["--delay", "exponential:2ms"]);
    let (a, b) = (format!("{}a", sink.url), format!("{}b", sink.url));
    let (code, comparison) = compared(&[&a, &b], "-R 400 -d 11500ms --warmup 300ms --seed 5 --strict");
    let word = comparison["verdict"].as_str().expect("a word");
    assert!(["same", "undecided"].contains(&word), "{comparison:#}");
    assert_eq!(code, Some(if word == "same" { 0 } else { 5 }));
    let names = ["a", "b"].map(|side| comparison[side]["name"].as_str().unwrap_or_default());
    assert!(names[0].ends_with("/a") && names[1].ends_with("/b"), "{names:?}");
}

/// Two servers that fail everything were "undecided: nothing is known", with exit code 0.
#[test]
fn targets_that_fail_everything_are_broken() {
    let fails = || Server::start(&["sink", "--status", "503"]);
    let (a, b, good) = (fails(), fails(), Sink::start(&[]));
    let [a, b] = [&a, &b].map(|server| format!("http://{}/", server.address));
    let cases = [
        ([&a, &b], Some(1), "undecided", "neither answered well. A: none of "),
        ([&a, &good.url], Some(1), "undecided", "A is broken: none of "),
        ([&good.url, &b], Some(4), "worse", "B is broken: none of "),
    ];
    for (sides, code, verdict, statement) in cases {
        let (found, comparison) =
            compared(&sides.map(String::as_str), "-R 200 -d 500ms --warmup 100ms --seed 3");
        assert_eq!((found, comparison["verdict"].as_str()), (code, Some(verdict)), "{comparison:#}");
        let said = comparison["interleaved"]["statement"].as_str().expect("a sentence");
        assert!(said.starts_with(statement) && said.contains("all of them status_5xx"), "{said}");
    }
}

/// A target that takes every request and answers none had no failed ones either.
#[test]
fn a_target_that_never_answers_is_broken() {
    let (good, silent) = (Sink::start(&[]), Server::start(&["sink", "--delay", "constant:1h"]));
    let silent = format!("http://{}/", silent.address);
    for load in ["-R 200", "-c 4"] {
        let (code, comparison) = compared(
            &[&good.url, &silent],
            &format!("{load} -d 500ms --warmup 100ms --drain 300ms --no-preflight"),
        );
        // A generator that had no time itself may be the reason for the silence.
        if code == Some(0) && comparison["b"]["runs"][0]["valid"] == false {
            assert_eq!(comparison["verdict"], "undecided", "{comparison:#}");
            continue;
        }
        assert_eq!((code, comparison["verdict"].as_str()), (Some(4), Some("worse")), "{comparison:#}");
        let said = comparison["interleaved"]["statement"].as_str().expect("a sentence");
        assert!(said.starts_with("B is broken: none of ") && said.contains(" was answered"), "{said}");
    }
}

#[test]
fn two_plans_are_one_run() {
    let sink = Sink::start(&[]);
    let folder = std::env::temp_dir().join(format!("plimsoll-ab-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
    let write = |name: &str, run: &str, path: &str| {
        let file = folder.join(name);
        let text = format!(
            "run: {{{run}}}\ntargets: {{api: '{}'}}\nscenarios: [{{steps: [{{get: /{path}}}, {{get: /}}]}}]\n",
            sink.url.trim_end_matches('/')
        );
        std::fs::write(&file, text).expect("the folder can be written");
        file.display().to_string()
    };
    let run = "rate: 100, duration: 1s, warmup: 200ms";
    let (a, b) = (write("a.yaml", run, "a"), write("b.yaml", run, "b"));
    let [json, page] = ["ab.json", "ab.html"].map(|name| folder.join(name).display().to_string());
    let shown = output(&["ab", &a, &b, "--quiet", "--json", &json, "--report", &page]);
    assert!(verdict::ran(shown.status.code()), "{}", stderr(&shown));
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(text.contains("a.yaml: ") && text.contains("b.yaml: "), "{text}");
    let written: Value =
        serde_json::from_slice(&std::fs::read(&json).expect("it was written")).expect("JSON");
    let (of_a, of_b) = (requests(&written, "a"), requests(&written, "b"));
    // Symptom: "JSON, but no result of a run".
    let again = |args: &[&str]| String::from_utf8(output(args).stdout).expect("text");
    let page = std::fs::read_to_string(&page).expect("it was written");
    assert_eq!(again(&["report", &json, "--file", "-"]), page);
    assert_eq!(again(&["show", &json]), text);
    assert!(again(&["show", &json, "-o", "markdown"]).starts_with("### Load test comparison: "));
    for args in [&["show", &json, "-o", "csv"][..], &["compare", &json, &json]] {
        let refused = output(args);
        assert_eq!(refused.status.code(), Some(2), "{args:?}");
        let said = stderr(&refused);
        assert!(said.contains("a comparison") && said.contains("hint: "), "{args:?}: {said}");
    }
    assert!(page.contains("B is ") || page.contains("undecided after") || page.contains("no verdict"));
    // 100 iterations of two requests.
    assert!((180..=210).contains(&(of_a + of_b)) && of_a.abs_diff(of_b) <= 10, "{of_a} {of_b}");
    let other = write("other.yaml", "rate: 50, duration: 1s", "b");
    let refused = output(&["ab", &a, &other]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("the plans ask for different loads"), "{}", stderr(&refused));
    // The system cleans up files that cannot be removed.
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn what_cannot_be_compared_is_refused() {
    for (args, expected) in [
        (&["http://127.0.0.1:1/"][..], "two sides are compared, 1 given"),
        (
            &["http://127.0.0.1:1/", "http://127.0.0.1:2/", "http://127.0.0.1:3/"],
            "two sides are compared, 3 given",
        ),
        (
            &["http://127.0.0.1:1/", "http://127.0.0.1:2/", "-R", "9", "--metric", "rate"],
            "--metric: rate: A and B get",
        ),
        (&["http://127.0.0.1:1/", "http://127.0.0.1:2/", "--effect", "0"], "--effect: "),
        // Symptom: it was dropped without a word.
        (
            &["http://127.0.0.1:1/", "http://127.0.0.1:2/", "--threshold", "p99<1s"],
            "--threshold has no place here",
        ),
        (&["a.yaml", "b.yaml", "--threshold", "p99<1s"], "--threshold has no place here"),
    ] {
        let output = output(&[&["ab"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains(expected), "{args:?}: {}", stderr(&output));
    }
}
