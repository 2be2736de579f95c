//! Opening connections: how many there are and may be, and when the next one is opened.

use plimsoll_core::{Nanos, Shard};
use plimsoll_driver::SocketOptions;
use plimsoll_metrics::ConnectionRecord;
use plimsoll_plan::{Load, Overload, Plan};
use plimsoll_wire::http2;

use crate::demand::Demand;
use crate::ramp::Ramp;
use crate::target_pool::TargetPool;

/// Connections that are opened in one pass for arrivals that find none, at some ten microseconds each: then
/// events that have arrived meanwhile get their turn, and may have made others free.
const OPENINGS_PER_PASS: u32 = 64;
/// Delay before an arrival that needs no further connection is examined again.
const HELD: Nanos = Nanos::from_millis(1);

/// Counts and limits of the connections of one worker, to all servers together.
///
/// [`begin`](Self::begin) precedes every connect call. A connection that the driver accepts is counted by
/// [`note_connecting`](Self::note_connecting), once more by [`note_open`](Self::note_open) when it is ready
/// for requests, and by [`note_released`](Self::note_released) at its end, so that `open` is the number of
/// slots in use and `connecting` that of those which are not ready yet.
#[derive(Debug)]
pub(super) struct Dialing {
    /// The pace at which the first connections are opened.
    pub(super) ramp: Ramp,
    /// Settings of new HTTP/2 connections.
    pub(super) http2: http2::ClientOptions,
    /// Open model whose connections grow: how many are needed.
    demand: Option<Demand>,
    /// Set while an arrival waits because no further connection is needed for it.
    held: bool,
    /// Connections that may still be opened for arrivals in this pass.
    openings: u32,
    /// Connections that are established or being established.
    open: u64,
    /// Limit of open connections.
    limit: u64,
    /// Connections that are being established.
    connecting: u32,
    /// Number of source addresses used so far.
    sources: usize,
    /// Start of the time for which an arrival has been due without finding a connection, and the reason.
    blocked: Option<(Nanos, Block)>,
}

/// Reason why an arrival that is due finds no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Block {
    /// The limit of connections is reached.
    AtLimit,
    /// The server allows no streams on those that there are.
    Barred,
    /// The server has taken none so far, or takes no further one.
    Unreached,
    /// Further connections are being opened, or not needed.
    Other,
}

impl Dialing {
    /// No connections so far, for these pools of a plan; `peak` is the highest rate of this worker's
    /// arrivals, per second.
    pub(super) fn new(plan: &Plan, shard: Shard, pools: &[TargetPool], peak: Option<f64>) -> Self {
        let settings = &plan.connections;
        Self {
            ramp: Ramp::new(settings.rate, shard, shard.share_of(u64::from(settings.initial))),
            http2: http2::ClientOptions { max_streams: settings.streams, ..plan.http2 },
            demand: match plan.load {
                Load::Open { overload: Overload::Grow, .. } => {
                    Some(Demand::new(plan, peak.unwrap_or_default()))
                }
                _ => None,
            },
            held: false,
            openings: u32::MAX,
            open: 0,
            limit: match plan.load {
                // Each user has a connection to every server that it is led to, and uses one of them. Closing
                // the others each time would measure handshakes that are no part of the load.
                Load::Closed => u64::MAX,
                Load::Open { .. } => pools.iter().map(|pool| u64::from(pool.max)).sum(),
            },
            connecting: 0,
            sources: shard.index as usize,
            blocked: None,
        }
    }

    /// Begins an attempt to connect: its options.
    #[inline]
    pub(super) fn begin(&mut self, plan: &Plan) -> SocketOptions {
        let sources = &plan.connections.sources;
        let source = (!sources.is_empty()).then(|| {
            self.sources += 1;
            sources[(self.sources - 1) % sources.len()]
        });
        self.ramp.note_opened();
        self.openings = self.openings.saturating_sub(1);
        SocketOptions { source, ..SocketOptions::default() }
    }

