//! `plimsoll ingest demo`: writes a story to a store, checks that the store has all of it, and asks it what
//! happened.

use std::sync::Arc;

use plimsoll_core::{Nanos, figure};
use plimsoll_document::{Problem, Problems};
use plimsoll_metrics::FailedExchange;
use plimsoll_plan::PlanPatch;
use plimsoll_report::{Style, rfc3339};
use plimsoll_scenario::{Bodies, SuppliedBody};
use plimsoll_synth::Kind;
use plimsoll_synth::campaign::{span, story};
use plimsoll_system::clock;
use plimsoll_workloads::ingest::Store as Dialect;
use plimsoll_workloads::ingest::demo::{Demo, Prefix, Question, ask};
use serde_json::{Value, json};

use crate::args::workload::ingest::problem;
use crate::args::workload::ingest_demo::{DemoOutputFormat, IngestDemoArgs, Scenario};
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::{messages, stdout};
use crate::workload::auxiliary_request::{Answer, answers, answers_with};
use crate::workload::sql_answer::{SqlAnswer, instant, lay_out, words};
use crate::workload::store::reach;

/// Default time from the start of a campaign to now: the whole story is then in the past.
const AGE_MS: u64 = 3_600_000;
const MINUTE_MS: u64 = 60_000;
/// Number of times that a store is asked again while it does not show everything, a second apart: after it
/// a flush was requested, and if it flushes on its own schedule.
const LOOKS: (u32, u32) = (2, 15);

pub(crate) fn command(args: &IngestDemoArgs, style: &Style) -> Result<Exit, Failure> {
    let Scenario::MarketingCampaign = args.story.scenario;
    let mut problems = Problems::default();
    let prefix = Prefix::new(&args.store.database).map_err(|error| problem(&error));
    let prefix = prefix.map_err(|problem| problems.push(problem));
    let given = args.story.campaign_ms().map_err(|problem| problems.push(problem));
    let origin = args.store.origin().map_err(|problem| problems.push(problem));
    let (Ok(prefix), Ok(given), Ok(origin)) = (prefix, given, origin) else {
        return Err(Failure::usage(problems));
    };
    let store = Store { origin, flags: args.to_patch() };
    let campaign_ms = match given {
        Some(campaign_ms) => campaign_ms,
        None if args.story.queries_only => store.latest_campaign(&prefix)?,
        None => now_ms().saturating_sub(AGE_MS) / MINUTE_MS * MINUTE_MS,
    };
    let demo = Demo::new(prefix, campaign_ms).map_err(|error| Failure::usage(problem(&error)))?;
    if args.story.print_queries {
        return print_queries(&demo);
    }
    let say = messages::say(args.output.quiet);
    let sent = match args.story.queries_only {
        true => None,
        false => {
            if span(campaign_ms).end > now_ms() {
                say("note: the story ends an hour after the campaign began, which is in the future");
            }
            Some(tell(&store, &demo, args.story.seed, &*say)?)
        }
    };
    let missing = sent.as_deref().map_or(Ok(()), |sent| every_record_is_there(&store, sent));
    let answered = match &missing {
        Ok(()) => inquire(&store, &demo)?,
        // Without all of the data, the answers would not be those of the demo.
        Err(_) => Vec::new(),
    };
    let told = DemoReport { args, store: &store, demo: &demo, sent, answered };
    match args.output.output {
        DemoOutputFormat::Text => stdout::to_stdout(|out| out.write_all(told.text(style).as_bytes()))?,
        DemoOutputFormat::Json => stdout::to_stdout(|out| {
            serde_json::to_writer_pretty(&mut *out, &told.json())?;
            out.write_all(b"\n")
        })?,
    }
    missing.map(|()| Exit::Success)
}

fn now_ms() -> u64 {
    clock::unix().0 / 1_000_000
}

fn print_queries(demo: &Demo) -> Result<Exit, Failure> {
    let questions = demo.questions().map(|Question { title, sql, with_interval, .. }| {
        format!("-- {title}\n-- in Arc alone with an interval: {with_interval}\n{sql};\n")
    });
    stdout::to_stdout(|out| out.write_all(questions.join("\n").as_bytes()))?;
    Ok(Exit::Success)
}

/// The store that receives the story.
struct Store<'a> {
    origin: &'a str,
    /// Flags for reaching the store.
    flags: PlanPatch,
}

