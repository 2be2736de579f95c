//! The load over time: what executors say, as one course.

use super::Importer;
use crate::course::Load;

pub(super) use crate::course::{Course, Level};

impl Importer<'_> {
    /// The load of the run and the weights of its scenarios.
    pub(super) fn load(&mut self, courses: &[Course]) {
        let mut load = Load {
            document: &mut self.document,
            settings: &mut self.settings,
            findings: &mut self.findings,
            at: "options.scenarios",
        };
        load.put(courses);
    }
}
