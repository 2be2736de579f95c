//! Load on a REST resource: items are created, read, changed and deleted, at the leader of a cluster and at
//! the servers for reads.

use plimsoll_document::{
    BranchStep, Document, ExpectSpec, ExtractSpec, Field, Flags, Keyed, MadeDocument, RequestStep, Row,
    RowsStep, ScenarioSpec, SetStep, Settings, StepSpec, TargetSpec, Text,
};

use crate::WorkloadError;

/// Keys of the plan whose values are those of one flag of `plimsoll crud`.
const FLAGS: Flags = Flags::new(&[
    ("leader", "--leader"),
    ("reads", "--read-targets"),
    ("timeout", "--timeout-s"),
    ("read", "--read-path"),
    ("path", "--model or --path"),
    ("payload", "--payload"),
    ("changes", "--changes"),
    ("id", "--id"),
]);
/// The pool of created items.
const ITEMS: &str = "items";
/// The variable with the id of an item.
const ID: &str = "id";
/// Value of [`ID`] if the server has no id to give.
const NO_ID: &str = "none";
/// The variable with the changes to an item, set before its request.
const CHANGES: &str = "changes";
/// An item as the server has it.
const ITEM: &str = "item";
/// An item with its changes.
const MERGED: &str = "${merge(item,\"${changes}\")}";
/// Statuses of a request for an item that may exist or not.
const THERE_OR_NOT: [&str; 2] = ["2xx", "404"];
/// Items of one request, at most.
pub const LARGEST_BULK: u32 = 100_000;

/// Default template of an item.
const PRODUCT: &str = "{\"name\":\"lg_${sequence}_${random_int(0,4294967295)}\",\
    \"price\":${random_int(100,4999)}.99,\"category\":\"${pick(Electronics,Books,Clothing,Sports,Home,Beauty,Toys,Games,Health,Automotive)}\"}";
/// Default template of the changes to an item.
const PRODUCT_CHANGES: &str = "{\"price\":${random_int(100,4999)}.99}";

/// A workload on a REST resource.
#[derive(Clone, Debug, PartialEq)]
pub struct CrudLoad {
    /// URL of the server that takes writes, without a slash at its end.
    pub leader: String,
    /// URLs of the servers that are read from, likewise. Empty: the leader.
    pub read_targets: Vec<String>,
    /// Path that is read. It may name `${id}`: that of an item which was created.
    pub read_path: String,
    /// The resource.
    pub model: Model,
    /// Operations of the load.
    pub mode: Mode,
    /// Requests that change an item.
    pub update: Update,
    /// Size of the load.
    pub size: Size,
    /// Items that are created before the load, to be read, changed and deleted.
    pub preseed: u64,
}

/// Size of a load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Operations, or items where they are created in bulk; `None`: as long as the run lasts.
    pub total: Option<u64>,
    /// Requests in flight.
    pub concurrency: u32,
    /// Limit for a response, as a plan says it: `10s`.
    pub timeout: Option<String>,
}

/// A REST resource: its path, and the form of its items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// Path of the collection, without a slash at its end: `/api/products`.
    pub path: String,
    /// Template of the JSON object that creates an item.
    pub payload: String,
    /// Template of a JSON object with the changes to an item.
    pub changes: String,
    /// JSON Pointer to the id in the server's response to a creation.
    pub id: String,
}

/// Operations of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Items are created, one by one.
    Single,
    /// Items are created, this many with each request.
    Bulk(u32),
    /// Items are created (this many with each request), read, changed and deleted.
    Random(Shares, u32),
}

/// Relative frequencies of the operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Creating an item, or a bulk of them.
    pub create: u32,
    /// Reading the path.
    pub read: u32,
    /// Changing an item.
    pub update: u32,
    /// Deleting an item.
    pub delete: u32,
}

/// Requests that change an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Update {
    /// PUT with the whole item, as the server had it, with the changes.
    #[default]
    Put,
    /// GET of the item, and then that.
    ReadModifyWrite,
    /// PATCH with what changes.
    Patch,
}

/// Operation of a step of the plan, named at the start of the step's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Creates items.
    Create,
    /// Reads.
    Read,
    /// Changes an item.
    Update,
    /// Deletes an item.
    Delete,
    /// Asks the server for any id, because nothing is known that was created.
    RandomId,
    /// Reads an item in order to change it.
    ReadFirst,
}

