//! The first contact with a target, before the run: one that cannot be reached is an error at once, not a
//! thousand counted ones. It changes nothing at the target.

use std::fmt;
use std::sync::Arc;

use plimsoll_core::{ErrorClass, Nanos, Shard};
use plimsoll_driver::Endpoint;
use plimsoll_metrics::{ErrorExample, RunRecord};
use plimsoll_plan::{Connections, End, Load, Plan, Protocol, Scenario, StartTime, Step, Target};
use plimsoll_scenario::redirect::leads_elsewhere;
use plimsoll_scenario::{Needs, Op, Program, ResponseHandler};

use crate::addresses::TargetAddress;
use crate::backends::Backends;
use crate::control::{Control, Stop};
use crate::error::RunError;
use crate::run::run;

/// Maximum number of attempts for a request that gets no response: some targets drop a share of their replies
/// on purpose, and one dropped reply is not a reason to give up.
const ATTEMPTS: usize = 3;
/// The longest time for an answer. A path may be slower than that, and the run is not refused for it.
const PATIENCE: Nanos = Nanos::from_secs(2);
/// All attempts but the last have this part of the time, so that a server that hangs is not waited for much
/// longer than once.
const FIRST_PART: u64 = 8;
/// The longest time for a connection to an address, where there are others of the other family that may take
/// one: four times the delay between two attempts that RFC 8305 section 5 recommends, as they are not made at
/// the same time here. If those take none either, the first ones are waited for once more.
const FAMILY_PATIENCE: Nanos = Nanos::from_secs(1);
/// The classes of errors after which the other family is tried. A machine without IPv6 says that it has no
/// address of its own for one.
const CONNECTING: [&str; 4] = [
    ErrorClass::ConnectRefused.name(),
    ErrorClass::ConnectTimeout.name(),
    ErrorClass::ConnectFailed.name(),
    ErrorClass::PortsExhausted.name(),
];
/// The shortest time that a connection is given, however short the run: a lost SYN is sent again after a
/// second (RFC 6298).
const CONNECT_LEAST: Nanos = Nanos::from_millis(1_500);

/// Result of the first contact with one target.
#[derive(Debug)]
pub struct FirstContact {
    /// The target, an index into those of the plan.
    pub target: usize,
    /// The step whose request was sent last; none, if the target was only connected to.
    pub step: Option<usize>,
    /// The records of all attempts. The last one is the attempt that counts.
    pub records: Vec<RunRecord>,
    /// The time that the last attempt had.
    watchdog: Nanos,
    /// The family of addresses to which no connection could be made, if that of the other is used.
    pub passed_over: Option<PassedOver>,
}

/// Addresses to which no connection could be made before the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedOver {
    /// All of one family, IPv4 or IPv6.
    pub addresses: Vec<String>,
    /// Reason in words.
    pub reason: String,
    /// An address of the other family that is used.
    pub used: String,
}

impl fmt::Display for PassedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.addresses.join(", "), self.reason)
    }
}

impl FirstContact {
    /// The record of the attempt that counts.
    pub fn record(&self) -> Option<&RunRecord> {
        self.records.last()
    }

    /// The status of the response, if a request was sent and there was one.
    pub fn status(&self) -> Option<u16> {
        self.record()?.total.statuses.keys().next().copied()
    }

    /// Returns the message to show before the run if addresses were passed over.
    pub fn passed_over_note(&self) -> Option<String> {
        let passed_over = self.passed_over.as_ref()?;
        Some(format!("no connection to {passed_over}: the load goes to {}", passed_over.used))
    }

    /// Returns the message to show before the run, if there is one: that the step does not expect the
    /// response's status, that it leads elsewhere, or that there was none.
    pub fn note(&self, plan: &Plan) -> Option<String> {
        let step = &plan.steps[self.step?];
        let Some(status) = self.status() else {
            return Some(format!(
                "no response to the first request ({}) within {:?}; the run begins anyway",
                step.name, self.watchdog
            ));
        };
        let ends_there = leads_elsewhere(status) && plan.redirects == 0;
        if ends_there && step.handler.is_plain() && !step.handler.names_statuses() {
            return Some(format!(
                "the first response has status {status} ({}): redirects are not followed, so that the load is \
                 one of redirects; --follow-redirects follows them",
                step.name
            ));
        }
        step.handler.accepts(status).err()?;
        let said = match self.example() {
            Some(ErrorExample { body, .. }) if !body.is_empty() => format!(": {body}"),
            _ => String::new(),
        };
        let of = match plan.targets.len() {
            1 => String::new(),
            _ => format!(" of `{}`", plan.targets[self.target].authority),
        };
        Some(format!("the first response{of} has status {status} ({}){said}", step.name))
    }

