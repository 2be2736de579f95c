//! The attribution matrix of MEASUREMENT R19: the limit of each run is known, because it was set up so; the
//! verdict has to say it. One test per cell.
//!
//! A machine that has other work to do starves the generator or the target by itself, and the program says
//! so. That is the truth about that run, but not about the cell. So cells go before other work where the
//! system allows it, and a cell is played again, a few times, as long as the answer is that this machine held
//! up the generator, or the target. Any other wrong answer fails at once.

use plimsoll_testkit::skip::on_this_machine;
use serde_json::Value;

use crate::truth::stage::{GROUP, Needs, play};

/// Number of times that a cell is played on a machine that is held up.
const PLAYS: u32 = 3;

/// Share of the time of its processors that a machine does not get from its host, above which nothing can be
/// played on it.
const STOLEN: f64 = 0.1;

/// Plays a cell until the machine lets it, and asserts its limit and words of the evidence: one of those
/// between bars.
fn assert_limited(needs: Needs, script: &str, by: &str, words: &str) {
    let (mut seen, mut stolen) = (Vec::new(), true);
    for _ in 0..PLAYS {
        let Some(result) = play(needs, script) else { return };
        let limit = &result["verdict"]["limited_by"];
        let evidence = limit["evidence"].as_str().expect("there is evidence").to_owned();
        if limit["what"] == by && words.split('|').any(|words| evidence.contains(words)) {
            assert!(by == "none" || !limit["hint"].as_str().unwrap_or_default().is_empty(), "{limit}");
            return;
        }
        let machine = &result["generator"]["machine"];
        stolen &= machine["steal_share"].as_f64().is_some_and(|share| share > STOLEN);
        seen.push(format!("{limit}, machine {machine}"));
        assert!(held_up(&result), "{by} was expected: {seen:#?}");
    }
    if stolen {
        return on_this_machine(&format!(
            "this machine's processors were others' in {PLAYS} plays: {seen:#?}"
        ));
    }
    panic!("{by} was expected: {seen:#?}");
}

/// Returns `true` if something on this machine had to wait for a processor, or was stopped.
fn held_up(result: &Value) -> bool {
    let evidence = result["verdict"].to_string();
    ["had no CPU", "stood still", "start lag", "all cores were busy", "of its core"]
        .iter()
        .any(|words| evidence.contains(words))
}

#[test]
fn few_connections() {
    let script = "sink --delay constant:10ms; load --rate 1000 -c 5 -d 2s";
    assert_limited(Needs::Nothing, script, "connection_limit", "carry at most");
}

#[test]
fn few_users() {
    let script = "sink --delay constant:10ms; load -c 4 -d 1s";
    assert_limited(Needs::Nothing, script, "connection_limit", "4 users");
}

#[test]
fn nothing() {
    let script = "sink --delay constant:1ms; load --rate 100 -d 3s --interval 500ms";
    // Where something else kept the processor, the lag is said in place of "on time".
    assert_limited(Needs::Nothing, script, "none", "on time|start lag of up to");
}

/// A long way is part of the response time; as long as nothing has to wait for it, it limits nothing.
#[test]
fn a_network_that_delays() {
    let script = "sink; delay 0.02; load --rate 100 -c 50 -d 3s --interval 500ms";
    assert_limited(Needs::Delay, script, "none", "on time|start lag of up to");
}

#[test]
fn a_network_that_delays_more_than_connections_can_bear() {
    let script = "sink; delay 0.02; load --rate 1000 -c 10 -d 2s";
    assert_limited(Needs::Delay, script, "connection_limit", "carry at most");
}

