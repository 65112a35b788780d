//! The virtual machine ZPAQL, interpreted.

use super::error::damaged;
use super::table::table;
use refrain_codec::Result;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Run {
    /// At the instruction HALT.
    Halted,
    /// Before an OUT for which there was no room; it goes on there.
    Full,
}

/// What stands at one place of a program, whether or not a jump ever leads there.
#[derive(Debug, Clone, Copy)]
struct Instruction {
    opcode: u8,
    argument: u16,
}

/// Opcodes that are not executed like the others.
mod op {
    /// Reserved; it stands for an instruction that the end of the program cuts short as well.
    pub(crate) const INVALID: u8 = 0;
    pub(crate) const JUMP_IF: u8 = 39;
    pub(crate) const JUMP_UNLESS: u8 = 47;
    pub(crate) const HALT: u8 = 56;
    pub(crate) const OUT: u8 = 57;
    pub(crate) const JUMP: u8 = 63;
    pub(crate) const LONG_JUMP: u8 = 255;
}

impl Instruction {
    /// The instruction that `bytes` begin with.
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

/// Registers and memories of one program.
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
    /// The next instruction.
    at: usize,
    /// Instructions that may still be executed.
    steps_left: u64,
}

/// Where an instruction takes its operand from, and puts its result: the lowest three bits of most opcodes.
const OPERANDS: u8 = 8;

/// Executes one instruction; false if there is none of this opcode. Those that programs consist of are compiled one by one from
/// the rules for all: where the opcode is known nothing is left of the choice of operands.
macro_rules! execute {
    ($cpu:ident, $opcode:expr, $argument:expr, [$($often:literal)*]) => {
        match $opcode {
            $($often => {
                $cpu.registers.at += const { length($often) };
                $cpu.execute($often, $argument)
            })*
            opcode => {
                $cpu.registers.at += length(opcode);
                // Registers by value, so that they are in those of the processor everywhere else.
                let (registers, is_known) = Cpu {
                    registers: $cpu.registers,
                    variables: $cpu.variables,
                    hashes: $cpu.hashes,
                    memory: $cpu.memory,
                }
                .execute_any(opcode, $argument);
                $cpu.registers = registers;
                is_known
            }
        }
    };
}

/// Bytes of an instruction.
const fn length(opcode: u8) -> usize {
    match opcode {
        op::LONG_JUMP => 3,
        ..240 if opcode % OPERANDS == 7 => 2,
        _ => 1,
    }
}

impl Machine {
    pub(crate) fn new(program: &[u8], hash_bits: u8, memory_bits: u8) -> Result<Machine> {
        let instruction = |at: usize| Instruction::new(&program[at..]);
        Ok(Machine {
            program: (0..program.len()).map(instruction).collect(),
            registers: Registers::default(),
            variables: [0; 256],
            hashes: table(1 << hash_bits, 0)?,
            memory: table(1 << memory_bits, 0)?,
        })
    }

    /// Lets the program execute so many more instructions.
    pub(crate) fn allow(&mut self, steps: u64) {
        self.registers.steps_left = self.registers.steps_left.saturating_add(steps);
    }

    /// Entry `index` of H.
    pub(crate) fn hash(&self, index: usize) -> u32 {
        self.hashes[index & (self.hashes.len() - 1)]
    }

    /// Starts the program with `input` in A and runs it. What it puts out goes to `out`, while that is shorter than `out_max`.
    pub(crate) fn start(&mut self, input: u32, out: &mut Vec<u8>, out_max: usize) -> Result<Run> {
        (self.registers.a, self.registers.at) = (input, 0);
        self.go_on(out, out_max)
    }

