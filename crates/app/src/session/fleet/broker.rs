//! The connection to the broker of a fleet, and the choice of agents.

use std::collections::BTreeMap;

use plimsoll_core::Nanos;
use plimsoll_core::Redaction;
use plimsoll_document::Problem;
use plimsoll_fleet::{Fabric as _, Here, LinkError, LinkEvent, NatsAddress, NatsEvent, NatsLink};
use plimsoll_system::clock;

use crate::args::fleet::AgentChoice;
use crate::base::failure::Failure;

/// Agents announce themselves once per second: by then each was heard, unless messages are lost.
const LISTEN: Nanos = Nanos::from_millis(1_500);
/// Longest wait for expected agents that are missing.
const LISTEN_ON: Nanos = Nanos::from_millis(3_500);
/// Longest wait for one message.
const PATIENCE: Nanos = Nanos::from_millis(50);

/// Connects to the broker.
///
/// # Errors
/// There is none, or it rejects our credentials.
pub(crate) fn connect(address: NatsAddress) -> Result<NatsLink, Failure> {
    NatsLink::connect(address).map_err(|error| failure(&error))
}

/// The failure of a command that has no connection to its broker.
pub(crate) fn failure(error: &LinkError) -> Failure {
    let message = error.to_string();
    // The address may have a user and a password.
    let message = Redaction::default().in_text(&message).into_owned();
    Failure::environment(Problem::new(message).with_hint(error.hint()))
}

/// Listens for agents until all that are wanted were heard.
///
/// # Errors
/// The broker does not let us listen.
pub(crate) fn agents(link: &mut NatsLink, wanted: &AgentChoice) -> Result<BTreeMap<String, Here>, Failure> {
    link.subscribe("plim.here.*");
    let begin = clock::monotonic();
    let mut found = BTreeMap::new();
    loop {
        let waited = clock::monotonic() - begin;
        let is_enough = match wanted {
            AgentChoice::All => waited >= LISTEN,
            AgentChoice::Count(count) => free(&found).count() >= *count,
            AgentChoice::Named(names) => names.iter().all(|name| found.contains_key(name)),
        };
        if is_enough || waited >= LISTEN_ON {
            return Ok(found);
        }
        match link.receive(PATIENCE) {
            Some(NatsEvent::Delivery(delivery)) => {
                found.extend(Here::read(&delivery).map(|here| (here.agent.clone(), here)));
            }
            Some(NatsEvent::Link(LinkEvent::Refused(why))) => return Err(refused(&why)),
            Some(NatsEvent::Link(LinkEvent::Flooded(bytes))) => return Err(failure(&link.flooded(bytes))),
            Some(NatsEvent::Link(_)) | None => {}
        }
    }
}

/// The failure of a coordinator that lacks permissions at the broker.
pub(crate) fn refused(why: &str) -> Failure {
    let problem = Problem::new(format!("the broker refused an operation: {why}"));
    Failure::environment(
        problem.with_hint("a coordinator needs its own key, `coordinator.key` of `fleet up`"),
    )
}

fn free(found: &BTreeMap<String, Here>) -> impl Iterator<Item = &Here> {
    found.values().filter(|here| here.run.is_none() && !here.is_leaving)
}

/// Chooses the agents of a run, in the order of their names.
///
/// # Errors
/// Too few agents are free, or a named one is missing.
pub(crate) fn choose(found: &BTreeMap<String, Here>, wanted: &AgentChoice) -> Result<Vec<Here>, Failure> {
    let list = "`plimsoll fleet list` shows the agents; `plimsoll agent` starts one";
    let refuse = |message: String| Failure::environment(Problem::new(message).with_hint(list));
    let busy = found.len() - free(found).count();
    let of_them = if busy > 0 { format!(", and {busy} busy") } else { String::new() };
    match wanted {
        AgentChoice::All => {
            let all: Vec<Here> = free(found).cloned().collect();
            if all.is_empty() { Err(refuse(format!("there is no free agent{of_them}"))) } else { Ok(all) }
        }
        AgentChoice::Count(count) => {
            let some: Vec<Here> = free(found).take(*count).cloned().collect();
            if some.len() < *count {
                let message = format!("{count} agents are asked for, and {} are free{of_them}", some.len());
                return Err(refuse(message));
            }
            Ok(some)
        }
        AgentChoice::Named(names) => {
            let missing: Vec<&str> =
                names.iter().filter(|name| !found.contains_key(*name)).map(String::as_str).collect();
            if !missing.is_empty() {
                return Err(refuse(format!("there is no agent {}", missing.join(", "))));
            }
            Ok(names.iter().filter_map(|name| found.get(name).cloned()).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here(name: &str, run: Option<&str>) -> (String, Here) {
        let here = Here {
            wire: 1,
            agent: name.to_owned(),
            version: "0".to_owned(),
            cores: 2,
            run: run.map(str::to_owned),
            silent_ns: 0,
            thread_per_s: None,
            at_ns: 0,
            is_leaving: false,
        };
        (name.to_owned(), here)
    }

    #[test]
    fn free_agents_are_chosen_and_those_that_are_named() {
        let found = BTreeMap::from([here("a", None), here("b", Some("r")), here("c", None)]);
        let names = |wanted: &AgentChoice| {
            let chosen = choose(&found, wanted).map_err(|failure| failure.problems.to_string());
            chosen.map(|all| all.into_iter().map(|here| here.agent).collect::<Vec<_>>())
        };
        assert_eq!(names(&AgentChoice::All).unwrap(), ["a", "c"]);
        assert_eq!(names(&AgentChoice::Count(1)).unwrap(), ["a"]);
        // A busy agent refuses by itself.
        let named = |all: &[&str]| AgentChoice::Named(all.iter().map(|&name| name.to_owned()).collect());
        assert_eq!(names(&named(&["c", "b"])).unwrap(), ["c", "b"]);
        assert!(names(&AgentChoice::Count(3)).unwrap_err().contains("2 are free, and 1 busy"));
        assert!(names(&named(&["a", "x", "y"])).unwrap_err().contains("no agent x, y"));
        assert!(choose(&BTreeMap::new(), &AgentChoice::All).is_err());
    }
}
