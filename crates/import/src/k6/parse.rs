//! JavaScript and TypeScript, as the parser of Oxc reads them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::Arc;

use oxc_ast::ast;
use oxc_span::GetSpan;
use plimsoll_document::Problems;

use super::syntax::{
    Element, Expression, Function, Imported, Kind, Pattern, Property, Span, Statement, StatementKind, Target,
};
use crate::javascript;

/// Deepest nesting of statements and expressions that is looked at.
const DEEPEST: usize = 100;

/// The statements of a script.
pub(crate) fn parse(name: &str, text: &str, module: usize) -> Result<Vec<Statement>, Problems> {
    let hint = "the file has to be a script of k6, in JavaScript or TypeScript";
    javascript::read(name, text, hint, |program| {
        let lowering = Lowering { module, depth: Cell::new(0), bodies: RefCell::new(Vec::new()) };
        lowering.body(&program.body, &[])
    })
}

/// Takes over what the parser has read.
struct Lowering {
    module: usize,
    depth: Cell<usize>,
    /// Bodies of functions that are open, and of the module.
    bodies: RefCell<Vec<Body>>,
}

/// The body of a function.
#[derive(Debug, Default)]
struct Body {
    /// Lists of statements that are open in it.
    lists: usize,
    /// Names that `var` declares within a block: they belong to the function.
    variables: BTreeSet<String>,
}

impl Lowering {
    fn span(&self, span: oxc_span::Span) -> Span {
        Span { module: self.module, start: span.start as usize, end: span.end as usize }
    }

