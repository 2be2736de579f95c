//! The share of the machine's calibrated capacity that a run has used.

use std::path::PathBuf;

use plimsoll_metrics::{Reason, ReasonCode, RunRecord, figure};
use plimsoll_plan::Plan;
use plimsoll_report::calibration::WARNING_SHARE;
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
    calibration.check(&describe::tool(), host, record.backend)?;
    // If `calibrate` does not know the kind of load, doing it again would not help.
    calibration.used(&load_kind(record, plan), threads, achieved).ok_or(None)
}

/// The warning that a run came too close to the limit of the machine to be unaffected.
pub(crate) fn warning(used: &CalibrationUse) -> Option<Reason> {
    (used.used_share > WARNING_SHARE).then(|| Reason {
        code: ReasonCode::CalibratedLimit,
        evidence: format!(
            "the generator used {} of what this machine was calibrated for ({} for {})",
            figure::share(used.used_share),
            figure::per_second(used.limit_per_s),
            if used.of_this_plan { "this plan's requests".to_owned() } else { used.load.describe() },
        ),
        hint: "use a lower rate, or more threads (-t) where there are CPUs for them: beyond half of it, response times hold \
               queueing of its own"
            .to_owned(),
    })
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
