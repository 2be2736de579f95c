//! Converts the cells of a frame into bytes for a terminal.

use std::convert::Infallible;
use std::io::Write as _;

use ratatui::backend::{Backend, ClearType, WindowSize};
use ratatui::buffer::Cell;
use ratatui::layout::{Position, Size};
use ratatui::style::{Color, Modifier};

/// Begins and ends the alternate screen, hides and shows the cursor (xterm's private modes 1049 and 25).
pub(crate) const ENTER: &str = "\x1b[?1049h\x1b[?25l";
/// A terminal that knows it shows the output between both at once (private mode 2026); others ignore it.
const BEGIN_FRAME: &str = "\x1b[?2026h";
const END_FRAME: &str = "\x1b[?2026l";

/// Collects the bytes of frames; the owner of the terminal writes them.
#[derive(Debug, Default)]
pub(crate) struct Surface {
    /// Bytes to be written.
    pub(crate) bytes: Vec<u8>,
    /// Of the terminal.
    pub(crate) size: Size,
}

/// Colours and modifiers of the letters that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TextStyle {
    foreground: Color,
    background: Color,
    modifier: Modifier,
}

const PLAIN: TextStyle =
    TextStyle { foreground: Color::Reset, background: Color::Reset, modifier: Modifier::empty() };

impl Surface {
    fn put(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn go(&mut self, x: u16, y: u16) {
        // Writing to a vector cannot fail.
        let _ = write!(self.bytes, "\x1b[{};{}H", y + 1, x + 1);
    }

    /// Select graphic rendition (ECMA-48 8.3.117), from nothing each time: that is short enough.
    fn take(&mut self, pen: TextStyle) {
        self.put("\x1b[0");
        for (modifier, code) in [
            (Modifier::BOLD, ";1"),
            (Modifier::DIM, ";2"),
            (Modifier::ITALIC, ";3"),
            (Modifier::UNDERLINED, ";4"),
            (Modifier::REVERSED, ";7"),
        ] {
            if pen.modifier.contains(modifier) {
                self.put(code);
            }
        }
        for (color, first) in [(pen.foreground, 30), (pen.background, 40)] {
            if let Some(code) = code_of(color) {
                let _ = write!(self.bytes, ";{}", first + code);
            }
        }
        self.put("m");
    }
}

/// The code of a colour of the terminal's own, beyond that of the first; `None` for the usual one. Others
/// than those sixteen are not used: their look on a user's background is unknown.
const fn code_of(color: Color) -> Option<u16> {
    Some(match color {
        Color::Black => 0,
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        Color::Gray => 7,
        Color::DarkGray => 60,
        Color::LightRed => 61,
        Color::LightGreen => 62,
        Color::LightYellow => 63,
        Color::LightBlue => 64,
        Color::LightMagenta => 65,
        Color::LightCyan => 66,
        Color::White => 67,
        _ => return None,
    })
}

impl Backend for Surface {
    type Error = Infallible;

    fn draw<'a, I>(&mut self, content: I) -> Result<(), Infallible>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let (mut pen, mut next) = (PLAIN, None);
        self.put(BEGIN_FRAME);
        for (x, y, cell) in content {
            if next != Some((x, y)) {
                self.go(x, y);
            }
            let wanted = TextStyle { foreground: cell.fg, background: cell.bg, modifier: cell.modifier };
            if wanted != pen {
                self.take(wanted);
                pen = wanted;
            }
            self.put(cell.symbol());
            // Where the cursor stands after a wide letter is the terminal's own idea.
            next = cell.symbol().is_ascii().then_some((x + 1, y));
        }
        if pen != PLAIN {
            self.take(PLAIN);
        }
        self.put(END_FRAME);
        Ok(())
    }

    fn hide_cursor(&mut self) -> Result<(), Infallible> {
        // It is hidden from ENTER to LEAVE.
        Ok(())
    }

    fn show_cursor(&mut self) -> Result<(), Infallible> {
        Ok(())
    }

    fn get_cursor_position(&mut self) -> Result<Position, Infallible> {
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> Result<(), Infallible> {
        let Position { x, y } = position.into();
        self.go(x, y);
        Ok(())
    }

    fn clear(&mut self) -> Result<(), Infallible> {
        self.clear_region(ClearType::All)
    }

    fn clear_region(&mut self, clear_type: ClearType) -> Result<(), Infallible> {
        // Erase in display and in line (ECMA-48 8.3.39 and 8.3.41).
        self.put(match clear_type {
            ClearType::All => "\x1b[0m\x1b[2J",
            ClearType::AfterCursor => "\x1b[J",
            ClearType::BeforeCursor => "\x1b[1J",
            ClearType::CurrentLine => "\x1b[2K",
            ClearType::UntilNewLine => "\x1b[K",
        });
        Ok(())
    }

    fn size(&self) -> Result<Size, Infallible> {
        Ok(self.size)
    }

    fn window_size(&mut self) -> Result<WindowSize, Infallible> {
        Ok(WindowSize { columns_rows: self.size, pixels: Size::ZERO })
    }

    fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::style::Stylize as _;
    use ratatui::text::Line;

    use super::*;

    #[test]
    fn only_what_has_changed_is_written_and_letters_are_plain_at_the_end() {
        let surface = Surface { size: Size::new(20, 2), ..Surface::default() };
        let Ok(mut terminal) = Terminal::new(surface);
        let mut frame = |text: &'static str| {
            let line = Line::from(vec!["rate ".into(), text.red().bold()]);
            let Ok(_) = terminal.draw(|frame| frame.render_widget(line, frame.area()));
            String::from_utf8(std::mem::take(&mut terminal.backend_mut().bytes)).unwrap()
        };
        let first = frame("1,000/s");
        assert_eq!(first, "\x1b[?2026h\x1b[1;1Hrate\x1b[1;6H\x1b[0;1;31m1,000/s\x1b[0m\x1b[?2026l");
        assert_eq!(frame("1,090/s"), "\x1b[?2026h\x1b[1;9H\x1b[0;1;31m9\x1b[0m\x1b[?2026l");
        assert_eq!(frame("1,090/s"), "\x1b[?2026h\x1b[?2026l");
    }
}
