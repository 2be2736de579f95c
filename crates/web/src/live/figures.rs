//! The figures of a run that goes on, as its listeners receive them: everything once, and then what has
//! changed.

use std::fmt::Write as _;

use bytes::Bytes;
use serde_json::Value;

/// Figures and the result of a run so far. Its intervals are kept as text, each written once: a run of an
/// hour has thousands of them, and of these a second adds one.
#[derive(Debug, Default)]
pub(super) struct Figures {
    /// Progress of the run, as JSON.
    pub(super) stat: Value,
    /// The result without its intervals; null before there is one.
    rest: Value,
    intervals: Vec<IntervalText>,
    /// Intervals that were the same in the figures before; 0: all are new.
    kept: usize,
}

/// An interval of a result, as JSON on one line.
#[derive(Debug, PartialEq)]
struct IntervalText {
    /// End of the interval, in seconds since the start of the run.
    at_s: f64,
    json: String,
}

impl IntervalText {
    fn of(interval: &Value) -> Self {
        Self { at_s: interval["at_s"].as_f64().unwrap_or_default(), json: interval.to_string() }
    }
}

/// The intervals of a result, which are taken out of it.
fn taken(result: &mut Value) -> Vec<IntervalText> {
    match result.as_object_mut().and_then(|result| result.remove("intervals")) {
        Some(Value::Array(intervals)) => intervals.iter().map(IntervalText::of).collect(),
        _ => Vec::new(),
    }
}

impl Figures {
    /// Figures with a whole result, or with null.
    pub(super) fn whole(stat: Value, mut result: Value) -> Self {
        let intervals = taken(&mut result);
        Self { stat, rest: result, intervals, kept: 0 }
    }

    /// Notes how many of the first intervals are the same as in the figures before.
    pub(super) fn after(self, before: &Self) -> Self {
        let same = self.intervals.iter().zip(&before.intervals).take_while(|(one, other)| one == other);
        Self { kept: same.count(), ..self }
    }

    /// Takes up progress without another result.
    pub(super) fn wait(&mut self, stat: &Value) {
        (self.stat, self.kept) = (stat.clone(), self.intervals.len());
    }

