//! Steps whose bodies are batches of synthesized data.

use std::sync::Arc;

use plimsoll_document::{BodyKey, BodyValue, Place, Problem, RequestStep};
use plimsoll_plan::{BodyContent, BodyContext, BodyPart, body_key, body_value};
use plimsoll_scenario::{Bodies, Body, BodyMaker, BodySource, BodySupply, Judge, JudgeSpec};
use plimsoll_synth::{Format, Spec, Synthesizer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::acknowledgement::{BulkJudge, OtlpJudge};

/// Batches of a spec that is known to be right.
#[derive(Debug)]
struct Batches(Spec);

impl BodySource for Batches {
    fn open(&self, seed: u64) -> Box<dyn BodyMaker> {
        Box::new(Maker(Synthesizer::new(&self.0, seed).expect("the spec was validated with the plan")))
    }

    fn span_ns(&self) -> u64 {
        self.0.span()
    }

    fn start_ns(&self) -> Option<u64> {
        self.0.start_ns()
    }
}

/// Generator of the batches.
struct Maker(Synthesizer);

impl BodyMaker for Maker {
    fn make(&mut self, number: u64, unix_ns: u64, out: &mut Vec<u8>) {
        self.0.batch(number, unix_ns, out);
    }
}

/// Key of bodies that are another batch each time, with the headers that its receivers want.
pub static BATCH: BodyKey = body_key::<BatchSpec>(
    "batch",
    "Body as a batch of synthesized metrics, logs, traces or events, another one each time, with the headers \
     that its format needs: what `plimsoll ingest --print-plan` shows.",
);

/// Settings of the batches, which the synthesizer reads.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
struct BatchSpec(Value);

/// Returns the value of [`BATCH`] for batches of these settings.
pub(super) fn batch(spec: &Spec) -> Arc<dyn BodyValue> {
    body_value(BatchSpec(serde_json::to_value(spec).unwrap_or_default()))
}

impl BodyPart for BatchSpec {
    fn compile(
        &self,
        request: &RequestStep,
        place: Option<Place>,
        context: &mut dyn BodyContext,
    ) -> Option<BodyContent> {
        let batch: Spec = match serde_json::from_value(self.0.clone()) {
            Ok(batch) => batch,
            Err(error) => return context.fail(place, Problem::new(format!("`batch`: {error}"))),
        };
        if let Err(problems) = batch.validate() {
            for problem in problems {
                let message = format!("`batch.{}`: {problem}", problem.field);
                context.report(place, Problem::new(message).with_hint(problem.hint));
            }
            return None;
        }
        let path = request.address.urls().into_iter().find_map(|(_, field)| field.get());
        if let Some(Err(problem)) = path.map(|path| batch.check_path(path.as_str())) {
            let message = format!("`batch.{}`: {problem}", problem.field);
            return context.fail(place, Problem::new(message).with_hint(problem.hint));
        }
        let Some(supply) = context.next_supply() else {
            return context.fail(place, Problem::new("the plan has more than 65536 steps with `batch`"));
        };
        // All settings, including defaults: equal texts are equal bodies.
        let of = serde_json::to_string(&batch).ok()?.into();
        let fixed =
            [("Content-Type", Some(batch.content_type())), ("Content-Encoding", batch.content_encoding())];
        let fixed = fixed.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let headers = fixed.chain(batch.headers().iter().copied());
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let records = batch.batch_size;
        // For these, a good status is not enough.
        let judge: Option<Arc<dyn Judge>> = match batch.format {
            Format::ElasticBulk => Some(Arc::new(BulkJudge::new().ok()?)),
            Format::OtlpProtobuf => Some(Arc::new(OtlpJudge)),
            _ => None,
        };
        let judge = judge.map(|judge| JudgeSpec { of: batch.format.name().into(), judge, pending: None });
        context.add_supply(BodySupply {
            records,
            bodies: Bodies::Fresh(Arc::new(Batches(batch))),
            stock: Arc::from([]),
        });
        Some(BodyContent {
            body: Body::Supplied { supply, inquiry: false, of },
            headers,
            judge,
            stream: None,
        })
    }
}
