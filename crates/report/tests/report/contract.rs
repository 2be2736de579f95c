//! The result contract: its names, and the schema that describes them.

use std::collections::BTreeSet;

use plimsoll_report::{Format, Style, schema_result};
use serde_json::Value;

use crate::{fixture, rendered};

/// The fixed names, as the design states them. `[]` is any element of an array, `<n>` any key of a map.
const CONTRACT: &str = "
    schema_version tool.name tool.version
    run.id run.seed run.started_at run.args[] run.plan_hash run.load_checksum
    run.host.hostname run.host.kernel
    run.host.cpu_model run.host.cpus run.host.governor run.host.memory_bytes run.host.soft_descriptors
    run.host.hard_descriptors run.host.virtualisation run.host.clock_source run.host.mitigations
    run.host.cpu_limit run.host.memory_limit_bytes run.host.port_range run.host.accept_queue
    methods.percentile methods.percentile_interval methods.steady methods.response_time
    notes[].code notes[].text
    verdict.outcome verdict.cause verdict.summary verdict.valid verdict.invalid_reasons[] verdict.thresholds
    verdict.limited_by.what verdict.limited_by.evidence verdict.limited_by.hint
    accounting.scheduled accounting.started accounting.dropped accounting.never_started accounting.ok
    accounting.failed accounting.timed_out accounting.in_flight_at_stop
    rate.target_per_s rate.achieved_per_s rate.iterations_started_per_s
    rate.changes[].at_s rate.changes[].what rate.changes[].from_per_s rate.changes[].to_per_s
    rate.changes[].by run.stopped_by
    steady.state steady.from_s steady.reason intervals[].settling
    response_time.interval.50.low response_time.interval.50.high response_time.interval.50.confidence
    response_time.interval.50.vif response_time.interval.50.effective_samples
    by_step[].service_time.interval.99/9.low
    little.in_flight little.in_flight_error little.rate_times_time little.holds
    duration_s bytes.sent bytes.received protocols.http/1.1
    statuses.200 errors.status_5xx
    iterations.started iterations.completed iterations.failed iterations.unfinished
    http2.connections http2.streams_asked http2.stream_limit http2.resets.REFUSED_STREAM
    http2.go_aways.NO_ERROR http2.violations.PROTOCOL_ERROR http2.cancelled http2.ping_time.p.50
    http2.traffic.heads_sent_bytes http2.traffic.heads_received_bytes http2.traffic.fields_received_bytes
    http2.traffic.heads_saved_share http2.traffic.content_received_bytes
    connections.requests_per_s.connections connections.requests_per_s.min connections.requests_per_s.mean
    connections.requests_per_s.stdev connections.requests_per_s.within_stdev connections.requests_per_s.max
    response_time.within_stdev service_time.within_stdev
    by_step[].scenario by_step[].step by_step[].statuses.200 by_step[].errors.status_5xx
    intervals[].at_s intervals[].started intervals[].ok intervals[].failed intervals[].achieved_per_s
    intervals[].response_time.p.50
    phases[].name phases[].at_s phases[].duration_s phases[].measured phases[].started phases[].ok
    phases[].failed phases[].timed_out phases[].achieved_per_s phases[].target_per_s
    phases[].response_time.unit phases[].response_time.p.50 phases[].response_time.p.99/9
    generator.threads generator.cpu_user_s generator.cpu_sys_s generator.cpu_us_per_request
    generator.rss_peak_bytes generator.backend generator.calibration
    generator.machine.workers[].cpu_share generator.machine.workers[].run_delay_s
    generator.machine.cores_busy_share[] generator.machine.network.retransmitted
    generator.machine.target_queue.drops generator.machine.own_segments.resent
    generator.machine.limits.cpus generator.machine.missing[]
    generator.target_process.pids[] generator.target_process.name
    generator.watched[].name generator.watched[].memory.growth_bytes_per_min generator.watched[].used.cpus
    generator.watched[].events[].pid intervals[].machine.watched[].used.rss_bytes
    generator.target_process.busiest_thread_share generator.target_process.throttled_share
    intervals[].machine.length_s intervals[].machine.generator.cpus intervals[].machine.target.threads
    in_stall.response_time.count in_stall.response_time_without.p.99
";

/// The times, each with the names of a summary.
const TIMES: [&str; 9] = [
    "response_time",
    "service_time",
    "start_lag",
    "connect_time",
    "tls_time",
    "first_byte_time",
    "by_step[].response_time",
    "by_step[].service_time",
    "by_step[].start_lag",
];
const SUMMARY: [&str; 12] =
    ["unit", "count", "min", "mean", "stdev", "max", "p.50", "p.90", "p.95", "p.99", "p.99/9", "p.99/99"];

fn json(result: &plimsoll_report::RunResult) -> Value {
    serde_json::from_str(&rendered(result, Format::Json, &Style::PLAIN)).expect("the output is JSON")
}

