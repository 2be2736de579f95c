//! Values of a script, as far as they are known before the run, and how they become templates.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_document::MatchSpec;

use super::lost::Lost;
use super::syntax::Function;
use crate::draft::{escaped, percent_encoded};
use crate::flow::check::Place;

/// A value of an expression.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Undefined,
    Null,
    Boolean(bool),
    Number(f64),
    String(String),
    /// A text that has slots.
    Text(Text),
    /// A text in JSON of this value.
    Json(Rc<Tree<Value>>),
    /// A number that is drawn, each of them as likely.
    Uniform(Uniform),
    /// A number that counts.
    Counter(Counter),
    Array(Rc<Tree<Vec<Value>>>),
    Object(Rc<Tree<Vec<(String, Value)>>>),
    Function(Rc<Closure>),
    /// A class, by its number.
    Class(usize),
    /// Arguments that are given by their names.
    Keywords(Rc<Tree<Vec<(String, Value)>>>),
    /// Something that k6, one of its libraries or JavaScript provides, by its path: `http.get`.
    Builtin(String),
    /// The response to a request, by the number of the request.
    Response(usize),
    /// A value in it.
    Taken(usize, Place),
    /// A part of its JSON.
    Body(usize, Vec<String>),
    /// The content of a file.
    File(String),
    /// Rows of a CSV file.
    Csv(usize),
    /// A row of a data source, or the part of it with this path.
    Row(usize, Vec<String>),
    /// Another part of a response: `headers`, `timings.duration`.
    Facet(usize, Vec<String>),
    /// The length of a value that is not known.
    Length(Rc<Value>),
    /// The place at which a text was found, if the test holds.
    Found(Test),
    /// Something that holds or not.
    Test(Test),
    Regex(String),
    /// A part of a form that is a file.
    FormFile,
    /// A value that is not known before the run.
    Unknown,
    /// A value that is not followed: whatever depends on it is refused.
    Lost(Rc<Lost>),
}

/// Values within a value. A script may put them into each other again and again: how deep and how large they
/// are is known, and bounded.
#[derive(Clone, Debug)]
pub(crate) struct Tree<T> {
    within: T,
    extent: Extent,
}

/// Facts about a value with all that is within it.
#[derive(Clone, Debug, Default)]
struct Extent {
    depth: usize,
    /// Roughly in bytes.
    size: usize,
    /// The first value in it that is lost.
    lost: Option<Rc<Lost>>,
    /// A value in it is another one each time that it is written.
    is_drawn: bool,
}

/// Deepest nesting of values.
const DEEPEST: usize = 200;

/// Largest value, roughly in bytes.
const LARGEST: usize = 64 << 20;

impl<T> std::ops::Deref for Tree<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.within
    }
}

impl<T> Tree<T> {
    /// `None` if it is too deep or too large.
    fn new(within: T, extent: impl Fn(&T) -> Extent) -> Option<Rc<Self>> {
        let mut extent = extent(&within);
        extent.depth += 1;
        (extent.depth <= DEEPEST && extent.size <= LARGEST).then(|| Rc::new(Self { within, extent }))
    }
}

/// Slots that have another value each time.
const DRAWN: [&str; 4] = ["${random", "${uuid", "${timestamp", "${now"];

/// Something that holds or not.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "few are alive at a time")]
pub(crate) enum Test {
    /// The status of a response is in one of these ranges.
    Status(usize, Statuses),
    /// A value in a response is as described.
    Value(usize, Place, MatchSpec),
    /// The time of a request is within a limit.
    Time(usize),
    /// The checks of these requests hold.
    Checked(Vec<usize>),
    /// A condition of plans.
    Plan(String),
    All(Vec<Test>),
    Any(Vec<Test>),
    Not(Box<Test>),
}

impl Test {
    /// Returns `true` if it is decided anew each time that it is written.
    pub(crate) fn is_drawn(&self) -> bool {
        match self {
            Self::Plan(condition) => DRAWN.iter().any(|slot| condition.contains(slot)),
            Self::All(all) | Self::Any(all) => all.iter().any(Self::is_drawn),
            Self::Not(inner) => inner.is_drawn(),
            _ => false,
        }
    }

    /// The number of tests in it.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::All(all) | Self::Any(all) => 1 + all.iter().map(Self::count).sum::<usize>(),
            Self::Not(inner) => 1 + inner.count(),
            _ => 1,
        }
    }
}

/// Ranges of statuses, both ends included, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statuses(Vec<(u16, u16)>);

