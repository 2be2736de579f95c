//! Violations, each by its name, however its bytes are cut.

use plimsoll_wire::websocket::{MessageReader, Opcode, Role, WebSocketError, write_frame};

use crate::websocket::{Told, read};

const LIMIT: usize = 1000;

#[test]
fn violations_of_a_server_are_named() {
    let long = {
        let mut bytes = Vec::new();
        write_frame(true, Opcode::Binary, None, &[0; LIMIT + 1], &mut bytes);
        bytes
    };
    let half_long = {
        let mut bytes = Vec::new();
        write_frame(false, Opcode::Binary, None, &[0; LIMIT], &mut bytes);
        write_frame(true, Opcode::Continuation, None, &[0; 1], &mut bytes);
        bytes
    };
    let huge = [0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0];
    let cases: &[(&[u8], WebSocketError)] = &[
        (&[0x81, 0x80, 1, 2, 3, 4], WebSocketError::Masked),
        (&[0xc1, 0], WebSocketError::ReservedBits),
        (&[0xa1, 0], WebSocketError::ReservedBits),
        (&[0x91, 0], WebSocketError::ReservedBits),
        (&[0x83, 0], WebSocketError::Opcode(3)),
        (&[0x8b, 0], WebSocketError::Opcode(11)),
        (&[0x09, 0], WebSocketError::FragmentedControl),
        (&[0x89, 126, 0, 126], WebSocketError::LongControl),
        (&[0x80, 0], WebSocketError::NothingToContinue),
        (&[0x01, 1, b'a', 0x81, 1, b'b'], WebSocketError::Interleaved),
        (&[0x82, 126, 0, 125], WebSocketError::Length),
        (&[0x82, 127, 0, 0, 0, 0, 0, 0, 255, 255], WebSocketError::Length),
        (&huge, WebSocketError::Length),
        (&long, WebSocketError::TooLong),
        (&half_long, WebSocketError::TooLong),
        (&[0x81, 1, 0xff], WebSocketError::NotUtf8),
        (&[0x81, 2, 0xc3, 0x28], WebSocketError::NotUtf8),
        (&[0x81, 1, 0xc3], WebSocketError::NotUtf8),
        (&[0x01, 1, 0xc3, 0x80, 1, 0x28], WebSocketError::NotUtf8),
        (&[0x88, 1, 3], WebSocketError::ShortClose),
        (&[0x88, 2, 3, 0xed], WebSocketError::CloseCode(1005)),
        (&[0x88, 3, 3, 0xe8, 0xff], WebSocketError::NotUtf8),
    ];
    for (bytes, error) in cases {
        for size in [1, 2, 3, 7, 10_000] {
            let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
            assert_eq!(
                read(Role::Client, &pieces, LIMIT).1,
                Some(*error),
                "{} by {size}",
                bytes.escape_ascii()
            );
        }
        assert!(!error.to_string().is_empty());
        assert!([1002, 1007, 1009].contains(&error.close_code()));
    }
    assert_eq!(read(Role::Server, &[&[0x81, 0]], LIMIT).1, Some(WebSocketError::Unmasked));
}

/// A ping, a message or a second close frame behind the first one counted as a violation.
/// Symptom: a server kept a worker busy until the timeout, and sent nothing.
#[test]
fn fragments_without_a_byte_have_an_end() {
    let mut reader = MessageReader::new(Role::Client, 100);
    let (mut input, mut into) = (&b"\x01\x01a"[..], Vec::new());
    assert_eq!(reader.next(&mut input, &mut into), Ok(None));
    let ended = (0..1_000_000).find_map(|number| {
        let mut input = &b"\x00\x00"[..];
        reader.next(&mut input, &mut into).err().map(|error| (number, error))
    });
    assert_eq!(ended, Some((100_000, WebSocketError::EmptyFragments)));
}

#[test]
fn bytes_behind_the_close_frame_are_discarded() {
    for after in [&[0x89, 0][..], &[0x81, 1, b'a'], &[0x88, 0], &[0x80, 1, b'b'], &[0xff; 20], &[0x81]] {
        let bytes = [&[0x01, 1, b'a', 0x88, 2, 3, 0xe8], after].concat();
        for size in [1, 3, 100] {
            let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
            let expected = vec![Told::Close(Some(1000), String::new())];
            assert_eq!(read(Role::Client, &pieces, LIMIT), (expected, None), "{}", bytes.escape_ascii());
        }
    }
}

#[test]
fn letters_may_be_cut_by_fragments() {
    let letter = "é".as_bytes();
    let bytes = [0x01, 1, letter[0], 0x89, 1, b'p', 0x80, 2, letter[1], b'!'];
    let expected = [Told::Ping(b"p".to_vec()), Told::Text("é!".to_owned())];
    for size in [1, 4, 100] {
        let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
        assert_eq!(read(Role::Client, &pieces, LIMIT), (expected.to_vec(), None));
    }
}

#[test]
fn a_text_that_cannot_become_one_is_refused_before_its_end() {
    // A long text whose third byte is wrong, and of which no more has come.
    let bytes = [0x81, 126, 1, 0, b'a', b'b', 0xff];
    assert_eq!(read(Role::Client, &[&bytes], LIMIT).1, Some(WebSocketError::NotUtf8));
}

#[test]
fn a_message_as_long_as_the_limit_is_read() {
    let mut bytes = Vec::new();
    write_frame(true, Opcode::Binary, Some([1, 2, 3, 4]), &[7; LIMIT], &mut bytes);
    assert_eq!(
        read(Role::Server, &[&bytes[..500], &bytes[500..]], LIMIT),
        (vec![Told::Binary(vec![7; LIMIT])], None)
    );
    assert_eq!(read(Role::Server, &[&bytes], LIMIT), (vec![Told::Binary(vec![7; LIMIT])], None));
}
