//! Bodies of steps that crates above this one make. Their kinds are given with the flags: this crate has
//! their keys in plan files, and knows neither how they are made nor how answers to them are judged.

use std::fmt::{self, Display};
use std::io;
use std::sync::Arc;

use plimsoll_scenario::{Body, BodySupply, EventStream, Judge, JudgeSpec, Template};

use crate::document::{Field, RequestStep, Text};
use crate::{Place, Problem};

/// Kind of bodies: the meaning of its key in a step.
pub trait BodyFactory: fmt::Debug + Sync {
    /// The key of a step that has the settings of the body.
    fn key(&self) -> &'static str;

    /// Compiles the body of a step that has the key, at this place. Problems are reported to the context, and
    /// nothing is returned then.
    fn compile(
        &self,
        request: &RequestStep,
        place: Option<Place>,
        context: &mut dyn BodyContext,
    ) -> Option<BodyContent>;
}

/// A body, with its headers and its judge.
#[derive(Clone, Debug)]
pub struct BodyContent {
    /// The body.
    pub body: Body,
    /// Names and values of headers, which those of the step replace.
    pub headers: Vec<(String, String)>,
    /// Judge of the responses to it.
    pub judge: Option<JudgeSpec>,
    /// The stream that the responses are, if they are one.
    pub stream: Option<EventStream>,
}

/// The compilation of a plan, as far as [`BodyFactory`] needs it.
pub trait BodyContext {
    /// Reports a problem at a place.
    fn report(&mut self, place: Option<Place>, problem: Problem);

    /// Reports a problem with the form of the plan, unless its form was found wrong before: then this is
    /// reported already, or follows from it.
    fn report_form(&mut self, place: Option<Place>, problem: Problem);

    /// Returns a text that is not a template, with the environment's values filled in. `None`: it is absent
    /// or wrong, and the latter was reported.
    fn plain(&mut self, field: &Field<Text>) -> Option<String>;

    /// Reads a file that the plan names. `None`: it cannot be read, and that was reported.
    fn file(&mut self, field: &Field<Text>) -> Option<Vec<u8>>;

    /// Reads a file that another one of the plan names, by its path from the plan's folder.
    ///
    /// # Errors
    /// Errors of the system, such as a missing file. They are not reported as problems.
    fn imported(&self, path: &str) -> io::Result<Vec<u8>>;

    /// Returns a text that is a template, with the environment's values filled in, and the template. `None`:
    /// it is wrong, and that was reported.
    fn template(&mut self, text: &str, place: Option<Place>) -> Option<(String, Template)>;

    /// Reports whether the requests of the plan are sent over HTTP/2.
    fn speaks_http2(&self) -> bool;

    /// Returns the number of a variable of the plan.
    fn variable(&self, name: &str) -> Option<u16>;

    /// Returns the judges of the steps before.
    fn judges(&self) -> &[Arc<dyn Judge>];

    /// Returns the number that the next supply gets; `None` if the plan has as many as there may be.
    fn next_supply(&self) -> Option<u16>;

    /// Adds a supply to the plan.
    fn add_supply(&mut self, supply: BodySupply);
}

impl dyn BodyContext + '_ {
    /// Reports a problem at a place; returns `None` for `return context.fail(…)`.
    pub fn fail<T>(&mut self, place: Option<Place>, problem: Problem) -> Option<T> {
        self.report(place, problem);
        None
    }

    /// [Reports](BodyContext::report_form) a problem with the form of the plan, in the same manner.
    pub fn fail_form<T>(&mut self, place: Option<Place>, problem: Problem) -> Option<T> {
        self.report_form(place, problem);
        None
    }

    /// Parses a value, if it is there. `None`: it is, and is wrong.
    pub fn read<T, E: Display>(
        &mut self,
        field: &Field<Text>,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<Option<T>> {
        if field.is_absent() {
            return Some(None);
        }
        let text = self.plain(field)?;
        match parse(text.trim()) {
            Ok(value) => Some(Some(value)),
            Err(error) => self.fail(field.place(), Problem::from_line(&error.to_string())),
        }
    }
}

/// Kinds of bodies that can be made.
#[derive(Clone, Copy, Debug, Default)]
pub struct BodyFactories(pub &'static [&'static dyn BodyFactory]);

impl BodyFactories {
    /// Returns the kind that has this key.
    pub(crate) fn find(self, key: &str) -> Option<&'static dyn BodyFactory> {
        self.0.iter().copied().find(|factory| factory.key() == key)
    }
}

/// The same keys.
impl PartialEq for BodyFactories {
    fn eq(&self, other: &Self) -> bool {
        self.0.iter().map(|factory| factory.key()).eq(other.0.iter().map(|factory| factory.key()))
    }
}

impl Eq for BodyFactories {}
