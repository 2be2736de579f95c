//! Tokens that are signed here: those of a plan, and the one that flags ask for.

use std::path::Path;
use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_document::{Problem, RawValue};
use plimsoll_scenario::Scope;
use plimsoll_scenario::token::{Algorithm, Signer, Stamp, TokenError, TokenPart, TokenSpec};
use plimsoll_schedule::parse_duration;

use crate::PlanPatch;
use crate::grants::{FILES_HINT, is_not_granted};
use crate::resolve::Resolver;

/// Name of the flags' token in templates. No token of a plan file can have this name.
pub(crate) const OF_FLAGS: &str = "--auth jwt";
/// Default lifetime of a token.
pub(crate) const LIFETIME: Nanos = Nanos::from_secs(300);
/// Most time before its expiry at which a token is signed again by default: longer than requests are under
/// way, and longer than clocks differ.
const REFRESH: Nanos = Nanos::from_secs(30);

/// Values of `--auth`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Basic,
    Bearer,
    Jwt,
}

/// Default refresh: a quarter of a lifetime, or 30 seconds.
pub(crate) fn refresh_before(lifetime: Nanos) -> Nanos {
    REFRESH.min(Nanos(lifetime.0 / 4))
}

/// Whole seconds of a lifetime.
pub(crate) fn parse_lifetime(text: &str) -> Result<Nanos, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    match time.0 % 1_000_000_000 {
        0 => Ok(time),
        _ => Err(format!("`{text}` is not a whole number of seconds, in which `exp` counts")),
    }
}

impl Resolver<'_> {
    /// The token that the flags ask for, if they do; and whether they go together.
    pub(crate) fn run_token(&mut self, patch: &PlanPatch) -> Option<Option<Arc<Signer>>> {
        let scheme = self.read(patch.auth.as_ref(), parse_scheme)?;
        let of_jwt = [&patch.jwt_key, &patch.jwt_alg, &patch.jwt_claims, &patch.jwt_lifetime];
        let first = of_jwt.into_iter().flatten().next();
        if let (Some(scheme @ (Scheme::Basic | Scheme::Bearer)), Some(auth)) = (scheme, &patch.auth) {
            let (given, flag) = match scheme {
                Scheme::Basic => (&patch.basic, "--basic USER:PASSWORD"),
                _ => (&patch.bearer, "--bearer TOKEN"),
            };
            if let Some(other) = first {
                let problem =
                    other.problem(format!("{} has no effect with {} {}", other.by, auth.by, auth.text));
                return self.fail(problem.with_hint(format!("write {} jwt, or leave it out", auth.by)));
            }
            if given.is_none() {
                let problem = auth.problem(format!("{} {}: there are no credentials", auth.by, auth.text));
                return self.fail(problem.with_hint(format!("give them with {flag}, or with @FILE")));
            }
        }
        if scheme != Some(Scheme::Jwt) && first.is_none() {
            return Some(None);
        }
        let Some(key) = &patch.jwt_key else {
            let Some(given) = patch.auth.as_ref().or(first) else { return Some(None) };
            let problem = given.problem(format!("{}: there is no key to sign with", given.by));
            return self.fail(problem.with_hint("name it with --jwt-key FILE or --jwt-key env:NAME"));
        };
        if let Some(other) = patch.basic.as_ref().or(patch.bearer.as_ref()) {
            return self.fail(key.problem(format!("{} and {} exclude each other", other.by, key.by)));
        }
        let algorithm = self.read(patch.jwt_alg.as_ref(), str::parse::<Algorithm>);
        let lifetime = self.read(patch.jwt_lifetime.as_ref(), parse_lifetime);
        let path = self.path(key, &key.text);
        let bytes = self.signing_key(key, &key.text, &path);
        let (algorithm, lifetime, bytes) = (algorithm?, lifetime?.unwrap_or(LIFETIME), bytes?);
        let spec = TokenSpec {
            name: OF_FLAGS.to_owned(),
            algorithm: algorithm.unwrap_or(Algorithm::Hs256),
            key_id: None,
            claims: patch.jwt_claims.as_ref().map_or("{}", |given| given.text.trim()).to_owned(),
            stamps: Stamp::DEFAULT.to_vec(),
            lifetime_s: lifetime.0 / 1_000_000_000,
            refresh_before_ns: refresh_before(lifetime).0,
        };
        match Signer::new(spec, &bytes, &Scope::default()) {
            Ok(signer) => Some(Some(Arc::new(signer))),
            Err(error) => {
                let about = match error.about {
                    TokenPart::Key => Some(key),
                    TokenPart::Claims => patch.jwt_claims.as_ref(),
                    TokenPart::Lifetime => patch.jwt_lifetime.as_ref(),
                };
                let given = about.unwrap_or(key);
                self.fail(problem(&format!("{}: ", given.by), &error).at(given.place))
            }
        }
    }

    fn signing_key(&mut self, given: &RawValue, text: &str, path: &Path) -> Option<Vec<u8>> {
        match self.key_bytes(text, path, given.place.is_some()) {
            Ok(bytes) => Some(bytes),
            Err(wrong) => {
                let problem = given.problem(format!("{}: {}", given.by, wrong.message));
                self.fail(Problem { hint: wrong.hint, ..problem })
            }
        }
    }

    /// The key that `env:NAME` or the name of a file stands for. Messages do not show the text, which may be
    /// the key itself by mistake.
    pub(crate) fn key_bytes(&self, text: &str, path: &Path, by_plan: bool) -> Result<Vec<u8>, Problem> {
        const HINT: &str =
            "write the name of a file that has the key, or env:NAME for a variable of the environment";
        if let Some(name) = text.strip_prefix("env:") {
            let value = self.environment.get(name.trim());
            let missing = || Problem::new(format!("`{}` is not set in the environment", name.trim()));
            return value.map(String::into_bytes).ok_or_else(|| missing().with_hint(HINT));
        }
        match self.content(path, by_plan) {
            Ok(mut content) => {
                // The editor added it, it is not part of the key.
                while content.last().is_some_and(|last| b"\r\n".contains(last)) {
                    content.pop();
                }
                Ok(content)
            }
            Err(error) => {
                let hint = if is_not_granted(&error) { FILES_HINT } else { HINT };
                Err(Problem::new(format!("cannot read the file of the key: {error}")).with_hint(hint))
            }
        }
    }
}

/// Converts an error of a token into a problem.
pub(crate) fn problem(before: &str, error: &TokenError) -> Problem {
    Problem::new(format!("{before}{}", error.message)).with_hint(error.hint.clone())
}

fn parse_scheme(text: &str) -> Result<Scheme, String> {
    match text {
        "basic" => Ok(Scheme::Basic),
        "bearer" => Ok(Scheme::Bearer),
        "jwt" => Ok(Scheme::Jwt),
        _ => Err(format!("`{text}` is not one of basic, bearer, jwt")),
    }
}
