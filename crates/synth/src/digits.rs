//! Numbers as text.

/// The digits of the numbers below 100, two each.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// The most digits that a number of 64 bits has.
pub(crate) const DECIMAL_MAX: usize = 20;

/// The decimal digits of `number`, at the end of the array, and how many they are.
pub(crate) fn decimal(mut number: u64) -> ([u8; DECIMAL_MAX], usize) {
    let mut digits = [b'0'; DECIMAL_MAX];
    let mut at = DECIMAL_MAX;
    while number >= 100 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    at -= 2;
    digits[at..at + 2].copy_from_slice(&PAIRS[number as usize]);
    let is_one_digit = usize::from(number < 10);
    (digits, DECIMAL_MAX - at - is_one_digit)
}

/// The hexadecimal digits of `number`, all of them. Four bytes are spread to eight, then every half byte
/// becomes its digit, eight at a time.
pub(crate) fn hexadecimal(number: u64) -> [u8; 16] {
    let mut digits = [0; 16];
    digits[..8].copy_from_slice(&eight_digits((number >> 32) as u32).to_be_bytes());
    digits[8..].copy_from_slice(&eight_digits(number as u32).to_be_bytes());
    digits
}

fn eight_digits(number: u32) -> u64 {
    let mut nibbles = u64::from(number);
    nibbles = (nibbles << 16 | nibbles) & 0x0000_ffff_0000_ffff;
    nibbles = (nibbles << 8 | nibbles) & 0x00ff_00ff_00ff_00ff;
    nibbles = (nibbles << 4 | nibbles) & 0x0f0f_0f0f_0f0f_0f0f;
    // 10 to 15 carry into the upper half with 6 added; `a` is 39 further than `:`.
    let letters = ((nibbles + 0x0606_0606_0606_0606) >> 4) & 0x0101_0101_0101_0101;
    nibbles + 0x3030_3030_3030_3030 + letters * 39
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_standard_library() {
        let powers = (0..20).flat_map(|power| [10_u64.pow(power) - 1, 10_u64.pow(power)]);
        for number in powers.chain([42, u64::MAX, 0x0123_4567_89ab_cdef]) {
            let (digits, count) = decimal(number);
            assert_eq!(&digits[DECIMAL_MAX - count..], number.to_string().as_bytes());
            assert_eq!(hexadecimal(number), format!("{number:016x}").as_bytes());
        }
    }
}
