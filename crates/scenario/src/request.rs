//! Whole requests, compiled.

use std::fmt;
use std::sync::Arc;

use plimsoll_core::Random;
use plimsoll_wire::http2::{HeaderBlockCache, Payload};

use crate::dynamic::is_idempotent;
use crate::head::{FieldText, Head, HeadField};
use crate::header::is_value;
use crate::http2::FieldBlock;
use crate::program::excerpt;
use crate::slot::{Parsed, write_decimal};
use crate::spec::fingerprint;
use crate::token::Signer;
use crate::{
    Body, CodedText, Constants, Context, Dialect, DynamicRequest, FieldList, Fingerprint, Frame,
    FrameContent, Framed, Framing, RequestSpec, Scope, SentRequest, Slot, Template, TemplateError,
    WebSocketAction,
};

/// One request, compiled: rendering a static request is one copy.
///
/// For HTTP/1.1 there is [`render`](Self::render), and [`shared_body`](Self::shared_body) after it. For
/// HTTP/2 there is [`render_body`](Self::render_body), whose length goes into
/// [`render_block`](Self::render_block).
///
/// All ways to render a request draw the same random numbers in the same order, and as many: two renderings
/// with copies of one stream and the same context are the same request, in every protocol.
///
/// A request whose length is the same for all renderings carries it as a literal; otherwise the body is
/// rendered first and its length written into the head.
#[derive(Clone)]
pub struct RequestTemplate {
    /// The head of HTTP/1.1, and the content if it is [inlined](Content::Inlined); up to the value of the
    /// content-length if the content is [measured](Content::Measured).
    front: Template,
    content: Content,
    /// Frame of a request that is not HTTP. It writes the texts of `front` and `content`.
    frame: Option<Arc<dyn Frame>>,
    /// Action on a WebSocket, if it is one.
    websocket: Option<WebSocketAction>,
    /// Variables whose values are examined before it is sent.
    inserted: Inserted,
    /// Path and query; of a protocol of another crate, what its frame writes besides the content.
    path: Template,
    /// The head of HTTP/2.
    pub(crate) block: FieldBlock,
    head_request: bool,
    is_static: bool,
    needs_clock: bool,
    /// Random numbers that the head takes.
    head_draws: u32,
    /// Random numbers that remain to be drawn once a header block is rendered: for fields that HTTP/2 does
    /// not send, and for the content.
    pub(crate) draws_after_block: u32,
    fingerprint: Fingerprint,
    /// Source of the compilation: a redirect is compiled again.
    pub(crate) source: Arc<Source>,
}

/// Variables of a request.
#[derive(Clone, Default)]
struct Inserted {
    /// All of them.
    all: Box<[u16]>,
    /// How often they are inserted: texts that functions expand within others count as often as they grow.
    times: usize,
    /// Those whose control characters would get into a field of the head, with the position of the field.
    in_head: Box<[(u16, u16)]>,
    /// The body in a binary form whose parts read them.
    coded: Option<Arc<CodedText>>,
}

/// Longest request that values of variables make, in bytes.
pub const LONGEST_WITH_VALUES: usize = 64 << 20;

/// Source from which a request was compiled.
pub(crate) struct Source {
    pub(crate) spec: RequestSpec,
    /// The names of its scope, up to the last one that it reads: a plan has many requests, and many names.
    pub(crate) variables: Vec<String>,
    pub(crate) constants: Option<Constants>,
    pub(crate) tokens: Vec<Arc<Signer>>,
    /// All fields, one by one.
    pub(crate) fields: Vec<HeadField>,
}

/// The body of a request.
#[derive(Clone)]
enum Content {
    None,
    /// Always of the same length, and not a large static one.
    Inlined(Template),
    /// Of a length that is known only once it is rendered.
    Measured(Template),
    /// Large and static.
    Shared(Arc<[u8]>),
    /// The body in the context, from this supply.
    Supplied(Supplied),
}

/// A body of a supply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supplied {
    /// The supply, a position in the plan's.
    pub supply: u16,
    /// `true` if this is the inquiry after the body that the session has taken last.
    pub inquiry: bool,
}

/// Static bodies above this many bytes are shared instead of copied: below, one copy is cheaper than a second
/// buffer in the system call.
const LARGEST_COPIED_BODY: usize = 16 * 1024;

/// Room for the digits of a content-length, in bytes.
const LENGTH_DIGITS: usize = 20;

impl RequestTemplate {
    /// Compiles and validates one request without variables. It can be sent over HTTP/2, too, but without a
    /// book each of its blocks is encoded again.
    pub fn http1(spec: &RequestSpec) -> Result<Self, TemplateError> {
        Self::compile(spec, &Scope::default(), None)
    }

