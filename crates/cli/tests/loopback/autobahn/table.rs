//! The table: what a peer sends in each case, and what has to come back.
//!
//! Numbers, contents and expectations are those of version 25.10.1 of the suite, but for the bytes of large
//! binary messages. Its groups 12 and 13 are about compression, which is never agreed on. Cases 9.7 and 9.8
//! take 100 messages in place of 1,000.

/// One case of the suite.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// Its number, as in 7.1.5.
    pub(super) number: String,
    /// The frames that the peer sends at once.
    pub(super) frames: Vec<Frame>,
    /// Bytes of a write, if they are not written at once.
    pub(super) chop: usize,
    /// Repetitions of the frames, each of which waits for the answers to those before.
    pub(super) rounds: usize,
    /// Everything that comes back in each round, in its order.
    pub(super) answers: Vec<Answer>,
    pub(super) end: End,
}

/// A frame, or the beginning of one.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    /// The first byte: the last fragment or not, reserved bits, and the opcode.
    pub(super) first: u8,
    /// The length that its head says.
    pub(super) length: usize,
    /// The payload, or as much of it as is sent.
    pub(super) payload: Vec<u8>,
}

/// Something that comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Text(Vec<u8>),
    Binary(Vec<u8>),
    Pong(Vec<u8>),
}

