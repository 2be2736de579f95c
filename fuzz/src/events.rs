//! Streams of events: what is told does not depend on cuts, and an event that was told has its bounds.

use plimsoll_wire::events::{Event, EventFormat, EventReader, LONGEST_EVENT, LONGEST_MESSAGE};
use plimsoll_wire::length_prefixed::PREFIX;

use crate::Cutting;

/// Data and names of the events, and whether nothing was cut off.
type Told = (Vec<(Vec<u8>, Vec<u8>)>, bool);

fn read<'d>(format: EventFormat, pieces: impl Iterator<Item = &'d [u8]>) -> Told {
    let (mut reader, mut events) = (EventReader::new(format), Vec::new());
    let mut tell = |event: Event<'_>| {
        match format {
            EventFormat::Sse | EventFormat::Ndjson | EventFormat::SseOrNdjson => {
                assert!(event.data.len() <= LONGEST_EVENT);
            }
            EventFormat::LengthPrefixed => {
                let [_, length @ ..] = *event.data.first_chunk::<PREFIX>().expect("a prefix");
                assert_eq!(event.data.len(), PREFIX + u32::from_be_bytes(length) as usize);
                assert!(event.data.len() <= PREFIX + LONGEST_MESSAGE);
            }
        }
        assert!(!event.id.contains(&0));
        events.push((event.data.to_vec(), event.name.to_vec()));
    };
    let sound =
        pieces.map(|piece| reader.feed(piece, &mut tell)).fold(true, |sound, fed| sound & fed.is_ok());
    let whole = reader.finish(&mut tell);
    assert!(sound || !whole);
    (events, whole)
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some(cutting) = Cutting::new(data) else { return };
    let format = match cutting.choices & 3 {
        0 => EventFormat::Sse,
        1 => EventFormat::Ndjson,
        2 => EventFormat::SseOrNdjson,
        _ => EventFormat::LengthPrefixed,
    };
    let whole = read(format, std::iter::once(cutting.stream));
    assert_eq!(read(format, cutting.pieces()), whole);
    assert!(whole.0.iter().map(|(data, _)| data.len()).sum::<usize>() <= cutting.stream.len());
}
