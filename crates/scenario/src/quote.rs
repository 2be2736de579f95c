//! Words of a server, as they may be shown.

use plimsoll_core::disguises;

/// Characters of a quotation, at most.
const LONGEST: usize = 200;

/// The first line of a body that has text in it, or the title and the first paragraph of a page of HTML:
/// printable, and at most 200 characters. Empty if the body is not a text.
pub fn first_line(body: &[u8]) -> String {
    let text = match std::str::from_utf8(body) {
        Ok(text) => text,
        // A character may be cut at the end of what was kept.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&body[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return String::new(),
    };
    let text = text.trim_start_matches('\u{feff}').trim();
    let line = page(text).unwrap_or_else(|| text.lines().next().unwrap_or_default().to_owned());
    let mut characters = line.trim().chars().map(printable);
    let shown: String = characters.by_ref().take(LONGEST).collect();
    match characters.next() {
        None => shown,
        Some(_) => shown.chars().take(LONGEST - 1).chain(['…']).collect(),
    }
}

/// The title of a page of HTML, and its first paragraph.
fn page(text: &str) -> Option<String> {
    if !text.starts_with('<') {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    let within = |tag: &str| {
        let start = lower.find(&format!("<{tag}>"))? + tag.len() + 2;
        let end = lower[start..].find(&format!("</{tag}>")).map_or(text.len(), |length| start + length);
        Some(without_tags(&text[start..end])).filter(|text| !text.is_empty())
    };
    let title = within("title")?;
    Some(within("p").map_or(title.clone(), |paragraph| format!("{title}: {paragraph}")))
}

/// Returns the text between tags, in one line.
fn without_tags(html: &str) -> String {
    let mut parts = html.split('<');
    // Text before the first tag, and then behind the end of each.
    let before = parts.next().unwrap_or_default();
    let behind = parts.map(|part| part.split_once('>').map_or("", |(_, shown)| shown));
    let text = std::iter::once(before).chain(behind).collect::<Vec<_>>().join(" ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Replaces a character by a space if it would do more to a terminal than take a place.
fn printable(character: char) -> char {
    match character {
        acting if acting.is_control() || disguises(acting) => ' ',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::first_line;

    #[test]
    fn the_first_line_says_what_is_wrong() {
        let page = b"<html>\r\n<head><title>400 No required SSL certificate</title></head>";
        for (body, shown) in [
            (&b""[..], ""),
            (b"no such item\nat line 7", "no such item"),
            (b"\n\n  {\"error\": 1}\r\n", "{\"error\": 1}"),
            (page, "400 No required SSL certificate"),
            (b"<e><title></title>", "<e><title></title>"),
            (
                b"<html><title>400 Bad Request</title><body><h1>Bad</h1><p>Not understood.<br />\nReason: you</p>",
                "400 Bad Request: Not understood. Reason: you",
            ),
            (b"\x1f\x8b\x08\xff", ""),
            ("caf\u{e9}".as_bytes(), "caf\u{e9}"),
            (b"caf\xc3", "caf"),
        ] {
            assert_eq!(first_line(body), shown);
        }
    }

    #[test]
    fn it_does_nothing_to_a_terminal() {
        assert_eq!(first_line("a\u{1b}[2Jb\u{9b}c\u{202e}d\te".as_bytes()), "a [2Jb c d e");
        let long = first_line("x".repeat(1000).as_bytes());
        assert_eq!((long.chars().count(), long.ends_with('…')), (200, true));
    }
}
