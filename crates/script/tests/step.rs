//! Scripts of steps: their arguments, their results, their inputs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use plimsoll_core::Shard;
use plimsoll_scenario::{FieldNeeds, Scheme, ScriptSource as _, ScriptText, Session, StepScript};
use plimsoll_script::StepScripts;

use crate::world::{fields, folder, load, open, received, request, shown, world, write};

/// The request that a script makes of [`request`].
fn made(source: &str) -> Result<plimsoll_scenario::DynamicRequest, String> {
    let mut session = Session::new(0);
    session.last_status = 201;
    session.last_fields = fields(&[("location", "/made/7"), ("set-cookie", "a=1"), ("set-cookie", "b=2")]);
    session.last_body = b"{\"id\":7}".to_vec();
    let mut scripts = open(source, world().1).map_err(|error| error.message)?;
    let mut request = request();
    scripts.make_request(0, &session, &mut request).map_err(|error| error.message)?;
    Ok(request)
}

#[test]
fn nothing_returned_leaves_the_request_as_it_is() {
    for source in [
        "function make_request() end",
        "function make_request(a, b, c, d) return c, d end",
        "function make_request(a, b, c, d) return nil, nil end",
        "function make_request(a, b, c, d) for k, v in pairs(c) do end return c, d end",
    ] {
        assert_eq!(made(source).unwrap(), request(), "{source}");
    }
}

