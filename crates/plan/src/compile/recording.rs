//! Metrics of the plan's own, and the steps that record values of them.

use plimsoll_core::suggest;
use plimsoll_metrics::{MetricSpec, SeriesKind};
use plimsoll_scenario::{Op, Recording, Template};

use super::Compiler;
use super::around::Role;
use super::known::Known;
use super::scenario::Part;
use super::variables::is_name;
use plimsoll_document::{Field, Keyed, Place, Problem, RecordSpec, StepSpec, Text};

/// Most metrics of a plan.
const MOST_METRICS: usize = 200;
/// Longest unit of a metric, in characters.
const LONGEST_UNIT: usize = 20;

/// A metric, while the plan is compiled.
pub(super) struct MetricDraft {
    spec: MetricSpec,
    /// The place at which it is declared; `None` if it is only recorded.
    declared: Option<Place>,
    is_recorded: bool,
}

impl Compiler<'_, '_> {
    /// Collects the metrics that the plan declares.
    pub(super) fn name_metrics(&mut self) {
        let loaded = self.loaded;
        if self.around.role != Role::Load {
            return;
        }
        for (name, place, field) in &loaded.document.metrics.0 {
            if let Some(problem) = wrong_name("metric", &name.0) {
                self.report(Some(*place), problem);
                continue;
            }
            let Some(spec) = field.get() else { continue };
            let kind = self.read(&spec.kind, parse_kind).flatten().unwrap_or_default();
            let unit = self.plain(&spec.unit).unwrap_or_default();
            self.check_name(&unit, spec.unit.place());
            if unit.chars().count() > LONGEST_UNIT {
                let problem = Problem::new(format!("a unit has at most {LONGEST_UNIT} characters"));
                self.report(spec.unit.place(), problem.with_hint("write a symbol, such as `EUR`"));
            }
            let spec = MetricSpec { name: name.0.clone(), kind, unit };
            self.metrics.push(MetricDraft { spec, declared: Some(*place), is_recorded: false });
        }
    }

    /// The metrics, once all steps were compiled. Reports those that no step records.
    pub(super) fn finish_metrics(&mut self) -> Vec<MetricSpec> {
        let metrics = std::mem::take(&mut self.metrics);
        let undeclared = || metrics.iter().filter(|metric| metric.declared.is_none());
        let is_missing =
            |metric: &&MetricDraft| !metric.is_recorded && !self.script_may_record(&metric.spec.name);
        let missing: Vec<&MetricDraft> = metrics.iter().filter(is_missing).collect();
        for MetricDraft { spec, declared, .. } in missing {
            let near = suggest::closest(&spec.name, undeclared().map(|metric| metric.spec.name.as_str()));
            let problem = Problem::new(format!("no step records the metric `{}`", spec.name));
            let hint = match near {
                Some(near) => format!("`{near}` is recorded: did you mean that?"),
                None => format!("write `record: {{{}: VALUE}}` in a step", spec.name),
            };
            self.form::<()>(*declared, problem.with_hint(hint));
        }
        metrics.into_iter().map(|metric| metric.spec).collect()
    }

    /// A step that records values, and perhaps thinks.
    pub(super) fn record_step(
        &mut self,
        spec: &StepSpec,
        part: &mut Part<'_>,
        known: &mut Known,
    ) -> Option<()> {
        let recordings = self.record(&spec.record, part, known);
        let pause = if spec.think.is_absent() { Some(None) } else { self.pause(&spec.think).map(Some) };
        part.ops.extend(recordings?);
        part.ops.extend(pause?);
        Some(())
    }

