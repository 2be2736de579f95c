//! Proxies of other tools: the one of a run, or a note.

use std::path::Path;

use serde_json::{Value, json};

use crate::import::{Named, checked_alone, shown};

/// The lines of an import that are about a proxy.
fn lines_of(imported: &str) -> Vec<String> {
    let is_about = |line: &&str| line.to_ascii_lowercase().contains("prox");
    imported.lines().filter(is_about).map(|line| line.trim().to_owned()).collect()
}

const LEFT_OUT: &str = "the run has one proxy for all requests, and not all have this one: it is left out";

fn jmeter(defaults: &str, samplers: &[&str]) -> Vec<String> {
    let text =
        |key: &str, value: &str| format!("<stringProp name=\"HTTPSampler.{key}\">{value}</stringProp>");
    let properties = |all: &str| {
        let pairs = all.split_whitespace().filter_map(|pair| pair.split_once('='));
        pairs.map(|(key, value)| text(key, value)).collect::<String>()
    };
    let sampler = |(number, own): (usize, &&str)| {
        format!(
            "<HTTPSamplerProxy testname=\"{number}\">{}{}</HTTPSamplerProxy><hashTree/>",
            text("domain", "h.example"),
            properties(own)
        )
    };
    let samplers: String = samplers.iter().enumerate().map(sampler).collect();
    let plan = format!(
        "<jmeterTestPlan><hashTree><TestPlan testname=\"t\"/><hashTree>\
         <ConfigTestElement testname=\"d\">{}</ConfigTestElement><hashTree/>\
         <ThreadGroup testname=\"g\"><stringProp name=\"ThreadGroup.num_threads\">1</stringProp>\
         <elementProp name=\"ThreadGroup.main_controller\" elementType=\"LoopController\">\
         <stringProp name=\"LoopController.loops\">1</stringProp></elementProp></ThreadGroup>\
         <hashTree>{samplers}</hashTree></hashTree></hashTree></jmeterTestPlan>",
        properties(defaults)
    );
    lines_of(&shown(&checked_alone(plimsoll_import::jmeter::import(
        plan.as_bytes(),
        Path::new(""),
        &Named(&[]),
    ))))
}

#[test]
fn those_of_jmeter() {
    let defaults = "proxyHost=p.example proxyPort=3128 proxyUser=me proxyPass=a:b";
    assert_eq!(jmeter(defaults, &["", ""]), ["proxy: http://me:a%3Ab@p.example:3128"]);
    let own = "proxyHost=p.example proxyPort=3128";
    assert_eq!(jmeter("", &[own, own]), ["proxy: http://p.example:3128"]);
    let mixed = jmeter("", &["", own]);
    assert!(mixed.len() == 1 && mixed[0].contains(LEFT_OUT), "{mixed:?}");
    let portless = jmeter("proxyHost=p.example", &[""]);
    assert!(portless.len() == 1 && portless[0].contains("with a number as its port"), "{portless:?}");
}

fn postman(proxies: &[Value]) -> Vec<String> {
    let item = |proxy: &Value| {
        let mut request = json!({"method": "GET", "url": "http://h.example/"});
        if !proxy.is_null() {
            request["proxy"] = proxy.clone();
        }
        json!({"name": "r", "request": request})
    };
    let items: Vec<Value> = proxies.iter().map(item).collect();
    let schema = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json";
    let collection = json!({"info": {"name": "c", "schema": schema}, "item": items}).to_string();
    let options = plimsoll_import::postman::Options::default();
    lines_of(&shown(&checked_alone(plimsoll_import::postman::import(
        collection.as_bytes(),
        &options,
        Path::new(""),
        &Named(&[]),
    ))))
}

#[test]
fn those_of_postman() {
    let proxy = json!({"match": "http+https://*/*", "host": "p.example", "port": 3128, "tunnel": false});
    assert_eq!(postman(&[proxy.clone(), proxy.clone()]), ["proxy: http://p.example:3128"]);
    let mixed = postman(&[proxy.clone(), Value::Null]);
    assert!(mixed.len() == 1 && mixed[0].contains(LEFT_OUT), "{mixed:?}");
    let mut disabled = proxy.clone();
    disabled["disabled"] = json!(true);
    assert!(postman(&[disabled]).is_empty());
    let mut matching = proxy;
    matching["match"] = json!("http://a.example/*");
    let noted = postman(&[matching]);
    assert!(noted.len() == 1 && noted[0].contains("only a proxy for all URLs"), "{noted:?}");
}

fn gatling(calls: &str) -> Vec<String> {
    let text = format!(
        "class A extends Simulation {{\n  HttpProtocolBuilder p = http.baseUrl(\"http://h\"){calls};\n  \
         ScenarioBuilder s = scenario(\"s\").exec(http(\"a\").get(\"/\"));\n  \
         {{ setUp(s.injectOpen(atOnceUsers(1))).protocols(p); }}\n}}\n"
    );
    let options = plimsoll_import::gatling::Options { name: "A.java".to_owned() };
    let imported = checked_alone(plimsoll_import::gatling::import(
        text.as_bytes(),
        &options,
        Path::new(""),
        &Named(&[]),
    ));
    lines_of(&shown(&imported))
}

#[test]
fn those_of_gatling() {
    let with = |calls: &str| gatling(&format!(".proxy(Proxy(\"p.example\", 3128){calls})"));
    assert_eq!(with(""), ["proxy: http://p.example:3128"]);
    assert_eq!(with(".credentials(\"me\", \"a@b\")"), ["proxy: http://me:a%40b@p.example:3128"]);
    assert_eq!(with(".socks5()"), ["proxy: socks5h://p.example:3128"]);
    for calls in [".socks4()", ".https()"] {
        let noted = with(calls);
        assert!(noted.len() == 1 && noted[0].contains("only a proxy of HTTP or SOCKS5"), "{noted:?}");
    }
    let noted = gatling(".noProxyFor(\"a\")");
    assert!(
        noted.len() == 1 && noted[0].contains("all requests of a plan go through its proxy"),
        "{noted:?}"
    );
}