#[test]
fn a_generator_beside_a_hog() {
    let script = "sink; taskset -pc 1 $SINK >/dev/null; hog 0; P=\"taskset -c 0 $P\"
        load() { $P run \"$URL\" --quiet -o json \"$@\" || test $? = 3; }
        load -c 8 -d 2s --backend epoll";
    assert_limited(Needs::Processors, script, "generator", "had no CPU|stood still");
}

#[test]
fn a_generator_in_a_small_control_group() {
    let script = format!(
        "{GROUP}
        sink; group 5000
        (echo 0 >\"$GROUP/cgroup.procs\"; exec \"$P\" run \"$URL\" --quiet -o json -c 8 -d 2s) || test $? = 3
        rmdir \"$GROUP\""
    );
    assert_limited(Needs::Group, &script, "generator", "control group");
}

#[test]
fn a_generator_that_is_stopped_and_continued() {
    // The test needs a cut of half a second: there is no event to wait for.
    let script = "sink --delay constant:1ms; load_in_background --rate 500 -d 3s
        kill -STOP $LOAD; sleep 0.5; kill -CONT $LOAD; ended $LOAD";
    let Some(result) = play(Needs::Nothing, script) else { return };
    let verdict = &result["verdict"];
    assert_eq!(verdict["limited_by"]["what"], "generator", "{verdict}");
    assert!(verdict["invalid_reasons"].to_string().contains("stall"), "{verdict}");
    // Its requests are in the figures, and set apart.
    let met = result["in_stall"]["response_time"]["count"].as_u64().expect("some met it");
    assert!(met >= 150, "{met} of about 250 were due in it");
    let of = |path: &str| result.pointer(path).and_then(Value::as_u64).expect("a figure");
    let (all, without) = (of("/response_time/mean"), of("/in_stall/response_time_without/mean"));
    assert!(without < all, "mean response time {without} ns without them, {all} ns with them");
}

#[test]
fn few_ports() {
    let script = "echo 40000 40009 >/proc/sys/net/ipv4/ip_local_port_range
        sink --delay constant:100ms; load -c 20 -d 1s";
    assert_limited(Needs::Network(&[]), script, "generator", "local port");
}

#[test]
fn few_descriptors() {
    let script = "sink --delay constant:20ms; ulimit -n 80; load --rate 2000 -d 2s";
    assert_limited(Needs::Nothing, script, "connection_limit", "carry at most");
}

#[test]
fn a_target_beside_a_hog() {
    let script = "sink --backend epoll; taskset -apc 1 $SINK >/dev/null; hog 1
        taskset -c 0 \"$P\" run \"$URL\" --quiet -o json -c 8 -d 2s || test $? = 3";
    assert_limited(Needs::Processors, script, "target", "was ready to run but had no CPU");
}

#[test]
fn a_target_in_a_small_control_group() {
    let script = format!(
        "{GROUP}
        group 5000; sink; echo $SINK >\"$GROUP/cgroup.procs\"
        load -c 8 -d 2s
        kill $SINK; wait $SINK || true; rmdir \"$GROUP\""
    );
    assert_limited(Needs::Group, &script, "target", "control group");
}

#[test]
fn a_target_that_freezes() {
    let script = "sink --freeze 1500ms+700ms; load --rate 500 -d 4s --interval 500ms";
    assert_limited(Needs::Nothing, script, "target", "p90 was up to");
}

#[test]
fn a_target_with_one_queue() {
    let script = "sink --delay constant:3ms --queue; load --rate 1000 -c 50 -d 2s";
    assert_limited(Needs::Nothing, script, "target", "");
}

#[test]
fn a_target_that_refuses() {
    let script = "sink --fail 20%:503; load --rate 500 -d 1s";
    assert_limited(Needs::Nothing, script, "target", "with 503");
}

/// A server that has room for one connection that waits, and accepts none for a part of every second: with a
/// path, it answers requests and says where it listens; without, programs of its own knock at it.
const FULL: &str = r#"
import socket, sys, threading, time

listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(1)

def serve(client):
    with client:
        while client.recv(65536):
            client.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

def knock():
    knocking = []
    while True:
        client = socket.socket()
        client.setblocking(False)
        client.connect_ex(listener.getsockname())
        knocking.append(client)
        time.sleep(0.01)

if len(sys.argv) == 1:
    knock()
with open(sys.argv[1], "w") as said:
    said.write(str(listener.getsockname()[1]) + "\n")
while True:
    # Whoever asks again, a second later, finds another part of the cycle.
    time.sleep(0.35)
    until = time.monotonic() + 0.35
    while time.monotonic() < until:
        listener.settimeout(max(until - time.monotonic(), 0.001))
        try:
            threading.Thread(target=serve, args=listener.accept()[:1], daemon=True).start()
        except TimeoutError:
            pass
"#;

/// Symptom: the counters of the machine made a full queue of any program the target's.
#[test]
fn a_full_queue_of_another_program() {
    let script = format!(
        "FULL='{FULL}'
        sink --delay constant:20ms; python3 -c \"$FULL\" & mine $!
        load --rate 50 -d 2s --disable-keepalive"
    );
    let Some(result) = play(Needs::Delay, &script) else { return };
    let (verdict, machine) = (&result["verdict"], &result["generator"]["machine"]);
    assert_eq!(verdict["limited_by"]["what"], "none", "{verdict}");
    assert_eq!(machine["target_queue"]["drops"], 0, "{machine}");
    assert!(machine["network"]["listen_overflows"].as_u64() >= Some(10), "{machine}");
}

#[test]
fn a_full_queue_of_the_target() {
    let script = format!(
        "FULL='{FULL}'
        mkfifo \"$D/port\"; python3 -c \"$FULL\" \"$D/port\" & mine $!
        read -r PORT <\"$D/port\"; URL=http://127.0.0.1:$PORT/
        load --rate 40 -d 4s --disable-keepalive --threads 1"
    );
    assert_limited(Needs::Delay, &script, "target", "accept queue was full: of the 1 that it holds");
}

/// Commands that have to work for the part of the firewall.
const FIREWALL: Needs = Needs::Network(&["nft add table inet t", "ip link show"]);

#[test]
fn a_network_that_loses() {
    let script = "sink --delay constant:1ms
        nft add table inet t
        nft add chain inet t c '{ type filter hook input priority 0 ; }'
        nft add rule inet t c tcp dport $PORT numgen random mod 100 '<' 5 drop
        load --rate 200 -d 3s";
    assert_limited(FIREWALL, script, "network", "sent again");
}

#[test]
fn a_network_that_is_cut() {
    // The test needs a cut of half a second.
    let script = "sink --delay constant:1ms
        nft add table inet t
        nft add chain inet t c '{ type filter hook input priority 0 ; }'
        load_in_background --rate 100 -d 4s
        nft add rule inet t c tcp dport $PORT drop; sleep 0.5; nft flush chain inet t c
        ended $LOAD";
    assert_limited(FIREWALL, script, "network", "sent again");
}

#[test]
fn a_network_that_is_narrow() {
    let script = "sink --body-size 200k
        tc qdisc add dev lo root tbf rate 16mbit burst 32kb latency 100ms
        load -c 4 -d 3s";
    let needs = Needs::Network(&["tc qdisc add dev lo root tbf rate 8mbit burst 32kb latency 100ms"]);
    assert_limited(needs, script, "network", "");
}
