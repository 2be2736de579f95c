//! The formats that results are written in.

use std::fmt;

/// Formats of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Half a screen for people.
    Summary,
    /// All figures for people.
    Text,
    /// The result contract, as one object.
    Json,
    /// The intervals as a table: one header line, one row per second.
    Csv,
    /// A page in Markdown, for a pull request or the summary of a job.
    Markdown,
    /// The thresholds and the verdict as test cases of JUnit, in XML.
    Junit,
    /// One JSON object per line: each interval, then the result.
    Ndjson,
    /// The spectrum of percentiles of the time that the model is about, as HdrHistogram prints it. Needs the
    /// histograms of the run.
    Hgrm,
    /// Times over time and per step, as an interval log of HdrHistogram. Needs the histograms of the run.
    Hlog,
    /// The summary that k6 exports at the end of a test.
    K6,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 10] = [
        Self::Summary,
        Self::Text,
        Self::Json,
        Self::Csv,
        Self::Markdown,
        Self::Junit,
        Self::Ndjson,
        Self::Hgrm,
        Self::Hlog,
        Self::K6,
    ];

    /// Returns the name of the format on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Text => "text",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Markdown => "markdown",
            Self::Junit => "junit",
            Self::Ndjson => "ndjson",
            Self::Hgrm => "hgrm",
            Self::Hlog => "hlog",
            Self::K6 => "k6",
        }
    }

    /// Returns `true` if the results of searches and sweeps have it, too: see [`NotOfSearches`].
    pub const fn is_of_searches(self) -> bool {
        !matches!(self, Self::Ndjson | Self::Hgrm | Self::Hlog | Self::K6)
    }

    /// Returns `true` if it is made of histograms, which a result does not have: see [`NoHistograms`].
    pub const fn needs_histograms(self) -> bool {
        matches!(self, Self::Hgrm | Self::Hlog)
    }
}

/// Formats of repeated runs, histories, suites and calibrations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// One screen for people.
    Text,
    /// The result by its contract, as one object.
    Json,
    /// A table: one header line, one row per interval or run.
    Csv,
}

/// A format was asked for that is made of histograms, and only the result of a run is there. As an
/// [`io::Error`](std::io::Error) its kind is `Unsupported`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoHistograms(pub Format);

impl fmt::Display for NoHistograms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is made of histograms, and a result in JSON has none", self.0.name())
    }
}

impl std::error::Error for NoHistograms {}

impl From<NoHistograms> for std::io::Error {
    fn from(error: NoHistograms) -> Self {
        Self::new(std::io::ErrorKind::Unsupported, error)
    }
}

/// A format of single runs was asked for, and the result of a search or a sweep is there. As an
/// [`io::Error`](std::io::Error) its kind is `Unsupported`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotOfSearches(pub Format);

impl fmt::Display for NotOfSearches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is of a single run, and this is a search or a sweep", self.0.name())
    }
}

impl std::error::Error for NotOfSearches {}

impl From<NotOfSearches> for std::io::Error {
    fn from(error: NotOfSearches) -> Self {
        Self::new(std::io::ErrorKind::Unsupported, error)
    }
}

/// The words of a finding behind its name: after a colon, or without the name where they begin with it.
pub(crate) fn behind_name(name: &str, words: &str) -> String {
    match words.strip_prefix(name) {
        Some(rest) if rest.starts_with([' ', ':', ',']) => rest.to_owned(),
        _ => format!(": {words}"),
    }
}
