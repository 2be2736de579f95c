//! Reaches into calls that take long: a signal to their thread sets the hook that stops them.
//!
//! A hook that is always set would cost every call, and LuaJIT's compiled code would run none of it. So
//! usually none is set. A thread of its own looks at the calls of all states every [`TICK`]; to the thread of
//! one that it has seen before it sends a signal, again at each look, until the call ends. The handler sets
//! the hook. Compiled code looks at the start of every trace and in every turn of a loop whether one is set
//! (`LUAJIT_ENABLE_CHECKHOOK`), and goes back to the interpreter, which runs it.
//!
//! `lua_sethook` is the one function that LuaJIT lets a signal handler call (as its own `luajit` does for
//! Ctrl-C). The signal may come while LuaJIT changes its tables of instructions, which then may lack the
//! hook: therefore it is repeated, and takes the hook away first, for without a change nothing would be
//! written. That begins the count of instructions again, so that a loop of slow functions of the library
//! never came to its end: the first signal asks for the hook at the next instruction, and so do those after
//! the time limit. Only the thread that runs the state touches it.
#![allow(unsafe_code, reason = "a signal handler, and LuaJIT's hook")]

use std::cell::Cell;
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering, compiler_fence};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use mlua::{Function, Lua, LuaOptions, StdLib, Table, Value, ffi};

/// Time between two checks of the calls. One is reached after at most two.
const TICK: Duration = Duration::from_millis(10);

/// The default action is to ignore it, so that a late one does no harm.
const SIGNAL: libc::c_int = libc::SIGURG;

/// Set while this thread is in a call that may be interrupted.
struct Armed {
    state: *mut ffi::lua_State,
    hook: ffi::lua_Hook,
    /// Instructions between two calls of the hook.
    interval: AtomicI32,
    /// Signals that came in this call.
    rings: AtomicU32,
    /// Signals after which the time limit is over.
    patience: u32,
    is_set: AtomicBool,
}

thread_local! {
    // Without a destructor or a late beginning, so that a signal handler may read it.
    static CURRENT: Cell<*const Armed> = const { Cell::new(ptr::null()) };
}

/// The calls of one state, as the watching thread sees them.
struct Watched {
    thread: libc::pthread_t,
    /// Odd while there is a call.
    calls: AtomicU64,
    /// The value of the last look.
    seen: AtomicU64,
}

#[derive(Default)]
struct Watch {
    watched: Vec<Arc<Watched>>,
    is_running: bool,
}

static WATCH: Mutex<Watch> = Mutex::new(Watch { watched: Vec::new(), is_running: false });

/// Sets the hook of a state in calls that take long. It stays in the thread where it was made.
pub(crate) struct Alarm {
    // Its address is what the signal handler gets.
    armed: Rc<Armed>,
    watched: Arc<Watched>,
}

impl std::fmt::Debug for Alarm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Alarm").field("is_set", &self.armed.is_set).finish_non_exhaustive()
    }
}

impl Alarm {
    /// Takes over the hook that `lua` has now, and takes it away until a call takes long: then it runs every
    /// `interval` instructions, and every single one when the call takes longer than `limit`. The state must
    /// outlive all calls between [`begin`](Self::begin) and [`end`](Self::end).
    pub(crate) fn install(lua: &Lua, interval: i32, limit: Duration) -> mlua::Result<Self> {
        let mut found = None;
        // SAFETY: the closure only reads and sets the hook of the state that it is given, which is valid; it
        // raises no error and leaves the stack alone.
        unsafe {
            lua.exec_raw::<()>((), |state| {
                found = ffi::lua_gethook(state).map(|hook| (main_state(state), hook));
                ffi::lua_sethook(state, None, 0, 0);
            })?;
        }
        let (state, hook) = found.ok_or_else(|| mlua::Error::RuntimeError("there is no hook".to_owned()))?;
        let armed = Rc::new(Armed {
            state,
            hook,
            interval: AtomicI32::new(interval),
            rings: AtomicU32::new(0),
            patience: u32::try_from(limit.as_nanos() / TICK.as_nanos()).unwrap_or(u32::MAX).max(1),
            is_set: AtomicBool::new(false),
        });
        // SAFETY: has no conditions.
        let thread = unsafe { libc::pthread_self() };
        let watched = Arc::new(Watched { thread, calls: AtomicU64::new(0), seen: AtomicU64::new(0) });
        watch(&watched).map_err(|error| {
            mlua::Error::RuntimeError(format!("cannot watch over the time that scripts take: {error}"))
        })?;
        Ok(Self { armed, watched })
    }

