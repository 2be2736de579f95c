//! The addresses of a target: the choice for the next connection, and the handling of lost servers.

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::Endpoint;
use plimsoll_driver::resolve::Family;
use plimsoll_plan::Target;
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
    all: Arc<[TargetAddress]>,
    cursor: usize,
    pool: Option<Pool>,
    families: Option<Families>,
}

/// The choice between the addresses of two families.
#[derive(Debug)]
struct Families {
    /// The family in use.
    used: Family,
    /// Addresses to which no connection could be made since the last one that was.
    lost: Vec<bool>,
    /// Set when the family in use has changed, until that is taken note of.
    switched: bool,
}

impl Families {
    /// None, if the addresses are all of one family.
    fn of(all: &[TargetAddress]) -> Option<Self> {
        let used = all.first()?.family()?;
        let both = all.iter().any(|address| address.family() != Some(used));
        both.then(|| Self { used, lost: vec![false; all.len()], switched: false })
    }

    /// Returns `true` if no address of a family takes connections.
    fn is_dead(&self, all: &[TargetAddress], family: Family) -> bool {
        let mut of_family =
            all.iter().zip(&self.lost).filter(|(address, _)| address.family() == Some(family));
        of_family.all(|(_, lost)| *lost)
    }

    /// Notes that no connection could be made to an address. Returns `true` if its requests may go to one of
    /// the other family.
    fn lose(&mut self, all: &[TargetAddress], target_address: usize) -> bool {
        self.lost[target_address] = true;
        let Some(family) = all[target_address].family() else { return false };
        if family != self.used {
            // The attempt was made before the change.
            return !self.is_dead(all, self.used);
        }
        if !self.is_dead(all, family) {
            return false;
        }
        // Where both are dead, they are tried in turn.
        self.used = if family == Family::V4 { Family::V6 } else { Family::V4 };
        let elsewhere = !self.is_dead(all, self.used);
        self.switched |= elsewhere;
        elsewhere
    }
}

#[derive(Debug)]
struct Pool {
    /// Connections by site.
    open: Vec<u32>,
    /// Sites that no connection can be made to.
    lost: Vec<bool>,
    /// When to probe each site again; [`Nanos::MAX`] if there is no doubt that it is reachable.
    ask: Vec<Nanos>,
    fail_over: bool,
    fail_back: bool,
}

impl TargetAddresses {
    /// Workers begin with different addresses, so that all addresses are used from the start.
    pub(crate) fn new(target: &Target, all: Arc<[TargetAddress]>, worker: u32) -> Self {
        let pool = (target.pool.len() > 1).then(|| Pool {
            open: vec![0; all.len()],
            lost: vec![false; all.len()],
            ask: vec![Nanos::MAX; all.len()],
            fail_over: target.fail_over,
            fail_back: target.fail_back,
        });
        let families = if target.pool.is_empty() { Families::of(&all) } else { None };
        Self { all, cursor: worker as usize, pool, families }
    }

    /// The addresses in use, and those of the other family.
    pub(crate) fn by_use(&self) -> (Vec<String>, Vec<String>) {
        let used = |address: &&TargetAddress| {
            self.families.as_ref().is_none_or(|families| address.family() == Some(families.used))
        };
        let (used, unused): (Vec<_>, Vec<_>) = self.all.iter().partition(used);
        let shown = |addresses: Vec<&TargetAddress>| {
            addresses.into_iter().map(|address| address.endpoint.to_string()).collect()
        };
        (shown(used), shown(unused))
    }

    /// Returns `true` if there are addresses of both families, of which one is used.
    pub(crate) const fn has_families(&self) -> bool {
        self.families.is_some()
    }

    /// Returns `true` once after each change of the family in use.
    pub(crate) fn take_switch(&mut self) -> bool {
        self.families.as_mut().is_some_and(|families| std::mem::take(&mut families.switched))
    }

    /// The site for the next connection, which is opened to it.
    pub(crate) fn take(&mut self) -> (u32, Endpoint) {
        let count = self.all.len();
        let first = self.cursor % count;
        self.cursor += 1;
        let target_address = match (&self.pool, &self.families) {
            (None, None) => first,
            (None, Some(families)) => {
                let is_used = |number: &usize| self.all[*number].family() == Some(families.used);
                let used: Vec<usize> = (0..count).filter(is_used).collect();
                used[(self.cursor - 1) % used.len()]
            }
            (Some(pool), _) => {
                let in_turn = (0..count).map(|offset| (first + offset) % count);
                // Addresses that are not lost come first, for they are never tried again; then the one that
                // was lost first.
                let best = in_turn.min_by_key(|&target_address| {
                    let lost = pool.lost[target_address];
                    (lost, if lost { pool.ask[target_address].0 } else { 0 }, pool.open[target_address])
                });
                best.unwrap_or(first)
            }
        };
        self.take_at(target_address as u32)
    }

    /// The same for a site that was chosen.
    pub(crate) fn take_at(&mut self, target_address: u32) -> (u32, Endpoint) {
        if let Some(pool) = &mut self.pool {
            pool.open[target_address as usize] += 1;
        }
        (target_address, self.all[target_address as usize].endpoint.clone())
    }

