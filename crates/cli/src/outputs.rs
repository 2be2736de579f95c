//! Results in files, beside the one on stdout.
//!
//! A file is tried before the load begins, as far as that leaves no trace: an hour of load is not to end with
//! a folder that does not exist. What still goes wrong is told after the result was written to stdout.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use clap::ValueEnum as _;
use plimsoll_plan::Problem;
use plimsoll_report::Style;
use rustix::fs::{Access, OFlags, access, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use crate::flags::{OutputArgs, OutputFormat};
use crate::run::to_stdout;
use crate::{Exit, Failure, environment, streams};

/// A file that is to be written when the result is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EndFile {
    path: PathBuf,
    /// `true` if the file's content is kept: the summary of a job belongs to all its steps.
    append: bool,
}

impl EndFile {
    /// A file that a flag names, tried.
    ///
    /// # Errors
    /// It cannot be written, or is none.
    pub(crate) fn new(flag: &str, path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            let problem = Problem::new(format!("{flag}: stdout has the report, and nothing else"));
            let hint = "choose the format of stdout by --output, and name a file here";
            return Err(Failure::usage(problem.with_hint(hint)));
        }
        attempt(path).map_err(|error| {
            let problem = Problem::new(format!("{flag}: cannot write {}: {error}", path.display()));
            let hint = "name a file in a folder that exists and may be written";
            Failure::environment(problem.with_hint(hint))
        })?;
        Ok(Self { path: path.to_owned(), append: false })
    }

    /// Writes it in one go.
    fn write(&self, content: &[u8]) -> Result<(), Problem> {
        // Errors of a disk that is full may come with the last part only.
        open(&self.path, self.append)
            .and_then(|mut file| file.write_all(content).and_then(|()| file.sync_data_if_regular()))
            .map_err(|error| {
                let problem = Problem::new(format!("cannot write {}: {error}", self.path.display()));
                problem.with_hint("the result is on stdout all the same")
            })
    }
}

/// Errors of a disk that come late.
trait SyncIfRegular {
    fn sync_data_if_regular(&self) -> io::Result<()>;
}

impl SyncIfRegular for File {
    fn sync_data_if_regular(&self) -> io::Result<()> {
        if self.metadata()?.is_file() { self.sync_data() } else { Ok(()) }
    }
}

/// Opens a file to be written, from its beginning or behind what is in it.
///
/// # Errors
/// It cannot be opened, or is a pipe that nobody reads: that would be waited for, and no signal ends it.
fn open(path: &Path, append: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(append).write(!append).truncate(!append).create(true);
    if !std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo()) {
        return options.open(path);
    }
    match options.truncate(false).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path) {
        Ok(pipe) => {
            // Whoever reads it may be slow.
            fcntl_setfl(&pipe, fcntl_getfl(&pipe)? - OFlags::NONBLOCK)?;
            Ok(pipe)
        }
        Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
            Err(io::Error::other("nobody reads the pipe"))
        }
        Err(error) => Err(error),
    }
}

/// Finds out whether a file can be written, without writing it.
fn attempt(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(_) => Ok(access(path, Access::WRITE_OK)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new("."));
            if !std::fs::metadata(folder)?.is_dir() {
                return Err(io::ErrorKind::NotADirectory.into());
            }
            Ok(access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
        }
        Err(error) => Err(error),
    }
}

/// Everything that a run writes at its end.
#[derive(Clone, Debug)]
pub(crate) struct Outputs {
    /// The format on stdout.
    pub(crate) stdout: OutputFormat,
    files: Vec<(OutputFormat, EndFile)>,
}

/// Function that writes a result in a format.
pub(crate) type Render<'a> = &'a dyn Fn(OutputFormat, &Style, &mut dyn Write) -> io::Result<()>;

