//! Sockets: made, bound and set up; the stamps that come with received bytes.

use std::ffi::c_int;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_core::Nanos;
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};

use crate::{Endpoint, SocketOptions};

/// Pending connections per listener. The kernel caps it at `net.core.somaxconn`, which is 4096 by default.
const BACKLOG: c_int = 4096;

/// Properties that all sockets of a backend share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// Ask for receive stamps.
    pub(crate) stamps: bool,
    /// epoll needs sockets that do not block; on io_uring they would make requests fail instead of wait.
    pub(crate) nonblocking: bool,
}

impl Style {
    fn socket(self, address: &SockAddr) -> io::Result<Socket> {
        let kind = if self.nonblocking { Type::STREAM.nonblocking() } else { Type::STREAM };
        let domain = address.domain();
        let protocol = if domain == Domain::UNIX { None } else { Some(Protocol::TCP) };
        let socket = Socket::new(domain, kind, protocol)?;
        if domain != Domain::UNIX {
            socket.set_tcp_nodelay(true)?;
            if self.stamps {
                set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
            }
        }
        Ok(socket)
    }

    /// A socket that is ready to be connected to the returned address.
    pub(crate) fn connecting(
        self,
        to: &Endpoint,
        options: &SocketOptions,
    ) -> io::Result<(OwnedFd, SockAddr)> {
        let address = socket_address(to)?;
        let socket = self.socket(&address)?;
        // The sizes must be known before the handshake: the window scale is fixed there.
        if let Some(bytes) = options.receive_buffer {
            socket.set_recv_buffer_size(bytes)?;
        }
        if let Some(bytes) = options.send_buffer {
            socket.set_send_buffer_size(bytes)?;
        }
        if let (Some(source), Endpoint::Tcp(_)) = (options.source, to) {
            // Without this a port is taken at bind time for every target at once, and 28,000 connections in
            // all are the end instead of 28,000 per target.
            set_option(socket.as_fd(), libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)?;
            socket.bind(&core::net::SocketAddr::new(source, 0).into())?;
        }
        Ok((socket.into(), address))
    }

    /// A listening socket. The connections that it accepts inherit its options.
    pub(crate) fn listening(self, on: &Endpoint, reuse_port: bool) -> io::Result<Listener> {
        let address = socket_address(on)?;
        let socket = self.socket(&address)?;
        if let Endpoint::Tcp(tcp) = on {
            socket.set_reuse_address(true)?;
            if reuse_port {
                socket.set_reuse_port(true)?;
            }
            if tcp.is_ipv6() {
                // Lets 0.0.0.0 and [::] be listened to at once, whatever the system's default is.
                socket.set_only_v6(true)?;
            }
        }
        socket.bind(&address)?;
        // From here on the file of a unix socket exists, and is ours to remove.
        let file = if let Endpoint::Unix(path) = on { Some(SocketFile(path.clone())) } else { None };
        socket.listen(BACKLOG)?;
        let bound = match on {
            Endpoint::Unix(path) => Endpoint::Unix(path.clone()),
            Endpoint::Tcp(tcp) => Endpoint::Tcp(socket.local_addr()?.as_socket().unwrap_or(*tcp)),
        };
        Ok(Listener { fd: socket.into(), bound, _file: file })
    }

    /// A socket whose only purpose is to have stamps switched on: while one such socket exists, the network
    /// stack stamps every packet. It takes the kernel a moment to begin, and the first packets of a run would
    /// go without.
    pub(crate) fn stamp_keeper(self) -> io::Result<Option<OwnedFd>> {
        if !self.stamps {
            return Ok(None);
        }
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
        set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        Ok(Some(socket.into()))
    }
}

/// A listening socket.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) fd: OwnedFd,
    /// With the port that the system chose.
    pub(crate) bound: Endpoint,
    _file: Option<SocketFile>,
}

/// The file of a unix socket, removed when its listener goes: it would make the next bind fail.
#[derive(Debug)]
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Another process may have removed it, and a failure has no one to be reported to.
        let _ = fs::remove_file(&self.0);
    }
}

fn socket_address(endpoint: &Endpoint) -> io::Result<SockAddr> {
    match endpoint {
        Endpoint::Tcp(address) => Ok((*address).into()),
        // A path that is too long has no error number of its own there.
        Endpoint::Unix(path) => {
            SockAddr::unix(path as &Path).map_err(|_| io::Error::from_raw_os_error(libc::ENAMETOOLONG))
        }
    }
}

