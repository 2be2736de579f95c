//! Test plans of JMeter.

use std::path::{Path, PathBuf};

use plimsoll_import::jmeter::import;
use plimsoll_plan::Disk;

use crate::import::{Named, checked, checked_alone, shown};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jmeter")
}

#[test]
fn examples() {
    for name in [
        "arrivals",
        "assertions",
        "basic",
        "controllers",
        "csv",
        "extractors",
        "others",
        "scheduler",
        "setup_teardown",
        "several_groups",
        "throughput",
        "timers",
        "variables",
    ] {
        let text = std::fs::read(folder().join(format!("{name}.jmx"))).unwrap();
        insta::assert_snapshot!(name, shown(&checked(import(&text, &folder(), &Disk), &folder(), &Disk)));
    }
}

fn imported(text: &str) -> String {
    shown(&checked_alone(import(text.as_bytes(), Path::new(""), &Named(&[]))))
}

/// A test plan with these elements in its only group; `group` has properties of the group.
fn test_plan(group: &str, below: &str) -> String {
    format!(
        "<jmeterTestPlan><hashTree><TestPlan testname='p'/><hashTree><ThreadGroup \
         testname='g'>{group}</ThreadGroup>\
         <hashTree>{below}</hashTree></hashTree></hashTree></jmeterTestPlan>"
    )
}

fn properties(of: &[(&str, &str)]) -> String {
    of.iter().map(|(name, value)| format!("<stringProp name=\"{name}\">{value}</stringProp>")).collect()
}

const REQUEST: &str = "<HTTPSamplerProxy testname='r'><stringProp name='HTTPSampler.domain'>h</stringProp>\
                       </HTTPSamplerProxy>";

#[test]
fn threads_are_users_or_arrivals() {
    for (threads, ramp, loops, duration, load) in [
        ("5", "0", "2", "", "iterations: 10\n  users: 5"),
        ("5", "10", "1", "", "iterations: 5\n  rate: 1/2s"),
        ("5", "10", "2", "", "all users begin at once"),
        ("5", "0", "-1", "60", "duration: 60s\n  users: 5"),
        ("5", "10", "-1", "60", "user_stages: 1ms@0,9999ms@5,50s@5"),
        ("10", "60", "-1", "30", "user_stages: 1ms@0,29999ms@5"),
        ("5", "0", "-1", "", "nothing ends it there: give --duration"),
        ("${__P(n,7)}", "0", "1", "", "the default of the property is taken: 7"),
        ("0", "0", "1", "", "error: there is no thread group with a request of HTTP"),
        ("many", "0", "1", "", "it is not a number of threads"),
    ] {
        let controller = format!(
            "<elementProp name='ThreadGroup.main_controller'><intProp \
             name='LoopController.loops'>{loops}</intProp>\
             </elementProp>"
        );
        let scheduler = if duration.is_empty() { "false" } else { "true" };
        let group = controller
            + &properties(&[
                ("ThreadGroup.num_threads", threads),
                ("ThreadGroup.ramp_time", ramp),
                ("ThreadGroup.scheduler", scheduler),
                ("ThreadGroup.duration", duration),
            ]);
        let text = imported(&test_plan(&group, REQUEST));
        assert!(text.contains(load), "{threads} {ramp} {loops} {duration}: {text}");
    }
}

