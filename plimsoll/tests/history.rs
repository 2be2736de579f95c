//! The history of runs as users meet it: saved while they go on, found again, and kept through kills, full
//! disks, damage and each other. The crate `store` tests how the store keeps intervals.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use plimsoll_testkit::{machine, verdict};
use serde_json::Value;

/// A folder of a test's own, with a history in it and a sink beside it. All go with this.
struct Place {
    folder: PathBuf,
    sink: Child,
    url: String,
}

impl Place {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("plimsoll-history-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
        let mut sink = command(&folder, "sink --listen 127.0.0.1:0 --delay constant:2ms");
        let mut sink = sink.stderr(Stdio::piped()).spawn().expect("the binary was built");
        let mut line = String::new();
        let stderr = sink.stderr.take().expect("it is piped");
        BufReader::new(stderr).read_line(&mut line).expect("it says where it listens");
        let address = line.trim().rsplit(' ').next().unwrap_or_default();
        Self { url: format!("http://{address}/"), sink, folder }
    }

    fn store(&self) -> PathBuf {
        self.folder.join("plimsoll/history.db")
    }

    /// A command in this folder, whose history is in it, too; `URL` is the sink's.
    fn command(&self, line: &str) -> Command {
        command(&self.folder, &line.replace("URL", &self.url))
    }

    /// Runs a command to its end. One that puts no load on the sink waits for no turn: it may look at a load
    /// that goes on.
    fn output(&self, line: &str) -> Output {
        let _turn = line.starts_with("run ").then(machine::load);
        self.command(line).output().expect("the binary was built")
    }

    /// Returns the stdout of a command that succeeded. The run may have been judged invalid: the machine may
    /// be busy.
    fn ok(&self, line: &str) -> String {
        let output = self.output(line);
        assert!(verdict::ran(output.status.code()), "{line}: {}", stderr(&output));
        String::from_utf8(output.stdout).expect("it prints text")
    }

    fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.ok(line)).expect("it prints JSON")
    }

    /// Some column of the list of runs.
    fn runs(&self, column: &str, filter: &str) -> Vec<String> {
        let list = self.json(&format!("runs -o json {filter}"));
        let rows = list["runs"].as_array().expect("a list").iter();
        rows.map(|row| row[column].as_str().map_or_else(|| row[column].to_string(), str::to_owned)).collect()
    }

    /// Returns the stderr of a command that was refused with exit code `code`.
    fn refused(&self, line: &str, code: i32) -> String {
        let output = self.output(line);
        assert_eq!(output.status.code(), Some(code), "{line}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{line}");
        stderr(&output)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // It may have ended by itself; what cannot be removed is left to the system's cleaning.
        let _ = self.sink.kill();
        let _ = self.sink.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn command(folder: &Path, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.args(line.split_whitespace()).current_dir(folder).stdin(Stdio::null());
    command.env("XDG_DATA_HOME", folder).env("NO_COLOR", "1");
    for name in ["PLIMSOLL_STORE", "PLIMSOLL_SAVE", "SSLKEYLOGFILE", "COLUMNS"] {
        command.env_remove(name);
    }
    command
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the number of values behind the response times of a result.
fn values(result: &Value) -> u64 {
    result["response_time"]["count"].as_u64().expect("a number")
}

#[test]
fn runs_are_found_by_name_tag_and_id_as_they_were_shown() {
    let place = Place::new("words");
    assert!(place.ok("runs").starts_with("no runs in "));
    assert!(!place.store().exists(), "reading makes no store");
    let shown = place.json("run URL -n 300 -c 3 --name base --tag branch=main --tag nightly -o json --quiet");
    place.ok("run URL -n 300 -c 3 --name other --tag branch=fix --quiet");
    place.ok("run URL -n 300 -c 3 --save --repeat 2 --quiet");
    place.ok("run URL -n 300 -c 3 --quiet");
    assert_eq!(place.runs("name", ""), ["null", "null", "other", "base"]);
    assert_eq!(place.runs("name", "--tag branch"), ["other", "base"]);
    assert_eq!(place.runs("name", "--tag branch=main --tag nightly"), ["base"]);
    assert_eq!(place.runs("name", "--name other"), ["other"]);
    assert_eq!(place.runs("name", "--limit 2"), ["null", "null"]);
    assert_eq!(place.runs("name", "--since 1h").len(), 4);
    assert_eq!(place.runs("name", "--since 2199-01-01"), [""; 0]);
    assert!(place.ok("runs --since 2199-01-01").starts_with("no such runs in "));
    // Runs are read back as they were written, to the last digit.
    let id = shown["run"]["id"].as_str().expect("an id");
    for word in ["base", id, &id[..8], "latest~3", "nightly", "branch=main"] {
        assert_eq!(place.json(&format!("show {word} -o json")), shown, "{word}");
    }
    let text = place.ok("show latest~2");
    assert!(text.contains("= ok 300 + failed 0"), "{text}");
    let table = place.ok("runs");
    assert!(
        table.lines().nth(4).is_some_and(|line| line.starts_with(&id[..8]) && line.contains(" base ")),
        "{table}"
    );
    assert_eq!(place.ok("runs -o csv").lines().count(), 5);
    let seeds: Vec<u64> = ["latest~1", "latest"]
        .map(|word| place.json(&format!("show {word} -o json"))["run"]["seed"].as_u64().expect("a seed"))
        .to_vec();
    assert_eq!(seeds[0] + 1, seeds[1], "repeated runs are saved one by one");

    // Groups of runs: a name is all runs of it.
    place.ok("run URL -n 300 -c 3 --name base --quiet");
    let compared = place.output("compare base other --allow-invalid -o json");
    let comparison: Value = serde_json::from_slice(&compared.stdout).expect("one object");
    let files = |side: &str| comparison[side]["runs"].as_array().expect("a list").len();
    assert_eq!((files("a"), files("b")), (2, 1), "{}", stderr(&compared));
    assert_eq!(comparison["a"]["runs"][0]["file"], format!("run {} (base)", &id[..8]));
    let points = place.json("history base,branch=fix --allow-invalid -o json");
    assert_eq!(points["runs"].as_array().map(Vec::len), Some(3), "{points:#}");

    // Away again.
    let unknown = place.refused("rm base nobody", 2);
    assert!(unknown.contains("`nobody` is neither a file nor a run of the history"), "{unknown}");
    assert!(place.ok(&format!("rm {id}")).starts_with(&format!("removed run {} (base), ", &id[..8])));
    assert_eq!(place.ok("rm --older-than 30d"), "no run is that old\n");
    assert_eq!(place.runs("name", "").len(), 4);
    assert_eq!(place.ok("rm --older-than 2199-01-01").lines().count(), 4);
    assert_eq!(place.runs("name", ""), [""; 0]);
}

#[test]
fn a_run_goes_to_another_machine_as_a_file() {
    let place = Place::new("export");
    std::fs::write(
        place.folder.join("plan.yaml"),
        format!(
            "name: läse\nrun: {{bearer: topsecret, iterations: 300}}\nscenarios: [steps: [get: '{}']]\n",
            place.url
        ),
    )
    .unwrap();
    let shown = place.json("run plan.yaml --name there -o json --quiet");
    place.ok("export there -o saved --file run.plimsoll");
    place.ok("export there -o json --file run.json");
    place.ok("rm there");
    assert_eq!(place.json("show run.plimsoll -o json"), shown);
    assert_eq!(place.json("show run.json -o json"), shown);
    assert_eq!(place.json("export run.plimsoll -o json"), shown);
    let csv = place.ok("export run.plimsoll -o csv");
    assert_eq!(csv.lines().count(), 1 + shown["intervals"].as_array().expect("a list").len());
    // The plan goes along, its credentials do not.
    let saved = std::fs::read(place.folder.join("run.plimsoll")).unwrap();
    let store = std::fs::read(place.store()).unwrap();
    let run = plimsoll_report::SavedRun::from_bytes(&saved).unwrap();
    assert!(run.plan.is_some_and(|plan| plan.contains("läse") && !plan.contains("topsecret")));
    assert!(!store.windows(9).any(|bytes| bytes == b"topsecret"));
    assert_eq!(run.steps[0].response_time.count(), values(&shown));
    let compared = place.output("compare run.plimsoll run.json --allow-invalid");
    assert!(stderr(&compared).contains("are the same run"), "{}", stderr(&compared));
}

/// The figures are from the run's own lines of statistics: its output before it was killed.
#[test]
fn a_killed_run_loses_its_last_second_at_most() {
    let place = Place::new("kill");
    let line = "run URL --rate 500 -c 8 -d 60s --warmup 300ms --name victim --stats - --no-preflight";
    let _turn = machine::load();
    let mut victim = place.command(line).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(victim.stderr.take().expect("it is piped")).lines().map_while(Result::ok);
    // The rows of all scenarios, as they come: ok is the third number behind the name.
    let mut told: Vec<u64> = Vec::new();
    while told.len() < 4 {
        let row = lines.next().expect("it goes on for a minute");
        let mut cells = row.split_whitespace().skip_while(|cell| *cell != "measure").skip(1);
        if cells.next() == Some("total") {
            told.push(cells.nth(2).expect("a number").replace(',', "").parse().expect("a number"));
        }
    }
    let running = place.runs("state", "");
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert_eq!(running, ["running"]);
    assert_eq!(place.runs("state", ""), ["killed"]);
    let result = place.json("show victim -o json");
    assert_eq!(result["verdict"]["invalid_reasons"], serde_json::json!(["unfinished"]));
    let ok = result["accounting"]["ok"].as_u64().expect("a number");
    let (all, but_the_last) = (told.iter().sum::<u64>(), told[..3].iter().sum::<u64>());
    // It may have told more between the last row that was read and its end.
    assert!(ok >= but_the_last, "{ok} of {all}");
    assert_eq!(values(&result), ok);
    assert!(result["intervals"].as_array().is_some_and(|intervals| intervals.len() >= 4), "{result:#}");
    let text = place.ok("show victim");
    assert!(text.contains("the process of the run ended before the run did"), "{text}");
    place.ok("export victim -o saved --file victim.plimsoll");
    let run =
        plimsoll_report::SavedRun::from_bytes(&std::fs::read(place.folder.join("victim.plimsoll")).unwrap());
    let run = run.unwrap();
    assert_eq!(run.total().response_time.count(), ok);
    let of_slices: u64 = run.slices.iter().filter(|slice| !slice.warmup).map(|slice| slice.tally.ok).sum();
    assert_eq!(of_slices, ok);
}

/// Symptom: a worker that did not come back within ten seconds of the end took the whole result with it, and
/// the saved run was deleted.
#[test]
fn a_worker_that_never_comes_back_leaves_what_was_told() {
    let place = Place::new("stuck");
    let never = place.folder.join("never");
    let made = Command::new("mkfifo").arg(&never).status().expect("coreutils are there");
    assert!(made.success());
    // The pipe has no writer.
    let script = "local n = 0 function request() n = n + 1 if n == 350 then io.open('never') end \
                  return wrk.format('GET', '/') end";
    std::fs::write(place.folder.join("stuck.lua"), script).expect("the folder can be written");
    let line = "run URL -s stuck.lua --script-allow-system --rate 100 -d 4s -t 1 --no-preflight --name stuck -o json";
    let turn = machine::light_load();
    let output = place.output(line);
    drop(turn);
    let errors = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    let result: Value = serde_json::from_slice(&output.stdout).expect("what was told is a result");
    let reason = &result["verdict"]["evidence"][0];
    assert_eq!((&result["verdict"]["valid"], &reason["code"]), (&false.into(), &"unfinished".into()));
    let evidence = reason["evidence"].as_str().unwrap_or_default();
    assert!(
        evidence.starts_with("no worker came back after the end of the run: the figures end at "),
        "{evidence}"
    );
    // Three of its seconds, or two where the machine was busy.
    let told = result["accounting"]["ok"].as_u64().expect("a count");
    assert!((150..350).contains(&told), "{result:#}");
    assert_eq!(values(&result), told);
    assert!(errors.contains("saved as run"), "{errors}");
    assert_eq!(
        (place.runs("name", ""), place.runs("state", "")),
        (vec!["stuck".to_owned()], vec!["killed".to_owned()])
    );
    assert_eq!(place.json("show stuck -o json")["accounting"], result["accounting"]);
}

/// Whoever gets evidence alone sees the report that its run had.
#[test]
fn evidence_is_shown_as_its_run_was() {
    let place = Place::new("evidence");
    let made = place.json("run URL -n 400 -c 2 --evidence run.evidence --quiet -o json");
    assert_eq!(place.json("show run.evidence -o json"), made);
    // With its histograms, which no result has.
    let percentiles = place.ok("show run.evidence -o hgrm");
    assert!(percentiles.contains("#[Mean"), "{percentiles}");
    let file = place.folder.join("run.evidence");
    let mut bytes = std::fs::read(&file).expect("it was written");
    *bytes.last_mut().expect("it is not empty") ^= 1;
    std::fs::write(&file, &bytes).expect("the folder can be written");
    let refused = place.refused("show run.evidence", 2);
    assert!(refused.contains("the signature is not that of the content"), "{refused}");
}

#[test]
fn a_damaged_store_is_set_aside_and_other_files_are_left_alone() {
    let place = Place::new("damage");
    place.ok("run URL -n 100 --save --quiet");
    let mut bytes = std::fs::read(place.store()).unwrap();
    let from = bytes.len() / 3;
    bytes[from..].iter_mut().for_each(|byte| *byte = byte.wrapping_mul(31) ^ 0x5a);
    std::fs::write(place.store(), &bytes).unwrap();
    let reading = place.refused("runs", 1);
    assert!(reading.contains("is damaged") && reading.contains("hint: "), "{reading}");
    let made = place.output("run URL -n 100 --name after");
    assert!(verdict::ran(made.status.code()), "{}", stderr(&made));
    assert!(stderr(&made).contains("was damaged; it is "), "{}", stderr(&made));
    assert_eq!(place.runs("name", ""), ["after"]);
    let aside =
        std::fs::read_dir(place.store().parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    let aside: Vec<_> = aside.filter(|path| path.to_string_lossy().contains("history.db.corrupt-")).collect();
    assert_eq!(aside.len(), 1, "{aside:?}");
    assert_eq!(std::fs::read(&aside[0]).unwrap(), bytes, "nothing of it was changed");

    // A file that the user names may be of another kind altogether.
    let file = place.folder.join("notes.txt");
    std::fs::write(&file, "not a database").unwrap();
    let refused = place.refused("run URL -n 100 --save --store notes.txt", 1);
    assert!(refused.contains("notes.txt is not a store of runs"), "{refused}");
    assert_eq!(std::fs::read(&file).unwrap(), b"not a database");
    let refused = place.refused("runs --store notes.txt", 1);
    assert!(refused.contains("is not a store of runs"), "{refused}");
}

#[test]
fn several_at_once_all_land() {
    let place = Place::new("two");
    let start = |name: &str| {
        let line = format!("run URL --rate 200 -c 4 -d 2500ms --name {name} --quiet -o json");
        place.command(&line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let names = ["one", "two", "three", "four"];
    // All of them find that there is no history yet.
    let _turn = machine::load();
    let all = names.map(start);
    for (name, child) in names.into_iter().zip(all) {
        let output = child.wait_with_output().unwrap();
        assert!(verdict::ran(output.status.code()), "{}", stderr(&output));
        let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(place.json(&format!("show {name} -o json")), shown);
    }
    assert_eq!(place.runs("state", ""), ["finished"; 4]);
}

/// Where a small file system can be mounted, the disk is really full; else files may not grow.
#[test]
fn a_full_disk_costs_the_history_but_not_the_result() {
    let place = Place::new("full");
    let program = env!("CARGO_BIN_EXE_plimsoll");
    let mount = "mkdir small && mount -t tmpfs -o size=96k none small";
    let can_mount = Command::new("unshare")
        .args(["-m", "sh", "-c", mount])
        .current_dir(&place.folder)
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    let run =
        format!("{program} run {} -n 2000 -c 4 --save --store small/history.db --quiet -o json", place.url);
    let output = if can_mount {
        let line = format!("mount -t tmpfs -o size=96k none small && exec {run}");
        Command::new("unshare").args(["-m", "sh", "-c", &line]).current_dir(&place.folder).output().unwrap()
    } else {
        std::fs::create_dir_all(place.folder.join("small")).unwrap();
        // In blocks of 512 bytes; the signal that comes with it is not what is tested.
        let line = format!("trap '' XFSZ; ulimit -f 128; exec {run}");
        Command::new("sh").args(["-c", &line]).current_dir(&place.folder).output().unwrap()
    };
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let result: Value = serde_json::from_slice(&output.stdout).expect("the result is on stdout");
    assert_eq!(result["accounting"]["ok"], 2000);
    let message = stderr(&output);
    assert!(
        message.contains("error: the run is not saved: cannot use the store small/history.db: "),
        "{message}"
    );
    assert!(!message.contains(".new-"), "the name that people know: {message}");
    assert!(message.contains("hint: free some space"), "{message}");
}

/// Needs a disk that can be filled, which is a small file system in a namespace of its own: without one there
/// is nothing to be tested.
#[test]
fn a_run_whose_disk_is_full_does_not_stay_running() {
    let place = Place::new("stays");
    let program = env!("CARGO_BIN_EXE_plimsoll");
    let list = format!("{program} runs --store small/history.db -o json");
    // The disk is full as soon as the run is in the history, and it stays full.
    let line = format!(
        "mkdir small && mount -t tmpfs -o size=400k none small || exit 77
         {program} run {} --rate 50 -d 3s --save --store small/history.db --quiet >result &
         until {list} 2>/dev/null | grep -q running; do :; done
         cat /dev/zero >small/fill 2>/dev/null
         wait $!
         echo $? >code
         {list}
         {program} show latest --store small/history.db -o json >shown",
        place.url
    );
    let output = Command::new("unshare").args(["-m", "sh", "-c", &line]).current_dir(&place.folder).output();
    let Some(output) = output.ok().filter(|output| output.status.code() != Some(77)) else {
        return plimsoll_testkit::skip::on_this_machine("no file system can be mounted here");
    };
    let code = std::fs::read_to_string(place.folder.join("code")).expect("it is written");
    assert_eq!(code.trim(), "1", "{}", stderr(&output));
    assert!(stderr(&output).contains("error: the run is not saved: "), "{}", stderr(&output));
    let listed: Value = serde_json::from_slice(&output.stdout).expect("a list");
    assert_eq!(listed["runs"][0]["state"], "killed", "{listed}");
    let shown = std::fs::read(place.folder.join("shown")).expect("it is written");
    let shown: Value = serde_json::from_slice(&shown).expect("a result");
    assert_eq!(shown["verdict"]["invalid_reasons"][0], "unfinished", "{shown}");
}

#[test]
fn a_place_that_cannot_be_written_costs_the_history_but_not_the_result() {
    let place = Place::new("place");
    std::fs::write(place.folder.join("file"), "").unwrap();
    let output = place.output("run URL -n 100 --save --store file/history.db -o json");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let result: Value = serde_json::from_slice(&output.stdout).expect("the result is on stdout");
    assert_eq!(result["accounting"]["ok"], 100);
    // It is said before the run, with what to do, and counts at its end.
    let message = stderr(&output);
    let warning = "warning: the run goes on, and will not be saved: cannot use the store file/history.db: ";
    assert!(message.contains(warning), "{message}");
    assert_eq!(message.matches("cannot use the store").count(), 1, "told once: {message}");
    assert_eq!(message.matches("hint: ").count(), 1, "{message}");
    assert!(message.contains("error: the run is not saved, for the reason given at its start"), "{message}");
    assert!(!message.contains(".new-"), "the name that people know: {message}");
    let quiet = place.output("run URL -n 100 --save --store file/history.db --quiet -o json");
    assert_eq!(quiet.status.code(), Some(1), "{}", stderr(&quiet));
    let message = stderr(&quiet);
    assert!(
        message.contains("error: the run is not saved: cannot use the store file/history.db"),
        "{message}"
    );
    assert_eq!(message.matches("cannot use the store").count(), 1, "{message}");
}

#[test]
fn the_environment_says_whether_and_where() {
    let place = Place::new("environment");
    let mut run = place.command("run URL -n 100 --quiet");
    let made = run.env("PLIMSOLL_SAVE", "true").env("PLIMSOLL_STORE", "mine.db").output().unwrap();
    assert!(verdict::ran(made.status.code()), "{}", stderr(&made));
    assert!(!place.store().exists());
    assert_eq!(place.runs("state", "--store mine.db"), ["finished"]);
    let list = place.command("runs -o json").env("PLIMSOLL_STORE", "mine.db").output().unwrap();
    let list: Value = serde_json::from_slice(&list.stdout).unwrap();
    assert_eq!(list["runs"].as_array().map(Vec::len), Some(1));
    let mode =
        Command::new("stat").args(["-c", "%a", "mine.db"]).current_dir(&place.folder).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&mode.stdout).trim(), "600", "plans are in it");
}

#[test]
fn what_makes_no_sense_is_refused_at_once() {
    let place = Place::new("refusals");
    for (line, message) in [
        (
            "run http://127.0.0.1:1/ --store x.db",
            "--store says where to save a run, but this one is not saved",
        ),
        ("run http://127.0.0.1:1/ --name latest~1", "means the latest run already"),
        ("run http://127.0.0.1:1/ --name a,b", "has a comma"),
        ("run http://127.0.0.1:1/ --tag a=1 --tag a=2", "`a` is given twice"),
        ("run http://127.0.0.1:1/ --tag =1", "has no word in front of `=`"),
        ("show nothing", "`nothing` is neither a file nor a run of the history"),
        ("show latest", "`latest` is neither a file nor a run of the history"),
        ("rm", "RUN is missing"),
        ("runs --since yesterday", "`yesterday` is neither an age nor a date"),
        ("export latest", "FORMAT"),
    ] {
        let refused = place.refused(line, 2);
        assert!(refused.contains(message), "{line}: {refused}");
    }
    let mut run = place.command("run http://127.0.0.1:1/");
    let refused = run.env("PLIMSOLL_SAVE", "perhaps").output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("PLIMSOLL_SAVE: `perhaps` is not true or false"),
        "{}",
        stderr(&refused)
    );
    // A target that is not there leaves nothing behind.
    assert_eq!(place.output("run http://127.0.0.1:1/ --save").status.code(), Some(1));
    assert_eq!(place.runs("state", ""), [""; 0]);
}
