//! Tidy: the rules about the repository that a compiler does not check, as tests.
//!
//! Every rule is a function from text to complaints, and is tested twice: on the repository, where it must
//! not complain, and on a bad sample, where it must. See `CONTRIBUTING.md` for the reasons.

mod documents;
mod floors;
mod functions;
mod imports;
mod limits;
mod mentions;
mod profiles;
mod protocols;
mod sources;
mod supply;
mod tokens;
mod voice;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize().expect("the repository is where the crate was built")
}

/// Fails with all complaints at once.
fn assert_tidy(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn imports_go_down_the_table_only() {
    let metadata = cargo_metadata::MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo describes its workspace");
    let arrows = imports::arrows(&metadata);
    assert!(arrows.len() > 10, "the workspace was not read: {arrows:?}");
    assert_tidy(imports::complaints(&arrows));
    assert_tidy(imports::extension_complaints(&arrows));
    assert!(arrows.iter().any(|arrows| arrows.is_extension), "extensions are found: {arrows:?}");
}

#[test]
fn no_async_runtime_is_shipped() {
    let metadata = cargo_metadata::MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        // Dependencies for other platforms may not be downloaded here.
        .other_options(["--filter-platform", "host-tuple"].map(str::to_owned))
        .exec()
        .expect("cargo resolves its workspace");
    let needs = imports::needs(&metadata);
    assert!(needs.len() > 50, "the dependencies were not read: {needs:?}");
    assert_tidy(imports::runtime_complaints(&needs));
}

#[test]
fn crates_of_others_keep_the_rules_of_deny_toml() {
    let text = std::fs::read_to_string(root().join("deny.toml")).expect("deny.toml can be read");
    let rules = supply::Rules::read(&text);
    assert!(!rules.platforms.is_empty(), "deny.toml names the platforms that are judged");
    for platform in &rules.platforms {
        let metadata = cargo_metadata::MetadataCommand::new()
            .manifest_path(root().join("Cargo.toml"))
            .other_options(["--locked", "--filter-platform", platform].map(str::to_owned))
            .exec()
            .expect("cargo resolves its workspace");
        assert_tidy(supply::complaints(&rules, &metadata).into_iter().collect());
    }
}

#[test]
fn profiles_optimize_what_requests_pass_through() {
    let read = |name: &str| std::fs::read_to_string(root().join(name)).expect("it can be read");
    let extensions: Vec<&str> = plimsoll::EXTENSIONS.iter().map(|extension| extension.name).collect();
    assert!(!extensions.is_empty());
    assert_tidy(profiles::complaints(&read("Cargo.toml"), &read("Cargo.lock"), &extensions));
}

#[test]
fn sources_keep_the_rules() {
    let files = sources::read_all(&root());
    assert!(files.len() > 30, "only {} files were found", files.len());
    assert_tidy(files.iter().flat_map(sources::complaints).collect());
}

#[test]
fn functions_are_not_too_long() {
    let files = sources::read_all(&root());
    let files: Vec<_> = files.iter().filter(|file| file.path.ends_with(".rs")).collect();
    assert!(files.len() > 30, "only {} files were found", files.len());
    assert_tidy(files.into_iter().flat_map(functions::complaints).collect());
}

#[test]
fn modules_of_the_command_are_floors_without_circles() {
    let uses = floors::uses(&sources::read_all(&root()));
    assert!(uses.len() > 80, "only {} modules were found", uses.len());
    assert_tidy(floors::complaints(&uses));
}

#[test]
fn a_protocol_is_a_row_of_tables() {
    let files = sources::read_all(&root());
    for protocol in &protocols::PROTOCOLS {
        let found = protocols::mentions(protocol, &files).len();
        assert!(found > 3, "no table was found in which {} is a row: {found}", protocol.name);
        assert_tidy(protocols::complaints(protocol, &files).into_iter().collect());
    }
}

#[test]
fn doc_comments_are_noun_phrases_and_verbs() {
    let files = sources::read_all(&root());
    let openings: Vec<_> = files.iter().flat_map(|file| voice::openings(&file.text)).collect();
    assert!(openings.len() > 10_000, "only {} doc comments were found", openings.len());
    assert_tidy(voice::complaints(&openings));
}

#[test]
fn doc_comments_stand_alone() {
    let files = sources::read_all(&root());
    assert!(files.len() > 30, "only {} files were found", files.len());
    assert_tidy(files.iter().flat_map(voice::leaning).collect());
}

#[test]
fn every_crate_forbids_unsafe_code_but_the_ones_that_are_listed() {
    let files = sources::read_all(&root());
    let roots: Vec<_> = files.iter().filter(|file| file.is_crate_root()).collect();
    assert!(roots.len() > 10, "only {} crate roots were found", roots.len());
    assert_tidy(roots.into_iter().filter_map(sources::unforbidden_unsafe).collect());
}

#[test]
fn links_of_documents_lead_somewhere() {
    let root = root();
    let documents = documents::read_all(&root);
    assert!(documents.len() > 10, "{} documents", documents.len());
    assert_tidy(documents.iter().flat_map(|document| documents::broken_links(&root, document)).collect());
}

#[test]
fn what_bounds_growth_is_there_and_tested() {
    assert_tidy(limits::of_page(&root(), "docs/limits.md", 50, true));
}

#[test]
fn what_is_promised_about_others_is_tested() {
    assert_tidy(limits::of_page(&root(), "docs/threat-model.md", 25, false));
}

#[test]
fn plans_in_documents_are_plans() {
    let documents = documents::read_all(&root());
    let plans: Vec<&str> = documents.iter().flat_map(documents::plans).collect();
    assert!(!plans.is_empty());
    for plan in plans {
        let mut check = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
            .args(["check", "-"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        check.stdin.take().expect("it is piped").write_all(plan.as_bytes()).expect("it is read");
        let output = check.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{plan}\n{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// The reference in `docs/` equals the output of the program. If not, see `CONTRIBUTING.md`.
#[test]
fn the_reference_is_not_behind() {
    let folder = std::env::temp_dir().join(format!("plimsoll-reference-{}", std::process::id()));
    let made = Command::new(env!("CARGO_BIN_EXE_plimsoll")).arg("reference").arg(&folder).output();
    assert!(made.expect("the program starts").status.success());
    let mut complaints = Vec::new();
    for entry in std::fs::read_dir(&folder).expect("the folder was made") {
        let name = entry.expect("an entry").file_name();
        let made = std::fs::read_to_string(folder.join(&name)).expect("a page");
        let kept = std::fs::read_to_string(root().join("docs/reference").join(&name)).unwrap_or_default();
        if made != kept {
            let (at, (new, old)) = (1..)
                .zip(made.lines().chain([""]).zip(kept.lines().chain([""])))
                .find(|(_, (new, old))| new != old)
                .unwrap_or((0, ("", "")));
            let name = name.display();
            complaints.push(format!("docs/reference/{name}:{at} has `{old}`, and the program says `{new}`"));
        }
    }
    std::fs::remove_dir_all(&folder).expect("it is removed");
    assert_tidy(complaints);
}
