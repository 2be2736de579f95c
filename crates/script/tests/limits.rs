//! Scripts that go wrong: they are stopped, with file and line. After an error the state can be used again;
//! after one of time or memory it is the end of the run.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use plimsoll_core::Nanos;
use plimsoll_scenario::{ScriptLimits, Scripts, Session};
use plimsoll_script::ScriptOptions;

use crate::world::{fields, load, open, received, request, world};

fn make(scripts: &mut Box<dyn Scripts>) -> Result<(), String> {
    scripts.make_request(0, &Session::new(0), &mut request()).map_err(|error| error.message)
}

#[test]
fn coroutines_are_as_deep_as_they_may_be_any_number_of_times() {
    // Coroutines that fail on the way give their places back.
    let source = "
        local function deep(n) return n == 0 and 'end' or coroutine.wrap(deep)(n - 1) end
        local function fails(n) if n == 0 then error('x') end return coroutine.wrap(fails)(n - 1) end
        function make_request()
            for i = 1, 10 do
                assert(not pcall(fails, 150))
                assert(not pcall(load, function() error('x') end))
                assert(deep(190) == 'end')
            end
            local function add(a)
                for i = 1, 3 do a = coroutine.yield(i + a) end
                return a
            end
            local numbers = coroutine.wrap(add)
            assert(numbers(10) == 11 and numbers(20) == 22 and numbers(30) == 33 and numbers(40) == 40)
            assert(not pcall(numbers))
            assert(load('return ' .. 7)() == 7 and select('#', load('=')) == 2)
        end";
    let options = ScriptOptions::new(
        world().0,
        ScriptLimits { time_limit: Nanos::from_secs(100), ..ScriptLimits::default() },
    );
    make(&mut open(source, options).unwrap()).unwrap();
}

/// The error of a `make_request` with this body, which begins in line 2. The state works afterwards, unless
/// the error ends the run: then every call has that error.
fn error_of(body: &str, options: ScriptOptions) -> String {
    let source =
        format!("function make_request()\n{body}\nend\nfunction validate_response() return 1 + 1 == 2 end");
    let mut scripts = open(&source, options).unwrap();
    let error = make(&mut scripts).unwrap_err();
    let none = fields(&[]);
    let spent = error.contains("limit of");
    assert_eq!(scripts.wants_to_stop(), spent, "{error}");
    if spent {
        let again = scripts.validate_response(0, &received(200, &none, b"")).unwrap_err();
        assert_eq!((again.message, again.ends_run), (error.clone(), true));
        return error;
    }
    assert_eq!(scripts.validate_response(0, &received(200, &none, b"")), Ok(true), "after: {error}");
    assert!(make(&mut scripts).unwrap_err().starts_with("inline:"), "the second time: {error}");
    error
}

#[test]
fn endless_loops_are_stopped() {
    let limit = "takes longer than the time limit of 1000 ms, in make_request of step `login`";
    for body in [
        "while true do end",
        "local x = 0 repeat x = x + 1 until x < 0",
        "for i = 1, math.huge do end",
        "local function f() return f() end f()",
        // Code that catches the error must not go on for ever.
        "while true do pcall(function() while true do end end) end",
        "while true do xpcall(function() while true do end end, function() while true do end end) end",
        "while true do pcall(pcall, pcall, function() while true do end end) end",
        // A coroutine is not a way out.
        "local f = coroutine.wrap(function() while true do end end) f()",
        "while true do coroutine.wrap(function() pcall(function() while true do end end) end)() end",
        "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
        "setmetatable({}, {__index = function() while true do end end}).x = setmetatable({}, {__index = function() while true do end end}).y",
        "table.sort({3, 2, 1}, function() while true do end end)",
        "string.gsub('x', '.', function() while true do end end)",
        // Patterns that backtrack without end, within one call.
        "local x = ('a'):rep(60):find(('a-'):rep(30) .. 'b')",
        "local x = ('a'):rep(60):match(('a*'):rep(30) .. 'b')",
        "for x in ('a'):rep(60):gmatch(('a?'):rep(60) .. 'b') do end",
        "local x = ('a'):rep(60):gsub(('a*'):rep(30) .. 'b', '')",
        "while true do pcall(string.find, ('a'):rep(60), ('a-'):rep(30) .. 'b') end",
        // Slow functions of the library, of which only a few fit between two signals.
        "while true do string.rep('x', 1e7) end",
        "local t = {} for i = 1, 1e5 do t[i] = 'x' end while true do table.concat(t, ('y'):rep(50)) end",
        "local s = ('x'):rep(2e7) while true do s:reverse() end",
    ] {
        let error = error_of(body, world().1);
        assert!(error.starts_with("inline:2: ") && error.ends_with(limit), "{body}: {error}");
    }
}

#[test]
fn an_endless_loop_at_load_is_stopped() {
    let error = load("local x\n\nwhile true do x = 1 end", world().1).unwrap_err();
    assert_eq!(
        error.message,
        "inline:3: takes longer than the time limit of 1000 ms, in the script of step `login`"
    );
}

#[test]
fn a_clock_that_stands_still_is_no_way_out() {
    #[derive(Debug)]
    struct Still;
    impl plimsoll_script::Host for Still {
        fn monotonic(&self) -> Nanos {
            Nanos(5)
        }
        fn unix_ns(&self) -> u64 {
            5
        }
        fn print(&self, _: Option<u32>, _: &[u8]) {}
        fn lookup(&self, _: &str, _: &str) -> Result<Vec<String>, String> {
            Err(String::new())
        }
        fn can_connect(&self, _: &str) -> bool {
            false
        }
    }
    let mut options = ScriptOptions::new(std::sync::Arc::new(Still), ScriptLimits::default());
    options.limits.time_limit = Nanos::from_millis(1);
    let error = error_of("while true do end", options);
    assert!(error.contains("takes longer"), "{error}");
}

