//! Options of a sink.

use std::path::PathBuf;

use plimsoll_core::{Nanos, Rate};
use plimsoll_driver::Endpoint;
use plimsoll_wire::tls::ServerConfig;

use super::service::{Faults, Service};

/// Options of a sink. [`SinkOptions::new`] gives the plain one: one thread, the counter as the answer, at
/// once, without faults and without a log.
#[derive(Clone, Debug)]
pub struct SinkOptions {
    /// The endpoint to listen on. Port 0 asks for a free one: see [`Sink::endpoint`](super::Sink::endpoint).
    pub listen: Endpoint,
    /// Worker threads, at least 1. Several threads share the port by `SO_REUSEPORT`.
    pub threads: u32,
    /// Speak TLS. ALPN chooses between HTTP/1.1 and HTTP/2, so the configuration has to name both (`h2`,
    /// `http/1.1`). Without TLS, and with a client that offers no ALPN, the first bytes decide.
    pub tls: Option<ServerConfig>,
    /// Service that answers the requests.
    pub service: Service,
    /// Law of the service time of a request. Without `queue` and `per_connection_serial` all requests are
    /// served side by side (an infinite server, T1).
    pub delay: Delay,
    /// CPU time burnt for every reply before it is sent, each reply on its own, in the order of the requests:
    /// a target that computes. The thread does nothing else meanwhile, so it carries at most `1 / work` per
    /// second. Requests that are dropped, reset or refused cost nothing.
    pub work: Nanos,
    /// One server with one FIFO queue over all connections, `delay` being the service time (T2: M/M/1 with an
    /// exponential delay, M/D/1 with a constant one). Needs `threads == 1`.
    pub queue: bool,
    /// One server with one FIFO queue and a fixed service time of `1 / capacity`; `delay` comes on top of it,
    /// side by side. Needs `threads == 1`.
    pub capacity: Option<Rate>,
    /// Each connection is a server of its own with its own FIFO queue (T4).
    pub per_connection_serial: bool,
    /// When nothing is read or written (T3).
    pub freezes: Vec<Freeze>,
    /// Shares of requests that fail.
    pub faults: Faults,
    /// Seed of every draw: the fate of request number `n` depends on the seed and on `n` alone.
    pub seed: u64,
    /// Log of every request (T5).
    pub truth: Truth,
    /// Stop after this time.
    pub duration: Option<Nanos>,
}

impl SinkOptions {
    /// A sink on `listen` that answers the counter at once.
    pub fn new(listen: Endpoint) -> Self {
        Self {
            listen,
            threads: 1,
            tls: None,
            service: Service::default(),
            delay: Delay::None,
            work: Nanos::ZERO,
            queue: false,
            capacity: None,
            per_connection_serial: false,
            freezes: Vec::new(),
            faults: Faults::default(),
            seed: 0,
            truth: Truth::Off,
            duration: None,
        }
    }

    /// Everything that is wrong with these options, each as a sentence; empty if they are sound.
    pub fn problems(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut require = |sound: bool, problem: &str| {
            if !sound {
                found.push(problem.to_owned());
            }
        };
        let alone = self.threads == 1;
        require(self.threads > 0, "a sink needs at least one thread");
        require(
            alone || !matches!(self.listen, Endpoint::Unix(_)),
            "a unix socket cannot be shared by several threads: use one thread",
        );
        require(alone || !self.queue, "the queue is one for the whole sink: use one thread with it");
        require(
            alone || self.capacity.is_none(),
            "the fixed capacity is one for the whole sink: use one thread with it",
        );
        require(
            alone || !self.service.broadcasts(),
            "messages to all clients need one thread, which has all of them: use one thread with broadcast",
        );
        require(
            usize::from(self.queue)
                + usize::from(self.capacity.is_some())
                + usize::from(self.per_connection_serial)
                <= 1,
            "a queue, a fixed capacity and serial connections exclude each other",
        );
        require(
            self.delay != Delay::None || !(self.queue || self.per_connection_serial),
            "a queue needs a service time: set a delay",
        );
        let paced = self.delay != Delay::None || self.capacity.is_some() || self.service.slow().is_some();
        require(
            !paced || self.work == Nanos::ZERO,
            "work is all that a reply waits for: leave out delay, capacity and slow data",
        );
        require(!self.capacity.is_some_and(Rate::is_zero), "a capacity of zero answers nothing");
        require(self.freezes.iter().all(|f| f.length > Nanos::ZERO), "a freeze of no length does nothing");
        self.delay.problems(&mut require);
        self.service.problems(&self.listen, &mut require);
        self.faults.problems(&mut require);
        self.service.conflicts(&self.faults, self.work, &mut require);
        found
    }
}

