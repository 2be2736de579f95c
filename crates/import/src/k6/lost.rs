//! Parts of a script that are not followed, and whatever depends on them.
//!
//! A loop, a branch or a change that only a program can carry out makes values [lost](Lost), or the
//! [course](Course) of the statements behind it. What is made of a value that is lost is lost as well. A
//! request, a check or a pause that depends on either is refused with both places, because a plan would do
//! something else.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use super::syntax::{Expression, Span};
use super::value::{Value, is_same};
use super::{Importer, Item};
use crate::locust::Session;

/// Members of values that are looked at, and count as one expression.
const LOOKS_OF_ONE: usize = 4;

/// Most uses of what is lost that are told: further ones follow from the same parts of a script.
const MOST_TOLD: usize = 20;

const HINT: &str =
    "a plan is no program: leave this out of the script, or write these steps of the plan by hand";

/// The place from which on something is not followed, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) at: Span,
    /// Stands behind "it is not followed from there on: ".
    pub(crate) why: String,
    pub(crate) methods: Methods,
}

/// Behaviour of the methods of a value that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Methods {
    /// Their names tell.
    Unknown,
    /// Methods of a value that a library gives send no request that an import would take over.
    OfLibrary,
    /// Methods of a class of the script may send requests.
    OfClass,
}

impl Lost {
    pub(crate) fn new(at: Span, why: impl Into<String>) -> Rc<Self> {
        Rc::new(Self { at, why: why.into(), methods: Methods::Unknown })
    }

    /// A class, whose methods are not carried out.
    pub(crate) fn class(at: Span) -> Rc<Self> {
        let why = "it is made by a class of the script".to_owned();
        Rc::new(Self { at, why, methods: Methods::OfClass })
    }
}

/// The reasons.
pub(crate) const RUN_DECIDES: &str = "the run decides whether this holds";
pub(crate) const IN_LOOP: &str = "the run decides how often these statements are carried out";
pub(crate) const KEPT: &str = "it is set there, and keeps its value for the next iteration";

/// A thing that statements leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// The turn of a loop.
    Turn,
    Loop,
    Function,
    Iteration,
}

/// The number of exits.
const EXITS: usize = Exit::Iteration as usize + 1;

/// The way in which a block ends.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "few are alive at a time")]
pub(crate) enum End {
    /// With its last statement.
    Open,
    /// With a statement that leaves; the value is what a function returns.
    Left(Exit, Value),
}

impl End {
    /// The end of a block that leaves without a value.
    pub(crate) fn left(exit: Exit) -> Self {
        Self::Left(exit, Value::Undefined)
    }

    fn exit(&self) -> Option<Exit> {
        match self {
            Self::Open => None,
            Self::Left(exit, _) => Some(*exit),
        }
    }
}

/// The course of a function: what may have been left before the statements that are followed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Course {
    /// The statements are those of a part that may be carried out or not, or several times.
    part: Option<Rc<Lost>>,
    /// Reasons for which something may have been left, by its exit.
    left: [Option<Rc<Lost>>; EXITS],
    /// The value that the function returns if it has been left.
    returned: Option<Value>,
    /// Loops of the function that are open.
    loops: usize,
    /// Functions that are open.
    calls: usize,
}

impl Course {
    /// The reason for which it is not known whether the statements are carried out.
    pub(crate) fn lost(&self) -> Option<&Rc<Lost>> {
        self.part.as_ref().or_else(|| self.left.iter().flatten().next())
    }

    /// Returns `true` in a loop of the function.
    pub(crate) fn is_in_loop(&self) -> bool {
        self.loops > 0
    }

    /// Returns `true` in a function that another one has called.
    pub(crate) fn is_called(&self) -> bool {
        self.calls > 1
    }
}

/// Variables, and the values that they had.
type Changed = BTreeMap<(usize, String), Value>;

/// Variables that are assigned to in a block that may or may not be carried out.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// The number of scopes around it: others are its own.
    around: usize,
    before: Changed,
}

/// One side of a condition that the run decides.
pub(crate) struct Side {
    pub(crate) items: Vec<Item>,
    pub(crate) end: End,
    course: Course,
    changed: Changed,
    session: Session,
}

impl Side {
    /// Returns `true` if it is not known whether the statements behind it are carried out.
    pub(crate) fn is_lost(&self) -> bool {
        self.course.lost().is_some()
    }
}

