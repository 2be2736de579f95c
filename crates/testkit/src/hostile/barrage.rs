//! Many damaged requests to one server, which has to answer good ones all the while.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use plimsoll_core::Random;
use socket2::{Domain, Socket, Type};

use super::{DamagedRequests, mutate};

/// A good request is asked after this many damaged ones.
const STRIDE: u64 = 1_000;
/// The longest time for an answer, and for the end of a connection whose request has ended. A query of the
/// store may take 30 seconds, and no other is answered meanwhile.
const PATIENCE: Duration = Duration::from_secs(60);
/// Addresses that connections come from, so that ports which the system keeps for a while are not used up.
const SOURCES: u64 = 100;

/// The outcome of damaged requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Barrage {
    /// Requests that were sent.
    pub sent: u64,
    /// Damaged requests that got any answer.
    pub answered: u64,
    /// Good requests in between, which were all answered well.
    pub probes: u64,
    /// The time that all of this took.
    pub took: Duration,
}

/// Sends damaged requests, each on a connection of its own, and good ones in between.
///
/// # Errors
/// If the server takes no connection, keeps one whose request has ended, or does not answer a good request
/// well.
// The whole is measured, for a report.
#[allow(clippy::disallowed_methods)]
pub fn barrage(server: SocketAddr, target: &DamagedRequests, seed: u64, count: u64) -> io::Result<Barrage> {
    let begin = Instant::now();
    let DamagedRequests { requests, .. } = target;
    let mut random = Random::new(seed, 0);
    let mut made = Barrage::default();
    let mut number = 0;
    while made.sent < count {
        if made.sent % STRIDE == 0 {
            probe(server, target, number)?;
            (made.probes, number) = (made.probes + 1, number + 1);
        }
        let request = &requests[random.below(requests.len() as u64) as usize];
        let (damaged, _) = mutate(&mut random, request);
        let mut stream = connect(server, number)?;
        number += 1;
        // A server may have heard enough before the end.
        let written = stream.write_all(&damaged).and_then(|()| stream.shutdown(Shutdown::Write));
        let answered = match drain(&mut stream) {
            Err(error) if written.is_ok() && is_timeout(&error) => {
                let damaged = damaged.escape_ascii();
                return Err(io::Error::other(format!("a connection was kept after its end: {damaged}")));
            }
            Ok(bytes) => bytes > 0,
            Err(_) => false,
        };
        (made.sent, made.answered) = (made.sent + 1, made.answered + u64::from(answered));
    }
    probe(server, target, number)?;
    (made.probes, made.took) = (made.probes + 1, begin.elapsed());
    Ok(made)
}

fn connect(server: SocketAddr, number: u64) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    let source = Ipv4Addr::new(127, 0, 1, (1 + number % SOURCES) as u8);
    socket.bind(&SocketAddr::from((source, 0)).into())?;
    socket.connect_timeout(&server.into(), PATIENCE)?;
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Asks something good, and looks at the answer.
fn probe(server: SocketAddr, target: &DamagedRequests, number: u64) -> io::Result<()> {
    let DamagedRequests { probe, answer, .. } = target;
    let mut stream = connect(server, number)?;
    stream.write_all(probe)?;
    let mut got = vec![0; answer.len()];
    stream.read_exact(&mut got)?;
    if got != *answer {
        let got = got.escape_ascii();
        return Err(io::Error::other(format!("a good request was answered with {got}")));
    }
    Ok(())
}

fn drain(stream: &mut TcpStream) -> io::Result<u64> {
    let (mut total, mut bytes) = (0, [0; 16_384]);
    loop {
        match stream.read(&mut bytes)? {
            0 => return Ok(total),
            count => total += count as u64,
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
