//! Tidy: the rules about the repository that a compiler does not check, as tests.
//!
//! Every rule is a function from text to complaints, and is tested twice: on the repository, where it must
//! not complain, and on a bad sample, where it must. See `CONTRIBUTING.md` for the reasons.

mod imports;
mod sources;
mod tokens;

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
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
}

#[test]
fn no_async_runtime_is_shipped() {
    let metadata = cargo_metadata::MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        // What other platforms would need is not here.
        .other_options(["--filter-platform", "host-tuple"].map(str::to_owned))
        .exec()
        .expect("cargo resolves its workspace");
    let needs = imports::needs(&metadata);
    assert!(needs.len() > 50, "the dependencies were not read: {needs:?}");
    assert_tidy(imports::runtime_complaints(&needs));
}

#[test]
fn sources_keep_the_rules() {
    let files = sources::read_all(&root());
    assert!(files.len() > 30, "only {} files were found", files.len());
    assert_tidy(files.iter().flat_map(sources::complaints).collect());
}

#[test]
fn every_crate_forbids_unsafe_code_but_the_ones_that_are_listed() {
    let files = sources::read_all(&root());
    let roots: Vec<_> = files.iter().filter(|file| file.is_crate_root()).collect();
    assert!(roots.len() > 10, "only {} crate roots were found", roots.len());
    assert_tidy(roots.into_iter().filter_map(sources::unforbidden_unsafe).collect());
}
