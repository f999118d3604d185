import { expect, it } from 'vitest';
import { OpenReaders } from './open-readers.ts';

it('refuses who comes when all places are taken, and lets in who comes after one has left', () => {
  const readers = new OpenReaders('long-polls', 2);
  const leave = readers.enter(() => {});
  readers.enter(() => {});

  expect(() => readers.enter(() => {})).toThrow(expect.objectContaining({ code: 'service.not_ready', message: 'too many long-polls are open on this server' }));
  leave();
  leave();
  readers.enter(() => {});
  expect(() => readers.enter(() => {})).toThrow();
});

it('ends everybody once when the gateway leaves, except who has left before, and lets nobody in after', () => {
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
