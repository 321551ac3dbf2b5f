//! The style sheet, script and icon of the pages, built into the program.

/// A file that is served as `/assets/NAME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asset {
    pub name: &'static str,
    pub content_type: &'static str,
    pub text: &'static str,
}

pub(super) const STYLE: &str = include_str!("../../assets/style.css");

/// All assets.
pub const ASSETS: [Asset; 3] = [
    Asset { name: "style.css", content_type: "text/css; charset=utf-8", text: STYLE },
    Asset {
        name: "live.js",
        content_type: "text/javascript; charset=utf-8",
        text: include_str!("../../assets/live.js"),
    },
    Asset { name: "icon.svg", content_type: "image/svg+xml", text: include_str!("../../assets/icon.svg") },
];

/// The asset with this name.
pub fn asset(name: &str) -> Option<Asset> {
    ASSETS.into_iter().find(|asset| asset.name == name)
}
