//! Messages with texts that vary: encoded once as far as they are constant, with the rest written into the
//! wire format (protobuf.dev/programming-guides/encoding) at each call.

mod number;

use std::collections::HashMap;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use plimsoll_document::Place;
use plimsoll_plan::BodyContext;
use plimsoll_scenario::{Code, Template};
use plimsoll_wire::length_prefixed::{PREFIX, write_frame};
use prost_reflect::prost::Message as _;
use prost_reflect::{
    Cardinality, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor,
};
use serde_json::{Map, Value};

use self::number::Number;
use super::SchemaError;
use super::schema::{no_message, zipped};

/// Wire type of a field that has its length in front.
const LENGTH_DELIMITED: u64 = 2;
/// Most bytes of a length or a number.
const LONGEST_NUMBER: usize = 10;
/// Most bytes that a character of JSON takes in a message with a form of its own.
const LONGEST_DIGIT: usize = 16;
/// Reads base64 as the JSON mapping of protobuf allows it, with or without padding.
const BASE64: [GeneralPurpose; 2] = {
    const ANY: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    [GeneralPurpose::new(&alphabet::STANDARD, ANY), GeneralPurpose::new(&alphabet::URL_SAFE, ANY)]
};

/// A JSON value whose texts are templates, with those that vary taken out.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    /// Nothing in it varies.
    Fixed(Value),
    /// A text that varies: its number among the parts.
    Text(usize),
    /// An array.
    List(Vec<Shape>),
    /// An object.
    Members(Vec<(Shape, Shape)>),
}

impl Shape {
    /// Takes the texts that vary out of a value, and appends them to `parts`, with what they were compiled
    /// to. `None`: a template is wrong, and that was reported.
    pub(super) fn of(
        value: &Value,
        place: Option<Place>,
        context: &mut dyn BodyContext,
        parts: &mut Vec<(String, Template)>,
    ) -> Option<Self> {
        Some(match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => Self::Fixed(value.clone()),
            Value::String(text) => Self::of_text(text, place, context, parts)?,
            Value::Array(items) => {
                let items = items.iter().map(|item| Self::of(item, place, context, parts));
                Self::list(items.collect::<Option<_>>()?)
            }
            Value::Object(members) => {
                let members = members.iter().map(|(name, value)| {
                    let name = Self::of_text(name, place, context, parts)?;
                    Some((name, Self::of(value, place, context, parts)?))
                });
                Self::object(members.collect::<Option<_>>()?)
            }
        })
    }

    /// An array, which is fixed if all its elements are.
    fn list(items: Vec<Self>) -> Self {
        let fixed = items.iter().map(Self::fixed).collect::<Option<Vec<Value>>>();
        fixed.map_or(Self::List(items), |items| Self::Fixed(Value::Array(items)))
    }

    /// An object, which is fixed if all its members are.
    fn object(members: Vec<(Self, Self)>) -> Self {
        let fixed = members.iter().map(|(name, value)| match name.fixed()? {
            Value::String(name) => Some((name, value.fixed()?)),
            _ => None,
        });
        let fixed = fixed.collect::<Option<Map<String, Value>>>();
        fixed.map_or(Self::Members(members), |members| Self::Fixed(Value::Object(members)))
    }

    fn of_text(
        text: &str,
        place: Option<Place>,
        context: &mut dyn BodyContext,
        parts: &mut Vec<(String, Template)>,
    ) -> Option<Self> {
        let (text, template) = context.template(text, place)?;
        Some(if template.is_static() && !template.has_secret() {
            Self::Fixed(Value::String(String::from_utf8_lossy(template.literals()).into_owned()))
        } else {
            parts.push((text, template));
            Self::Text(parts.len() - 1)
        })
    }

    fn fixed(&self) -> Option<Value> {
        match self {
            Self::Fixed(value) => Some(value.clone()),
            _ => None,
        }
    }

    /// The members of an object, fixed or not.
    fn members(&self) -> Option<Vec<(Self, Self)>> {
        match self {
            Self::Members(members) => Some(members.clone()),
            Self::Fixed(Value::Object(members)) => {
                let fixed = |(name, value): (&String, &Value)| {
                    (Self::Fixed(Value::String(name.clone())), Self::Fixed(value.clone()))
                };
                Some(members.iter().map(fixed).collect())
            }
            _ => None,
        }
    }

    /// The elements of an array, fixed or not.
    pub(super) fn items(&self) -> Option<Vec<Self>> {
        match self {
            Self::List(items) => Some(items.clone()),
            Self::Fixed(Value::Array(items)) => Some(items.iter().cloned().map(Self::Fixed).collect()),
            _ => None,
        }
    }

    /// The value with its texts, which `write` appends.
    fn filled(&self, write: &mut dyn FnMut(usize, &mut Vec<u8>)) -> Value {
        let mut text = |part: usize| {
            let mut text = Vec::new();
            write(part, &mut text);
            String::from_utf8_lossy(&text).into_owned()
        };
        match self {
            Self::Fixed(value) => value.clone(),
            Self::Text(part) => Value::String(text(*part)),
            Self::List(items) => items.iter().map(|item| item.filled(write)).collect(),
            Self::Members(members) => {
                let members = members.iter().map(|(name, value)| {
                    let name = match name.filled(write) {
                        Value::String(name) => name,
                        other => other.to_string(),
                    };
                    (name, value.filled(write))
                });
                Value::Object(members.collect())
            }
        }
    }
}

