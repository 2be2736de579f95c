//! Descriptions of a run in words, for the report and the result.

use std::collections::BTreeSet;
use std::path::Path;

use plimsoll_core::Redaction;
use plimsoll_core::redaction::HIDDEN;
use plimsoll_core::{Nanos, Rate, text::plural};
use plimsoll_document::LoadedDocument;
use plimsoll_engine::FirstContact;
use plimsoll_metrics::PhaseOutline;
use plimsoll_plan::{IterationLength, Load, Overload, Pacing, Plan, Scenario, Target};
use plimsoll_report::result::Tool;
use plimsoll_report::{Host, ModelContext, Preflight, TargetContext};
use plimsoll_schedule::{Population, Process, Stage};
use plimsoll_system::usage;

/// Stages of a rate that are described one by one, at most.
const STAGES_TOLD: usize = 3;

/// This program, as results name it.
pub(crate) fn tool() -> Tool {
    Tool { name: "plimsoll".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
}

/// The number of connections that a load may open as it needs them, in words.
pub(crate) fn growth(most: u32) -> String {
    format!("growing to {most}")
}

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
    let http2 = plan.targets.iter().any(|target| target.protocol.may_be_http2());
    let in_flight = match (http2, connections.streams, connections.depth) {
        (true, streams, _) => format!(" × {}", plural(u64::from(streams), "stream")),
        (false, _, 1) => String::new(),
        (false, _, depth) => format!(" × {depth} requests in flight"),
    };
    let depth = if http2 { connections.streams } else { connections.depth };
    let users = plural(u64::from(connections.initial) * u64::from(depth), "user");
    let (protocol, length) = (protocol(plan), plan.iteration_length());
    let (first, arrivals) = match &plan.load {
        Load::Closed => {
            let of = requests(&length).map(|of| format!(", iterations of {of}")).unwrap_or_default();
            let whose = match &plan.users {
                Some(users) => format!("{}, up to {} connections{in_flight}", course(users), connections.max),
                None => match targets_of_scenarios(plan) {
                    1 => format!("{users} on {count}{in_flight}"),
                    targets => {
                        format!("{} over {targets} targets in turn", plural(plan.lasting_users(), "user"))
                    }
                },
            };
            (format!("closed: {whose}, {protocol}, {threads}{of}, for {until}"), None)
        }
        Load::Open { profile, process, overload, .. } => {
            let rate = match without_warmup(profile.stages(), plan.warmup) {
                [only] if only.from == only.to => constant(only.to, &length),
                stages => {
                    let of = requests(&length).map(|of| format!(" (iterations of {of})"));
                    format!("{}{}", ramps(stages), of.unwrap_or_default())
                }
            };
            let arrivals = match process {
                Process::Uniform => "uniform",
                Process::Poisson => "poisson",
            };
            let policy = match overload {
                Overload::Queue => format!("{count}{in_flight}, then queue"),
                Overload::Drop => format!("{count}{in_flight}, then drop"),
                Overload::Grow => format!("{count}{in_flight}, {}", growth(connections.max)),
            };
            let first = format!("open: {rate} {arrivals}, {policy}, {protocol}, {threads}, for {until}");
            (first, Some(arrivals.to_owned()))
        }
    };
    let mut description = vec![first];
    if !plan.phases.is_empty() {
        let phase = |[name, load, length]: &[String; 3]| format!("{name} ({load}, {length})");
        let all: Vec<String> = phases(plan).iter().map(phase).collect();
        description.push(format!("phases: {}", all.join(", ")));
    }
    match plan.pacing {
        Pacing::Adaptive => {}
        Pacing::Shared => {
            let budget = span(Pacing::BUDGET);
            description.push(format!("shared pacing: requests start up to {budget} late to share wake-ups"));
        }
        Pacing::Precise => {
            description.push("precise pacing: polls busily before every arrival".to_owned());
        }
    }
    if let Some(proxy) = plan.targets.iter().find_map(|target| target.proxy.as_ref()) {
        description.push(format!("through the proxy {}: times include those of it", proxy.authority));
    }
    if let Some(rate) = connections.rate {
        description.push(format!("{}/s new connections at the start", trimmed(rate.per_second_f64())));
    }
    ModelContext {
        description,
        arrivals,
        connections: u64::from(connections.initial),
        depth: u64::from(depth),
    }
}

