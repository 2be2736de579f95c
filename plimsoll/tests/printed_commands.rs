//! Every command that the documents print is one that this program takes: each is read by the real command
//! line, and its settings are resolved as far as possible without a server or a history.

use std::path::Path;

use plimsoll_app::inspect;
use plimsoll_testkit::printed_commands::{PrintedCommand, all, root};

/// Words that stand for something of the reader's.
const STAND_FOR: [(&str, &str); 3] =
    [("URL", "http://127.0.0.1:8080/"), ("key.pem", "/dev/null"), ("SHELL", "bash")];

/// A service of the sink, which describes it by reflection, and the description where no sink runs.
const OF_SINK: (&str, &str) =
    ("plimsoll.sink.v1.Sink/", concat!(env!("CARGO_MANIFEST_DIR"), "/../ext/grpc/src/service/sink.proto"));

/// Commands that cannot be looked at further than their words, and why.
const EXCEPTIONS: [(&str, &str); 6] = [
    ("shop.proto", "the reader's service"),
    ("ShareGPT.json", "the reader's prompts and key"),
    ("--trace trace.jsonl", "the reader's trace"),
    ("--cacert ca.pem", "the reader's certificate"),
    ("--pem-file", "the reader's key"),
    ("…", "an ellipsis is not a command"),
];

/// A plan in place of the reader's.
fn plan_of(word: &str) -> Option<String> {
    let is_plan = ["plan.yaml", "base.yaml", "new.yaml", "load/plan.yaml"].contains(&word);
    is_plan.then(|| root().join("examples/thresholds.yaml").display().to_string())
}

/// The command with what the reader is to put in.
fn filled(command: &PrintedCommand) -> Vec<String> {
    let example = |word: &String| {
        let known = STAND_FOR.iter().find(|(name, _)| name == word).map(|(_, value)| (*value).to_owned());
        let file = root().join(word);
        let in_repository = word.starts_with("examples/").then(|| file.display().to_string());
        known.or_else(|| plan_of(word)).or(in_repository).unwrap_or_else(|| word.clone())
    };
    let described = command.words.iter().any(|word| word.starts_with(OF_SINK.0));
    let description = described.then(|| ["--proto", OF_SINK.1].map(str::to_owned));
    command.words.iter().map(example).chain(description.into_iter().flatten()).collect()
}

/// Reads a command as far as it can be without doing it.
fn read(words: &[String]) -> Result<(), String> {
    plimsoll_app::install(plimsoll::EXTENSIONS);
    inspect::read(words)
}

#[test]
fn every_command_that_a_document_prints_is_taken() {
    let commands = all();
    assert!(commands.len() > 100, "{}", commands.len());
    let mut wrong = Vec::new();
    let mut excepted = 0;
    for command in &commands {
        if EXCEPTIONS.iter().any(|(part, _)| command.line.contains(part)) {
            excepted += 1;
            continue;
        }
        if let Err(why) = read(&filled(command)) {
            wrong.push(format!("{}: `{}`\n  {why}", command.document.display(), command.line));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(excepted < 13, "too many exceptions: {excepted}");
    assert!(Path::new(&plan_of("plan.yaml").unwrap()).exists());
}

#[test]
fn a_command_that_is_refused_would_be_found() {
    for line in [
        "http://127.0.0.1:1/ --threshold eror_rate<1%",
        "http://127.0.0.1:1/ --nonsense",
        "sink --delay soon",
        "target crud --drop 300%",
        "cache --mix never",
    ] {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        assert!(read(&words).is_err(), "{line}");
    }
}
