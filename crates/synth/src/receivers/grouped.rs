//! Formats in which records are grouped by whom they are of.

use super::owner;
use super::records::prefixed;
use crate::encoding::{Style, Wrapping};
use crate::kind::Kind;
use crate::pen::Pen;
use crate::program::{Builder, Piece, Program};
use crate::slots::{Slots, WIDEST};
use crate::spec::Spec;
use crate::table::{Cells, Table};

/// Rows in groups with the same word in a column.
#[derive(Debug)]
struct Groups {
    column: usize,
    /// Text that is written once for each group.
    slots: Slots,
    /// The word above, the row below: sorted, rows of a group stand together, and in their order.
    keys: Vec<u64>,
}

impl Groups {
    fn new(column: usize, slots: Slots, table: &Table) -> Self {
        Self { column, slots, keys: Vec::with_capacity(table.rows()) }
    }

    fn sort(&mut self, table: &Table) {
        self.keys.clear();
        self.keys
            .extend(table.words(self.column).iter().zip(0..).map(|(&word, row)| u64::from(word) << 32 | row));
        self.keys.sort_unstable();
    }

    /// The groups: the number of the word, and the rows. [`Groups::sort`] comes first.
    fn iter(&self) -> impl Iterator<Item = (u32, impl Iterator<Item = usize>)> {
        let groups = self.keys.chunk_by(|one, other| one >> 32 == other >> 32);
        groups.map(|group| ((group[0] >> 32) as u32, group.iter().map(|&key| (key & 0xffff_ffff) as usize)))
    }
}

/// Loki's push API: one stream for each service or source, whose lines are the other columns as JSON.
#[derive(Debug)]
pub(crate) struct Loki {
    groups: Groups,
    entry: Program,
}

impl Loki {
    pub(super) fn new(spec: &Spec, table: &Table, spare: &dyn Fn(usize) -> usize) -> Self {
        let column = owner(spec, table);
        let description = &table.columns[column];
        let Cells::Word(lexicon, _) = &description.cells else { unreachable!("owners are words") };
        let measurement = &table.measurements[0];
        let before = format!("{{\"stream\":{{\"job\":\"{measurement}\",\"{}\":", description.name);
        let dress = Wrapping::around(before, Style::Json, "},\"values\":[");
        let mut builder = Builder::new(table, spare);
        builder.text("[\"");
        builder.piece(Piece::Time(spec.time_unit.nanos()));
        let lines = table.written().filter(|&(other, _)| other != column);
        for ((other, _), separator) in lines.zip(["\",\"{"].into_iter().chain(std::iter::repeat(","))) {
            builder.text(separator);
            builder.json(other, "\\\"");
        }
        builder.text("}\"]");
        Self { groups: Groups::new(column, Slots::new(lexicon, dress, 0), table), entry: builder.finish() }
    }

    pub(super) fn rename(&mut self, column: usize, index: u32, word: &str) {
        self.entry.rename(column, index, word);
    }

    pub(super) fn write(&mut self, table: &Table, pen: &mut Pen) {
        self.groups.sort(table);
        pen.put(b"{\"streams\":[");
        for (number, (word, rows)) in self.groups.iter().enumerate() {
            pen.put(if number > 0 { b"]}," } else { b"" });
            pen.ensure(WIDEST);
            self.groups.slots.copy(word, pen);
            for (number, row) in rows.enumerate() {
                pen.put(if number > 0 { b"," } else { b"" });
                self.entry.write(table, row, pen);
            }
        }
        pen.put(b"]}]}");
    }
}

/// OpenTelemetry's export requests: logs, events and spans by service; points by metric, within one resource.
#[derive(Debug)]
pub(crate) struct Otlp {
    groups: Groups,
    record: Program,
    is_metrics: bool,
    /// The resource of metrics.
    resource: Vec<u8>,
}

/// `ResourceLogs.scope_logs`, `ScopeLogs.log_records` and the same of the others: field 2.
const INNER: u8 = 0x12;
/// Field 1 of the whole request, and of `Gauge`.
const OUTER: u8 = 0x0a;
/// `Metric.gauge`.
const GAUGE: u8 = 0x2a;
/// `scope`, field 1, with the name of its writer.
const SCOPE: &[u8] = b"\x0a\x0a\x0a\x08plimsoll";
/// Bytes of a length that are reserved: for contents longer than 16 KiB, for those longer than 127 bytes.
const LONG: usize = 3;
const MIDDLE: usize = 2;

