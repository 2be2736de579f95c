//! From a plan file to requests: targets, scenarios, programs, steps, variables and data sources.
//!
//! Names are collected first (targets, data sources and their columns, variables), so that a scenario can be
//! compiled in one walk over its steps. The walk knows at each step which variables have been set on every
//! way to it: reading another one is an error before the run.
//!
//! ```text
//! targets ──► servers ─┐
//! data ──► columns ────┼─► scenario: steps ──► drafts and instructions ──► [`Work`] ──► requests
//! variables ───────────┘
//! ```

mod added;
mod answer;
mod around;
mod body;
mod branch;
mod condition;
mod data;
mod extraction;
mod known;
mod matching;
mod multipart;
mod parallel;
mod pause;
mod poll;
mod pool;
mod recording;
mod repetition;
mod request;
mod rows;
mod scenario;
mod script;
mod server;
mod set;
mod step;
mod stream;
mod text;
mod token;
mod variables;
mod websocket;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use plimsoll_core::suggest;
use plimsoll_document::{Document, Field, LoadedDocument, Place, Problem, Text};
use plimsoll_scenario::token::Signer;
use plimsoll_scenario::{BodySupply, Constants, Fingerprint, Judge, Scope, TemplateError};

use crate::PlanPatch;
use crate::draft::{Requests, Work};
use crate::parts::BodyContext;
use crate::protocol::ProtocolPreference;
use crate::requests::{closes, from_template};
use crate::resolve::Resolver;
use crate::targets::Servers;
use around::Around;
use data::SourceDraft;
use pool::PoolDraft;
use recording::MetricDraft;
use script::ScriptText;
use server::NamedTarget;

/// Most scenarios of a plan.
const MOST_SCENARIOS: usize = 10_000;

/// State of the compilation of a plan file. Problems go to the resolver.
struct Compiler<'r, 'a> {
    resolver: &'r mut Resolver<'a>,
    loaded: &'r LoadedDocument,
    preference: &'r ProtocolPreference,
    /// `true` if nothing is wrong with the form of the plan.
    form_is_right: bool,
    /// Set once it was reported that a path has no server.
    misses_target: bool,
    /// Headers of every request: those of the run and its credentials.
    headers: Vec<(String, String)>,
    /// The values from the environment that functions were given so far.
    environment: BTreeMap<String, String>,
    /// The values of the secrets that were named so far.
    secrets: BTreeMap<String, String>,
    constants: Constants,
    /// Signers for `${token(name)}`.
    tokens: Vec<Arc<Signer>>,
    /// The names of all variables; a variable's position in it is its number.
    variables: Arc<[String]>,
    /// The numbers of the variables, by their names.
    numbers: HashMap<String, usize>,
    servers: Servers,
    targets: Vec<NamedTarget>,
    sources: Vec<SourceDraft>,
    scripts: Vec<ScriptText>,
    /// Supplies of the steps that were compiled so far.
    supplies: Vec<BodySupply>,
    /// Judges of the steps that were compiled so far.
    judges: Vec<Arc<dyn Judge>>,
    /// Pools that steps fill.
    pools: Vec<PoolDraft>,
    /// Metrics that the plan declares, followed by those that are only recorded.
    metrics: Vec<MetricDraft>,
    /// Number of steps that were compiled so far.
    steps: usize,
    around: Around,
}

impl Resolver<'_> {
    /// Compiles the scenarios of a plan file, whose form was [checked](Document::check). Headers,
    /// credentials and TLS settings of `patch` hold for all of their requests.
    pub(crate) fn compiled(
        &mut self,
        patch: &PlanPatch,
        document: &LoadedDocument,
        form_is_right: bool,
        preference: &ProtocolPreference,
    ) -> Option<Requests> {
        let routes = self.routes(patch);
        let headers = self.headers(patch, preference);
        let token = self.run_token(patch);
        let authorization = self.authorization(patch, token.as_ref()?.as_deref());
        let headers = headers.and_then(|headers| self.common_headers(patch, headers, authorization?));
        let everywhere = headers.iter().flatten().any(|(name, value)| closes(name, value));
        let known = self.problems.len();
        let is_elsewhere = patch.is_set_up_elsewhere;
        let (mut around, mut works) = (Around { is_elsewhere, ..Around::default() }, Vec::new());
        for (role, loaded) in around::parts(document) {
            let mut compiler = Compiler {
                resolver: self,
                loaded: &loaded,
                preference,
                form_is_right,
                misses_target: false,
                headers: headers.clone().unwrap_or_default(),
                environment: BTreeMap::new(),
                secrets: BTreeMap::new(),
                constants: Constants::default(),
                tokens: token.iter().flatten().cloned().collect(),
                variables: Arc::from([]),
                numbers: HashMap::new(),
                servers: std::mem::take(&mut around.servers),
                targets: Vec::new(),
                sources: Vec::new(),
                scripts: Vec::new(),
                supplies: Vec::new(),
                judges: Vec::new(),
                pools: Vec::new(),
                metrics: Vec::new(),
                steps: 0,
                around: Around { role, ..around },
            };
            works.push(compiler.work(patch));
            around = Around { servers: compiler.servers, ..compiler.around };
        }
        // Flags can be checked only if every server is known.
        let complete = works.into_iter().collect::<Option<Vec<Work>>>();
        let works = complete.filter(|_| self.problems.len() == known)?;
        let strays = works.iter().any(Work::strays);
        let targets = self.targets(patch, preference, &around.servers, routes, strays)?;
        headers?;
        let is_alone = works.len() == 1;
        let mut parts = works.into_iter().map(|work| {
            let part = Work { closes: everywhere, servers: around.servers.clone(), ..work };
            let requests = self.assemble(patch, part, targets.clone());
            // A server of the setup alone gets no connections of the load.
            if is_alone { requests } else { requests.asking_only() }
        });
        let Document { setup, teardown, .. } = &document.document;
        let mut beside = |is_there: bool| if is_there { parts.next().map(Box::new) } else { None };
        let setup = beside(!setup.is_empty());
        let refresh = around.every.zip(beside(around.every.is_some()));
        let teardown = beside(!teardown.is_empty());
        parts.next().map(|load| Requests { setup, refresh, teardown, ..load })
    }

    fn common_headers(
        &mut self,
        patch: &PlanPatch,
        mut headers: Vec<(String, String)>,
        authorization: Option<String>,
    ) -> Option<Vec<(String, String)>> {
        let Some(value) = authorization else { return Some(headers) };
        if headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
            let flag = patch.credentials().map_or("", |given| &given.by);
            let message = format!("the header `Authorization` and {flag} exclude each other");
            return self.fail(Problem::new(message));
        }
        headers.push(("Authorization".to_owned(), value));
        Some(headers)
    }
}

