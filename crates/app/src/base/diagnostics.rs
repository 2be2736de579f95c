//! Where in a plan file a problem is: the line, with carets below the value.

use std::fmt::Write as _;

use plimsoll_core::Redaction;
use plimsoll_document::{Place, Source};

/// Widest part of a line that is shown, in characters. A plan in JSON may be one line.
const WIDEST: usize = 100;
/// Characters that are shown in front of the value where the line is cut.
const BEFORE: usize = 30;
/// Further places of one problem that are named.
const MOST_OTHERS: usize = 8;
/// Columns of a tab in source excerpts. In line and column numbers it is one character.
const TAB: usize = 4;

/// Shows places of one plan file.
pub(crate) struct Excerpts<'s> {
    source: &'s Source,
    secrets: Vec<Place>,
    color: bool,
}

impl<'s> Excerpts<'s> {
    pub(crate) fn new(source: &'s Source, redaction: &Redaction, color: bool) -> Self {
        Self { source, secrets: source.secrets(redaction), color }
    }

    /// `  --> plan.yaml:12:7`, the line and carets, each on its own line.
    pub(crate) fn show(&self, place: Place) -> String {
        let Position { line, column, text, start } = Position::of(self.source, place.start);
        let number = line.to_string();
        let margin = " ".repeat(number.len());
        let (blue, red, reset) =
            if self.color { ("\x1b[1;34m", "\x1b[1;31m", "\x1b[0m") } else { ("", "", "") };
        let (shown, carets) = self.line(text, start, place);
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{margin}{blue}-->{reset} {}:{line}:{column}", self.source.name);
        let _ = writeln!(out, "{margin} {blue}|{reset}");
        let _ = writeln!(out, "{blue}{number} |{reset} {shown}");
        let _ = writeln!(out, "{margin} {blue}|{reset} {red}{carets}{reset}");
        out
    }

    /// `  ... also at 14:7, 16:7 and 3 more places`; `None` if there are no others.
    pub(crate) fn others(&self, places: &[Place]) -> Option<String> {
        let shown = places.iter().take(MOST_OTHERS).map(|place| {
            let Position { line, column, .. } = Position::of(self.source, place.start);
            format!("{line}:{column}")
        });
        let shown: Vec<String> = shown.collect();
        let (blue, reset) = if self.color { ("\x1b[1;34m", "\x1b[0m") } else { ("", "") };
        let more = match places.len() - shown.len() {
            0 => String::new(),
            1 => " and 1 more place".to_owned(),
            more => format!(" and {more} more places"),
        };
        (!shown.is_empty()).then(|| format!("{blue}...{reset} also at {}{more}\n", shown.join(", ")))
    }

    /// The line as it is shown, and carets below the part of `place` that is on it. Credentials are stars.
    fn line(&self, text: &str, start: usize, place: Place) -> (String, String) {
        let characters: Vec<(usize, char)> = text.char_indices().map(|(at, c)| (start + at, c)).collect();
        let within = |at: usize, place: &Place| (place.start as usize..place.end as usize).contains(&at);
        let first =
            characters.iter().position(|&(at, _)| at >= place.start as usize).unwrap_or(characters.len());
        let from = if characters.len() > WIDEST { first.saturating_sub(BEFORE) } else { 0 };
        let to = characters.len().min(from + WIDEST);
        let (mut shown, mut carets) = (String::new(), String::new());
        if from > 0 {
            shown.push('…');
            carets.push(' ');
        }
        for &(at, c) in &characters[from..to] {
            let shown_as = match c {
                _ if self.secrets.iter().any(|secret| within(at, secret)) && !c.is_whitespace() => {
                    "*".to_owned()
                }
                '\t' => " ".repeat(TAB),
                c if c.is_control() => "\u{fffd}".to_owned(),
                c => c.to_string(),
            };
            let mark = if within(at, &place) { "^" } else { " " };
            carets.push_str(&mark.repeat(shown_as.chars().count()));
            shown.push_str(&shown_as);
        }
        if to < characters.len() {
            shown.push('…');
        }
        let carets = carets.trim_end();
        // At the end of the file, or of a line, the caret stands alone.
        let carets = if carets.is_empty() {
            format!("{}^", " ".repeat(shown.chars().count()))
        } else {
            carets.to_owned()
        };
        (shown, carets)
    }
}

