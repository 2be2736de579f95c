//! The words of a query, without its strings and comments.

use std::ops::Range;

/// Words that begin statements other than queries, in SQLite and in DuckDB.
const DANGEROUS: [&str; 27] = [
    "ALTER",
    "ANALYZE",
    "ATTACH",
    "BEGIN",
    "CALL",
    "CHECKPOINT",
    "COMMIT",
    "COPY",
    "CREATE",
    "DELETE",
    "DETACH",
    "DROP",
    "EXPORT",
    "GRANT",
    "IMPORT",
    "INSERT",
    "INSTALL",
    "LOAD",
    "MERGE",
    "PRAGMA",
    "REINDEX",
    "REPLACE",
    "SAVEPOINT",
    "SET",
    "TRUNCATE",
    "UPDATE",
    "VACUUM",
];

/// Key words that change something, and nothing else.
const CHANGES: [&str; 3] = ["DELETE", "INSERT", "UPDATE"];

/// The words of a text.
#[derive(Debug, Default)]
pub(crate) struct Words {
    /// Names and key words, quoted names without their quotes, and signs; texts as `'`.
    tokens: Vec<String>,
    /// The first word of each statement.
    first: Vec<String>,
    /// `true` if a key word that changes something is anywhere in the text.
    changes: bool,
    /// The positions of unquoted names before a point.
    qualifiers: Vec<Range<usize>>,
}

/// The statements in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Statements {
    One,
    Several,
    /// One, which would change something.
    Dangerous,
}

/// A text with `quantile_cont(x, q)`, which SQLite is given, in place of standard SQL's
/// `PERCENTILE_CONT(q) WITHIN GROUP (ORDER BY x)`, which DuckDB takes as well.
pub(crate) fn with_quantiles(sql: &str) -> String {
    let (mut text, mut at) = (String::with_capacity(sql.len()), 0);
    while let Some(start) = word_from(sql, at, "PERCENTILE_CONT") {
        let name = start + "PERCENTILE_CONT".len();
        let (end, piece) = match ordered_set(&sql[name..]) {
            Some((length, quantile)) => (name + length, quantile),
            None => (name, sql[start..name].to_owned()),
        };
        text.extend([&sql[at..start], &piece]);
        at = end;
    }
    text.push_str(&sql[at..]);
    text
}

/// Behind `PERCENTILE_CONT`: the end of its form, and what stands for it.
fn ordered_set(rest: &str) -> Option<(usize, String)> {
    let skip = |at: usize| at + rest[at..].len() - rest[at..].trim_start().len();
    let word = |at: usize, word: &str| {
        let at = skip(at);
        let found = rest.get(at..at + word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word));
        found.then_some(at + word.len())
    };
    let (share, at) = in_parentheses(rest, skip(0))?;
    let at = word(word(at, "WITHIN")?, "GROUP")?;
    let (order, end) = in_parentheses(rest, skip(at))?;
    let by = order.trim_start();
    let by = by.get(..5).filter(|word| word.eq_ignore_ascii_case("ORDER")).map(|_| by[5..].trim_start())?;
    let of = by.get(..3).filter(|word| word.eq_ignore_ascii_case("BY ")).map(|_| by[3..].trim())?;
    Some((end, format!("quantile_cont({of}, {})", share.trim())))
}

/// Characters of an argument of a percentile, at most: what never ends is looked at no further.
const LONGEST_ARGUMENT: usize = 4_096;

