import { setTimeout as delay } from 'node:timers/promises';

/** @typedef {import('./talk-server.mjs').TalkServer} TalkServer */
/** @typedef {import('./open-chromium.mjs').Page} Page */

const DELTAS = 2_000;
const DELTAS_PER_SECOND = 100;
/** Before the first that counts: the page compiles its code meanwhile. */
const UNCOUNTED = 200;
/** An hour with two questions a minute. */
const TURNS = 120;
const DELTAS_OF_A_TURN = 100;
/** Of the first turns, whose code and styles stay. */
const TURNS_BEFORE = 5;
const BYTES_PER_MB = 1_000_000;

/**
 * Notes when the number of the newest word is painted: in the task behind a frame in which it is in the document. Text, since it runs in the page.
 */
const WATCH_WORDS = `
  globalThis.painted = [];
  const look = () => {
    const found = /w(\\d+)\\s*$/.exec(document.querySelector('.message.open .text')?.textContent ?? '');
    const count = found === null ? 0 : Number(found[1]) + 1;
    if (count > painted.length) {
      const channel = new MessageChannel();
      channel.port1.onmessage = () => {
        const now = performance.timeOrigin + performance.now();
        while (painted.length < count) painted.push(now);
      };
      channel.port2.postMessage(null);
    }
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
`;

/**
 * From writing a delta to the connection until it is painted, at 100 deltas a second.
 *
 * @param {Page} page that shows the server's session @param {TalkServer} server
 * @returns {Promise<number[]>} ms of each
 */
export async function deltasToPixels(page, server) {
  await page.evaluate(WATCH_WORDS);
  /** @type {number[]} */
  const sentAtMs = [];
  const startMs = now();
  for (let seq = 0; seq < DELTAS; seq += 1) {
    await delay(Math.max(0, startMs + (seq * 1_000) / DELTAS_PER_SECOND - now()));
    sentAtMs.push(now());
    server.send('delta', { message_id: 'evt_words', seq, text: `w${seq} ` });
  }
  await page.waitForFunction(`painted.length === ${DELTAS}`);
  const paintedAtMs = /** @type {number[]} */ (await page.evaluate('painted'));
  server.append({ kind: 'assistant_message', id: 'evt_words', source: 'ai_agent', text: 'done' });
  return paintedAtMs.map((atMs, index) => atMs - (sentAtMs[index] ?? Number.NaN)).slice(UNCOUNTED);
}

/**
 * What an hour of talk adds to the page's heap: 120 turns with replies of 100 deltas, as fast as the page shows them.
 *
 * @param {Page} page @param {TalkServer} server @returns {Promise<{ beforeMb: number, afterMb: number }>}
 */
export async function heapOverAnHour(page, server) {
  for (let turn = 0; turn < TURNS_BEFORE; turn += 1) await talk(page, server, turn);
  const beforeMb = await heapMb(page);
  for (let turn = TURNS_BEFORE; turn < TURNS_BEFORE + TURNS; turn += 1) await talk(page, server, turn);
  return { beforeMb, afterMb: await heapMb(page) };
}

/** @param {Page} page @param {TalkServer} server @param {number} turn */
async function talk(page, server, turn) {
  const replyId = `evt_reply_${turn}`;
  server.append({ kind: 'user_message', id: `evt_question_${turn}`, source: 'customer', text: `Question ${turn}: how long is the **warranty**?` });
  for (const status of ['acknowledged', 'processing', 'typing']) server.append({ kind: 'status', id: `evt_${status}_${turn}`, status });
  for (let seq = 0; seq < DELTAS_OF_A_TURN; seq += 1) {
    server.send('delta', { message_id: replyId, seq, text: `word ${seq} ` });
    if (seq % 10 === 0) await delay(10);
  }
  const text = Array.from({ length: DELTAS_OF_A_TURN }, (_, seq) => `word ${seq}`).join(' ');
  server.append({ kind: 'assistant_message', id: replyId, source: 'ai_agent', text });
  server.append({ kind: 'status', id: `evt_ready_${turn}`, status: 'ready' });
  await page.waitForFunction(`[...document.querySelectorAll('.message.customer')].at(-1)?.textContent.includes('Question ${turn}:')`);
  await page.locator('[role=status][data-status=ready]').waitFor();
}

/** Behind a collection of garbage. @param {Page} page */
async function heapMb(page) {
  const debug = await page.context().newCDPSession(page);
  await debug.send('HeapProfiler.collectGarbage');
  const { usedSize } = await debug.send('Runtime.getHeapUsage');
  await debug.detach();
  return usedSize / BYTES_PER_MB;
}

function now() {
  return performance.timeOrigin + performance.now();
}
