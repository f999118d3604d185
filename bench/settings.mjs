/** @typedef {import('./shape.mjs').Shape} Shape */
/** @typedef {import('./shape.mjs').Traffic} Traffic */
/** @typedef {{ warmMs: number, measureMs: number }} Times */

/**
 * @typedef {object} Settings how long and how much; what is measured is the same
 * @property {number} rounds measurements of each target, the targets in turn
 * @property {number} windows of a load that can stop and go on, in a round: each target in turn, for as many parts of the time
 * @property {number} repeats of a load beside which other programs used too much of the machine
 * @property {Times} whole
 * @property {number} warmRequests at least so many whole requests at 64 in flight before their window: targets that are slower would be measured colder
 * @property {Times} single one request, or one turn, at a time
 * @property {Times & { shape: Shape, streams: number }} tokens
 * @property {Times & { shape: Shape, streams: number }} streams
 * @property {{ shape: Shape, clients: number, together: number, warmClients: number }} leaving `together`: of them, that leave at the same moment; `warmClients` leave so before, uncounted
 * @property {{ shape: Shape, held: number, burst: number, withinMs: number, bursts: number, warmMs: number }} bursts `held` streams are open beside `burst` that begin together
 * @property {Times & { sessions: number }} turns
 * @property {number} warmTurns as `warmRequests`, of the turns at more than one in flight
 * @property {number} warmPages as `warmRequests`, of the pages of a log
 * @property {{ sessions: number, messages: number }} longConversations
 * @property {{ polls: number, measureMs: number }} polls
 * @property {Times & { sessions: number, perSecond: number }} events of event webhooks
 * @property {Times & { shape: Shape, readers: number }} slow clients that stop reading: opened within the warm-up
 * @property {Times & { perSecond: number }} steady requests at a rate
 * @property {{ whole: Shape, turn: Shape, long: Shape, medium: Shape, tools: Shape, reasoning: Shape }} shapes
 */

/** The model call of a durable turn takes so long. */
export const TURN_DELAY_MS = 20;

/** The same of an agent that writes preambles. */
export const PREAMBLE_DELAY_MS = 500;

/** Of event webhooks, by one worker. */
export const EVENTS_PER_SECOND = 500;

/** Of a page of a session's log: the most. */
export const PAGE_EVENTS = 1_000;

/** At which the ledger must keep up. */
export const STEADY_PER_SECOND = 500;

/** @param {Traffic} traffic @returns {Settings['shapes']} */
function shapesIn(traffic) {
  return {
    // One sentence: providers' own tests of speed are made so, and one chunk is the least that a streaming upstream can send. Switchyard always asks its
    // upstreams for streams.
    whole: { tokens: 1, perSecond: 0, delayMs: 0, traffic },
    turn: { tokens: 1, perSecond: 0, delayMs: TURN_DELAY_MS, traffic },
    // The same as `whole`, in an answer of a few paragraphs.
    long: { tokens: 200, perSecond: 0, delayMs: 0, traffic },
    medium: { tokens: 16, perSecond: 0, delayMs: 0, traffic },
    tools: { tokens: 16, perSecond: 0, delayMs: 0, traffic: 'tools' },
    reasoning: { tokens: 16, perSecond: 0, delayMs: 0, traffic: 'reasoning' },
  };
}

