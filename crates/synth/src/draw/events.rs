//! Events: those of machines, business, security and applications.
//!
//! 36 types of four categories, equally often. Types that failed, were denied or exceeded are errors or
//! critical and no success; those that completed, succeeded or recovered are information; those that started
//! or opened are information or warnings; of the others nine of ten are a success, and all severities are
//! equally frequent.

use super::{ENVIRONMENTS, Moment, REGIONS, Steps, between, halves, pick, purpose, random};
use crate::lexicon::Lexicon;
use crate::spec::{Shape, Spec};
use crate::table::{Cells, Column, Table};

const CATEGORIES: &[&str] = &["infrastructure", "business", "security", "application"];
/// The types of each category, with the shortest and longest that one takes, in milliseconds.
const TYPES: [(&str, u32, u32); 36] = [
    ("server_started", 500, 30_000),
    ("server_stopped", 100, 10_000),
    ("autoscale_triggered", 1_000, 60_000),
    ("disk_quota_exceeded", 0, 100),
    ("backup_completed", 10_000, 600_000),
    ("backup_failed", 1_000, 300_000),
    ("node_recovered", 1_000, 120_000),
    ("network_partition_opened", 100, 5_000),
    ("certificate_renewed", 100, 3_000),
    ("order_placed", 50, 2_000),
    ("order_completed", 100, 5_000),
    ("order_cancelled", 50, 1_000),
    ("payment_success", 200, 3_000),
    ("payment_failed", 200, 10_000),
    ("subscription_upgrade", 100, 2_000),
    ("cart_abandoned", 60_000, 1_800_000),
    ("refund_issued", 200, 5_000),
    ("campaign_started", 100, 1_000),
    ("login_success", 20, 500),
    ("login_failed", 20, 500),
    ("access_denied", 1, 50),
    ("password_changed", 50, 1_000),
    ("token_revoked", 1, 100),
    ("rate_limit_exceeded", 1, 20),
    ("firewall_rule_changed", 50, 2_000),
    ("audit_completed", 5_000, 300_000),
    ("session_opened", 10, 200),
    ("deployment_started", 1_000, 10_000),
    ("deployment_completed", 30_000, 900_000),
    ("deployment_failed", 5_000, 600_000),
    ("cache_cleared", 10, 1_000),
    ("feature_flag_changed", 10, 200),
    ("job_completed", 1_000, 600_000),
    ("job_failed", 100, 600_000),
    ("circuit_breaker_opened", 1, 100),
    ("service_recovered", 500, 60_000),
];
const TYPES_OF_A_CATEGORY: u32 = 9;
const TYPE_NAMES: [&str; 36] = {
    let mut names = [""; 36];
    let mut at = 0;
    while at < names.len() {
        names[at] = TYPES[at].0;
        at += 1;
    }
    names
};

const SEVERITIES: &[&str] = &["info", "warning", "error", "critical"];
const SOURCES: &[&str] = &[
    "api-gateway",
    "auth-service",
    "order-service",
    "payment-service",
    "inventory-service",
    "notification-service",
    "scheduler",
    "deployer",
    "monitor",
];
/// Monthly prices of the plans, in thousandths.
const PRICES: [u32; 4] = [9_990, 29_990, 99_990, 299_990];
/// Texts of metadata that each type has.
const VARIANTS: u32 = 8;

/// Outcome of the events of a type.
#[derive(Clone, Copy, Debug, PartialEq)]
enum EventOutcome {
    Failed,
    Ended,
    Began,
    Any,
}

/// Amount that events of a type have.
#[derive(Clone, Copy, Debug)]
enum Amount {
    None,
    /// Whole hundredths from one to the other.
    Cents(u32, u32),
    Price,
}

/// Draws events.
#[derive(Debug)]
pub(crate) struct Events {
    seed: u64,
    steps: Steps,
    courses: [EventOutcome; 36],
    amounts: [Amount; 36],
}

impl Events {
    pub(super) fn new(spec: &Spec, seed: u64) -> (Self, Table) {
        let source = Self {
            seed,
            steps: Steps::new(spec),
            courses: TYPE_NAMES.map(course),
            amounts: TYPE_NAMES.map(amount),
        };
        let mut columns = columns();
        if spec.shape == Shape::Small {
            let shown = ["event_type", "severity", "source", "success"];
            columns.iter_mut().for_each(|column| column.is_written = shown.contains(&column.name));
        }
        let table = Table::new(&spec.measurements(), spec.batch_size as usize, columns);
        (source, table)
    }

