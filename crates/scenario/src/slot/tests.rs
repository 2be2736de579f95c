//! Every slot: its spelling, its rendering, and messages about mistakes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base64::Engine;
use proptest::prelude::*;

use super::write::ALPHANUMERIC;
use super::*;
use crate::token::{Algorithm, Signer, TokenSpec};
use crate::{Constants, Scope, Template, TemplateError};

fn parse_in(text: &str, scope: &Scope<'_>) -> Result<Slot, TemplateError> {
    match Parser::new(scope).slot(text)? {
        Parsed::Slot(slot) => Ok(slot),
        constant => panic!("{text} gives {constant:?}"),
    }
}

fn parse(text: &str) -> Result<Slot, TemplateError> {
    parse_in(text, &Scope::default())
}

fn rendered(text: &str, context: Context<'_>, seed: u64) -> String {
    let mut out = Vec::new();
    parse(text).unwrap().render(&context, &mut Random::new(seed, 0), &mut out);
    String::from_utf8(out).unwrap()
}

/// Renders a whole template.
fn filled(text: &str, scope: &Scope<'_>, variables: &[Vec<u8>]) -> Result<String, TemplateError> {
    let mut out = Vec::new();
    let context = Context { index: 7, variables, ..Context::default() };
    Template::parse_in(text.as_bytes(), scope)?.render(&context, &mut Random::new(1, 0), &mut out);
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn values_from_the_context() {
    let context = Context {
        index: 42,
        worker: 3,
        unix_ns: 1_700_000_000_123_456_789,
        variables: &[],
        ..Context::default()
    };
    for (text, expected) in [
        ("sequence", "42"),
        ("worker", "3"),
        (" timestamp_s ", "1700000000"),
        ("timestamp_ms", "1700000000123"),
        ("timestamp_us", "1700000000123456"),
        ("timestamp_ns", "1700000000123456789"),
        ("random_int(7, 7)", "7"),
        ("range(0,100)", "042"),
        ("range(1,10)", "07"),
        ("range(40, 41)", "40"),
        ("range(99,1000000000)", "0000000141"),
        ("range(18446744073709551614,18446744073709551615)", "18446744073709551614"),
    ] {
        assert_eq!(rendered(text, context, 0), expected, "{text}");
    }
}

#[test]
fn requests_are_named_as_their_traces_are() {
    let trace_key = TraceKey::random();
    let mut traces = BTreeSet::new();
    for (index, step) in [(0, 0), (1, 0), (0, 1), (1, 1), (u64::MAX, u32::MAX)] {
        let context = Context { index, step, trace_key, ..Context::default() };
        let [value, again] = [1, 2].map(|seed| rendered("traceparent", context, seed));
        let parts = |value: &str| value.split('-').map(str::to_owned).collect::<Vec<_>>();
        let [version, id, span, flags] = &parts(&value)[..] else { panic!("{value}") };
        assert_eq!((version.as_str(), id.len(), span.len(), flags.as_str()), ("00", 32, 16, "01"), "{value}");
        assert_eq!(*id, format!("{:032x}", trace_key.id_of(index, step)));
        assert!((id.as_str(), span.as_str()) != (&"0".repeat(32), &"0".repeat(16)));
        // Sent again it is the same trace, and another span of it.
        assert_eq!(parts(&again)[1], *id);
        assert_ne!(parts(&again)[2], *span);
        assert!(traces.insert(id.clone()), "{value}");
    }
    let sampled = |share: &str| {
        let text = format!("traceparent({share})");
        let of =
            |index| rendered(&text, Context { index, trace_key, ..Context::default() }, 1).ends_with("-01");
        (0..10_000).filter(|index| of(*index)).count()
    };
    assert_eq!([sampled("0%"), sampled("100 %")], [0, 10_000]);
    let tenth = sampled("10%");
    assert!((850..1_150).contains(&tenth), "{tenth}");
}

#[test]
fn uuids_have_version_and_variant_and_do_not_repeat() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..1000 {
        let uuid = rendered("uuid", Context::default(), seed);
        let bytes = uuid.as_bytes();
        assert_eq!(bytes.len(), 36);
        assert_eq!(bytes[14], b'4', "{uuid}");
        assert!(b"89ab".contains(&bytes[19]), "{uuid}");
        for (position, byte) in bytes.iter().enumerate() {
            let dash = matches!(position, 8 | 13 | 18 | 23);
            assert!(if dash { *byte == b'-' } else { b"0123456789abcdef".contains(byte) }, "{uuid}");
        }
        assert!(seen.insert(uuid));
    }
}

