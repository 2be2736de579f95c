//! Number of requests in an iteration, as derived from the steps.

use proptest::prelude::*;

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

/// Steps and their bounds, by the meaning of the steps.
#[derive(Clone, Debug)]
enum Tree {
    Get,
    Think,
    Parallel(u64),
    Repeat(u64, Vec<Tree>),
    RepeatUnknown(Vec<Tree>),
    While(Vec<Tree>),
    If(Vec<Tree>, Vec<Tree>),
}

impl Tree {
    fn yaml(&self) -> String {
        let list = |steps: &[Self]| steps.iter().map(Self::yaml).collect::<Vec<_>>().join(", ");
        match self {
            Self::Get => "{get: /}".to_owned(),
            Self::Think => "{think: 1s}".to_owned(),
            Self::Parallel(count) => {
                format!("{{parallel: [{}]}}", vec!["{get: /}"; *count as usize].join(", "))
            }
            // A loop has to take time.
            Self::Repeat(times, steps) => {
                format!("{{repeat: {times}, steps: [{{think: 1s}}, {}]}}", list(steps))
            }
            Self::RepeatUnknown(steps) => {
                format!("{{repeat: '${{sequence}}', steps: [{{think: 1s}}, {}]}}", list(steps))
            }
            Self::While(steps) => format!("{{while: '1 == 1', steps: [{{think: 1s}}, {}]}}", list(steps)),
            Self::If(then, otherwise) if otherwise.is_empty() => {
                format!("{{if: '1 == 1', then: [{}]}}", list(then))
            }
            Self::If(then, otherwise) => {
                format!("{{if: '1 == 1', then: [{}], else: [{}]}}", list(then), list(otherwise))
            }
        }
    }

    /// The fewest requests, and the most if there is a limit.
    fn bounds(&self) -> (u64, Option<u64>) {
        match self {
            Self::Get => (1, Some(1)),
            Self::Think => (0, Some(0)),
            Self::Parallel(count) => (*count, Some(*count)),
            Self::Repeat(times, steps) => {
                let (least, most) = sum(steps);
                (least * times, most.map(|most| most * times))
            }
            Self::RepeatUnknown(steps) | Self::While(steps) => (0, sum(steps).1.filter(|most| *most == 0)),
            Self::If(then, otherwise) => {
                let ((one, one_most), (other, other_most)) = (sum(then), sum(otherwise));
                (one.min(other), one_most.zip(other_most).map(|(one, other)| one.max(other)))
            }
        }
    }
}

fn sum(steps: &[Tree]) -> (u64, Option<u64>) {
    steps.iter().map(Tree::bounds).fold((0, Some(0)), |(least, most), (more, further)| {
        (least + more, most.zip(further).map(|(one, other)| one + other))
    })
}

fn trees() -> impl Strategy<Value = Vec<Tree>> {
    let leaf = prop_oneof![Just(Tree::Get), Just(Tree::Think), (2_u64..4).prop_map(Tree::Parallel)];
    let tree = leaf.prop_recursive(3, 16, 3, |inner| {
        let some = || prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            (1_u64..5, some()).prop_map(|(times, steps)| Tree::Repeat(times, steps)),
            some().prop_map(Tree::RepeatUnknown),
            some().prop_map(Tree::While),
            (some(), prop::collection::vec(inner.clone(), 0..3))
                .prop_map(|(then, other)| Tree::If(then, other)),
        ]
    });
    prop::collection::vec(tree, 0..5)
}

proptest! {
    /// However loops and branches are nested, the bounds are those that the steps mean.
    #[test]
    fn bounds_are_those_of_the_steps(mut trees in trees()) {
        trees.push(Tree::Get);
        let text = trees.iter().map(|tree| format!("- {}", tree.yaml())).collect::<Vec<_>>().join("\n");
        let (least, most) = sum(&trees);
        let expected = ((least, 1), most.map(|most| (most, 1)), false);
        prop_assert_eq!(length(&steps(&text)), expected, "{}", text);
    }
}