    /// A call begins.
    #[inline]
    pub(crate) fn begin(&self) {
        self.count();
        CURRENT.set(Rc::as_ptr(&self.armed));
        compiler_fence(Ordering::SeqCst);
    }

    /// The call has ended: from here on the hook is not set.
    #[inline]
    pub(crate) fn end(&self) {
        compiler_fence(Ordering::SeqCst);
        CURRENT.set(ptr::null());
        self.count();
        compiler_fence(Ordering::SeqCst);
        if self.armed.is_set.load(Ordering::Relaxed) {
            self.armed.is_set.store(false, Ordering::Relaxed);
            self.armed.rings.store(0, Ordering::Relaxed);
            // SAFETY: the state is there (see `install`), this is its thread, and no handler touches it now.
            unsafe { ffi::lua_sethook(self.armed.state, None, 0, 0) };
        }
    }

    /// Sets the number of instructions between two calls of the hook, from the next time on that it is set.
    pub(crate) fn set_interval(&self, interval: i32) {
        self.armed.interval.store(interval, Ordering::Relaxed);
    }

    /// Sets the hook now, in a call.
    pub(crate) fn ring(&self) {
        self.armed.set(self.armed.interval.load(Ordering::Relaxed));
    }

    // Only this thread writes it.
    #[inline]
    fn count(&self) {
        self.watched.calls.store(self.watched.calls.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        let mut watch = WATCH.lock().unwrap_or_else(PoisonError::into_inner);
        watch.watched.retain(|watched| !Arc::ptr_eq(watched, &self.watched));
    }
}

impl Armed {
    /// A signal came. The first one of a call, and those after its time limit, have to be handled at once.
    fn hear(&self) {
        let before = self.rings.load(Ordering::Relaxed);
        self.rings.store(before.saturating_add(1), Ordering::Relaxed);
        let at_once = before == 0 || before >= self.patience;
        self.set(if at_once { 1 } else { self.interval.load(Ordering::Relaxed) });
    }

    fn set(&self, interval: i32) {
        self.is_set.store(true, Ordering::Relaxed);
        // SAFETY: the state is valid and belongs to this thread: either this is a function of ours that it
        // has called, or the signal handler in a call of it. There LuaJIT allows `lua_sethook`.
        unsafe {
            ffi::lua_sethook(self.state, None, 0, 0);
            ffi::lua_sethook(self.state, Some(self.hook), ffi::LUA_MASKCOUNT, interval);
        }
    }
}

/// The state itself, where `state` may be one of its coroutines, which may end before it.
///
/// # Safety
/// `state` is valid.
unsafe fn main_state(state: *mut ffi::lua_State) -> *mut ffi::lua_State {
    // Made here, before any script runs, there are no coroutines.
    // SAFETY: the state is valid; pushes one value and takes it away again.
    let is_main = unsafe { ffi::lua_pushthread(state) == 1 };
    // SAFETY: as above.
    unsafe { ffi::lua_pop(state, 1) };
    assert!(is_main, "the limits of a state are set outside of its coroutines");
    state
}

extern "C" fn handle(_signal: libc::c_int) {
    // SAFETY: not null only between `begin` and `end` of an alarm, which keeps its target alive.
    if let Some(armed) = unsafe { CURRENT.get().as_ref() } {
        armed.hear();
    }
}

/// Adds a state to those that are watched, and starts the watching thread if it is not running.
fn watch(watched: &Arc<Watched>) -> std::io::Result<()> {
    static HANDLER: Once = Once::new();
    HANDLER.call_once(|| {
        // SAFETY: all of `action` is set, and the handler only does what is allowed in one, see `Armed::set`.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handle as extern "C" fn(libc::c_int) as libc::sighandler_t;
            action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
            libc::sigemptyset(&raw mut action.sa_mask);
            // Fails only for signals that do not exist.
            libc::sigaction(SIGNAL, &raw const action, ptr::null_mut());
        }
    });
    let mut watch = WATCH.lock().unwrap_or_else(PoisonError::into_inner);
    if !watch.is_running {
        thread::Builder::new().name("scripts".to_owned()).spawn(look)?;
        watch.is_running = true;
    }
    watch.watched.push(Arc::clone(watched));
    Ok(())
}

