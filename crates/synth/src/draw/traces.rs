//! Traces: spans, which form trees.
//!
//! A trace has ten spans, and each but its first has a parent with the probability [`Spec::parents`]; the
//! script's 30 % are 27 % of all spans. Its parents are spans of its trace that exist, begin earlier and end
//! no sooner, which the script does not see to. For that, the spans of a trace are put in the order of their
//! length, which changes nothing of how long spans are: each may then have any of those before it as its
//! parent.

use plimsoll_core::Random;

use super::{Moment, REGIONS, between, halves, percentages, pick, purpose, random};
use crate::lexicon::Lexicon;
use crate::spec::{Shape, Spec};
use crate::table::{Cells, Column, Table};
use crate::unique::Unique;

/// The services, with the operations that they are asked for by each of [`METHODS`].
const SERVICES: [(&str, [&str; 4]); 20] = [
    ("api-gateway", ["GET /orders", "POST /orders", "PUT /orders", "DELETE /orders"]),
    ("auth-service", ["check_token", "log_in", "renew_token", "log_out"]),
    ("user-service", ["read_user", "create_user", "update_user", "delete_user"]),
    ("product-service", ["find_products", "create_product", "update_product", "delete_product"]),
    ("order-service", ["read_order", "place_order", "change_order", "cancel_order"]),
    ("payment-service", ["read_payment", "charge_card", "confirm_payment", "refund_payment"]),
    ("inventory-service", ["count_stock", "reserve_stock", "update_stock", "release_stock"]),
    (
        "notification-service",
        ["list_notifications", "send_notification", "mark_as_read", "drop_notification"],
    ),
    ("email-service", ["read_template", "send_email", "update_template", "unsubscribe"]),
    ("database-service", ["select", "insert", "update", "delete"]),
    ("cache-service", ["cache_get", "cache_add", "cache_set", "cache_delete"]),
    ("queue-service", ["receive", "publish", "acknowledge", "purge"]),
    ("search-service", ["search", "index_document", "update_index", "drop_index"]),
    ("recommendation-service", ["recommend", "train", "rate", "forget"]),
    ("shipping-service", ["track_parcel", "create_shipment", "change_address", "cancel_shipment"]),
    ("billing-service", ["read_invoice", "create_invoice", "send_invoice", "void_invoice"]),
    ("analytics-service", ["read_report", "record_event", "update_report", "delete_report"]),
    ("review-service", ["list_reviews", "write_review", "edit_review", "remove_review"]),
    ("cart-service", ["show_cart", "add_item", "change_quantity", "remove_item"]),
    ("session-service", ["read_session", "open_session", "extend_session", "close_session"]),
];
const SERVICE_NAMES: [&str; 20] = {
    let mut names = [""; 20];
    let mut at = 0;
    while at < names.len() {
        names[at] = SERVICES[at].0;
        at += 1;
    }
    names
};
/// The gateway, and the services that only store: places in [`SERVICES`].
const GATEWAY: u32 = 0;
const STORES: [u32; 2] = [9, 10];

/// No method, for spans that are not HTTP, then those of the others.
const METHODS: &[&str] = &["", "GET", "POST", "PUT", "DELETE"];
const KINDS: &[&str] = &["server", "client", "internal", "producer", "consumer"];
const KIND_WEIGHTS: [u8; 100] = percentages([40, 30, 20, 5, 5]);
/// Kinds below this are HTTP.
const INTERNAL: u32 = 2;
const ENVIRONMENTS: &[&str] = &["production", "staging", "development"];
const GOOD_STATUSES: [u64; 3] = [200, 201, 204];
const ERROR_STATUSES: [u64; 8] = [400, 401, 403, 404, 500, 502, 503, 504];

/// The longest a span can be, in nanoseconds: 500 ms, three times that if it failed.
const LONGEST: u64 = 1_500_000_000;
const MILLI: u64 = 1_000_000;

/// Draws spans.
#[derive(Debug)]
pub(crate) struct Traces {
    seed: u64,
    unit: u64,
    step: u64,
    services: u32,
    spans_per_trace: usize,
    /// The share of spans with a parent, of 2^32.
    parents: u64,
    spans: Unique,
    traces: [Unique; 2],
    /// The spans of one trace before they are put in order.
    trace: Vec<Span>,
    starts: Vec<u64>,
}

/// Values of a span that do not depend on its place in the trace.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    duration: u64,
    service: u32,
    operation: u32,
    kind: u32,
    method: u32,
    status: u64,
    is_error: bool,
}

