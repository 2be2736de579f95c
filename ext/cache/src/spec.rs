//! Requests to a cache as plans have them.

use std::sync::Arc;

use plimsoll_document::{Field, Place, Problem, Text};
use plimsoll_plan::{BodyContext, InTurnProtocol, StepPart, StepRequest};
use plimsoll_scenario::Body;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::PROTOCOL;
use crate::frame::CacheFraming;

/// A request to a cache: exactly one of put, get, delete and ping.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct CacheSpec {
    /// Store a value under this key; a template.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub put: Field<Text>,
    /// The value of this key; a template. One that is not there has the status 404.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub get: Field<Text>,
    /// Forget this key; a template.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub delete: Field<Text>,
    /// Check that the cache answers.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub ping: Field<bool>,
    /// Value to store; a template. Default: nothing.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub value: Field<Text>,
    /// File with the value to store, sent as it is.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub value_file: Field<Text>,
}

impl CacheSpec {
    /// The operations that have a key, with their keys.
    const fn keyed(&self) -> [(&'static str, &Field<Text>); 3] {
        [("PUT", &self.put), ("GET", &self.get), ("DELETE", &self.delete)]
    }

    fn pings(&self) -> bool {
        self.ping.get().copied().unwrap_or(false)
    }

    /// Returns the operation and its key, which a PING has not.
    fn operation(
        &self,
        place: Option<Place>,
        context: &mut dyn BodyContext,
    ) -> Option<(&'static str, Option<&Field<Text>>)> {
        let mut given = self.keyed().into_iter().filter(|(_, key)| !key.is_absent());
        match (given.next(), given.next(), self.pings()) {
            (Some((method, key)), None, false) => Some((method, Some(key))),
            (None, _, true) => Some(("PING", None)),
            (None, _, false) => {
                let problem = Problem::new("the operation is missing");
                context.fail_form(place, problem.with_hint("write `cache: {get: key}`, or put, delete, ping"))
            }
            _ => {
                let problem = Problem::new("put, get, delete and ping exclude each other");
                context.fail_form(place, problem.with_hint("a step does one of them"))
            }
        }
    }

    /// Returns the value to store.
    fn stored(&self, method: &str, context: &mut dyn BodyContext) -> Option<Body> {
        for (name, field) in [("value", &self.value), ("value_file", &self.value_file)] {
            if method != "PUT" && !field.is_absent() {
                let problem = Problem::new(format!("`{name}` has no effect without `put`"));
                return context.fail_form(field.place(), problem.with_hint("only a PUT stores something"));
            }
        }
        if !self.value.is_absent() && !self.value_file.is_absent() {
            let problem = Problem::new("`value` and `value_file` exclude each other");
            return context.fail_form(self.value_file.place(), problem);
        }
        if !self.value_file.is_absent() {
            return Some(Body::Raw(Arc::from(context.file(&self.value_file)?)));
        }
        if self.value.is_absent() {
            return Some(Body::None);
        }
        let (text, _) = context.template(self.value.get()?.as_str(), self.value.place())?;
        Some(Body::Text(text.into_bytes()))
    }
}

impl StepPart for CacheSpec {
    fn protocol(&self) -> &'static InTurnProtocol {
        &PROTOCOL
    }

    fn title(&self) -> Option<String> {
        let keyed = self.keyed().into_iter().find_map(|(method, key)| Some((method, key.get()?)));
        match keyed {
            Some((method, key)) => Some(format!("{method} {}", key.as_str())),
            None => self.pings().then(|| "PING".to_owned()),
        }
    }

    fn compile(
        &self,
        path: &str,
        place: Option<Place>,
        context: &mut dyn BodyContext,
    ) -> Option<StepRequest> {
        let (method, key) = self.operation(place, context)?;
        let body = self.stored(method, context);
        let target = match key {
            None => String::new(),
            Some(key) => context.template(key.get()?.as_str(), key.place())?.0,
        };
        Some(StepRequest {
            method: method.to_owned(),
            shown: key.map(|_| target.clone()),
            target,
            target_place: key.and_then(Field::place),
            body: body?,
            body_place: self.value.place(),
            framing: Arc::new(CacheFraming { name: path.trim_matches('/').to_owned() }),
        })
    }
}
