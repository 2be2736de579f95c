//! A client and its output, for scripts.

use plimsoll_wire::http2::hpack::put_literal;
use plimsoll_wire::http2::{
    Client, ClientOptions, ConnectionError, Event, Indexing, PREFACE, Payload, Response, StreamFailure,
    Submit,
};

use crate::http2_client::frames::{Frame, MAX_CONCURRENT_STREAMS, parse, settings};

pub(crate) const GET: Submit<'static> = Submit {
    head_request: false,
    capture: false,
    keep_body: false,
    tell_content: false,
    body: Payload::None,
};
pub(crate) const HEAD: Submit<'static> = Submit { head_request: true, ..GET };
pub(crate) const CAPTURED: Submit<'static> = Submit { capture: true, keep_body: false, ..GET };

pub(crate) fn post(bytes: &[u8]) -> Submit<'_> {
    Submit { body: Payload::Bytes(bytes), ..GET }
}

/// The head of every request here.
pub(crate) fn request_head(_: &mut Indexing, out: &mut Vec<u8>) {
    for (name, value) in [(":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", "/")] {
        put_literal(out, name.as_bytes(), value.as_bytes(), false);
    }
}

pub(crate) struct Link {
    pub(crate) client: Client,
    pub(crate) out: Vec<u8>,
    pub(crate) events: Vec<Event>,
}

impl Link {
    /// A client that has started; its output is discarded.
    pub(crate) fn start(options: &ClientOptions) -> Self {
        let mut link = Self { client: Client::new(options), out: Vec::new(), events: Vec::new() };
        link.client.start(&mut link.out);
        assert!(link.out.starts_with(PREFACE));
        link.out.clear();
        link
    }

    /// A client with default options whose server has sent SETTINGS; all of that is gone.
    pub(crate) fn ready() -> Self {
        Self::ready_with(&ClientOptions::default(), &[])
    }

    /// Makes a client with these options whose server has sent SETTINGS with these values; all of that is
    /// gone.
    pub(crate) fn ready_with(options: &ClientOptions, values: &[(u16, u32)]) -> Self {
        let mut link = Self::start(options);
        assert_eq!(link.feed(&settings(values)), Ok(()));
        assert_eq!(link.events, [Event::Ready]);
        link.events.clear();
        link.out.clear();
        link
    }

    /// A ready client with requests on streams 1, 3, … for each of `specs`; their frames are gone.
    pub(crate) fn with_requests(specs: &[Submit<'_>]) -> Self {
        let mut link = Self::ready_with(&ClientOptions::default(), &[(MAX_CONCURRENT_STREAMS, 100)]);
        for (ticket, spec) in (0..).zip(specs) {
            assert_eq!(link.submit(*spec), ticket);
        }
        link.out.clear();
        link
    }

    pub(crate) fn submit(&mut self, spec: Submit<'_>) -> u32 {
        assert!(self.client.capacity() > 0);
        self.client.submit(spec, request_head, &mut self.out)
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<(), ConnectionError> {
        self.client.receive(bytes, &mut self.out, &mut self.events)
    }

    /// Feeds valid bytes, and returns the events; the tickets that they end may be used again.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Vec<Event> {
        assert_eq!(self.feed(bytes), Ok(()));
        for ticket in self.events.iter().filter_map(ended) {
            self.client.reuse(ticket);
        }
        std::mem::take(&mut self.events)
    }

    /// The frames that the client sent since the last call.
    pub(crate) fn sent(&mut self) -> Vec<Frame> {
        parse(&std::mem::take(&mut self.out))
    }
}

/// The ticket of a request that this event ends.
pub(crate) fn ended(event: &Event) -> Option<u32> {
    match *event {
        Event::Response { ticket, .. } | Event::Failed { ticket, .. } => Some(ticket),
        _ => None,
    }
}

/// The responses among the events; there must be nothing else.
pub(crate) fn responses(events: &[Event]) -> Vec<(u32, Response)> {
    let response = |event: &Event| match event {
        Event::Response { ticket, response } => (*ticket, *response),
        other => panic!("{other:?} is no response"),
    };
    events.iter().map(response).collect()
}

pub(crate) fn failed(ticket: u32, failure: StreamFailure) -> Event {
    Event::Failed { ticket, failure }
}
