//! `plimsoll crud` against the reference cluster: its modes, its counts, and its findings about lies.

use plimsoll_testkit::verdict;
use serde_json::Value;

use crate::loopback::crud_cluster::Cluster;
use crate::loopback::process::{Finished, Folder, run};
use crate::loopback::sink::Sink;

fn url(cluster: &Cluster, node: usize) -> String {
    format!("http://{}", cluster.address(node))
}

/// Runs a load with JSON as its output.
fn load(cluster: &Cluster, args: &str) -> Finished {
    run(&format!("crud --leader {} --quiet -o json {args}", url(cluster, cluster.leader())))
}

fn all_nodes(cluster: &Cluster) -> String {
    (0..cluster.size()).map(|node| url(cluster, node)).collect::<Vec<_>>().join(",")
}

/// Requests of the steps whose names begin so that ended well.
fn ok(result: &Value, name: &str) -> u64 {
    let steps = result["by_step"].as_array().expect("steps");
    let named = steps.iter().filter(|step| step["step"].as_str().is_some_and(|step| step.starts_with(name)));
    named.map(|step| step["ok"].as_u64().expect("a count")).sum()
}

/// Returns for each audited server whether it passed, the text of its audit, and the evidence.
fn audits(result: &Value) -> Vec<(bool, String, Vec<String>)> {
    let findings = result["reconciliation"]["findings"].as_array().expect("findings");
    let texts = |evidence: &Value| {
        let list = evidence.as_array().into_iter().flatten();
        list.map(|text| text.as_str().unwrap_or_default().to_owned()).collect()
    };
    let one = |finding: &Value| {
        let said = finding["said"].as_str().expect("it says something").to_owned();
        (finding["passed"] == true, said, texts(&finding["evidence"]))
    };
    findings.iter().filter(|finding| finding["check"] == "acknowledged writes").map(one).collect()
}

#[test]
fn every_mode_counts_what_the_server_has() {
    let cluster = Cluster::start(1, "");
    let mut there = 0;
    for (args, items, requests) in [
        ("--total 300 --concurrency 8", 300, 300),
        ("--total 300 --concurrency 8 --mode bulk --bulk-size 50", 300, 6),
        ("--total 101 --concurrency 3 --bulk-size 25 -t 2", 101, 5),
        ("--total 7 --bulk-size 25", 7, 1),
        ("--total 40 --concurrency 4 --create-pct 100 --mode random --bulk-size 5", 200, 40),
    ] {
        let finished = load(&cluster, &format!("{args} --verify"));
        assert!(verdict::ran(finished.code), "{args}: {}", finished.stderr);
        let result = finished.result();
        there += items;
        assert_eq!((ok(&result, "CREATE"), cluster.count(0)), (requests, there), "{args}");
        assert_eq!(result["accounting"]["unmeasured"], 0, "{args}");
        let audits = audits(&result);
        assert!(audits.len() == 1 && audits[0].0, "{args}: {audits:?}");
        assert!(audits[0].1.contains(&format!("has {there} items")), "{args}: {audits:?}");
    }
    let finished = run(&format!("crud --leader {} --total 30 --bulk-size 20", url(&cluster, 0)));
    let summary = "Crud completed: total=30 acknowledged=30 items requests=2 failed=0 timed_out=0";
    assert!(finished.stdout.starts_with(summary), "{}", finished.stdout);
    assert!(finished.stdout.contains("CREATE, the last (count=1): p50="), "{}", finished.stdout);
}