/// A piece of an encoded message.
#[derive(Debug)]
enum Piece {
    /// What is the same each time.
    Literal(Vec<u8>),
    /// A varying string.
    Text { tag: Vec<u8>, part: usize, always: bool },
    /// A varying text that is base64.
    Bytes { tag: Vec<u8>, part: usize, always: bool },
    /// A varying number, truth value or name of an enum.
    Number { tag: Vec<u8>, part: usize, number: Number, always: bool },
    /// What has its length in front: a message, packed numbers, an entry of a map.
    Nested { tag: Vec<u8>, pieces: Vec<Piece> },
    /// The content of a message with a form of its own in JSON, such as a timestamp, that is read anew each
    /// time.
    Whole { message: MessageDescriptor, shape: Shape },
}

/// What a part is for.
#[derive(Debug)]
struct Purpose {
    /// The full name of its field.
    field: String,
    form: Form,
}

#[derive(Debug)]
enum Form {
    Text,
    Bytes,
    Number(Number),
    /// The only text of a message with a form of its own in JSON.
    Whole(MessageDescriptor),
    /// One of several texts of such a message, which is examined when it is encoded.
    Within,
}

/// The messages of a call, with their frames.
#[derive(Debug)]
pub(super) struct MessageCode {
    messages: Vec<Vec<Piece>>,
    purposes: Vec<Purpose>,
    gzip: bool,
    longest: usize,
}

impl MessageCode {
    /// Compiles messages of a method, whose texts that vary are so many.
    ///
    /// # Errors
    /// If one is no message of the method's type.
    pub(super) fn compile(
        method: &MethodDescriptor,
        messages: &[Shape],
        parts: usize,
        gzip: bool,
    ) -> Result<Self, SchemaError> {
        let mut compiler = Compiler { purposes: (0..parts).map(|_| None).collect() };
        let input = method.input();
        let compiled = messages.iter().map(|shape| {
            let pieces = match shape.members() {
                _ if is_well_known(&input) => {
                    compiler.whole(input.full_name(), &input, shape).map(|one| vec![one])
                }
                Some(members) => compiler.message(&input, &members),
                None => Err(format!("it is {}, and no object", kind_of(shape))),
            };
            pieces.map(merged).map_err(|what| no_message(&input, &what))
        });
        let messages = compiled.collect::<Result<Vec<_>, _>>()?;
        let longest = messages.iter().map(|pieces| PREFIX + longest(pieces)).sum();
        let purposes = compiler
            .purposes
            .into_iter()
            .map(|purpose| purpose.unwrap_or_else(|| Purpose { field: String::new(), form: Form::Within }));
        Ok(Self { messages, purposes: purposes.collect(), gzip, longest })
    }
}

