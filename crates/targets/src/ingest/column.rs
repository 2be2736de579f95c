//! The values of one column of one batch, in memory of their own type.

use std::borrow::Cow;

use super::msgpack::Reader;

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Bool,
    Int,
    Float,
    Text,
    /// Microseconds since 1970, the unit of the real server.
    Time,
}

/// One value that has been read; text as it came, valid or not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    /// Above the range of an `i64`.
    Large(u64),
    Float(f64),
    Text(&'a [u8]),
}

impl Value<'_> {
    /// The bytes of a text.
    pub(crate) const fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            _ => 0,
        }
    }

    /// Returns the real server's name for its type, for values whose encoding does not say more.
    pub(crate) const fn go_type(&self) -> &'static str {
        match self {
            Self::Null => "<nil>",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int64",
            Self::Large(_) => "uint64",
            Self::Float(_) => "float64",
            Self::Text(_) => "string",
        }
    }
}

/// One value that is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cell<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(&'a str),
    Time(i64),
}

/// Texts one behind the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Texts {
    bytes: String,
    /// The end of each of them. 32 bits: a payload has at most 16 MiB.
    ends: Vec<u32>,
}

impl Texts {
    #[inline]
    fn get(&self, row: usize) -> &str {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.bytes[start as usize..self.ends[row] as usize]
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Cells {
    Bool(Vec<bool>),
    Int(Vec<i64>),
    Float(Vec<f64>),
    Text(Texts),
    Time(Vec<i64>),
}

/// A column of one batch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    cells: Cells,
    /// Which of them are values and not nulls; `None`: all of them.
    valid: Option<Vec<bool>>,
}

impl Column {
    /// A column of instants, in microseconds.
    pub(crate) const fn times(micros: Vec<i64>) -> Self {
        Self { cells: Cells::Time(micros), valid: None }
    }

    pub(crate) const fn kind(&self) -> Kind {
        match self.cells {
            Cells::Bool(_) => Kind::Bool,
            Cells::Int(_) => Kind::Int,
            Cells::Float(_) => Kind::Float,
            Cells::Text(_) => Kind::Text,
            Cells::Time(_) => Kind::Time,
        }
    }

    pub(crate) const fn len(&self) -> usize {
        match &self.cells {
            Cells::Bool(cells) => cells.len(),
            Cells::Int(cells) | Cells::Time(cells) => cells.len(),
            Cells::Float(cells) => cells.len(),
            Cells::Text(texts) => texts.ends.len(),
        }
    }

    /// Returns the bytes of memory that the column takes.
    pub(crate) const fn bytes(&self) -> usize {
        let cells = match &self.cells {
            Cells::Bool(cells) => cells.capacity(),
            Cells::Int(cells) | Cells::Time(cells) => 8 * cells.capacity(),
            Cells::Float(cells) => 8 * cells.capacity(),
            Cells::Text(texts) => texts.bytes.capacity() + 4 * texts.ends.capacity(),
        };
        match &self.valid {
            Some(valid) => cells + valid.capacity(),
            None => cells,
        }
    }

    /// The value of one row.
    #[inline]
    pub(crate) fn get(&self, row: usize) -> Cell<'_> {
        if self.valid.as_ref().is_some_and(|valid| !valid[row]) {
            return Cell::Null;
        }
        match &self.cells {
            Cells::Bool(cells) => Cell::Bool(cells[row]),
            Cells::Int(cells) => Cell::Int(cells[row]),
            Cells::Float(cells) => Cell::Float(cells[row]),
            Cells::Text(texts) => Cell::Text(texts.get(row)),
            Cells::Time(cells) => Cell::Time(cells[row]),
        }
    }
}

/// Makes a column of values that come one after the other. Its kind is that of the first value, and the
/// others are converted to it as the real server does: a float becomes a whole number without its fraction, a
/// whole number a float; anything else is a conflict.
#[derive(Clone, Debug, Default)]
pub(crate) struct Builder {
    cells: Growing,
    len: usize,
    valid: Option<Vec<bool>>,
    conflict: Option<Conflict>,
}

/// A value that cannot become one of its column's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    /// Type of the value, in the real server's words.
    pub(crate) from: &'static str,
    /// Type of its column.
    pub(crate) to: &'static str,
}

#[derive(Clone, Debug, Default)]
enum Growing {
    /// Nothing but nulls so far.
    #[default]
    Nothing,
    Bool(Vec<bool>),
    Int(Vec<i64>),
    Float(Vec<f64>),
    Text {
        bytes: Vec<u8>,
        ends: Vec<u32>,
    },
}

