//! Stdout and stderr. Everything that is written to them passes through here, and nothing that could act on a
//! terminal or turn the direction of a text does: characters that a server, a file or a URL has smuggled in
//! are shown as a sign, even if earlier code forgot to make them harmless. In the log of a CI service, what
//! its runner would take for a command (`::error::`, `##vso[`) is broken by a backslash, too.

use std::io::{self, BufWriter, IntoInnerError, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_core::characters::is_hidden;

use crate::base::color::ColorChoice;
use crate::base::environment;

/// `true` if stdout has colours, whose escape sequences pass.
static STDOUT_HAS_COLOR: AtomicBool = AtomicBool::new(false);
/// `true` if stderr has colours, whose escape sequences pass.
static STDERR_HAS_COLOR: AtomicBool = AtomicBool::new(false);
/// `true` if a runner of a CI service reads what is written.
static READ_BY_RUNNER: AtomicBool = AtomicBool::new(false);

/// The longest escape sequence of a colour, in bytes.
const LONGEST_COLOR: usize = 24;

/// Kind of content that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Text: characters that act on a terminal become U+FFFD. In text that begins like JSON they become
    /// escapes, which mean the same.
    Text,
    /// Bytes that are not text, or not for a terminal.
    Bytes,
}

/// Takes the user's choice of colours. Before this, there are none.
pub(crate) fn choose_color(choice: ColorChoice) {
    STDOUT_HAS_COLOR.store(environment::style(choice).color, Ordering::Relaxed);
    STDERR_HAS_COLOR.store(environment::look(choice).color, Ordering::Relaxed);
    READ_BY_RUNNER.store(environment::is_read_by_runner(), Ordering::Relaxed);
}

/// Writes to stdout.
///
/// # Errors
/// It cannot be written, or `write` fails.
pub(crate) fn to_stdout(
    content: Content,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut stdout = BufWriter::new(io::stdout().lock());
    if content == Content::Bytes {
        write(&mut stdout)?;
    } else {
        // In pieces of kilobytes: JSON is written word by word, and each piece is looked at.
        let shown = Shown::new(&mut stdout, Look::of(&STDOUT_HAS_COLOR));
        let mut shown = BufWriter::new(shown);
        write(&mut shown)?;
        shown.into_inner().map_err(IntoInnerError::into_error)?.end()?;
    }
    stdout.flush()
}

/// Writes text to stderr in one go. Does nothing if stderr is closed.
pub(crate) fn to_stderr(text: &str) {
    let _ = try_stderr(text.as_bytes());
}

/// Writes bytes that may be no text to stderr in one go.
///
/// # Errors
/// It cannot be written.
pub(crate) fn try_stderr(text: &[u8]) -> io::Result<()> {
    io::stderr().write_all(&filtered_for_stderr(text)?)
}

/// Writes over the last line of the terminal that stderr is.
pub(crate) fn renew_line(text: &str) {
    let mut line = b"\r\x1b[2K".to_vec();
    // A write to memory cannot fail.
    line.extend(filtered_for_stderr(text.as_bytes()).unwrap_or_default());
    let _ = io::stderr().write_all(&line);
}

fn filtered_for_stderr(text: &[u8]) -> io::Result<Vec<u8>> {
    filtered(text, Look::of(&STDERR_HAS_COLOR))
}

/// Filters a text for a file, because it may be shown on a terminal, or in the log of the CI service in which
/// the command runs: the file may be `/dev/stdout`.
pub(crate) fn for_file(text: &[u8]) -> Vec<u8> {
    let look = Look { colored: false, by_runner: READ_BY_RUNNER.load(Ordering::Relaxed) };
    // A write to memory cannot fail.
    filtered(text, look).unwrap_or_default()
}

fn filtered(text: &[u8], look: Look) -> io::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut shown = Shown::new(&mut out, look);
    shown.write_all(text)?;
    shown.end()?;
    Ok(out)
}

/// Readers of a text.
#[derive(Clone, Copy, Debug, Default)]
struct Look {
    /// Colours are shown.
    colored: bool,
    /// A runner of a CI service looks for commands.
    by_runner: bool,
}

impl Look {
    fn of(has_color: &AtomicBool) -> Self {
        Self { colored: has_color.load(Ordering::Relaxed), by_runner: READ_BY_RUNNER.load(Ordering::Relaxed) }
    }
}

