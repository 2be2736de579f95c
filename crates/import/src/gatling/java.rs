//! Simulations in Java.

use std::sync::Arc;

use tree_sitter::Node;

use super::tree::{
    Chain, DEEPEST, Expression, Function, Head, Kind, Link, Span, Statement, StatementKind, number,
    text_block, unquoted,
};
use crate::syntax::{self, Program, Refused, children, in_field, sides};

/// The statements of a simulation.
pub(super) fn parse(text: &str) -> Result<Vec<Statement>, Refused> {
    let tree = syntax::parse_within(text, &tree_sitter_java::LANGUAGE.into(), "Java", syntax::DEEPEST_CHAIN)?;
    let java = Java { program: Program(text) };
    Ok(java.statements(&children(tree.root_node()), 0))
}

pub(super) fn span(node: Node<'_>) -> Span {
    Span { start: node.start_byte(), end: node.end_byte() }
}

struct Java<'t> {
    program: Program<'t>,
}

impl Java<'_> {
    fn statements(&self, nodes: &[Node<'_>], depth: usize) -> Vec<Statement> {
        let mut all = Vec::new();
        for node in nodes {
            self.statement(*node, depth + 1, &mut all);
        }
        all
    }

    fn statement(&self, node: Node<'_>, depth: usize, all: &mut Vec<Statement>) {
        let span = span(node);
        let mut push = |kind| all.push(Statement { span, kind });
        if depth > DEEPEST {
            push(StatementKind::Other);
            return;
        }
        match node.kind() {
            "class_declaration" | "interface_declaration" | "record_declaration" | "enum_declaration" => {
                let body = in_field(node, "body").first().map(|body| children(*body)).unwrap_or_default();
                let statements = self.statements(&body, depth);
                push(StatementKind::Within(self.program.field(node, "name"), statements));
            }
            "field_declaration" | "local_variable_declaration" => {
                for declared in in_field(node, "declarator") {
                    let name = self.program.field(declared, "name");
                    if let Some(value) = declared.child_by_field_name("value") {
                        push(StatementKind::Define(name, self.expression(value, depth)));
                    }
                }
            }
            "method_declaration" => {
                let kind = Kind::Lambda(self.function(node, depth));
                push(StatementKind::Define(self.program.field(node, "name"), Expression { span, kind }));
            }
            // What is done when the simulation is made.
            "constructor_declaration" | "static_initializer" | "block" => {
                let body = match node.child_by_field_name("body") {
                    Some(body) => children(body),
                    None => children(node),
                };
                let inner: Vec<Node<'_>> = match body.as_slice() {
                    [only] if only.kind() == "block" => children(*only),
                    _ => body,
                };
                all.extend(self.statements(&inner, depth));
            }
            "expression_statement" => {
                let Some(inner) = children(node).first().copied() else { return };
                if inner.kind() == "assignment_expression"
                    && let (Some(left), Some(right)) =
                        (inner.child_by_field_name("left"), inner.child_by_field_name("right"))
                {
                    let name = self.program.text(left).trim_start_matches("this.").to_owned();
                    push(StatementKind::Define(name, self.expression(right, depth)));
                    return;
                }
                push(StatementKind::Expression(self.expression(inner, depth)));
            }
            "return_statement" => {
                if let Some(value) = children(node).first() {
                    push(StatementKind::Return(self.expression(*value, depth)));
                }
            }
            "package_declaration" | "import_declaration" => {}
            _ => push(StatementKind::Other),
        }
    }

    /// A method or a lambda.
    fn function(&self, node: Node<'_>, depth: usize) -> Arc<Function> {
        let parameters = match node.child_by_field_name("parameters") {
            None => Vec::new(),
            Some(one) if one.kind() == "identifier" => vec![self.program.text(one)],
            Some(all) => children(all)
                .into_iter()
                .map(|one| {
                    if one.kind() == "identifier" {
                        self.program.text(one)
                    } else {
                        self.program.field(one, "name")
                    }
                })
                .collect(),
        };
        let body = match node.child_by_field_name("body") {
            None => Vec::new(),
            Some(block) if block.kind() == "block" => self.statements(&children(block), depth),
            Some(value) => {
                let kind = StatementKind::Return(self.expression(value, depth + 1));
                vec![Statement { span: span(value), kind }]
            }
        };
        Arc::new(Function { parameters, body })
    }

    fn expression(&self, node: Node<'_>, depth: usize) -> Expression {
        let at = span(node);
        let kind = if depth > DEEPEST { Kind::Other } else { self.kind(node, depth + 1) };
        Expression { span: at, kind }
    }

    fn kind(&self, node: Node<'_>, depth: usize) -> Kind {
        match node.kind() {
            "string_literal" => {
                let written = self.program.text(node);
                let block = written.strip_prefix("\"\"\"").and_then(|rest| rest.strip_suffix("\"\"\""));
                Kind::String(block.map_or_else(|| unquoted(&written, false), text_block))
            }
            "character_literal" => {
                Kind::String(super::tree::unescaped(self.program.text(node).trim_matches('\'')))
            }
            "decimal_integer_literal" | "decimal_floating_point_literal" => {
                number(&self.program.text(node)).map_or(Kind::Other, Kind::Number)
            }
            "true" => Kind::Boolean(true),
            "false" => Kind::Boolean(false),
            "parenthesized_expression" => match children(node).first() {
                Some(inner) => self.expression(*inner, depth).kind,
                None => Kind::Other,
            },
            "cast_expression" => match node.child_by_field_name("value") {
                Some(value) => self.expression(value, depth).kind,
                None => Kind::Other,
            },
            "lambda_expression" => Kind::Lambda(self.function(node, depth)),
            "array_initializer" => Kind::List(self.all(&children(node), depth)),
            "array_creation_expression" => match node.child_by_field_name("value") {
                Some(items) => Kind::List(self.all(&children(items), depth)),
                None => Kind::Other,
            },
            "binary_expression" => self.binary(node, depth),
            "method_invocation"
            | "field_access"
            | "identifier"
            | "this"
            | "super"
            | "object_creation_expression" => self.chain(node, depth),
            _ => Kind::Other,
        }
    }

    fn all(&self, nodes: &[Node<'_>], depth: usize) -> Arc<[Expression]> {
        nodes.iter().map(|node| self.expression(*node, depth)).collect()
    }

    fn binary(&self, node: Node<'_>, depth: usize) -> Kind {
        let Some((left, right)) = sides(node) else { return Kind::Other };
        match self.program.field(node, "operator").as_str() {
            "*" => Kind::Product(Arc::new((self.expression(left, depth), self.expression(right, depth)))),
            "+" => Kind::Sum(self.all(&self.program.terms(node), depth)),
            _ => Kind::Other,
        }
    }

    /// Calls behind each other, from the last one on: they are nested in each other in Java's grammar.
    fn chain(&self, node: Node<'_>, depth: usize) -> Kind {
        let mut links = Vec::new();
        let mut at = node;
        let arguments = |node: Node<'_>| {
            let list = node.child_by_field_name("arguments");
            Some(list.map(|list| self.all(&children(list), depth)).unwrap_or_default())
        };
        let head = loop {
            let object = at.child_by_field_name("object");
            match (at.kind(), object) {
                ("method_invocation", Some(object)) => {
                    let name = at.child_by_field_name("name").unwrap_or(at);
                    let place = Span { start: name.start_byte(), end: at.end_byte() };
                    links.push(Link { span: place, name: self.program.text(name), arguments: arguments(at) });
                    at = object;
                }
                ("method_invocation", None) => {
                    let link = Link { span: span(at), name: String::new(), arguments: arguments(at) };
                    links.push(link);
                    break Head::Name(self.program.field(at, "name"));
                }
                ("field_access", Some(object)) => {
                    let name = at.child_by_field_name("field").unwrap_or(at);
                    links.push(Link { span: span(name), name: self.program.text(name), arguments: None });
                    at = object;
                }
                ("object_creation_expression", _) => {
                    let link = Link { span: span(at), name: "new".to_owned(), arguments: arguments(at) };
                    links.push(link);
                    break Head::Name(
                        self.program.field(at, "type").split('<').next().unwrap_or_default().to_owned(),
                    );
                }
                ("identifier", _) => break Head::Name(self.program.text(at)),
                ("this" | "super", _) => break Head::Name("this".to_owned()),
                _ => break Head::Value(Arc::new(self.expression(at, depth))),
            }
        };
        links.reverse();
        Kind::Chain(Chain { head, links })
    }
}
