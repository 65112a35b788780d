//! The virtual machine ZPAQL, interpreted.

use super::error::damaged;
use super::table::allocate;
use refrain_codec::Result;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunEnd {
    /// It executed HALT.
    Halted,
    /// It reached an OUT while there was no space for output. The program can be resumed there.
    OutputFull,
}

/// The instruction at one position of a program. Every position has one, since jumps may lead
/// anywhere.
#[derive(Debug, Clone, Copy)]
struct Instruction {
    opcode: u8,
    argument: u16,
}

/// Opcodes that are executed separately.
mod op {
    /// Reserved. Here it also represents an instruction that the end of the program truncates.
    pub(crate) const INVALID: u8 = 0;
    pub(crate) const JUMP_IF: u8 = 39;
    pub(crate) const JUMP_UNLESS: u8 = 47;
    pub(crate) const HALT: u8 = 56;
    pub(crate) const OUT: u8 = 57;
    pub(crate) const JUMP: u8 = 63;
    pub(crate) const LONG_JUMP: u8 = 255;
}

impl Instruction {
    fn new(bytes: &[u8]) -> Instruction {
        let opcode = bytes.first().copied().unwrap_or(op::INVALID);
        match (bytes.get(1..length(opcode)), opcode) {
            (None, _) => Instruction {
                opcode: op::INVALID,
                argument: 0,
            },
            (Some(argument), opcode) => Instruction {
                opcode,
                argument: argument
                    .iter()
                    .rev()
                    .fold(0, |value, &byte| value << 8 | u16::from(byte)),
            },
        }
    }
}

pub(crate) struct Machine {
    program: Vec<Instruction>,
    registers: Registers,
    variables: [u32; 256],
    hashes: Vec<u32>,
    memory: Vec<u8>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Registers {
    a: u32,
    b: u32,
    c: u32,
    d: u32,
    flag: bool,
    next: usize,
    /// The number of instructions that the program may still execute.
    steps_remaining: u64,
}

/// The number of operands. Most opcodes select the source or the destination by their lowest three
/// bits.
const OPERANDS: u8 = 8;

/// Executes one instruction. Returns false if the opcode is invalid. The frequent opcodes are
/// compiled individually from the general rules: with a constant opcode, the compiler removes the
/// selection of operands.
macro_rules! execute {
    ($cpu:ident, $opcode:expr, $argument:expr, [$($frequent:literal)*]) => {
        match $opcode {
            $($frequent => {
                $cpu.registers.next += const { length($frequent) };
                $cpu.execute($frequent, $argument)
            })*
            opcode => {
                $cpu.registers.next += length(opcode);
                // Registers are passed by value, so that they stay in processor registers
                // everywhere else.
                let (registers, is_valid) = Cpu {
                    registers: $cpu.registers,
                    variables: $cpu.variables,
                    hashes: $cpu.hashes,
                    memory: $cpu.memory,
                }
                .execute_any(opcode, $argument);
                $cpu.registers = registers;
                is_valid
            }
        }
    };
}

const fn length(opcode: u8) -> usize {
    match opcode {
        op::LONG_JUMP => 3,
        ..240 if opcode % OPERANDS == 7 => 2,
        _ => 1,
    }
}

impl Machine {
    pub(crate) fn new(program: &[u8], hash_bits: u8, memory_bits: u8) -> Result<Machine> {
        let instruction = |position: usize| Instruction::new(&program[position..]);
        Ok(Machine {
            program: (0..program.len()).map(instruction).collect(),
            registers: Registers::default(),
            variables: [0; 256],
            hashes: allocate(1 << hash_bits, 0)?,
            memory: allocate(1 << memory_bits, 0)?,
        })
    }

    pub(crate) fn allow_steps(&mut self, steps: u64) {
        self.registers.steps_remaining = self.registers.steps_remaining.saturating_add(steps);
    }

    pub(crate) fn hash(&self, index: usize) -> u32 {
        self.hashes[index & (self.hashes.len() - 1)]
    }

