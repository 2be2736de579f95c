//! Patterns as Lua 5.1 has them (reference manual, section 5.4.1), in steps that can be counted.
//!
//! LuaJIT's own matcher backtracks without end inside one call, where no hook runs:
//! `("a"):rep(40):find(("a-"):rep(20) .. "b")` could not be stopped.

/// Captures of one pattern, as in Lua.
const MOST_CAPTURES: usize = 32;
/// Matches in matches: a bound for the stack. A pattern needs one for each item with a repetition and each
/// capture.
const DEEPEST: usize = 200;
/// Steps between two checks of the clock: well below a millisecond.
const STEPS: u32 = 1 << 14;

/// The error of a match that could not be carried out. A text that does not match is not an error.
pub(crate) type Failure = mlua::Error;

/// Called from time to time with steps taken; an error means that their time is used up.
pub(crate) type Spend<'a> = &'a dyn Fn(u32) -> Result<(), Failure>;

/// The content of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capture {
    /// Not closed yet.
    Open(usize),
    /// The text between two positions.
    Text(usize, usize),
    /// An empty capture `()`: a position, from 0.
    Position(usize),
}

/// One search.
pub(crate) struct Matcher<'a> {
    source: &'a [u8],
    pattern: &'a [u8],
    pub(crate) captures: Vec<Capture>,
    depth: usize,
    steps: u32,
    spend: Spend<'a>,
}

fn malformed(what: &str) -> Failure {
    mlua::Error::RuntimeError(format!("malformed pattern ({what})"))
}

impl<'a> Matcher<'a> {
    pub(crate) fn new(source: &'a [u8], pattern: &'a [u8], spend: Spend<'a>) -> Self {
        Self { source, pattern, captures: Vec::new(), depth: 0, steps: 0, spend }
    }

    /// The first match that begins at or behind `from`: its start and its end.
    pub(crate) fn find(&mut self, from: usize, anchored: bool) -> Result<Option<(usize, usize)>, Failure> {
        for start in from..=self.source.len() {
            if let Some(end) = self.match_at(start)? {
                return Ok(Some((start, end)));
            }
            if anchored {
                break;
            }
        }
        Ok(None)
    }

    /// The end of a match that begins here.
    pub(crate) fn match_at(&mut self, start: usize) -> Result<Option<usize>, Failure> {
        self.captures.clear();
        self.depth = 0;
        self.run(start, 0)
    }

    fn step(&mut self) -> Result<(), Failure> {
        self.steps += 1;
        if self.steps == STEPS {
            self.steps = 0;
            return (self.spend)(STEPS);
        }
        Ok(())
    }

    /// Matches the pattern from `p` on with the source from `s` on.
    fn run(&mut self, s: usize, p: usize) -> Result<Option<usize>, Failure> {
        if self.depth == DEEPEST {
            return Err(mlua::Error::RuntimeError("pattern too complex".to_owned()));
        }
        self.depth += 1;
        let end = self.items(s, p);
        self.depth -= 1;
        end
    }

    fn items(&mut self, mut s: usize, mut p: usize) -> Result<Option<usize>, Failure> {
        loop {
            self.step()?;
            let next = self.pattern.get(p + 1).copied();
            match self.pattern.get(p).copied() {
                None => return Ok(Some(s)),
                Some(b'(') => {
                    let (capture, after) = match next {
                        Some(b')') => (Capture::Position(s), p + 2),
                        _ => (Capture::Open(s), p + 1),
                    };
                    return self.open(capture, s, after);
                }
                Some(b')') => return self.close(s, p + 1),
                Some(b'$') if next.is_none() => return Ok((s == self.source.len()).then_some(s)),
                Some(b'%') if next == Some(b'b') => match self.balanced(s, p + 2)? {
                    Some(end) => (s, p) = (end, p + 4),
                    None => return Ok(None),
                },
                Some(b'%') if next == Some(b'f') => {
                    let set = p + 2;
                    if self.pattern.get(set) != Some(&b'[') {
                        return Err(malformed("missing '[' after '%f' in pattern"));
                    }
                    let after = self.class_end(set)?;
                    let before = if s == 0 { 0 } else { self.source[s - 1] };
                    let here = self.source.get(s).copied().unwrap_or(0);
                    if self.in_set(before, set, after - 1) || !self.in_set(here, set, after - 1) {
                        return Ok(None);
                    }
                    p = after;
                }
                Some(b'%') if next.is_some_and(|digit| digit.is_ascii_digit()) => {
                    match self.again(s, self.pattern[p + 1])? {
                        Some(end) => (s, p) = (end, p + 2),
                        None => return Ok(None),
                    }
                }
                Some(_) => {
                    let after = self.class_end(p)?;
                    match self.pattern.get(after) {
                        Some(b'?') => {
                            if self.fits(s, p, after)
                                && let Some(end) = self.run(s + 1, after + 1)?
                            {
                                return Ok(Some(end));
                            }
                            p = after + 1;
                        }
                        Some(b'*') => return self.most(s, p, after, 0),
                        Some(b'+') => return self.most(s, p, after, 1),
                        Some(b'-') => return self.fewest(s, p, after),
                        _ if self.fits(s, p, after) => (s, p) = (s + 1, after),
                        _ => return Ok(None),
                    }
                }
            }
        }
    }

