//! wrk's scripts: our own equivalents of those that ship with it, and, where wrk is installed, those
//! themselves.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_core::{Nanos, Shard};
use plimsoll_scenario::{
    DynamicRequest, FieldNeeds, ScriptSource as _, ScriptText, Scripts, Session, UrlRequest, UrlScript as _,
};
use plimsoll_script::{ScriptOptions, WrkErrors, WrkMain, WrkScript, WrkStats, WrkSummary};

use crate::world::{World, fields, received, shown, world};

fn given() -> UrlRequest {
    UrlRequest {
        scheme: "http".to_owned(),
        host: "example.test".to_owned(),
        port: Some("8080".to_owned()),
        method: "GET".to_owned(),
        path: "/start".to_owned(),
        ..UrlRequest::default()
    }
}

/// A run of two workers without an engine.
struct Run {
    world: Arc<World>,
    script: Arc<WrkScript>,
    main: WrkMain,
    workers: Vec<Box<dyn Scripts>>,
}

fn start(text: ScriptText, options: (Arc<World>, ScriptOptions)) -> Run {
    let arguments = ["http://example.test:8080/start", "first", "second"].map(str::to_owned).to_vec();
    let script = WrkScript::load(text, given(), arguments, options.1).unwrap();
    let addresses = ["127.0.0.1:8080".to_owned()];
    let main = script.setup(2, &addresses).unwrap();
    let open = |index| script.open(Shard { index, of: 2 }, &addresses).unwrap();
    let workers = (0..2).map(open).collect();
    Run { world: options.0, script, main, workers }
}

fn inline(source: &str) -> Run {
    start(ScriptText::inline(source, None), world())
}

fn load(source: &str) -> Result<Arc<WrkScript>, String> {
    let text = ScriptText::inline(source, None);
    WrkScript::load(text, given(), Vec::new(), world().1).map_err(|error| error.message)
}

fn summary() -> WrkSummary {
    WrkSummary {
        duration_us: 2_000_000,
        requests: 4,
        bytes: 400,
        errors: WrkErrors { status: 1, ..WrkErrors::default() },
        latency: WrkStats::new(vec![(100, 3), (900, 1)]),
        requests_per_second: WrkStats::new(vec![(2, 2)]),
    }
}

impl Run {
    fn make(&mut self, worker: usize) -> DynamicRequest {
        let mut request = DynamicRequest::default();
        self.workers[worker].make_request(0, &Session::new(0), &mut request).unwrap();
        request
    }

    fn raw(&mut self, worker: usize) -> String {
        String::from_utf8(self.make(worker).raw).unwrap()
    }

    fn answer(&mut self, worker: usize, status: u16, pairs: &[(&str, &str)], body: &str) {
        let fields = fields(pairs);
        let good = self.workers[worker].validate_response(0, &received(status, &fields, body.as_bytes()));
        assert_eq!(good, Ok(true));
    }

    fn done(self) -> Result<String, String> {
        let leftovers = self.workers.into_iter().map(Scripts::finish).collect();
        self.main.done(leftovers, &summary()).map_err(|error| error.message)
    }

    fn printed(&self) -> Vec<String> {
        self.world.printed().into_iter().map(|(_, text)| text).collect()
    }
}

fn equivalent(name: &str) -> Run {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wrk").join(name);
    start(ScriptText::file(&path, &std::fs::read(&path).unwrap()), world())
}

#[test]
fn addresses_are_chosen_per_thread() {
    let run = equivalent("addr.lua");
    // Of two, the first cannot be connected to.
    assert_eq!([0, 1].map(|worker| run.script.address(worker)), [Some("10.0.0.2:8080"); 2]);
    assert_eq!(run.printed(), ["connected to 10.0.0.2:8080\n"; 2]);
}