/// The stages of a rate without the constant one that a warm-up has in front.
fn without_warmup(stages: &[Stage], warmup: Nanos) -> &[Stage] {
    match stages {
        [first, rest @ ..] if first.duration == warmup && first.from == first.to && !rest.is_empty() => rest,
        all => all,
    }
}

/// The stages of a rate: each where there are few, else their number and the levels that matter.
fn ramps(stages: &[Stage]) -> String {
    let level = |rate: Rate| format!("{}/s", trimmed(rate.per_second_f64()));
    let words = |stage: &Stage| match stage.from == stage.to {
        true => format!("{} for {}", level(stage.to), span(stage.duration)),
        false => format!("from {} to {} in {}", level(stage.from), level(stage.to), span(stage.duration)),
    };
    if let [first, .., last] = stages
        && stages.len() > STAGES_TOLD
    {
        let peak = stages
            .iter()
            .flat_map(|stage| [stage.from, stage.to])
            .max_by(|a, b| a.per_second_f64().total_cmp(&b.per_second_f64()));
        let peak = level(peak.unwrap_or(last.to));
        let count = stages.len();
        return format!("{count} stages from {} to {}, peak {peak}", level(first.from), level(last.to));
    }
    stages.iter().map(words).collect::<Vec<_>>().join(", then ")
}

/// Number of targets at which iterations begin.
fn targets_of_scenarios(plan: &Plan) -> usize {
    let begins = |scenario: &Scenario| plan.steps[scenario.steps.start as usize].target;
    let targets: BTreeSet<usize> = plan.scenarios.iter().map(begins).collect();
    targets.len()
}

/// The users of the closed model over time.
fn course(users: &Population) -> String {
    match users.stages() {
        stages if stages.iter().all(|stage| stage.from == stage.to && stage.to == users.peak()) => {
            plural(u64::from(users.peak()), "user")
        }
        stages => format!("{}, at most {} users", plural(stages.len() as u64, "stage"), users.peak()),
    }
}

/// The phases of a plan in words: the name, the course of the load, and the length of each.
pub(crate) fn phases(plan: &Plan) -> Vec<[String; 3]> {
    let words = |phase: &PhaseOutline| {
        let load = match (&plan.load, &plan.users) {
            (Load::Open { profile, .. }, _) => {
                let stages = profile.stages().iter().map(|stage| (stage.duration, stage.from, stage.to));
                levels(stages, phase, |rate| format!("{}/s", trimmed(rate.per_second_f64())))
            }
            (Load::Closed, Some(users)) => {
                let stages = users.stages().iter().map(|stage| (stage.duration, stage.from, stage.to));
                format!("{} users", levels(stages, phase, |users| users.to_string()))
            }
            (Load::Closed, None) => String::new(),
        };
        let measured = if phase.measured { "" } else { ", not measured" };
        [phase.name.clone(), load, format!("{}{measured}", span(phase.length))]
    };
    plan.phases.iter().map(words).collect()
}

/// The levels that the stages of a phase go through: phases are made of whole stages.
fn levels<L: Copy + PartialEq>(
    stages: impl Iterator<Item = (Nanos, L, L)>,
    phase: &PhaseOutline,
    shown: impl Fn(L) -> String,
) -> String {
    let (mut begin, mut levels) = (Nanos::ZERO, Vec::new());
    for (length, from, to) in stages {
        if begin >= phase.at && begin < phase.end() {
            levels.extend([from, to]);
        }
        begin += length;
    }
    levels.dedup();
    levels.into_iter().map(shown).collect::<Vec<_>>().join(" to ")
}

/// Whom the load goes to.
pub(crate) fn targets(plan: &Plan) -> Vec<TargetContext> {
    let context =
        |target: &Target| TargetContext { urls: target.urls.clone(), authority: target.authority.clone() };
    plan.targets.iter().map(context).collect()
}

