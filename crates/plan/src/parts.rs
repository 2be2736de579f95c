//! Keys of plan files that crates above this one add.
//!
//! A [`BodyKey`] is a key of a request whose value becomes the body, a [`StepKey`] one of a step whose value
//! becomes a request of another protocol than HTTP. This crate reads, checks, describes and writes such
//! values with those of its own keys, and knows neither what is sent nor how answers are read and judged.
//! [`PlanParts`] holds the keys and protocols of a program; they travel with the flags
//! ([`PlanPatch::parts`](crate::PlanPatch::parts)).

use std::cell::Cell;
use std::fmt::{self, Display};
use std::io;
use std::sync::Arc;

use plimsoll_core::{ErrorRow, Nanos};
use plimsoll_scenario::{Body, BodySupply, EventStream, Framing, Judge, JudgeSpec, Template};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeOwned, DeserializeSeed};
use serde::{Deserialize as _, Deserializer, Serialize};

use crate::document::{Field, RequestStep, Text};
use crate::{InTurnProtocol, Place, Problem};

/// Value of a [`BodyKey`] as it stands in a plan. Two are equal if they are written alike.
pub trait BodyPart: fmt::Debug + erased_serde::Serialize + Send + Sync {
    /// Compiles the body of a request that has the value, at this place. Problems are reported to the
    /// context, and nothing is returned then.
    fn compile(
        &self,
        request: &RequestStep,
        place: Option<Place>,
        context: &mut dyn BodyContext,
    ) -> Option<BodyContent>;

    /// Returns the variable that the answer to the body sets.
    fn variable(&self) -> Option<&Text> {
        None
    }

    /// Returns the deadline that these header fields of the request tell the server, if they tell one: the
    /// client waits no longer, either.
    fn deadline(&self, headers: &[(String, String)]) -> Option<Nanos> {
        let _ = headers;
        None
    }

    /// Returns `true` if the body brings a judge that knows when its answer has come, so that a step may
    /// `poll` without a condition.
    fn is_judged(&self) -> bool {
        false
    }
}

erased_serde::serialize_trait_object!(BodyPart);

/// Value of a [`StepKey`] as it stands in a plan. Two are equal if they are written alike.
pub trait StepPart: fmt::Debug + erased_serde::Serialize + Send + Sync {
    /// Returns the protocol of the request.
    fn protocol(&self) -> &'static InTurnProtocol;

    /// Returns the name of the request in reports, unless it is known only during the run.
    fn title(&self) -> Option<String>;

    /// Compiles the request of a step that has the value, at this place, to a server whose URL has this path.
    /// Problems are reported to the context, and nothing is returned then.
    fn compile(&self, path: &str, place: Option<Place>, context: &mut dyn BodyContext)
    -> Option<StepRequest>;
}

erased_serde::serialize_trait_object!(StepPart);

/// The request of a [`StepPart`].
#[derive(Clone, Debug)]
pub struct StepRequest {
    /// The operation, as it is shown.
    pub method: String,
    /// Subject of the operation, such as a key; a template.
    pub target: String,
    /// Place of the target, for problems with its variables.
    pub target_place: Option<Place>,
    /// The part of the target that is shown behind the method, if the step has no name.
    pub shown: Option<String>,
    /// Content.
    pub body: Body,
    /// Place of the content.
    pub body_place: Option<Place>,
    /// The protocol, with its settings for this request.
    pub framing: Arc<dyn Framing>,
}

