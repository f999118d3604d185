import { describe, expect, it } from 'vitest';
import { defaultSettings } from '../bus/nats/settings.ts';
import { declarationsFor } from '../bus/nats/streams.ts';

const DAY_NS = 24 * 3_600_000_000_000;
const MINUTE_NS = 60_000_000_000;

const declared = declarationsFor(null, defaultSettings);

function declarationOf(name: string) {
  return declared.find((stream) => stream.name === name) ?? expect.fail(`no stream ${name} is declared`);
}

describe('the declarations of streams', () => {
  it('DESIGN 3: streams ask for nothing that nats-server 2.9 does not know, which would drop it in silence', () => {
    const known = ['name', 'subjects', 'storage', 'retention', 'discard', 'max_age', 'max_bytes', 'duplicate_window', 'allow_direct', 'num_replicas'];

    expect(declared.length).toBeGreaterThan(3);
    for (const stream of declared) expect(known).toEqual(expect.arrayContaining(Object.keys(stream)));
  });

  it('DESIGN 3: large bodies are kept for 24 hours', () => {
    expect(declarationOf('BLOB')).toMatchObject({ storage: 'file', max_age: DAY_NS });
  });

  it('DESIGN 4: the command log is on disk, drops nothing by age, refuses instead of making room, and remembers message ids for 120 s', () => {
    expect(declarationOf('CMD')).toMatchObject({
      // One subject a partition and nothing finer: many filtered subjects make a stream slow.
      subjects: ['cmd.*'],
      storage: 'file',
      retention: 'limits',
      discard: 'new',
      max_age: 0,
      duplicate_window: 2 * MINUTE_NS,
    });
    expect(declarationOf('CMD').max_bytes).toBeGreaterThan(0);
  });

  it('DESIGN 6: the work queue is on disk, keeps an item until it is done but no longer than a day, and refuses when it is full', () => {
    expect(declarationOf('WORK')).toMatchObject({ subjects: ['work.>'], storage: 'file', retention: 'workqueue', discard: 'new', max_age: DAY_NS });
    expect(declarationOf('WORK').max_bytes).toBeGreaterThan(0);
  });

  it('DESIGN 6: usage is on disk, drops nothing by age, refuses when it is full, and remembers message ids for 120 s', () => {
    expect(declarationOf('USAGE')).toMatchObject({
      subjects: ['usage.record'],
      storage: 'file',
      retention: 'workqueue',
      discard: 'new',
      max_age: 0,
      duplicate_window: 2 * MINUTE_NS,
    });
    expect(declarationOf('USAGE').max_bytes).toBeGreaterThan(0);
  });

  it('DESIGN 7: frames are kept in memory for two minutes, the oldest go first, and no call has a limit of its own', () => {
    const frames = declarationOf('TOK');

    expect(frames).toMatchObject({ subjects: ['tok.>'], storage: 'memory', retention: 'limits', discard: 'old', max_age: 2 * MINUTE_NS });
    expect(frames.max_bytes).toBeGreaterThan(0);
    expect(Object.keys(frames)).not.toContain('max_msgs_per_subject');
  });
});
