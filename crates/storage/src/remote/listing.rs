//! What a store says about objects, in XML: names of elements and their text are all that matters.

/// The texts of all elements with a name, in their order.
pub(super) fn texts(document: &str, name: &str) -> Vec<String> {
    let (start, end) = (format!("<{name}>"), format!("</{name}>"));
    let mut rest = document;
    let mut found = Vec::new();
    while let Some((_, after)) = rest.split_once(&start) {
        let Some((text, after)) = after.split_once(&end) else { break };
        found.push(unescaped(text));
        rest = after;
    }
    found
}

/// The text of the first element with a name.
pub(super) fn text(document: &str, name: &str) -> Option<String> {
    texts(document, name).into_iter().next()
}

fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        plain.push_str(before);
        let Some((entity, behind)) = after.split_once(';') else {
            plain.push('&');
            rest = after;
            continue;
        };
        let number = entity.strip_prefix('#').and_then(|number| {
            let hexadecimal = number
                .strip_prefix('x')
                .map(|hex| u32::from_str_radix(hex, 16));
            char::from_u32(hexadecimal.unwrap_or_else(|| number.parse()).ok()?)
        });
        match (entity, number) {
            ("amp", _) => plain.push('&'),
            ("lt", _) => plain.push('<'),
            ("gt", _) => plain.push('>'),
            ("quot", _) => plain.push('"'),
            ("apos", _) => plain.push('\''),
            (_, Some(character)) => plain.push(character),
            (_, None) => plain.push_str(&format!("&{entity};")),
        }
        rest = behind;
    }
    plain.push_str(rest);
    plain
}

/// A text as it stands in a document.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_and_their_texts_read() {
        let document = "<?xml?><List><Key>a&amp;b</Key><Size>3</Size><Key>c&#x41;&quot;&#66;</Key>\
                        <Key>&x; & y</Key><Key>cut";
        assert_eq!(texts(document, "Key"), ["a&b", "cA\"B", "&x; & y"]);
        assert_eq!(text(document, "Size").as_deref(), Some("3"));
        assert_eq!(text(document, "Other"), None);
        assert_eq!(unescaped(&escaped("a<b>&\"c\"")), "a<b>&\"c\"");
    }
}
