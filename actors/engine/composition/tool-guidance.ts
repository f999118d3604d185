import { cleanJson } from '#shared/clean-text.ts';
import type { ParameterQuestion } from '../tools/parameter-questions.ts';
import type { TurnRow } from '../turn-row.ts';

/** What tools lack, as an instruction to ask for it (rule 58); empty when nothing is missing. Texts of schemas are data, so they are JSON. */
export function questionsText(questions: readonly ParameterQuestion[]): string {
  if (questions.length === 0) return '';
  const lines = questions.map(({ parameter, problem, description, significance, examples, choices }) => {
    const known = { name: parameter, problem, ...(description !== null && { description }), ...(significance !== null && { significance }) };
    return `- ${cleanJson({ ...known, ...(examples.length > 0 && { examples }), ...(choices.length > 0 && { choices }) })}`;
  });
  return `You can't do everything yet, because these values are missing or wrong. Ask the customer for them in your own words, without naming functions:\n${lines.join('\n')}`;
}

/** Policies that results of trusted servers carry for this reply, as "when, then" lines (rule 67): also of calls from before a message joined. */
export function transientLines(rows: readonly TurnRow[]): string[] {
  const policies = rows.flatMap((row) => (row.kind === 'tool' ? row.call.control.policies : []));
  return policies.map(({ condition, action }) => `- ${condition === null ? 'Always: ' : `When ${condition}, then `}${action}`);
}
