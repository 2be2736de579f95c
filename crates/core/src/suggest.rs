//! "Did you mean": the candidate nearest to a mistyped word.

/// Longer words are not compared: they are hardly typed by hand, and the work grows with the product of both
/// lengths.
const LONGEST_WORD: usize = 64;

/// The candidate that `word` was probably meant to be: the one with the smallest edit distance, if that is at
/// most a third of the word (and at least one edit).
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().take(LONGEST_WORD + 1).count();
    if length > LONGEST_WORD {
        return None;
    }
    let limit = (length / 3).max(1);
    // It takes at least as many edits as the lengths differ by.
    let may_be =
        |candidate: &&str| candidate.chars().take(length + limit + 1).count().abs_diff(length) <= limit;
    candidates
        .into_iter()
        .filter(may_be)
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|&(edits, _)| edits <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Edits (insert, delete, replace, swap of neighbours: Damerau's optimal string alignment) from `a` to `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut edits = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                edits = edits.min(rows[i - 2][j - 2] + 1);
            }
            row.push(edits);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        let words = ["run", "sink", "demo", "schema"];
        assert_eq!(closest("rnu", words), Some("run"));
        assert_eq!(closest("shcema", words), Some("schema"));
        assert_eq!(closest("snk", words), Some("sink"));
        assert_eq!(closest("report", words), None);
        assert_eq!(closest("", words), None);
        assert_eq!(closest("runs", ["ru", "run", "runsxx"]), Some("run"));
    }

    /// A key of 5 MB in a plan took 849 MB and 6 s: it was compared with all that is known, letter by letter.
    #[test]
    fn long_words_are_compared_with_none() {
        let long = "x".repeat(5_000);
        assert_eq!(closest(&long, [&*format!("{long}y")]), None);
        assert_eq!(closest("xxx", [&*long, "xxy"]), Some("xxy"));
        let limit = "x".repeat(LONGEST_WORD);
        assert_eq!(closest(&limit, [&limit[1..]]), Some(&limit[1..]));
    }
}
