//! `--control`: the answers of the control port.

use core::net::SocketAddr;
use std::sync::Arc;

use plimsoll_driver::{BackendOptions, Endpoint, OpenEpoll};
use plimsoll_engine::{RateCommand, Stop};
use plimsoll_metrics::SteeredBy;
use plimsoll_plan::Problem;
use plimsoll_schedule::parse_rate;
use plimsoll_targets::{Access, CONTROL_FIELD, ControlOptions, ControlReply, ControlRequest, ControlServer};
use serde_json::{Value, json};

use crate::args::control::ControlSpec;
use crate::base::messages::Notify;
use crate::session::control::live_stats::LiveStats;
use crate::session::control::rate::{RateController, parse_preference, per_second, told};
use crate::session::live::growing_result::GrowingResult;

const HELP: &str = "\
GET  /stat             the latest figures, as JSON
GET  /result           the result as if the run ended now, as `run -o json` prints it at the end
POST /rate             set the rate, in iterations per second: 5000, 5k/s or {\"rate\":\"5k/s\"}
POST /pause            start nothing until /resume
POST /resume           go on
POST /stop             start nothing more, wait for what is in flight, report
POST /config?rps=100   set the requests per second on every connection, as h2loadrunner has it
                       (by GET, too, with --control-h2loadrunner or a token)
Without a token every POST bears a field that no web page can send: curl -H 'x-plimsoll-control: 1'
";

/// The port, as long as it lives.
#[derive(Debug)]
pub(crate) struct ControlPort {
    _server: ControlServer,
}

impl ControlPort {
    /// Listens, and says where.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub(crate) fn start(
        listen: SocketAddr,
        spec: &ControlSpec,
        controller: RateController,
        (live_stats, growing): (Arc<LiveStats>, GrowingResult),
        say: &Notify,
    ) -> Result<Self, Problem> {
        let access = spec.token.clone().map_or(Access::Local, Access::Token);
        let config_by_get = spec.h2loadrunner || spec.token.is_some();
        let options = ControlOptions { listen: Endpoint::Tcp(listen), access, name: "control" };
        let desk = RequestHandler { controller, live_stats, growing, config_by_get };
        // There is one request now and then, so epoll will do whatever the load runs on.
        let open = OpenEpoll(BackendOptions { receive_stamps: false, ..BackendOptions::default() });
        let server = ControlServer::start(options, open, Box::new(move |request| desk.answer(request)))
            .map_err(|error| {
                Problem::new(error.to_string()).with_hint("--control 127.0.0.1:0 takes a free port")
            })?;
        say(&format!("control: http://{}/", server.endpoint()));
        Ok(Self { _server: server })
    }
}

#[derive(Debug)]
struct RequestHandler {
    controller: RateController,
    live_stats: Arc<LiveStats>,
    growing: GrowingResult,
    /// `true` if GET /config changes the rate, as in h2loadrunner.
    config_by_get: bool,
}

impl RequestHandler {
    fn answer(&self, request: &ControlRequest) -> ControlReply {
        let reads = request.reads();
        let (may, reply): (_, Box<dyn FnOnce() -> ControlReply>) = match request.path.as_str() {
            "/" => ("GET", Box::new(|| ControlReply::text(200, HELP))),
            "/stat" => ("GET", Box::new(|| self.stat())),
            "/result" => ("GET", Box::new(|| self.result())),
            "/config" if request.method == "GET" && self.config_by_get => {
                ("GET", Box::new(|| self.config(&request.query)))
            }
            "/config" if reads => {
                let message = format!(
                    "{} changes nothing here, since a web page could send it: ask by POST with `{CONTROL_FIELD}: 1`, \
                     or start the run with --control-h2loadrunner",
                    request.method
                );
                return ControlReply::problem(405, &message).with_field("allow", "POST");
            }
            "/config" => ("POST", Box::new(|| self.config(&request.query))),
            "/rate" => ("POST", Box::new(|| self.rate(&request.body))),
            "/pause" => ("POST", Box::new(|| self.set_rate(RateCommand::Pause, None))),
            "/resume" => ("POST", Box::new(|| self.set_rate(RateCommand::Resume, None))),
            "/stop" => ("POST", Box::new(|| self.stop())),
            _ => return ControlReply::problem(404, "there is no such path; GET / names them"),
        };
        if request.method == may || (may == "GET" && reads) {
            return reply();
        }
        let message = format!("{} is asked for by {may}", request.path);
        ControlReply::problem(405, &message).with_field("allow", may)
    }

