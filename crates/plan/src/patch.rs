//! Access to the settings of a patch by their entries.

use plimsoll_document::{RawValue, Setting};

use crate::PlanPatch;

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
