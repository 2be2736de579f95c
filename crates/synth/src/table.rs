//! The records of one batch, column by column.

use crate::lexicon::Lexicon;

/// The records of one batch as small numbers. Its columns stay the same, its cells are drawn again for each
/// batch.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// The measurements that batches may be of.
    pub(crate) measurements: Vec<String>,
    /// Which of them this batch is of.
    pub(crate) measurement: usize,
    /// When, in the unit of the spec.
    pub(crate) times: Vec<u64>,
    /// In the order in which they are written.
    pub(crate) columns: Vec<Column>,
}

/// One column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    /// `true` if this column (a tag, a label) identifies and groups records.
    pub(crate) is_tag: bool,
    /// `true` if the column is written: others are only drawn.
    pub(crate) is_written: bool,
    pub(crate) cells: Cells,
}

/// Values of a column, one for each row.
#[derive(Clone, Debug)]
pub(crate) enum Cells {
    /// The number of a word.
    Word(Lexicon, Vec<u32>),
    /// Thousandths: a number with three decimals, which has the same digits as text and as the nearest
    /// double.
    Milli(Vec<u32>),
    /// A whole number, at most so large.
    Count(u64, Vec<u64>),
    /// An identifier of 16 hexadecimal digits; 0 stands for none.
    Id(Vec<u64>),
    /// An identifier of 32 hexadecimal digits.
    TraceId(Vec<[u64; 2]>),
    /// Yes or no.
    Flag(Vec<bool>),
}

impl Table {
    /// A table of `rows` records of the given columns.
    pub(crate) fn new(measurements: &[&str], rows: usize, columns: Vec<Column>) -> Self {
        let measurements = measurements.iter().map(|&name| name.to_owned()).collect();
        let mut table = Self { measurements, measurement: 0, times: vec![0; rows], columns };
        for column in &mut table.columns {
            match &mut column.cells {
                Cells::Word(_, cells) | Cells::Milli(cells) => cells.resize(rows, 0),
                Cells::Count(_, cells) | Cells::Id(cells) => cells.resize(rows, 0),
                Cells::TraceId(cells) => cells.resize(rows, [0; 2]),
                Cells::Flag(cells) => cells.resize(rows, false),
            }
        }
        table
    }

    /// Returns the number of records.
    pub(crate) fn rows(&self) -> usize {
        self.times.len()
    }

    /// The columns that are written, with their numbers.
    pub(crate) fn written(&self) -> impl Iterator<Item = (usize, &Column)> {
        self.columns.iter().enumerate().filter(|(_, column)| column.is_written)
    }

    /// The number of the column called `name`.
    pub(crate) fn position(&self, name: &str) -> usize {
        self.columns.iter().position(|column| column.name == name).expect("the kind has that column")
    }

    pub(crate) fn words(&self, column: usize) -> &[u32] {
        match &self.columns[column].cells {
            Cells::Word(_, cells) => cells,
            other => unreachable!("{other:?} are not words"),
        }
    }

    pub(crate) fn millis(&self, column: usize) -> &[u32] {
        match &self.columns[column].cells {
            Cells::Milli(cells) => cells,
            other => unreachable!("{other:?} are not thousandths"),
        }
    }

    pub(crate) fn counts(&self, column: usize) -> &[u64] {
        match &self.columns[column].cells {
            Cells::Count(_, cells) => cells,
            other => unreachable!("{other:?} are not whole numbers"),
        }
    }

    pub(crate) fn ids(&self, column: usize) -> &[u64] {
        match &self.columns[column].cells {
            Cells::Id(cells) => cells,
            other => unreachable!("{other:?} are not identifiers"),
        }
    }

    pub(crate) fn trace_ids(&self, column: usize) -> &[[u64; 2]] {
        match &self.columns[column].cells {
            Cells::TraceId(cells) => cells,
            other => unreachable!("{other:?} are not identifiers of traces"),
        }
    }

    pub(crate) fn flags(&self, column: usize) -> &[bool] {
        match &self.columns[column].cells {
            Cells::Flag(cells) => cells,
            other => unreachable!("{other:?} are not yes or no"),
        }
    }
}

impl Column {
    /// A tag: one of the words of a lexicon.
    pub(crate) fn tag(name: &'static str, lexicon: Lexicon) -> Self {
        Self { name, is_tag: true, is_written: true, cells: Cells::Word(lexicon, Vec::new()) }
    }

    /// A field.
    pub(crate) fn field(name: &'static str, cells: Cells) -> Self {
        Self { name, is_tag: false, is_written: true, cells }
    }

    /// A field that is one of the words of a lexicon.
    pub(crate) fn text(name: &'static str, lexicon: Lexicon) -> Self {
        Self::field(name, Cells::Word(lexicon, Vec::new()))
    }

    pub(crate) fn words_mut(&mut self) -> &mut [u32] {
        match &mut self.cells {
            Cells::Word(_, cells) => cells,
            other => unreachable!("{other:?} are not words"),
        }
    }

    pub(crate) fn millis_mut(&mut self) -> &mut [u32] {
        match &mut self.cells {
            Cells::Milli(cells) => cells,
            other => unreachable!("{other:?} are not thousandths"),
        }
    }

    pub(crate) fn counts_mut(&mut self) -> &mut [u64] {
        match &mut self.cells {
            Cells::Count(_, cells) => cells,
            other => unreachable!("{other:?} are not whole numbers"),
        }
    }

    pub(crate) fn ids_mut(&mut self) -> &mut [u64] {
        match &mut self.cells {
            Cells::Id(cells) => cells,
            other => unreachable!("{other:?} are not identifiers"),
        }
    }

    pub(crate) fn trace_ids_mut(&mut self) -> &mut [[u64; 2]] {
        match &mut self.cells {
            Cells::TraceId(cells) => cells,
            other => unreachable!("{other:?} are not identifiers of traces"),
        }
    }

    pub(crate) fn flags_mut(&mut self) -> &mut [bool] {
        match &mut self.cells {
            Cells::Flag(cells) => cells,
            other => unreachable!("{other:?} are not yes or no"),
        }
    }
}
