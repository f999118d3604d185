import { describe, expect, it } from 'vitest';
import { guidanceOf } from '../../engine/composition/guidance-of.ts';
import { testPolicy } from '../../engine/policies/test-support/test-policy.ts';
import { relationshipGraph } from '../../engine/relationships/relationship-graph.ts';
import { chat, modelOf, tool, way } from '../../engine/routines/test-support/routines.ts';
import { EngineSession } from '../../test-support/engine-session.ts';
import { testEngineDocuments } from '../../test-support/test-engine-documents.ts';
import { matched, result } from '../../test-support/tool-turn.ts';

const LIST = { s: [{ name: 'look', title: null, description: null, inputSchema: { type: 'object' }, repeatable: true }] };
const CONDITION = 'routine:seek:0';

describe('a message that joins a turn whose tools have run', () => {
  it.each([
    ['is inferred again', ['s__look', {}]],
    ['is left out', ['leave_out', { function: 's__look', rationale: 'r', outcome: 'data_already_in_context' }]],
  ] satisfies [string, [string, object]][])('rules 33, 64: the routine goes on from a tool step whose tool ran before it; the call %s', (_, inference) => {
    const { session, documents, judgeAll, inferring } = seeking();
    session.infer(inferring(), ['s__look', {}]);
    session.tool([...session.open.keys()][0] ?? '', result('seen'));
    session.say('quick', 10);
    judgeAll([CONDITION]);
    session.infer(inferring(), inference);
    judgeAll([]);

    expect([...session.open.values()].map(({ kind }) => kind)).toEqual(['router-call']);
    expect(guidanceOf(session.rows(), documents)).toContain('The current step of "Routine seek": Say say.');
    session.finish();
    expect(session.log.filter(({ kind }) => kind === 'tool')).toHaveLength(1);
    expect(session.agentStates.at(-1)).toMatchObject({ paths: { seek: ['look', 'say'] } });
  });

  it('rule 59: a tool that was called before it asks for nothing', () => {
    const { session, id } = matched();
    session.infer(id(2), ['shop__order', {}]);
    session.tool(id(3), result('sent'));
    session.say('and fast', 10);
    session.judge(id(5), ['ask']);
    session.infer(id(6), ['leave_out', { function: 'shop__order', rationale: 'r', outcome: 'cannot_run', missing: ['id'] }]);

    const resolved = session.rows().at(-1);
    expect(resolved).toMatchObject({ kind: 'resolved' });
    expect(resolved).not.toHaveProperty('questions');
  });
});

/** The routine's first step is a tool step: the call that infers its tool is open. */
function seeking() {
  const model = modelOf('seek', [tool('look'), chat('say')], [way('look', 'say')]);
  const [policies, routines] = [[testPolicy('kind')], [model.routine]];
  const relationships = relationshipGraph({ policies, routines }, null);
  const documents = testEngineDocuments({ policies, routines, routineModels: [model], relationships, toolServers: new Set(['s']) });
  const session = new EngineSession(documents, LIST);
  session.say('look');
  const judgeAll = (applying: readonly string[]) => {
    for (const call of session.asked.filter((one) => one.endsWith(']'))) session.judge(call.split(' ')[0] ?? '', applying);
  };
  judgeAll([CONDITION]);
  return { session, documents, judgeAll, inferring: () => [...session.open.keys()][0] ?? '' };
}
