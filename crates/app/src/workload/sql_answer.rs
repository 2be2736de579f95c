//! Answers of a store with Arc's API to queries, and their layout as a table.

use plimsoll_core::figure;
use plimsoll_report::Style;
use plimsoll_workloads::ingest::UNKNOWN_TABLE;
use serde_json::Value;

use crate::workload::auxiliary_request::Answer;

/// Characters of a cell that is not the last of its row.
const WIDEST: usize = 40;
/// Characters of an unexpected text that is quoted.
const QUOTED: usize = 200;

/// Rows of values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SqlAnswer {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<Value>>,
}

impl SqlAnswer {
    /// Reads an answer. An unknown table is not an error here: it has no columns and no rows.
    ///
    /// # Errors
    /// The reason that the store gives for its failure.
    pub(crate) fn of(answer: &Answer) -> Result<Self, String> {
        let refused = || match words(answer) {
            said if said.contains(UNKNOWN_TABLE) => Ok(Self::default()),
            said => Err(said),
        };
        if !(200..300).contains(&answer.status) {
            return refused();
        }
        if answer.cut > 0 {
            return Err(format!("the answer is {} bytes too long", figure::count(answer.cut)));
        }
        let Ok(mut body) = serde_json::from_slice::<Value>(&answer.body) else {
            return Err(format!("not JSON, but: {}", words(answer)));
        };
        if body["success"] == false {
            return refused();
        }
        let columns = serde_json::from_value(body["columns"].take());
        let rows = serde_json::from_value(body["data"].take());
        match (columns, rows) {
            (Ok(columns), Ok(rows)) => Ok(Self { columns, rows }),
            _ => Err(format!("no `columns` and `data`, but: {}", words(answer))),
        }
    }

    /// The only number, if there is one.
    pub(crate) fn number(&self) -> Option<u64> {
        let number = number(self.rows.first()?.first()?)?;
        (number >= 0.0).then_some(number as u64)
    }

    /// A line with the names of the columns, and one for each row.
    pub(crate) fn table(&self, style: &Style) -> String {
        if self.rows.is_empty() {
            return "(nothing)\n".to_owned();
        }
        let columns: Vec<(Vec<String>, bool)> = (0..self.columns.len())
            .map(|column| shown(self.rows.iter().map(|row| row.get(column).unwrap_or(&Value::Null))))
            .collect();
        let row = |row: usize| columns.iter().map(|(cells, _)| cells[row].clone()).collect::<Vec<_>>();
        let rows: Vec<Vec<String>> = (0..self.rows.len()).map(row).collect();
        let to_the_right: Vec<bool> = columns.iter().map(|(_, is_number)| *is_number).collect();
        lay_out(&self.columns, &rows, &to_the_right, style)
    }
}

/// Returns the text with which a store refuses a request.
pub(crate) fn words(answer: &Answer) -> String {
    let error = serde_json::from_slice::<Value>(&answer.body).ok();
    let error = error.and_then(|body| body["error"].as_str().map(str::to_owned));
    let said = error.unwrap_or_else(|| String::from_utf8_lossy(&answer.body).trim().to_owned());
    let said: String = said.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match said.chars().count() {
        0 => "nothing".to_owned(),
        1..=QUOTED => said,
        _ => said.chars().take(QUOTED).chain(['…']).collect(),
    }
}

/// Columns as wide as they have to be; the last one ends where the page does.
pub(crate) fn lay_out(
    head: &[impl AsRef<str>],
    rows: &[Vec<String>],
    to_the_right: &[bool],
    style: &Style,
) -> String {
    let head: Vec<String> = head.iter().map(|name| name.as_ref().to_owned()).collect();
    let lines: Vec<&Vec<String>> = std::iter::once(&head).chain(rows).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(|column| width(column).min(WIDEST)).collect();
    let mut text = String::new();
    for line in lines {
        let mut out = String::new();
        for (column, cell) in line.iter().enumerate() {
            let is_last = column + 1 == line.len();
            let room = if is_last { style.width.saturating_sub(out.chars().count()) } else { widths[column] };
            let cell = cut(&printable(cell, style), room, style);
            let width = widths[column];
            out.push_str(&match (to_the_right[column], is_last) {
                (true, _) => format!("{cell:>width$}"),
                (false, true) => cell,
                (false, false) => format!("{cell:<width$}"),
            });
            if !is_last {
                out.push_str("  ");
            }
        }
        text.push_str(out.trim_end());
        text.push('\n');
    }
    text
}

