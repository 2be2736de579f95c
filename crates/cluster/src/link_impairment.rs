//! The combined effect of several impairments on a link.

use plimsoll_core::Nanos;

use crate::fault::Impairment;

/// Largest share of a second for which bytes pass at once where there is a limit of bandwidth.
const BURST_PER_SECOND: u64 = 50;

/// The impairments in force on a link, combined.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LinkImpairment {
    pub(crate) is_cut: bool,
    pub(crate) delay: Nanos,
    pub(crate) spread: Nanos,
    pub(crate) bandwidth: Option<u64>,
    pub(crate) resets: bool,
    pub(crate) loss: f64,
    pub(crate) is_half_open: bool,
}

impl LinkImpairment {
    /// The sum of impairments that hold at the same time: delays add up, of shares and bandwidths the worst
    /// holds.
    pub(crate) fn of(impairments: impl Iterator<Item = Impairment>) -> Self {
        let mut link_impairment = Self::default();
        for impairment in impairments {
            match impairment {
                Impairment::Cut => link_impairment.is_cut = true,
                Impairment::Delay { time, spread } => {
                    link_impairment.delay += time;
                    link_impairment.spread += spread;
                }
                Impairment::Reset => link_impairment.resets = true,
                Impairment::Loss(share) => link_impairment.loss = link_impairment.loss.max(share),
                Impairment::Bandwidth(bytes) => {
                    link_impairment.bandwidth =
                        Some(link_impairment.bandwidth.map_or(bytes, |other| other.min(bytes)));
                }
                Impairment::HalfOpen => link_impairment.is_half_open = true,
            }
        }
        link_impairment
    }

    /// Splits off the bytes that may pass at once. Returns their number, and the time they take.
    pub(crate) fn portion(&self, bytes: usize) -> (usize, Nanos) {
        let Some(bandwidth) = self.bandwidth else { return (bytes, Nanos::ZERO) };
        let portion = bytes.min((bandwidth / BURST_PER_SECOND).max(1) as usize);
        (portion, Nanos((portion as u128 * 1_000_000_000 / u128::from(bandwidth)) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_adds_up() {
        let delay = |millis| Impairment::Delay { time: Nanos::from_millis(millis), spread: Nanos::ZERO };
        assert_eq!(LinkImpairment::of([].into_iter()), LinkImpairment::default());
        let wrong = [
            delay(5),
            delay(7),
            Impairment::Bandwidth(100),
            Impairment::Bandwidth(50),
            Impairment::Loss(0.1),
            Impairment::Cut,
        ];
        let link_impairment = LinkImpairment::of(wrong.into_iter());
        assert_eq!((link_impairment.delay, link_impairment.bandwidth), (Nanos::from_millis(12), Some(50)));
        assert!(link_impairment.is_cut && !link_impairment.resets && link_impairment.loss == 0.1);
    }

    #[test]
    fn a_bandwidth_is_kept_over_portions() {
        let link_impairment = LinkImpairment { bandwidth: Some(1_000), ..LinkImpairment::default() };
        let (mut left, mut time) = (500, Nanos::ZERO);
        while left > 0 {
            let (portion, takes) = link_impairment.portion(left);
            (left, time) = (left - portion, time + takes);
        }
        assert_eq!(time, Nanos::from_millis(500));
        assert_eq!(LinkImpairment::default().portion(500), (500, Nanos::ZERO));
    }
}