impl Operation {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Self; 6] =
        [Self::Create, Self::Read, Self::Update, Self::Delete, Self::RandomId, Self::ReadFirst];

    /// Returns the name of the operation, with which the name of its step begins.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Read => "READ",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::RandomId => "RANDOM-ID",
            Self::ReadFirst => "READ-FIRST",
        }
    }

    /// Returns the operation of the step with this name; `None` if the name begins with no operation.
    pub fn of_step(name: &str) -> Option<Self> {
        let first = name.split([',', ' ']).next()?;
        Self::ALL.into_iter().find(|operation| operation.name() == first)
    }
}

impl Shares {
    /// The default shares of a mix.
    pub const DEFAULT: Self = Self { create: 80, read: 15, update: 5, delete: 0 };

    /// The shares in percent of each other; `None` if nothing is to be done.
    ///
    /// Percentages that do not sum to 100 are scaled. One above 100 counts as it stands.
    pub fn in_percent(self) -> Option<[f64; 4]> {
        let all = [self.create, self.read, self.update, self.delete];
        let sum: u64 = all.iter().map(|&share| u64::from(share)).sum();
        (sum > 0).then(|| all.map(|share| f64::from(share) * 100.0 / sum as f64))
    }
}

impl Model {
    /// The resource of this name under `/api/`. By default its items are products.
    ///
    /// # Errors
    /// If the form of its items is unknown.
    pub fn new(name: &str, payload: Option<&str>, changes: Option<&str>) -> Result<Self, WorkloadError> {
        let (own, own_changes) = match name {
            "products" => (Some(PRODUCT), Some(PRODUCT_CHANGES)),
            _ => (None, None),
        };
        let Some(of_item) = payload.or(own) else {
            return Err(WorkloadError::new(
                format!("an item of `{name}` is not described"),
                "write --payload with a JSON object, in which ${random_int(1,9)} and other templates may stand",
            ));
        };
        // With a custom payload, all of it may change.
        let changes = changes.or(payload).or(own_changes).unwrap_or(of_item);
        Ok(Self {
            path: format!("/api/{name}"),
            payload: in_one_line(of_item),
            changes: in_one_line(changes),
            id: "/id".to_owned(),
        })
    }
}

/// In JSON, white space is as good as any other.
fn in_one_line(text: &str) -> String {
    text.trim().replace(char::is_control, " ")
}

impl Mode {
    /// Items of a create.
    pub const fn bulk_size(self) -> u32 {
        match self {
            Self::Single => 1,
            Self::Bulk(size) | Self::Random(_, size) => size,
        }
    }
}

impl CrudLoad {
    /// Returns the plan.
    ///
    /// # Errors
    /// If settings do not go together. Problems of the plan itself show when it is resolved.
    pub fn document(&self) -> Result<MadeDocument, WorkloadError> {
        let iterations = self.iterations();
        let mut run = Settings::default();
        // A connection without an iteration would be an error.
        let most = iterations.unwrap_or(u64::MAX).max(1);
        let concurrency = u64::from(self.size.concurrency).min(most);
        if self.reads_elsewhere() {
            // The number of requests in flight, wherever each of them goes.
            run.users = Field::text(concurrency.to_string());
            // Every server that is read from has as many as any other: requests go to connections in turn.
            let each = concurrency.next_multiple_of(self.read_targets.len().max(1) as u64);
            run.connections = Field::text((2 * each).to_string());
        } else {
            run.connections = Field::text(concurrency.to_string());
        }
        // The first request of a plan may create an item, which would be one too many.
        run.no_preflight = Field::new(true);
        if let Some(iterations) = iterations {
            run.iterations = Field::text(iterations.to_string());
        }
        if let Some(timeout) = &self.size.timeout {
            run.timeout = FLAGS.value("timeout", timeout);
        }
        let mut document = Document::default();
        document.name = Field::text("crud");
        document.run = Field::new(run);
        document.scenarios = self.scenarios()?.into_iter().map(Field::new).collect();
        document.targets.push("leader", TargetSpec::new(FLAGS.value("leader", &self.leader)));
        if self.reads_elsewhere() {
            let (first, more) = self.read_targets.split_first().unwrap_or((&self.leader, &[]));
            let mut pool = TargetSpec::new(FLAGS.value("reads", first));
            pool.share = more.iter().map(|url| FLAGS.value("reads", authority(url))).collect();
            if !pool.share.is_empty() {
                // Reads return to a server that comes back.
                pool.fail_back = Field::new(true);
            }
            document.targets.push("reads", pool);
        }
        Ok(MadeDocument { name: "the plan of `plimsoll crud`".to_owned(), document, flags: FLAGS })
    }