fn cut(text: &str, room: usize, style: &Style) -> String {
    let ellipsis = if style.unicode { "…" } else { "..." };
    let room = room.max(WIDEST / 2);
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let kept = room - ellipsis.chars().count();
    text.chars().take(kept).collect::<String>() + ellipsis
}

/// Replaces characters that may not be written to a terminal.
fn printable(text: &str, style: &Style) -> String {
    let is_bad = |char: char| char.is_control() || !(style.unicode || char.is_ascii());
    text.chars().map(|char| if is_bad(char) { '?' } else { char }).collect()
}

/// The cells of a column as text, and whether they are numbers. Stores differ in how they write those: a
/// fraction of zero may be there or not, and a decimal number be a text. If one has a fraction, all are shown
/// with one digit of it.
fn shown<'a>(cells: impl Iterator<Item = &'a Value>) -> (Vec<String>, bool) {
    let cells: Vec<&Value> = cells.collect();
    let numbers: Vec<Option<f64>> = cells.iter().map(|cell| number(cell)).collect();
    let is_number = |(cell, number): (&&Value, &Option<f64>)| cell.is_null() || number.is_some();
    let are_numbers = cells.iter().zip(&numbers).all(is_number) && numbers.iter().any(Option::is_some);
    let have_fractions = numbers.iter().flatten().any(|number| number.fract() != 0.0);
    let as_number = |number: f64| match have_fractions {
        true => {
            let tenths = (number.abs() * 10.0).round() as u64;
            let sign = if number < 0.0 && tenths > 0 { "-" } else { "" };
            format!("{sign}{}.{}", figure::count(tenths / 10), tenths % 10)
        }
        false => {
            let sign = if number < 0.0 { "-" } else { "" };
            format!("{sign}{}", figure::count(number.abs() as u64))
        }
    };
    let show = |(cell, number): (&&Value, &Option<f64>)| match (cell, number) {
        (Value::Null, _) => "-".to_owned(),
        (_, Some(number)) if are_numbers => as_number(*number),
        (Value::String(text), _) => instant(text).unwrap_or_else(|| text.clone()),
        (other, _) => other.to_string(),
    };
    (cells.iter().zip(&numbers).map(show).collect(), are_numbers)
}

/// A number, or a text that is one.
fn number(cell: &Value) -> Option<f64> {
    let is_digit = |char: char| char.is_ascii_digit() || matches!(char, '.' | '-');
    match cell {
        Value::Number(number) => number.as_f64(),
        Value::String(text) if text.chars().all(is_digit) => text.parse().ok(),
        _ => None,
    }
}

