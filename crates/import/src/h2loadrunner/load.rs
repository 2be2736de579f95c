//! How much load there is, and for how long.

use super::Importer;
use crate::amount::{self, Ratio, proportions};
use crate::draft::text;
use crate::source::Object;
use plimsoll_plan::document::Field;

/// One scenario's part of the load.
pub(super) struct Share {
    /// Where its weight stands.
    pub(super) at: String,
    /// Its share of the requests, beside those of the others; not 0.
    pub(super) weight: u64,
    /// Requests of one iteration, at least 1.
    pub(super) requests: u64,
}

impl Importer<'_> {
    /// Rate, length and warm-up; the weights of the scenarios.
    pub(super) fn load(&mut self, top: &mut Object<'_>, shares: &[Share]) {
        let rate = top.number("request-per-second", &mut self.findings).filter(|rate| !rate.is_zero());
        let duration = top.number("duration", &mut self.findings);
        let total = top.count("total-requests", &mut self.findings);
        let warmup = self.time(top, "warm-up-time", 1);
        let mean = self.weigh(shares);
        if let (Some(rate), Some(mean)) = (rate, mean) {
            self.rate(rate, mean, shares);
        }
        self.feed(top, mean);

        // A number of requests is the end only where there is no time; without either it is a minute.
        let timed = match (duration, total) {
            (Some(duration), _) if !duration.is_zero() => duration.nanos(),
            (None, None) => Some(60_000_000_000),
            _ => None,
        };
        if let Some(nanos) = timed {
            self.settings.duration = text(amount::time(nanos));
            if let Some(total) = total.filter(|_| top.has("duration")) {
                let becomes = "it has no effect beside a `duration`, and is left out";
                self.findings.note("/total-requests", &total.to_string(), becomes);
            }
            self.settings.warmup = warmup.unwrap_or_default();
            return;
        }
        if warmup.is_some() {
            self.findings.note("/warm-up-time", "", "it has no effect without a `duration`, and is left out");
        }
        if let Some(mean) = mean {
            self.iterations(total.unwrap_or(1).max(1), mean);
        }
    }

    /// Turns shares of requests into shares of iterations. Gives the mean of requests per iteration.
    fn weigh(&mut self, shares: &[Share]) -> Option<Ratio> {
        let iterations: Option<Vec<Ratio>> = shares
            .iter()
            .map(|share| Ratio::new(u128::from(share.weight), u128::from(share.requests)))
            .collect();
        let iterations = iterations?;
        let zero = Ratio::new(0, 1)?;
        let sum = iterations.iter().try_fold(zero, |sum, share| sum.plus(*share))?;
        let requests = shares.iter().map(|share| u128::from(share.weight)).sum();
        let mean = Ratio::new(requests, 1)?.divided_by(sum)?;
        if shares.len() > 1 {
            let weights = proportions(&iterations)?;
            let largest = weights.iter().copied().max().unwrap_or(1);
            // Weights are of 32 bits: beyond, they are made smaller, and rounded.
            let shrink = largest.div_ceil(u128::from(u32::MAX)).max(1);
            for (index, weight) in weights.iter().enumerate() {
                if shrink > 1 {
                    self.findings.note(&shares[index].at, "", "the share of iterations is rounded");
                }
                if let Some(Field::Given(scenario, _)) = self.document.scenarios.get_mut(index) {
                    scenario.weight = text((weight / shrink).max(1).to_string());
                }
            }
        }
        Some(mean)
    }

    /// The rate of the run in iterations: rate per client × clients / requests per iteration.
    fn rate(&mut self, per_client: Ratio, mean: Ratio, shares: &[Share]) {
        let at = "/request-per-second";
        let total = Ratio::new(u128::from(self.clients), 1).and_then(|clients| per_client.times(clients));
        let Some((requests, iterations)) = total.and_then(|all| Some((all, all.divided_by(mean)?))) else {
            self.findings.problem(at, "the rate of all clients is too large");
            return;
        };
        self.settings.rate = text(iterations.rate());
        let requests_of = |share: &Share| share.requests;
        if shares.iter().map(requests_of).min() != shares.iter().map(requests_of).max() {
            let becomes = format!(
                "{requests} requests per second of all clients are {iterations} iterations per second of \
                 {mean} requests in the mean: the rate of requests is right in the mean, not at each instant"
            );
            self.findings.note(at, &per_client.to_string(), becomes);
        }
    }

    /// The file has the rate of all clients here.
    fn feed(&mut self, top: &Object<'_>, mean: Option<Ratio>) {
        let key = "request-per-second-feed-file";
        let Some(file) = top.members().get(key).and_then(|file| file.as_str()).filter(|f| !f.is_empty())
        else {
            return;
        };
        let clients = Ratio::new(u128::from(self.clients), 1);
        let factor = clients.zip(mean).and_then(|(clients, mean)| clients.divided_by(mean));
        if factor != Ratio::new(1, 1) {
            let factor = factor.map(|factor| factor.to_string()).unwrap_or_default();
            let becomes = format!(
                "the file has iterations per second of the whole run now: write {factor} where it has 1"
            );
            self.findings.note(top.place(key), file, becomes);
        }
    }

    fn iterations(&mut self, requests: u64, mean: Ratio) {
        let Some(iterations) = Ratio::new(u128::from(requests), 1).and_then(|all| all.divided_by(mean))
        else {
            return;
        };
        if !iterations.is_whole() {
            let becomes = format!(
                "an iteration has {mean} requests in the mean: {} iterations are at least as many requests",
                iterations.ceil()
            );
            self.findings.note("/total-requests", &requests.to_string(), becomes);
        }
        self.settings.iterations = text(iterations.ceil().to_string());
    }
}
