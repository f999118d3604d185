import { canonicalJson } from '#shared/config/canonical-json.ts';
import type { Decisions } from '../conversation/decisions.ts';

/** What was decided otherwise, each side as a line of text; null: nothing of the kind. */
export interface Difference {
  recorded: string | null;
  replayed: string | null;
}

/** Of two turns, in the order of the parts of a decision. Reasons and replies are texts of models: they are not compared. */
export function differencesOf(recorded: Decisions, replayed: Decisions): Difference[] {
  const [before, after] = [statementsOf(recorded), statementsOf(replayed)];
  return [...new Set([...before.keys(), ...after.keys()])].flatMap((name) => {
    const [was, is] = [before.get(name) ?? null, after.get(name) ?? null];
    return was?.compared === is?.compared ? [] : [{ recorded: was?.text ?? null, replayed: is?.text ?? null }];
  });
}

interface Statement {
  compared: string;
  text: string;
}

function statementsOf({ outcome, error, policies, resolutions, steps, tools, questions, clarifications }: Decisions): Map<string, Statement> {
  const statements = new Map<string, Statement>();
  const add = (name: string, compared: string, reason: string | null = null) => {
    statements.set(name, { compared, text: reason === null ? compared : `${compared}: ${reason}` });
  };
  add('outcome', `the turn ends as ${outcome}`, error);
  for (const { id, rationale } of policies) add(`policy ${id}`, `the policy ${id} applies`, rationale);
  for (const { entity, outcome: how, counterparts } of resolutions) {
    const by = counterparts.length === 0 ? '' : `, by ${[...counterparts].sort().join(', ')}`;
    add(`resolution ${entity}`, `${entity} is ${how.replaceAll('_', ' ')}${by}`);
  }
  for (const [routineId, stepId] of Object.entries(steps)) add(`step ${routineId}`, `the routine ${routineId} is at ${stepId}`);
  for (const { toolId, arguments: given, hasFailed } of tools) {
    const call = `${toolId} ${canonicalJson(given)}`;
    add(`tool ${call}`, `${call} is called${hasFailed ? ', and fails' : ''}`);
  }
  for (const { toolId, parameter } of questions) add(`question ${toolId} ${parameter}`, `the customer is asked for ${parameter}, for ${toolId}`);
  if (clarifications.length > 0) add('clarification', 'the customer is asked what is meant', clarifications.join(' '));
  return statements;
}