    /// The statements of a function, with the names that its blocks declare for it in front.
    fn body(&self, statements: &[ast::Statement<'_>], parameters: &[Pattern]) -> Vec<Statement> {
        self.bodies.borrow_mut().push(Body::default());
        let mut all = self.statements(statements);
        let mut names = self.bodies.borrow_mut().pop().unwrap_or_default().variables;
        names.retain(|name| !parameters.iter().any(|known| known.name() == Some(name)));
        if let (Some(first), false) = (all.first(), names.is_empty()) {
            let declared = names.into_iter().map(|name| (Pattern::Name(name), None)).collect();
            let span = first.span;
            all.insert(0, Statement { span, kind: StatementKind::Declare(declared) });
        }
        all
    }

    fn statements(&self, statements: &[ast::Statement<'_>]) -> Vec<Statement> {
        let mut all = Vec::with_capacity(statements.len());
        self.in_list(|| statements.iter().for_each(|statement| self.statement(statement, &mut all)));
        all
    }

    /// Reads a list of statements of the body that is open.
    fn in_list(&self, read: impl FnOnce()) {
        let count = |by: isize| {
            if let Some(body) = self.bodies.borrow_mut().last_mut() {
                body.lists = body.lists.saturating_add_signed(by);
            }
        };
        count(1);
        read();
        count(-1);
    }

    /// A statement as a block.
    fn block(&self, statement: &ast::Statement<'_>) -> Vec<Statement> {
        let mut all = Vec::new();
        match statement {
            ast::Statement::BlockStatement(block) => return self.statements(&block.body),
            statement => self.in_list(|| self.statement(statement, &mut all)),
        }
        all
    }

    fn statement(&self, statement: &ast::Statement<'_>, all: &mut Vec<Statement>) {
        let span = self.span(statement.span());
        let kind = self.within(|| StatementKind::Other, || self.kind_of_statement(statement, span, all));
        all.push(Statement { span, kind });
    }

    /// Calls `read` one level deeper, or `other` where that is [too deep](DEEPEST).
    fn within<T>(&self, other: impl FnOnce() -> T, read: impl FnOnce() -> T) -> T {
        self.depth.set(self.depth.get() + 1);
        let read = if self.depth.get() > DEEPEST { other() } else { read() };
        self.depth.set(self.depth.get() - 1);
        read
    }

    fn kind_of_statement(
        &self,
        statement: &ast::Statement<'_>,
        span: Span,
        all: &mut Vec<Statement>,
    ) -> StatementKind {
        use ast::Statement as S;
        match statement {
            S::ExpressionStatement(one) => StatementKind::Expression(self.effect(&one.expression)),
            S::VariableDeclaration(declared) => self.variables(declared),
            S::FunctionDeclaration(function) => self.function_statement(function),
            S::ReturnStatement(one) => {
                StatementKind::Return(one.argument.as_ref().map(|value| self.expression(value)))
            }
            S::IfStatement(one) => StatementKind::If(
                self.expression(&one.test),
                self.block(&one.consequent),
                one.alternate.as_ref().map(|other| self.block(other)).unwrap_or_default(),
            ),
            S::ForStatement(one) => self.for_statement(one),
            S::ForOfStatement(one) => {
                let pattern = match &one.left {
                    ast::ForStatementLeft::VariableDeclaration(declared) => declared
                        .declarations
                        .first()
                        .map_or(Pattern::Other, |declared| self.pattern(&declared.id)),
                    _ => Pattern::Other,
                };
                StatementKind::ForOf(pattern, self.expression(&one.right), self.block(&one.body))
            }
            S::WhileStatement(one) => StatementKind::While(self.expression(&one.test), self.block(&one.body)),
            S::DoWhileStatement(one) => {
                let mut body = self.block(&one.body);
                body.push(self.carried_out(&one.test));
                StatementKind::Unfollowed(body)
            }
            S::ForInStatement(one) => StatementKind::Unfollowed(self.block(&one.body)),
            S::SwitchStatement(one) => {
                let mut body = vec![self.carried_out(&one.discriminant)];
                body.extend(one.cases.iter().flat_map(|case| self.statements(&case.consequent)));
                StatementKind::Unfollowed(body)
            }
            S::LabeledStatement(one) => StatementKind::Unfollowed(self.block(&one.body)),
            S::ClassDeclaration(one) => class(one),
            S::BlockStatement(block) => StatementKind::Block(self.statements(&block.body)),
            S::TryStatement(one) => StatementKind::Try(
                self.statements(&one.block.body),
                one.handler.as_ref().map(|handler| self.span(handler.span)),
                one.finalizer.as_ref().map(|last| self.statements(&last.body)).unwrap_or_default(),
            ),
            S::ThrowStatement(one) => StatementKind::Throw(self.expression(&one.argument)),
            S::BreakStatement(_) => StatementKind::Break,
            S::ContinueStatement(_) => StatementKind::Continue,
            S::EmptyStatement(_) => StatementKind::Empty,
            S::ImportDeclaration(one) if one.import_kind.is_type() => StatementKind::Empty,
            S::ImportDeclaration(one) => import(one),
            S::ExportNamedDeclaration(one) => StatementKind::Export(exported(&one.specifiers)),
            S::ExportFromDeclaration(one) => {
                let (import, export) = passed_on(one);
                all.push(Statement { span, kind: import });
                export
            }
            S::ExportDeclaration(one) => self.export(&one.declaration, span, all),
            S::ExportDefaultDeclaration(one) => self.default_export(&one.declaration, span, all),
            S::TSTypeAliasDeclaration(_) | S::TSInterfaceDeclaration(_) => StatementKind::Empty,
            _ => StatementKind::Other,
        }
    }

    fn for_statement(&self, one: &ast::ForStatement<'_>) -> StatementKind {
        let before = one.init.as_ref().map(|init| {
            let kind = match init {
                // The variable of a loop is that of the loop, also with `var`.
                ast::ForStatementInit::VariableDeclaration(declared) => self.declare(declared),
                other => match other.as_expression() {
                    Some(expression) => StatementKind::Expression(self.expression(expression)),
                    None => StatementKind::Empty,
                },
            };
            Box::new(Statement { span: self.span(init.span()), kind })
        });
        StatementKind::For {
            before,
            test: one.test.as_ref().map(|test| self.expression(test)),
            update: one.update.as_ref().map(|update| self.effect(update)),
            body: self.block(&one.body),
        }
    }

    /// The export of what is declared at once, behind its declaration.
    fn export(
        &self,
        declaration: &ast::Declaration<'_>,
        span: Span,
        all: &mut Vec<Statement>,
    ) -> StatementKind {
        let same = |name: &ast::BindingIdentifier<'_>| (name.name.to_string(), name.name.to_string());
        let (kind, names) = match declaration {
            ast::Declaration::VariableDeclaration(declared) => {
                let mut names = Vec::new();
                for declared in &declared.declarations {
                    names_of(&self.pattern(&declared.id), &mut names);
                }
                (self.variables(declared), names)
            }
            ast::Declaration::FunctionDeclaration(function) => {
                (self.function_statement(function), function.id.iter().map(same).collect())
            }
            ast::Declaration::ClassDeclaration(one) => (class(one), one.id.iter().map(same).collect()),
            _ => return StatementKind::Empty,
        };
        all.push(Statement { span, kind });
        StatementKind::Export(names)
    }

    fn default_export(
        &self,
        declaration: &ast::ExportDefaultDeclarationKind<'_>,
        span: Span,
        all: &mut Vec<Statement>,
    ) -> StatementKind {
        match declaration {
            ast::ExportDefaultDeclarationKind::FunctionDeclaration(function) => {
                let kind = Kind::Function(self.function(function));
                StatementKind::ExportDefault(Expression { span: self.span(function.span), kind })
            }
            ast::ExportDefaultDeclarationKind::ClassDeclaration(one) => {
                let of = one.id.iter().map(|name| name.name.to_string()).next();
                all.push(Statement { span, kind: StatementKind::Program("default".to_owned()) });
                of.map_or(StatementKind::Empty, StatementKind::Program)
            }
            other => match other.as_expression() {
                Some(expression) => StatementKind::ExportDefault(self.expression(expression)),
                None => StatementKind::Other,
            },
        }
    }

    /// An expression whose value nobody reads.
    fn effect(&self, expression: &ast::Expression<'_>) -> Expression {
        let read = self.expression(expression);
        let kind = match (expression, read.kind) {
            (ast::Expression::UpdateExpression(_), Kind::Binary("-", changed, _)) => changed.kind,
            (ast::Expression::UpdateExpression(_), Kind::Sum(terms)) => {
                return terms.into_iter().next().unwrap_or(Expression { span: read.span, kind: Kind::Other });
            }
            (_, kind) => kind,
        };
        Expression { span: read.span, kind }
    }

    /// An expression as a statement.
    fn carried_out(&self, expression: &ast::Expression<'_>) -> Statement {
        let expression = self.expression(expression);
        Statement { span: expression.span, kind: StatementKind::Expression(expression) }
    }

    fn variables(&self, declared: &ast::VariableDeclaration<'_>) -> StatementKind {
        let is_in_block = self.bodies.borrow().last().is_some_and(|body| body.lists > 1);
        if is_in_block && declared.kind == ast::VariableDeclarationKind::Var {
            return self.variables_of_function(declared);
        }
        self.declare(declared)
    }

    fn declare(&self, declared: &ast::VariableDeclaration<'_>) -> StatementKind {
        let all = declared.declarations.iter().map(|declared| {
            (self.pattern(&declared.id), declared.init.as_ref().map(|value| self.expression(value)))
        });
        StatementKind::Declare(all.collect())
    }

    /// `var` within a block gives a variable of the function a value.
    fn variables_of_function(&self, declared: &ast::VariableDeclaration<'_>) -> StatementKind {
        let span = self.span(declared.span);
        let mut given = Vec::new();
        for declared in &declared.declarations {
            let pattern = self.pattern(&declared.id);
            let mut names = Vec::new();
            names_of(&pattern, &mut names);
            if let Some(body) = self.bodies.borrow_mut().last_mut() {
                body.variables.extend(names.into_iter().map(|(name, _)| name));
            }
            let Some(value) = &declared.init else { continue };
            let value = Box::new(self.expression(value));
            let target = match pattern {
                Pattern::Name(name) => Target::Expression(Expression {
                    span: self.span(declared.id.span()),
                    kind: Kind::Name(name),
                }),
                pattern => Target::Pattern(pattern),
            };
            given.push(Expression { span, kind: Kind::Assign(Box::new(target), "=", value) });
        }
        StatementKind::Expression(Expression { span, kind: Kind::Sequence(given) })
    }

    fn function_statement(&self, function: &ast::Function<'_>) -> StatementKind {
        match &function.id {
            Some(name) => StatementKind::Function(name.name.to_string(), self.function(function)),
            None => StatementKind::Other,
        }
    }

    fn function(&self, function: &ast::Function<'_>) -> Arc<Function> {
        let parameters = self.parameters(&function.params);
        let body = function.body.as_ref().map(|body| self.body(&body.statements, &parameters));
        Arc::new(Function { span: self.span(function.span), parameters, body: body.unwrap_or_default() })
    }

    fn parameters(&self, parameters: &ast::FormalParameters<'_>) -> Vec<Pattern> {
        let mut all: Vec<Pattern> = parameters
            .items
            .iter()
            .map(|parameter| {
                let pattern = self.pattern(&parameter.pattern);
                match &parameter.initializer {
                    Some(default) => Pattern::Default(Box::new(pattern), Box::new(self.expression(default))),
                    None => pattern,
                }
            })
            .collect();
        if parameters.rest.is_some() {
            all.push(Pattern::Other);
        }
        all
    }

    fn pattern(&self, pattern: &ast::BindingPattern<'_>) -> Pattern {
        self.within(|| Pattern::Other, || self.kind_of_pattern(pattern))
    }

    fn kind_of_pattern(&self, pattern: &ast::BindingPattern<'_>) -> Pattern {
        use ast::BindingPattern as B;
        match pattern {
            B::BindingIdentifier(name) => Pattern::Name(name.name.to_string()),
            B::AssignmentPattern(one) => {
                Pattern::Default(Box::new(self.pattern(&one.left)), Box::new(self.expression(&one.right)))
            }
            B::ObjectPattern(one) => {
                let mut members = Vec::new();
                for property in &one.properties {
                    let Some(key) = property.key.static_name() else { return Pattern::Other };
                    members.push((key.to_string(), self.pattern(&property.value)));
                }
                let rest = one.rest.as_ref().and_then(|rest| match self.pattern(&rest.argument) {
                    Pattern::Name(name) => Some(name),
                    _ => None,
                });
                Pattern::Object(members, rest)
            }
            B::ArrayPattern(one) => Pattern::Array(
                one.elements.iter().map(|item| item.as_ref().map(|item| self.pattern(item))).collect(),
            ),
        }
    }

    fn expression(&self, expression: &ast::Expression<'_>) -> Expression {
        let span = self.span(expression.span());
        let kind = self.within(|| Kind::Other, || self.kind(expression.get_inner_expression()));
        Expression { span, kind }
    }

    fn boxed(&self, expression: &ast::Expression<'_>) -> Box<Expression> {
        Box::new(self.expression(expression))
    }

    fn kind(&self, expression: &ast::Expression<'_>) -> Kind {
        use ast::Expression as E;
        match expression {
            E::NullLiteral(_) => Kind::Null,
            E::BooleanLiteral(one) => Kind::Boolean(one.value),
            E::NumericLiteral(one) => Kind::Number(one.value),
            E::StringLiteral(one) => Kind::String(one.value.to_string()),
            E::RegExpLiteral(one) => {
                Kind::Regex(one.regex.pattern.text.to_string(), one.regex.flags.to_string())
            }
            E::Identifier(one) => Kind::Name(one.name.to_string()),
            E::TemplateLiteral(one) => Kind::Template(javascript::texts(one), self.all(&one.expressions)),
            E::TaggedTemplateExpression(one) => Kind::Tagged(
                self.boxed(&one.tag),
                javascript::texts(&one.quasi),
                self.all(&one.quasi.expressions),
            ),
            E::ArrayExpression(one) => Kind::Array(self.elements(&one.elements)),
            E::ObjectExpression(one) => {
                Kind::Object(one.properties.iter().map(|property| self.property(property)).collect())
            }
            E::ArrowFunctionExpression(one) => Kind::Function(self.arrow_function(one)),
            E::FunctionExpression(one) => Kind::Function(self.function(one)),
            E::UnaryExpression(one) => Kind::Unary(one.operator.as_str(), self.boxed(&one.argument)),
            E::BinaryExpression(one) if one.operator.as_str() == "+" => {
                Kind::Sum(javascript::terms(one).into_iter().map(|term| self.expression(term)).collect())
            }
            E::BinaryExpression(one) => {
                Kind::Binary(one.operator.as_str(), self.boxed(&one.left), self.boxed(&one.right))
            }
            E::LogicalExpression(one) => {
                Kind::Binary(one.operator.as_str(), self.boxed(&one.left), self.boxed(&one.right))
            }
            E::ConditionalExpression(one) => Kind::Conditional(
                self.boxed(&one.test),
                self.boxed(&one.consequent),
                self.boxed(&one.alternate),
            ),
            E::AssignmentExpression(one) => {
                let target = self.target(&one.left);
                Kind::Assign(Box::new(target), one.operator.as_str(), self.boxed(&one.right))
            }
            E::UpdateExpression(one) => self.update(one),
            E::CallExpression(one) => self.call(one),
            E::NewExpression(one) => Kind::New(self.boxed(&one.callee), self.arguments(&one.arguments)),
            E::StaticMemberExpression(one) => {
                Kind::Member(self.boxed(&one.object), one.property.name.to_string())
            }
            E::ComputedMemberExpression(one) => {
                Kind::Index(self.boxed(&one.object), self.boxed(&one.expression))
            }
            E::ChainExpression(one) => match &one.expression {
                ast::ChainElement::CallExpression(call) => self.call(call),
                ast::ChainElement::TSNonNullExpression(inner) => {
                    self.kind(inner.expression.get_inner_expression())
                }
                other => other.as_member_expression().map_or(Kind::Other, |member| self.member(member)),
            },
            E::AwaitExpression(one) => Kind::Await(self.boxed(&one.argument)),
            E::SequenceExpression(one) => Kind::Sequence(self.all(&one.expressions)),
            _ => Kind::Other,
        }
    }

    fn elements(&self, elements: &[ast::ArrayExpressionElement<'_>]) -> Vec<Element> {
        let element = |element: &ast::ArrayExpressionElement<'_>| match element {
            ast::ArrayExpressionElement::SpreadElement(spread) => {
                Some(Element { is_spread: true, value: self.expression(&spread.argument) })
            }
            element => {
                let value = element.as_expression()?;
                Some(Element { is_spread: false, value: self.expression(value) })
            }
        };
        elements.iter().filter_map(element).collect()
    }

    fn property(&self, property: &ast::ObjectPropertyKind<'_>) -> Property {
        match property {
            ast::ObjectPropertyKind::ObjectProperty(pair) => {
                let span = self.span(pair.key.span());
                let key = match (pair.key.static_name(), pair.key.as_expression()) {
                    (Some(name), _) if !pair.computed => {
                        Expression { span, kind: Kind::String(name.to_string()) }
                    }
                    (_, Some(key)) => self.expression(key),
                    _ => Expression { span, kind: Kind::Other },
                };
                Property::Pair(key, self.expression(&pair.value))
            }
            ast::ObjectPropertyKind::SpreadProperty(spread) => {
                Property::Spread(self.expression(&spread.argument))
            }
        }
    }

    fn arrow_function(&self, function: &ast::ArrowFunctionExpression<'_>) -> Arc<Function> {
        let parameters = self.parameters(&function.params);
        let body = match &function.body {
            ast::ArrowFunctionBody::FunctionBody(body) => self.body(&body.statements, &parameters),
            body => body.as_expression().map_or_else(Vec::new, |value| {
                let value = self.expression(value);
                vec![Statement { span: value.span, kind: StatementKind::Return(Some(value)) }]
            }),
        };
        Arc::new(Function { span: self.span(function.span), parameters, body })
    }

    /// `++n` is `n += 1`; the value of `n++` is the one before.
    fn update(&self, update: &ast::UpdateExpression<'_>) -> Kind {
        let span = self.span(update.span);
        let target = match &update.argument {
            ast::SimpleAssignmentTarget::AssignmentTargetIdentifier(name) => {
                Expression { span: self.span(name.span), kind: Kind::Name(name.name.to_string()) }
            }
            other => match other.as_member_expression() {
                Some(member) => Expression { span, kind: self.member(member) },
                None => Expression { span, kind: Kind::Other },
            },
        };
        let operator = if update.operator.as_str() == "++" { "+=" } else { "-=" };
        let added = Expression { span, kind: Kind::Number(1.0) };
        let changed = Kind::Assign(Box::new(Target::Expression(target)), operator, Box::new(added.clone()));
        if update.prefix {
            return changed;
        }
        let changed = Expression { span, kind: changed };
        match operator {
            "+=" => Kind::Binary("-", Box::new(changed), Box::new(added)),
            _ => Kind::Sum(vec![changed, added]),
        }
    }

    fn all(&self, expressions: &[ast::Expression<'_>]) -> Vec<Expression> {
        expressions.iter().map(|one| self.expression(one)).collect()
    }

    fn call(&self, call: &ast::CallExpression<'_>) -> Kind {
        Kind::Call(self.boxed(&call.callee), self.arguments(&call.arguments))
    }

    fn arguments(&self, arguments: &[ast::Argument<'_>]) -> Vec<Element> {
        let element = |argument: &ast::Argument<'_>| match argument {
            ast::Argument::SpreadElement(spread) => {
                Some(Element { is_spread: true, value: self.expression(&spread.argument) })
            }
            argument => {
                let value = argument.as_expression()?;
                Some(Element { is_spread: false, value: self.expression(value) })
            }
        };
        arguments.iter().filter_map(element).collect()
    }

    fn member(&self, member: &ast::MemberExpression<'_>) -> Kind {
        use ast::MemberExpression as M;
        match member {
            M::StaticMemberExpression(one) => {
                Kind::Member(self.boxed(&one.object), one.property.name.to_string())
            }
            M::ComputedMemberExpression(one) => {
                Kind::Index(self.boxed(&one.object), self.boxed(&one.expression))
            }
            M::PrivateFieldExpression(_) => Kind::Other,
        }
    }

    fn target(&self, target: &ast::AssignmentTarget<'_>) -> Target {
        let span = self.span(target.span());
        if let ast::AssignmentTarget::AssignmentTargetIdentifier(name) = target {
            return Target::Expression(Expression { span, kind: Kind::Name(name.name.to_string()) });
        }
        match (target, target.as_member_expression()) {
            (_, Some(member)) => Target::Expression(Expression { span, kind: self.member(member) }),
            (ast::AssignmentTarget::ArrayAssignmentTarget(one), _) if one.rest.is_none() => {
                let name = |target: &ast::AssignmentTargetMaybeDefault<'_>| match target {
                    ast::AssignmentTargetMaybeDefault::AssignmentTargetIdentifier(name) => {
                        Pattern::Name(name.name.to_string())
                    }
                    _ => Pattern::Other,
                };
                let items = one.elements.iter().map(|item| item.as_ref().map(name));
                Target::Pattern(Pattern::Array(items.collect()))
            }
            _ => Target::Pattern(Pattern::Other),
        }
    }
}

/// A class, which is not followed.
fn class(class: &ast::Class<'_>) -> StatementKind {
    class.id.as_ref().map_or(StatementKind::Other, |name| StatementKind::Program(name.name.to_string()))
}

fn import(one: &ast::ImportDeclaration<'_>) -> StatementKind {
    use ast::ImportDeclarationSpecifier as I;
    let name = |specifier: &I<'_>| {
        let (theirs, ours) = match specifier {
            I::ImportSpecifier(one) => (one.imported.name().to_string(), &one.local),
            I::ImportDefaultSpecifier(one) => ("default".to_owned(), &one.local),
            I::ImportNamespaceSpecifier(one) => ("*".to_owned(), &one.local),
        };
        Imported { theirs, ours: ours.name.to_string() }
    };
    let names = one.specifiers.iter().flatten().map(name).collect();
    StatementKind::Import { from: one.source.value.to_string(), names }
}

/// The import and the export of names of another script. They go through this one under names that it cannot
/// have.
fn passed_on(one: &ast::ExportFromDeclaration<'_>) -> (StatementKind, StatementKind) {
    let through = |theirs: &str| format!("{theirs} of another");
    let exported = exported(&one.specifiers);
    let imported = exported
        .iter()
        .map(|(theirs, _)| Imported { theirs: theirs.clone(), ours: through(theirs) })
        .collect();
    let names = exported.iter().map(|(theirs, name)| (through(theirs), name.clone())).collect();
    let import = StatementKind::Import { from: one.source.value.to_string(), names: imported };
    (import, StatementKind::Export(names))
}

/// Names of a script, and those under which it exports them.
fn exported(names: &[ast::ExportSpecifier<'_>]) -> Vec<(String, String)> {
    names.iter().map(|name| (name.local.name().to_string(), name.exported.name().to_string())).collect()
}

/// Names that a pattern declares, as a module exports them.
fn names_of(pattern: &Pattern, names: &mut Vec<(String, String)>) {
    match pattern {
        Pattern::Name(name) => names.push((name.clone(), name.clone())),
        Pattern::Default(inner, _) => names_of(inner, names),
        Pattern::Object(members, rest) => {
            members.iter().for_each(|(_, member)| names_of(member, names));
            names.extend(rest.iter().map(|rest| (rest.clone(), rest.clone())));
        }
        Pattern::Array(items) => items.iter().flatten().for_each(|item| names_of(item, names)),
        Pattern::Other => {}
    }
}
