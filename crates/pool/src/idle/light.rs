//! The light sleep: waits in user space for a write to one cache line.
//!
//! `unsafe`: the instructions UMONITOR/UMWAIT (Intel, WAITPKG) and MONITORX/MWAITX (AMD) have no
//! safe form in the standard library, and must only run where CPUID reports them; a [`LightSleep`]
//! only results from detection. They read one address and write no memory. They return at a write
//! to its cache line, at an interrupt, or after a short time limit. The loop around them decides
//! when the wait ends, so they act as a longer PAUSE. The word is alive because it is borrowed.
//!
//! No machine on which this was written has either of them: they are compiled and detected, but no
//! test there ran them. The reference implementation is [`spin`], which loads the word in a loop.

#![allow(unsafe_code)]

use refrain_sync::atomic::{AtomicU32, Ordering};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LightSleep {
    /// UMWAIT.
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    Intel,
    /// MWAITX.
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    Amd,
}

/// Waits until `word` differs from `while_value` or `has_ended` returns true, by loading the word
/// in a loop.
#[cfg(any(test, loom, not(target_arch = "x86_64")))]
pub(super) fn spin(word: &AtomicU32, while_value: u32, has_ended: impl Fn() -> bool) {
    while word.load(Ordering::Acquire) == while_value && !has_ended() {
        std::hint::spin_loop();
    }
}

#[cfg(any(loom, not(target_arch = "x86_64")))]
impl LightSleep {
    pub(super) fn detect() -> Option<LightSleep> {
        None
    }

    pub(super) fn wait(self, word: &AtomicU32, while_value: u32, has_ended: impl Fn() -> bool) {
        spin(word, while_value, has_ended);
    }
}

#[cfg(all(target_arch = "x86_64", not(loom)))]
impl LightSleep {
    pub(super) fn detect() -> Option<LightSleep> {
        // 0 means "not detected yet". Threads that race detect and store the same.
        static DETECTED: AtomicU32 = AtomicU32::new(0);
        let mut known = DETECTED.load(Ordering::Relaxed);
        if known == 0 {
            known = 1 + Self::read_cpuid().map_or(0, |sleep| 1 + sleep as u32);
            DETECTED.store(known, Ordering::Relaxed);
        }
        match known {
            2 => Some(LightSleep::Intel),
            3 => Some(LightSleep::Amd),
            _ => None,
        }
    }

    fn read_cpuid() -> Option<LightSleep> {
        use std::arch::x86_64::{__cpuid, __cpuid_count};

        // Leaf 7, ECX bit 5 is WAITPKG; leaf 8000_0001, ECX bit 29 is MONITORX.
        if __cpuid(0).eax >= 7 && __cpuid_count(7, 0).ecx & 1 << 5 != 0 {
            return Some(LightSleep::Intel);
        }
        let has_amd = __cpuid(0x8000_0000).eax >= 0x8000_0001;
        (has_amd && __cpuid(0x8000_0001).ecx & 1 << 29 != 0).then_some(LightSleep::Amd)
    }

    /// Waits until `word` differs from `while_value` or `has_ended` returns true. Checks both at
    /// least every [`WAIT_CYCLES_MAX`].
    pub(super) fn wait(self, word: &AtomicU32, while_value: u32, has_ended: impl Fn() -> bool) {
        while word.load(Ordering::Acquire) == while_value && !has_ended() {
            match self {
                LightSleep::Intel => wait_intel(word, while_value),
                LightSleep::Amd => wait_amd(word, while_value),
            }
        }
    }
}

/// The time limit of one instruction, in cycles of the time stamp counter: about 30 µs. (Linux
/// allows UMWAIT 100,000 by default.)
#[cfg(all(target_arch = "x86_64", not(loom)))]
const WAIT_CYCLES_MAX: u32 = 100_000;

#[cfg(all(target_arch = "x86_64", not(loom)))]
fn wait_intel(word: &AtomicU32, while_value: u32) {
    use std::arch::{asm, x86_64::_rdtsc};

    // SAFETY: the processor has WAITPKG, since `self` results from detection (head of the file).
    // UMONITOR reads the line of the word.
    unsafe { asm!("umonitor {}", in(reg) word.as_ptr(), options(nostack, preserves_flags)) };
    // A write before the monitor was armed would not end the wait, so check the word again.
    if word.load(Ordering::Acquire) != while_value {
        return;
    }
    // SAFETY: reads the time stamp counter; UMWAIT (ECX = 1: C0.1, the quicker state) changes flags
    // only.
    unsafe {
        let end = _rdtsc().wrapping_add(WAIT_CYCLES_MAX.into());
        asm!("umwait {:e}", in(reg) 1, in("eax") end as u32, in("edx") (end >> 32) as u32,
            options(nomem, nostack));
    }
}

#[cfg(all(target_arch = "x86_64", not(loom)))]
fn wait_amd(word: &AtomicU32, while_value: u32) {
    use std::arch::asm;

    // SAFETY: the processor has MONITORX, since `self` results from detection (head of the file).
    // It reads the line of the word.
    unsafe {
        asm!("monitorx", in("rax") word.as_ptr(), in("ecx") 0, in("edx") 0,
            options(nostack, preserves_flags));
    }
    // As above.
    if word.load(Ordering::Acquire) != while_value {
        return;
    }
    // SAFETY: MWAITX with ECX bit 1 ends after EBX cycles; EAX = F0h is C0. The compiler reserves
    // RBX, so it is restored.
    unsafe {
        asm!("xchg {cycles:r}, rbx", "mwaitx", "xchg {cycles:r}, rbx",
            cycles = inout(reg) u64::from(WAIT_CYCLES_MAX) => _, in("eax") 0xf0, in("ecx") 2,
            options(nomem, nostack, preserves_flags));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// Both implementations end at a write and at the time limit. The light sleep is tested where
    /// the processor has one.
    #[test]
    fn a_write_or_the_time_limit_ends_the_wait() {
        type Wait = fn(&AtomicU32, u32, &dyn Fn() -> bool);
        let spin: Wait = |word, value, has_ended| spin(word, value, has_ended);
        let light: Wait = |word, value, has_ended| match LightSleep::detect() {
            Some(light) => light.wait(word, value, has_ended),
            None => super::spin(word, value, has_ended),
        };
        for wait in [spin, light] {
            let word = AtomicU32::new(7);
            wait(&word, 8, &|| false);
            let end = Instant::now() + Duration::from_millis(2);
            wait(&word, 7, &|| Instant::now() >= end);
            assert!(Instant::now() >= end);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(2));
                    word.store(8, Ordering::Release);
                });
                wait(&word, 7, &|| false);
            });
            assert_eq!(word.load(Ordering::Relaxed), 8);
        }
    }
}
