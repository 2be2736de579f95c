//! Programs: the effect of each instruction, and structured programs against an interpreter of their own.

use plimsoll_core::{Nanos, Random, Shard};
use plimsoll_scenario::{
    AtEnd, Condition, FeedSpec, Feeds, LONGEST_VALUE, Next, Op, Order, Pause, Per, Program, RecordedValue,
    Recording, Rows, Scope, Session, Share, Surroundings, Template, ValueSink,
};
use proptest::prelude::*;

fn names() -> Vec<String> {
    ["a", "b", "c"].map(str::to_owned).to_vec()
}

fn template(text: &str) -> Template {
    Template::parse_in(text.as_bytes(), &Scope::new(&names())).unwrap()
}

fn condition(text: &str) -> Condition {
    Condition::parse(text, &Scope::new(&names())).unwrap()
}

fn set(variable: u16, text: &str) -> Op {
    Op::Set { variable, value: template(text) }
}

fn repeat(counter: u16, text: &str) -> Op {
    Op::Repeat { counter, times: template(text) }
}

/// The numbers 0 and 1, once, for the variable `a`.
fn feeds(at_end: AtEnd) -> Feeds {
    let spec = FeedSpec {
        name: "ids".to_owned(),
        rows: Rows::Range { start: 0, end: 2, width: 1 },
        columns: vec![Some(0)],
        order: Order::Sequential,
        at_end,
        share: Share::Split,
        per: Per::Iteration,
    };
    Feeds::open(&[spec], Shard::WHOLE, 0).unwrap()
}

/// Runs up to the end, or up to this many answers.
fn trace_of(program: &Program, session: &mut Session, feeds: &mut Feeds, most: usize) -> Vec<Next> {
    let mut random = Random::new(1, 0);
    let mut trace = Vec::new();
    while trace.len() < most {
        let mut surroundings = Surroundings {
            index: 5,
            worker: 1,
            unix_ns: 0,
            elapsed: Nanos(30),
            random: &mut random,
            feeds,
            tokens: None,
            values: None,
        };
        trace.push(program.next(session, &mut surroundings));
        if matches!(trace.last(), Some(Next::End | Next::Exhausted(_) | Next::Overgrown(_) | Next::Fail(_))) {
            break;
        }
    }
    trace
}

fn trace(ops: Vec<Op>) -> Vec<Next> {
    trace_of(&Program::new(ops), &mut Session::new(3), &mut feeds(AtEnd::Stop), 100)
}

/// The values that a program records, as `metric=value{name:tag,}`.
#[derive(Debug, Default)]
struct Recorded(Vec<String>);

impl ValueSink for Recorded {
    fn record(&mut self, value: RecordedValue<'_>) {
        let shown = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
        let tags: String = value.tags().map(|(name, tag)| format!("{name}:{},", shown(tag))).collect();
        self.0.push(format!("{}={}{{{tags}}}", value.metric(), shown(value.value())));
    }
}

