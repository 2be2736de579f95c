//! Requests before they are compiled: the same form for URLs and for plan files.

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_document::Place;
use plimsoll_metrics::MetricSpec;
use plimsoll_scenario::token::Signer;
use plimsoll_scenario::{
    Body, BodySupply, Constants, Dialect, FeedSpec, Fingerprint, ForwardProxy, Needs, Op, PoolSpec, Program,
    ReactionSpec, RequestBounds, RequestSpec, RequestTemplate, ResponseHandler, Scheme, Scope, ScriptSource,
    Shift, TemplateError, UrlScript,
};

use crate::requests::from_template;
use crate::resolve::Resolver;
use crate::targets::{Server, Servers, Targets};
use crate::{DynamicOrigins, ForeignRequest, PlanPatch, Scenario, Step, Target};

/// The request side of a plan.
pub(crate) struct Requests {
    pub(crate) scenarios: Vec<Scenario>,
    pub(crate) steps: Vec<Step>,
    pub(crate) targets: Vec<Target>,
    pub(crate) dynamic_origins: Option<Arc<DynamicOrigins>>,
    /// Variables of one iteration.
    pub(crate) variables: Arc<[String]>,
    /// The data sources.
    pub(crate) feeds: Vec<FeedSpec>,
    /// Pools of rows that iterations keep for each other.
    pub(crate) pools: Vec<PoolSpec>,
    /// Metrics that steps record values of.
    pub(crate) metrics: Vec<MetricSpec>,
    /// The pool whose rows the run leaves to its caller.
    pub(crate) leaves: Option<u16>,
    /// Supplies of bodies that are made for requests.
    pub(crate) supplies: Vec<BodySupply>,
    /// The tokens that are signed for them.
    pub(crate) tokens: Vec<Arc<Signer>>,
    /// The scripts, if there are any.
    pub(crate) scripts: Option<Arc<dyn ScriptSource>>,
    /// The script of wrk's that makes them.
    pub(crate) wrk: Option<Arc<dyn UrlScript>>,
    /// Identifies the scenarios of a plan file apart from their requests.
    pub(crate) logic: Fingerprint,
    /// `true` if a header asks for every connection to be closed.
    pub(crate) closes: bool,
    /// Requests of the setup, which is carried out once.
    pub(crate) setup: Option<Box<Requests>>,
    /// Requests of the refresh, which is carried out this often.
    pub(crate) refresh: Option<(Nanos, Box<Requests>)>,
    /// Requests of the teardown, which is carried out once.
    pub(crate) teardown: Option<Box<Requests>>,
}

impl Requests {
    /// Leaves out servers that no step asks.
    pub(crate) fn asking_only(mut self) -> Self {
        let mut asked: Vec<usize> = self.steps.iter().map(|step| step.target).collect();
        asked.sort_unstable();
        asked.dedup();
        for step in &mut self.steps {
            // Every target of a step is among them.
            step.target = asked.binary_search(&step.target).unwrap_or_default();
        }
        let all = self.targets.into_iter().zip(0..);
        self.targets = all
            .filter_map(|(target, number)| asked.binary_search(&number).is_ok().then_some(target))
            .collect();
        self
    }
}

/// Everything that is to be sent.
pub(crate) struct Work {
    pub(crate) servers: Servers,
    pub(crate) scenarios: Vec<ScenarioDraft>,
    /// Variables of one iteration.
    pub(crate) variables: Arc<[String]>,
    pub(crate) feeds: Vec<FeedSpec>,
    /// Pools of rows that iterations keep for each other.
    pub(crate) pools: Vec<PoolSpec>,
    /// Metrics that steps record values of.
    pub(crate) metrics: Vec<MetricSpec>,
    /// The pool whose rows the run leaves to its caller.
    pub(crate) leaves: Option<u16>,
    pub(crate) supplies: Vec<BodySupply>,
    pub(crate) scripts: Option<Arc<dyn ScriptSource>>,
    /// The script of wrk's among them.
    pub(crate) wrk: Option<Arc<dyn UrlScript>>,
    /// Identifies the scenarios of a plan file apart from their requests.
    pub(crate) logic: Fingerprint,
    /// `true` if a header asks for every connection to be closed.
    pub(crate) closes: bool,
    /// Values of `${secret(NAME)}` in the requests.
    pub(crate) constants: Constants,
    /// Signers for `${token(name)}`.
    pub(crate) tokens: Vec<Arc<Signer>>,
}

/// A scenario before its requests are compiled.
pub(crate) struct ScenarioDraft {
    pub(crate) name: String,
    pub(crate) drafts: Vec<Draft>,
    /// Program of the scenario; steps are counted from the scenario's first.
    pub(crate) ops: Vec<Op>,
    /// Number of the requests that these make.
    pub(crate) requests: RequestBounds,
    /// Number of its first instructions that are to give variables the values of the setup.
    pub(crate) given: usize,
    /// The variables that its steps set, and that have a value at its end for certain.
    pub(crate) set: Vec<u16>,
    pub(crate) weight: u32,
    pub(crate) start_after: Nanos,
}

