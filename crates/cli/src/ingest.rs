//! `plimsoll ingest`: observability data for a store, as a plan that a few flags come to.

use std::sync::Arc;

use plimsoll_core::{Shard, Turns};
use plimsoll_driver::clock;
use plimsoll_plan::{Given, Plan, PlanPatch, Problem};
use plimsoll_report::Style;
use plimsoll_scenario::Bodies;
use serde_json::json;

use crate::errand::{once, reason};
use crate::ingest_flags::{IngestArgs, problem};
use crate::screen::Look;
use crate::{Exit, Failure, import, run};

/// What the plan is called in messages.
const NAME: &str = "the plan of `plimsoll ingest`";

/// The command.
pub(crate) fn command(args: &IngestArgs, look: Look, style: &Style) -> Result<Exit, Failure> {
    let load = args.to_load().map_err(Failure::usage)?;
    if args.run.plan.has_urls() {
        let problem = Problem::new("`plimsoll ingest` takes no URL and no plan file");
        return Err(Failure::usage(problem.with_hint("name the store with --url")));
    }
    let document = load.document().map_err(|error| Failure::usage(problem(&error)))?;
    let text = document.to_string();
    if args.prints_plan() {
        return import::print_made(NAME, text);
    }
    let _ = args.run.plan.made.set((NAME.to_owned(), text));
    // What is wrong with the plan is said before anybody is asked for anything.
    let resolved = import::resolve(&args.run.plan, true)?;
    let quiet = args.run.output.quiet;
    let say = run::say(quiet);
    let notes = load.notes(resolved.plan.threads, resolved.plan.connections.max);
    notes.iter().for_each(|note| say(&format!("note: {note}")));
    let is_point = load.streams.iter().any(|stream| stream.spec.knows_points_by_time());
    if is_point && args.pregenerated().is_some() {
        say(
            "note: batches that are sent again have the series and times that they had, and a store that knows \
             records by these has them already: make as many as are sent, or leave --pregenerate out",
        );
    }
    reach(load.origin(), transport(&resolved.layered.patch))?;
    let amend = |flags: &mut PlanPatch| {
        if let Some(token) = &args.store.token {
            flags.bearer = Some(Given::new("--token", &**token));
        }
        Ok(())
    };
    let prepare = |plan: &mut Plan| match args.pregenerated() {
        Some(count) => pregenerate(plan, count, quiet),
        None => Ok(()),
    };
    run::command_with(&args.run, amend, prepare, look, style)
}

/// Whether the store answers: else a run would measure how fast nobody does. What is asked for writes
/// nothing, and any answer is good.
fn reach(origin: &str, flags: PlanPatch) -> Result<(), Failure> {
    let record = once(
        json!({
            "targets": { "store": origin },
            "scenarios": [{ "steps": [{ "get": "/", "expect": { "status": ["200-599"] } }] }],
        }),
        flags,
    )?;
    if record.accounting.ok > 0 {
        return Ok(());
    }
    let problem = Problem::new(format!("no answer from the store {origin}: {}", reason(&record)));
    Err(Failure::environment(
        problem.with_hint("name it with --url; without a store at hand, `plimsoll target ingest` is one"),
    ))
}

/// How connections are made, and nothing else of these flags.
fn transport(flags: &PlanPatch) -> PlanPatch {
    let flags = flags.clone();
    PlanPatch {
        resolve: flags.resolve,
        connect_to: flags.connect_to,
        unix_socket: flags.unix_socket,
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

/// Makes batches of each supply of a plan, which are sent instead of new ones.
fn pregenerate(plan: &mut Plan, count: u32, quiet: bool) -> Result<(), Failure> {
    let say = run::say(quiet);
    for number in 0..plan.supplies.len() {
        let Bodies::Fresh(source) = &plan.supplies[number].bodies else { continue };
        let start = clock::monotonic();
        let mut maker = source.open(plan.supply_seed(number));
        // They follow each other in time as they would if they were made for the run.
        let turns = Turns::new(source.span_ns(), Shard::WHOLE);
        let mut out = Vec::new();
        let bodies: Vec<Arc<[u8]>> = (0..count)
            .map(|_| {
                let (number, begin) = turns.take(clock::unix().0);
                maker.make(number, begin, &mut out);
                Arc::from(&out[..])
            })
            .collect();
        let bytes: usize = bodies.iter().map(|body| body.len()).sum();
        say(&format!(
            "made {count} batches in {:.1} s: {:.1} KB on average, {:.1} MB in all; they are sent over and over",
            clock::monotonic().since(start).as_secs_f64(),
            bytes as f64 / f64::from(count) / 1e3,
            bytes as f64 / 1e6,
        ));
        plan.supplies[number].bodies = Bodies::Ready(bodies.into());
    }
    Ok(())
}
