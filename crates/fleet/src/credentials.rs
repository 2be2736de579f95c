//! Keys by which a broker recognises agents and coordinators.

use std::fmt;

use nkeys::KeyPair;

use crate::subject::{NameError, check_name};

/// An NKey (Ed25519), with the name of its agent.
///
/// Written as a file of lines: `agent: NAME`, which a coordinator's lacks, and `seed: SU…`. A file of
/// the seed alone, as `nk -gen user` makes it, is read, too.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The agent of the key; `None` for a coordinator, or if the file does not name one.
    pub agent: Option<String>,
    seed: String,
    public: String,
}

/// Credentials that cannot be read or made.
#[derive(Debug)]
pub enum CredentialError {
    /// The credentials contain no seed of a user's key.
    NoSeed,
    /// The name of the agent is invalid.
    Name(NameError),
    /// The system has no random numbers.
    Random(String),
}

impl fmt::Display for CredentialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSeed => f.write_str("it has no seed of a user's NKey: a line that begins with SU"),
            Self::Name(error) => error.fmt(f),
            Self::Random(error) => write!(f, "no key can be made: {error}"),
        }
    }
}

impl std::error::Error for CredentialError {}

impl Credentials {
    /// A new key, for an agent of this name, or for coordinators.
    ///
    /// # Errors
    /// The name is invalid, or there are no random numbers.
    pub fn generate(agent: Option<&str>) -> Result<Self, CredentialError> {
        agent.map_or(Ok(()), check_name).map_err(CredentialError::Name)?;
        let pair = KeyPair::new_user();
        let seed = pair.seed().map_err(|error| CredentialError::Random(error.to_string()))?;
        Ok(Self { agent: agent.map(str::to_owned), seed, public: pair.public_key() })
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// It has no seed of a user, or an invalid name of an agent.
    pub fn read(text: &str) -> Result<Self, CredentialError> {
        let lines = || text.lines().map(str::trim);
        let value =
            |key: &str| lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':').map(str::trim));
        let seed = value("seed").or_else(|| lines().find(|line| line.starts_with("SU")));
        let agent = value("agent").map(str::to_owned);
        agent.as_deref().map_or(Ok(()), check_name).map_err(CredentialError::Name)?;
        let seed = seed.filter(|seed| seed.starts_with("SU")).ok_or(CredentialError::NoSeed)?.to_owned();
        let pair = KeyPair::from_seed(&seed).map_err(|_| CredentialError::NoSeed)?;
        Ok(Self { agent, seed, public: pair.public_key() })
    }

    /// The text of their file, which is secret.
    pub fn to_text(&self) -> String {
        let agent = self.agent.as_ref().map(|name| format!("agent: {name}\n")).unwrap_or_default();
        format!("{agent}seed: {}\n", self.seed)
    }

    /// The public key, which the broker has.
    pub fn public_key(&self) -> &str {
        &self.public
    }

    pub(crate) fn seed(&self) -> &str {
        &self.seed
    }
}

/// Without the seed.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("agent", &self.agent)
            .field("public", &self.public)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_read_as_they_were_written() {
        for agent in [Some("load-1"), None] {
            let made = Credentials::generate(agent).unwrap();
            assert_eq!(Credentials::read(&made.to_text()).unwrap(), made);
            assert!(made.public_key().starts_with('U') && !format!("{made:?}").contains(made.seed()));
            let bare = Credentials::read(&format!("{}\n", made.seed())).unwrap();
            assert_eq!((bare.public_key(), &bare.agent), (made.public_key(), &None));
        }
    }

    #[test]
    fn invalid_keys_are_refused() {
        for text in ["", "seed: x", "seed: SUxyz", "agent: a", "SAAB"] {
            assert!(matches!(Credentials::read(text), Err(CredentialError::NoSeed)), "{text}");
        }
        let made = Credentials::generate(None).unwrap();
        let text = format!("agent: a.b\n{}", made.to_text());
        assert!(matches!(Credentials::read(&text), Err(CredentialError::Name(_))));
        assert!(Credentials::generate(Some("*")).is_err());
    }
}
