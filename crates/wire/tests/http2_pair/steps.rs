//! Steps that may happen between a client and a server.

use super::world::{Fate, World};

/// One thing that happens. Numbers are taken modulo the number of choices.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Submit { ask: usize, bytes: usize, capture: bool },
    Cancel(usize),
    ToServer(usize),
    ToClient(usize),
    Decide { which: usize, fate: Fate, slowly: bool },
    More { which: usize, bytes: usize },
    Ping,
    ServerLeaves,
    ClientLeaves,
}

impl Step {
    pub(crate) fn carry_out(self, world: &mut World) {
        match self {
            Self::Submit { ask, bytes, capture } => world.submit(ask, bytes, capture),
            Self::Cancel(which) => world.cancel(which),
            Self::ToServer(bytes) => world.deliver_to_server(bytes),
            Self::ToClient(bytes) => world.deliver_to_client(bytes),
            Self::Decide { which, fate, slowly } => world.decide(which, fate, slowly),
            Self::More { which, bytes } => world.more(which, bytes),
            Self::Ping => world.ping(),
            Self::ServerLeaves => world.server_goes_away(),
            Self::ClientLeaves => world.client_goes_away(),
        }
    }
}