impl Outputs {
    /// Returns the outputs that the flags ask for, after trying every file.
    ///
    /// # Errors
    /// Every problem with them.
    pub(crate) fn of(args: &OutputArgs) -> Result<Self, Failure> {
        let mut failures: Vec<Failure> = Vec::new();
        let mut files: Vec<(OutputFormat, EndFile)> = Vec::new();
        let mut add = |format, file: Result<EndFile, Failure>| match file {
            Ok(file) if files.iter().any(|(_, other)| other.path == file.path) => {
                let problem = Problem::new(format!("{} is to be written twice", file.path.display()));
                let hint = "give each format a file of its own";
                failures.push(Failure::usage(problem.with_hint(hint)));
            }
            Ok(file) => files.push((format, file)),
            Err(failure) => failures.push(failure),
        };
        if let Some(path) = &args.json {
            add(OutputFormat::Json, EndFile::new("--json", path));
        }
        for text in &args.out {
            match parse(text) {
                Ok((format, path)) => add(format, EndFile::new("--out", path)),
                Err(problem) => add(OutputFormat::Json, Err(Failure::usage(problem))),
            }
        }
        if args.step_summary {
            add(OutputFormat::Markdown, step_summary());
        }
        match failures.into_iter().reduce(both) {
            None => Ok(Self { stdout: args.format(), files }),
            Some(failure) => Err(failure),
        }
    }

    /// Writes the result to stdout, then to each file. What cannot be written keeps none of the others from
    /// being written.
    ///
    /// # Errors
    /// Everything that could not be written.
    pub(crate) fn write(&self, style: &Style, render: Render<'_>) -> Result<(), Failure> {
        let stdout = to_stdout(|out| render(self.stdout, style, out));
        // A file is no terminal, whatever stdout is.
        let style = &Style { unicode: true, ..Style::PLAIN };
        let written = self.files.iter().map(|(format, file)| {
            let mut content = Vec::new();
            let rendered = render(*format, style, &mut content);
            let rendered = rendered.map_err(|error| Problem::new(error.to_string()));
            rendered.and_then(|()| file.write(&streams::for_file(&content)))
        });
        together(stdout, written)
    }
}

/// Two failures as one: bad usage is told as that, whatever else there is.
fn both(mut one: Failure, other: Failure) -> Failure {
    one.problems.extend(other.problems);
    let usage = one.exit == Exit::Usage || other.exit == Exit::Usage;
    Failure { exit: if usage { Exit::Usage } else { one.exit }, ..one }
}

/// Writes what has a table: to stdout, and as JSON to a file if one was named.
///
/// # Errors
/// Everything that could not be written.
pub(crate) fn write_table(
    json: Option<&EndFile>,
    to: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    as_json: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let stdout = to_stdout(to);
    let written = json.map(|file| {
        let mut content = Vec::new();
        as_json(&mut content).map_err(|error| Problem::new(error.to_string()))?;
        file.write(&content)
    });
    together(stdout, written.into_iter())
}

/// Writes a file in one go.
///
/// # Errors
/// It cannot be written.
pub(crate) fn to_file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let mut content = Vec::new();
    let written = write(&mut content).and_then(|()| open(path, false)?.write_all(&content));
    written.map_err(|error| {
        Failure::environment(Problem::new(format!("cannot write {}: {error}", path.display())))
    })
}

/// The file of `--json`, tried.
///
/// # Errors
/// It cannot be written.
pub(crate) fn json_file(path: Option<&PathBuf>) -> Result<Option<EndFile>, Failure> {
    path.map(|path| EndFile::new("--json", path)).transpose()
}

fn together(
    stdout: Result<(), Failure>,
    files: impl Iterator<Item = Result<(), Problem>>,
) -> Result<(), Failure> {
    let mut problems = stdout.err().map(|failure| failure.problems).unwrap_or_default();
    files.filter_map(Result::err).for_each(|problem| problems.push(problem));
    if problems.is_empty() {
        return Ok(());
    }
    Err(Failure { problems, source: None, exit: Exit::Environment })
}

