import { addressOf } from './http/request.mjs';
import { agentClient, createSessions } from './load/agent-client.mjs';
import { closedLoop } from './load/closed-loop.mjs';
import { commitsOf } from './load/commits.mjs';
import { Failures } from './load/failures.mjs';
import { snapshotBytesIn } from './load/long-conversation.mjs';
import { policyPromptMs } from './load/policy-prompt.mjs';
import { turns } from './load/turns.mjs';

/** @typedef {import('./loads.mjs').Setting} Setting */
/** @typedef {import('./loads.mjs').Result} Result */

/** In which the snapshot is read. */
const TURNS = 60;
/** More than fit into the time. */
const PREAMBLES = 100;

/** Loads of an agent with policies and a routine, by name. @type {Record<string, import('./loads.mjs').Load>} */
export const engineLoads = {
  engineTurns16: (setting) => engineTurns(setting, { inFlight: 16, ...setting.settings.turns }),
  engineTurn1: (setting) => engineTurns(setting, { inFlight: 1, sessions: 50, ...setting.settings.single }),
  preambles,
  enginePrompt: async () => figuresOf({ promptMs: await policyPromptMs() }),
  engineSnapshot: async ({ target: { facts } }) => {
    if (facts.databaseUrl === undefined) throw new Error('the target has no database');
    return figuresOf({ bytes: await snapshotBytesIn({ server: serverOf(facts), turns: TURNS, databaseUrl: facts.databaseUrl }) });
  },
};

/**
 * One message at a time, each to a session of its own, until its preamble is there: later turns of a session may have none.
 *
 * @param {Setting} setting
 * @returns {Promise<Result>}
 */
async function preambles({ target: { facts }, settings: { single } }) {
  const server = serverOf(facts);
  const sessions = await createSessions(server, PREAMBLES);
  const openSlot = () => {
    const client = agentClient(server);
    return { run: () => client.awaitPreamble(sessions.shift() ?? ''), leave: client.leave };
  };
  const { count, p50Ms, p99Ms, cpuByProcess, failures } = await closedLoop({ inFlight: 1, openSlot, times: single, roots: facts.roots });
  return { figures: { p50Ms, p99Ms }, cpuByProcess, count, failures };
}

/**
 * The check after a turn belongs to it: what was begun before the window, and ends in it, is as much as what ends behind it.
 *
 * @param {Setting} setting
 * @param {{ inFlight: number, sessions: number } & import('./settings.mjs').Times} how
 * @returns {Promise<Result>}
 */
async function engineTurns({ target, upstream, hooks: outer }, { inFlight, sessions, warmMs, measureMs }) {
  let [commits, requests] = [0, 0];
  const hooks = {
    onBegin: async () => {
      await outer?.onBegin?.();
      await upstream.counts();
      commits = (await commitsOf(target)).commits;
    },
    onEnd: async () => {
      await outer?.onEnd?.();
      requests = (await upstream.counts()).requests;
      commits = (await commitsOf(target)).commits - commits;
    },
  };
  const measured = await turns({ server: serverOf(target.facts), sessions, inFlight, times: { warmMs, measureMs }, roots: target.facts.roots, hooks });
  const { count, cpuPerThousand, perSecond, p50Ms, p99Ms, cpuByProcess, failures } = measured;
  return {
    figures: { cpuPerThousand, perSecond, p50Ms, p99Ms, commitsPerTurn: commits / count, callsPerTurn: requests / count },
    cpuByProcess,
    count,
    failures,
  };
}

/** @param {import('./targets/serve-target.mjs').Facts} facts */
function serverOf({ agentUrl = '', keys }) {
  return { address: addressOf(agentUrl), key: keys?.agentKey ?? '' };
}

/** @param {Record<string, number | null>} figures @returns {Result} */
function figuresOf(figures) {
  return { figures, cpuByProcess: {}, count: 1, failures: new Failures() };
}