#[test]
fn a_token_is_used_once_it_is_known() {
    let mut run = equivalent("auth.lua");
    assert!(run.script.makes_requests(0) && run.script.sees_responses(0));
    let needs = run.script.needs(0);
    assert_eq!(needs.fields, FieldNeeds::All);
    assert_eq!(run.raw(0), "GET /login HTTP/1.1\r\nHost: example.test:8080\r\n\r\n");
    run.answer(0, 500, &[("x-token", "no")], "");
    run.answer(0, 200, &[("x-token", "t1")], "");
    run.answer(0, 200, &[("x-token", "t2")], "");
    let text = run.raw(0);
    assert!(text.starts_with("GET /resource HTTP/1.1\r\n") && text.contains("\r\nX-Token: t1\r\n"), "{text}");
    assert!(run.raw(1).starts_with("GET /login "), "each thread has a state of its own");
}

#[test]
fn every_request_can_be_another() {
    let mut run = equivalent("counter.lua");
    for number in 0..3 {
        let text = run.raw(0);
        assert!(text.starts_with(&format!("GET /{number} HTTP/1.1\r\n")), "{text}");
        assert!(text.contains(&format!("\r\nX-Counter: {number}\r\n")), "{text}");
    }
    let request = run.make(1);
    assert_eq!((request.raw_count, &*request.method), (1, &b"GET"[..]));
}

#[test]
fn a_delay_is_asked_for() {
    let mut run = equivalent("delay.lua");
    assert!(run.script.has_delay() && !run.script.makes_requests(0) && !run.script.sees_responses(0));
    for _ in 0..50 {
        let delay = run.workers[0].delay(0).unwrap();
        assert!((Nanos::from_millis(10)..=Nanos::from_millis(50)).contains(&delay), "{delay:?}");
    }
}

#[test]
fn several_requests_go_at_once() {
    let mut run = equivalent("pipeline.lua");
    let request = run.make(0);
    assert_eq!(request.raw_count, 3);
    let text = String::from_utf8(request.raw).unwrap();
    let one = |name| format!("GET /?{name} HTTP/1.1\r\nHost: example.test:8080\r\n\r\n");
    assert_eq!(text, [one("one"), one("two"), one("three")].concat());
    assert_eq!(run.raw(0), text);
}

#[test]
fn a_changed_request_needs_no_call() {
    let mut run = equivalent("post.lua");
    assert!(!run.script.makes_requests(0) && !run.script.sees_responses(0) && !run.script.has_delay());
    let request = run.script.request();
    assert_eq!((&*request.method, request.body.as_deref()), ("POST", Some(&b"name=value&other=1"[..])));
    let form = ("Content-Type".to_owned(), "application/x-www-form-urlencoded".to_owned());
    assert_eq!(request.headers, [form]);
    let made = run.make(0);
    assert_eq!((&*made.method, &*made.authority), (&b"POST"[..], &b"example.test:8080"[..]));
    assert_eq!(shown(&made.fields), ["content-type: application/x-www-form-urlencoded"]);
    assert!(made.raw.is_empty());
}

#[test]
fn percentiles_are_reported() {
    let run = equivalent("report.lua");
    assert_eq!(run.done().unwrap(), "4 requests, 1 errors\n50%,100\n90%,900\n99%,900\n99.999%,900\n");
}

#[test]
fn values_go_to_the_threads_and_come_back() {
    let mut run = equivalent("setup.lua");
    assert_eq!(
        run.world.printed(),
        [(Some(0), "thread 1 is ready\n".to_owned()), (Some(1), "thread 2 is ready\n".to_owned())]
    );
    assert_eq!(run.raw(0), "GET /start HTTP/1.1\r\nHost: example.test:8080\r\n\r\n");
    run.make(0);
    run.make(1);
    run.answer(0, 200, &[], "");
    assert_eq!(run.done().unwrap(), "thread 1: 2 sent, 1 answered\nthread 2: 1 sent, 0 answered\n");
}

#[test]
fn a_thread_stops_itself() {
    let mut run = equivalent("stop.lua");
    let needs = run.script.needs(0);
    assert!(needs.is_nothing() && run.script.sees_responses(0));
    for turn in 0..100 {
        assert!(!run.workers[0].wants_to_stop(), "after {turn}");
        run.answer(0, 200, &[], "");
    }
    assert_eq!([0, 1].map(|worker| run.workers[worker].wants_to_stop()), [true, false]);
}

