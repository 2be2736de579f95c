//! Keys that other crates add to plan files.

use plimsoll_core::{ErrorRow, Nanos};
use plimsoll_document::{
    BodyKey, Document, DocumentParts, Field, Place, Problem, Problems, RawValue, RequestStep, Source,
    StepSpec, Text,
};
use plimsoll_plan::{
    BodyContent, BodyContext, BodyPart, Command, Disk, Plan, PlanParts, PlanPatch, PlanSource, body_key,
    body_value,
};
use plimsoll_scenario::Body;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::lines::{LINE, LINES};
use super::reading::{good, read};
use crate::compile::plans::request;

/// A greeting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct GreetingSpec {
    /// Words of the greeting.
    #[serde(skip_serializing_if = "Field::is_absent")]
    words: Field<Text>,
    /// Variable that the answer sets.
    #[serde(skip_serializing_if = "Field::is_absent")]
    sets: Field<Text>,
    /// The answer is recognised.
    #[serde(skip_serializing_if = "Field::is_absent")]
    judged: Field<bool>,
}

static GREETING: BodyKey = body_key::<GreetingSpec>("greeting", "Body that greets.");

static RUDE: ErrorRow = ErrorRow { name: "greeting_rude", is_answer: true, is_of_server: false };

/// Parts with a key of a body, one of a request of another protocol, and a class of errors.
pub(crate) const PARTS: PlanParts =
    PlanParts { bodies: &[&GREETING], steps: &[&LINE], protocols: &[&LINES], errors: &[&RUDE] };

impl BodyPart for GreetingSpec {
    fn compile(
        &self,
        _: &RequestStep,
        place: Option<Place>,
        context: &mut dyn BodyContext,
    ) -> Option<BodyContent> {
        let Some(words) = context.plain(&self.words) else {
            return context.fail_form(place, Problem::new("a greeting needs words"));
        };
        let body = Body::Raw(words.into_bytes().into());
        Some(BodyContent { body, headers: Vec::new(), judge: None, stream: None })
    }

    fn variable(&self) -> Option<&Text> {
        self.sets.get()
    }

    fn deadline(&self, headers: &[(String, String)]) -> Option<Nanos> {
        let (_, seconds) = headers.iter().find(|(name, _)| name == "patience")?;
        seconds.parse().ok().map(Nanos::from_secs)
    }

    fn is_judged(&self) -> bool {
        self.judged.get() == Some(&true)
    }
}

/// The plan of one scenario with these steps, or the messages of its problems with their places.
fn resolve(steps: &str, parts: PlanParts) -> Result<Plan, Vec<String>> {
    resolve_text(plan(steps), parts)
}

/// The plan of a text, or the messages of its problems with their places.
pub(super) fn resolve_text(text: String, parts: PlanParts) -> Result<Plan, Vec<String>> {
    let source = PlanSource::Text(Source { name: "plan.yaml".to_owned(), text: text.clone() });
    let flags = PlanPatch { parts, ..PlanPatch::default() };
    let resolved = Command { plan: Some(source), environment: Vec::new(), flags }.resolve(&Disk);
    resolved.map(|resolved| resolved.plan).map_err(|refused| messages(&text, &refused.problems))
}

fn plan(steps: &str) -> String {
    format!("{{targets: {{a: http://a.test}}, scenarios: [{{steps: [{steps}]}}]}}")
}

fn messages(text: &str, problems: &Problems) -> Vec<String> {
    let shown = |place: Place| &text[place.start as usize..place.end as usize];
    let message = |problem: &Problem| match problem.place {
        Some(place) => format!("{} at `{}`", problem.message, shown(place)),
        None => problem.message.clone(),
    };
    problems.iter().map(message).collect()
}

pub(super) fn problems(steps: &str) -> Vec<String> {
    let text = plan(steps);
    let (document, mut problems) = read(&text);
    document.expect("a document").check(&mut problems);
    messages(&text, &problems)
}

#[test]
fn a_body_of_an_added_key_is_sent() {
    let plan = resolve("{post: /, greeting: {words: hello}}", PARTS).unwrap();
    assert!(request(&plan, 0).ends_with("\r\n\r\nhello"), "{}", request(&plan, 0));
    assert_eq!(plan.steps[0].deadline, None);
    let plan = resolve("{post: /, headers: {patience: 2}, greeting: {words: hello}}", PARTS).unwrap();
    assert_eq!(plan.steps[0].deadline, Some(Nanos::from_secs(2)));
    // The method is that of a request with a body.
    let plan = resolve("{request: /, greeting: {words: hello}}", PARTS).unwrap();
    assert_eq!(plan.steps[0].name, "POST /");
}

