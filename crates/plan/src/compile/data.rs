//! Data sources: the places of rows, and the names of their columns.

use plimsoll_document::{
    DataSpec, Field, FileKind, LONGEST_DATA_HEAD, Place, Problem, Row, Text, is_function,
};
use plimsoll_scenario::{AtEnd, FeedSpec, Order, Per, Rows, Share};
use plimsoll_schedule::parse_count;
use serde_json::Value;

use super::around::Role;
use super::{Compiler, suggestion};
use crate::grants::{is_not_granted, unreadable};

/// A data source of the plan file.
pub(super) struct SourceDraft {
    pub(super) name: String,
    place: Option<Place>,
    /// The names of its columns; one that no template can name is `None`.
    pub(super) columns: Vec<Option<String>>,
    /// Which of them some scenario reads.
    used: Vec<bool>,
    /// `true` if a scenario takes rows of it.
    pub(super) is_drawn: bool,
    /// `None` if it is wrong, which was reported: its columns are not known then.
    rows: Option<Rows>,
    order: Order,
    at_end: AtEnd,
    share: Share,
    per: Per,
}

impl SourceDraft {
    /// A scenario reads this column.
    pub(super) fn use_column(&mut self, name: &str) {
        for (column, used) in self.columns.iter().zip(&mut self.used) {
            *used |= column.as_deref() == Some(name);
        }
    }
}

impl Compiler<'_, '_> {
    /// Reads the data sources of the plan.
    pub(super) fn name_sources(&mut self) {
        for (name, place, spec) in &self.loaded.document.data.0 {
            self.check_name(&name.0, Some(*place));
            let known = self.resolver.problems.len();
            let order = self.read(&spec.order, parse_order).flatten().unwrap_or(Order::Sequential);
            let order = self.sliced(spec, order);
            let per = self.read(&spec.per, parse_per).flatten().unwrap_or(Per::Iteration);
            // A user without a row of its own is a mistake, unless the plan says otherwise.
            let at_end = if per == Per::User { AtEnd::Fail } else { AtEnd::Wrap };
            let at_end = self.read(&spec.at_end, parse_at_end).flatten().unwrap_or(at_end);
            let share = self.read(&spec.share, parse_share).flatten().unwrap_or(Share::Split);
            if order == Order::Random && !spec.at_end.is_absent() {
                let problem =
                    Problem::new("`at_end` has no effect: rows that are drawn at random have no end");
                self.report(spec.at_end.place(), problem.with_hint("`order: shuffled` takes each row once"));
            }
            if per == Per::User {
                self.check_user_rows(spec, at_end, share);
            }
            let rows = self.rows(&name.0, Some(*place), spec);
            let (rows, names) = match rows.filter(|_| self.resolver.problems.len() == known) {
                Some((rows, names)) => (Some(rows), names),
                None => (None, Vec::new()),
            };
            let columns: Vec<_> =
                names.into_iter().map(|name| Some(name).filter(|name| can_be_named(name))).collect();
            self.check_columns(&name.0, Some(*place), spec, &columns);
            self.sources.push(SourceDraft {
                name: name.0.clone(),
                place: Some(*place),
                used: vec![false; columns.len()],
                columns,
                is_drawn: false,
                rows,
                order,
                at_end,
                share,
                per,
            });
        }
    }

    /// The order, if rows are taken from several parts in turn.
    fn sliced(&mut self, spec: &DataSpec, order: Order) -> Order {
        let slices = self.read(&spec.slices, |text| match parse_count(text).map(u32::try_from) {
            Ok(Ok(slices)) if slices > 0 => Ok(slices),
            _ => Err(format!("`{text}` is not a number of parts: write a whole number above 0")),
        });
        match slices.flatten() {
            None => order,
            Some(_) if order != Order::Sequential => {
                let problem = Problem::new("`slices` has no effect: rows are not taken one after the other");
                self.report(spec.slices.place(), problem.with_hint("leave `slices` or `order` out"));
                order
            }
            Some(slices) => Order::Slices(slices),
        }
    }

