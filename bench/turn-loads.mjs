import { addressOf, requestBytes } from './http/request.mjs';
import { turns } from './load/turns.mjs';
import { wholeRequests } from './load/whole-requests.mjs';
import { ofLoop } from './loop-result.mjs';

/** @typedef {import('./loads.mjs').Setting} Setting */
/** @typedef {{ inFlight: number, sessions: number, messages?: number } & import('./load/closed-loop.mjs').LoopLoad['times']} TurnsHow `messages` are in each session before its first turn */

/** In flight of a few conversations, so that a long one is not read while it waits for others. */
const CONVERSATIONS = 4;
/** So many that a few turns each do not make them long. */
const SHORT_SESSIONS = 400;
const SHORT_MESSAGES = 10;

/** Durable turns, by name. @type {Record<string, import('./loads.mjs').Load>} */
export const turnLoads = {
  turns16: (setting) => durableTurns(setting, { inFlight: 16, ...whenWarm(setting) }),
  turn1: (setting) => durableTurns(setting, { inFlight: 1, sessions: 50, ...setting.settings.single }),
  turns64OneHost: (setting) => durableTurns(setting, { inFlight: 64, ...whenWarm(setting) }),
  turns64TwoHosts: (setting) => durableTurns(setting, { inFlight: 64, ...whenWarm(setting) }),
  turnsShort: (setting) => durableTurns(setting, { inFlight: CONVERSATIONS, sessions: SHORT_SESSIONS, messages: SHORT_MESSAGES, ...setting.settings.single }),
  turnsLong: (setting) => durableTurns(setting, { inFlight: CONVERSATIONS, ...setting.settings.longConversations, ...setting.settings.single }),
};

/** @param {Setting} setting */
function whenWarm({ settings: { turns: how, warmTurns } }) {
  return { ...how, warmCount: warmTurns };
}

/** @param {Setting} setting @param {TurnsHow} how */
export async function durableTurns({ target, hooks = {} }, { inFlight, sessions, messages = 0, ...times }) {
  const loop = { inFlight, times, roots: target.facts.roots, hooks };
  const { agentUrl, turnUrl, keys } = target.facts;
  if (turnUrl === undefined)
    return ofLoop(await turns({ ...loop, sessions, messages, server: { address: addressOf(agentUrl ?? ''), key: keys?.agentKey ?? '' } }));
  const address = addressOf(turnUrl);
  const request = requestBytes({ address, path: new URL(turnUrl).pathname, body: JSON.stringify({ text: 'How long is the warranty of my machine?' }) });
  return ofLoop(await wholeRequests({ ...loop, address, request, isRight: (text) => text.includes('0.0 ') }));
}
