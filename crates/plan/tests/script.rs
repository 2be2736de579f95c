//! `--script`: the resulting request of the URL, and refusals.

use std::io;
use std::path::Path;
use std::sync::Arc;

use plimsoll_core::{Nanos, Random};
use plimsoll_document::{Files, KeyLogFile, Problems, RawValue};
use plimsoll_plan::{Plan, PlanPatch, ScriptHost, Switch};
use plimsoll_scenario::{Context, FieldNeeds, Op};
use plimsoll_script::{Host, LuaScripts};

/// One file of this content.
struct Script(&'static str);

impl Files for Script {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if path == Path::new("dir/s.lua") { Ok(self.0.into()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn key_log(&self, _: &Path) -> io::Result<KeyLogFile> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

#[derive(Debug)]
struct Still;

impl Host for Still {
    fn monotonic(&self) -> Nanos {
        Nanos::ZERO
    }

    fn unix_ns(&self) -> u64 {
        0
    }

    fn print(&self, _: Option<u32>, text: &[u8]) {
        panic!("a script that is only looked at printed {text:?}");
    }

    fn lookup(&self, _: &str, _: &str) -> Result<Vec<String>, String> {
        Err("there is no name service".to_owned())
    }

    fn can_connect(&self, _: &str) -> bool {
        false
    }
}

fn resolve(source: &'static str, change: impl FnOnce(&mut PlanPatch)) -> Result<Plan, Problems> {
    let mut patch =
        PlanPatch { urls: vec![RawValue::new("URL", "http://a.test:81/start")], ..PlanPatch::default() };
    patch.script = Some(RawValue::new("--script", "dir/s.lua"));
    patch.script_host = Some(ScriptHost(Arc::new(LuaScripts(Arc::new(Still)))));
    change(&mut patch);
    Plan::resolve(patch, &Script(source))
}

fn accepted(source: &'static str, change: impl FnOnce(&mut PlanPatch)) -> Plan {
    resolve(source, change).unwrap_or_else(|problems| panic!("{problems}"))
}

/// The bytes of the first step's request, without its User-Agent.
fn rendered(plan: &Plan) -> String {
    let context = Context { index: 7, worker: 0, unix_ns: 0, variables: &[], ..Context::default() };
    let mut bytes = Vec::new();
    plan.steps[0].request.render(&context, &mut Random::new(1, 1), &mut Vec::new(), &mut bytes);
    let text = String::from_utf8(bytes).expect("the request is text");
    text.split_inclusive("\r\n").filter(|line| !line.starts_with("User-Agent")).collect()
}

fn header(patch: &mut PlanPatch, text: &str) {
    patch.headers.push(RawValue::new("--header", text));
}

#[test]
fn a_changed_request_is_the_plans_own() {
    let source =
        "wrk.method = 'POST' wrk.body = 'a=${b}' wrk.headers['X-Lit'] = '${uuid}' wrk.headers.Gone = nil";
    let plan = accepted(source, |patch| {
        header(patch, "X-Seq: ${sequence}");
        header(patch, "Gone: 1");
    });
    let text = rendered(&plan);
    assert!(text.starts_with("POST /start HTTP/1.1\r\n") && text.ends_with("\r\n\r\na=${b}"), "{text}");
    for line in ["Host: a.test:81", "X-Seq: 7", "X-Lit: ${uuid}", "Content-Length: 6"] {
        assert!(text.contains(&format!("\r\n{line}\r\n")), "{line}: {text}");
    }
    assert!(!text.contains("Gone"), "{text}");
    let step = &plan.steps[0];
    assert_eq!((step.make_script, step.check_script), (None, None));
    assert!(plan.scripts.is_some() && plan.wrk.is_some());
}

#[test]
fn a_script_that_changes_the_host_changes_the_header_alone() {
    let plan = accepted("wrk.host = 'b.test' wrk.path = '/other'", |_| {});
    let text = rendered(&plan);
    assert!(text.starts_with("GET /other HTTP/1.1\r\n") && text.contains("Host: b.test:81\r\n"), "{text}");
    assert_eq!(plan.targets[0].authority, "a.test:81");
}

#[test]
fn functions_are_joined_to_the_step() {
    let plan = accepted("function request() return wrk.format() end", |_| {});
    assert_eq!((plan.steps[0].make_script, plan.steps[0].check_script), (Some(0), None));
    let plan = accepted("function response(status, headers) x = headers.y end", |_| {});
    assert_eq!((plan.steps[0].make_script, plan.steps[0].check_script), (None, Some(0)));
    assert_eq!((&plan.steps[0].needs.fields, plan.steps[0].needs.body), (&FieldNeeds::All, false));
    let plan = accepted("function delay() return 5 end", |_| {});
    assert!(matches!(plan.scenarios[0].program.ops(), [Op::ScriptPause(0), Op::Send(0)]));
}

#[test]
fn plans_of_different_scripts_differ() {
    let one = accepted("function done() end", |_| {}).fingerprint();
    let other = accepted("function done() print() end", |_| {}).fingerprint();
    let arguments = |patch: &mut PlanPatch| patch.script_arguments.push("x".to_owned());
    let argument = accepted("function done() end", arguments).fingerprint();
    assert!(one != other && one != argument);
}

#[test]
fn what_cannot_be_done_is_refused() {
    let own = "function request() return wrk.format() end";
    let refused = |source, change: &dyn Fn(&mut PlanPatch)| {
        let problems = resolve(source, change).unwrap_err();
        problems
            .iter()
            .map(|p| format!("{}; {}", p.message, p.hint.as_deref().unwrap_or("-")))
            .collect::<Vec<_>>()
    };
    assert_eq!(refused("\nx = ", &|_| {}), ["dir/s.lua:2: unexpected symbol near '<eof>'; -"]);
    assert_eq!(
        refused("wrk.scheme = 'https'", &|_| {}),
        ["--script: the script sets wrk.scheme; the scheme of the URL turns TLS on"]
    );
    assert_eq!(
        refused(own, &|patch| header(patch, "X: ${uuid}")),
        ["--script: the script makes the requests, so the template in the header `X` has no effect; \
          write `$${` for a literal `${`"]
    );
    assert_eq!(
        refused(own, &|patch| patch.http2 = Switch::on("--http2")),
        [
            "--script: the script writes requests of HTTP/1.1; leave the flags for HTTP/2 out, or the function `request`"
        ]
    );
    assert_eq!(
        refused(own, &|patch| patch.urls.push(RawValue::new("URL", "http://b.test/"))),
        ["--script and more than one URL exclude each other; a script of wrk is for one URL"]
    );
    assert_eq!(
        refused(own, &|patch| patch.crud_create_method = Some(RawValue::new("--crud-create-method", "POST"))),
        ["--script and --crud-create-method exclude each other; -"]
    );
    assert_eq!(
        refused(own, &|patch| patch.script = Some(RawValue::new("--script", "absent.lua"))),
        ["--script: cannot read `absent.lua`: entity not found; -"]
    );
    assert_eq!(refused(own, &|patch| patch.script_host = None), ["--script: scripts cannot be run here; -"]);
    let without = |patch: &mut PlanPatch| patch.script = None;
    let arguments = |patch: &mut PlanPatch| {
        without(patch);
        patch.script_arguments.push("x".to_owned());
    };
    assert_eq!(
        refused(own, &arguments),
        ["the arguments behind `--` without a script; give one with --script FILE"]
    );
    let allowed = |patch: &mut PlanPatch| {
        without(patch);
        patch.script_allow_system = Switch::on("--script-allow-system");
    };
    assert_eq!(
        refused(own, &allowed),
        ["--script-allow-system without a script; give one with --script FILE"]
    );
}
