import { describe, expect, it } from 'vitest';
import type { InferAnswer } from './infer-answer.ts';
import type { StagedCall } from './tool-batch.ts';
import { toolRound } from './tool-rounds.ts';

const listed = (name: string, repeatable = false) => ({ name, title: null, description: null, inputSchema: { type: 'object' }, repeatable });
const lists = { shop: { hash: 'h1', tools: [listed('order', true), listed('refund')] } };
const policy = (id: string, ...tools: string[]) => ({ id, condition: `when ${id}`, action: `do ${id}`, tools });
const runs = (toolId: string, args: Record<string, unknown> = {}): InferAnswer['tools'][number] => ({
  outcome: 'needs_to_run',
  toolId,
  listHash: 'h1',
  arguments: args,
});
const call = (toolId: string, args: Record<string, unknown> = {}): StagedCall => ({
  toolId,
  arguments: args,
  hasFailed: false,
  result: { data: 'x', metadata: {} },
  control: { mode: null, lifespan: 'session', policies: [] },
});
const reference = (by: 'policy' | 'step', id: string, ...tools: string[]) => ({
  tools: tools.map((toolId) => ({ toolId, reasons: [{ by, id }] })),
  lists: { shop: 'h1' },
});
const none = { iteration: 1, policies: [], steps: [], lists, inferences: new Map(), settled: new Map(), earlier: [] };
const p1 = policy('p1', 'shop:order', 'shop:refund');
const inference = (...tools: InferAnswer['tools']) => ({ reference: reference('policy', 'p1', 'shop:order', 'shop:refund'), answer: { tools } });

describe('the tools of an iteration', () => {
  it('rule 50: need nothing without a reason', () => {
    expect(toolRound(none)).toEqual({ type: 'done', executed: [] });
  });

  it('rule 54: are inferred first, then called, then done; the order of results has no effect', () => {
    const asked = toolRound({ ...none, policies: [p1] });
    expect(asked).toEqual({ type: 'infer', requests: [{ key: 'infer-1-1', reference: reference('policy', 'p1', 'shop:order', 'shop:refund') }] });
    const inferences = new Map([['infer-1-1', inference(runs('shop:refund', { id: 1 }), runs('shop:order'))]]);
    expect(toolRound({ ...none, policies: [p1], inferences })).toEqual({
      type: 'call',
      calls: [
        { key: 'tool-1-1', toolId: 'shop:refund', listHash: 'h1', arguments: { id: 1 }, from: { key: 'infer-1-1', index: 0 }, isRepeatable: false },
        { key: 'tool-1-2', toolId: 'shop:order', listHash: 'h1', arguments: {}, from: { key: 'infer-1-1', index: 1 }, isRepeatable: true },
      ],
    });
    const [refund, order] = [call('shop:refund', { id: 1 }), call('shop:order')];
    const one = toolRound({ ...none, policies: [p1], inferences, settled: new Map([['tool-1-2', order]]) });
    expect(one).toMatchObject({ type: 'call', calls: [{ key: 'tool-1-1' }] });
    const both = new Map([
      ['tool-1-2', order],
      ['tool-1-1', refund],
    ]);
    expect(toolRound({ ...none, policies: [p1], inferences, settled: both })).toEqual({ type: 'done', executed: [refund, order] });
  });

  it('rule 51: are asked about for newly matched policies alone in a later iteration', () => {
    const inferences = new Map([['infer-1-1', inference()]]);
    const later = toolRound({ ...none, iteration: 2, policies: [p1, policy('p2', 'shop:refund')], inferences });
    expect(later).toEqual({ type: 'infer', requests: [{ key: 'infer-2-1', reference: reference('policy', 'p2', 'shop:refund') }] });
    expect(toolRound({ ...none, iteration: 2, policies: [p1], inferences })).toEqual({ type: 'done', executed: [] });
  });

  it('rule 60: are not called as in an earlier iteration, or as before the turn began again', () => {
    const p2 = policy('p2', 'shop:refund');
    const inferences = new Map([
      ['infer-1-1', inference(runs('shop:refund', { id: 1 }))],
      [
        'infer-2-1',
        { reference: reference('policy', 'p2', 'shop:refund'), answer: { tools: [runs('shop:refund', { id: 1 }), runs('shop:refund', { id: 2 })] } },
      ],
    ]);
    const second = { ...none, iteration: 2, policies: [p1, p2], inferences };
    const settled = new Map([['tool-1-1', call('shop:refund', { id: 1 })]]);
    expect(toolRound({ ...second, settled })).toMatchObject({ type: 'call', calls: [{ arguments: { id: 2 }, from: { key: 'infer-2-1', index: 1 } }] });
    expect(toolRound({ ...second, earlier: [call('shop:refund', { id: 1 }), call('shop:refund', { id: 2 })] })).toEqual({ type: 'done', executed: [] });
  });
});