/// Every path to a value that is not an object or array; a `.` inside a key is written as `/`.
fn paths(value: &Value, path: &str, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, field) in fields {
                let key = if key.starts_with("http/") { key.clone() } else { key.replace('.', "/") };
                let dot = if path.is_empty() { "" } else { "." };
                paths(field, &format!("{path}{dot}{key}"), into);
            }
        }
        Value::Array(elements) if !elements.is_empty() => {
            elements.iter().for_each(|element| paths(element, &format!("{path}[]"), into));
        }
        _ => {
            into.insert(path.to_owned());
        }
    }
}

#[test]
fn every_name_of_the_contract_is_there() {
    let mut there = BTreeSet::new();
    paths(&json(&fixture::timeouts()), "", &mut there);
    // An invalid run has reasons to list.
    paths(&json(&fixture::huge()), "", &mut there);
    paths(&json(&fixture::steered()), "", &mut there);
    paths(&json(&fixture::http2()), "", &mut there);
    paths(&json(&fixture::phases()), "", &mut there);
    paths(&json(&fixture::machine()), "", &mut there);
    let times = TIMES.iter().flat_map(|time| SUMMARY.map(|name| format!("{time}.{name}")));
    let fixed = CONTRACT.split_whitespace().map(str::to_owned);
    let missing: Vec<String> = fixed.chain(times).filter(|name| !there.contains(name)).collect();
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn times_are_whole_nanoseconds_and_missing_percentiles_are_null_with_a_reason() {
    for (name, result) in fixture::all() {
        let json = json(&result);
        for time in &TIMES[..6] {
            let summary = &json[time];
            assert_eq!(summary["unit"], "ns", "{name} {time}");
            for (p, value) in summary["p"].as_object().expect("p is an object") {
                let reason = &summary["p_missing"][p];
                assert_eq!(value.is_null(), reason.is_string(), "{name} {time} p{p}");
                assert!(value.is_null() || value.is_u64(), "{name} {time} p{p}: {value}");
            }
            for figure in ["min", "mean", "stdev", "max"] {
                assert_eq!(summary[figure].is_u64(), summary["count"] != 0, "{name} {time} {figure}");
            }
        }
    }
}

#[test]
fn the_identities_hold_in_the_output() {
    for (name, result) in fixture::all() {
        let json = json(&result);
        let figure = |key: &str| json["accounting"][key].as_u64().expect(key);
        assert_eq!(
            figure("scheduled"),
            figure("started") + figure("dropped") + figure("never_started"),
            "{name}"
        );
        let ended = figure("ok") + figure("failed") + figure("timed_out");
        assert_eq!(figure("started"), ended + figure("in_flight_at_stop"), "{name}");
    }
}

/// Follows `$ref` to the definition.
fn resolved<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    match schema.get("$ref").and_then(Value::as_str) {
        Some(reference) => {
            let pointer = reference.strip_prefix('#').expect("references are local");
            resolved(root.pointer(pointer).expect("references resolve"), root)
        }
        None => schema,
    }
}

/// Asserts that the schema allows a value.
pub(crate) fn assert_described(value: &Value, schema: &Value, root: &Value, path: &str) {
    described(value, schema, root, path).unwrap_or_else(|problem| panic!("{problem}"));
}

