//! The functions of the library that take patterns, with a matcher that can be stopped.

use std::cell::Cell;
use std::rc::Rc;

use mlua::{Function, Lua, LuaString, MultiValue, Table, Value};

use crate::guard::Guard;
use crate::output::{kind, text_of};
use crate::pattern::{Capture, Matcher};

/// Bytes with a meaning in patterns.
const SPECIAL: &[u8] = b"^$*+?.([%-";

/// Replaces `find`, `match`, `gmatch` and `gsub`.
pub(crate) fn install(lua: &Lua, guard: &Rc<Guard>) -> mlua::Result<()> {
    let string: Table = lua.globals().get("string")?;
    let of = Rc::clone(guard);
    let find = move |lua: &Lua, (s, p, from, plain): (LuaString, LuaString, Option<f64>, Option<bool>)| {
        search(lua, &of, (&s.as_bytes(), &p.as_bytes()), from, plain == Some(true), true)
    };
    string.set("find", lua.create_function(find)?)?;
    let of = Rc::clone(guard);
    let matching = move |lua: &Lua, (s, p, from): (LuaString, LuaString, Option<f64>)| {
        search(lua, &of, (&s.as_bytes(), &p.as_bytes()), from, false, false)
    };
    string.set("match", lua.create_function(matching)?)?;
    let of = Rc::clone(guard);
    let gmatch = move |lua: &Lua, (s, p): (LuaString, LuaString)| {
        let (of, at) = (Rc::clone(&of), Cell::new(0));
        lua.create_function(move |lua, _: MultiValue| {
            let (source, pattern) = (s.as_bytes(), p.as_bytes());
            let spend = |steps| of.spend(lua, steps);
            let mut matcher = Matcher::new(&source, &pattern, &spend);
            let Some((start, end)) = matcher.find(at.get(), false)? else { return Ok(MultiValue::new()) };
            // An empty match is found once.
            at.set(if end == start { end + 1 } else { end });
            captures(lua, &source, &matcher.captures, Some((start, end)))
        })
    };
    let gmatch = lua.create_function(gmatch)?;
    string.set("gmatch", &gmatch)?;
    // Its name in Lua 5.0, which LuaJIT still knows.
    string.set("gfind", gmatch)?;
    let of = Rc::clone(guard);
    let gsub = move |lua: &Lua, (s, p, with, most): (LuaString, LuaString, Value, Option<f64>)| {
        substitute(lua, &of, (&s.as_bytes(), &p.as_bytes()), &with, most)
    };
    string.set("gsub", lua.create_function(gsub)?)
}

/// The start of a search: positions count from 1, and from the end if they are negative.
fn begin(length: usize, from: Option<f64>) -> usize {
    let from = from.unwrap_or(1.0) as i64;
    let from = if from < 0 { (length as i64 + from).max(0) } else { (from - 1).max(0) };
    usize::try_from(from).unwrap_or(0).min(length)
}

fn search(
    lua: &Lua,
    guard: &Rc<Guard>,
    (source, pattern): (&[u8], &[u8]),
    from: Option<f64>,
    plain: bool,
    with_place: bool,
) -> mlua::Result<MultiValue> {
    let from = begin(source.len(), from);
    let place = |start: usize, end: usize| [Value::Number((start + 1) as f64), Value::Number(end as f64)];
    let nothing = || Ok([Value::Nil].into_iter().collect());
    if with_place && (plain || !pattern.iter().any(|byte| SPECIAL.contains(byte))) {
        return match memchr::memmem::find(&source[from..], pattern) {
            Some(at) => Ok(place(from + at, from + at + pattern.len()).into_iter().collect()),
            None => nothing(),
        };
    }
    let anchored = pattern.first() == Some(&b'^');
    let spend = |steps| guard.spend(lua, steps);
    let mut matcher = Matcher::new(source, &pattern[usize::from(anchored)..], &spend);
    match matcher.find(from, anchored)? {
        None => nothing(),
        Some((start, end)) if with_place => {
            let mut values: MultiValue = place(start, end).into_iter().collect();
            values.extend(captures(lua, source, &matcher.captures, None)?);
            Ok(values)
        }
        Some(whole) => captures(lua, source, &matcher.captures, Some(whole)),
    }
}

/// The captures as values; without any, `whole`.
fn captures(
    lua: &Lua,
    source: &[u8],
    captures: &[Capture],
    whole: Option<(usize, usize)>,
) -> mlua::Result<MultiValue> {
    match (captures, whole) {
        ([], Some((start, end))) => {
            Ok([Value::String(lua.create_string(&source[start..end])?)].into_iter().collect())
        }
        (captures, _) => captures.iter().map(|capture| value(lua, source, *capture)).collect(),
    }
}

