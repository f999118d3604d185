/** Precedes the id of a stream in a request to the upstream, which puts the id into each token, so that tokens of other streams are detected. */
const MARK = /bench-(\d+)-/;

const HEAD_OF_STREAM = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n';
const BEFORE_CONTENT = 'data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1,"model":"bench","choices":[{"index":0,"delta":{';
const AFTER_CONTENT = '"},"finish_reason":null}]}\n\n';
const FINISH = `${BEFORE_CONTENT}},"finish_reason":"stop"}]}\n\n`;
const USAGE_HEAD = 'data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1,"model":"bench","choices":[],"usage":';

/** @param {number} id of the stream, unique in the run */
export function markOf(id) {
  return `bench-${id}-`;
}

/** @param {string} body the beginning of a request's @returns {number} 0 without an id */
export function markedId(body) {
  return Number(MARK.exec(body)?.[1] ?? 0);
}

/**
 * Text of one token: the id of its stream, and its number.
 *
 * @param {number} id
 * @param {number} number from 0
 */
function tokenText(id, number) {
  return `${id}.${number} `;
}

/** The bytes of a whole answer. @param {number} tokens */
export function wholeAnswer(tokens) {
  const content = Array.from({ length: tokens }, (_, number) => tokenText(0, number)).join('');
  const choice = { index: 0, message: { role: 'assistant', content, refusal: null }, logprobs: null, finish_reason: 'stop' };
  const body = JSON.stringify({ id: 'chatcmpl-bench', object: 'chat.completion', created: 1, model: 'bench', choices: [choice], usage: usageOf(tokens) });
  return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
}

/** The beginning of a stream, before any token. */
export function streamHead() {
  return HEAD_OF_STREAM;
}

/** @param {number} id @param {number} number */
export function streamToken(id, number) {
  const role = number === 0 ? '"role":"assistant",' : '';
  return chunk(`${BEFORE_CONTENT}${role}"content":"${tokenText(id, number)}${AFTER_CONTENT}`);
}

/** @param {number} tokens @param {boolean} includeUsage whether the request asked for it */
export function streamEnd(tokens, includeUsage) {
  const usage = includeUsage ? `${USAGE_HEAD}${JSON.stringify(usageOf(tokens))}}\n\n` : '';
  return `${chunk(`${FINISH}${usage}data: [DONE]\n\n`)}0\r\n\r\n`;
}

/** @param {number} tokens */
function usageOf(tokens) {
  return { prompt_tokens: 9, completion_tokens: tokens, total_tokens: tokens + 9 };
}

/** @param {string} text without characters of more than one byte */
function chunk(text) {
  return `${text.length.toString(16)}\r\n${text}\r\n`;
}
