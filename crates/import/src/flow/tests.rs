use plimsoll_document::Document;

use super::*;

fn slot(inside: &str) -> Slot {
    match inside.strip_prefix('$') {
        None => Slot::Variable(inside.to_owned()),
        Some("uuid") => Slot::Template("uuid".to_owned()),
        Some("default") => Slot::Default("x".to_owned(), "env(a, x)".to_owned()),
        Some("near") => Slot::Noted("sequence".to_owned(), "nearly".to_owned()),
        Some(_) => Slot::Unknown("unknown".to_owned()),
    }
}

fn variables() -> Variables {
    let mut variables = Variables::new(Syntax { open: "{{", close: "}}", slot });
    variables.define("host", "h:{{port}}", "");
    variables.define("port", "8080", "");
    variables.define("base", "https://{{host}}/v1/", "");
    variables.define("user-id", "7", "");
    variables
}

#[test]
fn texts_become_templates_of_plans() {
    let mut variables = variables();
    let mut findings = Findings::default();
    for (writing, text, template) in [
        (Writing::Plain, "", ""),
        (Writing::Plain, "a {{user-id}} ${b} {{$uuid}}", "a ${user_id} $${b} ${uuid}"),
        (Writing::Plain, "{{ user-id }}{{$default}}{{$near}}", "${user_id}${env(a, x)}${sequence}"),
        (Writing::Plain, "${{port}}", "${dollar}${port}"),
        (Writing::Plain, "{{$other}} {{", "{{$other}} {{"),
        (Writing::Plain, "{{}} {{a\nb}}", "{{}} {{a\nb}}"),
        (Writing::Target, "/a b?c=${d}&e={{port}}%20ä", "/a%20b?c=$%7Bd%7D&e=${port}%20%C3%A4"),
        (Writing::Query, "a&b={{port}}", "a%26b%3D${port}"),
        (Writing::Form, "a b&{{port}}={{$uuid}}", "a+b%26${urlencode(${port})}%3D${uuid}"),
    ] {
        assert_eq!(variables.template(text, writing, "at", &mut findings), template, "{text}");
    }
    let notes = findings.finish(Document::default()).unwrap().notes;
    let said: Vec<&str> = notes.iter().map(|note| note.said.as_str()).collect();
    assert_eq!(said, ["{{$near}}", "{{$other}}"]);
}

/// Symptom: a function in the value of a variable was sent as it is written.
#[test]
fn values_in_paths_keep_their_functions() {
    let mut variables = variables();
    variables.define("path", "users/{{$uuid}}/{{late}}?a={{port}}", "");
    variables.define("one", "/{{two}}", "");
    variables.define("two", "/{{one}}", "");
    let mut findings = Findings::default();
    let address = |variables: &mut Variables, url: &str, findings: &mut Findings| {
        variables.address(url, None, "at", "hint", findings).map(|address| address.path)
    };
    let path = address(&mut variables, "http://h/{{path}}", &mut findings);
    assert_eq!(path.as_deref(), Some("/users/${uuid}/${late}?a=8080"));
    assert!(address(&mut variables, "http://h/{{one}}", &mut findings).is_some());
}

#[test]
fn slots_that_do_not_end_are_no_work() {
    let mut findings = Findings::default();
    for text in ["{{\n", "{{ ", "{{a\n}}", "{{}}", "{{a}}"] {
        let many = text.repeat(100_000);
        variables().template(&many, Writing::Plain, "at", &mut findings);
        variables().template(&format!("{many}}}}}"), Writing::Target, "at", &mut findings);
    }
    let braces = Syntax { open: "${", close: "}", slot };
    for text in ["${\n", "${", "${a}", "${${a}"] {
        let many = text.repeat(100_000);
        Variables::new(braces).template(&many, Writing::Plain, "at", &mut findings);
        Variables::new(braces).template(&(many + &"}".repeat(100_000)), Writing::Plain, "at", &mut findings);
    }
}

