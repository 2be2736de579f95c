//! Records written one after another: the work of a format for each of them, compiled once.

use crate::digits::{DECIMAL_MAX, decimal, hexadecimal};
use crate::encoding::{Style, Wrapping, attribute, pack_text};
use crate::lexicon::Lexicon;
use crate::pen::Pen;
use crate::slots::{Slots, WIDEST};
use crate::table::{Cells, Table};

/// The pieces that a record is made of, in order.
#[derive(Debug)]
pub(crate) struct Program {
    pieces: Vec<Piece>,
    /// More bytes than any record takes.
    bound: usize,
}

/// Bytes of a [`Piece::Text`].
const TEXT: usize = 32;

/// One thing to write.
#[derive(Debug)]
pub(crate) enum Piece {
    /// The first bytes of a text that is always the same.
    Text([u8; TEXT], usize),
    /// A word of a column.
    Word(usize, Slots),
    /// The word for no or yes, of a column of flags.
    Flag(usize, Slots),
    /// The time, in decimal digits, in units that are this many times smaller.
    Time(u64),
    /// A whole number in decimal digits.
    Count(usize),
    /// A number with three decimals.
    Milli(usize),
    /// An identifier in hexadecimal digits; nothing for none.
    Hex(usize),
    /// The identifier of a trace in hexadecimal digits.
    TraceHex(usize),
    /// The time, as a number of MessagePack.
    PackTime,
    /// A whole number of MessagePack.
    PackCount(usize),
    /// A number with three decimals, as a double of MessagePack.
    PackMilli(usize),
    /// An identifier as a string of MessagePack, which is empty for none.
    PackHex(usize),
    /// The time in units that are this many times smaller, in eight bytes, little-endian.
    FixedTime(u64),
    /// The time in units that are this many times smaller, plus the whole number of a column, in eight bytes,
    /// little-endian.
    FixedEnd(u64, usize),
    /// A number with three decimals, as a double in eight bytes, the lowest first.
    FixedMilli(usize),
    /// An identifier in eight bytes, in a field of protobuf with this key; nothing for none.
    Id(u8, usize),
    /// The identifier of a trace in 16 bytes, in a field of protobuf with this key.
    TraceId(u8, usize),
    /// OpenTelemetry's attribute with a whole number: the bytes before its length, and behind it.
    CountAttribute(u8, Vec<u8>, usize),
    /// A sample of Prometheus in field 2: a number with three decimals, and the time.
    Sample(usize),
}

impl Program {
    /// Another word in a column.
    pub(crate) fn rename(&mut self, column: usize, index: u32, word: &str) {
        for piece in &mut self.pieces {
            match piece {
                Piece::Word(of, slots) if *of == column => slots.set(index, word),
                _ => {}
            }
        }
    }

    /// Writes a record.
    pub(crate) fn write(&self, table: &Table, row: usize, pen: &mut Pen) {
        pen.ensure(self.bound);
        for piece in &self.pieces {
            piece.write(table, row, pen);
        }
    }

    /// More bytes than any record takes.
    pub(crate) fn bound(&self) -> usize {
        self.bound
    }
}

