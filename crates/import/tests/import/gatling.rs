//! Simulations of Gatling.

use std::path::{Path, PathBuf};

use plimsoll_import::gatling::{Options, import};
use plimsoll_plan::Disk;

use crate::import::{Named, checked, shown};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gatling")
}

fn options(name: &str) -> Options {
    Options { name: name.to_owned() }
}

#[test]
fn examples() {
    for file in [
        "BasicSimulation.java",
        "Closed.java",
        "ComputerDatabase.scala",
        "ComputerDatabaseSimulation.java",
        "During.scala",
        "Forever.scala",
        "Loops.java",
        "Methods.java",
        "Recorded.java",
        "Staircase.java",
        "Switches.scala",
        "Unsupported.java",
        "api.gatling.ts",
        "basic.gatling.js",
        "stress.gatling.js",
    ] {
        let text = std::fs::read(folder().join(file)).unwrap();
        let name = file.split('.').next().unwrap_or_default();
        insta::assert_snapshot!(
            name,
            shown(&checked(import(&text, &options(file), &folder(), &Disk), &folder(), &Disk))
        );
    }
}

fn named(name: &str, text: &str) -> String {
    let files = Named(&[("two.csv", b"x,y\n1,2\n"), ("rows.json", b"[{\"x\": 1, \"y\": \"a\"}]")]);
    shown(&checked(import(text.as_bytes(), &options(name), Path::new(""), &files), Path::new(""), &files))
}

/// Lines without what is in front of them.
fn flat(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", line.trim_start())).collect()
}

/// The output for a simulation in each language whose scenario has these actions behind its first request.
fn all_of(actions: &str) -> [String; 3] {
    let java = named(
        "A.java",
        &format!(
            "class A extends Simulation {{\n  ScenarioBuilder scn = scenario(\"s\").exec(http(\"a\").get(\"/\"))\n\
             {actions};\n  {{ setUp(scn.injectOpen(atOnceUsers(1))).protocols(http.baseUrl(\"http://h\")); }}\n}}\n"
        ),
    );
    let scala = named(
        "A.scala",
        &format!(
            "class A extends Simulation {{\n  val scn = scenario(\"s\").exec(http(\"a\").get(\"/\"))\n    \
             {}\n  setUp(scn.inject(atOnceUsers(1))).protocols(http.baseUrl(\"http://h\"))\n}}\n",
            actions.replace(".then(", "(").replace(".orElse(", "(")
        ),
    );
    let script = named(
        "a.js",
        &format!(
            "export default simulation((setUp) => {{\n  const scn = scenario(\"s\").exec(http(\"a\").get(\"/\"))\n\
             {actions};\n  setUp(scn.injectOpen(atOnceUsers(1))).protocols(http.baseUrl(\"http://h\"));\n}});\n"
        ),
    );
    [java, scala, script]
}

/// A simulation in Java with this injection profile, and these words behind `setUp`.
fn injected(profile: &str, behind: &str) -> String {
    named(
        "A.java",
        &format!(
            "class A extends Simulation {{\n  ScenarioBuilder scn = scenario(\"s\").exec(http(\"a\").get(\"http://h/\"));\n\
             {{ setUp(scn.{profile}){behind}; }}\n}}\n"
        ),
    )
}

