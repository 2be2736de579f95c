//! Python, as the tree that imports of scripts look at.

use std::collections::BTreeSet;
use std::sync::Arc;

use plimsoll_document::Problems;
use tree_sitter::Node;

use crate::findings::Findings;
use crate::k6::statement::within;
use crate::k6::syntax::{
    Class, ClassMember, Element, Expression, Function, Imported, Kind, Pattern, Property, Span, Statement,
    StatementKind, Target,
};
use crate::syntax::{self, Refused, children, in_field, text_of};

/// Largest whole number that a value keeps exactly.
const LARGEST_WHOLE: f64 = 9_007_199_254_740_992.0;

/// Reads a file. Its number is `module`.
pub(crate) fn read(name: &str, text: &str, module: usize) -> Result<Vec<Statement>, Problems> {
    let language = tree_sitter_python::LANGUAGE.into();
    let tree = syntax::parse(text, &language, "Python").map_err(|Refused { line, message }| {
        Findings::fail(&format!("{name}:{line}"), message, "the file has to be a locustfile, in Python 3")
    })?;
    let mut reader = Reader { text, module, selves: Vec::new() };
    let mut body = Vec::new();
    reader.hoist(tree.root_node(), &mut body);
    reader.statements(tree.root_node(), &mut body);
    Ok(body)
}

/// A walk through the tree of a file.
struct Reader<'t> {
    text: &'t str,
    module: usize,
    /// Names of the first parameters of the methods that are open: `self`, mostly.
    selves: Vec<String>,
}

impl<'t> Reader<'t> {
    fn span(&self, node: Node<'_>) -> Span {
        Span { module: self.module, start: node.start_byte(), end: node.end_byte() }
    }