    /// The address of the site.
    pub(crate) fn endpoint(&self, target_address: u32) -> &Endpoint {
        &self.all[target_address as usize].endpoint
    }

    /// The tunnel that a connection to the site needs.
    pub(crate) fn tunnel(&self, target_address: u32) -> Option<&Arc<TunnelRequest>> {
        self.all[target_address as usize].tunnel.as_ref()
    }

    /// A connection to the site has ended.
    pub(crate) fn release(&mut self, target_address: u32) {
        if let Some(pool) = &mut self.pool {
            pool.open[target_address as usize] -= 1;
        }
    }

    /// The member of the pool that a site belongs to.
    pub(crate) fn member(&self, target_address: u32) -> usize {
        usize::from(self.all[target_address as usize].member)
    }

    /// Notes that an open connection to the site has ended. If it was the last one, its server may be gone:
    /// that would go unnoticed while the other members carry the load, and no connection would go back to it.
    /// The address is therefore probed later.
    pub(crate) fn miss(&mut self, target_address: u32, now: Nanos) {
        let Some(pool) = self.pool.as_mut().filter(|pool| pool.fail_over && pool.fail_back) else { return };
        let target_address = target_address as usize;
        if pool.open[target_address] == 0 && !pool.lost[target_address] {
            pool.ask[target_address] = now + PROBE_INTERVAL;
        }
    }

    /// Notes that a connection to the site could not be made. Returns `true` if its requests may go to
    /// another site.
    pub(crate) fn lose(&mut self, target_address: u32, now: Nanos) -> bool {
        if let Some(families) = &mut self.families {
            return families.lose(&self.all, target_address as usize);
        }
        let Some(pool) = self.pool.as_mut().filter(|pool| pool.fail_over) else { return false };
        pool.lost[target_address as usize] = true;
        pool.ask[target_address as usize] = now + PROBE_INTERVAL;
        pool.lost.contains(&false)
    }

    /// Notes that a connection to the site was made. Returns `true` if the site had been lost or missed.
    pub(crate) fn find(&mut self, target_address: u32) -> bool {
        if let Some(families) = &mut self.families {
            families.lost[target_address as usize] = false;
        }
        let Some(pool) = &mut self.pool else { return false };
        pool.lost[target_address as usize] = false;
        std::mem::replace(&mut pool.ask[target_address as usize], Nanos::MAX) != Nanos::MAX
    }

    /// Time of the next probe of a site; [`Nanos::MAX`] if none is in doubt.
    pub(crate) fn next_probe(&self) -> Nanos {
        match &self.pool {
            Some(pool) if pool.fail_back => pool.ask.iter().copied().min().unwrap_or(Nanos::MAX),
            _ => Nanos::MAX,
        }
    }

    /// Returns a site whose probe is due, and schedules its next one.
    pub(crate) fn probe(&mut self, now: Nanos) -> Option<u32> {
        let pool = self.pool.as_mut().filter(|pool| pool.fail_back)?;
        let target_address = pool.ask.iter().position(|&at| at <= now)?;
        pool.ask[target_address] = now + PROBE_INTERVAL;
        Some(target_address as u32)
    }

    /// Returns the number of the site's connections above an even share of all. They are to be closed, so
    /// that a server that is back gets its part.
    pub(crate) fn excess(&self, target_address: u32) -> u32 {
        let Some(pool) = &self.pool else { return 0 };
        let live = pool.lost.iter().filter(|lost| !**lost).count().max(1) as u32;
        let share = pool.open.iter().sum::<u32>().div_ceil(live);
        pool.open[target_address as usize].saturating_sub(share)
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_plan::{Address, PoolMember, Protocol};

    use super::*;

    fn target_addresses(members: usize, fail_back: bool) -> TargetAddresses {
        let member = |number: usize| PoolMember {
            authority: format!("h{number}"),
            address: Address::Fixed(Vec::new()),
            server_name: String::new(),
        };
        let target = Target {
            authority: "h0".to_owned(),
            urls: Vec::new(),
            address: Address::Fixed(Vec::new()),
            proxy: None,
            pool: if members > 1 { (0..members).map(member).collect() } else { Vec::new() },
            fail_over: true,
            fail_back,
            tls: None,
            protocol: Protocol::Http1,
            book: None,
        };
        let all = (0..if members > 1 { members } else { 3 })
            .map(|number| TargetAddress {
                endpoint: Endpoint::Unix(format!("{number}").into()),
                tunnel: None,
                member: if members > 1 { number as u16 } else { 0 },
            })
            .collect();
        TargetAddresses::new(&target, all, 0)
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

    /// Two addresses of IPv6, and two of IPv4.
    fn of_both_families() -> TargetAddresses {
        let address = |text: &str| Endpoint::Tcp(text.parse().expect("an address")).into();
        let texts = ["[::1]:80", "192.0.2.1:80", "[::2]:80", "192.0.2.2:80"];
        let all: Arc<[TargetAddress]> = texts.into_iter().map(address).collect();
        TargetAddresses { all: Arc::clone(&all), families: Families::of(&all), ..target_addresses(1, false) }
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
