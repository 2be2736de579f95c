//! Faults of a spec.

use plimsoll_core::Nanos;
use plimsoll_document::{Field, Place, Problem};
use plimsoll_plan::parse_size;

use super::{Reading, list, text, texts};
use crate::document::FaultSpec;
use crate::fault::{Action, Choice, FaultPlan, Impairment};
use crate::spec::{Link, NetworkKind, NodePlan};

/// Default duration of a fault that has to end.
const LENGTH: Nanos = Nanos::from_secs(3);

/// Names of the kinds of faults.
const KINDS: [(&str, Kind); 11] = [
    ("kill", Kind::Kill),
    ("stop", Kind::Stop),
    ("restart", Kind::Restart),
    ("disk_full", Kind::DiskFull),
    ("isolate", Kind::Isolate),
    ("partition", Kind::Partition),
    ("delay", Kind::Delay),
    ("reset", Kind::Reset),
    ("loss", Kind::Loss),
    ("bandwidth", Kind::Bandwidth),
    ("half_open", Kind::HalfOpen),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Kill,
    Stop,
    Restart,
    DiskFull,
    Isolate,
    Partition,
    Delay,
    Reset,
    Loss,
    Bandwidth,
    HalfOpen,
}

impl Kind {
    const fn is_of_links(self) -> bool {
        !matches!(self, Self::Kill | Self::Stop | Self::Restart | Self::DiskFull)
    }

    const fn takes_amount(self) -> bool {
        matches!(self, Self::DiskFull | Self::Delay | Self::Loss | Self::Bandwidth)
    }
}