#[test]
fn random_integers_reach_both_ends_and_the_extremes_of_the_type() {
    let mut random = Random::new(1, 0);
    let mut seen = std::collections::BTreeSet::new();
    let slot = parse("random_int(-2,2)").unwrap();
    for _ in 0..200 {
        let mut out = Vec::new();
        slot.render(&Context::default(), &mut random, &mut out);
        seen.insert(String::from_utf8(out).unwrap().parse::<i64>().unwrap());
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [-2, -1, 0, 1, 2]);
    let whole = rendered(&format!("random_int({},{})", i64::MIN, i64::MAX), Context::default(), 3);
    whole.parse::<i64>().unwrap();
    let lowest = rendered(&format!("random_int({0},{0})", i64::MIN), Context::default(), 3);
    assert_eq!(lowest, i64::MIN.to_string());
}

#[test]
fn random_strings_use_the_whole_alphabet_evenly() {
    let text = rendered("random_string(62000)", Context::default(), 5);
    let mut counts = [0_u32; 62];
    for byte in text.bytes() {
        counts[ALPHANUMERIC.iter().position(|&c| c == byte).unwrap()] += 1;
    }
    // 1000 expected of each with a standard deviation of 31; six of them are never left by a fair draw.
    assert!(counts.iter().all(|count| (814..=1186).contains(count)), "{counts:?}");
}

