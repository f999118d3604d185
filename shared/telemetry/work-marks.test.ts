import { expect, it } from 'vitest';
import { WorkMarks } from './work-marks.ts';

/** Marks with a fake clock that only work advances. */
function begin() {
  let nowMs = 1_000;
  const marks = new WorkMarks(() => nowMs);
  const work = (ms: number) => {
    nowMs += ms;
  };
  return { marks, work };
}

const nextCallback = () => new Promise((resolve) => setImmediate(resolve));

it('names what took longest in total since the last read, and restarts', async () => {
  const { marks, work } = begin();
  for (const [kind, ms] of [
    ['a', 300],
    ['b', 500],
    ['a', 300],
  ] as const) {
    marks.mark(kind);
    work(ms);
  }

  expect(marks.take()).toEqual({ kind: 'a', ms: 600, lastMarked: 'a' });
  work(10);
  expect(marks.take()).toEqual({ kind: 'a', ms: 10, lastMarked: null });
  await nextCallback();
});

it('holds over the promise continuations of its callback, and no further', async () => {
  const { marks, work } = begin();
  marks.take();
  setImmediate(async () => {
    marks.mark('a');
    for (let step = 0; step < 20; step += 1) await null;
    work(700);
  });
  await nextCallback();
  await nextCallback();
  work(600);

  expect(marks.take()).toEqual({ kind: 'a', ms: 700, lastMarked: 'a' });
});

it('reports as unmarked what runs without a mark, and names the last mark before it', async () => {
  const { marks, work } = begin();
  setImmediate(() => marks.mark('a'));
  await nextCallback();
  await nextCallback();
  work(2_000);

  expect(marks.take()).toEqual({ kind: 'unmarked', ms: 2_000, lastMarked: 'a' });
});

it('goes on with a kind that is marked again in its callback, and ends it once', async () => {
  const { marks, work } = begin();
  marks.take();
  setImmediate(async () => {
    marks.mark('a');
    work(100);
    await null;
    marks.mark('a');
    work(200);
    marks.mark('b');
    work(50);
    marks.mark('a');
    work(300);
  });
  await nextCallback();
  await nextCallback();
  work(500);

  expect(marks.take()).toEqual({ kind: 'a', ms: 600, lastMarked: 'a' });
  work(20);
  expect(marks.take()).toEqual({ kind: 'unmarked', ms: 20, lastMarked: null });
});