/// The statuses that plans can expect.
const FIRST_STATUS: u16 = 200;
const LAST_STATUS: u16 = 599;

impl Statuses {
    /// The statuses from `first` to `last`.
    pub(crate) fn range(first: u16, last: u16) -> Self {
        let (first, last) = (first.max(FIRST_STATUS), last.min(LAST_STATUS));
        Self(if first <= last { vec![(first, last)] } else { Vec::new() })
    }

    /// All others.
    pub(crate) fn others(&self) -> Self {
        self.filter(|status, known| !known.contains(status))
    }

    pub(crate) fn and(&self, other: &Self) -> Self {
        self.filter(|status, known| known.contains(status) && other.contains(status))
    }

    pub(crate) fn or(&self, other: &Self) -> Self {
        self.filter(|status, known| known.contains(status) || other.contains(status))
    }

    fn contains(&self, status: u16) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&status))
    }

    fn filter(&self, is_in: impl Fn(u16, &Self) -> bool) -> Self {
        let mut ranges: Vec<(u16, u16)> = Vec::new();
        for status in (FIRST_STATUS..=LAST_STATUS).filter(|status| is_in(*status, self)) {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == status => *last = status,
                _ => ranges.push((status, status)),
            }
        }
        Self(ranges)
    }

    /// As plans write them.
    pub(crate) fn written(&self) -> Vec<String> {
        let range = |&(first, last): &(u16, u16)| match (first, last) {
            _ if first == last => first.to_string(),
            (200, 299) => "2xx".to_owned(),
            (300, 399) => "3xx".to_owned(),
            (400, 499) => "4xx".to_owned(),
            (500, 599) => "5xx".to_owned(),
            _ => format!("{first}-{last}"),
        };
        self.0.iter().map(range).collect()
    }

    /// Returns `true` if none of them is an error.
    pub(crate) fn are_good(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(|(_, last)| *last < 400)
    }
}

/// A function with the names that are known around it.
#[derive(Clone, Debug)]
pub(crate) struct Closure {
    pub(crate) function: Arc<Function>,
    pub(crate) scope: usize,
}

/// A number between two others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Uniform {
    pub(crate) low: f64,
    /// Included if it is whole.
    pub(crate) high: f64,
    pub(crate) is_whole: bool,
    /// The variable that keeps it, by the number of the draw.
    pub(crate) draw: Option<usize>,
}

/// A number that k6 counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counter {
    /// `true` if the number is that of the user, not of the iteration.
    pub(crate) is_user: bool,
    /// All users count together, as `exec.scenario.iterationInTest` does; others count on their own.
    pub(crate) is_shared: bool,
    /// Added to what k6 counts, which begins with 1 for users and with 0 for iterations.
    pub(crate) shift: i64,
    /// The number by which it is divided for a remainder; 0 if that is not known.
    pub(crate) wraps: Option<usize>,
}

impl Counter {
    /// The iterations of a user, or of all of them together.
    pub(crate) fn of_iterations(is_shared: bool) -> Self {
        Self { is_user: false, is_shared, shift: 0, wraps: None }
    }

    /// The users.
    pub(crate) fn of_users() -> Self {
        Self { is_user: true, is_shared: true, shift: 0, wraps: None }
    }

    /// Returns `true` if something was calculated with it.
    pub(crate) fn is_changed(&self) -> bool {
        self.wraps.is_some() || self.shift != 0
    }
}

/// A text with slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) parts: Vec<Part>,
    /// All of it is one number.
    pub(crate) is_number: bool,
    /// `true` if the text is another one each time that it is written.
    pub(crate) is_drawn: bool,
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Literal(String),
    /// The inside of a slot.
    Slot(String),
    /// The inside of a slot whose value is encoded for URLs.
    Encoded(String),
    /// A variable of the environment, with its default.
    Environment(String, Option<String>),
}

/// The way in which a text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writing {
    Plain,
    /// Path and query of a URL.
    Target,
    /// A name or a value of a form.
    Form,
    /// Within the quotes of JSON.
    Json,
}

/// Characters that stay as they are in targets.
const IN_TARGETS: &[u8] = b":/?#[]@!$&'()*+,;=%";

impl Text {
    pub(crate) fn of(part: Part) -> Self {
        Self { parts: vec![part], ..Self::default() }
    }

    pub(crate) fn slot(inside: impl Into<String>) -> Self {
        Self::of(Part::Slot(inside.into()))
    }