    /// Refuses settings that make no sense for rows that users keep.
    fn check_user_rows(&mut self, spec: &DataSpec, at_end: AtEnd, share: Share) {
        if at_end == AtEnd::Stop {
            let problem = Problem::new("`at_end: stop` has no meaning for rows that users keep");
            let hint =
                "write `fail`, or `wrap` to give rows to several users if there are more users than rows";
            self.report(spec.at_end.place(), problem.with_hint(hint));
        }
        if share == Share::Whole {
            let problem = Problem::new("`share: whole` gives every row to a user of every worker");
            let hint = "leave it out: with `per: user` each row belongs to one user";
            self.report(spec.share.place(), problem.with_hint(hint));
        }
    }

    /// Returns `true` if an unknown name may be a column of a source that could not be read.
    pub(super) fn columns_are_unknown(&self) -> bool {
        self.sources.iter().any(|source| source.rows.is_none())
    }

    /// The data sources for the run; one that nothing uses is a mistake.
    pub(super) fn feeds(&mut self) -> Vec<FeedSpec> {
        let is_drawn = |source: &&SourceDraft| source.is_drawn;
        let drawn = self.sources.iter().filter(is_drawn).map(|source| source.name.clone());
        self.around.drawn.extend(drawn);
        let known = self.resolver.problems.is_empty() && self.around.role == Role::Load;
        let unused = self.sources.iter().filter(|source| known && !self.around.drawn.contains(&source.name));
        for (name, place) in unused.map(|source| (source.name.clone(), source.place)).collect::<Vec<_>>() {
            let problem = Problem::new(format!("the data source `{name}` is not used"));
            let hint =
                "name one of its columns in a step, as `${column}`, or list it in the `data` of a scenario";
            self.report(place, problem.with_hint(hint));
        }
        let feeds = self.sources.iter().filter_map(|source| {
            let columns = source.columns.iter().zip(&source.used);
            let columns = columns.map(|(name, used)| self.variable(name.as_deref()?).filter(|_| *used));
            Some(FeedSpec {
                name: source.name.clone(),
                rows: source.rows.clone()?,
                columns: columns.collect(),
                order: source.order,
                at_end: source.at_end,
                share: source.share,
                per: source.per,
            })
        });
        feeds.collect()
    }

    /// The place of the rows, and the names of the columns.
    fn rows(&mut self, name: &str, place: Option<Place>, spec: &DataSpec) -> Option<(Rows, Vec<String>)> {
        let forms = [
            ("csv", spec.csv.place()),
            ("jsonl", spec.jsonl.place()),
            ("list", spec.list.place()),
            ("range", spec.range.first().and_then(Field::place)),
        ];
        let given: Vec<_> = forms.into_iter().filter(|(_, place)| place.is_some()).collect();
        let form = match given.as_slice() {
            [] => {
                let problem = Problem::new(format!("no source for the rows of `{name}`"));
                return self.form(place, problem.with_hint("write one of `csv`, `jsonl`, `list`, `range`"));
            }
            [(form, _)] => *form,
            [(one, _), (other, place), ..] => {
                return self.form(*place, Problem::new(format!("`{one}` and `{other}` exclude each other")));
            }
        };
        if form != "csv" && !spec.delimiter.is_absent() {
            self.form::<()>(
                spec.delimiter.place(),
                Problem::new("`delimiter` has no effect: it is for CSV files"),
            );
        }
        let mut columns = Vec::new();
        for field in &spec.columns {
            columns.push(self.plain(field));
        }
        let columns: Vec<String> = columns.into_iter().collect::<Option<_>>()?;
        match form {
            "csv" => self.csv(spec, columns),
            "jsonl" => self.json_lines(spec, columns),
            "list" => self.list(name, spec, columns),
            _ => self.range(name, spec, columns),
        }
    }

