import { describe, expect, it } from 'vitest';
import type { ListedTool } from '#bus/messages/tool.ts';
import { guidanceOf } from '../../engine/composition/guidance-of.ts';
import { testPolicy } from '../../engine/policies/test-support/test-policy.ts';
import { relationshipGraph } from '../../engine/relationships/relationship-graph.ts';
import { chat, modelOf, tool, way } from '../../engine/routines/test-support/routines.ts';
import { EngineSession } from '../../test-support/engine-session.ts';
import { testEngineDocuments } from '../../test-support/test-engine-documents.ts';
import { result } from '../../test-support/tool-turn.ts';

const listed = (name: string): ListedTool => ({
  ...{ name, title: null, description: null, repeatable: true },
  inputSchema: { type: 'object', properties: { id: { type: 'integer' } }, required: ['id'] },
});
const CONDITION = 'routine:complain:0';
const leftOut = (outcome: string, name = 's__look'): [string, object] => ['leave_out', { function: name, rationale: 'r', outcome }];

/** A routine whose first step is the tool step `look`; a policy calls the same tool, and forces another pass. */
function complaining(tools: string[] = ['s:look']) {
  const model = modelOf('complain', [{ ...tool('look'), tool_state: tools }, chat('sorry')], [way('look', 'sorry')]);
  const [policies, routines] = [[testPolicy('state', { tools: ['s:look'] })], [model.routine]];
  const relationships = relationshipGraph({ policies, routines }, null);
  const engine = { policies, routines, routineModels: [model], relationships, toolServers: new Set(['s']), reevaluationTools: ['s:look'] };
  const documents = testEngineDocuments(engine);
  const session = new EngineSession(documents, { s: [listed('look'), listed('more')] });
  session.say('Where is 5?');
  const first = () => [...session.open.keys()][0] ?? '';
  const judgeAll = (applying: readonly string[]) => {
    for (const call of session.asked.filter((one) => one.endsWith(']'))) session.judge(call.split(' ')[0] ?? '', applying);
  };
  const openTools = () => [...session.open.values()].filter(({ kind }) => kind === 'turn-tool-call').length;
  const steps = () => {
    const resolved = session.rows().findLast(({ kind }) => kind === 'resolved');
    return resolved?.kind === 'resolved' ? resolved.steps.map(({ stepId }) => stepId) : expect.fail('nothing is decided');
  };
  return { session, documents, first, judgeAll, openTools, steps };
}

/** The policy has called the tool, and the routine becomes active in the pass after it: the call that infers its step's tools is open. */
function calledByPolicy(tools?: string[]) {
  const turn = complaining(tools);
  turn.judgeAll(['state']);
  turn.session.infer(turn.first(), ['s__look', { id: 5 }]);
  turn.session.tool(turn.first(), result('broken'));
  turn.judgeAll([CONDITION]);
  return turn;
}

describe('rule 33: a tool step whose tool need not be called', () => {
  it.each([
    ['is inferred again', ['s__look', { id: 5 }]],
    ['is left out', leftOut('data_already_in_context')],
    ['is not needed', leftOut('not_needed')],
  ] satisfies [string, [string, object]][])('goes on when a policy has called it earlier in the turn: the call %s', (_, inference) => {
    const { session, documents, first, judgeAll, openTools, steps } = calledByPolicy();
    session.infer(first(), inference);
    expect(openTools()).toBe(0);
    judgeAll([]);

    expect(steps()).toEqual(['sorry']);
    expect(guidanceOf(session.rows(), documents)).toContain('The current step of "Routine complain": Say sorry.');
    session.finish();
    expect(session.agentStates.at(-1)).toMatchObject({ paths: { complain: ['look', 'sorry'] } });
  });

  it('goes on when its data is in the context from an earlier turn', () => {
    const { session, first, judgeAll, steps } = complaining();
    judgeAll([CONDITION]);
    session.infer(first(), leftOut('data_already_in_context'));
    judgeAll([]);

    expect(steps()).toEqual(['sorry']);
    expect(session.log.filter(({ kind }) => kind === 'tool')).toEqual([]);
  });

  it('calls it with other arguments, and goes on', () => {
    const { session, first, judgeAll, openTools, steps } = calledByPolicy();
    session.infer(first(), ['s__look', { id: 6 }]);
    expect(openTools()).toBe(1);
    session.tool(first(), result('whole'));
    judgeAll([]);

    expect(steps()).toEqual(['sorry']);
  });

  it('stands still while a parameter is missing, also of another tool of the step', () => {
    const ofPolicy = calledByPolicy();
    ofPolicy.session.infer(ofPolicy.first(), ['s__look', {}]);
    expect(ofPolicy.steps()).toEqual(['look']);

    const { session, first, judgeAll, steps } = complaining(['s:look', 's:more']);
    judgeAll([CONDITION]);
    session.infer(first(), leftOut('data_already_in_context'), ['s__more', {}]);
    expect(steps()).toEqual(['look']);
    expect(session.rows().at(-1)).toMatchObject({ kind: 'resolved', questions: [expect.objectContaining({ toolId: 's:more' })] });
  });

  it('stands still when the model says nothing of it', () => {
    const { session, first, judgeAll, steps } = complaining();
    judgeAll([CONDITION]);
    session.infer(first(), leftOut('not_needed'));

    expect(steps()).toEqual(['look']);
  });

  it('takes no second step on: what has taken one on is used up', () => {
    const model = modelOf(
      'twice',
      [{ ...tool('one'), tool_state: ['s:look'] }, { ...tool('two'), tool_state: ['s:look'] }, chat('end-of-it')],
      [way('one', 'two'), way('two', 'end-of-it')],
    );
    const [policies, routines] = [[testPolicy('state')], [model.routine]];
    const relationships = relationshipGraph({ policies, routines }, null);
    const session = new EngineSession(
      testEngineDocuments({ policies, routines, routineModels: [model], relationships, toolServers: new Set(['s']), reevaluationTools: [] }),
      { s: [listed('look')] },
    );
    const first = () => [...session.open.keys()][0] ?? '';
    const judgeAll = (applying: readonly string[]) => {
      for (const call of session.asked.filter((one) => one.endsWith(']'))) session.judge(call.split(' ')[0] ?? '', applying);
    };
    session.say('go');
    judgeAll(['routine:twice:0']);
    session.infer(first(), ['s__look', { id: 1 }]);
    session.tool(first(), result('seen'));
    judgeAll([]);
    session.infer(first(), leftOut('not_needed'));

    expect(session.rows().at(-1)).toMatchObject({ kind: 'resolved', steps: [{ stepId: 'two' }] });
  });
});
