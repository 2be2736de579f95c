//! The Huffman code of strings (RFC 7541 section 5.2 and Appendix B).
//!
//! The code is canonical: within one length the codes count up in the order of the symbols, and each length
//! begins where the one before it ended. So only the lengths are listed here; codes and the table of the
//! decoder follow from them at compile time.

/// Bits that one step of the decoder looks at. Two of the usual symbols (5 to 7 bits) fit more often than
/// not, and the table (16 KiB) still leaves most of a first-level cache to others.
const STEP_BITS: u32 = 12;
/// Length of the longest code, in bits: that of EOS and of three symbols.
const LONGEST: u32 = 30;
/// Length of the shortest code, in bits.
const SHORTEST: usize = 5;

/// Lengths of the codes of the symbols 0 to 255, in bits. The symbol 256, EOS, has the last code of 30 bits.
#[rustfmt::skip]
static LENGTHS: [u8; 256] = CODE_LENGTHS;

#[rustfmt::skip]
const CODE_LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];

/// The code, seen from its lengths.
struct CanonicalCode {
    /// Of each length: its first code.
    first: [u32; LONGEST as usize + 1],
    /// Of each length: how many symbols have it; EOS is not counted, so that it is never found.
    count: [u32; LONGEST as usize + 1],
    /// Of each length: where its symbols begin in `symbols`.
    offset: [u32; LONGEST as usize + 1],
    /// The symbols in the order of their codes.
    symbols: [u8; 256],
}

static CANON: CanonicalCode = CANON_VALUE;
const CANON_VALUE: CanonicalCode = canon();

const fn canon() -> CanonicalCode {
    let mut canon = CanonicalCode { first: [0; 31], count: [0; 31], offset: [0; 31], symbols: [0; 256] };
    let (mut code, mut placed, mut length) = (0, 0, 1);
    while length <= LONGEST as usize {
        code <<= 1;
        canon.first[length] = code;
        canon.offset[length] = placed;
        let mut symbol = 0;
        while symbol < 256 {
            if CODE_LENGTHS[symbol] as usize == length {
                canon.symbols[placed as usize] = symbol as u8;
                placed += 1;
                code += 1;
            }
            symbol += 1;
        }
        canon.count[length] = placed - canon.offset[length];
        length += 1;
    }
    canon
}

/// The codes of the symbols, in their lowest bits.
static CODES: [u32; 256] = codes();

const fn codes() -> [u32; 256] {
    let mut codes = [0; 256];
    let mut length = 1;
    while length <= LONGEST as usize {
        let mut nth = 0;
        while nth < CANON_VALUE.count[length] {
            let symbol = CANON_VALUE.symbols[(CANON_VALUE.offset[length] + nth) as usize];
            codes[symbol as usize] = CANON_VALUE.first[length] + nth;
            nth += 1;
        }
        length += 1;
    }
    codes
}

/// The decoder's action for one value of the next [`STEP_BITS`] bits.
#[derive(Clone, Copy)]
struct Step {
    /// The one or two symbols whose codes are whole within the bits, the first in the lower byte.
    symbols: u16,
    /// Number of symbols; 0 if the first code is longer.
    count: u8,
    /// Bits that the symbols take.
    bits: u8,
}

static STEPS: [Step; 1 << STEP_BITS] = steps();

const fn steps() -> [Step; 1 << STEP_BITS] {
    let mut steps = [Step { symbols: 0, count: 0, bits: 0 }; 1 << STEP_BITS];
    let mut index = 0;
    while index < steps.len() {
        let mut used = 0;
        let mut count = 0;
        while count < 2 {
            // The symbol at the front of the bits that are left, if its code is whole there.
            let left = STEP_BITS - used;
            let bits = index as u32 & ((1 << left) - 1);
            let mut length = SHORTEST as u32;
            while length <= left {
                let nth = (bits >> (left - length)).wrapping_sub(CANON_VALUE.first[length as usize]);
                if nth < CANON_VALUE.count[length as usize] {
                    let place = CANON_VALUE.offset[length as usize] + nth;
                    steps[index].symbols |= (CANON_VALUE.symbols[place as usize] as u16) << (8 * count);
                    break;
                }
                length += 1;
            }
            if length > left {
                break;
            }
            used += length;
            count += 1;
        }
        steps[index].count = count as u8;
        steps[index].bits = used as u8;
        index += 1;
    }
    steps
}

/// The most bytes that [`decode`] writes for `length` bytes of code, and room for its last whole word.
pub(super) const fn decoded_room(length: usize) -> usize {
    length * 8 / SHORTEST + size_of::<u64>()
}

/// Steps between two checks of the input: their input and their output fit into a word each.
const STEPS_AT_ONCE: usize = 4;