impl Builder {
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Adds the next values as long as they have the column's kind in its usual form, up to `most`. Returns
    /// their number.
    pub(crate) fn run(&mut self, reader: &mut Reader<'_>, most: usize) -> usize {
        let taken = match &mut self.cells {
            Growing::Int(cells) => reader.ints(most, cells),
            Growing::Float(cells) => reader.floats(most, cells),
            Growing::Text { bytes, ends } => reader.short_texts(most, bytes, ends),
            Growing::Nothing | Growing::Bool(_) => 0,
        };
        self.len += taken;
        if let Some(valid) = &mut self.valid {
            valid.resize(self.len, true);
        }
        taken
    }

    /// Adds a value; `go_type` is the real server's name of its type, for its error text.
    #[inline]
    pub(crate) fn push(&mut self, value: Value<'_>, go_type: &'static str, expected: usize) {
        match (&mut self.cells, value) {
            (_, Value::Null) => return self.push_null(),
            (Growing::Int(cells), Value::Int(int)) => cells.push(int),
            (Growing::Float(cells), Value::Float(float)) => cells.push(float),
            (Growing::Text { bytes, ends }, Value::Text(text)) => {
                bytes.extend_from_slice(text);
                ends.push(bytes.len() as u32);
            }
            (Growing::Bool(cells), Value::Bool(bool)) => cells.push(bool),
            _ => return self.push_other(value, go_type, expected),
        }
        self.len += 1;
        if let Some(valid) = &mut self.valid {
            valid.push(true);
        }
    }

    /// The first value, or one of another kind than the column's.
    #[cold]
    fn push_other(&mut self, value: Value<'_>, go_type: &'static str, expected: usize) {
        let converted = match (&self.cells, value) {
            (Growing::Nothing, _) => {
                self.begin(value, expected.max(self.len + 1));
                value
            }
            // Beyond these bounds there is no such integer.
            (Growing::Int(_), Value::Float(float))
                if (-(2_f64.powi(63))..2_f64.powi(63)).contains(&float) =>
            {
                Value::Int(float as i64)
            }
            (Growing::Float(_), Value::Int(int)) => Value::Float(int as f64),
            (Growing::Float(_), Value::Large(int)) => Value::Float(int as f64),
            _ => {
                let to = self.kind_name();
                self.conflict.get_or_insert(Conflict { from: go_type, to });
                return self.push_null();
            }
        };
        match converted {
            // A column that begins with it is one of floats.
            Value::Large(int) => self.push(Value::Float(int as f64), go_type, expected),
            converted => self.push(converted, go_type, expected),
        }
    }

    /// Takes the kind of its first value; earlier cells are nulls.
    fn begin(&mut self, value: Value<'_>, capacity: usize) {
        let nulls = self.len;
        fn room<T: Clone>(nulls: usize, capacity: usize, filler: T) -> Vec<T> {
            let mut cells = Vec::with_capacity(capacity);
            cells.resize(nulls, filler);
            cells
        }
        self.cells = match value {
            Value::Null => Growing::Nothing,
            Value::Bool(_) => Growing::Bool(room(nulls, capacity, false)),
            Value::Int(_) => Growing::Int(room(nulls, capacity, 0)),
            Value::Large(_) | Value::Float(_) => Growing::Float(room(nulls, capacity, 0.0)),
            Value::Text(_) => Growing::Text { bytes: Vec::new(), ends: room(nulls, capacity, 0) },
        };
        self.valid = (nulls > 0).then(|| room(nulls, capacity, false));
    }

    pub(crate) fn push_null(&mut self) {
        match &mut self.cells {
            Growing::Nothing => {
                self.len += 1;
                return;
            }
            Growing::Bool(cells) => cells.push(false),
            Growing::Int(cells) => cells.push(0),
            Growing::Float(cells) => cells.push(0.0),
            Growing::Text { bytes, ends } => ends.push(bytes.len() as u32),
        }
        let before = self.len;
        self.valid.get_or_insert_with(|| vec![true; before]).push(false);
        self.len += 1;
    }

    /// Adds nulls until it has this length.
    pub(crate) fn pad(&mut self, length: usize) {
        while self.len < length {
            self.push_null();
        }
    }

    /// Notes that a value has no place in any column.
    pub(crate) fn refuse(&mut self, go_type: &'static str) {
        let to = self.kind_name();
        self.conflict.get_or_insert(Conflict { from: go_type, to });
        self.push_null();
    }

    /// The column, `None` if it has nothing but nulls, or the conflict.
    pub(crate) fn finish(self) -> Result<Option<Column>, Conflict> {
        if let Some(conflict) = self.conflict {
            return Err(conflict);
        }
        let cells = match self.cells {
            Growing::Nothing => return Ok(None),
            Growing::Bool(cells) => Cells::Bool(cells),
            Growing::Int(cells) => Cells::Int(cells),
            Growing::Float(cells) => Cells::Float(cells),
            Growing::Text { bytes, ends } => Cells::Text(texts(bytes, ends)),
        };
        Ok(Some(Column { cells, valid: self.valid }))
    }

