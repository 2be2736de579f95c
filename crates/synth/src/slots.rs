//! Words made ready to be written.

use crate::encoding::Wrapping;
use crate::lexicon::Lexicon;
use crate::pen::Pen;

/// The words of a column as a format writes them, each in a slot of the same width, with its length in the
/// last byte: to write one is to copy a number of bytes that the compiler knows.
#[derive(Debug)]
pub(crate) struct Slots {
    width: usize,
    bytes: Vec<u8>,
    dress: Wrapping,
    /// Buffer in which a word is put together, kept for its memory.
    scratch: Vec<u8>,
}

/// The widths that there is code for.
const WIDTHS: [usize; 5] = [16, 32, 64, 128, 256];
/// The widest slot: room that has to be there when a word is written.
pub(crate) const WIDEST: usize = 256;

/// Runs `$body` with the width of `$slots` as a constant.
macro_rules! with_width {
    ($slots:expr, $width:ident => $body:expr) => {
        match $slots.width {
            16 => {
                const $width: usize = 16;
                $body
            }
            32 => {
                const $width: usize = 32;
                $body
            }
            64 => {
                const $width: usize = 64;
                $body
            }
            128 => {
                const $width: usize = 128;
                $body
            }
            _ => {
                const $width: usize = 256;
                $body
            }
        }
    };
}

impl Slots {
    /// Makes all words of a lexicon ready. `spare` is how much longer a word may become later, in bytes.
    pub(crate) fn new(lexicon: &Lexicon, dress: Wrapping, spare: usize) -> Self {
        let (mut word, mut scratch) = (String::new(), Vec::new());
        let mut longest = 0;
        for index in 0..lexicon.count() {
            word.clear();
            lexicon.write(index, &mut word);
            scratch.clear();
            dress.write(&word, &mut scratch);
            longest = longest.max(scratch.len());
        }
        let needed = longest + spare + 1;
        let width =
            WIDTHS.into_iter().find(|&width| width >= needed).expect("words are shorter than 256 bytes");
        let bytes = vec![0; width * lexicon.count() as usize];
        let mut slots = Self { width, bytes, dress, scratch };
        for index in 0..lexicon.count() {
            word.clear();
            lexicon.write(index, &mut word);
            slots.set(index, &word);
        }
        slots
    }

    /// No and yes.
    pub(crate) fn of_flags(dress: Wrapping) -> Self {
        Self::new(&Lexicon::Fixed(&["false", "true"]), dress, 0)
    }

    /// Another word in place of the one number `index`.
    pub(crate) fn set(&mut self, index: u32, word: &str) {
        self.scratch.clear();
        self.dress.write(word, &mut self.scratch);
        let length = self.scratch.len();
        let slot = &mut self.bytes[index as usize * self.width..][..self.width];
        slot[..length].copy_from_slice(&self.scratch);
        slot[self.width - 1] = length as u8;
    }

    /// Writes one word; there has to be room for the widest.
    #[inline]
    pub(crate) fn copy(&self, index: u32, pen: &mut Pen) {
        with_width!(self, WIDTH => {
            let (slots, _) = self.bytes.as_chunks::<WIDTH>();
            let slot = &slots[index as usize];
            pen.chunk(slot, usize::from(slot[WIDTH - 1]));
        });
    }

    /// Writes many words.
    pub(crate) fn copy_all(&self, indices: impl ExactSizeIterator<Item = u32>, pen: &mut Pen) {
        pen.ensure(self.width * (indices.len() + 1));
        let written = with_width!(self, WIDTH => {
            copy_all::<WIDTH>(self.bytes.as_chunks().0, indices, pen.room())
        });
        pen.advance(written);
    }
}

/// Copies slots one after another and returns how many bytes that were.
fn copy_all<const WIDTH: usize>(
    slots: &[[u8; WIDTH]],
    indices: impl Iterator<Item = u32>,
    room: &mut [u8],
) -> usize {
    let mut at = 0;
    for index in indices {
        let slot = &slots[index as usize];
        room[at..at + WIDTH].copy_from_slice(slot);
        at += usize::from(slot[WIDTH - 1]);
    }
    at
}
