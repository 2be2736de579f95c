//! Streams of events: tokens, their times, and goodput.

use plimsoll_core::figure;

use super::{Fact, Line, Section, Shown, Table, count, figure_of, line, per_second, share, words};
use crate::contract::event_streams::EventStreamsResult;
use crate::contract::result::RunResult;

/// The place of the streams in a result.
const AT: &str = "/event_streams";

pub(super) fn sections(result: &RunResult) -> Vec<Section> {
    result.event_streams.iter().map(section).collect()
}

fn section(streams: &EventStreamsResult) -> Section {
    let at = |key: &str| format!("{AT}/{key}");
    let mut facts = Vec::new();
    if let Some(goodput) = &streams.goodput {
        let good = count(goodput.good, at("goodput/good"));
        let rate = per_second(goodput.per_s, at("goodput/per_s"));
        let of = share(goodput.share.unwrap_or(0.0), at("goodput/share"));
        let bounds = words(goodput.bounds.clone(), at("goodput/bounds"));
        facts.push(Fact::new("goodput", line![of, ", ", rate, ": ", good, " requests within ", bounds]));
    }
    let mut tokens = line![
        count(streams.tokens, at("tokens")),
        " out, ",
        per_second(streams.tokens_per_s, at("tokens_per_s"))
    ];
    if streams.tokens_per_s_per_user.is_some() {
        tokens.push(", ");
        tokens.push(per_second(streams.tokens_per_s_per_user, at("tokens_per_s_per_user")));
        tokens.push(" for each user");
    }
    if streams.prompt_tokens > 0 {
        tokens.push("; ");
        tokens.push(count(streams.prompt_tokens, at("prompt_tokens")));
        tokens.push(" in");
    }
    facts.push(Fact::new("tokens", tokens));
    let events = line![
        count(streams.events, at("events")),
        ", ",
        count(streams.content_events, at("content_events")),
        " with content, ",
        count(streams.shared_events, at("shared_events")),
        " read together with the one before, ",
        count(streams.shared_content_events, at("shared_content_events")),
        " of them with content"
    ];
    facts.push(Fact::new("events", events));
    facts.extend(doubts(streams).into_iter().map(|doubt| Fact::new("", doubt)));
    let times = [
        ("TTFT", "ttft", &streams.ttft),
        ("TTFT from sent", "ttft_from_sent", &streams.ttft_from_sent),
        ("TTFA", "ttfa", &streams.ttfa),
        ("ITL", "itl", &streams.itl),
        ("ITL per token", "itl_per_token", &streams.itl_per_token),
        ("TPOT", "tpot", &streams.tpot),
        ("NTPOT", "ntpot", &streams.ntpot),
        ("first event", "first_event_time", &streams.first_event_time),
        ("last event", "last_event_time", &streams.last_event_time),
    ];
    let rows = times.into_iter().filter(|(.., summary)| summary.count > 0).map(|(label, key, summary)| {
        let key = at(key);
        let mut row = vec![label.into(), count(summary.count, format!("{key}/count")).into()];
        row.extend(["50", "90", "99", "max", "mean"].map(|name| Line::from(figure_of(summary, &key, name))));
        row
    });
    let heads = ["", "count", "p50", "p90", "p99", "max", "mean"].map(|title| (title, Shown::Everywhere));
    Section { heading: "streams of events".to_owned(), table: Table::new("Tokens", heads, rows), facts }
}

/// Remarks that are needed to read the counts.
fn doubts(streams: &EventStreamsResult) -> Vec<String> {
    let mut doubts = Vec::new();
    if streams.count_differs > 0 {
        doubts.push(format!(
            "of {} the server counted other numbers of tokens than there were events with content; its count \
             is used",
            requests(streams.count_differs)
        ));
    }
    if streams.hidden_tokens > 0 {
        doubts.push(format!(
            "{} of the tokens are reasoning that the server counted and did not send; TPOT is without them",
            figure::count(streams.hidden_tokens)
        ));
    }
    if streams.uncounted > 0 {
        let all = streams.uncounted == streams.requests;
        let of = if all { "all requests".to_owned() } else { requests(streams.uncounted) };
        doubts
            .push(format!("the server did not count the tokens of {of}: events with content stand for them"));
    }
    if streams.disbelieved > 0 {
        doubts.push(format!(
            "of {} the server counted tokens in a way that cannot be; its count is not used",
            requests(streams.disbelieved)
        ));
    }
    doubts.extend(missing(streams));
    doubts
}

/// Remarks on good requests that nobody got anything from.
pub(crate) fn missing(streams: &EventStreamsResult) -> Vec<String> {
    let kinds = [
        (streams.empty, "ended well without any content"),
        (streams.unanswered, "ended well with reasoning and no answer"),
    ];
    let found = kinds.into_iter().filter(|(count, _)| *count > 0);
    found.map(|(count, what)| format!("{} {what}", requests(count))).collect()
}

fn requests(count: u64) -> String {
    match count {
        1 => "1 request".to_owned(),
        count => format!("{} requests", figure::count(count)),
    }
}
