//! Requests of the binary protocol, and their replies.

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_targets::server::Outgoing;

use super::catalogue::Finder;
use super::fault_injector::FaultInjector;
use super::setup::{CacheReport, Setup};
use crate::wire::{
    FrameTooLong, MISSING_TEXT, Operation, Request, RequestServer, ServerReply, write_reply, write_value_head,
};

/// Values above this many bytes are not copied into the replies. Below it a copy costs less than a system
/// call with one piece more.
const INLINE_LIMIT: usize = 16 * 1024;

/// Answers the requests of one thread.
#[derive(Debug)]
pub(crate) struct RequestHandler {
    finder: Finder,
    injector: Option<FaultInjector>,
    not_found: bool,
    report: CacheReport,
}

impl RequestHandler {
    pub(crate) fn new(setup: &Setup) -> Self {
        let injector = setup
            .options
            .lie
            .map(|lie| FaultInjector::new(lie, setup.options.seed, Arc::clone(&setup.counter)));
        Self {
            finder: Finder::new(Arc::clone(&setup.catalogue)),
            injector,
            not_found: setup.options.not_found,
            report: CacheReport::default(),
        }
    }

    /// Answers all requests that are whole with `input`, which came at `now`. Nothing else is in `out`.
    pub(crate) fn read(
        &mut self,
        server: &mut RequestServer,
        now: Nanos,
        mut input: &[u8],
        out: &mut Outgoing,
    ) -> Result<(), FrameTooLong> {
        let end = loop {
            match server.next(&mut input) {
                Ok(Some(Ok(request))) => self.answer(&request, now, out),
                Ok(Some(Err(refusal))) => self.refuse(format_args!("{refusal}"), &mut out.bytes),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
            out.replies += 1;
        };
        if let Some(injector) = &mut self.injector {
            injector.end(&mut out.bytes);
        }
        end
    }

    /// Writes the reason why a connection ends that exceeds the `most` bytes for unfinished requests.
    pub(crate) fn refuse_for_memory(&mut self, most: u64, out: &mut Vec<u8>) {
        let text = format_args!("Out of memory: unfinished requests of all connections have {most} bytes");
        self.refuse(text, out);
    }

    /// Returns the counts.
    pub(crate) fn finish(self) -> CacheReport {
        CacheReport { lies: self.injector.map_or(0, |injector| injector.told), ..self.report }
    }

    #[inline]
    fn answer(&mut self, request: &Request<'_>, now: Nanos, out: &mut Outgoing) {
        if request.operation == Operation::Ping {
            self.report.pings += 1;
            return write_reply(ServerReply::Pong, &mut out.bytes);
        }
        let Some(store) = self.finder.find(request.cache) else {
            return self.refuse(format_args!("Cache not found: {}", request.cache), &mut out.bytes);
        };
        match request.operation {
            Operation::Ping => {}
            Operation::Put => {
                store.put(request.key, request.value, now);
                self.report.puts += 1;
                write_reply(ServerReply::Ok, &mut out.bytes);
            }
            Operation::Delete => {
                store.remove(request.key, now);
                self.report.deletes += 1;
                write_reply(ServerReply::Ok, &mut out.bytes);
            }
            Operation::Get => {
                let (value, to_swap) = match &mut self.injector {
                    None => (store.get(request.key, now), false),
                    Some(injector) => injector.value(store, request.key, now),
                };
                self.report.gets += 1;
                self.tell(value, to_swap, out);
            }
        }
    }

    /// Writes the reply to a GET.
    #[inline]
    fn tell(&mut self, value: Option<Arc<[u8]>>, to_swap: bool, out: &mut Outgoing) {
        let start = out.bytes.len();
        match value {
            Some(value) => {
                self.report.hits += 1;
                // Replies that may be swapped have to be in one place.
                if value.len() > INLINE_LIMIT && self.injector.is_none() {
                    write_value_head(value.len(), &mut out.bytes);
                    out.share(value);
                } else {
                    write_reply(ServerReply::Value(&value), &mut out.bytes);
                }
            }
            None if self.not_found => write_reply(ServerReply::NotFound, &mut out.bytes),
            None => write_reply(ServerReply::Error(format_args!("{MISSING_TEXT}")), &mut out.bytes),
        }
        if let Some(injector) = &mut self.injector {
            let end = out.bytes.len();
            injector.answered(&mut out.bytes, start..end, to_swap);
        }
    }

    fn refuse(&mut self, text: std::fmt::Arguments<'_>, out: &mut Vec<u8>) {
        self.report.refusals += 1;
        write_reply(ServerReply::Error(text), out);
    }
}