    /// The addresses that the run puts load on, once there is a result.
    pub(super) fn target(&self) -> Option<String> {
        let targets = self.rest["run"]["targets"].as_array()?;
        let names: Vec<&str> = targets.iter().filter_map(|target| target["authority"].as_str()).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    /// Returns `true` if there is a result.
    pub(super) fn has_result(&self) -> bool {
        !self.rest.is_null()
    }

    /// End of the last interval, in seconds since the start of the run.
    pub(super) fn until(&self) -> Option<f64> {
        self.intervals.last().map(|interval| interval.at_s)
    }

    /// End of the last interval but one, in seconds: the last one may still grow.
    pub(super) fn settled_until(&self) -> Option<f64> {
        self.intervals.get(self.intervals.len().checked_sub(2)?).map(|interval| interval.at_s)
    }

    /// Takes up a result that lacks the intervals which are [settled](Self::settled_until); a whole one has
    /// `count` of them. Returns `false`, and changes nothing, if they do not make a whole one: the run has
    /// joined some of them, or judges again which ones its beginning has.
    pub(super) fn join(&mut self, stat: &Value, text: &str, count: Option<usize>) -> bool {
        let Ok(mut result) = serde_json::from_str::<Value>(text) else { return false };
        let later = taken(&mut result);
        let Some(kept) = self.intervals.len().checked_sub(1) else { return false };
        let is_same = result["steady"]["from_s"] == self.rest["steady"]["from_s"];
        if !is_same || count != Some(kept + later.len()) {
            return false;
        }
        self.intervals.truncate(kept);
        self.intervals.extend(later);
        (self.stat, self.rest, self.kept) = (stat.clone(), result, kept);
        true
    }

    /// Data of an event on one line. A listener that has the figures before gets the intervals that it lacks,
    /// and the number of those that it keeps.
    pub(super) fn event(&self, has_previous: bool) -> Bytes {
        let kept = if has_previous { self.kept } else { 0 };
        let mut data = format!("{{\"stat\":{},\"result\":{}", self.stat, self.rest);
        if self.rest.is_object() {
            // The object is closed again behind its intervals.
            data.pop();
            let comma = if data.ends_with('{') { "" } else { "," };
            data.push_str(comma);
            data.push_str("\"intervals\":[");
            for (number, interval) in self.intervals[kept..].iter().enumerate() {
                if number > 0 {
                    data.push(',');
                }
                data.push_str(&interval.json);
            }
            data.push_str("]}");
        }
        if kept > 0 {
            // Writing to a string cannot fail.
            let _ = write!(data, ",\"kept\":{kept}");
        }
        data.push('}');
        data.into()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result(from: f64, ends: &[f64]) -> Value {
        let intervals: Vec<Value> = ends.iter().map(|at| json!({"at_s": at})).collect();
        json!({"steady": {"from_s": from}, "intervals": intervals})
    }

    fn known() -> Figures {
        Figures::whole(json!(1), result(0.0, &[1.0, 2.0, 2.5]))
    }

    fn event(figures: &Figures, has_previous: bool) -> Value {
        let data = figures.event(has_previous);
        assert!(!data.contains(&b'\n'), "a line would end an event's data");
        serde_json::from_slice(&data).unwrap()
    }

    #[test]
    fn a_result_is_joined_to_the_intervals_that_are_known_or_asked_for_as_a_whole() {
        assert_eq!((known().settled_until(), Figures::default().settled_until()), (Some(2.0), None));
        let mut same = known();
        // The last interval has grown, and there is one more.
        assert!(same.join(&json!(2), &result(0.0, &[3.0, 4.0]).to_string(), Some(4)));
        assert_eq!(event(&same, false), json!({"stat": 2, "result": result(0.0, &[1.0, 2.0, 3.0, 4.0])}));
        for (next, intervals) in [
            // Intervals were joined, are not counted, or are judged in another way.
            (result(0.0, &[3.0, 4.0]), Some(3)),
            (result(0.0, &[3.0, 4.0]), None),
            (result(1.0, &[3.0, 4.0]), Some(4)),
        ] {
            let mut known = known();
            assert!(!known.join(&json!(2), &next.to_string(), intervals));
            assert_eq!(event(&known, false), event(&self::known(), false));
        }
        assert!(!Figures::default().join(&json!(2), "{}", Some(0)));
        assert!(!known().join(&json!(2), "{", None));
    }

    #[test]
    fn a_listener_is_told_only_what_it_lacks() {
        let mut joined = known();
        assert!(joined.join(&json!(2), &result(0.0, &[3.0]).to_string(), Some(3)));
        let lacks = json!({"stat": 2, "result": result(0.0, &[3.0]), "kept": 2});
        assert_eq!(event(&joined, true), lacks);
        // The same from whole results, for a run of a terminal.
        let next = Figures::whole(json!(2), result(0.0, &[1.0, 2.0, 3.0])).after(&known());
        assert_eq!(event(&next, true), lacks);
        assert_eq!(event(&known(), true), event(&known(), false));
        let nothing = Figures::whole(json!(1), Value::Null);
        assert!(!nothing.has_result() && nothing.until().is_none());
        assert_eq!(event(&nothing, true), json!({"stat": 1, "result": null}));
        assert_eq!(event(&Figures::whole(json!(1), json!({})), false)["result"], json!({"intervals": []}));
    }

    /// A second of a run of an hour: how much smaller an event is.
    #[test]
    fn an_event_of_a_long_run_has_the_size_of_its_news() {
        let interval = json!({"at_s": 1.0, "response_time": {"p": {"50": 1_000, "99": 2_000}}});
        let intervals = vec![interval.clone(); 3_600];
        let mut figures = Figures::whole(json!(1), json!({"steady": {}, "intervals": intervals}));
        let next = json!({"steady": {}, "intervals": [interval, interval]}).to_string();
        assert!(figures.join(&json!(2), &next, Some(3_601)));
        let (whole, news) = (figures.event(false).len(), figures.event(true).len());
        assert!(whole > 200_000 && news < 500, "{whole} {news}");
    }
}
