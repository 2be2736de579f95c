//! Collections of Postman: v2.1 and v2.0, with an environment.
//!
//! Each folder of the outermost level becomes a scenario, with its requests as steps; requests beside the
//! folders make one of their own. Where one of them reads a variable that another sets, all are one sequence,
//! as Postman carries them out. Scripts are not carried out: expectations and extractions in their usual
//! forms become `expect` and `extract`, and the rest is noted with its line.

mod auth;
mod effect;
mod request;
mod script;
mod sharing;
mod value;

use std::path::Path;

use plimsoll_document::{Document, Field, Files, Problems, Settings, StepSpec, ThresholdSpec};
use serde_json::Value;

use self::auth::{Auth, Tokens};
use self::effect::Around;
use crate::draft;
use crate::findings::{Findings, quoted};
use crate::flow::{self, Slot, Syntax, Variables, plain};
use crate::names::Titles;
use crate::proxy::Proxies;
use crate::source::{self, Object};
use crate::{MOST_STEPS, Unchecked};

/// Options for reading a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The content of an environment's file; its variables win over those of the collection.
    pub environment: Option<Vec<u8>>,
}

const HINT: &str = "export the collection from Postman in the format v2.1";

/// Advice where the server of a request is not known.
const SERVER_HINT: &str = "give the file of the environment that has the variable: --environment FILE";

/// Most bytes of scripts that are read: the script of a folder counts for each of its requests.
const MOST_SCRIPT_BYTES: usize = 64 << 20;

/// Postman's way of writing slots.
const SYNTAX: Syntax = Syntax { open: "{{", close: "}}", slot };

/// Reads a collection. Files that it names are looked for in `folder`, which the plan file has to be in as
/// well.
///
/// # Errors
/// All problems with it.
pub fn import(
    text: &[u8],
    options: &Options,
    folder: &Path,
    files: &dyn Files,
) -> Result<Unchecked, Problems> {
    let value = source::json(text)?;
    let mut importer = Importer {
        findings: Findings::default(),
        variables: Variables::new(SYNTAX),
        document: Document::default(),
        settings: Settings::default(),
        thresholds: Vec::new(),
        titles: Titles::default(),
        steps: 0,
        script_bytes: 0,
        redirects: Vec::new(),
        proxies: Proxies::default(),
        tokens: Tokens::default(),
        surroundings: None,
        folder,
        files,
    };
    if let Some(environment) = &options.environment {
        importer.environment(environment);
    }
    // Postman's interface gives a collection in an envelope.
    let inner = value.get("collection").filter(|inner| inner.get("item").is_some()).unwrap_or(&value);
    let Some(mut top) = Object::new(inner, "", &mut importer.findings) else {
        return Err(importer.findings.into_problems());
    };
    importer.collection(&mut top, inner);
    importer.finish()
}

/// Keys that begin with `_` are Postman's own.
fn is_own(key: &str) -> bool {
    key.starts_with('_')
}

/// The meaning of the text between `{{` and `}}`.
fn slot(inside: &str) -> Slot {
    let Some(name) = inside.strip_prefix('$') else { return Slot::Variable(inside.to_owned()) };
    let template = match name {
        "guid" | "randomUUID" => "uuid",
        "timestamp" => "timestamp_s",
        "randomInt" => "random_int(0, 1000)",
        "randomAlphaNumeric" => "random_string(1)",
        "randomBoolean" => "pick(true, false)",
        "isoTimestamp" => {
            return Slot::Unknown("plans have no dates as texts: it is sent as it is written".to_owned());
        }
        "randomPrice" => "random_float(0, 1000, 2)",
        name if name.starts_with("random") => {
            let becomes = "plans make up no such value: eight random characters stand for it";
            return Slot::Noted("random_string(8)".to_owned(), becomes.to_owned());
        }
        _ => return Slot::Unknown("there is no such function: it is sent as it is written".to_owned()),
    };
    Slot::Template(template.to_owned())
}

/// A script, and its place.
type Script = (String, String);

/// Credentials and scripts that requests have from the folders around them.
#[derive(Clone, Debug, Default)]
struct Inherited {
    auth: Auth,
    /// Scripts before and after requests, each with its place.
    before: Vec<Script>,
    after: Vec<Script>,
    /// The folders' names.
    at: String,
}

