//! The sampler on this machine, and on captured files where their content has to be known.

use std::fs;
use std::path::PathBuf;

use plimsoll_core::Nanos;
use plimsoll_metrics::ThreadUse;
use plimsoll_monitor::{Named, Sampler, Watch, host};

const SECOND: Nanos = Nanos::from_secs(1);

fn nobody() -> Watch {
    Watch::default()
}

fn pid(number: u32) -> Watch {
    Watch { named: vec![Named::Pid(number)], ..Watch::default() }
}

/// A folder of captured files, which goes with this.
struct Captured(PathBuf);

impl Captured {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("plimsoll-monitor-{}-{name}", std::process::id()));
        fs::create_dir_all(&root).expect("the temporary folder can be written");
        Self(root)
    }

    fn write(&self, path: &str, content: &str) {
        let file = self.0.join(path);
        fs::create_dir_all(file.parent().expect("it is in a folder")).expect("the folder can be made");
        // The file keeps its identity, like those of the system.
        fs::write(file, content).expect("the file can be written");
    }

    fn thread(&self, folder: &str, [cpu, delay, switches]: [u64; 3]) {
        let ticks = cpu / 10_000_000;
        self.write(
            &format!("{folder}/stat"),
            &format!("7 (a b) S 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 2 0 1"),
        );
        self.write(&format!("{folder}/schedstat"), &format!("{cpu} {delay} 1\n"));
        self.write(
            &format!("{folder}/status"),
            &format!("VmRSS:\t 8 kB\nvoluntary_ctxt_switches:\t1\nnonvoluntary_ctxt_switches:\t{switches}\n"),
        );
    }
}

