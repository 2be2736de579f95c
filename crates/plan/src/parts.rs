//! Keys of plan files that crates above this one add, compiled.
//!
//! The value of a [`body_key`] is a [`BodyPart`], that of a [`step_key`] a [`StepPart`]. The reader of plan
//! files knows them as values that can be written; this crate has each compile its body or request, and knows
//! neither what is sent nor how answers are read and judged. [`PlanParts`] holds the keys and protocols of a
//! program; they travel with the flags ([`PlanPatch::parts`](crate::PlanPatch::parts)).

use std::any::Any;
use std::cell::Cell;
use std::fmt::{self, Display};
use std::io;
use std::sync::Arc;

use plimsoll_core::{ErrorRow, Nanos};
use plimsoll_document::{
    BodyKey, BodySpec, BodyValue, DocumentParts, Field, Place, Problem, RequestStep, StepKey, StepValue,
    Text, ValueField,
};
use plimsoll_metrics::Threshold;
use plimsoll_scenario::{Body, BodySupply, EventStream, Framing, Judge, JudgeSpec, Template};
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize as _, Serialize, Serializer};

use crate::InTurnProtocol;

/// Value of a [`body_key`] as it stands in a plan. Two are equal if they are written alike.
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

/// Value of a [`step_key`] as it stands in a plan. Two are equal if they are written alike.
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

/// A value of a key in a document, with the part of the plan that it is.
struct Compiled<P: ?Sized>(Box<P>);

impl<P: fmt::Debug + ?Sized> fmt::Debug for Compiled<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<P: Serialize + ?Sized> Serialize for Compiled<P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl BodyValue for Compiled<dyn BodyPart> {}

impl StepValue for Compiled<dyn StepPart> {
    fn title(&self) -> Option<String> {
        self.0.title()
    }
}

/// The key of a request whose values are of the type `T`. The description becomes a part of the schema of
/// plans: whole sentences.
pub const fn body_key<T>(key: &'static str, description: &'static str) -> BodyKey
where
    T: BodyPart + DeserializeOwned + JsonSchema + 'static,
{
    BodyKey::new(key, description, SchemaGenerator::subschema_for::<T>, |value| {
        read::<T, dyn BodyValue>(value, |part| body_value(part))
    })
}

/// The key of a step whose values are of the type `T`. The description becomes a part of the schema of plans:
/// whole sentences.
pub const fn step_key<T>(key: &'static str, description: &'static str) -> StepKey
where
    T: StepPart + DeserializeOwned + JsonSchema + 'static,
{
    StepKey::new(key, description, SchemaGenerator::subschema_for::<T>, |value| {
        read::<T, dyn StepValue>(value, |part| step_value(part))
    })
}

/// The value of a [`body_key`] for a document that is made, not read.
pub fn body_value(part: impl BodyPart + 'static) -> Arc<dyn BodyValue> {
    Arc::new(Compiled(Box::new(part) as Box<dyn BodyPart>))
}

/// The value of a [`step_key`] for a document that is made, not read.
pub fn step_value(part: impl StepPart + 'static) -> Arc<dyn StepValue> {
    Arc::new(Compiled(Box::new(part) as Box<dyn StepPart>))
}

/// Returns the body of a key that another crate adds, with its place.
pub(crate) fn body_part(body: &BodySpec) -> Option<(&dyn BodyPart, Option<Place>)> {
    let field = &body.added.first()?.value;
    let value: &dyn Any = &**field.get()?;
    Some((&*value.downcast_ref::<Compiled<dyn BodyPart>>()?.0, field.place()))
}

/// Returns the request of a key that another crate adds.
pub(crate) fn step_part(value: &dyn StepValue) -> Option<&dyn StepPart> {
    let value: &dyn Any = value;
    Some(&*value.downcast_ref::<Compiled<dyn StepPart>>()?.0)
}

/// Reads the value of a key.
fn read<T: DeserializeOwned, V: ?Sized>(
    value: &mut dyn erased_serde::Deserializer<'_>,
    shared: fn(T) -> Arc<V>,
) -> Result<ValueField<V>, erased_serde::Error> {
    Ok(match Field::<T>::deserialize(value)? {
        Field::Absent => Field::Absent,
        Field::Bad(place) => Field::Bad(place),
        Field::Given(part, place) => Field::Given(shared(part), place),
    })
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
    /// Protocols of the plan that is being resolved.
    static PROTOCOLS: Cell<&'static [&'static InTurnProtocol]> = const { Cell::new(&[]) };
}

impl PlanParts {
    /// No keys beside those of plan files.
    pub const NONE: Self = Self { bodies: &[], steps: &[], protocols: &[], errors: &[] };

    /// Returns what the reader of plan files has to know.
    pub const fn document(self) -> DocumentParts {
        DocumentParts {
            bodies: self.bodies,
            steps: self.steps,
            errors: self.errors,
            is_condition: |text, errors| Threshold::parse_with(text, errors).is_ok(),
        }
    }

    /// Calls `work` with these as the parts of the plan that this thread resolves.
    pub(crate) fn within<T>(self, work: impl FnOnce() -> T) -> T {
        struct Restore(&'static [&'static InTurnProtocol]);
        impl Drop for Restore {
            fn drop(&mut self) {
                PROTOCOLS.set(self.0);
            }
        }
        let _restore = Restore(PROTOCOLS.replace(self.protocols));
        self.document().within(work)
    }

    /// Returns the protocols of the plan that this thread resolves.
    pub(crate) fn current_protocols() -> &'static [&'static InTurnProtocol] {
        PROTOCOLS.get()
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
