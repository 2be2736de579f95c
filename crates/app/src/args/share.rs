//! Shares as they are written in flags.

/// A share in percent, such as `5%`, as a number: 0.05. `None` if it is not written so, or not finite. The
/// sign is needed: without it, `1` could be all or one in a hundred.
pub(crate) fn parse_percent(text: &str) -> Option<f64> {
    let number = text.trim().strip_suffix('%')?.trim();
    number.parse::<f64>().ok().map(|percent| percent / 100.0).filter(|share| share.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_have_their_sign() {
        let read = ["5%", " 0.5 % ", "0%", "-1%", "250%"].map(parse_percent);
        assert_eq!(read, [0.05, 0.005, 0.0, -0.01, 2.5].map(Some));
        assert_eq!(["5", "", "%", "x%", "inf%", "nan%", "5%%"].map(parse_percent), [None; 7]);
    }
}
