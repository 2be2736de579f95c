//! Bodies that are read while they pass.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use crate::recording::{Kept, Room};

/// A body that passes, and is kept within a limit.
pub(crate) struct Passing {
    body: Incoming,
    kept: Arc<Mutex<Kept>>,
    /// Bytes that are kept at most, and the room that all bodies share.
    most: usize,
    room: Room,
    /// Called once, when the last byte has passed or the body is given up.
    at_end: Option<Box<dyn FnOnce() + Send>>,
}

impl Passing {
    pub(crate) fn new(body: Incoming, most: usize, room: &Room) -> Self {
        Self { body, kept: Arc::default(), most, room: room.clone(), at_end: None }
    }

    /// Calls `at_end` when the body is over.
    pub(crate) fn then(mut self, at_end: impl FnOnce() + Send + 'static) -> Self {
        self.at_end = Some(Box::new(at_end));
        self
    }

    /// A handle on the bytes, which grow while the body passes.
    pub(crate) fn kept(&self) -> Arc<Mutex<Kept>> {
        Arc::clone(&self.kept)
    }
}

/// Takes the bytes that have passed so far. Later ones are not kept.
pub(crate) fn take(kept: &Mutex<Kept>) -> Kept {
    std::mem::replace(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner), Kept::cut())
}

impl Body for Passing {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.add(data, self.most, &self.room);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        if let Some(at_end) = self.at_end.take() {
            at_end();
        }
    }
}
