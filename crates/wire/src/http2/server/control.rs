//! Frames that control a connection and its streams. Sections are those of RFC 9113.

use crate::http2::error::{ConnectionError, ErrorCode};
use crate::http2::frame::{
    FrameHead, MAX_STREAM, flag, go_away_payload, is_settings_ack, kind, ping_payload, put_headers, put_ping,
    put_settings_ack, word,
};

use super::Server;
use super::frames::Sinks;
use super::stream::State;

impl Server {
    /// Any frame but DATA and HEADERS, whole.
    pub(super) fn other_frame(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        sinks: &mut Sinks<'_>,
    ) -> Result<(), ConnectionError> {
        match head.kind {
            kind::CONTINUATION => self.continuation(head, payload, sinks),
            kind::PRIORITY => self.priority(head, payload),
            kind::RST_STREAM => self.rst_stream(head, payload),
            kind::SETTINGS => self.settings(head, payload, sinks),
            kind::PING => self.ping(head, payload, sinks),
            kind::GOAWAY => self.go_away_frame(head, payload),
            kind::WINDOW_UPDATE => self.window_update(head, payload, sinks),
            _ => Err(ConnectionError::protocol("a client pushes nothing")),
        }
    }

    /// Section 6.3. Replies have no priorities here. That a wrong length breaks the connection and not the
    /// stream alone is for the streams that are not open, which cannot be reset.
    fn priority(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), ConnectionError> {
        if head.stream == 0 {
            return Err(ConnectionError::protocol("PRIORITY on stream 0"));
        }
        if payload.len() != 5 {
            return Err(ConnectionError::frame_size("PRIORITY of a wrong length"));
        }
        self.budget.spend()
    }

    /// Section 6.4.
    fn rst_stream(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), ConnectionError> {
        self.expect_opened(head.stream)?;
        word(payload, "RST_STREAM of a wrong length")?;
        if let Some(slot) = self.streams.find(head.stream) {
            self.cancelled += 1;
            let entry = &self.slots[slot as usize];
            let waited = entry.state != State::Requesting && entry.whole_at != self.calls;
            self.release(slot);
            if waited {
                // The caller had time to answer: an impatient client is not a rapid reset.
                return Ok(());
            }
        }
        self.budget.spend()
    }

    /// Section 6.5.
    pub(super) fn settings(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        sinks: &mut Sinks<'_>,
    ) -> Result<(), ConnectionError> {
        let ack = is_settings_ack(head, payload)?;
        self.budget.spend()?;
        if ack {
            if std::mem::take(&mut self.awaits_ack) {
                self.decoder.acknowledged();
            }
            return Ok(());
        }
        let window = i64::from(self.peer.initial_window_size);
        if let Some(size) = self.peer.apply(payload)? {
            self.indexing.peer_limit(size);
        }
        put_settings_ack(sinks.out);
        let shift = i64::from(self.peer.initial_window_size) - window;
        if shift != 0 {
            let flows = self.slots.iter_mut().map(|entry| &mut entry.flow);
            self.outflow.open_all((0..).zip(flows), shift)?;
            self.send_waiting(sinks);
        }
        Ok(())
    }

    /// Section 6.7. This side never sends a PING, so an answer counts like any frame without content.
    fn ping(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        sinks: &mut Sinks<'_>,
    ) -> Result<(), ConnectionError> {
        let payload = ping_payload(head, payload)?;
        self.budget.spend()?;
        if !head.has(flag::ACK) {
            put_ping(sinks.out, true, payload);
        }
        Ok(())
    }

    /// Section 6.8. The client takes no pushes any more, which it never got; its streams go on.
    fn go_away_frame(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), ConnectionError> {
        go_away_payload(head, payload)?;
        self.budget.spend()
    }

    /// Section 6.9.
    fn window_update(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        sinks: &mut Sinks<'_>,
    ) -> Result<(), ConnectionError> {
        let increment = word(payload, "WINDOW_UPDATE of a wrong length")? & MAX_STREAM;
        if head.stream == 0 {
            self.outflow.open_connection(increment)?;
            self.send_waiting(sinks);
            return Ok(());
        }
        self.expect_opened(head.stream)?;
        let Some(slot) = self.streams.find(head.stream) else { return self.budget.spend() };
        if increment == 0 {
            return self.fail(slot, ErrorCode::ProtocolError, sinks);
        }
        let flow = &mut self.slots[slot as usize].flow;
        if self.outflow.open_stream(slot, flow, i64::from(increment)).is_err() {
            return self.fail(slot, ErrorCode::FlowControlError, sinks);
        }
        self.send_waiting(sinks);
        Ok(())
    }

    /// Sends content that waited for a window, one frame of each stream in turn.
    fn send_waiting(&mut self, sinks: &mut Sinks<'_>) {
        while let Some(slot) = self.outflow.next_turn() {
            let entry = &mut self.slots[slot as usize];
            let mut ended = self.outflow.turn(slot, &mut entry.flow, &self.peer, sinks.out);
            if !entry.trailers.is_empty() && self.outflow.waiting(slot, &entry.flow) == 0 {
                let (stream, block) = (entry.flow.stream, &entry.trailers);
                put_headers(sinks.out, stream, true, self.peer.max_frame_size, |out| {
                    out.extend_from_slice(block);
                });
                ended = true;
            }
            if ended {
                self.replied(slot, sinks.out);
            }
        }
    }
}