fn value(lua: &Lua, source: &[u8], capture: Capture) -> mlua::Result<Value> {
    match capture {
        Capture::Text(start, end) => Ok(Value::String(lua.create_string(&source[start..end])?)),
        Capture::Position(at) => Ok(Value::Number((at + 1) as f64)),
        Capture::Open(_) => Err(mlua::Error::RuntimeError("unfinished capture".to_owned())),
    }
}

fn substitute(
    lua: &Lua,
    guard: &Rc<Guard>,
    (source, pattern): (&[u8], &[u8]),
    with: &Value,
    most: Option<f64>,
) -> mlua::Result<(LuaString, f64)> {
    if !matches!(
        with,
        Value::String(_) | Value::Integer(_) | Value::Number(_) | Value::Table(_) | Value::Function(_)
    ) {
        let message =
            format!("bad argument #3 to 'gsub' (string/function/table expected, got {})", kind(with));
        return Err(mlua::Error::RuntimeError(message));
    }
    let most = most.unwrap_or(f64::INFINITY);
    let anchored = pattern.first() == Some(&b'^');
    let spend = |steps| guard.spend(lua, steps);
    let mut matcher = Matcher::new(source, &pattern[usize::from(anchored)..], &spend);
    let (mut out, mut at, mut count) = (Vec::new(), 0, 0.0);
    while count < most {
        let end = matcher.match_at(at)?;
        if let Some(end) = end {
            count += 1.0;
            replacement(lua, source, (at, end), &matcher.captures, with, &mut out)?;
            // The text grows outside of Lua's memory, where its limit does not reach.
            guard.check_size(out.len())?;
        }
        match end {
            Some(end) if end > at => at = end,
            _ if at < source.len() => {
                out.push(source[at]);
                at += 1;
            }
            _ => break,
        }
        if anchored {
            break;
        }
    }
    out.extend_from_slice(source.get(at..).unwrap_or_default());
    Ok((lua.create_string(out)?, count))
}

/// Writes the replacement of one match to `out`.
fn replacement(
    lua: &Lua,
    source: &[u8],
    (start, end): (usize, usize),
    found: &[Capture],
    with: &Value,
    out: &mut Vec<u8>,
) -> mlua::Result<()> {
    let whole = Some((start, end));
    let first = || match found.first() {
        Some(capture) => value(lua, source, *capture),
        None => Ok(Value::String(lua.create_string(&source[start..end])?)),
    };
    let given = match with {
        Value::Function(function) => Function::call::<Value>(function, captures(lua, source, found, whole)?)?,
        Value::Table(table) => table.get(first()?)?,
        text => {
            let Some(text) = text_of(lua, text.clone())? else { return Ok(()) };
            return write_text(lua, source, (start, end), found, &text.as_bytes(), out);
        }
    };
    let given_kind = kind(&given);
    if matches!(given, Value::Nil | Value::Boolean(false)) {
        out.extend_from_slice(&source[start..end]);
        return Ok(());
    }
    match text_of(lua, given)? {
        Some(text) => {
            out.extend_from_slice(&text.as_bytes());
            Ok(())
        }
        None => Err(mlua::Error::RuntimeError(format!("invalid replacement value (a {given_kind})"))),
    }
}

