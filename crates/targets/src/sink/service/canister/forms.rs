//! The replies of a replica, encoded except for their bodies.

use plimsoll_wire::http2::HeaderBlockCache;

use super::{Canister, Subnet, Written};
use crate::sink::encoded_reply::{Answer, Draft, EncodedReply, FormBody};
use crate::sink::truth::Action;

/// The replies of a replica, except for their bodies.
#[derive(Debug)]
pub(crate) struct CanisterForms {
    pub(crate) subnet: Subnet,
    pub(crate) usual: EncodedReply,
    accepted: EncodedReply,
    refused: EncodedReply,
    pub(crate) nowhere: EncodedReply,
}

impl CanisterForms {
    pub(crate) fn new(canister: &Canister, book: &mut HeaderBlockCache) -> Self {
        let given =
            |content_type, status| Draft { content_type, body: FormBody::Given, ..Draft::new(status) };
        Self {
            subnet: Subnet::new(canister),
            usual: EncodedReply::new(given("application/cbor", 200), book),
            accepted: EncodedReply::bare(202, book),
            refused: EncodedReply::new(given("text/plain; charset=utf-8", 400), book),
            nowhere: EncodedReply::bare(404, book),
        }
    }

    /// Puts the output of a signer into its form.
    pub(crate) fn answer<'a>(&'a self, written: Written<'a>) -> (Answer<'a>, Action) {
        let form = match written.status {
            200 => &self.usual,
            202 => &self.accepted,
            400 => &self.refused,
            _ => &self.nowhere,
        };
        (Answer { given: written.body, ..Answer::plain(form, 0) }, written.action)
    }
}