/// Key of a step whose value another crate reads and compiles to a `P`.
#[derive(Debug)]
pub struct AddedKey<P: ?Sized> {
    key: &'static str,
    description: &'static str,
    schema: fn(&mut SchemaGenerator) -> Schema,
    read: fn(&mut dyn erased_serde::Deserializer<'_>) -> Result<PartField<P>, erased_serde::Error>,
}

/// Key of a request whose value becomes the body of it.
pub type BodyKey = AddedKey<dyn BodyPart>;

/// Key of a step whose value becomes a request of another protocol than HTTP.
pub type StepKey = AddedKey<dyn StepPart>;

/// Value of an [`AddedKey`], or the place of one that is wrong.
pub(crate) type PartField<P> = Field<Arc<P>>;

impl AddedKey<dyn BodyPart> {
    /// A key whose values are of the type `T`. The description becomes a part of the schema of plans: whole
    /// sentences.
    pub const fn of<T>(key: &'static str, description: &'static str) -> Self
    where
        T: BodyPart + DeserializeOwned + JsonSchema + 'static,
    {
        Self {
            key,
            description,
            schema: |generator| generator.subschema_for::<T>(),
            read: |value| read::<T, dyn BodyPart>(value, |part| Arc::new(part)),
        }
    }
}

impl AddedKey<dyn StepPart> {
    /// A key whose values are of the type `T`. The description becomes a part of the schema of plans: whole
    /// sentences.
    pub const fn of<T>(key: &'static str, description: &'static str) -> Self
    where
        T: StepPart + DeserializeOwned + JsonSchema + 'static,
    {
        Self {
            key,
            description,
            schema: |generator| generator.subschema_for::<T>(),
            read: |value| read::<T, dyn StepPart>(value, |part| Arc::new(part)),
        }
    }
}

/// Reads the value of a key.
fn read<T: DeserializeOwned, P: ?Sized>(
    value: &mut dyn erased_serde::Deserializer<'_>,
    shared: fn(T) -> Arc<P>,
) -> Result<PartField<P>, erased_serde::Error> {
    Ok(match Field::<T>::deserialize(value)? {
        Field::Absent => Field::Absent,
        Field::Bad(place) => Field::Bad(place),
        Field::Given(part, place) => Field::Given(shared(part), place),
    })
}

impl<P: ?Sized> AddedKey<P> {
    /// Returns the key as it is written.
    pub fn key(&self) -> &'static str {
        self.key
    }

    /// Returns the schema of the values, with the description.
    pub(crate) fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        let mut schema = (self.schema)(generator);
        schema.insert("description".to_owned(), self.description.into());
        schema
    }
}

impl<P: ?Sized> PartialEq for AddedKey<P> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<P: ?Sized> Eq for AddedKey<P> {}

/// Reads a value of the key.
impl<'de, P: ?Sized> DeserializeSeed<'de> for &'static AddedKey<P> {
    type Value = PartField<P>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<PartField<P>, D::Error> {
        let mut erased = <dyn erased_serde::Deserializer<'_>>::erase(deserializer);
        (self.read)(&mut erased).map_err(serde::de::Error::custom)
    }
}

/// Kind of the values of keys: where the keys of the kind are found.
pub trait PartKind: fmt::Debug + Serialize + Send + Sync {
    /// Returns the keys of the kind.
    fn keys(parts: PlanParts) -> &'static [&'static AddedKey<Self>];
}

impl PartKind for dyn BodyPart {
    fn keys(parts: PlanParts) -> &'static [&'static AddedKey<Self>] {
        parts.bodies
    }
}

impl PartKind for dyn StepPart {
    fn keys(parts: PlanParts) -> &'static [&'static AddedKey<Self>] {
        parts.steps
    }
}

/// Keys and protocols that a program adds to plan files, and words of thresholds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanParts {
    /// Keys of bodies, in the order in which they are written and described.
    pub bodies: &'static [&'static BodyKey],
    /// Keys of requests of other protocols than HTTP, in that order.
    pub steps: &'static [&'static StepKey],
    /// Protocols that URLs may name.
    pub protocols: &'static [&'static InTurnProtocol],
    /// Classes of errors that the judges of these bodies have beside those of the core. The program
    /// [installs](plimsoll_core::error_row::install) them, too, for results that it reads.
    pub errors: &'static [&'static ErrorRow],
}

thread_local! {
    /// Parts of the plan that is being read or described. Serde and schemars hand no context to the types of
    /// a document.
    static CURRENT: Cell<PlanParts> = const { Cell::new(PlanParts::NONE) };
}

impl PlanParts {
    /// No keys beside those of this crate.
    pub const NONE: Self = Self { bodies: &[], steps: &[], protocols: &[], errors: &[] };