/// One request before it is compiled.
pub(crate) struct Draft {
    pub(crate) name: String,
    pub(crate) dialect: Dialect,
    pub(crate) method: String,
    /// Path and query, or the key in a cache; a template.
    pub(crate) target: String,
    /// `host[:port]` for the Host header, unless the server is a pool.
    pub(crate) authority: String,
    /// Names and values; values are templates.
    pub(crate) headers: Vec<(String, String)>,
    /// Headers to send instead where its URL turns out to be that of another server; present if that is
    /// possible.
    pub(crate) away: Option<Vec<(String, String)>>,
    pub(crate) body: Body,
    /// `true` if the session's cookies are sent.
    pub(crate) cookies: bool,
    /// Index of its server.
    pub(crate) server: usize,
    /// Variables that its templates may name.
    pub(crate) variables: Arc<[String]>,
    pub(crate) handler: ReactionSpec,
    pub(crate) timeout: Option<Nanos>,
    pub(crate) deadline: Option<Nanos>,
    /// `true` if its iteration goes on after it has failed.
    pub(crate) goes_on: bool,
    /// Index of its script.
    pub(crate) script: Option<u32>,
    /// Records that it carries.
    pub(crate) records: u32,
    /// Place of the request in the plan file.
    pub(crate) place: Option<Place>,
}

impl Default for Work {
    fn default() -> Self {
        Self {
            servers: Servers::default(),
            scenarios: Vec::new(),
            variables: Arc::from([]),
            feeds: Vec::new(),
            pools: Vec::new(),
            metrics: Vec::new(),
            leaves: None,
            supplies: Vec::new(),
            scripts: None,
            logic: Fingerprint::EMPTY,
            wrk: None,
            closes: false,
            constants: Constants::default(),
            tokens: Vec::new(),
        }
    }
}

impl Draft {
    /// A request that is judged by its status alone; its server, authority and headers are still missing.
    pub(crate) fn new(name: String, method: String, target: String, body: Body) -> Self {
        Self {
            name,
            dialect: Dialect::Http,
            method,
            target,
            authority: String::new(),
            headers: Vec::new(),
            away: None,
            body,
            cookies: false,
            server: 0,
            variables: Arc::from([]),
            handler: ReactionSpec::default(),
            timeout: None,
            deadline: None,
            goes_on: false,
            script: None,
            records: 0,
            place: None,
        }
    }
}

impl Draft {
    /// Returns the specification that the request is compiled from. `forward` is the proxy that is handed
    /// requests of HTTP.
    pub(crate) fn spec(
        &self,
        server: &Server,
        keep_alive: bool,
        forward: Option<&ForwardProxy>,
    ) -> RequestSpec {
        RequestSpec {
            dialect: self.dialect.clone(),
            method: self.method.clone(),
            scheme: if server.url.is_secure() { Scheme::Https } else { Scheme::Http },
            target: self.target.clone(),
            authority: self.authority.clone(),
            authority_slot: server.is_pool(),
            headers: self.headers.clone(),
            cookies: self.cookies,
            body: self.body.clone(),
            keep_alive,
            // WebSockets go through a tunnel.
            forward: forward.filter(|_| self.dialect == Dialect::Http).cloned(),
        }
    }
}

impl Work {
    /// Returns `true` if a request may go to a server that becomes known only during the run.
    pub(crate) fn strays(&self) -> bool {
        let scripted = |draft: &Draft| match (self.scripts.as_deref(), draft.script) {
            (Some(scripts), Some(script)) => scripts.makes_requests(script),
            _ => false,
        };
        let mut drafts = self.scenarios.iter().flat_map(|scenario| &scenario.drafts);
        drafts.any(|draft| draft.away.is_some() || scripted(draft))
    }
}

impl ScenarioDraft {
    /// Requests one after the other, and nothing else.
    pub(crate) fn straight(name: String, drafts: Vec<Draft>) -> Self {
        let ops = (0..drafts.len() as u32).map(Op::Send).collect();
        let requests = RequestBounds::exactly(drafts.len() as u64);
        Self { name, drafts, ops, requests, given: 0, set: Vec::new(), weight: 1, start_after: Nanos::ZERO }
    }
}

