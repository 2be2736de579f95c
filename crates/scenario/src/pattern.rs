//! Regular expressions whose searches are bounded, without an allocation for each match.
//!
//! Where the fast engines of the `regex` crate give up, a search takes a time that grows with the text times
//! the size of the expression: `a.{0,200}c` on 15 MB of a hostile server took more than 40 s. So the work of
//! a search is known before, or the engine is one that gives up.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

use regex_automata::hybrid::regex::{Cache, Regex as LazyRegex};
use regex_automata::meta::{BuildError, Config, Regex};
use regex_automata::util::primitives::NonMaxUsize;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchError, MatchKind, Span, hybrid, nfa::thompson};
use regex_syntax::hir::{Class, Hir, HirKind};

use crate::{Scope, TemplateError};

/// Bytes that one compiled expression may take: the limit of the `regex` crate.
const SIZE_MAX: usize = 10 << 20;
/// Bytes that the compiled expressions of a plan may take together. To fill them takes some seconds.
const ALL_PATTERNS: usize = 256 << 20;
/// Work that the searches of one check, value or condition may make, some 10 ns each.
const WORK_MAX: u64 = 5_000_000;
/// Bytes of a text that an automaton without new states reads for one of [`WORK_MAX`].
const BYTES_PER_WORK: u64 = 8;
/// Work that a new state of an automaton makes, for each of its bytes.
const WORK_PER_BYTE_OF_STATES: u64 = 2;

/// A regular expression of the `regex` crate, on bytes. That crate's own type has no way to find a group
/// without allocating, and none to give up; these are its engines.
///
/// The memory that it searches with belongs to one worker: every worker has to have a clone of its own.
#[derive(Debug)]
pub(crate) struct Pattern {
    text: Box<str>,
    regex: Regex,
    has_group: bool,
    /// Places of the expression that may be reached at once, at most: the longest search takes some 10 ns for
    /// each of them and each byte.
    weight: u64,
    /// The automaton for texts that are too long for `regex`. Made for the first one.
    lazy: Mutex<Option<Box<Lazy>>>,
}

/// Remaining work of the searches of one check, value or condition.
#[derive(Clone, Debug)]
pub(crate) struct Work(Cell<u64>);

impl Default for Work {
    fn default() -> Self {
        Self(Cell::new(WORK_MAX))
    }
}

/// Memory for the compiled regular expressions of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternRoom(Cell<usize>);

impl PatternRoom {
    /// Takes bytes away, and returns `true` if there were as many.
    fn take(&self, bytes: usize) -> bool {
        let left = self.0.get().checked_sub(bytes);
        self.0.set(left.unwrap_or(0));
        left.is_some()
    }
}

impl Default for PatternRoom {
    fn default() -> Self {
        Self(Cell::new(ALL_PATTERNS))
    }
}

/// A search took too much [`Work`]: whether there is a match is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMuchWork;

impl Work {
    /// Begins another search.
    pub(crate) fn refill(&self) {
        self.0.set(WORK_MAX);
    }

    /// Takes work away if there is as much.
    fn spend(&self, work: u64) -> bool {
        let left = self.0.get().checked_sub(work);
        self.0.set(left.unwrap_or(self.0.get()));
        left.is_some()
    }

    /// Takes work away that was made.
    fn made(&self, work: u64) {
        self.0.set(self.0.get().saturating_sub(work));
    }
}

impl Clone for Pattern {
    /// A copy has memory of its own to search with.
    fn clone(&self) -> Self {
        let Self { text, regex, has_group, weight, .. } = self;
        let (has_group, weight) = (*has_group, *weight);
        Self { text: text.clone(), regex: regex.clone(), has_group, weight, lazy: Mutex::default() }
    }
}

