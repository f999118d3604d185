import { prepare } from '../scripts/prepare.mjs';

const ANSWERS = 400;
const WARM_UP = 100;
const TOKENS = 250;
const ROUNDS = 7;
const CALL = 'gen-gw1-01JD0000000000000000000000-0123456789abcdef';
const USAGE = { prompt_tokens: 20, completion_tokens: TOKENS, total_tokens: TOKENS + 20 };

/** Prints what a token costs our own code, in µs of one core: in the worker from part to frame, in the gateway from frame to event: `node bench/dialects.mjs`. */
async function main() {
  await prepare({ build: true });
  const code = await modules();
  const dialects = ['chat-completions', 'responses'].map((name) => ({ name, ...measured(name, code) }));
  for (const { name, workerMicros, gatewayMicros } of dialects) {
    console.log(`${name}: worker ${workerMicros.toFixed(3)} µs, gateway ${gatewayMicros.toFixed(3)} µs a token, of answers of ${TOKENS}`);
  }
  const [chat, response] = dialects.map(({ workerMicros, gatewayMicros }) => workerMicros + gatewayMicros);
  console.log(`a token as an event of a response costs ${((response ?? 0) / (chat ?? 1)).toFixed(2)} of one as a chunk`);
}

/** @param {string} name @param {Awaited<ReturnType<typeof modules>>} code */
function measured(name, { AnswerStream, OrderedFrames, addPart, emptyAnswer, eventsIn, surfaces }) {
  const surface = surfaces.get(name);
  if (surface === undefined) throw new Error(`there is no surface ${name}`);
  const head = { id: CALL, created: 1_763_700_000, model: 'bench/model', provider: 'Bench', request: { messages: [] }, now: () => 1_763_700_009 };
  /** @type {import('../shared/contracts/router/provider-part.ts').ProviderPart[]} */
  const parts = Array.from({ length: TOKENS }, (_, at) => ({ type: 'text-delta', text: ` word${at}` }));
  /** @param {Uint8Array[]} frames */
  const write = (frames) => {
    const tokens = { publish: (/** @type {string} */ _, /** @type {Uint8Array} */ frame) => void frames.push(frame) };
    const target = { surface, callId: CALL, attempt: 1, isLogged: false, statesTemplate: true, tokens, framesAt: 'tok.g.c' };
    const answer = emptyAnswer(false);
    const stream = new AnswerStream(target, head, answer);
    for (const part of parts) {
      addPart(answer, part);
      stream.parts([part]);
    }
    addPart(answer, { type: 'finish', reason: 'stop', nativeReason: 'stop' });
    stream.finish(answer, USAGE);
  };
  /** @param {Uint8Array[]} frames */
  const read = (frames) => {
    let events = 0;
    let bytes = 0;
    /** @param {Uint8Array} sse @param {boolean} isText */
    const relay = (sse, isText) => {
      if (isText) events += 1;
      else if (surface.isNumbered === true) events += eventsIn(sse);
      bytes += sse.length;
    };
    const ordered = new OrderedFrames(
      { callId: CALL, replay: async () => [], maxPendingBytes: 1e9, unstatedTemplate: () => null },
      {
        onReady: (frame) => frame.kind !== 'body' && relay(frame.sse, false),
        onText: (frame, template) => relay(template.eventOf(frame.seq, frame.text), true),
        onAttempt: () => true,
        onNothingLeft: () => {},
        onLost: () => {},
        onForeign: () => {},
        onOverflow: () => {},
        onReplayed: () => {},
      },
    );
    for (const frame of frames) ordered.receive(frame);
    return events + bytes;
  };
  /** @type {Uint8Array[]} */
  const frames = [];
  write(frames);
  return { workerMicros: micros(() => write([])), gatewayMicros: micros(() => read(frames)) };
}

/** Of a token; the median of the rounds. @param {() => unknown} work */
function micros(work) {
  for (let at = 0; at < WARM_UP; at += 1) work();
  const rounds = Array.from({ length: ROUNDS }, () => {
    const before = process.cpuUsage();
    for (let at = 0; at < ANSWERS; at += 1) work();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / ANSWERS / TOKENS;
  });
  return rounds.sort((left, right) => left - right)[Math.floor(ROUNDS / 2)] ?? 0;
}

async function modules() {
  const dist = (/** @type {string} */ path) => new URL(`../dist/${path}`, import.meta.url).href;
  /** @type {typeof import('../services/router-worker/call/answer-stream.ts')} */
  const { AnswerStream } = await import(dist('services/router-worker/call/answer-stream.js'));
  /** @type {typeof import('../bus/messages/ordered-frames.ts')} */
  const { OrderedFrames } = await import(dist('bus/messages/ordered-frames.js'));
  /** @type {typeof import('../bus/messages/frame.ts')} */
  const { eventsIn } = await import(dist('bus/messages/frame.js'));
  /** @type {typeof import('../shared/surfaces/answer.ts')} */
  const { addPart, emptyAnswer } = await import(dist('shared/surfaces/answer.js'));
  /** @type {typeof import('../shared/surfaces/surfaces.ts')} */
  const { surfaces } = await import(dist('shared/surfaces/surfaces.js'));
  return { AnswerStream, OrderedFrames, addPart, emptyAnswer, eventsIn, surfaces };
}

await main();
