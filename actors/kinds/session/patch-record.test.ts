import { describe, expect, it } from 'vitest';
import type { CommandOf } from '#bus/messages/session.ts';
import type { SessionRecord } from '#shared/contracts/agent/session.ts';
import { patchProblem, patchRecord } from './patch-record.ts';

const record: SessionRecord = {
  id: 'ses_a',
  customer_id: 'cus_1',
  agent_id: 'support',
  title: 'Warranty',
  mode: 'auto',
  status: 'ready',
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
  last_offset: 4,
  consumption_offsets: { client: 2 },
  metadata: { plan: 'gold', region: 'eu' },
  labels: ['vip', 'vip', 'open'],
  ephemeral: false,
};

function patch(changes: Partial<CommandOf<'session.patch'>> = {}): CommandOf<'session.patch'> {
  const header = { v: 1, sessionId: 'ses_a', commandId: 'cmd_1', sentAtMs: 0, answerTo: null, traceparent: null } as const;
  return { ...header, type: 'session.patch', setMetadata: {}, unsetMetadata: [], upsertLabels: [], removeLabels: [], ...changes };
}

const labels = (count: number, prefix: string) => Array.from({ length: count }, (_, n) => `${prefix}${n}`);

describe('a refused change of a record', () => {
  it.each<[string, Partial<CommandOf<'session.patch'>>, string]>([
    ['more labels than a session may be made with', { upsertLabels: labels(99, 'l') }, 'labels is not valid'],
    ['a client ahead of the log', { clientOffset: 5 }, 'consumption_offsets.client is not valid'],
    ['metadata larger than a session may be made with', { setMetadata: { more: 'x'.repeat(1_024 * 1_024) } }, 'metadata is not valid'],
    ['metadata that is larger in bytes than in characters', { setMetadata: { more: 'é'.repeat(600 * 1_024) } }, 'metadata is not valid'],
  ])('%s is refused and named', (_, changes, problem) => {
    expect(patchProblem(record, patch(changes))).toContain(problem);
  });

  it('is counted after removals', () => {
    const full = { ...record, labels: labels(100, 'l') };

    expect(patchProblem(full, patch({ upsertLabels: ['new'] }))).toContain('labels');
    expect(patchProblem(full, patch({ upsertLabels: ['new'], removeLabels: ['l0'] }))).toBeNull();
    expect(patchProblem(full, patch({ upsertLabels: ['l7'] }))).toBeNull();
  });

  it('is never a reduction: metadata of any size may shrink', () => {
    const large = { ...record, metadata: { a: 'x'.repeat(1_024 * 1_024), b: 1 } };

    expect(patchProblem(large, patch({ unsetMetadata: ['b'], title: 'new' }))).toBeNull();
  });
});

describe('a record that is changed', () => {
  it('retains what is not named, byte for byte', () => {
    expect(patchRecord(record, patch())).toEqual(record);
  });

  it('sets what is named', () => {
    const changed = patchRecord(
      record,
      patch({
        title: null,
        mode: 'manual',
        setMetadata: { region: 'us', tier: { level: 2 } },
        unsetMetadata: ['plan', 'unheard-of'],
        upsertLabels: ['vip', 'urgent'],
        removeLabels: ['open', 'unheard-of'],
        clientOffset: 4,
      }),
    );

    expect(changed).toEqual({
      ...record,
      title: null,
      mode: 'manual',
      metadata: { region: 'us', tier: { level: 2 } },
      labels: ['vip', 'urgent'],
      consumption_offsets: { client: 4 },
    });
  });

  it('drops what is set and removed in one request', () => {
    const changed = patchRecord(record, patch({ setMetadata: { plan: 'silver' }, unsetMetadata: ['plan'], upsertLabels: ['x'], removeLabels: ['x'] }));

    expect(changed.metadata).toEqual({ region: 'eu' });
    expect(changed.labels).toEqual(['vip', 'open']);
  });

  it('stores a key of any name', () => {
    const changed = patchRecord(record, patch({ setMetadata: JSON.parse('{"__proto__": {"polluted": true}, "constructor": 1}') as Record<string, unknown> }));

    expect(JSON.parse(JSON.stringify(changed.metadata))).toEqual(
      JSON.parse('{"plan": "gold", "region": "eu", "__proto__": {"polluted": true}, "constructor": 1}'),
    );
    expect(Object.getPrototypeOf(changed.metadata)).toBe(Object.prototype);
  });
});
