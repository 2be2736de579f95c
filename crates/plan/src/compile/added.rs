//! Steps that are requests of other protocols than HTTP, by keys that other crates add.

use plimsoll_document::{Added, AddedStep, Place, Problem, StepSpec};
use plimsoll_scenario::{Body, Dialect};

use super::Compiler;
use super::known::Known;
use super::scenario::Part;
use crate::draft::Draft;
use crate::parts::step_part;
use crate::{InTurnProtocol, Protocol, StepRequest};

impl Compiler<'_, '_> {
    /// Compiles a step that is a request of a protocol of another crate.
    pub(super) fn added_step(
        &mut self,
        spec: &StepSpec,
        step: &AddedStep,
        place: Option<Place>,
        part: &mut Part<'_>,
        known: &mut Known,
    ) -> Option<()> {
        let draft = self.added_request(spec, step, place, part, known);
        self.send(spec, draft, part, known)
    }

    /// Compiles a request of a protocol of another crate up to its templates.
    fn added_request(
        &mut self,
        spec: &StepSpec,
        step: &AddedStep,
        place: Option<Place>,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<Draft> {
        let Added { value, .. } = step.first()?;
        let request = step_part(&**value.get()?)?;
        let protocol = request.protocol();
        let origin = self.origin_of(Protocol::InTurn(protocol), spec, place, part);
        let path = origin.as_ref().map_or("", |origin| &origin.prefix).to_owned();
        let request = request.compile(&path, value.place(), self);
        let request = request.and_then(|request| self.with_known(request, part, known));
        let timeout = self.step_timeout(spec);
        let goes_on = self.goes_on(spec);
        self.check_answer(protocol, spec);
        let checks = self.expectations(&spec.expect, part, known);
        let extract = self.extractions(&spec.extract, part, known);
        let (origin, request) = (origin?, request?);
        let name = self.step_name(spec, Some(&request.method), request.shown.as_deref(), part)?;
        let mut handler = checks?;
        handler.extract = extract?;
        self.check_streamed(&handler, place)?;
        let draft = Draft {
            server: origin.server,
            authority: origin.authority,
            dialect: Dialect::Framed(request.framing),
            variables: self.variables.clone(),
            handler,
            timeout: timeout?,
            goes_on: goes_on?,
            place,
            ..Draft::new(name, request.method, request.target, request.body)
        };
        self.check_draft(draft)
    }

    /// Returns the request if the variables that it reads are known.
    fn with_known(
        &mut self,
        request: StepRequest,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<StepRequest> {
        let target = self.template(&request.target, request.target_place, part, known);
        let body = match &request.body {
            Body::Text(text) => {
                self.template(&String::from_utf8_lossy(text), request.body_place, part, known).map(drop)
            }
            _ => Some(()),
        };
        target.map(drop).and(body)?;
        Some(request)
    }

    /// Reports checks and extractions of what answers of the protocol do not have: they are their content
    /// alone.
    fn check_answer(&mut self, protocol: &'static InTurnProtocol, spec: &StepSpec) {
        let noun = Protocol::InTurn(protocol).row().map_or(protocol.name, |row| row.noun);
        let missing = |name: &str| {
            let problem = Problem::new(format!("`{}`: {noun} sends no headers", name.escape_debug()));
            problem.with_hint(protocol.content_hint)
        };
        if let Some(expect) = spec.expect.get() {
            for (name, place, _) in &expect.headers.0 {
                self.form::<()>(Some(*place), missing(&name.0));
            }
        }
        for (_, _, field) in &spec.extract.0 {
            let Some(extract) = field.get() else { continue };
            let foreign: [(&str, Option<Place>); 3] = [
                ("header", extract.header.place()),
                ("request_header", extract.request_header.place()),
                ("cookie", extract.cookie.place()),
            ];
            for (name, place) in foreign.into_iter().filter(|(_, place)| place.is_some()) {
                self.form::<()>(place, missing(name));
            }
        }
    }
}