    fn example(&self) -> Option<&ErrorExample> {
        self.record()?.total.error_examples.values().next()
    }

    /// Returns `true` if the response says that the server speaks TLS and was sent plain text.
    fn wants_tls(&self) -> bool {
        // The words of nginx, Apache, and Go's net/http.
        const WORDS: [&str; 3] =
            ["plain http request", "speaking plain http", "http request to an https server"];
        let Some(example) = self.example().filter(|example| example.status == 400) else { return false };
        let said = example.body.to_ascii_lowercase();
        WORDS.iter().any(|words| said.contains(words))
    }
}

/// Tries each target that a step addresses, and returns the results.
///
/// If a name has addresses of IPv4 and of IPv6, one of the family that comes first in `addresses` is tried,
/// and one of the other family if no connection to it can be made. What can be connected to comes first
/// afterwards, so that the run uses it.
///
/// A target gets the first request of its steps that is safe (RFC 9110 section 9.2.1) and that can be sent as
/// the run will send it: without values of responses or of data, without a script, and with nothing written
/// before it. If there is none, it is connected to, with TLS and HTTP/2 as in the run, and nothing is asked.
/// It is the same run as any other, with one connection: it meets the same problems as the load.
///
/// # Errors
/// [`RunError::Preflight`] with the reason if a target cannot be connected to, breaks the protocol, closes
/// all connections without a response, speaks TLS where the plan does not, or gives no response in the time
/// that the plan allows to any of its steps.
pub fn preflight(
    plan: &Plan,
    backends: &Backends,
    addresses: &mut [Arc<[TargetAddress]>],
    control: &Control,
) -> Result<Vec<FirstContact>, RunError> {
    let control = &control.for_preflight();
    // A server that no step asks gets no load either.
    let is_asked = |target: &usize| plan.steps.iter().any(|step| step.target == *target);
    let asked = (0..plan.targets.len()).filter(is_asked);
    let contact = |target: usize| {
        let contact = Contact { plan, target, backends, control };
        contact.of_either_family(&mut addresses[target])
    };
    asked.map(contact).collect()
}

/// An attempt to contact one target.
struct Contact<'a> {
    plan: &'a Plan,
    target: usize,
    backends: &'a Backends,
    control: &'a Control,
}

/// The time that a connection is given before the load begins: no longer than the run takes by itself.
pub(crate) fn connect_patience(plan: &Plan) -> Nanos {
    let length = plan.end.duration.map_or(Nanos::MAX, |length| plan.warmup + length);
    plan.connect_timeout.min(length.max(CONNECT_LEAST))
}

