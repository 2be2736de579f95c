//! The flags of `plimsoll ws`, and those of `plimsoll sink` that make it a server for it.

use clap::Args;
use plimsoll_document::Problem;
use plimsoll_targets::sink::service::WebSocket;
use plimsoll_workloads::WorkloadError;
use plimsoll_workloads::websocket::{Answer, Message, WebSocketLoad};

use crate::args::extension::SERVICE_GROUP;
use crate::args::run::RunArgs;
use crate::base::failure::Failure;

#[derive(Debug, Args)]
#[command(override_usage = "plimsoll ws [OPTIONS] <URL>")]
pub(crate) struct WebSocketArgs {
    #[command(flatten)]
    messages: MessageArgs,
    /// Print the plan that the flags make, and exit
    #[arg(long, help_heading = "Messages")]
    pub(crate) print_plan: bool,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Messages")]
struct MessageArgs {
    /// The message, which may have functions such as ${sequence}; @FILE is --message-file [default: ping]
    #[arg(long, value_name = "TEXT", conflicts_with = "message_file")]
    message: Option<String>,
    /// File with the message, sent as it is
    #[arg(long, value_name = "FILE")]
    message_file: Option<String>,
    /// Send binary messages, and not text
    #[arg(long)]
    binary: bool,
    /// Messages of each connection, after which it is closed and another one opened
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    messages: u32,
    /// Subprotocol to offer; several are separated by commas, the preferred one first
    #[arg(long, value_name = "NAME")]
    subprotocol: Option<String>,
    /// Offer to compress messages: permessage-deflate
    #[arg(long)]
    compress: bool,
    /// Text that the answer to a message has in it; other messages are skipped [default: the next message is
    /// the answer]
    #[arg(long, value_name = "TEXT", conflicts_with = "no_answer")]
    expect: Option<String>,
    /// Await no answers: a message ends when it is sent
    #[arg(long)]
    no_answer: bool,
    /// Pause after each message, as of a user who reads and writes: 5s
    #[arg(long, value_name = "TIME")]
    think: Option<String>,
}

impl WebSocketArgs {
    /// The workload that the flags describe.
    ///
    /// # Errors
    /// Not one URL.
    pub(crate) fn to_load(&self) -> Result<WebSocketLoad, Failure> {
        let [url] = self.run.plan.urls() else {
            let problem = Problem::new("`plimsoll ws` opens WebSockets at one URL");
            let hint = "write it as in `plimsoll ws ws://127.0.0.1:9000/chat --message hello`";
            return Err(Failure::usage(problem.with_hint(hint)));
        };
        let flags = &self.messages;
        let message = match (&flags.message, &flags.message_file) {
            (_, Some(file)) => Message::File(file.clone()),
            (Some(text), None) => match text.strip_prefix('@') {
                Some(file) => Message::File(file.to_owned()),
                None => Message::Text(text.clone()),
            },
            (None, None) => Message::Text(WebSocketLoad::MESSAGE.to_owned()),
        };
        Ok(WebSocketLoad {
            url: url.clone(),
            message,
            binary: flags.binary,
            messages: flags.messages,
            subprotocol: flags.subprotocol.clone(),
            compress: flags.compress,
            answer: match (&flags.expect, flags.no_answer) {
                (Some(text), _) => Answer::Containing(text.clone()),
                (None, true) => Answer::Nothing,
                (None, false) => Answer::Any,
            },
            think: flags.think.clone(),
        })
    }
}

/// Converts an error of the workload to a problem with the flags that were typed.
pub(crate) fn problem(error: &WorkloadError) -> Problem {
    Problem::new(error.to_string()).with_hint(error.hint())
}

/// Flags of `plimsoll sink`.
#[derive(Debug, Args)]
#[command(next_help_heading = "WebSocket")]
pub(crate) struct WebSocketServiceArgs {
    /// Act as a server of WebSockets: each message is sent back
    ///
    /// Upgrades and messages are both requests, for delays, faults and the log. A status of --fail refuses an
    /// upgrade, and closes with 1011 in place of answering a message.
    #[arg(long, conflicts_with_all = ["status", "body", "body_size", "content_type", "slow_data"], group = SERVICE_GROUP)]
    websocket: bool,
    /// Send each message to all clients, and not only back. Needs one thread
    #[arg(long, requires = "websocket")]
    broadcast: bool,
}

impl WebSocketServiceArgs {
    /// The service, if it is asked for.
    pub(crate) fn read(&self) -> Option<WebSocket> {
        self.websocket.then_some(WebSocket { broadcasts: self.broadcast })
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_targets::Service;

    use super::*;
    use crate::args::server::sink::tests::spec;

    #[test]
    fn the_sink_becomes_a_server_of_websockets() {
        let service = |args: &[&str]| spec(args).unwrap().options.service;
        assert_eq!(service(&["--websocket"]), Service::WebSocket(WebSocket { broadcasts: false }));
        assert_eq!(
            service(&["--websocket", "--broadcast"]),
            Service::WebSocket(WebSocket { broadcasts: true })
        );
    }
}
