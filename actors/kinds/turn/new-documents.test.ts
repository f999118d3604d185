import { describe, expect, it } from 'vitest';
import { bundleBody } from '#shared/config/bundle-body.ts';
import { type EngineDocuments, engineDocumentsOf } from '../../engine/engine-documents.ts';
import { knownPaths } from '../../engine/routines/routine-machine.ts';
import { EngineSession } from '../../test-support/engine-session.ts';

interface TestRoutine {
  id: string;
  steps: readonly string[];
}

function documentsOf(routines: readonly TestRoutine[], policyIds: readonly string[] = []): EngineDocuments {
  const context = {
    system_prompt: { id: 'p', version: 1 },
    language: 'match_user',
    routines: routines.map(({ id }) => ({ id, version: 1 })),
    policies: policyIds.map((id) => ({ id, version: 1 })),
    relationships: {},
  };
  const agent = {
    ...{ runtime: { api_key: '${A}' }, platform: { public_key: '${B}', secret_key: '${C}' } },
    ...{ llms: { default: 'a/b', api_key: '${D}' }, context },
  };
  const documents = {
    ...{ prompts: [], glossaries: [], macros: [], variable_sets: [] },
    routines: routines.map(({ id, steps }) => ({
      ...{ id, version: 1, conditions: [`${id} is wanted`], policies: policyIds },
      steps: steps.map((step) => ({ kind: 'chat', id: step, chat_state: `do ${step}` })),
      transitions: steps.map((step, index) => ({ from: step, to: steps[index + 1] ?? 'end' })),
    })),
    policies: policyIds.map((id) => ({ id, version: 1, condition: `${id} holds`, action: `obey ${id}` })),
  };
  const body = bundleBody.parse({ manifest: { id: 'shop', name: 'Shop', version: '1', agent_config: agent }, documents });
  return engineDocumentsOf(body) ?? expect.fail('the agent has routines');
}

const pathsIn = ({ agentStates }: EngineSession) => (agentStates.at(-1) as { paths: Record<string, unknown> } | undefined)?.paths ?? {};

describe('rule 39: a routine of which a new version does not have the step of the session', () => {
  function rolledOut() {
    const session = new EngineSession(documentsOf([{ id: 'complaint', steps: ['look', 'sorry'] }], ['late']));
    session.say('Broken!');
    session.finish(['routine:complaint:0']);
    session.say('Broken again!');
    session.finish([], '1');
    expect(pathsIn(session)).toEqual({ complaint: ['look', 'sorry'] });
    session.rollOut(documentsOf([{ id: 'complaint', steps: ['sorry2'] }], ['late']));
    return session;
  }

  it('is judged again, and entered when its condition holds', () => {
    const session = rolledOut();
    session.say('Broken!');
    expect(session.asked).toEqual([expect.stringMatching(/\[routine:complaint:0\]$/)]);
    session.finish(['routine:complaint:0']);

    expect(pathsIn(session)).toEqual({ complaint: ['sorry2'] });
  });

  it('has an empty path stored, and is not followed, while its condition does not hold', () => {
    const session = rolledOut();
    session.say('Hello');
    session.finish();
    expect(pathsIn(session)).toEqual({ complaint: [] });
    session.say('Broken!');

    expect(session.asked).toEqual([expect.stringMatching(/\[routine:complaint:0\]$/)]);
  });

  it('keeps what of a path the new version has', () => {
    const { routineModels } = documentsOf([{ id: 'complaint', steps: ['a', 'c'] }]);
    expect(knownPaths(routineModels, { complaint: ['a', 'b', 'c'], gone: ['x'] })).toEqual({ complaint: ['a', 'c'] });
    expect(knownPaths(routineModels, { complaint: ['a', 'b', null] })).toEqual({ complaint: ['a', null] });
  });
});

describe('ids of documents that are names which objects inherit', () => {
  const NAMES = ['constructor', 'toString', 'valueOf', 'hasOwnProperty', '__proto__'];

  it.each(NAMES)('a routine, its steps and a policy named %s: it is entered, goes on, and its path is remembered', (id) => {
    const session = new EngineSession(documentsOf([{ id, steps: [id, 'sorry'] }], [id]));
    session.say('Broken!');
    session.finish([`routine:${id}:0`, id]);
    expect(Object.entries(pathsIn(session))).toEqual([[id, [id]]]);
    expect(session.rows().at(-1)).toMatchObject({ kind: 'resolved', policies: [{ id }], steps: [{ routineId: id, stepId: id }] });
    session.say('Broken again!');
    session.finish([id], '1');

    expect(Object.entries(pathsIn(session))).toEqual([[id, [id, 'sorry']]]);
    expect(session.lines.filter((line) => line.startsWith('assistant_message'))).toHaveLength(2);
  });

  it('are no path where the session has none', () => {
    const session = new EngineSession(documentsOf(NAMES.map((id) => ({ id, steps: ['look', 'sorry'] }))));
    session.say('Broken!');
    session.finish();

    expect(session.lines.at(-1)).toBe('ready');
    expect(pathsIn(session)).toEqual({});
  });
});