    /// Roughly in bytes.
    fn length(&self) -> usize {
        let length = |part: &Part| match part {
            Part::Literal(text) | Part::Slot(text) | Part::Encoded(text) => text.len(),
            Part::Environment(name, default) => name.len() + default.as_ref().map_or(0, String::len),
        };
        self.parts.iter().map(|part| size_of::<Part>() + length(part)).sum()
    }

    pub(crate) fn push(&mut self, part: Part) {
        match (self.parts.last_mut(), part) {
            (_, Part::Literal(text)) if text.is_empty() => {}
            (Some(Part::Literal(before)), Part::Literal(more)) => before.push_str(&more),
            (_, part) => self.parts.push(part),
        }
    }

    pub(crate) fn append(&mut self, other: Self) {
        self.is_drawn |= other.is_drawn;
        self.is_number = false;
        other.parts.into_iter().for_each(|part| self.push(part));
    }

    /// The template. `dollar` gives the name of a variable whose value is `$`: one in front of a slot would
    /// make it literal text.
    pub(crate) fn template(&self, writing: Writing, mut dollar: impl FnMut() -> String) -> String {
        let mut template = String::new();
        for (index, part) in self.parts.iter().enumerate() {
            let slot = match (part, writing) {
                (Part::Literal(text), _) => {
                    let before_slot = index + 1 < self.parts.len();
                    let kept = if before_slot { text.trim_end_matches('$') } else { text };
                    template.push_str(&literal(kept, writing));
                    for _ in kept.len()..text.len() {
                        template.push_str(&format!("${{{}}}", dollar()));
                    }
                    continue;
                }
                (Part::Slot(inside), Writing::Form)
                | (Part::Encoded(inside), Writing::Plain | Writing::Form) => {
                    format!("urlencode(${{{inside}}})")
                }
                (Part::Slot(inside), Writing::Json) if !self.is_number => format!("json(${{{inside}}})"),
                (Part::Encoded(inside), Writing::Json) => format!("urlencode(${{{inside}}})"),
                (Part::Slot(inside) | Part::Encoded(inside), _) => inside.clone(),
                (Part::Environment(name, default), _) => {
                    format!("env({name}, {})", default.as_deref().unwrap_or_default()).replace(", )", ",)")
                }
            };
            template.push_str(&format!("${{{slot}}}"));
        }
        template
    }
}

/// A literal text as it stands in a template.
pub(crate) fn literal(text: &str, writing: Writing) -> String {
    match writing {
        Writing::Plain => escaped(text),
        // Without braces nothing looks like a slot.
        Writing::Target => percent_encoded(text, IN_TARGETS),
        Writing::Form => percent_encoded(text, b"").replace("%20", "+"),
        Writing::Json => {
            let quoted = serde_json::Value::from(text).to_string();
            escaped(quoted.trim_start_matches('"').strip_suffix('"').unwrap_or_default())
        }
    }
}

