import { describe, expect, it } from 'vitest';
import { MetricBuffer } from './metric-buffer.ts';

function tallied() {
  const told: [Readonly<Record<string, string>>, readonly number[]][] = [];
  return { told, buffer: new MetricBuffer(['route', 'status'], (labels, numbers) => told.push([labels, numbers])) };
}

describe('a tally', () => {
  it('says nothing of a series that nothing was noted of since it was last asked', () => {
    const { told, buffer } = tallied();
    buffer.note({ route: '/a', status: '200' }, 1);
    buffer.flushAll();
    told.length = 0;

    buffer.flushAll();

    expect(told).toEqual([]);
  });

  it('tells series apart by all of their labels, in whatever order they are named', () => {
    const { told, buffer } = tallied();
    buffer.note({ route: '/a', status: '200' }, 1);
    buffer.note({ status: '200', route: '/a' }, 2);
    buffer.note({ route: '200', status: '/a' }, 3);
    buffer.note({ route: '/a', status: '500' }, 4);

    buffer.flushAll();

    expect(told).toEqual([
      [{ route: '/a', status: '200' }, [1, 2]],
      [{ route: '200', status: '/a' }, [3]],
      [{ route: '/a', status: '500' }, [4]],
    ]);
  });

  it('holds no more than it may when nobody ever looks', () => {
    const { told, buffer } = tallied();

    for (let number = 1; number <= 1_200; number += 1) buffer.note({ route: '/a', status: '200' }, number);

    expect(told.map(([, numbers]) => numbers.length)).toEqual([512, 512]);
  });
});
