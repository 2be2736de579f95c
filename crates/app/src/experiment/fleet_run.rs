//! Runs that a fleet does not carry out, and their refusal: by the coordinator, and by an agent.

use plimsoll_core::{Nanos, Rate, figure};
use plimsoll_document::{Problem, Problems};
use plimsoll_fleet::{AgentLimits, AllowedScripts, OnLoss};
use plimsoll_plan::{Address, Confinement, Load, Plan, PlanPatch, StartTime};

use crate::args::find::{FindArgs, SweptSetting};
use crate::args::fleet::FleetSpec;
use crate::args::live::LiveArgs;
use crate::args::run::RunArgs;

/// Refuses flags and plans that do not go together with `--fleet`.
///
/// # Errors
/// All conflicts.
pub(crate) fn admit(
    args: &RunArgs,
    plan: &Plan,
    live: &LiveArgs,
    obstacle: Option<&'static str>,
    spec: &FleetSpec,
) -> Result<(), Problems> {
    let mut problems = Problems::default();
    let mut refuse = |given: bool, other: &str, why: &str| {
        if given {
            let message = format!("--fleet and {other} exclude each other: {why}");
            problems.push(Problem::new(message).with_hint("leave out one of them"));
        }
    };
    let single = "it is of a run in this process";
    refuse(args.repeat.is_some(), "--repeat", single);
    refuse(args.calibrate, "--calibrate", "the capacity of this machine says nothing about the agents");
    refuse(args.probe.is_some(), "--probe", single);
    refuse(args.slow_clients.is_some(), "--slow-clients", single);
    refuse(args.evidence.evidence.is_some(), "--evidence", "each agent has the record of its own share");
    refuse(args.slices, "--slices", "parts of several runs are not kept apart");
    refuse(args.plan.h2loadrunner.is_some(), "--h2loadrunner", "import it to a plan first");
    let files = live.files_of_records().into_iter().filter(|(flag, _)| *flag != "--stats");
    for (flag, file) in files {
        refuse(file.is_some(), flag, "the agents would write it");
    }
    refuse(
        live.watch.descriptors() > 0,
        "--watch-pid",
        "the processes of this machine are not those of the agents",
    );
    refuse(plan.shard_name().is_some(), "--shard", "each agent has its own");
    refuse(plan.start != StartTime::WhenReady, "--start-at", "all begin when they are ready");
    refuse(plan.wrk.is_some(), "a script of wrk", "it has one beginning and one end");
    refuse(obstacle.is_some(), obstacle.unwrap_or_default(), single);
    if spec.on_loss == OnLoss::Takeover {
        let mut refuse = |given: bool, what: &str| {
            if given {
                let message = format!("--on-loss takeover: {what}");
                problems.push(Problem::new(message).with_hint("use --on-loss continue, or abort"));
            }
        };
        refuse(
            matches!(plan.load, Load::Closed),
            "users of a closed load have a state that is lost with their agent; it is for loads with a rate",
        );
        refuse(!plan.feeds.is_empty(), "rows of data that a lost agent has used would be used again");
        refuse(plan.scripts.is_some(), "the state of scripts is lost with their agent");
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// Refuses flags and plans that do not go together with `find --fleet`. Of a sweep, `plan` is that of its
/// first level.
///
/// # Errors
/// All conflicts.
pub(crate) fn admit_search(args: &FindArgs, fleet: &FleetSpec, plan: &Plan) -> Result<(), Problems> {
    let mut problems = Problems::default();
    let mut refuse = |given: bool, other: &str, why: &str| {
        if given {
            let message = format!("--fleet and {other} exclude each other: {why}");
            problems.push(Problem::new(message).with_hint("leave out one of them"));
        }
    };
    let of_others = "the processes of this machine are not those of the agents";
    refuse(args.watch.descriptors() > 0, "--watch-pid", of_others);
    refuse(args.evidence.evidence.is_some(), "--evidence", "each agent has the record of its own share");
    refuse(args.plan.h2loadrunner.is_some(), "--h2loadrunner", "import it to a plan first");
    let is_of_threads =
        args.sweep().and_then(Result::ok).is_some_and(|sweep| sweep.setting == SweptSetting::Threads);
    refuse(is_of_threads, "--sweep threads", "the threads of agents say how shards are dealt");
    let needs_all = "a run without one of its agents says nothing about the rate";
    refuse(fleet.on_loss == OnLoss::Continue, "--on-loss continue", needs_all);
    refuse(fleet.on_loss == OnLoss::Takeover, "--on-loss takeover", needs_all);
    refuse(plan.shard_name().is_some(), "--shard", "each agent has its own");
    refuse(plan.start != StartTime::WhenReady, "--start-at", "all begin when they are ready");
    refuse(plan.wrk.is_some(), "a script of wrk", "it has one beginning and one end");
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// Refuses the arguments of a coordinator that an agent does not carry out: those that write files, start
/// other runs, or permit scripts more than the agent does.
///
/// # Errors
/// All of them.
pub(crate) fn admit_arguments(limits: &AgentLimits, args: &RunArgs) -> Result<(), Problems> {
    let mut problems = Problems::default();
    let mut refuse = |given: bool, flag: &str, hint: &str| {
        if given {
            problems.push(Problem::new(format!("an agent does not take {flag}")).with_hint(hint.to_owned()));
        }
    };
    let writes = "an agent writes nothing but the history of its runs";
    for (flag, file) in args.live.files_of_records() {
        refuse(file.is_some(), flag, writes);
    }
    refuse(args.report.is_some(), "--report", writes);
    refuse(args.evidence.evidence.is_some(), "--evidence", writes);
    refuse(!args.output.out.is_empty(), "--out", writes);
    refuse(args.output.json.is_some(), "--json", writes);
    refuse(args.output.step_summary, "--step-summary", writes);
    let single = "an agent carries out one run, as it is told";
    refuse(args.plan.h2loadrunner.is_some(), "--h2loadrunner", single);
    refuse(args.fleet.is_given(), "--fleet", single);
    refuse(args.calibrate, "--calibrate", single);
    refuse(args.repeat.is_some(), "--repeat", single);
    refuse(args.live.watch.descriptors() > 0, "--watch-pid", single);
    let asks = args.plan.settings.patch.script_allow_system.is_on();
    refuse(
        asks && limits.scripts != AllowedScripts::System,
        "--script-allow-system",
        "its --allow-scripts=system would permit that: ask its operator",
    );
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// Confines what a coordinator has sent to the folder of the run. Scripts that the agent does not permit are
/// only read, until [`within_limits`] refuses them.
pub(crate) fn confine(limits: &AgentLimits, flags: &mut PlanPatch) {
    flags.confined_to = Some(Confinement::Plan);
    flags.allow_files.clear();
    flags.only_read_scripts = limits.scripts == AllowedScripts::None;
}

/// Checks that an agent may carry out its shard of a plan. Returns the highest rate of the whole load, in
/// arrivals per second, up to which its shard stays within its limits.
///
/// # Errors
/// Everything that is beyond them.
pub(crate) fn within_limits(limits: &AgentLimits, plan: &Plan) -> Result<Option<Rate>, Problems> {
    let mut problems = Problems::default();
    if limits.scripts == AllowedScripts::None && (plan.scripts.is_some() || plan.wrk.is_some()) {
        let hint = "its --allow-scripts decides whether it does: choose other agents, or ask its operator";
        problems.push(Problem::new("it runs no scripts, and the plan has some").with_hint(hint));
    }
    if !limits.targets.is_empty() {
        let allowed: Vec<String> = limits.targets.iter().map(ToString::to_string).collect();
        let only = format!("it makes load on {} only", allowed.join(", "));
        let hint = "its --allow decides where it makes load: choose other agents, or ask its operator";
        for target in &plan.targets {
            let members = target.pool.iter().map(|member| (&member.authority, &member.address));
            for (authority, address) in [(&target.authority, &target.address)].into_iter().chain(members) {
                if let Some(place) = refused_place(limits, authority, address) {
                    problems.push(Problem::new(format!("{only}, and not on {place}")).with_hint(hint));
                }
            }
            if let Some(proxy) = target.proxy.as_ref().filter(|proxy| !limits.permit(&proxy.host, proxy.port))
            {
                let message = format!("{only}, and not through the proxy {}", proxy.authority);
                problems.push(Problem::new(message).with_hint(hint));
            }
        }
        if plan.dynamic_origins.is_some() {
            let message = format!("{only}, and the plan may lead to servers that it does not name");
            problems.push(
                Problem::new(message).with_hint("do not follow redirects, and write hosts into the plan"),
            );
        }
    }
    let Some(most) = limits.requests_per_s else { return finish(problems, None) };
    let hint = "its --max-rate decides how much it makes: take more agents, or a lower rate";
    let requests = plan.requests_per_arrival();
    let (Load::Open { profile, .. }, Some(requests)) = (&plan.load, requests) else {
        let message = format!(
            "it makes {} at most, and the plan does not say how many it would make",
            figure::per_second_of("requests", most)
        );
        problems.push(
            Problem::new(message).with_hint("give the load a rate, and as many requests in each iteration"),
        );
        return finish(problems, None);
    };
    let share = plan.share();
    let asked = profile.peak() * requests * share;
    if asked > most {
        let message = format!(
            "it makes {} at most, and its shard has up to {}",
            figure::per_second_of("requests", most),
            figure::per_second(asked)
        );
        problems.push(Problem::new(message).with_hint(hint));
    }
    let whole = most / share / requests;
    finish(problems, Rate::new((whole * 1_000.0).floor().max(1.0) as u64, Nanos::from_secs(1_000)))
}

/// The place where a server of a plan would be loaded, if an agent may not load it: its address, which the
/// authority of its requests need not be.
fn refused_place(limits: &AgentLimits, authority: &str, address: &Address) -> Option<String> {
    let (place, host) = match address {
        Address::Host { host, port } if limits.permit(host, *port) => return None,
        Address::Host { host, port } if host.contains(':') => {
            (format!("[{host}]:{port}"), format!("[{host}]"))
        }
        Address::Host { host, port } => (format!("{host}:{port}"), host.clone()),
        Address::Fixed(all) => {
            let one = all.iter().find(|one| !limits.permit(&one.ip().to_string(), one.port()))?;
            (one.to_string(), one.ip().to_string())
        }
        Address::Unix(path) => (format!("the unix socket {}", path.display()), String::new()),
    };
    let is_told = authority == place || authority.eq_ignore_ascii_case(&host);
    Some(if is_told { place } else { format!("{place}, where requests to {authority} would go") })
}

fn finish(problems: Problems, rate: Option<Rate>) -> Result<Option<Rate>, Problems> {
    if problems.is_empty() { Ok(rate) } else { Err(problems) }
}

#[cfg(test)]
mod tests {
    use plimsoll_document::RawValue;
    use plimsoll_plan::Disk;

    use super::*;

    fn problems(limits: &AgentLimits, url: &str, rate: Option<&str>) -> Vec<String> {
        let given = |flag: &str, text: &str| Some(RawValue::new(flag.to_owned(), text));
        let patch = PlanPatch {
            urls: vec![RawValue::new("URL", url)],
            rate: rate.and_then(|rate| given("--rate", rate)),
            seed: given("--seed", "1"),
            shard: given("--shard", "1/2"),
            ..PlanPatch::default()
        };
        let plan = Plan::resolve(patch, &Disk).unwrap();
        match within_limits(limits, &plan) {
            Ok(most) => {
                assert_eq!(most.map(Rate::per_second_f64), limits.requests_per_s.map(|most| most * 2.0));
                Vec::new()
            }
            Err(problems) => problems.iter().map(|problem| problem.message.clone()).collect(),
        }
    }

    #[test]
    fn an_agent_keeps_to_its_targets_and_its_rate() {
        let targets = vec!["a.test:80".parse().unwrap()];
        let limits = AgentLimits { targets, requests_per_s: Some(100.0), ..AgentLimits::default() };
        assert!(problems(&limits, "http://a.test/", Some("200")).is_empty());
        assert_eq!(
            problems(&limits, "http://b.test/", Some("300")),
            [
                "it makes load on a.test:80 only, and not on b.test:80",
                "it makes 100 requests/s at most, and its shard has up to 150/s"
            ]
        );
        let other_port = problems(&limits, "https://a.test/", Some("1"));
        assert_eq!(other_port, ["it makes load on a.test:80 only, and not on a.test:443"]);
        assert!(problems(&limits, "http://a.test/", None)[0].contains("does not say how many"));
        assert!(problems(&AgentLimits::default(), "http://b.test/", None).is_empty());
    }

    /// Symptom: "it makes load on 127.0.0.1:19090 only, and not on 127.0.0.1:19090".
    #[test]
    fn the_address_that_is_refused_is_named_and_not_only_who_is_asked_for() {
        let targets = vec!["127.0.0.1:19090".parse().unwrap()];
        let limits = AgentLimits { targets, ..AgentLimits::default() };
        let refused = |address: &Address| refused_place(&limits, "127.0.0.1:19090", address);
        let told = |place: &str| Some(format!("{place}, where requests to 127.0.0.1:19090 would go"));
        let host = |host: &str, port| Address::Host { host: host.to_owned(), port };
        assert_eq!(refused(&host("127.0.0.1", 19090)), None);
        assert_eq!(refused(&host("b.test", 80)), told("b.test:80"));
        assert_eq!(refused(&host("::1", 80)), told("[::1]:80"));
        let fixed = ["127.0.0.1:19090", "127.0.0.1:22"].map(|one| one.parse().unwrap());
        assert_eq!(refused(&Address::Fixed(fixed.to_vec())), told("127.0.0.1:22"));
        assert_eq!(refused(&Address::Unix("/run/s".into())), told("the unix socket /run/s"));
        let plain = refused_place(&limits, "127.0.0.1:22", &host("127.0.0.1", 22));
        assert_eq!(plain.as_deref(), Some("127.0.0.1:22"));
    }
}
