//! The classes of a frame's entries: kind, mode, owner and extended attributes, which many entries
//! have in common.

use std::collections::BTreeMap;
use std::sync::Arc;

use refrain_entries::{Entry, ExtendedAttribute, Owner, Timestamp};

use super::entry::{check_attributes, check_owner, entry_kind_from_id, entry_kind_id};
use super::section::{Column, ColumnReaders, Columns};
use crate::error::{FormatError, Result};

/// The common fields of a class, as numbers of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Class {
    kind: u8,
    mode: u32,
    owner: u32,
    /// 0 for none.
    attributes: u32,
}

/// The classes so far, in the order in which they were defined, without duplicates.
#[derive(Debug, Default)]
pub(super) struct Classes {
    classes: Vec<Class>,
    class_numbers: BTreeMap<Class, u32>,
    owners: Vec<Arc<Owner>>,
    owner_numbers: BTreeMap<Arc<Owner>, u32>,
    /// The sets of attributes, numbered from 1.
    attributes: Vec<Vec<ExtendedAttribute>>,
    attribute_numbers: BTreeMap<Vec<ExtendedAttribute>, u32>,
}

impl Classes {
    /// Returns the number of the entry's class, most likely `likely`. Defines a new class in the
    /// columns.
    pub(super) fn number(&mut self, entry: &Entry, likely: u32, columns: &mut Columns) -> u32 {
        if self.is_of_class(entry, likely) {
            return likely;
        }
        let owner = match self.owner_numbers.get(&entry.owner) {
            Some(&number) => number,
            None => self.define_owner(entry.owner.clone(), columns),
        };
        let attributes = match entry.attributes.as_slice() {
            [] => 0,
            attributes => match self.attribute_numbers.get(attributes) {
                Some(&number) => number,
                None => self.define_attributes(attributes, columns),
            },
        };
        let class = Class {
            kind: entry_kind_id(entry.kind, entry.is_rebased),
            mode: entry.mode,
            owner,
            attributes,
        };
        if let Some(&number) = self.class_numbers.get(&class) {
            return number;
        }
        columns.put(Column::ClassFields, u64::from(class.kind));
        columns.put(Column::ClassFields, u64::from(class.mode));
        columns.put(Column::ClassFields, u64::from(owner));
        columns.put(Column::ClassFields, u64::from(attributes));
        self.push(class)
    }

    fn is_of_class(&self, entry: &Entry, number: u32) -> bool {
        let Some(class) = self.classes.get(number as usize) else {
            return false;
        };
        let owner = self.owners.get(class.owner as usize);
        class.kind == entry_kind_id(entry.kind, entry.is_rebased)
            && class.mode == entry.mode
            && owner.is_some_and(|owner| Arc::ptr_eq(owner, &entry.owner) || *owner == entry.owner)
            && self.attributes_of(class) == entry.attributes
    }

    fn attributes_of(&self, class: &Class) -> &[ExtendedAttribute] {
        let at = (class.attributes as usize).checked_sub(1);
        at.and_then(|at| self.attributes.get(at))
            .map_or(&[], Vec::as_slice)
    }

    fn push(&mut self, class: Class) -> u32 {
        let number = self.classes.len() as u32;
        self.classes.push(class);
        self.class_numbers.insert(class, number);
        number
    }

    fn define_owner(&mut self, owner: Arc<Owner>, columns: &mut Columns) -> u32 {
        columns.put(Column::Owners, owner.uid);
        columns.put(Column::Owners, owner.gid);
        columns.put_bytes(Column::Owners, &owner.user);
        columns.put_bytes(Column::Owners, &owner.group);
        self.push_owner(owner)
    }

    fn push_owner(&mut self, owner: Arc<Owner>) -> u32 {
        let number = self.owners.len() as u32;
        self.owner_numbers.insert(owner.clone(), number);
        self.owners.push(owner);
        number
    }

    fn define_attributes(
        &mut self,
        attributes: &[ExtendedAttribute],
        columns: &mut Columns,
    ) -> u32 {
        columns.put(Column::Attributes, attributes.len() as u64);
        for attribute in attributes {
            columns.put_bytes(Column::Attributes, &attribute.name);
            columns.put_bytes(Column::Attributes, &attribute.value);
        }
        self.push_attributes(attributes.to_vec())
    }

    fn push_attributes(&mut self, attributes: Vec<ExtendedAttribute>) -> u32 {
        let number = self.attributes.len() as u32 + 1;
        self.attribute_numbers.insert(attributes.clone(), number);
        self.attributes.push(attributes);
        number
    }

