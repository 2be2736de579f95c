//! Content on its way out through the flow-control windows (RFC 9113 section 5.2), of the requests of a
//! client or the replies of a server.

use std::collections::VecDeque;

use super::ConnectionError;
use super::frame::{flag, kind, put_head};
use super::payload::{Payload, StreamOutput, Unsent};
use super::settings::PeerSettings;
use super::window::{INITIAL_WINDOW, SendWindow};

/// The sending side of one stream. A part of its owner's state of the stream.
#[derive(Debug)]
pub(super) struct Flow {
    /// The stream; 0 if the slot is vacant.
    pub(super) stream: u32,
    window: SendWindow,
    /// `true` while content waits.
    waits: bool,
    /// `true` if END_STREAM goes with the last byte of the waiting content.
    ends: bool,
    /// `true` while the slot is in the queue. Outlives the stream: the next one in this slot takes over the
    /// place.
    queued: bool,
}

impl Flow {
    /// A slot without a stream.
    pub(super) const fn vacant() -> Self {
        Self { stream: 0, window: SendWindow::new(0), waits: false, ends: false, queued: false }
    }

    /// A stream is opened in this slot, which is vacant.
    #[inline]
    pub(super) fn open(&mut self, stream: u32, peer: &PeerSettings) {
        debug_assert!(!self.waits);
        self.stream = stream;
        self.window = SendWindow::new(peer.initial_window_size);
        self.ends = false;
    }

    /// Returns `true` once END_STREAM was given, sent or not: nothing may be sent any more.
    #[inline]
    pub(super) fn has_end(&self) -> bool {
        self.ends
    }
}

/// The sending side of one connection: its window, and the content that waits. Slots are those of the owner's
/// streams, each of which has its [`Flow`].
#[derive(Debug)]
pub(super) struct Outflow {
    window: SendWindow,
    /// By slot, as far as streams had to wait.
    unsent: Vec<Unsent>,
    /// Slots whose content waits for the connection's window only, in the order of their turns.
    queue: VecDeque<u32>,
    /// Bytes that wait on all streams.
    total: usize,
}

/// A window that became larger than 2^31 - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Overflow;

impl Outflow {
    pub(super) const fn new() -> Self {
        Self { window: SendWindow::new(INITIAL_WINDOW), unsent: Vec::new(), queue: VecDeque::new(), total: 0 }
    }

    /// Sends as much of `body` as the windows allow and keeps the rest. With `end` the stream ends behind it:
    /// true as soon as END_STREAM has gone out.
    #[inline]
    pub(super) fn send(
        &mut self,
        slot: u32,
        flow: &mut Flow,
        body: Payload<'_>,
        end: bool,
        peer: &PeerSettings,
        out: &mut Vec<u8>,
    ) -> bool {
        flow.ends = end;
        let mut sent = 0;
        if !flow.waits {
            if body.is_empty() {
                if end {
                    put_head(out, 0, kind::DATA, flag::END_STREAM, flow.stream);
                }
                return end;
            }
            sent = self.stream_output(flow, peer).put(body.bytes(), end, out);
            if sent == body.len() {
                return end;
            }
        }
        self.keep(slot, flow, body, sent);
        false
    }

    #[cold]
    fn keep(&mut self, slot: u32, flow: &mut Flow, body: Payload<'_>, sent: usize) {
        if sent == body.len() {
            return;
        }
        if self.unsent.len() <= slot as usize {
            self.unsent.resize_with(slot as usize + 1, Unsent::default);
        }
        self.unsent[slot as usize].keep(body, sent);
        self.total += body.len() - sent;
        flow.waits = true;
        self.enqueue(slot, flow);
    }

    /// Bytes of content that wait on a stream.
    pub(super) fn waiting(&self, slot: u32, flow: &Flow) -> usize {
        if flow.waits { self.unsent[slot as usize].rest().len() } else { 0 }
    }

    /// Bytes of content that wait on all streams together.
    pub(super) const fn total_waiting(&self) -> usize {
        self.total
    }

    /// Puts a stream into the queue if it waits for the connection's window only.
    fn enqueue(&mut self, slot: u32, flow: &mut Flow) {
        if flow.waits && !flow.queued && flow.window.available() > 0 {
            flow.queued = true;
            self.queue.push_back(slot);
        }
    }

    /// The slot whose turn it is, if the connection's window is open. Then call [`turn`](Self::turn) with it.
    #[inline]
    pub(super) fn next_turn(&mut self) -> Option<u32> {
        if self.window.available() == 0 { None } else { self.queue.pop_front() }
    }

