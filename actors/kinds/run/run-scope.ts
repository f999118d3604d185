import type { Violation } from '#shared/schema/violation.ts';
import type { CallableTools } from '../../engine/callable-tools.ts';

/** What is known of the run in progress beside its machine's state, when a result of one of its effects comes. */
export interface RunScope {
  /** Tool servers of its routine. */
  readonly servers: readonly string[];
  tools(): CallableTools;
  /** A tool that a step names and its server's list does not have; null: there is none. @param lists by server: hash of its tool list */
  missingTool(lists: Readonly<Record<string, string>>): string | null;
  /** Null when valid. */
  checkOutput(value: unknown): Violation | null;
  /** The tool of an unsettled call; empty for an unknown one. */
  toolIdOf(callId: string): string;
  isRepeatable(toolId: string): boolean;
}
