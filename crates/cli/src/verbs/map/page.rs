//! The page (HTML): summary, picture, histogram, blocks, folders.

use refrain_page::{Page, escaped};
use serde_json::Value;

use super::picture;
use super::survey::Survey;
use super::words;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page of one archive.
pub fn page(label: &str, survey: &Survey, figures: &Value) -> String {
    let title = format!("Map of {label}");
    let body = format!(
        "<h1>{}</h1>\n<p id=\"summary\">{}</p>\n{}\n{}",
        escaped(&title),
        escaped(&words::summary(survey)),
        picture_section(survey),
        SECTIONS
    );
    let page = Page {
        title: &title,
        style: STYLE,
        body: &body,
        script: SCRIPT,
        data: figures,
    };
    page.html()
}

fn picture_section(survey: &Survey) -> String {
    format!(
        "<h2>Where passages repeat</h2>\n\
         <p class=\"faint\">The content from left to right. An arc leads from a passage to where it occurred first. \
         The columns below say what each part is: new, repeated, or runs. The strip at the bottom are the members.</p>\n\
         <p><label>Color of arcs: <select id=\"color\"><option value=\"distance\">by distance</option>\
         <option value=\"member\">by member</option></select></label></p>\n\
         <div class=\"wide\">{}</div>\n<div class=\"legend\" id=\"legend\"></div>",
        picture::picture(survey)
    )
}

/// Filled by the script.
const SECTIONS: &str = r#"
<details><summary>The largest passages as a table</summary><div id="passages"></div></details>
<div class="pair"><section><h2>How far apart</h2>
<p class="faint">Repeated bytes by their distance to the first occurrence.</p><div id="distances"></div></section>
<section><h2>From place to place</h2>
<p class="faint">Content from top to bottom, its first occurrence from left to right. The darker, the more repeats.</p>
<canvas id="matrix" width="512" height="512" role="img" aria-label="Repeats by place and by place of the first occurrence"></canvas></section></div>
<h2>What each part costs</h2>
<p class="faint">Bytes of the archive for each part of the content: of what occurs there for the first time.</p>
<div class="wide" id="costs"></div>
<h2>How the blocks compressed</h2>
<p class="faint">The store (each passage once) from left to right. The height is what is left of it after compression, the color the codec.</p>
<div class="wide" id="blocks"></div><div class="legend" id="codecs-legend"></div><div id="codecs"></div>
<section id="nights" hidden><h2>What each generation cost</h2>
<p class="faint">What was new in it, what that takes in the archive, and which folders have it.</p><div id="generations"></div></section>
<h2>What every folder costs</h2>
<p class="faint">Areas are bytes of the archive, not sizes of files: content that other files have, too, costs only the first of them. A click opens a folder.</p>
<p id="way"></p><div id="treemap" role="img" aria-label="Folders by stored bytes; the table below has the same numbers"></div>
<div id="folders"></div>
"#;
