//! `setUp`: populations, which are scenarios with their injection profiles.

use plimsoll_document::Field;

use super::Importer;
use super::protocol::Protocol;
use super::steps::{In, Operation, operations, paced_at_end};
use super::tree::{Expression, Span};
use crate::amount::{self, Ratio};
use crate::course::{Course, Level, Segment};
use crate::draft::text;
use crate::flow;
use crate::names::Titles;

/// The time in which users that come at once arrive, in nanoseconds.
const AT_ONCE: u64 = 1_000_000;

/// Seconds as nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// Most levels of a staircase.
const MOST_LEVELS: u64 = 1_000;

/// A part of an injection profile. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
enum Piece {
    /// This many users at one instant.
    Jump(u64),
    /// A level of arrivals per second, or of users, that goes from one to the other.
    Level { length: u64, first: Ratio, last: Ratio },
}

impl Piece {
    fn flat(length: u64, level: Ratio) -> Self {
        Self::Level { length, first: level, last: level }
    }
}

/// How long users of a loop stay.
#[derive(Clone, Copy, Debug)]
enum Stay {
    /// Nanoseconds.
    During(u64),
    Forever,
}

/// A scenario with its users.
struct Population {
    title: String,
    span: Span,
    /// The actions of each user, in order.
    actions: Vec<Operation>,
    protocol: Protocol,
    is_rate: bool,
    /// `true` if the users repeat their steps.
    is_repeated: bool,
    pieces: Vec<Piece>,
}

