//! Formats in which records simply follow each other.

use crate::encoding::{Style, pack_list, pack_text};
use crate::lexicon::Lexicon;
use crate::pen::Pen;
use crate::program::{Builder, Piece, Program};
use crate::table::{Cells, Table};

/// Records one after another.
#[derive(Debug)]
pub(crate) struct Records {
    /// Before the first.
    head: Vec<u8>,
    /// The key of the field of protobuf that each record is in, if it is in one.
    key: Option<u8>,
    /// For each measurement.
    programs: Vec<Program>,
}

type Spare<'a> = &'a dyn Fn(usize) -> usize;

impl Records {
    fn new(
        head: Vec<u8>,
        table: &Table,
        spare: Spare<'_>,
        describe: impl Fn(&mut Builder<'_>, &str),
    ) -> Self {
        let programs = table.measurements.iter().map(|measurement| {
            let mut builder = Builder::new(table, spare);
            describe(&mut builder, measurement);
            builder.finish()
        });
        Self { head, key: None, programs: programs.collect() }
    }

    pub(super) fn rename(&mut self, column: usize, index: u32, word: &str) {
        self.programs.iter_mut().for_each(|program| program.rename(column, index, word));
    }

    pub(super) fn write(&self, table: &Table, pen: &mut Pen) {
        pen.put(&self.head);
        let program = &self.programs[table.measurement];
        for row in 0..table.rows() {
            let Some(key) = self.key else {
                program.write(table, row, pen);
                continue;
            };
            pen.ensure(program.bound());
            let record = pen.open(key, 1);
            program.write(table, row, pen);
            pen.close(&record);
        }
    }
}

/// Arc's rows: `{"batch": [{"m": …, "t": …, "h": …, "fields": {…}, "tags": {…}}, …]}`. A column called `host`
/// is `h`, and not a tag as well; without one, `h` is empty, because Arc would add a tag `unknown`.
pub(super) fn rows(table: &Table, spare: Spare<'_>) -> Records {
    let mut head = vec![0x81];
    pack_text("batch", &mut head);
    pack_list(table.rows(), &mut head);
    let host = table.written().find(|(_, column)| column.name == "host").map(|(column, _)| column);
    let of = |is_tag: bool| {
        let columns =
            table.written().filter(move |&(column, it)| it.is_tag == is_tag && Some(column) != host);
        columns.map(|(column, _)| column).collect::<Vec<_>>()
    };
    let (fields, tags) = (of(false), of(true));
    Records::new(head, table, spare, |builder, measurement| {
        builder.text([0x85]);
        for text in ["m", measurement, "t"] {
            builder.text(packed(text));
        }
        builder.piece(Piece::PackTime);
        builder.text(packed("h"));
        match host {
            Some(host) => builder.word(host, Style::Pack),
            None => builder.text(packed("")),
        }
        for (name, columns) in [("fields", &fields), ("tags", &tags)] {
            builder.text(packed(name));
            assert!(columns.len() < 16, "kinds have few columns");
            builder.text([0x80 | columns.len() as u8]);
            columns.iter().for_each(|&column| builder.pack(column));
        }
    })
}

fn packed(text: &str) -> Vec<u8> {
    let mut packed = Vec::new();
    pack_text(text, &mut packed);
    packed
}

/// InfluxDB's line protocol: `measurement,tag=word field=1.0,other="text" time`.
pub(super) fn lines(table: &Table, spare: Spare<'_>) -> Records {
    Records::new(Vec::new(), table, spare, |builder, measurement| {
        builder.text(measurement);
        for (column, description) in table.written().filter(|(_, column)| column.is_tag) {
            builder.text(format!(",{}=", description.name));
            builder.word(column, Style::LineTag);
        }
        let fields = table.written().filter(|(_, column)| !column.is_tag);
        for ((column, _), separator) in fields.zip([" "].into_iter().chain(std::iter::repeat(","))) {
            builder.text(separator);
            builder.line_field(column);
        }
        builder.text(" ");
        builder.piece(Piece::Time(1));
        builder.text("\n");
    })
}

/// One JSON object on each line, with its measurement and time.
pub(super) fn json_lines(table: &Table, spare: Spare<'_>) -> Records {
    Records::new(Vec::new(), table, spare, |builder, measurement| {
        builder.text(format!("{{\"measurement\":\"{measurement}\",\"time\":"));
        json_record(table, builder);
    })
}

/// Elasticsearch's bulk API: a line with the action, and a line with the document.
pub(super) fn bulk(table: &Table, spare: Spare<'_>) -> Records {
    Records::new(Vec::new(), table, spare, |builder, measurement| {
        builder.text(format!("{{\"create\":{{\"_index\":\"{measurement}\"}}}}\n{{\"@timestamp\":"));
        json_record(table, builder);
    })
}

/// The time and everything behind it.
fn json_record(table: &Table, builder: &mut Builder<'_>) {
    builder.piece(Piece::Time(1));
    for (column, _) in table.written() {
        builder.text(",");
        builder.json(column, "\"");
    }
    builder.text("}\n");
}

/// Prometheus remote write 1.0: a time series with one sample for each record. Labels are in the order of
/// their names, as is required. The name of a metric begins with the measurement.
pub(super) fn remote_write(table: &Table, spare: Spare<'_>) -> Records {
    let metric = table.position("metric_name");
    let mut labels: Vec<_> = table.written().filter(|&(column, it)| it.is_tag && column != metric).collect();
    labels.sort_unstable_by_key(|(_, column)| column.name);
    let mut records = Records::new(Vec::new(), table, spare, |builder, measurement| {
        builder.word_of(metric, &prefixed(table, metric, measurement, '_'), Style::Label("__name__"));
        for &(column, description) in &labels {
            builder.word(column, Style::Label(description.name));
        }
        builder.piece(Piece::Sample(table.position("value")));
    });
    records.key = Some(0x0a);
    records
}

/// The words of a column with the measurement before them.
pub(super) fn prefixed(table: &Table, column: usize, measurement: &str, separator: char) -> Lexicon {
    let Cells::Word(lexicon, _) = &table.columns[column].cells else { unreachable!("names are words") };
    let names = (0..lexicon.count()).map(|index| {
        let mut name = format!("{measurement}{separator}");
        lexicon.write(index, &mut name);
        name
    });
    Lexicon::Made(names.collect())
}
