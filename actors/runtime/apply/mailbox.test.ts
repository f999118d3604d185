import { expect, it } from 'vitest';
import { Mailbox } from './mailbox.ts';

it('accepts a start once for as long as it waits, and again once it has been removed', async () => {
  let kicks = 0;
  const mailbox = new Mailbox({ partition: 7, epoch: 1, owner: 'host-1', commitNo: 1, cursor: 0, cursorFingerprint: null }, () => (kicks += 1));
  for (const command of ['a', 'b', 'a', 'a']) mailbox.start(command);
  expect(kicks).toBe(2);
  expect(mailbox.dequeue(1)).toMatchObject([{ kind: 'start', command: 'a' }]);
  for (const command of ['a', 'b']) mailbox.start(command);
  expect(mailbox.dequeue(10)).toMatchObject([{ command: 'b' }, { command: 'a' }]);

  await mailbox.discard();
  mailbox.start('a');
  expect(mailbox.waiting).toBe(0);
});