    /// Compiles and validates one request, which may name the variables of `scope`. With a `book` its header
    /// block for HTTP/2 is added to that: the book that [`render_block`](Self::render_block) is given later.
    pub fn compile(
        spec: &RequestSpec,
        scope: &Scope<'_>,
        book: Option<&mut HeaderBlockCache>,
    ) -> Result<Self, TemplateError> {
        let content = Content::compile(&spec.body, scope).map_err(|error| error.at("body"))?;
        if let Dialect::Framed(framing) = &spec.dialect {
            return Self::framed(spec, &**framing, scope, content);
        }
        let websocket = match spec.dialect {
            Dialect::WebSocket(action) => Some(action),
            _ => None,
        };
        if websocket.is_some_and(|action| action != WebSocketAction::Open) {
            return Self::message(spec, websocket, scope, &content);
        }
        let head = Head::check(spec, scope, content.fixed_len())?;
        let mut front = head.http1();
        let head_draws = front.draws();
        if let Content::Inlined(body) = &content {
            front.push(body);
        }
        let fields = head.fields();
        let unsent = fields.iter().filter(|field| field.of_connection).map(HeadField::draws).sum::<u32>();
        let draws_after_block = unsent + content.template().map_or(0, Template::draws);
        let block = FieldBlock::compile(&fields, book);
        let in_fields = fields.iter().filter_map(|field| match &field.value {
            FieldText::Template(value) => Some(value),
            _ => None,
        });
        let templates = [&front, &head.target].into_iter().chain(content.template()).chain(in_fields);
        let names = templates.flat_map(Template::variables).max().map_or(0, |last| usize::from(last) + 1);
        let inserted = Inserted::of([Some(&front), content.template()], &fields);
        Ok(Self {
            inserted,
            is_static: front.is_static() && !matches!(content, Content::Measured(_) | Content::Supplied(_)),
            needs_clock: front.needs_clock() || content.measured().is_some_and(Template::needs_clock),
            front,
            head_draws,
            draws_after_block,
            content,
            frame: None,
            websocket,
            path: head.target,
            block,
            head_request: spec.method == "HEAD",
            fingerprint: fingerprint(spec),
            source: Arc::new(Source {
                spec: spec.clone(),
                variables: scope.variables[..names].to_vec(),
                constants: scope.constants.cloned(),
                tokens: scope.tokens.to_vec(),
                fields,
            }),
        })
    }

    /// Compiles a request of a protocol of another crate.
    fn framed(
        spec: &RequestSpec,
        framing: &dyn Framing,
        scope: &Scope<'_>,
        content: Content,
    ) -> Result<Self, TemplateError> {
        let value = match &content {
            Content::None => FrameContent::None,
            Content::Inlined(value) | Content::Measured(value) => FrameContent::Template(value.clone()),
            Content::Shared(bytes) => FrameContent::Shared(Arc::clone(bytes)),
            Content::Supplied(_) => {
                return Err(TemplateError::new("this protocol takes no body that is supplied").at("body"));
            }
        };
        let Framed { text, frame } = framing.compile(spec, scope, value)?;
        let content = match content {
            Content::Measured(value) => Content::Inlined(value),
            content => content,
        };
        let mut front = text.clone();
        if let Content::Inlined(value) = &content {
            front.push(value);
        }
        let is_static = front.is_static();
        let names = front.variables().into_iter().max().map_or(0, |last| usize::from(last) + 1);
        if is_static {
            let mut bytes = Vec::new();
            frame.render(&Context::default(), &mut Random::new(0, 0), &mut bytes);
            let has_secret = front.has_secret();
            front = Template::literal(&bytes);
            front.set_secret(has_secret);
        }
        let field = |name: &str, value: &Template| HeadField {
            name: name.to_owned(),
            value: FieldText::Template(value.clone()),
            of_connection: false,
            only_with_cookies: false,
        };
        Ok(Self {
            inserted: Inserted::of([Some(&text), content.template()], &[]),
            is_static,
            needs_clock: front.needs_clock(),
            head_draws: front.draws(),
            draws_after_block: 0,
            front,
            content,
            frame: Some(frame),
            websocket: None,
            block: FieldBlock::compile(&[], None),
            head_request: false,
            fingerprint: fingerprint(spec),
            source: Arc::new(Source {
                spec: spec.clone(),
                variables: scope.variables[..names].to_vec(),
                constants: scope.constants.cloned(),
                tokens: scope.tokens.to_vec(),
                fields: vec![
                    field(":method", &Template::literal(spec.method.as_bytes())),
                    field(":authority", &Template::literal(spec.authority.as_bytes())),
                    field(":path", &text),
                ],
            }),
            path: text,
        })
    }

    /// Compiles a message on a WebSocket, or another action there that is no request of HTTP. Its rendering
    /// is the message, without a frame around it.
    fn message(
        spec: &RequestSpec,
        websocket: Option<WebSocketAction>,
        scope: &Scope<'_>,
        content: &Content,
    ) -> Result<Self, TemplateError> {
        let message = match content {
            Content::None => Template::literal(b""),
            Content::Inlined(message) | Content::Measured(message) => message.clone(),
            Content::Shared(bytes) => Template::literal(bytes),
            Content::Supplied(_) => {
                return Err(TemplateError::new("a WebSocket takes no message that is supplied").at("body"));
            }
        };
        let names = message.variables().into_iter().max().map_or(0, |last| usize::from(last) + 1);
        let field = |name: &str, value: &str| HeadField {
            name: name.to_owned(),
            value: FieldText::Template(Template::literal(value.as_bytes())),
            of_connection: false,
            only_with_cookies: false,
        };
        Ok(Self {
            inserted: Inserted::of([Some(&message), None], &[]),
            is_static: message.is_static(),
            needs_clock: message.needs_clock(),
            head_draws: 0,
            draws_after_block: message.draws(),
            front: message.clone(),
            content: Content::Inlined(message),
            frame: None,
            websocket,
            path: Template::literal(b""),
            block: FieldBlock::compile(&[], None),
            head_request: false,
            fingerprint: fingerprint(spec),
            source: Arc::new(Source {
                spec: spec.clone(),
                variables: scope.variables[..names].to_vec(),
                constants: scope.constants.cloned(),
                tokens: scope.tokens.to_vec(),
                fields: vec![field(":method", &spec.method), field(":authority", &spec.authority)],
            }),
        })
    }

