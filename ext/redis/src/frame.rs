//! Commands as the protocol writes them: an array of words, each behind its length.

use std::sync::Arc;

use plimsoll_core::Random;
use plimsoll_scenario::slot::write_decimal;
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
        let mut measured = Vec::new();
        let mut plain = Template::literal(format!("*{}\r\n", self.words.len()).as_bytes());
        let mut text = Template::literal(b"");
        for (index, word) in self.words.iter().enumerate() {
            let word = Template::parse_in(word.as_bytes(), scope)?;
            if index > 1 {
                text.push_literal(b" ");
            }
            if index > 0 {
                text.push(&word);
            }
            match word.fixed_len() {
                Some(length) => {
                    plain.push_literal(format!("${length}\r\n").as_bytes());
                    plain.push(&word);
                }
                None => {
                    let before = std::mem::replace(&mut plain, Template::literal(b""));
                    measured.push((before, word));
                }
            }
            plain.push_literal(b"\r\n");
        }
        Ok(Framed { text, frame: Arc::new(CommandFrame { measured, end: plain }) })
    }
}

/// A command, compiled.
struct CommandFrame {
    /// Words whose length is known once they are rendered, each with what stands before it.
    measured: Vec<(Template, Template)>,
    /// Template of the bytes behind them.
    end: Template,
}

impl Frame for CommandFrame {
    fn render(&self, context: &Context<'_>, random: &mut Random, out: &mut Vec<u8>) {
        for (before, word) in &self.measured {
            before.render(context, random, out);
            let start = out.len();
            word.render(context, random, out);
            write_length_before(start, out);
        }
        self.end.render(context, random, out);
    }

    fn kind(&self) -> u16 {
        0
    }
}

/// Writes the length of the word that begins at `start` in front of it.
fn write_length_before(start: usize, out: &mut Vec<u8>) {
    let end = out.len();
    out.push(b'$');
    write_decimal((end - start) as u64, out);
    out.extend_from_slice(b"\r\n");
    let head = out.len() - end;
    out[start..].rotate_right(head);
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
