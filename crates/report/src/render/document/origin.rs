//! Where a result is from: methods, machine, plan, and everything that another run needs to be the same.

use plimsoll_core::figure;

use super::{Fact, Section, Shown, line, words};
use crate::contract::context::Host;
use crate::contract::result::{Run, RunResult, Target};

/// `URLs at address, protocol, TLS`.
pub(super) fn target_line(target: &Target) -> String {
    let urls = if target.urls.is_empty() { target.authority.clone() } else { target.urls.join(", ") };
    let mut line = urls;
    if !target.addresses.is_empty() {
        line.push_str(&format!(" at {}", target.addresses.join(", ")));
    }
    let facts = [Some(&target.protocol), target.tls_version.as_ref(), target.tls_cipher.as_ref()];
    for fact in facts.into_iter().flatten().filter(|fact| !fact.is_empty()) {
        line.push_str(&format!(", {fact}"));
    }
    line
}

pub(super) fn circumstances(run: &Run) -> String {
    let host = &run.host;
    let mut line = format!("{}, seed {}, plan {}", run.started_at, run.seed, run.plan_hash);
    if !host.hostname.is_empty() {
        line.push_str(&format!(
            ", on {} ({} CPUs, {}, governor {})",
            host.hostname,
            host.cpus,
            host.kernel,
            host.governor.as_deref().unwrap_or("unknown"),
        ));
    }
    line
}

pub(super) fn sections(result: &RunResult) -> Vec<Section> {
    let section = |heading: &str, facts| Section { heading: heading.to_owned(), facts, ..Section::default() };
    let methods = &result.methods;
    let said = [
        ("response time", &methods.response_time),
        ("percentiles", &methods.percentile),
        ("their intervals", &methods.percentile_interval),
        ("steady state", &methods.steady),
    ];
    let known = said.into_iter().filter(|(_, method)| !method.is_empty());
    let methods = known.map(|(name, method)| Fact::new(name, method.as_str()).on(Shown::Page)).collect();
    vec![section("Methods", methods), section("Origin", origin(result))]
}

fn origin(result: &RunResult) -> Vec<Fact> {
    let run = &result.run;
    let identity = line![
        words(&run.id, "/run/id"),
        ", ",
        words(&run.started_at, "/run/started_at"),
        format!(", seed {}, plan ", run.seed),
        words(&run.plan_hash, "/run/plan_hash"),
    ];
    let mut facts = vec![Fact::new("run", identity)];
    if let Some(checksum) = &run.load_checksum {
        facts.push(Fact::new("load", words(checksum, "/run/load_checksum")).on(Shown::Page));
    }
    facts.extend(machine(&run.host, &format!("{} {}", result.tool.name, result.tool.version)));
    facts
}

/// The machine that generated the load, and the program.
pub(super) fn machine(host: &Host, tool: &str) -> Vec<Fact> {
    let mut machine = format!("{}, {} × {}", host.hostname, host.cpus, host.cpu_model);
    if host.memory_bytes > 0 {
        machine.push_str(&format!(", {}", figure::bytes(host.memory_bytes)));
    }
    if let Some(virtualisation) = &host.virtualisation {
        machine.push_str(&format!(", {virtualisation}"));
    }
    let governor = host.governor.as_deref().unwrap_or("unknown");
    vec![
        Fact::new("machine", machine),
        Fact::new("system", format!("{}, governor {governor}", host.kernel)),
        Fact::new("tool", tool),
    ]
}
