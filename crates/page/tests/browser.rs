//! Pages displayed by a browser.

// Helpers of tests may panic.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr
)]

use refrain_page::Page;
use refrain_testkit::chromium::open_page;
use serde_json::json;

#[test]
fn what_scripts_share_works_in_a_browser() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    let data = json!({ "rows": [["b</script>", 1_500_000], ["a", 20]] });
    let page = Page {
        title: "a test",
        style: "#out { margin: 1em; }",
        body: "<h1>A test</h1><div id=\"out\"></div>",
        script: r#"
            const made = table(data.rows, [["Name", (row) => row[0]], ["Bytes", (row) => row[1], bytes]]);
            document.getElementById("out").append(made, element("p", { id: "time" }, duration(1234567)));
            made.querySelector("th").click();
            hover({ clientX: 5, clientY: 5 }, "beside the pointer");
            console.log("it ran");
        "#,
        data: &data,
    };
    std::fs::write(&file, page.html()).unwrap();
    let Some(opened) = open_page(&file, (400, 600), None) else {
        eprintln!("NOT TESTED: there is no Chromium");
        return;
    };
    // After the click the table is sorted by name, and data stays text.
    let cells = "<tr><td>a</td><td class=\"number\">20 B</td></tr>\
                 <tr><td>b&lt;/script&gt;</td><td class=\"number\">1.50 MB</td></tr>";
    assert!(opened.elements.contains(cells), "{}", opened.elements);
    assert!(opened.elements.contains("1.23 ms") && opened.elements.contains("beside the pointer"));
    assert_eq!(opened.console.len(), 1, "{:?}", opened.console);
    assert!(opened.console[0].contains("it ran"));
}
