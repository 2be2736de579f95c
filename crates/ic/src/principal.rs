//! Principals: the sender of a call, and its canister.

use std::fmt;
use std::str::FromStr;

/// Most bytes of a principal.
const MAX_BYTES: usize = 29;
/// RFC 4648 section 6, in lower case.
const BASE32: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// Prefix of the text of a principal in the old form.
const OLD_FORM: &str = "ic:";
/// A self-authenticating principal: the hash of a public key, and its kind.
const SELF_AUTHENTICATING: u8 = 2;
/// The anonymous principal, which is its kind.
const ANONYMOUS: u8 = 4;

/// A principal: up to 29 bytes that name a user or a canister. The default one is the management canister.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Principal {
    /// The used bytes, padded with zeros.
    bytes: [u8; MAX_BYTES],
    length: u8,
}

/// Reason why a text names no principal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPrincipal {
    /// Description of the problem, with the text that was given.
    pub problem: String,
    /// Advice on how to fix it.
    pub hint: &'static str,
}

impl fmt::Display for BadPrincipal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for BadPrincipal {}

impl Principal {
    /// The management canister, `aaaaa-aa`: no bytes at all.
    pub const fn management() -> Self {
        Self { bytes: [0; MAX_BYTES], length: 0 }
    }

    /// The sender without a key, `2vxsx-fae`.
    pub const fn anonymous() -> Self {
        let mut bytes = [0; MAX_BYTES];
        bytes[0] = ANONYMOUS;
        Self { bytes, length: 1 }
    }

    /// The owner of the private key for this public key, given as DER (SubjectPublicKeyInfo).
    pub fn self_authenticating(public_key_der: &[u8]) -> Self {
        use sha2::Digest as _;
        let hash: [u8; 28] = sha2::Sha224::digest(public_key_der).into();
        let mut bytes = [0; MAX_BYTES];
        bytes[..28].copy_from_slice(&hash);
        bytes[28] = SELF_AUTHENTICATING;
        Self { bytes, length: MAX_BYTES as u8 }
    }

    /// The principal of these bytes; none beyond 29 of them.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut own = [0; MAX_BYTES];
        own.get_mut(..bytes.len())?.copy_from_slice(bytes);
        // At most 29.
        Some(Self { bytes: own, length: bytes.len() as u8 })
    }

    /// Returns the bytes of the principal.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Reads the old form: `ic:`, the bytes in hexadecimal, and their CRC-8 as the last byte.
    fn from_old_form(text: &str, digits: &str) -> Result<Self, BadPrincipal> {
        let bad = |what: &str| BadPrincipal {
            problem: format!("`{text}` is not a principal: {what}"),
            hint: "the old form is `ic:` and the bytes in hexadecimal, of which the last one is the check \
                   byte, such as ic:2A012B; current principals look like rrkah-fqaaa-aaaaa-aaaaq-cai",
        };
        let bytes = unhex(digits)
            .ok_or_else(|| bad("what follows `ic:` is not an even number of hexadecimal digits"))?;
        let (&check, bytes) = bytes.split_last().ok_or_else(|| bad("nothing follows `ic:`"))?;
        if crc8(bytes) != check {
            return Err(bad("its check byte is wrong"));
        }
        Self::from_bytes(bytes).ok_or_else(|| bad("it has more than 29 bytes"))
    }
}

impl FromStr for Principal {
    type Err = BadPrincipal;

    /// Reads the text of a principal: base32 of a CRC-32 and the bytes, with dashes; upper case and texts
    /// without dashes are taken too. Also the old form, `ic:` and hexadecimal digits.
    fn from_str(text: &str) -> Result<Self, BadPrincipal> {
        if let Some(digits) = text.strip_prefix(OLD_FORM) {
            return Self::from_old_form(text, digits);
        }
        let bad =
            |what: &str, hint| BadPrincipal { problem: format!("`{text}` is not a principal: {what}"), hint };
        let usual =
            "a principal looks like rrkah-fqaaa-aaaaa-aaaaq-cai (`aaaaa-aa` is the management canister)";
        if text.is_empty() {
            return Err(bad("it is empty", usual));
        }
        let (mut bytes, mut bits, mut held) = (Vec::new(), 0_u32, 0);
        for letter in text.bytes().filter(|&letter| letter != b'-') {
            let value = BASE32.iter().position(|&known| known == letter.to_ascii_lowercase());
            let Some(value) = value else {
                return Err(bad("it has other characters than a to z, 2 to 7 and dashes", usual));
            };
            // A place among 32.
            bits = bits << 5 | value as u32;
            held += 5;
            if held >= 8 {
                held -= 8;
                // The eight highest of those that are held.
                bytes.push((bits >> held) as u8);
                bits &= (1 << held) - 1;
            }
        }
        let Some((check, bytes)) = bytes.split_first_chunk::<4>() else {
            return Err(bad("it is too short", usual));
        };
        if crc32fast::hash(bytes).to_be_bytes() != *check {
            let hint = "a letter is wrong or missing: copy the whole principal once more";
            return Err(bad("its check value is wrong", hint));
        }
        let principal = Self::from_bytes(bytes).ok_or_else(|| bad("it has more than 29 bytes", usual))?;
        if bits != 0 || !principal.to_string().replace('-', "").eq_ignore_ascii_case(&text.replace('-', "")) {
            return Err(bad("it has more characters than its bytes need", usual));
        }
        Ok(principal)
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;
        let check = crc32fast::hash(self.as_bytes()).to_be_bytes();
        let (mut bits, mut held, mut written) = (0_u32, 0, 0);
        let mut put = |index: u32| {
            if written > 0 && written % 5 == 0 {
                f.write_char('-')?;
            }
            written += 1;
            f.write_char(char::from(BASE32[(index & 31) as usize]))
        };
        for &byte in check.iter().chain(self.as_bytes()) {
            bits = bits << 8 | u32::from(byte);
            held += 8;
            while held >= 5 {
                held -= 5;
                put(bits >> held)?;
                bits &= (1 << held) - 1;
            }
        }
        if held > 0 { put(bits << (5 - held)) } else { Ok(()) }
    }
}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Principal({self})")
    }
}