    /// The load that creates the initial items: `None` if that is nothing. It has the same items, and as many
    /// in one request.
    pub fn before(&self) -> Option<Self> {
        let mode = match self.mode.bulk_size() {
            1 => Mode::Single,
            size => Mode::Bulk(size),
        };
        let size = Size { total: Some(self.preseed), ..self.size.clone() };
        (self.preseed > 0).then(|| Self { mode, size, preseed: 0, ..self.clone() })
    }

    /// The name of the pool of items in the plan, and where the values of a row are in an item, as JSON
    /// Pointers, in the order of its columns. `None` if the plan has no use for it.
    pub fn rows(&self) -> Option<(&'static str, Vec<&str>)> {
        let id = self.model.id.as_str();
        self.needs_ids().then(|| (ITEMS, if self.needs_items() { vec![id, ""] } else { vec![id] }))
    }

    /// Iterations that the total comes to.
    fn iterations(&self) -> Option<u64> {
        let total = self.size.total?;
        Some(match self.mode {
            Mode::Bulk(size) => total.div_ceil(u64::from(size.max(1))),
            Mode::Single | Mode::Random(..) => total,
        })
    }

    /// Items of the last bulk, if they are fewer than those of the others, and the index of its iteration.
    fn rest(&self) -> Option<(u64, u32)> {
        let Mode::Bulk(size) = self.mode else { return None };
        let total = self.size.total?;
        let rest = total % u64::from(size.max(1));
        (rest > 0).then(|| (total / u64::from(size.max(1)), rest as u32))
    }

    /// Items that a step which has this name creates with a request.
    pub fn items_of(&self, step: &str) -> u64 {
        match (step.contains("the last"), self.rest()) {
            (true, Some((_, rest))) => u64::from(rest),
            _ => u64::from(self.mode.bulk_size()),
        }
    }

    /// Returns the items to have before the load so that updates and deletes always find one that is known,
    /// with this many requests at a time; `None` if no number is enough.
    ///
    /// Every request under way holds an item, or as many as it creates, and deletes use up more than creates
    /// make, or not.
    pub fn preseed_wanted(&self, at_once: u64) -> Option<u64> {
        let Mode::Random(shares, size) = self.mode else { return Some(0) };
        let Shares { create, read, update, delete } = shares;
        if update == 0 && delete == 0 {
            return Some(0);
        }
        let used_up = u64::from(delete).saturating_sub(u64::from(create) * u64::from(size));
        let all: u64 = [create, read, update, delete].into_iter().map(u64::from).sum();
        let used_up = match used_up {
            0 => 0,
            used_up => self.size.total?.saturating_mul(used_up).div_ceil(all),
        };
        let held = if create > 0 { u64::from(size) } else { 1 };
        let at_once = at_once.min(self.size.total.unwrap_or(u64::MAX));
        Some(used_up.saturating_add(at_once.saturating_mul(held)))
    }

    /// Returns `true` if reads have connections of their own, as many as the leader has.
    pub fn reads_elsewhere(&self) -> bool {
        !self.read_targets.is_empty() && matches!(self.mode, Mode::Random(shares, _) if shares.read > 0)
    }

