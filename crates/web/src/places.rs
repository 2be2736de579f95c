//! The places of connections. While all are taken, the connection gives way that has waited longest for the
//! head of a request, in the middle of one or before it: so nobody holds them all by saying nothing.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Request, Response};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::service::Service;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// All places.
#[derive(Debug)]
pub(crate) struct Places {
    free: Arc<Semaphore>,
    idle: Arc<Idle>,
}

/// Connections without a request that is being answered.
#[derive(Debug, Default)]
struct Idle {
    seats: Mutex<Waiting>,
    /// There is one more of them.
    more: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Those that wait, in the order in which they began to, each with what wakes its task to end it.
    longest_first: BTreeMap<u64, Arc<Notify>>,
    next: u64,
}

impl Idle {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places {
    /// As many places.
    pub(crate) fn new(most: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(most)), idle: Arc::default() }
    }

    /// Takes a place for a connection that has come. If there is none, one that waits for a request ends.
    pub(crate) async fn take(&self) -> Seat {
        loop {
            // Told of one that begins to wait behind the look at them.
            let more = self.idle.more.notified();
            if let Ok(place) = self.free.clone().try_acquire_owned() {
                return Seat::new(place, self.idle.clone());
            }
            if let Some((_, longest)) = self.idle.lock().longest_first.pop_first() {
                longest.notify_one();
            }
            tokio::select! {
                place = self.free.clone().acquire_owned() => {
                    if let Ok(place) = place {
                        return Seat::new(place, self.idle.clone());
                    }
                }
                () = more => {}
            }
        }
    }
}

/// The place of a connection, which waits for its first request.
#[derive(Debug)]
pub(crate) struct Seat {
    wait: Arc<Wait>,
    _place: OwnedSemaphorePermit,
}

/// A connection that waits for a request, or does not.
#[derive(Debug)]
struct Wait {
    idle: Arc<Idle>,
    /// The number under which it waits.
    number: Mutex<Option<u64>>,
    end: Arc<Notify>,
}

impl Wait {
    fn number(&self) -> MutexGuard<'_, Option<u64>> {
        self.number.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self) {
        let mut waiting = self.idle.lock();
        let number = waiting.next;
        waiting.next += 1;
        waiting.longest_first.insert(number, self.end.clone());
        *self.number() = Some(number);
        drop(waiting);
        self.idle.more.notify_waiters();
    }

    fn end(&self) {
        if let Some(number) = self.number().take() {
            self.idle.lock().longest_first.remove(&number);
        }
    }
}

impl Seat {
    fn new(place: OwnedSemaphorePermit, idle: Arc<Idle>) -> Self {
        let wait = Arc::new(Wait { idle, number: Mutex::default(), end: Arc::default() });
        wait.begin();
        Self { wait, _place: place }
    }

    /// Waits until the connection has to give way to another one.
    pub(crate) async fn lost(&self) {
        self.wait.end.notified().await;
    }

    /// The service of the connection, which tells when it waits for a request and when it answers one.
    pub(crate) fn seated<S>(&self, service: S) -> Seated<S> {
        Seated { service, wait: self.wait.clone() }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.wait.end();
    }
}

/// A service on a connection that has a [`Seat`].
#[derive(Clone, Debug)]
pub(crate) struct Seated<S> {
    service: S,
    wait: Arc<Wait>,
}

/// A request that is being answered. Its connection waits again when this goes.
#[derive(Debug)]
struct Answering(Arc<Wait>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.begin();
    }
}

impl<S: Service<Request<Incoming>, Response = Response<Body>>> Service<Request<Incoming>> for Seated<S>
where
    S::Future: Send + 'static,
    S::Error: 'static,
{
    type Response = Response<AnswerBody>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        self.wait.end();
        let answering = Answering(self.wait.clone());
        let answer = self.service.call(request);
        Box::pin(async move {
            let response = answer.await?;
            Ok(response.map(|body| AnswerBody { body, _answering: answering }))
        })
    }
}

/// The body of an answer.
#[derive(Debug)]
pub(crate) struct AnswerBody {
    body: Body,
    _answering: Answering,
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().build().unwrap()
    }

    #[test]
    fn the_connection_that_has_waited_longest_gives_way() {
        runtime().block_on(async {
            let places = Places::new(2);
            let (first, second) = (places.take().await, places.take().await);
            // A request comes and is answered: now the second one has waited longer.
            first.wait.end();
            drop(Answering(first.wait.clone()));
            let (third, ()) = tokio::join!(places.take(), async {
                second.lost().await;
                drop(second);
            });
            // Neither gives way while it answers, but as soon as it has.
            first.wait.end();
            third.wait.end();
            let answering = Answering(third.wait.clone());
            let (fourth, ()) = tokio::join!(places.take(), async {
                drop(answering);
                third.lost().await;
                drop(third);
            });
            drop(fourth);
            let _free = places.take().await;
            assert!(first.wait.number().is_none(), "it still answers");
        });
    }
}