impl Code for MessageCode {
    fn encode(&self, write: &mut dyn FnMut(usize, &mut Vec<u8>), out: &mut Vec<u8>) {
        for pieces in &self.messages {
            let start = out.len();
            out.extend_from_slice(&[0; PREFIX]);
            pieces.iter().for_each(|piece| piece.write(write, out));
            if self.gzip {
                let zipped = zipped(&out[start + PREFIX..]);
                out.truncate(start);
                write_frame(true, &zipped, out);
                continue;
            }
            // The values of a request are bounded far below 4 GiB.
            let length = (out.len() - start - PREFIX) as u32;
            out[start + 1..start + PREFIX].copy_from_slice(&length.to_be_bytes());
        }
    }

    fn unfit(&self, part: usize, text: &[u8]) -> Option<String> {
        let Purpose { field, form } = self.purposes.get(part)?;
        let reason = match form {
            Form::Text => str::from_utf8(text).is_err().then(|| "is not UTF-8".to_owned()),
            Form::Bytes => decoded(text).is_none().then(|| "is not base64".to_owned()),
            Form::Number(number) => number.read(text).is_none().then(|| format!("is no {}", number.name())),
            Form::Whole(message) => {
                let value = Value::String(String::from_utf8_lossy(text).into_owned());
                let is_one = DynamicMessage::deserialize(message.clone(), value).is_ok();
                (!is_one).then(|| format!("is no {}", message.full_name()))
            }
            Form::Within => None,
        };
        reason.map(|reason| format!("{reason}, as the field `{field}` wants it"))
    }

    fn longest(&self) -> usize {
        self.longest
    }
}

impl Piece {
    fn write(&self, write: &mut dyn FnMut(usize, &mut Vec<u8>), out: &mut Vec<u8>) {
        let start = out.len();
        match self {
            Self::Literal(bytes) => out.extend_from_slice(bytes),
            Self::Text { tag, part, always } => {
                out.extend_from_slice(tag);
                let is_empty = with_length(out, |out| write(*part, out));
                if is_empty && !always {
                    out.truncate(start);
                }
            }
            Self::Bytes { tag, part, always } => {
                out.extend_from_slice(tag);
                let is_empty = with_length(out, |out| {
                    let start = out.len();
                    write(*part, out);
                    let bytes = decoded(&out[start..]).unwrap_or_default();
                    out.truncate(start);
                    out.extend_from_slice(&bytes);
                });
                if is_empty && !always {
                    out.truncate(start);
                }
            }
            Self::Number { tag, part, number, always } => {
                write(*part, out);
                let value = number.read(&out[start..]);
                out.truncate(start);
                // Values of variables were examined, and no other text is unfit.
                if let Some(value) = value.filter(|value| *always || !value.is_zero()) {
                    out.extend_from_slice(tag);
                    value.write(out);
                }
            }
            Self::Nested { tag, pieces } => {
                out.extend_from_slice(tag);
                with_length(out, |out| pieces.iter().for_each(|piece| piece.write(write, out)));
            }
            Self::Whole { message, shape } => {
                let value = shape.filled(write);
                if let Ok(message) = DynamicMessage::deserialize(message.clone(), value) {
                    out.extend_from_slice(&message.encode_to_vec());
                }
            }
        }
    }
}

/// Appends what `write` appends, with its length in front. Returns `true` if that is nothing.
fn with_length(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> bool {
    let at = out.len();
    out.push(0);
    write(out);
    let length = out.len() - at - 1;
    if length < 0x80 {
        out[at] = length as u8;
        return length == 0;
    }
    let mut digits = Vec::with_capacity(LONGEST_NUMBER);
    write_varint(length as u64, &mut digits);
    out.splice(at..=at, digits);
    false
}

/// Appends a number in the wire format.
fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    BASE64.iter().find_map(|engine| engine.decode(text).ok())
}

