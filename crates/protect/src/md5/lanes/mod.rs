//! Many inputs at a time, each in a lane of vector registers: the steps of one input depend on each
//! other, but not on other inputs.
//!
//! `dispatch` assigns inputs to lanes and selects the kernel. A kernel (one file for each kind of
//! processor) compresses the next blocks of all lanes.

#[cfg(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_endian = "little")
))]
#[macro_use]
mod kernel_macros;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512_single;
pub(super) mod dispatch;
pub(super) mod kernel;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
#[cfg(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_endian = "little")
))]
mod pair;

#[cfg(test)]
mod tests;