impl Importer<'_> {
    /// Refuses what is at `span`, as it depends on a value that is lost.
    pub(crate) fn refuse(&mut self, span: Span, lost: &Lost) {
        self.refuse_as(span, lost, "a value in it is not followed");
    }

    /// Refuses what is at `span` if it is not known whether it is carried out. Returns `true` then.
    pub(crate) fn refuse_in_course(&mut self, span: Span) -> bool {
        let Some(lost) = self.course.lost().cloned() else { return false };
        self.refuse_as(span, &lost, "whether it is carried out is not followed");
        true
    }

    fn refuse_as(&mut self, span: Span, lost: &Lost, what: &str) {
        if self.refused.len() >= MOST_TOLD || !self.refused.insert(span) {
            return;
        }
        let (at, from) = (self.at(span), self.at(lost.at));
        let said = crate::findings::quoted(&self.said(span));
        self.findings.hinted(&at, format!("`{said}`: {what} from {from} on: {}", lost.why), HINT);
    }

    /// The value that a variable has after it was assigned this one.
    pub(crate) fn assigned(&self, value: Value) -> Value {
        match self.course.lost() {
            Some(lost) => Value::Lost(Rc::clone(lost)),
            None => value,
        }
    }

    /// Follows statements that may be carried out or not, or several times.
    pub(crate) fn in_part<T>(&mut self, lost: &Rc<Lost>, follow: impl FnOnce(&mut Self) -> T) -> T {
        let around = self.course.part.clone();
        self.course.part.get_or_insert_with(|| Rc::clone(lost));
        let followed = follow(self);
        self.course.part = around;
        followed
    }

    /// Follows the turns of a loop: what leaves it is over with it.
    pub(crate) fn in_loop(&mut self, follow: impl FnOnce(&mut Self) -> End) -> End {
        const TURN: usize = Exit::Turn as usize;
        const LOOP: usize = Exit::Loop as usize;
        let around = [self.course.left[TURN].take(), self.course.left[LOOP].take()];
        let part = self.course.part.clone();
        // What was lost outside is lost inside.
        if self.course.part.is_none() {
            self.course.part = around.iter().flatten().next().cloned();
        }
        self.course.loops += 1;
        let end = follow(self);
        self.course.loops -= 1;
        self.course.part = part;
        [self.course.left[TURN], self.course.left[LOOP]] = around;
        match end {
            End::Left(Exit::Turn | Exit::Loop, _) => End::Open,
            end => end,
        }
    }

    /// The end of a turn of a loop.
    pub(crate) fn end_turn(&mut self) {
        self.course.left[Exit::Turn as usize] = None;
    }

    /// Follows the statements of a function. Returns the value that it returns.
    pub(crate) fn in_function(&mut self, follow: impl FnOnce(&mut Self) -> End) -> Value {
        let inside =
            Course { part: self.course.lost().cloned(), calls: self.course.calls + 1, ..Course::default() };
        let around = std::mem::replace(&mut self.course, inside);
        let end = follow(self);
        let inside = std::mem::replace(&mut self.course, around);
        if let Some(lost) = &inside.left[Exit::Iteration as usize] {
            self.may_leave(Exit::Iteration, &Value::Undefined, lost);
        }
        let value = match end {
            End::Left(Exit::Function, value) => value,
            End::Left(Exit::Iteration, _) => {
                self.is_ending = true;
                Value::Undefined
            }
            End::Left(..) | End::Open => Value::Undefined,
        };
        match (inside.returned, &inside.left[Exit::Function as usize]) {
            (Some(other), Some(lost)) => merged(&value, &other, lost),
            _ => value,
        }
    }

    /// Begins a scenario, or another function that is carried out by itself.
    pub(crate) fn begin_course(&mut self) {
        self.course = Course::default();
    }

    /// Notes that this is left on some of the ways to the statements behind.
    pub(crate) fn may_leave(&mut self, exit: Exit, value: &Value, lost: &Rc<Lost>) {
        self.course.left[exit as usize].get_or_insert_with(|| Rc::clone(lost));
        if exit == Exit::Function {
            self.course.returned = Some(match self.course.returned.take() {
                Some(other) => merged(&other, value, lost),
                None => value.clone(),
            });
        }
    }

    /// The end of a block that may be carried out or not.
    pub(crate) fn perhaps(&mut self, end: &End, lost: &Rc<Lost>) {
        if let End::Left(exit, value) = end {
            self.may_leave(*exit, value, lost);
        }
    }

    /// Follows one side of a condition. All that it changes is as before afterwards.
    pub(crate) fn side(&mut self, follow: impl FnOnce(&mut Self) -> End) -> Side {
        self.items.push(Vec::new());
        self.blocks.push(Block { around: self.scopes.len(), before: Changed::new() });
        let (course, session) = (self.course.clone(), self.session.clone());
        let end = follow(self);
        let course = std::mem::replace(&mut self.course, course);
        let session = std::mem::replace(&mut self.session, session);
        let before = self.blocks.pop().unwrap_or_default().before;
        let mut changed = Changed::new();
        for ((scope, name), value) in before {
            if let Some(now) = self.scopes[scope].names.insert(name.clone(), value) {
                changed.insert((scope, name), now);
            }
        }
        Side { items: self.items.pop().unwrap_or_default(), end, course, changed, session }
    }

    /// Goes on behind a condition whose sides were followed. Values that differ are lost.
    pub(crate) fn join(&mut self, ours: Side, theirs: Side, lost: &Rc<Lost>) -> End {
        let ended = |side: &Side| side.end.exit() == Some(Exit::Iteration);
        let (no_ours, no_theirs) = (ended(&ours), ended(&theirs));
        let mut join = Join { lost, known: HashMap::new() };
        let names = ours.changed.keys().chain(theirs.changed.keys()).cloned().collect::<Vec<_>>();
        for key in names {
            let (scope, name) = &key;
            let now = self.scopes[*scope].names.get(name).cloned().unwrap_or(Value::Undefined);
            let one = ours.changed.get(&key).unwrap_or(&now);
            let other = theirs.changed.get(&key).unwrap_or(&now);
            let value = match (no_ours, no_theirs) {
                (true, false) => other.clone(),
                (false, true) => one.clone(),
                _ => join.of(one, other),
            };
            self.set_name(*scope, name, value);
        }
        self.session = match (no_ours, no_theirs) {
            (true, false) => theirs.session,
            (false, true) => ours.session,
            _ => ours.session.joined(&theirs.session, &mut |one, other| join.of(one, other)),
        };
        for course in [ours.course, theirs.course] {
            for (known, left) in self.course.left.iter_mut().zip(course.left) {
                *known = known.take().or(left);
            }
            if let Some(value) = course.returned {
                self.course.returned = Some(match self.course.returned.take() {
                    Some(other) => merged(&other, &value, lost),
                    None => value,
                });
            }
        }
        match (ours.end, theirs.end) {
            (End::Open, End::Open) => End::Open,
            (End::Left(one, value), End::Left(other, second)) if one == other => {
                End::Left(one, merged(&value, &second, lost))
            }
            (End::Open, end) | (end, End::Open) => {
                self.perhaps(&end, lost);
                End::Open
            }
            (End::Left(one, value), End::Left(other, second)) => {
                // The nearer one is left for sure.
                let ((near, inner), (far, outer)) = if one < other {
                    ((one, value), (other, second))
                } else {
                    ((other, second), (one, value))
                };
                self.may_leave(far, &outer, lost);
                End::Left(near, inner)
            }
        }
    }

    /// Gives a variable another value.
    pub(crate) fn set_name(&mut self, scope: usize, name: &str, value: Value) {
        let before = self.scopes[scope].names.insert(name.to_owned(), value).unwrap_or(Value::Undefined);
        for block in &mut self.blocks {
            if scope < block.around {
                block.before.entry((scope, name.to_owned())).or_insert_with(|| before.clone());
            }
        }
    }

    /// Changes a list or an object, which is the same one under all its names. `object` is the expression
    /// that gave it.
    pub(crate) fn change(
        &mut self,
        object: Option<&Expression>,
        whole: &Value,
        new: &Value,
        scope: usize,
        span: Span,
    ) {
        // One is the variable's, and one the value here.
        const UNSHARED: usize = 2;
        match object {
            Some(object) if whole.holders() <= UNSHARED => self.put(object, new.clone(), scope, span),
            _ => self.replace(whole, new),
        }
    }

    /// Replaces a list or an object wherever it is held.
    pub(crate) fn replace(&mut self, whole: &Value, new: &Value) {
        let Some(old) = whole.identity() else { return };
        let mut replaced = Replaced { old, new, known: HashMap::new(), looked: self.scopes.len() };
        for scope in 0..self.scopes.len() {
            let names = self.scopes[scope].names.iter();
            let changed = names.filter_map(|(name, value)| Some((name.clone(), replaced.of(value)?)));
            let changed: Vec<(String, Value)> = changed.collect();
            for (name, value) in changed {
                self.set_name(scope, &name, value);
            }
        }
        for (_, value) in self.classes.iter_mut().flat_map(|class| &mut class.values) {
            if let Some(other) = replaced.of(value) {
                *value = other;
            }
        }
        for value in self.exports.iter_mut().flat_map(BTreeMap::values_mut) {
            if let Some(other) = replaced.of(value) {
                *value = other;
            }
        }
        self.evaluated += replaced.looked / LOOKS_OF_ONE;
    }

    /// Loses what a call that is not carried out was given: it may change lists and objects, and carry out
    /// functions.
    pub(crate) fn lose_arguments(&mut self, values: &[Value], span: Span) {
        let said = crate::findings::quoted(&self.said(span));
        let lost = Lost::new(span, format!("`{said}` is not carried out"));
        for value in values {
            match value {
                Value::Function(closure) => {
                    let closure = Rc::clone(closure);
                    let given =
                        Value::Lost(Rc::new(Lost { methods: Methods::OfLibrary, ..Lost::clone(&lost) }));
                    let arguments = vec![given; closure.function.parameters.len()];
                    let ending = self.is_ending;
                    self.in_part(&lost, |importer| importer.invoke(&closure, arguments, span));
                    self.is_ending = ending;
                }
                Value::Array(_) | Value::Object(_) => self.lose(value, &lost),
                Value::Builtin(path) if path.starts_with("client.") || path.starts_with("http.") => {
                    self.refuse(span, &lost);
                }
                _ => {}
            }
        }
    }

    /// Loses a list or an object wherever it is held.
    pub(crate) fn lose(&mut self, whole: &Value, lost: &Rc<Lost>) {
        self.replace(whole, &Value::Lost(Rc::clone(lost)));
    }
}

