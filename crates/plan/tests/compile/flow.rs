//! Every variable that is read has been set before, whichever way the session came.

use crate::compile::plans::{messages, plan, steps};

#[test]
fn variables_are_set_on_every_way() {
    let take = "extract: {x: {header: a}}";
    for text in [
        format!("- {{get: /, {take}}}\n- get: /${{x}}"),
        "- set: {x: a, y: '${x}'}\n- get: /${y}".to_owned(),
        format!("- {{if: 1 == 1, then: [{{get: /a, {take}}}], else: [{{set: {{x: b}}}}]}}\n- get: /${{x}}"),
        format!("- {{repeat: 2, steps: [{{get: /, {take}}}]}}\n- get: /${{x}}"),
        format!("- {{parallel: [{{get: /a, {take}}}, {{get: /b}}]}}\n- get: /${{x}}"),
        format!("- {{if: exists x, then: [{{get: '/${{x}}'}}]}}\n- {{get: /, {take}}}"),
        format!("- {{if: not exists x, then: [{{get: /, {take}}}]}}\n- get: /${{x}}"),
        format!("- {{get: /, {take}}}\n- {{while: '${{x}} == 1', steps: [{{get: '/${{x}}'}}]}}"),
    ] {
        assert_eq!(messages(&steps(&text)), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn what_may_not_be_set_is_refused() {
    let take = "extract: {x: {header: a}}";
    for (text, expected) in [
        (format!("- get: /${{x}}\n- {{get: /b, {take}}}"), "`x` may not be set here"),
        (format!("- {{get: '/${{x}}', {take}}}"), "`x` may not be set here"),
        (format!("- {{if: 1 == 1, then: [{{get: /a, {take}}}]}}\n- get: /${{x}}"), "`x` may not be set here"),
        (
            format!("- {{while: 1 == 1, steps: [{{get: /, {take}}}]}}\n- get: /${{x}}"),
            "`x` may not be set here",
        ),
        (
            format!("- set: {{n: '0'}}\n- {{repeat: '${{n}}', steps: [{{get: /, {take}}}]}}\n- get: /${{x}}"),
            "`x` may not be set here",
        ),
        (format!("- {{parallel: [{{get: /a, {take}}}, {{get: '/${{x}}'}}]}}"), "`x` may not be set here"),
        (format!("- {{if: '${{x}} == 1', then: [{{get: /, {take}}}]}}"), "`x` may not be set here"),
        ("- get: /${base64(x)}\n- set: {x: a}".to_owned(), "`x` may not be set here"),
        ("- {get: /, headers: {A: '${x}'}}\n- set: {x: a}".to_owned(), "`x` may not be set here"),
        ("- {get: /, expect: {body: '${x}'}}\n- set: {x: a}".to_owned(), "`x` may not be set here"),
    ] {
        assert_eq!(messages(&steps(&text)), [expected], "{text}");
    }
}

#[test]
fn another_scenario_sets_nothing_here() {
    let text = "
targets: {a: http://a.test}
scenarios:
  - {name: a, steps: [{get: /, extract: {token: {header: t}}}]}
  - {name: b, steps: [{get: '/${token}'}]}";
    assert_eq!(messages(text), ["`token` is never set in this scenario"]);
}

#[test]
fn first_values_read_what_is_above_them() {
    let text = |variables: &str| format!("variables: {variables}\n{}", steps("- get: /${a}${b}"));
    plan(&text("{a: '1', b: '${a}'}"));
    let message = "`b` is not set yet where this first value is made";
    assert_eq!(messages(&text("{a: '${b}', b: '1'}")), [message]);
}

#[test]
fn names_of_variables() {
    for (name, wrong) in [("uuid", true), ("1a", true), ("a b", true), ("a-b.c_1", false), ("größe", false)]
    {
        let text = format!("variables: {{'{name}': x}}\n{}", steps("- get: /"));
        assert_eq!(!messages(&text).is_empty(), wrong, "{name}");
    }
}
