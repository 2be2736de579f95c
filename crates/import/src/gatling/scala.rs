//! Simulations in Scala.

use std::sync::Arc;

use tree_sitter::Node;

use super::java::span;
use super::tree::{
    Chain, DEEPEST, Expression, Function, Head, Kind, Link, Span, Statement, StatementKind, number,
    unescaped, unquoted,
};
use crate::syntax::{self, Program, Refused, children, in_field, sides, text_of};

/// The statements of a simulation.
pub(super) fn parse(text: &str) -> Result<Vec<Statement>, Refused> {
    let language = tree_sitter_scala::LANGUAGE.into();
    let tree = syntax::parse_within(text, &language, "Scala", syntax::DEEPEST_CHAIN)?;
    let scala = Scala { program: Program(text) };
    Ok(scala.statements(&children(tree.root_node()), 0))
}

struct Scala<'t> {
    program: Program<'t>,
}

impl Scala<'_> {
    fn statements(&self, nodes: &[Node<'_>], depth: usize) -> Vec<Statement> {
        let mut all = Vec::new();
        for node in nodes {
            let span = span(*node);
            let kind = if depth > DEEPEST {
                Some(StatementKind::Other)
            } else {
                self.statement(*node, depth + 1, &mut all)
            };
            all.extend(kind.map(|kind| Statement { span, kind }));
        }
        all
    }

    fn statement(&self, node: Node<'_>, depth: usize, all: &mut Vec<Statement>) -> Option<StatementKind> {
        Some(match node.kind() {
            "class_definition" | "object_definition" | "trait_definition" | "package_object" => {
                let body = node.child_by_field_name("body").map(children).unwrap_or_default();
                StatementKind::Within(self.program.field(node, "name"), self.statements(&body, depth))
            }
            "package_clause" => {
                let body = in_field(node, "body");
                let body = body.first().map(|body| children(*body)).unwrap_or_default();
                all.extend(self.statements(&body, depth));
                return None;
            }
            "val_definition" | "var_definition" => {
                let value = node.child_by_field_name("value")?;
                StatementKind::Define(self.program.field(node, "pattern"), self.expression(value, depth))
            }
            "function_definition" => {
                let mut parameters = Vec::new();
                for list in in_field(node, "parameters") {
                    parameters.extend(children(list).into_iter().map(|one| self.program.field(one, "name")));
                }
                let body = node.child_by_field_name("body")?;
                let body = self.body(body, depth);
                let kind = Kind::Lambda(Arc::new(Function { parameters, body }));
                StatementKind::Define(self.program.field(node, "name"), Expression { span: span(node), kind })
            }
            "import_declaration" | "val_declaration" | "function_declaration" | "type_definition" => {
                return None;
            }
            "assignment_expression" | "while_expression" | "for_expression" | "if_expression" => {
                StatementKind::Other
            }
            _ => StatementKind::Expression(self.expression(node, depth)),
        })
    }

    /// The statements of a body, whose last expression is its value.
    fn body(&self, node: Node<'_>, depth: usize) -> Vec<Statement> {
        let nodes = match node.kind() {
            "block" | "indented_block" => children(node),
            _ => vec![node],
        };
        with_value(self.statements(&nodes, depth))
    }

    fn expression(&self, node: Node<'_>, depth: usize) -> Expression {
        let at = span(node);
        let kind = if depth > DEEPEST { Kind::Other } else { self.kind(node, depth + 1) };
        Expression { span: at, kind }
    }

    fn kind(&self, node: Node<'_>, depth: usize) -> Kind {
        match node.kind() {
            "string" => Kind::String(unquoted(&self.program.text(node), true)),
            "character_literal" => Kind::String(unescaped(self.program.text(node).trim_matches('\''))),
            "interpolated_string_expression" => self.interpolated(node, depth),
            "integer_literal" | "floating_point_literal" => {
                number(&self.program.text(node)).map_or(Kind::Other, Kind::Number)
            }
            "boolean_literal" => Kind::Boolean(self.program.text(node) == "true"),
            "parenthesized_expression" | "literal" => match children(node).first() {
                Some(inner) => self.expression(*inner, depth).kind,
                None => Kind::Other,
            },
            "tuple_expression" => match self.all(&children(node), depth).as_ref() {
                [one, other] => Kind::Pair(Arc::new((one.clone(), other.clone()))),
                items => Kind::List(items.into()),
            },
            "lambda_expression" => self.lambda(node, depth),
            "block" | "indented_block" | "colon_argument" => self.block(node, depth),
            "infix_expression" => self.infix(node, depth),
            "call_expression"
            | "field_expression"
            | "generic_function"
            | "identifier"
            | "postfix_expression"
            | "instance_expression" => self.chain(node, depth),
            _ => Kind::Other,
        }
    }

    fn all(&self, nodes: &[Node<'_>], depth: usize) -> Arc<[Expression]> {
        nodes.iter().map(|node| self.expression(*node, depth)).collect()
    }

    fn lambda(&self, node: Node<'_>, depth: usize) -> Kind {
        let parameters = match node.child_by_field_name("parameters") {
            None => Vec::new(),
            Some(all) if all.kind() == "bindings" => {
                children(all).into_iter().map(|one| self.program.field(one, "name")).collect()
            }
            Some(one) => vec![self.program.text(one)],
        };
        let nodes: Vec<Node<'_>> = children(node)
            .into_iter()
            .filter(|child| node.child_by_field_name("parameters") != Some(*child))
            .collect();
        let body = match nodes.as_slice() {
            [only] => self.body(*only, depth),
            _ => self.statements(&nodes, depth),
        };
        Kind::Lambda(Arc::new(Function { parameters, body }))
    }

    /// Braces around one expression are that expression; around several statements, a function of nothing.
    fn block(&self, node: Node<'_>, depth: usize) -> Kind {
        match children(node).as_slice() {
            [only] if !only.kind().ends_with("_definition") => self.expression(*only, depth).kind,
            // The statements behind the first one of a function stand beside it in this grammar.
            [first, rest @ ..] if first.kind() == "lambda_expression" => match self.lambda(*first, depth) {
                Kind::Lambda(function) => {
                    let mut function = function.as_ref().clone();
                    for statement in &mut function.body {
                        if let StatementKind::Return(value) = &statement.kind {
                            statement.kind = StatementKind::Expression(value.clone());
                        }
                    }
                    function.body.extend(with_value(self.statements(rest, depth)));
                    Kind::Lambda(Arc::new(function))
                }
                other => other,
            },
            _ => Kind::Lambda(Arc::new(Function { parameters: Vec::new(), body: self.body(node, depth) })),
        }
    }

    /// `s"/a/$id"`: the texts and values in turn.
    fn interpolated(&self, node: Node<'_>, depth: usize) -> Kind {
        let interpolator = self.program.field(node, "interpolator");
        let nodes = children(node);
        let Some(inside) = nodes.iter().find(|child| child.kind() == "interpolated_string") else {
            return Kind::Other;
        };
        if !["s", "raw"].contains(&interpolator.as_str()) {
            return Kind::Other;
        }
        let quotes = if text_of(*inside, self.program.0).starts_with("\"\"\"") { 3 } else { 1 };
        let is_raw = quotes == 3 || interpolator == "raw";
        let literal = |from: usize, to: usize| {
            let text = self.program.0.get(from..to).unwrap_or_default();
            let text = if is_raw { text.to_owned() } else { unescaped(text) };
            Expression { span: Span { start: from, end: to }, kind: Kind::String(text.replace("$$", "$")) }
        };
        let mut at = inside.start_byte() + quotes;
        let mut terms = Vec::new();
        for slot in children(*inside).into_iter().filter(|child| child.kind() == "interpolation") {
            terms.push(literal(at, slot.start_byte()));
            if let Some(value) = children(slot).first() {
                terms.push(self.expression(*value, depth));
            }
            at = slot.end_byte();
        }
        terms.push(literal(at, inside.end_byte().saturating_sub(quotes)));
        Kind::Sum(terms.into())
    }

    fn infix(&self, node: Node<'_>, depth: usize) -> Kind {
        let Some((left, right)) = sides(node) else { return Kind::Other };
        let operator = self.program.field(node, "operator");
        match operator.as_str() {
            "->" => Kind::Pair(Arc::new((self.expression(left, depth), self.expression(right, depth)))),
            "*" => Kind::Product(Arc::new((self.expression(left, depth), self.expression(right, depth)))),
            "+" => Kind::Sum(self.all(&self.program.terms(node), depth)),
            name if name.starts_with(|c: char| c.is_alphabetic()) => self.chain(node, depth),
            _ => Kind::Other,
        }
    }

    /// The arguments in parentheses or braces.
    fn arguments(&self, node: Node<'_>, depth: usize) -> Arc<[Expression]> {
        match node.kind() {
            "arguments" => self.all(&children(node), depth),
            _ => [self.expression(node, depth)].into(),
        }
    }

    /// Calls behind each other, from the last one on: they are nested in each other in Scala's grammar.
    fn chain(&self, node: Node<'_>, depth: usize) -> Kind {
        let mut calls = Calls { links: Vec::new(), given: None };
        let mut at = node;
        let head = loop {
            match self.link(at, depth, &mut calls) {
                Next::Node(node) => at = node,
                Next::Head(head) => break head,
            }
        };
        calls.links.reverse();
        Kind::Chain(Chain { head, links: calls.links })
    }

    /// Reads one link of a chain.
    fn link<'n>(&self, at: Node<'n>, depth: usize, calls: &mut Calls) -> Next<'n> {
        let inner = |name: &str| at.child_by_field_name(name);
        let or_other = |node: Option<Node<'n>>| match node {
            Some(node) => Next::Node(node),
            None => other(at),
        };
        match at.kind() {
            "call_expression" => {
                calls.end(at);
                calls.given = inner("arguments").map(|list| (self.arguments(list, depth), at.end_byte()));
                or_other(inner("function"))
            }
            "generic_function" => or_other(inner("function")),
            "field_expression" => match (inner("value"), inner("field")) {
                (Some(value), Some(name)) => {
                    let (arguments, end) = calls.given.take().unzip();
                    let span = Span { start: name.start_byte(), end: end.unwrap_or(name.end_byte()) };
                    calls.links.push(Link { span, name: self.program.text(name), arguments });
                    Next::Node(value)
                }
                _ => other(at),
            },
            "infix_expression"
                if self.program.field(at, "operator").starts_with(|c: char| c.is_alphabetic()) =>
            {
                calls.end(at);
                let (Some(left), Some(name), Some(right)) =
                    (inner("left"), inner("operator"), inner("right"))
                else {
                    return other(at);
                };
                let arguments = if right.kind() == "tuple_expression" {
                    self.all(&children(right), depth)
                } else {
                    [self.expression(right, depth)].into()
                };
                let span = Span { start: name.start_byte(), end: at.end_byte() };
                calls.links.push(Link { span, name: self.program.text(name), arguments: Some(arguments) });
                Next::Node(left)
            }
            "postfix_expression" => {
                calls.end(at);
                match children(at).as_slice() {
                    [value, name] => {
                        let link =
                            Link { span: span(*name), name: self.program.text(*name), arguments: None };
                        calls.links.push(link);
                        Next::Node(*value)
                    }
                    _ => other(at),
                }
            }
            "parenthesized_expression" if !calls.is_empty() => {
                calls.end(at);
                or_other(children(at).first().copied())
            }
            "instance_expression" => {
                calls.end(at);
                let parts = children(at);
                let arguments = parts.iter().find(|part| part.kind() == "arguments");
                let arguments = arguments.map(|list| self.all(&children(*list), depth)).unwrap_or_default();
                let (span, name) = (span(at), "new".to_owned());
                calls.links.push(Link { span, name, arguments: Some(arguments) });
                Next::Head(Head::Name(parts.first().map(|name| self.program.text(*name)).unwrap_or_default()))
            }
            // `_.set("a", 1)` is a function of what `_` stands for.
            "identifier" | "wildcard" => {
                calls.end(at);
                Next::Head(Head::Name(self.program.text(at)))
            }
            _ => {
                calls.end(at);
                Next::Head(Head::Value(Arc::new(self.expression(at, depth))))
            }
        }
    }
}

