//! Runs a module that nobody vouches for.

use std::fmt;

use wasmi::errors::ErrorKind;
use wasmi::{
    Config, Engine, Instance, Linker, Memory, Module as Compiled, Store, StoreLimits,
    StoreLimitsBuilder, TrapCode, WasmParams,
};

/// What a module may take for one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Its memory, in bytes.
    pub memory_bytes: u64,
    /// Its instructions, as wasmi counts them.
    pub steps: u64,
}

/// Why a module did not decode a block.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// It is not a WebAssembly module, or not one with the interface.
    Module {
        /// What is wrong with it.
        cause: String,
    },
    /// It would need more instructions.
    Steps {
        /// The limit.
        limit: u64,
    },
    /// It would need more memory.
    Memory {
        /// The limit, in bytes.
        limit_bytes: u64,
    },
    /// It did what WebAssembly forbids, or gave up.
    Trap {
        /// What it did.
        cause: String,
    },
    /// It says that the data is damaged.
    Damaged,
    /// It returned an address without room for the block.
    Address {
        /// The address.
        address: u32,
        /// The size of what should be there, in bytes.
        wanted_bytes: u64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Module { cause } => write!(f, "not a module that decodes blocks: {cause}"),
            Self::Steps { limit } => write!(f, "it needs more than {limit} instructions"),
            Self::Memory { limit_bytes } => {
                write!(f, "it needs more than {limit_bytes} bytes of memory")
            }
            Self::Trap { cause } => write!(f, "it was stopped: {cause}"),
            Self::Damaged => f.write_str("it finds the data damaged"),
            Self::Address {
                address,
                wanted_bytes,
            } => write!(
                f,
                "it returned address {address}, where there are no {wanted_bytes} bytes"
            ),
        }
    }
}

impl std::error::Error for Error {}

/// A module, checked and translated for the interpreter. Blocks are decoded apart from each other,
/// from any thread.
#[derive(Debug)]
pub struct Module {
    engine: Engine,
    module: Compiled,
}

/// The nesting of calls in a module.
const CALLS_MAX: usize = 1000;

impl Module {
    /// Checks the bytes of a module.
    ///
    /// # Errors
    /// `Module`: it is not valid, or wants to import something.
    pub fn new(bytes: &[u8]) -> Result<Self, Error> {
        let mut config = Config::default();
        config.consume_fuel(true).set_max_recursion_depth(CALLS_MAX);
        let engine = Engine::new(&config);
        let module = Compiled::new(&engine, bytes).map_err(|error| not_a_module(&error))?;
        if module.imports().len() > 0 {
            return Err(Error::Module {
                cause: "it imports something".to_owned(),
            });
        }
        Ok(Self { engine, module })
    }

    /// Decodes a block into `raw`, whose length is the raw length.
    ///
    /// # Errors
    /// All of them; the content of `raw` is then undefined.
    pub fn decode(
        &self,
        params: &[u8],
        data: &[u8],
        raw: &mut [u8],
        limits: Limits,
    ) -> Result<(), Error> {
        let mut run = Run::new(self, limits)?;
        let [params_bytes, data_bytes, raw_bytes] = [params.len(), data.len(), raw.len()]
            .map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX));
        let address: u32 = run.call("place", (params_bytes, data_bytes, raw_bytes))?;
        if address == 0 {
            return Err(run.out_of_memory());
        }
        run.write(address, params)?;
        run.write(address.wrapping_add(params_bytes), data)?;
        let address: u32 = run.call("decode", ())?;
        if address == 0 {
            return Err(Error::Damaged);
        }
        run.read(address, raw)
    }
}

/// One instance.
struct Run {
    store: Store<StoreLimits>,
    instance: Instance,
    memory: Memory,
    limits: Limits,
}

impl Run {
    fn new(module: &Module, limits: Limits) -> Result<Self, Error> {
        let memory_bytes = usize::try_from(limits.memory_bytes).unwrap_or(usize::MAX);
        let store_limits = StoreLimitsBuilder::new()
            .memory_size(memory_bytes)
            .table_elements(1 << 16)
            .instances(1)
            .memories(1)
            .tables(1)
            .trap_on_grow_failure(true)
            .build();
        let mut store = Store::new(&module.engine, store_limits);
        store.limiter(|limits| limits);
        let stopped = |error| stopped(&error, limits);
        store.set_fuel(limits.steps).map_err(stopped)?;
        let linker = Linker::new(&module.engine);
        let instance = linker.instantiate_and_start(&mut store, &module.module);
        let instance = instance.map_err(stopped)?;
        let memory = instance.get_memory(&store, "memory").ok_or(Error::Module {
            cause: "it exports no memory".to_owned(),
        })?;
        Ok(Self {
            store,
            instance,
            memory,
            limits,
        })
    }

    fn call<P: WasmParams>(&mut self, name: &str, params: P) -> Result<u32, Error> {
        let function = self.instance.get_typed_func::<P, u32>(&self.store, name);
        let function = function.map_err(|error| Error::Module {
            cause: format!("{name}: {error}"),
        })?;
        let result = function.call(&mut self.store, params);
        result.map_err(|error| stopped(&error, self.limits))
    }

    fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), Error> {
        let written = self.memory.write(&mut self.store, address as usize, bytes);
        written.map_err(|_| outside(address, bytes.len()))
    }

    fn read(&self, address: u32, bytes: &mut [u8]) -> Result<(), Error> {
        let read = self.memory.read(&self.store, address as usize, bytes);
        read.map_err(|_| outside(address, bytes.len()))
    }

    fn out_of_memory(&self) -> Error {
        Error::Memory {
            limit_bytes: self.limits.memory_bytes,
        }
    }
}

fn outside(address: u32, wanted_bytes: usize) -> Error {
    Error::Address {
        address,
        wanted_bytes: wanted_bytes as u64,
    }
}

fn not_a_module(error: &wasmi::Error) -> Error {
    Error::Module {
        cause: error.to_string(),
    }
}

fn stopped(error: &wasmi::Error, limits: Limits) -> Error {
    match error.as_trap_code() {
        Some(TrapCode::OutOfFuel) => Error::Steps {
            limit: limits.steps,
        },
        Some(TrapCode::GrowthOperationLimited | TrapCode::OutOfSystemMemory) => Error::Memory {
            limit_bytes: limits.memory_bytes,
        },
        Some(trap) => Error::Trap {
            cause: trap.to_string(),
        },
        None => match error.kind() {
            ErrorKind::Memory(_) => Error::Memory {
                limit_bytes: limits.memory_bytes,
            },
            _ => Error::Trap {
                cause: error.to_string(),
            },
        },
    }
}
