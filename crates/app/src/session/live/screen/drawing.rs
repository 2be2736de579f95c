//! The thread that draws.

use plimsoll_core::Nanos;
use plimsoll_engine::Control;
use plimsoll_system::clock;
use ratatui::Terminal;
use ratatui::layout::Size;
use rustix::process;

use super::figures::{Figures, Subject};
use super::handle::{DrawQueue, ScreenHandle};
use super::page::Page;
use super::surface::{ENTER, Surface};
use crate::base::color::Theme;
use crate::base::terminal::{self, Output};

/// Between two frames, at least.
const SHORTEST: Nanos = Nanos::from_millis(250);
/// Between two frames, at most: the time goes on.
const LONGEST: Nanos = Nanos::from_secs(1);
/// From the start of a run to its first frame: one that has ended by then has no screen.
const PATIENCE: Nanos = Nanos::from_millis(300);
/// The lowest priority: workers come first wherever both want the same processor.
const NICE: i32 = 19;

/// Draws until the run is over, or its terminal has gone.
pub(super) fn draw(stage: &ScreenHandle, subject: Subject, control: &Control, look: Theme) {
    // On Linux the priority is that of this thread alone. If it cannot be lowered, the screen costs the
    // workers a little more.
    let _ = process::setpriority_process(None, NICE);
    let mut canvas = Canvas::new(look);
    let (mut figures, mut page) = (Figures::new(subject, clock::monotonic()), Page::default());
    let mut next = clock::monotonic() + PATIENCE;
    let mut latest = next;
    loop {
        if gather(stage, (next, latest), &mut figures, &mut page) {
            return;
        }
        terminal::open_screen();
        let now = clock::monotonic();
        figures.look_at(control, now);
        if !canvas.show(&figures, &mut page) {
            // The screen is gone. The run goes on, and messages go to stderr again, if there is one.
            stage.inbox().shown = false;
            return;
        }
        (next, latest) = (now + SHORTEST, now + LONGEST);
    }
}

/// Waits until something has come, and the first of these times; but not beyond the second. Takes all news.
/// Returns `true` if the run is over.
fn gather(
    stage: &ScreenHandle,
    (next, latest): (Nanos, Nanos),
    figures: &mut Figures,
    page: &mut Page,
) -> bool {
    let mut inbox = stage.inbox();
    loop {
        let until = if inbox.news { next } else { latest };
        let left = until.since(clock::monotonic());
        if inbox.over || left == Nanos::ZERO {
            break;
        }
        inbox = match stage.0.came.wait_timeout(inbox, left.into()) {
            Ok((inbox, _)) => inbox,
            Err(poisoned) => poisoned.into_inner().0,
        };
    }
    inbox.news = false;
    let DrawQueue { over, lost, .. } = *inbox;
    let intervals = std::mem::take(&mut inbox.intervals);
    let keys = std::mem::take(&mut inbox.keys);
    let messages = inbox.messages[inbox.read..].to_vec();
    inbox.read = inbox.messages.len();
    // Released early, so that senders do not wait for the drawing.
    drop(inbox);
    let now = clock::monotonic();
    intervals.into_iter().for_each(|news| figures.add(news, now));
    figures.lost = lost;
    messages.iter().for_each(|message| figures.hear(message));
    keys.into_iter().for_each(|key| page.press(key));
    over
}

/// The terminal with the last frame.
struct Canvas {
    look: Theme,
    terminal: Option<Terminal<Surface>>,
    output: Output,
    /// The turn of the screen that the last frame was drawn in.
    turn: u64,
}

impl Canvas {
    fn new(look: Theme) -> Self {
        Self { look, terminal: None, output: Output::open(), turn: 0 }
    }

    /// Draws a frame, unless the terminal still has to take the last one. False if it has gone.
    fn show(&mut self, figures: &Figures, page: &mut Page) -> bool {
        let Some(turn) = terminal::screen_turn() else { return true };
        let Some((columns, rows)) = terminal::size() else { return false };
        let size = Size::new(columns, rows);
        if turn != self.turn || self.terminal.is_none() {
            let surface = Surface { size, bytes: ENTER.as_bytes().to_vec() };
            let Ok(mut fresh) = Terminal::new(surface);
            let Ok(()) = fresh.clear();
            (self.terminal, self.turn) = (Some(fresh), turn);
        }
        let Some(terminal) = &mut self.terminal else { return true };
        if terminal::paint(&mut self.output, &mut terminal.backend_mut().bytes).is_err() {
            return false;
        }
        if !terminal.backend().bytes.is_empty() && terminal.backend().size == size {
            return true;
        }
        terminal.backend_mut().size = size;
        let look = self.look;
        let Ok(_) = terminal.draw(|frame| {
            page.draw(figures, frame.area(), frame.buffer_mut());
            look.apply(frame.buffer_mut());
        });
        terminal::paint(&mut self.output, &mut terminal.backend_mut().bytes).is_ok()
    }
}
