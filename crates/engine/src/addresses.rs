//! The addresses of a target: the choice for the next connection, and the handling of lost servers.

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::Endpoint;
use plimsoll_plan::Target;
use plimsoll_system::resolve::Family;
use plimsoll_wire::tunnel::TunnelRequest;

/// Interval at which a connection to a lost server of a pool is attempted again.
const PROBE_INTERVAL: Nanos = Nanos::from_secs(1);

/// One address of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetAddress {
    /// The address to connect to: that of the proxy, if there is one.
    pub endpoint: Endpoint,
    /// The tunnel that the proxy is asked for, once it is connected to.
    pub tunnel: Option<Arc<TunnelRequest>>,
    /// Which member of the target's [pool](Target::pool) it belongs to; 0 without a pool.
    pub member: u16,
}

impl From<Endpoint> for TargetAddress {
    /// The address of a target without a pool.
    fn from(endpoint: Endpoint) -> Self {
        Self { endpoint, tunnel: None, member: 0 }
    }
}

impl TargetAddress {
    /// The IP version of the address; `None` for a unix socket.
    pub(crate) fn family(&self) -> Option<Family> {
        match &self.endpoint {
            Endpoint::Tcp(address) if address.is_ipv6() => Some(Family::V6),
            Endpoint::Tcp(_) => Some(Family::V4),
            Endpoint::Unix(_) => None,
        }
    }
}

/// The addresses of one target as one worker uses them.
///
/// Without a pool, those of one family are taken in turn: IPv4 or IPv6, that of the first. They go on being
/// taken if some of them are dead, for then a part of the target is. Once none of them takes connections, the
/// addresses of the other family are used (in the spirit of RFC 8305): most names have both, and many servers
/// and machines only one.
///
/// In a pool, a connection goes to the member that has the fewest, of those that are not lost; a member is
/// lost when a connection to it could not be made.
#[derive(Debug)]
pub(crate) struct TargetAddresses {
    places: Vec<Place>,
    cursor: usize,
    pool: Option<Pool>,
    families: Option<Families>,
}

/// One address in use. Its number stays, whatever becomes of the others: connections are known by it.
#[derive(Debug)]
struct Place {
    address: TargetAddress,
    /// Connections to it.
    open: u32,
    /// Set once no connection could be made to it, until one is.
    lost: bool,
    /// When to probe it again; [`Nanos::MAX`] if there is no doubt that it is reachable.
    ask: Nanos,
    /// Set while its name does not lead to it any more: it gets no new connections.
    gone: bool,
}

impl Place {
    const fn new(address: TargetAddress) -> Self {
        Self { address, open: 0, lost: false, ask: Nanos::MAX, gone: false }
    }

    /// Returns `true` if it is of this family and its name leads to it.
    fn is_of(&self, family: Family) -> bool {
        !self.gone && self.address.family() == Some(family)
    }
}

/// The choice between the addresses of two families.
#[derive(Debug)]
struct Families {
    /// The family in use.
    used: Family,
    /// Set when the family in use has changed, until that is taken note of.
    switched: bool,
}

impl Families {
    /// None, if the addresses are all of one family.
    fn of(places: &[Place]) -> Option<Self> {
        let used = places.iter().find(|place| !place.gone)?.address.family()?;
        let both = places.iter().any(|place| !place.gone && place.address.family() != Some(used));
        both.then_some(Self { used, switched: false })
    }

    /// Returns `true` if no address of a family takes connections.
    fn is_dead(places: &[Place], family: Family) -> bool {
        places.iter().filter(|place| place.is_of(family)).all(|place| place.lost)
    }

    /// Notes that no connection could be made to an address of this family. Returns `true` if its requests
    /// may go to one of the other family.
    fn lose(&mut self, places: &[Place], family: Family) -> bool {
        if family != self.used {
            // The attempt was made before the change.
            return !Self::is_dead(places, self.used);
        }
        if !Self::is_dead(places, family) {
            return false;
        }
        // Where both are dead, they are tried in turn.
        self.used = if family == Family::V4 { Family::V6 } else { Family::V4 };
        let elsewhere = !Self::is_dead(places, self.used);
        self.switched |= elsewhere;
        elsewhere
    }
}

#[derive(Clone, Copy, Debug)]
struct Pool {
    fail_over: bool,
    fail_back: bool,
}

