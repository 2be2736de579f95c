//! hey's command line, as one of this program.

use plimsoll_report::result::shell_line;

/// Translates a flag of hey that has a value; `None` if it has no counterpart here.
fn with_value(flag: &str, value: &str) -> Option<Vec<String>> {
    let pair = |flag: &str, value: String| Some(vec![flag.to_owned(), value]);
    match flag {
        "-n" | "-z" | "-H" | "-o" => pair(flag, value.to_owned()),
        "-m" => pair("-X", value.to_owned()),
        "-d" => pair("-b", value.to_owned()),
        "-D" => pair("-b", format!("@{value}")),
        "-T" => pair("-H", format!("Content-Type: {value}")),
        "-A" => pair("-H", format!("Accept: {value}")),
        "-host" => pair("-H", format!("Host: {value}")),
        "-U" => pair("-H", format!("User-Agent: {value}")),
        "-a" => pair("--basic", value.to_owned()),
        "-t" => pair("--timeout", format!("{value}s")),
        "-x" => pair("--proxy", format!("http://{}", value.trim_start_matches("http://"))),
        "-cpus" => pair("-t", value.to_owned()),
        _ => None,
    }
}

/// Translates a flag of hey that has no value; `None` if there is no such flag.
fn alone(flag: &str) -> Option<Vec<String>> {
    let words: &[&str] = match flag {
        "-h2" => &["--http2"],
        "-disable-keepalive" => &["-H", "Connection: close"],
        // Answers are never decompressed, and redirects only followed if they are to be.
        "-disable-compression" | "-disable-redirects" => &[],
        _ => return None,
    };
    Some(words.iter().map(ToString::to_string).collect())
}

/// The hint for a command line of hey, whose words follow its name: all of it, as it is typed here.
///
/// hey has 200 requests, of 50 workers, and the rate of each worker.
pub(super) fn command(typed: &[String]) -> String {
    let (mut flags, mut url, mut unknown) = (Vec::new(), None, Vec::new());
    let (mut workers, mut each, mut has_end) = ("50".to_owned(), None, false);
    let mut words = typed.iter();
    while let Some(word) = words.next() {
        let flag = word.replacen("--", "-", 1);
        if !flag.starts_with('-') {
            url = Some(word.clone());
        } else if let Some(known) = alone(&flag) {
            flags.extend(known);
        } else {
            let value = words.next().map(String::as_str).unwrap_or_default();
            match &*flag {
                "-c" => value.clone_into(&mut workers),
                "-q" => each = Some(value.to_owned()),
                _ => match with_value(&flag, value) {
                    Some(known) => flags.extend(known),
                    None => unknown.push(word.clone()),
                },
            }
            has_end |= ["-n", "-z"].contains(&&*flag);
        }
    }
    let mut all = vec![url.unwrap_or_else(|| "URL".to_owned())];
    let end = (!has_end).then(|| ["-n".to_owned(), "200".to_owned()]);
    all.extend(flags.into_iter().chain(end.into_iter().flatten()));
    all.extend(["-c".to_owned(), workers.clone()]);
    if let Some(each) = each {
        let rate = each.parse().ok().zip(workers.parse().ok()).map(|(each, of): (f64, f64)| each * of);
        all.extend(["-q".to_owned(), rate.map_or(each, |rate| rate.to_string())]);
    }
    let left_out = match unknown.is_empty() {
        true => String::new(),
        false => format!(", without {}", unknown.join(", ")),
    };
    format!("hey is `plimsoll {}` here{left_out}", shell_line(&all))
}
