import { createServer } from 'node:net';
import { MessageReader } from '../http/message-reader.mjs';
import { monotonicMs } from '../monotonic.mjs';
import { shapeName, shapeOf } from '../shape.mjs';
import { answersIn, markedId } from './answers.mjs';
import { engineAnswer, engineDelayOf } from './engine-answers.mjs';
import { SharedTimer } from './shared-timer.mjs';

/** @typedef {{ requests: number, openConnections: number, streamedTokens: number, aborts: { id: number, atMs: number }[] }} UpstreamCounts since the last time they were asked for */
/** @typedef {import('../shape.mjs').Shape} Shape */

/** The id stands near the beginning of a prompt, so a large prompt need not be searched whole. */
const SEARCHED_BYTES = 64 * 1_024;
/** A stream that is late by more than this in one tick stays late: its schedule goes on from there. */
const MAX_CATCH_UP = 100;

const timer = new SharedTimer();
/** By the name of their shape. @type {Map<string, string>} */
const wholeAnswers = new Map();
/** @type {UpstreamCounts} */
let counts = { requests: 0, openConnections: 0, streamedTokens: 0, aborts: [] };
let openConnections = 0;

/** A model provider of raw sockets and prebuilt texts: cheap enough not to be the bottleneck. */
const server = createServer({ noDelay: true }, (socket) => {
  openConnections += 1;
  const request = { path: '', isStream: false, includeUsage: false, body: '' };
  /** @type {{ id: number, abort: () => void } | null} */
  let answering = null;
  const reader = new MessageReader({
    onHead: ({ startLine }) => {
      request.path = startLine.split(' ')[1] ?? '';
      request.body = '';
    },
    onBody: (bytes) => {
      if (request.body.length < SEARCHED_BYTES) request.body += bytes.toString('latin1', 0, SEARCHED_BYTES);
    },
    onEnd: () => {
      counts.requests += 1;
      const shape = shapeOf(request.path);
      const id = markedId(request.body);
      const done = () => {
        answering = null;
      };
      const engineDelayMs = engineDelayOf(request.path);
      if (engineDelayMs !== null) answering = { id, abort: answerQuestion(socket, { delayMs: engineDelayMs, body: request.body, done }) };
      else if (shape === null) socket.end('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n');
      else answering = { id, abort: answer(socket, { shape, id, body: request.body, done }) };
    },
  });
  const onGone = () => {
    if (answering === null) return;
    counts.aborts.push({ id: answering.id, atMs: monotonicMs() });
    answering.abort();
    answering = null;
  };
  socket.on('data', (bytes) => reader.push(bytes));
  socket.on('error', () => {}); // a reset counts as a disconnect, and `close` follows
  socket.on('end', onGone);
  socket.on('close', () => {
    openConnections -= 1;
    onGone();
  });
});

/**
 * @param {import('node:net').Socket} socket
 * @param {{ shape: Shape, id: number, body: string, done: () => void }} request
 * @returns {() => void} stops it
 */
function answer(socket, { shape, id, body, done }) {
  const isStream = /"stream": ?true/.test(body);
  if (isStream && shape.perSecond > 0) return stream(socket, { shape, id, body, done });
  const send = () => {
    done();
    socket.write(isStream ? wholeStream(shape, id, body) : whole(shape));
  };
  if (shape.delayMs === 0) {
    send();
    return () => {};
  }
  const timer = setTimeout(send, shape.delayMs);
  return () => clearTimeout(timer);
}

/** @param {import('node:net').Socket} socket @param {{ delayMs: number, body: string, done: () => void }} request @returns {() => void} stops it */
function answerQuestion(socket, { delayMs, body, done }) {
  const timer = setTimeout(() => {
    done();
    socket.write(engineAnswer(body));
  }, delayMs);
  return () => clearTimeout(timer);
}

/** @param {import('node:net').Socket} socket @param {{ shape: Shape, id: number, body: string, done: () => void }} request */
function stream(socket, { shape: { tokens, perSecond, delayMs, traffic }, id, body, done }) {
  const answers = answersIn[traffic];
  const asked = askedIn(body);
  const everyMs = 1_000 / perSecond;
  let next = 0;
  let firstAtMs = monotonicMs() + delayMs;
  socket.write(answers.head());
  const scheduled = {
    dueMs: firstAtMs,
    /** @param {number} nowMs */
    run: (nowMs) => {
      const due = Math.min(tokens, Math.floor((nowMs - firstAtMs) / everyMs) + 1);
      if (due - next > MAX_CATCH_UP) firstAtMs = nowMs - next * everyMs;
      let text = '';
      for (const end = Math.min(due, next + MAX_CATCH_UP); next < end; next += 1) text += answers.token(id, next, asked);
      if (next < tokens) {
        socket.write(text);
        return firstAtMs + next * everyMs;
      }
      counts.streamedTokens += tokens;
      done();
      socket.write(text + answers.end(tokens, asked));
      return null;
    },
  };
  timer.add(scheduled);
  return () => timer.remove(scheduled);
}

/** @param {Shape} shape */
function whole(shape) {
  const name = shapeName(shape);
  const text = wholeAnswers.get(name) ?? answersIn[shape.traffic].whole(shape.tokens);
  wholeAnswers.set(name, text);
  return text;
}

/** @param {Shape} shape @param {number} id @param {string} body */
function wholeStream({ tokens, traffic }, id, body) {
  const answers = answersIn[traffic];
  const asked = askedIn(body);
  const parts = Array.from({ length: tokens }, (_, number) => answers.token(id, number, asked));
  return `${answers.head()}${parts.join('')}${answers.end(tokens, asked)}`;
}

/** @param {string} body */
function askedIn(body) {
  return { usage: /"include_usage": ?true/.test(body) };
}

process.on('message', () => {
  process.send?.({ ...counts, openConnections });
  counts = { requests: 0, openConnections: 0, streamedTokens: 0, aborts: [] };
});
process.on('disconnect', () => process.exit()); // its parent has ended
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.send?.({ port: typeof address === 'object' ? address?.port : 0 });
});
