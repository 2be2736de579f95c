//! Makes the page that HTML reports are written into: from `web/`, with its charts where Node.js is, and
//! without them where it is not.
//!
//! What `npm run build` has left in `web/dist/` is taken if it is newer than what it is made of. Else it is
//! built from a copy in the build folder, so that nothing is written among the sources.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// Files and folders in `web/` that the page is built from.
const SOURCES: [&str; 9] = [
    "src",
    "report.html",
    "package.json",
    "package-lock.json",
    ".npmrc",
    "tsconfig.json",
    "vite.config.ts",
    "licences.ts",
    "policy.ts",
];
/// Lines of the source page that are of no use without a script.
const OF_THE_SCRIPT: [&str; 2] = ["<script type=\"module\"", "class=\"licences\""];
/// The line of the source page that names the style sheet.
const STYLE: &str = "<link rel=\"stylesheet\" href=\"./src/page.css\">";

fn main() -> Result<(), Box<dyn Error>> {
    let variable = |name: &str| env::var_os(name).map(PathBuf::from).ok_or(format!("cargo sets {name}"));
    let web = variable("CARGO_MANIFEST_DIR")?.join("../../web");
    let out = variable("OUT_DIR")?;
    for source in SOURCES {
        println!("cargo:rerun-if-changed={}", web.join(source).display());
    }
    // The folder exists also where nothing was built in it.
    println!("cargo:rerun-if-changed={}", web.join("dist").display());
    println!("cargo:rerun-if-env-changed=PATH");
    let charts = ready(&web).map_or_else(|| build(&web, &out.join("web")), Ok);
    let (page, has_charts) = match charts {
        Ok(page) => (page, "1"),
        Err(why) => {
            println!(
                "cargo:warning=HTML reports will have no charts: {why} (web/README.md says what it takes)"
            );
            (without_charts(&web)?, "0")
        }
    };
    fs::write(out.join("report.html"), page)?;
    fs::write(out.join("has-charts"), has_charts)?;
    Ok(())
}

/// The page that was built in the sources' folder, if it is newer than these.
fn ready(web: &Path) -> Option<String> {
    let built = web.join("dist/report.html");
    let changed = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let at = changed(&built)?;
    let mut files = Vec::new();
    for source in SOURCES {
        files_of(&web.join(source), &mut files).ok()?;
    }
    let newer = |file: &PathBuf| changed(file).is_some_and(|changed| changed > at);
    if files.iter().any(newer) { None } else { fs::read_to_string(built).ok() }
}

/// The files of a folder and those within it, or the file itself.
fn files_of(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        files_of(&entry?.path(), files)?;
    }
    Ok(())
}

/// Builds the page in a copy of the sources; why that cannot be done is said in a few words.
fn build(web: &Path, copy: &Path) -> Result<String, String> {
    let lock = "package-lock.json";
    let same = |file: &str| fs::read(web.join(file)).ok() == fs::read(copy.join(file)).ok();
    let installed =
        same(lock) && same("package.json") && copy.join("node_modules/.package-lock.json").exists();
    let copied = copy_sources(web, copy);
    copied.map_err(|error| format!("the sources in web/ cannot be copied: {error}"))?;
    if !installed {
        // Whoever has no network is told soon.
        let quick = ["--fetch-retries=1", "--fetch-timeout=30000", "--prefer-offline"];
        npm(copy, &[&["ci", "--omit=dev", "--no-audit", "--no-fund"][..], &quick].concat())?;
    }
    npm(copy, &["run", "build"])?;
    let page = fs::read_to_string(copy.join("dist/report.html"));
    page.map_err(|error| format!("npm built no page: {error}"))
}

fn copy_sources(web: &Path, copy: &Path) -> io::Result<()> {
    let sources = copy.join("src");
    if sources.exists() {
        // What was deleted does not stay.
        fs::remove_dir_all(sources)?;
    }
    let mut files = Vec::new();
    for source in SOURCES {
        files_of(&web.join(source), &mut files)?;
    }
    for file in files {
        let Ok(relative) = file.strip_prefix(web) else { continue };
        let to = copy.join(relative);
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::copy(&file, to)?;
    }
    Ok(())
}

fn npm(folder: &Path, arguments: &[&str]) -> Result<(), String> {
    let command = || format!("`npm {}`", arguments[..arguments.len().min(2)].join(" "));
    let run = Command::new("npm").args(arguments).current_dir(folder).output();
    let output = run.map_err(|error| format!("{} cannot be run: {error}", command()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().find(|line| line.contains("error")).unwrap_or("it said nothing");
    Err(format!("{} failed: {}", command(), first.trim()))
}

/// The source page with its style sheet written into it, and without a script.
fn without_charts(web: &Path) -> Result<String, Box<dyn Error>> {
    let page = fs::read_to_string(web.join("report.html"))?;
    let style = fs::read_to_string(web.join("src/page.css"))?;
    if !page.contains(STYLE) {
        return Err("web/report.html names no style sheet".into());
    }
    let is_plain = |line: &&str| !OF_THE_SCRIPT.iter().any(|mark| line.contains(mark));
    let lines: Vec<&str> = page.lines().filter(is_plain).collect();
    Ok(lines.join("\n").replace(STYLE, &format!("<style>\n{style}</style>")))
}
