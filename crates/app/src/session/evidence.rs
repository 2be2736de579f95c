//! Files of evidence: what a run was made of, under a signature.
//!
//! The first line names the format, the public key and the signature (Ed25519, RFC 8032, both in base64); the
//! rest is [`Evidence`], or [`SearchEvidence`], compressed. The signature is of the name of the format and of
//! the rest, so that no byte of a file can be changed.

mod plan;
mod plan_again;
mod trial_plans;

use std::io;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use plimsoll_document::Problem;
use plimsoll_report::evidence::{Evidence, SearchEvidence, Verification};
use plimsoll_report::result::{OutcomeResult, Tool};
use plimsoll_report::{ReadError, RunResult, SavedRun, Searched};

use crate::base::failure::Failure;
use crate::base::files::{self, EndFile};
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject as _;

/// The name of the format, with which a file begins.
const FORMAT: &str = "plimsoll-evidence 1";
/// The longest first line: the name, a key and a signature.
const LONGEST_LINE: usize = 256;
/// The most bytes that a file of evidence may have.
const LARGEST_FILE: u64 = 256 << 20;
/// Advice where a file is no evidence.
const HINT: &str = "name a file that `plimsoll run … --evidence FILE` or `find … --evidence FILE` wrote";

/// A file of evidence that is wanted.
#[derive(Debug)]
pub(crate) struct EvidenceFile {
    file: EndFile,
    key: Ed25519KeyPair,
    /// `true` if the key is the user's.
    is_own: bool,
}

/// Evidence whose signature is that of its key.
#[derive(Debug)]
pub(crate) struct Signed {
    pub(crate) evidence: Kept,
    /// The public key, in base64.
    pub(crate) key: String,
}

/// Evidence of either kind.
#[derive(Debug)]
pub(crate) enum Kept {
    /// Of a run.
    Run(Box<Evidence>),
    /// Of a search or a sweep.
    Search(Box<SearchEvidence>),
}

/// What a result says in a few words, and whose it is.
#[derive(Debug)]
pub(crate) struct Statement {
    /// `run`, `search` or `sweep`.
    pub(crate) kind: &'static str,
    pub(crate) id: String,
    pub(crate) started_at: String,
    pub(crate) tool: Tool,
    pub(crate) outcome: OutcomeResult,
    pub(crate) summary: String,
}

impl EvidenceFile {
    /// The file at `path`, tried, to be signed by the key in the file `key`; without one by a key that is
    /// made for it and forgotten.
    ///
    /// # Errors
    /// The file cannot be written, or the key cannot be read.
    pub(crate) fn new(path: &Path, key: Option<&Path>) -> Result<Self, Failure> {
        let file = EndFile::new("--evidence", path)?;
        let pair = match key {
            Some(file) => read_key(file).map_err(Failure::usage)?,
            None => Ed25519KeyPair::generate().map_err(|_| {
                Failure::environment(Problem::new("--evidence: the system gives no random bytes for a key"))
            })?,
        };
        Ok(Self { file, key: pair, is_own: key.is_some() })
    }

    /// Writes it. Returns a sentence for the user.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn write(&self, mut evidence: Evidence) -> Result<String, Problem> {
        evidence.follows_from_plan = Some(plan::following(&evidence));
        self.write_content(evidence.to_bytes())
    }

    /// Writes the evidence of a search or a sweep. Returns a sentence for the user.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn write_search(&self, mut evidence: SearchEvidence) -> Result<String, Problem> {
        evidence.follows_from_plan = Some(plan::following_search(&evidence));
        self.write_content(evidence.to_bytes())
    }

    fn write_content(&self, content: io::Result<Vec<u8>>) -> Result<String, Problem> {
        let path = self.file.path.display();
        let content = content.map_err(|error| Problem::new(format!("cannot write {path}: {error}")))?;
        self.file.write(&sign(&self.key, &content))?;
        let by = match self.is_own {
            true => format!("signed by {}", BASE64.encode(self.key.public_key())),
            false => "signed by a key of its own".to_owned(),
        };
        Ok(format!("wrote {path}, {by}: check it with `plimsoll verify {path}`"))
    }
}

impl Signed {
    /// Makes the result again from the record, and the plan from its text and the flags, and compares them
    /// with what the evidence states.
    pub(crate) fn verify(&self) -> Verification<Statement> {
        match &self.evidence {
            Kept::Run(evidence) => {
                let mut verified = evidence.verify();
                plan::compare(evidence, &mut verified);
                verified.map(Statement::of_run)
            }
            Kept::Search(evidence) => {
                let (mut verified, trials) = evidence.verify();
                plan::compare_search(evidence, &trials, &mut verified);
                verified.map(|searched| Statement::of_search(&searched))
            }
        }
    }

    /// The run, as it is saved.
    ///
    /// # Errors
    /// It is of a search, or has not the fields of a run.
    pub(crate) fn to_saved(&self) -> Result<SavedRun, ReadError> {
        match &self.evidence {
            Kept::Run(evidence) => evidence.to_saved(),
            Kept::Search(_) => Err(ReadError::OfSearch),
        }
    }

