//! How the blocks and sections of one archive are decoded: by the codecs and filters of this build,
//! or by the modules that the archive carries.

use std::sync::Arc;

use refrain_codec::{CodecId, Error as CodecError, FilterStep};
use refrain_format::{Coding, DecoderRole};
use refrain_storage::Source;

use crate::decoder_choice::{DecoderChoice, DecoderInfo, DecoderListener, name_of};
use crate::error::{Error, ErrorKind, Result};
use crate::options::ReadOptions;
use crate::store::carried_modules::{CarriedModules, CarriedStep, DecoderFrames};
use crate::store::coded::{CarriedBlock, Coded, FirstStep, LaterStep};
use crate::store::coding::{check_raw_bytes, description, plugins_of, unfiltered_description};

/// The codec and the filters of a block by their numbers; 0 is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Coders {
    pub codec: u16,
    pub filter_ids: [u8; 2],
}

/// Who decodes a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecodedBy {
    /// Codecs and filters of this build.
    Engine,
    /// Also those of a plug-in, which may be replaced by a later version.
    Plugin,
    /// Also a module of the archive.
    Module,
}

impl Coders {
    pub(crate) fn of(coding: &Coding) -> Coders {
        Coders {
            codec: coding.codec(),
            filter_ids: coding.filter_ids(),
        }
    }

    fn roles(&self) -> impl Iterator<Item = DecoderRole> + '_ {
        let filters = self.filter_ids.iter().filter(|&&id| id != 0);
        let filters = filters.map(|&id| DecoderRole::Filter(id));
        std::iter::once(DecoderRole::Codec(self.codec)).chain(filters)
    }
}

impl DecodedBy {
    pub(crate) fn is_engine(self) -> bool {
        self == DecodedBy::Engine
    }
}

/// The decoders of one archive.
pub(crate) struct Decoders {
    choice: DecoderChoice,
    carried: CarriedModules,
}

impl Decoders {
    /// For what carries no modules.
    pub(crate) fn own() -> Decoders {
        Decoders {
            choice: DecoderChoice::Own,
            carried: CarriedModules::new(None, DecoderListener::default(), 0),
        }
    }

    /// For an archive that is read from front to back: [`Decoders::add`] adds its modules.
    pub(crate) fn for_stream(options: &ReadOptions) -> Decoders {
        Decoders::of(None, options)
    }

    /// For an archive whose Decoder frames are read when one is first needed.
    pub(crate) fn for_archive(
        source: &Arc<dyn Source>,
        frames: DecoderFrames,
        options: &ReadOptions,
    ) -> Decoders {
        Decoders::of(Some((source.clone(), frames)), options)
    }

    fn of(frames: Option<(Arc<dyn Source>, DecoderFrames)>, options: &ReadOptions) -> Decoders {
        let (listener, memory_bytes) = (options.decoder_listener.clone(), options.memory_bytes);
        Decoders {
            choice: options.decoders,
            carried: CarriedModules::new(frames, listener, memory_bytes),
        }
    }

    /// Adds the module of a Decoder frame, if it can be needed and is not known from the start.
    ///
    /// # Errors
    /// `Damaged` for a head that no version writes; `Limit` for more modules than a reader keeps.
    pub(crate) fn add(&self, payload: &Arc<Vec<u8>>) -> Result<()> {
        self.carried.add(payload, &|role| self.needs_module(role))
    }

    /// What the archive says of decoders, in the frames that were given from the start.
    ///
    /// # Errors
    /// `Damaged`, `Io`.
    pub(crate) fn list(&self) -> Result<Vec<DecoderInfo>> {
        self.carried.list()
    }

    /// Who decodes a block with these coders.
    pub(crate) fn decoded_by(&self, coders: &Coders) -> DecodedBy {
        if coders.roles().any(is_plugins) {
            DecodedBy::Plugin
        } else if coders.roles().any(|role| self.needs_module(role)) {
            DecodedBy::Module
        } else {
            DecodedBy::Engine
        }
    }