/// Looks at all calls until there are no states any more.
fn look() {
    loop {
        thread::park_timeout(TICK);
        let mut watch = WATCH.lock().unwrap_or_else(PoisonError::into_inner);
        if watch.watched.is_empty() {
            watch.is_running = false;
            return;
        }
        for watched in &watch.watched {
            let calls = watched.calls.load(Ordering::Relaxed);
            if calls % 2 == 1 && calls == watched.seen.swap(calls, Ordering::Relaxed) {
                // SAFETY: the thread is there: it takes its states off the list, which is locked, before it
                // ends.
                unsafe { libc::pthread_kill(watched.thread, SIGNAL) };
            }
        }
    }
}

/// Returns `true` if compiled code of this LuaJIT checks for a hook, so that it can be stopped. That depends
/// on how LuaJIT was built (`.cargo/config.toml`).
pub(crate) fn reaches_compiled_code() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| finds_check().unwrap_or(false))
}

/// In the code of an empty loop nothing but the check takes an address.
fn finds_check() -> mlua::Result<bool> {
    let lua = Lua::new_with(StdLib::JIT | StdLib::PACKAGE, LuaOptions::new())?;
    let util: Table = lua.globals().get::<Function>("require")?.call("jit.util")?;
    lua.load("for i = 1, 1000 do end").exec()?;
    let Some(trace) = util.get::<Function>("traceinfo")?.call::<Option<Table>>(1)? else { return Ok(false) };
    let (instruction, constant): (Function, Function) = (util.get("traceir")?, util.get("tracek")?);
    for at in 1..=trace.get::<i32>("nins")? {
        // The first operand; constants are below zero.
        let (_, _, operand): (Value, Value, Option<i32>) = instruction.call((1, at))?;
        if let Some(operand @ ..0) = operand
            && let Ok(Some(address)) = constant.call::<Option<f64>>((1, operand))
            && address > f64::from(u32::MAX)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_build_can_stop_compiled_code() {
        assert!(reaches_compiled_code(), "built without .cargo/config.toml: cargo clean -p mlua-sys");
    }

    /// Signals at any instant: while LuaJIT records, compiles, runs compiled code, and between calls. The
    /// tests' LuaJIT checks its own state.
    #[test]
    fn signals_at_any_instant_change_nothing_but_that_the_hook_runs() {
        let lua = Lua::new();
        let runs = Rc::new(Cell::new(0_u64));
        let counted = Rc::clone(&runs);
        let every = mlua::HookTriggers::new().every_nth_instruction(7);
        lua.set_global_hook(every, move |_, _| {
            counted.set(counted.get() + 1);
            Ok(mlua::VmState::Continue)
        })
        .unwrap();
        let alarm = Alarm::install(&lua, 7, Duration::from_secs(1)).unwrap();
        let source = "local sum, all = 0, {}
            local function add(a, b) if b % 3 == 0 then return a end return a + b end
            for i = 1, 200 do sum = add(sum, i) all[#all + 1] = i .. 'x' end
            for k, v in pairs({a = 1, b = 2}) do sum = sum + v end
            return sum .. table.concat(all):sub(1, 6)";
        let expected: String = Lua::new().load(source).eval().unwrap();
        // SAFETY: has no conditions.
        let thread = unsafe { libc::pthread_self() };
        let is_over = AtomicBool::new(false);
        let calls = thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    // SAFETY: the scope's thread waits for this one.
                    unsafe { libc::pthread_kill(thread, SIGNAL) };
                    (0..50).for_each(|_| std::hint::spin_loop());
                }
                is_over.store(true, Ordering::Relaxed);
            });
            let mut calls = 0;
            while !is_over.load(Ordering::Relaxed) || calls < 100 {
                alarm.begin();
                // New code each time, and the old once more.
                let chunk = lua.load(source).into_function().unwrap();
                let results = [chunk.call::<String>(()), chunk.call::<String>(())];
                alarm.end();
                assert_eq!(results.map(Result::unwrap), [&*expected; 2]);
                let before = runs.get();
                assert_eq!(chunk.call::<String>(()).unwrap(), expected);
                assert_eq!(runs.get(), before, "the hook ran outside of a call");
                calls += 1;
            }
            calls
        });
        assert!(runs.get() > 0 && calls >= 100, "{} runs in {calls} calls", runs.get());
    }
}