/// The text in parentheses that begin at a place, and where they end.
fn in_parentheses(text: &str, at: usize) -> Option<(&str, usize)> {
    let mut depth = 0_usize;
    let mut quote = None;
    for (place, char) in text.get(at..)?.char_indices().take(LONGEST_ARGUMENT) {
        match (char, quote) {
            (_, Some(open)) if char == open => quote = None,
            (_, Some(_)) => {}
            ('\'' | '"', None) => quote = Some(char),
            ('(', None) => depth += 1,
            (')', None) => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some((&text[at + 1..at + place], at + place + 1));
                }
            }
            (_, None) if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// The first place at which a word stands, outside of texts and quoted names, from one on that is outside of
/// them.
fn word_from(text: &str, mut at: usize, word: &str) -> Option<usize> {
    while let Some(first) = text[at..].chars().next() {
        let length = match first {
            '\'' | '"' | '`' => quoted(&text[at..], first),
            _ if is_of_word(first) => text[at..].find(|char| !is_of_word(char)).unwrap_or(text.len() - at),
            _ => first.len_utf8(),
        };
        if text[at..at + length].eq_ignore_ascii_case(word) {
            return Some(at);
        }
        at += length;
    }
    None
}

impl Words {
    pub(crate) fn of(sql: &str) -> Self {
        let (mut found, mut rest, mut begins) = (Self::default(), sql, true);
        while let Some(first) = rest.chars().next() {
            let length = match first {
                '\'' => {
                    found.tokens.push("'".to_owned());
                    quoted(rest, '\'')
                }
                '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
                '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
                '"' | '`' => {
                    let length = quoted(rest, first);
                    let name = rest[1..length].trim_end_matches(first);
                    found.tokens.push(name.replace(&format!("{first}{first}"), &first.to_string()));
                    length
                }
                '[' => rest.find(']').map_or(rest.len(), |end| {
                    found.tokens.push(rest[1..end].to_owned());
                    end + 1
                }),
                ';' => {
                    begins = true;
                    1
                }
                _ if is_of_word(first) => {
                    let length = rest.find(|char| !is_of_word(char)).unwrap_or(rest.len());
                    let word = &rest[..length];
                    if begins {
                        found.first.push(word.to_owned());
                        begins = false;
                    }
                    found.tokens.push(word.to_owned());
                    found.changes |= CHANGES.iter().any(|change| change.eq_ignore_ascii_case(word));
                    // Digits before a point are a number.
                    if rest[length..].starts_with('.') && !first.is_numeric() {
                        let start = sql.len() - rest.len();
                        found.qualifiers.push(start..start + length);
                    }
                    length
                }
                other => {
                    if !other.is_whitespace() {
                        if begins {
                            found.first.push(String::new());
                            begins = false;
                        }
                        found.tokens.push(other.to_string());
                    }
                    other.len_utf8()
                }
            };
            rest = &rest[length..];
        }
        found
    }

    /// Returns `true` if this word is there, in any case of letters.
    pub(crate) fn names(&self, name: &str) -> bool {
        self.tokens.iter().any(|word| word.eq_ignore_ascii_case(name))
    }

    /// The text with quotes around the names that a point follows: some that a database may have, such as
    /// `default`, are key words of SQLite.
    pub(crate) fn quoted(&self, sql: &str) -> String {
        let mut quoted = sql.to_owned();
        // From the back: the places before it stay.
        for place in self.qualifiers.iter().rev() {
            quoted.insert(place.end, '"');
            quoted.insert(place.start, '"');
        }
        quoted
    }

    /// If this is nothing but `SELECT COUNT(*) [[AS] name] FROM [database.]measurement`: the name of the
    /// number, the database and the measurement. A check of a load should not walk over all of its rows.
    pub(crate) fn whole_count(&self) -> Option<(String, Option<&str>, &str)> {
        let tokens: Vec<&str> = self.tokens.iter().map(String::as_str).collect();
        let is = |token: &str, word: &str| token.eq_ignore_ascii_case(word);
        let [select, count, "(", "*", ")", rest @ ..] = &tokens[..] else { return None };
        if !is(select, "SELECT") || !is(count, "COUNT") {
            return None;
        }
        let (name, rest) = match rest {
            [from, rest @ ..] if is(from, "FROM") => (format!("{count}(*)"), rest),
            [by, name, from, rest @ ..] if is(by, "AS") && is(from, "FROM") => ((*name).to_owned(), rest),
            [name, from, rest @ ..] if is(from, "FROM") => ((*name).to_owned(), rest),
            _ => return None,
        };
        match rest {
            [measurement] => Some((name, None, *measurement)),
            [database, ".", measurement] => Some((name, Some(*database), *measurement)),
            _ => None,
        }
    }

    /// If this asks of a whole measurement how many rows it has, how many of them are outside of two times,
    /// and for its least and greatest time, all in milliseconds since 1970: the database and the measurement,
    /// and the two times. A load is checked with this, too, after each run.
    pub(crate) fn whole_times(&self) -> Option<(Option<&str>, &str, [i64; 2])> {
        const FORM: &str = "SELECT COUNT ( * ) , COUNT ( CASE WHEN epoch_ms ( time ) NOT BETWEEN # AND # THEN 1 END ) \
                            , epoch_ms ( MIN ( time ) ) , epoch_ms ( MAX ( time ) ) FROM";
        let form = FORM.split_ascii_whitespace();
        let (head, rest) = self.tokens.split_at_checked(form.clone().count())?;
        let mut numbers = Vec::new();
        for (token, form) in head.iter().zip(form) {
            match form {
                "#" => numbers.push(token.parse().ok()?),
                form => token.eq_ignore_ascii_case(form).then_some(())?,
            }
        }
        let (database, measurement) = match rest {
            [measurement] => (None, measurement),
            [database, point, measurement] if point == "." => (Some(database.as_str()), measurement),
            _ => return None,
        };
        Some((database, measurement, numbers.try_into().ok()?))
    }

    /// Returns `true` if a number is added to a time. SQLite takes the time for a number, and finds nothing.
    pub(crate) fn adds_to_a_time(&self) -> bool {
        self.tokens
            .windows(2)
            .any(|pair| pair[0].eq_ignore_ascii_case("time") && matches!(&*pair[1], "+" | "-"))
    }

    pub(crate) fn statements(&self) -> Statements {
        match self.first.as_slice() {
            [first] if DANGEROUS.iter().any(|word| word.eq_ignore_ascii_case(first)) => Statements::Dangerous,
            // Any of these may follow WITH.
            [first] if self.changes && first.eq_ignore_ascii_case("WITH") => Statements::Dangerous,
            [] | [_] => Statements::One,
            _ => Statements::Several,
        }
    }
}

fn is_of_word(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '$')
}

