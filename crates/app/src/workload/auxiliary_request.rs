//! Requests beside the load: whether its target answers, and the result of the load.

use plimsoll_core::{ErrorClass, Nanos};
use plimsoll_document::{MadeDocument, Problem};
use plimsoll_driver::{BackendOptions, KernelBackend};
use plimsoll_engine::{Control, resolve, run_logged};
use plimsoll_metrics::{FailedExchange, Log, LogBatch, LogOptions, RunRecord};
use plimsoll_plan::{Plan, PlanPatch};
use serde_json::{Value, json};

use crate::base::failure::Failure;
use crate::session::request::{resolve_made, resolve_text};
use crate::session::{backend, run};

/// Time limit of a request before the load.
const PATIENCE: Nanos = Nanos::from_secs(5);
/// Time limit of a request for the effect of a load: a store may have to write or to count before it answers.
const LONG_PATIENCE: Nanos = Nanos::from_secs(60);
/// Name of the plan in messages.
const NAME: &str = "the plan of a request beside the load";

/// Carries one iteration of a plan out, and nothing else. Requests have 5 seconds for their answers.
///
/// # Errors
/// The plan is wrong, or the system refuses something.
pub fn once(document: Value, flags: PlanPatch) -> Result<RunRecord, Failure> {
    carry_out(document, flags, |_| {}, Some(PATIENCE), &Log::default()).map(|(record, _)| record)
}

/// Carries one iteration of a plan out. Without a `patience` its requests have the time limits of the flags.
/// Returns the limit, too.
fn carry_out(
    mut document: Value,
    flags: PlanPatch,
    prepare: impl FnOnce(&mut Plan),
    patience: Option<Nanos>,
    log: &Log,
) -> Result<(RunRecord, Nanos), Failure> {
    document["run"] = json!({ "iterations": 1, "connections": 1, "no_preflight": true });
    let mut plan = resolve_text(NAME, document.to_string(), flags)?.plan;
    prepare(&mut plan);
    if let Some(patience) = patience {
        (plan.timeout, plan.connect_timeout) = (patience, PATIENCE);
    }
    // With one thread, the requests go out in order.
    plan.threads = 1;
    run_beside(&plan, log).map(|record| (record, plan.timeout))
}

/// Carries a plan out without any output.
fn run_beside(plan: &Plan, log: &Log) -> Result<RunRecord, Failure> {
    let addresses = resolve(plan).map_err(run::failure)?;
    let backend = KernelBackend::Epoll(BackendOptions::default());
    run_logged(plan, &backend.into(), &addresses, &Control::default(), log, &mut |_| {}).map_err(run::failure)
}

/// Carries a plan of any size out without a report.
pub(crate) fn load_of(name: &str, text: String, flags: PlanPatch) -> Result<RunRecord, Failure> {
    let mut plan = resolve_text(name, text, flags)?.plan;
    backend::fit_descriptors(&mut plan, 0).map_err(Failure::environment)?;
    run_beside(&plan, &Log::default())
}

/// Carries a plan out beside the load, and gives every request of it that may have changed something, whole.
pub(crate) fn writes_of(
    made: MadeDocument,
    flags: PlanPatch,
) -> Result<(RunRecord, Vec<FailedExchange>), Failure> {
    let mut plan = resolve_made(made, flags)?.plan;
    backend::fit_descriptors(&mut plan, 0).map_err(Failure::environment)?;
    let options = LogOptions {
        share: 0.0,
        failed: 0,
        good_too: false,
        writes: true,
        streams: false,
        longest: usize::MAX,
        seed: plan.seed,
    };
    let (log, receive) = Log::new(options);
    let (record, writes) = std::thread::scope(|scope| {
        // Workers wait until their batches are taken.
        let reader = scope.spawn(|| {
            let mut all = Vec::new();
            for batch in receive {
                match batch {
                    LogBatch::Writes(writes) => all.extend(writes),
                    LogBatch::Entries(_) | LogBatch::Streams(_) | LogBatch::Failed(_) => {}
                    LogBatch::End => break,
                }
            }
            all
        });
        let record = run_beside(&plan, &log);
        log.end();
        (record, reader.join().unwrap_or_default())
    });
    Ok((record?, writes))
}

/// Returns the reason why a request failed.
pub fn reason(record: &RunRecord) -> String {
    let example = record.error_examples.values().next().cloned();
    example.unwrap_or_else(|| "no response in time".to_owned())
}

/// A server's answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// The first line and the fields, those behind the body among them.
    pub head: Vec<u8>,
    /// Content, cut at the limit of the request.
    pub body: Vec<u8>,
    /// Number of bytes beyond those that were kept.
    pub cut: u64,
}

impl Answer {
    /// Returns the value of a field by its name, the last of several.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        let mut fields = self.head.split(|byte| *byte == b'\n').filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            Some((&line[..colon], line[colon + 1..].trim_ascii()))
        });
        fields.rfind(|(of, _)| of.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }
}