#[test]
fn files_are_parts_of_a_form() {
    let file = properties(&[
        ("File.path", "report.pdf"),
        ("File.paramname", "report"),
        ("File.mimetype", "application/pdf"),
    ]);
    let argument = properties(&[("Argument.name", "title"), ("Argument.value", "${__UUID}")]);
    let request = format!(
        "<HTTPSamplerProxy testname='r'><stringProp name='HTTPSampler.domain'>h</stringProp>\
         <stringProp name='HTTPSampler.method'>POST</stringProp>\
         <elementProp name='HTTPsampler.Files'><collectionProp name='HTTPFileArgs.files'>\
         <elementProp elementType='HTTPFileArg'>{file}</elementProp></collectionProp></elementProp>\
         <elementProp name='HTTPsampler.Arguments'><collectionProp name='Arguments.arguments'>\
         <elementProp elementType='HTTPArgument'>{argument}</elementProp></collectionProp></elementProp>\
         </HTTPSamplerProxy>"
    );
    let plan = test_plan(&properties(&[("ThreadGroup.num_threads", "1")]), &request);
    let text = shown(&checked(
        import(plan.as_bytes(), Path::new(""), &Named(&[("report.pdf", b"%PDF")])),
        Path::new(""),
        &Named(&[("report.pdf", b"%PDF")]),
    ));
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let begin = lines.iter().position(|line| *line == "multipart:").expect("a form");
    let parts = [
        "- name: title",
        "value: ${uuid}",
        "- name: report",
        "file: report.pdf",
        "content_type: application/pdf",
    ];
    assert_eq!(lines[begin + 1..begin + 6], parts, "{text}");
    let missing = imported(&plan);
    assert!(
        missing.contains("filename: report.pdf") && missing.contains("`report.pdf`: the file is not there")
    );
}

/// Elements in a group are for its samplers, and those below a sampler for that one alone.
#[test]
fn elements_hold_where_they_are() {
    let timer = |delay: &str| {
        format!("<ConstantTimer>{}</ConstantTimer>", properties(&[("ConstantTimer.delay", delay)]))
    };
    let header = |value: &str| {
        format!(
            "<HeaderManager><collectionProp \
             name='HeaderManager.headers'><elementProp>{}</elementProp></collectionProp>\
             </HeaderManager>",
            properties(&[("Header.name", "X-A"), ("Header.value", value)])
        )
    };
    let below = format!(
        "{REQUEST}<hashTree>{}{}</hashTree>{REQUEST}<hashTree/>{}{}",
        timer("5"),
        header("inner"),
        timer("100"),
        header("outer")
    );
    let group = properties(&[("ThreadGroup.num_threads", "1")]);
    let text = imported(&test_plan(&group, &below));
    assert_eq!(text.matches("think: 100ms").count(), 2, "{text}");
    assert_eq!((text.matches("think: 5ms").count(), text.matches("X-A: outer").count()), (1, 1), "{text}");
    assert_eq!(text.matches("X-A: inner").count(), 1, "{text}");
    assert!(text.contains("name: r (2)"), "{text}");
}

#[test]
fn mistakes() {
    let group = properties(&[("ThreadGroup.num_threads", "1")]);
    let mut text = String::new();
    for document in [
        String::new(),
        "<a/>".to_owned(),
        "<jmeterTestPlan/>".to_owned(),
        "<jmeterTestPlan>\n<hashTree>".to_owned(),
        test_plan(&group, "<HTTPSamplerProxy testname='r'/>"),
        test_plan(&group, &REQUEST.replace(">h<", ">${nowhere}<")),
        test_plan(&group, &REQUEST.replace(">h<", ">a b<")),
        test_plan(&group, &REQUEST.replace("HTTPSampler.domain", "HTTPSampler.method")),
        test_plan(&group, "<CSVDataSet/>"),
        test_plan(
            &group,
            &format!("<CSVDataSet><stringProp name='filename'>no.csv</stringProp></CSVDataSet>{REQUEST}"),
        ),
        test_plan(&group, "<ConstantTimer/>"),
    ] {
        text.push_str(&format!("# {}\n{}\n", document.replace('\n', " "), imported(&document)));
    }
    insta::assert_snapshot!(text);
}

#[test]
fn trees_without_an_end_are_refused() {
    let deep = "<hashTree>".repeat(100_000);
    assert!(imported(&format!("<jmeterTestPlan>{deep}")).contains("nested too deeply"));
    let attributes = (0..20_000).map(|n| format!(" a{n}='b'")).collect::<String>();
    assert!(imported(&format!("<jmeterTestPlan{attributes}/>")).starts_with("error: "));
}
