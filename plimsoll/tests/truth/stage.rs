//! A stage for one run: a sink and a generator, in a network of their own if need be, set up by a script.
//!
//! The script is one of the shell, because shells are good at such settings (limits of a process, processors,
//! control groups, rules of a firewall), and because a network namespace ends with its last process: nothing
//! is left behind, even if the test fails.

use std::process::{Command, Stdio};

use plimsoll_testkit::machine;
use plimsoll_testkit::skip::on_this_machine;
use serde_json::Value;

/// Beginning of every script. The script has priority over other work of the machine, where the system allows
/// that, so that a cell shows its own limit. (Linux ranks sessions first, hence one for each script.) The
/// script has `$P`, the program, `$D`, a folder of its own, and
/// - `sink WORDS…`: starts a sink on a port of its own and waits until it listens; sets `$URL`, `$PORT` and
///   `$SINK`, its process;
/// - `delay SECONDS`: puts a path with that delay, each way, before the sink;
/// - `load WORDS…`: carries out a run against it, with the result on stdout;
/// - `load_in_background WORDS…`: the same, and returns after the first interval; `$LOAD` is its process.
const PRELUDE: &str = r#"
set -eu
renice -n -15 -p $$ >/dev/null 2>&1 || true
{ echo -15 >/proc/$$/autogroup; } 2>/dev/null || true
D=$(mktemp -d)
jobs_of_mine=
finish() { kill $jobs_of_mine 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$D"; }
trap finish EXIT
mine() { jobs_of_mine="$jobs_of_mine $1"; }
listening() {
  mkfifo "$D/said"
  "$@" 2>"$D/said" >/dev/null & SINK=$!
  mine $SINK
  exec 3<"$D/said"
  while read -r line <&3; do
    case $line in *"listening on "*) break ;; esac
  done
  URL=http://${line##*listening on }/
  PORT=${line##*:}
}
sink() { listening "$P" sink --listen 127.0.0.1:0 "$@"; }
load() { "$P" run "$URL" --quiet -o json "$@" || test $? = 3; }
load_in_background() {
  mkfifo "$D/rows"
  "$P" run "$URL" --quiet -o json --stats "$D/rows" "$@" & LOAD=$!
  exec 4<"$D/rows"
  read -r row <&4
  # Whoever does not read would stop it.
  cat <&4 >/dev/null & mine $!
}
ended() { wait $1 || test $? = 3; }
delay() {
  mkfifo "$D/port"
  python3 -c "$PROXY" "$1" "$PORT" >"$D/port" 2>/dev/null & mine $!
  read -r PORT <"$D/port"
  URL=http://127.0.0.1:$PORT/
}
# By themselves they end, too: whoever kills a test would find two processors taken for ever.
hog() { for n in 1 2 3; do taskset -c "$1" timeout 180 sh -c 'while :; do :; done' & mine $!; done; }
"#;

/// Hands everything on after a time, both ways: like a long path.
const PROXY: &str = r#"
import asyncio, sys

delay, target = float(sys.argv[1]), int(sys.argv[2])

async def hand_on(reader, writer):
    later = asyncio.get_running_loop().call_later
    try:
        while data := await reader.read(65536):
            later(delay, writer.write, data)
    except ConnectionError:
        pass
    later(delay, writer.close)

async def serve(reader, writer):
    there = await asyncio.open_connection("127.0.0.1", target)
    await asyncio.gather(hand_on(reader, there[1]), hand_on(there[0], writer))

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1000)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"#;

/// Requirements of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing beside a shell.
    Nothing,
    /// Two processors.
    Processors,
    /// An interpreter of Python, for the way.
    Delay,
    /// A network of its own, and these programs.
    Network(&'static [&'static str]),
    /// A control group of version 1 or 2 for CPU time that it may make others in.
    Group,
}

/// Runs `script` and returns the result of its load; `None`, with the reason on stderr, if this system
/// cannot.
pub(crate) fn play(needs: Needs, script: &str) -> Option<Value> {
    if let Err(reason) = possible(needs) {
        on_this_machine(&reason);
        return None;
    }
    let _turn = machine::quiet();
    let whole = format!("{PRELUDE}\n{script}");
    let mut command = match needs {
        Needs::Network(_) => {
            let mut command = Command::new("setsid");
            command
                .args(["unshare", "--net", "sh", "-c"])
                .arg(format!("ip link set lo mtu 1500 up\n{whole}"));
            command
        }
        _ => {
            let mut command = Command::new("setsid");
            command.args(["sh", "-c"]).arg(whole);
            command
        }
    };
    command.env("P", env!("CARGO_BIN_EXE_plimsoll")).env("PROXY", PROXY).env("PATH", path());
    let output = command.stdin(Stdio::null()).output().expect("there is a shell");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{:?}: {stdout}\n{stderr}", output.status);
    Some(serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}\n{stderr}")))
}

/// Programs for the system are in folders that are not on everyone's path.
fn path() -> String {
    format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

/// Checks that the system can meet the requirements. The error says why it cannot.
fn possible(needs: Needs) -> Result<(), String> {
    let works = |script: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", script]).env("PATH", path()).stdin(Stdio::null());
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    match needs {
        Needs::Nothing => Ok(()),
        Needs::Processors if works("taskset -c 0 true && taskset -c 1 true") => Ok(()),
        Needs::Processors => Err("there are no two processors that a process may be bound to".to_owned()),
        Needs::Delay if works("python3 -c 'import asyncio'") => Ok(()),
        Needs::Delay => Err("there is no python3 to delay with".to_owned()),
        Needs::Network(programs) => {
            if !works("unshare --net ip link set lo up") {
                return Err("a network namespace cannot be made here (not root, or no iproute2)".to_owned());
            }
            match programs.iter().find(|program| !works(&format!("unshare --net {program}"))) {
                Some(program) => Err(format!("`{program}` does not work in a network namespace here")),
                None => Ok(()),
            }
        }
        Needs::Group if works(&format!("{GROUP}\ngroup 50000; rmdir \"$GROUP\"")) => Ok(()),
        Needs::Group => Err("a control group with a limit on CPU time cannot be made here".to_owned()),
    }
}

/// `group QUOTA`: makes a control group, in the version that is there, that may use this many microseconds of
/// CPU time in 100 ms; `$GROUP` is its folder. It is empty again before it goes.
pub(crate) const GROUP: &str = r#"
group() {
  if test -w /sys/fs/cgroup/cpu/cgroup.procs; then
    GROUP=/sys/fs/cgroup/cpu/plimsoll-$$
    mkdir "$GROUP" && echo "$1" >"$GROUP/cpu.cfs_quota_us"
  else
    GROUP=/sys/fs/cgroup/plimsoll-$$
    mkdir "$GROUP" && echo "$1 100000" >"$GROUP/cpu.max"
  fi
}
"#;
