//! The files of Amazon's command line: sections in brackets, and settings `NAME = VALUE`.

/// One section of such a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    settings: Vec<(String, String)>,
}

impl Profile {
    /// The section `[NAME]`, or `[profile NAME]` as the main file names all except the default one.
    pub fn parse(text: &str, name: &str) -> Option<Profile> {
        let mut found: Option<Profile> = None;
        let mut is_inside = false;
        for line in text.lines() {
            let is_indented = line.starts_with([' ', '\t']);
            let line = line.trim();
            if let Some(section) = line
                .strip_prefix('[')
                .and_then(|rest| rest.split(']').next())
            {
                let section = section.trim();
                let section = section.strip_prefix("profile ").unwrap_or(section);
                is_inside = section.trim() == name;
                if is_inside {
                    found.get_or_insert_default();
                }
                continue;
            }
            // Indented lines belong to a setting with nested parts.
            if !is_inside || is_indented || line.starts_with(['#', ';']) {
                continue;
            }
            if let (Some((key, value)), Some(profile)) = (line.split_once('='), &mut found) {
                let setting = (key.trim().to_ascii_lowercase(), value.trim().to_owned());
                profile.settings.push(setting);
            }
        }
        found
    }

    /// The value of a setting.
    pub fn get(&self, name: &str) -> Option<String> {
        let found = self.settings.iter().rfind(|(key, _)| key == name);
        found
            .map(|(_, value)| value.clone())
            .filter(|value| !value.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_and_settings_are_found() {
        let text = "# a remark\n[default]\nregion = eu-west-1\n\n[profile work]\n; a remark\n\
            s3 =\n    region = nested\nREGION=us-west-2\nregion = us-west-1\nempty =\n[other]\nx=1";
        let work = Profile::parse(text, "work").unwrap();
        assert_eq!(work.get("region").as_deref(), Some("us-west-1"));
        assert_eq!((work.get("empty"), work.get("x")), (None, None));
        let default = Profile::parse(text, "default").unwrap();
        assert_eq!(default.get("region").as_deref(), Some("eu-west-1"));
        assert_eq!(Profile::parse(text, "absent"), None);
        assert_eq!(Profile::parse("", "default"), None);
    }
}