/// Reads `FORMAT=FILE`.
fn parse(text: &str) -> Result<(OutputFormat, &Path), Problem> {
    let names = || {
        let names: Vec<String> = OutputFormat::value_variants()
            .iter()
            .filter_map(|format| Some(format.to_possible_value()?.get_name().to_owned()))
            .collect();
        names.join(", ")
    };
    let Some((name, path)) = text.split_once('=').filter(|(_, path)| !path.is_empty()) else {
        let problem = Problem::new(format!("--out: `{text}` is not FORMAT=FILE"));
        return Err(problem.with_hint(format!("write markdown=report.md; formats are {}", names())));
    };
    let format = OutputFormat::from_str(name, false).map_err(|_| {
        Problem::new(format!("--out: `{name}` is no format")).with_hint(format!("formats are {}", names()))
    })?;
    Ok((format, Path::new(path)))
}

/// The file of the summary of a job, which CI systems name in the environment.
fn step_summary() -> Result<EndFile, Failure> {
    let name = environment::STEP_SUMMARY;
    let Some(path) = environment::step_summary() else {
        let problem = Problem::new(format!("--step-summary: {name} is not set"));
        let hint = "the runner of GitHub Actions sets it; elsewhere use --out markdown=FILE";
        return Err(Failure::usage(problem.with_hint(hint)));
    };
    let file = EndFile::new(&format!("--step-summary ({name})"), &path)?;
    Ok(EndFile { append: true, ..file })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(out: &[&str]) -> OutputArgs {
        let out = out.iter().map(|text| (*text).to_owned()).collect();
        OutputArgs { out, ..OutputArgs::default() }
    }

    #[test]
    fn bad_outputs_are_all_told_at_once() {
        let given = ["xml=a", "junit", "csv=", "k6=-", "json=/", "json=/no/such/folder/x", "csv=a", "k6=a"];
        let failure = Outputs::of(&args(&given)).expect_err("they are bad");
        assert_eq!(failure.exit, Exit::Usage);
        let problems = failure.problems;
        let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
        let expected = [
            "--out: `xml` is no format",
            "--out: `junit` is not FORMAT=FILE",
            "--out: `csv=` is not FORMAT=FILE",
            "--out: stdout has the report, and nothing else",
            "--out: cannot write /: is a directory",
            "--out: cannot write /no/such/folder/x: No such file or directory (os error 2)",
            "a is to be written twice",
        ];
        assert_eq!(messages, expected);
        assert!(problems.iter().all(|problem| problem.hint.is_some()));
        let failure = Outputs::of(&args(&["json=/no/such/folder/x"])).expect_err("there is no such folder");
        assert_eq!(failure.exit, Exit::Environment);
    }

    #[test]
    fn what_cannot_be_written_does_not_keep_the_rest_from_it() {
        let folder = std::env::temp_dir().join(format!("plimsoll-outputs-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("it can be made");
        let (gone, kept) = (folder.join("gone"), folder.join("kept"));
        std::fs::create_dir_all(&gone).expect("it can be made");
        let file = gone.join("x");
        let names = [format!("csv={}", file.display()), format!("k6={}", kept.display())];
        let outputs = Outputs::of(&args(&[&names[0], &names[1]])).expect("they can be written yet");
        assert!(!file.exists() && !kept.exists(), "they were only tried");
        std::fs::remove_dir_all(&gone).expect("it was made");
        let render: Render<'_> = &|format, _, out| write!(out, "{format:?}");
        // Not to the stdout of the tests.
        let written = outputs.files.iter().map(|(format, file)| {
            let mut content = Vec::new();
            render(*format, &Style::PLAIN, &mut content).expect("memory");
            file.write(&content)
        });
        let failure = together(Ok(()), written).expect_err("one of them cannot be written");
        assert_eq!((failure.problems.len(), failure.exit), (1, Exit::Environment));
        assert_eq!(std::fs::read_to_string(&kept).expect("it was written"), "K6");
        let more = EndFile { path: kept.clone(), append: true };
        more.write(b" and more").expect("it can be written");
        assert_eq!(std::fs::read_to_string(&kept).expect("it was written"), "K6 and more");
        std::fs::remove_dir_all(&folder).expect("it was made");
    }
}
