//! The API: the reply to each request.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use core::net::SocketAddr;
use plimsoll_core::calendar;
use plimsoll_system::clock;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};

use crate::catalogue::{self, INVALID, Refusal};
use crate::change::{Change, Fate, New, Reply, What};
use crate::collection::Collection;
use crate::fields::{Fields, object};
use crate::identifier::{self, Identifiers};
use crate::lies::{FaultInjector, InjectedFault, LieKind};
use crate::node_status::NodeStatus;
use crate::proposer::{Outcome, Proposal};
use crate::query::Query;
use crate::views::Views;

/// Longest body of a request about one item, as in the real server.
const LONGEST: usize = 2 << 20;
/// Longest body of a bulk request.
const LONGEST_BULK: usize = 12 << 20;
const CREATED: u16 = 201;

/// Answers requests.
#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) id: u64,
    /// The address that this node listens on.
    pub(crate) http: SocketAddr,
    /// The addresses of the others, for clients.
    pub(crate) peers: HashMap<u64, SocketAddr>,
    pub(crate) views: Arc<Views>,
    pub(crate) node_status: watch::Receiver<NodeStatus>,
    pub(crate) proposals: mpsc::Sender<Proposal>,
    pub(crate) commit_timeout: Duration,
    pub(crate) injector: FaultInjector,
    pub(crate) ids: Identifiers,
}

/// A request, as far as it matters.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    /// `true` if the request declares its body to be JSON.
    pub(crate) is_json: bool,
    pub(crate) body: &'a [u8],
}

/// Response to a request. A body is JSON.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(&'static str, String)>,
    pub(crate) body: Option<String>,
}

impl Answer {
    pub(crate) fn json(status: u16, body: impl Into<String>) -> Self {
        Self { status, fields: Vec::new(), body: Some(body.into()) }
    }

    pub(crate) fn error(status: u16, error: &str) -> Self {
        Self::json(status, json!({ "error": error }).to_string())
    }

    fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.fields.push((name, value.to_string()));
        self
    }

    fn not_found() -> Self {
        Self::error(404, "Not found")
    }
}

/// Most bytes that the body of a request to this path may have.
pub(crate) fn longest_body(path: &str) -> usize {
    if path.ends_with("/_bulk") { LONGEST_BULK } else { LONGEST }
}

impl Api {
    pub(crate) async fn answer(&self, request: &Request<'_>) -> Answer {
        let Some(of_model) = request.path.strip_prefix("/api/") else {
            return self.about_node(request);
        };
        let (model, rest) = match of_model.split_once('/') {
            Some((model, rest)) => (model, Some(rest)),
            None => (of_model, None),
        };
        if !catalogue::is_model(model) || request.method == "HEAD" {
            return Answer::not_found();
        }
        match (rest, request.method) {
            (None, "GET") => self.list(model, request.query),
            (None, "POST") => self.write(request, || self.create(model, request)).await,
            (None, _) => refused_method("GET, POST"),
            (Some("_bulk"), "POST") => self.write(request, || self.create_all(model, request)).await,
            (Some("_bulk"), _) => refused_method("POST"),
            (Some("count"), "GET") => self.count(model),
            (Some("random-id"), "GET") => self.any_id(model),
            (Some("count" | "random-id"), _) => refused_method("GET"),
            (Some(id), "GET") => self.get(model, id),
            (Some(id), "PUT" | "PATCH") => self.write(request, || self.update(model, id, request)).await,
            (Some(id), "DELETE") => self.write(request, || self.delete(model, id)).await,
            (Some(_), _) => refused_method("GET, PUT, PATCH, DELETE"),
        }
    }

    fn about_node(&self, request: &Request<'_>) -> Answer {
        let body = match request.path {
            _ if request.method == "HEAD" => return Answer::not_found(),
            "/status" => self.status(),
            "/health" => json!({"status": "healthy"}),
            "/raft/leader" => self.leader(),
            "/_raft/health" => self.health(),
            "/_lies" => {
                let (told, total) = self.views.lies();
                let body = serde_json::to_string(&told).expect("lies are texts");
                return Answer::json(200, body).with("x-lies-total", total);
            }
            _ => return Answer::not_found(),
        };
        match request.method {
            "GET" => Answer::json(200, body.to_string()),
            _ => refused_method("GET"),
        }
    }

    fn status(&self) -> Value {
        let node_status = self.node_status.borrow();
        let leader = node_status.leader;
        json!({
            "raft": {
                "enabled": true,
                "is_leader": leader == Some(self.id),
                "leader_port": self.port_of(leader),
                "node_id": self.id,
                "peers": self.peers.len(),
                "leader_id": leader,
                "term": node_status.term,
                "last_applied": node_status.last_applied,
            },
            "service": "plimsoll-crud-node",
            "status": if leader.is_some() { "ready" } else { "electing" },
            "version": "1.0.0",
        })
    }