    /// Calls `work` with these as the [current](Self::current) ones.
    pub(crate) fn within<T>(self, work: impl FnOnce() -> T) -> T {
        struct Restore(PlanParts);
        impl Drop for Restore {
            fn drop(&mut self) {
                CURRENT.set(self.0);
            }
        }
        let _restore = Restore(CURRENT.replace(self));
        work()
    }

    /// Returns the parts of the plan that this thread reads or describes.
    pub(crate) fn current() -> Self {
        CURRENT.get()
    }

    /// Returns the keys of bodies.
    pub(crate) fn body_keys(self) -> impl Iterator<Item = &'static str> {
        self.bodies.iter().map(|body| body.key)
    }

    /// Returns the keys of requests of other protocols.
    pub(crate) fn request_keys(self) -> impl Iterator<Item = &'static str> {
        self.steps.iter().map(|step| step.key)
    }

    /// Returns the keys of steps.
    pub(crate) fn step_keys(self) -> impl Iterator<Item = &'static str> {
        self.request_keys().chain(self.body_keys())
    }
}

/// A body, with its headers and its judge.
#[derive(Clone, Debug)]
pub struct BodyContent {
    /// The body.
    pub body: Body,
    /// Names and values of headers, which those of the step replace.
    pub headers: Vec<(String, String)>,
    /// Judge of the responses to it.
    pub judge: Option<JudgeSpec>,
    /// The stream that the responses are, if they are one.
    pub stream: Option<EventStream>,
}

/// The compilation of a plan, as far as a [`BodyPart`] needs it.
pub trait BodyContext {
    /// Reports a problem at a place.
    fn report(&mut self, place: Option<Place>, problem: Problem);

    /// Reports a problem with the form of the plan, unless its form was found wrong before: then this is
    /// reported already, or follows from it.
    fn report_form(&mut self, place: Option<Place>, problem: Problem);

    /// Returns a text that is not a template, with the environment's values filled in. `None`: it is absent
    /// or wrong, and the latter was reported.
    fn plain(&mut self, field: &Field<Text>) -> Option<String>;

    /// Reads a file that the plan names. `None`: it cannot be read, and that was reported.
    fn file(&mut self, field: &Field<Text>) -> Option<Vec<u8>>;

    /// Reads a file that another one of the plan names, by its path from the plan's folder.
    ///
    /// # Errors
    /// Errors of the system, such as a missing file. They are not reported as problems.
    fn imported(&self, path: &str) -> io::Result<Vec<u8>>;

    /// Returns a text that is a template, with the environment's values filled in, and the template. `None`:
    /// it is wrong, and that was reported.
    fn template(&mut self, text: &str, place: Option<Place>) -> Option<(String, Template)>;

    /// Reports whether the requests of the plan are sent over HTTP/2.
    fn speaks_http2(&self) -> bool;

    /// Returns the number of a variable of the plan.
    fn variable(&self, name: &str) -> Option<u16>;

    /// Returns the judges of the steps before.
    fn judges(&self) -> &[Arc<dyn Judge>];

    /// Returns the number that the next supply gets; `None` if the plan has as many as there may be.
    fn next_supply(&self) -> Option<u16>;

    /// Adds a supply to the plan.
    fn add_supply(&mut self, supply: BodySupply);
}

impl dyn BodyContext + '_ {
    /// Reports a problem at a place; returns `None` for `return context.fail(…)`.
    pub fn fail<T>(&mut self, place: Option<Place>, problem: Problem) -> Option<T> {
        self.report(place, problem);
        None
    }

    /// [Reports](BodyContext::report_form) a problem with the form of the plan, in the same manner.
    pub fn fail_form<T>(&mut self, place: Option<Place>, problem: Problem) -> Option<T> {
        self.report_form(place, problem);
        None
    }

    /// Parses a value, if it is there. `None`: it is, and is wrong.
    pub fn read<T, E: Display>(
        &mut self,
        field: &Field<Text>,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<Option<T>> {
        if field.is_absent() {
            return Some(None);
        }
        let text = self.plain(field)?;
        match parse(text.trim()) {
            Ok(value) => Some(Some(value)),
            Err(error) => self.fail(field.place(), Problem::from_line(&error.to_string())),
        }
    }
}
