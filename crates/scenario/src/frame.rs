//! Requests of protocols that other crates bring along: frames instead of heads and bodies.

use std::fmt;
use std::sync::Arc;

use plimsoll_core::Random;

use crate::{Context, Fingerprint, RequestSpec, Scope, Template, TemplateError};

/// A protocol that writes its requests as frames.
pub trait Framing: fmt::Debug + Send + Sync {
    /// Adds to a fingerprint what tells its requests from equal ones of other protocols, and from those with
    /// another setting of the protocol.
    fn fingerprint(&self, hash: Fingerprint) -> Fingerprint;

    /// Compiles the frame of a request, and checks its constant parts.
    ///
    /// # Errors
    /// The protocol has no such request.
    fn compile(
        &self,
        spec: &RequestSpec,
        scope: &Scope<'_>,
        content: FrameContent,
    ) -> Result<Framed, TemplateError>;
}

/// Fingerprints tell two apart.
impl PartialEq for dyn Framing {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint(Fingerprint::EMPTY) == other.fingerprint(Fingerprint::EMPTY)
    }
}

impl Eq for dyn Framing {}

/// Content of a frame: the body of the request.
#[derive(Clone, Debug)]
pub enum FrameContent {
    /// Nothing.
    None,
    /// A text that the frame writes.
    Template(Template),
    /// Large and static. It is sent behind the bytes that the frame writes, and not by it.
    Shared(Arc<[u8]>),
}

/// A compiled request.
#[derive(Clone)]
pub struct Framed {
    /// Everything that varies besides the content, in the order in which the frame writes it. Logs of
    /// requests show it.
    pub text: Template,
    /// Writer of the frame.
    pub frame: Arc<dyn Frame>,
}

impl fmt::Debug for Framed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Framed").field("text", &self.text).finish_non_exhaustive()
    }
}

/// One frame, compiled.
pub trait Frame: Send + Sync {
    /// Appends the frame, except for [shared](FrameContent::Shared) content. It draws the random numbers of
    /// [`Framed::text`] and then those of the content, as their templates do. A frame that variables make too
    /// long is written all the same: the server has to refuse it.
    fn render(&self, context: &Context<'_>, random: &mut Random, out: &mut Vec<u8>);

    /// Returns the kind of the request, for the client that reads its answer
    /// ([`Owed`](plimsoll_wire::in_turn::Owed)).
    fn kind(&self) -> u16;
}