    /// Appends the head of HTTP/1.1, and the body unless it is [shared](Self::shared_body); of a
    /// protocol of another crate the frame, except for shared content. `scratch` is for bodies whose length
    /// is not known ahead; its content is overwritten. Allocates only when a buffer has to grow.
    pub fn render(
        &self,
        context: &Context<'_>,
        random: &mut Random,
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) {
        if self.is_static {
            out.extend_from_slice(self.front.literals());
            return;
        }
        if let Some(frame) = &self.frame {
            return frame.render(context, random, out);
        }
        self.front.render(context, random, out);
        if let Content::Measured(body) = &self.content {
            scratch.clear();
            body.render(context, random, scratch);
            write_decimal(scratch.len() as u64, out);
            out.extend_from_slice(b"\r\n\r\n");
            out.extend_from_slice(scratch);
        }
        if let Content::Supplied(_) = &self.content {
            let body = context.body.map_or(&[][..], |body| body);
            write_decimal(body.len() as u64, out);
            out.extend_from_slice(b"\r\n\r\n");
            if body.len() <= LARGEST_COPIED_BODY {
                out.extend_from_slice(body);
            }
        }
    }

    /// A large static body, to be sent after the output of [`render`](Self::render).
    pub fn shared_body(&self) -> Option<&Arc<[u8]>> {
        match &self.content {
            Content::Shared(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// A large body, static or supplied, to be sent after the output of [`render`](Self::render). A supplied
    /// one is in the context that the request was rendered with.
    #[inline]
    pub fn separate_body<'a>(&'a self, context: &Context<'a>) -> Option<&'a Arc<[u8]>> {
        match &self.content {
            Content::Shared(bytes) => Some(bytes),
            Content::Supplied(_) => context.body.filter(|body| body.len() > LARGEST_COPIED_BODY),
            _ => None,
        }
    }

    /// The supply that the body is of, if it is of one.
    #[inline]
    pub fn supply(&self) -> Option<Supplied> {
        match self.content {
            Content::Supplied(supply) => Some(supply),
            _ => None,
        }
    }

    /// The body, for HTTP/2: a static one as it is, another one rendered into `scratch`, whose content is
    /// overwritten. [`Payload::None`] if it is empty. Allocates only when `scratch` has to grow.
    ///
    /// Pass the same `random` to [`render_block`](Self::render_block) afterwards: it is not advanced here.
    pub fn render_body<'a>(
        &'a self,
        context: &Context<'a>,
        random: &Random,
        scratch: &'a mut Vec<u8>,
    ) -> Payload<'a> {
        let bytes = match &self.content {
            Content::None => return Payload::None,
            Content::Shared(bytes) => return Payload::Shared(bytes),
            Content::Supplied(_) => return context.body.map_or(Payload::None, Payload::Shared),
            Content::Inlined(body) if body.is_static() => body.literals(),
            Content::Inlined(body) | Content::Measured(body) => {
                scratch.clear();
                // The head comes first.
                let mut random = random.clone();
                skip(&mut random, self.head_draws);
                body.render(context, &mut random, scratch);
                scratch
            }
        };
        if bytes.is_empty() { Payload::None } else { Payload::Bytes(bytes) }
    }

    /// Appends the path and query alone. With a copy of `random` as it was before the request was rendered,
    /// and the same context, they are those of that request.
    pub fn render_path(&self, context: &Context<'_>, random: &mut Random, out: &mut Vec<u8>) {
        self.path.render(context, random, out);
    }

    /// Path and query, if they are the same in all renderings.
    pub fn static_path(&self) -> Option<&[u8]> {
        self.path.is_static().then(|| self.path.literals())
    }

    /// Writes the whole request as fields, replacing the content of `into`. With a copy of `random` as it was
    /// before the request was rendered, and the same context, they are those of that request. Fields about a
    /// connection of HTTP/1.1 are among them, and the content-length is the last. Allocates only when a
    /// buffer has to grow.
    pub fn render_request(&self, context: &Context<'_>, random: &mut Random, into: &mut SentRequest) {
        let SentRequest { method, path, authority, fields, body } = into;
        self.render_parts(context, random, Parts { method, path, authority, fields, body });
        if self.source.fields.iter().any(|field| field.name == "content-length") {
            let len = into.body.len() as u64;
            into.fields.push_with(b"content-length", |out| write_decimal(len, out));
        }
    }

    /// Writes the whole request but the content-length, for a script that may change it, replacing the
    /// content of `into`.
    pub fn render_dynamic(&self, context: &Context<'_>, random: &mut Random, into: &mut DynamicRequest) {
        into.raw.clear();
        into.raw_count = 0;
        let DynamicRequest { method, path, authority, fields, body, .. } = into;
        self.render_parts(context, random, Parts { method, path, authority, fields, body });
    }

    /// Everything but the content-length.
    fn render_parts(&self, context: &Context<'_>, random: &mut Random, parts: Parts<'_>) {
        let Parts { method, path, authority, fields, body } = parts;
        for part in [&mut *method, &mut *path, &mut *authority, &mut *body] {
            part.clear();
        }
        fields.clear();
        for field in &self.source.fields {
            let FieldText::Template(value) = &field.value else { continue };
            match field.name.as_str() {
                ":method" => value.render(context, random, method),
                ":path" => value.render(context, random, path),
                ":authority" => value.render(context, random, authority),
                ":scheme" | "content-length" => {}
                _ if field.only_with_cookies && context.cookies.is_empty() => {}
                name => fields.push_with(name.as_bytes(), |out| value.render(context, random, out)),
            }
        }
        match &self.content {
            Content::None => {}
            Content::Inlined(content) | Content::Measured(content) => content.render(context, random, body),
            Content::Shared(bytes) => body.extend_from_slice(bytes),
            Content::Supplied(_) => body.extend_from_slice(context.body.map_or(&[][..], |body| body)),
        }
    }

    /// Returns why the request cannot be sent with these values of variables, in the order of the plan's: one
    /// of them would split a header or is unfit for a body in a binary form, or they are longer together than
    /// [`LONGEST_WITH_VALUES`].
    #[inline]
    pub fn unfit_value(&self, variables: &[Vec<u8>]) -> Option<String> {
        let Inserted { all, times, in_head, coded } = &self.inserted;
        let value = |index: &u16| variables.get(usize::from(*index)).map_or(&[][..], Vec::as_slice);
        let longest = all.iter().map(|index| value(index).len()).max().unwrap_or(0);
        let is_fit = in_head.iter().all(|(index, _)| is_value(value(index)));
        if is_fit && longest.saturating_mul(*times) <= LONGEST_WITH_VALUES {
            return coded.as_ref().and_then(|coded| coded.unfit(variables));
        }
        self.describe_unfit(variables)
    }

    #[cold]
    fn describe_unfit(&self, variables: &[Vec<u8>]) -> Option<String> {
        for (index, field) in &self.inserted.in_head {
            let Some(value) = variables.get(usize::from(*index)).filter(|value| !is_value(value)) else {
                continue;
            };
            let name = self.source.variables.get(usize::from(*index)).map_or("", String::as_str);
            let field = self.source.fields.get(usize::from(*field)).map_or("", |field| &field.name);
            let field = if field == ":authority" { "host" } else { field };
            return Some(format!(
                "the value `{}` of the variable `{name}` has a line break or another control character, which \
                 would split the header `{field}`",
                excerpt(value)
            ));
        }
        let len_of = |index: u16| variables.get(usize::from(index)).map_or(0, Vec::len);
        let measured = match &self.content {
            Content::Measured(body) => body.len_of_variables(&len_of),
            _ => 0,
        };
        let len = self.front.len_of_variables(&len_of).saturating_add(measured);
        (len > LONGEST_WITH_VALUES).then(|| {
            let most = LONGEST_WITH_VALUES >> 20;
            format!("the values of variables would make a request of more than {most} MiB")
        })
    }

    /// Returns `true` if the method is HEAD: the response has no body, regardless of its headers.
    pub fn head_request(&self) -> bool {
        self.head_request
    }

    /// Returns `true` if the method is safe: it does not ask for a change (RFC 9110 section 9.2.1).
    pub fn is_safe(&self) -> bool {
        matches!(self.source.spec.method.as_str(), "GET" | "HEAD" | "OPTIONS" | "TRACE")
    }

    /// Returns `true` if the method is idempotent: a request that is processed twice changes no more than one
    /// that is processed once (RFC 9110 section 9.2.2).
    pub fn is_idempotent(&self) -> bool {
        is_idempotent(self.source.spec.method.as_bytes())
    }

    /// Returns `true` if all renderings are the same.
    pub fn is_static(&self) -> bool {
        self.is_static
    }

    /// The kind of a request of a protocol of another crate; 0 of all others.
    #[inline]
    pub fn frame_kind(&self) -> u16 {
        self.frame.as_ref().map_or(0, |frame| frame.kind())
    }

    /// The action on a WebSocket, if it is one.
    #[inline]
    pub fn websocket(&self) -> Option<WebSocketAction> {
        self.websocket
    }

    /// Returns `true` if a rendering reads the time of the [`Context`].
    #[inline]
    pub fn needs_clock(&self) -> bool {
        self.needs_clock
    }

    /// Returns `true` if the request names itself in the traces of its server: by `${traceparent}` in its
    /// head.
    pub fn is_traced(&self) -> bool {
        self.front.slots().any(|slot| matches!(slot, Slot::Traceparent { .. }))
    }

    /// Returns `true` if the request asks its server to record the trace with this id.
    pub fn samples_trace(&self, id: u128) -> bool {
        self.front.slots().any(|slot| slot.samples_trace(id))
    }

    /// Returns `true` if the request has a body.
    pub fn has_body(&self) -> bool {
        !matches!(self.content, Content::None)
    }

    /// Returns `true` if the request contains a secret, from `${secret(NAME)}`.
    pub fn has_secret(&self) -> bool {
        self.front.has_secret() || self.body_has_secret()
    }

    /// Returns `true` if the body contains a secret of the plan.
    pub(crate) fn body_has_secret(&self) -> bool {
        self.content.template().is_some_and(Template::has_secret)
    }

    /// Returns `true` if a rendering reads the cookies of the [`Context`].
    pub fn uses_cookies(&self) -> bool {
        self.source
            .fields
            .iter()
            .any(|field| matches!(&field.value, FieldText::Template(value) if value.uses_cookies()))
    }

    /// Returns `true` if a rendering reads the authority of the [`Context`].
    pub fn uses_authority(&self) -> bool {
        self.front.slots().any(|slot| *slot == Slot::Authority)
    }

    /// The variable that the request target begins with, if it does: if its value is a URL of http or https,
    /// the request asks for the path of that. The caller then decides about its server.
    pub fn leading_variable(&self) -> Option<u16> {
        self.path.leading_variable()
    }

    /// Returns `true` if a rendering reads the variables of the [`Context`].
    pub fn uses_variables(&self) -> bool {
        self.front.uses_variables() || self.measured().is_some_and(Template::uses_variables)
    }

    /// Most bytes that [`render`](Self::render) appends, without the values of variables, and without cookies
    /// and the authority if they come from the [`Context`].
    pub fn len_hint(&self) -> usize {
        let measured = match &self.content {
            Content::Measured(body) => body.longest() + LENGTH_DIGITS + 4,
            Content::Supplied(_) => LARGEST_COPIED_BODY + LENGTH_DIGITS + 4,
            _ => 0,
        };
        self.front.longest() + measured
    }

    /// Identifies the sent bytes, without the values of secret headers: a new token is not a new plan.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    fn measured(&self) -> Option<&Template> {
        self.content.measured()
    }
}