/// An instant as RFC 3339 writes it, shorter: a space for the T, and as few threes of digits of its fraction
/// as say the same.
pub(crate) fn instant(text: &str) -> Option<String> {
    const FORM: &str = "dddd-dd-ddTdd:dd:dd";
    let (start, rest) = text.split_at_checked(FORM.len())?;
    let is_as = |(char, form): (char, char)| if form == 'd' { char.is_ascii_digit() } else { char == form };
    let fraction = rest.strip_suffix('Z').or_else(|| rest.strip_suffix("+00:00"))?;
    let digits = fraction.strip_prefix('.').unwrap_or("0");
    let is_instant = start.chars().zip(FORM.chars()).all(is_as)
        && (fraction.is_empty() || fraction.starts_with('.'))
        && digits.bytes().all(|digit| digit.is_ascii_digit());
    let fraction = match digits.trim_end_matches('0') {
        "" => String::new(),
        digits => format!(".{digits:0<width$}", width = digits.len().next_multiple_of(3)),
    };
    is_instant.then(|| format!("{}{fraction}Z", start.replace('T', " ")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const STYLE: Style = Style { color: false, unicode: true, width: 60, fits: true };

    fn answer(status: u16, body: &str) -> Answer {
        Answer { status, head: Vec::new(), body: body.as_bytes().to_vec(), cut: 0 }
    }

    fn table(columns: &[&str], rows: Value) -> String {
        let columns = columns.iter().map(|&name| name.to_owned()).collect();
        SqlAnswer { columns, rows: serde_json::from_value(rows).unwrap() }.table(&STYLE)
    }

    #[test]
    fn tables_read_the_same_however_a_store_writes_its_numbers_and_times() {
        let columns = ["phase", "requests", "mean_ms", "since"];
        let ours = json!([
            ["before", 1334, 30.04, "2026-03-01T12:00:00.000000Z"],
            ["during", 7, 1172, "2026-03-01T12:30:00.250000Z"],
            ["after", 0, null, null],
        ]);
        let theirs = json!([
            ["before", "1334", "30.040", "2026-03-01T12:00:00Z"],
            ["during", 7.0, "1172.000", "2026-03-01T12:30:00.25+00:00"],
            ["after", 0, null, null],
        ]);
        let expected = "\
phase   requests  mean_ms  since
before     1,334     30.0  2026-03-01 12:00:00Z
during         7  1,172.0  2026-03-01 12:30:00.250Z
after          0        -  -
";
        assert_eq!(table(&columns, ours), expected);
        assert_eq!(table(&columns, theirs), expected);
    }

    #[test]
    fn cells_are_cut_and_cannot_steer_a_terminal() {
        let long = "x".repeat(90);
        let text = table(&["a", "n", "b"], json!([[long, -1.25, long], ["\u{1b}[2J", 0, true]]));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1].chars().count(), 68, "{text}");
        assert!(lines[1].starts_with(&format!("{}…  -1.3  x", "x".repeat(39))), "{text}");
        assert!(lines[1].ends_with('…') && lines[2].starts_with("?[2J "), "{text}");
        assert!(lines[2].ends_with("  0.0  true"), "{text}");
        assert_eq!(table(&["a"], json!([])), "(nothing)\n");
        let ascii = Style { unicode: false, ..STYLE };
        assert_eq!(
            lay_out(&["a"], &[vec!["é".repeat(70)]], &[false], &ascii).lines().nth(1).unwrap().len(),
            60
        );
    }

    #[test]
    fn what_only_looks_like_an_instant_or_a_number_stays_as_it_is() {
        for text in
            ["2026-03-01", "2026-03-01T12:00:00", "2026-03-01T12:00:00.x0Z", "2026-03-01T12:00:00é", ""]
        {
            assert_eq!(instant(text), None, "{text}");
        }
        let text = table(&["v"], json!([["1.2.3"], ["12"], ["1e5"]]));
        assert_eq!(text, "v\n1.2.3\n12\n1e5\n");
    }

    #[test]
    fn answers_are_read_and_refusals_quoted() {
        let good = answer(200, r#"{"success":true,"columns":["n"],"data":[[26]],"row_count":1}"#);
        assert_eq!(SqlAnswer::of(&good).unwrap().number(), Some(26));
        let empty = SqlAnswer::of(&answer(200, r#"{"success":true,"columns":[],"data":[]}"#)).unwrap();
        assert_eq!((empty.number(), empty.rows.len()), (None, 0));
        let unknown = r#"{"success":false,"error":"Catalog Error: Table with name a does not exist!"}"#;
        for status in [200, 400, 500] {
            assert_eq!(SqlAnswer::of(&answer(status, unknown)), Ok(SqlAnswer::default()), "{status}");
        }
        let null = answer(200, r#"{"columns":["n"],"data":[[null]]}"#);
        assert_eq!(SqlAnswer::of(&null).unwrap().number(), None);
        let long = "y".repeat(300);
        for (status, body, said) in [
            (401, r#"{"error":"Invalid or expired token","success":false}"#, "Invalid or expired token"),
            (200, r#"{"success":false,"error":"Parser Error"}"#, "Parser Error"),
            (502, "<p>Bad\r\nGateway</p>", "<p>Bad  Gateway</p>"),
            (500, "", "nothing"),
            (200, "hello", "not JSON, but: hello"),
            (200, "{}", "no `columns` and `data`, but: {}"),
            (404, &long, &format!("{}…", "y".repeat(200))),
        ] {
            assert_eq!(SqlAnswer::of(&answer(status, body)), Err(said.to_owned()));
        }
        let cut = Answer { cut: 1_234, ..good };
        assert_eq!(SqlAnswer::of(&cut), Err("the answer is 1,234 bytes too long".to_owned()));
    }
}
