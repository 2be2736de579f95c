//! The page and the answers that need no other process.

use serde_json::json;

use crate::client::Server;

#[test]
fn the_page_and_its_files_are_served_and_remembered() {
    let server = Server::start();
    let page = server.get("", "/");
    assert!(page.body.starts_with("<!doctype html>") || page.body.starts_with("<!DOCTYPE html>"), "{page:?}");
    for (path, media) in [("/assets/app.js", "text/javascript"), ("/assets/app.css", "text/css")] {
        let reply = server.get("", path);
        assert!(
            reply.status == 200 && reply.field("content-type").unwrap().starts_with(media),
            "{}",
            reply.head
        );
        let etag = reply.field("etag").unwrap();
        let fields = [("host", &*server.address), ("if-none-match", etag)];
        let again = server.request(&format!("GET {path}"), &fields, "");
        assert_eq!((again.status, &*again.body), (304, ""));
    }
}

#[test]
fn what_the_program_knows_of_itself_is_told() {
    let server = Server::start();
    let session = server.session();
    let about = server.get(&session, "/api/about").json();
    assert_eq!(
        (&about["version"], &about["read_only"], &about["sink"]),
        (&json!("1.2.3"), &json!(false), &json!(null))
    );
    assert!(about["folder"].as_str().unwrap().ends_with("/opened"), "{about}");
    let examples = server.get(&session, "/api/examples").json();
    let examples = examples["examples"].as_array().unwrap();
    assert!(examples.len() > 20);
    for example in examples {
        assert!(example["title"].as_str().is_some_and(|title| !title.is_empty()), "{}", example["name"]);
    }
    assert_eq!(server.get(&session, "/api/schema/plan").json()["title"], "A plan");
    server.get(&session, "/api/schema/none").assert_refused(404);
    assert_eq!(server.get(&session, "/api/forms").json()["commands"], json!([]));
    // Without a history there is an empty one.
    assert_eq!(server.get(&session, "/api/runs").json(), json!({"runs": [], "total": 0}));
    assert_eq!(server.get(&session, "/api/live").json(), json!({"runs": []}));
    server.get(&session, "/api/runs/0123").assert_refused(404);
    server.post(&session, "/api/runs/0123/delete", &json!({})).assert_refused(404);
    server.post(&session, "/api/compare", &json!({"a": ["0123"], "b": ["4567"]})).assert_refused(404);
    server.post(&session, "/api/compare", &json!({"a": [], "b": []})).assert_refused(422);
    server.get(&session, "/api/series/0123").assert_refused(404);
    server.get(&session, "/api/compare/export?a=0123&b=4567&format=html").assert_refused(404);
    server.get(&session, "/api/compare/export?a=0123&b=&format=json").assert_refused(422);
    server.get(&session, "/api/compare/export?a=0123&b=4567&format=x").assert_refused(400);
    server.post(&session, "/api/live/0123/stop", &json!({"now": true})).assert_refused(404);
    for what in ["rate", "pause", "resume", "stop"] {
        let body = if what == "rate" { json!({"rate": "5"}) } else { json!({}) };
        server.post(&session, &format!("/api/live/0123/{what}"), &body).assert_refused(404);
    }
    server.get(&session, "/api/live/0123/events").assert_refused(404);
}

/// A program that cannot be carried out, or says nothing, is not a reason to say nothing.
#[test]
fn a_command_that_fails_is_told() {
    let server = Server::start();
    let session = server.session();
    let draft = json!({"path": null, "text": "run: {}"});
    for path in ["/api/check", "/api/explain", "/api/try"] {
        server.post(&session, path, &draft).assert_refused(422);
    }
    let flags = json!({"path": null, "text": "", "flags": ["--out=json=/tmp/x"]});
    server.post(&session, "/api/explain", &flags).assert_refused(422);
    let start = json!({"path": null, "text": "run: {}", "command": "run", "flags": [], "name": null});
    let refused = server.post(&session, "/api/live", &start);
    refused.assert_refused(422);
    assert_eq!(refused.json()["problems"], json!([]));
    assert_eq!(server.get(&session, "/api/live").json(), json!({"runs": []}));
    for start in [
        json!({"path": null, "text": null, "command": "run"}),
        json!({"path": null, "text": "x", "command": "run", "flags": ["--control=0.0.0.0:80"]}),
    ] {
        server.post(&session, "/api/live", &start).assert_refused(422);
    }
    let other = json!({"path": null, "text": "x", "command": "sink"});
    server.post(&session, "/api/live", &other).assert_refused(400);
    server
        .post(&session, "/api/import", &json!({"name": "a.txt", "text": "hello", "kind": null}))
        .assert_refused(422);
}

/// Symptom: each mistake in a form was an error of the page on the console of the browser.
#[test]
fn a_refusal_has_a_status_of_success_for_who_asks_so_and_its_own_beside() {
    let server = Server::start();
    let session = server.session();
    let quiet = [("host", &*server.address), ("cookie", &session), ("x-plimsoll-refusal", "1")];
    let refused = server.request("GET /api/schema/none", &quiet, "");
    assert_eq!((refused.status, refused.field("x-plimsoll-refusal")), (200, Some("404")), "{refused:?}");
    assert!(refused.json()["error"].is_string() && refused.json()["hint"].is_string());
    let found = server.request("GET /api/about", &quiet, "");
    assert_eq!((found.status, found.field("x-plimsoll-refusal")), (200, None));
    // Without a session, too.
    let refused = server.request("GET /api/about", &[quiet[0], quiet[2]], "");
    assert_eq!((refused.status, refused.field("x-plimsoll-refusal")), (200, Some("401")));
}
