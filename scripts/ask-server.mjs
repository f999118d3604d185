import { exitCodes, ScriptError } from './run-script.mjs';

/** Of other characters fetch's error would quote the text. */
const HEADER_TEXT = /^[\t\x20-\x7e\x80-\xff]*$/;
/** @typedef {import('./find-running.mjs').Server} Server */
/** @typedef {(text: string) => void} Print */

/** Long-poll duration; 504 when there is no event. */
const WAIT_SECONDS = 20;

/**
 * Streams one completion from the router and prints its text as it arrives.
 *
 * @param {Server} server
 * @param {{ text: string, model: string | undefined, print: Print }} question model: undefined is the router's own choice
 * @throws {ScriptError} when it is refused, fails midway, or ends incomplete
 */
export async function askRouter(server, { text, model, print }) {
  const body = { stream: true, messages: [{ role: 'user', content: text }], ...(model === undefined ? {} : { model }) };
  const response = await send(server, 'POST', '/api/v1/chat/completions', body);
  let isDone = false;
  let isPrinted = false;
  const fail = (/** @type {string} */ message) => {
    if (isPrinted) print('\n');
    throw new ScriptError(message);
  };
  try {
    for await (const data of eventsOf(response)) {
      isDone = data === '[DONE]';
      const { choices = [], error = null } = isDone ? {} : JSON.parse(data);
      if (error !== null) fail(`The answer failed: ${error.message}`);
      const delta = choices[0]?.delta?.content ?? '';
      if (delta === '') continue;
      print(delta);
      isPrinted = true;
    }
  } catch (error) {
    if (error instanceof ScriptError) throw error;
    fail(`The connection broke in the middle of the answer (${reasonOf(error)}).`);
  }
  if (!isDone) fail('The stream ended before the answer was complete.');
  print('\n');
}

/**
 * Creates a session, posts one message and prints the agent's messages until the turn ends.
 *
 * @param {Server} server
 * @param {{ text: string, print: Print }} question
 * @throws {ScriptError} when it is refused, or the turn fails
 */
export async function askAgent(server, { text, print }) {
  const session = await json(await send(server, 'POST', '/sessions', {}));
  const path = `/sessions/${session.id}/events`;
  const { offset } = await json(await send(server, 'POST', path, { kind: 'user_message', text }));
  for (let next = typeof offset === 'number' ? offset + 1 : 0; ; ) {
    for (const event of await readNewEvents(server, `${path}?min_offset=${next}&wait_for_data=${WAIT_SECONDS}`)) {
      next = event.offset + 1;
      if (event.kind === 'assistant_message' || event.kind === 'preamble') print(`${event.text}\n`);
      if (event.kind !== 'status') continue;
      if (event.status === 'error') throw new ScriptError(`The turn failed: ${event.error_detail ?? `see the log of ${server.starter}`}`);
      if (event.status === 'ready') return;
    }
  }
}

/** @param {Server} server @param {string} path @returns {Promise<any[]>} */
async function readNewEvents(server, path) {
  const response = await send(server, 'GET', path, null, [504]);
  return response.status === 504 ? [] : await json(response);
}

/**
 * @param {Server} server @param {string} method @param {string} path @param {object | null} body @param {readonly number[]} expected statuses beside 2xx
 * @throws {ScriptError}
 */
async function send(server, method, path, body, expected = []) {
  const { key, keyLocation, starter } = server;
  if (!HEADER_TEXT.test(key)) throw new ScriptError(`The key, which is ${keyLocation}, contains a character that is not allowed in an HTTP header: remove it.`);
  const headers = { authorization: `Bearer ${key}`, ...(body === null ? {} : { 'content-type': 'application/json' }) };
  const { url, response } = await fetchFromAny(server, path, { method, headers, ...(body === null ? {} : { body: JSON.stringify(body) }) });
  if (response.ok || expected.includes(response.status)) return response;
  const text = await response.text();
  if (response.status === 401)
    throw new ScriptError(
      `${url} rejects the key (401), which is ${keyLocation}: ${messageIn(text)}\nSet the key with which ${starter} was started.`,
      exitCodes.refused,
    );
  throw new ScriptError(`${url} answered ${response.status}: ${messageIn(text)}`);
}

/**
 * The response of the first address that can be reached. A write is sent once: behind a connection that has broken, it may have been accepted.
 *
 * @param {Server} server @param {string} path @param {RequestInit} request
 * @returns {Promise<{ url: string, response: Response }>}
 * @throws {ScriptError}
 */
async function fetchFromAny({ urls, starter, isOfCluster }, path, request) {
  /** @type {string[]} */
  const failures = [];
  for (const url of urls) {
    try {
      return { url, response: await fetch(`${url}${path}`, request) };
    } catch (error) {
      const reason = reasonOf(error);
      failures.push(`${url} can't be reached (${reason})`);
      if (request.method !== 'GET' && reason !== 'ECONNREFUSED') break;
    }
  }
  if (failures.length === 0) throw new ScriptError(`This cluster has no such server: start one with other counts (${starter}).`, exitCodes.unreachable);
  const advice = isOfCluster ? `the process may have ended, and is not started again. Restart ${starter}.` : `${starter} may have stopped. Start it again.`;
  throw new ScriptError(`${failures.join(', ')}: ${advice}`, exitCodes.unreachable);
}

/** @param {Response} response @returns {Promise<any>} */
async function json(response) {
  return await response.json();
}

/** Data of each SSE event. @param {Response} response @returns {AsyncGenerator<string>} */
async function* eventsOf({ body }) {
  if (body === null) return;
  const decoder = new TextDecoder();
  let rest = '';
  for await (const bytes of body) {
    const blocks = (rest + decoder.decode(bytes, { stream: true })).split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const lines = block.split('\n').filter((line) => line.startsWith('data:'));
      if (lines.length > 0) yield lines.map((line) => line.slice('data:'.length).trim()).join('\n');
    }
  }
}

/** The router's `{error: {message}}`, the agent's `{error}`. @param {string} text */
function messageIn(text) {
  try {
    const { error } = JSON.parse(text);
    return typeof error === 'string' ? error : error.message;
  } catch {
    return text.slice(0, 200);
  }
}

/** fetch's own message is generic; its cause has the reason. @param {unknown} error */
function reasonOf(error) {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (cause instanceof Error) return 'code' in cause ? String(cause.code) : cause.message;
  return error.message;
}