/// Names the protocols that are spoken with the targets.
fn protocol(plan: &Plan) -> String {
    let mut names = Vec::new();
    for name in plan.targets.iter().map(|target| target.protocol.title()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(" and ")
}

/// Describes the number of requests of an iteration; `None` if it is always one.
fn requests(length: &IterationLength) -> Option<String> {
    let number = |(count, of): (u64, u64)| match count.is_multiple_of(of) {
        true => (count / of).to_string(),
        false => format!("{:.2}", count as f64 / of as f64).trim_end_matches('0').to_owned(),
    };
    let average = if length.is_average { " on average" } else { "" };
    let least = number(length.least);
    let words = match length.most {
        Some((1, 1)) if length.least == (1, 1) => return None,
        Some(most) if most == length.least => format!("{least} requests"),
        Some(most) if length.least.0 == 0 => format!("at most {} requests", number(most)),
        Some(most) => format!("{least} to {} requests", number(most)),
        None if length.least.0 == 0 => "any number of requests".to_owned(),
        None if length.least == (1, 1) => "at least 1 request".to_owned(),
        None => format!("at least {least} requests"),
    };
    Some(format!("{words}{average}"))
}

/// A constant rate of iterations, and of requests if that is known and another one.
fn constant(rate: Rate, length: &IterationLength) -> String {
    let iterations = trimmed(rate.per_second_f64());
    let Some(of) = requests(length) else { return format!("{iterations}/s") };
    // In whole numbers: three times 3333.333/s is 10000/s.
    let all = length.most.filter(|most| *most == length.least).and_then(|(count, of)| {
        Rate::new(rate.count().checked_mul(count)?, Nanos(rate.period().0.checked_mul(of)?))
    });
    match all {
        Some(all) => {
            format!("{} requests/s ({iterations} iterations/s of {of})", trimmed(all.per_second_f64()))
        }
        None => format!("{iterations} iterations/s of {of},"),
    }
}

/// The machine that generates the load.
pub(crate) fn host() -> Host {
    let host = usage::host();
    let beside = plimsoll_monitor::host::host();
    Host {
        hostname: host.hostname,
        kernel: host.kernel,
        cpu_model: host.cpu_model,
        cpus: host.cpus as u64,
        governor: host.governor,
        memory_bytes: host.memory_bytes,
        soft_descriptors: host.soft_descriptors,
        hard_descriptors: beside.hard_descriptors,
        virtualisation: beside.virtualisation,
        clock_source: beside.clock_source,
        mitigations: beside.mitigations,
        cpu_limit: beside.limits.cpus,
        memory_limit_bytes: beside.limits.memory_bytes,
        port_range: beside.port_range,
        accept_queue: beside.accept_queue,
    }
}

/// The result of the first contact with the first of the targets, as the report shows it, and the addresses
/// of all of them that were passed over.
pub(crate) fn preflight(all: &[FirstContact], plan: &Plan) -> Option<Preflight> {
    let contact = all.first()?;
    let peer = contact.record()?.peers.first()?;
    Some(Preflight {
        request: contact.step.map(|step| plan.steps[step].name.clone()),
        status: contact.status(),
        protocol: peer.protocol.clone(),
        tls_version: peer.tls_version.clone(),
        cipher: peer.tls_cipher.clone(),
        address: peer.addresses.first().cloned().unwrap_or_default(),
        passed_over: all
            .iter()
            .filter_map(|contact| Some(contact.passed_over.as_ref()?.to_string()))
            .collect(),
    })
}

/// Flags whose values are not shown. A path is not a secret, but somebody may write the key in its place.
const CREDENTIALS: [&str; 7] =
    ["--api-key", "--basic", "--bearer", "--control-token", "--jwt-key", "--token", "--user"];

/// Flags with headers.
const HEADERS: [&str; 2] = ["--header", "-H"];

/// Flags whose values are contents of requests.
const CONTENTS: [&str; 4] = ["--body", "-b", "--jwt-claims", "--data"];

/// The command line without secrets: credentials, secret headers, fields of bodies, users and secret
/// parameters of URLs.
pub(crate) fn redacted(args: impl Iterator<Item = String>, redaction: &Redaction) -> Vec<String> {
    let of_flag = |flag: &str, value: &str| match flag {
        _ if CREDENTIALS.contains(&flag) => HIDDEN.to_owned(),
        _ if HEADERS.contains(&flag) => redaction.in_header(value).into_owned(),
        _ if CONTENTS.contains(&flag) => redaction.in_body(value).into_owned(),
        _ => redaction.in_text(value).into_owned(),
    };
    let has_secrets =
        |flag: &str| CREDENTIALS.contains(&flag) || HEADERS.contains(&flag) || CONTENTS.contains(&flag);
    let mut flag: Option<String> = None;
    let one = |arg: String| {
        if let Some(flag) = flag.take() {
            return of_flag(&flag, &arg);
        }
        if has_secrets(&arg) {
            flag = Some(arg.clone());
            return arg;
        }
        if let Some((flag, value)) = arg.split_once('=').filter(|(flag, _)| flag.starts_with("--")) {
            return format!("{flag}={}", of_flag(flag, value));
        }
        // A short flag and its value, as in `-HAccept: */*`.
        match arg.split_at_checked(2) {
            Some((flag, value)) if has_secrets(flag) => format!("{flag}{}", of_flag(flag, value)),
            _ => without_user(&redaction.in_text(&arg)),
        }
    };
    args.map(one).collect()
}

/// A URL, which may lack its scheme, without user and password.
pub(crate) fn without_user(text: &str) -> String {
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

/// The name of a plan: its own `name`, or else that of its file.
pub(crate) fn plan_name(plan: &LoadedDocument) -> Option<String> {
    let own = plan.document.name.get().map(|name| name.as_str().trim().to_owned());
    own.filter(|name| !name.is_empty()).or_else(|| {
        let file = Path::new(plan.name());
        // The source of a plan that a workload generated is not a file, and gives no name.
        let is_file = file
            .extension()
            .is_some_and(|ending| ["yaml", "yml", "json"].iter().any(|known| ending == *known));
        is_file.then(|| file.file_stem().map(|stem| stem.to_string_lossy().into_owned())).flatten()
    })
}

/// The id of a run that begins now. Ids of runs that follow each other have nothing in common, so that their
/// first few digits name them: multiplying by an odd number takes each instant to another one.
pub(crate) fn run_id(now: Nanos) -> String {
    // 2^64 divided by the golden ratio spreads consecutive numbers most evenly (Knuth, The Art of Computer
    // Programming 3, 6.4).
    format!("{:016x}", now.0.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

pub(crate) fn span(nanos: Nanos) -> String {
    humantime::format_duration(nanos.into()).to_string()
}

/// A rate without needless digits.
fn trimmed(rate: f64) -> String {
    if rate.fract() == 0.0 { format!("{rate:.0}") } else { format!("{rate:.3}") }
}

#[cfg(test)]
mod tests {
    use plimsoll_document::RawValue;
    use plimsoll_plan::{Disk, PlanPatch, Switch};

    use super::*;

    fn described(change: impl FnOnce(&mut PlanPatch)) -> (Vec<String>, u64) {
        let given = |text: &str| Some(RawValue::new("flag", text));
        let mut patch = PlanPatch {
            urls: given("https://a.test/").into_iter().collect(),
            insecure: Switch::on("flag"),
            connections: given("4"),
            duration: given("5s"),
            ..PlanPatch::default()
        };
        change(&mut patch);
        let model = model(&Plan::resolve(patch, &Disk).unwrap());
        (model.description, model.depth)
    }

    #[test]
    fn a_run_names_its_protocol_and_what_is_in_flight() {
        let given = |text: &str| RawValue::new("flag", text);
        let (lines, depth) = described(|patch| patch.pipeline = Some(given("3")));
        let expected = "closed: 12 users on 4 connections × 3 requests in flight, HTTP/1.1, 1 thread, for 5s";
        assert_eq!((&*lines, depth), (&[expected.to_owned()][..], 3));

        let (lines, depth) = described(|patch| {
            (patch.http2, patch.max_concurrent_streams) = (Switch::on("flag"), vec![given("8")]);
            patch.connection_rate = Some(given("0.5"));
        });
        let first = "closed: 32 users on 4 connections × 8 streams, HTTP/2, 1 thread, for 5s";
        assert_eq!((lines[0].as_str(), depth), (first, 8));
        assert_eq!(lines[1..], ["0.500/s new connections at the start"]);

        let (lines, _) = described(|patch| {
            patch.urls.push(given("http://a.test/"));
            patch.alpn = Some(given("h2,http/1.1"));
            patch.crud_delete_method = Some(given("DELETE"));
        });
        assert_eq!(
            lines,
            ["closed: 4 users over 2 targets in turn, HTTP/2 or HTTP/1.1 by ALPN and HTTP/1.1, 1 thread, \
              iterations of 2 requests, for 5s"]
        );
    }

    #[test]
    fn a_rate_of_several_steps_is_shown_in_requests_too() {
        let given = |text: &str| Some(RawValue::new("flag", text));
        let crud = |patch: &mut PlanPatch| {
            patch.crud_update_method = given("PATCH");
            patch.crud_delete_method = given("DELETE");
        };
        let (lines, _) = described(|patch| {
            crud(patch);
            patch.rate = given("25");
        });
        let tail = "uniform, 4 connections, then queue, HTTP/1.1, 1 thread, for 5s";
        assert_eq!(lines, [format!("open: 75 requests/s (25 iterations/s of 3 requests) {tail}")]);
        let (lines, _) = described(|patch| {
            crud(patch);
            (patch.duration, patch.stages) = (None, given("2s@10,3s@20"));
        });
        let stages = "10/s for 2s, then from 10/s to 20/s in 3s";
        assert_eq!(lines, [format!("open: {stages} (iterations of 3 requests) {tail}")]);
        let (lines, _) = described(|patch| {
            (patch.duration, patch.stages) = (None, given("1s@10,1s@40,1s@40,2s@20"));
        });
        assert_eq!(lines, [format!("open: 4 stages from 10/s to 20/s, peak 40/s {tail}")]);
    }

    #[test]
    fn users_are_told_apart_from_connections() {
        let given = |text: &str| Some(RawValue::new("flag", text));
        let (lines, _) = described(|patch| (patch.connections, patch.users) = (None, given("7")));
        assert_eq!(lines, ["closed: 7 users, up to 7 connections, HTTP/1.1, 1 thread, for 5s"]);
        let (lines, _) = described(|patch| {
            (patch.connections, patch.duration, patch.user_stages) = (given("9"), None, given("1s@2,2s@8"));
        });
        let stages = "2 stages, at most 8 users";
        assert_eq!(lines, [format!("closed: {stages}, up to 9 connections, HTTP/1.1, 1 thread, for 3s")]);
    }

    #[test]
    fn a_target_has_the_urls_that_address_it() {
        let given = |text: &str| RawValue::new("flag", text);
        let patch = PlanPatch {
            urls: [
                "http://me:secret@a.test/x-ID",
                "http://a.test/x-ID",
                "https://a.test/ID",
                "a.test:80/ID/y",
            ]
            .map(given)
            .to_vec(),
            insecure: Switch::on("flag"),
            crud_update_method: Some(given("PATCH")),
            crud_request_variable_name: Some(given("ID")),
            crud_request_variable_value_end: Some(given("10")),
            ..PlanPatch::default()
        };
        let targets = targets(&Plan::resolve(patch, &Disk).unwrap());
        let shown: Vec<_> =
            targets.iter().map(|target| (&*target.authority, target.urls.join(" "))).collect();
        assert_eq!(
            shown,
            [
                ("a.test", "http://a.test/x-ID http://a.test:80/ID/y".to_owned()),
                ("a.test", "https://a.test/ID".to_owned()),
            ]
        );
    }

    #[test]
    fn the_first_digits_of_an_id_tell_runs_apart() {
        let ids: std::collections::BTreeSet<String> =
            (0..100).map(|second| run_id(Nanos::from_secs(1_772_366_400 + second))[..8].to_owned()).collect();
        assert_eq!(ids.len(), 100);
    }

    #[test]
    fn secrets_do_not_reach_the_result() {
        let args = [
            "run",
            "http://u:p@host/",
            "--basic",
            "u:p",
            "--bearer=token",
            "--jwt-key",
            "topsecret",
            "-H",
            "Authorization: Basic eA==",
            "-HCookie: a=b",
            "--header=Accept: text/html",
            "-HX-Custom-Secret:x",
            "-b",
            r#"{"password": "x"}"#,
            "-ba=1&pin=x",
            "--otlp=http://a/?api_key=x",
            "a.test/?Token=x&b=1",
            "x",
        ];
        let shown = redacted(args.iter().map(ToString::to_string), &Redaction::new(["pin"]));
        assert_eq!(
            shown,
            [
                "run",
                "http://***@host/",
                "--basic",
                "***",
                "--bearer=***",
                "--jwt-key",
                "***",
                "-H",
                "Authorization: ***",
                "-HCookie: ***",
                "--header=Accept: text/html",
                "-HX-Custom-Secret: ***",
                "-b",
                r#"{"password": "***"}"#,
                "-ba=1&pin=***",
                "--otlp=http://a/?api_key=***",
                "a.test/?Token=***&b=1",
                "x",
            ]
        );
    }
}
