//! Tests that failures to write are reported, and that endless waits are refused.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::written::server::Server;
use crate::written::{Place, text};
use plimsoll_testkit::verdict;

fn server() -> Server {
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec();
    Server::of_http(answer.clone(), answer)
}

#[test]
fn a_result_without_a_stdout_is_no_success() {
    let (place, server) = (Place::new(), server());
    let run = format!("PLIMSOLL run {} -n 20 -c 1", server.url());
    for line in [format!("{run} -o json >&-"), format!("{run} >&-"), "PLIMSOLL runs >&-".to_owned()] {
        let output = place.shell(&line);
        assert_eq!(output.status.code(), Some(1), "{line}: {}", text(&output.stderr));
        let said = text(&output.stderr);
        assert!(
            said.contains("error: stdout is closed: the result would go nowhere\nhint: "),
            "{line}: {said}"
        );
    }
    assert_eq!(server.asked(), "", "it is said before the load");
    // Neither is closed: for writing only, and for both, as Python's subprocess.DEVNULL is.
    for line in [format!("{run} >/dev/null"), format!("{run} 1<>/dev/null")] {
        let output = place.shell(&line);
        assert!(verdict::ran(output.status.code()), "{line}: {}", text(&output.stderr));
    }
    let full = place.shell(&format!("{run} -o json --json kept.json >/dev/full"));
    assert_eq!(full.status.code(), Some(1));
    assert!(text(&full.stderr).contains("error: cannot write to stdout: "), "{}", text(&full.stderr));
    assert!(!place.read("kept.json").is_empty(), "what can be written is");
    // A reader such as `head` that closes the pipe early is not an error.
    let head = place.shell(&format!("{{ {run} -o text; echo \"ended by $?\" >&2; }} | head -n 1"));
    assert!(text(&head.stderr).contains("ended by 0\n") || text(&head.stderr).contains("ended by 3\n"));
    assert_eq!(text(&head.stdout).lines().count(), 1);
}

/// Waits until a process has ended. One that hangs fails the test.
fn ended(mut child: Child) -> (Option<i32>, String) {
    // Longer than any of these takes on a busy machine; nothing is measured by it.
    let (hung, asked) = std::sync::mpsc::channel::<()>();
    let pid = child.id();
    let guard = std::thread::spawn(move || {
        if asked.recv_timeout(Duration::from_secs(60)) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
    });
    let status = child.wait().expect("it is our child");
    drop(hung);
    guard.join().expect("no panic");
    let mut said = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        let _ = std::io::Read::read_to_string(&mut stderr, &mut said);
    }
    (status.code(), said)
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let (place, server) = (Place::new(), server());
    let made = Command::new("mkfifo").arg(place.path().join("pipe")).status().expect("there is mkfifo");
    assert!(made.success());
    std::fs::create_dir(place.path().join("folder")).expect("it can be made");
    place.write(
        "data.yaml",
        format!(
            "targets: {{a: {}}}\ndata: {{d: {{csv: pipe, columns: [x]}}}}\nscenarios: [{{data: [d], steps: [{{get: '/${{x}}'}}]}}]\n",
            server.url()
        ),
    );
    let url = server.url();
    let run = ["run", &url, "-n", "20", "-c", "1"];
    let cases: [(&[&str], &[&str], &str); 10] = [
        (&run, &["--save", "--store", "pipe"], "pipe is a pipe, and a store of runs is a file"),
        (&run, &["--save", "--store", "folder"], "folder is a folder, and a store of runs is a file"),
        (&run, &["--save", "--store", "/dev/null"], "/dev/null is a device, and a store of runs is a file"),
        (&["runs"], &["--store", "pipe"], "pipe is a pipe"),
        (&["show", "latest"], &["--store", "pipe"], "pipe is a pipe"),
        (&["rm", "latest"], &["--store", "pipe"], "pipe is a pipe"),
        (&["compare", "a1b2", "c3d4"], &["--store", "pipe"], "pipe is a pipe"),
        (&["export", "latest", "-o", "json"], &["--store", "folder"], "folder is a folder"),
        (&run, &["--json", "pipe"], "no process reads the pipe"),
        (&["run", "data.yaml", "-n", "4"], &[], "it is a pipe, a socket or a device"),
    ];
    for (command, flags, message) in cases {
        let mut command = place.command(&[command, flags].concat());
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
        let (code, said) = ended(child);
        assert!(matches!(code, Some(1 | 2)), "{flags:?}: {code:?} {said}");
        assert!(said.contains(message) && said.contains("hint: "), "{flags:?}: {said}");
    }
}

/// Symptom: a program that starts this one with a socket as its standard input, as Node.js does, was told "No
/// such device or address".
#[test]
fn a_plan_is_read_from_a_socket() {
    let (mut ours, theirs) = std::os::unix::net::UnixStream::pair().expect("a pair of sockets");
    let plan = "targets: {a: 'http://127.0.0.1:1'}\nscenarios: [{steps: [{get: /}]}]\n";
    std::io::Write::write_all(&mut ours, plan.as_bytes()).expect("it is short");
    drop(ours);
    let mut check = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    let stdin = std::os::fd::OwnedFd::from(theirs);
    let output = check.args(["check", "-"]).stdin(Stdio::from(stdin)).output().expect("it can be started");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains(": ok"), "{}", text(&output.stdout));
}

#[test]
fn pipes_that_are_read_and_written_go_on_working() {
    let (place, server) = (Place::new(), server());
    place.write(
        "plan.yaml",
        format!("targets: {{a: {}}}\nscenarios: [{{steps: [{{get: /}}]}}]\n", server.url()),
    );
    let line = "mkfifo p; cat p >copy & PLIMSOLL run - -n 20 -c 1 --json p <plan.yaml >/dev/null; code=$?; wait; exit $code";
    let output = place.shell(line);
    assert!(verdict::ran(output.status.code()), "{}", text(&output.stderr));
    assert!(text(&place.read("copy")).contains("\"accounting\""));
    let output = place.shell("cat plan.yaml | PLIMSOLL run /dev/stdin -n 20 -c 1 2>&1 >/dev/null");
    assert!(text(&output.stderr).is_empty());
}
