//! Conditions on variables.

mod number;
mod parse;

use std::cmp::Ordering;

use crate::pattern::{Pattern, TooMuchWork, Work};
use crate::program::excerpt;
use crate::{Scope, Session, Slot, Surroundings, Template, TemplateError};

/// A condition on variables: `${role} == admin and not (${n} >= 10 or exists token)`.
///
/// ```text
/// condition  = all *( "or" all )
/// all        = each *( "and" each )
/// each       = *"not" ( "(" condition ")" / "exists" NAME / TEXT OPERATOR TEXT )
/// OPERATOR   = "==" / "!=" / "<" / "<=" / ">" / ">=" / "=~" / "!~"
///            / "contains" / "starts_with" / "ends_with"
/// ```
///
/// A TEXT is a template. It is one word, or anything between two `"` or two `'`, where nothing is escaped. A
/// word ends at a space, a parenthesis, a quote or one of `=!<>`; a slot `${…}` is a part of it, with
/// everything between its braces. `not` applies to the next comparison only.
///
/// * `==`, `!=`, `<`, `<=`, `>` and `>=` compare numbers if both sides are numbers, else bytes. A number is
///   one of JSON, perhaps with leading zeros or a `+`: `007 == 7` holds. Two whole numbers of any size are
///   compared exactly; if one of them has a fraction or an exponent, both as 64-bit floats (IEEE 754).
/// * `=~` and `!~`: whether the regular expression on the right (of the `regex` crate; without slots) matches
///   anywhere on the left.
/// * `contains`, `starts_with` and `ends_with` compare bytes.
/// * `exists name`: whether the variable has been set, if only to nothing. One that has not been set is empty
///   to everything else.
///
/// The memory that a regular expression needs while it searches belongs to the thread that was first to use
/// it; others wait for a lock. So every worker has to have a clone of its own.
#[derive(Clone, Debug)]
pub struct Condition {
    node: Node,
}

/// A condition, or a part of one.
#[derive(Clone, Debug)]
enum Node {
    Any(Vec<Self>),
    All(Vec<Self>),
    Not(Box<Self>),
    Exists(u16),
    /// Holds if the text of the template passes the test.
    Compare(Template, Test),
}

#[derive(Clone, Debug)]
enum Test {
    /// Holds if the left side compares with this template's text in one of these orders.
    Order(Orders, Template),
    Contains(Template),
    Starts(Template),
    Ends(Template),
    Matches(Pattern),
    MatchesNot(Pattern),
}

/// The outcomes of a comparison that an operator accepts.
#[derive(Clone, Copy, Debug)]
struct Orders {
    less: bool,
    equal: bool,
    greater: bool,
}

impl Orders {
    fn accept(self, order: Ordering) -> bool {
        match order {
            Ordering::Less => self.less,
            Ordering::Equal => self.equal,
            Ordering::Greater => self.greater,
        }
    }
}

impl Condition {
    /// Parses one; its templates and names may be those of `scope`.
    ///
    /// # Errors
    /// The problem with it, and its character, from 1.
    pub fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, TemplateError> {
        Ok(Self { node: parse::parse(text, scope)? })
    }

    /// Returns `true` if the condition holds. Allocates nothing in steady state.
    ///
    /// # Errors
    /// A text is too long for its regular expression: whether the condition holds is not known.
    pub fn holds(&self, session: &mut Session, surroundings: &mut Surroundings<'_>) -> Result<bool, String> {
        self.node.holds(session, surroundings)
    }

    /// The variables whose values it reads, in their order in the text; one may come more than once. A
    /// variable that it only asks for with `exists` is not among them: it may be unset.
    pub fn variables(&self) -> impl Iterator<Item = u16> + '_ {
        let mut templates = Vec::new();
        self.node.collect(&mut templates);
        templates.into_iter().flat_map(variables_of)
    }

    /// Returns `true` if the condition reads the time.
    pub fn needs_clock(&self) -> bool {
        self.templates().into_iter().any(Template::needs_clock)
    }

    /// Returns `true` if it takes random numbers.
    pub fn draws(&self) -> bool {
        self.templates().into_iter().any(|template| template.draws() > 0)
    }

    fn templates(&self) -> Vec<&Template> {
        let mut templates = Vec::new();
        self.node.collect(&mut templates);
        templates
    }
}

/// The variables that a template reads.
pub(crate) fn variables_of(template: &Template) -> impl Iterator<Item = u16> + '_ {
    template.slots().filter_map(|slot| match slot {
        Slot::Variable { index, .. } => Some(*index),
        _ => None,
    })
}