impl Pattern {
    /// Compiles an expression, which has to fit into the [room](Scope::patterns) of `scope`.
    ///
    /// # Errors
    /// The first mistake in the expression, in one line, or that it does not fit.
    pub(crate) fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, TemplateError> {
        let config = Config::new().utf8_empty(false).nfa_size_limit(Some(SIZE_MAX));
        let built = Regex::builder().configure(config).syntax(any_bytes()).build(text);
        let regex = built.map_err(|error| {
            TemplateError::new(format!("the regular expression `{text}`: {}", reason(&error)))
        })?;
        if scope.patterns.is_some_and(|room| !room.take(regex.memory_usage())) {
            let most = ALL_PATTERNS >> 20;
            let problem = format!("the regular expressions of the plan take more than {most} MiB");
            return Err(TemplateError::new(problem)
                .with_hint("shorten repetitions as `{1,1000}`, or write `[A-Za-z0-9_]` in place of `\\w`"));
        }
        let weight = syntax::parse_with(text, &any_bytes()).map_or(u64::MAX, |hir| weight(&hir));
        let has_group = regex.group_info().group_len(0.into()) > 1;
        Ok(Self { text: text.into(), regex, has_group, weight, lazy: Mutex::default() })
    }

    /// The expression as it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns `true` if the expression matches anywhere in `text`.
    ///
    /// # Errors
    /// There is less `work` left than the search takes.
    pub(crate) fn is_match(&self, text: &[u8], work: &Work) -> Result<bool, TooMuchWork> {
        if work.spend(self.work(text.len())) {
            return Ok(self.regex.is_match(text));
        }
        self.find(&Input::new(text).earliest(true), work).map(|found| found.is_some())
    }

    /// The first group of the first match, or all of the match if there are no groups.
    ///
    /// # Errors
    /// There is less `work` left than the search takes.
    pub(crate) fn first_group<'t>(
        &self,
        text: &'t [u8],
        work: &Work,
    ) -> Result<Option<&'t [u8]>, TooMuchWork> {
        let mut input = Input::new(text);
        if !work.spend(self.work(text.len())) {
            let Some(found) = self.find(&input, work)? else { return Ok(None) };
            if !self.has_group {
                return Ok(text.get(found.range()));
            }
            // The groups are within the match.
            if !work.spend(self.work(found.len())) {
                return Err(TooMuchWork);
            }
            input = input.span(found).anchored(Anchored::Yes);
        }
        // Begin and end of the whole match, then those of the first group.
        let mut slots: [Option<NonMaxUsize>; 4] = [None; 4];
        let wanted = if self.has_group { 2 } else { 0 };
        let matched = self.regex.search_slots(&input, &mut slots[..wanted + 2]).is_some();
        let group = slots[wanted].zip(slots[wanted + 1]).filter(|_| matched);
        Ok(group.and_then(|(start, end)| text.get(start.get()..end.get())))
    }

    /// Work that a search in a text of so many bytes takes at most.
    fn work(&self, len: usize) -> u64 {
        self.weight.saturating_mul(len as u64)
    }

    /// The first match, by the automaton that gives up.
    fn find(&self, input: &Input<'_>, work: &Work) -> Result<Option<Span>, TooMuchWork> {
        if !work.spend(input.haystack().len() as u64 / BYTES_PER_WORK) {
            return Err(TooMuchWork);
        }
        let mut place = self.lazy.lock().unwrap_or_else(PoisonError::into_inner);
        let lazy = match &mut *place {
            Some(lazy) => lazy,
            empty => empty.insert(Box::new(Lazy::new(&self.text).ok_or(TooMuchWork)?)),
        };
        let found = lazy.find(input, work);
        if found.is_err() {
            // Its states are of no use to others, and take memory.
            *place = None;
        }
        found
    }
}

/// A deterministic automaton whose states are made as they are reached.
#[derive(Debug)]
struct Lazy {
    regex: LazyRegex,
    cache: Cache,
}

