import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import type { TokenStream } from './bus.ts';
import { DRIVER_PREFIX, MAX_FRAME_BYTES, withLargeFrames } from './large-frames.ts';

const SUBJECT = 'tok.gw1.call1';

/** A token stream that stores its messages, after `change` has dropped, reordered or repeated some. */
function wire(change: (messages: Uint8Array[]) => Uint8Array[] = (messages) => messages) {
  const sent: Uint8Array[] = [];
  const inner: TokenStream = {
    publish: (_subject, frame) => sent.push(frame),
    subscribe: (_pattern, handler) => {
      for (const message of change(sent)) handler(SUBJECT, message);
      return { stop: async () => {}, ready: async () => {} };
    },
    replay: async () => change(sent),
  };
  const stream = withLargeFrames(inner);
  return { sent, stream };
}

/** Live and replayed frames, which must be equal. */
async function received({ stream }: ReturnType<typeof wire>): Promise<string[]> {
  const live: Uint8Array[] = [];
  stream.subscribe(SUBJECT, (_subject, frame) => live.push(frame));
  const retained = await stream.replay(SUBJECT);
  expect(retained.map(hashOf)).toEqual(live.map(hashOf));
  return live.map(hashOf);
}

/** Compared instead of the bytes: millions of them take seconds. */
function hashOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

const LARGE = Buffer.alloc(3_000_000, 'frame ');
const SMALL = Buffer.from('cid: call1.1.1\ndata: {}\n\n');

it('sends a small frame unchanged, without a copy', async () => {
  const line = wire();
  line.stream.publish(SUBJECT, SMALL);

  expect(line.sent[0]).toBe(SMALL);
});

it('DESIGN 3: no message is over 512 KiB: larger frames are split, and joined again between small ones', async () => {
  const line = wire();
  for (const frame of [SMALL, LARGE, SMALL]) line.stream.publish(SUBJECT, frame);

  expect(Math.max(...line.sent.map((message) => message.byteLength))).toBeLessThanOrEqual(512 * 1024);
  expect(await received(line)).toEqual([SMALL, LARGE, SMALL].map(hashOf));
});

it.each([
  ['nothing', Buffer.alloc(0)],
  ['a zero byte', Buffer.from([0])],
  ['what begins as messages of drivers do', Buffer.from([1, 0, 1, 97])],
  ['what looks like a part', Buffer.from('\u000001234567 1 2\nx', 'latin1')],
  ['a large frame of zeros', Buffer.alloc(600_000)],
])('distinguishes %s from its own marks', async (_case, frame) => {
  const line = wire();
  line.stream.publish(SUBJECT, frame);

  expect(await received(line)).toEqual([frame].map(hashOf));
  expect(line.sent.map(([first]) => first)).not.toContain(DRIVER_PREFIX);
});

it.each([0, 1, 5])('drops a frame whose part %d is lost, and delivers the next', async (lost) => {
  const line = wire((messages) => messages.filter((_, index) => index !== lost));
  line.stream.publish(SUBJECT, LARGE);
  line.stream.publish(SUBJECT, SMALL);
  line.stream.publish(SUBJECT, LARGE);

  expect(await received(line)).toEqual([SMALL, LARGE].map(hashOf));
});

it('separates the interleaved frames of two workers', async () => {
  const other = Buffer.alloc(3_000_000, 'other ');
  const half = Math.ceil(LARGE.length / (512 * 1024 - 256));
  const line = wire((messages) => messages.slice(0, half).flatMap((message, index) => [message, messages[half + index] ?? message]));
  line.stream.publish(SUBJECT, LARGE);
  line.stream.publish(SUBJECT, other);

  expect(await received(line)).toEqual([LARGE, other].map(hashOf));
});

it('drops the oldest incomplete frame when too many are incomplete', async () => {
  const first = Buffer.alloc(60_000_000, '1');
  const line = wire();
  line.stream.publish(SUBJECT, first);
  const parts = line.sent.splice(0);
  const { stream } = wire(() => {
    const begun = Array.from({ length: 3 }, () => {
      line.stream.publish(SUBJECT, first);
      return line.sent.splice(0).slice(0, -1);
    });
    return [...parts.slice(0, -1), ...begun.flat(), ...parts.slice(-1)];
  });
  const received: Uint8Array[] = [];
  stream.subscribe(SUBJECT, (_subject, frame) => received.push(frame));

  expect(received).toEqual([]);
});

it('does not send a frame that is larger than any answer', async () => {
  const line = wire();
  line.stream.publish(SUBJECT, Buffer.alloc(MAX_FRAME_BYTES + 1));

  expect(line.sent).toEqual([]);
});

it('drops a message with a mark and no head', async () => {
  const line = wire(() => [Buffer.from([0]), Buffer.from('\0nonsense\nx', 'latin1'), SMALL]);

  expect(await received(line)).toEqual([SMALL].map(hashOf));
});
