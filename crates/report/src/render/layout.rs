//! Lines of text: labels, wrapping, tables, emphasis, and the fallback to ASCII.

use plimsoll_metrics::RunOutcome;

use crate::Style;

/// Columns of the labels on the left of a page.
const LABEL: usize = 12;
/// Columns by which the continuation of a statement is indented.
const INDENT: usize = 2;
/// Columns between two columns of figures.
const COLUMN_GAP: usize = 3;
/// Columns between the longest label of a table and its first figure, and of a label at most.
const LABEL_GAP: usize = 2;
const LONGEST_LABEL: usize = 40;

/// Characters of a label where a line may be of any length. Padding takes 65,535 at most.
const LONGEST_ANYWHERE: usize = 1_000;
/// No page is laid out narrower than this: figures need it.
const NARROWEST: usize = 60;

/// Emphasis; always in addition to words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Emphasis {
    /// As it should be.
    Good,
    /// Not as it should be.
    Bad,
    /// Needs attention.
    Doubtful,
    Heading,
    /// None.
    #[default]
    Plain,
}

impl Emphasis {
    /// Returns the emphasis of an outcome. A run that is done is as good as its figures, which were not
    /// judged.
    pub(crate) const fn of(outcome: RunOutcome) -> Self {
        match outcome {
            RunOutcome::Pass => Self::Good,
            RunOutcome::Fail => Self::Bad,
            RunOutcome::Done => Self::Heading,
            RunOutcome::NoVerdict => Self::Doubtful,
        }
    }

    /// The ANSI sequence that begins it ("select graphic rendition", ECMA-48 8.3.117).
    const fn begin(self) -> &'static str {
        match self {
            Self::Good => "\x1b[1;32m",
            Self::Bad => "\x1b[1;31m",
            Self::Doubtful => "\x1b[33m",
            Self::Heading => "\x1b[1m",
            Self::Plain => "",
        }
    }
}

/// A page that is being written.
pub(crate) struct Page<'a> {
    style: &'a Style,
    out: String,
}

impl<'a> Page<'a> {
    pub(crate) const fn new(style: &'a Style) -> Self {
        Self { style, out: String::new() }
    }

    pub(crate) fn finish(self) -> String {
        self.out
    }

    pub(crate) fn width(&self) -> usize {
        self.style.width.max(NARROWEST)
    }

    pub(crate) const fn unicode(&self) -> bool {
        self.style.unicode
    }

    pub(crate) fn blank(&mut self) {
        self.out.push('\n');
    }

    /// A heading over the next lines.
    pub(crate) fn heading(&mut self, text: &str) {
        let text = self.printable(text);
        self.emphasised(Emphasis::Heading, &text);
        self.out.push('\n');
    }

    /// A label and a sentence, wrapped beside it. An empty label continues the field above.
    pub(crate) fn field(&mut self, label: &str, text: &str) {
        self.wrapped(label, None, text);
    }

    /// As [`field`](Self::field), with emphasis on the beginning of the sentence.
    pub(crate) fn emphasised_field(&mut self, label: &str, emphasis: Emphasis, start: &str, rest: &str) {
        self.wrapped(label, Some((emphasis, start.chars().count())), &format!("{start}{rest}"));
    }

    /// A sentence over the whole width, whose beginning is emphasised; the lines after the first are
    /// indented.
    pub(crate) fn statement(&mut self, emphasis: Emphasis, start: &str, rest: &str) {
        let text = self.printable(&format!("{start}{rest}"));
        let end = self.printable(start).chars().count();
        let lines = wrap(&text, self.width() - INDENT);
        let mut before = 0;
        for (number, line) in lines.into_iter().enumerate() {
            if number > 0 {
                self.out.push_str(&" ".repeat(INDENT));
            }
            let emphasised = end.saturating_sub(before);
            let split = line.char_indices().nth(emphasised).map_or(line.len(), |(at, _)| at);
            self.emphasised(emphasis, &line[..split]);
            self.out.push_str(&line[split..]);
            self.out.push('\n');
            // A line is broken at a space.
            before += line.chars().count() + 1;
        }
    }

    /// Returns the number of lines so far.
    pub(crate) fn lines(&self) -> usize {
        self.out.matches('\n').count()
    }

