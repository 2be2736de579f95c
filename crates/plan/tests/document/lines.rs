//! Requests of a protocol that another crate adds: lines, each answered by a line.

use std::sync::Arc;

use plimsoll_core::Random;
use plimsoll_document::{Document, Field, Place, Problem, StepKey, Text};
use plimsoll_plan::{
    BodyContext, InTurnProtocol, Opening, Plan, PlanParts, Protocol, ProtocolRow, ServerUrl, StepPart,
    StepRequest, step_key,
};
use plimsoll_scenario::{
    Body, Context, Fingerprint, Frame, FrameContent, Framed, Framing, RequestSpec, Scope, Template,
    TemplateError,
};
use plimsoll_wire::http1::Truncated;
use plimsoll_wire::in_turn::{Answer, InTurnClient, Owed, Violation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::parts::{PARTS, problems, resolve_text};
use super::reading::good;
use crate::compile::plans::request;

/// A line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LineSpec {
    /// Words of the line; a template.
    #[serde(skip_serializing_if = "Field::is_absent")]
    say: Field<Text>,
    /// Words after those; a template.
    #[serde(skip_serializing_if = "Field::is_absent")]
    then: Field<Text>,
}

pub(super) static LINE: StepKey = step_key::<LineSpec>("line", "Say a line.");

pub(super) static LINES: InTurnProtocol = InTurnProtocol {
    name: "lines",
    rows: &[&PLAIN, &SECURE],
    client: || Box::new(Client),
    opening,
    content_hint: "check the body",
};

static PLAIN: ProtocolRow = row("line", 42, false);
static SECURE: ProtocolRow = row("lines", 43, true);

const fn row(scheme: &'static str, port: u16, is_secure: bool) -> ProtocolRow {
    ProtocolRow {
        name: "lines",
        title: "lines",
        server_command: "",
        scheme,
        port,
        is_secure,
        protocol: Some(Protocol::InTurn(&LINES)),
        noun: "a speaker",
        target_hint: "write line://",
        step_hint: "write `line: {say: words}`",
        command_hint: "write a plan",
        check,
    }
}

fn check(url: &ServerUrl<'_>) -> Result<(), Problem> {
    match url.user_info {
        Some(user) => Err(Problem::new(format!("a speaker knows no {user}"))),
        None => Ok(()),
    }
}

/// A user is named at the beginning of a connection.
fn opening(url: &ServerUrl<'_>) -> Option<Opening> {
    (url.path == "/greeted").then(|| Opening { bytes: b"hello\n"[..].into(), answers: 1 })
}

#[derive(Debug)]
struct Client;

impl InTurnClient for Client {
    fn next(&mut self, _: Owed, _: &mut &[u8], _: &mut Vec<u8>) -> Result<Option<Answer>, Violation> {
        Ok(None)
    }

    fn finish(&mut self) -> Result<(), Truncated> {
        Ok(())
    }
}

impl StepPart for LineSpec {
    fn protocol(&self) -> &'static InTurnProtocol {
        &LINES
    }

    fn title(&self) -> Option<String> {
        Some(format!("SAY {}", self.say.get()?.as_str()))
    }

    fn compile(
        &self,
        path: &str,
        place: Option<Place>,
        context: &mut dyn BodyContext,
    ) -> Option<StepRequest> {
        let Some(say) = self.say.get() else {
            return context.fail_form(place, Problem::new("a line needs words"));
        };
        let (target, _) = context.template(say.as_str(), self.say.place())?;
        let body = match self.then.get() {
            Some(then) => Body::Text(context.template(then.as_str(), self.then.place())?.0.into_bytes()),
            None => Body::None,
        };
        Some(StepRequest {
            method: "SAY".to_owned(),
            shown: Some(target.clone()),
            target,
            target_place: self.say.place(),
            body,
            body_place: self.then.place(),
            framing: Arc::new(Lines(path.to_owned())),
        })
    }
}

/// The protocol, with the path of the target's URL.
#[derive(Debug)]
struct Lines(String);

struct Line {
    text: Template,
    content: FrameContent,
}

impl Framing for Lines {
    fn fingerprint(&self, hash: Fingerprint) -> Fingerprint {
        hash.with_field(b"lines").with_field(self.0.as_bytes())
    }

    fn compile(
        &self,
        spec: &RequestSpec,
        scope: &Scope<'_>,
        content: FrameContent,
    ) -> Result<Framed, TemplateError> {
        let text = Template::parse_in(spec.target.as_bytes(), scope)?;
        Ok(Framed { text: text.clone(), frame: Arc::new(Line { text, content }) })
    }
}

impl Frame for Line {
    fn render(&self, context: &Context<'_>, random: &mut Random, out: &mut Vec<u8>) {
        self.text.render(context, random, out);
        out.push(b' ');
        if let FrameContent::Template(content) = &self.content {
            content.render(context, random, out);
        }
        out.push(b'\n');
    }

    fn kind(&self) -> u16 {
        7
    }
}

