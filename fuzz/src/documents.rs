//! JSON documents as the ingest server reads them: Elasticsearch's bulk API and JSON lines. A bulk request
//! has a row for each document, and those documents alone are JSON lines with as many.

use plimsoll_targets::ingest::BodyForm;

/// Runs one input.
pub fn run(data: &[u8]) {
    let rows = |form: BodyForm, body: &[u8]| {
        form.read(body).map(|content| content.rows.iter().map(|(_, rows)| rows).sum::<u64>())
    };
    let is_blank = |line: &&[u8]| line.trim_ascii().is_empty();
    let lines = data.split(|&byte| byte == b'\n').filter(|line| !is_blank(line));
    let count = lines.clone().count() as u64;
    if let Ok(rows) = rows(BodyForm::JsonLines, data) {
        assert_eq!(rows, count);
        // Each line is a document of its own.
        let bulk: Vec<u8> =
            lines.clone().flat_map(|line| [b"{\"index\":{}}\n", line, b"\n"].concat()).collect();
        if count > 0 {
            assert_eq!(BodyForm::Bulk.read(&bulk).map(|content| content.rows[0].1), Ok(count));
        }
    }
    if let Ok(documents) = rows(BodyForm::Bulk, data) {
        assert_eq!(2 * documents, count, "an action and a document for each row");
        let alone: Vec<u8> = lines.skip(1).step_by(2).flat_map(|line| [line, b"\n"].concat()).collect();
        assert_eq!(rows(BodyForm::JsonLines, &alone), Ok(documents));
    }
}
