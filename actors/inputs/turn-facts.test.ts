import { expect, it } from 'vitest';
import { bundleBody } from '#shared/config/bundle-body.ts';
import type { EvaluationRow } from '#shared/config/evaluation-store.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { amendment, noAgentState } from '../engine/agent-state.ts';
import { engineDocumentsOf } from '../engine/engine-documents.ts';
import { policyKey, routineKey } from '../engine/evaluation/evaluation-keys.ts';
import { documentKeys, evaluationsOf, setOf } from '../engine/evaluation/evaluation-set.ts';
import type { StepView } from '../engine/step.ts';
import { turnCalls } from '../engine/turn-calls.ts';
import { EngineSession } from '../test-support/engine-session.ts';
import { readTurnFacts } from './turn-facts.ts';

const secret = '$' + '{SECRET}';
const routine = {
  ...{ id: 'return', version: 1, conditions: ['the customer wants to return something'] },
  steps: [
    { kind: 'chat', id: 'order', chat_state: 'ask for it' },
    { kind: 'chat', id: 'reason', chat_state: 'ask why' },
  ],
  transitions: [{ from: 'order', to: 'reason' }],
};
const policy = { id: 'leak', version: 1, condition: 'you name a price', action: 'say it with tax' };
const context = {
  system_prompt: { id: 'p', version: 1 },
  language: 'match_user',
  routines: [{ id: 'return', version: 1 }],
  policies: [{ id: 'leak', version: 1 }],
};
const agent_config = { runtime: { api_key: secret }, platform: { public_key: secret, secret_key: secret }, llms: { default: 'a/b', api_key: secret }, context };
const body = bundleBody.parse({
  manifest: { id: 'shop', name: 'Shop', version: '1', agent_config },
  documents: { prompts: [], routines: [routine], policies: [policy], glossaries: [], macros: [], variable_sets: [] },
});
const bundle: Bundle = { hash: 'bundle', body };

const stored = new Map<string, EvaluationRow>();
function store(hash: string | null, kind: EvaluationRow['kind'], result: unknown): string {
  stored.set(hash ?? '', { hash: hash ?? '', kind, result });
  return hash ?? '';
}
const [parsed] = body.documents.routines;
const [leak] = body.documents.policies;
if (parsed === undefined || leak === undefined) throw new Error('the bundle lacks documents');
const node = (action: string, path: string[]) => ({
  internal_action: action,
  customer_dependent_action_data: { is_customer_dependent: true, customer_action: null, agent_action: null },
  tool_running_only: false,
  follow_ups: path.length === 0 ? [] : [{ condition: 'The order is known', path }],
});
const nodes = { order: node('ask for the order number', ['reason']), reason: node('ask why it comes back', []) };
const found = { continuous: null, customerDependent: false, agentIntentionCondition: 'the agent is about to name a price', internalAction: null };
const ofRoutine = store(routineKey(parsed, 'a/b'), 'routine', { nodes });
const ofPolicy = store(policyKey(leak, 'a/b'), 'policy', { ...found, continuous: true });
const keys = documentKeys(body);
const first = setOf(keys, [ofPolicy]);
const second = setOf(keys, [ofPolicy, ofRoutine]);
const evaluations = {
  newestSet: async () => second.hash,
  read: async (_bundle: Bundle, set: string | null) => {
    const hashes = [first, second].find(({ hash }) => hash === set)?.set.hashes ?? [];
    return evaluationsOf(String(set), new Map([...stored].filter(([hash]) => hashes.includes(hash))), 'a/b');
  },
};

const view: StepView = {
  ...{ callId: 'trn_1-1', nowMs: 0, agent: { id: 'a', name: 'Ada' }, customerName: null, systemPrompt: '', language: 'match_user' },
  ...{ glossary: [], variables: [], history: [], staged: [] },
};

it('DESIGN 5: rule 49: a turn goes on with the evaluations with which it began, and the next one has the newest', async () => {
  const session = new EngineSession(engineDocumentsOf(body, await evaluations.read(bundle, first.hash)) ?? expect.fail('the agent has policies'));
  session.say('Hello');
  expect(session.rows()[0]).toMatchObject({ kind: 'began', evaluations: first.hash });
  for (const { inputs } of session.open.values()) expect(inputs).toMatchObject({ evaluations: first.hash });
  const [call] = session.open.values();
  const command = session.resultOf(call?.id ?? '', '{}');
  const turns = {
    agentStates: async () => new Map(),
    toolLists: async () => new Map(),
    staged: async (ids: readonly string[]) => new Map(ids.map((id) => [id, session.rows(id).map((row, seq) => ({ seq, body: row }))])),
  };

  const facts = await readTurnFacts(
    { turns, lists: async () => new Map(), evaluations, bundleOf: async () => bundle, log: silentLog },
    [command],
    new Map([['ses_1', session.state]]),
  );

  expect(facts?.documentsOf('bundle', first.hash)).toMatchObject({ evaluationSet: first.hash, routineModels: [{ evaluation: null }] });
  expect(facts?.documentsOf('bundle')).toMatchObject({ evaluationSet: second.hash, routineModels: [{ evaluation: { hash: ofRoutine } }] });
  expect(facts?.documentsOf('bundle')?.policyEvaluations.get('leak')).toEqual({ ...found, continuous: true });
});

it('rule 49: questions have the texts of the evaluation', async () => {
  const documents = engineDocumentsOf(body, await evaluations.read(bundle, second.hash)) ?? expect.fail('the agent has policies');
  const lastOf = (kind: keyof typeof turnCalls, reference: unknown) =>
    String(
      turnCalls[kind]
        .questionOf(reference, documents, () => null)
        .render(view)
        .messages.at(-1)?.content,
    );

  const asked = { kind: 'next-step', routineId: 'return', pass: 1, path: [], at: 'order', prefix: ['order'], evaluation: ofRoutine };
  expect(lastOf('routine', asked)).toContain('"current_step":"ask for the order number"');
  expect(lastOf('routine', asked)).toContain('{"id":"1","condition":"The order is known","step":"ask why it comes back"}');
  expect(lastOf('match', { id: 'actionable-1', class: 'actionable', policyIds: ['leak'] })).toContain('the agent is about to name a price');
});

it('rule 16: the newest agent state has what was found out about earlier turns since', async () => {
  const session = new EngineSession(engineDocumentsOf(body, await evaluations.read(bundle, first.hash)) ?? expect.fail('the agent has policies'));
  session.say('Hello');
  const [call] = session.open.values();
  const state = { ...noAgentState, seq: 2, appliedPolicyIds: ['tax'] };
  const amendments = [amendment(1, ['leak', 'tax']).state, 'unreadable'];
  const turns = {
    agentStates: async () => new Map([['ses_1', { offset: 4, state, amendments }]]),
    toolLists: async () => new Map(),
    staged: async () => new Map(),
  };
  const facts = await readTurnFacts(
    { turns, lists: async () => new Map(), evaluations, bundleOf: async () => bundle, log: silentLog },
    [session.resultOf(call?.id ?? '', '{}')],
    new Map([['ses_1', session.state]]),
  );

  expect(facts?.agentStateOf('ses_1')).toEqual({ offset: 4, state: { ...state, appliedPolicyIds: ['tax', 'leak'] } });
});
