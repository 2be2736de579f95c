//! The threads of a server: each listens in the same place with a backend of its own, and all begin together.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{Builder, JoinHandle};

use plimsoll_core::Nanos;
use plimsoll_driver::Endpoint;
use plimsoll_system::clock;

use crate::start_error::StartError;

/// The task of each thread of a server.
pub(crate) trait ThreadTask: Send + Sync + 'static {
    /// State that a listening thread needs to serve. It stays on its thread.
    type Ready;
    /// The result of a thread, returned at its end.
    type Ended: Default + Send + 'static;

    /// Listens on `place`; gives the same with the ports that were found.
    fn listen(&self, index: u32, place: &[Endpoint]) -> Result<(Self::Ready, Vec<Endpoint>), StartError>;

    /// Serves until the server is stopped, counting its time from `start`.
    fn serve(&self, ready: Self::Ready, start: Nanos, index: u32) -> Self::Ended;
}

/// Threads that listen and wait for the word to begin. Dropped without it, they end.
#[derive(Debug)]
pub(crate) struct Ready<T> {
    place: Vec<Endpoint>,
    threads: Vec<JoinHandle<T>>,
    starts: Vec<Sender<Nanos>>,
}

impl<T: Default + Send + 'static> Ready<T> {
    /// Starts `threads` threads named after `name`, and returns once all of them listen.
    pub(crate) fn gather<D: ThreadTask<Ended = T>>(
        name: &str,
        threads: u32,
        place: Vec<Endpoint>,
        duty: &Arc<D>,
    ) -> Result<Self, StartError> {
        let mut all = Self { place, threads: Vec::new(), starts: Vec::new() };
        for index in 0..threads {
            let (ready, is_ready) = mpsc::channel();
            let (start, is_started) = mpsc::channel();
            let (duty, place) = (Arc::clone(duty), all.place.clone());
            let spawned = Builder::new()
                .name(format!("{name}-{index}"))
                .spawn(move || one(&*duty, index, &place, &ready, &is_started))
                .map_err(StartError::Thread)?;
            // The first thread resolves port 0, the others listen where it does. On an error the senders of
            // the threads before are dropped, which ends them.
            all.place = match is_ready.recv() {
                Ok(listening) => listening?,
                Err(_) => {
                    std::panic::resume_unwind(spawned.join().err().unwrap_or_else(|| Box::new("no answer")))
                }
            };
            all.threads.push(spawned);
            all.starts.push(start);
        }
        Ok(all)
    }

    /// The endpoints that they listen on.
    pub(crate) fn place(&self) -> &[Endpoint] {
        &self.place
    }

    /// Lets them begin. They end by this stopper, or when the result is dropped.
    pub(crate) fn begin(self, stopper: Stopper) -> ServerThreads<T> {
        let started = clock::monotonic();
        for start in self.starts {
            // A thread that is gone by now has panicked: joining it shows the panic.
            let _ = start.send(started);
        }
        ServerThreads { place: self.place, started, threads: self.threads, stopper }
    }
}

/// One thread: listens, says so, and serves from the common start on.
fn one<D: ThreadTask>(
    duty: &D,
    index: u32,
    place: &[Endpoint],
    ready: &Sender<Result<Vec<Endpoint>, StartError>>,
    start: &Receiver<Nanos>,
) -> D::Ended {
    // The receiver waits for this, so it cannot be gone.
    let listening = match duty.listen(index, place) {
        Ok((listening, place)) => {
            let _ = ready.send(Ok(place));
            listening
        }
        Err(error) => {
            let _ = ready.send(Err(error));
            return D::Ended::default();
        }
    };
    match start.recv() {
        Ok(start) => duty.serve(listening, start, index),
        // Another thread could not listen.
        Err(_) => D::Ended::default(),
    }
}

/// Threads that serve.
#[derive(Debug)]
pub(crate) struct ServerThreads<T> {
    place: Vec<Endpoint>,
    started: Nanos,
    threads: Vec<JoinHandle<T>>,
    stopper: Stopper,
}

impl<T> ServerThreads<T> {
    /// The endpoints that they listen on.
    pub(crate) fn place(&self) -> &[Endpoint] {
        &self.place
    }

    /// When they began, on the driver's clock.
    pub(crate) const fn started(&self) -> Nanos {
        self.started
    }

    /// The stopper that ends them.
    pub(crate) const fn stopper(&self) -> &Stopper {
        &self.stopper
    }

    /// Waits until all have ended; returns their results.
    pub(crate) fn wait(mut self) -> Vec<T> {
        let ended = std::mem::take(&mut self.threads).into_iter().map(|thread| match thread.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ended.collect()
    }
}

impl<T> Drop for ServerThreads<T> {
    fn drop(&mut self) {
        self.stopper.stop();
    }
}

/// Stops a server from anywhere.
#[derive(Clone, Debug, Default)]
pub struct Stopper(Arc<AtomicBool>);

impl Stopper {
    /// Asks the server to stop, which it does within 50 ms.
    // Relaxed: nothing else is published by it.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