/// A replacement text, in which `%0` is the match and `%1` the first capture.
fn write_text(
    lua: &Lua,
    source: &[u8],
    (start, end): (usize, usize),
    found: &[Capture],
    text: &[u8],
    out: &mut Vec<u8>,
) -> mlua::Result<()> {
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'0') => out.extend_from_slice(&source[start..end]),
            Some(digit @ b'1'..=b'9') => match found.get(usize::from(digit - b'1')) {
                Some(capture) => {
                    let value = value(lua, source, *capture)?;
                    let text = text_of(lua, value)?;
                    out.extend_from_slice(&text.map(|text| text.as_bytes().to_vec()).unwrap_or_default());
                }
                // Without captures, `%1` is the match.
                None if digit == b'1' && found.is_empty() => out.extend_from_slice(&source[start..end]),
                None => return Err(mlua::Error::RuntimeError("invalid capture index".to_owned())),
            },
            Some(other) => out.push(other),
            None => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Our functions give the same results as LuaJIT's own.
    #[test]
    fn the_same_comes_out_as_of_the_librarys_own() {
        let calls = [
            "find('hello world', 'o w')",
            "find('hello', 'l', 4)",
            "find('hello', 'l', 5)",
            "find('hello', '', 10)",
            "find('hello', 'xyz', -2)",
            "find('hello', 'l+', -3)",
            "find('a.b', '.', 1, true)",
            "find('a.b', '.b')",
            "find('abc', '^b')",
            "find('abc', '^b', 2)",
            "find('abc', '(b)(c)()')",
            "find('abc', 'c$')",
            "find('a$c', 'a$c')",
            "find('', '')",
            "find('abc', '%')",
            "find('abc', '[a')",
            "find('abc', '(a')",
            "find('abc', 'a)')",
            "find('abc', '%b')",
            "find('abc', '%1')",
            "find('abc', '%f')",
            "find(12345, 3)",
            "match('key = value', '^(%w+)%s*=%s*(%w+)$')",
            "match('2024-01-02', '(%d+)-(%d+)-(%d+)')",
            "match('  trim  ', '^%s*(.-)%s*$')",
            "match('THE (quick) fox', '%((%a+)%)')",
            "match('f(a(b)c)d', '%b()')",
            "match('say \"hi\" now', '([\"\\'])(.-)%1')",
            "match('THE (quick) fox', '%f[%a]%a+%f[%A]', 5)",
            "match('abc', '()b()')",
            "match('x^y', '[x^]+')",
            "match('a]b', '[]]')",
            "match('a-b', '[a%-]+')",
            "match('a-z', '[a-]+')",
            "match('aaa', 'a-')",
            "match('aaab', 'a-b')",
            "match('ac', 'ab?c')",
            "match('\\0a\\0', '%z(%a)%z')",
            "match('tab\\tnl\\n', '[%c]+')",
            "match('hello', '.-(l+)(.*)')",
            "match('[[x]]', '%[%[(.-)%]%]')",
            "match('0x1F', '%x+', 3)",
            "match('abc', '((a)(b))c')",
            "gsub('hello world', 'o', '0')",
            "gsub('hello world', 'o', '0', 1)",
            "gsub('hello', '', '-')",
            "gsub('abc', '%w', '%0%0')",
            "gsub('hello world', '(%w+) (%w+)', '%2 %1')",
            "gsub('abc', 'b', '%%')",
            "gsub('abc', 'b', '%1')",
            "gsub('abc', '(b)', '%2')",
            "gsub('$name is $what', '%$(%w+)', {name = 'x', what = 5})",
            "gsub('$name is $what', '%$(%w+)', {name = false})",
            "gsub('abc', '%w', function(c) if c == 'b' then return 'X' end end)",
            "gsub('abc', '(a)(b)', function(x, y) return y .. x end)",
            "gsub('abc', '()', '%1')",
            "gsub('abc', '^a', 'x')",
            "gsub('aaa', '^a', 'x')",
            "gsub('abc', 'b', {b = {}})",
            "gsub('abc', 'b', true)",
            "gsub('abc def', '%f[%w]%w', string.upper)",
            "gsub('a,b,,c', ',', ';', 0)",
        ];
        let theirs = Lua::new();
        let ours = crate::machine::tests_machine();
        let show = |lua: &Lua, call: &str| {
            let source = format!(
                "local function shown(ok, ...) local t = {{tostring(ok)}} for i = 1, select('#', ...) do \
                 t[#t + 1] = tostring((select(i, ...))) end return table.concat(t, '|') end \
                 return shown(pcall(function() return string.{call} end))"
            );
            let text: String = lua.load(source).eval().unwrap();
            // The wording of error messages differs, so it is not compared.
            if text.starts_with("false") { "an error".to_owned() } else { text }
        };
        for call in calls {
            assert_eq!(show(&ours, call), show(&theirs, call), "{call}");
        }
        let walks = [
            "for k, v in ('a=1, b=2'):gmatch('(%w+)=(%w+)') do out = out .. k .. v end",
            "for w in ('one two'):gmatch('%a+') do out = out .. w .. ';' end",
            "for p in ('abc'):gmatch('()') do out = out .. p end",
            "for w in ('^a^a'):gmatch('^a') do out = out .. w end",
            "for w in ('abc'):gmatch('x*') do out = out .. '[' .. w .. ']' end",
        ];
        for walk in walks {
            let source = format!("out = '' {walk} return out");
            let [ours, theirs]: [String; 2] = [&ours, &theirs].map(|lua| lua.load(&source).eval().unwrap());
            assert_eq!(ours, theirs, "{walk}");
        }
    }
}