/// Decodes `input` to the front of `out`, which has to have [`decoded_room`], and gives the length.
/// `None` if there is EOS, or padding of more than 7 bits or of other bits than ones.
pub(super) fn decode(input: &[u8], out: &mut [u8]) -> Option<usize> {
    // The next bits, from the highest on. `held` of them count; what is below is either zero or what comes
    // there anyway.
    let (mut window, mut held) = (0_u64, 0_u32);
    let mut at = 0;
    let mut rest = input;
    while let Some(word) = rest.first_chunk() {
        window |= u64::from_be_bytes(*word) >> held;
        rest = &rest[(63 - held as usize) / 8..];
        held |= 56;
        let (mut symbols, mut count) = (0_u64, 0);
        for _ in 0..STEPS_AT_ONCE {
            let step = STEPS[(window >> (64 - STEP_BITS)) as usize];
            symbols |= u64::from(step.symbols) << (8 * count);
            count += u32::from(step.count);
            window <<= step.bits;
            held -= u32::from(step.bits);
        }
        *out.get_mut(at..)?.first_chunk_mut()? = symbols.to_le_bytes();
        at += count as usize;
        // Then the last steps have not advanced, and perhaps none has.
        if STEPS[(window >> (64 - STEP_BITS)) as usize].count == 0 && held >= LONGEST {
            let (symbol, length) = long_code(window)?;
            *out.get_mut(at)? = symbol;
            at += 1;
            window <<= length;
            held -= length;
        }
    }
    loop {
        while held < 56
            && let Some((&byte, after)) = rest.split_first()
        {
            window |= u64::from(byte) << (56 - held);
            held += 8;
            rest = after;
        }
        // Ones follow the end: the truncated part is then either padding, or a code that is longer than the
        // bits that are held.
        let padded = window | u64::MAX >> held;
        if held < 8 && padded == u64::MAX {
            return Some(at);
        }
        let step = STEPS[(padded >> (64 - STEP_BITS)) as usize];
        let (symbols, count, bits) = if step.count == 0 {
            let (symbol, bits) = long_code(padded)?;
            (u16::from(symbol), 1, bits)
        } else if u32::from(step.bits) <= held {
            (step.symbols, usize::from(step.count), u32::from(step.bits))
        } else {
            // The second of a pair was made of padding.
            (step.symbols, 1, u32::from(LENGTHS[usize::from(step.symbols as u8)]))
        };
        *out.get_mut(at..)?.first_chunk_mut()? = symbols.to_le_bytes();
        at += count;
        held = held.checked_sub(bits)?;
        window <<= bits;
    }
}

/// The symbol whose code is at the front of `window` and longer than [`STEP_BITS`], and its length. `None`
/// for EOS.
#[cold]
fn long_code(window: u64) -> Option<(u8, u32)> {
    (STEP_BITS + 1..=LONGEST).find_map(|length| {
        let nth = ((window >> (64 - length)) as u32).wrapping_sub(CANON.first[length as usize]);
        let known = nth < CANON.count[length as usize];
        known.then(|| (CANON.symbols[(CANON.offset[length as usize] + nth) as usize], length))
    })
}

/// Returns the number of bytes that `text` takes encoded.
pub(super) fn encoded_len(text: &[u8]) -> usize {
    let bits: u64 = text.iter().map(|&byte| u64::from(LENGTHS[usize::from(byte)])).sum();
    bits.div_ceil(8) as usize
}