#[test]
fn a_mix_has_its_shares_and_what_it_did_is_there_on_every_node() {
    let cluster = Cluster::start(3, "");
    let nodes = all_nodes(&cluster);
    let mut created = 0;
    let mut deleted = 0;
    for (update, read) in [
        ("put", "/api/products/count"),
        ("patch", "/api/products/${id}"),
        ("read-modify-write", "/api/products?take=3"),
    ] {
        let mix = "--create-pct 40 --read-pct 30 --update-pct 20 --delete-pct 10";
        let args = format!(
            "--total 600 --concurrency 12 --mode random {mix} --update {update} --read-targets {nodes} \
             --read-path {read} --verify"
        );
        let finished = load(&cluster, &args);
        assert!(verdict::ran(finished.code), "{update}: {}", finished.stderr);
        let result = finished.result();
        let by_chance = ok(&result, "RANDOM-ID");
        if update != "patch" {
            // (There items are read from followers, which may be behind.)
            assert_eq!(result["accounting"]["failed"], 0, "{update}: {}", result["error_examples"]);
        }
        assert_eq!(ok(&result, "CREATE"), 240, "{update}");
        // Before the first item is created there may be none.
        assert!((100..=120).contains(&ok(&result, "UPDATE")), "{update}: {}", ok(&result, "UPDATE"));
        assert!(by_chance < 60, "{update}: ids come from creates: {by_chance}");
        created += 240;
        deleted += ok(&result, "DELETE") - not_found(&result, "DELETE");
        let audits = audits(&result);
        assert_eq!(audits.len(), 3, "{update}");
        assert!(audits.iter().all(|(passed, ..)| *passed), "{update}: {audits:?}");
        assert_eq!(cluster.count(cluster.leader()), created - deleted, "{update}");
    }
}

/// Responses of the steps whose names begin so that found nothing.
fn not_found(result: &Value, name: &str) -> u64 {
    let steps = result["by_step"].as_array().expect("steps");
    let named = steps.iter().filter(|step| step["step"].as_str().is_some_and(|step| step.starts_with(name)));
    named.filter_map(|step| step["statuses"]["404"].as_u64()).sum()
}

#[test]
fn what_is_there_before_is_read_changed_and_deleted() {
    let cluster = Cluster::start(1, "");
    for (args, left) in [("-t 2", 250), ("-t 2 --bulk-size 40", 500)] {
        let mix =
            "--mode random --read-pct 40 --read-path /api/products/${id} --update-pct 40 --delete-pct 20";
        let finished =
            load(&cluster, &format!("--preseed 300 --total 250 {mix} {args} --concurrency 5 --verify"));
        assert!(verdict::ran(finished.code), "{args}: {}", finished.stderr);
        let result = finished.result();
        let done = ["READ", "UPDATE", "DELETE", "RANDOM-ID"].map(|name| ok(&result, name));
        assert_eq!((done, result["accounting"]["failed"].as_u64()), ([100, 100, 50, 0], Some(0)), "{args}");
        assert_eq!(cluster.count(0), left, "{args}");
        assert!(audits(&result)[0].0, "{args}: {:?}", audits(&result));
    }
}

#[test]
fn a_mix_that_creates_nothing_finds_what_is_there() {
    let cluster = Cluster::start(1, "");
    let seeded =
        load(&cluster, "--preseed 60 --total 40 --mode random --delete-pct 100 --concurrency 4 --verify");
    assert!(verdict::ran(seeded.code), "{}", seeded.stderr);
    assert_eq!(
        (ok(&seeded.result(), "DELETE"), ok(&seeded.result(), "RANDOM-ID"), cluster.count(0)),
        (40, 0, 20)
    );
    // Of what the server names.
    let named = "--total 30 --mode random --read-pct 50 --delete-pct 50 --read-path /api/products/${id}";
    let finished = load(&cluster, &format!("{named} --concurrency 1 --verify"));
    assert!(verdict::ran(finished.code), "{}", finished.stderr);
    let result = finished.result();
    assert_eq!((ok(&result, "RANDOM-ID"), ok(&result, "READ of"), ok(&result, "DELETE of")), (30, 15, 15));
    assert_eq!((cluster.count(0), audits(&result)[0].0), (5, true));
}

#[test]
fn a_resource_of_ones_own_is_written_by_its_own_payload() {
    let cluster = Cluster::start(1, "");
    let folder = Folder::new();
    let payload =
        folder.write("order.json", "{\"number\": ${sequence},\n \"note\": \"${random_string(8)}\"}");
    let finished = load(
        &cluster,
        &format!(
            "--model orders --payload @{payload} --total 200 --mode random --create-pct 60 --update-pct 40 \
             --concurrency 4 --verify --http1.1"
        ),
    );
    assert!(verdict::ran(finished.code), "{}", finished.stderr);
    let result = finished.result();
    assert_eq!((ok(&result, "CREATE"), result["accounting"]["failed"].as_u64()), (120, Some(0)));
    assert!(audits(&result)[0].0, "{:?}", audits(&result));
}