impl Otlp {
    pub(super) fn new(spec: &Spec, table: &Table, spare: &dyn Fn(usize) -> usize) -> Self {
        let column = owner(spec, table);
        let Cells::Word(lexicon, _) = &table.columns[column].cells else { unreachable!("owners are words") };
        let measurement = &table.measurements[0];
        let slots = if spec.kind == Kind::Metrics {
            // `Metric.name`, field 1.
            Slots::new(&prefixed(table, column, measurement, '.'), Wrapping::new(Style::Field(0x0a)), 0)
        } else {
            Slots::new(lexicon, Wrapping::new(Style::Resource), 0)
        };
        let mut resource = Vec::new();
        Wrapping::new(Style::Resource).write("plimsoll", &mut resource);
        let mut builder = Builder::new(table, spare);
        let factor = spec.time_unit.nanos();
        match spec.kind {
            Kind::Metrics => point(table, &mut builder, factor),
            Kind::Logs | Kind::Events => log_record(table, &mut builder, factor),
            Kind::Traces => span(table, &mut builder, factor),
        }
        let record = builder.finish();
        Self {
            groups: Groups::new(column, slots, table),
            record,
            is_metrics: spec.kind == Kind::Metrics,
            resource,
        }
    }

    pub(super) fn rename(&mut self, column: usize, index: u32, word: &str) {
        self.record.rename(column, index, word);
    }

    pub(super) fn write(&mut self, table: &Table, pen: &mut Pen) {
        self.groups.sort(table);
        if self.is_metrics {
            self.write_metrics(table, pen);
            return;
        }
        for (word, rows) in self.groups.iter() {
            pen.ensure(WIDEST + 64);
            let resource = pen.open(OUTER, MIDDLE);
            self.groups.slots.copy(word, pen);
            let scope = pen.open(INNER, MIDDLE);
            pen.copy(SCOPE);
            self.write_records(INNER, rows, table, pen);
            pen.close(&scope);
            pen.close(&resource);
        }
    }

    fn write_metrics(&self, table: &Table, pen: &mut Pen) {
        pen.ensure(WIDEST);
        let resource = pen.open(OUTER, LONG);
        pen.copy(&self.resource);
        let scope = pen.open(INNER, LONG);
        pen.copy(SCOPE);
        for (word, rows) in self.groups.iter() {
            pen.ensure(WIDEST + 64);
            let metric = pen.open(INNER, MIDDLE);
            self.groups.slots.copy(word, pen);
            let gauge = pen.open(GAUGE, MIDDLE);
            self.write_records(OUTER, rows, table, pen);
            pen.close(&gauge);
            pen.close(&metric);
        }
        pen.close(&scope);
        pen.close(&resource);
    }

    fn write_records(&self, key: u8, rows: impl Iterator<Item = usize>, table: &Table, pen: &mut Pen) {
        for row in rows {
            pen.ensure(self.record.bound());
            let record = pen.open(key, if self.is_metrics { 1 } else { MIDDLE });
            self.record.write(table, row, pen);
            pen.close(&record);
        }
    }
}

/// `NumberDataPoint`.
fn point(table: &Table, builder: &mut Builder<'_>, factor: u64) {
    builder.text([0x19]);
    builder.piece(Piece::FixedTime(factor));
    builder.text([0x21]);
    builder.piece(Piece::FixedMilli(table.position("value")));
    attributes(table, builder, 0x3a, &["value", "metric_name"]);
}

/// `LogRecord`; an event has its type for its name.
fn log_record(table: &Table, builder: &mut Builder<'_>, factor: u64) {
    builder.text([0x09]);
    builder.piece(Piece::FixedTime(factor));
    for (column, description) in table.written() {
        match description.name {
            "level" | "severity" => builder.word(column, Style::Severity),
            "message" => builder.word(column, Style::AnyValue(0x2a)),
            "event_type" => builder.word(column, Style::Field(0x62)),
            _ => {}
        }
    }
    let special = ["level", "severity", "message", "event_type", "service", "source"];
    attributes(table, builder, 0x32, &special);
}

/// `Span`.
fn span(table: &Table, builder: &mut Builder<'_>, factor: u64) {
    builder.piece(Piece::TraceId(0x0a, table.position("trace_id")));
    builder.piece(Piece::Id(0x12, table.position("span_id")));
    builder.piece(Piece::Id(0x22, table.position("parent_span_id")));
    builder.word(table.position("operation_name"), Style::Field(0x2a));
    if let Some((kind, _)) = table.written().find(|(_, column)| column.name == "span_kind") {
        builder.word(kind, Style::SpanKind);
    }
    builder.text([0x39]);
    builder.piece(Piece::FixedTime(factor));
    builder.text([0x41]);
    builder.piece(Piece::FixedEnd(factor, table.position("duration_ns")));
    let special = [
        "trace_id",
        "span_id",
        "parent_span_id",
        "operation_name",
        "span_kind",
        "duration_ns",
        "error",
        "service_name",
    ];
    attributes(table, builder, 0x4a, &special);
    builder.word(table.position("error"), Style::SpanStatus);
}

/// All columns but some, as attributes.
fn attributes(table: &Table, builder: &mut Builder<'_>, key: u8, special: &[&str]) {
    for (column, description) in table.written() {
        if !special.contains(&description.name) {
            builder.attribute(key, column);
        }
    }
}
