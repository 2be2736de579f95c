//! Thresholds of metrics.

use plimsoll_document::{Field, ThresholdSpec};

use super::Importer;
use super::call::duration;
use super::value::{Value, shown};
use crate::amount;
use crate::draft::text;

impl Importer<'_> {
    pub(crate) fn thresholds_of(&mut self, thresholds: &Value) {
        let Value::Object(metrics) = thresholds else {
            self.findings.note(
                "options.thresholds",
                "",
                "they are not known before the run: they are left out",
            );
            return;
        };
        for (metric, limits) in metrics.iter() {
            let limits = match limits {
                Value::Array(limits) => limits.to_vec(),
                one => vec![one.clone()],
            };
            for limit in limits {
                let (that, abort, delay) = match &limit {
                    Value::Object(_) => (
                        limit.member("threshold").and_then(Value::constant),
                        limit.member("abortOnFail").and_then(Value::truth),
                        limit.member("delayAbortEval").and_then(duration),
                    ),
                    limit => (limit.constant(), None, None),
                };
                let Some(that) = that else {
                    let at = format!("options.thresholds.{metric}");
                    self.findings.note(at, metric, "it is not known before the run: it is left out");
                    continue;
                };
                self.threshold(metric, &that, abort == Some(true), delay);
            }
        }
    }

    fn threshold(&mut self, key: &str, that: &str, aborts: bool, delay: Option<u64>) {
        let at = format!("options.thresholds.{key}");
        let (metric, selector) = match key.split_once('{') {
            Some((metric, rest)) => (metric.trim(), rest.trim().strip_suffix('}').unwrap_or(rest)),
            None => (key.trim(), ""),
        };
        // k6 measures every request that ended, good or not, unless the tag says otherwise.
        let is_of_good = selector.split(',').any(|tag| tag.replace(' ', "") == "expected_response:true");
        let condition = match condition(metric, that, is_of_good) {
            Ok(condition) => condition,
            Err(becomes) => {
                self.findings.note(at, that, becomes);
                return;
            }
        };
        if metric == "checks" {
            let becomes = "it is a share of the requests here, and not of the checks";
            self.findings.note(at.as_str(), that, becomes);
        }
        let mut threshold = ThresholdSpec::default();
        threshold.that = text(condition);
        if aborts {
            threshold.abort_on_fail = Field::new(true);
            if let Some(delay) = delay.filter(|delay| *delay > 0) {
                threshold.delay = text(amount::time(delay));
            }
        } else if delay.is_some() {
            self.findings.note(at.as_str(), "delayAbortEval", "nothing is aborted: it is left out");
        }
        let (mut steps, mut of_steps) = (Vec::new(), false);
        for tag in selector.split(',').map(str::trim).filter(|tag| !tag.is_empty()) {
            let (name, value) = tag.split_once(':').unwrap_or((tag, ""));
            let (name, value) = (name.trim(), value.trim().trim_matches('"'));
            match name {
                "expected_response" if value == "true" => {}
                "scenario" => {
                    let known = self.document.scenarios.iter().any(|scenario| {
                        scenario
                            .get()
                            .and_then(|scenario| scenario.name.get())
                            .is_some_and(|name| name.as_str() == value)
                    });
                    if !known {
                        self.findings.note(at, tag, "no scenario has this name: the threshold is left out");
                        return;
                    }
                    threshold.scenario = text(value);
                }
                "name" | "group" => {
                    of_steps = true;
                    let group = value.trim_start_matches("::").replace("::", " / ");
                    for request in self.requests.iter().filter(|request| !request.is_once) {
                        let fits = match name {
                            "name" => request.tag.as_deref() == Some(value),
                            _ => request.group.as_deref() == Some(group.as_str()),
                        };
                        if fits {
                            steps.push((request.scenario, request.step.name.clone()));
                        }
                    }
                    if steps.is_empty() {
                        self.findings.note(at, tag, "no request has this tag: the threshold is left out");
                        return;
                    }
                }
                _ => {
                    self.findings.note(at, tag, "plans have no such tag: the threshold is left out");
                    return;
                }
            }
        }
        if !of_steps {
            self.thresholds.push(threshold);
            return;
        }
        if steps.len() > 1 {
            let becomes = "several requests have the tag: each of them has this threshold";
            self.findings.note(at, selector, becomes);
        }
        for (scenario, step) in steps {
            let mut own = threshold.clone();
            let named = self.document.scenarios.get(scenario).and_then(Field::get);
            own.scenario = named.map(|scenario| scenario.name.clone()).unwrap_or_default();
            own.step = step;
            self.thresholds.push(own);
        }
    }
}

