//! Steps whose bodies are prompts, another one each time.
//!
//! A prompt is a conversation of one or more turns. Its requests are made together: each has the questions
//! and answers before it in front of its own question. The answers in there are those of the file, or words
//! of their length: what the server says is not known when they are made. Recorded messages are sent as they
//! are, calls of tools and their results among them.

use std::sync::Arc;

use plimsoll_core::Random;
use plimsoll_document::{BodyKey, Place, Problem, RequestStep, Text};
use plimsoll_plan::{BodyContent, BodyContext, BodyPart, body_key};
use plimsoll_scenario::{Bodies, Body, BodyMaker, BodySource, BodySupply, Fingerprint};
use serde_json::{Map, Value, json};

use super::recorded::{Parameters, Recorded, request_of};
use super::{Api, CompletionSpec, Length, api};

/// Default number of tokens of a prompt and of an answer.
const INPUT: Length = Length::Fixed(128);
const OUTPUT: Length = Length::Fixed(64);
/// Bytes of English text that make a token of the usual vocabularies.
const BYTES_PER_TOKEN: f64 = 4.0;
/// Prompts that are made and handed over at a time.
const BATCH: usize = 8;
/// Tokens of a block of a trace (Mooncake, FAST'25: the hash of each block of 512 tokens).
const BLOCK_TOKENS: u64 = 512;
/// Offset of the seeds of blocks from those of prompts.
const BLOCK_STREAMS: u64 = 1 << 63;
/// Turns of a conversation at most.
const MOST_TURNS: usize = 1_000;
/// The random stream of the text that prompts have in common; those of single prompts are their numbers.
const PREFIX_STREAM: u64 = u64::MAX;

/// Words that prompts are made of.
const WORDS: [&str; 64] = [
    "a", "about", "after", "all", "and", "any", "at", "back", "because", "between", "book", "but", "can",
    "city", "could", "day", "does", "each", "every", "find", "first", "for", "from", "great", "hand", "have",
    "how", "in", "into", "it", "know", "large", "light", "little", "long", "make", "many", "more", "never",
    "new", "now", "of", "old", "other", "over", "people", "place", "read", "right", "small", "some", "story",
    "than", "the", "their", "time", "to", "under", "water", "we", "what", "world", "year", "you",
];

/// A conversation of a file: one turn at least.
#[derive(Clone, Debug, PartialEq)]
enum Conversation {
    /// Questions and answers, of which requests are made.
    Turns(Vec<Turn>),
    /// Messages in the words of an API.
    Recorded(Recorded),
}

impl Conversation {
    /// The turns that it has.
    fn len(&self) -> usize {
        match self {
            Self::Turns(turns) => turns.len(),
            Self::Recorded(recorded) => recorded.turns(),
        }
    }
}

/// A question and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Turn {
    question: Question,
    /// The answer, if the file has it.
    answer: Option<String>,
    /// Tokens of the answer, if the file has it.
    output: Option<u64>,
    /// Parameters that are sent with the question.
    parameters: Parameters,
}

/// A question of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Question {
    /// These words.
    Text(String),
    /// Blocks of tokens by their names, as in traces: the same name stands for the same text.
    Blocks {
        /// Tokens in all.
        input: u64,
        /// Names of the blocks.
        names: Vec<u64>,
    },
}

/// A turn whose words are known.
struct MadeTurn {
    question: String,
    /// Words that stand for the real answer.
    answer: String,
    /// Tokens that are asked for.
    output: u64,
    parameters: Parameters,
}

/// The turns of one conversation as they are sent.
enum Script {
    /// Turns that are made of questions and answers.
    Made(Vec<MadeTurn>),
    /// Recorded messages: the place of the conversation, its first turn that is sent, and the tokens that
    /// each asks for.
    Recorded(usize, usize, Vec<u64>),
}

/// Prompts that are known to be right.
#[derive(Clone, Debug)]
struct Prompts {
    api: Api,
    model: String,
    input: Length,
    output: Option<Length>,
    prefix: u64,
    bytes_per_token: f64,
    prompts: Arc<[Conversation]>,
    /// Turns that are sent of each; without a number one, which of recorded messages is the last.
    turns: Option<usize>,
    stream: bool,
    extra: Map<String, Value>,
}

