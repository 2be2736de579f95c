//! Behaviours of the servers, as flags and as events beside them.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use crate::failure::{Failure, Result};
use crate::shape::{Kind, Shape};

/// How long a server stands still that goes on.
pub(super) const THAW: Duration = Duration::from_millis(200);
/// Patience with a connect that a full backlog does not answer; on loopback others take microseconds.
const UNANSWERED: Duration = Duration::from_millis(50);

/// Something that makes a server slow, faulty or absent.
pub(super) struct Behaviour {
    pub(super) name: &'static str,
    /// Flags of the sink. No share of slow or lost requests equals the part above a compared percentile,
    /// where chance would decide on which side its value lies.
    sink: &'static [&'static str],
    /// Flags of the target of language models; none if it cannot behave like this.
    llm: Option<&'static [&'static str]>,
    pub(super) beside: Beside,
    /// `true` if bodies are sent slowly, which messages of gRPC and WebSockets are not.
    drips: bool,
}

/// An event beside the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beside {
    Nothing,
    /// The server stands still for [`THAW`] in the middle of the run. Requests wait unread meanwhile, so that
    /// the log has when they came from the stamps of the kernel alone.
    Thaw,
    /// The server stands still from the middle of the run on, and logs nothing of what it has not read.
    Frozen,
    /// Every other request goes to an address that nothing listens on.
    Dead,
    /// Every other request goes to a server that accepts nothing, and whose backlog is full.
    Full,
    /// The server ends in the middle of the run, and another one takes its place.
    Restart,
}

const fn of(name: &'static str, sink: &'static [&'static str]) -> Behaviour {
    Behaviour { name, sink, llm: None, beside: Beside::Nothing, drips: false }
}

pub(super) const BEHAVIOURS: [Behaviour; 16] = [
    Behaviour {
        llm: Some(&["--ttft", "constant:2ms", "--gap", "constant:1ms"]),
        ..of("constant", &["--delay", "2ms"])
    },
    Behaviour {
        llm: Some(&["--ttft", "bimodal:1ms,60ms,0.25", "--gap", "constant:1ms"]),
        ..of("bimodal", &["--delay", "bimodal:1ms,60ms,0.25"])
    },
    of("503", &["--delay", "1ms", "--fail", "20%:503"]),
    of("429", &["--delay", "1ms", "--fail", "74%:429"]),
    Behaviour {
        llm: Some(&["--ttft", "constant:1ms", "--stall", "25%"]),
        ..of("silent", &["--delay", "1ms", "--drop", "25%"])
    },
    Behaviour {
        llm: Some(&["--ttft", "constant:1ms", "--stall", "45%"]),
        ..of("half silent", &["--delay", "1ms", "--drop", "45%"])
    },
    of("queue", &["--delay", "exponential:1ms", "--queue"]),
    Behaviour { llm: Some(&["--ttft", "constant:250ms"]), ..of("slow", &["--delay", "250ms"]) },
    Behaviour {
        llm: Some(&["--ttft", "constant:1ms", "--cut", "20%"]),
        ..of("resets", &["--delay", "1ms", "--reset", "20%"])
    },
    of("refusals", &["--delay", "1ms", "--refuse", "20%"]),
    Behaviour { beside: Beside::Thaw, ..of("thaw", &["--delay", "1ms", "--freeze", "500ms+200ms"]) },
    Behaviour { beside: Beside::Frozen, ..of("frozen", &["--delay", "1ms", "--freeze", "600ms+1h"]) },
    Behaviour {
        drips: true,
        ..of("drip", &["--delay", "1ms", "--body-size", "16", "--slow-data", "1B/1ms"])
    },
    Behaviour { beside: Beside::Dead, ..of("one dead", &["--delay", "1ms"]) },
    Behaviour { beside: Beside::Full, ..of("one full", &["--delay", "1ms"]) },
    Behaviour { beside: Beside::Restart, ..of("restart", &["--delay", "1ms"]) },
];

impl Behaviour {
    /// Flags of the server of a shape; none if it cannot behave like this.
    pub(super) fn flags(&self, shape: &Shape) -> Option<&'static [&'static str]> {
        let is_possible = match self.beside {
            Beside::Dead | Beside::Full => shape.takes_another(),
            Beside::Thaw => shape.is_stamped_singly(),
            Beside::Nothing | Beside::Frozen | Beside::Restart => true,
        };
        if !is_possible || self.drips && !shape.has_bodies() {
            return None;
        }
        match shape.kind {
            Kind::Sink => Some(self.sink),
            Kind::Llm => self.llm,
            // It takes no time for an operation that could be set, and has no faults of these.
            Kind::Cache => (self.name == "constant").then_some(&[]),
        }
    }
}

/// An address that takes no connection, as long as this lives.
#[derive(Debug)]
pub(super) struct Unreachable {
    pub(super) authority: String,
    _full: Option<(TcpListener, Vec<TcpStream>)>,
}

impl Unreachable {
    /// The address that a behaviour adds to that of the server.
    pub(super) fn beside(beside: Beside) -> Result<Option<Self>> {
        let is_full = match beside {
            Beside::Dead => false,
            Beside::Full => true,
            Beside::Nothing | Beside::Thaw | Beside::Frozen | Beside::Restart => return Ok(None),
        };
        let failed = |error| Failure::because("no address for a server that is none", error);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        let address: SocketAddr = listener.local_addr().map_err(failed)?;
        let full = is_full.then(|| {
            let connect = || TcpStream::connect_timeout(&address, UNANSWERED).ok();
            (listener, std::iter::from_fn(connect).collect())
        });
        Ok(Some(Self { authority: address.to_string(), _full: full }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::SHAPES;

    #[test]
    fn every_shape_has_a_behaviour_and_every_behaviour_a_shape() {
        for shape in &SHAPES {
            assert!(BEHAVIOURS.iter().any(|behaviour| behaviour.flags(shape).is_some()), "{}", shape.name);
        }
        for behaviour in &BEHAVIOURS {
            assert!(SHAPES.iter().any(|shape| behaviour.flags(shape).is_some()), "{}", behaviour.name);
        }
    }

    #[test]
    fn nothing_connects_to_what_is_unreachable() {
        assert!(Unreachable::beside(Beside::Restart).unwrap().is_none());
        for beside in [Beside::Dead, Beside::Full] {
            let other = Unreachable::beside(beside).unwrap().unwrap();
            let address = other.authority.parse().unwrap();
            assert!(TcpStream::connect_timeout(&address, UNANSWERED).is_err(), "{beside:?}");
        }
    }
}
