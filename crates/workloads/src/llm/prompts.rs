//! Steps whose bodies are prompts, another one each time.

use std::sync::Arc;

use plimsoll_core::Random;
use plimsoll_plan::document::{CompletionSpec, RequestStep};
use plimsoll_plan::{BodyContent, BodyContext, BodyFactory, Place, Problem};
use plimsoll_scenario::{Bodies, Body, BodyMaker, BodySource, BodySupply, Fingerprint};
use serde_json::{Map, Value, json};

use super::{Api, Length};

/// Tokens of a prompt and of an answer where nothing else is said.
const INPUT: Length = Length::Fixed(128);
const OUTPUT: Length = Length::Fixed(64);
/// Bytes of English text that make a token of the usual vocabularies.
const BYTES_PER_TOKEN: f64 = 4.0;
/// Prompts that are made and handed over at a time.
const BATCH: usize = 8;
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

/// A prompt of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Prompt {
    text: String,
    /// Length of the answer, if the file tells it.
    output: Option<u64>,
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
    prompts: Arc<[Prompt]>,
    stream: bool,
    extra: Map<String, Value>,
}

impl BodySource for Prompts {
    fn open(&self, seed: u64) -> Box<dyn BodyMaker> {
        let mut prefix = String::new();
        let bytes = self.bytes(self.prefix);
        write_words(&mut prefix, bytes, &mut Random::new(seed, PREFIX_STREAM));
        Box::new(Maker { prompts: self.clone(), seed, prefix })
    }

    fn span_ns(&self) -> u64 {
        1
    }

    fn batch(&self) -> usize {
        BATCH
    }
}

impl Prompts {
    /// Bytes of so many tokens.
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

/// Generator of the requests.
struct Maker {
    prompts: Prompts,
    seed: u64,
    prefix: String,
}

impl BodyMaker for Maker {
    fn make(&mut self, number: u64, _: u64, out: &mut Vec<u8>) {
        let Self { prompts, seed, prefix } = self;
        let mut random = Random::new(*seed, number);
        let (input, drawn) =
            (prompts.input.draw(&mut random), prompts.output.unwrap_or(OUTPUT).draw(&mut random));
        let mut text = prefix.clone();
        let mut output = drawn;
        if prompts.prompts.is_empty() {
            write_words(&mut text, prompts.bytes(input).max(prefix.len()), &mut random);
        } else {
            let prompt = &prompts.prompts[(number % prompts.prompts.len() as u64) as usize];
            text.push_str(&prompt.text);
            if let (None, Some(known)) = (prompts.output, prompt.output) {
                output = known;
            }
        }
        let mut request = Map::new();
        request.insert("model".to_owned(), prompts.model.clone().into());
        match prompts.api {
            Api::Chat => {
                let message = json!({ "role": "user", "content": text });
                request.insert("messages".to_owned(), Value::Array(vec![message]));
            }
            Api::Completions => _ = request.insert("prompt".to_owned(), text.into()),
        }
        request.insert("max_tokens".to_owned(), output.into());
        if prompts.stream {
            request.insert("stream".to_owned(), true.into());
            request.insert("stream_options".to_owned(), json!({ "include_usage": true }));
        }
        request.extend(prompts.extra.clone());
        out.clear();
        out.extend_from_slice(Value::Object(request).to_string().as_bytes());
    }
}

/// Bodies that ask for a completion, with the type that they have.
#[derive(Debug)]
pub struct CompletionFactory;

impl BodyFactory for CompletionFactory {
    fn key(&self) -> &'static str {
        "completion"
    }

    fn compile(
        &self,
        request: &RequestStep,
        place: Option<Place>,
        context: &mut dyn BodyContext,
    ) -> Option<BodyContent> {
        let spec = request.body.completion.get()?;
        let prompts = prompts(spec, place, context)?;
        let Some(supply) = context.next_supply() else {
            return context.fail(place, Problem::new("the plan has more than 65536 steps with `completion`"));
        };
        let of = Fingerprint::EMPTY.with(format!("{prompts:?}").as_bytes()).to_string().into();
        context.add_supply(BodySupply {
            // A request is one.
            records: 0,
            bodies: Bodies::Fresh(Arc::new(prompts)),
            stock: Arc::from([]),
        });
        let headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
        Some(BodyContent { body: Body::Supplied { supply, inquiry: false, of }, headers, judge: None })
    }
}

