//! The built-in servers that the examples are for, started when they are first wanted, and the files that the
//! examples read.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::timeout;

use crate::child_starter::ChildStarter;
use crate::examples::{self, Example, server_of};
use crate::program::{Program, Variables, said};
use crate::refusal::Refusal;

/// Longest time in which one says where it listens.
const START: Duration = Duration::from_secs(10);
/// Longest time for its end. Then it is killed.
const END: Duration = Duration::from_millis(500);
/// Words before its address.
const ANNOUNCEMENT: &str = "listening on ";
/// The variable by which plans of examples find their server: a URL.
const TARGET: &str = "TARGET";
/// The variable by which they find a second one of its kind: a host and a port.
const SECOND: &str = "TARGET_2";
/// The variable of the example that sends a token.
const TOKEN: &str = "TOKEN";
/// A token for a server that takes any.
const ANY_TOKEN: &str = "of-the-example";
/// The usual server.
const SINK: &str = "sink";
/// Arguments that name the files of a certificate, which is made here.
const CERTIFICATE: [&str; 2] = ["cert.pem", "key.pem"];

/// Variables that examples read. Who has set one himself means it for plans of his own.
pub const EXAMPLE_VARIABLES: [&str; 3] = [TARGET, SECOND, TOKEN];

/// The servers of examples. They are in the process group of the page's server, so that a terminal that ends
/// it ends them, too; and they end with it however it ends.
pub(crate) struct ExampleServers {
    program: Arc<Program>,
    starter: ChildStarter,
    /// A folder of the server of the page, in which files can be made.
    folder: PathBuf,
    /// Variables that are set in the environment.
    given: Vec<&'static str>,
    /// Held while one is started.
    starts: AsyncMutex<()>,
    running: Mutex<Vec<Server>>,
    /// `true` once the files of examples are written.
    has_files: Mutex<bool>,
}

/// A server that was started.
struct Server {
    words: &'static str,
    number: usize,
    /// `127.0.0.1:PORT`
    address: String,
    process: Child,
}

impl ExampleServers {
    /// No server yet. `given` are the variables of examples that are set in the environment.
    pub(crate) fn new(
        program: Arc<Program>,
        starter: ChildStarter,
        folder: PathBuf,
        given: Vec<&'static str>,
    ) -> Self {
        let (starts, running, has_files) = Default::default();
        Self { program, starter, folder, given, starts, running, has_files }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Server>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The address of one that runs.
    fn address(&self, words: &str, number: usize) -> Option<String> {
        let mut running = self.lock();
        running.retain_mut(|server| matches!(server.process.try_wait(), Ok(None)));
        let found = running.iter().find(|server| server.words == words && server.number == number);
        found.map(|server| server.address.clone())
    }

    /// The URL of the usual server, if it runs.
    pub(crate) fn url(&self) -> Option<String> {
        self.address(SINK, 0).map(|address| format!("http://{address}"))
    }

    /// The variables of a plan that is made of an example, as far as its servers run: those that are set in
    /// the environment have the values that they have on a command line.
    pub(crate) fn known(&self, text: &str) -> Variables {
        let Some(words) = server_of(text) else { return Vec::new() };
        let named = addresses_in(text).enumerate().filter(|(_, variable)| !self.given.contains(variable));
        let known = named.filter_map(|(number, variable)| {
            Some((variable, value(variable, text, &self.address(words, number)?)))
        });
        known.collect()
    }

    /// Returns the variables of a plan that is made of an example, and starts those of its servers that do
    /// not run yet.
    ///
    /// # Errors
    /// One cannot be started.
    pub(crate) async fn wanted(&self, text: &str) -> Result<Variables, Refusal> {
        let Some(words) = server_of(text) else { return Ok(Vec::new()) };
        for (number, variable) in addresses_in(text).enumerate() {
            if !self.given.contains(&variable) {
                self.start(words, number).await?;
            }
        }
        Ok(self.known(text))
    }

    /// The variables of an example as it is, whatever the environment says, with its servers started.
    ///
    /// # Errors
    /// One cannot be started.
    pub(crate) async fn of_example(&self, example: &Example) -> Result<Variables, Refusal> {
        let mut variables = Variables::new();
        if let Some(words) = server_of(example.text) {
            for (number, variable) in addresses_in(example.text).enumerate() {
                variables.push((variable, value(variable, example.text, &self.start(words, number).await?)));
            }
        }
        if example.text.contains(&format!("secret({TOKEN})")) {
            variables.push((TOKEN, ANY_TOKEN.to_owned()));
        }
        Ok(variables)
    }

    /// The folder in which the examples find the files that they read.
    ///
    /// # Errors
    /// They cannot be written.
    pub(crate) fn files(&self) -> io::Result<PathBuf> {
        let folder = self.folder.join("files");
        // A run reads them while the next is started.
        let mut has_files = self.has_files.lock().unwrap_or_else(PoisonError::into_inner);
        if !*has_files {
            for (path, content) in examples::all().flat_map(Example::files) {
                let path = folder.join(path);
                fs::create_dir_all(path.parent().unwrap_or(&folder))?;
                fs::write(path, content)?;
            }
            *has_files = true;
        }
        Ok(folder)
    }

    /// Starts one unless it runs, and returns its address.
    async fn start(&self, words: &'static str, number: usize) -> Result<String, Refusal> {
        let _alone = self.starts.lock().await;
        if let Some(address) = self.address(words, number) {
            return Ok(address);
        }
        let (process, address) = self.begin(words, number).await.map_err(|error| {
            let error = format!("the built-in server of the example cannot be started: {error}");
            Refusal::failed(error, format!("start it yourself: `plimsoll {words}`"))
        })?;
        self.lock().push(Server { words, number, address: address.clone(), process });
        Ok(address)
    }

    async fn begin(&self, words: &'static str, number: usize) -> Result<(Child, String), String> {
        let failed = |error: io::Error| error.to_string();
        // Some keep files where they are started.
        let name: String = words.chars().filter(char::is_ascii_alphanumeric).collect();
        let folder = self.folder.join(format!("{name}-{number}"));
        fs::create_dir_all(&folder).map_err(failed)?;
        if is_tls(words) {
            write_certificate(&folder)?;
        }
        let args = words.split(' ').chain(["--listen", "127.0.0.1:0"]).map(OsString::from);
        let mut command = self.program.server(&args.collect::<Vec<_>>(), &folder);
        command.stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = self.starter.start(command).await.map_err(failed)?;
        let Some(messages) = child.stderr.take() else { return Err("it printed nothing".to_owned()) };
        let mut lines = BufReader::new(messages).lines();
        let mut so_far = String::new();
        let announced = async {
            while let Ok(Some(line)) = lines.next_line().await {
                if let Some((_, address)) = line.split_once(ANNOUNCEMENT) {
                    return Some(address.trim().trim_start_matches("http://").to_owned());
                }
                so_far.push_str(&line);
                so_far.push('\n');
            }
            None
        };
        let address = timeout(START, announced).await.ok().flatten();
        let address =
            address.ok_or_else(|| said(&so_far).0.unwrap_or_else(|| "it printed no address".to_owned()))?;
        // It would block on a pipe that is not read.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok((child, address))
    }

    /// Ends all.
    pub(crate) async fn stop(&self) {
        let mut all = std::mem::take(&mut *self.lock());
        for process in all.iter().filter_map(|server| server.process.id()) {
            if let Some(process) = Pid::from_raw(process.cast_signed()) {
                // It may have ended already.
                let _ = kill_process(process, Signal::TERM);
            }
        }
        let ended = async {
            for server in &mut all {
                let _ = server.process.wait().await;
            }
        };
        // Those that are left are killed when they are dropped.
        let _ = timeout(END, ended).await;
    }
}

/// The variables in a text that name its servers, in the order of these.
fn addresses_in(text: &str) -> impl Iterator<Item = &'static str> {
    [TARGET, SECOND].into_iter().filter(move |variable| text.contains(&format!("env({variable},")))
}

