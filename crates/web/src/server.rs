//! Listening, and the end.

use core::net::SocketAddr;
use std::fmt;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::fs::Mode;
use rustix::process;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::access::Access;
use crate::address::Names;
use crate::child_starter::{ChildStarter, child_starter};
use crate::events::Events;
use crate::example_servers::ExampleServers;
use crate::folder::Folder;
use crate::history::History;
use crate::live::Live;
use crate::options::{Listen, Options};
use crate::page::Etags;
use crate::places::{Places, Seat};
use crate::program::Program;
use crate::router::{Ui, router};
use crate::secret::{SECRET_BYTES, random_hex};
use crate::tls;

/// The lowest priority: load that is generated on this machine comes first.
const NICE: i32 = 19;
/// Threads for files and the history.
const FILE_THREADS: usize = 4;
/// Connections at most. A browser opens six, and one for each stream of events. While all are there, one that
/// waits for a request gives way to the next that comes.
const MOST_CONNECTIONS: usize = 256;
/// Longest time for the head of a request, and between two requests of a connection.
const HEAD_PATIENCE: Duration = Duration::from_secs(30);
/// Longest time for the handshake of TLS.
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(10);
/// Longest head of a request, in bytes.
const LONGEST_HEAD: usize = 64 << 10;
/// Longest time for answers that are under way at the end.
const END: Duration = Duration::from_millis(300);
/// Shortest token that may be given, in characters: 128 bits as hexadecimal digits.
const SHORTEST_TOKEN: usize = 32;
/// Pause after a connection that could not be accepted, mostly for lack of descriptors.
const AGAIN: Duration = Duration::from_millis(100);

/// Reason why the server cannot be started, and what to do.
#[derive(Clone, Debug)]
pub struct ServeError {
    message: String,
    hint: &'static str,
}

impl ServeError {
    fn new(message: impl Into<String>, hint: &'static str) -> Self {
        Self { message: message.into(), hint }
    }

    /// Returns advice on resolving the error, for people.
    pub const fn hint(&self) -> &'static str {
        self.hint
    }
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ServeError {}

/// Serves until a signal comes (`SIGINT`, `SIGTERM`). `say` gets the address, and at the end which runs go
/// on.
///
/// # Errors
/// The address cannot be listened on, or something else that is needed is not there.
pub fn serve(options: Options, say: impl Fn(&str) + Send + Sync) -> Result<(), ServeError> {
    admit(&options)?;
    let runtime = runtime()?;
    let handle = runtime.handle().clone();
    let (starter, starts) = child_starter();
    thread::scope(|threads| {
        let say = &say;
        let builder = thread::Builder::new().name("ui".to_owned());
        let serving = builder.spawn_scoped(threads, move || {
            // Of this thread, and of those that it starts.
            let _ = process::setpriority_process(None, NICE);
            let served = runtime.block_on(carry_out(options, starter, say));
            // Requests that wait for a file or a process do not hold up the end.
            runtime.shutdown_timeout(END);
            served
        });
        let serving = serving.map_err(|error| {
            ServeError::new(format!("cannot start a thread: {error}"), "check the limits of this process")
        })?;
        // This thread has the usual priority, which processes inherit.
        starts.carry_out(&handle);
        let broken = || ServeError::new("the server broke down", "start it again: runs go on");
        serving.join().unwrap_or_else(|_| Err(broken()))
    })
}

fn runtime() -> Result<Runtime, ServeError> {
    let built = Builder::new_current_thread().enable_all().max_blocking_threads(FILE_THREADS).build();
    built.map_err(|error| {
        ServeError::new(format!("cannot start: {error}"), "check the limits of this process")
    })
}

/// Refuses unsafe options.
fn admit(options: &Options) -> Result<(), ServeError> {
    if let Listen::Tcp(address) = options.listen
        && !address.ip().is_loopback()
        && options.identity.is_none()
    {
        let message = format!("at {address} others could read and use this page");
        let hint = "listen on 127.0.0.1, or add --tls-cert and --tls-key";
        return Err(ServeError::new(message, hint));
    }
    let is_word =
        |token: &String| token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte));
    match &options.token {
        Some(token) if token.len() < SHORTEST_TOKEN || !is_word(token) => Err(ServeError::new(
            format!("the token is not a word of {SHORTEST_TOKEN} letters, digits or -_.~ at least"),
            "make one with `openssl rand -hex 32`, or leave --token out",
        )),
        _ => Ok(()),
    }
}