/// CRC-8 with the polynomial x⁸ + x² + x + 1, which is the check byte of the old form.
fn crc8(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ byte, |crc, _| if crc & 0x80 != 0 { crc << 1 ^ 7 } else { crc << 1 })
    })
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    // Two digits of 4 bits make a byte.
    let bytes = pairs.iter().map(|&[high, low]| Some((digit(high)? << 4 | digit(low)?) as u8));
    if rest.is_empty() { bytes.collect() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_the_specification() {
        for (bytes, text) in [
            (&[][..], "aaaaa-aa"),
            (&[4], "2vxsx-fae"),
            (&[0xab, 0xcd, 0x01], "em77e-bvlzu-aq"),
            (&[0, 0, 0, 0, 0, 0, 0, 1, 1, 1], "rrkah-fqaaa-aaaaa-aaaaq-cai"),
            (&[0, 0, 0, 0, 0, 0, 0, 2, 1, 1], "ryjl3-tyaaa-aaaaa-aaaba-cai"),
        ] {
            let principal = Principal::from_bytes(bytes).unwrap();
            assert_eq!(principal.to_string(), text);
            assert_eq!(text.parse(), Ok(principal));
            assert_eq!(text.to_uppercase().parse(), Ok(principal));
        }
        assert_eq!(Principal::default(), Principal::management());
        assert_eq!(Principal::anonymous().as_bytes(), [4]);
    }

    #[test]
    fn every_length_is_read_back() {
        for length in 0..=MAX_BYTES {
            let bytes: Vec<u8> = (0..length).map(|i| (i * 37 + 200) as u8).collect();
            let principal = Principal::from_bytes(&bytes).unwrap();
            assert_eq!(principal.to_string().parse(), Ok(principal), "{length}");
        }
        assert_eq!(Principal::from_bytes(&[0; 30]), None);
    }

    #[test]
    fn the_old_form_is_its_bytes_and_a_check_byte() {
        assert_eq!("ic:2A012B".parse(), Ok(Principal::from_bytes(&[0x2a, 0x01]).unwrap()));
        assert_eq!("ic:abcd01a7".parse(), Ok(Principal::from_bytes(&[0xab, 0xcd, 0x01]).unwrap()));
        assert_eq!("ic:00".parse(), Ok(Principal::management()));
        for wrong in ["ic:", "ic:2A012C", "ic:2A012", "ic:zz", "ic:é1"] {
            let error = wrong.parse::<Principal>().unwrap_err();
            assert!(error.problem.starts_with(&format!("`{wrong}` is not a principal")), "{error}");
            assert!(error.hint.contains("ic:2A012B"));
        }
    }

    #[test]
    fn wrong_texts_are_refused_with_a_reason() {
        for (text, reason) in [
            ("", "empty"),
            ("-", "too short"),
            ("aaaa", "too short"),
            ("rrkah-fqaaa-aaaaa-aaaaq-caa", "check value"),
            ("rrkah-fqaaa-aaaaa-aaaaq-ca", "check value"),
            ("rrkah_fqaaa", "other characters"),
            ("aaaaa-aaa", "check value"),
            ("em77e-bvlzu-ar", "more characters"),
        ] {
            let error = text.parse::<Principal>().unwrap_err();
            assert!(error.problem.contains(reason), "{text}: {error}");
            assert!(!error.hint.is_empty());
        }
    }

    #[test]
    fn a_self_authenticating_principal_has_its_kind_at_its_end() {
        let principal = Principal::self_authenticating(b"key");
        assert_eq!(principal.as_bytes().len(), MAX_BYTES);
        assert_eq!(principal.as_bytes()[28], SELF_AUTHENTICATING);
        assert_ne!(principal, Principal::self_authenticating(b"another"));
    }
}