impl TargetAddresses {
    /// Workers begin with different addresses, so that all addresses are used from the start.
    pub(crate) fn new(target: &Target, all: &[TargetAddress], worker: u32) -> Self {
        let Target { fail_over, fail_back, .. } = *target;
        let pool = (target.pool.len() > 1).then_some(Pool { fail_over, fail_back });
        let places: Vec<Place> = all.iter().cloned().map(Place::new).collect();
        let families = if target.pool.is_empty() { Families::of(&places) } else { None };
        Self { places, cursor: worker as usize, pool, families }
    }

    /// Takes the addresses to which the names of the target lead now. Connections to those that are gone
    /// stay; new ones go to the others. `latest` is not empty.
    pub(crate) fn replace(&mut self, target: &Target, latest: &[TargetAddress]) {
        for place in &mut self.places {
            place.gone = !latest.contains(&place.address);
            if place.gone {
                place.ask = Nanos::MAX;
            }
        }
        for address in latest {
            if self.places.iter().any(|place| place.address == *address) {
                continue;
            }
            let new = Place::new(address.clone());
            match self.places.iter_mut().find(|place| place.gone && place.open == 0) {
                Some(place) => *place = new,
                None => self.places.push(new),
            }
        }
        if target.pool.is_empty() {
            let used = self.families.as_ref().map(|families| families.used);
            self.families = Families::of(&self.places);
            if let (Some(families), Some(used)) = (&mut self.families, used) {
                families.used = used;
            }
        }
    }

    /// The addresses in use, and those of the other family.
    pub(crate) fn by_use(&self) -> (Vec<String>, Vec<String>) {
        let live = self.places.iter().filter(|place| !place.gone);
        let (used, unused): (Vec<_>, Vec<_>) = live.partition(|place| self.is_used(place));
        let shown = |places: Vec<&Place>| {
            places.into_iter().map(|place| place.address.endpoint.to_string()).collect()
        };
        (shown(used), shown(unused))
    }

    /// Returns `true` if new connections may go to a place.
    fn is_used(&self, place: &Place) -> bool {
        match &self.families {
            Some(families) => place.is_of(families.used),
            None => !place.gone,
        }
    }

    /// Returns `true` if there are addresses of both families, of which one is used.
    pub(crate) const fn has_families(&self) -> bool {
        self.families.is_some()
    }

    /// Returns `true` once after each change of the family in use.
    pub(crate) fn take_switch(&mut self) -> bool {
        self.families.as_mut().is_some_and(|families| std::mem::take(&mut families.switched))
    }

    /// Returns `true` if members of the pool have fewer connections than others: their part of the requests
    /// would be smaller. One that is in doubt is left alone until its probe.
    pub(crate) fn is_uneven(&self) -> bool {
        // Without failover a member that takes no connection would be tried with each request.
        if !self.pool.is_some_and(|pool| pool.fail_over) {
            return false;
        }
        let is_sound = |place: &&Place| !place.gone && !place.lost && place.ask == Nanos::MAX;
        let mut open = self.places.iter().filter(is_sound).map(|place| place.open);
        let Some(first) = open.next() else { return false };
        open.any(|other| other != first)
    }

    /// The site for the next connection, which is opened to it.
    pub(crate) fn take(&mut self) -> (u32, Endpoint) {
        let count = self.places.len();
        let turn = self.cursor;
        self.cursor += 1;
        let numbered = || (0..count).filter(|&number| self.is_used(&self.places[number]));
        let number = match self.pool {
            None => {
                let used = numbered().count().max(1);
                numbered().nth(turn % used)
            }
            Some(_) => {
                let in_turn = (0..count).map(|offset| (turn + offset) % count);
                let live = in_turn.filter(|&number| !self.places[number].gone);
                // Addresses that are not lost come first, for they are never tried again; then the one that
                // was lost first.
                live.min_by_key(|&number| {
                    let Place { lost, ask, open, .. } = self.places[number];
                    (lost, if lost { ask.0 } else { 0 }, open)
                })
            }
        };
        self.take_at(number.unwrap_or(0) as u32)
    }

    /// Takes this site for the next connection, which is opened to it.
    pub(crate) fn take_at(&mut self, target_address: u32) -> (u32, Endpoint) {
        let place = &mut self.places[target_address as usize];
        place.open += 1;
        (target_address, place.address.endpoint.clone())
    }

    /// Returns `true` if the name leads to the site, and nothing speaks against a connection to it.
    pub(crate) fn is_sound(&self, target_address: u32) -> bool {
        let Place { gone, lost, .. } = self.places[target_address as usize];
        !gone && !lost
    }