impl Store<'_> {
    /// Sends requests in turn, and returns the store's answers.
    fn answers(&self, steps: &[Value]) -> Result<Vec<Answer>, Failure> {
        answers(self.origin, steps, self.flags.clone())
    }

    /// Runs queries, and returns their results.
    fn query(&self, queries: &[(String, String)]) -> Result<Vec<SqlAnswer>, Failure> {
        let steps: Vec<Value> = queries.iter().map(|(_, sql)| ask(sql)).collect();
        let answers = self.answers(&steps)?;
        queries.iter().zip(&answers).map(|((what, _), answer)| self.found(what, answer)).collect()
    }

    fn found(&self, what: &str, answer: &Answer) -> Result<SqlAnswer, Failure> {
        SqlAnswer::of(answer).map_err(|said| self.refused(what, answer.status, &said))
    }

    fn refused(&self, what: &str, status: u16, said: &str) -> Failure {
        let problem = Problem::new(format!("the store {} answered {status} to {what}: {said}", self.origin));
        Failure::environment(problem.with_hint(match status {
            401 => "name a token that the store knows with --token",
            403 => "the token (--token) has to be one that may read and write",
            404 | 405 => "the demo needs Arc's API: Arc, or `plimsoll target ingest`",
            _ => "these are the store's own words: its log may say more",
        }))
    }

    /// When the latest campaign of the databases began.
    fn latest_campaign(&self, prefix: &Prefix) -> Result<u64, Failure> {
        reach(self.origin, self.flags.clone())?;
        let found = self.query(&[("the query of the campaigns".to_owned(), prefix.latest_campaign())])?;
        found[0].number().ok_or_else(|| {
            let database = prefix.database(Kind::Events);
            let problem = Problem::new(format!("the store {} has no campaign in {database}", self.origin));
            Failure::environment(
                problem.with_hint("leave out --queries-only to send the story first, or name its --database"),
            )
        })
    }

    /// Counts the records of each kind that the store shows for the time of the story, after the step
    /// `first`. Also returns why the store did not flush, if it was asked to and refused.
    fn counts(&self, demo: &Demo, first: Value) -> Result<([u64; 4], Option<String>), Failure> {
        let flushes = first.get("think").is_none();
        let queries = Demo::KINDS.map(|kind| ask(&demo.count(kind)));
        let steps: Vec<Value> = std::iter::once(first).chain(queries).collect();
        let mut answers = self.answers(&steps)?;
        let flush = flushes.then(|| answers.remove(0)).filter(|flush| flush.status >= 300);
        let mut counts = [0; 4];
        for ((kind, count), answer) in Demo::KINDS.into_iter().zip(&mut counts).zip(&answers) {
            let found = self.found(&format!("the count of the {}", records(kind)), answer)?;
            // A count without a number means that the store does not know the table.
            *count = found.number().unwrap_or(0);
        }
        Ok((counts, flush.map(|flush| words(&flush))))
    }
}

/// Returns the word for records of a kind.
fn records(kind: Kind) -> &'static str {
    match kind {
        Kind::Traces => kind.records(),
        Kind::Metrics | Kind::Logs | Kind::Events => kind.name(),
    }
}

/// Records of a kind.
struct Sent {
    kind: Kind,
    database: String,
    records: u64,
    /// Number of records with the same times that the store has.
    found: u64,
}

/// Writes the story, and counts its records in the store.
fn tell(store: &Store<'_>, demo: &Demo, seed: u64, say: &dyn Fn(&str)) -> Result<Vec<Sent>, Failure> {
    let flush = || Dialect::Arc.flush().expect("Arc has a flush");
    reach(store.origin, store.flags.clone())?;
    let (before, _) = store.counts(demo, flush())?;
    if before != [0; 4] {
        return Err(there_already(store, demo, before));
    }
    say(&format!(
        "note: each kind has a database of its own: {}; metrics are every three seconds (1,800, where Arc's \
         script has 180); requests of api-gateway take 30, 165 and 38 ms in the mean before, during and \
         after the campaign, as those of the script do (its guide says 45 ms and 2.4 s)",
        Demo::KINDS.map(|kind| demo.database(kind)).join(", ")
    ));
    let mut batches = story(demo.campaign_ms(), seed);
    batches.sort_by_key(|batch| Demo::KINDS.iter().position(|kind| *kind == batch.kind));
    let steps: Vec<Value> = batches.iter().map(|batch| demo.write(batch)).collect();
    let answers = answers_with(store.origin, &steps, store.flags.clone(), FailedExchange::LONGEST, |plan| {
        for (supply, batch) in plan.supplies.iter_mut().zip(&batches) {
            supply.bodies = Bodies::Ready([SuppliedBody::plain(Arc::from(&batch.body[..]))].into());
        }
    })?;
    for (batch, answer) in batches.iter().zip(&answers) {
        if !(200..300).contains(&answer.status) {
            return Err(store.refused(
                &format!("the {}", records(batch.kind)),
                answer.status,
                &words(answer),
            ));
        }
    }
    let expected = batches.each_ref().map(|batch| batch.records);
    let (mut found, flush_refused) = store.counts(demo, flush())?;
    let (mut looks, patient) = LOOKS;
    if let Some(said) = flush_refused {
        say(&format!(
            "the store does not flush for this token ({said}): waiting until its records are visible"
        ));
        looks = patient;
    }
    while looks > 0 && found.iter().zip(&expected).any(|(found, expected)| found < expected) {
        (found, _) = store.counts(demo, json!({ "think": "1s" }))?;
        looks -= 1;
    }
    let sent = batches.iter().zip(found).map(|(batch, found)| Sent {
        kind: batch.kind,
        database: demo.database(batch.kind),
        records: batch.records,
        found,
    });
    Ok(sent.collect())
}

