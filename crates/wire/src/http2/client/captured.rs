//! Response fields that are kept for the caller.

use super::head::ResponseHead;

/// The fields of one captured head: read them with [`Client::captured`](super::Client::captured), before the
/// next call of [`receive`](super::Client::receive).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured {
    start: u32,
    len: u32,
}

/// A header block that came before.
#[derive(Debug)]
pub(super) struct KnownBlock {
    /// The head that it is; of trailers, the bytes of the names and values of their fields.
    pub(super) head: Result<ResponseHead, u32>,
    /// Fields of the block, if they were captured.
    pub(super) fields: Option<CapturedFields>,
}

impl Default for KnownBlock {
    fn default() -> Self {
        Self { head: Err(0), fields: None }
    }
}

/// The fields of all heads captured by one `receive`. Keeps its allocations.
#[derive(Debug, Default)]
pub(super) struct CapturedFields {
    text: Vec<u8>,
    /// The ends of the name and the value of each field in `text`; the next field follows.
    ends: Vec<(u32, u32)>,
}

impl CapturedFields {
    #[inline]
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    /// The number of fields; also a mark for [`since`](Self::since) and [`truncate`](Self::truncate).
    pub(super) fn mark(&self) -> u32 {
        self.ends.len() as u32
    }

    pub(super) fn push(&mut self, name: &[u8], value: &[u8]) {
        self.text.extend_from_slice(name);
        let name_end = self.text.len() as u32;
        self.text.extend_from_slice(value);
        self.ends.push((name_end, self.text.len() as u32));
    }

    /// Drops the fields that came after the mark.
    pub(super) fn truncate(&mut self, mark: u32) {
        self.text.truncate(self.start_of(mark as usize));
        self.ends.truncate(mark as usize);
    }

    /// The fields that came after the mark.
    pub(super) fn since(&self, mark: u32) -> Captured {
        Captured { start: mark, len: self.mark() - mark }
    }

    /// Adds all fields of `other`.
    #[inline]
    pub(super) fn append(&mut self, other: &Self) {
        let base = self.text.len() as u32;
        self.text.extend_from_slice(&other.text);
        self.ends.extend(other.ends.iter().map(|(name_end, value_end)| (base + name_end, base + value_end)));
    }

    /// Makes `other` the list of these fields.
    pub(super) fn copy_to(&self, captured: Captured, other: &mut Self) {
        other.clear();
        for (name, value) in self.fields(captured) {
            other.push(name, value);
        }
    }

    /// Names and values in order; nothing if they are gone.
    pub(super) fn fields(&self, captured: Captured) -> impl Iterator<Item = (&[u8], &[u8])> {
        let (start, len) = (captured.start as usize, captured.len as usize);
        let ends = self.ends.get(start..start + len).unwrap_or_default();
        ends.iter().enumerate().map(move |(index, &(name_end, value_end))| {
            let (name_end, value_end) = (name_end as usize, value_end as usize);
            let name_start = self.start_of(start + index);
            (&self.text[name_start..name_end], &self.text[name_end..value_end])
        })
    }

    fn start_of(&self, field: usize) -> usize {
        match field.checked_sub(1) {
            Some(before) => self.ends.get(before).map_or(self.text.len(), |&(_, end)| end as usize),
            None => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_kept_apart_and_gone_after_clear() {
        let mut kept = CapturedFields::default();
        kept.push(b"a", b"1");
        kept.push(b"b", b"");
        let first = kept.since(0);
        let mark = kept.mark();
        kept.push(b"interim", b"x");
        kept.truncate(mark);
        kept.push(b"c", b"3");
        let second = kept.since(mark);
        assert_eq!(kept.fields(first).collect::<Vec<_>>(), [(&b"a"[..], &b"1"[..]), (b"b", b"")]);
        assert_eq!(kept.fields(second).collect::<Vec<_>>(), [(&b"c"[..], &b"3"[..])]);
        let mut copy = CapturedFields::default();
        kept.copy_to(first, &mut copy);
        let mark = kept.mark();
        kept.append(&copy);
        let third = kept.since(mark);
        assert_eq!(kept.fields(third).collect::<Vec<_>>(), kept.fields(first).collect::<Vec<_>>());
        kept.copy_to(second, &mut copy);
        let mark = kept.mark();
        kept.append(&copy);
        let fourth = kept.since(mark);
        assert_eq!(kept.fields(fourth).collect::<Vec<_>>(), [(&b"c"[..], &b"3"[..])]);
        kept.clear();
        assert_eq!(kept.fields(second).count(), 0);
    }
}
