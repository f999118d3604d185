import { describe, expect, it, vi } from 'vitest';
import { AwayFrames } from './away-frames.ts';

/** A connection that loses what it is sent while it is away. */
function connection({ maxAwayMs = 60_000 } = {}) {
  let isUp = true;
  const [sent, lost]: [string[], string[]] = [[], []];
  let dropped = 0;
  let nowMs = 0;
  const frames = new AwayFrames({
    nowMs: () => nowMs,
    onDropped: (count) => {
      dropped += count;
    },
    send: (subject, frame) => (isUp ? sent : lost).push(`${subject} ${Buffer.from(frame)}`),
    maxAwayMs,
  });
  const publish = (...texts: string[]) => {
    for (const text of texts) frames.publish('tok.gw1.call1', Buffer.from(text));
  };
  const setUp = (value: boolean) => {
    isUp = value;
    if (isUp) frames.onBack();
    else frames.onAway();
  };
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { sent, lost, dropped: () => dropped, frames, publish, setUp, pass };
}

const at = (...texts: string[]) => texts.map((text) => `tok.gw1.call1 ${text}`);

it('what is published while the connection is away is sent in order once it is back, ahead of what comes later', () => {
  const { sent, lost, publish, setUp } = connection();
  publish('a');
  setUp(false);
  publish('b', 'c');
  expect(sent).toEqual(at('a'));
  setUp(true);
  publish('d');

  expect(sent).toEqual(at('a', 'b', 'c', 'd'));
  expect(lost).toEqual([]);
});

it('a stop waits until what is held was sent, or is lost, and for nothing else', async () => {
  const { sent, frames, publish, setUp } = connection();
  await frames.settled();
  setUp(false);
  await frames.settled();
  publish('a');
  let isSettled = false;
  const settled = frames.settled().then(() => (isSettled = true));
  await new Promise(setImmediate);
  expect(isSettled).toBe(false);
  setUp(true);
  await settled;
  expect(sent).toEqual(at('a'));

  const late = connection({ maxAwayMs: 20 });
  late.setUp(false);
  late.publish('b');
  await late.frames.settled();
  expect(late.lost).toEqual(at('b'));
});

describe('an absence that is given up loses its frames, and the next one keeps its own', () => {
  const endings: [string, (of: ReturnType<typeof connection>) => Promise<void> | void][] = [
    ['it is too long', ({ frames }) => vi.waitFor(() => expect(frames.isKeeping).toBe(false), { timeout: 60_000 })],
    ['it has too many bytes', ({ frames }) => frames.publish('tok.gw1.call2', Buffer.alloc(8 * 1024 * 1024))],
  ];
  it.each(endings)('when %s', async (_, giveUp) => {
    const of = connection({ maxAwayMs: 20 });
    const { sent, lost, frames, publish, setUp } = of;
    setUp(false);
    publish('a');
    await giveUp(of);
    publish('b');
    expect(lost.filter((one) => one.startsWith('tok.gw1.call1'))).toEqual(at('a', 'b'));
    expect(frames.isKeeping).toBe(false);

    setUp(true);
    expect(frames.isKeeping).toBe(true);
    setUp(false);
    publish('c');
    setUp(true);
    expect(sent).toEqual(at('c'));
  });
});

it('holds nothing any more once it is closed', () => {
  const { lost, publish, frames, setUp } = connection();
  setUp(false);
  publish('a');
  frames.close();
  publish('b');

  expect(lost).toEqual(at('a', 'b'));
});

it('a connection that is lost before it was used again is one absence', () => {
  const { sent, publish, frames, setUp } = connection();
  setUp(false);
  publish('a');
  frames.onAway();
  publish('b');
  setUp(true);

  expect(sent).toEqual(at('a', 'b'));
});

it('the time of an absence begins with the loss, not with the first frame', async () => {
  const { lost, publish, frames, setUp } = connection({ maxAwayMs: 20 });
  setUp(false);
  await vi.waitFor(() => expect(frames.isKeeping).toBe(false), { timeout: 60_000 });
  publish('a');

  expect(lost).toEqual(at('a'));
});

it('a process that was paused does not send what it held before', () => {
  const { sent, lost, dropped, publish, setUp, pass } = connection();
  setUp(false);
  publish('a', 'b');
  pass(61_001);
  setUp(true);
  publish('c');

  expect(sent).toEqual(at('c'));
  expect(lost).toEqual([]);
  expect(dropped()).toBe(2);
});