    pub(super) fn draw(&mut self, moment: Moment, table: &mut Table) {
        self.steps.fill(moment.now, &mut table.times);
        let mut random = random(self.seed, purpose::EVENTS, moment.index);
        let rows = table.rows();
        let [
            types,
            categories,
            severities,
            sources,
            environments,
            users,
            resources,
            metadata,
            durations,
            amounts,
            successes,
        ] = &mut table.columns[..]
        else {
            unreachable!("events have eleven columns")
        };
        for row in 0..rows {
            let (for_type, for_source) = halves(&mut random);
            let (for_severity, for_success) = halves(&mut random);
            let (for_user, for_resource) = halves(&mut random);
            let (for_duration, for_amount) = halves(&mut random);
            let (for_metadata, for_environment) = halves(&mut random);
            let type_ = between(for_type, 0, TYPES.len() as u32 - 1);
            let at = type_ as usize;
            let (severity, success) = ending(self.courses[at], for_severity, for_success);
            types.words_mut()[row] = type_;
            categories.words_mut()[row] = type_ / TYPES_OF_A_CATEGORY;
            severities.words_mut()[row] = severity;
            successes.flags_mut()[row] = success;
            sources.words_mut()[row] = between(for_source, 0, SOURCES.len() as u32 - 1);
            environments.words_mut()[row] = between(for_environment, 0, ENVIRONMENTS.len() as u32 - 1);
            users.words_mut()[row] = between(for_user, 0, 8_999);
            resources.words_mut()[row] = between(for_resource, 0, 999);
            metadata.words_mut()[row] = type_ * VARIANTS + between(for_metadata, 0, VARIANTS - 1);
            let (_, shortest, longest) = TYPES[at];
            durations.counts_mut()[row] = between(for_duration, shortest, longest).into();
            amounts.millis_mut()[row] = match self.amounts[at] {
                Amount::None => 0,
                Amount::Cents(low, high) => between(for_amount, low, high) * 10,
                Amount::Price => pick(for_amount, &PRICES),
            };
        }
    }
}

/// The severity and success of an event.
#[inline]
fn ending(course: EventOutcome, for_severity: u32, for_success: u32) -> (u32, bool) {
    match course {
        EventOutcome::Failed => (between(for_severity, 2, 3), false),
        EventOutcome::Ended => (0, true),
        EventOutcome::Began => (between(for_severity, 0, 1), true),
        EventOutcome::Any => (between(for_severity, 0, 3), between(for_success, 0, 9) != 0),
    }
}

fn course(name: &str) -> EventOutcome {
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if has(&["failed", "denied", "exceeded"]) {
        EventOutcome::Failed
    } else if has(&["completed", "success", "recovered"]) {
        EventOutcome::Ended
    } else if has(&["started", "opened"]) {
        EventOutcome::Began
    } else {
        EventOutcome::Any
    }
}

fn amount(name: &str) -> Amount {
    if name.starts_with("payment") {
        Amount::Cents(1_000, 50_000)
    } else if name.starts_with("order") {
        Amount::Cents(2_000, 100_000)
    } else if name.ends_with("upgrade") {
        Amount::Price
    } else {
        Amount::None
    }
}

fn columns() -> Vec<Column> {
    vec![
        Column::tag("event_type", Lexicon::Fixed(&TYPE_NAMES)),
        Column::tag("event_category", Lexicon::Fixed(CATEGORIES)),
        Column::tag("severity", Lexicon::Fixed(SEVERITIES)),
        Column::tag("source", Lexicon::Fixed(SOURCES)),
        Column::tag("environment", Lexicon::Fixed(ENVIRONMENTS)),
        Column::text("user_id", Lexicon::Numbered { prefix: "user-", from: 1_000, digits: 4, count: 9_000 }),
        Column::text(
            "resource_id",
            Lexicon::Numbered { prefix: "resource-", from: 1, digits: 1, count: 1_000 },
        ),
        Column::text("metadata", Lexicon::Made(metadata())),
        Column::field("duration_ms", Cells::Count(u64::from(u32::MAX), Vec::new())),
        Column::field("amount", Cells::Milli(Vec::new())),
        Column::field("success", Cells::Flag(Vec::new())),
    ]
}

/// Returns the further details of the events of each type, as JSON.
fn metadata() -> Vec<String> {
    let variants =
        (0..TYPES.len() as u32).flat_map(|type_| (0..VARIANTS).map(move |variant| (type_, variant)));
    let texts = variants.map(|(type_, variant)| {
        let region = REGIONS[(type_ + variant) as usize % REGIONS.len()];
        let (minor, attempt) = (type_ % 10, variant % 3 + 1);
        format!(r#"{{"version":"2.{minor}.{variant}","region":"{region}","attempt":{attempt}}}"#)
    });
    texts.collect()
}
