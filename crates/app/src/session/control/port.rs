//! `--control`: the answers of the control port.

use core::net::SocketAddr;
use std::sync::Arc;

use plimsoll_core::{Nanos, Rate};
use plimsoll_document::Problem;
use plimsoll_driver::Endpoint;
use plimsoll_engine::{RateCommand, Stop};
use plimsoll_http::serve::{Access, CONTROL_FIELD, Reply, Request, ServeOptions, Server, serve};
use plimsoll_metrics::SteeredBy;
use plimsoll_schedule::parse_rate;
use plimsoll_system::clock;
use serde_json::{Value, json};

use crate::args::control::ControlSpec;
use crate::base::handed_values::HandedValues;
use crate::base::messages::Notify;
use crate::session::control::live_stats::LiveStats;
use crate::session::control::rate::{RateController, parse_preference, per_second, told};
use crate::session::live::growing_result::GrowingResult;

/// The field with the number of intervals of a result, those included that were left out.
const INTERVALS_FIELD: &str = "x-plimsoll-intervals";
const HELP: &str = "\
GET  /stat             the latest figures, as JSON
GET  /result           the result as if the run ended now, as `run -o json` prints it at the end
GET  /result?after=90  the same without the intervals that had ended 90 seconds after the start
POST /rate             set the rate, in iterations per second: 5000, 5k/s or {\"rate\":\"5k/s\"}; with
                       \"at_ns\" beside \"rate\" from that time of the run on
POST /pause            start nothing until /resume
POST /resume           go on
POST /start            begin at {\"at_unix_ns\":…}, where --start-at command waits for it
POST /values           replace values of the setup, where another process carries out the refresh:
                       {\"refreshed\":{\"token\":\"YWJj\"}}, in Base64
POST /stop             start nothing more, wait for what is in flight, report; at once with {\"now\":true}
POST /config?rps=100   set the requests per second on every connection, as h2loadrunner has it
                       (by GET, too, with --control-h2loadrunner or a token)
Without a token every POST bears a field that no web page can send: curl -H 'x-plimsoll-control: 1'
";

/// The port, as long as it lives.
#[derive(Debug)]
pub(crate) struct ControlPort {
    _server: Server,
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
        let options = ServeOptions { listen: Endpoint::Tcp(listen), access, name: "control" };
        let desk =
            RequestHandler { controller, live_stats, growing, handed: spec.handed.clone(), config_by_get };
        let server = serve(options, Box::new(move |request| desk.answer(request))).map_err(|error| {
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
    /// Values of a setup that another process has carried out.
    handed: Option<HandedValues>,
    /// `true` if GET /config changes the rate, as in h2loadrunner.
    config_by_get: bool,
}

impl RequestHandler {
    fn answer(&self, request: &Request) -> Reply {
        let reads = request.reads();
        let (may, reply): (_, Box<dyn FnOnce() -> Reply>) = match request.path.as_str() {
            "/" => ("GET", Box::new(|| Reply::text(200, HELP))),
            "/stat" => ("GET", Box::new(|| self.stat())),
            "/result" => ("GET", Box::new(|| self.result(&request.query))),
            "/config" if request.method == "GET" && self.config_by_get => {
                ("GET", Box::new(|| self.config(&request.query)))
            }
            "/config" if reads => {
                let message = format!(
                    "{} is refused here, because a web page could send it: use POST with `{CONTROL_FIELD}: \
                     1`, or start the run with --control-h2loadrunner",
                    request.method
                );
                return Reply::problem(405, &message).with_field("allow", "POST");
            }
            "/config" => ("POST", Box::new(|| self.config(&request.query))),
            "/rate" => ("POST", Box::new(|| self.rate(&request.body))),
            "/pause" => ("POST", Box::new(|| self.set_rate(RateCommand::Pause, None, None))),
            "/resume" => ("POST", Box::new(|| self.set_rate(RateCommand::Resume, None, None))),
            "/start" => ("POST", Box::new(|| self.start(&request.body))),
            "/values" => ("POST", Box::new(|| self.replace_values(&request.body))),
            "/stop" => ("POST", Box::new(|| self.stop(&request.body))),
            _ => return Reply::problem(404, "no such path; GET / lists them"),
        };
        if request.method == may || (may == "GET" && reads) {
            return reply();
        }
        let message = format!("{} is asked for by {may}", request.path);
        Reply::problem(405, &message).with_field("allow", may)
    }

    fn stat(&self) -> Reply {
        let (status, figures) = (self.controller.control.status(), self.live_stats.figures());
        let stop = self.controller.control.requested_stop();
        let drain_left = self.live_stats.drain_left(stop, clock::unix());
        let mut stat = json!({
            "running": status.running,
            "waiting": self.controller.control.awaits_start(),
            "stopping": stop != Stop::No,
            "paused": status.paused,
            "target_per_s": status.target_per_second,
            "elapsed_s": figures.elapsed.as_secs_f64(),
            "end_s": figures.end.map(Nanos::as_secs_f64),
            "sent": figures.sent,
            "in_flight": figures.in_flight,
            "drain_left_s": drain_left.map(Nanos::as_secs_f64),
            "intervals": figures.intervals,
            "run": self.growing.run_id(),
        });
        let agents = self.growing.agents();
        if let (false, Some(object)) = (agents.is_empty(), stat.as_object_mut()) {
            object.insert("agents".to_owned(), json!(agents));
        }
        Reply::json(200, format!("{stat}\n"))
    }

    fn result(&self, query: &str) -> Reply {
        let after = match query.strip_prefix("after=").map(str::parse::<f64>) {
            Some(Ok(seconds)) if seconds.is_finite() && seconds >= 0.0 => Nanos::from_secs_f64(seconds),
            None if query.is_empty() => Nanos::ZERO,
            _ => return Reply::problem(400, "say after how many seconds: /result?after=90"),
        };
        let result = self.growing.result(&self.controller.control, after);
        let written = result.map(|(result, intervals)| (serde_json::to_string(&result), intervals));
        match written {
            Some((Ok(text), intervals)) => {
                let reply = Reply::json(200, text + "\n");
                // A client that appends this to earlier answers can check that no interval is missing.
                reply.with_field(INTERVALS_FIELD, &intervals.to_string())
            }
            Some((Err(error), _)) => Reply::problem(500, &error.to_string()),
            None => {
                Reply::problem(409, "no request of the measured part has ended yet: ask again in a second")
            }
        }
    }

    fn rate(&self, body: &str) -> Reply {
        match change_of(body) {
            Ok((command, from)) => self.set_rate(command, from, None),
            Err(problem) => Reply::problem(400, &problem),
        }
    }

    fn start(&self, body: &str) -> Reply {
        let object: Value = serde_json::from_str(body).unwrap_or_default();
        let Some(at) = object["at_unix_ns"].as_u64() else {
            return Reply::problem(400, "say when: {\"at_unix_ns\": 1772366400000000000}");
        };
        let from = object["from_ns"].as_u64().unwrap_or(0);
        let control = &self.controller.control;
        if control.awaits_start() {
            control.join_at(Nanos(from));
        }
        if control.start_at(Nanos(at)) {
            return Reply::json(200, format!("{}\n", json!({ "at_unix_ns": at, "from_ns": from })));
        }
        let problem =
            "the run does not wait for its start: --start-at command does, once everything is ready";
        Reply::problem(409, problem)
    }

    fn replace_values(&self, body: &str) -> Reply {
        let Some(handed) = &self.handed else {
            let problem = "no other process has handed values to this run: write a `refresh` into its plan";
            return Reply::problem(409, problem);
        };
        match handed.replace(body) {
            Ok(()) => Reply::json(200, "{}\n".to_owned()),
            Err(problem) => Reply::problem(400, &problem),
        }
    }

    /// h2loadrunner's `/config?rps=100`.
    fn config(&self, query: &str) -> Reply {
        let mut pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let Some((_, given)) = pairs.find(|(name, _)| *name == "rps") else {
            return Reply::problem(400, "say how many requests per second: /config?rps=100");
        };
        let per_connection = &self.controller.per_connection;
        let requests = match parse_rate(given) {
            Ok(rate) => rate,
            Err(_) if parse_preference(given) == Ok(RateCommand::Pause) => {
                return self.set_rate(RateCommand::Pause, None, None);
            }
            Err(error) => return Reply::problem(400, &error.to_string()),
        };
        let Some(total) = per_connection.total(requests) else {
            return Reply::problem(400, "the rate of all connections is too large");
        };
        let unit =
            if per_connection.iterations == per_connection.requests { "requests" } else { "iterations" };
        let note = format!(
            "{} requests on each of {} connections: {} {unit} in all",
            per_second(requests.per_second_f64()),
            per_connection.connections,
            per_second(total.per_second_f64()),
        );
        self.set_rate(RateCommand::To(total), None, Some(note))
    }

    /// Changes the rate as soon as possible, or from an instant since the start.
    fn set_rate(&self, command: RateCommand, from: Option<Nanos>, note: Option<String>) -> Reply {
        let control = &self.controller.control;
        let changed = match from {
            Some(from) => control.set_rate_from(command, SteeredBy::Http, from),
            None => control.set_rate(command, SteeredBy::Http),
        };
        match changed {
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
                Reply::json(200, format!("{reply}\n"))
            }
            // Not now, or not with this run.
            Err(error) => Reply::problem(409, &error.to_string()),
        }
    }

    fn stop(&self, body: &str) -> Reply {
        let asked: Value = serde_json::from_str(body).unwrap_or_default();
        let by = match () {
            () if asked["orphaned"] == true => SteeredBy::Orphaned,
            () if asked["leaving"] == true => SteeredBy::AgentLeft,
            () => SteeredBy::Http,
        };
        self.controller.control.stop_by(by);
        if asked["now"] == true {
            self.controller.control.stop(Stop::Now);
        }
        Reply::json(200, format!("{}\n", json!({ "stopping": true })))
    }
}

/// The change in a body: `{"rate": …}` with a text, a number, or `{"count": …, "period_ns": …}` for one
/// that no text can express; or the plain text. `"at_ns"` beside it is the time of the run from which on it
/// applies.
fn change_of(body: &str) -> Result<(RateCommand, Option<Nanos>), String> {
    let body = body.trim();
    if !body.starts_with('{') {
        return Ok((parse_preference(body)?, None));
    }
    let object: Value = serde_json::from_str(body).map_err(|error| format!("that is not JSON: {error}"))?;
    let wrong = || "write {\"rate\": \"5k/s\"}, and nothing else beside it but \"at_ns\"".to_owned();
    let from = object.get("at_ns").map(|at| at.as_u64().map(Nanos).ok_or_else(wrong)).transpose()?;
    let fields = 1 + usize::from(from.is_some());
    let rate =
        object.as_object().filter(|object| object.len() == fields).and_then(|object| object.get("rate"));
    let command = match rate {
        Some(Value::String(text)) => parse_preference(text)?,
        Some(Value::Number(number)) => parse_preference(&number.to_string())?,
        Some(Value::Object(exact)) => {
            let field = |name: &str| exact.get(name).and_then(Value::as_u64);
            let rate = field("count").zip(field("period_ns"));
            let rate = rate.and_then(|(count, period)| Rate::new(count, Nanos(period)));
            RateCommand::To(rate.ok_or_else(wrong)?)
        }
        _ => return Err(wrong()),
    };
    Ok((command, from))
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
            handed: None,
            config_by_get: true,
        }
    }

    fn ask(desk: &RequestHandler, method: &str, path: &str, body: &str) -> Reply {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let [method, path, query, body] = [method, path, query, body].map(ToOwned::to_owned);
        desk.answer(&Request { method, path, query, body, ..Request::default() })
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
            ("GET", "/result?after=1.5", 409),
            ("GET", "/result?after=-1", 400),
            ("GET", "/result?after=", 400),
            ("GET", "/result?before=1", 400),
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
            ("GET", "/start", 405),
            ("POST", "/start", 400),
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
        assert_eq!((&stat["sent"], &stat["in_flight"]), (&json!(0), &json!(0)));
        assert!(stat["drain_left_s"].is_number(), "{stat}");
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
            assert_eq!(change_of(body), parse_preference(text).map(|command| (command, None)), "{body}");
        }
        let third = RateCommand::To(Rate::new(1, Nanos::from_secs(3)).unwrap());
        let exact = "{\"rate\":{\"count\":1,\"period_ns\":3000000000},\"at_ns\":5}";
        assert_eq!(change_of(exact), Ok((third, Some(Nanos(5)))));
        for body in [
            "{",
            "{}",
            "{\"rps\":5}",
            "{\"rate\":5,\"x\":1}",
            "{\"rate\":[5]}",
            "{\"rate\":5,\"at_ns\":-1}",
            "{\"rate\":{\"count\":1}}",
        ] {
            assert!(change_of(body).is_err(), "{body}");
        }
        for body in ["", "fast", "{\"rate\":\"fast\"}", "{\"rate\":-1}"] {
            assert_eq!(ask(&desk(), "POST", "/rate", body).status, 400, "{body}");
        }
    }
}