    fn check(&self) -> Result<(), WorkloadError> {
        let size = self.mode.bulk_size();
        if size == 0 || size > LARGEST_BULK {
            return Err(WorkloadError::new(
                format!("{size} items do not fit one request"),
                format!("write a --bulk-size from 1 to {LARGEST_BULK}"),
            ));
        }
        if let Mode::Random(shares, _) = self.mode
            && shares.in_percent().is_none()
        {
            return Err(WorkloadError::new(
                "all shares of the mix are 0",
                "write --create-pct, --read-pct, --update-pct or --delete-pct",
            ));
        }
        let scheme = |url: &str| url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        if let Some(other) = self.read_targets.iter().find(|url| scheme(url) != scheme(&self.read_targets[0]))
        {
            return Err(WorkloadError::new(
                format!("`{other}` has another scheme than `{}`", self.read_targets[0]),
                "read targets are all http, or all https",
            ));
        }
        if let Some(url) = self.read_targets.iter().find(|url| path_of(url) != path_of(&self.read_targets[0]))
        {
            return Err(WorkloadError::new(
                format!("`{url}` has another path than `{}`", self.read_targets[0]),
                "read targets differ in host and port; --read-path has the path",
            ));
        }
        Ok(())
    }

    fn scenarios(&self) -> Result<Vec<ScenarioSpec>, WorkloadError> {
        self.check()?;
        let at_leader = |name: &str, steps: Vec<StepSpec>| {
            let mut scenario = ScenarioSpec::new(name, steps);
            scenario.target = Field::text("leader");
            scenario
        };
        let (shares, size) = match self.mode {
            Mode::Single => return Ok(vec![at_leader("create", vec![self.create(1)])]),
            Mode::Bulk(size) => return Ok(vec![at_leader("create", self.bulks(size))]),
            Mode::Random(shares, size) => (shares, size),
        };
        let mut all = Vec::new();
        for (name, share, steps) in [
            ("create", shares.create, self.create_and_keep(size)),
            ("read", shares.read, self.reads()),
            ("update", shares.update, self.updates()),
            ("delete", shares.delete, self.deletes()),
        ] {
            if share > 0 {
                let mut scenario = at_leader(name, steps);
                scenario.weight = Field::text(share.to_string());
                all.push(scenario);
            }
        }
        if let [only] = all.as_mut_slice() {
            only.weight = Field::Absent;
        }
        Ok(all)
    }

    /// Returns `true` if the ids of created items are used later.
    fn needs_ids(&self) -> bool {
        let Mode::Random(shares, _) = self.mode else { return false };
        shares.update > 0 || shares.delete > 0 || (shares.read > 0 && self.reads_items())
    }

    /// Returns `true` if whole items are kept with their ids.
    fn needs_items(&self) -> bool {
        matches!(self.mode, Mode::Random(shares, _) if shares.update > 0) && self.update == Update::Put
    }

    fn reads_items(&self) -> bool {
        self.read_path.contains("${id}")
    }

    /// The variables of a row of the pool.
    fn columns(&self) -> Row {
        let names: &[&str] = if self.needs_items() { &[ID, ITEM] } else { &[ID] };
        Row(names.iter().copied().map(Text::from).collect())
    }

    fn create(&self, items: u32) -> StepSpec {
        let Model { path, payload, .. } = &self.model;
        if items == 1 && !matches!(self.mode, Mode::Bulk(_)) {
            return write("CREATE", "POST", path, FLAGS.value("payload", payload));
        }
        // Each item of a bulk says which it is.
        let item = |number| payload.replace("${sequence}", &format!("${{sequence}}-{number}"));
        let all: Vec<String> = (0..items).map(item).collect();
        let all = FLAGS.value("payload", format!("[{}]", all.join(",")));
        write("CREATE", "POST", &format!("{path}/_bulk"), all)
    }

    /// Bulks of the same size, except for the last one.
    fn bulks(&self, size: u32) -> Vec<StepSpec> {
        let Some((index, rest)) = self.rest() else { return vec![self.create(size)] };
        let last = self.create(rest).named("CREATE, the last");
        if index == 0 {
            return vec![last];
        }
        vec![BranchStep::new(format!("${{sequence}} < {index}"), [self.create(size)], [last]).into()]
    }

    fn create_and_keep(&self, size: u32) -> Vec<StepSpec> {
        let mut create = self.create(size);
        if !self.needs_ids() {
            return vec![create];
        }
        let whole = self.needs_items().then(|| (ITEM, Field::text("")));
        let values = [(ID, FLAGS.value("id", &self.model.id))].into_iter().chain(whole);
        if size > 1 {
            let mut collected = Keyed::default();
            values.for_each(|(name, pointer)| collected.push(name, pointer));
            create.request_mut().collect.push(ITEMS, Field::new(collected));
            return vec![create];
        }
        for (name, pointer) in values {
            let mut value = ExtractSpec::default();
            value.json = pointer;
            create.extract.push(name, Field::new(value));
        }
        vec![create, self.keep()]
    }

