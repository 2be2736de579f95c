//! The share of the machine's calibrated capacity that a run has used.

use std::path::PathBuf;

use plimsoll_metrics::RunRecord;
use plimsoll_plan::Plan;
use plimsoll_report::{Calibration, CalibrationCell, CalibrationUse, Host, LoadKind, rfc3339};

use crate::base::environment;
use crate::session::describe;

/// Name of the calibration in the folder of data.
const FILE: &str = "calibration.json";

/// Returns how much of the capacity of the machine, which is `host`, a run has used. The capacity is that of
/// the run's own calibration if there is one, else of the one that was kept. `Err` says why it is not known.
pub(crate) fn used(
    record: &RunRecord,
    plan: &Plan,
    own: Option<&CalibrationCell>,
    host: &Host,
) -> Result<CalibrationUse, Option<String>> {
    let seconds = record.duration.as_secs_f64();
    if seconds <= 0.0 {
        return Err(None);
    }
    let achieved = record.completed_in_window as f64 / seconds;
    let threads = record.workers.len() as u64;
    if let Some(cell) = own {
        let used = cell.used(&rfc3339(record.started_unix), threads, achieved);
        return Ok(CalibrationUse { of_this_plan: true, ..used });
    }
    // Users who have never calibrated are not reminded at every run.
    let text = default_store().and_then(|path| std::fs::read_to_string(path).ok()).ok_or(None)?;
    let calibration = Calibration::read(&text)?;
    calibration.check(&describe::tool(), host, &record.backend)?;
    // If `calibrate` does not know the kind of load, doing it again would not help.
    calibration.used(&load_kind(record, plan), threads, achieved).ok_or(None)
}

/// Requests per second that one thread of this machine can make over HTTP/1.1, of the smallest kind of load
/// that was calibrated; `None` if there is no calibration, or none that still applies.
pub(crate) fn thread_capacity() -> Option<u64> {
    let text = default_store().and_then(|path| std::fs::read_to_string(path).ok())?;
    let calibration = Calibration::read(&text).ok()?;
    calibration.check(&describe::tool(), &describe::host(), &calibration.backend).ok()?;
    let is_plain = |load: &LoadKind| load.protocol == "http/1.1" && !load.tls && !load.script;
    let plain = calibration.cells.iter().filter(|cell| is_plain(&cell.load));
    let smallest = plain.min_by_key(|cell| cell.load.request_bytes + cell.load.response_bytes)?;
    Some(smallest.limit_per_s.round() as u64).filter(|limit| *limit > 0)
}

/// The file that the calibration of this machine is kept in.
pub(crate) fn default_store() -> Option<PathBuf> {
    environment::data_folder().map(|folder| folder.join(FILE))
}

/// Returns the kind of load of a run.
pub(crate) fn load_kind(record: &RunRecord, plan: &Plan) -> LoadKind {
    let model = describe::model(plan);
    let most = record.protocols.iter().max_by_key(|(_, responses)| **responses);
    let mean = |bytes: u64, of: u64| bytes.checked_div(of).unwrap_or(0);
    let other = plan.targets.iter().find_map(|target| target.protocol.row());
    let protocol = match (other, most) {
        (Some(row), _) => row.name,
        (None, Some((protocol, _))) => protocol.as_str(),
        (None, None) => "http/1.1",
    };
    LoadKind {
        protocol: protocol.to_owned(),
        tls: !record.tls_versions.is_empty(),
        connections: model.connections,
        depth: if protocol == "h2" { model.depth } else { u64::from(plan.connections.depth) },
        request_bytes: mean(record.total.bytes_sent, record.accounting.started),
        response_bytes: mean(record.total.bytes_received, record.total.completed()),
        script: plan.scripts.is_some(),
    }
}
