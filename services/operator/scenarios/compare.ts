import { quotedName } from '#shared/contracts/printed-name.ts';
import { ownValue } from '#shared/own-value.ts';
import type { Decisions } from '../conversation/decisions.ts';
import type { Expected } from './scenario.ts';

/** An expectation that does not hold, each side as a line of text. */
export interface Mismatch {
  expected: string;
  actual: string;
}

/** In the order of the fields of `expect`. */
export function mismatchesOf(expected: Expected, decisions: Decisions): Mismatch[] {
  return [
    ...ofOutcome(expected.outcome, decisions),
    ...ofPolicies(expected.policies, decisions),
    ...ofSteps(expected.steps, decisions),
    ...ofTools(expected.tools, decisions),
    ...ofQuestions(expected.questions, decisions),
    ...ofReply(expected.reply, decisions),
  ];
}

function ofOutcome(expected: Expected['outcome'], { outcome, error }: Decisions): Mismatch[] {
  if (expected === outcome) return [];
  return [{ expected: `the turn ends as ${expected}`, actual: `the turn ends as ${outcome}${error === null ? '' : `: ${error}`}` }];
}

function ofPolicies(expected: Expected['policies'], { policies, resolutions }: Decisions): Mismatch[] {
  if (expected === undefined) return [];
  const applying = new Map(policies.map(({ id, rationale }) => [id, rationale]));
  const missing = expected.apply.filter((id) => !applying.has(id));
  const extra = expected.do_not_apply.filter((id) => applying.has(id));
  const reasonOf = (id: string) => {
    const found = resolutions.find(({ entity }) => entity === `policy:${id}`);
    return found === undefined ? '' : `: ${found.outcome}, by ${found.counterparts.join(', ')}`;
  };
  return [
    ...missing.map((id) => ({ expected: `the policy ${id} applies`, actual: `the policy ${id} does not apply${reasonOf(id)}` })),
    ...extra.map((id) => ({ expected: `the policy ${id} does not apply`, actual: `the policy ${id} applies${because(applying.get(id))}` })),
  ];
}

function because(rationale: string | null | undefined): string {
  return rationale == null ? '' : `: ${rationale}`;
}

function ofSteps(expected: Expected['steps'], { steps }: Decisions): Mismatch[] {
  return Object.entries(expected ?? {}).flatMap(([routineId, stepId]) => {
    const actual = ownValue(steps, routineId) ?? null;
    return actual === stepId ? [] : [{ expected: stepText(routineId, stepId), actual: stepText(routineId, actual) }];
  });
}

function stepText(routineId: string, stepId: string | null): string {
  return stepId === null ? `the routine ${routineId} has no step` : `the routine ${routineId} is at ${stepId}`;
}

function ofTools(expected: Expected['tools'], { tools }: Decisions): Mismatch[] {
  if (expected === undefined) return [];
  const called = new Set(tools.map(({ toolId }) => toolId));
  return [
    ...expected.called.filter((id) => !called.has(id)).map((id) => ({ expected: `${id} is called`, actual: `${id} is not called` })),
    ...expected.not_called.filter((id) => called.has(id)).map((id) => ({ expected: `${id} is not called`, actual: `${id} is called` })),
  ];
}

function ofQuestions(expected: Expected['questions'], { questions }: Decisions): Mismatch[] {
  if (expected === undefined) return [];
  const asked = [...new Set(questions.map(({ parameter }) => parameter))].sort();
  const wanted = [...new Set(expected)].sort();
  return JSON.stringify(asked) === JSON.stringify(wanted) ? [] : [{ expected: questionsText(wanted), actual: questionsText(asked) }];
}

function questionsText(parameters: readonly string[]): string {
  return parameters.length === 0 ? 'the customer is asked for no parameter' : `the customer is asked for ${parameters.join(', ')}`;
}

function ofReply(expected: Expected['reply'], { reply }: Decisions): Mismatch[] {
  if (expected === undefined) return [];
  const text = (reply ?? '').toLowerCase();
  const actual = reply === null ? 'there is no reply' : `the reply is ${JSON.stringify(reply)}`;
  return [
    ...expected.contains.filter((part) => !text.includes(part.toLowerCase())).map((part) => ({ expected: `the reply contains ${quotedName(part)}`, actual })),
    ...expected.does_not_contain
      .filter((part) => text.includes(part.toLowerCase()))
      .map((part) => ({ expected: `the reply does not contain ${quotedName(part)}`, actual })),
  ];
}
