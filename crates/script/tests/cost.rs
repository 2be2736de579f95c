//! Costs of a call: `cargo test --release -p plimsoll-script --test integration cost -- --ignored
//! --nocapture`.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods, reason = "it measures")]

use std::hint::black_box;
use std::time::Instant;

use plimsoll_core::Shard;
use plimsoll_scenario::{DynamicRequest, ScriptSource as _, ScriptText, Session, UrlRequest};
use plimsoll_script::WrkScript;

use crate::world::{fields, open, received, request, world};
use mlua::{HookTriggers, Lua, VmState};

const CALLS: u32 = 1_000;

/// The fastest of many short rounds, in nanoseconds per call: the machine may be busy with something else.
fn cost(name: &str, mut call: impl FnMut()) {
    let mut best = f64::INFINITY;
    for _ in 0..1_000 {
        let start = Instant::now();
        (0..CALLS).for_each(|_| call());
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(CALLS));
    }
    println!("{best:7.0} ns  {name}");
}

#[test]
#[ignore = "measures; run it on a quiet machine"]
fn costs() {
    let sources = [
        ("make_request()", "function make_request() end"),
        ("make_request, four parameters, returns two", "function make_request(a, b, c, d) return c, d end"),
        (
            "make_request that sets a header",
            "function make_request(a, b, c, d) c['x-n'] = 'y' return c, d end",
        ),
        (
            "make_request that reads the response",
            "function make_request(a, b, c, d) c['x-n'] = a.etag return c end",
        ),
        (
            "make_request with a table of its own",
            "function make_request() return {[':path'] = '/x', a = 'b'} end",
        ),
    ];
    let mut session = Session::new(0);
    session.last_status = 200;
    session.last_fields =
        fields(&[("etag", "1"), ("content-type", "text/plain"), ("date", "now"), ("server", "x")]);
    for (name, source, limit) in sources.iter().flat_map(|(n, s)| [(n, s, 256 << 20), (n, s, 0)]) {
        let (_, mut options) = world();
        options.limits.memory_limit = limit;
        let mut scripts = open(source, options).unwrap();
        let mut made = request();
        cost(&format!("{name}, memory limit {limit}"), || {
            made.clone_from(&request());
            scripts.make_request(0, &session, black_box(&mut made)).unwrap();
        });
    }
    let mut made = request();
    cost("(the request of these, alone)", || made.clone_from(black_box(&request())));
    let mut scripts =
        open("function validate_response(h, b) return h[':status'] == '200' end", world().1).unwrap();
    cost("validate_response, status", || {
        scripts.validate_response(0, &received(200, &session.last_fields, b"")).unwrap();
    });
    for (name, source) in [
        (
            "wrk: counter",
            "n = 0 function request() n = n + 1 wrk.headers['X'] = n return wrk.format(nil, '/' .. n) end",
        ),
        ("wrk: pipeline", "function init() r = wrk.format() end function request() return r end"),
        ("wrk: post", "function request() return wrk.format('POST', '/x', nil, 'abc') end"),
        ("wrk: init only", "function init() wrk.path = '/x' end"),
    ] {
        let given = UrlRequest {
            host: "a".to_owned(),
            scheme: "http".to_owned(),
            method: "GET".to_owned(),
            path: "/".to_owned(),
            ..UrlRequest::default()
        };
        let text = ScriptText::inline(source, None);
        let script = WrkScript::load(text, given, Vec::new(), world().1).unwrap();
        let mut scripts = script.open(Shard::WHOLE, &[]).unwrap();
        let mut made = DynamicRequest::default();
        cost(name, || scripts.make_request(0, &session, black_box(&mut made)).unwrap());
    }
}

/// Why no hook is set before a call takes long: the cost of one, and the gain of the compiler.
#[test]
#[ignore = "measures; run it on a quiet machine"]
fn costs_of_guards() {
    for (name, jit, hook) in
        [("compiled, unguarded", true, false), ("interpreted", false, false), ("guarded", false, true)]
    {
        let lua = Lua::new();
        lua.load(if jit { "jit.on()" } else { "jit.off()" }).exec().unwrap();
        if hook {
            let every = HookTriggers::new().every_nth_instruction(1_000);
            lua.set_global_hook(every, |_, _| Ok(VmState::Continue)).unwrap();
            lua.set_memory_limit(256 << 20).unwrap();
        }
        for (what, source) in [
            ("empty function", "return function(a) end"),
            ("a path of a number", "return function(a) return '/item/' .. a end"),
            ("a loop of a hundred turns", "return function(a) for i = 1, 100 do a = a + i end return a end"),
        ] {
            let function: mlua::Function = lua.load(source).eval().unwrap();
            cost(&format!("{name}: {what}"), || {
                black_box(function.call::<mlua::Value>(7).unwrap());
            });
        }
    }
}
