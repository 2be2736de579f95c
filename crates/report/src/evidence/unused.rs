//! Values of evidence that decide no figure of a result, and are taken as recorded.

use serde_json::Value;

use super::Why;
use super::comparing::Comparing;

/// Their places; a star stands for the number of a value in a list. Some decide a figure in runs of another
/// kind: the time of a turnaround in the closed model, facts of the machine where its limits are reached.
/// Others matter only at their extreme, such as the limits of the times of a slice.
const UNUSED: [&str; 32] = [
    "context/unmeasured",
    "record/accounting/incomplete",
    "record/connections/connect_time/sum",
    "record/connections/depth",
    "record/connections/http2",
    "record/connections/kept",
    "record/connections/lost_on_kept",
    "record/connections/request_rates/overflow",
    "record/connections/tls_hint",
    "record/intervals/*/answers",
    "record/intervals/*/iterations",
    "record/intervals/*/scenarios",
    "record/machine",
    "record/peers/*/authority",
    "record/peers/*/origin",
    "record/precise",
    "record/slices/*/at",
    "record/slices/*/steps/*/limits",
    "record/slices/*/steps/*/failed_limits",
    "record/slices/*/total/limits",
    "record/slices/*/total/failed_limits",
    "record/steps/*/censored_response/from_ns",
    "record/steps/*/censored_service/from_ns",
    "record/timeline/measured/*/at",
    "record/timeline/measured/*/total/limits",
    "record/timeline/measured/*/total/failed_limits",
    "record/timeline/drain/at",
    "record/timeline/drain/length",
    "record/timeline/drain/total/limits",
    "record/timeline/drain/total/failed_limits",
    "record/timeline/warmup",
    "record/workers",
];

/// Lists them.
pub(super) fn list(comparison: &mut Comparing) {
    for place in UNUSED {
        comparison.leave_open(Why::Unused, place, Some(&Value::from("as recorded")));
    }
}
