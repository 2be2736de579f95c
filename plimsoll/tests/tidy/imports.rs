//! Which crate may import which: the layers of `ARCHITECTURE.md`.

use cargo_metadata::{DependencyKind, Metadata, NodeDep};

const WORDS: &[&str] = &["core"];
const PURE: &[&str] = &[
    "core",
    "schedule",
    "wire",
    "xml",
    "scenario",
    "script",
    "statistics",
    "histogram",
    "metrics",
    "synth",
    "consistency",
    "document",
    "plan",
    "ic",
];

/// Each crate, and the crates of the workspace that it may import. A crate that is not listed is not allowed:
/// its place has to be decided first.
const ALLOWED: &[(&str, &[&[&str]])] = &[
    // Layer 0: words.
    ("core", &[]),
    // Layer 1: pure.
    ("schedule", &[WORDS]),
    ("wire", &[WORDS]),
    ("xml", &[]),
    ("scenario", &[WORDS, &["wire", "xml"]]),
    ("statistics", &[WORDS, &["histogram"]]),
    ("histogram", &[WORDS]),
    ("metrics", &[WORDS, &["histogram", "statistics"]]),
    ("script", &[WORDS, &["scenario"]]),
    ("synth", &[WORDS]),
    ("ic", &[WORDS]),
    ("consistency", &[&["scenario"]]),
    ("document", &[WORDS]),
    ("plan", &[WORDS, &["document", "schedule", "scenario", "histogram", "metrics", "wire"]]),
    // Layer 2: mechanism.
    ("system", &[WORDS]),
    ("driver", &[WORDS, &["system"]]),
    ("monitor", &[WORDS, &["metrics"]]),
    // Beside the load: `engine` must not import it.
    ("http", &[WORDS, &["wire", "driver", "system"]]),
    ("engine", &[PURE, &["driver", "monitor", "system"]]),
    // Layer 3: edge.
    ("report", &[WORDS, &["histogram", "metrics", "statistics"]]),
    ("store", &[WORDS, &["histogram", "metrics", "statistics", "report"]]),
    ("targets", &[WORDS, &["wire", "driver", "system", "histogram", "ic"]]),
    ("export", &[WORDS, &["wire", "driver", "histogram", "http", "metrics", "system"]]),
    ("import", &[WORDS, &["document", "xml"]]),
    ("workloads", &[WORDS, &["schedule", "scenario", "document", "plan", "synth", "ic", "wire"]]),
    ("cluster", &[WORDS, &["http", "document", "plan", "report", "scenario", "schedule", "system"]]),
    ("record", &[WORDS, &["system", "wire"]]),
    ("replica", &[WORDS, &["system"]]),
    ("fleet", &[WORDS, &["http", "report", "store", "system"]]),
    ("web", &[WORDS, &["fleet", "report", "store", "system"]]),
    // Layer 4: the program.
    (
        "app",
        &[
            PURE,
            &["driver", "monitor", "engine", "http", "system"],
            &[
                "report",
                "store",
                "export",
                "targets",
                "import",
                "workloads",
                "record",
                "replica",
                "cluster",
                "consistency",
                "web",
                "fleet",
            ],
        ],
    ),
    // Layer 6: the binary that lists the extensions.
    ("plimsoll", &[&["app"]]),
    // Development only.
    ("testkit", &[PURE, &["driver", "system"]]),
    ("simulation", &[PURE, &["driver", "engine", "testkit"]]),
    ("bench", &[&["synth", "testkit"]]),
    ("fuzz", &[PURE, &["app", "http", "import", "plimsoll", "report", "targets", "workloads"]]),
];

/// Crates that an extension (layer 5) may import. It imports no other extension.
const OF_AN_EXTENSION: &[&[&str]] =
    &[PURE, &["app", "driver", "http", "import", "report", "system", "targets", "workloads"]];

/// Crates that any crate may import for its tests, but never for itself.
const DEVELOPMENT: &[&str] = &["simulation", "testkit"];

/// Additional crates that one crate may import for its tests: a server gets the requests of its users,
/// scripts that are imported have a host, plans that are run have bodies, and what the program does is
/// compared with what its parts compute.
const FOR_TESTS: &[(&str, &[&str])] = &[
    ("targets", &["synth", "workloads"]),
    ("import", &["plan", "script"]),
    ("plan", &["script"]),
    ("engine", &["workloads"]),
    ("fleet", &["metrics"]),
    (
        "plimsoll",
        &[
            "core",
            "document",
            "driver",
            "engine",
            "histogram",
            "ic",
            "metrics",
            "plan",
            "report",
            "schedule",
            "system",
            "wire",
        ],
    ),
];

