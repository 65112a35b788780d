//! The virtual machine of the reference implementation of ZPAQ, from the same standard.

use super::Damage;

/// One program with its registers and memories.
pub struct Zpaql {
    header: Vec<u8>,
    a: u32,
    b: u32,
    c: u32,
    d: u32,
    f: bool,
    pc: i64,
    r: [u32; 256],
    h: Vec<u32>,
    m: Vec<u8>,
    /// The number of instructions that it may still execute.
    pub steps: u64,
}

impl Zpaql {
    pub fn new(header: &[u8], hbits: u8, mbits: u8) -> Self {
        Self {
            header: header.to_vec(),
            a: 0,
            b: 0,
            c: 0,
            d: 0,
            f: false,
            pc: 0,
            r: [0; 256],
            h: vec![0; 1 << hbits],
            m: vec![0; 1 << mbits],
            steps: 0,
        }
    }

    fn next(&mut self) -> Result<u8, Damage> {
        let at = usize::try_from(self.pc).map_err(|_| Damage("before the program"))?;
        self.pc += 1;
        self.header
            .get(at)
            .copied()
            .ok_or(Damage("after the program"))
    }

    fn m(&mut self, i: u32) -> &mut u8 {
        let size = self.m.len();
        &mut self.m[i as usize % size]
    }

    pub fn h(&mut self, i: u32) -> &mut u32 {
        let size = self.h.len();
        &mut self.h[i as usize % size]
    }

    fn get(&mut self, x: u8) -> u32 {
        match x {
            0 => self.a,
            1 => self.b,
            2 => self.c,
            3 => self.d,
            4 => u32::from(*self.m(self.b)),
            5 => u32::from(*self.m(self.c)),
            _ => *self.h(self.d),
        }
    }

    fn put(&mut self, x: u8, value: u32) {
        match x {
            0 => self.a = value,
            1 => self.b = value,
            2 => self.c = value,
            3 => self.d = value,
            4 => *self.m(self.b) = value as u8,
            5 => *self.m(self.c) = value as u8,
            _ => *self.h(self.d) = value,
        }
    }

    /// Runs with `input` in A. Returns false if `out` was full at an OUT.
    pub fn run(&mut self, input: u32, out: &mut Vec<u8>, most: usize) -> Result<bool, Damage> {
        (self.a, self.pc) = (input, 0);
        loop {
            self.steps = self.steps.checked_sub(1).ok_or(Damage("too many steps"))?;
            let op = self.next()?;
            if op == 56 {
                return Ok(true);
            }
            if op == 57 {
                if out.len() >= most {
                    return Ok(false);
                }
                out.push(self.a as u8);
            } else {
                self.step(op)?;
            }
        }
    }

    fn step(&mut self, op: u8) -> Result<(), Damage> {
        let (row, x) = (op / 8, op % 8);
        match op {
            59 => self.a = (self.a.wrapping_add(self.get(4)).wrapping_add(512)).wrapping_mul(773),
            60 => {
                let sum = self.get(6).wrapping_add(self.a).wrapping_add(512);
                self.put(6, sum.wrapping_mul(773));
            }
            39 | 47 | 63 => {
                let n = self.next()? as i8;
                if op == 63 || self.f == (op == 39) {
                    self.pc += i64::from(n);
                }
                // The jump itself is an error, not the access after it.
                if self.pc < 0 {
                    return Err(Damage("a jump before the program"));
                }
            }
            255 => self.pc = i64::from(self.next()?) + i64::from(self.next()?) * 256,
            7 | 15 | 23 | 31 => {
                let n = self.next()?;
                self.put(row, self.r[usize::from(n)]);
            }
            55 => {
                let n = self.next()?;
                self.r[usize::from(n)] = self.a;
            }
            1..56 if x < 5 => {
                let (value, a) = (self.get(row), self.a);
                match x {
                    0 if row == 4 || row == 5 => {
                        self.put(row, a);
                        self.a = a / 256 * 256 + value;
                    }
                    0 => {
                        self.put(row, a);
                        self.a = value;
                    }
                    1 => self.put(row, value.wrapping_add(1)),
                    2 => self.put(row, value.wrapping_sub(1)),
                    3 => self.put(row, u32::MAX - value),
                    _ => self.put(row, 0),
                }
            }
            64..=119 | 128..=239 => {
                let value = if x == 7 { u32::from(self.next()?) } else { self.get(x) };
                let a = self.a;
                match row {
                    8..=14 => self.put(row - 8, value),
                    16 => self.a = a.wrapping_add(value),
                    17 => self.a = a.wrapping_sub(value),
                    18 => self.a = a.wrapping_mul(value),
                    19 => self.a = a.checked_div(value).unwrap_or(0),
                    20 => self.a = a.checked_rem(value).unwrap_or(0),
                    21 => self.a = a & value,
                    22 => self.a = a & !value,
                    23 => self.a = a | value,
                    24 => self.a = a ^ value,
                    25 => self.a = a << (value % 32),
                    26 => self.a = a >> (value % 32),
                    27 => self.f = a == value,
                    28 => self.f = a < value,
                    _ => self.f = a > value,
                }
            }
            _ => return Err(Damage("no such instruction")),
        }
        Ok(())
    }
}
