//! Steps whose bodies are batches of synthesized data.

use std::sync::Arc;

use plimsoll_scenario::{Bodies, Body, BodyMaker, BodySource, BodySupply, Judge, JudgeSpec};
use plimsoll_synth::{Format, Spec, Synthesizer};

use super::Compiler;
use super::body::Content;
use crate::acknowledgement::{BulkJudge, OtlpJudge};
use crate::document::RequestStep;
use crate::{Place, Problem};

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

impl Compiler<'_, '_> {
    /// A body that is another batch each time, and the headers that its receivers want.
    pub(super) fn batch(&mut self, request: &RequestStep, place: Option<Place>) -> Option<Content> {
        if !request.script.is_absent() {
            let problem = Problem::new("`batch` and `script` exclude each other");
            return self.fail(place, problem.with_hint("leave one of them out: a request has one body"));
        }
        let batch: Spec = match serde_json::from_value(request.body.batch.get()?.clone()) {
            Ok(batch) => batch,
            Err(error) => return self.fail(place, Problem::new(format!("`batch`: {error}"))),
        };
        if let Err(problems) = batch.validate() {
            for problem in problems {
                let message = format!("`batch.{}`: {problem}", problem.field);
                self.report(place, Problem::new(message).with_hint(problem.hint));
            }
            return None;
        }
        let path = request.address.urls().into_iter().find_map(|(_, field)| field.get());
        if let Some(Err(problem)) = path.map(|path| batch.check_path(path.as_str())) {
            let message = format!("`batch.{}`: {problem}", problem.field);
            return self.fail(place, Problem::new(message).with_hint(problem.hint));
        }
        let Ok(supply) = u16::try_from(self.supplies.len()) else {
            return self.fail(place, Problem::new("the plan has more than 65536 steps with `batch`"));
        };
        // All settings, those that were left out, too: equal texts are equal bodies.
        let of = serde_json::to_string(&batch).ok()?.into();
        let fixed =
            [("Content-Type", Some(batch.content_type())), ("Content-Encoding", batch.content_encoding())];
        let fixed = fixed.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let headers = fixed.chain(batch.headers().iter().copied());
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let records = batch.batch_size;
        // A good status is not all that these say.
        let judge: Option<Arc<dyn Judge>> = match batch.format {
            Format::ElasticBulk => Some(Arc::new(BulkJudge::new().ok()?)),
            Format::OtlpProtobuf => Some(Arc::new(OtlpJudge)),
            _ => None,
        };
        let judge = judge.map(|judge| JudgeSpec { of: batch.format.name().into(), judge, pending: None });
        self.supplies.push(BodySupply {
            records,
            bodies: Bodies::Fresh(Arc::new(Batches(batch))),
            stock: Arc::from([]),
        });
        Some(Content { body: Body::Supplied { supply, inquiry: false, of }, headers, judge })
    }
}
