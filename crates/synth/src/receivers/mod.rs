//! The formats: the output of each around and for the records of a table.

mod grouped;
mod records;

use crate::columnar::Columnar;
use crate::format::Format;
use crate::pen::Pen;
use crate::spec::Spec;
use crate::table::Table;

use grouped::{Loki, Otlp};
use records::Records;

/// Prepared parts of a table's batches, by format.
#[derive(Debug)]
pub(crate) enum Writer {
    Columnar(Columnar),
    Records(Records),
    Loki(Loki),
    Otlp(Otlp),
}

impl Writer {
    /// The writer of the spec's format; words of a column may become `spare` bytes longer later.
    pub(crate) fn new(spec: &Spec, table: &Table, spare: impl Fn(usize) -> usize) -> Self {
        match spec.format {
            Format::Columnar => Self::Columnar(Columnar::new(table, spare)),
            Format::Row => Self::Records(records::rows(table, &spare)),
            Format::InfluxLine => Self::Records(records::lines(table, &spare)),
            Format::RemoteWrite => Self::Records(records::remote_write(table, &spare)),
            Format::ElasticBulk => Self::Records(records::bulk(table, &spare)),
            Format::JsonLines => Self::Records(records::json_lines(table, &spare)),
            Format::LokiPush => Self::Loki(Loki::new(spec, table, &spare)),
            Format::OtlpProtobuf => Self::Otlp(Otlp::new(spec, table, &spare)),
        }
    }

    /// Another word in a column.
    pub(crate) fn rename(&mut self, column: usize, index: u32, word: &str) {
        match self {
            Self::Columnar(writer) => writer.rename(column, index, word),
            Self::Records(writer) => writer.rename(column, index, word),
            Self::Loki(writer) => writer.rename(column, index, word),
            Self::Otlp(writer) => writer.rename(column, index, word),
        }
    }

    /// Writes a batch.
    pub(crate) fn write(&mut self, table: &Table, pen: &mut Pen) {
        match self {
            Self::Columnar(writer) => writer.write(table, pen),
            Self::Records(writer) => writer.write(table, pen),
            Self::Loki(writer) => writer.write(table, pen),
            Self::Otlp(writer) => writer.write(table, pen),
        }
    }
}

/// The column by which records are grouped, and the same for the other kinds: their owner.
fn owner(spec: &Spec, table: &Table) -> usize {
    use crate::kind::Kind;
    table.position(match spec.kind {
        Kind::Metrics => "metric_name",
        Kind::Logs => "service",
        Kind::Traces => "service_name",
        Kind::Events => "source",
    })
}
