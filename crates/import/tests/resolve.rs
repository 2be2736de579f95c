//! Every plan that is imported from our examples of h2loadrunner's format makes a run.

use std::path::{Path, PathBuf};

use plimsoll_document::{Files, KeyLogFile};
use plimsoll_plan::{Command, Disk, PlanSource};

use crate::import::{checked, checked_alone};

/// The file system, and in it an imported plan.
struct WithPlan(PathBuf, String);

impl Files for WithPlan {
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        if path == self.0 { Ok(self.1.clone().into_bytes()) } else { Disk.read(path) }
    }

    fn key_log(&self, path: &Path) -> std::io::Result<KeyLogFile> {
        Disk.key_log(path)
    }
}

#[test]
fn examples_of_h2loadrunner_are_plans() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/h2loadrunner");
    let mut wrong = String::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        // Certificates and scripts need more than a plan: the command's tests run those, too.
        let others = ["update.json", "mtls.json", "lua.json", "subscriptions_with_scripts.json"];
        if !name.ends_with(".json") || others.contains(&name.as_str()) {
            continue;
        }
        let text = std::fs::read(&path).unwrap();
        let imported =
            checked(plimsoll_import::h2loadrunner::import(&text, &folder, &Disk, &|_| None), &folder, &Disk)
                .unwrap();
        let plan = folder.join(format!("{name}.yaml"));
        let files = WithPlan(plan.clone(), imported.document.to_yaml());
        let command =
            Command { plan: Some(PlanSource::File(plan.display().to_string())), ..Command::default() };
        if let Err(refused) = command.resolve(&files) {
            let problems = refused.problems.to_string();
            // XPath depends on the features of the build.
            if !problems.contains("this build has no XPath") {
                wrong.push_str(&format!("{name}:\n{problems}\n{}\n", files.1));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn examples_of_other_tools_are_plans() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut wrong = String::new();
    let mut count = 0;
    for tool in ["postman", "artillery", "jmeter", "k6", "gatling", "locust"] {
        let folder = tests.join(tool);
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            // Its one scenario is of WebSockets.
            let is_data =
                name.ends_with(".csv") || name == "users.json" || name.ends_with("environment.json");
            if is_data || path.is_dir() || name == "websocket.yml" || name.ends_with(".requests") {
                continue;
            }
            let text = std::fs::read(&path).unwrap();
            let environment =
                Some(std::fs::read(tests.join("postman/shop.postman_environment.json")).unwrap());
            let imported = match tool {
                "postman" => {
                    let options = plimsoll_import::postman::Options { environment };
                    checked(plimsoll_import::postman::import(&text, &options, &folder, &Disk), &folder, &Disk)
                }
                "artillery" => {
                    checked(plimsoll_import::artillery::import(&text, &folder, &Disk), &folder, &Disk)
                }
                "k6" => {
                    let options = plimsoll_import::k6::Options { name: name.clone(), ..Default::default() };
                    checked(plimsoll_import::k6::import(&text, &options, &folder, &Disk), &folder, &Disk)
                }
                "gatling" => {
                    let options = plimsoll_import::gatling::Options { name: name.clone() };
                    checked(plimsoll_import::gatling::import(&text, &options, &folder, &Disk), &folder, &Disk)
                }
                "locust" => {
                    let options =
                        plimsoll_import::locust::Options { name: name.clone(), ..Default::default() };
                    checked(plimsoll_import::locust::import(&text, &options, &folder, &Disk), &folder, &Disk)
                }
                _ => checked(plimsoll_import::jmeter::import(&text, &folder, &Disk), &folder, &Disk),
            };
            let plan = folder.join(format!("{name}.yaml"));
            let files = WithPlan(plan.clone(), imported.unwrap().document.to_yaml());
            let source = Some(PlanSource::File(plan.display().to_string()));
            let command = Command { plan: source, ..Command::default() };
            count += 1;
            if let Err(refused) = command.resolve(&files) {
                let problems = refused.problems.to_string();
                // XPath depends on the features of the build.
                if !problems.contains("this build has no XPath") {
                    wrong.push_str(&format!("{name}:\n{problems}\n{}\n", files.1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!(count, 88);
}

#[test]
fn plans_of_the_other_formats_are_plans() {
    use plimsoll_import::{curl, har, openapi, vegeta};
    let here = Path::new("");
    let har = br#"{"log": {"entries": [
        {"startedDateTime": "2026-01-01T00:00:00Z", "time": 5, "request": {"method": "POST",
         "url": "http://h/a?x=${y}", "headers": [{"name": "X", "value": "${z}"}],
         "postData": {"text": "${q}"}}},
        {"startedDateTime": "2026-01-01T00:00:01Z", "time": 5,
         "request": {"method": "GET", "url": "https://i/"}}
    ]}}"#;
    let api = r#"
openapi: 3.0.0
servers: [{url: "http://h/v1"}]
paths:
  /a/{b}:
    put:
      parameters:
        - {name: b, in: path, required: true, schema: {type: integer}}
      requestBody:
        content:
          application/json: {example: {text: "${x}", n: 1}}
"#;
    let targets = "GET http://h/\n\nPOST http://i/x\nX: ${y}\n\nGET http://h/\n";
    let mut wrong = String::new();
    for imported in [
        checked_alone(har::import(har, &har::Options::default())),
        checked_alone(openapi::import(api.as_bytes(), &openapi::Options::default())),
        checked_alone(vegeta::import(targets.as_bytes(), &vegeta::Options::default())),
        checked_alone(vegeta::import(targets.as_bytes(), &vegeta::Options { steps: true })),
        checked(
            curl::import("curl -X POST -L -k -d 'a=${b}' -u a:b -H 'Host:' -m 2 https://h/x", here, &Disk),
            here,
            &Disk,
        ),
        checked(
            curl::import("curl -F 'a=${b}' --http2 -A '' -X PURGE http://h/x?y", here, &Disk),
            here,
            &Disk,
        ),
        checked(
            curl::import(
                "curl -Z http://h/x http://h/y --resolve h:80:127.0.0.1 --max-redirs 0",
                here,
                &Disk,
            ),
            here,
            &Disk,
        ),
    ] {
        let yaml = imported.unwrap().document.to_yaml();
        let files = WithPlan(PathBuf::from("plan.yaml"), yaml);
        let command = Command { plan: Some(PlanSource::File("plan.yaml".to_owned())), ..Command::default() };
        if let Err(refused) = command.resolve(&files) {
            wrong.push_str(&format!("{}\n{}\n", refused.problems, files.1));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
