//! Servers that are watched: real processes, which work, begin and end.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use plimsoll_core::Nanos;
use plimsoll_metrics::{FoundBy, MachineInterval, WatchedUse};
use plimsoll_monitor::{Named, Sampler, Watch, is_there};

const SECOND: Nanos = Nanos::from_secs(1);

/// A server that carries out commands, word by word, and reports each.
const SERVER: &str = r#"
import os, sys, tempfile
kept, children = [], []
print(flush=True)
for line in sys.stdin:
    word = line.strip()
    if word == "allocate":
        kept.append(bytearray(os.urandom(1 << 20)) * 64)
    if word == "open":
        kept.extend(open("/dev/null") for _ in range(50))
    if word == "write":
        with open("/dev/null", "wb", buffering=0) as file:
            for _ in range(1000): file.write(b"x")
    if word == "work":
        while os.times().user + os.times().system < 0.1: sum(range(10000))
    if word == "fork":
        ends = os.pipe() + os.pipe()
        child = os.fork()
        if child == 0:
            with open("/dev/null", "wb", buffering=0) as file:
                for _ in range(5000): file.write(b"x")
            os.write(ends[1], b"x")
            os.read(ends[2], 1)
            os._exit(0)
        os.read(ends[0], 1)
        children.append((child, ends))
    if word == "reap":
        child, ends = children.pop()
        os.write(ends[3], b"x")
        os.waitpid(child, 0)
        [os.close(end) for end in ends]
    print(flush=True)
"#;