#[test]
fn arguments_reach_init_and_make_the_request() {
    let mut run =
        inline("function init(args) wrk.path = '/' .. args[1] .. args[2] .. #args .. args[0]:sub(1, 4) end");
    assert!(run.script.makes_requests(0), "init may have changed the request");
    assert_eq!(run.make(1).path, b"/firstsecond2http");
}

#[test]
fn formats_take_what_is_given_and_the_rest_from_the_table() {
    let mut run = inline(
        "wrk.headers['A'] = 1
        local made = {
            function() return wrk.format() end,
            function() return wrk.format('PUT', '/x', {['B'] = 'c', ['content-length'] = 99}, 'body') end,
            function() return wrk.format('POST', nil, {host = 'other'}, '') end,
            function() wrk.headers.Host = 'own' wrk.body = 'b' return wrk.format(nil, nil, {}) end,
            function() return wrk.format(nil, nil, {}, {}) end,
        }
        function request() return table.remove(made, 1)() end",
    );
    let sorted = |text: String| {
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let (first, fields) = head.split_once("\r\n").unwrap();
        let mut fields: Vec<_> = fields.split("\r\n").collect();
        fields.sort_unstable();
        format!("{first} | {} | {body}", fields.join(", "))
    };
    assert_eq!(sorted(run.raw(0)), "GET /start HTTP/1.1 | A: 1, Host: example.test:8080 | ");
    assert_eq!(
        sorted(run.raw(0)),
        "PUT /x HTTP/1.1 | B: c, Content-Length: 4, Host: example.test:8080 | body"
    );
    assert_eq!(sorted(run.raw(0)), "POST /start HTTP/1.1 | Content-Length: 0, host: other | ");
    assert_eq!(sorted(run.raw(0)), "GET /start HTTP/1.1 | Content-Length: 1, Host: own | b");
    let error = run.workers[0].make_request(0, &Session::new(0), &mut DynamicRequest::default()).unwrap_err();
    assert_eq!(error.message, "inline:9: the body is a table, not a string, in request");
}

