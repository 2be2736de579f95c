//! Rules by which messages are answered as they come.

use plimsoll_core::Random;
use plimsoll_scenario::{Answered, Context, FieldList, Received, ResponseHandler, Session};
use plimsoll_wire::websocket::Deflater;

use super::MESSAGE;

/// The rules of a WebSocket, and what its answers are made of.
#[derive(Debug)]
pub(crate) struct Rules<'a> {
    /// Of the step that has opened it.
    pub(crate) handler: &'a ResponseHandler,
    /// That of the iteration that it belongs to.
    pub(crate) session: &'a mut Session,
    /// All but the variables.
    pub(crate) context: Context<'a>,
    pub(crate) random: &'a mut Random,
    /// None: a message has no fields.
    pub(crate) fields: &'a FieldList,
    /// The answer to the last message.
    pub(crate) text: &'a mut Vec<u8>,
    /// The worker's own.
    pub(crate) deflater: &'a mut Deflater,
}

impl Rules<'_> {
    /// Deals with a message; `None` if no rule is for it.
    pub(super) fn answer(&mut self, message: &[u8]) -> Option<Answered> {
        self.text.clear();
        let received = Received::new(MESSAGE, self.fields, message);
        self.handler.answer(&received, self.session, &self.context, self.random, self.text)
    }
}
