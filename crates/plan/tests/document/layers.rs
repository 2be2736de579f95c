//! Precedence of layers, and settings that give way.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use plimsoll_core::Nanos;
use plimsoll_document::{Files, KeyLogFile, RawValue};
use plimsoll_plan::{
    Command, Load, PlanPatch, PlanSource, Protocol, Refused, Resolved, Switch, is_plan_name,
};

/// Files by name.
pub(crate) struct Memory(pub(crate) BTreeMap<String, Vec<u8>>);

impl Files for Memory {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.0
            .get(&path.to_string_lossy().into_owned())
            .cloned()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn key_log(&self, _: &Path) -> io::Result<KeyLogFile> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

fn resolve(
    run: &str,
    environment: &[(&str, &str)],
    change: impl FnOnce(&mut PlanPatch),
) -> Result<Resolved, Refused> {
    let mut flags = PlanPatch { urls: vec![RawValue::new("URL", "http://a.test/")], ..PlanPatch::default() };
    change(&mut flags);
    let environment = environment.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let files = Memory([("folder/plan.yaml".to_owned(), format!("run: {run}").into_bytes())].into());
    let command = Command { plan: Some(PlanSource::File("folder/plan.yaml".to_owned())), environment, flags };
    command.resolve(&files)
}

fn good(run: &str, environment: &[(&str, &str)], change: impl FnOnce(&mut PlanPatch)) -> Resolved {
    resolve(run, environment, change).unwrap_or_else(|refused| panic!("{run}: {:?}", refused.problems))
}

fn flag(by: &'static str, text: &str) -> Option<RawValue> {
    Some(RawValue::new(by, text))
}

fn gave_way(resolved: &Resolved) -> Vec<String> {
    let shown = |name: &str, to: &str| format!("{name} to {to}");
    resolved.layered.gave_way.iter().map(|gone| shown(&gone.value.by, &gone.to.by)).collect()
}

#[test]
fn each_layer_replaces_the_settings_of_those_below() {
    let resolved = good(
        "{connections: 1, threads: 1, duration: 1s, drain: 9s}",
        &[("PLIMSOLL_CONNECTIONS", "2"), ("PLIMSOLL_DURATION", "2s"), ("PLIMSOLL_TIMEOUT", "")],
        |flags| {
            flags.connections = flag("--connections", "3");
        },
    );
    let plan = &resolved.plan;
    assert_eq!(plan.connections.initial, 3);
    assert_eq!((plan.end.duration, plan.drain), (Some(Nanos::from_secs(2)), Nanos::from_secs(9)));
    let settings = resolved.layered.patch.settings();
    let by = |name: &str| {
        let (_, values) = settings.iter().find(|(setting, _)| setting.name == name).unwrap();
        values.first().map(|given| given.by.to_string())
    };
    assert_eq!(by("connections").as_deref(), Some("--connections"));
    assert_eq!(by("duration").as_deref(), Some("PLIMSOLL_DURATION"));
    assert_eq!(by("drain").as_deref(), Some("run.drain"));
    assert_eq!(by("timeout"), None);
    assert_eq!(
        gave_way(&resolved),
        [
            "run.connections to PLIMSOLL_CONNECTIONS",
            "run.duration to PLIMSOLL_DURATION",
            "PLIMSOLL_CONNECTIONS to --connections"
        ]
    );
}

#[test]
fn what_a_higher_layer_makes_pointless_gives_way() {
    let rate = |text: &'static str| move |flags: &mut PlanPatch| flags.rate = flag("--rate", text);
    let resolved = good("{stages: 5s@100, arrival: poisson}", &[], rate("7"));
    let Load::Open { profile, .. } = &resolved.plan.load else { panic!("an open run") };
    assert_eq!(profile.stages().len(), 1);
    assert_eq!(gave_way(&resolved), ["run.stages to --rate"]);

    let users = |flags: &mut PlanPatch| flags.user_stages = flag("--user-stages", "2s@100");
    let resolved = good("{rate: 5, duration: 3s, arrival: poisson}", &[], users);
    assert!(matches!(resolved.plan.load, Load::Closed) && resolved.plan.users.is_some());
    let gone = ["run.duration to --user-stages", "run.rate to --user-stages", "run.arrival to --user-stages"];
    assert_eq!(gave_way(&resolved), gone);

    let resolved = good("{rate: 5, duration: 3s}", &[], |flags| flags.stages = flag("--stages", "2s@100"));
    assert_eq!(resolved.plan.end.duration, Some(Nanos::from_secs(2)));
    assert_eq!(gave_way(&resolved), ["run.duration to --stages", "run.rate to --stages"]);

    let resolved = good("{http2: true, window_bits: 20}", &[], |flags| flags.http1 = Switch::on("--http1.1"));
    assert_eq!(resolved.plan.targets[0].protocol, Protocol::Http1);
    let resolved = good("{pipeline: 4}", &[], |flags| flags.http2 = Switch::on("--http2"));
    assert_eq!(resolved.plan.targets[0].protocol, Protocol::Http2);
    let resolved = good("{disable_keepalive: true}", &[("PLIMSOLL_PIPELINE", "3")], |_| {});
    assert_eq!((resolved.plan.connections.depth, resolved.plan.connections.keep_alive), (3, true));
    let resolved = good("{basic: 'a:b'}", &[("PLIMSOLL_BEARER", "token")], |_| {});
    assert_eq!(gave_way(&resolved), ["run.basic to PLIMSOLL_BEARER"]);
    let resolved = good("{http2: true}", &[("PLIMSOLL_HTTP2", "false")], |_| {});
    assert_eq!(resolved.plan.targets[0].protocol, Protocol::Http1);
    let resolved = good("{timeout: 5s}", &[], |flags| flags.stream_timeout = flag("--stream-timeout", "7s"));
    assert_eq!(resolved.plan.timeout, Nanos::from_secs(7));
}

#[test]
fn headers_are_replaced_by_name_and_lists_as_a_whole() {
    let resolved = good(
        "{headers: ['A: 1', 'b: 2', 'C: 3'], source_ip: [127.0.0.1, 127.0.0.2]}",
        &[("PLIMSOLL_HEADERS", "B: 4\nD: 5\n"), ("PLIMSOLL_SOURCE_IP", "127.0.0.3")],
        |flags| flags.headers = vec![RawValue::new("--header", "a: 6")],
    );
    let headers: Vec<_> = resolved.layered.patch.headers.iter().map(|given| given.text.as_str()).collect();
    assert_eq!(headers, ["C: 3", "B: 4", "D: 5", "a: 6"]);
    assert_eq!(resolved.plan.connections.sources.len(), 1);
}

#[test]
fn within_one_layer_a_contradiction_stays_one() {
    for (run, environment, expected) in [
        ("{rate: 5, stages: 5s@1}", &[][..], "run.rate and run.stages exclude each other"),
        ("{http2: true, http1: true}", &[], "run.http1 and run.http2 exclude each other"),
        (
            "{stages: 5s@1}",
            &[("PLIMSOLL_DURATION", "5s")],
            "PLIMSOLL_DURATION and run.stages exclude each other",
        ),
        ("{}", &[("PLIMSOLL_RATES", "5")], "the variable PLIMSOLL_RATES is not a setting"),
        ("{}", &[("PLIMSOLL_HTTP2", "1")], "PLIMSOLL_HTTP2: `1` is not true or false"),
        ("{}", &[("PLIMSOLL_RATE", "x")], "PLIMSOLL_RATE: `x` is not a rate"),
    ] {
        let refused = resolve(run, environment, |_| {}).map(|_| ()).unwrap_err();
        assert!(refused.problems.to_string().contains(expected), "{run}: {}", refused.problems);
    }
    // Names that do not resemble a setting belong to another program, or to the plan itself.
    good("{threads: 1}", &[("PLIMSOLL_SERVICE_HOST", "x"), ("RATE", "y")], |_| {});
}

#[test]
fn files_of_a_plan_are_relative_to_it_and_those_of_flags_are_not() {
    let plan = b"run: {bearer: '@token'}".to_vec();
    let files = |token: &str| {
        Memory([("folder/p.yml".to_owned(), plan.clone()), (token.to_owned(), b"t".to_vec())].into())
    };
    let command = || Command {
        plan: Some(PlanSource::File("folder/p.yml".to_owned())),
        flags: PlanPatch { urls: vec![RawValue::new("URL", "http://a.test/")], ..PlanPatch::default() },
        ..Command::default()
    };
    assert!(command().resolve(&files("folder/token")).is_ok());
    assert!(command().resolve(&files("token")).is_err());
    let mut by_flag = command();
    by_flag.flags.basic = flag("--basic", "@user");
    let refused = by_flag.resolve(&files("folder/user")).map(|_| ()).unwrap_err();
    assert!(refused.problems.to_string().contains("--basic: cannot read `user`"), "{}", refused.problems);
}

#[test]
fn a_setting_that_cannot_be_read_hides_no_other_and_causes_none() {
    let refused = resolve("{rate: [], arrival: poisson, threads: many, drain: {}}", &[], |_| {})
        .map(|_| ())
        .unwrap_err();
    let messages: Vec<_> = refused.problems.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "`rate` has to be a single value, and is a list",
            "run.threads: `many` is not a count",
            "`drain` has to be a single value, and is a mapping",
        ]
    );
    assert!(refused.problems.iter().all(|problem| problem.place.is_some()));
}

#[test]
fn plans_are_told_from_urls_by_their_ending() {
    for plan in ["plan.yaml", "./a/b.YML", "x.json", "-"] {
        assert!(is_plan_name(plan), "{plan}");
    }
    for url in ["http://a/x.json", "localhost:8080", "a.test/x?y.json", "a/b"] {
        assert!(!is_plan_name(url), "{url}");
    }
}
