import { expect, it } from 'vitest';
import { silentLog } from '#shared/telemetry/log.ts';
import { LiveBatches, liveAddressOf } from './live-batches.ts';
import { LiveReaders } from './live-readers.ts';

/** Readers, and a broker that delivers to all subscribers of a subject. */
function reading() {
  const listening: { pattern: string; handler: (subject: string, message: Uint8Array) => void }[] = [];
  const listen = (pattern: string, handler: (subject: string, message: Uint8Array) => void) => {
    const one = { pattern, handler };
    listening.push(one);
    return { ready: async () => {}, stop: async () => void listening.splice(listening.indexOf(one), 1) };
  };
  const send = (subject: string, message: Uint8Array) => {
    for (const { pattern, handler } of [...listening]) if (subject.startsWith(pattern.slice(0, -1))) handler(subject, message);
  };
  const batches = new LiveBatches(send);
  /** In one batch. */
  const publish = (...frames: [subject: string, text: string][]) => {
    for (const [subject, text] of frames) batches.add(liveAddressOf(subject), Buffer.from(text));
    batches.flush();
  };
  const readers = new LiveReaders({ listen, log: silentLog });
  const read = (pattern: string) => {
    const subscription: string[] = [];
    const reader = readers.read(pattern, (subject, frame) => subscription.push(`${subject} ${Buffer.from(frame)}`));
    return { subscription, stop: () => reader.stop() };
  };
  return { patterns: () => listening.map(({ pattern }) => pattern), send, publish, readers, read };
}

it('an origin has one subscription, however many of its calls are read, and no longer than any of them is', async () => {
  const { patterns, publish, read } = reading();
  const [all, one, again, two] = [read('tok.gw1.*'), read('tok.gw1.one'), read('tok.gw1.one'), read('tok.gw1.two')];
  const other = read('tok.gw2.one');
  expect(patterns()).toEqual(['live.gw1.*', 'live.gw2.*']);
  publish(['tok.gw1.one', 'a'], ['tok.gw1.two', 'b'], ['tok.gw1.onetwo', 'c'], ['tok.gw2.one', 'x']);

  expect(all.subscription).toEqual(['tok.gw1.one a', 'tok.gw1.two b', 'tok.gw1.onetwo c']);
  expect([one.subscription, again.subscription, two.subscription, other.subscription]).toEqual([
    ['tok.gw1.one a'],
    ['tok.gw1.one a'],
    ['tok.gw1.two b'],
    ['tok.gw2.one x'],
  ]);
  for (const { stop } of [one, one, two, all]) await stop();
  expect(patterns()).toEqual(['live.gw1.*', 'live.gw2.*']);
  publish(['tok.gw1.one', 'd']);
  expect(again.subscription).toEqual(['tok.gw1.one a', 'tok.gw1.one d']);
  expect([all.subscription.length, one.subscription.length]).toEqual([3, 1]);
  await again.stop();
  expect(patterns()).toEqual(['live.gw2.*']);
  const later = read('tok.gw1.one');
  publish(['tok.gw1.one', 'e']);
  expect(later.subscription).toEqual(['tok.gw1.one e']);
});

it.each(['tok.gw1.*', 'tok.gw1.one'])('a reader of %s supports workers that send each frame by itself', (pattern) => {
  const { send, read } = reading();
  const { subscription } = read(pattern);
  send('live.gw1.one', Buffer.from('a'));

  expect(subscription).toEqual(['tok.gw1.one a']);
});
