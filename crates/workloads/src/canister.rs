//! Calls of a canister of the Internet Computer: queries, and updates whose outcome is waited for.

mod judge;
mod messages;
mod spec;

use plimsoll_document::{
    BranchStep, Document, Field, Flags, MadeDocument, PollSpec, RequestStep, ScenarioSpec, Settings,
    StepSpec, TargetSpec, Text,
};
use plimsoll_plan::body_value;

use crate::WorkloadError;
pub use judge::{CanisterNotes, CertificateSample, judges};
pub use messages::{FIRST_PRESIGNED, MESSAGE};
pub use spec::CanisterSpec;

/// The step of a query.
pub const QUERY: &str = "query";
/// The step that calls an update.
pub const SUBMIT: &str = "submit";
/// The step that asks for its outcome, until that is known.
pub const WAIT: &str = "wait";

/// The variable that is set while the outcome of a call is still to come.
const PENDING: &str = "call";

/// Keys of the plan whose values are those of one flag of `plimsoll canister`.
const FLAGS: Flags = Flags::new(&[
    ("url", "URL"),
    ("arg", "--payload"),
    ("arg_size", "--payload-size"),
    ("nonce_text", "--nonce"),
    ("key", "--pem-file"),
    ("expiry", "--expiry"),
    ("signers", "--signers"),
    ("every", "--poll-every"),
    ("Host", "--host"),
]);

/// Which endpoints replicas are asked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// All of version 2: an update is taken in, and then asked for.
    V2,
    /// Updates are answered at once where that is possible (version 3 of `call`); the rest is of version 2.
    V3,
    /// Version 4 of `call`, which is synchronous, too; the rest is of version 3.
    V4,
}

impl Api {
    /// Versions of `query`, `call` and `read_state`.
    const fn versions(self) -> [&'static str; 3] {
        match self {
            Self::V2 => ["v2", "v2", "v2"],
            Self::V3 => ["v2", "v3", "v2"],
            Self::V4 => ["v3", "v4", "v3"],
        }
    }
}

/// The argument of the calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// These bytes, hexadecimal.
    Hex(String),
    /// This many bytes (`1KB`). If the second field is `true`, they are random and differ in every call.
    Size(String, bool),
}

/// Load on a canister.
#[derive(Clone, Debug, PartialEq)]
pub struct CanisterLoad {
    /// URLs of the replicas or their gateways, which share the load evenly; at least one.
    pub urls: Vec<String>,
    /// Which endpoints are asked.
    pub api: Api,
    /// The canister, as text.
    pub canister: String,
    /// `true` for update calls, `false` for queries.
    pub updates: bool,
    /// Method of the canister.
    pub method: String,
    /// The argument.
    pub argument: Argument,
    /// `true` if each message has a nonce. `None`: only updates have one.
    pub nonce: Option<bool>,
    /// Text in the nonces, if they are to be those of the Internet Computer's generator.
    pub nonce_text: Option<String>,
    /// The file with the key that signs; `None` for unsigned messages.
    pub pem_file: Option<String>,
    /// Validity of a message, if it is not the usual one.
    pub expiry: Option<String>,
    /// Threads per worker that sign ahead.
    pub signers: u32,
    /// Length of the load, if it has one of its own.
    pub duration: Option<String>,
    /// Limit for the answer to a query or to the submission of an update.
    pub query_timeout: String,
    /// Limit for the outcome of an update, from when it is asked for.
    pub ingress_timeout: String,
    /// The first pause before the outcome is asked for once more; each is half as long again as the last one.
    pub poll_every: String,
    /// The name that replicas are asked by, if it is not that of the URL.
    pub host: Option<String>,
}

impl CanisterLoad {
    /// Returns the plan.
    ///
    /// # Errors
    /// There is no URL, or they differ by more than host and port. Problems of the plan itself show when it
    /// is resolved.
    pub fn document(&self) -> Result<MadeDocument, WorkloadError> {
        let Some((first, others)) = self.urls.split_first() else {
            return Err(WorkloadError::new("no replica is named", "name its URL"));
        };
        let alike: Option<Vec<&str>> = others.iter().map(|other| authority(other, first)).collect();
        let others = alike.ok_or_else(|| {
            let hint = "they share scheme and path, as in http://a:8080,http://b:8080";
            WorkloadError::new("the replicas are not asked in the same way", hint)
        })?;
        let mut target = TargetSpec::new(FLAGS.value("url", first));
        target.share = others.into_iter().map(|other| FLAGS.value("url", other)).collect();
        let mut run = Settings::default();
        // A request before the load would be in the canister's counter, but in no count of ours.
        run.no_preflight = Field::new(true);
        if let Some(duration) = &self.duration {
            run.duration = Field::text(duration);
        }
        let name = if self.updates { "update" } else { QUERY };
        let mut scenario = ScenarioSpec::new(name, self.steps());
        if let Some(host) = &self.host {
            scenario.headers.push("Host", FLAGS.value("Host", host));
        }
        let mut document = Document::default();
        document.name = Field::text("canister");
        document.targets.push("replica", target);
        document.run = Field::new(run);
        document.scenarios.push(Field::new(scenario));
        Ok(MadeDocument { name: "the plan of `plimsoll canister`".to_owned(), document, flags: FLAGS })
    }

