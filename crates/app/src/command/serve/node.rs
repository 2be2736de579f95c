//! `plimsoll target crud-node`: one node of the reference cluster until it is stopped.

use std::io::BufRead as _;
use std::sync::mpsc::channel;

use plimsoll_document::Problem;
use plimsoll_replica::{Bound, NodeStatus, Peer, ReplicaError, ReplicaOptions};
use plimsoll_system::clock;

use super::{ServerMessages, Watch};
use crate::args::server::replica::{CrudNodeSpec, parse_peer, twice};
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::wording::percent;

pub(crate) fn command(spec: CrudNodeSpec) -> Result<Exit, Failure> {
    let CrudNodeSpec { options, mut peers, with_parent, temporary, duration, quiet } = spec;
    super::raise_descriptors();
    let voice = ServerMessages { name: "target crud-node", quiet };
    let (id, data, faults) = (options.id, options.data.clone(), faults(&options));
    let bound = Bound::new(options).map_err(failure)?;
    if bound.torn() > 0 {
        voice.say(format!(
            "{} bytes at the end of the log were never acknowledged, and are cut off",
            bound.torn()
        ));
    }
    voice.say(format!("raft on {}", bound.raft()));
    voice.say(format!("listening on http://{}", bound.http()));
    if let Some(faults) = faults {
        voice.say(format!("faults: {faults}"));
    }
    if with_parent && !hear_of_peers(id, &mut peers)? {
        return Ok(Exit::Success);
    }
    // A slow reader of stderr must not hold up the node.
    let (tell, told) = channel();
    let heard = move |status: &NodeStatus| {
        let _ = tell.send((status.leader, status.term));
    };
    let replica = bound.start(&peers, heard).map_err(failure)?;
    let stopper = replica.stopper();
    let watch = Watch::new({
        let stopper = stopper.clone();
        move || stopper.stop()
    })?;
    if with_parent {
        let stopper = stopper.clone();
        std::thread::spawn(move || {
            // The end of stdin means the end of the parent, whatever its reason.
            drop(std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink()));
            stopper.stop();
        });
    }
    if let Some(duration) = duration {
        let end = clock::monotonic() + duration;
        std::thread::spawn(move || {
            clock::sleep_until(end);
            stopper.stop();
        });
    }
    let teller = std::thread::spawn(move || {
        for (leader, term) in told {
            voice.say(match leader {
                Some(leader) => format!("node {leader} leads, term {term}"),
                None => "no leader".to_owned(),
            });
        }
    });
    let ended = replica.wait();
    watch.end();
    // It ends with the node, which has ended.
    drop(teller.join());
    if temporary {
        // The system cleans up files that cannot be removed. The folder around them goes with the last node.
        drop(std::fs::remove_dir_all(&data));
        drop(data.parent().map(std::fs::remove_dir));
    }
    ended.map_err(failure).map(|()| Exit::Success)
}

/// Reads the addresses of the other nodes; returns `false` if the node is not to start at all.
fn hear_of_peers(id: u64, peers: &mut Vec<Peer>) -> Result<bool, Failure> {
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { return Ok(false) };
        if line == "start" {
            return match twice(id, peers).pop() {
                None => Ok(true),
                Some(problem) => Err(Failure::usage(Problem::new(problem))),
            };
        }
        let peer =
            line.strip_prefix("peer ").ok_or_else(|| format!("`{line}` is neither `peer …` nor `start`"));
        let peer = peer.and_then(parse_peer);
        peers.push(peer.map_err(|why| Failure::usage(Problem::new(format!("stdin: {why}"))))?);
    }
    Ok(false)
}

fn failure(error: ReplicaError) -> Failure {
    let problem = Problem::new(error.to_string());
    Failure::environment(match error {
        ReplicaError::Listen(..) => problem.with_hint(
            "take another address: --listen, or --raft for the other nodes; port 0 takes a free one",
        ),
        ReplicaError::Stopped(_) => problem
            .with_hint("its acknowledged writes are in its folder: start it again when the cause is gone"),
        ReplicaError::OtherNode(..) | ReplicaError::InUse(_) => {
            problem.with_hint("take another folder: --data")
        }
        ReplicaError::Corrupt { .. } => problem.with_hint(
            "its acknowledged writes cannot be read: remove the folder, and the other nodes will fill it \
             again",
        ),
        _ => problem,
    })
}

/// The lies in force, in words.
fn faults(options: &ReplicaOptions) -> Option<String> {
    let lie = options.lie.filter(|lie| lie.share > 0.0)?;
    Some(format!("{} {}, seed {}", percent(lie.share), super::cluster::of(lie.kind), options.seed))
}