    fn wrapped(&mut self, label: &str, emphasis: Option<(Emphasis, usize)>, text: &str) {
        let text = self.printable(text);
        let mut label = label;
        for (number, line) in wrap(&text, self.width() - LABEL).into_iter().enumerate() {
            self.out.push_str(&format!("{label:<LABEL$}"));
            label = "";
            match emphasis {
                Some((emphasis, chars)) if number == 0 => {
                    let end = line.char_indices().nth(chars).map_or(line.len(), |(at, _)| at);
                    self.emphasised(emphasis, &line[..end]);
                    self.out.push_str(&line[end..]);
                }
                _ => self.out.push_str(&line),
            }
            self.out.push('\n');
        }
    }

    /// A table that has room for labels and notes, where the page has to be kept to: it leaves out columns
    /// with these heads, as many as it must, the first one first, and says so.
    pub(crate) fn fitted(&mut self, head: &[&str], rows: &[Row], least: &[&str]) {
        let (mut head, mut rows) = (head.to_vec(), rows.to_vec());
        let mut left_out = Vec::new();
        for name in least {
            if !self.style.fits || self.wanted(&head, &rows) <= self.width() {
                break;
            }
            let Some(column) = head.iter().position(|head| head == name) else { continue };
            head.remove(column);
            for row in rows.iter_mut().filter(|row| column < row.cells.len()) {
                row.cells.remove(column);
            }
            left_out.push(*name);
        }
        self.table(&head, &rows);
        if !left_out.is_empty() {
            self.field("", &format!("not shown, for want of room: {}", left_out.join(", ")));
        }
    }

    /// Columns that a table needs for nothing to be cut.
    fn wanted(&self, head: &[&str], rows: &[Row]) -> usize {
        let width = |text: &str| self.printable(text).chars().count();
        let widest = |of: &dyn Fn(&Row) -> usize| rows.iter().map(of).max().unwrap_or(0);
        let figures: usize = (0..widest(&|row| row.cells.len()))
            .map(|column| {
                let cells = widest(&|row| row.cells.get(column).map_or(0, |cell| width(cell)));
                cells.max(head.get(column).map_or(0, |head| width(head)))
            })
            .enumerate()
            .map(|(position, width)| width + if position == 0 { 0 } else { COLUMN_GAP })
            .sum();
        let labels = widest(&|row| width(&row.label).min(LONGEST_LABEL) + LABEL_GAP).max(LABEL);
        let notes = widest(&|row| width(&row.note));
        labels + figures + if notes == 0 { 0 } else { COLUMN_GAP + notes }
    }

