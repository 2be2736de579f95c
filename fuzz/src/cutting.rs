//! The first bytes of an input choose limits and cuts for the rest of it.

use plimsoll_wire::http1::Limits;

/// Number of bytes at the front of an input that hold choices.
const CHOICE_BYTES: usize = 4;

/// One input, taken apart.
#[derive(Debug)]
pub struct Cutting<'d> {
    /// The limits of heads.
    pub limits: Limits,
    /// Bits for the other choices of a target.
    pub choices: u8,
    /// The byte stream.
    pub stream: &'d [u8],
    steps: [u8; 2],
}

impl<'d> Cutting<'d> {
    /// `None` if there are too few bytes.
    pub fn new(data: &'d [u8]) -> Option<Self> {
        let (choice, stream) = data.split_at_checked(CHOICE_BYTES)?;
        let limits = match choice[0] {
            0..0x80 => Limits::default(),
            narrow => Limits {
                head_bytes: usize::from(narrow & 0x7f),
                headers: usize::from(choice[1] >> 5),
                interim: u32::from(choice[1] >> 4 & 3),
            },
        };
        Some(Self { limits, choices: choice[1], stream, steps: [choice[2], choice[3]] })
    }

    /// The stream in pieces of two alternating sizes from 1 to 256 bytes.
    pub fn pieces(&self) -> impl Iterator<Item = &'d [u8]> {
        let (mut rest, steps) = (self.stream, self.steps);
        (0..).map_while(move |index: usize| {
            let size = (usize::from(steps[index % 2]) + 1).min(rest.len());
            let (piece, later) = rest.split_at(size);
            rest = later;
            (!piece.is_empty()).then_some(piece)
        })
    }
}
