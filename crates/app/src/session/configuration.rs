//! Problems with a plan that is made of a configuration of h2loadrunner, in words of that.

use plimsoll_document::Problem;

/// Settings of a plan that is made of a configuration of h2loadrunner, each with its field there.
const FIELDS: [(&str, &str); 18] = [
    ("rate_of", "request-per-second"),
    ("rate_file", "request-per-second-feed-file"),
    ("rps", "request-per-second"),
    ("duration", "duration"),
    ("iterations", "total-requests"),
    ("connections", "clients"),
    ("connection_rate", "rate"),
    ("connection_lifetime", "connection-active-timeout"),
    ("connection_inactivity", "connection-inactivity-timeout"),
    ("threads", "threads"),
    ("timeout", "stream-timeout"),
    ("warmup", "warm-up-time"),
    ("max_concurrent_streams", "max-concurrent-streams"),
    ("window_bits", "window-bits"),
    ("connection_window_bits", "connection-window-bits"),
    ("header_table_size", "header-table-size"),
    ("encoder_header_table_size", "encoder-header-table-size"),
    ("ping_interval", "interval-between-ping-frames"),
];

/// The problem with a plan that is made of a configuration of h2loadrunner, in words of that and without a
/// place in a text that nobody has written. One about anything else keeps its place.
pub(crate) fn by_field(problem: &Problem) -> Problem {
    let is_of_length = problem.message.ends_with("does not set the length of the run");
    let (Some(message), hint) = (in_fields(&problem.message), problem.hint.as_deref()) else {
        return problem.clone();
    };
    let hint = match hint {
        Some(_) if is_of_length => Some(
            "leave it out: the `duration` of the file is the length of the run, or -d; as many requests \
             are sent as the rate has in it"
                .to_owned(),
        ),
        hint => hint.map(|hint| in_fields(hint).unwrap_or_else(|| hint.to_owned())),
    };
    Problem { message, hint, place: None, also: Vec::new() }
}

/// A text with fields of the file in place of `run.SETTING`; `None` if it has no such setting.
fn in_fields(text: &str) -> Option<String> {
    let (mut written, mut rest, mut found) = (String::new(), text, false);
    while let Some((before, after)) = rest.split_once("run.") {
        let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
        let field = FIELDS.iter().find(|(setting, _)| *setting == &after[..end]);
        written.push_str(before);
        match field {
            Some((_, field)) => written.push_str(&format!("`{field}` of the file")),
            None => written.extend(["run.", &after[..end]]),
        }
        found |= field.is_some();
        rest = &after[end..];
    }
    written.push_str(rest);
    found.then_some(written)
}

#[cfg(test)]
mod tests {
    use plimsoll_document::Place;

    use super::*;

    /// Symptom: `-n` beside a configuration was refused in words of a plan, with a line of it.
    #[test]
    fn fields_take_the_place_of_settings() {
        let place = Some(Place { start: 3, end: 4 });
        let problem = |message: &str| {
            by_field(&Problem { place, ..Problem::new(message).with_hint("lower run.connections") })
        };
        let length =
            problem("run.rate_of counts requests, so --iterations does not set the length of the run");
        assert_eq!(
            length.message,
            "`request-per-second` of the file counts requests, so --iterations does not set the length of the run"
        );
        assert!(
            length.place.is_none() && length.hint.is_some_and(|hint| hint.contains("`duration` of the file"))
        );
        let both = problem("run.threads: 4 threads, and run.connections has 2");
        assert_eq!(both.message, "`threads` of the file: 4 threads, and `clients` of the file has 2");
        assert_eq!(both.hint.as_deref(), Some("lower `clients` of the file"));
        let other = problem("the scenario `run.x` has no request");
        assert_eq!((other.message.as_str(), other.place), ("the scenario `run.x` has no request", place));
    }
}
