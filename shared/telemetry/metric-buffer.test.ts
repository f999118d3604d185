import { describe, expect, it } from 'vitest';
import { Tally } from './metric-buffer.ts';

function tallied() {
  const told: [Readonly<Record<string, string>>, readonly number[]][] = [];
  return { told, tally: new Tally(['route', 'status'], (labels, numbers) => told.push([labels, numbers])) };
}

describe('a tally', () => {
  it('says nothing of a series that nothing was noted of since it was last asked', () => {
    const { told, tally } = tallied();
    tally.note({ route: '/a', status: '200' }, 1);
    tally.handOnAll();
    told.length = 0;

    tally.handOnAll();

    expect(told).toEqual([]);
  });

  it('tells series apart by all of their labels, in whatever order they are named', () => {
    const { told, tally } = tallied();
    tally.note({ route: '/a', status: '200' }, 1);
    tally.note({ status: '200', route: '/a' }, 2);
    tally.note({ route: '200', status: '/a' }, 3);
    tally.note({ route: '/a', status: '500' }, 4);

    tally.handOnAll();

    expect(told).toEqual([
      [{ route: '/a', status: '200' }, [1, 2]],
      [{ route: '200', status: '/a' }, [3]],
      [{ route: '/a', status: '500' }, [4]],
    ]);
  });

  it('holds no more than it may when nobody ever looks', () => {
    const { told, tally } = tallied();

    for (let number = 1; number <= 1_200; number += 1) tally.note({ route: '/a', status: '200' }, number);

    expect(told.map(([, numbers]) => numbers.length)).toEqual([512, 512]);
  });
});
