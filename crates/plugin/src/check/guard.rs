//! Buffers with bytes behind them that must stay as they are.

const GUARD_BYTES: usize = 64;
const GUARD: u8 = 0xA5;

/// A buffer of so many bytes, and a guard.
pub(super) fn guarded(bytes: usize) -> Vec<u8> {
    let mut out = vec![0; bytes];
    out.extend([GUARD; GUARD_BYTES]);
    out
}

/// Checks the guard behind so many bytes.
///
/// # Errors
/// It was changed.
pub(super) fn check_guard(out: &[u8], bytes: usize) -> Result<(), String> {
    if out[bytes..].iter().all(|&byte| byte == GUARD) {
        Ok(())
    } else {
        Err(format!("it writes behind a buffer of {bytes} bytes"))
    }
}
