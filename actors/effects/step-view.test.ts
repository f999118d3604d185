import { describe, expect, it } from 'vitest';
import type { BundleBody } from '#shared/config/bundle-body.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import { glossary } from '#shared/contracts/documents/glossary.ts';
import { prompt } from '#shared/contracts/documents/prompt.ts';
import { manifest } from '#shared/contracts/manifest/manifest.ts';
import { noAgentState } from '../engine/agent-state.ts';
import { testPolicy } from '../engine/policies/test-support/test-policy.ts';
import type { TurnRow } from '../engine/turn-row.ts';
import { unknownCustomer } from '../inputs/customer-reader.ts';
import { stepView } from './step-view.ts';

const v1 = { id: 'one', version: 1 };
const body: BundleBody = {
  manifest: manifest.parse({
    ...{ id: 'acme', name: 'Acme', version: '1' },
    agent_config: {
      runtime: { api_key: '${A}' },
      platform: { public_key: '${B}', secret_key: '${C}' },
      llms: { default: 'openai/gpt-5', api_key: '${D}' },
      context: { system_prompt: v1, language: 'match_user' },
    },
  }),
  documents: { prompts: [prompt.parse({ ...v1, text: 'You help.' })], glossaries: [], routines: [], policies: [], macros: [], variable_sets: [] },
};

const said = { created_at: '2026-01-01T00:00:00.000Z', trace_id: 'f'.repeat(32) };

it('rule 110: announcements of tools are in no prompt; preambles are', async () => {
  const events: ConversationEvent[] = [
    { ...said, id: 'evt_0', offset: 0, source: 'customer', metadata: {}, kind: 'user_message', text: 'Where is it?' },
    { ...said, id: 'evt_1', offset: 1, source: 'ai_agent', metadata: {}, kind: 'preamble', text: 'One moment.' },
    { ...said, id: 'evt_2', offset: 2, source: 'ai_agent', metadata: { announces: 'tools' }, kind: 'preamble', text: 'order' },
  ];
  const { history } = await viewOf(body, events);

  expect(history.map(({ id }) => id)).toEqual(['evt_0', 'evt_1']);
});

it('rule 102: of a question that is asked once more, what was wrong with the answer; other rows say nothing of it', async () => {
  const began: TurnRow = { kind: 'began', state: noAgentState };
  const fault: TurnRow = { kind: 'malformed', key: 'infer-1-1', model: 'm', ms: 1, tokens: 1, asked: 'infer-tools', reason: 'the arguments must be JSON' };

  expect(await viewOf(body, [], [began, fault])).toMatchObject({ fault: 'the arguments must be JSON' });
  expect(await viewOf(body, [], [fault, began])).not.toHaveProperty('fault');
});

