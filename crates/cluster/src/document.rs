//! The spec of a cluster as it is written: YAML or JSON, read as plan files are.
//!
//! The JSON Schema is generated from these types, and the descriptions in it are their comments.

use plimsoll_document::{DocumentFormat, Field, Keyed, Problems, Source, Text};
use schemars::JsonSchema;
use serde::de::{IgnoredAny, MapAccess, SeqAccess};
use serde::{Deserialize, Deserializer};

/// Document format of specs: names for messages and the schema, and short forms.
const FORM: DocumentFormat = DocumentFormat {
    noun: "spec",
    schema: "cluster",
    title: "The spec of a cluster for Plimsoll",
    short_forms: &[("LinkSpec", "port"), ("CheckSpec", "check")],
};

macro_rules! spec {
    ($(#[$outer:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty,)+ }) => {
        $(#[$outer])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name { $($(#[$doc])* pub $field: $type,)+ }
    };
}

spec! {
    /// A cluster: its nodes, its faults, and the checks afterwards.
    ///
    /// Texts may have `${…}`: `id`, `host`, `port.NAME`, `address.NAME`, `data`, `peers.NAME` and
    /// `peer.ID.NAME` of the node itself; `node.ID.NAME`, `nodes.NAME`, `leader.NAME` (the address of that
    /// port; with `.port` or `.host` behind it one part of it alone); `matrix.NAME`, a whole
    /// number made of some (`matrix.A / matrix.B`, rounded up, and `min(matrix.A, matrix.B)`), `spec` (the
    /// folder of this file) and `plimsoll` (this program).
    ClusterDocument {
        /// Name of the cluster. Default: the name of the file.
        name: Field<Text>,
        /// Purpose of the cluster. It has no effect.
        description: Field<Text>,
        /// Folder of everything that nodes leave, relative to the working directory. Default:
        /// `plimsoll-NAME`.
        directory: Field<Text>,
        /// When data of earlier runs are removed: at the `start` (default), at the `end`, too (`both`), or
        /// `never`. Only folders that were made by Plimsoll are.
        clean: Field<Text>,
        /// The nodes, in groups that are alike.
        nodes: Vec<Field<NodeSpec>>,
        /// Named sets of environment and arguments for all nodes, such as how durable storage is.
        profiles: Keyed<ProfileSpec>,
        /// The profile that is used. Default: none.
        profile: Field<Text>,
        /// Transport of connections to the nodes: `proxy` (default: nodes are on loopback, and faults of
        /// links are made by the fault proxy), `namespaces` (each node has a network of its own, in which
        /// packets are dropped and held back; needs root) or `auto` (`namespaces` if that is available).
        network: Field<Text>,
        /// Ports whose connections may be broken. With `proxy` they go through the fault proxy; with
        /// `namespaces` the default is everything between the nodes.
        links: Vec<Field<LinkSpec>>,
        /// Question that finds the leader.
        leader: Field<LeaderSpec>,
        /// Values of `${matrix.NAME}` where no suite gives others.
        parameters: Keyed<Field<Text>>,
        /// A plan that is carried out before the workload, and not reported: the name of its file, or the
        /// plan.
        preseed: Field<PlanText>,
        /// The plan of the load: the name of its file, or the plan.
        workload: Field<PlanText>,
        /// Faults that happen while the load goes on.
        faults: Vec<Field<FaultSpec>>,
        /// Seed of the random choices of faults. Default: 1.
        fault_seed: Field<Text>,
        /// Checks after the load.
        checks: Vec<Field<CheckSpec>>,
        /// Series of runs over values of parameters, by the names that `--suite` takes.
        suites: Keyed<SuiteSpec>,
    }
}

spec! {
    /// Nodes that are started in the same way.
    NodeSpec {
        /// Number of nodes. Default: 1, or as many as there are ids.
        count: Field<Text>,
        /// Ids of the nodes, for `${id}`. Default: 0, 1, 2…, counted over all groups.
        ids: Vec<Field<Text>>,
        /// The program.
        command: Field<Text>,
        /// Arguments of the program, each a text of its own.
        arguments: Vec<Field<Text>>,
        /// Arguments that follow once for each other node, with `${peer.id}` and `${peer.NAME}`.
        per_peer: Vec<Field<Text>>,
        /// Variables of its environment, beside those of ours.
        environment: Keyed<Field<Text>>,
        /// Data folder of a node, relative to the folder of the node. Default: `data`.
        data: Field<Text>,
        /// Ports of a node by name. 0 is chosen freely; else the first node of the group has this port, and
        /// the others those that follow.
        ports: Keyed<Field<Text>>,
        /// Signs that a node is ready; all have to be there. Default: the first port takes connections.
        ready: Vec<Field<ReadySpec>>,
        /// Time limit for becoming ready. Default: 30s.
        ready_within: Field<Text>,
        /// Pause before each of them is started. Default: none.
        delay: Field<Text>,
        /// `true` to start the next node only when this one is ready. Default: false.
        wait: Field<bool>,
        /// Time between SIGTERM and SIGKILL for a node that does not end. Default: 5s.
        grace: Field<Text>,
    }
}

spec! {
    /// A sign that a node is ready: one of `http`, `tcp` and `log`.
    ReadySpec {
        /// The path of a GET that is answered with `status`.
        http: Field<Text>,
        /// The port that is asked. Default: the first.
        port: Field<Text>,
        /// The status of the answer. Default: 200.
        status: Field<Text>,
        /// A JSON pointer (RFC 6901) into the answer.
        json: Field<Text>,
        /// The text that has to be there.
        equals: Field<Text>,
        /// The text that must not be there.
        not: Field<Text>,
        /// The name of a port that takes connections.
        tcp: Field<Text>,
        /// A text that a line of its log has.
        log: Field<Text>,
    }
}

spec! {
    /// A set of environment and arguments.
    ProfileSpec {
        /// Purpose of the profile. It has no effect.
        description: Field<Text>,
        /// Variables, above those of the nodes.
        environment: Keyed<Field<Text>>,
        /// Arguments after those of the nodes.
        arguments: Vec<Field<Text>>,
    }
}

/// A port whose connections may be broken. Written short, it is the port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LinkSpec {
    /// The name of the port.
    pub port: Field<Text>,
    /// Whose connections: those of `peers` (default), of the `load`, or `all`.
    pub from: Field<Text>,
}

spec! {
    /// Question that finds the leader: the nodes are asked in turn.
    LeaderSpec {
        /// The path of the question. Default: /raft/leader.
        path: Field<Text>,
        /// The port that is asked. Default: the first.
        port: Field<Text>,
        /// Place of the answer: an id of a node, or true from the leader itself. Default: /leader_id.
        pointer: Field<Text>,
        /// Time limit for finding a leader. Default: 30s.
        within: Field<Text>,
    }
}

spec! {
    /// Something that breaks.
    FaultSpec {
        /// `kill` (SIGKILL), `stop` (SIGSTOP), `restart` (SIGTERM and start), `disk_full`; and on links
        /// `isolate`, `partition`, `delay`, `reset`, `loss`, `bandwidth`, `half_open`.
        fault: Field<Text>,
        /// The nodes: ids, `leader`, `follower`, `random` or `all`. Default: `random`.
        target: Vec<Field<Text>>,
        /// `partition`: the nodes on one side; the others are on the other.
        side: Vec<Field<Text>>,
        /// When, since the start of the load.
        at: Field<Text>,
        /// Again after each such time.
        every: Field<Text>,
        /// By up to so much later, drawn for each time.
        jitter: Field<Text>,
        /// For how long. `kill` without it is for good.
        r#for: Field<Text>,
        /// Strength: a time (`delay`), a share (`loss`), bytes per second (`bandwidth`), bytes (`disk_full`:
        /// how large a file may be; default: as large as the largest is).
        amount: Field<Text>,
        /// `delay`: up to so much more, drawn for each piece or packet.
        spread: Field<Text>,
        /// Links of this port alone.
        port: Field<Text>,
    }
}

/// A check after the load. Written short, it is `check` alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CheckSpec {
    /// `convergence`: all nodes converge to the same content. `persistence`: it is the same after all nodes
    /// were killed and started again. `acknowledged`: every node has what was acknowledged of the load's
    /// writes, and nothing else. `staleness`: beside the load an item is changed and read, and no read is
    /// behind by more than `within`, or goes back in time. `writable`: the leader takes an `item`, shows
    /// it and deletes it, after the load and after a restart; it is checked without being asked for where the
    /// load writes to `list`. `error_share`: of the requests of the load outside of faults at most the share
    /// `most` failed or timed out; it is always checked.
    pub check: Field<Text>,
    /// The port that is asked. Default: the first.
    pub port: Field<Text>,
    /// The path that returns the number of items. Default: /api/products/count; `none`: not asked.
    pub count: Field<Text>,
    /// JSON Pointer of the number. Default: /count.
    pub count_pointer: Field<Text>,
    /// The path of the list. Default: /api/products.
    pub list: Field<Text>,
    /// JSON Pointer of its items. Default: /data.
    pub items: Field<Text>,
    /// JSON Pointer of the id of an item. Default: /id.
    pub id: Field<Text>,
    /// The parameter with the number of items of a page. Default: take.
    pub take: Field<Text>,
    /// The parameter with the number of items before a page. Default: skip.
    pub skip: Field<Text>,
    /// Items of a page. Default: 100000, or as many as the server gives.
    pub page: Field<Text>,
    /// Time limit of the check. Default: 30s; `writable`: 10s. `error_share`: for how long after its end a
    /// fault may still explain failed requests.
    pub within: Field<Text>,
    /// `writable`: what is created, a JSON object. Default: a product of Lithair's (`name`, `price`,
    /// `category`); of another `list` it has to be said. `none`: it is not checked.
    pub item: Field<Text>,
    /// `error_share`: the largest share. Default: 1%; `100%`: any.
    pub most: Field<Text>,
    /// `persistence`: files in the data folder of each node that have to be there and not be empty; `*`
    /// stands for anything but `/`, `**` for folders.
    pub files: Vec<Field<Text>>,
}

