import { z } from 'zod';
import { answerFormat, byOrdinal, readAnswer } from '../../read-answer.ts';
import type { EngineStep } from '../../step.ts';
import { stepMessages } from '../../step-prompt.ts';
import { boundedRationale, type MatchAnswer } from '../match-answer.ts';
import type { MatchItem } from '../match-batch.ts';

/** The model's finding about the policy with that ordinal. */
interface VerdictRow {
  id: number;
  rationale?: string;
}

interface VerdictQuestion<Row extends VerdictRow> {
  template: string;
  /** Of the answer's schema. */
  name: string;
  instructions: string;
  /** What the model reads of a policy, beside its ordinal. */
  lineOf(item: MatchItem): object;
  row: z.ZodType<Row>;
  applies(row: Row): boolean;
}

/** A question with one verdict for each policy. */
export function verdictStep<Row extends VerdictRow>(question: VerdictQuestion<Row>): EngineStep<readonly MatchItem[], MatchAnswer> {
  const { template, name, instructions, lineOf, row, applies } = question;
  const answerSchema = z.object({ verdicts: z.array(row) });
  const format = answerFormat(name, answerSchema);
  return {
    template,

    render(view, items) {
      const lines = items.map((item, index) => ({ id: index + 1, ...lineOf(item) }));
      return { messages: stepMessages(view, { instructions, about: 'The policies to judge', items: lines }), response_format: format };
    },

    read(reply, items) {
      const read = readAnswer(reply, answerSchema);
      if (read.type === 'malformed') return read;
      const found = byOrdinal(items, read.answer.verdicts);
      if (found.type === 'malformed') return found;
      const verdicts = found.pairs.map(([{ id }, verdict]) => ({
        id,
        applies: applies(verdict),
        rationale: verdict.rationale === undefined ? null : boundedRationale(verdict.rationale),
      }));
      return { type: 'read', answer: { verdicts, clarification: null } };
    },
  };
}
