//! Metrics: values of the series of hosts.
//!
//! Each host lies in one region and one environment, as hosts do; the scripts draw them again for every
//! record. Series come in turn ([`crate::series`]), the scripts draw them at random. Values have three
//! decimals, so that they are the same number in text and as a double. Rows have all tags; those of the
//! script have them on 30 % of the records.

use std::fmt::Write as _;

use super::{ENVIRONMENTS, Moment, REGIONS, Steps, between, halves, purpose, random};
use crate::lexicon::Lexicon;
use crate::series::{Order, Replacement};
use crate::spec::{Shape, Spec};
use crate::table::{Cells, Column, Table};
use crate::unique::mix;

/// The seven types of the shape `seed`, and their smallest and largest values in thousandths: shares of use
/// in percent, Mbit/s, °C and W.
const TYPES: [(&str, u32, u32); 7] = [
    ("cpu", 0, 100_000),
    ("memory", 0, 100_000),
    ("disk", 0, 100_000),
    ("network_in", 0, 1_000_000),
    ("network_out", 0, 1_000_000),
    ("temperature", 20_000, 80_000),
    ("power", 100_000, 500_000),
];
pub(crate) const TYPE_NAMES: &[&str] =
    &["cpu", "memory", "disk", "network_in", "network_out", "temperature", "power"];
/// The regions and measurements of the shape `host`.
const HOST_REGIONS: &[&str] = &["us-east", "us-west", "eu-central"];
/// A hyphen and the digits of a generation.
const GENERATION_MAX: usize = 21;

/// Draws metrics.
#[derive(Debug)]
pub(crate) struct Metrics {
    seed: u64,
    steps: Steps,
    shape: Shape,
    hosts: u32,
    /// One for the shape `seed`, one for each measurement of the shape `host`.
    orders: Vec<Order>,
    replacement: Replacement,
    name: String,
}

impl Metrics {
    pub(super) fn new(spec: &Spec, seed: u64) -> (Self, Table) {
        let (hosts, series) = (spec.host_count(), spec.series_count());
        let order_seed = mix(seed ^ mix(purpose::ORDER));
        // Hosts without any series do not count for the churn.
        let used = match spec.shape {
            Shape::Host => series.div_ceil(3),
            _ => series.min(hosts),
        };
        let orders = match spec.shape {
            // Series `s` is that of measurement `s % 3`.
            Shape::Host => (0..3).map(|measurement| (series - measurement).div_ceil(3)).collect(),
            _ => vec![series],
        };
        let orders = orders.into_iter().map(|count| Order::new(count, order_seed)).collect();
        let source = Self {
            seed,
            steps: Steps::new(spec),
            shape: spec.shape,
            hosts,
            orders,
            replacement: Replacement::new(used, spec.churn),
            name: String::new(),
        };
        let table = Table::new(&spec.measurements(), spec.batch_size as usize, columns(spec.shape, hosts));
        (source, table)
    }

    pub(super) fn draw(
        &mut self,
        moment: Moment,
        table: &mut Table,
        mut rename: impl FnMut(usize, u32, &str),
    ) {
        self.steps.fill(moment.now, &mut table.times);
        if self.replacement.is_on() {
            let Cells::Word(lexicon, _) = &table.columns[0].cells else { unreachable!("hosts come first") };
            let name = &mut self.name;
            self.replacement.advance(moment.now, |host, generation| {
                name.clear();
                lexicon.write(host, name);
                write!(name, "-{generation}").expect("a string takes everything");
                rename(0, host, name);
            });
        }
        match self.shape {
            Shape::Host => self.draw_hosts(moment, table),
            Shape::Seed | Shape::Small => self.draw_types(moment, table),
        }
    }

    /// One value of one series for each record.
    fn draw_types(&self, moment: Moment, table: &mut Table) {
        let rows = table.rows();
        let mut walk = self.orders[0].walk(u128::from(moment.index) * rows as u128);
        let mut random = random(self.seed, purpose::METRICS, moment.index);
        let [hosts, types, values, regions, environments] = &mut table.columns[..] else {
            unreachable!("the shape has five columns")
        };
        let (hosts, types, values) = (hosts.words_mut(), types.words_mut(), values.millis_mut());
        let (regions, environments) = (regions.words_mut(), environments.words_mut());
        let cells = hosts.iter_mut().zip(types).zip(values).zip(regions.iter_mut().zip(environments));
        let mut kept = 0;
        let mut is_kept = false;
        for (((host, type_), value), (region, environment)) in cells {
            let series = walk.next();
            *host = series % self.hosts;
            *type_ = series / self.hosts;
            (*region, *environment) = place(*host, REGIONS.len() as u32);
            // Two values of 32 bits for each number of 64.
            let bits = if is_kept {
                kept
            } else {
                let (now, later) = halves(&mut random);
                kept = later;
                now
            };
            is_kept = !is_kept;
            let (_, low, high) = TYPES[*type_ as usize];
            *value = between(bits, low, high);
        }
    }

    /// Three shares of one host for each record, all of one measurement.
    fn draw_hosts(&self, moment: Moment, table: &mut Table) {
        let rows = table.rows();
        let turn = (moment.index % 3) as usize;
        table.measurement = if table.measurements.len() == 3 { turn } else { 0 };
        let mut walk = self.orders[turn].walk(u128::from(moment.index / 3) * rows as u128);
        let mut random = random(self.seed, purpose::METRICS, moment.index);
        let [hosts, regions, environments, shares @ ..] = &mut table.columns[..] else {
            unreachable!("the shape has six columns")
        };
        let places = regions.words_mut().iter_mut().zip(environments.words_mut());
        for (host, (region, environment)) in hosts.words_mut().iter_mut().zip(places) {
            *host = walk.next();
            (*region, *environment) = place(*host, HOST_REGIONS.len() as u32);
        }
        for share in shares {
            for pair in share.millis_mut().chunks_mut(2) {
                let (one, other) = halves(&mut random);
                for (value, bits) in pair.iter_mut().zip([one, other]) {
                    *value = between(bits, 0, 100_000);
                }
            }
        }
    }

    pub(super) fn spare(&self, column: usize) -> usize {
        if column == 0 && self.replacement.is_on() { GENERATION_MAX } else { 0 }
    }
}

/// The region and the environment of a host: neighbours differ, and all combinations come equally often.
#[inline]
fn place(host: u32, regions: u32) -> (u32, u32) {
    (host % regions, host / regions % ENVIRONMENTS.len() as u32)
}

fn columns(shape: Shape, hosts: u32) -> Vec<Column> {
    if shape == Shape::Host {
        let share = |name| Column::field(name, Cells::Milli(Vec::new()));
        return vec![
            Column::tag("host", Lexicon::Numbered { prefix: "server", from: 0, digits: 3, count: hosts }),
            Column::tag("region", Lexicon::Fixed(HOST_REGIONS)),
            Column::tag("env", Lexicon::Fixed(ENVIRONMENTS)),
            share("usage_idle"),
            share("usage_user"),
            share("usage_system"),
        ];
    }
    let mut columns = vec![
        Column::tag("node", Lexicon::Numbered { prefix: "node-", from: 1, digits: 1, count: hosts }),
        Column::tag("metric_name", Lexicon::Fixed(TYPE_NAMES)),
        Column::field("value", Cells::Milli(Vec::new())),
        Column::tag("region", Lexicon::Fixed(REGIONS)),
        Column::tag("environment", Lexicon::Fixed(ENVIRONMENTS)),
    ];
    if shape == Shape::Small {
        columns.iter_mut().skip(3).for_each(|column| column.is_written = false);
    }
    columns
}