impl Resolver<'_> {
    /// Compiles everything, for targets that are those of its servers.
    pub(crate) fn assemble(&mut self, patch: &PlanPatch, work: Work, targets: Targets) -> Requests {
        let mut requests = Requests {
            scenarios: Vec::with_capacity(work.scenarios.len()),
            steps: Vec::new(),
            targets: targets.all,
            dynamic_origins: targets.dynamic_origins,
            variables: work.variables,
            feeds: work.feeds,
            pools: work.pools,
            metrics: work.metrics,
            leaves: work.leaves,
            supplies: work.supplies,
            tokens: work.tokens,
            scripts: work.scripts,
            wrk: work.wrk,
            logic: work.logic,
            closes: work.closes,
            setup: None,
            refresh: None,
            teardown: None,
        };
        for scenario in work.scenarios {
            let ScenarioDraft { name, drafts, ops, requests: bounds, given, set: _, weight, start_after } =
                scenario;
            let start = requests.steps.len() as u32;
            // A script reads the response before its own, which may belong to any step of the scenario.
            let of_scripts = drafts.iter().filter_map(|draft| {
                let scripts = requests.scripts.as_deref()?;
                draft.script.map(|script| scripts.needs(script))
            });
            let before = of_scripts.fold(Needs::default(), |all, needs| union(&all, &needs));
            for draft in drafts {
                self.assemble_step(patch, &work.servers, &work.constants, draft, &mut requests);
            }
            for step in &mut requests.steps[start as usize..] {
                step.needs = union(&step.needs, &before);
            }
            let steps = start..requests.steps.len() as u32;
            let shift = Shift { steps: start, ..Shift::default() };
            let program = Program::with_requests(ops, bounds).map(|op| op.shifted(shift));
            requests.scenarios.push(Scenario { name, steps, program, given, weight, start_after });
        }
        for book in requests.targets.iter_mut().filter_map(|target| target.book.as_mut()) {
            book.seal();
        }
        requests
    }

    /// Compiles one request and adds it; reports it if it is wrong.
    fn assemble_step(
        &mut self,
        patch: &PlanPatch,
        servers: &Servers,
        constants: &Constants,
        draft: Draft,
        requests: &mut Requests,
    ) {
        let proxy = requests.targets[draft.server].proxy.clone();
        // For a target by https, too: a redirect may lead to one by http.
        let forward = proxy.as_ref().and_then(|proxy| proxy.forward.as_ref());
        let spec = draft.spec(servers.get(draft.server), !patch.disable_keepalive.is_on(), forward);
        let tokens = requests.tokens.clone();
        let (variables, patterns) = (&draft.variables, Some(&self.patterns));
        let scope = Scope { variables, constants: Some(constants), tokens: &tokens, patterns };
        let book = requests.targets[draft.server].book.as_mut();
        let request = RequestTemplate::compile(&spec, &scope, book);
        let handler = ResponseHandler::compile(&draft.handler, &scope);
        let (request, handler) = match (request, handler) {
            (Ok(request), Ok(handler)) => (request, handler),
            (Err(error), _) | (_, Err(error)) => {
                return self.problems.push(from_template(&error).at(draft.place));
            }
        };
        let away = match away(&draft, &spec, &scope) {
            Ok(away) => away,
            Err(error) => return self.problems.push(from_template(&error).at(draft.place)),
        };
        let scripts = requests.scripts.as_deref();
        let needs = match (scripts, draft.script) {
            (Some(scripts), Some(script)) => union(handler.needs(), &scripts.needs(script)),
            _ => handler.needs().clone(),
        };
        let with = |does: fn(&dyn ScriptSource, u32) -> bool| {
            draft.script.filter(|&script| scripts.is_some_and(|scripts| does(scripts, script)))
        };
        requests.steps.push(Step {
            name: draft.name,
            target: draft.server,
            request,
            logic: Fingerprint::EMPTY.with(format!("{:?}", draft.handler).as_bytes()),
            handler,
            needs,
            timeout: draft.timeout,
            deadline: draft.deadline,
            goes_on: draft.goes_on,
            make_script: with(|scripts, script| scripts.makes_requests(script)),
            check_script: with(|scripts, script| scripts.sees_responses(script)),
            records: draft.records,
            away,
        });
    }
}

/// The request where another server is asked than the step's target, if that may be.
fn away(
    draft: &Draft,
    spec: &RequestSpec,
    scope: &Scope<'_>,
) -> Result<Option<ForeignRequest>, TemplateError> {
    let Some(headers) = &draft.away else { return Ok(None) };
    let compile = |scheme| {
        let headers = headers.clone();
        let spec = RequestSpec { scheme, headers, authority_slot: true, ..spec.clone() };
        RequestTemplate::compile(&spec, scope, None).map(Arc::new)
    };
    Ok(Some(ForeignRequest { plain: compile(Scheme::Http)?, secure: compile(Scheme::Https)? }))
}

/// Returns the combined needs of both.
fn union(one: &Needs, other: &Needs) -> Needs {
    use plimsoll_scenario::FieldNeeds::{All, Named, Nothing};
    let fields = match (&one.fields, &other.fields) {
        (All, _) | (_, All) => All,
        (Nothing, fields) | (fields, Nothing) => fields.clone(),
        (Named(some), Named(more)) => {
            let new = more.iter().filter(|name| !some.contains(name));
            Named(some.iter().chain(new).cloned().collect())
        }
    };
    Needs {
        fields,
        body: one.body || other.body,
        events: one.events || other.events,
        in_turn: one.in_turn || other.in_turn,
        path: one.path || other.path,
        request: one.request || other.request,
    }
}
