//! News for every page: the list of saved runs has changed, or that of the runs under way.

use std::collections::hash_map::DefaultHasher;
use std::convert::Infallible;
use std::hash::{Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::stream::{self, Stream, StreamExt as _};
use tokio::sync::{Notify, watch};
use tokio::time::{MissedTickBehavior, interval};

use crate::live::SIGN_OF_LIFE;
use crate::refusal::Refusal;
use crate::router::{Ui, blocking};

/// Interval between two checks of the history: other processes do not announce their runs.
const EVERY: Duration = Duration::from_secs(1);

/// State of the lists that the page shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct News {
    /// A number that differs for lists of saved runs that differ.
    runs: Option<u64>,
    /// The runs under way, as JSON.
    live: Option<Arc<str>>,
}

/// Source of news. It is polled only while there are listeners.
pub(crate) struct Events {
    news: watch::Sender<News>,
    /// Asks for a look at once.
    wake: Notify,
    is_looking: Mutex<bool>,
}

impl Events {
    pub(crate) fn new() -> Self {
        Self { news: watch::Sender::default(), wake: Notify::new(), is_looking: Mutex::default() }
    }

    /// Something has changed: it is looked for at once.
    pub(crate) fn look(&self) {
        self.wake.notify_one();
    }
}

/// Looks for news as long as there are listeners.
async fn look_for_news(ui: Arc<Ui>) {
    let mut tick = interval(EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            () = ui.events.wake.notified() => {}
        }
        {
            let mut is_looking = ui.events.is_looking.lock().unwrap_or_else(PoisonError::into_inner);
            if ui.events.news.receiver_count() == 0 {
                *is_looking = false;
                return;
            }
        }
        // A history that cannot be read now is read again in a second.
        if let Ok(news) = look(&ui).await {
            ui.events.news.send_if_modified(|present| {
                let is_new = *present != news;
                *present = news;
                is_new
            });
        }
    }
}

async fn look(ui: &Arc<Ui>) -> Result<News, Refusal> {
    let history = ui.history.clone();
    let glance = blocking(move || history.glance()).await?;
    let live = ui.live.summaries(&glance.latest, ui.options.process).to_string();
    let mut hasher = DefaultHasher::new();
    glance.hash(&mut hasher);
    Ok(News { runs: Some(hasher.finish()), live: Some(live.into()) })
}

/// `GET /api/events`
pub(crate) async fn events(State(ui): State<Arc<Ui>>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let news = {
        let mut is_looking = ui.events.is_looking.lock().unwrap_or_else(PoisonError::into_inner);
        let news = ui.events.news.subscribe();
        if !*is_looking {
            *is_looking = true;
            // The last state may be from long ago, when there was a listener.
            ui.events.news.send_if_modified(|news| {
                *news = News::default();
                false
            });
            tokio::spawn(look_for_news(ui.clone()));
        }
        news
    };
    let heard = (news, News::default(), ui.ends.clone());
    let batches = stream::unfold(heard, |(mut news, told, mut ends)| async move {
        loop {
            let present = news.borrow_and_update().clone();
            let events = changes(&told, &present);
            if !events.is_empty() {
                return Some((events, (news, present, ends)));
            }
            tokio::select! {
                // The sender lives as long as the server.
                _ = news.changed() => {}
                _ = ends.wait_for(|ends| *ends) => return None,
            }
        }
    });
    let events = batches.flat_map(|events| stream::iter(events.into_iter().map(Ok)));
    Sse::new(events).keep_alive(KeepAlive::new().interval(SIGN_OF_LIFE))
}

/// The events that lead from the reported state to the present one.
fn changes(told: &News, present: &News) -> Vec<Event> {
    let runs = (told.runs != present.runs).then(|| Event::default().event("runs").data("{}"));
    let live = present.live.as_ref().filter(|_| told.live != present.live);
    let live = live.map(|live| Event::default().event("live").data(live));
    runs.into_iter().chain(live).collect()
}