/// Sets an option that is an int.
fn set_option(fd: BorrowedFd<'_>, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    // SAFETY: the pointer and the size are those of `value`, an int that lives through the call, and every
    // option that this module names takes an int. The descriptor is open because it is borrowed.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lets the next close send a reset. A unix socket has none, and takes the option without effect.
pub(crate) fn reset_on_close(fd: &OwnedFd) {
    // It can only fail for a descriptor that is not a socket.
    let _ = SockRef::from(fd).set_linger(Some(Duration::ZERO));
}

/// Time after which a closed connection is given up whose peer takes none of the bytes that are left: that of
/// nginx's `send_timeout`. A slow reader may read for long before its window opens again.
pub(crate) const STALLED: Duration = Duration::from_secs(60);

/// Has the kernel break the connection when its peer has taken nothing for this time (`TCP_USER_TIMEOUT`,
/// which covers closed windows, too). A unix socket has no such option.
pub(crate) fn give_up_after(fd: &OwnedFd, time: Duration) {
    let _ = SockRef::from(fd).set_tcp_user_timeout(Some(time));
}

/// Ends one or both directions. It is not an error if the peer has ended them before.
pub(crate) fn shutdown(fd: &OwnedFd, how: std::net::Shutdown) {
    let _ = SockRef::from(fd).shutdown(how);
}

/// Returns the error of a non-blocking connect that has ended; `None` if it succeeded.
pub(crate) fn connect_error(fd: &OwnedFd) -> Option<i32> {
    match SockRef::from(fd).take_error() {
        Ok(None) => None,
        Ok(Some(error)) | Err(error) => Some(errno(&error)),
    }
}

/// The number of an error of the system.
pub(crate) fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

/// Bytes of control data that a receive stamp takes, padding included.
pub(crate) const STAMP_SPACE: usize = cmsg_align(size_of::<libc::cmsghdr>()) + cmsg_align(STAMP_BYTES);
const STAMP_BYTES: usize = size_of::<libc::timespec>();

const fn cmsg_align(length: usize) -> usize {
    length.next_multiple_of(size_of::<usize>())
}

/// The receive stamp (`CLOCK_REALTIME`) in the control data of a received message, if there is one.
pub(crate) fn receive_stamp(control: &[u8]) -> Option<Nanos> {
    const HEADER: usize = cmsg_align(size_of::<libc::cmsghdr>());
    let word =
        |at: usize| Some(usize::from_ne_bytes(control.get(at..at + size_of::<usize>())?.try_into().ok()?));
    let int =
        |at: usize| Some(c_int::from_ne_bytes(control.get(at..at + size_of::<c_int>())?.try_into().ok()?));
    let mut at = 0;
    // struct cmsghdr { size_t length (with this header); int level; int type; }, then the data, aligned.
    while let Some(length) = word(at).filter(|length| (HEADER..=control.len() - at).contains(length)) {
        let (level, kind) =
            (int(at + size_of::<usize>())?, int(at + size_of::<usize>() + size_of::<c_int>())?);
        if level == libc::SOL_SOCKET && kind == libc::SCM_TIMESTAMPNS && length >= HEADER + STAMP_BYTES {
            // struct timespec { long seconds; long nanoseconds; }, never negative for a packet of this epoch.
            let (seconds, nanos) =
                (word(at + HEADER)? as u64, word(at + HEADER + size_of::<usize>())? as u64);
            return seconds.checked_mul(1_000_000_000)?.checked_add(nanos).map(Nanos);
        }
        at += cmsg_align(length);
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpStream;

    use super::*;

    const STYLE: Style = Style { stamps: true, nonblocking: false };

    fn loopback() -> Endpoint {
        Endpoint::Tcp("127.0.0.1:0".parse().unwrap())
    }

    fn stamps_wanted(fd: BorrowedFd<'_>) -> c_int {
        let (mut value, mut size) = (0_i32, 4_u32);
        // SAFETY: `value` and `size` are valid for writing, and `size` is the size of `value`.
        let result = unsafe {
            libc::getsockopt(
                fd.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_TIMESTAMPNS,
                (&raw mut value).cast(),
                &mut size,
            )
        };
        assert_eq!(result, 0);
        value
    }

    #[test]
    #[cfg_attr(miri, ignore = "the kernel is asked for more than Miri knows")]
    fn accepted_connections_inherit_the_options() {
        let listener = STYLE.listening(&loopback(), true).expect("listens");
        let Endpoint::Tcp(address) = listener.bound else { panic!("a TCP endpoint") };
        assert_ne!(address.port(), 0);
        let mut client = TcpStream::connect(address).expect("connects");
        let (server, _) = SockRef::from(&listener.fd).accept().expect("accepts");
        assert!(server.tcp_nodelay().expect("an option"));
        assert_eq!(stamps_wanted(server.as_fd()), 1);
        client.write_all(b"x").expect("writes");
    }

    #[test]
    #[cfg_attr(miri, ignore = "the kernel is asked for more than Miri knows")]
    fn the_options_of_a_connection_are_set() {
        let options = SocketOptions {
            source: Some("127.0.0.2".parse().unwrap()),
            receive_buffer: Some(50_000),
            send_buffer: Some(60_000),
        };
        let (fd, _) = STYLE.connecting(&loopback(), &options).expect("a socket");
        let socket = SockRef::from(&fd);
        assert!(socket.tcp_nodelay().expect("an option"));
        // The kernel doubles them, for its own bookkeeping.
        assert_eq!(socket.recv_buffer_size().expect("an option"), 100_000);
        assert_eq!(socket.send_buffer_size().expect("an option"), 120_000);
        let local = socket.local_addr().expect("bound").as_socket().expect("an IP address");
        assert_eq!(local.to_string(), "127.0.0.2:0");
        let plain = Style { stamps: false, nonblocking: true };
        let (fd, _) = plain.connecting(&loopback(), &SocketOptions::default()).expect("a socket");
        assert_eq!(stamps_wanted(fd.as_fd()), 0);
        assert!(SockRef::from(&fd).nonblocking().expect("a flag"));
    }

    #[test]
    #[cfg_attr(miri, ignore = "the kernel is asked for more than Miri knows")]
    fn a_source_of_another_family_is_an_error() {
        let options = SocketOptions { source: Some("::1".parse().unwrap()), ..SocketOptions::default() };
        assert!(STYLE.connecting(&loopback(), &options).is_err());
    }

    #[test]
    #[cfg_attr(miri, ignore = "the kernel is asked for more than Miri knows")]
    fn a_peer_that_takes_nothing_is_given_up() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("listens");
        let silent = TcpStream::connect(listener.local_addr().expect("an address")).expect("connects");
        let (mut server, _) = listener.accept().expect("accepts");
        server.set_nonblocking(true).expect("a flag");
        while server.write(&[0; 65536]).is_ok() {}
        server.set_nonblocking(false).expect("a flag");
        let fd = OwnedFd::from(server.try_clone().expect("a descriptor"));
        give_up_after(&fd, Duration::from_millis(300));
        // It blocks until the kernel breaks the connection.
        let error = server.write_all(&[0; 65536]).expect_err("nobody reads");
        assert_eq!(errno(&error), libc::ETIMEDOUT);
        drop(silent);
    }

    #[test]
    #[cfg_attr(miri, ignore = "the kernel is asked for more than Miri knows")]
    fn the_file_of_a_unix_listener_goes_with_it() {
        let path = std::env::temp_dir().join(format!("plimsoll-socket-{}", std::process::id()));
        let endpoint = Endpoint::Unix(path.clone());
        let listener = STYLE.listening(&endpoint, false).expect("listens");
        assert!(path.exists());
        assert!(STYLE.listening(&endpoint, false).is_err(), "in use");
        assert!(path.exists());
        drop(listener);
        assert!(!path.exists());
        let long = Endpoint::Unix(PathBuf::from("x".repeat(200)));
        assert_eq!(STYLE.listening(&long, false).unwrap_err().raw_os_error(), Some(libc::ENAMETOOLONG));
    }

    fn control(level: c_int, kind: c_int, words: &[usize]) -> Vec<u8> {
        let mut bytes = (16 + 8 * words.len()).to_ne_bytes().to_vec();
        bytes.extend(level.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        bytes
    }

    #[test]
    fn a_stamp_is_found_among_other_messages() {
        let stamp = control(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS, &[3, 7]);
        assert_eq!(stamp.len(), STAMP_SPACE);
        assert_eq!(receive_stamp(&stamp), Some(Nanos(3_000_000_007)));
        let mut two = control(libc::SOL_SOCKET, libc::SCM_RIGHTS, &[1]);
        assert_eq!(receive_stamp(&two), None);
        two.extend(&stamp);
        assert_eq!(receive_stamp(&two), Some(Nanos(3_000_000_007)));
        for length in 0..STAMP_SPACE {
            assert_eq!(receive_stamp(&stamp[..length]), None, "cut to {length} bytes");
        }
        assert_eq!(receive_stamp(&[0; 64]), None);
        let absurd = control(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS, &[usize::MAX, 0]);
        assert_eq!(receive_stamp(&absurd), None);
    }
}