    pub(super) fn take(&mut self, columns: &mut ColumnReaders<'_>) -> Result<u32> {
        let number = columns.u32(Column::Classes, "class of an entry")?;
        match (number as usize).cmp(&self.classes.len()) {
            std::cmp::Ordering::Less => Ok(number),
            std::cmp::Ordering::Equal => self.take_definition(columns),
            std::cmp::Ordering::Greater => Err(too_high("class of an entry", number)),
        }
    }

    fn take_definition(&mut self, columns: &mut ColumnReaders<'_>) -> Result<u32> {
        let (kind, is_rebased) = entry_kind_from_id(columns.varint(Column::ClassFields)?)?;
        let class = Class {
            kind: entry_kind_id(kind, is_rebased),
            mode: columns.u32(Column::ClassFields, "entry mode")?,
            owner: columns.u32(Column::ClassFields, "owner of an entry")?,
            attributes: columns.u32(Column::ClassFields, "attributes of an entry")?,
        };
        match (class.owner as usize).cmp(&self.owners.len()) {
            std::cmp::Ordering::Less => {}
            std::cmp::Ordering::Equal => self.take_owner(columns)?,
            std::cmp::Ordering::Greater => return Err(too_high("owner of an entry", class.owner)),
        }
        match (class.attributes as usize).cmp(&(self.attributes.len() + 1)) {
            std::cmp::Ordering::Less => {}
            std::cmp::Ordering::Equal => self.take_attributes(columns)?,
            std::cmp::Ordering::Greater => {
                return Err(too_high("attributes of an entry", class.attributes));
            }
        }
        match self.class_numbers.get(&class) {
            Some(&number) => Err(defined_twice("class of entries", number)),
            None => Ok(self.push(class)),
        }
    }

    fn take_owner(&mut self, columns: &mut ColumnReaders<'_>) -> Result<()> {
        let owner = Owner {
            uid: columns.varint(Column::Owners)?,
            gid: columns.varint(Column::Owners)?,
            user: columns.bytes(Column::Owners)?.to_vec(),
            group: columns.bytes(Column::Owners)?.to_vec(),
        };
        check_owner(&owner)?;
        if let Some(&number) = self.owner_numbers.get(&owner) {
            return Err(defined_twice("owner of entries", number));
        }
        self.push_owner(Arc::new(owner));
        Ok(())
    }

    fn take_attributes(&mut self, columns: &mut ColumnReaders<'_>) -> Result<()> {
        // Two lengths and a name of one byte.
        let count = columns.column(Column::Attributes)?.count(3)?;
        let mut attributes = Vec::new();
        for _ in 0..count {
            let name = columns.bytes(Column::Attributes)?;
            let value = columns.bytes(Column::Attributes)?;
            attributes.push(ExtendedAttribute {
                name: name.to_vec(),
                value: value.to_vec(),
            });
        }
        check_attributes(&attributes)?;
        if attributes.is_empty() {
            return Err(FormatError::Value {
                what: "attributes in a set",
                value: 0,
                rule: "at least 1",
            });
        }
        if let Some(&number) = self.attribute_numbers.get(&attributes) {
            return Err(defined_twice("attributes of entries", number));
        }
        self.push_attributes(attributes);
        Ok(())
    }

    /// Returns an entry of this class with its other fields empty.
    pub(super) fn entry(&self, number: u32) -> Result<Entry> {
        let class = self.classes.get(number as usize);
        let class = class.ok_or_else(|| too_high("class of an entry", number))?;
        let owner = self.owners.get(class.owner as usize);
        let owner = owner.ok_or_else(|| too_high("owner of an entry", class.owner))?;
        let (kind, is_rebased) = entry_kind_from_id(u64::from(class.kind))?;
        Ok(Entry {
            path: Vec::new(),
            kind,
            mode: class.mode,
            owner: owner.clone(),
            modified: Timestamp::default(),
            size_bytes: 0,
            content_offset: 0,
            data_ranges: None,
            link_target: None,
            device: (0, 0),
            attributes: self.attributes_of(class).to_vec(),
            header_recipe: Vec::new(),
            is_rebased,
            change_stamp: 0,
        })
    }
}

fn too_high(what: &'static str, number: u32) -> FormatError {
    FormatError::Value {
        what,
        value: u64::from(number),
        rule: "at most the number of earlier definitions",
    }
}

fn defined_twice(what: &'static str, number: u32) -> FormatError {
    FormatError::Value {
        what,
        value: u64::from(number),
        rule: "defined once",
    }
}