impl Node {
    fn holds(&self, session: &mut Session, surroundings: &mut Surroundings<'_>) -> Result<bool, String> {
        Ok(match self {
            Self::Any(nodes) => Self::is_one(nodes, true, session, surroundings)?,
            Self::All(nodes) => !Self::is_one(nodes, false, session, surroundings)?,
            Self::Not(node) => !node.holds(session, surroundings)?,
            Self::Exists(variable) => session.known.get(usize::from(*variable)).is_some_and(|&known| known),
            Self::Compare(left, test) => {
                // Both texts go into one buffer, one behind the other.
                let mut rendered = std::mem::take(&mut session.scratch);
                rendered.clear();
                let context = surroundings.context(&session.variables);
                left.render(&context, surroundings.random, &mut rendered);
                let middle = rendered.len();
                if let Some(right) = test.template() {
                    right.render(&context, surroundings.random, &mut rendered);
                }
                let (left, right) = rendered.split_at(middle);
                let holds = test.passes(left, right);
                session.scratch = rendered;
                holds?
            }
        })
    }

    /// Returns `true` if one of `nodes` is `wanted`. Those behind it are not looked at.
    fn is_one(
        nodes: &[Self],
        wanted: bool,
        session: &mut Session,
        surroundings: &mut Surroundings<'_>,
    ) -> Result<bool, String> {
        for node in nodes {
            if node.holds(session, surroundings)? == wanted {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// All its templates, in the order of the text.
    fn collect<'a>(&'a self, templates: &mut Vec<&'a Template>) {
        match self {
            Self::Any(nodes) | Self::All(nodes) => nodes.iter().for_each(|node| node.collect(templates)),
            Self::Not(node) => node.collect(templates),
            Self::Exists(_) => {}
            Self::Compare(left, test) => {
                templates.push(left);
                templates.extend(test.template());
            }
        }
    }
}

impl Test {
    /// Returns the template of the right side; `None` if that is a compiled regular expression.
    fn template(&self) -> Option<&Template> {
        match self {
            Self::Order(_, right) | Self::Contains(right) | Self::Starts(right) | Self::Ends(right) => {
                Some(right)
            }
            Self::Matches(_) | Self::MatchesNot(_) => None,
        }
    }

    /// Returns `true` if the texts pass; the error is that they are too long to know.
    fn passes(&self, left: &[u8], right: &[u8]) -> Result<bool, String> {
        Ok(match self {
            Self::Order(orders, _) => {
                orders.accept(number::compare(left, right).unwrap_or_else(|| left.cmp(right)))
            }
            Self::Contains(_) => contains(left, right),
            Self::Starts(_) => left.starts_with(right),
            Self::Ends(_) => left.ends_with(right),
            Self::Matches(pattern) => is_match(pattern, left)?,
            Self::MatchesNot(pattern) => !is_match(pattern, left)?,
        })
    }
}

fn is_match(pattern: &Pattern, text: &[u8]) -> Result<bool, String> {
    pattern.is_match(text, &Work::default()).map_err(|TooMuchWork| {
        let (begin, expression) = (excerpt(text), pattern.text());
        format!("`{begin}` is too long a text for the regular expression `{expression}`")
    })
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(text, part).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Feeds;
    use plimsoll_core::{Nanos, Random};
    use proptest::prelude::*;

    fn names() -> Vec<String> {
        ["role", "n", "token", "empty", "sequence"].map(str::to_owned).to_vec()
    }

    fn session() -> Session {
        let mut session = Session::new(5);
        for (variable, value) in [(0, "admin of all"), (1, "10"), (3, "")] {
            session.variables[variable] = value.as_bytes().to_vec();
            session.known[variable] = true;
        }
        session
    }

    fn holds_in(text: &str, session: &mut Session) -> bool {
        let names = names();
        let condition = Condition::parse(text, &Scope::new(&names)).unwrap_or_else(|error| {
            panic!("{text}: {error}");
        });
        let mut surroundings = Surroundings {
            index: 41,
            worker: 2,
            unix_ns: 0,
            elapsed: Nanos::ZERO,
            random: &mut Random::new(0, 0),
            feeds: &mut Feeds::default(),
            tokens: None,
            values: None,
        };
        condition.holds(session, &mut surroundings).unwrap()
    }

    fn holds(text: &str) -> bool {
        holds_in(text, &mut session())
    }

    #[test]
    fn operators() {
        for (text, expected) in [
            ("${role} == 'admin of all'", true),
            ("${role}==\"admin of all\"", true),
            ("${role} == admin", false),
            ("${role} != admin", true),
            ("${role} contains of", true),
            ("${role} contains Of", false),
            ("${role} contains ''", true),
            ("${role} starts_with admin", true),
            ("${role} starts_with dmin", false),
            ("${role} ends_with all", true),
            ("${role} ends_with al", false),
            ("${role} =~ ^a.*l$", true),
            ("${role} =~ \"^(admin|root) of\"", true),
            ("${role} =~ ^b", false),
            ("${role} !~ ^b", true),
            ("${role} !~ ^a", false),
            ("${n} < 11", true),
            ("${n}<9", false),
            ("${n} <= 10", true),
            ("${n} > 9", true),
            ("${n} >= 10.5", false),
            ("${n} == 10.0", true),
            ("${n} == 1e1", true),
            ("${n} == 010", true),
            ("${n} != 10", false),
            ("x${n} == x10.0", false),
            ("b > a", true),
            ("a < 1", false),
            ("${empty} == ''", true),
            ("${token} == ''", true),
            ("${n}${n} == 1010", true),
            ("41 == ${sequence}", true),
            ("${random_int(3, 3)} == 3", true),
            ("'$${n}' == \"$${n}\"", true),
            ("'\"' == '\"'", true),
        ] {
            assert_eq!(holds(text), expected, "{text}");
        }
    }

    #[test]
    fn a_variable_exists_once_it_is_set_whatever_its_value_and_its_slot() {
        assert!(holds("exists n") && holds("exists empty") && holds("exists ${n}"));
        assert!(!holds("exists token"));
        // As a text, `sequence` is the slot; what exists is the variable.
        assert!(!holds("exists sequence"));
    }

    #[test]
    fn connectives_bind_as_usual() {
        let (t, f) = ("1 == 1", "1 == 2");
        for (text, expected) in [
            (format!("{t} or {t} and {f}"), true),
            (format!("({t} or {t}) and {f}"), false),
            (format!("not {f} and {f}"), false),
            (format!("not ({f} and {f})"), true),
            (format!("not not {t}"), true),
            (format!("not not not {t}"), false),
            (format!("{f} or {f} or {t}"), true),
            (format!("{t} and {t} and {f}"), false),
            (format!("(({t}))and(({t}))"), true),
            (format!("not exists token and {t}"), true),
        ] {
            assert_eq!(holds(&text), expected, "{text}");
        }
    }

    #[test]
    fn what_it_reads_is_known() {
        let names = names();
        let parse = |text| Condition::parse(text, &Scope::new(&names)).unwrap();
        let condition = parse("${n} < 3 or not (exists token and ${empty} contains ${role})");
        assert_eq!(condition.variables().collect::<Vec<_>>(), [1, 3, 0]);
        assert!(!condition.needs_clock());
        assert!(parse("${n} < ${timestamp_s}").needs_clock());
    }

    /// A condition in the form that the text is made of.
    #[derive(Clone, Debug)]
    enum Tree {
        Leaf(bool),
        Not(Box<Tree>),
        And(Box<Tree>, Box<Tree>),
        Or(Box<Tree>, Box<Tree>),
    }

    impl Tree {
        fn value(&self) -> bool {
            match self {
                Self::Leaf(value) => *value,
                Self::Not(tree) => !tree.value(),
                Self::And(a, b) => a.value() && b.value(),
                Self::Or(a, b) => a.value() || b.value(),
            }
        }

        /// With parentheses only where they are needed: `level` is 0 within `or`, 1 within `and`, 2 within
        /// `not`.
        fn text(&self, level: u8) -> String {
            let (own, text) = match self {
                Self::Leaf(value) => (3, format!("{} == 1", u8::from(*value))),
                Self::Not(tree) => (2, format!("not {}", tree.text(2))),
                Self::And(a, b) => (1, format!("{} and {}", a.text(1), b.text(1))),
                Self::Or(a, b) => (0, format!("{} or {}", a.text(0), b.text(0))),
            };
            if own < level { format!("({text})") } else { text }
        }
    }

    fn tree() -> impl Strategy<Value = Tree> {
        any::<bool>().prop_map(Tree::Leaf).prop_recursive(6, 40, 2, |inner| {
            prop_oneof![
                inner.clone().prop_map(|tree| Tree::Not(Box::new(tree))),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| Tree::And(Box::new(a), Box::new(b))),
                (inner.clone(), inner).prop_map(|(a, b)| Tree::Or(Box::new(a), Box::new(b))),
            ]
        })
    }

    proptest! {
        #[test]
        fn connectives_mean_what_the_tree_says(tree in tree()) {
            prop_assert_eq!(holds(&tree.text(0)), tree.value(), "{}", tree.text(0));
        }

        #[test]
        fn texts_that_are_no_numbers_compare_as_bytes(a in "[a-c]{0,3}", b in "[a-c]{0,3}") {
            prop_assert_eq!(holds(&format!("'{a}' < '{b}'")), a < b);
            prop_assert_eq!(holds(&format!("'{a}' >= '{b}'")), a >= b);
            prop_assert_eq!(holds(&format!("'{a}' == '{b}'")), a == b);
            prop_assert_eq!(holds(&format!("'{a}' contains '{b}'")), a.contains(&b));
        }

        #[test]
        fn any_text_is_a_condition_or_an_error(text in r#"([a-z (){}$=!<>~"']|and |or |not |exists |==){0,30}"#) {
            let names = names();
            match Condition::parse(&text, &Scope::new(&names)) {
                Ok(_) => { holds(&text); }
                Err(error) => prop_assert!(error.message().starts_with("character ")),
            }
        }
    }
}
