//! The limit of connections, and of streams on them.

use plimsoll_core::{Nanos, figure};

use super::attribution::{SLOW_FACTOR, SLOW_FLOOR};
use super::{Finding, Judge, LIMIT_SHARE, Reason, ReasonCode, p99_words, ratio};
use crate::course::answered;
use crate::{RunRecord, Standstill};

/// Connections beyond which more of them do not help: a target that needs this many stood still.
const MOST_CONNECTIONS: u64 = 10_000;
/// Standard deviations of the number of requests in flight that are kept free above its mean. Whatever the
/// distribution of service times, that number has the variance of its mean where nothing waits (M/G/∞), and
/// three deviations leave one arrival in a thousand without a place.
const RESERVE: f64 = 3.0;

/// Reason why due arrivals waited for a free connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blocking {
    /// Due arrivals did not wait, or hardly.
    None,
    /// There are too few connections for the rate at the mean service time.
    TooFew,
    /// On average there are enough; while the target was slow there were not.
    SlowMoments,
    /// There are enough for the target as it answers: requests that it has not answered, or not for once,
    /// hold them.
    Target,
    /// Even the slowest reply leaves enough of them free: the generator was late itself.
    Generator,
}

/// Number of requests that a load has to have in flight, by Little's law.
struct Demand {
    requests_per_second: f64,
    /// Rate of iterations, in words, if these have several requests.
    iterations: Option<String>,
    mean_ns: f64,
    /// Service time of the replies of slow moments.
    slow_ns: f64,
    /// At the mean service time.
    on_average: f64,
    /// While every reply is as slow as those.
    at_worst: f64,
}

impl Demand {
    /// In flight at nearly all times.
    fn with_reserve(&self) -> f64 {
        self.on_average + RESERVE * self.on_average.sqrt()
    }
}

/// Returns `true` if a finding is about the generator's processors.
const fn is_of_generator(code: ReasonCode) -> bool {
    matches!(code, ReasonCode::Stall | ReasonCode::CpuSaturation | ReasonCode::SigningLimited)
}

/// Returns `true` if a negotiated protocol is HTTP: `http/1.1`, `h2`.
fn is_http(protocol: &str) -> bool {
    protocol.starts_with("http/") || protocol == "h2" || protocol == "h2c"
}

