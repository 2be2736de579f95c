//! The flags of `plimsoll ui`.

use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_document::{Problem, Problems};
use plimsoll_driver::Endpoint;
use plimsoll_plan::named_text;

use crate::args::save::PlaceArgs;
use crate::args::server::sink_values::parse_endpoint;

#[derive(Debug, Args)]
pub(crate) struct UiArgs {
    /// Folder whose plans are shown, edited and run
    #[arg(value_name = "FOLDER", default_value = ".")]
    pub(crate) folder: PathBuf,
    /// Address to listen on: IP:PORT, or unix:PATH; port 0 takes a free one
    ///
    /// Addresses other than those of loopback need --tls-cert and --tls-key.
    #[arg(short, long, value_name = "ADDRESS", default_value = "127.0.0.1:7450")]
    listen: String,
    /// Certificate of the page, with its chain (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Token of the address to open, or @file, instead of a random one
    ///
    /// 32 letters and digits at least. With it the address is the same after the next start, and open pages
    /// stay signed in.
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Another name by which browsers may ask for the page; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,
    /// Let the page start clusters even if it listens on an address other than loopback
    ///
    /// The spec of a cluster names the programs that are run.
    #[arg(long)]
    clusters: bool,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

/// The address of the page, and the clients that it admits.
#[derive(Debug)]
pub(crate) struct UiSpec {
    pub(crate) listen: Endpoint,
    /// Certificate and key, as PEM.
    pub(crate) identity: Option<(Vec<u8>, Vec<u8>)>,
    pub(crate) token: Option<String>,
    /// `true` if the page may start clusters.
    pub(crate) clusters: bool,
}

impl UiArgs {
    /// Reads the flags and the files that they name.
    ///
    /// # Errors
    /// All problems with them.
    pub(crate) fn to_spec(&self) -> Result<UiSpec, Problems> {
        let mut problems = Problems::default();
        let listen = parse_endpoint(&self.listen).map_err(|error| Problem::new(format!("--listen: {error}")));
        let token = self.token.as_deref().map(token).transpose();
        let cert = self.tls_cert.as_deref().map(|path| content("--tls-cert", path)).transpose();
        let key = self.tls_key.as_deref().map(|path| content("--tls-key", path)).transpose();
        let mut noted = |problem| problems.push(problem);
        let listen = listen.map_err(&mut noted);
        let token = token.map_err(&mut noted);
        let cert = cert.map_err(&mut noted);
        let key = key.map_err(&mut noted);
        let (Ok(listen), Ok(token), Ok(cert), Ok(key)) = (listen, token, cert, key) else {
            return Err(problems);
        };
        let is_local = match &listen {
            Endpoint::Tcp(address) => address.ip().is_loopback(),
            Endpoint::Unix(_) => true,
        };
        let clusters = self.clusters || is_local;
        Ok(UiSpec { listen, identity: cert.zip(key), token, clusters })
    }
}

fn content(flag: &str, path: &Path) -> Result<Vec<u8>, Problem> {
    std::fs::read(path)
        .map_err(|error| Problem::new(format!("{flag}: cannot read {}: {error}", path.display())))
}

/// The token itself, or the first line of `@file`.
fn token(text: &str) -> Result<String, Problem> {
    let Some(path) = text.strip_prefix('@') else { return Ok(text.to_owned()) };
    let content = named_text(path.as_ref())
        .map_err(|error| Problem::new(format!("--token: cannot read {}: {error}", path.escape_debug())))?;
    Ok(content.lines().next().unwrap_or_default().trim().to_owned())
}
