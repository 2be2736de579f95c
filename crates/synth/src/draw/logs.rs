//! Logs: lines of services.
//!
//! Levels 30/50/15/4/1 %; failed requests are slower and have a status to match, as measured on the script.
//! Response times are whole milliseconds, as in the guide.

use plimsoll_core::Random;

use super::{ENVIRONMENTS, Moment, REGIONS, Steps, between, halves, percentages, pick, purpose, random};
use crate::lexicon::Lexicon;
use crate::spec::{Shape, Spec};
use crate::table::{Cells, Column, Table};
use crate::unique::Unique;

const LEVELS: &[&str] = &["DEBUG", "INFO", "WARN", "ERROR", "FATAL"];
const LEVEL_WEIGHTS: [u8; 100] = percentages([30, 50, 15, 4, 1]);
/// From this level on something has failed.
const ERROR: u32 = 3;

/// Messages of lines about successes (15), then about failures (8).
const MESSAGES: &[&str] = &[
    "Request processed successfully",
    "User session opened",
    "User session closed",
    "Cache entry found",
    "Cache entry not found, asking the database",
    "Query finished within its budget",
    "Connection taken from the pool",
    "Connection given back to the pool",
    "Background job started",
    "Background job finished",
    "Message published to the queue",
    "Message taken from the queue",
    "Configuration read again",
    "Health check passed",
    "Response compressed and sent",
    "Connection to the database refused",
    "Upstream did not answer in time",
    "Out of memory while handling the request",
    "Authentication of the caller failed",
    "Request body could not be parsed",
    "Transaction rolled back after a deadlock",
    "Retry budget used up",
    "Payment was rejected by its provider",
];
const GOOD_MESSAGES: u32 = 15;

const GOOD_STATUSES: [u64; 7] = [200, 201, 204, 304, 400, 404, 500];
const GOOD_STATUS_WEIGHTS: [u8; 100] = percentages([70, 10, 5, 10, 2, 2, 1]);
const ERROR_STATUSES: [u64; 8] = [500, 502, 503, 504, 400, 401, 403, 404];

/// Draws logs.
#[derive(Debug)]
pub(crate) struct Logs {
    seed: u64,
    steps: Steps,
    services: u32,
    requests: Unique,
}

impl Logs {
    pub(super) fn new(spec: &Spec, seed: u64) -> (Self, Table) {
        let services = spec.service_count();
        let source =
            Self { seed, steps: Steps::new(spec), services, requests: Unique::new(seed, purpose::REQUEST) };
        let lexicon = Lexicon::Numbered { prefix: "service-", from: 1, digits: 1, count: services };
        let mut columns = vec![
            Column::tag("level", Lexicon::Fixed(LEVELS)),
            Column::tag("service", lexicon),
            Column::tag("environment", Lexicon::Fixed(ENVIRONMENTS)),
            Column::tag("region", Lexicon::Fixed(REGIONS)),
            Column::text("message", Lexicon::Fixed(MESSAGES)),
            Column::field("response_time_ms", Cells::Count(5_000, Vec::new())),
            Column::field("status_code", Cells::Count(599, Vec::new())),
            Column::field("request_id", Cells::Id(Vec::new())),
        ];
        if spec.shape == Shape::Small {
            for column in &mut columns {
                column.is_written = ["level", "service", "message"].contains(&column.name);
            }
        }
        let table = Table::new(&spec.measurements(), spec.batch_size as usize, columns);
        (source, table)
    }

    pub(super) fn draw(&mut self, moment: Moment, table: &mut Table) {
        self.steps.fill(moment.now, &mut table.times);
        let first = moment.index.wrapping_mul(table.rows() as u64);
        let mut random = random(self.seed, purpose::LOGS, moment.index);
        let [levels, services, environments, regions, messages, times, statuses, requests] =
            &mut table.columns[..]
        else {
            unreachable!("logs have eight columns")
        };
        for (request, number) in requests.ids_mut().iter_mut().zip(0..) {
            *request = self.requests.id(first.wrapping_add(number));
        }
        let places = environments.words_mut().iter_mut().zip(regions.words_mut());
        for (service, (environment, region)) in services.words_mut().iter_mut().zip(places) {
            let (one, other) = halves(&mut random);
            *service = between(one, 0, self.services - 1);
            // Twelve combinations are one choice.
            let place = between(other, 0, 11);
            (*environment, *region) = (place % 3, place / 3);
        }
        let exchanges = messages.words_mut().iter_mut().zip(times.counts_mut()).zip(statuses.counts_mut());
        for (level, ((message, time), status)) in levels.words_mut().iter_mut().zip(exchanges) {
            (*level, *message, *time, *status) = exchange(&mut random);
        }
    }
}

/// The level, message, response time and status of one line.
#[inline]
fn exchange(random: &mut Random) -> (u32, u32, u64, u64) {
    let (first, second) = halves(random);
    let (third, fourth) = halves(random);
    let level = u32::from(pick(first, &LEVEL_WEIGHTS));
    if level >= ERROR {
        let message = between(second, GOOD_MESSAGES, MESSAGES.len() as u32 - 1);
        (level, message, between(third, 500, 5_000).into(), pick(fourth, &ERROR_STATUSES))
    } else {
        let status = GOOD_STATUSES[usize::from(pick(fourth, &GOOD_STATUS_WEIGHTS))];
        (level, between(second, 0, GOOD_MESSAGES - 1), between(third, 10, 500).into(), status)
    }
}