/// Pieces in which what is constant stands together.
fn merged(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut merged: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let piece = match piece {
            Piece::Nested { tag, pieces } => {
                let pieces = self::merged(pieces);
                match &pieces[..] {
                    [] => Piece::Literal([tag, vec![0]].concat()),
                    [Piece::Literal(bytes)] => {
                        let mut whole = tag;
                        write_varint(bytes.len() as u64, &mut whole);
                        Piece::Literal([whole, bytes.clone()].concat())
                    }
                    _ => Piece::Nested { tag, pieces },
                }
            }
            other => other,
        };
        match (merged.last_mut(), piece) {
            (Some(Piece::Literal(before)), Piece::Literal(bytes)) => before.extend(bytes),
            (_, Piece::Literal(bytes)) if bytes.is_empty() => {}
            (_, piece) => merged.push(piece),
        }
    }
    merged
}

/// Most bytes of these pieces beside the texts of their parts.
fn longest(pieces: &[Piece]) -> usize {
    let one = |piece: &Piece| match piece {
        Piece::Literal(bytes) => bytes.len(),
        Piece::Text { tag, .. } | Piece::Bytes { tag, .. } | Piece::Number { tag, .. } => {
            tag.len() + LONGEST_NUMBER
        }
        Piece::Nested { tag, pieces } => tag.len() + LONGEST_NUMBER + longest(pieces),
        // A digit in a Struct is a double with two tags and two lengths: no character takes more.
        Piece::Whole { shape, .. } => {
            LONGEST_NUMBER + LONGEST_DIGIT * shape.filled(&mut |_, _| {}).to_string().len()
        }
    };
    pieces.iter().map(one).sum()
}

fn kind_of(shape: &Shape) -> &'static str {
    match shape {
        Shape::Fixed(Value::Null) => "null",
        Shape::Fixed(Value::Bool(_)) => "a truth value",
        Shape::Fixed(Value::Number(_)) => "a number",
        Shape::Fixed(Value::String(_)) | Shape::Text(_) => "a text",
        Shape::Fixed(Value::Array(_)) | Shape::List(_) => "an array",
        Shape::Fixed(Value::Object(_)) | Shape::Members(_) => "an object",
    }
}

/// The compilation of messages: what the parts that were met are for.
struct Compiler {
    purposes: Vec<Option<Purpose>>,
}

impl Compiler {
    /// The pieces of a message, in the order of its fields' numbers.
    fn message(
        &mut self,
        message: &MessageDescriptor,
        members: &[(Shape, Shape)],
    ) -> Result<Vec<Piece>, String> {
        let mut fields: Vec<(u32, Vec<Piece>)> = Vec::new();
        let mut choices: HashMap<String, String> = HashMap::new();
        for (name, value) in members {
            let Shape::Fixed(Value::String(name)) = name else {
                return Err(format!("a name in `{}` has a slot, and names cannot vary", message.full_name()));
            };
            let named = message.get_field_by_json_name(name).or_else(|| message.get_field_by_name(name));
            let Some(field) = named else {
                // A name that is none; or an extension, which only a fixed value has.
                let Shape::Fixed(value) = value else {
                    return Err(format!("unrecognized field name '{name}'"));
                };
                fields.push((u32::MAX, constant(message, name, value)?));
                continue;
            };
            if let Some(choice) = field.containing_oneof().filter(|choice| !choice.is_synthetic())
                && !matches!(value, Shape::Fixed(Value::Null))
                && let Some(other) = choices.insert(choice.full_name().to_owned(), name.clone())
            {
                return Err(format!("`{other}` and `{name}` are of the oneof `{}`", choice.name()));
            }
            if fields.iter().any(|(number, _)| *number == field.number()) {
                return Err(format!("the field `{}` is there twice", field.name()));
            }
            fields.push((field.number(), self.field(message, &field, name, value)?));
        }
        let is_missing = |field: &FieldDescriptor| {
            field.cardinality() == Cardinality::Required
                && !fields.iter().any(|(number, _)| *number == field.number())
        };
        if let Some(missing) = message.fields().find(is_missing) {
            return Err(format!("the required field `{}` is missing", missing.name()));
        }
        fields.sort_by_key(|(number, _)| *number);
        Ok(fields.into_iter().flat_map(|(_, pieces)| pieces).collect())
    }

