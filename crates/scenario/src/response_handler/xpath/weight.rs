//! The work that an XPath makes for each node and each byte, found before it is used.

use xpath_eval::{Axis, Expr, FilterExpr, FunctionCall, LocationPath, NodeTest, PathExpr, PrimaryExpr, Step};

/// Operators and brackets within each other, at most: the evaluation calls itself for each.
const LEVELS_MAX: usize = 64;

/// Operators, paths and literals that take one step.
const PARTS: u64 = 4;

/// Functions, and how many arguments they take at least and at most.
const FUNCTIONS: &[(&str, usize, usize)] = &[
    ("boolean", 1, 1),
    ("ceiling", 1, 1),
    ("concat", 2, usize::MAX),
    ("contains", 2, 2),
    ("count", 1, 1),
    ("false", 0, 0),
    ("floor", 1, 1),
    ("lang", 1, 1),
    ("last", 0, 0),
    ("local-name", 0, 1),
    ("name", 0, 1),
    ("namespace-uri", 0, 1),
    ("normalize-space", 0, 1),
    ("not", 1, 1),
    ("number", 0, 1),
    ("position", 0, 0),
    ("round", 1, 1),
    ("starts-with", 2, 2),
    ("string", 0, 1),
    ("string-length", 0, 1),
    ("substring", 2, 3),
    ("substring-after", 2, 2),
    ("substring-before", 2, 2),
    ("sum", 1, 1),
    ("translate", 3, 3),
    ("true", 0, 0),
];

/// Steps that are counted for what an expression does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Weight {
    /// For a node that is gone to: one, and those of filters behind `*`, `node()` and the like.
    pub(super) any: u64,
    /// For a node that has a name that is looked for: those of filters behind names.
    pub(super) named: u64,
    /// For a piece of text: one for each function that may go through it.
    pub(super) text: u64,
}

/// A reason why an expression is refused.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) reason: String,
    pub(super) hint: Option<&'static str>,
}

impl Fault {
    fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), hint: None }
    }
}

impl Weight {
    /// Weighs an expression.
    ///
    /// # Errors
    /// What can never match, and what takes time that the steps of nodes do not tell.
    pub(super) fn of(expression: &Expr) -> Result<Self, Fault> {
        let mut weight = Self { any: 0, named: 0, text: 1 };
        weight.add(expression, 0)?;
        Ok(Self { any: 1 + weight.any / PARTS, named: weight.named / PARTS, ..weight })
    }

    /// Adds an expression, and returns the number of its operators, paths and literals without those of its
    /// filters, which are counted for their own candidates.
    fn add(&mut self, expression: &Expr, level: usize) -> Result<u64, Fault> {
        if level > LEVELS_MAX {
            return Err(Fault::new(format!(
                "more than {LEVELS_MAX} operators and brackets within each other"
            )));
        }
        let level = level + 1;
        Ok(1 + match expression {
            Expr::Or(left, right) | Expr::And(left, right) => {
                self.add(left, level)? + self.add(right, level)?
            }
            Expr::Additive(left, _, right) | Expr::Multiplicative(left, _, right) => {
                self.add(left, level)? + self.add(right, level)?
            }
            Expr::Equality(left, _, right) | Expr::Relational(left, _, right) => {
                // Each of the one set is compared with each of the other.
                if is_set(left) && is_set(right) && !is_one(left) && !is_one(right) {
                    return Err(Fault {
                        reason: "a comparison of two sets of nodes is not carried out".to_owned(),
                        hint: Some("make one of them a value: `a = string(b)`, `a < number(b)`"),
                    });
                }
                self.add(left, level)? + self.add(right, level)?
            }
            Expr::Negate(inner) => self.add(inner, level)?,
            Expr::Union(left, right) => {
                if !is_set(left) || !is_set(right) {
                    return Err(Fault::new("`|` joins nodes only"));
                }
                self.add(left, level)? + self.add(right, level)?
            }
            Expr::Path(PathExpr::Location(path)) => self.add_path(path, level)?,
            Expr::Path(PathExpr::Filter(filter)) => self.add_filter(filter, level)?,
            Expr::Path(PathExpr::FilterLocation(filter, path)) => {
                self.add_filter(filter, level)? + self.add_path(path, level)?
            }
        })
    }

    fn add_path(&mut self, path: &LocationPath, level: usize) -> Result<u64, Fault> {
        let mut sum = 0;
        for Step { node_test, predicates, .. } in &path.steps {
            let mut filters = 0;
            for predicate in predicates {
                filters += self.add(predicate, level)?;
            }
            match node_test {
                NodeTest::QName(_) => self.named += filters,
                _ => self.any += filters,
            }
            sum += 1;
        }
        Ok(sum)
    }

    fn add_filter(&mut self, filter: &FilterExpr, level: usize) -> Result<u64, Fault> {
        let sum = match &filter.primary {
            PrimaryExpr::Variable(name) => {
                return Err(Fault::new(format!("there is no variable `${}`", name.local)));
            }
            PrimaryExpr::Parenthesized(inner) => self.add(inner, level)?,
            PrimaryExpr::Literal(text) => text.len() as u64 / 32,
            PrimaryExpr::Number(_) => 0,
            PrimaryExpr::Function(call) => self.add_call(call, level)?,
        };
        let mut filters = 0;
        for predicate in &filter.predicates {
            filters += self.add(predicate, level)?;
        }
        self.any += filters;
        Ok(sum)
    }

    fn add_call(&mut self, call: &FunctionCall, level: usize) -> Result<u64, Fault> {
        let name = call.name.local.as_str();
        let known = FUNCTIONS.iter().find(|(known, ..)| *known == name && call.name.prefix.is_none());
        let Some(&(_, fewest, most)) = known else {
            return Err(Fault::new(format!("there is no function `{name}`")));
        };
        if call.args.len() < fewest || call.args.len() > most {
            return Err(Fault::new(format!("`{name}` does not take {} arguments", call.args.len())));
        }
        self.text += 1;
        if name == "translate" {
            // The characters are looked for one by one.
            let Some(from) = literal(&call.args[1]) else {
                return Err(Fault {
                    reason: "`translate` of characters that are not in the expression".to_owned(),
                    hint: Some("write the characters in quotes: `translate(a, 'xy', 'XY')`"),
                });
            };
            self.text += from.chars().count() as u64;
        }
        let mut sum = 0;
        for argument in &call.args {
            sum += self.add(argument, level)?;
        }
        Ok(sum)
    }
}

/// The text in quotes that an expression is.
fn literal(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Path(PathExpr::Filter(FilterExpr { primary: PrimaryExpr::Literal(text), .. })) => Some(text),
        _ => None,
    }
}

/// Returns `true` if an expression stands for nodes.
fn is_set(expression: &Expr) -> bool {
    match expression {
        Expr::Union(..) | Expr::Path(PathExpr::Location(_) | PathExpr::FilterLocation(..)) => true,
        Expr::Path(PathExpr::Filter(FilterExpr { primary: PrimaryExpr::Parenthesized(inner), .. })) => {
            is_set(inner)
        }
        _ => false,
    }
}

/// Returns `true` if an expression stands for one node at most: `.`, `..`, an attribute of them.
fn is_one(expression: &Expr) -> bool {
    let Expr::Path(PathExpr::Location(path)) = expression else { return false };
    path.steps.iter().all(|step| match step.axis {
        Axis::SelfAxis | Axis::Parent => true,
        Axis::Attribute => matches!(step.node_test, NodeTest::QName(_)),
        _ => false,
    })
}