#[test]
fn addresses_are_known_before_the_run() {
    let mut variables = variables();
    let mut findings = Findings::default();
    for (url, base, origin, path) in [
        ("http://h/{{base}}", None, "http://h", "/https://h:8080/v1/"),
        ("{{base}}users/{{user-id}}", None, "https://h:8080", "/v1/users/${user_id}"),
        ("http://{{host}}/a?b={{c}}", None, "http://h:8080", "/a?b=${c}"),
        ("{{host}}", None, "http://h:8080", "/"),
        ("h/a", None, "http://h", "/a"),
        ("http://h?a#b", None, "http://h", "/?a"),
        ("/a", Some("http://g/b/"), "http://g", "/b/a"),
        ("a", Some("http://g"), "http://g", "/a"),
        ("", Some("http://g"), "http://g", "/"),
        ("{{next}}", Some("http://g"), "", "${next}"),
        ("http://other/x", Some("http://g"), "http://other", "/x"),
        ("http://h/{{$uuid}}?{{a}}", None, "http://h", "/${uuid}?${a}"),
    ] {
        let address =
            variables.address(url, base, "at", "hint", &mut findings).unwrap_or_else(|| panic!("{url}"));
        assert_eq!((address.origin.as_str(), address.path.as_str()), (origin, path), "{url}");
    }
    assert!(!findings.has_problems());
    for url in ["{{unknown}}/a", "http://{{unknown}}.h/", "/a", "", "ftp://h/", "http://h h/"] {
        let mut findings = Findings::default();
        assert!(variables.address(url, None, "at", "hint", &mut findings).is_none(), "{url}");
        assert!(findings.has_problems(), "{url}");
    }
}

#[test]
fn values_that_name_each_other_end() {
    let mut variables = Variables::new(Syntax { open: "{{", close: "}}", slot });
    variables.define("a", "{{b}}{{b}}", "");
    variables.define("b", "{{a}}{{a}}", "");
    for level in 0..40 {
        variables.define(&format!("x{level}"), &format!("{{{{x{}}}}}", level + 1).repeat(10), "");
    }
    assert!(variables.expanded("{{a}}").len() <= LONGEST_EXPANDED * 2);
    assert!(variables.expanded("{{x0}}").len() <= LONGEST_EXPANDED * 2);
    let mut findings = Findings::default();
    assert!(variables.address("http://{{a}}/", None, "at", "hint", &mut findings).is_none());
}

#[test]
fn a_group_of_an_expression_is_the_only_one() {
    use super::check::only_group;
    for (expression, group, only) in [
        ("a(b)(c)", 1, Some("a(b)(?:c)")),
        ("a(b)(c)", 2, Some("a(?:b)(c)")),
        ("a(b)(c)", 0, Some("a(?:b)(?:c)")),
        ("a\\((?:b)[(](c)", 1, Some("a\\((?:b)[(](c)")),
        ("a", 0, Some("a")),
        ("a", 1, None),
        ("(?=a)", 0, None),
    ] {
        assert_eq!(only_group(expression, group).as_deref(), only, "{expression} {group}");
    }
}

#[test]
fn variables_that_may_be_read_too_early_get_a_first_value() {
    let mut variables = variables();
    let mut findings = Findings::default();
    let mut document = Document::default();
    let mut first = draft::request("GET", "http://h/${user_id}/${late}");
    first.extract.push(variables.name("taken"), Field::new(check::extract(&check::Place::Body)));
    variables.name("late");
    let second = draft::request("GET", "http://h/${taken}?$${port}");
    document.scenarios.push(Field::new(draft::scenario("a", vec![first, second])));
    settle(&mut document, variables, &mut findings);
    let imported = findings.finish(document).unwrap();
    let names: Vec<&str> = imported.document.variables.0.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["late", "user_id"]);
    let notes: Vec<String> = imported.notes.iter().map(ToString::to_string).collect();
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(
        notes[0].starts_with("variables: `late`: ") && notes[1].contains("`base`: no step needs"),
        "{notes:?}"
    );
    assert_eq!(imported.document.targets.0.len(), 1);
}