/// The destinations of the parts of a request.
struct Parts<'a> {
    method: &'a mut Vec<u8>,
    path: &'a mut Vec<u8>,
    authority: &'a mut Vec<u8>,
    fields: &'a mut FieldList,
    body: &'a mut Vec<u8>,
}

/// Uses up random numbers.
pub(crate) fn skip(random: &mut Random, draws: u32) {
    for _ in 0..draws {
        random.bits();
    }
}

impl Inserted {
    /// The variables of a request with these texts and fields.
    fn of(texts: [Option<&Template>; 2], fields: &[HeadField]) -> Self {
        let texts = texts.into_iter().flatten();
        let mut all: Vec<u16> = texts.clone().flat_map(Template::variables).collect();
        all.sort_unstable();
        all.dedup();
        let mut in_head = Vec::new();
        for (position, field) in (0..).zip(fields) {
            let FieldText::Template(value) = &field.value else { continue };
            let mut variables = Vec::new();
            value.slots().for_each(|slot| slot.add_variables_of_line(&mut variables));
            in_head.extend(variables.into_iter().map(|variable| (variable, position)));
        }
        let coded = texts.clone().flat_map(Template::slots).find_map(|slot| match slot {
            Slot::Coded(coded) if slot.is_variable() => Some(Arc::clone(coded)),
            _ => None,
        });
        Self {
            all: all.into(),
            times: texts.map(|text| text.len_of_variables(&|_| 1)).sum(),
            in_head: in_head.into(),
            coded,
        }
    }
}

