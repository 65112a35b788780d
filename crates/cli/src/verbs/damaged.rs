//! Reports damage for verbs that look into an archive.

use refrain::Archive;

use crate::exit::Exit;
use crate::report::{Outcome, place_texts};

/// What is damaged or missing in an archive.
#[derive(Default)]
pub struct Damaged {
    texts: Vec<String>,
}

impl Damaged {
    /// What is known about an archive that was just opened: everything, if a scan found its frames.
    pub fn in_archive(archive: &Archive) -> Damaged {
        Damaged {
            texts: place_texts(&archive.damaged_places()),
        }
    }

    /// Whether nothing is damaged.
    pub fn is_none(&self) -> bool {
        self.texts.is_empty()
    }

    /// Adds a message.
    pub fn add(&mut self, text: String) {
        self.texts.push(text);
    }

    pub fn report(self, outcome: &mut Outcome) {
        for text in self.texts {
            outcome.add_loss(Exit::Damaged, &text);
        }
    }
}
