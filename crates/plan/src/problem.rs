//! What is wrong with a plan.

use std::fmt;

/// A part of a plan file, in bytes; the default is: nowhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The first byte.
    pub start: u32,
    /// Behind the last byte; 0 for nowhere.
    pub end: u32,
}

/// One thing that is wrong, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong; one line, no full stop.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Where in the plan file it is, if it is there.
    pub place: Option<Place>,
}

impl Problem {
    /// A problem without advice.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, place: None }
    }

    /// The problem that an error of one line describes: advice behind `: write ` becomes the hint.
    pub fn from_line(line: &str) -> Self {
        match line.rsplit_once(": write ") {
            Some((message, advice)) => Self::new(message).with_hint(format!("write {advice}")),
            None => Self::new(line),
        }
    }

    /// The same problem at a place in the plan file.
    #[must_use]
    pub fn at(mut self, place: Option<Place>) -> Self {
        self.place = place.filter(|place| place.end > 0);
        self
    }

    /// The same problem with advice.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Everything that is wrong with a plan, in the order in which it was found. Equal problems are listed once
/// (a header that is wrong is wrong for every URL).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Adds one problem, unless it is known already.
    pub fn push(&mut self, problem: Problem) {
        if !self.0.contains(&problem) {
            self.0.push(problem);
        }
    }

    /// Adds the problems of `others`.
    pub fn extend(&mut self, others: Self) {
        others.0.into_iter().for_each(|problem| self.push(problem));
    }

    /// Puts them in the order of the plan file; those without a place come last, in their order.
    pub fn sort(&mut self) {
        self.0.sort_by_key(|problem| (problem.place.is_none(), problem.place));
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The problems, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

/// The messages, one per line, without the advice.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            f.write_str(&problem.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_in_a_line_becomes_the_hint() {
        let problem = Problem::from_line("--rate: `x` is not a rate: write 5000 or 300/m");
        assert_eq!(problem, Problem::new("--rate: `x` is not a rate").with_hint("write 5000 or 300/m"));
        assert_eq!(Problem::from_line("a: b"), Problem::new("a: b"));
    }

    #[test]
    fn equal_problems_are_listed_once() {
        let mut problems = Problems::from(Problem::new("a"));
        problems.push(Problem::new("b"));
        problems.push(Problem::new("a"));
        assert_eq!(problems.to_string(), "a\nb");
        assert!(!problems.is_empty() && Problems::default().is_empty());
    }
}