impl Content {
    fn compile(body: &Body, scope: &Scope<'_>) -> Result<Self, TemplateError> {
        let template = match body {
            Body::None => return Ok(Self::None),
            Body::Supplied { supply, inquiry, .. } => {
                return Ok(Self::Supplied(Supplied { supply: *supply, inquiry: *inquiry }));
            }
            Body::Raw(bytes) if bytes.len() > LARGEST_COPIED_BODY => {
                return Ok(Self::Shared(Arc::clone(bytes)));
            }
            Body::Raw(bytes) => Template::literal(bytes),
            Body::Coded(coded) => {
                Template::of(Parsed::Slot(Slot::Coded(Arc::new(CodedText::compile(coded, scope)?))))
            }
            Body::Text(text) => Template::parse_in(text, scope)?,
        };
        Ok(match template.fixed_len() {
            None => Self::Measured(template),
            // Shared bytes do not say that there is a secret among them.
            Some(len) if len > LARGEST_COPIED_BODY && template.is_static() && !template.has_secret() => {
                Self::Shared(Arc::from(template.literals()))
            }
            Some(_) => Self::Inlined(template),
        })
    }

    /// Returns the template of a body whose length differs.
    fn measured(&self) -> Option<&Template> {
        match self {
            Self::Measured(body) => Some(body),
            _ => None,
        }
    }

    /// Returns the template of the body; `None` if there is no body, or it is shared or supplied.
    fn template(&self) -> Option<&Template> {
        match self {
            Self::Inlined(body) | Self::Measured(body) => Some(body),
            Self::None | Self::Shared(_) | Self::Supplied(_) => None,
        }
    }

    /// Bytes of every rendering, if they are always as many.
    fn fixed_len(&self) -> Option<usize> {
        match self {
            Self::None => Some(0),
            Self::Inlined(body) | Self::Measured(body) => body.fixed_len(),
            Self::Shared(bytes) => Some(bytes.len()),
            Self::Supplied(_) => None,
        }
    }
}

