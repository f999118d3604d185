import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { atTickEnd } from '../connection/tick-end.ts';
import { eachFrameIn, LiveBatches, liveAddressOf } from './live-batches.ts';

const textOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1');

/** Published batches, and the frames of one origin. */
function collecting() {
  const sent: { subject: string; batch: Uint8Array }[] = [];
  const received: string[] = [];
  const read = (subject: string, message: Uint8Array) =>
    eachFrameIn(subject, message, (retainedAt, callId, frame) => received.push(`${retainedAt}${callId} ${textOf(frame)}`));
  const batches = new LiveBatches((subject, batch) => {
    sent.push({ subject, batch });
    if (subject.startsWith('live.gw1.')) read(subject, batch);
  });
  const publish = (subject: string, text: string) => batches.add(liveAddressOf(subject), Buffer.from(text, 'latin1'));
  return { sent, received, batches, read, publish };
}

describe('frames that are published in one tick', () => {
  it('are sent as one message to each origin, and delivered as published', async () => {
    const { sent, received, publish } = collecting();
    publish('tok.gw1.one', 'a');
    await Promise.resolve();
    publish('tok.gw2.other', 'x');
    publish('tok.gw1.two', 'b');
    publish('tok.gw1.one', 'c');
    expect(sent).toEqual([]);
    await nextTurn();

    expect(sent.map(({ subject }) => subject)).toEqual(['live.gw1._batch', 'live.gw2._batch']);
    expect(received).toEqual(['tok.gw1.one a', 'tok.gw1.two b', 'tok.gw1.one c']);
    publish('tok.gw1.one', 'd');
    await nextTurn();
    expect(received.at(-1)).toBe('tok.gw1.one d');
  });

  it('are sent before any other message, and once', async () => {
    const { sent, batches, publish } = collecting();
    publish('tok.gw1.one', 'a');
    batches.flush();
    expect(sent).toHaveLength(1);
    await nextTurn();

    expect(sent).toHaveLength(1);
  });

  it('are sent with the next tick when they are published at the end of this one', async () => {
    const { received, publish } = collecting();
    atTickEnd(() => {
      publish('tok.gw1.one', 'a');
      queueMicrotask(() => publish('tok.gw1.one', 'b'));
    });
    await nextTurn();
    await nextTurn();
    await nextTurn();

    expect(received).toEqual(['tok.gw1.one a', 'tok.gw1.one b']);
  });

  it('do not wait beyond a size', () => {
    const { sent, received, publish } = collecting();
    for (let count = 0; count < 40; count += 1) publish('tok.gw1.one', 'x'.repeat(4_000));

    expect(sent.length).toBeGreaterThan(1);
    expect(Math.max(...sent.map(({ batch }) => batch.byteLength))).toBeLessThan(128 * 1_024);
    expect(received.length).toBeGreaterThan(30);
  });

  it('are read byte for byte, whatever they are, and from a truncated batch as far as it goes', async () => {
    const frame = fc.record({ call: fc.constantFrom('one', 'gen-01J8ZQ5T0M8W6', 'x'.repeat(128)), bytes: fc.uint8Array({ maxLength: 600 }) });
    await fc.assert(
      fc.asyncProperty(fc.array(frame, { minLength: 1, maxLength: 12 }), fc.nat(), async (frames, cut) => {
        const { sent, received, batches, read } = collecting();
        for (const { call, bytes } of frames) batches.add({ origin: 'gw1', callId: call }, bytes);
        batches.flush();
        const expected = frames.map(({ call, bytes }) => `tok.gw1.${call} ${textOf(bytes)}`);
        expect(received).toEqual(expected);

        received.length = 0;
        const whole = sent[0]?.batch ?? new Uint8Array();
        read('live.gw1._batch', whole.subarray(0, cut % whole.byteLength));
        expect(received).toEqual(expected.slice(0, received.length));
      }),
    );
  });
});

it('a single frame is accepted too: older workers send such', () => {
  const { received, read } = collecting();
  read('live.gw1.one', Buffer.from('a'));

  expect(received).toEqual(['tok.gw1.one a']);
});
