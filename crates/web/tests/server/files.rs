//! Files of the folder, as a page asks for them.

use std::os::unix::fs::symlink;

use serde_json::json;

use crate::client::Server;

#[test]
fn no_address_leads_out_of_the_folder() {
    let server = Server::start();
    let session = server.session();
    server.folder.write("a.yaml", "run: {}");
    server.folder.write(".hidden.yaml", "secret");
    std::fs::write(server.folder.path().join("outside.yaml"), "secret").unwrap();
    symlink(server.folder.path().join("outside.yaml"), server.folder.path().join("opened/link.yaml"))
        .unwrap();
    symlink(server.folder.path(), server.folder.path().join("opened/up")).unwrap();
    let absolute = server.folder.path().join("outside.yaml").display().to_string();
    let huge = "a".repeat(10_000);
    for path in [
        "../outside.yaml",
        "..%2foutside.yaml",
        "%2e%2e/outside.yaml",
        "%2e%2e%2foutside.yaml",
        "..%252foutside.yaml",
        "..%5coutside.yaml",
        "a.yaml/../../outside.yaml",
        "up/outside.yaml",
        "link.yaml",
        ".hidden.yaml",
        "%2ehidden.yaml",
        "a.yaml%00",
        "..%00/outside.yaml",
        "%c0%ae%c0%ae/outside.yaml",
        "%ff.yaml",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "file:///etc/passwd",
        &absolute,
        &huge,
        "",
    ] {
        let reply = server.get(&session, &format!("/api/file?path={path}"));
        assert!(matches!(reply.status, 400 | 403 | 404), "{path}: {reply:?}");
        assert!(!reply.body.contains("secret") && !reply.body.contains("root:"), "{path}: {reply:?}");
    }
    for path in
        ["../new.yaml", "up/new.yaml", "/tmp/new.yaml", ".new.yaml", "new.sh", "a\u{0}.yaml", "link.yaml"]
    {
        let reply = server.post(&session, "/api/file", &json!({"path": path, "text": "x", "etag": null}));
        assert!(matches!(reply.status, 403 | 409), "{path}: {reply:?}");
        let reply = server.post(&session, "/api/file/rename", &json!({"path": "a.yaml", "to": path}));
        assert!(matches!(reply.status, 403 | 409), "{path}: {reply:?}");
        let reply = server.post(&session, "/api/file/delete", &json!({"path": path}));
        assert!(matches!(reply.status, 403 | 404), "{path}: {reply:?}");
    }
    assert!(!server.folder.path().join("new.yaml").exists());
    assert_eq!(std::fs::read_to_string(server.folder.path().join("outside.yaml")).unwrap(), "secret");
    let files = server.get(&session, "/api/files").json();
    assert_eq!(files["files"].as_array().unwrap().len(), 1, "{files}");
}

#[test]
fn a_file_is_made_read_changed_and_not_overwritten() {
    let server = Server::start();
    let session = server.session();
    let save = |text: &str, etag: Option<&str>| {
        server.post(&session, "/api/file", &json!({"path": "plans/a.yaml", "text": text, "etag": etag}))
    };
    let made = save("one", None).json();
    assert_eq!(made["path"], "plans/a.yaml");
    let read = server.get(&session, "/api/file?path=plans/a.yaml").json();
    assert_eq!((&read["text"], &read["etag"]), (&json!("one"), &made["etag"]));
    save("two", None).assert_refused(409);
    assert_eq!(save("two", made["etag"].as_str()).status, 200);
    let late = save("three", made["etag"].as_str());
    late.assert_refused(409);
    let read = server.get(&session, "/api/file?path=plans/a.yaml").json();
    assert_eq!((&read["text"], &read["etag"]), (&json!("two"), &late.json()["etag"]));
    let listed = server.get(&session, "/api/files").json();
    assert_eq!(
        (&listed["files"][0]["path"], &listed["files"][0]["bytes"]),
        (&json!("plans/a.yaml"), &json!(3))
    );
}
