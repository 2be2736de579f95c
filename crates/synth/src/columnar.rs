//! Arc's columnar MessagePack: `{"m": …, "columns": {"time": […], …}}`.

use crate::digits::hexadecimal;
use crate::encoding::{Style, Wrapping, pack_list, pack_text};
use crate::pen::Pen;
use crate::slots::Slots;
use crate::table::{Cells, Table};

/// Prepared parts of the batches of a table.
#[derive(Debug)]
pub(crate) struct Columnar {
    /// For each measurement, everything up to the first time.
    heads: Vec<Vec<u8>>,
    columns: Vec<ColumnWords>,
}

/// One column that is written.
#[derive(Debug)]
struct ColumnWords {
    column: usize,
    /// Name of the column and the head of its list.
    head: Vec<u8>,
    /// Words of the column, if its cells are words or flags.
    slots: Option<Slots>,
}

impl Columnar {
    /// Makes the words of `table` ready; those of the column that says how much may become longer later.
    pub(crate) fn new(table: &Table, spare: impl Fn(usize) -> usize) -> Self {
        let columns = table.written().map(|(column, description)| {
            let mut head = Vec::new();
            pack_text(description.name, &mut head);
            pack_list(table.rows(), &mut head);
            let slots = match &description.cells {
                Cells::Word(lexicon, _) => {
                    Some(Slots::new(lexicon, Wrapping::new(Style::Pack), spare(column)))
                }
                Cells::Flag(_) => Some(Slots::of_flags(Wrapping::new(Style::PackFlag))),
                _ => None,
            };
            ColumnWords { column, head, slots }
        });
        let columns: Vec<_> = columns.collect();
        let heads = table.measurements.iter().map(|name| head(name, columns.len(), table.rows())).collect();
        Self { heads, columns }
    }

    /// Another word in a column.
    pub(crate) fn rename(&mut self, column: usize, index: u32, word: &str) {
        let words = self.columns.iter_mut().filter(|words| words.column == column);
        words.filter_map(|words| words.slots.as_mut()).for_each(|slots| slots.set(index, word));
    }

    /// Writes the table.
    pub(crate) fn write(&self, table: &Table, pen: &mut Pen) {
        pen.put(&self.heads[table.measurement]);
        fixed(pen, &table.times, |&time| join::<8, 9>(0xcf, time.to_be_bytes()));
        for words in &self.columns {
            pen.put(&words.head);
            match (&table.columns[words.column].cells, &words.slots) {
                (Cells::Word(_, cells), Some(slots)) => slots.copy_all(cells.iter().copied(), pen),
                (Cells::Flag(cells), Some(slots)) => {
                    slots.copy_all(cells.iter().map(|&cell| cell.into()), pen);
                }
                (cells, _) => numbers(cells, pen),
            }
        }
    }
}

/// `{"m": name, "columns": {"time": [`, of one column more than are written: the times.
fn head(name: &str, columns: usize, rows: usize) -> Vec<u8> {
    let mut head = vec![0x82];
    pack_text("m", &mut head);
    pack_text(name, &mut head);
    pack_text("columns", &mut head);
    assert!(columns < 15, "kinds have few columns");
    head.push(0x81 + columns as u8);
    pack_text("time", &mut head);
    pack_list(rows, &mut head);
    head
}

/// Numbers always take the bytes of the largest one that the column may have: it is allowed, and as regular
/// as can be.
fn numbers(cells: &Cells, pen: &mut Pen) {
    match cells {
        Cells::Milli(cells) => {
            fixed(pen, cells, |&cell| join::<8, 9>(0xcb, (f64::from(cell) / 1000.0).to_be_bytes()));
        }
        Cells::Count(0..0x1_0000, cells) => {
            fixed(pen, cells, |&cell| join::<2, 3>(0xcd, (cell as u16).to_be_bytes()));
        }
        Cells::Count(0..0x1_0000_0000, cells) => {
            fixed(pen, cells, |&cell| join::<4, 5>(0xce, (cell as u32).to_be_bytes()));
        }
        Cells::Count(_, cells) => fixed(pen, cells, |&cell| join::<8, 9>(0xcf, cell.to_be_bytes())),
        Cells::TraceId(cells) => fixed(pen, cells, |&[high, low]| {
            let mut bytes = [0; 34];
            bytes[..2].copy_from_slice(&[0xd9, 32]);
            bytes[2..18].copy_from_slice(&hexadecimal(high));
            bytes[18..].copy_from_slice(&hexadecimal(low));
            bytes
        }),
        Cells::Id(cells) => ids(cells, pen),
        Cells::Word(..) | Cells::Flag(_) => unreachable!("words have slots"),
    }
}

/// Cells that all take as many bytes.
fn fixed<T, const WIDTH: usize>(pen: &mut Pen, cells: &[T], encode: impl Fn(&T) -> [u8; WIDTH]) {
    let length = WIDTH * cells.len();
    pen.ensure(length);
    let (chunks, _) = pen.room()[..length].as_chunks_mut::<WIDTH>();
    for (chunk, cell) in chunks.iter_mut().zip(cells) {
        *chunk = encode(cell);
    }
    pen.advance(length);
}

/// A marker and the bytes that it announces.
#[inline]
fn join<const BYTES: usize, const WIDTH: usize>(marker: u8, bytes: [u8; BYTES]) -> [u8; WIDTH] {
    let mut joined = [marker; WIDTH];
    joined[1..].copy_from_slice(&bytes);
    joined
}

/// Identifiers, which may be none: an empty string.
fn ids(cells: &[u64], pen: &mut Pen) {
    pen.ensure(17 * (cells.len() + 1));
    for &cell in cells {
        let mut text = [0xb0; 17];
        text[1..].copy_from_slice(&hexadecimal(cell));
        if cell == 0 {
            text[0] = 0xa0;
        }
        pen.chunk(&text, if cell == 0 { 1 } else { 17 });
    }
}
