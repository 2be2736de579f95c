//! Audit of servers: do they have the writes that they acknowledged? Every write of a load is noted while it
//! goes on, and compared with the server's contents afterwards.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_cluster::pages::{self, Pages};
use plimsoll_consistency::{Counts, Evidence, Findings, Ledger, Resource, Write};
use plimsoll_core::{Nanos, figure};
use plimsoll_document::Problem;
use plimsoll_metrics::FailedExchange;
use plimsoll_plan::PlanPatch;
use plimsoll_report::reconciliation::{ACKNOWLEDGED, ConsistencyFinding};
use plimsoll_scenario::Needs;
use plimsoll_scenario::pointer::JsonPointer;
use plimsoll_scenario::reference::path_of;
use plimsoll_system::clock;
use serde_json::{Value, json};

use crate::base::failure::Failure;
use crate::base::messages;
use crate::session::live::request_log::WriteListener;
use crate::workload::auxiliary_request::answers_with;

/// Bytes of a page from which on it is not kept whole.
const LONGEST_PAGE: usize = Needs::LONGEST_BODY;
/// Time between two progress messages while a list is read.
const PROGRESS: Nanos = Nanos::from_secs(2);

/// Notes the writes of a load on one resource.
#[derive(Clone)]
pub(crate) struct WriteTracker {
    ledger: Arc<Mutex<Ledger>>,
    listing: Listing,
    flags: PlanPatch,
    quiet: bool,
}

/// Location and paging of the list of all items of a server.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    /// Path of the collection, behind that of the server's URL.
    pub(crate) path: String,
    /// The place of the items in a page that is not an array itself: a JSON Pointer.
    pub(crate) items: String,
    /// The parameter with the number of items of a page, and the one with those before it.
    pub(crate) parameters: [String; 2],
    /// Items of a page.
    pub(crate) page: u64,
}

impl Listing {
    /// The audit of the collection at a path, as Lithair has it.
    pub(crate) fn new(path: &str) -> Self {
        let parameters = ["take".to_owned(), "skip".to_owned()];
        Self { path: path.to_owned(), items: "/data".to_owned(), parameters, page: pages::LARGEST }
    }

    fn page_at(&self, take: u64, skip: u64) -> String {
        let Self { path, parameters: [take_name, skip_name], .. } = self;
        let separator = if path.contains('?') { '&' } else { '?' };
        format!("{path}{separator}{take_name}={take}&{skip_name}={skip}")
    }
}

/// Pause between two looks.
const LOOK: Nanos = Nanos::from_millis(500);

impl WriteTracker {
    /// One for the collection of a server, the id of whose items is at a JSON Pointer; with flags that say
    /// how servers are reached. Unless `quiet`, it reports its progress.
    pub(crate) fn new(
        server: &str,
        listing: Listing,
        id: &str,
        flags: PlanPatch,
        quiet: bool,
    ) -> Result<Self, Failure> {
        let behind_scheme = server.split_once("://").map_or(server, |(_, rest)| rest);
        let base = behind_scheme.find('/').map_or("", |at| behind_scheme[at..].trim_end_matches('/'));
        let path = listing.path.split('?').next().unwrap_or_default();
        let resource = Resource::new(&format!("{base}{path}"), id).map_err(|error| {
            let problem = Problem::new(format!("the id of an item: {error}"));
            Failure::usage(match error.hint() {
                Some(hint) => problem.with_hint(hint),
                None => problem,
            })
        })?;
        let ledger = Arc::new(Mutex::new(Ledger::new(resource)));
        Ok(Self { ledger, listing, flags, quiet })
    }

    /// Notes the items of a server before the load; returns their number.
    pub(crate) fn note_before(&self, origin: &str) -> Result<u64, Failure> {
        let mut nameless = 0;
        let count = self.each_item(origin, |item| {
            nameless += u64::from(!self.ledger().note_before(item));
        })?;
        if nameless > 0 {
            let problem =
                Problem::new(format!("{nameless} items of {origin}{} have no id", self.listing.path));
            return Err(Failure::environment(problem.with_hint("say with --id where it is, as in /id")));
        }
        Ok(count)
    }

