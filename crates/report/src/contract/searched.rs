//! The result of `plimsoll find`, whichever of its two kinds it is, in every format.

use std::io;

use crate::contract::capacity::{CAPACITY_SCHEMA_VERSION, CapacityResult, SearchResult};
use crate::contract::result::{OutcomeResult, Tool};
use crate::contract::sweep::{SWEEP_SCHEMA_VERSION, SweepResult};
use crate::render::format::{Format, NotOfSearches};
use crate::render::{Style, html, junit, markdown, text, write_json};
use crate::saved::reading::{ReadError, of_kind};

/// The result of a search for a capacity, or of a sweep over the levels of a setting.
#[derive(Clone, Debug, PartialEq)]
pub enum Searched {
    /// Of a search.
    Capacity(CapacityResult),
    /// Of a sweep.
    Sweep(SweepResult),
}

impl Searched {
    /// Reads a result that [`Format::Json`] wrote; `None` if it is of something else.
    ///
    /// # Errors
    /// The text is no JSON, the result is not whole, or a later version wrote it.
    pub fn from_json(json: &[u8]) -> Result<Option<Self>, ReadError> {
        if let Some(result) = of_kind(json, CAPACITY_SCHEMA_VERSION, |mark| mark.search.is_some())? {
            return Ok(Some(Self::Capacity(result)));
        }
        let sweep = of_kind(json, SWEEP_SCHEMA_VERSION, |mark| mark.sweep.is_some())?;
        Ok(sweep.map(Self::Sweep))
    }

    /// Names the search or sweep; with `None` the name stays as it is.
    pub fn with_name(mut self, name: Option<String>) -> Self {
        let circumstances = match &mut self {
            Self::Capacity(result) => &mut result.search,
            Self::Sweep(result) => &mut result.sweep,
        };
        circumstances.name = name.or_else(|| circumstances.name.take());
        self
    }

    /// Identity and circumstances.
    pub const fn circumstances(&self) -> &SearchResult {
        match self {
            Self::Capacity(result) => &result.search,
            Self::Sweep(result) => &result.sweep,
        }
    }

    /// The program that made it.
    pub const fn tool(&self) -> &Tool {
        match self {
            Self::Capacity(result) => &result.tool,
            Self::Sweep(result) => &result.tool,
        }
    }

    /// The outcome in the words of a run.
    pub fn outcome(&self) -> OutcomeResult {
        match self {
            Self::Capacity(result) => result.capacity.outcome(),
            Self::Sweep(result) => result.outcome(),
        }
    }

    /// The answer in a few words: the interval of a capacity, or the levels of a sweep.
    pub fn headline(&self) -> String {
        match self {
            Self::Capacity(result) => result.capacity.interval(),
            Self::Sweep(result) => result.headline(),
        }
    }

    /// Writes it. As CSV it is the table of the trials, or of the levels.
    ///
    /// # Errors
    /// Errors of the writer, and [`NotOfSearches`] for a format of single runs.
    pub fn render(&self, format: Format, style: &Style, out: &mut dyn io::Write) -> io::Result<()> {
        match (format, self) {
            (Format::Summary | Format::Text, _) => out.write_all(text::searched(self, style).as_bytes()),
            (Format::Json, Self::Capacity(result)) => write_json(result, out),
            (Format::Json, Self::Sweep(result)) => write_json(result, out),
            (Format::Csv, Self::Capacity(result)) => out.write_all(result.table().as_bytes()),
            (Format::Csv, Self::Sweep(result)) => out.write_all(result.table().as_bytes()),
            (Format::Markdown, _) => out.write_all(markdown::searched(self).as_bytes()),
            (Format::Junit, _) => out.write_all(junit::searched(self).as_bytes()),
            (Format::Ndjson | Format::Hgrm | Format::Hlog | Format::K6, _) => {
                Err(NotOfSearches(format).into())
            }
        }
    }

    /// The page of HTML.
    pub fn page(&self) -> String {
        html::searched(self)
    }
}