spec! {
    /// A series of runs.
    SuiteSpec {
        /// Purpose of the suite.
        description: Field<Text>,
        /// The values of parameters; each is combined with each. The parameter `profile` is the storage
        /// profile.
        matrix: Keyed<Vec<Field<Text>>>,
        /// `true` to give each run a cluster of its own, started on empty folders. Default: true; with
        /// `false` a run goes on with what the one before has left, unless that one could not be made.
        restart: Field<bool>,
        /// A plan that is carried out before, instead of that of the spec.
        preseed: Field<PlanText>,
        /// The plan of the load, instead of that of the spec.
        workload: Field<PlanText>,
    }
}

/// The name of a plan's file, or that a plan stands here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PlanText {
    /// The plan is written in the spec itself.
    #[default]
    Inline,
    /// The name of its file, relative to the spec's folder.
    File(String),
}

impl<'de> Deserialize<'de> for PlanText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = PlanText;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the name of a plan's file, or a plan")
            }
            fn visit_str<E>(self, name: &str) -> Result<PlanText, E> {
                Ok(PlanText::File(name.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PlanText, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(PlanText::Inline)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<PlanText, A::Error> {
                Err(serde::de::Error::custom("a plan is a mapping, or the name of its file"))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for PlanText {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PlanText".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": ["string", "object"]})
    }
}

impl ClusterDocument {
    /// Reads a spec, and reports everything that is wrong with its form. `None`: nothing could be read.
    pub fn read(source: &Source, problems: &mut Problems) -> Option<Self> {
        FORM.read(source, problems)
    }

    /// The JSON Schema (2020-12) of specs.
    pub fn schema() -> serde_json::Value {
        FORM.schema::<Self>()
    }
}