impl Traces {
    pub(super) fn new(spec: &Spec, seed: u64) -> (Self, Table) {
        let services = spec.service_count();
        let spans_per_trace = usize::from(spec.spans_per_trace);
        let source = Self {
            seed,
            unit: spec.time_unit.nanos(),
            step: spec.step(),
            services,
            spans_per_trace,
            parents: (spec.parents * (1_u64 << 32) as f64) as u64,
            spans: Unique::new(seed, purpose::SPAN),
            traces: [Unique::new(seed, purpose::TRACE), Unique::new(seed, purpose::TRACE_REST)],
            trace: Vec::with_capacity(spans_per_trace),
            starts: Vec::with_capacity(spans_per_trace),
        };
        let table = Table::new(&spec.measurements(), spec.batch_size as usize, columns(spec.shape, services));
        (source, table)
    }

    pub(super) fn draw(&mut self, moment: Moment, table: &mut Table) {
        let rows = table.rows();
        let mut random = random(self.seed, purpose::TRACES, moment.index);
        let first_trace = moment.index.wrapping_mul(rows.div_ceil(self.spans_per_trace) as u64);
        let first_span = moment.index.wrapping_mul(rows as u64);
        for (number, at) in (0..).zip((0..rows).step_by(self.spans_per_trace)) {
            let count = self.spans_per_trace.min(rows - at);
            self.draw_spans(count, &mut random);
            let begin = moment.now + at as u64 * self.step;
            let id = self.traces.map(|ids| ids.id(first_trace.wrapping_add(number)));
            self.place_spans(&mut random, table, at, begin, first_span);
            self.write_spans(table, at, id, halves(&mut random));
        }
    }

    /// Draws the own properties of a trace's spans, and puts the longest first.
    fn draw_spans(&mut self, count: usize, random: &mut Random) {
        self.trace.clear();
        for _ in 0..count {
            let span = draw_span(self.services, random);
            // Insertion: a trace has few spans.
            let at =
                self.trace.iter().rposition(|other| other.duration >= span.duration).map_or(0, |at| at + 1);
            self.trace.insert(at, span);
        }
    }

    /// Draws parents and beginnings. Spans begin whole units after each other, so that rounding to the unit
    /// does not change the nesting; in seconds, which are too coarse for spans, they begin together.
    fn place_spans(
        &mut self,
        random: &mut Random,
        table: &mut Table,
        at: usize,
        begin: u64,
        first_span: u64,
    ) {
        let grain = self.unit.min(MILLI);
        let begin = begin / grain * grain;
        let spans = self.spans;
        let ids = |row: usize| spans.id(first_span.wrapping_add(row as u64));
        self.starts.clear();
        for row in 0..self.trace.len() {
            let (for_parent, for_start) = halves(random);
            let (which, _) = halves(random);
            let mut parent = None;
            if row > 0 && u64::from(for_parent) < self.parents {
                parent = self.parent(row, which, grain);
            }
            let (from, room) = match parent {
                // A child begins a grain after its parent, at least.
                Some(parent) => {
                    let room = self.trace[parent].duration - self.trace[row].duration;
                    (self.starts[parent] + grain, room - grain)
                }
                None => (begin, self.trace[0].duration - self.trace[row].duration),
            };
            let grains = (u64::from(for_start) * (room / grain + 1)) >> 32;
            self.starts.push(from + grains * grain);
            table.columns[1].ids_mut()[at + row] = ids(at + row);
            table.columns[2].ids_mut()[at + row] = parent.map_or(0, |parent| ids(at + parent));
            table.times[at + row] = if self.unit > MILLI { begin } else { self.starts[row] } / self.unit;
        }
    }

    /// One of the spans before `row` that are long enough to have it within them. If none is, because even
    /// the longest is hardly longer, the span is made shorter by less than a grain.
    fn parent(&mut self, row: usize, which: u32, grain: u64) -> Option<usize> {
        let limit = self.trace[row].duration + grain;
        let candidates =
            self.trace[..row].iter().rposition(|span| span.duration >= limit).map_or(0, |at| at + 1);
        if candidates > 0 {
            let parent = between(which, 0, candidates as u32 - 1) as usize;
            // A parent that was made shorter itself may be too short; the longest is not.
            return Some(if self.trace[parent].duration >= limit { parent } else { 0 });
        }
        let duration = self.trace[0].duration.saturating_sub(grain);
        // A span must not become shorter than the shortest of its service; then it has no parent.
        if duration < shortest(self.trace[row].service) {
            return None;
        }
        self.trace[row].duration = duration;
        Some(0)
    }

