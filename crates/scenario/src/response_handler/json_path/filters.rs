//! The filters of a JSONPath, prepared before it is used.

use jsonpath_rust::parser::model::{
    Comparable, Comparison, Filter, FilterAtom, FnArg, JpQuery, Literal, Segment, Selector, SingularQuery,
    Test, TestFunction,
};

use crate::Scope;
use crate::pattern::Pattern;

/// What the filters of a query need.
#[derive(Debug, Default)]
pub(super) struct Filters<'s> {
    /// One, and the number of selectors and of parts of filters.
    pub(super) price: u64,
    /// Patterns of `match` and `search`, which the library would compile for each value anew.
    pub(super) patterns: Vec<Pattern>,
    scope: Scope<'s>,
}

impl<'s> Filters<'s> {
    /// Takes the patterns out of a query: each `match` and `search` becomes a function with the number of its
    /// pattern as its name, whose second argument is the root.
    ///
    /// # Errors
    /// A pattern that is not a text in the query, or no regular expression.
    pub(super) fn take(query: &mut JpQuery, scope: &Scope<'s>) -> Result<Self, String> {
        let mut filters = Self { price: 1, scope: *scope, ..Self::default() };
        filters.segments(&mut query.segments)?;
        Ok(filters)
    }

    fn segments(&mut self, segments: &mut [Segment]) -> Result<(), String> {
        segments.iter_mut().try_for_each(|segment| self.segment(segment))
    }

    fn segment(&mut self, segment: &mut Segment) -> Result<(), String> {
        match segment {
            Segment::Descendant(inner) => self.segment(inner),
            Segment::Selector(selector) => self.selector(selector),
            Segment::Selectors(selectors) => {
                // All that was found before is copied for each.
                self.price += selectors.len() as u64;
                selectors.iter_mut().try_for_each(|selector| self.selector(selector))
            }
        }
    }

    fn selector(&mut self, selector: &mut Selector) -> Result<(), String> {
        match selector {
            Selector::Filter(filter) => self.filter(filter),
            _ => Ok(()),
        }
    }

    fn filter(&mut self, filter: &mut Filter) -> Result<(), String> {
        self.price += 1;
        match filter {
            Filter::Or(parts) | Filter::And(parts) => parts.iter_mut().try_for_each(|part| self.filter(part)),
            Filter::Atom(FilterAtom::Filter { expr, .. }) => self.filter(expr),
            Filter::Atom(FilterAtom::Test { expr, .. }) => self.test(expr),
            Filter::Atom(FilterAtom::Comparison(comparison)) => {
                let (Comparison::Eq(left, right)
                | Comparison::Ne(left, right)
                | Comparison::Gt(left, right)
                | Comparison::Gte(left, right)
                | Comparison::Lt(left, right)
                | Comparison::Lte(left, right)) = &mut **comparison;
                self.comparable(left)?;
                self.comparable(right)
            }
        }
    }

    fn comparable(&mut self, comparable: &mut Comparable) -> Result<(), String> {
        match comparable {
            Comparable::Literal(_) => self.price += 1,
            Comparable::Function(function) => return self.function(function),
            Comparable::SingularQuery(SingularQuery::Current(steps) | SingularQuery::Root(steps)) => {
                self.price += 1 + steps.len() as u64;
            }
        }
        Ok(())
    }

    fn test(&mut self, test: &mut Test) -> Result<(), String> {
        self.price += 1;
        match test {
            Test::RelQuery(segments) => {
                self.price += segments.len() as u64;
                self.segments(segments)
            }
            Test::AbsQuery(query) => {
                self.price += query.segments.len() as u64;
                self.segments(&mut query.segments)
            }
            Test::Function(function) => self.function(function),
        }
    }

    fn function(&mut self, function: &mut TestFunction) -> Result<(), String> {
        self.price += 1;
        match function {
            TestFunction::Length(argument) => self.argument(argument),
            TestFunction::Value(argument) | TestFunction::Count(argument) => self.argument(argument),
            TestFunction::Custom(_, arguments) => {
                arguments.iter_mut().try_for_each(|argument| self.argument(argument))
            }
            TestFunction::Match(..) | TestFunction::Search(..) => self.pattern(function),
        }
    }

    fn argument(&mut self, argument: &mut FnArg) -> Result<(), String> {
        match argument {
            FnArg::Literal(_) => Ok(()),
            FnArg::Test(test) => self.test(test),
            FnArg::Filter(filter) => self.filter(filter),
        }
    }

    fn pattern(&mut self, function: &mut TestFunction) -> Result<(), String> {
        let (text, pattern, is_search) = match function {
            TestFunction::Match(text, pattern) => (text, pattern, false),
            TestFunction::Search(text, pattern) => (text, pattern, true),
            _ => return Ok(()),
        };
        self.argument(text)?;
        let FnArg::Literal(Literal::String(pattern)) = pattern else {
            return Err("the pattern of `match` and `search` has to be a text in quotes".to_owned());
        };
        let translated = Pattern::parse(&translated(pattern, is_search), &self.scope)
            .map_err(|_| format!("`{pattern}` is not a regular expression"))?;
        let root = FnArg::Test(Box::new(Test::AbsQuery(JpQuery::new(Vec::new()))));
        *function = TestFunction::Custom(self.patterns.len().to_string(), vec![text.clone(), root]);
        self.patterns.push(translated);
        Ok(())
    }
}

/// An I-Regexp (RFC 9485) as the `regex` crate writes it: there a `.` is no end of a line either, but may be
/// a carriage return. `match` is about the whole text.
fn translated(pattern: &str, is_search: bool) -> String {
    let mut translated = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    let mut in_class = false;
    while let Some(character) = characters.next() {
        match character {
            '.' if !in_class => {
                translated.push_str(r"[^\n\r]");
                continue;
            }
            '\\' => {
                translated.push('\\');
                translated.extend(characters.next());
                continue;
            }
            '[' => in_class = true,
            ']' => in_class = false,
            _ => {}
        }
        translated.push(character);
    }
    if is_search { translated } else { format!("^(?:{translated})$") }
}