/// The end of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The peer closes with 1000 when all answers have come, and gets a close frame with 1000.
    Close,
    /// The frames of the peer close, and the close frame that answers has one of these statuses, or none.
    Closed(&'static [u16]),
    /// The peer has broken a rule: its connection ends, and the close frame before that has one of these
    /// statuses, if there is one.
    Failed(&'static [u16]),
}

const FIN: u8 = 0x80;
const MORE: u8 = 0;
const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

const VIOLATION: End = End::Failed(&[1002]);
const NOT_UTF8: End = End::Failed(&[1007]);
const CLOSED: End = End::Closed(&[1000]);

const HELLO: &[u8] = b"Hello, world!";
/// A word of Greek letters.
const KOSME: &[u8] = b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5";

fn frame(first: u8, payload: impl AsRef<[u8]>) -> Frame {
    let payload = payload.as_ref().to_vec();
    Frame { first, length: payload.len(), payload }
}

/// A close frame with a status.
fn close(code: u16, reason: &[u8]) -> Frame {
    frame(FIN | CLOSE, [&code.to_be_bytes(), reason].concat())
}

/// A message in fragments of these lengths at most.
fn fragments(opcode: u8, message: &[u8], length: usize) -> Vec<Frame> {
    let count = message.chunks(length).count();
    let fragment = |(number, bytes): (usize, &[u8])| {
        let fin = if number + 1 == count { FIN } else { MORE };
        frame(fin | if number == 0 { opcode } else { CONTINUATION }, bytes)
    };
    message.chunks(length).enumerate().map(fragment).collect()
}

fn text(bytes: impl AsRef<[u8]>) -> Answer {
    Answer::Text(bytes.as_ref().to_vec())
}

fn pong(bytes: impl AsRef<[u8]>) -> Answer {
    Answer::Pong(bytes.as_ref().to_vec())
}

impl Case {
    fn new(number: impl Into<String>, frames: Vec<Frame>, answers: Vec<Answer>, end: End) -> Self {
        Self { number: number.into(), frames, chop: usize::MAX, rounds: 1, answers, end }
    }

    fn chopped(self, chop: usize) -> Self {
        Self { chop, ..self }
    }

    /// A message that comes back.
    fn echo(number: String, opcode: u8, message: Vec<u8>) -> Self {
        Self::fragmented(number, opcode, message, usize::MAX)
    }

    /// A message in fragments that comes back.
    fn fragmented(number: String, opcode: u8, message: Vec<u8>, length: usize) -> Self {
        let frames = match message.is_empty() {
            true => vec![frame(FIN | opcode, b"")],
            false => fragments(opcode, &message, length),
        };
        let answer = if opcode == TEXT { Answer::Text(message) } else { Answer::Binary(message) };
        Self::new(number, frames, vec![answer], End::Close)
    }

    /// The message that has to come back, if no variable of a plan can hold it: it has control characters, or
    /// is longer than bodies that are read.
    pub(super) fn message_for_a_file(&self) -> Option<&[u8]> {
        const LONGEST: usize = 16 << 20;
        let content = self.answers.iter().find_map(|answer| match answer {
            Answer::Text(bytes) | Answer::Binary(bytes) => Some(&bytes[..]),
            Answer::Pong(_) => None,
        })?;
        let is_long = content.len() >= LONGEST;
        (is_long || content.iter().any(u8::is_ascii_control)).then_some(content)
    }

    /// Returns `true` if a message that is not text has to come back.
    pub(super) fn is_binary(&self) -> bool {
        self.answers.iter().any(|answer| matches!(answer, Answer::Binary(_)))
    }
}

/// Every case.
pub(super) fn cases() -> Vec<Case> {
    [
        framing(),
        pings(),
        reserved_bits(),
        opcodes(),
        fragmentation(),
        texts(),
        letters(),
        closes(),
        sizes(),
        vec![Case::fragmented("10.1.1".to_owned(), TEXT, vec![b'*'; 65_536], 1_300)],
    ]
    .concat()
}

/// Group 1: messages of one frame.
fn framing() -> Vec<Case> {
    let lengths = [0, 125, 126, 127, 128, 65_535, 65_536, 65_536];
    let mut all = Vec::new();
    for (group, opcode, byte) in [(1, TEXT, b'*'), (2, BINARY, 0xfe)] {
        for (number, length) in (1..).zip(lengths) {
            let case = Case::echo(format!("1.{group}.{number}"), opcode, vec![byte; length]);
            all.push(if number == 8 { case.chopped(997) } else { case });
        }
    }
    all
}

/// Group 2: pings and pongs.
fn pings() -> Vec<Case> {
    const UNASKED: &[u8] = b"unsolicited pong payload";
    let ping = |payload: &[u8]| frame(FIN | PING, payload);
    let answered = |number: &str, payload: &[u8]| {
        Case::new(number, vec![ping(payload)], vec![pong(payload)], End::Close)
    };
    let payloads: Vec<String> = (0..10).map(|number| format!("payload-{number}")).collect();
    let many = |number: &str| {
        let pings = payloads.iter().map(|payload| ping(payload.as_bytes())).collect();
        Case::new(number, pings, payloads.iter().map(pong).collect(), End::Close)
    };
    vec![
        answered("2.1", b""),
        answered("2.2", HELLO),
        answered("2.3", b"\x00\xff\xfe\xfd\xfc\xfb\x00\xff"),
        answered("2.4", &[0xfe; 125]),
        Case::new("2.5", vec![ping(&[0xfe; 126])], vec![], VIOLATION),
        answered("2.6", &[0xfe; 125]).chopped(1),
        Case::new("2.7", vec![frame(FIN | PONG, b""), close(1000, b"")], vec![], CLOSED),
        Case::new("2.8", vec![frame(FIN | PONG, UNASKED), close(1000, b"")], vec![], CLOSED),
        Case::new(
            "2.9",
            vec![frame(FIN | PONG, UNASKED), ping(b"ping payload")],
            vec![pong(b"ping payload")],
            End::Close,
        ),
        many("2.10"),
        many("2.11").chopped(1),
    ]
}

/// A message, then a frame that breaks a rule, and a ping that is not answered any more.
fn broken(number: &str, bad: Frame) -> Case {
    let frames = vec![frame(FIN | TEXT, HELLO), bad, frame(FIN | PING, b"")];
    Case::new(number, frames, vec![text(HELLO)], VIOLATION)
}

/// A frame that breaks a rule.
fn bad(number: &str, bad: Frame) -> Case {
    Case::new(number, vec![bad], vec![], VIOLATION)
}

/// Group 3: reserved bits.
fn reserved_bits() -> Vec<Case> {
    let with = |bits: u8, opcode: u8, payload: &[u8]| frame(FIN | bits << 4 | opcode, payload);
    vec![
        bad("3.1", with(1, TEXT, HELLO)),
        broken("3.2", with(2, TEXT, HELLO)),
        broken("3.3", with(3, TEXT, HELLO)),
        broken("3.4", with(4, TEXT, HELLO)).chopped(1),
        bad("3.5", with(5, BINARY, b"\x00\xff\xfe\xfd\xfc\xfb\x00\xff")),
        bad("3.6", with(6, BINARY, HELLO)),
        bad("3.7", with(7, CLOSE, b"")),
    ]
}

/// Group 4: opcodes without a meaning.
fn opcodes() -> Vec<Case> {
    let mut all = Vec::new();
    for (group, from) in [(1, 3), (2, 11)] {
        let number = |last: u8| format!("4.{group}.{last}");
        let opcode = |nth: u8, payload: &[u8]| frame(FIN | (from + nth), payload);
        all.extend([
            bad(&number(1), opcode(0, b"")),
            bad(&number(2), opcode(1, b"reserved opcode payload")),
            broken(&number(3), opcode(2, b"")),
            broken(&number(4), opcode(3, HELLO)),
            broken(&number(5), opcode(4, HELLO)).chopped(1),
        ]);
    }
    all
}

/// Group 5: fragments.
fn fragmentation() -> Vec<Case> {
    const SYNC: usize = usize::MAX;
    let begin = |payload: &str| frame(MORE | TEXT, payload);
    let more = |payload: &str| frame(MORE | CONTINUATION, payload);
    let last = |payload: &str| frame(FIN | CONTINUATION, payload);
    let ping = |payload: &str| frame(FIN | PING, payload);
    let whole = |payload: &str| frame(FIN | TEXT, payload);
    let violated = |number: &str, frames| Case::new(number, frames, vec![], VIOLATION);
    let mut all = vec![
        violated("5.1", vec![frame(MORE | PING, "fragment1"), last("fragment2")]),
        violated("5.2", vec![frame(MORE | PONG, "fragment1"), last("fragment2")]),
    ];
    let (one, two) = ("fragment1", "fragment2");
    let both = vec![text("fragment1fragment2")];
    for (number, chop) in [("5.3", SYNC), ("5.4", SYNC), ("5.5", 1)] {
        all.push(Case::new(number, vec![begin(one), last(two)], both.clone(), End::Close).chopped(chop));
    }
    for (number, chop) in [("5.6", SYNC), ("5.7", SYNC), ("5.8", 1)] {
        let frames = vec![begin(one), ping("ping payload"), last(two)];
        let answers = [vec![pong("ping payload")], both.clone()].concat();
        all.push(Case::new(number, frames, answers, End::Close).chopped(chop));
    }
    let nothing = "non-continuation payload";
    for (from, first) in [(9, last(nothing)), (12, more(nothing))] {
        for (nth, chop) in [(0, SYNC), (1, SYNC), (2, 1)] {
            let frames = vec![first.clone(), whole("Hello, world!")];
            all.push(violated(&format!("5.{}", from + nth), frames).chopped(chop));
        }
    }
    let twice = |frames: [Frame; 3]| [frames.clone(), frames].concat();
    let five = |number: &str| {
        let frames = vec![
            begin(one),
            more(two),
            ping("pongme 1!"),
            more("fragment3"),
            more("fragment4"),
            ping("pongme 2!"),
            last("fragment5"),
        ];
        let message = (1..=5).map(|number| format!("fragment{number}")).collect::<String>();
        Case::new(number, frames, vec![pong("pongme 1!"), pong("pongme 2!"), text(message)], End::Close)
    };
    all.extend([
        Case::new(
            "5.15",
            vec![begin(one), last(two), more("fragment3"), whole("fragment4")],
            both,
            VIOLATION,
        ),
        violated("5.16", twice([more(one), begin(two), last("fragment3")])),
        violated("5.17", twice([last(one), begin(two), last("fragment3")])),
        violated("5.18", vec![begin(one), whole(two)]),
        five("5.19"),
        five("5.20"),
    ]);
    all
}

/// Groups 6.1 to 6.4: texts in fragments, and their UTF-8.
fn texts() -> Vec<Case> {
    const TEXT_OF_LETTERS: &str = "Hello-µ@ßöäüàá-UTF-8!!";
    let of = |number: &str, parts: &[&[u8]]| {
        let message = parts.concat();
        let last = parts.len() - 1;
        let frames = parts.iter().enumerate().map(|(number, part)| {
            let fin = if number == last { FIN } else { MORE };
            frame(fin | if number == 0 { TEXT } else { CONTINUATION }, part)
        });
        Case::new(number, frames.collect(), vec![text(message)], End::Close)
    };
    let by_one =
        |number: &str, message: &[u8]| Case::fragmented(number.to_owned(), TEXT, message.to_vec(), 1);
    let broken = [KOSME, b"\xed\xa0\x80", b"edited"].concat();
    let refused = |number: &str, frames| Case::new(number, frames, vec![], NOT_UTF8);
    // A code point beyond the last one: the second of its bytes shows that. What follows is not sent: the
    // connection has to fail before (the suite's OK, as opposed to NON-STRICT).
    let beyond: &[u8] = b"\xf4\x90\x80\x80";
    let until = [KOSME, &beyond[..1]].concat();
    let all = KOSME.len() + beyond.len() + 6;
    let part = |payload: Vec<u8>| vec![Frame { first: FIN | TEXT, length: all, payload }];
    vec![
        of("6.1.1", &[b""]),
        of("6.1.2", &[b"", b"", b""]),
        of("6.1.3", &[b"", b"middle frame payload", b""]),
        of("6.2.1", &[TEXT_OF_LETTERS.as_bytes()]),
        of("6.2.2", &["Hello-µ@ßöä".as_bytes(), "üàá-UTF-8!!".as_bytes()]),
        by_one("6.2.3", TEXT_OF_LETTERS.as_bytes()),
        by_one("6.2.4", KOSME),
        refused("6.3.1", vec![frame(FIN | TEXT, &broken)]),
        refused("6.3.2", fragments(TEXT, &broken, 1)),
        refused("6.4.1", vec![frame(MORE | TEXT, KOSME), frame(MORE | CONTINUATION, beyond)]),
        refused("6.4.2", vec![frame(MORE | TEXT, &until), frame(MORE | CONTINUATION, &beyond[1..2])]),
        refused("6.4.3", part([KOSME, beyond].concat())).chopped(KOSME.len() + 6),
        refused("6.4.4", part([&until, &beyond[1..2]].concat())).chopped(until.len() + 6),
    ]
}

/// Groups 6.5 to 6.23: texts that are UTF-8 or not, after Markus Kuhn's "UTF-8 decoder capability and stress
/// test".
fn letters() -> Vec<Case> {
    let mut groups: Vec<Vec<Vec<u8>>> = Vec::new();
    let owned = |list: &[&[u8]]| -> Vec<Vec<u8>> { list.iter().map(|bytes| bytes.to_vec()).collect() };
    groups.push(owned(&[
        b"hello\x24world",
        b"hello\xc2\xa2world",
        b"hello\xe2\x82\xacworld",
        b"hello\xf0\xa4\xad\xa2world",
        KOSME,
    ]));
    groups.push((1..=KOSME.len()).map(|length| KOSME[..length].to_vec()).collect());
    groups.push(owned(&[b"\x00", b"\xc2\x80", b"\xe0\xa0\x80", b"\xf0\x90\x80\x80"]));
    groups.push(owned(&[b"\xf8\x88\x80\x80\x80", b"\xfc\x84\x80\x80\x80\x80"]));
    groups.push(owned(&[b"\x7f", b"\xdf\xbf", b"\xef\xbf\xbf", b"\xf4\x8f\xbf\xbf"]));
    groups.push(owned(&[b"\xf7\xbf\xbf\xbf", b"\xfb\xbf\xbf\xbf\xbf", b"\xfd\xbf\xbf\xbf\xbf\xbf"]));
    groups.push(owned(&[
        b"\xed\x9f\xbf",
        b"\xee\x80\x80",
        b"\xef\xbf\xbd",
        b"\xf4\x8f\xbf\xbf",
        b"\xf4\x90\x80\x80",
    ]));
    let mut lonely: Vec<Vec<u8>> = vec![vec![0x80], vec![0xbf]];
    lonely.extend((2..=6).map(|length| [0x80, 0xbf].into_iter().cycle().take(length).collect()));
    lonely.push((0x80..0xbf).collect());
    groups.push(lonely);
    let starts = [0xc0..0xdf, 0xe0..0xef, 0xf0..0xf7, 0xf8..0xfb, 0xfc..0xfd_u8];
    groups.push(starts.into_iter().map(|range| range.flat_map(|byte| [byte, b' ']).collect()).collect());
    let cut = owned(&[
        b"\xc0",
        b"\xe0\x80",
        b"\xf0\x80\x80",
        b"\xf8\x80\x80\x80",
        b"\xfc\x80\x80\x80\x80",
        b"\xdf",
        b"\xef\xbf",
        b"\xf7\xbf\xbf",
        b"\xfb\xbf\xbf\xbf",
        b"\xfd\xbf\xbf\xbf\xbf",
    ]);
    let joined = cut.concat();
    groups.push(cut);
    groups.push(vec![joined]);
    groups.push(owned(&[b"\xfe", b"\xff", b"\xfe\xfe\xff\xff"]));
    groups.push(owned(&[
        b"\xc0\xaf",
        b"\xe0\x80\xaf",
        b"\xf0\x80\x80\xaf",
        b"\xf8\x80\x80\x80\xaf",
        b"\xfc\x80\x80\x80\x80\xaf",
    ]));
    groups.push(owned(&[
        b"\xc1\xbf",
        b"\xe0\x9f\xbf",
        b"\xf0\x8f\xbf\xbf",
        b"\xf8\x87\xbf\xbf\xbf",
        b"\xfc\x83\xbf\xbf\xbf\xbf",
    ]));
    groups.push(owned(&[
        b"\xc0\x80",
        b"\xe0\x80\x80",
        b"\xf0\x80\x80\x80",
        b"\xf8\x80\x80\x80\x80",
        b"\xfc\x80\x80\x80\x80\x80",
    ]));
    let surrogates: [&[u8]; 7] = [
        b"\xed\xa0\x80",
        b"\xed\xad\xbf",
        b"\xed\xae\x80",
        b"\xed\xaf\xbf",
        b"\xed\xb0\x80",
        b"\xed\xbe\x80",
        b"\xed\xbf\xbf",
    ];
    groups.push(owned(&surrogates));
    let (high, low) = (&surrogates[..4], [surrogates[4], surrogates[6]]);
    groups.push(high.iter().flat_map(|high| low.map(|low| [high, low].concat())).collect());
    // Code points that are no characters, the last two of each plane: valid UTF-8 all the same.
    let planes = (0..=16_u32).flat_map(|plane| [0xfffe, 0xffff].map(|last| plane << 16 | last));
    let no_characters = planes.filter_map(char::from_u32);
    groups.push(no_characters.map(|letter| letter.to_string().into_bytes()).collect());
    groups.push(('\u{fff9}'..='\u{ffff}').map(|letter| letter.to_string().into_bytes()).collect());
    let mut all = Vec::new();
    for (group, texts) in (5..).zip(groups) {
        for (nth, bytes) in (1..).zip(texts) {
            let number = format!("6.{group}.{nth}");
            all.push(match std::str::from_utf8(&bytes) {
                Ok(_) => Case::echo(number, TEXT, bytes),
                Err(_) => Case::new(number, vec![frame(FIN | TEXT, bytes)], vec![], NOT_UTF8),
            });
        }
    }
    all
}

/// Group 7: closes.
fn closes() -> Vec<Case> {
    const GREETING: &[u8] = b"Hello World!";
    let done = close(1000, b"");
    let then = |number: &str, after: Frame| Case::new(number, vec![done.clone(), after], vec![], CLOSED);
    let closed = |number: &str, reason: &[u8]| Case::new(number, vec![close(1000, reason)], vec![], CLOSED);
    let large = b"BAsd7&jh23".repeat(26_215);
    let mut all = vec![
        Case::echo("7.1.1".to_owned(), TEXT, GREETING.to_vec()),
        then("7.1.2", frame(FIN | CLOSE, b"")),
        then("7.1.3", frame(FIN | PING, b"")),
        then("7.1.4", frame(FIN | TEXT, GREETING)),
        Case::new(
            "7.1.5",
            vec![frame(MORE | TEXT, "fragment1"), done.clone(), frame(FIN | CONTINUATION, "fragment2")],
            vec![],
            CLOSED,
        ),
        // The suite takes any answer for information.
        Case::new(
            "7.1.6",
            vec![
                frame(FIN | TEXT, &large[..262_144]),
                frame(FIN | TEXT, GREETING),
                done,
                frame(FIN | PING, b""),
            ],
            vec![text(&large[..262_144]), text(GREETING)],
            CLOSED,
        ),
        Case::new("7.3.1", vec![frame(FIN | CLOSE, b"")], vec![], CLOSED),
        bad("7.3.2", frame(FIN | CLOSE, b"a")),
        closed("7.3.3", b""),
        closed("7.3.4", GREETING),
        closed("7.3.5", &[b'*'; 123]),
        bad("7.3.6", close(1000, &[b'*'; 124])),
        Case::new(
            "7.5.1",
            vec![close(1000, &[KOSME, b"\xed\xa0\x80edited"].concat())],
            vec![],
            End::Failed(&[1002, 1007]),
        ),
    ];
    const GOOD: [&[u16]; 13] = [
        &[1000],
        &[1000, 1001],
        &[1000, 1002],
        &[1000, 1003],
        &[1000, 1007],
        &[1000, 1008],
        &[1000, 1009],
        &[1000, 1010],
        &[1000, 1011],
        &[1000, 3000],
        &[1000, 3999],
        &[1000, 4000],
        &[1000, 4999],
    ];
    for (nth, answers) in (1..).zip(GOOD) {
        let code = answers[answers.len() - 1];
        all.push(Case::new(format!("7.7.{nth}"), vec![close(code, b"")], vec![], End::Closed(answers)));
    }
    for (nth, code) in (1..).zip([0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999]) {
        all.push(bad(&format!("7.9.{nth}"), close(code, b"")));
    }
    // The suite takes any answer for information.
    all.extend([bad("7.13.1", close(5000, b"")), bad("7.13.2", close(65_535, b""))]);
    all
}

/// Group 9: large messages, and many.
fn sizes() -> Vec<Case> {
    const MIB: usize = 1 << 20;
    let filled = |opcode: u8, length: usize| -> Vec<u8> {
        let pattern: &[u8] = if opcode == TEXT { b"BAsd7&jh23" } else { b"\x80\xfe\x23\xfa\xf0" };
        pattern.iter().copied().cycle().take(length).collect()
    };
    let mut all = Vec::new();
    for (nth, opcode) in [TEXT, BINARY].into_iter().enumerate() {
        for (last, length) in (1..).zip([MIB / 16, MIB / 4, MIB, 4 * MIB, 8 * MIB, 16 * MIB]) {
            all.push(Case::echo(format!("9.{}.{last}", 1 + nth), opcode, filled(opcode, length)));
        }
        for last in 1..=9_u32 {
            let length = 64 << (2 * (last - 1));
            let message = filled(opcode, 4 * MIB);
            all.push(Case::fragmented(format!("9.{}.{last}", 3 + nth), opcode, message, length));
        }
        for last in 1..=6_u32 {
            let case = Case::echo(format!("9.{}.{last}", 5 + nth), opcode, filled(opcode, MIB));
            all.push(case.chopped(64 << (last - 1)));
        }
        for (last, length) in (1..).zip([0, 16, 64, 256, 1_024, 4_096]) {
            let case = Case::echo(format!("9.{}.{last}", 7 + nth), opcode, filled(opcode, length));
            all.push(Case { rounds: 100, ..case });
        }
    }
    all
}