    /// Returns the receiver of the writes.
    pub(crate) fn listener(&self) -> WriteListener {
        let ledger = Arc::clone(&self.ledger);
        Box::new(move |exchanges| {
            let mut ledger = ledger.lock().unwrap_or_else(PoisonError::into_inner);
            exchanges.iter().for_each(|exchange| note(&mut ledger, exchange));
        })
    }

    /// Compares the items of a server with the acknowledged writes.
    fn audit(&self, origin: &str) -> Result<Findings, Failure> {
        // The load is over, so the lock is free.
        let ledger = self.ledger();
        let mut audit = ledger.audit();
        self.each_item(origin, |item| audit.item(item))?;
        Ok(audit.end())
    }

    /// Compares the items of servers with the acknowledged writes, and returns the findings. Followers lag,
    /// and all of them together have this time to catch up.
    pub(crate) fn audit_all(
        &self,
        servers: &[String],
        within: Nanos,
    ) -> Result<Vec<ConsistencyFinding>, Failure> {
        let say = messages::say(self.quiet);
        let mut all = vec![self.of_writes()];
        all.extend(self.none_acknowledged());
        let start = clock::monotonic();
        for server in servers {
            say(&format!("comparing {server} with the acknowledged writes"));
            let begun = clock::monotonic();
            let findings = loop {
                let findings = self.audit(server)?;
                let now = clock::monotonic();
                if findings.is_consistent() || now - start >= within {
                    break findings;
                }
                clock::sleep_until(now + LOOK);
            };
            all.push(finding(server, &findings, begun));
        }
        Ok(all)
    }

    /// Returns the finding on all servers together: the number of writes, and the ids that were given twice.
    /// The finding does not pass if an id was given twice.
    fn of_writes(&self) -> ConsistencyFinding {
        let ledger = self.ledger();
        let counts = ledger.counts();
        let Counts {
            created,
            updated,
            deleted,
            refused,
            uncertain,
            nameless,
            elsewhere,
            undelivered,
            reissued,
        } = counts;
        let mut said = format!(
            "acknowledged: {created} creates, {updated} updates, {deleted} deletes; {refused} refused, {uncertain} \
             uncertain"
        );
        for (count, what) in [
            (nameless, "creates were answered without an id, and are known by their content alone"),
            (
                undelivered,
                "writes were redirected to a server that could not be reached, and changed nothing",
            ),
            (elsewhere, "writes went to something else, and are not followed"),
            (reissued, "ids were given twice"),
        ] {
            if count > 0 {
                said.push_str(&format!("; {count} {what}"));
            }
        }
        let evidence = ledger.reissued().map(|id| format!("given twice: {id}")).collect();
        ConsistencyFinding::new("writes", reissued == 0, Nanos::ZERO, said, evidence)
    }

