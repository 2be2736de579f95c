//! Servers of protocols other than HTTP: their answers, and what they say unasked.

use plimsoll_core::Nanos;

use super::{GARBAGE, Happening, Message, SimBackend};
use crate::protocol::{Exchange, Order, Saying};
use crate::server::{Decision, LinkState};
use crate::truth::Action;

/// Answers of which a server's decision chooses one.
#[derive(Debug)]
pub(super) struct Answers {
    good: Vec<u8>,
    refusal: Vec<u8>,
    /// What follows a good answer.
    then: Vec<(Nanos, Saying)>,
}

impl SimBackend {
    /// Takes every whole message out of a link's inbox, and lets the server decide.
    pub(super) fn take_messages(&mut self, at: Nanos, index: usize) {
        let link = &mut self.links[index];
        let Some(protocol) = &mut link.protocol else { return };
        let mut orders = Vec::new();
        let is_sound = protocol.receive(&mut link.inbox, &mut orders).is_ok();
        for order in orders {
            match order {
                Order::Answer(exchange) => self.decide_on_message(at, index, exchange),
                Order::Say(saying) => self.volunteer(at, index, saying),
            }
        }
        if !is_sound && self.links[index].state == LinkState::Open {
            self.volunteer(at, index, Saying::End);
        }
    }

    fn decide_on_message(&mut self, at: Nanos, index: usize, exchange: Exchange) {
        let link = &mut self.links[index];
        let decision = self.servers[link.server].decide(link, at, false);
        let Exchange { request, answer, refusal, then } = exchange;
        let entry = self.note_request(at, index, decision.action, request);
        if !matches!(decision.action, Action::Ignore | Action::Drop) {
            let answers = Answers { good: answer, refusal, then };
            self.timeline
                .push(decision.at, Happening::ActOnMessage { link: index, decision, entry, answers });
        }
    }

    /// A server carries out its decision, unless the connection has ended meanwhile.
    pub(super) fn act_on_message(
        &mut self,
        at: Nanos,
        index: usize,
        decision: Decision,
        entry: usize,
        answers: Answers,
    ) {
        let link = &self.links[index];
        if matches!(link.state, LinkState::Gone | LinkState::Closed) {
            return;
        }
        self.truth.note_reply(self.world, entry, at);
        let Answers { good: answer, refusal, then } = answers;
        let good = self.servers[link.server].behaviour.answer.status;
        let is_good = decision.action == Action::Reply(good);
        let bytes = match decision.action {
            Action::Reply(status) if status == good => answer,
            Action::Reply(_) | Action::Reject => refusal,
            Action::Truncate => answer[..answer.len() / 2].to_vec(),
            Action::Excess => answer.repeat(2),
            Action::Garbage | Action::EndlessHead => GARBAGE.to_vec(),
            Action::Reset | Action::Close | Action::Refuse | Action::Drop | Action::Ignore => Vec::new(),
        };
        let end = match decision.action {
            Action::Reset => Some(Message::Reset),
            Action::Close | Action::Refuse | Action::Truncate => Some(Message::Fin),
            _ => decision.close.then_some(Message::Fin),
        };
        self.respond(at, index, bytes, end);
        for (after, saying) in then.into_iter().filter(|_| is_good) {
            self.timeline.push(at + after, Happening::Volunteer { link: index, saying });
        }
    }

    /// A server says something unasked, unless the connection has ended meanwhile.
    pub(super) fn volunteer(&mut self, at: Nanos, index: usize, saying: Saying) {
        let link = &mut self.links[index];
        if matches!(link.state, LinkState::Gone | LinkState::Closed) {
            return;
        }
        let message = match saying {
            Saying::Bytes(bytes) => Message::Data(bytes),
            Saying::End => {
                link.state = LinkState::Closed;
                Message::Fin
            }
        };
        let client = link.client;
        self.send_to_conn(at, client, message);
    }
}