#[test]
fn response_headers_are_found_in_any_case() {
    let mut run = inline(
        "function response(status, headers, body)
            seen = status .. headers['X-Token'] .. headers['x-token'] .. tostring(headers['y']) .. body
            for name, value in pairs(headers) do seen = seen .. name .. '=' .. value end
        end
        function done() end
        function setup(thread) threads = threads or {} threads[#threads + 1] = thread end
        function done() io.write(threads[1]:get('seen'), tostring(threads[2]:get('seen'))) end",
    );
    assert!(run.script.needs(0).body);
    run.answer(0, 201, &[("x-token", "t")], "body");
    assert_eq!(run.done().unwrap(), "201ttnilbodyX-Token=tnil");
}

#[test]
fn statistics_have_wrks_fields() {
    let run = inline(
        "function done(summary, latency, requests)
            print(summary.duration, summary.requests, summary.bytes)
            local e = summary.errors
            print(e.connect, e.read, e.write, e.status, e.timeout)
            print(latency.min, latency.max, latency.mean, latency.stdev, #latency)
            print(latency(1)) print(latency(2)) print(latency(3))
            print(latency:percentile(75), requests.mean)
        end",
    );
    let expected =
        "2000000\t4\t400\n0\t0\t0\t1\t0\n100\t900\t300\t400\t2\n100\t3\n900\t1\nnil\tnil\n100\t2\n";
    assert_eq!(run.done().unwrap(), expected);
}

#[test]
fn what_cannot_be_carried_says_so() {
    let run = inline(
        "f = function() end
        deep = {a = {b = {1, 'x', true}}}
        loop = {} loop.loop = loop
        local thread
        function setup(t)
            thread = thread or t
            assert(t:get('deep').a.b[2] == 'x' and t.addr == '127.0.0.1:8080')
            t:set('given', {1, {2}})
            assert(t:get('given')[2][1] == 2)
            local ok, why = pcall(t.set, t, 'f', print)
            assert(not ok and tostring(why):find('is a function: only nil, booleans'), tostring(why))
            local ok, why = pcall(t.stop, t)
            assert(not ok and tostring(why):find('is for a thread that runs'))
        end
        function init() assert(given[2][1] == 2 and wrk.thread:get('given') == given) end
        function done()
            for _, name in ipairs({'f', 'loop'}) do print(select(2, pcall(thread.get, thread, name))) end
            print(thread:get('deep').a.b[1], thread:get('nothing'))
        end",
    );
    let printed = run.done().unwrap();
    assert!(printed.contains("`f` is a function: only nil, booleans"), "{printed}");
    assert!(printed.contains("`loop` has more than 16 tables in each other"), "{printed}");
    assert!(printed.ends_with("1\tnil\n"), "{printed}");
}

#[test]
fn wrong_scripts_are_errors_with_a_line() {
    let at_load = [
        ("x = 1", "inline: neither defines a function of wrk's"),
        ("\nfunction request( end", "inline:2: <name> or '...' expected"),
        ("request = 'x'", "inline: `request` is a string, not a function"),
        ("wrk.headers = 5", "inline: wrk.headers is not a table"),
        ("\nerror('boom')", "inline:2: boom"),
        ("while true do end", "inline:1: takes longer than the time limit"),
    ];
    for (source, expected) in at_load {
        let error = load(source).unwrap_err();
        assert!(error.starts_with(expected), "{source}: {error}");
    }
    let error = load("\nfunction setup() error('boom') end").unwrap().setup(1, &[]).unwrap_err();
    assert_eq!(error.message, "inline:2: boom, in setup");
    let error = load("\nfunction init() error('boom') end").unwrap().open(Shard::WHOLE, &[]).map(|_| ());
    assert_eq!(error.unwrap_err().message, "inline:2: boom, in init");
    let at_run = [
        ("function request() end", "inline:1: returned a nil, not a string, in request"),
        (
            "function request() return 'x' end",
            "inline:1: returned a text that is not an HTTP/1.1 request: `x`",
        ),
        ("function request() return wrk.lookup('a') end", "inline:1: `wrk.lookup` would hold up the worker"),
        ("\nfunction request()\nwhile true do end end", "inline:3: takes longer than the time limit"),
    ];
    for (source, expected) in at_run {
        let mut scripts = load(source).unwrap().open(Shard::WHOLE, &[]).unwrap();
        for _ in 0..2 {
            let error =
                scripts.make_request(0, &Session::new(0), &mut DynamicRequest::default()).unwrap_err();
            assert!(error.message.starts_with(expected), "{source}: {error}");
        }
    }
    for (source, expected) in [
        (
            "function delay() return 'x' end",
            "inline:1: returned a string, not a number of milliseconds, in delay",
        ),
        ("function delay() return -1 end", "inline:1: returned -1: milliseconds from 0 to a day are allowed"),
    ] {
        let mut scripts = load(source).unwrap().open(Shard::WHOLE, &[]).unwrap();
        assert!(scripts.delay(0).unwrap_err().message.starts_with(expected), "{source}");
    }
    let run = inline("\nfunction done() error('boom') end");
    assert_eq!(run.done().unwrap_err(), "inline:2: boom, in done");
}

#[test]
fn setup_runs_once() {
    let script = load("function setup() end").unwrap();
    script.setup(1, &[]).unwrap();
    assert_eq!(script.setup(1, &[]).unwrap_err().message, "inline: setup has run before");
}

/// The scripts that come with wrk, where it is installed, load and make whole requests.
#[test]
fn the_scripts_that_ship_with_wrk_work() {
    let folders = ["/usr/share/doc/wrk/examples/scripts", "/usr/local/share/wrk/scripts"];
    let Some(folder) = folders.iter().map(PathBuf::from).find(|folder| folder.is_dir()) else {
        println!("skipped: no scripts of wrk in {folders:?}");
        return;
    };
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "lua") {
            continue;
        }
        let mut run = start(ScriptText::file(&path, &std::fs::read(&path).unwrap()), world());
        for _ in 0..3 {
            if run.script.makes_requests(0) {
                let request = run.make(0);
                assert!(request.raw_count > 0 || !request.path.is_empty(), "{}", path.display());
            }
            if run.script.sees_responses(0) {
                run.answer(0, 200, &[("x-token", "t")], "body");
            }
            if run.script.has_delay() {
                run.workers[0].delay(0).unwrap();
            }
        }
        run.done().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        count += 1;
    }
    assert!(count > 0, "the folder is empty");
}
