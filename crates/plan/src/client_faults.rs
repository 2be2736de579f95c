//! Faults that clients make on purpose: requests that they abort, and answers that they do not wait for.

use plimsoll_core::Nanos;
use plimsoll_document::RawValue;

use crate::resolve::Resolver;
use crate::{ClientFaults, Parts, PlanPatch};

/// Of a million million: shares are drawn as whole numbers.
const WHOLE: f64 = 1e12;

impl Resolver<'_> {
    /// The faults that flags ask for; none without them.
    pub(crate) fn client_faults(&mut self, patch: &PlanPatch) -> Option<Option<ClientFaults>> {
        let abort = self.read(patch.abort_pct.as_ref(), parse_share);
        let at = self.read(patch.abort_at.as_ref(), parse_part);
        let abandon = self.read(patch.abandon_pct.as_ref(), parse_share);
        let after = self.read_duration(patch.abandon_after.as_ref());
        let (abort, at, abandon, after) = (abort?, at?, abandon?, after?);
        let useless = |given: &Option<RawValue>, missing: &str| {
            let given = given.as_ref()?;
            let problem = given.problem(format!("{} has no effect without {missing}", given.by));
            Some(problem.with_hint(format!("say how many with {missing} PERCENT, or leave it out")))
        };
        let alone = [
            (&patch.abort_at, abort.is_none(), "--abort-pct"),
            (&patch.abandon_after, abandon.is_none(), "--abandon-pct"),
        ];
        for (given, is_alone, missing) in alone {
            if let Some(problem) = useless(given, missing).filter(|_| is_alone) {
                return self.fail(problem);
            }
        }
        let abandon_after = match (abandon, after, &patch.abandon_pct) {
            (Some(_), None, Some(given)) => {
                let problem = given.problem(format!("{}: the time is missing", given.by));
                return self.fail(problem.with_hint("say it with --abandon-after TIME, as in 50ms"));
            }
            (_, after, _) => after.unwrap_or(Nanos::MAX),
        };
        let (abort, abandon) = (abort.unwrap_or(0.0), abandon.unwrap_or(0.0));
        if let Some(given) = patch.abandon_pct.as_ref().filter(|_| abort + abandon > 100.0) {
            let problem = given.problem(format!(
                "more than 100% of all requests: {abort} are aborted, and {abandon} given up"
            ));
            return self.fail(problem.with_hint("a request is either aborted or abandoned"));
        }
        let faults = ClientFaults {
            abort: (abort / 100.0 * WHOLE) as u64,
            abort_at: at.unwrap_or(Parts::Either),
            abandon: (abandon / 100.0 * WHOLE) as u64,
            abandon_after,
        };
        Some((faults.abort + faults.abandon > 0).then_some(faults))
    }
}

impl ClientFaults {
    /// Denominator of the shares [`abort`](Self::abort) and [`abandon`](Self::abandon).
    pub const WHOLE: u64 = WHOLE as u64;
}

/// A percentage, with or without its sign.
fn parse_share(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim_end();
    match number.parse::<f64>() {
        Ok(share) if (0.0..=100.0).contains(&share) => Ok(share),
        _ => Err(format!("`{text}` is not a percentage from 0 to 100")),
    }
}

fn parse_part(text: &str) -> Result<Parts, String> {
    match text {
        "request" => Ok(Parts::Request),
        "response" => Ok(Parts::Response),
        "either" => Ok(Parts::Either),
        _ => Err(format!("`{text}` is not one of request, response, either")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percentages() {
        let good = ["0", "10", "0.5%", "100 %"].map(|text| parse_share(text).unwrap());
        assert_eq!(good, [0.0, 10.0, 0.5, 100.0]);
        for wrong in ["", "-1", "101", "ten", "NaN"] {
            assert!(parse_share(wrong).unwrap_err().contains("is not a percentage from 0 to 100"), "{wrong}");
        }
    }
}
