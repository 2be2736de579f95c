//! Request templates, compiled to segments.
//!
//! Text with slots (`${uuid}`) is parsed once, before the run; rendering appends bytes to a buffer and does
//! nothing else. No clock, no socket and no global random state: the time and the arrival index come in a
//! [`Context`], random numbers from the caller's seeded stream, so that the same seed renders the same bytes.
//!
//! [`Template`] is any text with slots; [`RequestTemplate`] is one whole request for HTTP/1.1 and HTTP/2,
//! validated, with its `content-length` kept true; [`RequestSpec`] is its source. An [`Extract`] takes a
//! value out of a response, for a variable that later requests name.
#![forbid(unsafe_code)]

mod coded;
mod condition;
mod content_coding;
mod context;
mod cookie;
mod dynamic;
pub mod error;
mod event_stream;
mod extract;
mod feed;
pub mod fingerprint;
mod frame;
mod head;
pub mod header;
mod http2;
mod location;
mod message;
mod pattern;
mod pause;
pub mod pointer;
mod pool;
mod program;
mod quote;
mod recording;
pub mod redirect;
pub mod reference;
pub mod regular_file;
mod request;
mod response_handler;
mod round_robin;
mod script;
mod session;
mod shared_text;
pub mod slot;
mod spec;
mod supply;
pub mod template;
pub mod token;
mod websocket;

pub use coded::{Code, CodedBody, CodedText};
pub use condition::Condition;
pub use content_coding::decode_content;
pub use context::{Constants, Context, Scope};
pub use cookie::CookieJar;
pub use dynamic::DynamicRequest;
pub use error::TemplateError;
pub use event_stream::{CompletionApi, EventFacts, EventFault, EventStream, MessageStream, Usage};
pub use extract::{Conversion, Extract};
pub use feed::{AtEnd, FeedError, FeedSpec, Feeds, Order, Per, Rows, Share};
pub use fingerprint::Fingerprint;
pub use frame::{Frame, FrameContent, Framed, Framing};
pub use head::check_method;
pub use header::{parse_header, parse_header_in};
pub use location::Location;
pub use message::{FieldList, FieldNeeds, Needs, Received, SentRequest};
pub use pattern::PatternRoom;
pub use pause::Pause;
pub use pool::{PoolSpec, Row};
pub use program::{LONGEST_VALUE, Next, Op, Program, RequestBounds, Shift, Surroundings};
pub use quote::first_line;
pub use recording::{RecordedValue, Recording, ValueSink};
pub use request::{LONGEST_WITH_VALUES, RequestTemplate, Supplied};
pub use response_handler::{
    AnswerSpec, Answered, CheckSpec, CollectSpec, EventPick, ExtractSpec, Failure, HeartbeatSpec, Judge,
    JudgeSpec, Judgement, Matching, PollSpec, ReactionSpec, ResponseHandler, Source, StatusRange, Verdict,
};
pub use round_robin::WeightedRoundRobin;
pub use script::{
    ScriptError, ScriptLanguage, ScriptLimits, ScriptSource, ScriptText, ScriptValue, Scripts, StepScript,
    UrlRequest, UrlScript,
};
pub use session::Session;
pub use shared_text::SharedText;
pub use slot::{Slot, TraceKey, Writing};
pub use spec::{Body, Dialect, ForwardProxy, RequestSpec, Scheme};
pub use supply::{ALWAYS, Bodies, BodyMaker, BodySource, BodySupply, FollowUp, SuppliedBody};
pub use template::Template;
pub use websocket::WebSocketAction;