describe('rule 82: of more than 50 terms a later prompt of the turn has those, too, that are like', () => {
  const terms = Array.from({ length: 60 }, (_, index) => ({ name: `name${index}`, description: `word${index}`, synonyms: [] }));
  const policies = [testPolicy('leak', { condition: 'it leaks', action: 'say word1' }), testPolicy('other', { condition: 'word2', action: null })];
  const { context } = body.manifest.agent_config;
  const large: BundleBody = {
    manifest: {
      ...body.manifest,
      agent_config: { ...body.manifest.agent_config, context: { ...context, glossaries: [v1], policies: policies.map(({ id }) => ({ id, version: 1 })) } },
    },
    documents: { ...body.documents, policies, glossaries: [glossary.parse({ ...v1, terms })] },
  };
  const asked: ConversationEvent = { ...said, id: 'evt_0', offset: 0, source: 'customer', metadata: {}, kind: 'user_message', text: 'What is word59?' };
  const began: TurnRow = { kind: 'began', state: noAgentState };
  const call = { key: '1/actionable-1', model: 'm', ms: 1, tokens: 1 };
  const verdict = (id: string, applies: boolean) => ({ id, applies, rationale: null });
  const verdicts = [verdict('leak', true), verdict('other', false)];
  const reference = { id: 'actionable-1', class: 'actionable' as const, policyIds: ['leak', 'other'] };
  const matched: TurnRow = { kind: 'match', ...call, reference, answer: { verdicts, clarification: null } };
  const resolved: TurnRow = {
    kind: 'resolved',
    policies: [{ id: 'other', rationale: null }],
    clarifications: [],
    steps: [],
    paths: {},
    tracked: [],
    resolutions: [],
  };
  const result = (data: unknown) => ({ tool_id: 'shop:look', arguments: {}, result: { data, metadata: {} } });
  const tools = (offset: number, data: unknown): ConversationEvent => ({
    ...said,
    ...{ id: `evt_${offset}`, offset, source: 'ai_agent', metadata: {}, kind: 'tool', tool_calls: [result(data)] },
  });
  const hidden: TurnRow = {
    ...{ kind: 'tool', key: '1-0', ms: 1 },
    call: {
      toolId: 'shop:look',
      arguments: {},
      hasFailed: false,
      result: { data: ['word5'], metadata: {} },
      control: { mode: null, lifespan: 'response', policies: [] },
    },
  };
  const namesOf = async (events: readonly ConversationEvent[], rows: readonly TurnRow[]) =>
    (await viewOf(large, events, rows)).glossary.map(({ name }) => name);

  it('the policies that have matched', async () => {
    expect(await namesOf([asked], [])).toEqual(['name59']);
    expect(await namesOf([asked], [began])).toEqual(['name59']);
    expect(await namesOf([asked], [began, matched])).toEqual(['name59', 'name1']);
  });

  it('those that vectors have chosen, in place of the words of the talk, and behind them those that are like by their words', async () => {
    const likeness: TurnRow = { kind: 'likeness', key: 'likeness', model: 'm', ms: 1, tokens: 1, failure: null, terms: [7, 8] };
    expect(await namesOf([asked], [began, likeness])).toEqual(['name7', 'name8']);
    expect(await namesOf([asked], [began, likeness, matched])).toEqual(['name7', 'name8', 'name1']);
    // Of before a message joined; and without terms, or vectors.
    expect(await namesOf([asked], [began, likeness, began])).toEqual(['name59']);
    expect(await namesOf([asked], [began, { ...likeness, terms: undefined }])).toEqual(['name59']);
    expect(await namesOf([asked], [began, { ...likeness, terms: [] }])).toEqual([]);
  });

  it('those that are in force, once that is decided', async () => {
    expect(await namesOf([asked], [began, matched, resolved])).toEqual(['name59', 'name2']);
  });

  it('results of this turn’s tools, of the session or of the reply alone, and no earlier ones', async () => {
    const earlier: ConversationEvent = { ...said, id: 'evt_9', offset: 9, source: 'ai_agent', metadata: {}, kind: 'assistant_message', text: 'Yes.' };
    expect(await namesOf([asked, tools(1, { found: 'word3' })], [began])).toEqual(['name59', 'name3']);
    expect(await namesOf([tools(1, 'word4'), earlier, asked], [began])).toEqual(['name59']);
    const longResult = (characters: number) => [asked, tools(1, `${'x '.repeat(characters / 2)}word3`)];
    expect(await namesOf(longResult(4_000), [began])).toEqual(['name59', 'name3']);
    expect(await namesOf(longResult(4_096), [began])).toEqual(['name59']);
    expect(await namesOf([asked], [began, hidden])).toEqual(['name59', 'name5']);
  });
});

/** @param rows of the turn */
async function viewOf(of: BundleBody, events: readonly ConversationEvent[], rows: readonly TurnRow[] = []) {
  const inputs = { deadlineAtMs: 1, traceparent: null, upToOffset: 9, staged: rows.length };
  const effect = { partition: 1, id: 'trn_1-1', sessionId: 's', actorId: 'trn_1', createdAtMs: 0, kind: 'router-call', inputs };
  const staged = new Map([['trn_1', rows.map((body, seq) => ({ seq, body }))]]);
  return await stepView(effect, of, unknownCustomer, { histories: { upTo: async () => [...events] }, turns: { staged: async () => staged } });
}