    /// Returns the finding that writes were tried and none was acknowledged: such a load has shown nothing of
    /// the resource, and what the server has differs from nothing that it said.
    fn none_acknowledged(&self) -> Option<ConsistencyFinding> {
        let Counts { created, updated, deleted, refused, uncertain, elsewhere, undelivered, .. } =
            self.ledger().counts();
        let tried = refused + uncertain + elsewhere + undelivered;
        (created + updated + deleted == 0 && tried > 0).then(|| {
            let said = format!("0 of {tried} writes were acknowledged; nothing was shown of the contents");
            ConsistencyFinding::new(ACKNOWLEDGED, false, Nanos::ZERO, said, Vec::new())
        })
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes every item of a server to `each`, while nothing is written; returns their number.
    fn each_item(&self, origin: &str, mut each: impl FnMut(&[u8])) -> Result<u64, Failure> {
        let items = JsonPointer::parse(&self.listing.items).unwrap_or_default();
        let say = messages::say(self.quiet);
        let mut said = clock::monotonic();
        let mut pages = Pages::of(self.listing.page);
        loop {
            let steps: Vec<Value> = pages
                .pages()
                .into_iter()
                .map(|(take, skip)| json!({ "get": self.listing.page_at(take, skip) }))
                .collect();
            if steps.is_empty() {
                return Ok(pages.items());
            }
            let answers = match answers_with(origin, &steps, self.flags.clone(), LONGEST_PAGE, |_| {}) {
                Ok(answers) => answers,
                // The page may be too large to be answered in time.
                Err(failure) => match pages.shrink() {
                    true => continue,
                    false => return Err(failure),
                },
            };
            for answer in &answers {
                let is_whole = answer.status == 200 && answer.cut == 0 && answer.body.len() < LONGEST_PAGE;
                // The later pages assume that this one was complete, so they are dropped with it.
                if pages.pages().is_empty() || (!is_whole && pages.shrink()) || !pages.is_new(&answer.body) {
                    break;
                }
                let count = if is_whole { items_of(&answer.body, &items, &mut each) } else { None };
                let Some(count) = count else {
                    let problem = Problem::new(format!(
                        "the answer of {origin}{} is not a list of items: status {}",
                        self.listing.path, answer.status
                    ));
                    let hint =
                        "it must be an array, or an object with one (`data`), and support `take` and `skip`";
                    return Err(Failure::environment(problem.with_hint(hint)));
                };
                pages.came(count);
            }
            let now = clock::monotonic();
            if now - said >= PROGRESS {
                said = now;
                say(&format!("{} items of {origin} so far", figure::count(pages.items())));
            }
        }
    }
}

/// Passes the items of a page to `each` in turn: of an array, or of the one that an object has there. Returns
/// their number.
fn items_of(page: &[u8], place: &JsonPointer, each: &mut impl FnMut(&[u8])) -> Option<u64> {
    let whole = JsonPointer::default().find(page)?;
    let list = if whole.raw().first() == Some(&b'[') { whole } else { place.find(page)? };
    let mut count = 0;
    list.each_element(|item| {
        count += 1;
        each(item.raw());
        true
    })?;
    Some(count)
}

fn note(ledger: &mut Ledger, exchange: &FailedExchange) {
    let FailedExchange { entry, request, response, .. } = exchange;
    // A request that was never sent has changed nothing.
    let Some(service_time) = entry.service_time else { return };
    // The first server redirected the request, but nothing was written to the next one.
    if request.head.is_empty() && entry.status == 0 {
        return ledger.note_undelivered();
    }
    let head = String::from_utf8_lossy(&request.head);
    let (method, path) = asked(&head);
    let done = entry.unix.0.saturating_add(entry.response_time.0);
    ledger.note(&Write {
        method,
        path,
        request: &request.body,
        status: entry.status,
        response: &response.body,
        sent: done.saturating_sub(service_time.0),
        done,
    });
}

/// Method and path of a request: of its first line, or of its pseudo-header fields.
fn asked(head: &str) -> (&str, &str) {
    let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    match (field(":method:"), field(":path:")) {
        (Some(method), Some(path)) => (method, path),
        _ => {
            let mut words = head.lines().next().unwrap_or_default().split(' ');
            let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            // A proxy that forwards requests was told the whole URL; the rest of a text is a text.
            (method, std::str::from_utf8(path_of(target.as_bytes())).unwrap_or(target))
        }
    }
}

/// Converts the audit of a server to a finding of the result.
fn finding(server: &str, findings: &Findings, begun: Nanos) -> ConsistencyFinding {
    let Findings { stored, before, recovered, unchecked, .. } = findings;
    let kinds = [
        (&findings.missing, "missing", "acknowledged, and not there"),
        (&findings.gone, "gone", "there before, and not any more"),
        (&findings.wrong, "different", "not as it was acknowledged"),
        (&findings.resurrected, "undeleted", "its deletion was acknowledged"),
        (&findings.surplus, "surplus", "never sent"),
        (&findings.twice, "listed twice", "listed twice"),
    ];
    let mut said = format!("{server} has {stored} items");
    for (count, what) in [
        (before, "were there before"),
        (recovered, "of creates without an answer"),
        (unchecked, "not compared, for their writes overlapped"),
        (&findings.nameless, "without an id"),
    ] {
        if *count > 0 {
            said.push_str(&format!(", {count} {what}"));
        }
    }
    let mut evidence = Vec::new();
    for (Evidence { count, examples }, kind, what) in kinds {
        if *count > 0 {
            said.push_str(&format!("; {count} {kind}"));
            evidence.extend(examples.iter().map(|example| format!("{what}: {example}")));
            let more = count.saturating_sub(examples.len() as u64);
            if more > 0 {
                evidence.push(format!("and {more} more {kind}"));
            }
        }
    }
    let took = clock::monotonic() - begun;
    ConsistencyFinding::new("acknowledged writes", findings.is_consistent(), took, said, evidence)
}

#[cfg(test)]
mod tests {
    use plimsoll_core::{ErrorClass, Outcome};
    use plimsoll_metrics::LogEntry;