impl Lazy {
    fn new(text: &str) -> Option<Self> {
        let config = hybrid::dfa::Config::new()
            // It gives up when its memory is full of states for the second time.
            .minimum_cache_clear_count(Some(1))
            .skip_cache_capacity_check(true)
            // On ASCII alone; it gives up at other characters.
            .unicode_word_boundary(true)
            .match_kind(MatchKind::LeftmostFirst);
        let regex = LazyRegex::builder()
            .syntax(any_bytes())
            .thompson(thompson::Config::new().utf8(false).nfa_size_limit(Some(SIZE_MAX)))
            .dfa(config)
            .build(text)
            .ok()?;
        Some(Self { cache: regex.create_cache(), regex })
    }

    fn find(&mut self, input: &Input<'_>, work: &Work) -> Result<Option<Span>, TooMuchWork> {
        if self.clears() > 0 {
            self.cache.reset(&self.regex);
        }
        let before = self.cache.memory_usage();
        let found = self.search(input);
        let new = match self.clears() {
            0 => self.cache.memory_usage().saturating_sub(before),
            _ => usize::MAX,
        };
        work.made((new as u64).saturating_mul(WORK_PER_BYTE_OF_STATES));
        found.map_err(|_| TooMuchWork)
    }

    /// Returns the first match. Of an [earliest](Input::get_earliest) one only the end is right, for whoever
    /// asks for that wants to know but whether there is one.
    fn search(&mut self, input: &Input<'_>) -> Result<Option<Span>, MatchError> {
        if input.get_earliest() {
            let end = self.regex.forward().try_search_fwd(self.cache.as_parts_mut().0, input)?;
            return Ok(end.map(|end| Span::from(input.start()..end.offset())));
        }
        Ok(self.regex.try_search(&mut self.cache, input)?.map(|found| found.span()))
    }

    /// How often memory was full of states since the last reset.
    fn clears(&self) -> usize {
        let (forward, reverse) = self.cache.as_parts();
        forward.clear_count() + reverse.clear_count()
    }
}

/// Any bytes may match.
fn any_bytes() -> syntax::Config {
    syntax::Config::new().utf8(false)
}

/// Places of an expression that may be reached at once, at most. Of a character that takes several bytes
/// those behind each of its bytes are reached in turn.
fn weight(hir: &Hir) -> u64 {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Class(Class::Unicode(class)) if !class.is_ascii() => 4,
        HirKind::Class(_) => 1,
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min.saturating_add(1));
            weight(&repetition.sub).saturating_mul(u64::from(times.max(1)))
        }
        HirKind::Capture(capture) => weight(&capture.sub).saturating_add(1),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(weight).fold(1, u64::saturating_add)
        }
    }
}