    fn field(
        &mut self,
        message: &MessageDescriptor,
        field: &FieldDescriptor,
        name: &str,
        value: &Shape,
    ) -> Result<Vec<Piece>, String> {
        if let Shape::Fixed(value) = value
            && (!is_plain_message(field) || !(value.is_object() || value.is_array()))
        {
            return constant(message, name, value);
        }
        if field.is_map() {
            return self.entries(field, value);
        }
        if !field.is_list() {
            let always = field.supports_presence();
            return Ok(vec![self.single(field, value, tag(field), always)?]);
        }
        let Some(items) = value.items() else {
            return Err(format!("the field `{}` wants an array, and has {}", field.name(), kind_of(value)));
        };
        if field.is_packed() {
            let pieces = items.iter().map(|item| self.single(field, item, Vec::new(), true));
            let pieces = pieces.collect::<Result<Vec<_>, _>>()?;
            return Ok(vec![Piece::Nested { tag: tag_of(field.number(), LENGTH_DELIMITED), pieces }]);
        }
        items.iter().map(|item| self.single(field, item, tag(field), true)).collect()
    }

    /// The entries of a map: messages of a key and a value.
    fn entries(&mut self, field: &FieldDescriptor, value: &Shape) -> Result<Vec<Piece>, String> {
        let Kind::Message(entry) = field.kind() else { return Ok(Vec::new()) };
        let Some(members) = value.members() else {
            return Err(format!("the field `{}` wants an object, and has {}", field.name(), kind_of(value)));
        };
        let (key, value) = (entry.map_entry_key_field(), entry.map_entry_value_field());
        let entries = members.iter().map(|(name, one)| {
            let pieces =
                vec![self.single(&key, name, tag(&key), true)?, self.single(&value, one, tag(&value), true)?];
            Ok(Piece::Nested { tag: tag(field), pieces })
        });
        entries.collect()
    }

    /// One value of a field, which may be one of a list.
    fn single(
        &mut self,
        field: &FieldDescriptor,
        value: &Shape,
        tag: Vec<u8>,
        always: bool,
    ) -> Result<Piece, String> {
        if field.is_group() {
            return Err(format!("the group `{}` takes no variables", field.name()));
        }
        if let Kind::Message(message) = field.kind() {
            let is_own = is_well_known(&message);
            if !is_own && let Some(members) = value.members() {
                return Ok(Piece::Nested { tag, pieces: self.message(&message, &members)? });
            }
            if !is_own {
                return Err(format!(
                    "the field `{}` wants an object, and has {}",
                    field.name(),
                    kind_of(value)
                ));
            }
            let content = self.whole(field.full_name(), &message, value)?;
            return Ok(Piece::Nested { tag, pieces: vec![content] });
        }
        let part = match value {
            Shape::Text(part) => *part,
            Shape::Fixed(value) => return fixed_element(field, value, tag).map(Piece::Literal),
            Shape::List(_) | Shape::Members(_) => {
                return Err(format!("the field `{}` has {}", field.name(), kind_of(value)));
            }
        };
        let (form, piece) = match field.kind() {
            Kind::String => (Form::Text, Piece::Text { tag, part, always }),
            Kind::Bytes => (Form::Bytes, Piece::Bytes { tag, part, always }),
            kind => {
                let number = Number::of(&kind);
                (Form::Number(number.clone()), Piece::Number { tag, part, number, always })
            }
        };
        self.note(part, field.full_name(), form);
        Ok(piece)
    }

