//! The time limit of calls.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use mlua::debug::Debug;
use mlua::{HookTriggers, Lua, VmState};
use plimsoll_core::Nanos;

use crate::alarm::Alarm;
use crate::fault::OWN_CHUNK;
use crate::{Host, ScriptOptions};

/// Instructions between two checks of the clock: some microseconds of ordinary code. Fewer would cost.
const INTERVAL: i32 = 300;

/// Watches over one call at a time.
///
/// A call costs next to nothing to watch: no hook is set until it takes long, see [`Alarm`], and its time
/// counts from the first look at the clock after that.
#[derive(Debug)]
pub(crate) struct Guard {
    host: Arc<dyn Host>,
    limit: Nanos,
    most_instructions: u64,
    memory_limit: usize,
    since: Cell<Option<Nanos>>,
    instructions: Cell<u64>,
    /// Reason why the call was stopped.
    verdict: RefCell<Option<String>>,
    alarm: OnceCell<Alarm>,
}

impl Guard {
    /// Watches over `lua`.
    pub(crate) fn install(lua: &Lua, options: &ScriptOptions) -> mlua::Result<Rc<Self>> {
        let guard = Rc::new(Self {
            host: options.host.clone(),
            limit: options.limits.time_limit,
            most_instructions: options
                .limits
                .time_limit
                .0
                .saturating_mul(ScriptOptions::INSTRUCTIONS_PER_NANOSECOND),
            memory_limit: options.limits.memory_limit,
            since: Cell::new(None),
            instructions: Cell::new(0),
            verdict: RefCell::new(None),
            alarm: OnceCell::new(),
        });
        // All coroutines share the hook: LuaJIT has one for the whole state.
        let looking = Rc::clone(&guard);
        lua.set_global_hook(
            HookTriggers::new().every_nth_instruction(INTERVAL.unsigned_abs()),
            move |_, debug| looking.look(debug),
        )?;
        let alarm = Alarm::install(lua, INTERVAL, Duration::from_nanos(options.limits.time_limit.0))?;
        guard.alarm.get_or_init(|| alarm);
        Ok(guard)
    }

    /// A call begins.
    #[inline]
    pub(crate) fn begin(&self) {
        self.since.set(None);
        self.instructions.set(0);
        if let Some(alarm) = self.alarm.get() {
            alarm.begin();
        }
    }

    /// A call has ended: why it was stopped, if it was.
    #[inline]
    pub(crate) fn end(&self) -> Option<String> {
        if let Some(alarm) = self.alarm.get() {
            alarm.end();
        }
        let verdict = self.verdict.take()?;
        if let Some(alarm) = self.alarm.get() {
            alarm.set_interval(INTERVAL);
        }
        Some(verdict)
    }

    fn look(&self, debug: &Debug<'_>) -> mlua::Result<VmState> {
        let is_first = self.since.get().is_none();
        self.count(INTERVAL.unsigned_abs()).or_else(|()| self.stop(place(debug)))?;
        if let Some(alarm) = self.alarm.get().filter(|_| is_first) {
            // The first look came at once; the next one may take its time.
            alarm.ring();
        }
        Ok(VmState::Continue)
    }

    /// Charges a function of ours with this many steps, each like an instruction.
    pub(crate) fn spend(&self, lua: &Lua, steps: u32) -> mlua::Result<()> {
        // The caller of that function is at level 1, but may be `pcall`.
        let known = |level| lua.inspect_stack(level, place).filter(|place| !place.is_empty());
        let place = |()| (1..8).find_map(known).unwrap_or_default();
        self.count(steps).map_err(place).or_else(|place| self.stop(place))
    }

    /// Checks that this number of bytes outside of Lua's memory is still within its limit.
    pub(crate) fn check_size(&self, bytes: usize) -> mlua::Result<()> {
        if self.memory_limit > 0 && bytes > self.memory_limit {
            return Err(mlua::Error::MemoryError("not enough memory".to_owned()));
        }
        Ok(())
    }

    /// Looks at the clock; an error: the time is over.
    fn count(&self, instructions: u32) -> Result<(), ()> {
        if self.verdict.borrow().is_some() {
            return Err(());
        }
        let now = self.host.monotonic();
        let since = self.since.get().unwrap_or(now);
        self.since.set(Some(since));
        self.instructions.set(self.instructions.get() + u64::from(instructions));
        let in_time = now.0.saturating_sub(since.0) < self.limit.0;
        if in_time && self.instructions.get() < self.most_instructions { Ok(()) } else { Err(()) }
    }

    #[cold]
    fn stop(&self, place: String) -> mlua::Result<()> {
        if let Some(verdict) = &*self.verdict.borrow() {
            return Err(mlua::Error::RuntimeError(verdict.clone()));
        }
        let verdict = format!("{place}takes longer than the time limit of {} ms", self.limit.0 / 1_000_000);
        self.verdict.replace(Some(verdict.clone()));
        // From here on every instruction fails: a loop around pcall would catch one error and go on.
        if let Some(alarm) = self.alarm.get() {
            alarm.set_interval(1);
            alarm.ring();
        }
        Err(mlua::Error::RuntimeError(verdict))
    }
}

/// `script.lua:12: `, if it is known.
fn place(debug: &Debug<'_>) -> String {
    match (debug.source().short_src, debug.current_line()) {
        // A place in our own Lua code is not the script's: its caller knows the place.
        (Some(name), Some(line)) if name != OWN_CHUNK[1..] => format!("{name}:{line}: "),
        _ => String::new(),
    }
}