/// Appends `text` encoded, padded with ones to a whole byte.
pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    // The bits not yet appended are the lowest `held`, always less than 32 between symbols.
    let (mut window, mut held) = (0_u64, 0_u32);
    for &byte in text {
        let length = u32::from(LENGTHS[usize::from(byte)]);
        window = window << length | u64::from(CODES[usize::from(byte)]);
        held += length;
        if held >= 32 {
            held -= 32;
            out.extend_from_slice(&((window >> held) as u32).to_be_bytes());
        }
    }
    let padded = held.next_multiple_of(8);
    window = window << (padded - held) | ((1 << (padded - held)) - 1);
    out.extend_from_slice(&(window as u32).to_be_bytes()[4 - padded as usize / 8..]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(input: &[u8]) -> Option<Vec<u8>> {
        let mut out = vec![0; decoded_room(input.len())];
        let length = decode(input, &mut out)?;
        out.truncate(length);
        Some(out)
    }

    fn encoded(text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(text, &mut out);
        assert_eq!(out.len(), encoded_len(text));
        out
    }

    /// The bits of `pieces` (value, count), one after the other, and ones to a whole byte.
    fn bits(pieces: &[(u32, u32)]) -> Vec<u8> {
        let digits = |&(value, count): &(u32, u32)| (0..count).rev().map(move |at| value >> at & 1 == 1);
        let mut all: Vec<bool> = pieces.iter().flat_map(digits).collect();
        all.resize(all.len().next_multiple_of(8), true);
        all.chunks(8).map(|byte| byte.iter().fold(0, |byte, &bit| byte << 1 | u8::from(bit))).collect()
    }

    /// Rows of RFC 7541 Appendix B, of each length.
    #[test]
    fn codes_are_those_of_the_rfc() {
        let rows = [
            (b'0', 0x0, 5),
            (b't', 0x9, 5),
            (b' ', 0x14, 6),
            (b'u', 0x2d, 6),
            (b':', 0x5c, 7),
            (b'z', 0x7b, 7),
            (b'&', 0xf8, 8),
            (b'Z', 0xfd, 8),
            (b'!', 0x3f8, 10),
            (b'?', 0x3fc, 10),
            (b'\'', 0x7fa, 11),
            (b'|', 0x7fc, 11),
            (b'#', 0xffa, 12),
            (b'>', 0xffb, 12),
            (0, 0x1ff8, 13),
            (b'~', 0x1ffd, 13),
            (b'^', 0x3ffc, 14),
            (b'<', 0x7ffc, 15),
            (b'{', 0x7ffe, 15),
            (b'\\', 0x7fff0, 19),
            (195, 0x7fff1, 19),
            (128, 0xfffe6, 20),
            (153, 0x1fffdc, 21),
            (129, 0x3fffd2, 22),
            (1, 0x7fffd8, 23),
            (9, 0xffffea, 24),
            (199, 0x1ffffec, 25),
            (192, 0x3ffffe0, 26),
            (203, 0x7ffffde, 27),
            (127, 0xffffffc, 28),
            (249, 0xffffffe, 28),
            (10, 0x3ffffffc, 30),
            (22, 0x3ffffffe, 30),
        ];
        for (symbol, code, length) in rows {
            let place = usize::from(symbol);
            assert_eq!((CODES[place], LENGTHS[place]), (code, length), "symbol {symbol}");
        }
    }

    #[test]
    fn the_code_is_complete_with_eos() {
        let share = |length: u8| 1_u64 << (LONGEST - u32::from(length));
        let all: u64 = LENGTHS.iter().map(|&length| share(length)).sum();
        assert_eq!(all + share(LONGEST as u8), 1 << LONGEST);
        let last = CANON.first[LONGEST as usize] + CANON.count[LONGEST as usize];
        assert_eq!(last, 0x3fff_ffff, "what is left is the code of EOS");
    }

    #[test]
    fn padding_is_less_than_a_byte_of_ones() {
        for symbol in 0..=255 {
            let code = (CODES[usize::from(symbol)], u32::from(LENGTHS[usize::from(symbol)]));
            let rest = 8 - code.1 % 8;
            let (ones, missing_one) = (u32::MAX >> (32 - rest), u32::MAX >> (32 - rest) << 1);
            assert_eq!(decoded(&bits(&[code])), Some(vec![symbol]));
            if rest < 8 {
                // The last bit is a zero: that is not padding, and too short for a code.
                assert_eq!(decoded(&bits(&[code, (missing_one, rest)])), None, "symbol {symbol}");
            }
            // A whole byte more.
            assert_eq!(decoded(&bits(&[code, (ones, rest), (0xff, 8)])), None, "symbol {symbol}");
        }
        assert_eq!(decoded(&[]), Some(vec![]));
        assert_eq!(decoded(&[0xff]), None);
        assert_eq!(decoded(&[0xff; 4]), None);
    }

    #[test]
    fn eos_is_refused_wherever_it_stands() {
        let (eos, zero) = ((0x3fff_ffff, 30), (0, 5));
        for before in 0..20 {
            for after in 0..20 {
                let pieces = [vec![zero; before], vec![eos], vec![zero; after]].concat();
                assert_eq!(decoded(&bits(&pieces)), None, "{before} symbols before, {after} after");
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_back(text in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(decoded(&encoded(&text)), Some(text));
        }

        #[test]
        fn any_text_is_read_back(text in "[ -~]{0,200}") {
            prop_assert_eq!(decoded(&encoded(text.as_bytes())), Some(text.into_bytes()));
        }

        /// There is one encoding of a text: decoding and encoding are inverse.
        #[test]
        fn what_is_decoded_is_encoded_to_the_same(input in prop::collection::vec(any::<u8>(), 0..12)) {
            if let Some(text) = decoded(&input) {
                prop_assert_eq!(encoded(&text), input);
            }
        }
    }
}