    /// The instructions of `record` in a request: behind the answer.
    pub(super) fn recordings(
        &mut self,
        spec: &StepSpec,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<Vec<Op>> {
        let place = spec.record.0.first().map(|(_, place, _)| *place);
        if place.is_some() && spec.on_failure.get().is_some_and(|text| text.as_str() == "continue") {
            let problem = Problem::new("`record` and `on_failure: continue` exclude each other");
            let hint = "write `record` as a step of its own: it records whether or not the request failed";
            return self.form(place, problem.with_hint(hint));
        }
        self.record(&spec.record, part, known)
    }

    /// The instructions of `record`.
    pub(super) fn record(
        &mut self,
        record: &Keyed<Field<RecordSpec>>,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<Vec<Op>> {
        let place = record.0.first().map(|(_, place, _)| *place);
        if place.is_some() && self.around.role != Role::Load {
            let problem = Problem::new("`record` has no effect here: metrics are those of the load");
            return self.form(place, problem.with_hint("record values in the steps of scenarios"));
        }
        let mut all = Vec::new();
        for (name, place, field) in &record.0 {
            let metric = self.metric(name, *place);
            let recording = field.get().and_then(|spec| self.recording(spec, *place, part, known));
            let op = metric
                .zip(recording)
                .map(|(metric, (value, tags))| Op::Record(Box::new(Recording { metric, value, tags })));
            all.push(op);
        }
        all.into_iter().collect()
    }

    /// The number of a metric that a step records; one that is not declared is a trend.
    fn metric(&mut self, name: &Text, place: Place) -> Option<u16> {
        let known = self.metrics.iter().position(|metric| metric.spec.name == name.0);
        let number = match known {
            Some(number) => number,
            None => {
                if let Some(problem) = wrong_name("metric", &name.0) {
                    return self.fail(Some(place), problem);
                }
                let spec = MetricSpec { name: name.0.clone(), ..MetricSpec::default() };
                self.metrics.push(MetricDraft { spec, declared: None, is_recorded: true });
                if self.metrics.len() == MOST_METRICS + 1 {
                    let problem = Problem::new(format!("there are more than {MOST_METRICS} metrics"));
                    return self.fail(Some(place), problem.with_hint("tell parts of one metric by `tags`"));
                }
                self.metrics.len() - 1
            }
        };
        self.metrics[number].is_recorded = true;
        u16::try_from(number).ok()
    }

    /// The value to record, and its tags in the order of their names.
    fn recording(
        &mut self,
        spec: &RecordSpec,
        place: Place,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<(Template, Vec<(String, Template)>)> {
        if spec.value.is_absent() {
            let problem = Problem::new("the value to record is missing");
            return self.form(Some(place), problem.with_hint("write it behind `value`: `value: ${total}`"));
        }
        let value = self.shown_template(&spec.value, "a recorded value", part, known);
        let mut tags = Vec::new();
        for (name, place, field) in &spec.tags.0 {
            if let Some(problem) = wrong_name("tag", &name.0) {
                self.report(Some(*place), problem);
                tags.push(None);
                continue;
            }
            let value = self.shown_template(field, "a tag", part, known);
            tags.push(value.map(|value| (name.0.clone(), value)));
        }
        let mut tags = tags.into_iter().collect::<Option<Vec<_>>>()?;
        tags.sort_by(|(one, _), (other, _)| one.cmp(other));
        Some((value?, tags))
    }

    /// A template whose text is shown in reports.
    fn shown_template(
        &mut self,
        field: &Field<Text>,
        what: &str,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<Template> {
        let text = self.text(field)?;
        self.without_secrets(&text, field.place(), what)?;
        self.template(&text, field.place(), part, known)
    }
}

/// Returns the problem with the name of a metric or a tag, if there is one: thresholds name both.
fn wrong_name(what: &str, name: &str) -> Option<Problem> {
    let problem = Problem::new(format!("`{}` cannot be the name of a {what}", name.escape_debug()));
    (!is_name(name))
        .then(|| problem.with_hint("a name begins with a letter and has letters, digits, `_`, `-` and `.`"))
}

fn parse_kind(text: &str) -> Result<SeriesKind, String> {
    SeriesKind::from_name(text).ok_or_else(|| {
        let names = SeriesKind::ALL.map(SeriesKind::name);
        match suggest::closest(text, names) {
            Some(near) => format!("`{text}` is not a kind of metric: write `{near}`"),
            None => format!("`{text}` is not a kind of metric: write one of {}", names.join(", ")),
        }
    })
}