/// The law of the time that a request is served.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Delay {
    /// No time.
    None,
    /// Always the same.
    Constant(Nanos),
    /// Exponential.
    Exponential {
        /// Mean, and standard deviation.
        mean: Nanos,
    },
    /// Lognormal: `median * exp(sigma * Z)` with a standard normal `Z`.
    Lognormal {
        /// Median.
        median: Nanos,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// One of two times.
    Bimodal {
        /// The usual one.
        first: Nanos,
        /// The other one.
        second: Nanos,
        /// Probability of the other one, 0 to 1.
        share_of_second: f64,
    },
}

impl Delay {
    /// Names what makes no sense, one call each: `false` with the rule that is broken.
    pub fn problems(&self, require: &mut impl FnMut(bool, &str)) {
        match *self {
            Self::None | Self::Constant(_) => {}
            Self::Exponential { mean } => {
                require(mean > Nanos::ZERO, "an exponential delay needs a mean above 0");
            }
            Self::Lognormal { median, sigma } => require(
                median > Nanos::ZERO && sigma.is_finite() && sigma >= 0.0,
                "a lognormal delay needs a median above 0 and a sigma of at least 0",
            ),
            Self::Bimodal { share_of_second, .. } => {
                require(is_share(share_of_second), "the share of a bimodal delay is between 0 and 1");
            }
        }
    }
}

/// A span in which nothing is read or written, as if the process were stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freeze {
    /// Begin, since the start of the sink.
    pub at: Nanos,
    /// Length.
    pub length: Nanos,
}

/// The destination of the truth log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Truth {
    /// Nowhere; costs nothing.
    #[default]
    Off,
    /// Into this file, as CSV.
    File(PathBuf),
    /// Into [`SinkReport::truth`](super::SinkReport::truth). Grows with the number of requests.
    Memory,
}

pub(crate) fn is_share(share: f64) -> bool {
    (0.0..=1.0).contains(&share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::service::{Body, Reply, WebSocket};

    fn plain() -> SinkOptions {
        SinkOptions::new(Endpoint::Tcp(([127, 0, 0, 1], 0).into()))
    }

    #[test]
    fn the_plain_sink_is_sound() {
        assert_eq!(plain().problems(), Vec::<String>::new());
    }

    #[test]
    fn every_problem_is_reported_at_once() {
        let options = SinkOptions {
            threads: 2,
            queue: true,
            capacity: Some(Rate::per_second(0)),
            service: Service::Reply(Reply {
                status: 100,
                content_type: "a\r\nb: c".to_owned(),
                body: Body::Counter,
                slow: None,
            }),
            faults: Faults {
                drop: 0.7,
                reset: 0.4,
                statuses: vec![(99, 0.0)],
                close_idle_after: Some(0),
                ..Faults::default()
            },
            ..plain()
        };
        assert_eq!(options.problems().len(), 10, "{:#?}", options.problems());
    }

    #[test]
    fn shares_and_parameters_of_delays_are_checked() {
        for delay in [
            Delay::Exponential { mean: Nanos::ZERO },
            Delay::Lognormal { median: Nanos(1), sigma: f64::NAN },
            Delay::Lognormal { median: Nanos(1), sigma: -1.0 },
            Delay::Bimodal { first: Nanos(1), second: Nanos(2), share_of_second: 1.5 },
        ] {
            assert_eq!(SinkOptions { delay, ..plain() }.problems().len(), 1, "{delay:?}");
        }
        let faults = Faults { drop: f64::NAN, ..Faults::default() };
        assert!(!SinkOptions { faults, ..plain() }.problems().is_empty());
    }

    #[test]
    fn thread_bound_options_need_one_thread() {
        let queue = SinkOptions { queue: true, delay: Delay::Constant(Nanos(1)), ..plain() };
        assert!(queue.problems().is_empty());
        assert_eq!(SinkOptions { threads: 2, ..queue }.problems().len(), 1);
        let unix = SinkOptions { threads: 2, listen: Endpoint::Unix("s".into()), ..plain() };
        assert_eq!(unix.problems().len(), 1);
        for (threads, broadcasts) in [(1, true), (2, false), (2, true)] {
            let service = Service::WebSocket(WebSocket { broadcasts });
            let problems = SinkOptions { threads, service, ..plain() }.problems();
            assert_eq!(problems.len(), usize::from(threads == 2 && broadcasts), "{problems:?}");
        }
    }
}