    fn csv(&mut self, spec: &DataSpec, columns: Vec<String>) -> Option<(Rows, Vec<String>)> {
        let delimiter = self.read(&spec.delimiter, parse_delimiter)?.unwrap_or(b',');
        let (path, head) = self.head(&spec.csv)?;
        let Some(first) = first_record(&head, delimiter) else {
            let problem = Problem::new(format!("`{}` has no first row", path.display()));
            return self
                .form(spec.csv.place(), problem.with_hint("the first row of a CSV file names its columns"));
        };
        if spec.delimiter.is_absent()
            && columns.len() != 1
            && let Some(hint) = other_delimiter(&first)
        {
            let problem =
                Problem::new(format!("`{}` has one column, `{}`", path.display(), first[0].escape_debug()));
            return self.fail(spec.csv.place(), problem.with_hint(hint));
        }
        if !columns.is_empty() && columns.len() != first.len() {
            let (given, found) = (columns.len(), first.len());
            let problem =
                Problem::new(format!("{given} names for the {found} columns of `{}`", path.display()));
            let place = spec.columns.first().and_then(Field::place);
            return self.fail(place, problem.with_hint("`columns` names them all, in their order"));
        }
        let header = columns.is_empty();
        let names = if header { first } else { columns };
        Some((Rows::Csv { path, delimiter, header }, names))
    }

    fn json_lines(&mut self, spec: &DataSpec, columns: Vec<String>) -> Option<(Rows, Vec<String>)> {
        let (path, head) = self.head(&spec.jsonl)?;
        let line = head.split(|&byte| byte == b'\n').find(|line| !line.trim_ascii().is_empty());
        let Some(Ok(Value::Object(first))) = line.map(serde_json::from_slice) else {
            let problem =
                Problem::new(format!("the first line of `{}` is not a JSON object", path.display()));
            return self.fail(spec.jsonl.place(), problem.with_hint("every line is one object: {\"id\": 1}"));
        };
        for (field, name) in spec.columns.iter().zip(&columns) {
            if !first.contains_key(name) {
                let problem =
                    Problem::new(format!("the first object of `{}` has no `{name}`", path.display()));
                let hint = suggestion(name, first.keys().map(String::as_str));
                return self.fail(field.place(), problem.with_hint(hint));
            }
        }
        let members = if columns.is_empty() { first.keys().cloned().collect() } else { columns };
        Some((Rows::JsonLines { path, members: members.clone() }, members))
    }

    fn list(&mut self, name: &str, spec: &DataSpec, columns: Vec<String>) -> Option<(Rows, Vec<String>)> {
        let list = spec.list.get()?;
        let Some(first) = list.iter().find_map(Field::get) else {
            return self.fail(spec.list.place(), Problem::new("the list has no rows"));
        };
        if columns.is_empty() && first.0.len() != 1 {
            let problem = Problem::new("the columns of the list have no names");
            return self.fail(spec.list.place(), problem.with_hint("write `columns: [user, password]`"));
        }
        let columns = if columns.is_empty() { vec![name.to_owned()] } else { columns };
        let mut rows = Vec::with_capacity(list.len());
        for field in list {
            rows.push(self.list_row(field, columns.len()));
        }
        let rows: Vec<_> = rows.into_iter().collect::<Option<_>>()?;
        Some((Rows::List(rows.into()), columns))
    }

    fn list_row(&mut self, field: &Field<Row>, columns: usize) -> Option<Vec<Vec<u8>>> {
        let row = field.get()?;
        if row.0.len() != columns {
            let message = format!("the row has {} values, and there are {columns} columns", row.0.len());
            return self.form(field.place(), Problem::new(message));
        }
        let mut values = Vec::with_capacity(columns);
        for value in &row.0 {
            self.without_secrets(value.as_str(), field.place(), "a row of data")?;
            let value = self.filled_plain(value.as_str(), field.place())?;
            values.push(value.into_bytes());
        }
        Some(values)
    }

