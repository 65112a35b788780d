//! The interface of a module that decodes one block, as `docs/format-extensions.md` specifies it:
//! the memory, `place` and `decode`. Each file in `modules/` is such a module.

#![deny(unsafe_code)]

use std::sync::Mutex;

/// What the reader placed, and where the raw bytes go. A module decodes one block.
struct Block {
    params_bytes: usize,
    /// The parameters, then the data.
    input: Vec<u8>,
    raw: Vec<u8>,
}

static BLOCK: Mutex<Option<Block>> = Mutex::new(None);

/// Allocates room for a block, and returns the address of its parameters and data; 0 if there is
/// not enough memory.
pub fn place(params_bytes: usize, data_bytes: usize, raw_bytes: usize) -> usize {
    let Some(input_bytes) = params_bytes.checked_add(data_bytes) else {
        return 0;
    };
    let (Some(input), Some(raw)) = (zeroed(input_bytes), zeroed(raw_bytes)) else {
        return 0;
    };
    let address = input.as_ptr().expose_provenance();
    let Ok(mut block) = BLOCK.lock() else { return 0 };
    *block = Some(Block {
        params_bytes,
        input,
        raw,
    });
    address
}

fn zeroed(bytes: usize) -> Option<Vec<u8>> {
    let mut list = Vec::new();
    // An address that is not 0, even for no bytes.
    list.try_reserve_exact(bytes.max(1)).ok()?;
    list.resize(bytes, 0);
    Some(list)
}

/// Decodes the block that was placed, and returns the address of its raw bytes; 0 if there is none,
/// or if it is damaged.
pub fn decode(decode: impl FnOnce(&[u8], &[u8], &mut [u8]) -> bool) -> usize {
    let Ok(mut block) = BLOCK.lock() else { return 0 };
    let Some(block) = block.as_mut() else { return 0 };
    let Some((params, data)) = block.input.split_at_checked(block.params_bytes) else {
        return 0;
    };
    let is_right = decode(params, data, &mut block.raw);
    if is_right { block.raw.as_ptr().expose_provenance() } else { 0 }
}

/// Exports `place` and `decode`. The decoder is a closure `|params, data, raw|` that fills `raw`
/// and returns whether it could.
#[macro_export]
macro_rules! module {
    ($decoder:expr) => {
        #[unsafe(no_mangle)]
        pub extern "C" fn place(params_bytes: u32, data_bytes: u32, raw_bytes: u32) -> u32 {
            let [params, data, raw] = [params_bytes, data_bytes, raw_bytes].map(|n| n as usize);
            $crate::place(params, data, raw) as u32
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn decode() -> u32 {
            $crate::decode($decoder) as u32
        }
    };
}

/// Exports the functions of a module that undoes the filter with this number.
#[macro_export]
macro_rules! filter {
    ($id:literal) => {
        $crate::module!(|params, data, raw| {
            let (&[param], true) = (params, data.len() == raw.len()) else {
                return false;
            };
            raw.copy_from_slice(data);
            refrain_codec::single::undo_filter($id, param, raw).is_ok()
        });
    };
}
