//! Runs of a terminal, as the page sees them while they go on: by what they save.
//!
//! Such a run is not this server's: nothing is known of its control port, so it can be watched and not
//! steered.

use std::convert::Infallible;
use std::sync::Arc;

use axum::response::sse::Event;
use futures_util::stream::{self, Stream, StreamExt as _};
use plimsoll_report::{Format, SavedRun, Style, render_saved};
use plimsoll_store::State;
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval};

use super::event;
use super::figures::Figures;
use super::run::{EVERY, Told};
use crate::refusal::Refusal;
use crate::router::{Ui, blocking};

/// Returns the events of a run that goes on elsewhere, until it ends.
///
/// # Errors
/// `unknown` if the history has no such run, or it has ended.
pub(super) async fn events(
    ui: &Arc<Ui>,
    id: String,
    unknown: Refusal,
) -> Result<impl Stream<Item = Result<Event, Infallible>> + use<>, Refusal> {
    let (history, asked) = (ui.history.clone(), id.clone());
    let outline = blocking(move || history.outline(&asked)).await;
    if !outline.is_ok_and(|outline| outline.state == State::Running) {
        return Err(unknown);
    }
    let mut tick = interval(EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let watched = Watched { ui: ui.clone(), id, told: Figures::default(), is_over: false };
    let batches = stream::unfold((watched, tick), |(mut watched, mut tick)| async move {
        let mut ends = watched.ui.ends.clone();
        while !watched.is_over {
            tokio::select! {
                _ = tick.tick() => {}
                _ = ends.wait_for(|ends| *ends) => return None,
            }
            if let Some(told) = watched.look().await {
                return Some((told, (watched, tick)));
            }
        }
        None
    });
    Ok(batches.map(event))
}

/// A run of a terminal that a page looks at.
struct Watched {
    ui: Arc<Ui>,
    id: String,
    /// The figures that the page has.
    told: Figures,
    is_over: bool,
}

impl Watched {
    /// Looks for news. What cannot be read now is read in a second.
    async fn look(&mut self) -> Option<Told> {
        let (history, id) = (self.ui.history.clone(), self.id.clone());
        let Some(run) = blocking(move || history.so_far(&id)).await.ok()? else {
            self.is_over = true;
            let end = json!({"exit_code": null, "run": self.id, "capacity": null, "from": "terminal"});
            return Some(Told::End(end));
        };
        let until = run.result.intervals.last().map(|interval| interval.at_s);
        if until.is_none() || until == self.told.until() {
            return None;
        }
        let figures = Figures::whole(stat(&run), written(&run)?).after(&self.told);
        let event = figures.event(true);
        self.told = figures;
        Some(Told::Figures(event))
    }
}

/// Figures of the run that are not in its result.
fn stat(run: &SavedRun) -> Value {
    json!({
        "read_only": true,
        "running": true,
        "stopping": false,
        "paused": false,
        "target_per_s": run.result.rate.target_per_s,
        "elapsed_s": run.result.intervals.last().map_or(0.0, |interval| interval.at_s),
        "end_s": null,
    })
}

/// Its result.
fn written(run: &SavedRun) -> Option<Value> {
    let mut text = Vec::new();
    render_saved(run, Format::Json, &Style::PLAIN, &mut text).ok()?;
    serde_json::from_slice(&text).ok()
}
