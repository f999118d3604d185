import { expect, it } from 'vitest';
import type { NatsLink } from './link.ts';
import { Retries } from './retries.ts';
import { storedPublisher } from './stored-publish.ts';

const BUDGET_MS = 60_000;

/** @returns what was sent, by subject, and `answer`, which acknowledges the oldest of it that waits */
function open({ isCluster }: { isCluster: boolean }) {
  const sent: string[] = [];
  const waiting: ((sequence: number) => void)[] = [];
  const ask = (subject: string) => {
    sent.push(subject);
    return new Promise((resolve) => {
      waiting.push((sequence) => resolve({ json: () => ({ stream: 'CMD', seq: sequence }) }));
    });
  };
  const retries = new Retries({ address: 'nats://there', isCluster, isUp: () => true, up: () => new Promise(() => {}), redeclare: async () => {} });
  const link = { isCluster, retries, requests: { ask } } as unknown as NatsLink;
  const publish = storedPublisher({ link, budgetMs: BUDGET_MS, onFull: () => {} });
  return { sent, publish, answer: (sequence: number) => waiting.shift()?.(sequence) };
}

it('a message that a cluster is storing is not sent a second time, and both callers get its place', async () => {
  const { sent, publish, answer } = open({ isCluster: true });
  const [first, second] = [publish('cmd.1', 'a', 'body'), publish('cmd.1', 'a', 'body')];
  const [otherSubject, otherId] = [publish('cmd.2', 'a', 'body'), publish('cmd.1', 'b', 'body')];
  expect(sent).toEqual(['cmd.1', 'cmd.2', 'cmd.1']);
  for (const sequence of [7, 8, 9]) answer(sequence);

  expect(await Promise.all([first, second])).toEqual([
    { sequence: 7, duplicate: false },
    { sequence: 7, duplicate: true },
  ]);
  await Promise.all([otherSubject, otherId]);
  const again = publish('cmd.1', 'a', 'body');
  expect(sent).toHaveLength(4);
  answer(7);
  await again;
});

it('a single server is sent each publish', async () => {
  const { sent, publish, answer } = open({ isCluster: false });
  const both = [publish('cmd.1', 'a', 'body'), publish('cmd.1', 'a', 'body')];
  expect(sent).toHaveLength(2);
  for (const sequence of [7, 7]) answer(sequence);
  await Promise.all(both);
});
