//! Lengths in tokens, which may differ from request to request.

use plimsoll_core::Random;

/// Tokens at most.
const LONGEST: u64 = 1_000_000;

/// A length in tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Length {
    /// Always the same.
    Fixed(u64),
    /// Normal, cut off below one token.
    Normal {
        /// The mean.
        mean: f64,
        /// The standard deviation.
        stdev: f64,
    },
    /// Each of these equally often.
    Uniform {
        /// The smallest.
        low: u64,
        /// The largest.
        high: u64,
    },
}

impl Length {
    /// Parses `512`, `normal:512,100` or `uniform:100,900`.
    ///
    /// # Errors
    /// A sentence that names the mistake and the accepted forms.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a length: write 512, normal:512,100 or uniform:100,900");
        let whole = |text: &str| {
            let number = text.trim().parse::<u64>().ok();
            number.filter(|number| (1..=LONGEST).contains(number)).ok_or_else(wrong)
        };
        let Some((law, numbers)) = text.split_once(':') else { return whole(text).map(Self::Fixed) };
        let (first, second) = numbers.split_once(',').ok_or_else(wrong)?;
        match law.trim() {
            "normal" => {
                let stdev = second.trim().parse::<f64>().ok();
                let stdev = stdev.filter(|stdev| stdev.is_finite() && *stdev >= 0.0).ok_or_else(wrong)?;
                Ok(Self::Normal { mean: whole(first)? as f64, stdev })
            }
            "uniform" => {
                let (low, high) = (whole(first)?, whole(second)?);
                if low > high { Err(wrong()) } else { Ok(Self::Uniform { low, high }) }
            }
            _ => Err(wrong()),
        }
    }

    /// Draws a length, at least 1.
    pub(crate) fn draw(self, random: &mut Random) -> u64 {
        match self {
            Self::Fixed(tokens) => tokens,
            // A float-to-integer `as` saturates.
            Self::Normal { mean, stdev } => {
                ((mean + stdev * random.normal()).round() as u64).clamp(1, LONGEST)
            }
            Self::Uniform { low, high } => low + (random.unit() * (high - low + 1) as f64) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_parsed_and_drawn() {
        let draws = |text: &str| -> Vec<u64> {
            let (length, mut random) = (Length::parse(text).unwrap(), Random::new(1, 0));
            (0..20_000).map(|_| length.draw(&mut random)).collect()
        };
        assert!(draws("7").iter().all(|tokens| *tokens == 7));
        let uniform = draws("uniform:3,5");
        assert!([3, 4, 5].iter().all(|tokens| uniform.contains(tokens)));
        assert!(uniform.iter().all(|tokens| (3..=5).contains(tokens)));
        let normal = draws("normal:500,50");
        let mean = normal.iter().sum::<u64>() as f64 / normal.len() as f64;
        // Ten standard errors.
        assert!((mean - 500.0).abs() < 10.0 * 50.0 / 141.0, "{mean}");
        assert!(draws("normal:1,9").iter().all(|tokens| *tokens >= 1));
        for bad in ["", "0", "x", "normal:5", "normal:0,1", "normal:5,-1", "uniform:5,3", "zipf:1,2", "1,2"] {
            assert!(Length::parse(bad).unwrap_err().contains("write 512"), "{bad}");
        }
    }
}
