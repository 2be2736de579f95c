//! What is kept of responses until their requests have ended.

use plimsoll_scenario::{FieldList, FieldNeeds, Needs};

/// The capture of a request of which nothing is kept, or nothing yet.
pub(crate) const NO_CAPTURE: u32 = u32::MAX;

/// Bytes that the buffer of a body keeps for the next one.
const BODY_ROOM: usize = 64 << 10;

/// What is kept of one response.
#[derive(Debug, Default)]
pub(crate) struct Captured {
    pub(crate) fields: FieldList,
    pub(crate) body: Vec<u8>,
}

impl Captured {
    /// Keeps a field if it is needed.
    pub(crate) fn keep(&mut self, needs: &FieldNeeds, name: &[u8], value: &[u8]) {
        let needed = match needs {
            FieldNeeds::Nothing => false,
            FieldNeeds::Named(names) => names.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(name)),
            FieldNeeds::All => true,
        };
        if needed {
            self.fields.push(name, value);
        }
    }
}

/// The captures of one worker. Ended ones are used again with their memory.
#[derive(Debug, Default)]
pub(crate) struct Captures {
    all: Vec<Captured>,
    free: Vec<u32>,
    /// Takes what comes for requests that were given up.
    unwanted: Captured,
}

impl Captures {
    /// Begins one: its number.
    pub(crate) fn begin(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.all.push(Captured::default());
            (self.all.len() - 1) as u32
        })
    }

    /// The capture, or a place for what nobody wants.
    pub(crate) fn get_mut(&mut self, number: u32) -> &mut Captured {
        match self.all.get_mut(number as usize) {
            Some(captured) => captured,
            None => {
                self.unwanted.fields.clear();
                self.unwanted.body.clear();
                &mut self.unwanted
            }
        }
    }

    /// Gives it back, if there is one.
    #[inline]
    pub(crate) fn end(&mut self, number: u32) {
        if number == NO_CAPTURE {
            return;
        }
        let captured = self.get_mut(number);
        captured.fields.clear();
        captured.body.clear();
        captured.body.shrink_to(BODY_ROOM);
        self.free.push(number);
    }
}

/// What has to be kept of a step's exchange: what its logic needs, and the location of a redirect that is to
/// be followed.
pub(crate) fn with_location(needs: &Needs, redirects: u32) -> Needs {
    let mut needs = needs.clone();
    if redirects > 0 {
        needs.fields = match needs.fields {
            FieldNeeds::Nothing => FieldNeeds::Named(vec!["location".to_owned()]),
            FieldNeeds::Named(mut names) => {
                if !names.iter().any(|name| name == "location") {
                    names.push("location".to_owned());
                }
                FieldNeeds::Named(names)
            }
            FieldNeeds::All => FieldNeeds::All,
        };
    }
    needs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_wants_is_not_kept() {
        let mut captures = Captures::default();
        let number = captures.begin();
        let needs = with_location(&Needs::default(), 1);
        let captured = captures.get_mut(number);
        captured.keep(&needs.fields, b"Location", b"/a");
        captured.keep(&needs.fields, b"etag", b"1");
        assert_eq!(captured.fields.get("location"), Some(&b"/a"[..]));
        assert_eq!(captured.fields.len(), 1);
        captures.get_mut(NO_CAPTURE).body.extend_from_slice(b"late");
        assert!(captures.get_mut(NO_CAPTURE).body.is_empty());
        captures.end(number);
        captures.end(NO_CAPTURE);
        assert_eq!(captures.begin(), number);
        assert!(captures.get_mut(number).fields.is_empty());
        assert_ne!(captures.begin(), number);
    }
}
