//! Messages for the user on stderr, which a live screen shows and keeps while it is there.

use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_core::characters::visible;

use crate::base::foreign_text::in_lines;
use crate::base::streams;

/// A live screen, which shows messages in place of stderr.
pub(crate) trait MessageScreen: Send + Sync {
    /// Takes a message; `false` if the screen is not shown.
    fn take(&self, text: &str) -> bool;
}

/// The screen that is shown.
static SHOWN: Mutex<Option<Arc<dyn MessageScreen>>> = Mutex::new(None);

/// Writes a message to stderr.
pub type Notify = Arc<dyn Fn(&str) + Send + Sync>;

/// Lets a screen take messages from now on.
pub(crate) fn show_on(screen: Arc<dyn MessageScreen>) {
    *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(screen);
}

/// Writes a message to stderr. On a terminal the live line makes room; a live screen shows it, and keeps it
/// for stderr until it closes.
pub(crate) fn tell(text: &str) {
    let text = &*visible(text.trim_end());
    let text = &*in_lines(text);
    if keep(text) {
        return;
    }
    if std::io::stderr().is_terminal() {
        streams::renew_line(&format!("{text}\n"));
    } else {
        streams::to_stderr(&format!("{text}\n"));
    }
}

/// Gives a message to the live screen; false if there is none.
pub(crate) fn keep(text: &str) -> bool {
    let screen = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    screen.is_some_and(|screen| screen.take(text.trim_end()))
}

/// Returns a function that writes messages to stderr, or drops them if `quiet`: see [`tell`].
pub fn say(quiet: bool) -> Notify {
    Arc::new(move |text| {
        if !quiet {
            tell(text);
        }
    })
}