fn is_tls(words: &str) -> bool {
    CERTIFICATE.iter().all(|file| words.contains(file))
}

/// The value of a variable for a server at an address: a URL of the scheme that the default in the text has,
/// or the address alone.
fn value(variable: &str, text: &str, address: &str) -> String {
    let default = text.split_once(&format!("env({variable}, ")).map_or("", |(_, default)| default);
    let default = default.split_once(')').map_or("", |(default, _)| default);
    match default.split_once("://") {
        Some((scheme, _)) => format!("{scheme}://{address}"),
        None => address.to_owned(),
    }
}

/// Writes a certificate that has signed itself, and its key.
fn write_certificate(folder: &Path) -> Result<(), String> {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]);
    let made = made.map_err(|error| error.to_string())?;
    let [certificate, key] = CERTIFICATE.map(|name| folder.join(name));
    let written = fs::write(certificate, made.cert.pem())
        .and_then(|()| fs::write(key, made.signing_key.serialize_pem()));
    written.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_what_its_place_in_a_plan_wants() {
        let addresses = |text| addresses_in(text).collect::<Vec<_>>();
        assert_eq!(addresses("api: ${env(TARGET, http://127.0.0.1:8080)}"), [TARGET]);
        assert_eq!(addresses("ws://${env(TARGET_2, a)} ${env(TARGET, b)}"), [TARGET, SECOND]);
        assert!(addresses("api: http://127.0.0.1:8080").is_empty());
        assert_eq!(value(TARGET, "api: ${env(TARGET, http://127.0.0.1:8080)}", "a:1"), "http://a:1");
        assert_eq!(value(TARGET, "api: ${env(TARGET, https://127.0.0.1:8080)}", "a:1"), "https://a:1");
        assert_eq!(value(TARGET, "kv: ${env(TARGET, lines://127.0.0.1:70)}/2", "a:1"), "lines://a:1");
        let both = "ws://${env(TARGET_2, 127.0.0.1:8080)} ${env(TARGET, http://b)}";
        assert_eq!(value(SECOND, both, "a:1"), "a:1");
    }
}