impl Compiler<'_, '_> {
    fn work(&mut self, patch: &PlanPatch) -> Option<Work> {
        let loaded = self.loaded;
        let document = &loaded.document;
        self.name_tokens();
        self.name_targets();
        self.name_sources();
        self.name_pools();
        self.name_metrics();
        self.name_variables();
        let mut names = HashSet::new();
        let mut scenarios = Vec::new();
        for (index, scenario) in document.scenarios.iter().enumerate() {
            if index == MOST_SCENARIOS {
                let problem = Problem::new(format!("there are more than {MOST_SCENARIOS} scenarios"));
                return self.fail(scenario.place(), problem.with_hint("take what differs from a data file"));
            }
            let name = self.scenario_name(index, scenario, &mut names);
            if let Some(spec) = scenario.get() {
                scenarios.extend(self.scenario(name, spec, scenario.place()));
            }
        }
        let complete = scenarios.len() == document.scenarios.len();
        let feeds = self.feeds();
        let metrics = self.finish_metrics();
        let mut pools = self.finish_pools();
        let leaves = self.leaving(&mut scenarios, &mut pools);
        let scripts = self.load_scripts(patch, &scenarios, &metrics);
        if self.variables.len() > usize::from(u16::MAX) + 1 {
            return self.fail(None, Problem::new("the plan has more than 65536 variables"));
        }
        if complete && scenarios.iter().all(|scenario| scenario.weight == 0) {
            let problem = Problem::new("the weights of all scenarios are 0: there is nothing to do");
            return self
                .fail(None, problem.with_hint("a scenario of weight 0 is left out: give one a share"));
        }
        scenarios.retain(|scenario| scenario.weight > 0);
        complete.then(|| Work {
            servers: Servers::default(),
            scenarios,
            variables: Arc::clone(&self.variables),
            feeds,
            pools,
            metrics,
            leaves,
            supplies: std::mem::take(&mut self.supplies),
            scripts,
            wrk: None,
            logic: self.logic(),
            constants: self.constants.clone(),
            tokens: self.tokens.clone(),
            closes: false,
        })
    }

    /// Identifies the scenarios of the plan file apart from their requests, with names in place of values
    /// from outside.
    fn logic(&self) -> Fingerprint {
        let document = &self.loaded.document;
        let mut hash = Fingerprint::EMPTY;
        // A document that was read from a file can be serialized, too.
        for part in [
            serde_json::to_vec(&document.variables),
            serde_json::to_vec(&document.scenarios),
            serde_json::to_vec(&document.scripts),
        ] {
            hash = hash.with_field(&part.unwrap_or_default());
        }
        self.scripts.iter().fold(hash, |hash, script| hash.with_field(&script.source))
    }

    /// Reports a problem with the form of the plan, unless its [form](Document::check) was found wrong
    /// before: then this is reported already, or follows from it.
    fn form<T>(&mut self, place: Option<Place>, problem: Problem) -> Option<T> {
        if self.form_is_right {
            self.report(place, problem);
        }
        None
    }

    /// Reports a problem at a place.
    fn report(&mut self, place: Option<Place>, problem: Problem) {
        self.resolver.problems.push(problem.at(place));
    }

    /// Reports a problem at a place; returns `None` for `return self.fail(…)`.
    fn fail<T>(&mut self, place: Option<Place>, problem: Problem) -> Option<T> {
        self.report(place, problem);
        None
    }

    /// Reports a problem with a template.
    fn fail_template<T>(&mut self, place: Option<Place>, error: &TemplateError) -> Option<T> {
        // An unknown name may be that of a column in a file that could not be read.
        if self.columns_are_unknown() && error.message().contains("unknown template slot") {
            return None;
        }
        // A wrong token was reported.
        if self.tokens_are_unknown() && error.message().contains("there is no token") {
            return None;
        }
        self.fail(place, from_template(error))
    }

    /// Parses a value, if it is there. `None`: it is, and is wrong.
    fn read<T, E: std::fmt::Display>(
        &mut self,
        field: &Field<Text>,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<Option<T>> {
        let context: &mut dyn BodyContext = self;
        context.read(field, parse)
    }

    /// Returns everything that templates may name, including secrets.
    fn scope<'s>(&'s self, variables: &'s [String], constants: &'s Constants) -> Scope<'s> {
        Scope {
            variables,
            constants: Some(constants),
            tokens: &self.tokens,
            patterns: Some(&self.resolver.patterns),
        }
    }
}

/// A switch that is off unless it is given.
fn is_on(field: &Field<bool>) -> bool {
    field.get().copied().unwrap_or(false)
}

/// `did you mean …?`, or the known words.
fn suggestion<'a>(word: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    match suggest::closest(word, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known: {}", known.collect::<Vec<_>>().join(", ")),
    }
}
