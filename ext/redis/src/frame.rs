//! Commands as the protocol writes them: an array of words, each behind its length.

use std::sync::Arc;

use plimsoll_core::Random;
use plimsoll_scenario::{
    Context, Fingerprint, Frame, FrameContent, Framed, Framing, RequestSpec, Scope, Template, TemplateError,
};

/// A command: its words are templates.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) words: Vec<String>,
}

impl Framing for Command {
    fn fingerprint(&self, hash: Fingerprint) -> Fingerprint {
        self.words.iter().fold(hash.with_field(b"redis"), |hash, word| hash.with_field(word.as_bytes()))
    }

    fn compile(&self, _: &RequestSpec, scope: &Scope<'_>, _: FrameContent) -> Result<Framed, TemplateError> {
        let mut frame = CommandFrame::default();
        frame.literal(format!("*{}\r\n", self.words.len()).as_bytes());
        let mut text = Template::literal(b"");
        for (index, word) in self.words.iter().enumerate() {
            let word = Template::parse_in(word.as_bytes(), scope)?;
            if index > 1 {
                text.push_literal(b" ");
            }
            if index > 0 {
                text.push(&word);
            }
            frame.word(word);
        }
        Ok(Framed { text, frame: Arc::new(frame) })
    }
}

/// A command, compiled. Words that are always the same are one text with what is around them.
#[derive(Default)]
struct CommandFrame {
    pieces: Vec<Piece>,
}

enum Piece {
    Literal(Vec<u8>),
    /// Bytes as they are: the length that stands before them is known.
    Fixed(Template),
    /// A word whose length is known once it is rendered.
    Measured(Template),
}

impl CommandFrame {
    fn literal(&mut self, bytes: &[u8]) {
        match self.pieces.last_mut() {
            Some(Piece::Literal(last)) => last.extend_from_slice(bytes),
            _ => self.pieces.push(Piece::Literal(bytes.to_vec())),
        }
    }

    fn word(&mut self, word: Template) {
        match word.fixed_len() {
            Some(length) => {
                self.literal(format!("${length}\r\n").as_bytes());
                // A secret stays in its template.
                match word.is_static() && !word.has_secret() {
                    true => self.literal(word.literals()),
                    false => self.pieces.push(Piece::Fixed(word)),
                }
            }
            None => self.pieces.push(Piece::Measured(word)),
        }
        self.literal(b"\r\n");
    }
}

impl Frame for CommandFrame {
    fn render(&self, context: &Context<'_>, random: &mut Random, out: &mut Vec<u8>) {
        for piece in &self.pieces {
            match piece {
                Piece::Literal(bytes) => out.extend_from_slice(bytes),
                Piece::Fixed(word) => word.render(context, random, out),
                Piece::Measured(word) => {
                    let start = out.len();
                    word.render(context, random, out);
                    write_length_before(start, out);
                }
            }
        }
    }

    fn kind(&self) -> u16 {
        0
    }
}

/// Writes the length of the word that begins at `start` in front of it.
fn write_length_before(start: usize, out: &mut Vec<u8>) {
    // `$`, 20 digits and the end of the line.
    let mut head = [b'\n'; 23];
    let mut at = head.len() - 2;
    head[at] = b'\r';
    let mut length = out.len() - start;
    loop {
        at -= 1;
        head[at] = b'0' + (length % 10) as u8;
        length /= 10;
        if length == 0 {
            break;
        }
    }
    at -= 1;
    head[at] = b'$';
    let head = &head[at..];
    out.extend_from_slice(head);
    out[start..].rotate_right(head.len());
}

/// Appends a command whose words are known.
pub(crate) fn write_command(words: &[&[u8]], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_scenario::{Dialect, RequestTemplate, SentRequest};

    use super::*;

    #[test]
    fn commands_are_those_of_the_protocol() {
        for (words, is_static) in [
            (&["PING"][..], true),
            (&["SET", "key", ""], true),
            (&["SET", "key-${sequence}", "${uuid}"], false),
            (&["GET", "k${random_int(1,99999)}"], false),
            (&["MSET", "a", "${fill(9-120,\"x${sequence}-\")}", "b", "${fill(1000,\"y\")}"], false),
        ] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let spec = RequestSpec {
                dialect: Dialect::Framed(Arc::new(Command { words: words.clone() })),
                method: words[0].clone(),
                target: words[1..].join(" "),
                ..RequestSpec::default()
            };
            let request = RequestTemplate::compile(&spec, &Scope::default(), None).unwrap();
            assert_eq!(request.is_static(), is_static, "{words:?}");
            for index in [0, 7, 12_345] {
                let context = Context { index, ..Context::default() };
                let (mut random, mut out, mut shown) =
                    (Random::new(5, 1), Vec::new(), SentRequest::default());
                request.render_request(&context, &mut random.clone(), &mut shown);
                request.render(&context, &mut random, &mut Vec::new(), &mut out);
                // The log has the words that were sent.
                let texts: Vec<&[u8]> = match words.len() {
                    1 => Vec::new(),
                    _ => shown.path.split(|byte| *byte == b' ').collect(),
                };
                let mut expected = Vec::new();
                write_command(&[&[words[0].as_bytes()][..], &texts].concat(), &mut expected);
                assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(&expected));
            }
        }
    }
}