/// Line and column of a byte, and the line.
pub(crate) struct Position<'s> {
    /// From 1.
    pub(crate) line: usize,
    /// From 1, in characters.
    pub(crate) column: usize,
    /// Without its end.
    pub(crate) text: &'s str,
    /// The first byte of the line.
    pub(crate) start: usize,
}

impl<'s> Position<'s> {
    pub(crate) fn of(source: &'s Source, byte: u32) -> Self {
        let all = source.text.as_str();
        let byte = (byte as usize).min(all.len());
        let before = all.get(..byte).unwrap_or_default();
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let text = all[start..].split('\n').next().unwrap_or_default();
        let text = text.strip_suffix('\r').unwrap_or(text);
        // A byte order mark is not part of the plan.
        let mark = if start == 0 && text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Self {
            line: before.matches('\n').count() + 1,
            column: before.get(start + mark..).unwrap_or_default().chars().count() + 1,
            text: &text[mark..],
            start: start + mark,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, part: &str) -> String {
        let source = Source { name: "p.yaml".to_owned(), text: text.to_owned() };
        let start = text.find(part).unwrap();
        let place = Place { start: start as u32, end: (start + part.len()) as u32 };
        Excerpts::new(&source, &Redaction::default(), false).show(place)
    }

    #[test]
    fn carets_stand_below_the_value_whatever_is_in_front() {
        assert_eq!(shown("a: 1\nb: xy z\n", "xy"), " --> p.yaml:2:4\n  |\n2 | b: xy z\n  |    ^^\n");
        assert_eq!(shown("ä: [ö, xy]\r\n", "xy"), " --> p.yaml:1:8\n  |\n1 | ä: [ö, xy]\n  |        ^^\n");
        assert_eq!(
            shown("{a:\t\txy}", "xy"),
            " --> p.yaml:1:6\n  |\n1 | {a:        xy}\n  |            ^^\n"
        );
        assert_eq!(shown("\u{feff}a: xy", "xy"), " --> p.yaml:1:4\n  |\n1 | a: xy\n  |    ^^\n");
        assert_eq!(
            shown("a: 1\nb:\n  c: 1\n  d: 2\n", "c: 1\n  d: 2"),
            " --> p.yaml:3:3\n  |\n3 |   c: 1\n  |   ^^^^\n"
        );
        assert_eq!(
            shown("a: \x1b[31mxy", "xy"),
            " --> p.yaml:1:9\n  |\n1 | a: \u{fffd}[31mxy\n  |         ^^\n"
        );
    }

    #[test]
    fn long_lines_are_cut_around_the_value() {
        let text = format!("{{a: \"{}\", bad: 1, c: \"{}\"}}", "x".repeat(500), "y".repeat(500));
        let shown = shown(&text, "bad");
        assert!(shown.starts_with(" --> p.yaml:1:509\n"), "{shown}");
        let lines: Vec<_> = shown.lines().collect();
        assert!(
            lines[2].starts_with("1 | …xxx") && lines[2].ends_with('…') && lines[2].chars().count() < 110
        );
        let at = lines[3].find('^').unwrap();
        assert_eq!(lines[2].chars().skip(at).take(3).collect::<String>(), "bad");
    }

    #[test]
    fn credentials_are_not_shown() {
        for text in [
            "run:\n  bearer: topsecret\n",
            "run: {basic: 'me:topsecret', rate: 1}",
            "run:\n  headers:\n  - 'Authorization: Bearer topsecret'\n",
            "scenarios:\n- headers: {authorization: topsecret, a: b}\n",
            "targets: {a: 'http://me:topsecret@host/'}",
            // No YAML.
            "run: {\n  bearer: topsecret\n  rate: [}\n",
            "run: {headers: ['Cookie: topsecret', }}\n",
        ] {
            let source = Source { name: "p.yaml".to_owned(), text: text.to_owned() };
            let start = text.find("topsecret").unwrap() as u32;
            let shown =
                Excerpts::new(&source, &Redaction::default(), false).show(Place { start, end: start + 9 });
            assert!(!shown.contains("topsecret") && shown.contains("*********"), "{text}: {shown}");
        }
        assert!(shown("name: token\nrun: {rate: 5}", "5").contains("rate: 5"));
    }
}
