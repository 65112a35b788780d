//! The decoders that an archive carries: found when they are needed, and translated once.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::Arc;

use refrain_carried::{Decoder, Limits as StepLimits, Module};
use refrain_format::{DECODERS_MAX, DecoderHeader, DecoderRole, FrameKind, Limits};
use refrain_pool::Lock;
use refrain_pool::pool::aside;
use refrain_protect::content_hash;
use refrain_storage::Source;

use crate::decoder_choice::{DecoderInfo, DecoderListener, name_of};
use crate::error::{Error, ErrorKind, Result, mebibytes};
use crate::store::frames::read_frame_at;

/// The modules of an archive that a reader keeps, in bytes: a translated module takes several times
/// its size. Refrain's own have 600 KB together.
const MODULES_BYTES_MAX: u64 = 8 << 20;

/// The most instructions for each raw byte, whatever an archive states: what cm needs, our slowest.
const STEPS_PER_BYTE_MAX: u64 = 1 << 20;

const PAGE_BYTES: u64 = 64 << 10;

/// Where the Decoder frames of an archive are in its file.
#[derive(Debug, Clone)]
pub(crate) enum DecoderFrames {
    /// The archive starts at the first offset; the other, from there, leads to its latest frame.
    Chain(u64, Option<u64>),
    /// At these offsets, as a scan found them.
    At(Vec<u64>),
}

/// The modules of one archive.
pub(crate) struct CarriedModules {
    frames: Option<(Arc<dyn Source>, DecoderFrames)>,
    listener: DecoderListener,
    memory_bytes: u64,
    found: Lock<Found>,
}

#[derive(Default)]
struct Found {
    /// Whether all frames were read that are there from the start.
    is_complete: bool,
    bytes: u64,
    modules: BTreeMap<DecoderRole, Kept>,
    /// The names of the plug-ins that codecs and filters are of.
    plugins: BTreeMap<DecoderRole, String>,
}

enum Kept {
    /// The payload of its frame.
    Frame(Arc<Vec<u8>>),
    Ready(DecoderHeader, Arc<Module>),
}

/// A module with the limits for a block.
pub(crate) struct CarriedStep {
    role: DecoderRole,
    module: Arc<Module>,
    limits: StepLimits,
}

impl CarriedModules {
    /// Those of the frames, and those that are added. No module may take more than `memory_bytes`.
    pub(crate) fn new(
        frames: Option<(Arc<dyn Source>, DecoderFrames)>,
        listener: DecoderListener,
        memory_bytes: u64,
    ) -> CarriedModules {
        CarriedModules {
            frames,
            listener,
            memory_bytes,
            found: Lock::new(Found::default()),
        }
    }

    /// Adds the module of a frame with this payload if it `is_needed` and the frames are not known.
    ///
    /// # Errors
    /// `Damaged`, `Limit`.
    pub(crate) fn add(
        &self,
        payload: &Arc<Vec<u8>>,
        is_needed: &dyn Fn(DecoderRole) -> bool,
    ) -> Result<()> {
        if self.frames.is_some() {
            return Ok(());
        }
        self.found.lock().add(payload, is_needed).map(|_| ())
    }

    /// The name of the plug-in that a codec or filter is of, if the archive states it.
    ///
    /// # Errors
    /// As [`CarriedModules::get`].
    pub(crate) fn plugin(
        &self,
        role: DecoderRole,
        is_needed: &dyn Fn(DecoderRole) -> bool,
    ) -> Result<Option<String>> {
        self.read(is_needed)?;
        Ok(self.found.lock().plugins.get(&role).cloned())
    }

    /// Reads the frames, unless that was done.
    fn read(&self, is_needed: &dyn Fn(DecoderRole) -> bool) -> Result<()> {
        if let Some((source, frames)) = &self.frames
            && !self.found.lock().is_complete
        {
            // Without the lock: the source may wait for a network.
            let mut read = Found::default();
            read_frames(source, frames, &mut |payload| read.add(payload, is_needed))?;
            read.is_complete = true;
            let mut found = self.found.lock();
            if !found.is_complete {
                *found = read;
            }
        }
        Ok(())
    }

    /// What the frames say. No module is kept.
    ///
    /// # Errors
    /// `Damaged`, `Io`.
    pub(crate) fn list(&self) -> Result<Vec<DecoderInfo>> {
        let mut list = Vec::new();
        if let Some((source, frames)) = &self.frames {
            read_frames(source, frames, &mut |payload| {
                let (back_bytes, found) = DecoderHeader::parse(payload)?;
                let plugin = DecoderHeader::parse_plugin(payload)?;
                let module = found.map(|(header, module)| (header.role, module.len() as u64));
                if let Some((role, name)) = plugin {
                    list.push(DecoderInfo {
                        role,
                        module_bytes: None,
                        plugin: Some(name.to_owned()),
                    });
                } else if let Some((role, module_bytes)) = module {
                    list.push(DecoderInfo {
                        role,
                        module_bytes: Some(module_bytes),
                        plugin: None,
                    });
                }
                Ok(back_bytes)
            })?;
        }
        Ok(list)
    }