    fn leader(&self) -> Value {
        let leader = self.node_status.borrow().leader;
        json!({
            "is_current_node_leader": leader == Some(self.id),
            "leader_id": leader,
            "leader_port": self.port_of(leader),
            "node_id": self.id,
        })
    }

    fn health(&self) -> Value {
        let node_status = self.node_status.borrow();
        let followers = node_status.followers.iter();
        let followers =
            followers.map(|(id, matched)| json!({"node_id": id, "last_replicated_index": matched}));
        json!({
            "node_id": self.id,
            "cluster_peers": self.peers.len(),
            "term": node_status.term,
            "commit_index": node_status.last_applied,
            "last_applied": node_status.last_applied,
            "last_log": node_status.last_log,
            "followers": followers.collect::<Value>(),
        })
    }

    /// The port of its API; 0 as long as there is no leader.
    fn port_of(&self, leader: Option<u64>) -> u16 {
        match leader {
            Some(id) if id == self.id => self.http.port(),
            Some(id) => self.peers.get(&id).map_or(0, SocketAddr::port),
            None => 0,
        }
    }

    // Reads.

    fn list(&self, model: &str, query: &str) -> Answer {
        match Query::parse(query) {
            Ok(query) => {
                let found = self.read("list", model, None, |state| query.collect(state, model));
                Answer::json(200, query.page(found))
            }
            Err(why) => Answer::error(400, why),
        }
    }