    /// Writes down the spans from row `at` on. A whole trace is in one environment and region.
    fn write_spans(&self, table: &mut Table, at: usize, id: [u64; 2], place: (u32, u32)) {
        let [
            traces,
            _,
            _,
            services,
            operations,
            kinds,
            durations,
            statuses,
            methods,
            environments,
            regions,
            errors,
        ] = &mut table.columns[..]
        else {
            unreachable!("spans have twelve columns")
        };
        let rows = at..at + self.trace.len();
        traces.trace_ids_mut()[rows.clone()].fill(id);
        environments.words_mut()[rows.clone()].fill(between(place.0, 0, ENVIRONMENTS.len() as u32 - 1));
        regions.words_mut()[rows.clone()].fill(between(place.1, 0, REGIONS.len() as u32 - 1));
        for (row, span) in rows.zip(&self.trace) {
            services.words_mut()[row] = span.service;
            operations.words_mut()[row] = span.operation;
            kinds.words_mut()[row] = span.kind;
            durations.counts_mut()[row] = span.duration;
            statuses.counts_mut()[row] = span.status;
            methods.words_mut()[row] = span.method;
            errors.flags_mut()[row] = span.is_error;
        }
    }
}

/// Draws the own properties of a span.
fn draw_span(services: u32, random: &mut Random) -> Span {
    let (for_service, for_operation) = halves(random);
    let (for_kind, for_error) = halves(random);
    let (for_status, for_factor) = halves(random);
    let service = between(for_service, 0, services - 1);
    let operation = between(for_operation, 0, 3);
    let kind = u32::from(pick(for_kind, &KIND_WEIGHTS));
    let is_http = kind < INTERNAL;
    let is_error = between(for_error, 0, 99) < if is_http { 5 } else { 2 };
    let mut duration = random_duration(service, random);
    if is_http && is_error {
        // 1.5 to 3 times as long.
        let extra = u128::from(duration) * 3 / 2 * u128::from(for_factor);
        duration += duration / 2 + (extra >> 32) as u64;
    }
    let status = match (is_http, is_error) {
        (false, _) => 0,
        (true, false) => pick(for_status, &GOOD_STATUSES),
        (true, true) => pick(for_status, &ERROR_STATUSES),
    };
    let method = if is_http { operation + 1 } else { 0 };
    Span { duration, service, operation: service * 4 + operation, kind, method, status, is_error }
}

/// The length of a span without an error, in nanoseconds: 1 to 50 ms for stores, 10 to 500 for the gateway,
/// else 5 to 200.
fn random_duration(service: u32, random: &mut Random) -> u64 {
    let longest = match service % SERVICES.len() as u32 {
        GATEWAY => 500,
        number if STORES.contains(&number) => 50,
        _ => 200,
    };
    let shortest = shortest(service);
    shortest + random.below(longest * MILLI - shortest + 1)
}

fn shortest(service: u32) -> u64 {
    match service % SERVICES.len() as u32 {
        GATEWAY => 10 * MILLI,
        number if STORES.contains(&number) => MILLI,
        _ => 5 * MILLI,
    }
}

fn columns(shape: Shape, services: u32) -> Vec<Column> {
    let operations = (0..services).flat_map(|service| SERVICES[service as usize % SERVICES.len()].1);
    let mut columns = vec![
        Column::field("trace_id", Cells::TraceId(Vec::new())),
        Column::field("span_id", Cells::Id(Vec::new())),
        Column::field("parent_span_id", Cells::Id(Vec::new())),
        Column::tag("service_name", Lexicon::Repeated { names: &SERVICE_NAMES, count: services }),
        Column::tag("operation_name", Lexicon::Made(operations.map(str::to_owned).collect())),
        Column::tag("span_kind", Lexicon::Fixed(KINDS)),
        Column::field("duration_ns", Cells::Count(LONGEST, Vec::new())),
        Column::field("status_code", Cells::Count(599, Vec::new())),
        Column::text("http_method", Lexicon::Fixed(METHODS)),
        Column::tag("environment", Lexicon::Fixed(ENVIRONMENTS)),
        Column::tag("region", Lexicon::Fixed(REGIONS)),
        Column::field("error", Cells::Flag(Vec::new())),
    ];
    if shape == Shape::Small {
        let hidden = ["span_kind", "status_code", "http_method", "environment", "region"];
        columns.iter_mut().for_each(|column| column.is_written = !hidden.contains(&column.name));
    }
    columns
}