#[test]
fn headers_are_read_from_both_messages() {
    let made = made(
        r#"function make_request(rh, rb, qh, qb)
            qh["x-seen"] = table.concat({rh[":status"], rh["location"], rh["set-cookie"], rb, tostring(rh["no"]),
                qh[":method"], qh[":path"], qh[":authority"], qh[":scheme"], qh.accept, #qb,
                tostring(rh[1]), type(rh), #qh}, " ")
            return qh, qb
        end"#,
    );
    let expected =
        "x-seen: 201 /made/7 a=1, b=2 {\"id\":7} nil GET /a example.test:8080 http */* 0 nil table 0";
    assert_eq!(shown(&made.unwrap().fields)[2], expected);
}

#[test]
fn assignments_and_a_body_change_the_request() {
    let made = made(
        r#"function make_request(rh, rb, qh, qb)
            qh[":method"] = "POST"
            qh[":path"] = rh["location"]
            qh[":authority"] = "other.test"
            qh["Accept"] = nil
            qh["x-trace"] = 2
            qh["x-new"] = true
            qh["content-length"] = 99
            return qh, "abc"
        end"#,
    );
    let made = made.unwrap();
    assert_eq!(
        (&*made.method, &*made.path, &*made.authority),
        (&b"POST"[..], &b"/made/7"[..], &b"other.test"[..])
    );
    assert_eq!(shown(&made.fields), ["x-trace: 2", "x-new: true"]);
    assert_eq!(made.body, b"abc");
    assert!(made.raw.is_empty());
}

#[test]
fn a_table_of_its_own_replaces_the_fields() {
    let made = made(
        r#"function make_request(rh, rb, qh, qb)
            return {[":path"] = "/b?x=1", ["X-Own"] = "1", ["content-length"] = "77", [":scheme"] = "http"}, 12.5
        end"#,
    );
    let made = made.unwrap();
    assert_eq!((&*made.method, &*made.path), (&b"GET"[..], &b"/b?x=1"[..]));
    assert_eq!((shown(&made.fields), &*made.body), (vec!["x-own: 1".to_owned()], &b"12.5"[..]));
}

#[test]
fn pairs_and_next_walk_through_the_fields() {
    let made = made(
        r#"function make_request(rh, rb, qh, qb)
            local names = {}
            for name in pairs(qh) do names[#names + 1] = name end
            table.sort(names)
            local count = 0
            local name, value = next(rh)
            while name do count = count + 1; name, value = next(rh, name) end
            -- A write is seen by the next walk.
            qh["x-added"] = "1"
            local after = 0
            for name, value in pairs(qh) do after = after + 1 end
            assert(rawget(qh, ":path") == "/a" and not next({}))
            return {x = table.concat(names, " ") .. " " .. count .. " " .. after}
        end"#,
    );
    assert_eq!(shown(&made.unwrap().fields), ["x: :authority :method :path :scheme accept x-trace 3 7"]);
}

#[test]
fn wrong_returns_are_errors_with_a_line() {
    let table = [
        ("return 1", "inline:2: returned a number as headers, not a table"),
        ("return c, {}", "inline:2: returned a table as the body, not a string"),
        ("c['x'] = {} return c", "inline:3: the header `x` is a table, not a string"),
        ("c[':path'] = nil return c", "inline:3: a request needs its `:path`"),
        ("c[':status'] = 1 return c", "inline:3: `:status` is not a pseudo-header of a request"),
        ("c[':scheme'] = 'https'", "inline:3: `:scheme` cannot be changed: it is http"),
        ("a['x'] = 1 return c", "inline:3: the headers of a response cannot be changed"),
        ("return {'x'}", "inline:2: the name of a header is a "),
        ("sleep_for_ms(5)", "inline:3: `sleep_for_ms` would hold up all users of the worker: give the step"),
        ("send_http_request_and_await_response({}, '', 5)", "make the request a step of its own"),
        ("error('boom')", "inline:3: boom, in make_request of step `login`"),
        ("error({})", "inline:3: table: "),
        ("local x = nil; x.y = 1", "inline:3: attempt to index local 'x'"),
    ];
    for (body, expected) in table {
        let source = format!("\nfunction make_request(a, b, c, d)\n{body}\nend");
        let message = made(&source).unwrap_err();
        assert!(message.contains(expected), "{body}: {message}");
        assert!(message.ends_with("make_request of step `login`"), "{message}");
    }
}

#[test]
fn headers_of_an_earlier_call_are_an_error_and_not_another_messages() {
    let source = "function make_request(a, b, c, d)
        if kept then return {x = kept[':path']} end
        kept = c
    end";
    let mut scripts = open(source, world().1).unwrap();
    let session = Session::new(0);
    scripts.make_request(0, &session, &mut request()).unwrap();
    let error = scripts.make_request(0, &session, &mut request()).unwrap_err();
    assert!(error.message.starts_with("inline:2: these are the headers of an earlier call"), "{error}");
}

#[test]
fn the_last_response_may_be_missing() {
    let source = "function make_request(a, b, c, d)
        return {x = tostring(a[':status']) .. tostring(next(a)) .. #b}
    end";
    let mut scripts = open(source, world().1).unwrap();
    let mut request = request();
    scripts.make_request(0, &Session::new(0), &mut request).unwrap();
    assert_eq!(shown(&request.fields), ["x: nilnil0"]);
}

#[test]
fn responses_are_judged() {
    let source = "function validate_response(h, body)
        return h[':status'] == '200' and h['content-type'] == 'text/plain' and body:find('ok') ~= nil
    end";
    let mut scripts = open(source, world().1).unwrap();
    let plain = fields(&[("Content-Type", "text/plain")]);
    assert_eq!(scripts.validate_response(0, &received(200, &plain, b"is ok")), Ok(true));
    assert_eq!(scripts.validate_response(0, &received(200, &plain, b"no")), Ok(false));
    assert_eq!(scripts.validate_response(0, &received(500, &plain, b"ok")), Ok(false));
    let mut scripts = open("function validate_response() return 1 end", world().1).unwrap();
    let error = scripts.validate_response(0, &received(200, &plain, b"")).unwrap_err();
    assert_eq!(
        error.message,
        "inline:1: returned a number, not true or false, in validate_response of step `login`"
    );
}

#[test]
fn only_what_is_read_is_needed() {
    let table = [
        ("function make_request() end", false, false),
        ("function make_request(a, b, c, d) return c, d end", false, false),
        ("function make_request(a, b, c, d) c.x = a.y return c, d end", true, false),
        ("function make_request(a, b, c, d) return c, b end", false, true),
        ("function validate_response(h, b) return h[':status'] == '200' end", true, false),
        ("function validate_response(h, b) return #b > 0 end", false, true),
        ("function validate_response(...) return true end", true, true),
    ];
    for (source, all_fields, body) in table {
        let needs = load(source, world().1).unwrap().needs(0);
        assert_eq!((needs.fields == FieldNeeds::All, needs.body), (all_fields, body), "{source}");
        assert!(!needs.path && !needs.request);
    }
}

#[test]
fn scripts_do_not_take_each_others_functions() {
    let script = |step: &str, source: &str| StepScript {
        step: step.to_owned(),
        text: ScriptText::inline(source, None),
        scheme: Scheme::Https,
    };
    let scripts = vec![
        script("one", "name = 'one' function make_request(a, b, c) return {n = name, s = c[':scheme']} end"),
        script("two", "name = 'two' function make_request() _G.name = _G.name .. '!' return {n = name} end"),
    ];
    let source = StepScripts::load(scripts, world().1).unwrap();
    let mut scripts = source.open(Shard::WHOLE, &[]).unwrap();
    let (session, mut one, mut two) = (Session::new(0), request(), request());
    scripts.make_request(0, &session, &mut one).unwrap();
    scripts.make_request(1, &session, &mut two).unwrap();
    assert_eq!((shown(&two.fields), one.fields.get("n")), (vec!["n: two!".to_owned()], Some(&b"one"[..])));
    assert_eq!(one.fields.get("s"), Some(&b"https"[..]));
}

#[test]
fn all_scripts_that_do_not_load_are_reported() {
    let script = |step: &str, source: &str| StepScript {
        step: step.to_owned(),
        text: ScriptText::inline(source, None),
        scheme: Scheme::Http,
    };
    let scripts = vec![
        script("one", "x = 1"),
        script("two", "\nfunction make_request( end"),
        script("three", "make_request = 5"),
        script("four", "\n\nerror('at load')"),
        script("five", "function make_request() end"),
    ];
    let errors = StepScripts::load(scripts, world().1).unwrap_err();
    let messages: Vec<_> = errors.iter().map(|error| error.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "inline: defines neither `make_request` nor `validate_response`: write one of them as a global \
             function, in the script of step `one`",
            "inline:2: <name> or '...' expected near 'end', in the script of step `two`",
            "inline: `make_request` is a number, not a function, in the script of step `three`",
            "inline:3: at load, in the script of step `four`",
        ]
    );
}

#[test]
fn modules_are_found_beside_the_script_in_the_path_and_by_lua_path() {
    let (beside, path, lua_path) = (folder("beside"), folder("path"), folder("lua-path"));
    write(&beside.join("near.lua"), "return {name = 'near'}");
    write(&path.join("listed.lua"), "return {name = 'listed'}");
    write(&lua_path.join("mod-far.lua"), "local name = ... return {name = name}");
    std::fs::create_dir_all(beside.join("deep")).unwrap();
    write(&beside.join("deep/init.lua"), "count = (count or 0) + 1");
    write(&beside.join("broken.lua"), "\nreturn +");
    let source = b"#!/usr/bin/lua\nlocal near, far = require 'near', require('far')
        local listed = require 'listed'
        assert(require 'deep' == true and require 'deep' and count == 1)
        function make_request() return {x = near.name .. listed.name .. far.name} end
        function validate_response(h, b) return require(b) end";
    let text = ScriptText::file(&beside.join("main.lua"), source);
    let (_, mut options) = world();
    options.limits.path = vec![path.clone()];
    options.limits.lua_path = Some(format!(";;{}/mod-?.lua", lua_path.display()));
    let script = StepScript { step: String::new(), text, scheme: Scheme::Http };
    let source = StepScripts::load(vec![script], options).unwrap();
    let mut scripts = source.open(Shard::WHOLE, &[]).unwrap();
    let mut request = request();
    scripts.make_request(0, &Session::new(0), &mut request).unwrap();
    assert_eq!(shown(&request.fields), ["x: nearlistedfar"]);
    let none = fields(&[]);
    let mut error =
        |name: &[u8]| scripts.validate_response(0, &received(200, &none, name)).unwrap_err().message;
    assert!(error(b"absent").contains("module 'absent' not found:\n\tno file '"), "{}", error(b"absent"));
    assert!(error(b"broken").contains("broken.lua:2: unexpected symbol"), "{}", error(b"broken"));
    assert!(error(b"../x").contains("module '../x' not found"), "{}", error(b"../x"));
    for folder in [beside, path, lua_path] {
        std::fs::remove_dir_all(folder).unwrap();
    }
}

/// Scripts that may read files find modules where wrk's Lua finds them; the others are told how to allow it.
#[test]
fn modules_of_the_system_are_for_scripts_that_may_read_files() {
    let system = folder("system");
    std::fs::create_dir_all(system.join("wide")).unwrap();
    write(&system.join("wide/deep.lua"), "return 'found'");
    let (_, mut options) = world();
    options.system_path = vec![system.clone()];
    for allow_system in [false, true] {
        let source = b"function make_request() return {x = require 'wide.deep'} end";
        let text = ScriptText::file(&system.join("elsewhere/main.lua"), source);
        let script = StepScript { step: String::new(), text, scheme: Scheme::Http };
        let mut options = options.clone();
        options.limits.allow_system = allow_system;
        let source = StepScripts::load(vec![script], options).unwrap();
        let mut scripts = source.open(Shard::WHOLE, &[]).unwrap();
        let mut request = request();
        match scripts.make_request(0, &Session::new(0), &mut request) {
            Ok(()) => assert!(allow_system && shown(&request.fields) == ["x: found"]),
            Err(error) => {
                assert!(!allow_system && error.message.contains("with --script-allow-system"), "{error}");
            }
        }
    }
    std::fs::remove_dir_all(system).unwrap();
}

#[test]
fn values_are_shared_by_the_workers() {
    let source = load(
        "function make_request(a, b, c)
            local known = get_value('k')
            store_value('k', {n = (known and known.n or 0) + 1})
            return {x = tostring(known and known.n)}
        end
        function validate_response() return delete_value('k') end",
        world().1,
    )
    .unwrap();
    let mut workers: Vec<_> = (0..2).map(|index| source.open(Shard { index, of: 2 }, &[]).unwrap()).collect();
    let mut seen = Vec::new();
    for turn in 0..4 {
        let mut request = request();
        workers[turn % 2].make_request(0, &Session::new(0), &mut request).unwrap();
        seen.extend(shown(&request.fields));
    }
    assert_eq!(seen, ["x: nil", "x: 1", "x: 2", "x: 3"]);
    let none = fields(&[]);
    let deleted = [0, 1].map(|of| workers[of].validate_response(0, &received(200, &none, b"")).unwrap());
    assert_eq!(deleted, [true, false]);
}

#[test]
fn functions_of_the_program_mode() {
    let source = "function make_request()
        local a, b = generate_uuid_v4(), generate_uuid_v4()
        assert(a ~= b and a:match('^%x+%-%x+%-4%x+%-[89ab]%x+%-%x+$') and #a == 36)
        return {t = string.format('%d', time_since_epoch()), h = resolve_hostname('somewhere', 1000)}
    end";
    let (_, mut options) = world();
    let session = Session::new(0);
    let refused =
        open(source, options.clone()).unwrap().make_request(0, &session, &mut request()).unwrap_err();
    assert!(refused.message.starts_with("inline:4: `resolve_hostname` is not allowed: "), "{refused}");
    options.limits.allow_system = true;
    let mut request = request();
    open(source, options).unwrap().make_request(0, &session, &mut request).unwrap();
    let (time, host) = (request.fields.get("t"), request.fields.get("h"));
    assert_eq!((time, host), (Some(&b"1700000000123"[..]), Some(&b"10.0.0.1"[..])));
}

#[test]
fn what_a_worker_prints_is_shown_as_its_own() {
    let (world, options) = world();
    let source = load(
        "print('loaded', 1, nil, true)
        function make_request() io.write('half ', 2) io.stdout:write(' line\\nrest') end",
        options,
    )
    .unwrap();
    assert_eq!(world.printed(), [], "looking at a script shows nothing");
    let mut scripts = source.open(Shard { index: 1, of: 2 }, &[]).unwrap();
    scripts.make_request(0, &Session::new(0), &mut request()).unwrap();
    scripts.finish();
    let lines = ["script: loaded\t1\tnil\ttrue\n", "script: half 2 line\n", "script: rest"]
        .map(|line| (Some(1), line.to_owned()));
    assert_eq!(world.printed(), lines);
}

#[test]
fn random_numbers_differ_from_worker_to_worker_and_not_from_run_to_run() {
    let source = "function make_request() return {x = math.random(1e9)} end";
    let draw = |index| {
        let mut request = request();
        let mut scripts = load(source, world().1).unwrap().open(Shard { index, of: 2 }, &[]).unwrap();
        scripts.make_request(0, &Session::new(0), &mut request).unwrap();
        shown(&request.fields)
    };
    assert_eq!(draw(0), draw(0));
    assert_ne!(draw(0), draw(1));
}

#[test]
fn json_is_there_as_scripts_for_wrk_take_it() {
    let made = made(
        r#"local cjson = require "cjson"
        local safe = require("cjson.safe")
        function make_request(rh, rb, qh, qb)
            local id = cjson.decode(rb).id
            local list = cjson.decode('[1, 2.5, "x", null, {"a": []}]')
            assert(id == 7 and #list == 5 and list[4] == cjson.null and type(list[5].a) == "table")
            qh["x-one"] = cjson.encode({ id = id + 1 })
            qh["x-two"] = cjson.encode({ 1, 2.5, "x", cjson.null, true, {} })
            qh["x-three"] = tostring(select(2, safe.decode("{")))
            qh["x-four"] = tostring(pcall(cjson.encode, { f = print })) .. tostring(pcall(cjson.encode, 0 / 0))
                .. tostring(pcall(cjson.encode, { [1] = 1, [1000] = 2 })) .. tostring(pcall(cjson.decode, "{} {}"))
            return qh, '{"n":' .. cjson.encode({ ["2"] = "ä" }) .. "}"
        end"#,
    )
    .unwrap();
    let shown = shown(&made.fields);
    for expected in [
        r#"x-one: {"id":8}"#,
        r#"x-two: [1,2.5,"x",null,true,{}]"#,
        "x-three: not JSON: EOF while parsing an object at line 1 column 1",
        "x-four: falsefalsefalsefalse",
    ] {
        assert!(shown.iter().any(|line| line == expected), "{expected}: {shown:?}");
    }
}

/// The number of a metric, a value, and its tags.
type Recorded = (u16, String, Vec<(String, String)>);

/// The values that a script records of the metrics `cart` and `orders` when it judges a response.
fn recorded(add: &str) -> Result<Vec<Recorded>, String> {
    let (_, mut options) = world();
    options.limits.metrics = ["cart", "orders"].map(str::to_owned).to_vec();
    let source = format!("function validate_response(headers, body) {add} return true end");
    let mut scripts = open(&source, options).map_err(|error| error.message)?;
    let (fields, mut values) = (fields(&[]), Vec::new());
    let judged = scripts.validate_response(0, &received(200, &fields, b"12.5"));
    scripts.take_values(&mut values);
    match judged {
        Ok(_) => Ok(values.into_iter().map(|value| (value.metric, value.value, value.tags)).collect()),
        Err(error) => {
            assert!(values.is_empty(), "a call that fails records nothing");
            Err(error.message)
        }
    }
}

#[test]
fn scripts_record_values_of_declared_metrics() {
    let tags = |tags: &[(&str, &str)]| -> Vec<(String, String)> {
        tags.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let all = recorded(
        r#"plimsoll.metric("cart"):add(tonumber(body), {shop = "a", rack = 7})
           local orders = plimsoll.metric("orders")
           orders:add(2) orders:add("3") orders:add(true)"#,
    );
    let expected = [
        (0, "12.5".to_owned(), tags(&[("rack", "7"), ("shop", "a")])),
        (1, "2".to_owned(), tags(&[])),
        (1, "3".to_owned(), tags(&[])),
        (1, "true".to_owned(), tags(&[])),
    ];
    assert_eq!(all.unwrap(), expected);
    assert_eq!(recorded("for n = 1, 1000 do plimsoll.metric('cart'):add(n) end").unwrap().len(), 1_000);
}

#[test]
fn values_that_cannot_be_recorded_say_why() {
    for (add, why) in [
        ("plimsoll.metric('card'):add(1)", "no metric is called `card`: did you mean `cart`?"),
        (
            "plimsoll.metric('stock'):add(1)",
            "no metric is called `stock`: declare it in `metrics` of the plan",
        ),
        ("plimsoll.metric(nil):add(1)", "the name of a metric is a string, not a nil"),
        ("plimsoll.metric('cart').add(1)", "metric `cart`: write `metric:add(VALUE)`, with a colon"),
        ("plimsoll.metric('cart'):add()", "metric `cart`: `add` needs a value"),
        ("plimsoll.metric('cart'):add({})", "metric `cart`: a value is a number, true or false, not a table"),
        ("plimsoll.metric('cart'):add(1, 'a')", "tags are a table such as {shop = \"a\"}, not a string"),
        ("plimsoll.metric('cart'):add(1, {'a'})", "the name of a tag is a string, not a number"),
        ("plimsoll.metric('cart'):add(1, {['a b'] = 1})", "`a b` cannot be the name of a tag"),
        ("plimsoll.metric('cart'):add(1, {shop = {}})", "the tag `shop` is a table, not a string"),
        ("for n = 1, 1001 do plimsoll.metric('cart'):add(n) end", "one call records at most 1000 values"),
        (
            "local tags = {} for n = 1, 17 do tags['t' .. n] = n end plimsoll.metric('cart'):add(1, tags)",
            "a value has at most 16 tags",
        ),
    ] {
        let message = recorded(add).unwrap_err();
        assert!(message.contains(why), "{add}: {message}");
    }
}