/// Without the bytes: they may contain a secret. Then its length is not shown either.
impl fmt::Debug for RequestTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len_hint = (!self.has_secret()).then(|| self.len_hint());
        f.debug_struct("RequestTemplate")
            .field("fingerprint", &self.fingerprint)
            .field("is_static", &self.is_static)
            .field("len_hint", &len_hint)
            .field("shared_body_len", &self.shared_body().map(|body| body.len()))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scheme;
    use crate::header::is_token;
    use proptest::prelude::*;

    fn get() -> RequestSpec {
        RequestSpec {
            method: "GET".to_owned(),
            target: "/".to_owned(),
            scheme: Scheme::Http,
            authority: "example.test:8080".to_owned(),
            ..RequestSpec::default()
        }
    }

    fn post(body: Body) -> RequestSpec {
        RequestSpec { method: "POST".to_owned(), body, ..get() }
    }

    fn with_headers(spec: RequestSpec, headers: &[(&str, &str)]) -> RequestSpec {
        let headers = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        RequestSpec { headers, ..spec }
    }

    fn rendered(spec: &RequestSpec, index: u64) -> Vec<u8> {
        let request = RequestTemplate::http1(spec).unwrap();
        let (mut scratch, mut out) = (b"left over".to_vec(), Vec::new());
        let context = Context {
            index,
            worker: 2,
            unix_ns: 1_700_000_000_000_000_000,
            variables: &[],
            ..Context::default()
        };
        request.render(&context, &mut Random::new(index, 0), &mut scratch, &mut out);
        assert!(out.len() <= request.len_hint());
        out
    }

    /// What a value with line ends does in each place, and that no rendering of it is two requests.
    #[test]
    fn line_ends_of_values_are_fit_for_bodies_and_not_for_headers() {
        let variables = ["v".to_owned()];
        let scope = Scope { variables: &variables, ..Scope::default() };
        let text = |text: &str| Body::Text(text.as_bytes().to_vec());
        let header = |name: &str, value: &str| with_headers(get(), &[(name, value)]);
        let path = |path: &str| RequestSpec { target: path.to_owned(), ..get() };
        let places = [
            (path("/${v}"), None),
            (path("${v}"), None),
            (path("/?a=${v}&b=${upper(${v})}"), None),
            (post(text("${v}")), None),
            (post(text("{\"a\": \"${json(${v})}\"}")), None),
            (header("X-A", "${urlencode(${v})}"), None),
            (header("X-A", "${base64(${v})} ${hash(sha256, ${v})}"), None),
            (header("X-A", "a ${v}"), Some("x-a")),
            (header("X-A", "${upper(${v})}"), Some("x-a")),
            (header("X-A", "${fill(64, ${v})}"), Some("x-a")),
            (header("Host", "${v}"), Some("host")),
            (header("Cookie", "a=${v}"), Some("cookie")),
            (header("Authorization", "Bearer ${lower(${v})}"), Some("authorization")),
        ];
        for (spec, refused) in places {
            let request = RequestTemplate::compile(&spec, &scope, None).unwrap();
            for value in
                ["a\r\nX-B: c", "\r\n\r\nGET / HTTP/1.1\r\n\r\n", "\n", "\r", "\0", "\x1b[2J", "\x7f"]
            {
                let values = [value.as_bytes().to_vec()];
                let reason = request.unfit_value(&values);
                assert_eq!(reason.is_some(), refused.is_some(), "{spec:?} {value:?}: {reason:?}");
                if let (Some(reason), Some(field)) = (reason, refused) {
                    assert!(reason.ends_with(&format!("the header `{field}`")), "{reason}");
                    assert!(reason.contains("the variable `v`") && is_value(reason.as_bytes()), "{reason}");
                }
                let context = Context { variables: &values, ..Context::default() };
                let mut out = Vec::new();
                request.render(&context, &mut Random::new(1, 0), &mut Vec::new(), &mut out);
                let (_, headers, _) = parsed(&out);
                assert!(!headers.iter().any(|(name, _)| name == "X-B"), "{}", out.escape_ascii());
            }
            for value in ["a", "a\tb", "ä", ""] {
                assert_eq!(request.unfit_value(&[value.as_bytes().to_vec()]), None, "{spec:?} {value:?}");
            }
        }
    }

    /// Symptom: values of some MiB that a body names often took all memory.
    #[test]
    fn values_make_no_request_of_any_length() {
        let variables = ["v".to_owned()];
        let scope = Scope { variables: &variables, ..Scope::default() };
        let text = |times: usize, text: &str| post(Body::Text(text.repeat(times).into_bytes()));
        for (spec, times) in [
            (text(1_000, "${v}"), 1_000),
            (text(1_000, "${json(${v})}"), 1_000),
            (text(1, "${json(${json(${v})})}"), 6),
            (RequestSpec { target: format!("/{}", "${v}".repeat(100)), ..get() }, 100),
            (with_headers(get(), &[("X-A", &"${v}".repeat(100))]), 100),
        ] {
            let request = RequestTemplate::compile(&spec, &scope, None).unwrap();
            let fits = vec![b'x'; LONGEST_WITH_VALUES / times];
            assert_eq!(request.unfit_value(&[fits]), None, "{times}");
            let reason = request.unfit_value(&[vec![b'x'; LONGEST_WITH_VALUES / times + 1]]);
            assert_eq!(
                reason.as_deref(),
                Some("the values of variables would make a request of more than 64 MiB"),
                "{times}"
            );
        }
    }

    /// Request line, headers and body, read back strictly.
    fn parsed(bytes: &[u8]) -> (String, Vec<(String, String)>, Vec<u8>) {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("a head ends");
        let head = std::str::from_utf8(&bytes[..end]).unwrap();
        let mut lines = head.split("\r\n");
        let first = lines.next().unwrap().to_owned();
        assert_eq!(first.split(' ').count(), 3, "{first}");
        let headers = lines
            .map(|line| {
                let (name, value) = line.split_once(": ").expect("name: value");
                assert!(name.bytes().all(is_token) && !name.is_empty());
                assert!(!value.contains(['\r', '\n', '\0']));
                (name.to_owned(), value.to_owned())
            })
            .collect();
        (first, headers, bytes[end + 4..].to_vec())
    }

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_plain_get_is_as_short_as_it_can_be() {
        let version = env!("CARGO_PKG_VERSION");
        let expected =
            format!("GET / HTTP/1.1\r\nHost: example.test:8080\r\nUser-Agent: plimsoll/{version}\r\n\r\n");
        assert_eq!(text(&rendered(&get(), 0)), expected);
        let request = RequestTemplate::http1(&get()).unwrap();
        assert!(request.is_static() && !request.needs_clock() && !request.head_request());
        assert_eq!(request.len_hint(), expected.len());
    }

    #[test]
    fn default_headers_can_be_replaced_and_left_out() {
        let spec = with_headers(get(), &[("user-agent", ""), ("host", "other"), ("X-A", "b")]);
        assert_eq!(text(&rendered(&spec, 0)), "GET / HTTP/1.1\r\nhost: other\r\nX-A: b\r\n\r\n");
        let closing = RequestSpec { keep_alive: false, ..with_headers(get(), &[("user-agent", "")]) };
        assert!(text(&rendered(&closing, 0)).ends_with("\r\nConnection: close\r\n\r\n"));
        let told = RequestSpec { keep_alive: false, ..with_headers(get(), &[("connection", "upgrade")]) };
        assert!(!text(&rendered(&told, 0)).contains("close"));
    }

    #[test]
    fn the_content_length_is_there_when_it_means_something() {
        for (method, body, expected) in [
            ("GET", Body::None, None),
            ("DELETE", Body::None, None),
            ("POST", Body::None, Some("0")),
            ("PUT", Body::None, Some("0")),
            ("PATCH", Body::Text(Vec::new()), Some("0")),
            ("GET", Body::Text(b"abc".to_vec()), Some("3")),
            ("POST", Body::Raw(Arc::from(&b"${uuid}"[..])), Some("7")),
            ("POST", Body::Text(b"${uuid}".to_vec()), Some("36")),
            ("POST", Body::Text(b"n=${sequence}".to_vec()), Some("5")),
        ] {
            let spec = RequestSpec { method: method.to_owned(), body: body.clone(), ..get() };
            let (_, headers, sent) = parsed(&rendered(&spec, 100));
            let found = headers.iter().find(|(name, _)| name == "Content-Length").map(|(_, v)| v.as_str());
            assert_eq!(found, expected, "{method} {body:?}");
            assert_eq!(sent.len().to_string(), expected.unwrap_or("0"), "{method} {body:?}");
        }
        let bare = with_headers(post(Body::None), &[("content-length", "")]);
        assert!(!text(&rendered(&bare, 0)).contains("ontent-"));
    }

    #[test]
    fn only_a_true_content_length_is_accepted() {
        let body = || Body::Text(b"abc".to_vec());
        let good = with_headers(post(body()), &[("Content-Length", "3")]);
        assert_eq!(text(&rendered(&good, 0)).matches("ontent-").count(), 1);
        for bad in [
            with_headers(post(body()), &[("Content-Length", "4")]),
            with_headers(post(body()), &[("content-length", "${sequence}")]),
            with_headers(post(Body::Text(b"${sequence}".to_vec())), &[("Content-Length", "1")]),
            with_headers(post(body()), &[("Content-Length", "3"), ("content-length", "3")]),
            with_headers(post(body()), &[("Transfer-Encoding", "chunked")]),
            with_headers(get(), &[("Host", "a"), ("host", "b")]),
        ] {
            assert!(RequestTemplate::http1(&bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn large_static_bodies_are_shared_and_small_ones_copied() {
        let large: Arc<[u8]> = vec![b'x'; LARGEST_COPIED_BODY + 1].into();
        for body in [Body::Raw(Arc::clone(&large)), Body::Text(large.to_vec())] {
            let spec = post(body);
            let request = RequestTemplate::http1(&spec).unwrap();
            assert_eq!(request.shared_body().unwrap(), &large);
            assert!(request.is_static());
            let (_, headers, inline) = parsed(&rendered(&spec, 0));
            assert!(inline.is_empty());
            assert!(headers.contains(&("Content-Length".to_owned(), large.len().to_string())));
        }
        let shared = post(Body::Raw(Arc::clone(&large)));
        assert!(Arc::ptr_eq(RequestTemplate::http1(&shared).unwrap().shared_body().unwrap(), &large));
        let small = post(Body::Raw(large[1..].into()));
        assert!(RequestTemplate::http1(&small).unwrap().shared_body().is_none());
        assert_eq!(parsed(&rendered(&small, 0)).2, &large[1..]);
    }

    #[test]
    fn a_templated_head_with_a_shared_body() {
        let spec = RequestSpec {
            target: "/${sequence}".to_owned(),
            ..post(Body::Raw(vec![0; LARGEST_COPIED_BODY + 1].into()))
        };
        assert!(text(&rendered(&spec, 17)).starts_with("POST /17 HTTP/1.1\r\n"));
        assert!(!RequestTemplate::http1(&spec).unwrap().is_static());
    }

    #[test]
    fn rendering_reuses_its_buffers() {
        let spec = with_headers(
            RequestSpec {
                target: "/a?q=${random_string(20)}".to_owned(),
                ..post(Body::Text(b"${sequence} ${timestamp_ns} ${random_int(-5,5)}".to_vec()))
            },
            &[("X-Request-Id", "${uuid}")],
        );
        let request = RequestTemplate::http1(&spec).unwrap();
        assert!(request.needs_clock());
        let mut out = Vec::with_capacity(request.len_hint());
        let mut scratch = Vec::with_capacity(request.len_hint());
        let before = (out.as_ptr(), out.capacity(), scratch.as_ptr(), scratch.capacity());
        let mut random = Random::new(1, 0);
        for index in 0..1000 {
            out.clear();
            let context =
                Context { index, worker: 0, unix_ns: u64::MAX - index, variables: &[], ..Context::default() };
            request.render(&context, &mut random, &mut scratch, &mut out);
        }
        assert_eq!(before, (out.as_ptr(), out.capacity(), scratch.as_ptr(), scratch.capacity()));
    }

    #[test]
    fn malformed_requests_are_refused() {
        let method = |method: &str| RequestSpec { method: method.to_owned(), ..get() };
        let target = |target: &str| RequestSpec { target: target.to_owned(), ..get() };
        for (bad, message) in [
            (method(""), "`` is not a method"),
            (method("GE T"), "`GE T` is not a method"),
            (method("get"), "`get` is not a method"),
            (method("GET\r\n"), "`GET\\r\\n` is not a method"),
            (method("CONNECT"), "the method CONNECT opens a tunnel and cannot be used for load"),
            (target("a"), "the path `a` does not start with `/`"),
            (target("/a b"), "` ` is not allowed in a URL"),
            (target("/\r\nX: y"), "`\\r` is not allowed in a URL"),
            (target("/ü"), "`\\xc3` is not allowed in a URL"),
            (target("/${uid}"), "URL: unknown template slot `${uid}`"),
            (post(Body::Text(b"${".to_vec())), "body: `${` without a closing `}`"),
            (with_headers(get(), &[("A", "${b}")]), "header `A`: unknown template slot `${b}`"),
            (with_headers(get(), &[("A", "b\nc")]), "the value of the header `A` contains `\\n`"),
            (with_headers(get(), &[("A", "b\0c")]), "the value of the header `A` contains `\\x00`"),
            (with_headers(get(), &[("A b", "c")]), "` ` is not allowed in the header's name `A b`"),
        ] {
            assert_eq!(RequestTemplate::http1(&bad).unwrap_err().message(), message);
        }
        let options = RequestSpec { method: "OPTIONS".to_owned(), ..target("*") };
        assert!(rendered(&options, 0).starts_with(b"OPTIONS * HTTP/1.1\r\n"));
    }

    #[test]
    fn secrets_are_in_neither_debug_nor_fingerprint() {
        let token = |token: &str| with_headers(get(), &[("Authorization", token), ("X-A", "shown")]);
        let (one, two) = (token("Bearer topsecret"), token("Bearer another"));
        let request = RequestTemplate::http1(&one).unwrap();
        for debug in [format!("{one:?}"), format!("{request:?}")] {
            assert!(!debug.contains("topsecret"), "{debug}");
        }
        assert!(format!("{one:?}").contains("shown"));
        let print = |spec: &RequestSpec| RequestTemplate::http1(spec).unwrap().fingerprint();
        assert_eq!(print(&one), print(&two));
        assert_ne!(print(&one), print(&get()));
        assert_ne!(print(&post(Body::Text(b"a".to_vec()))), print(&post(Body::Raw(b"a"[..].into()))));
    }

    const PIECES: &[&str] = &[
        "${sequence}",
        "${worker}",
        "${uuid}",
        "${timestamp_s}",
        "${timestamp_ns}",
        "${random_int(-100,1000)}",
        "${random_int(10,99)}",
        "${random_hex(5)}",
        "${random_string(33)}",
        "plain",
        "$${",
        "$;",
        "",
    ];

    proptest! {
        #[test]
        fn every_rendering_is_a_request_whose_length_is_true(
            in_target in proptest::collection::vec(0..PIECES.len(), 0..4),
            in_header in proptest::collection::vec(0..PIECES.len(), 0..4),
            in_body in proptest::collection::vec(0..PIECES.len(), 0..8),
            index in any::<u64>(), keep_alive in any::<bool>(),
        ) {
            let join = |picked: &[usize]| picked.iter().map(|&i| PIECES[i]).collect::<String>();
            let spec = RequestSpec {
                target: format!("/{}", join(&in_target)),
                keep_alive,
                ..with_headers(
                    post(Body::Text(join(&in_body).into_bytes())),
                    &[("X-Header", &format!("v{}", join(&in_header)))],
                )
            };
            let (first, headers, body) = parsed(&rendered(&spec, index));
            prop_assert!(first.starts_with("POST /") && first.ends_with(" HTTP/1.1"));
            let value = |name: &str| {
                headers.iter().filter(|(n, _)| n == name).map(|(_, v)| v.clone()).collect::<Vec<_>>()
            };
            prop_assert_eq!(value("Content-Length"), [body.len().to_string()]);
            prop_assert_eq!(value("Host"), ["example.test:8080"]);
            prop_assert_eq!(value("X-Header").len(), 1);
            prop_assert_eq!(value("Connection").len(), usize::from(!keep_alive));
            if in_body.contains(&0) {
                prop_assert!(text(&body).contains(&index.to_string()));
            }
        }
    }
}