impl BodySource for Prompts {
    fn open(&self, seed: u64) -> Box<dyn BodyMaker> {
        let mut prefix = String::new();
        let bytes = self.bytes(self.prefix);
        write_words(&mut prefix, bytes, &mut Random::new(seed, PREFIX_STREAM));
        Box::new(Maker { prompts: self.clone(), seed, prefix, script: Script::Made(Vec::new()) })
    }

    fn span_ns(&self) -> u64 {
        1
    }

    fn batch(&self) -> usize {
        BATCH
    }
}

impl Prompts {
    /// Bytes of this many tokens.
    fn bytes(&self, tokens: u64) -> usize {
        (tokens as f64 * self.bytes_per_token).round() as usize
    }
}

/// Writes words up to this length.
fn write_words(text: &mut String, bytes: usize, random: &mut Random) {
    while text.len() < bytes {
        // The lowest bits of a word choose one of 64.
        text.push_str(WORDS[(random.bits() & 63) as usize]);
        text.push(' ');
    }
    text.truncate(bytes);
}

/// Words of this many bytes, always the same.
pub(super) fn sample(bytes: usize) -> String {
    let mut text = String::new();
    write_words(&mut text, bytes, &mut Random::new(0, PREFIX_STREAM));
    text
}

/// Generator of the requests.
struct Maker {
    prompts: Prompts,
    seed: u64,
    prefix: String,
    /// The conversation that was begun last.
    script: Script,
}

impl BodyMaker for Maker {
    fn make(&mut self, number: u64, _: u64, out: &mut Vec<u8>) {
        self.script = self.script(number);
        self.write(0, out);
    }

    fn follow(&mut self, turn: usize, out: &mut Vec<u8>) -> bool {
        let turns = match &self.script {
            Script::Made(turns) => turns.len(),
            Script::Recorded(_, _, tokens) => tokens.len(),
        };
        let there = turn < turns;
        if there {
            self.write(turn, out);
        }
        there
    }
}

impl Maker {
    /// Conversation `number`.
    fn script(&self, number: u64) -> Script {
        let Self { prompts, seed, prefix, .. } = self;
        let mut random = Random::new(*seed, number);
        let turns = prompts.turns.unwrap_or(1);
        let known = match prompts.prompts.len() as u64 {
            0 => None,
            count => {
                let place = (number % count) as usize;
                match &prompts.prompts[place] {
                    Conversation::Turns(turns) => Some(turns),
                    Conversation::Recorded(recorded) => {
                        let first = prompts.turns.map_or(recorded.turns() - 1, |_| 0);
                        let tokens = (first..first + turns).map(|turn| {
                            let drawn = prompts.output.unwrap_or(OUTPUT).draw(&mut random);
                            let known = recorded.tokens(turn).filter(|_| prompts.output.is_none());
                            known.unwrap_or(drawn)
                        });
                        return Script::Recorded(place, first, tokens.collect());
                    }
                }
            }
        };
        let made = (0..turns)
            .map(|place| {
                let (input, drawn) =
                    (prompts.input.draw(&mut random), prompts.output.unwrap_or(OUTPUT).draw(&mut random));
                let mut question = if place == 0 { prefix.clone() } else { String::new() };
                let turn = known.map(|turns| &turns[place]);
                match turn.map(|turn| &turn.question) {
                    Some(Question::Text(text)) => question.push_str(text),
                    Some(Question::Blocks { input, names }) => {
                        self.write_blocks(&mut question, *input, names);
                    }
                    None => {
                        let bytes = prompts.bytes(input).max(question.len());
                        write_words(&mut question, bytes, &mut random);
                    }
                }
                let output = match (prompts.output, turn.and_then(|turn| turn.output)) {
                    (None, Some(output)) => output,
                    _ => drawn,
                };
                let mut answer = String::new();
                if place + 1 < turns {
                    match turn.and_then(|turn| turn.answer.as_ref()) {
                        Some(known) => answer.push_str(known),
                        None => write_words(&mut answer, prompts.bytes(output), &mut random),
                    }
                }
                let parameters = turn.map(|turn| turn.parameters.clone()).unwrap_or_default();
                MadeTurn { question, answer, output, parameters }
            })
            .collect();
        Script::Made(made)
    }

