//! Values that steps record as metrics of the plan's own.

use std::fmt::Debug;

use crate::Template;

/// A value to record, and its tags.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The metric, an index into the plan's.
    pub metric: u16,
    /// The value.
    pub value: Template,
    /// The tags in ascending order of their names.
    pub tags: Vec<(String, Template)>,
}

impl Recording {
    /// The value, and the values of the tags.
    pub(crate) fn templates(&self) -> impl Iterator<Item = &Template> {
        std::iter::once(&self.value).chain(self.tags.iter().map(|(_, value)| value))
    }
}

/// A value that is to be recorded, once its texts are made.
#[derive(Clone, Copy, Debug)]
pub struct RecordedValue<'v> {
    pub(crate) recording: &'v Recording,
    /// The value and those of the tags, one behind the other.
    pub(crate) texts: &'v [u8],
    /// Where each of them ends.
    pub(crate) ends: &'v [usize],
}

impl<'v> RecordedValue<'v> {
    /// The metric, an index into the plan's.
    pub const fn metric(&self) -> u16 {
        self.recording.metric
    }

    /// The value.
    pub fn value(&self) -> &'v [u8] {
        self.text(0)
    }

    /// Names and values of the tags, in ascending order of the names.
    pub fn tags(self) -> impl Iterator<Item = (&'v str, &'v [u8])> + Clone {
        let names = self.recording.tags.iter().enumerate();
        names.map(move |(number, (name, _))| (name.as_str(), self.text(number + 1)))
    }

    fn text(&self, number: usize) -> &'v [u8] {
        let begin = number.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(number).and_then(|end| self.texts.get(begin..*end)).unwrap_or_default()
    }
}

/// Receiver of recorded values.
pub trait ValueSink: Debug {
    /// Records one value.
    fn record(&mut self, value: RecordedValue<'_>);
}
