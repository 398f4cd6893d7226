// Asks the service: what goes over the wire, what was refused, and what to do while the service cannot be reached.

/**
 * @typedef {{ id: number, name: string, named: boolean, items: number, confirmed: number, doubtful: number, guessed: number,
 *   colour: string, merged: string[], parent: number | null, holds_groups: boolean, typical: number[] }} Group
 * @typedef {{ groups: Group[], log: number }} Groups
 * @typedef {{ name: string, items: number, known: number, grouped: number, waiting: number, noise: number, confirmed: number,
 *   dim: number | null, pictures: boolean, log: number, refresh_advised: boolean, undo: string | null, redo: string | null, role: string }} Status
 * @typedef {{ ids: number[], names: string[], groups: (number | null)[], probabilities: (number | null)[], states: string,
 *   pictures: string, log: number }} SheetData
 * @typedef {{ group: number, name: string, similarity: number }} Candidate
 * @typedef {{ id: number, name: string, kind: string, group: number | null, group_name: string | null, probability: number | null,
 *   confirmed: boolean, bound: boolean, scene: number | null, picture: boolean, candidates: Candidate[] }} Item
 * @typedef {{ no: number, time: number, author: string, kind: string, event: string, said: any, of: number | null, items: number,
 *   groups: number }} Entry
 * @typedef {{ group?: number, kind?: string, confirmed?: boolean, at_least?: number, at_most?: number, name?: string }} Filter
 * @typedef {{ do: string, group?: number, name?: string, merge?: boolean, groups?: number[], into?: number, parts?: number[][],
 *   count?: number, items?: number[], filter?: Filter, to?: number, dry_run?: boolean }} Action
 * @typedef {{ entry: Entry | null, preview?: any, parts?: number[][] }} Done
 */

/** The service said no. */
export class Refused extends Error {
  /** @param {number} status @param {{ type?: string, title?: string, detail?: string, log?: number }} problem */
  constructor(status, problem) {
    super(problem.detail ?? problem.title ?? `the service answered ${status}`);
    this.status = status;
    this.kind = (problem.type ?? "").replace("urn:genus:", "");
    this.log = problem.log;
  }
}

/** Whether the service can be reached: tells `lost` and `found`. */
class Link extends EventTarget {
  isLost = false;

  /** @param {boolean} isLost */
  is(isLost) {
    if (this.isLost === isLost) return;
    this.isLost = isLost;
    this.dispatchEvent(new Event(isLost ? "lost" : "found"));
  }
}
export const link = new Link();

/** Asks for a token; the promise is kept when there is one. @type {{ ask: () => Promise<void> }} */
export const door = { ask: () => Promise.resolve() };

const pause = (/** @type {number} */ ms) => new Promise((go) => setTimeout(go, ms));

/**
 * Asks until there is an answer. Only what may be asked twice is asked so: what is read, and what has a key.
 * @param {string} path
 * @param {{ method?: string, headers?: Record<string, string>, body?: BodyInit, signal?: AbortSignal }} [request]
 * @returns {Promise<Response>}
 */
export async function reach(path, request = {}) {
  for (let tries = 0; ; tries++) {
    /** @type {Response} */
    let answer;
    try {
      answer = await fetch(path, { cache: "no-store", credentials: "same-origin", ...request });
    } catch (error) {
      if (request.signal?.aborted) throw error;
      link.is(true);
      await pause(Math.min(200 * (tries + 1), 1500));
      continue;
    }
    if (answer.status === 503 || answer.status === 502 || answer.status === 429) {
      await pause(Math.min(300 * (tries + 1), 2000));
      continue;
    }
    link.is(false);
    if (answer.status === 401) {
      await door.ask();
      continue;
    }
    if (answer.ok || answer.status === 304) return answer;
    throw new Refused(answer.status, await answer.json().catch(() => ({})));
  }
}

/**
 * @template T
 * @param {string} path
 * @param {AbortSignal} [signal]
 * @returns {Promise<T>}
 */
export async function read(path, signal) {
  return (await reach(path, { signal })).json();
}

/** A filter as a query. @param {Filter & { sort?: string }} filter */
export function query(filter) {
  const pairs = Object.entries(filter).filter(([, value]) => value !== undefined && value !== "");
  return new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString();
}

// The cookie itself is not for scripts to see.
const SIGNED_IN = "genus-signed-in";

/** Whether somebody has signed in here. */
export function hasSignedIn() {
  try { return localStorage.getItem(SIGNED_IN) !== null; } catch { return false; }
}

/** Forgets who it is. */
export async function signOut() {
  await fetch("/v1/session", { method: "DELETE" });
  try { localStorage.removeItem(SIGNED_IN); } catch { /* nothing was kept */ }
}

/** Signs in with a token; says what is wrong with it. @param {string} token */
export async function signIn(token) {
  const answer = await fetch("/v1/session", {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ token }),
  });
  if (answer.ok) {
    try { localStorage.setItem(SIGNED_IN, "yes"); } catch { /* then it cannot be offered to sign out */ }
    return null;
  }
  const problem = await answer.json().catch(() => ({}));
  return problem.detail ?? "that did not work";
}

/** Where the picture of an item is. @param {number} item @param {number} side */
export const thumbnail = (item, side) => `/v1/items/${item}/thumbnail?side=${side}`;

/**
 * Hears what happens after an entry of the log, again and again when the service was away.
 * @param {number} after
 * @param {(entry: Entry) => void} hear
 */
export function listen(after, hear) {
  let last = after;
  const kinds = ["born", "grew", "named", "merged", "split", "moved", "confirmed", "rejected", "noise", "applied", "refreshed", "undone", "redone", "changed"];
  const open = () => {
    const source = new EventSource(`/v1/events?after=${last}`);
    source.addEventListener("open", () => link.is(false));
    const heard = (/** @type {MessageEvent} */ event) => {
      /** @type {Entry} */
      const entry = JSON.parse(event.data);
      if (entry.no <= last) return;
      last = entry.no;
      hear(entry);
    };
    kinds.forEach((kind) => source.addEventListener(kind, heard));
    // A browser gives up on some errors and waits long after others; this does neither.
    source.addEventListener("error", async () => {
      source.close();
      await pause(500);
      // Finds out whether the service is away or wants a token, and waits for it.
      await reach("/v1/status").catch(() => {});
      open();
    });
  };
  open();
}
