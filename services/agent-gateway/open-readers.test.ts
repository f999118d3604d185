import { expect, it } from 'vitest';
import { OpenReaders } from './open-readers.ts';

it('refuses a reader at the limit, and accepts one after another has ended', () => {
  const readers = new OpenReaders('long-polls', 2);
  const leave = readers.enter(() => {});
  readers.enter(() => {});

  expect(() => readers.enter(() => {})).toThrow(expect.objectContaining({ code: 'service.not_ready', message: 'too many long-polls are open on this server' }));
  leave();
  leave();
  readers.enter(() => {});
  expect(() => readers.enter(() => {})).toThrow();
});

it('ends each open reader once when the gateway drains, and accepts none afterwards', () => {
  const readers = new OpenReaders('event streams', 10);
  const ended: string[] = [];
  const leave = readers.enter(() => ended.push('early'));
  readers.enter(() => ended.push('first'));
  readers.enter(() => ended.push('second'));
  leave();

  readers.drain();
  readers.drain();

  expect(ended).toEqual(['first', 'second']);
  expect(() => readers.enter(() => {})).toThrow(expect.objectContaining({ code: 'service.not_ready' }));
});