    /// As many of one class as there are, then fewer.
    fn most(&mut self, s: usize, p: usize, after: usize, least: usize) -> Result<Option<usize>, Failure> {
        let mut count = 0;
        while self.fits(s + count, p, after) {
            self.step()?;
            count += 1;
        }
        loop {
            if count < least {
                return Ok(None);
            }
            if let Some(end) = self.run(s + count, after + 1)? {
                return Ok(Some(end));
            }
            if count == 0 {
                return Ok(None);
            }
            count -= 1;
        }
    }

    /// None of one class, then more.
    fn fewest(&mut self, mut s: usize, p: usize, after: usize) -> Result<Option<usize>, Failure> {
        loop {
            if let Some(end) = self.run(s, after + 1)? {
                return Ok(Some(end));
            }
            if !self.fits(s, p, after) {
                return Ok(None);
            }
            s += 1;
        }
    }

    fn open(&mut self, capture: Capture, s: usize, p: usize) -> Result<Option<usize>, Failure> {
        if self.captures.len() == MOST_CAPTURES {
            return Err(mlua::Error::RuntimeError("too many captures".to_owned()));
        }
        let level = self.captures.len();
        self.captures.push(capture);
        let end = self.run(s, p)?;
        if end.is_none() {
            self.captures.truncate(level);
        }
        Ok(end)
    }

    fn close(&mut self, s: usize, p: usize) -> Result<Option<usize>, Failure> {
        let open = self.captures.iter().rposition(|capture| matches!(capture, Capture::Open(_)));
        let Some(index) = open else {
            return Err(mlua::Error::RuntimeError("invalid pattern capture".to_owned()));
        };
        let before = self.captures[index];
        if let Capture::Open(start) = before {
            self.captures[index] = Capture::Text(start, s);
        }
        let end = self.run(s, p)?;
        if end.is_none() {
            self.captures[index] = before;
        }
        Ok(end)
    }

    /// `%bxy`; `p` is the place of x.
    fn balanced(&mut self, s: usize, p: usize) -> Result<Option<usize>, Failure> {
        let (Some(&open), Some(&close)) = (self.pattern.get(p), self.pattern.get(p + 1)) else {
            return Err(mlua::Error::RuntimeError("unbalanced pattern".to_owned()));
        };
        if self.source.get(s) != Some(&open) {
            return Ok(None);
        }
        let mut depth = 1;
        for at in s + 1..self.source.len() {
            self.step()?;
            let byte = self.source[at];
            if byte == close {
                depth -= 1;
                if depth == 0 {
                    return Ok(Some(at + 1));
                }
            } else if byte == open {
                depth += 1;
            }
        }
        Ok(None)
    }

    /// `%1`: the text of a capture once more.
    fn again(&self, s: usize, digit: u8) -> Result<Option<usize>, Failure> {
        let index = usize::from(digit).checked_sub(usize::from(b'1'));
        match index.and_then(|index| self.captures.get(index)) {
            Some(&Capture::Text(start, end)) => {
                let text = &self.source[start..end];
                Ok(self.source[s..].starts_with(text).then_some(s + text.len()))
            }
            Some(Capture::Position(_)) => Ok(None),
            _ => Err(mlua::Error::RuntimeError("invalid capture index".to_owned())),
        }
    }

    /// The end of a single class.
    fn class_end(&self, p: usize) -> Result<usize, Failure> {
        match self.pattern.get(p) {
            Some(b'%') if p + 1 == self.pattern.len() => Err(malformed("ends with '%'")),
            Some(b'%') => Ok(p + 2),
            Some(b'[') => {
                let mut at = p + 1;
                if self.pattern.get(at) == Some(&b'^') {
                    at += 1;
                }
                // A `]` in front is one of the set.
                loop {
                    match self.pattern.get(at) {
                        None => return Err(malformed("missing ']'")),
                        Some(b'%') => at += 2,
                        Some(_) => at += 1,
                    }
                    if self.pattern.get(at) == Some(&b']') {
                        return Ok(at + 1);
                    }
                }
            }
            _ => Ok(p + 1),
        }
    }

    /// Returns `true` if the byte at `s` is of the class at `p`, which ends at `after`.
    fn fits(&self, s: usize, p: usize, after: usize) -> bool {
        let Some(&byte) = self.source.get(s) else { return false };
        match self.pattern[p] {
            b'.' => true,
            b'%' => is_of(byte, self.pattern[p + 1]),
            b'[' => self.in_set(byte, p, after - 1),
            literal => literal == byte,
        }
    }

    /// Returns `true` if a byte is in the set from `[` at `p` to `]` at `end`.
    fn in_set(&self, byte: u8, p: usize, end: usize) -> bool {
        let mut at = p + 1;
        let negated = self.pattern[at] == b'^';
        if negated {
            at += 1;
        }
        while at < end {
            let first = self.pattern[at];
            if first == b'%' {
                if is_of(byte, self.pattern[at + 1]) {
                    return !negated;
                }
                at += 2;
            } else if self.pattern[at + 1] == b'-' && at + 2 < end {
                if (first..=self.pattern[at + 2]).contains(&byte) {
                    return !negated;
                }
                at += 3;
            } else {
                if first == byte {
                    return !negated;
                }
                at += 1;
            }
        }
        negated
    }
}

/// Returns `true` if a byte is of the class `%class`.
fn is_of(byte: u8, class: u8) -> bool {
    let is = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'g' => byte.is_ascii_graphic(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => byte.is_ascii_whitespace() || byte == 0x0b,
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return class == byte,
    };
    is != class.is_ascii_uppercase()
}