/// Bytes of the quoted text at the front; a doubled quote does not end it.
fn quoted(text: &str, quote: char) -> usize {
    let mut at = 1;
    while let Some(end) = text[at..].find(quote) {
        at += end + 1;
        if !text[at..].starts_with(quote) {
            return at;
        }
        at += 1;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_and_strings_and_comments_are_none() {
        let sql = "SELECT a.b, 'x''y z' FROM \"my-db\".m -- w\n JOIN `q``r` /* v */ ON [u t]=é;";
        let words = Words::of(sql).tokens.join(" ");
        assert_eq!(words, "SELECT a . b , ' FROM my-db . m JOIN q`r ON u t = é");
        assert!(Words::of(sql).names("MY-DB") && !Words::of(sql).names("x"));
        for odd in ["'", "\"", "\"\"", "[", "/*", "--", "", "'''"] {
            let _ = Words::of(odd);
        }
    }

    #[test]
    fn a_count_of_everything_is_recognised() {
        let count = |sql: &str| {
            let words = Words::of(sql);
            let found = words.whole_count();
            found.map(|(name, database, measurement)| format!("{name} {database:?} {measurement}"))
        };
        for (sql, expected) in [
            ("SELECT COUNT(*) FROM cpu", Some("COUNT(*) None cpu")),
            ("select count ( * ) as n from \"my-db\".cpu ; -- all", Some("n Some(\"my-db\") cpu")),
            ("SELECT COUNT(*) n FROM a.b", Some("n Some(\"a\") b")),
            ("SELECT COUNT(*) AS n FROM cpu WHERE 1", None),
            ("SELECT COUNT(*) AS n FROM a, b", None),
            ("SELECT COUNT(*), 1 FROM cpu", None),
            ("SELECT COUNT(v) FROM cpu", None),
            ("SELECT SUM(*) FROM cpu", None),
            ("SELECT 1", None),
        ] {
            assert_eq!(count(sql).as_deref(), expected, "{sql}");
        }
    }

    #[test]
    fn percentiles_of_standard_sql_are_quantiles() {
        for (sql, expected) in [
            (
                "SELECT PERCENTILE_CONT(0.95) WITHIN GROUP (ORDER BY t.d / 1.0) as p FROM t",
                "SELECT quantile_cont(t.d / 1.0, 0.95) as p FROM t",
            ),
            (
                "select percentile_cont( 0.5 )within group(order by abs(v)), \
                 percentile_cont(1) WITHIN GROUP (ORDER BY \"a)\")",
                "select quantile_cont(abs(v), 0.5), quantile_cont(\"a)\", 1)",
            ),
            ("SELECT 'PERCENTILE_CONT(0.95) WITHIN GROUP (ORDER BY x)'", ""),
            ("SELECT PERCENTILE_CONT(0.95), percentile_cont FROM t", ""),
            ("SELECT PERCENTILE_CONT(0.95) WITHIN GROUP (x", ""),
            ("PERCENTILE_CONT", ""),
            (
                "PERCENTILE_CONT(é) WITHINé GROUP (ORDER BY x), percentile_cont(1) within group (ordeé by x",
                "",
            ),
            ("'a", ""),
        ] {
            let expected = if expected.is_empty() { sql } else { expected };
            assert_eq!(with_quantiles(sql), expected);
        }
    }

    #[test]
    fn sums_with_a_time_are_told_from_those_with_its_number() {
        for (sql, adds) in [
            ("SELECT 1 WHERE m.time BETWEEN e.time AND e.time + 300000", true),
            ("SELECT TIME - 5 FROM x", true),
            ("SELECT 1 WHERE epoch_ms(m.time) < epoch_ms(e.time) + 300000", false),
            ("SELECT time, 'time + 1', uptime + 1 FROM x", false),
        ] {
            assert_eq!(Words::of(sql).adds_to_a_time(), adds, "{sql}");
        }
    }

    #[test]
    fn names_before_points_are_quoted() {
        let sql = "SELECT 1.5, default.a, t.b, 'default.c' FROM default.cpu t JOIN \"default\".x";
        let expected =
            "SELECT 1.5, \"default\".a, \"t\".b, 'default.c' FROM \"default\".cpu t JOIN \"default\".x";
        assert_eq!(Words::of(sql).quoted(sql), expected);
    }

    #[test]
    fn what_is_no_query_is_told_from_what_is() {
        for (sql, expected) in [
            ("SELECT 1", Statements::One),
            (" -- a comment\n select 1 ; ", Statements::One),
            ("WITH x AS (SELECT 1) SELECT * FROM x", Statements::One),
            ("SELECT 'DROP TABLE x; DROP'", Statements::One),
            ("", Statements::One),
            ("(SELECT 1)", Statements::One),
            ("SELECT 1; SELECT 2", Statements::Several),
            ("SELECT 1; DROP TABLE x", Statements::Several),
            ("drop table x", Statements::Dangerous),
            ("WITH x AS (SELECT 1) INSERT INTO y SELECT * FROM x", Statements::Dangerous),
            ("/* */ Pragma x", Statements::Dangerous),
            ("ATTACH 'x' AS y", Statements::Dangerous),
            ("VACUUM INTO 'x'", Statements::Dangerous),
        ] {
            assert_eq!(Words::of(sql).statements(), expected, "{sql}");
        }
    }
}