    fn words(&self, node: Node<'_>) -> &'t str {
        text_of(node, self.text)
    }

    fn field(&self, node: Node<'t>, name: &str) -> Option<Node<'t>> {
        node.child_by_field_name(name)
    }

    fn make(&self, node: Node<'_>, kind: Kind) -> Expression {
        Expression { span: self.span(node), kind }
    }

    fn statement_of(&self, node: Node<'_>, kind: StatementKind) -> Statement {
        Statement { span: self.span(node), kind }
    }

    fn name(&self, node: Node<'_>) -> String {
        let name = self.words(node);
        if self.selves.last().is_some_and(|own| own == name) { "self".to_owned() } else { name.to_owned() }
    }

    /// Declares the names that statements assign to: they belong to the function, not to the block.
    fn hoist(&self, body: Node<'t>, statements: &mut Vec<Statement>) {
        let (mut names, mut foreign) = (BTreeSet::new(), BTreeSet::new());
        self.assigned(body, &mut names, &mut foreign);
        let names: Vec<_> = names.difference(&foreign).cloned().collect();
        if !names.is_empty() {
            let declared = names.into_iter().map(|name| (Pattern::Name(name), None)).collect();
            statements.push(self.statement_of(body, StatementKind::Declare(declared)));
        }
    }

    fn assigned(&self, node: Node<'t>, names: &mut BTreeSet<String>, foreign: &mut BTreeSet<String>) {
        for child in children(node) {
            match child.kind() {
                "function_definition" | "class_definition" | "decorated_definition" | "lambda" => {}
                "assignment" | "named_expression" => {
                    let field = if child.kind() == "assignment" { "left" } else { "name" };
                    if let Some(left) = self.field(child, field) {
                        self.targets(left, names);
                    }
                    self.assigned(child, names, foreign);
                }
                "as_pattern" => {
                    if let Some(alias) = self.field(child, "alias") {
                        children(alias).into_iter().for_each(|name| self.targets(name, names));
                    }
                }
                "global_statement" | "nonlocal_statement" => {
                    foreign.extend(children(child).into_iter().map(|name| self.words(name).to_owned()));
                }
                _ => self.assigned(child, names, foreign),
            }
        }
    }

    fn targets(&self, node: Node<'t>, names: &mut BTreeSet<String>) {
        match node.kind() {
            "identifier" => {
                names.insert(self.name(node));
            }
            "pattern_list" | "tuple_pattern" | "list_pattern" => {
                children(node).into_iter().for_each(|inner| self.targets(inner, names));
            }
            _ => {}
        }
    }

    fn statements(&mut self, block: Node<'t>, statements: &mut Vec<Statement>) {
        for node in children(block) {
            self.statement(node, statements);
        }
    }

    fn block(&mut self, block: Option<Node<'t>>) -> Vec<Statement> {
        let mut statements = Vec::new();
        if let Some(block) = block {
            self.statements(block, &mut statements);
        }
        statements
    }

    fn statement(&mut self, node: Node<'t>, statements: &mut Vec<Statement>) {
        let kind = match node.kind() {
            "expression_statement" => {
                for inner in children(node) {
                    if !matches!(inner.kind(), "string" | "ellipsis") {
                        let kind = StatementKind::Expression(self.expression(inner));
                        statements.push(self.statement_of(inner, kind));
                    }
                }
                return;
            }
            "import_statement" | "import_from_statement" => {
                self.import(node, statements);
                return;
            }
            "return_statement" => {
                let value = children(node).first().map(|value| self.expression(*value));
                StatementKind::Return(value)
            }
            "raise_statement" => {
                let value = children(node).first().map(|value| self.expression(*value));
                StatementKind::Throw(value.unwrap_or_else(|| self.make(node, Kind::Null)))
            }
            "assert_statement" => {
                let Some(first) = children(node).first().copied() else { return };
                let test = self.expression(first);
                let callee = self.make(node, Kind::Name("assert".to_owned()));
                StatementKind::Expression(self.make(node, Kind::Call(Box::new(callee), vec![plain(test)])))
            }
            "delete_statement" => {
                let parts = children(node);
                let parts = match parts.as_slice() {
                    [list] if list.kind() == "expression_list" => children(*list),
                    _ => parts,
                };
                for part in parts {
                    let part = self.expression(part);
                    let kind = Kind::Unary("delete", Box::new(part));
                    let delete = self.make(node, kind);
                    statements.push(self.statement_of(node, StatementKind::Expression(delete)));
                }
                return;
            }
            "pass_statement"
            | "global_statement"
            | "nonlocal_statement"
            | "future_import_statement"
            | "type_alias_statement" => StatementKind::Empty,
            "break_statement" => StatementKind::Break,
            "continue_statement" => StatementKind::Continue,
            "if_statement" => {
                let alternatives = in_field(node, "alternative");
                self.conditional(node, &alternatives)
            }
            "for_statement" => self.for_loop(node),
            "while_statement" => {
                let test = self.in_field(node, "condition");
                StatementKind::While(test, self.block(self.field(node, "body")))
            }
            "try_statement" => self.attempt(node),
            "with_statement" => self.with(node),
            "function_definition" => {
                let (name, function) = self.function(node, false);
                StatementKind::Function(name, function)
            }
            "class_definition" => StatementKind::Class(self.class(node, Vec::new())),
            "decorated_definition" => self.decorated(node),
            _ => StatementKind::Other,
        };
        statements.push(self.statement_of(node, kind));
    }

    fn in_field(&mut self, node: Node<'t>, name: &str) -> Expression {
        match self.field(node, name) {
            Some(inner) => self.expression(inner),
            None => self.make(node, Kind::Other),
        }
    }

    fn import(&mut self, node: Node<'t>, statements: &mut Vec<Statement>) {
        let module = self.field(node, "module_name").map(|module| self.words(module).to_owned());
        for name in in_field(node, "name") {
            let (theirs, alias) = match name.kind() {
                "aliased_import" => (self.field(name, "name"), self.field(name, "alias")),
                _ => (Some(name), None),
            };
            let theirs = theirs.map(|theirs| self.words(theirs).to_owned()).unwrap_or_default();
            let ours = alias.map(|alias| self.words(alias).to_owned());
            let (from, imported) = match &module {
                Some(module) => {
                    let ours = ours.unwrap_or_else(|| theirs.clone());
                    (module.clone(), Imported { theirs, ours })
                }
                None => {
                    // `import a.b` gives the name `a`.
                    let first = theirs.split('.').next().unwrap_or_default().to_owned();
                    let from = if ours.is_some() { theirs } else { first.clone() };
                    (from, Imported { theirs: "*".to_owned(), ours: ours.unwrap_or(first) })
                }
            };
            let kind = StatementKind::Import { from, names: vec![imported] };
            statements.push(self.statement_of(node, kind));
        }
        if children(node).iter().any(|child| child.kind() == "wildcard_import") {
            let from = module.unwrap_or_default();
            let all = Imported { theirs: "*".to_owned(), ours: "*".to_owned() };
            statements.push(self.statement_of(node, StatementKind::Import { from, names: vec![all] }));
        }
    }

    fn conditional(&mut self, node: Node<'t>, alternatives: &[Node<'t>]) -> StatementKind {
        let test = self.in_field(node, "condition");
        let then = self.block(self.field(node, "consequence"));
        let otherwise = match alternatives {
            [] => Vec::new(),
            [first, rest @ ..] if first.kind() == "elif_clause" => {
                let kind = self.conditional(*first, rest);
                vec![self.statement_of(*first, kind)]
            }
            [last, ..] => self.block(self.field(*last, "body")),
        };
        StatementKind::If(test, then, otherwise)
    }

    /// `for i in range(…)` counts; any other loop goes over a list.
    fn for_loop(&mut self, node: Node<'t>) -> StatementKind {
        let left = self.field(node, "left");
        let pattern = left.map_or(Pattern::Other, |left| self.pattern(left));
        let list = self.in_field(node, "right");
        let body = self.block(self.field(node, "body"));
        let span = self.span(node);
        if let (Pattern::Name(name), Kind::Call(callee, arguments)) = (&pattern, &list.kind)
            && matches!(&callee.kind, Kind::Name(range) if range == "range")
            && arguments.len() <= 2
            && arguments.iter().all(|argument| !argument.is_spread)
        {
            let number = |number: f64| Expression { span, kind: Kind::Number(number) };
            let (first, limit) = match arguments.as_slice() {
                [limit] => (number(0.0), limit.value.clone()),
                [first, limit] => (first.value.clone(), limit.value.clone()),
                _ => return StatementKind::ForOf(pattern, list, body),
            };
            let counter = || Expression { span, kind: Kind::Name(name.clone()) };
            let before = StatementKind::Declare(vec![(pattern.clone(), Some(first))]);
            let test = Kind::Binary("<", Box::new(counter()), Box::new(limit));
            let target = Box::new(Target::Expression(counter()));
            let update = Kind::Assign(target, "+=", Box::new(number(1.0)));
            return StatementKind::For {
                before: Some(Box::new(Statement { span, kind: before })),
                test: Some(Expression { span: list.span, kind: test }),
                update: Some(Expression { span, kind: update }),
                body,
            };
        }
        StatementKind::ForOf(pattern, list, body)
    }

    fn attempt(&mut self, node: Node<'t>) -> StatementKind {
        let mut body = self.block(self.field(node, "body"));
        let (mut handler, mut finally) = (None, Vec::new());
        for clause in children(node) {
            match clause.kind() {
                "except_clause" | "except_group_clause" => handler = handler.or(Some(self.span(clause))),
                "else_clause" => body.extend(self.block(self.field(clause, "body"))),
                "finally_clause" => {
                    let block = children(clause).into_iter().find(|child| child.kind() == "block");
                    finally = self.block(block);
                }
                _ => {}
            }
        }
        StatementKind::Try(body, handler, finally)
    }

    /// `with value as name:` gives the value the name.
    fn with(&mut self, node: Node<'t>) -> StatementKind {
        let mut statements = Vec::new();
        let clause = children(node).into_iter().find(|child| child.kind() == "with_clause");
        for item in clause.map(children).unwrap_or_default() {
            let Some(value) = self.field(item, "value") else { continue };
            if value.kind() != "as_pattern" {
                let value = self.expression(value);
                statements.push(Statement { span: value.span, kind: StatementKind::Expression(value) });
                continue;
            }
            let alias = self.field(value, "alias").and_then(|alias| children(alias).first().copied());
            let Some(subject) = children(value).first().copied() else { continue };
            let subject = self.expression(subject);
            let kind = match alias {
                Some(alias) => {
                    let target = Box::new(self.target(alias));
                    Kind::Assign(target, "=", Box::new(subject))
                }
                None => Kind::Await(Box::new(subject)),
            };
            let made = self.make(value, kind);
            statements.push(self.statement_of(value, StatementKind::Expression(made)));
        }
        statements.extend(self.block(self.field(node, "body")));
        StatementKind::Block(statements)
    }

    fn decorated(&mut self, node: Node<'t>) -> StatementKind {
        let decorators = self.decorators(node);
        let Some(definition) = self.field(node, "definition") else { return StatementKind::Other };
        let is_known = decorators.iter().all(is_task);
        match definition.kind() {
            "class_definition" => StatementKind::Class(self.class(definition, decorators)),
            "function_definition" if is_known => {
                let (name, function) = self.function(definition, false);
                StatementKind::Function(name, function)
            }
            _ => StatementKind::Other,
        }
    }

    fn decorators(&mut self, node: Node<'t>) -> Vec<Expression> {
        let mut decorators = Vec::new();
        for child in children(node).into_iter().filter(|child| child.kind() == "decorator") {
            decorators.extend(children(child).first().map(|inner| self.expression(*inner)));
        }
        decorators
    }

    fn class(&mut self, node: Node<'t>, decorators: Vec<Expression>) -> Arc<Class> {
        let name = self.field(node, "name").map(|name| self.words(name).to_owned()).unwrap_or_default();
        let mut bases = Vec::new();
        for base in self.field(node, "superclasses").map(children).unwrap_or_default() {
            if base.kind() != "keyword_argument" {
                bases.push(self.expression(base));
            }
        }
        let mut members = Vec::new();
        for inner in self.field(node, "body").map(children).unwrap_or_default() {
            let (definition, decorators) = match inner.kind() {
                "decorated_definition" => (self.field(inner, "definition"), self.decorators(inner)),
                _ => (Some(inner), Vec::new()),
            };
            let Some(definition) = definition else { continue };
            match definition.kind() {
                "function_definition" => {
                    let is_static = decorators
                        .iter()
                        .any(|one| matches!(&one.kind, Kind::Name(name) if name == "staticmethod"));
                    let (name, function) = self.function(definition, !is_static);
                    members.push(ClassMember::Method { name, function, decorators });
                }
                "class_definition" => members.push(ClassMember::Class(self.class(definition, decorators))),
                "pass_statement" => {}
                "expression_statement" => self.class_values(definition, &mut members),
                _ => members.push(ClassMember::Other(self.span(definition))),
            }
        }
        Arc::new(Class { span: self.span(node), name, bases, decorators, members })
    }

    /// `name = value` in the body of a class.
    fn class_values(&mut self, node: Node<'t>, members: &mut Vec<ClassMember>) {
        for inner in children(node) {
            let name = self.field(inner, "left").filter(|left| left.kind() == "identifier");
            match (inner.kind(), name, self.field(inner, "right")) {
                ("assignment", Some(name), Some(value)) => {
                    let value = self.expression(value);
                    members.push(ClassMember::Value(self.words(name).to_owned(), value));
                }
                // Only its type is said.
                ("assignment", Some(_), None) | ("string" | "ellipsis", ..) => {}
                _ => members.push(ClassMember::Other(self.span(inner))),
            }
        }
    }

    fn function(&mut self, node: Node<'t>, is_method: bool) -> (String, Arc<Function>) {
        let name = self.field(node, "name").map(|name| self.words(name).to_owned()).unwrap_or_default();
        let mut given = self.field(node, "parameters").map(children).unwrap_or_default();
        let own = if is_method && !given.is_empty() { Some(given.remove(0)) } else { None };
        if let Some(own) = own {
            self.selves.push(self.words(own).split(':').next().unwrap_or_default().trim().to_owned());
        }
        let parameters = self.parameters(&given);
        let mut body = Vec::new();
        if let Some(block) = self.field(node, "body") {
            let mut names = Vec::new();
            self.hoist(block, &mut names);
            // A parameter has its value already.
            for statement in &mut names {
                if let StatementKind::Declare(declared) = &mut statement.kind {
                    declared.retain(|(declared, _)| {
                        !parameters.iter().any(|known: &Pattern| known.name() == declared.name())
                    });
                }
            }
            body = names;
            self.statements(block, &mut body);
        }
        if own.is_some() {
            self.selves.pop();
        }
        (name, Arc::new(Function { span: self.span(node), parameters, body }))
    }

    fn parameters(&mut self, given: &[Node<'t>]) -> Vec<Pattern> {
        let mut parameters = Vec::new();
        for parameter in given {
            match parameter.kind() {
                "identifier" => parameters.push(Pattern::Name(self.name(*parameter))),
                "typed_parameter" => {
                    let name = children(*parameter).first().copied();
                    if let Some(name) = name.filter(|name| name.kind() == "identifier") {
                        parameters.push(Pattern::Name(self.name(name)));
                    }
                }
                "default_parameter" | "typed_default_parameter" => {
                    let Some(name) = self.field(*parameter, "name") else { continue };
                    let name = self.name(name);
                    let value = self.in_field(*parameter, "value");
                    parameters.push(Pattern::Default(Box::new(Pattern::Name(name)), Box::new(value)));
                }
                _ => {}
            }
        }
        parameters
    }

    fn pattern(&mut self, node: Node<'t>) -> Pattern {
        match node.kind() {
            "identifier" => Pattern::Name(self.name(node)),
            "pattern_list" | "tuple_pattern" | "list_pattern" => {
                Pattern::Array(children(node).into_iter().map(|inner| Some(self.pattern(inner))).collect())
            }
            _ => Pattern::Other,
        }
    }

    fn target(&mut self, node: Node<'t>) -> Target {
        match node.kind() {
            "pattern_list" | "tuple_pattern" | "list_pattern" => Target::Pattern(self.pattern(node)),
            _ => Target::Expression(self.expression(node)),
        }
    }

    fn expression(&mut self, node: Node<'t>) -> Expression {
        let kind = match node.kind() {
            "parenthesized_expression" | "await" => match children(node).first() {
                Some(inner) => return self.expression(*inner),
                None => Kind::Other,
            },
            "identifier" => Kind::Name(self.name(node)),
            "true" => Kind::Boolean(true),
            "false" => Kind::Boolean(false),
            "none" => Kind::Null,
            "integer" | "float" => number(self.words(node)),
            "string" => return self.string(node),
            "concatenated_string" => {
                let parts = children(node).into_iter().map(|part| self.string(part)).collect();
                Kind::Sum(parts)
            }
            "list" | "tuple" | "set" | "expression_list" => Kind::Array(self.elements(&children(node)).0),
            "dictionary" => Kind::Object(self.pairs(node)),
            "attribute" => {
                let object = self.in_field(node, "object");
                let name = self.field(node, "attribute").map(|name| self.words(name)).unwrap_or_default();
                Kind::Member(Box::new(object), name.to_owned())
            }
            "subscript" => {
                let object = self.in_field(node, "value");
                match in_field(node, "subscript").as_slice() {
                    [index] if index.kind() != "slice" => {
                        let index = self.expression(*index);
                        Kind::Index(Box::new(object), Box::new(index))
                    }
                    _ => Kind::Other,
                }
            }
            "call" => return self.call(node),
            "assignment" => {
                let Some(left) = self.field(node, "left") else { return self.make(node, Kind::Other) };
                // Only its type is said.
                if self.field(node, "right").is_none() {
                    return self.make(node, Kind::Null);
                }
                let target = Box::new(self.target(left));
                Kind::Assign(target, "=", Box::new(self.in_field(node, "right")))
            }
            "augmented_assignment" => {
                let target = Box::new(Target::Expression(self.in_field(node, "left")));
                let operator = self.field(node, "operator").map(|one| self.words(one)).unwrap_or_default();
                match ["+=", "-=", "*=", "/=", "%="].into_iter().find(|known| *known == operator) {
                    Some(known) => Kind::Assign(target, known, Box::new(self.in_field(node, "right"))),
                    None => Kind::Other,
                }
            }
            "named_expression" => {
                let target = Box::new(Target::Expression(self.in_field(node, "name")));
                Kind::Assign(target, "=", Box::new(self.in_field(node, "value")))
            }
            "not_operator" => Kind::Unary("!", Box::new(self.in_field(node, "argument"))),
            "unary_operator" => {
                let operator = self.field(node, "operator").map(|one| self.words(one)).unwrap_or_default();
                match ["-", "+"].into_iter().find(|known| *known == operator) {
                    Some(known) => Kind::Unary(known, Box::new(self.in_field(node, "argument"))),
                    None => Kind::Other,
                }
            }
            "boolean_operator" => {
                let operator = self.field(node, "operator").map(|one| self.words(one)).unwrap_or_default();
                let operator = if operator == "and" { "&&" } else { "||" };
                let left = self.in_field(node, "left");
                Kind::Binary(operator, Box::new(left), Box::new(self.in_field(node, "right")))
            }
            "binary_operator" => return self.binary(node),
            "comparison_operator" => return self.comparison(node),
            "conditional_expression" => match children(node).as_slice() {
                [then, test, otherwise] => {
                    let (then, test) = (self.expression(*then), self.expression(*test));
                    let otherwise = self.expression(*otherwise);
                    Kind::Conditional(Box::new(test), Box::new(then), Box::new(otherwise))
                }
                _ => Kind::Other,
            },
            "lambda" => {
                let parameters = self.field(node, "parameters").map(children).unwrap_or_default();
                let parameters = self.parameters(&parameters);
                let value = self.in_field(node, "body");
                self.returning(node, parameters, value)
            }
            "list_comprehension" | "generator_expression" => return self.comprehension(node),
            _ => Kind::Other,
        };
        self.make(node, kind)
    }

    /// A function that returns a value.
    fn returning(&self, node: Node<'_>, parameters: Vec<Pattern>, value: Expression) -> Kind {
        let body = vec![Statement { span: value.span, kind: StatementKind::Return(Some(value)) }];
        Kind::Function(Arc::new(Function { span: self.span(node), parameters, body }))
    }

    /// Elements of a list or arguments, and those with names.
    fn elements(&mut self, nodes: &[Node<'t>]) -> (Vec<Element>, Vec<Property>) {
        let (mut elements, mut named) = (Vec::new(), Vec::new());
        for node in nodes {
            match node.kind() {
                "keyword_argument" => {
                    let Some(name) = self.field(*node, "name") else { continue };
                    let key = Kind::String(self.words(name).to_owned());
                    let key = self.make(name, key);
                    named.push(Property::Pair(key, self.in_field(*node, "value")));
                }
                "dictionary_splat" => {
                    named.extend(
                        children(*node).first().map(|inner| Property::Spread(self.expression(*inner))),
                    );
                }
                "list_splat" => {
                    elements.extend(
                        children(*node)
                            .first()
                            .map(|inner| Element { is_spread: true, value: self.expression(*inner) }),
                    );
                }
                _ => elements.push(plain(self.expression(*node))),
            }
        }
        (elements, named)
    }

    fn pairs(&mut self, node: Node<'t>) -> Vec<Property> {
        let mut pairs = Vec::new();
        for pair in children(node) {
            match pair.kind() {
                "pair" => {
                    let key = self.in_field(pair, "key");
                    pairs.push(Property::Pair(key, self.in_field(pair, "value")));
                }
                _ => pairs
                    .extend(children(pair).first().map(|inner| Property::Spread(self.expression(*inner)))),
            }
        }
        pairs
    }

    fn call(&mut self, node: Node<'t>) -> Expression {
        let Some(given) = self.field(node, "arguments") else { return self.make(node, Kind::Other) };
        let nodes = if given.kind() == "argument_list" { children(given) } else { vec![given] };
        let function = self.field(node, "function");
        // `super().__init__(…)` does nothing that matters here.
        let words = function.map(|function| self.words(function)).unwrap_or_default();
        if words.starts_with("super(") && words.ends_with(".__init__") {
            return self.make(node, Kind::Null);
        }
        let (mut elements, named) = self.elements(&nodes);
        if let Some(function) = function
            && function.kind() == "attribute"
            && self.field(function, "attribute").is_some_and(|name| self.words(name) == "format")
            && let Some(text) = self.field(function, "object").filter(|text| text.kind() == "string")
            && let Kind::String(text) = self.string(text).kind
            && let Some(kind) = formatted(&text, &elements, &named)
        {
            return self.make(node, kind);
        }
        if !named.is_empty() {
            elements.push(plain(self.make(given, Kind::Keywords(named))));
        }
        let callee = self.in_field(node, "function");
        self.make(node, Kind::Call(Box::new(callee), elements))
    }

    /// A sum of any length is one list of its terms.
    fn binary(&mut self, node: Node<'t>) -> Expression {
        let operator = self.field(node, "operator").map(|one| self.words(one)).unwrap_or_default();
        let left = self.in_field(node, "left");
        let right = self.in_field(node, "right");
        let kind = match (operator, left.kind) {
            ("+", Kind::Sum(mut terms)) => {
                terms.push(right);
                Kind::Sum(terms)
            }
            ("+", kind) => Kind::Sum(vec![Expression { span: left.span, kind }, right]),
            ("%", Kind::String(text)) => {
                let arguments = match right.kind {
                    Kind::Array(elements) => elements,
                    kind => vec![plain(Expression { span: right.span, kind })],
                };
                percent(&text, &arguments).unwrap_or(Kind::Other)
            }
            (operator, kind) => match ["-", "*", "/", "%", "**"].into_iter().find(|one| *one == operator) {
                Some(known) => {
                    let left = Expression { span: left.span, kind };
                    Kind::Binary(known, Box::new(left), Box::new(right))
                }
                None => Kind::Other,
            },
        };
        self.make(node, kind)
    }

    /// `a < b <= c` holds if both comparisons do.
    fn comparison(&mut self, node: Node<'t>) -> Expression {
        let operators: Vec<String> = in_field(node, "operators")
            .into_iter()
            .map(|one| self.words(one).split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        let operands: Vec<Expression> =
            children(node).into_iter().filter(Node::is_named).map(|one| self.expression(one)).collect();
        // `not in` and `is not` are two words each, of which a grammar may make two tokens.
        let mut words = operators.join(" ");
        words.push(' ');
        let mut all: Option<Expression> = None;
        for pair in operands.windows(2) {
            let known = ["not in", "is not", "in", "is", "==", "!=", "<=", ">=", "<", ">"];
            let Some(operator) = known.into_iter().find(|known| words.starts_with(&format!("{known} ")))
            else {
                return self.make(node, Kind::Other);
            };
            words.drain(..=operator.len());
            let is_middle = all.is_some();
            if is_middle && calls_once(&pair[0]) {
                return self.make(node, Kind::Other);
            }
            let compared = self.compared(node, operator, pair[0].clone(), pair[1].clone());
            all = Some(match all {
                Some(all) => self.make(node, Kind::Binary("&&", Box::new(all), Box::new(compared))),
                None => compared,
            });
        }
        all.unwrap_or_else(|| self.make(node, Kind::Other))
    }

    fn compared(&self, node: Node<'_>, operator: &str, left: Expression, right: Expression) -> Expression {
        let known = match operator {
            "in" | "not in" => {
                let method = self.make(node, Kind::Member(Box::new(right), "__contains__".to_owned()));
                let call = self.make(node, Kind::Call(Box::new(method), vec![plain(left)]));
                return match operator {
                    "in" => call,
                    _ => self.make(node, Kind::Unary("!", Box::new(call))),
                };
            }
            "is" => "is",
            "is not" => "is not",
            "==" => "===",
            "!=" => "!==",
            "<=" => "<=",
            ">=" => ">=",
            "<" => "<",
            _ => ">",
        };
        self.make(node, Kind::Binary(known, Box::new(left), Box::new(right)))
    }

    /// `[value for name in list if condition]`
    fn comprehension(&mut self, node: Node<'t>) -> Expression {
        let clauses: Vec<Node<'t>> = children(node).into_iter().skip(1).collect();
        let Some((first, rest)) = clauses.split_first() else { return self.make(node, Kind::Other) };
        if first.kind() != "for_in_clause" || rest.iter().any(|clause| clause.kind() != "if_clause") {
            return self.make(node, Kind::Other);
        }
        let left = self.field(*first, "left");
        let pattern = left.map_or(Pattern::Other, |left| self.pattern(left));
        let mut list = self.in_field(*first, "right");
        for clause in rest {
            let Some(test) = children(*clause).first().copied() else { continue };
            let test = self.expression(test);
            let keep = self.returning(*clause, vec![pattern.clone()], test);
            list = self.with_each(node, list, "filter", keep);
        }
        let value = self.in_field(node, "body");
        let make = self.returning(node, vec![pattern], value);
        self.with_each(node, list, "map", make)
    }

    fn with_each(&self, node: Node<'_>, list: Expression, method: &str, function: Kind) -> Expression {
        let callee = self.make(node, Kind::Member(Box::new(list), method.to_owned()));
        let function = plain(self.make(node, function));
        self.make(node, Kind::Call(Box::new(callee), vec![function]))
    }

    /// A text, also with slots.
    fn string(&mut self, node: Node<'t>) -> Expression {
        let whole = self.words(node);
        let prefix: String =
            whole.chars().take_while(|c| !matches!(c, '"' | '\'')).collect::<String>().to_ascii_lowercase();
        let (is_raw, has_slots) = (prefix.contains('r'), prefix.contains('f'));
        let mut texts = vec![String::new()];
        let mut slots = Vec::new();
        for part in children(node) {
            match part.kind() {
                "string_content" => {
                    let content = self.words(part);
                    let content = if is_raw { content.to_owned() } else { unescaped(content) };
                    let content =
                        if has_slots { content.replace("{{", "{").replace("}}", "}") } else { content };
                    if let Some(last) = texts.last_mut() {
                        last.push_str(&content);
                    }
                }
                "interpolation" => {
                    let value = self.in_field(part, "expression");
                    let format = self.field(part, "format_specifier");
                    let format = format.map(|format| self.words(format).trim_start_matches(':').to_owned());
                    slots.push(with_format(value, format.as_deref().unwrap_or_default()));
                    texts.push(String::new());
                }
                _ => {}
            }
        }
        let kind = match slots.is_empty() {
            true => Kind::String(texts.concat()),
            false => Kind::Template(texts, slots),
        };
        self.make(node, kind)
    }
}

/// Returns `true` if it matters how often the expression is evaluated: it may send a request, or draw a
/// value.
fn calls_once(expression: &Expression) -> bool {
    const PURE: [&str; 7] = ["json", "get", "total_seconds", "len", "int", "float", "str"];
    let mut is_pure = true;
    within(expression, &mut |one| {
        let Kind::Call(callee, _) = &one.kind else { return };
        is_pure &= match &callee.kind {
            Kind::Member(object, name) => {
                let is_client = matches!(&object.kind, Kind::Member(_, name) if name == "client");
                PURE.contains(&name.as_str()) && !is_client
            }
            Kind::Name(name) => PURE.contains(&name.as_str()),
            _ => false,
        };
    });
    !is_pure
}

fn plain(value: Expression) -> Element {
    Element { is_spread: false, value }
}

/// Returns `true` for `@task`, `@task(3)` and `@tag(…)`.
fn is_task(decorator: &Expression) -> bool {
    match &decorator.kind {
        Kind::Name(name) | Kind::Member(_, name) => matches!(name.as_str(), "task" | "tag"),
        Kind::Call(callee, _) => is_task(callee),
        _ => false,
    }
}

fn number(text: &str) -> Kind {
    let text = text.replace('_', "").to_ascii_lowercase();
    let radix = |digits: &str, radix: u32| u64::from_str_radix(digits, radix).ok().map(|n| n as f64);
    let number = match text.get(..2) {
        Some("0x") => radix(&text[2..], 16),
        Some("0o") => radix(&text[2..], 8),
        Some("0b") => radix(&text[2..], 2),
        _ => text.parse::<f64>().ok(),
    };
    match number {
        Some(number) if number.abs() <= LARGEST_WHOLE => Kind::Number(number),
        _ => Kind::Other,
    }
}

/// A text without its escape sequences.
fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        let code = |rest: &mut std::str::Chars<'_>, digits: usize| {
            let hex: String = rest.by_ref().take(digits).collect();
            u32::from_str_radix(&hex, 16).ok().and_then(char::from_u32)
        };
        match rest.next() {
            Some('\n') | None => {}
            Some('n') => plain.push('\n'),
            Some('t') => plain.push('\t'),
            Some('r') => plain.push('\r'),
            Some('0') => plain.push('\0'),
            Some('x') => plain.extend(code(&mut rest, 2)),
            Some('u') => plain.extend(code(&mut rest, 4)),
            Some('U') => plain.extend(code(&mut rest, 8)),
            Some(quoted @ ('\\' | '\'' | '"')) => plain.push(quoted),
            Some(other) => plain.extend(['\\', other]),
        }
    }
    plain
}

/// A value in a slot with a format.
fn with_format(value: Expression, format: &str) -> Expression {
    let span = value.span;
    if format.is_empty() {
        return value;
    }
    let callee = Expression { span, kind: Kind::Name("format".to_owned()) };
    let format = Expression { span, kind: Kind::String(format.to_owned()) };
    Expression { span, kind: Kind::Call(Box::new(callee), vec![plain(value), plain(format)]) }
}

/// `'…{}…{name}…'.format(…)`. `None` if a slot has no value.
fn formatted(text: &str, elements: &[Element], named: &[Property]) -> Option<Kind> {
    let mut texts = vec![String::new()];
    let mut slots = Vec::new();
    let mut next = 0;
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let last = texts.last_mut()?;
        last.push_str(&rest[..at]);
        let brace = &rest[at..=at];
        rest = &rest[at + 1..];
        if rest.starts_with(brace) {
            last.push_str(brace);
            rest = &rest[1..];
            continue;
        }
        let (inside, behind) = rest.split_once('}')?;
        rest = behind;
        let (name, format) = inside.split_once(':').unwrap_or((inside, ""));
        let index = if name.is_empty() { Some(next) } else { name.parse::<usize>().ok() };
        let value = match index {
            Some(index) => {
                next = index + 1;
                elements.get(index).filter(|element| !element.is_spread)?.value.clone()
            }
            None => named.iter().find_map(|property| match property {
                Property::Pair(Expression { kind: Kind::String(key), .. }, value) if key == name => {
                    Some(value.clone())
                }
                _ => None,
            })?,
        };
        slots.push(with_format(value, format));
        texts.push(String::new());
    }
    texts.last_mut()?.push_str(rest);
    Some(Kind::Template(texts, slots))
}

/// `'…%s…' % (…)`. `None` if a slot has no value.
fn percent(text: &str, arguments: &[Element]) -> Option<Kind> {
    let mut texts = vec![String::new()];
    let mut slots = Vec::new();
    let mut arguments = arguments.iter();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        let last = texts.last_mut()?;
        last.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let end = rest.find(|c: char| c.is_ascii_alphabetic() || c == '%')?;
        let (flags, kind) = (&rest[..end], &rest[end..=end]);
        rest = &rest[end + 1..];
        if kind == "%" {
            last.push('%');
            continue;
        }
        let value = arguments.next().filter(|argument| !argument.is_spread)?.value.clone();
        let format = match (kind, flags) {
            ("s", "") | ("d" | "i", "") => String::new(),
            ("d" | "i", flags) => format!("{flags}d"),
            ("f", flags) => format!("{flags}f"),
            _ => return None,
        };
        slots.push(with_format(value, &format));
        texts.push(String::new());
    }
    texts.last_mut()?.push_str(rest);
    arguments.next().is_none().then_some(Kind::Template(texts, slots))
}