#[test]
fn profiles_are_loads() {
    for (profile, load) in [
        ("injectOpen(atOnceUsers(5))", "run:\niterations: 5\nusers: 5\n"),
        ("injectOpen(rampUsers(30).during(60))", "iterations: 30\nrate: 1/2s\n"),
        ("injectOpen(constantUsersPerSec(20).during(15))", "iterations: 300\nrate: 20\n"),
        (
            "injectOpen(constantUsersPerSec(2).during(Duration.ofMinutes(1)).randomized())",
            "arrival: poisson\n",
        ),
        ("injectOpen(rampUsersPerSec(10).to(20).during(10))", "stages: 1ms@10,9999ms@20\n"),
        (
            "injectOpen(nothingFor(4), atOnceUsers(10), rampUsers(10).during(5))",
            "stages: 4s@0,1ms@=10000,5s@=2\n",
        ),
        (
            "injectOpen(incrementUsersPerSec(5).times(2).eachLevelLasting(10).separatedByRampsLasting(5))",
            "stages: 10s@5,5s@10,10s@10\n",
        ),
        (
            "injectOpen(incrementUsersPerSec(5).times(2).eachLevelLasting(10).startingFrom(1))",
            "stages: 10s@1,10s@=6\n",
        ),
        ("injectOpen(stressPeakUsers(100).during(10))", "stages: 1ms@0,4999ms@20,5s@0\n"),
        ("injectClosed(constantConcurrentUsers(10).during(10))", "duration: 10s\nusers: 10\n"),
        (
            "injectClosed(rampConcurrentUsers(0).to(10).during(10), constantConcurrentUsers(10).during(5))",
            "user_stages: 1ms@0,9999ms@10,5s@10\n",
        ),
        (
            "injectClosed(incrementConcurrentUsers(5).times(2).eachLevelLasting(10).startingFrom(10))",
            "user_stages: 10s@10,10s@=15\n",
        ),
        (
            "injectOpen(rampUsers(users).during(10))",
            "error: A.java:3: `rampUsers(users).during(10)` is not an injection profile",
        ),
        ("exec(pause(1))", "error: A.java:3: `scn.exec(pause(1))` has no injection profile\n"),
    ] {
        let text = injected(profile, "");
        assert!(flat(&text).contains(load), "{profile}: {text}");
    }
    let cut = injected("injectOpen(rampUsersPerSec(0).to(10).during(10))", ".maxDuration(5)");
    assert!(
        cut.contains("stages: 1ms@0,4999ms@5\n") && cut.contains("maxDuration`: the load ends after 5s"),
        "{cut}"
    );
    let limit = injected("injectOpen(atOnceUsers(3))", ".maxDuration(Duration.ofSeconds(5))");
    assert!(limit.contains("duration: 5s\n  iterations: 3\n"), "{limit}");
}

#[test]
fn assertions_are_thresholds() {
    for (assertion, threshold) in [
        ("global().responseTime().max().lt(50)", "- max{all}<50ms\n"),
        ("global().responseTime().percentile3().lte(800)", "- p95{all}<=800ms\n"),
        ("global().responseTime().percentile(99.9).lt(800)", "- p99.9{all}<800ms\n"),
        ("global().responseTime().mean().between(10, 20)", "- mean{all}>=10ms\n- mean{all}<=20ms\n"),
        ("global().failedRequests().percent().lt(1.5)", "- error_rate<1.5%\n"),
        ("global().failedRequests().count().is(0L)", "- errors<=0\n"),
        ("global().successfulRequests().percent().gt(99.5)", "- error_rate<0.5%\n"),
        ("global().requestsPerSec().gte(100.0)", "- rate>=100\n"),
        ("forAll().responseTime().max().lt(50)", "- that: max{all}<50ms\nscenario: s\nstep: a\n"),
        ("details(\"a\").responseTime().max().lt(50)", "- that: max{all}<50ms\nscenario: s\nstep: a\n"),
        ("details(\"b\").responseTime().max().lt(50)", "no request has this name"),
        ("global().responseTime().stdDev().lt(5)", "plans have no such threshold"),
    ] {
        let text = injected("injectOpen(atOnceUsers(1))", &format!(".assertions({assertion})"));
        assert!(flat(&text).contains(threshold), "{assertion}: {text}");
    }
}