#[test]
fn recorded_values_have_the_texts_of_their_instant() {
    let record = |metric, value: &str, tags: &[(&str, &str)]| {
        let tags = tags.iter().map(|(name, value)| ((*name).to_owned(), template(value))).collect();
        Op::Record(Box::new(Recording { metric, value: template(value), tags }))
    };
    let ops = vec![
        set(0, "7"),
        set(1, "north"),
        record(3, "${a}", &[("empty", ""), ("shop", "${b}-1")]),
        set(0, "8"),
        record(0, "${a}", &[]),
    ];
    assert_eq!(ops[2].reads().collect::<Vec<_>>(), [0, 1]);
    assert!(!ops[2].draws() && !ops[2].needs_clock());
    assert!(record(0, "${random_int(1, 9)}", &[]).draws() && record(0, "${timestamp_ms}", &[]).needs_clock());
    let (mut recorded, mut feeds) = (Recorded::default(), feeds(AtEnd::Stop));
    let (mut session, program) = (Session::new(3), Program::new(ops));
    let mut surroundings = Surroundings {
        index: 0,
        worker: 0,
        unix_ns: 0,
        elapsed: Nanos::ZERO,
        random: &mut Random::new(1, 0),
        feeds: &mut feeds,
        tokens: None,
        values: Some(&mut recorded),
    };
    assert_eq!(program.next(&mut session, &mut surroundings), Next::End);
    assert_eq!(recorded.0, ["3=7{empty:,shop:north-1,}", "0=8{}"]);
    // One that is longer than any value ends the iteration.
    let double = |variable: u16| set(variable, "${a}${a}");
    let begin = std::iter::once(set(0, "0123456789abcdef"));
    let ops = begin.chain((0..19).map(|_| double(0))).chain([record(0, "${a}${a}${a}", &[])]);
    assert_eq!(failure(ops.collect()), "a value to be recorded has more than 16 MiB");
}

