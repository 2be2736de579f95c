//! Simulations in JavaScript and TypeScript.

use std::cell::Cell;
use std::sync::Arc;

use oxc_ast::ast;
use oxc_span::GetSpan;
use plimsoll_document::Problems;

use super::tree::{Chain, DEEPEST, Expression, Function, Head, Kind, Link, Span, Statement, StatementKind};
use crate::javascript;

/// The statements of a simulation.
pub(super) fn parse(name: &str, text: &str) -> Result<Vec<Statement>, Problems> {
    let hint = "the file has to be a simulation of Gatling in Java, Scala, JavaScript or TypeScript";
    javascript::read(name, text, hint, |program| {
        let lowering = Lowering { depth: Cell::new(0) };
        lowering.statements(&program.body)
    })
}

fn span(span: oxc_span::Span) -> Span {
    Span { start: span.start as usize, end: span.end as usize }
}

struct Lowering {
    depth: Cell<usize>,
}

impl Lowering {
    fn within<T>(&self, other: T, read: impl FnOnce() -> T) -> T {
        self.depth.set(self.depth.get() + 1);
        let read = if self.depth.get() > DEEPEST { other } else { read() };
        self.depth.set(self.depth.get() - 1);
        read
    }

    fn statements(&self, statements: &[ast::Statement<'_>]) -> Vec<Statement> {
        let mut all = Vec::new();
        for statement in statements {
            let span = span(statement.span());
            self.within((), || self.statement(statement, span, &mut all));
        }
        all
    }

    fn statement(&self, statement: &ast::Statement<'_>, at: Span, all: &mut Vec<Statement>) {
        use ast::Statement as S;
        let kind = match statement {
            S::ExpressionStatement(one) => StatementKind::Expression(self.expression(&one.expression)),
            S::ReturnStatement(one) => match &one.argument {
                Some(value) => StatementKind::Return(self.expression(value)),
                None => return,
            },
            S::VariableDeclaration(declared) => return self.variables(declared, at, all),
            S::FunctionDeclaration(function) => match self.declared(function) {
                Some(kind) => kind,
                None => return,
            },
            S::BlockStatement(block) => return all.extend(self.statements(&block.body)),
            S::ExportDeclaration(one) => match &one.declaration {
                ast::Declaration::VariableDeclaration(declared) => {
                    return self.variables(declared, at, all);
                }
                ast::Declaration::FunctionDeclaration(function) => match self.declared(function) {
                    Some(kind) => kind,
                    None => return,
                },
                _ => return,
            },
            S::ExportDefaultDeclaration(one) => match one.declaration.as_expression() {
                Some(value) => StatementKind::Expression(self.expression(value)),
                None => StatementKind::Other,
            },
            S::ImportDeclaration(_)
            | S::ExportNamedDeclaration(_)
            | S::EmptyStatement(_)
            | S::TSTypeAliasDeclaration(_)
            | S::TSInterfaceDeclaration(_) => return,
            _ => StatementKind::Other,
        };
        all.push(Statement { span: at, kind });
    }

    fn declared(&self, function: &ast::Function<'_>) -> Option<StatementKind> {
        let name = function.id.as_ref()?.name.to_string();
        let kind = Kind::Lambda(self.function(function));
        Some(StatementKind::Define(name, Expression { span: span(function.span), kind }))
    }

    fn variables(&self, declared: &ast::VariableDeclaration<'_>, at: Span, all: &mut Vec<Statement>) {
        for declared in &declared.declarations {
            if let (ast::BindingPattern::BindingIdentifier(name), Some(value)) =
                (&declared.id, &declared.init)
            {
                let kind = StatementKind::Define(name.name.to_string(), self.expression(value));
                all.push(Statement { span: at, kind });
            }
        }
    }

    fn function(&self, function: &ast::Function<'_>) -> Arc<Function> {
        let body = function.body.as_ref().map(|body| self.statements(&body.statements)).unwrap_or_default();
        Arc::new(Function { parameters: parameters(&function.params), body })
    }

    fn expression(&self, expression: &ast::Expression<'_>) -> Expression {
        let at = span(expression.span());
        let kind = self.within(Kind::Other, || self.kind(expression.get_inner_expression()));
        Expression { span: at, kind }
    }

    fn kind(&self, expression: &ast::Expression<'_>) -> Kind {
        use ast::Expression as E;
        match expression {
            E::BooleanLiteral(one) => Kind::Boolean(one.value),
            E::NumericLiteral(one) => Kind::Number(one.value.to_string()),
            E::StringLiteral(one) => Kind::String(one.value.to_string()),
            E::TemplateLiteral(one) => {
                let texts = javascript::texts(one);
                let mut terms = Vec::new();
                for (index, text) in texts.into_iter().enumerate() {
                    terms.push(Expression { span: span(one.span), kind: Kind::String(text) });
                    terms.extend(one.expressions.get(index).map(|slot| self.expression(slot)));
                }
                Kind::Sum(terms.into())
            }
            E::ArrayExpression(one) => Kind::List(
                one.elements
                    .iter()
                    .map(|element| match element.as_expression() {
                        Some(value) => self.expression(value),
                        None => Expression { span: span(element.span()), kind: Kind::Other },
                    })
                    .collect(),
            ),
            E::ObjectExpression(one) => Kind::Pairs(
                one.properties
                    .iter()
                    .filter_map(|property| match property {
                        ast::ObjectPropertyKind::ObjectProperty(pair) => {
                            let key = pair.key.static_name()?.to_string();
                            let key = Expression { span: span(pair.key.span()), kind: Kind::String(key) };
                            Some((key, self.expression(&pair.value)))
                        }
                        ast::ObjectPropertyKind::SpreadProperty(_) => None,
                    })
                    .collect(),
            ),
            E::ArrowFunctionExpression(one) => {
                let body = match &one.body {
                    ast::ArrowFunctionBody::FunctionBody(body) => self.statements(&body.statements),
                    body => body.as_expression().map_or_else(Vec::new, |value| {
                        let value = self.expression(value);
                        vec![Statement { span: value.span, kind: StatementKind::Return(value) }]
                    }),
                };
                Kind::Lambda(Arc::new(Function { parameters: parameters(&one.params), body }))
            }
            E::FunctionExpression(one) => Kind::Lambda(self.function(one)),
            E::BinaryExpression(one) if one.operator.as_str() == "*" => {
                Kind::Product(Arc::new((self.expression(&one.left), self.expression(&one.right))))
            }
            E::BinaryExpression(one) if one.operator.as_str() == "+" => {
                Kind::Sum(javascript::terms(one).into_iter().map(|term| self.expression(term)).collect())
            }
            E::Identifier(_) | E::CallExpression(_) | E::StaticMemberExpression(_) => self.chain(expression),
            _ => Kind::Other,
        }
    }

    fn arguments(&self, arguments: &[ast::Argument<'_>]) -> Arc<[Expression]> {
        arguments
            .iter()
            .map(|argument| match argument.as_expression() {
                Some(value) => self.expression(value),
                None => Expression { span: span(argument.span()), kind: Kind::Other },
            })
            .collect()
    }

    /// Calls behind each other, from the last one on: they are nested in each other in the parser's tree.
    fn chain(&self, expression: &ast::Expression<'_>) -> Kind {
        use ast::Expression as E;
        let mut links = Vec::new();
        let mut at = expression;
        // Arguments whose function is still to come, and the end of the call.
        let mut given: Option<(Arc<[Expression]>, u32)> = None;
        let head = loop {
            match at {
                E::CallExpression(call) => {
                    links.extend(called(given.take(), call.span.start));
                    given = Some((self.arguments(&call.arguments), call.span.end));
                    at = call.callee.get_inner_expression();
                }
                E::StaticMemberExpression(one) => {
                    let name = one.property.span;
                    let (arguments, end) = match given.take() {
                        Some((arguments, end)) => (Some(arguments), end),
                        None => (None, name.end),
                    };
                    links.push(Link {
                        span: Span { start: name.start as usize, end: end as usize },
                        name: one.property.name.to_string(),
                        arguments,
                    });
                    at = one.object.get_inner_expression();
                }
                E::Identifier(name) => {
                    links.extend(called(given.take(), name.span.start));
                    break Head::Name(name.name.to_string());
                }
                other => {
                    links.extend(called(given.take(), other.span().start));
                    break Head::Value(Arc::new(self.expression(other)));
                }
            }
        };
        links.reverse();
        Kind::Chain(Chain { head, links })
    }
}

/// A call of the thing in front.
fn called(given: Option<(Arc<[Expression]>, u32)>, start: u32) -> Option<Link> {
    given.map(|(arguments, end)| Link {
        span: Span { start: start as usize, end: end as usize },
        name: String::new(),
        arguments: Some(arguments),
    })
}

/// Names of parameters.
fn parameters(parameters: &ast::FormalParameters<'_>) -> Vec<String> {
    let name = |parameter: &ast::FormalParameter<'_>| match &parameter.pattern {
        ast::BindingPattern::BindingIdentifier(name) => name.name.to_string(),
        _ => String::new(),
    };
    parameters.items.iter().map(name).collect()
}
