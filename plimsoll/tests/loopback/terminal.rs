//! Runs on a terminal, with the live screen: keys, sizes, and every way to end.

use serde_json::Value;

use crate::loopback::foreign::python;
use crate::loopback::process::Folder;
use crate::loopback::sink::Sink;

/// Runs the program in a terminal of 80 columns and 24 rows, carries out the steps, and returns how it ended
/// and how the terminal was left. A step is a letter and a word: `k` types keys, `w` waits until the word is
/// on a screen that is drawn anew in another size, `s` sends a signal, `x` closes the terminal.
const TERMINAL: &str = r#"
import fcntl, os, pty, signal, select, struct, sys, termios
steps = os.fsencode(sys.argv[1]).split(b'|')
out = sys.argv[2]
master, slave = pty.openpty()
def resize(columns, rows):
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
resize(80, 24)
before = termios.tcgetattr(slave)
environment = dict(os.environ, TERM='xterm', LANG='C.UTF-8')
for name in ('CI', 'NO_COLOR', 'PLIMSOLL_NO_TUI', 'LC_ALL'):
    environment.pop(name, None)
for pair in sys.argv[3].split():
    environment.update([pair.split('=')])
pid = os.fork()
if pid == 0:
    os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for number in (0, 2):
        os.dup2(slave, number)
    os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT), 1)
    os.close(master)
    os.execve(sys.argv[4], sys.argv[4:], environment)
everything = seen = b''
def read_some():
    global seen, everything
    if not select.select([master], [], [], 50)[0]:
        print('code', 'silent after', everything); sys.exit(1)
    new = os.read(master, 65536)
    seen, everything = seen + new, everything + new
columns = 80
closed = False
for step in steps:
    kind, word = step[:1], step[1:]
    if kind == b'k':
        os.write(master, word)
    elif kind == b'r':
        seen = b''
        while word not in seen:
            read_some()
    elif kind == b'w':
        # Everything is drawn anew in another size: then the words are whole. What is just being drawn for the
        # first time has the size already, and nothing is new about it: then another one is tried.
        whole = False
        while not whole or word not in seen:
            seen, whole = b'', False
            columns = 180 - columns
            resize(columns, 30)
            tried = 0
            while not whole and tried < 20:
                if select.select([master], [], [], 0.25)[0]:
                    read_some()
                tried += 1
                whole = b'\x1b[2J' in seen and b'\x1b[?2026l' in seen.split(b'\x1b[2J')[-1]
    elif kind == b's':
        if word == b'SIGCONT':
            # It leaves the screen before it stops: one that came in between would be lost.
            os.waitpid(pid, os.WUNTRACED)
        os.kill(pid, getattr(signal, word.decode()))
    elif kind == b'x':
        os.close(slave); os.close(master); closed = True
if not closed:
    # Whoever ends writes to a terminal that somebody reads. It is waited for once, and read to the end.
    done = 0
    while True:
        if not done:
            done, status = os.waitpid(pid, os.WNOHANG)
        if select.select([master], [], [], 0.05)[0]:
            read_some()
        elif done:
            break
    left = everything.count(b'\x1b[?1049h') == everything.count(b'\x1b[?1049l')
    restored = before == termios.tcgetattr(slave)
    print('restored', restored, 'left', left, 'code', os.waitstatus_to_exitcode(status))
    sys.stdout.buffer.write(b'after ' + everything.split(b'\x1b[?1049l')[-1] + b'\n')
