import { expect, it } from 'vitest';
import type { SessionCommand } from '#bus/messages/session.ts';
import { CommitPlan } from '../../runtime/apply/commit-plan.ts';
import type { SessionState } from '../../runtime/apply/session-state.ts';
import { applyTo } from '../../test-support/apply.ts';
import { create, DrivenSession, header, post } from '../../test-support/driven-session.ts';

const inputs = new DrivenSession().transitionInputs();

/** The labels that each command has stored; null where it has not stored any. */
function storedBy(...commands: SessionCommand[]): (readonly string[] | null)[] {
  let state: SessionState | null = null;
  return commands.map((command) => {
    const plan = new CommitPlan();
    applyTo(plan, state, command, inputs);
    state = plan.sessions.get('ses_1') ?? state;
    return plan.labelledSessions.get('ses_1')?.labels ?? null;
  });
}

const patch = (labels: { upsertLabels?: string[]; removeLabels?: string[]; title?: string }): SessionCommand => ({
  ...{ ...header, type: 'session.patch', commandId: JSON.stringify(labels), setMetadata: {}, unsetMetadata: [], upsertLabels: [], removeLabels: [] },
  ...labels,
});

it('are stored by the commands that change them alone: turns cost nothing for them', () => {
  const commands = [{ ...create(), labels: ['vip'] }, post('hello'), patch({ title: 'T' }), patch({ upsertLabels: ['eu'] }), patch({ removeLabels: ['vip'] })];

  expect(storedBy(...commands)).toEqual([['vip'], null, null, ['vip', 'eu'], ['eu']]);
});

it('are not stored for a session that never had any', () => {
  expect(storedBy(create(), post('hello'), { ...header, type: 'session.delete', commandId: 'delete' })).toEqual([null, null, null]);
});

it('end with their session', () => {
  expect(storedBy({ ...create(), labels: ['vip'] }, { ...header, type: 'session.delete', commandId: 'delete' })).toEqual([['vip'], []]);
});
