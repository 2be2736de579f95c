//! The replies of a sink, and which of them a request gets.

use plimsoll_core::Nanos;
use plimsoll_wire::http1::write_response_head;
use plimsoll_wire::http2::HeaderBlockCache;

use super::encoded_reply::{Answer, EncodedReply};
use super::law::Intent;
use super::options::SinkOptions;
use super::service::{Ask, ReplyTable, SlowData};
use super::truth::Action;

/// The replies of one sink.
#[derive(Debug)]
pub(crate) struct Forms {
    /// Replies of its service.
    pub(crate) table: ReplyTable,
    faults: Vec<EncodedReply>,
    /// Their header blocks for HTTP/2.
    pub(crate) book: HeaderBlockCache,
    pub(crate) slow: Option<SlowData>,
}

impl Forms {
    pub(crate) fn new(options: &SinkOptions) -> Self {
        let mut book = HeaderBlockCache::new();
        let (table, faults) = ReplyTable::new(options, &mut book);
        book.seal();
        Self { table, faults, book, slow: options.service.slow() }
    }

    /// The answer to request `number` with one of the fault statuses, or a code of the service.
    pub(crate) fn fault(&self, status: u16, number: u64) -> Answer<'_> {
        let form = self.faults.iter().find(|form| form.status == status);
        let form = form.or_else(|| self.table.added()?.failure(status));
        Answer::plain(form.unwrap_or_else(|| self.table.largest()), number)
    }

    /// The answer to a request that is not to be dropped or reset, and its action in the log.
    pub(crate) fn decided<'a>(
        &'a self,
        intent: Intent,
        ask: &'a Ask<'_>,
        number: u64,
        thread: u32,
    ) -> (Answer<'a>, Action) {
        match intent {
            Intent::Status(status) => (self.fault(status, number), Action::Status(status)),
            _ => (self.table.answer(ask, number, thread), Action::Replied),
        }
    }

    /// The status of requests that would be answered after their deadline.
    pub(crate) fn late_status(&self) -> u16 {
        self.table.added().and_then(|added| added.timeout).map_or(504, |timeout| timeout.status)
    }

    /// Returns the time that sending a reply takes from its due time on; zero unless bodies are slow.
    pub(crate) fn span(&self, intent: Intent, head_only: bool) -> Nanos {
        let Some(slow) = self.slow else { return Nanos::ZERO };
        let form = match intent {
            Intent::Reply => self.table.largest(),
            Intent::Status(status) => self.fault(status, 0).form,
            Intent::Drop | Intent::Reset | Intent::Refuse | Intent::Reject | Intent::Garbage => {
                return Nanos::ZERO;
            }
        };
        slow.span(form.sent_body(head_only))
    }
}

/// Writes the reply to a client that does not speak HTTP. Its connection is closed afterwards.
pub(crate) fn write_refusal(out: &mut Vec<u8>) {
    let text = "this is not a valid HTTP/1.1 request\n";
    write_response_head(out, 400, Some("text/plain"), text.len() as u64, true, &[]);
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::encoded_reply::{INLINE_LIMIT, Persistence};
    use crate::sink::service::{Body, Crud, Faults, Reply, Service};
    use plimsoll_driver::Endpoint;

    fn forms(service: Service) -> Forms {
        let listen = Endpoint::Tcp(([127, 0, 0, 1], 0).into());
        let faults = Faults { statuses: vec![(503, 0.1), (204, 0.1)], ..Faults::default() };
        Forms::new(&SinkOptions { service, faults, ..SinkOptions::new(listen) })
    }

    #[test]
    fn bodies_up_to_the_limit_are_inline() {
        let sized = |n| forms(Service::Reply(Reply { body: Body::Bytes(n), ..Reply::default() }));
        assert!(sized(INLINE_LIMIT as u64).table.largest().is_inline());
        assert!(!sized(INLINE_LIMIT as u64 + 1).table.largest().is_inline());
        assert!(forms(Service::default()).table.largest().is_inline());
    }

    #[test]
    fn slow_bodies_take_as_long_as_they_have_pieces() {
        let slow = Some(SlowData { bytes: 10, every: Nanos(5) });
        let forms = forms(Service::Reply(Reply { slow, ..Reply::default() }));
        // The counter's 32 bytes are four pieces.
        assert_eq!(forms.span(Intent::Reply, false), Nanos(15));
        assert_eq!(forms.span(Intent::Status(503), false), Nanos(15));
        for none in [Intent::Status(204), Intent::Drop, Intent::Reset, Intent::Refuse] {
            assert_eq!(forms.span(none, false), Nanos::ZERO, "{none:?}");
        }
        assert_eq!(forms.span(Intent::Reply, true), Nanos::ZERO);
    }

    #[test]
    fn resources_come_and_go() {
        let forms = forms(Service::Crud(Crud { max_resources: 1, ..Crud::default() }));
        let status = |method: &str, target: &[u8]| {
            let ask = forms.table.ask(method.as_bytes(), target, &[]);
            forms.table.answer(&ask, 0, 0).form.status
        };
        let created = forms.table.ask(b"POST", b"/a/?q", &[]);
        let mut out = Vec::new();
        assert!(forms.table.answer(&created, 0, 0).write(false, Persistence::Keep, &mut out).is_none());
        let head = String::from_utf8(out).unwrap();
        let location = head.lines().find_map(|line| line.strip_prefix("location: ")).unwrap().to_owned();
        let at = location.as_bytes();
        assert!(location.starts_with("/a/") && location.len() == 19, "{location}");
        assert_eq!(forms.table.resources(), 1);
        assert_eq!(status("POST", b"/b"), 507);
        for (method, expected) in [("GET", 200), ("HEAD", 200), ("PATCH", 204), ("PUT", 204), ("BREW", 405)] {
            assert_eq!(status(method, at), expected, "{method}");
        }
        assert_eq!((status("DELETE", b"/a"), status("DELETE", at), status("DELETE", at)), (404, 204, 404));
        assert_eq!((status("GET", at), status("PATCH", at), status("BREW", at)), (404, 404, 404));
        assert_eq!(forms.table.resources(), 0);
        assert_eq!((status("POST", b"*"), status("POST", b"")), (404, 201));
    }

    #[test]
    fn a_location_names_no_host() {
        let forms = forms(Service::Crud(Crud::default()));
        let mut out = Vec::new();
        let created = forms.table.ask(b"POST", b"//users", &[]);
        forms.table.answer(&created, 0, 0).write(false, Persistence::Keep, &mut out);
        let head = String::from_utf8(out).unwrap();
        let location = head.lines().find_map(|line| line.strip_prefix("location: ")).unwrap();
        assert!(location.starts_with("/users/"), "{location}");
        for target in [location.to_owned(), format!("/{location}")] {
            let asked = forms.table.ask(b"GET", target.as_bytes(), &[]);
            assert_eq!(forms.table.answer(&asked, 0, 0).form.status, 200, "{target}");
        }
    }

    #[test]
    fn faults_of_a_crud_service_are_bare() {
        let forms = forms(Service::Crud(Crud::default()));
        assert_eq!((forms.fault(503, 7).form.status, forms.fault(503, 7).form.sent_body(false)), (503, 0));
    }
}
