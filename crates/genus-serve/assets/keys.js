// The keys: which there are, and what they are called.

/** @type {{ title: string, keys: [string, string][] }[]} */
export const KEYS = [
  { title: "Groups", keys: [
    ["↑ ↓", "the group above or below, in the queue"], ["J K", "the same from anywhere"], ["N", "name the group; Enter goes on to the next"],
    ["Space", "mark a group to be merged"], ["Shift+M", "merge"], ["S", "split"], ["Q", "to the queue"],
  ] },
  { title: "Items", keys: [
    ["← → ↑ ↓", "go; with Shift, select a range"], ["Space", "select, or no longer"], ["Ctrl+A", "select all under the filter"], ["Esc", "select nothing"],
    ["Enter", "enlarge, and why"], ["/", "filter by name"], ["I", "to the items"],
  ] },
  { title: "The selection", keys: [
    ["M", "move to another group or a new one"], ["G", "make it a group"], ["C", "it belongs here"], ["R", "not here: release"], ["X", "noise: it belongs nowhere"],
  ] },
  { title: "The line", keys: [["L", "to the line; ← → move it"], ["F", "accept the front"], ["T", "release the tail"]] },
  { title: "Unsure", keys: [["U", "to the unsure items"], ["1 … 9", "it belongs to that group"], ["0 X", "noise"], ["→ ←", "later, back"]] },
  { title: "Anywhere", keys: [
    ["Ctrl+Z", "undo"], ["Ctrl+Shift+Z", "redo"], ["H", "history"], ["P", "map"], ["A", "show what others did"], ["?", "these keys"],
  ] },
];
