//! The processors, and how much they are asked for.

use plimsoll_core::Nanos;
use plimsoll_metrics::CoreUse;

use crate::kept::{Buffer, ProcFile};
use crate::parse::machine as parse;
use crate::sampler::Tree;

/// Files about the machine as a whole.
#[derive(Debug)]
pub(crate) struct Machine {
    cores: Option<ProcFile>,
    pressure: Option<ProcFile>,
    load: Option<ProcFile>,
    last: Vec<CoreUse>,
    last_pressure: Option<Nanos>,
}

impl Machine {
    pub(crate) fn open(tree: &Tree, buffer: &mut Buffer, missing: &mut Vec<String>) -> Self {
        let mut machine = Self {
            cores: ProcFile::open(&tree.at("/proc/stat"), missing),
            pressure: ProcFile::open(&tree.at("/proc/pressure/cpu"), missing),
            load: ProcFile::open(&tree.at("/proc/loadavg"), missing),
            last: Vec::new(),
            last_pressure: None,
        };
        machine.cores(buffer, &mut Vec::new());
        machine.pressure(buffer);
        machine
    }

    /// Adds the time of each processor since the last call to `found`.
    pub(crate) fn cores(&mut self, buffer: &mut Buffer, found: &mut Vec<CoreUse>) {
        let Some(bytes) = self.cores.as_ref().and_then(|file| file.read(buffer)) else { return };
        for (number, now) in parse::cores(bytes).enumerate() {
            // A processor that was switched on meanwhile starts from zero.
            if number == self.last.len() {
                self.last.push(now);
            }
            let last = std::mem::replace(&mut self.last[number], now);
            found.push(CoreUse {
                busy: now.busy.since(last.busy),
                softirq: now.softirq.since(last.softirq),
                steal: now.steal.since(last.steal),
            });
        }
    }

    /// Time since the last call for which some task waited for a processor.
    pub(crate) fn pressure(&mut self, buffer: &mut Buffer) -> Option<Nanos> {
        let now = parse::pressure(self.pressure.as_ref()?.read(buffer)?)?;
        Some(now.since(self.last_pressure.replace(now).unwrap_or(now)))
    }

    pub(crate) fn load_hundredths(&self, buffer: &mut Buffer) -> Option<u64> {
        parse::load_hundredths(self.load.as_ref()?.read(buffer)?)
    }
}
