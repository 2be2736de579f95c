//! One connection on io_uring, and the requests that are made for it.

use std::os::fd::{AsRawFd, OwnedFd};

use io_uring::opcode;
use io_uring::squeue::Entry;
use io_uring::types::Fd;
use socket2::SockAddr;

use crate::outbox::{MAX_PIECES, Outbox};

/// State of a connection. At most one send and one receive are in the kernel at a time.
pub(super) struct Connection {
    pub(super) fd: OwnedFd,
    pub(super) outbox: Outbox,
    /// Address to connect to, until the connect request has ended.
    address: Option<Box<SockAddr>>,
    /// For sends of more than one piece; there is none before the first.
    pieces: Option<Box<Pieces>>,
    /// A send failed with this error; it is reported once the earlier data are read. 0 if none failed.
    pub(super) send_error: i32,
    /// Requests in the kernel that have not had their last completion.
    pub(super) in_kernel: u32,
    pub(super) closing: Closing,
    pub(super) connecting: bool,
    /// A send is in the kernel: the sealed part of the outbox must stay as it is.
    pub(super) sending: bool,
    /// The multishot receive is in the kernel.
    pub(super) receiving: bool,
    /// The poll for errors was made, once for each connection.
    pub(super) watched: bool,
    /// `true` once that poll has ended.
    pub(super) hung_up: bool,
    /// There is nothing more to receive: an end or an error was met.
    pub(super) ended: bool,
    /// Nothing can have come yet, so that the next receive need not try before it waits.
    pub(super) poll_first: bool,
    /// In the list of those written to.
    pub(super) dirty: bool,
}

/// Progress of closing a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Closing {
    /// The owner has not closed it.
    Open,
    /// There are bytes left to send.
    Sending,
    /// Everything is sent; waiting for the peer's end.
    Lingering,
    /// Waiting for the last completion alone.
    Gone,
}

/// A message of several pieces.
struct Pieces {
    message: libc::msghdr,
    pieces: [libc::iovec; MAX_PIECES],
}

impl Connection {
    pub(super) fn connecting(fd: OwnedFd, address: SockAddr) -> Self {
        Self { address: Some(Box::new(address)), connecting: true, poll_first: true, ..Self::accepted(fd) }
    }

    pub(super) fn accepted(fd: OwnedFd) -> Self {
        Self {
            fd,
            outbox: Outbox::default(),
            address: None,
            pieces: None,
            send_error: 0,
            in_kernel: 0,
            closing: Closing::Open,
            connecting: false,
            sending: false,
            receiving: false,
            watched: false,
            hung_up: false,
            ended: false,
            poll_first: false,
            dirty: false,
        }
    }

    /// A request to connect. It points to the address, which stays where it is until [`Self::connected`].
    pub(super) fn connect_request(&self) -> Option<Entry> {
        let address = self.address.as_ref()?;
        let fd = Fd(self.fd.as_raw_fd());
        Some(opcode::Connect::new(fd, address.as_ptr().cast(), address.len()).build())
    }

    /// The connect request has ended.
    pub(super) fn connected(&mut self) {
        self.connecting = false;
        self.address = None;
    }

    /// A request to send the sealed part of the outbox, unless there is none or it cannot be sent now. It
    /// points into the outbox, whose sealed part stays where it is while `sending` is set.
    ///
    /// The kernel is to send it all (`MSG_WAITALL`) before it answers, waiting for room as often as needed.
    pub(super) fn send_request(&mut self) -> Option<Entry> {
        if self.sending || self.connecting || self.send_error != 0 || !self.outbox.has_sealed() {
            return None;
        }
        self.sending = true;
        let fd = Fd(self.fd.as_raw_fd());
        let flags = libc::MSG_WAITALL | libc::MSG_NOSIGNAL;
        // More than a request can carry is sent in parts, like any short send.
        const LARGEST: usize = 1 << 30;
        if let Some(piece) = self.outbox.only_sealed() {
            let length = piece.len().min(LARGEST) as u32;
            return Some(opcode::Send::new(fd, piece.as_ptr(), length).flags(flags).build());
        }
        let mut pieces = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; MAX_PIECES];
        let count = self.outbox.gather(&mut pieces);
        let stored = self.pieces.get_or_insert_with(Pieces::new);
        stored.pieces = pieces;
        stored.message.msg_iov = stored.pieces.as_mut_ptr();
        stored.message.msg_iovlen = count as _;
        Some(opcode::SendMsg::new(fd, &raw const stored.message).flags(flags as u32).build())
    }
}

impl Pieces {
    fn new() -> Box<Self> {
        // SAFETY: plain pointers and integers, for all of which zero is a value.
        Box::new(unsafe { std::mem::zeroed() })
    }
}
