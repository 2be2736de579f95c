//! The fault proxy: TCP connections that can be cut, delayed, reset and throttled.
//!
//! Each [`Link`](LinkName) is a listener, from which connections go on to one port of one node. Every
//! connection has four threads: in each direction one reads into a short queue, and one writes the bytes that
//! are due. So a link that is slow or cut holds up the sender, as a network does, and takes little memory.

mod connection;
mod link;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;

use crate::fault::Impairment;
use link::Link;

/// Whose connections a link has, and where they go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkName {
    /// The number of the node whose connections they are; `None`: those of the load.
    pub from: Option<usize>,
    /// The number of the node that they go to.
    pub to: usize,
    /// The name of its port.
    pub port: String,
}

/// All links of a cluster. They end when this is dropped.
#[derive(Debug, Default)]
pub struct Proxy {
    links: Vec<(LinkName, u16, Arc<Link>)>,
}

impl Proxy {
    /// Without links.
    pub fn new() -> Self {
        Self::default()
    }

    /// Listens on a port for connections of a link, which go on to another port of this machine.
    ///
    /// # Errors
    /// The port is taken, or no thread can be started.
    pub fn open(&mut self, name: LinkName, port: u16, to: u16, seed: u64) -> io::Result<u16> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let port = listener.local_addr()?.port();
        let to = SocketAddr::from((Ipv4Addr::LOCALHOST, to));
        let link = Link::serve(listener, to, seed.wrapping_add(self.links.len() as u64))?;
        self.links.push((name, port, link));
        Ok(port)
    }

    /// The port that a link listens on.
    pub fn port(&self, from: Option<usize>, to: usize, port: &str) -> Option<u16> {
        let is_it = |name: &LinkName| name.from == from && name.to == to && name.port == port;
        self.links.iter().find(|(name, ..)| is_it(name)).map(|(_, port, _)| *port)
    }

    /// Does something to the links that are chosen, until it is [ended](Self::end) by the same number.
    pub fn begin(&self, number: u64, impairment: Impairment, chosen: impl Fn(&LinkName) -> bool) -> usize {
        let links = self.links.iter().filter(|(name, ..)| chosen(name));
        links.map(|(.., link)| link.begin(number, impairment)).count()
    }

    /// Ends the impairment with this number.
    pub fn end(&self, number: u64) {
        self.links.iter().for_each(|(.., link)| link.end(number));
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.links.iter().for_each(|(_, port, link)| link.close(*port));
    }
}
