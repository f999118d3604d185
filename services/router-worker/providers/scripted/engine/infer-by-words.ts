import type { ChatTool } from '#shared/contracts/router/chat-request.ts';
import { type PickedCall, suggestFrom } from '../pick-tools.ts';
import { nodeOf } from '../sample-schema.ts';
import { latestOf, readQuestion } from './question.ts';

/** The engine's function by which this question is known. */
const LEAVE_OUT = 'leave_out';

/**
 * Calls each function of the engine's question about tools, with the values that stand in the customer's latest messages. One whose required values do not
 * stand there is left out, and so is one that was called since those messages.
 *
 * @param earlier the user messages before the last one: the conversation
 * @param last the functions, with their reasons
 * @returns null: no question of the engine
 */
export function inferByWords(tools: readonly ChatTool[], earlier: readonly string[], last: string): PickedCall[] | null {
  if (!tools.some((tool) => tool.function.name === LEAVE_OUT)) return null;
  const question = readQuestion(earlier, last);
  const text = latestOf(question);
  const latest = question.lines.findLastIndex(({ from }) => from === 'customer');
  const called = new Set(question.lines.slice(latest + 1).map(({ tool }) => tool));
  return question.items.flatMap(({ function: name, tool: toolId }) => {
    const tool = tools.find((one) => one.function.name === name);
    if (tool === undefined || typeof name !== 'string') return [];
    if (called.has(toolId)) return [leftOut(name, 'data_already_in_context', 'It was called for this message already.', [])];
    const { values, missing } = valuesFrom(tool, text);
    if (missing.length > 0) return [leftOut(name, 'cannot_run', `The latest message has no ${missing.join(', ')}.`, missing)];
    return [{ name, arguments: JSON.stringify(values) }];
  });
}

function valuesFrom({ function: { parameters } }: ChatTool, text: string): { values: Record<string, unknown>; missing: string[] } {
  const { properties = {}, required = [] } = nodeOf(parameters ?? {});
  const suggest = suggestFrom(text);
  const values: Record<string, unknown> = {};
  for (const [name, schema] of Object.entries(properties)) {
    const value = suggest(name, nodeOf(schema), required.includes(name));
    if (value !== undefined) values[name] = value;
  }
  return { values, missing: required.filter((name) => !(name in values)) };
}

function leftOut(name: string, outcome: string, rationale: string, missing: readonly string[]): PickedCall {
  return { name: LEAVE_OUT, arguments: JSON.stringify({ function: name, rationale, outcome, missing }) };
}
