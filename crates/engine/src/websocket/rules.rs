//! Messages that a WebSocket sends by itself: answers by rules, and heartbeats.

use plimsoll_core::Random;
use plimsoll_scenario::{Answered, Context, FieldList, Received, ResponseHandler, Session};
use plimsoll_wire::websocket::Deflater;

use super::MESSAGE;

/// Room of a worker for messages that are made.
#[derive(Debug, Default)]
pub(crate) struct MessageRoom {
    /// The last message that was made by a rule.
    pub(crate) text: Vec<u8>,
    /// None: a message has no fields.
    pub(crate) fields: FieldList,
    /// The compressor of messages.
    pub(crate) deflater: Deflater,
}

/// The rules of a WebSocket, and what its messages are made of.
#[derive(Debug)]
pub(crate) struct Rules<'a> {
    /// Of the step that has opened it.
    pub(crate) handler: &'a ResponseHandler,
    /// That of the iteration that it belongs to.
    pub(crate) session: &'a mut Session,
    /// All but the variables.
    pub(crate) context: Context<'a>,
    pub(crate) random: &'a mut Random,
    pub(crate) room: &'a mut MessageRoom,
}

impl Rules<'_> {
    /// Deals with a message; `None` if no rule is for it.
    pub(super) fn answer(&mut self, message: &[u8]) -> Option<Answered> {
        let MessageRoom { text, fields, .. } = &mut *self.room;
        text.clear();
        let received = Received::new(MESSAGE, fields, message);
        self.handler.answer(&received, self.session, &self.context, self.random, text)
    }

    /// Makes a heartbeat; `None` if there is none.
    pub(super) fn beat(&mut self) -> Option<Answered> {
        self.room.text.clear();
        self.handler.beat(self.session, &self.context, self.random, &mut self.room.text)
    }
}
