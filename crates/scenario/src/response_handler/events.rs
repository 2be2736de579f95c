//! Events of a streamed response, for checks and values that are taken.

use std::fmt;
use std::str::FromStr;

use plimsoll_wire::events::EventReader;

use super::place::{Exchange, Parsed, Place};
use crate::{EventStream, Received};

/// Choice of an event of a stream. The `[DONE]` behind the chunks of a completion does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventPick {
    /// The event of this number, from 1.
    Number(u32),
    /// The last one.
    Last,
    /// The first one that has what is looked for.
    Any,
}

impl FromStr for EventPick {
    type Err = String;

    /// Reads `first`, `last`, `any` or a number from 1.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "first" => Ok(Self::Number(1)),
            "last" => Ok(Self::Last),
            "any" => Ok(Self::Any),
            number => match number.parse() {
                Ok(number) if number > 0 => Ok(Self::Number(number)),
                _ => {
                    let text = text.escape_debug();
                    Err(format!("`{text}` is not an event: write `first`, `last`, `any` or a number from 1"))
                }
            },
        }
    }
}

impl fmt::Display for EventPick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(1) => f.write_str("the first event"),
            Self::Number(number) => write!(f, "event {number}"),
            Self::Last => f.write_str("the last event"),
            Self::Any => f.write_str("any event"),
        }
    }
}

/// A place in the data of an event, compiled.
#[derive(Clone, Debug)]
pub(super) struct EventPlace {
    pub(super) pick: EventPick,
    pub(super) of: Box<Place>,
}

impl EventPlace {
    /// Gives the values that are there to `look`, until that is true; whether it was.
    pub(super) fn any(
        &self,
        exchange: &mut Exchange<'_, '_>,
        scratch: &mut Vec<u8>,
        mut look: impl FnMut(&[u8]) -> bool,
    ) -> bool {
        let Exchange { received, sent, cookies, stream: Some(stream), .. } = *exchange else { return false };
        let budget = exchange.parsed.budget();
        exchange.parsed.events(stream, received.body).pick(self.pick).any(|data| {
            let received = Received { body: data, ..*received };
            let mut parsed = Parsed::new(budget);
            let mut event =
                Exchange { received: &received, sent, cookies, parsed: &mut parsed, stream: None };
            self.of.find(&mut event, scratch).is_some_and(&mut look)
        })
    }
}

/// The events in a body, in one piece of memory.
#[derive(Debug, Default)]
pub(super) struct Events {
    data: Vec<u8>,
    /// The end of each in `data`.
    ends: Vec<usize>,
}

impl Events {
    /// The events of a whole body. Behind one that is too long there are none.
    pub(super) fn read(stream: EventStream, body: &[u8]) -> Self {
        let mut events = Self::default();
        let mut reader = EventReader::new(stream.format());
        let mut keep = |data: &[u8]| {
            if !stream.is_end_mark(data) {
                events.data.extend_from_slice(data);
                events.ends.push(events.data.len());
            }
        };
        if reader.feed(body, |event| keep(event.data)).is_ok() {
            // An event that is not whole makes the stream incomplete, which is a failure of its own.
            reader.finish(|event| keep(event.data));
        }
        events
    }

    fn get(&self, place: usize) -> &[u8] {
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.data[start..self.ends[place]]
    }

    /// The events that are chosen, of which there may be none.
    fn pick(&self, pick: EventPick) -> impl Iterator<Item = &[u8]> {
        let all = self.ends.len();
        let (from, until) = match pick {
            EventPick::Number(number) => (number as usize - 1, number as usize),
            EventPick::Last => (all.saturating_sub(1), all),
            EventPick::Any => (0, all),
        };
        (from.min(all)..until.min(all)).map(|place| self.get(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_chosen_by_number_place_or_content() {
        let body = b"data: a\n\ndata: b\n\n: ping\n\ndata: c\ndata: d\n\ndata: [DONE]\n\n";
        let picked = |stream, pick: &str| {
            let events = Events::read(stream, body);
            let picked = events.pick(pick.parse().unwrap());
            picked.map(|data| String::from_utf8_lossy(data).into_owned()).collect::<Vec<_>>()
        };
        for (pick, expected) in [
            ("first", vec!["a"]),
            ("1", vec!["a"]),
            (" 2 ", vec!["b"]),
            ("4", vec![]),
            ("last", vec!["c\nd"]),
            ("any", vec!["a", "b", "c\nd"]),
        ] {
            assert_eq!(picked(EventStream::Completion, pick), expected, "{pick}");
        }
        assert_eq!(picked(EventStream::Sse, "last"), ["[DONE]"]);
        let lines = Events::read(EventStream::Ndjson, b"{}\n\n[1]\n[2]");
        assert_eq!(lines.pick(EventPick::Last).collect::<Vec<_>>(), [b"[2]"]);
        assert_eq!(Events::read(EventStream::Sse, b"").pick(EventPick::Last).count(), 0);
    }

    #[test]
    fn a_choice_is_a_word_or_a_number_from_one() {
        for wrong in ["0", "-1", "", "all", "1.5"] {
            assert!(wrong.parse::<EventPick>().unwrap_err().contains("`first`, `last`, `any`"), "{wrong}");
        }
    }
}
