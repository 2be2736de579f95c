//! Parts of a result on their way: cut into pieces, numbered, repeated until they have arrived.
//!
//! A part is the run of the agent as saved so far, and so contains everything of the parts before it. One
//! number therefore says what has arrived, the loss of a part costs nothing once a later one is there, and
//! neither reordering nor duplicates can change the result.

use plimsoll_core::Nanos;

use crate::message::{End, Piece};

/// Longest piece in bytes: a quarter of what a NATS server takes in one message.
pub(crate) const PIECE_BYTES: usize = 256 << 10;
/// Time after which a part is sent again if its arrival was not confirmed.
const REPEAT: Nanos = Nanos::from_secs(2);

/// The latest part of an agent, until it has arrived.
#[derive(Debug, Default)]
pub struct PartOutbox {
    /// Number of the latest part.
    number: u64,
    part: Vec<u8>,
    end: Option<End>,
    arrived: u64,
    sent: Option<Nanos>,
}

impl PartOutbox {
    /// Takes the next part, which contains all earlier ones. The last one says how the run ended.
    pub fn offer(&mut self, part: Vec<u8>, end: Option<End>) {
        self.number += 1;
        (self.part, self.end, self.sent) = (part, end, None);
    }

    /// Notes that this part, and so all before it, has arrived.
    pub fn note_arrived(&mut self, number: u64) {
        self.arrived = self.arrived.max(number.min(self.number));
    }

    /// Returns `true` if nothing is on its way.
    pub const fn is_idle(&self) -> bool {
        self.arrived == self.number
    }

    /// Returns `true` if the last part has arrived.
    pub const fn is_finished(&self) -> bool {
        self.end.is_some() && self.is_idle()
    }

    /// The pieces to be sent now.
    pub fn due(&mut self, now: Nanos) -> Vec<(Piece, Vec<u8>)> {
        if self.is_idle() || self.sent.is_some_and(|sent| now.since(sent) < REPEAT) {
            return Vec::new();
        }
        self.sent = Some(now);
        let chunks: Vec<&[u8]> = match self.part.as_slice() {
            [] => vec![&[]],
            part => part.chunks(PIECE_BYTES).collect(),
        };
        let pieces = chunks.len() as u32;
        let piece = |(number, chunk): (u32, &&[u8])| {
            let piece = Piece { part: self.number, piece: number, pieces, end: self.end.clone() };
            (piece, chunk.to_vec())
        };
        (0_u32..).zip(&chunks).map(piece).collect()
    }
}

/// The parts of an agent as they arrive.
#[derive(Debug, Default)]
pub struct PartInbox {
    /// Number of the last complete part.
    arrived: u64,
    part: Vec<u8>,
    end: Option<End>,
    /// The part of which some pieces are there.
    growing: Option<Growing>,
}

#[derive(Debug)]
struct Growing {
    number: u64,
    pieces: Vec<Option<Vec<u8>>>,
}

impl PartInbox {
    /// Takes a piece. Returns `true` if it completes a part.
    pub fn take(&mut self, piece: &Piece, bytes: &[u8]) -> bool {
        let is_known = piece.part <= self.arrived || piece.piece >= piece.pieces;
        if is_known || self.growing.as_ref().is_some_and(|growing| growing.number > piece.part) {
            return false;
        }
        let is_other =
            |growing: &Growing| growing.number != piece.part || growing.pieces.len() != piece.pieces as usize;
        if self.growing.as_ref().is_none_or(is_other) {
            let pieces = vec![None; piece.pieces as usize];
            self.growing = Some(Growing { number: piece.part, pieces });
        }
        let Some(growing) = &mut self.growing else { return false };
        growing.pieces[piece.piece as usize] = Some(bytes.to_vec());
        if growing.pieces.iter().any(Option::is_none) {
            return false;
        }
        self.part = growing.pieces.drain(..).flatten().flatten().collect();
        (self.arrived, self.end, self.growing) = (piece.part, piece.end.clone(), None);
        true
    }

    /// Number of the last complete part; zero if there is none.
    pub const fn arrived(&self) -> u64 {
        self.arrived
    }

    /// Exit of the run, once its last part is there.
    pub const fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// The last complete part; empty if there is none.
    pub fn part(&self) -> &[u8] {
        &self.part
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::Random;

    use super::*;

    /// The last part arrives unchanged in spite of loss, reordering and duplication of its pieces.
    #[test]
    fn the_last_part_arrives_whatever_happens_to_pieces() {
        for seed in 0..200 {
            let mut random = Random::new(seed, 0);
            let (mut outbox, mut inbox) = (PartOutbox::default(), PartInbox::default());
            let mut wire: Vec<(Piece, Vec<u8>)> = Vec::new();
            let (mut now, mut offered) = (Nanos::ZERO, 0_u8);
            let mut content = Vec::new();
            for _ in 0..100_000 {
                now += Nanos::from_millis(100);
                if offered < 5 && random.below(20) == 0 {
                    offered += 1;
                    content = vec![offered; PIECE_BYTES * random.below(4) as usize + offered as usize];
                    outbox.offer(content.clone(), (offered == 5).then(End::default));
                }
                for sent in outbox.due(now) {
                    for _ in 0..random.below(3) {
                        wire.push(sent.clone());
                    }
                }
                if !wire.is_empty() {
                    let (piece, bytes) = wire.swap_remove(random.below(wire.len() as u64) as usize);
                    inbox.take(&piece, &bytes);
                }
                if random.below(3) == 0 {
                    outbox.note_arrived(inbox.arrived());
                }
                if outbox.is_finished() {
                    break;
                }
            }
            assert!(outbox.is_finished(), "seed {seed}");
            assert_eq!((inbox.part(), inbox.end()), (&*content, Some(&End::default())), "seed {seed}");
        }
    }

    #[test]
    fn a_run_that_left_nothing_ends_with_a_part_of_no_bytes() {
        let (mut outbox, mut inbox) = (PartOutbox::default(), PartInbox::default());
        outbox.offer(Vec::new(), Some(End { messages: vec!["error: x".to_owned()], ..End::default() }));
        for (piece, bytes) in outbox.due(Nanos::ZERO) {
            assert!(inbox.take(&piece, &bytes));
        }
        assert!(inbox.part().is_empty() && inbox.end().is_some() && inbox.arrived() == 1);
        assert!(outbox.due(Nanos::from_secs(1)).is_empty() && !outbox.due(Nanos::from_secs(2)).is_empty());
    }
}
