//! DER (X.690), as far as keys need it.

/// INTEGER.
pub(crate) const INTEGER: u8 = 0x02;
/// BIT STRING.
pub(crate) const BIT_STRING: u8 = 0x03;
/// OCTET STRING.
pub(crate) const OCTET_STRING: u8 = 0x04;
/// OBJECT IDENTIFIER.
pub(crate) const OID: u8 = 0x06;
/// SEQUENCE.
pub(crate) const SEQUENCE: u8 = 0x30;

/// 1.3.101.112, Ed25519 (RFC 8410).
pub(crate) const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
/// 1.2.840.10045.2.1, a key on an elliptic curve (RFC 5480).
pub(crate) const EC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
/// 1.3.132.0.10, the curve secp256k1 (SEC 2).
pub(crate) const SECP256K1: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x0a];
/// 1.2.840.10045.3.1.7, the curve P-256 (RFC 5480).
pub(crate) const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
/// 1.2.840.113549.1.1.1, RSA (RFC 8017).
pub(crate) const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
/// 1.3.6.1.4.1.44668.5.3.1.2.1, a BLS key of the Internet Computer (its interface specification).
pub(crate) const BLS: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x82, 0xdc, 0x7c, 0x05, 0x03, 0x01, 0x02, 0x01];
/// 1.3.6.1.4.1.44668.5.3.2.1, its curve.
pub(crate) const BLS_CURVE: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x82, 0xdc, 0x7c, 0x05, 0x03, 0x02, 0x01];

/// Reads one value of this type from the front of `input`.
pub(crate) fn take<'a>(input: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    let (&[found, first], rest) = input.split_first_chunk::<2>()?;
    if found != tag {
        return None;
    }
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
            (digits.iter().fold(0, |length, &digit| length << 8 | usize::from(digit)), rest)
        }
        _ => return None,
    };
    let (value, rest) = rest.split_at_checked(length)?;
    *input = rest;
    Some(value)
}

/// One value; of fewer than 2^16 bytes.
pub(crate) fn value(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let mut out = vec![tag];
    match u16::try_from(content.len()).unwrap_or(u16::MAX) {
        short @ 0..0x80 => out.push(short as u8),
        long @ 0x80..0x100 => out.extend_from_slice(&[0x81, long as u8]),
        longer => {
            out.push(0x82);
            out.extend_from_slice(&longer.to_be_bytes());
        }
    }
    out.extend_from_slice(&content);
    out
}

/// A SubjectPublicKeyInfo (RFC 5280): the algorithm with its parameters, and the key.
pub(crate) fn public_key(algorithm: &[u8], parameter: Option<&[u8]>, key: &[u8]) -> Vec<u8> {
    let parameter = parameter.map(|parameter| value(OID, &[parameter])).unwrap_or_default();
    let algorithm = value(SEQUENCE, &[&value(OID, &[algorithm]), &parameter]);
    // No bit of the last byte is unused.
    value(SEQUENCE, &[&algorithm, &value(BIT_STRING, &[&[0], key])])
}

/// The key within a SubjectPublicKeyInfo of this algorithm and parameter.
pub(crate) fn key_of<'a>(mut der: &'a [u8], algorithm: &[u8], parameter: Option<&[u8]>) -> Option<&'a [u8]> {
    let mut info = take(&mut der, SEQUENCE)?;
    let mut named = take(&mut info, SEQUENCE)?;
    let same = take(&mut named, OID)? == algorithm
        && match parameter {
            Some(parameter) => take(&mut named, OID)? == parameter,
            None => true,
        };
    let (&unused, key) = take(&mut info, BIT_STRING)?.split_first()?;
    (same && named.is_empty() && info.is_empty() && der.is_empty() && unused == 0).then_some(key)
}
