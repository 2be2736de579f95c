//! Results in files, beside the one on stdout.
//!
//! A file is tried before the load begins, as far as that leaves no trace: an hour of load is not to end with
//! a folder that does not exist. Later errors are reported after the result was written to stdout.

use std::io::{self, Write};
use std::path::Path;

use clap::ValueEnum as _;
use plimsoll_document::{Problem, Problems};
use plimsoll_report::{Format, NotOfSearches, Style};

use crate::args::output::{OutputArgs, OutputFormat};
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::files::{EndFile, together};
use crate::base::stdout::to_stdout;
use crate::base::{environment, streams};

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

    /// Refuses formats that the results of searches and sweeps do not have.
    ///
    /// # Errors
    /// Each of these formats.
    pub(crate) fn admit_searches(&self) -> Result<(), Failure> {
        let formats = [self.stdout].into_iter().chain(self.files.iter().map(|(format, _)| *format));
        let mut problems = Problems::default();
        for format in formats.map(Format::from).filter(|format| !format.is_of_searches()) {
            problems.push(of_runs_only(format));
        }
        if problems.is_empty() { Ok(()) } else { Err(Failure::usage(problems)) }
    }

    /// Writes the result to stdout, then to each file. What cannot be written keeps none of the others from
    /// being written.
    ///
    /// # Errors
    /// Everything that could not be written.
    pub(crate) fn write(&self, style: &Style, render: Render<'_>) -> Result<(), Failure> {
        let stdout = to_stdout(|out| render(self.stdout, style, out));
        // A file is not a terminal, whatever stdout is.
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

/// The problem that a search or a sweep does not have this format.
pub(crate) fn of_runs_only(format: Format) -> Problem {
    let hint =
        "take text, json, csv, markdown or junit, or a page of HTML: `plimsoll report`, `find --report`";
    Problem::new(NotOfSearches(format).to_string()).with_hint(hint)
}

/// Joins two failures: if one is bad usage, so are both.
fn both(mut one: Failure, other: Failure) -> Failure {
    one.problems.extend(other.problems);
    let usage = one.exit == Exit::Usage || other.exit == Exit::Usage;
    Failure { exit: if usage { Exit::Usage } else { one.exit }, ..one }
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
        Problem::new(format!("--out: `{name}` is not a format")).with_hint(format!("formats are {}", names()))
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
        let given = [
            "xml=a",
            "junit",
            "csv=",
            "k6=-",
            "json=/",
            "json=/no/such/folder/x",
            "json=none/",
            "csv=a",
            "k6=a",
        ];
        let failure = Outputs::of(&args(&given)).expect_err("they are bad");
        assert_eq!(failure.exit, Exit::Usage);
        let problems = failure.problems;
        let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
        let expected = [
            "--out: `xml` is not a format",
            "--out: `junit` is not FORMAT=FILE",
            "--out: `csv=` is not FORMAT=FILE",
            "--out: stdout has the report, and nothing else",
            "--out: cannot write /: is a directory",
            "--out: cannot write /no/such/folder/x: No such file or directory (os error 2)",
            "--out: cannot write none/: is a directory",
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
        let more = EndFile { path: kept.clone(), append: true, is_private: false, is_new: false };
        more.write(b" and more").expect("it can be written");
        assert_eq!(std::fs::read_to_string(&kept).expect("it was written"), "K6 and more");
        std::fs::remove_dir_all(&folder).expect("it was made");
    }
}
