//! Descriptions of interfaces.

use plimsoll_import::openapi::{Options, import};

use crate::import::{checked_alone, shown};

fn imported(text: &str) -> String {
    shown(&checked_alone(import(text.as_bytes(), &Options::default())))
}

const SHOP: &str = r##"
openapi: 3.1.0
info: {title: Shop, version: "1"}
servers:
  - url: https://{region}.shop.example/v1/
    variables: {region: {default: eu}}
security: [{key: []}]
paths:
  /items/{id}:
    parameters:
      - {name: id, in: path, required: true, schema: {type: integer, minimum: 7}}
      - $ref: '#/components/parameters/Trace'
    get:
      operationId: getItem
      tags: [items]
      security: []
      parameters:
        - {name: fields, in: query, schema: {type: array, items: {type: string}}, example: [name, "a b"]}
        - {name: unused, in: query, schema: {type: string}}
        - {name: lang, in: cookie, required: true, schema: {enum: [de, en]}}
      responses: {200: {description: fine}}
    put:
      requestBody:
        content:
          text/plain: {example: plain}
          application/json: {schema: {$ref: '#/components/schemas/Item'}}
      x-internal: true
      callbacks: {}
  /items:
    post:
      requestBody:
        content:
          application/x-www-form-urlencoded:
            examples: {first: {value: {name: "x y", count: 2}}}
    patch:
      requestBody:
        content:
          application/merge-patch+json: {schema: {type: object, properties: {n: {type: number}}}}
    options:
      requestBody: {content: {multipart/form-data: {schema: {type: object}}}}
components:
  parameters:
    Trace: {name: X-Trace, in: header, required: true, schema: {type: string, format: uuid}}
  schemas:
    Item:
      allOf:
        - {type: object, properties: {id: {type: integer, readOnly: true}, name: {type: string, example: "${x}"}}}
        - type: object
          required: [tags]
          properties:
            tags: {type: array, items: {type: string, minLength: 6}}
            at: {type: string, format: date-time}
            one: {oneOf: [{type: "null"}, {type: boolean}]}
            parent: {$ref: '#/components/schemas/Item'}
"##;

#[test]
fn operations_become_steps() {
    insta::assert_snapshot!("operations", imported(SHOP));
    let options = Options { server: Some("http://127.0.0.1:8080".to_owned()) };
    let text = shown(&checked_alone(import(SHOP.as_bytes(), &options)));
    assert!(text.contains("server: http://127.0.0.1:8080\n"), "{text}");
    assert!(text.contains("get: /items/7"), "{text}");
}

#[test]
fn mistakes() {
    let mut text = String::new();
    for source in [
        "",
        "a: [",
        "swagger: '2.0'\npaths: {}",
        "openapi: 4.0.0\nservers: [{url: /relative}]\npaths: {/x: {get: {}}}",
        "openapi: 3.0.3\npaths: {/x: {get: {}}}",
        "openapi: 3.0.3\nservers: [{url: 'http://h'}]\npaths: {}\nextra: 1\nx-extra: 1",
        "openapi: 3.0.3\nservers: [{url: 'http://h'}]\npaths:\n  /{a}/{b}:\n    gett: {}\n    get:\n      \
         parameters: [{name: a, in: path}, {name: c, in: body}, {$ref: 'other.yaml#/x'}, {$ref: '#/paths'}, 5]\n",
        "openapi: 3.0.3\nservers: [{url: 'http://h'}]\npaths:\n  /a: {post: {requestBody: {$ref: '#/x'}}}\n\
         x: {$ref: '#/y'}\ny: {$ref: '#/x'}\n",
    ] {
        text.push_str(&format!("# {}\n{}\n", source.replace('\n', "\n# "), imported(source)));
    }
    insta::assert_snapshot!(text);
}
