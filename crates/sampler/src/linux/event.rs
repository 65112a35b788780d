//! Opens the kernel's sampling events.
//!
//! `unsafe`: the standard library and rustix have no `perf_event_open`, and its requests go through
//! `ioctl`. The structures that the kernel reads and writes are ours and live through the calls.

#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _};

/// What is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `PERF_COUNT_SW_CPU_CLOCK`: processor time; needs no counter of the processor.
    CpuClock,
    /// `PERF_COUNT_SW_PAGE_FAULTS`.
    PageFaults,
}

/// How an event samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sampling {
    /// Nanoseconds, or page faults, between samples.
    pub(super) period: u64,
    /// The bytes of stack in each sample.
    pub(super) stack_bytes: u32,
    /// Whether to include the kernel's work for the thread.
    pub(super) with_kernel: bool,
    /// Wakes the reader when a ring has this many bytes.
    pub(super) wakeup_bytes: u32,
}

/// `PERF_TYPE_SOFTWARE`.
const SOFTWARE: u32 = 1;

/// The fields of a sample that [`super::record`] reads: `PERF_SAMPLE_IDENTIFIER`, `_IP`, `_TID`,
/// `_TIME`, `_REGS_USER`, `_STACK_USER`.
const FIELDS: u64 = 1 << 16 | 1 | 1 << 1 | 1 << 2 | 1 << 12 | 1 << 13;
/// `PERF_REG_X86_BP`, `_SP`, `_IP`: where unwinding starts.
const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;

/// `struct perf_event_attr`, fifth version (112 bytes).
#[repr(C)]
#[derive(Default)]
struct EventAttr {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_watermark: u32,
    breakpoint_kind: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clock_id: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

const _: () = assert!(size_of::<EventAttr>() == 112);

const DISABLED: u64 = 1;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
/// Records of the names of threads.
const NAMES: u64 = 1 << 9;
/// `wakeup_watermark` counts bytes.
const WATERMARK: u64 = 1 << 14;
const USE_CLOCK_ID: u64 = 1 << 25;

/// `PERF_EVENT_IOC_ENABLE`, `_DISABLE`, `_SET_OUTPUT`, `_ID`.
const ENABLE: libc::Ioctl = 0x2400;
const DISABLE: libc::Ioctl = 0x2401;
const SET_OUTPUT: libc::Ioctl = 0x2405;
const ID: libc::Ioctl = 0x8008_2407_u32 as libc::Ioctl;

/// An event of one thread and the threads that it starts, on one processor. Initially disabled.
#[derive(Debug)]
pub(super) struct PerfEvent {
    file: File,
    pub(super) kind: Kind,
}

impl PerfEvent {
    /// # Errors
    /// The kernel refuses.
    pub(super) fn open(
        kind: Kind,
        sampling: &Sampling,
        thread_id: u32,
        processor: usize,
    ) -> io::Result<PerfEvent> {
        let user_only = if sampling.with_kernel { 0 } else { EXCLUDE_KERNEL };
        let (config, names) = match kind {
            Kind::CpuClock => (0, NAMES),
            Kind::PageFaults => (2, 0),
        };
        let attr = EventAttr {
            kind: SOFTWARE,
            size: size_of::<EventAttr>() as u32,
            config,
            sample_period: sampling.period,
            sample_type: FIELDS,
            flags: DISABLED
                | INHERIT
                | EXCLUDE_HYPERVISOR
                | WATERMARK
                | USE_CLOCK_ID
                | user_only
                | names,
            wakeup_watermark: sampling.wakeup_bytes,
            sample_regs_user: REGISTERS,
            sample_stack_user: sampling.stack_bytes,
            clock_id: libc::CLOCK_MONOTONIC,
            ..EventAttr::default()
        };
        let no_group: libc::c_int = -1;
        // PERF_FLAG_FD_CLOEXEC
        let flags: libc::c_ulong = 1 << 3;
        // SAFETY: the kernel reads `size` bytes of `attr`, which lives through the call.
        let file = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                std::ptr::from_ref(&attr),
                thread_id as libc::pid_t,
                processor as libc::c_int,
                no_group,
                flags,
            )
        };
        let file = i32::try_from(file).ok().filter(|&file| file >= 0);
        let file = file.ok_or_else(io::Error::last_os_error)?;
        // SAFETY: the kernel has just opened this file for this call; no other code uses it.
        let file = unsafe { File::from_raw_fd(file) };
        Ok(PerfEvent { file, kind })
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// The id in this event's samples.
    pub(super) fn id(&self) -> io::Result<u64> {
        let mut id = 0_u64;
        self.request(ID, std::ptr::from_mut(&mut id) as libc::c_ulong)?;
        Ok(id)
    }

    /// Writes its samples into the ring of another event on the same processor.
    pub(super) fn write_to_ring_of(&self, owner: &PerfEvent) -> io::Result<()> {
        self.request(SET_OUTPUT, owner.file.as_raw_fd() as libc::c_ulong)
    }

    pub(super) fn enable(&self) -> io::Result<()> {
        self.request(ENABLE, 0)
    }

    pub(super) fn disable(&self) -> io::Result<()> {
        self.request(DISABLE, 0)
    }

    /// The count so far: nanoseconds, or page faults.
    pub(super) fn count(&self) -> io::Result<u64> {
        let mut count = [0; 8];
        (&self.file).read_exact(&mut count)?;
        Ok(u64::from_ne_bytes(count))
    }

    /// `argument` is a number, or for [`ID`] the address of one.
    fn request(&self, request: libc::Ioctl, argument: libc::c_ulong) -> io::Result<()> {
        // SAFETY: the requests are those above: for `ID` the kernel writes eight bytes to the
        // address, which is that of a `u64` of the caller; the others take a number.
        let result = unsafe { libc::ioctl(self.file.as_raw_fd(), request, argument) };
        match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