#[test]
fn memory_is_limited() {
    for body in [
        "return {x = ('x'):rep(1e9)}",
        "local s = 'x' while true do s = s .. s end",
        "local t = {} while true do t[#t + 1] = {} end",
        "local t = {} for i = 1, 1e9 do t[i] = tostring(i) end",
        "return {x = table.concat({('x'):rep(3e7), ('y'):rep(3e7), ('z'):rep(3e7)})}",
        "return {x = ('x'):rep(1e5):gsub('.', ('y'):rep(1e5))}",
        "return {x = string.format('%s%s%s', ('x'):rep(3e7), ('y'):rep(3e7), ('z'):rep(3e7))}",
    ] {
        let (_, mut options) = world();
        options.limits.memory_limit = 64 << 20;
        options.limits.time_limit = Nanos::from_secs(1_000);
        let error = error_of(body, options);
        let expected = "needs more memory than the limit of 64 MiB, in make_request of step `login`";
        assert!(error.starts_with("inline:") && error.ends_with(expected), "{body}: {error}");
    }
}

#[test]
fn a_stack_overflow_is_an_error() {
    for body in [
        "local function f() return 1 + f() end f()",
        "local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k .. 'x'] end return t.x",
        "local t = {} for i = 1, 1e4 do t[i] = 'x' end return {}, select('#', unpack(t))",
        "local function f() coroutine.wrap(f)() end f()",
        "local function f() assert(coroutine.resume(coroutine.create(f))) end f()",
        "local function f() return load(function() return f() end)() end f()",
    ] {
        // Deep stacks are slow under a hook: here it is the depth that has to end them.
        let options = ScriptOptions::new(
            world().0,
            ScriptLimits { time_limit: Nanos::from_secs(100), ..ScriptLimits::default() },
        );
        let error = error_of(body, options);
        assert!(error.contains("overflow") || error.contains("too many"), "{body}: {error}");
        assert!(error.starts_with("inline:"), "{error}");
    }
}

#[test]
fn the_system_is_out_of_reach() {
    let allow = "is not allowed: scripts have no access to the system unless the command has";
    for call in [
        "io.open('/etc/passwd')",
        "io.popen('true')",
        "io.lines('/etc/passwd')",
        "io.read()",
        "io.input('/etc/passwd')",
        "io.output('/tmp/x')",
        "io.tmpfile()",
        "os.execute('true')",
        "os.remove('/tmp/x')",
        "os.rename('/tmp/x', '/tmp/y')",
        "os.getenv('HOME')",
        "os.tmpname()",
    ] {
        let name = call.split('(').next().unwrap();
        let error = error_of(call, world().1);
        assert!(error.starts_with(&format!("inline:2: `{name}` {allow}")), "{call}: {error}");
    }
    for (call, expected) in [
        ("os.exit(0)", "`os.exit` is not allowed"),
        ("debug.getinfo(1)", "`debug.getinfo`: it is not there"),
        ("debug.sethook()", "`debug.sethook`: it is not there"),
        ("jit.opt.start(3)", "`jit.opt`: it is not there"),
        ("jit.util.funcinfo(make_request)", "`jit.util`: it is not there"),
        ("require 'ffi'", "module 'ffi' not found (it is not there for scripts)"),
        ("require 'jit.util'", "module 'jit.util' not found"),
        ("package.loadlib('x', 'y')", "attempt to call field 'loadlib'"),
        ("package.loaders[1]('x')", "attempt to index field 'loaders'"),
        ("assert(loadstring(string.dump(function() end)))", ""),
        ("assert(load(string.dump(function() end)))", ""),
        ("dofile('/etc/passwd')", ""),
        ("loadfile('/etc/passwd')", ""),
    ] {
        let error = error_of(call, world().1);
        assert!(error.starts_with("inline:2: ") && error.contains(expected), "{call}: {error}");
    }
}

#[test]
fn a_plan_may_open_the_system() {
    let (_, mut options) = world();
    options.limits.allow_system = true;
    let mut scripts = open(
        "function make_request()
            local file = assert(io.open('/proc/self/status'))
            assert(#file:read('*a') > 0)
            file:close()
            assert(os.getenv('PATH'))
        end",
        options.clone(),
    )
    .unwrap();
    make(&mut scripts).unwrap();
    let error = error_of("os.exit(3)", options);
    assert!(error.contains("`os.exit` is not allowed"), "{error}");
}

#[test]
fn harmless_functions_are_there() {
    let mut scripts = open(
        "function make_request()
            assert(os.time() and os.clock() and os.date('%Y') and os.difftime(2, 1) == 1)
            assert(debug.traceback('m'):find('m\\nstack traceback:', 1, true) == 1)
            assert(load('return 1 + 1')() == 2 and loadstring('return ...')(5) == 5)
            local pieces = {'return ', '7'}
            assert(load(function() return table.remove(pieces, 1) end)() == 7)
            local f, why = load('return +', '=own')
            assert(not f and why:find('^own:1:'))
            assert(load('return x', 'c', 't', {x = 3})() == 3)
            assert(require 'string' == string and bit.band(6, 3) == 2 and jit.version and jit.status())
            assert(select('#', pcall(error)) == 2 and tostring(1e15) == '1e+15')
            local co = coroutine.wrap(function(a) local b = coroutine.yield(a + 1) return b * 2 end)
            assert(co(1) == 2 and co(4) == 8)
            collectgarbage()
        end",
        world().1,
    )
    .unwrap();
    make(&mut scripts).unwrap();
}
