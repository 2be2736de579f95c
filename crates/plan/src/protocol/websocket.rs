//! The rows of WebSocket, without TLS and over it.

use plimsoll_document::RawValue;

use super::table::{Protocol, ProtocolRow};
use crate::resolve::Resolver;
use crate::{PlanPatch, Target};

pub(super) static PLAIN: ProtocolRow = WEBSOCKET;

pub(super) static SECURE: ProtocolRow =
    ProtocolRow { scheme: "wss", port: 443, is_secure: true, ..WEBSOCKET };

const WEBSOCKET: ProtocolRow = ProtocolRow {
    name: "websocket",
    title: "WebSocket",
    server_command: "plimsoll sink --websocket",
    scheme: "ws",
    port: 80,
    is_secure: false,
    protocol: Some(Protocol::WebSocket),
    noun: "a WebSocket server",
    target_hint: "give the target a URL like ws://127.0.0.1:9000 or wss://example.org",
    step_hint: "write `websocket: {open: /path}`, then send, receive and close",
    command_hint: "write `plimsoll ws`, or a plan whose steps are written `websocket: {open: /path}`",
    check: |_| Ok(()),
};

impl Resolver<'_> {
    /// Reports settings that cannot be combined with WebSockets, whose connections belong to their users from
    /// the upgrade to the close.
    pub(crate) fn check_websocket(&mut self, patch: &PlanPatch, targets: &[Target]) -> Option<()> {
        if !targets.iter().any(|target| target.protocol.is_websocket()) {
            return Some(());
        }
        let foreign: [(Option<&RawValue>, &str); 9] = [
            (patch.disable_keepalive.given(), "close it by a step: `websocket: {close: 1000}`"),
            (patch.max_requests_per_connection.as_ref(), "a scenario says how many messages there are"),
            (patch.pipeline.as_ref(), "a user waits for each message; use more connections: `-c N`"),
            (patch.connection_lifetime.as_ref(), "a scenario says how long a connection is open"),
            (patch.alpn.as_ref(), "leave it out, or write `--http2` to open WebSockets over HTTP/2"),
            (patch.max_concurrent_streams.first(), "each has a connection to itself; use more: `-c N`"),
            (patch.ping_interval.as_ref(), "send messages in steps instead"),
            (patch.abort_pct.as_ref(), "let the scenario end early instead"),
            (patch.abandon_pct.as_ref(), "set `timeout` in the step instead"),
        ];
        let mut sound = Some(());
        for (given, hint) in foreign {
            if let Some(given) = given {
                let problem = given.problem(format!("{} cannot be combined with WebSockets", given.by));
                sound = self.fail(problem.with_hint(hint));
            }
        }
        sound
    }
}
