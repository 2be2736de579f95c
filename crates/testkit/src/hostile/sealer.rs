//! Records of TLS under the keys of a connection, with any type and content: a library does not send such
//! records.

use std::io;

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use rustls::{ConnectionTrafficSecrets, ProtocolVersion, ServerConnection};

/// The type of application data, which is the outer type of every encrypted record in TLS 1.3.
const APPLICATION_DATA: u8 = 23;

/// Encrypts the output of a server.
pub(super) struct Sealer {
    key: LessSafeKey,
    iv: [u8; 12],
    sequence: u64,
    version: ProtocolVersion,
}

impl Sealer {
    /// Takes the keys of a connection whose handshake is done and all of whose records are sent.
    ///
    /// # Errors
    /// If the connection is not that far, or has other keys than those of AES-128-GCM.
    pub(super) fn of(connection: ServerConnection) -> io::Result<Self> {
        let version = connection.protocol_version().ok_or_else(|| io::Error::other("no version"))?;
        let (sequence, secrets) = connection.dangerous_extract_secrets().map_err(io::Error::other)?.tx;
        let ConnectionTrafficSecrets::Aes128Gcm { key, iv } = secrets else {
            return Err(io::Error::other("other keys than those of AES-128-GCM"));
        };
        let key = UnboundKey::new(&AES_128_GCM, key.as_ref()).map_err(io::Error::other)?;
        let iv = iv.as_ref().try_into().map_err(io::Error::other)?;
        Ok(Self { key: LessSafeKey::new(key), iv, sequence, version })
    }

    /// A record: in TLS 1.3 as RFC 8446 section 5.2 has it, in 1.2 as RFC 5288 section 3.
    pub(super) fn record(&mut self, kind: u8, content: &[u8]) -> io::Result<Vec<u8>> {
        let is_13 = self.version == ProtocolVersion::TLSv1_3;
        let mut nonce = self.iv;
        let sequence = self.sequence.to_be_bytes();
        self.sequence += 1;
        if is_13 {
            nonce.iter_mut().skip(4).zip(sequence).for_each(|(byte, mask)| *byte ^= mask);
        } else {
            nonce[4..].copy_from_slice(&sequence);
        }
        let tag = AES_128_GCM.tag_len();
        let mut sealed = content.to_vec();
        let (outer, explicit, aad): (u8, &[u8], Vec<u8>) = if is_13 {
            sealed.push(kind);
            let length = (sealed.len() + tag) as u16;
            (APPLICATION_DATA, &[], [&[APPLICATION_DATA, 3, 3][..], &length.to_be_bytes()].concat())
        } else {
            let length = (content.len() as u16).to_be_bytes();
            (kind, &sequence, [&sequence[..], &[kind, 3, 3], &length].concat())
        };
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(aad), &mut sealed)
            .map_err(io::Error::other)?;
        let length = (explicit.len() + sealed.len()) as u16;
        Ok([&[outer, 3, 3][..], &length.to_be_bytes(), explicit, &sealed].concat())
    }
}