/// A socket that is listened on.
enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    async fn open(listen: &Listen) -> io::Result<Self> {
        match listen {
            Listen::Tcp(address) => TcpListener::bind(address).await.map(Self::Tcp),
            Listen::Unix(path) => {
                remove_abandoned(path).await?;
                // For its owner alone, from the first moment on.
                let before = process::umask(Mode::from_raw_mode(0o177));
                let bound = UnixListener::bind(path);
                process::umask(before);
                bound.map(Self::Unix)
            }
        }
    }
}

/// A connection.
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Listener {
    /// Waits for a connection, and then for its place.
    async fn accept(&self, places: &Places) -> io::Result<(Stream, Seat)> {
        let stream = match self {
            Self::Tcp(tcp) => {
                let (stream, _) = tcp.accept().await?;
                // Without it answers come late, and are right all the same.
                let _ = stream.set_nodelay(true);
                Stream::Tcp(stream)
            }
            Self::Unix(unix) => Stream::Unix(unix.accept().await?.0),
        };
        Ok((stream, places.take().await))
    }
}

/// Removes a socket without a listener.
async fn remove_abandoned(path: &Path) -> io::Result<()> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    match UnixStream::connect(path).await {
        Err(error) if is_socket && error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path)
        }
        _ => Ok(()),
    }
}