impl Judge<'_> {
    /// Warns where addresses of the other family had to do.
    pub(super) fn address_family(&mut self) {
        let switches = self.record.connections.family_switches;
        if switches == 0 {
            return;
        }
        let of_several = |peer: &&crate::Peer| peer.addresses.len() > 1;
        let addresses: Vec<&str> = self
            .record
            .peers
            .iter()
            .filter(of_several)
            .flat_map(|peer| &peer.addresses)
            .map(|a| &**a)
            .collect();
        let evidence = format!(
            "no connection could be made to the addresses of one family, IPv4 or IPv6, and those of the \
             other were used ({}, over all threads; {})",
            match switches {
                1 => "once".to_owned(),
                _ => format!("{} times", figure::count(switches)),
            },
            addresses.join(", "),
        );
        let hint = "--ipv4 or --ipv6 uses one family alone";
        self.find(Finding::Doubtful, ReasonCode::AddressFamily, evidence, hint);
    }

    /// States the limit of connections, and of streams on them, if it was felt: as a reason if it did harm.
    ///
    /// If the generator kept responses waiting, that is stated instead. Call it after everything that is
    /// looked for in the generator.
    pub(super) fn connection_limit(&mut self, harmed: bool) {
        let finding = if harmed { Finding::Invalid } else { Finding::Doubtful };
        match self.blocking() {
            Blocking::None => {}
            // The measurement is none the worse, but a wait for a connection is in the response times alone.
            Blocking::Target => {
                let evidence = format!(
                    "the target held all {} connections for a while: arrivals waited {} for one, which is in \
                     the response times and not in the service times",
                    figure::count(self.record.connections.limit),
                    figure::nanos(self.blocked_per_worker()),
                );
                let hint = "leave -c out, and the load opens as many connections as it needs";
                self.find(Finding::Doubtful, ReasonCode::ConnectionLimit, evidence, hint);
            }
            Blocking::Generator => {
                // The cause in the generator is among the reasons already, or else only its lag shows.
                let known =
                    |reason: &Reason| reason.code == ReasonCode::StartLag || is_of_generator(reason.code);
                if harmed && !self.reasons.iter().any(known) {
                    let evidence = self.own_lag_words();
                    self.find(finding, ReasonCode::StartLag, evidence, "");
                }
            }
            Blocking::TooFew | Blocking::SlowMoments => {
                let (evidence, hint) = self.connection_limit_words();
                self.find(finding, ReasonCode::ConnectionLimit, evidence, hint);
            }
        }
    }

    /// Reason why due arrivals had to wait for a free connection, or stream.
    pub(super) fn blocking(&self) -> Blocking {
        if self.blocked_at_limit() <= LIMIT_SHARE && self.dropped_share() <= LIMIT_SHARE {
            return Blocking::None;
        }
        if self.is_held_by_target() {
            return Blocking::Target;
        }
        // Without times or a rate, only the limit is known, and it was reached.
        let Some(demand) = self.demand() else { return Blocking::TooFew };
        let places = self.places() as f64;
        if demand.with_reserve() > places {
            Blocking::TooFew
        } else if demand.at_worst > places {
            Blocking::SlowMoments
        } else if self.blocked_at_limit() <= LIMIT_SHARE {
            Blocking::None
        } else {
            Blocking::Generator
        }
    }

    /// Returns `true` if the connections suffice for the target as it usually answers, and arrivals waited
    /// because it did not answer some requests, or stood still once.
    fn is_held_by_target(&self) -> bool {
        let Some(target) = self.record.due_per_second() else { return false };
        let places = self.places() as f64;
        let suffice = |time_ns: f64| {
            let in_flight = target * self.record.requests_per_arrival() * time_ns / 1e9;
            in_flight + RESERVE * in_flight.sqrt() <= places
        };
        let service = &self.record.total.service_time;
        let answered = answered(self.record);
        let (mut left, mut answers_ns, mut waits_ns) = (answered, 0.0, 0.0);
        for bucket in service.buckets() {
            let value = (bucket.lowest as f64 + bucket.highest as f64) / 2.0;
            let of_answers = bucket.count.min(left);
            left -= of_answers;
            answers_ns += value * of_answers as f64;
            waits_ns += value * (bucket.count - of_answers) as f64;
        }
        let held = places * self.blocked_per_worker().0 as f64;
        let hangs = waits_ns >= held / 2.0 && (answered == 0 || suffice(answers_ns / answered as f64));
        let usual = service.percentile(50.0).unwrap_or(0);
        let stood_still = self.is_one_freeze() || self.is_silence();
        (service.count() > answered && hangs) || (stood_still && suffice(usual as f64))
    }

    /// Returns `true` if arrivals waited no longer for a connection than the target once stood still.
    pub(super) fn is_one_freeze(&self) -> bool {
        let service = &self.record.total.service_time;
        // Only if they hold most of the places, others have to wait.
        let rank = service.count().saturating_sub(self.places() / 2);
        let (Some(slow), Some(usual)) = (service.value_at(rank), service.percentile(50.0)) else {
            return false;
        };
        let longest = service.max().unwrap_or(slow);
        Nanos(slow) >= SLOW_FLOOR
            && slow >= usual.saturating_mul(SLOW_FACTOR)
            && self.blocked_per_worker().0 <= longest / 2 * 3
    }

    /// Returns `true` if arrivals waited no longer for a connection than the target gave no answer to the
    /// requests on most of them. Times do not show that where the requests were sent in the warm-up.
    fn is_silence(&self) -> bool {
        Standstill::longest(self.record).is_some_and(|silence| {
            let length = silence.until.since(silence.since);
            silence.in_flight >= self.places() / 2 && self.blocked_per_worker().0 <= length.0 / 2 * 3
        })
    }

    /// Time for which arrivals waited at the limit of connections, as a mean of the workers. Those that were
    /// dropped would have waited for the time between two arrivals.
    pub(super) fn blocked_per_worker(&self) -> Nanos {
        let workers = self.record.workers.len().max(1) as u64;
        let dropped = match self.record.due_per_second() {
            Some(target) if target > 0.0 => self.record.accounting.dropped as f64 / target,
            _ => 0.0,
        };
        Nanos(self.record.connections.blocked_at_limit.0 / workers) + Nanos::from_secs_f64(dropped)
    }

    /// Returns `true` if arrivals waited because there were too few connections, always or in slow moments.
    pub(super) fn lacks_connections(&self) -> bool {
        matches!(self.blocking(), Blocking::TooFew | Blocking::SlowMoments)
    }

    /// Returns `true` if the load would need more connections than anyone should open.
    pub(super) fn needs_too_many(&self) -> bool {
        let most = MOST_CONNECTIONS as f64 * self.depth() as f64;
        self.demand().is_some_and(|demand| demand.with_reserve() > most)
    }

    /// Describes the load that the limit of connections carries at most, and the remedy.
    pub(super) fn connection_limit_words(&self) -> (String, String) {
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
        let waited = match self.record.accounting.dropped {
            dropped if dropped == 0 || self.blocked_at_limit() > LIMIT_SHARE => format!(
                "due arrivals waited for a free {} during {} of the time",
                self.place(),
                figure::share(self.blocked_at_limit())
            ),
            dropped => {
                format!(
                    "{} arrivals were dropped because no {} was free",
                    figure::count(dropped),
                    self.place()
                )
            }
        };
        let Some(demand) = self.demand() else {
            return (
                format!("the limit of {connections} was reached; {waited}"),
                format!("use more connections (-c){more_streams} or a lower rate"),
            );
        };
        let mut asked = format!("{} asked for", figure::per_second(demand.requests_per_second));
        if let Some(iterations) = &demand.iterations {
            asked.push_str(&format!(" ({iterations})"));
        }
        let mean = figure::nanos_f64(demand.mean_ns);
        let places = self.places() as f64;
        let carried = places / (demand.mean_ns / 1e9);
        let in_flight = |count: f64| figure::count(count.ceil() as u64);
        let (evidence, needed) = if carried <= demand.requests_per_second {
            let carried = figure::per_second(carried);
            let words = format!(
                "{connections} with a mean service time of {mean} per reply carry at most {carried} of the {asked}"
            );
            (words, demand.with_reserve())
        } else if demand.with_reserve() > places {
            let busy = in_flight(demand.on_average);
            let words = format!(
                "at a mean service time of {mean} per reply the {asked} keep {busy} requests in flight on average, which leaves {connections} too little room for chance"
            );
            (words, demand.with_reserve())
        } else {
            let slow = figure::nanos_f64(demand.slow_ns);
            let words = format!(
                "replies took {slow} at times (on average {mean}), which at the {asked} is {} requests in flight on {connections}",
                in_flight(demand.at_worst)
            );
            (words, demand.at_worst)
        };
        let needed = (needed / depth as f64).ceil() as u64;
        let hint = if let Some(queue) = self.queue_words() {
            queue
        } else if needed > MOST_CONNECTIONS {
            format!(
                "look at the target in its slow moments: {} connections would be needed",
                figure::count(needed)
            )
        } else {
            format!("use -c {needed} or more{more_streams}, or a lower rate")
        };
        (format!("{evidence}; {waited}"), hint)
    }

    /// Describes the generator's own lag in a run whose connections were free in time.
    fn own_lag_words(&self) -> String {
        let slow = self.demand().map_or(0.0, |demand| demand.slow_ns);
        format!(
            "start lag {}: all connections were taken during {} of the time, though replies took {} at most, and \
             the generator read replies late",
            p99_words(&self.record.total.start_lag, "p99 is", "is at most"),
            figure::share(self.blocked_at_limit()),
            figure::nanos_f64(slow),
        )
    }

    /// Returns `true` if arrivals waited because a server took no connections, or allowed no streams on them.
    pub(super) fn is_not_let_in(&self) -> bool {
        self.is_barred() || self.blocked_unreached() > LIMIT_SHARE
    }

    /// Describes a server that took no connections, if requests waited for that.
    pub(super) fn unreached_words(&self) -> Option<(String, &'static str)> {
        let blocked = self.blocked_unreached();
        let accounting = &self.record.accounting;
        let evidence = match self.never_connected() {
            _ if blocked > LIMIT_SHARE => format!(
                "a target took no connections: due arrivals waited for one to it during {} of the time, and {} \
                 were never started",
                figure::share(blocked),
                figure::count(accounting.dropped + accounting.never_started - accounting.without_data),
            ),
            0 => return None,
            waiting => format!(
                "a target took no connections: {} requests waited for one to it to the end",
                figure::count(waiting)
            ),
        };
        Some((
            evidence,
            "look at the target: is it there, is its backlog full, does a firewall drop packets?",
        ))
    }

    /// Requests that still waited for the first connection of the run when it ended.
    pub(super) fn never_connected(&self) -> u64 {
        let RunRecord { connections, accounting, .. } = self.record;
        if connections.opened + connections.kept > 0 { 0 } else { accounting.undelivered }
    }

    /// Share of the workers' time for which arrivals waited for a first connection to a server.
    fn blocked_unreached(&self) -> f64 {
        self.share_of_wall(self.record.connections.blocked_unreached)
    }

    /// Returns `true` if arrivals waited because a server allowed no streams.
    pub(super) fn is_barred(&self) -> bool {
        self.blocked_while_barred() > LIMIT_SHARE
    }

    /// Describes a server that allowed no streams, if requests waited for that.
    pub(super) fn barred_words(&self) -> Option<(String, &'static str)> {
        let record = self.record;
        let barred = record.connections.http2.barred;
        let unanswered = record.total.timed_out + record.accounting.in_flight_at_stop;
        let share = ratio(unanswered, record.accounting.started).unwrap_or(1.0);
        let waited = match self.is_barred() {
            true => format!(
                "due arrivals waited for one during {} of the time",
                figure::share(self.blocked_while_barred())
            ),
            false if barred > 0 && record.model == crate::Model::Closed && share > LIMIT_SHARE => {
                format!("{} of the requests were not answered", figure::share(share))
            }
            false => return None,
        };
        let evidence = format!(
            "the target allows no streams (SETTINGS_MAX_CONCURRENT_STREAMS was 0 on {} of {} connections): \
             {waited}",
            figure::count(barred),
            figure::count(record.connections.http2.connections),
        );
        Some((evidence, "nothing can be asked of it over HTTP/2 meanwhile: the target's own log may say why"))
    }

    /// Share of the workers' time for which arrivals waited because a server allowed no streams.
    fn blocked_while_barred(&self) -> f64 {
        self.share_of_wall(self.record.connections.http2.blocked_while_barred)
    }

    /// Returns the number of requests that have to be in flight at once; `None` if no rate is asked for or
    /// nothing is known of the times.
    fn demand(&self) -> Option<Demand> {
        let (service, connections) = (&self.record.total.service_time, &self.record.connections);
        // With several servers, only the smallest limit of streams is known.
        if self.record.peers.len() > 1 && connections.http2.binding_limit().is_some() {
            return None;
        }
        let mean_ns = service.mean().filter(|mean| *mean > 0.0)?;
        // In a slow moment a slow reply holds every place: a single one does not count.
        let held = self.places() as f64 / 2.0;
        let slow = service.percentile(100.0 * (1.0 - (held / service.count() as f64).min(0.5)))?;
        let target = self.record.target_per_second?;
        // Each request of an iteration takes up its place for its own service time.
        let steps = self.record.requests_per_arrival();
        let iterations = (steps > 1.0).then(|| {
            let steps = (steps * 10.0).round() / 10.0;
            format!("{} of {steps} requests", figure::per_second_of("iterations", target))
        });
        let requests_per_second = target * steps;
        let due_per_second = self.record.due_per_second()? * steps;
        let by_little = |time_ns: f64| due_per_second * time_ns / 1e9;
        Some(Demand {
            requests_per_second,
            iterations,
            mean_ns,
            slow_ns: slow as f64,
            on_average: by_little(mean_ns),
            at_worst: by_little(slow as f64),
        })
    }

    /// Requests that can be in flight at once.
    fn places(&self) -> u64 {
        self.record.connections.limit * self.depth()
    }

    /// States in the closed model that a server allowed fewer streams than the plan asks for: then some users
    /// only waited for one.
    pub(super) fn stream_limit(&mut self) {
        let connections = &self.record.connections;
        let Some(allowed) = connections.http2.binding_limit() else { return };
        let (evidence, hint) = self.stream_limit_words(allowed);
        self.find(Finding::Doubtful, ReasonCode::ConnectionLimit, evidence, hint);
    }

    /// Returns evidence and hint in words, for a server that allowed fewer streams than the plan asks for.
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

    /// Share of the arrivals that were dropped because no connection was free. Where a server took none, or
    /// allowed no streams, it is not their number.
    fn dropped_share(&self) -> f64 {
        if self.record.connections.http2.barred > 0 || self.is_not_let_in() {
            return 0.0;
        }
        ratio(self.record.accounting.dropped, self.record.arrivals()).unwrap_or(0.0)
    }

    /// Share of the workers' time for which arrivals waited because of the limit of connections.
    pub(super) fn blocked_at_limit(&self) -> f64 {
        self.share_of_wall(self.record.connections.blocked_at_limit)
    }

    /// Share of the workers' time that a time of all of them is.
    fn share_of_wall(&self, time: Nanos) -> f64 {
        let wall: u64 = self.record.workers.iter().map(|worker| worker.wall.0).sum();
        ratio(time.0, wall).unwrap_or(0.0).min(1.0)
    }

    /// Warns of data that no request had asked for: times on such a connection may be those of the answer to
    /// another request.
    pub(super) fn unsolicited(&mut self) {
        let (opened, unsolicited) = (self.record.connections.opened, self.record.connections.unsolicited);
        if unsolicited == 0 {
            return;
        }
        let evidence = format!(
            "{} of {} connections had responses or bytes that nobody had asked for, and were given up: times \
             of requests on them may be those of others",
            figure::count(unsolicited),
            figure::count(opened.max(unsolicited)),
        );
        let hint = match self.speaks_http() {
            true => {
                "the target sends more than one response to a request, or more bytes than a response \
                 announces (`curl -v` shows it); one that ends idle connections with a 408 is harmless"
            }
            false => {
                "the target sends more than one reply to a request, or more bytes than a reply announces \
                 (`plimsoll try` shows it)"
            }
        };
        self.find(Finding::Doubtful, ReasonCode::UnsolicitedData, evidence, hint);
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

    /// Returns `true` unless a server of the run speaks another protocol than HTTP.
    pub(super) fn speaks_http(&self) -> bool {
        let is_other = |peer: &crate::Peer| !peer.protocol.is_empty() && !is_http(&peer.protocol);
        !self.record.peers.iter().any(is_other) && self.record.protocols.keys().all(|name| is_http(name))
    }

    /// Advice to make a single request, by a program that speaks the protocol.
    pub(super) fn one_request(&self) -> &'static str {
        match self.speaks_http() {
            true => "try one request with curl",
            false => "try one request by itself (`plimsoll try PLAN`)",
        }
    }

    pub(super) fn speaks_http2(&self) -> bool {
        self.record.connections.http2.connections > 0
    }

    /// Returns the name of the place that a request takes up while it is in flight.
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
