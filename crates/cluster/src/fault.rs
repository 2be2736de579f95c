//! Faults as data: what breaks, on which nodes, and when.

use std::fmt;

use plimsoll_core::{Nanos, Random};

/// Something that breaks, once or again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultPlan {
    /// Name of the fault in specs and reports.
    pub name: String,
    /// The way in which the target breaks.
    pub action: Action,
    /// Whom it hits.
    pub choices: Vec<Choice>,
    /// When it begins first, since the start of the load.
    pub at: Nanos,
    /// Time after which it begins again.
    pub every: Option<Nanos>,
    /// By how much later each of them begins at most.
    pub jitter: Nanos,
    /// Duration; `None` if the fault is over at once, or for good.
    pub length: Option<Nanos>,
    /// The links of this port alone.
    pub port: Option<String>,
}

/// The way in which a fault breaks its targets.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// SIGKILL; at its end, if it has one, the node is started again.
    Kill,
    /// SIGSTOP, and SIGCONT at its end.
    Stop,
    /// SIGTERM, and as soon as the node has ended it is started again.
    Restart,
    /// Files of the node cannot grow. A node that has ended for it is started again at its end.
    DiskFull {
        /// Largest permitted size of a file, in bytes; `None`: the size of the largest file in the node's
        /// data folder.
        largest: Option<u64>,
    },
    /// Something happens to the links of the nodes.
    Links(Impairment),
    /// Nothing passes between these nodes and the others.
    Partition {
        /// The ids of the nodes on one side.
        side: Vec<String>,
    },
}

/// An effect of a link on its connections and bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Impairment {
    /// Nothing passes. Data are delivered when it ends, as TCP would send them again.
    Cut,
    /// Each piece comes later.
    Delay {
        /// By this time.
        time: Nanos,
        /// And up to so much more, drawn for each piece; the order stays.
        spread: Nanos,
    },
    /// Connections are reset, those that there are and those that come while it lasts.
    Reset,
    /// New connections are reset with this probability.
    Loss(f64),
    /// Limit in bytes per second, for each direction of a connection.
    Bandwidth(u64),
    /// The server's side of connections is closed; the client's is not.
    HalfOpen,
}

/// Whom a fault hits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// This node.
    Id(String),
    /// The leader at the time when the fault begins.
    Leader,
    /// One that does not lead then, drawn.
    Follower,
    /// Any node, drawn.
    Random,
    /// All nodes.
    All,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => write!(f, "node {id}"),
            Self::Leader => f.write_str("the leader"),
            Self::Follower => f.write_str("a follower"),
            Self::Random => f.write_str("a random node"),
            Self::All => f.write_str("all nodes"),
        }
    }
}

/// The faults of a spec in the order of time. The same seed gives the same times and draws, whatever the
/// cluster does.
#[derive(Debug)]
pub struct Calendar<'a> {
    faults: &'a [FaultPlan],
    seed: u64,
    /// Of each fault: when it begins next, and how often it has begun. `None`: no more.
    next: Vec<Option<(Nanos, u64)>>,
}

/// One time at which a fault begins.
#[derive(Clone, Debug)]
pub struct Occurrence<'a> {
    /// The fault.
    pub fault: &'a FaultPlan,
    /// Index of the fault in the spec.
    pub number: usize,
    /// When it begins, since the start of the load.
    pub at: Nanos,
    /// Random numbers of this occurrence.
    pub random: Random,
}

impl<'a> Calendar<'a> {
    /// From the start of the load on.
    pub fn new(faults: &'a [FaultPlan], seed: u64) -> Self {
        let mut calendar = Self { faults, seed, next: Vec::new() };
        calendar.next = (0..faults.len()).map(|number| calendar.time(number, 0)).collect();
        calendar
    }

    /// When a fault begins for the time of this number.
    fn time(&self, number: usize, turn: u64) -> Option<(Nanos, u64)> {
        let fault = &self.faults[number];
        let later = match turn {
            0 => 0,
            turn => fault.every?.0.saturating_mul(turn),
        };
        let jitter = self.random(number, turn).below(fault.jitter.0.saturating_add(1));
        Some((Nanos(fault.at.0.saturating_add(later).saturating_add(jitter)), turn))
    }

    /// The draws of a fault's turn: a stream of its own, so that none depends on the draws of others.
    fn random(&self, number: usize, turn: u64) -> Random {
        Random::new(self.seed, (number as u64) << 32 | turn & 0xffff_ffff)
    }
}

impl<'a> Iterator for Calendar<'a> {
    type Item = Occurrence<'a>;

    fn next(&mut self) -> Option<Occurrence<'a>> {
        let times = self.next.iter().enumerate();
        let known = times.filter_map(|(number, next)| next.map(|(at, turn)| (at, number, turn)));
        let (at, number, turn) = known.min()?;
        self.next[number] = self.time(number, turn + 1);
        let mut random = self.random(number, turn);
        // The jitter was drawn from the same generator.
        random.bits();
        Some(Occurrence { fault: &self.faults[number], number, at, random })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(at: u64, every: Option<u64>, jitter: u64) -> FaultPlan {
        FaultPlan {
            name: "kill".to_owned(),
            action: Action::Kill,
            choices: vec![Choice::Random],
            at: Nanos::from_secs(at),
            every: every.map(Nanos::from_secs),
            jitter: Nanos::from_secs(jitter),
            length: None,
            port: None,
        }
    }

    #[test]
    fn faults_come_in_the_order_of_time() {
        let faults = [fault(5, None, 0), fault(2, Some(4), 0)];
        let calendar = Calendar::new(&faults, 1);
        let all: Vec<(u64, usize)> =
            calendar.take(4).map(|next| (next.at.0 / 1_000_000_000, next.number)).collect();
        assert_eq!(all, [(2, 1), (5, 0), (6, 1), (10, 1)]);
        assert_eq!(Calendar::new(&faults[..1], 1).count(), 1, "one that is not repeated comes once");
    }

    #[test]
    fn a_seed_gives_the_same_times_and_draws() {
        let faults = [fault(1, Some(10), 5)];
        let of = |seed| {
            let take = |next: Occurrence<'_>| (next.at, next.random.clone().bits());
            Calendar::new(&faults, seed).take(50).map(take).collect::<Vec<_>>()
        };
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
        for (turn, (at, _)) in of(7).into_iter().enumerate() {
            let earliest = 1 + 10 * turn as u64;
            assert!(at >= Nanos::from_secs(earliest) && at <= Nanos::from_secs(earliest + 5), "{at:?}");
        }
    }
}