/// A real process, which is killed with this.
struct Server {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Server {
    /// `None` on a machine without Python, and nothing can be tried there.
    fn start() -> Option<Self> {
        let mut command = Command::new("python3");
        command.args(["-c", SERVER]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().ok()?;
        let said = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut server = Self { child, said };
        server.hear();
        Some(server)
    }

    fn hear(&mut self) {
        self.said.read_line(&mut String::new()).expect("it answers");
    }

    /// Has it done, and waits until it is.
    fn tell(&mut self, word: &str) {
        writeln!(self.child.stdin.as_mut().expect("it is piped"), "{word}").expect("it reads");
        self.hear();
    }

    fn watch(&self) -> Watch {
        Watch { named: vec![Named::Pid(self.child.id())], ..Watch::default() }
    }

    fn sampler(&self) -> Sampler {
        Sampler::open("worker-", &self.watch(), SECOND)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn only(interval: &MachineInterval) -> &WatchedUse {
    let [watched] = interval.watched.as_slice() else { panic!("one is watched: {interval:?}") };
    watched
}

#[test]
fn what_a_process_takes_is_seen() {
    let Some(mut server) = Server::start() else { return };
    let mut sampler = server.sampler();
    let before = sampler.sample(SECOND * 2);
    let before = only(&before).used.expect("it runs");
    for word in ["allocate", "open", "write", "work"] {
        server.tell(word);
    }
    let interval = sampler.sample(SECOND * 3);
    let watched = only(&interval);
    let after = watched.used.expect("it runs");
    assert!(after.rss_bytes >= before.rss_bytes.map(|bytes| bytes + (60 << 20)), "{before:?} {after:?}");
    assert_eq!(after.descriptors, before.descriptors.map(|count| count + 50));
    assert!(after.cpu >= Nanos::from_millis(30) && after.system <= after.cpu, "{after:?}");
    let calls = after.files.expect("its own user can read them").write_calls;
    // Those, and its answers.
    assert!((1_000..1_100).contains(&calls), "{calls}");
    assert_eq!((watched.processes, watched.began, watched.ended), (1, 0, 0));
    let facts = &sampler.facts().watched[0];
    assert_eq!(
        (&facts.found_by, facts.pids.as_slice()),
        (&FoundBy::Pid(server.child.id()), &[server.child.id()][..])
    );
    assert!(facts.is_target && facts.missing.is_empty() && facts.descriptor_limit > Some(0), "{facts:?}");
    assert!(facts.first_rss_bytes > Some(1 << 20), "{facts:?}");
}

#[test]
fn descendants_belong_to_it_and_nothing_counts_twice() {
    let Some(mut server) = Server::start() else { return };
    let mut sampler = server.sampler();
    server.tell("fork");
    let born = sampler.sample(SECOND * 2);
    let born = only(&born);
    assert_eq!((born.processes, born.began, born.ended), (2, 1, 0));
    // Calls that the process made before the first look at it count in this interval.
    let calls =
        |watched: &WatchedUse| watched.used.and_then(|used| used.files).map(|files| files.write_calls);
    assert!((5_000..5_100).contains(&calls(born).unwrap_or_default()), "{born:?}");
    let alone = born.used.expect("they run");
    assert_eq!(alone.threads, 2);

    // The system adds what the child has written to its parent's figures.
    server.tell("reap");
    let reaped = sampler.sample(SECOND * 3);
    let reaped = only(&reaped);
    assert_eq!((reaped.processes, reaped.began, reaped.ended), (1, 0, 1));
    assert!(calls(reaped).is_some_and(|calls| calls < 100), "{reaped:?}");
    let [event] = reaped.events.as_slice() else { panic!("{reaped:?}") };
    assert!(event.ended && event.name.starts_with("python3") && event.pid != server.child.id(), "{event:?}");
}

#[test]
fn a_process_that_ends_is_told_once_even_if_its_parent_does_not_ask() {
    let Some(mut server) = Server::start() else { return };
    let mut sampler = server.sampler();
    server.child.kill().expect("it runs");
    // The zombie has not been waited for.
    let file = format!("/proc/{}/stat", server.child.id());
    while !std::fs::read_to_string(&file).expect("its number is still taken").contains(") Z ") {
        std::thread::yield_now();
    }
    let interval = sampler.sample(SECOND * 2);
    let watched = only(&interval);
    assert_eq!((watched.processes, watched.used, watched.ended), (0, None, 1));
    server.child.wait().expect("it is our child");
    let interval = sampler.sample(SECOND * 3);
    let after = only(&interval);
    assert_eq!((after.processes, after.used, after.ended), (0, None, 0));
    assert_eq!(interval.target, None);
}

#[test]
fn processes_of_a_name_are_found_when_they_begin() {
    // A copy of the shell under a name that no other process on this machine has.
    let name = format!("plms{}", std::process::id());
    let folder = std::env::temp_dir().join(format!("plimsoll-servers-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
    let program = folder.join(&name);
    std::fs::copy("/bin/sh", &program).expect("there is a shell");
    let start = || {
        let mut command = Command::new(&program);
        command.args(["-c", "echo; read end"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the copy runs");
        let mut said = BufReader::new(child.stdout.take().expect("it is piped"));
        said.read_line(&mut String::new()).expect("it answers");
        Server { child, said }
    };
    let named = Named::Name(name.clone());
    assert!(!is_there(&named));
    let first = start();
    assert!(is_there(&named));
    let watch = Watch { named: vec![named], ..Watch::default() };
    let mut sampler = Sampler::open("worker-", &watch, SECOND);
    assert_eq!(sampler.facts().watched[0].pids, [first.child.id()]);
    let second = start();
    let interval = sampler.sample(SECOND * 2);
    let both = only(&interval);
    assert_eq!((both.processes, both.began), (2, 1));
    assert_eq!((both.events[0].pid, both.events[0].ended), (second.child.id(), false));
    drop((first, second));
    let interval = sampler.sample(SECOND * 3);
    let none = only(&interval);
    assert_eq!((none.processes, none.used, none.ended), (0, None, 2));
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn a_server_that_listens_and_is_named_is_one() {
    let script = "import socket,sys\ns=socket.socket()\ns.bind(('127.0.0.1',0))\ns.listen()\n\
                  print(s.getsockname()[1],flush=True)\nsys.stdin.read()";
    let mut command = Command::new("python3");
    command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut child) = command.spawn() else { return };
    let mut said = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut line = String::new();
    said.read_line(&mut line).expect("it says its port");
    let listening = Server { child, said };
    let Some(other) = Server::start() else { return };
    let port = line.trim().parse().expect("a port");
    let [listens, does_not] = [&listening, &other].map(|server| server.child.id());
    let of = |named: &[u32]| {
        let named = named.iter().copied().map(Named::Pid).collect();
        let watch = Watch { ports: vec![port], sockets: Vec::new(), named };
        let facts = Sampler::open("worker-", &watch, SECOND).facts().clone();
        let target = facts.target.map(|target| target.pids);
        (facts.watched.into_iter().map(|server| server.pids).collect::<Vec<_>>(), target)
    };
    let target = Some(vec![listens]);
    assert_eq!(of(&[]), (vec![vec![listens]], target.clone()));
    assert_eq!(of(&[does_not, listens]), (vec![vec![does_not], vec![listens]], target.clone()));
    assert_eq!(of(&[does_not]), (vec![vec![listens], vec![does_not]], target));
}