/// Returns the reason in one line, which is the last one of a syntax error's message.
fn reason(error: &BuildError) -> String {
    match (error.size_limit(), error.syntax_error()) {
        (Some(_), _) => format!("it takes more than {SIZE_MAX} bytes"),
        (None, Some(syntax)) => {
            let text = syntax.to_string();
            let last = text.lines().last().unwrap_or_default();
            last.strip_prefix("error: ").unwrap_or(last).to_owned()
        }
        (None, None) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::select;

    fn pattern(text: &str) -> Pattern {
        Pattern::parse(text, &Scope::default()).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// A text of the letters of `alphabet`, without a pattern that repeats.
    fn drawn(alphabet: &[u8], len: usize) -> Vec<u8> {
        let mut random = plimsoll_core::Random::new(1, 1);
        (0..len).map(|_| alphabet[random.below(alphabet.len() as u64) as usize]).collect()
    }

    const PATTERNS: [&str; 17] = [
        "a.{0,200}(c+)",
        "a.{0,50}c",
        "(a|b)*?c",
        "(a*)*(c)",
        "([^c]{3,40})b",
        "b(a+)",
        "^(b+)a",
        "a(b*)$",
        "(?m)^a$",
        r"\ba(b)\b",
        r"\w+(a)",
        r"(\d)|(a)",
        "(?i)A(B)",
        "",
        "a??",
        "()b",
        r"(?-u:\xff)(a)?",
    ];

    /// Asserts that a search with so much work, which may need the automaton, finds what any other finds.
    fn agree(pattern: &Pattern, text: &[u8], work: u64) {
        let expected =
            (pattern.is_match(text, &Work::default()), pattern.first_group(text, &Work::default()));
        let work = || Work(Cell::new(work));
        let found = pattern.is_match(text, &work());
        assert!(found.is_err() || found == expected.0, "{}: {:?}", pattern.text(), text.escape_ascii());
        let found = pattern.first_group(text, &work());
        assert!(found.is_err() || found == expected.1, "{}: {:?}", pattern.text(), text.escape_ascii());
    }

    proptest! {
        #[test]
        fn both_engines_find_the_same(
            text in select(PATTERNS.to_vec()),
            bytes in proptest::collection::vec(select(b"aabbc \n1\xff\xc3\xa4".to_vec()), 0..400),
            work in select(vec![0, 100, 1_000, 100_000]),
        ) {
            agree(&pattern(text), &bytes, work);
        }
    }

    /// A text that is too long for the first engine is searched by the other, and its group is found.
    #[test]
    fn long_texts_are_searched() {
        let mut body = vec![b'x'; 16 << 20];
        body.extend_from_slice("\"token\":\"wört-42\"}".as_bytes());
        for (text, group) in [
            ("\"token\":\"([^\"]+)\"", "wört-42"),
            (r"token.:.(\w+-\d{1,9})", "wört-42"),
            ("(?i)TOKEN", "token"),
            (r"\w+-(\d+)", "42"),
            (r"[^x]{4,30}$", "\"token\":\"wört-42\"}"),
        ] {
            let pattern = pattern(text);
            assert!(pattern.work(body.len()) > WORK_MAX, "{text}");
            assert_eq!(pattern.is_match(&body, &Work::default()), Ok(true), "{text}");
            assert_eq!(pattern.first_group(&body, &Work::default()), Ok(Some(group.as_bytes())), "{text}");
        }
        assert_eq!(pattern("token=").is_match(&body, &Work::default()), Ok(false));
    }

    /// Without a bound, the first of these on the first took more than 40 s.
    #[test]
    fn a_hostile_text_ends_a_search() {
        let bodies = [
            drawn(b"ab", 15 << 20),
            drawn(b"abdefgh \n", 15 << 20),
            drawn("aäöü€".as_bytes(), 15 << 20),
            vec![b'a'; 15 << 20],
            b"a ".repeat(7 << 20),
        ];
        for text in [
            "a.{0,200}(c+)",
            "a.{0,2000}c",
            r"\w{1,100}@(\w+)",
            r"\ba\w*(c)",
            "(?:a?){500}(c)",
            "(a|b|ab|ba){1,90}c",
            "[^c]{200}c",
            "(.+)(.+)(.+)c",
        ] {
            let pattern = pattern(text);
            let found = bodies.each_ref().map(|body| pattern.first_group(body, &Work::default()));
            // In none of them is a match; whoever does not know it says so.
            assert!(found.iter().all(|found| matches!(found, Ok(None) | Err(TooMuchWork))), "{text}");
            let gives_up = text.starts_with("a.{0,200");
            assert_eq!(found[0].is_err(), gives_up, "{text}");
        }
    }

    /// Many texts share the work of one check.
    #[test]
    fn many_texts_share_the_work() {
        let (pattern, text, work) = (pattern("a.{0,200}(c+)"), drawn(b"ab", 4_000), Work::default());
        let known = (0..10_000).take_while(|_| pattern.is_match(&text, &work).is_ok()).count();
        assert!((1..100).contains(&known), "{known}");
    }

    #[test]
    fn a_plan_has_room_for_some_memory_of_expressions() {
        let room = PatternRoom(Cell::new(1 << 20));
        let scope = Scope { patterns: Some(&room), ..Scope::default() };
        let compiled = (0..100).take_while(|_| Pattern::parse(r"\w+=\w+", &scope).is_ok()).count();
        assert!((2..50).contains(&compiled), "{compiled}");
        let error = Pattern::parse(r"\w+=\w+", &scope).unwrap_err();
        assert_eq!(error.message(), "the regular expressions of the plan take more than 256 MiB");
    }
}