    /// The content of a message with a form of its own in JSON, in the field of this name.
    fn whole(&mut self, field: &str, message: &MessageDescriptor, value: &Shape) -> Result<Piece, String> {
        match value {
            Shape::Text(part) => self.note(*part, field, Form::Whole(message.clone())),
            Shape::Fixed(value) => return whole_bytes(message, value).map(Piece::Literal),
            Shape::List(_) | Shape::Members(_) => {
                let empty = value.filled(&mut |_, _| {});
                whole_bytes(message, &empty)
                    .map_err(|why| format!("{why} (with empty texts in place of those that vary)"))?;
            }
        }
        Ok(Piece::Whole { message: message.clone(), shape: value.clone() })
    }

    fn note(&mut self, part: usize, field: &str, form: Form) {
        if let Some(purpose) = self.purposes.get_mut(part) {
            *purpose = Some(Purpose { field: field.to_owned(), form });
        }
    }
}

/// Returns `true` if the field holds messages whose JSON is an object of their fields.
fn is_plain_message(field: &FieldDescriptor) -> bool {
    match field.kind() {
        Kind::Message(message) if field.is_map() => is_plain_message(&message.map_entry_value_field()),
        Kind::Message(message) => !field.is_group() && !is_well_known(&message),
        _ => false,
    }
}

/// Returns `true` if a message has a form of its own in JSON.
fn is_well_known(message: &MessageDescriptor) -> bool {
    message.full_name().starts_with("google.protobuf.")
}

/// A field with a fixed value, encoded.
fn constant(message: &MessageDescriptor, name: &str, value: &Value) -> Result<Vec<Piece>, String> {
    let json = Value::Object(Map::from_iter([(name.to_owned(), value.clone())]));
    Ok(vec![Piece::Literal(whole_bytes(message, &json)?)])
}

/// One value of a field that is no message, encoded with this tag: an element of a list or of a map, which is
/// there even if it is zero.
fn fixed_element(field: &FieldDescriptor, value: &Value, mut tag: Vec<u8>) -> Result<Vec<u8>, String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        _ => {
            return Err(format!(
                "the field `{}` has {}",
                field.name(),
                kind_of(&Shape::Fixed(value.clone()))
            ));
        }
    };
    let wrong = |what: &str| format!("the value `{text}` of the field `{}` is no {what}", field.name());
    match field.kind() {
        Kind::String => {
            write_varint(text.len() as u64, &mut tag);
            tag.extend_from_slice(text.as_bytes());
        }
        Kind::Bytes => {
            let bytes = decoded(text.as_bytes()).ok_or_else(|| wrong("base64"))?;
            write_varint(bytes.len() as u64, &mut tag);
            tag.extend_from_slice(&bytes);
        }
        kind => {
            let number = Number::of(&kind);
            number.read(text.as_bytes()).ok_or_else(|| wrong(number.name()))?.write(&mut tag);
        }
    }
    Ok(tag)
}

fn whole_bytes(message: &MessageDescriptor, value: &Value) -> Result<Vec<u8>, String> {
    let message = DynamicMessage::deserialize(message.clone(), value);
    message.map(|message| message.encode_to_vec()).map_err(|error| error.to_string())
}

fn tag(field: &FieldDescriptor) -> Vec<u8> {
    let wire_type = match field.kind() {
        Kind::String | Kind::Bytes | Kind::Message(_) => LENGTH_DELIMITED,
        kind => Number::of(&kind).wire_type(),
    };
    tag_of(field.number(), wire_type)
}

fn tag_of(number: u32, wire_type: u64) -> Vec<u8> {
    let mut tag = Vec::new();
    write_varint(u64::from(number) << 3 | wire_type, &mut tag);
    tag
}

#[cfg(test)]
mod tests;