impl Value {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::String(text.into())
    }

    /// A list, unless it is too large to be one.
    pub(crate) fn list(values: Vec<Self>) -> Self {
        let extent = |values: &Vec<Self>| sum(values.iter().map(Self::extent));
        Tree::new(values, extent).map_or(Self::Unknown, Self::Array)
    }

    /// An object, unless it is too large to be one.
    pub(crate) fn object(members: Vec<(String, Self)>) -> Self {
        let of_member = |(key, value): &(String, Self)| {
            let extent = value.extent();
            Extent { size: extent.size + key.len(), ..extent }
        };
        let extent = |members: &Vec<(String, Self)>| sum(members.iter().map(of_member));
        Tree::new(members, extent).map_or(Self::Unknown, Self::Object)
    }

    /// The text in JSON of a value, unless it is too large.
    pub(crate) fn in_json(value: Self) -> Self {
        // A text in JSON within another is escaped.
        let extent = |value: &Self| {
            let extent = value.extent();
            Extent { size: extent.size.saturating_mul(2), ..extent }
        };
        Tree::new(value, extent).map_or(Self::Unknown, Self::Json)
    }

    fn extent(&self) -> Extent {
        match self {
            Self::Array(tree) => tree.extent.clone(),
            Self::Object(tree) | Self::Keywords(tree) => tree.extent.clone(),
            Self::Json(tree) => tree.extent.clone(),
            value => Extent {
                depth: 0,
                size: size_of::<Self>() + value.text_length(),
                lost: value.lost().cloned(),
                is_drawn: value.is_drawn(),
            },
        }
    }

    /// An equal value of which no list and no object is shared.
    pub(crate) fn copied(&self) -> Self {
        match self {
            Self::Array(items) => Self::list(items.iter().map(Self::copied).collect()),
            Self::Object(members) => {
                Self::object(members.iter().map(|(key, value)| (key.clone(), value.copied())).collect())
            }
            value => value.clone(),
        }
    }

    /// The reason for which it is lost, or a value within it.
    pub(crate) fn lost(&self) -> Option<&Rc<Lost>> {
        match self {
            Self::Lost(lost) => Some(lost),
            Self::Array(tree) => tree.extent.lost.as_ref(),
            Self::Object(tree) | Self::Keywords(tree) => tree.extent.lost.as_ref(),
            Self::Json(tree) => tree.extent.lost.as_ref(),
            Self::Length(of) => of.lost(),
            _ => None,
        }
    }

    /// Returns `true` if it, or a value within it, is another one each time that it is written.
    pub(crate) fn is_drawn(&self) -> bool {
        match self {
            Self::Text(text) => text.is_drawn,
            Self::Uniform(uniform) => uniform.draw.is_none(),
            Self::Array(tree) => tree.extent.is_drawn,
            Self::Object(tree) => tree.extent.is_drawn,
            Self::Json(tree) => tree.extent.is_drawn,
            _ => false,
        }
    }

    /// The address of a list or an object, which tells it from others that are equal.
    pub(crate) fn identity(&self) -> Option<*const ()> {
        match self {
            Self::Array(tree) => Some(Rc::as_ptr(tree).cast()),
            Self::Object(tree) => Some(Rc::as_ptr(tree).cast()),
            _ => None,
        }
    }

    /// The number of places that hold this list or object.
    pub(crate) fn holders(&self) -> usize {
        match self {
            Self::Array(tree) => Rc::strong_count(tree),
            Self::Object(tree) => Rc::strong_count(tree),
            _ => 0,
        }
    }

    /// Bytes of a text that it is.
    pub(crate) fn text_length(&self) -> usize {
        match self {
            Self::String(text) => text.len(),
            Self::Text(text) => text.length(),
            _ => 0,
        }
    }

    /// Bytes that are new in it: those of texts, and elements of lists.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Array(tree) => tree.extent.size,
            Self::Object(tree) => tree.extent.size,
            Self::Json(tree) => tree.extent.size,
            value => size_of::<Self>() + value.text_length(),
        }
    }

    /// The text that JavaScript makes of a value that is known; `None` for all others.
    pub(crate) fn constant(&self) -> Option<String> {
        Some(match self {
            Self::Undefined => "undefined".to_owned(),
            Self::Null => "null".to_owned(),
            Self::Boolean(flag) => flag.to_string(),
            Self::Number(number) => shown(*number),
            Self::String(text) => text.clone(),
            Self::Json(value) => value.json()?.to_string(),
            Self::Array(items) => {
                let item = |item: &Self| match item {
                    Self::Undefined | Self::Null => Some(String::new()),
                    item => item.constant(),
                };
                items.iter().map(item).collect::<Option<Vec<_>>>()?.join(",")
            }
            _ => return None,
        })
    }

    /// The value as JSON, if it is known.
    pub(crate) fn json(&self) -> Option<serde_json::Value> {
        use serde_json::Value as Json;
        Some(match self {
            Self::Null | Self::Undefined => Json::Null,
            Self::Boolean(flag) => Json::from(*flag),
            Self::Number(number) => number_json(*number),
            Self::String(text) => Json::from(text.as_str()),
            Self::Json(_) => Json::from(self.constant()?),
            Self::Array(items) => Json::Array(items.iter().map(Self::json).collect::<Option<_>>()?),
            Self::Object(members) => {
                let known = members.iter().filter(|(_, value)| !matches!(value, Self::Undefined));
                let pairs = known.map(|(key, value)| Some((key.clone(), value.json()?)));
                Json::Object(pairs.collect::<Option<_>>()?)
            }
            _ => return None,
        })
    }

    /// A value of JSON.
    pub(crate) fn of_json(json: &serde_json::Value) -> Self {
        use serde_json::Value as Json;
        match json {
            Json::Null => Self::Null,
            Json::Bool(flag) => Self::Boolean(*flag),
            Json::Number(number) => Self::Number(number.as_f64().unwrap_or(f64::NAN)),
            Json::String(text) => Self::String(text.clone()),
            Json::Array(items) => Self::list(items.iter().map(Self::of_json).collect()),
            Json::Object(members) => {
                Self::object(members.iter().map(|(key, value)| (key.clone(), Self::of_json(value))).collect())
            }
        }
    }

    /// `true` or `false`, if that is known.
    pub(crate) fn truth(&self) -> Option<bool> {
        Some(match self {
            Self::Undefined | Self::Null => false,
            Self::Boolean(flag) => *flag,
            Self::Number(number) => *number != 0.0 && !number.is_nan(),
            Self::String(text) => !text.is_empty(),
            Self::Array(_)
            | Self::Object(_)
            | Self::Function(_)
            | Self::Builtin(_)
            | Self::Json(_)
            | Self::File(_)
            | Self::Csv(_)
            | Self::Regex(_) => true,
            _ => return None,
        })
    }

    /// The number, if it is one or a text of one.
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::String(text) => text.trim().parse().ok().filter(|number: &f64| number.is_finite()),
            Self::Boolean(flag) => Some(f64::from(*flag)),
            _ => None,
        }
    }

    /// A member of an object.
    pub(crate) fn member(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => {
                members.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value)
            }
            _ => None,
        }
    }
}