fn failure(ops: Vec<Op>) -> String {
    match trace(ops).pop() {
        Some(Next::Fail(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_instruction_does_what_it_says() {
    use Next::{End, Fork, Pause as Wait, ScriptPause, Send};
    let pause = |ns| Op::Pause(Pause::Fixed(Nanos(ns)));
    for (ops, expected) in [
        (vec![], vec![End]),
        (vec![Op::Send(3), Op::Send(1)], vec![Send(3), Send(1), End]),
        (vec![Op::Fork(2..5), Op::Fork(1..1)], vec![Fork(2..5), End]),
        (vec![pause(7), pause(0), Op::ScriptPause(2)], vec![Wait(Nanos(7)), ScriptPause(2), End]),
        // 30 ns after the beginning.
        (vec![Op::Pace(Nanos(100)), Op::Pace(Nanos(9))], vec![Wait(Nanos(70)), Wait(Nanos(79)), End]),
        (vec![Op::Pace(Nanos(20)), Op::Pace(Nanos(9))], vec![Wait(Nanos(9)), End]),
        (vec![Op::Jump(2), Op::Send(0), Op::Send(1)], vec![Send(1), End]),
        (vec![Op::Jump(9)], vec![End]),
        (vec![Op::Unless(condition("1 == 1"), 2), Op::Send(0), Op::Send(1)], vec![Send(0), Send(1), End]),
        (vec![Op::Unless(condition("1 == 2"), 2), Op::Send(0), Op::Send(1)], vec![Send(1), End]),
        (
            vec![repeat(0, "2"), Op::CountDown { counter: 0, end: 4 }, Op::Send(0), Op::Jump(1)],
            vec![Send(0), Send(0), End],
        ),
        (vec![repeat(7, "0"), Op::CountDown { counter: 7, end: 3 }, Op::Send(0)], vec![End]),
        // A counter that no loop has begun is zero.
        (vec![Op::CountDown { counter: 1, end: 2 }, Op::Send(0)], vec![End]),
        (vec![Op::ClearCookies, Op::Draw(0), Op::Send(4)], vec![Send(4), End]),
    ] {
        assert_eq!(trace(ops.clone()), expected, "{ops:?}");
    }
}

#[test]
fn loops_nest_and_an_inner_one_begins_anew() {
    let ops = vec![
        set(1, "2"),
        repeat(0, " ${b} "),
        Op::CountDown { counter: 0, end: 9 },
        repeat(1, "3"),
        Op::CountDown { counter: 1, end: 7 },
        Op::Send(1),
        Op::Jump(4),
        Op::Send(0),
        Op::Jump(2),
    ];
    let sent: Vec<Next> = [1, 1, 1, 0, 1, 1, 1, 0].map(Next::Send).into_iter().chain([Next::End]).collect();
    assert_eq!(trace(ops), sent);
}

#[test]
fn a_variable_is_set_from_itself_and_is_known_then() {
    let program = Program::new(vec![set(0, "x"), set(0, "${a}-${sequence}-${a}"), set(2, "${a}!")]);
    let mut session = Session::new(3);
    assert_eq!(trace_of(&program, &mut session, &mut Feeds::default(), 9), [Next::End]);
    assert_eq!(session.variables, [b"x-5-x".to_vec(), vec![], b"x-5-x!".to_vec()]);
    assert_eq!(session.known, [true, false, true]);
    assert_eq!(trace_of(&program, &mut session, &mut Feeds::default(), 9), [Next::End]);
    session.reset();
    assert_eq!(session.known, [false; 3]);
    assert_eq!(trace_of(&program, &mut session, &mut Feeds::default(), 9), [Next::End]);
    assert_eq!(session.variables[0], b"x-5-x");
}

/// Symptom: a variable that was set to twice itself grew until no memory was left.
#[test]
fn variables_are_bounded() {
    let double = |text: &str| vec![set(0, "0123456789abcdef"), set(0, text), Op::Jump(1)];
    for text in ["${a}${a}", "${upper(${a})}${a}", "${json(${json(${a})})}${a}", "${base64(${a})}"] {
        let mut session = Session::new(3);
        let program = Program::new(double(text));
        let trace = trace_of(&program, &mut session, &mut feeds(AtEnd::Stop), 100);
        assert_eq!(trace, [Next::Overgrown(0)], "{text}");
        let len = session.variables[0].len();
        assert!((LONGEST_VALUE / 4..=LONGEST_VALUE).contains(&len), "{text}: {len} bytes");
        assert!(session.variables[1..].iter().all(Vec::is_empty));
    }
    // What it is set to is not rendered to see how long it is.
    let mut session = Session::new(3);
    session.variables[1] = vec![b'x'; LONGEST_VALUE];
    let many = Program::new(vec![set(0, &"${b}".repeat(10_000))]);
    let trace = trace_of(&many, &mut session, &mut feeds(AtEnd::Stop), 100);
    assert_eq!(trace, [Next::Overgrown(0)]);
    assert!(session.variables[0].is_empty());
}

#[test]
fn what_cannot_go_on_fails_with_a_reason() {
    let endless = failure(vec![set(0, "x"), Op::Jump(0)]);
    assert!(endless.starts_with("a loop that never sends: 10000 instructions"), "{endless}");
    assert!(failure(vec![Op::Pause(Pause::Fixed(Nanos::ZERO)), Op::Jump(0)]).contains("never sends"));
    assert!(failure(vec![Op::Pace(Nanos(0)), Op::Jump(0)]).contains("never sends"));
    for times in ["", "-1", "+1", "1.5", "one", "18446744073709551616", "1 2"] {
        let reason = failure(vec![repeat(0, times)]);
        assert!(reason.contains(&format!("`{times}`")), "{reason}");
    }
    let long = failure(vec![repeat(0, "a value that is far too long")]);
    assert!(long.contains("`a value that is far …`"), "{long}");
    assert_eq!(trace(vec![repeat(0, "18446744073709551615")]), [Next::End]);
}

#[test]
fn a_source_that_ends_ends_the_load_before_the_first_request_and_fails_later() {
    let drawing = |ops: &[Op], at_end| {
        let ops = [&[Op::Draw(0), Op::Draw(0)], ops].concat();
        trace_of(&Program::new(ops), &mut Session::new(3), &mut feeds(at_end), 100)
    };
    assert_eq!(drawing(&[Op::Draw(0)], AtEnd::Stop), [Next::Exhausted(0)]);
    let after_a_pause = [Op::Pause(Pause::Fixed(Nanos(1))), Op::Draw(0)];
    assert_eq!(drawing(&after_a_pause, AtEnd::Stop), [Next::Pause(Nanos(1)), Next::Exhausted(0)]);
    assert_eq!(drawing(&[Op::Draw(0)], AtEnd::Wrap), [Next::End]);
    for (before, at_end) in [(Op::Send(0), AtEnd::Stop), (Op::Fork(0..2), AtEnd::Stop)] {
        let trace = drawing(&[before, Op::Draw(0)], at_end);
        assert!(matches!(&trace[1], Next::Fail(reason) if reason.contains("ended")), "{trace:?}");
    }
    let trace = drawing(&[Op::Draw(0)], AtEnd::Fail);
    assert!(matches!(&trace[0], Next::Fail(reason) if reason.contains("ids")), "{trace:?}");
    // The next iteration has sent nothing yet.
    let (program, mut session) = (Program::new(vec![Op::Draw(0), Op::Send(0)]), Session::new(3));
    let mut feeds = feeds(AtEnd::Stop);
    for expected in [Next::Send(0), Next::Send(0), Next::Exhausted(0)] {
        session.reset();
        assert_eq!(trace_of(&program, &mut session, &mut feeds, 1), [expected]);
    }
}

#[test]
fn what_instructions_read_and_write_is_known() {
    let program = Program::new(vec![
        set(0, "${b}${uuid}${c}"),
        repeat(0, "${a}"),
        Op::Unless(condition("${c} == ${timestamp_s} and exists a"), 0),
        Op::Send(0),
    ]);
    let reads: Vec<Vec<u16>> = program.ops().iter().map(|op| op.reads().collect()).collect();
    assert_eq!(reads, [vec![1, 2], vec![0], vec![2], vec![]]);
    let writes: Vec<Option<u16>> = program.ops().iter().map(Op::writes).collect();
    assert_eq!(writes, [Some(0), None, None, None]);
    assert!(program.needs_clock());
    assert!(!Program::new(vec![set(0, "${uuid}"), Op::Send(0)]).needs_clock());
}

/// A program as people write it.
#[derive(Clone, Debug)]
enum Statement {
    Send(u32),
    Pause(u64),
    /// Sets the variable to the value of another one and this letter.
    Append(u16, u16, char),
    Clear(u16),
    /// The first branch if the variable has this many letters, else the second one.
    If(u16, usize, Vec<Statement>, Vec<Statement>),
    Repeat(u64, Vec<Statement>),
    /// As long as the variable has fewer letters than this. The body ends with a request: such a loop may be
    /// endless, but not silent.
    While(u16, usize, Vec<Statement>),
}

/// Compiles statements that stand in this many loops.
fn compile(statements: &[Statement], loops: u16, ops: &mut Vec<Op>) {
    for statement in statements {
        let begin = ops.len();
        match statement {
            Statement::Send(step) => ops.push(Op::Send(*step)),
            Statement::Pause(ns) => ops.push(Op::Pause(Pause::Fixed(Nanos(*ns)))),
            Statement::Append(to, from, letter) => {
                ops.push(set(*to, &format!("${{{}}}{letter}", names()[usize::from(*from)])));
            }
            Statement::Clear(variable) => ops.push(set(*variable, "")),
            Statement::If(variable, letters, then, otherwise) => {
                ops.push(Op::Jump(0));
                compile(then, loops, ops);
                let jump = ops.len();
                ops.push(Op::Jump(0));
                let condition = condition(&has_letters(*variable, "=~", &format!("{{{letters}}}")));
                ops[begin] = Op::Unless(condition, ops.len() as u32);
                compile(otherwise, loops, ops);
                ops[jump] = Op::Jump(ops.len() as u32);
            }
            Statement::Repeat(times, body) => {
                ops.extend([repeat(loops, &times.to_string()), Op::Jump(0)]);
                compile(body, loops + 1, ops);
                ops.push(Op::Jump(begin as u32 + 1));
                ops[begin + 1] = Op::CountDown { counter: loops, end: ops.len() as u32 };
            }
            Statement::While(variable, letters, body) => {
                ops.push(Op::Jump(0));
                compile(body, loops + 1, ops);
                ops.extend([Op::Send(99), Op::Jump(begin as u32)]);
                let condition = condition(&has_letters(*variable, "!~", &format!("{{{letters},}}")));
                ops[begin] = Op::Unless(condition, ops.len() as u32);
            }
        }
    }
}

fn has_letters(variable: u16, operator: &str, count: &str) -> String {
    format!("${{{}}} {operator} '^[a-z]{count}$'", names()[usize::from(variable)])
}

/// Carries out statements as they stand there, up to this many events.
struct Interpreter {
    variables: [String; 3],
    events: Vec<Next>,
    most: usize,
}

impl Interpreter {
    /// `None` when there are enough events.
    fn run(&mut self, statements: &[Statement]) -> Option<()> {
        for statement in statements {
            match statement {
                Statement::Send(step) => self.event(Next::Send(*step))?,
                Statement::Pause(0) => {}
                Statement::Pause(ns) => self.event(Next::Pause(Nanos(*ns)))?,
                Statement::Append(to, from, letter) => {
                    let value = format!("{}{letter}", self.variables[usize::from(*from)]);
                    self.variables[usize::from(*to)] = value;
                }
                Statement::Clear(variable) => self.variables[usize::from(*variable)].clear(),
                Statement::If(variable, letters, then, otherwise) => {
                    let holds = self.letters(*variable) == *letters;
                    self.run(if holds { then } else { otherwise })?;
                }
                Statement::Repeat(times, body) => (0..*times).try_for_each(|_| self.run(body))?,
                Statement::While(variable, letters, body) => {
                    while self.letters(*variable) < *letters {
                        self.run(body)?;
                        self.event(Next::Send(99))?;
                    }
                }
            }
        }
        Some(())
    }

    fn letters(&self, variable: u16) -> usize {
        self.variables[usize::from(variable)].len()
    }

    fn event(&mut self, event: Next) -> Option<()> {
        self.events.push(event);
        (self.events.len() < self.most).then_some(())
    }
}

fn statements() -> impl Strategy<Value = Vec<Statement>> {
    let variable = || 0..3_u16;
    let leaf = prop_oneof![
        (0..50_u32).prop_map(Statement::Send),
        (0..3_u64).prop_map(Statement::Pause),
        (variable(), variable(), prop::char::range('a', 'z'))
            .prop_map(|(a, b, c)| Statement::Append(a, b, c)),
        variable().prop_map(Statement::Clear),
    ];
    let statement = leaf.prop_recursive(4, 24, 4, move |inner| {
        let body = || prop::collection::vec(inner.clone(), 0..4);
        prop_oneof![
            (variable(), 0..4_usize, body(), body()).prop_map(|(v, n, a, b)| Statement::If(v, n, a, b)),
            (0..4_u64, body()).prop_map(|(n, a)| Statement::Repeat(n, a)),
            (variable(), 0..4_usize, body()).prop_map(|(v, n, a)| Statement::While(v, n, a)),
        ]
    });
    prop::collection::vec(statement, 0..5)
}

proptest! {
    #[test]
    fn programs_do_what_an_interpreter_of_their_text_does(statements in statements()) {
        const MOST: usize = 200;
        let mut ops = Vec::new();
        compile(&statements, 0, &mut ops);
        let mut session = Session::new(3);
        let found = trace_of(&Program::new(ops), &mut session, &mut Feeds::default(), MOST);
        let mut interpreter = Interpreter { variables: Default::default(), events: Vec::new(), most: MOST };
        if interpreter.run(&statements).is_some() {
            interpreter.events.push(Next::End);
        }
        prop_assert_eq!(found, interpreter.events);
        let values: Vec<&[u8]> = interpreter.variables.iter().map(String::as_bytes).collect();
        prop_assert_eq!(session.variables, values);
    }
}