#[test]
fn an_added_class_of_errors_is_a_word_of_thresholds() {
    let resolve = |parts: PlanParts, in_plan: &str, by_flag: &str| {
        let text = plan("{get: /}").replacen('{', &format!("{{thresholds: ['{in_plan}'], "), 1);
        let source = PlanSource::Text(Source { name: "plan.yaml".to_owned(), text: text.clone() });
        let thresholds = vec![RawValue::new("--threshold", by_flag)];
        let flags = PlanPatch { parts, thresholds, ..PlanPatch::default() };
        let resolved = Command { plan: Some(source), environment: Vec::new(), flags }.resolve(&Disk);
        resolved.map(|resolved| resolved.plan).map_err(|refused| messages(&text, &refused.problems))
    };
    let plan = resolve(PARTS, "greeting_rude<1%", "greeting_rude<=3").unwrap();
    let thresholds: Vec<String> = plan.thresholds.iter().map(ToString::to_string).collect();
    assert_eq!(thresholds, ["greeting_rude<=3", "greeting_rude<1%"]);
    let said = resolve(PlanParts::NONE, "greeting_rude<1%", "greeting_rude<=3").unwrap_err();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said.iter().all(|message| message.contains("`greeting_rude` is not a figure")), "{said:?}");
    assert!(resolve(PARTS, "greeting_rud<1%", "p99<1s").unwrap_err()[0].contains("`greeting_rud`"));
}

#[test]
fn an_added_key_is_known_only_with_its_parts() {
    let said = resolve("{post: /, greeting: {words: hello}}", PlanParts::NONE).unwrap_err();
    assert_eq!(said, ["unknown key `greeting` at `greeting`"]);
    // Parts end with the reading that they were given for.
    assert!(resolve("{post: /, greeting: {words: hello}}", PARTS).is_ok());
    assert!(resolve("{post: /, greeting: {words: hello}}", PlanParts::NONE).is_err());
}

#[test]
fn problems_of_added_keys_have_their_places() {
    for (step, expected) in [
        ("{post: /, greting: {words: a}}", "unknown key `greting` at `greting`"),
        ("{post: /, greeting: {word: a}}", "unknown key `word` at `word`"),
        ("{post: /, greeting: {words: [a]}}", "`words` has to be a single value, and is a list at `[a]`"),
        ("{post: /, greeting: hello}", "`greeting` has to be a mapping, and is a single value at `hello`"),
        ("{post: /, greeting: }", "`greeting` has no value at ``"),
        ("{post: /, greeting: {}}", "this mapping is empty at `{}`"),
        (
            "{post: /, body: a, greeting: {words: a}}",
            "`body` and `greeting` exclude each other at `{words: a}`",
        ),
        ("{set: {a: 1}, greeting: {words: a}}", "`greeting` cannot be combined with `set` at `{words: a}`"),
        ("{if: a, then: [{post: /, greeting: {wrods: a}}]}", "unknown key `wrods` at `wrods`"),
    ] {
        let said = problems(step);
        assert!(said.iter().any(|said| said == expected), "{step}: {said:?}");
    }
    let hint = |step: &str| {
        let (_, problems) = read(&plan(step));
        problems.iter().find_map(|problem| problem.hint.clone()).expect("a hint")
    };
    assert_eq!(hint("{post: /, greting: {words: a}}"), "did you mean `greeting`?");
    assert_eq!(hint("{post: /, greeting: {wrods: a}}"), "did you mean `words`?");
    assert_eq!(
        resolve("{post: /, greeting: {judged: true}}", PARTS).unwrap_err(),
        ["a greeting needs words at `{judged: true}`"]
    );
}

#[test]
fn an_added_body_may_set_a_variable_and_recognise_its_answer() {
    let unset =
        resolve("{post: /, greeting: {words: a}}, {if: exists seen, then: [{get: /}]}", PARTS).unwrap_err();
    assert!(unset[0].contains("`seen`"), "{unset:?}");
    let set =
        resolve("{post: /, greeting: {words: a, sets: seen}}, {if: exists seen, then: [{get: /}]}", PARTS);
    assert!(set.is_ok(), "{set:?}");
    let poll = |greeting: &str| resolve(&format!("{{post: /, poll: {{every: 1s}}, {greeting}}}"), PARTS);
    assert!(poll("greeting: {words: a}").unwrap_err()[0].starts_with("`poll` has no condition"));
    assert!(poll("greeting: {words: a, judged: true}").is_ok());
}

#[test]
fn added_bodies_are_written_where_bodies_stand() {
    let text = "scenarios:\n  - steps:\n      - post: /\n        headers:\n          A: b\n        greeting:\n          \
                words: \"007\"\n        timeout: 1s\n";
    let document = good(text);
    assert_eq!(document.to_yaml(), text);
    // Equal if they are written alike, at the same place.
    assert_eq!(good(text), document);
    assert_ne!(good(&text.replace("007", "008")), document);
    let mut step = StepSpec::from(RequestStep::new("POST", Text::from("/").into()));
    step.request_mut()
        .body
        .add(&GREETING, body_value(GreetingSpec { words: Text::from("hi").into(), ..Default::default() }));
    assert_eq!(serde_json::to_value(&step).unwrap(), json!({"post": "/", "greeting": {"words": "hi"}}));
}

#[test]
fn the_schema_describes_added_keys_behind_other_bodies() {
    let schema = Document::schema(PARTS.document());
    let of_steps = schema["$defs"]["StepSpec"]["properties"].as_object().unwrap();
    let keys: Vec<&str> = of_steps.keys().map(String::as_str).collect();
    let at = keys.iter().position(|key| *key == "greeting").expect("the key");
    assert_eq!((keys[at - 1], keys[at + 1]), ("multipart", "records"));
    assert_eq!(of_steps["greeting"]["description"], "Body that greets.");
    assert!(Document::schema(DocumentParts::NONE)["$defs"]["GreetingSpec"].is_null());
}
