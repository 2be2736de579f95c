//! Bodies of steps that the workloads make, and their problems.

use plimsoll_document::Source;
use plimsoll_plan::{Command, Disk, Plan, PlanPatch, PlanSource};
use plimsoll_workloads::PARTS;

/// A plan of one scenario with this step, or the messages of its problems.
fn resolve(step: &str, flags: PlanPatch) -> Result<Plan, Vec<String>> {
    let text = format!("targets: {{a: http://a.test}}\nscenarios:\n  - steps:\n      - {step}\n");
    let plan = PlanSource::Text(Source { name: "plan.yaml".to_owned(), text });
    let resolved = Command { plan: Some(plan), environment: Vec::new(), flags }.resolve(&Disk);
    resolved.map(|resolved| resolved.plan).map_err(|refused| {
        refused.problems.iter().map(|problem| format!("{}: {:?}", problem.message, problem.hint)).collect()
    })
}

fn with_bodies() -> PlanPatch {
    PlanPatch { parts: PARTS, ..PlanPatch::default() }
}

#[test]
fn bodies_are_made_only_with_their_keys() {
    for (step, key) in [
        ("{post: /, batch: {kind: logs}}", "batch"),
        ("{post: /, canister: {query: read, id: aaaaa-aa}}", "canister"),
    ] {
        assert_eq!(resolve(step, with_bodies()).unwrap().supplies.len(), 1, "{step}");
        let said = resolve(step, PlanPatch::default()).unwrap_err();
        assert!(said.len() == 1 && said[0].starts_with(&format!("unknown key `{key}`")), "{said:?}");
    }
}

#[test]
fn batches_of_lines_go_where_times_are_read_as_they_are_written() {
    let step = |path: &str, unit: &str| {
        format!("{{post: '{path}', batch: {{format: influx-line, time_unit: {unit}}}}}")
    };
    let own = "/api/v1/write/line-protocol";
    for (path, unit, wrong) in [
        (own, "ms", Some("without `precision` they are read in ns")),
        ("/write?db=x&precision=s", "ms", Some("`precision=s` says another unit")),
        ("/write?db=x&precision=ms", "ms", None),
        (own, "ns", None),
    ] {
        let resolved = resolve(&step(path, unit), with_bodies());
        match wrong {
            Some(wrong) => {
                let said = resolved.unwrap_err();
                assert!(
                    said.iter().any(|said| said.contains("`batch.time_unit`: ")),
                    "{path} {unit}: {said:?}"
                );
                assert!(said.iter().any(|said| said.contains(wrong)), "{path} {unit}: {said:?}");
            }
            None => assert_eq!(resolved.unwrap().steps.len(), 1),
        }
    }
}