    /// The step that keeps an item for other iterations.
    fn keep(&self) -> StepSpec {
        RowsStep::keep(ITEMS, self.columns()).into()
    }

    fn reads(&self) -> Vec<StepSpec> {
        let target = if self.reads_elsewhere() { "reads" } else { "leader" };
        let read = |name: &str| {
            let mut read = get(name, FLAGS.value("read", &self.read_path));
            read.target = Field::text(target);
            read
        };
        if !self.reads_items() {
            return vec![read("READ")];
        }
        // The server that is read may be behind the one that named the item.
        let any = read("READ of a random id").expecting(ExpectSpec::status(THERE_OR_NOT));
        let known = vec![read("READ")];
        vec![RowsStep::pick(ITEMS).into(), self.with_id(Operation::Read, known, vec![any])]
    }

    fn updates(&self) -> Vec<StepSpec> {
        let Model { payload, changes, .. } = &self.model;
        let key = if changes == payload { "payload" } else { "changes" };
        let mut set = SetStep::default();
        set.set.push(CHANGES, FLAGS.value(key, changes));
        let item = self.item_path();
        let first = |name: &str| {
            let mut read = get(name, FLAGS.value("path", item.as_str()));
            read.extract.push(ITEM, Field::new(ExtractSpec::json("")));
            read
        };
        let (mut known, any) = match self.update {
            Update::Patch => {
                let patch = |name| write(name, "PATCH", &item, Field::text("${changes}"));
                // Another worker may have deleted it meanwhile.
                (vec![patch("UPDATE")], vec![forgiving(patch("UPDATE of a random id"))])
            }
            Update::Put | Update::ReadModifyWrite => {
                let put = |name| write(name, "PUT", &item, Field::text(MERGED));
                // An item that is gone is not changed: the response without it has no id.
                let mut look = forgiving(first("READ-FIRST of a random id"));
                let mut id = ExtractSpec::default().or(NO_ID);
                id.json = FLAGS.value("id", &self.model.id);
                look.extract.push(ID, Field::new(id));
                let change = forgiving(put("UPDATE of a random id"));
                let any = vec![look, BranchStep::new(has_id(), [change], []).into()];
                match self.update {
                    Update::ReadModifyWrite => (vec![first("READ-FIRST"), put("UPDATE")], any),
                    _ => (vec![renewing(put("UPDATE"))], any),
                }
            }
        };
        known.push(self.keep());
        vec![set.into(), RowsStep::take(ITEMS).into(), self.with_id(Operation::Update, known, any)]
    }

    fn deletes(&self) -> Vec<StepSpec> {
        let delete = |name: &str| {
            let request = RequestStep::new("DELETE", FLAGS.value("path", self.item_path()));
            StepSpec::from(request).named(name)
        };
        // In a mix that creates items, it would mostly hit an item of this run that others hold or get: their
        // requests would fail.
        let creates = matches!(self.mode, Mode::Random(shares, _) if shares.create > 0);
        let any = (!creates).then(|| forgiving(delete("DELETE of a random id")));
        let any = any.into_iter().collect();
        vec![RowsStep::take(ITEMS).into(), self.with_id(Operation::Delete, vec![delete("DELETE")], any)]
    }

    /// Steps of an operation with an id of the pool; if it has none, others with any that the server knows.
    fn with_id(&self, operation: Operation, known: Vec<StepSpec>, any: Vec<StepSpec>) -> StepSpec {
        let name = format!("{} for {}", Operation::RandomId.name(), operation.name());
        let mut ask = get(&name, FLAGS.value("path", format!("{}/random-id", self.model.path)));
        // The list may also be empty.
        ask = ask.expecting(ExpectSpec::status(THERE_OR_NOT));
        ask.extract.push(ID, Field::new(ExtractSpec::json("/id").or(NO_ID)));
        let there = match self.needs_items() {
            true => format!("exists {ID} and exists {ITEM}"),
            false => format!("exists {ID}"),
        };
        let with_any = (!any.is_empty()).then(|| BranchStep::new(has_id(), self.by_pool(any), []).into());
        BranchStep::new(there, known, std::iter::once(ask).chain(with_any)).into()
    }

