//! Every committed seed, and the beginnings of each, through its target: without a fuzzer, with any
//! toolchain.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_fuzz::TARGETS;

/// The most seeds of a target, and the most bytes of one: they are read by people, too.
const MOST_SEEDS: usize = 50;
const MOST_BYTES: usize = 4096;

fn seeds(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort_unstable();
    paths.into_iter().map(|path| (path.clone(), fs::read(path).expect("a seed can be read"))).collect()
}

#[test]
fn every_target_takes_its_seeds_and_their_beginnings() {
    for (name, run) in TARGETS {
        let seeds = seeds(name);
        assert!(!seeds.is_empty() && seeds.len() < MOST_SEEDS, "{name} has {} seeds", seeds.len());
        for (path, seed) in &seeds {
            assert!(seed.len() < MOST_BYTES, "{} has {} bytes", path.display(), seed.len());
            run(seed);
            for tenth in 0..10 {
                run(&seed[..seed.len() * tenth / 10]);
            }
        }
    }
}

#[test]
fn every_folder_of_seeds_and_every_program_belongs_to_a_target() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in ["seeds", "fuzz_targets"] {
        let entries = fs::read_dir(root.join(folder)).expect("the folder is there");
        let mut names: Vec<String> = entries
            .map(|entry| {
                entry.expect("an entry").path().file_stem().unwrap_or_default().to_string_lossy().into_owned()
            })
            .collect();
        names.sort_unstable();
        assert_eq!(names, TARGETS.iter().map(|(name, _)| *name).collect::<Vec<_>>(), "{folder}");
    }
    let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("the manifest can be read");
    assert_eq!(manifest.matches("[[example]]").count(), TARGETS.len());
}