/// Facts about several values together.
fn sum(extents: impl Iterator<Item = Extent>) -> Extent {
    let own = Extent { size: size_of::<Value>(), ..Extent::default() };
    extents.fold(own, |all, one| Extent {
        depth: all.depth.max(one.depth),
        size: all.size.saturating_add(one.size),
        lost: all.lost.or(one.lost),
        is_drawn: all.is_drawn || one.is_drawn,
    })
}

/// Returns `true` if both are the same for certain, which is not looked for within lists and objects.
pub(crate) fn is_same(one: &Value, other: &Value) -> bool {
    if let (Some(one), Some(other)) = (one.identity(), other.identity()) {
        return one == other;
    }
    if std::mem::discriminant(one) != std::mem::discriminant(other) {
        return false;
    }
    match (one, other) {
        (Value::Text(one), Value::Text(other)) => one == other && !one.is_drawn,
        (Value::Uniform(one), Value::Uniform(other)) => one == other && one.draw.is_some(),
        (Value::Counter(one), Value::Counter(other)) => one == other,
        (Value::Function(one), Value::Function(other)) => {
            Arc::ptr_eq(&one.function, &other.function) && one.scope == other.scope
        }
        (Value::Class(one), Value::Class(other))
        | (Value::Response(one), Value::Response(other))
        | (Value::Csv(one), Value::Csv(other)) => one == other,
        (Value::Builtin(one), Value::Builtin(other))
        | (Value::File(one), Value::File(other))
        | (Value::Regex(one), Value::Regex(other)) => one == other,
        (Value::Taken(one, place), Value::Taken(other, second)) => one == other && place == second,
        (Value::Body(one, path), Value::Body(other, second))
        | (Value::Row(one, path), Value::Row(other, second))
        | (Value::Facet(one, path), Value::Facet(other, second)) => one == other && path == second,
        (Value::Unknown, Value::Unknown) | (Value::FormFile, Value::FormFile) => true,
        (one, other) => one.constant().is_some_and(|one| Some(one) == other.constant()),
    }
}

/// A number as JavaScript writes it.
pub(crate) fn shown(number: f64) -> String {
    let size = number.abs();
    if number.fract() == 0.0 && size < 1e15 {
        format!("{}", number as i64)
    } else if number.is_infinite() {
        if number > 0.0 { "Infinity".to_owned() } else { "-Infinity".to_owned() }
    } else if size >= 1e21 {
        format!("{number:e}").replace('e', "e+")
    } else if size < 1e-6 {
        format!("{number:e}")
    } else {
        format!("{number}")
    }
}

fn number_json(number: f64) -> serde_json::Value {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        serde_json::Value::from(number as i64)
    } else {
        serde_json::Number::from_f64(number).map_or(serde_json::Value::Null, serde_json::Value::Number)
    }
}

impl Uniform {
    /// The slot that draws it.
    pub(crate) fn slot(&self) -> String {
        if self.is_whole {
            format!("random_int({}, {})", shown(self.low), shown(self.high))
        } else {
            format!("random_float({}, {}, 9)", decimals(self.low), decimals(self.high))
        }
    }
}

/// A number with nine digits at most.
fn decimals(number: f64) -> String {
    let text = format!("{number:.9}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
