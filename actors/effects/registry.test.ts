import { describe, expect, it } from 'vitest';
import { resultTypes } from '#bus/messages/session.ts';
import { workQueues } from '#bus/work-queues.ts';
import { Unrenderable } from '../runtime/publish/unrenderable.ts';
import { EffectTable } from './effect-table.ts';
import { effects } from './registry.ts';
import type { RenderDeps } from './render-deps.ts';
import { toolList } from './tool-list.ts';

const common = { deadlineAtMs: 1, traceparent: null };

/** Rows as earlier releases have written them. */
const written: Record<string, object> = {
  'router-call': { template: 'compose@2', bundleHash: 'b', upToOffset: 3, ...common },
  'turn-applied': { bundleHash: 'b', template: 'judge-applied@1', upToOffset: 5, policyIds: ['leak'], ...common },
  'turn-step': { bundleHash: 'b', upToOffset: 3, call: 'match', template: 'match-actionable@1', reference: { id: 'b-1' }, staged: 1, ...common },
  'run-call': { bundleHash: 'b', ...common, template: 'run@1', runId: 'r', stepCount: 2, useFallbackModel: false, lists: { shop: 'hash' } },
  'tool-list': { bundleHash: 'b', ...common, servers: ['shop'] },
  'tool-call': { bundleHash: 'b', ...common, runId: 'r', toolCallId: 'c', toolId: 'shop:refund', listHash: 'hash' },
  'turn-tool-call': { bundleHash: 'b', toolId: 'shop:refund', listHash: 'hash', from: { key: 'infer-1-1', index: 0 }, staged: 3, ...common },
  'turn-preamble': { bundleHash: 'b', template: 'write-preamble@1', upToOffset: 3, ...common },
  'rewrite-query': { bundleHash: 'b', template: 'rewrite-query@1', upToOffset: 3, ...common },
  embed: { bundleHash: 'b', upToOffset: 3, staged: 2, ...common },
  'embed-messages': { bundleHash: 'b', upToOffset: 3, texts: ['message', 'talk'], ...common },
  moderation: { upToOffset: 3, mode: 'paranoid', ...common },
  search: { bundleHash: 'b', upToOffset: 3, ...common },
  delivery: { deliveryId: 'r-callback', ...common },
  'event-delivery': { bundleHash: 'b', url: 'https://a.example/', kinds: ['tool'], fromOffset: 2, toOffset: 5, attempts: 1, waitingSinceMs: 7, ...common },
};

describe('the kinds of effects', () => {
  it('go to queues that the bus has, and every result that a worker may send is awaited by one of them', () => {
    for (const { work } of effects.kinds) expect(Object.keys(workQueues)).toContain(work);

    const awaited = effects.kinds.flatMap(({ results }) => Object.keys(results));
    expect([...new Set(awaited)].sort()).toEqual([...resultTypes].sort());
  });

  it('read the inputs that earlier releases have stored, unchanged', () => {
    expect(effects.kinds.map(({ name }) => name).sort()).toEqual(Object.keys(written).sort());
    for (const { name, inputs } of effects.kinds) expect(inputs.parse(written[name])).toEqual(written[name]);
  });

  it('refuse a row whose inputs they do not know, rather than render another request than its host did', async () => {
    const row = {
      partition: 1,
      id: 'r-1',
      sessionId: 's',
      actorId: 'r',
      createdAtMs: 0,
      kind: 'run-call',
      inputs: { ...written['run-call'], template: 'run@3' },
    };

    await expect(effects.render({ ...row, inputs: { ...common, ...row.inputs } }, true, {} as RenderDeps)).rejects.toThrow(/run@1/);
  });

  it('of a check after a turn with the template of another release are never rendered, and are reported at once', async () => {
    const row = { partition: 1, id: 't-applied', sessionId: 's', actorId: 't', createdAtMs: 0, kind: 'turn-applied' };
    const inputs = { ...common, ...written['turn-applied'], template: 'judge-applied@0' };
    await expect(effects.render({ ...row, inputs }, true, {} as RenderDeps)).rejects.toThrow(Unrenderable);
  });

  it('share no name, and no request or result of an actor', () => {
    expect(() => new EffectTable([toolList, toolList])).toThrow(TypeError);
    expect(() => new EffectTable([toolList, { ...toolList, name: 'other', request: 'other' }])).toThrow(TypeError);
    expect(() => new EffectTable([toolList, { ...toolList, name: 'other', request: 'other', results: {} }])).not.toThrow();
    expect(() => effects.kind('unheard-of')).toThrow("there is no kind of effect 'unheard-of'");
  });
});