    fn stat(&self) -> ControlReply {
        let (status, figures) = (self.controller.control.status(), self.live_stats.figures());
        let stat = json!({
            "running": status.running,
            "stopping": self.controller.control.requested_stop() != Stop::No,
            "paused": status.paused,
            "target_per_s": status.target_per_second,
            "elapsed_s": figures.elapsed.as_secs_f64(),
            "end_s": figures.end.map(plimsoll_core::Nanos::as_secs_f64),
            "intervals": figures.intervals,
            "run": self.growing.run_id(),
        });
        ControlReply::json(200, format!("{stat}\n"))
    }

    fn result(&self) -> ControlReply {
        match self.growing.result(&self.controller.control).map(|result| serde_json::to_string(&result)) {
            Some(Ok(text)) => ControlReply::json(200, text + "\n"),
            Some(Err(error)) => ControlReply::problem(500, &error.to_string()),
            None => ControlReply::problem(
                409,
                "no request of the measured part has ended yet: ask again in a second",
            ),
        }
    }

    fn rate(&self, body: &str) -> ControlReply {
        let text = match rate_of(body) {
            Ok(text) => text,
            Err(problem) => return ControlReply::problem(400, &problem),
        };
        match parse_preference(&text) {
            Ok(command) => self.set_rate(command, None),
            Err(problem) => ControlReply::problem(400, &problem),
        }
    }

    /// h2loadrunner's `/config?rps=100`.
    fn config(&self, query: &str) -> ControlReply {
        let mut pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let Some((_, given)) = pairs.find(|(name, _)| *name == "rps") else {
            return ControlReply::problem(400, "say how many requests per second: /config?rps=100");
        };
        let per_connection = &self.controller.per_connection;
        let requests = match parse_rate(given) {
            Ok(rate) => rate,
            Err(_) if parse_preference(given) == Ok(RateCommand::Pause) => {
                return self.set_rate(RateCommand::Pause, None);
            }
            Err(error) => return ControlReply::problem(400, &error.to_string()),
        };
        let Some(total) = per_connection.total(requests) else {
            return ControlReply::problem(400, "the rate of all connections is too large");
        };
        let unit =
            if per_connection.iterations == per_connection.requests { "requests" } else { "iterations" };
        let note = format!(
            "{} requests on each of {} connections: {} {unit} in all",
            per_second(requests.per_second_f64()),
            per_connection.connections,
            per_second(total.per_second_f64()),
        );
        self.set_rate(RateCommand::To(total), Some(note))
    }

    fn set_rate(&self, command: RateCommand, note: Option<String>) -> ControlReply {
        match self.controller.control.set_rate(command, SteeredBy::Http) {
            Ok(change) => {
                let status = self.controller.control.status();
                let mut reply = json!({
                    "changed": change.is_some(),
                    "at_s": change.map(|change| change.at.as_secs_f64()),
                    "target_per_s": status.target_per_second,
                    "paused": status.paused,
                    "message": told(change),
                });
                if let (Some(note), Some(object)) = (note, reply.as_object_mut()) {
                    object.insert("note".to_owned(), Value::String(note));
                }
                ControlReply::json(200, format!("{reply}\n"))
            }
            // Not now, or not with this run.
            Err(error) => ControlReply::problem(409, &error.to_string()),
        }
    }

    fn stop(&self) -> ControlReply {
        self.controller.control.stop_by(SteeredBy::Http);
        ControlReply::json(200, format!("{}\n", json!({ "stopping": true })))
    }
}

