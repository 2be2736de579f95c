//! Names that a template may use, and inputs of its rendering.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::PatternRoom;
use crate::slot::TraceKey;
use crate::token::{Signer, Tokens};

/// Inputs of a rendering, besides random numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context<'a> {
    /// Index of the arrival, unique in the run; all steps of an iteration have that of the iteration.
    pub index: u64,
    /// Position of the step among those of the plan.
    pub step: u32,
    /// Random part of trace ids, which differs between senders.
    pub trace_key: TraceKey,
    /// Index of the worker that renders.
    pub worker: u32,
    /// Wall-clock time, nanoseconds since 1970.
    pub unix_ns: u64,
    /// The values of the variables, in the order of [`Scope::variables`]; one that is not there renders
    /// nothing. They may have any bytes: what is not fit for its place is encoded there, or keeps the request
    /// from being sent ([`RequestTemplate::unfit_value`](crate::RequestTemplate::unfit_value)).
    pub variables: &'a [Vec<u8>],
    /// The value of the Cookie field for a request that [sends cookies](crate::RequestSpec::cookies): the
    /// output of [`CookieJar::header`](crate::CookieJar); empty if there are none.
    pub cookies: &'a [u8],
    /// `host[:port]` for a request whose authority [comes from here](crate::RequestSpec::authority_slot).
    pub authority: &'a [u8],
    /// The body of a request that has [one of a supply](crate::Body::Supplied); without it, it is empty.
    pub body: Option<&'a Arc<[u8]>>,
    /// The worker's tokens, in the order of [`Scope::tokens`]; one that is not there renders nothing.
    pub tokens: Option<&'a Tokens>,
}

impl<'a> Context<'a> {
    /// The token of this number.
    pub(crate) fn token(&self, number: u16) -> &'a [u8] {
        self.tokens.map_or(&[], |tokens| tokens.text(number))
    }
}

/// Names that a template may use besides the slots that are always there. By default there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scope<'a> {
    /// The names of the variables: `${name}` stands for the value with the name's position in
    /// [`Context::variables`]. A slot function of the same name takes precedence.
    pub variables: &'a [String],
    /// Values of `${env(NAME)}` and `${secret(NAME)}`; without them, both are errors.
    pub constants: Option<&'a Constants>,
    /// Tokens that `${token(name)}` may name. Each stands for the [token](Context::tokens) at its position.
    pub tokens: &'a [Arc<Signer>],
    /// Room for regular expressions, from which each takes its own; without it only the size of each is
    /// bounded.
    pub patterns: Option<&'a PatternRoom>,
}

impl<'a> Scope<'a> {
    /// A scope with these variables and no constants.
    pub const fn new(variables: &'a [String]) -> Self {
        Self { variables, constants: None, tokens: &[], patterns: None }
    }
}

/// Values that are known before the run: the environment, and secrets. A copy shares them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Constants {
    pub(crate) env: Arc<BTreeMap<String, String>>,
    pub(crate) secrets: Arc<BTreeMap<String, String>>,
}

impl Constants {
    /// The variables of the environment that plans may name, and secrets, by their names.
    pub fn new(env: BTreeMap<String, String>, secrets: BTreeMap<String, String>) -> Self {
        Self { env: Arc::new(env), secrets: Arc::new(secrets) }
    }
}

/// The names of the secrets, and no value: the environment may have secrets, too.
impl fmt::Debug for Constants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Constants")
            .field("env_len", &self.env.len())
            .field("secrets", &self.secrets.keys().collect::<Vec<_>>())
            .finish()
    }
}
