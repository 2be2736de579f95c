//! Every committed seed, the beginnings of each, and what is near it, through its target: without a fuzzer,
//! with any toolchain.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use plimsoll_fuzz::{TARGETS, Target};
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

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

/// Time of each target for changed seeds. The slow ones take some 50 inputs in it, the fast ones 100,000.
const NEAR: Duration = Duration::from_secs(1);
/// The changed seeds are the same in each run, as far as a run comes.
const NEAR_SEED: u64 = 1876;

/// Changes of a seed that fuzzers make without coverage. `bench fuzz` goes on from there, with it.
fn changed(seeds: &[(PathBuf, Vec<u8>)], random: &mut Xoshiro256PlusPlus) -> Vec<u8> {
    let mut below = |limit: usize| (random.next_u64() % limit.max(1) as u64) as usize;
    let mut input = seeds[below(seeds.len())].1.clone();
    for _ in 0..=below(4) {
        let at = below(input.len() + 1);
        let end = (at + 1 + below(16)).min(input.len());
        match below(6) {
            0 if at < input.len() => input[at] ^= 1 << below(8),
            1 if at < input.len() => input[at] = [0, 1, 0x7f, 0x80, 0xff, b'\n', b'"', b'9'][below(8)],
            2 => drop(input.drain(at..end)),
            3 => {
                let again = input[at..end].to_vec();
                drop(input.splice(at..at, again));
            }
            4 => input.truncate(at),
            _ => {
                let other = &seeds[below(seeds.len())].1;
                let from = below(other.len() + 1);
                let to = (from + below(64)).min(other.len());
                drop(input.splice(at..at, other[from..to].iter().copied()));
            }
        }
    }
    input
}

/// Runs a target with changed seeds; keeps the first input that it fails with, as a fuzzer does.
#[expect(clippy::disallowed_methods, reason = "as a fuzzer, it has a time and not a number of inputs")]
fn run_near_seeds((name, run): Target) {
    let seeds = seeds(name);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(NEAR_SEED);
    let end = Instant::now() + NEAR;
    let mut tried = 0_u32;
    while Instant::now() < end {
        let input = changed(&seeds, &mut random);
        tried += 1;
        if catch_unwind(AssertUnwindSafe(|| run(&input))).is_ok() {
            continue;
        }
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("artifacts").join(name);
        let kept = folder.join("crash-near-seed");
        let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&kept, &input));
        let at = written.map_or_else(|error| error.to_string(), |()| kept.display().to_string());
        // The panic itself was printed where it happened.
        let shown = input.escape_ascii();
        panic!("{name} fails with input {tried} near its seeds, which is kept in {at}: {shown}");
    }
}

#[test]
fn every_target_takes_what_is_near_its_seeds() {
    let next = AtomicUsize::new(0);
    let each = || {
        while let Some(target) = TARGETS.get(next.fetch_add(1, Ordering::Relaxed)) {
            run_near_seeds(*target);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(each);
        }
    });
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
