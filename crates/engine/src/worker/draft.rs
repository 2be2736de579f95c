//! The request that is being written.

use plimsoll_scenario::{DynamicRequest, SentRequest};
use plimsoll_wire::http2::HeaderBlockCache;

/// Parts of the request that is being written, in memory that each request uses again.
///
/// [`ready`](super::Worker::ready) fills `cookies` and `sent` before a template is rendered. Of a request
/// that a script makes, `dynamic` and `scratch` hold their content until it is written or led to another
/// server. Nothing outlives the request: parts that are needed later go into its capture.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// The request as its step wants to know it later.
    pub(super) sent: SentRequest,
    /// HTTP/2: the request as the log of failed requests shows it.
    pub(super) logged: SentRequest,
    /// The value of its `cookie` field.
    pub(super) cookies: Vec<u8>,
    /// The request that a script makes.
    pub(super) dynamic: DynamicRequest,
    /// Scratch space of rendering; of a request that a script makes, the credentials of its step.
    pub(super) scratch: Vec<u8>,
    /// For targets without a cache of header blocks; nothing is in it.
    pub(super) no_book: HeaderBlockCache,
}

impl Draft {
    /// Takes the fields that the step gave for its target out of the script's request: the credentials, which
    /// are in `scratch`, and the cookies.
    #[inline]
    pub(super) fn remove_target_fields(&mut self) {
        let Self { dynamic, cookies, scratch: credentials, .. } = self;
        dynamic.fields.retain(|name, value| match name {
            b"cookie" => cookies.is_empty() || !value.ends_with(cookies),
            b"authorization" => value != credentials.as_slice(),
            _ => true,
        });
    }

    /// Notes the credentials that the step has given the script's request.
    #[inline]
    pub(super) fn note_credentials(&mut self) {
        self.scratch.clear();
        self.scratch.extend_from_slice(self.dynamic.fields.get("authorization").unwrap_or_default());
    }
}
