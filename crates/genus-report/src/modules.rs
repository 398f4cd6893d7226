//! What other pages share with the report: its style, and its modules of JavaScript.

/// The look: colours, letters, buttons, tiles, the map's frame.
pub const BASE_CSS: &str = include_str!("../assets/base.css");
/// Elements made of text and never of markup, marks, pictures, light and dark.
pub const SHARED_JS: &str = include_str!("../assets/shared.js");
/// The map: a plane of points that is moved, zoomed and pointed at.
pub const PLANE_JS: &str = include_str!("../assets/plane.js");
