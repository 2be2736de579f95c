//! Number of requests in an iteration, as derived from the steps.

use crate::compile::plans::{plan, steps};

fn length(scenarios: &str) -> ((u64, u64), Option<(u64, u64)>, bool) {
    let length = plan(scenarios).iteration_length();
    (length.least, length.most, length.is_average)
}

#[test]
fn loops_multiply_and_conditions_give_bounds() {
    let request = "{get: /}";
    for (text, least, most) in [
        ("- get: /", 1, Some(1)),
        ("- get: /\n- think: 1s\n- get: /", 2, Some(2)),
        ("- {repeat: 3, steps: [{get: /}, {repeat: 4, steps: [{get: /}]}]}", 15, Some(15)),
        ("- {parallel: [{get: /a}, {get: /b}, {get: /c}]}", 3, Some(3)),
        ("- get: /\n- {if: '1 == 1', then: [{get: /}, {get: /}]}\n- get: /", 2, Some(4)),
        ("- {if: '1 == 1', then: [{get: /}, {get: /}], else: [{get: /}]}\n- get: /", 2, Some(3)),
        (
            "- {if: '1 == 1', then: [{if: '1 == 2', then: [{get: /}], else: [{get: /}]}], else: [{think: 1s}]}",
            0,
            Some(1),
        ),
        ("- get: /\n- {while: '1 == 1', steps: [{get: /}]}", 1, None),
        (
            "- get: /\n- {while: '1 == 1', steps: [{think: 1s}, {if: '1 == 2', then: [{think: 1s}]}]}",
            1,
            Some(1),
        ),
        ("- get: /\n- {repeat: '${sequence}', steps: [{get: /}]}\n- get: /", 2, None),
        (
            "- {repeat: 2, steps: [{if: '1 == 1', then: [{repeat: 2, steps: [{get: /}]}]}, {get: /}]}",
            2,
            Some(6),
        ),
    ] {
        let found = length(&steps(text));
        assert_eq!(found, ((least, 1), most.map(|most| (most, 1)), false), "{text} {request}");
    }
}

#[test]
fn weights_make_an_average() {
    let of = |scenarios: &str| length(&format!("targets: {{a: http://a.test}}\nscenarios: {scenarios}"));
    let three = "{name: b, weight: 1, steps: [{repeat: 3, steps: [{get: /}]}]}";
    assert_eq!(
        of(&format!("[{{name: a, weight: 3, steps: [{{get: /}}]}}, {three}]")),
        ((3, 2), Some((3, 2)), true)
    );
    assert_eq!(of(&format!("[{{name: a, steps: [{{get: /}}]}}, {three}]")), ((2, 1), Some((2, 1)), true));
    let open = "{name: a, weight: 3, steps: [{get: /}, {while: '1 == 1', steps: [{get: /}]}]}";
    assert_eq!(of(&format!("[{open}, {three}]")), ((3, 2), None, true));
    let same = "{name: a, weight: 7, steps: [{get: /}, {get: /}, {get: /}]}";
    assert_eq!(of(&format!("[{same}, {three}]")), ((3, 1), Some((3, 1)), false));
}
