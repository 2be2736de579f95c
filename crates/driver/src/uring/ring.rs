//! One io_uring instance: set-up, and the two system calls.

use std::io;
use std::os::fd::AsRawFd;

use io_uring::squeue::Entry;
use io_uring::{EnterFlags, IoUring, cqueue, opcode};
use plimsoll_core::Nanos;

use plimsoll_system::clock;

/// Requests that fit between two submissions (64 bytes each). More is a further system call.
const SUBMISSIONS: u32 = 1024;
/// Answers that fit between two visits (16 bytes each): one receive and one send for each of 8,000
/// connections. If it overflows, the kernel keeps the rest in a list, which is slower.
const COMPLETIONS: u32 = 16 << 10;

/// `struct io_uring_getevents_arg`.
#[repr(C)]
struct WaitArgument {
    signal_mask: u64,
    signal_mask_bytes: u32,
    min_wait_us: u32,
    timeout: u64,
}

/// `struct io_uring_rsrc_update`.
#[repr(C)]
struct RingUpdate {
    offset: u32,
    reserved: u32,
    data: u64,
}

/// `IORING_REGISTER_RING_FDS` and its inverse.
const REGISTER_RING_FDS: u32 = 20;
const UNREGISTER_RING_FDS: u32 = 21;

/// Conditions that end [`Ring::wait`], as spans from now.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpinPolicy {
    /// Completions to return at.
    pub(super) want: u32,
    /// After this span one completion is enough. Zero: `want` alone counts.
    pub(super) floor: Nanos,
    /// Return after this span in any case.
    pub(super) timeout: Nanos,
}

/// The queues of one io_uring instance. Belongs to the thread that opened it.
pub(super) struct Ring {
    io: IoUring,
    /// The registered number of the ring's descriptor, which saves the kernel a look-up and a reference
    /// count.
    registered: Option<u32>,
    /// The kernel can lower the aim of a wait after a while (6.12).
    pub(super) lowers_aim: bool,
}

