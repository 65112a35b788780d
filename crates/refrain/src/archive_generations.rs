//! The generations of an opened archive.

use std::sync::Arc;

use crate::archive::Archive;
use crate::error::Result;
use crate::generation::{GenerationChoice, GenerationInfo};

impl Archive {
    /// The generations that are kept, oldest first; none if nothing was ever added to the archive.
    pub fn generations(&self) -> &[GenerationInfo] {
        let generations = self.opened.generations();
        generations.map_or(&[], |generations| &generations.catalog.generations)
    }

    /// The number of the generation that is shown; 0 if nothing was ever added.
    pub fn generation(&self) -> u16 {
        let generations = self.opened.generations();
        generations.map_or(0, |generations| generations.shown.number)
    }

    /// The bytes of the frames that [compacting](crate::Compaction) gave back to the file system:
    /// most of them are holes.
    pub fn given_back_bytes(&self) -> u64 {
        let generations = self.opened.generations();
        generations.map_or(0, |generations| generations.catalog.gone.frame_bytes())
    }

    /// How many bytes of a generation that is not complete follow in the file: one is being added,
    /// or a writer was killed.
    ///
    /// # Errors
    /// `Io`.
    pub fn incomplete_bytes(&self) -> Result<u64> {
        let Some(unlocked) = &self.unlocked else {
            return Ok(0);
        };
        let whole_bytes = unlocked.source.size_bytes()?;
        let complete_bytes = self.source.size_bytes()?;
        let envelope = unlocked.envelope.as_ref();
        let sealed_bytes = envelope.map_or(0, |envelope| envelope.incomplete_bytes());
        Ok(sealed_bytes + whole_bytes.saturating_sub(complete_bytes))
    }

    /// The archive with another of its kept generations shown. Both share the index, what was
    /// decoded, the memory and the statistics: an archive is opened once for all its generations.
    /// One to which nothing was added has generation 0.
    ///
    /// # Errors
    /// `Usage` if it has no such generation; `Damaged` and `Io` for the end of that generation.
    pub fn at_generation(self: &Arc<Self>, number: u16) -> Result<Arc<Archive>> {
        let Some(opened) = self.opened.at_generation(number)? else {
            GenerationChoice::Number(number).of_one()?;
            return Ok(Arc::clone(self));
        };
        Ok(Arc::new(Archive {
            opened,
            reader: self.reader,
            source: Arc::clone(&self.source),
            unlocked: self.unlocked.clone(),
            threads: self.threads,
            memory_bytes: self.memory_bytes,
            memory: Arc::clone(&self.memory),
            views: self.memory.new_views(),
            content_limit: self.content_limit.clone(),
            is_scanned: self.is_scanned,
        }))
    }
}