impl Importer<'_> {
    pub(super) fn set_up(&mut self, set_up: &Expression) {
        let Some((name, links)) = set_up.chain() else { return };
        let operations = operations(name, set_up.span, links);
        let Some((first, rest)) = operations.split_first() else { return };
        let mut protocol = Protocol::default();
        let (mut most, mut assertions) = (None, Vec::new());
        for operation in rest {
            let given = operation.first().to_vec();
            match operation.name.as_str() {
                "protocols" => {
                    for one in &given {
                        protocol = self.protocol(one, &protocol);
                    }
                }
                "maxDuration" => {
                    most = given.first().and_then(|time| self.time(time)).filter(|nanos| *nanos > 0);
                    if most.is_none() {
                        self.note(operation.span, "it is not a time: it is left out");
                    }
                }
                "assertions" => assertions.extend(given),
                "disablePauses" => protocol.without_pauses = true,
                "constantPauses" => {}
                "throttle" => self.note_throttle(operation.span),
                _ => self.note(operation.span, "plans have nothing like it: it is left out"),
            }
        }
        let mut given = Vec::new();
        for one in first.first().to_vec() {
            match self.items(&one) {
                Some(items) => given.extend(items),
                None => given.push(one),
            }
        }
        let mut populations = Vec::new();
        for one in &given {
            self.population(one, &protocol, most, &mut populations);
        }
        self.keep_one_model(&mut populations);
        let mut courses = Vec::new();
        let is_finite =
            populations.iter().all(|population| population.is_rate && jumps(&population.pieces).is_some());
        let (mut total, mut longest) = (Some(Ratio::whole(0)), 0);
        for population in populations {
            if !self.put_scenario(&population) {
                continue;
            }
            let arrivals =
                population.pieces.iter().try_fold(Ratio::whole(0), |sum, piece| sum.plus(work(piece)?));
            total = total.zip(arrivals).and_then(|(total, arrivals)| total.plus(arrivals));
            let level = match jumps(&population.pieces).filter(|_| is_finite) {
                Some(users) => Level::Iterations { users, iterations: users, most },
                None => {
                    let (level, length) = stages(&population.pieces, most);
                    longest = longest.max(length);
                    level
                }
            };
            let at = self.at(population.span);
            courses.push(Course { start: 0, is_rate: population.is_rate, level, at });
        }
        if let Some(most) = most.filter(|most| *most < longest) {
            let becomes = format!("the load ends after {}", amount::time(most));
            self.note_call(set_up.span, "maxDuration", &becomes);
        }
        let at = self.at(set_up.span);
        self.load(&at, &courses);
        self.until_finished(total, most);
        for assertion in &assertions {
            let items = self.items(assertion).unwrap_or_else(|| vec![assertion.clone()]);
            for item in &items {
                self.assertion(item);
            }
        }
    }

    fn note_throttle(&mut self, span: Span) {
        let becomes = "a limit of requests per second is not taken over: `rate` with `rate_of: requests` is \
                       one that is reached";
        self.note(span, becomes);
    }

    /// A known number of arrivals at one rate ends the load, and all of them are finished as there.
    fn until_finished(&mut self, total: Option<Ratio>, most: Option<u64>) {
        let Some(total) = total.filter(|total| total.is_whole() && !total.is_zero()) else { return };
        if self.settings.rate.is_absent() || most.is_some() {
            return;
        }
        self.settings.duration = Field::Absent;
        self.settings.iterations = text(total.ceil().to_string());
    }

    /// Reads `scenario("x").exec(…).injectOpen(…)`, and what comes after it.
    fn population(
        &mut self,
        expression: &Expression,
        protocol: &Protocol,
        most: Option<u64>,
        all: &mut Vec<Population>,
    ) {
        let resolved = self.resolved(expression);
        let found = resolved.chain().and_then(|(name, links)| {
            let operations = operations(name, resolved.span, links);
            let is_injection =
                |one: &Operation| ["injectOpen", "injectClosed", "inject"].contains(&one.name.as_str());
            let at = operations.iter().position(is_injection)?;
            Some((operations, at))
        });
        let Some((operations, at)) = found else {
            let at = self.at(expression.span);
            let said = crate::findings::quoted(&self.said(expression.span));
            let hint = "a population is a scenario with injectOpen or injectClosed";
            self.findings.hinted(&at, format!("`{said}` has no injection profile"), hint);
            return;
        };
        let (actions, behind) = operations.split_at(at);
        let title = actions
            .first()
            .filter(|first| first.name == "scenario")
            .and_then(|first| first.first().first().cloned());
        let title = title.and_then(|title| self.text_of(&title));
        let title = self.titles.take(&flow::title(title.as_deref().unwrap_or_default(), "scenario"));
        let mut population = Population {
            title,
            span: expression.span,
            actions: actions.to_vec(),
            protocol: protocol.clone(),
            is_rate: true,
            is_repeated: false,
            pieces: Vec::new(),
        };
        let mut children = Vec::new();
        for operation in &behind[1..] {
            match operation.name.as_str() {
                "protocols" => {
                    for one in operation.first().to_vec() {
                        population.protocol = self.protocol(&one, &population.protocol);
                    }
                }
                "disablePauses" => population.protocol.without_pauses = true,
                "constantPauses" | "noShard" => {}
                "throttle" => self.note_throttle(operation.span),
                "andThen" => {
                    let becomes = "a scenario does not wait for another one: it begins with the others";
                    self.note_call(operation.span, "andThen", becomes);
                    children.extend(operation.first().to_vec());
                }
                _ => self.note(operation.span, "plans have nothing like it: it is left out"),
            }
        }
        let mut closed = false;
        for step in behind[0].first().to_vec() {
            let items = self.items(&step).unwrap_or_else(|| vec![step.clone()]);
            for item in &items {
                match self.pieces(item) {
                    Some((pieces, is_closed)) => {
                        closed |= is_closed;
                        population.pieces.extend(pieces);
                    }
                    None => {
                        let at = self.at(item.span);
                        let said = crate::findings::quoted(&self.said(item.span));
                        let hint = "write its numbers and times themselves, or give properties a \
                        default; other files \
                                    of the simulation are not read";
                        let message =
                            format!("`{said}` is not an injection profile that is known before the run");
                        self.findings.hinted(&at, message, hint);
                    }
                }
            }
        }
        population.is_rate = !closed;
        if !closed {
            self.users_of_loops(&mut population, most);
        }
        if population.pieces.is_empty() {
            if !self.findings.has_problems() {
                self.note(expression.span, "nobody carries it out: it is left out");
            }
        } else {
            all.push(population);
        }
        for child in &children {
            self.population(child, protocol, most, all);
        }
    }

    /// The parts of an injection profile, and `true` if they are numbers of users.
    fn pieces(&mut self, expression: &Expression) -> Option<(Vec<Piece>, bool)> {
        let resolved = self.resolved(expression);
        let (name, links) = resolved.chain()?;
        let operations = operations(name, resolved.span, links);
        let (first, rest) = operations.split_first()?;
        let given = |words: &[&str]| {
            let word = rest.iter().find(|one| words.contains(&one.name.as_str()))?;
            word.first().first().cloned()
        };
        let amount = first.first().first().cloned()?;
        let time = given(&["during", "over"]);
        let length = match &time {
            Some(time) => self.time(time),
            None => None,
        };
        let zero = Ratio::whole(0);
        let second = Ratio::whole(u128::from(SECOND));
        Some(match name {
            "nothingFor" => (vec![Piece::flat(self.time(&amount)?, zero)], false),
            "atOnceUsers" => (vec![Piece::Jump(self.count(&amount)?)], false),
            "rampUsers" => {
                let (users, length) = (self.count(&amount)?, length?);
                if length == 0 {
                    return Some((vec![Piece::Jump(users)], false));
                }
                let rate = Ratio::new(u128::from(users), u128::from(length))?.times(second)?;
                (vec![Piece::flat(length, rate)], false)
            }
            "stressPeakUsers" | "heavisideUsers" => {
                let becomes =
                    "the rate rises to the middle and falls again, both linearly, with as many users";
                self.note(resolved.span, becomes);
                let (users, length) = (self.count(&amount)?, length?.max(2));
                let peak = Ratio::new(u128::from(users) * 2, u128::from(length))?.times(second)?;
                let half = length / 2;
                let up = Piece::Level { length: half, first: zero, last: peak };
                (vec![up, Piece::Level { length: length - half, first: peak, last: zero }], false)
            }
            "constantUsersPerSec" | "constantConcurrentUsers" => {
                if rest.iter().any(|one| one.name == "randomized") {
                    self.settings.arrival = text("poisson");
                }
                (vec![Piece::flat(length?, self.number(&amount)?)], name == "constantConcurrentUsers")
            }
            "rampUsersPerSec" | "rampConcurrentUsers" => {
                if rest.iter().any(|one| one.name == "randomized") {
                    self.settings.arrival = text("poisson");
                }
                let to = given(&["to"])?;
                let (first, last) = (self.number(&amount)?, self.number(&to)?);
                (vec![Piece::Level { length: length?, first, last }], name == "rampConcurrentUsers")
            }
            "incrementUsersPerSec" | "incrementConcurrentUsers" => {
                let step = self.number(&amount)?;
                let times = self.count(&given(&["times"])?).filter(|times| *times <= MOST_LEVELS)?;
                let each = self.time(&given(&["eachLevelLasting"])?)?;
                let ramp = match given(&["separatedByRampsLasting"]) {
                    Some(ramp) => self.time(&ramp)?,
                    None => 0,
                };
                let start = match given(&["startingFrom"]) {
                    Some(start) => self.number(&start)?,
                    None => zero,
                };
                // Without a beginning, the first level is one step up.
                let above = u128::from(start.is_zero());
                let mut pieces = Vec::new();
                for level in 0..u128::from(times) {
                    let at = start.plus(step.times_whole(level + above)?)?;
                    pieces.push(Piece::flat(each, at));
                    if ramp > 0 && level + 1 < u128::from(times) {
                        pieces.push(Piece::Level { length: ramp, first: at, last: at.plus(step)? });
                    }
                }
                (pieces, name == "incrementConcurrentUsers")
            }
            _ => return None,
        })
    }

    /// Users who arrive and then repeat their steps for a time, or for ever, are users of the closed model:
    /// their steps become the iteration.
    fn users_of_loops(&mut self, population: &mut Population, most: Option<u64>) {
        let Some((last, before)) = population.actions.split_last() else { return };
        let is_plain = before.iter().all(|one| ["scenario", "feed"].contains(&one.name.as_str()));
        let stay = match last.name.as_str() {
            "forever" => Some(Stay::Forever),
            "during" => match last.first().first().cloned() {
                Some(time) => self.time(&time).filter(|nanos| *nanos > 0).map(Stay::During),
                None => None,
            },
            _ => None,
        };
        let (Some(stay), true) = (stay, is_plain) else { return };
        let Some(users) = users_over_time(&population.pieces, stay, most) else { return };
        let becomes =
            "users who repeat their steps are users of the closed model: the steps are an iteration";
        let (span, name) = (last.span, last.name.clone());
        let mut body = last.clone();
        if name == "during" && body.behind.is_empty() {
            body.calls.remove(0);
        } else if name == "during" {
            body.calls.clear();
        }
        body.name = "exec".to_owned();
        body.calls.extend(std::mem::take(&mut body.behind).into_iter().map(|(_, list)| list));
        if let Some(last) = population.actions.last_mut() {
            *last = body;
        }
        (population.is_rate, population.is_repeated) = (false, true);
        population.pieces = users;
        self.note_call(span, &name, becomes);
    }

    /// A plan has users or a rate: populations of the other kind are left out.
    fn keep_one_model(&mut self, populations: &mut Vec<Population>) {
        let Some(is_rate) = populations.first().map(|first| first.is_rate) else { return };
        let others: Vec<(Span, String)> = populations
            .iter()
            .filter(|population| population.is_rate != is_rate)
            .map(|population| (population.span, population.title.clone()))
            .collect();
        for (span, title) in others {
            let becomes = "a plan has one kind of load, and the first scenario has another: it is left out; \
                           make a plan of its own for it";
            self.note_call(span, &title, becomes);
        }
        populations.retain(|population| population.is_rate == is_rate);
    }

    /// Adds the scenario of a population; `false` if there is no request in it.
    fn put_scenario(&mut self, population: &Population) -> bool {
        self.protocol = population.protocol.clone();
        let mut names = Titles::default();
        let mut within = In {
            names: &mut names,
            scenario: &population.title,
            groups: Vec::new(),
            in_loop: false,
            is_repeated: population.is_repeated,
            paces: 0,
            ends: false,
        };
        let steps = self.carry_out(&population.actions, &mut within);
        let steps = if population.is_repeated { paced_at_end(steps) } else { steps };
        if !flow::has_request(&steps) {
            if !self.findings.has_problems() {
                let title = population.title.clone();
                self.note_call(population.span, &title, "there is no request in it: it is left out");
            }
            return false;
        }
        let drafted = super::scenario(&population.title, steps, &population.protocol.headers);
        self.document.scenarios.push(drafted);
        true
    }
}