impl Piece {
    #[inline]
    fn write(&self, table: &Table, row: usize, pen: &mut Pen) {
        match *self {
            Self::Text(ref text, length) => pen.chunk(text, length),
            Self::Word(column, ref slots) => slots.copy(table.words(column)[row], pen),
            Self::Flag(column, ref slots) => slots.copy(table.flags(column)[row].into(), pen),
            Self::Time(factor) => write_decimal(table.times[row] * factor, pen),
            Self::Count(column) => write_decimal(table.counts(column)[row], pen),
            Self::Milli(column) => {
                let value = table.millis(column)[row];
                write_decimal((value / 1000).into(), pen);
                let (digits, _) = decimal((value % 1000 + 1000).into());
                let mut decimals = [b'.'; 4];
                decimals[1..].copy_from_slice(&digits[DECIMAL_MAX - 3..]);
                pen.chunk(&decimals, 4);
            }
            Self::Hex(column) => match table.ids(column)[row] {
                0 => {}
                id => pen.chunk(&hexadecimal(id), 16),
            },
            Self::TraceHex(column) => {
                let [high, low] = table.trace_ids(column)[row];
                pen.chunk(&hexadecimal(high), 16);
                pen.chunk(&hexadecimal(low), 16);
            }
            Self::PackTime => {
                pen.copy(&[0xcf]);
                pen.chunk(&table.times[row].to_be_bytes(), 8);
            }
            Self::PackCount(column) => {
                let mut bytes = [0xcf; 9];
                bytes[1..].copy_from_slice(&table.counts(column)[row].to_be_bytes());
                pen.chunk(&bytes, 9);
            }
            Self::PackMilli(column) => {
                pen.copy(&[0xcb]);
                pen.chunk(&double(table.millis(column)[row]).to_be_bytes(), 8);
            }
            Self::PackHex(column) => match table.ids(column)[row] {
                0 => pen.copy(&[0xa0]),
                id => {
                    pen.copy(&[0xb0]);
                    pen.chunk(&hexadecimal(id), 16);
                }
            },
            Self::FixedTime(factor) => pen.chunk(&(table.times[row] * factor).to_le_bytes(), 8),
            Self::FixedEnd(factor, column) => {
                let end = table.times[row] * factor + table.counts(column)[row];
                pen.chunk(&end.to_le_bytes(), 8);
            }
            Self::FixedMilli(column) => pen.chunk(&double(table.millis(column)[row]).to_le_bytes(), 8),
            Self::Id(key, column) => match table.ids(column)[row] {
                0 => {}
                id => {
                    pen.chunk(&[key, 8], 2);
                    pen.chunk(&id.to_be_bytes(), 8);
                }
            },
            Self::TraceId(key, column) => {
                let [high, low] = table.trace_ids(column)[row];
                pen.chunk(&[key, 16], 2);
                pen.chunk(&high.to_be_bytes(), 8);
                pen.chunk(&low.to_be_bytes(), 8);
            }
            Self::CountAttribute(key, ref name, column) => {
                let attribute = pen.open(key, 1);
                pen.copy(name);
                let value = pen.open(0x12, 1);
                pen.copy(&[0x18]);
                pen.varint(table.counts(column)[row]);
                pen.close(&value);
                pen.close(&attribute);
            }
            Self::Sample(column) => {
                let sample = pen.open(0x12, 1);
                pen.copy(&[0x09]);
                pen.chunk(&double(table.millis(column)[row]).to_le_bytes(), 8);
                pen.copy(&[0x10]);
                pen.varint(table.times[row]);
                pen.close(&sample);
            }
        }
    }

    /// More bytes than it takes.
    fn bound(&self) -> usize {
        match self {
            Self::Word(..) | Self::Flag(..) => WIDEST,
            Self::CountAttribute(_, name, _) => name.len() + 24,
            _ => 40,
        }
    }
}

/// The double next to a number of thousandths: the same that a parser makes of its text.
fn double(millis: u32) -> f64 {
    f64::from(millis) / 1000.0
}

#[inline]
fn write_decimal(number: u64, pen: &mut Pen) {
    let (digits, count) = decimal(number);
    pen.copy(&digits[DECIMAL_MAX - count..]);
}

/// Puts a program together. Texts are joined, and become part of the words that follow them.
pub(crate) struct Builder<'a> {
    table: &'a Table,
    /// Number of bytes by which the words of a column may grow.
    spare: &'a dyn Fn(usize) -> usize,
    pieces: Vec<Piece>,
    text: Vec<u8>,
}

/// The longest text that becomes part of the words behind it: they have to stay within their slots.
const JOINED_MAX: usize = 48;

impl<'a> Builder<'a> {
    pub(crate) fn new(table: &'a Table, spare: &'a dyn Fn(usize) -> usize) -> Self {
        Self { table, spare, pieces: Vec::new(), text: Vec::new() }
    }

    /// A text that is always the same.
    pub(crate) fn text(&mut self, text: impl AsRef<[u8]>) {
        self.text.extend_from_slice(text.as_ref());
    }

    /// A word of a column, or its flag.
    pub(crate) fn word(&mut self, column: usize, style: Style) {
        match &self.table.columns[column].cells {
            Cells::Word(lexicon, _) => self.word_of(column, lexicon, style),
            Cells::Flag(_) => {
                let slots = Slots::of_flags(self.dress(style));
                self.pieces.push(Piece::Flag(column, slots));
            }
            other => unreachable!("{other:?} are not words"),
        }
    }

    /// The word of another lexicon with the number of that of a column.
    pub(crate) fn word_of(&mut self, column: usize, lexicon: &Lexicon, style: Style) {
        let dress = self.dress(style);
        let slots = Slots::new(lexicon, dress, (self.spare)(column));
        self.pieces.push(Piece::Word(column, slots));
    }

    fn dress(&mut self, style: Style) -> Wrapping {
        if self.text.len() > JOINED_MAX {
            self.flush();
        }
        Wrapping::around(std::mem::take(&mut self.text), style, [])
    }

