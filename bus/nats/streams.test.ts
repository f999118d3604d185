import { describe, expect, it } from 'vitest';
import { workKinds } from '#shared/work-kinds.ts';
import { addresses, type BusUser } from '../subjects.ts';
import { workQueues } from '../work-queues.ts';
import { defaultSettings } from './settings.ts';
import { admissionStreamsOf, declarationsFor, streams } from './streams.ts';

function namesFor(user: BusUser | null): string[] {
  return declarationsFor(user, defaultSettings).map(({ name }) => name);
}

describe('streams', () => {
  it('are declared by their users', () => {
    expect(namesFor(null)).toEqual(['CMD', 'WORK', 'TOK', 'BLOB', 'USAGE']);
    expect(namesFor('router-gateway')).toEqual(['WORK', 'TOK', 'BLOB']);
    expect(namesFor('agent-gateway')).toEqual(['CMD', 'WORK', 'TOK', 'BLOB']);
    expect(namesFor('actor-host')).toEqual(['CMD', 'WORK', 'TOK', 'BLOB']);
    expect(namesFor('router-worker')).toEqual(['CMD', 'WORK', 'TOK', 'BLOB', 'USAGE']);
    expect(namesFor('effect-worker')).toEqual(['CMD', 'WORK', 'BLOB']);
    expect(namesFor('router')).toEqual(namesFor('router-worker'));
    expect(namesFor('agent')).toEqual(namesFor('actor-host'));
    expect(namesFor('operator')).toEqual(['CMD', 'WORK', 'BLOB', 'USAGE']);
  });

  it('gateways ask how full the usage log is, which workers declare', () => {
    expect(admissionStreamsOf(null)).toEqual(['CMD', 'WORK', 'USAGE'].map((name) => ({ name, isDeclared: true })));
    expect(admissionStreamsOf('router-gateway')).toEqual([
      { name: 'WORK', isDeclared: true },
      { name: 'USAGE', isDeclared: false },
    ]);
    expect(admissionStreamsOf('actor-host').map(({ name }) => name)).toEqual(['CMD', 'WORK']);
  });

  it('DESIGN 6: the queue captures every kind of work, each with its own consumer', () => {
    const queues = Object.values(workQueues);

    expect(Object.keys(workQueues).sort()).toEqual([...workKinds].sort());
    for (const { pattern } of queues) expect(pattern).toMatch(/^work\.[^*>]+$/);
    expect(new Set(queues.map(({ pattern }) => pattern)).size).toBe(workKinds.length);
    expect(new Set(queues.map(({ consumer }) => consumer)).size).toBe(workKinds.length);
    expect(Object.values(addresses).filter(({ pattern }) => pattern.startsWith('work.'))).toEqual([]);
    expect(streams.work.subjects).toEqual(['work.>']);
  });

  it('fit a disk of 10 GB together, and refuse new messages instead of dropping accepted ones', () => {
    const onDisk = declarationsFor(null, defaultSettings).filter(({ storage }) => storage === 'file');

    expect(onDisk.reduce((sum, { max_bytes: bytes }) => sum + bytes, 0)).toBeLessThan(7e9);
    expect(onDisk.map(({ discard }) => discard)).toEqual(['new', 'new', 'new', 'new']);
  });
});
