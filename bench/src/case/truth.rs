//! The figures of a run beside the server's own log of it: shapes of connections × behaviours × loads.
//!
//! No figure of this case is one of speed. A cell whose run is invalid, because the machine disturbed it, is
//! tried again, and is not judged if it never is valid. The sink and the target of language models log each
//! request; the cache has only its count, so that times of its shape are compared by the case `shapes` alone.

mod behaviour;
mod judge;

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::failure::{Failure, Result};
use crate::report::{Finding, Section};
use crate::session::Session;
use crate::shape::{self, Kind, SHAPES, Shape, Stand};

use behaviour::{BEHAVIOURS, Behaviour, Beside, Unreachable};
use judge::Account;

/// Tries of a cell whose runs are invalid.
const TRIES: u32 = 3;
/// From the start of the load until its server is started again.
const RESTART: Duration = Duration::from_millis(500);

/// The load; a timeout bounds what is silent.
const LOADS: [(&str, &[&str]); 8] = [
    ("20/s", &["--rate", "20", "--duration", "2s"]),
    ("200/s", &["--rate", "200", "--duration", "1s"]),
    ("200/s poisson", &["--rate", "200", "--duration", "1s", "--arrival", "poisson"]),
    ("400/s shared", &["--rate", "400", "--duration", "1s", "--pacing", "shared"]),
    ("stages", &["--stages", "500ms@100,500ms@300"]),
    ("warm-up", &["--rate", "200", "--duration", "1s", "--warmup", "500ms"]),
    ("closed", &["-c", "4", "--duration", "1s"]),
    ("counted", &["-c", "4", "-n", "200"]),
];

/// Result of a cell.
enum Judged {
    Right,
    Wrong(Vec<String>),
    /// No try was valid; the reasons of the last.
    Disturbed(String),
}

impl Judged {
    /// A cell that could not be carried out. The other cells are still useful.
    fn failed(failure: Failure) -> Self {
        Self::Wrong(vec![failure.to_string()])
    }
}

/// Carries out the case.
pub(crate) fn measure(session: &Session) -> Result<Vec<Section>> {
    let backends = shape::backends(session);
    let only = &session.options.only;
    let (mut right, mut cells, mut turn) = (0_u64, 0_u64, 0);
    let (mut wrong, mut disturbed) = (Vec::new(), Vec::new());
    for (number, shape) in SHAPES.iter().enumerate() {
        for behaviour in &BEHAVIOURS {
            let Some(flags) = behaviour.flags(shape) else { continue };
            for (load, load_flags) in LOADS {
                // The backends take turns: each meets every shape, behaviour and load.
                let backend = &backends[(turn + number) % backends.len()];
                turn += 1;
                let name = format!("{}, {}, {load}, {backend}", shape.name, behaviour.name);
                if !name.contains(only) {
                    continue;
                }
                cells += 1;
                let load = [&["--backend", backend.as_str()], load_flags].concat();
                match judge(session, shape, behaviour, flags, &load).unwrap_or_else(Judged::failed) {
                    Judged::Right => right += 1,
                    Judged::Wrong(findings) => {
                        wrong.extend(findings.iter().map(|finding| format!("{name}: {finding}")));
                    }
                    Judged::Disturbed(why) => disturbed.push(format!("{name}: {why}")),
                }
            }
        }
    }
    let mut section = Section::titled("The server's own log");
    section.text.push_str(&format!(
        "{cells} runs against the sink and its like, whose log of the same run is the truth: counts are \
         equal, and p50, p90 and p99 are at most {} µs + {} % above it, {} µs more where a request opens a \
         connection, and {} µs for a relay on the way and for each connection through it. A figure of a \
         shape whose server cannot log all of its own time is wrong if it is wrong in each of {TRIES} runs. \
         {right} are right.\n",
        judge::OURS_NS / 1e3,
        judge::SHARE * 100.0,
        judge::HANDSHAKE_NS / 1e3,
        judge::RELAY_NS / 1e3,
    ));
    wrong.iter().for_each(|text| section.note(format!("wrong: {text}")));
    disturbed.iter().for_each(|text| section.note(format!("not judged: {text}")));
    section.findings.push(Finding {
        case: "truth".to_owned(),
        figure: "figures that differ from the server's log".to_owned(),
        measured: wrong.len().to_string(),
        limit: "0".to_owned(),
        met: wrong.is_empty(),
    });
    Ok(vec![section])
}

/// Runs a cell until its run is valid, and compares it.
fn judge(
    session: &Session,
    shape: &Shape,
    behaviour: &Behaviour,
    flags: &[&str],
    load: &[&str],
) -> Result<Judged> {
    let mut wrong = Vec::new();
    for _ in 0..TRIES {
        let (result, account) = match shape::valid(TRIES, || run(session, shape, behaviour, flags, load))? {
            Err(why) => return Ok(Judged::Disturbed(why)),
            Ok(valid) => valid,
        };
        wrong = judge::compare(shape, behaviour.beside, &result, &account);
        if wrong.is_empty() {
            return Ok(Judged::Right);
        }
        // Starts that were late belong to response times, and a result that warns of them explains itself.
        let warnings = result["verdict"]["warnings"].as_array();
        if !shape.is_logged_exactly() {
            continue;
        }
        if !warnings.is_some_and(|all| all.iter().any(|warning| warning["code"] == "start_lag")) {
            return Ok(Judged::Wrong(wrong));
        }
    }
    Ok(match shape.is_logged_exactly() {
        true => Judged::Disturbed(format!("start_lag as a warning, and {}", wrong.join("; "))),
        false => Judged::Wrong(wrong),
    })
}

/// One run, and the server's account of it.
fn run(
    session: &Session,
    shape: &Shape,
    behaviour: &Behaviour,
    flags: &[&str],
    load: &[&str],
) -> Result<(Value, Account)> {
    let logs: Vec<PathBuf> = ["truth.csv", "again.csv"].map(|name| session.directory().join(name)).into();
    let logged = |log: &PathBuf| {
        let log = log.display().to_string();
        let log = if shape.kind == Kind::Cache { Vec::new() } else { vec!["--truth-log".to_owned(), log] };
        flags.iter().map(|flag| (*flag).to_owned()).chain(log).collect::<Vec<_>>()
    };
    let other = Unreachable::beside(behaviour.beside)?;
    let stand = Stand::start(session, shape, &logged(&logs[0]))?;
    let patience = format!("{}ms", judge::PATIENCE_NS / 1_000_000);
    let load = [&["--timeout", &patience, "--connect-timeout", &patience], load].concat();
    let begun = stand.begin(session, shape, &load, other.as_ref().map(|other| &*other.authority))?;
    let (stand, logs) = if behaviour.beside == Beside::Restart {
        begun.wait(RESTART)?;
        (stand.restart(session, shape, &logged(&logs[1]))?, &logs[..])
    } else {
        (stand, &logs[..1])
    };
    let result = begun.end()?;
    let said = stand.stop()?;
    Ok((result, Account::read(shape, logs, &said)?))
}