/// Packages that may import extensions: the one that lists them, and the fuzz targets.
const OF_EXTENSIONS: &[&str] = &["plimsoll", "fuzz"];

/// One crate of the workspace and its imports from it.
#[derive(Debug)]
pub(crate) struct Arrows {
    pub(crate) of: String,
    /// `true` if it stands in `ext/`.
    pub(crate) is_extension: bool,
    pub(crate) to: Vec<String>,
    pub(crate) for_tests: Vec<String>,
}

/// The arrows of the workspace, by short names.
pub(crate) fn arrows(metadata: &Metadata) -> Vec<Arrows> {
    let members = metadata.workspace_packages();
    let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
    let arrows = members.iter().map(|member| {
        let (mut to, mut for_tests) = (Vec::new(), Vec::new());
        for dependency in member.dependencies.iter().filter(|d| names.contains(&d.name.as_str())) {
            let list = if dependency.kind == DependencyKind::Development { &mut for_tests } else { &mut to };
            list.push(short(&dependency.name).to_owned());
        }
        let is_extension = member.manifest_path.components().any(|part| part.as_str() == "ext");
        Arrows { of: short(&member.name).to_owned(), is_extension, to, for_tests }
    });
    arrows.collect()
}

fn short(package: &str) -> &str {
    package.strip_prefix("plimsoll-").unwrap_or(package)
}

/// Arrows that the table does not have.
pub(crate) fn complaints(arrows: &[Arrows]) -> Vec<String> {
    let mut complaints = Vec::new();
    // Who may import extensions is judged by `extension_complaints`.
    let is_extension = |name: &String| arrows.iter().any(|arrows| arrows.is_extension && arrows.of == *name);
    for Arrows { of, to, for_tests, is_extension: is_one } in arrows {
        let listed = ALLOWED.iter().find(|(name, _)| name == of).map(|(_, allowed)| *allowed);
        let Some(allowed) = listed.or(is_one.then_some(OF_AN_EXTENSION)) else {
            complaints.push(format!("crate `{of}` has no place in the table of layers"));
            continue;
        };
        let may = |name: &String| {
            allowed.iter().any(|list| list.contains(&name.as_str())) || (!is_one && is_extension(name))
        };
        for name in to.iter().filter(|name| !may(name)) {
            complaints.push(format!("crate `{of}` must not import `{name}`"));
        }
        let asked = FOR_TESTS.iter().filter(|(name, _)| name == of).flat_map(|(_, names)| names.iter());
        let asked: Vec<&str> = asked.copied().chain(DEVELOPMENT.iter().copied()).collect();
        let may_test = |name: &String| may(name) || asked.contains(&name.as_str());
        for name in for_tests.iter().filter(|name| !may_test(name)) {
            complaints.push(format!("crate `{of}` must not import `{name}`, not even for its tests"));
        }
    }
    complaints
}

/// Complains about crates that import an extension and are not the list of them, and about extensions that
/// are not in the list.
pub(crate) fn extension_complaints(arrows: &[Arrows]) -> Vec<String> {
    let mut complaints = Vec::new();
    for extension in arrows.iter().filter(|arrows| arrows.is_extension) {
        let imports =
            |arrows: &&Arrows| arrows.to.iter().chain(&arrows.for_tests).any(|to| *to == extension.of);
        let importers: Vec<&str> = arrows.iter().filter(imports).map(|arrows| arrows.of.as_str()).collect();
        for of in importers.iter().filter(|of| !OF_EXTENSIONS.contains(of)) {
            complaints.push(format!("`{of}` must not import the extension `{}`", extension.of));
        }
        if !importers.contains(&"plimsoll") {
            complaints.push(format!("the program does not list the extension `{}`", extension.of));
        }
    }
    complaints
}

/// One package, of the workspace or not, and its dependencies, tests aside.
#[derive(Debug)]
pub(crate) struct Needs {
    pub(crate) of: String,
    pub(crate) in_workspace: bool,
    pub(crate) needs: Vec<String>,
}

/// Returns the needs of every package that this machine builds.
pub(crate) fn needs(metadata: &Metadata) -> Vec<Needs> {
    let resolve = metadata.resolve.as_ref().expect("the metadata are resolved");
    let needs = resolve.nodes.iter().map(|node| {
        let is_for_more_than_tests = |dependency: &&NodeDep| {
            dependency.dep_kinds.iter().any(|kind| kind.kind != DependencyKind::Development)
        };
        let name = |id| metadata[id].name.to_string();
        Needs {
            of: name(&node.id),
            in_workspace: metadata.workspace_members.contains(&node.id),
            needs: node
                .deps
                .iter()
                .filter(is_for_more_than_tests)
                .map(|dependency| name(&dependency.pkg))
                .collect(),
        }
    });
    needs.collect()
}