/// The number of users, if all of them come at once.
fn jumps(pieces: &[Piece]) -> Option<u64> {
    pieces.iter().try_fold(0_u64, |sum, piece| match piece {
        Piece::Jump(users) => sum.checked_add(*users),
        Piece::Level { .. } => None,
    })
}

/// Users that arrive in it.
fn work(piece: &Piece) -> Option<Ratio> {
    match piece {
        Piece::Jump(users) => Some(Ratio::whole(u128::from(*users))),
        Piece::Level { length, first, last } => {
            let seconds = Ratio::new(u128::from(*length), u128::from(SECOND) * 2)?;
            first.plus(*last)?.times(seconds)
        }
    }
}

/// The stages of a profile that ends after `most` at the latest, and how long it would be.
fn stages(pieces: &[Piece], most: Option<u64>) -> (Level, u64) {
    let mut segments = Vec::new();
    let mut from = 0_u64;
    for piece in pieces {
        let (length, first, last) = match *piece {
            Piece::Jump(users) => {
                let rate = Ratio::whole(u128::from(users) * u128::from(SECOND / AT_ONCE));
                (AT_ONCE, rate, rate)
            }
            Piece::Level { length, first, last } => (length, first, last),
        };
        let to = from.saturating_add(length);
        if to > from {
            segments.push(Segment { from, to, first, last });
        }
        from = to;
    }
    let end = most.unwrap_or(u64::MAX);
    let mut all = Vec::new();
    let mut level = segments.first().map_or(Ratio::whole(0), |segment| segment.first);
    let first = level;
    for segment in segments.iter().filter(|segment| segment.from < end) {
        let to = segment.to.min(end);
        let last = segment.at(to).unwrap_or(segment.last);
        if level != segment.first {
            all.push((0, segment.first));
        }
        all.push((to - segment.from, last));
        level = last;
    }
    (Level::Stages(first, all), from)
}

