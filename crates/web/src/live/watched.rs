//! Runs of a terminal, as the page sees them while they go on: by what they save.
//!
//! Such a run is not this server's: nothing is known of its control port, so it can be watched and not
//! steered. When it has ended, its figures are those of the saved run, which alone has a judgement.

use std::convert::Infallible;
use std::sync::Arc;

use axum::response::sse::Event;
use futures_util::stream::{self, Stream, StreamExt as _};
use plimsoll_report::{Format, SavedRun, Style, render_saved};
use plimsoll_store::State;
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval};

use super::elsewhere::Elsewhere;
use super::event;
use super::figures::Figures;
use super::run::{EVERY, Told};
use crate::history::Read;
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
    let from = match blocking(move || history.outline(&asked)).await {
        Ok(outline) if outline.state == State::Running => Elsewhere::of(&outline, ui.options.process),
        _ => return Err(unknown),
    };
    let mut tick = interval(EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let watched = Watched { ui: ui.clone(), id, from, told: Figures::default(), is_over: false };
    let batches = stream::unfold((watched, tick), |(mut watched, mut tick)| async move {
        let mut ends = watched.ui.ends.clone();
        while !watched.is_over {
            tokio::select! {
                _ = tick.tick() => {}
                _ = ends.wait_for(|ends| *ends) => return None,
            }
            let told = watched.look().await;
            if !told.is_empty() {
                return Some((told, (watched, tick)));
            }
        }
        None
    });
    Ok(batches.flat_map(|told| stream::iter(told.into_iter().map(event))))
}

/// A run of a terminal that a page looks at.
struct Watched {
    ui: Arc<Ui>,
    id: String,
    from: Elsewhere,
    /// The figures that the page has.
    told: Figures,
    is_over: bool,
}

impl Watched {
    /// Looks for news. What cannot be read now is read in a second.
    async fn look(&mut self) -> Vec<Told> {
        let (history, id) = (self.ui.history.clone(), self.id.clone());
        match blocking(move || history.so_far(&id)).await {
            Ok(Some(run)) => self.news(&run).into_iter().collect(),
            Ok(None) => self.end().await,
            Err(_) => Vec::new(),
        }
    }

    /// The figures so far, if there are other ones than before.
    fn news(&mut self, run: &SavedRun) -> Option<Told> {
        let until = run.result.intervals.last().map(|interval| interval.at_s);
        if until.is_none() || until == self.told.until() {
            return None;
        }
        let figures = Figures::whole(stat(run, true), written(run)?).after(&self.told);
        let event = figures.event(true);
        self.told = figures;
        Some(Told::Figures(event))
    }

    /// The figures of the saved run, and the end.
    async fn end(&mut self) -> Vec<Told> {
        self.is_over = true;
        let (history, id) = (self.ui.history.clone(), self.id.clone());
        let figures = match blocking(move || history.read(&id)).await {
            Ok(Read::Run(run)) => {
                written(&run).map(|result| Figures::whole(stat(&run, false), result).event(false))
            }
            // It was deleted, or cannot be read: the page keeps the figures that it has.
            _ => None,
        };
        let end = json!({"exit_code": null, "run": self.id, "capacity": null, "from": self.from.name()});
        figures.map(Told::Figures).into_iter().chain([Told::End(end)]).collect()
    }
}

/// Figures of the run that are not in its result.
fn stat(run: &SavedRun, is_running: bool) -> Value {
    json!({
        "read_only": true,
        "running": is_running,
        "stopping": false,
        "paused": false,
        "target_per_s": run.result.rate.target_per_s,
        "elapsed_s": run.result.intervals.last().map_or(0.0, |interval| interval.at_s),
        "end_s": null,
    })
}

/// Renders the result of a saved run as JSON.
fn written(run: &SavedRun) -> Option<Value> {
    let mut text = Vec::new();
    render_saved(run, Format::Json, &Style::PLAIN, &mut text).ok()?;
    serde_json::from_slice(&text).ok()
}
