//! `plimsoll target crud-cluster`: nodes as processes of their own, until it is stopped.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use plimsoll_core::Nanos;
use plimsoll_document::Problem;
use plimsoll_replica::LieKind;
use plimsoll_system::clock;

use super::{ServerMessages, Watch};
use crate::args::server::replica::{CrudClusterSpec, RAFT_OFFSET};
use crate::base::exit::Exit;
use crate::base::failure::Failure;

/// Time that nodes have to end before they are killed.
const PATIENCE: Nanos = Nanos::from_secs(5);

pub(crate) fn command(spec: CrudClusterSpec) -> Result<Exit, Failure> {
    let voice = ServerMessages { name: "target crud-cluster", quiet: spec.quiet };
    let (tell, events) = channel();
    let watch = Watch::new({
        let tell = tell.clone();
        move || drop(tell.send(Event::Stop))
    })?;
    let end = spec.duration.map(|duration| clock::monotonic() + duration);
    let mut cluster = Cluster::start(&spec, tell)?;
    let ran = cluster.run(&voice, &events, end);
    cluster.stop(&events);
    watch.end();
    ran.map(|()| Exit::Success)
}

/// Event in the life of the cluster.
enum Event {
    Stop,
    /// A node says something.
    Said(usize, String),
    /// The stderr of a node has ended.
    Ended(usize),
}

struct Cluster {
    nodes: Vec<Node>,
    /// A folder that goes with the cluster.
    temporary: Option<PathBuf>,
    /// Leader and term that were reported last.
    told: Option<(u64, u64)>,
    is_ready: bool,
}

struct Node {
    child: Child,
    /// Pipe to the node, which ends when this is closed.
    stdin: Option<ChildStdin>,
    http: Option<String>,
    raft: Option<String>,
    /// Leader and term, as far as the node knows.
    leader: Option<(u64, u64)>,
    /// Messages of the node that are shown again if it ends.
    last_words: String,
    has_ended: bool,
}

impl Cluster {
    fn start(spec: &CrudClusterSpec, tell: Sender<Event>) -> Result<Self, Failure> {
        let program = std::env::current_exe().map_err(|error| cannot_start(&error))?;
        let (data, temporary) = match &spec.data {
            Some(data) => (data.clone(), false),
            None => (temporary_folder(), true),
        };
        let kept = temporary.then(|| data.clone());
        let mut cluster = Self { nodes: Vec::new(), temporary: kept, told: None, is_ready: false };
        for id in 0..spec.nodes {
            let mut command = Command::new(&program);
            command.args(flags(spec, id, &data, temporary));
            // Its nodes end with this process, and not with the one before.
            command.env_remove(plimsoll_web::ENDS_WITH);
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
            let mut child = command.spawn().map_err(|error| cannot_start(&error))?;
            let (stdin, stderr) = (child.stdin.take(), child.stderr.take().expect("it is piped"));
            let (tell, number) = (tell.clone(), id as usize);
            std::thread::spawn(move || {
                for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
                    drop(tell.send(Event::Said(number, String::from_utf8_lossy(&line).into_owned())));
                }
                drop(tell.send(Event::Ended(number)));
            });
            let node = Node {
                child,
                stdin,
                http: None,
                raft: None,
                leader: None,
                last_words: String::new(),
                has_ended: false,
            };
            cluster.nodes.push(node);
        }
        Ok(cluster)
    }

    /// Until it is stopped, or no node is left.
    fn run(
        &mut self,
        voice: &ServerMessages<'_>,
        events: &Receiver<Event>,
        end: Option<Nanos>,
    ) -> Result<(), Failure> {
        while let Some(event) = next(events, end) {
            match event {
                Event::Stop => return Ok(()),
                Event::Said(number, line) => self.hear(voice, number, line)?,
                Event::Ended(number) => self.reap(voice, number)?,
            }
        }
        Ok(())
    }

    fn hear(&mut self, voice: &ServerMessages<'_>, number: usize, line: String) -> Result<(), Failure> {
        let node = &mut self.nodes[number];
        let said = line.strip_prefix("target crud-node: ").unwrap_or(&line);
        if let Some(address) = said.strip_prefix("raft on ") {
            node.raft = Some(address.to_owned());
        } else if let Some(address) = said.strip_prefix("listening on http://") {
            node.http = Some(address.to_owned());
            let (pid, raft) = (node.child.id(), node.raft.as_deref().unwrap_or_default());
            voice.say(format!("node {number} on http://{address}, raft {raft}, process {pid}"));
            self.introduce();
        } else if let Some(words) = said.strip_prefix("node ") {
            node.leader = leader(words);
            self.tell_leader(voice);
        } else if said == "no leader" {
            node.leader = None;
        } else {
            voice.say(format!("node {number}: {said}"));
            node.last_words.push_str(&line);
            node.last_words.push('\n');
        }
        Ok(())
    }

    /// Sends each node the addresses of the others, once all are known.
    fn introduce(&mut self) {
        let known = self.nodes.iter().enumerate();
        let known = known.filter_map(|(id, node)| Some((id, (node.http.clone()?, node.raft.clone()?))));
        let known: BTreeMap<usize, (String, String)> = known.collect();
        if known.len() < self.nodes.len() {
            return;
        }
        for (number, node) in self.nodes.iter_mut().enumerate() {
            let others = known.iter().filter(|(id, _)| **id != number);
            let mut lines: String =
                others.map(|(id, (http, raft))| format!("peer {id}={http}/{raft}\n")).collect();
            lines.push_str("start\n");
            if let Some(stdin) = &mut node.stdin {
                // If the node has ended, that is reported elsewhere.
                drop(stdin.write_all(lines.as_bytes()));
            }
        }
    }

    /// Reports the leader when all nodes agree for the first time, and whenever it changes.
    fn tell_leader(&mut self, voice: &ServerMessages<'_>) {
        let Some(latest) = self.nodes.iter().filter_map(|node| node.leader).max_by_key(|(_, term)| *term)
        else {
            return;
        };
        let agree = self.nodes.iter().filter(|node| !node.has_ended).all(|node| node.leader == Some(latest));
        if self.told == Some(latest) || !agree {
            return;
        }
        self.told = Some(latest);
        let url = self.nodes.get(latest.0 as usize).and_then(|node| node.http.as_deref()).unwrap_or_default();
        let ready = if self.is_ready { "" } else { "ready: " };
        self.is_ready = true;
        voice.say(format!("{ready}node {} leads at http://{url}, term {}", latest.0, latest.1));
    }

    fn reap(&mut self, voice: &ServerMessages<'_>, number: usize) -> Result<(), Failure> {
        let node = &mut self.nodes[number];
        let status = node.child.wait();
        (node.has_ended, node.leader) = (true, None);
        if !self.is_ready {
            let said = node.last_words.replace("error: ", "");
            return Err(Failure::environment(Problem::from_line(&format!(
                "node {number} cannot start: {said}"
            ))));
        }
        voice.say(match status {
            Ok(status) => format!("node {number} has ended: {status}"),
            Err(error) => format!("node {number} has ended: {error}"),
        });
        if self.nodes.iter().all(|node| node.has_ended) {
            return Err(Failure::environment(Problem::new("all nodes have ended")));
        }
        self.tell_leader(voice);
        Ok(())
    }

    /// Ends all nodes, and waits until they have.
    fn stop(&mut self, events: &Receiver<Event>) {
        self.nodes.iter_mut().for_each(|node| node.stdin = None);
        let end = clock::monotonic() + PATIENCE;
        while self.nodes.iter().any(|node| !node.has_ended) {
            match next(events, Some(end)) {
                Some(Event::Ended(number)) => self.nodes[number].has_ended = true,
                Some(_) => {}
                None => break,
            }
        }
        for node in &mut self.nodes {
            // The node may have ended by now.
            drop(node.child.kill());
            drop(node.child.wait());
        }
        // Nodes remove their own folders, unless they were killed.
        drop(self.temporary.take().map(std::fs::remove_dir_all));
    }
}

