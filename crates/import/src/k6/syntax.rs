//! The part of JavaScript that imports look at, as a tree that owns its texts. Types are left out.

use std::sync::Arc;

/// A place in a script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    /// The script that it is in, by its number.
    pub(super) module: usize,
    /// Bytes from the beginning.
    pub(super) start: usize,
    pub(super) end: usize,
}

/// An expression and its place.
#[derive(Clone, Debug)]
pub(super) struct Expression {
    pub(super) span: Span,
    pub(super) kind: Kind,
}

/// A kind of expression.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    Null,
    Boolean(bool),
    Number(f64),
    String(String),
    /// Pattern and flags.
    Regex(String, String),
    Name(String),
    /// The texts around the slots, and the slots.
    Template(Vec<String>, Vec<Expression>),
    /// A tag in front of a template.
    Tagged(Box<Expression>, Vec<String>, Vec<Expression>),
    Array(Vec<Element>),
    Object(Vec<Property>),
    Function(Arc<Function>),
    Unary(&'static str, Box<Expression>),
    /// Also `&&`, `||` and `??`.
    Binary(&'static str, Box<Expression>, Box<Expression>),
    /// A sum of any length.
    Sum(Vec<Expression>),
    Conditional(Box<Expression>, Box<Expression>, Box<Expression>),
    /// Target, operator (`=`, `+=`, …) and value; `++` adds 1.
    Assign(Box<Target>, &'static str, Box<Expression>),
    Call(Box<Expression>, Vec<Element>),
    New(Box<Expression>, Vec<Element>),
    Member(Box<Expression>, String),
    Index(Box<Expression>, Box<Expression>),
    Await(Box<Expression>),
    Sequence(Vec<Expression>),
    /// Anything else.
    Other,
}

/// An element of a list, or an argument.
#[derive(Clone, Debug)]
pub(super) struct Element {
    /// `...` is in front of it.
    pub(super) is_spread: bool,
    pub(super) value: Expression,
}

/// A member of an object that is written out.
#[derive(Clone, Debug)]
pub(super) enum Property {
    /// A key, which may be computed, and its value.
    Pair(Expression, Expression),
    Spread(Expression),
}

/// The target of an assignment.
#[derive(Clone, Debug)]
pub(super) enum Target {
    Expression(Expression),
    Pattern(Pattern),
}

/// Names that a value is bound to.
#[derive(Clone, Debug)]
pub(super) enum Pattern {
    Name(String),
    /// A value that is taken if there is none.
    Default(Box<Pattern>, Box<Expression>),
    /// Members by their keys, and the name of the rest.
    Object(Vec<(String, Pattern)>, Option<String>),
    Array(Vec<Option<Pattern>>),
    Other,
}

/// A function of any form.
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub(super) span: Span,
    pub(super) parameters: Vec<Pattern>,
    pub(super) body: Vec<Statement>,
}

/// A statement and its place.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    pub(super) span: Span,
    pub(super) kind: StatementKind,
}

/// A kind of statement.
#[derive(Clone, Debug)]
pub(super) enum StatementKind {
    Expression(Expression),
    Declare(Vec<(Pattern, Option<Expression>)>),
    Function(String, Arc<Function>),
    Return(Option<Expression>),
    If(Expression, Vec<Statement>, Vec<Statement>),
    For {
        before: Option<Box<Statement>>,
        test: Option<Expression>,
        update: Option<Expression>,
        body: Vec<Statement>,
    },
    ForOf(Pattern, Expression, Vec<Statement>),
    /// `while` and `do`.
    While(Expression, Vec<Statement>),
    Block(Vec<Statement>),
    /// A block; what is done after an error in it; what is done in any case.
    Try(Vec<Statement>, Option<Span>, Vec<Statement>),
    Throw(Expression),
    Break,
    Continue,
    Import {
        from: String,
        names: Vec<Imported>,
    },
    /// Names of the module, and what they are called outside.
    Export(Vec<(String, String)>),
    ExportDefault(Expression),
    Empty,
    /// Anything else.
    Other,
}

/// A name that a module is given.
#[derive(Clone, Debug)]
pub(super) struct Imported {
    /// `default`, `*` or the name there.
    pub(super) theirs: String,
    pub(super) ours: String,
}

/// A script that has been read.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) body: Vec<Statement>,
    /// Places of the beginnings of lines.
    lines: Vec<usize>,
}

impl Script {
    pub(super) fn new(name: &str, text: String, body: Vec<Statement>) -> Self {
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { name: name.to_owned(), text, body, lines }
    }

    /// `script.js:12`.
    pub(super) fn place(&self, span: Span) -> String {
        let line = self.lines.partition_point(|begin| *begin <= span.start);
        format!("{}:{line}", self.name)
    }

    /// The text there.
    pub(super) fn said(&self, span: Span) -> &str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }
}
