//! The page for people who know another load generator: their command lines, and the same here.

use super::markdown::{MADE, cell};

/// A load generator, and its usual command line in parts.
struct Generator {
    name: &'static str,
    /// Differences in the measurement and in meanings, before any flag.
    differs: &'static str,
    /// Each part as it is written there, and as it is written here or why it is not needed. Code that begins
    /// with `-` is accepted behind `plimsoll run URL`.
    parts: &'static [(&'static str, &'static str)],
}

const GENERATORS: [Generator; 9] = [
    Generator {
        name: "wrk",
        differs: "The closed model, as here without `--rate`. wrk2's `-R` is `-R` here, for the whole run as there. \
                  wrk counts responses of any status below 400 as good, as is done here.",
        parts: &[
            ("-t 2", "`-t 2`"),
            ("-c 64", "`-c 64`"),
            ("-d 30s", "`-d 30s`"),
            (
                "-s post.lua",
                "`-s post.lua`, unchanged: `request`, `response`, `setup`, `init`, `delay`, `done`",
            ),
            ("-H 'Accept: text/html'", "`-H Accept:text/html`"),
            ("--latency", "not needed: percentiles are always shown"),
            ("--timeout 2", "`--timeout 2s`"),
        ],
    },
    Generator {
        name: "hey",
        differs: "hey's `-q` is the rate of each of its `-c` workers; `-q` and `--rate` here are those of the \
                  whole run. `--long` has the rest of its figures: fastest (`min`), p10, p25, DNS+dialup \
                  (`connect`, without names, which are resolved before the load), resp wait (`first byte`), \
                  resp read (its mean) and the size of a response, with its head. Not measured is req write: \
                  a request counts as sent with its first byte.",
        parts: &[
            ("-n 1000", "`-n 1000`"),
            ("-c 50", "`-c 50`"),
            ("-z 30s", "`-z 30s`, or `-d 30s`"),
            ("-q 10 -c 50", "`--rate 500 -c 50`"),
            ("-m POST", "`-X POST`"),
            ("-H 'Accept: text/html'", "`-H Accept:text/html`"),
            ("-T application/json", "`-H Content-Type:application/json`"),
            ("-A text/html", "`-H Accept:text/html`"),
            ("-d '{\"a\":1}'", "`-b '{\"a\":1}'`"),
            ("-D body.json", "`-b @body.json`"),
            ("-a me:secret", "`--basic me:secret`"),
            ("-t 20", "`--timeout 20s`"),
            ("-o csv", "`--log requests.csv`, a line for each request"),
            ("-h2", "`--http2`"),
            ("-host example.test", "`-H Host:example.test`"),
            ("-disable-keepalive", "`--disable-keepalive`"),
            ("-disable-compression", "not needed: nothing is asked to be compressed unless a header says so"),
            ("-disable-redirects", "not needed: redirects are followed with `--follow-redirects` only"),
            ("-cpus 2", "`-t 2`"),
            ("-x http://127.0.0.1:3128", "`--proxy http://127.0.0.1:3128`"),
        ],
    },
    Generator {
        name: "oha",
        differs: "Response times always count from the intended start where there is a rate: oha's `--latency-correction`.",
        parts: &[
            ("-n 1000", "`-n 1000`"),
            ("-c 50", "`-c 50`"),
            ("-p 10 --http2", "`-m 10 --http2`"),
            ("-z 30s", "`-z 30s`, or `-d 30s`"),
            ("-q 500", "`-q 500`, or `--rate 500`"),
            ("--latency-correction", "not needed: it is always so"),
            ("-w", "`--drain 10s`: how long to wait for owed responses"),
            ("--no-tui", "`--no-tui`"),
            ("-m POST", "`-X POST`"),
            ("-H 'Accept: text/html'", "`-H Accept:text/html`"),
            ("-t 5s", "`--timeout 5s`"),
            ("-d '{\"a\":1}'", "`-b '{\"a\":1}'`"),
            ("-D body.json", "`-b @body.json`"),
            ("-a me:secret", "`--basic me:secret`"),
            ("--http-version 2", "`--http2`"),
            ("--host example.test", "`-H Host:example.test`"),
            ("--disable-keepalive", "`--disable-keepalive`"),
            ("--insecure", "`--insecure`"),
            ("--connect-to a:80:b:8080", "`--connect-to a:80:b:8080`"),
            ("-x http://127.0.0.1:3128", "`--proxy http://127.0.0.1:3128`"),
            ("--unix-socket app.sock", "`--unix-socket app.sock`"),
            ("--output-format json", "`--output json`"),
        ],
    },
    Generator {
        name: "h2load",
        differs: "h2load's `--rps` is the rate of each connection; `--rate` here is that of the whole run.",
        parts: &[
            ("-n 100000", "`-n 100000`"),
            ("-c 8", "`-c 8`"),
            ("-m 64", "`-m 64 --http2`"),
            ("-t 2", "`-t 2`"),
            ("-D 30", "`-D 30`, or `-d 30s`"),
            ("--warm-up-time 5", "`--warmup 5s`"),
            ("--rps 100 -c 50", "`--rate 5000 -c 50`"),
            ("--h1", "`--http1.1`"),
            ("-p h2c", "`--http2`"),
            ("-H 'accept: text/html'", "`-H accept:text/html`"),
            ("-d body.json", "`-b @body.json`"),
            ("-w 20", "`--window-bits 20 --http2`"),
            ("-W 20", "`--connection-window-bits 20 --http2`"),
            ("-f 32k", "`--max-frame-size 32KiB --http2`"),
            ("-r 100", "`--connection-rate 100`"),
            ("-N 5s", "`--connection-inactivity 5s`"),
            ("-T 30s", "`--connection-lifetime 30s`"),
            ("--alpn-list=h2", "`--alpn h2`"),
            ("--log-file=requests.tsv", "`--log requests.csv`"),
            ("--connect-to=127.0.0.1:8443", "`--connect-to ::127.0.0.1:8443`"),
            ("--qlog-file-base=q", "HTTP/3 is not supported yet"),
        ],
    },
    Generator {
        name: "vegeta",
        differs: "The open model, as here with `--rate`; connections grow with the requests in flight, as \
                  vegeta's workers do.",
        parts: &[
            ("attack -rate=100/s", "`--rate 100/s`"),
            ("-duration=30s", "`-d 30s`"),
            ("-targets=targets.txt", "`plimsoll import vegeta targets.txt` makes a plan of it"),
            ("-rate=0 -max-workers=50", "`-c 50` without a rate"),
            ("-timeout=5s", "`--timeout 5s`"),
            ("-header='Accept: text/html'", "`-H Accept:text/html`"),
            ("-body=body.json", "`-b @body.json`"),
            ("-insecure", "`--insecure`"),
            ("-root-certs=ca.pem", "`--cacert ca.pem`"),
            ("-unix-socket=app.sock", "`--unix-socket app.sock`"),
            ("-redirects=3", "`--follow-redirects=3`"),
            ("report -type=hdrplot", "`--out hgrm=times.hgrm`"),
            ("report -type=json", "`--output json`"),
            ("encode -to=csv", "`--log requests.csv`"),
        ],
    },
    Generator {
        name: "k6",
        differs: "A k6 script becomes a plan here: steps, variables, extractions, thresholds, and Lua where \
                  that does not suffice. Users with think time are `--users`, arrival rates `--rate`.",
        parts: &[
            ("script.js", "`plimsoll import k6 script.js` makes a plan of it"),
            ("--vus 50 --duration 30s", "`--users 50 -d 30s`"),
            ("--iterations 1000", "`-n 1000`"),
            (
                "--stage 30s:50",
                "`--user-stages 1ms@0,30s@50`: k6 rises to a target, and the first stage here holds",
            ),
            ("constant-arrival-rate, rate: 100", "`--rate 100`"),
            ("ramping-arrival-rate to 100 in 30s", "`--stages 1ms@0,30s@100`"),
            ("thresholds: http_req_duration: ['p(95)<200']", "`--threshold p95<200ms`"),
            ("thresholds: http_req_failed: ['rate<0.01']", "`--threshold error_rate<1%`"),
            ("abortOnFail: true", "`--threshold p95<200ms --abort-on-fail`"),
            ("--summary-export=summary.json", "`--out k6=summary.json`"),
            ("--insecure-skip-tls-verify", "`--insecure`"),
            ("--out json=points.json", "`--out ndjson=points.ndjson`"),
        ],
    },
    Generator {
        name: "Locust",
        differs: "A user waits for its response, thinks, and goes on: `--users` with `think` in a plan. The tasks of a locustfile are \
                  scenarios with weights.",
        parts: &[
            (
                "-f locustfile.py",
                "`plimsoll import locust locustfile.py --host http://127.0.0.1:8080` makes a plan of it",
            ),
            ("--host http://127.0.0.1:8080", "the URL, without a flag"),
            ("-u 100 -r 10", "`--user-stages 1ms@0,10s@100`: a hundred users within ten seconds"),
            ("-t 5m", "`-d 5m`"),
            ("--headless", "not needed: it runs at once"),
            ("--csv results", "`--stats results.csv`"),
            ("--html report.html", "`--report report.html`"),
            ("wait_time = between(1, 3)", "`think: {uniform: [1s, 3s]}` in a plan"),
        ],
    },
    Generator {
        name: "JMeter",
        differs: "JMeter's response times leave out the time that its threads were late. `--users` are its threads; with `--rate` \
                  nothing is left out.",
        parts: &[
            ("test.jmx", "`plimsoll import jmeter test.jmx` makes a plan of it"),
            ("Number of Threads: 100", "`--users 100`"),
            ("Ramp-Up Period: 10", "`--user-stages 1ms@0,10s@100`"),
            ("Loop Count: 50, of 100 threads", "`--users 100 -n 5000`"),
            ("Constant Throughput Timer: 6000/min", "`--rate 100/s`"),
            ("CSV Data Set Config", "`data` in a plan"),
            ("Regular Expression Extractor", "`extract` in a plan"),
            ("Response Assertion", "`expect` in a plan"),
            ("-l results.jtl", "`--log requests.csv`"),
            ("-e -o report", "`--report report.html`"),
        ],
    },
    Generator {
        name: "Gatling",
        differs: "Injection profiles are stages: of users in the closed model, of a rate in the open one.",
        parts: &[
            ("Simulation.java", "`plimsoll import gatling Simulation.java` makes a plan of it"),
            ("constantUsersPerSec(100).during(30)", "`--rate 100 -d 30s`"),
            ("rampUsersPerSec(0).to(100).during(30)", "`--stages 1ms@0,30s@100`"),
            ("constantConcurrentUsers(50).during(30)", "`--users 50 -d 30s`"),
            ("rampConcurrentUsers(0).to(50).during(30)", "`--user-stages 1ms@0,30s@50`"),
            ("global().responseTime().percentile(95).lt(200)", "`--threshold p95<200ms`"),
            ("global().failedRequests().percent().lt(1.0)", "`--threshold error_rate<1%`"),
            ("feed(csv(\"users.csv\"))", "`data` in a plan"),
            ("check(jsonPath(\"$.id\").saveAs(\"id\"))", "`extract` in a plan"),
            ("shareConnections", "`connections` beside `users`: `--users 50 -c 10`"),
        ],
    },
];

