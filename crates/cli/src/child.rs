//! Child processes that end with this one.
//!
//! `unsafe`: the hook between `fork` and `exec`, which only makes two system calls.

#![allow(unsafe_code)]

use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::Signal;

/// Lets the system send a signal to the command's process when the thread that starts it ends,
/// however that happens. A program with more rights than this one is exempt.
pub fn ends_with_this_thread(command: &mut Command, signal: Signal) {
    #[cfg(target_os = "linux")]
    {
        let parent = rustix::process::getpid();
        let hook = move || {
            rustix::process::set_parent_process_death_signal(Some(signal))?;
            // The parent may have ended before.
            if rustix::process::getppid() != Some(parent) {
                return Err(rustix::io::Errno::SRCH.into());
            }
            Ok(())
        };
        // SAFETY: the hook allocates nothing, takes no lock and does not unwind.
        unsafe { command.pre_exec(hook) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (command, signal);
}
