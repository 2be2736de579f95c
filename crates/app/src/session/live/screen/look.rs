//! Capabilities of the reader's terminal: colours or none, characters beyond ASCII or none.

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};

use crate::base::color::Theme;

/// As it should be.
pub(super) const GOOD: Style = Style::new().fg(Color::Green);
/// Not as it should be.
pub(super) const BAD: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
/// Needs attention.
pub(super) const DOUBTFUL: Style = Style::new().fg(Color::Yellow);
/// Text that stays the same all the time.
pub(super) const LABEL: Style = Style::new().fg(Color::DarkGray);
pub(super) const HEADING: Style = Style::new().add_modifier(Modifier::BOLD);
/// Bars of rates.
pub(super) const RATE: Style = Style::new().fg(Color::Cyan);
/// Bars of times.
pub(super) const TIME: Style = Style::new().fg(Color::Magenta);

impl Theme {
    /// Removes styles that the terminal cannot show.
    pub(super) fn apply(self, buffer: &mut Buffer) {
        if self.color && self.unicode {
            return;
        }
        for cell in &mut buffer.content {
            if !self.color {
                cell.set_fg(Color::Reset).set_bg(Color::Reset);
            }
            if !self.unicode && !cell.symbol().is_ascii() {
                let plain = cell.symbol().chars().next().map_or(' ', ascii);
                cell.set_char(plain);
            }
        }
    }
}

/// Returns the ASCII replacement of a character; of a bar, one that is about as high.
const fn ascii(character: char) -> char {
    match character {
        '─' | '━' | '–' | '╌' => '-',
        '│' => '|',
        '╭' | '╮' | '╰' | '╯' | '┬' | '┴' | '├' | '┤' => '+',
        '▁' | '▂' => '_',
        '▃' | '▄' => '.',
        '▅' | '▆' => '=',
        '▇' | '█' => '#',
        'µ' => 'u',
        '≥' => '>',
        '≤' => '<',
        '·' | '…' => '.',
        '×' => 'x',
        '●' | '▶' | '▸' => '*',
        '░' => '.',
        '▒' => ':',
        '▓' => '%',
        '↑' => '^',
        '↓' => 'v',
        _ => '?',
    }
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;
    use ratatui::widgets::Widget as _;

    use super::*;

    #[test]
    fn a_poor_terminal_gets_ascii_and_no_colour() {
        let text = ratatui::text::Line::styled("│p99 ≥ 3 µs ▁▅█ né", BAD);
        let shown = |look: Theme| {
            let mut buffer = Buffer::empty(Rect::new(0, 0, 18, 1));
            (&text).render(buffer.area, &mut buffer);
            look.apply(&mut buffer);
            let cells = buffer.content.iter();
            (cells.map(ratatui::buffer::Cell::symbol).collect::<String>(), buffer.content[0].fg)
        };
        let (poor, colour) = shown(Theme { color: false, unicode: false });
        assert_eq!((poor.as_str(), colour), ("|p99 > 3 us _=# n?", Color::Reset));
        let (rich, colour) = shown(Theme { color: true, unicode: true });
        assert_eq!((rich.as_str(), colour), ("│p99 ≥ 3 µs ▁▅█ né", Color::Red));
    }
}