/// Every kind of lie is found, and the audit's evidence names it by its own words, with the ids concerned.
#[test]
fn lies_are_found_with_the_ids_that_they_were_told_of() {
    let mix = "--mode random --create-pct 60 --update-pct 25 --delete-pct 15";
    for (lie, kinds) in [
        ("lose", &["acknowledged, and not there", "not as it was acknowledged", "its deletion was"][..]),
        ("diverge", &["not as it was acknowledged"]),
        ("duplicate", &["never sent"]),
        ("resurrect", &["its deletion was acknowledged"]),
    ] {
        let share = if lie == "resurrect" { "10%" } else { "1.5%" };
        let cluster = Cluster::start(3, &format!("--lie {lie} --lie-share {share} --seed 11"));
        let nodes = all_nodes(&cluster);
        // `--read-targets` names the other servers for reads; they are audited, too.
        let args =
            format!("--total 700 --concurrency 8 {mix} --read-pct 1 --read-targets {nodes} --verify=1s");
        let finished = load(&cluster, &args);
        assert_eq!(finished.code, Some(6), "{lie}: {}", finished.stderr);
        let result: Value = serde_json::from_str(&finished.stdout).expect("it is JSON");
        let evidence: Vec<String> = audits(&result).into_iter().flat_map(|(.., evidence)| evidence).collect();
        let told: Vec<Value> = (0..3).flat_map(|node| cluster.lies(node)).collect();
        assert!(!told.is_empty(), "{lie}");
        let strange =
            |line: &&String| !kinds.iter().any(|kind| line.starts_with(kind)) && !line.starts_with("and ");
        assert_eq!(evidence.iter().find(strange), None, "{lie}");
        for told in &told {
            let id = told[if lie == "duplicate" { "duplicate" } else { "id" }].as_str().expect("an id");
            // A later honest write may have changed or deleted an item that was stored wrongly.
            let stays = told["operation"] != "update" && lie != "diverge";
            let found = evidence.iter().any(|line| line.contains(id));
            assert!(found || !stays, "{lie}: {told} in {evidence:#?}");
        }
        for line in &evidence {
            let of_lie = told.iter().any(|told| {
                ["id", "duplicate"]
                    .iter()
                    .any(|name| told[*name].as_str().is_some_and(|id| line.contains(id)))
            });
            assert!(of_lie, "{lie}: nobody lied about {line}: {told:?}");
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (args, code, message) in [
        ("--total 0", 2, "there is nothing to do"),
        ("--bulk-size 5 --read-path /x", 2, "--read-path has no effect"),
        (
            "--mode random --read-pct 1 --read-targets http://a,http://a/",
            2,
            "error: --read-targets: `http://a` is there twice",
        ),
        ("--mode random --create-pct 0", 2, "all shares of the mix are 0"),
        ("--bulk-size 0", 2, "0 items do not fit"),
        ("--model orders", 2, "an item of `orders` is not described"),
        ("--leader 127.0.0.1:1", 2, "is not a URL of a server"),
        ("--path products", 2, "is not a path of a collection"),
        ("--payload @/no/such/file", 2, "cannot read `/no/such/file`"),
        ("--mode random --read-pct 1 --read-targets http://a,https://b", 2, "another scheme"),
        ("http://127.0.0.1:1/", 2, "takes no URL"),
        ("--leader http://127.0.0.1:1", 1, "no answer from http://127.0.0.1:1"),
        ("--verify --repeat 2 --leader http://127.0.0.1:1", 1, "no answer"),
        ("--concurrency 3 -c 4", 2, "exclude each other"),
    ] {
        let finished = run(&format!("crud --quiet {args}"));
        assert_eq!(finished.code, Some(code), "{args}: {}", finished.stderr);
        assert!(finished.stderr.contains(message), "{args}: {}", finished.stderr);
    }
    let cluster = Cluster::start(1, "");
    let missing = load(&cluster, "--path /nothing/here");
    assert_eq!(missing.code, Some(1), "{}", missing.stderr);
    assert!(missing.stderr.contains("there is no resource at"), "{}", missing.stderr);
}

/// All flags of the generator of the Lithair project, in every mode, and its defaults.
#[test]
fn the_command_line_of_a_bench_script_works_and_followers_are_verified_in_every_mode() {
    let cluster = Cluster::start(3, "");
    let nodes = all_nodes(&cluster);
    let mix = "--create-pct 150 --read-pct 15 --update-pct 5 --delete-pct 0 --read-path status";
    let common =
        format!("--preset lithair --total 300 --concurrency 8 --bulk-size 20 {mix} --read-targets {nodes}");
    let leader = url(&cluster, cluster.leader());
    for (args, notes, line) in [
        (
            "",
            &[
                "--create-pct and the like have no effect in this mode, bulk creates: add --mode random",
                "--read-path has no effect in this mode, bulk creates: add --mode random",
            ][..],
            "mode=bulk bulk_size=20 concurrency=8",
        ),
        ("--mode bulk", &["--create-pct and the like have", "--read-path has"], "mode=bulk bulk_size=20"),
        (
            "--mode single",
            &["--read-path has", "--bulk-size has no effect in this mode, single creates: add --mode bulk"],
            "mode=single bulk_size=1 concurrency=8",
        ),
        ("--mode random", &["a share of 150 counts as 100"], "mode=random bulk_size=20 concurrency=8"),
    ] {
        let finished = run(&format!("crud --leader {leader} {common} {args} --verify=30s"));
        assert!(verdict::ran(finished.code), "{args}: {finished:?}");
        for note in notes {
            assert!(finished.stderr.contains(&format!("note: {note}")), "{args}: {}", finished.stderr);
        }
        // The server has `/status`, and `status` is not a path.
        assert!(finished.stdout.contains(" failed=0 "), "{args}: {}", finished.stdout);
        assert!(finished.stdout.contains(line), "{args}: {}", finished.stdout);
        let verified = finished.stdout.matches("acknowledged writes: http://").count();
        assert_eq!(verified, 3, "{args}: {}", finished.stdout);
    }
    let printed = run(&format!("crud --leader {leader} --preset lithair --print-plan"));
    let (bulk, limit) = ("connections: 100", "timeout: 10s");
    assert!(printed.stdout.contains(bulk) && printed.stdout.contains(limit), "{}", printed.stdout);
    let idle = run(&format!("crud --leader {leader} --mode single --total 10 --read-targets {nodes}"));
    assert!(idle.stderr.contains("note: --read-targets has no effect in this mode"), "{}", idle.stderr);
}

/// Symptom: with one request in flight all reads came to the first of three servers, and with eight the
/// third had a quarter of what the others had.
#[test]
fn reads_come_to_each_server_as_often() {
    let leader = Cluster::start(1, "");
    for concurrency in [1, 8] {
        let sinks = [Sink::start(""), Sink::start(""), Sink::start("")];
        let urls = sinks.each_ref().map(Sink::url).map(|url| url.trim_end_matches('/').to_owned());
        let finished = run(&format!(
            "crud --leader {} --total 600 --concurrency {concurrency} -t 1 --mode random --create-pct 50 \
             --read-pct 50 --read-path /x --read-targets {}",
            url(&leader, 0),
            urls.join(",")
        ));
        assert!(verdict::ran(finished.code), "{finished:?}");
        let requests = sinks.map(|sink| sink.stop().requests);
        assert!(requests.iter().all(|count| (80..=121).contains(count)), "{concurrency}: {requests:?}");
    }
}

/// Symptom: what a mix does otherwise than the generator that it stands for was told after the load, or not
/// at all.
#[test]
fn differences_are_told_before_the_load() {
    for (args, note) in [
        ("--create-pct 80 --read-pct 20 --bulk-size 100", "each create of the mix is a bulk of 100 items"),
        ("--create-pct 10 --delete-pct 90", "a delete that finds no item of this load is left out"),
        (
            "--create-pct 0 --update-pct 100",
            "an update of an item that this load does not know reads it first",
        ),
    ] {
        let printed = run(&format!("crud --mode random {args} --print-plan"));
        assert!(printed.stderr.contains(note), "{args}: {}", printed.stderr);
        let known = run(&format!("crud --mode random {args} --preseed 9000 --print-plan"));
        assert_eq!(known.stderr.contains(note), note.contains("bulk"), "{args}: {}", known.stderr);
    }
}

/// Symptom: a single item created before the load silenced the notes, and 1,565 of 2,100 deletes were left
/// out.
#[test]
fn items_before_the_load_end_its_notes_where_they_are_enough() {
    let (left_out, reads_first) = ("is left out, so that", "reads it first");
    let deletes = "--create-pct 20 --read-pct 5 --update-pct 5 --delete-pct 70 --concurrency 32";
    for (args, notes) in [
        (format!("{deletes} --total 3000 --preseed 10"), &["--preseed 1532", left_out, reads_first][..]),
        (format!("{deletes} --total 3000 --preseed 1532"), &[]),
        (format!("{deletes} --iterations 3000 --preseed 10"), &["--preseed 1532", left_out, reads_first]),
        (format!("{deletes} -d 1s --preseed 90000"), &["--preseed N", left_out, reads_first]),
        ("--update-pct 100 --total 300 --preseed 1".to_owned(), &["--preseed 64", reads_first]),
        ("--update-pct 100 --total 300 --preseed 64".to_owned(), &[]),
        ("--update-pct 100 --total 300 --preseed 64 -c 65".to_owned(), &["--preseed 65", reads_first]),
        ("--update-pct 100 --total 300 --update patch".to_owned(), &[]),
    ] {
        let printed = run(&format!("crud --mode random {args} --print-plan"));
        let told = [left_out, reads_first].into_iter().filter(|note| printed.stderr.contains(note)).count();
        let expected = notes.iter().filter(|note| !note.starts_with("--")).count();
        assert_eq!(told, expected, "{args}: {}", printed.stderr);
        assert!(notes.iter().all(|note| printed.stderr.contains(note)), "{args}: {}", printed.stderr);
    }
}

/// What is said to be enough is: nothing is left out, and nothing is read first.
#[test]
fn as_many_items_before_the_load_as_a_note_names_are_enough() {
    let cluster = Cluster::start(1, "");
    for (args, operations) in [
        ("--create-pct 20 --read-pct 5 --update-pct 5 --delete-pct 70 --total 600 --preseed 308", 600),
        ("--update-pct 100 --total 300 --preseed 8", 300),
        ("--create-pct 10 --delete-pct 90 --bulk-size 5 --total 300 --preseed 160", 300),
    ] {
        for threads in [1, 2] {
            let finished = load(&cluster, &format!("--mode random {args} --concurrency 8 -t {threads}"));
            assert!(verdict::ran(finished.code), "{args}: {}", finished.stderr);
            let result = finished.result();
            let done = ["CREATE", "READ", "UPDATE", "DELETE"].map(|name| ok(&result, name));
            let other = ["RANDOM-ID", "READ-FIRST"].map(|name| ok(&result, name));
            assert_eq!((done.iter().sum::<u64>(), other), (operations, [0, 0]), "{args} -t {threads}");
        }
    }
}

/// More than one page can hold.
#[test]
fn lists_of_any_length_are_read_in_pages_that_can_be_kept() {
    let cluster = Cluster::start(1, "");
    let large = "{\"name\": \"${random_string(8)}\", \"price\": 1, \"category\": \"CATEGORY\"}";
    let payload = large.replace("CATEGORY", &"x".repeat(2_000));
    let folder = Folder::new();
    let args = format!("--payload @{} --mode bulk --bulk-size 500", folder.write("item.json", payload));
    let finished =
        load(&cluster, &format!("{args} --total 12000 --concurrency 2 --timeout 60s --verify=60s"));
    assert!(verdict::ran(finished.code), "{}", finished.stderr);
    let audits = audits(&finished.result());
    assert!(audits.len() == 1 && audits[0].0 && audits[0].1.contains("has 12000 items"), "{audits:?}");
}

#[test]
fn operations_without_an_item_are_counted() {
    let cluster = Cluster::start(1, "");
    let args = "--mode random --create-pct 10 --update-pct 30 --delete-pct 60 --total 300 --concurrency 4";
    let finished = run(&format!("crud --leader {} {args}", url(&cluster, 0)));
    assert!(verdict::ran(finished.code), "{finished:?}");
    let count = |name: &str| -> u64 {
        let rest = finished.stdout.split_once(&format!(" {name}=")).map_or("0", |(_, rest)| rest);
        rest.split([' ', '\n']).next().and_then(|text| text.parse().ok()).expect("a number")
    };
    assert!(count("skipped") > 100, "{}", finished.stdout);
    let nothing = count("found_nothing") + count("failed");
    assert_eq!(count("acknowledged") + count("skipped") + nothing, 300, "{}", finished.stdout);
    let json = run(&format!("crud --leader {} {args} -o json", url(&cluster, 0)));
    let notes = json.result()["notes"].as_array().expect("a list").clone();
    let note = notes.iter().find(|note| note["code"] == "skipped").expect("a note");
    assert!(json.stderr.contains(" skipped="), "{}", json.stderr);
    let skipped = json.stderr.split(" skipped=").nth(1).and_then(|rest| rest.split(['\n', ' ']).next());
    let text = note["text"].as_str().expect("a text");
    assert!(text.starts_with(&format!("{} operations", skipped.expect("a count"))), "{text}");
    for purpose in ["RANDOM-ID for DELETE (count=", "RANDOM-ID for UPDATE (count="] {
        assert!(finished.stdout.contains(purpose), "{}", finished.stdout);
    }
}

#[test]
fn writes_that_a_follower_redirects_are_told_what_to_do_about() {
    let cluster = Cluster::start(3, "");
    let follower = url(&cluster, (cluster.leader() + 1) % 3);
    let notes = |args: &str| {
        let finished =
            run(&format!("crud --leader {follower} --total 20 --concurrency 2 -o json --quiet {args}"));
        let result: Value = serde_json::from_str(&finished.stdout).expect("it is JSON");
        let all = result["notes"].as_array().cloned().unwrap_or_default();
        all.iter().filter(|note| note["code"] == "redirects").cloned().collect::<Vec<Value>>()
    };
    let told = notes("");
    let text = told.first().and_then(|note| note["text"].as_str()).expect("a note");
    assert!(
        text.starts_with("20 requests were redirected") && text.contains("add --follow-redirects"),
        "{text}"
    );
    assert_eq!(notes("--follow-redirects=3"), [Value::Null; 0]);
    // Symptom: the short report had 20 good requests, and no word of it.
    let short = run(&format!("crud --leader {follower} --total 20 --concurrency 2"));
    assert!(
        short.stdout.contains("20 requests were redirected (307, 308): name the leader"),
        "{}",
        short.stdout
    );
}

/// Three nodes of the reference cluster, of which some lie, under a mix of writes.
fn cluster_spec(lie: &str, faults: &str, seconds: &str) -> String {
    let arguments = r#"target, crud-node, --id, "${id}", --listen, "${address.http}", --raft, "${address.raft}", --data, "${data}""#;
    format!(
        r#"
name: liars
nodes:
  count: 3
  command: ${{plimsoll}}
  arguments: [{arguments}{lie}]
  per_peer: [--peer, "${{peer.id}}=${{peer.http}}/${{peer.raft}}"]
  ports: {{http: 0, raft: 0}}
  ready: {{http: /status}}
leader: {{path: /raft/leader, pointer: /leader_id}}
links: [raft]
{faults}
checks:
  - {{check: acknowledged, within: 2s}}
  - {{check: staleness, within: 30s}}
  - {{check: convergence, within: 2s}}
workload:
  run: {{connections: 8, duration: {seconds}, follow_redirects: 3, timeout: 5s, ipv4: true}}
  targets:
    api:
      url: http://localhost:${{node.0.http.port}}
      share: ["localhost:${{node.1.http.port}}", "localhost:${{node.2.http.port}}"]
      fail_back: true
  scenarios:
    - steps:
        - {{post: /api/products, json: {{name: "n${{uuid}}", price: 5, category: c}}, expect: {{status: 201}}, extract: {{id: {{json: /id}}}}}}
        - {{patch: "/api/products/${{id}}", json: {{price: 6}}, expect: {{status: 200}}}}
        - {{delete: "/api/products/${{id}}", expect: {{status: 2xx}}}}
    - steps:
        - {{post: /api/products, json: {{name: "n${{uuid}}", price: 7, category: c}}, expect: {{status: 201}}}}
"#
    )
}

/// The checks of a cluster's run that did not pass, by name, with their words.
fn failed_checks(finished: &Finished) -> Vec<(String, String)> {
    let result: Value = serde_json::from_str(&finished.stdout).expect("it is JSON");
    let findings = result["reconciliation"]["findings"].as_array().expect("findings").clone();
    let names: Vec<&str> = findings.iter().filter_map(|finding| finding["check"].as_str()).collect();
    for wanted in ["writes", "acknowledged writes", "staleness", "convergence"] {
        assert!(names.contains(&wanted), "{wanted}: {names:?}");
    }
    let failed = findings.iter().filter(|finding| finding["passed"] == false);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    failed.map(|finding| (text(&finding["check"]), text(&finding["said"]))).collect()
}

fn run_cluster(spec: &str) -> Finished {
    let folder = Folder::new();
    let file = folder.write("spec.yaml", spec);
    run(&format!("cluster run {file} --dir {} --quiet -o json", folder.file("cluster")))
}

#[test]
fn a_cluster_that_is_broken_under_load_loses_nothing_that_it_acknowledged() {
    let faults = "faults: [{fault: kill, target: leader, at: 1s, for: 500ms}, {fault: isolate, target: leader, at: 3s, for: 1s}]";
    let finished = run_cluster(&cluster_spec("", faults, "6s"));
    assert_eq!(failed_checks(&finished), [], "{}", finished.stderr);
    assert!(verdict::ran(finished.code), "{:?} {}", finished.code, finished.stderr);
}

#[test]
fn a_cluster_that_lies_is_found_out() {
    for (lie, check) in [
        ("lose", "acknowledged writes"),
        ("diverge", "convergence"),
        ("stale", "staleness"),
        ("duplicate", "acknowledged writes"),
        ("resurrect", "acknowledged writes"),
    ] {
        let arguments = format!(", --lie, {lie}, --lie-share, 5%, --seed, \"${{id}}\"");
        let finished = run_cluster(&cluster_spec(&arguments, "", "1500ms"));
        assert_eq!(finished.code, Some(6), "{lie}: {}", finished.stderr);
        let failed = failed_checks(&finished);
        assert!(failed.iter().any(|(name, _)| name == check), "{lie}: {failed:?}");
    }
}

/// Writes that the client aborted may have happened or not: a server that loses none is not accused, and the
/// accounts show the aborted ones.
#[test]
fn aborted_writes_are_uncertain_and_no_failures() {
    let cluster = Cluster::start(1, "");
    for faults in
        ["--abort-pct 10", "--abort-pct 10 --abort-at response", "--abandon-pct 20 --abandon-after 1ms"]
    {
        let mix = "--create-pct 50 --read-pct 20 --update-pct 20 --delete-pct 10";
        let finished = load(&cluster, &format!("--total 1500 --concurrency 8 {mix} {faults} --verify"));
        assert!(verdict::ran(finished.code), "{faults}: {}", finished.stderr);
        let result = finished.result();
        let of = |name: &str| result["accounting"][name].as_u64().expect("a count");
        assert!(of("aborted") > 0 && of("cut_short") <= of("aborted"), "{faults}");
        assert_eq!(result["errors"]["aborted_by_us"], of("aborted"), "{faults}");
        let ended = of("ok") + of("failed") + of("timed_out") + of("aborted") + of("in_flight_at_stop");
        assert_eq!(of("started"), ended, "{faults}");
        let audits = audits(&result);
        assert!(audits.len() == 1 && audits[0].0, "{faults}: {audits:?}");
    }
}

/// Symptom: `--rps` counted iterations of all steps, so that creates which failed made the load smaller.
#[test]
fn a_rate_of_requests_is_kept_where_creates_fail() {
    let flags =
        "--crud-create-method POST --crud-update-method PUT --crud-delete-method DELETE --rps 100 -c 1 -d 1s";
    for (faults, unit) in [("", ""), ("--fail 60%:500", ""), ("--fail 60%:500", "--rate-of requests")] {
        let sink = Sink::start(faults);
        let finished = run(&format!("{} {flags} {unit} --no-preflight -o json", sink.url()));
        let started = finished.result()["accounting"]["started"].as_u64();
        assert!(started.is_some_and(|started| (99..=101).contains(&started)), "{faults} {unit}: {started:?}");
    }
}
