//! Classes of errors beside those of the core.
//!
//! An extension has its classes as [`ErrorRow`]s, which the program [installs](install) before anything is
//! read. Programs without that extension read its names all the same ([`ErrorClass::read`]): such a name
//! becomes a row of the process, about which no more is known.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{PoisonError, RwLock};

use crate::ErrorClass;

/// Class of errors that is not one of the core's. Two with one name are equal.
#[derive(Clone, Debug)]
pub struct ErrorRow {
    /// Name in results, in snake case: another one than those of the core and of other extensions.
    pub name: &'static str,
    /// Answer for [`ErrorClass::is_answer`].
    pub is_answer: bool,
    /// Answer for [`ErrorClass::is_of_server`].
    pub is_of_server: bool,
}

impl PartialEq for ErrorRow {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || self.name == other.name
    }
}

impl Eq for ErrorRow {}

impl Hash for ErrorRow {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl PartialOrd for ErrorRow {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ErrorRow {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name.cmp(other.name)
    }
}

/// Longest name that is read, in bytes: twice that of the longest one of any version.
const LONGEST_NAME: usize = 64;
/// Rows that a process makes of names that it reads. They stay until its end, 150 kB at most; a program with
/// its extensions has some fifty classes.
const MOST_READ: usize = 1_024;

/// Rows of the process.
struct Rows {
    by_name: BTreeMap<&'static str, &'static ErrorRow>,
    /// Number of those that were made of names that were read.
    read: usize,
}

impl Rows {
    const fn new() -> Self {
        Self { by_name: BTreeMap::new(), read: 0 }
    }

    fn install(&mut self, rows: impl IntoIterator<Item = &'static ErrorRow>) {
        self.by_name.extend(rows.into_iter().map(|row| (row.name, row)));
    }

    fn read(&mut self, name: &str) -> Result<&'static ErrorRow, UnreadableName> {
        if let Some(row) = self.by_name.get(name) {
            return Ok(row);
        }
        if self.read == MOST_READ {
            return Err(UnreadableName::TooMany(name.to_owned()));
        }
        self.read += 1;
        // A row is Copy in every count, and lives as long as those of extensions.
        let name: &'static str = Box::leak(name.into());
        let row = Box::leak(Box::new(ErrorRow { name, is_answer: false, is_of_server: false }));
        self.by_name.insert(name, row);
        Ok(row)
    }
}

static ROWS: RwLock<Rows> = RwLock::new(Rows::new());

/// Makes rows known to the process, so that their names are read with what is known about them.
pub fn install(rows: impl IntoIterator<Item = &'static ErrorRow>) {
    ROWS.write().unwrap_or_else(PoisonError::into_inner).install(rows);
}

impl ErrorClass {
    /// Returns the class whose name stands in a file or in the report of another process. A name that neither
    /// the core nor an extension of this process has is a class, too, and keeps its counts; of its failures
    /// nothing is known, so they prove nothing about the target.
    ///
    /// # Errors
    /// If the text is no name, or the process has read more unknown names than all extensions have.
    pub fn read(name: &str) -> Result<Self, UnreadableName> {
        if let Some(class) = Self::from_name(name) {
            return Ok(class);
        }
        if !is_name(name) {
            return Err(UnreadableName::NoName(name.chars().take(LONGEST_NAME).collect()));
        }
        let known = ROWS.read().unwrap_or_else(PoisonError::into_inner).by_name.get(name).copied();
        let row = match known {
            Some(row) => row,
            None => ROWS.write().unwrap_or_else(PoisonError::into_inner).read(name)?,
        };
        Ok(Self::Other(row))
    }
}

/// Returns `true` if a text can be the name of a class: in snake case.
fn is_name(text: &str) -> bool {
    let is_of_names = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.len() <= LONGEST_NAME
        && text.bytes().all(is_of_names)
}

/// Text that cannot be read as the name of a class of errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnreadableName {
    /// Not in snake case, or too long.
    NoName(String),
    /// One more than a process reads.
    TooMany(String),
}

impl fmt::Display for UnreadableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoName(text) => write!(f, "`{text}` is not the name of a class of errors"),
            Self::TooMany(text) => write!(
                f,
                "`{text}` is not a class of errors that is known here, and {MOST_READ} others were read before"
            ),
        }
    }
}

impl std::error::Error for UnreadableName {}

#[cfg(test)]
mod tests {
    use super::*;

    static BUSY: ErrorRow = ErrorRow { name: "sample_busy", is_answer: true, is_of_server: true };

    #[test]
    fn rows_are_equal_by_name_and_in_its_order() {
        let twin = ErrorRow { name: "sample_busy", is_answer: false, is_of_server: false };
        let other = ErrorRow { name: "sample_absent", ..BUSY.clone() };
        assert!(BUSY == twin && BUSY != other && other < BUSY);
        assert!(ErrorClass::AbortedByUs < ErrorClass::Other(&BUSY));
    }

    #[test]
    fn names_are_read_as_what_they_are() {
        assert_eq!(ErrorClass::read("reset"), Ok(ErrorClass::Reset));
        let early = ErrorClass::read("sample_busy").unwrap();
        assert!(!early.is_answer() && !early.is_of_server());
        install([&BUSY]);
        let class = ErrorClass::read("sample_busy").unwrap();
        assert!(class == early && class.is_answer() && class.is_of_server());
        let foreign = ErrorClass::read("mqtt_not_authorized_5").unwrap();
        assert_eq!(foreign.name(), "mqtt_not_authorized_5");
        // It is made once.
        let again = ErrorClass::read(foreign.name()).unwrap();
        let (ErrorClass::Other(row), ErrorClass::Other(same)) = (foreign, again) else { panic!("{foreign}") };
        assert!(std::ptr::eq(row, same));
        let long = "a".repeat(LONGEST_NAME + 1);
        for text in ["", "5xx", "_a", "Reset", "a b", "a\u{1b}[2J", "é", &long] {
            assert!(matches!(ErrorClass::read(text), Err(UnreadableName::NoName(_))), "{text}");
        }
    }

    #[test]
    fn rows_of_names_that_were_read_are_bounded() {
        let mut rows = Rows::new();
        rows.install([&BUSY]);
        for number in 0..MOST_READ {
            rows.read(&format!("foreign_{number}")).unwrap();
        }
        assert_eq!(rows.read("one_more"), Err(UnreadableName::TooMany("one_more".to_owned())));
        assert!(rows.read("sample_busy").is_ok() && rows.read("foreign_7").is_ok());
    }
}
