//! Plan files from memory.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use plimsoll_document::{Files, KeyLogFile, Problem};
use plimsoll_plan::{Command, Plan, PlanPatch, PlanSource};

/// Files by name, in the folder of the plan; everything else does not exist.
struct Memory<'a>(BTreeMap<&'a str, Vec<u8>>);

impl Files for Memory<'_> {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let name = path.to_str().expect("test paths are text");
        self.0.get(name).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn key_log(&self, _: &Path) -> io::Result<KeyLogFile> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// Resolves a plan file in `plans/`, beside other files and in an environment.
pub(crate) fn resolve(
    text: &str,
    files: &[(&str, &str)],
    environment: &[(&str, &str)],
) -> Result<Plan, Vec<Problem>> {
    resolve_with(PlanPatch::default(), text, files, environment)
}

/// Resolves a plan file in `plans/` with these flags, beside other files and in an environment.
pub(crate) fn resolve_with(
    flags: PlanPatch,
    text: &str,
    files: &[(&str, &str)],
    environment: &[(&str, &str)],
) -> Result<Plan, Vec<Problem>> {
    let named = files.iter().map(|(name, content)| (*name, content.as_bytes().to_vec()));
    let memory = Memory(named.chain([("plans/plan.yaml", text.as_bytes().to_vec())]).collect());
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let command = Command {
        plan: Some(PlanSource::File("plans/plan.yaml".to_owned())),
        environment: environment.iter().map(own).collect(),
        flags: PlanPatch { default_seed: 1, ..flags },
    };
    match command.resolve(&memory) {
        Ok(resolved) => Ok(resolved.plan),
        Err(refused) => Err(refused.problems.iter().cloned().collect()),
    }
}

/// A plan that has to be right.
pub(crate) fn plan(text: &str) -> Plan {
    resolve(text, &[], &[]).unwrap_or_else(|problems| panic!("{text}\n{problems:#?}"))
}

/// A plan of one scenario with these steps, against `http://a.test/`.
pub(crate) fn steps(steps: &str) -> String {
    format!("targets: {{a: http://a.test}}\nscenarios:\n  - cookies: true\n    steps:\n{}", indented(steps))
}

fn indented(steps: &str) -> String {
    steps.trim().lines().map(|line| format!("      {}\n", line.trim_start())).collect()
}

/// The messages of a plan's problems.
pub(crate) fn messages(text: &str) -> Vec<String> {
    match resolve(text, &[], &[]) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.into_iter().map(|problem| problem.message).collect(),
    }
}

/// A request of a plan in HTTP/1.1, as text, where every variable is its number in brackets.
pub(crate) fn request(plan: &Plan, step: usize) -> String {
    let variables: Vec<Vec<u8>> =
        (0..plan.variables.len()).map(|number| format!("<{number}>").into_bytes()).collect();
    let context = plimsoll_scenario::Context {
        index: 7,
        variables: &variables,
        authority: b"member:1",
        ..plimsoll_scenario::Context::default()
    };
    let (mut scratch, mut out) = (Vec::new(), Vec::new());
    let mut random = plimsoll_core::Random::new(1, 0);
    let request = &plan.steps[step].request;
    request.render(&context, &mut random, &mut scratch, &mut out);
    String::from_utf8(out).expect("the request is text")
}