    /// The module for a codec or filter, for a block of `raw_bytes`; `None` if there is none.
    ///
    /// # Errors
    /// `Damaged` for a broken frame or module; `Limit` for one that needs too much; `Io`.
    pub(crate) fn get(
        &self,
        role: DecoderRole,
        raw_bytes: u64,
        is_needed: &dyn Fn(DecoderRole) -> bool,
    ) -> Result<Option<CarriedStep>> {
        self.read(is_needed)?;
        let ready = self.found.lock().ready(role);
        let Some((header, module, is_first)) = ready? else {
            return Ok(None);
        };
        if is_first {
            self.listener.tell(role);
        }
        let memory_bytes = header.memory_pages_max.saturating_mul(PAGE_BYTES);
        if memory_bytes > self.memory_bytes {
            return Err(Error::limit(format!(
                "the archive's decoder for {} needs {} of memory, the limit is {}: raise the \
                 memory limit",
                name_of(role),
                mebibytes(memory_bytes),
                mebibytes(self.memory_bytes)
            )));
        }
        let per_byte = header.steps_per_byte_max.min(STEPS_PER_BYTE_MAX);
        let steps = per_byte.saturating_mul(raw_bytes);
        let limits = StepLimits {
            memory_bytes,
            steps: steps.saturating_add(Decoder::STEPS_FIXED),
        };
        Ok(Some(CarriedStep {
            role,
            module,
            limits,
        }))
    }
}

impl Found {
    /// Keeps the module of a frame with this payload if it is needed. Returns the distance to the
    /// frame before it.
    fn add(
        &mut self,
        payload: &Arc<Vec<u8>>,
        is_needed: &dyn Fn(DecoderRole) -> bool,
    ) -> Result<u64> {
        let (back_bytes, found) = DecoderHeader::parse(payload)?;
        let Some((header, module)) = found else {
            if let Some((role, name)) = DecoderHeader::parse_plugin(payload)?
                && self.plugins.len() < DECODERS_MAX
            {
                self.plugins.entry(role).or_insert_with(|| name.to_owned());
            }
            return Ok(back_bytes);
        };
        if let Entry::Vacant(entry) = self.modules.entry(header.role)
            && is_needed(header.role)
        {
            self.bytes += module.len() as u64;
            if self.bytes > MODULES_BYTES_MAX {
                return Err(Error::limit(format!(
                    "the archive carries more than {} of decoders",
                    mebibytes(MODULES_BYTES_MAX)
                )));
            }
            entry.insert(Kept::Frame(payload.clone()));
        }
        Ok(back_bytes)
    }

    /// The translated module, and whether this is the first use.
    fn ready(&mut self, role: DecoderRole) -> Result<Option<(DecoderHeader, Arc<Module>, bool)>> {
        let Some(kept) = self.modules.get_mut(&role) else {
            return Ok(None);
        };
        let payload = match kept {
            Kept::Ready(header, module) => return Ok(Some((*header, module.clone(), false))),
            Kept::Frame(payload) => payload,
        };
        let Some((header, bytes)) = DecoderHeader::parse(payload)?.1 else {
            return Ok(None);
        };
        if content_hash(bytes) != header.module_hash {
            let name = name_of(role);
            let message = format!("the archive's decoder for {name} does not match its hash");
            return Err(Error::damaged(message));
        }
        let module = Module::new(bytes).map_err(|cause| failure(role, cause))?;
        let module = Arc::new(module);
        *kept = Kept::Ready(header, module.clone());
        Ok(Some((header, module, true)))
    }
}

/// Calls `each` with the payload of each frame, the latest first; it returns the distance to the
/// frame before it.
fn read_frames(
    source: &Arc<dyn Source>,
    frames: &DecoderFrames,
    each: &mut dyn FnMut(&Arc<Vec<u8>>) -> Result<u64>,
) -> Result<()> {
    let mut add = |offset| {
        let frame = read_frame_at(
            &**source,
            offset,
            FrameKind::Decoder,
            None,
            &Limits::default(),
        )?;
        each(&frame.payload).map_err(|error| error.at_offset(offset))
    };
    match frames {
        DecoderFrames::At(offsets) => {
            for &offset in offsets.iter().take(DECODERS_MAX) {
                match add(offset) {
                    Err(error) if error.kind == ErrorKind::Io => return Err(error),
                    // A scan uses what is intact.
                    _ => {}
                }
            }
        }
        &DecoderFrames::Chain(_, None) => {}
        &DecoderFrames::Chain(start, Some(last)) => {
            let mut at = last;
            for _ in 0..DECODERS_MAX {
                let back_bytes = add(start.saturating_add(at))?;
                if back_bytes == 0 {
                    break;
                }
                at = at.checked_sub(back_bytes).ok_or_else(|| {
                    Error::damaged("a decoder follows one before the archive").at_offset(start + at)
                })?;
            }
        }
    }
    Ok(())
}

impl CarriedStep {
    /// The memory of the module, in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.limits.memory_bytes
    }

    /// Decodes into `raw`, whose length is the raw length.
    ///
    /// # Errors
    /// `Limit` if it needs more instructions or memory; otherwise `Damaged`.
    pub(crate) fn decode(&self, params: &[u8], data: &[u8], raw: &mut [u8]) -> Result<()> {
        // It takes long, and its thread cannot do anything else in between.
        let mut decoded = Ok(());
        aside(&mut || decoded = self.module.decode(params, data, raw, self.limits));
        decoded.map_err(|cause| failure(self.role, cause))
    }
}

/// A module of an archive failed.
#[derive(Debug)]
struct CarriedFailure {
    role: DecoderRole,
    cause: refrain_carried::Error,
}

impl fmt::Display for CarriedFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = name_of(self.role);
        write!(f, "the archive's decoder for {name}: {}", self.cause)
    }
}

impl std::error::Error for CarriedFailure {}

fn failure(role: DecoderRole, cause: refrain_carried::Error) -> Error {
    use refrain_carried::Error as Cause;
    let kind = match cause {
        Cause::Steps { .. } | Cause::Memory { .. } => ErrorKind::Limit,
        _ => ErrorKind::Damaged,
    };
    Error::new(kind, CarriedFailure { role, cause })
}