/// A threshold of k6 as a condition of plans, of the good answers alone if `is_of_good`; or the reason why
/// there is none.
fn condition(metric: &str, that: &str, is_of_good: bool) -> Result<String, &'static str> {
    const UNKNOWN: &str = "plans have no such condition: the threshold is left out";
    let compact: String = that.chars().filter(|c| !c.is_whitespace()).collect();
    let begin = compact.find(['<', '>', '=', '!']).ok_or(UNKNOWN)?;
    let (figure, rest) = compact.split_at(begin);
    let end = rest.find(|c| !"<>=!".contains(c)).ok_or(UNKNOWN)?;
    let (operator, limit) = rest.split_at(end);
    let operator = if operator == "===" { "==" } else { operator };
    let limit: f64 = limit.parse().map_err(|_| UNKNOWN)?;
    let time = |kind: &str, among: &str| {
        let figure = match figure {
            "avg" => "mean".to_owned(),
            "med" => "p50".to_owned(),
            "min" | "max" => figure.to_owned(),
            figure => {
                let percentile =
                    figure.strip_prefix("p(").and_then(|rest| rest.strip_suffix(')')).ok_or(UNKNOWN)?;
                let number: f64 = percentile.parse().map_err(|_| UNKNOWN)?;
                if number >= 100.0 {
                    "max".to_owned()
                } else if number <= 0.0 {
                    "min".to_owned()
                } else {
                    format!("p{percentile}")
                }
            }
        };
        // Other figures than percentiles are of the good answers anyway.
        let among = if among == "{ok}" && !figure.starts_with('p') { "" } else { among };
        Ok(format!("{kind}{figure}{among}{operator}{}", amount::time((limit * 1e6).round() as u64)))
    };
    let percent = |share: f64| format!("{}%", shown((share * 1e8).round() / 1e6));
    let turned = match operator {
        "<" => ">",
        "<=" => ">=",
        ">" => "<",
        ">=" => "<=",
        other => other,
    };
    match (metric, figure) {
        ("http_req_duration", _) => time("", if is_of_good { "{ok}" } else { "{all}" }),
        ("http_req_waiting", _) => time("first_byte_time.", "{ok}"),
        ("http_req_connecting", _) => time("connect_time.", ""),
        ("http_req_tls_handshaking", _) => time("tls_time.", ""),
        ("http_req_failed", "rate") if (0.0..=1.0).contains(&limit) => {
            Ok(format!("error_rate{operator}{}", percent(limit)))
        }
        ("checks", "rate") if (0.0..=1.0).contains(&limit) => {
            Ok(format!("error_rate{turned}{}", percent(1.0 - limit)))
        }
        ("http_reqs", "rate") => Ok(format!("rate{operator}{}", shown(limit))),
        ("http_reqs", "count") => Ok(format!("started{operator}{}", shown(limit))),
        ("dropped_iterations", "count") => Ok(format!("dropped{operator}{}", shown(limit))),
        ("data_received", "count") => Ok(format!("bytes_received{operator}{}", shown(limit))),
        ("data_sent", "count") => Ok(format!("bytes_sent{operator}{}", shown(limit))),
        _ => Err("plans have no such figure: the threshold is left out"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_have_their_equivalents() {
        for (metric, that, ours) in [
            ("http_req_duration", "p(95)<200", "p95{all}<200ms"),
            ("http_req_duration", "p(99.9) <= 0.5", "p99.9{all}<=500us"),
            ("http_req_duration", "avg < 250", "mean{all}<250ms"),
            ("http_req_duration", "med<=100", "p50{all}<=100ms"),
            ("http_req_duration", "max<1500", "max{all}<1500ms"),
            ("http_req_waiting", "p(90)<100", "first_byte_time.p90{ok}<100ms"),
            ("http_req_waiting", "max<100", "first_byte_time.max<100ms"),
            ("http_req_connecting", "p(90)<100", "connect_time.p90<100ms"),
            ("http_req_failed", "rate<0.01", "error_rate<1%"),
            ("http_req_failed", "rate===0", "error_rate==0%"),
            ("checks", "rate>0.9", "error_rate<10%"),
            ("checks", "rate==1.0", "error_rate==0%"),
            ("http_reqs", "rate>100", "rate>100"),
            ("http_reqs", "count>=1000", "started>=1000"),
            ("dropped_iterations", "count<10", "dropped<10"),
        ] {
            assert_eq!(condition(metric, that, false).as_deref(), Ok(ours), "{metric}: {that}");
        }
        for (that, ours) in [("p(95)<200", "p95{ok}<200ms"), ("avg<200", "mean<200ms")] {
            assert_eq!(condition("http_req_duration", that, true).as_deref(), Ok(ours), "{that}");
        }
        for (metric, that) in [
            ("iteration_duration", "p(95)<200"),
            ("my_trend", "p(95)<200"),
            ("http_req_duration", "rate<1"),
            ("http_req_duration", "p(95)"),
            ("http_req_duration", "p(95)<x"),
            ("http_req_failed", "count<5"),
        ] {
            assert!(condition(metric, that, false).is_err(), "{metric}: {that}");
        }
    }
}
