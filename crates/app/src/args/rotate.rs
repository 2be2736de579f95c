//! Flags for the rotation of files that are written during a run.

use clap::Args;
use plimsoll_core::Nanos;
use plimsoll_document::{Problem, Problems};
use plimsoll_plan::parse_size;
use plimsoll_schedule::{parse_count, parse_duration};

/// Files are at least so large, and of so much time: a header line takes some hundred bytes.
const SMALLEST: u64 = 4 * 1024;

const SHORTEST: Nanos = Nanos::from_secs(1);

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RotateArgs {
    /// Begin a new file for --stats, --log, --stream-log and --failed before one is larger than this: 100MiB
    ///
    /// What was written is renamed: stats.csv becomes stats.1.csv, the next one stats.2.csv. Each has whole
    /// records, and a header line of its own where it is CSV; a single record may be larger.
    #[arg(long, value_name = "SIZE", hide_short_help = true)]
    pub(crate) rotate_size: Option<String>,
    /// Begin a new file for --stats, --log, --stream-log and --failed as often as this: 1h
    ///
    /// It is begun with the first record that comes after that time.
    #[arg(long, value_name = "TIME", hide_short_help = true, allow_negative_numbers = true)]
    pub(crate) rotate_every: Option<String>,
    /// Keep this many of the renamed files, and delete older ones of this run [default: all]
    #[arg(long, value_name = "N", hide_short_help = true, allow_negative_numbers = true)]
    pub(crate) rotate_keep: Option<String>,
}

/// When files are cut, and how many are kept. The default is never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rotation {
    pub(crate) size: Option<u64>,
    pub(crate) every: Option<Nanos>,
    pub(crate) keep: Option<usize>,
}

impl RotateArgs {
    /// Returns the rotation that the flags ask for. `writes_files` says whether the run writes such files.
    ///
    /// # Errors
    /// Every problem with the flags.
    pub(crate) fn rotation(&self, writes_files: bool) -> Result<Rotation, Problems> {
        let mut problems = Problems::default();
        let mut refuse = |message: String, hint: &str| problems.push(Problem::new(message).with_hint(hint));
        let given = [
            ("--rotate-size", &self.rotate_size),
            ("--rotate-every", &self.rotate_every),
            ("--rotate-keep", &self.rotate_keep),
        ];
        let first = given.iter().find(|(_, text)| text.is_some());
        if let Some((flag, _)) = first.filter(|_| !writes_files) {
            let hint = "add --stats FILE, --log FILE, --stream-log FILE or --failed FILE, or leave it out";
            refuse(format!("{flag} is for files that are written during the run, and there is none"), hint);
        }
        if self.rotate_keep.is_some() && self.rotate_size.is_none() && self.rotate_every.is_none() {
            let hint = "add --rotate-size 100MiB or --rotate-every 1h";
            refuse("--rotate-keep says how many files are kept, but none is rotated".to_owned(), hint);
        }
        let size = self.rotate_size.as_deref().map(|text| {
            let size = parse_size(text).ok().filter(|size| *size >= SMALLEST);
            size.unwrap_or_else(|| {
                refuse(format!("--rotate-size: `{text}` is not a size from 4KiB"), "write 100MiB or 1GB");
                SMALLEST
            })
        });
        let every = self.rotate_every.as_deref().map(|text| {
            let every = parse_duration(text).ok().filter(|every| *every >= SHORTEST);
            every.unwrap_or_else(|| {
                refuse(format!("--rotate-every: `{text}` is not a time from 1s"), "write 1h or 30m");
                SHORTEST
            })
        });
        let keep = self.rotate_keep.as_deref().map(|text| {
            let keep = parse_count(text).ok().and_then(|count| usize::try_from(count).ok());
            keep.unwrap_or_else(|| {
                refuse(format!("--rotate-keep: `{text}` is not a number of files"), "write 24");
                0
            })
        });
        if problems.is_empty() { Ok(Rotation { size, every, keep }) } else { Err(problems) }
    }
}
