//! The cases that can be measured: each a variant, with a file of its own.

mod attack;
mod cache;
mod canister;
mod closed;
mod crud;
mod http2;
mod ingest;
mod memory;
mod observers;
mod rate;
mod resource;
mod scenario;
mod scripts;
mod shapes;
mod streams;
mod truth;

use clap::ValueEnum;

use crate::failure::Result;
use crate::report::Section;
use crate::session::Session;

/// A case that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Case {
    /// Closed keep-alive GET against the sink
    H1,
    /// Closed keep-alive GET against a server that needs 20 µs of CPU per request
    Slow,
    /// Closed keep-alive GET against nginx
    Nginx,
    /// POST with a unique body of 300 bytes per request
    Post,
    /// GET over TLS 1.3, against the sink and against nginx
    Tls,
    /// The open model: two pacings against h2load at five rates, and the start lag of --precise
    Rate,
    /// Memory of 10,000 idle connections, and growth over time
    Memory,
    /// HTTP/2 without TLS, GET, against the sink, nghttpd and nginx
    H2,
    /// HTTP/2 over TLS 1.3, GET, against the sink
    H2tls,
    /// Create, update and delete resources over HTTP/2, with replies that never come and failures
    Crud,
    /// Memory of 1,000 HTTP/2 connections with 100 streams each
    H2memory,
    /// Cost of steps with variables, an extraction and a check above a static request, with and without Lua
    Scenario,
    /// wrk's scripts, in Plimsoll and in wrk
    Scripts,
    /// PUT and GET of the cache protocol, beside SET and GET by redis-benchmark
    Cache,
    /// Batches of observability data: made, sent, and at the rates of Arc's guide
    Ingest,
    /// Cost of creating, changing and deleting the items of a REST resource above plain requests
    Resource,
    /// Queries of a canister that were signed before the run, beside plain requests
    Canister,
    /// Cost of every output turned on above none
    Observers,
    /// Hostile servers against Plimsoll on both backends, and damaged requests against its servers
    Attack,
    /// Figures of runs beside the server's own log, over shapes of connections, behaviours and loads
    Truth,
    /// Our own share in the times of each shape of connections: the open model beside the closed one
    Shapes,
    /// All of these but attack, truth and shapes
    All,
}

impl Case {
    /// The cases that are asked for, each once, in the order of their definition.
    pub(crate) fn expand(asked: &[Self]) -> Vec<Self> {
        let single = Self::value_variants().iter().filter(|case| **case != Self::All);
        let all = |case: &Self| {
            asked.contains(&Self::All) && !matches!(case, Self::Attack | Self::Truth | Self::Shapes)
        };
        single.copied().filter(|case| asked.contains(case) || all(case)).collect()
    }

    /// Carries the case out.
    pub(crate) fn measure(self, session: &Session) -> Result<Vec<Section>> {
        match self {
            Self::Attack => attack::measure(session),
            Self::Truth => truth::measure(session),
            Self::Shapes => shapes::measure(session),
            Self::Rate => rate::measure(session),
            Self::Cache => cache::measure(session),
            Self::Resource => resource::measure(session),
            Self::Canister => canister::measure(session),
            Self::Ingest => ingest::measure(session),
            Self::Observers => observers::measure(session),
            Self::Memory => memory::measure(session),
            Self::H2 | Self::H2tls => http2::measure(session, self),
            Self::Crud => crud::measure(session),
            Self::H2memory => streams::measure(session),
            Self::Scenario => scenario::measure(session),
            Self::Scripts => scripts::measure(session),
            Self::H1 | Self::Slow | Self::Nginx | Self::Post | Self::Tls | Self::All => {
                closed::measure(session, self)
            }
        }
    }
}
