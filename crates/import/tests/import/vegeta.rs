//! Targets of vegeta.

use plimsoll_import::vegeta::{Options, import};

use crate::import::{checked_alone, shown};

const HTTP: &str = "\
# the front page, twice as often
GET http://127.0.0.1:8080/

GET http://127.0.0.1:8080/
POST http://127.0.0.1:8080/items?x=${y}
Content-Type: application/json
X-Account: 7
x-account: 8
@item.json

GET http://me:pw@other.example/
Content-Length: 3
";

const JSON: &str = r#"{"method": "POST", "url": "http://h/a", "body": "eyJhIjoxfQ==", "header": {"X": ["1"], "Y": "2"}}
{"method": "GET", "url": "http://h/b", "extra": 1}
"#;

#[test]
fn targets_become_scenarios_or_steps() {
    insta::assert_snapshot!("http", shown(&checked_alone(import(HTTP.as_bytes(), &Options::default()))));
    insta::assert_snapshot!(
        "http_steps",
        shown(&checked_alone(import(HTTP.as_bytes(), &Options { steps: true })))
    );
    insta::assert_snapshot!("json", shown(&checked_alone(import(JSON.as_bytes(), &Options::default()))));
}

#[test]
fn mistakes() {
    let mut text = String::new();
    for source in [
        "",
        "X: early\n",
        "GET http://h/\n\n@late\n",
        "GET /path\nget http://h/\nGET http://h/a b\nGET http://h/\nA B: c\n",
        "{\"method\": \"GET\"}\n{\"url\": \"http://h/\", \"method\": 1}\n{\n[]\n",
        "{\"method\": \"PUT\", \"url\": \"http://h/\", \"body\": \"!\", \"header\": {\"a\": 1}}",
        "{\"method\": \"PUT\", \"url\": \"http://h/\", \"body\": \"/w==\"}",
    ] {
        let shown = shown(&checked_alone(import(source.as_bytes(), &Options::default())));
        text.push_str(&format!("# {}\n{shown}\n", source.replace('\n', "\n# ")));
    }
    text.push_str(&shown(&checked_alone(import(b"\xff", &Options::default()))));
    insta::assert_snapshot!(text);
}