    fn count(&self, model: &str) -> Answer {
        let count =
            self.read("count", model, None, |state| state.models.get(model).map_or(0, Collection::len));
        Answer::json(200, format!(r#"{{"count":{count}}}"#))
    }

    fn any_id(&self, model: &str) -> Answer {
        let any = self.views.look(|state| state.models.get(model)?.any(|bound| self.ids.below(bound)));
        match any {
            Some(id) => Answer::json(200, format!(r#"{{"id":"{}"}}"#, identifier::format(id))),
            None => Answer::error(404, "no ids available"),
        }
    }

    fn get(&self, model: &str, id: &str) -> Answer {
        let Some(id) = identifier::parse(id) else { return Answer::not_found() };
        match self.read("get", model, Some(id), |state| state.get(model, id).cloned()) {
            Some(item) => Answer::json(200, &*item),
            None => Answer::not_found(),
        }
    }

    fn read<T: PartialEq>(
        &self,
        operation: &str,
        model: &str,
        id: Option<u128>,
        read: impl Fn(&crate::state::State) -> T,
    ) -> T {
        self.views.read(clock::monotonic(), read, || InjectedFault {
            kind: LieKind::Stale,
            operation: operation.to_owned(),
            model: model.to_owned(),
            id: id.map(identifier::format),
            duplicate: None,
        })
    }

    // Writes.

    /// Appends and applies a write if this node leads; otherwise names the leader.
    async fn write(
        &self,
        request: &Request<'_>,
        make: impl FnOnce() -> Result<PreparedWrite, Answer>,
    ) -> Answer {
        let leader = self.node_status.borrow().leader;
        match leader {
            Some(id) if id == self.id => {}
            Some(id) => return self.redirect(request, id),
            None => return nobody_leads(),
        }
        if request.method != "DELETE" && !request.is_json {
            return Answer::error(415, "unsupported media type, expected application/json");
        }
        let PreparedWrite { change, created } = match make() {
            Ok(made) => made,
            Err(refusal) => return refusal,
        };
        let (done, is_done) = oneshot::channel();
        let outcome = async {
            match self.proposals.send(Proposal { change, done }).await {
                Ok(()) => is_done.await.unwrap_or(Outcome::Unknown),
                Err(_) => Outcome::NotLeader,
            }
        };
        match tokio::time::timeout(self.commit_timeout, outcome).await.unwrap_or(Outcome::Unknown) {
            Outcome::Committed(reply, index) => replied(reply, created).with("x-raft-index", index),
            Outcome::NotLeader => {
                let leader = self.node_status.borrow().leader;
                match leader.filter(|id| *id != self.id) {
                    Some(id) => self.redirect(request, id),
                    None => nobody_leads(),
                }
            }
            Outcome::Unknown => Answer::error(
                503,
                "Replication failed: no majority in time; the write may still be carried out",
            ),
        }
    }

    fn redirect(&self, request: &Request<'_>, leader: u64) -> Answer {
        let Some(address) = self.peers.get(&leader) else { return nobody_leads() };
        let mark = if request.query.is_empty() { "" } else { "?" };
        let url = format!("http://{address}{}{mark}{}", request.path, request.query);
        let body = json!({"message": "Redirected to leader", "leader_url": url});
        Answer::json(307, body.to_string()).with("location", url)
    }

    fn create(&self, model: &str, request: &Request<'_>) -> Result<PreparedWrite, Answer> {
        let fields = Fields::parse(request.body).ok_or_else(|| Answer::error(400, INVALID))?;
        let now = now();
        let (id, item) = self.item(model, &fields, &now).map_err(|why| Answer::error(400, why))?;
        let change = self.creation(model, &[(id, item.clone())]);
        Ok(PreparedWrite { change, created: Some(item) })
    }

    fn create_all(&self, model: &str, request: &Request<'_>) -> Result<PreparedWrite, Answer> {
        const INVALID_ARRAY: &str = "Invalid JSON array";
        let refuse = |why: Refusal| Answer::error(400, if why == INVALID { INVALID_ARRAY } else { why });
        let objects: Vec<Fields<'_>> = serde_json::from_slice(request.body).map_err(|_| refuse(INVALID))?;
        if objects.is_empty() {
            return Err(Answer::json(CREATED, "[]"));
        }
        let now = now();
        let items =
            objects.iter().map(|fields| self.item(model, fields, &now)).collect::<Result<Vec<_>, _>>();
        let items = items.map_err(refuse)?;
        let mut ids: Vec<u128> = items.iter().map(|(id, _)| *id).collect();
        ids.sort_unstable();
        if let Some(twice) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(exists(twice[0]));
        }
        let change = self.creation(model, &items);
        let mut created =
            String::with_capacity(items.iter().map(|(_, item)| item.len() + 1).sum::<usize>() + 2);
        for (number, (_, item)) in items.iter().enumerate() {
            created.push(if number == 0 { '[' } else { ',' });
            created.push_str(item);
        }
        created.push(']');
        Ok(PreparedWrite { change, created: Some(created) })
    }

    /// The id and the text of a new item.
    fn item(&self, model: &str, fields: &Fields<'_>, now: &str) -> Result<(u128, String), Refusal> {
        catalogue::check(model, fields, false)?;
        let id = catalogue::id(fields)?.unwrap_or_else(|| self.ids.next());
        Ok((id, object(&identifier::format(id), fields.others(), now, now)))
    }

    fn creation(&self, model: &str, items: &[(u128, String)]) -> Vec<u8> {
        let new = items.iter().map(|(id, item)| {
            let fate = if self.injector.lies(LieKind::Lose) {
                Fate::Lost
            } else if self.injector.lies(LieKind::Duplicate) {
                Fate::Duplicated(self.ids.next())
            } else {
                Fate::Stored
            };
            New { id: *id, item, fate }
        });
        Change { model, what: What::Create(new.collect()), lost: false }.encode()
    }

    fn update(&self, model: &str, id: &str, request: &Request<'_>) -> Result<PreparedWrite, Answer> {
        let id = identifier::parse(id).ok_or_else(Answer::not_found)?;
        let invalid = |why: Refusal| Answer::error(400, why);
        let fields = Fields::parse(request.body).ok_or_else(|| invalid(INVALID))?;
        let partly = request.method == "PATCH";
        catalogue::check(model, &fields, partly).map_err(invalid)?;
        let object = str::from_utf8(request.body).map_err(|_| invalid(INVALID))?;
        let at = &now();
        let what = if partly { What::Merge { id, object, at } } else { What::Replace { id, object, at } };
        Ok(PreparedWrite {
            change: Change { model, what, lost: self.injector.lies(LieKind::Lose) }.encode(),
            created: None,
        })
    }

    fn delete(&self, model: &str, id: &str) -> Result<PreparedWrite, Answer> {
        let id = identifier::parse(id).ok_or_else(Answer::not_found)?;
        let lost = self.injector.lies(LieKind::Resurrect);
        Ok(PreparedWrite {
            change: Change { model, what: What::Delete { id }, lost }.encode(),
            created: None,
        })
    }
}

/// A write that is ready for the log, and the reply to its client if it creates something.
struct PreparedWrite {
    change: Vec<u8>,
    created: Option<String>,
}

/// Builds the response to a write that was carried out.
fn replied(reply: Reply, created: Option<String>) -> Answer {
    match reply {
        Reply::Created => Answer { status: CREATED, fields: Vec::new(), body: created },
        Reply::Exists(id) => exists(id),
        Reply::Updated(item) => Answer::json(200, item),
        Reply::Deleted => Answer { status: 204, fields: Vec::new(), body: None },
        Reply::NotFound => Answer::not_found(),
        Reply::Incomplete => Answer::error(400, INVALID),
        Reply::OtherId => Answer::error(400, "The primary key must match the route and cannot be changed"),
        Reply::OtherCreation => Answer::error(400, "'created_at' is immutable and cannot be modified"),
    }
}

fn exists(id: u128) -> Answer {
    Answer::error(409, &format!("'id' must be unique: value \"{}\" already exists", identifier::format(id)))
}

fn nobody_leads() -> Answer {
    Answer::error(503, "no leader is known, retry after an election").with("retry-after", 1)
}

fn refused_method(allowed: &'static str) -> Answer {
    let body = json!({"error": "method not allowed", "allow": allowed});
    Answer::json(405, body.to_string()).with("allow", allowed)
}
/// The time of day, as items have it: `2026-03-01T12:00:00.250000Z`.
fn now() -> String {
    calendar::rfc3339(clock::unix(), 6)
}