    /// Sends one frame of a stream whose turn it is. True if that ended the stream.
    pub(super) fn turn(
        &mut self,
        slot: u32,
        flow: &mut Flow,
        peer: &PeerSettings,
        out: &mut Vec<u8>,
    ) -> bool {
        flow.queued = false;
        if !flow.waits || flow.window.available() == 0 {
            return false;
        }
        let ends = flow.ends;
        let unsent = &mut self.unsent[slot as usize];
        let mut stream_output = StreamOutput {
            stream: flow.stream,
            connection: &mut self.window,
            window: &mut flow.window,
            max_frame_size: peer.max_frame_size,
        };
        self.total -= unsent.send_frame(&mut stream_output, ends, out);
        flow.waits = !unsent.is_empty();
        self.enqueue(slot, flow);
        ends && !flow.waits
    }

    /// The peer opened the connection's window by WINDOW_UPDATE (RFC 9113 section 6.9).
    pub(super) fn open_connection(&mut self, by: u32) -> Result<(), ConnectionError> {
        if by == 0 {
            return Err(ConnectionError::protocol("WINDOW_UPDATE with an increment of 0"));
        }
        if self.window.shift(i64::from(by)) {
            return Ok(());
        }
        Err(ConnectionError::flow_control("WINDOW_UPDATE makes the connection's window overflow"))
    }

    /// The peer changed the initial window: the windows of all open streams, given with their slots, move by
    /// as much (RFC 9113 section 6.9.2).
    pub(super) fn open_all<'f>(
        &mut self,
        flows: impl Iterator<Item = (u32, &'f mut Flow)>,
        by: i64,
    ) -> Result<(), ConnectionError> {
        for (slot, flow) in flows.filter(|(_, flow)| flow.stream != 0) {
            if self.open_stream(slot, flow, by) == Err(Overflow) {
                return Err(ConnectionError::flow_control(
                    "SETTINGS_INITIAL_WINDOW_SIZE makes a window overflow",
                ));
            }
        }
        Ok(())
    }

    /// The peer moved a stream's window, by WINDOW_UPDATE or by another initial size.
    pub(super) fn open_stream(&mut self, slot: u32, flow: &mut Flow, by: i64) -> Result<(), Overflow> {
        if !flow.window.shift(by) {
            return Err(Overflow);
        }
        self.enqueue(slot, flow);
        Ok(())
    }

    /// The stream is over: waiting content is dropped and the slot is vacant.
    #[inline]
    pub(super) fn close(&mut self, slot: u32, flow: &mut Flow) {
        flow.stream = 0;
        if flow.waits {
            flow.waits = false;
            self.total -= self.unsent[slot as usize].rest().len();
            self.unsent[slot as usize].clear();
        }
    }