    fn range(&mut self, name: &str, spec: &DataSpec, columns: Vec<String>) -> Option<(Rows, Vec<String>)> {
        let place = spec.range.first().and_then(Field::place);
        let [start, end] = spec.range.as_slice() else {
            let problem = Problem::new("a range has a start and an end");
            return self.form(place, problem.with_hint("write `range: [1, 101]` for 1 to 100"));
        };
        if columns.len() > 1 {
            let place = spec.columns.first().and_then(Field::place);
            return self.form(place, Problem::new("a range has one column"));
        }
        let (start, end) = (self.number(start), self.number(end));
        let ((start, start_text), (end, end_text)) = (start?, end?);
        if start >= end {
            let problem = Problem::new(format!("empty range from {start_text} to below {end_text}"));
            return self
                .form(place, problem.with_hint("the end is excluded: it has to be larger than the start"));
        }
        let width = |text: &str| if text.starts_with('0') { text.len() } else { 1 };
        let width = width(&start_text).max(width(&end_text));
        let Some(width) = u8::try_from(width).ok().filter(|&width| width <= 20) else {
            return self.fail(place, Problem::new("the numbers of a range have at most 20 digits"));
        };
        let columns = if columns.is_empty() { vec![name.to_owned()] } else { columns };
        Some((Rows::Range { start, end, width }, columns))
    }

    fn number(&mut self, field: &Field<Text>) -> Option<(u64, String)> {
        let text = self.plain(field)?.trim().to_owned();
        match text.parse() {
            Ok(number) if text.bytes().all(|byte| byte.is_ascii_digit()) => Some((number, text)),
            _ => {
                let problem = Problem::new(format!("`{}` is not a whole number", text.escape_debug()));
                self.fail(field.place(), problem.with_hint("write `range: [1, 101]` for 1 to 100"))
            }
        }
    }

    /// The path of a data file, and its start without a byte order mark.
    fn head(&mut self, field: &Field<Text>) -> Option<(std::path::PathBuf, Vec<u8>)> {
        let name = self.plain(field)?;
        let path = self.loaded.path(&name);
        let permitted = self.resolver.permitted(&path, true);
        let is_elsewhere = permitted.as_ref().is_err_and(is_not_granted);
        if !is_elsewhere && self.resolver.files.kind(&path) == Some(FileKind::Stream) {
            let message = format!("cannot read rows from `{name}`: it is a pipe, a socket or a device");
            let hint = "write it to a file: every thread reads the rows for itself";
            return self.fail(field.place(), Problem::new(message).with_hint(hint));
        }
        match permitted.and_then(|()| self.resolver.files.read_head(&path, LONGEST_DATA_HEAD)) {
            Ok(mut head) => {
                if head.starts_with(b"\xef\xbb\xbf") {
                    head.drain(..3);
                }
                Some((path, head))
            }
            Err(error) => self.fail(field.place(), unreadable(&name, &error)),
        }
    }

    /// Refuses names that mean something else, and names that are there twice.
    fn check_columns(
        &mut self,
        source: &str,
        place: Option<Place>,
        spec: &DataSpec,
        columns: &[Option<String>],
    ) {
        for (index, column) in columns.iter().enumerate() {
            let Some(name) = column else { continue };
            let place = spec.columns.get(index).and_then(Field::place).or(place);
            if is_function(name) {
                let problem = Problem::new(format!(
                    "the column `{name}` of `{source}` has the name of a template function"
                ));
                self.report(place, problem.with_hint("give the columns other names with `columns`"));
            }
            if columns[..index].contains(column) {
                self.report(place, Problem::new(format!("`{source}` has two columns called `{name}`")));
            }
        }
    }
}

/// Returns `true` if `${name}` can refer to a column of this name.
fn can_be_named(name: &str) -> bool {
    !name.is_empty() && name.trim() == name && !name.chars().any(|c| c.is_control() || "(){}$".contains(c))
}