    fn steps(&self) -> Vec<StepSpec> {
        let [query, call, state] = self.api.versions();
        let path = |version: &str, what: &str| format!("/api/{version}/canister/{}/{what}", self.canister);
        let request = |path: String, message: CanisterSpec| {
            let mut request = RequestStep::new("POST", Field::text(path));
            request.body.add(&MESSAGE, body_value(message));
            request
        };
        let message = self.message();
        if !self.updates {
            let mut step = StepSpec::from(request(path(query, "query"), message)).named(QUERY);
            step.timeout = Field::text(&self.query_timeout);
            return vec![step];
        }
        let mut submit = StepSpec::from(request(path(call, "call"), message)).named(SUBMIT);
        submit.timeout = Field::text(&self.query_timeout);
        let question = CanisterSpec { state: Field::new(true), ..CanisterSpec::default() };
        let mut wait = request(path(state, "read_state"), question);
        let mut poll = PollSpec::default();
        poll.every = FLAGS.value("every", &self.poll_every);
        poll.backoff = Field::text("1.5");
        poll.at_most = Field::text("5s");
        wait.poll = Field::new(poll);
        let mut wait = StepSpec::from(wait).named(WAIT);
        wait.timeout = Field::text(&self.ingress_timeout);
        vec![submit, BranchStep::new(format!("exists {PENDING}"), [wait], []).into()]
    }

    /// The message of a call.
    fn message(&self) -> CanisterSpec {
        let text = |key: &str, text: Option<&String>| -> Field<Text> {
            text.map_or(Field::Absent, |text| FLAGS.value(key, text))
        };
        let mut message = CanisterSpec::default();
        if self.updates {
            message.update = Field::text(&self.method);
            message.pending = Field::text(PENDING);
        } else {
            message.query = Field::text(&self.method);
        }
        message.id = Field::text(&self.canister);
        match &self.argument {
            Argument::Hex(bytes) if bytes.is_empty() => {}
            Argument::Hex(bytes) => message.arg = FLAGS.value("arg", bytes),
            Argument::Size(size, random) => {
                message.arg_size = FLAGS.value("arg_size", size);
                if *random {
                    message.random = Field::new(true);
                }
            }
        }
        message.nonce = self.nonce.map_or(Field::Absent, Field::new);
        message.nonce_text = text("nonce_text", self.nonce_text.as_ref());
        message.key = text("key", self.pem_file.as_ref());
        message.expiry = text("expiry", self.expiry.as_ref());
        let signers = self.signers.to_string();
        message.signers = text("signers", (self.signers != 1).then_some(&signers));
        message
    }
}

/// Host and port of a URL that differs from another one in nothing else.
fn authority<'u>(url: &'u str, other: &str) -> Option<&'u str> {
    fn parts(url: &str) -> (&str, &str, &str) {
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        (scheme, authority, path)
    }
    let ((scheme, authority, path), (same_scheme, _, same_path)) = (parts(url), parts(other));
    (scheme == same_scheme && path == same_path).then_some(authority)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn written(load: &CanisterLoad) -> Value {
        serde_json::to_value(load.document().unwrap().document).unwrap()
    }

    fn load() -> CanisterLoad {
        CanisterLoad {
            urls: vec!["http://a:1".to_owned()],
            api: Api::V4,
            canister: "aaaaa-aa".to_owned(),
            updates: false,
            method: "read".to_owned(),
            argument: Argument::Hex(String::new()),
            nonce: None,
            nonce_text: None,
            pem_file: None,
            expiry: None,
            signers: 1,
            duration: Some("20s".to_owned()),
            query_timeout: "30s".to_owned(),
            ingress_timeout: "240s".to_owned(),
            poll_every: "100ms".to_owned(),
            host: None,
        }
    }

    #[test]
    fn a_query_is_one_step() {
        let document = written(&load());
        assert_eq!(document["targets"], json!({ "replica": "http://a:1" }));
        let steps = &document["scenarios"][0]["steps"];
        assert_eq!(steps.as_array().map(Vec::len), Some(1));
        assert_eq!(steps[0]["post"], "/api/v3/canister/aaaaa-aa/query");
        assert_eq!(steps[0]["canister"], json!({ "query": "read", "id": "aaaaa-aa" }));
    }

    #[test]
    fn an_update_is_submitted_and_waited_for_unless_its_answer_says_it_all() {
        let update = CanisterLoad {
            updates: true,
            urls: vec!["http://a:1".to_owned(), "http://b:2".to_owned()],
            argument: Argument::Size("1KB".to_owned(), true),
            pem_file: Some("key.pem".to_owned()),
            signers: 2,
            host: Some("ic0.app".to_owned()),
            ..load()
        };
        for (api, submit, wait) in [(Api::V2, "v2", "v2"), (Api::V3, "v3", "v2"), (Api::V4, "v4", "v3")] {
            let document = written(&CanisterLoad { api, ..update.clone() });
            assert_eq!(document["targets"]["replica"], json!({ "url": "http://a:1", "share": ["b:2"] }));
            let scenario = &document["scenarios"][0];
            assert_eq!(scenario["headers"], json!({ "Host": "ic0.app" }));
            let [first, second] = scenario["steps"].as_array().unwrap().as_slice() else {
                panic!("two steps")
            };
            assert_eq!(first["post"], format!("/api/{submit}/canister/aaaaa-aa/call"));
            let message = json!({
                "update": "read", "id": "aaaaa-aa", "arg_size": "1KB", "random": true, "key": "key.pem",
                "signers": 2, "pending": "call",
            });
            assert_eq!(first["canister"], message);
            assert_eq!(second["if"], "exists call");
            assert_eq!(second["then"][0]["post"], format!("/api/{wait}/canister/aaaaa-aa/read_state"));
        }
    }

    #[test]
    fn without_replicas_that_are_alike_there_is_no_plan() {
        for urls in [vec![], vec!["http://a:1", "https://b:2"], vec!["http://a:1", "http://b:2/x"]] {
            let urls = urls.into_iter().map(str::to_owned).collect();
            let error = CanisterLoad { urls, ..load() }.document().unwrap_err();
            assert!(!error.hint().is_empty(), "{error}");
        }
    }
}
