//! Parameters that a function reads, found in its bytecode: those that it does not read are not built.

use mlua::{Function, Lua, Table};

/// Parameters that are examined.
const SLOTS: usize = 4;

// Operand modes of LuaJIT's bytecode (lj_bc.h, as jit.util.funcbc returns them): the mode of A is in the bits
// 0–2, of B in 3–6, of C or D in 7–10. Registers are in operands of these modes.
const DST: u32 = 1;
const BASE: u32 = 2;
const VAR: u32 = 3;
const RBASE: u32 = 4;
/// The D of instructions that return: how many values, and one more.
const LIT: u32 = 6;
/// An operand that is a function: the instruction makes a closure, which may take any register along.
const FUNC: u32 = 12;

/// Which of the first parameters a function touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Uses(pub(crate) [bool; SLOTS]);

impl Uses {
    const ALL: Self = Self([true; SLOTS]);

    /// Looks into a function. One that cannot be looked into may use everything.
    pub(crate) fn of(util: &Table, function: &Function) -> Self {
        Self::read(util, function).unwrap_or(Self::ALL)
    }

    fn read(util: &Table, function: &Function) -> Option<Self> {
        let information: Table = util.get::<Function>("funcinfo").ok()?.call(function).ok()?;
        if information.get::<Option<bool>>("isvararg").ok()? == Some(true) {
            return Some(Self::ALL);
        }
        let parameters: usize = information.get("params").ok()?;
        let count: u32 = information.get("bytecodes").ok()?;
        let bytecode: Function = util.get("funcbc").ok()?;
        let mut uses = Self([false; SLOTS]);
        for at in 1..count {
            let (instruction, mode): (f64, f64) = bytecode.call((function, at)).ok()?;
            // Signed 32 bits, as Lua's bit operations take them.
            let (instruction, mode) = (instruction as i64 as u32, mode as u32);
            let (a, b) = ((instruction >> 8) & 0xff, instruction >> 24);
            let (mode_a, mode_b, mode_c) = (mode & 7, (mode >> 3) & 15, (mode >> 7) & 15);
            // Without a B, the third operand takes both of their bits.
            let c = if mode_b == 0 { instruction >> 16 } else { (instruction >> 16) & 0xff };
            if mode_c == FUNC {
                return Some(Self::ALL);
            }
            let ranges = match (mode_a, mode_b, mode_c) {
                // Returns: this many registers from A on, perhaps none.
                (RBASE, _, LIT) => [a..a + c.saturating_sub(1), 0..0, 0..0],
                // Jumps: A only says which registers are free.
                (RBASE, _, _) => [0..0, 0..0, 0..0],
                // A concatenation: registers from B to C.
                (_, RBASE, RBASE) => [a..a + 1, b..c + 1, 0..0],
                _ => [(a, mode_a), (b, mode_b), (c, mode_c)].map(|(operand, mode)| {
                    if [DST, BASE, VAR, RBASE].contains(&mode) { operand..operand + 1 } else { 0..0 }
                }),
            };
            for slot in ranges.into_iter().flatten() {
                if let Some(used) = uses.0.get_mut(slot as usize) {
                    *used = true;
                }
            }
        }
        for (slot, used) in uses.0.iter_mut().enumerate() {
            *used &= slot < parameters;
        }
        Some(uses)
    }
}

/// LuaJIT's view into functions; asked for before scripts can hide it.
pub(crate) fn util(lua: &Lua) -> mlua::Result<Table> {
    lua.globals().get::<Function>("require")?.call("jit.util")
}

#[cfg(test)]
mod tests {
    use mlua::{LuaOptions, StdLib};

    use super::*;

    fn uses(source: &str) -> [bool; SLOTS] {
        let libraries = StdLib::JIT | StdLib::PACKAGE | StdLib::STRING;
        let lua = Lua::new_with(libraries, LuaOptions::new()).unwrap();
        let util = util(&lua).unwrap();
        Uses::of(&util, &lua.load(source).eval().unwrap()).0
    }

    #[test]
    fn parameters_that_are_only_declared_are_not_used() {
        let table = [
            ("return function() end", [false; 4]),
            ("return function(a, b, c, d) end", [false; 4]),
            ("return function(a, b, c, d) return c, d end", [false, false, true, true]),
            ("return function(a, b, c, d) c['x'] = '1' return c end", [false, false, true, false]),
            ("return function(a, b, c, d) c['x'] = d return c end", [false, false, true, true]),
            ("return function(a, b) return a['x'] == 'y' end", [true, false, false, false]),
            ("return function(a, b) return #b > 3 end", [false, true, false, false]),
            ("return function(a, b) for k in pairs(a) do end end", [true, false, false, false]),
            ("return function(a, b, c) local f = function() return b end return f() end", [true; 4]),
            ("return function(...) return select('#', ...) end", [true; 4]),
            ("return function(a, ...) return a end", [true; 4]),
            ("return function(a, b) a = 1 return a end", [true, false, false, false]),
            ("return function(a, b) return ('x'):rep(5, 0) .. 3 end", [false; 4]),
            ("return function(a, b) return f(1, b) end", [false, true, false, false]),
            ("return function(a, b, c, d) return a or b or c or d end", [true; 4]),
            ("return function(a) return function() end end", [true; 4]),
        ];
        for (source, expected) in table {
            assert_eq!(uses(source), expected, "{source}");
        }
        // A function of the library has no bytecode.
        assert_eq!(uses("return string.format"), [true; 4]);
    }
}
