import { expect, it } from 'vitest';
import type { RouterCall } from '#bus/messages/router.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import { glossary } from '#shared/contracts/documents/glossary.ts';
import { policy } from '#shared/contracts/documents/policy.ts';
import { prompt } from '#shared/contracts/documents/prompt.ts';
import { variableSet } from '#shared/contracts/documents/variable-set.ts';
import { manifest } from '#shared/contracts/manifest/manifest.ts';
import { noAgentState } from '../engine/agent-state.ts';
import { Unrenderable } from '../runtime/publish/unrenderable.ts';
import type { RenderDeps } from './render-deps.ts';
import { turnCall } from './turn-call.ts';

it.each([
  ['compose@1', 0],
  ['compose@2', 0],
  ['compose@3', 50],
  ['compose@4', 50],
  ['compose-guided@1', 50],
])('rule 82: the reply’s prompt of %s has %i of 50 terms', async (template, expected) => {
  expect(await termsIn(template, 50)).toBe(expected);
});

it('rule 82: of more terms those that the conversation is about', async () => {
  expect(await termsIn('compose@3', 51)).toBe(1);
});

it.each([
  ['the evaluations with which the turn began', 'e1', 'say it in Euro'],
  ['the documents without evaluations', undefined, 'say it'],
])('rule 80: the reply’s guidance has the words of %s', async (_, evaluations, action) => {
  const began = { kind: 'began', state: noAgentState, ...(evaluations !== undefined && { evaluations }) };
  const messages = await messagesOf('compose-guided@1', 1, [began, { kind: 'resolved', policies: [{ id: 'one', rationale: null }], clarifications: [] }]);

  expect(messages.at(-1)).toContain(`\n- When asked, then ${action}\n`);
});

it('rule 92: the reply’s prompt has the customer’s name and variables before the conversation, as data', async () => {
  const [, known, said] = await messagesOf('compose@4', 1, undefined, 'ada');

  expect(known).toContain('\n{"variable":"customer name","value":"Ada"}\n{"variable":"plan","description":"paid for","value":"gold"}\n');
  expect(known).toContain('It is data');
  expect(said).toBe('what is term0?');
});

it('rule 92: the prompts of releases before stay as they were', async () => {
  expect(await messagesOf('compose@3', 1)).toHaveLength(2);
});

it.each([
  [true, 'none'],
  [undefined, 'frames'],
])('DESIGN 5: rule 85: the frames of a reply that is checked are not sent (%s)', async (isWithheld, want) => {
  expect(await callOf('compose-guided@2', 1, [{ kind: 'began', state: noAgentState }], { isWithheld })).toMatchObject({ want });
});

it('a reply’s prompt of another release is reported at once', async () => {
  await expect(messagesOf('compose@99', 1)).rejects.toThrow(Unrenderable);
});

/** In a conversation about the first one. */
async function termsIn(template: string, count: number): Promise<number> {
  const [system] = await messagesOf(template, count);
  return system?.match(/^- term/gm)?.length ?? 0;
}

/** @param rows of the turn; absent: it has none */
async function messagesOf(template: string, countOfTerms: number, rows?: readonly object[], customerId?: string): Promise<string[]> {
  const { request } = await callOf(template, countOfTerms, rows, { customerId });
  return (request.messages ?? []).map(({ content }) => String(content));
}

async function callOf(template: string, countOfTerms: number, rows: readonly object[] | undefined, more: object): Promise<RouterCall> {
  const staged = rows === undefined ? {} : { staged: rows.length };
  const inputs = turnCall.inputs.parse({ template, bundleHash: 'b', upToOffset: 0, deadlineAtMs: 1, traceparent: null, ...staged, ...more });
  const effect = { partition: 1, id: 'trn_1-1', sessionId: 's', actorId: 'trn_1', createdAtMs: 0, kind: 'router-call', inputs };
  return (await turnCall.render(effect, false, depsWith(countOfTerms, rows ?? []))) as RouterCall;
}

function depsWith(count: number, rows: readonly object[]): RenderDeps {
  const terms = Array.from({ length: count }, (_, index) => ({ name: `term${index}`, description: `meaning${index}` }));
  const v1 = { id: 'one', version: 1 };
  const body = {
    manifest: manifest.parse({
      id: 'acme',
      name: 'Acme',
      version: '1',
      agent_config: {
        runtime: { api_key: '${A}' },
        platform: { public_key: '${B}', secret_key: '${C}' },
        llms: { default: 'openai/gpt-5', api_key: '${D}' },
        context: { system_prompt: v1, language: 'match_user', glossaries: [v1], policies: [v1] },
      },
    }),
    documents: {
      prompts: [prompt.parse({ ...v1, text: 'You help.' })],
      glossaries: [glossary.parse({ ...v1, terms })],
      routines: [],
      policies: [policy.parse({ ...v1, condition: 'asked', action: 'say it' })],
      macros: [],
      variable_sets: [variableSet.parse({ ...v1, variables: [{ name: 'plan', description: 'paid for' }] })],
    },
  };
  const evaluation = { continuous: false, customerDependent: false, agentIntentionCondition: null, internalAction: 'say it in Euro' };
  const said = { id: 'evt_1', offset: 0, created_at: '2026-01-01T00:00:00.000Z', source: 'customer', trace_id: 'f'.repeat(32), metadata: {} } as const;
  const deps: Partial<RenderDeps> = {
    bundleOf: async (): Promise<Bundle> => ({ hash: 'b', body }),
    customers: { ofTurn: async () => ({ name: 'Ada', values: new Map([['plan', 'gold']]) }) },
    histories: { upTo: async () => [{ ...said, kind: 'user_message', text: 'what is term0?' }] },
    turns: { staged: async () => new Map([['trn_1', rows.map((row, seq) => ({ seq, body: row }))]]) },
    evaluationsOf: async (_, set) => ({ set, policyOf: () => (set === 'e1' ? evaluation : null), routineOf: () => null, vectorsOf: () => null }),
    epochOf: () => 1,
    settings: { streaming: true, maxTokens: 10, modelKey: 'k', providerOrder: [] },
  };
  return deps as RenderDeps;
}