pub(super) fn page() -> String {
    let mut page = format!(
        "{MADE}# Coming from another load generator\n\nTheir command lines, and the same behind `plimsoll run URL`. Many flags of wrk, hey, oha and h2load \
         can be typed as\nthey are, and the error for an unknown one of theirs names its replacement. \
         Some have another meaning here, such as hey's `-t`:\nthe tables have those, too.\n"
    );
    for Generator { name, differs, parts } in &GENERATORS {
        page.push_str(&format!("\n## {name}\n\n{differs}\n\n| {name} | here |\n|---|---|\n"));
        for (theirs, ours) in *parts {
            page.push_str(&format!("| {} | {} |\n", cell(&format!("`{theirs}`")), cell(ours)));
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use plimsoll_document::Source;
    use plimsoll_plan::{Disk, PlanPatch, PlanSource};

    use super::*;
    use crate::args::command_word;

    /// The parts of a text that are code.
    fn code(text: &str) -> impl Iterator<Item = &str> {
        text.split('`').skip(1).step_by(2)
    }

    #[test]
    fn what_is_written_here_is_accepted() {
        let mut tried = 0;
        for Generator { name, parts, .. } in &GENERATORS {
            for (theirs, ours) in *parts {
                assert!(!ours.is_empty() && ours.matches('`').count() % 2 == 0, "{name} {theirs}");
                for flags in code(ours).filter(|code| code.starts_with('-')) {
                    let line = ["plimsoll", "run", "http://127.0.0.1/"].into_iter().chain(flags.split(' '));
                    let accepted = command_word::command().try_get_matches_from(line);
                    assert!(accepted.is_ok(), "{name} {theirs}: {flags}: {:?}", accepted.err());
                    tried += 1;
                }
            }
        }
        assert!(tried > 80, "{tried}");
    }

    /// Symptom: the page said `think: 1s..3s`, which no plan may have.
    #[test]
    fn keys_of_plans_are_accepted() {
        let mut tried = 0;
        for (theirs, ours) in GENERATORS.iter().flat_map(|generator| generator.parts) {
            for key in code(ours).filter(|code| code.contains(": ")) {
                let text =
                    format!("targets: {{a: 'http://a/'}}\nscenarios: [{{steps: [{{get: /, {key}}}]}}]\n");
                let source = Source { name: "plan.yaml".to_owned(), text };
                let (plan, flags) = (Some(PlanSource::Text(source)), PlanPatch::default());
                let command = plimsoll_plan::Command { plan, environment: Vec::new(), flags };
                let refused = command.resolve(&Disk).err().map(|refused| refused.problems);
                assert!(refused.is_none(), "{theirs}: {key}: {refused:?}");
                tried += 1;
            }
        }
        assert_eq!(tried, 1);
    }

    #[test]
    fn the_page_has_a_table_for_each_generator() {
        let page = page();
        for name in ["wrk", "hey", "oha", "h2load", "vegeta", "k6", "Locust", "JMeter", "Gatling"] {
            assert!(page.contains(&format!("\n## {name}\n")), "{name}");
        }
        assert_eq!(page.matches("\n|---|---|\n").count(), GENERATORS.len());
    }
}
