//! The models of the encoder: contexts of a few orders, each of which corrects the prediction of
//! the previous one, a match model and a mixer, as in the examples of the ZPAQ standard (M.
//! Mahoney, "The ZPAQ Open Standard Format for Highly Compressed Data", section on configuration
//! files).

/// The instructions of the virtual machine that these programs use.
mod op {
    pub const A_ZERO: u8 = 4;
    pub const B_DECREMENT: u8 = 10;
    pub const C_INCREMENT: u8 = 17;
    pub const D_INCREMENT: u8 = 25;
    pub const HALT: u8 = 56;
    /// A = (A + *B + 512) * 773
    pub const HASH: u8 = 59;
    pub const A_FROM_AT_C: u8 = 69;
    pub const B_FROM_C: u8 = 74;
    /// D = the next byte of the program.
    pub const D_FROM: u8 = 95;
    pub const AT_C_FROM_A: u8 = 104;
    pub const AT_D_FROM_A: u8 = 112;
    /// A <<= the next byte of the program.
    pub const A_SHIFT_LEFT: u8 = 207;
}

const ICM: u8 = 3;
const MATCH: u8 = 4;
const MIX: u8 = 7;
const ISSE: u8 = 8;

/// Stores the new byte in the ring of the last bytes, points B at it and clears the hash in A.
const BEGIN: [u8; 4] = [op::C_INCREMENT, op::AT_C_FROM_A, op::B_FROM_C, op::A_ZERO];

/// Returns the block header for a level from 1 to 9: `zPQ`, level 1, kind 1, length, sizes,
/// components, program.
pub(crate) fn block_header(level: u8) -> Vec<u8> {
    let (sizes, components, program) = match level {
        ..=3 => small(),
        4..=7 => chain(0),
        // Almost twice the memory, 204 MB. The reader grants one decoder 256 MiB of its default
        // budget.
        _ => chain(1),
    };
    let body = [
        &sizes[..],
        &[components.len() as u8],
        &components.concat(),
        &[0],
        &program,
        &[0],
    ]
    .concat();
    let length = (body.len() as u16).to_le_bytes();
    [&b"zPQ\x01\x01"[..], &length, &body].concat()
}

/// log2 of the sizes of H and M of HCOMP and of PCOMP, the components, and the program HCOMP.
type Model = ([u8; 4], Vec<Vec<u8>>, Vec<u8>);

/// Contexts of orders 2 and 4.
fn small() -> Model {
    let components = vec![vec![ICM, 16], vec![ISSE, 19, 0]];
    let two_bytes = [op::HASH, op::B_DECREMENT, op::HASH];
    let program = [
        &BEGIN[..],
        &[op::D_FROM, 0],
        &two_bytes,
        &[op::AT_D_FROM_A, op::D_INCREMENT, op::B_DECREMENT],
        &two_bytes,
        &[op::AT_D_FROM_A, op::HALT],
    ]
    .concat();
    ([1, 2, 0, 0], components, program)
}

/// Contexts of orders 0 to 5 in a chain, a match model on the last seven bytes, and a mixer whose
/// weights are selected by the last byte. `larger` is the log2 of the factor by which the tables
/// grow.
fn chain(larger: u8) -> Model {
    let components = vec![
        vec![ICM, 5],
        vec![ISSE, 13, 0],
        vec![ISSE, 17 + larger, 1],
        vec![ISSE, 18 + larger, 2],
        vec![ISSE, 18 + larger, 3],
        vec![ISSE, 19 + larger, 4],
        vec![MATCH, 22, 24 + larger.min(1)],
        vec![MIX, 16, 0, 7, 24, 255],
    ];
    let mut program = BEGIN.to_vec();
    program.extend([op::D_FROM, 1, op::HASH, op::AT_D_FROM_A]);
    for _ in 2..=5 {
        program.extend([op::B_DECREMENT, op::D_INCREMENT, op::HASH, op::AT_D_FROM_A]);
    }
    program.extend([op::B_DECREMENT, op::D_INCREMENT, op::HASH]);
    program.extend([op::B_DECREMENT, op::HASH, op::AT_D_FROM_A]);
    program.extend([op::D_INCREMENT, op::A_FROM_AT_C]);
    program.extend([op::A_SHIFT_LEFT, 8, op::AT_D_FROM_A, op::HALT]);
    ([3, 3, 0, 0], components, program)
}