/// The number of users over time, of whom each stays for a while. `None` where arrivals themselves rise, and
/// for users who stay for ever without an end of the run.
fn users_over_time(pieces: &[Piece], stay: Stay, most: Option<u64>) -> Option<Vec<Piece>> {
    // Arrivals: from, to, and their number; all at once where both are the same.
    let mut arrivals = Vec::new();
    let mut at = 0_u64;
    for piece in pieces {
        match *piece {
            Piece::Jump(users) => arrivals.push((at, at, users)),
            Piece::Level { length, first, last } if first == last => {
                let users = work(piece)?;
                if !users.is_whole() {
                    return None;
                }
                let to = at.checked_add(length)?;
                if !users.is_zero() {
                    arrivals.push((at, to, u64::try_from(users.ceil()).ok()?));
                }
                at = to;
            }
            Piece::Level { .. } => return None,
        }
    }
    let length = match stay {
        Stay::During(nanos) => Some(nanos),
        Stay::Forever => None,
    };
    let end = match length {
        Some(length) => most.unwrap_or(u64::MAX).min(at.checked_add(length)?),
        None => most?,
    };
    let mut times = vec![0, end];
    for (from, to, _) in &arrivals {
        times.extend([*from, *to]);
        if let Some(length) = length {
            times.extend([from.checked_add(length)?, to.checked_add(length)?]);
        }
    }
    times.retain(|time| *time <= end);
    times.sort_unstable();
    times.dedup();
    // Users who have come by then; those of that very instant, too, if `with`.
    let come = |time: u64, with: bool| -> u64 {
        let each = arrivals.iter().map(|(from, to, users)| match () {
            () if time > *to || (time == *to && (with || from < to)) => *users,
            () if time <= *from => 0,
            () => {
                let part = u128::from(*users) * u128::from(time - from) / u128::from(to - from);
                u64::try_from(part).unwrap_or(u64::MAX)
            }
        });
        each.fold(0, u64::saturating_add)
    };
    let here = |time: u64, with: bool| {
        let gone = length.and_then(|length| time.checked_sub(length)).map_or(0, |time| come(time, with));
        Ratio::whole(u128::from(come(time, with).saturating_sub(gone)))
    };
    let pairs = times.windows(2);
    let pieces = pairs.map(|pair| Piece::Level {
        length: pair[1] - pair[0],
        first: here(pair[0], true),
        last: here(pair[1], false),
    });
    Some(pieces.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pieces: &[Piece]) -> String {
        let each = pieces.iter().map(|piece| match piece {
            Piece::Jump(users) => format!("+{users}"),
            Piece::Level { length, first, last } => format!("{}s {first}-{last}", length / SECOND),
        });
        each.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn users_come_and_stay() {
        let ramp = Piece::flat(10 * SECOND, Ratio::whole(2));
        let wait = Piece::flat(5 * SECOND, Ratio::whole(0));
        for (pieces, stay, most, users) in [
            (vec![Piece::Jump(4)], Stay::During(10 * SECOND), None, "10s 4-4"),
            (vec![Piece::Jump(4)], Stay::Forever, Some(60 * SECOND), "60s 4-4"),
            (vec![ramp], Stay::Forever, Some(60 * SECOND), "10s 0-20, 50s 20-20"),
            (vec![ramp], Stay::During(30 * SECOND), None, "10s 0-20, 20s 20-20, 10s 20-0"),
            (
                vec![wait, Piece::Jump(3), wait, Piece::Jump(1)],
                Stay::Forever,
                Some(12 * SECOND),
                "5s 0-0, 5s 3-3, 2s 4-4",
            ),
        ] {
            assert_eq!(shown(&users_over_time(&pieces, stay, most).unwrap()), users);
        }
        assert!(users_over_time(&[ramp], Stay::Forever, None).is_none());
        let rise = Piece::Level { length: SECOND, first: Ratio::whole(0), last: Ratio::whole(2) };
        assert!(users_over_time(&[rise], Stay::Forever, Some(SECOND)).is_none());
    }
}