    /// A table: the first column to the left as labels, as wide as they need, the others to the right; a
    /// row's text after its last column is a note. Where the page has to be kept to, long labels are
    /// shortened first, and a note is cut where it ends.
    pub(crate) fn table(&mut self, head: &[&str], rows: &[Row]) {
        let printable = |text: &str| self.printable(text);
        let head: Vec<String> = head.iter().map(|cell| printable(cell)).collect();
        let rows: Vec<(String, Vec<String>, String)> = rows
            .iter()
            .map(|row| {
                let cells = row.cells.iter().map(|cell| printable(cell)).collect();
                (printable(&row.label), cells, printable(&row.note))
            })
            .collect();
        let width_of = |column: usize| {
            let cells = rows.iter().filter_map(|(_, cells, _)| cells.get(column));
            cells.chain(head.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let columns = rows.iter().map(|(_, cells, _)| cells.len()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width_of).collect();
        let ellipsis = if self.style.unicode { "…" } else { "..." };
        let (page_width, longest_label) =
            if self.style.fits { (self.width(), LONGEST_LABEL) } else { (usize::MAX, LONGEST_ANYWHERE) };
        let notes = rows.iter().map(|(.., note)| note.chars().count()).max().unwrap_or(0);
        let notes = if notes == 0 { 0 } else { COLUMN_GAP + notes };
        let labels = rows.iter().map(|(label, ..)| label.chars().count() + LABEL_GAP);
        let figures = widths.iter().sum::<usize>() + COLUMN_GAP * widths.len().saturating_sub(1);
        let room = page_width.saturating_sub(figures + notes).clamp(LABEL, longest_label);
        let label_width = labels.max().unwrap_or(0).clamp(LABEL, room);
        let mut line = |label: &str, cells: &[String], note: &str| {
            let label = shortened(label, label_width - LABEL_GAP, ellipsis);
            let mut text = format!("{label:<label_width$}");
            for (position, (cell, width)) in cells.iter().zip(&widths).enumerate() {
                let gap = if position == 0 { 0 } else { COLUMN_GAP };
                text.push_str(&format!("{:gap$}{cell:>width$}", ""));
            }
            if !note.is_empty() {
                text.push_str("   ");
                let room = page_width.saturating_sub(text.chars().count());
                text.push_str(&shortened(note, room, ellipsis));
            }
            self.out.push_str(text.trim_end());
            self.out.push('\n');
        };
        line("", &head, "");
        for (label, cells, note) in &rows {
            line(label, cells, note);
        }
    }

    /// One line as it is.
    pub(crate) fn line(&mut self, text: &str) {
        let text = self.printable(text);
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    fn emphasised(&mut self, emphasis: Emphasis, text: &str) {
        if self.style.color && !text.is_empty() && !emphasis.begin().is_empty() {
            self.out.push_str(emphasis.begin());
            self.out.push_str(text);
            self.out.push_str("\x1b[0m");
        } else {
            self.out.push_str(text);
        }
    }

    /// Makes text safe for a terminal: control characters, which a server or a URL may have smuggled in,
    /// become `?`, and without Unicode our own signs become their ASCII spelling.
    fn printable(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for character in text.chars() {
            match character {
                c if c.is_control() => out.push('?'),
                c if self.style.unicode || c.is_ascii() => out.push(c),
                'µ' => out.push('u'),
                '≥' => out.push_str(">="),
                '±' => out.push_str("+-"),
                '–' | '·' => out.push('-'),
                '…' => out.push_str("..."),
                '█' => out.push('#'),
                '▸' => out.push('>'),
                _ => out.push('?'),
            }
        }
        out
    }
}

/// One row of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    pub(crate) label: String,
    pub(crate) cells: Vec<String>,
    pub(crate) note: String,
}

/// The text, or as much of its beginning as has room before an ellipsis.
fn shortened(text: &str, room: usize, ellipsis: &str) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let kept = room.saturating_sub(ellipsis.chars().count());
    text.chars().take(kept).chain(ellipsis.chars()).collect()
}

/// Breaks a sentence at spaces into lines of at most `width` characters; longer words stay whole, and so does
/// a figure with its unit.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    let mut words = text.split(' ').peekable();
    while let Some(word) = words.next() {
        let mut word = word.to_owned();
        while let Some(unit) =
            words.next_if(|next| word.ends_with(|c: char| c.is_ascii_digit()) && is_unit(next))
        {
            word.push(' ');
            word.push_str(unit);
        }
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            lines.push(String::new());
            used = 0;
        }
        if let Some(line) = lines.last_mut() {
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            line.push_str(&word);
            used += length;
        }
    }
    lines
}

/// Returns `true` if a word is a unit of `plimsoll_core::figure`, with any punctuation behind it.
fn is_unit(word: &str) -> bool {
    let word = word.trim_end_matches([',', ';', ':', '.', ')']);
    matches!(word, "%" | "ns" | "µs" | "us" | "ms" | "s" | "B" | "KiB" | "MiB" | "GiB" | "TiB" | "PiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_wrapped_at_spaces() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("unbreakable x", 5), ["unbreakable", "x"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(wrap("used 0.2 %, then", 9), ["used", "0.2 %,", "then"]);
        assert_eq!(wrap("µµµ µµµ", 7), ["µµµ µµµ"]);
    }

    #[test]
    fn a_note_is_cut_where_the_page_ends() {
        assert_eq!(shortened("GET /items", 10, "…"), "GET /items");
        assert_eq!(shortened("GET /items", 9, "…"), "GET /ite…");
        assert_eq!(shortened("GET /items", 9, "..."), "GET /i...");
    }

    #[test]
    fn control_characters_never_reach_the_terminal() {
        let style = Style { unicode: true, width: 80, ..Style::PLAIN };
        let mut page = Page::new(&style);
        page.field("label", "evil \x1b[2J\r\n title");
        assert_eq!(page.finish(), "label       evil ?[2J?? title\n");
    }

    #[test]
    fn colour_is_asked_for_and_ends_with_the_words() {
        let style = Style { color: true, unicode: true, width: 80, fits: true };
        let mut page = Page::new(&style);
        page.emphasised_field("verdict", Emphasis::Bad, "INVALID", ": why");
        assert_eq!(page.finish(), "verdict     \x1b[1;31mINVALID\x1b[0m: why\n");
    }
}
