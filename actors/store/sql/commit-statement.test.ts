import { expect, it } from 'vitest';
import type { SessionCommand } from '#bus/messages/session.ts';
import { CommitPlan } from '../../runtime/apply/commit-plan.ts';
import type { SessionState } from '../../runtime/apply/session-state.ts';
import { applyTo } from '../../test-support/apply.ts';
import { commandRows } from '../../test-support/command-rows.ts';
import { create, DrivenSession, post } from '../../test-support/driven-session.ts';
import { commitOf, isCommit } from './commit-statement.ts';

/** The plan of one command's commit. */
function planOf(state: SessionState | null, command: SessionCommand): CommitPlan {
  const plan = new CommitPlan();
  applyTo(plan, state, command, driven.transitionInputs());
  return plan;
}

const driven = new DrivenSession();

it('each commit of a turn that is one model call is the statement without the rows that no such turn has', () => {
  const commands = [create(), post('Hello'), (): SessionCommand => driven.resultOf('Good morning')];
  const names = commands.map((command) => {
    const next = typeof command === 'function' ? command() : command;
    const { statement, parameters } = commitOf(planOf(driven.state, next));
    expect(isCommit(statement)).toBe(true);
    expect(parameters).toHaveLength(parametersIn(statement.text));
    driven.apply(next);
    return statement.name;
  });

  expect(names).toEqual(['commit-turns', 'commit-turns', 'commit-turns']);
  expect(driven.lines.at(-1)).toBe('ready');
});

it('a turn’s staged row needs the statement of turns that stage some, and a row of no turn the whole one', () => {
  const plan = planOf(driven.state, post('Hello again'));
  plan.merge(commandRows({ turnSteps: [{ partition: 1, sessionId: 'ses_1', turnId: 'trn_1', seq: 0, offset: 1, body: {} }] }));
  const staged = commitOf(plan);
  plan.merge(commandRows({ deadLetters: [{ partition: 1, id: 'cmd_1', source: 'command', reason: 'a reason', body: '' }] }));
  const all = commitOf(plan);

  expect([staged.statement.name, all.statement.name]).toEqual(['commit-staged-turns', 'commit']);
  for (const { statement, parameters } of [staged, all]) {
    expect(isCommit(statement)).toBe(true);
    expect(parameters).toHaveLength(parametersIn(statement.text));
  }
});

function parametersIn(text: string): number {
  return Math.max(...[...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number)));
}
