import { describe, expect, it } from 'vitest';
import { bundleBody } from '#shared/config/bundle-body.ts';
import { guidanceOf } from '../../engine/composition/guidance-of.ts';
import { type EngineDocuments, engineDocumentsOf } from '../../engine/engine-documents.ts';
import { EngineSession } from '../../test-support/engine-session.ts';

const routines = [
  {
    ...{ id: 'return', version: 1, title: 'Return', conditions: ['the customer wants to return something'], policies: ['gift'] },
    steps: [
      { kind: 'chat', id: 'order', chat_state: 'ask for the order number' },
      { kind: 'chat', id: 'reason', chat_state: 'ask for the reason' },
    ],
    transitions: [
      { from: 'order', to: 'reason', when: 'the number is known' },
      { from: 'reason', to: 'end' },
    ],
  },
];
const policies = [
  { id: 'leak', version: 1, condition: 'the machine leaks', action: 'ask for a photo' },
  { id: 'gift', version: 1, condition: 'it was a gift', action: 'give a voucher' },
  { id: 'kind', version: 1, condition: 'the customer is sad', action: 'be kind' },
];
const RETURN = 'routine:return:0';

describe('a turn of an agent with routines and relationships', () => {
  it('rule 108: enters a routine whose condition holds, judges its policies, and replies with its step', () => {
    const { session, guidance } = begun();
    expect(session.asked).toEqual([expect.stringMatching(/\[routine:return:0\]$/), expect.stringMatching(/\[leak kind\]$/)]);
    session.judge(`${session.turnId}-1`, [RETURN]);
    session.judge(`${session.turnId}-2`, []);
    expect(session.asked).toEqual([expect.stringMatching(/next-step$/)]);
    session.reply(`${session.turnId}-3`, JSON.stringify({ rationale: 'r', step_completed: false, choice: '0' }));
    expect(session.asked).toEqual([expect.stringMatching(/\[gift\]$/)]);
    session.judge(`${session.turnId}-4`, ['gift']);
    session.finish();

    expect(session.lines).toEqual(['user_message Hello', 'acknowledged', 'processing/matching', 'typing', 'assistant_message a reply', 'ready']);
    expect(guidance()).toContain('The current step of "Return": ask for the order number');
    expect(guidance()).toContain('When it was a gift, then give a voucher');
    expect(session.agentStates).toMatchObject([{ paths: { return: ['order'] } }]);
  });

  it('rule 108: the trace of the turn names the step that was entered', () => {
    const { session } = begun();
    session.finish([RETURN]);
    const planning = session.ended
      .filter(({ kind }) => kind === 'plan')
      .at(-1)
      ?.details?.('off');

    expect(planning?.attributes).toMatchObject({ 'switchyard.policies.matched': [RETURN], 'switchyard.steps': ['return:order'] });
    expect(planning?.events.filter(({ name }) => name === 'step.entered')).toMatchObject([
      { attributes: { 'switchyard.routine.id': 'return', 'switchyard.step.id': 'order' } },
    ]);
  });

  it('rule 12: judges the policies of the routine that the message is most like at once, and follows them only in it', () => {
    const { session, guidance } = begun();
    session.finish();
    session.say('Can I return it?');
    expect(session.rows()[0]).toMatchObject({ kind: 'began', likeliest: 'return' });
    expect(session.asked.map((call) => call.replace(/^\S+ /, ''))).toEqual(['[routine:return:0]', '[leak gift]', '[kind]']);
    session.finish(['gift', 'kind']);

    expect(guidance()).toContain('be kind');
    expect(guidance()).not.toContain('voucher');
  });

  it('rule 108: a routine that is followed is asked about beside the matching, and goes on', () => {
    const { session } = begun();
    session.finish([RETURN]);
    session.say('Number 7');
    expect(session.asked.map((call) => call.replace(/^\S+ /, ''))).toEqual(['[leak gift]', '[kind]', 'next-step', 'backtrack']);
    session.finish([], '1');

    expect(session.agentStates.at(-1)).toMatchObject({ paths: { return: ['order', 'reason'] } });
  });

  it.each([['backtrack', 'next-step'], ['next-step', 'backtrack'], ['backtrack']])(
    'rule 36: a routine goes back whichever answer comes first: %s %s',
    (...order) => {
      const { session } = begun();
      session.finish([RETURN]);
      session.say('Number 7');
      session.finish([], '1');
      session.say('Number 8, sorry');
      const answers: Record<string, string> = {
        backtrack: JSON.stringify({ rationale: 'r', requires_backtracking: true, same_process: true }),
        'next-step': JSON.stringify({ rationale: 'r', step_completed: false, choice: '0' }),
      };
      const idOf = (kind: string) => session.asked.find((call) => call.endsWith(` ${kind}`))?.split(' ')[0];
      const awaited = Object.keys(answers).map(idOf);
      for (const kind of order) {
        const id = idOf(kind);
        // The second answer may find its call superseded.
        if (id !== undefined) session.reply(id, answers[kind] ?? '');
      }
      for (const call of session.asked.filter((one) => one.endsWith(']'))) session.judge(call.split(' ')[0] ?? '', []);

      expect(session.asked).toEqual([expect.stringMatching(/ select-node$/)]);
      expect(session.aborted.filter((id) => awaited.includes(id))).toHaveLength(order[0] === 'backtrack' ? 1 : 0);
      session.reply(session.asked[0]?.split(' ')[0] ?? '', JSON.stringify({ rationale: 'r', backtrack_to: 1, advanced: [], next_step: 1 }));
      session.finish();
      expect(session.agentStates.at(-1)).toMatchObject({ paths: { return: ['order', 'reason', 'order'] } });
      expect(session.lines.at(-1)).toBe('ready');
      expect(session.lines.join()).not.toContain('error');
    },
  );

  it('rule 109: a policy over a routine keeps the routine out of this turn, and its path as it was', () => {
    const { session, guidance } = begun({ priorities: [{ higher: 'policy:leak', over: 'routine:return' }] });
    session.finish([RETURN]);
    session.say('Now it leaks');
    session.finish(['leak', 'gift'], '1');

    expect(guidance()).toContain('ask for a photo');
    expect(guidance()).not.toMatch(/current step|voucher/);
    expect(session.agentStates.at(-1)).toMatchObject({ paths: { return: ['order'] } });
    expect(session.rows().at(-1)).toMatchObject({ resolutions: expect.arrayContaining([expect.objectContaining({ entity: 'routine:return' })]) });
  });

  it('rule 109: what a policy entails applies as well', () => {
    const { session, guidance } = begun({ entailments: [{ when: 'policy:leak', also_apply: ['policy:kind'] }] });
    session.finish(['leak']);

    expect(guidance()).toContain('then be kind (It applies because: "It goes along with policy:leak.")');
  });

  it('rule 109: an entailed routine is entered', () => {
    const { session, guidance } = begun({ entailments: [{ when: 'policy:leak', also_apply: ['routine:return'] }] });
    session.finish(['leak']);

    expect(guidance()).toContain('ask for the order number');
    expect(session.agentStates).toMatchObject([{ paths: { return: ['order'] } }]);
  });

  it('rule 106: a turn that is cancelled moves no routine', () => {
    const { session } = begun();
    session.finish([RETURN]);
    session.say('Number 7');
    session.say('No, wait');
    session.finish();

    expect(session.agentStates.at(-1)).toMatchObject({ paths: { return: ['order'] } });
  });
});

function begun(relationships: object = {}) {
  const documents = documentsWith(relationships);
  const session = new EngineSession(documents);
  session.say('Hello');
  return { session, guidance: () => guidanceOf(session.rows(), documents) };
}

function documentsWith(relationships: object): EngineDocuments {
  const references = (documents: readonly { id: string; version: number }[]) => documents.map(({ id, version }) => ({ id, version }));
  const context = {
    system_prompt: { id: 'p', version: 1 },
    language: 'match_user',
    routines: references(routines),
    policies: references(policies),
    relationships,
  };
  const agent = {
    ...{ runtime: { api_key: '${A}', policy_batch_size: 2 }, platform: { public_key: '${B}', secret_key: '${C}' } },
    ...{ llms: { default: 'a/b', api_key: '${D}' }, context },
  };
  const manifest = { id: 'shop', name: 'Shop', version: '1', agent_config: agent };
  const body = bundleBody.parse({ manifest, documents: { prompts: [], routines, policies, glossaries: [], macros: [], variable_sets: [] } });
  return engineDocumentsOf(body) ?? expect.fail('the agent has policies');
}