    /// The address of the site.
    pub(crate) fn endpoint(&self, target_address: u32) -> &Endpoint {
        &self.places[target_address as usize].address.endpoint
    }

    /// The tunnel that a connection to the site needs.
    pub(crate) fn tunnel(&self, target_address: u32) -> Option<&Arc<TunnelRequest>> {
        self.places[target_address as usize].address.tunnel.as_ref()
    }

    /// A connection to the site has ended.
    pub(crate) fn release(&mut self, target_address: u32) {
        self.places[target_address as usize].open -= 1;
    }

    /// The member of the pool that a site belongs to.
    pub(crate) fn member(&self, target_address: u32) -> usize {
        usize::from(self.places[target_address as usize].address.member)
    }

    /// Notes that an open connection to the site has ended. If it was the last one, its server may be gone:
    /// that would go unnoticed while the other members carry the load, and no connection would go back to it.
    /// The address is therefore probed later.
    pub(crate) fn miss(&mut self, target_address: u32, now: Nanos) {
        if !self.pool.is_some_and(|pool| pool.fail_over && pool.fail_back) {
            return;
        }
        let place = &mut self.places[target_address as usize];
        if place.open == 0 && !place.lost && !place.gone {
            place.ask = now + PROBE_INTERVAL;
        }
    }

    /// Notes that a connection to the site could not be made. Returns `true` if its requests may go to
    /// another site.
    pub(crate) fn lose(&mut self, target_address: u32, now: Nanos) -> bool {
        let place = &mut self.places[target_address as usize];
        if let Some(families) = &mut self.families {
            place.lost = true;
            let family = place.address.family();
            return family.is_some_and(|family| families.lose(&self.places, family));
        }
        if !self.pool.is_some_and(|pool| pool.fail_over) {
            return false;
        }
        place.lost = true;
        if !place.gone {
            place.ask = now + PROBE_INTERVAL;
        }
        self.places.iter().any(|place| !place.gone && !place.lost)
    }

    /// Notes that a connection to the site was made. Returns `true` if the site had been lost or missed.
    pub(crate) fn find(&mut self, target_address: u32) -> bool {
        let place = &mut self.places[target_address as usize];
        place.lost = false;
        std::mem::replace(&mut place.ask, Nanos::MAX) != Nanos::MAX
    }

    /// Time of the next probe of a site; [`Nanos::MAX`] if none is in doubt.
    pub(crate) fn next_probe(&self) -> Nanos {
        match self.pool {
            Some(pool) if pool.fail_back => {
                self.places.iter().map(|place| place.ask).min().unwrap_or(Nanos::MAX)
            }
            _ => Nanos::MAX,
        }
    }

    /// Returns a site whose probe is due, and schedules its next one.
    pub(crate) fn probe(&mut self, now: Nanos) -> Option<u32> {
        self.pool.filter(|pool| pool.fail_back)?;
        let number = self.places.iter().position(|place| place.ask <= now)?;
        self.places[number].ask = now + PROBE_INTERVAL;
        Some(number as u32)
    }