    /// Writes the text of named blocks, as many tokens as the question has.
    fn write_blocks(&self, question: &mut String, input: u64, names: &[u64]) {
        let block = self.prompts.bytes(BLOCK_TOKENS);
        let front = question.len();
        for name in names {
            // Blocks and single prompts have streams of their own.
            let mut random = Random::new(self.seed.wrapping_add(BLOCK_STREAMS), *name);
            let end = question.len() + block;
            write_words(question, end, &mut random);
        }
        // A trace without names has lengths only.
        let mut random = Random::new(self.seed.wrapping_add(BLOCK_STREAMS), PREFIX_STREAM);
        let bytes = front + self.prompts.bytes(input);
        write_words(question, bytes, &mut random);
        question.truncate(bytes);
    }

    /// Writes the request of a turn of the present conversation.
    fn write(&self, turn: usize, out: &mut Vec<u8>) {
        let Self { prompts, script, .. } = self;
        let mut request = match script {
            Script::Made(turns) => Self::made(prompts, turns, turn),
            Script::Recorded(place, first, tokens) => {
                let Conversation::Recorded(recorded) = &prompts.prompts[*place] else { return };
                let said = recorded.messages(first + turn).to_vec().into();
                let mut request = prompts.api.request(&prompts.model, said, tokens[turn], prompts.stream);
                recorded.parameters().extend(&mut request, tokens[turn]);
                request
            }
        };
        api::extend(&mut request, &prompts.extra);
        out.clear();
        out.extend_from_slice(Value::Object(request).to_string().as_bytes());
    }

    /// The request of a turn that is made of questions and answers.
    fn made(prompts: &Prompts, turns: &[MadeTurn], turn: usize) -> Map<String, Value> {
        let (asked, MadeTurn { question, output, parameters, .. }) = (&turns[..turn], &turns[turn]);
        let said = match prompts.api.takes_messages() {
            true => {
                let message = |role: &str, text: &String| json!({ "role": role, "content": text });
                let said =
                    |turn: &MadeTurn| [message("user", &turn.question), message("assistant", &turn.answer)];
                let mut messages: Vec<Value> = asked.iter().flat_map(said).collect();
                messages.push(message("user", question));
                messages.into()
            }
            false => {
                let mut text = String::new();
                for MadeTurn { question, answer, .. } in asked {
                    text.extend([question.as_str(), "\n", answer.as_str(), "\n"]);
                }
                text.push_str(question);
                text.into()
            }
        };
        let mut request = prompts.api.request(&prompts.model, said, *output, prompts.stream);
        parameters.extend(&mut request, *output);
        request
    }
}

/// Key of bodies that ask for a completion, with the type that they have.
pub(crate) static PROMPT: BodyKey = body_key::<CompletionSpec>(
    "completion",
    "Body as a request for a completion of a language model, another prompt each time: what `plimsoll llm \
     --print-plan` shows. Its answers are streams: write `stream: llm` beside it.",
);

impl BodyPart for CompletionSpec {
    fn compile(
        &self,
        request: &RequestStep,
        place: Option<Place>,
        context: &mut dyn BodyContext,
    ) -> Option<BodyContent> {
        let prompts = prompts(self, request, place, context)?;
        let Some(supply) = context.next_supply() else {
            return context.fail(place, Problem::new("the plan has more than 65536 steps with `completion`"));
        };
        let api = prompts.api;
        let of = Fingerprint::EMPTY.with(format!("{prompts:?}").as_bytes()).to_string().into();
        context.add_supply(BodySupply {
            // A request is one.
            records: 0,
            bodies: Bodies::Fresh(Arc::new(prompts)),
            stock: Arc::from([]),
        });
        let headers = [("Content-Type", "application/json")];
        let headers = headers.iter().chain(api.headers());
        let headers = headers.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Some(BodyContent {
            body: Body::Supplied { supply, inquiry: false, of },
            headers,
            judge: None,
            stream: None,
        })
    }
}

/// Returns the API of a step by the end of its path.
fn by_path(request: &RequestStep, place: Option<Place>, context: &mut dyn BodyContext) -> Option<Api> {
    let url = request.address.urls().into_iter().find_map(|(_, url)| url.get()).map_or("", Text::as_str);
    Api::of_path(url).or_else(|| {
        let problem = Problem::new(format!("the path `{url}` does not tell which API of a model is there"));
        let hint = format!("write `api` in `completion`: one of {}", Api::names());
        context.fail_form(place, problem.with_hint(hint))
    })
}

