//! Coroutines: created, entered, dropped.
//!
//! `unsafe` here: a coroutine that may move to another thread between its turns. The compiler
//! cannot see what is on its stack, so its creator promises that it may move
//! ([`MovableCoroutine::new`]).
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::assembly::AssemblyCoroutine;
use super::entry::TurnStart;
use super::error::{CreateError, EnterError};
use super::stack::StackSize;
use super::stack_pool::count_switches;
use super::threads::ThreadCoroutine;
use super::yielder::Yielder;

/// What switches between stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backend {
    /// A few instructions of assembly.
    #[default]
    Assembly,
    /// A thread for each coroutine, one of which runs at a time: slow, for debugging.
    Threads,
}

/// How a coroutine is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    /// What switches between stacks.
    pub backend: Backend,
    /// The size of the stack. The threads backend uses the size of threads.
    pub stack_size: StackSize,
}

/// What happened in a turn of a coroutine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entered<R> {
    /// It suspended itself, and can be entered again.
    Suspended,
    /// It has finished with this value.
    Finished(R),
}

/// A body of code with its own stack, which runs in turns.
///
/// It stays on the thread that created it; see [`MovableCoroutine`]. Dropping a suspended one
/// unwinds its stack, as a panic does; a body that catches that and suspends again ends the
/// process.
///
/// ```
/// use refrain_pool::coroutine::{Coroutine, Entered, Settings};
///
/// let coroutine = Coroutine::new(Settings::default(), |yielder| {
///     yielder.suspend()?;
///     Ok::<_, refrain_pool::coroutine::HoldsLock>(7)
/// })?;
/// assert_eq!(coroutine.enter(), Ok(Entered::Suspended));
/// assert_eq!(coroutine.enter(), Ok(Entered::Finished(Ok(7))));
/// assert!(coroutine.enter().is_err());
/// # Ok::<(), refrain_pool::coroutine::CreateError>(())
/// ```
pub struct Coroutine<R> {
    /// Borrowed while it runs.
    running: RefCell<Running<R>>,
    entries: Cell<u64>,
}

enum Running<R> {
    Assembly(AssemblyCoroutine<R>),
    Thread(ThreadCoroutine<R>),
    /// It has finished: its stack is free.
    Finished,
}

impl<R: Send + 'static> Coroutine<R> {
    /// Makes a coroutine without entering it.
    ///
    /// # Errors
    /// The system has no room for another stack.
    #[inline]
    pub fn new(
        settings: Settings,
        body: impl FnOnce(&Yielder<'_>) -> R + Send + 'static,
    ) -> Result<Coroutine<R>, CreateError> {
        let running = match settings.backend {
            Backend::Assembly => {
                Running::Assembly(AssemblyCoroutine::new(settings.stack_size, body)?)
            }
            Backend::Threads => Running::Thread(ThreadCoroutine::new(settings.stack_size, body)?),
        };
        Ok(Coroutine {
            running: RefCell::new(running),
            entries: Cell::new(0),
        })
    }

    /// Runs the body until it suspends or returns. A panic of the body continues in the caller; the
    /// coroutine has then finished.
    ///
    /// # Errors
    /// If it has finished or is running.
    #[inline]
    pub fn enter(&self) -> Result<Entered<R>, EnterError> {
        self.enter_with(None)
    }

    /// Enters with a waker, which is called when a suspended coroutine should be entered again;
    /// otherwise as [`enter`](Coroutine::enter).
    ///
    /// # Errors
    /// If it has finished or is running.
    #[inline]
    pub fn enter_with(&self, waker: Option<&Waker>) -> Result<Entered<R>, EnterError> {
        let Ok(mut running) = self.running.try_borrow_mut() else {
            return Err(EnterError::Running);
        };
        let entry = TurnStart::with(waker);
        let value = match &mut *running {
            Running::Assembly(coroutine) if !coroutine.is_finished() => {
                self.entries.set(self.entries.get() + 1);
                coroutine.enter(entry)
            }
            Running::Thread(coroutine) if !coroutine.is_finished() => {
                self.entries.set(self.entries.get() + 1);
                coroutine.enter(entry)
            }
            // It panicked, or returned.
            Running::Assembly(_) | Running::Thread(_) | Running::Finished => {
                return Err(EnterError::Finished);
            }
        };
        match value {
            None => Ok(Entered::Suspended),
            Some(value) => {
                *running = Running::Finished;
                Ok(Entered::Finished(value))
            }
        }
    }
}

impl<R> Coroutine<R> {
    /// How often it was entered.
    pub fn entries(&self) -> u64 {
        self.entries.get()
    }

    /// Whether its body has returned or panicked.
    pub fn is_finished(&self) -> bool {
        match self.running.try_borrow().as_deref() {
            Ok(Running::Assembly(coroutine)) => coroutine.is_finished(),
            Ok(Running::Thread(coroutine)) => coroutine.is_finished(),
            Ok(Running::Finished) => true,
            Err(_) => false,
        }
    }
}

impl<R> Drop for Coroutine<R> {
    #[inline]
    fn drop(&mut self) {
        let entries = self.entries.get();
        if entries > 0 {
            count_switches(entries);
        }
    }
}

impl<R> std::fmt::Debug for Coroutine<R> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (formatter.debug_struct("Coroutine"))
            .field("entries", &self.entries)
            .finish_non_exhaustive()
    }
}

/// A coroutine whose turns may run on different threads.
///
/// It is a future: a poll is a turn, and the poll's waker wakes it (see
/// [`CoMutex`](super::CoMutex), [`CoQueue`](super::CoQueue), [`Yielder::wait_for`]). So
/// [`Flow::spawn_future`](crate::pool::Flow::spawn_future) runs it in turns on the workers of a
/// pool, and it occupies none while it waits.
#[derive(Debug)]
pub struct MovableCoroutine<R>(Coroutine<R>);

// SAFETY: the body is `Send`, and so is its result. What the body has on its stack while it is
// suspended is not tied to a thread: the caller of `new` has promised that.
unsafe impl<R: Send> Send for MovableCoroutine<R> {}

impl<R: Send + 'static> MovableCoroutine<R> {
    /// Makes a coroutine without entering it.
    ///
    /// # Errors
    /// The system has no room for another stack.
    ///
    /// # Safety
    /// While the body is suspended, all values on its stack can be sent to other threads: no `Rc`
    /// that others share, no guard of a standard library lock, no reference to a thread-local
    /// variable. And no function that suspends uses a thread-local variable both before and after
    /// that: the compiler may take its address only once.
    pub unsafe fn new(
        settings: Settings,
        body: impl FnOnce(&Yielder<'_>) -> R + Send + 'static,
    ) -> Result<MovableCoroutine<R>, CreateError> {
        Coroutine::new(settings, body).map(MovableCoroutine)
    }

    /// See [`Coroutine::enter`].
    ///
    /// # Errors
    /// If it has finished.
    #[inline]
    pub fn enter(&mut self) -> Result<Entered<R>, EnterError> {
        self.0.enter()
    }

    /// See [`Coroutine::enter_with`].
    ///
    /// # Errors
    /// If it has finished.
    #[inline]
    pub fn enter_with(&mut self, waker: Option<&Waker>) -> Result<Entered<R>, EnterError> {
        self.0.enter_with(waker)
    }
}

impl<R: Send + 'static> Future for MovableCoroutine<R> {
    /// An error if it is polled after its end.
    type Output = Result<R, EnterError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.enter_with(Some(context.waker())) {
            Ok(Entered::Suspended) => Poll::Pending,
            Ok(Entered::Finished(value)) => Poll::Ready(Ok(value)),
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}