    /// Another piece.
    pub(crate) fn piece(&mut self, piece: Piece) {
        self.flush();
        self.pieces.push(piece);
    }

    fn flush(&mut self) {
        for part in self.text.chunks(TEXT) {
            let mut text = [0; TEXT];
            text[..part.len()].copy_from_slice(part);
            self.pieces.push(Piece::Text(text, part.len()));
        }
        self.text.clear();
    }

    pub(crate) fn finish(mut self) -> Program {
        self.flush();
        let bound = self.pieces.iter().map(Piece::bound).sum::<usize>() + WIDEST;
        Program { pieces: self.pieces, bound }
    }

    /// `name: value` of a map of MessagePack.
    pub(crate) fn pack(&mut self, column: usize) {
        let description = &self.table.columns[column];
        let mut name = Vec::new();
        pack_text(description.name, &mut name);
        self.text(name);
        match description.cells {
            Cells::Word(..) => self.word(column, Style::Pack),
            Cells::Flag(_) => self.word(column, Style::PackFlag),
            Cells::Milli(_) => self.piece(Piece::PackMilli(column)),
            Cells::Count(..) => self.piece(Piece::PackCount(column)),
            Cells::Id(_) => self.piece(Piece::PackHex(column)),
            Cells::TraceId(_) => {
                self.text([0xd9, 32]);
                self.piece(Piece::TraceHex(column));
            }
        }
    }

    /// `"name":value` of JSON, `quote` being the form of a quotation mark.
    pub(crate) fn json(&mut self, column: usize, quote: &str) {
        let description = &self.table.columns[column];
        self.text(format!("{quote}{}{quote}:", description.name));
        let style = if quote == "\"" { Style::Json } else { Style::JsonTwice };
        match description.cells {
            Cells::Word(..) => self.word(column, style),
            Cells::Flag(_) => self.word(column, Style::Plain),
            _ => self.number_or_id(column, quote),
        }
    }

    /// `name=value`, a field of the line protocol.
    pub(crate) fn line_field(&mut self, column: usize) {
        let description = &self.table.columns[column];
        self.text(format!("{}=", description.name));
        match description.cells {
            Cells::Word(..) => self.word(column, Style::LineText),
            Cells::Flag(_) => self.word(column, Style::Plain),
            _ => self.number_or_id(column, "\""),
        }
        if matches!(description.cells, Cells::Count(..)) {
            self.text("i");
        }
    }

    fn number_or_id(&mut self, column: usize, quote: &str) {
        match self.table.columns[column].cells {
            Cells::Milli(_) => self.piece(Piece::Milli(column)),
            Cells::Count(..) => self.piece(Piece::Count(column)),
            Cells::Id(_) | Cells::TraceId(_) => {
                self.text(quote);
                let is_id = matches!(self.table.columns[column].cells, Cells::Id(_));
                self.piece(if is_id { Piece::Hex(column) } else { Piece::TraceHex(column) });
                self.text(quote);
            }
            Cells::Word(..) | Cells::Flag(_) => unreachable!("words are written otherwise"),
        }
    }

    /// An attribute of OpenTelemetry in a field of protobuf with this key.
    pub(crate) fn attribute(&mut self, key: u8, column: usize) {
        let description = &self.table.columns[column];
        let mut text = Vec::new();
        match description.cells {
            Cells::Word(..) => self.word(column, Style::Attribute(key, description.name)),
            Cells::Flag(_) => self.word(column, Style::AttributeFlag(key, description.name)),
            Cells::Count(..) => {
                crate::encoding::field(0x0a, description.name.as_bytes(), &mut text);
                self.piece(Piece::CountAttribute(key, text, column));
            }
            Cells::Milli(_) => {
                // `double_value`, of which the eight bytes follow.
                attribute(
                    key,
                    description.name,
                    |out| out.extend_from_slice(&[0x21, 0, 0, 0, 0, 0, 0, 0, 0]),
                    &mut text,
                );
                self.text(&text[..text.len() - 8]);
                self.piece(Piece::FixedMilli(column));
            }
            Cells::Id(_) => {
                // `string_value` of 16 digits, which follow.
                let mut value = [0; 18];
                value[..2].copy_from_slice(&[0x0a, 16]);
                attribute(key, description.name, |out| out.extend_from_slice(&value), &mut text);
                self.text(&text[..text.len() - 16]);
                self.piece(Piece::Hex(column));
            }
            Cells::TraceId(_) => unreachable!("a span's trace is not an attribute"),
        }
    }
}