    /// Goes on after [`Run::Full`].
    pub(crate) fn go_on(&mut self, out: &mut Vec<u8>, out_max: usize) -> Result<Run> {
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

/// What instructions work on.
struct Cpu<'a> {
    registers: Registers,
    variables: &'a mut [u32; 256],
    hashes: &'a mut [u32],
    memory: &'a mut [u8],
}

impl Cpu<'_> {
    /// Runs the program from where it is; the registers then, and how it ended.
    fn run(
        mut self,
        program: &[Instruction],
        out: &mut Vec<u8>,
        out_max: usize,
    ) -> (Registers, Result<Run>) {
        let end = loop {
            if self.registers.steps_left == 0 {
                break Err(damaged("a program runs longer than its block can need"));
            }
            self.registers.steps_left -= 1;
            let Some(&Instruction { opcode, argument }) = program.get(self.registers.at) else {
                break Err(damaged("a program runs past its end"));
            };
            let is_known = match opcode {
                op::HALT => break Ok(Run::Halted),
                op::OUT if out.len() >= out_max => break Ok(Run::Full),
                op::OUT => {
                    self.registers.at += 1;
                    out.push(self.registers.a as u8);
                    true
                }
                op::JUMP | op::JUMP_IF | op::JUMP_UNLESS => self.jump(opcode, argument),
                op::LONG_JUMP => {
                    self.registers.at = usize::from(argument);
                    true
                }
                _ => execute!(self, opcode, u32::from(argument), [
                    // Increments, decrements, and zero.
                    1 2 4 9 10 12 17 18 20 25 26 28
                    // A from a variable, a variable from A.
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
            if !is_known {
                break Err(damaged(
                    "an invalid instruction, or a jump out of its program",
                ));
            }
        };
        (self.registers, end)
    }

    /// Jumps if the flag is set, if it is not, or always. False: to before the program.
    #[inline(always)]
    fn jump(&mut self, opcode: u8, argument: u16) -> bool {
        let registers = &mut self.registers;
        registers.at += const { length(op::JUMP) };
        let jumps = match opcode {
            op::JUMP_IF => registers.flag,
            op::JUMP_UNLESS => !registers.flag,
            _ => true,
        };
        let offset = isize::from(argument as i8);
        match registers.at.checked_add_signed(offset) {
            _ if !jumps => true,
            Some(at) => {
                registers.at = at;
                true
            }
            None => false,
        }
    }

    #[inline(never)]
    fn execute_any(mut self, opcode: u8, argument: u32) -> (Registers, bool) {
        let is_known = self.execute(opcode, argument);
        (self.registers, is_known)
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

    /// Everything but jumps, output and the end; false if there is no such instruction.
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
                let place = self.hash_at();
                *place = hash(*place, a);
                true
            }
            0..56 => self.change(opcode, argument),
            64..240 => self.compute(opcode, argument),
            _ => false,
        }
    }

    /// Opcodes below 56: swap, increment, decrement, complement, clear one operand; moves from and to the variables.
    #[inline(always)]
    fn change(&mut self, opcode: u8, argument: u32) -> bool {
        let operand = opcode / OPERANDS;
        let variable = argument as usize & 255;
        match (operand, opcode % OPERANDS) {
            (0, 0) => return false,
            (0..4, 7) => self.set(operand, self.variables[variable]),
            (6, 7) => self.variables[variable] = self.registers.a,
            (_, action @ 0..5) => {
                let value = self.get(operand);
                let changed = match action {
                    0 => self.registers.a,
                    1 => value.wrapping_add(1),
                    2 => value.wrapping_sub(1),
                    3 => !value,
                    _ => 0,
                };
                self.set(operand, changed);
                if action == 0 {
                    // Bytes swap with the lowest byte of A.
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

    /// Opcodes 64 to 239: an assignment, or A combined with an operand.
    #[inline(always)]
    fn compute(&mut self, opcode: u8, argument: u32) -> bool {
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

    /// A, B, C, D, *B, *C, *D.
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

/// The standard's hash step.
#[inline(always)]
fn hash(value: u32, input: u32) -> u32 {
    value
        .wrapping_add(input)
        .wrapping_add(512)
        .wrapping_mul(773)
}