    /// Counts a connection that is being established.
    #[inline]
    pub(super) const fn note_connecting(&mut self) {
        self.open += 1;
        self.connecting += 1;
    }

    /// Notes that a connection is ready for requests.
    #[inline]
    pub(super) const fn note_open(&mut self) {
        self.connecting -= 1;
    }

    /// Counts out a connection that was or was not `ready` for requests.
    #[inline]
    pub(super) fn note_released(&mut self, ready: bool) {
        self.connecting -= u32::from(!ready);
        self.open -= 1;
    }

    /// Connections that are established or being established.
    #[inline]
    pub(super) const fn open(&self) -> u64 {
        self.open
    }

    /// Connections that are being established.
    #[inline]
    pub(super) const fn connecting(&self) -> u32 {
        self.connecting
    }

    /// Limit of open connections.
    #[inline]
    pub(super) const fn limit(&self) -> u64 {
        self.limit
    }

    /// Returns `true` if there are as many connections as there may be.
    #[inline]
    pub(super) const fn is_full(&self) -> bool {
        self.open >= self.limit
    }

    /// Begins to open connections for the arrivals of a pass.
    #[inline]
    pub(super) const fn begin_arrivals(&mut self) {
        self.held = false;
        self.openings = OPENINGS_PER_PASS;
    }

    /// Returns `true` if a connection of this pool is needed, though it may be opened; else the arrival that
    /// asks waits.
    #[inline]
    pub(super) fn needs(&mut self, pool: &TargetPool, now: Nanos) -> bool {
        let Some(demand) = &self.demand else { return true };
        let TargetPool { open, initial, depth, .. } = *pool;
        // Uses the time of this pass: opening connections takes time, too, in which no events are handled.
        let needed = open < initial || (self.openings > 0 && demand.warrants(open, depth, now));
        self.held |= !needed;
        needed
    }

    /// Returns `true` if an arrival of this pass waits, and it is time to count the slow requests.
    #[inline]
    pub(super) fn is_count_due(&self, now: Nanos) -> bool {
        self.openings > 0 && self.demand.as_ref().is_some_and(|demand| demand.is_count_due(now))
    }

    /// When an arrival that waits, because no connection is needed for it, is examined again: a target that
    /// has fallen silent needs more from moment to moment.
    #[inline]
    pub(super) fn next_look(&self, now: Nanos) -> Nanos {
        if self.held { now + HELD } else { Nanos::MAX }
    }

    /// Returns `true` if connections grow with need.
    #[inline]
    pub(super) const fn grows(&self) -> bool {
        self.demand.is_some()
    }

    /// The number of connections that are needed, where it varies.
    #[inline]
    pub(super) const fn demand(&self) -> Option<&Demand> {
        self.demand.as_ref()
    }

    /// The number of connections that are needed, where it varies, for updates.
    #[inline]
    pub(super) const fn demand_mut(&mut self) -> Option<&mut Demand> {
        self.demand.as_mut()
    }

    /// Notes whether an arrival is due that finds no connection, and the reason.
    #[inline]
    pub(super) fn note_blocked(&mut self, block: Option<Block>, now: Nanos) {
        self.blocked = block.map(|block| (now, block));
    }

    /// Since when an arrival has been due without finding a connection, if there is one.
    #[inline]
    pub(super) fn blocked_since(&self) -> Option<Nanos> {
        self.blocked.map(|(since, _)| since)
    }

    /// Adds the time for which arrivals have been blocked, from `begin` on, to the figures.
    #[inline]
    pub(super) fn add_blocked(&self, connections: &mut ConnectionRecord, begin: Nanos, now: Nanos) {
        let Some((since, block)) = self.blocked else { return };
        let length = now.since(since.max(begin));
        connections.blocked += length;
        match block {
            Block::AtLimit => connections.blocked_at_limit += length,
            Block::Barred => connections.http2.blocked_while_barred += length,
            Block::Unreached => connections.blocked_unreached += length,
            Block::Other => {}
        }
    }
}
