//! Damaged requests, for servers.

use plimsoll_core::Random;

/// Good requests to damage, and the server that they are for.
#[derive(Clone, Debug)]
pub struct DamagedRequests {
    /// The name of the server: `sink`, or the subcommand of `plimsoll target`.
    pub server: &'static str,
    /// Good requests.
    pub requests: Vec<Vec<u8>>,
    /// A good request between damaged ones, on a connection of its own.
    pub probe: &'static [u8],
    /// First bytes of the answer to the probe.
    pub answer: &'static [u8],
}

/// A request of HTTP/1.1 with a body.
fn http(head: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    [format!("{head}\r\nhost: a\r\ncontent-length: {length}\r\n\r\n").as_bytes(), body].concat()
}

/// Returns requests for the sink, of HTTP/1.1 and of HTTP/2.
pub fn sink_requests() -> DamagedRequests {
    DamagedRequests {
        server: "sink",
        probe: b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
        answer: b"HTTP/1.1 200 ",
        requests: vec![
            b"GET / HTTP/1.1\r\nhost: a\r\n\r\n".to_vec(),
            http("POST /echo HTTP/1.1", b"hello"),
            b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nt: v\r\n\r\n"
                .to_vec(),
            b"GET /?a=b&c=%20 HTTP/1.1\r\nhost: a\r\ncookie: a=b; c=d\r\naccept-encoding: gzip\r\nexpect: 100-continue\r\nconnection: keep-alive, upgrade\r\nupgrade: h2c\r\n\r\n"
                .to_vec(),
            preface(&[
                (4, 0, 0, &[0, 3, 0, 0, 0, 100, 0, 4, 0, 1, 0, 0]),
                // GET / of http at the authority `a`.
                (1, 5, 1, &[0x82, 0x84, 0x86, 0x41, 1, b'a']),
                (8, 0, 0, &[0, 1, 0, 0]),
                (1, 4, 3, &[0x83, 0x84, 0x86, 0x41, 1, b'a', 0x0f, 0x0d, 1, b'5']),
                (0, 1, 3, b"hello"),
                (6, 0, 0, &[7; 8]),
            ]),
        ],
    }
}

/// Returns requests for the store to ingest into: batches in HTTP/1.1.
pub fn ingest_requests() -> DamagedRequests {
    DamagedRequests {
        server: "ingest",
        probe: b"GET /health HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
        answer: b"HTTP/1.1 200 ",
        requests: vec![
            http("POST /api/v2/write?bucket=b&precision=ms HTTP/1.1", b"m,a=b v=1,w=2i,s=\"x\" 1700000000000\nm v=2 1\n"),
            http("POST /api/v1/write/msgpack HTTP/1.1", b"\x82\xa1m\xa3cpu\xa7columns\x82\xa4time\x91\xcf\0\0\x01\x8b\xcf\xe5h\0\xa5value\x91\xcb@\x09!\xfbTD-\x18"),
            http("POST /api/v1/query HTTP/1.1\r\ncontent-type: application/json", b"{\"sql\":\"SELECT 1\"}"),
            http("POST /_bulk HTTP/1.1\r\ncontent-type: application/x-ndjson", b"{\"create\":{\"_index\":\"m\"}}\n{\"@timestamp\":1700000000000,\"v\":1}\n"),
            http("POST /v1/metrics HTTP/1.1\r\ncontent-type: application/x-protobuf", b"\x0a\x08\x0a\x00\x12\x04\x0a\x00\x12\x00"),
            http("POST /loki/api/v1/push HTTP/1.1\r\ncontent-type: application/json", b"{\"streams\":[{\"stream\":{\"a\":\"b\"},\"values\":[[\"1700000000000000000\",\"line\"]]}]}"),
            b"GET /health HTTP/1.1\r\nhost: a\r\n\r\n".to_vec(),
        ],
    }
}

fn preface(frames: &[(u8, u8, u32, &[u8])]) -> Vec<u8> {
    let mut bytes = crate::http2::PREFACE.to_vec();
    for (kind, flags, stream, payload) in frames {
        crate::http2::frame::put_frame(&mut bytes, *kind, *flags, *stream, payload);
    }
    bytes
}

/// Pieces that parsers stumble over.
const WORDS: [&[u8]; 18] = [
    b"\0",
    b"\r",
    b"\n",
    b"\r\n",
    b"\r\n\r\n",
    b": ",
    b"-1",
    b"18446744073709551616",
    b"9223372036854775807",
    b"99999999999999999999999999999999",
    b"content-length: 7\r\n",
    b"transfer-encoding: chunked\r\n",
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\x80\x80\x80\x80\x80",
    b"\"\\u0000",
    b"[[[[[[[[[[[[[[[[",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
];

/// The kinds of damage done to a request, for a report: one bit each.
pub type Damage = u32;

/// Damages a request in one to four ways. The same random numbers damage it in the same way.
pub fn mutate(random: &mut Random, request: &[u8]) -> (Vec<u8>, Damage) {
    let mut bytes = request.to_vec();
    let mut damage = 0;
    for _ in 0..1 + random.below(4) {
        let length = bytes.len();
        let at = random.below(length as u64 + 1) as usize;
        let to = (at + 1 + random.below(16) as usize).min(length);
        let kind = random.below(7);
        match kind {
            0 if at < length => bytes[at] ^= 1 << random.below(8),
            1 if at < length => bytes[at] = random.bits() as u8,
            2 => drop(bytes.splice(at..at, WORDS[random.below(WORDS.len() as u64) as usize].iter().copied())),
            3 if at < to => drop(bytes.drain(at..to)),
            4 if at < to => {
                let part = bytes[at..to].repeat(1 + random.below(40) as usize);
                bytes.splice(at..at, part);
            }
            5 => bytes.truncate(at),
            _ => bytes.insert(at, random.bits() as u8),
        }
        damage |= 1 << kind;
    }
    (bytes, damage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_repeatable_and_of_every_kind() {
        let requests = sink_requests().requests;
        let damaged = |seed| {
            let mut random = Random::new(seed, 0);
            (0..500).map(|n| mutate(&mut random, &requests[n % requests.len()])).collect::<Vec<_>>()
        };
        assert_eq!(damaged(1), damaged(1));
        assert_ne!(damaged(1), damaged(2));
        assert_eq!(damaged(1).iter().fold(0, |kinds, (_, damage)| kinds | damage), 0b111_1111);
    }
}
