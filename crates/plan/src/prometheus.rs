//! The Prometheus server that thresholds on queries are asked of: `--prom-url`.

use std::fmt;

use plimsoll_document::Problem;
use plimsoll_metrics::ThresholdSpec;

use crate::resolve::Resolver;
use crate::security::basic_authorization;
use crate::url::Url;
use crate::{Plan, PlanPatch};

/// Advice about the form of a server's URL.
const EXAMPLE: &str = "write it like http://prometheus:9090, or https://me:password@host/prometheus";

/// A Prometheus server that is asked for figures of the system under test.
#[derive(Clone, PartialEq, Eq)]
pub struct PrometheusServer {
    /// The base of its API, without credentials and without a slash at its end.
    pub url: String,
    /// The value of the field Authorization, if the URL had credentials.
    pub authorization: Option<String>,
}

/// Without the credentials.
impl fmt::Debug for PrometheusServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PrometheusServer").field(&self.url).finish()
    }
}

impl PrometheusServer {
    fn parse(text: &str) -> Result<Self, Problem> {
        let Url { scheme, authority, target, user_info, .. } = Url::parse(text, |tail| Ok(tail.to_owned()))?;
        if !matches!(scheme.scheme, "http" | "https") {
            let problem = Problem::new(format!("a Prometheus server is not spoken to by {}", scheme.scheme));
            return Err(problem.with_hint(EXAMPLE));
        }
        if target.contains(['?', '$']) {
            let problem = Problem::new("the URL of a Prometheus server has something behind its path");
            return Err(problem.with_hint(EXAMPLE));
        }
        let authorization = user_info.and_then(|user| match user.contains(':') {
            true => basic_authorization(&user),
            // A user without a password is legal in a URL.
            false => basic_authorization(&format!("{user}:")),
        });
        let path = target.trim_end_matches('/');
        Ok(Self { url: format!("{}://{authority}{path}", scheme.scheme), authorization })
    }
}

impl Resolver<'_> {
    /// Reads the address of the Prometheus server.
    pub(crate) fn prometheus(&mut self, patch: &PlanPatch) -> Option<Option<PrometheusServer>> {
        let Some(given) = &patch.prom_url else { return Some(None) };
        if given.reported {
            return None;
        }
        match PrometheusServer::parse(given.text.trim()) {
            Ok(server) => Some(Some(server)),
            // The text is not shown: it may have a password.
            Err(problem) => {
                let message = format!("{}: {}", given.by, problem.message);
                self.fail(Problem { message, ..problem }.at(given.place))
            }
        }
    }

    /// Refuses a query without a server, and a server without a query.
    pub(crate) fn check_queries(&mut self, patch: &PlanPatch, plan: &Plan) {
        let asks = plan.thresholds.iter().find(|spec| spec.query().is_some());
        match (asks, &patch.prom_url) {
            (Some(ThresholdSpec { threshold, .. }), None) => {
                let problem = Problem::new(format!("`{threshold}` names no Prometheus server to ask"));
                let hint = "name it with --prom-url (`prom_url` below `run` in a plan), as in \
                            --prom-url http://prometheus:9090";
                self.problems.push(problem.with_hint(hint));
            }
            (None, Some(given)) => {
                let problem = given.problem(format!("{} has no effect: no threshold is a query", given.by));
                self.problems
                    .push(problem.with_hint("give one, as in --threshold 'prom(rate(http_errors[1m]))<1'"));
            }
            _ => {}
        }
    }
}
