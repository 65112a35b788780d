//! Classes of characters (`[a-z]`), translated from gitignore's syntax to globset's.
//!
//! They differ: in gitignore `\` takes the next character literally inside a class, too.

use std::iter::Peekable;

/// The names of classes inside a class, as in `[[:digit:]]`.
const NAMED: [&str; 12] = [
    "alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "xdigit",
];

/// Characters that mean something at some position of a class. They are written as single members,
/// at positions where they mean nothing.
const SPECIAL: [char; 5] = [']', '[', '^', '!', '-'];

#[derive(Debug, Default)]
struct Class {
    is_negated: bool,
    /// Members that are not special, ranges included, and named classes.
    plain: String,
    special: [bool; SPECIAL.len()],
}

/// Reads a class after its `[`. Returns its text for globset.
///
/// # Errors
///
/// What is wrong with the class.
pub(super) fn translate_class<I: Iterator<Item = char>>(
    characters: &mut Peekable<I>,
    is_refused: impl Fn(char) -> bool,
) -> Result<String, &'static str> {
    let class = Class::parse(characters)?;
    if class.plain.chars().any(is_refused) {
        return Err("only UTF-8 is allowed inside '[...]'");
    }
    Ok(class.glob())
}

impl Class {
    fn parse<I: Iterator<Item = char>>(
        characters: &mut Peekable<I>,
    ) -> Result<Class, &'static str> {
        const UNCLOSED: &str = "a '[' has no ']'";
        let mut class = Class {
            is_negated: characters
                .next_if(|first| matches!(first, '!' | '^'))
                .is_some(),
            ..Class::default()
        };
        let mut is_first = true;
        loop {
            let start = match characters.next().ok_or(UNCLOSED)? {
                ']' if !is_first => return Ok(class),
                '[' if characters.next_if_eq(&':').is_some() => {
                    class.add_named(characters)?;
                    is_first = false;
                    continue;
                }
                '\\' => characters.next().ok_or(UNCLOSED)?,
                start => start,
            };
            is_first = false;
            if characters.next_if_eq(&'-').is_none() {
                class.add(start);
                continue;
            }
            match characters.next().ok_or(UNCLOSED)? {
                // A '-' at the end is a member.
                ']' => {
                    class.add(start);
                    class.add('-');
                    return Ok(class);
                }
                '\\' => class.add_range(start, characters.next().ok_or(UNCLOSED)?)?,
                end => class.add_range(start, end)?,
            }
        }
    }

    fn add_named(
        &mut self,
        characters: &mut impl Iterator<Item = char>,
    ) -> Result<(), &'static str> {
        let name: String = characters
            .take_while(|character| *character != ':')
            .collect();
        if characters.next() != Some(']') || !NAMED.contains(&name.as_str()) {
            return Err("a class '[:...:]' has no known name");
        }
        self.plain.push_str(&format!("[:{name}:]"));
        Ok(())
    }

    fn add(&mut self, member: char) {
        match SPECIAL.iter().position(|special| *special == member) {
            Some(position) => {
                if let Some(is_member) = self.special.get_mut(position) {
                    *is_member = true;
                }
            }
            None => self.plain.push(member),
        }
    }

    /// Adds a range; special characters at its ends become single members.
    fn add_range(&mut self, mut start: char, mut end: char) -> Result<(), &'static str> {
        if start > end {
            return Err("a range inside '[...]' ends before it starts");
        }
        while start < end && SPECIAL.contains(&start) {
            self.add(start);
            start = (start..=end).nth(1).unwrap_or(end);
        }
        while start < end && SPECIAL.contains(&end) {
            self.add(end);
            end = (start..=end).nth_back(1).unwrap_or(start);
        }
        if start == end {
            self.add(start);
        } else {
            self.plain.extend([start, '-', end]);
        }
        Ok(())
    }

    fn glob(&self) -> String {
        let members = SPECIAL.iter().zip(self.special);
        let special: Vec<char> = members
            .filter_map(|(c, is_in)| is_in.then_some(*c))
            .collect();
        let starts_well = special.first() == Some(&']') || !self.plain.is_empty();
        if self.is_negated || starts_well {
            let negation = if self.is_negated { "!" } else { "" };
            let (first, rest) = match special.split_first() {
                Some((']', rest)) => ("]", rest),
                _ => ("", &special[..]),
            };
            let rest: String = rest.iter().collect();
            return format!("[{negation}{first}{}{rest}]", self.plain);
        }
        // Members that must not come first.
        let literals: Vec<String> = special.iter().map(|c| format!("\\{c}")).collect();
        format!("{{{}}}", literals.join(","))
    }
}
