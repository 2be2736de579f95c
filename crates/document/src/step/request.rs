//! Requests over HTTP.

use schemars::JsonSchema;

use super::body::BodySpec;
use super::part;
use crate::{Field, Keyed, PollSpec, Text};

/// A request: its URL, its body, and the handling of its response.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[non_exhaustive]
pub struct RequestStep {
    /// Method and URL.
    #[schemars(flatten)]
    pub address: AddressSpec,
    /// Body of the request.
    #[schemars(flatten)]
    pub body: BodySpec,
    /// Headers, beside those of the scenario. An empty value leaves one out.
    pub headers: Keyed<Field<Text>>,
    /// Number of records that the request carries, such as the items of an array: the report counts these,
    /// too. Bodies that are made of records have their own number.
    pub records: Field<Text>,
    /// Send the request again until its answer has come. All of that is one request with one response time
    /// and one time limit.
    pub poll: Field<PollSpec>,
    /// Read the response as a stream of events while it comes: `sse` (server-sent events), `ndjson` (JSON
    /// in lines), or `llm` (the answer of a language model with its tokens: chunks or responses of OpenAI,
    /// messages of Anthropic, lines of Ollama, told apart by what they say; `openai` in older plans).
    pub stream: Field<Text>,
    /// Keep a row of a pool for each element of an array in the JSON of the response:
    /// `{orders: {each: /data, id: /id}}`. `each` is where the array is (default: the whole body), the others
    /// are the variables of the pool and where their values are in an element.
    pub collect: Keyed<Field<Keyed<Field<Text>>>>,
    /// Forget all cookies before the request.
    pub clear_cookies: Field<bool>,
    /// Lua that makes the request or judges the response: source, or the name of a file.
    pub script: Field<Text>,
}

part!(RequestStep {
    "headers": headers,
    "records": records,
    "poll": poll,
    "stream": stream,
    "collect": collect,
    "clear_cookies": clear_cookies,
    "script": script,
    ..address,
    ..body,
});

/// URL of a request, and its method. It has one of these, unless a script makes the request.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[non_exhaustive]
pub struct AddressSpec {
    /// GET this path or URL.
    pub get: Field<Text>,
    /// POST to this path or URL.
    pub post: Field<Text>,
    /// PUT to this path or URL.
    pub put: Field<Text>,
    /// PATCH this path or URL.
    pub patch: Field<Text>,
    /// DELETE this path or URL.
    pub delete: Field<Text>,
    /// HEAD of this path or URL.
    pub head: Field<Text>,
    /// Path or URL for any other `method`.
    pub request: Field<Text>,
    /// Any method. Default: GET, or POST if there is a body.
    pub method: Field<Text>,
    /// Ask for the same URL as the request before.
    pub same_url: Field<bool>,
}

part!(AddressSpec {
    "get": get,
    "post": post,
    "put": put,
    "patch": patch,
    "delete": delete,
    "head": head,
    "request": request,
    "method": method,
    "same_url": same_url,
});

impl AddressSpec {
    /// A method and a URL, which is a template.
    pub fn new(method: &str, url: Field<Text>) -> Self {
        let mut address = Self::default();
        match method {
            "GET" => address.get = url,
            "POST" => address.post = url,
            "PUT" => address.put = url,
            "PATCH" => address.patch = url,
            "DELETE" => address.delete = url,
            "HEAD" => address.head = url,
            other => {
                address.request = url;
                address.method = Field::new(other.into());
            }
        }
        address
    }

    /// The keys that have a path or URL, most of which are named after methods.
    pub fn urls(&self) -> [(&'static str, &Field<Text>); 7] {
        [
            ("get", &self.get),
            ("post", &self.post),
            ("put", &self.put),
            ("patch", &self.patch),
            ("delete", &self.delete),
            ("head", &self.head),
            ("request", &self.request),
        ]
    }

    /// The path or URL, if it is given and could be understood.
    pub fn url_mut(&mut self) -> Option<&mut Text> {
        let urls = [
            &mut self.get,
            &mut self.post,
            &mut self.put,
            &mut self.patch,
            &mut self.delete,
            &mut self.head,
            &mut self.request,
        ];
        urls.into_iter().find_map(|field| match field {
            Field::Given(url, _) => Some(url),
            Field::Absent | Field::Bad(_) => None,
        })
    }

    /// The key of the path or URL that is given, and its value.
    pub fn given_url(&self) -> Option<(&'static str, &Field<Text>)> {
        self.urls().into_iter().find(|(_, field)| !field.is_absent())
    }
}

impl RequestStep {
    /// A request with a method and a URL, which is a template.
    pub fn new(method: &str, url: Field<Text>) -> Self {
        Self { address: AddressSpec::new(method, url), ..Self::default() }
    }
}
