//! The attack: hostile servers against Plimsoll, and damaged requests against its servers.
//!
//! No figure of this case is one of speed. The runs share the machine, several at a time.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_testkit::hostile::{
    Attempt, Barrage, Case, DamagedRequests, Run, Suite, attempt, authority_pem, barrage, ingest_requests,
    sink_requests, suites,
};

use crate::failure::{Failure, Result};
use crate::report::{Finding, Section};
use crate::server::{Server, Serves};
use crate::session::Session;

#[path = "../../../ext/cache/hostile.rs"]
mod cache;
#[path = "../../../ext/grpc/hostile.rs"]
mod grpc;
#[path = "../../../ext/redis/hostile.rs"]
mod redis;

/// Connections of a run: a tenth of the requests that are asked for by default.
const CONNECTIONS: u32 = 20;
/// Runs at a time. Most of them wait for a timeout.
const AT_ONCE: usize = 4;
/// The seed of the damage.
const SEED: u64 = 1876;

/// One run that was made.
struct CompletedRun<'a> {
    suite: &'a Suite,
    case: &'a Case,
    backend: &'a str,
    attempt: Attempt,
}

/// Carries out the case.
pub(crate) fn measure(session: &Session) -> Result<Vec<Section>> {
    Ok(vec![servers(session)?, damaged(session)?])
}

fn servers(session: &Session) -> Result<Section> {
    let mut suites = suites();
    suites.extend(grpc::suites());
    suites.extend([cache::suite(), redis::suite()]);
    let authority = session.directory().join("authority.pem");
    std::fs::write(&authority, authority_pem())
        .map_err(|error| Failure::because(format!("cannot write {}", authority.display()), error))?;
    let backends: Vec<&str> = match &session.options.backend {
        Some(backend) => vec![backend],
        None => vec!["epoll", "uring"],
    };
    let only = &session.options.only;
    let mut jobs = Vec::new();
    for suite in &suites {
        for case in suite.cases.iter().filter(|case| suite.name.contains(only) || case.name.contains(only)) {
            jobs.extend(backends.iter().map(|backend| (suite, case, *backend)));
        }
    }
    let next = AtomicUsize::new(0);
    let made: Mutex<Vec<(usize, io::Result<Attempt>)>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((number, (suite, case, backend))) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|n| Some((n, jobs.get(n)?)))
                {
                    let run = Run {
                        program: &session.plimsoll,
                        backend,
                        authority: &authority,
                        requests: session.options.requests,
                        connections: CONNECTIONS,
                    };
                    let attempt = attempt(run, suite, case);
                    made.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((number, attempt));
                }
            });
        }
    });
    let mut made = made.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    made.sort_by_key(|(number, _)| *number);
    let mut all = Vec::new();
    for (number, attempt) in made {
        let (suite, case, backend) = jobs[number];
        let attempt =
            attempt.map_err(|error| Failure::because(format!("{}: {}", suite.name, case.name), error))?;
        all.push(CompletedRun { suite, case, backend, attempt });
    }
    Ok(section(&suites, &all, session.options.requests))
}

fn section(suites: &[Suite], made: &[CompletedRun<'_>], requests: u32) -> Section {
    let mut section = Section::titled("Hostile servers");
    section.text.push_str(&format!(
        "Each server on a port of its own against a run of {requests} requests on {CONNECTIONS} connections, \
         on each backend. A run holds if it ends in time, without a panic, with accounts that balance and \
         bounded memory, and never passes where nothing was answered well. The ends that a table allows its \
         requests are in `crates/testkit/src/hostile` and `ext/*/hostile.rs`.\n"
    ));
    let mut rows = Vec::new();
    for suite in suites {
        let of: Vec<&CompletedRun<'_>> = made.iter().filter(|made| made.suite.name == suite.name).collect();
        if !of.is_empty() {
            rows.push(row(suite.name, &of));
        }
    }
    let all: Vec<&CompletedRun<'_>> = made.iter().collect();
    rows.push(row("all", &all));
    let head = [
        "protocol",
        "servers",
        "runs",
        "held",
        "ends as expected",
        "requests",
        "longest run, s",
        "most memory, MiB",
    ];
    section.table(&head, &rows);
    for CompletedRun { suite, case, backend, attempt } in made {
        for text in attempt.breaches.iter().chain(&attempt.unexpected) {
            section.note(format!("{}, {}, {backend}: {text}", suite.name, case.name));
        }
    }
    for (figure, count) in [
        ("runs against hostile servers that held", all.iter().filter(|made| made.attempt.held()).count()),
        (
            "runs whose requests ended as expected",
            all.iter().filter(|made| made.attempt.as_expected()).count(),
        ),
    ] {
        section.findings.push(Finding {
            case: "attack".to_owned(),
            figure: figure.to_owned(),
            measured: count.to_string(),
            limit: format!("all {}", all.len()),
            met: count == all.len(),
        });
    }
    section
}

fn row(name: &str, made: &[&CompletedRun<'_>]) -> Vec<String> {
    let servers: BTreeMap<(&str, &str), ()> =
        made.iter().map(|made| ((made.suite.name, made.case.name.as_str()), ())).collect();
    let count = |is: fn(&Attempt) -> bool| made.iter().filter(|made| is(&made.attempt)).count().to_string();
    let requests: u64 = made.iter().flat_map(|made| made.attempt.ends.values()).sum();
    let longest = made.iter().map(|made| made.attempt.took).max().unwrap_or_default();
    let most = made.iter().map(|made| made.attempt.rss_peak_bytes).max().unwrap_or_default();
    vec![
        name.to_owned(),
        servers.len().to_string(),
        made.len().to_string(),
        count(Attempt::held),
        count(Attempt::as_expected),
        requests.to_string(),
        format!("{:.1}", longest.as_secs_f64()),
        format!("{:.0}", most as f64 / f64::from(1 << 20)),
    ]
}

/// Damaged requests against the servers of the program.
fn damaged(session: &Session) -> Result<Section> {
    let mut section = Section::titled("Damaged requests");
    section.text.push_str(
        "Good requests, damaged in one to four ways each, on a connection of its own; one good request between \
         a thousand of them, which has to be answered well.\n",
    );
    let targets = [sink_requests(), ingest_requests(), cache::requests()];
    let each = session.options.damaged / targets.len() as u64;
    let mut rows = Vec::new();
    for target in &targets {
        let server = Server::start(session, &serves(target.server))?;
        let address = server.authority().parse().map_err(|error| Failure::because(&server.url, error))?;
        let made =
            barrage(address, target, SEED, each).map_err(|error| Failure::because(target.server, error))?;
        let memory = crate::machine::resident_bytes(server.pid())?;
        rows.push(line(target, made, memory));
        server.stop()?;
    }
    let head = [
        "server",
        "damaged requests",
        "answered with anything",
        "good ones, all answered well",
        "s",
        "memory after it, MiB",
    ];
    section.table(&head, &rows);
    Ok(section)
}

fn serves(name: &'static str) -> Serves {
    match name {
        "sink" => Serves::Sink(Vec::new()),
        name => Serves::Target(name, Vec::new()),
    }
}

fn line(target: &DamagedRequests, made: Barrage, memory: u64) -> Vec<String> {
    vec![
        target.server.to_owned(),
        made.sent.to_string(),
        made.answered.to_string(),
        made.probes.to_string(),
        format!("{:.1}", made.took.as_secs_f64()),
        format!("{:.0}", memory as f64 / f64::from(1 << 20)),
    ]
}