impl Contact<'_> {
    /// Tries the family of the first address, then the other one. Puts the addresses of the family that has
    /// taken a connection first.
    fn of_either_family(&self, addresses: &mut Arc<[TargetAddress]>) -> Result<FirstContact, RunError> {
        let patience = connect_patience(self.plan);
        let first = addresses.first().and_then(TargetAddress::family);
        let (one, other): (Vec<_>, Vec<_>) =
            addresses.iter().cloned().partition(|address| address.family() == first);
        if other.is_empty() || !self.plan.targets[self.target].pool.is_empty() {
            return self.carry_out(addresses, patience);
        }
        let refused = match self.carry_out(&one.clone().into(), patience.min(FAMILY_PATIENCE)) {
            Err(RunError::Preflight { class, message, hint }) if CONNECTING.contains(&class) => {
                (class, message, hint)
            }
            done => return done,
        };
        let (class, message, hint) = refused;
        match self.carry_out(&other.clone().into(), patience) {
            Ok(found) => {
                let reason = message.split_once(": ").map_or(&*message, |(_, reason)| reason).to_owned();
                let shown = |address: &TargetAddress| address.endpoint.to_string();
                let (used, passed) = (shown(&other[0]), one.iter().map(shown).collect());
                *addresses = other.into_iter().chain(one).collect();
                Ok(FirstContact {
                    passed_over: Some(PassedOver { addresses: passed, reason, used }),
                    ..found
                })
            }
            Err(RunError::Stopped) => Err(RunError::Stopped),
            // It may only be far away.
            Err(_) if class == ErrorClass::ConnectTimeout.name() => self.carry_out(&one.into(), patience),
            Err(_) => Err(RunError::Preflight { class, message, hint }),
        }
    }

    /// The first contact by these addresses; a connection may take as long as `patience`.
    fn carry_out(&self, addresses: &Arc<[TargetAddress]>, patience: Nanos) -> Result<FirstContact, RunError> {
        let Self { plan, target, backends, control } = *self;
        let connect_timeout = patience.min(plan.timeout);
        let listed = [Arc::clone(addresses)];
        let carry_out = |single: Plan| {
            let single = Plan { connect_timeout, ..single };
            let record = run(&single, backends, &listed, control, &mut |_| {})?;
            if control.requested_stop() >= Stop::Drain { Err(RunError::Stopped) } else { Ok(record) }
        };
        let candidates = candidates(plan, target);
        let mut found = FirstContact {
            target,
            step: None,
            records: Vec::new(),
            watchdog: Nanos::ZERO,
            passed_over: None,
        };
        if candidates.is_empty() {
            let record = carry_out(single(plan, target, None, plan.timeout))?;
            if record.connections.opened == 0 {
                return Err(no_contact(plan, target, addresses, &record));
            }
            found.records.push(record);
            return Ok(found);
        }
        for attempt in 0..ATTEMPTS {
            let step = candidates[attempt % candidates.len()];
            let whole = plan.timeout_of(step as u32).min(PATIENCE);
            let last = attempt + 1 == ATTEMPTS;
            let watchdog = if last { whole } else { Nanos(whole.0 / FIRST_PART) };
            let record = carry_out(single(plan, target, Some(step), watchdog))?;
            let timed_out = record.accounting.timed_out > 0;
            let closed = [
                ErrorClass::ClosedBeforeResponse,
                ErrorClass::ClosedInResponse,
                ErrorClass::TlsTruncated,
                ErrorClass::Reset,
            ];
            let closed = closed.iter().any(|class| record.total.errors[*class] > 0);
            if record.total.statuses.is_empty() && !timed_out && (last || !closed) {
                return Err(no_contact(plan, target, addresses, &record));
            }
            found = FirstContact { step: Some(step), watchdog, ..found };
            found.records.push(record);
            if found.status().is_some() {
                break;
            }
        }
        let of_target = plan.steps.iter().filter(|step| step.target == target).count();
        let hangs = found.status().is_none() && found.watchdog < PATIENCE && candidates.len() == of_target;
        if hangs || found.wants_tls() {
            let record = found.records.last().expect("an attempt was made");
            return Err(match hangs {
                true => no_contact(plan, target, addresses, record),
                false => speaks_tls(&plan.targets[target].authority),
            });
        }
        Ok(found)
    }
}

/// The steps of a target whose requests change nothing there and need nothing that is not known before the
/// run, as many as are tried.
fn candidates(plan: &Plan, target: usize) -> Vec<usize> {
    let begins = |index: usize| plan.scenarios.iter().any(|scenario| scenario.steps.start as usize == index);
    // A step may read data that exists only once earlier steps have written it.
    let follows_writes = |index: usize| {
        let of = |scenario: &&Scenario| scenario.steps.contains(&(index as u32));
        plan.scenarios.iter().find(of).is_some_and(|scenario| {
            (scenario.steps.start as usize..index).any(|before| !plan.steps[before].request.is_safe())
        })
    };
    let is_known = |index: &usize| {
        let Step { request, make_script, away, .. } = &plan.steps[*index];
        request.is_safe()
            && !request.uses_variables()
            && request.supply().is_none()
            && make_script.is_none()
            && away.is_none()
            // Later ones have the cookies of a login.
            && (begins(*index) || !(request.uses_cookies() || follows_writes(*index)))
    };
    let all = (0..plan.steps.len()).filter(|index| plan.steps[*index].target == target);
    all.filter(is_known).take(ATTEMPTS).collect()
}