    /// Steps with an id that was found. Without a step that keeps items there is no pool to pick from, not
    /// even initial items: then this one goes by the pool.
    fn by_pool(&self, steps: Vec<StepSpec>) -> Vec<StepSpec> {
        match self.mode {
            Mode::Random(Shares { create: 0, update: 0, .. }, _) => vec![
                self.keep(),
                RowsStep::take(ITEMS).into(),
                BranchStep::new(format!("exists {ID}"), steps, []).into(),
            ],
            _ => steps,
        }
    }

    fn item_path(&self) -> String {
        format!("{}/${{{ID}}}", self.model.path)
    }
}

/// A request for a path.
fn get(name: &str, path: Field<Text>) -> StepSpec {
    StepSpec::from(RequestStep::new("GET", path)).named(name)
}

/// A request that sends JSON.
fn write(name: &str, method: &str, path: &str, body: Field<Text>) -> StepSpec {
    let mut request = RequestStep::new(method, FLAGS.value("path", path));
    request.headers.push("Content-Type", Field::text("application/json"));
    request.body.body = body;
    StepSpec::from(request).named(name).expecting(ExpectSpec::status(["2xx"]))
}

/// Makes the response to a PUT the item from then on. A server that does not send it has it as it was sent.
fn renewing(mut put: StepSpec) -> StepSpec {
    put.extract.push(ITEM, Field::new(ExtractSpec::json("").or(MERGED)));
    put
}

/// Returns the condition that an id was found.
fn has_id() -> String {
    format!("${{{ID}}} != {NO_ID}")
}

/// Makes a step accept that the item does not exist, since its id may come from anywhere.
fn forgiving(mut step: StepSpec) -> StepSpec {
    for (_, _, value) in &mut step.extract.0 {
        if let Field::Given(item, _) = value {
            *item = item.clone().or("{}");
        }
    }
    step.expecting(ExpectSpec::status(THERE_OR_NOT))
}

/// Host and port of a URL.
fn authority(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let authority = rest.split('/').next().unwrap_or(rest);
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
    match has_port {
        true => authority.to_owned(),
        false if scheme.eq_ignore_ascii_case("https") => format!("{authority}:443"),
        false => format!("{authority}:80"),
    }
}

