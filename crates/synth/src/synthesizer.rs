//! Batches by their index.

use crate::compression::Compressor;
use crate::draw::{Moment, Source};
use crate::pen::Pen;
use crate::receivers::Writer;
use crate::spec::{Problem, Spec};
use crate::table::Table;

/// Makes batches. It owns its memory, which is used again for each batch, and can be sent to another thread;
/// several of the same spec and seed make the same batches.
#[derive(Debug)]
pub struct Synthesizer {
    source: Source,
    table: Table,
    writer: Writer,
    compressor: Compressor,
    pen: Pen,
}

/// Size of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Points, lines, spans or events.
    pub records: u64,
    /// Bytes before they were compressed.
    pub raw_bytes: u64,
}

impl Synthesizer {
    /// A synthesizer of the spec's data. Its draws depend on the spec and `seed`.
    ///
    /// # Errors
    ///
    /// The problems of [`Spec::validate`].
    pub fn new(spec: &Spec, seed: u64) -> Result<Self, Vec<Problem>> {
        spec.validate()?;
        let (source, table) = Source::new(spec, seed);
        let writer = Writer::new(spec, &table, |column| source.spare(column));
        let compressor = Compressor::new(spec.compression_used());
        Ok(Self { source, table, writer, compressor, pen: Pen::default() })
    }

    /// Replaces the content of `out` by the batch number `index`, whose first record is of the time `now`, in
    /// nanoseconds since the epoch (at most 2^63, in the year 2262). Batches may be made in any order.
    pub fn batch(&mut self, index: u64, now: u64, out: &mut Vec<u8>) -> Batch {
        let Self { source, table, writer, compressor, pen } = self;
        source.draw(Moment { index, now }, table, |column, word, text| writer.rename(column, word, text));
        pen.clear();
        writer.write(table, pen);
        compressor.compress(pen.written(), out);
        Batch { records: table.rows() as u64, raw_bytes: pen.written().len() as u64 }
    }
}
