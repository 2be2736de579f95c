//! The interface to languages of scripts: what a plan asks of them.

use std::any::Any;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_core::Nanos;

use super::{ScriptError, ScriptSource};
use crate::{Fingerprint, Scheme};

/// A language that scripts are written in, with the world that they see.
///
/// A plan loads its scripts while it is resolved, which finds their errors and their inputs.
pub trait ScriptLanguage: fmt::Debug + Send + Sync {
    /// Loads the scripts of all steps of a plan; script `n` of the source is the `n`-th.
    ///
    /// # Errors
    /// All scripts that do not load, or have no effect.
    fn load_steps(
        &self,
        scripts: Vec<StepScript>,
        limits: ScriptLimits,
    ) -> Result<Arc<dyn ScriptSource>, Vec<ScriptError>>;

    /// Loads a script that makes or changes the request of a URL, as those of wrk do. `arguments` are the
    /// words behind the URL, which is the first.
    ///
    /// # Errors
    /// It does not load, or has no effect.
    fn load_for_url(
        &self,
        text: ScriptText,
        request: UrlRequest,
        arguments: Vec<String>,
        limits: ScriptLimits,
    ) -> Result<Arc<dyn UrlScript>, ScriptError>;

    /// Returns the reason why a text is no program of this language, if it is none. Nothing of it runs.
    fn syntax_error(&self, source: &[u8]) -> Option<String>;
}

/// A script that makes or changes the request of a URL.
///
/// The caller that carries out the parts of a script before and after the run knows the language, and
/// downcasts by [`Any`].
pub trait UrlScript: ScriptSource + Any {
    /// The request as the script left it: the step sends it if the script does not [make
    /// requests](ScriptSource::makes_requests).
    fn request(&self) -> &UrlRequest;

    /// Returns `true` if it gives bytes of HTTP/1.1, which HTTP/2 cannot send.
    fn gives_bytes(&self) -> bool;

    /// Returns `true` if there is, or may be, a pause before each request.
    fn has_delay(&self) -> bool;

    /// Distinguishes scripts and their arguments.
    fn fingerprint(&self) -> Fingerprint;
}

/// Permissions and limits of scripts.
#[derive(Clone, Debug)]
pub struct ScriptLimits {
    /// `true` if they may open files, start processes and resolve names.
    pub allow_system: bool,
    /// `true` if scripts are only read: nothing of them runs, so that what they define is not known.
    pub only_syntax: bool,
    /// Longest time of one call.
    pub time_limit: Nanos,
    /// Most memory of one worker's state, in bytes; 0 for no limit.
    pub memory_limit: usize,
    /// Folders in which modules are looked for, after that of the script.
    pub path: Vec<PathBuf>,
    /// The value of `LUA_PATH`, whose patterns (`/folder/?.lua;…`) come after these.
    pub lua_path: Option<String>,
    /// Seed of random numbers and of UUIDs; every worker has a stream of its own.
    pub seed: u64,
    /// Names of the metrics of the plan whose values scripts may record.
    pub metrics: Vec<String>,
}

impl ScriptLimits {
    /// Default of [`time_limit`](Self::time_limit).
    pub const TIME_LIMIT: Nanos = Nanos::from_secs(1);

    /// Default of [`memory_limit`](Self::memory_limit): 256 MiB.
    pub const MEMORY_LIMIT: usize = 256 << 20;
}

impl Default for ScriptLimits {
    fn default() -> Self {
        Self {
            allow_system: false,
            only_syntax: false,
            time_limit: Self::TIME_LIMIT,
            memory_limit: Self::MEMORY_LIMIT,
            path: Vec::new(),
            lua_path: None,
            seed: 0,
            metrics: Vec::new(),
        }
    }
}

/// The script of a step.
#[derive(Clone, Debug)]
pub struct StepScript {
    /// The step's name, for messages.
    pub step: String,
    /// The source.
    pub text: ScriptText,
    /// The scheme of the step's URL: the value of `:scheme`.
    pub scheme: Scheme,
}

/// The source of a script, and where it is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptText {
    /// Name for messages: the file's as given, or `inline`.
    pub name: Arc<str>,
    /// The file's whole content, or the text in a plan.
    pub source: Arc<[u8]>,
    /// The folder of the file or of the plan, where the parts of a script are looked for first.
    pub folder: Option<PathBuf>,
    /// `true` if it is a file's, `false` if it stands in a plan.
    pub is_file: bool,
}

impl ScriptText {
    /// The content of a file; `path` is taken as it is given.
    pub fn file(path: &Path, content: &[u8]) -> Self {
        let name: Arc<str> = path.to_string_lossy().into();
        let parent = path.parent().map(|parent| match parent.as_os_str().is_empty() {
            true => PathBuf::from("."),
            false => parent.to_owned(),
        });
        Self { name, source: content.into(), folder: parent, is_file: true }
    }

    /// Source that stands in a plan; `folder` is that of the plan's file.
    pub fn inline(source: &str, folder: Option<PathBuf>) -> Self {
        let source = source.as_bytes().into();
        // A plan that is named without a folder is in this one.
        let here = |folder: PathBuf| if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
        let folder = folder.map(here);
        Self { name: "inline".into(), source, folder, is_file: false }
    }
}

/// The request of the URL, as the flags describe it, and as a script sees and changes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UrlRequest {
    /// `http` or `https`.
    pub scheme: String,
    /// Host name or address, without brackets.
    pub host: String,
    /// The port, if the URL has one.
    pub port: Option<String>,
    /// The method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Header fields, without content-length; the value of Host may be among them.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<Vec<u8>>,
}

impl UrlRequest {
    /// Returns the value of Host for requests whose header fields do not set it.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        match &self.port {
            Some(port) => format!("{host}:{port}"),
            None => host,
        }
    }
}
