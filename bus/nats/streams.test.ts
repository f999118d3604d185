import { describe, expect, it } from 'vitest';
import { addresses, type BusUser } from '../subjects.ts';
import { defaultSettings } from './settings.ts';
import { declarationsFor, streams, workConsumers } from './streams.ts';

function namesFor(user: BusUser | null): string[] {
  return declarationsFor(user, defaultSettings).map(({ name }) => name);
}

describe('streams', () => {
  it('are declared by their users', () => {
    expect(namesFor(null)).toEqual(['CMD', 'WORK', 'TOK', 'BLOB']);
    expect(namesFor('router-gateway')).toEqual(['WORK', 'TOK', 'BLOB']);
    expect(namesFor('agent-gateway')).toEqual(['CMD', 'TOK', 'BLOB']);
    expect(namesFor('actor-host')).toEqual(['CMD', 'WORK', 'BLOB']);
    expect(namesFor('router-worker')).toEqual(['CMD', 'WORK', 'TOK', 'BLOB']);
    expect(namesFor('effect-worker')).toEqual(['CMD', 'WORK', 'BLOB']);
    expect(namesFor('operator')).toEqual(['CMD', 'WORK', 'BLOB']);
  });

  it('DESIGN 6: the queue captures every kind of work, each with its own consumer', () => {
    const work = Object.values(addresses).filter(({ pattern }) => pattern.startsWith('work.'));

    expect(
      Object.values(workConsumers)
        .map(({ subject }) => subject)
        .sort(),
    ).toEqual(work.map(({ pattern }) => pattern).sort());
    expect(new Set(Object.values(workConsumers).map(({ name }) => name)).size).toBe(work.length);
    expect(streams.work.subjects).toEqual(['work.>']);
  });

  it('fit a disk of 10 GB together, and refuse new messages instead of dropping accepted ones', () => {
    const onDisk = declarationsFor(null, defaultSettings).filter(({ storage }) => storage === 'file');

    expect(onDisk.reduce((sum, { max_bytes: bytes }) => sum + bytes, 0)).toBeLessThan(7e9);
    expect(onDisk.map(({ discard }) => discard)).toEqual(['new', 'new', 'new']);
  });
});