impl Ring {
    pub(super) fn open() -> io::Result<Self> {
        // NO_SQARRAY is of 6.6; everything else is needed.
        let io = match build(true) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => build(false)?,
            other => other?,
        };
        let lowers_aim = io.params().is_feature_min_timeout();
        let mut ring = Self { io, registered: None, lowers_aim };
        ring.register_descriptor();
        Ok(ring)
    }

    /// Returns the first required feature or operation that the kernel lacks, in words; `None` if it has all.
    pub(super) fn lacks(&self) -> Option<String> {
        let parameters = self.io.params();
        let features = [
            ("EXT_ARG", parameters.is_feature_ext_arg()),
            ("NODROP", parameters.is_feature_nodrop()),
            ("SUBMIT_STABLE", parameters.is_feature_submit_stable()),
            ("FAST_POLL", parameters.is_feature_fast_poll()),
        ];
        if let Some((name, _)) = features.iter().find(|(_, present)| !present) {
            return Some(format!("the kernel's io_uring lacks the feature {name}"));
        }
        let mut probe = io_uring::Probe::new();
        if let Err(error) = self.io.submitter().register_probe(&mut probe) {
            return Some(format!("the kernel does not report its io_uring operations: {error}"));
        }
        let operations = [
            ("ACCEPT", opcode::AcceptMulti::CODE),
            ("ASYNC_CANCEL", opcode::AsyncCancel2::CODE),
            ("CONNECT", opcode::Connect::CODE),
            ("POLL_ADD", opcode::PollAdd::CODE),
            ("RECV", opcode::RecvMulti::CODE),
            ("RECVMSG", opcode::RecvMsgMulti::CODE),
            ("SEND", opcode::Send::CODE),
            ("SENDMSG", opcode::SendMsg::CODE),
        ];
        let missing = operations.iter().find(|(_, code)| !probe.is_supported(*code));
        missing.map(|(name, _)| format!("the kernel's io_uring lacks the operation {name}"))
    }

    pub(super) fn submitter(&self) -> io_uring::Submitter<'_> {
        self.io.submitter()
    }

    /// Queues a request for the next submission, submitting the queue if there is no room.
    ///
    /// # Safety
    /// Everything that `entry` points to must stay valid, and memory that it lets the kernel write must not
    /// be used, until the request's last completion was seen.
    pub(super) unsafe fn push(&mut self, entry: &Entry) -> io::Result<()> {
        // SAFETY: the caller promises what `push` asks for.
        while unsafe { self.io.submission().push(entry) }.is_err() {
            self.submit()?;
        }
        Ok(())
    }

    /// Room for requests before `push` submits.
    pub(super) fn room(&mut self) -> usize {
        let queue = self.io.submission();
        queue.capacity() - queue.len()
    }

    /// Hands all queued requests to the kernel, which carries out those that do not block at once.
    pub(super) fn submit(&mut self) -> io::Result<()> {
        loop {
            let queued = self.io.submission().len() as u32;
            if queued == 0 {
                return Ok(());
            }
            match self.enter(queued, 0, EnterFlags::empty(), None) {
                Ok(0) => return Err(io::Error::from_raw_os_error(libc::EBUSY)),
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Submits the queue, lets the kernel do its deferred work, and waits. An error is a signal (`EINTR`),
    /// lack of memory, or `EBUSY` if completions must be taken first; a time-out is not an error.
    pub(super) fn wait(&mut self, patience: SpinPolicy) -> io::Result<()> {
        let queued = self.io.submission().len() as u32;
        let mut patience = patience;
        if !self.lowers_aim && patience.floor > Nanos::ZERO && patience.floor < patience.timeout {
            // Before 6.12 a wait for `want` cannot lower its aim: end it at the floor, and let the caller,
            // who sees that nothing came, wait again for one.
            patience.timeout = patience.floor;
        }
        let timeout = clock::timespec(patience.timeout);
        // Rounded up: a wake-up before the floor would only have to wait again.
        let floor_us = patience.floor.0.div_ceil(1000).min(u64::from(u32::MAX)) as u32;
        let argument = WaitArgument {
            signal_mask: 0,
            signal_mask_bytes: 0,
            min_wait_us: if self.lowers_aim && patience.floor < patience.timeout { floor_us } else { 0 },
            timeout: &raw const timeout as u64,
        };
        let flags = EnterFlags::GETEVENTS | EnterFlags::EXT_ARG;
        // The kernel compares the count as a signed number: the maximum would be negative, and it
        // would not sleep at all.
        let want = patience.want.min(COMPLETIONS);
        match self.enter(queued, want, flags, Some(&argument)) {
            Err(error) if error.raw_os_error() != Some(libc::ETIME) => Err(error),
            _ => Ok(()),
        }
    }

    /// Submits the queue and lets the kernel do its deferred work, without waiting.
    pub(super) fn poll(&mut self) -> io::Result<()> {
        let queued = self.io.submission().len() as u32;
        self.enter(queued, 0, EnterFlags::GETEVENTS, None).map(drop)
    }

    /// Returns `true` if `poll` would bring something. Makes no system call.
    pub(super) fn has_work(&mut self) -> bool {
        let queue = self.io.submission();
        let flagged = queue.taskrun() || queue.cq_overflow();
        drop(queue);
        flagged || !self.io.completion().is_empty()
    }

    /// The next answer of the kernel.
    pub(super) fn pop(&mut self) -> Option<cqueue::Entry> {
        self.io.completion().next()
    }

    fn enter(
        &self,
        submit: u32,
        want: u32,
        flags: EnterFlags,
        argument: Option<&WaitArgument>,
    ) -> io::Result<u32> {
        let (descriptor, flags) = match self.registered {
            Some(index) => (index as i32, flags | EnterFlags::REGISTERED_RING),
            None => (self.io.as_raw_fd(), flags),
        };
        // SAFETY: the argument is null (with no signal mask, the size is then not examined), or, with
        // EXT_ARG, an initialised structure of the size given; it and the timespec it points to live through
        // the call. What the queued requests point to is valid by the promise of `push`.
        let result = unsafe {
            libc::syscall(
                libc::SYS_io_uring_enter,
                descriptor,
                submit,
                want,
                flags.bits(),
                argument.map_or(std::ptr::null(), |argument| &raw const *argument),
                size_of::<WaitArgument>(),
            )
        };
        u32::try_from(result).map_err(|_| io::Error::last_os_error())
    }

    /// Only saves time, so that a failure means to go on without.
    fn register_descriptor(&mut self) {
        let fd = self.io.as_raw_fd();
        let mut update = RingUpdate { offset: u32::MAX, reserved: 0, data: fd as u64 };
        if self.register_rings(REGISTER_RING_FDS, &mut update) == 1 {
            self.registered = Some(update.offset);
        }
    }

    fn register_rings(&self, operation: u32, update: &mut RingUpdate) -> libc::c_long {
        // SAFETY: both operations read one structure of this layout and write its offset.
        unsafe {
            libc::syscall(libc::SYS_io_uring_register, self.io.as_raw_fd(), operation, &raw mut *update, 1)
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // The registration holds the ring open until the thread ends.
        if let Some(offset) = self.registered {
            self.register_rings(UNREGISTER_RING_FDS, &mut RingUpdate { offset, reserved: 0, data: 0 });
        }
    }
}

fn build(no_array: bool) -> io::Result<IoUring> {
    let mut builder = IoUring::builder();
    builder
        // Completions are made when this thread asks for them, not by interrupting it: the largest gain of
        // all, and what lets a wait for n completions sleep through n - 1.
        .setup_single_issuer()
        .setup_defer_taskrun()
        // Flags in shared memory that the kernel has deferred work, for busy polling.
        .setup_taskrun_flag()
        // One bad request must not hold up those behind it.
        .setup_submit_all()
        .setup_cqsize(COMPLETIONS);
    if no_array {
        builder.setup_no_sqarray();
    }
    builder.build(SUBMISSIONS)
}