/// A collection on its way to a document.
struct Importer<'a> {
    findings: Findings,
    variables: Variables,
    document: Document,
    settings: Settings,
    thresholds: Vec<ThresholdSpec>,
    /// Names of scenarios.
    titles: Titles,
    /// Requests so far, and bytes of scripts that were read for them: those of a folder are read for each.
    steps: usize,
    script_bytes: usize,
    /// For each request: where it is, and `true` if redirects are followed.
    redirects: Vec<(String, bool)>,
    proxies: Proxies,
    tokens: Tokens,
    /// Variables of the environment, as they are written.
    surroundings: Option<Value>,
    folder: &'a Path,
    files: &'a dyn Files,
}

impl Importer<'_> {
    fn environment(&mut self, text: &[u8]) {
        let value = match source::json(text) {
            Ok(value) => value,
            Err(problems) => {
                for problem in &problems {
                    self.findings.problem("--environment", &problem.message);
                }
                return;
            }
        };
        let Some(mut top) = Object::new(&value, "--environment", &mut self.findings) else { return };
        if !top.has("values") {
            self.findings.hinted(
                "--environment",
                "`values` is missing",
                "export the environment from Postman",
            );
        }
        self.define(&mut top, "values");
        top.skip(&["id", "name", "timestamp", "color"]);
        top.rest(&mut self.findings, is_own);
        self.surroundings = value.get("values").cloned();
    }

    /// Reads a list of variables.
    fn define(&mut self, object: &mut Object<'_>, key: &'static str) {
        for mut variable in object.objects(key, &mut self.findings) {
            variable.skip(&["type", "description", "name", "id", "system"]);
            let name = variable.text("key", &mut self.findings).map(str::to_owned);
            let name = name.or_else(|| variable.text("id", &mut self.findings).map(str::to_owned));
            let enabled = variable.flag("enabled", &mut self.findings) != Some(false)
                && variable.flag("disabled", &mut self.findings) != Some(true);
            let value = variable.value("value").map(plain).unwrap_or_default();
            variable.rest(&mut self.findings, is_own);
            let Some(name) = name.filter(|name| !name.is_empty() && enabled) else { continue };
            // A script sets a variable without a value.
            if !value.is_empty() {
                self.variables.define(&name, &value, &variable.at);
            }
        }
    }

    fn collection(&mut self, top: &mut Object<'_>, whole: &Value) {
        let info = top.object("info", &mut self.findings);
        let mut name = String::new();
        if let Some(mut info) = info {
            name = info.text("name", &mut self.findings).unwrap_or_default().to_owned();
            if let Some(schema) = info.text("schema", &mut self.findings)
                && !schema.contains("/v2.")
            {
                self.findings.hinted(&info.place("schema"), format!("`{}` is not v2", quoted(schema)), HINT);
            }
        }
        if top.has("requests") || !top.has("item") {
            self.findings.hinted("", "`item` is missing: it is not a collection of v2", HINT);
            return;
        }
        if !name.is_empty() {
            self.document.name = draft::text(draft::escaped(&name));
        }
        self.define(top, "variable");
        self.define(top, "variables");
        let mut around = Inherited::default();
        self.enter(top, &mut around);
        let items = top.objects("item", &mut self.findings);
        top.skip(&["id", "uid", "protocolProfileBehavior", "description"]);
        top.rest(&mut self.findings, is_own);
        let environment = std::mem::take(&mut self.surroundings);
        let is_split = items.iter().any(|item| item.has("item")) && items.len() > 1;
        let is_shared = sharing::is_one_sequence(whole, environment.as_ref());
        if is_shared || is_split && sharing::has_cookies(whole) {
            self.scenario(if name.is_empty() { "requests" } else { &name }, items, &around);
            self.report_empty();
            return;
        }
        // The requests beside the folders are one part, in the place of the first of them.
        let mut parts: Vec<Vec<Object<'_>>> = Vec::new();
        let mut beside: Option<usize> = None;
        for item in items {
            match beside {
                Some(at) if !item.has("item") => parts[at].push(item),
                _ => {
                    beside = beside.or((!item.has("item")).then_some(parts.len()));
                    parts.push(vec![item]);
                }
            }
        }
        if parts.len() > 1 {
            let becomes = "each folder is a scenario of its own users: a session that a cookie of another \
                           folder begins is not known there";
            self.findings.note("/item", "", becomes);
        }
        for (number, mut part) in parts.into_iter().enumerate() {
            match &mut part[..] {
                [folder] if beside != Some(number) => {
                    let (name, around, items) = self.folder(folder, &around);
                    self.scenario(&name, items, &around);
                }
                _ => self.scenario(if name.is_empty() { "requests" } else { &name }, part, &around),
            }
        }
        self.report_empty();
    }

    fn report_empty(&mut self) {
        if self.steps == 0 && !self.findings.has_problems() {
            self.findings.hinted("/item", "there is no request", HINT);
        }
    }

    /// Takes over the settings of a folder, or of the collection, for all of its requests.
    fn enter(&mut self, object: &mut Object<'_>, around: &mut Inherited) {
        if let Some(auth) = self.auth(object, &around.at) {
            around.auth = auth;
        }
        let (before, after) = self.scripts(object, &around.at);
        around.before.extend(before);
        around.after.extend(after);
    }

    /// The name of a folder, the settings that its requests inherit, and its items.
    fn folder<'v>(
        &mut self,
        folder: &mut Object<'v>,
        around: &Inherited,
    ) -> (String, Inherited, Vec<Object<'v>>) {
        let name = folder.text("name", &mut self.findings).unwrap_or("folder").to_owned();
        let mut inner = around.clone();
        inner.at = named(&around.at, &name);
        folder.at.clone_from(&inner.at);
        self.define(folder, "variable");
        self.enter(folder, &mut inner);
        let items = folder.objects("item", &mut self.findings);
        folder.skip(&["id", "uid", "description", "protocolProfileBehavior"]);
        folder.rest(&mut self.findings, is_own);
        (name, inner, items)
    }

    fn scenario(&mut self, name: &str, items: Vec<Object<'_>>, around: &Inherited) {
        let name = self.titles.take(&flow::title(name, "scenario"));
        let mut steps = Vec::new();
        let mut names = Titles::default();
        self.items(items, around, &name, &mut names, &mut steps);
        if !flow::has_request(&steps) {
            if !self.findings.has_problems() {
                self.findings.note(around.at.as_str(), "", "there is no request in it: it is left out");
            }
            return;
        }
        let mut scenario = draft::scenario(&name, steps);
        scenario.cookies = Field::new(true);
        self.document.scenarios.push(Field::new(scenario));
    }

    fn items(
        &mut self,
        items: Vec<Object<'_>>,
        around: &Inherited,
        scenario: &str,
        names: &mut Titles,
        steps: &mut Vec<StepSpec>,
    ) {
        for mut item in items {
            if item.has("item") {
                let (_, inner, items) = self.folder(&mut item, around);
                self.items(items, &inner, scenario, names, steps);
            } else {
                self.item(&mut item, around, scenario, names, steps);
            }
        }
    }

    /// One request, with the effects of its scripts.
    fn item(
        &mut self,
        item: &mut Object<'_>,
        around: &Inherited,
        scenario: &str,
        names: &mut Titles,
        steps: &mut Vec<StepSpec>,
    ) {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            if self.steps == MOST_STEPS + 1 {
                self.findings.problem("", format!("there are more than {MOST_STEPS} requests"));
            }
            return;
        }
        let mut name = item.text("name", &mut self.findings).unwrap_or("request").to_owned();
        if name.trim().is_empty() {
            "request".clone_into(&mut name);
        }
        let at = named(&around.at, &name);
        item.at.clone_from(&at);
        // Steps with equal names get numbers here, and not later by the plan.
        name = names.take(&name);
        let (before, after) = self.scripts(item, &at);
        item.skip(&["id", "uid", "description", "response", "variable"]);
        let follows = self.behaviour(item);
        let Some(request) = item.value("request") else {
            self.findings.problem(&at, "`request` is missing");
            return;
        };
        item.rest(&mut self.findings, is_own);
        let Some(mut step) = self.request(request, &at, &around.auth) else { return };
        let scripts = around.before.iter().chain(&before).chain(&around.after).chain(&after);
        self.script_bytes += scripts.map(|(source, _)| source.len()).sum::<usize>();
        if self.script_bytes > MOST_SCRIPT_BYTES {
            if !self.findings.has_problems() {
                self.findings.problem(&at, "the scripts of folders and requests are too long, all together");
            }
            return;
        }
        self.redirects.push((at, follows));
        step.name = effect::step_name(&name);
        let reported = draft::escaped(&name);
        let mut effects = Around {
            variables: &mut self.variables,
            findings: &mut self.findings,
            thresholds: &mut self.thresholds,
            scenario,
            step: &reported,
        };
        for (source, at) in around.before.iter().chain(&before) {
            steps.extend(effect::before(source, at, &mut effects));
        }
        let mut later = Vec::new();
        for (source, at) in around.after.iter().chain(&after) {
            later.extend(effect::after(source, at, &mut step, &mut effects));
        }
        steps.push(step);
        steps.extend(later);
    }

    /// Reads `protocolProfileBehavior`. Returns `true` if redirects are followed.
    fn behaviour(&mut self, item: &mut Object<'_>) -> bool {
        let Some(mut behaviour) = item.object("protocolProfileBehavior", &mut self.findings) else {
            return true;
        };
        let follows = behaviour.flag("followRedirects", &mut self.findings) != Some(false);
        behaviour.skip(&["disableBodyPruning"]);
        if behaviour.flag("strictSSL", &mut self.findings) == Some(false) {
            self.settings.insecure = Field::new(true);
        }
        for (key, value) in behaviour.members() {
            if !["followRedirects", "disableBodyPruning", "strictSSL"].contains(&key.as_str()) {
                let becomes = "the setting cannot be written to a plan: it is left out";
                self.findings.note(behaviour.place(key), &source::shown(value), becomes);
            }
        }
        follows
    }

    /// The scripts of an item, before and after its requests, each with its place.
    fn scripts(&mut self, object: &mut Object<'_>, at: &str) -> (Vec<Script>, Vec<Script>) {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for mut event in object.objects("event", &mut self.findings) {
            event.skip(&["id"]);
            let listen = event.text("listen", &mut self.findings).unwrap_or_default().to_owned();
            let disabled = event.flag("disabled", &mut self.findings) == Some(true);
            let Some(mut script) = event.object("script", &mut self.findings) else { continue };
            script.skip(&["type", "id", "name", "packages", "requests"]);
            let exec = script.value("exec");
            let source = source_of(exec);
            if script.value("src").is_some() {
                self.findings.note(
                    script.place("src"),
                    "",
                    "a script in another file is not read: it is left out",
                );
            }
            if disabled || source.trim().is_empty() {
                continue;
            }
            let place = |what: &str| if at.is_empty() { what.to_owned() } else { format!("{at}: {what}") };
            match listen.as_str() {
                "prerequest" => before.push((source, place("pre-request script"))),
                "test" => after.push((source, place("test script"))),
                other => {
                    let becomes = "scripts for this event are left out";
                    self.findings.note(event.place("listen"), other, becomes);
                }
            }
        }
        (before, after)
    }

    fn finish(mut self) -> Result<Unchecked, Problems> {
        flow::follow(
            &self.redirects,
            ("10", "followRedirects: false"),
            &mut self.settings,
            &mut self.findings,
        );
        self.proxies.settle("proxy", &mut self.settings, &mut self.findings);
        self.document.thresholds = self.thresholds.into_iter().map(Field::new).collect();
        flow::settle(&mut self.document, self.variables, &mut self.findings);
        let https = self
            .document
            .targets
            .0
            .iter()
            .any(|(_, _, target)| target.url.get().is_some_and(|url| url.as_str().starts_with("https")));
        if !self.settings.insecure.is_absent() && !https && !self.document.targets.is_empty() {
            self.settings.insecure = Field::Absent;
        }
        self.document.run = flow::run(self.settings);
        self.findings.finish_whole(self.document)
    }
}

/// The text of a script: one, or a list of lines.
fn source_of(exec: Option<&Value>) -> String {
    match exec {
        Some(Value::Array(lines)) => {
            lines.iter().map(|line| line.as_str().unwrap_or_default()).collect::<Vec<_>>().join("\n")
        }
        Some(Value::String(source)) => source.clone(),
        _ => String::new(),
    }
}

/// `name` in the folder `at`.
fn named(at: &str, name: &str) -> String {
    let name = quoted(name);
    if at.is_empty() { name } else { format!("{at} > {name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dynamic_variables_have_functions() {
        for (inside, slot_) in [
            ("a b", Slot::Variable("a b".to_owned())),
            ("$guid", Slot::Template("uuid".to_owned())),
            ("$timestamp", Slot::Template("timestamp_s".to_owned())),
            ("$randomInt", Slot::Template("random_int(0, 1000)".to_owned())),
        ] {
            assert_eq!(slot(inside), slot_, "{inside}");
        }
        assert!(matches!(slot("$randomEmail"), Slot::Noted(..)));
        assert!(matches!(slot("$isoTimestamp"), Slot::Unknown(_)));
        assert!(matches!(slot("$nothing"), Slot::Unknown(_)));
    }
}