else:
    print('code', os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

/// Line that the script prints, messages after the screen had closed, the result in the file, and stdout.
struct Ended {
    line: String,
    after: String,
    result: Value,
    stdout: String,
}

fn on_a_terminal(steps: &str, variables: &str, args: &[&str]) -> Option<Ended> {
    let (sink, folder) = (Sink::start(""), Folder::new());
    let (json, out, url) = (folder.file("result.json"), folder.file("out"), sink.url());
    let program = env!("CARGO_BIN_EXE_plimsoll");
    let begin = ["-c", TERMINAL, steps, &out, variables, program, &url, "--json", &json];
    let mut python = python(&[&begin[..], args].concat())?;
    let line = python.stdout.wait_for("code ");
    let after: Vec<String> = std::iter::from_fn(|| python.stdout.find("")).collect();
    let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let result = serde_json::from_str(&text(&json)).unwrap_or_default();
    Some(Ended { line, after: after.join("\n"), result, stdout: text(&out) })
}

const OPEN: [&str; 4] = ["--rate", "100", "-d", "60s"];

#[test]
fn the_screen_shows_the_run_and_keys_steer_it() {
    let steps = "r\x1b[?1049h|wresponse time|wso far|k+|w110/s|kp|wpaused|kp|wresumed|k\t|k\t|wverdict as it stands|k?|wkeys|k?|kq";
    let Some(ended) = on_a_terminal(steps, "", &OPEN) else { return };
    // On a busy machine the run is invalid, and ends with 3.
    assert!(ended.line.starts_with("restored True left True code "), "{}: {}", ended.line, ended.after);
    let changes = ended.result["rate"]["changes"].as_array().expect("a list");
    let what: Vec<_> =
        changes.iter().map(|change| (&change["what"], &change["to_per_s"], &change["by"])).collect();
    let key = Value::from("key");
    let expected =
        [("rate", 110.0), ("pause", 0.0), ("resume", 110.0)].map(|(what, to)| (what.into(), to.into()));
    let expected: Vec<_> = expected.iter().map(|(what, to)| (what, to, &key)).collect();
    assert_eq!(what, expected);
    assert_eq!(ended.result["run"]["stopped_by"], "key");
    // Messages of the meantime follow the screen, and the report is where it always is.
    for message in ["rate 110/s from", "paused from", "resumed with 110/s", "stopping: waiting"] {
        assert!(ended.after.contains(message), "{message}: {}", ended.after);
    }
    assert!(
        ended.stdout.contains("from when it was due") && !ended.stdout.contains('\x1b'),
        "{}",
        ended.stdout
    );
}

#[test]
fn control_c_has_the_effects_of_the_signal() {
    let once = "r\x1b[?1049h|wso far|k\x03";
    let Some(ended) = on_a_terminal(once, "", &OPEN) else { return };
    assert_eq!(ended.line, "restored True left True code 130", "{}", ended.after);
    assert_eq!(ended.result["run"]["interrupted_by_signal"], 2);
    assert!(ended.after.contains("stopping: waiting for requests in flight"), "{}", ended.after);
}

#[test]
fn whatever_ends_the_run_gives_the_terminal_back() {
    for (signal, code) in [("SIGTERM", 143), ("SIGHUP", 129), ("SIGQUIT", -3)] {
        let Some(ended) = on_a_terminal(&format!("r\x1b[?1049h|wso far|s{signal}"), "", &OPEN) else {
            return;
        };
        assert_eq!(ended.line, format!("restored True left True code {code}"), "{signal}: {}", ended.after);
        let interrupted = ended.result["run"]["interrupted_by_signal"].as_i64();
        assert_eq!(interrupted, (code > 0).then_some(code - 128), "{signal}");
    }
}

#[test]
fn a_stopped_run_leaves_the_screen_and_comes_back_to_it() {
    let there_and_back = "r\x1b[?1049h|wso far|k\x1a|r\x1b[?1049l|sSIGCONT|r\x1b[?1049h|wso far|kq";
    let Some(ended) = on_a_terminal(there_and_back, "", &OPEN) else { return };
    // The length of the stop decides whether it spoiled the run.
    assert!(ended.line.starts_with("restored True left True code "), "{}: {}", ended.line, ended.after);
    assert_eq!(ended.result["run"]["stopped_by"], "key");
}

#[test]
fn a_terminal_that_goes_away_ends_the_run_in_order() {
    let Some(ended) = on_a_terminal("r\x1b[?1049h|wso far|x", "", &OPEN) else { return };
    assert_eq!(ended.line, "code 129");
    assert_eq!(ended.result["run"]["interrupted_by_signal"], 1);
    let accounting = &ended.result["accounting"];
    assert!(accounting["ok"].as_u64().is_some_and(|ok| ok > 0), "{accounting}");
    assert_eq!(accounting["in_flight_at_stop"], 0);
    assert!(ended.stdout.contains("from when it was due"), "{}", ended.stdout);
}

#[test]
fn there_is_a_line_where_no_screen_is_wanted() {
    let short = ["--rate", "100", "-d", "2s"];
    let flagged = [&short[..], &["--no-tui"]].concat();
    for (variables, args) in
        [("TERM=dumb", &short[..]), ("CI=1", &short), ("PLIMSOLL_NO_TUI=1", &short), ("", &flagged)]
    {
        let Some(ended) = on_a_terminal("r left", variables, args) else { return };
        assert!(ended.line.starts_with("restored True left True code "), "{variables}: {}", ended.line);
        // There was no screen: what came after it is everything.
        assert!(ended.after.contains("q stops") && ended.after.contains("in flight"), "{}", ended.after);
    }
}
