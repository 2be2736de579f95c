//! The tokens of a plan file.

use std::sync::Arc;

use plimsoll_document::{Place, Problem, TokenSettings};
use plimsoll_scenario::Scope;
use plimsoll_scenario::token::{Algorithm, Signer, Stamp, TokenPart, TokenSpec};
use plimsoll_schedule::parse_duration;

use super::{Compiler, suggestion};
use crate::tokens::{LIFETIME, OF_FLAGS, parse_lifetime, problem, refresh_before};

impl Compiler<'_, '_> {
    /// Reads the tokens of the plan, behind the one of the flags.
    pub(super) fn name_tokens(&mut self) {
        for (name, place, settings) in &self.loaded.document.tokens.0 {
            if let Some(signer) = self.token(&name.0, *place, settings) {
                self.tokens.push(Arc::new(signer));
            }
        }
    }

    /// Returns `true` if a token of the plan is wrong, and is therefore not known.
    pub(super) fn tokens_are_unknown(&self) -> bool {
        let known = self.tokens.iter().filter(|signer| signer.name() != OF_FLAGS).count();
        known < self.loaded.document.tokens.0.len()
    }

    fn token(&mut self, name: &str, place: Place, settings: &TokenSettings) -> Option<Signer> {
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c)) {
            let problem = Problem::new(format!("`{name}` is not a name of a token"));
            return self.fail(Some(place), problem.with_hint("take letters, digits, `_`, `-` and `.`"));
        }
        if settings.key.is_absent() {
            let problem = Problem::new("the token has no `key`");
            let hint = "write `key: FILE`, or `key: env:NAME` for a variable of the environment";
            return self.form(Some(place), problem.with_hint(hint));
        }
        let algorithm = self.read(&settings.algorithm, str::parse::<Algorithm>);
        let lifetime = self.read(&settings.lifetime, parse_lifetime);
        let refresh = self.read(&settings.refresh_before, parse_duration);
        let stamps: Option<Vec<Stamp>> =
            settings.add.iter().map(|field| self.read(field, parse_stamp)?).collect();
        let key_id = match settings.key_id.is_absent() {
            true => Some(None),
            false => self.plain(&settings.key_id).map(Some),
        };
        let claims = match settings.claims.get() {
            None => Some("{}".to_owned()),
            Some(value) => self.json_text(value, settings.claims.place()),
        };
        let text = self.plain(&settings.key)?;
        let key = match self.resolver.key_bytes(&text, &self.loaded.path(&text), true) {
            Ok(key) => Some(key),
            Err(wrong) => self.fail(settings.key.place(), wrong),
        };
        let lifetime = lifetime?.unwrap_or(LIFETIME);
        let spec = TokenSpec {
            name: name.to_owned(),
            algorithm: algorithm?.unwrap_or(Algorithm::Hs256),
            key_id: key_id?,
            claims: claims?,
            stamps: match settings.add.is_empty() {
                true => Stamp::DEFAULT.to_vec(),
                false => stamps?,
            },
            lifetime_s: lifetime.0 / 1_000_000_000,
            refresh_before_ns: refresh?.unwrap_or(refresh_before(lifetime)).0,
        };
        let scope = Scope { constants: Some(&self.constants), ..Scope::default() };
        match Signer::new(spec, &key?, &scope) {
            Ok(signer) => Some(signer),
            Err(error) => {
                let field = match error.about {
                    TokenPart::Key => settings.key.place(),
                    TokenPart::Claims => settings.claims.place(),
                    TokenPart::Lifetime => settings.refresh_before.place().or(settings.lifetime.place()),
                };
                self.fail(field.or(Some(place)), problem("", &error))
            }
        }
    }
}

fn parse_stamp(text: &str) -> Result<Stamp, String> {
    let known = || Stamp::ALL.into_iter();
    known().find(|stamp| stamp.name() == text).ok_or_else(|| {
        let advice = suggestion(text, known().map(Stamp::name));
        format!("`{text}` is not a claim that can be made at each signing; {advice}")
    })
}