    use super::*;

    #[test]
    fn requests_are_read_in_both_spellings() {
        assert_eq!(asked("PUT /a/b?c HTTP/1.1\r\nHost: x"), ("PUT", "/a/b?c"));
        assert_eq!(asked(":method: PATCH\n:scheme: http\n:authority: x\n:path: /a"), ("PATCH", "/a"));
    }

    fn tracker() -> WriteTracker {
        let listing = Listing::new("/api/products");
        WriteTracker::new("http://a", listing, "/id", PlanPatch::default(), true).unwrap()
    }

    #[test]
    fn writes_redirected_to_a_dead_server_went_nowhere() {
        let entry = LogEntry {
            unix: Nanos::ZERO,
            step: 0,
            status: 0,
            outcome: Outcome::Failed(ErrorClass::ConnectRefused),
            response_time: Nanos::from_millis(2),
            service_time: Some(Nanos::from_millis(2)),
            bytes_received: 0,
            warmup: false,
            trace: None,
        };
        let books = tracker();
        note(&mut books.ledger(), &FailedExchange::bare(entry));
        let counts = books.ledger().counts();
        assert_eq!((counts.undelivered, counts.elsewhere, counts.uncertain), (1, 0, 0));
        let finding = books.of_writes();
        let said = "; 1 writes were redirected to a server that could not be reached, and changed nothing";
        assert!(finding.said.ends_with(said) && finding.passed, "{finding:?}");
        let none = books.none_acknowledged().expect("a load that wrote nothing shows nothing");
        assert!(none.said.starts_with("0 of 1 writes were acknowledged;") && !none.passed, "{none:?}");
        assert_eq!(tracker().none_acknowledged(), None);
    }

    #[test]
    fn pages_are_arrays_or_have_one() {
        let items = |page: &str| {
            let mut all = Vec::new();
            let data = JsonPointer::parse("/data").unwrap();
            let count = items_of(page.as_bytes(), &data, &mut |item: &[u8]| all.push(item.to_vec()));
            count.map(|count| (count, all.len()))
        };
        assert_eq!(items(r#"[{"id":1},{"id":2}]"#), Some((2, 2)));
        assert_eq!(items(r#"{"total":1,"data":[{"id":1}],"more":[3,4]}"#), Some((1, 1)));
        for wrong in ["{}", "3", r#"{"data":{}}"#, "<html>"] {
            assert_eq!(items(wrong), None, "{wrong}");
        }
    }
}
