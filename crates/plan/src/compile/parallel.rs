//! Requests that are sent at once.

use plimsoll_document::{ParallelStep, Problem};
use plimsoll_scenario::Op;

use super::Compiler;
use super::known::{Known, Last};
use super::scenario::Part;

impl Compiler<'_, '_> {
    /// `parallel`: requests that are sent at once.
    pub(super) fn parallel_step(
        &mut self,
        step: &ParallelStep,
        part: &mut Part<'_>,
        known: &mut Known,
    ) -> Option<()> {
        let before = known.clone();
        let start = part.drafts.len() as u32;
        let mut complete = Some(());
        for field in &step.parallel {
            let Some(spec) = field.get() else {
                complete = None;
                continue;
            };
            let request = spec.request().filter(|request| request.address.given_url().is_some());
            let Some(request) = request else {
                let problem = Problem::new("only requests can be sent at once");
                complete = self
                    .form(field.place(), problem.with_hint("put other steps before or behind `parallel`"));
                continue;
            };
            let company = [
                ("think", spec.think.place()),
                ("record", spec.record.0.first().map(|(_, place, _)| *place)),
                ("clear_cookies", request.clear_cookies.place()),
                ("same_url", request.address.same_url.place()),
            ];
            if let Some((name, place)) = company.into_iter().find(|(_, place)| place.is_some()) {
                let problem =
                    Problem::new(format!("`{name}` is not allowed in requests that are sent at once"));
                complete = self.form(place, problem.with_hint("put it before or behind `parallel`"));
                continue;
            }
            // Parallel requests do not see values from each other's responses.
            let mut own = before.clone();
            let draft = self.request(spec, request, field.place(), part, &own);
            self.extracted(spec, &mut own);
            known.both(&own);
            match draft {
                Some(draft) => {
                    part.add_draft(draft, known);
                }
                None => complete = None,
            }
        }
        let end = part.drafts.len() as u32;
        complete?;
        if end - start > 1 {
            known.last = Last::Several;
            part.send(Op::Fork(start..end));
        } else {
            part.send(Op::Send(start));
        }
        Some(())
    }
}