/// Passes text on without characters that act on a terminal, except for colours if there are any, and without
/// commands for a runner. [`end`](Self::end) it: the start of a character may be waiting for its rest.
struct Shown<'o> {
    out: &'o mut dyn Write,
    look: Look,
    /// `true` if the text is JSON; `None` until that is known.
    is_json: Option<bool>,
    /// The start of a character, of a colour or of a command.
    held: Vec<u8>,
}

impl<'o> Shown<'o> {
    fn new(out: &'o mut dyn Write, look: Look) -> Self {
        Self { out, look, is_json: None, held: Vec::new() }
    }

    /// Passes on the text that was held.
    fn end(mut self) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        self.pass(&String::from_utf8_lossy(&held), true).map(|_| ())
    }

    /// Passes on as much of a text as is known to be whole: how many bytes that is.
    fn pass(&mut self, text: &str, is_end: bool) -> io::Result<usize> {
        let is_special = |c: char| is_hidden(c) || self.look.by_runner && matches!(c, ':' | '#');
        let mut from = 0;
        while let Some((at, c)) = text[from..].char_indices().find(|(_, c)| is_special(*c)) {
            let at = from + at;
            self.out.write_all(&text.as_bytes()[from..at])?;
            from = at;
            if !is_hidden(c) {
                match is_command(&text[at..]) {
                    None if !is_end => return Ok(at),
                    Some(true) if self.is_json == Some(true) => {
                        write!(self.out, "{c}\\u{:04x}", u32::from(c))?;
                        from += 2;
                    }
                    Some(true) => {
                        write!(self.out, "{c}\\{c}")?;
                        from += 2;
                    }
                    _ => {
                        self.out.write_all(&[text.as_bytes()[at]])?;
                        from += 1;
                    }
                }
                continue;
            }
            match color(&text[at..]) {
                Color::Whole(length) if self.look.colored => {
                    self.out.write_all(&text.as_bytes()[at..at + length])?;
                    from += length;
                }
                Color::Begun if self.look.colored && !is_end => return Ok(at),
                _ => {
                    match self.is_json {
                        Some(true) => write!(self.out, "\\u{:04x}", u32::from(c))?,
                        _ => self.out.write_all("\u{fffd}".as_bytes())?,
                    }
                    from += c.len_utf8();
                }
            }
        }
        self.out.write_all(&text.as_bytes()[from..])?;
        Ok(text.len())
    }
}

/// Returns `true` if a text that begins with `:` or `#` begins like a command: `::` and a letter, as GitHub's
/// runner reads it, or `##` and a letter or a bracket, as those of GitHub, Azure and TeamCity do. `None`: it
/// may go on like one.
fn is_command(text: &str) -> Option<bool> {
    let mut characters = text.chars();
    let first = characters.next()?;
    if characters.next()? != first {
        return Some(false);
    }
    // Behind a third one, a command may begin with the second.
    let next = characters.next()?;
    Some(next.is_alphabetic() || first == '#' && next == '[')
}

impl Write for Shown<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let (None, Some(first)) = (self.is_json, bytes.first()) {
            self.is_json = Some(matches!(first, b'{' | b'['));
        }
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(bytes);
        let mut rest = all.as_slice();
        loop {
            let (text, after) = match std::str::from_utf8(rest) {
                Ok(text) => (text, None),
                Err(error) => {
                    let (text, _) = rest.split_at(error.valid_up_to());
                    (std::str::from_utf8(text).unwrap_or_default(), Some(error.error_len()))
                }
            };
            let passed = self.pass(text, matches!(after, Some(Some(_))))?;
            if passed < text.len() {
                rest = &rest[passed..];
                break;
            }
            rest = &rest[text.len()..];
            match after {
                Some(Some(bad)) => {
                    self.out.write_all("\u{fffd}".as_bytes())?;
                    rest = &rest[bad..];
                }
                None | Some(None) => break,
            }
        }
        self.held = rest.to_vec();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Result of looking for a colour at the beginning of a text.
enum Color {
    No,
    /// The text may go on as a colour.
    Begun,
    /// With the escape sequence of a colour (SGR of ECMA-48) of this many bytes.
    Whole(usize),
}

