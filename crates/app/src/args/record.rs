//! The flags of `plimsoll record`.

use core::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use crate::args::import::RecordingArgs;

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Plan file to write at the end
    #[arg(value_name = "FILE", default_value = "recording.yaml")]
    pub(crate) file: PathBuf,
    /// Address of the proxy, on this machine: IP:PORT; port 0 takes a free one
    #[arg(short, long, value_name = "ADDRESS", default_value = "127.0.0.1:8888")]
    pub(crate) listen: SocketAddr,
    /// Record this host, and none that is not named: `api.example.test`, `*.example.test` or an IP address.
    /// All others pass through unread, and the certificate to trust is valid for the named ones alone
    #[arg(long = "host", value_name = "NAME")]
    pub(crate) hosts: Vec<String>,
    /// Write the recording itself, too (HAR 1.2)
    #[arg(long, value_name = "FILE")]
    pub(crate) har: Option<PathBuf>,
    /// Folder of the authority that signs certificates for recorded hosts; it is made where there is none
    /// [default: `record` in the user's data of this program]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) ca: Option<PathBuf>,
    /// Certificate authorities of servers, in the place of the system's (PEM)
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// Accept any certificate of a server
    #[arg(short = 'k', long)]
    pub(crate) insecure: bool,
    #[command(flatten)]
    pub(crate) reading: RecordingArgs,
}
