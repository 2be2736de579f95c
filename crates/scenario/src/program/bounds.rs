//! Numbers of requests that a part of a program makes.

/// Bounds of the number of requests that instructions make, redirects apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestBounds {
    /// The fewest.
    pub least: u64,
    /// The most; `None` if there is no limit.
    pub most: Option<u64>,
}

impl RequestBounds {
    /// No request.
    pub const NONE: Self = Self::exactly(0);
    /// Any number of requests.
    pub const ANY: Self = Self { least: 0, most: None };

    /// This many requests.
    pub const fn exactly(count: u64) -> Self {
        Self { least: count, most: Some(count) }
    }

    /// Returns the bounds of this part and one that follows.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        Self {
            least: self.least.saturating_add(next.least),
            most: self.most.zip(next.most).map(|(one, other)| one.saturating_add(other)),
        }
    }

    /// Returns the bounds of a choice between two parts: the lower minimum and the higher maximum.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            least: self.least.min(other.least),
            most: self.most.zip(other.most).map(|(one, other)| one.max(other)),
        }
    }

    /// Returns the bounds of a loop around the part with this number of turns; `None` if it is not known.
    #[must_use]
    pub fn repeated(self, times: Option<u64>) -> Self {
        match times {
            Some(times) => Self {
                least: self.least.saturating_mul(times),
                most: self.most.map(|most| most.saturating_mul(times)),
            },
            None => Self { least: 0, most: self.most.filter(|most| *most == 0) },
        }
    }
}

impl Default for RequestBounds {
    fn default() -> Self {
        Self::NONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn bounds(least: u64, most: Option<u64>) -> RequestBounds {
        RequestBounds { least, most }
    }

    #[test]
    fn parts_are_put_together() {
        let (one, some, any) = (RequestBounds::exactly(1), bounds(2, Some(5)), RequestBounds::ANY);
        assert_eq!(one.then(some), bounds(3, Some(6)));
        assert_eq!(some.then(any), bounds(2, None));
        assert_eq!(one.or(some), bounds(1, Some(5)));
        assert_eq!(some.or(any), bounds(0, None));
        assert_eq!(some.repeated(Some(3)), bounds(6, Some(15)));
        assert_eq!(some.repeated(None), any);
        assert_eq!(RequestBounds::NONE.repeated(None), RequestBounds::NONE);
        assert_eq!(some.repeated(Some(u64::MAX)), RequestBounds::exactly(u64::MAX));
    }
}