/// Links of a chain that were read so far, the last one first.
struct Calls {
    links: Vec<Link>,
    /// Arguments whose function is still to come, and where they end.
    given: Option<(Arc<[Expression]>, usize)>,
}

impl Calls {
    fn is_empty(&self) -> bool {
        self.links.is_empty() && self.given.is_none()
    }

    /// Makes a call without a name of the arguments whose function does not come.
    fn end(&mut self, at: Node<'_>) {
        self.links.extend(self.given.take().map(|(arguments, end)| Link {
            span: Span { start: at.start_byte(), end },
            name: String::new(),
            arguments: Some(arguments),
        }));
    }
}

/// The place where a chain goes on, or what stands in front of all its links.
enum Next<'n> {
    Node(Node<'n>),
    Head(Head),
}

/// A head that is not followed.
fn other<'n>(at: Node<'_>) -> Next<'n> {
    Next::Head(Head::Value(Arc::new(Expression { span: span(at), kind: Kind::Other })))
}

/// Statements whose last expression is the value of them all.
fn with_value(mut statements: Vec<Statement>) -> Vec<Statement> {
    if let Some(last) = statements.last_mut()
        && let StatementKind::Expression(value) = &last.kind
    {
        last.kind = StatementKind::Return(value.clone());
    }
    statements
}