fn prompts(
    spec: &CompletionSpec,
    request: &RequestStep,
    place: Option<Place>,
    context: &mut dyn BodyContext,
) -> Option<Prompts> {
    let model = context.read(&spec.model, |text| match text {
        "" => Err("a model needs a name"),
        name => Ok(name.to_owned()),
    });
    let api = context.read(&spec.api, |text| {
        let known = Api::ALL.into_iter().find(|api| api.name() == text);
        known.ok_or_else(|| format!("`{text}` is not one of {}", Api::names()))
    });
    let input = context.read(&spec.input, Length::parse);
    let output = context.read(&spec.output, Length::parse);
    let prefix = context.read(&spec.prefix, |text| {
        let tokens = text.parse::<u64>().ok().filter(|tokens| *tokens <= 1_000_000);
        tokens.ok_or_else(|| format!("`{text}` is not a number of tokens: write one up to 1000000"))
    });
    let bytes_per_token = context.read(&spec.bytes_per_token, |text| {
        let bytes = text.parse::<f64>().ok().filter(|bytes| (0.5..=100.0).contains(bytes));
        bytes.ok_or_else(|| {
            format!("`{text}` is not a number of bytes: write one from 0.5 to 100, such as 4.2")
        })
    });
    let extra = match spec.extra.get() {
        None => Some(Map::new()),
        Some(Value::Object(members)) => Some(members.clone()),
        Some(_) => context.fail(
            spec.extra.place(),
            Problem::new("`extra` is not a mapping").with_hint("write it as in `extra: {temperature: 0}`"),
        ),
    };
    let turns = context.read(&spec.turns, |text| {
        let turns = text.parse::<usize>().ok().filter(|turns| (1..=MOST_TURNS).contains(turns));
        turns.ok_or_else(|| format!("`{text}` is not a number of turns: write one from 1 to {MOST_TURNS}"))
    });
    let at_least = turns.unwrap_or_default().unwrap_or(1);
    let of_file = match spec.prompts.is_absent() {
        true => Some(Vec::new()),
        false => context.file(&spec.prompts).and_then(|content| match of_file(&content, at_least) {
            Ok(prompts) => Some(prompts),
            Err(why) => {
                let hint =
                    "write lines such as {\"prompt\": \"…\", \"output_tokens\": 64} or {\"messages\": […]}, or take \
                     ShareGPT's JSON or a trace of Mooncake";
                context.fail(spec.prompts.place(), Problem::new(why).with_hint(hint))
            }
        }),
    };
    if !spec.prompts.is_absent() && !spec.input.is_absent() {
        let problem =
            Problem::new("`input` has no effect beside `prompts`, whose lengths are those of the file");
        return context.fail(spec.input.place(), problem.with_hint("leave one of them out"));
    }
    let Some(model) = model? else {
        let problem = Problem::new("`completion` names no model");
        return context.fail_form(place, problem.with_hint("write `model: NAME`"));
    };
    let (input, prefix) = (input?.unwrap_or(INPUT), prefix?.unwrap_or(0));
    let (api, of_file) = (
        match api? {
            Some(api) => api,
            None => by_path(request, place, context)?,
        },
        of_file?,
    );
    if of_file.iter().any(|known| matches!(known, Conversation::Recorded(_))) {
        if !api.takes_messages() {
            let problem = Problem::new(format!("the API `{}` takes a text, and no messages", api.name()));
            let hint = "take the API of a chat, such as `chat`, or prompts without `messages`";
            return context.fail(spec.prompts.place(), problem.with_hint(hint));
        }
        if prefix > 0 {
            let problem =
                Problem::new("`prefix` has no effect: the messages of the file are sent as they are");
            return context.fail(spec.prefix.place(), problem.with_hint("leave it out"));
        }
    }
    Some(Prompts {
        api,
        model,
        input,
        output: output?,
        prefix,
        bytes_per_token: bytes_per_token?.unwrap_or(BYTES_PER_TOKEN),
        prompts: of_file.into(),
        turns: turns?,
        stream: spec.stream.get().copied().unwrap_or(true),
        extra: extra?,
    })
}

