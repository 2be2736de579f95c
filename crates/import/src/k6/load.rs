//! The load over time: what executors say, as one course.

use super::Importer;
use crate::course::Load;

pub(crate) use crate::course::{Course, Level};

impl Importer<'_> {
    /// The load of the run and the weights of its scenarios.
    pub(crate) fn load(&mut self, courses: &[Course]) {
        self.load_at("options.scenarios").put(courses);
    }

    /// The course of the load alone; `None` if it has none.
    pub(crate) fn curve(&mut self, courses: &[Course]) -> Option<()> {
        self.load_at("").curve(courses)
    }

    fn load_at<'s>(&'s mut self, at: &'s str) -> Load<'s> {
        Load { document: &mut self.document, settings: &mut self.settings, findings: &mut self.findings, at }
    }
}