/// Returns the part of a URL after scheme and authority.
fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/').map_or("", |at| &rest[at..])
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn written(load: &CrudLoad) -> Value {
        serde_json::to_value(load.document().unwrap().document).unwrap()
    }

    fn load(mode: Mode) -> CrudLoad {
        CrudLoad {
            leader: "http://a:1".to_owned(),
            read_targets: Vec::new(),
            read_path: "/api/products".to_owned(),
            model: Model::new("products", None, None).unwrap(),
            mode,
            update: Update::Put,
            size: Size { total: Some(105), concurrency: 8, timeout: None },
            preseed: 0,
        }
    }

    const ALL: Shares = Shares { create: 2, read: 1, update: 1, delete: 0 };

    #[test]
    fn a_bulk_that_is_not_full_is_the_last() {
        let bulk = load(Mode::Bulk(50));
        let document = written(&bulk);
        assert_eq!(document["run"], json!({ "connections": 3, "iterations": 3, "no_preflight": true }));
        let step = &document["scenarios"][0]["steps"][0];
        assert_eq!(step["if"], "${sequence} < 2");
        let items = |branch: &str| {
            let text = step[branch][0]["body"].as_str().unwrap().to_owned();
            let name = step[branch][0]["name"].as_str().unwrap().to_owned();
            (text.matches("\"name\":").count() as u64, bulk.items_of(&name))
        };
        assert_eq!((items("then"), items("else")), ((50, 50), (5, 5)));
        let full = CrudLoad { size: Size { total: Some(100), ..bulk.size.clone() }, ..bulk };
        assert_eq!(written(&full)["scenarios"][0]["steps"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn a_mix_has_what_has_a_share_and_keeps_what_is_needed() {
        let document = written(&load(Mode::Random(ALL, 1)));
        let scenarios = document["scenarios"].as_array().unwrap();
        let named: Vec<_> =
            scenarios.iter().map(|one| (one["name"].clone(), one["weight"].clone())).collect();
        assert_eq!(
            named,
            [(json!("create"), json!(2)), (json!("read"), json!(1)), (json!("update"), json!(1))]
        );
        assert_eq!(scenarios[0]["steps"][1], json!({ "keep": { "items": ["id", "item"] } }));
        let only_ids = written(&CrudLoad { update: Update::Patch, ..load(Mode::Random(ALL, 1)) });
        assert_eq!(only_ids["scenarios"][0]["steps"][1], json!({ "keep": { "items": "id" } }));
        let bulk = written(&load(Mode::Random(ALL, 3)));
        assert_eq!(
            bulk["scenarios"][0]["steps"][0]["collect"],
            json!({ "items": { "id": "/id", "item": "" } })
        );
        let reads = Shares { create: 0, read: 1, update: 0, delete: 0 };
        let alone = written(&load(Mode::Random(reads, 1)));
        assert_eq!(alone["scenarios"].as_array().unwrap().len(), 1);
        assert!(alone["scenarios"][0].get("weight").is_none());
        let none = Shares { read: 0, ..reads };
        assert!(load(Mode::Random(none, 1)).document().is_err());
        assert_eq!(ALL.in_percent(), Some([50.0, 25.0, 25.0, 0.0]));
    }

    #[test]
    fn items_that_are_wanted_before_a_load_are_those_that_it_uses_up_and_holds() {
        let shares = |[create, read, update, delete]: [u32; 4]| Shares { create, read, update, delete };
        for (percent, size, total, wanted) in [
            ([80, 20, 0, 0], 1, Some(105), Some(0)),
            ([80, 15, 5, 0], 1, Some(105), Some(8)),
            ([20, 5, 5, 70], 1, Some(100), Some(58)),
            ([20, 5, 5, 70], 4, Some(100), Some(32)),
            ([0, 0, 0, 1], 1, Some(100), Some(108)),
            ([0, 0, 1, 0], 1, Some(3), Some(3)),
            ([1, 0, 0, 2], 1, None, None),
            ([1, 0, 0, 1], 1, None, Some(8)),
        ] {
            let load = load(Mode::Random(shares(percent), size));
            let load = CrudLoad { size: Size { total, ..load.size.clone() }, ..load };
            assert_eq!(load.preseed_wanted(8), wanted, "{percent:?} {size} {total:?}");
        }
        assert_eq!(load(Mode::Bulk(5)).preseed_wanted(8), Some(0));
    }

    #[test]
    fn reads_elsewhere_have_a_pool_with_ports() {
        let targets = ["https://a", "https://b:1", "https://[::1]"].map(str::to_owned).to_vec();
        let elsewhere = CrudLoad { read_targets: targets, ..load(Mode::Random(ALL, 1)) };
        let document = written(&elsewhere);
        let reads = json!({ "url": "https://a", "share": ["b:1", "[::1]:443"], "fail_back": true });
        assert_eq!(document["targets"]["reads"], reads);
        assert_eq!((&document["run"]["users"], &document["run"]["connections"]), (&json!(8), &json!(18)));
        for wrong in ["http://b", "https://b/base"] {
            let mut elsewhere = elsewhere.clone();
            elsewhere.read_targets.push(wrong.to_owned());
            assert!(elsewhere.document().is_err(), "{wrong}");
        }
    }

    #[test]
    fn steps_say_what_they_do() {
        for (name, operation) in [
            ("CREATE", Operation::Create),
            ("CREATE, the last", Operation::Create),
            ("UPDATE of a random id", Operation::Update),
            ("READ-FIRST", Operation::ReadFirst),
            ("READ", Operation::Read),
            ("RANDOM-ID for DELETE", Operation::RandomId),
        ] {
            assert_eq!(Operation::of_step(name), Some(operation), "{name}");
        }
        assert_eq!(Operation::of_step("GET /"), None);
        let error = Model::new("orders", None, None).unwrap_err();
        assert!(error.hint().contains("--payload"));
        assert_eq!(Model::new("orders", Some("{\n}"), None).unwrap().payload, "{ }");
    }
}
