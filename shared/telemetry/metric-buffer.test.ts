import { describe, expect, it } from 'vitest';
import { MetricBuffer } from './metric-buffer.ts';

function recordingBuffer() {
  const reported: [Readonly<Record<string, string>>, readonly number[]][] = [];
  return { reported, buffer: new MetricBuffer(['route', 'status'], (labels, numbers) => reported.push([labels, numbers])) };
}

describe('a metric buffer', () => {
  it('reports no series without a value since the last flush', () => {
    const { reported, buffer } = recordingBuffer();
    buffer.note({ route: '/a', status: '200' }, 1);
    buffer.flushAll();
    reported.length = 0;

    buffer.flushAll();

    expect(reported).toEqual([]);
  });

  it('distinguishes series by all of their labels, in whatever order they are named', () => {
    const { reported, buffer } = recordingBuffer();
    buffer.note({ route: '/a', status: '200' }, 1);
    buffer.note({ status: '200', route: '/a' }, 2);
    buffer.note({ route: '200', status: '/a' }, 3);
    buffer.note({ route: '/a', status: '500' }, 4);

    buffer.flushAll();

    expect(reported).toEqual([
      [{ route: '/a', status: '200' }, [1, 2]],
      [{ route: '200', status: '/a' }, [3]],
      [{ route: '/a', status: '500' }, [4]],
    ]);
  });

  it('holds no more than its limit without a flush', () => {
    const { reported, buffer } = recordingBuffer();

    for (let number = 1; number <= 1_200; number += 1) buffer.note({ route: '/a', status: '200' }, number);

    expect(reported.map(([, numbers]) => numbers.length)).toEqual([512, 512]);
  });
});
