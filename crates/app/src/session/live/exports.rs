//! Figures for monitoring systems while a run goes on.
//!
//! The run control adds each interval to totals that are shared with the exporters, under a lock that is held
//! only as long as it takes to add or to copy some numbers. The port of Prometheus and the sender of OTLP
//! have threads of their own.

use core::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_core::Redaction;
use plimsoll_document::Problem;
use plimsoll_driver::Endpoint;
use plimsoll_engine::Progress;
use plimsoll_export::prometheus::Exposition;
use plimsoll_export::{Gauges, Pusher, Shared, Totals};
use plimsoll_http::serve::{Access, Reply, Request, ServeOptions, Server, serve};
use plimsoll_plan::Plan;
use plimsoll_report::result::ExportResult;

use crate::args::export::{ExportSpec, OtlpSpec};
use crate::base::messages::Notify;

/// All exporters of a run, for its lifetime.
pub(crate) struct Exporters {
    /// `None` without any exporter.
    totals: Option<Shared>,
    port: Option<Port>,
    sender: Option<Sender>,
    redaction: Redaction,
}

/// The port that a server of Prometheus asks.
struct Port {
    server: Server,
    asked: Arc<AtomicU64>,
}

/// Sender to a receiver of OTLP.
struct Sender {
    to: String,
    pusher: Pusher,
}

impl Exporters {
    /// Listens, and begins to send; says where.
    ///
    /// # Errors
    /// The address cannot be listened on, TLS cannot be spoken, or there is no thread.
    pub(crate) fn start(spec: &ExportSpec, plan: &Plan, say: &Notify) -> Result<Self, Problem> {
        let wanted = spec.prometheus.is_some() || spec.otlp.is_some();
        let totals: Option<Shared> =
            wanted.then(|| Arc::new(Mutex::new(Totals::new(plan.outline(), facts(plan)))));
        let mut this = Self { totals, port: None, sender: None, redaction: plan.redaction.clone() };
        let Some(totals) = &this.totals else { return Ok(this) };
        if let Some(listen) = spec.prometheus {
            let asked = Arc::new(AtomicU64::new(0));
            let (figures, count) = (Arc::clone(totals), Arc::clone(&asked));
            let options =
                ServeOptions { listen: Endpoint::Tcp(listen), access: access(listen), name: "prometheus" };
            let answer = move |request: &Request| answer(request, &figures, &count);
            let server = serve(options, Box::new(answer)).map_err(|error| {
                Problem::new(error.to_string()).with_hint("--prometheus 127.0.0.1:0 takes a free port")
            })?;
            say(&format!("metrics: http://{}/metrics", server.endpoint()));
            this.port = Some(Port { server, asked });
        }
        if let Some(OtlpSpec { receiver, every, resource }) = spec.otlp.clone() {
            let to = this.redaction.in_text(&receiver.to_string()).into_owned();
            let pusher = Pusher::start(receiver, resource, every, Arc::clone(totals))
                .map_err(|error| Problem::new(error.to_string()))?;
            this.sender = Some(Sender { to, pusher });
        }
        Ok(this)
    }

    /// Takes up the latest figures.
    pub(crate) fn note(&self, progress: &Progress<'_>) {
        let Some(totals) = &self.totals else { return };
        let gauges = Gauges {
            target_per_second: progress.target_per_second,
            paused: progress.paused,
            ..Gauges::default()
        };
        let mut totals = lock(totals);
        totals.add(progress.started_unix, progress.interval, gauges);
        if let Some(seen) = progress.machine {
            totals.watch(progress.facts, seen);
        }
    }

    /// Reports how the run ended, and returns the outcomes of the exports. A receiver that does not answer
    /// holds it up for two seconds at most.
    pub(crate) fn finish(self, valid: bool, say: &Notify) -> Vec<ExportResult> {
        if let Some(totals) = &self.totals {
            lock(totals).end(valid);
        }
        let mut results = Vec::new();
        if let Some(Port { server, asked }) = self.port {
            let to = format!("http://{}/metrics", server.endpoint());
            drop(server);
            let sent = asked.load(Ordering::Relaxed);
            results.push(ExportResult {
                kind: "prometheus".to_owned(),
                to,
                sent,
                failed: 0,
                last_error: None,
            });
        }
        if let Some(Sender { to, pusher }) = self.sender {
            let report = pusher.finish();
            let shown = |error: &String| self.redaction.in_text(error).into_owned();
            let last_error = report.last_error.as_ref().map(shown);
            if let Some(error) = &last_error {
                let all = report.sent + report.failed;
                say(&format!(
                    "warning: {} of {all} exports to {to} failed, the last one: {error}",
                    report.failed
                ));
            }
            results.push(ExportResult {
                kind: "otlp".to_owned(),
                to,
                sent: report.sent,
                failed: report.failed,
                last_error,
            });
        }
        results
    }
}

/// The clients that may read figures. On a loopback address a name other than `localhost` is that of a web
/// page which has made it lead here (DNS rebinding). Elsewhere servers of Prometheus ask for names, too, and
/// everybody in the network may.
const fn access(listen: SocketAddr) -> Access {
    if listen.ip().is_loopback() { Access::LocalReaders } else { Access::Anyone }
}

/// Returns the labels that tell this run from others.
fn facts(plan: &Plan) -> Vec<(&'static str, String)> {
    vec![
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("plan", plan.fingerprint().to_string()),
        ("seed", plan.seed.to_string()),
    ]
}

fn lock(totals: &Shared) -> MutexGuard<'_, Totals> {
    totals.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(request: &Request, totals: &Shared, asked: &AtomicU64) -> Reply {
    match (request.path.as_str(), request.method.as_str()) {
        ("/metrics", "GET" | "HEAD") => {
            let copy = lock(totals).clone();
            asked.fetch_add(1, Ordering::Relaxed);
            let exposition = Exposition::negotiated(request.accept.as_deref());
            let body = exposition.render(&copy.with_process());
            Reply::new(200, exposition.content_type(), body).with_field("vary", "accept")
        }
        ("/metrics", _) => Reply::problem(405, "/metrics is served to GET").with_field("allow", "GET, HEAD"),
        _ => Reply::problem(404, "no such path; the figures are at /metrics"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_loopback_no_web_page_reads_figures() {
        for (listen, expected) in [
            ("127.0.0.1:9464", Access::LocalReaders),
            ("[::1]:9464", Access::LocalReaders),
            ("0.0.0.0:9464", Access::Anyone),
            ("192.0.2.1:9464", Access::Anyone),
        ] {
            assert_eq!(access(listen.parse().unwrap()), expected, "{listen}");
        }
    }

    #[test]
    fn only_metrics_are_told_and_only_by_get() {
        let (totals, asked) = (Shared::default(), AtomicU64::new(0));
        let ask = |method: &str, path: &str| {
            let [method, path] = [method, path].map(str::to_owned);
            answer(&Request { method, path, ..Request::default() }, &totals, &asked)
        };
        let statuses = [("GET", "/metrics"), ("HEAD", "/metrics"), ("POST", "/metrics"), ("GET", "/")];
        assert_eq!(statuses.map(|(method, path)| ask(method, path).status), [200, 200, 405, 404]);
        assert_eq!(asked.load(Ordering::Relaxed), 2);
        assert_eq!(ask("GET", "/metrics").content_type, Exposition::Text.content_type());
    }
}
