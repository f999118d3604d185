import { expect, it } from 'vitest';
import { DeferredTasks } from './deferred-tasks.ts';

it('tasks run together, in their order, after the delay', async () => {
  const tasks = new DeferredTasks(1);
  const ran: string[] = [];
  await new Promise<void>((resolve) => {
    tasks.defer(() => void ran.push('one'));
    tasks.defer(() => {
      ran.push('two');
      resolve();
    });
    expect(ran).toEqual([]);
  });
  tasks.runAll();

  expect(ran).toEqual(['one', 'two']);
});

it('what waits can be run at once, and what comes after it waits again', () => {
  const tasks = new DeferredTasks(60_000);
  const ran: string[] = [];
  tasks.defer(() => void ran.push('one'));
  tasks.runAll();
  tasks.defer(() => void ran.push('two'));

  expect(ran).toEqual(['one']);
  tasks.runAll();
  expect(ran).toEqual(['one', 'two']);
});
