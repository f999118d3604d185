import { setImmediate as nextTick } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import { silentLog } from '#shared/telemetry/log.ts';
import { corkForTick, leaveNow } from '../connection/tick-end.ts';
import { HeldFrames } from '../tokens/held-frames.ts';
import { LocalFrames } from './local-frames.ts';

/** What has left this process and what a reader in it has, in order. */
let order: string[];
let local: LocalFrames;
let held: HeldFrames;
/** Corked until the end of the tick, as that of the broker. */
const socket = { cork: () => {}, uncork: () => void order.push('written') } as never;

beforeEach(() => {
  order = [];
  local = new LocalFrames(silentLog);
  held = new HeldFrames(
    () => corkForTick(socket),
    () => local.release(),
  );
  local.subscribe('tok.gw1.*', (_, frame) => void order.push(Buffer.from(frame).toString()));
});

/** As the token stream does it. */
function publish(text: string, isFirst = false): void {
  local.publish('tok.gw1.call1', Buffer.from(text), isFirst || held.isHolding);
  held.publish('tok.gw1.call1', Buffer.from(text));
  if (isFirst) flush();
}

const flush = () =>
  leaveNow(() => {
    held.release();
    local.release();
  });

const appendRecord = () => held.holdBehind(() => corkForTick(socket));

describe('a frame for a reader in this process', () => {
  it('is handed over behind the synchronous code of its publisher, ahead of what leaves at the end of the tick', async () => {
    publish('a');
    expect(order).toEqual([]);
    await nextTick();

    expect(order).toEqual(['a', 'written']);
  });

  it('waits until the usage record that it was published behind is written, and those behind it wait too', async () => {
    publish('a');
    appendRecord();
    publish('end');
    await Promise.resolve();
    publish('other');
    await nextTick();

    expect(order).toEqual(['a', 'written', 'end', 'other']);
  });

  it('waits for the record though something else leaves between the two', async () => {
    publish('a', true);
    appendRecord();
    publish('end');
    publish('other');
    await nextTick();

    expect(order).toEqual(['written', 'a', 'written', 'end', 'other']);
  });

  it('waits, with the first content, until it is written itself', async () => {
    publish('first', true);
    publish('next');
    await nextTick();

    expect(order).toEqual(['written', 'first', 'next']);
  });

  it('is handed over with a record that leaves at once', async () => {
    appendRecord();
    publish('end');
    flush();
    await Promise.resolve();
    await Promise.resolve();

    expect(order).toEqual(['written', 'end']);
    await nextTick();
  });
});
