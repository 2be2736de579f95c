//! The response of a simulated server, as bytes.

use crate::http2::Reply;

/// The way in which the end of a body is signalled. In HTTP/2 the last frame signals it, with any framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// `content-length`.
    ContentLength,
    /// `transfer-encoding: chunked`, in chunks of at most this many bytes (zero is taken as one); in HTTP/2
    /// frames of at most this many bytes, without a content-length.
    Chunked(usize),
    /// The server closes the connection; in HTTP/2 only no content-length.
    UntilClose,
}

/// A good response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Status.
    pub status: u16,
    /// Header fields beside those of the framing.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
    /// Signal for the end of the body.
    pub framing: Framing,
    /// `100 Continue` responses before it.
    pub interim: u32,
}

impl Default for Answer {
    fn default() -> Self {
        Self {
            status: 200,
            headers: Vec::new(),
            body: Vec::new(),
            framing: Framing::ContentLength,
            interim: 0,
        }
    }
}

impl Answer {
    /// A `200` with this body and a content-length.
    pub fn with_body(body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..Self::default() }
    }

    /// The whole response. A response to HEAD has no body; neither has a 204 or 304.
    pub(crate) fn render(&self, status: u16, head_request: bool, close: bool) -> Vec<u8> {
        let mut out = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(self.interim as usize);
        self.status_line(status, &mut out);
        if close {
            out.extend_from_slice(b"connection: close\r\n");
        }
        let bodiless = status == 204 || status == 304;
        match self.framing {
            _ if bodiless => {}
            Framing::ContentLength => content_length(self.body.len(), &mut out),
            Framing::Chunked(_) => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
            Framing::UntilClose => {}
        }
        out.extend_from_slice(b"\r\n");
        if head_request || bodiless {
            return out;
        }
        match self.framing {
            Framing::Chunked(bytes) => {
                for chunk in self.body.chunks(bytes.max(1)) {
                    out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                    out.extend_from_slice(chunk);
                    out.extend_from_slice(b"\r\n");
                }
                out.extend_from_slice(b"0\r\n\r\n");
            }
            Framing::ContentLength | Framing::UntilClose => out.extend_from_slice(&self.body),
        }
        out
    }

    /// The whole response for an HTTP/2 stream. Chunks become frames; there is no framing until a close.
    pub(crate) fn reply(&self, status: u16, head_request: bool) -> Reply {
        let bodiless = status == 204 || status == 304;
        let mut fields = self.headers.clone();
        if self.framing == Framing::ContentLength && !bodiless {
            fields.push(length_field(self.body.len()));
        }
        let body = if head_request || bodiless { Vec::new() } else { self.body.clone() };
        let frame_bytes = if let Framing::Chunked(bytes) = self.framing { bytes } else { usize::MAX };
        Reply { status, interim: self.interim, fields, body, frame_bytes }
    }

    /// Like [`render_truncated`](Self::render_truncated), for an HTTP/2 stream.
    pub(crate) fn reply_truncated(&self) -> Reply {
        self.reply_lying(self.body.len() * 2 + 1, &self.body)
    }

    /// Like [`render_excess`](Self::render_excess), for an HTTP/2 stream.
    pub(crate) fn reply_excess(&self) -> Reply {
        let body = self.excess_body();
        self.reply_lying(body.len() / 2, body)
    }

    fn reply_lying(&self, announced: usize, body: &[u8]) -> Reply {
        let mut fields = self.headers.clone();
        fields.push(length_field(announced));
        Reply { status: self.status, interim: 0, fields, body: body.to_vec(), frame_bytes: usize::MAX }
    }

    /// A response whose content-length is twice the sent length, and at least one byte more.
    pub(crate) fn render_truncated(&self) -> Vec<u8> {
        self.render_lying(self.body.len() * 2 + 1, &self.body)
    }

    /// A response whose content-length is half of the sent length, which is at least one byte.
    pub(crate) fn render_excess(&self) -> Vec<u8> {
        let body = self.excess_body();
        self.render_lying(body.len() / 2, body)
    }

    fn excess_body(&self) -> &[u8] {
        if self.body.is_empty() { b"excess" } else { &self.body }
    }

    fn render_lying(&self, announced: usize, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        self.status_line(self.status, &mut out);
        content_length(announced, &mut out);
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(body);
        out
    }

    fn status_line(&self, status: u16, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("HTTP/1.1 {status} Simulated\r\n").as_bytes());
        for (name, value) in &self.headers {
            out.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
    }
}

fn length_field(length: usize) -> (String, String) {
    ("content-length".to_owned(), length.to_string())
}

fn content_length(length: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("content-length: {length}\r\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> String {
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[test]
    fn framings_tell_the_end_of_the_body() {
        let mut answer = Answer::with_body("hello");
        assert_eq!(
            text(&answer.render(200, false, false)),
            "HTTP/1.1 200 Simulated\r\ncontent-length: 5\r\n\r\nhello"
        );
        assert!(
            text(&answer.render(200, true, true)).ends_with("connection: close\r\ncontent-length: 5\r\n\r\n")
        );
        assert_eq!(text(&answer.render(304, false, false)), "HTTP/1.1 304 Simulated\r\n\r\n");
        answer.framing = Framing::Chunked(3);
        assert!(
            text(&answer.render(200, false, false)).ends_with("\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n")
        );
        answer.framing = Framing::UntilClose;
        answer.interim = 1;
        let expected = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 Simulated\r\n\r\nhello";
        assert_eq!(text(&answer.render(200, false, false)), expected);
    }

    #[test]
    fn lying_lengths_are_never_the_true_one() {
        for body in ["", "x", "hello"] {
            let answer = Answer::with_body(body);
            for (rendered, more) in [(answer.render_truncated(), true), (answer.render_excess(), false)] {
                let rendered = text(&rendered);
                let (head, sent) = rendered.split_once("\r\n\r\n").unwrap();
                let announced: usize = head.rsplit_once(": ").unwrap().1.parse().unwrap();
                assert_eq!(announced > sent.len(), more, "{rendered:?}");
                assert_ne!(announced, sent.len());
            }
        }
    }
}