/// The conversations of a file that have at least this many turns.
fn of_file(content: &[u8], turns: usize) -> Result<Vec<Conversation>, String> {
    let lines = content.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let all: Vec<Conversation> = match serde_json::from_slice::<Value>(content) {
        Ok(Value::Array(conversations)) => conversations.iter().map(of_conversation).collect(),
        // Of one line, or of several.
        Ok(one @ Value::Object(_)) => vec![of_line(0, &one)?],
        _ => {
            let read = |(number, line): (usize, &[u8])| {
                let line = serde_json::from_slice(line);
                of_line(number, &line.map_err(|_| format!("line {} of the prompts is not JSON", number + 1))?)
            };
            lines.enumerate().map(read).collect::<Result<_, _>>()?
        }
    };
    let count = all.len();
    let long: Vec<Conversation> = all.into_iter().filter(|known| known.len() >= turns.max(1)).collect();
    match (long.is_empty(), turns) {
        (false, _) => Ok(long),
        (true, 0 | 1) => Err("the file has no prompt".to_owned()),
        (true, _) => Err(format!("none of its {count} conversations has {turns} turns")),
    }
}

/// A line of prompts, or of a trace.
fn of_line(number: usize, line: &Value) -> Result<Conversation, String> {
    let wrong = |what: &str| format!("line {} of the prompts {what}", number + 1);
    let line = request_of(line);
    let tokens = |key: &str| line.get(key).and_then(Value::as_u64);
    let question = match (line.get("prompt").and_then(Value::as_str), tokens("input_length")) {
        (Some(text), _) => Question::Text(text.to_owned()),
        (None, Some(input)) => {
            let names = line.get("hash_ids").and_then(Value::as_array);
            let names = names.map(|names| names.iter().filter_map(Value::as_u64).collect());
            Question::Blocks { input: input.max(1), names: names.unwrap_or_default() }
        }
        (None, None) if line.get("conversations").is_some() => return Ok(of_conversation(line)),
        (None, None) => {
            let recorded = Recorded::read(line, BYTES_PER_TOKEN).map(Conversation::Recorded);
            return recorded.ok_or_else(|| wrong("has no `prompt`, no `messages` and no `input_length`"));
        }
    };
    let output = tokens("output_tokens").or_else(|| tokens("output_length"));
    let parameters = Parameters::of(line);
    let output = output.or_else(|| parameters.limit()).map(|output| output.max(1));
    Ok(Conversation::Turns(vec![Turn { question, answer: None, output, parameters }]))
}

