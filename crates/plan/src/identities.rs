//! The rows of data that users of the closed model keep.

use plimsoll_document::Problem;
use plimsoll_scenario::Per;

use crate::resolve::Resolver;
use crate::{Load, Plan, Protocol};

impl Plan {
    /// Users of the closed model where their number is fixed, over all workers and targets: one for each
    /// request that a connection can have in flight. Where the server chooses the protocol, as many as there
    /// are at least. None in the open model.
    pub fn lasting_users(&self) -> u64 {
        let (streams, depth) = (self.connections.streams, self.connections.depth);
        let protocols = || self.targets.iter().map(|target| target.protocol);
        let each = match self.load {
            Load::Open { .. } => 0,
            Load::Closed if protocols().all(|protocol| protocol == Protocol::Http2) => streams,
            Load::Closed if protocols().all(Protocol::is_in_turn) => depth,
            Load::Closed => depth.min(streams),
        };
        u64::from(self.connections.initial) * u64::from(each)
    }
}

impl Resolver<'_> {
    /// Reports rows that users are to keep where there are no lasting users, or too few rows for them. The
    /// rows of a file are counted when the run begins.
    pub(crate) fn check_user_rows(&mut self, plan: &Plan) {
        let document = self.document.clone();
        for feed in plan.feeds.iter().filter(|feed| feed.per == Per::User) {
            let specs = document.iter().flat_map(|loaded| &loaded.document.data.0);
            let spec = specs.into_iter().find(|(name, ..)| name.0 == feed.name);
            let place = spec.and_then(|(_, place, spec)| spec.per.place().or(Some(*place)));
            let users = plan.lasting_users();
            let problem = match (&plan.load, feed.count()) {
                (Load::Open { .. }, _) => Problem::new(
                    "`per: user` has no effect: the open model has no lasting users",
                )
                .with_hint(
                    "leave out `rate` and `stages` for the closed model, or `per` for a row per iteration",
                ),
                (Load::Closed, _) if plan.users.is_some() => Problem::new(
                    "`per: user`: the users of `users` and `user_stages` are counted, not told apart",
                )
                .with_hint("write `connections: N` in place of `users: N`, or leave `per` out"),
                (Load::Closed, Some(rows)) if feed.suffices(users) == Ok(false) => {
                    Problem::new(format!("`{}` has {rows} rows for {users} users", feed.name))
                        .with_hint("add rows, use fewer connections, or let users share rows: `at_end: wrap`")
                }
                (Load::Closed, _) => continue,
            };
            self.problems.push(problem.at(place));
        }
    }
}
