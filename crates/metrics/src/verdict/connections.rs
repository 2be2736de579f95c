//! The limit of connections, and of streams on them.

use plimsoll_core::Nanos;

use super::{Finding, Judge, LIMIT_SHARE, ReasonCode, ratio};
use crate::figure;

impl Judge<'_> {
    /// States the limit of connections, and of streams on them, if it was felt: as a reason if it did harm.
    pub(super) fn connection_limit(&mut self, harmed: bool) {
        if self.blocked_at_limit() <= LIMIT_SHARE {
            return;
        }
        let (evidence, hint) = self.connection_limit_words();
        let finding = if harmed { Finding::Invalid } else { Finding::Doubtful };
        self.find(finding, ReasonCode::ConnectionLimit, evidence, hint);
    }

    /// What the limit of connections carries at most, and what would be needed.
    pub(super) fn connection_limit_words(&self) -> (String, String) {
        let blocked = self.blocked_at_limit();
        let (limit, depth) = (self.record.connections.limit, self.depth());
        let mut connections = format!("{} connections", figure::count(limit));
        let mut more_streams = "";
        if self.speaks_http2() {
            let streams = if depth == 1 { "stream" } else { "streams" };
            connections.push_str(&format!(" of {} {streams} each", figure::count(depth)));
            let http2 = &self.record.connections.http2;
            match http2.binding_limit() {
                Some(allowed) => connections.push_str(&format!(
                    " (the server allows {} on each, {} were asked for)",
                    figure::count(allowed.into()),
                    figure::count(http2.streams_asked.into()),
                )),
                None => more_streams = ", more streams on each (-m)",
            }
        }
        let waited = format!(
            "due arrivals waited for a free {} during {} of the time",
            self.place(),
            figure::share(blocked)
        );
        let mean_service = self.record.total.service_time.mean();
        let target = self.record.target_per_second;
        match (mean_service, target) {
            (Some(mean), Some(target)) if mean > 0.0 => {
                // Each request of an iteration takes up its place for its own service time.
                let steps = self.record.requests_per_iteration();
                let requests = target * steps;
                let carried = (limit * depth) as f64 / (mean / 1e9);
                let needed = (requests * mean / 1e9 / depth as f64).ceil() as u64;
                let mut asked = format!("{} asked for", figure::per_second(requests));
                if steps > 1.0 {
                    let iterations = figure::per_second_of("iterations", target);
                    let steps = (steps * 10.0).round() / 10.0;
                    asked.push_str(&format!(" ({iterations} of {steps} requests)"));
                }
                let evidence = format!(
                    "{connections} with a mean service time of {} per reply carry at most {} of the {asked}; {waited}",
                    figure::nanos_f64(mean),
                    figure::per_second(carried),
                );
                // With slots for the mean, the target's slow moments need more than the mean.
                let needed = needed.max(limit + 1);
                (evidence, format!("use -c {needed} or more{more_streams}, or a lower rate"))
            }
            _ => (
                format!("the limit of {connections} was reached; {waited}"),
                format!("use more connections (-c){more_streams} or a lower rate"),
            ),
        }
    }

    /// States in the closed model that a server allowed fewer streams than the plan asks for: then some users
    /// only waited for one.
    pub(super) fn stream_limit(&mut self) {
        let connections = &self.record.connections;
        let Some(allowed) = connections.http2.binding_limit() else { return };
        let (evidence, hint) = self.stream_limit_words(allowed);
        self.find(Finding::Doubtful, ReasonCode::ConnectionLimit, evidence, hint);
    }

    /// The same in words.
    pub(super) fn stream_limit_words(&self, allowed: u32) -> (String, String) {
        let connections = &self.record.connections;
        let server = if self.record.peers.len() > 1 { "a server" } else { "the server" };
        let evidence = format!(
            "{server} allows {} on each connection, {} were asked for: fewer requests were in flight than asked for",
            match allowed {
                1 => "1 stream".to_owned(),
                _ => format!("{} streams", figure::count(allowed.into())),
            },
            figure::count(connections.http2.streams_asked.into()),
        );
        let hint = "use more connections (-c), with no more streams on each (-m) than are allowed";
        (evidence, hint.to_owned())
    }

    /// Share of the workers' time for which arrivals waited because of the limit of connections.
    pub(super) fn blocked_at_limit(&self) -> f64 {
        let wall: u64 = self.record.workers.iter().map(|worker| worker.wall.0).sum();
        ratio(self.record.connections.blocked_at_limit.0, wall).unwrap_or(0.0).min(1.0)
    }

    /// The end of a sentence, if arrivals had to wait for connections.
    pub(super) fn waited(&self) -> String {
        match self.record.connections.blocked {
            Nanos::ZERO => String::new(),
            blocked => {
                format!("; arrivals waited {} in all for a free {}", figure::nanos(blocked), self.place())
            }
        }
    }

    pub(super) fn speaks_http2(&self) -> bool {
        self.record.connections.http2.connections > 0
    }

    /// What a request takes up while it is in flight.
    pub(super) fn place(&self) -> &'static str {
        if self.speaks_http2() { "stream" } else { "connection" }
    }

    /// Requests that one connection carries at once, as its server allows. Of several targets only the
    /// smallest limit is known, which need not hold for the others.
    pub(super) fn depth(&self) -> u64 {
        let connections = &self.record.connections;
        let asked = connections.depth.max(1);
        let allowed = connections.http2.stream_limit.filter(|_| self.record.peers.len() <= 1);
        u64::from(allowed.map_or(asked, |allowed| allowed.clamp(1, asked)))
    }
}
