//! Shards of a load: those of several machines together are, request by request, the load of one.

use plimsoll_core::{Random, Shard};
use plimsoll_document::RawValue;
use plimsoll_engine::load_checksum;
use plimsoll_plan::{Plan, PlanPatch};
use plimsoll_testkit::{Behaviour, SimOptions};

use super::{patch, resolved, simulate, world};

/// Random plans and fleets.
const CASES: u64 = 200;

/// Requests in the order of their bytes: every byte, and when each was received.
type Requests = Vec<(Vec<u8>, u64)>;

/// The requests of a plan, how many were scheduled, and the rate that was asked for.
fn seen(plan: &Plan) -> (Requests, u64, Option<f64>) {
    let options = SimOptions { keep_requests: true, ..world(Behaviour::default()) };
    let (record, truth) = simulate(plan, options);
    let mut requests: Requests =
        truth.entries().into_iter().map(|entry| (entry.request, entry.received.0)).collect();
    requests.sort_unstable();
    (requests, record.accounting.scheduled, record.target_per_second)
}

/// A plan whose requests are all different.
fn varied(flags: &[(&'static str, String)], urls: &[&str]) -> Plan {
    let flags: Vec<(&str, &str)> = flags.iter().map(|(flag, value)| (*flag, value.as_str())).collect();
    resolved(PlanPatch {
        urls: urls.iter().map(|url| RawValue::new("URL", *url)).collect(),
        body: Some(RawValue::new("--body", "${random_hex(12)} of ${sequence} by ${worker}")),
        ..patch(&flags)
    })
}

/// The flags of a random load.
fn load(random: &mut Random) -> Vec<(&'static str, String)> {
    let mut below = |most: u64| random.below(most);
    let mut flags = vec![("--seed", below(1_000).to_string())];
    match below(4) {
        0 => flags.extend([("--rate", (below(900) + 1).to_string()), ("-d", "700ms".to_owned())]),
        1 => {
            let stages = format!("300ms@{},400ms@{}", below(900) + 1, below(900) + 1);
            flags.push(("--stages", stages));
        }
        2 => flags.extend([("--rate", (below(400) + 1).to_string()), ("-n", (below(300) + 1).to_string())]),
        _ => {
            flags.extend([("--rate", (below(900) + 1).to_string()), ("-d", "500ms".to_owned())]);
            flags.extend([("--warmup", "200ms".to_owned()), ("--arrival", "poisson".to_owned())]);
        }
    }
    // As many as all workers have at least one of, for each of two servers.
    flags.push(("-c", "64".to_owned()));
    flags
}

#[test]
fn the_requests_of_all_shards_are_those_of_one_machine() {
    let mut most = 0;
    for case in 0..CASES {
        let mut random = Random::new(case, 0);
        let flags = load(&mut random);
        let (of, threads) = (random.below(4) + 1, random.below(3) + 1);
        let urls: &[&str] = match random.below(2) {
            0 => &["http://sim.test/${uuid}?n=${random_int(1,1000000)}"],
            _ => &["http://sim.test/a/${uuid}", "http://sim.test/b?n=${random_int(1,1000000)}"],
        };
        let with = |more: &[(&'static str, String)]| varied(&[&flags[..], more].concat(), urls);
        let whole = with(&[("-t", (of * threads).to_string())]);
        let (want, scheduled, rate) = seen(&whole);
        let (mut union, mut due, mut rates) = (Vec::new(), 0, 0.0);
        for shard in 1..=of {
            let plan = with(&[("-t", threads.to_string()), ("--shard", format!("{shard}/{of}"))]);
            assert_eq!(load_checksum(&plan), load_checksum(&whole), "{case}: {flags:?}");
            assert_eq!(plan.shard, Shard { index: shard as u32 - 1, of: of as u32 });
            let (requests, scheduled, rate) = seen(&plan);
            union.extend(requests);
            due += scheduled;
            rates += rate.unwrap_or_default();
        }
        union.sort_unstable();
        assert_eq!(union.len(), want.len(), "{case}: {flags:?} in {of} shards of {threads}");
        assert!(union == want, "{case}: {flags:?} in {of} shards of {threads}");
        assert_eq!(due, scheduled, "{case}: {flags:?}");
        // One that ends with its iterations ends at another time in each shard.
        if !flags.iter().any(|(flag, _)| *flag == "-n") {
            let rate = rate.expect("an open load has a rate");
            assert!((rates - rate).abs() < 1e-6 * rate, "{case}: {rates} {rate}");
        }
        most = most.max(of);
    }
    assert!(most > 2, "there were fleets");
}

/// A process that has several neighbouring shards sends what as many processes would.
#[test]
fn neighbouring_shards_of_one_process_are_those_of_several() {
    let flags = [("--rate", "700".to_owned()), ("-d", "1s".to_owned()), ("-c", "16".to_owned())];
    let with = |more: &[(&'static str, String)]| {
        varied(&[&flags[..], &[("--seed", "3".to_owned())], more].concat(), &["http://sim.test/${uuid}"])
    };
    let (want, scheduled, rate) = seen(&with(&[("-t", "10".to_owned())]));
    let (mut union, mut due, mut rates) = (Vec::new(), 0, 0.0);
    for (shards, threads) in [("1/5", 2), ("2-4/5", 6), ("5/5", 2)] {
        let plan = with(&[("-t", threads.to_string()), ("--shard", shards.to_owned())]);
        assert_eq!(plan.shard_name().as_deref(), Some(shards));
        // Their results are merged: they are of one plan and one load.
        let first = with(&[("-t", "2".to_owned()), ("--shard", "1/5".to_owned())]);
        assert_eq!(plan.fingerprint(), first.fingerprint());
        assert_eq!(load_checksum(&plan), load_checksum(&first));
        let (requests, scheduled, rate) = seen(&plan);
        union.extend(requests);
        due += scheduled;
        rates += rate.unwrap_or_default();
    }
    union.sort_unstable();
    assert!(union == want && due == scheduled, "{due} {scheduled}");
    assert!((rates - rate.expect("it has one")).abs() < 1e-6, "{rates}");
}

/// The property of a fleet with agents of different strength: however many shards each has, all together are
/// the schedule of one machine, and each has its share of it.
#[test]
fn the_shards_of_uneven_fleets_are_the_schedule_of_one_machine() {
    for seed in 0..40_u64 {
        let mut random = Random::new(seed, 7);
        let held: Vec<u32> = (0..2 + random.below(3)).map(|_| 1 + random.below(4) as u32).collect();
        let (of, threads) = (held.iter().sum::<u32>(), 1 + random.below(2) as u32);
        let rate = (200 + random.below(900)).to_string();
        let with = |threads: u32, more: &[(&'static str, String)]| {
            let flags = [
                ("--rate", rate.clone()),
                ("-d", "700ms".to_owned()),
                ("-c", "64".to_owned()),
                ("--seed", seed.to_string()),
                ("-t", threads.to_string()),
            ];
            varied(&[&flags[..], more].concat(), &["http://sim.test/${uuid}"])
        };
        let (want, scheduled, _) = seen(&with(of * threads, &[]));
        let (mut union, mut first) = (Vec::new(), 1);
        for held in &held {
            let name = match held {
                1 => format!("{first}/{of}"),
                held => format!("{first}-{}/{of}", first + held - 1),
            };
            first += held;
            let (requests, due, _) = seen(&with(held * threads, &[("--shard", name)]));
            let share = scheduled as f64 * f64::from(*held) / f64::from(of);
            let off = (due as f64 - share).abs();
            assert!(off <= f64::from(held * threads), "seed {seed}: {due} beside {share}");
            union.extend(requests);
        }
        union.sort_unstable();
        assert!(union == want, "seed {seed}: {} and {} requests", union.len(), want.len());
    }
}

/// Users and iterations of the closed model are dealt to the shards, too.
#[test]
fn closed_loads_are_shared_by_their_connections_and_iterations() {
    for (connections, iterations, of) in [(6_u64, 601_u64, 3_u64), (4, 50, 2)] {
        let shared =
            [("-c", connections.to_string()), ("-n", iterations.to_string()), ("--seed", "1".to_owned())];
        let url = ["http://sim.test/${uuid}"];
        let (want, ..) = seen(&varied(&[&shared[..], &[("-t", of.to_string())]].concat(), &url));
        let mut union = Vec::new();
        for shard in 1..=of {
            let flags = [&shared[..], &[("--shard", format!("{shard}/{of}"))]].concat();
            union.extend(seen(&varied(&flags, &url)).0);
        }
        union.sort_unstable();
        assert_eq!(union.len() as u64, iterations);
        assert!(union == want, "{connections} {iterations} {of}");
    }
}
