import { expect, it } from 'vitest';
import type { RouterCall } from '#bus/messages/router.ts';
import { bundleBody } from '#shared/config/bundle-body.ts';
import { noAgentState } from '../engine/agent-state.ts';
import { noEvaluations } from '../engine/evaluation/evaluation-set.ts';
import type { TurnRow } from '../engine/turn-row.ts';
import { unknownCustomer } from '../inputs/customer-reader.ts';
import { Unrenderable } from '../runtime/publish/unrenderable.ts';
import type { RenderDeps } from './render-deps.ts';
import { turnStep } from './turn-step.ts';

const v1 = { version: 1 };
const secret = '$' + '{SECRET}';
const context = { system_prompt: { id: 'p', ...v1 }, language: 'match_user', policies: [{ id: 'leak', ...v1 }] };
const agent_config = { runtime: { api_key: secret }, platform: { public_key: secret, secret_key: secret }, llms: { default: 'a/b', api_key: secret }, context };
const body = bundleBody.parse({
  manifest: { id: 'shop', name: 'Shop', version: '1', agent_config },
  documents: {
    ...{ prompts: [{ id: 'p', ...v1, text: 'You help.' }], routines: [], glossaries: [], macros: [], variable_sets: [] },
    policies: [{ id: 'leak', ...v1, condition: 'it leaks', action: 'say: unplug it', criticality: 'high' }],
  },
});
const rows = [
  { kind: 'began', state: noAgentState },
  { kind: 'reply', callId: 'trn_1-1', text: 'of before a message joined', model: 'm', provider: 'p', tokens: 1 },
  { kind: 'began', state: noAgentState },
  { kind: 'reply', callId: 'trn_1-3', text: 'Wipe it up.', model: 'm', provider: 'p', tokens: 1 },
];
const deps: Partial<RenderDeps> = {
  bundleOf: async () => ({ hash: 'b', body }),
  customers: { ofTurn: async () => unknownCustomer },
  histories: { upTo: async () => [] },
  turns: { staged: async () => new Map([['trn_1', rows.map((row, seq) => ({ seq, body: row }))]]) },
  evaluationsOf: async () => noEvaluations,
  epochOf: () => 1,
  settings: { streaming: true, maxTokens: 10, modelKey: 'k', providerOrder: [] },
};

it.each([
  [4, 'Wipe it up.'],
  [3, null],
])('rule 84: a check shows the policies, and the reply of its turn’s %i rows', async (staged, draft) => {
  const reference = { policyIds: ['leak'] };
  const inputs = turnStep.inputs.parse({
    ...{ bundleHash: 'b', upToOffset: 0, deadlineAtMs: 1, traceparent: null, customerId: 'ada' },
    ...{ call: 'check-reply', template: 'check-reply@1', reference, staged },
  });
  const effect = { partition: 1, id: 'trn_1-4', sessionId: 's', actorId: 'trn_1', createdAtMs: 0, kind: 'turn-step', inputs };
  const { request, want, step } = (await turnStep.render(effect, false, deps as RenderDeps)) as RouterCall;
  const [, data, items] = (request.messages ?? []).map(({ content }) => String(content));

  expect(want).toBe('none');
  expect(step).toEqual({ name: 'check-reply', items: 1 });
  expect(items).toContain('{"id":1,"condition":"it leaks","action":"say: unplug it"}');
  expect(data?.includes('{"reply":')).toBe(draft !== null);
  if (draft !== null) expect(data).toContain(`{"reply":"${draft}"}`);
  expect(data).not.toContain('of before');
  expect(request.response_format).toMatchObject({ json_schema: { name: 'check_reply' } });
});

it.each([
  ['infer-tools@2', true],
  ['infer-tools@1', false],
])(
  'rule 102: a question of the template %s is rendered, also after an upgrade, with what was wrong with the answer before: %s',
  async (template, saysFault) => {
    const reference = { tools: [{ toolId: 'shop:order', reasons: [{ by: 'policy', id: 'leak' }] }], lists: { shop: 'h' } };
    const inputs = turnStep.inputs.parse({
      ...{ bundleHash: 'b', upToOffset: 0, deadlineAtMs: 1, traceparent: null, customerId: 'ada' },
      ...{ call: 'infer-tools', template, reference, staged: 2 },
    });
    const asked: TurnRow[] = [
      { kind: 'began', state: noAgentState },
      { kind: 'malformed', key: 'infer-1-1', model: 'm', ms: 1, tokens: 1, asked: 'infer-tools', reason: 'the arguments must be JSON' },
    ];
    const given = {
      ...deps,
      turns: { staged: async () => new Map([['trn_1', asked.map((row, seq) => ({ seq, body: row }))]]) },
      runs: {
        toolLists: async () => new Map([['h', [{ name: 'order', title: null, description: null, inputSchema: { type: 'object' }, repeatable: false }]]]),
      },
    };
    const effect = { partition: 1, id: 'trn_1-4', sessionId: 's', actorId: 'trn_1', createdAtMs: 0, kind: 'turn-step', inputs };

    const { request } = (await turnStep.render(effect, true, given as unknown as RenderDeps)) as RouterCall;
    expect(String(request.messages?.at(-1)?.content).includes('the arguments must be JSON')).toBe(saysFault);
    const unknown = { ...effect, inputs: { ...inputs, template: 'infer-tools@0' } };
    await expect(turnStep.render(unknown, true, given as unknown as RenderDeps)).rejects.toThrow(Unrenderable);
  },
);