/// A run that sends the request of one step to a target, once; without a step it only connects.
fn single(plan: &Plan, target: usize, step: Option<usize>, timeout: Nanos) -> Plan {
    let of_target = || plan.steps.iter().position(|step| step.target == target);
    // A target without any request is tried with a step that stands in for it.
    let sent = step.or_else(of_target).map(|index| &plan.steps[index]);
    let steps: Vec<Step> = sent
        .map(|step| Step {
            target: 0,
            handler: ResponseHandler::default(),
            needs: Needs::default(),
            make_script: None,
            check_script: None,
            away: None,
            timeout: None,
            ..step.clone()
        })
        .into_iter()
        .collect();
    Plan {
        scenarios: vec![Scenario {
            name: "preflight".to_owned(),
            steps: 0..steps.len() as u32,
            program: Program::new((0..steps.len() as u32).map(Op::Send).collect()),
            given: 0,
            weight: 1,
            start_after: Nanos::ZERO,
        }],
        steps,
        variables: Arc::from([]),
        feeds: Vec::new(),
        pools: Vec::new(),
        setup: None,
        refresh: None,
        teardown: None,
        supplies: Vec::new(),
        scripts: None,
        targets: vec![plan.targets[target].clone()],
        load: Load::Closed,
        users: None,
        phases: Vec::new(),
        end: End { duration: None, iterations: Some(u64::from(step.is_some())) },
        warmup: Nanos::ZERO,
        drain: Nanos::ZERO,
        // Where a response leads to is another server, which its target is not to be blamed for.
        redirects: 0,
        timeout,
        threads: 1,
        shard: Shard::WHOLE,
        start: StartTime::WhenReady,
        connections: Connections {
            initial: 1,
            max: 1,
            depth: 1,
            streams: 1,
            rate: None,
            // Without a request, only the connection is tried.
            keep_alive: plan.connections.keep_alive || step.is_none(),
            ..plan.connections.clone()
        },
        thresholds: Vec::new(),
        client_faults: None,
        ..plan.clone()
    }
}

fn speaks_tls(authority: &str) -> RunError {
    RunError::Preflight {
        class: ErrorClass::WrongProtocol.name(),
        message: format!("`{authority}` speaks TLS, and was sent plain HTTP"),
        hint: format!("this port speaks TLS: use https://{authority}"),
    }
}

/// Returns the error for a target that cannot be used, with a hint.
fn no_contact(
    plan: &Plan,
    target: usize,
    target_addresses: &[TargetAddress],
    record: &RunRecord,
) -> RunError {
    let class = record.connections.failed.iter().next().map(|(class, _)| class.name());
    let class =
        class.or_else(|| record.total.error_examples.keys().next().and_then(|class| static_name(class)));
    let class = class.unwrap_or(plimsoll_metrics::TIMED_OUT);
    let server = &plan.targets[target];
    let authority = &server.authority;
    let reason = match record.error_examples.get(class).or_else(|| record.error_examples.values().next()) {
        Some(reason) => reason.clone(),
        None => format!("no response within {:?}", plan.timeout.min(PATIENCE)),
    };
    let address = target_addresses.first().map(|target_address| &target_address.endpoint);
    let place = match (address, &server.proxy) {
        (_, Some(proxy)) => format!("`{authority}` through the proxy `{}`", proxy.authority),
        (Some(Endpoint::Unix(path)), _) => format!("the unix socket {}", path.display()),
        (Some(Endpoint::Tcp(address)), _) if address.to_string() != *authority => {
            format!("`{authority}` ({address})")
        }
        _ => format!("`{authority}`"),
    };
    if reason.contains("TLS alert") && server.tls.is_none() {
        return speaks_tls(authority);
    }
    let message = match class {
        "connect_refused" | "connect_failed" | "ports_exhausted" | "descriptors_exhausted" => {
            let reason = reason.strip_prefix("connect: ").unwrap_or(&reason);
            format!("cannot connect to {place}: {reason}")
        }
        _ if class == ErrorClass::Proxy.name() || record.accounting.started == 0 => {
            format!("no connection to {place}: {reason}")
        }
        "websocket_handshake" => format!("{place} opens no WebSocket: {reason}"),
        _ => format!("the first request to {place} got no response: {reason}"),
    };
    let hint = contact_hint(plan, server, address, (class, &reason), record);
    RunError::Preflight { class, message, hint }
}