/// A value that is one of two.
pub(crate) fn merged(one: &Value, other: &Value, lost: &Rc<Lost>) -> Value {
    Join { lost, known: HashMap::new() }.of(one, other)
}

/// The address of a list or an object, which tells it from others.
type Identity = *const ();

/// Puts the values of two sides together.
struct Join<'l> {
    lost: &'l Rc<Lost>,
    /// Values that were put together already: under several names they are one.
    known: HashMap<(Identity, Identity), Value>,
}

impl Join<'_> {
    fn of(&mut self, one: &Value, other: &Value) -> Value {
        if is_same(one, other) {
            return one.clone();
        }
        let (Some(first), Some(second)) = (one.identity(), other.identity()) else {
            return self.lost(one, other);
        };
        if let Some(known) = self.known.get(&(first, second)) {
            return known.clone();
        }
        let joined = match (one, other) {
            (Value::Object(ours), Value::Object(theirs)) => {
                let mut members = Vec::with_capacity(ours.len());
                for (key, value) in ours.iter() {
                    let value = match other.member(key) {
                        Some(theirs) => self.of(value, theirs),
                        None => self.lost(value, value),
                    };
                    members.push((key.clone(), value));
                }
                for (key, value) in theirs.iter().filter(|(key, _)| one.member(key).is_none()) {
                    members.push((key.clone(), self.lost(value, value)));
                }
                Value::object(members)
            }
            (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
                Value::list(ours.iter().zip(theirs.iter()).map(|(one, other)| self.of(one, other)).collect())
            }
            _ => self.lost(one, other),
        };
        self.known.insert((first, second), joined.clone());
        joined
    }

    /// A value that is lost: for the reason that it was lost before, if it was.
    fn lost(&self, one: &Value, other: &Value) -> Value {
        let known = [one, other].into_iter().find_map(|value| match value {
            Value::Lost(lost) => Some(lost),
            _ => None,
        });
        Value::Lost(Rc::clone(known.unwrap_or(self.lost)))
    }
}