    #[inline]
    fn stream_output<'w>(&'w mut self, flow: &'w mut Flow, peer: &PeerSettings) -> StreamOutput<'w> {
        StreamOutput {
            stream: flow.stream,
            connection: &mut self.window,
            window: &mut flow.window,
            max_frame_size: peer.max_frame_size,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::{FrameHead, HEAD_BYTES};
    use super::*;

    /// Stream, length and END_STREAM of each DATA frame.
    fn frames(mut out: &[u8]) -> Vec<(u32, u32, bool)> {
        let mut frames = Vec::new();
        while let Some((head, rest)) = out.split_first_chunk::<HEAD_BYTES>() {
            let head = FrameHead::read(head);
            assert_eq!(head.kind, kind::DATA);
            frames.push((head.stream, head.length, head.has(flag::END_STREAM)));
            out = &rest[head.length as usize..];
        }
        frames
    }

    fn opened(streams: &[u32], peer: &PeerSettings) -> Vec<Flow> {
        let mut flows: Vec<Flow> = streams.iter().map(|_| Flow::vacant()).collect();
        flows.iter_mut().zip(streams).for_each(|(flow, &stream)| flow.open(stream, peer));
        flows
    }

    /// Lets every stream send that can; returns the slots whose streams ended.
    fn pump(outflow: &mut Outflow, flows: &mut [Flow], peer: &PeerSettings, out: &mut Vec<u8>) -> Vec<u32> {
        let mut ended = Vec::new();
        while let Some(slot) = outflow.next_turn() {
            if outflow.turn(slot, &mut flows[slot as usize], peer, out) {
                ended.push(slot);
            }
        }
        ended
    }

    #[test]
    fn streams_take_turns_at_the_connections_window() {
        let peer = PeerSettings { initial_window_size: 100_000, ..PeerSettings::default() };
        let (mut outflow, mut out) = (Outflow::new(), Vec::new());
        let mut flows = opened(&[1, 3, 5], &peer);
        let body = vec![0; 60_000];
        for slot in 0..3 {
            outflow.send(slot, &mut flows[slot as usize], Payload::Bytes(&body), true, &peer, &mut out);
        }
        let first = frames(&out);
        assert_eq!(first.iter().filter(|frame| frame.0 == 1).map(|frame| frame.1).sum::<u32>(), 60_000);
        assert_eq!(first.last(), Some(&(3, 65_535 - 60_000, false)));
        out.clear();
        outflow.open_connection(40_000).unwrap();
        assert!(pump(&mut outflow, &mut flows, &peer, &mut out).is_empty());
        assert_eq!(frames(&out), [(3, 16_384, false), (5, 16_384, false), (3, 40_000 - 2 * 16_384, false)]);
        out.clear();
        outflow.open_connection(1_000_000).unwrap();
        assert_eq!(pump(&mut outflow, &mut flows, &peer, &mut out), [1, 2]);
        assert_eq!(frames(&out).iter().map(|frame| frame.1).sum::<u32>(), 180_000 - 65_535 - 40_000);
    }

    #[test]
    fn a_stream_without_a_window_of_its_own_lets_the_others_pass() {
        let peer = PeerSettings { initial_window_size: 0, ..PeerSettings::default() };
        let (mut outflow, mut out) = (Outflow::new(), Vec::new());
        let mut flows = opened(&[1, 3], &peer);
        for slot in 0..2 {
            assert!(!outflow.send(
                slot,
                &mut flows[slot as usize],
                Payload::Bytes(b"ab"),
                true,
                &peer,
                &mut out
            ));
        }
        outflow.open_stream(1, &mut flows[1], 1).unwrap();
        assert!(pump(&mut outflow, &mut flows, &peer, &mut out).is_empty());
        outflow.open_stream(1, &mut flows[1], 1).unwrap();
        assert_eq!(pump(&mut outflow, &mut flows, &peer, &mut out), [1]);
        assert_eq!(frames(&out), [(3, 1, false), (3, 1, true)]);
        assert_eq!(outflow.open_stream(0, &mut flows[0], 1 << 31), Err(Overflow));
        assert_eq!(outflow.waiting(0, &flows[0]), 2);
    }

    #[test]
    fn more_may_follow_what_waits_and_an_end_alone_needs_no_window() {
        let peer = PeerSettings { initial_window_size: 3, ..PeerSettings::default() };
        let (mut outflow, mut out) = (Outflow::new(), Vec::new());
        let mut flows = opened(&[1], &peer);
        for (body, end) in [("abcd", false), ("", false), ("ef", false), ("", true)] {
            assert!(!outflow.send(0, &mut flows[0], Payload::Bytes(body.as_bytes()), end, &peer, &mut out));
        }
        assert!(flows[0].has_end());
        outflow.open_stream(0, &mut flows[0], 3).unwrap();
        assert_eq!(pump(&mut outflow, &mut flows, &peer, &mut out), [0]);
        assert_eq!(frames(&out), [(1, 3, false), (1, 3, true)]);
        out.clear();
        let mut flows = opened(&[7], &peer);
        assert!(outflow.send(0, &mut flows[0], Payload::None, true, &peer, &mut out));
        assert_eq!(frames(&out), [(7, 0, true)]);
    }

    #[test]
    fn what_waits_on_a_closed_stream_is_not_sent_by_the_next_one_in_its_slot() {
        let peer = PeerSettings { initial_window_size: 1 << 20, ..PeerSettings::default() };
        let (mut outflow, mut out) = (Outflow::new(), Vec::new());
        let mut flows = opened(&[1], &peer);
        outflow.send(0, &mut flows[0], Payload::Bytes(&[0; 70_000]), true, &peer, &mut out);
        outflow.close(0, &mut flows[0]);
        flows[0].open(3, &peer);
        out.clear();
        outflow.open_connection(1_000).unwrap();
        assert!(pump(&mut outflow, &mut flows, &peer, &mut out).is_empty());
        assert!(out.is_empty());
        outflow.send(0, &mut flows[0], Payload::Bytes(&[0; 2_000]), true, &peer, &mut out);
        outflow.open_connection(1_000).unwrap();
        assert_eq!(pump(&mut outflow, &mut flows, &peer, &mut out), [0]);
        assert_eq!(frames(&out), [(3, 1_000, false), (3, 1_000, true)]);
    }
}