    /// Returns the number of the site's connections above an even share of all. They are to be closed, so
    /// that a server that is back gets its part.
    pub(crate) fn excess(&self, target_address: u32) -> u32 {
        if self.pool.is_none() {
            return 0;
        }
        let live = self.places.iter().filter(|place| !place.lost && !place.gone).count().max(1) as u32;
        let share = self.places.iter().map(|place| place.open).sum::<u32>().div_ceil(live);
        self.places[target_address as usize].open.saturating_sub(share)
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_plan::{Address, PoolMember, Protocol};

    use super::*;

    fn target(members: usize, fail_back: bool) -> Target {
        let member = |number: usize| PoolMember {
            authority: format!("h{number}"),
            address: Address::Fixed(Vec::new()),
            server_name: String::new(),
        };
        Target {
            authority: "h0".to_owned(),
            urls: Vec::new(),
            address: Address::Fixed(Vec::new()),
            proxy: None,
            pool: if members > 1 { (0..members).map(member).collect() } else { Vec::new() },
            fail_over: true,
            fail_back,
            tls: None,
            protocol: Protocol::Http1,
            opening: None,
            book: None,
        }
    }

    fn target_addresses(members: usize, fail_back: bool) -> TargetAddresses {
        let all: Vec<TargetAddress> = (0..if members > 1 { members } else { 3 })
            .map(|number| TargetAddress {
                endpoint: Endpoint::Unix(format!("{number}").into()),
                tunnel: None,
                member: if members > 1 { number as u16 } else { 0 },
            })
            .collect();
        TargetAddresses::new(&target(members, fail_back), &all, 0)
    }

    fn take(target_addresses: &mut TargetAddresses, count: usize) -> Vec<u32> {
        (0..count).map(|_| target_addresses.take().0).collect()
    }

    #[test]
    fn addresses_without_a_pool_are_taken_in_turn_whatever_happens() {
        let mut target_addresses = target_addresses(1, true);
        assert_eq!(take(&mut target_addresses, 4), [0, 1, 2, 0]);
        assert!(!target_addresses.lose(0, Nanos(5)) && !target_addresses.find(0));
        target_addresses.release(0);
        assert_eq!(
            (take(&mut target_addresses, 3), target_addresses.next_probe()),
            (vec![1, 2, 0], Nanos::MAX)
        );
    }

    fn addresses(texts: &[&str]) -> Vec<TargetAddress> {
        let address = |text: &&str| Endpoint::Tcp(text.parse().expect("an address")).into();
        texts.iter().map(address).collect()
    }

    /// Two addresses of IPv6, and two of IPv4.
    fn of_both_families() -> TargetAddresses {
        let all = addresses(&["[::1]:80", "192.0.2.1:80", "[::2]:80", "192.0.2.2:80"]);
        TargetAddresses::new(&target(1, false), &all, 0)
    }

    #[test]
    fn the_other_family_is_used_once_all_of_the_first_are_dead() {
        let mut target_addresses = of_both_families();
        assert_eq!(take(&mut target_addresses, 4), [0, 2, 0, 2]);
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let (v6, v4) = (texts(&["[::1]:80", "[::2]:80"]), texts(&["192.0.2.1:80", "192.0.2.2:80"]));
        assert_eq!(target_addresses.by_use(), (v6.clone(), v4.clone()));
        // A part of the target is dead: its share of the load fails.
        assert!(!target_addresses.lose(0, Nanos(1)) && !target_addresses.take_switch());
        assert_eq!(take(&mut target_addresses, 2), [0, 2]);
        assert!(target_addresses.lose(2, Nanos(1)) && target_addresses.take_switch());
        assert!(!target_addresses.take_switch());
        assert_eq!(take(&mut target_addresses, 4), [1, 3, 1, 3]);
        assert_eq!(target_addresses.by_use(), (v4, v6));
        // An attempt that was under way.
        assert!(target_addresses.lose(0, Nanos(1)) && !target_addresses.take_switch());
        assert!(!target_addresses.find(1));
        // All are dead: requests fail, and both are tried in turn until one takes a connection.
        assert!(!target_addresses.lose(1, Nanos(2)));
        assert!(!target_addresses.lose(3, Nanos(2)) && !target_addresses.take_switch());
        assert_eq!(take(&mut target_addresses, 1), [0]);
        assert!(!target_addresses.lose(0, Nanos(3)));
        assert_eq!(take(&mut target_addresses, 1), [3]);
        target_addresses.find(3);
        assert_eq!(take(&mut target_addresses, 2), [1, 3]);
    }

    #[test]
    fn addresses_that_are_gone_keep_their_numbers_until_no_connection_has_them() {
        let target = target(1, false);
        let mut in_use = TargetAddresses::new(&target, &addresses(&["192.0.2.1:80", "192.0.2.2:80"]), 0);
        assert_eq!(take(&mut in_use, 2), [0, 1]);
        in_use.replace(&target, &addresses(&["192.0.2.3:80", "192.0.2.2:80"]));
        assert_eq!(take(&mut in_use, 4), [1, 2, 1, 2]);
        assert_eq!(in_use.endpoint(0).to_string(), "192.0.2.1:80");
        in_use.release(0);
        in_use.replace(&target, &addresses(&["192.0.2.4:80"]));
        assert_eq!((take(&mut in_use, 1), in_use.endpoint(0).to_string()), (vec![0], "192.0.2.4:80".into()));
        // What comes back is as it was.
        in_use.replace(&target, &addresses(&["192.0.2.2:80"]));
        assert_eq!((take(&mut in_use, 2), in_use.places.len()), (vec![1, 1], 3));
        assert_eq!(in_use.by_use(), (vec!["192.0.2.2:80".to_owned()], Vec::new()));
    }

    #[test]
    fn the_family_in_use_stays_while_it_has_addresses() {
        let target = target(1, false);
        let mut in_use = of_both_families();
        assert!(!in_use.lose(0, Nanos(1)) && in_use.lose(2, Nanos(1)) && in_use.take_switch());
        in_use.replace(&target, &addresses(&["[::3]:80", "192.0.2.2:80"]));
        assert_eq!(in_use.by_use().0, ["192.0.2.2:80"]);
        in_use.replace(&target, &addresses(&["[::3]:80"]));
        assert!(!in_use.has_families());
        assert_eq!(in_use.take().1.to_string(), "[::3]:80");
        in_use.replace(&target, &addresses(&["192.0.2.9:80", "[::3]:80"]));
        assert_eq!(in_use.by_use().1.len(), 1);
    }

    #[test]
    fn members_of_a_pool_may_move() {
        let target = target(2, true);
        let at = |texts: [&str; 2]| -> Vec<TargetAddress> {
            let numbered = addresses(&texts).into_iter().zip(0..);
            numbered.map(|(address, member)| TargetAddress { member, ..address }).collect()
        };
        let mut in_use = TargetAddresses::new(&target, &at(["192.0.2.1:80", "192.0.2.2:80"]), 0);
        assert_eq!(take(&mut in_use, 2), [0, 1]);
        assert!(in_use.lose(0, Nanos(1)));
        in_use.replace(&target, &at(["192.0.2.3:80", "192.0.2.2:80"]));
        assert_eq!(in_use.next_probe(), Nanos::MAX, "what is gone is not asked for");
        assert_eq!(take(&mut in_use, 2), [2, 1], "the new one has none, then each has one");
        assert_eq!((in_use.member(2), in_use.excess(1)), (0, 0));
    }

    #[test]
    fn a_pool_is_used_evenly() {
        let mut target_addresses = target_addresses(3, false);
        let mut taken = take(&mut target_addresses, 9);
        taken.sort_unstable();
        assert_eq!(taken, [0, 0, 0, 1, 1, 1, 2, 2, 2]);
        target_addresses.release(1);
        target_addresses.release(1);
        assert_eq!(take(&mut target_addresses, 2), [1, 1]);
        assert_eq!(
            (0..3).map(|target_address| target_addresses.member(target_address)).collect::<Vec<_>>(),
            [0, 1, 2]
        );
    }

    #[test]
    fn a_lost_server_is_left_out_until_it_is_found() {
        let mut target_addresses = target_addresses(3, true);
        take(&mut target_addresses, 3);
        target_addresses.release(2);
        assert!(target_addresses.lose(2, Nanos(0)));
        assert!(!take(&mut target_addresses, 4).contains(&2));
        assert_eq!((target_addresses.probe(Nanos(1)), target_addresses.next_probe()), (None, PROBE_INTERVAL));
        assert_eq!(target_addresses.probe(PROBE_INTERVAL), Some(2));
        assert_eq!(target_addresses.probe(PROBE_INTERVAL), None, "once a second");
        target_addresses.take_at(2);
        assert!(target_addresses.find(2) && !target_addresses.find(2));
        // Seven connections on three servers: three at most on each.
        assert_eq!(
            (0..3).map(|target_address| target_addresses.excess(target_address)).collect::<Vec<_>>(),
            [0, 0, 0]
        );
        take(&mut target_addresses, 2);
        assert_eq!(target_addresses.excess(2), 0);
    }

    #[test]
    fn a_server_without_a_connection_is_asked_where_connections_move_back() {
        for (fail_back, next) in [(true, PROBE_INTERVAL), (false, Nanos::MAX)] {
            let mut target_addresses = target_addresses(2, fail_back);
            take(&mut target_addresses, 4);
            target_addresses.release(1);
            target_addresses.miss(1, Nanos(0));
            assert_eq!(target_addresses.next_probe(), Nanos::MAX, "it has one more");
            target_addresses.release(1);
            target_addresses.miss(1, Nanos(0));
            assert_eq!(target_addresses.next_probe(), next);
            // The server may well be up: requests that need a connection are sent to it.
            assert_eq!(take(&mut target_addresses, 1), [1]);
            assert_eq!(target_addresses.find(1), fail_back);
            assert_eq!(target_addresses.next_probe(), Nanos::MAX);
        }
    }

    #[test]
    fn when_all_are_lost_the_first_that_was_is_tried() {
        let mut target_addresses = target_addresses(2, false);
        assert!(target_addresses.lose(1, Nanos(10)));
        assert!(!target_addresses.lose(0, Nanos(20)), "there is nowhere to go");
        assert_eq!(take(&mut target_addresses, 2), [1, 1]);
        assert_eq!(target_addresses.next_probe(), Nanos::MAX, "nobody asked to go back");
    }
}