/// Sends the steps of a plan whose target is `origin` in turn; returns all answers, whatever their status.
/// One that fails in another way is an error with the reason. A step of `think` alone is a pause.
pub(crate) fn answers(origin: &str, steps: &[Value], flags: PlanPatch) -> Result<Vec<Answer>, Failure> {
    answers_with(origin, steps, flags, FailedExchange::LONGEST, |_| {})
}

/// Sends the steps of a plan whose target is `origin` in turn; returns all answers, of at most `longest`
/// bytes each. `prepare` changes the plan before it is carried out: it can add bodies that JSON cannot
/// represent.
pub(crate) fn answers_with(
    origin: &str,
    steps: &[Value],
    flags: PlanPatch,
    longest: usize,
    prepare: impl FnOnce(&mut Plan),
) -> Result<Vec<Answer>, Failure> {
    answers_within(origin, steps, flags, (longest, Some(LONG_PATIENCE)), prepare)
}

/// The answers to questions without which the load cannot begin: each may take as long as a request of the
/// load, by `--timeout` and `--connect-timeout` of its flags.
pub fn answers_before(
    origin: &str,
    steps: &[Value],
    flags: PlanPatch,
    of_load: &PlanPatch,
    longest: usize,
) -> Result<Vec<Answer>, Failure> {
    let PlanPatch { timeout, stream_timeout, connect_timeout, .. } = of_load.clone();
    let flags = PlanPatch { timeout, stream_timeout, connect_timeout, ..flags };
    answers_within(origin, steps, flags, (longest, None), |_| {})
}

fn answers_within(
    origin: &str,
    steps: &[Value],
    flags: PlanPatch,
    (longest, patience): (usize, Option<Nanos>),
    prepare: impl FnOnce(&mut Plan),
) -> Result<Vec<Answer>, Failure> {
    let expected = json!({ "status": ["200-599"] });
    let steps: Vec<Value> = steps
        .iter()
        .map(|step| {
            let mut step = step.clone();
            if !is_pause(&step) {
                step["expect"] = expected.clone();
            }
            step
        })
        .collect();
    let most = steps.iter().filter(|step| !is_pause(step)).count() as u64;
    let document = json!({ "targets": { "server": origin }, "scenarios": [{ "steps": steps }] });
    let (log, receive) = Log::new(LogOptions {
        share: 0.0,
        failed: most,
        good_too: true,
        writes: false,
        streams: false,
        longest,
        seed: 0,
    });
    let (record, limit) = carry_out(document, flags, prepare, patience, &log)?;
    // The workers have ended; this handle was the last one that keeps the channel open.
    drop(log);
    let exchanges = receive.into_iter().filter_map(|batch| match batch {
        LogBatch::Failed(exchange) => Some(*exchange),
        LogBatch::Entries(_) | LogBatch::Streams(_) | LogBatch::Writes(_) | LogBatch::End => None,
    });
    let answers: Vec<Answer> = exchanges
        // Those with words were not the last ones of their requests.
        .filter(|exchange| exchange.entry.status > 0 && exchange.reason.is_empty())
        .map(|FailedExchange { entry, response, .. }| Answer {
            status: entry.status,
            head: response.head,
            body: response.body,
            cut: response.cut,
        })
        .collect();
    if record.accounting.ok == most && answers.len() as u64 == most {
        return Ok(answers);
    }
    let why = match record.accounting.timed_out {
        0 => reason(&record),
        _ => format!("no response within {limit:?}"),
    };
    let hint = match record.error_examples.contains_key(ErrorClass::Tls.name()) {
        true => "--cacert FILE names the authority of its certificate, or that certificate; -k accepts any",
        false => "is it still running? its log may say more",
    };
    let problem = Problem::new(format!("no answer from {origin}: {why}"));
    Err(Failure::environment(problem.with_hint(hint)))
}

/// Returns the flags that say how connections are made, and no others.
pub fn transport(flags: &PlanPatch) -> PlanPatch {
    let flags = flags.clone();
    PlanPatch {
        resolve: flags.resolve,
        connect_to: flags.connect_to,
        unix_socket: flags.unix_socket,
        proxy: flags.proxy,
        ipv4: flags.ipv4,
        ipv6: flags.ipv6,
        insecure: flags.insecure,
        cacert: flags.cacert,
        cert: flags.cert,
        key: flags.key,
        tls: flags.tls,
        sni: flags.sni,
        http1: flags.http1,
        http2: flags.http2,
        http2_prior_knowledge: flags.http2_prior_knowledge,
        alpn: flags.alpn,
        ..PlanPatch::default()
    }
}

/// Returns `true` if a step is a pause and no request.
fn is_pause(step: &Value) -> bool {
    step.as_object().is_some_and(|fields| fields.len() == 1 && fields.contains_key("think"))
}
