//! Lists: which items, in which order, and how many of them.

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::Value;

use crate::state::State;

/// Items of a page unless `take` says otherwise.
const PAGE: usize = 1000;

/// Parameters of a list request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Query {
    take: Option<usize>,
    skip: usize,
    /// A field, and whether the greatest is first.
    sort: Option<(String, bool)>,
    /// Fields and their wanted values.
    wanted: Vec<(String, String)>,
}

impl Query {
    /// Parses the part behind the question mark.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let mut query = Self::default();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decoded(name)?, decoded(value)?);
            match &name[..] {
                "take" => query.take = Some(value.parse().map_err(|_| "'take' must be a number")?),
                "skip" => query.skip = value.parse().map_err(|_| "'skip' must be a number")?,
                "sort" => {
                    let (field, descending) =
                        value.strip_prefix('-').map_or((&value[..], false), |f| (f, true));
                    query.sort = Some((field.to_owned(), descending));
                }
                _ => query.wanted.push((name, value)),
            }
        }
        Ok(query)
    }

    /// The items to choose from: those of the page, if no others have to be examined.
    pub(crate) fn collect(&self, state: &State, model: &str) -> QueryResult {
        let Some(items) = state.models.get(model) else { return QueryResult::default() };
        let all = items.iter().map(|(_, item)| item.clone());
        let is_plain = self.sort.is_none() && self.wanted.is_empty();
        QueryResult {
            items: if is_plain { all.skip(self.skip).take(self.taken()).collect() } else { all.collect() },
            total: is_plain.then_some(items.len()),
        }
    }

    /// The reply: a page of the items.
    pub(crate) fn page(&self, found: QueryResult) -> String {
        let QueryResult { mut items, total } = found;
        let total = total.unwrap_or_else(|| {
            self.choose(&mut items);
            let total = items.len();
            items = items.drain(..).skip(self.skip).take(self.taken()).collect();
            total
        });
        let mut text = String::with_capacity(64 + items.iter().map(|item| item.len() + 1).sum::<usize>());
        text.push_str(r#"{"data":["#);
        for (number, item) in items.iter().enumerate() {
            if number > 0 {
                text.push(',');
            }
            text.push_str(item);
        }
        let (has_more, skip, take) = (self.skip.saturating_add(items.len()) < total, self.skip, self.taken());
        text.push_str(&format!(r#"],"has_more":{has_more},"skip":{skip},"take":{take},"total":{total}}}"#));
        text
    }

    fn taken(&self) -> usize {
        self.take.unwrap_or(PAGE)
    }

    fn choose(&self, items: &mut Vec<Arc<str>>) {
        let mut read: Vec<(Value, Arc<str>)> =
            items.drain(..).filter_map(|item| Some((parsed(&item)?, item))).collect();
        read.retain(|(item, _)| self.wanted.iter().all(|(name, wanted)| is(item.get(name), wanted)));
        if let Some((field, descending)) = &self.sort {
            read.sort_by(|(one, _), (other, _)| {
                let order = compare(one.get(field), other.get(field));
                if *descending { order.reverse() } else { order }
            });
        }
        *items = read.into_iter().map(|(_, item)| item).collect();
    }
}

/// Items, and how many there are in all, if that is known.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct QueryResult {
    items: Vec<Arc<str>>,
    total: Option<usize>,
}

fn parsed(item: &str) -> Option<Value> {
    serde_json::from_str(item).ok()
}

/// Returns `true` if a value equals the text in the query: the text of a string, or the JSON of any other
/// value.
fn is(value: Option<&Value>, wanted: &str) -> bool {
    match value {
        None => false,
        Some(Value::String(text)) => text == wanted,
        Some(value) => {
            let text = value.to_string();
            text == wanted
        }
    }
}

/// Nothing first, then numbers, then texts, then all else as JSON writes it.
fn compare(one: Option<&Value>, other: Option<&Value>) -> Ordering {
    let rank = |value: Option<&Value>| match value {
        None => 0,
        Some(Value::Number(_)) => 1,
        Some(Value::String(_)) => 2,
        Some(_) => 3,
    };
    let number = |value: Option<&Value>| value.and_then(Value::as_f64).unwrap_or_default();
    match (one, other) {
        (Some(Value::Number(_)), Some(Value::Number(_))) => number(one).total_cmp(&number(other)),
        (Some(Value::String(one)), Some(Value::String(other))) => one.cmp(other),
        _ if rank(one) != rank(other) => rank(one).cmp(&rank(other)),
        _ => one.map(Value::to_string).cmp(&other.map(Value::to_string)),
    }
}

/// Decodes `%41` and `+`.
fn decoded(text: &str) -> Result<String, &'static str> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || (rest.next()? as char).to_digit(16);
                let value = digit().zip(digit()).map(|(high, low)| high * 16 + low);
                value.ok_or("the query is not written as URLs are")? as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| "the query is not UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collection::Collection;

    fn ask(query: &str) -> String {
        let mut items = Collection::default();
        for (id, item) in
            [r#"{"n":2,"s":"b c"}"#, r#"{"n":10,"s":"a"}"#, r#"{"n":1.5}"#].into_iter().enumerate()
        {
            items.put(id as u128, item);
        }
        let state = State { models: [("m".to_owned(), items)].into(), ..State::default() };
        let query = Query::parse(query).unwrap();
        query.page(query.collect(&state, "m")).replace('"', "'")
    }

    #[test]
    fn pages() {
        let tail = "'has_more':false,'skip':0,'take':1000,'total':3}";
        assert_eq!(ask(""), format!("{{'data':[{{'n':2,'s':'b c'}},{{'n':10,'s':'a'}},{{'n':1.5}}],{tail}"));
        let page = "{'data':[{'n':10,'s':'a'}],'has_more':true,'skip':1,'take':1,'total':3}";
        assert_eq!(ask("take=1&skip=1"), page);
        assert_eq!(ask("take=1&sort=-n"), page.replace("'skip':1", "'skip':0"));
        assert_eq!(ask("take=0&skip=9"), "{'data':[],'has_more':false,'skip':9,'take':0,'total':3}");
    }

    #[test]
    fn chosen_and_sorted() {
        assert!(ask("sort=n").starts_with("{'data':[{'n':1.5},{'n':2,'s':'b c'},{'n':10,'s':'a'}]"));
        assert!(ask("sort=s").starts_with("{'data':[{'n':1.5},{'n':10,'s':'a'},{'n':2,'s':'b c'}]"));
        for query in ["s=b+c", "s=b%20c", "n=2"] {
            assert!(ask(query).starts_with("{'data':[{'n':2,'s':'b c'}],'has_more':false"), "{query}");
        }
        assert!(ask("limit=1").contains("'data':[]") && ask("limit=1").contains("'total':0"));
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        for bad in ["take=x", "skip=-1", "s=%4", "s=%ff"] {
            assert!(Query::parse(bad).is_err(), "{bad}");
        }
    }
}