/// A hint for a target that cannot be used, by the class of the failure and its reason.
fn contact_hint(
    plan: &Plan,
    server: &Target,
    address: Option<&Endpoint>,
    (class, reason): (&str, &str),
    record: &RunRecord,
) -> String {
    let plain_http2 = server.protocol == Protocol::Http2 && server.tls.is_none();
    let in_turn = match server.protocol {
        Protocol::InTurn(_) => server.protocol.row(),
        _ => None,
    };
    match (class, address) {
        ("rejected", _) if in_turn.is_some() => "are user, password and path of the URL right?".to_owned(),
        ("wrong_protocol" | "protocol" | "reset" | "closed_before_response", _)
            if let Some(row) = in_turn =>
        {
            format!("does this port speak {}? the server's log may say more", row.title)
        }
        ("connect_refused", Some(Endpoint::Tcp(address)))
            if let Some(row) = in_turn.filter(|_| address.ip().is_loopback() && server.proxy.is_none()) =>
        {
            let (port, command) = (address.port(), row.server_command);
            format!(
                "is the server running, and is {port} its port? `{command} --listen 127.0.0.1:{port}` is one to try"
            )
        }
        ("proxy", _) if ["407", "credentials", "password"].iter().any(|word| reason.contains(word)) => {
            "give the proxy's user and password: --proxy http://USER:PASSWORD@HOST:PORT".to_owned()
        }
        ("proxy", _) => {
            "the proxy's log may say why; many allow tunnels (CONNECT) to port 443 alone".to_owned()
        }
        ("connect_refused", Some(Endpoint::Tcp(address))) if server.proxy.is_some() => {
            format!("is the proxy running, and is {} its port?", address.port())
        }
        ("connect_refused" | "connect_failed", Some(Endpoint::Unix(_))) => {
            "is the server running, and is this the path of its socket?".to_owned()
        }
        ("connect_refused", Some(Endpoint::Tcp(address))) if address.ip().is_loopback() => format!(
            "is the server running, and is {0} its port? `plimsoll sink --listen 127.0.0.1:{0}` is one to try",
            address.port()
        ),
        ("connect_refused", Some(Endpoint::Tcp(address))) => {
            format!("is the server running, and is {} its port?", address.port())
        }
        ("ports_exhausted", _) if !plan.connections.sources.is_empty() => {
            "does this machine have the addresses of --source-ip? `ip address` shows those that it has"
                .to_owned()
        }
        ("closed_before_response" | "connect_timeout" | "wrong_protocol" | "protocol", _)
            if server.protocol == Protocol::WebSocketHttp2 && record.connections.opened == 0 =>
        {
            "does the server take WebSockets over HTTP/2 (RFC 8441)? without --http2 they are opened over HTTP/1.1"
                .to_owned()
        }
        ("closed_before_response" | "connect_timeout" | "wrong_protocol" | "protocol", _)
            if plain_http2 && record.connections.opened == 0 =>
        {
            "does the server speak HTTP/2 without TLS? leave HTTP/2 (--http2) out, or use https://".to_owned()
        }
        ("wrong_protocol", _) => "leave HTTP/2 (--http2) out, if the server does not speak it".to_owned(),
        ("connect_timeout" | "connect_failed", _) => {
            "is the address right, and does a firewall let it through?".to_owned()
        }
        ("tls", _) => record
            .connections
            .tls_hint
            .as_deref()
            .unwrap_or("--tls 1.2 or 1.3 offers one version alone; the server's log may say more")
            .to_owned(),
        (plimsoll_metrics::TIMED_OUT, _) => {
            "the server accepted the connection but did not answer; --timeout sets how long to wait, and \
             --no-preflight measures without a first answer"
                .to_owned()
        }
        ("websocket_handshake", _) => handshake_hint(reason).to_owned(),
        ("closed_in_response", _) => {
            "the server began a response and closed the connection before its end; its log may say why".to_owned()
        }
        ("protocol" | "head_too_large", _) => "does this port speak HTTP/1.1? https:// speaks TLS".to_owned(),
        _ => "does this port speak TLS (https://), or no HTTP? the server's log may say why it closes"
            .to_owned(),
    }
}

/// A hint for an answer that opens no WebSocket, for this reason.
fn handshake_hint(reason: &str) -> &'static str {
    const HINTS: [(&str, &str); 5] = [
        (
            "Sec-WebSocket-Accept",
            "the server, or a proxy before it, does not answer the key of this request: an answer out of a cache, \
             or a handshake that is made by hand",
        ),
        (
            "permessage-deflate with",
            "offer the parameter, or let the server choose another: `compress: true` (--compress) offers all that \
             are known here",
        ),
        (
            "extension",
            "the one extension that is known here is permessage-deflate: `compress: true` (--compress) offers it",
        ),
        ("subprotocol", "offer it: `subprotocols` beside `open` (--subprotocol)"),
        ("not to websocket", "is this the path of a WebSocket?"),
    ];
    let hint = HINTS.iter().find(|(words, _)| reason.contains(words)).map(|(_, hint)| *hint);
    hint.unwrap_or("does this port speak HTTP/1.1?")
}

fn static_name(class: &str) -> Option<&'static str> {
    ErrorClass::read(class).ok().map(ErrorClass::name)
}
