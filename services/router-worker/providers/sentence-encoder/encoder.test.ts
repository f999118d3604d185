import type { Worker } from 'node:worker_threads';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { Encoder } from './encoder.ts';

const WAIT = { timeout: 60_000, interval: 20 };
const NEVER = new AbortController().signal;
const UNAVAILABLE = { code: 'router.provider_unavailable' };

/** In place of the model: a vector of the thread and of the texts that it has at once, and texts with faults. */
const program = new URL(
  `data:text/javascript,${encodeURIComponent(`
  import { setImmediate, setTimeout } from 'node:timers/promises';
  import { parentPort, threadId } from 'node:worker_threads';
  let texts = 0;
  parentPort.on('message', async ({ text }) => {
    if (text === 'exits') process.exit(1);
    if (text === 'throws') throw new Error('no vector');
    if (text === 'hangs') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    texts += 1;
    await (text === 'slow' ? setTimeout(200) : setImmediate());
    parentPort.postMessage({ vector: Float32Array.of(threadId, texts), tokens: text.length });
    texts -= 1;
  });
`)}`,
);

const workers: Worker[] = [];
const onWorker = (worker: Worker) => void workers.push(worker);
beforeAll(() => void process.on('worker', onWorker));
afterAll(() => void process.off('worker', onWorker));

const opened: Encoder[] = [];
function open(limits: ConstructorParameters<typeof Encoder>[0] = {}): Encoder {
  const encoder = new Encoder({ program, ...limits });
  opened.push(encoder);
  return encoder;
}
afterEach(async () => {
  await Promise.all(opened.splice(0).map((encoder) => encoder.close()));
  await vi.waitFor(() => expect(workers.filter(isRunning)).toEqual([]), WAIT);
  workers.length = 0;
});

/** Node gives a thread that has ended this id. */
function isRunning({ threadId }: Worker): boolean {
  return threadId !== -1;
}

async function threadOf(encoder: Encoder, text = 'text'): Promise<number> {
  const { vector } = await encoder.encode(text, NEVER);
  return vector[0] ?? 0;
}

it('has no thread before the first text, and then one, which gets the texts one after the other', async () => {
  const encoder = open();
  expect(workers).toEqual([]);
  const texts = Array.from({ length: 20 }, (_, index) => 'x'.repeat(index + 1));

  const encoded = await Promise.all(texts.map((text) => encoder.encode(text, new AbortController().signal)));

  expect(encoded.map(({ tokens }) => tokens)).toEqual(texts.map(({ length }) => length));
  expect(encoded.map(({ vector }) => vector[1])).toEqual(texts.map(() => 1));
  expect(workers).toHaveLength(1);
});

describe('a thread', () => {
  it.each(['exits', 'throws'])('that %s fails the text that it had, and another one encodes the next', async (text) => {
    const encoder = open();
    const first = await threadOf(encoder);
    const failing = encoder.encode(text, NEVER);
    const next = threadOf(encoder);

    await expect(failing).rejects.toMatchObject(UNAVAILABLE);
    expect(await next).not.toBe(first);
  });

  it('that hangs is ended after the time of a text, and another one encodes the next', async () => {
    const encoder = open({ textMs: 500 });

    await expect(encoder.encode('hangs', NEVER)).rejects.toMatchObject({ ...UNAVAILABLE, details: { reason: 'timeout' } });
    const [hung] = workers;
    // The start of a thread may take longer than so short a time.
    const next = await vi.waitFor(() => threadOf(encoder), WAIT);
    await vi.waitFor(() => expect(workers.filter(isRunning).map(({ threadId }) => threadId)).toEqual([next]), WAIT);
    expect(workers).toContain(hung);
  });

  it('ends after a time without a text, and not before the end of one that takes longer', async () => {
    const encoder = open({ idleMs: 20 });
    const [first, second] = [await threadOf(encoder, 'slow'), await threadOf(encoder, 'slow')];
    await vi.waitFor(() => expect(workers.filter(isRunning)).toEqual([]), WAIT);

    expect(await threadOf(encoder)).not.toBe(first);
    expect(second).toBeGreaterThan(0);
  });

  it('ends at the close, in the middle of a text; that one and those that wait fail, as later ones do', async () => {
    const encoder = open();
    const texts = ['hangs', 'waits'].map((text) => encoder.encode(text, NEVER));
    const failed = Promise.all(texts.map((text) => expect(text).rejects.toMatchObject(UNAVAILABLE)));

    await encoder.close();

    await failed;
    expect(workers.filter(isRunning)).toEqual([]);
    await expect(encoder.encode('later', NEVER)).rejects.toMatchObject(UNAVAILABLE);
    expect(workers).toHaveLength(1);
  });
});

describe('an abort', () => {
  const left = new Error('left');

  it('before the start, during the text and while it waits rejects at once with its reason', async () => {
    const encoder = open();
    await expect(encoder.encode('text', AbortSignal.abort(left))).rejects.toBe(left);
    expect(workers).toEqual([]);

    const controller = new AbortController();
    const texts = ['hangs', 'waits'].map((text) => encoder.encode(text, controller.signal));
    controller.abort(left);

    await Promise.all(texts.map((text) => expect(text).rejects.toBe(left)));
  });

  it('makes room for another text', async () => {
    const encoder = open({ waiting: 1 });
    const controller = new AbortController();
    const running = encoder.encode('hangs', NEVER);
    const waiting = encoder.encode('waits', controller.signal);
    await expect(encoder.encode('more', NEVER)).rejects.toMatchObject({ code: 'router.provider_overloaded' });
    controller.abort(left);
    await expect(waiting).rejects.toBe(left);

    const next = encoder.encode('next', NEVER);
    const failed = Promise.all([running, next].map((text) => expect(text).rejects.toMatchObject(UNAVAILABLE)));

    await encoder.close();
    await failed;
  });
});
