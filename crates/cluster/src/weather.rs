//! What several impairments together do to a link.

use plimsoll_core::Nanos;

use crate::fault::Impairment;

/// Largest share of a second for which bytes pass at once where there is a limit of bandwidth.
const BURST_PER_SECOND: u64 = 50;

/// What holds for whatever passes now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Weather {
    pub(crate) is_cut: bool,
    pub(crate) delay: Nanos,
    pub(crate) spread: Nanos,
    pub(crate) bandwidth: Option<u64>,
    pub(crate) resets: bool,
    pub(crate) loss: f64,
    pub(crate) is_half_open: bool,
}

impl Weather {
    /// That of impairments which hold at the same time: delays add up, of shares and bandwidths the worst
    /// holds.
    pub(crate) fn of(impairments: impl Iterator<Item = Impairment>) -> Self {
        let mut weather = Self::default();
        for impairment in impairments {
            match impairment {
                Impairment::Cut => weather.is_cut = true,
                Impairment::Delay { time, spread } => {
                    weather.delay += time;
                    weather.spread += spread;
                }
                Impairment::Reset => weather.resets = true,
                Impairment::Loss(share) => weather.loss = weather.loss.max(share),
                Impairment::Bandwidth(bytes) => {
                    weather.bandwidth = Some(weather.bandwidth.map_or(bytes, |other| other.min(bytes)));
                }
                Impairment::HalfOpen => weather.is_half_open = true,
            }
        }
        weather
    }

    /// How many bytes pass at once, and how long they take.
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
        assert_eq!(Weather::of([].into_iter()), Weather::default());
        let wrong = [
            delay(5),
            delay(7),
            Impairment::Bandwidth(100),
            Impairment::Bandwidth(50),
            Impairment::Loss(0.1),
            Impairment::Cut,
        ];
        let weather = Weather::of(wrong.into_iter());
        assert_eq!((weather.delay, weather.bandwidth), (Nanos::from_millis(12), Some(50)));
        assert!(weather.is_cut && !weather.resets && weather.loss == 0.1);
    }

    #[test]
    fn a_bandwidth_is_kept_over_portions() {
        let weather = Weather { bandwidth: Some(1_000), ..Weather::default() };
        let (mut left, mut time) = (500, Nanos::ZERO);
        while left > 0 {
            let (portion, takes) = weather.portion(left);
            (left, time) = (left - portion, time + takes);
        }
        assert_eq!(time, Nanos::from_millis(500));
        assert_eq!(Weather::default().portion(500), (500, Nanos::ZERO));
    }
}