/// The plan of one scenario with these steps, or the messages of its problems.
fn resolve(steps: &str, parts: PlanParts) -> Result<Plan, Vec<String>> {
    resolve_at("loud", steps, parts)
}

fn resolve_at(path: &str, steps: &str, parts: PlanParts) -> Result<Plan, Vec<String>> {
    let targets = format!("{{a: http://a.test, l: 'line://l.test/{path}'}}");
    resolve_text(format!("{{targets: {targets}, scenarios: [{{steps: [{steps}]}}]}}"), parts)
}

#[test]
fn a_request_of_an_added_protocol_is_a_frame() {
    let plan = resolve("{target: l, line: {say: hello, then: 'you ${sequence}'}}", PARTS).unwrap();
    assert_eq!(request(&plan, 0), "hello you 7\n");
    assert_eq!(plan.steps[0].name, "SAY hello");
    assert_eq!(plan.steps[0].request.frame_kind(), 7);
    let target = &plan.targets[plan.steps[0].target];
    assert_eq!((target.protocol, target.scheme()), (Protocol::InTurn(&LINES), "line"));
    assert_eq!(target.protocol.title(), "lines");
    assert_eq!(plan.in_turn_protocols().collect::<Vec<_>>(), [&LINES]);
    // The path of the URL is a setting of the protocol, so that another one is another plan.
    let hash = |path: &str| {
        let plan = resolve_at(path, "{target: l, line: {say: a}}", PARTS).unwrap();
        plan.steps[0].request.fingerprint()
    };
    assert_eq!(target.opening, None);
    let plan = resolve_at("greeted", "{target: l, line: {say: a}}, {get: 'http://a.test/'}", PARTS).unwrap();
    let openings = plan.targets.iter().filter_map(|target| target.opening.as_ref());
    assert_eq!(openings.map(|opening| opening.answers).collect::<Vec<_>>(), [1]);
    assert_ne!(hash("loud"), hash("soft"));
    assert_eq!(hash("loud"), hash("loud"));
}

#[test]
fn a_protocol_is_known_only_with_its_parts() {
    let said = resolve("{target: l, line: {say: a}}", PlanParts::NONE).unwrap_err();
    assert!(said.iter().any(|said| said.starts_with("unknown key `line`")), "{said:?}");
    let said = resolve("{get: /}", PlanParts::NONE).unwrap_err();
    assert!(said.iter().any(|said| said.starts_with("unknown scheme `line`")), "{said:?}");
}

#[test]
fn what_a_request_of_another_protocol_is_not_is_told() {
    for (steps, expected) in [
        ("{target: l, line: {}}", "this mapping is empty at `{}`"),
        ("{target: l, line: {then: a}}", "a line needs words at `{then: a}`"),
        ("{target: l, line: {say: '${nobody}'}}", "`${nobody}`"),
        ("{target: l, line: {say: a, then: '${nobody}'}}", "`${nobody}`"),
        ("{target: a, line: {say: a}}", "`a.test` is not a speaker"),
        ("{target: l, get: /}", "`l.test` is a speaker"),
        ("{target: l, line: {say: a}, expect: {headers: {a: b}}}", "`a`: a speaker sends no headers at `a`"),
        ("{target: l, line: {say: a}, extract: {v: {header: a}}}", "`header`: a speaker sends no headers"),
    ] {
        let said = resolve(steps, PARTS).unwrap_err();
        assert!(said.iter().any(|said| said.contains(expected)), "{steps}: {said:?}");
    }
    for (steps, expected) in [
        ("{line: {say: a}, get: /}", "`line` and `get` exclude each other at `/`"),
        ("{get: /, line: {say: a}}", "`get` and `line` exclude each other at `{say: a}`"),
        ("{set: {a: 1}, line: {say: a}}", "`set` and `line` exclude each other at `{say: a}`"),
        ("{line: {say: a}, headers: {a: b}}", "`headers` cannot be combined with `line` at `a`"),
        ("{line: {say: a}, greeting: {words: a}}", "`greeting` cannot be combined with `line`"),
    ] {
        let said = problems(steps);
        assert!(said.iter().any(|said| said.starts_with(expected)), "{steps}: {said:?}");
    }
    let said = resolve("{lime: {say: a}}", PARTS).unwrap_err();
    assert_eq!(said, ["unknown key `lime` at `lime`"]);
}

#[test]
fn added_requests_are_written_and_described_behind_those_of_http() {
    let text = "scenarios:\n  - steps:\n      - name: a\n        line:\n          say: \"007\"\n        target: \
                l\n        timeout: 1s\n";
    assert_eq!(good(text).to_yaml(), text);
    let schema = Document::schema(PARTS.document());
    let of_steps = schema["$defs"]["StepSpec"]["properties"].as_object().unwrap();
    let keys: Vec<&str> = of_steps.keys().map(String::as_str).collect();
    let at = keys.iter().position(|key| *key == "line").expect("the key");
    assert_eq!((keys[at - 1], keys[at + 1]), ("request", "websocket"));
}