fn prompts(spec: &CompletionSpec, place: Option<Place>, context: &mut dyn BodyContext) -> Option<Prompts> {
    let model = context.read(&spec.model, |text| match text {
        "" => Err("a model needs a name"),
        name => Ok(name.to_owned()),
    });
    let api = context.read(&spec.api, |text| {
        let known = Api::ALL.into_iter().find(|api| api.name() == text);
        known.ok_or_else(|| format!("`{text}` is not one of chat, completions"))
    });
    let input = context.read(&spec.input, Length::parse);
    let output = context.read(&spec.output, Length::parse);
    let prefix = context.read(&spec.prefix, |text| {
        let tokens = text.parse::<u64>().ok().filter(|tokens| *tokens <= 1_000_000);
        tokens.ok_or_else(|| format!("`{text}` is no number of tokens: write one up to 1000000"))
    });
    let bytes_per_token = context.read(&spec.bytes_per_token, |text| {
        let bytes = text.parse::<f64>().ok().filter(|bytes| (0.5..=100.0).contains(bytes));
        bytes.ok_or_else(|| format!("`{text}` is no number of bytes: write one from 0.5 to 100, such as 4.2"))
    });
    let extra = match spec.extra.get() {
        None => Some(Map::new()),
        Some(Value::Object(members)) => Some(members.clone()),
        Some(_) => context.fail(
            spec.extra.place(),
            Problem::new("`extra` is no mapping").with_hint("write it as in `extra: {temperature: 0}`"),
        ),
    };
    let of_file = match spec.prompts.is_absent() {
        true => Some(Vec::new()),
        false => context.file(&spec.prompts).and_then(|content| match of_file(&content) {
            Ok(prompts) => Some(prompts),
            Err(why) => {
                let hint =
                    "write lines such as {\"prompt\": \"…\", \"output_tokens\": 64}, or take ShareGPT's JSON";
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
        let problem = Problem::new("`completion` does not say which model is asked");
        return context.fail_form(place, problem.with_hint("write `model: NAME`"));
    };
    let (input, prefix) = (input?.unwrap_or(INPUT), prefix?.unwrap_or(0));
    Some(Prompts {
        api: api?.unwrap_or(Api::Chat),
        model,
        input,
        output: output?,
        prefix,
        bytes_per_token: bytes_per_token?.unwrap_or(BYTES_PER_TOKEN),
        prompts: of_file?.into(),
        stream: spec.stream.get().copied().unwrap_or(true),
        extra: extra?,
    })
}

/// The prompts of a file: of ShareGPT the first question of each conversation, with the length of its answer.
fn of_file(content: &[u8]) -> Result<Vec<Prompt>, String> {
    let lines = content.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let prompts: Vec<Prompt> = match serde_json::from_slice::<Value>(content) {
        Ok(Value::Array(conversations)) => conversations.iter().filter_map(of_conversation).collect(),
        _ => {
            let read = |(number, line): (usize, &[u8])| {
                let wrong = |what: &str| format!("line {} of the prompts {what}", number + 1);
                let line: Value = serde_json::from_slice(line).map_err(|_| wrong("is no JSON"))?;
                let text = line.get("prompt").and_then(Value::as_str);
                let text = text.ok_or_else(|| wrong("has no `prompt`"))?.to_owned();
                Ok(Prompt { text, output: line.get("output_tokens").and_then(Value::as_u64) })
            };
            lines.enumerate().map(read).collect::<Result<_, String>>()?
        }
    };
    if prompts.is_empty() { Err("the file has no prompt".to_owned()) } else { Ok(prompts) }
}

fn of_conversation(conversation: &Value) -> Option<Prompt> {
    let turns = conversation.get("conversations")?.as_array()?;
    let said = |who: &[&str]| {
        let turn = turns
            .iter()
            .find(|turn| turn.get("from").and_then(Value::as_str).is_some_and(|from| who.contains(&from)));
        turn?.get("value")?.as_str()
    };
    let text = said(&["human", "user"])?.to_owned();
    let answer = said(&["gpt", "assistant", "chatgpt"]);
    let output = answer.map(|answer| ((answer.len() as f64 / BYTES_PER_TOKEN).round() as u64).max(1));
    Some(Prompt { text, output })
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
            let source = Prompts { prompts: of_file(content).unwrap().into(), prefix: 0, ..source() };
            let (first, third) = (made(&source, 1, 0), made(&source, 1, 2));
            assert_eq!(prompt(&first), "one \"q\"");
            assert_eq!(first, third);
            let second = made(&source, 1, 1);
            assert_eq!(
                (prompt(&second), &first["max_tokens"], &second["max_tokens"]),
                ("two", &json!(3), &json!(64))
            );
        }
        for (bad, said) in
            [("", "no prompt"), ("[]", "no prompt"), ("x", "line 1"), ("{}", "has no `prompt`")]
        {
            let error = of_file(bad.as_bytes()).unwrap_err();
            assert!(error.contains(said), "{bad}: {error}");
        }
    }
}
