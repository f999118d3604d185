import { describe, expect, it } from 'vitest';
import { abortSignalOf, ItemAbortController, type ItemSignal } from './item-signal.ts';

const left = new Error('left');

describe.each<[string, () => ItemSignal & { end(reason: unknown): void }]>([
  [
    'ItemAbortController',
    () => {
      const ending = new ItemAbortController();
      return Object.assign(ending, { end: (reason: unknown) => ending.abort(reason) });
    },
  ],
  [
    'an AbortSignal',
    () => {
      const controller = new AbortController();
      return Object.assign(controller.signal, { end: (reason: unknown) => controller.abort(reason) });
    },
  ],
])('%s', (_, open) => {
  it('notifies each listener once, in their order, and retains the first reason', () => {
    const signal = open();
    const notified: string[] = [];
    for (const name of ['first', 'second']) signal.addEventListener('abort', () => notified.push(name));
    expect([signal.aborted, signal.reason]).toEqual([false, undefined]);
    signal.throwIfAborted();
    signal.end(left);
    signal.end(new Error('again'));
    expect({ notified, aborted: signal.aborted, reason: signal.reason }).toEqual({ notified: ['first', 'second'], aborted: true, reason: left });
    expect(() => signal.throwIfAborted()).toThrow(left);
  });

  it('does not notify a removed listener, nor one that was added too late', () => {
    const signal = open();
    const notified: string[] = [];
    const leaves = () => notified.push('leaves');
    signal.addEventListener('abort', leaves);
    signal.removeEventListener('abort', leaves);
    signal.end(left);
    signal.addEventListener('abort', () => notified.push('late'));
    expect(notified).toEqual([]);
  });
});

describe('abortSignalOf', () => {
  it('aborts with the item, or at once', () => {
    const ending = new ItemAbortController();
    const before = abortSignalOf(ending);
    expect(before.aborted).toBe(false);
    ending.abort(left);
    expect([before.reason, abortSignalOf(ending).reason]).toEqual([left, left]);
  });
});
