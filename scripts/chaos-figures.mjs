/**
 * Counters of a pass of the chaos suite.
 *
 * @typedef {object} Figures
 * @property {Record<string, number>} kills by role or store
 * @property {Record<string, number>} restarts of stores that ended in order
 * @property {number} zombiesRejected commits that were fenced, since another host owned their partitions
 * @property {number} zombieCommits commits that were accepted from a host that was not the owner
 * @property {number} longestFailOverMs
 * @property {number} longestDrainMs
 * @property {number} sessions
 * @property {number} messages
 * @property {number} turns
 * @property {number} cancelled turns that a later message cancelled
 * @property {number} joined messages that joined a running turn
 * @property {number} pages of a browser, each of which has shown every event of its session once
 * @property {number} sentAgain requests retried after a temporary refusal or a broken connection
 * @property {number} toolEvents injected tool results
 * @property {number} changedLogs sessions whose events were patched and deleted
 * @property {number} customers that were registered, with values of variables
 * @property {number} runs
 * @property {number} runsCancelled
 * @property {number} deliveries to a webhook
 * @property {number} deliveryRepeats posts of them that were answered, beyond the first of each
 * @property {number} callbacks repeated ones included
 * @property {number} events posted to event webhooks
 * @property {number} eventsAgain posts that repeat one of them, after a fault or a refusal
 * @property {number} toolCalls
 * @property {number} outcomesUnknown calls of the not repeatable tool that ended as `outcome_unknown`
 * @property {number} extraModelCalls repeated requests to the agent's model
 * @property {number} callsRedelivered model calls that a running worker got again, as after it had no CPU for seconds
 * @property {number} streams
 * @property {number} streamsWithError streams that ended with the error chunk
 * @property {number} streamsRefused calls refused before the first output
 * @property {number} streamsCut streams that broke with their gateway
 * @property {number} streamsResumed those of them that were resumed at another gateway
 * @property {number} extraStreamCalls
 * @property {number} streamsBilled streams with one row in the ledger
 * @property {number} rollBacksNoticed partitions with an owner that detected that the command log was replaced
 * @property {number} noticesLost events that were stored but not published, since the host died in between; all were read all the same
 */

/** @returns {Figures} */
export function newFigures() {
  return {
    kills: {},
    restarts: {},
    zombiesRejected: 0,
    zombieCommits: 0,
    longestFailOverMs: 0,
    longestDrainMs: 0,
    sessions: 0,
    messages: 0,
    turns: 0,
    cancelled: 0,
    joined: 0,
    pages: 0,
    sentAgain: 0,
    toolEvents: 0,
    changedLogs: 0,
    customers: 0,
    runs: 0,
    runsCancelled: 0,
    deliveries: 0,
    deliveryRepeats: 0,
    callbacks: 0,
    events: 0,
    eventsAgain: 0,
    toolCalls: 0,
    outcomesUnknown: 0,
    extraModelCalls: 0,
    callsRedelivered: 0,
    streams: 0,
    streamsWithError: 0,
    streamsRefused: 0,
    streamsCut: 0,
    streamsResumed: 0,
    extraStreamCalls: 0,
    streamsBilled: 0,
    rollBacksNoticed: 0,
    noticesLost: 0,
  };
}

/** Adds the counters of a pass to `all`; for `longest…` the maximum is kept. @param {Figures} all @param {Figures} pass */
export function addFigures(all, pass) {
  for (const name of /** @type {(keyof Figures)[]} */ (Object.keys(all))) {
    if (name === 'kills' || name === 'restarts') {
      for (const [role, times] of Object.entries(pass[name])) all[name][role] = (all[name][role] ?? 0) + times;
      continue;
    }
    all[name] = name.startsWith('longest') ? Math.max(all[name], pass[name]) : all[name] + pass[name];
  }
}

/** All counters as one line. @param {Figures} figures */
export function printFigures({ kills, restarts, longestFailOverMs, longestDrainMs, ...counts }) {
  /** @param {Record<string, number>} times */
  const list = (times) =>
    Object.entries(times)
      .map((entry) => entry.join(' '))
      .join(', ');
  const rest = Object.entries(counts).map(([name, count]) => `${name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)} ${count}`);
  const seconds = (/** @type {number} */ ms) => `${(ms / 1_000).toFixed(1)} s`;
  return [
    `killed: ${list(kills)}; restarted: ${list(restarts)}`,
    `longest fail-over ${seconds(longestFailOverMs)}, drain ${seconds(longestDrainMs)}`,
    rest.join(', '),
  ].join('; ');
}