/** @param {Traffic} traffic @returns {Settings} */
export function fullSettings(traffic) {
  return {
    rounds: 3,
    windows: 4,
    repeats: 2,
    whole: { warmMs: 8_000, measureMs: 10_000 },
    warmRequests: 20_000,
    single: { warmMs: 2_000, measureMs: 6_000 },
    tokens: { shape: { tokens: 250, perSecond: 50, delayMs: 20, traffic }, streams: 200, warmMs: 6_000, measureMs: 10_000 },
    streams: { shape: { tokens: 60, perSecond: 10, delayMs: 20, traffic }, streams: 1_000, warmMs: 7_000, measureMs: 8_000 },
    leaving: { shape: { tokens: 600, perSecond: 10, delayMs: 20, traffic }, clients: 200, together: 50, warmClients: 1_000 },
    // The held streams take a third of a core, and a burst as much for two seconds.
    bursts: { shape: { tokens: 40, perSecond: 20, delayMs: 20, traffic }, held: 200, burst: 200, withinMs: 100, bursts: 5, warmMs: 4_000 },
    // Hundreds of turns do not make a process warm: a fifth of its CPU would be the compiler's.
    turns: { sessions: 2_000, warmMs: 20_000, measureMs: 12_000 },
    warmTurns: 6_000,
    warmPages: 3_000,
    longConversations: { sessions: 40, messages: 400 },
    polls: { polls: 10_000, measureMs: 30_000 },
    events: { sessions: 100, perSecond: EVENTS_PER_SECOND, warmMs: 8_000, measureMs: 20_000 },
    // More than the system's buffers and the gateway's limit for unread bytes take together.
    slow: { shape: { tokens: 4_000, perSecond: 0, delayMs: 0, traffic }, readers: 1_000, warmMs: 60_000, measureMs: 10_000 },
    steady: { perSecond: STEADY_PER_SECOND, warmMs: 5_000, measureMs: 30_000 },
    shapes: shapesIn(traffic),
  };
}

/** Shows that everything works; its figures are too short to be believed. @param {Traffic} traffic @returns {Settings} */
export function quickSettings(traffic) {
  return {
    rounds: 1,
    windows: 1,
    repeats: 0,
    whole: { warmMs: 1_000, measureMs: 1_500 },
    warmRequests: 0,
    single: { warmMs: 300, measureMs: 1_000 },
    tokens: { shape: { tokens: 75, perSecond: 50, delayMs: 20, traffic }, streams: 200, warmMs: 1_500, measureMs: 1_500 },
    streams: { shape: { tokens: 20, perSecond: 10, delayMs: 20, traffic }, streams: 1_000, warmMs: 2_500, measureMs: 2_000 },
    leaving: { shape: { tokens: 600, perSecond: 10, delayMs: 20, traffic }, clients: 200, together: 50, warmClients: 0 },
    bursts: { shape: { tokens: 20, perSecond: 20, delayMs: 20, traffic }, held: 200, burst: 200, withinMs: 100, bursts: 1, warmMs: 1_000 },
    turns: { sessions: 100, warmMs: 1_500, measureMs: 3_000 },
    warmTurns: 0,
    warmPages: 0,
    longConversations: { sessions: 4, messages: 400 },
    polls: { polls: 1_000, measureMs: 5_000 },
    events: { sessions: 100, perSecond: 100, warmMs: 2_000, measureMs: 3_000 },
    slow: { shape: { tokens: 1_000, perSecond: 0, delayMs: 0, traffic }, readers: 100, warmMs: 4_000, measureMs: 2_000 },
    steady: { perSecond: 50, warmMs: 1_000, measureMs: 3_000 },
    shapes: shapesIn(traffic),
  };
}

/** Between two windows a process cools little. */
const NEXT_WARM_MS = 500;

/**
 * The part of a round that one window is: the first has the whole warm-up, the later ones hardly any.
 *
 * @param {Settings} settings
 * @param {number} window from 0
 * @returns {Settings}
 */
export function windowSettings(settings, window) {
  const { whole, single, turns, windows } = settings;
  const partOf = (/** @type {Times} */ { warmMs, measureMs }) => ({ warmMs: window === 0 ? warmMs : NEXT_WARM_MS, measureMs: measureMs / windows });
  const parts = { whole: partOf(whole), single: partOf(single), turns: { ...turns, ...partOf(turns) } };
  if (window === 0) return { ...settings, ...parts };
  return { ...settings, ...parts, warmRequests: 0, warmTurns: 0 };
}

/** Every shape of a run: Switchyard has a model for each. @param {Settings} settings */
export function shapesOf({ shapes: { whole, long, medium, tools, reasoning }, tokens, streams, leaving, bursts, slow }) {
  return [whole, long, medium, tools, reasoning, tokens.shape, streams.shape, leaving.shape, bursts.shape, slow.shape];
}
