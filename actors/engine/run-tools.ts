import type { Routine } from '#shared/contracts/documents/routine.ts';
import type { ChatTool } from '#shared/contracts/router/chat-request.ts';
import { type CallableTools, callableTools, parametersOf } from './callable-tools.ts';
import { stepToolsOf } from './run-steps.ts';

/** The function that ends a run. */
export const EMIT_OUTPUT = 'emit_output';

interface RunToolsInput extends Pick<Parameters<typeof callableTools>[0], 'selectors' | 'lists'> {
  outputSchema: Record<string, unknown>;
}

/** The functions that a run's model may call: the routine's tools, then `emit_output`. */
export function runTools({ selectors, lists, outputSchema }: RunToolsInput): CallableTools {
  return callableTools({ selectors, lists, own: [emitOutput(outputSchema)] });
}

/** What a run may call: the routine's tools, and those of its steps. */
export function selectorsOf(routine: Pick<Routine, 'tools' | 'steps'>): string[] {
  return [...new Set([...routine.tools, ...stepToolsOf(routine)])];
}

function emitOutput(outputSchema: Record<string, unknown>): ChatTool {
  const description = 'Ends the run with its result. Call it once, alone, when the task is done.';
  return { type: 'function', function: { name: EMIT_OUTPUT, description, parameters: parametersOf(outputSchema) } };
}
