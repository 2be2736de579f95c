//! What a run was, in words: for the report and the result.

use plimsoll_core::Nanos;
use plimsoll_driver::usage;
use plimsoll_metrics::RunRecord;
use plimsoll_plan::{Load, Overload, Pacing, Plan};
use plimsoll_report::{Host, ModelContext, Preflight};
use plimsoll_scenario::header::is_secret;
use plimsoll_schedule::Process;

/// The load in one or two lines.
pub(crate) fn model(plan: &Plan) -> ModelContext {
    let connections = &plan.connections;
    let threads = plural(u64::from(plan.threads), "thread");
    let mut until = Vec::new();
    if let Some(iterations) = plan.end.iterations {
        until.push(format!("{iterations} iterations"));
    }
    if let Some(duration) = plan.end.duration {
        until.push(span(duration));
    }
    let mut until = until.join(" or ");
    if plan.warmup > Nanos::ZERO {
        until = format!("{until} after {} of warm-up", span(plan.warmup));
    }
    let count = plural(u64::from(connections.initial), "connection");
    let (first, arrivals) = match &plan.load {
        Load::Closed => {
            let depth = match connections.depth {
                1 => String::new(),
                depth => format!(" × {depth} requests in flight"),
            };
            (format!("closed: {count}{depth}, {threads}, for {until}"), None)
        }
        Load::Open { profile, process, overload } => {
            let rate = match profile.stages() {
                [only] if only.from == only.to => format!("{}/s", trimmed(only.to.per_second_f64())),
                stages => {
                    format!("{}, peak {}/s", plural(stages.len() as u64, "stage"), trimmed(profile.peak()))
                }
            };
            let arrivals = match process {
                Process::Uniform => "uniform",
                Process::Poisson => "poisson",
            };
            let policy = match overload {
                Overload::Queue => format!("{count}, then queue"),
                Overload::Drop => format!("{count}, then drop"),
                Overload::Grow => format!("{count}, growing to {}", connections.max),
            };
            (format!("open: {rate} {arrivals}, {policy}, {threads}, for {until}"), Some(arrivals.to_owned()))
        }
    };
    let mut description = vec![first];
    if plan.pacing == Pacing::Precise {
        description.push("precise pacing: polls busily before every arrival".to_owned());
    }
    ModelContext {
        description,
        arrivals,
        connections: u64::from(connections.initial),
        depth: u64::from(connections.depth),
    }
}

/// The machine that generates the load.
pub(crate) fn host() -> Host {
    let host = usage::host();
    Host {
        hostname: host.hostname,
        kernel: host.kernel,
        cpu_model: host.cpu_model,
        cpus: host.cpus as u64,
        governor: host.governor,
        memory_bytes: host.memory_bytes,
        soft_descriptors: host.soft_descriptors,
    }
}

/// What the request before the run found.
pub(crate) fn preflight(record: &RunRecord) -> Option<Preflight> {
    let peer = record.peers.first()?;
    Some(Preflight {
        status: *record.total.statuses.keys().next()?,
        protocol: peer.protocol.clone(),
        tls_version: peer.tls_version.clone(),
        cipher: peer.tls_cipher.clone(),
        address: peer.addresses.first().cloned().unwrap_or_default(),
    })
}

/// The command line without secrets: credentials, secret headers, user and password in a URL.
pub(crate) fn redacted(args: impl Iterator<Item = String>) -> Vec<String> {
    const HIDDEN: &str = "<redacted>";
    let mut shown = Vec::new();
    let mut hide_next: Option<&str> = None;
    for arg in args {
        if let Some(flag) = hide_next.take() {
            shown.push(if flag == "header" { header(&arg) } else { HIDDEN.to_owned() });
            continue;
        }
        match arg.split_once('=') {
            Some((flag @ ("--basic" | "--bearer"), _)) => shown.push(format!("{flag}={HIDDEN}")),
            Some((flag @ "--header", value)) => shown.push(format!("{flag}={}", header(value))),
            _ if arg == "--basic" || arg == "--bearer" => {
                hide_next = Some("credential");
                shown.push(arg);
            }
            _ if arg == "-H" || arg == "--header" => {
                hide_next = Some("header");
                shown.push(arg);
            }
            _ if arg.starts_with("-H") => shown.push(format!("-H{}", header(&arg[2..]))),
            _ => shown.push(url(&arg)),
        }
    }
    return shown;

    fn header(text: &str) -> String {
        match text.split_once(':') {
            Some((name, _)) if is_secret(name.trim()) => format!("{name}: {HIDDEN}"),
            _ => text.to_owned(),
        }
    }

    fn url(text: &str) -> String {
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (format!("{scheme}://"), rest),
            None => (String::new(), text),
        };
        let authority_end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        match rest[..authority_end].rfind('@') {
            Some(at) if at > 0 && !text.starts_with('-') => format!("{scheme}{HIDDEN}{}", &rest[at..]),
            _ => text.to_owned(),
        }
    }
}

fn plural(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn span(nanos: Nanos) -> String {
    humantime::format_duration(nanos.into()).to_string()
}

/// A rate without needless digits.
fn trimmed(rate: f64) -> String {
    if rate.fract() == 0.0 { format!("{rate:.0}") } else { format!("{rate:.3}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_reach_the_result() {
        let args = [
            "run",
            "http://u:p@host/",
            "--basic",
            "u:p",
            "--bearer=token",
            "-H",
            "Authorization: Basic eA==",
            "-HCookie: a=b",
            "--header=Accept: text/html",
            "-b",
            "x",
        ];
        let shown = redacted(args.iter().map(ToString::to_string));
        assert_eq!(
            shown,
            [
                "run",
                "http://<redacted>@host/",
                "--basic",
                "<redacted>",
                "--bearer=<redacted>",
                "-H",
                "Authorization: <redacted>",
                "-HCookie: <redacted>",
                "--header=Accept: text/html",
                "-b",
                "x",
            ]
        );
    }
}
