//! The agent as a process: connects its state machine to the broker and its host.

use std::sync::mpsc::{Receiver, channel};

use plimsoll_core::Nanos;
use plimsoll_system::clock;

use crate::agent::{Agent, AgentAction, AgentIdentity, HostEvent};
use crate::fabric::{Fabric as _, Now};
use crate::host::{Host, HostOptions};
use crate::nats::{LinkError, LinkEvent, NatsEvent, NatsLink};

/// Longest wait for a message before the agent turns to everything else.
const PATIENCE: Nanos = Nanos::from_millis(20);

/// Reasons why an agent cannot serve.
#[derive(Debug)]
pub enum ServiceError {
    /// The folder of the agent cannot be made.
    Folder(std::io::Error),
    /// The connection to the broker has ended for good.
    Link(LinkError),
}

/// A wish that the agent end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// There is none.
    No,
    /// Once what goes on is stopped in order, and its results have arrived at the coordinator.
    InOrder,
    /// Now, with everything that goes on.
    AtOnce,
}

/// Serves until `departure` returns a wish, and it is carried out. `say` gets messages for the user.
///
/// # Errors
/// The folder of the agent cannot be made, or the broker sends more than a fleet does: loads that are under
/// way end then.
pub fn serve_agent(
    identity: AgentIdentity,
    mut link: NatsLink,
    options: HostOptions,
    departure: impl Fn() -> Departure,
    say: impl Fn(&str),
) -> Result<(), ServiceError> {
    let (events, heard) = channel();
    let host = Host::new(options, events).map_err(ServiceError::Folder)?;
    let mut service = AgentService { agent: Agent::new(identity), host, heard };
    for pattern in service.agent.subscriptions() {
        link.subscribe(&pattern);
    }
    say("ready");
    let mut shown: Option<String> = None;
    let mut is_leaving = false;
    loop {
        match departure() {
            Departure::AtOnce => break,
            Departure::InOrder if !is_leaving => {
                is_leaving = true;
                if let Some(run) = service.agent.run() {
                    say(&format!("stopping its part of run {run}; once more to end at once"));
                }
                let actions = service.agent.leave(now());
                service.carry_out(&mut link, actions);
            }
            Departure::InOrder | Departure::No => {}
        }
        if service.agent.may_end() {
            break;
        }
        match link.receive(PATIENCE) {
            Some(NatsEvent::Delivery(delivery)) => {
                let actions = service.agent.hear(&delivery, now());
                service.carry_out(&mut link, actions);
            }
            Some(NatsEvent::Link(LinkEvent::Flooded(bytes))) => {
                service.host.end();
                return Err(ServiceError::Link(link.flooded(bytes)));
            }
            Some(NatsEvent::Link(event)) => say(&told(&event)),
            None => {}
        }
        while let Ok((run, event)) = service.heard.try_recv() {
            // Events of a discarded process are ignored.
            let is_wanted = matches!(event, HostEvent::Collected { .. }) || service.agent.has(&run);
            if !is_wanted {
                continue;
            }
            let actions = service.agent.note(&run, event, now());
            service.carry_out(&mut link, actions);
        }
        let actions = service.agent.tick(now());
        service.carry_out(&mut link, actions);
        if service.agent.run() != shown.as_deref() {
            shown = service.agent.run().map(str::to_owned);
            match &shown {
                Some(run) => say(&format!("claimed by run {run}")),
                None => say("free"),
            }
        }
    }
    service.host.end();
    link.close();
    Ok(())
}

/// The present on the clocks of this process.
pub fn now() -> Now {
    Now { monotonic: clock::monotonic(), unix: clock::unix() }
}

/// A message for the user about an event of the connection.
pub fn told(event: &LinkEvent) -> String {
    match event {
        LinkEvent::Connected => "connected to the broker".to_owned(),
        LinkEvent::Disconnected => "warning: the broker does not answer; trying again".to_owned(),
        LinkEvent::Dropped => "warning: messages were dropped, because they came too fast".to_owned(),
        LinkEvent::Refused(why) => format!("warning: the broker refused an operation: {why}"),
        LinkEvent::Flooded(bytes) => {
            format!("error: the broker sends more than a fleet does: {} MiB at once", bytes >> 20)
        }
    }
}

struct AgentService {
    agent: Agent,
    host: Host,
    heard: Receiver<(String, HostEvent)>,
}

impl AgentService {
    fn carry_out(&mut self, link: &mut NatsLink, actions: Vec<AgentAction>) {
        for action in actions {
            match action {
                AgentAction::Publish { subject, payload } => link.publish(&subject, payload),
                action => self.host.carry_out(action),
            }
        }
    }
}
