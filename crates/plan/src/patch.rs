//! Values as they were typed, before anything is parsed.

use std::borrow::Cow;
use std::fmt;

use crate::settings::Setting;
use crate::{Place, PlanPatch, Problem};

/// One value as it was typed, with its source.
#[derive(Clone, PartialEq, Eq)]
pub struct RawValue {
    /// The text.
    pub text: String,
    /// Name of its source, for messages: `--rate`, `run.rate`, `PLIMSOLL_RATE`.
    pub by: Cow<'static, str>,
    /// Its place, if a plan file has it.
    pub place: Option<Place>,
    /// Meaning of this flag's letter in other tools: the advice when the text makes no sense here.
    pub habit: Option<&'static str>,
    /// Set if the value is known to be wrong and has been reported. It causes no further messages.
    pub reported: bool,
}

impl RawValue {
    /// `text`, given by the flag `by`.
    pub fn new(by: impl Into<Cow<'static, str>>, text: impl Into<String>) -> Self {
        Self { text: text.into(), by: by.into(), place: None, habit: None, reported: false }
    }

    /// The same at a place in the plan file. The paths that it names are relative to the plan's folder then.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// A problem with this value, at its place.
    pub fn problem(&self, message: impl Into<String>) -> Problem {
        Problem::new(message).at(self.place)
    }

    /// The same with advice for people who know the letter from elsewhere.
    #[must_use]
    pub fn with_habit(mut self, habit: &'static str) -> Self {
        self.habit = Some(habit);
        self
    }
}

/// Without the text: it may be a secret.
impl fmt::Debug for RawValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}>", self.by)
    }
}

impl PlanPatch {
    /// Returns the value with the credentials, if there is one.
    pub(crate) fn credentials(&self) -> Option<&RawValue> {
        self.basic.as_ref().or(self.bearer.as_ref()).or(self.jwt_key.as_ref())
    }

    /// The first flag of h2loadrunner's scenario: create a resource, update it, delete it. Any of them asks
    /// for it.
    pub(crate) fn first_crud_flag(&self) -> Option<&RawValue> {
        let all = [
            &self.crud_create_method,
            &self.crud_update_method,
            &self.crud_delete_method,
            &self.crud_resource_header,
            &self.crud_request_variable_name,
            &self.crud_request_variable_value_start,
            &self.crud_request_variable_value_end,
            &self.crud_create_data_file,
            &self.crud_update_data_file,
        ];
        all.into_iter().flatten().next()
    }

    /// Replaces the values of a setting.
    pub fn set(&mut self, setting: &Setting, values: Vec<RawValue>) {
        let slot = self.slots().into_iter().find(|(known, _)| known.name == setting.name);
        if let Some((_, slot)) = slot {
            slot.fill(values);
        }
    }

    /// Adds a value to a setting; where there can be only one, it replaces the value.
    pub fn push(&mut self, setting: &Setting, value: RawValue) {
        let mut values: Vec<RawValue> = self.get(setting).into_iter().cloned().collect();
        values.push(value);
        self.set(setting, values);
    }

    /// Returns the values of a setting.
    pub fn get(&self, setting: &Setting) -> Vec<&RawValue> {
        let found = self.settings().into_iter().find(|(known, _)| known.name == setting.name);
        found.map(|(_, values)| values).unwrap_or_default()
    }
}