/// Replaces a list or an object in values.
struct Replaced<'v> {
    old: Identity,
    new: &'v Value,
    /// Values that were looked at: `None` if it is not within them.
    known: HashMap<Identity, Option<Value>>,
    looked: usize,
}

impl Replaced<'_> {
    /// The value with the new one in it. `None` if the old one is not within it.
    fn of(&mut self, value: &Value) -> Option<Value> {
        self.looked += 1;
        let identity = value.identity()?;
        if identity == self.old {
            return Some(self.new.clone());
        }
        if let Some(known) = self.known.get(&identity) {
            return known.clone();
        }
        let changed = match value {
            Value::Object(members) => {
                let new: Vec<_> = members.iter().map(|(_, member)| self.of(member)).collect();
                new.iter().any(Option::is_some).then(|| {
                    let pairs = members.iter().zip(new);
                    let pairs =
                        pairs.map(|((key, old), new)| (key.clone(), new.unwrap_or_else(|| old.clone())));
                    Value::object(pairs.collect())
                })
            }
            Value::Array(items) => {
                let new: Vec<_> = items.iter().map(|item| self.of(item)).collect();
                new.iter().any(Option::is_some).then(|| {
                    let all = items.iter().zip(new).map(|(old, new)| new.unwrap_or_else(|| old.clone()));
                    Value::list(all.collect())
                })
            }
            _ => None,
        };
        self.known.insert(identity, changed.clone());
        changed
    }
}