    /// What decodes a block or section with this coding.
    ///
    /// # Errors
    /// `Unsupported` for a codec or filter that neither this build nor the archive has; `Damaged`
    /// for a coding or module that is not valid; `Limit` for a module that needs too much.
    pub(crate) fn coded(&self, coding: &Coding, raw_bytes: u64) -> Result<Coded> {
        self.check_plugins(coding)?;
        if self.choice == DecoderChoice::Own {
            match description(coding, raw_bytes) {
                Ok(description) => return Ok(Coded::Own(description)),
                Err(CodecError::UnsupportedCodec(_) | CodecError::UnsupportedFilter(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let first = self.first_step(coding, raw_bytes)?;
        let filters = coding.filters().iter().rev();
        let later = filters.map(|&(id, param)| self.later_step(id, param, raw_bytes));
        Ok(Coded::Carried(CarriedBlock {
            first,
            later: later.collect::<Result<_>>()?,
        }))
    }

    /// Whether a codec or filter needs a module of the archive.
    fn needs_module(&self, role: DecoderRole) -> bool {
        match (role, self.choice) {
            (DecoderRole::Codec(number), _) if number == CodecId::NONE.0 => false,
            (_, DecoderChoice::Carried) => true,
            (role, _) => !is_known(role),
        }
    }

    fn first_step(&self, coding: &Coding, raw_bytes: u64) -> Result<FirstStep> {
        let role = DecoderRole::Codec(coding.codec());
        check_raw_bytes(raw_bytes)?;
        if let Some(module) = self.module(role, raw_bytes)? {
            return Ok(FirstStep::Module(module, coding.params().to_vec()));
        }
        let description = unfiltered_description(coding, raw_bytes)?;
        Ok(FirstStep::Own(description))
    }

    fn later_step(&self, id: u8, param: u8, raw_bytes: u64) -> Result<LaterStep> {
        let role = DecoderRole::Filter(id);
        if let Some(module) = self.module(role, raw_bytes)? {
            return Ok(LaterStep::Module(module, param));
        }
        Ok(LaterStep::Own(FilterStep::new(id, param)?))
    }

    /// The module that a codec or filter needs; `None` if it needs none. Nor does a plug-in that
    /// the archive carries no module for: whoever loaded it wants it used.
    fn module(&self, role: DecoderRole, raw_bytes: u64) -> Result<Option<CarriedStep>> {
        if !self.needs_module(role) {
            return Ok(None);
        }
        let needs = &|role| self.needs_module(role);
        match self.carried.get(role, raw_bytes, needs)? {
            None if is_plugins(role) && is_known(role) => Ok(None),
            None => Err(self.absent(role)),
            found => Ok(found),
        }
    }

    /// Checks that plug-ins are those that the archive names.
    fn check_plugins(&self, coding: &Coding) -> Result<()> {
        for (role, name) in plugins_of(coding) {
            if let Some(wanted) = self.plugin_name(role)?
                && wanted != name
            {
                let message = format!(
                    "{role} of the archive is that of the plug-in '{wanted}', and the one with \
                     this number is '{name}'"
                );
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
        }
        Ok(())
    }

    fn plugin_name(&self, role: DecoderRole) -> Result<Option<String>> {
        let needs = &|role| self.needs_module(role);
        self.carried.plugin(role, needs)
    }

    fn absent(&self, role: DecoderRole) -> Error {
        if let Ok(Some(name)) = self.plugin_name(role) {
            let message =
                format!("{role} is that of the plug-in '{name}': load it with --plugin FILE");
            return Error::new(ErrorKind::Unsupported, message);
        }
        let advice = match self.choice {
            DecoderChoice::Own => "this build has none either: a later version may have it",
            DecoderChoice::Carried => "without it, only this build's own decoders read the archive",
        };
        let name = name_of(role);
        let message = format!("the archive carries no decoder for {name}; {advice}");
        Error::new(ErrorKind::Unsupported, message)
    }
}

/// Whether this process has the codec or filter, of its own or of a plug-in.
fn is_known(role: DecoderRole) -> bool {
    match role {
        DecoderRole::Codec(number) => refrain_codec::supported(CodecId(number)),
        DecoderRole::Filter(id) => FilterStep::new(id, 0) != Err(CodecError::UnsupportedFilter(id)),
    }
}

/// Whether the number is one for plug-ins.
fn is_plugins(role: DecoderRole) -> bool {
    match role {
        DecoderRole::Codec(number) => CodecId(number).is_plugin(),
        DecoderRole::Filter(id) => FilterStep::PLUGINS.contains(&id),
    }
}
