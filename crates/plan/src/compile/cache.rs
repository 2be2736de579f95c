//! Steps that ask a cache.

use std::sync::Arc;

use plimsoll_scenario::{Body, Dialect};

use super::known::Known;
use super::scenario::Part;
use super::{Compiler, is_on};
use crate::document::{CacheSpec, CacheStep, Field, StepSpec};
use crate::draft::Draft;
use crate::{Place, Problem, Protocol};

/// Request of one step to a cache.
struct Wanted {
    method: &'static str,
    /// A template.
    key: String,
    value: Body,
}

impl Compiler<'_, '_> {
    /// Compiles a step that is a request to a cache.
    pub(super) fn cache_step(
        &mut self,
        spec: &StepSpec,
        step: &CacheStep,
        place: Option<Place>,
        part: &mut Part<'_>,
        known: &mut Known,
    ) -> Option<()> {
        let draft = self.cache_request(spec, step, place, part, known);
        self.send(spec, draft, part, known)
    }

    /// Compiles a request to a cache up to its templates.
    fn cache_request(
        &mut self,
        spec: &StepSpec,
        step: &CacheStep,
        place: Option<Place>,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<Draft> {
        let origin = self.origin_of(Protocol::Cache, spec, place, part);
        let wanted = match step.cache.get() {
            Some(cache) => self.wanted(cache, step.cache.place(), part, known),
            None => None,
        };
        let timeout = self.step_timeout(spec);
        let goes_on = self.goes_on(spec);
        self.check_reply(spec);
        let checks = self.expectations(&spec.expect, part, known);
        let extract = self.extractions(&spec.extract, part, known);
        let (origin, wanted) = (origin?, wanted?);
        let shown = match wanted.method {
            "PING" => None,
            _ => Some(wanted.key.as_str()),
        };
        let name = self.step_name(spec, Some(wanted.method), shown, part)?;
        let mut handler = checks?;
        handler.extract = extract?;
        self.check_streamed(&handler, place)?;
        let draft = Draft {
            server: origin.server,
            authority: origin.authority,
            dialect: Dialect::Cache { name: origin.prefix.trim_matches('/').to_owned() },
            variables: self.variables.clone(),
            handler,
            timeout: timeout?,
            goes_on: goes_on?,
            place,
            ..Draft::new(name, wanted.method.to_owned(), wanted.key, wanted.value)
        };
        self.check_draft(draft)
    }

    fn wanted(
        &mut self,
        spec: &CacheSpec,
        place: Option<Place>,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<Wanted> {
        let keys = [("PUT", &spec.put), ("GET", &spec.get), ("DELETE", &spec.delete)];
        let mut given = keys.into_iter().filter(|(_, key)| !key.is_absent());
        let (method, key) = match (given.next(), given.next(), is_on(&spec.ping)) {
            (Some((method, key)), None, false) => (method, Some(key)),
            (None, _, true) => ("PING", None),
            (None, _, false) => {
                let problem = Problem::new("the operation is missing");
                return self
                    .form(place, problem.with_hint("write `cache: {get: key}`, or put, delete, ping"));
            }
            _ => {
                let problem = Problem::new("put, get, delete and ping exclude each other");
                return self.form(place, problem.with_hint("a step does one of them"));
            }
        };
        let value = self.cache_value(spec, method, part, known);
        let key = match key {
            None => String::new(),
            Some(key) => {
                let text = self.text(key)?;
                self.template(&text, key.place(), part, known)?;
                text
            }
        };
        Some(Wanted { method, key, value: value? })
    }

    fn cache_value(
        &mut self,
        spec: &CacheSpec,
        method: &str,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<Body> {
        for (name, field) in [("value", &spec.value), ("value_file", &spec.value_file)] {
            if method != "PUT" && !field.is_absent() {
                let problem = Problem::new(format!("`{name}` has no effect without `put`"));
                return self.form(field.place(), problem.with_hint("only a PUT stores something"));
            }
        }
        if !spec.value.is_absent() && !spec.value_file.is_absent() {
            let problem = Problem::new("`value` and `value_file` exclude each other");
            return self.form(spec.value_file.place(), problem);
        }
        if !spec.value_file.is_absent() {
            return Some(Body::Raw(Arc::from(self.named_file(&spec.value_file)?)));
        }
        if spec.value.is_absent() {
            return Some(Body::None);
        }
        let text = self.text(&spec.value)?;
        self.template(&text, spec.value.place(), part, known)?;
        Some(Body::Text(text.into_bytes()))
    }

    /// A reply of a cache is its value alone.
    fn check_reply(&mut self, spec: &StepSpec) {
        const HINT: &str = "check the body: it is the value";
        if let Some(expect) = spec.expect.get() {
            for (name, place, _) in &expect.headers.0 {
                let problem = Problem::new(format!("`{}`: a cache sends no headers", name.0.escape_debug()));
                self.form::<()>(Some(*place), problem.with_hint(HINT));
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
                let problem = Problem::new(format!("`{name}`: a cache sends no headers"));
                self.form::<()>(place, problem.with_hint(HINT));
            }
        }
    }
}

impl CacheSpec {
    /// The operation and the key as they are written.
    pub(crate) fn title(&self) -> Option<String> {
        let keys = [("PUT", &self.put), ("GET", &self.get), ("DELETE", &self.delete)];
        let keyed = keys.into_iter().find_map(|(method, key): (_, &Field<_>)| Some((method, key.get()?)));
        match keyed {
            Some((method, key)) => Some(format!("{method} {}", key.as_str())),
            None => is_on(&self.ping).then(|| "PING".to_owned()),
        }
    }
}
