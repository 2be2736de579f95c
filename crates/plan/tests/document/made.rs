//! Plans that are made from flags, and not read.

use plimsoll_document::{
    Document, Field, Flags, MadeDocument, RequestStep, ScenarioSpec, Settings, Source, TargetSpec,
};
use plimsoll_plan::{Command, Disk, PlanSource, Refused, Resolved};

const FLAGS: Flags = Flags::new(&[("server", "--url"), ("post", "--path"), ("timeout", "--limit")]);

fn made(url: &str, path: &str, timeout: &str) -> MadeDocument {
    let mut document = Document::default();
    document.targets.push("server", TargetSpec::new(FLAGS.value("server", url)));
    let mut run = Settings::default();
    run.timeout = FLAGS.value("timeout", timeout);
    assert!(run.set("connections", &["3"]) && !run.set("connection", &["4"]));
    document.run = Field::new(run);
    let step = RequestStep::new("POST", FLAGS.value("post", path)).into();
    document.scenarios.push(Field::new(ScenarioSpec::new("only", [step])));
    MadeDocument { name: "the plan of `plimsoll try`".to_owned(), document, flags: FLAGS }
}

fn resolved(plan: PlanSource) -> Result<Resolved, Refused> {
    Command { plan: Some(plan), ..Command::default() }.resolve(&Disk)
}

#[test]
fn a_made_document_is_the_plan_of_its_yaml() {
    let resolved_made = resolved(made("http://127.0.0.1:1", "/a", "3s").into()).unwrap();
    let loaded = resolved_made.layered.patch.document.unwrap();
    assert_eq!(loaded.name(), "the plan of `plimsoll try`");
    let Source { text, .. } = loaded.source().into_owned();
    let expected = "\
run:
  connections: 3
  timeout: 3s
targets:
  server: http://127.0.0.1:1
scenarios:
  - name: only
    steps:
      - post: /a
";
    assert_eq!(text, expected);
    let read = resolved(PlanSource::Text(Source { name: "plan.yaml".to_owned(), text })).unwrap();
    assert_eq!(resolved_made.plan.fingerprint(), read.plan.fingerprint());
    assert_eq!(resolved_made.plan.connections.max, 3);
}

#[test]
fn problems_of_a_made_document_are_those_of_its_flags() {
    let Refused { problems, source } = resolved(made("ftp://a", "/${nope}", "0s").into()).unwrap_err();
    assert_eq!(source, None);
    let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
    let expected = [
        "--url: unknown scheme `ftp`",
        "--path: unknown template slot `${nope}`",
        "--limit: must be above 0",
    ];
    assert_eq!(messages, expected);
    assert!(problems.iter().all(|problem| problem.place.is_none()));
}