/// The rate in a body: `{"rate": …}` with a text or a number, or the plain text.
fn rate_of(body: &str) -> Result<String, String> {
    let body = body.trim();
    if !body.starts_with('{') {
        return Ok(body.to_owned());
    }
    let object: Value = serde_json::from_str(body).map_err(|error| format!("that is no JSON: {error}"))?;
    let only = object.as_object().filter(|object| object.len() == 1).and_then(|object| object.get("rate"));
    match only {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Number(number)) => Ok(number.to_string()),
        _ => Err("write {\"rate\": \"5k/s\"}, and nothing else".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_engine::Control;

    use super::*;
    use crate::session::control::rate::PerConnection;

    fn desk() -> RequestHandler {
        let per_connection = PerConnection { connections: 10, iterations: 1, requests: 1 };
        let controller = RateController { control: Control::default(), per_connection };
        RequestHandler {
            controller,
            live_stats: Arc::default(),
            growing: GrowingResult::default(),
            config_by_get: true,
        }
    }

    fn ask(desk: &RequestHandler, method: &str, path: &str, body: &str) -> ControlReply {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let [method, path, query, body] = [method, path, query, body].map(ToOwned::to_owned);
        desk.answer(&ControlRequest { method, path, query, body, ..ControlRequest::default() })
    }

    #[test]
    fn every_path_has_its_method() {
        let desk = desk();
        for (method, path, status) in [
            ("GET", "/", 200),
            ("HEAD", "/stat", 200),
            ("GET", "/stat", 200),
            ("POST", "/stat", 405),
            ("POST", "/result", 405),
            // There is no run yet.
            ("GET", "/result", 409),
            ("GET", "/rate", 405),
            ("GET", "/stop", 405),
            ("GET", "/pause", 405),
            ("PUT", "/resume", 405),
            ("PUT", "/config?rps=1", 405),
            ("POST", "/config?rps=1", 409),
            ("GET", "/nothing", 404),
            ("GET", "/config", 400),
            ("GET", "/config?rps=", 400),
            ("GET", "/config?rps=-1", 400),
            // There is no run yet.
            ("POST", "/pause", 409),
            ("POST", "/resume", 409),
            ("GET", "/config?x=1&rps=100", 409),
            ("GET", "/config?rps=0", 409),
        ] {
            assert_eq!(ask(&desk, method, path, "").status, status, "{method} {path}");
        }
        for line in HELP.lines().filter(|line| line.contains(" /")) {
            let mut words = line.split_whitespace();
            let (method, path) = (words.next().unwrap(), words.next().unwrap());
            assert!(![404, 405].contains(&ask(&desk, method, path, "5").status), "{line}");
        }
        assert_eq!(desk.controller.control.requested_stop(), Stop::Drain, "the help names /stop");
        let stat: Value = serde_json::from_slice(&ask(&desk, "GET", "/stat", "").body).unwrap();
        assert_eq!((&stat["running"], &stat["stopping"]), (&json!(false), &json!(true)));
    }

    /// Symptom: an image in a web page, `<img src=".../config?rps=777">`, set the rate of a run.
    #[test]
    fn a_get_changes_the_rate_only_where_that_was_asked_for() {
        let desk = RequestHandler { config_by_get: false, ..desk() };
        for method in ["GET", "HEAD"] {
            let reply = ask(&desk, method, "/config?rps=777", "");
            let text = String::from_utf8(reply.body).unwrap();
            assert_eq!(reply.status, 405);
            assert!(
                text.contains("x-plimsoll-control: 1") && text.contains("--control-h2loadrunner"),
                "{text}"
            );
        }
        // There is no run yet, but it was understood.
        assert_eq!(ask(&desk, "POST", "/config?rps=777", "").status, 409);
    }

    #[test]
    fn a_rate_is_text_or_json() {
        for (body, text) in [
            ("5k/s", "5k/s"),
            (" 5000\n", "5000"),
            ("{\"rate\":\"5k/s\"}", "5k/s"),
            ("{\"rate\": 0.5}", "0.5"),
            ("{\"rate\":\"pause\"}", "pause"),
        ] {
            assert_eq!(rate_of(body).as_deref(), Ok(text));
        }
        for body in ["{", "{}", "{\"rps\":5}", "{\"rate\":5,\"x\":1}", "{\"rate\":[5]}"] {
            assert!(rate_of(body).is_err(), "{body}");
        }
        for body in ["", "fast", "{\"rate\":\"fast\"}", "{\"rate\":-1}"] {
            assert_eq!(ask(&desk(), "POST", "/rate", body).status, 400, "{body}");
        }
    }
}