/// Checks that the schema allows a value: its type, every field by name, and every required field.
fn described(value: &Value, schema: &Value, root: &Value, path: &str) -> Result<(), String> {
    if let (Some(own), Some(_), Value::Object(fields)) =
        (schema["properties"].as_object(), schema.get("$ref"), value)
    {
        // Properties beside a reference apply in addition to it: the tag of an object.
        let (tags, rest): (Vec<_>, Vec<_>) =
            fields.clone().into_iter().partition(|(name, _)| own.contains_key(name));
        for (name, tag) in tags {
            described(&tag, &own[&name], root, &format!("{path}.{name}"))?;
        }
        return described(&rest.into_iter().collect(), resolved(schema, root), root, path);
    }
    let schema = resolved(schema, root);
    // Where the choices are kinds of objects, a tag tells which one it is.
    let tagged = |choice: &Value| {
        let properties = choice["properties"].as_object();
        let mut constants =
            properties.into_iter().flatten().filter(|(_, field)| field.get("const").is_some());
        constants.all(|(name, field)| value.get(name) == field.get("const"))
    };
    if let Some(choices) = schema.get("anyOf").or(schema.get("oneOf")).and_then(Value::as_array) {
        let mut choices = choices.iter();
        let fitting = choices.find(|choice| type_fits(value, resolved(choice, root)) && tagged(choice));
        let fitting = fitting.ok_or_else(|| format!("{path}: no choice fits {value}"))?;
        return described(value, fitting, root, path);
    }
    if !type_fits(value, schema) {
        return Err(format!("{path}: {value} is not {schema}"));
    }
    match value {
        Value::Object(fields) => {
            let properties = schema.get("properties");
            for (key, field) in fields {
                let known =
                    properties.and_then(|all| all.get(key)).or_else(|| schema.get("additionalProperties"));
                let known = known.ok_or_else(|| format!("{path}.{key} is not in the schema"))?;
                described(field, known, root, &format!("{path}.{key}"))?;
            }
            for required in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
                let required = required.as_str().expect("names are strings");
                if !fields.contains_key(required) {
                    return Err(format!("{path}.{required} is missing"));
                }
            }
        }
        Value::Array(elements) => {
            for element in elements {
                described(element, &schema["items"], root, &format!("{path}[]"))?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Returns `true` if the value is of a type, and among the constants, that the schema names. Without any,
/// every value is.
fn type_fits(value: &Value, schema: &Value) -> bool {
    if let Some(constant) = schema.get("const") {
        return value == constant;
    }
    if let Some(constants) = schema.get("enum").and_then(Value::as_array) {
        return constants.contains(value);
    }
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("unknown type {other}"),
    };
    if let Some(choices) = schema.get("oneOf").and_then(Value::as_array) {
        return choices.iter().any(|choice| type_fits(value, choice));
    }
    match schema.get("type") {
        Some(Value::String(name)) => is(name),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).any(is),
        _ => true,
    }
}

#[test]
fn the_schema_describes_slices() {
    let schema = schema_result();
    let result = fixture::with_slices();
    assert!(result.slices.is_some());
    assert_described(&json(&result), &schema, &schema, "slices");
}

#[test]
fn the_schema_describes_every_result() {
    let schema = schema_result();
    for (name, result) in fixture::all() {
        assert_described(&json(&result), &schema, &schema, name);
    }
}

#[test]
fn what_of_the_warm_up_is_in_the_figures_is_said() {
    let schema = schema_result();
    let text = |field: &str| schema["properties"][field].to_string();
    for field in
        ["connections", "connect_time", "tls_time", "tls_versions", "http2", "intervals", "error_examples"]
    {
        assert!(text(field).contains("warm-up"), "{field}: {}", text(field));
    }
    for field in ["accounting", "response_time", "service_time", "statuses", "errors", "by_step"] {
        assert!(!text(field).contains("warm-up"), "{field}: {}", text(field));
    }
    assert!(text("warmup_s").contains("Nothing of its requests"), "{}", text("warmup_s"));
}

#[test]
#[should_panic(expected = "is not in the schema")]
fn a_field_that_the_schema_lacks_is_found() {
    let schema = schema_result();
    let mut json = json(&fixture::open());
    json["generator"]["surprise"] = Value::from(1);
    assert_described(&json, &schema, &schema, "open");
}

#[test]
#[should_panic(expected = "warmup_s is missing")]
fn a_missing_field_is_found() {
    let schema = schema_result();
    let mut json = json(&fixture::open());
    json.as_object_mut().expect("a result is an object").remove("warmup_s");
    assert_described(&json, &schema, &schema, "open");
}

/// Facts that R22 requires of every report, as pointers into the result: model, arrivals, warm-up, steady
/// window, versions, kernel, governor, seed, load, calibration, methods and all verdicts.
const GROUND_RULES: [&str; 25] = [
    "/schema_version",
    "/tool/name",
    "/tool/version",
    "/run/seed",
    "/run/plan_hash",
    "/run/load_checksum",
    "/run/host/kernel",
    "/run/host/cpu_model",
    "/run/host/cpus",
    "/run/host/governor",
    "/model/kind",
    "/model/arrivals",
    "/model/description",
    "/warmup_s",
    "/duration_s",
    "/steady/state",
    "/steady/from_s",
    "/methods/percentile",
    "/methods/percentile_interval",
    "/methods/steady",
    "/generator/calibration",
    "/verdict/valid",
    "/verdict/invalid_reasons",
    "/verdict/thresholds",
    "/verdict/limited_by",
];

#[test]
fn a_result_without_one_of_the_ground_rules_is_found() {
    let (schema, whole) = (schema_result(), json(&fixture::open()));
    for pointer in GROUND_RULES {
        let (parent, name) = pointer.rsplit_once('/').expect("it is a pointer");
        let mut broken = whole.clone();
        let fields = broken.pointer_mut(parent).and_then(Value::as_object_mut).expect("its parent is there");
        assert!(fields.remove(name).is_some(), "{pointer} is not written");
        let problem = format!("{} is missing", pointer.replace('/', "."));
        assert_eq!(described(&broken, &schema, &schema, ""), Err(problem));
    }
}

#[test]
fn every_field_of_the_schema_has_a_description() {
    let schema = schema_result();
    let definitions = schema["$defs"].as_object().expect("there are definitions");
    let mut fields = 0;
    for (name, definition) in
        definitions.iter().map(|(name, value)| (name.as_str(), value)).chain([("", &schema)])
    {
        assert!(definition["description"].is_string(), "{name} has no description");
        for (field, property) in definition["properties"].as_object().into_iter().flatten() {
            let text = property["description"].as_str().unwrap_or_default();
            assert!(!text.is_empty(), "{name}.{field} has no description");
            assert!(!text.contains("[`"), "{name}.{field}: links mean nothing outside the source");
            fields += 1;
        }
    }
    assert!(fields > 100, "only {fields} fields were looked at");
}
