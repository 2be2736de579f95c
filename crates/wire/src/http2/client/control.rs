//! Handling of the server's frames other than responses. Sections are those of RFC 9113.

use crate::http2::error::{ConnectionError, ErrorCode};
use crate::http2::flow::Overflow;
use crate::http2::frame::{
    FrameHead, MAX_STREAM, flag, go_away_payload, is_settings_ack, ping_payload, put_ping, put_settings_ack,
    word,
};

use super::frames::Sinks;
use super::{Client, Event, StreamFailure};

impl Client {
    /// Section 6.3. Priorities mean nothing to a client.
    pub(super) fn priority(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        sinks: &mut Sinks<'_>,
    ) -> Result<(), ConnectionError> {
        if head.stream == 0 {
            return Err(ConnectionError::protocol("PRIORITY on stream 0"));
        }
        self.budget.spend()?;
        if payload.len() != 5
            && let Some(ticket) = self.streams.find(head.stream)
        {
            let failure = StreamFailure::Malformed("PRIORITY of a wrong length");
            self.fail(ticket, failure, ErrorCode::FrameSizeError, sinks);
        }
        Ok(())
    }

    /// Section 6.4.
    pub(super) fn rst_stream(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        sinks: &mut Sinks<'_>,
    ) -> Result<(), ConnectionError> {
        self.expect_opened(head.stream)?;
        let code = ErrorCode::from_value(word(payload, "RST_STREAM of a wrong length")?);
        let Some(ticket) = self.streams.find(head.stream) else {
            return self.budget.spend();
        };
        let failure = match code {
            ErrorCode::RefusedStream => StreamFailure::Refused,
            code => StreamFailure::Reset(code),
        };
        self.release(ticket);
        sinks.events.push(Event::Failed { ticket, failure });
        Ok(())
    }

    /// Section 6.5.
    pub(super) fn settings(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        sinks: &mut Sinks<'_>,
    ) -> Result<(), ConnectionError> {
        if is_settings_ack(head, payload)? {
            return self.settings_ack();
        }
        self.budget.spend()?;
        let window = i64::from(self.peer.initial_window_size);
        if let Some(size) = self.peer.apply(payload)? {
            self.indexing.peer_limit(size);
        }
        if self.peer.enable_push == Some(true) {
            return Err(ConnectionError::protocol("the server sets SETTINGS_ENABLE_PUSH to 1"));
        }
        put_settings_ack(sinks.out);
        let shift = i64::from(self.peer.initial_window_size) - window;
        if shift != 0 {
            let flows = self.slots.iter_mut().map(|stream| &mut stream.flow);
            self.outflow.open_all((0..).zip(flows), shift)?;
            self.send_waiting(sinks.out);
        }
        if !self.ready {
            self.ready = true;
            sinks.events.push(Event::Ready);
        }
        Ok(())
    }

    fn settings_ack(&mut self) -> Result<(), ConnectionError> {
        if !std::mem::take(&mut self.awaits_ack) {
            return Err(ConnectionError::protocol("an acknowledgement of SETTINGS that were not sent"));
        }
        self.decoder.acknowledged();
        Ok(())
    }

    /// Section 6.7.
    pub(super) fn ping_frame(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        sinks: &mut Sinks<'_>,
    ) -> Result<(), ConnectionError> {
        let payload = ping_payload(head, payload)?;
        if !head.has(flag::ACK) {
            put_ping(sinks.out, true, payload);
            return self.budget.spend();
        }
        match self.pings.checked_sub(1) {
            Some(left) => {
                self.pings = left;
                sinks.events.push(Event::Pong { payload: u64::from_be_bytes(payload) });
                Ok(())
            }
            None => self.budget.spend(),
        }
    }

    /// Section 6.8.
    pub(super) fn go_away_frame(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        sinks: &mut Sinks<'_>,
    ) -> Result<(), ConnectionError> {
        let (last, code) = go_away_payload(head, payload)?;
        if self.last_stream.is_some_and(|before| last > before) {
            return Err(ConnectionError::protocol("a second GOAWAY with a larger last stream"));
        }
        if self.last_stream == Some(last) {
            self.budget.spend()?;
        }
        self.last_stream = Some(last);
        let mut unprocessed: Vec<_> = self.streams.iter().filter(|&(stream, _)| stream > last).collect();
        unprocessed.sort_unstable();
        sinks.events.push(Event::GoAway { code, unprocessed: unprocessed.len() as u32 });
        for (_, ticket) in unprocessed {
            self.release(ticket);
            sinks.events.push(Event::Failed { ticket, failure: StreamFailure::Unprocessed });
        }
        Ok(())
    }

    /// Section 6.9.
    pub(super) fn window_update(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        sinks: &mut Sinks<'_>,
    ) -> Result<(), ConnectionError> {
        let increment = word(payload, "WINDOW_UPDATE of a wrong length")? & MAX_STREAM;
        if head.stream == 0 {
            self.outflow.open_connection(increment)?;
            return self.send_or_count(sinks.out);
        }
        self.expect_opened(head.stream)?;
        let Some(ticket) = self.streams.find(head.stream) else {
            return self.budget.spend_update();
        };
        if increment == 0 {
            self.malformed(ticket, "WINDOW_UPDATE with an increment of 0", sinks);
            return Ok(());
        }
        let flow = &mut self.slots[ticket as usize].flow;
        match self.outflow.open_stream(ticket, flow, i64::from(increment)) {
            Ok(()) => self.send_or_count(sinks.out)?,
            Err(Overflow) => {
                let failure = StreamFailure::Malformed("WINDOW_UPDATE makes the stream's window overflow");
                self.fail(ticket, failure, ErrorCode::FlowControlError, sinks);
            }
        }
        Ok(())
    }

    /// Sends what a WINDOW_UPDATE lets be sent, or counts it.
    fn send_or_count(&mut self, out: &mut Vec<u8>) -> Result<(), ConnectionError> {
        if self.send_waiting(out) { Ok(()) } else { self.budget.spend_update() }
    }

    /// Sends content that waited for the connection's window, one frame of each stream in turn. Returns
    /// `true` if there was some.
    fn send_waiting(&mut self, out: &mut Vec<u8>) -> bool {
        let before = out.len();
        while let Some(ticket) = self.outflow.next_turn() {
            self.outflow.turn(ticket, &mut self.slots[ticket as usize].flow, &self.peer, out);
        }
        let sends = out.len() > before;
        if sends {
            self.budget.renew();
        }
        sends
    }
}