/// Words that are the same in all languages.
#[test]
fn actions_are_steps_in_each_language() {
    for (actions, expected) in [
        (".pause(2)", "think: 2s\n"),
        (".pause(1, 3)", "think:\nuniform:\n- 1s\n- 3s\n"),
        (".pause(\"#{x}\")", "a pause has a fixed time or a range of times in a plan"),
        (".exec(http(\"b\").get(\"/#{x}?y=#{y}\"))", "get: /${x}?y=${y}\n"),
        (".exec(http(\"b\").get(\"/\" + 1 + 2))", "get: /12\n"),
        (".exec(http(\"b\").get(\"http://i/x\"))", "get: http://i/x\n"),
        (".exec(http(\"b\").get(\"/a\").queryParam(\"q\", \"a b\"))", "get: /a?q=a%20b\n"),
        (".exec(http(\"b\").get(\"/a\").queryParam(\"q\", \"#{x}\"))", "get: /a?q=${x}\n"),
        (".exec(http(\"b\").post(\"/a\").body(StringBody(\"{\\\"a\\\":1}\")))", "body: \"{\\\"a\\\":1}\"\n"),
        (".exec(http(\"b\").post(\"/a\").formParam(\"a\", \"#{x}\"))", "body: a=${urlencode(${x})}\n"),
        (".exec(http(\"b\").post(\"/a\").asFormUrlEncoded())", "application/x-www-form-urlencoded\n"),
        (".exec(http(\"b\").get(\"/a\").header(\"X-A\", \"#{randomUuid()}\"))", "X-A: ${uuid}\n"),
        (".exec(http(\"b\").get(\"/a\").basicAuth(\"ann\", \"pw\"))", "authorization: Basic YW5uOnB3\n"),
        (".exec(http(\"b\").get(\"/a\").requestTimeout(5))", "timeout: 5s\n"),
        (".group(\"g\").on(exec(http(\"b\").get(\"/a\")))", "name: \"g: b\"\n"),
        (".repeat(3).on(exec(http(\"b\").get(\"/a\")))", "repeat: 3\n"),
        (".repeat(2, \"n\").on(exec(http(\"b\").get(\"/#{n}\")))", "- set:\n\"n\": 1\n- name: b (2)\n"),
        (".repeat(2, \"n\").on(exec(http(\"b\").get(\"/a\")))", "repeat: 2\n"),
        (
            ".repeat(3).on(pace(5).exec(http(\"b\").get(\"/b\")))",
            "- repeat: 3\nsteps:\n- name: b\nget: /b\non_failure: continue\nthink:\npace: 5s\n",
        ),
        (
            ".repeat(3).on(exec(http(\"b\").get(\"/b\")).pace(1, 2).exec(http(\"c\").get(\"/c\")))",
            "think:\npace: 1500ms\n- name: c\n",
        ),
        (".pace(5)", "it waits for nothing outside a loop"),
        (
            ".repeat(3).on(pace(9).exec(http(\"b\").get(\"/b\")).pace(3).exec(http(\"c\").get(\"/c\")))",
            "the paces of an iteration share one clock here",
        ),
        (".repeat(\"#{x}\").on(exec(http(\"b\").get(\"/a\")))", "repeat: ${x}\n"),
        (".doIf(\"#{x}\").then(exec(http(\"b\").get(\"/a\")))", "if: ${x} == true\n"),
        (".doIfEquals(\"#{x}\", \"y\").then(exec(http(\"b\").get(\"/a\")))", "if: ${x} == \"y\"\n"),
        (
            ".doIfEqualsOrElse(\"#{x}\", \"y\").then(exec(http(\"b\").get(\"/a\"))).orElse(exec(http(\"c\").get(\"/c\")))",
            "else:\n- name: c\nget: /c\n",
        ),
        (
            ".randomSwitch().on(percent(25).then(exec(http(\"b\").get(\"/a\"))))",
            "choice: ${random_float(0, 1, 9)}\n- if: ${choice} < 0.25\nthen:\n",
        ),
        (".asLongAs(\"#{x}\").on(exec(http(\"b\").get(\"/a\")))", "while: ${x} == true\n"),
        (
            ".feed(csv(\"two.csv\").random()).exec(http(\"b\").get(\"/#{x}\"))",
            "csv: two.csv\norder: random\n",
        ),
        (".feed(csv(\"two.csv\")).exec(http(\"b\").get(\"/#{x}\"))", "at_end: stop\n"),
        (
            ".feed(csv(\"none.csv\")).exec(http(\"b\").get(\"/\"))",
            "a plan does not allow this: cannot read `none.csv`",
        ),
        (
            ".exitHereIfFailed().exec(http(\"b\").get(\"/b\"))",
            "get: /\n- name: b\nget: /b\non_failure: continue\n",
        ),
        (".exec(http(\"b\").get(\"/a\").disableFollowRedirect())", "redirects are followed by all requests"),
        (".exec(http(\"b\").get(\"/a\").check(status().is(201)))", "status:\n- 201\n"),
        (".exec(http(\"b\").get(\"/a\").check(status().in(200, 201)))", "status:\n- 200\n- 201\n"),
        (".exec(http(\"b\").get(\"/a\").check(status().not(404)))", "- \"200-403\"\n- \"405-599\"\n"),
        (".exec(http(\"b\").get(\"/a\").check(jsonPath(\"$.a\").is(\"x\")))", "$.a:\nequals: x\n"),
        (".exec(http(\"b\").get(\"/a\").check(jsonPath(\"$.a\").exists()))", "$.a:\nexists: true\n"),
        (".exec(http(\"b\").get(\"/a\").check(jmesPath(\"a.b\").ofInt().is(1)))", "$.a.b:\nequals: 1\n"),
        (
            ".exec(http(\"b\").get(\"/a\").check(jsonPath(\"$.a\").optional().saveAs(\"x\")))",
            "extract:\nx:\njson: $.a\ndefault: \"\"\n",
        ),
        (".exec(http(\"b\").get(\"/a\").check(regex(\"a(.+)b\").saveAs(\"x\")))", "x:\nregex: a(.+)b\n"),
        (".exec(http(\"b\").get(\"/a\").check(regex(\"<b>(.+)</b>\").is(\"x\")))", "regex: <b>x</b>\n"),
        (".exec(http(\"b\").get(\"/a\").check(header(\"X-A\").saveAs(\"x\")))", "x:\nheader: x-a\n"),
        (".exec(http(\"b\").get(\"/a\").check(bodyString().is(\"x\")))", "body:\n- equals: x\n"),
        (".exec(http(\"b\").get(\"/a\").check(substring(\"x\").notExists()))", "contains: x\nnot: true\n"),
        (".exec(http(\"b\").get(\"/a\").check(responseTimeInMillis().lt(5)))", "- that: max<5ms\n"),
        (".exec(http(\"b\").get(\"/a\").check(css(\"a\")))", "plans have no CSS selectors"),
        (
            ".exec(http(\"b\").get(\"/a\").check(jsonPath(\"$..a\").findAll().saveAs(\"x\")))",
            "plans have no such part",
        ),
        (
            ".exec(http(\"b\").get(\"/a\").resources(http(\"c\").get(\"/c\"), http(\"d\").get(\"/d\")))",
            "- parallel:\n",
        ),
        (".exec(unknown)", "there is no such action: it is left out"),
        (".exec(http(\"b\").trace(\"/\"))", "plans have no such request: it is left out"),
        (".exec(ws(\"b\").connect(\"/ws\"))", "only requests of HTTP are taken over"),
    ] {
        let [java, scala, script] = all_of(actions);
        for text in [&java, &scala, &script] {
            assert!(flat(text).contains(expected), "{actions}\n{text}");
        }
        // The plan is the same; only the names of the files in notes differ.
        let plan = |text: &str| {
            text.lines().filter(|line| !line.starts_with("note: ")).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(plan(&java), plan(&scala), "{actions}");
        assert_eq!(plan(&java), plan(&script), "{actions}");
    }
}

/// Users who repeat their steps for ever begin them at the times of a pace, wherever it stands.
#[test]
fn a_pace_of_users_who_stay_is_that_of_their_iterations() {
    for (body, steps) in [
        (
            "pace(5).exec(http(\"b\").get(\"/b\"))",
            "- name: b\nget: /b\non_failure: continue\nthink:\npace: 5s\n",
        ),
        (
            "exec(http(\"b\").get(\"/b\")).pace(5).exec(http(\"c\").get(\"/c\"))",
            "think:\npace: 5s\n- name: c\n",
        ),
        (
            "exec(http(\"b\").get(\"/b\")).pace(5)",
            "- name: b\nget: /b\non_failure: continue\nthink:\npace: 5s\n",
        ),
    ] {
        let staying = "class A extends Simulation { { setUp(scenario(\"s\").forever().on(BODY)\
                       .injectOpen(atOnceUsers(3))).protocols(http.baseUrl(\"http://h\")).maxDuration(60); } }";
        let text = named("A.java", &staying.replace("BODY", body));
        assert!(flat(&text).contains(steps), "{body}: {text}");
        assert!(flat(&text).contains("users: 3\n"), "{body}: {text}");
        assert_eq!(text.contains("what follows it comes on top"), body.contains("/c"), "{body}: {text}");
    }
}

#[test]
fn mistakes() {
    let mut text = String::new();
    for (name, simulation) in [
        ("", ""),
        ("", "hello"),
        ("A.java", "class A {"),
        ("A.java", "class A { int x = ; }"),
        ("A.java", "class A extends Simulation { }"),
        ("A.scala", "class A extends Simulation { val x = ) }"),
        ("a.js", "simulation((setUp) => {"),
        ("A.kt", "class A : Simulation()"),
        ("", "import io.gatling.javaapi.core.*\nclass A : Simulation() { }"),
        ("A.java", "print('hello')\n  indented: yes"),
        ("A.java", "class A { { setUp(scn.injectOpen(atOnceUsers(1))); } }"),
        (
            "A.java",
            "class A { { setUp(scenario(\"a\").exec(http(\"a\").get(\"/\")).injectOpen(atOnceUsers(1))); } }",
        ),
        (
            "A.java",
            "class A { { setUp(scenario(\"a\").exec(http(\"a\").get(\"/\")).injectOpen(atOnceUsers(1)))\
             .protocols(http.baseUrl(host)); } }",
        ),
        ("A.java", "class A { { setUp(scenario(\"a\").pause(1).injectOpen(atOnceUsers(1))); } }"),
        (
            "A.java",
            "class A { { setUp(scenario(\"a\").exec(http(\"a\").post(\"http://h/\").body(ElFileBody(\"none\")))\
             .injectOpen(atOnceUsers(1))); } }",
        ),
    ] {
        text.push_str(&format!("# {name} {}\n{}\n", simulation.replace('\n', " "), named(name, simulation)));
    }
    insta::assert_snapshot!(text);
}

/// Names that stand for each other, and chains that are written out again and again.
#[test]
fn simulations_that_go_on_for_ever_are_bounded() {
    let many = (0..60).map(|n| format!("ChainBuilder c{} = exec(c{n}, c{n});\n", n + 1)).collect::<String>();
    for body in [
        format!("ChainBuilder c0 = exec(http(\"a\").get(\"http://h/\"));\n{many}ScenarioBuilder s = scenario(\"s\").exec(c60);"),
        "ChainBuilder a = exec(b); ChainBuilder b = exec(a); ScenarioBuilder s = scenario(\"s\").exec(a);".to_owned(),
        "ChainBuilder a = b; ChainBuilder b = a; ScenarioBuilder s = scenario(\"s\").exec(a);".to_owned(),
        "ChainBuilder f(int n) { return exec(f(n + 1), f(n + 1)); } ScenarioBuilder s = scenario(\"s\").exec(f(0));"
            .to_owned(),
        "ScenarioBuilder s = s.exec(http(\"a\").get(\"http://h/\"));".to_owned(),
        "String a = a + a; ScenarioBuilder s = scenario(\"s\").exec(http(a).get(\"http://h/\" + a));".to_owned(),
        "ScenarioBuilder s = scenario(\"s\").repeat(999, \"a\").on(repeat(999, \"b\").on(repeat(999, \"c\").on(\
         exec(http(\"x\").get(\"http://h/#{a}#{b}#{c}\")))));"
            .to_owned(),
    ] {
        let text = named(
            "A.java",
            &format!("class A extends Simulation {{ {body}\n {{ setUp(s.injectOpen(atOnceUsers(1))); }} }}"),
        );
        assert!(!text.is_empty() && text.len() < 64 << 20, "{body}: {}", text.len());
    }
}

#[test]
fn nesting_is_bounded() {
    for (name, begin, end) in [
        ("A.java", "class A { int x = ", "; }"),
        ("A.scala", "class A { val x = ", " }"),
        ("a.js", "const x = ", ";"),
    ] {
        for (open, close) in
            [("(", ")"), ("f(", ")"), ("exec(", ")"), ("[", "]"), ("{", "}"), ("-", "1"), ("a + ", "1")]
        {
            for times in [200, 4_000] {
                let text = named(name, &format!("{begin}{}{}{end}", open.repeat(times), close.repeat(times)));
                assert!(text.starts_with("error: ") || text.starts_with("note: "), "{name} {open}: {text}");
            }
        }
        let chain = format!("{begin}a{}{end}", ".exec(b)".repeat(15_000));
        assert!(named(name, &chain).starts_with("error: "), "{name}");
    }
    // Each bracket makes the scanner look for the end of a text: hours, without a limit of time.
    let slow = format!("class A {{ val x = {} }}", "[".repeat(500_000));
    assert!(named("A.scala", &slow).starts_with("error: A.scala:1: it takes longer than 5 s to read\n"));
    // A chain is one level, however long it is.
    let actions = ".exec(http(\"b\").get(\"/b\"))".repeat(400);
    for text in all_of(&actions) {
        assert!(text.contains("name: b (400)\n"), "{}", &text[..200.min(text.len())]);
    }
    let long = format!("class A {{ String s = \"{}\"; }}", "a".repeat(2 << 20));
    assert!(named("A.java", &long).starts_with("error: A.java:1: it is longer than 1 MiB\n"));
}

#[test]
fn forms_of_several_parts_are_taken_over() {
    let actions = ".exec(http(\"up\").post(\"/up\").asMultipartForm().formParam(\"a b\", \"#{x}&\")\
                   .formUpload(\"rows\", \"rows.json\")\
                   .bodyPart(StringBodyPart(\"note\", \"hi #{x}\").contentType(\"text/x\"))\
                   .bodyPart(RawFileBodyPart(\"csv\", \"two.csv\").fileName(\"2.csv\").contentId(\"7\"))\
                   .formUpload(\"none\", \"none.bin\"))";
    let [java, scala, script] = all_of(actions).map(|plan| flat(&plan));
    let form = "- name: up\npost: /up\nmultipart:\n- name: a b\nvalue: ${x}&\n- name: rows\nfile: rows.json\n\
                - name: note\nvalue: hi ${x}\ncontent_type: text/x\n- name: csv\nfile: two.csv\n\
                filename: 2.csv\n";
    for plan in [&java, &scala, &script] {
        assert!(plan.contains(form), "{plan}");
        assert!(!plan.contains("content-type"), "{plan}");
        for note in
            ["contentId", "parts of forms have nothing like it here", "none.bin", "an empty one is sent"]
        {
            assert!(plan.contains(note), "{note}: {plan}");
        }
    }
}