#[test]
fn mistakes_have_advice() {
    for (text, message, hint) in [
        (
            "sequenc",
            "unknown template slot `${sequenc}`",
            "did you mean `sequence`? (write $${ for a literal ${)",
        ),
        (
            "random_int(1)",
            "`${random_int(1)}` does not have the arguments of `random_int`",
            "write `${random_int(low,high)}`",
        ),
        (
            "traceparent(101%)",
            "`101%` in `traceparent` is not a share",
            "write the share of requests whose traces are to be recorded, from 0% to 100%",
        ),
        ("uuid(4)", "`${uuid(4)}` does not have the arguments of `uuid`", "write `${uuid}`"),
        (
            "range(5,5)",
            "`range(5,5)` has no value in its range",
            "the end is excluded: it has to be larger than the start",
        ),
        ("random_int(9,1)", "`random_int(9,1)` has no value in its range", "write `random_int(1,9)`"),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!((error.message(), error.hint()), (message, Some(hint)), "{text}");
    }
    let nothing_near = parse("HOME").unwrap_err();
    assert!(nothing_near.hint().unwrap().starts_with("known: sequence, worker, uuid"));
    for text in [
        "random_hex(0)",
        "random_hex(-1)",
        "random_string(2000000)",
        "random_int(a,b)",
        "range(-1,5)",
        "range(1,18446744073709551616)",
        "range(2)",
        "uuid(",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn variables_are_known_and_suggested() {
    let names = ["resource".to_owned(), "uuid".to_owned(), "user id".to_owned()];
    let scope = Scope::new(&names);
    let variable = |index| Slot::Variable { index, writing: Writing::AsIs };
    assert_eq!(parse_in(" resource ", &scope), Ok(variable(0)));
    assert_eq!(parse_in("user id", &scope), Ok(variable(2)));
    assert_eq!(parse_in("uuid", &scope), Ok(Slot::Uuid));
    let error = parse_in("resorce", &scope).unwrap_err();
    assert_eq!(error.message(), "unknown template slot `${resorce}`");
    assert_eq!(error.hint(), Some("did you mean `resource`? (write $${ for a literal ${)"));
    let hint = parse_in("HOME", &scope).unwrap_err().hint().map(str::to_owned);
    assert!(hint.unwrap().starts_with("known: resource, uuid, user id, sequence, "));
    assert!(parse_in("resource(1)", &scope).is_err());
    let many: Vec<String> = (0..=65_536).map(|number| format!("v{number}")).collect();
    assert!(parse_in("v65535", &Scope::new(&many)).is_ok());
    assert!(parse_in("v65536", &Scope::new(&many)).is_err());
}

#[test]
fn variables_are_written_as_their_place_needs_it() {
    let variables = [b"/a b#c%20\r\n\xff\0{~".to_vec(), b"plain?x=1".to_vec(), Vec::new()];
    let context = Context { variables: &variables, ..Context::default() };
    for (index, writing, expected) in [
        (0, Writing::AsIs, &variables[0][..]),
        (0, Writing::Encoded, b"/a%20b%23c%20%0D%0A%FF%00{~"),
        (0, Writing::Path, b"/a%20b%23c%20%0D%0A%FF%00{~"),
        (1, Writing::Encoded, b"plain?x=1"),
        (1, Writing::Path, b"/plain?x=1"),
        (2, Writing::AsIs, b""),
        (2, Writing::Path, b"/"),
        (3, Writing::Encoded, b""),
    ] {
        let mut out = Vec::new();
        Slot::Variable { index, writing }.render(&context, &mut Random::new(0, 0), &mut out);
        assert_eq!(out, expected, "{index} {writing:?}");
    }
}

#[test]
fn a_range_repeats_itself_without_its_end() {
    let at = |index| rendered("range(8,11)", Context { index, ..Context::default() }, 0);
    assert_eq!([0, 1, 2, 3, 4].map(at), ["08", "09", "10", "08", "09"]);
}

#[test]
fn every_form_that_help_lists_is_known() {
    let (constants, names) = (constants(), ["variable".to_owned()]);
    let spec = TokenSpec {
        name: "api".to_owned(),
        algorithm: Algorithm::Hs256,
        key_id: None,
        claims: "{}".to_owned(),
        stamps: Vec::new(),
        lifetime_s: 300,
        refresh_before_ns: 0,
    };
    let tokens = [Arc::new(Signer::new(spec, b"secret", &Scope::default()).unwrap())];
    let scope = Scope { constants: Some(&constants), tokens: &tokens, ..Scope::new(&names) };
    for form in Slot::FORMS {
        let written = form
            .replace("low,high", "1,2")
            .replace("digits", "3")
            .replace("start,end", "1,2")
            .replace("(n)", "(3)")
            .replace("count", "10")
            .replace("exponent", "1.1")
            .replace("length", "3")
            .replace("text", "uuid")
            .replace("token(name)", "token(api)")
            .replace("NAME", "TOKEN");
        Parser::new(&scope).slot(&written).unwrap();
    }
}

fn constants() -> Constants {
    let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    Constants::new(
        map(&[("TOKEN", "from env"), ("LINES", "a\r\nb")]),
        map(&[("TOKEN", "t0p secret"), ("api key", "k")]),
    )
}

#[test]
fn functions_of_texts_variables_and_each_other() {
    let names = ["user".to_owned(), "password".to_owned(), "odd".to_owned()];
    let variables = [b"Aladdin".to_vec(), b"open sesame".to_vec(), b"a\"b\\c\td/\xc3\xa4".to_vec()];
    let scope = Scope::new(&names);
    for (text, expected) in [
        // RFC 7617 section 2, RFC 4648 section 10, FIPS 180-4's "abc", and the check value of CRC-32.
        ("Basic ${base64(${user}:${password})}", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
        ("${base64(\"\")}|${base64('f')}|${base64('fo')}|${base64('foo')}", "|Zg==|Zm8=|Zm9v"),
        ("${base64url('fo')}|${base64url(\"foob\")}|${base64url('~~~???')}", "Zm8|Zm9vYg|fn5-Pz8_"),
        ("${base64('~~~???')}", "fn5+Pz8/"),
        ("${hash(sha256,\"abc\")}", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        ("${hash(crc32, '123456789')}", "cbf43926"),
        ("${hash(crc32, ${user})}", "41dbaf76"),
        ("${urlencode(password)}&${urlencode('a+b/~')}", "open%20sesame&a%2Bb%2F~"),
        ("${upper(user)} ${lower(${user}-${sequence})}", "ALADDIN aladdin-7"),
        ("{\"q\":\"${json(odd)}\"}", "{\"q\":\"a\\\"b\\\\c\\td/ä\"}"),
        ("${base64(upper(user))}", "QUxBRERJTg=="),
        ("${upper(${lower(${user})})}", "ALADDIN"),
        ("${upper('a}b')}${upper(\"it's, (fine)\")}", "A}BIT'S, (FINE)"),
        ("${upper(${user}, x)}", "ALADDIN, X"),
        ("${pick(\"a,b\")}${pick(x)}", "a,bx"),
        ("${fill(8, 'abc')}|${fill(2, 'abc')}|${fill(0, 'a')}|${fill(3, \"\")}", "abcabcab|ab||xxx"),
        ("${fill(9, ${user}-)}|${fill(3-3,user)}", "Aladdin-A|Ala"),
    ] {
        assert_eq!(filled(text, &scope, &variables).unwrap(), expected, "{text}");
    }
}

#[test]
fn texts_are_filled_to_lengths_of_their_own() {
    let names = ["key".to_owned()];
    let scope = Scope::new(&names);
    let length = |text: &str, key: usize| {
        let variables = [format!("key-{key}").into_bytes()];
        let value = filled(text, &scope, &variables).unwrap();
        assert_eq!(value, filled(text, &scope, &variables).unwrap());
        value.len()
    };
    let mean = |text: &str| (0..2_000).map(|key| length(text, key)).sum::<usize>() as f64 / 2_000.0;
    assert!((0..2_000).all(|key| (100..=300).contains(&length("${fill(100-300,key)}", key))));
    // Within five standard errors.
    assert!((mean("${fill(100-300,key)}") - 200.0).abs() < 6.5);
    assert!((mean("${fill(exp:500,key)}") - 500.5).abs() < 56.0);
}

#[test]
fn objects_are_merged() {
    let names = ["item".to_owned(), "price".to_owned()];
    let scope = Scope::new(&names);
    let merged = |item: &str, text: &str| {
        filled(&format!("<${{merge(item,{text})}}>"), &scope, &[item.into(), b"3.5".to_vec()]).unwrap()
    };
    let item = r#"{"id": "a", "price":1 , "tags" : ["x", {"price": 2}]}"#;
    for (item, text, expected) in [
        (item, r#"'{"price": ${price}}'"#, r#"{"id":"a","price":3.5,"tags":["x", {"price": 2}]}"#),
        (item, r#"'{"new":{}, "id":null}'"#, r#"{"id":null,"price":1,"tags":["x", {"price": 2}],"new":{}}"#),
        (item, "'{}'", r#"{"id":"a","price":1,"tags":["x", {"price": 2}]}"#),
        ("{}", r#"'{"a":1,"b":2}'"#, r#"{"a":1,"b":2}"#),
        ("{}", "'{}'", "{}"),
        // Values that are not objects change nothing.
        ("", r#"'{"a":1}'"#, r#"{"a":1}"#),
        ("[1]", r#"'{"a":1}'"#, r#"{"a":1}"#),
        (r#"{"a":1"#, r#"'{"b":1}'"#, r#"{"b":1}"#),
        (r#"{"a":1}"#, "'[2]'", "[2]"),
        (r#"{"a\"}":1}"#, r#"'{"b":"}"}'"#, r#"{"a\"}":1,"b":"}"}"#),
    ] {
        assert_eq!(merged(item, text), format!("<{expected}>"), "{item} {text}");
    }
    let template = Template::parse_in(b"${merge(item,'{}')}", &scope).unwrap();
    assert!(template.uses_variables() && !template.is_static());
    let error = filled("${merge(items,'{}')}", &scope, &[]).unwrap_err();
    assert!(error.to_string().contains("`items` in `merge` is not a variable"), "{error}");
}

#[test]
fn a_challenge_is_answered_anew_each_time() {
    let names = ["challenge".to_owned(), "user".to_owned()];
    let scope = Scope::new(&names);
    let values = [b"Digest realm=\"r\", nonce=\"n\", qop=\"auth\"".to_vec(), b"me".to_vec()];
    let template = Template::parse_in(b"${digest(challenge, '${user}:p, GET /')}", &scope).unwrap();
    assert!(template.uses_variables() && !template.is_static());
    let context = crate::Context { variables: &values, ..crate::Context::default() };
    let mut random = plimsoll_core::Random::new(1, 1);
    let mut render = || {
        let mut out = b"x: ".to_vec();
        template.render(&context, &mut random, &mut out);
        String::from_utf8(out).unwrap()
    };
    let (one, other) = (render(), render());
    let begin = "x: Digest username=\"me\", realm=\"r\", uri=\"/\", nonce=\"n\", nc=00000001, cnonce=\"";
    assert!(one.starts_with(begin) && other.starts_with(begin), "{one}");
    assert_ne!(one, other, "the client's nonce is the same");
    let error = filled("${digest(chalenge, 'a:b, GET /')}", &scope, &[]).unwrap_err();
    assert!(error.to_string().contains("`chalenge` in `digest` is not a variable"), "{error}");
}

#[test]
fn functions_of_what_never_changes_are_done_once() {
    let template = Template::parse(b"x-${base64('user:pw')}-${upper(lower('A'))}").unwrap();
    assert!(template.is_static());
    assert_eq!(template.literals(), b"x-dXNlcjpwdw==-A");
}

#[test]
fn mistakes_in_functions_have_advice() {
    let names = ["user".to_owned()];
    let scope = Scope::new(&names);
    for (text, message, hint) in [
        (
            "${upper(usr)}",
            "unknown template slot `${usr}`",
            "did you mean `user`? (write $${ for a literal ${); a text stands in quotes, as in `upper(\"usr\")`",
        ),
        ("${upper()}", "`upper()` has no text", "write `${upper(${variable})}` or `${upper(\"text\")}`"),
        (
            "${uper(user)}",
            "unknown template slot `${uper(user)}`",
            "did you mean `upper`? (write $${ for a literal ${)",
        ),
        ("${upper}", "`${upper}` does not have the arguments of `upper`", "write `${upper(text)}`"),
        (
            "${hash(md5,user)}",
            "`hash` does not know `md5`",
            "it knows sha256 and crc32, as in `${hash(sha256,text)}`",
        ),
        ("${guid}", "unknown template slot `${guid}`", "did you mean `uuid`? (write $${ for a literal ${)"),
        ("${env(HOME)}", "`env` cannot be used here", ""),
        (
            "${pick(a,${user})}",
            "`pick` takes texts without slots, not `${user}`",
            "set a variable to one of them in a step of its own",
        ),
        ("${pick(a,,b)}", "a text of `pick` is missing", "an empty one is written \"\""),
        (
            "${random_float(0.125,1,2)}",
            "`random_float(0.125,1,2)` has ends with more than 2 digits",
            "write `random_float(0.125,1,3)`",
        ),
        (
            "${fill(5-2,user)}",
            "`5-2` in `fill` is not a length",
            "write a number of bytes up to 8388608, `100-2000` or `exp:500`",
        ),
        (
            "${zipf(10,0.9999)}",
            "`0.9999` in `zipf` is not an exponent from 0.001 to 20.000",
            "with 1 the most frequent number is twice as frequent as the next",
        ),
        (
            "${random_float(2,1)}",
            "`random_float(2,1)` has no value in its range",
            "write `random_float(1,2)`",
        ),
    ] {
        let error = filled(text, &scope, &[]).unwrap_err();
        assert_eq!((error.message(), error.hint().unwrap_or_default()), (message, hint), "{text}");
    }
    for text in [
        "${random_float(a,b)}",
        "${random_float(1,2,0)}",
        "${random_float(1,2,16)}",
        "${random_float(1,9999999999,15)}",
        "${random_float(0.1234567890123456,1)}",
        "${random_float(--1,2)}",
        "${random_float(.5,2)}",
        "${upper(${user)}",
        "${upper(${user}}",
        "${pick()}",
        "${hash(sha256)}",
    ] {
        assert!(filled(text, &scope, &[]).is_err(), "{text}");
    }
    let deep = format!("{}'a'{}", "${upper(".repeat(9), ")}".repeat(9));
    assert_eq!(filled(&deep, &scope, &[]).unwrap_err().message(), "more than 8 functions within each other");
    let endless = "${upper(".repeat(100_000);
    assert!(filled(&endless, &scope, &[]).is_err());
}

#[test]
fn random_fractions_have_their_digits_and_reach_both_ends() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..200 {
        seen.insert(rendered("random_float(-0.1,0.1,1)", Context::default(), seed));
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["-0.1", "0.0", "0.1"]);
    assert_eq!(rendered("random_float(5,5)", Context::default(), 0), "5.00");
    assert_eq!(rendered("random_float(1.125,1.125)", Context::default(), 0), "1.125");
    assert_eq!(rendered("random_float(-12.5, -12.5, 4)", Context::default(), 0), "-12.5000");
}

#[test]
fn picks_are_even_and_all_of_the_texts() {
    let slot = parse("pick(red, \"light green\", 'blue')").unwrap();
    let mut counts = BTreeMap::new();
    let mut random = Random::new(3, 0);
    for _ in 0..3000 {
        let mut out = Vec::new();
        slot.render(&Context::default(), &mut random, &mut out);
        *counts.entry(String::from_utf8(out).unwrap()).or_insert(0_u32) += 1;
    }
    assert_eq!(counts.keys().collect::<Vec<_>>(), ["blue", "light green", "red"]);
    // 1000 expected of each with a standard deviation of 26.
    assert!(counts.values().all(|count| (840..=1160).contains(count)), "{counts:?}");
    assert_eq!((slot.fixed_len(), slot.longest()), (None, 11));
}

#[test]
fn constants_are_inserted_once_and_secrets_stay_secret() {
    let constants = constants();
    let scope = Scope { constants: Some(&constants), ..Scope::default() };
    let parse = |text: &str| Template::parse_in(text.as_bytes(), &scope).unwrap();
    let known = parse("${env(TOKEN)}");
    assert!(known.is_static() && !known.has_secret());
    assert_eq!(known.literals(), b"from env");
    for text in
        ["Bearer ${secret(TOKEN)}", "${base64(u:${secret(TOKEN)})}", "${upper(${uuid}${secret(TOKEN)})}"]
    {
        let template = parse(text);
        assert!(template.has_secret(), "{text}");
        assert_eq!(format!("{template:?}"), "Template(<secret>)");
        let mut pushed = Template::literal(b"a");
        pushed.push(&template);
        assert!(pushed.has_secret());
    }
    assert_eq!(filled("${secret(\"api key\")}", &scope, &[]).unwrap(), "k");
    for shown in [format!("{constants:?}"), format!("{scope:?}")] {
        assert!(!shown.contains("t0p") && !shown.contains("from env"), "{shown}");
    }
    let error = Template::parse_in(b"${secret(TOKN)}", &scope).unwrap_err();
    assert_eq!((error.message(), error.hint()), ("there is no secret `TOKN`", Some("did you mean `TOKEN`?")));
    let error = Template::parse_in(b"${env(NONE)}", &scope).unwrap_err();
    assert_eq!(error.message(), "the environment variable `NONE` is not set");
}

#[test]
fn lines_of_the_environment_do_not_get_into_a_header() {
    let constants = constants();
    let scope = Scope { constants: Some(&constants), ..Scope::default() };
    let unfit = |text: &str| Template::parse_in(text.as_bytes(), &scope).unwrap().unfit_byte();
    for text in
        ["${env(LINES)}", "${upper(${env(LINES)}${uuid})}", "${json(${uuid}${lower(${env(LINES)}${uuid})})}"]
    {
        assert_eq!(unfit(text), Some(b'\r'), "{text}");
    }
    for text in [
        "${base64(${env(LINES)}${uuid})}",
        "${urlencode(${uuid}${env(LINES)})}",
        "${hash(crc32,${env(LINES)})}",
    ] {
        assert_eq!(unfit(text), None, "{text}");
    }
}

#[test]
fn what_comes_into_a_path_fits_there() {
    let constants = constants();
    let names = ["v".to_owned()];
    let scope = Scope { constants: Some(&constants), ..Scope::new(&names) };
    let variables = [b"a b".to_vec()];
    for (text, expected) in [
        ("/${upper(v)}", "/A%20B"),
        ("${upper(v)}", "/A%20B"),
        ("/${urlencode(v)}", "/a%20b"),
        ("/${env(TOKEN)}?${secret(TOKEN)}", "/from%20env?t0p%20secret"),
        ("${env(TOKEN)}", "/from%20env"),
        ("/x${env(LINES)}", "/xa%0D%0Ab"),
        ("${pick('a b')}", "/a%20b"),
        ("/${pick('#')}", "/%23"),
        ("/${base64('~~~???')}", "/fn5+Pz8/"),
    ] {
        let template = Template::parse_target(text.as_bytes(), &scope).unwrap();
        assert!(template.starts_with_slash(), "{text}");
        let mut out = Vec::new();
        let context = Context { variables: &variables, ..Context::default() };
        template.render(&context, &mut Random::new(0, 0), &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), expected, "{text}");
    }
}

proptest! {
    #[test]
    fn decimals_are_those_of_the_standard_library(number in any::<u64>(), shift in 0..64_u32) {
        let number = number >> shift;
        let mut out = Vec::new();
        write_decimal(number, &mut out);
        prop_assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
    }

    #[test]
    fn lengths_are_as_promised_and_integers_in_range(
        a in any::<i64>(), b in any::<i64>(), shift in 0..64_u32, seed in any::<u64>(), n in 1..100_u32,
    ) {
        let (low, high) = ((a >> shift).min(b >> shift), (a >> shift).max(b >> shift));
        let (start, end) = (a.unsigned_abs() >> shift, (b.unsigned_abs() >> shift).saturating_add(1));
        let range = parse(&format!("range({},{end})", start.min(end - 1))).unwrap();
        let fraction = Slot::RandomFloat { low, high, digits: (n % 15 + 1) as u8 };
        let slots = [
            Slot::RandomInt { low, high },
            Slot::RandomHex(n),
            Slot::RandomString(n),
            Slot::Uuid,
            range,
            fraction,
        ];
        let context = Context { index: seed.rotate_left(9), ..Context::default() };
        for slot in slots {
            let mut out = Vec::new();
            let mut random = Random::new(seed, 0);
            slot.render(&context, &mut random, &mut out);
            let mut skipped = Random::new(seed, 0);
            (0..slot.draws()).for_each(|_| _ = skipped.bits());
            prop_assert_eq!(random.bits(), skipped.bits(), "{:?} takes as many as it says", slot);
            prop_assert!(out.len() <= slot.longest());
            if let Some(len) = slot.fixed_len() {
                prop_assert_eq!(out.len(), len);
            }
            if let Slot::Range { .. } = slot {
                let number: u64 = String::from_utf8(out).unwrap().parse().unwrap();
                prop_assert!((start.min(end - 1)..end).contains(&number));
            } else if let Slot::RandomFloat { digits, .. } = slot {
                let text = String::from_utf8(out).unwrap();
                let (_, fraction) = text.split_once('.').unwrap();
                prop_assert_eq!(fraction.len(), usize::from(digits));
                let number: i128 = text.replace('.', "").parse().unwrap();
                prop_assert!((i128::from(low)..=i128::from(high)).contains(&number), "{}", text);
            } else if let Slot::RandomInt { .. } = slot {
                let number: i64 = String::from_utf8(out).unwrap().parse().unwrap();
                prop_assert!((low..=high).contains(&number));
            }
        }
    }

    #[test]
    fn functions_do_what_other_programs_do(value in proptest::collection::vec(any::<u8>(), 0..50)) {
        let names = ["v".to_owned()];
        let scope = Scope::new(&names);
        let variables = [value.clone()];
        let call = |text: &str| {
            let template = Template::parse_in(text.as_bytes(), &scope).unwrap();
            let mut out = b"before".to_vec();
            let context = Context { variables: &variables, ..Context::default() };
            template.render(&context, &mut Random::new(0, 0), &mut out);
            assert!(out.starts_with(b"before"));
            out.split_off(6)
        };
        prop_assert_eq!(call("${base64(v)}"), base64::prelude::BASE64_STANDARD.encode(&value).into_bytes());
        prop_assert_eq!(
            call("${base64url(v)}"),
            base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(&value).into_bytes()
        );
        let text = String::from_utf8_lossy(&value).into_owned();
        let variables = [text.clone().into_bytes()];
        let context = Context { variables: &variables, ..Context::default() };
        let mut json = b"\"".to_vec();
        let template = Template::parse_in(b"${json(v)}", &scope).unwrap();
        template.render(&context, &mut Random::new(0, 0), &mut json);
        json.push(b'"');
        prop_assert_eq!(serde_json::from_slice::<String>(&json).unwrap(), text);
        let encoded = String::from_utf8(call("${urlencode(v)}")).unwrap();
        prop_assert!(encoded.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte)));
        let mut decoded = Vec::new();
        let mut rest = encoded.as_bytes();
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            if byte == b'%' {
                decoded.push(u8::from_str_radix(std::str::from_utf8(&after[..2]).unwrap(), 16).unwrap());
                rest = &after[2..];
            } else {
                decoded.push(byte);
            }
        }
        prop_assert_eq!(decoded, value);
    }

    #[test]
    fn any_text_between_braces_is_understood_or_refused(text in "[a-c${}(),\"' 19-]{0,40}") {
        let names = ["a".to_owned()];
        let scope = Scope::new(&names);
        for text in [format!("${{{text}}}"), format!("${{upper({text})}}"), format!("${{pick({text})}}")] {
            if let Ok(template) = Template::parse_in(text.as_bytes(), &scope) {
                let mut out = Vec::new();
                template.render(&Context::default(), &mut Random::new(0, 0), &mut out);
                prop_assert!(out.len() <= template.longest());
            }
        }
    }
}