    /// The result of a search or a sweep; `None` if it is evidence of a run.
    ///
    /// # Errors
    /// It does not follow from its trials.
    pub(crate) fn to_searched(&self) -> Result<Option<Searched>, ReadError> {
        match &self.evidence {
            Kept::Run(_) => Ok(None),
            Kept::Search(evidence) => evidence.to_searched().map(Some),
        }
    }
}

impl Statement {
    fn of_run(RunResult { run, tool, verdict, .. }: RunResult) -> Self {
        let (id, started_at) = (run.id, run.started_at);
        Self { kind: "run", id, started_at, tool, outcome: verdict.outcome, summary: verdict.summary }
    }

    fn of_search(searched: &Searched) -> Self {
        let circumstances = searched.circumstances();
        Self {
            kind: match searched {
                Searched::Capacity(_) => "search",
                Searched::Sweep(_) => "sweep",
            },
            id: circumstances.id.clone(),
            started_at: circumstances.started_at.clone(),
            tool: searched.tool().clone(),
            outcome: searched.outcome(),
            summary: searched.headline(),
        }
    }
}

/// The file with this content.
fn sign(key: &Ed25519KeyPair, content: &[u8]) -> Vec<u8> {
    let (public, signature) = (key.public_key().as_ref(), key.sign(&signed(content)));
    let line = format!("{FORMAT} {} {}\n", BASE64.encode(public), BASE64.encode(signature));
    [line.as_bytes(), content].concat()
}

/// Returns `true` if bytes begin as a file of evidence does.
pub(crate) fn is_evidence(bytes: &[u8]) -> bool {
    bytes.starts_with(b"plimsoll-evidence ")
}

/// Reads a file, and checks its signature.
///
/// # Errors
/// It cannot be read, is no evidence, or was changed after it was signed.
pub(crate) fn read(file: &Path) -> Result<Signed, Problem> {
    let name = file.display();
    let bytes = files::read_within(file, LARGEST_FILE)
        .map_err(|error| Problem::new(format!("cannot read {name}: {error}")).with_hint(HINT))?;
    let bytes = bytes.ok_or_else(|| {
        Problem::new(format!("{name} has more than {} MiB: it is no evidence", LARGEST_FILE >> 20))
    })?;
    of_bytes(&bytes).map_err(|problem| Problem { message: format!("{name}: {}", problem.message), ..problem })
}

/// The evidence in the bytes of a file.
///
/// # Errors
/// It is none, or was changed after it was signed.
pub(crate) fn of_bytes(bytes: &[u8]) -> Result<Signed, Problem> {
    let none = || Problem::new("no evidence of a run or a search").with_hint(HINT);
    let end = bytes.iter().take(LONGEST_LINE).position(|byte| *byte == b'\n').ok_or_else(none)?;
    let (line, content) = (std::str::from_utf8(&bytes[..end]).map_err(|_| none())?, &bytes[end + 1..]);
    let rest =
        line.strip_prefix(FORMAT).and_then(|rest| rest.strip_prefix(' ')).ok_or_else(
            || match is_evidence(bytes) {
                true => Problem::new(format!("evidence of another format than `{FORMAT}`"))
                    .with_hint("check it with the version of plimsoll that wrote it, or a later one"),
                false => none(),
            },
        )?;
    let changed = || {
        Problem::new("the signature is not that of the content: the file was changed after it was signed")
            .with_hint("ask for the file as it was written")
    };
    let (key, signature) = rest.split_once(' ').ok_or_else(changed)?;
    let decoded = |text: &str| BASE64.decode(text).map_err(|_| changed());
    let public = UnparsedPublicKey::new(&ED25519, decoded(key)?);
    public.verify(&signed(content), &decoded(signature)?).map_err(|_| changed())?;
    let unread = |error: ReadError| Problem::new(error.to_string()).with_hint(error.hint());
    let evidence = match SearchEvidence::from_bytes(content).map_err(unread)? {
        Some(search) => Kept::Search(Box::new(search)),
        None => Kept::Run(Box::new(Evidence::from_bytes(content).map_err(unread)?)),
    };
    Ok(Signed { evidence, key: key.to_owned() })
}

/// The bytes that are signed.
fn signed(content: &[u8]) -> Vec<u8> {
    [FORMAT.as_bytes(), b"\n", content].concat()
}

/// A private key in PEM: PKCS #8, as `openssl genpkey -algorithm ed25519` writes it.
fn read_key(file: &Path) -> Result<Ed25519KeyPair, Problem> {
    let bad = |reason: &dyn std::fmt::Display| {
        Problem::new(format!("--evidence-key: {}: {reason}", file.display()))
            .with_hint("make one: openssl genpkey -algorithm ed25519 -out FILE")
    };
    let text = std::fs::read(file).map_err(|error| bad(&error))?;
    key_of(&text).map_err(|reason| bad(&reason))
}

/// The key in a text of PEM.
fn key_of(text: &[u8]) -> Result<Ed25519KeyPair, &'static str> {
    let der = PrivatePkcs8KeyDer::from_pem_slice(text).map_err(|_| "no private key in PEM (PKCS #8)")?;
    Ed25519KeyPair::from_pkcs8_maybe_unchecked(der.secret_pkcs8_der()).map_err(|_| "no key of Ed25519")
}

#[cfg(test)]
mod tests;
