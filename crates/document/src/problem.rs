//! Problems of a plan.

use std::collections::HashMap;
use std::fmt;

/// A part of a plan file, in bytes; the default is: nowhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The first byte.
    pub start: u32,
    /// Behind the last byte; 0 for nowhere.
    pub end: u32,
}

/// One problem, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Description of the problem; one line, no full stop.
    pub message: String,
    /// Advice on how to solve it.
    pub hint: Option<String>,
    /// Place in the plan file, if the problem has one.
    pub place: Option<Place>,
    /// Further places in the plan file where the same is wrong, in order.
    pub also: Vec<Place>,
}

impl Problem {
    /// A problem without advice.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, place: None, also: Vec::new() }
    }

    /// The problem that an error of one line describes: advice behind `: write ` becomes the hint.
    pub fn from_line(line: &str) -> Self {
        match line.rsplit_once(": write ") {
            Some((message, advice)) => Self::new(message).with_hint(format!("write {advice}")),
            None => Self::new(line),
        }
    }

    /// Returns the problem with a place in the plan file.
    #[must_use]
    pub fn at(mut self, place: Option<Place>) -> Self {
        self.place = place.filter(|place| place.end > 0);
        self
    }

    /// Returns the problem with advice.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Most problems that are listed. A file of 16 MiB could have millions.
const MOST: usize = 1_000;

/// Marks that tell a problem from others: its words, and whether it has a place.
type Key = (String, Option<String>, bool);

/// Everything that is wrong with a plan, in the order in which it was found. Equal problems are listed once
/// (a header that is wrong is wrong for every URL), and the same problem at several places of the plan file
/// (an unknown target of several steps) is one problem with all of the places.
#[derive(Clone, Debug, Default)]
pub struct Problems {
    all: Vec<Problem>,
    /// Apart from the list: errors that hold problems are small.
    about: Box<About>,
}

/// Everything that is known beside a list of problems.
#[derive(Clone, Debug, Default)]
struct About {
    /// The position of a problem in the list.
    known: HashMap<Key, usize>,
    notes: Vec<String>,
}

impl Problems {
    /// Adds one problem, unless it is known already; of one that is known elsewhere, the place is added.
    pub fn push(&mut self, problem: Problem) {
        let key = (problem.message.clone(), problem.hint.clone(), problem.place.is_some());
        match self.about.known.get(&key) {
            None if self.all.len() > MOST => {}
            None if self.all.len() == MOST => {
                let more = format!("only the first {MOST} problems are shown");
                self.all.push(Problem::new(more).with_hint("fix these, and check again"));
            }
            None => {
                self.about.known.insert(key, self.all.len());
                self.all.push(problem);
            }
            Some(&index) => {
                let known = &mut self.all[index];
                // The same place is often reported twice in a row, and else found in order.
                for place in problem.place.into_iter().chain(problem.also) {
                    if known.place != Some(place) && known.also.last() != Some(&place) {
                        known.also.push(place);
                    }
                }
            }
        }
    }

    /// These problems, with notes on what was found on the way to them, which may explain them.
    #[must_use]
    pub fn with_notes(mut self, notes: Vec<String>) -> Self {
        self.about.notes = notes;
        self
    }

    /// Notes on what was found on the way to the problems.
    pub fn notes(&self) -> &[String] {
        &self.about.notes
    }

    /// Adds the problems of `others`.
    pub fn extend(&mut self, others: Self) {
        others.all.into_iter().for_each(|problem| self.push(problem));
    }

    /// Puts them in the order of the plan file; those without a place come last, in their order.
    pub fn sort(&mut self) {
        for problem in &mut self.all {
            let mut places: Vec<Place> = problem.place.into_iter().chain(problem.also.drain(..)).collect();
            places.sort_unstable();
            places.dedup();
            let mut places = places.into_iter();
            problem.place = places.next();
            problem.also = places.collect();
        }
        self.all.sort_by_key(|problem| (problem.place.is_none(), problem.place));
        let key =
            |problem: &Problem| (problem.message.clone(), problem.hint.clone(), problem.place.is_some());
        self.about.known = self.all.iter().map(key).zip(0..).collect();
    }

    /// Returns `true` if there are no problems.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the number of problems.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// The problems, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.all.iter()
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
        let mut problems = Self::default();
        problems.push(problem);
        problems
    }
}

impl PartialEq for Problems {
    fn eq(&self, other: &Self) -> bool {
        self.all == other.all
    }
}

impl Eq for Problems {}

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

    #[test]
    fn a_bounded_number_of_problems_is_told() {
        let mut problems = Problems::default();
        for number in 0..5_000 {
            problems
                .push(Problem::new(number.to_string()).at(Some(Place { start: number, end: number + 1 })));
        }
        problems.sort();
        assert_eq!(problems.len(), MOST + 1);
        let last = problems.iter().last().unwrap();
        assert_eq!(last.message, "only the first 1000 problems are shown");
        // A known problem still gets its further places.
        problems.push(Problem::new("7").at(Some(Place { start: 9_000, end: 9_001 })));
        assert_eq!(problems.iter().nth(7).unwrap().also.len(), 1);
    }

    #[test]
    fn one_wrong_name_at_several_places_is_one_problem_with_all_of_them() {
        let at = |start: u32| Some(Place { start, end: start + 1 });
        let mut problems = Problems::default();
        for place in [at(7), None, at(3), at(7), at(5), at(3)] {
            problems.push(Problem::new("a").at(place));
        }
        problems.push(Problem::new("b").at(at(4)));
        problems.sort();
        let found: Vec<_> = problems.iter().map(|problem| (problem.place, problem.also.len())).collect();
        assert_eq!(found, [(at(3), 2), (at(4), 0), (None, 0)]);
        assert_eq!(problems.iter().next().unwrap().also, [at(5), at(7)].map(|place| place.unwrap()));
    }
}