impl Reading<'_> {
    pub(super) fn faults(
        &mut self,
        nodes: &[NodePlan],
        network: NetworkKind,
        links: &[Link],
    ) -> Vec<FaultPlan> {
        let faults = self.document.faults.iter();
        faults.filter_map(|fault| self.fault(fault.get()?, fault.place(), nodes, (network, links))).collect()
    }

    fn fault(
        &mut self,
        fault: &FaultSpec,
        place: Option<Place>,
        nodes: &[NodePlan],
        (network, links): (NetworkKind, &[Link]),
    ) -> Option<FaultPlan> {
        if fault.fault.is_absent() {
            self.wrong(Problem::new("a fault needs a kind").with_hint("add `fault: kill`"), place);
            return None;
        }
        let kind = self.word(&fault.fault, "fault", &KINDS)?;
        let name = text(&fault.fault).unwrap_or_default();
        self.admit(fault, kind, &name, place);
        if kind.is_of_links() {
            self.admit_links(fault, (kind, &name), nodes, (network, links));
        }
        let action = self.action(fault, kind, place)?;
        let choices = fault.target.iter().filter_map(|target| {
            let choice = match target.get()?.as_str() {
                "leader" => Choice::Leader,
                "follower" => Choice::Follower,
                "random" => Choice::Random,
                "all" => Choice::All,
                id => {
                    self.known(id, target.place(), nodes);
                    Choice::Id(id.to_owned())
                }
            };
            if matches!(choice, Choice::Leader | Choice::Follower) && self.document.leader.is_absent() {
                let problem = Problem::new("the leader is not described");
                self.wrong(problem.with_hint("add `leader: {path: /raft/leader}`"), target.place());
            }
            Some(choice)
        });
        let choices: Vec<Choice> = choices.collect();
        for id in &fault.side {
            if let Some(text) = id.get() {
                self.known(text.as_str(), id.place(), nodes);
            }
        }
        let port = text(&fault.port);
        let at = self.duration(&fault.at, "at");
        let every = self.duration(&fault.every, "every");
        let length = self.duration(&fault.r#for, "for");
        let needs_end = !matches!(kind, Kind::Kill | Kind::Restart | Kind::Reset);
        Some(FaultPlan {
            name,
            action,
            choices: if choices.is_empty() { vec![Choice::Random] } else { choices },
            at: at.or(every).unwrap_or_default(),
            every: every.filter(|every| *every > Nanos::ZERO),
            jitter: self.duration(&fault.jitter, "jitter").unwrap_or_default(),
            length: length.or(needs_end.then_some(LENGTH)),
            port,
        })
    }

    /// Reports settings that exclude each other.
    fn admit(&mut self, fault: &FaultSpec, kind: Kind, name: &str, place: Option<Place>) {
        if fault.at.is_absent() && fault.every.is_absent() {
            let problem = Problem::new(format!("`{name}` has no time"));
            self.wrong(problem.with_hint("add `at: 5s` or `every: 10s`"), place);
        }
        let idle = [
            (!fault.amount.is_absent() && !kind.takes_amount(), "amount", fault.amount.place()),
            (!fault.spread.is_absent() && kind != Kind::Delay, "spread", fault.spread.place()),
            (
                !fault.side.is_empty() && kind != Kind::Partition,
                "side",
                fault.side.first().and_then(Field::place),
            ),
            (!fault.target.is_empty() && kind == Kind::Partition, "target", fault.fault.place()),
            (!fault.port.is_absent() && !kind.is_of_links(), "port", fault.port.place()),
            (!fault.r#for.is_absent() && kind == Kind::Restart, "for", fault.r#for.place()),
            (!fault.jitter.is_absent() && fault.every.is_absent() && fault.at.is_absent(), "jitter", place),
        ];
        for (_, field, place) in idle.into_iter().filter(|(wrong, ..)| *wrong) {
            let problem = Problem::new(format!("`{field}` does not apply to `{name}`"));
            self.wrong(problem.with_hint("leave it out"), place);
        }
    }

    /// Reports faults that the network of the cluster cannot cause. Where either may be used, both have to.
    fn admit_links(
        &mut self,
        fault: &FaultSpec,
        (kind, name): (Kind, &str),
        nodes: &[NodePlan],
        (network, links): (NetworkKind, &[Link]),
    ) {
        let is_proxy = network != NetworkKind::Namespaces;
        if is_proxy && links.is_empty() {
            let problem = Problem::new(format!("`{name}` needs links that go through the fault proxy"));
            let hint = "name their ports: `links: [raft]`; `network: namespaces` breaks all links, as root";
            self.wrong(problem.with_hint(hint), fault.fault.place());
        }
        if links.is_empty() && !is_proxy {
            let all = nodes.iter().flat_map(|node| node.ports.iter().map(|(name, _)| name.clone()));
            if !fault.port.is_absent() {
                self.port(&fault.port, &all.collect::<Vec<_>>(), "");
            }
        } else {
            let named: Vec<String> = links.iter().map(|link| link.port.clone()).collect();
            if text(&fault.port).is_some_and(|port| !named.contains(&port)) {
                let problem = Problem::new("connections to this port are not among the links");
                let hint = format!("add it to `links`; those that are: {}", list(&named));
                self.wrong(problem.with_hint(hint), fault.port.place());
            }
        }
        if kind == Kind::Reset && fault.r#for.is_absent() && network != NetworkKind::Proxy {
            let problem =
                Problem::new("in network namespaces `reset` has to last: packets are answered by it");
            self.wrong(problem.with_hint("add `for: 500ms`, or use `network: proxy`"), fault.fault.place());
        }
    }

    fn action(&mut self, fault: &FaultSpec, kind: Kind, place: Option<Place>) -> Option<Action> {
        let amount = text(&fault.amount);
        if amount.is_none() && kind.takes_amount() && kind != Kind::DiskFull {
            let problem = Problem::new("how much?");
            let hint = match kind {
                Kind::Delay => "add `amount: 50ms`",
                Kind::Loss => "add `amount: 10%`",
                _ => "add `amount: 1MiB`",
            };
            self.wrong(problem.with_hint(hint), place);
        }
        let at = fault.amount.place();
        let size = |reading: &mut Self| match parse_size(amount.as_deref()?) {
            Ok(bytes) => Some(bytes),
            Err(error) => {
                reading.wrong(Problem::new(format!("`amount`: {error}")), at);
                None
            }
        };
        Some(match kind {
            Kind::Kill => Action::Kill,
            Kind::Stop => Action::Stop,
            Kind::Restart => Action::Restart,
            Kind::DiskFull => Action::DiskFull { largest: size(self) },
            Kind::Isolate => Action::Links(Impairment::Cut),
            Kind::Partition => {
                if fault.side.is_empty() {
                    let problem = Problem::new("`partition` needs the nodes of one `side`");
                    self.wrong(problem.with_hint("add `side: [0]`"), place);
                }
                Action::Partition { side: texts(&fault.side) }
            }
            Kind::Delay => Action::Links(Impairment::Delay {
                time: self.duration(&fault.amount, "amount")?,
                spread: self.duration(&fault.spread, "spread").unwrap_or_default(),
            }),
            Kind::Reset => Action::Links(Impairment::Reset),
            Kind::Loss => Action::Links(Impairment::Loss(self.share(amount.as_deref()?, at)?)),
            Kind::Bandwidth => match size(self)? {
                0 => {
                    let problem = Problem::new("a bandwidth is not zero");
                    self.wrong(problem.with_hint("`isolate` lets nothing through"), at);
                    return None;
                }
                bytes => Action::Links(Impairment::Bandwidth(bytes)),
            },
            Kind::HalfOpen => Action::Links(Impairment::HalfOpen),
        })
    }

    pub(super) fn share(&mut self, text: &str, place: Option<Place>) -> Option<f64> {
        let (number, factor) = match text.strip_suffix('%') {
            Some(percent) => (percent.trim(), 0.01),
            None => (text, 1.0),
        };
        let share = number.parse::<f64>().ok().map(|number| number * factor);
        let share = share.filter(|share| (0.0..=1.0).contains(share));
        if share.is_none() {
            let problem = Problem::new(format!("`{}` is not a share", text.escape_debug()));
            self.wrong(problem.with_hint("write 10% or 0.1"), place);
        }
        share
    }

    fn known(&mut self, id: &str, place: Option<Place>, nodes: &[NodePlan]) {
        let ids: Vec<String> = nodes.iter().map(|node| node.id.clone()).collect();
        if !ids.iter().any(|known| known == id) {
            let problem = Problem::new(format!("there is no node `{}`", id.escape_debug()));
            let hint = format!("nodes: {}; or leader, follower, random, all", list(&ids));
            self.wrong(problem.with_hint(hint), place);
        }
    }
}
