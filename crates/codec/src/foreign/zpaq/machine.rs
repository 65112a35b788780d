//! The virtual machine ZPAQL, interpreted.

use super::{table, wrong};
use crate::error::Result;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Run {
    /// At the instruction HALT.
    Halted,
    /// Before an OUT for which there was no room; it goes on there.
    Full,
}

/// Registers and memories of one program.
pub(super) struct Machine {
    program: Vec<u8>,
    a: u32,
    b: u32,
    c: u32,
    d: u32,
    flag: bool,
    at: usize,
    registers: [u32; 256],
    hashes: Vec<u32>,
    memory: Vec<u8>,
    /// Instructions that may still be executed.
    steps_left: u64,
}

/// Where an instruction takes its operand from, and puts its result: the lowest three bits of most opcodes.
const OPERANDS: u8 = 8;

impl Machine {
    pub(super) fn new(program: Vec<u8>, hash_bits: u8, memory_bits: u8) -> Result<Machine> {
        Ok(Machine {
            program,
            a: 0,
            b: 0,
            c: 0,
            d: 0,
            flag: false,
            at: 0,
            registers: [0; 256],
            hashes: table(1 << hash_bits, 0)?,
            memory: table(1 << memory_bits, 0)?,
            steps_left: 0,
        })
    }

    /// Lets the program execute so many more instructions.
    pub(super) fn allow(&mut self, steps: u64) {
        self.steps_left = self.steps_left.saturating_add(steps);
    }

    /// Entry `index` of H.
    pub(super) fn hash(&self, index: usize) -> u32 {
        self.hashes[index & (self.hashes.len() - 1)]
    }

    /// Starts the program with `input` in A and runs it. What it puts out goes to `out`, while that is shorter than `out_max`.
    pub(super) fn start(&mut self, input: u32, out: &mut Vec<u8>, out_max: usize) -> Result<Run> {
        (self.a, self.at) = (input, 0);
        self.go_on(out, out_max)
    }

    /// Goes on after [`Run::Full`].
    pub(super) fn go_on(&mut self, out: &mut Vec<u8>, out_max: usize) -> Result<Run> {
        loop {
            if self.steps_left == 0 {
                return Err(wrong("a program runs longer than its block can need"));
            }
            self.steps_left -= 1;
            let opcode = self.fetch()?;
            match opcode {
                56 => return Ok(Run::Halted),
                57 if out.len() >= out_max => {
                    self.at -= 1;
                    return Ok(Run::Full);
                }
                57 => out.push(self.a as u8),
                59 => self.a = hash(self.a, u32::from(*self.memory_at(self.b))),
                60 => {
                    let a = self.a;
                    let place = self.hash_at();
                    *place = hash(*place, a);
                }
                39 | 47 | 63 => self.jump(opcode)?,
                255 => self.long_jump()?,
                0..56 => self.change(opcode)?,
                64..240 => self.compute(opcode)?,
                _ => return Err(wrong("an invalid instruction")),
            }
        }
    }

    fn fetch(&mut self) -> Result<u8> {
        let byte = self.program.get(self.at).copied();
        self.at += 1;
        byte.ok_or_else(|| wrong("a program runs past its end"))
    }

    fn memory_at(&mut self, index: u32) -> &mut u8 {
        let mask = self.memory.len() - 1;
        &mut self.memory[index as usize & mask]
    }

    fn hash_at(&mut self) -> &mut u32 {
        let mask = self.hashes.len() - 1;
        &mut self.hashes[self.d as usize & mask]
    }

    /// Jumps if the flag is set (39), if it is not (47), always (63).
    fn jump(&mut self, opcode: u8) -> Result<()> {
        let offset = self.fetch()? as i8;
        let jumps = match opcode {
            39 => self.flag,
            47 => !self.flag,
            _ => true,
        };
        if jumps {
            let target = self.at.checked_add_signed(isize::from(offset));
            self.at = target.ok_or_else(|| wrong("a jump out of its program"))?;
        }
        Ok(())
    }

    fn long_jump(&mut self) -> Result<()> {
        let target = [self.fetch()?, self.fetch()?];
        self.at = usize::from(u16::from_le_bytes(target));
        Ok(())
    }

    /// Opcodes below 56: swap, increment, decrement, complement, clear one operand; moves from and to the registers.
    fn change(&mut self, opcode: u8) -> Result<()> {
        let operand = opcode / OPERANDS;
        match (operand, opcode % OPERANDS) {
            (0, 0) => Err(wrong("an invalid instruction")),
            (0..4, 7) => {
                let value = self.registers[usize::from(self.fetch()?)];
                self.set(operand, value);
                Ok(())
            }
            (6, 7) => {
                let number = self.fetch()?;
                self.registers[usize::from(number)] = self.a;
                Ok(())
            }
            (_, action @ 0..5) => {
                let value = self.get(operand);
                let changed = match action {
                    0 => self.a,
                    1 => value.wrapping_add(1),
                    2 => value.wrapping_sub(1),
                    3 => !value,
                    _ => 0,
                };
                self.set(operand, changed);
                if action == 0 {
                    // Bytes swap with the lowest byte of A.
                    self.a = match operand {
                        4 | 5 => self.a & !0xFF | value,
                        _ => value,
                    };
                }
                Ok(())
            }
            _ => Err(wrong("an invalid instruction")),
        }
    }

    /// Opcodes 64 to 239: an assignment, or A combined with an operand.
    fn compute(&mut self, opcode: u8) -> Result<()> {
        let value = match opcode % OPERANDS {
            7 => u32::from(self.fetch()?),
            operand => self.get(operand),
        };
        let a = self.a;
        match opcode / OPERANDS {
            to @ 8..=14 => self.set(to - 8, value),
            16 => self.a = a.wrapping_add(value),
            17 => self.a = a.wrapping_sub(value),
            18 => self.a = a.wrapping_mul(value),
            19 => self.a = a.checked_div(value).unwrap_or(0),
            20 => self.a = a.checked_rem(value).unwrap_or(0),
            21 => self.a = a & value,
            22 => self.a = a & !value,
            23 => self.a = a | value,
            24 => self.a = a ^ value,
            25 => self.a = a.wrapping_shl(value),
            26 => self.a = a.wrapping_shr(value),
            27 => self.flag = a == value,
            28 => self.flag = a < value,
            29 => self.flag = a > value,
            _ => return Err(wrong("an invalid instruction")),
        }
        Ok(())
    }

    /// A, B, C, D, *B, *C, *D.
    fn get(&mut self, operand: u8) -> u32 {
        match operand {
            0 => self.a,
            1 => self.b,
            2 => self.c,
            3 => self.d,
            4 => u32::from(*self.memory_at(self.b)),
            5 => u32::from(*self.memory_at(self.c)),
            _ => *self.hash_at(),
        }
    }

    fn set(&mut self, operand: u8, value: u32) {
        match operand {
            0 => self.a = value,
            1 => self.b = value,
            2 => self.c = value,
            3 => self.d = value,
            4 => *self.memory_at(self.b) = value as u8,
            5 => *self.memory_at(self.c) = value as u8,
            _ => *self.hash_at() = value,
        }
    }
}

/// The standard's hash step.
fn hash(value: u32, input: u32) -> u32 {
    value
        .wrapping_add(input)
        .wrapping_add(512)
        .wrapping_mul(773)
}