/// Crates that may need an async runtime: the node of the reference cluster and the server of the web UI,
/// each in a process that puts load on nobody, and agents and coordinators of a fleet. The client of their
/// broker needs a runtime; the load is made by processes of their own, which have none. The relay of the
/// benchmarks is a process of its own, too, and is not shipped.
const RUNS_ASYNC: [&str; 5] =
    ["plimsoll-replica", "plimsoll-web", "plimsoll-fleet", "plimsoll-record", "bench"];

/// The hot loop is the only executor: an async runtime may serve within a test, but nothing else that is
/// shipped may need one, even indirectly, except [`RUNS_ASYNC`].
pub(crate) fn runtime_complaints(packages: &[Needs]) -> Vec<String> {
    let runtimes = ["tokio", "async-std", "smol", "mio"];
    let members =
        packages.iter().filter(|package| package.in_workspace && !RUNS_ASYNC.contains(&&*package.of));
    let mut reached: Vec<&str> = members.map(|package| package.of.as_str()).collect();
    let mut complaints = Vec::new();
    let mut next = 0;
    while let Some(&name) = reached.get(next) {
        next += 1;
        for need in packages.iter().filter(|package| package.of == name).flat_map(|package| &package.needs) {
            if runtimes.contains(&need.as_str()) {
                complaints.push(format!("`{name}` needs `{need}`"));
            }
            if !reached.contains(&need.as_str()) && !RUNS_ASYNC.contains(&need.as_str()) {
                reached.push(need);
            }
        }
    }
    complaints
}

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn complaints_about(of: &str, to: &[&str], for_tests: &[&str]) -> usize {
    complaints(&[arrows_of(of, to, for_tests)]).len()
}

fn arrows_of(of: &str, to: &[&str], for_tests: &[&str]) -> Arrows {
    Arrows { of: of.to_owned(), is_extension: of == "grpc", to: strings(to), for_tests: strings(for_tests) }
}

#[test]
fn extensions_that_others_know_or_nobody_lists_are_complained_about() {
    let count = |arrows: &[Arrows]| extension_complaints(arrows).len();
    let (grpc, program) =
        (|| arrows_of("grpc", &["app"], &[]), || arrows_of("plimsoll", &["app", "grpc"], &[]));
    assert_eq!(count(&[grpc(), program()]), 0);
    assert_eq!(count(&[grpc(), program(), arrows_of("fuzz", &["grpc"], &[])]), 0);
    assert_eq!(count(&[grpc(), program(), arrows_of("app", &["grpc"], &[])]), 1);
    assert_eq!(count(&[grpc(), program(), arrows_of("engine", &[], &["grpc"])]), 1);
    assert_eq!(count(&[grpc(), arrows_of("plimsoll", &["app"], &[])]), 1);
}

#[test]
fn arrows_up_or_aside_are_complained_about() {
    assert_eq!(complaints_about("engine", &["core", "wire", "driver"], &["testkit"]), 0);
    assert_eq!(complaints_about("core", &["wire"], &[]), 1);
    assert_eq!(complaints_about("wire", &["driver", "schedule"], &[]), 2);
    assert_eq!(complaints_about("report", &["engine"], &["engine"]), 2);
    assert_eq!(complaints_about("engine", &["testkit"], &[]), 1);
    assert_eq!(complaints_about("plimsoll", &["app"], &["engine"]), 0);
    assert_eq!(complaints_about("plimsoll", &["engine"], &[]), 1);
    assert_eq!(complaints_about("bench", &["plimsoll"], &["app"]), 2);
    assert_eq!(complaints_about("misc", &[], &[]), 1);
}

#[test]
fn a_runtime_that_is_shipped_is_complained_about() {
    let package = |of: &str, in_workspace, needs: &[&str]| Needs {
        of: of.to_owned(),
        in_workspace,
        needs: strings(needs),
    };
    let count = |packages: &[Needs]| runtime_complaints(packages).len();
    assert_eq!(count(&[package("engine", true, &["hyper"]), package("hyper", false, &["tokio"])]), 1);
    assert_eq!(count(&[package("engine", true, &["tokio", "mio"]), package("tokio", false, &["mio"])]), 3);
    let replica = || package("plimsoll-replica", true, &["tokio"]);
    assert_eq!(count(&[package("app", true, &["plimsoll-replica"]), replica()]), 0);
    assert_eq!(count(&[package("app", true, &["plimsoll-replica", "tokio"]), replica()]), 1);
    // Only a test reaches it.
    assert_eq!(count(&[package("engine", true, &["tokio-like"]), package("hyper", false, &["tokio"])]), 0);
}