    /// Starts the program with `input` in A and runs it. Its output is appended to `out` while that
    /// is shorter than `out_max`.
    pub(crate) fn start(
        &mut self,
        input: u32,
        out: &mut Vec<u8>,
        out_max: usize,
    ) -> Result<RunEnd> {
        (self.registers.a, self.registers.next) = (input, 0);
        self.resume(out, out_max)
    }

    pub(crate) fn resume(&mut self, out: &mut Vec<u8>, out_max: usize) -> Result<RunEnd> {
        let cpu = Cpu {
            registers: self.registers,
            variables: &mut self.variables,
            hashes: &mut self.hashes,
            memory: &mut self.memory,
        };
        let (registers, run) = cpu.run(&self.program, out, out_max);
        self.registers = registers;
        run
    }
}

/// The state on which instructions operate.
struct Cpu<'a> {
    registers: Registers,
    variables: &'a mut [u32; 256],
    hashes: &'a mut [u32],
    memory: &'a mut [u8],
}

impl Cpu<'_> {
    /// Runs the program from its current position. Returns the registers and why it stopped.
    fn run(
        mut self,
        program: &[Instruction],
        out: &mut Vec<u8>,
        out_max: usize,
    ) -> (Registers, Result<RunEnd>) {
        let end = loop {
            if self.registers.steps_remaining == 0 {
                break Err(damaged("a program exceeds the limit of instructions"));
            }
            self.registers.steps_remaining -= 1;
            let Some(&Instruction { opcode, argument }) = program.get(self.registers.next) else {
                break Err(damaged("a program runs past its end"));
            };
            let is_valid = match opcode {
                op::HALT => break Ok(RunEnd::Halted),
                op::OUT if out.len() >= out_max => break Ok(RunEnd::OutputFull),
                op::OUT => {
                    self.registers.next += 1;
                    out.push(self.registers.a as u8);
                    true
                }
                op::JUMP | op::JUMP_IF | op::JUMP_UNLESS => self.jump(opcode, argument),
                op::LONG_JUMP => {
                    self.registers.next = usize::from(argument);
                    true
                }
                _ => execute!(self, opcode, u32::from(argument), [
                    // Increments, decrements, and zero.
                    1 2 4 9 10 12 17 18 20 25 26 28
                    // From a variable to A, from A to a variable.
                    7 55
                    // Hashes.
                    59 60
                    // Assignments to A and B, C and D.
                    65 66 67 68 69 70 71 72 74 79 80 87 88 95
                    // To memory.
                    96 104 112
                    // Sum, difference, product, and, or, xor, shifts, comparisons.
                    128 129 130 131 132 133 134 135 143 151 175 183 191 199 207 215 223 231 239
                ]),
            };
            if !is_valid {
                break Err(damaged(
                    "an invalid instruction, or a jump out of the program",
                ));
            }
        };
        (self.registers, end)
    }

    /// Jumps if the flag is set, if it is clear, or always. Returns false for a jump to before the
    /// program.
    #[inline(always)]
    fn jump(&mut self, opcode: u8, argument: u16) -> bool {
        let registers = &mut self.registers;
        registers.next += const { length(op::JUMP) };
        let jumps = match opcode {
            op::JUMP_IF => registers.flag,
            op::JUMP_UNLESS => !registers.flag,
            _ => true,
        };
        let offset = isize::from(argument as i8);
        match registers.next.checked_add_signed(offset) {
            _ if !jumps => true,
            Some(at) => {
                registers.next = at;
                true
            }
            None => false,
        }
    }

    #[inline(never)]
    fn execute_any(mut self, opcode: u8, argument: u32) -> (Registers, bool) {
        let is_valid = self.execute(opcode, argument);
        (self.registers, is_valid)
    }

    #[inline(always)]
    fn memory_at(&mut self, index: u32) -> &mut u8 {
        let mask = self.memory.len() - 1;
        &mut self.memory[index as usize & mask]
    }

    #[inline(always)]
    fn hash_at(&mut self) -> &mut u32 {
        let mask = self.hashes.len() - 1;
        &mut self.hashes[self.registers.d as usize & mask]
    }

    /// Executes any instruction except jumps, OUT and HALT. Returns false if it is invalid.
    #[inline(always)]
    fn execute(&mut self, opcode: u8, argument: u32) -> bool {
        let a = self.registers.a;
        match opcode {
            59 => {
                let byte = u32::from(*self.memory_at(self.registers.b));
                self.registers.a = hash(a, byte);
                true
            }
            60 => {
                let entry = self.hash_at();
                *entry = hash(*entry, a);
                true
            }
            0..56 => self.execute_unary(opcode, argument),
            64..240 => self.execute_binary(opcode, argument),
            _ => false,
        }
    }

    /// Opcodes below 56: swap, increment, decrement, complement or clear one operand; move from and
    /// to the variables.
    #[inline(always)]
    fn execute_unary(&mut self, opcode: u8, argument: u32) -> bool {
        let operand = opcode / OPERANDS;
        let variable = argument as usize & 255;
        match (operand, opcode % OPERANDS) {
            (0, 0) => return false,
            (0..4, 7) => self.set(operand, self.variables[variable]),
            (6, 7) => self.variables[variable] = self.registers.a,
            (_, action @ 0..5) => {
                let value = self.get(operand);
                let result = match action {
                    0 => self.registers.a,
                    1 => value.wrapping_add(1),
                    2 => value.wrapping_sub(1),
                    3 => !value,
                    _ => 0,
                };
                self.set(operand, result);
                if action == 0 {
                    // A byte is swapped with the lowest byte of A.
                    self.registers.a = match operand {
                        4 | 5 => self.registers.a & !0xFF | value,
                        _ => value,
                    };
                }
            }
            _ => return false,
        }
        true
    }

    /// Opcodes 64 to 239: assign an operand, or combine A with it.
    #[inline(always)]
    fn execute_binary(&mut self, opcode: u8, argument: u32) -> bool {
        let value = match opcode % OPERANDS {
            7 => argument,
            operand => self.get(operand),
        };
        let Registers { a, flag, .. } = &mut self.registers;
        match opcode / OPERANDS {
            to @ 8..=14 => self.set(to - 8, value),
            16 => *a = a.wrapping_add(value),
            17 => *a = a.wrapping_sub(value),
            18 => *a = a.wrapping_mul(value),
            19 => *a = a.checked_div(value).unwrap_or(0),
            20 => *a = a.checked_rem(value).unwrap_or(0),
            21 => *a &= value,
            22 => *a &= !value,
            23 => *a |= value,
            24 => *a ^= value,
            25 => *a = a.wrapping_shl(value),
            26 => *a = a.wrapping_shr(value),
            27 => *flag = *a == value,
            28 => *flag = *a < value,
            29 => *flag = *a > value,
            _ => return false,
        }
        true
    }

    /// Reads an operand: A, B, C, D, *B, *C or *D.
    #[inline(always)]
    fn get(&mut self, operand: u8) -> u32 {
        let Registers { a, b, c, d, .. } = self.registers;
        match operand {
            0 => a,
            1 => b,
            2 => c,
            3 => d,
            4 => u32::from(*self.memory_at(b)),
            5 => u32::from(*self.memory_at(c)),
            _ => *self.hash_at(),
        }
    }

    #[inline(always)]
    fn set(&mut self, operand: u8, value: u32) {
        let Registers { a, b, c, d, .. } = &mut self.registers;
        match operand {
            0 => *a = value,
            1 => *b = value,
            2 => *c = value,
            3 => *d = value,
            4 => *self.memory_at(self.registers.b) = value as u8,
            5 => *self.memory_at(self.registers.c) = value as u8,
            _ => *self.hash_at() = value,
        }
    }
}

#[inline(always)]
fn hash(value: u32, input: u32) -> u32 {
    value
        .wrapping_add(input)
        .wrapping_add(512)
        .wrapping_mul(773)
}