impl Drop for Captured {
    fn drop(&mut self) {
        // The system cleans up files that cannot be removed.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn differences_are_those_of_the_files() {
    let files = Captured::new("differences");
    let ms = |millis: u64| millis * 1_000_000;
    for (number, folder) in ["proc/self", "proc/self/task/7", "proc/self/task/8"].into_iter().enumerate() {
        files.thread(folder, [ms(100), ms(10), number as u64]);
    }
    files.write("proc/self/task/7/comm", "worker-1\n");
    files.write("proc/self/task/8/comm", "worker-0\n");
    files.write("proc/stat", "cpu  1 1 1 1 1 1 1 1\ncpu0 10 0 0 0 0 0 0 0 0 0\n");
    files.write("proc/self/net/snmp", "Tcp: OutSegs RetransSegs\nTcp: 1000 50\n");
    files.write("proc/self/limits", "Max open files            1024                 4096     files     \n");
    files.write("proc/sys/net/ipv4/ip_local_port_range", "1000 1009\n");
    files.write("proc/self/cgroup", "0::/box/inner\n");
    files.write("proc/self/mountinfo", "41 31 0:38 / /cg rw - cgroup2 cgroup2 rw\n");
    files.write("cg/box/cpu.max", "150000 100000\n");
    files.write("cg/box/cpu.stat", "nr_periods 5\nnr_throttled 1\nthrottled_usec 100\n");
    files.write("cg/box/inner/cpu.max", "max 100000\n");
    files.write("cg/box/inner/memory.max", "4096\n");
    files.write("cg/box/inner/memory.current", "1024\n");
    let mut sampler = Sampler::open_below(&files.0, "worker-", &nobody(), SECOND);

    let facts = sampler.facts().clone();
    assert_eq!((facts.ports, facts.soft_descriptors), (Some(10), Some(1024)));
    assert_eq!((facts.limits.cpus, facts.limits.memory_bytes), (Some(1.5), Some(4096)));
    assert_eq!(facts.target, None);
    let is_missing = |name: &str| facts.missing.iter().filter(|reason| reason.contains(name)).count();
    assert_eq!((is_missing("netstat"), is_missing("pressure"), is_missing("snmp")), (1, 1, 0), "{facts:?}");

    files.thread("proc/self/task/8", [ms(600), ms(110), 9]);
    files.thread("proc/self", [ms(700), ms(10), 9]);
    files.write("proc/stat", "cpu  1 1 1 1 1 1 1 1\ncpu0 30 0 5 0 0 0 5 7 0 0\n");
    files.write("proc/self/net/snmp", "Tcp: OutSegs RetransSegs\nTcp: 1090 60\n");
    files.write("cg/box/cpu.stat", "nr_periods 15\nnr_throttled 4\nthrottled_usec 900\n");
    let interval = sampler.sample(SECOND * 3);

    assert_eq!(interval.length, SECOND * 2);
    let worked = ThreadUse {
        cpu: Nanos(ms(500)),
        run_delay: Some(Nanos(ms(100))),
        voluntary_switches: Some(0),
        involuntary_switches: Some(7),
        system: Nanos::ZERO,
    };
    assert_eq!(interval.workers[0], worked);
    assert_eq!(interval.workers[1].cpu, Nanos::ZERO);
    let generator = interval.generator.expect("it is there");
    assert_eq!((generator.cpu, generator.busiest_thread), (Nanos(ms(600)), Some(Nanos(ms(500)))));
    assert_eq!((generator.rss_bytes, generator.group_memory_bytes), (Some(8192), Some(1024)));
    let throttling = generator.throttling.expect("a group has a limit");
    assert_eq!((throttling.periods, throttling.throttled, throttling.time), (10, 3, Nanos(800_000)));
    assert_eq!((interval.cores[0].busy, interval.cores[0].steal), (Nanos(ms(300)), Nanos(ms(70))));
    assert_eq!((interval.network.segments_sent, interval.network.retransmitted), (Some(100), Some(10)));
    assert_eq!((interval.network.timeouts, interval.pressure), (None, None));
}

#[test]
fn nothing_at_all_is_no_failure() {
    let files = Captured::new("nothing");
    let mut sampler = Sampler::open_below(&files.0, "worker-", &pid(5), SECOND);
    assert!(sampler.facts().missing.len() >= 6, "{:?}", sampler.facts());
    let interval = sampler.sample(SECOND * 2);
    assert!(interval.generator.is_none() && interval.target.is_none() && interval.cores.is_empty());
    let host = host::host_below(&files.0);
    assert_eq!(host, host::Host::default());
}

#[test]
fn what_cannot_be_read_of_a_server_is_not_known_and_says_why() {
    let files = Captured::new("unreadable");
    for folder in ["proc/77", "proc/78"] {
        files.thread(folder, [0, 0, 0]);
    }
    let io = "rchar: 1\nwchar: 1\nsyscr: 1\nsyscw: 1\nread_bytes: 4096\nwrite_bytes: 0\n";
    files.write("proc/78/io", io);
    let named = vec![Named::Pid(77), Named::Pid(78), Named::Name("a b".to_owned())];
    let watch = Watch { named, ..Watch::default() };
    let mut sampler = Sampler::open_below(&files.0, "worker-", &watch, SECOND);
    files.write("proc/78/io", &io.replace("4096", "5000"));
    let interval = sampler.sample(SECOND * 2);
    let read = |number: usize| interval.watched[number].used.map(|used| used.files.map(|f| f.read_bytes));
    // The sum of both would miss a part.
    assert_eq!([read(0), read(1), read(2)], [Some(None), Some(Some(904)), Some(None)]);
    assert_eq!(interval.watched[2].processes, 2);
    let reasons = |number: usize| sampler.facts().watched[number].missing.clone();
    assert!(reasons(0).iter().any(|reason| reason.contains("77/io: No such file")), "{:?}", reasons(0));
    assert_eq!(reasons(1), [""; 0]);
}

#[test]
fn a_look_at_a_quiet_machine_allocates_the_lists_of_its_interval_and_nothing_else() {
    let mut sampler = Sampler::open("", &nobody(), SECOND);
    sampler.sample(SECOND);
    // Other tests of this binary are threads of this process. One may begin or end between two looks, but in
    // looks that follow at once none uses a processor.
    let counts = (0..10).map(|_| {
        allocation_counter::measure(|| {
            let interval = sampler.sample(SECOND);
            assert!(interval.generator.is_some());
        })
    });
    let least = counts.map(|count| count.count_total).min();
    // The allowance for the processors, whose list grows; no thread is named by a number only.
    let cores = 8 + u64::from(fs::read_to_string("/proc/stat").expect("it is there").lines().count() as u32);
    assert!(least.is_some_and(|least| least <= cores.ilog2().into()), "{least:?} allocations");
}

#[test]
fn a_listening_process_is_found_by_its_port_and_its_path() {
    use std::io::BufRead as _;
    use std::process::{Command, Stdio};
    // This very process listens: it must not be taken for a target on its own.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    let watch = Watch { ports: vec![port], ..Watch::default() };
    let sampler = Sampler::open("worker-", &watch, SECOND);
    assert_eq!(sampler.facts().target, None);
    let reasons = &sampler.facts().missing;
    assert!(reasons.iter().any(|reason| reason.ends_with("it is this one")), "{reasons:?}");

    let script = "import socket,sys\ns=socket.socket()\ns.bind(('127.0.0.1',0))\ns.listen()\n\
                  print(s.getsockname()[1],flush=True)\nsys.stdin.read()";
    let child =
        Command::new("python3").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    // On a machine without it, the parts are tested one by one.
    let Ok(mut child) = child else { return };
    let mut line = String::new();
    let stdout = child.stdout.take().expect("it is piped");
    std::io::BufReader::new(stdout).read_line(&mut line).expect("it says its port");
    let port = line.trim().parse().expect("a port");
    let watch = Watch { ports: vec![port], ..Watch::default() };
    let mut sampler = Sampler::open("worker-", &watch, SECOND);
    let target = sampler.facts().target.clone().expect("it is found");
    assert_eq!(target.pids, [child.id()]);
    assert!(target.name.starts_with("python3"), "{target:?}");
    let seen = sampler.sample(SECOND * 2).target.expect("it runs");
    assert!(seen.threads == 1 && seen.rss_bytes > Some(1 << 20), "{seen:?}");
    drop(child.stdin.take());
    child.wait().expect("it is our child");
    assert_eq!(sampler.sample(SECOND * 3).target, None);
}