fn color(text: &str) -> Color {
    let bytes = text.as_bytes();
    if bytes.first() != Some(&0x1b) || bytes.get(1).is_some_and(|&byte| byte != b'[') {
        return Color::No;
    }
    let numbers =
        bytes.iter().skip(2).take(LONGEST_COLOR).take_while(|byte| matches!(byte, b'0'..=b'9' | b';'));
    match bytes.get(2 + numbers.count()) {
        Some(b'm') => Color::Whole(bytes.iter().position(|&byte| byte == b'm').map_or(0, |at| at + 1)),
        Some(_) => Color::No,
        None => Color::Begun,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &[u8], colored: bool) -> String {
        String::from_utf8(filtered(text, Look { colored, by_runner: false }).unwrap()).unwrap()
    }

    fn logged(text: &str) -> String {
        let look = Look { colored: false, by_runner: true };
        String::from_utf8(filtered(text.as_bytes(), look).unwrap()).unwrap()
    }

    #[test]
    fn a_log_of_a_ci_service_has_no_commands() {
        for (text, expected) in [
            ("::error::x", ":\\:error:\\:x"),
            ("  ::add-mask::x\n ::stop-commands::y", "  :\\:add-mask:\\:x\n :\\:stop-commands:\\:y"),
            (":::error::", "::\\:error::"),
            ("a ##vso[task.complete]", "a #\\#vso[task.complete]"),
            ("##[error]x ##teamcity[x]", "#\\#[error]x #\\#teamcity[x]"),
            ("###[group]", "##\\#[group]"),
            // No runner reads these.
            ("http://[::1]:80/ 12:30:01 ## title # x", "http://[::1]:80/ 12:30:01 ## title # x"),
            ("::", "::"),
            ("#", "#"),
        ] {
            assert_eq!(logged(text), expected, "{text}");
            assert_eq!(shown(text.as_bytes(), false), text);
        }
        let json = "{\"a\": \"::error::x ##vso[y]\"}";
        assert_eq!(logged(json), "{\"a\": \":\\u003aerror:\\u003ax #\\u0023vso[y]\"}");
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(read(&logged(json)), read(json));
    }

    #[test]
    fn nothing_acts_on_a_terminal_but_colours_where_there_are_some() {
        let text = "a\x1b[31mred\x1b[0m\x1b]0;title\x07\r\n\t\u{202e}\u{9b}2J ü\x1b[2J\x1b[".as_bytes();
        let plain = "a\u{fffd}[31mred\u{fffd}[0m\u{fffd}]0;title\u{fffd}\u{fffd}\n\t\u{fffd}\u{fffd}2J ü\u{fffd}[2J\u{fffd}[";
        assert_eq!(shown(text, false), plain);
        let colored = plain.replace("\u{fffd}[31m", "\x1b[31m").replace("\u{fffd}[0m", "\x1b[0m");
        assert_eq!(shown(text, true), colored);
        assert_eq!(shown(b"a\xffb\xc3", false), "a\u{fffd}b\u{fffd}");
    }

    #[test]
    fn json_says_the_same() {
        let text = "{\"a\": \"x\u{202e}\u{9b}\u{7f}\"}\n";
        let written = shown(text.as_bytes(), false);
        assert_eq!(written, "{\"a\": \"x\\u202e\\u009b\\u007f\"}\n");
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(read(&written), read(text));
    }

    #[test]
    fn the_text_may_come_in_any_pieces() {
        let text =
            b"\x1b[1;31mred\x1b[0m \x1b[ ::a:::b ##[ \x1b[2J \xc3\xbc\xe2\x80\xae \xff\xc3( \x1b\x1b[m\xe2\x80\x1b[1";
        let looks = [(false, false), (true, false), (false, true), (true, true)];
        for (size, (colored, by_runner)) in (1..text.len()).flat_map(|size| looks.map(|look| (size, look))) {
            let look = Look { colored, by_runner };
            let mut out = Vec::new();
            let mut pieces = Shown::new(&mut out, look);
            for piece in text.chunks(size) {
                pieces.write_all(piece).unwrap();
            }
            pieces.end().unwrap();
            let whole = String::from_utf8(filtered(text, look).unwrap()).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), whole, "{size}");
        }
        assert!(!shown(text, false).chars().any(is_hidden));
    }
}