/// A conversation as ShareGPT has them, each question with the answer behind it, or recorded messages.
fn of_conversation(conversation: &Value) -> Conversation {
    if let Some(recorded) = Recorded::read(conversation, BYTES_PER_TOKEN) {
        return Conversation::Recorded(recorded);
    }
    let said = conversation.get("conversations").and_then(Value::as_array);
    let said = said.into_iter().flatten().filter_map(|said| {
        let from = said.get("from").and_then(Value::as_str)?;
        Some((from, said.get("value").and_then(Value::as_str)?))
    });
    let mut turns: Vec<Turn> = Vec::new();
    for (from, text) in said {
        match from {
            "human" | "user" => {
                turns.push(Turn {
                    question: Question::Text(text.to_owned()),
                    answer: None,
                    output: None,
                    parameters: Parameters::default(),
                });
            }
            "gpt" | "assistant" | "chatgpt" => {
                if let Some(turn) = turns.last_mut().filter(|turn| turn.answer.is_none()) {
                    let tokens = (text.len() as f64 / BYTES_PER_TOKEN).round() as u64;
                    (turn.answer, turn.output) = (Some(text.to_owned()), Some(tokens.max(1)));
                }
            }
            _ => {}
        }
    }
    Conversation::Turns(turns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> Prompts {
        Prompts {
            api: Api::Chat,
            model: "m".to_owned(),
            input: Length::Fixed(50),
            output: None,
            prefix: 20,
            bytes_per_token: 4.0,
            prompts: Arc::from([]),
            turns: None,
            stream: true,
            extra: Map::new(),
        }
    }

    fn made(source: &Prompts, seed: u64, number: u64) -> Value {
        let mut out = b"of before".to_vec();
        source.open(seed).make(number, 0, &mut out);
        serde_json::from_slice(&out).expect("a request is JSON")
    }

    fn prompt(request: &Value) -> &str {
        request.pointer("/messages/0/content").and_then(Value::as_str).expect("a prompt")
    }

    #[test]
    fn prompts_follow_from_seed_and_number() {
        let (first, second) = (made(&source(), 1, 0), made(&source(), 1, 1));
        assert_eq!(first, made(&source(), 1, 0));
        assert_ne!(first, second);
        assert_ne!(prompt(&first), prompt(&made(&source(), 2, 0)));
        for request in [&first, &second] {
            assert_eq!(prompt(request).len(), 200, "50 tokens of 4 bytes");
            assert_eq!((&request["max_tokens"], &request["stream"]), (&json!(64), &json!(true)));
            assert_eq!(request["stream_options"], json!({ "include_usage": true }));
        }
        assert_eq!(prompt(&first)[..80], prompt(&second)[..80], "what they have in common");
        assert_ne!(prompt(&first)[80..], prompt(&second)[80..]);
        let plain = Prompts { api: Api::Completions, stream: false, ..source() };
        let plain = made(&plain, 1, 0);
        assert!(plain["prompt"].is_string() && plain.get("stream").is_none());
    }

    #[test]
    fn prompts_of_files_are_sent_in_turn() {
        let lines = b"{\"prompt\":\"one \\\"q\\\"\",\"output_tokens\":3}\n\n{\"prompt\":\"two\"}\n";
        let share_gpt = br#"[{"conversations":[{"from":"human","value":"one \"q\""},
            {"from":"gpt","value":"twelve bytes"}]},{"conversations":[{"from":"human","value":"two"}]}, {}]"#;
        for content in [&lines[..], share_gpt] {
            let source = Prompts { prompts: of_file(content, 1).unwrap().into(), prefix: 0, ..source() };
            let (first, third) = (made(&source, 1, 0), made(&source, 1, 2));
            assert_eq!(prompt(&first), "one \"q\"");
            assert_eq!(first, third);
            let second = made(&source, 1, 1);
            assert_eq!(
                (prompt(&second), &first["max_tokens"], &second["max_tokens"]),
                ("two", &json!(3), &json!(64))
            );
        }
        let with_parameters = br#"{"prompt":"one","max_tokens":7,"temperature":0.5,"id":"x"}"#;
        let source = Prompts { prompts: of_file(with_parameters, 1).unwrap().into(), prefix: 0, ..source() };
        let request = made(&source, 1, 0);
        assert_eq!((&request["max_tokens"], &request["temperature"]), (&json!(7), &json!(0.5)));
        assert_eq!((request.get("id"), request.get("prompt")), (None, None));
        let asked = Prompts { output: Some(Length::Fixed(9)), ..source };
        assert_eq!(made(&asked, 1, 0)["max_tokens"], 9);
        for (bad, said) in
            [("", "no prompt"), ("[]", "no prompt"), ("x", "line 1"), ("{}", "has no `prompt`")]
        {
            let error = of_file(bad.as_bytes(), 1).unwrap_err();
            assert!(error.contains(said), "{bad}: {error}");
        }
    }

    /// The requests of one conversation.
    fn conversation(source: &Prompts, number: u64) -> Vec<Value> {
        let (mut maker, mut out) = (source.open(1), Vec::new());
        maker.make(number, 0, &mut out);
        let mut requests: Vec<Value> = vec![serde_json::from_slice(&out).unwrap()];
        while maker.follow(requests.len(), &mut out) {
            requests.push(serde_json::from_slice(&out).unwrap());
        }
        requests
    }

    #[test]
    fn the_turns_of_a_conversation_have_what_was_said_before() {
        let source = Prompts { turns: Some(3), output: Some(Length::Fixed(10)), ..source() };
        let requests = conversation(&source, 4);
        let messages = |turn: usize| requests[turn]["messages"].as_array().unwrap();
        assert_eq!(requests.len(), 3);
        assert_eq!([0, 1, 2].map(|turn| messages(turn).len()), [1, 3, 5]);
        assert_eq!(messages(2)[..3], messages(1)[..3], "caches of prefixes hit");
        let roles: Vec<&str> = messages(2).iter().map(|said| said["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
        let bytes = |place: usize| messages(2)[place]["content"].as_str().unwrap().len();
        assert_eq!([0, 1, 2].map(bytes), [200, 40, 200]);
        assert_eq!(requests, conversation(&source, 4));
        let plain = conversation(&Prompts { api: Api::Completions, ..source }, 4);
        let (first, second) = (plain[0]["prompt"].as_str().unwrap(), plain[1]["prompt"].as_str().unwrap());
        assert!(second.starts_with(first) && second.len() == 200 + 1 + 40 + 1 + 200);
    }

    #[test]
    fn conversations_of_a_file_are_those_with_enough_turns() {
        let file = br#"[{"conversations":[{"from":"human","value":"short"},{"from":"gpt","value":"yes"}]},
            {"conversations":[{"from":"human","value":"one"},{"from":"gpt","value":"twelve bytes"},
            {"from":"human","value":"two"},{"from":"gpt","value":"and so on"}]}]"#;
        let source =
            Prompts { prompts: of_file(file, 2).unwrap().into(), turns: Some(2), prefix: 0, ..source() };
        assert_eq!(source.prompts.len(), 1);
        let requests = conversation(&source, 0);
        let said = |place: usize| requests[1]["messages"][place]["content"].as_str().unwrap();
        assert_eq!([0, 1, 2].map(said), ["one", "twelve bytes", "two"]);
        assert_eq!((&requests[0]["max_tokens"], &requests[1]["max_tokens"]), (&json!(3), &json!(2)));
        let error = of_file(file, 3).unwrap_err();
        assert!(error.contains("none of its 2 conversations has 3 turns"), "{error}");
    }

    #[test]
    fn recorded_messages_are_sent_as_they_are() {
        let file = br#"{"messages":[
            {"role":"system","content":"be brief"},
            {"role":"user","content":"weather?"},
            {"role":"assistant","content":null,"tool_calls":[
                {"id":"t","type":"function","function":{"name":"weather","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"t","content":"sunny"},
            {"role":"assistant","content":"It is sunny."},
            {"role":"user","content":"thanks"}],
            "tools":[{"type":"function","function":{"name":"weather"}}],"id":7}"#;
        let line: Value = serde_json::from_slice(file).unwrap();
        let messages = line["messages"].as_array().unwrap();
        let source = |turns: Option<usize>| {
            let prompts = of_file(file, turns.unwrap_or(1)).unwrap().into();
            Prompts { turns, prompts, prefix: 0, ..source() }
        };
        let requests = conversation(&source(Some(3)), 0);
        // Up to the call of the tool, with its result, and with the answer.
        for (request, end) in requests.iter().zip([2, 4, 6]) {
            assert_eq!(request["messages"].as_array().unwrap(), &messages[..end]);
            assert_eq!((&request["tools"], request.get("id")), (&line["tools"], None));
        }
        assert_eq!(requests.len(), 3);
        // Twelve bytes of the answer; nothing is known about the last one.
        assert_eq!((&requests[1]["max_tokens"], &requests[2]["max_tokens"]), (&json!(3), &json!(64)));
        let whole = conversation(&source(None), 0);
        assert_eq!((whole.len(), &whole[0]["messages"]), (1, &line["messages"]));
        let asked = Prompts { output: Some(Length::Fixed(9)), ..source(Some(2)) };
        assert_eq!(conversation(&asked, 0)[1]["max_tokens"], 9);
        assert!(of_file(file, 4).unwrap_err().contains("none of its 1 conversations has 4 turns"));
    }

    #[test]
    fn blocks_of_a_trace_are_the_same_text_wherever_they_are_named() {
        let trace = b"{\"timestamp\":0,\"input_length\":600,\"output_length\":5,\"hash_ids\":[3,4]}
            {\"timestamp\":9,\"input_length\":1000,\"output_length\":6,\"hash_ids\":[3,9]}
            {\"timestamp\":9,\"input_length\":7,\"output_length\":0}";
        let source = Prompts { prompts: of_file(trace, 1).unwrap().into(), prefix: 0, ..source() };
        let [first, second, third] = [0, 1, 2].map(|number| made(&source, 1, number));
        assert_eq!([&first, &second, &third].map(|request| prompt(request).len()), [2_400, 4_000, 28]);
        assert_eq!(prompt(&first)[..2_048], prompt(&second)[..2_048], "512 tokens of 4 bytes");
        assert_ne!(prompt(&first)[2_048..2_400], prompt(&second)[2_048..2_400]);
        assert_eq!((&first["max_tokens"], &third["max_tokens"]), (&json!(5), &json!(1)));
        let named = br#"{"input_length":10,"hash_ids":[1]}"#;
        assert!(of_file(named, 2).unwrap_err().contains("none of its 1 conversations"));
    }
}
