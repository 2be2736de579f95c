//! Routing: requests that go to another server than their step's target, because their URL or a redirect says
//! so. It may be one that the plan does not name: then it gets a lane of its own.

use std::sync::Arc;

use plimsoll_core::{ErrorClass, Nanos};
use plimsoll_driver::Backend;
use plimsoll_metrics::Peer;
use plimsoll_plan::{Elsewhere, Newcomer};
use plimsoll_scenario::reference::{self, Origin};

use super::Worker;
use crate::capture::Detour;
use crate::directory::{Answer, Found};
use crate::lane::{Lane, Whereabouts};
use crate::request::InFlight;

/// How often the directory is asked for servers that are being looked for: a request to one starts so much
/// late at most.
pub(super) const ASK_INTERVAL: Nanos = Nanos::from_millis(1);
/// A server that was not found is looked for again by the first request after this time.
const LOST_FOR: Nanos = Nanos::from_secs(1);
/// Ways to write the authorities of known servers that are remembered. What is beyond is read each time.
const SPELLINGS: usize = 256;

/// Why a request cannot go where it is sent.
pub(super) struct NoWay {
    pub(super) class: ErrorClass,
    pub(super) reason: String,
}

impl<B: Backend> Worker<'_, B> {
    /// The lane of a request that is to be started: that of its step, `home`, unless its URL names another
    /// server.
    pub(super) fn lane_by_url(&mut self, request: &mut InFlight, home: u32) -> Result<u32, NoWay> {
        let plan = self.plan;
        let step = &plan.steps[request.step as usize];
        let (Some(away), Some(variable)) = (&step.away, step.request.leading_variable()) else {
            return Ok(home);
        };
        let Some(value) = self.sessions.variables(request.session).get(usize::from(variable)) else {
            return Ok(home);
        };
        let Some((origin, _)) = reference::origin(value) else { return Ok(home) };
        let template = if origin.https { &away.secure } else { &away.plain };
        let lane = match self.known_lane(origin) {
            Some(lane) => lane,
            None => {
                let (https, authority) = (origin.https, origin.authority.to_vec());
                self.new_lane(Origin { https, authority: &authority })?
            }
        };
        if lane != home {
            self.captures.send_by(&mut request.capture, Detour::Template(Arc::clone(template)));
        }
        Ok(lane)
    }

    /// The lane of the server of a URL; a new one, if there is none yet.
    pub(super) fn lane_to(&mut self, origin: Origin<'_>) -> Result<u32, NoWay> {
        match self.known_lane(origin) {
            Some(lane) => Ok(lane),
            None => self.new_lane(origin),
        }
    }

    /// The lane of a server whose authority was written like this before.
    fn known_lane(&self, origin: Origin<'_>) -> Option<u32> {
        let lane = self.lanes.iter().position(|lane| lane.is_called(origin)).map(|lane| lane as u32);
        lane.or_else(|| {
            let same = |(https, authority, _): &&(bool, Vec<u8>, u32)| {
                *https == origin.https && authority == origin.authority
            };
            self.spellings.iter().find(same).map(|(_, _, lane)| *lane)
        })
    }

    #[cold]
    fn new_lane(&mut self, origin: Origin<'_>) -> Result<u32, NoWay> {
        let no_way = |class, reason: String| NoWay { class, reason };
        let newcomer = Newcomer::read(origin.https, origin.authority)
            .map_err(|reason| no_way(ErrorClass::Resolve, reason))?;
        let known = self.lanes.iter().position(|lane| lane.is(&newcomer));
        if let Some(lane) = known {
            self.remember_spelling(origin, lane as u32);
            return Ok(lane as u32);
        }
        let Some(elsewhere) = self.directory.elsewhere() else {
            let reason = format!("`{}` is no target of the plan", newcomer.authority());
            return Err(no_way(ErrorClass::Resolve, reason));
        };
        let outline = elsewhere.outline(&newcomer);
        let answer = self.directory.ask(&newcomer, false);
        if matches!(answer, Answer::Full) {
            let most = Elsewhere::MOST;
            let reason =
                format!("`{}` is one server more than the {most} that may come up", newcomer.authority());
            return Err(no_way(ErrorClass::TooManyServers, reason));
        }
        self.lanes.push(Lane::elsewhere(self.plan, outline, newcomer));
        let lane = (self.lanes.len() - 1) as u32;
        self.take_answer(lane, answer);
        Ok(lane)
    }

    fn remember_spelling(&mut self, origin: Origin<'_>, lane: u32) {
        if self.spellings.len() < SPELLINGS {
            self.spellings.push((origin.https, origin.authority.to_vec(), lane));
        }
    }

    /// Starts a request, which was counted before, on a lane that may be one of a server that the plan does
    /// not name: if that was not found, it fails.
    pub(super) fn seat_elsewhere(&mut self, lane: u32, request: &mut InFlight, ready: Nanos, now: Nanos) {
        if let Whereabouts::Lost { until, reason } = &self.lanes[lane as usize].whereabouts {
            if now < *until {
                let reason = Arc::clone(reason);
                self.fail_unrouted(lane, request, ErrorClass::Resolve, &reason);
                return;
            }
            self.ask_for(lane, true);
            if let Whereabouts::Lost { reason, .. } = &self.lanes[lane as usize].whereabouts {
                let reason = Arc::clone(reason);
                self.fail_unrouted(lane, request, ErrorClass::Resolve, &reason);
                return;
            }
        }
        self.seat(lane, None, request, ready, now);
    }

    /// A request that cannot go anywhere.
    pub(super) fn fail_unrouted(&mut self, lane: u32, request: &InFlight, class: ErrorClass, reason: &str) {
        self.note_error(class, reason);
        self.fail(lane, request, class, 0, self.now);
    }

    /// Asks for the servers that are being looked for.
    #[cold]
    pub(super) fn ask_directory(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        for lane in 0..self.lanes.len() as u32 {
            if matches!(self.lanes[lane as usize].whereabouts, Whereabouts::Asked) {
                self.ask_for(lane, false);
            }
        }
    }

    fn ask_for(&mut self, lane: u32, again: bool) {
        let Some(newcomer) = &self.lanes[lane as usize].newcomer else { return };
        let answer = self.directory.ask(newcomer, again);
        self.take_answer(lane, answer);
    }

    /// What the directory says of the server of this lane.
    fn take_answer(&mut self, lane: u32, answer: Answer) {
        let state = &mut self.lanes[lane as usize];
        match answer {
            Answer::Found(found) => self.settle_lane(lane, &found),
            Answer::Pending => state.whereabouts = Whereabouts::Asked,
            Answer::Lost(reason) => {
                let until = self.now + LOST_FOR;
                state.whereabouts = Whereabouts::Lost { until, reason: Arc::clone(&reason) };
                let waiting = std::mem::take(&mut state.waiting);
                for (_, request) in waiting {
                    self.fail_unrouted(lane, &request, ErrorClass::Resolve, &reason);
                }
            }
            // It has an entry already, so that there is room for it.
            Answer::Full => {}
        }
        let asked = |lane: &&Lane| matches!(lane.whereabouts, Whereabouts::Asked);
        self.asked = self.lanes.iter().filter(asked).count() as u32;
    }

    /// The server is found: connections to it may be opened.
    fn settle_lane(&mut self, lane: u32, found: &Found) {
        let most = self.shard.share_of(u64::from(self.plan.connections.max)) as u32;
        let peer = self.peers.len();
        let lane = &mut self.lanes[lane as usize];
        let origin = lane.newcomer.as_ref().map(Newcomer::origin).unwrap_or_default();
        lane.settle(found, peer, most.max(1), self.shard.index);
        self.peers.push(Peer {
            authority: found.target.authority.clone(),
            origin,
            addresses: found.sites.iter().map(|site| site.endpoint.to_string()).collect(),
            ..Peer::default()
        });
    }
}
