//! Agents that are lost, do not begin, or are told to end.

use super::*;

#[test]
fn a_loss_stops_the_others_or_lets_them_go_on() {
    for on_loss in [OnLoss::Abort, OnLoss::Continue] {
        let mut world = World::new(3, 3, FAIR, on_loss);
        world.machines[1].dies = Some(Nanos::from_secs(12));
        world.run();
        world.check("a loss");
        let members = world.coordinator.members();
        assert_eq!(members[1].end, MemberEnd::Lost);
        let known = count_of(&members[1].part);
        assert!(known > 0, "parts had come before its death");
        let whole = Process::planned((0, 1), 6, LOAD);
        assert_eq!(count_of(&members[0].part) == whole, on_loss == OnLoss::Continue);
    }
}

/// Symptom: the others went on to the end beside an agent that had not begun, and a search was over.
#[test]
fn an_agent_that_begins_too_late_is_told_at_once() {
    for on_loss in OnLoss::ALL {
        let mut world = World::new(70, 3, FAIR, on_loss);
        world.machines[1].is_late = true;
        world.run();
        let what = format!("{on_loss:?}");
        world.check(&what);
        assert_eq!(world.coordinator.unbegun().collect::<Vec<_>>(), ["agent-2"], "{what}");
        let (at, _) = world
            .notices
            .iter()
            .find(|(_, notice)| *notice == Notice::Unbegun("agent-2".to_owned()))
            .expect("it is told");
        assert!(EPOCH + *at < world.coordinator.start().expect("others began"), "{what}: told at {at:?}");
        let members = world.coordinator.members();
        let counts: Vec<u64> = members.iter().map(|member| count_of(&member.part)).collect();
        match on_loss {
            OnLoss::Abort => assert_eq!(counts, [0, 0, 0], "{what}"),
            OnLoss::Continue => assert!(counts[0] > 0 && counts[1] == 0 && counts[2] > 0, "{counts:?}"),
            OnLoss::Takeover => assert!(counts[1] == 0 && counts[3] > 0, "{counts:?}"),
        }
    }
}

/// Symptom: an agent that was told to end (systemd, the drain of a node) took its load with it: the
/// coordinator heard nothing for ten seconds, and requests that had been sent were in no account.
#[test]
fn an_agent_that_is_told_to_end_tells_what_it_has_sent() {
    let secs = Nanos::from_secs;
    for on_loss in OnLoss::ALL {
        // Before the claim, while it gets ready, around the start, in the middle, and at the end of the load.
        for (seed, at) in (0..).zip([0, 1, 2, 3, 5, 6, 7, 8, 9, 12, 20, 34, 36, 37, 38]) {
            let mut world = World::new(40 + seed, 3, FAIR, on_loss);
            world.machines[1].leaves = Some(secs(at).max(TICK));
            world.run();
            let what = format!("{on_loss:?}, told to end at {at} s");
            world.check(&what);
            assert!(world.machines[1].dies.is_some(), "{what}: it never ended");
            if !world.has_begun {
                let refused = |agent: &str| world.coordinator.refusals().iter().any(|one| one.agent == agent);
                assert!(
                    refused("agent-2") && !refused("agent-1"),
                    "{what}: {:?}",
                    world.coordinator.refusals()
                );
                continue;
            }
            let members = world.coordinator.members();
            let known: Vec<u64> = members.iter().map(|member| count_of(&member.part)).collect();
            let MemberEnd::Left(_) = &members[1].end else {
                assert!(
                    matches!(members[1].end, MemberEnd::Ended(_)) && at >= 34,
                    "{what}: {:?}",
                    members[1].end
                );
                continue;
            };
            let leaves: Vec<&Nanos> = world
                .notices
                .iter()
                .filter_map(|(when, notice)| {
                    (*notice == Notice::Leaves("agent-2".to_owned())).then_some(when)
                })
                .collect();
            assert_eq!(leaves.len(), 1, "{what}");
            assert!(*leaves[0] <= secs(at) + secs(3), "{what}: told at {:?}", leaves[0]);
            let is_lost = |(_, notice): &(Nanos, Notice)| matches!(notice, Notice::Lost(_) | Notice::Died(_));
            assert!(!world.notices.iter().any(is_lost), "{what}: {:?}", world.notices);
            // Within the last moments of the load a stop changes little.
            let is_whole = known[0] == Process::planned((0, 1), 6, LOAD);
            assert!(at >= 36 || is_whole == (on_loss != OnLoss::Abort), "{what}: {known:?}");
            if on_loss == OnLoss::Takeover && at < 30 {
                let (from, until) = (members[3].span.0, members[1].span.1);
                assert_eq!(until, Some(from), "{what}: its share is another's");
                let taken = (members[3].shards.0.into(), members[3].shards.1.into());
                let expected = Process::planned(taken, 6, LOAD) - Process::planned(taken, 6, from);
                assert_eq!(known[3], expected, "{what}: {known:?}");
            }
        }
    }
}