    const fn kind_name(&self) -> &'static str {
        match self.cells {
            Growing::Nothing => "any column",
            Growing::Bool(_) => "bool",
            Growing::Int(_) => "int64",
            Growing::Float(_) => "float64",
            Growing::Text { .. } => "string",
        }
    }
}

/// Texts, with invalid UTF-8 replaced, as the real server does.
fn texts(bytes: Vec<u8>, ends: Vec<u32>) -> Texts {
    if bytes.is_ascii() {
        // All ASCII: every place is between characters.
        let bytes = String::from_utf8(bytes).expect("it is ASCII");
        return Texts { bytes, ends };
    }
    let mut sound = Texts { bytes: String::with_capacity(bytes.len()), ends: Vec::with_capacity(ends.len()) };
    let mut start = 0;
    for end in ends {
        let text = String::from_utf8_lossy(&bytes[start..end as usize]);
        sound.bytes.push_str(&text);
        sound.ends.push(sound.bytes.len() as u32);
        start = end as usize;
    }
    sound
}

impl Cell<'_> {
    /// Returns the cell as text, as a column of mixed kinds shows it; `None` for null.
    pub(crate) fn text(&self) -> Option<Cow<'_, str>> {
        Some(match *self {
            Self::Null => return None,
            Self::Bool(bool) => Cow::Borrowed(if bool { "true" } else { "false" }),
            Self::Int(int) => int.to_string().into(),
            Self::Float(float) => format!("{float:?}").into(),
            Self::Text(text) => Cow::Borrowed(text),
            Self::Time(micros) => super::time::written(micros).into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(values: &[(Value<'_>, &'static str)]) -> Result<Option<Column>, Conflict> {
        let mut builder = Builder::default();
        for (value, go_type) in values {
            builder.push(*value, go_type, values.len());
        }
        assert_eq!(builder.len(), values.len());
        builder.finish()
    }

    fn cells(column: &Column) -> Vec<Cell<'_>> {
        (0..column.len()).map(|row| column.get(row)).collect()
    }

    #[test]
    fn a_column_has_the_kind_of_its_first_value() {
        use Value::{Bool, Float, Int, Large, Null, Text};
        let whole = built(&[(Int(1), "int8"), (Float(2.5), "float64"), (Null, ""), (Float(-2.5), "float64")]);
        let whole = whole.unwrap().unwrap();
        assert_eq!(cells(&whole), [Cell::Int(1), Cell::Int(2), Cell::Null, Cell::Int(-2)]);
        let floats =
            built(&[(Null, ""), (Float(1.5), "float64"), (Int(2), "int8"), (Large(u64::MAX), "uint64")]);
        let floats = floats.unwrap().unwrap();
        let expected =
            [Cell::Null, Cell::Float(1.5), Cell::Float(2.0), Cell::Float(18_446_744_073_709_551_615.0)];
        assert_eq!((floats.kind(), cells(&floats)), (Kind::Float, expected.to_vec()));
        let texts =
            built(&[(Text(b"a"), "string"), (Text(b""), "string"), (Null, ""), (Text(b"\xFFb"), "string")]);
        let texts = texts.unwrap().unwrap();
        let expected = [Cell::Text("a"), Cell::Text(""), Cell::Null, Cell::Text("\u{FFFD}b")];
        assert_eq!(cells(&texts), expected);
        let bools = built(&[(Bool(true), "bool"), (Bool(false), "bool")]).unwrap().unwrap();
        assert_eq!(cells(&bools), [Cell::Bool(true), Cell::Bool(false)]);
        assert_eq!(built(&[(Null, ""), (Null, "")]), Ok(None));
        assert!(texts.bytes() >= 4 * 4 + 5);
    }

    #[test]
    fn what_cannot_be_converted_is_a_conflict() {
        use Value::{Bool, Float, Int, Large, Text};
        for (first, then, go_type, to) in [
            (Int(1), Text(b"x"), "string", "int64"),
            (Int(1), Large(u64::MAX), "uint64", "int64"),
            (Int(1), Float(f64::NAN), "float64", "int64"),
            (Int(1), Float(9.3e18), "float64", "int64"),
            (Float(1.0), Text(b"x"), "string", "float64"),
            (Text(b"x"), Int(1), "int8", "string"),
            (Bool(true), Int(1), "int8", "bool"),
        ] {
            assert_eq!(
                built(&[(first, ""), (then, go_type)]),
                Err(Conflict { from: go_type, to }),
                "{then:?}"
            );
        }
    }
}
