import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { EngineDocuments } from '../engine-documents.ts';
import { currentRows, type TurnRow } from '../turn-row.ts';

/** Of one tool's result, as JSON. */
const MAX_RESULT_CHARS = 4_096;

/**
 * What a turn has added to its prompts since the customer's message, as text to find terms by: the policies that apply so far and the current steps, then
 * results of tools, the newest first.
 * @param history up to the newest event of the prompt
 * @param rows of the turn that the prompt is rendered from
 */
export function addedText(history: readonly ConversationEvent[], rows: readonly TurnRow[], documents: AddedDocuments | null): string {
  const decided = documents === null || rows.length === 0 ? [] : decidedTexts(currentRows(rows).rows, documents);
  const inLog = history.slice(history.findLastIndex(({ kind }) => kind === 'assistant_message') + 1).flatMap((event) => {
    return event.kind === 'tool' ? event.tool_calls.map(({ result }) => result.data) : [];
  });
  const staged = rows.flatMap((row) => (row.kind === 'tool' && row.call.control.lifespan === 'response' ? [row.call.result.data] : []));
  const results = [...inLog, ...staged].toReversed().map((data) => JSON.stringify(data ?? null).slice(0, MAX_RESULT_CHARS));
  return [...decided, ...results].join('\n');
}

type AddedDocuments = Pick<EngineDocuments, 'policies' | 'routineModels'>;

/** While the turn still matches, what has matched; later what is in force. */
function decidedTexts(rows: readonly TurnRow[], { policies, routineModels }: AddedDocuments): string[] {
  const resolved = rows.findLast((row) => row.kind === 'resolved');
  const matched = rows.flatMap((row) => (row.kind === 'match' ? row.answer.verdicts : [])).filter(({ applies }) => applies);
  const ids = new Set((resolved?.policies ?? matched).map(({ id }) => id));
  const steps = (resolved?.steps ?? []).map(({ routineId, stepId }) => {
    return routineModels.find(({ routine }) => routine.id === routineId)?.graph.nodes.get(stepId)?.action ?? '';
  });
  return [...policies.flatMap(({ id, condition, action }) => (ids.has(id) ? [`${condition ?? ''}\n${action ?? ''}`] : [])), ...steps];
}