/// The next event; `None` at the end.
fn next(events: &Receiver<Event>, end: Option<Nanos>) -> Option<Event> {
    let Some(end) = end else { return events.recv().ok() };
    let left = Duration::from_nanos(end.0.saturating_sub(clock::monotonic().0));
    events.recv_timeout(left).ok()
}

/// Returns the command line of a node.
fn flags(spec: &CrudClusterSpec, id: u64, data: &Path, temporary: bool) -> Vec<String> {
    let port = |offset: u16| if spec.port == 0 { 0 } else { spec.port + offset + id as u16 };
    let mut flags = vec!["target".to_owned(), "crud-node".to_owned(), "--with-parent".to_owned()];
    flags.push(format!("--id={id}"));
    flags.push(format!("--listen=127.0.0.1:{}", port(0)));
    flags.push(format!("--raft=127.0.0.1:{}", port(RAFT_OFFSET)));
    flags.push(format!("--data={}", data.join(format!("node-{id}")).display()));
    flags.extend_from_slice(&spec.flags);
    if let Some((_, name, who)) = &spec.lie
        && who.is_none_or(|who| who == id)
    {
        flags.push(format!("--lie={name}"));
    }
    if temporary {
        flags.push("--temporary".to_owned());
    }
    flags
}

fn temporary_folder() -> PathBuf {
    let name = format!("plimsoll-crud-{}-{}", std::process::id(), clock::unix().0);
    std::env::temp_dir().join(name)
}

fn cannot_start(error: &std::io::Error) -> Failure {
    Failure::environment(Problem::new(format!("cannot start a node: {error}")))
}

/// `2 leads, term 3`.
fn leader(words: &str) -> Option<(u64, u64)> {
    let (leader, term) = words.split_once(" leads, term ")?;
    Some((leader.parse().ok()?, term.parse().ok()?))
}

/// Describes a kind of lie: the requests or items that a share of is affected, and how.
pub(crate) fn of(kind: LieKind) -> &'static str {
    match kind {
        LieKind::Lose => "of the creates and updates acknowledged and lost",
        LieKind::Diverge => "of the items stored with another value on this node",
        LieKind::Stale => "of the reads answered from an earlier state",
        LieKind::Duplicate => "of the creates stored twice",
        LieKind::Resurrect => "of the deletes acknowledged and not carried out",
    }
}
