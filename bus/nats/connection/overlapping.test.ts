import { TimeoutError } from '@nats-io/transport-node';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { overlapping } from './overlapping.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

/** Requests in the order in which they were sent, answered by the test. */
function requests() {
  const sent: { resolve(answer: string): void; reject(error: Error): void }[] = [];
  const send = () => new Promise<string>((resolve, reject) => void sent.push({ resolve, reject }));
  return { sent, send };
}

it('ends with the first error that is no timeout, and sends nothing more', async () => {
  const { sent, send } = requests();
  const { answer } = overlapping(send, 400, 5_000);
  const ended = expect(answer).rejects.toThrow('refused');
  await vi.advanceTimersByTimeAsync(400);
  sent[0]?.reject(new TimeoutError());
  sent[1]?.reject(new Error('refused'));
  await ended;
  await vi.advanceTimersByTimeAsync(10_000);

  expect(sent).toHaveLength(2);
});

it('ends with a timeout when nothing was answered in all of the time', async () => {
  const { sent, send } = requests();
  const ended = expect(overlapping(send, 400, 1_000).answer).rejects.toBeInstanceOf(TimeoutError);
  await vi.advanceTimersByTimeAsync(1_000);
  await ended;

  expect(sent).toHaveLength(3);
});

it.each([0, 1, 2])('takes the answer of request %i, though the others are never answered', async (answered) => {
  const { sent, send } = requests();
  const { answer } = overlapping(send, 400, 5_000);
  await vi.advanceTimersByTimeAsync(800);
  sent[answered]?.resolve(`of ${answered}`);

  expect(await answer).toBe(`of ${answered}`);
  expect(sent).toHaveLength(3);
});

it('sends no more than so many, and waits for their answers', async () => {
  const { sent, send } = requests();
  const { answer } = overlapping(send, 400, 5_000, 2);
  await vi.advanceTimersByTimeAsync(3_000);
  expect(sent).toHaveLength(2);
  sent[1]?.resolve('late');

  expect(await answer).toBe('late');
});

it('sends nothing more once it is ended', async () => {
  const { sent, send } = requests();
  overlapping(send, 400, 5_000).end();
  await vi.advanceTimersByTimeAsync(10_000);

  expect(sent).toHaveLength(1);
});
