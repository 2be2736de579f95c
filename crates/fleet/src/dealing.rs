//! The shards of a load, dealt to agents by their strength.

/// Strength of an agent's machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strength {
    /// Processors that its process may use.
    pub cores: u32,
    /// Requests per second that one of its threads can make, if that was measured.
    pub thread_per_s: Option<u64>,
}

/// Returns the number of shards of each agent, at least one. A shard is of one thread, and none is larger
/// than a thread of the slowest agent can carry: agents have them in proportion to their processors and,
/// where it is known of all, to the speed of their threads.
pub fn deal_shards(agents: &[Strength]) -> Vec<u32> {
    let speeds: Option<Vec<u64>> = agents.iter().map(|agent| agent.thread_per_s).collect();
    let slowest = speeds.iter().flatten().copied().min().unwrap_or(0);
    let shards = |agent: &Strength| match agent.thread_per_s {
        Some(speed) if speeds.is_some() && slowest > 0 => {
            // Fewer than 2^32 processors, each at most 10,000 times as fast as the slowest.
            (f64::from(agent.cores) * (speed as f64 / slowest as f64).min(10_000.0)).round() as u32
        }
        _ => agent.cores,
    };
    agents.iter().map(|agent| shards(agent).max(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cores: u32, thread_per_s: u64) -> Strength {
        Strength { cores, thread_per_s: Some(thread_per_s).filter(|speed| *speed > 0) }
    }

    #[test]
    fn shards_are_dealt_by_processors_and_by_the_speed_of_threads_where_all_are_calibrated() {
        assert_eq!(deal_shards(&[of(2, 0), of(6, 0)]), [2, 6]);
        assert_eq!(deal_shards(&[of(2, 100_000), of(2, 300_000)]), [2, 6]);
        assert_eq!(deal_shards(&[of(4, 100_000), of(2, 130_000), of(1, 260_000)]), [4, 3, 3]);
        // Of one nothing is known: the number of processors is all that can be compared.
        assert_eq!(deal_shards(&[of(2, 100_000), of(2, 0)]), [2, 2]);
        assert_eq!(deal_shards(&[of(0, 0), of(1, 0)]), [1, 1]);
        assert!(deal_shards(&[]).is_empty());
    }
}