fn there_already(store: &Store<'_>, demo: &Demo, counts: [u64; 4]) -> Failure {
    let there = Demo::KINDS.into_iter().zip(counts).filter(|(_, count)| *count > 0);
    let there = there.map(|(kind, count)| {
        format!("{} {} in {}", figure::count(count), records(kind), demo.database(kind))
    });
    let there = there.collect::<Vec<_>>().join(", ");
    let problem = Problem::new(format!(
        "the store {} has records of the time of the story already, so nothing was sent: {there}",
        store.origin
    ));
    Failure::inconsistent(problem.with_hint(
        "choose other databases with --database PREFIX, or another --campaign-time; --queries-only asks about the \
         story that is there",
    ))
}

/// Checks that the store has each record exactly once.
fn every_record_is_there(store: &Store<'_>, sent: &[Sent]) -> Result<(), Failure> {
    let wrong: Vec<&Sent> = sent.iter().filter(|sent| sent.found != sent.records).collect();
    if wrong.is_empty() {
        return Ok(());
    }
    let are_missing = wrong.iter().any(|sent| sent.found < sent.records);
    let wrong = wrong.iter().map(|sent| {
        let [found, records_sent] = [sent.found, sent.records].map(figure::count);
        format!("{found} of {records_sent} {} in {}", records(sent.kind), sent.database)
    });
    let wrong = wrong.collect::<Vec<_>>().join(", ");
    let message = format!("the store {} acknowledged every record, and has {wrong}", store.origin);
    Err(Failure::inconsistent(Problem::new(message).with_hint(match are_missing {
        true => "it has lost some, or does not show them yet: its log may say more",
        false => "another client writes to these databases (--database names others), or it has some twice",
    })))
}

/// A question, and the answer of the store.
struct AnsweredQuestion {
    question: Question,
    answer: SqlAnswer,
}

fn inquire(store: &Store<'_>, demo: &Demo) -> Result<Vec<AnsweredQuestion>, Failure> {
    let questions = demo.questions();
    let queries = questions.clone().map(|Question { name, sql, .. }| (format!("the query `{name}`"), sql));
    let answers = store.query(&queries)?;
    Ok(questions
        .into_iter()
        .zip(answers)
        .map(|(question, answer)| AnsweredQuestion { question, answer })
        .collect())
}

/// The report at the end.
struct DemoReport<'a> {
    args: &'a IngestDemoArgs,
    store: &'a Store<'a>,
    demo: &'a Demo,
    /// `None` if nothing was to be sent.
    sent: Option<Vec<Sent>>,
    answered: Vec<AnsweredQuestion>,
}

impl DemoReport<'_> {
    fn campaign_time(&self) -> String {
        rfc3339(Nanos::from_millis(self.demo.campaign_ms()))
    }

    fn text(&self, style: &Style) -> String {
        let origin = self.store.origin;
        let time = self.campaign_time();
        let time = instant(&time).unwrap_or(time);
        let mut text = format!("marketing campaign of {time} on {origin}");
        if let Some(sent) = &self.sent {
            text.push_str(&format!(", seed {}\n\n", self.args.story.seed));
            let rows: Vec<Vec<String>> = sent
                .iter()
                .map(|sent| {
                    let [records_sent, found] = [sent.records, sent.found].map(figure::count);
                    let (what, measurement) = (records(sent.kind).to_owned(), sent.kind.measurement());
                    vec![what, records_sent, found, format!("{}.{measurement}", sent.database)]
                })
                .collect();
            let head = ["", "sent", "found", "in"];
            text.push_str(&lay_out(&head, &rows, &[false, true, true, false], style));
        } else {
            text.push('\n');
        }
        for AnsweredQuestion { question, answer } in &self.answered {
            let (bold, reset) = if style.color { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
            text.push_str(&format!("\n{bold}{}{reset}\n{}", question.title, answer.table(style)));
        }
        if !self.answered.is_empty() {
            let (prefix, at) = (&self.args.store.database, self.demo.campaign_ms());
            text.push_str(&format!(
                "\nin SQL: plimsoll ingest demo --print-queries --database {prefix} --campaign-time {at}\n"
            ));
        }
        text
    }

    fn json(&self) -> Value {
        let sent = self.sent.iter().flatten().map(|sent| {
            json!({
                "kind": sent.kind.name(), "database": sent.database, "measurement": sent.kind.measurement(),
                "sent": sent.records, "found": sent.found,
            })
        });
        let questions = self.answered.iter().map(|AnsweredQuestion { question, answer }| {
            json!({
                "name": question.name, "title": question.title, "sql": question.sql,
                "columns": answer.columns, "rows": answer.rows,
            })
        });
        json!({
            "schema_version": 1,
            "scenario": "marketing-campaign",
            "store": self.store.origin,
            "campaign_time": self.campaign_time(),
            "campaign_ms": self.demo.campaign_ms(),
            "seed": self.sent.is_some().then_some(self.args.story.seed),
            "records": sent.collect::<Vec<_>>(),
            "questions": questions.collect::<Vec<_>>(),
        })
    }
}
