//! The part of JavaScript and Python that imports look at, as a tree that owns its texts. Types are left out.

use std::sync::Arc;

/// A place in a script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Span {
    /// The script that it is in, by its number.
    pub(crate) module: usize,
    /// Bytes from the beginning.
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// An expression and its place.
#[derive(Clone, Debug)]
pub(crate) struct Expression {
    pub(crate) span: Span,
    pub(crate) kind: Kind,
}

/// A kind of expression.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
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
    /// Arguments that are given by their names, behind all others.
    Keywords(Vec<Property>),
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
pub(crate) struct Element {
    /// `...` is in front of it.
    pub(crate) is_spread: bool,
    pub(crate) value: Expression,
}

/// A member of an object that is written out.
#[derive(Clone, Debug)]
pub(crate) enum Property {
    /// A key, which may be computed, and its value.
    Pair(Expression, Expression),
    Spread(Expression),
}

/// The target of an assignment.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    Expression(Expression),
    Pattern(Pattern),
}

/// Names that a value is bound to.
#[derive(Clone, Debug)]
pub(crate) enum Pattern {
    Name(String),
    /// A value that is taken if there is none.
    Default(Box<Pattern>, Box<Expression>),
    /// Members by their keys, and the name of the rest.
    Object(Vec<(String, Pattern)>, Option<String>),
    Array(Vec<Option<Pattern>>),
    Other,
}

impl Pattern {
    /// The name, if it is a single one.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            Self::Default(pattern, _) => pattern.name(),
            _ => None,
        }
    }
}

/// A function of any form.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) span: Span,
    pub(crate) parameters: Vec<Pattern>,
    pub(crate) body: Vec<Statement>,
}

/// A statement and its place.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub(crate) span: Span,
    pub(crate) kind: StatementKind,
}

/// A kind of statement.
#[derive(Clone, Debug)]
pub(crate) enum StatementKind {
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
    Class(Arc<Class>),
    /// A class that is not followed, by its name.
    Program(String),
    /// Statements within one that is not followed.
    Unfollowed(Vec<Statement>),
    Empty,
    /// Anything else.
    Other,
}

/// A class, with what its body says.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub(crate) span: Span,
    pub(crate) name: String,
    pub(crate) bases: Vec<Expression>,
    /// Decorators in front of it.
    pub(crate) decorators: Vec<Expression>,
    pub(crate) members: Vec<ClassMember>,
}

/// A statement in the body of a class.
#[derive(Clone, Debug)]
pub(crate) enum ClassMember {
    Value(String, Expression),
    Method { name: String, function: Arc<Function>, decorators: Vec<Expression> },
    Class(Arc<Class>),
    Other(Span),
}

/// A name that a module is given.
#[derive(Clone, Debug)]
pub(crate) struct Imported {
    /// `default`, `*` or the name there.
    pub(crate) theirs: String,
    pub(crate) ours: String,
}

/// A script that has been read.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) body: Vec<Statement>,
    /// Places of the beginnings of lines.
    lines: Vec<usize>,
}

impl Script {
    pub(crate) fn new(name: &str, text: String, body: Vec<Statement>) -> Self {
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { name: name.to_owned(), text, body, lines }
    }

    /// `script.js:12`.
    pub(crate) fn place(&self, span: Span) -> String {
        let line = self.lines.partition_point(|begin| *begin <= span.start);
        format!("{}:{line}", self.name)
    }

    /// The text there.
    pub(crate) fn said(&self, span: Span) -> &str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }
}