/// The first record of a CSV text (RFC 4180 section 2), without the rest.
fn first_record(text: &[u8], delimiter: u8) -> Option<Vec<String>> {
    let mut fields = vec![Vec::new()];
    let mut quoted = false;
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let field = fields.last_mut()?;
        match byte {
            b'"' if quoted && bytes.peek() == Some(&b'"') => {
                bytes.next();
                field.push(b'"');
            }
            b'"' if quoted => quoted = false,
            b'"' if field.is_empty() => quoted = true,
            _ if quoted => field.push(byte),
            b'\n' => break,
            b'\r' if bytes.peek().is_none_or(|&next| next == b'\n') => {}
            _ if byte == delimiter => fields.push(Vec::new()),
            _ => field.push(byte),
        }
    }
    let is_empty = matches!(fields.as_slice(), [only] if only.is_empty());
    let names = fields.iter().map(|field| String::from_utf8_lossy(field).trim().to_owned());
    (!is_empty).then(|| names.collect())
}

/// Advice where the only column of a file is several with another delimiter.
fn other_delimiter(first: &[String]) -> Option<&'static str> {
    let [only] = first else { return None };
    let known = [
        (';', "write `delimiter: \";\"`"),
        ('\t', "write `delimiter: tab`"),
        ('|', "write `delimiter: \"|\"`"),
    ];
    known.into_iter().find(|(delimiter, _)| only.contains(*delimiter)).map(|(_, hint)| hint)
}

fn parse_order(text: &str) -> Result<Order, String> {
    match text {
        "sequential" => Ok(Order::Sequential),
        "random" => Ok(Order::Random),
        "shuffled" => Ok(Order::Shuffled),
        _ => Err(format!("`{text}` is not an order: write one of sequential, random, shuffled")),
    }
}

fn parse_at_end(text: &str) -> Result<AtEnd, String> {
    match text {
        "wrap" => Ok(AtEnd::Wrap),
        "stop" => Ok(AtEnd::Stop),
        "fail" => Ok(AtEnd::Fail),
        _ => Err(format!("`{text}` is not an action at the end: write one of wrap, stop, fail")),
    }
}

fn parse_share(text: &str) -> Result<Share, String> {
    match text {
        "split" => Ok(Share::Split),
        "whole" => Ok(Share::Whole),
        _ => Err(format!("`{text}` is not a way to share: write one of split, whole")),
    }
}

fn parse_per(text: &str) -> Result<Per, String> {
    match text {
        "iteration" => Ok(Per::Iteration),
        "user" => Ok(Per::User),
        _ => Err(format!("`{text}` is not a use of a row: write one of iteration, user")),
    }
}

/// One character of one byte; `tab` and `\t` are the tabulator, which trimming would take away.
fn parse_delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" | b"" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !b"\"\r\n".contains(byte) => Ok(*byte),
        _ => Err(format!("`{text}` is not a delimiter: write one character, or tab")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_record_of_a_csv_file() {
        let record = |text: &str| first_record(text.as_bytes(), b',');
        let names = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        assert_eq!(record("a,b\r\n1,2\r\n"), names(&["a", "b"]));
        assert_eq!(record("a ,\"b,\"\"c\"\"\n\",d\n"), names(&["a", "b,\"c\"", "d"]));
        assert_eq!(record("a,,"), names(&["a", "", ""]));
        assert_eq!(record("only"), names(&["only"]));
        assert_eq!((record(""), record("\n1")), (None, None));
        assert_eq!(first_record(b"a\tb\n", b'\t'), names(&["a", "b"]));
    }

    #[test]
    fn delimiters() {
        for (text, byte) in
            [(";", Some(b';')), ("tab", Some(b'\t')), ("", Some(b'\t')), ("ab", None), ("\"", None)]
        {
            assert_eq!(parse_delimiter(text).ok(), byte, "{text}");
        }
    }
}
