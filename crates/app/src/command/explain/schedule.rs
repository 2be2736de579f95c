//! The load of a plan over time, as it will be sent: rates of the open model, users of the closed one.

use plimsoll_core::{Nanos, Shard};
use plimsoll_plan::{Load, Plan};
use plimsoll_schedule::{Arrivals, Process};
use serde_json::{Value, json};

/// The load over time, as the ends of straight lines: `[seconds, rate or users]`. A step has two points at
/// one instant.
pub(super) fn preview(plan: &Plan) -> Value {
    let (model, unit, points, iterations) = match &plan.load {
        Load::Open { profile, .. } => {
            let mut points = Vec::new();
            let mut at = Nanos::ZERO;
            for stage in profile.stages() {
                points.push((at, stage.from.per_second_f64()));
                at += stage.duration;
                points.push((at, stage.to.per_second_f64()));
            }
            let all = Arrivals::new(profile, Process::Uniform, plan.seed, Shard::WHOLE);
            let total = profile.total().saturating_sub(all.count_before(plan.first_joining()));
            let unit = if plan.paces_requests() { "requests/s" } else { "iterations/s" };
            ("open", unit, points, Some(total))
        }
        Load::Closed => {
            let points = match &plan.users {
                Some(users) => {
                    let mut points = Vec::new();
                    let mut at = Nanos::ZERO;
                    for stage in users.stages() {
                        points.push((at, f64::from(stage.from)));
                        at += stage.duration;
                        points.push((at, f64::from(stage.to)));
                    }
                    points
                }
                None => {
                    let http2 = plan.targets.iter().any(|target| target.protocol.may_be_http2());
                    let each = if http2 { plan.connections.streams } else { plan.connections.depth };
                    let users = f64::from(plan.connections.max) * f64::from(each);
                    // Without an end in time it is not known how long it takes.
                    [Some(Nanos::ZERO), end(plan)].into_iter().flatten().map(|at| (at, users)).collect()
                }
            };
            ("closed", "users", points, None)
        }
    };
    let phases = plan.phases.iter().map(|phase| {
        json!({ "name": phase.name, "from_s": phase.at.as_secs_f64(), "to_s": phase.end().as_secs_f64() })
    });
    let points = points.iter().map(|(at, value)| json!([at.as_secs_f64(), value]));
    json!({
        "model": model,
        "unit": unit,
        "points": points.collect::<Vec<_>>(),
        "phases": phases.collect::<Vec<_>>(),
        "warmup_s": plan.warmup.as_secs_f64(),
        "duration_s": end(plan).map(Nanos::as_secs_f64),
        "iterations": plan.end.iterations.or(iterations),
    })
}

/// End of the load since the start of the run; `None` if it ends with its iterations.
fn end(plan: &Plan) -> Option<Nanos> {
    plan.end.duration.map(|duration| plan.warmup + duration)
}