async fn carry_out(
    options: Options,
    starter: ChildStarter,
    say: &(impl Fn(&str) + Sync),
) -> Result<(), ServeError> {
    let random = |error: io::Error| {
        ServeError::new(format!("no random numbers: {error}"), "check that /dev/urandom exists")
    };
    let acceptor = options.identity.as_ref().map(tls::acceptor).transpose();
    let acceptor = acceptor.map_err(|error| ServeError::new(error, "name PEM files that belong together"))?;
    let (mut interrupt, mut terminate) = signals()?;
    let listener = Listener::open(&options.listen).await.map_err(|error| {
        let message = format!("cannot listen on {}: {error}", shown(&options.listen));
        ServeError::new(message, "another `plimsoll ui` may run; --listen 127.0.0.1:0 takes a free port")
    })?;
    let token = match &options.token {
        Some(token) => token.clone(),
        None => random_hex(SECRET_BYTES).map_err(random)?,
    };
    let (names, port, address) = match &listener {
        Listener::Tcp(tcp) => {
            let local =
                tcp.local_addr().map_err(|error| ServeError::new(error.to_string(), "try it again"))?;
            let names = Names::of_tcp(local, acceptor.is_some(), &options.hosts);
            (names, Some(local.port()), url(local, acceptor.is_some()))
        }
        Listener::Unix(_) => {
            let address = "http://localhost:PORT, where PORT is forwarded to the socket".to_owned();
            (Names::of_unix(&options.hosts), None, address)
        }
    };
    let folder = Folder::open(&options.folder).map_err(|error| {
        let message = format!("cannot open the folder {}: {error}", options.folder.display());
        ServeError::new(message, "name a folder that is there")
    })?;
    let live = Live::new(&options.temporary, starter.clone()).map_err(|error| {
        let message = format!("cannot make a folder in {}: {error}", options.temporary.display());
        ServeError::new(message, "set TMPDIR to a folder that can be written")
    })?;
    let program = Arc::new(Program::new(options.program.clone()));
    let (end, ends) = watch::channel(false);
    let access = Access::new(names, token.clone(), port, acceptor.is_some());
    let access = if options.token.is_some() { access.with_lasting_sessions() } else { access };
    let ui = Arc::new(Ui {
        access,
        folder: Arc::new(folder),
        history: Arc::new(History::new(options.store.clone(), options.lives)),
        servers: ExampleServers::new(
            program.clone(),
            starter,
            live.folder().join("examples"),
            options.given.clone(),
        ),
        program,
        live: Arc::new(live),
        events: Events::new(),
        etags: Etags::new(),
        ends: ends.clone(),
        options,
    });
    say(&match &listener {
        Listener::Tcp(_) => format!("open {address}/#token={token}"),
        Listener::Unix(_) => {
            format!("listening on {}; open {address}, with /#token={token}", shown(&ui.options.listen))
        }
    });
    let mut connections = std::pin::pin!(accept(&listener, acceptor, router(ui.clone()), ends));
    tokio::select! {
        () = connections.as_mut() => {}
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    end.send_replace(true);
    let _ = tokio::join!(timeout(END, connections), ui.servers.stop());
    ui.live.going_on().iter().for_each(|line| say(line));
    ui.live.close();
    if let (Listener::Unix(_), Listen::Unix(path)) = (&listener, &ui.options.listen) {
        // If the socket cannot be removed, the next server does it.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

type Signals = (tokio::signal::unix::Signal, tokio::signal::unix::Signal);

fn signals() -> Result<Signals, ServeError> {
    let watch = |kind| {
        signal(kind)
            .map_err(|error| ServeError::new(format!("cannot watch for signals: {error}"), "try it again"))
    };
    Ok((watch(SignalKind::interrupt())?, watch(SignalKind::terminate())?))
}

fn shown(listen: &Listen) -> String {
    match listen {
        Listen::Tcp(address) => address.to_string(),
        Listen::Unix(path) => format!("unix:{}", path.display()),
    }
}

fn url(address: SocketAddr, is_tls: bool) -> String {
    let scheme = if is_tls { "https" } else { "http" };
    format!("{scheme}://{address}")
}

/// Serves all connections, until it is asked to end and all connections have ended.
async fn accept(
    listener: &Listener,
    acceptor: Option<TlsAcceptor>,
    router: Router,
    mut ends: watch::Receiver<bool>,
) {
    let places = Places::new(MOST_CONNECTIONS);
    // Dropping the set cuts the connections off.
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept(&places) => accepted,
            _ = ends.wait_for(|ends| *ends) => break,
        };
        while connections.try_join_next().is_some() {}
        let Ok((stream, seat)) = accepted else {
            tokio::time::sleep(AGAIN).await;
            continue;
        };
        let (service, ends) = (TowerToHyperService::new(router.clone()), ends.clone());
        let acceptor = acceptor.clone();
        connections.spawn(async move {
            let conversation = async {
                match (stream, acceptor) {
                    (Stream::Unix(stream), _) => converse(stream, &seat, service, ends).await,
                    (Stream::Tcp(stream), None) => converse(stream, &seat, service, ends).await,
                    (Stream::Tcp(stream), Some(acceptor)) => {
                        if let Ok(Ok(stream)) = timeout(HANDSHAKE_PATIENCE, acceptor.accept(stream)).await {
                            converse(stream, &seat, service, ends).await;
                        }
                    }
                }
            };
            tokio::select! {
                () = conversation => {}
                () = seat.lost() => {}
            }
        });
    }
    while connections.join_next().await.is_some() {}
}

/// Answers the requests of a connection.
async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    seat: &Seat,
    service: TowerToHyperService<Router>,
    mut ends: watch::Receiver<bool>,
) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(stream), seat.seated(service));
    let mut connection = std::pin::pin!(connection);
    // A client that breaks off, or speaks another protocol, is not our problem.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = ends.wait_for(|ends| *ends) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = timeout(END, connection).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::CommandFlags;

    fn options(listen: &str, token: Option<&str>) -> Options {
        Options {
            listen: Listen::Tcp(listen.parse().unwrap()),
            hosts: Vec::new(),
            identity: None,
            token: token.map(str::to_owned),
            folder: "/".into(),
            store: None,
            program: "/bin/true".into(),
            temporary: std::env::temp_dir(),
            run_flags: CommandFlags::default(),
            find_flags: CommandFlags::default(),
            cluster_flags: CommandFlags::default(),
            closest: |_, _| None,
            clusters: true,
            forms: serde_json::Value::Null,
            schema: |_| None,
            lives: |_, _| false,
            process: |_| None,
            given: Vec::new(),
            version: "0",
        }
    }

    #[test]
    fn other_addresses_than_loopback_need_tls() {
        for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:7450"] {
            assert!(admit(&options(listen, None)).unwrap_err().to_string().contains("others"), "{listen}");
        }
        for listen in ["127.0.0.1:0", "127.1.2.3:80", "[::1]:0"] {
            assert!(admit(&options(listen, None)).is_ok(), "{listen}");
        }
    }

    #[test]
    fn a_token_that_could_be_guessed_is_refused() {
        for token in ["", "short", "0123456789abcdef0123456789abcde", "0123456789abcdef 0123456789abcdef"] {
            assert!(admit(&options("127.0.0.1:0", Some(token))).is_err(), "{token}");
        }
        assert!(admit(&options("127.0.0.1:0", Some(&"a".repeat(SHORTEST_TOKEN)))).is_ok());
    }
}
