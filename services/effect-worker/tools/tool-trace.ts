import type { ToolWork } from '#bus/messages/tool.ts';
import type { ResultCommand } from '#services/work/item-kind.ts';
import type { ItemTrace } from '#services/work/item-span.ts';
import type { RunningItem } from '#services/work/running-items.ts';
import { actorIds } from '#shared/telemetry/actor-ids.ts';
import { genAi } from '#shared/telemetry/gen-ai.ts';
import { maskUrl } from '#shared/telemetry/redact.ts';
import type { Attributes, ContentCapture } from '#shared/telemetry/tracing.ts';

/** What the owner gets. */
export type ToolReport = Extract<ResultCommand, { type: 'tool.completed' | 'tools.listed' }>;

/** `execute_tool {tool}`, `tools/list` or `retrieval`. The same span carries the attributes of an MCP client span. */
export function toolTrace(work: ToolWork, content: ContentCapture): ItemTrace | null {
  if (work.traceparent === null || work.type === 'variable') return null;
  const ids = { [genAi.conversation]: work.sessionId, [actorAttribute(work.actorId)]: work.actorId, 'switchyard.effect.id': work.effectId };
  if (work.type === 'list') {
    return {
      name: 'tools/list',
      kind: 'client',
      scope: 'switchyard.gen_ai',
      attributes: { ...ids, 'mcp.method.name': 'tools/list', 'switchyard.tool_servers': work.servers },
    };
  }
  if (work.type === 'search') {
    const attributes = { ...ids, [genAi.operation]: 'retrieval', 'switchyard.search.query': shown(work.query, content) };
    return { name: 'retrieval', kind: 'client', scope: 'switchyard.gen_ai', attributes };
  }
  return {
    name: `execute_tool ${work.toolId}`,
    kind: 'internal',
    scope: 'switchyard.gen_ai',
    attributes: {
      ...ids,
      [genAi.operation]: 'execute_tool',
      [genAi.toolName]: work.toolId,
      [genAi.toolType]: 'extension',
      [genAi.toolCallId]: work.effectId,
      [genAi.toolArguments]: shown(work.arguments, content),
      'mcp.method.name': 'tools/call',
    },
  };
}

function actorAttribute(actorId: string): string {
  return `switchyard.${'run_id' in actorIds(actorId) ? 'run' : 'turn'}.id`;
}

export function endToolSpan(report: ToolReport | null, running: RunningItem, content: ContentCapture): void {
  const { attributes, errorType } = endOf(report, content);
  running.span?.set(attributes);
  running.span?.end(running.isCancelled() ? 'cancelled' : errorType);
}

function endOf(report: ToolReport | null, content: ContentCapture): { attributes: Attributes; errorType: string | null } {
  if (report?.type === 'tools.listed') {
    const missing = Object.keys(report.unavailable);
    const isWhole = missing.length === 0;
    return { attributes: { 'switchyard.unavailable_tool_servers': isWhole ? undefined : missing }, errorType: isWhole ? null : 'unreachable' };
  }
  if (report?.type !== 'tool.completed') return { attributes: {}, errorType: 'no_result' };
  const { outcome } = report;
  if (outcome.type === 'failed') return { attributes: {}, errorType: outcome.reason };
  return { attributes: { [genAi.toolResult]: shown(outcome.data, content) }, errorType: outcome.isError ? 'tool_error' : null };
}

function shown(value: unknown, content: ContentCapture): string | undefined {
  if (content === 'off') return undefined;
  const text = JSON.stringify(value) ?? '';
  return content === 'full' ? maskUrl(text) : `[${text.length} characters]`;
}
