//! Results of commands that make no single run, read again: searches, sweeps, comparisons, suites.

use std::io::{self, Write};

use plimsoll_document::Problem;
use plimsoll_report::comparison::Comparison;
use plimsoll_report::html::render_comparison_page;
use plimsoll_report::{Format, ReadError, RunResult, Searched, Style, SuiteResult, render_suite};

use crate::args::output::OutputFormat;
use crate::base::failure::Failure;
use crate::session::outputs::of_runs_only;

/// Page of a document, or the runs that a page shows.
pub(crate) enum Drawn {
    /// A page of its own.
    Page(Vec<u8>),
    /// Runs with their names.
    Runs(Vec<(String, RunResult)>),
}

/// Result of a command that makes no single run.
pub(crate) enum Document {
    Searched(Box<Searched>),
    Comparison(Box<Comparison>),
    Suite(SuiteResult),
}

impl Document {
    /// Reads a result in JSON; `None` if it is that of a run, or something else.
    ///
    /// # Errors
    /// The text is no JSON, the result is not whole, or a later version wrote it.
    pub(crate) fn from_json(json: &[u8]) -> Result<Option<Self>, ReadError> {
        if let Some(searched) = Searched::from_json(json)? {
            return Ok(Some(Self::Searched(Box::new(searched))));
        }
        if let Some(comparison) = Comparison::from_json(json)? {
            return Ok(Some(Self::Comparison(Box::new(comparison))));
        }
        Ok(SuiteResult::from_json(json)?.map(Self::Suite))
    }

    /// Fails if it does not have this format.
    ///
    /// # Errors
    /// The formats that it has.
    pub(crate) fn admit(&self, format: OutputFormat) -> Result<(), Failure> {
        let name = Format::from(format).name();
        let refused = |what: &str, has: &str| {
            Problem::new(format!("{name} is no format of {what}")).with_hint(format!("take {has}"))
        };
        let (has, problem) = match self {
            Self::Searched(_) => (Format::from(format).is_of_searches(), of_runs_only(Format::from(format))),
            Self::Comparison(_) => {
                (format.for_comparison().is_some(), refused("a comparison", "text, json or markdown"))
            }
            Self::Suite(_) => (format.for_table().is_some(), refused("a suite", "text, json or csv")),
        };
        if has { Ok(()) } else { Err(Failure::usage(problem)) }
    }

    /// Writes it in a format that it has.
    ///
    /// # Errors
    /// Errors of the writer.
    pub(crate) fn write(&self, format: OutputFormat, style: &Style, out: &mut dyn Write) -> io::Result<()> {
        let missing = || io::Error::from(io::ErrorKind::Unsupported);
        match self {
            Self::Searched(searched) => searched.render(format.into(), style, out),
            Self::Comparison(comparison) => {
                format.for_comparison().ok_or_else(missing)?.write(comparison, style, out)
            }
            Self::Suite(suite) => render_suite(suite, format.for_table().ok_or_else(missing)?, style, out),
        }
    }

    /// Makes the page of HTML, or returns the runs that a page of runs shows.
    ///
    /// # Errors
    /// A page of a comparison cannot be made.
    pub(crate) fn drawn(self) -> Result<Drawn, Failure> {
        match self {
            Self::Searched(searched) => Ok(Drawn::Page(searched.page().into_bytes())),
            Self::Comparison(comparison) => {
                let mut page = Vec::new();
                render_comparison_page(&comparison, &mut page).map_err(|error| {
                    Failure::environment(Problem::new(format!("cannot make the page: {error}")))
                })?;
                Ok(Drawn::Page(page))
            }
            Self::Suite(suite) => Ok(Drawn::Runs(suite.named_results())),
        }
    }

    /// The part of a file's name that says whose page it is.
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Searched(searched) => &searched.circumstances().id,
            Self::Comparison(comparison) => {
                comparison.interleaved.as_ref().map_or("comparison", |run| run.id.as_str())
            }
            Self::Suite(suite) => &suite.suite,
        }
    }
}
