//! Amount and duration of the load.

use plimsoll_document::Field;

use super::Importer;
use crate::amount::{self, Ratio, proportions};
use crate::draft::text;
use crate::source::Object;

/// One scenario's part of the load.
pub(super) struct Share {
    /// The place of its weight.
    pub(super) at: String,
    /// Share of the requests that the scenario has, beside those of the others; not 0.
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
        let mean = self.weigh(shares, rate.is_some());
        if let Some(rate) = rate {
            self.rate(rate, shares);
        }
        self.feed(top, rate.is_some());

        // A number of requests ends the run only if there is no duration; without either, the run takes a
        // minute.
        let timed = match (duration, total) {
            (Some(duration), _) if !duration.is_zero() => duration.nanos(),
            (None, None) => Some(60_000_000_000),
            _ => None,
        };
        if let Some(nanos) = timed {
            self.settings.duration = text(amount::time(nanos));
            if let Some(total) = total.filter(|total| top.has("duration") && *total != 1) {
                let becomes = "it has no effect beside a `duration`, and is left out";
                self.findings.note("/total-requests", &total.to_string(), becomes);
            }
            self.settings.warmup = warmup.unwrap_or_default();
            return;
        }
        if warmup.is_some() {
            self.findings.note("/warm-up-time", "", "it has no effect without a `duration`, and is left out");
        }
        let total = total.unwrap_or(1).max(1);
        match (rate, mean) {
            (Some(rate), _) => self.time_of(total, rate),
            (None, Some(mean)) => self.iterations(total, mean),
            (None, None) => {}
        }
    }

    /// Writes the weights, which are shares of requests: where requests arrive, they are the same here; users
    /// of the closed model take iterations. Gives the mean of requests per iteration.
    fn weigh(&mut self, shares: &[Share], of_requests: bool) -> Option<Ratio> {
        let ratio = |share: &Share, of: u64| Ratio::new(u128::from(share.weight), u128::from(of));
        let iterations: Option<Vec<Ratio>> =
            shares.iter().map(|share| ratio(share, share.requests)).collect();
        let iterations = iterations?;
        let zero = Ratio::new(0, 1)?;
        let sum = iterations.iter().try_fold(zero, |sum, share| sum.plus(*share))?;
        let requests = shares.iter().map(|share| u128::from(share.weight)).sum();
        let mean = Ratio::new(requests, 1)?.divided_by(sum)?;
        if shares.len() > 1 {
            // The program draws each scenario at random.
            self.settings.deal = text("shuffled");
            let written: Option<Vec<Ratio>> = match of_requests {
                true => shares.iter().map(|share| ratio(share, 1)).collect(),
                false => Some(iterations),
            };
            let weights = proportions(&written?)?;
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

    /// The rate, which is that of every client, and counts requests.
    fn rate(&mut self, per_client: Ratio, shares: &[Share]) {
        // If clients have connections to several authorities, the rate is shared by all of them.
        let per_connection = Ratio::new(self.origins(), 1).and_then(|origins| per_client.divided_by(origins));
        let fits = per_client.times_whole(u128::from(self.clients)).is_some();
        let Some(per_connection) = per_connection.filter(|_| fits) else {
            self.findings.problem("/request-per-second", "the rate of all clients is too large");
            return;
        };
        self.settings.rps = text(per_connection.rate());
        if shares.iter().any(|share| share.requests != 1) {
            self.settings.rate_of = text("requests");
        }
    }

    /// Servers that each client has a connection to.
    pub(super) fn origins(&self) -> u128 {
        self.others.len() as u128 + 1
    }

    /// The file has the rate of every client, as `request-per-second` has.
    fn feed(&mut self, top: &mut Object<'_>, is_open: bool) {
        const KEY: &str = "request-per-second-feed-file";
        let Some(file) = top.filled(KEY, &mut self.findings) else { return };
        if !is_open {
            let becomes = "a run without `request-per-second` has no rate that could change: it is left out";
            self.findings.note(top.place(KEY), file, becomes);
            return;
        }
        self.settings.rate_file = text(file);
        let origins = self.origins();
        if origins > 1 {
            let becomes =
                format!("the file has the rate of every connection: a client has {origins} of them");
            self.findings.note(top.place(KEY), file, becomes);
        }
    }

    /// The time in which this many requests are due.
    fn time_of(&mut self, requests: u64, per_client: Ratio) {
        let seconds = per_client
            .times_whole(u128::from(self.clients))
            .and_then(|rate| Ratio::new(u128::from(requests), 1)?.divided_by(rate));
        match seconds.and_then(|seconds| seconds.nanos_up()) {
            Some(nanos) => self.settings.duration = text(amount::time(nanos)),
            None => self.findings.problem("/total-requests", "the run would be too long"),
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
        let all = u64::try_from(iterations.ceil()).unwrap_or(u64::MAX);
        self.settings.iterations = text(all.to_string());
        if all < self.clients {
            let becomes = format!("{all} iterations have work for as many of them only");
            self.findings.note("/clients", &self.clients.to_string(), becomes);
            (self.clients, self.threads) = (all, self.threads.min(all));
            self.settings.connections = text(all.to_string());
            self.settings.threads = text(self.threads.to_string());
        }
    }
}
