import type { StepMessage } from '../../tool-loop/types.ts';
import type { RunActions } from './types.ts';

interface ToolEntry {
  tool_id: string;
  arguments: Record<string, unknown>;
  result: { data: unknown; metadata: Record<string, unknown> };
}

/** Of the event of a batch. @param staged messages by number */
export function toolEntries(calls: RunActions['toolEvent']['calls'], staged: ReadonlyMap<number, StepMessage>): ToolEntry[] {
  // Newest first: models may repeat a call id in a later batch.
  const messages = [...staged].sort(([left], [right]) => right - left).map(([, message]) => message);
  return calls.map(({ toolCallId, toolId }) => ({
    tool_id: toolId,
    arguments: argumentsOf(messages, toolCallId),
    result: resultOf(messages, toolCallId),
  }));
}

function argumentsOf(messages: readonly StepMessage[], toolCallId: string): Record<string, unknown> {
  for (const message of messages) {
    if (message.role !== 'assistant') continue;
    const call = message.tool_calls?.find(({ id }) => id === toolCallId);
    if (call !== undefined) return objectIn(call.function.arguments);
  }
  return {};
}

function resultOf(messages: readonly StepMessage[], toolCallId: string): ToolEntry['result'] {
  for (const message of messages) {
    if (message.role === 'tool' && message.tool_call_id === toolCallId) return message.result ?? { data: message.content, metadata: {} };
  }
  return { data: null, metadata: {} };
}

function objectIn(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
